/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GC_HOOK_H
#define CM_GC_HOOK_H

/* What both interceptors share: one C callable at gc.callbacks[0], the stack
 * of collections that are under way, and their sinks.  A kind (sentinel.c,
 * saveall.c) embeds struct cm_interceptor as its first member and fills in
 * struct cm_hook_kind.
 *
 * The list gc.callbacks owns the callable: when a user clears the list, the
 * callable's end takes everything back at once, whatever phase it is in.
 *
 * Guarded by the GIL; all state is per interpreter. */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#if PY_VERSION_HEX < 0x030C0000
#include <structmember.h> // T_PYSSIZET, READONLY
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY READONLY
#endif

#include "gc_list.h"
#include "interceptor.h"

/* Only 3.12 starts a collection inside another. */
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#define CM_GC_NESTS 1
#else
#define CM_GC_NESTS 0
#endif

enum { CM_LEVELS_MAX = 8 };

/* Told to a kind, by level: 0 is the outermost collection. */
struct cm_hook_kind {
    void (*opened)(struct cm_interceptor *self, int level);
    /* `info` is gc's dict, NULL when the stop was lost.  Sets `seen` of the
     * collection. */
    void (*closed)(struct cm_interceptor *self, int level, PyObject *info,
                   struct cm_collection *collection);
    /* False: the collection of this level is certainly over. */
    bool (*under_way)(const struct cm_interceptor *self, int level);
    /* Everything is taken back; frees the whole kind. */
    void (*destroy)(struct cm_interceptor *self);
};

struct cm_interceptor {
    const struct cm_hook_kind *kind;
    struct cm_sinks sinks;
    struct cm_interceptor_counts counts;
    struct cm_gc_module gc;
    PyObject *callbacks; /* owned: gc.callbacks */
    PyObject *callable;  /* borrowed from whoever holds it; NULL when gone */
    int depth;           /* collections under way */
    int skipped;         /* starts above CM_LEVELS_MAX without their stop */
    int calls;           /* calls into us on the C stack */
    bool resting; /* the kind sees collections without their starts; ours is in
                   * gc.callbacks while a stop is to be heard */
    bool removed; /* freed when `calls` is 0 */
    struct cm_hook_level {
        int generation;
        uint64_t start_ns;
        unsigned long thread; /* that started it, and how deep in its stack */
        uintptr_t stack;
    } levels[CM_LEVELS_MAX];
};

/* Before: *self is zeroed but for `kind`.  On failure nothing is left but
 * what cm_hook_release releases.  [0 or -1; raises] */
int cm_hook_init(struct cm_interceptor *self, const struct cm_sinks *sinks);
/* Puts the callable first in gc.callbacks, or last.  [0 or -1; raises] */
int cm_hook_attach(struct cm_interceptor *self, PyObject *module, bool last);
/* Takes it out; nothing else changes. */
void cm_hook_detach(struct cm_interceptor *self);
bool cm_hook_is_last(const struct cm_interceptor *self);
/* A collection whose start was not heard, but whose stop will be; `opened` is
 * not called.  Its level, -1: too deep. */
int cm_hook_open(struct cm_interceptor *self, int generation,
                 uint64_t start_ns);
/* The end of a call into us: `calls` was one more. */
void cm_hook_leave(struct cm_interceptor *self);
/* Closes what is open, takes the callable out, and calls kind->destroy now or
 * when the last call into us has returned.  [none; never] */
void cm_hook_remove(struct cm_interceptor *self);
/* For destroy and for failed installs. */
void cm_hook_release(struct cm_interceptor *self);
void cm_hook_counts(const struct cm_interceptor *self,
                    struct cm_interceptor_counts *result);

/* An exact int of gc's info dict, else -1.  [never] */
int64_t cm_hook_number(PyObject *info, const char *name);

/* A heap type of ours, made once for each module object and kept in its dict.
 * [new; raises] */
PyTypeObject *cm_hook_type(PyObject *module, PyType_Spec *spec);

#endif
