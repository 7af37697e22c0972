/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Threads that never end are told as such, whatever they are called. */

#include "way_builder.h"

#include "../detector/alloc.h"
#include "../graph/thread.h"

#define THREAD "F||threading.py:982 Thread.run, thread "
#define WITH                                                                  \
    ";O|local self|threading.Thread;t|._args|tuple of 2|2;T|[0]|Tensor [4]"

static const struct row {
    const char *way;
    size_t at;
    const char *says; /* NULL: another rule */
} rows[] = {
    {THREAD "Thread-1 (upload)" WITH, 1, "threads that run upload() end"},
    {THREAD "Thread-7 (<lambda>)" WITH, 2, "threads that run <lambda>() end"},
    {THREAD "uploader" WITH, 1, "let the threads end"},
    {THREAD "odd (" WITH, 1, "let the threads end"},
    {"F||a.py:9 Thread.run, thread uploader" WITH, 1, NULL},
    {"F||threading.py:9 Timer.run, thread Thread-1" WITH, 1, NULL},
    {THREAD "Thread-1 (upload);O|local self|threading.Thread;"
            "L|._args|list of 9|9;T|[0]|Tensor [4]",
     2, NULL},
    {THREAD "Thread-1 (upload);T|local x|Tensor [4]", 1, NULL},
};

static void
test_who_keeps_its_arguments(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct way way;
        way_init(&way, rows[i].way, rows[i].at);
        assert_int_equal(cm_thread_keeps_arguments(&way.holding),
                         rows[i].says != NULL);
        if (rows[i].says != NULL) {
            char *text = cm_thread_say(&way.holding);
            assert_non_null(strstr(text, rows[i].says));
            cm_free(text);
        }
        cm_records_free(way.records);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_keeps_its_arguments),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
