/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_MEMORY_WHY_H
#define CM_MEMORY_WHY_H

/* Why an allocation failed, in words, for the summary and the page; and the
 * arithmetic of numbers that may be unknown or wrong. */

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "leak.h"

/* Whether the document says more of the device than its totals. */
bool cm_memory_is_known(const struct cm_leak_device *device);

/* What an allocation that failed has met, or what is wrong all the same, and
 * the way out; without a full stop.  Nothing when there is nothing to say.
 * Returns which of the reasons it is, whatever its numbers; 0: none failed. */
int cm_memory_why(const struct cm_leak *leak,
                  const struct cm_leak_device *device, struct cm_buffer *why,
                  struct cm_buffer *fix);

/* Whether the free bytes of a pool lie in pieces, so that it matters. */
bool cm_memory_is_fragmented(const struct cm_leak_pool *pool);
/* "214 segments, 87 % used, 58.0 of 61.2 GiB requested": what is known. */
void cm_memory_add_pool(const struct cm_leak_pool *pool,
                        struct cm_buffer *out);

/* "9.1 GiB" between two texts. */
void cm_memory_add_size(struct cm_buffer *out, const char *before,
                        uint64_t bytes, const char *after);

/* Of what a framework has reserved, what is free for it to use: torch counts
 * apart what is freed and what another stream still uses. */
uint64_t cm_memory_cached(const struct cm_leak *leak,
                          const struct cm_leak_device *device,
                          const struct cm_leak_framework *framework);
/* The same of all of them. */
uint64_t cm_memory_all_cached(const struct cm_leak_device *device);
/* Whose the pools are, and what is pending. */
bool cm_memory_is_torch(const struct cm_leak *leak,
                        const struct cm_leak_framework *framework);

static inline bool
cm_memory_has(uint64_t number)
{
    return number != CM_LEAK_UNKNOWN;
}

/* 0 for what is not known. */
static inline uint64_t
cm_memory_plain(uint64_t number)
{
    return cm_memory_has(number) ? number : 0;
}

static inline uint64_t
cm_memory_beyond(uint64_t whole, uint64_t part)
{
    return whole > part ? whole - part : 0;
}

static inline uint64_t
cm_memory_sum(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - 1 - a ? UINT64_MAX - 1 : a + b;
}

#endif
