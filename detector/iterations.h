/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ITERATIONS_H
#define CM_ITERATIONS_H

/* Where an iteration of the program ends: at its own word, else when each of
 * its optimizers has stepped, so that gradient accumulation, several
 * optimizers and a critic that steps five times for one of its generator are
 * one iteration each; else after a slice of time.  A sweep that makes a model
 * and its optimizer for each trial has one for each of these at least, also
 * where each takes one step alone; of long trials, from the third on, one for
 * each step.  Plain state, guarded by its owner.
 *
 * Slices are a tenth of a second at first and get longer with the run, so that
 * ten of them are always a good part of it: what grows and goes with one
 * request of a server is then within one slice.  They stand for iterations
 * only until something steps: then the count begins anew.  Where nothing steps
 * any more, for longer than the program has been seen to pause, as in one that
 * trains and then serves, slices are counted on from the last iteration,
 * and iterations from the last slice once something steps again: a number is
 * never given twice. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cm_iterations_by {
    CM_BY_TIME = 0, /* nobody stepped so far */
    CM_BY_OPTIMIZER,
    CM_BY_STEP
};

enum { CM_MOST_OPTIMIZERS = 32, CM_MOST_PASSED = 4096 };

/* Zeroed before first use. */
struct cm_iterations {
    int64_t done;
    enum cm_iterations_by by;
    struct {
        uintptr_t optimizer;
        uint32_t steps; /* since the iteration began */
        uint64_t all_steps;
        uint64_t last; /* the number of its last step among all */
    } active[CM_MOST_OPTIMIZERS];
    size_t active_count;
    uint64_t all_steps; /* of all optimizers */
    uint64_t newest_at; /* the number of the first step of who came last */
    uintptr_t passed[CM_MOST_PASSED]; /* who was taken for done with */
    size_t passed_count;              /* ever */
    bool come_again;    /* one of these came again: they take turns, */
    uint32_t newcomers; /* until so many come in a row and nobody again */
    /* While these are as many as can be: others since one of them stepped. */
    uint64_t strangers;
    uintptr_t last_stranger, kept_stranger;
    bool fresh;      /* each step is a new one's */
    bool taken_over; /* one with many steps was done with when many of another
                      * had come */
    uint64_t slice_began_ns, slice_ns; /* 0: that of the first one */
    int64_t sliced; /* slices are counted on from this one; else 0 */
    /* Since when there is a clock, and something steps, and when it did last,
     * as far as was asked; the longest time without that was over again; since
     * when it has been too long, and how many steps there were then. */
    uint64_t first_ns, stepping_ns, stepped_ns, longest_ns, waiting_ns, heard;
    bool anew; /* this is the first one after slices of time, and the first */
    bool parted; /* those before were an optimizer's part of one each */
    bool parts, parts_told; /* the next end says so; it is said once */
};

/* Each of these says whether an iteration has just ended; `done` counts it. */
bool cm_iterations_told(struct cm_iterations *self);
/* `optimizer`: any number that is its own while it lives. */
bool cm_iterations_optimizer(struct cm_iterations *self, uintptr_t optimizer);
/* How often it stepped since it was first seen; 0: it is not known. */
uint64_t cm_iterations_steps(const struct cm_iterations *self,
                             uintptr_t optimizer);
/* Whether several have stepped since the last one came: who has not is done
 * with, as the last trial's of a sweep. */
bool cm_iterations_are_several(const struct cm_iterations *self);
bool cm_iterations_time(struct cm_iterations *self, uint64_t now_ns);
/* Whether that would say so; constant, and cheap. */
bool cm_iterations_time_due(const struct cm_iterations *self, uint64_t now_ns);
/* To be asked now and then while optimizers step: whether none has for so long
 * that slices of time begin. */
bool cm_iterations_idle(struct cm_iterations *self, uint64_t now_ns);
/* How long slices are by now. */
uint64_t cm_iterations_slice_ns(const struct cm_iterations *self);

/* How long so many slices take, in first ones. */
double cm_iterations_clock(double slices);

/* Where an epoch that began at `since` is over at the latest: a thousand of the
 * program's iterations later.  Slices would take years for so many: they have
 * half an hour, and the run must be twice as long as it was. */
int64_t cm_iterations_epoch_end(const struct cm_iterations *self,
                                int64_t since);

/* "step", "optimizer" or "time". */
const char *cm_iterations_name(enum cm_iterations_by by);

#endif
