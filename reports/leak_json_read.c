/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The reader of leak.json: what each section holds.  The checks of values,
 * ids and places are json.h's; the order here is that of references, so that
 * an id is known before it is named.  Each array's memory is made from what
 * the file really holds, never from a number in it. */
#include "leak_json.h"

#include <inttypes.h>
#include <string.h>

#include "exhausted.h"
#include "growth_json.h"
#include "json.h"
#include "leak_json_read.h"

struct cm_leak_frame *
cm_leak_read_frames(struct cm_leak_reader *self, const struct cJSON *object,
                    const char *key, size_t *count)
{
    const struct cJSON *array = cm_json_array(&self->json, object, key), *item;
    size_t needed = cm_json_count(array), position = 0;
    struct cm_leak_frame *result =
        cm_json_items(&self->json, needed, sizeof(*result));

    *count = 0;
    if (result == NULL) {
        return NULL;
    }
    self->json.list = key;
    for (item = cm_json_first(array); item != NULL;
         item = cm_json_next(item)) {
        struct cm_leak_frame *frame = &result[position];

        self->json.item = position++;
        if (!cm_json_is_object(item)) {
            cm_json_fail(&self->json, NULL, "expected an object");
            break;
        }
        frame->filename = cm_json_text(&self->json, item, "filename");
        frame->name = cm_json_text(&self->json, item, "name");
        frame->source = cm_json_text(&self->json, item, "source");
        frame->before = cm_json_text(&self->json, item, "before");
        frame->after = cm_json_text(&self->json, item, "after");
        frame->line = cm_json_small(&self->json, item, "line");
        frame->library = cm_json_flag(&self->json, item, "library");
        frame->certain = cm_json_flag(&self->json, item, "certain");
    }
    self->json.list = NULL;
    *count = position;
    return result;
}

static void
read_site(struct cm_leak_reader *self, const struct cJSON *item,
          size_t position)
{
    struct cm_leak_site *site = &self->leak->sites[position];
    int64_t user_frame;

    site->frames =
        cm_leak_read_frames(self, item, "frames", &site->frame_count);
    user_frame = cm_json_known(&self->json, item, "user_frame");
    if (user_frame >= (int64_t)site->frame_count) {
        cm_json_fail(&self->json, "user_frame",
                     "frame %" PRId64 " does not exist", user_frame);
        user_frame = -1;
    }
    site->user_frame = (int32_t)user_frame;
}

static void
read_vertex(struct cm_leak_reader *self, const struct cJSON *item,
            size_t position)
{
    struct cm_leak_vertex *vertex = &self->leak->vertices[position];

    vertex->annotation = cm_json_text(&self->json, item, "annotation");
    vertex->type = cm_json_text(&self->json, item, "type");
    vertex->kind = cm_json_text(&self->json, item, "kind");
    vertex->bytes = cm_json_number(&self->json, item, "bytes", 0);
    vertex->site = cm_json_id(&self->json, item, "site", &self->sites, false);
    vertex->storage =
        cm_json_id(&self->json, item, "storage", &self->storages, false);
}

static void
read_edge(struct cm_leak_reader *self, const struct cJSON *item,
          size_t position)
{
    struct cm_leak_edge *edge = &self->leak->edges[position];

    edge->annotation = cm_json_text(&self->json, item, "annotation");
    edge->kind = cm_json_text(&self->json, item, "kind");
    edge->tail = cm_json_id(&self->json, item, "tail", &self->vertices, true);
    edge->head = cm_json_id(&self->json, item, "head", &self->vertices, true);
    edge->made_at =
        cm_leak_read_frames(self, item, "made_at", &edge->made_at_count);
}

static void
read_storage(struct cm_leak_reader *self, const struct cJSON *item,
             size_t position)
{
    struct cm_leak_storage *storage = &self->leak->storages[position];
    const struct cJSON *stream = cm_json_get(item, "stream");

    storage->device = cm_json_text(&self->json, item, "device");
    storage->address = cm_json_hex(&self->json, item, "address");
    storage->bytes = cm_json_number(&self->json, item, "bytes", 0);
    storage->block_bytes = cm_json_number(&self->json, item, "block_bytes", 0);
    storage->stream =
        stream != NULL
            ? (int64_t)(cm_json_hex_value(&self->json, stream, "stream")
                        & INT64_MAX)
            : -1;
    storage->pool = cm_json_text(&self->json, item, "pool");
    storage->thread = cm_json_small(&self->json, item, "thread");
    storage->awaited = cm_json_flag(&self->json, item, "awaited");
    storage->site = cm_json_id(&self->json, item, "site", &self->sites, false);
    storage->category = cm_json_text(&self->json, item, "category");
    (void)cm_json_array(&self->json, item, "names"); /* not shown */
    storage->vertices =
        cm_json_id_list(&self->json, item, "vertices", &self->vertices,
                        &storage->vertex_count);
}

static void
read_shared(struct cm_leak_reader *self, const struct cJSON *item,
            struct cm_leak_cycle *cycle)
{
    const struct cJSON *array =
                           cm_json_array(&self->json, item, "shared_with"),
                       *value;
    size_t needed = cm_json_count(array);

    cycle->shared_with = cm_json_items(&self->json, needed, sizeof(uint64_t));
    if (cycle->shared_with == NULL) {
        return;
    }
    self->json.list = "shared_with";
    for (value = cm_json_first(array); value != NULL;
         value = cm_json_next(value)) {
        self->json.item = cycle->shared_count;
        cycle->shared_with[cycle->shared_count++] =
            cm_json_hex_value(&self->json, value, NULL);
    }
    self->json.list = NULL;
}

void
cm_leak_read_library(struct cm_leak_reader *self, const struct cJSON *item,
                     struct cm_text_id *package, struct cm_text_id *link)
{
    const struct cJSON *library = cm_json_get(item, "library");

    if (library == NULL) {
        return;
    }
    if (!cm_json_is_object(library)) {
        cm_json_fail(&self->json, "library", "expected an object or null");
        return;
    }
    *package = cm_json_text(&self->json, library, "package");
    *link = cm_json_text(&self->json, library, "link");
}

static void
read_cycle(struct cm_leak_reader *self, const struct cJSON *item,
           size_t position)
{
    static const char *const classes[] = {"collectable",   "finalizer",
                                          "uncollectable", "frozen",
                                          "resurrected",   NULL};
    struct cm_leak_cycle *cycle = &self->leak->cycles[position];

    cycle->fingerprint = cm_json_hex(&self->json, item, "fingerprint");
    cycle->class =
        cm_json_word(&self->json, item, "class", classes,
                     "collectable, finalizer, uncollectable, frozen or "
                     "resurrected");
    cycle->vertices = cm_json_id_list(&self->json, item, "vertices",
                                      &self->vertices, &cycle->vertex_count);
    cycle->payload = cm_json_id_list(&self->json, item, "payload",
                                     &self->storages, &cycle->payload_count);
    cycle->held_elsewhere =
        cm_json_id_list(&self->json, item, "also_held_elsewhere",
                        &self->storages, &cycle->held_elsewhere_count);
    read_shared(self, item, cycle);
    cycle->bytes_each = cm_json_number(&self->json, item, "bytes_each", 0);
    cycle->count = cm_json_number(&self->json, item, "count", 1);
    cycle->peak_bytes =
        cm_json_number(&self->json, item, "peak_bytes", cycle->bytes_each);
    cycle->total_bytes =
        cm_json_number(&self->json, item, "total_bytes", cycle->bytes_each);
    cycle->first_iteration =
        cm_json_known(&self->json, item, "first_iteration");
    cycle->last_iteration = cm_json_known(&self->json, item, "last_iteration");
    cycle->time = cm_json_seconds(&self->json, item, "time");
    cycle->trigger = cm_json_text(&self->json, item, "trigger");
    cycle->cut = cm_json_id_list(&self->json, item, "cut", &self->edges,
                                 &cycle->cut_count);
    cycle->rule = cm_json_text(&self->json, item, "rule");
    cycle->advice = cm_json_text(&self->json, item, "advice");
    cycle->no_cut_reason = cm_json_text(&self->json, item, "no_cut_reason");
    cm_leak_read_library(self, item, &cycle->library_package,
                         &cycle->library_link);
}

static uint64_t
read_some_number(struct cm_leak_reader *self, const struct cJSON *item,
                 const char *key)
{
    return cm_json_number(&self->json, item, key, CM_LEAK_UNKNOWN);
}

static void
read_framework(struct cm_leak_reader *self, const struct cJSON *item,
               void *place)
{
    struct cm_leak_framework *framework = place;

    framework->name = cm_json_text(&self->json, item, "name");
    framework->allocated = read_some_number(self, item, "allocated");
    framework->reserved = read_some_number(self, item, "reserved");
}

static void
read_pool(struct cm_leak_reader *self, const struct cJSON *item, void *place)
{
    struct cm_leak_pool *pool = place;

    pool->name = cm_json_text(&self->json, item, "name");
    pool->reserved = read_some_number(self, item, "reserved");
    pool->allocated = read_some_number(self, item, "allocated");
    pool->requested = read_some_number(self, item, "requested");
    pool->pending_free = read_some_number(self, item, "pending_free");
    pool->largest_free = read_some_number(self, item, "largest_free");
    pool->segments = read_some_number(self, item, "segments");
    pool->expandable = cm_json_flag(&self->json, item, "expandable");
}

/* The objects of an array within an item. */
void *
cm_leak_read_parts(struct cm_leak_reader *self, const struct cJSON *object,
                   const char *key, size_t part_bytes, size_t *count,
                   void (*read_part)(struct cm_leak_reader *,
                                     const struct cJSON *, void *))
{
    const struct cJSON *array = cm_json_array(&self->json, object, key), *item;
    size_t needed = cm_json_count(array);
    char *result = cm_json_items(&self->json, needed, part_bytes);

    *count = 0;
    if (result == NULL) {
        return NULL;
    }
    self->json.list = key;
    for (item = cm_json_first(array); item != NULL;
         item = cm_json_next(item)) {
        self->json.item = *count;
        if (!cm_json_is_object(item)) {
            cm_json_fail(&self->json, NULL, "expected an object");
            break;
        }
        read_part(self, item, result + *count * part_bytes);
        *count += 1;
    }
    self->json.list = NULL;
    return result;
}

static void
read_iteration(struct cm_leak_reader *self, const struct cJSON *row,
               int64_t *numbers)
{
    const struct cJSON *value =
        cm_json_is_array(row) ? cm_json_first(row) : NULL;

    if (cm_json_count(row) != CM_LEAK_ITERATION_NUMBERS || value == NULL) {
        cm_json_fail(&self->json, NULL, "expected [number, start, end, peak]");
        return;
    }
    for (; value != NULL; value = cm_json_next(value)) {
        *numbers++ = cm_json_known_value(&self->json, value);
    }
}

static void
read_iterations(struct cm_leak_reader *self, const struct cJSON *item,
                struct cm_leak_device *device)
{
    const struct cJSON *array = cm_json_array(&self->json, item, "iterations"),
                       *row;
    size_t row_bytes = CM_LEAK_ITERATION_NUMBERS * sizeof(int64_t);

    device->iterations =
        cm_json_items(&self->json, cm_json_count(array), row_bytes);
    if (device->iterations == NULL) {
        return;
    }
    self->json.list = "iterations";
    for (row = cm_json_first(array); row != NULL; row = cm_json_next(row)) {
        self->json.item = device->iteration_count;
        read_iteration(self, row,
                       device->iterations
                           + CM_LEAK_ITERATION_NUMBERS
                                 * device->iteration_count++);
    }
    self->json.list = NULL;
}

/* What older files do not have. */
static void
read_use(struct cm_leak_reader *self, const struct cJSON *item,
         struct cm_leak_device *device)
{
    device->cached = read_some_number(self, item, "cached");
    device->pending_free = read_some_number(self, item, "pending_free");
    device->private_pools = read_some_number(self, item, "private_pools");
    device->outside_frameworks =
        read_some_number(self, item, "outside_frameworks");
    device->other_processes = read_some_number(self, item, "other_processes");
    device->free = read_some_number(self, item, "free");
    device->largest_free = read_some_number(self, item, "largest_free");
    device->asked_bytes = cm_json_number(&self->json, item, "asked_bytes", 0);
    device->unasked = cm_json_flag(&self->json, item, "unasked");
    device->frameworks = cm_leak_read_parts(
        self, item, "frameworks", sizeof(*device->frameworks),
        &device->framework_count, read_framework);
    device->pools =
        cm_leak_read_parts(self, item, "pools", sizeof(*device->pools),
                           &device->pool_count, read_pool);
    read_iterations(self, item, device);
}

static void
read_device(struct cm_leak_reader *self, const struct cJSON *item,
            size_t position)
{
    struct cm_leak_device *device = &self->leak->devices[position];

    cm_leak_device_init(device);
    device->name = cm_json_text(&self->json, item, "name");
    device->total = cm_json_number(&self->json, item, "total", 0);
    device->allocated = cm_json_number(&self->json, item, "allocated", 0);
    device->reserved = cm_json_number(&self->json, item, "reserved", 0);
    device->peak_allocated =
        cm_json_number(&self->json, item, "peak_allocated", 0);
    device->dead_peak = cm_json_number(&self->json, item, "dead_peak", 0);
    device->dead_peak_iteration =
        cm_json_known(&self->json, item, "dead_peak_iteration");
    read_use(self, item, device);
}

static void
read_held(struct cm_leak_reader *self, const struct cJSON *item,
          size_t position)
{
    struct cm_leak_held *held = &self->leak->held[position];

    held->device = cm_json_text(&self->json, item, "device");
    held->framework = cm_json_text(&self->json, item, "framework");
    held->library = cm_json_text(&self->json, item, "library");
    held->site = cm_json_id(&self->json, item, "site", &self->sites, false);
    held->awaited = cm_json_flag(&self->json, item, "awaited");
    held->bytes = cm_json_number(&self->json, item, "bytes", 0);
    held->count = cm_json_number(&self->json, item, "count", 0);
}

static void
read_collection(struct cm_leak_reader *self, const struct cJSON *item,
                size_t position)
{
    struct cm_leak_collection *collection = &self->leak->collections[position];
    int64_t generation = cm_json_known(&self->json, item, "generation");

    collection->iteration = cm_json_known(&self->json, item, "iteration");
    collection->generation = generation < 100 ? (int32_t)generation : -1;
    collection->duration_us =
        cm_json_number(&self->json, item, "duration_us", 0);
    collection->collected = cm_json_number(&self->json, item, "collected", 0);
    collection->device_bytes_freed =
        cm_json_number(&self->json, item, "device_bytes_freed", 0);
}

/* Reads each item of an array whose room was made. */
void
cm_leak_read_each(struct cm_leak_reader *self, const char *key,
                  void (*read_item)(struct cm_leak_reader *,
                                    const struct cJSON *, size_t))
{
    const struct cJSON *item;
    size_t position = 0;

    self->json.array = key;
    for (item = cm_json_first(cm_json_get(self->json.root, key));
         item != NULL && self->json.status == CM_OK;
         item = cm_json_next(item)) {
        self->json.index = position;
        if (!cm_json_is_object(item)) {
            cm_json_fail(&self->json, NULL, "expected an object");
            break;
        }
        read_item(self, item, position++);
    }
    self->json.array = NULL;
}

/* Room for the items of an array that have no ids. */
void *
cm_leak_make_items(struct cm_leak_reader *self, const char *key,
                   size_t item_bytes, size_t *count)
{
    size_t needed =
        cm_json_count(cm_json_array(&self->json, self->json.root, key));
    void *items = cm_json_items(&self->json, needed, item_bytes);

    *count = items != NULL ? needed : 0;
    return items;
}

static void
make_room(struct cm_leak_reader *self)
{
    struct cm_leak *leak = self->leak;
    struct cm_json *json = &self->json;

    leak->sites = cm_json_ids(json, "sites", &self->sites,
                              sizeof(*leak->sites), &leak->site_count);
    leak->vertices = cm_json_ids(json, "vertices", &self->vertices,
                                 sizeof(*leak->vertices), &leak->vertex_count);
    leak->edges = cm_json_ids(json, "edges", &self->edges,
                              sizeof(*leak->edges), &leak->edge_count);
    leak->storages =
        cm_json_ids(json, "storages", &self->storages, sizeof(*leak->storages),
                    &leak->storage_count);
    leak->devices = cm_leak_make_items(self, "devices", sizeof(*leak->devices),
                                       &leak->device_count);
    leak->held = cm_leak_make_items(self, "held", sizeof(*leak->held),
                                    &leak->held_count);
    leak->cycles = cm_leak_make_items(self, "cycles", sizeof(*leak->cycles),
                                      &leak->cycle_count);
    leak->growth = cm_leak_make_items(self, "growth", sizeof(*leak->growth),
                                      &leak->growth_count);
    leak->collections =
        cm_leak_make_items(self, "collections", sizeof(*leak->collections),
                           &leak->collection_count);
}

/* Documents of others may tell this from one side only. */
static void
join_storages(struct cm_leak *leak)
{
    for (size_t i = 0; i < leak->storage_count; i++) {
        const struct cm_leak_storage *storage = &leak->storages[i];

        for (size_t j = 0; j < storage->vertex_count; j++) {
            struct cm_leak_vertex *vertex =
                &leak->vertices[storage->vertices[j] - 1];

            if (vertex->storage == 0) {
                vertex->storage = (uint32_t)i + 1;
            }
        }
    }
}

static void
read_process(struct cm_leak_reader *self)
{
    struct cm_leak *leak = self->leak;
    struct cm_json *json = &self->json;
    const struct cJSON *root = json->root, *lost = cm_json_get(root, "lost");

    leak->pid = (int64_t)cm_json_number(json, root, "pid", 0);
    leak->rank = cm_json_known(json, root, "rank");
    leak->world_size = cm_json_known(json, root, "world_size");
    leak->host = cm_json_text(json, root, "host");
    leak->python = cm_json_text(json, root, "python");
    leak->torch = cm_json_text(json, root, "torch");
    leak->cumem = cm_json_text(json, root, "cumem");
    leak->iteration = cm_json_known(json, root, "iteration");
    leak->interceptor = cm_json_text(json, root, "interceptor");
    leak->allocator_hook = cm_json_text(json, root, "allocator_hook");
    if (lost != NULL && !cm_json_is_object(lost)) {
        cm_json_fail(json, "lost", "expected an object");
        return;
    }
    leak->lost_events = cm_json_number(json, lost, "events", 0);
    leak->lost_nodes = cm_json_number(json, lost, "nodes", 0);
    leak->lost_reason = cm_json_text(json, lost, "reason");
}

/* Whether this is a document of ours that can be read. */
static void
check_format(struct cm_json *json)
{
    const char *name = cm_json_string(cm_json_get(json->root, "format"));
    uint64_t version;

    if (!cm_json_is_object(json->root)) {
        cm_json_fail(json, NULL, "expected a JSON object");
        return;
    }
    if (name == NULL || strcmp(name, "cumem-leak") != 0) {
        cm_json_fail(json, "format", "expected \"cumem-leak\"");
        return;
    }
    version = cm_json_number(json, json->root, "version", 0);
    if (version < 1) {
        cm_json_fail(json, "version", "expected a whole number from 1");
    }
    else if (version > CM_LEAK_JSON_VERSION) {
        cm_json_fail(json, "version",
                     "%" PRIu64
                     " is newer than %d, the newest that this program reads",
                     version, CM_LEAK_JSON_VERSION);
    }
}

static void
read_document(struct cm_leak_reader *self)
{
    check_format(&self->json);
    /* Without them it does not say that nothing was found. */
    cm_json_need_array(&self->json, "cycles");
    cm_json_need_array(&self->json, "growth");
    if (self->json.status == CM_OK) {
        read_process(self);
        make_room(self);
    }
    if (self->json.status != CM_OK) {
        return;
    }
    cm_leak_read_each(self, "devices", read_device);
    cm_leak_read_each(self, "sites", read_site);
    cm_leak_read_each(self, "vertices", read_vertex);
    cm_leak_read_each(self, "edges", read_edge);
    cm_leak_read_each(self, "storages", read_storage);
    cm_leak_read_each(self, "held", read_held);
    cm_leak_read_each(self, "cycles", read_cycle);
    cm_leak_read_each(self, "growth", cm_growth_read);
    cm_timeline_read(self);
    cm_leak_read_each(self, "collections", read_collection);
    cm_collector_read(self);
    cm_looks_read(self);
    cm_exhausted_read(self);
    if (self->json.status == CM_OK) {
        join_storages(self->leak);
    }
}

enum cm_status
cm_leak_json_read(const char *bytes, size_t length, struct cm_leak *result,
                  char error[CM_LEAK_JSON_ERROR_BYTES])
{
    struct cm_leak_reader self = {.leak = result,
                                  .sites.noun = "site",
                                  .vertices.noun = "vertex",
                                  .edges.noun = "edge",
                                  .storages.noun = "storage"};

    error[0] = '\0';
    self.json.status = cm_leak_init(result);
    self.json.error = error;
    self.json.error_bytes = CM_LEAK_JSON_ERROR_BYTES;
    self.json.texts = result->texts;
    if (self.json.status == CM_OK) {
        cm_json_parse(&self.json, bytes, length);
    }
    if (self.json.status == CM_OK) {
        read_document(&self);
    }
    cm_json_release(&self.json);
    cm_json_ids_release(&self.sites);
    cm_json_ids_release(&self.vertices);
    cm_json_ids_release(&self.edges);
    cm_json_ids_release(&self.storages);
    if (self.json.status != CM_OK) {
        cm_leak_release(result);
    }
    return self.json.status;
}
