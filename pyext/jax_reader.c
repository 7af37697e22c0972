/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* jaxlib's ArrayImpl is a C++ structure behind PyObject_HEAD; its getters run
 * nanobind, so it is read by the layout that cumem._jax finds from arrays of
 * known shape on the CPU: sizes (a std::vector), dtype, sharding, client, and
 * the pointer to the buffers, which is NULL once the array is deleted.
 *
 * The device is that of a sharding over one device, or the only one of the
 * client.  An array over several devices is counted as nothing.  An array
 * whose buffer was donated to a computation looks as if it still held it. */

#include "jax_reader.h"

#include <stdio.h>
#include <string.h>

#include "fields.h"
#include "phrase.h" // cm_str_is()
#include "reader.h"
#include "tags.h"
#include "torch_layout.h" // cm_word_at(), cm_torch_peek()

#define MAX_DIMS 32u
#define MAX_PLACES 128u
#define MAX_PEEKED 64

/* A device or a client, known by its address only: a reference would keep the
 * framework's memory pool alive. */
struct place {
    uintptr_t address;
    char name[16]; /* "cuda:0"; "" when a client has several devices */
};

struct jax_layout {
    PyTypeObject *array;      /* owned: jaxlib's ArrayImpl */
    PyTypeObject *single;     /* owned: SingleDeviceSharding */
    PyObject *itemsize;       /* owned: numpy.dtype's C getter */
    PyTypeObject *dtype_type; /* owned: numpy.dtype */
    Py_ssize_t sizes, dtype, sharding, client, buffers; /* of the array */
    Py_ssize_t device, memory_kind;                     /* of the sharding */
    struct place places[MAX_PLACES];
    size_t place_count;
};

/* Learnt by cm_jax_probe() for learn() to take over. */
static struct jax_layout learnt_layout; /* Guarded by the GIL. */
static bool learnt_ready;

/* ---- what cumem._jax asks */

static PyObject *
tuple_of(const uint64_t *words, Py_ssize_t count)
{
    PyObject *result = PyTuple_New(count);
    for (Py_ssize_t i = 0; result != NULL && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(words[i]);
        if (number == NULL) {
            Py_CLEAR(result);
            break;
        }
        PyTuple_SET_ITEM(result, i, number);
    }
    return result;
}

/* None when nothing is there. */
static PyObject *
peek(uint64_t address, Py_ssize_t count)
{
    uint64_t words[MAX_PEEKED];
    if (count < 1 || count > MAX_PEEKED
        || !cm_torch_peek(address, words, (size_t)count)) {
        Py_RETURN_NONE;
    }
    return tuple_of(words, count);
}

/* The words of an object's own structure, from PyObject_HEAD on. */
static PyObject *
words_of(PyObject *object)
{
    Py_ssize_t count = Py_TYPE(object)->tp_basicsize / 8;
    return peek((uintptr_t)object, count < MAX_PEEKED ? count : MAX_PEEKED);
}

static bool
add_place(struct jax_layout *layout, PyObject *item)
{
    unsigned long long address;
    const char *name;
    if (layout->place_count == MAX_PLACES
        || !PyArg_ParseTuple(item, "Ks", &address, &name)) {
        return false;
    }
    struct place *place = &layout->places[layout->place_count++];
    place->address = (uintptr_t)address;
    snprintf(place->name, sizeof(place->name), "%s", name);
    return true;
}

static bool
lies_within(const PyTypeObject *type, Py_ssize_t offset, Py_ssize_t bytes)
{
    return offset >= (Py_ssize_t)sizeof(PyObject) && offset % 8 == 0
           && offset <= type->tp_basicsize - bytes;
}

static bool
is_sound(const struct jax_layout *layout)
{
    return lies_within(layout->array, layout->sizes, 16)
           && lies_within(layout->array, layout->dtype, 8)
           && lies_within(layout->array, layout->sharding, 8)
           && lies_within(layout->array, layout->client, 8)
           && lies_within(layout->array, layout->buffers, 8)
           && lies_within(layout->single, layout->device, 8)
           && lies_within(layout->single, layout->memory_kind, 8);
}

static void
release(struct jax_layout *layout)
{
    Py_CLEAR(layout->array);
    Py_CLEAR(layout->single);
    Py_CLEAR(layout->itemsize);
    Py_CLEAR(layout->dtype_type);
    memset(layout, 0, sizeof(*layout));
}

/* [none; raises] */
static bool
parse_layout(PyObject *facts, struct jax_layout *layout)
{
    PyObject *places;
    if (!PyArg_ParseTuple(facts, "O!O!O!nnnnnnnO!", &PyType_Type,
                          &layout->array, &PyType_Type, &layout->single,
                          &PyType_Type, &layout->dtype_type, &layout->sizes,
                          &layout->dtype, &layout->sharding, &layout->client,
                          &layout->buffers, &layout->device,
                          &layout->memory_kind, &PyList_Type, &places)) {
        return false;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(places); i++) {
        if (!add_place(layout, PyList_GET_ITEM(places, i))) {
            return false;
        }
    }
    return true;
}

static PyObject *
take_layout(PyObject *facts)
{
    struct jax_layout layout = {0};
    if (!PyTuple_Check(facts)) {
        PyErr_SetString(PyExc_TypeError, "a tuple was expected");
        return NULL;
    }
    if (!parse_layout(facts, &layout)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "too many devices");
        }
        return NULL;
    }
    layout.itemsize = cm_field_of((PyObject *)layout.dtype_type, "itemsize");
    if (!is_sound(&layout) || !cm_field_is_c(layout.itemsize)) {
        Py_XDECREF(layout.itemsize);
        PyErr_SetString(PyExc_ValueError, "not a layout");
        return NULL;
    }
    release(&learnt_layout);
    Py_INCREF(layout.array);
    Py_INCREF(layout.single);
    Py_INCREF(layout.dtype_type);
    learnt_layout = layout;
    learnt_ready = true;
    Py_RETURN_NONE;
}

PyObject *
cm_jax_probe(PyObject *module, PyObject *facts)
{
    (void)module;
    const char *step;
    PyObject *what = NULL;
    Py_ssize_t count = 0;
    if (!PyArg_ParseTuple(facts, "sO|n", &step, &what, &count)) {
        return NULL;
    }
    if (strcmp(step, "words") == 0) {
        return words_of(what);
    }
    if (strcmp(step, "peek") == 0) {
        uint64_t address = PyLong_AsUnsignedLongLong(what);
        return PyErr_Occurred() ? NULL : peek(address, count);
    }
    if (strcmp(step, "layout") == 0) {
        return take_layout(what);
    }
    PyErr_SetString(PyExc_ValueError, "unknown step");
    return NULL;
}

/* ---- the reader */

static const char *
reason_of(PyObject *answer)
{
    static char text[120]; /* Guarded by the GIL. */
    const char *said = answer != NULL && PyUnicode_Check(answer)
                           ? PyUnicode_AsUTF8(answer)
                           : NULL;
    snprintf(text, sizeof(text), "unsupported: %s",
             said != NULL ? said : "the probe failed");
    return text;
}

/* Arrays made before a backend could be looked at have stacks, too. */
static void
tag_early(void)
{
    PyObject *type = cm_type_in("jaxlib._jax", "ArrayImpl");
    if (type == NULL) { /* before jaxlib 0.6 */
        type = cm_type_in("jaxlib.xla_extension", "ArrayImpl");
    }
    if (type != NULL) {
        cm_tags_type((PyTypeObject *)type);
        Py_DECREF(type);
    }
}

static enum cm_learnt
jax_learn(void *state, PyObject *module, const char **reason)
{
    (void)module;
    tag_early();
    PyObject *probing = cm_imported("cumem._jax");
    PyObject *answer =
        probing != NULL ? PyObject_CallMethod(probing, "probe", NULL) : NULL;
    bool later = answer == NULL || answer == Py_None; /* no backend yet */
    *reason = later ? "no backend yet" : reason_of(answer);
    PyErr_Clear();
    Py_XDECREF(probing);
    Py_XDECREF(answer);
    if (!learnt_ready) {
        return later ? CM_LEARNT_LATER : CM_LEARNT_UNSUPPORTED;
    }
    memcpy(state, &learnt_layout, sizeof(learnt_layout));
    memset(&learnt_layout, 0, sizeof(learnt_layout));
    learnt_ready = false;
    *reason = "struct layout; arrays over several devices are not counted";
    return CM_LEARNT_READY;
}

static void
jax_forget(void *state)
{
    release(state);
}

static bool
jax_claims(const void *state, PyTypeObject *type)
{
    const struct jax_layout *layout = state;
    return cm_type_derives(type, layout->array);
}

static uintptr_t
word_of(PyObject *object, Py_ssize_t offset)
{
    return (uintptr_t)cm_word_at((uintptr_t)object, (size_t)offset);
}

/* NULL: nothing known by this address. */
static const struct place *
find_place(const struct jax_layout *layout, uintptr_t address)
{
    for (size_t i = 0; i < layout->place_count; i++) {
        if (layout->places[i].address == address) {
            return &layout->places[i];
        }
    }
    return NULL;
}

/* "pinned_host", "unpinned_host": the host's memory, of whatever device. */
static bool
is_host_kind(PyObject *kind)
{
    return cm_str_is(kind, "pinned_host") || cm_str_is(kind, "unpinned_host");
}

static bool
read_device(const struct jax_layout *layout, PyObject *object,
            struct cm_device_memory *result)
{
    PyObject *sharding = (PyObject *)word_of(object, layout->sharding);
    PyObject *kind = NULL;
    const struct place *place;
    if (sharding == NULL) {
        return false;
    }
    if (Py_TYPE(sharding) == layout->single) {
        place = find_place(layout, word_of(sharding, layout->device));
        kind = (PyObject *)word_of(sharding, layout->memory_kind);
    }
    else {
        place = find_place(layout, word_of(object, layout->client));
    }
    if (place == NULL || place->name[0] == '\0') {
        return false;
    }
    bool host = is_host_kind(kind);
    snprintf(result->device, sizeof(result->device), "%s",
             host ? "cpu" : place->name);
    result->accelerator = strcmp(result->device, "cpu") != 0;
    return true;
}

/* The sizes lie behind two pointers: first and one past the last. */
static size_t
count_dims(const struct jax_layout *layout, PyObject *object,
           const int64_t **sizes)
{
    uintptr_t first = word_of(object, layout->sizes);
    uintptr_t end = word_of(object, layout->sizes + 8);
    *sizes = (const int64_t *)first;
    return end >= first && (end - first) % 8 == 0 ? (end - first) / 8
                                                  : MAX_DIMS + 1;
}

static PyObject *
dtype_of(const struct jax_layout *layout, PyObject *object)
{
    PyObject *dtype = (PyObject *)word_of(object, layout->dtype);
    return dtype != NULL && cm_type_derives(Py_TYPE(dtype), layout->dtype_type)
               ? dtype
               : NULL;
}

static bool
read_bytes(const struct jax_layout *layout, PyObject *object, uint64_t *bytes)
{
    const int64_t *sizes;
    PyObject *dtype = dtype_of(layout, object);
    size_t dims = count_dims(layout, object, &sizes);
    *bytes = dtype != NULL ? cm_field_number(layout->itemsize, dtype) : 0;
    for (size_t i = 0; dims <= MAX_DIMS && *bytes != 0 && i < dims; i++) {
        if (sizes[i] < 0 || sizes[i] >> CM_MAX_DEVICE_BYTES_LOG2 != 0
            || __builtin_mul_overflow(*bytes, (uint64_t)sizes[i], bytes)) {
            return false;
        }
    }
    return dims <= MAX_DIMS && *bytes != 0
           && *bytes >> CM_MAX_DEVICE_BYTES_LOG2 == 0;
}

static bool
jax_read(const void *state, PyObject *object, struct cm_device_memory *result)
{
    const struct jax_layout *layout = state;
    memset(result, 0, sizeof(*result));
    if (!cm_type_derives(Py_TYPE(object), layout->array)) {
        return false;
    }
    result->storage_key = word_of(object, layout->buffers);
    return result->storage_key != 0 && read_device(layout, object, result)
           && read_bytes(layout, object, &result->bytes);
}

static void
jax_shape(const void *state, PyObject *object, char *text, size_t room)
{
    const struct jax_layout *layout = state;
    const int64_t *sizes;
    size_t dims = count_dims(layout, object, &sizes);
    size_t used = (size_t)snprintf(text, room, "[");
    for (size_t i = 0; i < dims && dims <= MAX_DIMS && used + 40 < room; i++) {
        used += (size_t)snprintf(text + used, room - used, "%s%lld",
                                 i == 0 ? "" : ", ", (long long)sizes[i]);
    }
    used += (size_t)snprintf(text + used, room - used, "]");
    PyObject *dtype = dtype_of(layout, object);
    if (dtype != NULL) {
        cm_write_dtype(dtype, text + used, room - used);
    }
}

const struct cm_reader cm_jax_reader = {
    .module = "jax",
    .state_bytes = sizeof(struct jax_layout),
    .learn = jax_learn,
    .claims = jax_claims,
    .read = jax_read,
    .shape = jax_shape,
    .forget = jax_forget,
};
