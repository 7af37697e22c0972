/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Sorted, not hashed: the names come from a document that may be made to
 * collide.  Sorted by device, kind and library first, the libraries are runs;
 * then by device and kind alone, so that the rows keep the document's order. */
#include "memory_held.h"

#include <stdlib.h> // qsort(), bsearch()
#include <string.h>

#include "../detector/alloc.h"
#include "memory_why.h"

struct item {
    const struct cm_leak_held *held;
    uint32_t device;
    bool driver;
};

static int
order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int
order_kinds(uint32_t device, bool driver, uint32_t other, bool others_driver)
{
    return device != other ? order(device, other)
                           : order(driver, others_driver);
}

static int
by_kind(const struct item *a, const struct item *b)
{
    return order_kinds(a->device, a->driver, b->device, b->driver);
}

static int
by_place(const void *first, const void *second)
{
    const struct item *a = first, *b = second;
    int kinds = by_kind(a, b);

    return kinds != 0 ? kinds : order((uintptr_t)a->held, (uintptr_t)b->held);
}

static int
by_library(const void *first, const void *second)
{
    const struct item *a = first, *b = second;
    int kinds = by_kind(a, b);

    if (kinds != 0 || a->held->library.index == b->held->library.index) {
        return kinds != 0 ? kinds : by_place(a, b);
    }
    return order(a->held->library.index, b->held->library.index);
}

static int
by_first(const void *first, const void *second)
{
    const struct cm_memory_library *a = first, *b = second;
    uint32_t device = a->most->device.index, other = b->most->device.index;

    return device != other ? order(device, other)
                           : order((uintptr_t)a->most, (uintptr_t)b->most);
}

static int
by_name(const void *first, const void *second)
{
    const struct cm_text_id *a = first, *b = second;

    return order(a->index, b->index);
}

static void
fill_libraries(struct cm_memory_held *self, struct item *items, size_t count)
{
    struct cm_memory_library *library = NULL;

    qsort(items, count, sizeof(*items), by_library);
    for (size_t i = 0; i < count; i++) {
        const struct cm_leak_held *held = items[i].held;

        if (!items[i].driver) {
            continue;
        }
        if (library == NULL
            || !cm_text_same(library->most->device, held->device)
            || !cm_text_same(library->most->library, held->library)) {
            library = &self->libraries[self->library_count++];
            *library = (struct cm_memory_library){.most = held};
        }
        library->bytes = cm_memory_sum(library->bytes, held->bytes);
    }
    qsort(self->libraries, self->library_count, sizeof(*self->libraries),
          by_first);
}

static void
fill_groups(struct cm_memory_held *self, struct item *items, size_t count)
{
    struct cm_memory_rows *group = NULL;

    qsort(items, count, sizeof(*items), by_place);
    for (size_t i = 0; i < count; i++) {
        self->rows[i] = items[i].held;
        if (i == 0 || by_kind(&items[i - 1], &items[i]) != 0) {
            group = &self->groups[self->group_count++];
            *group = (struct cm_memory_rows){.device = items[i].held->device,
                                             .driver = items[i].driver,
                                             .rows = &self->rows[i]};
        }
        group->count++;
        group->bytes = cm_memory_sum(group->bytes, items[i].held->bytes);
    }
}

static void
fill_known(struct cm_memory_held *self)
{
    const struct cm_leak *leak = self->leak;

    for (size_t i = 0; i < leak->device_count; i++) {
        if (cm_memory_is_known(&leak->devices[i])) {
            self->known[self->known_count++] = leak->devices[i].name;
        }
    }
    qsort(self->known, self->known_count, sizeof(*self->known), by_name);
}

/* [owned by the caller]; NULL: no memory. */
static struct item *
make_items(const struct cm_leak *leak)
{
    struct item *items = cm_calloc(leak->held_count, sizeof(*items));

    for (size_t i = 0; items != NULL && i < leak->held_count; i++) {
        const struct cm_leak_held *held = &leak->held[i];
        const char *framework = cm_leak_text(leak, held->framework);

        items[i] = (struct item){.held = held,
                                 .device = held->device.index,
                                 .driver = strcmp(framework, "driver") == 0};
    }
    return items;
}

enum cm_status
cm_memory_held_init(struct cm_memory_held *self, const struct cm_leak *leak)
{
    size_t count = leak->held_count;

    self->leak = leak;
    if (count == 0) {
        return CM_OK;
    }
    struct item *items = make_items(leak);
    self->rows = cm_calloc(count, sizeof(*self->rows));
    self->groups = cm_calloc(count, sizeof(*self->groups));
    self->libraries = cm_calloc(count, sizeof(*self->libraries));
    self->known = cm_calloc(leak->device_count + 1, sizeof(*self->known));
    bool made = items != NULL && self->rows != NULL && self->groups != NULL
                && self->libraries != NULL && self->known != NULL;
    if (made) {
        fill_libraries(self, items, count);
        fill_groups(self, items, count);
        fill_known(self);
    }
    cm_free(items);
    return made ? CM_OK : CM_NO_MEMORY;
}

void
cm_memory_held_release(struct cm_memory_held *self)
{
    cm_free(self->rows);
    cm_free(self->groups);
    cm_free(self->libraries);
    cm_free(self->known);
    memset(self, 0, sizeof(*self));
}

static int
compare_group(const void *wanted, const void *group)
{
    const struct cm_memory_rows *a = wanted, *b = group;

    return order_kinds(a->device.index, a->driver, b->device.index, b->driver);
}

struct cm_memory_rows
cm_memory_held_of(const struct cm_memory_held *self, struct cm_text_id device,
                  bool driver)
{
    struct cm_memory_rows wanted = {.device = device, .driver = driver};
    const struct cm_memory_rows *found =
        self->group_count > 0
            ? bsearch(&wanted, self->groups, self->group_count, sizeof(wanted),
                      compare_group)
            : NULL;

    return found != NULL ? *found : wanted;
}

/* Where the libraries of this device, and of those after it, begin. */
static size_t
libraries_from(const struct cm_memory_held *self, uint64_t device)
{
    size_t low = 0, high = self->library_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->libraries[middle].most->device.index < device) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return low;
}

const struct cm_memory_library *
cm_memory_held_libraries(const struct cm_memory_held *self,
                         struct cm_text_id device, size_t *count)
{
    size_t from = libraries_from(self, device.index);

    *count = libraries_from(self, (uint64_t)device.index + 1) - from;
    return *count > 0 ? &self->libraries[from] : NULL;
}

bool
cm_memory_held_is_alone(const struct cm_memory_held *self, size_t at)
{
    const struct cm_leak_held *held = &self->leak->held[at];

    for (int driver = 0; driver < 2; driver++) {
        struct cm_memory_rows all =
            cm_memory_held_of(self, held->device, driver != 0);

        if (all.count > 0 && all.rows[0] < held) {
            return false;
        }
    }
    return bsearch(&held->device, self->known, self->known_count,
                   sizeof(*self->known), by_name)
           == NULL;
}
