/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DOT_H
#define CM_DOT_H

/* A finding as a picture: DOT text by cgraph, SVG by gvc.  The only module
 * that knows Graphviz; graphs are built with its calls and no DOT text is
 * ever printed by us.
 *
 * Layout happens in a forked child with bounds on memory, processor and wall
 * time, because Graphviz can take hours, all memory, or crash; when a way
 * fails the next cheaper one is tried: dot, sfdp, the condensed drawing by
 * dot, none.
 *
 * An SVG of ours is one <svg> element to be put into a page as it is: no
 * prolog, no script, no reference to anything outside, ids that no other
 * drawing has, colours by CSS class (see page.css). */

#include <stddef.h>

#include "../detector/status.h"

struct cm_buffer;
struct cm_leak;

/* The whole component with what it holds as one digraph; appended. */
enum cm_status cm_dot_write(const struct cm_leak *leak, size_t cycle,
                            struct cm_buffer *out) CM_CHECKED;

/* The same as SVG with its colours inside, a file of its own; appended.
 * CM_LIMIT: no way of drawing it kept the bounds. */
enum cm_status cm_dot_svg(const struct cm_leak *leak, size_t cycle,
                          struct cm_buffer *out) CM_CHECKED;

/* The same with other bounds than the usual ones (child.h). */
struct cm_child_limits;
enum cm_status cm_dot_svg_within(const struct cm_leak *leak, size_t cycle,
                                 const struct cm_child_limits *limits,
                                 struct cm_buffer *out) CM_CHECKED;

/* The drawings of a page: at most a dozen nodes each, the rest folded into
 * counts.  svgs[i] belongs to cycles[i]: new text (cm_free) or NULL where
 * none could be made.  CM_OK also when some are NULL. */
enum cm_status cm_dot_svgs(const struct cm_leak *leak, const size_t *cycles,
                           size_t count, char **svgs) CM_CHECKED;

#endif
