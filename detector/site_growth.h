/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SITE_GROWTH_H
#define CM_SITE_GROWTH_H

/* What each allocation site holds at the end of each iteration, what of the
 * model's it is, and which verdict its series has by now.  Nothing here knows
 * who holds the memory.
 *
 * Guarded by its owner.  Cost of a boundary: one look-up for each site that
 * allocated or freed in the iteration, and a verdict for the few that are
 * suspect. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blocks.h"
#include "series.h"
#include "status.h"
#include "verdict.h"

enum cm_category {
    CM_OTHER = 0,
    CM_PARAMETER,
    CM_GRADIENT,
    CM_OPTIMIZER,
    CM_SAVED, /* for backward */
    CM_INPUT,
    CM_OUTSIDE, /* the frameworks: of no site, told by the driver */
    CM_CATEGORIES
};

extern const char *const cm_category_names[CM_CATEGORIES];

/* What a site allocated hangs from items of one container. */
struct cm_growth_fill {
    uint64_t items;     /* 0: it does not hang so */
    uint64_t hung;      /* of these */
    int64_t iterations; /* that are done */
    bool between;       /* two of them; else one goes on */
};

struct cm_growth_state {
    uint8_t verdict;   /* enum cm_verdict, the last one */
    uint8_t told;      /* the last one that made a look due */
    uint8_t doubts;    /* boundaries since it was told at which it only grew */
    bool kept;         /* gradients, through the last forward pass, */
    bool looked;       /* which looked for them */
    bool suspected;    /* its series, when it changed last */
    bool leaked;       /* it was judged a leak once: it does not just vanish */
    bool renewed;      /* each turn of the loop sets it anew */
    bool bounded;      /* by what held it when it was last looked at */
    bool earlier;      /* leaked, by other iterations than these */
    int64_t judged_at; /* an iteration; 0: never */
    uint64_t bytes, count, peak_bytes;
    uint64_t items, hung; /* the fewest of cm_growth_note_items(); 0: none */
    int64_t items_at;     /* the iteration that was whole then, or goes on */
    struct cm_growth_fill each; /* of cm_growth_note_each(), to compare with */
    /* Of a site that allocates gradients or optimizer state: theirs when they
     * were last counted, and what else of it was live then, such as a
     * workspace of cuBLAS that a backward pass left, or old optimizers'; of
     * that the least that was counted so far, which did not grow. */
    uint64_t owned_bytes, other_bytes, least_other;
    bool owns;              /* the three are known */
    uint64_t forward_bytes; /* live at the last forward that looked */
    uint64_t still_bytes;   /* at a look that found that it had settled, and */
    double still_since;     /* when that was first: the looker's, seconds */
};

struct cm_growth_gradient {
    uint32_t series, device; /* its number; the index + 1 */
};

/* The number of a site's series, plus 1; 0: none yet. */
struct cm_growth_numbers {
    uint32_t *of_site; /* owned */
    size_t capacity;
};

/* max_sites of the table is set before the first use, the rest zero. */
struct cm_growth {
    struct cm_series_table table;   /* by site and device + 1 */
    struct cm_growth_state *states; /* owned; by the series' number */
    size_t state_capacity;
    struct cm_growth_numbers numbers[CM_MAX_DEVICES + 1]; /* by device + 1 */
    uint8_t *categories; /* owned; by site: enum cm_category */
    size_t category_capacity;
    uint64_t bytes[CM_MAX_DEVICES + 1][CM_CATEGORIES]; /* by device + 1 */
    uint32_t *suspects; /* owned: series to be judged at this boundary */
    size_t suspect_count, suspect_capacity;
    struct cm_growth_gradient *gradients; /* owned */
    struct cm_site_use *gradient_uses;    /* owned: at the forward pass */
    size_t gradient_count, gradient_capacity, use_capacity;
    bool stale;         /* the sums and the list above: series or
                         * categories are new */
    bool slices;        /* iterations are those of time: the owner says so, */
    int64_t sliced;     /* after which one of the program's, if it had any, */
    int64_t unit_began; /* and after which one these began, or those */
    bool forward_noted; /* since the last boundary */
    bool calm; /* nothing was suspect at the last boundary, and no gradients
                * have been kept since: what comes next may be left out */
    bool due;  /* a verdict is new that a person should hear of; whoever tells
               * it calls cm_growth_heard() */
    bool leak_due; /* and one of these is a leak */
    uint64_t lost; /* numbers that there was no memory for */
    size_t known;  /* series that cm_growth_next_site() has told of */
};

static inline void
cm_growth_heard(struct cm_growth *self)
{
    self->due = self->leak_due = false;
}

struct cm_growth_row {
    uint32_t site;
    int device;
    enum cm_category category;
    uint64_t bytes, count, peak_bytes;
    uint64_t owned_bytes, other_bytes; /* as in its state; above the least */
    struct cm_verdict_result result;
    const struct cm_series *series; /* borrowed */
};

void cm_growth_release(struct cm_growth *self);

/* The end of an iteration; for each device, then judge once. */
void cm_growth_boundary(struct cm_growth *self, struct cm_blocks *blocks,
                        int device, int64_t iteration);
void cm_growth_judge(struct cm_growth *self, int64_t iteration);
/* A backward pass begins: what gradients are live have been kept through the
 * forward pass.  Only the first one of an iteration counts. */
void cm_growth_forward(struct cm_growth *self, struct cm_blocks *blocks,
                       int64_t iteration);

/* What the process holds on a device beside the frameworks, in an iteration
 * that ends: the series of site 0. */
void cm_growth_outside(struct cm_growth *self, int device, int64_t iteration,
                       uint64_t bytes);

/* NULL: no series is known to be this site's. */
struct cm_growth_state *cm_growth_known(const struct cm_growth *self,
                                        int device, struct cm_site_id site);

/* Whether what it allocated may have been kept through the last forward pass:
 * false where none of it was, though it was looked at. */
bool cm_growth_may_keep(const struct cm_growth *self, int device,
                        struct cm_site_id site);
/* Whether each turn of the loop sets anew what it allocated, as it was seen
 * last between two turns; false: that is not known. */
bool cm_growth_is_renewed(const struct cm_growth *self, int device,
                          struct cm_site_id site);
void cm_growth_renew(struct cm_growth *self, int device,
                     struct cm_site_id site, bool renewed);
/* What the site allocates is this of the model's. */
void cm_growth_categorize(struct cm_growth *self, struct cm_site_id site,
                          enum cm_category category);
/* So many bytes of the `live` ones that it has allocated are parameters' own:
 * the gradient of each, what one optimizer keeps for it. */
void cm_growth_own(struct cm_growth *self, int device, struct cm_site_id site,
                   uint64_t bytes, uint64_t live);
/* The sites that are new since the last call, one by one; false: no more. */
bool cm_growth_next_site(struct cm_growth *self, struct cm_site_id *result);
enum cm_category cm_growth_category(const struct cm_growth *self,
                                    uint32_t site);

/* Every series whose verdict is not "ok" now, judged anew; *result is the
 * caller's to free with cm_free(). */
enum cm_status cm_growth_rows(struct cm_growth *self, int64_t now,
                              struct cm_growth_row **result, size_t *count)
    CM_CHECKED;

#endif
