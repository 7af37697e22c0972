/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ALIKE_H
#define CM_ALIKE_H

/* Whether some blocks may be copies of others, by their sizes alone: it costs
 * a thousandth of looking through all objects for them.  A copy is as large as
 * what it was copied from or, in another number format, 2 or 4 times as large
 * or as small. */

#include <stddef.h>
#include <stdint.h>

#include "blocks.h"
#include "sought.h"

/* Bytes of the blocks that are as large as another one and begin at none of
 * the `known` addresses, which are sorted.  Sorts `blocks` by size. */
uint64_t cm_alike_bytes(struct cm_block *blocks, size_t count,
                        const struct cm_sought *known, size_t known_count);

#endif
