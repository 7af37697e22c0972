/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Looking at a storage that may be gone reads freed memory, so it is done by
 * the reader through the kernel (process_vm_readv), which answers instead of
 * faulting: some 3 us each.  Foretelling visits every tracked object once, and
 * only when some storage has more uses than garbage objects: about 5 ns an
 * object. */

#include "fate.h"

#include "../../detector/alloc.h"
#include "../allocations/allocations.h"
#include "../frameworks/live.h"
#include "../frameworks/tags.h"

#define MAX_LOOKED_AT 8192u

static void
decide(struct cm_storage *storage, bool goes)
{
    storage->use_count = goes ? 0 : storage->uses_here + 1;
}

static void
mark_survivors(struct cm_heap *heap, const bool *back)
{
    for (size_t i = 1; i <= heap->node_count; i++) {
        struct cm_node *node = &heap->nodes[i];
        bool asked = back == NULL || !back[i];
        if (asked && node->storage.index != 0
            && cm_tags_survived(node->address)) {
            node->survived = true;
        }
    }
}

/* Those that the node refers to are to be looked at too; how many are by now. */
static size_t
add_heads(const struct cm_heap *heap, uint32_t node, bool *back,
          uint32_t *todo, size_t count)
{
    const struct cm_node *record = &heap->nodes[node];
    for (uint32_t i = 0; i < record->edge_count; i++) {
        uint32_t head = heap->edges[record->first_edge + i].head;
        if (!back[head]) {
            back[head] = true;
            todo[count++] = head;
        }
    }
    return count;
}

/* asyncio brings an async generator back for a turn of its loop, in which
 * aclose() runs, and with it all that it has: that goes by itself then, so what
 * was counted when it was found is all there is to say.  By node; NULL: there is
 * none, or no memory. */
static bool *
find_brought_back(const struct cm_heap *heap)
{
    bool *back = NULL;
    uint32_t *todo = NULL;
    size_t count = 0;
    for (size_t i = 1; i <= heap->node_count; i++) {
        if (heap->nodes[i].species != CM_ASYNC_GENERATOR) {
            continue;
        }
        if (back == NULL) {
            back = cm_calloc(heap->node_count + 1, sizeof *back);
            todo = cm_calloc(heap->node_count + 1, sizeof *todo);
        }
        if (back == NULL || todo == NULL) {
            break;
        }
        back[i] = true;
        todo[count++] = (uint32_t)i;
    }
    while (todo != NULL && back != NULL && count > 0) {
        count = add_heads(heap, todo[count - 1], back, todo, count - 1);
    }
    cm_free(todo);
    return back;
}

/* Of each storage that they have: 1 + its uses as they were counted; else 0. */
static uint64_t *
uses_brought_back(const struct cm_heap *heap, const bool *back)
{
    uint64_t *uses = cm_calloc(heap->storage_count + 1, sizeof *uses);
    for (size_t i = 1; uses != NULL && i <= heap->node_count; i++) {
        uint32_t storage = heap->nodes[i].storage.index;
        if (back[i] && storage != 0) {
            uses[storage] = 1 + (uint64_t)heap->storages[storage].use_count;
        }
    }
    return uses;
}

/* At most CM_ALIVE_MAX. */
static void
ask(struct cm_storage *storages, size_t count,
    const struct cm_devices *devices)
{
    enum cm_alive alive[CM_ALIVE_MAX];
    cm_devices_alive(devices, storages, count, alive);
    for (size_t i = 0; i < count; i++) {
        if (alive[i] != CM_ALIVE_UNKNOWN) {
            decide(&storages[i], alive[i] == CM_ALIVE_NO);
        }
    }
}

/* Most have told of their end by then, and need not be asked for. */
static void
ask_all(struct cm_heap *heap, const struct cm_devices *devices)
{
    size_t count = heap->storage_count < MAX_LOOKED_AT ? heap->storage_count
                                                       : MAX_LOOKED_AT;
    size_t from = 0; /* those before are decided */
    struct cm_storage *storages = &heap->storages[1];
    for (size_t i = 0; i < count; i++) {
        bool gone = cm_allocations_gone(&storages[i]);
        if (gone || i - from == CM_ALIVE_MAX) {
            ask(storages + from, i - from, devices);
            from = gone ? i + 1 : i;
        }
        if (gone) {
            decide(&storages[i], true);
        }
    }
    if (from < count) {
        ask(storages + from, count - from, devices);
    }
}

void
cm_fate_observe(struct cm_heap *heap, const struct cm_devices *devices)
{
    bool *back = find_brought_back(heap);
    uint64_t *uses = back != NULL ? uses_brought_back(heap, back) : NULL;
    mark_survivors(heap, back);
    if (heap->storage_count != 0) {
        ask_all(heap, devices);
    }
    for (size_t i = 1; uses != NULL && i <= heap->storage_count; i++) {
        if (uses[i] != 0 && heap->storages[i].use_count != 0) {
            heap->storages[i].use_count = (uint32_t)(uses[i] - 1);
        }
    }
    cm_free(uses);
    cm_free(back);
}

/* Storage keys -> index, so that each live object costs one look-up. */
struct shared {
    struct cm_heap *heap;
    struct cm_devices *devices;
    const struct cm_fate_known *known;
    uint32_t *places; /* owned: storage ids by hash of their key; 0: empty */
    size_t place_count;
    bool *is_shared;     /* owned, per storage id, as the next */
    uint32_t *uses_kept; /* by its Python object that only it keeps */
};

static size_t
find_place(const struct shared *self, uint64_t key)
{
    size_t at = (size_t)((key >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 20)
                & (self->place_count - 1);
    while (self->places[at] != 0
           && self->heap->storages[self->places[at]].key != key) {
        at = (at + 1) & (self->place_count - 1);
    }
    return at;
}

static bool
index_storages(struct shared *self)
{
    size_t count = self->heap->storage_count;
    self->place_count = 64;
    while (self->place_count < count * 2) {
        self->place_count *= 2;
    }
    self->places = cm_calloc(self->place_count, sizeof(*self->places));
    self->is_shared = cm_calloc(count + 1, sizeof(*self->is_shared));
    self->uses_kept = cm_calloc(count + 1, sizeof(*self->uses_kept));
    if (self->places == NULL || self->is_shared == NULL
        || self->uses_kept == NULL) {
        return false;
    }
    for (size_t i = 1; i <= count; i++) {
        self->places[find_place(self, self->heap->storages[i].key)] =
            (uint32_t)i;
    }
    return true;
}

/* An object that only C++ holds is no holder itself: a view's base, whose uses
 * are counted; a storage's own Python object, which goes with the storage. */
static void
look_at_live(struct shared *self, PyObject *object)
{
    struct cm_device_memory memory;
    if (!cm_devices_read(self->devices, object, &memory)) {
        return;
    }
    uint32_t id = self->places[find_place(self, memory.storage_key)];
    if (id == 0 || self->known->is_dead(self->known->context, object)) {
        return;
    }
    if (cm_device_memory_unheld(&memory, object)) {
        self->uses_kept[id] += memory.is_storage && !memory.lent;
    }
    else {
        self->is_shared[id] = true;
    }
}

static bool
look_at_heap(struct shared *self)
{
    struct cm_objects_array live = {0};
    if (cm_live_list(self->devices, &live) != CM_OK) {
        return false;
    }
    for (size_t i = 0; i < live.count; i++) {
        look_at_live(self, live.items[i]);
    }
    cm_objects_array_release(&live);
    return true;
}

static bool
has_open_questions(const struct cm_heap *heap)
{
    for (size_t i = 1; i <= heap->storage_count; i++) {
        if (heap->storages[i].use_count > heap->storages[i].uses_here) {
            return true;
        }
    }
    return false;
}

static void
decide_all(const struct shared *self)
{
    bool whole = self->heap->nodes_cut == 0
                 && self->known->is_whole(self->known->context);
    for (size_t i = 1; i <= self->heap->storage_count; i++) {
        struct cm_storage *storage = &self->heap->storages[i];
        uint32_t known = storage->uses_here + self->uses_kept[i];
        bool used = whole && storage->use_count > known
                    && cm_devices_count_all(self->devices, storage);
        decide(storage, !self->is_shared[i] && !used);
    }
}

void
cm_fate_foretell(struct cm_heap *heap, struct cm_devices *devices,
                 const struct cm_fate_known *known)
{
    struct shared shared = {.heap = heap, .devices = devices, .known = known};
    if (has_open_questions(heap) && index_storages(&shared)
        && look_at_heap(&shared)) {
        decide_all(&shared);
    }
    cm_free(shared.places);
    cm_free(shared.is_shared);
    cm_free(shared.uses_kept);
}
