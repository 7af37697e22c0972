/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "event_line.h"

#include <string.h>

#include "block_table.h"
#include "hot.h"

/* Another core may have written them: two in a cache line. */
#define AHEAD 32u
#define PLACES (1u << 8)
_Static_assert(CM_LINE_EVENTS <= PLACES, "a number fits");

/* One allocation is remembered for all addresses of a place: who finds another
 * one there is no pair. */
CM_HOT uint32_t
cm_event_line_pairs(const struct cm_event_line *self, uint32_t first,
                    uint32_t count, bool gone[CM_LINE_EVENTS])
{
    uint8_t latest[PLACES] = {0};
    uint32_t pairs = 0;
    memset(gone, 0, count * sizeof(gone[0]));
    for (uint32_t i = 0; i < count; i++) {
        const struct cm_waiting *event = cm_event_line_at(self, first + i);
        uint8_t *place = &latest[cm_block_hash(event->address) >> 56];
        const struct cm_waiting *made = cm_event_line_at(self, first + *place);
        __builtin_prefetch(cm_event_line_at(self, first + i + AHEAD));
        if (event->kind == CM_EVENT_ALLOCATE) {
            *place = (uint8_t)i;
        }
        else if (*place < i && made->address == event->address
                 && made->kind == CM_EVENT_ALLOCATE && !gone[*place]) {
            gone[*place] = gone[i] = true;
            pairs++;
        }
    }
    return pairs;
}
