/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SVG_H
#define CM_SVG_H

/* A drawing as one <svg> element: no prolog, script, style of its own, ids or
 * references to anything; colours come by class from page.css.  Texts are cut
 * to what their boxes were measured for. */

#include <stdbool.h>

#include "buffer.h"
#include "draw.h"

/* How large each box and each label will be: before the layout. */
void cm_svg_measure(struct cm_drawing *drawing);
/* After the layout.  `alone`: a file of its own, with its colours inside. */
void cm_svg_write(const struct cm_drawing *drawing, bool alone,
                  struct cm_buffer *out);

#endif
