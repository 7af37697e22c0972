/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Lightning's closure is forward, zero_grad(), backward
 * (loops/optimization/automatic.py, 1.x to 2.6): the gradients of the step
 * before stand beside all activations, where memory is at its most.  Each of
 * its gradients is allocated below that file. */

#include "gradient.h"

#include <stdio.h>
#include <string.h>

#include "name.h"
#include "place.h"
#include "way.h"

/* In whatever folder, and what it is vendored as in a library. */
static bool
is_lightnings_loop(const struct cm_holding *self, struct cm_code_id id)
{
    static const char *const ends[] = {
        "/pytorch_lightning/loops/optimization/automatic.py",
        "/lightning/pytorch/loops/optimization/automatic.py",
        "/loops/optimization/automatic.py",
    };
    const struct cm_code *code = cm_records_code(self->records, id);
    const char *file = cm_records_text(self->records, code->filename);
    return cm_name_ends_with(file, ends[0]) || cm_name_ends_with(file, ends[1])
           || (code->library && cm_name_ends_with(file, ends[2]));
}

bool
cm_gradient_lingers(const struct cm_holding *self)
{
    return self->category != NULL && strcmp(self->category, "gradient") == 0;
}

bool
cm_gradient_is_lightnings(const struct cm_holding *self)
{
    const struct cm_site *site = cm_records_site(self->records, self->site);
    bool found = false;
    for (uint32_t i = 0; i < site->frame_count && !found; i++) {
        found = is_lightnings_loop(self, site->frames[i].code);
    }
    return found && cm_gradient_lingers(self);
}

static bool
calls_backward(const struct cm_place_search *search,
               const struct cm_store *store)
{
    return store->kind == CM_STORE_CALL
           && strcmp(cm_place_text(search, store->name), "backward") == 0;
}

uint32_t
cm_gradient_made(const struct cm_holding *self,
                 struct cm_place places[CM_MAX_PLACES])
{
    return cm_gradient_lingers(self)
               ? cm_way_find(self, calls_backward, NULL, places)
               : 0;
}

/* The optimizer on the way whose name is known; 0: none. */
static size_t
named_optimizer(const struct cm_holding *self)
{
    size_t found = 0;
    for (size_t i = 1; i < self->count; i++) {
        if (cm_way_begins(cm_way_module(self, i), "torch.optim")
            && cm_way_is_variable(cm_way_step(self, i))) {
            found = i;
        }
    }
    return found;
}

/* The outermost module on the way; 0: none. */
static size_t
module_of(const struct cm_holding *self)
{
    for (size_t i = 1; i + 1 < self->count; i++) {
        struct cm_text_id edge = cm_way_step(self, i + 1)->edge;
        if (cm_way_is(self, edge, "._modules")
            || cm_way_is(self, edge, "._parameters")) {
            return i;
        }
    }
    return 0;
}

static bool
calls(const struct cm_holding *self, const struct cm_code *code,
      const char *method, struct cm_text_id owner)
{
    bool found = false;
    for (uint32_t i = 0; i < code->store_count && !found; i++) {
        const struct cm_store *store = &code->stores[i];
        found = store->kind == CM_STORE_CALL
                && cm_text_same(store->owner, owner)
                && cm_way_is(self, store->name, method);
    }
    return found;
}

static uint32_t
lines_between(uint32_t one, uint32_t other)
{
    return one < other ? other - one : one - other;
}

/* Not a model, which can be cleared too.  Of several phases in one function
 * each has its own: the nearest one. */
static const struct cm_store *
cleared_in(const struct cm_holding *self, const struct cm_frame *frame)
{
    const struct cm_code *code = cm_records_code(self->records, frame->code);
    const struct cm_store *found = NULL;
    for (uint32_t i = 0; !code->library && i < code->store_count; i++) {
        const struct cm_store *store = &code->stores[i];
        if (store->kind == CM_STORE_CALL && store->owner.index != 0
            && cm_way_is(self, store->name, "zero_grad")
            && calls(self, code, "step", store->owner)
            && (found == NULL
                || lines_between(store->line, frame->line)
                       < lines_between(found->line, frame->line))) {
            found = store;
        }
    }
    return found;
}

/* The optimizer that the functions which were running step and clear, at the
 * wrong place or to zeros. */
static const struct cm_store *
cleared_on_stack(const struct cm_holding *self)
{
    const struct cm_site *site = cm_records_site(self->records, self->site);
    const struct cm_store *found = NULL;
    for (uint32_t i = 0; i < site->frame_count && found == NULL; i++) {
        found = cleared_in(self, &site->frames[i]);
    }
    return found;
}

#define WHY                                                                   \
    "or before the forward pass: gradients of the last iteration live "       \
    "through it"

/* Some that linger are not of what is named, by step `named`. */
static const char *
likewise(const struct cm_holding *self, size_t named)
{
    bool others = self->of_several && named != 0
                  && (self->through < self->targets || self->at < named);
    return others ? "and likewise for the other optimizers, " : "";
}

static char *
say_of_optimizer(const char *name, const char *others)
{
    return cm_sentence("call %s.zero_grad(set_to_none=True) right after "
                       "%s.step(), %s" WHY,
                       name, name, others);
}

/* As that line writes it: "opt", "self.opt". */
static char *
say_as_it_is_cleared(const struct cm_holding *self,
                     const struct cm_store *call)
{
    char name[CM_WAY_TEXT_BYTES];
    bool of_object = call->key.index != 0;
    snprintf(name, sizeof name, "%.*s%s%s", CM_WAY_TEXT_BYTES / 2,
             of_object ? cm_way_text(self, call->key) : "",
             of_object ? "." : "", cm_way_text(self, call->owner));
    return say_of_optimizer(name, "");
}

/* Adds ".policy.optimizer" to a name of step `from`; false: it is no path of
 * attributes. */
static bool
add_path(const struct cm_holding *self, size_t from, size_t to,
         char text[CM_WAY_TEXT_BYTES])
{
    size_t used = strlen(text);
    bool path = true;
    for (size_t i = from + 1; path && i <= to; i++) {
        const char *edge = cm_way_text(self, cm_way_step(self, i)->edge);
        size_t length = strlen(edge);
        path = cm_way_step(self, i)->role == CM_ATTRIBUTE && edge[0] == '.'
               && cm_name_is_identifier(edge + 1, length - 1)
               && used + length < CM_WAY_TEXT_BYTES;
        if (path) {
            memcpy(text + used, edge, length + 1);
            used += length;
        }
    }
    return path;
}

/* "opt", "agent.policy.optimizer": from a variable on, or from what a line of
 * the program sets; false: it has no such name. */
static bool
spell_optimizer(const struct cm_holding *self, char text[CM_WAY_TEXT_BYTES])
{
    size_t at = named_optimizer(self);
    struct cm_way_name name = {0};
    if (at != 0) {
        cm_way_name_at(self, at, &name);
    }
    while (name.step > 1 && name.place_count == 0
           && cm_way_step(self, name.step)->role == CM_ATTRIBUTE) {
        cm_way_name_at(self, name.step - 1, &name);
    }
    snprintf(text, CM_WAY_TEXT_BYTES, "%s", name.text);
    return name.step != 0 && add_path(self, name.step, at, text);
}

/* Of several optimizers one may be cleared in time. */
char *
cm_gradient_say(const struct cm_holding *self)
{
    char optimizer[CM_WAY_TEXT_BYTES];
    const struct cm_store *cleared =
        self->of_several ? NULL : cleared_on_stack(self);
    size_t module =
        self->of_several && named_optimizer(self) == 0 ? module_of(self) : 0;
    struct cm_way_name name = {0};
    if (cleared != NULL) {
        return say_as_it_is_cleared(self, cleared);
    }
    if (module != 0) {
        cm_way_name_at(self, module, &name);
    }
    if (name.step != 0) {
        return cm_sentence("call zero_grad(set_to_none=True) on the optimizer "
                           "of %s right after its step(), %s" WHY,
                           name.text, likewise(self, module));
    }
    return say_of_optimizer(spell_optimizer(self, optimizer) ? optimizer
                                                             : "optimizer",
                            likewise(self, named_optimizer(self)));
}

char *
cm_gradient_say_lightning(const struct cm_holding *self)
{
    (void)self;
    return cm_sentence(
        "Lightning clears gradients after the next forward pass; sooner: in "
        "the LightningModule `def optimizer_step(self, *a, **k): "
        "super().optimizer_step(*a, **k); self.zero_grad()`");
}

/* ---- a package's loop */

/* "stable_baselines3/ppo/ppo.py" of its path; NULL: torch's, or no package's. */
static const char *
path_in_package(const struct cm_holding *self, const struct cm_code *code)
{
    const char *path = cm_name_in_packages(cm_way_text(self, code->filename));
    return path != NULL && cm_way_begins(path, "torch/") ? NULL : path;
}

/* zero_grad(), zero_grads(). */
static bool
clears(const struct cm_holding *self, const struct cm_code *code)
{
    bool found = false;
    for (uint32_t i = 0; i < code->store_count && !found; i++) {
        const struct cm_store *store = &code->stores[i];
        found = store->kind == CM_STORE_CALL
                && cm_way_begins(cm_way_text(self, store->name), "zero_grad");
    }
    return found;
}

/* Below the program's first own line: who calls backward(). */
static const char *
package_that_clears(const struct cm_holding *self)
{
    const struct cm_site *site = cm_records_site(self->records, self->site);
    const char *package = NULL;
    for (uint32_t i = 0; i < site->frame_count && package == NULL; i++) {
        const struct cm_code *code =
            cm_records_code(self->records, site->frames[i].code);
        if (!code->library) {
            break;
        }
        package = clears(self, code) ? path_in_package(self, code) : NULL;
    }
    return package;
}

bool
cm_gradient_is_packages(const struct cm_holding *self)
{
    return cm_gradient_lingers(self) && package_that_clears(self) != NULL;
}

#define HOOK                                                                  \
    "register_step_post_hook(lambda optimizer, *_: optimizer.zero_grad())"

char *
cm_gradient_say_package(const struct cm_holding *self)
{
    const char *package = package_that_clears(self);
    int length = (int)strcspn(package, "/");
    char optimizer[CM_WAY_TEXT_BYTES];
    if (spell_optimizer(self, optimizer)) {
        return cm_sentence("%.*s clears gradients after the next forward "
                           "pass; sooner: `%s." HOOK "`",
                           length, package, optimizer);
    }
    return cm_sentence("%.*s clears gradients after the next forward pass; "
                       "sooner: `" HOOK "` on its optimizer",
                       length, package);
}

bool
cm_gradient_is_of_more(const struct cm_holding *self)
{
    return self->count <= 1 && self->category != NULL
           && strcmp(self->category, CM_HOLDING_GRADIENTS) == 0;
}

char *
cm_gradient_say_more(const struct cm_holding *self)
{
    (void)self;
    return cm_sentence("they are of parameters that were added, one for each: "
                       "remove the modules that are not needed any more (who "
                       "holds these is told with them)");
}

/* A parameter has no graph but by its gradient. */
bool
cm_gradient_keeps_graph(const struct cm_holding *self)
{
    const struct cm_holding_step *last = cm_way_step(self, self->count - 1);
    return self->autograd_depth > 0 && cm_way_is_tensor(last)
           && cm_way_begins(cm_way_text(self, last->annotation), "Parameter ");
}

char *
cm_gradient_say_graph(const struct cm_holding *self)
{
    (void)self;
    return cm_sentence("take create_graph=True off backward(), or set the "
                       "gradients to None, not to zero "
                       "(`optimizer.zero_grad(set_to_none=True)`): each keeps "
                       "the graph of all before it");
}
