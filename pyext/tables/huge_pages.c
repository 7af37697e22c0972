/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The only place here that asks the system for memory.  An array is mapped
 * once it has the size of a huge page, which its capacity tells: so a power of
 * two of them is what any array has.  O(pages) for a move. */

#define _GNU_SOURCE /* mremap() */

#include "huge_pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "../../detector/alloc.h"

void *
cm_huge_map(size_t bytes)
{
    char *memory = mmap(NULL, bytes + CM_HUGE_PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    size_t before = -(uintptr_t)memory & (CM_HUGE_PAGE - 1);
    if (before > 0) {
        munmap(memory, before);
    }
    munmap(memory + before + bytes, CM_HUGE_PAGE - before);
    (void)madvise(memory + before, bytes, MADV_HUGEPAGE);
    return memory + before;
}

void
cm_huge_unmap(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

static bool
is_mapped(size_t capacity, size_t item_bytes)
{
    return capacity >= CM_HUGE_PAGE / item_bytes;
}

/* False: nothing was moved. */
static bool
move(void *to, void *from, size_t capacity, size_t item_bytes)
{
    size_t bytes = capacity * item_bytes;
    if (is_mapped(capacity, item_bytes)) {
        return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to)
               != MAP_FAILED;
    }
    if (from != NULL) {
        memcpy(to, from, bytes);
        cm_free(from);
    }
    return true;
}

enum cm_status
cm_huge_grow(void **items, size_t *capacity, size_t needed, size_t item_bytes)
{
    size_t larger = CM_HUGE_PAGE / item_bytes;
    if (needed <= larger / 2 || needed <= *capacity) {
        return cm_grow(items, capacity, needed, item_bytes);
    }
    while (larger < needed) {
        larger *= 2;
    }
    void *memory = cm_huge_map(larger * item_bytes);
    if (memory == NULL) {
        return CM_NO_MEMORY;
    }
    if (!move(memory, *items, *capacity, item_bytes)) {
        cm_huge_unmap(memory, larger * item_bytes);
        return CM_NO_MEMORY;
    }
    *items = memory;
    *capacity = larger;
    return CM_OK;
}

void
cm_huge_free(void *items, size_t capacity, size_t item_bytes)
{
    if (is_mapped(capacity, item_bytes)) {
        cm_huge_unmap(items, capacity * item_bytes);
    }
    else {
        cm_free(items);
    }
}
