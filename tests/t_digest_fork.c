/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "heap_builder.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../detector/alloc.h"
#include "../reports/digest.h"
#include "../reports/leak_json.h"

/* A child has threads of its own, and not those of its parent. */
__attribute__((visibility("default"))) const char *__tsan_default_options(
    void);
const char *
__tsan_default_options(void)
{
    return "die_after_fork=0:report_thread_leaks=0";
}

static const char pair[] =
    "a Node; b Node; t Tensor 4194304; a .link b; b .link a; a .t t";

struct scene {
    struct built *built;
    struct cm_digest *digest;
    char folder[64];
    char pipe[128]; /* who reads it as suppressions has the lock meanwhile */
    int writer;
    pthread_t reader;
};

static void
make_pipe(struct scene *scene, const char *name)
{
    snprintf(scene->pipe, sizeof(scene->pipe), "%s/%s", scene->folder, name);
    assert_int_equal(mkfifo(scene->pipe, 0600), 0);
}

static int
set_up(void **state)
{
    static struct scene the_scene;
    struct scene *scene = &the_scene;
    *scene = (struct scene){0};
    scene->built = built_new(pair);
    scene->digest = cm_digest_new(scene->built->records);
    strcpy(scene->folder, "/tmp/t_digest_fork.XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    make_pipe(scene, "pipe");
    *state = scene;
    return scene->digest == NULL;
}

static int
tear_down(void **state)
{
    struct scene *scene = *state;
    cm_digest_free(scene->digest);
    built_free(scene->built);
    unlink(scene->pipe);
    return rmdir(scene->folder);
}

static void *
read_pipe(void *context)
{
    struct scene *scene = context;
    cm_digest_suppress(scene->digest, scene->pipe);
    return NULL;
}

/* After: another thread has the lock, until let_go(). */
static void
have_it_held(struct scene *scene)
{
    assert_int_equal(pthread_create(&scene->reader, NULL, read_pipe, scene),
                     0);
    do { /* until somebody reads */
        scene->writer = open(scene->pipe, O_WRONLY | O_NONBLOCK);
    } while (scene->writer < 0 && usleep(1000) == 0);
    assert_true(scene->writer >= 0);
}

static void
let_go(struct scene *scene)
{
    close(scene->writer);
    pthread_join(scene->reader, NULL);
}

static size_t
cycles_in(struct cm_digest *digest)
{
    struct cm_buffer document = {0};
    struct cm_leak leak = {0};
    char error[CM_LEAK_JSON_ERROR_BYTES];
    assert_int_equal(cm_digest_export(digest, &document), CM_OK);
    assert_int_equal(
        cm_leak_json_read(document.bytes, document.length, &leak, error),
        CM_OK);
    assert_string_equal(cm_leak_text(&leak, leak.allocator_hook), "none");
    size_t count = leak.cycle_count;
    cm_leak_release(&leak);
    cm_buffer_release(&document);
    return count;
}

/* Each kind of call, as a session makes them. */
static void
use(struct scene *scene)
{
    struct cm_digest *digest = scene->digest;
    struct cm_digest_counts counts;
    cm_digest_output(digest, NULL, true, 1);
    cm_digest_describe(digest, "torch", "2");
    cm_digest_number(digest, "iteration", 3);
    cm_digest_collector_off(digest, true);
    cm_digest_collection(digest, 2, 1, 1, 1);
    cm_digest_exhausted_all(digest);
    assert_int_equal(cm_digest_add(digest, &scene->built->heap), CM_OK);
    assert_int_equal(cm_digest_write(digest, true), CM_OK);
    cm_free(cm_digest_take_warning(digest, NULL));
    cm_free(cm_digest_report_path(digest));
    cm_digest_counts(digest, &counts);
}

/* What the child answers; a child that hangs is ended by the signal. */
static int
fork_for(struct scene *scene, int (*child)(struct scene *))
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(10);
        _exit(child(scene));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int
uses_it(struct scene *scene)
{
    size_t before = cycles_in(scene->digest);
    use(scene);
    bool whole = before == 0 && cycles_in(scene->digest) == 1;
    cm_digest_free(scene->digest);
    return whole ? 0 : 1;
}

static void
begins_anew_where_another_thread_had_it(void **state)
{
    struct scene *scene = *state;
    use(scene);
    cm_digest_suppress(scene->digest, "/dev/null"); /* forgets heaps */
    long live = cm_alloc_live();
    have_it_held(scene);
    assert_int_equal(fork_for(scene, uses_it), 0);
    let_go(scene);
    assert_int_equal(cm_alloc_live(), live);
    assert_int_equal(cycles_in(scene->digest), 1);
}

static int
forks_with_it_held(struct scene *scene)
{
    make_pipe(scene, "again");
    have_it_held(scene);
    unlink(scene->pipe);
    return fork_for(scene, uses_it) == 0 ? 0 : 1;
}

static void
does_so_in_a_childs_child(void **state)
{
    struct scene *scene = *state;
    use(scene);
    have_it_held(scene);
    assert_int_equal(fork_for(scene, forks_with_it_held), 0);
    let_go(scene);
}

static int
has_what_was_there(struct scene *scene)
{
    use(scene);
    return cycles_in(scene->digest) == 1 ? 0 : 1;
}

static void
is_as_it_was_where_nobody_had_it(void **state)
{
    struct scene *scene = *state;
    use(scene);
    assert_int_equal(fork_for(scene, has_what_was_there), 0);
    assert_int_equal(cycles_in(scene->digest), 1);
}

static void *
let_go_later(void *context)
{
    struct scene *scene = context;
    usleep(50000);
    close(scene->writer);
    return NULL;
}

static void
is_waited_for_where_there_is_no_memory(void **state)
{
    struct scene *scene = *state;
    pthread_t thread;
    use(scene);
    have_it_held(scene);
    assert_int_equal(pthread_create(&thread, NULL, let_go_later, scene), 0);
    cm_alloc_fail_at(0, true);
    pid_t pid = fork();
    cm_alloc_fail_at(-1, false);
    if (pid == 0) {
        alarm(10);
        _exit(has_what_was_there(scene));
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    pthread_join(thread, NULL);
    pthread_join(scene->reader, NULL);
}

int
main(void)
{
#define WITH_SCENE(test)                                                      \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_SCENE(begins_anew_where_another_thread_had_it),
        WITH_SCENE(does_so_in_a_childs_child),
        WITH_SCENE(is_as_it_was_where_nobody_had_it),
        WITH_SCENE(is_waited_for_where_there_is_no_memory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
