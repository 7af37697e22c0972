/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Memory of the host that torch's tensors lie in: its default allocator calls
 * c10::alloc_cpu and c10::free_cpu, which libc10 exports and so calls through
 * slots of its own; these are ours while we listen.  What stands below them
 * (posix_memalign, mimalloc on AArch64, a preloaded jemalloc) does not matter
 * then, and no other memory of libc10's comes by: its free() is also called for
 * every list of sizes.  Not seen: what torch only borrows (NumPy's arrays,
 * shared memory, files) and what libtorch_cpu asks of alloc_cpu for itself.
 *
 * free_cpu is told no size, so each free is told as one that may be of memory
 * nobody told of: a small one, or one from before.  A free is told before it
 * happens, an allocation after: in between the address is nobody else's.
 * Cost besides the sink: two thread-local reads.
 *
 * alloc_cpu throws when there is no memory; the exception passes through our
 * frame, which this file is compiled for (-fexceptions), and no state is held
 * across the call.
 *
 * Facts: c10/core/impl/alloc_cpu.cpp, c10/core/CPUAllocator.cpp; both symbols
 * are in the dynamic tables of torch 2.6 and 2.13. */

#define _GNU_SOURCE
#include "hook.h"
#include "host_slot.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "../detector/hot.h"
#include "../detector/meter.h"
#include "../detector/relaxed.h"
#include "slot.h"

typedef void *alloc_function(size_t bytes);
typedef void free_function(void *address);

static const char library[] = "libc10.so";
static const char alloc_symbol[] = "_ZN3c109alloc_cpuEm";
static const char free_symbol[] = "_ZN3c108free_cpuEPv";

static struct {
    struct cm_sink sink; /* written before `listening`, then read only */
    _Atomic(alloc_function *) alloc;
    _Atomic(free_function *) free;
    atomic_bool listening;
    struct cm_slots allocs, frees; /* guarded by the caller of start, stop */
    _Atomic uint64_t small;
} host;

struct thread {
    bool inside;
    uint32_t id;
};
static _Thread_local struct thread this_thread;

/* Its address is asked for once; the compiler would ask again. */
static inline struct thread *
own_thread(void)
{
    struct thread *thread = &this_thread;
    __asm__("" : "+r"(thread));
    return thread;
}

static inline bool
hears(void)
{
    return atomic_load_explicit(&host.listening, memory_order_acquire)
           && !CM_PASSES(CM_METER_ALLOCATION);
}

static CM_HOT_PART void
tell(const struct cm_event *event)
{
    if (CM_SELDOM(host.sink.host == NULL)) {
        struct cm_event copy = *event; /* the other may stay in registers */
        host.sink.event(host.sink.context, &copy);
    }
    else {
        cm_device_blocks_hear(host.sink.host, event);
    }
}

/* Only here a thread's own variables are looked for, which takes longer than
 * to pass over most of what is small or was never told. */
CM_HOT static void
tell_allocation(void *address, size_t bytes)
{
    struct thread *thread = own_thread();
    if (thread->inside) {
        return;
    }
    CM_METERED(CM_METER_ALLOCATION);
    bool awaited = false;
    struct cm_site_id site = {0};
    thread->inside = true;
    if (CM_SELDOM(thread->id == 0)) {
        thread->id = (uint32_t)gettid(); /* a system call */
    }
    if (host.sink.site != NULL) {
        site = host.sink.site(host.sink.context, &awaited);
    }
    struct cm_event event = {
        .kind = CM_EVENT_ALLOCATE,
        .address = (uint64_t)(uintptr_t)address,
        .bytes = bytes,
        .stream = CM_STREAM_UNKNOWN,
        .thread = thread->id,
        .site = site,
        .device = CM_DEVICE_HOST,
        .awaited = awaited,
    };
    tell(&event);
    thread->inside = false;
}

CM_HOT static void
tell_free(void *address)
{
    struct thread *thread = own_thread();
    if (thread->inside) {
        return;
    }
    CM_METERED(CM_METER_FREE);
    struct cm_event event = {
        .kind = CM_EVENT_FREE,
        .address = (uint64_t)(uintptr_t)address,
        .stream = CM_STREAM_UNKNOWN,
        .device = CM_DEVICE_HOST,
        .doubtful = true,
    };
    thread->inside = true;
    tell(&event);
    thread->inside = false;
}

static inline bool
was_told(void *address)
{
    const struct cm_device_blocks *blocks = host.sink.host;
    return address != NULL
           && (blocks == NULL
               || cm_address_filter_has(&blocks->filter,
                                        (uint64_t)(uintptr_t)address));
}

/* Apart, as free_told(): what is passed over needs no room on the stack. */
CM_HOT static __attribute__((noinline)) void *
alloc_large(size_t bytes)
{
    void *address =
        atomic_load_explicit(&host.alloc, memory_order_relaxed)(bytes);
    if (address != NULL && hears()) {
        tell_allocation(address, bytes);
    }
    return address;
}

CM_HOT static void *
on_alloc(size_t bytes)
{
    if (bytes >= CM_HOST_SLOT_LEAST) {
        return alloc_large(bytes);
    }
    CM_ADD(&host.small, 1); /* two threads may lose one */
    return atomic_load_explicit(&host.alloc, memory_order_relaxed)(bytes);
}

CM_HOT static __attribute__((noinline)) void
free_told(void *address)
{
    tell_free(address);
    atomic_load_explicit(&host.free, memory_order_relaxed)(address);
}

CM_HOT static void
on_free(void *address)
{
    if (hears() && was_told(address)) {
        free_told(address);
    }
    else {
        atomic_load_explicit(&host.free, memory_order_relaxed)(address);
    }
}

/* NULL: found, and `host` is filled. */
static const char *
find_slots(void)
{
    char path[CM_SLOT_PATH];
    if (!cm_slot_library(library, path)) {
        return "no libc10.so is loaded: a static build of torch, or a "
               "platform whose libraries are not read";
    }
    cm_slot_find(library, alloc_symbol, &host.allocs);
    cm_slot_find(library, free_symbol, &host.frees);
    void *alloc = cm_slot_original(path, alloc_symbol);
    void *free = cm_slot_original(path, free_symbol);
    if (alloc == NULL || free == NULL || host.allocs.count == 0
        || host.frees.count == 0) {
        return "libc10.so does not call its alloc_cpu and free_cpu through "
               "slots: a static build, or a newer torch";
    }
    if (!cm_slot_is_free(&host.allocs, library, alloc, (void *)on_alloc)
        || !cm_slot_is_free(&host.frees, library, free, (void *)on_free)) {
        return "the slots have another tool's hook: unload that tool, or "
               "start it after cumem";
    }
    atomic_store(&host.alloc, (alloc_function *)alloc);
    atomic_store(&host.free, (free_function *)free);
    return NULL;
}

static void
put_back(void)
{
    cm_slot_put_back(&host.allocs, (void *)on_alloc,
                     (void *)atomic_load(&host.alloc));
    cm_slot_put_back(&host.frees, (void *)on_free,
                     (void *)atomic_load(&host.free));
}

static bool
start(const struct cm_sink *sink, const char *where, const char **why)
{
    (void)where;
    if (atomic_load(&host.listening)) {
        *why = "the slots are in use already";
        return false;
    }
    const char *missing = find_slots();
    if (missing != NULL) {
        *why = missing;
        return false;
    }
    host.sink = *sink;
    atomic_store_explicit(&host.listening, true, memory_order_release);
    /* Frees first: what we hear being allocated, we hear being freed. */
    if (!cm_slot_set(&host.frees, (void *)on_free)
        || !cm_slot_set(&host.allocs, (void *)on_alloc)) {
        atomic_store(&host.listening, false);
        put_back();
        *why = "the page of the slots cannot be made writable";
        return false;
    }
    return true;
}

static void
stop(void)
{
    if (atomic_exchange(&host.listening, false)) {
        put_back();
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
cm_host_slot_small(void)
{
    return atomic_load(&host.small);
}

const struct cm_hook_kind cm_host_slot = {
    .name = "host slot",
    .start = start,
    .stop = stop,
    .flush = flush,
    .lost = lost,
};
