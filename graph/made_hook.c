/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The calls that register a hook go by the name of the table that they fill;
 * a library's own calls of that kind say nothing about the user's hook.
 * Cost: one search more than other finders at most. */

#include "made_private.h"

#include <stdio.h>
#include <string.h>

#include "name.h"

/* "forward_pre" of "_forward_pre_hooks" and of "register_forward_pre_hook". */
static struct cm_name
hook_kind(const char *name, const char *begin, const char *end)
{
    struct cm_name kind = {""};
    const char *last;

    name += name[0] == '_';
    name += strncmp(name, begin, strlen(begin)) == 0 ? strlen(begin) : 0;
    last = strstr(name, end);
    if (last != NULL) {
        snprintf(kind.text, sizeof kind.text, "%.*s", (int)(last - name),
                 name);
    }
    return kind;
}

/* Calls whose tables are called otherwise. */
static bool
is_other_name(const char *call, const char *table)
{
    static const char *const others[][2] = {
        {"", "backward"}, /* Tensor.register_hook() */
        {"full_backward", "backward"},
        {"full_backward_pre", "backward_pre"},
        {"state_dict_post", "state_dict"},
    };

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(call, others[i][0]) == 0
            && strcmp(table, others[i][1]) == 0) {
            return true;
        }
    }
    return false;
}

static bool
is_hook_call(const struct cm_place_search *self, const struct cm_store *store)
{
    const char *name = cm_place_text(self, store->name);

    name += name[0] == '_';
    return store->kind == CM_STORE_CALL && strncmp(name, "register_", 9) == 0
           && strstr(name, "hook") != NULL;
}

/* One that fills the table of this name. */
static bool
is_call_of_table(const struct cm_place_search *self,
                 const struct cm_store *store)
{
    const char *name = cm_place_text(self, store->name);
    struct cm_name call = hook_kind(name, "register_", "hook");
    struct cm_name table = hook_kind(self->name, "optimizer_", "_hooks");
    size_t length = strlen(call.text);

    if (length != 0 && call.text[length - 1] == '_') {
        call.text[length - 1] = '\0';
    }
    return is_hook_call(self, store)
           && (strcmp(call.text, table.text) == 0
               || is_other_name(call.text, table.text));
}

enum cm_status
cm_made_by_hook(const struct cm_cycle *cycle, const struct cm_suspect *suspect,
                struct cm_made *result)
{
    struct cm_name table = cm_made_name_of(cycle, suspect->held);
    struct cm_place_search search = {
        .cycle = cycle, .is_wanted = is_call_of_table, .name = table.text};
    struct cm_place made = {.line = 0};

    if (suspect->maker != 0) {
        made = cm_made_place_of_function(cycle, suspect);
    }
    cm_place_look_around(&search, suspect->owner);
    if (search.count == 0) {
        search.is_wanted = is_hook_call;
        cm_place_look_around(&search, suspect->owner);
    }
    for (uint32_t i = 0; i < search.count && made.line != 0; i++) {
        if (search.found[i].place.line == made.line
            && cm_text_same(cm_made_code_of(cycle, made.code)->filename,
                            cm_made_code_of(cycle, search.found[i].place.code)
                                ->filename)) {
            cm_made_choose_only(search.found[i].place, result);
            return CM_OK;
        }
    }
    cm_place_sort(&search);
    if (made.line == 0 || !cm_place_is_library(&search)) {
        cm_made_choose(&search, result);
    }
    return result->place_count > 0
               ? CM_OK
               : cm_made_by_function(cycle, suspect, result);
}
