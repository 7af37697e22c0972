/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SHAPE_H
#define CM_SHAPE_H

/* The contents of an array as frameworks tell a person of them. */

#include <stdint.h>

/* Bytes of "[64, 512] float32"; 0 where there are none, or it is not known how
 * many. */
uint64_t cm_shape_bytes(const char *text);

#endif
