/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Growths are few: those of the list before are looked up one by one. */
#include "growth_inherit.h"

#include <string.h>

#include "../detector/alloc.h"
#include "../graph/holding.h"
#include "growth.h"
#include "growth_use.h"

/* "main" of "a.py:3 main" and of "frame a.py:9 in main". */
static const char *
function_of(const struct cm_leak *leak, const struct cm_leak_holder *frame)
{
    const char *text = cm_leak_text(leak, frame->annotation);
    const char *name = strrchr(text, ' ');
    return name != NULL ? name : text;
}

/* A traceback keeps the variable that the running function had: what was seen
 * of it now is the newest. */
static bool
is_same_variable(const struct cm_leak *leak,
                 const struct cm_leak_growth *growth,
                 const struct cm_leak_growth *old)
{
    if (growth->holder_at < 2 || growth->holder_at >= growth->holder_count
        || old->holder_at != 1 || old->holder_count < 2) {
        return false;
    }
    const struct cm_leak_holder *now = &growth->holder[growth->holder_at];
    return cm_text_same(now->edge, old->holder[1].edge)
           && strcmp(cm_leak_text(leak, now[-1].edge), "tb_frame") == 0
           && strcmp(function_of(leak, &now[-1]),
                     function_of(leak, &old->holder[0]))
                  == 0;
}

static void
inherit_seen(const struct cm_leak *leak, struct cm_leak_growth *growth,
             const struct cm_leak_growth *old)
{
    if (is_same_variable(leak, growth, old)) {
        old->holder[1].annotation =
            growth->holder[growth->holder_at].annotation;
        growth->holder_iteration = -1;
        return;
    }
    growth->holder_iteration = old->holder_iteration >= 0
                                   ? old->holder_iteration
                                   : leak->growth_iteration;
    growth->retained_bytes = old->retained_bytes;
}

/* Who held it when that was last seen: at the end of a program the variables
 * are gone that held what grew.  Takes it out of the old entry. */
static void
inherit_holder(const struct cm_leak *leak, struct cm_leak_growth *growth,
               struct cm_leak_growth *old)
{
    if (old->bounded && cm_growth_verdict(leak, growth) == CM_GROWTH_LEAK) {
        growth->bounded = true;
        growth->verdict = old->verdict;
    }
    inherit_seen(leak, growth, old);
    cm_free(growth->made_at);
    cm_free(growth->holder);
    growth->holder = old->holder;
    growth->holder_count = old->holder_count;
    growth->holder_at = old->holder_at;
    growth->made_at = old->made_at;
    growth->made_at_count = old->made_at_count;
    growth->autograd_depth = old->autograd_depth;
    growth->rule = old->rule;
    growth->advice = old->advice;
    old->holder = NULL;
    old->made_at = NULL;
    old->holder_count = old->made_at_count = 0;
}

/* What piles up behind a frame that a traceback keeps: its function has ended,
 * and it did so before.  What lingered, or is looked at once the program has
 * ended, and has died with what held it. */
static bool
is_left_over(const struct cm_leak *leak, const struct cm_leak_growth *growth,
             bool at_end)
{
    for (size_t i = 0; i < growth->holder_at && i < growth->holder_count;
         i++) {
        const char *edge = cm_leak_text(leak, growth->holder[i].edge);
        if (strcmp(edge, "tb_frame") == 0) {
            return true;
        }
    }
    return growth->holder_count == 0
           || ((at_end
                || cm_growth_verdict(leak, growth) == CM_GROWTH_LINGERING)
               && strcmp(cm_leak_text(leak, growth->holder[0].annotation),
                         CM_HOLDING_DEAD)
                      == 0);
}

/* Who holds what grows is not who holds what lingers. */
static bool
is_same_fault(const struct cm_leak *leak, const struct cm_leak_growth *a,
              const struct cm_leak_growth *b)
{
    return (cm_growth_verdict(leak, a) == CM_GROWTH_LINGERING)
           == (cm_growth_verdict(leak, b) == CM_GROWTH_LINGERING);
}

void
cm_growth_inherit(struct cm_leak *leak, struct cm_leak_growth *growth,
                  bool at_end)
{
    for (size_t i = 0; i < leak->growth_count; i++) {
        struct cm_leak_growth *old = &leak->growth[i];
        if (old->site != growth->site
            || old->category.index != growth->category.index
            || old->device.index != growth->device.index
            || !is_same_fault(leak, old, growth)) {
            continue;
        }
        if (is_left_over(leak, growth, at_end)
            && (!is_left_over(leak, old, at_end)
                || cm_growth_has_rule(leak, growth, CM_GROWTH_GIVEN_BACK))) {
            inherit_holder(leak, growth, old);
        }
        if (growth->name_count == 0 && old->name_count != 0) {
            cm_free(growth->names);
            growth->names = old->names;
            growth->name_count = old->name_count;
            old->names = NULL;
            old->name_count = 0;
        }
    }
}
