/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "alike.h"

#include <stdbool.h>
#include <stdlib.h>

static int
by_size(const void *left, const void *right)
{
    uint64_t a = ((const struct cm_block *)left)->bytes;
    uint64_t b = ((const struct cm_block *)right)->bytes;
    return (a > b) - (a < b);
}

static bool
has_size(const struct cm_block *blocks, size_t count, uint64_t bytes)
{
    struct cm_block key = {.bytes = bytes};
    return count != 0
           && bsearch(&key, blocks, count, sizeof(*blocks), by_size) != NULL;
}

static bool
is_alike(const struct cm_block *blocks, size_t count, size_t at)
{
    uint64_t bytes = blocks[at].bytes;
    return (at > 0 && blocks[at - 1].bytes == bytes)
           || (at + 1 < count && blocks[at + 1].bytes == bytes)
           || has_size(blocks, at, bytes / 2)
           || has_size(blocks, at, bytes / 4)
           || has_size(blocks + at, count - at, bytes * 2)
           || has_size(blocks + at, count - at, bytes * 4);
}

static bool
is_known(const struct cm_sought *known, size_t count, uint64_t address)
{
    size_t at = cm_sought_from(known, count, address);
    return at < count && known[at].address == address;
}

uint64_t
cm_alike_bytes(struct cm_block *blocks, size_t count,
               const struct cm_sought *known, size_t known_count)
{
    uint64_t bytes = 0;
    if (count > 1) {
        qsort(blocks, count, sizeof(*blocks), by_size);
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_known(known, known_count, blocks[i].address)
            && is_alike(blocks, count, i)) {
            bytes += blocks[i].bytes;
        }
    }
    return bytes;
}
