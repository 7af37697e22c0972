/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A slot of the page table is a byte: 0 for an object that is not in the set,
 * else its remaining count + 1, and two bits.  The few counts that need more
 * stand in many.h until they fit.  Two passes of tp_traverse over the set in
 * its own order, as a collection makes, so that memory is read forward:
 * one takes internal references off, one spreads marks.  The second passes by
 * an object that nothing has marked yet; when a mark comes later, the object
 * goes on an explicit stack.  A referent's slot is looked at 32 references
 * after it was asked for: without that wait for memory a random heap takes a
 * third of the time.  Memory: about 0.07 bytes for each byte of address range
 * that objects occupy, and 8 bytes for each object on the stack.  With slots of
 * four bytes a scan of 5M objects took 1.1 to 1.25 times as long.
 *
 * From CPython 3.14 on a suspended frame also shows references that it only
 * borrows from itself (stack temporaries): there each referent is taken off
 * once for each generator, coroutine or frame. */

#include "trial.h"

#include "../../detector/alloc.h"
#include "../../detector/hot.h"

enum { AHEAD = 12, ONCE_MAX = 256 };

#define MARK 0x80u
#define PASSED 0x40u
#define COUNT 0x3Fu
/* Never reached by subtraction: immortal objects, and those that stay. */
#define HELD 0x3Eu
/* The count stands in self->many: it is above MOST. */
#define MANY 0x3Fu
#define MOST ((int64_t)HELD - 2)
#define IMMORTAL ((int64_t)0x1FFFFFFF)

void
cm_trial_release(struct cm_trial *self)
{
    cm_page_table_release(&self->table);
    cm_many_release(&self->many);
    cm_free(self->pending);
    *self = (struct cm_trial){0};
}

static uint8_t *
slot_of(const struct cm_trial *self, const PyObject *object)
{
    uint8_t *slot = cm_page_table_find_byte(&self->table, (uintptr_t)object);
    return slot != NULL && *slot != 0 ? slot : NULL;
}

static void
take_off_many(struct cm_trial *self, uint8_t *slot, const PyObject *object)
{
    int64_t *left = cm_many_left(&self->many, object);
    self->last_many = object;
    self->last_left = left;
    if (--*left <= MOST) {
        *slot = (uint8_t)(*left + 1);
        self->last_many = NULL;
    }
}

/* Every other reference may be one to a type: these need no place to wait. */
static CM_HOT_PART bool
take_off_last(struct cm_trial *self, const PyObject *referent)
{
    bool is_last = referent == self->last_many && *self->last_left > MOST + 1;
    if (is_last)
        --*self->last_left;
    return is_last;
}

static CM_HOT_PART void
take_off(struct cm_trial *self, const struct cm_delayed *one)
{
    uint8_t left = *one->slot;
    if (left > 1 && left < HELD) {
        *one->slot = (uint8_t)(left - 1);
    }
    else if (left == MANY) {
        take_off_many(self, one->slot, one->object);
    }
    else if (left <= 1) {
        self->negative++;
        *one->slot = HELD;
    }
}

/* Puts a reference in, and takes out the one that waited longest.  False: it
 * is none that concerns us. */
static CM_HOT_PART bool
delay(struct cm_trial *self, PyObject *referent, struct cm_delayed *oldest)
{
    uint8_t *slot = cm_page_table_find_byte(&self->table, (uintptr_t)referent);
    if (slot == NULL)
        return false;
    __builtin_prefetch(slot, 1);
    struct cm_delayed *place = &self->delayed[self->delayed_at];
    self->delayed_at = (self->delayed_at + 1) % CM_DELAY;
    *oldest = *place;
    *place = (struct cm_delayed){.slot = slot, .object = referent};
    return oldest->slot != NULL && *oldest->slot != 0;
}

/* Takes out any reference that still waits.  False: there is none. */
static bool
next_delayed(struct cm_trial *self, struct cm_delayed *result)
{
    for (unsigned i = 0; i < CM_DELAY; i++) {
        struct cm_delayed *place = &self->delayed[self->delayed_at];
        self->delayed_at = (self->delayed_at + 1) % CM_DELAY;
        *result = *place;
        place->slot = NULL;
        if (result->slot != NULL && *result->slot != 0)
            return true;
    }
    return false;
}

static int
visit_internal(PyObject *referent, void *context)
{
    struct cm_trial *self = context;
    struct cm_delayed oldest;
    if (!take_off_last(self, referent) && delay(self, referent, &oldest))
        take_off(self, &oldest);
    return 0;
}

#if PY_VERSION_HEX >= 0x030E0000
struct once {
    struct cm_trial *trial;
    size_t count;
    PyObject *seen[ONCE_MAX];
};

static int
visit_once(PyObject *referent, void *context)
{
    struct once *once = context;
    struct cm_delayed now = {slot_of(once->trial, referent), referent};
    if (now.slot == NULL)
        return 0;
    for (size_t i = 0; i < once->count; i++) {
        if (once->seen[i] == referent)
            return 0;
    }
    if (once->count == ONCE_MAX)
        return 1; /* what was not taken off makes its object stay */
    once->seen[once->count++] = referent;
    take_off(once->trial, &now);
    return 0;
}

static bool
borrows(const PyObject *object)
{
    if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE)
        return false;
    return PyGen_CheckExact(object) || PyCoro_CheckExact(object)
           || PyAsyncGen_CheckExact(object) || PyFrame_Check(object);
}
#endif

static void
take_off_referents(struct cm_trial *self, PyObject *object)
{
    if (self->more != NULL
        && self->more->traverse(self->more->context, object, visit_internal,
                                self))
        return;
    traverseproc traverse = Py_TYPE(object)->tp_traverse;
    if (traverse == NULL)
        return;
#if PY_VERSION_HEX >= 0x030E0000
    if (borrows(object)) {
        struct once once;
        once.trial = self;
        once.count = 0;
        (void)traverse(object, visit_once, &once);
        return;
    }
#endif
    (void)traverse(object, visit_internal, self);
}

/* False: has no slot of its own and counts as outside the set. */
static bool
fits(const PyObject *object)
{
    return ((uintptr_t)object & ((1u << CM_PLACE_BITS) - 1)) == 0;
}

enum cm_status
cm_trial_add(struct cm_trial *self, PyObject *object, Py_ssize_t bias)
{
    return cm_trial_add_counted(self, object, Py_REFCNT(object) - bias);
}

enum cm_status
cm_trial_add_counted(struct cm_trial *self, PyObject *object,
                     int64_t references)
{
    uintptr_t address = (uintptr_t)object;
    if (!fits(object))
        return CM_OK;
    uint8_t *slot =
        cm_page_table_near_byte(&self->table, &self->cursor, address);
    enum cm_status status = CM_OK;
    if (slot == NULL)
        status = cm_page_table_make_byte(&self->table, address, &slot);
    if (status == CM_OK && references > MOST && references < IMMORTAL)
        status = cm_many_set(&self->many, object, references);
    if (status != CM_OK)
        return status;
    bool known = references >= 0 && references < IMMORTAL;
    *slot = (uint8_t)(!known               ? HELD
                      : references <= MOST ? references + 1
                                           : MANY);
    self->count++;
    return CM_OK;
}

void
cm_trial_take_off(struct cm_trial *self, PyObject *const *objects,
                  size_t count)
{
    struct cm_delayed last;
    for (size_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            __builtin_prefetch(objects[i + AHEAD]);
        if (fits(objects[i]))
            take_off_referents(self, objects[i]);
    }
    while (next_delayed(self, &last))
        take_off(self, &last);
}

bool
cm_trial_held(const struct cm_trial *self, PyObject *object)
{
    const uint8_t *slot = slot_of(self, object);
    return slot != NULL && (*slot & COUNT) > 1;
}

bool
cm_trial_marked(const struct cm_trial *self, PyObject *object)
{
    const uint8_t *slot = slot_of(self, object);
    return slot == NULL || (*slot & MARK);
}

/* 0; -1 without memory.  Before: the slot is that of an object in the set. */
static int
mark_slot(struct cm_trial *self, uint8_t *slot, PyObject *object)
{
    if ((*slot & COUNT) == MANY)
        self->last_many = object;
    if (*slot & MARK)
        return 0;
    if (*slot & PASSED) {
        if (self->pending_count == self->pending_capacity
            && cm_grow((void **)&self->pending, &self->pending_capacity,
                       self->pending_count + 1, sizeof(PyObject *))
                   != CM_OK) {
            self->no_memory = true;
            return -1;
        }
        self->pending[self->pending_count++] = object;
    }
    *slot = (uint8_t)(*slot | MARK);
    self->marked++;
    return 0;
}

static int
visit_mark(PyObject *referent, void *context)
{
    struct cm_trial *self = context;
    struct cm_delayed oldest;
    if (referent == self->last_many || !delay(self, referent, &oldest))
        return 0;
    return mark_slot(self, oldest.slot, oldest.object);
}

static void
mark_referents(struct cm_trial *self, PyObject *object)
{
    if (self->more != NULL
        && self->more->traverse(self->more->context, object, visit_mark, self))
        return;
    traverseproc traverse = Py_TYPE(object)->tp_traverse;
    if (traverse != NULL)
        (void)traverse(object, visit_mark, self);
}

/* Until nothing waits: neither a slot nor an object. */
static enum cm_status
finish_marks(struct cm_trial *self)
{
    struct cm_delayed last;
    while (!self->no_memory) {
        if (self->pending_count > 0)
            mark_referents(self, self->pending[--self->pending_count]);
        else if (next_delayed(self, &last))
            (void)mark_slot(self, last.slot, last.object);
        else
            return CM_OK;
    }
    return CM_NO_MEMORY;
}

enum cm_status
cm_trial_mark(struct cm_trial *self, PyObject *object)
{
    uint8_t *slot = slot_of(self, object);
    if (slot != NULL)
        (void)mark_slot(self, slot, object);
    return finish_marks(self);
}

enum cm_status
cm_trial_mark_held(struct cm_trial *self, PyObject *const *objects,
                   size_t count)
{
    struct cm_page_cursor cursor = {0};
    self->last_many = NULL;
    for (size_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            __builtin_prefetch(objects[i + AHEAD]);
        if (!fits(objects[i]))
            continue;
        uint8_t *slot = cm_page_table_near_byte(&self->table, &cursor,
                                                (uintptr_t)objects[i]);
        bool stays = (*slot & MARK) || (*slot & COUNT) > 1;
        self->marked += stays && !(*slot & MARK);
        *slot = (uint8_t)(*slot | PASSED | (stays ? MARK : 0));
        if (!stays)
            continue;
        mark_referents(self, objects[i]);
        if (self->no_memory)
            return CM_NO_MEMORY;
    }
    return finish_marks(self);
}
