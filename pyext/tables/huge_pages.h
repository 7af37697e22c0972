/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HUGE_PAGES_H
#define CM_HUGE_PAGES_H

/* Memory of many megabytes for the time of one look, in huge pages where the
 * system has them: with a fault for each 4 KiB and a copy for each doubling, a
 * walk of a million objects spent a quarter of its time on its own arrays. */

#include <stddef.h>

#include "../../detector/status.h"

enum { CM_HUGE_PAGE = 2 << 20 };

/* Zeroed, aligned to a huge page; `bytes` is a multiple of one.  NULL: there
 * is no memory. */
void *cm_huge_map(size_t bytes) CM_CHECKED;
void cm_huge_unmap(void *memory, size_t bytes);

/* As cm_grow(), for an array of items of 4 or 8 bytes: small ones come from
 * the heap, in large ones pages are moved where cm_grow() copies. */
enum cm_status cm_huge_grow(void **items, size_t *capacity, size_t needed,
                            size_t item_bytes) CM_CHECKED;
/* Accepts NULL. */
void cm_huge_free(void *items, size_t capacity, size_t item_bytes);

#endif
