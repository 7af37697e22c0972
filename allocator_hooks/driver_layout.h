/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DRIVER_LAYOUT_H
#define CM_DRIVER_LAYOUT_H

/* The few numbers and structs of CUPTI's callback interface and of the
 * driver's memory calls that are needed, written down anew, so that cumem
 * builds and ships without CUDA.  They are part of a binary interface that
 * does not change: a call whose arguments change gets a new name (_v2).
 * tests/t_driver_layout.c compares them with a toolkit's headers where there
 * are some. */

#include <stddef.h>
#include <stdint.h>

enum { CM_CUPTI_SUCCESS = 0, CM_CUPTI_MULTIPLE_SUBSCRIBERS = 39 };

enum cm_cupti_domain {
    CM_CUPTI_DRIVER_API = 1,
    CM_CUPTI_RESOURCE = 3,
    CM_CUPTI_STATE = 6
};

enum { CM_CUPTI_CONTEXT_DESTROY_STARTING = 2 }; /* of the resource domain */
enum { CM_CUPTI_FATAL_ERROR = 1 };              /* of the state domain */
enum { CM_CUPTI_ENTER = 0, CM_CUPTI_EXIT = 1 };

/* What a driver call's callback is given. */
struct cm_cupti_call {
    int site; /* CM_CUPTI_ENTER or CM_CUPTI_EXIT */
    const char *function_name;
    const void *params; /* one of the structs below */
    void *result;       /* of the call, an int; at exit */
    const char *symbol_name;
    void *context; /* NULL: none is current */
    uint32_t context_uid;
    uint64_t *correlation_data;
    uint32_t correlation_id;
};

struct cm_cupti_resource {
    void *context;
    void *resource; /* a union of handles */
    void *descriptor;
};

/* From this version on several tools may subscribe, if all of them do so by
 * cuptiSubscribe_v2() and the first allows it. */
enum { CM_CUPTI_SHARED_SINCE = 130300 };

struct cm_cupti_subscriber { /* CUpti_SubscriberParams */
    size_t struct_bytes;     /* up to and with allows_others */
    const char *name;
    char *other_name; /* NULL: not asked for */
    size_t other_name_bytes;
    uint8_t allows_others;
    uint8_t padding[7];
};

typedef void cm_cupti_callback(void *user_data, int domain, uint32_t id,
                               const void *data);

/* -- the arguments of the driver's calls -- */

struct cm_mem_alloc { /* cuMemAlloc_v2, and how cuMemAllocManaged begins */
    uint64_t *address;
    size_t bytes;
};

struct cm_mem_alloc_pitch {
    uint64_t *address;
    size_t *pitch;
    size_t width_bytes, height;
    unsigned element_bytes;
};

struct cm_mem_alloc_async {
    uint64_t *address;
    size_t bytes;
    void *stream;
};

struct cm_mem_alloc_from_pool {
    uint64_t *address;
    size_t bytes;
    void *pool, *stream;
};

struct cm_mem_free { /* cuMemFree_v2, and how cuMemFreeAsync begins */
    uint64_t address;
};

enum { CM_LOCATION_DEVICE = 1 };

struct cm_mem_properties { /* the beginning of CUmemAllocationProp */
    int type, handle_types;
    int location, location_id;
};

struct cm_mem_create {
    uint64_t *handle;
    size_t bytes;
    const struct cm_mem_properties *properties;
    unsigned long long flags;
};

struct cm_mem_release {
    uint64_t handle;
};

struct cm_mem_retain {
    uint64_t *handle;
    void *address;
};

struct cm_mem_map {
    uint64_t address;
    size_t bytes, offset;
    uint64_t handle;
    unsigned long long flags;
};

struct cm_mem_unmap {
    uint64_t address;
    size_t bytes;
};

struct cm_array_descriptor {
    size_t width, height;
    int format;
    unsigned channels;
};

struct cm_array3d_descriptor {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};

enum { CM_ARRAY_SPARSE = 0x40, CM_ARRAY_DEFERRED = 0x80 };
enum { CM_ARRAY_LAYERED = 0x01 };

struct cm_array_create {
    void **array;
    const struct cm_array_descriptor *descriptor;
};

struct cm_array3d_create {
    void **array;
    const struct cm_array3d_descriptor *descriptor;
};

struct cm_mipmapped_create {
    void **array;
    const struct cm_array3d_descriptor *descriptor;
    unsigned levels;
};

struct cm_array_destroy { /* cuMipmappedArrayDestroy too */
    void *array;
};

struct cm_ctx_destroy {
    void *context;
};

struct cm_primary_ctx_reset {
    int device;
};

#endif
