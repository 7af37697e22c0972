/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* jaxlib's ArrayImpl is a C++ structure behind PyObject_HEAD; its getters run
 * nanobind, so it is read by the layout that cumem._jax finds from arrays of
 * known shape on the CPU: sizes (a std::vector), dtype, sharding, client, and
 * the pointer to what holds the buffers, which is NULL once the array is
 * deleted.  Behind it is a vector of buffers, one on each device: a buffer that
 * several arrays share is one memory.  Whether buffers were donated to a
 * computation only they know: jaxlib's own is_deleted() is asked, a C function
 * that makes no object.
 *
 * The device is that of a sharding over one device, or the only one of the
 * client; of a NamedSharding those of its mesh, in the order of the buffers
 * (jax_sharding.h).  An array with another sharding over several devices is
 * counted as nothing. */

#include "jax_reader.h"

#include <stdio.h>
#include <string.h>

#include "../tables/fields.h"
#include "../tables/interrupts.h"
#include "jax_sharding.h"
#include "../tables/phrase.h" // cm_str_is()
#include "reader.h"
#include "tags.h"
#include "../torch/torch_layout.h" // cm_word_at(), cm_torch_peek()

#define MAX_DIMS ((size_t)CM_JAX_MOST_DIMS)
#define MAX_PARTS 4096u
#define MAX_PLACES 128u
#define MAX_PEEKED 64

/* A device or a client, known by its address only: a reference would keep the
 * framework's memory pool alive. */
struct place {
    uintptr_t address;
    char name[16]; /* "cuda:0"; "" when a client has several devices */
};

struct jax_layout {
    const struct cm_objects *objects; /* borrowed */
    PyTypeObject *array;              /* owned: jaxlib's ArrayImpl */
    PyTypeObject *single;             /* owned: SingleDeviceSharding */
    PyObject *itemsize;               /* owned: numpy.dtype's C getter */
    PyTypeObject *dtype_type;         /* owned: numpy.dtype */
    PyObject *is_deleted;             /* owned: the array's method; or NULL */
    Py_ssize_t sizes, dtype, sharding, client, buffers; /* of the array */
    Py_ssize_t device, memory_kind;                     /* of the sharding */
    struct cm_jax_named named;
    uintptr_t holder;  /* the first word of what holds the buffers */
    Py_ssize_t vector; /* of buffers, in it; 0: not found */
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
    Py_CLEAR(layout->is_deleted);
    cm_jax_named_release(&layout->named);
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

/* [none; raises] takes references only when all is there. */
static bool
parse_shards(PyObject *facts, struct jax_layout *layout)
{
    struct cm_jax_named *named = &layout->named;
    unsigned long long holder;
    if (!PyArg_ParseTuple(
            facts, "O!O!O!O!nnnn(Kn)", &PyType_Type, &named->type,
            &PyType_Type, &named->mesh_type, &PyType_Type, &named->spec_type,
            &PyType_Type, &named->numbers, &named->mesh, &named->spec,
            &named->memory_kind, &named->entries, &holder, &layout->vector)) {
        memset(named, 0, sizeof(*named));
        return false;
    }
    Py_INCREF(named->type);
    Py_INCREF(named->mesh_type);
    Py_INCREF(named->spec_type);
    Py_INCREF(named->numbers);
    layout->holder = (uintptr_t)holder;
    return lies_within(named->type, named->mesh, 8)
           && lies_within(named->type, named->spec, 8)
           && lies_within(named->type, named->memory_kind, 8)
           && lies_within(named->spec_type, named->entries, 8)
           && layout->vector >= 8 && layout->vector % 8 == 0;
}

/* How arrays over several devices lie; without it they count as nothing. */
static PyObject *
take_shards(PyObject *facts)
{
    struct jax_layout shards = {0};
    if (!learnt_ready || !PyTuple_Check(facts)) {
        PyErr_SetString(PyExc_TypeError, "a layout, then a tuple");
        return NULL;
    }
    if (!parse_shards(facts, &shards)) {
        cm_jax_named_release(&shards.named);
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "not a layout");
        }
        return NULL;
    }
    cm_jax_named_release(&learnt_layout.named);
    learnt_layout.named = shards.named;
    learnt_layout.holder = shards.holder;
    learnt_layout.vector = shards.vector;
    Py_RETURN_NONE;
}

/* Before: cumem._jax has asked it of an array that is and of one that is not. */
static PyObject *
take_is_deleted(PyObject *method)
{
    if (!learnt_ready || PyFunction_Check(method)) {
        PyErr_SetString(PyExc_TypeError, "a layout, then a C function");
        return NULL;
    }
    Py_XSETREF(learnt_layout.is_deleted, Py_NewRef(method));
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
    if (strcmp(step, "shards") == 0) {
        return take_shards(what);
    }
    if (strcmp(step, "is_deleted") == 0) {
        return take_is_deleted(what);
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
    cm_interrupts_enter();
    PyObject *answer =
        probing != NULL ? PyObject_CallMethod(probing, "probe", NULL) : NULL;
    bool later = answer == NULL || answer == Py_None; /* no backend yet */
    (void)cm_interrupts_keep(false);
    cm_interrupts_leave();
    *reason = later ? "no backend yet" : reason_of(answer);
    PyErr_Clear();
    Py_XDECREF(probing);
    Py_XDECREF(answer);
    if (!learnt_ready) {
        return later ? CM_LEARNT_LATER : CM_LEARNT_UNSUPPORTED;
    }
    struct jax_layout *layout = state;
    learnt_layout.objects = layout->objects;
    *layout = learnt_layout;
    memset(&learnt_layout, 0, sizeof(learnt_layout));
    learnt_ready = false;
    *reason = layout->named.type != NULL
                  ? "struct layout"
                  : "struct layout; arrays over several devices are not "
                    "counted";
    return CM_LEARNT_READY;
}

static void
jax_begin(void *state, const struct cm_objects *objects)
{
    ((struct jax_layout *)state)->objects = objects;
}

static void
jax_forget(void *state)
{
    struct jax_layout *layout = state;
    const struct cm_objects *objects = layout->objects;
    release(layout);
    layout->objects = objects; /* lent once; learnt again it is needed */
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
take_place(const struct place *place, PyObject *kind,
           struct cm_device_memory *result)
{
    if (place == NULL || place->name[0] == '\0') {
        return false;
    }
    bool host = is_host_kind(kind);
    snprintf(result->device, sizeof(result->device), "%s",
             host ? "cpu" : place->name);
    result->accelerator = strcmp(result->device, "cpu") != 0;
    return true;
}

/* Of a sharding over one device, whatever it is called. */
static bool
read_device(const struct jax_layout *layout, PyObject *object,
            PyObject *sharding, struct cm_device_memory *result)
{
    if (Py_TYPE(sharding) == layout->single) {
        return take_place(
            find_place(layout, word_of(sharding, layout->device)),
            (PyObject *)word_of(sharding, layout->memory_kind), result);
    }
    return take_place(find_place(layout, word_of(object, layout->client)),
                      NULL, result);
}

/* Of one buffer of a NamedSharding: that of the so many-th device that is not
 * another process's. */
static bool
read_part_device(const struct jax_layout *layout,
                 const struct cm_jax_mesh *mesh, PyObject *sharding,
                 struct cm_device_memory *result)
{
    const struct place *found = NULL;
    uint16_t local = 0;
    for (size_t i = 0; i < mesh->device_count; i++) {
        const struct place *place =
            find_place(layout, (uintptr_t)mesh->devices[i]);
        if (place != NULL) {
            found = local == result->part ? place : found;
            local++;
        }
    }
    PyObject *kind = (PyObject *)word_of(sharding, layout->named.memory_kind);
    return local == result->parts && take_place(found, kind, result);
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

/* `cuts`: into how many parts each dimension is cut; NULL: into one. */
static bool
read_bytes(const struct jax_layout *layout, PyObject *object,
           const uint64_t *cuts, uint64_t *bytes)
{
    const int64_t *sizes;
    PyObject *dtype = dtype_of(layout, object);
    size_t dims = count_dims(layout, object, &sizes);
    *bytes = dtype != NULL ? cm_field_number(layout->itemsize, dtype) : 0;
    for (size_t i = 0; dims <= MAX_DIMS && *bytes != 0 && i < dims; i++) {
        if (sizes[i] < 0 || sizes[i] >> CM_MAX_DEVICE_BYTES_LOG2 != 0) {
            return false;
        }
        uint64_t size = (uint64_t)sizes[i];
        if (cuts != NULL) {
            size = (size + cuts[i] - 1) / cuts[i];
        }
        if (__builtin_mul_overflow(*bytes, size, bytes)) {
            return false;
        }
    }
    return dims <= MAX_DIMS && *bytes != 0
           && *bytes >> CM_MAX_DEVICE_BYTES_LOG2 == 0;
}

/* Which buffer it is, and of how many; the address of what holds them where no
 * buffer can be told from it. */
static bool
read_key(const struct jax_layout *layout, PyObject *object,
         struct cm_device_memory *result)
{
    uintptr_t holder = word_of(object, layout->buffers);
    result->storage_key = holder;
    if (holder == 0 || layout->vector == 0
        || cm_word_at(holder, 0) != layout->holder) {
        return holder != 0 && result->part == 0;
    }
    uintptr_t vector = holder + (uintptr_t)layout->vector;
    uint64_t size = cm_word_at(vector, 0); /* twice, odd: it lies elsewhere */
    uintptr_t first =
        (size & 1) != 0 ? (uintptr_t)cm_word_at(vector, 8) : vector + 8;
    if (size / 2 <= result->part || size / 2 > MAX_PARTS || first == 0) {
        return false;
    }
    result->parts = (uint16_t)(size / 2);
    result->storage_key = cm_word_at(first, (size_t)result->part * 16);
    return result->storage_key != 0;
}

static bool
read_split(const struct jax_layout *layout, PyObject *object,
           PyObject *sharding, struct cm_device_memory *result)
{
    struct cm_jax_mesh mesh;
    uint64_t cuts[CM_JAX_MOST_DIMS];
    return cm_jax_mesh_of(&layout->named, layout->objects, sharding, &mesh)
           && read_part_device(layout, &mesh, sharding, result)
           && cm_jax_cuts_of(&layout->named, &mesh, sharding, cuts)
           && read_bytes(layout, object, cuts, &result->bytes);
}

static bool
jax_part(const void *state, PyObject *object, uint16_t part,
         struct cm_device_memory *result)
{
    const struct jax_layout *layout = state;
    memset(result, 0, sizeof(*result));
    result->part = part;
    if (!read_key(layout, object, result)) {
        return false;
    }
    PyObject *sharding = (PyObject *)word_of(object, layout->sharding);
    if (sharding == NULL) {
        return false;
    }
    if (result->parts > 1) {
        return read_split(layout, object, sharding, result);
    }
    return read_device(layout, object, sharding, result)
           && read_bytes(layout, object, NULL, &result->bytes);
}

/* Donated to a computation, or deleted.  [-; never] */
static bool
is_deleted(const struct jax_layout *layout, PyObject *object)
{
    PyObject *type, *value, *traceback;
    if (layout->is_deleted == NULL) {
        return false;
    }
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *answer = PyObject_CallOneArg(layout->is_deleted, object);
    bool deleted = answer != Py_False;
    Py_XDECREF(answer);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return deleted;
}

static bool
jax_read(const void *state, PyObject *object, struct cm_device_memory *result)
{
    const struct jax_layout *layout = state;
    memset(result, 0, sizeof(*result));
    return cm_type_derives(Py_TYPE(object), layout->array)
           && jax_part(state, object, 0, result)
           && !is_deleted(layout, object);
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
    .begin = jax_begin,
    .learn = jax_learn,
    .claims = jax_claims,
    .read = jax_read,
    .part = jax_part,
    .shape = jax_shape,
    .forget = jax_forget,
};
