/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Short file names.  Names are compared from their ends; cost is the number
 * of different names, which is bounded, for each of the few components that are
 * tried of a name asked for. */
#include "filenames.h"

#include <stdlib.h> // qsort()
#include <string.h>

#include "../detector/alloc.h"
#include "fault.h"

/* What has more than these is shown whole: no system opens a longer name, and
 * nobody finds a file by so many folders. */
enum { MAX_BYTES = 4096, MAX_COMPONENTS = 16 };

static enum cm_status
add(struct cm_filenames *self, struct cm_text_id name)
{
    enum cm_status status;

    if (self->count > 0 && cm_text_same(self->items[self->count - 1], name)) {
        return CM_OK;
    }
    status = cm_grow((void **)&self->items, &self->capacity, self->count + 1,
                     sizeof(self->items[0]));
    if (status == CM_OK) {
        self->items[self->count++] = name;
    }
    return status;
}

static enum cm_status
add_site(struct cm_filenames *self, uint32_t id)
{
    const struct cm_leak_site *site;

    if (id == 0) {
        return CM_OK;
    }
    site = cm_leak_site_at(self->leak, id);
    return site->user_frame >= 0
               ? add(self, site->frames[site->user_frame].filename)
               : CM_OK;
}

static enum cm_status
add_cycle(struct cm_filenames *self, const struct cm_leak_cycle *cycle)
{
    const struct cm_leak_edge *cut = cm_leak_known_cut(self->leak, cycle);
    enum cm_status status = CM_OK;

    for (size_t i = 0;
         status == CM_OK && cut != NULL && i < cut->made_at_count; i++) {
        status = add(self, cut->made_at[i].filename);
    }
    for (size_t i = 0; status == CM_OK && i < cycle->payload_count; i++) {
        status = add_site(
            self, cm_leak_storage_at(self->leak, cycle->payload[i])->site);
    }
    return status;
}

static enum cm_status
add_growth(struct cm_filenames *self, const struct cm_leak_growth *growth)
{
    enum cm_status status = CM_OK;

    for (uint32_t i = 0; status == CM_OK && i < cm_fault_lines(growth); i++) {
        status = add_site(self, growth[i].site);
    }
    for (size_t i = 0; status == CM_OK && i < growth->made_at_count; i++) {
        status = add(self, growth->made_at[i].filename);
    }
    return status;
}

static int
by_id(const void *first, const void *second)
{
    const struct cm_text_id *a = first, *b = second;

    return a->index < b->index ? -1 : a->index > b->index;
}

static void
make_different(struct cm_filenames *self)
{
    size_t kept = 0;

    if (self->count > 1) {
        qsort(self->items, self->count, sizeof(self->items[0]), by_id);
    }
    for (size_t i = 0; i < self->count; i++) {
        if (kept == 0
            || !cm_text_same(self->items[kept - 1], self->items[i])) {
            self->items[kept++] = self->items[i];
        }
    }
    self->count = kept;
}

enum cm_status
cm_filenames_init(struct cm_filenames *self, const struct cm_leak *leak,
                  const struct cm_leak_finding *findings, size_t count)
{
    enum cm_status status = CM_OK;

    self->leak = leak;
    for (size_t i = 0; status == CM_OK && i < count; i++) {
        size_t index = findings[i].index;

        status = findings[i].growth ? add_growth(self, &leak->growth[index])
                                    : add_cycle(self, &leak->cycles[index]);
    }
    for (size_t i = 0;
         status == CM_OK && i < leak->held_count && i < CM_FILENAMES_HELD;
         i++) {
        status = add_site(self, leak->held[i].site);
    }
    make_different(self);
    if (status != CM_OK) {
        cm_filenames_release(self);
    }
    return status;
}

void
cm_filenames_release(struct cm_filenames *self)
{
    cm_free(self->items);
    *self = (struct cm_filenames){0};
}

/* The start of the last component before `end`. */
static const char *
component(const char *name, const char *end)
{
    while (end > name && end[-1] != '/') {
        end--;
    }
    return end;
}

static bool
ends_with(const char *name, const char *suffix, size_t wanted)
{
    size_t length = strnlen(name, MAX_BYTES + 1);

    return length <= MAX_BYTES && length >= wanted
           && strcmp(name + length - wanted, suffix) == 0
           && (length == wanted || name[length - wanted - 1] == '/');
}

static bool
is_shared(const struct cm_filenames *self, struct cm_text_id filename,
          const char *suffix)
{
    size_t length = strlen(suffix);

    for (size_t i = 0; i < self->count; i++) {
        if (!cm_text_same(self->items[i], filename)
            && ends_with(cm_leak_text(self->leak, self->items[i]), suffix,
                         length)) {
            return true;
        }
    }
    return false;
}

const char *
cm_filenames_short(const struct cm_filenames *self, struct cm_text_id filename)
{
    const char *name = cm_leak_text(self->leak, filename);
    size_t length = strnlen(name, MAX_BYTES + 1);
    const char *start = name + length;

    if (self->count > CM_FILENAMES_MAX || length > MAX_BYTES) {
        return name;
    }
    for (size_t i = 0; i < MAX_COMPONENTS; i++) {
        start = component(name, start - (i > 0));
        if (start == name || !is_shared(self, filename, start)) {
            return start;
        }
    }
    return name;
}
