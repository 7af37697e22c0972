/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Cost of one tensor made and freed: two lines of sixteen bytes written, and a
 * stack; the table (detector/tag_table.h) learns of many tensors together.
 * Where the allocator's hook has the stacks of torch's memory its tensors need
 * no tag: then they are told of while somebody waits for one, which each
 * iteration does until its forward pass is under way, and rest otherwise.  A
 * type rests once its next tensor is made. */

#include "tags.h"

#include <string.h>

#include "../../detector/alloc.h"
#include "../../detector/hot.h"
#include "../../detector/meter.h"
#include "../torch/forward.h"
#include "tensor_meta.h"

#define SELDOM 16u
#define RESTING 256u /* tensors that end, between two questions */
#define MAX_WATCHED 8192u

/* Guarded by the GIL, all of it. */
static struct {
    /* What each tensor reads lies in one cache line, with the table's first. */
    _Alignas(64) struct cm_objects *objects; /* borrowed; NULL: not tagging */
    uint64_t forward_from; /* autograd's number at which on_forward is due */
    uint32_t until_asked;  /* tensors, until on_tensor is called again */
    uint32_t watched_count;
    bool stacks;
    bool blocks; /* known, and no foreign tensor is being made */
    bool known;  /* the allocator's hook has the stacks of torch's memory */
    bool have_unhooked; /* objects of frameworks without a hook */
    bool awaited;       /* so said who was asked last */
    bool resting;       /* torch's types that make a tensor are let go of */
    struct cm_tag_table table;

    PyTypeObject *tensor; /* borrowed from torch, which is never unloaded */
    uint32_t foreign; /* calls that make tensors of memory that it has not */
    uint32_t (*on_tensor)(void);
    void (*on_forward)(void);
    uint64_t *watched; /* owned: addresses, open addressing; 0: empty */
    uint32_t watched_places;
} tags;

static uint32_t watched_at[MAX_WATCHED]; /* places in use: few, mostly */

static PyObject *tagging_alloc_of_torch(PyTypeObject *type, Py_ssize_t items);

static uint32_t
find_watched(uint64_t address)
{
    uint32_t at = cm_tag_place(address, tags.watched_places);
    while (tags.watched[at] != 0
           && (tags.watched[at] & ~UINT64_C(1)) != address) {
        at = (at + 1) & (tags.watched_places - 1);
    }
    return at;
}

static void
wake(void)
{
    if (tags.resting && tags.tensor->tp_alloc == PyType_GenericAlloc) {
        tags.tensor->tp_alloc = tagging_alloc_of_torch;
    }
    tags.resting = false;
}

void
cm_tags_wake(void)
{
    tags.until_asked = 0;
    wake();
}

static __attribute__((noinline)) void
ask(uint32_t seldom)
{
    uint32_t until =
        tags.on_tensor != NULL ? tags.on_tensor() : CM_TENSORS_UNAWAITED;
    tags.awaited = until != CM_TENSORS_UNAWAITED;
    tags.until_asked = tags.awaited ? until : seldom - 1;
    if (tags.awaited) {
        wake();
    }
}

/* until_asked has just gone below 0, or a forward pass is awaited. */
static __attribute__((noinline)) void
tell(void)
{
    if (tags.until_asked == UINT32_MAX) {
        ask(SELDOM);
    }
    if (tags.forward_from != 0 && cm_forward_number() >= tags.forward_from) {
        tags.forward_from = 0;
        tags.on_forward();
    }
    if (tags.forward_from == 0 && tags.blocks && !tags.awaited
        && tags.tensor != NULL) {
        tags.resting = true;
        tags.until_asked = RESTING;
    }
}

static inline void
note_one_more(void)
{
    if (tags.until_asked-- == 0 || tags.forward_from != 0) {
        tell();
    }
}

static inline void
tag(PyObject *object, struct cm_site_id site)
{
    cm_tag_table_add(&tags.table, (uint64_t)(uintptr_t)object, site,
                     tags.foreign != 0);
    note_one_more();
}

static __attribute__((noinline)) void
tag_with_stack(PyObject *object)
{
    struct cm_site_id site = cm_objects_tensor_stack(tags.objects);
    cm_forward_note(site, false);
    tag(object, site);
}

static inline void
note_made(PyObject *object)
{
    CM_METERED(CM_METER_TENSOR);
    if (CM_PASSES(CM_METER_TENSOR) || object == NULL || tags.objects == NULL) {
        return;
    }
    if (tags.stacks) {
        tag_with_stack(object);
    }
    else {
        tag(object, (struct cm_site_id){0});
    }
}

/* A tensor whose memory's allocation is heard. */
static inline void
note_passing(PyTypeObject *type)
{
    CM_METERED(CM_METER_TENSOR);
    if (!tags.resting && !CM_PASSES(CM_METER_TENSOR)) {
        note_one_more();
    }
    if (tags.resting) {
        type->tp_alloc = PyType_GenericAlloc;
    }
}

/* [new; raises] as PyType_GenericAlloc, both. */
static PyObject *
tagging_alloc(PyTypeObject *type, Py_ssize_t items)
{
    PyObject *object = PyType_GenericAlloc(type, items);
    tags.have_unhooked = true;
    note_made(object);
    return object;
}

CM_HOT static PyObject *
tagging_alloc_of_torch(PyTypeObject *type, Py_ssize_t items)
{
    PyObject *object = PyType_GenericAlloc(type, items);
    if (tags.blocks) {
        note_passing(type);
    }
    else {
        note_made(object);
    }
    return object;
}

static inline void
note_end(uint64_t address)
{
    CM_METERED(CM_METER_TENSOR_FREE);
    if (!cm_tag_table_is_empty(&tags.table)) {
        cm_tag_table_remove(&tags.table, address);
    }
    if (tags.resting && tags.until_asked-- == 0) {
        ask(RESTING);
    }
}

static __attribute__((noinline)) void
note_watched_end(uint64_t address)
{
    uint32_t at = find_watched(address);
    if (tags.watched[at] != 0) {
        tags.watched[at] = address | 1; /* died */
    }
}

/* [none; never] as PyObject_GC_Del. */
CM_HOT static void
tagging_free(void *object)
{
    uint64_t address = (uint64_t)(uintptr_t)object;
    note_end(address);
    if (tags.watched_count != 0) {
        note_watched_end(address);
    }
    PyObject_GC_Del(object);
}

int
cm_tags_start(struct cm_objects *objects, bool stacks)
{
    if (cm_tag_table_begin(&tags.table) != CM_OK) {
        return -1;
    }
    tags.objects = objects;
    tags.stacks = stacks;
    cm_objects_note_memory(objects, stacks);
    return 0;
}

void
cm_tags_on_tensor(uint32_t (*hook)(void))
{
    tags.on_tensor = hook;
    tags.until_asked = 0;
}

static void
wrap(PyTypeObject *type, allocfunc alloc)
{
    if (PyType_IS_GC(type) && type->tp_alloc == PyType_GenericAlloc
        && (type->tp_free == PyObject_GC_Del
            || type->tp_free == tagging_free)) {
        type->tp_alloc = alloc;
        type->tp_free = tagging_free;
    }
}

void
cm_tags_on_forward(uint64_t number, void (*hook)(void))
{
    cm_tags_wake();
    tags.on_forward = hook;
    tags.forward_from = number;
}

void
cm_tags_type(PyTypeObject *type)
{
    if (tags.objects != NULL) {
        wrap(type, tagging_alloc);
    }
}

/* Also where nothing is tagged any more, in a forked child. */
static void
wrap_derived(PyTypeObject *type)
{
    PyTypeObject *base = type->tp_base;
    if (base != NULL && base->tp_free == tagging_free) {
        wrap(type, tagging_alloc_of_torch);
    }
}

void
cm_tags_torch_type(PyTypeObject *type)
{
    if (tags.objects == NULL) {
        return;
    }
    if (PyType_FastSubclass(type, Py_TPFLAGS_TYPE_SUBCLASS)) {
        cm_tensor_meta_wrap(type, wrap_derived);
        return;
    }
    tags.tensor = tags.tensor != NULL ? tags.tensor : type;
    wrap(type, tagging_alloc_of_torch);
}

/* Of a framework whose memory is not heard. */
static bool
needs_tag(uint64_t address)
{
    return cm_tags_unhooked(Py_TYPE((PyObject *)(uintptr_t)address));
}

static void
update_blocks(void)
{
    tags.blocks = tags.known && tags.foreign == 0;
    if (!tags.blocks) {
        cm_tags_wake();
    }
    if (tags.objects != NULL) {
        cm_objects_note_memory(tags.objects, tags.stacks && !tags.blocks);
    }
}

void
cm_tags_blocks_known(bool known)
{
    if (known && !tags.known) {
        cm_tag_table_keep(&tags.table, needs_tag);
    }
    tags.known = known;
    update_blocks();
}

void
cm_tags_foreign(bool begins)
{
    if (begins) {
        tags.foreign++;
    }
    else if (tags.foreign != 0) { /* forgotten by cm_tags_off() meanwhile */
        tags.foreign--;
    }
    update_blocks();
}

static void
unwrap(PyTypeObject *type)
{
    if (type->tp_alloc == tagging_alloc
        || type->tp_alloc == tagging_alloc_of_torch) {
        type->tp_alloc = PyType_GenericAlloc;
    }
    if (type->tp_free == tagging_free) {
        type->tp_free = PyObject_GC_Del;
    }
}

void
cm_tags_stop(PyObject *types)
{
    for (Py_ssize_t i = 0; types != NULL && PyList_CheckExact(types)
                           && i < PyList_GET_SIZE(types);
         i++) {
        PyObject *type = PyList_GET_ITEM(types, i);
        if (PyType_Check(type)) {
            unwrap((PyTypeObject *)type);
            cm_tensor_meta_unwrap((PyTypeObject *)type);
        }
    }
    cm_tags_off();
}

void
cm_tags_off(void)
{
    cm_tag_table_release(&tags.table);
    cm_free(tags.watched);
    memset(&tags, 0, sizeof(tags));
}

const struct cm_tag *
cm_tags_find(PyObject *object)
{
    return cm_tag_table_find(&tags.table, (uint64_t)(uintptr_t)object);
}

bool
cm_tags_covers(PyTypeObject *type)
{
    return type->tp_free == tagging_free;
}

bool
cm_tags_unhooked(PyTypeObject *type)
{
    return type->tp_alloc == tagging_alloc;
}

CM_HOT bool
cm_tags_have_unhooked(void)
{
    return tags.have_unhooked;
}

void
cm_tags_watch_begin(void)
{
    if (tags.watched == NULL) {
        tags.watched = cm_calloc(MAX_WATCHED * 2, sizeof(uint64_t));
        tags.watched_places = tags.watched != NULL ? MAX_WATCHED * 2 : 0;
    }
    else if (tags.watched_count != 0) {
        for (uint32_t i = 0; i < tags.watched_count; i++) {
            tags.watched[watched_at[i]] = 0;
        }
    }
    tags.watched_count = 0;
}

void
cm_tags_watch(PyObject *object)
{
    if (tags.watched_count < MAX_WATCHED && tags.watched_places != 0
        && cm_tags_covers(Py_TYPE(object))) {
        uint64_t address = (uint64_t)(uintptr_t)object;
        uint32_t at = find_watched(address);
        if (tags.watched[at] == 0) {
            tags.watched[at] = address;
            watched_at[tags.watched_count++] = at;
        }
    }
}

bool
cm_tags_survived(uint64_t address)
{
    if (tags.watched_count == 0) {
        return false;
    }
    uint64_t found = tags.watched[find_watched(address)];
    return found != 0 && (found & 1) == 0;
}

void
cm_tags_counts(struct cm_tags_counts *result)
{
    cm_tag_table_take_in(&tags.table);
    result->live = tags.table.live;
    result->made = tags.table.made;
    result->lost = tags.table.lost;
}

PyObject *
cm_tags_any(bool (*fits)(void *context, PyObject *object), void *context)
{
    cm_tag_table_take_in(&tags.table);
    for (uint32_t i = 0; i < tags.table.place_count; i++) {
        PyObject *object = (PyObject *)(uintptr_t)tags.table.places[i].address;
        if (object != NULL && Py_REFCNT(object) > 0
            && PyObject_GC_IsTracked(object) && fits(context, object)) {
            return object;
        }
    }
    return NULL;
}
