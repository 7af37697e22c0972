/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ALLOC_H
#define CM_ALLOC_H

/* The only door to the heap: every allocation of ours goes through here, so
 * that a test can make each one fail in turn.  Never Python's allocators: the
 * callers run inside a collection, on threads without the GIL, and after fork.
 *
 * After including this header raw malloc, calloc, realloc and strdup are
 * compile errors; include system headers before it. */

#include <stdbool.h>
#include <stddef.h>

#include "status.h"

void *cm_alloc(size_t bytes) CM_CHECKED;
void *cm_calloc(size_t count, size_t item_bytes) CM_CHECKED;
void *cm_realloc(void *old, size_t bytes) CM_CHECKED;
/* Accepts NULL. */
void cm_free(void *pointer);
/* Returns new; NULL on failure.  A NULL text gives NULL. */
char *cm_strdup(const char *text) CM_CHECKED;

/* Makes room for at least `needed` items in an array that grows by doubling.
 * After CM_NO_MEMORY the array is as it was. */
enum cm_status cm_grow(void **items, size_t *capacity, size_t needed,
                       size_t item_bytes) CM_CHECKED;

/* The same; what is new is zero. */
enum cm_status cm_grow_zeroed(void **items, size_t *capacity, size_t needed,
                              size_t item_bytes) CM_CHECKED;

/* For tests: the allocation number `nth` (from 0) fails, and if `from_then_on`
 * so do all after it.  A negative number switches failing off. */
void cm_alloc_fail_at(long nth, bool from_then_on);
/* For tests: blocks allocated and not freed. */
long cm_alloc_live(void);

#ifndef CM_ALLOC_IMPLEMENTATION
#pragma GCC poison malloc calloc realloc strdup
#endif

#endif
