/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_MADE_PRIVATE_H
#define CM_MADE_PRIVATE_H

/* What the finders of made.h share. */

#include "made.h"
#include "place.h"

const struct cm_code *cm_made_code_of(const struct cm_cycle *cycle,
                                      struct cm_code_id code);
/* Of an edge; "" for none. */
struct cm_name cm_made_name_of(const struct cm_cycle *cycle, uint32_t edge);
/* The nearest of the places found; a single one is certain. */
void cm_made_choose(struct cm_place_search *search, struct cm_made *result);
void cm_made_choose_only(struct cm_place place, struct cm_made *result);
/* Takes the reason. */
enum cm_status cm_made_explain(struct cm_made *result, char *reason);
/* Where `maker` is made; the line is 0 where its code is not known. */
struct cm_place cm_made_place_of_function(const struct cm_cycle *cycle,
                                          const struct cm_suspect *suspect);

#endif
