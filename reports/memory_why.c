/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The reason of a failed allocation is the first of a list that fits, in the
 * order in which a person can do something about it; numbers that are not
 * known make none fit.  All of them may be nonsense: differences stop at 0,
 * sums at the largest number. */
#include "memory_why.h"

#include <inttypes.h>
#include <string.h>

#include "../detector/size.h"
#include "growth.h"

/* Less than this in pieces is nobody's reason. */
#define MIN_WASTE ((uint64_t)64 << 20)

/* ===== numbers ========================================================== */

void
cm_memory_add_size(struct cm_buffer *out, const char *before, uint64_t bytes,
                   const char *after)
{
    char size[CM_SIZE_TEXT_BYTES];

    cm_size_format(bytes, size);
    cm_buffer_addf(out, "%s%s%s", before, size, after);
}

bool
cm_memory_is_known(const struct cm_leak_device *device)
{
    return cm_memory_has(device->cached)
           || cm_memory_has(device->outside_frameworks)
           || cm_memory_has(device->other_processes)
           || cm_memory_has(device->free)
           || cm_memory_has(device->largest_free)
           || device->framework_count > 0 || device->pool_count > 0
           || device->asked_bytes > 0;
}

uint64_t
cm_memory_all_cached(const struct cm_leak_device *device)
{
    return cm_memory_has(device->cached)
               ? device->cached
               : cm_memory_beyond(device->reserved, device->allocated);
}

static bool
is_common(const struct cm_leak *leak, const struct cm_leak_pool *pool)
{
    return strcmp(cm_leak_text(leak, pool->name), "common") == 0;
}

/* Free bytes of the pools that only CUDA graphs and MemPools may use. */
static uint64_t
free_in_private(const struct cm_leak *leak,
                const struct cm_leak_device *device)
{
    uint64_t result = 0;

    for (size_t i = 0; i < device->pool_count; i++) {
        const struct cm_leak_pool *pool = &device->pools[i];

        if (!is_common(leak, pool)) {
            result = cm_memory_sum(
                result, cm_memory_beyond(cm_memory_plain(pool->reserved),
                                         cm_memory_plain(pool->allocated)));
        }
    }
    return result;
}

bool
cm_memory_is_fragmented(const struct cm_leak_pool *pool)
{
    uint64_t waste;

    if (!cm_memory_has(pool->reserved) || !cm_memory_has(pool->allocated)
        || !cm_memory_has(pool->largest_free)) {
        return false;
    }
    waste =
        cm_memory_beyond(cm_memory_beyond(pool->reserved, pool->allocated),
                         cm_memory_sum(pool->largest_free,
                                       cm_memory_plain(pool->pending_free)));
    return waste >= MIN_WASTE && waste >= pool->reserved / 20;
}

/* The pool that everybody shares, NULL when it is not known. */
static const struct cm_leak_pool *
common_pool(const struct cm_leak *leak, const struct cm_leak_device *device)
{
    for (size_t i = 0; i < device->pool_count; i++) {
        if (is_common(leak, &device->pools[i])) {
            return &device->pools[i];
        }
    }
    return NULL;
}

bool
cm_memory_is_torch(const struct cm_leak *leak,
                   const struct cm_leak_framework *framework)
{
    return strcmp(cm_leak_text(leak, framework->name), "torch") == 0;
}

uint64_t
cm_memory_cached(const struct cm_leak *leak,
                 const struct cm_leak_device *device,
                 const struct cm_leak_framework *framework)
{
    uint64_t pending = cm_memory_is_torch(leak, framework)
                           ? cm_memory_plain(device->pending_free)
                           : 0;

    if (!cm_memory_has(framework->reserved)
        || !cm_memory_has(framework->allocated)) {
        return CM_LEAK_UNKNOWN;
    }
    return cm_memory_beyond(
        cm_memory_beyond(framework->reserved, framework->allocated), pending);
}

static bool
has_torch(const struct cm_leak *leak, const struct cm_leak_device *device)
{
    for (size_t i = 0; i < device->framework_count; i++) {
        if (cm_memory_is_torch(leak, &device->frameworks[i])) {
            return true;
        }
    }
    return device->framework_count == 0;
}

/* ===== why it failed ==================================================== */

void
cm_memory_add_pool(const struct cm_leak_pool *pool, struct cm_buffer *out)
{
    char size[CM_SIZE_TEXT_BYTES];
    size_t start = out->length;

    if (cm_memory_has(pool->segments)) {
        cm_buffer_addf(out, "%" PRIu64 " segment%s", pool->segments,
                       pool->segments == 1 ? "" : "s");
    }
    if (cm_memory_plain(pool->reserved) > 0
        && cm_memory_has(pool->allocated)) {
        double part = (double)pool->allocated / (double)pool->reserved;

        cm_buffer_addf(out, "%s%d %% used", out->length > start ? ", " : "",
                       part < 1 ? (int)(100 * part) : 100);
    }
    if (cm_memory_has(pool->requested) && cm_memory_has(pool->allocated)) {
        cm_size_format_of(pool->requested, pool->allocated, size);
        cm_buffer_addf(out, "%s%s requested", out->length > start ? ", " : "",
                       size);
    }
}

/* What a reason is decided by, and where it is said. */
struct reason {
    const struct cm_leak *leak;
    const struct cm_leak_device *device;
    uint64_t asked, cached, in_private;
    struct cm_buffer *why, *fix;
};

static bool
is_too_large(const struct reason *self)
{
    if (self->device->total == 0 || self->asked <= self->device->total) {
        return false;
    }
    cm_memory_add_size(self->why, "more than the device has, which is ",
                       self->device->total, "");
    cm_buffer_add_text(self->fix, "make that tensor smaller, or split it");
    return true;
}

/* Who has segments that grow needs another way out. */
static const char *
way_out_of_pieces(const struct reason *self, const struct cm_leak_pool *pool)
{
    if (!has_torch(self->leak, self->device)) {
        return "allocate the largest arrays first, or empty the cache before";
    }
    return pool != NULL && pool->expandable
               ? "expandable segments are on already: allocate what lives "
                 "long first, and pad batches to few sizes"
               : "run with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
}

static void
say_fragmented(const struct reason *self, uint64_t largest)
{
    const struct cm_leak_pool *pool = common_pool(self->leak, self->device);

    cm_memory_add_size(self->why, "",
                       cm_memory_beyond(self->cached, self->in_private),
                       " cached in pieces of at most ");
    cm_memory_add_size(self->why, "", largest, ": fragmented");
    if (pool != NULL) {
        cm_buffer_add_text(self->why, "; common pool: ");
        cm_memory_add_pool(pool, self->why);
    }
    cm_buffer_add_text(self->fix, way_out_of_pieces(self, pool));
}

static bool
is_in_pieces(const struct reason *self)
{
    const struct cm_leak_device *device = self->device;
    const struct cm_leak_pool *pool = common_pool(self->leak, device);
    uint64_t largest = device->largest_free;

    if (pool != NULL && cm_memory_has(pool->largest_free)) {
        largest = pool->largest_free;
    }
    if (!cm_memory_has(largest) || largest >= self->asked
        || cm_memory_beyond(self->cached, self->in_private) < self->asked) {
        return false;
    }
    say_fragmented(self, largest);
    return true;
}

static bool
is_pending(const struct reason *self)
{
    uint64_t pending = cm_memory_plain(self->device->pending_free);

    if (pending == 0 || pending < self->asked) {
        return false;
    }
    cm_memory_add_size(
        self->why, "", pending,
        " is freed, but a stream that it was recorded for still uses it");
    cm_buffer_add_text(self->fix, "wait for that stream before you allocate "
                                  "(torch.cuda.Stream.synchronize)");
    return true;
}

static bool
is_private(const struct reason *self)
{
    if (self->in_private == 0 || self->in_private < self->asked) {
        return false;
    }
    cm_memory_add_size(
        self->why, "", self->in_private,
        " is free, but in private pools of CUDA graphs or MemPools");
    cm_buffer_add_text(self->fix, "let the graphs share a pool "
                                  "(torch.cuda.graph(..., pool=...))");
    return true;
}

/* A free block is large enough: what keeps it is not in its size. */
static bool
is_refused(const struct reason *self)
{
    uint64_t largest = cm_memory_plain(self->device->largest_free);

    if (largest < self->asked) {
        return false;
    }
    cm_memory_add_size(
        self->why, "a block of ", largest,
        " is free, but for another stream or pool, or over a limit");
    cm_buffer_add_text(self->fix, "allocate on one stream; look for "
                                  "set_per_process_memory_fraction()");
    return true;
}

/* What is free on the device is far more than was asked for. */
static bool
has_limit(const struct reason *self)
{
    uint64_t free = cm_memory_plain(self->device->free);

    return free / 2 >= self->asked && free >= self->device->total / 20;
}

static bool
is_dead(const struct reason *self)
{
    uint64_t dead = self->device->dead_peak;
    /* Which a process at its limit cannot have. */
    uint64_t free = has_limit(self) ? 0 : cm_memory_plain(self->device->free);

    if (dead == 0
        || cm_memory_sum(cm_memory_sum(dead, free), self->cached)
               < self->asked) {
        return false;
    }
    cm_memory_add_size(self->why,
                       cm_leak_is_partial(self->leak) ? "at least " : "up to ",
                       dead, " of what is allocated was dead");
    cm_buffer_add_text(self->fix, "cut the dead cycles named here");
    return true;
}

/* Live bytes of the leaks on this device. */
static uint64_t
leaked_on(const struct cm_leak *leak, struct cm_text_id device)
{
    uint64_t result = 0;

    for (size_t i = 0; i < leak->growth_count; i++) {
        const struct cm_leak_growth *growth = &leak->growth[i];

        if (growth->device.index == device.index
            && cm_growth_verdict(leak, growth) == CM_GROWTH_LEAK) {
            result = cm_memory_sum(result, growth->bytes);
        }
    }
    return result;
}

static bool
is_leaked(const struct reason *self)
{
    uint64_t leaked = leaked_on(self->leak, self->device->name);

    if (leaked < self->asked || leaked < self->device->total / 10) {
        return false;
    }
    cm_memory_add_size(self->why, "", leaked,
                       " of what is allocated is what grows");
    cm_buffer_add_text(self->fix, "mend the leaks named here");
    return true;
}

static bool
is_limited(const struct reason *self)
{
    if (!has_limit(self)) {
        return false;
    }
    cm_memory_add_size(self->why, "", cm_memory_plain(self->device->free),
                       " is free on the device: a limit of this process");
    cm_buffer_add_text(self->fix, "a smaller batch; look for "
                                  "set_per_process_memory_fraction()");
    return true;
}

static bool
is_taken_by_others(const struct reason *self)
{
    uint64_t others = cm_memory_plain(self->device->other_processes);

    if (others == 0
        || cm_memory_sum(others, cm_memory_plain(self->device->free))
               < self->asked
        || others < self->device->total / 20) {
        return false;
    }
    cm_memory_add_size(self->why, "other processes hold ", others,
                       " of this device");
    cm_buffer_add_text(self->fix,
                       "stop them or choose another device (nvidia-smi)");
    return true;
}

static bool
is_outside(const struct reason *self)
{
    uint64_t outside = cm_memory_plain(self->device->outside_frameworks);

    if (outside < self->asked || outside < self->device->total / 10) {
        return false;
    }
    cm_memory_add_size(self->why, "this process holds ", outside,
                       " outside the frameworks (context, NCCL, libraries)");
    cm_buffer_add_text(self->fix,
                       "CUMEM_DRIVER=1 tells which library allocates it");
    return true;
}

static void
say_in_use(const struct reason *self)
{
    if (cm_memory_has(self->device->free)) {
        cm_memory_add_size(self->why, "", self->cached, " cached and ");
        cm_memory_add_size(self->why, "", self->device->free,
                           " free: the rest is in use");
    }
    else {
        cm_memory_add_size(self->why, "", self->cached,
                           " cached: the rest is in use");
    }
    cm_buffer_add_text(self->fix,
                       "a smaller batch, or torch.utils.checkpoint");
}

int
cm_memory_why(const struct cm_leak *leak, const struct cm_leak_device *device,
              struct cm_buffer *why, struct cm_buffer *fix)
{
    static bool (*const reasons[])(const struct reason *) = {
        is_too_large,       is_in_pieces, is_pending, is_private,
        is_refused,         is_dead,      is_leaked,  is_limited,
        is_taken_by_others, is_outside};
    struct reason self = {.leak = leak,
                          .device = device,
                          .asked = device->asked_bytes,
                          .cached = cm_memory_all_cached(device),
                          .in_private = free_in_private(leak, device),
                          .why = why,
                          .fix = fix};
    const struct cm_leak_pool *pool = common_pool(leak, device);
    const size_t count = sizeof(reasons) / sizeof(reasons[0]);
    size_t i = 0;

    if (self.asked == 0) {
        if (pool != NULL && cm_memory_is_fragmented(pool)) {
            say_fragmented(&self, pool->largest_free);
        }
        return 0;
    }
    cm_memory_add_size(why, "", self.asked, " asked, ");
    while (i < count && !reasons[i](&self)) {
        i++;
    }
    if (i == count) {
        say_in_use(&self);
    }
    return (int)i + 1;
}
