/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../reports/options.h"

enum { WORDS_MAX = 12, LINE_MAX_BYTES = 200 };

/* Parses a command line of words parted by blanks. */
static enum cm_status
parse(const char *line, struct cm_options *options, char *error)
{
    static char copy[LINE_MAX_BYTES]; /* the options borrow from it */
    char *argv[WORDS_MAX + 1] = {NULL};
    int argc = 0;

    assert_true(strlen(line) < sizeof(copy));
    strcpy(copy, line);
    for (char *word = strtok(copy, " "); word != NULL;
         word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    return cm_options_parse(argc, argv, options, error);
}

static void
test_defaults(void **state)
{
    struct cm_options options;
    char error[CM_OPTIONS_ERROR_BYTES];

    (void)state;
    assert_int_equal(parse("cyclereport leak.json", &options, error), CM_OK);
    assert_string_equal(options.input, "leak.json");
    assert_null(options.output);
    assert_int_equal(options.format, CM_FORMAT_NONE);
    assert_int_equal(options.min_bytes, 1 << 20);
    assert_int_equal(options.top, 0);
    assert_false(options.all || options.all_frames || options.force);
}

static void
test_all_options(void **state)
{
    struct cm_options options;
    char error[CM_OPTIONS_ERROR_BYTES];

    (void)state;
    assert_int_equal(parse("x --top 3 a.json --format=svg -o out --all "
                           "--all-frames -f --min-bytes 2KiB",
                           &options, error),
                     CM_OK);
    assert_string_equal(options.input, "a.json");
    assert_string_equal(options.output, "out");
    assert_int_equal(options.format, CM_FORMAT_SVG);
    assert_int_equal(options.top, 3);
    assert_int_equal(options.min_bytes, 2048);
    assert_true(options.all && options.all_frames && options.force);
    assert_int_equal(parse("x - --fail-on growth,cycle --suppressions s "
                           "--baseline b --output=-",
                           &options, error),
                     CM_OK);
    assert_string_equal(options.input, "-");
    assert_string_equal(options.output, "-");
    assert_true(options.fail_on_cycle && options.fail_on_growth);
    assert_string_equal(options.suppressions, "s");
    assert_string_equal(options.baseline, "b");
    assert_int_equal(parse("x -- -odd.json", &options, error), CM_OK);
    assert_string_equal(options.input, "-odd.json");
    assert_int_equal(parse("x --help", &options, error), CM_OK);
    assert_true(options.help);
    assert_int_equal(parse("x --version", &options, error), CM_OK);
    assert_true(options.version);
}

static void
test_format_by_the_ending(void **state)
{
    static const struct {
        const char *line;
        enum cm_format format;
    } cases[] = {
        {"x a -o out.svg", CM_FORMAT_SVG},
        {"x a -o b.svg/out.DOT", CM_FORMAT_DOT},
        {"x a --output=out.json", CM_FORMAT_JSON},
        {"x -o out.txt a", CM_FORMAT_TEXT},
        {"x a -o out.html", CM_FORMAT_NONE},
        {"x a -o out.htm", CM_FORMAT_NONE},
        {"x a -o out", CM_FORMAT_NONE},
        {"x a -o out.svg.old", CM_FORMAT_NONE},
        {"x a -o x.svg/out", CM_FORMAT_NONE},
        {"x a -o -", CM_FORMAT_NONE},
        {"x a -o out.svg --format=html", CM_FORMAT_HTML},
        {"x a --format=dot -o out.txt", CM_FORMAT_DOT},
    };
    struct cm_options options;
    char error[CM_OPTIONS_ERROR_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse(cases[i].line, &options, error), CM_OK);
        assert_int_equal(options.format, cases[i].format);
    }
}

static void
test_refuses(void **state)
{
    static const struct {
        const char *line, *error;
    } cases[] = {
        {"x", "expected the name of a leak.json (--help)"},
        {"x a b", "expected one file, also got \"b\""},
        {"x a --nothing", "there is no option \"--nothing\" (--help)"},
        {"x -format text a",
         "there is no option \"-format\", but there is \"--format\""},
        {"x a --format", "--format needs a value"},
        {"x a --format=pdf",
         "--format \"pdf\": expected html, svg, dot, json or text"},
        {"x a --top=x", "--top \"x\": expected a whole number from 1"},
        {"x a --top=99999999999999999999999",
         "--top \"99999999999999999999999\": expected a whole number from 1"},
        {"x a --min-bytes=9q",
         "--min-bytes \"9q\": expected bytes, or a text such as 256MiB"},
        {"x a --fail-on=cycle,",
         "--fail-on \"cycle,\": expected cycle, growth or cycle,growth"},
        {"x a --output=", "--output \"\": expected a file's name, or -"},
    };
    struct cm_options options;
    char error[CM_OPTIONS_ERROR_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse(cases[i].line, &options, error), CM_BAD_INPUT);
        assert_string_equal(error, cases[i].error);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_all_options),
        cmocka_unit_test(test_format_by_the_ending),
        cmocka_unit_test(test_refuses),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
