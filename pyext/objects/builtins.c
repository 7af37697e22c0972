/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* One reader for each kind of builtin object whose structure is public.
 * Subclasses of dict, list, tuple, set, exceptions, modules and weak
 * references are read through their base's structure: their own methods are
 * not asked.  Cost: O(items) pointer comparisons. */

#include "objects_private.h"

#include "../tables/phrase.h"

static void
read_dict(struct cm_walk *walk, PyObject *dict)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t position = 0;
    while (walk->left != 0 && PyDict_Next(dict, &position, &key, &value)) {
        cm_walk_name_key(walk, value, key);
        cm_walk_name(walk, key, "key", CM_KEY);
    }
}

static void
read_list(struct cm_walk *walk, PyObject *list)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list) && walk->left != 0; i++) {
        cm_walk_name_index(walk, PyList_GET_ITEM(list, i), i);
    }
}

static struct cm_text_id
name_of_cell(const struct cm_objects *self, const void *cell)
{
    const struct cm_address *known = cm_addresses_find(&self->cells, cell);
    return (struct cm_text_id){known == NULL ? 0 : known->value};
}

/* A cell whose variable is known is named after it: the items of a closure
 * tuple, and what the cell holds. */
static bool
name_by_cell(struct cm_walk *walk, const void *referent, const void *cell,
             enum cm_role role)
{
    struct cm_text_id name = name_of_cell(walk->objects, cell);
    if (name.index == 0) {
        return false;
    }
    cm_walk_name_text(walk, referent, "cell ",
                      cm_texts_get(walk->objects->texts, name), role);
    return true;
}

static void
read_tuple(struct cm_walk *walk, PyObject *tuple)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple) && walk->left != 0;
         i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        if (!name_by_cell(walk, item, item, CM_CLOSURE_CELL)) {
            cm_walk_name_index(walk, item, i);
        }
    }
}

static void
read_cell(struct cm_walk *walk, PyObject *cell)
{
    PyObject *contents = ((PyCellObject *)cell)->ob_ref;
    if (!name_by_cell(walk, contents, cell, CM_CELL_CONTENTS)) {
        cm_walk_name(walk, contents, "cell_contents", CM_CELL_CONTENTS);
    }
}

static void
read_set(struct cm_walk *walk, PyObject *set)
{
    const PySetObject *self = (const PySetObject *)set;
    for (Py_ssize_t i = 0; self->table != NULL && i <= self->mask; i++) {
        cm_walk_name(walk, self->table[i].key, "element", CM_ELEMENT);
    }
}

static void
read_function(struct cm_walk *walk, PyObject *object)
{
    const PyFunctionObject *self = (const PyFunctionObject *)object;
    cm_walk_name(walk, self->func_closure, "__closure__", CM_CLOSURE);
    cm_walk_name(walk, self->func_defaults, "__defaults__", CM_DEFAULT);
    cm_walk_name(walk, self->func_kwdefaults, "__kwdefaults__", CM_DEFAULT);
    cm_walk_name(walk, self->func_dict, "__dict__", CM_INSTANCE_DICT);
    cm_walk_name(walk, self->func_globals, "__globals__", CM_GLOBALS);
    cm_walk_name(walk, self->func_builtins, "__builtins__", CM_GLOBALS);
    cm_walk_name(walk, self->func_annotations, "__annotations__",
                 CM_ATTRIBUTE);
#if PY_VERSION_HEX >= 0x030C0000
    cm_walk_name(walk, self->func_typeparams, "__type_params__", CM_ATTRIBUTE);
#endif
#if PY_VERSION_HEX >= 0x030E0000
    cm_walk_name(walk, self->func_annotate, "__annotate__", CM_ATTRIBUTE);
#endif
    cm_walk_name(walk, self->func_code, "__code__", CM_ATTRIBUTE);
    cm_walk_name(walk, self->func_module, "__module__", CM_ATTRIBUTE);
    cm_walk_name(walk, self->func_doc, "__doc__", CM_ATTRIBUTE);
    cm_walk_name(walk, self->func_name, "__name__", CM_ATTRIBUTE);
    cm_walk_name(walk, self->func_qualname, "__qualname__", CM_ATTRIBUTE);
}

static void
read_method(struct cm_walk *walk, PyObject *object)
{
    const PyMethodObject *self = (const PyMethodObject *)object;
    cm_walk_name(walk, self->im_self, "__self__", CM_BOUND_SELF);
    cm_walk_name(walk, self->im_func, "__func__", CM_BOUND_FUNCTION);
}

static void
read_builtin_method(struct cm_walk *walk, PyObject *object)
{
    const PyCFunctionObject *self = (const PyCFunctionObject *)object;
    cm_walk_name(walk, self->m_self, "__self__", CM_BOUND_SELF);
    cm_walk_name(walk, self->m_module, "__module__", CM_ATTRIBUTE);
    cm_walk_name(walk, PyCFunction_GET_CLASS(object), "__objclass__",
                 CM_CLASS);
}

static void
read_exception(struct cm_walk *walk, PyObject *object)
{
    const PyBaseExceptionObject *self = (const PyBaseExceptionObject *)object;
    cm_walk_name(walk, self->traceback, "__traceback__", CM_EXCEPTION_LINK);
    cm_walk_name(walk, self->context, "__context__", CM_EXCEPTION_LINK);
    cm_walk_name(walk, self->cause, "__cause__", CM_EXCEPTION_LINK);
    cm_walk_name(walk, self->args, ".args", CM_ATTRIBUTE);
    cm_walk_name(walk, self->notes, ".__notes__", CM_ATTRIBUTE);
    cm_walk_name(walk, self->dict, "__dict__", CM_INSTANCE_DICT);
}

static void
read_traceback(struct cm_walk *walk, PyObject *object)
{
    const PyTracebackObject *self = (const PyTracebackObject *)object;
    cm_walk_name(walk, self->tb_frame, "tb_frame", CM_TB_FRAME);
    cm_walk_name(walk, self->tb_next, "tb_next", CM_TB_NEXT);
}

static void
read_type(struct cm_walk *walk, PyObject *object)
{
    const PyTypeObject *self = (const PyTypeObject *)object;
    cm_walk_name(walk, self->tp_dict, "__dict__", CM_CLASS);
    cm_walk_name(walk, self->tp_mro, "__mro__", CM_CLASS);
    cm_walk_name(walk, self->tp_bases, "__bases__", CM_CLASS);
    cm_walk_name(walk, self->tp_base, "__base__", CM_CLASS);
    cm_walk_name(walk, self->tp_cache, "cache", CM_CLASS);
    if (self->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        cm_walk_name(walk, ((const PyHeapTypeObject *)object)->ht_module,
                     "__module__", CM_CLASS);
    }
}

static void
read_weakref(struct cm_walk *walk, PyObject *object)
{
    cm_walk_name(walk, ((const PyWeakReference *)object)->wr_callback,
                 "__callback__", CM_WEAKREF_CALLBACK);
}

static void
read_descriptor(struct cm_walk *walk, PyObject *object)
{
    cm_walk_name(walk, ((const PyDescrObject *)object)->d_type, "__objclass__",
                 CM_CLASS);
}

static void
read_module(struct cm_walk *walk, PyObject *object)
{
    cm_walk_name(walk, PyModule_GetDict(object), "__dict__", CM_INSTANCE_DICT);
}

typedef void reader(struct cm_walk *walk, PyObject *object);

static const struct {
    PyTypeObject *type;
    reader *read;
} exact_readers[] = {
    {&PyFunction_Type, read_function},
    {&PyCell_Type, read_cell},
    {&PyMethod_Type, read_method},
    {&PyCFunction_Type, read_builtin_method},
    {&PyCMethod_Type, read_builtin_method},
    {&PyTraceBack_Type, read_traceback},
    {&PyFrame_Type, cm_read_frame},
    {&PyGen_Type, cm_read_frame},
    {&PyCoro_Type, cm_read_frame},
    {&PyAsyncGen_Type, cm_read_frame},
    {&PyGetSetDescr_Type, read_descriptor},
    {&PyMemberDescr_Type, read_descriptor},
    {&PyMethodDescr_Type, read_descriptor},
    {&PyWrapperDescr_Type, read_descriptor},
    {&PyClassMethodDescr_Type, read_descriptor},
#if PY_VERSION_HEX >= 0x030F0000
    {&PyFrozenDict_Type, read_dict},
#endif
};

static reader *
reader_of(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    for (size_t i = 0; i < Py_ARRAY_LENGTH(exact_readers); i++) {
        if (exact_readers[i].type == type) {
            return exact_readers[i].read;
        }
    }
    return PyExceptionInstance_Check(object) ? read_exception
           : PyAnySet_Check(object)          ? read_set
           : PyWeakref_Check(object)         ? read_weakref
           : PyModule_Check(object)          ? read_module
                                             : NULL;
}

void
cm_read_builtin(struct cm_walk *walk, PyObject *object)
{
    reader *read = PyDict_Check(object)    ? read_dict
                   : PyList_Check(object)  ? read_list
                   : PyTuple_Check(object) ? read_tuple
                   : PyType_Check(object)  ? read_type
                                           : reader_of(object);
    if (read != NULL) {
        read(walk, object);
    }
}
