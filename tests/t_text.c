/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../detector/text.h"
#include "fail_each.h"

enum { ENOUGH = 64 << 20, MANY = 20000, THREADS = 4 };

static void
stores_equal_text_once(void **state)
{
    (void)state;
    struct cm_texts *texts = cm_texts_new(ENOUGH);
    struct cm_text_id self = cm_texts_intern(texts, "self");
    struct cm_text_id other = cm_texts_intern(texts, "other");
    assert_int_not_equal(self.index, 0);
    assert_false(cm_text_same(self, other));
    assert_true(cm_text_same(self, cm_texts_intern(texts, "self")));
    assert_string_equal(cm_texts_get(texts, self), "self");
    assert_string_equal(cm_texts_get(texts, other), "other");
    cm_texts_free(texts);
}

static void
reads_none_and_unknown_as_empty(void **state)
{
    (void)state;
    struct cm_texts *texts = cm_texts_new(ENOUGH);
    assert_string_equal(cm_texts_get(texts, (struct cm_text_id){0}), "");
    assert_string_equal(cm_texts_get(texts, (struct cm_text_id){9}), "");
    assert_int_equal(cm_texts_intern(texts, "").index, 0);
    assert_int_equal(cm_texts_intern(texts, NULL).index, 0);
    cm_texts_free(texts);
}

static void
tells_bytes_apart_by_length_too(void **state)
{
    (void)state;
    struct cm_texts *texts = cm_texts_new(ENOUGH);
    struct cm_text_id short_one, long_one;
    assert_int_equal(cm_texts_add(texts, "ab\0c", 2, &short_one), CM_OK);
    assert_int_equal(cm_texts_add(texts, "ab\0c", 4, &long_one), CM_OK);
    assert_false(cm_text_same(short_one, long_one));
    assert_memory_equal(cm_texts_get(texts, long_one), "ab\0c", 5);
    cm_texts_free(texts);
}

static void
never_moves_a_text(void **state)
{
    (void)state;
    struct cm_texts *texts = cm_texts_new(ENOUGH);
    const char *first =
        cm_texts_get(texts, cm_texts_intern(texts, "the first"));
    char name[32];
    for (int at = 0; at < MANY; at++) {
        snprintf(name, sizeof(name), "name %d", at);
        struct cm_text_id id = cm_texts_intern(texts, name);
        assert_int_equal(id.index, at + 2);
    }
    struct cm_text_id again = cm_texts_intern(texts, "the first");
    assert_ptr_equal(cm_texts_get(texts, again), first);
    assert_string_equal(cm_texts_get(texts, (struct cm_text_id){MANY + 1}),
                        name);
    cm_texts_free(texts);
}

static void
takes_a_long_text(void **state)
{
    (void)state;
    struct cm_texts *texts = cm_texts_new(ENOUGH);
    size_t length = 1 << 20;
    char *text = cm_alloc(length);
    memset(text, 'x', length);
    struct cm_text_id small = cm_texts_intern(texts, "small"), large;
    assert_int_equal(cm_texts_add(texts, text, length, &large), CM_OK);
    assert_int_equal(strlen(cm_texts_get(texts, large)), length);
    assert_string_equal(cm_texts_get(texts, small), "small");
    cm_free(text);
    cm_texts_free(texts);
}

static void
stops_at_its_bound(void **state)
{
    (void)state;
    const size_t bound = 100000;
    struct cm_texts *texts = cm_texts_new(bound);
    char name[32];
    struct cm_text_id id = {0};
    enum cm_status status = CM_OK;
    int count = 0;
    while (status == CM_OK && count < MANY) {
        snprintf(name, sizeof(name), "name %d", count++);
        status = cm_texts_add(texts, name, strlen(name), &id);
    }
    assert_int_equal(status, CM_LIMIT);
    assert_true(count > 100);
    /* One block and one doubling may end beyond the bound, not more. */
    assert_true(cm_texts_bytes(texts) < 2 * bound);
    assert_string_not_equal(cm_texts_get(texts, id), name);
    struct cm_text_id known = cm_texts_intern(texts, "name 0");
    assert_string_equal(cm_texts_get(texts, known), "name 0");
    assert_int_equal(cm_texts_intern(texts, "something new").index, 0);
    assert_int_equal(cm_texts_add(texts, name, SIZE_MAX, &id), CM_LIMIT);
    cm_texts_free(texts);
}

static enum cm_status
fill(void *context)
{
    (void)context;
    struct cm_texts *texts = cm_texts_new(ENOUGH);
    if (texts == NULL) {
        return CM_NO_MEMORY;
    }
    enum cm_status status = CM_OK;
    char name[32];
    for (int at = 0; at < 300; at++) {
        snprintf(name, sizeof(name), "name %d", at);
        struct cm_text_id id = {77};
        enum cm_status now = cm_texts_add(texts, name, strlen(name), &id);
        if (now != CM_OK) {
            assert_int_equal(id.index, 77);
            status = now;
        }
        else {
            assert_string_equal(cm_texts_get(texts, id), name);
        }
    }
    cm_texts_free(texts);
    return status;
}

static void
survives_each_failed_allocation(void **state)
{
    (void)state;
    cm_fail_each(fill, NULL);
}

/* Adds the same texts as its siblings and reads each back at once. */
static void *
add_and_read(void *context)
{
    struct cm_texts *texts = context;
    char name[32];
    for (int at = 0; at < MANY; at++) {
        snprintf(name, sizeof(name), "name %d", at);
        struct cm_text_id id = cm_texts_intern(texts, name);
        if (strcmp(cm_texts_get(texts, id), name) != 0) {
            return texts;
        }
    }
    return NULL;
}

static void
serves_threads_at_once(void **state)
{
    (void)state;
    struct cm_texts *texts = cm_texts_new(ENOUGH);
    pthread_t threads[THREADS];
    for (int at = 0; at < THREADS; at++) {
        assert_int_equal(
            pthread_create(&threads[at], NULL, add_and_read, texts), 0);
    }
    for (int at = 0; at < THREADS; at++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[at], &wrong), 0);
        assert_null(wrong);
    }
    assert_string_equal(cm_texts_get(texts, (struct cm_text_id){MANY + 1}),
                        "");
    cm_texts_free(texts);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_equal_text_once),
        cmocka_unit_test(reads_none_and_unknown_as_empty),
        cmocka_unit_test(tells_bytes_apart_by_length_too),
        cmocka_unit_test(never_moves_a_text),
        cmocka_unit_test(takes_a_long_text),
        cmocka_unit_test(stops_at_its_bound),
        cmocka_unit_test(survives_each_failed_allocation),
        cmocka_unit_test(serves_threads_at_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
