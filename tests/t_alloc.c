/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../detector/alloc.h"

static void
counts_live_blocks(void **state)
{
    (void)state;
    long before = cm_alloc_live();
    char *a = cm_alloc(0);
    char *b = cm_calloc(3, 5);
    char *c = cm_realloc(NULL, 7);
    char *d = cm_strdup("seven");
    assert_non_null(a);
    assert_int_equal(b[14], 0);
    assert_string_equal(d, "seven");
    assert_int_equal(cm_alloc_live(), before + 4);
    c = cm_realloc(c, 4096);
    assert_non_null(c);
    assert_int_equal(cm_alloc_live(), before + 4);
    cm_free(a);
    cm_free(b);
    cm_free(c);
    cm_free(d);
    cm_free(NULL);
    assert_int_equal(cm_alloc_live(), before);
}

static void
copies_no_text_to_none(void **state)
{
    (void)state;
    assert_null(cm_strdup(NULL));
}

static void
refuses_a_count_that_overflows(void **state)
{
    (void)state;
    long before = cm_alloc_live();
    assert_null(cm_calloc(SIZE_MAX / 2, 3));
    assert_int_equal(cm_alloc_live(), before);
}

/* Which of five allocations fail, as a string of 'x' and '.'. */
static const char *
pattern(long nth, bool from_then_on)
{
    static char seen[6];
    cm_alloc_fail_at(nth, from_then_on);
    for (int attempt = 0; attempt < 5; attempt++) {
        void *block = cm_alloc(1);
        seen[attempt] = block == NULL ? 'x' : '.';
        cm_free(block);
    }
    cm_alloc_fail_at(-1, false);
    return seen;
}

static void
fails_where_it_is_told(void **state)
{
    (void)state;
    assert_string_equal(pattern(-1, false), ".....");
    assert_string_equal(pattern(0, false), "x....");
    assert_string_equal(pattern(2, false), "..x..");
    assert_string_equal(pattern(2, true), "..xxx");
    assert_string_equal(pattern(5, true), ".....");
}

static void
fails_every_kind_of_call(void **state)
{
    (void)state;
    char *kept = cm_alloc(4);
    cm_alloc_fail_at(0, true);
    assert_null(cm_alloc(1));
    assert_null(cm_calloc(1, 1));
    assert_null(cm_realloc(kept, 8));
    assert_null(cm_strdup("x"));
    cm_alloc_fail_at(-1, false);
    kept[3] = 'k'; /* a failed realloc leaves the block */
    cm_free(kept);
}

static void
grows_and_keeps_the_items(void **state)
{
    (void)state;
    int *items = NULL;
    size_t capacity = 0;
    for (int at = 0; at < 1000; at++) {
        assert_int_equal(cm_grow((void **)&items, &capacity, (size_t)at + 1,
                                 sizeof(*items)),
                         CM_OK);
        assert_true(capacity > (size_t)at);
        items[at] = at;
    }
    assert_int_equal(capacity, 1024);
    for (int at = 0; at < 1000; at++) {
        assert_int_equal(items[at], at);
    }
    cm_free(items);
}

static void
growing_in_vain_changes_nothing(void **state)
{
    (void)state;
    int *items = NULL;
    size_t capacity = 0;
    assert_int_equal(cm_grow((void **)&items, &capacity, 8, sizeof(*items)),
                     CM_OK);
    items[7] = 7;
    int *before = items;
    cm_alloc_fail_at(0, false);
    assert_int_equal(cm_grow((void **)&items, &capacity, 9, sizeof(*items)),
                     CM_NO_MEMORY);
    cm_alloc_fail_at(-1, false);
    assert_int_equal(
        cm_grow((void **)&items, &capacity, SIZE_MAX / 2, sizeof(*items)),
        CM_NO_MEMORY);
    assert_int_equal(
        cm_grow((void **)&items, &capacity, SIZE_MAX, sizeof(*items)),
        CM_NO_MEMORY);
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, 8);
    assert_int_equal(items[7], 7);
    cm_free(items);
}

static void
every_status_has_its_words(void **state)
{
    (void)state;
    const enum cm_status all[] = {CM_OK,        CM_NO_MEMORY, CM_LIMIT,
                                  CM_BAD_INPUT, CM_IO,        CM_UNSUPPORTED,
                                  CM_MISUSE};
    const char *unknown = cm_status_text((enum cm_status)77);
    for (size_t at = 0; at < sizeof(all) / sizeof(all[0]); at++) {
        assert_string_not_equal(cm_status_text(all[at]), unknown);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_live_blocks),
        cmocka_unit_test(copies_no_text_to_none),
        cmocka_unit_test(refuses_a_count_that_overflows),
        cmocka_unit_test(fails_where_it_is_told),
        cmocka_unit_test(fails_every_kind_of_call),
        cmocka_unit_test(grows_and_keeps_the_items),
        cmocka_unit_test(growing_in_vain_changes_nothing),
        cmocka_unit_test(every_status_has_its_words),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
