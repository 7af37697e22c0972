/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "page_builder.h"

#include "fail_each.h"

#include "../reports/escape.h"
#include "../reports/utf8.h"

static void
expect_html(const char *text, const char *expected)
{
    struct cm_buffer out = {0};

    cm_escape_html(&out, text);
    assert_string_equal(cm_buffer_text(&out), expected);
    cm_buffer_release(&out);
}

static void
expect_label(const char *text, size_t most, const char *expected, long columns)
{
    struct cm_buffer out = {0};

    cm_escape_html_label(&out, text, most);
    assert_string_equal(cm_buffer_text(&out), expected);
    assert_int_equal(cm_escape_columns(text, most), columns);
    cm_buffer_release(&out);
}

static void
test_markup(void **state)
{
    (void)state;
    expect_html("a < b && c > \"d\" 'e'",
                "a &lt; b &amp;&amp; c &gt; &quot;d&quot; &#39;e&#39;");
    expect_html("&#1;", "&amp;#1;");
    expect_html("", "");
    expect_html("line\n\ttab", "line\n\ttab");
}

static void
test_what_may_not_be_shown(void **state)
{
    (void)state;
    expect_html("\x1b[31m\x01\x7f", "\\x1b[31m\\x01\\x7f");
    expect_html("a\r\n", "a\\x0d\n");
    expect_html("\xc2\x85", "\\x85");
    expect_html("\xe2\x80\xae"
                "abc\xe2\x81\xa6",
                "\\u202eabc\\u2066");
    expect_html("\xef\xbf\xbf", "\\uffff");
}

static void
test_bytes_that_are_no_text(void **state)
{
    (void)state;
    expect_html("\xff", "\xef\xbf\xbd");
    expect_html("\xc3(", "\xef\xbf\xbd(");
    expect_html("\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd");
    expect_html("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    expect_html("\xd0\xb6\xf0\x9f\x99\x82", "\xd0\xb6\xf0\x9f\x99\x82");
}

static void
test_part(void **state)
{
    struct cm_buffer out = {0};

    (void)state;
    cm_escape_html_part(&out, "<b>rest", 3);
    assert_string_equal(cm_buffer_text(&out), "&lt;b&gt;");
    cm_buffer_release(&out);
}

static void
test_label(void **state)
{
    (void)state;
    expect_label("two\nlines\there", 40, "two lines here", 14);
    expect_label("abcdef", 6, "abcdef", 6);
    expect_label("abcdefg", 6, "abcde\xe2\x80\xa6", 6);
    expect_label("<>", 6, "&lt;&gt;", 2);
    expect_label("\x1b", 6, "\\x1b", 4);
    expect_label("\xe2\x80\xae", 6, "\\u202e", 6);
    expect_label("\xe4\xb8\xad", 6, "\xe4\xb8\xad", 2);
    expect_label("", 6, "", 0);
    expect_label("abc", 0, "", 0);
}

static void
test_graphviz(void **state)
{
    struct cm_buffer out = {0};
    char text[1000];

    (void)state;
    cm_escape_graphviz(&out, "&#1; \\N \x01 <b> \"");
    assert_string_equal(cm_buffer_text(&out), "&amp;#1; \\\\N \\\\x01 <b> \"");
    cm_buffer_clear(&out);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    cm_escape_graphviz(&out, text);
    assert_int_equal(out.length, CM_LABEL_MAX - 1 + 3);
    cm_buffer_release(&out);
}

/* No hostile text leaves a character that HTML or XML would obey. */
static void
test_corpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
        struct cm_buffer out = {0};
        const char *at, *end;

        cm_escape_html(&out, hostile_texts[i]);
        assert_null(strpbrk(cm_buffer_text(&out), "<>\"'"));
        assert_true(cm_utf8_valid(cm_buffer_text(&out), out.length));
        at = cm_buffer_text(&out);
        end = at + out.length;
        while (at < end) {
            uint32_t character = cm_utf8_next(&at, end);

            assert_true(character == '\n' || character == '\t'
                        || cm_utf8_harmless(character));
        }
        cm_buffer_release(&out);
    }
}

static enum cm_status
escape_all(void *context)
{
    struct cm_buffer out = {0};
    enum cm_status status;

    (void)context;
    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
        cm_escape_html(&out, hostile_texts[i]);
        cm_escape_graphviz(&out, hostile_texts[i]);
    }
    status = cm_buffer_status(&out);
    cm_buffer_release(&out);
    return status;
}

static void
test_out_of_memory(void **state)
{
    (void)state;
    cm_fail_each(escape_all, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markup),
        cmocka_unit_test(test_what_may_not_be_shown),
        cmocka_unit_test(test_bytes_that_are_no_text),
        cmocka_unit_test(test_part),
        cmocka_unit_test(test_label),
        cmocka_unit_test(test_graphviz),
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_out_of_memory),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
