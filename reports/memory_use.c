/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Filling the document's account of memory.  New lists are made whole before
 * they take the place of the old ones, so that a failure leaves the document
 * as it was.  Stacks go through the ledger's map of sites: a stack is in the
 * document once, whoever named it first. */
#include "memory_use.h"

#include <stdlib.h> // qsort()
#include <string.h>

#include "../detector/alloc.h"
#include "../detector/number.h"
#include "representative.h"

/* What a file can hold; what is not known stays so. */
static uint64_t
capped(uint64_t number)
{
    return number == CM_LEAK_UNKNOWN ? number : cm_number_capped(number);
}

/* As capped, 0 for what is not known. */
static uint64_t
plain(uint64_t number)
{
    return number == CM_LEAK_UNKNOWN ? 0 : capped(number);
}

void
cm_device_use_init(struct cm_device_use *self, const char *name)
{
    *self = (struct cm_device_use){.name = name,
                                   .cached = CM_LEAK_UNKNOWN,
                                   .pending_free = CM_LEAK_UNKNOWN,
                                   .private_pools = CM_LEAK_UNKNOWN,
                                   .outside_frameworks = CM_LEAK_UNKNOWN,
                                   .other_processes = CM_LEAK_UNKNOWN,
                                   .free = CM_LEAK_UNKNOWN,
                                   .largest_free = CM_LEAK_UNKNOWN};
}

/* ===== one device ======================================================= */

static enum cm_status
copy_frameworks(struct cm_copy *copy, const struct cm_device_use *use,
                struct cm_leak_device *result)
{
    size_t count = use->framework_count < CM_MEMORY_MAX_FRAMEWORKS
                       ? use->framework_count
                       : CM_MEMORY_MAX_FRAMEWORKS;
    enum cm_status status = CM_OK;

    result->frameworks = cm_calloc(count + 1, sizeof(*result->frameworks));
    if (result->frameworks == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; status == CM_OK && i < count; i++) {
        const struct cm_framework_use *from = &use->frameworks[i];
        struct cm_leak_framework *framework = &result->frameworks[i];

        framework->allocated = capped(from->allocated);
        framework->reserved = capped(from->reserved);
        status = cm_copy_text(copy, from->name, &framework->name);
        result->framework_count += status == CM_OK;
    }
    return status;
}

static enum cm_status
copy_pools(struct cm_copy *copy, const struct cm_device_use *use,
           struct cm_leak_device *result)
{
    size_t count = use->pool_count < CM_MEMORY_MAX_POOLS ? use->pool_count
                                                         : CM_MEMORY_MAX_POOLS;
    enum cm_status status = CM_OK;

    result->pools = cm_calloc(count + 1, sizeof(*result->pools));
    if (result->pools == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; status == CM_OK && i < count; i++) {
        const struct cm_pool_use *from = &use->pools[i];
        struct cm_leak_pool *pool = &result->pools[i];

        *pool = (struct cm_leak_pool){
            .reserved = capped(from->reserved),
            .allocated = capped(from->allocated),
            .requested = capped(from->requested),
            .pending_free = capped(from->pending_free),
            .largest_free = capped(from->largest_free),
            .segments = capped(from->segments),
            .expandable = from->expandable,
        };
        status = cm_copy_text(copy, from->name, &pool->name);
        result->pool_count += status == CM_OK;
    }
    return status;
}

/* The numbers of `use` and the lists of `lists`, which are taken over. */
static void
replace(struct cm_leak_device *device, const struct cm_device_use *use,
        const struct cm_leak_device *lists)
{
    cm_free(device->frameworks);
    cm_free(device->pools);
    device->frameworks = lists->frameworks;
    device->framework_count = lists->framework_count;
    device->pools = lists->pools;
    device->pool_count = lists->pool_count;
    device->allocated = plain(use->allocated);
    device->reserved = plain(use->reserved);
    device->cached = capped(use->cached);
    device->pending_free = capped(use->pending_free);
    device->private_pools = capped(use->private_pools);
    device->outside_frameworks = capped(use->outside_frameworks);
    device->other_processes = capped(use->other_processes);
    device->free = capped(use->free);
    device->largest_free = capped(use->largest_free);
    device->unasked = use->unasked;
    device->asked_bytes = plain(use->asked_bytes);
}

enum cm_status
cm_memory_set_device(struct cm_leak *leak, const struct cm_device_use *use)
{
    struct cm_copy copy = {.leak = leak};
    struct cm_leak_device lists = {0};
    struct cm_leak_device *device = cm_ledger_device(leak, use->name);
    enum cm_status status = CM_OK;

    if (device == NULL) {
        return CM_NO_MEMORY;
    }
    device->total = plain(use->total);
    device->peak_allocated = plain(use->peak_allocated);
    if (device->asked_bytes != 0 && plain(use->asked_bytes) == 0) {
        return CM_OK;
    }
    status = copy_frameworks(&copy, use, &lists);
    if (status == CM_OK) {
        status = copy_pools(&copy, use, &lists);
    }
    if (status == CM_OK) {
        replace(device, use, &lists);
    }
    else {
        cm_leak_device_release(&lists);
    }
    cm_copy_release(&copy);
    return status;
}

bool
cm_memory_ran_out(const struct cm_leak *leak)
{
    if (leak->exhausted.known) {
        return true;
    }
    for (size_t i = 0; i < leak->device_count; i++) {
        if (leak->devices[i].asked_bytes != 0) {
            return true;
        }
    }
    return false;
}

/* ===== what no object explains ========================================== */

static int
by_bytes(const void *first, const void *second)
{
    const struct cm_held *const *a = first, *const *b = second;

    if ((*a)->bytes != (*b)->bytes) {
        return (*a)->bytes > (*b)->bytes ? -1 : 1;
    }
    return *a < *b ? -1 : *a > *b;
}

static enum cm_status
copy_held(struct cm_copy *copy, const struct cm_held *from,
          struct cm_leak_held *held)
{
    const char *texts[] = {from->device, from->framework, from->library};
    struct cm_text_id *ids[] = {&held->device, &held->framework,
                                &held->library};
    enum cm_status status = CM_OK;

    *held = (struct cm_leak_held){.awaited = from->awaited,
                                  .bytes = plain(from->bytes),
                                  .count = plain(from->count)};
    for (size_t i = 0; status == CM_OK && i < 3; i++) {
        status = cm_copy_text(copy, texts[i] != NULL ? texts[i] : "", ids[i]);
    }
    return status == CM_OK ? cm_copy_site(copy, from->site, &held->site)
                           : status;
}

/* The items by bytes, the largest first; *order is the caller's to free. */
static enum cm_status
sort_held(const struct cm_held *items, size_t count,
          const struct cm_held ***order)
{
    *order = cm_calloc(count + 1, sizeof(**order));
    if (*order == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        (*order)[i] = &items[i];
    }
    qsort(*order, count, sizeof(**order), by_bytes);
    return CM_OK;
}

enum cm_status
cm_memory_set_held(struct cm_leak *leak, const struct cm_records *records,
                   const struct cm_held *items, size_t count)
{
    struct cm_copy copy = {.leak = leak, .records = records};
    size_t kept = count < CM_MEMORY_MAX_HELD ? count : CM_MEMORY_MAX_HELD;
    struct cm_leak_held *held = cm_calloc(kept + 1, sizeof(*held));
    const struct cm_held **order = NULL;
    enum cm_status status =
        held != NULL ? sort_held(items, count, &order) : CM_NO_MEMORY;

    for (size_t i = 0; status == CM_OK && i < kept; i++) {
        status = copy_held(&copy, order[i], &held[i]);
    }
    if (status == CM_OK) {
        cm_free(leak->held);
        leak->held = held;
        leak->held_count = leak->held_capacity = kept;
    }
    else {
        cm_free(held);
    }
    cm_free(order);
    cm_copy_release(&copy);
    return status;
}

/* ===== iterations ======================================================= */

static int64_t *
row_at(const struct cm_leak_device *device, size_t row)
{
    return device->iterations + row * CM_LEAK_ITERATION_NUMBERS;
}

static void
put_row(struct cm_leak_device *device, size_t row, const int64_t *numbers)
{
    memmove(row_at(device, row), numbers,
            CM_LEAK_ITERATION_NUMBERS * sizeof(*numbers));
}

/* Of each two rows the one with the higher peak stays. */
static void
thin_rows(struct cm_leak_device *device)
{
    size_t kept = 0;

    for (size_t i = 0; i < device->iteration_count; i += 2) {
        bool second = i + 1 < device->iteration_count
                      && row_at(device, i + 1)[3] > row_at(device, i)[3];

        put_row(device, kept++, row_at(device, i + second));
    }
    device->iteration_count = kept;
}

/* Room for one more row, made by doubling. */
static enum cm_status
reserve_row(struct cm_leak_device *device)
{
    size_t count = device->iteration_count;
    size_t row_bytes = CM_LEAK_ITERATION_NUMBERS * sizeof(int64_t);
    int64_t *larger_rows;

    if (count != 0 && (count < 16 || (count & (count - 1)) != 0)) {
        return CM_OK;
    }
    larger_rows = cm_realloc(device->iterations,
                             (count < 16 ? 16 : 2 * count) * row_bytes);
    if (larger_rows == NULL) {
        return CM_NO_MEMORY;
    }
    device->iterations = larger_rows;
    return CM_OK;
}

enum cm_status
cm_memory_add_iteration(struct cm_leak *leak, struct cm_memory_rows *rows,
                        const char *name, int64_t number, int64_t start,
                        int64_t end, int64_t peak)
{
    int64_t row[CM_LEAK_ITERATION_NUMBERS] = {
        cm_number_known(number), cm_number_known(start), cm_number_known(end),
        cm_number_known(peak)};
    struct cm_leak_device *device = cm_ledger_device(leak, name);
    size_t at = device != NULL ? (size_t)(device - leak->devices) : 0;
    enum cm_status status = device != NULL ? CM_OK : CM_NO_MEMORY;

    if (status != CM_OK) {
        return status;
    }
    rows->step[at] = rows->step[at] != 0 ? rows->step[at] : 1;
    if (rows->seen[at]++ % rows->step[at] != 0) {
        if (row[3] > row_at(device, device->iteration_count - 1)[3]) {
            put_row(device, device->iteration_count - 1, row);
        }
        return CM_OK;
    }
    if (device->iteration_count == CM_MEMORY_MAX_ITERATIONS) {
        thin_rows(device);
        rows->step[at] *= 2;
    }
    status = reserve_row(device);
    if (status == CM_OK) {
        put_row(device, device->iteration_count++, row);
    }
    return status;
}

/* ===== into another document ============================================ */

static enum cm_status
copy_text(const struct cm_leak *from, struct cm_leak *to,
          struct cm_text_id text, struct cm_text_id *result)
{
    const char *bytes = cm_leak_text(from, text);

    *result = (struct cm_text_id){0};
    return bytes[0] != '\0'
               ? cm_texts_add(to->texts, bytes, strlen(bytes), result)
               : CM_OK;
}

static enum cm_status
copy_frame(const struct cm_leak *from, struct cm_leak *to,
           const struct cm_leak_frame *frame, struct cm_leak_frame *result)
{
    const struct cm_text_id texts[] = {frame->filename, frame->name,
                                       frame->source, frame->before,
                                       frame->after};
    struct cm_text_id *ids[] = {&result->filename, &result->name,
                                &result->source, &result->before,
                                &result->after};
    enum cm_status status = CM_OK;

    *result = *frame;
    for (size_t i = 0; status == CM_OK && i < 5; i++) {
        status = copy_text(from, to, texts[i], ids[i]);
    }
    return status;
}

static enum cm_status
copy_site(const struct cm_leak *from, struct cm_leak *to, uint32_t id,
          uint32_t *result)
{
    const struct cm_leak_site *site = cm_leak_site_at(from, id);
    struct cm_leak_site copy = {.user_frame = site->user_frame,
                                .frame_count = site->frame_count};
    enum cm_status status = cm_grow((void **)&to->sites, &to->site_capacity,
                                    to->site_count + 1, sizeof(copy));

    if (status != CM_OK) {
        return status;
    }
    copy.frames = cm_calloc(site->frame_count + 1, sizeof(*copy.frames));
    status = copy.frames != NULL ? CM_OK : CM_NO_MEMORY;
    for (size_t i = 0; status == CM_OK && i < site->frame_count; i++) {
        status = copy_frame(from, to, &site->frames[i], &copy.frames[i]);
    }
    if (status != CM_OK) {
        cm_free(copy.frames);
        return status;
    }
    to->sites[to->site_count++] = copy;
    *result = (uint32_t)to->site_count;
    return CM_OK;
}

/* Tells the ledger of `to` which stacks it has already.  `ids`: the copy of
 * each site of `from`, 0 for those that were not copied. */
static enum cm_status
map_sites(const struct cm_leak *from, struct cm_leak *to, const uint32_t *ids)
{
    size_t count = from->site_map_capacity;
    enum cm_status status =
        cm_grow_zeroed((void **)&to->site_map, &to->site_map_capacity, count,
                       sizeof(to->site_map[0]));

    if (status != CM_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t copy = ids[from->site_map[i]];

        if (copy != 0 && to->site_map[i] == 0) {
            to->site_map[i] = copy;
        }
    }
    return CM_OK;
}

static enum cm_status
copy_held_list(const struct cm_leak *from, struct cm_leak *to, uint32_t *ids)
{
    enum cm_status status = cm_grow((void **)&to->held, &to->held_capacity,
                                    from->held_count, sizeof(to->held[0]));

    for (size_t i = 0; status == CM_OK && i < from->held_count; i++) {
        const struct cm_leak_held *held = &from->held[i];
        struct cm_leak_held *copy = &to->held[i];

        *copy = *held;
        status = copy_text(from, to, held->device, &copy->device);
        if (status == CM_OK) {
            status = copy_text(from, to, held->framework, &copy->framework);
        }
        if (status == CM_OK) {
            status = copy_text(from, to, held->library, &copy->library);
        }
        if (status == CM_OK && held->site != 0 && ids[held->site] == 0) {
            status = copy_site(from, to, held->site, &ids[held->site]);
        }
        copy->site = ids[held->site];
        to->held_count += status == CM_OK;
    }
    return status;
}

/* A copy of `count` items; NULL for none, and *status for no memory. */
static void *
duplicate(const void *items, size_t count, size_t item_bytes,
          enum cm_status *status)
{
    void *copy = count > 0 ? cm_calloc(count, item_bytes) : NULL;

    if (count > 0 && copy == NULL) {
        *status = CM_NO_MEMORY;
    }
    if (copy != NULL) {
        memcpy(copy, items, count * item_bytes);
    }
    return copy;
}

/* The lists of a device, whose names are interned anew. */
static enum cm_status
copy_lists(const struct cm_leak *from, struct cm_leak *to,
           struct cm_leak_device *device)
{
    struct cm_leak_device copy = *device;
    enum cm_status status = CM_OK;

    copy.frameworks = duplicate(device->frameworks, device->framework_count,
                                sizeof(*copy.frameworks), &status);
    copy.pools = duplicate(device->pools, device->pool_count,
                           sizeof(*copy.pools), &status);
    copy.iterations =
        duplicate(device->iterations, device->iteration_count,
                  CM_LEAK_ITERATION_NUMBERS * sizeof(int64_t), &status);
    for (size_t i = 0; status == CM_OK && i < copy.framework_count; i++) {
        status = copy_text(from, to, device->frameworks[i].name,
                           &copy.frameworks[i].name);
    }
    for (size_t i = 0; status == CM_OK && i < copy.pool_count; i++) {
        status =
            copy_text(from, to, device->pools[i].name, &copy.pools[i].name);
    }
    if (status != CM_OK) {
        cm_leak_device_release(&copy);
        return status;
    }
    *device = copy;
    return CM_OK;
}

/* All but what was dead, which is the other document's own. */
static enum cm_status
copy_device(const struct cm_leak *from, struct cm_leak *to,
            const struct cm_leak_device *device)
{
    struct cm_leak_device *result =
        cm_ledger_device(to, cm_leak_text(from, device->name));
    struct cm_leak_device copy = *device;
    enum cm_status status =
        result != NULL ? copy_lists(from, to, &copy) : CM_NO_MEMORY;

    if (status == CM_OK) {
        copy.name = result->name;
        copy.dead_peak = result->dead_peak;
        copy.dead_peak_iteration = result->dead_peak_iteration;
        cm_leak_device_release(result);
        *result = copy;
    }
    return status;
}

enum cm_status
cm_memory_copy(const struct cm_leak *from, struct cm_leak *to)
{
    uint32_t *ids = cm_calloc(from->site_count + 1, sizeof(*ids));
    enum cm_status status = ids != NULL ? CM_OK : CM_NO_MEMORY;

    for (size_t i = 0; status == CM_OK && i < from->device_count; i++) {
        status = copy_device(from, to, &from->devices[i]);
    }
    if (status == CM_OK && from->held_count > 0) {
        status = copy_held_list(from, to, ids);
        if (status == CM_OK) {
            status = map_sites(from, to, ids);
        }
    }
    cm_free(ids);
    return status;
}
