/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* run_backward of torch's engine is ours while we listen (method.h).  A stack
 * is captured at the entry and stands in a small table until the function
 * returns.
 *
 * A thread of the engine's does not say whom it works for.  Those who wait for
 * each other, as where a step of a backward pass runs one of its own, are one
 * chain, and the last of them stands for it.  Where several chains wait, it is
 * one of several. */

#include "backward.h"

#include <stdatomic.h>
#include <string.h>

#include "../../detector/hot.h"
#include "../../detector/meter.h"
#include "current_node.h"
#include "forward.h"
#include "../tables/method.h"
#include "../tables/this_thread.h"

enum { MOST_WAITING = 64 };

struct waiting {
    _Atomic uint64_t order; /* 0: free; 1: being filled; else who came when */
    _Atomic uint64_t thread;
    _Atomic uint64_t chain; /* the order of its first */
    _Atomic uint32_t site;
    _Atomic(const void *) frame; /* that called; NULL: not known */
};

/* Who waits, at one moment. */
struct waiters {
    uint64_t newest, chain; /* of all; 0: nobody */
    bool several;           /* chains */
    uint64_t own_chain;     /* of this thread; 0: it does not wait */
    struct cm_site_id site; /* of the newest */
};

static struct {
    PyMethodDef *method; /* borrowed from torch, which is never unloaded */
    _Atomic(PyCFunction) original;
    _Atomic(struct cm_objects *) objects;
    struct waiting waiting[MOST_WAITING];
    _Atomic size_t used;      /* places that were ever taken: few */
    _Atomic uint32_t waiters; /* while it is 0 no place is looked at */
    _Atomic uint64_t last_order;
    void (*on_enter)(void); /* guarded by the GIL */
} backward CM_EVENT_DATA = {.last_order = 1};

static struct waiting *
take_place(void)
{
    for (size_t i = 0; i < MOST_WAITING; i++) {
        uint64_t is_free = 0;
        if (atomic_compare_exchange_strong(&backward.waiting[i].order,
                                           &is_free, 1)) {
            size_t used = atomic_load(&backward.used);
            while (used <= i
                   && !atomic_compare_exchange_weak(&backward.used, &used,
                                                    i + 1)) {
            }
            return &backward.waiting[i];
        }
    }
    return NULL;
}

CM_EVENT_PATH static inline void
add_waiter(struct waiters *all, const struct waiting *place, uint64_t thread)
{
    uint64_t order = atomic_load(&place->order);
    uint64_t chain = atomic_load(&place->chain);
    uint32_t site = atomic_load(&place->site);
    bool own = atomic_load(&place->thread) == thread;
    if (order <= 1 || atomic_load(&place->order) != order) {
        return; /* it has left meanwhile */
    }
    all->several |= all->chain != 0 && all->chain != chain;
    all->chain = chain;
    if (own) {
        all->own_chain = chain;
    }
    if (order > all->newest) {
        all->newest = order;
        all->site.index = site;
    }
}

CM_EVENT_PATH static struct waiters
waiters_now(void)
{
    struct waiters all = {.newest = 0};
    uint64_t thread = cm_this_thread();
    for (size_t i = 0; i < atomic_load(&backward.used); i++) {
        add_waiter(&all, &backward.waiting[i], thread);
    }
    return all;
}

/* That a thread which enters now belongs to; 0: one of its own.  Who runs a
 * step of autograd's works for one that waits. */
static uint64_t
chain_before(void)
{
    if (atomic_load(&backward.waiters) == 0) {
        return 0;
    }
    struct waiters all = waiters_now();
    return all.own_chain != 0                       ? all.own_chain
           : !all.several && cm_current_node() != 0 ? all.chain
                                                    : 0;
}

static struct waiting *
enter(void)
{
    CM_METERED(CM_METER_BACKWARD);
    struct cm_objects *objects = atomic_load(&backward.objects);
    struct waiting *place =
        objects != NULL && !CM_PASSES(CM_METER_BACKWARD) ? take_place() : NULL;
    if (place != NULL) {
        uint64_t order = atomic_fetch_add(&backward.last_order, 1) + 1;
        uint64_t chain = chain_before();
        atomic_store(&place->thread, cm_this_thread());
        atomic_store(&place->site, cm_objects_stack(objects).index);
        atomic_store(&place->chain, chain != 0 ? chain : order);
        atomic_store(&place->frame, cm_objects_innermost_frame(objects));
        atomic_store(&place->order, order);
        atomic_fetch_add(&backward.waiters, 1);
    }
    return place;
}

/* [new; raises] as torch's own. */
static PyObject *
run_backward(PyObject *self, PyObject *args, PyObject *keywords)
{
    union {
        PyCFunction plain;
        PyCFunctionWithKeywords full;
    } original = {.plain = atomic_load(&backward.original)};
    struct waiting *place = enter();
    if (place != NULL && backward.on_enter != NULL) {
        backward.on_enter();
    }
    PyObject *result = original.full(self, args, keywords);
    if (place != NULL) {
        atomic_store(&place->frame, NULL);
        atomic_fetch_sub(&backward.waiters, 1);
        atomic_store(&place->order, 0);
    }
    return result;
}

/* Borrowed; NULL: no such type. */
static PyTypeObject *
find_engine(void)
{
    static const char *const names[] = {"_ImperativeEngine", "_EngineBase"};
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = PyDict_GetItemString(modules, "torch._C");
    if (module == NULL || !PyModule_Check(module)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        PyObject *engine =
            PyDict_GetItemString(PyModule_GetDict(module), names[i]);
        if (engine != NULL && PyType_Check(engine)) {
            return (PyTypeObject *)engine;
        }
    }
    return NULL;
}

/* Borrowed; NULL: not the method we know. */
static PyMethodDef *
find_method(void)
{
    PyTypeObject *engine = find_engine();
    PyMethodDef *methods = engine != NULL ? engine->tp_methods : NULL;
    for (; methods != NULL && methods->ml_name != NULL; methods++) {
        if (strcmp(methods->ml_name, "run_backward") == 0
            && methods->ml_flags == (METH_VARARGS | METH_KEYWORDS)) {
            return methods;
        }
    }
    return NULL;
}

static PyCFunction
wrapper(void)
{
    union {
        PyCFunctionWithKeywords full;
        PyCFunction plain;
    } ours = {.full = run_backward};
    return ours.plain;
}

bool
cm_backward_heard(void)
{
    return backward.method != NULL && backward.method->ml_meth == wrapper();
}

bool
cm_backward_start(struct cm_objects *objects)
{
    atomic_store(&backward.objects, objects);
    if (backward.method == NULL) {
        backward.method = find_method();
    }
    PyMethodDef *method = backward.method;
    if (method == NULL || method->ml_meth == wrapper()) {
        return method != NULL;
    }
    atomic_store(&backward.original, method->ml_meth); /* read by ours */
    PyCFunction original;
    return cm_method_replace(method, wrapper(), &original);
}

void
cm_backward_on_enter(void (*hook)(void))
{
    backward.on_enter = hook;
}

void
cm_backward_stop(void)
{
    atomic_store(&backward.objects, NULL);
    if (cm_backward_heard()) {
        backward.method->ml_meth = atomic_load(&backward.original);
    }
}

/* Of who waits, or that it is one of several; id 0: nobody does. */
CM_EVENT_PATH static struct cm_site_id
awaited_stack(struct cm_objects *objects, const struct waiters *all)
{
    struct cm_site_id waiting =
        all->several ? cm_forward_several(objects) : all->site;
    struct cm_site_id forward = {0};
    if (waiting.index != 0) {
        forward = cm_forward_site();
    }
    return forward.index != 0 ? cm_forward_join(objects, forward, waiting)
                              : waiting;
}

/* Somebody waits.  A step in Python, as compiled code's are, has frames of its
 * own, but nobody calls it there. */
CM_EVENT_PATH static __attribute__((noinline)) struct cm_site_id
join_awaited(struct cm_objects *objects, struct cm_site_id site, bool *awaited)
{
    struct waiters all = waiters_now();
    if (site.index == 0) {
        site = awaited_stack(objects, &all);
        *awaited = site.index != 0;
    }
    else if (all.newest != 0 && all.own_chain == 0 && cm_current_node() != 0) {
        struct cm_site_id waiting = awaited_stack(objects, &all);
        *awaited = waiting.index != 0;
        site = *awaited ? cm_forward_append(objects, site, waiting) : site;
    }
    return site;
}

/* Of a thread that waits and itself works for what it waits for, as it does on
 * the CPU, with no Python below: the frame that called stands where it stood.
 * Id 0: this is none. */
CM_EVENT_PATH static struct cm_site_id
own_stack(const struct cm_objects *objects)
{
    struct cm_site_id none = {0};
    uint64_t thread = cm_this_thread();
    size_t used = atomic_load(&backward.used);
    for (size_t i = 0; i < used; i++) {
        const struct waiting *place = &backward.waiting[i];
        /* In this order: whoever takes the place is not us any more. */
        const void *frame = atomic_load(&place->order) > 1
                                    && atomic_load(&place->thread) == thread
                                ? atomic_load(&place->frame)
                                : NULL;
        if (frame != NULL && frame == cm_objects_innermost_frame(objects)) {
            return (struct cm_site_id){atomic_load(&place->site)};
        }
    }
    return none;
}

CM_EVENT_PATH struct cm_site_id
cm_backward_stack(struct cm_objects *objects, bool *awaited)
{
    *awaited = false;
    bool waits =
        atomic_load_explicit(&backward.waiters, memory_order_acquire) != 0;
    struct cm_site_id site = {0};
    if (waits) {
        site = own_stack(objects);
    }
    if (site.index == 0) {
        site = cm_objects_memory_stack(objects);
        site = waits ? join_awaited(objects, site, awaited) : site;
    }
    return site;
}
