/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PAYLOAD_H
#define CM_PAYLOAD_H

/* Which storages hang off which cyclic components, each counted once.
 *
 * A storage is carried by the nearest cyclic component that dominates it; if
 * none does, because several reach it on ways of their own, by the one of
 * them that comes first in the heap.  The others only share it.
 *
 * Invariant: the carrier of a storage is cyclic and reaches it, or is 0. */

#include <stdbool.h>
#include <stdint.h>

#include "component.h"
#include "../detector/records.h"

struct cm_payloads {
    uint64_t *origin;  /* owned; [storages + 1] who allocated it */
    uint32_t *carrier; /* owned; [storages + 1] component, 0: none */
    uint32_t *largest; /* owned; [components + 1] storage within its reach */
    bool *survived;    /* owned; [components + 1] it, or a device object within
                        * its reach, was brought back to life */
    uint32_t *first;   /* owned; [components + 3] where in `carried` */
    uint32_t *carried; /* owned; [storages + 1] storages by carrier */
};

/* Cost: O((nodes + edges) log nodes), for the dominators.  On failure `result`
 * is empty. */
enum cm_status cm_payloads_find(const struct cm_heap *heap,
                                const struct cm_records *records,
                                const struct cm_components *components,
                                struct cm_payloads *result) CM_CHECKED;
/* A zeroed value is valid and empty. */
void cm_payloads_release(struct cm_payloads *self);

/* Whether a storage that the component carries goes when it goes. */
bool cm_payloads_frees(const struct cm_payloads *self,
                       const struct cm_heap *heap, uint32_t component,
                       uint32_t storage);

/* Bytes that go when the component goes; 0 when it survived. */
uint64_t cm_payloads_bytes(const struct cm_payloads *self,
                           const struct cm_heap *heap, uint32_t component);

static inline const uint32_t *
cm_payloads_carried(const struct cm_payloads *self, uint32_t component)
{
    return self->carried + self->first[component];
}

static inline uint32_t
cm_payloads_count(const struct cm_payloads *self, uint32_t component)
{
    return self->first[component + 1] - self->first[component];
}

#endif
