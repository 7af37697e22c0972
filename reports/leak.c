/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The document's life cycle, its check and its order.  The check is linear in
 * the document and is what makes every later walk over it safe: who reads a
 * checked document need not ask whether an id exists. */
#include "leak.h"

#include <stdlib.h> // qsort()

#include "../detector/alloc.h"
#include "fault.h"
#include "growth.h"

#define MAX_TEXT_BYTES ((size_t)512 << 20)

enum cm_status
cm_leak_init(struct cm_leak *self)
{
    self->texts = cm_texts_new(MAX_TEXT_BYTES);
    if (self->texts == NULL) {
        return CM_NO_MEMORY;
    }
    self->rank = -1;
    self->world_size = -1;
    self->iteration = self->growth_iteration = -1;
    return CM_OK;
}

void
cm_leak_cycle_release(struct cm_leak_cycle *self)
{
    cm_free(self->vertices);
    cm_free(self->payload);
    cm_free(self->held_elsewhere);
    cm_free(self->shared_with);
    cm_free(self->cut);
}

void
cm_leak_device_init(struct cm_leak_device *self)
{
    *self = (struct cm_leak_device){.cached = CM_LEAK_UNKNOWN,
                                    .pending_free = CM_LEAK_UNKNOWN,
                                    .private_pools = CM_LEAK_UNKNOWN,
                                    .outside_frameworks = CM_LEAK_UNKNOWN,
                                    .other_processes = CM_LEAK_UNKNOWN,
                                    .free = CM_LEAK_UNKNOWN,
                                    .largest_free = CM_LEAK_UNKNOWN,
                                    .dead_peak_iteration = -1};
}

void
cm_leak_device_release(struct cm_leak_device *self)
{
    cm_free(self->frameworks);
    cm_free(self->pools);
    cm_free(self->iterations);
}

void
cm_leak_growth_release(struct cm_leak_growth *self)
{
    cm_free(self->holder);
    cm_free(self->made_at);
    cm_free(self->series);
    cm_free(self->names);
}

void
cm_leak_timeline_device_release(struct cm_leak_timeline_device *self)
{
    cm_free(self->categories);
    cm_free(self->iterations);
    cm_free(self->seconds);
    cm_free(self->bytes);
}

void
cm_leak_timeline_release(struct cm_leak_timeline *self)
{
    for (size_t i = 0; i < self->device_count; i++) {
        cm_leak_timeline_device_release(&self->devices[i]);
    }
    cm_free(self->devices);
    *self = (struct cm_leak_timeline){0};
}

void
cm_leak_release(struct cm_leak *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->device_count; i++) {
        cm_leak_device_release(&self->devices[i]);
    }
    for (size_t i = 0; i < self->cycle_count; i++) {
        cm_leak_cycle_release(&self->cycles[i]);
    }
    cm_free(self->cycles);
    for (size_t i = 0; i < self->growth_count; i++) {
        cm_leak_growth_release(&self->growth[i]);
    }
    cm_free(self->growth);
    cm_leak_timeline_release(&self->timeline);
    for (size_t i = 0; i < self->site_count; i++) {
        cm_free(self->sites[i].frames);
    }
    for (size_t i = 0; i < self->edge_count; i++) {
        cm_free(self->edges[i].made_at);
    }
    for (size_t i = 0; i < self->storage_count; i++) {
        cm_free(self->storages[i].vertices);
    }
    cm_free(self->sites);
    cm_free(self->vertices);
    cm_free(self->edges);
    cm_free(self->storages);
    cm_free(self->collections);
    cm_free(self->devices);
    cm_free(self->held);
    cm_free(self->source_path);
    cm_free(self->site_map);
    cm_texts_free(self->texts);
    *self = (struct cm_leak){0};
}

/* Whether all ids are in 1..limit. */
static bool
ids_exist(const uint32_t *ids, size_t count, size_t limit)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] == 0 || ids[i] > limit) {
            return false;
        }
    }
    return true;
}

static const char *
check_graph(const struct cm_leak *self)
{
    for (size_t i = 0; i < self->vertex_count; i++) {
        if (self->vertices[i].site > self->site_count) {
            return "a vertex names a site that does not exist";
        }
        if (self->vertices[i].storage > self->storage_count) {
            return "a vertex names a storage that does not exist";
        }
    }
    for (size_t i = 0; i < self->edge_count; i++) {
        if (!ids_exist(&self->edges[i].tail, 1, self->vertex_count)
            || !ids_exist(&self->edges[i].head, 1, self->vertex_count)) {
            return "an edge names a vertex that does not exist";
        }
    }
    return NULL;
}

static const char *
check_storages(const struct cm_leak *self)
{
    for (size_t i = 0; i < self->storage_count; i++) {
        const struct cm_leak_storage *storage = &self->storages[i];

        if (storage->site > self->site_count) {
            return "a storage names a site that does not exist";
        }
        if (!ids_exist(storage->vertices, storage->vertex_count,
                       self->vertex_count)) {
            return "a storage names a vertex that does not exist";
        }
    }
    for (size_t i = 0; i < self->site_count; i++) {
        const struct cm_leak_site *site = &self->sites[i];

        if (site->user_frame < -1
            || (site->user_frame >= 0
                && (size_t)site->user_frame >= site->frame_count)) {
            return "a site's user frame does not exist";
        }
    }
    return NULL;
}

static const char *
check_memory(const struct cm_leak *self)
{
    for (size_t i = 0; i < self->held_count; i++) {
        if (self->held[i].site > self->site_count) {
            return "what is held names a site that does not exist";
        }
    }
    for (size_t i = 0; i < self->device_count; i++) {
        const struct cm_leak_device *device = &self->devices[i];

        if ((device->frameworks == NULL && device->framework_count > 0)
            || (device->pools == NULL && device->pool_count > 0)
            || (device->iterations == NULL && device->iteration_count > 0)) {
            return "a device counts what it does not have";
        }
    }
    return NULL;
}

static const char *
check_growth(const struct cm_leak *self, const struct cm_leak_growth *growth)
{
    if (growth->site > self->site_count) {
        return "growth names a site that does not exist";
    }
    if (growth->holder_at > 0 && growth->holder_at >= growth->holder_count) {
        return "growth piles up at a holder that does not exist";
    }
    if ((growth->holder == NULL && growth->holder_count > 0)
        || (growth->made_at == NULL && growth->made_at_count > 0)
        || (growth->series == NULL && growth->series_count > 0)
        || (growth->names == NULL && growth->name_count > 0)) {
        return "growth counts what it does not have";
    }
    if (cm_growth_verdict(self, growth) == CM_GROWTH_NO_VERDICT) {
        return "growth has a verdict that does not exist";
    }
    for (size_t i = 1; i < growth->series_count; i++) {
        if (growth->series[i][0] < growth->series[i - 1][0]) {
            return "the iterations of growth fall";
        }
    }
    return NULL;
}

static const char *
check_timeline(const struct cm_leak_timeline *self)
{
    for (size_t i = 0; i < self->device_count; i++) {
        const struct cm_leak_timeline_device *device = &self->devices[i];

        if (device->category_count > CM_LEAK_MAX_CATEGORIES
            || (device->category_count == 0 && device->point_count > 0)
            || (device->point_count > 0
                && (device->iterations == NULL || device->seconds == NULL
                    || device->bytes == NULL))) {
            return "the timeline counts what it does not have";
        }
        for (size_t j = 1; j < device->point_count; j++) {
            if (device->iterations[j] < device->iterations[j - 1]
                || device->seconds[j] < device->seconds[j - 1]) {
                return "the iterations of the timeline fall";
            }
        }
    }
    return NULL;
}

const char *
cm_leak_check(const struct cm_leak *self)
{
    const char *fault = check_graph(self);

    fault = fault ? fault : check_storages(self);
    fault = fault ? fault : check_memory(self);
    fault = fault ? fault : check_timeline(&self->timeline);
    for (size_t i = 0; fault == NULL && i < self->growth_count; i++) {
        fault = check_growth(self, &self->growth[i]);
    }
    for (size_t i = 0; fault == NULL && i < self->cycle_count; i++) {
        const struct cm_leak_cycle *cycle = &self->cycles[i];

        if (!ids_exist(cycle->vertices, cycle->vertex_count,
                       self->vertex_count)) {
            fault = "a cycle names a vertex that does not exist";
        }
        else if (!ids_exist(cycle->payload, cycle->payload_count,
                            self->storage_count)
                 || !ids_exist(cycle->held_elsewhere,
                               cycle->held_elsewhere_count,
                               self->storage_count)) {
            fault = "a cycle names a storage that does not exist";
        }
        else if (!ids_exist(cycle->cut, cycle->cut_count, self->edge_count)) {
            fault = "a cycle names an edge that does not exist";
        }
    }
    return fault;
}

static int
by_peak(const void *first, const void *second)
{
    const struct cm_leak_cycle *a = first, *b = second;

    if (a->peak_bytes != b->peak_bytes) {
        return a->peak_bytes > b->peak_bytes ? -1 : 1;
    }
    if (a->fingerprint != b->fingerprint) {
        return a->fingerprint < b->fingerprint ? -1 : 1;
    }
    return 0;
}

static int
by_bytes(const void *first, const void *second)
{
    const struct cm_leak_held *a = first, *b = second;

    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    if (a->site != b->site) {
        return a->site < b->site ? -1 : 1;
    }
    if (a->library.index != b->library.index) {
        return a->library.index < b->library.index ? -1 : 1;
    }
    return a->device.index < b->device.index
               ? -1
               : a->device.index > b->device.index;
}

void
cm_leak_sort(struct cm_leak *self)
{
    if (self->held_count > 1) {
        qsort(self->held, self->held_count, sizeof(self->held[0]), by_bytes);
    }
    if (self->cycle_count > 1) {
        qsort(self->cycles, self->cycle_count, sizeof(self->cycles[0]),
              by_peak);
    }
    cm_faults_sort(self);
}

static bool
is_of_the_user(const struct cm_leak *self, uint32_t site)
{
    return site != 0 && cm_leak_site_at(self, site)->user_frame >= 0;
}

const struct cm_leak_edge *
cm_leak_known_cut(const struct cm_leak *self,
                  const struct cm_leak_cycle *cycle)
{
    const struct cm_leak_edge *edge =
        cycle->cut_count > 0 ? cm_leak_edge_at(self, cycle->cut[0]) : NULL;

    return edge != NULL && edge->made_at_count > 0 ? edge : NULL;
}

const struct cm_leak_cycle *
cm_leak_cycle_of(const struct cm_leak *self, uint64_t fingerprint)
{
    for (size_t i = 0; i < self->cycle_count; i++) {
        if (self->cycles[i].fingerprint == fingerprint) {
            return &self->cycles[i];
        }
    }
    return NULL;
}

uint32_t
cm_leak_alloc_site(const struct cm_leak *self, uint32_t storage,
                   uint32_t vertex)
{
    uint32_t own = storage != 0 ? cm_leak_storage_at(self, storage)->site : 0;
    uint32_t made = vertex != 0 ? cm_leak_vertex_at(self, vertex)->site : 0;

    if (own == 0
        || (!is_of_the_user(self, own) && is_of_the_user(self, made))) {
        return made;
    }
    return own;
}

static void
forget_looks(struct cm_leak *leak)
{
    leak->growth_iteration = -1;
    for (size_t i = 0; i < leak->growth_count; i++) {
        leak->growth[i].holder_iteration = -1;
    }
}

void
cm_leak_set_iteration(struct cm_leak *leak, int64_t value)
{
    for (size_t i = 0; value < leak->iteration && i < leak->cycle_count; i++) {
        leak->cycles[i].first_iteration = leak->cycles[i].last_iteration = -1;
    }
    for (size_t i = 0; value < leak->iteration && i < leak->device_count;
         i++) {
        leak->devices[i].dead_peak_iteration = -1;
    }
    if (value < leak->iteration) {
        forget_looks(leak);
    }
    leak->iteration = value;
}
