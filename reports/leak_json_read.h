/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LEAK_JSON_READ_H
#define CM_LEAK_JSON_READ_H

/* What the readers of leak.json's sections share.  Not for others. */

#include "json.h"
#include "leak.h"

struct cm_leak_reader {
    struct cm_json json;
    struct cm_leak *leak;
    struct cm_json_ids sites, vertices, edges, storages;
};

/* [new] The frames under `key`; NULL for none. */
struct cm_leak_frame *cm_leak_read_frames(struct cm_leak_reader *self,
                                          const struct cJSON *object,
                                          const char *key, size_t *count);
/* {"package","link"} or null. */
void cm_leak_read_library(struct cm_leak_reader *self,
                          const struct cJSON *item, struct cm_text_id *package,
                          struct cm_text_id *link);
/* [new] The objects of an array within an item. */
void *cm_leak_read_parts(struct cm_leak_reader *self,
                         const struct cJSON *object, const char *key,
                         size_t part_bytes, size_t *count,
                         void (*read_part)(struct cm_leak_reader *,
                                           const struct cJSON *, void *));
/* [new] Room for the items of one of the document's arrays. */
void *cm_leak_make_items(struct cm_leak_reader *self, const char *key,
                         size_t item_bytes, size_t *count);
/* Reads each item of such an array. */
void cm_leak_read_each(struct cm_leak_reader *self, const char *key,
                       void (*read_item)(struct cm_leak_reader *,
                                         const struct cJSON *, size_t));

#endif
