/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Memory that several cycles hold counts for one of them, and goes when all
 * are cut.  Linear in the findings, for three others at most. */
#include <inttypes.h>

#include "summary_lines.h"

enum { MAX_TOLD = 3 };

static bool
is_same_line(const struct cm_leak_edge *a, const struct cm_leak_edge *b)
{
    return a != NULL && b != NULL
           && cm_text_same(a->made_at[0].filename, b->made_at[0].filename)
           && a->made_at[0].line == b->made_at[0].line;
}

void
cm_summary_add_shared(struct cm_summary_writer *self,
                      const struct cm_leak_cycle *cycle)
{
    const struct cm_leak_edge *own = cm_leak_known_cut(self->leak, cycle);

    for (size_t i = 0; i < cycle->shared_count && i < MAX_TOLD; i++) {
        const struct cm_leak_cycle *other =
            cm_leak_cycle_of(self->leak, cycle->shared_with[i]);
        const struct cm_leak_edge *cut =
            other != NULL ? cm_leak_known_cut(self->leak, other) : NULL;

        if (other == NULL || is_same_line(own, cut)) {
            continue;
        }
        cm_summary_add_label(self, "also");
        cm_line_addf(&self->line, CM_PAINT_NONE,
                     "held by a cycle [%06" PRIx64 "]",
                     other->fingerprint >> 40);
        if (cut != NULL) {
            cm_line_add(&self->line, CM_PAINT_NONE, ", cut ");
            cm_summary_add_place(self, &cut->made_at[0], CM_PAINT_PLACE);
            cm_line_add(&self->line, CM_PAINT_NONE, "  ");
            cm_line_add_cut(&self->line,
                            cm_summary_text(self, cut->made_at[0].source), 0);
        }
        cm_line_end(&self->line);
    }
}
