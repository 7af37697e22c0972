/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What C code holds without a name that traverse could show is told by the
 * order in which it shows it.  O(references of the object). */

#include "unnamed.h"

#include "../../graph/holding.h"
#include "../../graph/name.h"
#include "../tables/fields.h"
#include "../tables/phrase.h"

enum {
    MOST_SHOWN = 4096,
    MOST_CACHED = 1024, /* a larger size is no bound to rely on */
    MOST_KEYS = 1024,
    MOST_OWNERS = MOST_KEYS / 4, /* fewer than so many of the keys are few */
};

const char cm_unnamed_threads[] = "in each thread";

/* What stands beside the head where an object shows its references. */
struct neighbours {
    PyObject *head, *last, *before;
    PyObject *next[2];
    size_t next_count, shown;
};

static int
see_neighbour(PyObject *referent, void *context)
{
    struct neighbours *seen = context;
    bool met = seen->before != NULL || seen->last == seen->head;
    if (seen->next_count == 2 || ++seen->shown > MOST_SHOWN * 1024u) {
        return 1;
    }
    if (met) {
        seen->next[seen->next_count++] = referent;
        return 0;
    }
    seen->last = referent;
    return 0;
}

static struct neighbours
neighbours_of(PyObject *tail, PyObject *head)
{
    struct neighbours seen = {.head = head};
    (void)Py_TYPE(tail)->tp_traverse(tail, see_neighbour, &seen);
    return seen;
}

static bool
is_named(PyObject *type, const char *end)
{
    return type != NULL && PyType_Check(type)
           && cm_name_ends_with(((PyTypeObject *)type)->tp_name, end);
}

static bool
is_lru_cache(const PyObject *object)
{
    return cm_type_is(Py_TYPE(object), "functools._lru_cache_wrapper");
}

/* A cache shows for each entry its key, its result and the entry's type. */
static const char *
name_in_lru_cache(PyObject *tail, PyObject *head)
{
    struct neighbours seen = neighbours_of(tail, head);
    if (is_named(seen.next[0], "lru_list_elem")) {
        return "cached result";
    }
    return is_named(seen.next[1], "lru_list_elem") ? "cached arguments"
           : PyDict_CheckExact(head)               ? "cache"
                                                   : NULL;
}

bool
cm_unnamed_is_hamt(const PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    return cm_type_is_c(type) && strncmp(type->tp_name, "hamt", 4) == 0;
}

static bool
is_context_part(const PyObject *object)
{
    return cm_unnamed_is_hamt(object) || Py_TYPE(object) == &PyContext_Type;
}

static bool
is_thread_local(PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    while (type != NULL && !cm_type_is(type, "_thread._local")) {
        type = type->tp_base;
    }
    return type != NULL;
}

const char *
cm_unnamed_field(PyObject *tail, PyObject *head)
{
    if (is_lru_cache(tail)) {
        return name_in_lru_cache(tail, head);
    }
    return PyDict_CheckExact(head) && is_thread_local(tail)
               ? cm_unnamed_threads
               : NULL;
}

/* A node shows its pairs from the last to the first: value, then key. */
struct cm_text_id
cm_unnamed_variable(struct cm_texts *texts, PyObject *tail, PyObject *head)
{
    struct cm_phrase phrase;
    struct neighbours seen = {.head = NULL};
    if (is_context_part(tail)) {
        seen = neighbours_of(tail, head);
    }
    if (seen.next[0] == NULL || Py_TYPE(seen.next[0]) != &PyContextVar_Type) {
        return (struct cm_text_id){0};
    }
    phrase.length = 0;
    cm_phrase_add(&phrase, "contextvar ");
    cm_phrase_add_str(&phrase, cm_member(seen.next[0], "name"),
                      CM_PHRASE_VALUE_CHARS);
    return cm_phrase_intern(&phrase, texts);
}

PyObject *
cm_unnamed_cached(const struct cm_objects *objects, PyObject *object)
{
    PyObject *wrapped = is_lru_cache(object)
                            ? cm_attribute(objects, object, "__wrapped__")
                            : NULL;
    return wrapped != NULL && PyFunction_Check(wrapped) ? wrapped : NULL;
}

/* functools keeps `maxsize` in a variable of the function cache_parameters; to
 * call that would run Python.  A closure's cells follow the other variables. */
static PyObject *
free_variable(PyObject *function, const char *name)
{
    PyObject *cells = PyFunction_GET_CLOSURE(function);
    const PyCodeObject *code = cm_function_code(function);
    if (cells == NULL || !PyTuple_Check(cells) || code == NULL) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(cells);
    Py_ssize_t first = code->co_nlocalsplus - count;
    for (Py_ssize_t i = 0; first >= 0 && i < count; i++) {
        PyObject *cell = PyTuple_GET_ITEM(cells, i);
        if (PyCell_Check(cell)
            && cm_str_is(PyTuple_GET_ITEM(code->co_localsplusnames, first + i),
                         name)) {
            return PyCell_GET(cell);
        }
    }
    return NULL;
}

static bool
is_method(PyObject *function)
{
    PyObject *name = ((PyFunctionObject *)function)->func_qualname;
    const char *text = PyUnicode_AsUTF8(name);
    const char *dot = text != NULL ? strrchr(text, '.') : NULL;
    PyErr_Clear();
    return dot != NULL && dot > text && dot[-1] != '>';
}

/* None, a number, or NULL: not known. */
static PyObject *
maxsize_of(const struct cm_objects *objects, PyObject *object)
{
    PyObject *told = cm_attribute(objects, object, "cache_parameters");
    return told != NULL && PyFunction_Check(told)
               ? free_variable(told, "maxsize")
               : NULL;
}

/* The table stands before the function; no key is a dict. */
struct table {
    PyObject *function, *last, *found;
};

static int
see_table(PyObject *referent, void *context)
{
    struct table *seen = context;
    bool met = referent == seen->function && seen->last != NULL
               && PyDict_CheckExact(seen->last);
    seen->found = met ? seen->last : NULL;
    seen->last = referent;
    return met;
}

static bool
is_among(PyObject *const *known, size_t count, const PyObject *object)
{
    while (count > 0 && known[count - 1] != object) {
        count--;
    }
    return count != 0;
}

/* The keys of a method's are tuples that begin with its object. */
static bool
has_few_owners(PyObject *object, PyObject *function)
{
    PyObject *owners[MOST_OWNERS], *key;
    struct table table = {.function = function};
    size_t count = 0, keys = 0;
    Py_ssize_t at = 0;
    (void)Py_TYPE(object)->tp_traverse(object, see_table, &table);
    while (table.found != NULL && keys < MOST_KEYS
           && PyDict_Next(table.found, &at, &key, NULL)) {
        keys++;
        if (!PyTuple_Check(key) || PyTuple_GET_SIZE(key) == 0) {
            return false;
        }
        PyObject *owner = PyTuple_GET_ITEM(key, 0);
        if (!is_among(owners, count, owner)) {
            if (count == MOST_OWNERS) {
                return false;
            }
            owners[count++] = owner;
        }
    }
    return 4 * count < keys;
}

uint8_t
cm_unnamed_cache(const struct cm_objects *objects, PyObject *object)
{
    PyObject *cached = cm_unnamed_cached(objects, object);
    if (cached == NULL) {
        return 0;
    }
    uint8_t unsized = maxsize_of(objects, object) == Py_None;
    return (uint8_t)(unsized * CM_CACHE_UNSIZED)
           | (is_method(cached) && has_few_owners(object, cached)
                  ? CM_CACHE_FEW_OWNERS
                  : 0);
}

bool
cm_unnamed_is_bounded(const struct cm_objects *objects, PyObject *object)
{
    PyObject *cached = cm_unnamed_cached(objects, object);
    bool owned =
        cached != NULL && is_method(cached) && !has_few_owners(object, cached);
    PyObject *most =
        cached != NULL && !owned ? maxsize_of(objects, object) : NULL;
    int overflow = 0;
    return most != NULL && PyLong_CheckExact(most)
           && PyLong_AsLongAndOverflow(most, &overflow) <= MOST_CACHED
           && overflow == 0;
}

static Py_ssize_t
index_in(PyObject *tuple, PyObject *item)
{
    Py_ssize_t i = PyTuple_GET_SIZE(tuple) - 1;
    while (i >= 0 && PyTuple_GET_ITEM(tuple, i) != item) {
        i--;
    }
    return i;
}

PyObject *
cm_unnamed_parameter(PyObject *function, PyObject *defaults, PyObject *value)
{
    PyCodeObject *code = cm_function_code(function);
    if (code == NULL) {
        return NULL;
    }
    PyObject *names = code->co_localsplusnames;
    Py_ssize_t first = code->co_argcount - PyTuple_GET_SIZE(defaults);
    Py_ssize_t i = index_in(defaults, value);
    bool known = i >= 0 && first >= 0 && names != NULL && PyTuple_Check(names)
                 && first + i < PyTuple_GET_SIZE(names);
    return known ? PyTuple_GET_ITEM(names, first + i) : NULL;
}
