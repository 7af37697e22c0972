/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <stdlib.h>
#include <string.h>

#include "../detector/event_line.h"
#include "fail_each.h"

#define BASE UINT64_C(0x7f0000000000)

static struct cm_streams streams;

static struct cm_event
event_of(enum cm_event_kind kind, size_t place)
{
    return (struct cm_event){.kind = (uint8_t)kind,
                             .address = BASE + place * 512,
                             .bytes = 512,
                             .stream = 7,
                             .thread = 4711,
                             .site = {(uint32_t)place + 1},
                             .awaited = true};
}

static struct cm_event_line *
begin(void)
{
    struct cm_event_line *line =
        aligned_alloc(_Alignof(struct cm_event_line), sizeof(*line));
    assert_non_null(line);
    memset(line, 0, sizeof(*line));
    line->stream = CM_STREAM_UNKNOWN;
    line->streams = &streams;
    return line;
}

static bool
write_one(struct cm_event_line *line, struct cm_event event)
{
    return cm_event_line_write(line, &event);
}

static void
keeps_what_the_tables_want(void **state)
{
    (void)state;
    struct cm_event_line *line = begin();
    assert_true(write_one(line, event_of(CM_EVENT_ALLOCATE, 3)));
    assert_true(write_one(line, event_of(CM_EVENT_FREE, 3)));
    const struct cm_waiting *made = cm_event_line_at(line, 0);
    assert_int_equal(made->address, BASE + 3 * 512);
    assert_int_equal(made->bytes, 512);
    assert_int_equal(made->thread, 4711);
    assert_int_equal(made->site.index, 4);
    assert_int_equal(made->kind, CM_EVENT_ALLOCATE);
    assert_true(made->awaited);
    assert_int_equal(cm_streams_handle(&streams, made->stream), 7);
    assert_int_equal(cm_event_line_at(line, 1)->kind, CM_EVENT_FREE);
    free(line);
}

static void
refuses_what_it_has_no_room_for(void **state)
{
    (void)state;
    struct cm_event_line *line = begin();
    struct cm_event timed = event_of(CM_EVENT_ALLOCATE, 0);
    timed.time_ns = 1;
    assert_false(write_one(line, timed));
    assert_false(write_one(line, event_of(CM_EVENT_SEGMENT, 0)));
    for (size_t turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < CM_LINE_EVENTS; i++) {
            assert_true(write_one(line, event_of(CM_EVENT_ALLOCATE, i)));
        }
        assert_false(write_one(line, event_of(CM_EVENT_ALLOCATE, 0)));
        atomic_store(&line->taken, atomic_load(&line->written));
    }
    assert_int_equal(atomic_load(&line->written), 3 * CM_LINE_EVENTS);
    free(line);
}

static void
says_what_was_told_last_and_at_most(void **state)
{
    (void)state;
    struct cm_event_line *line = begin();
    struct cm_event event = event_of(CM_EVENT_ALLOCATE, 0);
    assert_true(write_one(line, event));
    assert_false(atomic_load(&line->tells_totals));
    for (uint64_t allocated = 1; allocated < 6; allocated++) {
        event.allocated = allocated % 4 * 512;
        event.reserved = 4096;
        assert_true(write_one(line, event));
    }
    assert_true(atomic_load(&line->tells_totals));
    assert_int_equal(atomic_load(&line->allocated), 512);
    assert_int_equal(atomic_load(&line->reserved), 4096);
    assert_int_equal(atomic_load(&line->peak), 3 * 512);
    assert_int_equal(atomic_load(&line->bytes), 6 * 512);
    free(line);
}

/* The event before at its address is the free of a pair. */
static void
check_that_it_follows_one(const struct cm_event_line *line, uint32_t first,
                          uint32_t i, const uint8_t *known)
{
    uint64_t address = cm_event_line_at(line, first + i)->address;
    do {
        assert_int_not_equal(i--, 0);
    } while (cm_event_line_at(line, first + i)->address != address);
    assert_int_equal(known[i], CM_EVENT_OF_PAIR);
    assert_int_equal(cm_event_line_at(line, first + i)->kind, CM_EVENT_FREE);
}

/* Each that goes is an allocation and the next event of its address. */
static void
check_pairs(const struct cm_event_line *line, uint32_t first, uint32_t count,
            const uint8_t *known, uint32_t pairs)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct cm_waiting *made = cm_event_line_at(line, first + i);
        if (made->kind != CM_EVENT_ALLOCATE) {
            continue;
        }
        if (known[i] & CM_EVENT_AGAIN) {
            check_that_it_follows_one(line, first, i, known);
        }
        if (!(known[i] & CM_EVENT_GONE)) {
            continue;
        }
        uint32_t next = i + 1;
        while (next < count
               && cm_event_line_at(line, first + next)->address
                      != made->address) {
            next++;
        }
        assert_true(next < count && known[next] == CM_EVENT_OF_PAIR);
        assert_int_equal(cm_event_line_at(line, first + next)->kind,
                         CM_EVENT_FREE);
        found++;
    }
    assert_int_equal(found, pairs);
    for (uint32_t i = 0; i < count; i++) {
        found -= known[i] != 0
                 && cm_event_line_at(line, first + i)->kind == CM_EVENT_FREE;
    }
    assert_int_equal(found, 0);
}

static void
finds_blocks_that_come_and_go(void **state)
{
    (void)state;
    struct cm_event_line *line = begin();
    bool live[1000] = {false};
    uint8_t known[CM_LINE_EVENTS];
    uint64_t pairs = 0;
    unsigned seed = 1;
    for (uint32_t turn = 0; turn < 2000; turn++) {
        uint32_t first = atomic_load(&line->written);
        uint32_t count = (uint32_t)rand_r(&seed) % (CM_LINE_EVENTS + 1);
        uint32_t places = 1 + (uint32_t)rand_r(&seed) % 1000;
        for (uint32_t i = 0; i < count; i++) {
            size_t at = (size_t)rand_r(&seed) % places;
            live[at] = !live[at];
            assert_true(write_one(
                line,
                event_of(live[at] ? CM_EVENT_ALLOCATE : CM_EVENT_FREE, at)));
        }
        uint32_t found = cm_event_line_pairs(line, first, count, known);
        check_pairs(line, first, count, known, found);
        pairs += found;
        atomic_store(&line->taken, first + count);
    }
    assert_true(pairs > 10000);
    free(line);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_the_tables_want),
        cmocka_unit_test(refuses_what_it_has_no_room_for),
        cmocka_unit_test(says_what_was_told_last_and_at_most),
        cmocka_unit_test(finds_blocks_that_come_and_go),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
