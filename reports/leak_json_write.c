/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The writer of leak.json.  Bytes go straight into a buffer: a tree of the
 * document would cost the traced process ten times its size, and a JSON
 * library's numbers are doubles.  One line an item, so that two reports can be
 * compared line by line.  Follows RFC 8259. */
#include "leak_json.h"

#include <inttypes.h>

struct writer {
    const struct cm_leak *leak;
    struct cm_buffer *out;
    bool comma; /* an item of this object or array stands before */
};

static void
add_string(struct writer *self, const char *text)
{
    struct cm_buffer *out = self->out;
    const char *plain = text;

    cm_buffer_add_char(out, '"');
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7F) {
            continue;
        }
        cm_buffer_add(out, plain, (size_t)(text - plain));
        plain = text + 1;
        if (c == '"' || c == '\\') {
            cm_buffer_addf(out, "\\%c", c);
        }
        else {
            cm_buffer_addf(out, "\\u%04x", c);
        }
    }
    cm_buffer_add(out, plain, (size_t)(text - plain));
    cm_buffer_add_char(out, '"');
}

/* In decimal.  printf, which formats twice here, took half of the writer's
 * time, and a page for an observer is made inside the collection. */
static void
add_whole(struct writer *self, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    cm_buffer_add(self->out, digits + at, sizeof(digits) - at);
}

/* Separates it from what stands before, and opens the value of `key`. */
static void
add_key(struct writer *self, const char *key)
{
    cm_buffer_add_text(self->out, self->comma ? ",\"" : "\"");
    cm_buffer_add_text(self->out, key);
    cm_buffer_add_text(self->out, "\":");
    self->comma = true;
}

static void
add_text(struct writer *self, const char *key, struct cm_text_id text)
{
    add_key(self, key);
    add_string(self, cm_leak_text(self->leak, text));
}

/* As add_text, nothing for an empty text. */
static void
add_some_text(struct writer *self, const char *key, struct cm_text_id text)
{
    if (cm_leak_text(self->leak, text)[0] != '\0') {
        add_text(self, key, text);
    }
}

static void
add_number(struct writer *self, const char *key, uint64_t number)
{
    add_key(self, key);
    add_whole(self, number);
}

/* Nothing when it is not known. */
static void
add_some_number(struct writer *self, const char *key, uint64_t number)
{
    if (number != CM_LEAK_UNKNOWN) {
        add_number(self, key, number);
    }
}

/* null when it is not known. */
static void
add_known(struct writer *self, const char *key, int64_t number)
{
    add_key(self, key);
    if (number < 0) {
        cm_buffer_add_text(self->out, "null");
    }
    else {
        add_whole(self, (uint64_t)number);
    }
}

/* A JSON number is a double: addresses and fingerprints are texts. */
static void
add_hex(struct writer *self, const char *key, uint64_t number)
{
    add_key(self, key);
    cm_buffer_addf(self->out, "\"0x%" PRIx64 "\"", number);
}

static void
add_ids(struct writer *self, const char *key, const uint32_t *ids,
        size_t count)
{
    add_key(self, key);
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < count; i++) {
        cm_buffer_add_text(self->out, i > 0 ? "," : "");
        add_whole(self, ids[i]);
    }
    cm_buffer_add_char(self->out, ']');
}

static void
open_array(struct writer *self, const char *key)
{
    cm_buffer_add_text(self->out, ",\n");
    self->comma = false;
    add_key(self, key);
    cm_buffer_add_char(self->out, '[');
    self->comma = false;
}

static void
close_array(struct writer *self)
{
    cm_buffer_add_char(self->out, ']');
    self->comma = true;
}

/* Opens an item of one of the document's arrays, on a line of its own. */
static void
open_item(struct writer *self, size_t position)
{
    cm_buffer_add_text(self->out, position > 0 ? ",\n{" : "\n{");
    self->comma = false;
}

static void
close_item(struct writer *self)
{
    cm_buffer_add_char(self->out, '}');
    self->comma = true;
}

static void
add_frames(struct writer *self, const char *key,
           const struct cm_leak_frame *frames, size_t count, bool places)
{
    add_key(self, key);
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < count; i++) {
        const struct cm_leak_frame *frame = &frames[i];

        cm_buffer_add_text(self->out, i > 0 ? ",{" : "{");
        self->comma = false;
        add_text(self, "filename", frame->filename);
        add_number(self, "line", frame->line);
        add_text(self, "name", frame->name);
        add_text(self, "source", frame->source);
        add_some_text(self, "before", frame->before);
        add_some_text(self, "after", frame->after);
        if (frame->library) {
            add_key(self, "library");
            cm_buffer_add_text(self->out, "true");
        }
        if (places) {
            add_key(self, "certain");
            cm_buffer_add_text(self->out, frame->certain ? "true" : "false");
        }
        cm_buffer_add_char(self->out, '}');
        self->comma = true;
    }
    cm_buffer_add_char(self->out, ']');
}

static void
add_process(struct writer *self)
{
    const struct cm_leak *leak = self->leak;

    cm_buffer_addf(self->out, "{\"format\":\"cumem-leak\",\"version\":%d",
                   CM_LEAK_JSON_VERSION);
    self->comma = true;
    add_number(self, "pid", leak->pid > 0 ? (uint64_t)leak->pid : 0);
    add_known(self, "rank", leak->rank);
    add_known(self, "world_size", leak->world_size);
    add_text(self, "host", leak->host);
    add_text(self, "python", leak->python);
    add_text(self, "torch", leak->torch);
    add_text(self, "cumem", leak->cumem);
    add_known(self, "iteration", leak->iteration);
    add_text(self, "interceptor", leak->interceptor);
    add_text(self, "allocator_hook", leak->allocator_hook);
    add_key(self, "lost");
    cm_buffer_add_char(self->out, '{');
    self->comma = false;
    add_number(self, "events", leak->lost_events);
    add_number(self, "nodes", leak->lost_nodes);
    add_text(self, "reason", leak->lost_reason);
    close_item(self);
}

/* Opens an item of an array within an item. */
static void
open_part(struct writer *self, size_t position)
{
    cm_buffer_add_text(self->out, position > 0 ? ",{" : "{");
    self->comma = false;
}

static void
add_frameworks(struct writer *self, const struct cm_leak_device *device)
{
    if (device->framework_count == 0) {
        return;
    }
    add_key(self, "frameworks");
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < device->framework_count; i++) {
        const struct cm_leak_framework *framework = &device->frameworks[i];

        open_part(self, i);
        add_text(self, "name", framework->name);
        add_some_number(self, "allocated", framework->allocated);
        add_some_number(self, "reserved", framework->reserved);
        close_item(self);
    }
    close_array(self);
}

static void
add_pools(struct writer *self, const struct cm_leak_device *device)
{
    if (device->pool_count == 0) {
        return;
    }
    add_key(self, "pools");
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < device->pool_count; i++) {
        const struct cm_leak_pool *pool = &device->pools[i];

        open_part(self, i);
        add_text(self, "name", pool->name);
        add_some_number(self, "reserved", pool->reserved);
        add_some_number(self, "allocated", pool->allocated);
        add_some_number(self, "requested", pool->requested);
        add_some_number(self, "pending_free", pool->pending_free);
        add_some_number(self, "largest_free", pool->largest_free);
        add_some_number(self, "segments", pool->segments);
        close_item(self);
    }
    close_array(self);
}

/* Four numbers an iteration, without their names: there may be thousands. */
static void
add_iterations(struct writer *self, const struct cm_leak_device *device)
{
    if (device->iteration_count == 0) {
        return;
    }
    add_key(self, "iterations");
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
                add_whole(self, (uint64_t)number);
            }
        }
        cm_buffer_add_char(self->out, ']');
    }
    close_array(self);
}

/* What is known of where the device's memory is. */
static void
add_use(struct writer *self, const struct cm_leak_device *device)
{
    add_some_number(self, "cached", device->cached);
    add_some_number(self, "pending_free", device->pending_free);
    add_some_number(self, "private_pools", device->private_pools);
    add_some_number(self, "outside_frameworks", device->outside_frameworks);
    add_some_number(self, "other_processes", device->other_processes);
    add_some_number(self, "free", device->free);
    add_some_number(self, "largest_free", device->largest_free);
    if (device->asked_bytes > 0) {
        add_some_number(self, "asked_bytes", device->asked_bytes);
    }
    add_frameworks(self, device);
    add_pools(self, device);
    add_iterations(self, device);
}

static void
add_devices(struct writer *self)
{
    open_array(self, "devices");
    for (size_t i = 0; i < self->leak->device_count; i++) {
        const struct cm_leak_device *device = &self->leak->devices[i];

        open_item(self, i);
        add_text(self, "name", device->name);
        add_number(self, "total", device->total);
        add_number(self, "allocated", device->allocated);
        add_number(self, "reserved", device->reserved);
        add_number(self, "peak_allocated", device->peak_allocated);
        add_number(self, "dead_peak", device->dead_peak);
        add_known(self, "dead_peak_iteration", device->dead_peak_iteration);
        add_use(self, device);
        close_item(self);
    }
    close_array(self);
}

static void
add_sites(struct writer *self)
{
    open_array(self, "sites");
    for (size_t i = 0; i < self->leak->site_count; i++) {
        const struct cm_leak_site *site = &self->leak->sites[i];

        open_item(self, i);
        add_number(self, "id", i + 1);
        add_frames(self, "frames", site->frames, site->frame_count, false);
        add_known(self, "user_frame", site->user_frame);
        close_item(self);
    }
    close_array(self);
}

static void
add_graph(struct writer *self)
{
    open_array(self, "vertices");
    for (size_t i = 0; i < self->leak->vertex_count; i++) {
        const struct cm_leak_vertex *vertex = &self->leak->vertices[i];

        open_item(self, i);
        add_number(self, "id", i + 1);
        add_text(self, "annotation", vertex->annotation);
        add_text(self, "type", vertex->type);
        add_text(self, "kind", vertex->kind);
        add_number(self, "bytes", vertex->bytes);
        add_known(self, "site", vertex->site > 0 ? (int64_t)vertex->site : -1);
        if (vertex->storage > 0) {
            add_number(self, "storage", vertex->storage);
        }
        close_item(self);
    }
    close_array(self);
    open_array(self, "edges");
    for (size_t i = 0; i < self->leak->edge_count; i++) {
        const struct cm_leak_edge *edge = &self->leak->edges[i];

        open_item(self, i);
        add_number(self, "id", i + 1);
        add_text(self, "annotation", edge->annotation);
        add_number(self, "tail", edge->tail);
        add_number(self, "head", edge->head);
        add_text(self, "kind", edge->kind);
        if (edge->made_at_count > 0) {
            add_frames(self, "made_at", edge->made_at, edge->made_at_count,
                       true);
        }
        close_item(self);
    }
    close_array(self);
}

/* What the allocator said of the block that a storage lies in. */
static void
add_block(struct writer *self, const struct cm_leak_storage *storage)
{
    add_number(self, "block_bytes", storage->block_bytes);
    if (storage->stream >= 0) {
        add_hex(self, "stream", (uint64_t)storage->stream);
    }
    else {
        add_known(self, "stream", -1);
    }
    add_some_text(self, "pool", storage->pool);
    if (storage->thread > 0) {
        add_number(self, "thread", storage->thread);
    }
}

static void
add_awaited(struct writer *self, bool awaited)
{
    if (awaited) {
        add_key(self, "awaited");
        cm_buffer_add_text(self->out, "true");
    }
}

static void
add_storages(struct writer *self)
{
    open_array(self, "storages");
    for (size_t i = 0; i < self->leak->storage_count; i++) {
        const struct cm_leak_storage *storage = &self->leak->storages[i];

        open_item(self, i);
        add_number(self, "id", i + 1);
        add_text(self, "device", storage->device);
        add_hex(self, "address", storage->address);
        add_number(self, "bytes", storage->bytes);
        add_block(self, storage);
        add_known(self, "site",
                  storage->site > 0 ? (int64_t)storage->site : -1);
        add_awaited(self, storage->awaited);
        add_text(self, "category", storage->category);
        add_ids(self, "names", NULL, 0);
        add_ids(self, "vertices", storage->vertices, storage->vertex_count);
        close_item(self);
    }
    close_array(self);
}

/* Absent where nobody looked. */
static void
add_held(struct writer *self)
{
    if (self->leak->held_count == 0) {
        return;
    }
    open_array(self, "held");
    for (size_t i = 0; i < self->leak->held_count; i++) {
        const struct cm_leak_held *held = &self->leak->held[i];

        open_item(self, i);
        add_text(self, "device", held->device);
        add_text(self, "framework", held->framework);
        add_some_text(self, "library", held->library);
        add_known(self, "site", held->site > 0 ? (int64_t)held->site : -1);
        add_awaited(self, held->awaited);
        add_number(self, "bytes", held->bytes);
        add_number(self, "count", held->count);
        close_item(self);
    }
    close_array(self);
}

static void
add_fingerprint(struct writer *self, uint64_t fingerprint)
{
    cm_buffer_addf(self->out, "\"%016" PRIx64 "\"", fingerprint);
}

static void
add_library(struct writer *self, const struct cm_leak_cycle *cycle)
{
    add_key(self, "library");
    if (cycle->library_package.index == 0) {
        cm_buffer_add_text(self->out, "null");
        return;
    }
    cm_buffer_add_char(self->out, '{');
    self->comma = false;
    add_text(self, "package", cycle->library_package);
    add_text(self, "link", cycle->library_link);
    close_item(self);
}

static void
add_shared(struct writer *self, const struct cm_leak_cycle *cycle)
{
    add_key(self, "shared_with");
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < cycle->shared_count; i++) {
        cm_buffer_add_text(self->out, i > 0 ? "," : "");
        add_fingerprint(self, cycle->shared_with[i]);
    }
    cm_buffer_add_char(self->out, ']');
}

/* Seconds with six decimals; printf's comma depends on the user's locale. */
static void
add_time(struct writer *self, double time)
{
    uint64_t micro = time > 0 && time < 1e11 ? (uint64_t)(time * 1e6) : 0;

    add_key(self, "time");
    cm_buffer_addf(self->out, "%" PRIu64 ".%06" PRIu64, micro / 1000000,
                   micro % 1000000);
}

static void
add_cycle(struct writer *self, const struct cm_leak_cycle *cycle)
{
    add_key(self, "fingerprint");
    add_fingerprint(self, cycle->fingerprint);
    add_text(self, "class", cycle->class);
    add_ids(self, "vertices", cycle->vertices, cycle->vertex_count);
    add_ids(self, "payload", cycle->payload, cycle->payload_count);
    add_ids(self, "also_held_elsewhere", cycle->held_elsewhere,
            cycle->held_elsewhere_count);
    add_shared(self, cycle);
    add_number(self, "bytes_each", cycle->bytes_each);
    add_number(self, "count", cycle->count);
    add_number(self, "peak_bytes", cycle->peak_bytes);
    add_number(self, "total_bytes", cycle->total_bytes);
    add_known(self, "first_iteration", cycle->first_iteration);
    add_known(self, "last_iteration", cycle->last_iteration);
    add_time(self, cycle->time);
    add_text(self, "trigger", cycle->trigger);
    add_ids(self, "cut", cycle->cut, cycle->cut_count);
    add_text(self, "rule", cycle->rule);
    add_text(self, "advice", cycle->advice);
    add_some_text(self, "no_cut_reason", cycle->no_cut_reason);
    add_library(self, cycle);
}

static void
add_collections(struct writer *self)
{
    open_array(self, "collections");
    for (size_t i = 0; i < self->leak->collection_count; i++) {
        const struct cm_leak_collection *item = &self->leak->collections[i];

        open_item(self, i);
        add_known(self, "iteration", item->iteration);
        add_known(self, "generation", item->generation);
        add_number(self, "duration_us", item->duration_us);
        add_number(self, "collected", item->collected);
        add_number(self, "device_bytes_freed", item->device_bytes_freed);
        close_item(self);
    }
    close_array(self);
}

enum cm_status
cm_leak_json_write(const struct cm_leak *leak, struct cm_buffer *out)
{
    struct writer self = {.leak = leak, .out = out};

    add_process(&self);
    add_devices(&self);
    add_sites(&self);
    add_graph(&self);
    add_storages(&self);
    add_held(&self);
    open_array(&self, "cycles");
    for (size_t i = 0; i < leak->cycle_count; i++) {
        open_item(&self, i);
        add_cycle(&self, &leak->cycles[i]);
        close_item(&self);
    }
    close_array(&self);
    open_array(&self, "growth");
    close_array(&self);
    add_collections(&self);
    cm_buffer_add_text(out, "}\n");
    return cm_buffer_status(out);
}
