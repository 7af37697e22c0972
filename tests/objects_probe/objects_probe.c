/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* For tests only: what pyext/objects/objects.h tells of an object, as Python values.
 * Answers are collected in native memory first and become Python objects
 * afterwards, as cumem itself must do inside a collection. */

#define PY_SSIZE_T_CLEAN
#include "../../pyext/objects/deaths.h"
#include "../../pyext/objects/objects.h"
#include "../../pyext/objects/objects_private.h"
#include "../../pyext/objects/stack_path.h"
#include "../../pyext/code/touch.h"

#include <time.h>

#include "../../detector/alloc.h"

static struct cm_records *records;
static struct cm_objects *objects;

static PyObject *
text(struct cm_text_id id)
{
    const char *bytes = cm_records_text(records, id);
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)strlen(bytes),
                                "surrogateescape");
}

static PyObject *
status(PyObject *self, PyObject *arguments)
{
    struct cm_objects_status now;
    (void)self;
    (void)arguments;
    cm_objects_status(objects, &now);
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:K,s:K,s:K}", "stack", now.stack,
                         "code", cm_deaths_status(), "attributes",
                         now.attributes, "frames", now.frames, "unnamed_edges",
                         (unsigned long long)now.unnamed_edges, "known_stacks",
                         (unsigned long long)now.known_stacks, "lost_stacks",
                         (unsigned long long)now.lost_stacks);
}

/* ---- describe */

static PyObject *
describe(PyObject *self, PyObject *object)
{
    struct cm_node node = {0};
    (void)self;
    cm_objects_describe(objects, object, &node);
    return Py_BuildValue(
        "{s:i,s:N,s:N,s:N,s:I,s:O,s:K}", "species", (int)node.species, "label",
        text(node.label), "type",
        text(cm_records_type(records, node.type)->name), "code",
        text(cm_records_code(records, node.code)->qualified_name), "line",
        (unsigned)node.line, "has_finalizer",
        node.has_finalizer ? Py_True : Py_False, "bytes",
        (unsigned long long)node.bytes);
}

/* ---- edges */

struct seen {
    PyObject *referent; /* borrowed */
    struct cm_text_id label;
    enum cm_role role;
};

struct seeing {
    PyObject *only; /* NULL: all are wanted */
    struct seen *items;
    size_t count, capacity;
};

static int
is_wanted(void *context, PyObject *referent)
{
    struct seeing *seeing = context;
    return seeing->only == NULL || seeing->only == referent;
}

static void
see(void *context, PyObject *referent, struct cm_text_id label,
    enum cm_role role)
{
    struct seeing *seeing = context;
    if (cm_grow((void **)&seeing->items, &seeing->capacity, seeing->count + 1,
                sizeof(*seeing->items))
        == CM_OK) {
        seeing->items[seeing->count++] = (struct seen){referent, label, role};
    }
}

static PyObject *
edges(PyObject *self, PyObject *arguments)
{
    struct seeing seeing = {0};
    PyObject *object, *result;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "O|O", &object, &seeing.only)) {
        return NULL;
    }
    cm_objects_edges(objects, object, is_wanted, see, &seeing);
    for (size_t i = 0; i < seeing.count; i++) {
        Py_INCREF(seeing.items[i].referent);
    }
    result = PyList_New(0);
    for (size_t i = 0; result != NULL && i < seeing.count; i++) {
        PyObject *item =
            Py_BuildValue("ONi", seeing.items[i].referent,
                          text(seeing.items[i].label), seeing.items[i].role);
        if (item == NULL || PyList_Append(result, item) < 0) {
            Py_CLEAR(result);
        }
        Py_XDECREF(item);
    }
    for (size_t i = 0; i < seeing.count; i++) {
        Py_DECREF(seeing.items[i].referent);
    }
    cm_free(seeing.items);
    return result;
}

static void
count(void *context, PyObject *referent, struct cm_text_id label,
      enum cm_role role)
{
    struct seeing *seeing = context;
    (void)referent;
    (void)label;
    (void)role;
    seeing->count++;
}

/* Of all objects, counted only: allocates nothing itself. */
static PyObject *
count_edges(PyObject *self, PyObject *list)
{
    struct seeing seeing = {0};
    (void)self;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        struct cm_node node = {0};
        cm_objects_describe(objects, PyList_GET_ITEM(list, i), &node);
        cm_objects_edges(objects, PyList_GET_ITEM(list, i), is_wanted, count,
                         &seeing);
    }
    return PyLong_FromSize_t(seeing.count);
}

static PyObject *
begin(PyObject *self, PyObject *list)
{
    (void)self;
    cm_objects_begin(objects, ((PyListObject *)list)->ob_item,
                     (size_t)PyList_GET_SIZE(list));
    Py_RETURN_NONE;
}

/* ---- code, type, stack */

static bool
is_found(const struct cm_store *store)
{
    return store->found;
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
        "{s:N,s:N,s:N,s:N}", "settled", lines_of(record, is_settled), "given",
        lines_of(record, is_given), "taken", taken_calls(record),
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
marks_of(const struct cm_store *store)
{
    return Py_BuildValue("iii", (int)store->constant, (int)store->empty,
                         (int)store->repeated);
}

static PyObject *
code(PyObject *self, PyObject *object)
{
    (void)self;
    if (!PyCode_Check(object)) {
        return PyErr_Format(PyExc_TypeError, "a code object");
    }
    struct cm_code_id id = cm_objects_code(objects, (PyCodeObject *)object);
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
        PyObject *mark = marks_of(store);
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
        "N}",
        "id", (unsigned)id.index, "filename", text(record->filename), "name",
        text(record->name), "qualified_name", text(record->qualified_name),
        "first_line", (unsigned)record->first_line, "library",
        record->library ? Py_True : Py_False, "stores", stores, "within",
        within, "marks", marks, "values", values, "keys", keys, "turns", turns,
        "own", own_stores(record), "taken", taken_stores(record), "less",
        less_stores(record), "found", lines_of(record, is_found), "marked",
        marks_of(record));
}

/* (code, kind, name, other_self, function, whether that reads or sets)
 * -> (reads, sets, repeats) */
static PyObject *
touch(PyObject *self, PyObject *arguments)
{
    struct cm_touch what = {0};
    PyObject *object, *reader = NULL;
    int kind, other_self = 0, reads = 1;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "O!is|pO!p", &PyCode_Type, &object, &kind,
                          &what.name, &other_self, &PyCode_Type, &reader,
                          &reads)) {
        return NULL;
    }
    what.readers.codes = what.setters.codes = (PyCodeObject **)&reader;
    *(reads ? &what.readers.count : &what.setters.count) = reader != NULL;
    what.kind = (enum cm_touch_kind)kind;
    what.other_self = other_self != 0;
    struct cm_touched touched =
        cm_touch_find(&objects->bytecode, (PyCodeObject *)object, &what);
    return Py_BuildValue("iii", (int)touched.reads, (int)touched.sets,
                         (int)touched.repeats);
}

static PyObject *
sets_always(PyObject *self, PyObject *arguments)
{
    struct cm_touch what = {.kind = CM_TOUCH_ATTRIBUTE};
    PyObject *object;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "O!s", &PyCode_Type, &object,
                          &what.name)) {
        return NULL;
    }
    struct cm_touched touched =
        cm_touch_find(&objects->bytecode, (PyCodeObject *)object, &what);
    return PyBool_FromLong(touched.always);
}

static PyObject *
type(PyObject *self, PyObject *object)
{
    (void)self;
    if (!PyType_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "a type");
        return NULL;
    }
    struct cm_type_id id = cm_objects_type(objects, (PyTypeObject *)object);
    const struct cm_type *record = cm_records_type(records, id);
    PyObject *methods = PyList_New(0);
    for (uint32_t i = 0; methods != NULL && i < record->method_count; i++) {
        PyObject *name =
            text(cm_records_code(records, record->methods[i])->qualified_name);
        if (name == NULL || PyList_Append(methods, name) < 0) {
            Py_CLEAR(methods);
        }
        Py_XDECREF(name);
    }
    return Py_BuildValue(
        "{s:I,s:N,s:N,s:O,s:N}", "id", (unsigned)id.index, "name",
        text(record->name), "module", text(record->module), "library",
        record->library ? Py_True : Py_False, "methods", methods);
}

static PyObject *
site_value(struct cm_site_id id)
{
    const struct cm_site *site = cm_records_site(records, id);
    PyObject *frames = PyList_New(0);
    for (uint32_t i = 0; frames != NULL && i < site->frame_count; i++) {
        const struct cm_code *record =
            cm_records_code(records, site->frames[i].code);
        PyObject *item = Py_BuildValue("NNI", text(record->filename),
                                       text(record->qualified_name),
                                       (unsigned)site->frames[i].line);
        if (item == NULL || PyList_Append(frames, item) < 0) {
            Py_CLEAR(frames);
        }
        Py_XDECREF(item);
    }
    return Py_BuildValue("INO", (unsigned)id.index, frames,
                         site->cut ? Py_True : Py_False);
}

static PyObject *
stack(PyObject *self, PyObject *arguments)
{
    int without_gil = 0;
    struct cm_site_id id;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "|p", &without_gil)) {
        return NULL;
    }
    if (without_gil) {
        Py_BEGIN_ALLOW_THREADS
        id = cm_objects_stack(objects);
        Py_END_ALLOW_THREADS
    }
    else {
        id = cm_objects_stack(objects);
    }
    return site_value(id);
}

static PyObject *
memory_stack(PyObject *self, PyObject *arguments)
{
    (void)self;
    (void)arguments;
    return PyLong_FromUnsignedLong(cm_objects_memory_stack(objects).index);
}

static PyObject *
tensor_stack(PyObject *self, PyObject *arguments)
{
    (void)self;
    (void)arguments;
    return PyLong_FromUnsignedLong(cm_objects_tensor_stack(objects).index);
}

/* (number): as if the stack that is here had it. */
static PyObject *
note_stack(PyObject *self, PyObject *number)
{
    unsigned long site = PyLong_AsUnsignedLong(number);
    (void)self;
    if (PyErr_Occurred()) {
        return NULL;
    }
    cm_stack_path_note(cm_objects_innermost_frame(objects),
                       atomic_load(&objects->turn), (uint32_t)site);
    Py_RETURN_NONE;
}

/* ns per call of cm_objects_stack from here, hot */
static PyObject *
stack_cost(PyObject *self, PyObject *arguments)
{
    int rounds = 1000000;
    struct timespec from, to;
    unsigned sum = 0;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "|i", &rounds)) {
        return NULL;
    }
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < rounds; i++) {
        sum += cm_objects_stack(objects).index;
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double ns = (double)(to.tv_sec - from.tv_sec) * 1e9
                + (double)(to.tv_nsec - from.tv_nsec);
    return Py_BuildValue("dI", ns / rounds, sum);
}

static PyObject *
fail_at(PyObject *self, PyObject *arguments)
{
    long nth;
    int from_then_on = 0;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "l|p", &nth, &from_then_on)) {
        return NULL;
    }
    cm_alloc_fail_at(nth, from_then_on != 0);
    return PyLong_FromLong(cm_alloc_live());
}

/* Starts again from nothing; False when memory ran out. */
static PyObject *
renew(PyObject *self, PyObject *arguments)
{
    (void)self;
    (void)arguments;
    cm_objects_free(objects);
    objects = NULL;
    cm_records_free(records);
    records = cm_records_new((size_t)64 << 20);
    if (records != NULL) {
        objects = cm_objects_new(records);
    }
    if (objects != NULL) {
        cm_objects_note_memory(objects, true);
    }
    return PyBool_FromLong(objects != NULL);
}

static PyObject *
show_texts(PyObject *self, PyObject *on)
{
    (void)self;
    cm_objects_show_texts(objects, on == Py_True);
    Py_RETURN_NONE;
}

/* (bool): whether deaths of code are heard from here on. */
static PyObject *
hear(PyObject *self, PyObject *on)
{
    (void)self;
    if (on == Py_True) {
        cm_deaths_start(objects);
    }
    else {
        cm_deaths_stop(objects);
    }
    Py_RETURN_NONE;
}

static PyObject *
rest(PyObject *self, PyObject *arguments)
{
    (void)self;
    (void)arguments;
    cm_deaths_rest();
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"hear", hear, METH_O, NULL},
    {"rest", rest, METH_NOARGS, NULL},
    {"status", status, METH_NOARGS, NULL},
    {"describe", describe, METH_O, NULL},
    {"edges", edges, METH_VARARGS, NULL},
    {"count_edges", count_edges, METH_O, NULL},
    {"begin", begin, METH_O, NULL},
    {"code", code, METH_O, NULL},
    {"touch", touch, METH_VARARGS, NULL},
    {"sets_always", sets_always, METH_VARARGS, NULL},
    {"type", type, METH_O, NULL},
    {"stack", stack, METH_VARARGS, NULL},
    {"memory_stack", memory_stack, METH_NOARGS, NULL},
    {"tensor_stack", tensor_stack, METH_NOARGS, NULL},
    {"note_stack", note_stack, METH_O, NULL},
    {"stack_cost", stack_cost, METH_VARARGS, NULL},
    {"fail_at", fail_at, METH_VARARGS, NULL},
    {"renew", renew, METH_NOARGS, NULL},
    {"show_texts", show_texts, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "objects_probe",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_objects_probe(void);

PyMODINIT_FUNC
PyInit_objects_probe(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL) {
        Py_XDECREF(renew(NULL, NULL));
    }
    if (module != NULL && objects == NULL) {
        Py_CLEAR(module);
        PyErr_NoMemory();
    }
    return module;
}
