/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* torch knows a stream by an id of its own, 0 the default, which its allocator
 * has just asked for itself: that function is in the cache.  The one that says
 * the handle behind an id sets and restores the device on its way (27 ns in a
 * row, far more in a training loop); so each id asks it once.
 *
 * Facts: c10/cuda/CUDAStream.h (a CUDAStream is a c10::Stream: device, then
 * id), torch/csrc/inductor/aoti_torch/c/shim.h. */

#include "torch_stream.h"

#include <stdatomic.h>
#include <stddef.h>

#include "../detector/event.h"
#include "../detector/hot.h"
#include "slot.h"

enum { MOST_IDS = 64 };

/* c10::Stream, given back by value. */
struct torch_stream {
    int8_t device_type, device;
    int64_t id;
};

typedef struct torch_stream id_function(int8_t device);
typedef int32_t handle_function(int32_t device, void **stream);

static struct {
    _Atomic(id_function *) current;
    _Atomic(handle_function *) handle;
    struct {
        _Atomic uint64_t id;     /* with its device; 0: free */
        _Atomic uint64_t handle; /* 0: not asked yet */
    } known[MOST_IDS];
} torch CM_EVENT_DATA;

void
cm_torch_stream_find(void)
{
    char path[CM_SLOT_PATH];
    if (cm_slot_library("libtorch_cuda.so", path)) {
        void *found =
            cm_slot_original(path, "aoti_torch_get_current_cuda_stream");
        atomic_store(&torch.handle, (handle_function *)found);
    }
    if (cm_slot_library("libc10_cuda.so", path)) {
        void *found =
            cm_slot_original(path, "_ZN3c104cuda20getCurrentCUDAStreamEa");
        atomic_store(&torch.current, (id_function *)found);
    }
}

static uint64_t
ask_handle(int device)
{
    handle_function *ask =
        atomic_load_explicit(&torch.handle, memory_order_relaxed);
    void *stream;
    return ask != NULL && ask(device, &stream) == 0
               ? (uint64_t)(uintptr_t)stream
               : CM_STREAM_UNKNOWN;
}

/* Before: it is this thread's current one. */
CM_EVENT_PATH static uint64_t
handle_of(uint64_t id, int device)
{
    uint64_t wanted = id << 6 | (uint64_t)device;
    size_t at = (size_t)(wanted * UINT64_C(0x9E3779B97F4A7C15) >> 58);
    uint64_t there = 0;
    if (!atomic_compare_exchange_strong(&torch.known[at].id, &there, wanted)
        && there != wanted) {
        return ask_handle(device); /* another one has the place */
    }
    uint64_t handle = atomic_load(&torch.known[at].handle);
    if (handle == 0) {
        handle = ask_handle(device);
        atomic_store(&torch.known[at].handle, handle);
    }
    return handle;
}

CM_EVENT_PATH uint64_t
cm_torch_stream_now(int device)
{
    id_function *current =
        atomic_load_explicit(&torch.current, memory_order_relaxed);
    if (current == NULL || device >= CM_MAX_DEVICES) {
        return ask_handle(device);
    }
    uint64_t id = (uint64_t)current((int8_t)device).id;
    return id == 0 ? 0 : handle_of(id, device);
}
