/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SIZE_H
#define CM_SIZE_H

/* Sizes as a person writes and reads them. */

#include <stdint.h>

#include "status.h"

#define CM_SIZE_TEXT_BYTES 48

/* "512 B", "1.5 KiB", "16 MiB": one decimal below 10, none from 10 on. */
void cm_size_format(uint64_t bytes, char result[CM_SIZE_TEXT_BYTES]);
/* The same without ".0": "1 MiB", for thresholds. */
void cm_size_format_short(uint64_t bytes, char result[CM_SIZE_TEXT_BYTES]);
/* "5.1 of 71.4 GiB": both in the larger one's unit, or "3.0 MiB of 71.4 GiB"
 * where the first would read as 0.0. */
void cm_size_format_of(uint64_t bytes, uint64_t total,
                       char result[CM_SIZE_TEXT_BYTES]);
/* "1048576", "256MiB", "1.5 GiB", "64K" (binary), "1MB" (decimal).
 * CM_BAD_INPUT for anything else, also for what is over 2^53. */
enum cm_status cm_size_parse(const char *text, uint64_t *result) CM_CHECKED;

#endif
