/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "walked.h"

#include "deaths.h"
#include "objects_private.h"

static bool
is_users(const struct cm_objects *self, struct cm_code_id id)
{
    return id.index != 0 && !cm_records_code(self->records, id)->library;
}

/* After: whether the frame is the user's. */
static bool
write_frame(struct cm_objects *self, PyCodeObject *code, int offset,
            struct cm_frame *frame)
{
    cm_deaths_note(code);
    int line = PyCode_Addr2Line(code, offset);
    frame->code = cm_objects_code(self, code);
    frame->line = line > 0 ? (uint32_t)line : 0;
    return is_users(self, frame->code);
}

/* Whether there is one of the user's among those that were left out: the
 * innermost of them is written. */
static bool
write_beyond(struct cm_objects *self, const struct cm_raw_frame *raw,
             struct cm_frame *frame)
{
    bool users = false;
    for (int i = 0; i < CM_STACK_BEYOND && raw != NULL && !users; i++) {
        PyCodeObject *code = (PyCodeObject *)cm_stack_ref_object(raw->code);
        users = write_frame(self, code, (int)cm_raw_frame_unit(raw, code) * 2,
                            frame);
        raw = cm_raw_frame_next(raw->previous);
    }
    return users;
}

struct cm_site_id
cm_walked_add(struct cm_objects *self, const struct cm_walked *walked,
              uint64_t hash)
{
    struct cm_frame frames[CM_STACK_FRAMES + 1];
    struct cm_site_id id = {0};
    uint32_t count = walked->count;
    bool users = false;
    if (atomic_load_explicit(&self->sites_full, memory_order_relaxed)) {
        return id;
    }
    for (uint32_t i = 0; i < walked->count; i++) {
        users |= write_frame(self, walked->frames[i].code,
                             walked->frames[i].offset, &frames[i]);
    }
    if (!users && write_beyond(self, walked->beyond, &frames[count])) {
        count++;
    }
    struct cm_site site = {
        .frames = frames, .frame_count = count, .cut = walked->cut};
    enum cm_status status = cm_records_add_site(self->records, &site, &id);
    if (status != CM_OK) {
        id = (struct cm_site_id){0};
    }
    if (status != CM_NO_MEMORY) {
        cm_stack_remember(self, hash, id);
    }
    return id;
}

bool
cm_walked_has_users(struct cm_objects *self, const struct cm_walked *walked)
{
    bool users = false;
    for (uint32_t i = 0; i < walked->count && !users; i++) {
        users = is_users(self, cm_objects_code(self, walked->frames[i].code));
    }
    return users;
}
