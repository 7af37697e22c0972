/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* RMM: a DeviceBuffer owns one allocation, by a C++ pointer that is the first
 * field after Cython's table of functions.  Its C getters follow that pointer
 * without a look at it, so we look first: it is NULL in a half-built buffer.
 * Which device it lives on stands in C++ only. */

#include "device_count.h"
#include "../tables/fields.h"
#include "reader.h"
#include "tags.h"

#include <string.h>

struct rmm_state {
    PyTypeObject *buffer; /* owned: rmm.pylibrmm.device_buffer.DeviceBuffer */
    PyObject *size, *pointer; /* owned: its C getters */
};

/* What lies behind PyObject_HEAD. */
struct buffer_fields {
    const void *functions;
    const void *allocation;
};

static void
rmm_forget(void *state)
{
    struct rmm_state *self = state;
    Py_CLEAR(self->buffer);
    Py_CLEAR(self->size);
    Py_CLEAR(self->pointer);
    cm_device_count_forget();
}

static bool
is_readable(const struct rmm_state *self)
{
    return self->buffer->tp_basicsize
               >= (Py_ssize_t)(sizeof(PyObject) + sizeof(struct buffer_fields))
           && cm_field_is_c(self->size) && cm_field_is_c(self->pointer);
}

static enum cm_learnt
rmm_learn(void *state, PyObject *module, const char **reason)
{
    struct rmm_state *self = state;
    (void)module;
    self->buffer = (PyTypeObject *)cm_type_in("rmm.pylibrmm.device_buffer",
                                              "DeviceBuffer");
    if (self->buffer == NULL) {
        *reason = "not fully imported";
        return CM_LEARNT_LATER;
    }
    self->size = cm_field_of((PyObject *)self->buffer, "size");
    self->pointer = cm_field_of((PyObject *)self->buffer, "ptr");
    if (!is_readable(self)) {
        rmm_forget(self);
        *reason = "unsupported: the fields of DeviceBuffer have no C getters";
        return CM_LEARNT_UNSUPPORTED;
    }
    cm_tags_type(self->buffer);
    *reason = "C getters";
    return CM_LEARNT_READY;
}

static void
rmm_notice(void *state)
{
    (void)state;
    cm_device_count_notice();
}

static bool
rmm_claims(const void *state, PyTypeObject *type)
{
    const struct rmm_state *self = state;
    return cm_type_derives(type, self->buffer);
}

static bool
rmm_read(const void *state, PyObject *object, struct cm_device_memory *result)
{
    const struct rmm_state *self = state;
    struct buffer_fields fields;
    memset(result, 0, sizeof(*result));
    if (!cm_type_derives(Py_TYPE(object), self->buffer)) {
        return false;
    }
    memcpy(&fields, object + 1, sizeof(fields));
    if (fields.functions == NULL || fields.allocation == NULL) {
        return false;
    }
    result->storage_key = (uintptr_t)fields.allocation;
    result->device_address = cm_field_number(self->pointer, object);
    result->bytes = cm_field_number(self->size, object);
    result->accelerator = true;
    cm_cuda_name(-1, result->device, sizeof(result->device));
    return result->device_address != 0 && result->bytes != 0
           && result->bytes >> CM_MAX_DEVICE_BYTES_LOG2 == 0;
}

const struct cm_reader cm_rmm_reader = {
    .module = "rmm",
    .state_bytes = sizeof(struct rmm_state),
    .learn = rmm_learn,
    .notice = rmm_notice,
    .claims = rmm_claims,
    .read = rmm_read,
    .forget = rmm_forget,
};
