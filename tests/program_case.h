/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TEST_PROGRAM_CASE_H
#define CM_TEST_PROGRAM_CASE_H

/* A program whose allocator is a replay file, with what a traced process makes
 * of its events.  What only Python knows is said by the test: which objects
 * there are, where an iteration ends, which line of the program is which site.
 * What pyext/ does with it stands beside each part. */

#include "heap_builder.h"
#include "replay_case.h"

#include "../detector/iterations.h"
#include "../detector/site_growth.h"
#include "../reports/digest.h"
#include "../reports/exhausted.h"

enum {
    PROGRAM_DEVICES = 6,
    PROGRAM_HELD = 16,
    PROGRAM_SEGMENTS = 8,
    PROGRAM_POINTS = 64
};

struct program {
    const char *path;
    size_t way;          /* in which events are told */
    struct built *built; /* its stacks, and what is dead of its objects */
    struct cm_blocks *blocks;
    struct cm_growth growth;
    struct cm_iterations iterations;
    struct cm_digest *digest;
    int64_t began[PROGRAM_DEVICES]; /* bytes when the iteration did */
    struct cm_event segments[PROGRAM_SEGMENTS];
    size_t segment_count;
    struct cm_event failed; /* the last one out of memory */
};

static inline void
program_init(struct program *self, const char *path, const char *text,
             size_t way)
{
    *self = (struct program){.path = path, .way = way};
    self->built = built_new(text);
    self->blocks = cm_blocks_new(1000);
    self->growth.table.max_series = 100;
    self->digest = cm_digest_new(self->built->records);
    assert_non_null(self->blocks);
    assert_non_null(self->digest);
}

static inline void
program_release(struct program *self)
{
    cm_digest_free(self->digest);
    cm_growth_release(&self->growth);
    cm_blocks_free(self->blocks);
    built_free(self->built);
}

/* ---- its events */

static inline void
program_note_segment(struct program *self, const struct cm_event *event)
{
    size_t at = 0;
    while (at < self->segment_count
           && self->segments[at].address != event->address) {
        at++;
    }
    if (event->kind == CM_EVENT_SEGMENT) {
        assert_true(at == self->segment_count && at < PROGRAM_SEGMENTS);
        self->segments[self->segment_count++] = *event;
    }
    else {
        assert_true(at < self->segment_count);
        self->segments[at] = self->segments[--self->segment_count];
    }
}

static inline void
program_hear(void *context, const struct cm_event *event)
{
    struct program *self = context;
    if (event->kind == CM_EVENT_OUT_OF_MEMORY) {
        self->failed = *event;
    }
    else if (event->kind == CM_EVENT_SEGMENT
             || event->kind == CM_EVENT_SEGMENT_FREE) {
        program_note_segment(self, event);
    }
    ways[self->way].event(self->blocks, event);
}

static inline void
program_tell(struct program *self, const char *events)
{
    struct cm_sink sink = {.event = program_hear, .context = self};
    assert_null(replay_into(&sink, events, strlen(events)));
}

static inline bool
program_is_at(const char *line, const char *start)
{
    return start != NULL && strncmp(line, start, strlen(start)) == 0;
}

/* The lines of its file from the one that begins so, before the one that
 * begins so; NULL: the first, and the end. */
static inline void
program_play(struct program *self, const char *from, const char *to)
{
    char events[1 << 14] = "", line[512];
    size_t used = 0;
    bool on = from == NULL, over = false;
    FILE *file = fopen(self->path, "r");
    assert_non_null(file);
    while (!over && fgets(line, sizeof(line), file) != NULL) {
        on = on || program_is_at(line, from);
        over = on && program_is_at(line, to);
        if (on && !over) {
            assert_true(used + strlen(line) < sizeof(events));
            used += (size_t)sprintf(events + used, "%s", line);
        }
    }
    (void)fclose(file);
    assert_true(over == (to != NULL) && used > 0);
    program_tell(self, events);
}

/* ---- its iterations, as pyext/session/steps.c does */

static inline const char *
program_device(int device, char name[16])
{
    (void)snprintf(name, 16, "cuda:%d", device);
    return name;
}

static inline void
program_tell_iteration(struct program *self, int device)
{
    char name[16];
    struct cm_block_use use;
    struct cm_timeline_use point = {
        .device = program_device(device, name),
        .by = cm_iterations_name(self->iterations.by),
        .iteration = self->iterations.done,
        .seconds = (double)self->iterations.done,
        .categories = cm_category_names,
        .bytes = self->growth.bytes[device + 1],
        .category_count = CM_CATEGORIES,
    };
    cm_blocks_use(self->blocks, device, &use);
    cm_digest_timeline_add(self->digest, &point);
    cm_digest_iteration(self->digest, name, self->iterations.done - 1,
                        self->began[device], (int64_t)use.live_bytes,
                        (int64_t)use.peak_bytes);
    self->began[device] = (int64_t)use.live_bytes;
}

static inline void
program_step(struct program *self)
{
    int devices = cm_blocks_devices(self->blocks);
    assert_true(cm_iterations_told(&self->iterations));
    cm_digest_number(self->digest, "iteration", self->iterations.done);
    for (int i = 0; i < devices; i++) {
        cm_growth_boundary(&self->growth, self->blocks, i,
                           self->iterations.done);
    }
    cm_growth_judge(&self->growth, self->iterations.done);
    for (int i = 0; i < devices; i++) {
        program_tell_iteration(self, i);
    }
    cm_blocks_mark(self->blocks);
}

/* ---- what no object explains, as pyext/module/memory.c does */

static inline bool
program_explains(const struct cm_block *known, size_t count,
                 const struct cm_block *block)
{
    for (size_t i = 0; i < count; i++) {
        if (known[i].bytes != 0 && known[i].address == block->address) {
            return true;
        }
    }
    return false;
}

static inline void
program_add_held(struct cm_held *items, size_t *count, const char *device,
                 const struct cm_block *block)
{
    size_t at = 0;
    while (at < *count
           && (items[at].site.index != block->site.index
               || items[at].awaited != block->awaited
               || items[at].device != device)) {
        at++;
    }
    if (at == *count) {
        assert_true((*count)++ < PROGRAM_HELD);
        items[at] = (struct cm_held){.device = device,
                                     .framework = "torch",
                                     .site = block->site,
                                     .awaited = block->awaited};
    }
    items[at].bytes += block->bytes;
    items[at].count++;
}

/* The memory of its objects lies at these addresses. */
static inline void
program_tell_held(struct program *self, const uint64_t *objects, size_t count)
{
    char names[PROGRAM_DEVICES][16];
    struct cm_block known[CM_BLOCKS_MATCHED], *blocks;
    struct cm_held items[PROGRAM_HELD];
    size_t copied, held = 0;
    cm_blocks_match(self->blocks, objects, count, known);
    assert_int_equal(cm_blocks_copy(self->blocks, &blocks, &copied), CM_OK);
    for (size_t i = 0; i < copied; i++) {
        int device = blocks[i].device;
        if (!program_explains(known, count, &blocks[i])) {
            program_add_held(items, &held,
                             program_device(device, names[device]),
                             &blocks[i]);
        }
    }
    cm_free(blocks);
    assert_int_equal(cm_digest_held(self->digest, items, held), CM_OK);
}

/* ---- its dead objects, as pyext/allocations/allocations.c does */

/* The memory of the first one that has any lies at this address. */
static inline void
program_find_dead(struct program *self, uint64_t address)
{
    struct cm_storage *storage = &self->built->heap.storages[1];
    struct cm_findings findings = {0};
    struct cm_block block;
    assert_int_equal(self->built->heap.storage_count, 1);
    cm_blocks_match(self->blocks, &address, 1, &block);
    assert_true(block.bytes >= storage->bytes);
    storage->device_address = address;
    storage->site = block.site;
    storage->awaited = block.awaited;
    storage->block_bytes = block.bytes;
    storage->stream = block.stream;
    storage->thread = block.thread;
    assert_int_equal(
        cm_digest_find(self->digest, &self->built->heap, true, &findings),
        CM_OK);
    cm_findings_release(&findings);
}

/* ---- where its memory is, as pyext/cumem/_memory.py does */

/* What is free of each segment lies in one piece. */
static inline struct cm_pool_use
program_pool(struct program *self, int device)
{
    struct cm_pool_use pool = {.name = "common",
                               .requested = CM_LEAK_UNKNOWN,
                               .pending_free = CM_LEAK_UNKNOWN};
    struct cm_block *blocks;
    size_t count;
    assert_int_equal(cm_blocks_copy(self->blocks, &blocks, &count), CM_OK);
    for (size_t i = 0; i < self->segment_count; i++) {
        const struct cm_event *segment = &self->segments[i];
        uint64_t used = 0;
        for (size_t j = 0; j < count; j++) {
            bool within =
                segment->device == device && blocks[j].device == device
                && blocks[j].address - segment->address < segment->bytes;
            used += within ? blocks[j].bytes : 0;
        }
        uint64_t rest = segment->device == device ? segment->bytes - used : 0;
        pool.segments += segment->device == device;
        pool.reserved += used + rest;
        pool.allocated += used;
        pool.largest_free =
            rest > pool.largest_free ? rest : pool.largest_free;
    }
    cm_free(blocks);
    return pool;
}

/* `total`: of the device; 0: not known. */
static inline void
program_tell_device(struct program *self, int device, uint64_t total,
                    uint64_t asked)
{
    char name[16];
    struct cm_block_use block_use;
    struct cm_device_use use;
    struct cm_pool_use pool = program_pool(self, device);
    cm_blocks_use(self->blocks, device, &block_use);
    bool told = block_use.reserved != 0;
    if (told) { /* by its allocator: so it counts too */
        assert_int_equal(block_use.allocated, block_use.live_bytes);
    }
    struct cm_framework_use torch = {"torch", block_use.live_bytes,
                                     told ? block_use.reserved
                                          : CM_LEAK_UNKNOWN};
    cm_device_use_init(&use, program_device(device, name));
    use.total = total;
    use.allocated = block_use.live_bytes;
    use.reserved = block_use.reserved;
    use.peak_allocated = block_use.peak_bytes;
    use.cached =
        told ? block_use.reserved - block_use.live_bytes : CM_LEAK_UNKNOWN;
    use.free = total != 0 ? total - block_use.reserved : CM_LEAK_UNKNOWN;
    use.asked_bytes = asked;
    use.frameworks = &torch;
    use.framework_count = 1;
    use.pools = &pool;
    use.pool_count = pool.segments != 0;
    cm_digest_device(self->digest, &use);
}

/* The allocation that failed last raises; nothing of it is an object's. */
static inline void
program_raise(struct program *self, uint64_t total)
{
    char name[16];
    struct cm_exhausted_use use = {
        .error = "OutOfMemoryError",
        .device = program_device(self->failed.device, name),
        .asked_bytes = self->failed.bytes,
    };
    assert_int_equal(self->failed.kind, CM_EVENT_OUT_OF_MEMORY);
    program_tell_device(self, self->failed.device, total, self->failed.bytes);
    program_tell_held(self, NULL, 0);
    assert_int_equal(cm_digest_exhausted(self->digest, &use), CM_OK);
}

/* ---- what of it grows, as pyext/session/growth_told.c does */

static inline void
program_tell_growth(struct program *self)
{
    static int64_t points[PROGRAM_POINTS][CM_LEAK_SERIES_NUMBERS];
    char name[16];
    struct cm_growth_row *rows;
    struct cm_growth_use use;
    struct cm_series_point point;
    size_t count;
    assert_int_equal(
        cm_growth_rows(&self->growth, self->iterations.done, &rows, &count),
        CM_OK);
    assert_int_equal(count, 1);
    cm_growth_use_init(&use);
    use.site.index = rows[0].site;
    use.category = cm_category_names[rows[0].category];
    use.device = program_device(rows[0].device, name);
    use.verdict = cm_verdict_text(rows[0].result.verdict);
    use.bytes_per_iteration = rows[0].result.bytes_per_iteration;
    use.count_per_iteration = rows[0].result.count_per_iteration;
    use.since_iteration = rows[0].result.since_iteration;
    use.confidence = rows[0].result.confidence;
    use.bytes = rows[0].bytes;
    use.count = rows[0].count;
    use.peak_bytes = rows[0].peak_bytes;
    use.series = (const int64_t(*)[CM_LEAK_SERIES_NUMBERS])points;
    for (; cm_series_get(rows[0].series, use.series_count, &point);
         use.series_count++) {
        assert_true(use.series_count < PROGRAM_POINTS);
        points[use.series_count][0] = point.iteration;
        points[use.series_count][1] = (int64_t)point.count;
        points[use.series_count][2] = (int64_t)point.bytes;
    }
    cm_free(rows);
    assert_int_equal(cm_digest_growth(self->digest, &use, 1, true), CM_OK);
}

#endif
