/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* An iteration ends on the program's own thread, between two kernels: so this
 * takes no lock that an analysis holds.  The rows wait in the session. */

#include "steps.h"

#include <stdio.h>

#include "allocations.h"
#include "session_private.h"

enum { NAME_BYTES = 32 };

void
cm_steps_tell(struct cm_session *self)
{
    char name[NAME_BYTES];
    for (size_t i = 0; i < self->step_count; i++) {
        const struct cm_step_row *row = &self->steps[i];
        snprintf(name, sizeof(name), "cuda:%d", row->device);
        cm_digest_iteration(self->digest, name, row->number, row->start,
                            row->end, row->peak);
    }
    self->step_count = 0;
    if (self->iterations.done != 0) {
        cm_digest_number(self->digest, "iteration", self->iteration);
    }
}

static void
note_device(struct cm_session *self, int device)
{
    struct cm_block_use use;
    cm_blocks_use(cm_allocations_blocks(), device, &use);
    if (use.allocations == 0) {
        return;
    }
    if (self->step_count == CM_MOST_STEP_ROWS) {
        cm_steps_tell(self);
    }
    self->steps[self->step_count++] = (struct cm_step_row){
        .number = self->iteration - 1,
        .start = self->step_bytes[device],
        .end = (int64_t)use.live_bytes,
        .peak = (int64_t)use.peak_bytes,
        .device = device,
    };
    self->step_bytes[device] = (int64_t)use.live_bytes;
}

static void
end_iteration(struct cm_session *self)
{
    struct cm_blocks *blocks = cm_allocations_blocks();
    self->iteration = self->iterations.done;
    cm_looks_stepped(self, self->iterations.done);
    if (cm_allocations_heard() && cm_session_is_main(self)) {
        for (int i = 0; i < cm_blocks_devices(blocks); i++) {
            note_device(self, i);
        }
        cm_blocks_mark(blocks);
    }
}

PyObject *
cm_session_step(struct cm_session *self)
{
    if (cm_iterations_told(&self->iterations)) {
        end_iteration(self);
    }
    Py_RETURN_NONE;
}

PyObject *
cm_session_stepped(struct cm_session *self, PyObject *const *args,
                   Py_ssize_t count)
{
    if (count != 0 && !self->silent
        && cm_iterations_optimizer(&self->iterations, (uintptr_t)args[0])) {
        end_iteration(self);
    }
    Py_RETURN_NONE;
}

void
cm_steps_time(struct cm_session *self, uint64_t now_ns)
{
    if (cm_iterations_time(&self->iterations, now_ns)) {
        end_iteration(self);
    }
}
