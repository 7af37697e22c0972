/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The attributes of an instance: its dict where it has been made, else the
 * values that CPython keeps with the object (names from the keys that the
 * class shares), then __slots__ and the object members of C types, which both
 * stand in tp_members.  A dict is never made.  Cost: O(attributes). */

#include "objects_private.h"

#include <stddef.h>
#include <string.h>

#include "../tables/phrase.h"
#if PY_VERSION_HEX < 0x030C0000
#include <structmember.h> // T_OBJECT
#endif

#if PY_VERSION_HEX < 0x030C0000
enum { MEMBER_OBJECT = T_OBJECT, MEMBER_OBJECT_EX = T_OBJECT_EX };
#else
enum { MEMBER_OBJECT = _Py_T_OBJECT, MEMBER_OBJECT_EX = Py_T_OBJECT_EX };
#endif

static PyObject *
object_at(PyObject *object, Py_ssize_t offset)
{
    PyObject *value;
    memcpy(&value, (const char *)object + offset, sizeof(value));
    return value;
}

static bool
is_object_member(const PyMemberDef *member)
{
    return member->type == MEMBER_OBJECT || member->type == MEMBER_OBJECT_EX;
}

PyObject *
cm_member(PyObject *object, const char *name)
{
    PyMemberDef *member = Py_TYPE(object)->tp_members;
    for (; member != NULL && member->name != NULL; member++) {
        if (is_object_member(member) && strcmp(member->name, name) == 0) {
            return object_at(object, member->offset);
        }
    }
    return NULL;
}

/* ---- the dict */

enum { MANAGED_DICT = -3 * (int)sizeof(PyObject *) };

static PyObject *
managed_dict(PyObject *object)
{
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
    uintptr_t tagged = (uintptr_t)object_at(object, MANAGED_DICT);
    return tagged & 1 ? NULL : (PyObject *)tagged;
#else
    return object_at(object, MANAGED_DICT);
#endif
}

/* How many values are kept with the object, and where; NULL: none are. */
static PyObject **
managed_values(PyObject *object, Py_ssize_t *count)
{
#if PY_VERSION_HEX < 0x030D0000
    (void)count; /* the array is as long as the keys */
#endif
#if PY_VERSION_HEX < 0x030C0000
    return (PyObject **)object_at(object,
                                  MANAGED_DICT - (int)sizeof(PyObject *));
#elif PY_VERSION_HEX < 0x030D0000
    uintptr_t tagged = (uintptr_t)object_at(object, MANAGED_DICT);
    return tagged & 1 ? (PyObject **)(tagged + 1) : NULL;
#else
    PyTypeObject *type = Py_TYPE(object);
    if (!(type->tp_flags & Py_TPFLAGS_INLINE_VALUES)) {
        return NULL;
    }
    struct cm_inline_values *values =
        (struct cm_inline_values *)(void *)((char *)object
                                            + type->tp_basicsize);
    if (*count > values->capacity) {
        *count = values->capacity;
    }
    return values->valid ? values->values : NULL;
#endif
}

/* The values kept with an object, and their names. */
struct values {
    PyObject *const *values; /* NULL: none */
    const struct cm_shared_key *names;
    Py_ssize_t count;
};

static struct values
values_of(const struct cm_objects *self, PyObject *object)
{
    struct values result = {0};
    PyHeapTypeObject *type = (PyHeapTypeObject *)Py_TYPE(object);
    unsigned long needed = Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_MANAGED_DICT;
    if (!self->proven.attributes
        || (type->ht_type.tp_flags & needed) != needed) {
        return result;
    }
    const struct cm_shared_keys *keys = (const void *)type->ht_cached_keys;
    if (keys != NULL && keys->kind == CM_KEYS_SPLIT) {
        result.count = keys->count;
        result.names = cm_shared_keys_entries(keys);
        result.values = managed_values(object, &result.count);
    }
    return result;
}

static Py_ssize_t
items_of(PyObject *object)
{
#if PY_VERSION_HEX >= 0x030C0000
    if (PyLong_Check(object)) {
        return (Py_ssize_t)(((PyLongObject *)object)->long_value.lv_tag >> 3);
    }
#endif
    return Py_SIZE(object) < 0 ? -Py_SIZE(object) : Py_SIZE(object);
}

/* tp_dictoffset below 0 counts from the end of an object of variable size. */
static Py_ssize_t
dict_offset(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_ssize_t offset = type->tp_dictoffset;
    if (offset < 0 && type->tp_itemsize > 0) {
        Py_ssize_t size =
            type->tp_basicsize + items_of(object) * type->tp_itemsize;
        Py_ssize_t word = (Py_ssize_t)sizeof(void *);
        offset += (size + word - 1) / word * word;
    }
    return offset;
}

PyObject *
cm_instance_dict(const struct cm_objects *self, PyObject *object)
{
    if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
        return self->proven.attributes ? managed_dict(object) : NULL;
    }
    Py_ssize_t offset =
        Py_TYPE(object)->tp_dictoffset == 0 ? 0 : dict_offset(object);
    return offset > 0 ? object_at(object, offset) : NULL;
}

PyObject *
cm_attribute(const struct cm_objects *self, PyObject *object, const char *name)
{
    PyObject *found = cm_dict_find(cm_instance_dict(self, object), name);
    struct values values = values_of(self, object);
    if (values.values != NULL) {
        for (Py_ssize_t i = 0; i < values.count && found == NULL; i++) {
            if (cm_str_is(values.names[i].key, name)) {
                found = values.values[i];
            }
        }
    }
    return found != NULL ? found : cm_member(object, name);
}

/* ---- members */

static void
name_member(struct cm_walk *walk, PyObject *value, const char *name,
            bool of_partial)
{
    if (strcmp(name, "__dict__") == 0) {
        cm_walk_name(walk, value, name, CM_INSTANCE_DICT);
    }
    else if (strcmp(name, "__self__") == 0) {
        cm_walk_name(walk, value, name, CM_BOUND_SELF);
    }
    else if (strcmp(name, "__func__") == 0) {
        cm_walk_name(walk, value, name, CM_BOUND_FUNCTION);
    }
    else if (of_partial) {
        cm_walk_name(walk, value, name,
                     strcmp(name, "func") == 0 ? CM_PARTIAL_FUNC
                                               : CM_PARTIAL_ARG);
    }
    else {
        cm_walk_name_text(walk, value, ".", name, CM_ATTRIBUTE);
    }
}

static void
read_members(struct cm_walk *walk, PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    for (; type != NULL && walk->left != 0; type = type->tp_base) {
        bool of_partial = type == walk->objects->partial;
        PyMemberDef *member = type->tp_members;
        for (; member != NULL && member->name != NULL; member++) {
            if (is_object_member(member)) {
                name_member(walk, object_at(object, member->offset),
                            member->name, of_partial);
            }
        }
    }
}

void
cm_read_attributes(struct cm_walk *walk, PyObject *object)
{
    if (walk->left == 0) {
        return;
    }
    struct values values = values_of(walk->objects, object);
    cm_walk_name(walk, cm_instance_dict(walk->objects, object), "__dict__",
                 CM_INSTANCE_DICT);
    for (Py_ssize_t i = 0; values.values != NULL && i < values.count; i++) {
        cm_walk_name_attribute(walk, values.values[i], values.names[i].key);
    }
    read_members(walk, object);
}
