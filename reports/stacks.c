/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Copying texts, places and stacks of the records into the document, with the
 * source lines that go with them.  A stack is copied once per document. */
#include "representative.h"

#include <string.h>

#include "../detector/alloc.h"
#include "utf8.h"

/* Interns as valid UTF-8. */
enum cm_status
cm_copy_text(struct cm_copy *self, const char *text, struct cm_text_id *result)
{
    size_t length = strlen(text);
    enum cm_status status;

    *result = (struct cm_text_id){0};
    if (length == 0) {
        return CM_OK;
    }
    cm_buffer_clear(&self->text);
    cm_utf8_add_valid(&self->text, text, length);
    status = cm_buffer_status(&self->text);
    if (status == CM_OK) {
        status = cm_texts_add(self->leak->texts, self->text.bytes,
                              self->text.length, result);
    }
    return status;
}

enum cm_status
cm_copy_text_id(struct cm_copy *self, struct cm_text_id text,
                struct cm_text_id *result)
{
    return cm_copy_text(self, cm_records_text(self->records, text), result);
}

static enum cm_status
intern_lines(struct cm_copy *self, struct cm_text_id name, uint32_t line,
             uint32_t count, struct cm_text_id *result)
{
    const struct cm_source *typed = cm_records_source(self->records, name);
    struct cm_buffer lines = {.max_bytes = 2000};
    enum cm_status status = CM_OK;

    if (typed == NULL) {
        cm_source_lines(&self->sources, cm_records_text(self->records, name),
                        line, count, &lines);
    }
    else if (line != 0) {
        cm_source_cut(typed->bytes, typed->length, line, count, &lines);
    }
    if (cm_buffer_status(&lines) == CM_OK) {
        status = cm_copy_text(self, cm_buffer_text(&lines), result);
    }
    else if (cm_buffer_status(&lines) == CM_NO_MEMORY) {
        status = CM_NO_MEMORY;
    }
    cm_buffer_release(&lines);
    return status;
}

enum cm_status
cm_copy_frame(struct cm_copy *self, struct cm_code_id code_id, uint32_t line,
              struct cm_leak_frame *result)
{
    const struct cm_code *code = cm_records_code(self->records, code_id);
    const char *filename = cm_records_text(self->records, code->filename);
    uint32_t before = line > 2 ? 2 : line - (line > 0);
    enum cm_status status;

    result->line = line;
    result->library = code->library;
    status = cm_copy_text(self, filename, &result->filename);
    if (status == CM_OK) {
        status = cm_copy_text_id(self, code->qualified_name, &result->name);
    }
    if (status == CM_OK) {
        status = intern_lines(self, code->filename, line, 1, &result->source);
    }
    if (status == CM_OK && !code->library && before > 0) {
        status = intern_lines(self, code->filename, line - before, before,
                              &result->before);
    }
    if (status == CM_OK && !code->library) {
        status =
            intern_lines(self, code->filename, line + 1, 2, &result->after);
    }
    return status;
}

static enum cm_status
copy_frames(struct cm_copy *self, const struct cm_site *from,
            struct cm_leak_site *site)
{
    enum cm_status status = CM_OK;

    site->user_frame = -1;
    site->frames = cm_calloc(from->frame_count, sizeof(site->frames[0]));
    if (site->frames == NULL) {
        return CM_NO_MEMORY;
    }
    site->frame_count = from->frame_count;
    for (uint32_t i = 0; status == CM_OK && i < from->frame_count; i++) {
        status = cm_copy_frame(self, from->frames[i].code,
                               from->frames[i].line, &site->frames[i]);
        if (site->user_frame < 0 && !site->frames[i].library) {
            site->user_frame = (int32_t)i;
        }
    }
    return status;
}

/* The document's id of a stack, copied at first sight. */
enum cm_status
cm_copy_site(struct cm_copy *self, struct cm_site_id id, uint32_t *result)
{
    struct cm_leak *leak = self->leak;
    const struct cm_site *from = cm_records_site(self->records, id);
    struct cm_leak_site site = {0};
    enum cm_status status;

    *result = 0;
    if (id.index == 0 || from->frame_count == 0) {
        return CM_OK;
    }
    status = cm_grow_zeroed((void **)&leak->site_map, &leak->site_map_capacity,
                            (size_t)id.index + 1, sizeof(leak->site_map[0]));
    if (status != CM_OK) {
        return status;
    }
    if (leak->site_map[id.index] == 0) {
        status = cm_grow((void **)&leak->sites, &leak->site_capacity,
                         leak->site_count + 1, sizeof(site));
        if (status == CM_OK) {
            status = copy_frames(self, from, &site);
        }
        if (status != CM_OK) {
            cm_free(site.frames);
            return status;
        }
        leak->sites[leak->site_count++] = site;
        leak->site_map[id.index] = (uint32_t)leak->site_count;
    }
    *result = leak->site_map[id.index];
    return CM_OK;
}
