/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../reports/child.h"

static const struct cm_child_limits wide = {
    .bytes = (size_t)256 << 20, .cpu_seconds = 5, .wall_ms = 5000};

static bool
write_much(int fd, void *context)
{
    char bytes[1000];

    memset(bytes, *(char *)context, sizeof(bytes));
    for (int i = 0; i < 1000; i++) {
        if (!cm_child_write(fd, bytes, sizeof(bytes))) {
            return false;
        }
    }
    return true;
}

static bool
write_and_give_up(int fd, void *context)
{
    (void)context;
    cm_child_write(fd, "part", 4);
    return false;
}

static bool
write_and_crash(int fd, void *context)
{
    (void)context;
    cm_child_write(fd, "part", 4);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return true;
}

static bool
sleep_long(int fd, void *context)
{
    (void)context;
    cm_child_write(fd, "part", 4);
    sleep(60);
    return true;
}

static bool
spin(int fd, void *context)
{
    volatile unsigned long *count = context;

    (void)fd;
    while (*count + 1 != 0) {
        *count += 1;
    }
    return true;
}

/* Answers whether the bound let it have 512 MiB. */
static bool
map_much(int fd, void *context)
{
    void *room = mmap(NULL, (size_t)512 << 20, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)context;
    cm_child_write(fd, room == MAP_FAILED ? "no" : "yes", 3);
    return true;
}

static double
seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void
expect(cm_child_work *work, struct cm_child_limits limits,
       enum cm_status status, const char *text)
{
    struct cm_buffer out = {0};
    unsigned long count = 0;

    assert_int_equal(cm_child_run(work, &count, limits, &out), status);
    assert_string_equal(cm_buffer_text(&out), text);
    cm_buffer_release(&out);
}

static void
test_result(void **state)
{
    struct cm_buffer out = {0};
    char letter = 'z';

    (void)state;
    assert_int_equal(cm_child_run(write_much, &letter, wide, &out), CM_OK);
    assert_int_equal(out.length, 1000000);
    assert_int_equal(out.bytes[999999], 'z');
    cm_buffer_release(&out);
}

/* O5, O6: a layout may crash, and who draws goes on. */
static void
test_O5_O6_what_came_before_is_kept(void **state)
{
    (void)state;
    expect(write_and_give_up, wide, CM_LIMIT, "part");
    expect(write_and_crash, wide, CM_LIMIT, "part");
}

static void
test_wall_time(void **state)
{
    struct cm_child_limits limits = wide;
    double start = seconds();

    (void)state;
    limits.wall_ms = 200;
    expect(sleep_long, limits, CM_LIMIT, "part");
    assert_true(seconds() - start < 3);
}

static void
test_processor_time(void **state)
{
    struct cm_child_limits limits = wide;
    double start = seconds();

    (void)state;
    limits.cpu_seconds = 1;
    limits.wall_ms = 60000;
    expect(spin, limits, CM_LIMIT, "");
    assert_true(seconds() - start < 30);
}

static void
test_memory(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const char *answer = "yes"; /* they map terabytes: there is no bound */
#else
    const char *answer = "no";
#endif

    (void)state;
    expect(map_much, wide, CM_OK, answer);
}

static void
test_reader_is_full(void **state)
{
    struct cm_buffer out = {.max_bytes = 100000};
    char letter = 'z';

    (void)state;
    assert_int_equal(cm_child_run(write_much, &letter, wide, &out), CM_LIMIT);
    assert_true(out.length <= 100000);
    cm_buffer_release(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_result),
        cmocka_unit_test(test_O5_O6_what_came_before_is_kept),
        cmocka_unit_test(test_wall_time),
        cmocka_unit_test(test_processor_time),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_reader_is_full),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
