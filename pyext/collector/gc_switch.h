/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GC_SWITCH_H
#define CM_GC_SWITCH_H

/* gc's switch of automatic collection, held off while a question of ours lasts
 * in which the GIL may be given away: what it makes is not to collect what it
 * looks for.  What the program asks of the switch meanwhile, in whatever
 * thread, it is answered as without us, and has once nobody holds the switch any
 * more.  Guarded by the GIL. */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

/* One interpreter's.  Zeroed before first use. */
struct cm_gc_switch {
    uint32_t holders; /* who of ours wants no collection now */
    bool wanted;      /* by the program, while there are any */
    PyInterpreterState *interpreter;
};

void cm_gc_switch_hold(struct cm_gc_switch *self);
void cm_gc_switch_give(struct cm_gc_switch *self);
/* Who held it is gone: in a forked child, or with the interpreter. */
void cm_gc_switch_drop(struct cm_gc_switch *self);

static inline bool
cm_gc_switch_is_held(const struct cm_gc_switch *self)
{
    return self->holders != 0;
}

#endif
