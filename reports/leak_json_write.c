/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The writer of leak.json.  Bytes go straight into a buffer: a tree of the
 * document would cost the traced process ten times its size, and a JSON
 * library's numbers are doubles.  One line an item, so that two reports can be
 * compared line by line.  Follows RFC 8259. */
#include "leak_json.h"

#include <inttypes.h>

#include "exhausted.h"
#include "growth_json.h"
#include "json_write.h"

static void
add_process(struct cm_json_writer *self)
{
    const struct cm_leak *leak = self->leak;

    cm_buffer_addf(self->out, "{\"format\":\"cumem-leak\",\"version\":%d",
                   CM_LEAK_JSON_VERSION);
    self->comma = true;
    cm_json_add_number(self, "pid", leak->pid > 0 ? (uint64_t)leak->pid : 0);
    cm_json_add_known(self, "rank", leak->rank);
    cm_json_add_known(self, "world_size", leak->world_size);
    cm_json_add_text(self, "host", leak->host);
    cm_json_add_text(self, "python", leak->python);
    cm_json_add_text(self, "torch", leak->torch);
    cm_json_add_text(self, "cumem", leak->cumem);
    cm_json_add_known(self, "iteration", leak->iteration);
    cm_json_add_text(self, "interceptor", leak->interceptor);
    cm_json_add_text(self, "allocator_hook", leak->allocator_hook);
    cm_json_add_key(self, "lost");
    cm_buffer_add_char(self->out, '{');
    self->comma = false;
    cm_json_add_number(self, "events", leak->lost_events);
    cm_json_add_number(self, "nodes", leak->lost_nodes);
    cm_json_add_text(self, "reason", leak->lost_reason);
    cm_json_close_item(self);
}

static void
add_frameworks(struct cm_json_writer *self,
               const struct cm_leak_device *device)
{
    if (device->framework_count == 0) {
        return;
    }
    cm_json_add_key(self, "frameworks");
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < device->framework_count; i++) {
        const struct cm_leak_framework *framework = &device->frameworks[i];

        cm_json_open_part(self, i);
        cm_json_add_text(self, "name", framework->name);
        cm_json_add_some_number(self, "allocated", framework->allocated);
        cm_json_add_some_number(self, "reserved", framework->reserved);
        cm_json_close_item(self);
    }
    cm_json_close_array(self);
}

static void
add_pools(struct cm_json_writer *self, const struct cm_leak_device *device)
{
    if (device->pool_count == 0) {
        return;
    }
    cm_json_add_key(self, "pools");
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < device->pool_count; i++) {
        const struct cm_leak_pool *pool = &device->pools[i];

        cm_json_open_part(self, i);
        cm_json_add_text(self, "name", pool->name);
        cm_json_add_some_number(self, "reserved", pool->reserved);
        cm_json_add_some_number(self, "allocated", pool->allocated);
        cm_json_add_some_number(self, "requested", pool->requested);
        cm_json_add_some_number(self, "pending_free", pool->pending_free);
        cm_json_add_some_number(self, "largest_free", pool->largest_free);
        cm_json_add_some_number(self, "segments", pool->segments);
        if (pool->expandable) {
            cm_json_add_flag(self, "expandable", true);
        }
        cm_json_close_item(self);
    }
    cm_json_close_array(self);
}

/* Four numbers an iteration, without their names: there may be thousands. */
static void
add_iterations(struct cm_json_writer *self,
               const struct cm_leak_device *device)
{
    if (device->iteration_count == 0) {
        return;
    }
    cm_json_add_key(self, "iterations");
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < device->iteration_count; i++) {
        cm_buffer_add_text(self->out, i > 0 ? ",[" : "[");
        for (size_t j = 0; j < CM_LEAK_ITERATION_NUMBERS; j++) {
            int64_t number =
                device->iterations[i * CM_LEAK_ITERATION_NUMBERS + j];

            cm_buffer_add_text(self->out, j > 0 ? "," : "");
            if (number < 0) {
                cm_buffer_add_text(self->out, "null");
            }
            else {
                cm_json_add_whole(self, (uint64_t)number);
            }
        }
        cm_buffer_add_char(self->out, ']');
    }
    cm_json_close_array(self);
}

/* What is known of where the device's memory is. */
static void
add_use(struct cm_json_writer *self, const struct cm_leak_device *device)
{
    cm_json_add_some_number(self, "cached", device->cached);
    cm_json_add_some_number(self, "pending_free", device->pending_free);
    cm_json_add_some_number(self, "private_pools", device->private_pools);
    cm_json_add_some_number(self, "outside_frameworks",
                            device->outside_frameworks);
    cm_json_add_some_number(self, "other_processes", device->other_processes);
    cm_json_add_some_number(self, "free", device->free);
    cm_json_add_some_number(self, "largest_free", device->largest_free);
    if (device->asked_bytes > 0) {
        cm_json_add_some_number(self, "asked_bytes", device->asked_bytes);
    }
    if (device->unasked) {
        cm_json_add_flag(self, "unasked", true);
    }
    add_frameworks(self, device);
    add_pools(self, device);
    add_iterations(self, device);
}

static void
add_devices(struct cm_json_writer *self)
{
    cm_json_open_array(self, "devices");
    for (size_t i = 0; i < self->leak->device_count; i++) {
        const struct cm_leak_device *device = &self->leak->devices[i];

        cm_json_open_item(self, i);
        cm_json_add_text(self, "name", device->name);
        cm_json_add_number(self, "total", device->total);
        cm_json_add_number(self, "allocated", device->allocated);
        cm_json_add_number(self, "reserved", device->reserved);
        cm_json_add_number(self, "peak_allocated", device->peak_allocated);
        cm_json_add_number(self, "dead_peak", device->dead_peak);
        cm_json_add_known(self, "dead_peak_iteration",
                          device->dead_peak_iteration);
        add_use(self, device);
        cm_json_close_item(self);
    }
    cm_json_close_array(self);
}

static void
add_sites(struct cm_json_writer *self)
{
    cm_json_open_array(self, "sites");
    for (size_t i = 0; i < self->leak->site_count; i++) {
        const struct cm_leak_site *site = &self->leak->sites[i];

        cm_json_open_item(self, i);
        cm_json_add_number(self, "id", i + 1);
        cm_json_add_frames(self, "frames", site->frames, site->frame_count,
                           false);
        cm_json_add_known(self, "user_frame", site->user_frame);
        cm_json_close_item(self);
    }
    cm_json_close_array(self);
}

static void
add_graph(struct cm_json_writer *self)
{
    cm_json_open_array(self, "vertices");
    for (size_t i = 0; i < self->leak->vertex_count; i++) {
        const struct cm_leak_vertex *vertex = &self->leak->vertices[i];

        cm_json_open_item(self, i);
        cm_json_add_number(self, "id", i + 1);
        cm_json_add_text(self, "annotation", vertex->annotation);
        cm_json_add_text(self, "type", vertex->type);
        cm_json_add_text(self, "kind", vertex->kind);
        cm_json_add_number(self, "bytes", vertex->bytes);
        cm_json_add_known(self, "site",
                          vertex->site > 0 ? (int64_t)vertex->site : -1);
        if (vertex->storage > 0) {
            cm_json_add_number(self, "storage", vertex->storage);
        }
        cm_json_close_item(self);
    }
    cm_json_close_array(self);
    cm_json_open_array(self, "edges");
    for (size_t i = 0; i < self->leak->edge_count; i++) {
        const struct cm_leak_edge *edge = &self->leak->edges[i];

        cm_json_open_item(self, i);
        cm_json_add_number(self, "id", i + 1);
        cm_json_add_text(self, "annotation", edge->annotation);
        cm_json_add_number(self, "tail", edge->tail);
        cm_json_add_number(self, "head", edge->head);
        cm_json_add_text(self, "kind", edge->kind);
        if (edge->made_at_count > 0) {
            cm_json_add_frames(self, "made_at", edge->made_at,
                               edge->made_at_count, true);
        }
        cm_json_close_item(self);
    }
    cm_json_close_array(self);
}

/* What the allocator said of the block that a storage lies in. */
static void
add_block(struct cm_json_writer *self, const struct cm_leak_storage *storage)
{
    cm_json_add_number(self, "block_bytes", storage->block_bytes);
    if (storage->stream >= 0) {
        cm_json_add_hex(self, "stream", (uint64_t)storage->stream);
    }
    else {
        cm_json_add_known(self, "stream", -1);
    }
    cm_json_add_some_text(self, "pool", storage->pool);
    if (storage->thread > 0) {
        cm_json_add_number(self, "thread", storage->thread);
    }
}

static void
add_storages(struct cm_json_writer *self)
{
    cm_json_open_array(self, "storages");
    for (size_t i = 0; i < self->leak->storage_count; i++) {
        const struct cm_leak_storage *storage = &self->leak->storages[i];

        cm_json_open_item(self, i);
        cm_json_add_number(self, "id", i + 1);
        cm_json_add_text(self, "device", storage->device);
        cm_json_add_hex(self, "address", storage->address);
        cm_json_add_number(self, "bytes", storage->bytes);
        add_block(self, storage);
        cm_json_add_known(self, "site",
                          storage->site > 0 ? (int64_t)storage->site : -1);
        cm_json_add_flag(self, "awaited", storage->awaited);
        cm_json_add_text(self, "category", storage->category);
        cm_json_add_ids(self, "names", NULL, 0);
        cm_json_add_ids(self, "vertices", storage->vertices,
                        storage->vertex_count);
        cm_json_close_item(self);
    }
    cm_json_close_array(self);
}

/* Absent where nobody looked. */
static void
add_held(struct cm_json_writer *self)
{
    if (self->leak->held_count == 0) {
        return;
    }
    cm_json_open_array(self, "held");
    for (size_t i = 0; i < self->leak->held_count; i++) {
        const struct cm_leak_held *held = &self->leak->held[i];

        cm_json_open_item(self, i);
        cm_json_add_text(self, "device", held->device);
        cm_json_add_text(self, "framework", held->framework);
        cm_json_add_some_text(self, "library", held->library);
        cm_json_add_known(self, "site",
                          held->site > 0 ? (int64_t)held->site : -1);
        cm_json_add_flag(self, "awaited", held->awaited);
        cm_json_add_number(self, "bytes", held->bytes);
        cm_json_add_number(self, "count", held->count);
        cm_json_close_item(self);
    }
    cm_json_close_array(self);
}

static void
add_shared(struct cm_json_writer *self, const struct cm_leak_cycle *cycle)
{
    cm_json_add_key(self, "shared_with");
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < cycle->shared_count; i++) {
        cm_buffer_add_text(self->out, i > 0 ? "," : "");
        cm_json_add_fingerprint(self, cycle->shared_with[i]);
    }
    cm_buffer_add_char(self->out, ']');
}

/* Seconds with six decimals; printf's comma depends on the user's locale. */
static void
add_time(struct cm_json_writer *self, double time)
{
    uint64_t micro = time > 0 && time < 1e11 ? (uint64_t)(time * 1e6) : 0;

    cm_json_add_key(self, "time");
    cm_buffer_addf(self->out, "%" PRIu64 ".%06" PRIu64, micro / 1000000,
                   micro % 1000000);
}

static void
add_cycle(struct cm_json_writer *self, const struct cm_leak_cycle *cycle)
{
    cm_json_add_key(self, "fingerprint");
    cm_json_add_fingerprint(self, cycle->fingerprint);
    cm_json_add_text(self, "class", cycle->class);
    cm_json_add_ids(self, "vertices", cycle->vertices, cycle->vertex_count);
    cm_json_add_ids(self, "payload", cycle->payload, cycle->payload_count);
    cm_json_add_ids(self, "also_held_elsewhere", cycle->held_elsewhere,
                    cycle->held_elsewhere_count);
    add_shared(self, cycle);
    cm_json_add_number(self, "bytes_each", cycle->bytes_each);
    cm_json_add_number(self, "count", cycle->count);
    cm_json_add_number(self, "peak_bytes", cycle->peak_bytes);
    cm_json_add_number(self, "total_bytes", cycle->total_bytes);
    cm_json_add_known(self, "first_iteration", cycle->first_iteration);
    cm_json_add_known(self, "last_iteration", cycle->last_iteration);
    add_time(self, cycle->time);
    cm_json_add_text(self, "trigger", cycle->trigger);
    cm_json_add_ids(self, "cut", cycle->cut, cycle->cut_count);
    cm_json_add_text(self, "rule", cycle->rule);
    cm_json_add_text(self, "advice", cycle->advice);
    cm_json_add_some_text(self, "no_cut_reason", cycle->no_cut_reason);
    cm_json_add_library(self, cycle->library_package, cycle->library_link);
}

static void
add_collections(struct cm_json_writer *self)
{
    cm_json_open_array(self, "collections");
    for (size_t i = 0; i < self->leak->collection_count; i++) {
        const struct cm_leak_collection *item = &self->leak->collections[i];

        cm_json_open_item(self, i);
        cm_json_add_known(self, "iteration", item->iteration);
        cm_json_add_known(self, "generation", item->generation);
        cm_json_add_number(self, "duration_us", item->duration_us);
        cm_json_add_number(self, "collected", item->collected);
        cm_json_add_number(self, "device_bytes_freed",
                           item->device_bytes_freed);
        cm_json_close_item(self);
    }
    cm_json_close_array(self);
}

enum cm_status
cm_leak_json_write(const struct cm_leak *leak, struct cm_buffer *out)
{
    struct cm_json_writer self = {.leak = leak, .out = out};

    add_process(&self);
    add_devices(&self);
    add_sites(&self);
    add_graph(&self);
    add_storages(&self);
    add_held(&self);
    cm_json_open_array(&self, "cycles");
    for (size_t i = 0; i < leak->cycle_count; i++) {
        cm_json_open_item(&self, i);
        add_cycle(&self, &leak->cycles[i]);
        cm_json_close_item(&self);
    }
    cm_json_close_array(&self);
    cm_growth_write(&self);
    add_collections(&self);
    cm_collector_write(&self);
    cm_looks_write(&self);
    cm_exhausted_write(&self);
    cm_buffer_add_text(out, "}\n");
    return cm_buffer_status(out);
}
