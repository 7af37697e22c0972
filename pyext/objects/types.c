/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Types are copied at first sight: name, module, and the code of the methods
 * in their order of resolution, where the line that stores an attribute is
 * looked for.  Type dicts are walked, never asked: a lookup could meet a key
 * whose __eq__ is the user's.  A type found again is the same type when its
 * version tag is; one that has no tag (changed since it was used last, or too
 * often) is told by its name and the size of its dict.  Cost: 10 ns when
 * known, 200 ns without a tag; when new, the scan of each method not seen
 * before. */

#include "objects_private.h"

#include <string.h>

#include "../../detector/alloc.h"
#include "../tables/phrase.h"

enum { MAX_METHODS = 256 };

PyObject *
cm_dict_find(PyObject *dict, const char *name)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t position = 0;
    if (dict == NULL || !PyDict_Check(dict)) {
        return NULL;
    }
    while (PyDict_Next(dict, &position, &key, &value)) {
        if (cm_str_is(key, name)) {
            return value;
        }
    }
    return NULL;
}

/* "package.module.Name" of a type made in C: where Name starts. */
static const char *
last_part(const char *dotted)
{
    const char *dot = strrchr(dotted, '.');
    return dot == NULL ? dotted : dot + 1;
}

static void
add_module(struct cm_phrase *phrase, PyTypeObject *type)
{
    PyObject *module = cm_dict_find(type->tp_dict, "__module__");
    if (module != NULL && PyUnicode_Check(module)) {
        cm_phrase_add_str(phrase, module, CM_PHRASE_BYTES / 2);
    }
    else if (type->tp_name != NULL
             && !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        const char *name = last_part(type->tp_name);
        for (const char *c = type->tp_name; c + 1 < name; c++) {
            char one[2] = {*c, '\0'};
            cm_phrase_add(phrase, one);
        }
    }
}

static bool
is_phrase(const struct cm_phrase *phrase, const char *text)
{
    return phrase->length == strlen(text)
           && memcmp(phrase->bytes, text, phrase->length) == 0;
}

static void
add_name(struct cm_phrase *phrase, PyTypeObject *type)
{
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        cm_phrase_add_str(phrase, ((PyHeapTypeObject *)type)->ht_qualname,
                          CM_PHRASE_BYTES / 4);
    }
    else {
        cm_phrase_add(phrase,
                      type->tp_name == NULL ? "?" : last_part(type->tp_name));
    }
}

void
cm_phrase_add_type(struct cm_phrase *phrase, PyTypeObject *type)
{
    struct cm_phrase module;
    module.length = 0;
    add_module(&module, type);
    if (module.length != 0 && !is_phrase(&module, "builtins")
        && !is_phrase(&module, "__main__")) {
        module.bytes[module.length] = '\0';
        cm_phrase_add(phrase, module.bytes);
        cm_phrase_add(phrase, ".");
    }
    add_name(phrase, type);
}

/* ---- methods */

struct methods {
    struct cm_objects *objects;
    struct cm_code_id codes[MAX_METHODS];
    uint32_t count;
    bool first_is_library;
};

static void
add_function(struct methods *methods, PyObject *function)
{
    PyCodeObject *code = cm_function_code(function);
    if (methods->count == MAX_METHODS || code == NULL) {
        return;
    }
    if (methods->count == 0) {
        methods->first_is_library =
            cm_is_library(methods->objects, code->co_filename);
    }
    struct cm_code_id id = cm_objects_code(methods->objects, code);
    if (id.index != 0) {
        methods->codes[methods->count++] = id;
    }
}

PyObject *
cm_wrapped_by(const struct cm_objects *self, PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyStaticMethod_Type || type == &PyClassMethod_Type) {
        return cm_member(value, "__func__");
    }
    if (type == &PyProperty_Type) {
        return cm_member(value, "fget");
    }
    if (type->tp_dictoffset == 0 || PyType_Check(value)) {
        return NULL;
    }
    PyObject *wrapped = cm_attribute(self, value, "__wrapped__");
    return wrapped != NULL ? wrapped : cm_attribute(self, value, "func");
}

static void
add_method(struct methods *methods, PyObject *value)
{
    for (int depth = 0; value != NULL && depth < CM_MOST_WRAPPERS; depth++) {
        if (PyFunction_Check(value)) {
            add_function(methods, value);
        }
        else if (Py_TYPE(value) == &PyProperty_Type) {
            PyObject *setter = cm_member(value, "fset");
            if (setter != NULL && PyFunction_Check(setter)) {
                add_function(methods, setter);
            }
        }
        value = cm_wrapped_by(methods->objects, value);
    }
}

static void
add_own_methods(struct methods *methods, PyObject *dict)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t position = 0;
    while (dict != NULL && methods->count < MAX_METHODS
           && PyDict_Next(dict, &position, &key, &value)) {
        add_method(methods, value);
    }
}

static void
add_methods_of(struct methods *methods, PyObject *dict)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t position = 0;
    if (dict == NULL) {
        return;
    }
    while (methods->count < MAX_METHODS
           && PyDict_Next(dict, &position, &key, &value)) {
        /* torch makes the class of a step's ctx from the program's own. */
        if (PyType_Check(value) && cm_str_is(key, "_forward_cls")) {
            add_own_methods(methods, ((PyTypeObject *)value)->tp_dict);
        }
        add_method(methods, value);
    }
}

static void
collect_methods(struct methods *methods, PyTypeObject *type)
{
    PyObject *bases = type->tp_mro;
    Py_ssize_t count =
        bases != NULL && PyTuple_Check(bases) ? PyTuple_GET_SIZE(bases) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *base = PyTuple_GET_ITEM(bases, i);
        if (base != NULL && PyType_Check(base)) {
            add_methods_of(methods, ((PyTypeObject *)base)->tp_dict);
        }
    }
}

/* ---- records */

/* What stands under this name in an imported module; NULL: nothing. */
static PyObject *
of_module(const struct cm_objects *self, struct cm_phrase *name,
          const char *key)
{
    if (name->length >= CM_PHRASE_BYTES) {
        return NULL;
    }
    name->bytes[name->length] = '\0';
    PyObject *module = cm_dict_find(self->modules, name->bytes);
    return module != NULL && PyModule_Check(module)
               ? cm_dict_find(PyModule_GetDict(module), key)
               : NULL;
}

/* Built into the interpreter, as _asyncio is in some; a program's own module
 * that no file has, has no loader either. */
static bool
is_built_in(const struct cm_objects *self, struct cm_phrase *module)
{
    PyObject *loader = of_module(self, module, "__loader__");
    return is_phrase(module, "builtins")
           || (loader != NULL && loader != Py_None);
}

static bool
is_library_type(const struct methods *methods, PyTypeObject *type,
                struct cm_phrase *module)
{
    if (is_phrase(module, "__main__")) {
        return false;
    }
    PyObject *file = of_module(methods->objects, module, "__file__");
    if (file != NULL && PyUnicode_Check(file)) {
        return cm_is_library(methods->objects, file);
    }
    if (methods->count != 0) {
        return methods->first_is_library;
    }
    return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)
           || is_built_in(methods->objects, module);
}

static struct cm_type_id
make_type(struct cm_objects *self, PyTypeObject *type)
{
    struct cm_type_id id = {0};
    struct cm_phrase name, module;
    struct methods *methods = cm_calloc(1, sizeof(*methods));
    if (methods == NULL) {
        return id;
    }
    methods->objects = self;
    collect_methods(methods, type);
    name.length = module.length = 0;
    cm_phrase_add_type(&name, type);
    add_module(&module, type);
    struct cm_type record = {
        .name = cm_phrase_intern(&name, self->texts),
        .module = cm_phrase_intern(&module, self->texts),
        .library = is_library_type(methods, type, &module),
        .unweakable = type->tp_weaklistoffset == 0,
        .methods = methods->codes,
        .method_count = methods->count,
    };
    if (cm_records_add_type(self->records, &record, &id) != CM_OK) {
        id = (struct cm_type_id){0};
    }
    cm_free(methods);
    return id;
}

/* The highest bit keeps these apart from version tags. */
static uint64_t
check_without_tag(struct cm_objects *self, PyTypeObject *type)
{
    struct cm_phrase name;
    name.length = 0;
    cm_phrase_add_type(&name, type);
    uint64_t check = cm_phrase_intern(&name, self->texts).index;
    if (type->tp_dict != NULL) {
        check += (uint64_t)PyDict_GET_SIZE(type->tp_dict) << 32;
    }
    return check | UINT64_C(1) << 63;
}

struct cm_type_id
cm_objects_type(struct cm_objects *self, PyTypeObject *type)
{
    uint64_t check = type->tp_version_tag;
    if (check == 0) {
        check = check_without_tag(self, type);
    }
    const struct cm_address *known = cm_addresses_find(&self->types, type);
    if (known != NULL && known->check == check) {
        return (struct cm_type_id){known->value};
    }
    struct cm_type_id id = make_type(self, type);
    if (id.index != 0) {
        cm_addresses_put(&self->types, type, check, id.index);
    }
    return id;
}

bool
cm_type_has_finalizer(PyTypeObject *type)
{
    PyObject *bases = type->tp_mro;
    if (type->tp_finalize == NULL || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)
        || bases == NULL) {
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(bases, i);
        PyObject *found =
            base == NULL ? NULL : cm_dict_find(base->tp_dict, "__del__");
        if (found != NULL) {
            return Py_TYPE(found) != &PyWrapperDescr_Type;
        }
    }
    return false;
}
