/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What the session tells Python: never under a lock of ours. */

#include "session_private.h"

#include <string.h>

#include "../../detector/alloc.h"
#include "../../detector/clock.h"
#include "../../detector/hot.h"
#include "../allocations/driver_events.h"
#include "../tables/interrupts.h"
#include "../torch/dynamo.h"

void
cm_session_deliver(struct cm_session *self, const char *kind,
                   PyObject *payload)
{
    PyObject *callable = Py_XNewRef(self->deliver);
    if (callable != NULL && payload != NULL) {
        cm_interrupts_enter();
        PyObject *compiling = cm_dynamo_pause();
        PyObject *arguments[] = {PyUnicode_FromString(kind), payload};
        PyObject *answer =
            arguments[0] != NULL
                ? PyObject_Vectorcall(callable, arguments, 2, NULL)
                : NULL;
        Py_XDECREF(arguments[0]);
        if (answer == NULL && !cm_interrupts_keep(false)) {
            PyErr_WriteUnraisable(callable);
        }
        cm_dynamo_resume(compiling);
        cm_interrupts_leave();
        Py_XDECREF(answer);
    }
    PyErr_Clear();
    Py_XDECREF(payload);
    Py_XDECREF(callable);
}

void
cm_session_write(struct cm_session *self)
{
    if (self->warned) {
        enum cm_status status;
        Py_BEGIN_ALLOW_THREADS
        status = cm_digest_write(self->digest, false);
        Py_END_ALLOW_THREADS
        self->no_memory += status != CM_OK;
    }
}

bool
cm_session_write_later(struct cm_session *self)
{
    struct cm_heap nothing = {0};
    self->unsaid = cm_worker_add(self->worker, &nothing);
    return self->unsaid;
}

CM_HOT void
cm_session_drain_warnings(struct cm_session *self)
{
    char *text;
    bool finding;
    while (self->deliver != NULL
           && (text = cm_digest_take_warning(self->digest, &finding))
                  != NULL) {
        cm_session_deliver(
            self, finding ? "finding" : "warning",
            PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"));
        cm_free(text);
    }
    const char *said;
    while (self->deliver != NULL && cm_session_is_main(self)
           && (said = cm_driver_events_warning()) != NULL) {
        cm_session_deliver(self, "warning", PyUnicode_DecodeFSDefault(said));
    }
}

/* One part in so many of the time goes into asking, which costs 0.1 to 4 ms;
 * more in the beginning, when what leaks is to be found in ten iterations. */
static uint64_t
memory_share(uint64_t asked)
{
    enum { FIRST = 12, EARLY = 24 };
    return asked <= FIRST ? 10 : asked <= EARLY ? 100 : 10000;
}

CM_HOT void
cm_session_ask_memory(struct cm_session *self)
{
    uint64_t now = cm_clock_ns(CLOCK_MONOTONIC);
    bool used = self->noticed || cm_devices_accelerator(self->devices);
    if (used && now >= self->memory_not_before_ns) {
        self->memory_not_before_ns = UINT64_MAX; /* the GIL is given away */
        cm_session_deliver(self, "memory", Py_NewRef(Py_None));
        uint64_t then = cm_clock_ns(CLOCK_MONOTONIC);
        self->memory_not_before_ns =
            then + (then - now) * memory_share(++self->memory_asked);
    }
}
