/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../detector/records.h"
#include "fail_each.h"

enum { ENOUGH = 64 << 20, MANY = 5000, THREADS = 4 };

static struct cm_code
code_of(struct cm_records *records, const char *name)
{
    struct cm_texts *texts = cm_records_texts(records);
    return (struct cm_code){
        .filename = cm_texts_intern(texts, "train.py"),
        .name = cm_texts_intern(texts, name),
        .qualified_name = cm_texts_intern(texts, "Trainer.step"),
        .first_line = 7,
    };
}

static void
finds_equal_code_again(void **state)
{
    (void)state;
    struct cm_records *records = cm_records_new(ENOUGH);
    struct cm_store stores[] = {
        {.kind = CM_STORE_ATTRIBUTE, .line = 8},
        {.kind = CM_STORE_CALL, .line = 9},
    };
    struct cm_code code = code_of(records, "step");
    code.stores = stores;
    code.store_count = 2;
    struct cm_code_id first, second;
    assert_int_equal(cm_records_add_code(records, &code, &first), CM_OK);
    struct cm_store equal[2];
    memcpy(equal, stores, sizeof(stores));
    code.stores = equal;
    assert_int_equal(cm_records_add_code(records, &code, &second), CM_OK);
    assert_int_equal(first.index, second.index);
    stores[1].line = 99; /* a copy was stored */
    const struct cm_code *stored = cm_records_code(records, first);
    assert_int_equal(stored->stores[1].line, 9);
    assert_int_equal(stored->stores[1].kind, CM_STORE_CALL);
    assert_string_equal(cm_records_text(records, stored->name), "step");
    cm_records_free(records);
}

/* A cell that is run again has other text under its name. */
static void
finds_the_last_source_of_a_name(void **state)
{
    (void)state;
    struct cm_records *records = cm_records_new(ENOUGH);
    struct cm_texts *texts = cm_records_texts(records);
    char text[] = "x = 1\n";
    struct cm_source cell = {.filename = cm_texts_intern(texts, "<cell 1>"),
                             .length = 6,
                             .bytes = text};
    assert_null(cm_records_source(records, cell.filename));
    assert_int_equal(cm_records_add_source(records, &cell), CM_OK);
    text[4] = '2'; /* a copy was stored */
    assert_memory_equal(cm_records_source(records, cell.filename)->bytes,
                        "x = 1\n", 6);
    assert_int_equal(cm_records_add_source(records, &cell), CM_OK);
    assert_memory_equal(cm_records_source(records, cell.filename)->bytes,
                        "x = 2\n", 6);
    assert_null(
        cm_records_source(records, cm_texts_intern(texts, "<cell 2>")));
    cell.length = CM_RECORDS_MAX_SOURCE + 1;
    assert_int_equal(cm_records_add_source(records, &cell), CM_LIMIT);
    assert_int_equal(cm_records_code_count(records), 0);
    cm_records_free(records);
}

/* Adds `code` and expects an id that none before it had. */
static void
expect_new(struct cm_records *records, const struct cm_code *code,
           uint32_t number)
{
    struct cm_code_id id;
    assert_int_equal(cm_records_add_code(records, code, &id), CM_OK);
    assert_int_equal(id.index, number);
}

static void
tells_every_field_of_code_apart(void **state)
{
    (void)state;
    struct cm_records *records = cm_records_new(ENOUGH);
    struct cm_texts *texts = cm_records_texts(records);
    struct cm_text_id other = cm_texts_intern(texts, "other");
    struct cm_store store = {.kind = CM_STORE_LOCAL, .line = 1};
    struct cm_code code = code_of(records, "f");
    expect_new(records, &code, 1);
    code.filename = other;
    expect_new(records, &code, 2);
    code.name = other;
    expect_new(records, &code, 3);
    code.qualified_name = other;
    expect_new(records, &code, 4);
    code.first_line = 8;
    expect_new(records, &code, 5);
    code.library = true;
    expect_new(records, &code, 6);
    code.stores = &store;
    code.store_count = 1;
    expect_new(records, &code, 7);
    store.owner = other;
    expect_new(records, &code, 8);
    store.constant = 1;
    expect_new(records, &code, 9);
    cm_records_free(records);
}

static void
keeps_types_with_their_methods(void **state)
{
    (void)state;
    struct cm_records *records = cm_records_new(ENOUGH);
    struct cm_texts *texts = cm_records_texts(records);
    struct cm_code_id methods[] = {{4}, {5}};
    struct cm_type type = {.name = cm_texts_intern(texts, "Trainer"),
                           .module = cm_texts_intern(texts, "__main__"),
                           .methods = methods,
                           .method_count = 2};
    struct cm_type_id id, equal, bare, library;
    assert_int_equal(cm_records_add_type(records, &type, &id), CM_OK);
    assert_int_equal(cm_records_add_type(records, &type, &equal), CM_OK);
    type.library = true;
    assert_int_equal(cm_records_add_type(records, &type, &library), CM_OK);
    type.method_count = 0;
    assert_int_equal(cm_records_add_type(records, &type, &bare), CM_OK);
    assert_int_equal(id.index, equal.index);
    assert_int_not_equal(id.index, library.index);
    assert_int_not_equal(library.index, bare.index);
    assert_int_equal(cm_records_type(records, id)->methods[1].index, 5);
    assert_int_equal(cm_records_type(records, bare)->method_count, 0);
    cm_records_free(records);
}

static void
keeps_stacks_in_order(void **state)
{
    (void)state;
    struct cm_records *records = cm_records_new(ENOUGH);
    struct cm_frame frames[] = {{{1}, 10}, {{2}, 20}, {{3}, 30}};
    struct cm_site site = {.frames = frames, .frame_count = 3};
    struct cm_site_id whole, shorter, cut;
    assert_int_equal(cm_records_add_site(records, &site, &whole), CM_OK);
    site.frame_count = 2;
    assert_int_equal(cm_records_add_site(records, &site, &shorter), CM_OK);
    site.cut = true;
    assert_int_equal(cm_records_add_site(records, &site, &cut), CM_OK);
    assert_int_not_equal(whole.index, shorter.index);
    assert_int_not_equal(shorter.index, cut.index);
    const struct cm_site *stored = cm_records_site(records, whole);
    assert_int_equal(stored->frame_count, 3);
    assert_int_equal(stored->frames[0].line, 10);
    assert_int_equal(stored->frames[2].code.index, 3);
    assert_true(cm_records_site(records, cut)->cut);
    cm_records_free(records);
}

static void
answers_empty_records_for_unknown_ids(void **state)
{
    (void)state;
    struct cm_records *records = cm_records_new(ENOUGH);
    for (uint32_t index = 0; index < 2; index++) {
        const struct cm_code *code =
            cm_records_code(records, (struct cm_code_id){index});
        assert_int_equal(code->store_count, 0);
        assert_string_equal(cm_records_text(records, code->name), "");
        assert_int_equal(
            cm_records_type(records, (struct cm_type_id){index})->method_count,
            0);
        assert_int_equal(
            cm_records_site(records, (struct cm_site_id){index})->frame_count,
            0);
    }
    cm_records_free(records);
    cm_records_free(NULL);
}

static void
never_moves_a_record(void **state)
{
    (void)state;
    struct cm_records *records = cm_records_new(ENOUGH);
    struct cm_frame frame = {{1}, 0};
    struct cm_site site = {.frames = &frame, .frame_count = 1};
    struct cm_site_id first, id;
    assert_int_equal(cm_records_add_site(records, &site, &first), CM_OK);
    const struct cm_site *before = cm_records_site(records, first);
    for (frame.line = 1; frame.line < MANY; frame.line++) {
        assert_int_equal(cm_records_add_site(records, &site, &id), CM_OK);
        assert_int_equal(id.index, frame.line + 1);
    }
    assert_ptr_equal(cm_records_site(records, first), before);
    assert_int_equal(before->frames[0].line, 0);
    assert_int_equal(cm_records_site(records, id)->frames[0].line, MANY - 1);
    cm_records_free(records);
}

static void
stops_at_its_bound(void **state)
{
    (void)state;
    struct cm_records *records = cm_records_new(100000);
    struct cm_frame frame = {{1}, 0};
    struct cm_site site = {.frames = &frame, .frame_count = 1};
    struct cm_site_id id = {0};
    enum cm_status status = CM_OK;
    while (status == CM_OK && frame.line < MANY) {
        frame.line++;
        status = cm_records_add_site(records, &site, &id);
    }
    assert_int_equal(status, CM_LIMIT);
    assert_true(id.index > 100);
    assert_int_equal(id.index, frame.line - 1); /* untouched by the failure */
    frame.line = 1;
    assert_int_equal(cm_records_add_site(records, &site, &id), CM_OK);
    assert_int_equal(id.index, 1);
    cm_records_free(records);
}

static enum cm_status
fill(void *context)
{
    (void)context;
    struct cm_records *records = cm_records_new(ENOUGH);
    if (records == NULL) {
        return CM_NO_MEMORY;
    }
    enum cm_status status = CM_OK;
    struct cm_frame frame = {{1}, 0};
    struct cm_site site = {.frames = &frame, .frame_count = 1};
    struct cm_code code = {.first_line = 1};
    struct cm_type type = {.library = true};
    struct cm_code_id code_id;
    struct cm_type_id type_id;
    struct cm_site_id site_id = {77};
    if (cm_records_add_code(records, &code, &code_id) != CM_OK
        || cm_records_add_type(records, &type, &type_id) != CM_OK) {
        status = CM_NO_MEMORY;
    }
    for (frame.line = 1; frame.line < 300; frame.line++) {
        enum cm_status now = cm_records_add_site(records, &site, &site_id);
        if (now != CM_OK) {
            status = now;
            continue;
        }
        assert_int_equal(cm_records_site(records, site_id)->frames[0].line,
                         frame.line);
    }
    cm_records_free(records);
    return status;
}

static void
survives_each_failed_allocation(void **state)
{
    (void)state;
    cm_fail_each(fill, NULL);
}

/* Every thread adds the same records, and reads each without the lock. */
static void *
add_and_read(void *context)
{
    struct cm_records *records = context;
    char name[32];
    for (int at = 0; at < MANY; at++) {
        snprintf(name, sizeof(name), "function %d", at);
        struct cm_code code = code_of(records, name);
        struct cm_code_id id;
        if (cm_records_add_code(records, &code, &id) != CM_OK) {
            return records;
        }
        struct cm_frame frame = {id, 1};
        struct cm_site site = {.frames = &frame, .frame_count = 1};
        struct cm_site_id number;
        if (cm_records_add_site(records, &site, &number) != CM_OK) {
            return records;
        }
        id = cm_records_site(records, number)->frames[0].code;
        if (strcmp(
                cm_records_text(records, cm_records_code(records, id)->name),
                name)
            != 0) {
            return records;
        }
    }
    return NULL;
}

static void
serves_threads_at_once(void **state)
{
    (void)state;
    struct cm_records *records = cm_records_new(ENOUGH);
    pthread_t threads[THREADS];
    for (int at = 0; at < THREADS; at++) {
        assert_int_equal(
            pthread_create(&threads[at], NULL, add_and_read, records), 0);
    }
    for (int at = 0; at < THREADS; at++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[at], &wrong), 0);
        assert_null(wrong);
    }
    struct cm_code code = code_of(records, "one more");
    expect_new(records, &code, MANY + 1);
    cm_records_free(records);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_equal_code_again),
        cmocka_unit_test(finds_the_last_source_of_a_name),
        cmocka_unit_test(tells_every_field_of_code_apart),
        cmocka_unit_test(keeps_types_with_their_methods),
        cmocka_unit_test(keeps_stacks_in_order),
        cmocka_unit_test(answers_empty_records_for_unknown_ids),
        cmocka_unit_test(never_moves_a_record),
        cmocka_unit_test(stops_at_its_bound),
        cmocka_unit_test(survives_each_failed_allocation),
        cmocka_unit_test(serves_threads_at_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
