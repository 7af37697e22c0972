/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * What a finding holds: the largest storages, those that are also held from
 * outside, and the stack that made them with the frames of libraries folded.
 * Lists are bounded; what is left out is counted. */
#include <inttypes.h>
#include <string.h>

#include "names.h"
#include "sheet.h"

#define MAX_HELD 8
#define MAX_FRAMES 100

static void
add_storage(struct cm_sheet *self, uint32_t id)
{
    const struct cm_leak_storage *storage = cm_leak_storage_at(self->leak, id);

    cm_put(self, "<li><b>");
    cm_put_size(self, storage->bytes);
    cm_put(self, "</b> ");
    if (storage->block_bytes > 0 && storage->block_bytes != storage->bytes) {
        cm_put(self, "in a block of ");
        cm_put_size(self, storage->block_bytes);
        cm_put(self, " ");
    }
    cm_say(self, cm_sheet_text(self, storage->device));
    if (storage->vertex_count > 0) {
        struct cm_buffer name = {0};

        cm_name_add_vertex(&name, self->leak, storage->vertices[0]);
        cm_put(self, " <code>");
        cm_escape_html_label(self->out, cm_buffer_text(&name), CM_LABEL_MAX);
        cm_put(self, "</code>");
        cm_buffer_release(&name);
    }
    cm_put(self, "</li>\n");
}

/* The largest of `ids` first, those of one size in their order. */
static size_t
pick_largest(struct cm_sheet *self, const uint32_t *ids, size_t count,
             uint32_t picked[MAX_HELD])
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = cm_leak_storage_at(self->leak, ids[i])->bytes;
        size_t place = kept;

        while (place > 0
               && cm_leak_storage_at(self->leak, picked[place - 1])->bytes
                      < bytes) {
            place--;
        }
        if (place == MAX_HELD) {
            continue;
        }
        kept += kept < MAX_HELD;
        memmove(picked + place + 1, picked + place,
                (kept - 1 - place) * sizeof(*picked));
        picked[place] = ids[i];
    }
    return kept;
}

static void
add_storages(struct cm_sheet *self, const char *title, const uint32_t *ids,
             size_t count)
{
    uint32_t picked[MAX_HELD];
    size_t kept = pick_largest(self, ids, count, picked);
    uint64_t rest = 0;

    if (count == 0) {
        return;
    }
    cm_put(self, title);
    cm_put(self, "<ul class=\"held\">\n");
    for (size_t i = 0; i < count; i++) {
        rest += cm_leak_storage_at(self->leak, ids[i])->bytes;
    }
    for (size_t i = 0; i < kept; i++) {
        add_storage(self, picked[i]);
        rest -= cm_leak_storage_at(self->leak, picked[i])->bytes;
    }
    if (count > kept) {
        cm_buffer_addf(self->out, "<li>%zu more, ", count - kept);
        cm_put_size(self, rest);
        cm_put(self, "</li>");
    }
    cm_put(self, "</ul>\n");
}

/* It may be none of those that the page shows. */
static void
add_other(struct cm_sheet *self, uint64_t fingerprint)
{
    const struct cm_leak_cycle *other =
        cm_leak_cycle_of(self->leak, fingerprint);
    const struct cm_leak_edge *cut =
        other != NULL ? cm_leak_known_cut(self->leak, other) : NULL;

    cm_buffer_addf(self->out, " <code>%06" PRIx64 "</code>",
                   fingerprint >> 40);
    if (cut != NULL) {
        cm_put(self, " (cut ");
        cm_put_place(self, &cut->made_at[0]);
        cm_put(self, ")");
    }
}

static void
add_shared(struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    if (cycle->shared_count == 0) {
        return;
    }
    cm_put(self, "<p>Some of it is also held by");
    for (size_t i = 0; i < cycle->shared_count && i < MAX_HELD; i++) {
        add_other(self, cycle->shared_with[i]);
    }
    cm_put(self, "; it is counted once, and goes when all are cut.</p>\n");
}

void
cm_held_add(struct cm_sheet *self, const struct cm_leak_cycle *cycle)
{
    cm_put(self, "<section class=\"holds\">");
    add_storages(self, "<h3>Holds</h3>", cycle->payload, cycle->payload_count);
    add_storages(self,
                 "<h3>Also held elsewhere <small>in no total</small></h3>",
                 cycle->held_elsewhere, cycle->held_elsewhere_count);
    add_shared(self, cycle);
    cm_put(self, "</section>\n");
}

static void
add_frame(struct cm_sheet *self, const struct cm_leak_frame *frame, bool here)
{
    cm_put(self, here ? "<li class=\"user\">" : "<li>");
    cm_put_place(self, frame);
    cm_put(self, " <span class=\"name\">");
    cm_escape_html_label(self->out, cm_sheet_text(self, frame->name),
                         CM_LABEL_MAX);
    cm_put(self, "</span> <code class=\"source\">");
    cm_escape_html_label(self->out,
                         cm_unindented(cm_sheet_text(self, frame->source)),
                         CM_LABEL_MAX);
    cm_put(self, "</code></li>\n");
}

/* A run of library frames, folded; returns the index behind it. */
static size_t
add_library_frames(struct cm_sheet *self, const struct cm_leak_site *site,
                   size_t i)
{
    size_t end = i;

    while (end < site->frame_count && site->frames[end].library) {
        end++;
    }
    cm_buffer_addf(self->out,
                   "<li class=\"library\"><details%s><summary>%zu frame%s in "
                   "libraries</summary><ol>\n",
                   self->options->all_frames ? " open" : "", end - i,
                   end - i == 1 ? "" : "s");
    for (; i < end; i++) {
        add_frame(self, &site->frames[i], false);
    }
    cm_put(self, "</ol></details></li>\n");
    return end;
}

static void
add_stack(struct cm_sheet *self, const struct cm_leak_site *site)
{
    size_t i = 0;

    cm_put(self, "<ol class=\"stack\">\n");
    while (i < site->frame_count && i < MAX_FRAMES) {
        if (site->frames[i].library) {
            i = add_library_frames(self, site, i);
        }
        else {
            add_frame(self, &site->frames[i], (int64_t)i == site->user_frame);
            i++;
        }
    }
    if (i < site->frame_count) {
        cm_buffer_addf(self->out, "<li>%zu more frames</li>\n",
                       site->frame_count - i);
    }
    cm_put(self, "</ol>\n");
}

/* What the stack is of: the path's end, else the first payload that has one;
 * returns the stack, 0: none. */
static uint32_t
find_site(struct cm_sheet *self, const struct cm_leak_cycle *cycle,
          const struct cm_path *path, uint32_t *storage, uint32_t *vertex)
{
    uint32_t site = 0;

    *storage = *vertex = 0;
    if (path->count > 0) {
        *vertex = path->steps[path->count - 1].vertex;
        *storage = cm_leak_vertex_at(self->leak, *vertex)->storage;
        site = cm_leak_alloc_site(self->leak, *storage, *vertex);
    }
    for (size_t i = 0; site == 0 && i < cycle->payload_count; i++) {
        *vertex = 0;
        *storage = cycle->payload[i];
        site = cm_leak_storage_at(self->leak, *storage)->site;
    }
    return site;
}

/* The block of the allocator that the memory lies in, as far as it is known
 * to be one. */
static void
add_block(struct cm_sheet *self, const struct cm_leak_storage *storage)
{
    const char *pool = cm_sheet_text(self, storage->pool);

    if (storage->thread == 0 && pool[0] == '\0'
        && (storage->block_bytes == 0
            || storage->block_bytes == storage->bytes)) {
        return;
    }
    cm_put(self, "<p class=\"note\">");
    cm_put_size(self, storage->bytes);
    cm_put(self, " in a block of ");
    cm_put_size(self, storage->block_bytes);
    if (storage->stream >= 0) {
        cm_buffer_addf(self->out, ", stream 0x%" PRIx64,
                       (uint64_t)storage->stream);
    }
    if (storage->thread > 0) {
        cm_buffer_addf(self->out, ", thread %" PRIu32, storage->thread);
    }
    cm_put(self, pool[0] != '\0' ? ", pool " : "");
    cm_escape_html_label(self->out, pool, CM_LABEL_MAX);
    cm_put(self, "</p>\n");
    if (storage->awaited) {
        cm_put(self, "<p class=\"note\">In backward: another thread allocated "
                     "it, this one waited.</p>\n");
    }
}

/* Where the object was made, when its memory was allocated elsewhere. */
static void
add_object(struct cm_sheet *self, uint32_t vertex, uint32_t site)
{
    uint32_t made =
        vertex != 0 ? cm_leak_vertex_at(self->leak, vertex)->site : 0;
    const struct cm_leak_site *stack;

    if (made == 0 || made == site) {
        return;
    }
    stack = cm_leak_site_at(self->leak, made);
    if (stack->user_frame >= 0) {
        cm_put(self, "<p class=\"note\">The object was made at</p>"
                     "<ol class=\"stack\">\n");
        add_frame(self, &stack->frames[stack->user_frame], true);
        cm_put(self, "</ol>\n");
    }
}

void
cm_held_add_site(struct cm_sheet *self, uint32_t site, bool awaited)
{
    cm_put(self, "<section class=\"alloc\"><h3>Allocated at</h3>\n");
    if (site == 0 || cm_leak_site_at(self->leak, site)->frame_count == 0) {
        cm_put(self, "<p>Not known: no stack was recorded.</p>\n");
    }
    else {
        add_stack(self, cm_leak_site_at(self->leak, site));
    }
    if (awaited) {
        cm_put(self, "<p class=\"note\">In backward: another thread allocated "
                     "it, this one waited.</p>\n");
    }
    cm_put(self, "</section>\n");
}

void
cm_held_add_stack(struct cm_sheet *self, const struct cm_leak_cycle *cycle,
                  const struct cm_path *path)
{
    uint32_t storage, vertex;
    uint32_t site = find_site(self, cycle, path, &storage, &vertex);
    const struct cm_leak_storage *block =
        storage != 0 ? cm_leak_storage_at(self->leak, storage) : NULL;

    cm_put(self, "<section class=\"alloc\"><h3>Allocated at</h3>\n");
    if (site == 0 || cm_leak_site_at(self->leak, site)->frame_count == 0) {
        cm_put(self, "<p>Not known: no stack was recorded.</p>\n");
    }
    else {
        add_stack(self, cm_leak_site_at(self->leak, site));
    }
    if (block != NULL && block->block_bytes > 0) {
        add_block(self, block);
        if (block->site == site) {
            add_object(self, vertex, site);
        }
    }
    cm_put(self, "</section>\n");
}
