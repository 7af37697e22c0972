/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "fields.h"

#include <stdio.h>
#include <string.h>

#if PY_VERSION_HEX < 0x030c0000
#include <structmember.h> // PyMember_GetOne()
#endif

bool
cm_type_derives(PyTypeObject *type, PyTypeObject *base)
{
    PyObject *mro = type->tp_mro; /* NULL in a half-built type */
    if (base == NULL || mro == NULL || !PyTuple_CheckExact(mro)) {
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        if (PyTuple_GET_ITEM(mro, i) == (PyObject *)base) {
            return true;
        }
    }
    return false;
}

bool
cm_type_is(const PyTypeObject *type, const char *name)
{
    return cm_type_is_c(type) && type->tp_name != NULL
           && strcmp(type->tp_name, name) == 0;
}

PyObject *
cm_type_in(const char *module, const char *name)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *found =
        modules != NULL ? PyDict_GetItemString(modules, module) : NULL;
    PyObject *dict = found != NULL && PyModule_Check(found)
                         ? PyModule_GetDict(found)
                         : NULL;
    PyObject *type = dict != NULL ? PyDict_GetItemString(dict, name) : NULL;
    return type != NULL && PyType_Check(type) ? Py_NewRef(type) : NULL;
}

PyObject *
cm_imported(const char *name)
{
    PyObject *key = PyUnicode_FromString(name);
    PyObject *module = key != NULL ? PyImport_GetModule(key) : NULL;
    PyErr_Clear();
    Py_XDECREF(key);
    return module;
}

PyObject *
cm_module_of(const char *name)
{
    PyObject *module = cm_imported(name);
    return module != NULL ? module : PyImport_ImportModule(name);
}

PyObject *
cm_field_of(PyObject *type, const char *name)
{
    PyObject *found = NULL;
    PyObject *mro = ((PyTypeObject *)type)->tp_mro;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        found = base->tp_dict != NULL && PyDict_CheckExact(base->tp_dict)
                    ? PyDict_GetItemString(base->tp_dict, name)
                    : NULL;
        if (found != NULL) {
            return Py_NewRef(found);
        }
    }
    return NULL;
}

bool
cm_field_is_c(PyObject *descriptor)
{
    return descriptor != NULL
           && (Py_TYPE(descriptor) == &PyGetSetDescr_Type
               || Py_TYPE(descriptor) == &PyMemberDescr_Type);
}

PyObject *
cm_field_read(PyObject *descriptor, PyObject *object)
{
    if (!cm_field_is_c(descriptor)
        || !cm_type_derives(Py_TYPE(object), PyDescr_TYPE(descriptor))) {
        return NULL;
    }
    PyObject *value;
    if (Py_TYPE(descriptor) == &PyGetSetDescr_Type) {
        PyGetSetDef *def = ((PyGetSetDescrObject *)descriptor)->d_getset;
        value = def->get != NULL ? def->get(object, def->closure) : NULL;
    }
    else {
        PyMemberDef *def = ((PyMemberDescrObject *)descriptor)->d_member;
        value = PyMember_GetOne((const char *)object, def);
    }
    PyErr_Clear();
    return value;
}

uint64_t
cm_field_number(PyObject *descriptor, PyObject *object)
{
    PyObject *value = cm_field_read(descriptor, object);
    uint64_t number = 0;
    if (value != NULL && PyLong_CheckExact(value)) {
        number = PyLong_AsUnsignedLongLongMask(value);
    }
    PyErr_Clear();
    Py_XDECREF(value);
    return number;
}

PyObject *
cm_field_named(PyObject *object, const char *name)
{
    PyObject *descriptor = cm_field_of((PyObject *)Py_TYPE(object), name);
    PyObject *value = cm_field_read(descriptor, object);
    Py_XDECREF(descriptor);
    return value;
}

size_t
cm_write_sizes(PyObject *shape, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "[");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape) && used + 32 < room;
         i++) {
        PyObject *size = PyTuple_GET_ITEM(shape, i);
        used += (size_t)snprintf(
            text + used, room - used, "%s%ld", i == 0 ? "" : ", ",
            PyLong_CheckExact(size) ? PyLong_AsLong(size) : -1);
        PyErr_Clear(); /* no such size: -1 */
    }
    return used + (size_t)snprintf(text + used, room - used, "]");
}

/* The scalar type is called as a person calls the dtype: "ml_dtypes.bfloat16",
 * "numpy.bool_". */
static void
write_scalar(PyTypeObject *scalar, char *text, size_t room)
{
    const char *dot = strrchr(scalar->tp_name, '.');
    const char *name = dot != NULL ? dot + 1 : scalar->tp_name;
    size_t length = strnlen(name, 24);
    if (length > 0 && name[length - 1] == '_') {
        length--;
    }
    snprintf(text, room, " %.*s", (int)length, name);
}

void
cm_write_dtype(PyObject *dtype, char *text, size_t room)
{
    PyObject *scalar = cm_field_named(dtype, "type");
    if (scalar != NULL && PyType_Check(scalar)) {
        write_scalar((PyTypeObject *)scalar, text, room);
    }
    Py_XDECREF(scalar);
}
