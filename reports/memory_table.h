/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_MEMORY_TABLE_H
#define CM_MEMORY_TABLE_H

/* Where the memory of the devices is: a block of at most six lines for each in
 * the summary, seven where torch's pools are spoken of. */

#include <stdbool.h>

#include "filenames.h"
#include "leak.h"
#include "line.h"

/* The block of every device that is known, or of those alone where memory ran
 * out. */
void cm_memory_table_add(const struct cm_leak *leak,
                         const struct cm_filenames *filenames,
                         bool only_failed, struct cm_line *line);

/* What C++ holds on devices of which nothing else is known. */
void cm_memory_table_add_alone(const struct cm_leak *leak,
                               const struct cm_filenames *filenames,
                               struct cm_line *line);
/* Of the device where memory ran out last: who holds it, and why it did. */
void cm_memory_table_add_reason(const struct cm_leak *leak,
                                struct cm_line *line);

#endif
