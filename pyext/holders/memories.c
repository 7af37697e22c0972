/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "memories.h"

#include <stdlib.h>

#include "../../detector/alloc.h"
#include "../../detector/number.h"

struct memory {
    uint64_t key, bytes;
};

static int
by_key(const void *left, const void *right)
{
    uint64_t a = ((const struct memory *)left)->key;
    uint64_t b = ((const struct memory *)right)->key;
    return (a > b) - (a < b);
}

static uint32_t
read_all(const struct cm_holders_query *query, uint32_t group,
         struct memory *memories)
{
    uint32_t count = 0;
    for (uint32_t t = 0; t < query->target_count; t++) {
        struct cm_device_memory memory;
        if (query->groups[t] == group
            && cm_devices_read(query->devices, query->targets[t], &memory)) {
            memories[count++] =
                (struct memory){memory.storage_key, memory.bytes};
        }
    }
    return count;
}

static uint64_t
sum(const struct memory *memories, uint32_t count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || memories[i].key != memories[i - 1].key) {
            bytes = cm_number_sum(bytes, memories[i].bytes);
        }
    }
    return bytes;
}

uint64_t
cm_memories_bytes(const struct cm_holders_query *query, uint32_t group)
{
    struct memory *memories =
        query->devices != NULL
            ? cm_calloc((size_t)query->target_count + 1, sizeof(*memories))
            : NULL;
    if (memories == NULL) {
        return 0;
    }
    uint32_t count = read_all(query, group, memories);
    qsort(memories, count, sizeof(*memories), by_key);
    uint64_t bytes = sum(memories, count);
    cm_free(memories);
    return bytes;
}
