/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LOOKS_H
#define CM_LOOKS_H

/* Read-only scans: those that somebody asked for, and those that nobody did
 * (look_plan.h), which also serve a program that has switched its collections
 * off.  The latter happen at safe points of the main thread, never within a
 * collection, and run no code of the program's; what they find goes the way
 * of a collection's garbage.  With CUMEM_AUTO_COLLECT, one that finds more
 * dead bytes than that makes a collection instead. */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "../../detector/look_plan.h"

struct cm_session;

struct cm_looks {
    struct cm_look_plan plan;
    uint64_t collect_above; /* dead bytes; 0: never */
    bool pending;
    bool saving;         /* the collection under way is ours */
    uint64_t dead_bytes; /* of the last look */
    uint64_t collections, saved_bytes;
    uint64_t growth_count, growth_ns; /* looks at who holds what grows */
    uint64_t lost_told;               /* of the allocators' events */
};

/* A tensor was made, or a collection begins: is a look due?  With the GIL;
 * mostly one comparison. */
void cm_looks_consider(struct cm_session *session);
/* `done` iterations have ended. */
void cm_looks_stepped(struct cm_session *session, int64_t done);
/* A collection is over, with so many dead bytes of devices in its garbage. */
void cm_looks_collected(struct cm_session *session, int generation,
                        uint64_t took_ns, uint64_t dead_bytes);
/* What they came to so far, to the document.  Seldom. */
void cm_looks_tell(struct cm_session *session);
/* [new; never] for cumem.status(). */
PyObject *cm_looks_status(const struct cm_session *session);

#endif
