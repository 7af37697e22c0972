/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_CHILD_H
#define CM_CHILD_H

/* Work that may take all memory, all time or crash, in a forked child with
 * bounds; what it writes comes back through a pipe.  For programs of one
 * thread: never in the traced process. */

#include <stdbool.h>
#include <stddef.h>

#include "buffer.h"

struct cm_child_limits {
    size_t bytes;         /* of address space beyond what is mapped already */
    unsigned cpu_seconds; /* of processor time */
    unsigned wall_ms;     /* of waiting */
};

/* Writes its result with cm_child_write(fd, ...); false: it gave up. */
typedef bool cm_child_work(int fd, void *context);

/* Runs work(fd, context) in a child and appends what it wrote to `out`.
 * CM_OK: it ended well.  CM_LIMIT: it met a bound, crashed or gave up; `out`
 * has what came before.  CM_IO: no child could be made.  CM_NO_MEMORY. */
enum cm_status cm_child_run(cm_child_work *work, void *context,
                            struct cm_child_limits limits,
                            struct cm_buffer *out) CM_CHECKED;

/* The whole of `bytes`; false when the pipe is gone. */
bool cm_child_write(int fd, const void *bytes, size_t length);

#endif
