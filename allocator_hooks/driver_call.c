/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* One table of entry points, one short reader for each shape of arguments.
 * The runtime's calls all end in these, also those of a libcudart that was
 * linked in statically.  CUPTI numbers the entry points anew with each major
 * version, so they are found by name. */

#include "driver_call.h"

#include <string.h>

#include "../detector/event.h"
#include "driver_layout.h"

/* Outputs of the driver are the caller's pointers: they may be NULL. */
static bool
set_linear(struct cm_driver_call *result, const uint64_t *address,
           uint64_t bytes)
{
    if (address == NULL || *address == 0 || bytes == 0) {
        return false;
    }
    result->key = *address;
    result->bytes = bytes;
    return true;
}

static bool
read_alloc(const void *params, struct cm_driver_call *result)
{
    const struct cm_mem_alloc *call = params;
    return set_linear(result, call->address, call->bytes);
}

static bool
read_pitch(const void *params, struct cm_driver_call *result)
{
    const struct cm_mem_alloc_pitch *call = params;
    uint64_t bytes;
    if (call->pitch == NULL
        || __builtin_mul_overflow(*call->pitch, call->height, &bytes)) {
        return false;
    }
    return set_linear(result, call->address, bytes);
}

static bool
read_async(const void *params, struct cm_driver_call *result)
{
    const struct cm_mem_alloc_async *call = params;
    result->stream = (uintptr_t)call->stream;
    return set_linear(result, call->address, call->bytes);
}

static bool
read_from_pool(const void *params, struct cm_driver_call *result)
{
    const struct cm_mem_alloc_from_pool *call = params;
    result->stream = (uintptr_t)call->stream;
    return set_linear(result, call->address, call->bytes);
}

static bool
read_free(const void *params, struct cm_driver_call *result)
{
    const struct cm_mem_free *call = params;
    result->key = call->address;
    return call->address != 0;
}

/* -- memory with a handle -- */

static bool
read_create(const void *params, struct cm_driver_call *result)
{
    const struct cm_mem_create *call = params;
    if (call->handle == NULL || call->properties == NULL
        || call->properties->location != CM_LOCATION_DEVICE) {
        return false;
    }
    result->key = *call->handle | CM_KEY_HANDLE;
    result->bytes = call->bytes;
    result->device = call->properties->location_id;
    return call->bytes != 0;
}

static bool
read_release(const void *params, struct cm_driver_call *result)
{
    const struct cm_mem_release *call = params;
    result->key = call->handle | CM_KEY_HANDLE;
    return true;
}

static bool
read_retain(const void *params, struct cm_driver_call *result)
{
    const struct cm_mem_retain *call = params;
    if (call->handle == NULL) {
        return false;
    }
    result->key = *call->handle | CM_KEY_HANDLE;
    return true;
}

static bool
read_map(const void *params, struct cm_driver_call *result)
{
    const struct cm_mem_map *call = params;
    result->key = call->handle | CM_KEY_HANDLE;
    result->address = call->address;
    result->bytes = call->bytes;
    return call->bytes != 0;
}

static bool
read_unmap(const void *params, struct cm_driver_call *result)
{
    const struct cm_mem_unmap *call = params;
    result->address = call->address;
    result->bytes = call->bytes;
    return call->bytes != 0;
}

/* -- arrays -- */

/* Bytes of one channel; 0: not one of the plain formats. */
static unsigned
channel_bytes(int format)
{
    switch (format) {
    case 0x01: /* unsigned, signed, normalised */
    case 0x08:
    case 0xc0:
    case 0xc1:
    case 0xc2:
    case 0xc6:
    case 0xc7:
    case 0xc8: return 1;
    case 0x02:
    case 0x09:
    case 0x10: /* half */
    case 0xc3:
    case 0xc4:
    case 0xc5:
    case 0xc9:
    case 0xca:
    case 0xcb: return 2;
    case 0x03:
    case 0x0a:
    case 0x20: return 4; /* float */
    default: return 0;
    }
}

uint64_t
cm_driver_array_bytes(uint64_t width, uint64_t height, uint64_t depth,
                      int format, unsigned channels, unsigned flags)
{
    uint64_t bytes = (uint64_t)channel_bytes(format) * channels;
    if ((flags & (CM_ARRAY_SPARSE | CM_ARRAY_DEFERRED)) != 0
        || __builtin_mul_overflow(bytes, width, &bytes)
        || __builtin_mul_overflow(bytes, height > 0 ? height : 1, &bytes)
        || __builtin_mul_overflow(bytes, depth > 0 ? depth : 1, &bytes)) {
        return 0;
    }
    return bytes;
}

static bool
set_array(struct cm_driver_call *result, void *const *array, uint64_t bytes)
{
    if (array == NULL || *array == NULL || bytes == 0) {
        return false;
    }
    result->key = (uintptr_t)*array | CM_KEY_ARRAY;
    result->bytes = bytes;
    return true;
}

static bool
read_array(const void *params, struct cm_driver_call *result)
{
    const struct cm_array_create *call = params;
    const struct cm_array_descriptor *array = call->descriptor;
    return array != NULL
           && set_array(result, call->array,
                        cm_driver_array_bytes(array->width, array->height, 0,
                                              array->format, array->channels,
                                              0));
}

static bool
read_array3d(const void *params, struct cm_driver_call *result)
{
    const struct cm_array3d_create *call = params;
    const struct cm_array3d_descriptor *array = call->descriptor;
    return array != NULL
           && set_array(result, call->array,
                        cm_driver_array_bytes(array->width, array->height,
                                              array->depth, array->format,
                                              array->channels, array->flags));
}

/* All levels: each has half the width, height and, unless it counts layers,
 * depth. */
static bool
read_mipmapped(const void *params, struct cm_driver_call *result)
{
    const struct cm_mipmapped_create *call = params;
    uint64_t sum = 0;
    if (call->descriptor == NULL) {
        return false;
    }
    struct cm_array3d_descriptor level = *call->descriptor;
    for (unsigned at = 0; at < call->levels && at < 64; at++) {
        uint64_t bytes =
            cm_driver_array_bytes(level.width, level.height, level.depth,
                                  level.format, level.channels, level.flags);
        if (__builtin_add_overflow(sum, bytes, &sum)) {
            return false;
        }
        level.width = level.width > 1 ? level.width / 2 : 1;
        level.height /= 2;
        if ((level.flags & CM_ARRAY_LAYERED) == 0) {
            level.depth /= 2;
        }
    }
    return set_array(result, call->array, sum);
}

static bool
read_array_destroy(const void *params, struct cm_driver_call *result)
{
    const struct cm_array_destroy *call = params;
    result->key = (uintptr_t)call->array | CM_KEY_ARRAY;
    return call->array != NULL;
}

/* -- contexts -- */

static bool
read_context(const void *params, struct cm_driver_call *result)
{
    const struct cm_ctx_destroy *call = params;
    result->context = (uintptr_t)call->context;
    return call->context != NULL;
}

static bool
read_device(const void *params, struct cm_driver_call *result)
{
    const struct cm_primary_ctx_reset *call = params;
    result->device = call->device;
    return call->device >= 0;
}

static const struct cm_driver_entry entries[] = {
    {"cuMemAlloc_v2", CM_DRIVER_ALLOCATE, true, read_alloc},
    {"cuMemAllocManaged", CM_DRIVER_ALLOCATE, true, read_alloc},
    {"cuMemAllocPitch_v2", CM_DRIVER_ALLOCATE, true, read_pitch},
    {"cuMemAllocAsync", CM_DRIVER_ALLOCATE, true, read_async},
    {"cuMemAllocAsync_ptsz", CM_DRIVER_ALLOCATE, true, read_async},
    {"cuMemAllocFromPoolAsync", CM_DRIVER_ALLOCATE, true, read_from_pool},
    {"cuMemAllocFromPoolAsync_ptsz", CM_DRIVER_ALLOCATE, true, read_from_pool},
    {"cuMemFree_v2", CM_DRIVER_FREE, false, read_free},
    {"cuMemFreeAsync", CM_DRIVER_FREE, false, read_free},
    {"cuMemFreeAsync_ptsz", CM_DRIVER_FREE, false, read_free},
    {"cuMemCreate", CM_DRIVER_ALLOCATE, true, read_create},
    {"cuMemRetainAllocationHandle", CM_DRIVER_RETAIN, true, read_retain},
    {"cuMemRelease", CM_DRIVER_RELEASE, false, read_release},
    {"cuMemMap", CM_DRIVER_MAP, true, read_map},
    {"cuMemUnmap", CM_DRIVER_UNMAP, false, read_unmap},
    {"cuArrayCreate_v2", CM_DRIVER_ALLOCATE, true, read_array},
    {"cuArray3DCreate_v2", CM_DRIVER_ALLOCATE, true, read_array3d},
    {"cuArrayDestroy", CM_DRIVER_FREE, false, read_array_destroy},
    {"cuMipmappedArrayCreate", CM_DRIVER_ALLOCATE, true, read_mipmapped},
    {"cuMipmappedArrayDestroy", CM_DRIVER_FREE, false, read_array_destroy},
    {"cuCtxDestroy_v2", CM_DRIVER_CONTEXT_GONE, false, read_context},
    {"cuDevicePrimaryCtxReset_v2", CM_DRIVER_DEVICE_GONE, false, read_device},
};

const struct cm_driver_entry *
cm_driver_entry_named(const char *name)
{
    for (size_t at = 0; at < sizeof(entries) / sizeof(entries[0]); at++) {
        if (strcmp(entries[at].name, name) == 0) {
            return &entries[at];
        }
    }
    return NULL;
}
