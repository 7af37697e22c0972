/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Finds the layout from probes: cumem._torch makes tensors on the CPU and the
 * meta device once the user has imported torch, and says what torch's own
 * getters answer for them; each fact is looked for in memory, and taken where
 * all probes agree first.  What cannot be found is said, and nothing is read. */

#include "torch_layout.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/uio.h> // process_vm_readv()
#include <unistd.h>

#define OBJECT_WORDS 8u
#define IMPL_WORDS 24u

/* One probe, as cumem._torch hands it over. */
struct probe {
    uintptr_t object, impl, storage_object, storage, data;
    uint64_t bytes, dims, size0, size1, size2;
    uint16_t dtype_code; /* found here, not given */
    int device_type;
    char dtype[16];
};

/* Learnt by cm_torch_probe() for learn() to take over: torch can be imported
 * in one interpreter of a process only. */
static struct cm_torch_layout learnt_layout; /* Guarded by the GIL. */
static const char *learnt_reason = "not probed yet";
static bool learnt_ready;

/* Reads our own memory through the kernel: what is not there is an answer. */
bool
cm_torch_peek(uint64_t address, uint64_t *words, size_t count)
{
    bool there;
    cm_torch_peek_many(&address, 1, words, count, &there);
    return there;
}

/* The kernel copies place after place and stops at the first that is not
 * there: that one is left out and the rest asked for again. */
void
cm_torch_peek_many(const uint64_t *addresses, size_t count, uint64_t *words,
                   size_t each, bool *there)
{
    struct iovec places[CM_TORCH_PEEK_MAX];
    size_t bytes = each * sizeof(*words);
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct iovec){(void *)(uintptr_t)addresses[i], bytes};
        there[i] = false;
    }
    for (size_t at = 0; at < count; at++) {
        struct iovec here = {words + at * each, (count - at) * bytes};
        ssize_t copied =
            process_vm_readv(getpid(), &here, 1, places + at, count - at, 0);
        size_t whole = copied > 0 ? (size_t)copied / bytes : 0;
        for (; whole > 0; whole--) {
            there[at++] = true;
        }
    }
}

/* Where a fact stands: base of the structure in each probe, the value there. */
struct fact {
    const struct probe *probes;
    size_t count;
    size_t base;  /* offsetof in struct probe */
    size_t value; /* offsetof in struct probe */
};

static uint64_t
field_of(const struct probe *probe, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)probe + offset, sizeof(value));
    return value;
}

static bool
find_word(const struct fact *fact, size_t words, size_t *offset)
{
    for (size_t at = 0; at < words * 8; at += 8) {
        size_t agree = 0;
        for (size_t i = 0; i < fact->count; i++) {
            const struct probe *p = &fact->probes[i];
            agree += cm_word_at(field_of(p, fact->base), at)
                     == field_of(p, fact->value);
        }
        if (agree == fact->count) {
            *offset = at;
            return true;
        }
    }
    return false;
}

/* The two device bytes: type and index; CPU probes say 0, the meta one 14. */
static bool
find_device(const struct probe *probes, size_t count, size_t *offset)
{
    for (size_t at = 8; at < CM_TORCH_STORAGE_WORDS * 8; at++) {
        size_t agree = 0;
        for (size_t i = 0; i < count; i++) {
            const signed char *b =
                (const signed char *)(probes[i].storage + at);
            agree +=
                b[0] == probes[i].device_type && (b[1] == -1 || b[1] == 0);
        }
        if (agree == count) {
            *offset = at;
            return true;
        }
    }
    return false;
}

/* TensorImpl keeps the number of dimensions, then up to five sizes. */
static bool
find_dims(const struct probe *probes, size_t count, size_t *offset)
{
    for (size_t at = 8; at < (IMPL_WORDS - 4) * 8; at += 8) {
        size_t agree = 0;
        for (size_t i = 0; i < count; i++) {
            const struct probe *p = &probes[i];
            agree += cm_word_at(p->impl, at) == p->dims
                     && cm_word_at(p->impl, at + 8) == p->size0
                     && cm_word_at(p->impl, at + 16) == p->size1
                     && cm_word_at(p->impl, at + 24) == p->size2;
        }
        if (agree == count) {
            *offset = at;
            return true;
        }
    }
    return false;
}

/* The scalar type: a small number that is equal for probes of equal dtype and
 * different for all others. */
static bool
dtype_fits(const struct probe *probes, size_t count, size_t at)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            bool same = strcmp(probes[i].dtype, probes[j].dtype) == 0;
            bool equal = cm_short_at(probes[i].impl, at)
                         == cm_short_at(probes[j].impl, at);
            if (same != equal) {
                return false;
            }
        }
        if (cm_short_at(probes[i].impl, at) >= 256) {
            return false;
        }
    }
    return true;
}

static void
learn_dtypes(struct cm_torch_layout *layout, const struct probe *probes,
             size_t count)
{
    layout->dtype_count = 0;
    for (size_t i = 0; i < count && layout->dtype_count < CM_TORCH_DTYPES;
         i++) {
        struct cm_torch_dtype *name = &layout->dtypes[layout->dtype_count++];
        name->code = cm_short_at(probes[i].impl, layout->impl_dtype);
        memcpy(name->text, probes[i].dtype, sizeof(name->text));
    }
}

static bool
find_shape(struct cm_torch_layout *layout, const struct probe *probes,
           size_t count)
{
    if (!find_dims(probes, count, &layout->impl_dims)) {
        return false;
    }
    for (size_t at = 8; at < IMPL_WORDS * 8; at += 2) {
        if (dtype_fits(probes, count, at)) {
            layout->impl_dtype = at;
            learn_dtypes(layout, probes, count);
            return true;
        }
    }
    return false;
}

/* The kernel must also let us read it: some containers do not. */
static uint64_t
common_vtable(const struct probe *probes, size_t count)
{
    uint64_t first = 0, seen = 0;
    for (size_t i = 0; i < count; i++) {
        if (!cm_torch_peek(probes[i].storage, &seen, 1)
            || (i > 0 && seen != first)) {
            return 0;
        }
        first = seen;
    }
    return first;
}

/* NULL when everything needed was found, else what was not. */
static const char *
find_layout(struct cm_torch_layout *layout, const struct probe *probes,
            size_t count, size_t host_count)
{
    struct fact fact = {probes, count, offsetof(struct probe, object),
                        offsetof(struct probe, impl)};
    if (!find_word(&fact, OBJECT_WORDS, &layout->object_impl)) {
        return "unsupported: tensor -> TensorImpl not found";
    }
    fact.base = offsetof(struct probe, impl);
    fact.value = offsetof(struct probe, storage);
    if (!find_word(&fact, IMPL_WORDS, &layout->impl_storage)) {
        return "unsupported: TensorImpl -> StorageImpl not found";
    }
    fact.base = offsetof(struct probe, storage);
    fact.value = offsetof(struct probe, bytes);
    if (!find_word(&fact, CM_TORCH_STORAGE_WORDS, &layout->storage_bytes)) {
        return "unsupported: bytes of StorageImpl not found";
    }
    fact.count = host_count; /* the meta device has no pointer */
    fact.value = offsetof(struct probe, data);
    if (!find_word(&fact, CM_TORCH_STORAGE_WORDS, &layout->storage_data)) {
        return "unsupported: pointer of StorageImpl not found";
    }
    fact.base = offsetof(struct probe, storage_object);
    fact.value = offsetof(struct probe, storage);
    if (!find_word(&fact, OBJECT_WORDS, &layout->storage_object)) {
        return "unsupported: storage object -> StorageImpl not found";
    }
    if (!find_device(probes, count, &layout->storage_device)) {
        return "unsupported: device of StorageImpl not found";
    }
    layout->has_shape = find_shape(layout, probes, count);
    layout->storage_vtable = common_vtable(probes, count);
    return NULL;
}

/* [none; raises] one dictionary of facts about a probe -> struct probe. */
static int
parse_probe(PyObject *facts, struct probe *probe)
{
    const char *dtype;
    unsigned long long object, impl, sobject, storage, data, bytes;
    unsigned long long dims, size[3];
    if (!PyArg_ParseTuple(facts, "KKKKKKKKKKis", &object, &impl, &sobject,
                          &storage, &data, &bytes, &dims, &size[0], &size[1],
                          &size[2], &probe->device_type, &dtype)) {
        return -1;
    }
    probe->object = (uintptr_t)object;
    probe->impl = (uintptr_t)impl;
    probe->storage_object = (uintptr_t)sobject;
    probe->storage = (uintptr_t)storage;
    probe->data = (uintptr_t)data;
    probe->bytes = bytes;
    probe->dims = dims;
    probe->size0 = size[0];
    probe->size1 = size[1];
    probe->size2 = size[2];
    snprintf(probe->dtype, sizeof(probe->dtype), "%s", dtype);
    return 0;
}

/* What stands in each 32-bit half of the first words of a StorageImpl or a
 * TensorImpl: cumem._torch asks before and after it makes more views. */
static PyObject *
halves_of(uintptr_t base)
{
    PyObject *result = PyTuple_New(CM_TORCH_STORAGE_WORDS * 2);
    for (Py_ssize_t i = 0; result != NULL && i < CM_TORCH_STORAGE_WORDS * 2;
         i++) {
        PyObject *number =
            PyLong_FromUnsignedLong(cm_half_at(base, (size_t)i * 4));
        if (number == NULL) {
            Py_CLEAR(result);
            break;
        }
        PyTuple_SET_ITEM(result, i, number);
    }
    return result;
}

/* The same of an object that may be gone: all 0 where nothing can be read. */
static PyObject *
peeked_halves(uintptr_t base)
{
    uint64_t words[CM_TORCH_STORAGE_WORDS] = {0};
    (void)cm_torch_peek(base, words, CM_TORCH_STORAGE_WORDS);
    return halves_of((uintptr_t)words);
}

static PyObject *
take_kept(long object_half, long storage_half)
{
    learnt_layout.object_kept = object_half > 0 ? (size_t)object_half * 4 : 0;
    learnt_layout.storage_kept =
        storage_half > 0 ? (size_t)storage_half * 4 : 0;
    Py_RETURN_NONE;
}

static PyObject *
take_types(PyObject *tensor, PyObject *storage, long uses, long impl_uses,
           bool counted)
{
    if (!PyType_Check(tensor) || !PyType_Check(storage)) {
        PyErr_SetString(PyExc_TypeError, "two types were expected");
        return NULL;
    }
    learnt_layout.has_impl_uses = impl_uses >= 0;
    learnt_layout.impl_uses = impl_uses >= 0 ? (size_t)impl_uses * 4 : 0;
    learnt_layout.counts_cpp = counted && impl_uses >= 0;
    learnt_layout.tensor = (PyTypeObject *)Py_NewRef(tensor);
    learnt_layout.storage = (PyTypeObject *)Py_NewRef(storage);
    learnt_layout.has_uses = uses >= 0;
    learnt_layout.storage_uses = uses >= 0 ? (size_t)uses * 4 : 0;
    learnt_ready = true;
    learnt_reason = NULL;
    Py_RETURN_NONE;
}

static PyObject *
take_probes(PyObject *list, Py_ssize_t host_count)
{
    struct probe probes[CM_TORCH_DTYPES];
    memset(probes, 0, sizeof(probes));
    Py_ssize_t count = PyList_GET_SIZE(list);
    if (count > (Py_ssize_t)CM_TORCH_DTYPES || host_count > count) {
        PyErr_SetString(PyExc_ValueError, "too many probes");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (parse_probe(PyList_GET_ITEM(list, i), &probes[i]) < 0) {
            return NULL;
        }
    }
    const char *missing =
        find_layout(&learnt_layout, probes, (size_t)count, (size_t)host_count);
    if (missing != NULL) {
        learnt_reason = missing;
        PyErr_SetString(PyExc_RuntimeError, missing);
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Five forms; the last three in the order in which cumem._torch calls them:
 *   ("halves", storage)             -> 32-bit halves of a StorageImpl
 *   ("peek", address)               -> the same of what may be gone
 *   ("probes", list, host_count)    -> finds the layout, or raises
 *   ("kept", half of a tensor, half of a storage object): the lowest byte says
 *    that only C++ holds the object, each -1 when there is none
 *   ("types", tensor, storage, half of a StorageImpl that counts its uses,
 *    half of a TensorImpl that does, each -1 when unknown, whether C++ holds
 *    a reference to the object of a tensor that it uses) -> ready */
PyObject *
cm_torch_probe(PyObject *module, PyObject *facts)
{
    (void)module;
    const char *step;
    PyObject *a = NULL, *b = NULL;
    long number = -1, impl_number = -1;
    int counted = 0;
    if (!PyArg_ParseTuple(facts, "sO|Ollp", &step, &a, &b, &number,
                          &impl_number, &counted)) {
        return NULL;
    }
    if (strcmp(step, "halves") == 0) {
        uintptr_t storage = (uintptr_t)PyLong_AsUnsignedLongLong(a);
        return PyErr_Occurred() ? NULL : halves_of(storage);
    }
    if (strcmp(step, "peek") == 0) {
        uintptr_t base = (uintptr_t)PyLong_AsUnsignedLongLong(a);
        return PyErr_Occurred() ? NULL : peeked_halves(base);
    }
    if (strcmp(step, "kept") == 0 && b != NULL) {
        long half = PyLong_AsLong(a), storage_half = PyLong_AsLong(b);
        return PyErr_Occurred() ? NULL : take_kept(half, storage_half);
    }
    if (strcmp(step, "probes") == 0 && PyList_CheckExact(a) && b != NULL) {
        Py_ssize_t host_count = PyLong_AsSsize_t(b);
        return PyErr_Occurred() ? NULL : take_probes(a, host_count);
    }
    if (strcmp(step, "types") == 0 && b != NULL) {
        return take_types(a, b, number, impl_number, counted != 0);
    }
    PyErr_SetString(PyExc_ValueError, "unknown step");
    return NULL;
}

const struct cm_torch_layout *
cm_torch_learnt(const char **reason)
{
    *reason = learnt_reason;
    return learnt_ready ? &learnt_layout : NULL;
}

void
cm_torch_unlearn(void)
{
    memset(&learnt_layout, 0, sizeof(learnt_layout));
    learnt_ready = false;
    learnt_reason = "not probed yet";
}
