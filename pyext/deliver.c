/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What the session tells Python: never under a lock of ours. */

#include "session_private.h"

#include <string.h>

#include "../detector/alloc.h"
#include "../detector/hot.h"
#include "driver_events.h"

void
cm_session_deliver(struct cm_session *self, const char *kind,
                   PyObject *payload)
{
    PyObject *callable = Py_XNewRef(self->deliver);
    if (callable != NULL && payload != NULL) {
        PyObject *answer =
            PyObject_CallFunction(callable, "sO", kind, payload);
        if (answer == NULL) {
            PyErr_WriteUnraisable(callable);
        }
        Py_XDECREF(answer);
    }
    PyErr_Clear();
    Py_XDECREF(payload);
    Py_XDECREF(callable);
}

CM_HOT void
cm_session_drain_warnings(struct cm_session *self)
{
    char *text;
    while (self->deliver != NULL
           && (text = cm_digest_take_warning(self->digest)) != NULL) {
        cm_session_deliver(
            self, "warning",
            PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"));
        cm_free(text);
    }
    const char *said;
    while (self->deliver != NULL && cm_session_is_main(self)
           && (said = cm_driver_events_warning()) != NULL) {
        cm_session_deliver(self, "warning", PyUnicode_DecodeFSDefault(said));
    }
}
