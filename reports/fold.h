/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FOLD_H
#define CM_FOLD_H

/* Makes a drawing smaller without making it false: what is folded is still
 * there as a longer label or as a count.  For draw.c alone. */

#include <stddef.h>

#include "draw.h"

/* Containers that one reference leads to become part of its label. */
enum cm_status cm_fold_containers(const struct cm_leak *leak,
                                  struct cm_drawing *drawing) CM_CHECKED;
/* Where there are more than `most` nodes (0: as many as there are), keeps what
 * the path tells, the two counts included in `most`; makes parallel references
 * one. */
enum cm_status cm_fold_rest(struct cm_drawing *drawing, size_t most)
    CM_CHECKED;

#endif
