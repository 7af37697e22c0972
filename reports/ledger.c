/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Folding findings over time.  Findings are found again by a scan over the
 * document's cycles: there are few, because equal ones are one, and at most
 * CM_LEDGER_MAX_CYCLES.  Objects are copied only for a new finding. */
#include "ledger.h"

#include <string.h>

#include "../detector/alloc.h"
#include "../detector/number.h"
#include "representative.h"

void
cm_ledger_news_release(struct cm_ledger_news *self)
{
    cm_free(self->fingerprints);
    *self = (struct cm_ledger_news){0};
}

enum cm_status
cm_ledger_news_move(struct cm_ledger_news *self, struct cm_ledger_news *from)
{
    enum cm_status status = CM_OK;

    if (from->count > 0) {
        status =
            cm_grow((void **)&self->fingerprints, &self->capacity,
                    self->count + from->count, sizeof(self->fingerprints[0]));
    }
    if (status == CM_OK && from->count > 0) {
        memcpy(self->fingerprints + self->count, from->fingerprints,
               from->count * sizeof(self->fingerprints[0]));
        self->count += from->count;
        from->count = 0;
    }
    return status;
}

struct cm_leak_device *
cm_ledger_device(struct cm_leak *leak, const char *name)
{
    struct cm_leak_device device;

    for (size_t i = 0; i < leak->device_count; i++) {
        if (strcmp(cm_leak_text(leak, leak->devices[i].name), name) == 0) {
            return &leak->devices[i];
        }
    }
    cm_leak_device_init(&device);
    if (leak->device_count == CM_LEDGER_MAX_DEVICES
        || cm_texts_add(leak->texts, name, strlen(name), &device.name) != CM_OK
        || cm_grow((void **)&leak->devices, &leak->device_capacity,
                   leak->device_count + 1, sizeof(device))
               != CM_OK) {
        return NULL;
    }
    leak->devices[leak->device_count] = device;
    return &leak->devices[leak->device_count++];
}

static bool
is_dead(const struct cm_finding *finding)
{
    return finding->class != CM_CLASS_RESURRECTED;
}

/* The cycle of this finding in the document, NULL when it is new. */
static struct cm_leak_cycle *
find_cycle(const struct cm_leak *leak, const struct cm_finding *finding)
{
    for (size_t i = 0; i < leak->cycle_count; i++) {
        struct cm_leak_cycle *cycle = &leak->cycles[i];

        if (cycle->fingerprint == finding->fingerprint
            && is_dead(finding)
                   == (strcmp(cm_leak_text(leak, cycle->class), "resurrected")
                       != 0)) {
            return cycle;
        }
    }
    return NULL;
}

static struct cm_text_id
trigger_name(const struct cm_leak *leak, enum cm_trigger trigger)
{
    static const char *const names[] = {[CM_TRIGGER_GC] = "gc",
                                        [CM_TRIGGER_SCAN] = "scan",
                                        [CM_TRIGGER_OOM] = "oom",
                                        [CM_TRIGGER_EXIT] = "exit",
                                        [CM_TRIGGER_MANUAL] = "manual"};

    return cm_texts_intern(leak->texts, names[trigger]);
}

/* Copies a finding that the document does not have. */
static enum cm_status
add_cycle(struct cm_copy *copy, const struct cm_finding *finding)
{
    struct cm_leak *leak = copy->leak;
    struct cm_leak_cycle cycle = {
        .fingerprint = finding->fingerprint,
        .bytes_each = cm_number_capped(finding->bytes_each),
        .count = finding->count,
        .peak_bytes = cm_number_capped(finding->bytes_total),
        .total_bytes = cm_number_capped(finding->bytes_total),
        .first_iteration = copy->heap->iteration,
        .last_iteration = copy->heap->iteration,
        .time = (double)copy->heap->time_ns / 1e9,
    };
    enum cm_status status =
        cm_grow((void **)&leak->cycles, &leak->cycle_capacity,
                leak->cycle_count + 1, sizeof(cycle));

    if (copy->heap->trigger == CM_TRIGGER_GC) {
        cycle.collected_count = cycle.count;
        cycle.collected_bytes = cycle.total_bytes;
    }
    if (status == CM_OK) {
        cycle.trigger = trigger_name(leak, copy->heap->trigger);
        status = cm_copy_finding(copy, finding, &cycle);
    }
    if (status != CM_OK) {
        cm_leak_cycle_release(&cycle);
        return status;
    }
    leak->cycles[leak->cycle_count++] = cycle;
    return CM_OK;
}

static uint64_t
larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What a scan sees is still there: the next scan, or a collection, will meet
 * the same cycles again. */
static void
count_cycle(struct cm_leak_cycle *cycle, uint64_t count, uint64_t bytes,
            enum cm_trigger trigger)
{
    uint64_t all_count = cm_number_sum(cycle->collected_count, count);
    uint64_t all_bytes = cm_number_sum(cycle->collected_bytes, bytes);

    if (trigger == CM_TRIGGER_GC) {
        cycle->collected_count = all_count;
        cycle->collected_bytes = all_bytes;
    }
    cycle->count = larger(cycle->count, all_count);
    cycle->total_bytes = larger(cycle->total_bytes, all_bytes);
}

static void
fold_cycle(struct cm_leak_cycle *cycle, const struct cm_finding *finding,
           const struct cm_heap *heap)
{
    uint64_t bytes = cm_number_capped(finding->bytes_total);

    count_cycle(cycle, finding->count, bytes, heap->trigger);
    if (bytes > cycle->peak_bytes) {
        cycle->peak_bytes = bytes;
    }
    if (heap->iteration >= 0) {
        cycle->last_iteration = heap->iteration;
        if (cycle->first_iteration < 0) {
            cycle->first_iteration = heap->iteration;
        }
    }
}

/* Names a finding to the user when it is new or has doubled. */
static enum cm_status
announce(struct cm_leak_cycle *cycle, struct cm_ledger_news *news)
{
    bool first = cycle->announced_bytes == 0;
    enum cm_status status;

    if (news == NULL
        || (!first && cycle->total_bytes / 2 < cycle->announced_bytes)) {
        return CM_OK;
    }
    status = cm_grow((void **)&news->fingerprints, &news->capacity,
                     news->count + 1, sizeof(news->fingerprints[0]));
    if (status == CM_OK) {
        news->fingerprints[news->count++] = cycle->fingerprint;
        cycle->announced_bytes =
            cycle->total_bytes > 0 ? cycle->total_bytes : 1;
    }
    return status;
}

/* Adds the finding's bytes to the sums of the devices that they are on. */
static void
add_dead_bytes(struct cm_leak *leak, const struct cm_records *records,
               const struct cm_finding *finding, uint64_t *sums)
{
    for (size_t i = 0; i < finding->device_count; i++) {
        const struct cm_bytes_on *on = &finding->bytes_on[i];
        struct cm_leak_device *device =
            cm_ledger_device(leak, cm_records_text(records, on->device));

        if (device != NULL) {
            sums[device - leak->devices] += cm_number_capped(on->bytes);
        }
    }
}

/* What was dead at this one moment, against the most so far. */
static void
note_peaks(struct cm_leak *leak, const struct cm_heap *heap,
           const struct cm_findings *findings,
           const struct cm_records *records)
{
    uint64_t sums[CM_LEDGER_MAX_DEVICES] = {0};

    for (size_t i = 0; i < findings->count; i++) {
        if (is_dead(&findings->items[i])) {
            add_dead_bytes(leak, records, &findings->items[i], sums);
        }
    }
    for (size_t i = 0; i < leak->device_count; i++) {
        struct cm_leak_device *device = &leak->devices[i];

        if (sums[i] > device->dead_peak) {
            device->dead_peak = cm_number_capped(sums[i]);
            device->dead_peak_iteration = heap->iteration;
        }
    }
}

static void
lose(struct cm_leak *leak, uint64_t events, uint64_t nodes, const char *reason)
{
    if (events == 0 && nodes == 0) {
        return;
    }
    leak->lost_events = cm_number_sum(leak->lost_events, events);
    leak->lost_nodes =
        cm_number_sum(leak->lost_nodes, cm_number_capped(nodes));
    if (leak->lost_reason.index == 0) {
        leak->lost_reason = cm_texts_intern(leak->texts, reason);
    }
}

/* `copy` is made for the first finding that is new. */
static enum cm_status
add_finding(struct cm_copy *copy, struct cm_leak *leak,
            const struct cm_heap *heap, const struct cm_records *records,
            const struct cm_finding *finding, struct cm_ledger_news *news)
{
    struct cm_leak_cycle *cycle = find_cycle(leak, finding);
    enum cm_status status = CM_OK;

    if (cycle != NULL) {
        fold_cycle(cycle, finding, heap);
    }
    else if (leak->cycle_count == CM_LEDGER_MAX_CYCLES) {
        lose(leak, 1, 0, "more different findings than are kept");
        return CM_OK;
    }
    else {
        if (copy->heap == NULL) {
            status = cm_copy_init(copy, leak, heap, records);
        }
        if (status == CM_OK) {
            status = add_cycle(copy, finding);
        }
        if (status == CM_LIMIT) {
            lose(leak, 1, 0, "more text than is kept");
            return CM_OK;
        }
        cycle = status == CM_OK ? &leak->cycles[leak->cycle_count - 1] : NULL;
    }
    if (status == CM_OK && is_dead(finding)) {
        status = announce(cycle, news);
    }
    return status;
}

enum cm_status
cm_ledger_add(struct cm_leak *leak, const struct cm_heap *heap,
              const struct cm_findings *findings,
              const struct cm_records *records, struct cm_ledger_news *news)
{
    struct cm_copy copy = {0};
    enum cm_status status = CM_OK;

    lose(leak, 0, heap->nodes_cut,
         "of one collection a part: a bound on objects or on time was met");
    lose(leak, findings->left_out, 0,
         "one collection found more different cycles than are kept");
    note_peaks(leak, heap, findings, records);
    for (size_t i = 0; status == CM_OK && i < findings->count; i++) {
        status =
            add_finding(&copy, leak, heap, records, &findings->items[i], news);
    }
    cm_copy_release(&copy);
    return status;
}
