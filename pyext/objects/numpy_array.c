/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* An item is found by its number, as if the array lay in a row: O(dimensions)
 * each.  What is not laid out as NumPy's headers say is not read. */

#include "numpy_array.h"

#include <string.h>

#include "../tables/phrase.h"

enum { MOST_DIMS = 64, MOST_PLACES = 1 << 24 };

/* Of a numpy.dtype: 'O' of objects. */
struct dtype {
    PyObject_HEAD
    PyTypeObject *scalar;
    char kind;
};

static bool
is_ndarray(const PyTypeObject *type)
{
    return type->tp_name != NULL && strcmp(type->tp_name, "numpy.ndarray") == 0
           && (type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0
           && type->tp_basicsize >= (Py_ssize_t)sizeof(struct cm_numpy_array);
}

PyTypeObject *
cm_numpy_type(PyObject *module)
{
    PyObject *found = module != NULL
                          ? cm_dict_find(PyModule_GetDict(module), "ndarray")
                          : NULL;
    return found != NULL && PyType_Check(found)
                   && is_ndarray((PyTypeObject *)found)
               ? (PyTypeObject *)found
               : NULL;
}

bool
cm_numpy_is(const PyObject *object)
{
    return is_ndarray(Py_TYPE(object));
}

/* 0: it has none, or more than can be looked at. */
static Py_ssize_t
count_places(const struct cm_numpy_array *self)
{
    const struct dtype *dtype = (const struct dtype *)self->dtype;
    Py_ssize_t count = 1;
    if (dtype == NULL || self->data == NULL || self->dim_count < 0
        || self->dim_count > MOST_DIMS
        || Py_TYPE(self->dtype)->tp_basicsize < (Py_ssize_t)sizeof *dtype
        || dtype->kind != 'O') {
        return 0;
    }
    for (int i = 0; i < self->dim_count; i++) {
        if (self->sizes[i] <= 0 || count > MOST_PLACES / self->sizes[i]) {
            return 0;
        }
        count *= self->sizes[i];
    }
    return count;
}

static PyObject *
item_at(const struct cm_numpy_array *self, Py_ssize_t number)
{
    const char *at = self->data;
    PyObject *item;
    for (int i = self->dim_count; i-- > 0;) {
        at += number % self->sizes[i] * self->strides[i];
        number /= self->sizes[i];
    }
    memcpy(&item, at, sizeof(PyObject *));
    return item;
}

bool
cm_numpy_has_places(PyObject *array)
{
    return count_places((const struct cm_numpy_array *)array) != 0;
}

uint64_t
cm_numpy_places(PyObject *array)
{
    return (uint64_t)count_places((const struct cm_numpy_array *)array);
}

bool
cm_numpy_leads(PyObject *array)
{
    return ((const struct cm_numpy_array *)array)->base != NULL
           || cm_numpy_has_places(array);
}

void
cm_numpy_visit(PyObject *array, visitproc visit, void *context)
{
    const struct cm_numpy_array *self = (const struct cm_numpy_array *)array;
    Py_ssize_t count = count_places(self);
    if (self->base != NULL && visit(self->base, context) != 0) {
        return;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = item_at(self, i);
        if (item != NULL && visit(item, context) != 0) {
            return;
        }
    }
}

struct cm_text_id
cm_numpy_edge(struct cm_texts *texts, PyObject *array, PyObject *referent,
              enum cm_role *role)
{
    const struct cm_numpy_array *self = (const struct cm_numpy_array *)array;
    Py_ssize_t count = count_places(self), i = 0;
    struct cm_phrase label;
    while (i < count && item_at(self, i) != referent) {
        i++;
    }
    *role = i < count ? CM_ITEM : CM_ATTRIBUTE;
    if (i == count) {
        return cm_texts_intern(texts, ".base");
    }
    label.length = 0;
    cm_phrase_add(&label, "[");
    cm_phrase_add_number(&label, (long long)i);
    cm_phrase_add(&label, "]");
    return cm_phrase_intern(&label, texts);
}
