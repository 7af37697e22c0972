/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "heap_builder.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../detector/clock.h"
#include "../reports/digest.h"
#include "../reports/file.h"
#include "../reports/leak_json.h"
#include "digest_case.h"
#include "digest_scene.h"
#include "fail_each.h"

/* As a session does: find, then the document of what was found. */
static enum cm_status
see_with(struct cm_digest *digest, const struct scene *scene, bool recorded,
         struct cm_buffer *document)
{
    struct cm_findings findings = {0};
    const struct cm_heap *heap = &scene->built->heap;
    enum cm_status status = cm_digest_find(digest, heap, recorded, &findings);
    if (status == CM_OK) {
        status = cm_digest_document(digest, heap, &findings, 1, document);
    }
    cm_findings_release(&findings);
    return status;
}

static enum cm_status
see(const struct scene *scene, bool recorded, struct cm_buffer *document)
{
    return see_with(scene->digest, scene, recorded, document);
}

static bool
exists(const char *folder, const char *name)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void
test_a_finding_is_written_and_said_once(void **state)
{
    struct scene *scene = *state;
    cm_digest_output(scene->digest, scene->path, true, 1 << 20);
    assert_int_equal(cm_digest_add(scene->digest, &scene->built->heap), CM_OK);
    assert_true(exists(scene->folder, "leak.json"));
    assert_true(cm_digest_warns(scene->digest));
    bool finding = false;
    char *text = cm_digest_take_warning(scene->digest, &finding);
    assert_true(finding);
    assert_non_null(strstr(text, "#1 DEAD CYCLE, 4.0 MiB"));
    assert_non_null(strstr(text, "leak.json"));
    cm_free(text);
    assert_null(cm_digest_take_warning(scene->digest, NULL));
    char *path = cm_digest_report_path(scene->digest);
    assert_string_equal(path, scene->path);
    cm_free(path);
}

static size_t
found(const struct scene *scene)
{
    struct cm_findings findings = {0};
    assert_int_equal(
        cm_digest_find(scene->digest, &scene->built->heap, false, &findings),
        CM_OK);
    size_t count = findings.count;
    cm_findings_release(&findings);
    return count;
}

/* Also where the heap is known from before the rules came. */
static void
test_suppressed_findings_are_left_out(void **state)
{
    struct scene *scene = *state;
    char path[200];
    snprintf(path, sizeof(path), "%s/rules", scene->folder);
    assert_int_equal(cm_file_write(path, "type Node\n", 10, false), CM_OK);
    assert_int_equal(found(scene), 1);
    assert_int_equal(found(scene), 1);
    cm_digest_suppress(scene->digest, path);
    assert_int_equal(found(scene), 0);
    assert_int_equal(found(scene), 0);
}

static void
test_growth_is_said_when_it_has_doubled(void **state)
{
    struct scene *scene = *state;
    int said = 0;
    cm_digest_output(scene->digest, scene->path, true, 0);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(cm_digest_add(scene->digest, &scene->built->heap),
                         CM_OK);
        char *text = cm_digest_take_warning(scene->digest, NULL);
        said += text != NULL;
        cm_free(text);
    }
    assert_int_equal(said, 4); /* 1, 2, 4, 8 */
}

static void
test_small_findings_are_written_but_not_said(void **state)
{
    struct scene *scene = *state;
    cm_digest_output(scene->digest, scene->path, true, 1 << 30);
    assert_int_equal(cm_digest_add(scene->digest, &scene->built->heap), CM_OK);
    assert_false(cm_digest_warns(scene->digest));
    assert_true(exists(scene->folder, "leak.json"));
}

/* Of a cycle that lives wholly in a library a person hears that it is there,
 * and how to see it. */
static void
test_librarys_findings_are_counted_aloud(void **state)
{
    struct scene *scene = *state;
    struct built *built =
        built_new("library H lit; code i /v/site-packages/lit/h.py:3 H.f lib;"
                  "store i attr me self 4; methods H i; o H; t Tensor 4194304;"
                  "o .me o; o .t t");
    struct cm_digest *digest = cm_digest_new(built->records);

    cm_digest_output(digest, scene->path, true, UINT64_C(1) << 30);
    assert_int_equal(cm_digest_add(digest, &built->heap), CM_OK);
    assert_false(cm_digest_warns(digest)); /* too small */
    cm_digest_output(digest, scene->path, true, 1 << 20);
    assert_int_equal(cm_digest_add(digest, &built->heap), CM_OK);
    bool finding = true;
    char *text = cm_digest_take_warning(digest, &finding);
    assert_non_null(text);
    assert_false(finding);
    assert_null(strstr(text, "#1"));
    assert_non_null(strstr(text, "4.0 MiB"));
    assert_non_null(strstr(text, "\nhidden: 1 in libraries (lit)"));
    cm_free(text);
    cm_digest_free(digest);
    built_free(built);
}

/* However many kinds die at once, a job's log gets a few of them; the file has
 * all. */
static void
test_a_warning_has_a_bound(void **state)
{
    struct scene *scene = *state;
    struct cm_buffer source = {0}, document = {0};
    for (int i = 1; i <= 9; i++) {
        cm_buffer_addf(&source,
                       "n%d Kind%d; t%d Tensor %d; n%d .me n%d; n%d .t t%d;",
                       i, i, i, i << 20, i, i, i, i);
    }
    struct built *built = built_new(cm_buffer_text(&source));
    struct cm_digest *digest = cm_digest_new(built->records);

    cm_digest_output(digest, scene->path, true, 1 << 20);
    assert_int_equal(cm_digest_add(digest, &built->heap), CM_OK);
    char *text = cm_digest_take_warning(digest, NULL);
    assert_non_null(text);
    assert_non_null(strstr(text, "#1 DEAD CYCLE, 9.0 MiB"));
    assert_non_null(strstr(text, "#5 DEAD CYCLE, 5.0 MiB"));
    assert_null(strstr(text, "#6"));
    assert_non_null(strstr(text, "\nhidden: 4 more (at most 10 MiB)"));
    assert_non_null(strstr(text, "leak.json\n"));
    assert_null(cm_digest_take_warning(digest, NULL));
    assert_int_equal(cm_digest_export(digest, &document), CM_OK);
    for (int i = 1; i <= 9; i++) {
        char size[40];
        snprintf(size, sizeof(size), "\"peak_bytes\":%d", i << 20);
        assert_non_null(strstr(cm_buffer_text(&document), size));
    }
    cm_free(text);
    cm_buffer_release(&document);
    cm_buffer_release(&source);
    cm_digest_free(digest);
    built_free(built);
}

static void
test_a_file_that_is_there_is_left_alone(void **state)
{
    struct scene *scene = *state;
    FILE *file = fopen(scene->path, "w");
    assert_non_null(file);
    fputs("precious", file);
    fclose(file);
    cm_digest_output(scene->digest, scene->path, true, 0);
    assert_int_equal(cm_digest_add(scene->digest, &scene->built->heap), CM_OK);
    assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
    assert_true(exists(scene->folder, "leak-2.json"));
    assert_false(exists(scene->folder, "leak-3.json"));
    struct stat status;
    assert_int_equal(stat(scene->path, &status), 0);
    assert_int_equal(status.st_size, 8);
}

/* As if nobody had asked for another name: /dev/null-2 is no file to leave. */
static void
test_what_is_no_file_is_not_written_beside(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(mkfifo(scene->path, 0600), 0);
    cm_digest_output(scene->digest, scene->path, true, 0);
    assert_int_equal(cm_digest_add(scene->digest, &scene->built->heap), CM_OK);
    assert_false(exists(scene->folder, "leak-2.json"));
    char *text = cm_digest_take_warning(scene->digest, NULL);
    assert_non_null(strstr(text, "the report is not written to "));
    assert_non_null(strstr(text, ": Operation not supported\n"));
    cm_free(text);
}

static void
test_a_folder_that_is_not_there_is_counted(void **state)
{
    struct scene *scene = *state;
    struct cm_digest_counts counts;
    cm_digest_output(scene->digest, "/nonexistent/leak.json", true, 0);
    assert_int_equal(cm_digest_add(scene->digest, &scene->built->heap), CM_OK);
    cm_digest_counts(scene->digest, &counts);
    assert_int_equal(counts.write_errors, 1);
    assert_int_equal(counts.reports_written, 0);
    char *warning = cm_digest_take_warning(scene->digest, NULL);
    assert_non_null(warning);
    assert_non_null(strstr(warning, "\ncumem: the report is not written to "
                                    "/nonexistent/leak.json: "
                                    "No such file or directory\n"));
    cm_free(warning);
}

static void
test_an_event_is_a_document_of_its_own(void **state)
{
    struct scene *scene = *state;
    struct cm_buffer event = {0};
    cm_digest_describe(scene->digest, "host", "node7");
    cm_digest_number(scene->digest, "rank", 3);
    for (int i = 0; i < 2; i++) {
        cm_buffer_clear(&event);
        assert_int_equal(see(scene, true, &event), CM_OK);
        assert_non_null(strstr(event.bytes, "\"count\":1"));
        assert_non_null(strstr(event.bytes, "\"host\":\"node7\""));
        assert_non_null(strstr(event.bytes, "\"rank\":3"));
    }
    cm_buffer_release(&event);
}

static void
test_a_scan_that_is_not_recorded_leaves_nothing(void **state)
{
    struct scene *scene = *state;
    struct cm_buffer event = {0};
    cm_digest_output(scene->digest, scene->path, true, 0);
    assert_int_equal(see(scene, false, &event), CM_OK);
    assert_non_null(strstr(event.bytes, "\"fingerprint\""));
    assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
    assert_false(exists(scene->folder, "leak.json"));
    cm_buffer_clear(&event);
    assert_int_equal(cm_digest_document(scene->digest, NULL, NULL, 0, &event),
                     CM_OK);
    assert_non_null(strstr(event.bytes, "\"cycles\":[]"));
    cm_buffer_release(&event);
}

/* Out of memory, then exit, then a collection: the same cycle each time. */
static void
test_what_scans_see_again_is_counted_once(void **state)
{
    struct scene *scene = *state;
    struct cm_heap *heap = &scene->built->heap;
    struct cm_buffer event = {0};
    cm_digest_output(scene->digest, scene->path, true, 0);
    heap->trigger = CM_TRIGGER_OOM;
    assert_int_equal(see(scene, true, &event), CM_OK);
    heap->trigger = CM_TRIGGER_EXIT;
    assert_int_equal(see(scene, true, &event), CM_OK);
    heap->trigger = CM_TRIGGER_GC;
    assert_int_equal(cm_digest_add(scene->digest, heap), CM_OK);
    assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
    cm_buffer_clear(&event);
    assert_int_equal(cm_file_read(scene->path, &event), CM_OK);
    assert_non_null(strstr(event.bytes, "\"count\":1,"));
    assert_int_equal(cm_digest_add(scene->digest, heap), CM_OK);
    assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
    cm_buffer_clear(&event);
    assert_int_equal(cm_file_read(scene->path, &event), CM_OK);
    assert_non_null(strstr(event.bytes, "\"count\":2,"));
    cm_buffer_release(&event);
}

static void
test_collections_are_thinned(void **state)
{
    struct scene *scene = *state;
    struct cm_buffer event = {0};
    for (int i = 0; i < 10000; i++) {
        cm_digest_collection(scene->digest, 2, 5, 1, 0);
    }
    cm_digest_output(scene->digest, scene->path, true, 0);
    assert_int_equal(see(scene, true, &event), CM_OK);
    assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
    struct stat status;
    assert_int_equal(stat(scene->path, &status), 0);
    assert_true(status.st_size > 1000 * 20 && status.st_size < 2000 * 120);
    cm_buffer_release(&event);
}

/* Nothing dead, and yet there is something to say. */
static void
test_out_of_memory_is_written_without_findings(void **state)
{
    struct scene *scene = *state;
    struct cm_buffer file = {0};
    struct cm_device_use use;
    const struct cm_held held = {
        .device = "cuda:0", .framework = "torch", .bytes = 7, .count = 1};
    cm_digest_output(scene->digest, scene->path, true, 0);
    cm_device_use_init(&use, "cuda:0");
    use.allocated = 5;
    cm_digest_device(scene->digest, &use);
    cm_digest_iteration(scene->digest, "cuda:0", 1, 2, 3, 4);
    assert_int_equal(cm_digest_held(scene->digest, &held, 1), CM_OK);
    assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
    assert_false(exists(scene->folder, "leak.json"));
    use.asked_bytes = 512;
    cm_digest_device(scene->digest, &use);
    assert_int_equal(cm_digest_write(scene->digest, false), CM_OK);
    assert_int_equal(cm_file_read(scene->path, &file), CM_OK);
    assert_non_null(strstr(file.bytes, "\"asked_bytes\":512"));
    assert_non_null(strstr(file.bytes, "\"iterations\":[[1,2,3,4]]"));
    assert_non_null(strstr(file.bytes, "\"held\":[\n{\"device\":\"cuda:0\""));
    assert_non_null(strstr(file.bytes, "\"cycles\":[]"));
    cm_buffer_release(&file);
}

static void
test_an_event_has_the_memory_of_the_process(void **state)
{
    struct scene *scene = *state;
    struct cm_buffer event = {0};
    struct cm_device_use use;
    const struct cm_framework_use torch = {"torch", 1, 2};
    const struct cm_held held = {
        .device = "cuda:0", .framework = "torch", .bytes = 7, .count = 1};
    cm_device_use_init(&use, "cuda:0");
    use.frameworks = &torch;
    use.framework_count = 1;
    cm_digest_device(scene->digest, &use);
    cm_digest_iteration(scene->digest, "cuda:0", 1, 2, 3, -1);
    assert_int_equal(cm_digest_held(scene->digest, &held, 1), CM_OK);
    assert_int_equal(see(scene, true, &event), CM_OK);
    assert_non_null(strstr(event.bytes, "\"frameworks\":[{\"name\":\"torch\""
                                        ",\"allocated\":1,\"reserved\":2}]"));
    assert_non_null(strstr(event.bytes, "\"iterations\":[[1,2,3,null]]"));
    assert_non_null(strstr(event.bytes, "\"held\":["));
    cm_buffer_release(&event);
}

static void
test_a_report_on_demand(void **state)
{
    struct scene *scene = *state;
    struct cm_buffer document = {0};
    cm_digest_output(scene->digest, scene->path, true, 0);
    assert_int_equal(cm_case_grow(scene->digest, "settled", 4096), CM_OK);
    assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
    assert_false(exists(scene->folder, "leak.json"));
    cm_digest_demand(scene->digest);
    cm_digest_collector_off(scene->digest, true);
    assert_int_equal(cm_digest_write(scene->digest, false), CM_OK);
    assert_true(exists(scene->folder, "leak.json"));
    assert_int_equal(cm_digest_export(scene->digest, &document), CM_OK);
    assert_non_null(strstr(document.bytes, "\"verdict\":\"settled\""));
    assert_non_null(strstr(document.bytes, "\"points\":[[0,0,4096]]"));
    assert_non_null(strstr(document.bytes, "\"off\":true"));
    cm_buffer_release(&document);
}

static void
read_looks(struct scene *scene, struct cm_leak *leak)
{
    char error[CM_LEAK_JSON_ERROR_BYTES];
    struct cm_buffer json = {0};
    assert_int_equal(cm_file_read(scene->path, &json), CM_OK);
    assert_int_equal(cm_leak_json_read(json.bytes, json.length, leak, error),
                     CM_OK);
    cm_buffer_release(&json);
}

/* What changes after the last finding is in the file too. */
static void
test_looks_are_written_with_the_length_of_the_run(void **state)
{
    struct scene *scene = *state;
    struct cm_buffer event = {0};
    struct cm_digest_counts before, after;
    struct cm_leak_looks looks = {.count = 1};
    uint64_t began_ns = cm_clock_ns(CLOCK_MONOTONIC) - 5000000000;
    cm_digest_output(scene->digest, scene->path, true, 0);
    assert_int_equal(see(scene, true, &event), CM_OK);
    cm_digest_looks(scene->digest, &looks, began_ns);
    assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
    cm_digest_counts(scene->digest, &before);
    looks.saved_bytes = 7;
    for (int i = 0; i < 2; i++) {
        struct cm_leak leak = {0};
        cm_digest_looks(scene->digest, &looks, began_ns);
        assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
        read_looks(scene, &leak);
        assert_int_equal(leak.looks.count, 1);
        assert_int_equal(leak.looks.saved_bytes, 7);
        assert_in_range(leak.looks.run_us, 5000000, 100000000);
        cm_leak_release(&leak);
    }
    cm_digest_counts(scene->digest, &after);
    assert_int_equal(after.reports_written, before.reports_written + 1);
    cm_buffer_release(&event);
}

static enum cm_status
whole_life(void *context)
{
    struct scene *scene = context;
    struct cm_buffer event = {0};
    struct cm_digest *digest = cm_digest_new(scene->built->records);
    if (digest == NULL) {
        return CM_NO_MEMORY;
    }
    cm_digest_output(digest, scene->path, true, 0);
    enum cm_status status = see_with(digest, scene, true, &event);
    if (status == CM_OK) {
        status = cm_digest_write(digest, true);
    }
    if (status == CM_OK) {
        status = cm_case_grow(digest, "leak", 4096);
    }
    cm_free(cm_digest_take_warning(digest, NULL));
    cm_buffer_release(&event);
    cm_digest_free(digest);
    return status;
}

static void
test_each_allocation_fails_in_turn(void **state)
{
    struct scene *scene = *state;
    /* No file: what fails is memory alone. */
    strcpy(scene->path, "/dev/null/leak.json");
    cm_fail_each(whole_life, scene);
}

enum { THREADS = 3, ROUNDS = 40 };

/* As the native thread and the threads that collect do. */
static void *
add_write_and_take(void *context)
{
    const struct scene *scene = context;
    for (int i = 0; i < ROUNDS; i++) {
        struct cm_buffer document = {0};
        bool wrong = see(scene, true, &document) != CM_OK
                     || cm_digest_write(scene->digest, true) != CM_OK;
        cm_digest_collection(scene->digest, 2, 1, 2, 3);
        wrong |=
            cm_case_grow(scene->digest, "leak", (uint64_t)i << 20) != CM_OK;
        cm_digest_number(scene->digest, "iteration", i);
        cm_free(cm_digest_take_warning(scene->digest, NULL));
        cm_free(cm_digest_report_path(scene->digest));
        cm_buffer_release(&document);
        if (wrong) {
            return context;
        }
    }
    return NULL;
}

static void
test_serves_threads_at_once(void **state)
{
    struct scene *scene = *state;
    struct cm_digest_counts counts;
    pthread_t threads[THREADS];
    cm_digest_output(scene->digest, scene->path, true, 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, add_write_and_take, scene), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    cm_digest_counts(scene->digest, &counts);
    assert_int_equal(counts.heaps, THREADS * ROUNDS);
    assert_int_equal(counts.write_errors, 0);
}

int
main(void)
{
#define WITH_SCENE(test)                                                      \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_SCENE(test_a_finding_is_written_and_said_once),
        WITH_SCENE(test_suppressed_findings_are_left_out),
        WITH_SCENE(test_growth_is_said_when_it_has_doubled),
        WITH_SCENE(test_small_findings_are_written_but_not_said),
        WITH_SCENE(test_librarys_findings_are_counted_aloud),
        WITH_SCENE(test_a_warning_has_a_bound),
        WITH_SCENE(test_a_file_that_is_there_is_left_alone),
        WITH_SCENE(test_what_is_no_file_is_not_written_beside),
        WITH_SCENE(test_a_folder_that_is_not_there_is_counted),
        WITH_SCENE(test_an_event_is_a_document_of_its_own),
        WITH_SCENE(test_a_scan_that_is_not_recorded_leaves_nothing),
        WITH_SCENE(test_what_scans_see_again_is_counted_once),
        WITH_SCENE(test_collections_are_thinned),
        WITH_SCENE(test_out_of_memory_is_written_without_findings),
        WITH_SCENE(test_an_event_has_the_memory_of_the_process),
        WITH_SCENE(test_a_report_on_demand),
        WITH_SCENE(test_looks_are_written_with_the_length_of_the_run),
        WITH_SCENE(test_each_allocation_fails_in_turn),
        WITH_SCENE(test_serves_threads_at_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
