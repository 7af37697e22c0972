/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "unhooked.h"

#include <stdlib.h>
#include <string.h>

#include "../../detector/alloc.h"
#include "allocations.h"
#include "../frameworks/tags.h"

struct memory {
    uint64_t address, bytes;
    uint32_t order; /* of the object that shows it */
    struct cm_site_id site;
    int16_t device;
    uint8_t reader;
    bool told; /* by us: torch's hook has not got it */
};

struct memories {
    struct memory *items; /* owned */
    size_t count, capacity;
};

static struct memories known; /* by device and address */

/* ---- what is there now */

/* False: the host's, or not of a kind that has a number. */
static bool
device_number(const struct cm_device_memory *memory, int16_t *number)
{
    static const char prefix[] = "cuda:";
    char *end;
    if (!memory->accelerator
        || strncmp(memory->device, prefix, sizeof(prefix) - 1) != 0) {
        return false;
    }
    const char *digits = memory->device + sizeof(prefix) - 1;
    long value = strtol(digits, &end, 10);
    *number = (int16_t)value;
    return end != digits && *end == '\0' && value >= 0
           && value < CM_MAX_DEVICES;
}

uint64_t
cm_unhooked_place(const struct cm_device_memory *memory)
{
    return memory->device_address != 0 || memory->storage_key == 0
               ? memory->device_address
               : memory->storage_key | UINT64_C(1) << 63;
}

bool
cm_unhooked_block(struct cm_devices *devices, PyObject *object,
                  struct cm_block *block)
{
    struct cm_device_memory memory;
    struct cm_blocks *blocks = cm_allocations_blocks();
    return blocks != NULL && cm_devices_read(devices, object, &memory)
           && !memory.forgotten && cm_unhooked_place(&memory) != 0
           && cm_blocks_at(blocks, cm_unhooked_place(&memory), block);
}

struct asking {
    struct cm_devices *devices;
    struct memories now;
    bool torch, failed;
};

static void
note_memory(struct asking *self, const struct cm_tag *tag,
            const struct cm_device_memory *memory)
{
    struct memory fresh = {
        .address = cm_unhooked_place(memory),
        .bytes = memory->bytes,
        .order = tag->order,
        .site = tag->site,
        .reader = memory->reader,
    };
    if (fresh.address == 0 || fresh.bytes == 0 || memory->forgotten
        || !device_number(memory, &fresh.device)) {
        return;
    }
    self->failed |= cm_grow((void **)&self->now.items, &self->now.capacity,
                            self->now.count + 1, sizeof(*self->now.items))
                    != CM_OK;
    if (!self->failed) {
        self->now.items[self->now.count++] = fresh;
    }
}

static bool
note_object(void *context, PyObject *object)
{
    struct asking *self = context;
    const struct cm_tag *tag = cm_tags_find(object);
    struct cm_device_memory memory;
    if (tag != NULL && (self->torch || cm_tags_unhooked(Py_TYPE(object)))
        && cm_devices_read(self->devices, object, &memory)) {
        do {
            note_memory(self, tag, &memory);
        } while (cm_devices_next(self->devices, object, &memory));
    }
    return self->failed;
}

static int
by_place(const struct memory *a, const struct memory *b)
{
    return a->device != b->device
               ? (a->device > b->device ? 1 : -1)
               : (a->address > b->address) - (a->address < b->address);
}

static int
compare(const void *left, const void *right)
{
    const struct memory *a = left, *b = right;
    int place = by_place(a, b);
    return place != 0 ? place : (a->order > b->order) - (a->order < b->order);
}

/* Who was made first has allocated it; views come later. */
static void
sort_out(struct memories *self)
{
    size_t kept = 0;
    if (self->count != 0) {
        qsort(self->items, self->count, sizeof(*self->items), compare);
    }
    for (size_t i = 0; i < self->count; i++) {
        if (kept == 0
            || by_place(&self->items[kept - 1], &self->items[i]) != 0) {
            self->items[kept++] = self->items[i];
        }
    }
    self->count = kept;
}

/* ---- and what has changed */

static void
tell(const struct memory *memory, enum cm_event_kind kind)
{
    struct cm_event event = {
        .address = memory->address,
        .bytes = memory->bytes,
        .stream = CM_STREAM_UNKNOWN,
        .site = memory->site,
        .device = memory->device,
        .kind = (uint8_t)kind,
    };
    cm_blocks_event(cm_allocations_blocks(), &event);
}

static void
tell_new(struct memory *memory)
{
    struct cm_block block;
    memory->told =
        !cm_blocks_at(cm_allocations_blocks(), memory->address, &block);
    if (memory->told) {
        tell(memory, CM_EVENT_ALLOCATE);
    }
}

static void
tell_gone(const struct memory *memory)
{
    if (memory->told) {
        tell(memory, CM_EVENT_FREE);
    }
}

static bool
is_same(const struct memory *a, const struct memory *b)
{
    return a->bytes == b->bytes && a->site.index == b->site.index;
}

static void
tell_changes(const struct memories *before, struct memories *now)
{
    size_t i = 0, k = 0;
    while (i < before->count || k < now->count) {
        int order = i == before->count ? 1
                    : k == now->count
                        ? -1
                        : by_place(&before->items[i], &now->items[k]);
        if (order == 0 && is_same(&before->items[i], &now->items[k])) {
            now->items[k++].told = before->items[i++].told;
            continue;
        }
        if (order <= 0) {
            tell_gone(&before->items[i++]);
        }
        if (order >= 0) {
            tell_new(&now->items[k++]);
        }
    }
}

void
cm_unhooked_update(struct cm_devices *devices, bool torch)
{
    struct asking asking = {.devices = devices, .torch = torch};
    if (!(torch || cm_tags_have_unhooked()) || !cm_allocations_make_table()) {
        return;
    }
    (void)cm_tags_any(note_object, &asking);
    if (asking.failed) {
        cm_free(asking.now.items);
        return;
    }
    sort_out(&asking.now);
    tell_changes(&known, &asking.now);
    cm_free(known.items);
    known = asking.now;
}

/* ---- what there is in all */

/* What is smaller comes in a page with others. */
static uint64_t
from_driver(uint64_t bytes)
{
    const uint64_t page = UINT64_C(2) << 20;
    return bytes < page / 2 ? bytes : (bytes + page - 1) / page * page;
}

PyObject *
cm_unhooked_use(long device)
{
    uint64_t held[CM_MAX_READERS + 1] = {0}, given[CM_MAX_READERS + 1] = {0};
    PyObject *result = PyDict_New();
    for (size_t i = 0; i < known.count; i++) {
        const struct memory *memory = &known.items[i];
        if (memory->device == device && memory->told) {
            held[memory->reader] += memory->bytes;
            given[memory->reader] += from_driver(memory->bytes);
        }
    }
    for (uint8_t i = 1; result != NULL && i <= CM_MAX_READERS; i++) {
        if (held[i] != 0) {
            PyObject *use = Py_BuildValue("KK", held[i], given[i]);
            if (use == NULL
                || PyDict_SetItemString(result, cm_devices_framework(i), use)
                       < 0) {
                Py_CLEAR(result);
            }
            Py_XDECREF(use);
        }
    }
    return result;
}

static bool
begins_in(const struct memory *memory, const struct cm_block *block)
{
    return memory->device == block->device
           && memory->address - block->address < block->bytes;
}

bool
cm_unhooked_in(const struct cm_block *block)
{
    struct memory first = {.device = block->device, .address = block->address};
    size_t low = 0, high = known.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool below = by_place(&known.items[middle], &first) < 0;
        low = below ? middle + 1 : low;
        high = below ? high : middle;
    }
    while (low < known.count && begins_in(&known.items[low], block)
           && !known.items[low].told) {
        low++;
    }
    return low < known.count && begins_in(&known.items[low], block);
}

void
cm_unhooked_forget(void)
{
    for (size_t i = 0; i < known.count && cm_allocations_blocks() != NULL;
         i++) {
        tell_gone(&known.items[i]);
    }
    cm_free(known.items);
    memset(&known, 0, sizeof(known));
}
