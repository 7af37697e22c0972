/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Weisfeiler and Lehman's colour refinement ("A reduction of a graph to a
 * canonical form", 1968): every node starts with the hash of its names and in
 * each round takes in those of its neighbours, with the labels of the edges.
 * The neighbours' hashes are added, so that no order enters; the fingerprint
 * is the sum over the nodes.  The number of rounds is bounded: what differs
 * only further than ROUNDS edges around every node is folded together.
 * O(ROUNDS (nodes + edges)) time, two words a node. */

#include "fingerprint.h"

#include <string.h>

#include "name.h"
#include "../detector/alloc.h"

#define ROUNDS 8u

/* A small heap has few, and room for many would have to be zeroed. */
enum { FEWEST_TEXTS = 32, MOST_TEXTS = 4096 };

/* Two words in, one well-mixed word out (the finalizer of splitmix64). */
static uint64_t
mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * UINT64_C(0x9E3779B97F4A7C15) + b;

    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint64_t
hash_bytes(const char *bytes, size_t length)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a */

    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001B3);
    }
    return mix(hash, length);
}

static uint64_t
hash_text(const char *text)
{
    return hash_bytes(text, strlen(text));
}

/* Digits are left out: keys such as step_412 are data. */
static uint64_t
hash_key(const char *key, size_t length)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < length; i++) {
        if (key[i] < '0' || key[i] > '9') {
            hash = mix(hash, (unsigned char)key[i]);
        }
    }
    return hash;
}

/* An edge's label without what is data: "[3]" and "['a b']" are "[*]". */
static uint64_t
hash_label(const char *label)
{
    const char *bracket = strchr(label, '[');
    size_t length = strlen(label);
    uint64_t hash;

    if (bracket == NULL) {
        return hash_bytes(label, length);
    }
    hash = hash_bytes(label, (size_t)(bracket - label));
    length -= (size_t)(bracket - label);
    if (length > 4 && bracket[1] == '\''
        && cm_name_is_identifier(bracket + 2, length - 4)) {
        return mix(hash, hash_key(bracket + 2, length - 4));
    }
    return mix(hash, '*');
}

/* Labels and type names come again and again. */
static uint64_t
hash_cached(struct cm_fingerprints *self, struct cm_text_id text)
{
    struct cm_hashed_text *slot =
        &self->texts[text.index & (self->text_places - 1)];

    if (slot->text != text.index) {
        slot->text = text.index;
        slot->hash = hash_label(cm_records_text(self->records, text));
    }
    return slot->hash;
}

static uint64_t
hash_code(const struct cm_records *records, struct cm_code_id id)
{
    const struct cm_code *code = cm_records_code(records, id);
    const char *file = cm_records_text(records, code->filename);
    const char *name = cm_records_text(records, code->qualified_name);

    name = name[0] != '\0' ? name : cm_records_text(records, code->name);
    return mix(hash_text(cm_name_basename(file)), hash_text(name));
}

uint64_t
cm_fingerprint_origin(const struct cm_records *records, struct cm_site_id id)
{
    const struct cm_site *site = cm_records_site(records, id);

    for (uint32_t i = 0; i < site->frame_count; i++) {
        if (!cm_records_code(records, site->frames[i].code)->library) {
            return hash_code(records, site->frames[i].code);
        }
    }
    return site->frame_count > 0 ? hash_code(records, site->frames[0].code)
                                 : 0;
}

enum cm_status
cm_fingerprints_init(struct cm_fingerprints *self, const struct cm_heap *heap,
                     const struct cm_records *records,
                     const struct cm_components *components)
{
    size_t words = heap->node_count + 1;

    *self = (struct cm_fingerprints){
        .heap = heap, .records = records, .components = components};
    self->colors = cm_calloc(words, sizeof *self->colors);
    self->sums = cm_calloc(words, sizeof *self->sums);
    self->text_places = FEWEST_TEXTS;
    while (self->text_places < words && self->text_places < MOST_TEXTS) {
        self->text_places *= 2;
    }
    self->texts = cm_calloc(self->text_places, sizeof *self->texts);
    if (self->colors == NULL || self->sums == NULL || self->texts == NULL) {
        cm_fingerprints_release(self);
        return CM_NO_MEMORY;
    }
    /* No text is cached under the id that is none. */
    self->texts[0].hash = hash_label("");
    return CM_OK;
}

void
cm_fingerprints_release(struct cm_fingerprints *self)
{
    cm_free(self->colors);
    cm_free(self->sums);
    cm_free(self->texts);
    *self = (struct cm_fingerprints){0};
}

static uint64_t
first_color(struct cm_fingerprints *self, const struct cm_node *node)
{
    const struct cm_type *type = cm_records_type(self->records, node->type);
    uint64_t color = mix(node->species, hash_cached(self, type->name));

    if (node->code.index != 0) {
        color = mix(color, hash_code(self->records, node->code));
    }
    if (node->species == CM_TYPE) {
        struct cm_name name = cm_name_of_object(self->records, node);

        color = mix(color, hash_text(name.text));
    }
    return color;
}

/* Adds to the sums of a node and of its heads; says how many edges count. */
static uint32_t
add_neighbours(struct cm_fingerprints *self, uint32_t node)
{
    const struct cm_components *components = self->components;
    const struct cm_node *record = &self->heap->nodes[node];
    uint32_t tail_at = components->position[node];
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->edge_count; i++) {
        const struct cm_edge *edge =
            &self->heap->edges[record->first_edge + i];
        uint32_t head_at = components->position[edge->head];
        uint64_t label;

        if (components->of_node[edge->head] != components->of_node[node]) {
            continue;
        }
        /* An edge to itself is no neighbour: the colours cannot say so. */
        label = mix(hash_cached(self, edge->label),
                    2u * edge->role + (head_at == tail_at));
        self->sums[tail_at] += mix(self->colors[head_at], label);
        self->sums[head_at] += mix(label, self->colors[tail_at]);
        count++;
    }
    return count;
}

/* One round; the number of edges inside. */
static uint32_t
refine(struct cm_fingerprints *self, uint32_t component)
{
    const uint32_t *nodes = cm_components_nodes(self->components, component);
    uint32_t size = cm_components_size(self->components, component);
    uint32_t first = self->components->first[component];
    uint32_t count = 0;

    memset(self->sums + first, 0, size * sizeof *self->sums);
    for (uint32_t i = 0; i < size; i++) {
        count += add_neighbours(self, nodes[i]);
    }
    for (uint32_t at = first; at < first + size; at++) {
        self->colors[at] = mix(self->colors[at], self->sums[at]);
    }
    return count;
}

uint64_t
cm_fingerprint_of(struct cm_fingerprints *self, uint32_t component,
                  uint64_t origin, uint64_t kind)
{
    const uint32_t *nodes = cm_components_nodes(self->components, component);
    uint32_t size = cm_components_size(self->components, component);
    uint32_t first = self->components->first[component];
    uint32_t edges = 0;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < size; i++) {
        self->colors[first + i] =
            first_color(self, &self->heap->nodes[nodes[i]]);
    }
    for (uint32_t round = 0; round < ROUNDS && round < size; round++) {
        edges = refine(self, component);
    }
    for (uint32_t i = 0; i < size; i++) {
        sum += mix(self->colors[first + i], 1);
    }
    sum = mix(mix(mix(sum, size), edges), mix(origin, kind));
    return sum != 0 ? sum : 1;
}
