/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The advice follows from three facts: whether a collection ever freed device
 * memory, whether that was one of CUMEM_AUTO_COLLECT, and whether dead cycles
 * hold any now.  What collections free of host memory is said beside it:
 * without them it stays. */
#include "collector.h"
#include "../detector/hot.h"

#include <inttypes.h>
#include <string.h>

#include "../detector/number.h"
#include "../detector/size.h"

/* From so many on, that none freed anything says something. */
#define ENOUGH 10

CM_HOT void
cm_collector_add(struct cm_leak_collector *self,
                 const struct cm_leak_collection *row)
{
    self->seen = cm_number_sum(self->seen, 1);
    self->duration_us = cm_number_sum(self->duration_us, row->duration_us);
    self->collected = cm_number_sum(self->collected, row->collected);
    self->device_bytes_freed =
        cm_number_sum(self->device_bytes_freed, row->device_bytes_freed);
    if (row->duration_us > self->longest_us) {
        self->longest_us = row->duration_us;
    }
}

void
cm_collector_add_up(struct cm_leak *leak)
{
    leak->collector = (struct cm_leak_collector){
        .off = leak->collector.off, .known = leak->collector.known};
    for (size_t i = 0; i < leak->collection_count; i++) {
        cm_collector_add(&leak->collector, &leak->collections[i]);
    }
}

/* The most device memory that was dead at one moment, of any device. */
static uint64_t
dead_peak(const struct cm_leak *leak)
{
    uint64_t most = 0;

    for (size_t i = 0; i < leak->device_count; i++) {
        if (leak->devices[i].dead_peak > most) {
            most = leak->devices[i].dead_peak;
        }
    }
    for (size_t i = 0; i < leak->cycle_count; i++) {
        const struct cm_leak_cycle *cycle = &leak->cycles[i];

        if (strcmp(cm_leak_text(leak, cycle->class), "resurrected") != 0
            && cycle->peak_bytes > most) {
            most = cycle->peak_bytes;
        }
    }
    return most;
}

/* Device memory that other collections freed than CUMEM_AUTO_COLLECT's. */
static uint64_t
freed_unaided(const struct cm_leak *leak)
{
    uint64_t freed = leak->collector.device_bytes_freed;
    uint64_t saved = leak->looks.saved_bytes;

    return freed > saved ? freed - saved : 0;
}

enum cm_collector_advice
cm_collector_judge(const struct cm_leak *leak)
{
    const struct cm_leak_collector *sum = &leak->collector;
    bool dead = sum->device_bytes_freed > 0 || dead_peak(leak) > 0;

    if (leak->looks.saved_bytes > 0
        && (sum->off || freed_unaided(leak) == 0)) {
        return CM_COLLECTOR_SAVES;
    }
    if (sum->off && dead) {
        return CM_COLLECTOR_IS_OFF;
    }
    if (dead) {
        return CM_COLLECTOR_KEEP;
    }
    return sum->seen >= ENOUGH && !sum->off ? CM_COLLECTOR_MAY_GO
                                            : CM_COLLECTOR_UNKNOWN;
}

static void
add_size(struct cm_buffer *out, uint64_t bytes)
{
    char text[CM_SIZE_TEXT_BYTES];

    cm_size_format(bytes, text);
    cm_buffer_add_text(out, text);
}

void
cm_collector_add_time(uint64_t us, struct cm_buffer *out)
{
    if (us < 1000) {
        cm_buffer_addf(out, "%" PRIu64 " \u00b5s", us);
    }
    else if (us < 1000000) {
        cm_buffer_addf(out, "%" PRIu64 ".%" PRIu64 " ms", us / 1000,
                       us / 100 % 10);
    }
    else {
        cm_buffer_addf(out, "%" PRIu64 ".%" PRIu64 " s", us / 1000000,
                       us / 100000 % 10);
    }
}

static void
add_keep(const struct cm_leak *leak, struct cm_buffer *out)
{
    cm_buffer_add_text(out, "Leave automatic collection on until the cycles "
                            "are cut: ");
    if (freed_unaided(leak) > 0) {
        add_size(out, freed_unaided(leak));
        cm_buffer_add_text(out, " of device memory came back only by it");
    }
    else {
        add_size(out, dead_peak(leak));
        cm_buffer_add_text(out, " of device memory waited for it");
    }
    cm_buffer_add_text(out, ".");
}

static void
add_may_go(const struct cm_leak *leak, struct cm_buffer *out)
{
    const struct cm_leak_collector *sum = &leak->collector;

    cm_buffer_add_text(out, "For device memory automatic collection may be "
                            "switched off: no collection freed any, and ");
    cm_collector_add_time(sum->duration_us, out);
    cm_buffer_addf(out, " went into %" PRIu64 " of them.", sum->seen);
    if (sum->collected > 0) {
        cm_buffer_addf(out,
                       " They freed %" PRIu64
                       " other objects: call gc.collect() at a quiet moment "
                       "instead, as between epochs.",
                       sum->collected);
    }
}

static void
add_is_off(const struct cm_leak *leak, struct cm_buffer *out)
{
    cm_buffer_add_text(out, "Automatic collection is off, and ");
    add_size(out, dead_peak(leak));
    cm_buffer_add_text(out, " of device memory was dead at one moment: call "
                            "gc.collect() between iterations, or cut the "
                            "cycles.");
}

static void
add_saves(const struct cm_leak *leak, struct cm_buffer *out)
{
    if (leak->collector.off) {
        cm_buffer_add_text(out, "Automatic collection is off. ");
    }
    cm_buffer_add_text(out, "Leave CUMEM_AUTO_COLLECT set until the cycles "
                            "are cut: ");
    add_size(out, leak->looks.saved_bytes);
    cm_buffer_add_text(out, " of device memory came back only by it.");
}

void
cm_collector_add_advice(const struct cm_leak *leak, struct cm_buffer *out)
{
    switch (cm_collector_judge(leak)) {
    case CM_COLLECTOR_KEEP: add_keep(leak, out); break;
    case CM_COLLECTOR_MAY_GO: add_may_go(leak, out); break;
    case CM_COLLECTOR_IS_OFF: add_is_off(leak, out); break;
    case CM_COLLECTOR_SAVES: add_saves(leak, out); break;
    case CM_COLLECTOR_UNKNOWN: break;
    }
}
