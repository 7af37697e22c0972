/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fail_each.h"

#include "../reports/source.h"

static char folder[64];

static int
enter_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/cumem-t-source-XXXXXX");
    return mkdtemp(folder) != NULL && chdir(folder) == 0 ? 0 : -1;
}

static int
leave_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void
save(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void
expect_lines(struct cm_sources *sources, const char *name, uint32_t line,
             uint32_t count, const char *expected)
{
    struct cm_buffer out = {0};

    cm_source_lines(sources, name, line, count, &out);
    assert_string_equal(cm_buffer_text(&out), expected);
    cm_buffer_release(&out);
}

static void
test_lines(void **state)
{
    struct cm_sources sources = {0};

    (void)state;
    save("a.py", "one\r\n  two\n\nfour");
    expect_lines(&sources, "a.py", 1, 1, "one");
    expect_lines(&sources, "a.py", 2, 1, "  two");
    expect_lines(&sources, "a.py", 3, 1, "");
    expect_lines(&sources, "a.py", 4, 1, "four");
    expect_lines(&sources, "a.py", 2, 9, "  two\n\nfour");
    expect_lines(&sources, "a.py", 0, 1, "");
    expect_lines(&sources, "a.py", 5, 1, "");
    expect_lines(&sources, "a.py", UINT32_MAX, 2, "");
    cm_sources_release(&sources);
}

static void
test_files_are_kept(void **state)
{
    struct cm_sources sources = {0};
    char name[16];

    (void)state;
    save("a.py", "before\n");
    expect_lines(&sources, "a.py", 1, 1, "before");
    save("a.py", "after\n");
    expect_lines(&sources, "a.py", 1, 1, "before");
    for (int i = 0; i < CM_SOURCE_MAX_FILES; i++) {
        snprintf(name, sizeof(name), "%d.py", i);
        save(name, name);
        expect_lines(&sources, name, 1, 1, name);
    }
    expect_lines(&sources, "a.py", 1, 1, "after"); /* was dropped */
    cm_sources_release(&sources);
}

static void
test_only_regular_files_of_some_size(void **state)
{
    struct cm_sources sources = {0};

    (void)state;
    assert_int_equal(mkfifo("pipe.py", 0600), 0); /* would block */
    expect_lines(&sources, "pipe.py", 1, 1, "");
    expect_lines(&sources, "/dev/zero", 1, 1, "");
    expect_lines(&sources, ".", 1, 1, "");
    expect_lines(&sources, "<string>", 1, 1, "");
    save("big.py", "line\n");
    assert_int_equal(truncate("big.py", CM_SOURCE_MAX_BYTES + 1), 0);
    expect_lines(&sources, "big.py", 1, 1, "");
    cm_sources_release(&sources);
}

static void
test_without_memory_there_are_no_lines(void **state)
{
    (void)state;
    save("a.py", "one\n");
    for (long nth = 0; nth < 3; nth++) {
        struct cm_sources sources = {0};
        struct cm_buffer out = {0};

        cm_alloc_fail_at(nth, true);
        cm_source_lines(&sources, "a.py", 1, 1, &out);
        cm_alloc_fail_at(-1, false);
        assert_string_equal(cm_buffer_text(&out), "");
        cm_buffer_release(&out);
        cm_sources_release(&sources);
    }
    assert_int_equal(cm_alloc_live(), 0);
}

#define IN_FOLDER(test)                                                       \
    cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_lines),
        IN_FOLDER(test_files_are_kept),
        IN_FOLDER(test_only_regular_files_of_some_size),
        IN_FOLDER(test_without_memory_there_are_no_lines),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
