/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* One mutex around one document. */

#include "digest.h"

#include <pthread.h>
#include <string.h>

#include "../detector/alloc.h"
#include "../detector/hot.h"
#include "../graph/finding.h"
#include "digest_private.h"
#include "growth_told.h"
#include "leak.h"
#include "leak_json.h"
#include "ledger.h"
#include "suppress.h"

#define FIRST_INTERVAL_NS UINT64_C(1000000000)

enum cm_status
cm_digest_make_document(struct cm_leak *leak)
{
    enum cm_status status = cm_leak_init(leak);
    if (status == CM_OK) {
        leak->allocator_hook = cm_texts_intern(leak->texts, "none");
        leak->collector.known = true;
    }
    return status;
}

void
cm_digest_begin(struct cm_digest *self)
{
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->written, NULL);
    self->interval_ns = FIRST_INTERVAL_NS;
    self->collection_step = 1;
}

struct cm_digest *
cm_digest_new(struct cm_records *records)
{
    struct cm_digest *self = cm_calloc(1, sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->records = records;
    if (cm_digest_make_document(&self->leak) != CM_OK) {
        cm_free(self);
        return NULL;
    }
    cm_digest_begin(self);
    if (cm_digest_outlive_forks(self) != CM_OK) {
        cm_digest_free(self);
        return NULL;
    }
    return self;
}

void
cm_digest_free(struct cm_digest *self)
{
    if (self == NULL) {
        return;
    }
    cm_digest_forget_forks(self);
    for (size_t i = 0; i < self->warning_count; i++) {
        cm_free(self->warnings[(self->first_warning + i)
                               % CM_DIGEST_MAX_WARNINGS]);
    }
    cm_growth_told_release(&self->told);
    cm_ledger_news_release(&self->grown);
    cm_backlog_release(&self->backlog);
    cm_suppressions_release(&self->suppressions);
    cm_recurrence_release(&self->recurrence);
    cm_leak_release(&self->leak);
    cm_free(self->path);
    pthread_cond_destroy(&self->written);
    pthread_mutex_destroy(&self->lock);
    cm_free(self);
}

bool
cm_digest_queue(struct cm_digest *self, const struct cm_buffer *text,
                bool finding)
{
    size_t at =
        (self->first_warning + self->warning_count) % CM_DIGEST_MAX_WARNINGS;
    if (self->warning_count == CM_DIGEST_MAX_WARNINGS
        || cm_buffer_status(text) != CM_OK) {
        return false;
    }
    self->warnings[at] = cm_strdup(cm_buffer_text(text));
    self->finding[at] = finding;
    self->warning_count += self->warnings[at] != NULL;
    return self->warnings[at] != NULL;
}

/* --- who and where -------------------------------------------------------- */

static struct cm_text_id *
text_field(struct cm_leak *leak, const char *key)
{
    const struct {
        const char *key;
        struct cm_text_id *field;
    } fields[] = {
        {"host", &leak->host},
        {"python", &leak->python},
        {"torch", &leak->torch},
        {"cumem", &leak->cumem},
        {"interceptor", &leak->interceptor},
        {"allocator_hook", &leak->allocator_hook},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (strcmp(fields[i].key, key) == 0) {
            return fields[i].field;
        }
    }
    return NULL;
}

void
cm_digest_describe(struct cm_digest *self, const char *key, const char *value)
{
    pthread_mutex_lock(&self->lock);
    struct cm_text_id *field = text_field(&self->leak, key);
    if (field != NULL) {
        *field = cm_texts_intern(self->leak.texts, value);
    }
    pthread_mutex_unlock(&self->lock);
}

void
cm_digest_number(struct cm_digest *self, const char *key, int64_t value)
{
    pthread_mutex_lock(&self->lock);
    if (strcmp(key, "pid") == 0) {
        self->leak.pid = value;
    }
    else if (strcmp(key, "rank") == 0) {
        self->leak.rank = value;
    }
    else if (strcmp(key, "world_size") == 0) {
        self->leak.world_size = value;
    }
    else if (strcmp(key, "iteration") == 0) {
        cm_leak_set_iteration(&self->leak, value);
    }
    pthread_mutex_unlock(&self->lock);
}

void
cm_digest_device(struct cm_digest *self, const struct cm_device_use *use)
{
    pthread_mutex_lock(&self->lock);
    enum cm_status status = cm_memory_set_device(&self->leak, use);
    bool ran_out = status == CM_OK && use->asked_bytes != 0;
    self->dirty |= ran_out;
    self->urgent |= ran_out;
    self->counts.no_memory += status == CM_NO_MEMORY;
    pthread_mutex_unlock(&self->lock);
}

enum cm_status
cm_digest_held(struct cm_digest *self, const struct cm_held *items,
               size_t count)
{
    pthread_mutex_lock(&self->lock);
    enum cm_status status =
        cm_memory_set_held(&self->leak, self->records, items, count);
    self->dirty |= status == CM_OK;
    self->counts.no_memory += status == CM_NO_MEMORY;
    pthread_mutex_unlock(&self->lock);
    return status;
}

void
cm_digest_iteration(struct cm_digest *self, const char *device, int64_t number,
                    int64_t start, int64_t end, int64_t peak)
{
    pthread_mutex_lock(&self->lock);
    enum cm_status status = cm_memory_add_iteration(
        &self->leak, &self->rows, device, number, start, end, peak);
    self->counts.no_memory += status == CM_NO_MEMORY;
    pthread_mutex_unlock(&self->lock);
}

void
cm_digest_suppress(struct cm_digest *self, const char *path)
{
    pthread_mutex_lock(&self->lock);
    struct cm_buffer text = {0};
    cm_buffer_add_text(&text, "cumem: ");
    size_t before = text.length;
    enum cm_status status =
        cm_suppressions_read(&self->suppressions, path, &text);
    cm_recurrence_release(&self->recurrence); /* by the rules before */
    self->counts.no_memory += status == CM_NO_MEMORY;
    if (text.length > before) {
        cm_digest_queue(self, &text, false);
    }
    cm_buffer_release(&text);
    pthread_mutex_unlock(&self->lock);
}

void
cm_digest_output(struct cm_digest *self, const char *path, bool warn,
                 uint64_t min_bytes)
{
    pthread_mutex_lock(&self->lock);
    bool same =
        path != NULL && self->path != NULL && strcmp(path, self->path) == 0;
    if (!same) {
        cm_free(self->path);
        self->path = cm_strdup(path);
        self->path_claimed = false;
    }
    self->warn = warn;
    self->min_bytes = min_bytes;
    pthread_mutex_unlock(&self->lock);
}

void
cm_digest_lost(struct cm_digest *self, uint64_t events, uint64_t nodes,
               const char *reason)
{
    pthread_mutex_lock(&self->lock);
    self->leak.lost_events += events;
    self->leak.lost_nodes += nodes;
    self->leak.lost_reason = cm_texts_intern(self->leak.texts, reason);
    pthread_mutex_unlock(&self->lock);
}

/* --- findings ----------------------------------------------------------------- */

/* Before: lock held. */
static enum cm_status
record(struct cm_digest *self, const struct cm_heap *heap,
       const struct cm_findings *findings)
{
    struct cm_ledger_news news = {0};
    enum cm_status status =
        cm_ledger_add(&self->leak, heap, findings, self->records, &news);
    if (status == CM_OK) {
        self->dirty = true;
        self->urgent |= news.count != 0;
        status = cm_digest_say_found(self, &news);
    }
    cm_ledger_news_release(&news);
    return status;
}

/* Before: lock held.  `leak` gets what the document says of the process. */
static enum cm_status
copy_header(const struct cm_digest *self, struct cm_leak *leak)
{
    const struct cm_leak *from = &self->leak;
    static const char *const keys[] = {
        "host", "python", "torch", "cumem", "interceptor", "allocator_hook"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct cm_text_id id =
            *text_field((struct cm_leak *)(uintptr_t)from, keys[i]);
        *text_field(leak, keys[i]) =
            cm_texts_intern(leak->texts, cm_leak_text(from, id));
    }
    leak->pid = from->pid;
    leak->rank = from->rank;
    leak->world_size = from->world_size;
    leak->iteration = from->iteration;
    return cm_memory_copy(from, leak);
}

/* The analysis takes long: that is why the lock is not held.  Before: it is. */
static enum cm_status
analyse(struct cm_digest *self, const struct cm_heap *heap,
        struct cm_findings *findings)
{
    pthread_mutex_unlock(&self->lock);
    enum cm_status status = cm_findings_find(heap, self->records, findings);
    pthread_mutex_lock(&self->lock);
    if (status == CM_OK) {
        (void)cm_suppressions_apply(&self->suppressions, heap, self->records,
                                    findings);
        cm_recurrence_keep(&self->recurrence, heap, findings);
    }
    return status;
}

static enum cm_status
find(struct cm_digest *self, const struct cm_heap *heap,
     struct cm_findings *findings)
{
    enum cm_status status = CM_OK;
    pthread_mutex_lock(&self->lock);
    if (!cm_recurrence_recall(&self->recurrence, heap, findings)) {
        status = analyse(self, heap, findings);
    }
    self->counts.heaps++;
    self->counts.no_memory += status == CM_NO_MEMORY;
    if (status == CM_OK) {
        self->counts.findings += findings->count;
        if (findings->dead_bytes > self->counts.dead_bytes_peak) {
            self->counts.dead_bytes_peak = findings->dead_bytes;
        }
    }
    pthread_mutex_unlock(&self->lock);
    return status;
}

enum cm_status
cm_digest_find(struct cm_digest *self, const struct cm_heap *heap,
               bool recorded, struct cm_findings *findings)
{
    enum cm_status status = find(self, heap, findings);
    bool worth = findings->count != 0 || heap->nodes_cut != 0;
    if (status == CM_OK && recorded && worth) {
        pthread_mutex_lock(&self->lock);
        status = record(self, heap, findings);
        pthread_mutex_unlock(&self->lock);
    }
    return status;
}

enum cm_status
cm_digest_add(struct cm_digest *self, const struct cm_heap *heap)
{
    struct cm_findings findings = {0};
    enum cm_status status = cm_digest_find(self, heap, true, &findings);
    cm_findings_release(&findings);
    return status;
}

enum cm_status
cm_digest_document(struct cm_digest *self, const struct cm_heap *heaps,
                   const struct cm_findings *findings, size_t count,
                   struct cm_buffer *document)
{
    struct cm_leak leak = {0};
    enum cm_status status = cm_leak_init(&leak);
    if (status == CM_OK) {
        pthread_mutex_lock(&self->lock);
        status = copy_header(self, &leak);
        pthread_mutex_unlock(&self->lock);
    }
    for (size_t i = 0; status == CM_OK && i < count; i++) {
        status =
            cm_ledger_add(&leak, &heaps[i], &findings[i], self->records, NULL);
    }
    if (status == CM_OK) {
        cm_leak_sort(&leak);
        status = cm_leak_json_write(&leak, document);
    }
    cm_leak_release(&leak);
    return status;
}

CM_HOT bool
cm_digest_warns(struct cm_digest *self)
{
    return self->warning_count != 0;
}

CM_HOT char *
cm_digest_take_warning(struct cm_digest *self, bool *finding)
{
    char *text = NULL;
    if (!cm_digest_warns(self)) {
        return NULL;
    }
    pthread_mutex_lock(&self->lock);
    if (self->warning_count != 0) {
        text = self->warnings[self->first_warning];
        if (finding != NULL) {
            *finding = self->finding[self->first_warning];
        }
        self->first_warning =
            (self->first_warning + 1) % CM_DIGEST_MAX_WARNINGS;
        self->warning_count--;
    }
    pthread_mutex_unlock(&self->lock);
    return text;
}

void
cm_digest_counts(struct cm_digest *self, struct cm_digest_counts *result)
{
    pthread_mutex_lock(&self->lock);
    *result = self->counts;
    pthread_mutex_unlock(&self->lock);
}
