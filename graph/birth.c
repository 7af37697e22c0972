/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The innermost file that is in the table decides; a module's own moves and
 * what it computes with are not inputs.  Else the line that allocates is asked
 * whether it calls x.to() or the like. */

#include "birth.h"

#include <string.h>

static const struct {
    const char *file;     /* how its name ends, or with '/' at its end: a
                           * folder in it */
    const char *function; /* "": any */
    enum cm_birth birth;
} files[] = {
    {"/torch/serialization.py", "", CM_BIRTH_LOADED},
    {"/safetensors/torch.py", "", CM_BIRTH_LOADED},
    {"/copy.py", "deepcopy", CM_BIRTH_COPIED},
    {"/torch/nn/modules/module.py", "_call_impl", CM_BIRTH_COMPUTED},
    {"/torch/nn/modules/module.py", "", CM_BIRTH_OTHER},
    {"/torch/optim/", "", CM_BIRTH_OTHER},
    {"/torch/utils/data/", "", CM_BIRTH_INPUT},
};

static bool
is_file(const char *name, const char *wanted)
{
    size_t length = strlen(name), end = strlen(wanted);
    if (wanted[end - 1] == '/') {
        return strstr(name, wanted) != NULL;
    }
    return length >= end && strcmp(name + length - end, wanted) == 0;
}

static bool
is_known(const struct cm_records *records, const struct cm_code *code,
         enum cm_birth *birth)
{
    const char *file = cm_records_text(records, code->filename);
    const char *name = cm_records_text(records, code->name);
    for (size_t i = 0; code->library && i < sizeof files / sizeof files[0];
         i++) {
        if (is_file(file, files[i].file)
            && (files[i].function[0] == '\0'
                || strcmp(name, files[i].function) == 0)) {
            *birth = files[i].birth;
            return true;
        }
    }
    return false;
}

static bool
moves(const struct cm_records *records, const struct cm_frame *frame)
{
    static const char *const names[] = {"to", "cuda", "xpu", "pin_memory"};
    const struct cm_code *code = cm_records_code(records, frame->code);
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        if (store->kind != CM_STORE_CALL || store->line != frame->line) {
            continue;
        }
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            if (strcmp(cm_records_text(records, store->name), names[k]) == 0) {
                return true;
            }
        }
    }
    return false;
}

enum cm_birth
cm_birth_of(const struct cm_records *records, struct cm_site_id id)
{
    const struct cm_site *site = cm_records_site(records, id);
    enum cm_birth birth;
    for (uint32_t i = 0; i < site->frame_count; i++) {
        if (is_known(records, cm_records_code(records, site->frames[i].code),
                     &birth)) {
            return birth;
        }
    }
    return site->frame_count != 0 && moves(records, &site->frames[0])
               ? CM_BIRTH_INPUT
               : CM_BIRTH_OTHER;
}
