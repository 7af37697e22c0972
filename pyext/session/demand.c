/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The handler posts a semaphore and does nothing else: CPython's own way to a
 * safe point takes a lock, which the signal may have interrupted.  A native
 * thread, made when the signal is asked for, waits on it and adds the pending
 * call; so a program that makes no tensors answers too.  CPython 3.11 and 3.12
 * let the main thread overlook a call that another one added, until it has
 * taken the GIL anew: so the GIL is taken from it for a moment. */

#define _GNU_SOURCE
#include "demand.h"
#include "../../detector/hot.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../tables/interrupts.h"
#include "session_private.h"

static struct {
    sem_t posted; /* made once, never destroyed: a handler may come late */
    bool made;    /* guarded by the GIL, as below */
    int number;   /* 0: none */
    struct sigaction before;
    atomic_bool deaf; /* the interpreter ends: only the handler stays */
    atomic_bool again;
    _Atomic uint64_t asked, answered;
} demand;

static void
on_signal(int number)
{
    int kept = errno;
    (void)number;
    sem_post(&demand.posted);
    errno = kept;
}

/* Ours may be gone by now, and so may the session. */
static int
answer_pending(void *unused)
{
    struct cm_session *self = cm_session_main();
    (void)unused;
    if (self == NULL || self->silent || self->deliver == NULL) {
        return 0;
    }
    if (self->collecting || !cm_session_is_here(self)) {
        atomic_store(&demand.again, true);
        return 0;
    }
    cm_digest_demand(self->digest);
    PyObject *callable = Py_NewRef(self->deliver);
    cm_interrupts_enter();
    PyObject *answer = PyObject_CallFunction(callable, "sO", "asked", Py_None);
    if (answer == Py_False) {
        atomic_store(&demand.again, true);
    }
    else if (answer != NULL) {
        atomic_fetch_add(&demand.answered, 1);
    }
    else if (!cm_interrupts_keep(false)) {
        PyErr_WriteUnraisable(callable);
    }
    cm_interrupts_leave();
    Py_XDECREF(answer);
    Py_DECREF(callable);
    return 0;
}

static void
ask(void)
{
    atomic_fetch_add(&demand.asked, 1);
    if (Py_AddPendingCall(answer_pending, NULL) != 0) {
        atomic_store(&demand.again, true); /* the queue is full */
    }
    PyGILState_Release(PyGILState_Ensure());
}

static void *
wait_for_signals(void *unused)
{
    for (;;) {
        while (sem_wait(&demand.posted) != 0) {
        }
        while (sem_trywait(&demand.posted) == 0) { /* several are one */
        }
        if (!atomic_load(&demand.deaf)) {
            ask();
            sleep(1); /* the program is to get on, however often one asks */
        }
    }
    return unused;
}

CM_HOT void
cm_demand_again(void)
{
    if (atomic_load_explicit(&demand.again, memory_order_relaxed)
        && atomic_exchange(&demand.again, false)
        && Py_AddPendingCall(answer_pending, NULL) != 0) {
        atomic_store(&demand.again, true);
    }
}

/* The thread lives as long as the process, and sleeps. */
static bool
make_thread(void)
{
    pthread_t thread;
    sigset_t all, before;
    if (demand.made) {
        return true;
    }
    if (sem_init(&demand.posted, 0, 0) != 0) {
        return false;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    demand.made = pthread_create(&thread, NULL, wait_for_signals, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (demand.made) {
        pthread_detach(thread);
    }
    return demand.made;
}

static bool
is_ours(int number)
{
    struct sigaction now;
    return number != 0 && sigaction(number, NULL, &now) == 0
           && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == on_signal;
}

static void
put_back(void)
{
    if (is_ours(demand.number)) {
        sigaction(demand.number, &demand.before, NULL);
    }
    demand.number = 0;
}

/* NULL: done; else a constant text. */
static const char *
take(int number)
{
    struct sigaction before, ours = {.sa_flags = SA_RESTART};
    if (sigaction(number, NULL, &before) != 0) {
        return "there is no such signal";
    }
    if ((before.sa_flags & SA_SIGINFO) != 0
        || (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)) {
        return "the program has a handler for it";
    }
    if (!make_thread()) {
        return "no thread can be had to wait for it";
    }
    ours.sa_handler = on_signal;
    sigemptyset(&ours.sa_mask);
    if (sigaction(number, &ours, NULL) != 0) {
        return "it cannot be handled";
    }
    demand.before = before;
    demand.number = number;
    atomic_store(&demand.deaf, false);
    return NULL;
}

PyObject *
cm_demand(PyObject *module, PyObject *number)
{
    long wanted = PyLong_AsLong(number);
    const char *why = NULL;
    (void)module;
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (wanted < 0) {
        atomic_store(&demand.deaf, true);
    }
    else if (wanted != demand.number) {
        put_back();
        why = wanted != 0 ? take((int)wanted) : NULL;
    }
    return why != NULL ? PyUnicode_FromString(why) : Py_NewRef(Py_None);
}

/* The thread is not in the child, and its semaphore may be half taken. */
void
cm_demand_off(void)
{
    put_back();
    demand.made = false;
}

PyObject *
cm_demand_status(void)
{
    const char *state = demand.number == 0       ? "not asked for"
                        : is_ours(demand.number) ? "heard"
                                                 : "the program has taken it";
    return Py_BuildValue("{sisssKsK}", "number", demand.number, "state", state,
                         "asked", (unsigned long long)demand.asked, "answered",
                         (unsigned long long)demand.answered);
}
