/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A disk that takes its time: fsync() here waits until the test says so. */

#include "heap_builder.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../detector/alloc.h"
#include "../reports/digest.h"
#include "digest_case.h"
#include "digest_scene.h"

/* A child has threads of its own, and not those of its parent. */
__attribute__((visibility("default"))) const char *__tsan_default_options(
    void);
const char *
__tsan_default_options(void)
{
    return "die_after_fork=0:report_thread_leaks=0";
}

static _Atomic bool slow;
static sem_t reached, may_go_on;
static pthread_t finder;
static char other[128]; /* another path */

__attribute__((visibility("default"))) int
fsync(int descriptor)
{
    (void)descriptor;
    if (slow) {
        sem_post(&reached);
        sem_wait(&may_go_on);
    }
    return 0;
}

static int
set_up_disk(void **state)
{
    int wrong = set_up(state);
    const struct scene *scene = *state;
    if (wrong == 0) {
        cm_digest_output(scene->digest, scene->path, true, 1);
    }
    snprintf(other, sizeof(other), "%s/two.json", scene->folder);
    sem_init(&reached, 0, 0);
    sem_init(&may_go_on, 0, 0);
    return wrong;
}

static void *
find(void *context)
{
    struct scene *scene = context;
    return cm_digest_add(scene->digest, &scene->built->heap) == CM_OK ? NULL
                                                                      : scene;
}

static void *
write_now(void *context)
{
    struct scene *scene = context;
    return cm_digest_write(scene->digest, true) == CM_OK ? NULL : scene;
}

/* After: a thread that has found something waits for the disk.  Who waits for
 * that thread is ended by the signal. */
static void
have_it_written(struct scene *scene)
{
    alarm(20);
    slow = true;
    assert_int_equal(pthread_create(&finder, NULL, find, scene), 0);
    sem_wait(&reached);
    slow = false;
}

static void
let_it_go_on(void)
{
    void *wrong;
    sem_post(&may_go_on);
    assert_int_equal(pthread_join(finder, &wrong), 0);
    assert_null(wrong);
    alarm(0);
}

static uint64_t
written(const struct scene *scene)
{
    struct cm_digest_counts counts;
    cm_digest_counts(scene->digest, &counts);
    assert_int_equal(counts.write_errors, 0);
    return counts.reports_written;
}

static void
test_nobody_else_waits_for_the_disk(void **state)
{
    struct scene *scene = *state;
    have_it_written(scene);
    cm_digest_collection(scene->digest, 2, 1, 1, 1);
    cm_digest_number(scene->digest, "iteration", 3);
    cm_digest_iteration(scene->digest, "cuda:0", 3, 1, 2, 3);
    assert_int_equal(cm_digest_held(scene->digest, NULL, 0), CM_OK);
    assert_null(cm_digest_take_warning(scene->digest, NULL));
    assert_null(cm_digest_report_path(scene->digest));
    assert_int_equal(written(scene), 0);
    let_it_go_on();
    assert_int_equal(written(scene), 1);
}

/* What grows is said when the file is there; who told of it did not wait. */
static void
test_growth_is_told_without_the_disk(void **state)
{
    struct scene *scene = *state;
    alarm(20);
    slow = true;
    assert_int_equal(cm_case_grow(scene->digest, "leak", 8192), CM_OK);
    assert_int_equal(pthread_create(&finder, NULL, write_now, scene), 0);
    sem_wait(&reached);
    slow = false;
    assert_int_equal(cm_case_grow(scene->digest, "leak", 17000), CM_OK);
    assert_false(cm_digest_warns(scene->digest));
    let_it_go_on();
    for (int i = 0; i < 2; i++) {
        char *text = cm_digest_take_warning(scene->digest, NULL);
        assert_non_null(strstr(text, scene->path));
        cm_free(text);
        assert_null(cm_digest_take_warning(scene->digest, NULL));
        assert_int_equal(cm_digest_write(scene->digest, false), CM_OK);
    }
}

/* After: a thread that is about to say that a line leaks waits for the disk. */
static void
have_a_leak_written(struct scene *scene)
{
    alarm(20);
    slow = true;
    assert_int_equal(cm_case_grow(scene->digest, "leak", 8192), CM_OK);
    assert_int_equal(pthread_create(&finder, NULL, write_now, scene), 0);
    sem_wait(&reached);
    slow = false;
}

static void
expect_said(struct scene *scene, const char *expected)
{
    char *text = cm_digest_take_warning(scene->digest, NULL);
    assert_non_null(text);
    assert_non_null(strstr(text, expected));
    cm_free(text);
    assert_null(cm_digest_take_warning(scene->digest, NULL));
}

static void
expect_leak_and_its_end(struct scene *scene)
{
    expect_said(scene, "#1 LEAK");
    assert_int_equal(cm_case_grow(scene->digest, "settled", 8192), CM_OK);
    assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
    expect_said(scene, "cumem: stopped growing: ");
}

/* Who never read that it leaks need not read that it stopped. */
static void
test_what_stops_meanwhile_is_not_said(void **state)
{
    struct scene *scene = *state;
    have_a_leak_written(scene);
    assert_int_equal(cm_case_grow(scene->digest, "settled", 8192), CM_OK);
    let_it_go_on();
    assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
    assert_false(cm_digest_warns(scene->digest));
    assert_int_equal(cm_case_grow(scene->digest, "leak", 8192), CM_OK);
    assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
    expect_leak_and_its_end(scene);
}

/* Another thread comes by while it has stopped, and then it goes on. */
static void
test_nobody_says_first_that_it_stopped(void **state)
{
    struct scene *scene = *state;
    pthread_t second;
    void *wrong;
    have_a_leak_written(scene);
    assert_int_equal(cm_case_grow(scene->digest, "settled", 8192), CM_OK);
    assert_int_equal(pthread_create(&second, NULL, write_now, scene), 0);
    usleep(20000);
    assert_int_equal(cm_case_grow(scene->digest, "leak", 8192), CM_OK);
    let_it_go_on();
    assert_int_equal(pthread_join(second, &wrong), 0);
    assert_null(wrong);
    expect_leak_and_its_end(scene);
}

static void
test_what_is_said_is_in_the_file_before(void **state)
{
    struct scene *scene = *state;
    have_it_written(scene);
    assert_false(cm_digest_warns(scene->digest));
    let_it_go_on();
    char *text = cm_digest_take_warning(scene->digest, NULL);
    char *path = cm_digest_report_path(scene->digest);
    assert_non_null(strstr(text, scene->path));
    assert_string_equal(path, scene->path);
    assert_int_equal(access(path, R_OK), 0);
    cm_free(text);
    cm_free(path);
}

static void
test_one_at_a_time_writes(void **state)
{
    struct scene *scene = *state;
    pthread_t second;
    void *wrong;
    have_it_written(scene);
    cm_digest_demand(scene->digest);
    assert_int_equal(pthread_create(&second, NULL, write_now, scene), 0);
    usleep(20000);
    assert_int_equal(written(scene), 0);
    let_it_go_on();
    assert_int_equal(pthread_join(second, &wrong), 0);
    assert_null(wrong);
    assert_int_equal(written(scene), 2);
}

static void
test_another_path_is_asked_for_meanwhile(void **state)
{
    struct scene *scene = *state;
    have_it_written(scene);
    cm_digest_output(scene->digest, other, true, 1);
    let_it_go_on();
    assert_null(cm_digest_report_path(scene->digest));
    cm_digest_demand(scene->digest);
    assert_int_equal(cm_digest_write(scene->digest, true), CM_OK);
    assert_int_equal(access(other, R_OK), 0);
}

/* The thread that writes is not in the child. */
static void
test_a_child_waits_for_nobody(void **state)
{
    struct scene *scene = *state;
    int status = -1;
    have_it_written(scene);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(10);
        cm_digest_output(scene->digest, other, true, 1);
        cm_digest_demand(scene->digest);
        _exit(cm_digest_write(scene->digest, true) != CM_OK
              || access(other, R_OK) != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    let_it_go_on();
    assert_int_equal(status, 0);
}

/* What was about to be said there is said by the parent. */
static void
test_a_child_does_not_say_that_it_stopped(void **state)
{
    struct scene *scene = *state;
    int status = -1;
    have_a_leak_written(scene);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(10);
        cm_digest_output(scene->digest, other, true, 1);
        _exit(cm_case_grow(scene->digest, "settled", 8192) != CM_OK
              || cm_digest_write(scene->digest, true) != CM_OK
              || cm_digest_warns(scene->digest));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    let_it_go_on();
    assert_int_equal(status, 0);
    expect_said(scene, "#1 LEAK");
}

int
main(void)
{
#define WITH_SCENE(test)                                                      \
    cmocka_unit_test_setup_teardown(test, set_up_disk, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_SCENE(test_nobody_else_waits_for_the_disk),
        WITH_SCENE(test_growth_is_told_without_the_disk),
        WITH_SCENE(test_what_stops_meanwhile_is_not_said),
        WITH_SCENE(test_nobody_says_first_that_it_stopped),
        WITH_SCENE(test_what_is_said_is_in_the_file_before),
        WITH_SCENE(test_one_at_a_time_writes),
        WITH_SCENE(test_another_path_is_asked_for_meanwhile),
        WITH_SCENE(test_a_child_waits_for_nobody),
        WITH_SCENE(test_a_child_does_not_say_that_it_stopped),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
