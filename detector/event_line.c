/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "event_line.h"

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
                    uint32_t count, uint8_t known[CM_LINE_EVENTS])
{
    uint8_t latest[PLACES] = {0};
    uint32_t pairs = 0;
    known[0] = 0; /* what no place has been given yet stands for */
    for (uint32_t i = 0; i < count; i++) {
        const struct cm_waiting *event = cm_event_line_at(self, first + i);
        uint8_t *place = &latest[cm_block_hash(event->address) >> 56];
        uint32_t before = *place;
        const struct cm_waiting *made = cm_event_line_at(self, first + before);
        bool same = made->address == event->address;
        uint8_t gone = known[before] & CM_EVENT_GONE;
        __builtin_prefetch(cm_event_line_at(self, first + i + AHEAD));
        known[i] = 0;
        if (event->kind == CM_EVENT_ALLOCATE) {
            known[i] = same && gone ? CM_EVENT_AGAIN : 0;
            *place = (uint8_t)i;
        }
        else if (same && !gone && before < i
                 && made->kind == CM_EVENT_ALLOCATE) {
            known[before] |= CM_EVENT_GONE;
            known[i] = CM_EVENT_OF_PAIR;
            pairs++;
        }
    }
    return pairs;
}
