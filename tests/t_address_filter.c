/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "../detector/address_filter.h"
#include "../detector/blocks.h"
#include "../detector/device_blocks.h"

enum { LIVE = 500, ROUNDS = 20 };

static uint64_t
address_of(uint64_t number)
{
    return UINT64_C(0x7F0000000000) + 64 * number;
}

static void
has_what_was_added_and_little_else(void **state)
{
    (void)state;
    static struct cm_address_filter filter;
    uint32_t wrong = 0;
    for (uint64_t i = 0; i < LIVE; i++) {
        assert_false(cm_address_filter_has(&filter, address_of(1000000 + i)));
        cm_address_filter_add(&filter, address_of(i));
    }
    for (uint64_t i = 0; i < LIVE; i++) {
        assert_true(cm_address_filter_has(&filter, address_of(i)));
        wrong += cm_address_filter_has(&filter, address_of(LIVE + i));
    }
    assert_true(wrong < LIVE / 20);
}

static void
is_renewed_by_what_lives(void **state)
{
    (void)state;
    static struct cm_address_filter filter, fresh;
    for (uint64_t i = 0; i < CM_FILTER_ADDED; i++) {
        assert_false(cm_address_filter_is_old(&filter));
        cm_address_filter_add(&filter, address_of(i));
    }
    assert_true(cm_address_filter_is_old(&filter));
    cm_address_filter_add(&fresh, address_of(7));
    cm_address_filter_renew(&filter, &fresh);
    assert_false(cm_address_filter_is_old(&filter));
    assert_true(cm_address_filter_has(&filter, address_of(7)));
    assert_false(cm_address_filter_has(&filter, address_of(8)));
}

/* As the hook of the host does. */
static void
tell(struct cm_blocks *blocks, enum cm_event_kind kind, uint64_t number)
{
    struct cm_event event = {.kind = (uint8_t)kind,
                             .address = address_of(number),
                             .bytes = 4096,
                             .device = CM_DEVICE_HOST,
                             .doubtful = kind == CM_EVENT_FREE};
    struct cm_device_blocks *host = cm_blocks_device(blocks, CM_DEVICE_HOST);
    if (kind != CM_EVENT_FREE
        || cm_address_filter_has(&host->filter, event.address)) {
        cm_device_blocks_hear(host, &event);
    }
}

/* Each round frees some of the last one's blocks, and many that nobody told
 * of; in between the filter grows old and is renewed. */
static void
loses_no_free_of_the_host(void **state)
{
    (void)state;
    struct cm_blocks *blocks = cm_blocks_new(1 << 20);
    uint64_t next = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t first = next;
        for (; next < first + CM_FILTER_ADDED / 4; next++) {
            tell(blocks, CM_EVENT_ALLOCATE, next);
            tell(blocks, CM_EVENT_FREE, 50000000 + next);
        }
        for (uint64_t i = first + LIVE; i < next; i++) {
            tell(blocks, CM_EVENT_FREE, i);
        }
    }
    struct cm_block_use use;
    cm_blocks_use(blocks, CM_DEVICE_HOST, &use);
    assert_int_equal(use.live_count, ROUNDS * LIVE);
    for (uint64_t i = 0; i < next; i++) {
        struct cm_block block;
        bool lives = i % (CM_FILTER_ADDED / 4) < LIVE;
        assert_int_equal(cm_blocks_at(blocks, address_of(i), &block), lives);
        tell(blocks, CM_EVENT_FREE, i);
    }
    cm_blocks_use(blocks, CM_DEVICE_HOST, &use);
    assert_int_equal(use.live_count, 0);
    cm_blocks_free(blocks);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_what_was_added_and_little_else),
        cmocka_unit_test(is_renewed_by_what_lives),
        cmocka_unit_test(loses_no_free_of_the_host),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
