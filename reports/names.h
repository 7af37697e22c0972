/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_NAMES_H
#define CM_NAMES_H

/* What a path calls the objects and references of a document, from their
 * annotations, types and kinds (INTERFACES, sections 4 and 5). */

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "leak.h"

/* "Trainer", "<lambda>", "frame f", "method f", "class N", "partial",
 * "Tensor [64, 512] float32". */
void cm_name_add_vertex(struct cm_buffer *out, const struct cm_leak *leak,
                        uint32_t vertex);
/* ".cb", "[0]", ".x" of a local; nothing for references that the name of the
 * vertex says already (cells, bound methods).  `in_instance_dict`: the
 * reference goes out of an instance's dict, so that a key is an attribute. */
void cm_name_add_edge(struct cm_buffer *out, const struct cm_leak *leak,
                      uint32_t edge, bool in_instance_dict);
/* Whether it is one that runs: a generator or coroutine. */
bool cm_name_is_running(const struct cm_leak *leak, uint32_t vertex);
/* Whether it only stands between an owner and what it does: a cell, a bound
 * method, a partial, a container, a traceback. */
bool cm_name_is_between(const struct cm_leak *leak, uint32_t vertex);
/* Whether a path leaves this vertex out, when it is not where it starts. */
bool cm_name_folded(const struct cm_leak *leak, uint32_t vertex);

#endif
