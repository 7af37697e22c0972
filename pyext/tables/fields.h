/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FIELDS_H
#define CM_FIELDS_H

/* Fields of objects that other C code made, read without running Python: by
 * the C getters of Cython's descriptors, as they stand in the type's own
 * dictionary.  With the GIL. */

#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CM_MAX_DEVICE_BYTES_LOG2 = 48 };

/* Is `base` among the bases?  No metaclass is asked; NULL: no. */
bool cm_type_derives(PyTypeObject *type, PyTypeObject *base);
/* A program's class may have any name, but is never immutable. */
static inline bool
cm_type_is_c(const PyTypeObject *type)
{
    return (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) != 0;
}

/* Is it CPython's own type of this tp_name? */
bool cm_type_is(const PyTypeObject *type, const char *name);
/* [new; never] an attribute of a module in sys.modules, if it is a type. */
PyObject *cm_type_in(const char *module, const char *name);

/* [new; never] a module that was imported before.  Nothing is imported inside a
 * collection: it may have begun within importlib's own locks (CPython 3.11 then
 * fails the import that was under way), or where the running frame's builtins
 * are empty. */
PyObject *cm_imported(const char *name);

/* [new; raises] imported where it is not yet there, as importlib does, which
 * asks for an `__import__` that may be the program's own. */
PyObject *cm_module_of(const char *name);

/* [new; never] a descriptor of a type, as it stands in its dictionary. */
PyObject *cm_field_of(PyObject *type, const char *name);
bool cm_field_is_c(PyObject *descriptor);
/* [new; never] NULL also when it is no C getter. */
PyObject *cm_field_read(PyObject *descriptor, PyObject *object);
/* 0 when it cannot be told. */
uint64_t cm_field_number(PyObject *descriptor, PyObject *object);
/* [new; never] both at once, for what is read seldom. */
PyObject *cm_field_named(PyObject *object, const char *name);

/* "[64, 512]" of a tuple of int; answers the length. */
size_t cm_write_sizes(PyObject *shape, char *text, size_t room);
/* " float32" from a NumPy dtype; nothing when it is none. */
void cm_write_dtype(PyObject *dtype, char *text, size_t room);

#endif
