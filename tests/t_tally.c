/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A listener that comes late, and what happens while it is told the past; the
 * calls themselves are tested in t_driver.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fail_each.h"

#include "../allocator_hooks/tally.h"

enum { MAX_EVENTS = 400000 };

static struct {
    uint64_t address;
    uint8_t kind;
} events[MAX_EVENTS];
static int count;
static void (*meanwhile)(void); /* run once, inside the sink */

static void
take(void *context, const struct cm_event *event)
{
    void (*now)(void) = meanwhile;
    assert_null(context);
    assert_true(count < MAX_EVENTS);
    events[count].address = event->address;
    events[count++].kind = event->kind;
    meanwhile = NULL;
    if (now != NULL) {
        now();
    }
}

static const struct cm_sink sink = {.event = take};

static void
call(enum cm_driver_action action, uint64_t key)
{
    struct cm_driver_call made = {.key = key, .bytes = 512};
    cm_tally_call(action, &made, 1);
}

static void
open_tally(void)
{
    count = 0;
    meanwhile = NULL;
    assert_int_equal(cm_tally_open(), CM_OK);
}

static int
index_of(enum cm_event_kind kind, uint64_t address)
{
    int result = -1;
    for (int at = 0; at < count; at++) {
        if (events[at].kind == kind && events[at].address == address) {
            assert_int_equal(result, -1); /* told once */
            result = at;
        }
    }
    return result;
}

static void
tells_what_is_allocated(void **state)
{
    (void)state;
    open_tally();
    for (uint64_t key = 1; key <= 100; key++) {
        call(CM_DRIVER_ALLOCATE, key << 9);
    }
    for (uint64_t key = 1; key <= 100; key += 2) {
        call(CM_DRIVER_FREE, key << 9);
    }
    struct cm_driver_call mapping = {
        .key = 2 << 9, .address = 1 << 12, .bytes = 512};
    cm_tally_call(CM_DRIVER_MAP, &mapping, 1);
    assert_int_equal(count, 0);
    assert_int_equal(cm_tally_listen(&sink), CM_OK);
    assert_int_equal(count, 50);
    for (uint64_t key = 2; key <= 100; key += 2) {
        assert_true(index_of(CM_EVENT_ALLOCATE, key << 9) >= 0);
    }
    cm_tally_close();
    call(CM_DRIVER_ALLOCATE, 1);
    call(CM_DRIVER_FREE, 1);
    cm_tally_call(CM_DRIVER_MAP, &mapping, 1);
    assert_int_equal(count, 50);
    open_tally();
    assert_int_equal(cm_tally_listen(&sink), CM_OK);
    assert_int_equal(count, 0);
    cm_tally_close();
}

/* As another thread would, while the first event of the past is told. */
static void
free_and_allocate(void)
{
    for (uint64_t key = 1; key <= 3; key++) {
        call(CM_DRIVER_FREE, key);
    }
    call(CM_DRIVER_ALLOCATE, 9);
    assert_int_equal(count, 1);
}

static void
what_happens_meanwhile_waits(void **state)
{
    (void)state;
    open_tally();
    for (uint64_t key = 1; key <= 3; key++) {
        call(CM_DRIVER_ALLOCATE, key);
    }
    meanwhile = free_and_allocate;
    assert_int_equal(cm_tally_listen(&sink), CM_OK);
    assert_int_equal(count, 7);
    for (uint64_t key = 1; key <= 3; key++) {
        int allocated = index_of(CM_EVENT_ALLOCATE, key);
        assert_true(allocated >= 0);
        assert_true(allocated < index_of(CM_EVENT_FREE, key));
    }
    assert_int_equal(index_of(CM_EVENT_ALLOCATE, 9), 6);
    call(CM_DRIVER_FREE, 9); /* at once from now on */
    assert_int_equal(count, 8);
    cm_tally_close();
    assert_int_equal(cm_tally_lost(), 0);
}

static void
allocate_and_free_very_often(void)
{
    for (uint64_t key = 1; key <= 70000; key++) {
        call(CM_DRIVER_ALLOCATE, key + 9);
        call(CM_DRIVER_FREE, key + 9);
    }
}

static void
the_queue_is_bounded(void **state)
{
    (void)state;
    uint64_t lost = cm_tally_lost();
    open_tally();
    call(CM_DRIVER_ALLOCATE, 1);
    meanwhile = allocate_and_free_very_often;
    assert_int_equal(cm_tally_listen(&sink), CM_OK);
    assert_int_equal(count, 1 + 65536);
    assert_int_equal(cm_tally_lost() - lost, 140000 - 65536);
    cm_tally_close();
}

static void
bears_calls_that_make_no_sense(void **state)
{
    (void)state;
    struct cm_driver_call far = {.key = 1, .bytes = 1, .device = 64};
    struct cm_driver_call none = {.key = 1, .bytes = 1, .device = -1};
    struct cm_driver_call wide = {.address = UINT64_MAX - 3,
                                  .bytes = UINT64_MAX};
    uint64_t lost = cm_tally_lost();
    open_tally();
    assert_int_equal(cm_tally_listen(&sink), CM_OK);
    cm_tally_call(CM_DRIVER_ALLOCATE, &far, 0);
    cm_tally_call(CM_DRIVER_ALLOCATE, &none, 0);
    assert_int_equal(cm_tally_lost() - lost, 2);
    cm_tally_call(CM_DRIVER_MAP, &wide, 0);
    cm_tally_call(CM_DRIVER_UNMAP, &wide, 0);
    cm_tally_call(CM_DRIVER_UNMAP, &wide, 0);
    call(CM_DRIVER_RETAIN, 3);
    call(CM_DRIVER_RELEASE, 3);
    cm_tally_call(CM_DRIVER_CONTEXT_GONE, &wide, 0);
    cm_tally_call(CM_DRIVER_DEVICE_GONE, &none, 0);
    assert_int_equal(count, 0);
    cm_tally_close();
}

static enum cm_status
attempt(void *context)
{
    (void)context;
    uint64_t lost = cm_tally_lost();
    open_tally();
    for (uint64_t key = 1; key <= 100; key++) {
        call(CM_DRIVER_ALLOCATE, key << 9);
    }
    meanwhile = NULL;
    enum cm_status status = cm_tally_listen(&sink);
    assert_true(status == CM_OK || count == 0);
    cm_tally_close();
    return status == CM_OK && cm_tally_lost() > lost ? CM_NO_MEMORY : status;
}

static void
free_all(void)
{
    for (uint64_t key = 1; key <= 100; key++) {
        call(CM_DRIVER_FREE, key);
    }
}

/* The queue's own allocations. */
static enum cm_status
attempt_while_telling(void *context)
{
    uint64_t lost = cm_tally_lost();
    (void)context;
    open_tally();
    call(CM_DRIVER_ALLOCATE, 1);
    meanwhile = free_all;
    enum cm_status status = cm_tally_listen(&sink);
    cm_tally_close();
    return status == CM_OK && cm_tally_lost() > lost ? CM_NO_MEMORY : status;
}

static void
each_allocation_fails(void **state)
{
    (void)state;
    cm_fail_each(attempt, NULL);
    cm_fail_each(attempt_while_telling, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_what_is_allocated),
        cmocka_unit_test(what_happens_meanwhile_waits),
        cmocka_unit_test(the_queue_is_bounded),
        cmocka_unit_test(bears_calls_that_make_no_sense),
        cmocka_unit_test(each_allocation_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
