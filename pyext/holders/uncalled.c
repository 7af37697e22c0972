/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "uncalled.h"

#include <string.h>

#include "../../graph/bound.h"
#include "../../graph/metric.h"
#include "../code/touch.h"
#include "../tables/phrase.h"
#include "fillers.h"
#include "inner.h"

enum { MOST_SUSPECTS = 64 };

/* A function that may have filled the place. */
struct suspect {
    struct cm_code_id id;
    PyCodeObject *code; /* borrowed; NULL: no function has been met */
    bool called;
};

struct search {
    struct cm_program *program; /* listed */
    struct suspect items[MOST_SUSPECTS];
    size_t count;
    const char *const *others; /* packages that are not asked; or NULL */
};

static struct cm_objects *
objects_of(const struct search *self)
{
    return self->program->reach->roots->objects;
}

/* ---- who is asked about */

static bool
is_special(const char *name)
{
    return strncmp(name, "__", 2) == 0 || name[0] == '<';
}

static bool
is_listed(const struct search *self, struct cm_code_id id)
{
    bool listed = false;
    for (size_t i = 0; i < self->count; i++) {
        listed |= self->items[i].id.index == id.index;
    }
    return listed;
}

/* All of a library's may be called by it; who is not listed, is called. */
static void
list_suspects(struct search *self, const struct cm_holding *holding)
{
    struct cm_objects *objects = objects_of(self);
    for (size_t i = 0; i < holding->code_count && self->count < MOST_SUSPECTS;
         i++) {
        struct cm_code_id id = holding->codes[i];
        const struct cm_code *code = cm_records_code(objects->records, id);
        if (!code->library && !is_listed(self, id)
            && !is_special(cm_texts_get(objects->texts, code->name))) {
            self->items[self->count++] = (struct suspect){.id = id};
        }
    }
}

/* Not object, ABC or Generic, which only say what a class is. */
static bool
is_base_of_package(struct cm_objects *objects, PyObject *base)
{
    if (!PyType_Check(base)) {
        return true;
    }
    const struct cm_type *record = cm_records_type(
        objects->records, cm_objects_type(objects, (PyTypeObject *)base));
    const char *module = cm_texts_get(objects->texts, record->module);
    return base != (PyObject *)&PyBaseObject_Type && record->library
           && strcmp(module, "abc") != 0 && strcmp(module, "typing") != 0;
}

static bool
may_be_called_by_base(struct cm_objects *objects, const PyTypeObject *type)
{
    bool found = type->tp_mro == NULL;
    for (Py_ssize_t i = 1; !found && i < PyTuple_GET_SIZE(type->tp_mro); i++) {
        found = is_base_of_package(objects, PyTuple_GET_ITEM(type->tp_mro, i));
    }
    return found;
}

/* The class or the module whose dict alone has it. */
static bool
is_held_by_name_alone(const struct cm_reach *reach, uint32_t node)
{
    PyObject *function = reach->objects[node];
    uint32_t names = reach->parents[node];
    uint32_t owner = names < CM_FROM_ROOT ? reach->parents[names] : 0;
    if (Py_REFCNT(function) != 1 || names >= CM_FROM_ROOT
        || !PyDict_CheckExact(reach->objects[names])) {
        return false;
    }
    if (names <= reach->module_nodes) {
        return true;
    }
    return owner != 0 && owner < CM_FROM_ROOT
           && PyType_Check(reach->objects[owner])
           && !may_be_called_by_base(reach->roots->objects,
                                     (PyTypeObject *)reach->objects[owner]);
}

static struct suspect *
suspect_of(struct search *self, PyCodeObject *code)
{
    struct cm_objects *objects = objects_of(self);
    for (size_t i = 0; i < self->count; i++) {
        struct suspect *suspect = &self->items[i];
        const struct cm_code *record =
            cm_records_code(objects->records, suspect->id);
        if (cm_str_is(code->co_name,
                      cm_texts_get(objects->texts, record->name))
            && cm_objects_code(objects, code).index == suspect->id.index) {
            return suspect;
        }
    }
    return NULL;
}

static void
meet_functions(struct search *self)
{
    const struct cm_reach *reach = self->program->reach;
    for (uint32_t i = 1; i <= reach->node_count; i++) {
        PyCodeObject *code = cm_function_code(reach->objects[i]);
        struct suspect *suspect = code != NULL ? suspect_of(self, code) : NULL;
        if (suspect != NULL) {
            suspect->called |=
                suspect->code != NULL || !is_held_by_name_alone(reach, i);
            suspect->code = code;
        }
    }
    for (size_t i = 0; i < self->count; i++) {
        self->items[i].called |= self->items[i].code == NULL;
    }
}

/* ---- who calls it */

/* "on_" of on_epoch_end, or "_end"; both of them ASCII. */
static bool
is_part(PyObject *name, PyObject *part)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(part);
    Py_ssize_t more = PyUnicode_GET_LENGTH(name) - length;
    const char *bytes = PyUnicode_DATA(name), *own = PyUnicode_DATA(part);
    return length > 1 && more >= 0
           && ((own[length - 1] == '_'
                && memcmp(bytes, own, (size_t)length) == 0)
               || (own[0] == '_'
                   && memcmp(bytes + more, own, (size_t)length) == 0));
}

static bool
is_text_of(PyObject *name, PyObject *text, bool made)
{
    if (!PyUnicode_CheckExact(text)) {
        return false;
    }
    return cm_str_equals(name, text)
           || (made && PyUnicode_IS_COMPACT_ASCII(name)
               && PyUnicode_IS_COMPACT_ASCII(text) && is_part(name, text));
}

/* getattr(callback, "on_" + event), for event in ("epoch_end", ...). */
static bool
has_text_of(const PyCodeObject *code, PyObject *name, bool made)
{
    bool found = false;
    for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(code->co_consts);
         i++) {
        PyObject *constant = PyTuple_GET_ITEM(code->co_consts, i);
        found = is_text_of(name, constant, made);
        for (Py_ssize_t k = 0; !found && PyTuple_CheckExact(constant)
                               && k < PyTuple_GET_SIZE(constant);
             k++) {
            found = is_text_of(name, PyTuple_GET_ITEM(constant, k), made);
        }
    }
    return found;
}

/* What it names are its own methods, as a rule; one that it hands on has that
 * for a second holder. */
static bool
is_class_body(const PyCodeObject *code)
{
    return (code->co_flags & CO_OPTIMIZED) == 0
           && !cm_str_is(code->co_name, "<module>");
}

static bool
says_name(const struct search *self, const PyCodeObject *code,
          PyCodeObject *function)
{
    return cm_touch_mentions(code, function)
           && !cm_touch_only_names(&objects_of(self)->bytecode, code,
                                   function);
}

static void
note_calls(struct search *self, const PyCodeObject *code)
{
    static const char *const makers[] = {"getattr",          "hasattr",
                                         "attrgetter",       "methodcaller",
                                         "__getattribute__", NULL};
    bool made = cm_str_any_is_one_of(code->co_names, makers);
    for (size_t i = 0; !is_class_body(code) && i < self->count; i++) {
        struct suspect *suspect = &self->items[i];
        suspect->called =
            suspect->called
            || (code != suspect->code
                && (says_name(self, code, suspect->code)
                    || has_text_of(code, suspect->code->co_name, made)));
    }
}

/* "torch/nn/modules/module.py" of a package's file, in `path`; else NULL. */
static const char *
path_in_packages(const PyCodeObject *code, struct cm_phrase *path)
{
    path->length = 0;
    cm_phrase_add_str(path, code->co_filename, CM_PHRASE_BYTES / 2);
    path->bytes[path->length] = '\0';
    const char *package = strstr(path->bytes, "-packages/");
    return package != NULL ? package + strlen("-packages/") : NULL;
}

/* torch, what it needs, and what data is read and drawn with. */
static const char *const never_given[] = {
    "torch/",      "torchvision/", "functorch/",   "torchgen/",
    "triton/",     "cumem/",       "numpy/",       "scipy/",
    "pandas/",     "sympy/",       "mpmath/",      "networkx/",
    "jinja2/",     "markupsafe/",  "fsspec/",      "PIL/",
    "matplotlib/", "tqdm/",        "yaml/",        "packaging/",
    "psutil/",     "setuptools/",  "filelock/",    "huggingface_hub/",
    "anyio/",      "httpcore",     "httpx",        "requests/",
    "urllib3/",    "tokenizers/",  "safetensors/", NULL};

/* Their own code, which says it of their own objects, and that of packages that
 * know no metrics; but lightning resets those that it logs. */
static const char *const never_given_metrics[] = {
    "torchmetrics/", "transformers/", "accelerate/",      "peft/",
    "timm/",         "datasets/",     "torch_geometric/", NULL};

static bool
begins_with_one_of(const char *path, const char *const *packages)
{
    bool found = false;
    for (size_t i = 0; !found && packages != NULL && packages[i] != NULL;
         i++) {
        found = strncmp(path, packages[i], strlen(packages[i])) == 0;
    }
    return found;
}

/* Of a package that may have been given the program's objects. */
static bool
is_of_package(const struct search *self, const PyCodeObject *code)
{
    struct cm_phrase path;
    const char *package = path_in_packages(code, &path);
    return package != NULL && !begins_with_one_of(package, never_given)
           && !begins_with_one_of(package, self->others);
}

static void
note_calls_within(struct search *self, PyCodeObject *code)
{
    PyCodeObject *found[CM_MOST_INNER];
    size_t count = cm_inner_codes(code, found);
    for (size_t i = 0; i < count; i++) {
        note_calls(self, found[i]);
    }
}

static bool
all_are_called(const struct search *self)
{
    bool all = true;
    for (size_t i = 0; i < self->count; i++) {
        all = all && self->items[i].called;
    }
    return all;
}

static void
note_calls_of_packages(struct search *self)
{
    const struct cm_reach *reach = self->program->reach;
    const PyObject *file = NULL;
    bool package = false;
    for (uint32_t i = 1; i <= reach->node_count && !all_are_called(self);
         i++) {
        PyCodeObject *code = cm_function_code(reach->objects[i]);
        if (code == NULL) {
            continue;
        }
        if (code->co_filename != file) {
            file = code->co_filename;
            package = is_of_package(self, code);
        }
        if (package) {
            note_calls_within(self, code);
        }
    }
}

static void
note_calls_of_program(struct search *self)
{
    const struct cm_program *program = self->program;
    for (size_t i = 0; i < program->count && !all_are_called(self); i++) {
        note_calls(self, program->codes[i]);
    }
}

/* ---- what was found before */

static struct cm_code_id *
known_before(struct cm_objects *objects, struct cm_code_id id)
{
    for (size_t i = 0; i < CM_UNCALLED_KNOWN; i++) {
        if (objects->uncalled[i].index == id.index) {
            return &objects->uncalled[i];
        }
    }
    return NULL;
}

static void
note_answers(const struct search *self)
{
    struct cm_objects *objects = objects_of(self);
    for (size_t i = 0; i < self->count; i++) {
        struct cm_code_id *before = known_before(objects, self->items[i].id);
        if (before != NULL && self->items[i].called) {
            before->index = 0;
        }
        else if (before == NULL && !self->items[i].called) {
            objects->uncalled[objects->uncalled_at] = self->items[i].id;
            objects->uncalled_at =
                (objects->uncalled_at + 1) % CM_UNCALLED_KNOWN;
        }
    }
}

static void
take_answers(struct search *self)
{
    for (size_t i = 0; i < self->count; i++) {
        self->items[i].called =
            known_before(objects_of(self), self->items[i].id) == NULL;
    }
}

/* Who of those that are listed is called: by `meet` of the functions that the walk
 * has met, where that is not NULL, and by all code. */
static void
find_callers(struct search *self, void (*meet)(struct search *self))
{
    struct cm_program *program = self->program;
    if (!cm_program_has_main(program)) {
        take_answers(self);
        return;
    }
    cm_program_list(program);
    if (meet != NULL) {
        meet(self);
    }
    note_calls_of_program(self);
    note_calls_of_packages(self);
    if (!program->failed) {
        note_answers(self);
    }
}

/* ---- metrics */

static bool
is_reset_of_metrics(const PyCodeObject *code)
{
    struct cm_phrase path;
    const char *package = cm_str_is(code->co_qualname, "Metric.reset")
                              ? path_in_packages(code, &path)
                              : NULL;
    return package != NULL
           && strncmp(package, "torchmetrics/", strlen("torchmetrics/")) == 0;
}

static void
list_reset(struct search *self)
{
    const struct cm_reach *reach = self->program->reach;
    for (uint32_t i = 1; i <= reach->node_count && self->count == 0; i++) {
        PyCodeObject *code = cm_function_code(reach->objects[i]);
        if (code != NULL && is_reset_of_metrics(code)) {
            self->items[self->count++] = (struct suspect){
                .id = cm_objects_code(objects_of(self), code), .code = code};
        }
    }
}

static bool
is_never_reset(struct cm_program *program)
{
    struct search search = {.program = program, .others = never_given_metrics};
    list_reset(&search);
    find_callers(&search, NULL);
    return !program->failed && !all_are_called(&search);
}

/* ---- what is left without them */

static bool
is_called(const struct search *self, struct cm_code_id id)
{
    bool called = true;
    for (size_t i = 0; called && i < self->count; i++) {
        called = self->items[i].id.index != id.index || self->items[i].called;
    }
    return called;
}

/* Functions that these call (helper_count) stay. */
static void
leave_out(const struct search *self, const struct cm_holding *holding,
          struct cm_code_id codes[CM_MOST_FILLERS], struct cm_holding *left)
{
    size_t count = holding->code_count + holding->helper_count;
    *left = *holding;
    left->codes = codes;
    left->code_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (i >= holding->code_count || is_called(self, holding->codes[i])) {
            codes[left->code_count++] = holding->codes[i];
        }
    }
    left->code_count -= holding->helper_count;
}

/* One that by itself would empty the place. */
static struct cm_code_id
who_would(struct search *self, const struct cm_holding *holding)
{
    struct cm_code_id codes[CM_MOST_FILLERS];
    struct cm_code_id found = {0};
    for (size_t i = 0; found.index == 0 && i < self->count; i++) {
        struct cm_holding with;
        if (!self->items[i].called) {
            self->items[i].called = true;
            leave_out(self, holding, codes, &with);
            found = cm_bound_is_emptied(&with) ? self->items[i].id : found;
            self->items[i].called = false;
        }
    }
    return found;
}

bool
cm_uncalled_empties(struct cm_program *program, struct cm_holding *holding)
{
    struct search search = {.program = program};
    struct cm_code_id codes[CM_MOST_FILLERS];
    struct cm_holding left;
    if (program->reach->cut || program->reach->nodes_left != 0
        || holding->code_count + holding->helper_count > CM_MOST_FILLERS) {
        return false;
    }
    if (cm_metric_is(holding)) {
        return cm_metric_outlives_epochs(holding) && is_never_reset(program);
    }
    list_suspects(&search, holding);
    find_callers(&search, meet_functions);
    if (program->failed) {
        return false;
    }
    leave_out(&search, holding, codes, &left);
    if (all_are_called(&search) || cm_bound_is_emptied(&left)) {
        return false;
    }
    holding->uncalled = who_would(&search, holding);
    return true;
}
