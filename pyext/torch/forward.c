/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* at::sequence_number::peek() says the number of the next node; it is a
 * counter of the thread.  Where the number stands in a node is learnt from the
 * grad_fn of two tensors on the CPU.
 *
 * Nodes of two threads may have one number.  The lines are those of the thread
 * whose numbers are highest, and they are told from the number on that no
 * other thread has come near: a second thread's pass costs the lines of the
 * nodes up to its own number, and what comes after is known again.
 *
 * Cost: 2 ns for each tensor, some 10 ns for each allocation in backward:
 * stacks that were joined once are found by their two numbers. */

#include "forward.h"

#include <stdatomic.h>
#include <string.h>

#include "../../allocator_hooks/slot.h"
#include "../../detector/hot.h"
#include "current_node.h"
#include "../objects/objects_private.h"
#include "../tables/this_thread.h"
#include "torch_layout.h"

enum {
    RING = 1 << 14,
    JOINED = 1 << 10,
    MOST_AT_ONCE = 256, /* nodes between two tensors: more are one operation */
    NODE_WORDS = 16,
    MOST_FRAMES = 256,
    SITE_BITS = 24,
    LINE = 8,           /* places in a cache line */
    NODE_IN_OBJECT = 2, /* words: after the object's head */
};

typedef uint64_t peek_function(void);
static struct {
    /* Read by any thread; what an allocation reads lies in one cache line. */
    _Alignas(64) _Atomic(peek_function *) peek;
    _Atomic uint64_t reached;   /* written by the thread of the forward pass */
    _Atomic uint32_t number_at; /* word of a node; 0: not learnt */
    bool searched;              /* guarded by the GIL */
    _Atomic uint64_t thread;    /* of the forward pass: has come furthest */
    _Atomic uint64_t from;      /* its first number that is no other's */
    /* Frames that are no code's: between two stacks, for several threads. */
    _Atomic uint32_t between, several;
} forward CM_EVENT_DATA;

/* A node's number plus 1, and the site that made it in the lower 24 bits: eight
 * of them in a cache line, which another core reads. */
static _Atomic uint64_t ring[RING];
/* Lately: pair_of() and a site. */
static _Atomic uint64_t pairs[JOINED];

/* ---- the forward pass */

void
cm_forward_start(void)
{
    char path[CM_SLOT_PATH];
    if (forward.searched || !cm_slot_library("libtorch_cpu.so", path)) {
        return;
    }
    forward.searched = true;
    cm_current_node_start(path);
    peek_function *peek = (peek_function *)cm_slot_original(
        path, "_ZN2at15sequence_number4peekEv");
    atomic_store(&forward.reached, peek != NULL ? peek() : 0);
    atomic_store(&forward.peek, peek);
}

CM_EVENT_PATH static inline bool
is_forward_thread(void)
{
    uint64_t self = cm_this_thread();
    uint64_t who = atomic_load(&forward.thread);
    return who == self
           || (who == 0
               && atomic_compare_exchange_strong(&forward.thread, &who, self));
}

/* Some thread's numbers have come this far, or a little further since. */
static void
leave_to_others(uint64_t number)
{
    uint64_t from = atomic_load(&forward.from);
    while (from < number + MOST_AT_ONCE
           && !atomic_compare_exchange_weak(&forward.from, &from,
                                            number + MOST_AT_ONCE)) {
    }
}

/* Another thread's next number.  The one that is ahead is ours from now on. */
static __attribute__((noinline)) void
note_other(uint64_t next)
{
    uint64_t reached = atomic_load(&forward.reached);
    leave_to_others(next < reached ? next : reached);
    if (next > reached) {
        atomic_store(&forward.reached, next);
        atomic_store(&forward.thread, cm_this_thread());
    }
}

CM_EVENT_PATH static void
write_place(uint64_t number, uint32_t site)
{
    bool fits = site >> SITE_BITS == 0;
    atomic_store_explicit(&ring[number % RING],
                          fits ? (number + 1) << SITE_BITS | site : 0,
                          memory_order_release);
}

uint64_t
cm_forward_number(void)
{
    peek_function *peek = atomic_load(&forward.peek);
    return peek != NULL ? peek() : 0;
}

CM_EVENT_PATH void
cm_forward_note(struct cm_site_id site, bool newest_alone)
{
    peek_function *peek = atomic_load(&forward.peek);
    uint64_t next = peek != NULL ? peek() : 0;
    if (next == 0 || site.index == 0) {
        return;
    }
    if (!is_forward_thread()) {
        note_other(next);
        return;
    }
    uint64_t reached = atomic_load(&forward.reached);
    if (next == reached) {
        return;
    }
    if (newest_alone) {
        reached = next - 1;
    }
    else if (next > reached + MOST_AT_ONCE) {
        reached = next - MOST_AT_ONCE;
    }
    for (; reached < next; reached++) {
        write_place(reached, site.index);
    }
    atomic_store_explicit(&forward.reached, next, memory_order_relaxed);
}

CM_EVENT_PATH static struct cm_site_id
site_of(uint64_t number)
{
    struct cm_site_id none = {0};
    uint64_t place = atomic_load(&ring[number % RING]);
    /* A backward pass goes down the numbers. */
    __builtin_prefetch(&ring[(number - LINE) % RING]);
    if (place >> SITE_BITS != ((number + 1) << SITE_BITS) >> SITE_BITS
        || number < atomic_load(&forward.from)) {
        return none;
    }
    return (struct cm_site_id){place & ((1u << SITE_BITS) - 1)};
}

/* ---- the backward pass */

/* That of the node that this thread works for; false: none, or not known. */
static inline bool
running_number(uint64_t *number)
{
    uint32_t at = atomic_load(&forward.number_at);
    uint64_t node = at != 0 ? cm_current_node() : 0;
    if (node != 0) {
        *number = ((const uint64_t *)(uintptr_t)node)[at];
    }
    return node != 0;
}

CM_EVENT_PATH struct cm_site_id
cm_forward_site(void)
{
    struct cm_site_id none = {0};
    uint64_t number;
    return running_number(&number) ? site_of(number) : none;
}

struct cm_site_id
cm_forward_site_of(uint64_t node)
{
    struct cm_site_id none = {0};
    uint32_t at = atomic_load(&forward.number_at);
    uint64_t number = 0;
    return at != 0 && cm_torch_peek(node + 8 * (uint64_t)at, &number, 1)
               ? site_of(number)
               : none;
}

/* ---- two stacks as one */

/* The code of a frame that only says something; 0: no room. */
static uint32_t
saying_frame(struct cm_objects *objects, _Atomic uint32_t *known,
             const char *says)
{
    struct cm_code_id id = {atomic_load(known)};
    if (id.index == 0) {
        struct cm_code code = {
            .filename = cm_texts_intern(objects->texts, "<autograd>"),
            .name = cm_texts_intern(objects->texts, "backward"),
            .qualified_name = cm_texts_intern(objects->texts, says),
            .library = true,
        };
        if (cm_records_add_code(objects->records, &code, &id) == CM_OK) {
            atomic_store(known, id.index);
        }
    }
    return id.index;
}

static uint32_t
frame_between(struct cm_objects *objects)
{
    return saying_frame(objects, &forward.between,
                        "backward of the line above, for");
}

struct cm_site_id
cm_forward_several(struct cm_objects *objects)
{
    struct cm_frame frame = {
        .code = {saying_frame(objects, &forward.several,
                              "one of several threads in backward()")}};
    struct cm_site site = {.frames = &frame, .frame_count = 1};
    struct cm_site_id id = {0};
    return frame.code.index != 0
                   && cm_records_add_site(objects->records, &site, &id)
                          == CM_OK
               ? id
               : (struct cm_site_id){0};
}

/* `marked`: with the frame between them; else what cannot be joined is told
 * by the upper stack alone. */
static struct cm_site_id
join(struct cm_objects *objects, struct cm_site_id upper,
     struct cm_site_id lower, bool marked)
{
    struct cm_frame frames[MOST_FRAMES];
    const struct cm_site *above = cm_records_site(objects->records, upper);
    const struct cm_site *below = cm_records_site(objects->records, lower);
    uint32_t between = marked ? frame_between(objects) : 0;
    struct cm_site joined = {
        .frames = frames,
        .frame_count = above->frame_count + marked + below->frame_count,
        .cut = above->cut || below->cut,
    };
    struct cm_site_id id, alone = marked ? lower : upper;
    if ((marked && between == 0) || above->frame_count == 0
        || below->frame_count == 0 || joined.frame_count > MOST_FRAMES) {
        return alone;
    }
    memcpy(frames, above->frames, above->frame_count * sizeof(frames[0]));
    frames[above->frame_count] = (struct cm_frame){.code = {between}};
    memcpy(frames + above->frame_count + marked, below->frames,
           below->frame_count * sizeof(frames[0]));
    return cm_records_add_site(objects->records, &joined, &id) == CM_OK
               ? id
               : alone;
}

/* The numbers of both in the upper 40 bits, which leaves 24 to that of the
 * stack they make; 0: one of them is too large. */
CM_EVENT_PATH static uint64_t
pair_of(struct cm_site_id forward_site, struct cm_site_id waiting)
{
    return (forward_site.index | waiting.index) >> 20 != 0
               ? 0
               : (uint64_t)forward_site.index << 44
                     | (uint64_t)waiting.index << 24;
}

CM_EVENT_PATH static struct cm_site_id
joined(struct cm_objects *objects, struct cm_site_id upper,
       struct cm_site_id lower, bool marked)
{
    uint64_t pair = pair_of(upper, lower);
    _Atomic uint64_t *place =
        &pairs[pair * UINT64_C(0x9E3779B97F4A7C15) >> 54];
    uint64_t known = atomic_load(place);
    if (pair != 0 && known >> 24 == pair >> 24) {
        return (struct cm_site_id){known & 0xFFFFFF};
    }
    struct cm_site_id site = join(objects, upper, lower, marked);
    if (pair != 0 && site.index <= 0xFFFFFF) {
        atomic_store(place, pair | site.index);
    }
    return site;
}

CM_EVENT_PATH struct cm_site_id
cm_forward_join(struct cm_objects *objects, struct cm_site_id forward_site,
                struct cm_site_id waiting)
{
    return joined(objects, forward_site, waiting, true);
}

/* No line of a forward pass is one of a thread that works for another, so
 * that both kinds of pairs may stand in one table. */
struct cm_site_id
cm_forward_append(struct cm_objects *objects, struct cm_site_id own,
                  struct cm_site_id awaited)
{
    return joined(objects, own, awaited, false);
}

/* ---- from Python, with the GIL */

void
cm_forward_stop(void)
{
    atomic_store(&forward.number_at, 0);
    atomic_store(&forward.thread, 0);
    atomic_store(&forward.from, 0);
    forward.searched = false;
    atomic_store(&forward.peek, NULL);
    for (size_t i = 0; i < RING; i++) {
        atomic_store(&ring[i], 0);
    }
    for (size_t i = 0; i < JOINED; i++) {
        atomic_store(&pairs[i], 0);
    }
}

const char *
cm_forward_status(void)
{
    const char *missing = forward.searched
                              ? cm_current_node_missing()
                              : "not looked for: no hook of torch is in";
    if (missing != NULL) {
        return missing;
    }
    if (atomic_load(&forward.peek) == NULL) {
        return "torch does not say how far its numbers have come";
    }
    if (atomic_load(&forward.number_at) == 0) {
        return "not learnt";
    }
    if (atomic_load(&forward.reached) < atomic_load(&forward.from)) {
        return "several threads run forward passes";
    }
    return cm_current_node_read()
               ? "by autograd's own numbers; its node is read in place"
               : "by autograd's own numbers";
}

/* One grad_fn: the words of its node and the number that is among them. */
static bool
read_fact(PyObject *fact, uint64_t words[NODE_WORDS], uint64_t *number)
{
    unsigned long long object, value;
    uint64_t head[NODE_IN_OBJECT + 1];
    if (!PyArg_ParseTuple(fact, "KK", &object, &value)) {
        return false;
    }
    *number = value;
    memset(words, 0, NODE_WORDS * sizeof(words[0]));
    return cm_torch_peek(object, head, NODE_IN_OBJECT + 1)
           && cm_torch_peek(head[NODE_IN_OBJECT], words, NODE_WORDS);
}

/* The only word that is the number in each of them; 0: none or several. */
static uint32_t
find_number(PyObject *facts)
{
    bool fits[NODE_WORDS];
    uint32_t found = 0, count = 0;
    memset(fits, true, sizeof(fits));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(facts); i++) {
        uint64_t words[NODE_WORDS], number = 0;
        bool there = read_fact(PyList_GET_ITEM(facts, i), words, &number);
        for (uint32_t at = 0; at < NODE_WORDS; at++) {
            fits[at] = fits[at] && there && words[at] == number;
        }
    }
    for (uint32_t at = 1; at < NODE_WORDS; at++) {
        count += fits[at];
        found = fits[at] ? at : found;
    }
    return count == 1 ? found : 0;
}

PyObject *
cm_forward_probe(PyObject *module, PyObject *facts)
{
    (void)module;
    if (!PyList_CheckExact(facts) || PyList_GET_SIZE(facts) < 2) {
        PyErr_SetString(PyExc_TypeError, "a list of two was expected");
        return NULL;
    }
    atomic_store(&forward.number_at, find_number(facts));
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *
cm_forward_of(PyObject *module, PyObject *number)
{
    (void)module;
    uint64_t wanted = PyLong_AsUnsignedLongLong(number);
    return PyErr_Occurred() ? NULL
                            : PyLong_FromUnsignedLong(site_of(wanted).index);
}

PyObject *
cm_forward_running(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    uint64_t number;
    return running_number(&number) ? PyLong_FromUnsignedLongLong(number)
                                   : Py_NewRef(Py_None);
}
