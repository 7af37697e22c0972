/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The sink of the allocation hooks.  It comes from any thread, mostly without
 * the GIL and under torch's own lock: a stack and one entry in the table of
 * live blocks, no call out. */

#include "allocations.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../../allocator_hooks/hook.h"
#include "../../allocator_hooks/host_slot.h"
#include "../../allocator_hooks/slot.h"
#include "../../allocator_hooks/torch_slot.h"
#include "../../detector/alloc.h"
#include "../../detector/hot.h"
#include "../torch/backward.h"
#include "foreign.h"
#include "../torch/forward.h"
#include "private_pools.h"
#include "unhooked.h"

#define MAX_BLOCKS ((size_t)1 << 24)

/* Borrowed; NULL: no stacks.  All that an event reads here. */
static CM_EVENT_DATA _Atomic(struct cm_objects *) stack_objects;

static struct {
    struct cm_blocks *blocks;      /* owned; never freed */
    const struct cm_objects *user; /* guarded by the GIL, as below */
    bool hooked, hopeless;
    bool recorded; /* blocks are seeded from torch's recorder */
    const char *why;
    char recorder[256], silent[256];
    unsigned long long tried; /* cm_slot_loads() then; 0: not yet */
} torch = {.why = "nobody observes"};

/* The same for memory of the host, which is heard only while it counts.
 * Guarded by the GIL. */
static struct {
    bool hooked, hopeless;
    const char *why;
} host = {.why = "nobody observes"};

CM_EVENT_PATH static struct cm_site_id
on_site(void *context, bool *awaited)
{
    (void)context;
    struct cm_objects *objects =
        atomic_load_explicit(&stack_objects, memory_order_acquire);
    struct cm_site_id site = {0};
    *awaited = false;
    if (objects != NULL) {
        site = cm_backward_stack(objects, awaited);
        if (!*awaited) {
            cm_forward_note(site, true);
        }
    }
    return site;
}

static const char not_imported[] = "torch is not imported";

static bool
is_imported(const char *name)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    return modules != NULL && PyDict_CheckExact(modules)
           && PyDict_GetItemString(modules, name) != NULL;
}

bool
cm_allocations_make_table(void)
{
    if (torch.blocks == NULL) {
        torch.blocks = cm_blocks_new(MAX_BLOCKS);
    }
    return torch.blocks != NULL;
}

/* Starts a hook into the table, which is made if need be. */
static bool
start(const struct cm_hook_kind *kind, struct cm_objects *objects, bool stacks,
      const char **why)
{
    if (!cm_allocations_make_table()) {
        *why = "no memory for the table of blocks";
        return false;
    }
    torch.user = objects;
    atomic_store(&stack_objects, stacks ? objects : NULL);
    struct cm_sink sink = {
        .event = cm_blocks_sink, .site = on_site, .context = torch.blocks};
    if (kind == &cm_host_slot) {
        sink.host = cm_blocks_device(torch.blocks, CM_DEVICE_HOST);
    }
    else {
        sink.line = cm_blocks_line;
    }
    if (!kind->start(&sink, NULL, why)) {
        return false;
    }
    if (stacks) {
        cm_backward_start(objects);
        cm_forward_start();
        cm_foreign_start();
    }
    return true;
}

/* What was freed while nobody listened, and whether an address is another
 * block's by now, is not known. */
static void
forget_devices(void)
{
    for (int i = 0;
         torch.blocks != NULL && i < cm_blocks_devices(torch.blocks); i++) {
        cm_blocks_clear_device(torch.blocks, i);
    }
}

/* Where its library is missing, what is known of other frameworks stays. */
static void
hook_torch(struct cm_objects *objects, bool stacks)
{
    char path[CM_SLOT_PATH];
    unsigned long long loads = cm_slot_loads();
    bool there = cm_slot_library("libc10_cuda.so", path);
    if (there || torch.tried == 0) {
        cm_unhooked_forget(); /* torch's tensors as well, until now */
        forget_devices();
    }
    torch.hooked = start(&cm_torch_slot, objects, stacks, &torch.why);
    torch.hopeless = there && !torch.hooked && torch.blocks != NULL;
    torch.tried = torch.blocks != NULL ? loads : 0;
    if (torch.hooked) {
        torch.why = "the allocator's own report to its profiler is heard";
    }
}

/* A library that was missing is so until one more is loaded. */
static bool
was_tried(void)
{
    return torch.tried != 0 && torch.tried == cm_slot_loads();
}

void
cm_allocations_notice(struct cm_objects *objects, bool stacks)
{
    if (torch.hooked || torch.hopeless || was_tried()) {
        return;
    }
    if (is_imported("torch._C")) {
        hook_torch(objects, stacks);
    }
    else {
        torch.why = not_imported;
    }
}

/* What another thread is just telling may still stand in the table then; it
 * goes when the host is heard again. */
static void
stop_host(const char *why)
{
    if (host.hooked) {
        cm_host_slot.stop();
        cm_blocks_clear_device(torch.blocks, CM_DEVICE_HOST);
        host.hooked = false;
    }
    host.hopeless = false;
    host.why = why;
}

void
cm_allocations_notice_host(struct cm_objects *objects, bool stacks,
                           bool counts)
{
    if (!counts) {
        stop_host("memory of the host does not count");
    }
    else if (!host.hooked && !host.hopeless && !is_imported("torch._C")) {
        host.why = not_imported;
    }
    else if (!host.hooked && !host.hopeless) {
        if (torch.blocks != NULL) {
            cm_blocks_clear_device(torch.blocks, CM_DEVICE_HOST);
        }
        host.hooked = start(&cm_host_slot, objects, stacks, &host.why);
        host.hopeless = !host.hooked && torch.blocks != NULL;
        if (host.hooked) {
            host.why = "torch's own calls for memory of the host are heard";
        }
    }
}

static void
stop_torch(const char *why)
{
    if (torch.hooked) {
        cm_torch_slot.stop();
        torch.hooked = false;
    }
    torch.why = why;
}

static void
stop_steps(void)
{
    cm_backward_stop();
    cm_forward_stop();
    cm_foreign_stop();
}

void
cm_allocations_stop(void)
{
    if (torch.hooked || host.hooked) {
        stop_steps();
    }
    stop_host("nobody observes");
    stop_torch("nobody observes");
    torch.hopeless = false;
    torch.tried = 0;
}

bool
cm_allocations_use(const struct cm_objects *objects)
{
    return torch.user == objects && objects != NULL;
}

void
cm_allocations_off(void)
{
    cm_allocations_stop();
    torch.hopeless = host.hopeless = true;
    torch.why = host.why = "a forked child is silent";
}

CM_HOT uint64_t
cm_allocations_bytes(void)
{
    return torch.blocks != NULL ? cm_blocks_told(torch.blocks) : 0;
}

CM_HOT struct cm_blocks *
cm_allocations_blocks(void)
{
    return torch.blocks;
}

CM_HOT bool
cm_allocations_heard(void)
{
    return torch.hooked;
}

CM_HOT bool
cm_allocations_host_heard(void)
{
    return host.hooked;
}

bool
cm_allocations_told(void)
{
    return torch.hooked && cm_blocks_devices(torch.blocks) > 0;
}

void
cm_allocations_device(int device, char name[CM_DEVICE_NAME_BYTES])
{
    if (device == CM_DEVICE_HOST) {
        strcpy(name, "cpu");
    }
    else {
        snprintf(name, CM_DEVICE_NAME_BYTES, "cuda:%d", device);
    }
}

const char *
cm_allocations_hook(const char **why)
{
    *why = torch.why;
    return torch.hooked     ? cm_torch_slot.name
           : torch.recorded ? "recorder"
                            : "none";
}

const char *
cm_allocations_heard_by(void)
{
    const char *why;
    bool host_alone = host.hooked && !torch.hooked && !torch.recorded;
    return host_alone ? cm_host_slot.name : cm_allocations_hook(&why);
}

/* ---- storages and their blocks */

/* Id 0: the common pool, as far as the last snapshot knew. */
static struct cm_text_id
pool_of(uint64_t address, const struct cm_records *records)
{
    const char *pool = cm_private_pools_at(address);
    return pool != NULL ? cm_texts_intern(cm_records_texts(records), pool)
                        : (struct cm_text_id){0};
}

static void
explain_storage(struct cm_storage *storage, const struct cm_block *block,
                const struct cm_records *records)
{
    if (block->bytes == 0 || block->bytes < storage->bytes) {
        return; /* not torch's memory */
    }
    if (block->site.index != 0) {
        storage->site = block->site;
        storage->awaited = block->awaited;
    }
    bool told = block->device == CM_DEVICE_HOST ? host.hooked : torch.hooked;
    storage->starts_block = told && block->address == storage->device_address;
    storage->block_bytes = block->bytes;
    storage->stream = block->stream;
    storage->thread = block->thread;
    storage->pool = pool_of(block->address, records);
}

/* What is not known to be made elsewhere was made with its memory. */
static void
explain_nodes(struct cm_heap *heap)
{
    for (size_t i = 1; i <= heap->node_count; i++) {
        struct cm_node *node = &heap->nodes[i];
        if (node->storage.index != 0 && node->site.index == 0) {
            node->site = heap->storages[node->storage.index].site;
        }
    }
}

/* 0, which is not looked for, for what has made no event. */
static uint64_t
address_of(const struct cm_storage *storage)
{
    bool untold = host.hooked && storage->bytes < CM_HOST_SLOT_LEAST;
    return untold ? 0 : storage->device_address;
}

void
cm_allocations_explain(struct cm_heap *heap, const struct cm_records *records)
{
    uint64_t addresses[CM_BLOCKS_MATCHED];
    struct cm_block blocks[CM_BLOCKS_MATCHED];
    if (torch.blocks == NULL) {
        return;
    }
    for (size_t first = 1; first <= heap->storage_count;
         first += CM_BLOCKS_MATCHED) {
        size_t left = heap->storage_count - first + 1;
        size_t count = left < CM_BLOCKS_MATCHED ? left : CM_BLOCKS_MATCHED;
        for (size_t i = 0; i < count; i++) {
            addresses[i] = address_of(&heap->storages[first + i]);
        }
        cm_blocks_match(torch.blocks, addresses, count, blocks);
        for (size_t i = 0; i < count; i++) {
            explain_storage(&heap->storages[first + i], &blocks[i], records);
        }
    }
    explain_nodes(heap);
}

bool
cm_allocations_gone(const struct cm_storage *storage)
{
    struct cm_block block;
    return storage->starts_block
           && !cm_blocks_at(torch.blocks, storage->device_address, &block);
}

/* ---- from Python */

static bool
seed_block(PyObject *row)
{
    unsigned long long address, bytes;
    int device;
    unsigned int site;
    PyObject *stream;
    if (!PyArg_ParseTuple(row, "KKiOI", &address, &bytes, &device, &stream,
                          &site)) {
        return false;
    }
    struct cm_event event = {
        .kind = CM_EVENT_ALLOCATE,
        .address = address,
        .bytes = bytes,
        .device = (int16_t)device,
        .stream = CM_STREAM_UNKNOWN,
        .site = {site},
    };
    struct cm_block known;
    if (stream != Py_None) {
        event.stream = PyLong_AsUnsignedLongLong(stream);
    }
    if (!PyErr_Occurred()
        && !cm_blocks_at(torch.blocks, event.address, &known)) {
        cm_blocks_event(torch.blocks, &event);
    }
    return !PyErr_Occurred();
}

PyObject *
cm_allocations_seed(PyObject *module, PyObject *blocks)
{
    (void)module;
    if (!PyList_CheckExact(blocks)) {
        PyErr_SetString(PyExc_TypeError, "a list of blocks was expected");
        return NULL;
    }
    for (Py_ssize_t i = 0; torch.blocks != NULL && i < PyList_GET_SIZE(blocks);
         i++) {
        PyObject *row = PyList_GET_ITEM(blocks, i);
        if (!PyTuple_CheckExact(row) || !seed_block(row)) {
            return PyErr_Occurred() ? NULL
                                    : PyErr_Format(PyExc_TypeError,
                                                   "block %zd is no tuple", i);
        }
    }
    Py_RETURN_NONE;
}

PyObject *
cm_allocations_clear(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (torch.blocks != NULL && !torch.hooked) {
        cm_unhooked_forget();
        cm_blocks_clear(torch.blocks);
    }
    Py_RETURN_NONE;
}

PyObject *
cm_allocations_silent(PyObject *module, PyObject *args)
{
    const char *why;
    (void)module;
    if (!PyArg_ParseTuple(args, "s:silent", &why)) {
        return NULL;
    }
    if (torch.hooked) {
        snprintf(torch.silent, sizeof(torch.silent), "%s", why);
        stop_torch(torch.silent);
        torch.hopeless = true;
        if (!host.hooked) {
            stop_steps();
        }
    }
    Py_RETURN_NONE;
}

PyObject *
cm_allocations_recorder(PyObject *module, PyObject *args)
{
    int recorded;
    const char *why;
    (void)module;
    if (!PyArg_ParseTuple(args, "ps:recorder", &recorded, &why)) {
        return NULL;
    }
    torch.recorded = recorded != 0;
    snprintf(torch.recorder, sizeof(torch.recorder), "%s", why);
    Py_RETURN_NONE;
}

static uint64_t
live_bytes(uint64_t *count)
{
    uint64_t bytes = 0;
    *count = 0;
    for (int i = 0; torch.blocks != NULL && i < CM_MAX_DEVICES; i++) {
        struct cm_block_use use;
        cm_blocks_use(torch.blocks, i, &use);
        bytes += use.live_bytes;
        *count += use.live_count;
    }
    return bytes;
}

/* [new; never] */
static PyObject *
host_status(void)
{
    struct cm_block_use use = {0};
    if (torch.blocks != NULL) {
        cm_blocks_use(torch.blocks, CM_DEVICE_HOST, &use);
    }
    return Py_BuildValue("{sssssKsKsKsK}", "hook",
                         host.hooked ? cm_host_slot.name : "none", "why",
                         host.why, "live_blocks", use.live_count, "live_bytes",
                         use.live_bytes, "allocations", use.allocations,
                         "small", cm_host_slot_small());
}

PyObject *
cm_allocations_status(const char *no_stacks)
{
    struct cm_blocks_counts counts = {0};
    uint64_t live_count, bytes = live_bytes(&live_count);
    const char *why, *hook = cm_allocations_hook(&why);
    if (torch.blocks != NULL) {
        cm_blocks_counts(torch.blocks, &counts);
    }
    return Py_BuildValue(
        "{sssNsNsOsssNsKsKsKsKsKsKsK}", "hook", hook, "why",
        PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace"),
        "recorder",
        PyUnicode_DecodeUTF8(torch.recorder,
                             (Py_ssize_t)strlen(torch.recorder), "replace"),
        "backward", cm_backward_heard() ? Py_True : Py_False, "forward",
        no_stacks != NULL ? no_stacks : cm_forward_status(), "host",
        host_status(), "events", counts.events, "lost",
        counts.lost + cm_private_pools_lost(), "unknown_frees", counts.unknown,
        "mismatches", cm_torch_slot_mismatches(), "live_blocks", live_count,
        "live_bytes", bytes, "footprint", counts.footprint);
}
