/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GROWTH_H
#define CM_GROWTH_H

/* What a person reads of memory that grows although it is reachable: the
 * verdict, its sentence, who holds it.  Plain text; whoever shows it makes it
 * harmless. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "growth_unit.h"
#include "leak.h"

enum cm_growth_verdict {
    CM_GROWTH_NO_VERDICT = 0, /* not one of these */
    CM_GROWTH_OK,
    CM_GROWTH_SETTLED,
    CM_GROWTH_GROWING, /* seen early, may be taken back */
    CM_GROWTH_LINGERING,
    CM_GROWTH_LEAK,
};

enum cm_growth_verdict cm_growth_verdict(const struct cm_leak *leak,
                                         const struct cm_leak_growth *growth);
/* "leak", "" for none: constants. */
const char *cm_growth_verdict_name(enum cm_growth_verdict verdict);
/* Whether it is a fault of the program: a leak, or lingering. */
bool cm_growth_is_fault(enum cm_growth_verdict verdict);
/* Whether a person hears of it without asking: a fault, or growing. */
bool cm_growth_is_told(enum cm_growth_verdict verdict);

/* Of the functions on the stack (the user's, if there are any), the text of
 * the line and the category: the same in every run and on every rank, and
 * after lines have moved.  Never 0. */
uint64_t cm_growth_fingerprint(const struct cm_leak *leak,
                               const struct cm_leak_growth *growth);

/* Behind the verdict: "+4.0 MiB per iteration since iteration 3; full in about
 * 1950 iterations (54 min)". */
void cm_growth_add_sentence(const struct cm_leak *leak,
                            const struct cm_leak_growth *growth,
                            struct cm_buffer *out);
/* "+4.0 MiB per iteration". */
void cm_growth_add_slope(const struct cm_leak *leak, double bytes,
                         int64_t since, struct cm_buffer *out);
/* "full in about 1950 iterations (54 min)"; false, and nothing, where it is
 * not known. */
bool cm_growth_add_full(const struct cm_leak *leak, int64_t iterations,
                        double seconds, struct cm_buffer *out);
/* Of a confidence, never more than 99. */
int cm_growth_percent(double confidence);
/* "gradients" for the category "gradient"; its name for others. */
const char *cm_growth_plural(const char *category);
/* The same, or what its rule knows: "a second copy of the weights". */
const char *cm_growth_what(const struct cm_leak *leak,
                           const struct cm_leak_growth *growth);
/* What to do, "" where nobody knows: names the finding of a dead cycle that is
 * of the same objects. */
void cm_growth_add_advice(const struct cm_leak *leak,
                          const struct cm_leak_growth *growth,
                          struct cm_buffer *out);
/* That its advice came of (graph/holding.c). */
bool cm_growth_has_rule(const struct cm_leak *leak,
                        const struct cm_leak_growth *growth, const char *rule);
/* Nothing but a dead cycle holds it. */
bool cm_growth_is_dead(const struct cm_leak *leak,
                       const struct cm_leak_growth *growth);
/* The finding that tells of the same objects once they are dead; NULL: none. */
const struct cm_leak_cycle *cm_growth_cycle(
    const struct cm_leak *leak, const struct cm_leak_growth *growth);
/* Told by the driver: no line and no holder is known. */
bool cm_growth_is_outside(const struct cm_leak *leak,
                          const struct cm_leak_growth *growth);
/* What the leaks of one device add up to: "cuda:0 grows by 4.1 MiB per
 * iteration; full in about 54 min", or what lingers on it; false, and nothing,
 * where there is no fault. */
bool cm_growth_add_device(const struct cm_leak *leak, struct cm_text_id device,
                          struct cm_buffer *out);

/* Whether a reference says something: `.cache` does, a position in a list does
 * not. */
bool cm_growth_edge_speaks(const char *edge);
/* The way to what grows in parts: the first is the root with what it holds
 * ("train.py:80 main: local `losses` (list, 409 items)"), each further one an
 * object (".grad (Tensor)", "loss"). */
size_t cm_growth_part_count(const struct cm_leak_growth *growth);
/* The part to be cut: where they pile up, or a gradient; 0: the first, or not
 * known.  It is shown however short a way is told. */
size_t cm_growth_place_part(const struct cm_leak *leak,
                            const struct cm_leak_growth *growth);
/* `rootless`: of the first part, only what the root holds. */
void cm_growth_add_part(const struct cm_leak *leak,
                        const struct cm_leak_growth *growth, size_t part,
                        bool rootless, struct cm_buffer *out);
/* How many bytes of "list of 409" are "list". */
size_t cm_growth_uncounted(const char *annotation);
/* "list, 409 items" for "list of 409". */
void cm_growth_add_object(const char *annotation, struct cm_buffer *out);
/* The object of a step of the way: "list, 9 items at iteration 12" where they
 * have been counted before the rest was. */
void cm_growth_add_step(const struct cm_leak *leak,
                        const struct cm_leak_growth *growth, size_t step,
                        struct cm_buffer *out);

#endif
