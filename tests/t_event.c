/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Events of a replay file all the way to what a person reads: live blocks,
 * what is made of them, leak.json, and what cyclereport says of that.  Each
 * figure that is expected follows from the file, by hand: where an event is
 * dropped or told twice it is another one, or the table has counted that. */

#define _GNU_SOURCE
#include "program_case.h"

#include <inttypes.h>

#include "../reports/html.h"
#include "../reports/leak_json.h"
#include "../reports/summary.h"

#define MIB ((uint64_t)1 << 20)

/* The lines that are sites 1 to 4 of training.txt, and a dead object. */
#define TRAINING                                                              \
    "code main train.py:10 main; code forward net.py:20 Net.forward\n"        \
    "code step train.py:30 step; code send dist.py:40 Bucket.send\n"          \
    "site weights main:11; site activations forward:21 main:14\n"             \
    "site gradients step:31 main:15; site bucket send:41 step:32 main:15\n"   \
    "a Node label=Node; t Tensor 2000 on=cuda:0 label=grad\n"                 \
    "a .me a; a .grad t"

/* What was read back, and what is said of it. */
struct told {
    struct cm_leak leak;
    struct cm_buffer json, text, page;
};

static struct told
tell(struct program *program)
{
    struct told told = {0};
    struct cm_buffer again = {0};
    struct cm_summary_options options = {.all = true};
    struct cm_html_options page = {.all = true};
    char error[CM_LEAK_JSON_ERROR_BYTES] = "";
    assert_int_equal(cm_digest_export(program->digest, &told.json), CM_OK);
    enum cm_status status = cm_leak_json_read(
        cm_buffer_text(&told.json), told.json.length, &told.leak, error);
    assert_string_equal(error, "");
    assert_int_equal(status, CM_OK);
    cm_leak_sort(&told.leak);
    assert_int_equal(cm_leak_json_write(&told.leak, &again), CM_OK);
    assert_string_equal(cm_buffer_text(&again), cm_buffer_text(&told.json));
    assert_int_equal(cm_summary_write(&told.leak, &options, &told.text),
                     CM_OK);
    assert_int_equal(cm_html_write(&told.leak, &page, &told.page), CM_OK);
    cm_buffer_release(&again);
    return told;
}

static void
told_release(struct told *self)
{
    cm_leak_release(&self->leak);
    cm_buffer_release(&self->json);
    cm_buffer_release(&self->text);
    cm_buffer_release(&self->page);
}

/* ---- the document, as it was read */

static void
add_place(const struct cm_leak *leak, uint32_t id, bool awaited,
          struct cm_buffer *out)
{
    assert_int_not_equal(id, 0);
    const struct cm_leak_frame *frame = cm_leak_site_at(leak, id)->frames;
    cm_buffer_addf(out, ", %s:%" PRIu32 "%s\n",
                   cm_leak_text(leak, frame->filename), frame->line,
                   awaited ? " awaited" : "");
}

static void
add_device(const struct cm_leak *leak, const struct cm_leak_device *device,
           struct cm_buffer *out)
{
    cm_buffer_addf(out,
                   "%s: %" PRIu64 " of %" PRIu64 ", peak %" PRIu64
                   ", asked %" PRIu64 "\n",
                   cm_leak_text(leak, device->name), device->allocated,
                   device->reserved, device->peak_allocated,
                   device->asked_bytes);
    for (size_t i = 0; i < device->pool_count; i++) {
        const struct cm_leak_pool *pool = &device->pools[i];
        cm_buffer_addf(out,
                       "pool %s: %" PRIu64 " of %" PRIu64 " in %" PRIu64
                       ", largest free %" PRIu64 "\n",
                       cm_leak_text(leak, pool->name), pool->allocated,
                       pool->reserved, pool->segments, pool->largest_free);
    }
    for (size_t i = 0; i < device->iteration_count; i++) {
        const int64_t *row =
            &device->iterations[i * CM_LEAK_ITERATION_NUMBERS];
        cm_buffer_addf(out,
                       "iteration %" PRId64 ": %" PRId64 " to %" PRId64
                       ", at most %" PRId64 "\n",
                       row[0], row[1], row[2], row[3]);
    }
}

static void
add_held(const struct cm_leak *leak, struct cm_buffer *out)
{
    for (size_t i = 0; i < leak->held_count; i++) {
        const struct cm_leak_held *held = &leak->held[i];
        cm_buffer_addf(out, "held on %s: %" PRIu64 " in %" PRIu64,
                       cm_leak_text(leak, held->device), held->bytes,
                       held->count);
        add_place(leak, held->site, held->awaited, out);
    }
}

static void
add_storages(const struct cm_leak *leak, struct cm_buffer *out)
{
    for (size_t i = 0; i < leak->storage_count; i++) {
        const struct cm_leak_storage *storage = &leak->storages[i];
        cm_buffer_addf(out,
                       "dead on %s: %" PRIu64 " of %" PRIu64
                       ", stream %" PRId64 ", thread %" PRIu32,
                       cm_leak_text(leak, storage->device), storage->bytes,
                       storage->block_bytes, storage->stream, storage->thread);
        add_place(leak, storage->site, storage->awaited, out);
    }
}

/* Bytes of each category that has any, at the end of each iteration. */
static void
add_timeline(const struct cm_leak *leak, struct cm_buffer *out)
{
    for (size_t i = 0; i < leak->timeline.device_count; i++) {
        const struct cm_leak_timeline_device *device =
            &leak->timeline.devices[i];
        size_t count = device->point_count * device->category_count;
        for (size_t at = 0; at < count; at++) {
            size_t category = at % device->category_count;
            if (device->bytes[at] != 0) {
                cm_buffer_addf(
                    out, "%s after %" PRId64 ": %" PRIu64 " %s\n",
                    cm_leak_text(leak, device->name),
                    device->iterations[at / device->category_count],
                    device->bytes[at],
                    cm_leak_text(leak, device->categories[category]));
            }
        }
    }
}

static void
expect_document(const struct told *told, const char *expected)
{
    struct cm_buffer out = {0};
    for (size_t i = 0; i < told->leak.device_count; i++) {
        add_device(&told->leak, &told->leak.devices[i], &out);
    }
    add_held(&told->leak, &out);
    add_storages(&told->leak, &out);
    add_timeline(&told->leak, &out);
    assert_string_equal(cm_buffer_text(&out), expected);
    cm_buffer_release(&out);
}

static void
expect_text(const struct told *told, const char *part)
{
    const char *text = cm_buffer_text(&told->text);
    if (strstr(text, part) == NULL) {
        fail_msg("%s\n---- is not in ----\n%s", part, text);
    }
}

static void
expect_page(const struct told *told, const char *part)
{
    if (strstr(cm_buffer_text(&told->page), part) == NULL) {
        fail_msg("%s\n---- is not on the page", part);
    }
}

static void
expect_counts(const struct program *program, uint64_t events,
              uint64_t out_of_memory)
{
    struct cm_blocks_counts counts;
    cm_blocks_counts(program->blocks, &counts);
    assert_int_equal(counts.events, events);
    assert_int_equal(counts.out_of_memory, out_of_memory);
    assert_int_equal(counts.lost + counts.unknown + counts.lost_sites, 0);
}

/* ---- training.txt */

/* The two weights of device 0, that of device 1, and within the gradient's
 * block on device 0 what the dead object has. */
static const uint64_t objects[] = {0x7f0000000000, 0x7f0000001000,
                                   0x7e0000000000, 0x7f0000003010};
enum { WEIGHTS = 3, OBJECTS = 4 };

static void
start_training(struct program *program, size_t way)
{
    program_init(program, REPLAYS "/training.txt", TRAINING, way);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(program->built->sites[i].id.index, i + 1);
    }
    program_play(program, NULL, "# forward");
    cm_growth_categorize(&program->growth, (struct cm_site_id){1},
                         CM_PARAMETER);
    cm_growth_categorize(&program->growth, (struct cm_site_id){2}, CM_SAVED);
    program_step(program);
}

static struct told
tell_devices(struct program *program, size_t explained)
{
    program_tell_device(program, 0, 0, 0);
    program_tell_device(program, 1, 0, 0);
    program_tell_held(program, objects, explained);
    return tell(program);
}

/* Weights and activations: 2 x 4096 + 2 x 1024, and 4096 + 512. */
static void
expect_forward(struct program *program)
{
    struct told told = tell_devices(program, WEIGHTS);
    expect_document(&told, "cuda:0: 10240 of 2097152, peak 10240, asked 0\n"
                           "iteration 0: 0 to 8192, at most 8192\n"
                           "cuda:1: 4608 of 0, peak 4608, asked 0\n"
                           "iteration 0: 0 to 4096, at most 4096\n"
                           "held on cuda:0: 2048 in 2, net.py:21\n"
                           "held on cuda:1: 512 in 1, net.py:21\n"
                           "cuda:0 after 1: 8192 parameter\n"
                           "cuda:1 after 1: 4096 parameter\n");
    expect_text(&told,
                "memory cuda:0 torch 2.0 MiB (2.0 MiB cached)\n"
                "   held  2.0 KiB by C++ alone: net.py:21 Net.forward:\n"
                "memory cuda:1 torch 4.5 KiB\n"
                "   held  512 B by C++ alone: net.py:21 Net.forward:\n");
    expect_page(&told, "<tr><th scope=\"row\">torch</th><td>10 KiB</td>"
                       "<td>2.0 MiB</td><td></td><td>2.0 MiB</td></tr>");
    expect_page(&told, "<tr><td>2.0 KiB</td><td>2</td><td>torch</td><td>"
                       "<code title=\"net.py\"><span>net.py</span>:21");
    expect_page(&told, "<tr><td>512 B</td><td>1</td><td>torch</td>");
    told_release(&told);
}

/* Of device 0 the gradient is a dead object's, the bucket nobody's: at most
 * both activations, or one, the gradient and the bucket were there at once. */
static void
expect_backward(struct program *program)
{
    program_find_dead(program, objects[WEIGHTS]);
    struct told told = tell_devices(program, OBJECTS);
    expect_document(&told,
                    "cuda:0: 12288 of 2097152, peak 13312, asked 0\n"
                    "iteration 0: 0 to 8192, at most 8192\n"
                    "cuda:1: 4352 of 0, peak 4864, asked 0\n"
                    "iteration 0: 0 to 4096, at most 4096\n"
                    "held on cuda:0: 2048 in 1, dist.py:41 awaited\n"
                    "held on cuda:1: 256 in 1, train.py:31 awaited\n"
                    "dead on cuda:0: 2000 of 2048, stream 16, thread 8, "
                    "train.py:31 awaited\n"
                    "cuda:0 after 1: 8192 parameter\n"
                    "cuda:1 after 1: 4096 parameter\n");
    expect_text(&told, "cumem: up to 2.0 of 13.0 KiB at cuda:0's peak was "
                       "dead\n#1 DEAD CYCLE, 2.0 KiB ");
    expect_text(&told,
                "   alloc (in backward, waiting thread) train.py:31 step\n"
                "memory cuda:0 torch 2.0 MiB (2.0 MiB cached)\n"
                "   held  2.0 KiB by C++ alone: dist.py:41 (backward) "
                "Bucket.send:\n"
                "memory cuda:1 torch 4.3 KiB\n"
                "   held  256 B by C++ alone: train.py:31 (backward) "
                "step:\n");
    expect_page(&told, "2.0 KiB in a block of 2.0 KiB, stream 0x10, thread 8");
    expect_page(&told, "<tr><td>256 B</td><td>1</td><td>torch</td><td>"
                       "<code title=\"train.py\"><span>train.py</span>:31");
    told_release(&told);
}

/* The weights are left, and both peaks are those of backward(). */
static void
expect_iteration(struct program *program)
{
    struct told told = tell_devices(program, WEIGHTS);
    expect_document(&told,
                    "cuda:0: 8192 of 2097152, peak 8192, asked 0\n"
                    "iteration 0: 0 to 8192, at most 8192\n"
                    "iteration 1: 8192 to 8192, at most 13312\n"
                    "cuda:1: 4096 of 0, peak 4096, asked 0\n"
                    "iteration 0: 0 to 4096, at most 4096\n"
                    "iteration 1: 4096 to 4096, at most 4864\n"
                    "dead on cuda:0: 2000 of 2048, stream 16, thread 8, "
                    "train.py:31 awaited\n"
                    "cuda:0 after 1: 8192 parameter\n"
                    "cuda:0 after 2: 8192 parameter\n"
                    "cuda:1 after 1: 4096 parameter\n"
                    "cuda:1 after 2: 4096 parameter\n");
    expect_text(&told, "memory cuda:0 torch 2.0 MiB (2.0 MiB cached)\n"
                       "memory cuda:1 torch 4.0 KiB\n");
    expect_page(&told, "<tr><th scope=\"row\">1</th><td>8.0 KiB</td>"
                       "<td>13 KiB</td><td>8.0 KiB</td></tr>");
    expect_page(&told, "<tr><th scope=\"row\">1</th><td>4.0 KiB</td>"
                       "<td>4.8 KiB</td><td>4.0 KiB</td></tr>");
    told_release(&told);
}

static void
an_iteration_is_told_as_its_events_say(void **state)
{
    (void)state;
    for (size_t way = 0; way < WAYS; way++) {
        struct program program;
        start_training(&program, way);
        program_play(&program, "# forward", "# backward");
        expect_forward(&program);
        program_play(&program, "# backward", "# the optimizer");
        expect_backward(&program);
        program_play(&program, "# the optimizer", NULL);
        program_step(&program);
        expect_iteration(&program);
        expect_counts(&program, 15, 0);
        program_release(&program);
    }
}

/* ---- training.txt, again and again, with one activation more each time */

enum { TURNS = 24 };

static void
run_and_keep(struct program *program)
{
    for (uint64_t i = 0; i < TURNS; i++) {
        char kept[128];
        (void)snprintf(kept, sizeof(kept),
                       "allocate 0x%" PRIx64 " 1048576 device=1 stream=0 "
                       "thread=7 site=2\n",
                       UINT64_C(0x7d0000000000) + i * MIB);
        program_play(program, "# forward", "# the optimizer");
        program_tell(program, kept);
        program_play(program, "# the optimizer", NULL);
        program_step(program);
    }
}

/* On device 1 the kept ones are above what backward() leaves; on device 0
 * each turn is as the first one. */
static void
expect_rows_of_turns(const struct cm_leak *leak)
{
    assert_int_equal(leak->device_count, 2);
    assert_int_equal(leak->devices[0].iteration_count, TURNS + 1);
    assert_int_equal(leak->devices[1].iteration_count, TURNS + 1);
    for (int64_t turn = 1; turn <= TURNS; turn++) {
        int64_t kept = turn * (int64_t)MIB;
        const int64_t rows[2][CM_LEAK_ITERATION_NUMBERS] = {
            {turn, 8192, 8192, 13312},
            {turn, 4096 + kept - (int64_t)MIB, 4096 + kept, 4352 + kept}};
        for (size_t i = 0; i < 2; i++) {
            assert_memory_equal(
                &leak->devices[i].iterations[turn * CM_LEAK_ITERATION_NUMBERS],
                rows[i], sizeof(rows[i]));
        }
    }
}

static void
expect_growth(const struct cm_leak *leak)
{
    const struct cm_leak_growth *growth = leak->growth;
    assert_int_equal(leak->growth_count, 1);
    assert_string_equal(cm_leak_text(leak, growth->verdict), "leak");
    assert_string_equal(cm_leak_text(leak, growth->device), "cuda:1");
    assert_string_equal(cm_leak_text(leak, growth->category),
                        "saved for backward");
    assert_int_equal(growth->bytes, TURNS * MIB);
    assert_int_equal(growth->count, TURNS);
    assert_true(growth->bytes_per_iteration > (double)MIB - 1
                && growth->bytes_per_iteration < (double)MIB + 1);
    assert_int_equal(growth->series_count, TURNS);
    for (int64_t turn = 1; turn <= TURNS; turn++) {
        const int64_t *point = growth->series[turn - 1];
        assert_int_equal(point[0], turn + 1);
        assert_int_equal(point[1], turn);
        assert_int_equal(point[2], turn * (int64_t)MIB);
    }
}

static void
what_each_iteration_keeps_is_told_as_a_leak(void **state)
{
    (void)state;
    for (size_t way = 0; way < WAYS; way++) {
        struct program program;
        start_training(&program, way);
        run_and_keep(&program);
        program_tell_growth(&program);
        struct told told = tell(&program);
        expect_rows_of_turns(&told.leak);
        expect_growth(&told.leak);
        expect_text(&told, "cumem: cuda:1 grows by 1.0 MiB per iteration\n"
                           "#1 LEAK +1.0 MiB per iteration since iteration ");
        expect_text(&told, "   alloc net.py:21 Net.forward\n");
        expect_page(&told, "<b>24 MiB</b>");
        expect_counts(&program, 3 + TURNS * 13, 0);
        told_release(&told);
        program_release(&program);
    }
}

/* ---- out_of_memory.txt */

/* 1 MiB is free in one segment, 3 in the other; 4 in one piece were asked. */
static void
expect_pieces(struct program *program)
{
    program_raise(program, 8 * MIB);
    struct told told = tell(program);
    expect_document(&told, "cuda:0: 4194304 of 8388608, peak 4194304, "
                           "asked 4194304\n"
                           "pool common: 4194304 of 8388608 in 2, "
                           "largest free 3145728\n"
                           "held on cuda:0: 3145728 in 1, train.py:11\n"
                           "held on cuda:0: 1048576 in 1, net.py:21\n");
    assert_int_equal(told.leak.exhausted.asked_bytes, 4 * MIB);
    assert_string_equal(
        cm_buffer_text(&told.text),
        "cumem: memory ran out on cuda:0: OutOfMemoryError, 4.0 MiB asked "
        "for\n"
        "memory cuda:0 (8.0 MiB): torch 8.0 MiB (4.0 MiB cached), free 0 B\n"
        "   why   4.0 MiB asked, 4.0 MiB cached in pieces of at most 3.0 MiB: "
        "fragmented;\n"
        "         common pool: 2 segments, 50 % used\n"
        "   fix   run with "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
        "   held  4.0 MiB by C++ alone: 3.0 MiB train.py:11 main:; +1 more\n");
    expect_page(&told, "4.0 MiB asked, 4.0 MiB cached in pieces of at most "
                       "3.0 MiB: fragmented; common pool: 2 segments, 50 % "
                       "used.");
    expect_page(&told, "<tr><th scope=\"row\">common</th><td>2</td>"
                       "<td>8.0 MiB</td><td>4.0 MiB</td><td></td><td></td>"
                       "<td>3.0 MiB</td></tr>");
    told_release(&told);
}

/* More than a file can hold were asked of device 5: not known.  Device 0 is as
 * it was when memory ran out there, but for its peak since. */
static void
expect_another_device(struct program *program)
{
    struct cm_pool_use pool = program_pool(program, 0);
    assert_int_equal(pool.largest_free, MIB);
    assert_int_equal(pool.allocated, 7 * MIB);
    assert_int_equal(program->failed.device, 5);
    program_tell_device(program, 0, 8 * MIB, 0);
    program_raise(program, 0);
    struct told told = tell(program);
    expect_document(&told, "cuda:0: 4194304 of 8388608, peak 7340032, "
                           "asked 4194304\n"
                           "pool common: 4194304 of 8388608 in 2, "
                           "largest free 3145728\n"
                           "cuda:5: 0 of 0, peak 0, asked 0\n"
                           "held on cuda:0: 4194304 in 1, train.py:31\n"
                           "held on cuda:0: 3145728 in 1, train.py:11\n");
    expect_text(&told, "cumem: memory ran out on cuda:5: OutOfMemoryError\n");
    expect_text(&told, "   held  7.0 MiB by C++ alone: 4.0 MiB train.py:31 "
                       "step:; +1 more\n");
    told_release(&told);
}

static void
why_memory_ran_out_follows_from_the_events(void **state)
{
    (void)state;
    for (size_t way = 0; way < WAYS; way++) {
        struct program program;
        program_init(&program, REPLAYS "/out_of_memory.txt", TRAINING, way);
        program_play(&program, NULL, "# the program");
        expect_counts(&program, 2, 1);
        expect_pieces(&program);
        program_play(&program, "# the program", NULL);
        expect_counts(&program, 4, 2);
        expect_another_device(&program);
        program_release(&program);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_iteration_is_told_as_its_events_say),
        cmocka_unit_test(what_each_iteration_keeps_is_told_as_a_leak),
        cmocka_unit_test(why_memory_ran_out_follows_from_the_events),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
