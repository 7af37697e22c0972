/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PATH_LINE_H
#define CM_PATH_LINE_H

/* A path on one line: `A .b > C ~~> A .t > Tensor [64] float32`. */

#include "line.h"
#include "path.h"

/* Longer paths lose whole steps in their middle (" > ... > "), never the
 * suspect edge's ends nor the first and last step.  Twice a terminal's width:
 * those four steps alone can fill more than one line of it. */
#define CM_PATH_COLUMNS 160

/* Adds the path and ends the line. */
enum cm_status cm_path_line_add(struct cm_line *line,
                                const struct cm_path *path) CM_CHECKED;

#endif
