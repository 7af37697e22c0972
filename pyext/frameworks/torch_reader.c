/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Reads torch tensors and storages by the layout that torch_layout.c learns:
 * object -> TensorImpl -> StorageImpl -> pointer, bytes, device, use count.
 * One read is three dependent loads and no call into torch. */

#include "reader.h"

#include <string.h>

#include "../torch/autograd_layout.h"
#include "devices.h"
#include "../tables/fields.h"
#include "../tables/interrupts.h"
#include "tags.h"
#include "../torch/torch_layout.h"

#define MAX_DIMS 5u /* kept inside TensorImpl; more are behind a pointer */
#define MAX_SHOWN_DIMS 64u

static bool
torch_is_whole(PyObject *module)
{
    PyObject *dict = PyModule_GetDict(module); /* borrowed */
    return dict != NULL && PyDict_GetItemString(dict, "Tensor") != NULL
           && PyDict_GetItemString(dict, "compile") != NULL;
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
        cm_tags_torch_type((PyTypeObject *)tensor);
        if (!Py_IS_TYPE(tensor, &PyType_Type)) {
            cm_tags_torch_type(Py_TYPE(tensor));
        }
    }
}

static enum cm_learnt
torch_learn(void *state, PyObject *module, const char **reason)
{
    if (!torch_is_whole(module)) {
        tag_early(module);
        return CM_LEARNT_LATER;
    }
    PyObject *probing = cm_imported("cumem._torch");
    PyObject *answer = NULL;
    cm_interrupts_enter();
    if (probing != NULL) {
        answer = PyObject_CallMethod(probing, "probe", NULL);
    }
    bool later = answer == Py_None; /* a dispatch mode is active */
    later |= answer == NULL && cm_interrupts_keep(false);
    cm_interrupts_leave();
    PyErr_Clear();
    Py_XDECREF(probing);
    Py_XDECREF(answer);
    const char *missing;
    const struct cm_torch_layout *layout = cm_torch_learnt(&missing);
    if (layout != NULL) {
        memcpy(state, layout, sizeof(*layout));
        return CM_LEARNT_READY;
    }
    *reason = missing;
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
    const struct cm_torch_layout *layout = state;
    return is_subtype(type, layout->tensor)
           || is_subtype(type, layout->storage);
}

/* Numbers of c10::DeviceType; a device that is not here counts as nothing. */
static const char *
device_kind(int type, bool *accelerator)
{
    *accelerator = type != 0;
    switch (type) {
    case 0: return "cpu";
    case 1: return "cuda";
    case 12: return "xpu";
    case 13: return "mps";
    case 15: return "hpu";
    case 20: return "privateuseone";
    default: return NULL;
    }
}

/* The text grows to the left; snprintf() would cost more than the rest. */
static char *
write_number(char *end, uint64_t number)
{
    do {
        *--end = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return end;
}

/* `storage` may be a copy of the one whose address is `key`. */
static bool
read_storage(const struct cm_torch_layout *layout, uintptr_t storage,
             uint64_t key, struct cm_device_memory *result)
{
    const signed char *device =
        (const signed char *)(storage + layout->storage_device);
    const char *kind = device_kind(device[0], &result->accelerator);
    result->storage_key = key;
    result->device_address = cm_word_at(storage, layout->storage_data);
    result->bytes = cm_word_at(storage, layout->storage_bytes);
    result->use_count =
        layout->has_uses ? cm_half_at(storage, layout->storage_uses) : 0;
    if (kind == NULL || result->device_address == 0 || result->bytes == 0
        || result->bytes > (UINT64_C(1) << 48)) {
        return false;
    }
    size_t length = strlen(kind);
    memcpy(result->device, kind, length + 1);
    if (result->accelerator) { /* at most ":127" */
        char number[4];
        char *end = number + sizeof(number);
        char *first =
            write_number(end, device[1] < 0 ? 0 : (uint64_t)device[1]);
        result->device[length] = ':';
        memcpy(result->device + length + 1, first, (size_t)(end - first));
        result->device[length + 1 + (size_t)(end - first)] = '\0';
    }
    return true;
}

static const char *
dtype_text(const struct cm_torch_layout *layout, uintptr_t impl)
{
    uint16_t code = cm_short_at(impl, layout->impl_dtype);
    for (size_t i = 0; i < layout->dtype_count; i++) {
        if (layout->dtypes[i].code == code) {
            return layout->dtypes[i].text;
        }
    }
    return "";
}

void
cm_torch_shape(const struct cm_torch_layout *layout, uintptr_t impl,
               char *text, size_t room)
{
    char digits[24];
    uint64_t dims =
        layout->has_shape ? cm_word_at(impl, layout->impl_dims) : 0;
    uintptr_t sizes = impl + layout->impl_dims + 8;
    size_t used = 0;
    if (!layout->has_shape || dims > MAX_SHOWN_DIMS || room < 40) {
        return;
    }
    if (dims > MAX_DIMS) {
        sizes = (uintptr_t)cm_word_at(sizes, 0);
    }
    text[used++] = '[';
    for (uint64_t i = 0; i < dims && used + 48 < room; i++) {
        char *end = digits + sizeof(digits);
        char *first = write_number(end, cm_word_at(sizes, i * 8));
        if (i != 0) {
            text[used++] = ',';
            text[used++] = ' ';
        }
        memcpy(text + used, first, (size_t)(end - first));
        used += (size_t)(end - first);
    }
    text[used++] = ']';
    text[used++] = ' ';
    strcpy(text + used, dtype_text(layout, impl));
}

void
cm_torch_shape_at(uint64_t impl, char *text, size_t room)
{
    const char *reason;
    const struct cm_torch_layout *layout = cm_torch_learnt(&reason);
    uint64_t words[24];
    text[0] = '\0';
    if (layout != NULL && layout->has_shape && cm_torch_peek(impl, words, 24)
        && cm_word_at((uintptr_t)words, layout->impl_dims) <= MAX_DIMS) {
        cm_torch_shape(layout, (uintptr_t)words, text, room);
    }
}

static void
torch_shape(const void *state, PyObject *object, char *text, size_t room)
{
    const struct cm_torch_layout *layout = state;
    cm_torch_shape(layout, cm_word_at((uintptr_t)object, layout->object_impl),
                   text, room);
}

/* Whether C++ holds one of the references to an object: from torch 2.10 on when
 * it uses what the object stands for, before when nobody else holds it. */
static void
read_kept(const struct cm_torch_layout *layout, uintptr_t object, size_t kept,
          uint32_t uses, struct cm_device_memory *result)
{
    if (!layout->counts_cpp && kept != 0) {
        result->lent = *(const unsigned char *)(object + kept) == 1;
        result->preserved = result->lent;
        return;
    }
    result->preserved = uses > 1;
}

static bool
torch_read(const void *state, PyObject *object,
           struct cm_device_memory *result)
{
    const struct cm_torch_layout *layout = state;
    uintptr_t address = (uintptr_t)object;
    memset(result, 0, sizeof(*result));
    if (is_subtype(Py_TYPE(object), layout->storage)) {
        uintptr_t storage = cm_word_at(address, layout->storage_object);
        if (storage == 0 || !read_storage(layout, storage, storage, result)) {
            return false;
        }
        result->is_storage = true;
        read_kept(layout, address, layout->storage_kept,
                  layout->counts_cpp ? result->use_count : 0, result);
        return true;
    }
    if (!is_subtype(Py_TYPE(object), layout->tensor)) {
        return false;
    }
    uintptr_t impl = cm_word_at(address, layout->object_impl);
    uintptr_t storage = impl != 0 ? cm_word_at(impl, layout->impl_storage) : 0;
    if (storage == 0 || !read_storage(layout, storage, storage, result)) {
        return false;
    }
    read_kept(layout, address, layout->object_kept,
              layout->has_impl_uses ? cm_half_at(impl, layout->impl_uses) : 0,
              result);
    result->forgotten =
        layout->counts_cpp && result->preserved && Py_REFCNT(object) == 1;
    return true;
}

bool
cm_torch_read_storage(const struct cm_torch_layout *layout, uint64_t storage,
                      struct cm_device_memory *result)
{
    uint64_t words[CM_TORCH_STORAGE_WORDS];
    memset(result, 0, sizeof(*result));
    return storage != 0
           && cm_torch_peek(storage, words, CM_TORCH_STORAGE_WORDS)
           && words[0] == layout->storage_vtable
           && read_storage(layout, (uintptr_t)words, storage, result);
}

/* The tables of hooks stand behind the TensorImpl; that one of them is the
 * referent is its own proof. */
static const char *
torch_field(const void *state, PyObject *object, PyObject *referent)
{
    static const char *const names[] = {"._backward_hooks",
                                        "._post_accumulate_grad_hooks"};
    const struct cm_torch_layout *layout = state;
    if (!is_subtype(Py_TYPE(object), layout->tensor)) {
        return NULL;
    }
    for (size_t i = 0; i < 2; i++) {
        if (cm_word_at((uintptr_t)object, layout->object_impl + 8 + i * 8)
            == (uintptr_t)referent) {
            return names[i];
        }
    }
    return NULL;
}

/* A freed StorageImpl has lost its first word to the allocator, or counts no
 * use, or holds another pointer by now. */
static bool
holds_memory(const struct cm_torch_layout *layout, const uint64_t *words,
             uint64_t device_address)
{
    uintptr_t copy = (uintptr_t)words;
    return words[0] == layout->storage_vtable
           && cm_half_at(copy, layout->storage_uses) != 0
           && cm_word_at(copy, layout->storage_data) == device_address;
}

static void
torch_alive(const void *state, const struct cm_storage *storages, size_t count,
            enum cm_alive *answers)
{
    const struct cm_torch_layout *layout = state;
    static_assert(CM_ALIVE_MAX <= CM_TORCH_PEEK_MAX, "one peek is enough");
    uint64_t addresses[CM_ALIVE_MAX] = {0};
    uint64_t words[CM_ALIVE_MAX][CM_TORCH_STORAGE_WORDS];
    bool there[CM_ALIVE_MAX];
    if (!layout->has_uses || layout->storage_vtable == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        addresses[i] = storages[i].key;
    }
    cm_torch_peek_many(addresses, count, words[0], CM_TORCH_STORAGE_WORDS,
                       there);
    for (size_t i = 0; i < count; i++) {
        bool alive =
            there[i]
            && holds_memory(layout, words[i], storages[i].device_address);
        answers[i] = alive ? CM_ALIVE_YES : CM_ALIVE_NO;
    }
}

static void
torch_forget(void *state)
{
    struct cm_torch_layout *layout = state;
    if (layout->tensor != NULL) { /* the learnt one's references are these */
        cm_torch_unlearn();
        cm_autograd_unlearn();
    }
    Py_CLEAR(layout->tensor);
    Py_CLEAR(layout->storage);
}

const struct cm_reader cm_torch_reader = {
    .module = "torch",
    .state_bytes = sizeof(struct cm_torch_layout),
    .learn = torch_learn,
    .claims = torch_claims,
    .read = torch_read,
    .shape = torch_shape,
    .field = torch_field,
    .alive = torch_alive,
    .forget = torch_forget,
    .counts_all = true,
    .untracked = false, /* UntypedStorage is a Python class: tracked */
};
