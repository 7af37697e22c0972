/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Where this thread is.  The stack is hashed frame by frame (instruction, and
 * the check of the code it lies in, unless deaths.h makes that needless) and
 * looked up in a table that readers use without a lock; only a stack not seen
 * before is written down.  A frame's code object is alive while we look, for
 * the frame runs on this thread: so this works without the GIL too, where the
 * structures are proven.
 * Cost: about 1 ns a frame when known, and when the frames are those of the
 * thread's last stack or some of them, as 9 of 10 are in a training loop; else
 * 2.  A table that grows leaves the old one for its readers, until the end: at
 * most twice the last size. */

#include "objects_private.h"

#include <frameobject.h> // PyFrame_GetBack()

#include <string.h>

#include "../../detector/alloc.h"
#include "../../detector/hot.h"
#include "../../detector/relaxed.h"
#include "stack_path.h"
#include "walked.h"

enum {
    FIRST_SITES = 1024,
    MAX_SITES = 1 << 19,
    MANY_SITES = MAX_SITES / 4,
};

struct site_slot {
    _Atomic uint64_t hash; /* 0: free; written last */
    uint32_t site;
};

struct cm_site_table {
    struct cm_site_table *before; /* owned */
    size_t capacity, count;       /* count: guarded by the lock */
    struct site_slot slots[];
};

void
cm_stack_release(struct cm_objects *self)
{
    struct cm_site_table *table = self->newest_sites;
    while (table != NULL) {
        struct cm_site_table *before = table->before;
        cm_free(table);
        table = before;
    }
    self->newest_sites = NULL;
    atomic_store(&self->sites, NULL);
}

bool
cm_stack_has_room(struct cm_objects *self)
{
    cm_lock_take(&self->lock);
    const struct cm_site_table *table = self->newest_sites;
    bool room = table == NULL || table->capacity < MANY_SITES;
    cm_lock_give(&self->lock);
    return room;
}

size_t
cm_stack_known(const struct cm_objects *self)
{
    /* The lock is not part of what the caller may not change. */
    struct cm_lock *lock = (struct cm_lock *)(uintptr_t)&self->lock;
    cm_lock_take(lock);
    const struct cm_site_table *table = self->newest_sites;
    size_t known = table != NULL ? table->count : 0;
    cm_lock_give(lock);
    return known;
}

/* ---- the table */

static CM_HOT_PART struct cm_site_id
find_site(const struct cm_site_table *table, uint64_t hash, bool *found)
{
    *found = false;
    if (table == NULL) {
        return (struct cm_site_id){0};
    }
    size_t at = (size_t)hash & (table->capacity - 1);
    for (;;) {
        uint64_t there =
            atomic_load_explicit(&table->slots[at].hash, memory_order_acquire);
        if (there == hash || there == 0) {
            *found = there == hash;
            return (struct cm_site_id){*found ? table->slots[at].site : 0};
        }
        at = (at + 1) & (table->capacity - 1);
    }
}

static void
put_site(struct cm_site_table *table, uint64_t hash, uint32_t site)
{
    size_t at = (size_t)hash & (table->capacity - 1);
    uint64_t there;
    while ((there = atomic_load(&table->slots[at].hash)) != 0) {
        if (there == hash) {
            return;
        }
        at = (at + 1) & (table->capacity - 1);
    }
    table->slots[at].site = site;
    atomic_store_explicit(&table->slots[at].hash, hash, memory_order_release);
    table->count++;
}

/* Guarded by the lock.  NULL: no memory, or as large as allowed. */
static struct cm_site_table *
larger_table(struct cm_objects *self)
{
    struct cm_site_table *old = self->newest_sites;
    size_t capacity = old == NULL ? FIRST_SITES : old->capacity * 2;
    if (capacity > MAX_SITES) {
        atomic_store(&self->sites_full, true);
        return NULL;
    }
    struct cm_site_table *table =
        cm_calloc(1, sizeof(*table) + capacity * sizeof(struct site_slot));
    if (table == NULL) {
        return NULL;
    }
    table->capacity = capacity;
    table->before = old;
    for (size_t i = 0; old != NULL && i < old->capacity; i++) {
        uint64_t hash = atomic_load(&old->slots[i].hash);
        if (hash != 0) {
            put_site(table, hash, old->slots[i].site);
        }
    }
    self->newest_sites = table;
    atomic_store_explicit(&self->sites, table, memory_order_release);
    return table;
}

void
cm_stack_remember(struct cm_objects *self, uint64_t hash,
                  struct cm_site_id site)
{
    cm_lock_take(&self->lock);
    struct cm_site_table *table = self->newest_sites;
    if (table == NULL || table->count * 2 >= table->capacity) {
        table = larger_table(self);
    }
    if (table != NULL) {
        put_site(table, hash, site.index);
    }
    cm_lock_give(&self->lock);
}

/* ---- walking */

/* Each frame's product is its own, so that frames are hashed side by side; the
 * two keys, which go on with the depth, keep the order.  (The method of NH and
 * wyhash.) */
static inline uint64_t
mix(uint64_t left, uint64_t right)
{
    __extension__ unsigned __int128 product = (unsigned __int128)left * right;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* What the key goes on by with each frame. */
#define KEY_STEP UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t
mix_frame(uint64_t key, const PyCodeObject *code, uint64_t instruction)
{
    return mix(instruction ^ key, cm_code_check(code) + key);
}

/* Never 0, which is a free slot; the high bits reach the low ones. */
static inline uint64_t
finish(uint64_t hash, uint32_t count, bool cut)
{
    hash =
        mix(hash, ((uint64_t)count << 1 | cut) + UINT64_C(0x8BB84B93962EACC9));
    hash ^= hash >> 29;
    return hash == 0 ? 1 : hash;
}

/* This thread's state, with or without the GIL; NULL: not Python's thread.
 * torch mostly allocates without: then only the first question is answered. */
CM_EVENT_PATH static PyThreadState *
this_thread(void)
{
    PyThreadState *thread = PyGILState_GetThisThreadState();
#if PY_VERSION_HEX >= 0x030D0000
    return thread != NULL ? thread : PyThreadState_GetUnchecked();
#elif PY_VERSION_HEX >= 0x030C0000
    return thread != NULL ? thread : _PyThreadState_UncheckedGet();
#else
    return thread; /* the other would be whoever has the GIL */
#endif
}

/* The same where this thread has the GIL. */
static CM_HOT_PART PyThreadState *
current_thread(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

CM_EVENT_PATH static const struct cm_raw_frame *
raw_frame_current(PyThreadState *thread)
{
#if PY_VERSION_HEX < 0x030D0000
    return thread->cframe == NULL
               ? NULL
               : (const void *)thread->cframe->current_frame;
#else
    return (const void *)thread->current_frame;
#endif
}

/* Before: the frame runs Python code.  Its type is not asked: that would be
 * one more cache line. */
static inline PyCodeObject *
running_code(const struct cm_raw_frame *frame)
{
    return (PyCodeObject *)cm_stack_ref_object(frame->code);
}

/* A function that is being entered has not reached its first instruction. */
CM_HOT static __attribute__((noinline)) bool
is_entered(const struct cm_raw_frame *frame)
{
    const PyCodeObject *code = running_code(frame);
    const uint8_t *first =
        (const uint8_t *)code->co_code_adaptive + 2 * code->_co_firsttraceable;
    return frame->owner == CM_OWNED_BY_GENERATOR
           || frame->instruction >= first;
}

/* The interpreter's own helper frames (as around __init__) never are. */
static inline bool
is_shown(const struct cm_raw_frame *frame)
{
#if PY_VERSION_HEX >= 0x030C0000
    return running_code(frame)->co_version != 0 || is_entered(frame);
#else
    (void)frame;
    return true;
#endif
}

static inline const struct cm_raw_frame *
next_frame(const struct cm_raw_frame *frame)
{
    while (frame != NULL
           && (frame->owner >= CM_OWNED_BY_NO_CODE || !is_shown(frame))) {
        frame = frame->previous;
    }
    return frame;
}

CM_HOT const struct cm_raw_frame *
cm_raw_frame_next(const struct cm_raw_frame *frame)
{
    return next_frame(frame);
}

/* Only the innermost can be one that is being entered: the others have called
 * it. */
CM_HOT const struct cm_raw_frame *
cm_raw_frame_first(PyThreadState *thread)
{
    const struct cm_raw_frame *frame =
        cm_raw_frame_next(raw_frame_current(thread));
    if (frame != NULL && !is_entered(frame)) {
        frame = cm_raw_frame_next(frame->previous);
    }
    return frame;
}

static uint64_t
hash_stack(const struct cm_raw_frame *frame)
{
    uint64_t hash = 0, key = KEY_STEP;
    uint32_t depth = 0;
    while (frame != NULL && depth < CM_STACK_FRAMES) {
        hash += mix_frame(key, running_code(frame),
                          (uint64_t)(uintptr_t)frame->instruction);
        frame = next_frame(frame->previous);
        key += KEY_STEP;
        depth++;
    }
    return finish(hash, depth, frame != NULL);
}

static void
add_walked(struct cm_walked *walked, const struct cm_raw_frame *frame)
{
    PyCodeObject *code = running_code(frame);
    walked->frames[walked->count].code = code;
    walked->frames[walked->count].offset =
        (int)cm_raw_frame_unit(frame, code) * 2;
    walked->count++;
}

static void
walk_shown(const struct cm_raw_frame *frame, struct cm_walked *walked)
{
    while (frame != NULL && walked->count < CM_STACK_FRAMES) {
        add_walked(walked, frame);
        frame = next_frame(frame->previous);
    }
    walked->beyond = frame;
    walked->cut = frame != NULL;
}

/* Of the frames that were hashed those that are shown. */
static void
walk_addresses(const struct cm_raw_frame *frame, struct cm_walked *walked)
{
    bool innermost = true;
    uint32_t left = CM_STACK_FRAMES;
    for (; frame != NULL && left != 0; left--, frame = frame->previous) {
        if (frame->owner < CM_OWNED_BY_NO_CODE && is_shown(frame)) {
            if (!innermost || is_entered(frame)) {
                add_walked(walked, frame);
            }
            innermost = false;
        }
    }
    walked->beyond = next_frame(frame);
    walked->cut = walked->beyond != NULL;
}

static void
note_lost(struct cm_objects *self, struct cm_site_id site)
{
    if (site.index == 0) {
        atomic_fetch_add_explicit(&self->lost_stacks, 1, memory_order_relaxed);
    }
}

static uint64_t
hash_beyond(const struct cm_raw_frame *frame, uint64_t hash)
{
    uint64_t key = hash;
    uint32_t depth = 0;
    for (; frame != NULL && depth < CM_STACK_BEYOND; depth++) {
        key += KEY_STEP;
        hash += mix_frame(key, running_code(frame),
                          (uint64_t)(uintptr_t)frame->instruction);
        frame = next_frame(frame->previous);
    }
    return finish(hash, depth, frame != NULL);
}

/* Nothing but a library's code as far as it is hashed: whose it is the frames
 * further out say, which go into a key of their own.  Under the first key 0 is
 * remembered. */
static struct cm_site_id
seek_beyond(struct cm_objects *self, const struct cm_walked *walked,
            uint64_t hash)
{
    bool found = false;
    uint64_t whole = hash_beyond(walked->beyond, hash);
    struct cm_site_id site =
        find_site(atomic_load_explicit(&self->sites, memory_order_acquire),
                  whole, &found);
    if (!found) {
        cm_stack_remember(self, hash, (struct cm_site_id){0});
        site = cm_walked_add(self, walked, whole);
    }
    return site;
}

/* A stack that is not in the table, or has no site there.  Apart: who finds
 * one needs none of this room. */
static __attribute__((noinline)) struct cm_site_id
seek_raw_stack(struct cm_objects *self, const struct cm_raw_frame *frame,
               bool by_address, uint64_t hash)
{
    bool found = false;
    struct cm_walked walked = {.count = 0};
    struct cm_site_id site =
        find_site(atomic_load_explicit(&self->sites, memory_order_acquire),
                  hash, &found);
    if (site.index != 0) {
        return site;
    }
    (by_address ? walk_addresses : walk_shown)(frame, &walked);
    if (walked.count == 0) { /* the interpreter's own frames alone */
        return site;
    }
    if (!found
        && atomic_load_explicit(&self->sites_full, memory_order_relaxed)) {
        note_lost(self, site);
        return site;
    }
    if (walked.beyond != NULL
        && (found || !cm_walked_has_users(self, &walked))) {
        site = seek_beyond(self, &walked, hash);
    }
    else if (!found) {
        site = cm_walked_add(self, &walked, hash);
    }
    note_lost(self, site);
    return site;
}

/* By the code of each frame that is shown. */
static struct cm_site_id
shown_stack(struct cm_objects *self, PyThreadState *thread)
{
    const struct cm_raw_frame *frame = cm_raw_frame_first(thread);
    struct cm_site_id none = {0};
    if (frame == NULL) { /* none of Python's: there is nothing to lose */
        return none;
    }
    return seek_raw_stack(self, frame, false, hash_stack(frame));
}

/* The same through public calls, which need the GIL and make frame objects:
 * only where the structures are not known. */
static struct cm_site_id
public_stack(struct cm_objects *self, PyThreadState *thread)
{
    struct cm_walked walked = {.count = 0};
    PyFrameObject *frame = PyThreadState_GetFrame(thread);
    uint64_t hash = 0;
    while (frame != NULL && walked.count < CM_STACK_FRAMES) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        int offset = PyFrame_GetLasti(frame);
        walked.frames[walked.count].code = code;
        walked.frames[walked.count].offset = offset;
        hash += mix_frame(++walked.count * KEY_STEP, code,
                          (uint64_t)(uintptr_t)code + (unsigned)offset);
        Py_DECREF(code); /* the frame, which runs, holds it */
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    walked.cut = frame != NULL;
    Py_XDECREF(frame);
    hash = finish(hash, walked.count, walked.cut);
    bool found = false;
    struct cm_site_id site =
        find_site(atomic_load(&self->sites), hash, &found);
    return found || walked.count == 0 ? site
                                      : cm_walked_add(self, &walked, hash);
}

/* Where it cannot be keyed by addresses. */
static __attribute__((noinline)) struct cm_site_id
stack_otherwise(struct cm_objects *self, PyThreadState *thread)
{
    struct cm_site_id site = {0};
    if (thread == NULL) {
        return site;
    }
    if (self->proven.stack) {
        return shown_stack(self, thread);
    }
    if (PyGILState_Check()) {
        site = public_stack(self, thread);
    }
    note_lost(self, site);
    return site;
}

/* By addresses; the turn is not 0. */
static CM_HOT_PART struct cm_site_id
raw_stack(struct cm_objects *self, const struct cm_raw_frame *frame,
          uint64_t turn)
{
    uint64_t hash = cm_stack_path_hash(frame, turn);
    bool found;
    struct cm_site_id site =
        find_site(atomic_load_explicit(&self->sites, memory_order_acquire),
                  hash, &found);
    return CM_SELDOM(site.index == 0) ? seek_raw_stack(self, frame, true, hash)
                                      : site;
}

/* 0: the thread's stack is not keyed by addresses. */
static CM_HOT_PART uint64_t
turn_of(const struct cm_objects *self, const PyThreadState *thread)
{
    uint64_t turn = atomic_load_explicit(&self->turn, memory_order_acquire);
    return thread != NULL && thread->interp == self->interpreter ? turn : 0;
}

enum asker { ANYBODY, MEMORY, TENSOR };

/* Once for each who asks, which is known where this stands. */
static CM_HOT_PART struct cm_site_id
stack_for(struct cm_objects *self, PyThreadState *thread, enum asker asker)
{
    uint64_t turn = turn_of(self, thread);
    if (CM_SELDOM(turn == 0)) {
        return stack_otherwise(self, thread);
    }
    const struct cm_raw_frame *frame = raw_frame_current(thread);
    struct cm_site_id site = {0};
    if (frame == NULL) { /* there is nothing to lose */
        return site;
    }
    if (asker == TENSOR) {
        site.index = cm_stack_path_noted(frame, turn);
    }
    site = site.index != 0 ? site : raw_stack(self, frame, turn);
    if (asker == MEMORY && CM_GET(&self->notes)) {
        cm_stack_path_note(frame, turn, site.index);
    }
    return site;
}

CM_EVENT_PATH struct cm_site_id
cm_objects_stack(struct cm_objects *self)
{
    return stack_for(self, this_thread(), ANYBODY);
}

CM_EVENT_PATH struct cm_site_id
cm_objects_memory_stack(struct cm_objects *self)
{
    return stack_for(self, this_thread(), MEMORY);
}

void
cm_objects_note_memory(struct cm_objects *self, bool noted)
{
    CM_SET(&self->notes, noted);
}

CM_HOT struct cm_site_id
cm_objects_tensor_stack(struct cm_objects *self)
{
    return stack_for(self, current_thread(), TENSOR);
}

CM_EVENT_PATH const void *
cm_objects_innermost_frame(const struct cm_objects *self)
{
    PyThreadState *thread = this_thread();
    return turn_of(self, thread) != 0 ? raw_frame_current(thread) : NULL;
}
