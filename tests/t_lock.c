/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../detector/lock.h"

enum { FORKS = 1000 };

struct shared {
    struct cm_lock locks[2];
    long pairs[2][2]; /* equal while the lock is not held */
    atomic_bool stop;
};

static void
change(struct shared *shared, int which)
{
    cm_lock_take(&shared->locks[which]);
    shared->pairs[which][0]++;
    atomic_signal_fence(memory_order_seq_cst);
    shared->pairs[which][1]++;
    cm_lock_give(&shared->locks[which]);
}

static void *
change_all_the_time(void *context)
{
    struct shared *shared = context;
    while (!atomic_load(&shared->stop)) {
        change(shared, 0);
        change(shared, 1);
    }
    return NULL;
}

/* In the child: every lock can be had, and what it guards is whole. */
static int
child(struct shared *shared)
{
    alarm(10);
    for (int which = 0; which < 2; which++) {
        if (shared->pairs[which][0] != shared->pairs[which][1]) {
            return 1;
        }
        change(shared, which);
        cm_lock_release(&shared->locks[which]);
    }
    return 0;
}

static void
is_free_and_whole_in_a_forked_child(void **state)
{
    (void)state;
    static struct shared shared;
    for (int which = 0; which < 2; which++) {
        assert_int_equal(cm_lock_init(&shared.locks[which]), CM_OK);
    }
    pthread_t thread;
    assert_int_equal(
        pthread_create(&thread, NULL, change_all_the_time, &shared), 0);
    for (int at = 0; at < FORKS; at++) {
        pid_t pid = fork();
        if (pid == 0) {
            _exit(child(&shared));
        }
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    atomic_store(&shared.stop, true);
    pthread_join(thread, NULL);
    cm_lock_release(&shared.locks[0]);
    cm_lock_release(&shared.locks[1]);
}

static void
can_be_released_in_any_order(void **state)
{
    (void)state;
    static struct cm_lock locks[3];
    const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}};
    for (size_t order = 0; order < 4; order++) {
        for (int at = 0; at < 3; at++) {
            assert_int_equal(cm_lock_init(&locks[at]), CM_OK);
        }
        for (int at = 0; at < 3; at++) {
            cm_lock_release(&locks[orders[order][at]]);
            pid_t pid = fork(); /* walks the locks that are left */
            if (pid == 0) {
                _exit(0);
            }
            assert_int_equal(waitpid(pid, NULL, 0), pid);
        }
    }
}

#ifdef CM_DEBUG
enum breach { TAKE_SECOND, MAKE_SECOND, RELEASE_SECOND, FORK, BREACHES };

static void
commit(enum breach breach, struct cm_lock *locks)
{
    cm_lock_take(&locks[0]);
    switch (breach) {
    case TAKE_SECOND: cm_lock_take(&locks[1]); break;
    case MAKE_SECOND: _exit(cm_lock_init(&locks[2]) == CM_OK);
    case RELEASE_SECOND: cm_lock_release(&locks[1]); break;
    case FORK: _exit(fork() == 0);
    case BREACHES: break;
    }
}

static void
aborts_a_debug_build_that_takes_it_for_no_leaf(void **state)
{
    (void)state;
    static struct cm_lock locks[3];
    assert_int_equal(cm_lock_init(&locks[0]), CM_OK);
    assert_int_equal(cm_lock_init(&locks[1]), CM_OK);
    for (enum breach breach = TAKE_SECOND; breach < BREACHES; breach++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0) {
            commit(breach, locks);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
    cm_lock_release(&locks[0]);
    cm_lock_release(&locks[1]);
}
#endif

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_free_and_whole_in_a_forked_child),
        cmocka_unit_test(can_be_released_in_any_order),
#ifdef CM_DEBUG
        cmocka_unit_test(aborts_a_debug_build_that_takes_it_for_no_leaf),
#endif
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
