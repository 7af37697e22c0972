/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_NUMPY_ARRAY_H
#define CM_NUMPY_ARRAY_H

/* NumPy's arrays keep objects alive, those that they have as items and the one
 * whose memory they share (x.numpy()), but are no objects of the collector: no
 * tp_traverse shows these.  They are read, never asked; a subclass is not. */

#include "objects_private.h"

/* What NumPy's C interface has fixed of an ndarray. */
struct cm_numpy_array {
    PyObject_HEAD
    char *data;
    int dim_count;
    const Py_ssize_t *sizes, *strides;
    PyObject *base, *dtype;
    int flags;
};

/* [borrowed; never] numpy.ndarray, of the module numpy; NULL: there is none. */
PyTypeObject *cm_numpy_type(PyObject *module);
bool cm_numpy_is(const PyObject *object);
/* It keeps any object alive.  Before: it is an ndarray, as for all below. */
bool cm_numpy_leads(PyObject *array);

/* There may be something to look into, where `arrays` is that type, or NULL. */
static inline bool
cm_leads_on(const PyTypeObject *arrays, PyObject *object)
{
    return cm_can_traverse(object)
           || (Py_TYPE(object) == arrays && cm_numpy_leads(object));
}

/* It has objects as items: as many as it was made for. */
bool cm_numpy_has_places(PyObject *array);
uint64_t cm_numpy_places(PyObject *array);
void cm_numpy_visit(PyObject *array, visitproc visit, void *context);
/* What it calls `referent`: "[3]", ".base". */
struct cm_text_id cm_numpy_edge(struct cm_texts *texts, PyObject *array,
                                PyObject *referent, enum cm_role *role);

#endif
