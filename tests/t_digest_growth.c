/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../detector/records.h"
#include "../reports/digest.h"
#include "fail_each.h"
#include "digest_case.h"

static char folder[] = "/tmp/t_digest_growth.XXXXXX";
static char path[sizeof(folder) + 20];
static struct cm_records *records;

static int
set_up(void **state)
{
    memcpy(strrchr(folder, '.'), ".XXXXXX", 8);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/leak.json", folder);
    records = cm_records_new(1 << 20);
    *state = cm_digest_new(records);
    return *state == NULL;
}

static int
tear_down(void **state)
{
    cm_digest_free(*state);
    cm_records_free(records);
    (void)unlink(path);
    return rmdir(folder);
}

/* Who tells the list waits for no disk: it is said by who writes. */
static void
grow(struct cm_digest *digest, const char *verdict, uint64_t bytes)
{
    bool before = cm_digest_warns(digest);
    assert_int_equal(cm_case_grow(digest, verdict, bytes), CM_OK);
    assert_true(cm_digest_warns(digest) == before);
    assert_int_equal(cm_digest_write(digest, false), CM_OK);
}

/* Quiet while it is not sure; then said, and written before it is said. */
static void
test_growth_is_said_when_it_is_sure(void **state)
{
    struct cm_digest *digest = *state;
    char *warning;
    cm_digest_output(digest, path, true, 0);
    grow(digest, "growing", 4096);
    assert_int_equal(cm_digest_write(digest, true), CM_OK);
    assert_false(cm_digest_warns(digest));
    assert_false(access(path, F_OK) == 0);
    grow(digest, "leak", 8192);
    warning = cm_digest_take_warning(digest, NULL);
    assert_non_null(warning);
    assert_non_null(strstr(warning, "#1 LEAK +4.0 KiB per iteration"));
    assert_non_null(strstr(warning, "cumem: cpu grows by 4.0 KiB per"));
    cm_free(warning);
    assert_true(access(path, F_OK) == 0);
    grow(digest, "leak", 9000);
    assert_false(cm_digest_warns(digest));
    grow(digest, "leak", 17000);
    assert_true(cm_digest_warns(digest));
}

/* Once, and only to whom it was said that it grows. */
static void
test_growth_that_stopped_is_said(void **state)
{
    struct cm_digest *digest = *state;
    char *warning;
    cm_digest_output(digest, path, true, 0);
    grow(digest, "settled", 4096);
    assert_false(cm_digest_warns(digest));
    grow(digest, "leak", 8192);
    cm_free(cm_digest_take_warning(digest, NULL));
    grow(digest, "growing", 9000);
    assert_false(cm_digest_warns(digest));
    for (int i = 0; i < 2; i++) {
        grow(digest, "settled", 9216);
    }
    warning = cm_digest_take_warning(digest, NULL);
    assert_string_equal(warning,
                        "cumem: stopped growing: memory (other "
                        "tensors), at 9 KiB (told as a leak before)\n");
    cm_free(warning);
    assert_false(cm_digest_warns(digest));
    grow(digest, "leak", 9300);
    assert_true(cm_digest_warns(digest));
}

/* Of what was too small to be told nothing is said. */
static void
test_small_growth_that_stopped_is_not_said(void **state)
{
    struct cm_digest *digest = *state;
    cm_digest_output(digest, path, true, 1 << 20);
    grow(digest, "leak", 8192);
    grow(digest, "settled", 8192);
    assert_false(cm_digest_warns(digest));
}

/* Nor of what was dropped, since nobody takes what is to be said. */
static void
test_growth_that_was_dropped_has_not_stopped(void **state)
{
    struct cm_digest *digest = *state;
    char *warning;
    int count = 0;
    FILE *rules = fopen(path, "w");
    assert_non_null(rules);
    fputs("no rule\n", rules);
    fclose(rules);
    for (int i = 0; i < 100; i++) {
        cm_digest_suppress(digest, path);
    }
    cm_digest_output(digest, NULL, true, 0);
    grow(digest, "leak", 8192);
    while ((warning = cm_digest_take_warning(digest, NULL)) != NULL) {
        assert_null(strstr(warning, "LEAK"));
        cm_free(warning);
        count++;
    }
    assert_in_range(count, 2, 99);
    grow(digest, "settled", 8192);
    assert_false(cm_digest_warns(digest));
}

#define WITH_DIGEST(test)                                                     \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIGEST(test_growth_is_said_when_it_is_sure),
        WITH_DIGEST(test_growth_that_stopped_is_said),
        WITH_DIGEST(test_small_growth_that_stopped_is_not_said),
        WITH_DIGEST(test_growth_that_was_dropped_has_not_stopped),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
