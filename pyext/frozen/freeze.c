/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Copies what choose.c kept, cycle by cycle, with names, types, labels and
 * sites, into a heap that refers to no object.  Cost: about 500 ns an object
 * kept. */

#include "freezer.h"

#include "../../detector/alloc.h"
#include "../../detector/clock.h"
#include "../frameworks/tags.h"
#include "../torch/torch_layout.h"

#define TIME_CHECK_MASK 63u

/* This thread's own time: on a crowded machine the time that others took is no
 * reason to see less.  So many objects are always looked at. */
#define ALWAYS_OBJECTS 2000u

/* What an object of the garbage costs besides: it was read from the collector's
 * list, and its end will be told.  Out of the cache, both. */
#define OBJECT_NS 30u

const struct cm_freeze_bounds cm_freeze_in_collection = {
    .max_objects = 200000, .max_nodes = 50000, .max_time_ns = 9000000};

/* Part of the time has been spent by then, or will be; half is left.  The clock
 * is a system call, which little garbage does without. */
void
cm_freezer_begin(struct cm_freezer *self, const struct cm_garbage *garbage)
{
    self->limited = garbage->count >= ALWAYS_OBJECTS;
    if (!self->limited) {
        return;
    }
    uint64_t spent = (uint64_t)garbage->count * OBJECT_NS;
    uint64_t half = self->bounds->max_time_ns / 2;
    self->start_ns =
        cm_clock_ns(CLOCK_THREAD_CPUTIME_ID) - (spent < half ? spent : half);
}

bool
cm_freezer_out_of_time(const struct cm_freezer *self, size_t done,
                       uint64_t percent)
{
    return self->limited && (done & TIME_CHECK_MASK) == 0
           && done >= ALWAYS_OBJECTS
           && cm_clock_ns(CLOCK_THREAD_CPUTIME_ID) - self->start_ns
                  > self->bounds->max_time_ns / 100 * percent;
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
    cm_grad_release(&self->grad);
    cm_free(self->vertex_marks);
    cm_free(self->vertex_node);
    cm_free(self);
}

/* --- copying -------------------------------------------------------------- */

static struct cm_text_id
device_label(struct cm_freezer *self, const char *name, const char *shape,
             const struct cm_device_memory *memory)
{
    char text[CM_DEVICE_LABEL_BYTES];
    cm_devices_label_of(name, shape, memory, text);
    return cm_texts_intern(cm_records_texts(self->records), text);
}

/* The storage's site is that of the first of its objects that was made. */
static void
note_site(struct cm_freezer *self, uint32_t storage, const struct cm_tag *tag)
{
    if (tag == NULL
        || cm_grow((void **)&self->orders, &self->order_capacity,
                   (size_t)storage + 1, sizeof(*self->orders))
               != CM_OK) {
        return;
    }
    while (self->order_count <= storage) {
        self->orders[self->order_count++] = UINT32_MAX;
    }
    if (tag->order < self->orders[storage]) {
        self->orders[storage] = tag->order;
        self->heap->storages[storage].site = tag->site;
    }
}

static enum cm_status
add_storage(struct cm_freezer *self, const struct cm_device_memory *memory,
            struct cm_node *node)
{
    struct cm_storage storage = {
        .key = memory->storage_key,
        .device_address = memory->device_address,
        .bytes = memory->bytes,
        .device =
            cm_texts_intern(cm_records_texts(self->records), memory->device),
        .use_count = memory->use_count,
        .reader = memory->reader,
    };
    node->bytes = memory->bytes;
    return cm_heap_add_storage(self->heap, &storage, &node->storage);
}

enum cm_status
cm_freezer_describe_memory(struct cm_freezer *self, uint64_t impl,
                           const struct cm_device_memory *memory,
                           struct cm_node *node)
{
    char shape[112];
    cm_torch_shape_at(impl, shape, sizeof(shape));
    node->label = device_label(self, "Tensor", shape, memory);
    return add_storage(self, memory, node);
}

static enum cm_status
describe_device(struct cm_freezer *self, PyObject *object,
                struct cm_node *node)
{
    struct cm_device_memory memory;
    char shape[112];
    if (!cm_devices_read(self->devices, object, &memory)) {
        return CM_OK;
    }
    const struct cm_tag *tag = cm_tags_find(object);
    const char *type = Py_TYPE(object)->tp_name;
    const char *name = strrchr(type, '.');
    cm_devices_shape(self->devices, object, &memory, shape, sizeof(shape));
    node->species = memory.is_storage ? CM_STORAGE : CM_TENSOR;
    node->label =
        device_label(self, name != NULL ? name + 1 : type, shape, &memory);
    self->bytes_copied += memory.bytes;
    node->site = tag != NULL ? tag->site : (struct cm_site_id){0};
    enum cm_status status = add_storage(self, &memory, node);
    if (status == CM_OK) {
        note_site(self, node->storage.index, tag);
        cm_tags_watch(object);
    }
    return status;
}

/* An array over several devices is followed by a node for each further one,
 * with its own address: they live and die together. */
static enum cm_status
copy_parts(struct cm_freezer *self, PyObject *object, uint32_t id)
{
    struct cm_device_memory memory;
    enum cm_status status = CM_OK;
    if (!cm_devices_read(self->devices, object, &memory)) {
        return CM_OK;
    }
    while (status == CM_OK
           && cm_devices_next(self->devices, object, &memory)) {
        struct cm_node node = self->heap->nodes[id];
        struct cm_node_id part;
        node.label = device_label(self, "shard", "", &memory);
        self->bytes_copied += memory.bytes;
        status = add_storage(self, &memory, &node);
        if (status == CM_OK) {
            note_site(self, node.storage.index, cm_tags_find(object));
            status = cm_heap_add_node(self->heap, &node, &part);
        }
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
    if (self->flags[position] & CM_DEVICE) {
        status = describe_device(self, object, &node);
    }
    if (status == CM_OK) {
        status = cm_heap_add_node(self->heap, &node, &id);
    }
    if (status == CM_OK) {
        self->node_of[position] = id.index;
    }
    if (status == CM_OK && (self->flags[position] & CM_DEVICE)) {
        status = copy_parts(self, object, id.index);
    }
    return status;
}

/* In the order in which they were kept, which is cycle by cycle. */
static enum cm_status
copy_nodes(struct cm_freezer *self)
{
    enum cm_status status =
        cm_grow((void **)&self->node_of, &self->node_capacity,
                self->chosen_count + 1, sizeof(*self->node_of));
    if (status == CM_OK) {
        memset(self->node_of, 0, self->chosen_count * sizeof(*self->node_of));
    }
    for (size_t i = 0; status == CM_OK && i < self->kept_count; i++) {
        if (cm_freezer_out_of_time(self, i, CM_NODES_UNTIL)) {
            self->kept_count = i;
            break;
        }
        status = copy_node(self, self->queue[i]);
    }
    return status;
}

static int
is_kept(void *context, PyObject *referent)
{
    const struct cm_freezer *self = context;
    uint32_t position = cm_freezer_position(self, referent);
    return position != CM_NOT_CHOSEN && self->node_of[position] != 0;
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
    const char *field = NULL;
    if (label.index == 0 && role == CM_REFERENCE) {
        field = cm_devices_field(self->devices, self->tail, referent);
    }
    if (field != NULL) {
        label = cm_texts_intern(cm_records_texts(self->records), field);
        role = CM_HOOK;
    }
    add_edge(self, self->node_of[cm_freezer_position(self, referent)], label,
             role);
}

/* Out of time for names: the structure at least stays whole. */
static int
copy_unnamed(PyObject *referent, void *context)
{
    struct cm_freezer *self = context;
    if (is_kept(self, referent)) {
        add_edge(self, self->node_of[cm_freezer_position(self, referent)],
                 (struct cm_text_id){0}, CM_REFERENCE);
    }
    return 0;
}

static void
copy_edges_of(struct cm_freezer *self, PyObject *object, bool named)
{
    traverseproc traverse = Py_TYPE(object)->tp_traverse;
    self->tail = object;
    if (named) {
        cm_objects_edges(self->objects, object, is_kept, copy_edge, self);
    }
    else if (traverse != NULL && PyObject_IS_GC(object)) {
        traverse(object, copy_unnamed, self);
        self->heap->nodes[self->current].cut = true;
        self->heap->nodes_cut++;
    }
}

static void
add_part_edges(struct cm_freezer *self)
{
    const struct cm_node *owner = &self->heap->nodes[self->current];
    for (uint32_t id = self->current + 1;
         id <= self->heap->node_count
         && self->heap->nodes[id].address == owner->address;
         id++) {
        add_edge(self, id, (struct cm_text_id){0}, CM_REFERENCE);
    }
}

static enum cm_status
copy_edges(struct cm_freezer *self)
{
    bool in_time = true;
    self->status = CM_OK;
    cm_objects_begin(self->objects, self->chosen, self->chosen_count);
    for (size_t i = 0; self->status == CM_OK && i < self->kept_count; i++) {
        uint32_t position = self->queue[i];
        in_time = in_time && !cm_freezer_out_of_time(self, i, CM_EDGES_UNTIL);
        self->current = self->node_of[position];
        copy_edges_of(self, self->chosen[position], in_time);
        add_part_edges(self);
        if (self->status == CM_OK) {
            self->status = cm_freezer_copy_links(self, self->chosen[position]);
        }
    }
    return self->status;
}

/* Device-backed objects that were not copied, and the bytes of those at hand:
 * they are not read again, since each would be three cache misses. */
static void
count_left_out(struct cm_freezer *self)
{
    size_t copied = 0;
    for (size_t i = 0; i < self->chosen_count; i++) {
        copied += (self->flags[i] & CM_DEVICE) && self->node_of[i] != 0;
    }
    if (self->device_total > copied) {
        self->heap->nodes_cut += self->device_total - copied;
    }
    if (self->bytes_at_hand > self->bytes_copied) {
        self->heap->bytes_cut += self->bytes_at_hand - self->bytes_copied;
    }
}

/* What is dying does not change when fewer are kept; what leads there does. */
static enum cm_status
walk_settled(struct cm_freezer *self)
{
    size_t lived_on = 0;
    enum cm_status status = cm_freezer_walk(self);
    if (status == CM_OK) {
        status = cm_freezer_settle(self, &lived_on);
    }
    return status == CM_OK && lived_on != 0 ? cm_freezer_walk(self) : status;
}

static enum cm_status
copy_chosen(struct cm_freezer *self)
{
    cm_tags_watch_begin();
    self->order_count = 0;
    enum cm_status status = walk_settled(self);
    if (status == CM_OK) {
        status = copy_nodes(self);
    }
    uint32_t last = (uint32_t)self->heap->node_count;
    if (status == CM_OK && last != 0) {
        status = cm_freezer_copy_vertices(self);
    }
    if (status == CM_OK && last != 0) {
        status = copy_edges(self);
    }
    if (status == CM_OK && last != 0) {
        status = cm_freezer_copy_all_links(self, last);
    }
    if (status == CM_OK) {
        count_left_out(self);
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
    self->bytes_at_hand = self->bytes_copied = 0;
    heap->generation = garbage->generation;
    enum cm_status status = cm_freezer_choose(self, garbage);
    if (status == CM_OK && self->device_count != 0) {
        heap->objects_seen = garbage->count;
        heap->time_ns = cm_clock_ns(CLOCK_REALTIME);
        heap->iteration = -1;
        heap->frozen_generation = garbage->frozen;
        heap->uncollectable = garbage->uncollectable;
        status = copy_chosen(self);
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
    uint32_t position = cm_freezer_position(self, object);
    return position != CM_NOT_CHOSEN
           && (!(self->flags[position] & CM_PRESERVED)
               || (self->flags[position] & CM_DEVICE));
}
