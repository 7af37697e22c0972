/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Names cut out of labels and qualified names. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "heap_builder.h"
#include "fail_each.h"
#include "../graph/name.h"

static struct cm_text_id
text(struct cm_records *records, const char *bytes)
{
    return cm_texts_intern(cm_records_texts(records), bytes);
}

static void
test_labels(void **state)
{
    static const char *const cases[][2] = {
        {".cb", "cb"},     {"['cb']", "cb"},
        {"local x", "x"},  {"cell self", "self"},
        {"global x", "x"}, {"__self__", "__self__"},
        {"[0]", "[0]"},    {"['']", "['']"},
        {"", ""},          {".", ""},
    };
    struct cm_records *records = cm_records_new(1 << 16);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cm_name name =
            cm_name_of_label(records, text(records, cases[i][0]));

        assert_string_equal(name.text, cases[i][1]);
    }
    cm_records_free(records);
}

static void
test_objects(void **state)
{
    static const char *const cases[][2] = {
        {"class Node", "Node"},
        {"class run.<locals>.Node", "Node"},
        {"<class 'a.b.Node'>", "Node"},
        {"method flush", "flush"},
        {"Node", "Node"},
        {"", ""},
        {"class .", ""},
    };
    struct cm_records *records = cm_records_new(1 << 16);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cm_node node = {.label = text(records, cases[i][0])};

        assert_string_equal(cm_name_of_object(records, &node).text,
                            cases[i][1]);
    }
    cm_records_free(records);
}

static void
test_types_and_code(void **state)
{
    struct built *built = built_new("code f a.py:1 Net.run.<locals>.<lambda>;"
                                    "a pkg.mod.run.<locals>.Node code=f");
    const struct cm_node *node = &built->heap.nodes[1];

    (void)state;
    assert_string_equal(cm_name_of_type(built->records, node->type).text,
                        "Node");
    assert_string_equal(cm_name_of_code(built->records, node->code).text,
                        "<lambda>");
    /* Id 0: a word that a sentence can use, and nothing. */
    assert_string_equal(
        cm_name_of_type(built->records, (struct cm_type_id){0}).text,
        "object");
    assert_string_equal(
        cm_name_of_code(built->records, (struct cm_code_id){0}).text, "");
    built_free(built);
}

static void
test_long_names_are_cut_between_characters(void **state)
{
    struct cm_records *records = cm_records_new(1 << 16);
    char label[256] = ".";

    (void)state;
    for (int i = 0; i < 80; i++) {
        strcat(label, "\xC3\xA4"); /* one letter of two bytes */
    }
    for (int shift = 0; shift < 2; shift++) {
        struct cm_name name = cm_name_of_label(records, text(records, label));
        size_t length = strlen(name.text);

        assert_true(length > 80 && length < sizeof name.text);
        assert_int_equal((unsigned char)name.text[length - 1], 0xA4);
        /* The same with every letter moved by one byte. */
        memmove(label + 2, label + 1, strlen(label));
        label[1] = 'x';
    }
    cm_records_free(records);
}

static void
test_identifiers(void **state)
{
    (void)state;
    assert_true(cm_name_is_identifier("_a1", 3));
    assert_true(cm_name_is_identifier("\xC3\xA4", 2));
    assert_false(cm_name_is_identifier("1a", 2));
    assert_false(cm_name_is_identifier("a b", 3));
    assert_false(cm_name_is_identifier("a-b", 3));
    assert_false(cm_name_is_identifier("", 0));
}

static enum cm_status
attempt(void *context)
{
    char *sentence = cm_sentence("%s and %d", (const char *)context, 5);
    bool made = sentence != NULL;

    if (made) {
        assert_string_equal(sentence, "four and 5");
    }
    cm_free(sentence);
    return made ? CM_OK : CM_NO_MEMORY;
}

static void
test_sentences(void **state)
{
    (void)state;
    cm_fail_each(attempt, "four");
}

static void
test_what_stands_behind_packages(void **state)
{
    (void)state;
    assert_string_equal(cm_name_in_packages("/x/site-packages/a/b.py"),
                        "a/b.py");
    assert_string_equal(cm_name_in_packages("/x/dist-packages/a.py"), "a.py");
    assert_null(cm_name_in_packages("/home/site-package/a.py"));
    assert_null(cm_name_in_packages(""));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_stands_behind_packages),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_types_and_code),
        cmocka_unit_test(test_long_names_are_cut_between_characters),
        cmocka_unit_test(test_identifiers),
        cmocka_unit_test(test_sentences),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
