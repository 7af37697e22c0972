/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The least that a hook of torch's CUDA allocator does if it is to know the
 * stack of a live block: it stands in the slot of torch's own report, hashes the
 * instructions of the frames, and puts both into a table.  It tells no stream,
 * device or thread, checks no total, and knows nothing of backward; whoever
 * asks more of a hook pays more.  For bench/least.py, which builds it. */

#include <Python.h>

#include <stdint.h>

#include "../allocator_hooks/slot.h"
#include "../pyext/objects/layout.h"

#define PLACES_LOG2 16
#define PLACES (1u << PLACES_LOG2)
#define KEY UINT64_C(0x9E3779B97F4A7C15)

struct device {
    int8_t type, index;
};
typedef void report(void *address, int64_t bytes, size_t allocated,
                    size_t reserved, struct device device);

enum { NOTHING, SLOT, TABLE, STACK, OTHERS };

static struct {
    uint64_t address, stack;
    int64_t bytes;
} blocks[PLACES];
static struct cm_slots slots;
static report *original;
static void *others; /* who was in the slot before */
static int walks;

static const struct cm_raw_frame *
innermost(void)
{
    PyThreadState *thread = PyGILState_GetThisThreadState();
#if PY_VERSION_HEX < 0x030D0000
    return thread != NULL && thread->cframe != NULL
               ? (const void *)thread->cframe->current_frame
               : NULL;
#else
    return thread != NULL ? (const void *)thread->current_frame : NULL;
#endif
}

static uint64_t
stack_now(void)
{
    uint64_t hash = KEY;
    const struct cm_raw_frame *frame = walks ? innermost() : NULL;
    for (; frame != NULL; frame = frame->previous) {
        hash = (hash ^ (uint64_t)(uintptr_t)frame->instruction) * KEY;
    }
    return hash;
}

/* Under the allocator's lock. */
static void
put_in(uint64_t address, int64_t bytes)
{
    size_t at = (size_t)(address * KEY >> (64 - PLACES_LOG2));
    while (blocks[at].address != 0 && blocks[at].address != address) {
        at = (at + 1) % PLACES;
    }
    blocks[at].address = address;
    blocks[at].bytes = bytes > 0 ? bytes : 0;
    if (bytes > 0) {
        blocks[at].stack = stack_now();
    }
}

static void
on_report(void *address, int64_t bytes, size_t allocated, size_t reserved,
          struct device device)
{
    put_in((uint64_t)(uintptr_t)address, bytes);
    original(address, bytes, allocated, reserved, device);
}

static void
pass_on(void *address, int64_t bytes, size_t allocated, size_t reserved,
        struct device device)
{
    original(address, bytes, allocated, reserved, device);
}

/* Before: torch is imported.  0: no such slot. */
int
least_find(const char *symbol)
{
    char path[CM_SLOT_PATH];
    if (!cm_slot_library("libc10.so", path)) {
        return 0;
    }
    original = (report *)cm_slot_original(path, symbol);
    cm_slot_find("libc10_cuda.so", symbol, &slots);
    others = slots.count != 0 ? *slots.places[0].slot : NULL;
    return original != NULL && slots.count != 0;
}

/* 0: the page of the slot cannot be written. */
int
least_use(int how)
{
    void *const functions[] = {[NOTHING] = (void *)original,
                               [SLOT] = (void *)pass_on,
                               [TABLE] = (void *)on_report,
                               [STACK] = (void *)on_report,
                               [OTHERS] = others};
    walks = how == STACK;
    return cm_slot_set(&slots, functions[how]);
}
