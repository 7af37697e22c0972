/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_GROWTH_JSON_H
#define CM_GROWTH_JSON_H

/* The sections "growth", "timeline", "collector" and "looks" of leak.json.
 * For leak_json_read.c and leak_json_write.c only. */

#include <stddef.h>

#include "json_write.h"
#include "leak_json_read.h"

/* "growth", and "timeline" where there is one. */
void cm_growth_write(struct cm_json_writer *self);
/* One item of "growth".  Before: its room was made, the sites are read. */
void cm_growth_read(struct cm_leak_reader *self, const struct cJSON *item,
                    size_t position);
void cm_timeline_read(struct cm_leak_reader *self);

/* The sum of all collections; absent where none was seen. */
void cm_collector_write(struct cm_json_writer *self);
/* Where it is absent, of those that are listed.  Before: they are read. */
void cm_collector_read(struct cm_leak_reader *self);

/* What cumem did unasked; absent where that was nothing. */
void cm_looks_write(struct cm_json_writer *self);
void cm_looks_read(struct cm_leak_reader *self);

#endif
