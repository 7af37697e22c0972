/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* For tests only: the stores of a code's record, as Python values. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "stores.h"

static const struct cm_records *records; /* of the newest question */

PyObject *
probe_text(const struct cm_records *all, struct cm_text_id id)
{
    const char *bytes = cm_records_text(all, id);
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)strlen(bytes),
                                "surrogateescape");
}

static PyObject *
text(struct cm_text_id id)
{
    return probe_text(records, id);
}

static bool
is_found(const struct cm_store *store)
{
    return store->found;
}

static bool
is_deep(const struct cm_store *store)
{
    return store->depth > 1;
}

static bool
is_deeper(const struct cm_store *store)
{
    return store->depth > 2;
}

static bool
is_empty_return(const struct cm_store *store)
{
    return store->kind == CM_STORE_RETURN && store->empty;
}

static bool
is_settled(const struct cm_store *store)
{
    return store->settled && store->kind <= CM_STORE_GLOBAL;
}

static bool
is_given(const struct cm_store *store)
{
    return store->given;
}

static struct cm_text_id
added_in(const struct cm_store *store)
{
    return store->added;
}

static struct cm_text_id
maker_in(const struct cm_store *store)
{
    return store->by;
}

/* {line: what is added there to what is set, or what makes it} */
static PyObject *
texts_of(const struct cm_code *record,
         struct cm_text_id (*text_in)(const struct cm_store *))
{
    PyObject *found = PyDict_New();
    for (uint32_t i = 0; found != NULL && i < record->store_count; i++) {
        const struct cm_store *store = &record->stores[i];
        struct cm_text_id id = text_in(store);
        PyObject *line = PyLong_FromUnsignedLong(store->line);
        PyObject *told = text(id);
        if (line == NULL || told == NULL
            || (id.index != 0 && PyDict_SetItem(found, line, told) < 0)) {
            Py_CLEAR(found);
        }
        Py_XDECREF(line);
        Py_XDECREF(told);
    }
    return found;
}

/* The lines of those that are like that. */
static PyObject *
lines_of(const struct cm_code *record, bool (*is)(const struct cm_store *))
{
    PyObject *lines = PyList_New(0);
    for (uint32_t i = 0; lines != NULL && i < record->store_count; i++) {
        const struct cm_store *store = &record->stores[i];
        PyObject *line = PyLong_FromUnsignedLong(store->line);
        if (line == NULL || (is(store) && PyList_Append(lines, line) < 0)) {
            Py_CLEAR(lines);
        }
        Py_XDECREF(line);
    }
    return lines;
}

/* The functions of calls: what they return is taken. */
static PyObject *
taken_calls(const struct cm_code *record)
{
    PyObject *names = PyList_New(0);
    for (uint32_t i = 0; names != NULL && i < record->store_count; i++) {
        const struct cm_store *store = &record->stores[i];
        bool taken = store->settled && store->kind > CM_STORE_GLOBAL;
        PyObject *name = text(store->name);
        if (name == NULL || (taken && PyList_Append(names, name) < 0)) {
            Py_CLEAR(names);
        }
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *
marks_of(const struct cm_code *record)
{
    return Py_BuildValue(
        "{s:N,s:N,s:N,s:N,s:N,s:N}", "added", texts_of(record, added_in), "by",
        texts_of(record, maker_in), "settled", lines_of(record, is_settled),
        "given", lines_of(record, is_given), "taken", taken_calls(record),
        "empty_returns", lines_of(record, is_empty_return));
}

/* (line, less) of each comparison of attributes. */
static PyObject *
less_stores(const struct cm_code *record)
{
    PyObject *found = PyList_New(0);
    for (uint32_t i = 0; found != NULL && i < record->store_count; i++) {
        const struct cm_store *store = &record->stores[i];
        PyObject *item =
            Py_BuildValue("Ii", (unsigned)store->line, (int)store->trimmed);
        if (item == NULL
            || (store->kind == CM_STORE_COMPARE
                && PyList_Append(found, item) < 0)) {
            Py_CLEAR(found);
        }
        Py_XDECREF(item);
    }
    return found;
}

/* Those that only code has which is no library's: (kind, name, owner, within,
 * which, made). */
static PyObject *
own_stores(const struct cm_code *record)
{
    PyObject *own = PyList_New(0);
    for (uint32_t i = 0; own != NULL && i < record->store_count; i++) {
        const struct cm_store *store = &record->stores[i];
        if (store->kind < CM_STORE_HAND) {
            continue;
        }
        PyObject *item = Py_BuildValue(
            "iNNNIi", (int)store->kind, text(store->name), text(store->owner),
            text(store->within), (unsigned)store->decides, (int)store->made);
        if (item == NULL || PyList_Append(own, item) < 0) {
            Py_CLEAR(own);
        }
        Py_XDECREF(item);
    }
    return own;
}

/* (kind, name, key, sized) of what was taken by a key, or is a size; of a loop's
 * variable what that goes over is its key. */
static PyObject *
taken_stores(const struct cm_code *record)
{
    PyObject *taken = PyList_New(0);
    for (uint32_t i = 0; taken != NULL && i < record->store_count; i++) {
        const struct cm_store *store = &record->stores[i];
        bool own = store->kind >= CM_STORE_HAND && store->key.index != 0;
        struct cm_text_id key = store->turn ? store->within : store->key;
        PyObject *item =
            Py_BuildValue("iNNi", (int)store->kind, text(store->name),
                          text(key), (int)store->sized);
        if (item == NULL
            || ((own || store->sized || store->turn)
                && PyList_Append(taken, item) < 0)) {
            Py_CLEAR(taken);
        }
        Py_XDECREF(item);
    }
    return taken;
}

static PyObject *
container_of(const struct cm_store *store)
{
    return text(store->turn ? (struct cm_text_id){0} : store->within);
}

static PyObject *
mark_of(const struct cm_store *store)
{
    return Py_BuildValue("iii", (int)store->constant, (int)store->empty,
                         (int)store->repeated);
}

PyObject *
probe_code(const struct cm_records *all, struct cm_code_id id)
{
    records = all;
    const struct cm_code *record = cm_records_code(records, id);
    PyObject *stores = PyList_New(0), *within = PyList_New(0);
    PyObject *keys = PyList_New(0);  /* (key, decides, carried) */
    PyObject *marks = PyList_New(0); /* (constant, empty, repeated) */
    /* (made, trimmed) and (turn, nested, scaled) */
    PyObject *values = PyList_New(0), *turns = PyList_New(0);
    for (uint32_t i = 0;
         keys != NULL && values != NULL && marks != NULL && within != NULL
         && stores != NULL && i < record->store_count;
         i++) {
        const struct cm_store *store = &record->stores[i];
        if (store->kind >= CM_STORE_HAND) {
            continue;
        }
        PyObject *item =
            Py_BuildValue("iNNI", (int)store->kind, text(store->name),
                          text(store->owner), (unsigned)store->line);
        PyObject *container = container_of(store);
        PyObject *key = Py_BuildValue("NIi", text(store->key), store->decides,
                                      (int)store->carried);
        PyObject *mark = mark_of(store);
        PyObject *value =
            Py_BuildValue("ii", (int)store->made, (int)store->trimmed);
        PyObject *turn = Py_BuildValue("iii", (int)store->turn,
                                       (int)store->nested, (int)store->scaled);
        if (item == NULL || container == NULL || mark == NULL || value == NULL
            || key == NULL || turn == NULL || turns == NULL
            || PyList_Append(turns, turn) < 0 || PyList_Append(keys, key) < 0
            || PyList_Append(values, value) < 0
            || PyList_Append(stores, item) < 0
            || PyList_Append(marks, mark) < 0
            || PyList_Append(within, container) < 0) {
            Py_CLEAR(stores);
        }
        Py_XDECREF(item);
        Py_XDECREF(container);
        Py_XDECREF(key);
        Py_XDECREF(mark);
        Py_XDECREF(value);
        Py_XDECREF(turn);
    }
    return Py_BuildValue(
        "{s:I,s:N,s:N,s:N,s:I,s:O,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:"
        "N,s:[NN]}",
        "id", (unsigned)id.index, "filename", text(record->filename), "name",
        text(record->name), "qualified_name", text(record->qualified_name),
        "first_line", (unsigned)record->first_line, "library",
        record->library ? Py_True : Py_False, "stores", stores, "within",
        within, "marks", marks, "values", values, "keys", keys, "turns", turns,
        "own", own_stores(record), "taken", taken_stores(record), "less",
        less_stores(record), "found", lines_of(record, is_found), "marked",
        marks_of(record), "deep", lines_of(record, is_deep),
        lines_of(record, is_deeper));
}
