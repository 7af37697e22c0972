/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Reads torch tensors and storages by a layout that is learnt from probe
 * tensors, not compiled in: object -> TensorImpl -> StorageImpl -> pointer,
 * bytes, device, use count.  cumem._torch makes the probes on the CPU and the
 * meta device once the user has imported torch, and says what torch's own
 * getters answer for them; here each fact is looked for in memory, the first
 * place where all probes agree is taken, and another probe must confirm it.
 * One read is three dependent loads and no call into torch.  Where a fact
 * cannot be found the reader says so and claims nothing. */

#include "reader.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h> // process_vm_readv()
#include <unistd.h>

#include "../detector/alloc.h"
#include "devices.h"
#include "tags.h"

#define OBJECT_WORDS 8u
#define IMPL_WORDS 24u
#define STORAGE_WORDS 8u
#define MAX_DIMS 5u /* kept inside TensorImpl; more are behind a pointer */
#define MAX_DTYPES 64u

struct dtype_name {
    uint16_t code;
    char text[16];
};

struct torch_layout {
    PyTypeObject *tensor;  /* owned: torch._C.TensorBase */
    PyTypeObject *storage; /* owned: torch._C.StorageBase */
    size_t object_impl, impl_storage, impl_dims, impl_dtype;
    size_t storage_object, storage_data, storage_bytes, storage_device;
    size_t storage_uses, impl_uses;
    struct dtype_name dtypes[MAX_DTYPES];
    size_t dtype_count;
    uint64_t storage_vtable; /* first word of every StorageImpl; 0: differs */
    bool has_uses, has_impl_uses, has_shape;
};

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
static struct torch_layout learnt_layout; /* Guarded by the GIL. */
static const char *learnt_reason = "not probed yet";
static bool learnt_ready;

static uint64_t
word_at(uintptr_t address, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const void *)(address + offset), sizeof(value));
    return value;
}

static uint32_t
half_at(uintptr_t address, size_t offset)
{
    uint32_t value;
    memcpy(&value, (const void *)(address + offset), sizeof(value));
    return value;
}

static uint16_t
short_at(uintptr_t address, size_t offset)
{
    uint16_t value;
    memcpy(&value, (const void *)(address + offset), sizeof(value));
    return value;
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
            agree += word_at(field_of(p, fact->base), at) ==
                     field_of(p, fact->value);
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
    for (size_t at = 8; at < STORAGE_WORDS * 8; at++) {
        size_t agree = 0;
        for (size_t i = 0; i < count; i++) {
            const signed char *b =
                (const signed char *)(probes[i].storage + at);
            agree += b[0] == probes[i].device_type &&
                     (b[1] == -1 || b[1] == 0);
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
            agree += word_at(p->impl, at) == p->dims &&
                     word_at(p->impl, at + 8) == p->size0 &&
                     word_at(p->impl, at + 16) == p->size1 &&
                     word_at(p->impl, at + 24) == p->size2;
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
            bool equal = short_at(probes[i].impl, at) ==
                         short_at(probes[j].impl, at);
            if (same != equal) {
                return false;
            }
        }
        if (short_at(probes[i].impl, at) >= 256) {
            return false;
        }
    }
    return true;
}

static void
learn_dtypes(struct torch_layout *layout, const struct probe *probes,
             size_t count)
{
    layout->dtype_count = 0;
    for (size_t i = 0; i < count && layout->dtype_count < MAX_DTYPES; i++) {
        struct dtype_name *name = &layout->dtypes[layout->dtype_count++];
        name->code = short_at(probes[i].impl, layout->impl_dtype);
        memcpy(name->text, probes[i].dtype, sizeof(name->text));
    }
}

static bool
find_shape(struct torch_layout *layout, const struct probe *probes,
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

/* Reads our own memory through the kernel: what is not there is an answer. */
static bool
peek(uint64_t address, uint64_t *words, size_t count)
{
    struct iovec here = {words, count * sizeof(*words)};
    struct iovec there = {(void *)(uintptr_t)address,
                          count * sizeof(*words)};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) ==
           (ssize_t)(count * sizeof(*words));
}

/* The kernel must also let us read it: some containers do not. */
static uint64_t
common_vtable(const struct probe *probes, size_t count)
{
    uint64_t first = word_at(probes[0].storage, 0), seen = 0;
    for (size_t i = 0; i < count; i++) {
        if (!peek(probes[i].storage, &seen, 1) || seen != first) {
            return 0;
        }
    }
    return first;
}

/* NULL when everything needed was found, else what was not. */
static const char *
find_layout(struct torch_layout *layout, const struct probe *probes,
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
    if (!find_word(&fact, STORAGE_WORDS, &layout->storage_bytes)) {
        return "unsupported: bytes of StorageImpl not found";
    }
    fact.count = host_count; /* the meta device has no pointer */
    fact.value = offsetof(struct probe, data);
    if (!find_word(&fact, STORAGE_WORDS, &layout->storage_data)) {
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
halves_of(uintptr_t storage)
{
    PyObject *result = PyTuple_New(STORAGE_WORDS * 2);
    for (Py_ssize_t i = 0; result != NULL && i < STORAGE_WORDS * 2; i++) {
        PyObject *number =
            PyLong_FromUnsignedLong(half_at(storage, (size_t)i * 4));
        if (number == NULL) {
            Py_CLEAR(result);
            break;
        }
        PyTuple_SET_ITEM(result, i, number);
    }
    return result;
}

static PyObject *
take_types(PyObject *tensor, PyObject *storage, long uses, long impl_uses)
{
    if (!PyType_Check(tensor) || !PyType_Check(storage)) {
        PyErr_SetString(PyExc_TypeError, "two types were expected");
        return NULL;
    }
    learnt_layout.has_impl_uses = impl_uses >= 0;
    learnt_layout.impl_uses = impl_uses >= 0 ? (size_t)impl_uses * 4 : 0;
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
    struct probe probes[MAX_DTYPES];
    memset(probes, 0, sizeof(probes));
    Py_ssize_t count = PyList_GET_SIZE(list);
    if (count > (Py_ssize_t)MAX_DTYPES || host_count > count) {
        PyErr_SetString(PyExc_ValueError, "too many probes");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (parse_probe(PyList_GET_ITEM(list, i), &probes[i]) < 0) {
            return NULL;
        }
    }
    const char *missing = find_layout(&learnt_layout, probes, (size_t)count,
                                      (size_t)host_count);
    if (missing != NULL) {
        learnt_reason = missing;
        PyErr_SetString(PyExc_RuntimeError, missing);
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Three forms, in the order in which cumem._torch calls them:
 *   ("halves", storage)             -> 32-bit halves of a StorageImpl
 *   ("probes", list, host_count)    -> finds the layout, or raises
 *   ("types", tensor, storage, half of a StorageImpl that counts its uses,
 *    half of a TensorImpl that does, each -1 when unknown) -> ready */
PyObject *
cm_torch_probe(PyObject *module, PyObject *facts)
{
    (void)module;
    const char *step;
    PyObject *a = NULL, *b = NULL;
    long number = -1, impl_number = -1;
    if (!PyArg_ParseTuple(facts, "sO|Oll", &step, &a, &b, &number,
                          &impl_number)) {
        return NULL;
    }
    if (strcmp(step, "halves") == 0) {
        uintptr_t storage = (uintptr_t)PyLong_AsUnsignedLongLong(a);
        return PyErr_Occurred() ? NULL : halves_of(storage);
    }
    if (strcmp(step, "probes") == 0 && PyList_CheckExact(a) && b != NULL) {
        Py_ssize_t host_count = PyLong_AsSsize_t(b);
        return PyErr_Occurred() ? NULL : take_probes(a, host_count);
    }
    if (strcmp(step, "types") == 0 && b != NULL) {
        return take_types(a, b, number, impl_number);
    }
    PyErr_SetString(PyExc_ValueError, "unknown step");
    return NULL;
}

static bool
torch_is_whole(PyObject *module)
{
    PyObject *dict = PyModule_GetDict(module); /* borrowed */
    return dict != NULL && PyDict_GetItemString(dict, "Tensor") != NULL &&
           PyDict_GetItemString(dict, "compile") != NULL;
}

/* While torch is being imported: its first tensor then tells us to look again
 * (no collection may come before memory runs out). */
static void
tag_early(PyObject *module)
{
    PyObject *dict = PyModule_GetDict(module);
    PyObject *tensor =
        dict != NULL ? PyDict_GetItemString(dict, "Tensor") : NULL;
    if (tensor != NULL && PyType_Check(tensor)) {
        cm_tags_type((PyTypeObject *)tensor);
    }
}

static enum cm_learnt
torch_learn(void *state, PyObject *module, const char **reason)
{
    if (!torch_is_whole(module)) {
        tag_early(module);
        return CM_LEARNT_LATER;
    }
    PyObject *probing = PyImport_ImportModule("cumem._torch");
    PyObject *answer = NULL;
    if (probing != NULL) {
        answer = PyObject_CallMethod(probing, "probe", NULL);
    }
    bool later = answer == Py_None; /* a dispatch mode is active */
    PyErr_Clear();
    Py_XDECREF(probing);
    Py_XDECREF(answer);
    if (learnt_ready) {
        memcpy(state, &learnt_layout, sizeof(learnt_layout));
        return CM_LEARNT_READY;
    }
    *reason = learnt_reason;
    return later ? CM_LEARNT_LATER : CM_LEARNT_UNSUPPORTED;
}

static bool
is_subtype(PyTypeObject *type, PyTypeObject *base)
{
    PyObject *mro = type->tp_mro; /* NULL in a half-built type */
    if (base == NULL || mro == NULL || !PyTuple_CheckExact(mro)) {
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        if (PyTuple_GET_ITEM(mro, i) == (PyObject *)base) {
            return true;
        }
    }
    return false;
}

static bool
torch_claims(const void *state, PyTypeObject *type)
{
    const struct torch_layout *layout = state;
    return is_subtype(type, layout->tensor) ||
           is_subtype(type, layout->storage);
}

/* Numbers of c10::DeviceType; a device that is not here counts as nothing. */
static const char *
device_kind(int type, bool *accelerator)
{
    *accelerator = type != 0;
    switch (type) {
    case 0:
        return "cpu";
    case 1:
        return "cuda";
    case 12:
        return "xpu";
    case 13:
        return "mps";
    case 15:
        return "hpu";
    case 20:
        return "privateuseone";
    default:
        return NULL;
    }
}

static bool
read_storage(const struct torch_layout *layout, uintptr_t storage,
             struct cm_device_memory *result)
{
    const signed char *device =
        (const signed char *)(storage + layout->storage_device);
    const char *kind = device_kind(device[0], &result->accelerator);
    result->storage_key = storage;
    result->device_address = word_at(storage, layout->storage_data);
    result->bytes = word_at(storage, layout->storage_bytes);
    result->use_count =
        layout->has_uses ? half_at(storage, layout->storage_uses) : 0;
    if (kind == NULL || result->device_address == 0 || result->bytes == 0 ||
        result->bytes > (UINT64_C(1) << 48)) {
        return false;
    }
    if (result->accelerator) {
        snprintf(result->device, sizeof(result->device), "%s:%d", kind,
                 device[1] < 0 ? 0 : device[1]);
    } else {
        snprintf(result->device, sizeof(result->device), "%s", kind);
    }
    return true;
}

static const char *
dtype_text(const struct torch_layout *layout, uintptr_t impl)
{
    uint16_t code = short_at(impl, layout->impl_dtype);
    for (size_t i = 0; i < layout->dtype_count; i++) {
        if (layout->dtypes[i].code == code) {
            return layout->dtypes[i].text;
        }
    }
    return "";
}

static void
write_shape(const struct torch_layout *layout, uintptr_t impl, char *text,
            size_t room)
{
    uint64_t dims = word_at(impl, layout->impl_dims);
    uintptr_t sizes = impl + layout->impl_dims + 8;
    size_t used = 0;
    if (dims > MAX_DIMS) {
        sizes = dims <= 64 ? (uintptr_t)word_at(sizes, 0) : 0;
    }
    if (sizes == 0) {
        return;
    }
    used += (size_t)snprintf(text, room, "[");
    for (uint64_t i = 0; i < dims && used + 40 < room; i++) {
        used += (size_t)snprintf(text + used, room - used, "%s%lld",
                                 i == 0 ? "" : ", ",
                                 (long long)word_at(sizes, i * 8));
    }
    snprintf(text + used, room - used, "] %s", dtype_text(layout, impl));
}

static bool
torch_read(const void *state, PyObject *object,
           struct cm_device_memory *result)
{
    const struct torch_layout *layout = state;
    uintptr_t address = (uintptr_t)object;
    memset(result, 0, sizeof(*result));
    if (is_subtype(Py_TYPE(object), layout->storage)) {
        uintptr_t storage = word_at(address, layout->storage_object);
        result->is_storage = true;
        return storage != 0 && read_storage(layout, storage, result);
    }
    if (!is_subtype(Py_TYPE(object), layout->tensor)) {
        return false;
    }
    uintptr_t impl = word_at(address, layout->object_impl);
    uintptr_t storage = impl != 0 ? word_at(impl, layout->impl_storage) : 0;
    if (storage == 0 || !read_storage(layout, storage, result)) {
        return false;
    }
    result->preserved =
        layout->has_impl_uses && half_at(impl, layout->impl_uses) > 1;
    if (layout->has_shape) {
        write_shape(layout, impl, result->shape, sizeof(result->shape));
    }
    return true;
}

/* A freed StorageImpl has lost its first word to the allocator, or counts no
 * use, or holds another pointer by now. */
static enum cm_alive
torch_alive(const void *state, uint64_t key, uint64_t device_address)
{
    const struct torch_layout *layout = state;
    uint64_t words[STORAGE_WORDS];
    if (!layout->has_uses || layout->storage_vtable == 0) {
        return CM_ALIVE_UNKNOWN;
    }
    if (!peek(key, words, STORAGE_WORDS)) {
        return CM_ALIVE_NO;
    }
    uintptr_t copy = (uintptr_t)words;
    bool alive = words[0] == layout->storage_vtable &&
                 half_at(copy, layout->storage_uses) != 0 &&
                 word_at(copy, layout->storage_data) == device_address;
    return alive ? CM_ALIVE_YES : CM_ALIVE_NO;
}

static void
torch_forget(void *state)
{
    struct torch_layout *layout = state;
    Py_CLEAR(layout->tensor);
    Py_CLEAR(layout->storage);
    if (learnt_ready) { /* the references are one and the same */
        learnt_ready = false;
        memset(&learnt_layout, 0, sizeof(learnt_layout));
        learnt_reason = "not probed yet";
    }
}

const struct cm_reader cm_torch_reader = {
    .module = "torch",
    .state_bytes = sizeof(struct torch_layout),
    .learn = torch_learn,
    .claims = torch_claims,
    .read = torch_read,
    .alive = torch_alive,
    .forget = torch_forget,
    .untracked = false, /* UntypedStorage is a Python class: tracked */
};
