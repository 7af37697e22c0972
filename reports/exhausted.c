/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * One object of the document, with a list of at most CM_LEAK_MAX_KEPT; absent
 * where memory did not run out. */
#include "exhausted.h"

#include <inttypes.h>

#include "../detector/number.h"
#include "../detector/size.h"
#include "growth_unit.h"
#include "utf8.h"

static enum cm_status
intern(struct cm_leak *leak, const char *text, struct cm_text_id *result)
{
    *result = cm_texts_intern(leak->texts, text);
    return result->index != 0 || text[0] == '\0' ? CM_OK : CM_NO_MEMORY;
}

enum cm_status
cm_exhausted_set(struct cm_leak *leak, const struct cm_exhausted_use *use)
{
    struct cm_leak_exhausted made = {
        .known = true,
        .iteration = leak->iteration,
        .asked_bytes = use->asked_bytes == CM_LEAK_UNKNOWN
                           ? CM_LEAK_UNKNOWN
                           : cm_number_capped(use->asked_bytes),
        .kept_count =
            use->count < CM_LEAK_MAX_KEPT ? use->count : CM_LEAK_MAX_KEPT};
    enum cm_status status = intern(leak, use->error, &made.error);

    if (status == CM_OK) {
        status = intern(leak, use->device, &made.device);
    }
    for (size_t i = 0; status == CM_OK && i < made.kept_count; i++) {
        made.kept[i].bytes = cm_number_capped(use->bytes[i]);
        status = intern(leak, use->ways[i], &made.kept[i].way);
    }
    if (status == CM_OK) {
        leak->exhausted = made;
    }
    return status;
}

void
cm_exhausted_write(struct cm_json_writer *self)
{
    const struct cm_leak_exhausted *exhausted = &self->leak->exhausted;

    if (!exhausted->known) {
        return;
    }
    cm_buffer_add_text(self->out, ",\n\"exhausted\":{");
    self->comma = false;
    cm_json_add_known(self, "iteration", exhausted->iteration);
    cm_json_add_text(self, "error", exhausted->error);
    cm_json_add_some_text(self, "device", exhausted->device);
    cm_json_add_some_number(self, "asked_bytes", exhausted->asked_bytes);
    cm_json_add_key(self, "holders");
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < exhausted->kept_count; i++) {
        cm_json_open_part(self, i);
        cm_json_add_text(self, "way", exhausted->kept[i].way);
        cm_json_add_number(self, "bytes", exhausted->kept[i].bytes);
        cm_buffer_add_char(self->out, '}');
    }
    cm_buffer_add_char(self->out, ']');
    cm_json_close_item(self);
}

/* Of a longer list the first are read. */
static void
read_kept(struct cm_json *json, const struct cJSON *item,
          struct cm_leak_exhausted *exhausted)
{
    const struct cJSON *array = cm_json_array(json, item, "holders");

    json->list = "holders";
    json->item = 0;
    for (const struct cJSON *part = cm_json_first(array);
         part != NULL && exhausted->kept_count < CM_LEAK_MAX_KEPT;
         part = cm_json_next(part)) {
        struct cm_leak_kept *kept = &exhausted->kept[exhausted->kept_count++];

        kept->way = cm_json_text(json, part, "way");
        kept->bytes = cm_json_number(json, part, "bytes", 0);
        json->item++;
    }
    json->list = NULL;
}

void
cm_exhausted_read(struct cm_leak_reader *self)
{
    const struct cJSON *item = cm_json_get(self->json.root, "exhausted");
    struct cm_leak_exhausted *exhausted = &self->leak->exhausted;

    if (item == NULL) {
        return;
    }
    if (!cm_json_is_object(item)) {
        cm_json_fail(&self->json, "exhausted", "expected an object");
        return;
    }
    self->json.object = "exhausted";
    exhausted->known = true;
    exhausted->iteration = cm_json_known(&self->json, item, "iteration");
    exhausted->error = cm_json_text(&self->json, item, "error");
    exhausted->device = cm_json_text(&self->json, item, "device");
    exhausted->asked_bytes =
        cm_json_number(&self->json, item, "asked_bytes", CM_LEAK_UNKNOWN);
    read_kept(&self->json, item, exhausted);
    self->json.object = NULL;
}

const struct cm_leak_device *
cm_exhausted_device(const struct cm_leak *leak)
{
    const struct cm_leak_exhausted *exhausted = &leak->exhausted;

    for (size_t i = 0; exhausted->known && i < leak->device_count; i++) {
        if (cm_text_same(leak->devices[i].name, exhausted->device)) {
            return &leak->devices[i];
        }
    }
    return NULL;
}

/* ===== for people ======================================================= */

void
cm_exhausted_add_sentence(const struct cm_leak *leak, struct cm_buffer *out)
{
    const struct cm_leak_exhausted *exhausted = &leak->exhausted;
    const char *device = cm_leak_text(leak, exhausted->device);
    const char *error = cm_leak_text(leak, exhausted->error);
    char size[CM_SIZE_TEXT_BYTES];

    cm_buffer_add_text(out, "memory ran out");
    cm_buffer_add_text(out, device[0] != '\0' ? " on " : "");
    cm_utf8_add_harmless(out, device);
    if (exhausted->iteration > 0) {
        cm_buffer_addf(out, " at %s %" PRId64,
                       cm_growth_unit_of(leak, exhausted->iteration),
                       exhausted->iteration);
    }
    cm_buffer_add_text(out, error[0] != '\0' ? ": " : "");
    cm_utf8_add_harmless(out, error);
    if (exhausted->asked_bytes != CM_LEAK_UNKNOWN) {
        cm_size_format(exhausted->asked_bytes, size);
        cm_buffer_addf(out, ", %s asked for", size);
    }
}

void
cm_exhausted_add_kept(const struct cm_leak *leak, size_t i,
                      struct cm_buffer *out)
{
    const struct cm_leak_kept *kept = &leak->exhausted.kept[i];
    char size[CM_SIZE_TEXT_BYTES];

    cm_size_format(kept->bytes, size);
    cm_buffer_addf(out, "%s: ", size);
    cm_utf8_add_harmless(out, cm_leak_text(leak, kept->way));
}
