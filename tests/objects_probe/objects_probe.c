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
#include "stores.h"

static struct cm_records *records;
static struct cm_objects *objects;

static PyObject *
text(struct cm_text_id id)
{
    return probe_text(records, id);
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

static PyObject *
code(PyObject *self, PyObject *object)
{
    (void)self;
    if (!PyCode_Check(object)) {
        return PyErr_Format(PyExc_TypeError, "a code object");
    }
    return probe_code(records,
                      cm_objects_code(objects, (PyCodeObject *)object));
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
