/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Objects that offer __cuda_array_interface__ and belong to no framework that
 * has a reader of its own.  The attribute is user code and is not asked here:
 * such an object counts as device-backed with bytes not known, so that its
 * cycle is named at all.  The name is looked up in the dictionaries of the
 * type's bases only, without running a metaclass. */

#include "reader.h"

#include <stdio.h>
#include <string.h>

struct interface_state {
    PyObject *name; /* owned: "__cuda_array_interface__" */
};

static enum cm_learnt
interface_learn(void *state, PyObject *module, const char **reason)
{
    struct interface_state *self = state;
    (void)module;
    self->name = PyUnicode_InternFromString("__cuda_array_interface__");
    PyErr_Clear();
    *reason = "type attribute; bytes not known";
    return self->name != NULL ? CM_LEARNT_READY : CM_LEARNT_LATER;
}

/* A static type's dictionary is per interpreter from 3.12 on: such types are
 * not the user's, and are passed over. */
static bool
offers(PyObject *type, PyObject *name)
{
    PyObject *dict =
        PyType_Check(type) ? ((PyTypeObject *)type)->tp_dict : NULL;
    return dict != NULL && PyDict_CheckExact(dict)
           && PyDict_GetItemWithError(dict, name) != NULL;
}

static bool
interface_claims(const void *state, PyTypeObject *type)
{
    const struct interface_state *self = state;
    PyObject *mro = type->tp_mro;
    if (mro == NULL || !PyTuple_CheckExact(mro)) {
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        if (offers(PyTuple_GET_ITEM(mro, i), self->name)) {
            return true;
        }
    }
    return false;
}

static bool
interface_read(const void *state, PyObject *object,
               struct cm_device_memory *result)
{
    (void)state;
    memset(result, 0, sizeof(*result));
    result->storage_key = (uintptr_t)object;
    result->accelerator = true;
    snprintf(result->device, sizeof(result->device), "cuda");
    return true;
}

static void
interface_forget(void *state)
{
    struct interface_state *self = state;
    Py_CLEAR(self->name);
}

const struct cm_reader cm_interface_reader = {
    .module = "sys",
    .state_bytes = sizeof(struct interface_state),
    .learn = interface_learn,
    .claims = interface_claims,
    .read = interface_read,
    .forget = interface_forget,
};
