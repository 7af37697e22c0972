/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "repeat.h"

#include <string.h>

#include "alias.h"
#include "way.h"

/* "Trainer.fit", not "fit" nor "main.<locals>.fit". */
static bool
is_method(const struct cm_holding *self, const struct cm_code *code)
{
    const char *name = cm_way_text(self, code->qualified_name);
    const char *dot = strrchr(name, '.');
    return dot != NULL && dot > name && dot[-1] != '>';
}

/* What any module or optimizer has too: model.train() is not self.train(). */
static bool
is_torchs(const struct cm_holding *self, struct cm_text_id name)
{
    static const char *const names[] = {"train", "eval", "forward", "step",
                                        "to",    "cuda", "cpu"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        found |= cm_way_is(self, name, names[i]);
    }
    return found;
}

bool
cm_repeat_has(const struct cm_code *code, enum cm_store_kind kind,
              struct cm_text_id name)
{
    bool found = false;
    for (uint32_t i = 0; !found && i < code->store_count; i++) {
        found = code->stores[i].kind == kind
                && cm_text_same(code->stores[i].name, name);
    }
    return found;
}

/* x of x.f() is a variable of the caller's: an object, and no module. */
static bool
is_variable(const struct cm_code *caller, struct cm_text_id name)
{
    return cm_repeat_has(caller, CM_STORE_LOCAL, name)
           || cm_repeat_has(caller, CM_STORE_PARAMETER, name);
}

bool
cm_repeat_calls(const struct cm_holding *self, const struct cm_code *caller,
                const struct cm_store *store, const struct cm_code *code)
{
    bool call = store->kind == CM_STORE_CALL;
    bool own = cm_way_is(self, store->owner, "self");
    if (!cm_text_same(store->name, code->name)
        || (!call && store->kind != CM_STORE_HAND)) {
        return false;
    }
    if (!call && !store->made) {
        return true;
    }
    if (is_method(self, code)) {
        return own || !is_torchs(self, code->name);
    }
    return call && store->owner.index != 0 && !own
           && !is_variable(caller, store->owner)
           && !is_torchs(self, code->name);
}

/* In a loop of this one; who does it outside of one is added. */
static bool
calls_again(const struct cm_holding *self, const struct cm_code *caller,
            const struct cm_code *code, struct cm_aliases *callers)
{
    bool again = false;
    for (uint32_t i = 0; caller != code && !caller->library && !again
                         && i < caller->store_count;
         i++) {
        if (cm_repeat_calls(self, caller, &caller->stores[i], code)) {
            again = caller->stores[i].repeated;
            cm_aliases_add(callers, caller, (struct cm_text_id){0});
        }
    }
    return again;
}

bool
cm_repeat_is_called(const struct cm_holding *self, const struct cm_code *code)
{
    struct cm_aliases callers = {.count = 1, .items = {{.code = code}}};
    bool again = false;
    for (size_t i = 0; !again && i < callers.count; i++) {
        for (size_t k = 0; !again && k < self->code_count; k++) {
            again = calls_again(self,
                                cm_records_code(self->records, self->codes[k]),
                                callers.items[i].code, &callers);
        }
    }
    return again;
}

bool
cm_repeat_runs(const struct cm_holding *self, const struct cm_code *code,
               const struct cm_store *store)
{
    return store->repeated || cm_repeat_is_called(self, code);
}
