/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_COLLECTOR_H
#define CM_COLLECTOR_H

/* What Python's collector did for device memory and what it cost, and whether
 * the program could do without its running by itself. */

#include "buffer.h"
#include "leak.h"

/* Adds one collection to the sum of all. */
void cm_collector_add(struct cm_leak_collector *self,
                      const struct cm_leak_collection *row);
/* The sum of the listed ones: for a document that has none. */
void cm_collector_add_up(struct cm_leak *leak);

enum cm_collector_advice {
    CM_COLLECTOR_UNKNOWN = 0, /* too few were seen to say */
    CM_COLLECTOR_KEEP,        /* device memory depends on it */
    CM_COLLECTOR_MAY_GO,      /* it never freed any */
    CM_COLLECTOR_IS_OFF,      /* and dead memory waits for it */
    CM_COLLECTOR_SAVES,       /* only where CUMEM_AUTO_COLLECT has it run */
};
enum cm_collector_advice cm_collector_judge(const struct cm_leak *leak);
/* One or two sentences, nothing for CM_COLLECTOR_UNKNOWN. */
void cm_collector_add_advice(const struct cm_leak *leak,
                             struct cm_buffer *out);
/* "830 us" as a person writes it, "3.1 ms", "12.0 s". */
void cm_collector_add_time(uint64_t us, struct cm_buffer *out);

#endif
