/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Rows from Python are read strictly: a key that is missing is not known. */

#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../allocator_hooks/caller.h"
#include "../../allocator_hooks/process_use.h"
#include "../../detector/alloc.h"
#include "../../reports/exhausted.h"
#include "../allocations/allocations.h"
#include "../frozen/autograd.h"
#include "../allocations/driver_events.h"
#include "../frameworks/live.h"
#include "../session/session_private.h"
#include "../session/steps.h"
#include "../allocations/unhooked.h"

enum { MOST_HELD = 4096 };

/* ---- rows for the document */

/* A number, or CM_LEAK_UNKNOWN for None and what is not there. */
static bool
read_bytes(PyObject *value, uint64_t *result)
{
    *result = CM_LEAK_UNKNOWN;
    if (value != NULL && value != Py_None) {
        *result = PyLong_AsUnsignedLongLong(value);
    }
    return !PyErr_Occurred();
}

static bool
read_keys(PyObject *row, struct cm_device_use *use)
{
    const struct {
        const char *key;
        uint64_t *to;
    } keys[] = {
        {"total", &use->total},
        {"allocated", &use->allocated},
        {"reserved", &use->reserved},
        {"peak_allocated", &use->peak_allocated},
        {"cached", &use->cached},
        {"pending_free", &use->pending_free},
        {"private_pools", &use->private_pools},
        {"outside_frameworks", &use->outside_frameworks},
        {"other_processes", &use->other_processes},
        {"free", &use->free},
        {"largest_free", &use->largest_free},
        {"asked_bytes", &use->asked_bytes},
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        PyObject *value = PyDict_GetItemString(row, keys[i].key);
        uint64_t before = *keys[i].to;
        if (!read_bytes(value, keys[i].to)) {
            return false;
        }
        if (*keys[i].to == CM_LEAK_UNKNOWN) { /* as it was made */
            *keys[i].to = before;
        }
    }
    return true;
}

static bool
read_framework(PyObject *row, struct cm_framework_use *use)
{
    PyObject *allocated, *reserved;
    return PyArg_ParseTuple(row, "sOO", &use->name, &allocated, &reserved)
           && read_bytes(allocated, &use->allocated)
           && read_bytes(reserved, &use->reserved);
}

static bool
read_pool(PyObject *row, struct cm_pool_use *use)
{
    PyObject *values[6];
    int expandable;
    uint64_t *to[] = {&use->reserved,     &use->allocated,    &use->requested,
                      &use->pending_free, &use->largest_free, &use->segments};
    if (!PyArg_ParseTuple(row, "sOOOOOOp", &use->name, &values[0], &values[1],
                          &values[2], &values[3], &values[4], &values[5],
                          &expandable)) {
        return false;
    }
    use->expandable = expandable != 0;
    for (size_t i = 0; i < 6; i++) {
        if (!read_bytes(values[i], to[i])) {
            return false;
        }
    }
    return true;
}

/* Borrowed; NULL: not there, or no list of tuples. */
static PyObject *
list_of(PyObject *row, const char *key, size_t most, size_t *count)
{
    PyObject *list = PyDict_GetItemString(row, key);
    *count = 0;
    if (list == NULL || !PyList_CheckExact(list)) {
        return NULL;
    }
    size_t length = (size_t)PyList_GET_SIZE(list);
    *count = length < most ? length : most;
    return list;
}

static void
note_outside(struct cm_session *self, const struct cm_device_use *use)
{
    int device, end;
    bool known = use->outside_frameworks != CM_LEAK_UNKNOWN
                 && sscanf(use->name, "cuda:%d%n", &device, &end) == 1
                 && use->name[end] == '\0';
    if (known && cm_session_is_main(self) && self->iteration >= 0) {
        cm_growth_outside(&self->growth, device, self->iteration,
                          use->outside_frameworks);
    }
}

static bool
read_row(struct cm_session *self, PyObject *row)
{
    struct cm_framework_use frameworks[CM_MEMORY_MAX_FRAMEWORKS];
    struct cm_pool_use pools[CM_MEMORY_MAX_POOLS];
    struct cm_device_use use;
    PyObject *name = PyDict_GetItemString(row, "name");
    const char *text = name != NULL ? PyUnicode_AsUTF8(name) : "";
    if (text == NULL) {
        return false;
    }
    cm_device_use_init(&use, text);
    use.frameworks = frameworks;
    use.pools = pools;
    PyObject *list = list_of(row, "frameworks", CM_MEMORY_MAX_FRAMEWORKS,
                             &use.framework_count);
    for (size_t i = 0; i < use.framework_count; i++) {
        if (!read_framework(PyList_GET_ITEM(list, (Py_ssize_t)i),
                            &frameworks[i])) {
            return false;
        }
    }
    list = list_of(row, "pools", CM_MEMORY_MAX_POOLS, &use.pool_count);
    for (size_t i = 0; i < use.pool_count; i++) {
        if (!read_pool(PyList_GET_ITEM(list, (Py_ssize_t)i), &pools[i])) {
            return false;
        }
    }
    use.unasked = PyDict_GetItemString(row, "unasked") == Py_True;
    if (!read_keys(row, &use)) {
        return false;
    }
    cm_digest_device(self->digest, &use);
    note_outside(self, &use);
    return true;
}

PyObject *
cm_session_memory(struct cm_session *self, PyObject *rows)
{
    if (!PyList_CheckExact(rows)) {
        PyErr_SetString(PyExc_TypeError, "a list was expected");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        PyObject *row = PyList_GET_ITEM(rows, i);
        if (!PyDict_CheckExact(row)) {
            PyErr_SetString(PyExc_TypeError, "a dict was expected");
            return NULL;
        }
        if (!read_row(self, row)) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

/* [0 or -1; raises] */
static int
read_kept(PyObject *kept, struct cm_exhausted_use *use)
{
    Py_ssize_t count = PyList_GET_SIZE(kept);
    for (Py_ssize_t i = 0; i < count && i < CM_LEAK_MAX_KEPT; i++) {
        unsigned long long bytes;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(kept, i), "sK", &use->ways[i],
                              &bytes)) {
            return -1;
        }
        use->bytes[use->count++] = bytes;
    }
    return 0;
}

PyObject *
cm_session_exhausted(struct cm_session *self, PyObject *args)
{
    struct cm_exhausted_use use = {.asked_bytes = CM_LEAK_UNKNOWN};
    enum cm_status status = CM_OK;
    PyObject *asked, *kept;
    if (!PyArg_ParseTuple(args, "ssOO!:exhausted", &use.error, &use.device,
                          &asked, &PyList_Type, &kept)
        || !read_bytes(asked, &use.asked_bytes) || read_kept(kept, &use) < 0) {
        return NULL;
    }
    if (!self->silent && cm_session_is_main(self)) {
        cm_steps_tell(self);
        Py_BEGIN_ALLOW_THREADS
        status = cm_digest_exhausted(self->digest, &use);
        Py_END_ALLOW_THREADS
    }
    return status == CM_OK ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

PyObject *
cm_session_exhausted_all(struct cm_session *self)
{
    if (!self->silent && cm_session_is_main(self)) {
        Py_BEGIN_ALLOW_THREADS
        cm_digest_exhausted_all(self->digest);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

/* ---- what no Python object explains */

struct explained {
    struct cm_session *session;
    uint64_t *addresses; /* owned */
    size_t count, capacity;
    bool host; /* its memory is in the table too */
};

static void
note_memory(struct explained *self, const struct cm_device_memory *memory)
{
    uint64_t place = cm_unhooked_place(memory);
    if ((memory->accelerator || self->host) && !memory->forgotten && place != 0
        && cm_grow((void **)&self->addresses, &self->capacity, self->count + 1,
                   sizeof(*self->addresses))
               == CM_OK) {
        self->addresses[self->count++] = place;
    }
}

static void
note_object(struct explained *self, PyObject *object)
{
    struct cm_device_memory memory = {0};
    if (cm_grad_kept_by_cpp(object)) {
        return;
    }
    /* Devices that nobody watches are explained all the same. */
    bool read = cm_devices_read(self->session->devices, object, &memory);
    do {
        note_memory(self, &memory);
    } while (read && cm_devices_next(self->session->devices, object, &memory));
}

static enum cm_status
note_objects(struct explained *self)
{
    struct cm_objects_array live = {0};
    enum cm_status status = cm_live_list(self->session->devices, &live);
    for (size_t i = 0; i < live.count; i++) {
        note_object(self, live.items[i]);
    }
    cm_objects_array_release(&live);
    return status;
}

static int
by_number(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Does an object's memory begin in this block?  Before: sorted. */
static bool
explains(const struct explained *self, const struct cm_block *block)
{
    size_t low = 0, high = self->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool below = self->addresses[middle] < block->address;
        low = below ? middle + 1 : low;
        high = below ? high : middle;
    }
    return low < self->count
           && self->addresses[low] - block->address < block->bytes;
}

struct groups {
    struct cm_held *items; /* owned; open addressing by site and device */
    char (*names)[CM_DEVICE_NAME_BYTES]; /* owned */
    size_t count;
};

static bool
is_same_group(const struct cm_held *a, const struct cm_held *b)
{
    return a->site.index == b->site.index && a->awaited == b->awaited
           && strcmp(a->device, b->device) == 0
           && strcmp(a->framework, b->framework) == 0
           && strcmp(a->library, b->library) == 0;
}

/* NULL: too many.  `wanted`: all but its device, bytes and count. */
static struct cm_held *
group_of(struct groups *self, struct cm_held wanted, int device)
{
    char name[CM_DEVICE_NAME_BYTES];
    cm_allocations_device(device, name);
    wanted.device = name;
    size_t at = (wanted.site.index * 31u + (unsigned)device * 7u
                 + (unsigned char)wanted.library[0] + wanted.awaited)
                % (MOST_HELD * 2);
    for (;; at = (at + 1) % (MOST_HELD * 2)) {
        struct cm_held *item = &self->items[at];
        if (item->device == NULL) {
            if (self->count == MOST_HELD) {
                return NULL;
            }
            self->count++;
            memcpy(self->names[at], name, sizeof(name));
            *item = wanted;
            item->device = self->names[at];
            return item;
        }
        if (is_same_group(item, &wanted)) {
            return item;
        }
    }
}

static void
add_block(struct groups *groups, struct cm_held wanted,
          const struct cm_block *block)
{
    wanted.awaited = block->awaited;
    struct cm_held *item = group_of(groups, wanted, block->device);
    if (item != NULL) {
        item->bytes += block->bytes;
        item->count++;
    }
}

static enum cm_status
add_torch(struct groups *groups, const struct explained *explained)
{
    struct cm_block *blocks;
    size_t count;
    if (cm_allocations_blocks() == NULL) {
        return CM_OK;
    }
    enum cm_status status =
        cm_blocks_copy(cm_allocations_blocks(), &blocks, &count);
    for (size_t i = 0; status == CM_OK && i < count; i++) {
        if (!explains(explained, &blocks[i])) {
            add_block(groups,
                      (struct cm_held){.framework = "torch",
                                       .library = "",
                                       .site = blocks[i].site},
                      &blocks[i]);
        }
    }
    if (status == CM_OK) {
        cm_free(blocks);
    }
    return status;
}

/* By how its file's name begins. */
static bool
is_among(const char *library, PyObject *libraries)
{
    bool found = false;
    for (Py_ssize_t i = 0; !found && i < PyList_GET_SIZE(libraries); i++) {
        Py_ssize_t length;
        const char *name =
            PyUnicode_AsUTF8AndSize(PyList_GET_ITEM(libraries, i), &length);
        found = name != NULL && strncmp(library, name, (size_t)length) == 0;
    }
    PyErr_Clear();
    return found;
}

/* What a framework has taken, into a pool or for one object, is counted with
 * the framework. */
static enum cm_status
add_driver(struct groups *groups, PyObject *libraries)
{
    struct cm_block *blocks;
    size_t count;
    enum cm_status status = cm_driver_events_copy(&blocks, &count);
    for (size_t i = 0; status == CM_OK && i < count; i++) {
        struct cm_origin origin = cm_driver_events_origin(blocks[i].site);
        const char *library = cm_caller_name(origin.library);
        if (!cm_unhooked_in(&blocks[i]) && !is_among(library, libraries)) {
            add_block(groups,
                      (struct cm_held){.framework = "driver",
                                       .library = library,
                                       .site = origin.site},
                      &blocks[i]);
        }
    }
    if (status == CM_OK) {
        cm_free(blocks);
    }
    return status;
}

/* The items stand side by side afterwards. */
static void
close_ranks(struct groups *self)
{
    size_t kept = 0;
    for (size_t i = 0; i < MOST_HELD * 2; i++) {
        if (self->items[i].device != NULL) {
            self->items[kept++] = self->items[i];
        }
    }
}

static enum cm_status
find_held(struct cm_session *self, struct explained *explained,
          struct groups *groups, PyObject *libraries)
{
    groups->items = cm_calloc(MOST_HELD * 2, sizeof(*groups->items));
    groups->names = cm_calloc(MOST_HELD * 2, sizeof(*groups->names));
    if (groups->items == NULL || groups->names == NULL) {
        return CM_NO_MEMORY;
    }
    explained->session = self;
    explained->host = cm_allocations_host_heard();
    enum cm_status status = note_objects(explained);
    if (explained->count != 0) {
        qsort(explained->addresses, explained->count, sizeof(uint64_t),
              by_number);
    }
    if (status == CM_OK) {
        status = add_torch(groups, explained);
    }
    if (status == CM_OK) {
        status = add_driver(groups, libraries);
    }
    if (status == CM_OK) {
        close_ranks(groups);
        status = cm_digest_held(self->digest, groups->items, groups->count);
    }
    return status;
}

PyObject *
cm_session_held(struct cm_session *self, PyObject *libraries)
{
    struct explained explained = {0};
    struct groups groups = {0};
    if (!PyList_CheckExact(libraries)) {
        PyErr_SetString(PyExc_TypeError, "a list was expected");
        return NULL;
    }
    if (!self->silent && cm_session_is_main(self)
        && (cm_allocations_blocks() != NULL || cm_driver_events_heard())) {
        cm_session_see_objects(self);
        self->no_memory +=
            find_held(self, &explained, &groups, libraries) == CM_NO_MEMORY;
    }
    cm_free(explained.addresses);
    cm_free(groups.items);
    cm_free(groups.names);
    Py_RETURN_NONE;
}

PyObject *
cm_session_add_site(struct cm_session *self, PyObject *frames)
{
    return cm_objects_told_stack(self->objects, frames);
}

/* ---- to Python */

PyObject *
cm_session_ask_objects(struct cm_session *self)
{
    if (!self->silent && cm_session_is_main(self)) {
        cm_session_see_objects(self);
    }
    Py_RETURN_NONE;
}

PyObject *
cm_objects_use_of(PyObject *module, PyObject *index)
{
    (void)module;
    long device = PyLong_AsLong(index);
    return PyErr_Occurred() ? NULL : cm_unhooked_use(device);
}

static PyObject *
bytes_or_none(uint64_t bytes)
{
    return bytes == CM_USE_UNKNOWN ? Py_NewRef(Py_None)
                                   : PyLong_FromUnsignedLongLong(bytes);
}

PyObject *
cm_process_use_of(PyObject *module, PyObject *index)
{
    struct cm_process_use use;
    const char *why = NULL;
    bool known;
    long device = PyLong_AsLong(index);
    (void)module;
    if (PyErr_Occurred()) {
        return NULL;
    }
    memset(&use, 0xFF, sizeof(use)); /* CM_USE_UNKNOWN */
    Py_BEGIN_ALLOW_THREADS
    known = cm_process_use((int)device, &use, &why);
    Py_END_ALLOW_THREADS(void)
    known;
    return Py_BuildValue("NNNNNz", bytes_or_none(use.total),
                         bytes_or_none(use.used), bytes_or_none(use.free),
                         bytes_or_none(use.own), bytes_or_none(use.others),
                         why);
}

PyObject *
cm_blocks_use_of(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    struct cm_blocks *blocks = cm_allocations_blocks();
    PyObject *result = PyDict_New();
    for (int i = 0;
         result != NULL && blocks != NULL && i < cm_blocks_devices(blocks);
         i++) {
        struct cm_block_use use;
        cm_blocks_use(blocks, i, &use);
        PyObject *key = PyLong_FromLong(i);
        PyObject *row =
            Py_BuildValue("KKKKK", use.live_bytes, use.live_count,
                          use.allocated, use.reserved, use.peak_bytes);
        if (key == NULL || row == NULL
            || PyDict_SetItem(result, key, row) < 0) {
            Py_CLEAR(result);
        }
        Py_XDECREF(key);
        Py_XDECREF(row);
    }
    return result;
}
