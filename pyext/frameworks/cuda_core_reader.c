/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* cuda.core: a Buffer with a memory resource owns its memory; one with an
 * owner, or with neither, only points at somebody else's and counts as
 * nothing.  Of its getters only those that copy a field are called: `size` and
 * `memory_resource` (`device_id` and the like may ask the driver, `handle`
 * makes objects in some versions).  A closed buffer has no resource. */

#include "device_count.h"
#include "../tables/fields.h"
#include "reader.h"
#include "tags.h"

#include <string.h>

enum { HOST_RESOURCES = 2 };

struct cuda_core_state {
    PyTypeObject *buffer;               /* owned, as all below */
    PyTypeObject *resource;             /* the base: its own getters raise */
    PyObject *size, *memory;            /* C getters */
    PyTypeObject *host[HOST_RESOURCES]; /* of pinned memory; may be NULL */
};

static const char BUFFER_MODULE[] = "cuda.core._memory._buffer";

static void
cuda_core_forget(void *state)
{
    struct cuda_core_state *self = state;
    Py_CLEAR(self->buffer);
    Py_CLEAR(self->resource);
    Py_CLEAR(self->size);
    Py_CLEAR(self->memory);
    for (size_t i = 0; i < HOST_RESOURCES; i++) {
        Py_CLEAR(self->host[i]);
    }
    cm_device_count_forget();
}

static PyTypeObject *
find_type(const char *module, const char *name)
{
    return (PyTypeObject *)cm_type_in(module, name);
}

static enum cm_learnt
cuda_core_learn(void *state, PyObject *module, const char **reason)
{
    struct cuda_core_state *self = state;
    (void)module;
    self->buffer = find_type(BUFFER_MODULE, "Buffer");
    self->resource = find_type(BUFFER_MODULE, "MemoryResource");
    if (self->buffer == NULL || self->resource == NULL) {
        cuda_core_forget(self);
        *reason = "no Buffer imported";
        return CM_LEARNT_LATER;
    }
    self->size = cm_field_of((PyObject *)self->buffer, "size");
    self->memory = cm_field_of((PyObject *)self->buffer, "memory_resource");
    if (!cm_field_is_c(self->size) || !cm_field_is_c(self->memory)) {
        cuda_core_forget(self);
        *reason = "unsupported: the fields of Buffer have no C getters";
        return CM_LEARNT_UNSUPPORTED;
    }
    self->host[0] = find_type("cuda.core", "PinnedMemoryResource");
    self->host[1] = find_type("cuda.core", "LegacyPinnedMemoryResource");
    cm_tags_type(self->buffer);
    *reason = "C getters";
    return CM_LEARNT_READY;
}

static void
cuda_core_notice(void *state)
{
    (void)state;
    cm_device_count_notice();
}

static bool
cuda_core_claims(const void *state, PyTypeObject *type)
{
    const struct cuda_core_state *self = state;
    return cm_type_derives(type, self->buffer);
}

/* Below 0: not known. */
static long
device_of(const struct cuda_core_state *self, PyObject *memory)
{
    PyObject *getter = cm_field_of((PyObject *)Py_TYPE(memory), "device_id");
    PyObject *value = NULL;
    if (cm_field_is_c(getter) && PyDescr_TYPE(getter) != self->resource) {
        value = cm_field_read(getter, memory);
    }
    long device =
        value != NULL && PyLong_CheckExact(value) ? PyLong_AsLong(value) : -1;
    PyErr_Clear();
    Py_XDECREF(value);
    Py_XDECREF(getter);
    return device;
}

static void
name_device(const struct cuda_core_state *self, PyObject *memory,
            struct cm_device_memory *result)
{
    result->accelerator = true;
    for (size_t i = 0; i < HOST_RESOURCES; i++) {
        if (cm_type_derives(Py_TYPE(memory), self->host[i])) {
            result->accelerator = false;
            strcpy(result->device, "cpu");
            return;
        }
    }
    cm_cuda_name(device_of(self, memory), result->device,
                 sizeof(result->device));
}

static bool
cuda_core_read(const void *state, PyObject *object,
               struct cm_device_memory *result)
{
    const struct cuda_core_state *self = state;
    memset(result, 0, sizeof(*result));
    if (!cm_type_derives(Py_TYPE(object), self->buffer)) {
        return false;
    }
    PyObject *memory = cm_field_read(self->memory, object);
    bool known =
        memory != NULL && cm_type_derives(Py_TYPE(memory), self->resource);
    if (known) {
        result->storage_key = (uintptr_t)object;
        result->bytes = cm_field_number(self->size, object);
        name_device(self, memory, result);
        known = result->bytes != 0
                && result->bytes >> CM_MAX_DEVICE_BYTES_LOG2 == 0;
    }
    Py_XDECREF(memory);
    return known;
}

const struct cm_reader cm_cuda_core_reader = {
    .module = "cuda.core",
    .state_bytes = sizeof(struct cuda_core_state),
    .learn = cuda_core_learn,
    .notice = cuda_core_notice,
    .claims = cuda_core_claims,
    .read = cuda_core_read,
    .forget = cuda_core_forget,
};
