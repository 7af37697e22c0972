/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fail_each.h"

#include "../allocator_hooks/caller.h"
#include "../allocator_hooks/hook.h"

enum { MAX_EVENTS = 32 };

static struct cm_event events[MAX_EVENTS];
static int count;

static void
take(void *context, const struct cm_event *event)
{
    assert_ptr_equal(context, events);
    if (count < MAX_EVENTS) {
        events[count] = *event;
    }
    count++;
}

static const struct cm_sink sink = {.event = take, .context = events};

/* The refusal; NULL: replayed.  Nothing is told before all lines are good. */
static const char *
replay_bytes(const char *bytes, size_t length)
{
    int file = memfd_create("events", 0);
    char path[64];
    const char *why = NULL;
    assert_int_equal(write(file, bytes, length), length);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    count = 0;
    bool started = cm_replay.start(&sink, path, &why);
    close(file);
    assert_true(started == (why == NULL));
    if (why != NULL) {
        assert_int_equal(count, 0);
    }
    return why;
}

static const char *
replay(const char *text)
{
    return replay_bytes(text, strlen(text));
}

static void
tells_every_event(void **state)
{
    (void)state;
    assert_null(
        replay("# made by hand\n"
               "\r\n"
               "allocate 0x7f00 512\n"
               "\tallocate  0xFfA0 0 device=63 stream=0x10 thread=7 time=12 "
               "allocated=1024 reserved=2048 site=3 awaited=1 "
               "library=libnccl.so.2\r\n"
               "free 0x7f00 0 awaited=0 stream=0\n"
               "segment 0x10 2097152\nsegment_free 0x10 2097152\n"
               "out_of_memory 0x0 18446744073709551615"));
    assert_int_equal(count, 6);
    assert_int_equal(events[0].kind, CM_EVENT_ALLOCATE);
    assert_int_equal(events[0].address, 0x7f00);
    assert_int_equal(events[0].bytes, 512);
    assert_true(events[0].stream == CM_STREAM_UNKNOWN);
    assert_int_equal(events[0].device, 0);
    assert_int_equal(events[0].library, 0);
    assert_int_equal(events[1].address, 0xffa0);
    assert_int_equal(events[1].device, 63);
    assert_int_equal(events[1].stream, 16);
    assert_int_equal(events[1].thread, 7);
    assert_int_equal(events[1].time_ns, 12);
    assert_int_equal(events[1].allocated, 1024);
    assert_int_equal(events[1].reserved, 2048);
    assert_int_equal(events[1].site.index, 3);
    assert_true(events[1].awaited);
    assert_string_equal(cm_caller_name(events[1].library), "libnccl.so.2");
    assert_int_equal(events[2].kind, CM_EVENT_FREE);
    assert_int_equal(events[2].stream, 0);
    assert_false(events[2].awaited);
    assert_int_equal(events[3].kind, CM_EVENT_SEGMENT);
    assert_int_equal(events[4].kind, CM_EVENT_SEGMENT_FREE);
    assert_int_equal(events[5].kind, CM_EVENT_OUT_OF_MEMORY);
    assert_true(events[5].bytes == UINT64_MAX);
    assert_null(replay(""));
    assert_int_equal(count, 0);
    cm_replay.flush();
    cm_replay.stop();
    assert_int_equal(cm_replay.lost(), 0);
}

static void
names_the_line_and_what_was_expected(void **state)
{
    static const struct {
        const char *line, *expected;
    } cases[] = {
        {"alloc 0x1 1", "allocate, free,"},
        {"allocated 0x1 1", "allocate, free,"},
        {"ALLOCATE 0x1 1", "allocate, free,"},
        {"allocate", "an address such as"},
        {"allocate 10 1", "an address such as"},
        {"allocate 0x 1", "an address such as"},
        {"allocate 0xg 1", "an address such as"},
        {"allocate 0x10000000000000000 1", "an address such as"},
        {"allocate 0x0 1", "0x0 for out_of_memory"},
        {"out_of_memory 0x1 1", "0x0 for out_of_memory"},
        {"allocate 0x1", "a number of bytes"},
        {"allocate 0x1 -1", "a number of bytes"},
        {"allocate 0x1 0x10", "a number of bytes"},
        {"allocate 0x1 1.5", "a number of bytes"},
        {"allocate 0x1 18446744073709551616", "a number of bytes"},
        {"allocate 0x1 1 device", "device=0..63"},
        {"allocate 0x1 1 device=", "device=0..63"},
        {"allocate 0x1 1 device=64", "device=0..63"},
        {"allocate 0x1 1 device=-1", "device=0..63"},
        {"allocate 0x1 1 device=1 device=1", "each once"},
        {"allocate 0x1 1 stream=0xffffffffffffffff", "stream="},
        {"allocate 0x1 1 thread=4294967296", "thread="},
        {"allocate 0x1 1 site=4294967296", "site="},
        {"allocate 0x1 1 awaited=2", "awaited=0..1"},
        {"allocate 0x1 1 awaited=yes", "awaited=0..1"},
        {"allocate 0x1 1 library=", "library="},
        {"allocate 0x1 1 library=a library=b", "each once"},
        {"allocate 0x1 1 colour=1", "each once"},
        {"allocate 0x1 1 =1", "each once"},
        {"allocate 0x1 1 # no remark here", "each once"},
    };
    (void)state;
    for (size_t at = 0; at < sizeof(cases) / sizeof(cases[0]); at++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "free 0x1 0\n\n%s\nfree 0x2 0\n",
                       cases[at].line);
        const char *why = replay(text);
        assert_non_null(why);
        assert_non_null(strstr(why, "line 3: expected "));
        assert_non_null(strstr(why, cases[at].expected));
    }
}

static void
refuses_lines_that_are_no_text(void **state)
{
    (void)state;
    static char text[4096];
    assert_non_null(replay_bytes("free 0x1 0\0\n", 12));
    assert_non_null(strstr(replay_bytes("\0", 1), "line 1: expected text"));
    memset(text, ' ', sizeof(text));
    assert_null(replay_bytes(text, 1024));
    assert_non_null(replay_bytes(text, 1025));
    text[0] = '#';
    assert_non_null(replay_bytes(text, sizeof(text)));
    for (unsigned seed = 1; seed <= 2000; seed++) {
        size_t length = seed % 200;
        for (size_t at = 0; at < length; at++) {
            text[at] = "af0x1 =\n#e"[rand_r(&seed) % 10];
        }
        (void)replay_bytes(text, length);
    }
}

static void
refuses_what_is_no_file(void **state)
{
    (void)state;
    static const char *const paths[] = {NULL, "", "/nowhere/events", "/",
                                        "/dev/zero"};
    for (size_t at = 0; at < sizeof(paths) / sizeof(paths[0]); at++) {
        const char *why = NULL;
        assert_false(cm_replay.start(&sink, paths[at], &why));
        assert_non_null(why);
    }
    char folder[] = "/tmp/cumem-replay-XXXXXX", path[64];
    const char *why = NULL;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(cm_replay.start(&sink, path, &why));
    unlink(path);
    rmdir(folder);
    int file = memfd_create("events", 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    assert_int_equal(ftruncate(file, (64 << 20) + 1), 0);
    assert_false(cm_replay.start(&sink, path, &why));
    assert_non_null(strstr(why, "64 MiB"));
    close(file);
}

static enum cm_status
attempt(void *context)
{
    (void)context;
    const char *why = replay("allocate 0x1 1 library=libx.so\n");
    if (why == NULL && events[0].library == 0) {
        why = "no memory";
    }
    cm_caller_release();
    if (why == NULL) {
        return CM_OK;
    }
    assert_non_null(strstr(why, "no memory"));
    return CM_NO_MEMORY;
}

static void
each_allocation_fails(void **state)
{
    (void)state;
    cm_caller_release();
    cm_fail_each(attempt, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_every_event),
        cmocka_unit_test(names_the_line_and_what_was_expected),
        cmocka_unit_test(refuses_lines_that_are_no_text),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(each_allocation_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
