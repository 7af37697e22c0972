/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The rules are asked in the order of the table; the first that fits speaks.
 * A rule looks at the way only: species, roles, labels, the category and the
 * length of the graph.  The last fits always.  O(steps) for each rule. */

#include "holding.h"

#include <stdio.h>
#include <string.h>

#include "attribute.h"
#include "bound.h"
#include "container.h"
#include "finalizer.h"
#include "gradient.h"
#include "item.h"
#include "kept.h"
#include "memo.h"
#include "metric.h"
#include "name.h"
#include "optimizer.h"
#include "saved.h"
#include "state.h"
#include "summed.h"
#include "tee.h"
#include "thread.h"
#include "view.h"
#include "way.h"
#include "weights.h"
#include "../detector/alloc.h"

static const char *
text_of(const struct cm_holding *self, struct cm_text_id id)
{
    return cm_way_text(self, id);
}

static const struct cm_holding_step *
step_at(const struct cm_holding *self, size_t i)
{
    return cm_way_step(self, i);
}

static const struct cm_holding_step *
held(const struct cm_holding *self)
{
    return &self->steps[self->count - 1];
}

/* The name that a person knows the place by. */
static struct cm_way_name
name_of_place(const struct cm_holding *self)
{
    struct cm_way_name name;
    cm_way_name(self, &name);
    return name;
}

static struct cm_way_name
code_of(const struct cm_holding *self, struct cm_way_name place)
{
    cm_way_code(self, &place);
    return place;
}

static bool
is_scalar(const struct cm_holding *self, const struct cm_holding_step *step)
{
    return cm_way_is_tensor(step)
           && strstr(text_of(self, step->annotation), " []") != NULL;
}

static bool
has_graph(const struct cm_holding *self)
{
    return self->autograd_depth > 0;
}

/* ---- the shapes */

static bool
is_outside(const struct cm_holding *self)
{
    return cm_way_is_category(self, "outside the frameworks");
}

static bool
is_dead(const struct cm_holding *self)
{
    return cm_way_is_root(self, CM_HOLDING_DEAD);
}

/* from -> ... -> exception -> traceback -> frame.  What piles up in a
 * container behind that would grow without the exception too. */
static bool
is_exception(const struct cm_holding *self)
{
    size_t last = step_at(self, self->at)->counted ? self->at : 0;
    for (size_t i = 1; i < self->count; i++) {
        if (step_at(self, i)->role == CM_TB_FRAME
            || (step_at(self, i)->species == CM_TRACEBACK
                && step_at(self, i)->role == CM_EXCEPTION_LINK)) {
            return last <= i;
        }
    }
    return false;
}

/* More than one in the table, or one that was put there piles up itself. */
static bool
is_hook_pile(const struct cm_holding *self)
{
    return cm_way_hooks(self) != 0;
}

/* The variable that such a hook has captured; 0: none. */
static size_t
captured_by_hook(const struct cm_holding *self)
{
    size_t hook = cm_way_lone_hook(self);
    for (size_t i = hook + 1; hook != 0 && i < self->count; i++) {
        uint8_t role = step_at(self, i)->role;
        if (role == CM_CLOSURE_CELL || role == CM_CELL_CONTENTS) {
            return i;
        }
    }
    return 0;
}

/* tensor -> (C++) -> hook -> the tensor. */
static bool
is_own_hook(const struct cm_holding *self)
{
    return captured_by_hook(self) != 0;
}

static bool
is_in_lru_cache(const struct cm_holding *self)
{
    return cm_way_lru_cache(self) != 0;
}

static bool
is_cache(const struct cm_holding *self, enum cm_holding_cache which)
{
    return (step_at(self, cm_way_lru_cache(self))->cache & which) != 0;
}

/* Where the objects are few it is the other arguments that get more: on self
 * the results would be as many. */
static bool
is_lru_method(const struct cm_holding *self)
{
    bool cached = is_in_lru_cache(self);
    const char *name = cached ? cm_way_cached(self) : "";
    const char *dot = strrchr(name, '.');
    return dot != NULL && !(dot > name && dot[-1] == '>')
           && !is_cache(self, CM_CACHE_FEW_OWNERS);
}

/* torch.optim's and what derives from it keep their state by parameter. */
static bool
is_optimizer(const struct cm_holding *self, size_t i)
{
    return cm_way_begins(cm_way_module(self, i), "torch.optim")
           || (i + 1 < self->count
               && strcmp(text_of(self, step_at(self, i + 1)->edge), ".state")
                      == 0
               && step_at(self, i)->species == CM_OBJECT
               && cm_way_is_category(self, "optimizer state"));
}

static bool
is_optimizer_pile(const struct cm_holding *self)
{
    const struct cm_holding_step *place = step_at(self, self->at);
    for (size_t i = self->at + 1; place->counted && i < self->count; i++) {
        if (is_optimizer(self, i)) {
            return true;
        }
    }
    return false;
}

/* A variable that refers to the head of a graph that gets longer. */
static bool
is_state(const struct cm_holding *self)
{
    return has_graph(self) && cm_way_is_tensor(step_at(self, self->at))
           && cm_way_is_named(self, self->at);
}

static bool
is_sum(const struct cm_holding *self)
{
    return is_state(self) && is_scalar(self, step_at(self, self->at));
}

/* A variable that torch.cat() makes longer each time. */
static bool
is_longer(const struct cm_holding *self)
{
    return cm_way_is_category(self, CM_HOLDING_LARGER)
           && self->at + 1 == self->count && cm_way_is_tensor(held(self))
           && !is_scalar(self, held(self)) && cm_way_is_named(self, self->at);
}

static bool
have_longer(const struct cm_holding *self)
{
    return cm_container_is_set_longer(self) && !is_scalar(self, held(self));
}

/* A loss may have the storage of all that was summed up (F.mse_loss). */
static bool
is_scalars(const struct cm_holding *self)
{
    return step_at(self, self->at)->counted && is_scalar(self, held(self));
}

static bool
is_graph_of_scalars(const struct cm_holding *self)
{
    return has_graph(self) && is_scalars(self);
}

static bool
is_graph_in_container(const struct cm_holding *self)
{
    return has_graph(self) && step_at(self, self->at)->counted;
}

/* def f(x, seen=[]): the one list of all calls. */
static bool
is_default(const struct cm_holding *self)
{
    size_t value = cm_way_default(self);
    bool direct = value != 0 && value <= self->at;
    for (size_t i = value + 1; direct && i <= self->at; i++) {
        direct = step_at(self, i)->role == CM_VALUE
                 || step_at(self, i)->role == CM_ITEM;
    }
    return direct && step_at(self, self->at)->counted;
}

static bool
is_context(const struct cm_holding *self)
{
    size_t named = name_of_place(self).step;
    return cm_way_begins(text_of(self, step_at(self, named)->edge),
                         "contextvar ");
}

static bool
is_chain(const struct cm_holding *self)
{
    return self->chain > 2;
}

static bool
is_anything(const struct cm_holding *self)
{
    (void)self;
    return true;
}

/* ---- the sentences */

static char *
say_outside(const struct cm_holding *self)
{
    (void)self;
    return cm_sentence("run with CUMEM_DRIVER=1 to see which library and "
                       "which line allocate it; what NCCL holds for a "
                       "process group goes with "
                       "destroy_process_group(group)");
}

/* Who keeps the exception, not which variable of its frames piles up. */
static char *
say_exception(const struct cm_holding *self)
{
    struct cm_way_name name;
    size_t keeper = self->at;
    for (size_t i = self->at; i > 0; i--) {
        keeper = step_at(self, i)->species == CM_EXCEPTION ? i : keeper;
    }
    cm_way_name_at(self, keeper, &name);
    return cm_sentence(
        "keep str(error) or error.with_traceback(None) in %s: a "
        "traceback keeps the variables of every function that "
        "it passed",
        name.text);
}

static char *
say_hook_pile(const struct cm_holding *self)
{
    (void)self;
    return cm_sentence("register the hook once, or keep its handle and call "
                       "handle.remove()");
}

/* What is no tensor has no graph, and a container no weak reference. */
static char *
say_own_hook(const struct cm_holding *self)
{
    const struct cm_holding_step *step = step_at(self, captured_by_hook(self));
    struct cm_name name = cm_name_of_label(self->records, step->edge);
    if (step->counted) {
        return cm_sentence("the hook keeps %s, which keeps the hook: clear %s "
                           "when done, or call handle.remove()",
                           name.text, name.text);
    }
    if (!cm_way_is_tensor(step)) {
        return cm_sentence("the hook keeps %s, which keeps the hook: let it "
                           "capture weakref.ref(%s), or call handle.remove()",
                           name.text, name.text);
    }
    return cm_sentence("the hook keeps %s, whose graph keeps the hook: let it "
                       "capture %s.detach() or weakref.ref(%s), or call "
                       "handle.remove()",
                       name.text, name.text, name.text);
}

static char *
say_lru_method(const struct cm_holding *self)
{
    return cm_sentence(
        "take lru_cache off the method %s: it keeps every self; "
        "keep the results in a dict on self, or use "
        "functools.cached_property",
        cm_way_cached(self));
}

static char *
say_lru_cache(const struct cm_holding *self)
{
    const char *name = cm_name_callable(cm_way_cached(self));
    if (is_cache(self, CM_CACHE_UNSIZED)) {
        return cm_sentence("give the cache of %s a maxsize: "
                           "`functools.lru_cache(maxsize=N)`, or call "
                           "%s.cache_clear() when done",
                           name, name);
    }
    return cm_sentence("give %s's lru_cache a smaller maxsize, or call "
                       "%s.cache_clear() when done",
                       name, name);
}

static char *
say_optimizer_pile(const struct cm_holding *self)
{
    return cm_sentence("do not keep old optimizers in %s: each has a state as "
                       "large as its parameters",
                       name_of_place(self).text);
}

static char *
say_dead(const struct cm_holding *self)
{
    (void)self;
    return cm_sentence("cut the cycle, which the report names after the next "
                       "collection (gc.collect() is one): nothing else holds "
                       "it");
}

static char *
say_state(const struct cm_holding *self)
{
    struct cm_way_name place = code_of(self, name_of_place(self));
    struct cm_text_id sum = cm_summed_in(self);
    const char *name = sum.index != 0 ? text_of(self, sum) : place.text;
    return cm_sentence("write `%s = %s.detach()` between the iterations: it "
                       "keeps the graph of all that it was made from",
                       name, name);
}

static char *
say_longer(const struct cm_holding *self)
{
    struct cm_way_name name = name_of_place(self);
    return cm_sentence("give %s a bound (keep the last N rows: `%s[-N:]`, or "
                       "`[:N]` where new ones come first), or set it anew "
                       "where an epoch or a sequence ends%s",
                       name.text, code_of(self, name).text,
                       has_graph(self) ? ", and detach() what is added: "
                                         "torch.cat keeps the graph of every "
                                         "iteration"
                                       : "");
}

/* outputs.append({"loss": loss, "preds": preds}) */
static char *
say_scalars_inside(const struct cm_holding *self)
{
    struct cm_text_id edge = step_at(self, self->count - 1)->edge;
    struct cm_name key = cm_name_of_label(self->records, edge);
    bool named = cm_way_begins(text_of(self, edge), "['");
    const char *name = cm_kept_name(self, named ? key.text : "");
    return name[0] != '\0'
               ? cm_sentence("keep `%s.item()` in what is appended to %s",
                             name, name_of_place(self).text)
               : cm_sentence("keep numbers (`.item()`), not tensors, in what "
                             "is appended to %s",
                             name_of_place(self).text);
}

static char *
say_scalars(const struct cm_holding *self)
{
    const struct cm_holding_step *step = step_at(self, self->at);
    bool sums = self->grows && has_graph(self) && step->items < 3;
    bool list = step->species == CM_LIST && !sums;
    struct cm_way_name place = name_of_place(self);
    const char *argument = cm_kept_argument(self, &place);
    const char *otherwise = has_graph(self) ? "loss" : "x";
    const char *kept =
        cm_kept_name(self, argument != NULL ? argument : otherwise);
    if (list && place.step < self->at) {
        return cm_sentence("give `%s.item()` to %s instead: it keeps what it "
                           "is given",
                           kept, place.text);
    }
    if (list && self->at + 2 < self->count) {
        return say_scalars_inside(self);
    }
    if (list && cm_kept_is_expression(self, &place)) {
        return cm_sentence(
            "append a number instead: `%s.append((...).item())`",
            code_of(self, place).text);
    }
    return list ? cm_sentence("append `%s.item()` instead: "
                              "`%s.append(%s.item())`",
                              kept, code_of(self, place).text, kept)
                : cm_sentence("keep `%s.item()` instead", kept);
}

static char *
say_graph_in_container(const struct cm_holding *self)
{
    return cm_sentence("detach() before you keep it: `%s.detach()` in %s, or "
                       "run under torch.no_grad()",
                       cm_kept_name(self, "x"), name_of_place(self).text);
}

static char *
say_default(const struct cm_holding *self)
{
    size_t value = cm_way_default(self);
    struct cm_name name =
        cm_name_of_label(self->records, step_at(self, value)->edge);
    return cm_sentence("write `%s=None` and make it in the function: a "
                       "default is made once, for all calls",
                       name.text);
}

static char *
say_context(const struct cm_holding *self)
{
    return cm_sentence("set %s to less, or reset() it with the token that "
                       "set() gave back",
                       name_of_place(self).text);
}

static char *
say_chain(const struct cm_holding *self)
{
    return cm_sentence("cut the chain behind %s: each of its %u links keeps "
                       "the one before",
                       name_of_place(self).text, (unsigned)self->chain);
}

static char *
say_anything(const struct cm_holding *self)
{
    struct cm_way_name name = name_of_place(self);
    return strcmp(name.text, "it") == 0
               ? cm_sentence("drop this reference when it is not needed any "
                             "more")
               : cm_sentence("set %s = None (or `del` it) when it is not "
                             "needed any more",
                             name.text);
}

static const struct {
    const char *rule;
    bool (*fits)(const struct cm_holding *self);
    char *(*say)(const struct cm_holding *self);
} rules[] = {
    {"outside the frameworks", is_outside, say_outside},
    {"gradient cleared late by Lightning", cm_gradient_is_lightnings,
     cm_gradient_say_lightning},
    {"gradient cleared late by a package", cm_gradient_is_packages,
     cm_gradient_say_package},
    {"gradient not cleared", cm_gradient_lingers, cm_gradient_say},
    {"gradients of more parameters", cm_gradient_is_of_more,
     cm_gradient_say_more},
    {"parameters get larger", cm_weights_get_larger, cm_weights_say_larger},
    {"saved on ctx", cm_saved_on_context, cm_saved_say},
    {"dead cycle", is_dead, say_dead},
    {"kept exception", is_exception, say_exception},
    {"hooks pile up", is_hook_pile, say_hook_pile},
    {"hook captures its tensor", is_own_hook, say_own_hook},
    {"lru_cache on a method", is_lru_method, say_lru_method},
    {"lru_cache", is_in_lru_cache, say_lru_cache},
    {"weakref.finalize", cm_finalizer_holds, cm_finalizer_say},
    {"optimizer is given more", cm_optimizer_is_given, cm_optimizer_say},
    {"optimizer kept", is_optimizer_pile, say_optimizer_pile},
    {"checkpoint kept", cm_weights_is_checkpoint, cm_weights_say_checkpoint},
    {"weights pile up", cm_weights_pile_up, cm_weights_say_pile},
    {"second copy of the weights", cm_weights_is_copy, cm_weights_say_copy},
    {"gradients keep their graph", cm_gradient_keeps_graph,
     cm_gradient_say_graph},
    {"tensor gets longer", is_longer, say_longer},
    {"tensors get longer", have_longer, cm_container_say_longer},
    {"sum keeps its graph", cm_summed_by_key, cm_summed_say_by_key},
    {"sum keeps its graph", is_sum, cm_summed_say},
    {"state keeps its graph", is_state, say_state},
    {"state keeps its graph", cm_state_is_tuple, cm_state_say_tuple},
    {"state keeps its graph", cm_state_is_container, cm_state_say_container},
    {"metric not reset", cm_metric_is, cm_metric_say},
    {"kept by each item", cm_item_is_given, cm_item_say},
    {"graph of a kept scalar", is_graph_of_scalars, say_scalars},
    {"graph of kept outputs", is_graph_in_container, say_graph_in_container},
    {"not called", cm_bound_is_uncalled, cm_bound_say_uncalled},
    {"default argument", is_default, say_default},
    {"context variable", is_context, say_context},
    {"queue not drained", cm_kept_in_queue, cm_kept_say_queue},
    {"deque without a bound", cm_kept_in_deque, cm_kept_say_deque},
    {"modules pile up", cm_container_has_modules, cm_container_say_modules},
    {"tee lags behind", cm_tee_lags, cm_tee_say},
    {"cycle keeps all", cm_tee_is_cycle, cm_tee_say_cycle},
    {"methods kept", cm_kept_are_methods, cm_kept_say_methods},
    {"tasks kept", cm_kept_are_tasks, cm_kept_say_tasks},
    {"threads do not end", cm_thread_keeps_arguments, cm_thread_say},
    {"weak keys", cm_kept_by_weak_keys, cm_kept_say_weak_keys},
    {"objects pile up", cm_container_has_objects, cm_container_say_objects},
    {"containers grow", cm_container_is_of_others, cm_container_say_each},
    {"global cache", cm_container_is_global, cm_container_say_bound},
    {"memo without a bound", cm_memo_is, cm_container_say_bound},
    {"chain", is_chain, say_chain},
    {"kept scalars", is_scalars, say_scalars},
    {"attributes pile up", cm_attribute_piles_up, cm_attribute_say},
    {"views kept", cm_view_is_kept, cm_view_say},
    {"container grows", cm_container_grows, cm_container_say},
    {"kept", is_anything, say_anything},
};

enum cm_status
cm_holding_advise(const struct cm_holding *self,
                  struct cm_holding_advice *result)
{
    *result = (struct cm_holding_advice){0};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        bool known =
            self->count > 1 || is_outside(self) || cm_gradient_lingers(self)
            || cm_gradient_is_of_more(self) || cm_weights_get_larger(self);
        if (known && !rules[i].fits(self)) {
            continue;
        }
        result->text =
            known ? rules[i].say(self)
                  : cm_sentence("a C extension holds it, or an array that "
                                "shares its memory (x.numpy()): keep a copy "
                                "of what is needed");
        result->rule = known ? rules[i].rule : "C++ only";
        break;
    }
    return result->text != NULL ? CM_OK : CM_NO_MEMORY;
}

void
cm_holding_advice_release(struct cm_holding_advice *self)
{
    cm_free(self->text);
    *self = (struct cm_holding_advice){0};
}
