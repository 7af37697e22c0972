/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What an object is, in a word and in a label.  Subclasses that were made in
 * C (OrderedDict, defaultdict) are the containers they look like; those made
 * in Python are objects of the user's.  Cost: about 100 ns, most of it the
 * interning of the label. */

#include "objects_private.h"

#include <string.h>

#include "../tables/phrase.h"

enum { NAME_CHARS = 200, MAX_BOUND = 8 };

static bool
is_made_in_c(const PyTypeObject *type)
{
    return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)
           || (type->tp_name != NULL && strchr(type->tp_name, '.') != NULL);
}

static enum cm_species
container_species(PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    if (!is_made_in_c(type)) {
        return CM_OBJECT;
    }
#if PY_VERSION_HEX >= 0x030F0000
    if (type == &PyFrozenDict_Type) {
        return CM_DICT;
    }
#endif
    return PyDict_Check(object)     ? CM_DICT
           : PyList_Check(object)   ? CM_LIST
           : PyTuple_Check(object)  ? CM_TUPLE
           : PyAnySet_Check(object) ? CM_SET
                                    : CM_OBJECT;
}

static const struct {
    PyTypeObject *type;
    enum cm_species species;
} exact_species[] = {
    {&PyDict_Type, CM_DICT},
    {&PyList_Type, CM_LIST},
    {&PyTuple_Type, CM_TUPLE},
    {&PySet_Type, CM_SET},
    {&PyFrozenSet_Type, CM_SET},
    {&PyFunction_Type, CM_FUNCTION},
    {&PyMethod_Type, CM_BOUND_METHOD},
    {&PyCFunction_Type, CM_BUILTIN_METHOD},
    {&PyCMethod_Type, CM_BUILTIN_METHOD},
    {&PyCell_Type, CM_CELL},
    {&PyFrame_Type, CM_FRAME},
    {&PyTraceBack_Type, CM_TRACEBACK},
    {&PyGen_Type, CM_GENERATOR},
    {&PyCoro_Type, CM_COROUTINE},
    {&PyAsyncGen_Type, CM_ASYNC_GENERATOR},
};

static enum cm_species
find_species(const struct cm_objects *self, PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    for (size_t i = 0; i < Py_ARRAY_LENGTH(exact_species); i++) {
        if (exact_species[i].type == type) {
            return exact_species[i].species;
        }
    }
    return PyType_Check(object)                ? CM_TYPE
           : PyExceptionInstance_Check(object) ? CM_EXCEPTION
           : PyModule_Check(object)            ? CM_MODULE
           : PyWeakref_Check(object)           ? CM_WEAKREF
           : self->partial != NULL && PyObject_TypeCheck(object, self->partial)
               ? CM_PARTIAL
               : container_species(object);
}

static enum cm_species
species_of(struct cm_objects *self, PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    struct cm_kind *kind = &self->kinds[((uintptr_t)type >> 5) % CM_KINDS];
    if (kind->type != type || kind->tag != type->tp_version_tag
        || kind->tag == 0) {
        *kind = (struct cm_kind){type, type->tp_version_tag,
                                 find_species(self, object)};
    }
    return kind->species;
}

/* ---- labels */

static void
add_counted(struct cm_phrase *label, const char *what, Py_ssize_t count)
{
    cm_phrase_add(label, what);
    cm_phrase_add(label, " of ");
    cm_phrase_add_number(label, count);
}

static bool
add_container(struct cm_phrase *label, PyObject *object)
{
    if (PyDict_CheckExact(object)) {
        add_counted(label, "dict", PyDict_GET_SIZE(object));
    }
    else if (PyList_CheckExact(object)) {
        add_counted(label, "list", PyList_GET_SIZE(object));
    }
    else if (PyTuple_CheckExact(object)) {
        add_counted(label, "tuple", PyTuple_GET_SIZE(object));
    }
    else if (PyAnySet_CheckExact(object)) {
        add_counted(label,
                    Py_TYPE(object) == &PySet_Type ? "set" : "frozenset",
                    PySet_GET_SIZE(object));
    }
    else {
        return false;
    }
    return true;
}

static void
add_function_name(struct cm_phrase *label, PyObject *object)
{
    if (object != NULL && PyFunction_Check(object)) {
        cm_phrase_add_str(label, ((PyFunctionObject *)object)->func_name,
                          NAME_CHARS);
    }
    else if (object != NULL && PyCFunction_Check(object)
             && ((PyCFunctionObject *)object)->m_ml != NULL) {
        cm_phrase_add(label, ((PyCFunctionObject *)object)->m_ml->ml_name);
    }
    else {
        cm_phrase_add(label, "?");
    }
}

static void
add_builtin(struct cm_phrase *label, PyObject *object)
{
    PyObject *self = ((PyCFunctionObject *)object)->m_self;
    bool is_function = self == NULL || PyModule_Check(self);
    cm_phrase_add(label, is_function ? "function " : "method ");
    add_function_name(label, object);
}

static void
add_frame(struct cm_phrase *label, PyCodeObject *code, uint32_t line)
{
    cm_phrase_add(label, "frame");
    if (code == NULL) {
        return;
    }
    struct cm_phrase path;
    path.length = 0;
    cm_phrase_add_str(&path, code->co_filename, CM_PHRASE_BYTES / 8);
    path.bytes[path.length] = '\0';
    const char *slash = strrchr(path.bytes, '/');
    cm_phrase_add(label, " ");
    cm_phrase_add(label, slash == NULL ? path.bytes : slash + 1);
    cm_phrase_add(label, ":");
    cm_phrase_add_number(label, line);
    cm_phrase_add(label, " in ");
    cm_phrase_add_str(label, code->co_name, NAME_CHARS);
}

static void
add_generator(struct cm_phrase *label, const struct cm_objects *self,
              PyObject *object, enum cm_species species)
{
    cm_phrase_add(label, species == CM_GENERATOR   ? "generator "
                         : species == CM_COROUTINE ? "coroutine "
                                                   : "async generator ");
    if (self->proven.generators) {
        cm_phrase_add_str(label, ((struct cm_generator *)object)->name,
                          NAME_CHARS);
    }
    else {
        cm_phrase_add(label, "?");
    }
}

static void
add_type_label(struct cm_phrase *label, PyObject *object)
{
    const PyTypeObject *type = (const PyTypeObject *)object;
    cm_phrase_add(label, "class ");
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        cm_phrase_add_str(label, ((PyHeapTypeObject *)object)->ht_qualname,
                          NAME_CHARS);
    }
    else {
        cm_phrase_add_type(label, (PyTypeObject *)object);
    }
}

static void
add_module_label(struct cm_phrase *label, PyObject *object)
{
    PyObject *name = cm_dict_find(PyModule_GetDict(object), "__name__");
    cm_phrase_add(label, "module ");
    cm_phrase_add_str(label, name, NAME_CHARS);
}

/* What a method is bound to may be a method again (types.MethodType). */
static PyObject *
function_of_method(PyObject *object)
{
    for (int depth = 0; depth < MAX_BOUND && object != NULL
                        && Py_TYPE(object) == &PyMethod_Type;
         depth++) {
        object = ((PyMethodObject *)object)->im_func;
    }
    return object;
}

static struct cm_text_id
label_of(struct cm_objects *self, PyObject *object, const struct cm_node *node)
{
    struct cm_phrase label;
    label.length = 0;
    switch ((enum cm_species)node->species) {
    case CM_FUNCTION:
        cm_phrase_add(&label, "function ");
        add_function_name(&label, object);
        break;
    case CM_BOUND_METHOD:
        cm_phrase_add(&label, "method ");
        add_function_name(&label, function_of_method(object));
        break;
    case CM_BUILTIN_METHOD: add_builtin(&label, object); break;
    case CM_CELL: cm_phrase_add(&label, "cell"); break;
    case CM_TRACEBACK: cm_phrase_add(&label, "traceback"); break;
    case CM_FRAME:
        add_frame(&label, cm_frame_code(self, object), node->line);
        break;
    case CM_GENERATOR:
    case CM_COROUTINE:
    case CM_ASYNC_GENERATOR:
        add_generator(&label, self, object, node->species);
        break;
    case CM_TYPE: add_type_label(&label, object); break;
    case CM_MODULE: add_module_label(&label, object); break;
    default:
        if (!add_container(&label, object)
            && !cm_phrase_add_value(&label, object, self->texts_shown)) {
            return cm_records_type(self->records, node->type)->name;
        }
    }
    return cm_phrase_intern(&label, self->texts);
}

/* ---- the rest of a node */

static PyCodeObject *
code_of(const struct cm_objects *self, PyObject *object,
        enum cm_species species)
{
    switch (species) {
    case CM_FUNCTION:
    case CM_BOUND_METHOD: return cm_function_code(function_of_method(object));
    case CM_FRAME:
    case CM_GENERATOR:
    case CM_COROUTINE:
    case CM_ASYNC_GENERATOR: return cm_frame_code(self, object);
    case CM_TRACEBACK: {
        PyObject *frame = (PyObject *)((PyTracebackObject *)object)->tb_frame;
        return frame == NULL ? NULL : cm_frame_code(self, frame);
    }
    default: return NULL;
    }
}

static uint32_t
line_of(const struct cm_objects *self, PyObject *object,
        const PyCodeObject *code, enum cm_species species)
{
    if (species == CM_TRACEBACK && code != NULL) {
        const PyTracebackObject *traceback = (PyTracebackObject *)object;
        int line = traceback->tb_lineno;
        if (line <= 0 && traceback->tb_lasti >= 0) {
            line = PyCode_Addr2Line((PyCodeObject *)code, traceback->tb_lasti);
        }
        return line > 0 ? (uint32_t)line : 0;
    }
    if (species == CM_FUNCTION) {
        return code != NULL && code->co_firstlineno > 0
                   ? (uint32_t)code->co_firstlineno
                   : 0;
    }
    return species == CM_FRAME || cm_is_generator(Py_TYPE(object))
               ? cm_frame_line(self, object)
               : 0;
}

/* The object's own block, roughly: nothing is asked. */
static uint64_t
host_bytes(PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    uint64_t bytes = (uint64_t)type->tp_basicsize;
    if (PyList_Check(object)) {
        bytes +=
            (uint64_t)((PyListObject *)object)->allocated * sizeof(PyObject *);
    }
    else if (PyDict_Check(object)) {
        bytes += (uint64_t)PyDict_GET_SIZE(object) * 3 * sizeof(PyObject *);
    }
    else if (PyAnySet_Check(object)) {
        bytes +=
            ((uint64_t)((PySetObject *)object)->mask + 1) * sizeof(setentry);
    }
    else if (PyTuple_Check(object)) {
        bytes += (uint64_t)PyTuple_GET_SIZE(object) * sizeof(PyObject *);
    }
    return bytes + (PyObject_IS_GC(object) ? 2 * sizeof(void *) : 0);
}

void
cm_objects_describe(struct cm_objects *self, PyObject *object,
                    struct cm_node *node)
{
    enum cm_species species = species_of(self, object);
    node->species = (uint8_t)species;
    node->type = cm_objects_type(self, Py_TYPE(object));
    PyCodeObject *code = code_of(self, object, species);
    if (code != NULL) {
        node->code = cm_objects_code(self, code);
    }
    node->line = line_of(self, object, code, species);
    node->label = label_of(self, object, node);
    node->has_finalizer = cm_type_has_finalizer(Py_TYPE(object));
    node->bytes = host_bytes(object);
}
