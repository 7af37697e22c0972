/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "renewed.h"

#include "../../graph/name.h"
#include "../code/touch.h"
#include "../tables/phrase.h"

enum { MOST_TOUCHERS = 16 };

/* ---- what holds it */

struct place {
    enum cm_touch_kind kind;
    PyTypeObject *owner; /* of an attribute; NULL: any class's */
};

static PyObject *
object_at(const struct cm_reach *reach, uint32_t node)
{
    return node != 0 && node < CM_FROM_ROOT ? reach->objects[node] : NULL;
}

/* The module of torch's whose buffers the dict has, which code calls its
 * attributes; NULL: it is another one.  [borrowed] */
static PyObject *
module_of_buffers(const struct cm_reach *reach, uint32_t node)
{
    uint32_t above = reach->parents[node];
    PyObject *owner = object_at(reach, above), *names;
    if (owner != NULL && PyDict_CheckExact(owner)) {
        owner = object_at(reach, reach->parents[above]);
    }
    names =
        owner != NULL ? cm_instance_dict(reach->roots->objects, owner) : NULL;
    return names != NULL
                   && cm_dict_find(names, "_buffers") == reach->objects[node]
               ? owner
               : NULL;
}

static struct place
place_of(const struct cm_reach *reach, uint32_t node)
{
    PyObject *object = reach->objects[node];
    uint32_t above = reach->parents[node];
    PyObject *owner = object_at(reach, above), *module;
    struct place place = {.kind = CM_TOUCH_ATTRIBUTE};
    if (!PyDict_Check(object)) {
        place.owner = PyType_Check(object) ? NULL : Py_TYPE(object);
    }
    else if (node <= reach->module_nodes) {
        place.kind = CM_TOUCH_VARIABLE;
    }
    else if (owner != NULL
             && cm_instance_dict(reach->roots->objects, owner) == object) {
        place.owner = Py_TYPE(owner);
    }
    else if ((module = module_of_buffers(reach, node)) != NULL) {
        place.owner = Py_TYPE(module);
    }
    else if (owner == NULL || !PyType_Check(owner)) {
        place.kind = CM_TOUCH_ITEM;
    }
    return place;
}

/* ---- who reads it */

struct search {
    struct cm_objects *objects;
    struct cm_touch what;
    PyTypeObject *owner;
    struct cm_site_id site;
    bool reads, sets;
    struct touchers {
        PyCodeObject *codes[MOST_TOUCHERS]; /* borrowed */
        unsigned count;
    } readers, setters; /* when they are called */
};

/* "A.B" of A.B.f; a function's own functions are no class's. */
static bool
name_class(const PyCodeObject *code, struct cm_phrase *name)
{
    static const char within[] = ".<locals>";
    name->length = 0;
    cm_phrase_add_str(name, code->co_qualname, CM_PHRASE_BYTES / 2);
    while (name->length > 0 && name->bytes[name->length - 1] != '.') {
        name->length--;
    }
    name->length -= name->length > 0;
    size_t more = sizeof within - 1;
    return name->length > 0
           && (name->length < more
               || memcmp(name->bytes + name->length - more, within, more)
                      != 0);
}

static bool
is_class(const PyTypeObject *type, const struct cm_phrase *name)
{
    struct cm_phrase other;
    other.length = 0;
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) {
        cm_phrase_add_str(&other, ((PyHeapTypeObject *)type)->ht_qualname,
                          CM_PHRASE_BYTES / 2);
    }
    return other.length == name->length
           && memcmp(other.bytes, name->bytes, name->length) == 0;
}

static bool
inherits(const PyTypeObject *type, const struct cm_phrase *name)
{
    PyObject *bases = type->tp_mro;
    bool found = false;
    for (Py_ssize_t i = 0; bases != NULL && i < PyTuple_GET_SIZE(bases); i++) {
        PyObject *base = PyTuple_GET_ITEM(bases, i);
        found |= PyType_Check(base) && is_class((PyTypeObject *)base, name);
    }
    return found;
}

static bool
is_on_stack(const struct search *self, PyCodeObject *code)
{
    const struct cm_records *records = self->objects->records;
    const struct cm_site *site = cm_records_site(records, self->site);
    struct cm_code_id id = cm_objects_code(self->objects, code);
    bool found = false;
    for (uint32_t i = 0; id.index != 0 && i < site->frame_count; i++) {
        found |= site->frames[i].code.index == id.index;
    }
    return found;
}

/* Who sets what has a name by something else. */
static const char *const by_text[] = {"setattr", "__setattr__", "__dict__",
                                      "vars",    "globals",     NULL};

/* x[k] = y, where k is no constant: any item may be set there. */
static bool
sets_any_item(const struct search *self, PyCodeObject *code)
{
    const struct cm_code *record = cm_records_code(
        self->objects->records, cm_objects_code(self->objects, code));
    bool any = false;
    for (uint32_t i = 0; i < record->store_count; i++) {
        any |= record->stores[i].kind == CM_STORE_ITEM
               && record->stores[i].name.index == 0;
    }
    return any;
}

/* A class's body runs once, as does what makes an object or a module.  Who
 * else sets the items of a dict is not known by their names: there the one
 * that counts is that which has made what is held now. */
static bool
sets_again(const struct search *self, PyCodeObject *code, bool repeats)
{
    bool often = (code->co_flags & CO_OPTIMIZED) != 0
                 && !cm_str_is(code->co_name, "__init__");
    return (repeats || often)
           && (self->what.kind != CM_TOUCH_ITEM
               || (is_on_stack(self, code) && !sets_any_item(self, code)));
}

/* What a dataclass has been given: __eq__ and __repr__ read all. */
static bool
is_of_dataclass(const PyCodeObject *code)
{
    static const char maker[] = "__create_fn__.";
    struct cm_phrase name;
    name.length = 0;
    cm_phrase_add_str(&name, code->co_qualname, sizeof maker);
    return name.length >= sizeof maker - 1
           && memcmp(name.bytes, maker, sizeof maker - 1) == 0;
}

static bool
is_special(PyObject *name)
{
    return PyUnicode_CheckExact(name) && PyUnicode_IS_ASCII(name)
           && PyUnicode_GET_LENGTH(name) > 2
           && memcmp(PyUnicode_DATA(name), "__", 2) == 0;
}

/* Not by an operator, or by torch, which find it another way. */
static bool
is_called_by_name(const PyCodeObject *code)
{
    return (code->co_flags & CO_OPTIMIZED) != 0
           && !cm_str_is(code->co_name, "forward")
           && !is_special(code->co_name);
}

/* False: there is no room for one more. */
static bool
add_toucher(struct touchers *self, PyCodeObject *code)
{
    bool known = false;
    for (unsigned i = 0; i < self->count; i++) {
        known |= self->codes[i] == code;
    }
    bool fits = known || self->count < MOST_TOUCHERS;
    if (fits && !known) {
        self->codes[self->count++] = code;
    }
    return fits;
}

static struct cm_touched
touched_by(const struct search *self, const PyCodeObject *code)
{
    struct cm_phrase name;
    bool method = self->owner != NULL && name_class(code, &name);
    struct cm_touch what = self->what;
    what.other_self = method && !inherits(self->owner, &name);
    what.readers =
        (struct cm_touchers){self->readers.codes, self->readers.count};
    what.setters =
        (struct cm_touchers){self->setters.codes, self->setters.count};
    return cm_touch_find(&self->objects->bytecode, code, &what);
}

/* What reads first and sets then makes one of the other. */
static void
look_at(struct search *self, PyCodeObject *code)
{
    struct cm_touched touched = touched_by(self, code);
    self->reads |= cm_str_any_is_one_of(code->co_names, by_text)
                   && is_on_stack(self, code);
    if ((!touched.reads && !touched.sets) || is_of_dataclass(code)) {
        return;
    }
    self->sets |= touched.sets && sets_again(self, code, touched.repeats);
    self->reads |= touched.reads
                   && (touched.sets || !is_called_by_name(code)
                       || !add_toucher(&self->readers, code));
}

/* More than there is room for set nothing that is known here. */
static void
look_for_setter(struct search *self, PyCodeObject *code)
{
    if (is_called_by_name(code) && touched_by(self, code).always) {
        (void)add_toucher(&self->setters, code);
    }
}

/* A library's class may read its own attributes. */
static void
look_at_class(struct search *self, PyTypeObject *type)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    PyObject *names = type->tp_dict;
    while (names != NULL && PyDict_Next(names, &at, &key, &value)) {
        PyCodeObject *code = cm_function_code(value);
        if (code != NULL && cm_is_library(self->objects, code->co_filename)) {
            unsigned before = self->readers.count;
            look_at(self, code);
            self->reads |= self->readers.count != before;
        }
    }
}

/* Somebody else's code, which has it set by then or is a reader too. */
static bool
is_called(const struct cm_program *program, PyCodeObject *reader)
{
    bool called = false;
    for (size_t i = 0; !called && i < program->count; i++) {
        called = program->codes[i] != reader
                 && cm_touch_mentions(program->codes[i], reader);
    }
    return called;
}

/* And for who calls these. */
static void
look_for_setters(struct search *self, const struct cm_program *program)
{
    unsigned before;
    do {
        before = self->setters.count;
        for (size_t i = 0; i < program->count; i++) {
            look_for_setter(self, program->codes[i]);
        }
    } while (self->setters.count != before);
}

/* Who names a reader before it has set anything reads, too: again, until no
 * more do. */
static void
look_at_program(struct search *self, struct cm_program *program)
{
    unsigned before;
    look_for_setters(self, program);
    do {
        before = self->readers.count;
        for (size_t i = 0; !self->reads && i < program->count; i++) {
            look_at(self, program->codes[i]);
        }
    } while (!self->reads && self->readers.count != before);
    for (unsigned i = 0; !self->reads && i < self->readers.count; i++) {
        self->reads = !is_called(program, self->readers.codes[i]);
    }
}

static void
look_at_all(struct search *self, struct cm_program *program)
{
    PyObject *bases = self->owner != NULL ? self->owner->tp_mro : NULL;
    cm_program_list(program);
    self->reads |= program->failed;
    look_at_program(self, program);
    for (Py_ssize_t i = 0;
         !self->reads && bases != NULL && i < PyTuple_GET_SIZE(bases); i++) {
        PyObject *base = PyTuple_GET_ITEM(bases, i);
        if (PyType_Check(base)) {
            look_at_class(self, (PyTypeObject *)base);
        }
    }
}

/* Code that is no function's is gone once it has run. */
static bool
is_gone(const struct cm_roots *roots, struct cm_code_id id)
{
    struct cm_objects *objects = roots->objects;
    const struct cm_code *code = cm_records_code(objects->records, id);
    const char *name = cm_texts_get(objects->texts, code->name);
    bool gone = !code->library && strcmp(name, "<module>") == 0;
    for (size_t i = 0; gone && i < roots->count; i++) {
        gone = roots->items[i].kind != CM_ROOT_FRAME
               || roots->items[i].code.index != id.index;
    }
    return gone;
}

/* Of what has allocated it. */
static bool
is_any_gone(const struct cm_roots *roots, struct cm_site_id id)
{
    const struct cm_site *site = cm_records_site(roots->objects->records, id);
    bool gone = false;
    for (uint32_t i = 0; !gone && i < site->frame_count; i++) {
        gone = is_gone(roots, site->frames[i].code);
    }
    return gone;
}

/* NULL: it was not asked. */
static struct cm_renewed_answer *
answer_before(struct cm_objects *objects, struct cm_site_id site,
              struct cm_text_id label)
{
    for (size_t i = 0; i < CM_RENEWED_ANSWERS; i++) {
        struct cm_renewed_answer *answer = &objects->answers[i];
        if (answer->site == site.index && answer->label == label.index) {
            return answer;
        }
    }
    return NULL;
}

static void
note_answer(struct cm_objects *objects, struct cm_site_id site,
            struct cm_text_id label, bool renewed)
{
    struct cm_renewed_answer *answer = answer_before(objects, site, label);
    if (answer == NULL) {
        answer = &objects->answers[objects->answers_at];
        objects->answers_at = (objects->answers_at + 1) % CM_RENEWED_ANSWERS;
    }
    *answer = (struct cm_renewed_answer){site.index, label.index, renewed};
}

/* ---- by what names */

struct names {
    struct cm_program *program;
    struct cm_site_id site;
    struct place place;
    PyObject *target;
    bool gone; /* code that allocated it: the answer is the one from before */
    bool any, other;
};

static int
is_target(void *context, PyObject *referent)
{
    return ((struct names *)context)->target == referent;
}

static bool
is_renewed_by(struct names *self, struct cm_text_id label)
{
    struct cm_objects *objects = self->program->reach->roots->objects;
    if (self->gone) {
        const struct cm_renewed_answer *before =
            answer_before(objects, self->site, label);
        return before != NULL && before->renewed;
    }
    struct cm_name name = cm_name_of_label(objects->records, label);
    struct search search = {.objects = objects,
                            .what = {self->place.kind, name.text, false},
                            .owner = self->place.owner,
                            .site = self->site};
    look_at_all(&search, self->program);
    bool renewed = search.sets && !search.reads;
    note_answer(objects, self->site, label, renewed);
    return renewed;
}

static void
see_name(void *context, PyObject *referent, struct cm_text_id label,
         enum cm_role role)
{
    struct names *self = context;
    struct cm_objects *objects = self->program->reach->roots->objects;
    const char *text = cm_texts_get(objects->texts, label);
    bool named = role == CM_ATTRIBUTE || strncmp(text, "['", 2) == 0;
    (void)referent;
    self->any = true;
    self->other = self->other || !named || !is_renewed_by(self, label);
}

bool
cm_renewed_is(struct cm_program *program, uint32_t node, PyObject *target,
              struct cm_site_id site)
{
    const struct cm_reach *reach = program->reach;
    struct names names = {.program = program,
                          .site = site,
                          .place = place_of(reach, node),
                          .target = target,
                          .gone = is_any_gone(reach->roots, site)};
    if (reach->cut || reach->nodes_left != 0) {
        return false;
    }
    cm_objects_edges(reach->roots->objects, reach->objects[node], is_target,
                     see_name, &names);
    return names.any && !names.other;
}
