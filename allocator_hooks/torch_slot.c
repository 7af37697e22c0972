/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* torch's caching allocator tells its profiler of every allocation and free
 * by one call from libc10_cuda to libc10; the slot of that call is ours while
 * we listen, and libc10's function is called after us and put back at the end.
 * Its address is asked of the loader, never read from the slot: where a slot
 * calls anything else, it is another tool's and is left to it.
 *
 * We come under the allocator's lock, with or without the GIL.  The call tells
 * the allocator's own total as well: each event is checked against it, byte
 * for byte.  An allocation takes this thread's current stream unless it names
 * another, which is rare.  What is not in the cache costs most here: no clock
 * is asked.
 *
 * Facts: c10/core/Allocator.h, c10/cuda/CUDACachingAllocator.cpp (since torch
 * 1.10). */

#define _GNU_SOURCE
#include "hook.h"
#include "../detector/hot.h"
#include "../detector/meter.h"
#include "../detector/relaxed.h"
#include "torch_slot.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "slot.h"
#include "torch_stream.h"

/* c10::Device, handed over by value. */
struct torch_device {
    int8_t type, index;
};

typedef void report_function(void *address, int64_t bytes, size_t allocated,
                             size_t reserved, struct torch_device device);

static const char *const symbols[] = {
    "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
    "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
};

static struct {
    /* What an event reads lies in one cache line, for the first device. */
    _Alignas(64) struct cm_sink sink; /* written before `listening` */
    _Atomic(report_function *) original;
    atomic_bool listening;
    /* Of each device, by its number: NULL before its first event. */
    _Atomic(struct cm_event_line *) lines[CM_MAX_DEVICES];
    _Atomic uint64_t mismatches;
    struct cm_slots slots; /* guarded by the caller of start and stop */
} torch CM_EVENT_DATA;

struct thread {
    bool inside;
    uint32_t id; /* 0: not known yet; gettid() is a system call */
};
static _Thread_local struct thread this_thread;

/* -1 is "the current device" of c10: counted as the first. */
static inline int
number_of(struct torch_device device)
{
    return device.index < 0 ? 0 : device.index;
}

/* NULL: not known yet, or too many. */
static CM_HOT_PART struct cm_event_line *
line_of(int device)
{
    return (unsigned)device < CM_MAX_DEVICES ? atomic_load_explicit(
               &torch.lines[device], memory_order_acquire)
                                             : NULL;
}

/* Apart, with all that is seldom: the others touch few cache lines, and need
 * no event in memory. */
static __attribute__((noinline)) void
hand_over(const struct cm_event *event)
{
    if (torch.sink.line != NULL && event->device < CM_MAX_DEVICES
        && line_of(event->device) == NULL) {
        atomic_store_explicit(
            &torch.lines[event->device],
            torch.sink.line(torch.sink.context, event->device),
            memory_order_release);
    }
    torch.sink.event(torch.sink.context, event);
}

static __attribute__((noinline)) void
note_mismatch(void)
{
    atomic_fetch_add_explicit(&torch.mismatches, 1, memory_order_relaxed);
}

static CM_HOT_PART bool
write_down(struct cm_event_line *line, const struct cm_event *event)
{
    if (CM_SELDOM(!cm_event_line_follows(line, event))) {
        note_mismatch();
    }
    return cm_event_line_write(line, event);
}

/* The allocator's lock orders the events of one device. */
static CM_HOT_PART void
tell(const struct cm_event *event)
{
    struct cm_event_line *line = line_of(event->device);
    if (CM_SELDOM(line == NULL || !write_down(line, event))) {
        struct cm_event copy = *event;
        hand_over(&copy);
    }
}

/* The stack is walked before the event is written down: a load waits for a
 * store that has the same place in another page, and the walk is all loads. */
static CM_HOT_PART void
tell_allocation(struct thread *thread, void *address, int64_t bytes,
                size_t allocated, size_t reserved, int device)
{
    bool awaited = false;
    struct cm_site_id site = {0};
    if (torch.sink.site != NULL) {
        site = torch.sink.site(torch.sink.context, &awaited);
    }
    struct cm_event event = {
        .kind = CM_EVENT_ALLOCATE,
        .address = (uint64_t)(uintptr_t)address,
        .bytes = (uint64_t)bytes,
        .stream = cm_torch_stream_now(device),
        .allocated = allocated,
        .reserved = reserved,
        .thread = thread->id,
        .site = site,
        .device = (int16_t)device,
        .awaited = awaited,
        .in_order = true,
    };
    tell(&event);
}

/* It calls nothing that could come back here; an allocation asks torch for its
 * stream. */
static CM_HOT_PART void
tell_free(void *address, int64_t bytes, size_t allocated, size_t reserved,
          int device)
{
    struct cm_event event = {
        .kind = CM_EVENT_FREE,
        .address = (uint64_t)(uintptr_t)address,
        .bytes = -(uint64_t)bytes,
        .stream = CM_STREAM_UNKNOWN,
        .allocated = allocated,
        .reserved = reserved,
        .device = (int16_t)device,
        .in_order = true,
    };
    tell(&event);
}

static inline report_function *
original(void)
{
    return atomic_load_explicit(&torch.original, memory_order_relaxed);
}

/* Apart, so that a free needs no frame on the stack. */
CM_EVENT_PATH static __attribute__((noinline)) void
on_allocation(void *address, int64_t bytes, size_t allocated, size_t reserved,
              struct torch_device device)
{
    struct thread *thread = &this_thread;
    /* Its address is asked for once, since in a library that is loaded late
     * that is a call; the compiler would ask again. */
    __asm__("" : "+r"(thread));
    if (!thread->inside) {
        CM_METERED(CM_METER_ALLOCATION);
        thread->inside = true;
        if (CM_SELDOM(thread->id == 0)) {
            thread->id = (uint32_t)gettid();
        }
        tell_allocation(thread, address, bytes, allocated, reserved,
                        number_of(device));
        thread->inside = false;
    }
    original()(address, bytes, allocated, reserved, device);
}

CM_EVENT_PATH static void
on_report(void *address, int64_t bytes, size_t allocated, size_t reserved,
          struct torch_device device)
{
    if (atomic_load_explicit(&torch.listening, memory_order_acquire)
        && device.type != 0 && !CM_PASSES(CM_METER_ALLOCATION)) {
        if (bytes >= 0) {
            on_allocation(address, bytes, allocated, reserved, device);
            return;
        }
        CM_METERED(CM_METER_FREE);
        tell_free(address, bytes, allocated, reserved, number_of(device));
    }
    original()(address, bytes, allocated, reserved, device);
}

static const char caller[] = "libc10_cuda.so";

/* NULL: found, and `torch` is filled. */
static const char *
find_slot(void)
{
    char path[CM_SLOT_PATH], cuda_path[CM_SLOT_PATH];
    if (!cm_slot_library("libc10.so", path)) {
        return "no libc10.so is loaded: a static build of torch, or a "
               "platform whose libraries are not read";
    }
    if (!cm_slot_library(caller, cuda_path)) {
        return "this torch has no CUDA (libc10_cuda.so is not loaded)";
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *original = cm_slot_original(path, symbols[i]);
        cm_slot_find(caller, symbols[i], &torch.slots);
        if (original != NULL && torch.slots.count != 0) {
            if (!cm_slot_is_free(&torch.slots, caller, original,
                                 (void *)on_report)) {
                return "the slot has another tool's hook: unload that tool, "
                       "or start it after cumem";
            }
            atomic_store(&torch.original, (report_function *)original);
            return NULL;
        }
    }
    return "libc10_cuda.so does not call libc10's reportMemoryUsageToProfiler "
           "through a slot: a static build, or a newer torch";
}

static bool
start(const struct cm_sink *sink, const char *where, const char **why)
{
    (void)where;
    if (atomic_load(&torch.listening)) {
        *why = "the slot is in use already";
        return false;
    }
    const char *missing = find_slot();
    if (missing != NULL) {
        *why = missing;
        return false;
    }
    cm_torch_stream_find();
    torch.sink = *sink;
    for (size_t i = 0; i < CM_MAX_DEVICES; i++) {
        atomic_store(&torch.lines[i], NULL);
    }
    atomic_store_explicit(&torch.listening, true, memory_order_release);
    if (!cm_slot_set(&torch.slots, (void *)on_report)) {
        atomic_store(&torch.listening, false);
        *why = "the page of the slot cannot be made writable";
        return false;
    }
    return true;
}

static void
stop(void)
{
    if (atomic_exchange(&torch.listening, false)) {
        cm_slot_put_back(&torch.slots, (void *)on_report,
                         (void *)atomic_load(&torch.original));
    }
}

static void
flush(void)
{
}

static uint64_t
lost(void)
{
    return 0;
}

uint64_t
cm_torch_slot_mismatches(void)
{
    return atomic_load(&torch.mismatches);
}

const struct cm_hook_kind cm_torch_slot = {
    .name = "torch slot",
    .start = start,
    .stop = stop,
    .flush = flush,
    .lost = lost,
};
