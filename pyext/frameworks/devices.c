/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A direct-mapped cache of 1,024 types in front of the readers' claims.  A type's
 * address may be used again after it died, so an entry also holds the type's
 * name pointer and instance size; a wrong hit costs one reader a look at an
 * object that it then refuses (readers check the type again). */

#include "devices.h"

#include <string.h>

#include "../../detector/alloc.h"
#include "../../detector/hot.h"
#include "../../detector/shape.h"
#include "../../detector/size.h"
#include "../tables/finalizing.h"
#include "../torch/torch_layout.h"

#define CACHE_SIZE 1024u
#define MAX_WATCHED 512u

static const struct cm_reader *const readers[] = {
    &cm_torch_reader,     &cm_cupy_reader, &cm_numba_reader,
    &cm_jax_reader,       &cm_rmm_reader,  &cm_cuda_core_reader,
    &cm_interface_reader,
};
#define READER_COUNT (sizeof(readers) / sizeof(readers[0]))
_Static_assert(READER_COUNT <= CM_MAX_READERS, "cm_device_memory.reader");

struct reader_slot {
    void *state;
    PyObject *name; /* owned: interned module name */
    enum cm_learnt learnt;
    bool imported;
    const char *reason; /* constant */
};

struct type_entry {
    PyTypeObject *type;
    const char *name;
    Py_ssize_t basicsize;
    uint8_t reader; /* 0: none, else index + 1 */
};

struct cm_devices {
    struct reader_slot slots[READER_COUNT];
    struct type_entry cache[CACHE_SIZE];
    char watched[MAX_WATCHED];
    bool host_allowed;
    bool accelerator_seen;
    bool untracked;
    bool noticing; /* what a probe has learnt is taken by who probed */
};

struct cm_devices *
cm_devices_new(const struct cm_objects *objects)
{
    struct cm_devices *self = cm_calloc(1, sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < READER_COUNT; i++) {
        struct reader_slot *slot = &self->slots[i];
        slot->learnt = CM_LEARNT_LATER;
        slot->state = cm_calloc(1, readers[i]->state_bytes);
        slot->name = PyUnicode_InternFromString(readers[i]->module);
        if (slot->state == NULL || slot->name == NULL) {
            PyErr_Clear();
            cm_devices_free(self);
            return NULL;
        }
        if (readers[i]->begin != NULL) {
            readers[i]->begin(slot->state, objects);
        }
    }
    self->host_allowed = true;
    strcpy(self->watched, "auto");
    return self;
}

void
cm_devices_free(struct cm_devices *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < READER_COUNT; i++) {
        struct reader_slot *slot = &self->slots[i];
        if (slot->state != NULL) {
            readers[i]->forget(slot->state);
        }
        cm_free(slot->state);
        Py_XDECREF(slot->name);
    }
    cm_free(self);
}

static void
learn(struct cm_devices *self, size_t index, PyObject *module)
{
    struct reader_slot *slot = &self->slots[index];
    slot->reason = NULL;
    slot->learnt = readers[index]->learn(slot->state, module, &slot->reason);
    slot->imported = true;
    if (slot->learnt != CM_LEARNT_LATER) {
        /* What was "no reader" before may be claimed now. */
        memset(self->cache, 0, sizeof(self->cache));
    }
    if (slot->learnt == CM_LEARNT_READY) {
        self->untracked |= readers[index]->untracked;
    }
}

static void
notice_one(struct cm_devices *self, size_t index, PyObject *modules)
{
    struct reader_slot *slot = &self->slots[index];
    if (slot->learnt == CM_LEARNT_LATER) {
        PyObject *module = PyDict_GetItemWithError(modules, slot->name);
        if (module != NULL && PyModule_Check(module)) {
            Py_INCREF(module);
            learn(self, index, module);
            Py_DECREF(module);
        }
    }
    if (slot->learnt == CM_LEARNT_READY && readers[index]->notice != NULL) {
        readers[index]->notice(slot->state);
    }
}

void
cm_devices_notice(struct cm_devices *self)
{
    PyObject *modules = /* borrowed */
        cm_is_finalizing() ? NULL : PyImport_GetModuleDict();
    if (modules == NULL || !PyDict_CheckExact(modules) || self->noticing) {
        return;
    }
    self->noticing = true;
    for (size_t i = 0; i < READER_COUNT; i++) {
        notice_one(self, i, modules);
    }
    self->noticing = false;
    PyErr_Clear();
}

void
cm_devices_forked(struct cm_devices *self)
{
    self->noticing = false;
}

void
cm_devices_watch(struct cm_devices *self, const char *names, bool host_allowed)
{
    self->host_allowed = host_allowed;
    size_t length = strlen(names);
    if (length < sizeof(self->watched)) {
        memcpy(self->watched, names, length + 1);
    }
}

/* Whether it is of the framework's own, written in C: such types have the
 * module in their name. */
static bool
is_of(const PyTypeObject *type, const char *module)
{
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0;
         mro != NULL && PyTuple_CheckExact(mro) && i < PyTuple_GET_SIZE(mro);
         i++) {
        const char *name = ((PyTypeObject *)PyTuple_GET_ITEM(mro, i))->tp_name;
        if (strncmp(name, module, strlen(module)) == 0
            && strchr(name, '.') != NULL) {
            return true;
        }
    }
    return false;
}

/* JAX's arrays on the CPU, and torch's, offer the CUDA array interface too:
 * until their own reader is learnt, nobody says where they lie. */
static bool
waits_for_its_own(const struct cm_devices *self, const PyTypeObject *type)
{
    for (size_t i = 0; i < READER_COUNT; i++) {
        const struct reader_slot *slot = &self->slots[i];
        if (slot->imported && slot->learnt == CM_LEARNT_LATER
            && is_of(type, readers[i]->module)) {
            return true;
        }
    }
    return false;
}

static uint8_t
find_reader(const struct cm_devices *self, PyTypeObject *type)
{
    for (size_t i = 0; i < READER_COUNT; i++) {
        if (readers[i] == &cm_interface_reader
            && waits_for_its_own(self, type)) {
            return 0;
        }
        if (self->slots[i].learnt == CM_LEARNT_READY
            && readers[i]->claims(self->slots[i].state, type)) {
            return (uint8_t)(i + 1);
        }
    }
    return 0;
}

static uint8_t
reader_of(struct cm_devices *self, PyTypeObject *type)
{
    size_t at = ((uintptr_t)type >> 4) % CACHE_SIZE;
    struct type_entry *entry = &self->cache[at];
    if (entry->type != type || entry->name != type->tp_name
        || entry->basicsize != type->tp_basicsize) {
        entry->type = type;
        entry->name = type->tp_name;
        entry->basicsize = type->tp_basicsize;
        entry->reader = find_reader(self, type);
    }
    return entry->reader;
}

bool
cm_devices_claim(struct cm_devices *self, PyTypeObject *type)
{
    return reader_of(self, type) != 0;
}

bool
cm_devices_untracked(const struct cm_devices *self)
{
    return self->untracked;
}

/* Does `device` ("cuda:0") stand in the list, by itself or by its kind?  Asked
 * of each tensor, in caches that are cold: no function of libc. */
static bool
listed(const char *list, const char *device)
{
    while (*list != '\0') {
        const char *same = device;
        for (; *list != '\0' && *list == *same; list++) {
            same++;
        }
        bool ends = *list == '\0' || *list == ',';
        if (ends && same != device && (*same == '\0' || *same == ':')) {
            return true;
        }
        while (*list != '\0' && *list++ != ',') {
        }
    }
    return false;
}

static bool
counts(const struct cm_devices *self, const char *names, const char *device,
       bool accelerator)
{
    return listed(names, device)
           || (listed(names, "auto")
               && (accelerator
                   || (self->host_allowed && !self->accelerator_seen)));
}

bool
cm_devices_count(const struct cm_devices *self, const char *names,
                 const char *device)
{
    return counts(self, names, device, strcmp(device, "cpu") != 0);
}

static bool
watches(const struct cm_devices *self, const struct cm_device_memory *memory)
{
    return counts(self, self->watched, memory->device, memory->accelerator);
}

bool
cm_devices_read(struct cm_devices *self, PyObject *object,
                struct cm_device_memory *result)
{
    uint8_t reader = reader_of(self, Py_TYPE(object));
    if (reader == 0
        || !readers[reader - 1]->read(self->slots[reader - 1].state, object,
                                      result)) {
        return false;
    }
    self->accelerator_seen |= result->accelerator;
    result->reader = reader;
    return watches(self, result) || cm_devices_next(self, object, result);
}

bool
cm_devices_next(struct cm_devices *self, PyObject *object,
                struct cm_device_memory *result)
{
    uint8_t reader = result->reader;
    for (uint16_t part = result->part; ++part < result->parts;) {
        struct cm_device_memory other;
        if (readers[reader - 1]->part(self->slots[reader - 1].state, object,
                                      part, &other)) {
            self->accelerator_seen |= other.accelerator;
            other.reader = reader;
            if (watches(self, &other)) {
                *result = other;
                return true;
            }
        }
    }
    return false;
}

bool
cm_devices_read_storage(struct cm_devices *self, uint64_t storage,
                        struct cm_device_memory *result)
{
    const char *reason;
    const struct cm_torch_layout *layout = cm_torch_learnt(&reason);
    if (layout == NULL || readers[0] != &cm_torch_reader
        || !cm_torch_read_storage(layout, storage, result)) {
        return false;
    }
    self->accelerator_seen |= result->accelerator;
    result->reader = 1;
    return watches(self, result);
}

void
cm_devices_shape(const struct cm_devices *self, PyObject *object,
                 const struct cm_device_memory *memory, char *text,
                 size_t room)
{
    const struct cm_reader *reader = readers[memory->reader - 1];
    text[0] = '\0';
    if (reader->shape != NULL && !memory->is_storage) {
        reader->shape(self->slots[memory->reader - 1].state, object, text,
                      room);
    }
}

/* One piece of a label, cut where the room ends; answers the new end. */
static size_t
append(char *text, size_t room, size_t used, const char *piece)
{
    size_t length = strnlen(piece, room - used - 1);
    memcpy(text + used, piece, length);
    text[used + length] = '\0';
    return used + length;
}

void
cm_devices_label_of(const char *name, const char *shape,
                    const struct cm_device_memory *memory,
                    char text[CM_DEVICE_LABEL_BYTES])
{
    char size[CM_SIZE_TEXT_BYTES];
    cm_size_format(memory->bytes, size);
    const char *pieces[] = {name,
                            shape[0] != '\0' ? " " : "",
                            shape,
                            " ",
                            memory->device,
                            " ",
                            memory->bytes != 0 ? size : "(size not known)"};
    size_t used = 0;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        used = append(text, CM_DEVICE_LABEL_BYTES, used, pieces[i]);
    }
}

uint64_t
cm_devices_label(const struct cm_devices *self, PyObject *object,
                 const struct cm_device_memory *memory,
                 char text[CM_DEVICE_LABEL_BYTES])
{
    char shape[112];
    const char *type = Py_TYPE(object)->tp_name;
    const char *name = strrchr(type, '.');
    cm_devices_shape(self, object, memory, shape, sizeof(shape));
    cm_devices_label_of(name != NULL ? name + 1 : type, shape, memory, text);
    return cm_shape_bytes(shape);
}

const char *
cm_devices_field(struct cm_devices *self, PyObject *object, PyObject *referent)
{
    uint8_t reader = reader_of(self, Py_TYPE(object));
    if (reader == 0 || readers[reader - 1]->field == NULL) {
        return NULL;
    }
    return readers[reader - 1]->field(self->slots[reader - 1].state, object,
                                      referent);
}

/* `count` storages of one reader. */
static void
ask_alive(const struct cm_devices *self, const struct cm_storage *storages,
          size_t count, enum cm_alive *answers)
{
    size_t index = (size_t)storages[0].reader - 1;
    for (size_t i = 0; i < count; i++) {
        answers[i] = CM_ALIVE_UNKNOWN;
    }
    if (index < READER_COUNT && readers[index]->alive != NULL) {
        readers[index]->alive(self->slots[index].state, storages, count,
                              answers);
    }
}

void
cm_devices_alive(const struct cm_devices *self,
                 const struct cm_storage *storages, size_t count,
                 enum cm_alive *answers)
{
    size_t from = 0;
    for (size_t to = 1; to <= count; to++) {
        if (to == count || storages[to].reader != storages[from].reader) {
            ask_alive(self, storages + from, to - from, answers + from);
            from = to;
        }
    }
}

bool
cm_devices_count_all(const struct cm_devices *self,
                     const struct cm_storage *storage)
{
    size_t index = (size_t)storage->reader - 1;
    (void)self;
    return index < READER_COUNT && readers[index]->counts_all;
}

CM_HOT bool
cm_devices_host_counts(const struct cm_devices *self)
{
    return cm_devices_count(self, self->watched, "cpu");
}

const char *
cm_devices_framework(uint8_t reader)
{
    return readers[reader - 1]->module;
}

bool
cm_devices_accelerator(const struct cm_devices *self)
{
    return self->accelerator_seen;
}

void
cm_devices_saw_accelerator(struct cm_devices *self)
{
    self->accelerator_seen = true;
}

CM_HOT bool
cm_devices_learning(const struct cm_devices *self)
{
    return self->slots[0].learnt == CM_LEARNT_LATER;
}

static bool
is_imported(const struct reader_slot *slot)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    return modules != NULL && PyDict_CheckExact(modules)
           && PyDict_GetItemWithError(modules, slot->name) != NULL;
}

bool
cm_devices_wait(const struct cm_devices *self)
{
    bool found = false;
    for (size_t i = 0; i < READER_COUNT && !found; i++) {
        found = self->slots[i].learnt == CM_LEARNT_LATER
                && is_imported(&self->slots[i]);
    }
    return found;
}

void
cm_devices_forget(struct cm_devices *self)
{
    for (size_t i = 0; i < READER_COUNT; i++) {
        readers[i]->forget(self->slots[i].state);
        self->slots[i].learnt = CM_LEARNT_LATER;
        self->slots[i].reason = NULL;
    }
    memset(self->cache, 0, sizeof(self->cache));
    self->untracked = false;
}

static const char *
unlearnt_text(const struct reader_slot *slot, bool observed)
{
    return !is_imported(slot) ? "not imported"
           : observed ? "imported; not ready yet: asked again at the next "
                        "collection"
                      : "imported; nobody observes";
}

static const char *
slot_text(const struct reader_slot *slot, bool observed)
{
    switch (slot->learnt) {
    case CM_LEARNT_READY:
        return slot->reason != NULL ? slot->reason : "struct layout";
    case CM_LEARNT_LATER:
        return slot->reason != NULL ? slot->reason
                                    : unlearnt_text(slot, observed);
    default: return slot->reason != NULL ? slot->reason : "unsupported";
    }
}

PyObject *
cm_devices_status(const struct cm_devices *self, bool observed)
{
    PyObject *result = PyDict_New();
    for (size_t i = 0; result != NULL && i < READER_COUNT; i++) {
        if (readers[i] == &cm_interface_reader) { /* no framework's own */
            continue;
        }
        PyObject *text =
            PyUnicode_FromString(slot_text(&self->slots[i], observed));
        if (text == NULL
            || PyDict_SetItemString(result, readers[i]->module, text) < 0) {
            Py_CLEAR(result);
        }
        Py_XDECREF(text);
    }
    return result;
}
