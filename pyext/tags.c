/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* An open-addressing table from object address to site (16 bytes a place,
 * at most 3/4 full, linear probing with backward-shift deletion).  Cost of one
 * tensor made and freed: two look-ups, and a stack where nobody else has it. */

#include "tags.h"

#include <string.h>

#include "../detector/alloc.h"
#include "../detector/hot.h"
#include "../detector/meter.h"
#include "forward.h"

#define FIRST_PLACES 256u /* few: they stay in the cache */
#define MAX_PLACES (1u << 24)
#define STACK_FRAMES 64
#define SELDOM 8u
#define MAX_WATCHED 8192u

/* Guarded by the GIL, all of it. */
static struct {
    /* What each tensor reads lies in one cache line. */
    _Alignas(64) struct cm_objects *objects; /* borrowed; NULL: not tagging */
    struct cm_tag *places;                   /* owned */
    uint32_t place_count;                    /* a power of two */
    uint32_t live;
    uint32_t next_order;
    uint32_t until_asked; /* tensors, until on_tensor is called again */
    uint64_t made;
    uint64_t forward_from; /* autograd's number at which on_forward is due */
    bool (*on_tensor)(void);
    uint32_t watched_count;
    bool stacks;
    bool blocks; /* known, and no foreign tensor is being made */
    bool known;  /* the allocator's hook has the stacks of torch's memory */
    bool have_unhooked; /* objects of frameworks without a hook */

    uint64_t lost;
    uint32_t foreign; /* calls that make tensors of memory that it has not */
    void (*on_forward)(void);
    uint64_t *watched; /* owned: addresses, open addressing; 0: empty */
    uint32_t watched_places;
    uint32_t watched_at[MAX_WATCHED]; /* places in use: few, mostly */
} tags;

CM_HOT static uint32_t
place_of(uint64_t address, uint32_t place_count)
{
    uint64_t hash = (address >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(hash >> 32) & (place_count - 1);
}

CM_HOT static uint32_t
find_place(const struct cm_tag *places, uint32_t count, uint64_t address)
{
    uint32_t at = place_of(address, count);
    while (places[at].address != 0 && places[at].address != address) {
        at = (at + 1) & (count - 1);
    }
    return at;
}

static bool
grow_places(void)
{
    uint32_t count = tags.place_count ? tags.place_count * 2 : FIRST_PLACES;
    struct cm_tag *bigger =
        count <= MAX_PLACES ? cm_calloc(count, sizeof(*bigger)) : NULL;
    if (bigger == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < tags.place_count; i++) {
        const struct cm_tag *tag = &tags.places[i];
        if (tag->address != 0) {
            bigger[find_place(bigger, count, tag->address)] = *tag;
        }
    }
    cm_free(tags.places);
    tags.places = bigger;
    tags.place_count = count;
    return true;
}

CM_HOT static void
add_tag(PyObject *object, struct cm_site_id site)
{
    if (tags.live >= tags.place_count / 4 * 3 && !grow_places()) {
        tags.lost++;
        return;
    }
    uint64_t address = (uint64_t)(uintptr_t)object;
    uint32_t at = find_place(tags.places, tags.place_count, address);
    tags.live += tags.places[at].address == 0;
    tags.places[at].address = address;
    tags.places[at].order = tags.next_order++;
    tags.places[at].site = site;
    tags.made++;
}

/* Moves later tags of the same run back over the hole at `at`. */
CM_HOT static void
close_hole(uint32_t at)
{
    uint32_t mask = tags.place_count - 1;
    uint32_t hole = at;
    for (uint32_t i = (at + 1) & mask; tags.places[i].address != 0;
         i = (i + 1) & mask) {
        uint32_t home = place_of(tags.places[i].address, tags.place_count);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            tags.places[hole] = tags.places[i];
            hole = i;
        }
    }
    tags.places[hole].address = 0;
}

CM_HOT static void
drop_tag(uint64_t address)
{
    CM_METERED(CM_METER_TENSOR_FREE);
    if (tags.place_count == 0) {
        return;
    }
    uint32_t at = find_place(tags.places, tags.place_count, address);
    if (tags.places[at].address != 0) {
        tags.live--;
        close_hole(at);
    }
}

static uint32_t
find_watched(uint64_t address)
{
    uint32_t at = place_of(address, tags.watched_places);
    while (tags.watched[at] != 0
           && (tags.watched[at] & ~UINT64_C(1)) != address) {
        at = (at + 1) & (tags.watched_places - 1);
    }
    return at;
}

CM_HOT static void
tag(PyObject *object, bool asks)
{
    CM_METERED(CM_METER_TENSOR);
    struct cm_site_id site = {0};
    if (object == NULL || tags.objects == NULL) {
        return;
    }
    if (tags.stacks && asks) {
        site = cm_objects_stack(tags.objects, STACK_FRAMES);
        cm_forward_note(site, false);
    }
    add_tag(object, site);
    if (tags.on_tensor != NULL && tags.until_asked-- == 0) {
        tags.until_asked = tags.on_tensor() ? 0 : SELDOM - 1;
    }
    if (tags.forward_from != 0 && cm_forward_number() >= tags.forward_from) {
        tags.forward_from = 0;
        tags.on_forward();
    }
}

/* [new; raises] as PyType_GenericAlloc, both. */
static PyObject *
tagging_alloc(PyTypeObject *type, Py_ssize_t items)
{
    PyObject *object = PyType_GenericAlloc(type, items);
    tags.have_unhooked = true;
    tag(object, true);
    return object;
}

/* A tensor whose memory's allocation is heard needs no stack of its own. */
CM_HOT static PyObject *
tagging_alloc_of_torch(PyTypeObject *type, Py_ssize_t items)
{
    PyObject *object = PyType_GenericAlloc(type, items);
    tag(object, !tags.blocks);
    return object;
}

/* [none; never] as PyObject_GC_Del. */
CM_HOT static void
tagging_free(void *object)
{
    uint64_t address = (uint64_t)(uintptr_t)object;
    if (tags.live != 0) {
        drop_tag(address);
    }
    if (tags.watched_count != 0) {
        uint32_t at = find_watched(address);
        if (tags.watched[at] != 0) {
            tags.watched[at] = address | 1; /* died */
        }
    }
    PyObject_GC_Del(object);
}

int
cm_tags_start(struct cm_objects *objects, bool stacks)
{
    if (tags.place_count == 0 && !grow_places()) {
        return -1;
    }
    tags.objects = objects;
    tags.stacks = stacks;
    return 0;
}

void
cm_tags_on_tensor(bool (*hook)(void))
{
    tags.on_tensor = hook;
    tags.until_asked = 0;
}

static void
wrap(PyTypeObject *type, allocfunc alloc)
{
    if (tags.objects != NULL && PyType_IS_GC(type)
        && type->tp_alloc == PyType_GenericAlloc
        && type->tp_free == PyObject_GC_Del) {
        type->tp_alloc = alloc;
        type->tp_free = tagging_free;
    }
}

void
cm_tags_on_forward(uint64_t number, void (*hook)(void))
{
    tags.on_forward = hook;
    tags.forward_from = number;
}

void
cm_tags_type(PyTypeObject *type)
{
    wrap(type, tagging_alloc);
}

void
cm_tags_torch_type(PyTypeObject *type)
{
    wrap(type, tagging_alloc_of_torch);
}

void
cm_tags_blocks_known(bool known)
{
    tags.known = known;
    tags.blocks = known && tags.foreign == 0;
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
    tags.blocks = tags.known && tags.foreign == 0;
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
        }
    }
    cm_tags_off();
}

void
cm_tags_off(void)
{
    cm_free(tags.places);
    cm_free(tags.watched);
    memset(&tags, 0, sizeof(tags));
}

const struct cm_tag *
cm_tags_find(PyObject *object)
{
    if (tags.live == 0) {
        return NULL;
    }
    uint64_t address = (uint64_t)(uintptr_t)object;
    uint32_t at = find_place(tags.places, tags.place_count, address);
    return tags.places[at].address != 0 ? &tags.places[at] : NULL;
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

bool
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
            tags.watched[tags.watched_at[i]] = 0;
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
            tags.watched_at[tags.watched_count++] = at;
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
    result->live = tags.live;
    result->made = tags.made;
    result->lost = tags.lost;
}

PyObject *
cm_tags_any(bool (*fits)(void *context, PyObject *object), void *context)
{
    for (uint32_t i = 0; i < tags.place_count; i++) {
        PyObject *object = (PyObject *)(uintptr_t)tags.places[i].address;
        if (object != NULL && Py_REFCNT(object) > 0
            && PyObject_GC_IsTracked(object) && fits(context, object)) {
            return object;
        }
    }
    return NULL;
}
