/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_OUTLINE_H
#define CM_OUTLINE_H

/* What is shown of one cycle: its component, the device objects that it
 * holds, and the objects in between, all bounded. */

#include <stdint.h>

#include "cycle.h"
#include "finding.h"

#define CM_OUTLINE_COMPONENT 256
#define CM_OUTLINE_PAYLOAD 64
#define CM_OUTLINE_VIA 64

/* Work space for all cycles of one heap. */
struct cm_outlines {
    const struct cm_heap *heap;
    uint32_t *came_by; /* owned; [nodes + 1] edge by which a node was met */
    uint32_t *seen;    /* owned; [nodes + 1] stamp of the search that met it */
    uint32_t *queue;   /* owned; [nodes + 1] */
    uint32_t stamp;
    size_t visits; /* that may still be spent by the searches of this heap */
};

/* `self` is zeroed before, empty after a failure. */
enum cm_status cm_outlines_init(struct cm_outlines *self,
                                const struct cm_heap *heap) CM_CHECKED;
void cm_outlines_release(struct cm_outlines *self);

/* Fills payload and via of the finding (the largest storages first), and
 * holder and payload of the cycle. */
enum cm_status cm_outline_payload(struct cm_outlines *self,
                                  struct cm_cycle *cycle,
                                  struct cm_finding *finding) CM_CHECKED;
/* Adds to via how the owner itself comes to the largest payload: the payload
 * may hang nearer to another member. */
void cm_outline_owner(struct cm_outlines *self, const struct cm_cycle *cycle,
                      uint32_t owner, struct cm_finding *finding);
/* Fills component: a shortest way round through `edge` (0: through any), from
 * `owner` if it lies on it, then the other members in order. */
enum cm_status cm_outline_component(struct cm_cycle *cycle, uint32_t edge,
                                    uint32_t owner, struct cm_finding *finding)
    CM_CHECKED;

#endif
