/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What of a collection's garbage is worth copying:
 *   1. choose   which objects are device-backed; all garbage when it is within
 *               bounds, else the neighbourhood of the device-backed ones (the
 *               collector's list is close to the order of allocation);
 *   2. connect  references among the chosen, as positions (tp_traverse);
 *   3. keep     those from which a device-backed object can be reached.
 * Cost: about 5 ns per garbage object where its types do not say that nothing
 * here is device-backed, 60 ns per chosen. */

#include "freezer.h"

#include "../../detector/alloc.h"
#include "../collector/type_set.h"

#define AHEAD 16u

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
        self->device_count += (flags & CM_DEVICE) != 0;
    }
    return status;
}

static bool
is_device_backed(struct cm_freezer *self, PyObject *object)
{
    struct cm_device_memory memory;
    return cm_devices_claim(self->devices, Py_TYPE(object))
           && cm_devices_read(self->devices, object, &memory);
}

/* CM_DEVICE for what is device-backed, and its bytes are added up. */
static uint8_t
device_flag(struct cm_freezer *self, PyObject *object)
{
    struct cm_device_memory memory;
    if (!cm_devices_claim(self->devices, Py_TYPE(object))
        || !cm_devices_read(self->devices, object, &memory)) {
        return 0;
    }
    do {
        self->bytes_at_hand += memory.bytes;
    } while (cm_devices_next(self->devices, object, &memory));
    return CM_DEVICE;
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
    return cm_devices_untracked(self->devices) && traverse != NULL
           && traverse(object, visit_untracked, self) != 0;
}

/* In garbage that no cache holds, what comes soon is asked for now. */
static inline PyObject *
object_at(const struct cm_garbage *garbage, size_t i)
{
    if (i + AHEAD < garbage->count) {
        __builtin_prefetch(&garbage->objects[i + AHEAD]->ob_type);
    }
    return garbage->objects[i];
}

/* Neighbours are often of one type: asking once for each run of a type keeps a
 * collection without device garbage at the cost of the walk. */
struct run {
    PyTypeObject *type;
    bool claimed;
};

static inline bool
is_claimed(struct cm_freezer *self, PyObject *object, struct run *run)
{
    if (Py_TYPE(object) != run->type) {
        run->type = Py_TYPE(object);
        run->claimed = cm_devices_claim(self->devices, run->type);
    }
    return run->claimed;
}

static bool
may_be_claimed(struct cm_freezer *self, const struct cm_type_set *types)
{
    bool claimed = types == NULL || types->full;
    for (size_t i = 0; !claimed && i < CM_TYPE_SET_SIZE; i++) {
        claimed = types->items[i] != NULL
                  && cm_devices_claim(self->devices, types->items[i]);
    }
    return claimed;
}

/* Whether anything here leads to device memory. */
static bool
leads_to_device(struct cm_freezer *self, const struct cm_garbage *garbage)
{
    bool untracked = cm_devices_untracked(self->devices);
    struct run run = {0};
    if (!untracked && !may_be_claimed(self, garbage->types)) {
        return false;
    }
    for (size_t i = 0; i < garbage->count; i++) {
        PyObject *object = object_at(garbage, i);
        if ((is_claimed(self, object, &run) && is_device_backed(self, object))
            || (untracked && leads_to_untracked(self, object))) {
            return true;
        }
    }
    return false;
}

static size_t
count_device_backed(struct cm_freezer *self, const struct cm_garbage *garbage)
{
    size_t count = 0;
    for (size_t i = 0; i < garbage->count; i++) {
        PyObject *object = garbage->objects[i];
        count +=
            is_device_backed(self, object) || leads_to_untracked(self, object);
    }
    return count;
}

static enum cm_status
choose_range(struct cm_freezer *self, const struct cm_garbage *garbage,
             size_t from, size_t to)
{
    enum cm_status status = CM_OK;
    for (size_t i = from; status == CM_OK && i < to; i++) {
        PyObject *object = object_at(garbage, i);
        if (cm_freezer_out_of_time(self, i, CM_CHOOSE_UNTIL)) {
            break;
        }
        status = choose(self, object, device_flag(self, object));
    }
    return status;
}

/* Each object is read once: a tensor is three cache misses. */
static enum cm_status
choose_all(struct cm_freezer *self, const struct cm_garbage *garbage)
{
    enum cm_status status = choose_range(self, garbage, 0, garbage->count);
    struct run run = {0};
    self->device_total = self->device_count;
    for (size_t i = self->chosen_count; i < garbage->count; i++) {
        self->device_total += is_claimed(self, object_at(garbage, i), &run);
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
        if (!is_device_backed(self, object)
            && !leads_to_untracked(self, object)) {
            continue;
        }
        size_t from = i > reach ? i - reach : 0;
        size_t to = i + reach < garbage->count ? i + reach : garbage->count;
        from = from > taken ? from : taken;
        if (from < to
            && self->chosen_count + (to - from) <= self->bounds->max_objects) {
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
    self->device_total = 0;
    if (!leads_to_device(self, garbage)) {
        return CM_OK;
    }
    cm_freezer_begin(self, garbage);
    if (garbage->count <= self->bounds->max_objects) {
        return choose_all(self, garbage);
    }
    self->device_total = count_device_backed(self, garbage);
    if (self->device_total == 0) {
        return CM_OK;
    }
    return choose_near(self, garbage, self->device_total);
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

uint32_t
cm_freezer_position(const struct cm_freezer *self, PyObject *object)
{
    const struct place *place = find_place(self, object);
    return place->object != NULL ? place->position : CM_NOT_CHOSEN;
}

/* Room for twice the chosen objects, and as many untracked referents again. */
static enum cm_status
make_map(struct cm_freezer *self)
{
    size_t needed = 64;
    while (needed < self->chosen_count * 4) {
        needed *= 2;
    }
    if (needed > self->map_room) {
        struct place *bigger = cm_calloc(needed, sizeof(*bigger));
        if (bigger == NULL) {
            return CM_NO_MEMORY;
        }
        cm_free(self->map);
        self->map = bigger;
        self->map_room = needed;
    }
    else { /* only this much: one large leak makes no later one slow */
        memset(self->map, 0, needed * sizeof(*self->map));
    }
    self->map_capacity = needed;
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
    if (self->chosen_count * 2 >= self->map_capacity
        || device_flag(self, object) == 0) {
        return CM_NOT_CHOSEN;
    }
    self->status =
        choose(self, object,
               PyObject_IS_GC(object) ? CM_DEVICE | CM_PRESERVED : CM_DEVICE);
    if (self->status != CM_OK) {
        return CM_NOT_CHOSEN;
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
    uint32_t head = cm_freezer_position(self, referent);
    if (head == CM_NOT_CHOSEN) {
        head = choose_referent(self, referent);
    }
    if (head == CM_NOT_CHOSEN || self->status != CM_OK) {
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
        if (cm_freezer_out_of_time(self, i, CM_CONNECT_UNTIL)) {
            break; /* what is not connected leads nowhere: counted at the end */
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
        if ((self->flags[i] & CM_DEVICE)
            && cm_devices_read(self->devices, self->chosen[i], &other)
            && other.storage_key == memory.storage_key) {
            return true;
        }
    }
    return false;
}

/* After a scan there is nothing to look at later.  The flag stays where a
 * tensor's death is up to autograd. */
static bool
is_foretold(struct cm_freezer *self, size_t at, bool storage, size_t listed)
{
    if (storage || !cm_grad_ready()) {
        return shares_with_garbage(self, self->chosen[at], listed);
    }
    self->flags[at] |= CM_DOUBTED;
    return true;
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
    return cm_devices_read(self->devices, self->chosen[at], &memory)
           && memory.preserved
           && (self->heap->generation >= 0
               || is_foretold(self, at, memory.is_storage, listed));
}

/* It lives on: nothing of it is lost when it is not copied. */
static void
take_back_flag(struct cm_freezer *self, size_t at)
{
    struct cm_device_memory memory;
    if (cm_devices_read(self->devices, self->chosen[at], &memory)) {
        self->bytes_at_hand -= memory.bytes;
    }
    self->flags[at] &= (uint8_t)~CM_DEVICE;
    self->device_count--;
}

/* A preserved object is dead when its references are the garbage's and at most
 * the one of C++.  After a collection that is looked at (fate.h).  A scan asks
 * autograd whose uses C++'s are; where that cannot be read it believes it, and
 * does only for bases and views of what is garbage. */
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
        if ((self->flags[i] & CM_PRESERVED)
            && !is_dead_all_the_same(self, i, (Py_ssize_t)references[i],
                                     listed)) {
            take_back_flag(self, i);
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

/* Adds what refers to queue[next..] until nothing more does.  The room is
 * looked at between objects only: a way back is followed to its end or not. */
static size_t
follow_back(struct cm_freezer *self, size_t next, size_t count)
{
    for (; next < count && count < self->bounds->max_nodes; next++) {
        uint32_t head = self->queue[next];
        for (uint32_t i = self->starts[head]; i < self->starts[head + 1];
             i++) {
            uint32_t tail = self->tails[i];
            if (!(self->flags[tail] & CM_KEPT)) {
                self->flags[tail] |= CM_KEPT;
                self->queue[count++] = tail;
            }
        }
    }
    return count;
}

/* Against the references, from one device-backed object after the other, so
 * that what fits are whole cycles and not the ends of all of them. */
static enum cm_status
keep_leading(struct cm_freezer *self)
{
    enum cm_status status = reverse_links(self);
    if (status == CM_OK) {
        status = cm_grow((void **)&self->queue, &self->queue_capacity,
                         self->chosen_count + 1, sizeof(*self->queue));
    }
    size_t count = 0;
    for (size_t i = 0; status == CM_OK && i < self->chosen_count; i++) {
        if ((self->flags[i] & (CM_DEVICE | CM_KEPT)) == CM_DEVICE
            && count < self->bounds->max_nodes) {
            self->flags[i] |= CM_KEPT;
            self->queue[count] = (uint32_t)i;
            count = follow_back(self, count, count + 1);
        }
    }
    self->kept_count = count;
    return status;
}

enum cm_status
cm_freezer_settle(struct cm_freezer *self, size_t *lived_on)
{
    *lived_on = 0;
    for (size_t i = 0; i < self->chosen_count; i++) {
        if ((self->flags[i] & CM_DOUBTED)
            && !cm_freezer_is_dying(self, self->chosen[i])) {
            take_back_flag(self, i);
            ++*lived_on;
        }
        self->flags[i] &= (uint8_t)~CM_DOUBTED;
    }
    if (*lived_on == 0) {
        return CM_OK;
    }
    for (size_t i = 0; i < self->chosen_count; i++) {
        self->flags[i] &= (uint8_t)~CM_KEPT;
    }
    return keep_leading(self);
}

enum cm_status
cm_freezer_choose(struct cm_freezer *self, const struct cm_garbage *garbage)
{
    enum cm_status status = choose_objects(self, garbage);
    size_t listed = self->chosen_count;
    self->kept_count = 0;
    if (status != CM_OK || listed == 0) {
        return status;
    }
    status = make_map(self);
    if (status == CM_OK) {
        status = connect_chosen(self);
    }
    if (status == CM_OK) {
        status = judge_preserved(self, listed);
    }
    if (status == CM_OK && self->device_count != 0) {
        status = keep_leading(self);
    }
    return status;
}
