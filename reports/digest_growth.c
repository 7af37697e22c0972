/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What comes again and again while the program runs: the list of what grows,
 * the points of the timeline, the collections, memory that ran out.  Each takes the lock for as
 * long as it takes to put it into the document. */

#include <string.h>

#include "../detector/alloc.h"
#include "../detector/clock.h"
#include "collector.h"
#include "digest_private.h"
#include "exhausted.h"
#include "fault.h"
#include "leak_json.h"
#include "memory_why.h"

#define MAX_COLLECTIONS 2000u

/* --- collections ------------------------------------------------------------ */

/* Every second row goes when the table is full, and from then on only every
 * second collection gets one. */
static void
thin_collections(struct cm_digest *self)
{
    struct cm_leak *leak = &self->leak;
    size_t kept = 0;
    for (size_t i = 0; i < leak->collection_count; i += 2) {
        leak->collections[kept++] = leak->collections[i];
    }
    leak->collection_count = kept;
    self->collection_step *= 2;
}

void
cm_digest_collection(struct cm_digest *self, int generation,
                     uint64_t duration_us, uint64_t collected,
                     uint64_t device_bytes)
{
    struct cm_leak_collection row = {
        .iteration = -1,
        .generation = generation,
        .duration_us = duration_us,
        .collected = collected,
        .device_bytes_freed = device_bytes,
    };
    pthread_mutex_lock(&self->lock);
    struct cm_leak *leak = &self->leak;
    cm_collector_add(&leak->collector, &row);
    if (leak->collection_count >= MAX_COLLECTIONS) {
        thin_collections(self);
    }
    bool due = self->collections_seen++ % self->collection_step == 0;
    if (due
        && cm_grow((void **)&leak->collections, &leak->collection_capacity,
                   leak->collection_count + 1, sizeof(row))
               == CM_OK) {
        row.iteration = leak->iteration;
        leak->collections[leak->collection_count++] = row;
    }
    pthread_mutex_unlock(&self->lock);
}

void
cm_digest_collector_off(struct cm_digest *self, bool off)
{
    pthread_mutex_lock(&self->lock);
    self->leak.collector.off = off;
    pthread_mutex_unlock(&self->lock);
}

void
cm_digest_looks(struct cm_digest *self, const struct cm_leak_looks *looks,
                uint64_t began_ns)
{
    pthread_mutex_lock(&self->lock);
    struct cm_leak_looks now = *looks;
    now.run_us = self->leak.looks.run_us;
    self->dirty |= memcmp(&self->leak.looks, &now, sizeof(now)) != 0;
    self->leak.looks = now;
    self->looks_began_ns = began_ns;
    pthread_mutex_unlock(&self->lock);
}

void
cm_digest_note_run(struct cm_digest *self)
{
    uint64_t began_ns = self->looks_began_ns;
    if (began_ns != 0) {
        self->leak.looks.run_us =
            (cm_clock_ns(CLOCK_MONOTONIC) - began_ns) / 1000;
    }
}

/* --- memory that ran out -------------------------------------------------- */

bool
cm_digest_note_reason(struct cm_digest *self)
{
    const struct cm_leak_device *device = cm_exhausted_device(&self->leak);
    struct cm_digest_reason told = self->told_reason;
    struct cm_buffer why = {0}, fix = {0};
    if (device == NULL) {
        return false;
    }
    self->told_reason = (struct cm_digest_reason){
        .device = device->name,
        .asked_bytes = device->asked_bytes,
        .number = cm_memory_why(&self->leak, device, &why, &fix)};
    cm_buffer_release(&why);
    cm_buffer_release(&fix);
    return !cm_text_same(told.device, device->name)
           || told.asked_bytes != device->asked_bytes
           || told.number != self->told_reason.number;
}

enum cm_status
cm_digest_exhausted(struct cm_digest *self, const struct cm_exhausted_use *use)
{
    pthread_mutex_lock(&self->lock);
    enum cm_status status = cm_exhausted_set(&self->leak, use);
    if (status == CM_OK) {
        self->dirty = self->urgent = true;
        self->held_back = !self->ran_out;
        if (self->ran_out) {
            cm_digest_say_exhausted(self, false);
        }
        self->ran_out = true;
    }
    self->counts.no_memory += status == CM_NO_MEMORY;
    pthread_mutex_unlock(&self->lock);
    return status;
}

void
cm_digest_exhausted_all(struct cm_digest *self)
{
    pthread_mutex_lock(&self->lock);
    if (self->held_back) {
        self->held_back = false;
        cm_digest_say_exhausted(self, true);
    }
    pthread_mutex_unlock(&self->lock);
}

/* --- growth --------------------------------------------------------------- */

/* Before: lock held.  Who was told of a leak hears that it stopped. */
static void
say_stopped(struct cm_digest *self)
{
    struct cm_growth_stopped stopped;
    struct cm_buffer text = {0};
    size_t at = 0;
    while (cm_growth_next_stopped(&self->told, &self->leak, &at, &stopped)) {
        if (self->warn) {
            self->counts.no_memory +=
                cm_growth_stopped_write(&stopped, &self->leak, &text) != CM_OK;
        }
    }
    if (text.length != 0) {
        cm_digest_queue(self, &text, false);
    }
    cm_buffer_release(&text);
}

void
cm_digest_say_growth(struct cm_digest *self)
{
    struct cm_ledger_news news = self->grown;
    if (self->growth_unsaid) { /* the lock is given meanwhile */
        self->growth_unsaid = false;
        self->grown = (struct cm_ledger_news){0};
        cm_digest_say_grown(self, &news);
        say_stopped(self);
        cm_ledger_news_release(&news);
    }
}

/* Before: lock held, the list is that of now. */
static enum cm_status
announce(struct cm_digest *self)
{
    struct cm_ledger_news news = {0};
    enum cm_status status =
        cm_growth_announce(&self->told, &self->leak, &news);
    self->urgent |= news.count != 0;
    self->growth_unsaid = true;
    if (status == CM_OK) {
        status = cm_ledger_news_move(&self->grown, &news);
    }
    cm_ledger_news_release(&news);
    return status;
}

enum cm_status
cm_digest_growth(struct cm_digest *self, const struct cm_growth_use *items,
                 size_t count, bool aloud)
{
    pthread_mutex_lock(&self->lock);
    enum cm_status status =
        cm_growth_set(&self->leak, self->records, items, count);
    if (status == CM_OK) {
        (void)cm_suppressions_apply_growth(&self->suppressions, &self->leak);
        cm_faults_sort(&self->leak);
        self->dirty = true;
        status = aloud ? announce(self) : CM_OK;
    }
    self->counts.no_memory += status == CM_NO_MEMORY;
    pthread_mutex_unlock(&self->lock);
    return status;
}

void
cm_digest_timeline_add(struct cm_digest *self,
                       const struct cm_timeline_use *point)
{
    pthread_mutex_lock(&self->lock);
    enum cm_status status =
        cm_timeline_add(&self->leak, &self->timeline_rows, point);
    self->counts.no_memory += status == CM_NO_MEMORY;
    pthread_mutex_unlock(&self->lock);
}

void
cm_digest_demand(struct cm_digest *self)
{
    pthread_mutex_lock(&self->lock);
    self->demanded = self->dirty = self->urgent = true;
    pthread_mutex_unlock(&self->lock);
}

enum cm_status
cm_digest_export(struct cm_digest *self, struct cm_buffer *document)
{
    pthread_mutex_lock(&self->lock);
    cm_leak_sort(&self->leak);
    cm_digest_note_run(self);
    enum cm_status status = cm_leak_json_write(&self->leak, document);
    pthread_mutex_unlock(&self->lock);
    return status;
}
