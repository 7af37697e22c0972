/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fail_each.h"

#include "../detector/alloc.h"
#include "../reports/backlog.h"

/* What is told when a warning of this one finding comes; 0: it waits. */
static size_t
told(struct cm_backlog *self, uint64_t fingerprint, uint64_t bytes)
{
    struct cm_ledger_news news = {0};
    size_t count;

    assert_int_equal(cm_grow((void **)&news.fingerprints, &news.capacity, 1,
                             sizeof(news.fingerprints[0])),
                     CM_OK);
    news.fingerprints[news.count++] = fingerprint;
    assert_int_equal(cm_backlog_pass(self, bytes, &news), CM_OK);
    count = news.count;
    assert_true(count == 0 || news.fingerprints[0] == fingerprint);
    cm_ledger_news_release(&news);
    return count;
}

/* One by one up to the 32nd, then at the 64th, the 128th... all that waited. */
static void
test_warnings_come_together_when_there_are_many(void **state)
{
    struct cm_backlog backlog = {0};
    size_t texts = 0, findings = 0;

    (void)state;
    for (uint64_t i = 1; i <= 1024; i++) {
        size_t count = told(&backlog, i, 100);

        assert_int_equal(count, i <= 32 ? 1 : (i & (i - 1)) ? 0 : i / 2);
        texts += count > 0;
        findings += count;
    }
    assert_int_equal(texts, 32 + 5);
    assert_int_equal(findings, 1024);
    assert_int_equal(backlog.waiting.count, 0);
    cm_backlog_release(&backlog);
}

static void
test_what_is_twice_as_large_does_not_wait(void **state)
{
    struct cm_backlog backlog = {0};

    (void)state;
    for (uint64_t i = 1; i <= 40; i++) {
        (void)told(&backlog, i, 100);
    }
    assert_int_equal(told(&backlog, 41, 199), 0);
    assert_int_equal(told(&backlog, 42, 200), 1 + 9);
    assert_int_equal(told(&backlog, 43, 399), 0);
    cm_backlog_release(&backlog);
}

static enum cm_status
pass_many(void *context)
{
    struct cm_backlog backlog = {0};
    enum cm_status status = CM_OK;

    (void)context;
    for (uint64_t i = 1; status == CM_OK && i <= 70; i++) {
        struct cm_ledger_news news = {0};

        status = cm_grow((void **)&news.fingerprints, &news.capacity, 1,
                         sizeof(news.fingerprints[0]));
        if (status == CM_OK) {
            news.fingerprints[news.count++] = i;
            status = cm_backlog_pass(&backlog, 100, &news);
        }
        cm_ledger_news_release(&news);
    }
    cm_backlog_release(&backlog);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    (void)state;
    cm_fail_each(pass_many, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warnings_come_together_when_there_are_many),
        cmocka_unit_test(test_what_is_twice_as_large_does_not_wait),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
