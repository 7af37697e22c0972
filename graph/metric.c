/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* By the module of its type, or by reset() among the methods of a class that the
 * program derives.  O(steps), and O(methods) of those. */

#include "metric.h"

#include <string.h>

#include "name.h"
#include "repeat.h"
#include "way.h"

static bool
is_reset(const struct cm_holding *self, struct cm_code_id id)
{
    const struct cm_code *code = cm_records_code(self->records, id);
    return cm_way_is(self, code->qualified_name, "Metric.reset")
           && strstr(cm_way_text(self, code->filename), "/torchmetrics/")
                  != NULL;
}

static bool
is_derived(const struct cm_holding *self, size_t step)
{
    const struct cm_type *type =
        cm_records_type(self->records, cm_way_step(self, step)->type);
    bool derived = false;
    for (uint32_t i = 0; !derived && i < type->method_count; i++) {
        derived = is_reset(self, type->methods[i]);
    }
    return derived;
}

/* self.rows = [], where add_state("rows", []) would make a state of it. */
static bool
is_own_attribute(const struct cm_holding *self, size_t step)
{
    struct cm_name name = cm_way_name_of(self, step);
    bool own = false;
    for (size_t i = 0; !own && i < self->code_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        for (uint32_t k = 0; !code->library && !own && k < code->store_count;
             k++) {
            own = code->stores[k].kind == CM_STORE_ATTRIBUTE
                  && cm_way_is(self, code->stores[k].name, name.text);
        }
    }
    return own;
}

static bool
is_metric(const struct cm_holding *self, size_t step)
{
    return cm_way_is_of(cm_way_module(self, step), "torchmetrics")
           || (is_derived(self, step) && !is_own_attribute(self, step + 1));
}

/* The last one on the way whose state it is; 0: none. */
static size_t
metric_of(const struct cm_holding *self)
{
    size_t found = 0;
    for (size_t i = 1; i < self->count && i < self->at; i++) {
        found = is_metric(self, i) ? i : found;
    }
    return found;
}

bool
cm_metric_is(const struct cm_holding *self)
{
    return self->count > 1 && metric_of(self) != 0;
}

/* The first one, which may be a collection of metrics. */
static struct cm_name
variable_of(const struct cm_holding *self)
{
    size_t first = metric_of(self);
    for (size_t i = first; i > 1; i--) {
        first = is_metric(self, i - 1) ? i - 1 : first;
    }
    return cm_way_name_of(self, first);
}

static void
count_stores(const struct cm_holding *self, const struct cm_code *code,
             const char *name, unsigned *once, unsigned *again)
{
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        if (store->kind >= CM_STORE_ATTRIBUTE && store->kind <= CM_STORE_GLOBAL
            && cm_way_is(self, store->name, name)) {
            ++*(cm_repeat_runs(self, code, store) ? again : once);
        }
    }
}

/* Around the calls of this function. */
static uint32_t
loops_of_callers(const struct cm_holding *self, const struct cm_code *code)
{
    uint32_t most = 0;
    for (size_t i = 0; i < self->code_count; i++) {
        const struct cm_code *caller =
            cm_records_code(self->records, self->codes[i]);
        for (uint32_t k = 0; !caller->library && k < caller->store_count;
             k++) {
            const struct cm_store *store = &caller->stores[k];
            bool calls =
                (store->kind == CM_STORE_CALL || store->kind == CM_STORE_HAND)
                && cm_text_same(store->name, code->name);
            most = calls && store->depth > most ? store->depth : most;
        }
    }
    return most;
}

/* x.update() in a loop that stands in another one. */
static bool
is_updated_in_epochs(const struct cm_holding *self, const struct cm_code *code,
                     const char *name)
{
    uint32_t most = 0;
    bool updated = false;
    for (uint32_t i = 0; i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        bool calls = store->kind == CM_STORE_CALL
                     && cm_way_is(self, store->owner, name);
        updated |= calls;
        most = calls && store->depth > most ? store->depth : most;
    }
    return updated && most + loops_of_callers(self, code) > 1;
}

bool
cm_metric_outlives_epochs(const struct cm_holding *self)
{
    unsigned once = 0, again = 0;
    bool epochs = false;
    struct cm_name name = {0};
    if (cm_metric_is(self)) {
        name = variable_of(self);
    }
    for (size_t i = 0; name.text[0] != '\0' && i < self->code_count; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, self->codes[i]);
        if (!code->library) {
            count_stores(self, code, name.text, &once, &again);
            epochs |= is_updated_in_epochs(self, code, name.text);
        }
    }
    return once != 0 && again == 0 && epochs;
}

char *
cm_metric_say(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name_at(self, metric_of(self), &name);
    return cm_sentence("call %s.reset() at the end of each epoch: update() "
                       "adds to its state, and compute() takes nothing away",
                       name.text);
}
