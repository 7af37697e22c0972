/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ORIGINS_H
#define CM_ORIGINS_H

/* Where a driver allocation comes from: a stack and a native library.  A block
 * (detector/blocks.h) has room for one number, so each different pair has one;
 * it stands in the block's place for a site.
 *
 * Adding is guarded by one leaf mutex inside; reading a number that was handed
 * over needs no lock.  Number 0 is "not known". */

#include <stdint.h>

#include "../detector/records.h"

struct cm_origin {
    struct cm_site_id site;
    uint16_t library; /* for cm_caller_name() */
};

struct cm_origins;

struct cm_origins *cm_origins_new(uint32_t most) CM_CHECKED;
void cm_origins_free(struct cm_origins *self);

/* 0 when nothing is known of it, or there is no room. */
uint32_t cm_origins_number(struct cm_origins *self, struct cm_origin origin);
/* All zero for 0 and for a number that was never given. */
struct cm_origin cm_origins_get(const struct cm_origins *self,
                                uint32_t number);

#endif
