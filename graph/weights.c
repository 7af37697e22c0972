/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "weights.h"

#include <stdio.h>
#include <string.h>

#include "name.h"
#include "way.h"

static bool
is_text_key(const char *edge)
{
    return cm_way_begins(edge, "['");
}

/* "['layer1.0.weight']": what state_dict() calls its tensors. */
static bool
is_state_key(const char *edge)
{
    static const char *const ends[] = {"weight']", "bias']", "running_mean']",
                                       "running_var']", "exp_avg']"};
    size_t length = strlen(edge);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t wanted = strlen(ends[i]);
        if (is_text_key(edge) && length >= wanted + 2
            && strcmp(edge + length - wanted, ends[i]) == 0
            && strchr(".'", edge[length - wanted - 1]) != NULL) {
            return true;
        }
    }
    return false;
}

/* variable -> dict -> (dict ...) -> tensor by the name of a parameter; a
 * module's own tables are attributes and do not count. */
bool
cm_weights_is_checkpoint(const struct cm_holding *self)
{
    if (self->count < 3 || self->grows
        || !cm_way_is_tensor(cm_way_step(self, self->count - 1))
        || cm_way_step(self, 1)->species != CM_DICT
        || !cm_way_is_named(self, 1)
        || !is_state_key(
            cm_way_text(self, cm_way_step(self, self->count - 1)->edge))) {
        return false;
    }
    for (size_t i = 2; i + 1 < self->count; i++) {
        if (cm_way_step(self, i)->species != CM_DICT
            || cm_way_step(self, i)->role != CM_VALUE) {
            return false;
        }
    }
    return true;
}

/* "['state'][3]['exp_avg']": what an optimizer's state_dict() calls them. */
static bool
is_optimizer_state(const struct cm_holding *self)
{
    static const char *const keys[] = {"['exp_avg']",         "['exp_avg_sq']",
                                       "['max_exp_avg_sq']",  "['square_avg']",
                                       "['momentum_buffer']", "['step']"};
    size_t last = self->count - 1;
    const char *key = cm_way_text(self, cm_way_step(self, last)->edge);
    bool known = false;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        known |= strcmp(key, keys[i]) == 0;
    }
    return known && self->at + 2 < last
           && cm_way_is(self, cm_way_step(self, last - 2)->edge, "['state']");
}

/* container -> dict -> tensor by the name of a parameter: state_dict(), or as
 * many gradients or norms. */
bool
cm_weights_pile_up(const struct cm_holding *self)
{
    size_t last = self->count - 1;
    if (!self->grows || last < 2 || self->at + 1 >= last
        || !cm_way_step(self, self->at)->counted
        || !cm_way_is_tensor(cm_way_step(self, last))) {
        return false;
    }
    const struct cm_holding_step *table = cm_way_step(self, last - 1);
    return table->species == CM_DICT
           && (table->role == CM_VALUE || table->role == CM_ITEM)
           && (is_state_key(cm_way_text(self, cm_way_step(self, last)->edge))
               || is_optimizer_state(self));
}

char *
cm_weights_say_pile(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name(self, &name);
    return cm_sentence("keep the last or the best of %s only, or write them "
                       "to a file with torch.save(): each has a tensor for "
                       "every parameter",
                       name.text);
}

bool
cm_weights_is_copy(const struct cm_holding *self)
{
    return self->category != NULL
           && strcmp(self->category, CM_HOLDING_COPY) == 0;
}

char *
cm_weights_say_checkpoint(const struct cm_holding *self)
{
    return cm_sentence(
        "`del %s` after load_state_dict(), or load it with "
        "map_location='cpu'",
        cm_name_of_label(self->records, cm_way_step(self, 1)->edge).text);
}

/* "self.old" as the line that sets it writes it, else "trainer.old" by who has
 * it; ".old" of what no variable has. */
static struct cm_way_name
attribute_at(const struct cm_holding *self, size_t i)
{
    struct cm_name name = cm_way_name_of(self, i);
    struct cm_way_name owner = {.text = ""}, code;
    cm_way_name_at(self, i, &code);
    cm_way_code(self, &code);
    if (code.step == i && strchr(code.text, '.') != NULL) {
        return code;
    }
    if (cm_way_is_variable(cm_way_step(self, i - 1))) {
        cm_way_name_at(self, i - 1, &owner);
    }
    snprintf(code.text, sizeof code.text, "%.*s.%s",
             (int)(sizeof code.text - sizeof name.text - 2), owner.text,
             name.text);
    return code;
}

/* The last variable on the way is the copy, or has it in a container. */
char *
cm_weights_say_copy(const struct cm_holding *self)
{
    size_t i = self->count - 1;
    while (i > 1 && !cm_way_is_variable(cm_way_step(self, i))) {
        i--;
    }
    bool global = i == 1 && cm_way_step(self, 0)->species == CM_MODULE;
    bool attribute = cm_way_step(self, i)->role == CM_ATTRIBUTE && !global;
    return attribute
               ? cm_sentence("set %s = None when the model has these "
                             "weights: nothing has used this copy since",
                             attribute_at(self, i).text)
               : cm_sentence("`del %s` when the model has these weights: "
                             "nothing has used this copy since",
                             cm_way_name_of(self, i).text);
}

bool
cm_weights_get_larger(const struct cm_holding *self)
{
    return cm_way_is_category(self, CM_HOLDING_OF_MODEL)
           || (cm_way_is_category(self, CM_HOLDING_MODEL) && self->count > 1);
}

/* The module that has the parameter, "emb" of ._modules['emb']; else what is
 * named last. */
static size_t
module_of(const struct cm_holding *self)
{
    size_t found = 0, named = 0;
    for (size_t i = 1; i < self->count; i++) {
        struct cm_text_id table = cm_way_step(self, i - 1)->edge;
        found = cm_way_is(self, table, "._modules") ? i : found;
        named = cm_way_is_named(self, i) ? i : named;
    }
    return found != 0 ? found : named;
}

/* One line makes the gradients of all: whose it is, the way does not say. */
char *
cm_weights_say_larger(const struct cm_holding *self)
{
    if (cm_way_is_category(self, CM_HOLDING_OF_MODEL)) {
        return cm_sentence("it is of a parameter that gets larger each time, "
                           "which is told with who holds it: that is to be "
                           "made once, or to stop at a bound");
    }
    return cm_sentence("%s gets larger each time: make it once with the size "
                       "that it needs, or stop at a bound",
                       cm_way_name_of(self, module_of(self)).text);
}
