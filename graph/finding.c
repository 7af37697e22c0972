/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The stages in order: components, what they carry, a fingerprint for each
 * cyclic one, equal fingerprints into one group, the largest groups told in
 * full.  Only the representative of a group is looked at closely, so that ten
 * thousand equal cycles cost one search and ten thousand fingerprints.
 * O((nodes + edges) log nodes) time, about 100 bytes a node while it runs. */

#include "finding.h"

#include <stdatomic.h>
#include <stdlib.h> // qsort()
#include <string.h>

#include "component.h"
#include "cut.h"
#include "fingerprint.h"
#include "outline.h"
#include "payload.h"
#include "sharing.h"
#include "../detector/alloc.h"

/* A cyclic component that reaches device memory. */
struct entry {
    uint64_t fingerprint;
    uint64_t bytes;
    uint32_t component;
    uint32_t first_node; /* decides which of equal ones stands for all */
};

/* Entries of one fingerprint. */
struct group {
    uint64_t fingerprint;
    uint64_t bytes_total;
    const struct entry *entries; /* borrowed; all `count` of them */
    const struct entry *entry;   /* of them; the representative */
    uint32_t count;
    uint32_t number; /* from 1, in order of the fingerprints */
};

struct analysis {
    const struct cm_heap *heap;
    const struct cm_records *records;
    struct cm_components components;
    struct cm_payloads payloads;
    struct cm_sharing sharing;
    struct cm_outlines outlines;
    struct entry *entries; /* owned */
    uint32_t entry_count;
    struct group *groups; /* owned */
    uint32_t group_count;
    uint64_t *fingerprint_of; /* owned; [groups + 1] by group number */
};

void
cm_finding_release(struct cm_finding *self)
{
    cm_free(self->component);
    cm_free(self->via);
    cm_free(self->payload);
    cm_free(self->freed);
    cm_free(self->held_elsewhere);
    cm_free(self->shared_with);
    cm_free(self->bytes_on);
    cm_free(self->advice);
    cm_free(self->no_cut_reason);
    cm_free(self->library);
    *self = (struct cm_finding){0};
}

void
cm_findings_release(struct cm_findings *self)
{
    bool last = self->owners == NULL || atomic_fetch_sub(self->owners, 1) == 1;
    if (last) {
        for (size_t i = 0; i < self->count; i++) {
            cm_finding_release(&self->items[i]);
        }
        cm_free(self->items);
        cm_free((void *)self->owners);
    }
    *self = (struct cm_findings){0};
}

enum cm_status
cm_findings_share(struct cm_findings *from, struct cm_findings *result)
{
    if (from->owners == NULL) {
        from->owners = cm_alloc(sizeof *from->owners);
        if (from->owners == NULL) {
            *result = (struct cm_findings){0};
            return CM_NO_MEMORY;
        }
        atomic_init(from->owners, 1);
    }
    atomic_fetch_add(from->owners, 1);
    *result = *from;
    return CM_OK;
}

/* Entries */

static bool
has_finalizer(const struct cm_node *node)
{
    return node->has_finalizer;
}

static bool
is_cut(const struct cm_node *node)
{
    return node->cut;
}

static bool
any(const struct analysis *self, uint32_t component,
    bool (*is)(const struct cm_node *node))
{
    const uint32_t *nodes = cm_components_nodes(&self->components, component);
    uint32_t size = cm_components_size(&self->components, component);

    for (uint32_t i = 0; i < size; i++) {
        if (is(&self->heap->nodes[nodes[i]])) {
            return true;
        }
    }
    return false;
}

static enum cm_class
class_of(const struct analysis *self, uint32_t component)
{
    if (self->heap->frozen_generation) {
        return CM_CLASS_FROZEN;
    }
    if (self->heap->uncollectable) {
        return CM_CLASS_UNCOLLECTABLE;
    }
    if (self->payloads.survived[component]) {
        return CM_CLASS_RESURRECTED;
    }
    return any(self, component, has_finalizer) ? CM_CLASS_FINALIZER
                                               : CM_CLASS_COLLECTABLE;
}

static struct entry
make_entry(const struct analysis *self, struct cm_fingerprints *fingerprints,
           uint32_t component)
{
    uint64_t origin = self->payloads.origin[self->payloads.largest[component]];
    /* What must not be folded with each other. */
    uint64_t kind =
        2 * (uint64_t)class_of(self, component) + any(self, component, is_cut);

    return (struct entry){
        .fingerprint =
            cm_fingerprint_of(fingerprints, component, origin, kind),
        .bytes = cm_payloads_bytes(&self->payloads, self->heap, component),
        .component = component,
        .first_node = cm_components_nodes(&self->components, component)[0],
    };
}

static bool
is_entry(const struct analysis *self, uint32_t component)
{
    return self->components.cyclic[component]
           && self->payloads.largest[component] != 0;
}

static enum cm_status
list_entries(struct analysis *self)
{
    struct cm_fingerprints fingerprints = {0};
    uint32_t count = 0;
    enum cm_status status;

    for (uint32_t i = 1; i <= self->components.count; i++) {
        count += is_entry(self, i);
    }
    self->entries = cm_calloc((size_t)count + 1, sizeof *self->entries);
    if (self->entries == NULL) {
        return CM_NO_MEMORY;
    }
    status = cm_fingerprints_init(&fingerprints, self->heap, self->records,
                                  &self->components);
    if (status != CM_OK) {
        return status;
    }
    for (uint32_t i = 1; i <= self->components.count; i++) {
        if (is_entry(self, i)) {
            self->entries[self->entry_count++] =
                make_entry(self, &fingerprints, i);
        }
    }
    cm_fingerprints_release(&fingerprints);
    return CM_OK;
}

/* Groups */

static int
compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;

    if (a->fingerprint != b->fingerprint) {
        return a->fingerprint < b->fingerprint ? -1 : 1;
    }
    return a->first_node < b->first_node ? -1 : a->first_node > b->first_node;
}

/* The first that carries bytes of its own stands for all, else the first. */
static void
add_to_group(struct group *group, const struct entry *entry)
{
    if (group->entry == NULL
        || (group->entry->bytes == 0 && entry->bytes > 0)) {
        group->entry = entry;
    }
    group->fingerprint = entry->fingerprint;
    group->bytes_total += entry->bytes;
    group->count++;
}

/* Before: the entries are sorted. */
static enum cm_status
group_entries(struct analysis *self)
{
    struct group *group = NULL;

    self->groups =
        cm_calloc((size_t)self->entry_count + 1, sizeof *self->groups);
    self->fingerprint_of =
        cm_calloc((size_t)self->entry_count + 1, sizeof *self->fingerprint_of);
    if (self->groups == NULL || self->fingerprint_of == NULL) {
        return CM_NO_MEMORY;
    }
    for (uint32_t i = 0; i < self->entry_count; i++) {
        const struct entry *entry = &self->entries[i];

        if (group == NULL || group->fingerprint != entry->fingerprint) {
            group = &self->groups[self->group_count++];
            group->entries = entry;
            group->number = self->group_count;
            self->fingerprint_of[group->number] = entry->fingerprint;
        }
        add_to_group(group, entry);
    }
    return CM_OK;
}

static int
compare_groups(const void *left, const void *right)
{
    const struct group *a = left, *b = right;

    if (a->bytes_total != b->bytes_total) {
        return a->bytes_total > b->bytes_total ? -1 : 1;
    }
    return a->fingerprint < b->fingerprint ? -1
                                           : a->fingerprint > b->fingerprint;
}

/* Before: the groups are still in order of their numbers. */
static enum cm_status
find_sharing(struct analysis *self)
{
    uint32_t *group_of =
        cm_calloc(self->components.count + 1, sizeof *group_of);
    uint32_t number = 0;
    enum cm_status status;

    if (group_of == NULL) {
        return CM_NO_MEMORY;
    }
    for (uint32_t i = 0; i < self->entry_count; i++) {
        const struct entry *entry = &self->entries[i];

        number += entry->fingerprint != self->fingerprint_of[number];
        group_of[entry->component] = number;
    }
    status = cm_sharing_find(self->heap, &self->components, &self->payloads,
                             group_of, self->group_count, &self->sharing);
    cm_free(group_of);
    return status;
}

static enum cm_status
fold_entries(struct analysis *self)
{
    enum cm_status status;

    qsort(self->entries, self->entry_count, sizeof *self->entries,
          compare_entries);
    status = group_entries(self);
    if (status != CM_OK) {
        return status;
    }
    status = find_sharing(self);
    qsort(self->groups, self->group_count, sizeof *self->groups,
          compare_groups);
    return status;
}

/* Findings */

static enum cm_status
list_storages(const struct analysis *self, uint32_t component,
              struct cm_finding *result)
{
    const uint32_t *carried = cm_payloads_carried(&self->payloads, component);
    uint32_t count = cm_payloads_count(&self->payloads, component);

    result->freed = cm_calloc((size_t)count + 1, sizeof *result->freed);
    result->held_elsewhere =
        cm_calloc((size_t)count + 1, sizeof *result->held_elsewhere);
    if (result->freed == NULL || result->held_elsewhere == NULL) {
        return CM_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!cm_payloads_frees(&self->payloads, self->heap, component,
                               carried[i])) {
            result->held_elsewhere[result->held_elsewhere_count++] =
                carried[i];
        }
        else {
            result->freed[result->freed_count++] = carried[i];
        }
    }
    return CM_OK;
}

static enum cm_status
add_bytes_on(struct cm_finding *result, struct cm_text_id device,
             uint64_t bytes)
{
    enum cm_status status;

    for (size_t i = 0; i < result->device_count; i++) {
        if (result->bytes_on[i].device.index == device.index) {
            result->bytes_on[i].bytes += bytes;
            return CM_OK;
        }
    }
    status = cm_grow((void **)&result->bytes_on, &result->device_capacity,
                     result->device_count + 1, sizeof *result->bytes_on);
    if (status == CM_OK) {
        result->bytes_on[result->device_count++] =
            (struct cm_bytes_on){device, bytes};
    }
    return status;
}

static enum cm_status
add_entry_bytes(const struct analysis *self, uint32_t component,
                struct cm_finding *result)
{
    const uint32_t *carried = cm_payloads_carried(&self->payloads, component);
    uint32_t count = cm_payloads_count(&self->payloads, component);
    enum cm_status status = CM_OK;

    for (uint32_t i = 0; status == CM_OK && i < count; i++) {
        const struct cm_storage *storage = &self->heap->storages[carried[i]];

        if (cm_payloads_frees(&self->payloads, self->heap, component,
                              carried[i])) {
            status = add_bytes_on(result, storage->device, storage->bytes);
        }
    }
    return status;
}

static enum cm_status
list_devices(const struct analysis *self, const struct group *group,
             struct cm_finding *result)
{
    enum cm_status status = CM_OK;

    for (uint32_t i = 0; status == CM_OK && i < group->count; i++) {
        status = add_entry_bytes(self, group->entries[i].component, result);
    }
    return status;
}

static enum cm_status
list_shared(const struct analysis *self, uint32_t number,
            struct cm_finding *result)
{
    const struct cm_group_set *with = &self->sharing.with[number];

    result->carries_shared = self->sharing.carries[number];
    result->shared_with =
        cm_calloc((size_t)with->count + 1, sizeof *result->shared_with);
    if (result->shared_with == NULL) {
        return CM_NO_MEMORY;
    }
    for (uint32_t i = 0; i < with->count; i++) {
        result->shared_with[result->shared_count++] =
            self->fingerprint_of[with->groups[i]];
    }
    return CM_OK;
}

/* Moves what the cut owns into the finding. */
static void
take_cut(struct cm_cut *cut, struct cm_finding *result)
{
    result->cut_edge = cut->suspect.edge;
    result->rule = cut->rule;
    result->advice = cut->advice;
    result->no_cut_reason = cut->made.reason;
    result->library = cut->library;
    result->place_count = cut->made.place_count;
    memcpy(result->places, cut->made.places, sizeof result->places);
    *cut = (struct cm_cut){0};
}

static enum cm_status
tell_cycle(struct analysis *self, uint32_t component,
           struct cm_finding *result)
{
    struct cm_cycle cycle = {0};
    struct cm_cut cut = {0};
    enum cm_status status = cm_cycle_init(&cycle, self->heap, self->records,
                                          &self->components, component);

    if (status != CM_OK) {
        return status;
    }
    status = cm_outline_payload(&self->outlines, &cycle, result);
    if (status != CM_OK) {
        goto done;
    }
    status = cm_cut_find(&cycle, &cut);
    if (status != CM_OK) {
        goto done;
    }
    cm_outline_owner(&self->outlines, &cycle, cut.suspect.owner, result);
    status = cm_outline_component(&cycle, cut.suspect.edge, cut.suspect.owner,
                                  result);
    take_cut(&cut, result);
done:
    cm_cycle_release(&cycle);
    return status;
}

static enum cm_status
tell_group(struct analysis *self, const struct group *group,
           struct cm_finding *result)
{
    uint32_t component = group->entry->component;
    enum cm_status status;

    result->fingerprint = group->fingerprint;
    result->class = class_of(self, component);
    result->count = group->count;
    result->bytes_each = group->entry->bytes;
    result->bytes_total = group->bytes_total;
    status = list_storages(self, component, result);
    if (status == CM_OK) {
        status = list_devices(self, group, result);
    }
    if (status == CM_OK) {
        status = list_shared(self, group->number, result);
    }
    if (status == CM_OK) {
        status = tell_cycle(self, component, result);
    }
    return status;
}

static enum cm_status
tell_groups(struct analysis *self, struct cm_findings *result)
{
    uint32_t count = self->group_count < CM_MAX_FINDINGS ? self->group_count
                                                         : CM_MAX_FINDINGS;
    enum cm_status status = cm_outlines_init(&self->outlines, self->heap);

    if (status != CM_OK) {
        return status;
    }
    result->items = cm_calloc((size_t)count + 1, sizeof *result->items);
    if (result->items == NULL) {
        return CM_NO_MEMORY;
    }
    result->left_out = self->group_count - count;
    for (uint32_t i = 0; i < self->group_count; i++) {
        result->dead_bytes += self->groups[i].bytes_total;
    }
    for (uint32_t i = 0; i < count && status == CM_OK; i++) {
        /* Counted before it is filled: release looks at every one begun. */
        status = tell_group(self, &self->groups[i],
                            &result->items[result->count++]);
    }
    return status;
}

static void
analysis_release(struct analysis *self)
{
    cm_components_release(&self->components);
    cm_payloads_release(&self->payloads);
    cm_sharing_release(&self->sharing);
    cm_outlines_release(&self->outlines);
    cm_free(self->entries);
    cm_free(self->groups);
    cm_free(self->fingerprint_of);
}

enum cm_status
cm_findings_find(const struct cm_heap *heap, const struct cm_records *records,
                 struct cm_findings *result)
{
    struct analysis self = {.heap = heap, .records = records};
    enum cm_status status = CM_OK;

    *result = (struct cm_findings){0};
    if (heap->storage_count == 0) {
        goto done;
    }
    status = cm_components_find(heap, &self.components);
    if (status != CM_OK) {
        goto done;
    }
    status = cm_payloads_find(heap, records, &self.components, &self.payloads);
    if (status != CM_OK) {
        goto done;
    }
    status = list_entries(&self);
    if (status != CM_OK || self.entry_count == 0) {
        goto done;
    }
    status = fold_entries(&self);
    if (status == CM_OK) {
        status = tell_groups(&self, result);
    }
done:
    analysis_release(&self);
    if (status != CM_OK) {
        cm_findings_release(result);
    }
    return status;
}
