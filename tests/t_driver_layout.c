/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Built where a CUDA toolkit's headers are: what driver_layout.h says must be
 * what they say.  All is checked by the compiler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>
#include <cupti.h>

#include "../allocator_hooks/driver_layout.h"

#define SAME_FIELD(ours, our_field, theirs, their_field)                      \
    _Static_assert(offsetof(struct ours, our_field)                           \
                           == offsetof(theirs, their_field)                   \
                       && sizeof(((struct ours *)0)->our_field)               \
                              == sizeof(((theirs *)0)->their_field),          \
                   #ours "." #our_field)
#define SAME_SIZE(ours, theirs)                                               \
    _Static_assert(sizeof(struct ours) == sizeof(theirs), #ours)
#define SAME_NUMBER(ours, theirs)                                             \
    _Static_assert((int)(ours) == (int)(theirs), #ours)

SAME_NUMBER(CM_CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME_NUMBER(CM_CUPTI_MULTIPLE_SUBSCRIBERS,
            CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME_NUMBER(CM_CUPTI_DRIVER_API, CUPTI_CB_DOMAIN_DRIVER_API);
SAME_NUMBER(CM_CUPTI_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
SAME_NUMBER(CM_CUPTI_STATE, CUPTI_CB_DOMAIN_STATE);
SAME_NUMBER(CM_CUPTI_CONTEXT_DESTROY_STARTING,
            CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
SAME_NUMBER(CM_CUPTI_FATAL_ERROR, CUPTI_CBID_STATE_FATAL_ERROR);
SAME_NUMBER(CM_CUPTI_ENTER, CUPTI_API_ENTER);
SAME_NUMBER(CM_CUPTI_EXIT, CUPTI_API_EXIT);
SAME_NUMBER(CM_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_NUMBER(CM_ARRAY_SPARSE, CUDA_ARRAY3D_SPARSE);
SAME_NUMBER(CM_ARRAY_DEFERRED, CUDA_ARRAY3D_DEFERRED_MAPPING);
SAME_NUMBER(CM_ARRAY_LAYERED, CUDA_ARRAY3D_LAYERED);
_Static_assert(sizeof(CUresult) == sizeof(int), "result of a call");
_Static_assert(sizeof(CUptiResult) == sizeof(int), "result of CUPTI");
_Static_assert(sizeof(CUpti_CallbackDomain) == sizeof(int), "domain");

SAME_SIZE(cm_cupti_call, CUpti_CallbackData);
SAME_FIELD(cm_cupti_call, site, CUpti_CallbackData, callbackSite);
SAME_FIELD(cm_cupti_call, function_name, CUpti_CallbackData, functionName);
SAME_FIELD(cm_cupti_call, params, CUpti_CallbackData, functionParams);
SAME_FIELD(cm_cupti_call, result, CUpti_CallbackData, functionReturnValue);
SAME_FIELD(cm_cupti_call, context, CUpti_CallbackData, context);
SAME_FIELD(cm_cupti_call, correlation_data, CUpti_CallbackData,
           correlationData);
SAME_FIELD(cm_cupti_call, correlation_id, CUpti_CallbackData, correlationId);
SAME_SIZE(cm_cupti_resource, CUpti_ResourceData);
#if CUPTI_API_VERSION >= 130300
SAME_SIZE(cm_cupti_subscriber, CUpti_SubscriberParams);
SAME_FIELD(cm_cupti_subscriber, name, CUpti_SubscriberParams, subscriberName);
SAME_FIELD(cm_cupti_subscriber, other_name, CUpti_SubscriberParams,
           oldSubscriberName);
SAME_FIELD(cm_cupti_subscriber, other_name_bytes, CUpti_SubscriberParams,
           oldSubscriberSize);
SAME_FIELD(cm_cupti_subscriber, allows_others, CUpti_SubscriberParams,
           allowMultipleSubscribers);
_Static_assert(offsetof(struct cm_cupti_subscriber, padding) + 7
                   == CUpti_SubscriberParams_STRUCT_SIZE,
               "what is told of its size");
#endif
SAME_FIELD(cm_cupti_resource, context, CUpti_ResourceData, context);

SAME_SIZE(cm_mem_alloc, cuMemAlloc_v2_params);
SAME_FIELD(cm_mem_alloc, address, cuMemAlloc_v2_params, dptr);
SAME_FIELD(cm_mem_alloc, bytes, cuMemAlloc_v2_params, bytesize);
SAME_FIELD(cm_mem_alloc, address, cuMemAllocManaged_params, dptr);
SAME_FIELD(cm_mem_alloc, bytes, cuMemAllocManaged_params, bytesize);
SAME_SIZE(cm_mem_alloc_pitch, cuMemAllocPitch_v2_params);
SAME_FIELD(cm_mem_alloc_pitch, address, cuMemAllocPitch_v2_params, dptr);
SAME_FIELD(cm_mem_alloc_pitch, pitch, cuMemAllocPitch_v2_params, pPitch);
SAME_FIELD(cm_mem_alloc_pitch, height, cuMemAllocPitch_v2_params, Height);
SAME_SIZE(cm_mem_alloc_async, cuMemAllocAsync_params);
SAME_SIZE(cm_mem_alloc_async, cuMemAllocAsync_ptsz_params);
SAME_FIELD(cm_mem_alloc_async, address, cuMemAllocAsync_params, dptr);
SAME_FIELD(cm_mem_alloc_async, bytes, cuMemAllocAsync_params, bytesize);
SAME_FIELD(cm_mem_alloc_async, stream, cuMemAllocAsync_params, hStream);
SAME_FIELD(cm_mem_alloc_async, stream, cuMemAllocAsync_ptsz_params, hStream);
SAME_SIZE(cm_mem_alloc_from_pool, cuMemAllocFromPoolAsync_params);
SAME_SIZE(cm_mem_alloc_from_pool, cuMemAllocFromPoolAsync_ptsz_params);
SAME_FIELD(cm_mem_alloc_from_pool, address, cuMemAllocFromPoolAsync_params,
           dptr);
SAME_FIELD(cm_mem_alloc_from_pool, bytes, cuMemAllocFromPoolAsync_params,
           bytesize);
SAME_FIELD(cm_mem_alloc_from_pool, stream, cuMemAllocFromPoolAsync_params,
           hStream);
SAME_SIZE(cm_mem_free, cuMemFree_v2_params);
SAME_FIELD(cm_mem_free, address, cuMemFree_v2_params, dptr);
SAME_FIELD(cm_mem_free, address, cuMemFreeAsync_params, dptr);
SAME_FIELD(cm_mem_free, address, cuMemFreeAsync_ptsz_params, dptr);

SAME_FIELD(cm_mem_properties, type, CUmemAllocationProp, type);
SAME_FIELD(cm_mem_properties, location, CUmemAllocationProp, location.type);
SAME_FIELD(cm_mem_properties, location_id, CUmemAllocationProp, location.id);
SAME_SIZE(cm_mem_create, cuMemCreate_params);
SAME_FIELD(cm_mem_create, handle, cuMemCreate_params, handle);
SAME_FIELD(cm_mem_create, bytes, cuMemCreate_params, size);
SAME_FIELD(cm_mem_create, properties, cuMemCreate_params, prop);
SAME_SIZE(cm_mem_release, cuMemRelease_params);
SAME_FIELD(cm_mem_release, handle, cuMemRelease_params, handle);
SAME_SIZE(cm_mem_retain, cuMemRetainAllocationHandle_params);
SAME_FIELD(cm_mem_retain, handle, cuMemRetainAllocationHandle_params, handle);
SAME_SIZE(cm_mem_map, cuMemMap_params);
SAME_FIELD(cm_mem_map, address, cuMemMap_params, ptr);
SAME_FIELD(cm_mem_map, bytes, cuMemMap_params, size);
SAME_FIELD(cm_mem_map, handle, cuMemMap_params, handle);
SAME_SIZE(cm_mem_unmap, cuMemUnmap_params);
SAME_FIELD(cm_mem_unmap, address, cuMemUnmap_params, ptr);
SAME_FIELD(cm_mem_unmap, bytes, cuMemUnmap_params, size);

SAME_SIZE(cm_array_descriptor, CUDA_ARRAY_DESCRIPTOR);
SAME_FIELD(cm_array_descriptor, width, CUDA_ARRAY_DESCRIPTOR, Width);
SAME_FIELD(cm_array_descriptor, height, CUDA_ARRAY_DESCRIPTOR, Height);
SAME_FIELD(cm_array_descriptor, format, CUDA_ARRAY_DESCRIPTOR, Format);
SAME_FIELD(cm_array_descriptor, channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
SAME_SIZE(cm_array3d_descriptor, CUDA_ARRAY3D_DESCRIPTOR);
SAME_FIELD(cm_array3d_descriptor, width, CUDA_ARRAY3D_DESCRIPTOR, Width);
SAME_FIELD(cm_array3d_descriptor, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
SAME_FIELD(cm_array3d_descriptor, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
SAME_FIELD(cm_array3d_descriptor, channels, CUDA_ARRAY3D_DESCRIPTOR,
           NumChannels);
SAME_FIELD(cm_array3d_descriptor, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_SIZE(cm_array_create, cuArrayCreate_v2_params);
SAME_FIELD(cm_array_create, descriptor, cuArrayCreate_v2_params,
           pAllocateArray);
SAME_SIZE(cm_array3d_create, cuArray3DCreate_v2_params);
SAME_FIELD(cm_array3d_create, descriptor, cuArray3DCreate_v2_params,
           pAllocateArray);
SAME_SIZE(cm_mipmapped_create, cuMipmappedArrayCreate_params);
SAME_FIELD(cm_mipmapped_create, levels, cuMipmappedArrayCreate_params,
           numMipmapLevels);
SAME_SIZE(cm_array_destroy, cuArrayDestroy_params);
SAME_SIZE(cm_array_destroy, cuMipmappedArrayDestroy_params);
SAME_SIZE(cm_ctx_destroy, cuCtxDestroy_v2_params);
SAME_SIZE(cm_primary_ctx_reset, cuDevicePrimaryCtxReset_v2_params);

static void
is_as_the_toolkit_says(void **state)
{
    (void)state;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_as_the_toolkit_says),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
