/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#define _GNU_SOURCE
#include <glob.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
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
#include "replay_case.h"

#include "../allocator_hooks/caller.h"
#include "../allocator_hooks/hook.h"
#include "../detector/blocks.h"

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

/* Nothing is told before all lines are good. */
static const char *
replay_bytes(const char *bytes, size_t length)
{
    count = 0;
    const char *why = replay_into(&sink, bytes, length);
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
               "out_of_memory 0x0 18446744073709551615\n"));
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
    text[1024] = '\n';
    assert_null(replay_bytes(text, 1025));
    text[1024] = ' ';
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

/* What is left of it may be an event, but another one. */
static void
refuses_a_file_that_was_cut(void **state)
{
    (void)state;
    static const char *const lasts[] = {
        "allocate 0x1 51", "free 0x1 1 device=", "alloc", "# a rem", " "};
    for (size_t at = 0; at < sizeof(lasts) / sizeof(lasts[0]); at++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "free 0x1 0\n%s", lasts[at]);
        const char *why = replay(text);
        assert_non_null(why);
        assert_string_equal(why,
                            "line 2: expected the end of the line: the file "
                            "ends within this line");
    }
    assert_null(replay("free 0x1 0\n"));
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

/* ---- the files of tests/replays: events, and what the table of live blocks
 * then answers; a line "#? QUESTION -> ANSWER" is a remark to the replay */

static void
answer_device(struct cm_blocks *blocks, int device, FILE *out)
{
    struct cm_block_use use;
    cm_blocks_use(blocks, device, &use);
    (void)fprintf(out,
                  "%" PRIu64 " blocks, %" PRIu64 " bytes, peak %" PRIu64
                  ", %" PRIu64 " allocations, told %" PRIu64 " of %" PRIu64,
                  use.live_count, use.live_bytes, use.peak_bytes,
                  use.allocations, use.allocated, use.reserved);
}

static void
answer_site(struct cm_blocks *blocks, uint32_t number, int device, FILE *out)
{
    struct cm_site_id site = {number};
    struct cm_site_use use = cm_blocks_site(blocks, device, site);
    (void)fprintf(out, "%" PRIu64 " blocks, %" PRIu64 " bytes", use.count,
                  use.bytes);
}

static void
answer_block(const struct cm_block *block, FILE *out)
{
    (void)fprintf(out, "0x%" PRIx64 " %" PRIu64 " device=%d stream=",
                  block->address, block->bytes, block->device);
    if (block->stream == CM_STREAM_UNKNOWN) {
        (void)fprintf(out, "?");
    }
    else {
        (void)fprintf(out, "0x%" PRIx64, block->stream);
    }
    (void)fprintf(out, " thread=%u site=%u awaited=%d", block->thread,
                  block->site.index, block->awaited);
}

static void
answer_at(struct cm_blocks *blocks, uint64_t address, FILE *out)
{
    struct cm_block around, exact;
    cm_blocks_match(blocks, &address, 1, &around);
    bool starts = around.bytes != 0 && around.address == address;
    assert_int_equal(cm_blocks_at(blocks, address, &exact), starts);
    if (around.bytes == 0) {
        (void)fprintf(out, "none");
        return;
    }
    answer_block(&around, out);
}

static int
compare_sites(const void *one, const void *other)
{
    const struct cm_site_use *a = one, *b = other;
    return (a->site.index > b->site.index) - (a->site.index < b->site.index);
}

static void
answer_changes(struct cm_blocks *blocks, int device, FILE *out)
{
    struct cm_site_use *uses;
    size_t changed;
    assert_int_equal(cm_blocks_changes(blocks, device, &uses, &changed),
                     CM_OK);
    assert_true(changed != 0);
    qsort(uses, changed, sizeof(uses[0]), compare_sites);
    for (size_t i = 0; i < changed; i++) {
        (void)fprintf(out, "%s%u: %" PRIu64 ";", i != 0 ? " " : "",
                      uses[i].site.index, uses[i].bytes);
    }
    cm_free(uses);
}

static void
answer_counts(struct cm_blocks *blocks, FILE *out)
{
    struct cm_blocks_counts counts;
    cm_blocks_counts(blocks, &counts);
    (void)fprintf(out,
                  "%" PRIu64 " events, %" PRIu64 " lost, %" PRIu64
                  " unknown, %" PRIu64 " out of memory",
                  counts.events, counts.lost, counts.unknown,
                  counts.out_of_memory);
}

static void
answer(struct cm_blocks *blocks, const char *question, FILE *out)
{
    uint64_t address;
    uint32_t site;
    int device;
    if (sscanf(question, "device %d ->", &device) == 1) {
        answer_device(blocks, device, out);
    }
    else if (sscanf(question, "site %u on %d ->", &site, &device) == 2) {
        answer_site(blocks, site, device, out);
    }
    else if (sscanf(question, "at %" SCNx64 " ->", &address) == 1) {
        answer_at(blocks, address, out);
    }
    else if (sscanf(question, "changes on %d ->", &device) == 1) {
        answer_changes(blocks, device, out);
    }
    else if (strncmp(question, "mark ->", 7) == 0) {
        cm_blocks_mark(blocks);
        (void)fprintf(out, "done");
    }
    else {
        assert_int_equal(strncmp(question, "counts ->", 9), 0);
        answer_counts(blocks, out);
    }
}

/* The line as it stands in the file, from what is true. */
static void
check_line(struct cm_blocks *blocks, const char *line)
{
    char *told;
    size_t length;
    const char *arrow = strstr(line, " -> ");
    assert_non_null(arrow);
    FILE *out = open_memstream(&told, &length);
    (void)fprintf(out, "%.*s -> ", (int)(arrow - line), line);
    answer(blocks, line + strlen("#? "), out);
    (void)fclose(out);
    assert_string_equal(told, line);
    free(told);
}

/* Returns how many answers were right. */
static int
replay_and_ask(const struct cm_sink *to, const char *path)
{
    static char part[1 << 14];
    char line[512];
    size_t used = 0;
    int asked = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "#? ", 3) == 0) {
            assert_null(replay_into(to, part, used));
            line[strcspn(line, "\n")] = '\0';
            check_line(to->context, line);
            used = 0;
            asked++;
            continue;
        }
        assert_true(used + strlen(line) < sizeof(part));
        used += (size_t)sprintf(part + used, "%s", line);
    }
    (void)fclose(file);
    return asked;
}

enum { FILES = 5, SITES = 5, TURNS = 1000 };

static void
check_file(const struct cm_sink *way, const char *path)
{
    struct cm_sink to = *way;
    to.context = cm_blocks_new(1000);
    print_message("# %s\n", path);
    assert_true(replay_and_ask(&to, path) >= 10);
    cm_blocks_free(to.context);
}

static void
each_file_leaves_the_blocks_that_it_says(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob(REPLAYS "/*.txt", 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, FILES);
    for (size_t at = 0; at < WAYS * found.gl_pathc; at++) {
        check_file(&ways[at % WAYS], found.gl_pathv[at / WAYS]);
    }
    globfree(&found);
}

/* Every sum is that of the blocks in a copy. */
static void
adds_up(struct cm_blocks *blocks, int device)
{
    struct cm_block *copies;
    struct cm_block_use use;
    uint64_t by_site[SITES] = {0};
    size_t copied;
    assert_int_equal(cm_blocks_copy(blocks, &copies, &copied), CM_OK);
    cm_blocks_use(blocks, device, &use);
    for (size_t i = 0; i < copied; i++) {
        uint64_t bytes = copies[i].device == device ? copies[i].bytes : 0;
        assert_in_range(copies[i].site.index, 1, SITES - 1);
        by_site[copies[i].site.index] += bytes;
        use.live_bytes -= bytes;
    }
    cm_free(copies);
    assert_int_equal(use.live_bytes, 0);
    for (uint32_t i = 0; i < SITES; i++) {
        struct cm_site_id site = {i};
        assert_int_equal(cm_blocks_site(blocks, device, site).bytes,
                         by_site[i]);
    }
}

static atomic_bool over;

/* Returns NULL unless something failed; asserting is the other thread's. */
static void *
ask_all_the_time(void *blocks)
{
    void *failed = NULL;
    const uint64_t addresses[] = {0x7f0000000000, 0x7f0000002500};
    while (!atomic_load(&over)) {
        struct cm_block found[2], *copies;
        struct cm_site_use *uses;
        size_t copied, changed;
        cm_blocks_match(blocks, addresses, 2, found);
        if (cm_blocks_copy(blocks, &copies, &copied) != CM_OK
            || cm_blocks_changes(blocks, 0, &uses, &changed) != CM_OK) {
            failed = blocks;
            break;
        }
        cm_free(copies);
        cm_free(uses);
        cm_blocks_mark(blocks);
    }
    return failed;
}

static void
replay_often(struct cm_blocks *blocks, const glob_t *found)
{
    for (size_t at = 0; at < TURNS; at++) {
        struct cm_sink to = ways[at * WAYS / TURNS];
        const char *why = NULL;
        to.context = blocks;
        assert_true(
            cm_replay.start(&to, found->gl_pathv[at % found->gl_pathc], &why));
        for (int device = 0; device < cm_blocks_devices(blocks); device++) {
            adds_up(blocks, device);
        }
        cm_blocks_clear(blocks);
    }
}

static void
another_thread_asks_meanwhile(void **state)
{
    (void)state;
    glob_t found;
    pthread_t thread;
    void *failed;
    struct cm_blocks *blocks = cm_blocks_new(1000);
    assert_int_equal(glob(REPLAYS "/*.txt", 0, NULL, &found), 0);
    pthread_create(&thread, NULL, ask_all_the_time, blocks);
    replay_often(blocks, &found);
    atomic_store(&over, true);
    pthread_join(thread, &failed);
    assert_null(failed);
    cm_blocks_free(blocks);
    globfree(&found);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_every_event),
        cmocka_unit_test(names_the_line_and_what_was_expected),
        cmocka_unit_test(refuses_lines_that_are_no_text),
        cmocka_unit_test(refuses_a_file_that_was_cut),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(each_allocation_fails),
        cmocka_unit_test(each_file_leaves_the_blocks_that_it_says),
        cmocka_unit_test(another_thread_asks_meanwhile),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
