/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Four passes, so that a collection without device garbage costs one type
 * look-up per object and a large one with a small leak little more:
 *   1. choose   which objects are device-backed; all garbage when it is within
 *               bounds, else the neighbourhood of the device-backed ones (the
 *               collector's list is close to the order of allocation);
 *   2. connect  references among the chosen, as positions (tp_traverse);
 *   3. keep     those from which a device-backed object can be reached;
 *   4. copy     the kept ones with names, types, labels and sites.
 * Cost: about 10 ns per garbage object, 60 ns per chosen, 500 ns per kept. */

#include "freeze.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../detector/alloc.h"
#include "tags.h"

#define NOT_CHOSEN UINT32_MAX
#define TIME_CHECK_MASK 63u

/* PRESERVED: a device-backed object that garbage refers to and the collector
 * takes for reachable: it is in an older generation, or its framework's C++
 * side holds a reference to it. */
enum { DEVICE = 1, KEPT = 2, PRESERVED = 4 };

struct place {
    PyObject *object;
    uint32_t position;
};

struct link {
    uint32_t tail, head;
};

struct cm_freezer {
    struct cm_objects *objects; /* borrowed, as the two below */
    struct cm_devices *devices;
    struct cm_records *records;
    /* Scratch of one freeze, kept for the next.  Owned. */
    PyObject **chosen;
    size_t chosen_count, chosen_capacity;
    uint8_t *flags;
    size_t flag_capacity;
    struct place *map;
    size_t map_capacity; /* a power of two, or 0 */
    struct link *links;
    size_t link_count, link_capacity;
    uint32_t *starts, *tails, *queue, *node_of;
    size_t start_capacity, tail_capacity, queue_capacity, node_capacity;
    size_t kept_count, device_count;
    uint32_t *orders; /* per storage: order of its first object */
    size_t order_capacity;
    /* Of the freeze under way. */
    struct cm_heap *heap;
    const struct cm_freeze_bounds *bounds;
    uint64_t deadline_ns;
    uint32_t current;
    enum cm_status status;
};

static uint64_t
now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static bool
out_of_time(const struct cm_freezer *self)
{
    return now_ns(CLOCK_MONOTONIC) > self->deadline_ns;
}

struct cm_freezer *
cm_freezer_new(struct cm_objects *objects, struct cm_devices *devices,
               struct cm_records *records)
{
    struct cm_freezer *self = cm_calloc(1, sizeof(*self));
    if (self != NULL) {
        self->objects = objects;
        self->devices = devices;
        self->records = records;
    }
    return self;
}

void
cm_freezer_free(struct cm_freezer *self)
{
    if (self == NULL) {
        return;
    }
    cm_free(self->chosen);
    cm_free(self->flags);
    cm_free(self->map);
    cm_free(self->links);
    cm_free(self->starts);
    cm_free(self->tails);
    cm_free(self->queue);
    cm_free(self->node_of);
    cm_free(self->orders);
    cm_free(self);
}

/* --- 1. choose ---------------------------------------------------------- */

static enum cm_status
choose(struct cm_freezer *self, PyObject *object, uint8_t flags)
{
    size_t needed = self->chosen_count + 1;
    enum cm_status status =
        cm_grow((void **)&self->chosen, &self->chosen_capacity, needed,
                sizeof(*self->chosen));
    if (status == CM_OK) {
        status = cm_grow((void **)&self->flags, &self->flag_capacity, needed,
                         sizeof(*self->flags));
    }
    if (status == CM_OK) {
        self->chosen[self->chosen_count] = object;
        self->flags[self->chosen_count] = flags;
        self->chosen_count = needed;
        self->device_count += (flags & DEVICE) != 0;
    }
    return status;
}

static bool
is_device_backed(struct cm_freezer *self, PyObject *object)
{
    struct cm_device_memory memory;
    return cm_devices_claim(self->devices, Py_TYPE(object)) &&
           cm_devices_read(self->devices, object, &memory);
}

/* visitproc: answers 1 at an untracked device-backed referent. */
static int
visit_untracked(PyObject *referent, void *context)
{
    struct cm_freezer *self = context;
    return !PyObject_IS_GC(referent) && is_device_backed(self, referent);
}

static bool
leads_to_untracked(struct cm_freezer *self, PyObject *object)
{
    traverseproc traverse = Py_TYPE(object)->tp_traverse;
    return cm_devices_untracked(self->devices) && traverse != NULL &&
           traverse(object, visit_untracked, self) != 0;
}

static size_t
count_device_backed(struct cm_freezer *self, const struct cm_garbage *garbage)
{
    size_t count = 0;
    for (size_t i = 0; i < garbage->count; i++) {
        PyObject *object = garbage->objects[i];
        count += is_device_backed(self, object) ||
                 leads_to_untracked(self, object);
    }
    return count;
}

static enum cm_status
choose_range(struct cm_freezer *self, const struct cm_garbage *garbage,
             size_t from, size_t to)
{
    enum cm_status status = CM_OK;
    for (size_t i = from; status == CM_OK && i < to; i++) {
        PyObject *object = garbage->objects[i];
        status = choose(self, object,
                        is_device_backed(self, object) ? DEVICE : 0);
    }
    return status;
}

static enum cm_status
choose_near(struct cm_freezer *self, const struct cm_garbage *garbage,
            size_t device_count)
{
    size_t reach = self->bounds->max_objects / device_count / 2 + 8;
    size_t taken = 0; /* everything before this position is decided */
    enum cm_status status = CM_OK;
    for (size_t i = 0; status == CM_OK && i < garbage->count; i++) {
        PyObject *object = garbage->objects[i];
        if (!is_device_backed(self, object) &&
            !leads_to_untracked(self, object)) {
            continue;
        }
        size_t from = i > reach ? i - reach : 0;
        size_t to = i + reach < garbage->count ? i + reach : garbage->count;
        from = from > taken ? from : taken;
        if (from < to &&
            self->chosen_count + (to - from) <= self->bounds->max_objects) {
            status = choose_range(self, garbage, from, to);
            taken = to;
        }
    }
    return status;
}

static enum cm_status
choose_objects(struct cm_freezer *self, const struct cm_garbage *garbage)
{
    self->chosen_count = self->device_count = 0;
    size_t device_count = count_device_backed(self, garbage);
    if (device_count == 0) {
        return CM_OK;
    }
    if (garbage->count <= self->bounds->max_objects) {
        return choose_range(self, garbage, 0, garbage->count);
    }
    return choose_near(self, garbage, device_count);
}

/* --- the map from object to position ------------------------------------ */

static struct place *
find_place(const struct cm_freezer *self, PyObject *object)
{
    uint64_t hash = ((uintptr_t)object >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash >> 24) & (self->map_capacity - 1);
    while (self->map[at].object != NULL && self->map[at].object != object) {
        at = (at + 1) & (self->map_capacity - 1);
    }
    return &self->map[at];
}

static uint32_t
position_of(const struct cm_freezer *self, PyObject *object)
{
    const struct place *place = find_place(self, object);
    return place->object != NULL ? place->position : NOT_CHOSEN;
}

/* Room for twice the chosen objects, and as many untracked referents again. */
static enum cm_status
make_map(struct cm_freezer *self)
{
    size_t needed = 64;
    while (needed < self->chosen_count * 4) {
        needed *= 2;
    }
    if (needed > self->map_capacity) {
        struct place *bigger = cm_calloc(needed, sizeof(*bigger));
        if (bigger == NULL) {
            return CM_NO_MEMORY;
        }
        cm_free(self->map);
        self->map = bigger;
        self->map_capacity = needed;
    } else {
        memset(self->map, 0, self->map_capacity * sizeof(*self->map));
    }
    for (size_t i = 0; i < self->chosen_count; i++) {
        struct place *place = find_place(self, self->chosen[i]);
        place->object = self->chosen[i];
        place->position = (uint32_t)i;
    }
    return CM_OK;
}

/* --- 2. connect ---------------------------------------------------------- */

/* Referents that are not in the garbage list but may go with it: device-backed
 * objects that are not tracked, or that C++ preserves (a view's base). */
static uint32_t
choose_referent(struct cm_freezer *self, PyObject *object)
{
    if (self->chosen_count * 2 >= self->map_capacity ||
        !is_device_backed(self, object)) {
        return NOT_CHOSEN;
    }
    self->status = choose(self, object,
                          PyObject_IS_GC(object) ? DEVICE | PRESERVED
                                                 : DEVICE);
    if (self->status != CM_OK) {
        return NOT_CHOSEN;
    }
    struct place *place = find_place(self, object);
    place->object = object;
    place->position = (uint32_t)(self->chosen_count - 1);
    return place->position;
}

/* visitproc: never stops the traversal, failures are kept in the status. */
static int
visit_link(PyObject *referent, void *context)
{
    struct cm_freezer *self = context;
    uint32_t head = position_of(self, referent);
    if (head == NOT_CHOSEN) {
        head = choose_referent(self, referent);
    }
    if (head == NOT_CHOSEN || self->status != CM_OK) {
        return 0;
    }
    self->status = cm_grow((void **)&self->links, &self->link_capacity,
                           self->link_count + 1, sizeof(*self->links));
    if (self->status == CM_OK) {
        self->links[self->link_count].tail = self->current;
        self->links[self->link_count].head = head;
        self->link_count++;
    }
    return 0;
}

static enum cm_status
connect_chosen(struct cm_freezer *self)
{
    self->link_count = 0;
    self->status = CM_OK;
    size_t count = self->chosen_count;
    for (size_t i = 0; self->status == CM_OK && i < count; i++) {
        if ((i & TIME_CHECK_MASK) == 0 && out_of_time(self)) {
            self->heap->nodes_cut += count - i;
            break;
        }
        traverseproc traverse = Py_TYPE(self->chosen[i])->tp_traverse;
        self->current = (uint32_t)i;
        if (traverse != NULL && PyObject_IS_GC(self->chosen[i])) {
            traverse(self->chosen[i], visit_link, self);
        }
    }
    return self->status;
}

/* Shares its storage with an object of the garbage list. */
static bool
shares_with_garbage(struct cm_freezer *self, PyObject *object, size_t listed)
{
    struct cm_device_memory memory, other;
    if (!cm_devices_read(self->devices, object, &memory)) {
        return false;
    }
    for (size_t i = 0; i < listed; i++) {
        if ((self->flags[i] & DEVICE) &&
            cm_devices_read(self->devices, self->chosen[i], &other) &&
            other.storage_key == memory.storage_key) {
            return true;
        }
    }
    return false;
}

static bool
is_dead_all_the_same(struct cm_freezer *self, size_t at, Py_ssize_t references,
                     size_t listed)
{
    struct cm_device_memory memory;
    Py_ssize_t others = Py_REFCNT(self->chosen[at]) - references;
    if (others != 1) {
        return others == 0;
    }
    return cm_devices_read(self->devices, self->chosen[at], &memory) &&
           (memory.preserved || memory.is_storage) &&
           (self->heap->generation >= 0 ||
            shares_with_garbage(self, self->chosen[at], listed));
}

/* A preserved object is dead when its references are the garbage's and at most
 * the one of C++.  After a collection that is looked at (fate.h); a scan must
 * believe it, and does only for bases and views of what is garbage. */
static enum cm_status
judge_preserved(struct cm_freezer *self, size_t listed)
{
    enum cm_status status =
        cm_grow((void **)&self->node_of, &self->node_capacity,
                self->chosen_count + 1, sizeof(*self->node_of));
    if (status != CM_OK || listed == self->chosen_count) {
        return status;
    }
    uint32_t *references = self->node_of; /* not yet in use for nodes */
    memset(references, 0, self->chosen_count * sizeof(*references));
    for (size_t i = 0; i < self->link_count; i++) {
        references[self->links[i].head]++;
    }
    for (size_t i = listed; i < self->chosen_count; i++) {
        if ((self->flags[i] & PRESERVED) &&
            !is_dead_all_the_same(self, i, (Py_ssize_t)references[i],
                                  listed)) {
            self->flags[i] &= (uint8_t)~DEVICE;
            self->device_count--;
        }
    }
    return CM_OK;
}

/* --- 3. keep -------------------------------------------------------------- */

/* Counting sort of the links by head: tails of head h stand from starts[h]. */
static enum cm_status
reverse_links(struct cm_freezer *self)
{
    size_t n = self->chosen_count;
    enum cm_status status =
        cm_grow((void **)&self->starts, &self->start_capacity, n + 2,
                sizeof(*self->starts));
    if (status == CM_OK) {
        status = cm_grow((void **)&self->tails, &self->tail_capacity,
                         self->link_count + 1, sizeof(*self->tails));
    }
    if (status != CM_OK) {
        return status;
    }
    memset(self->starts, 0, (n + 2) * sizeof(*self->starts));
    for (size_t i = 0; i < self->link_count; i++) {
        self->starts[self->links[i].head + 2]++;
    }
    for (size_t i = 2; i < n + 2; i++) {
        self->starts[i] += self->starts[i - 1];
    }
    for (size_t i = 0; i < self->link_count; i++) {
        self->tails[self->starts[self->links[i].head + 1]++] =
            self->links[i].tail;
    }
    return CM_OK;
}

static size_t
queue_devices(struct cm_freezer *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->chosen_count; i++) {
        if ((self->flags[i] & DEVICE) && count < self->bounds->max_nodes) {
            self->flags[i] |= KEPT;
            self->queue[count++] = (uint32_t)i;
        }
    }
    return count;
}

/* Breadth first against the references, from the device-backed objects. */
static enum cm_status
keep_leading(struct cm_freezer *self)
{
    enum cm_status status = reverse_links(self);
    if (status == CM_OK) {
        status = cm_grow((void **)&self->queue, &self->queue_capacity,
                         self->chosen_count + 1, sizeof(*self->queue));
    }
    if (status != CM_OK) {
        return status;
    }
    size_t count = queue_devices(self);
    for (size_t next = 0; next < count; next++) {
        uint32_t head = self->queue[next];
        for (uint32_t i = self->starts[head]; i < self->starts[head + 1];
             i++) {
            uint32_t tail = self->tails[i];
            if (self->flags[tail] & KEPT) {
                continue;
            }
            if (count >= self->bounds->max_nodes) {
                self->heap->nodes_cut++;
                continue;
            }
            self->flags[tail] |= KEPT;
            self->queue[count++] = tail;
        }
    }
    self->kept_count = count;
    return CM_OK;
}

/* --- 4. copy -------------------------------------------------------------- */

static void
label_size(char *text, size_t room, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    size_t unit = 0;
    while (size >= 1024 && unit < 4) {
        size /= 1024;
        unit++;
    }
    snprintf(text, room, unit > 0 && size < 9.95 ? "%.1f %s" : "%.0f %s",
             size, units[unit]);
}

/* "Tensor [64, 512] float32 cuda:0 128 KiB" */
static struct cm_text_id
device_label(struct cm_freezer *self, PyTypeObject *type,
             const struct cm_device_memory *memory)
{
    char text[256], size[32];
    const char *name = strrchr(type->tp_name, '.');
    name = name != NULL ? name + 1 : type->tp_name;
    label_size(size, sizeof(size), memory->bytes);
    snprintf(text, sizeof(text), "%.60s%s%s %s %s", name,
             memory->shape[0] != '\0' ? " " : "", memory->shape,
             memory->device, memory->bytes != 0 ? size : "(size not known)");
    return cm_texts_intern(cm_records_texts(self->records), text);
}

/* The storage's site is that of the first of its objects that was made. */
static void
note_site(struct cm_freezer *self, uint32_t storage, const struct cm_tag *tag)
{
    size_t had = self->order_capacity;
    if (tag == NULL ||
        cm_grow((void **)&self->orders, &self->order_capacity,
                (size_t)storage + 1, sizeof(*self->orders)) != CM_OK) {
        return;
    }
    for (size_t i = had; i < self->order_capacity; i++) {
        self->orders[i] = UINT32_MAX;
    }
    if (tag->order < self->orders[storage]) {
        self->orders[storage] = tag->order;
        self->heap->storages[storage].site = tag->site;
    }
}

static enum cm_status
describe_device(struct cm_freezer *self, PyObject *object,
                struct cm_node *node)
{
    struct cm_device_memory memory;
    if (!cm_devices_read(self->devices, object, &memory)) {
        return CM_OK;
    }
    struct cm_texts *texts = cm_records_texts(self->records);
    struct cm_storage storage = {
        .key = memory.storage_key,
        .device_address = memory.device_address,
        .bytes = memory.bytes,
        .device = cm_texts_intern(texts, memory.device),
        .use_count = memory.use_count,
        .reader = memory.reader,
    };
    const struct cm_tag *tag = cm_tags_find(object);
    node->species = memory.is_storage ? CM_STORAGE : CM_TENSOR;
    node->label = device_label(self, Py_TYPE(object), &memory);
    node->bytes = memory.bytes;
    node->site = tag != NULL ? tag->site : (struct cm_site_id){0};
    enum cm_status status =
        cm_heap_add_storage(self->heap, &storage, &node->storage);
    if (status == CM_OK) {
        note_site(self, node->storage.index, tag);
        cm_tags_watch(object);
    }
    return status;
}

static enum cm_status
copy_node(struct cm_freezer *self, size_t position)
{
    struct cm_node node = {0};
    struct cm_node_id id;
    PyObject *object = self->chosen[position];
    cm_objects_describe(self->objects, object, &node);
    node.address = (uint64_t)(uintptr_t)object;
    enum cm_status status = CM_OK;
    if (self->flags[position] & DEVICE) {
        status = describe_device(self, object, &node);
    }
    if (status == CM_OK) {
        status = cm_heap_add_node(self->heap, &node, &id);
    }
    if (status == CM_OK) {
        self->node_of[position] = id.index;
    }
    return status;
}

static enum cm_status
copy_nodes(struct cm_freezer *self)
{
    enum cm_status status =
        cm_grow((void **)&self->node_of, &self->node_capacity,
                self->chosen_count + 1, sizeof(*self->node_of));
    for (size_t i = 0; i < self->order_capacity; i++) {
        self->orders[i] = UINT32_MAX;
    }
    for (size_t i = 0; status == CM_OK && i < self->chosen_count; i++) {
        self->node_of[i] = 0;
        if (self->flags[i] & KEPT) {
            status = copy_node(self, i);
        }
    }
    return status;
}

static int
is_kept(void *context, PyObject *referent)
{
    const struct cm_freezer *self = context;
    uint32_t position = position_of(self, referent);
    return position != NOT_CHOSEN && (self->flags[position] & KEPT);
}

static void
add_edge(struct cm_freezer *self, uint32_t head, struct cm_text_id label,
         enum cm_role role)
{
    struct cm_edge edge = {.tail = self->current,
                           .head = head,
                           .label = label,
                           .role = (uint8_t)role};
    if (self->status == CM_OK) {
        self->status = cm_heap_add_edge(self->heap, &edge);
    }
}

static void
copy_edge(void *context, PyObject *referent, struct cm_text_id label,
          enum cm_role role)
{
    struct cm_freezer *self = context;
    add_edge(self, self->node_of[position_of(self, referent)], label, role);
}

/* Out of time for names: the structure at least stays whole. */
static int
copy_unnamed(PyObject *referent, void *context)
{
    struct cm_freezer *self = context;
    if (is_kept(self, referent)) {
        add_edge(self, self->node_of[position_of(self, referent)],
                 (struct cm_text_id){0}, CM_REFERENCE);
    }
    return 0;
}

static void
copy_edges_of(struct cm_freezer *self, PyObject *object, bool named)
{
    traverseproc traverse = Py_TYPE(object)->tp_traverse;
    if (named) {
        cm_objects_edges(self->objects, object, is_kept, copy_edge, self);
    } else if (traverse != NULL && PyObject_IS_GC(object)) {
        traverse(object, copy_unnamed, self);
        self->heap->nodes_cut++;
    }
}

static enum cm_status
copy_edges(struct cm_freezer *self)
{
    bool in_time = true;
    self->status = CM_OK;
    cm_objects_begin(self->objects, self->chosen, self->chosen_count);
    for (size_t i = 0; self->status == CM_OK && i < self->chosen_count; i++) {
        if (self->node_of[i] == 0) {
            continue;
        }
        if ((i & TIME_CHECK_MASK) == 0 && in_time) {
            in_time = !out_of_time(self);
        }
        self->current = self->node_of[i];
        copy_edges_of(self, self->chosen[i], in_time);
    }
    return self->status;
}

static enum cm_status
freeze_chosen(struct cm_freezer *self)
{
    size_t listed = self->chosen_count;
    enum cm_status status = make_map(self);
    if (status == CM_OK) {
        status = connect_chosen(self);
    }
    if (status == CM_OK) {
        status = judge_preserved(self, listed);
    }
    if (status == CM_OK && self->device_count != 0) {
        status = keep_leading(self);
    }
    if (status == CM_OK && self->device_count != 0) {
        cm_tags_watch_begin();
        status = copy_nodes(self);
    }
    if (status == CM_OK && self->heap->node_count != 0) {
        status = copy_edges(self);
    }
    if (status == CM_OK && self->heap->node_count != 0) {
        status = cm_heap_seal(self->heap);
    }
    return status;
}

enum cm_status
cm_freeze(struct cm_freezer *self, const struct cm_garbage *garbage,
          const struct cm_freeze_bounds *bounds, struct cm_heap *heap)
{
    self->heap = heap;
    self->bounds = bounds;
    self->deadline_ns = now_ns(CLOCK_MONOTONIC) + bounds->max_time_ns;
    enum cm_status status = choose_objects(self, garbage);
    if (status == CM_OK && self->chosen_count != 0) {
        heap->objects_seen = garbage->count;
        heap->nodes_cut = garbage->count - self->chosen_count;
        heap->generation = garbage->generation;
        heap->time_ns = now_ns(CLOCK_REALTIME);
        heap->iteration = -1;
        heap->frozen_generation = garbage->frozen;
        status = freeze_chosen(self);
    }
    if (status != CM_OK) {
        cm_heap_release(heap);
    }
    return status;
}

bool
cm_freezer_knows_dead(void *freezer, PyObject *object)
{
    const struct cm_freezer *self = freezer;
    uint32_t position = position_of(self, object);
    return position != NOT_CHOSEN &&
           (!(self->flags[position] & PRESERVED) ||
            (self->flags[position] & DEVICE));
}
