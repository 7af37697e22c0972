/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* sys.modules is walked with PyDict_Next, threads with the public calls over
 * thread states, frames with the layout that proofs.c has proved: no look-up
 * with a hash, no frame object made.  With the GIL, no thread state goes away
 * and no frame moves.  O(modules + frames). */

#include "roots.h"

#include "../../detector/alloc.h"
#include "../../graph/holding.h"
#include "../tables/phrase.h"

enum { MOST_FRAMES = 20000, MOST_HANDLED = 1000 };

/* A frame of cumem's own code. */
static bool
is_own_file(const struct cm_objects *objects, PyObject *filename)
{
    const char *folder = objects->library_folders[1];
    struct cm_phrase path;
    path.length = 0;
    if (folder == NULL) {
        return false;
    }
    cm_phrase_add_str(&path, filename, CM_PHRASE_BYTES / 8);
    path.bytes[path.length] = '\0';
    return strncmp(path.bytes, folder, strlen(folder)) == 0;
}

static enum cm_status
add(struct cm_roots *self, const struct cm_root *root)
{
    enum cm_status status = cm_grow((void **)&self->items, &self->capacity,
                                    self->count + 1, sizeof(*self->items));
    if (status == CM_OK) {
        self->items[self->count++] = *root;
    }
    return status;
}

static enum cm_status
add_value(struct cm_roots *self, PyObject *object, struct cm_text_id name,
          const char *edge, enum cm_rank rank)
{
    struct cm_root root = {
        .kind = CM_ROOT_VALUE, .rank = rank, .object = object, .name = name};
    if (object == NULL || object == Py_None) {
        return CM_OK;
    }
    root.edge = cm_texts_intern(self->objects->texts, edge);
    return add(self, &root);
}

/* ---- modules */

static bool
starts_with(const struct cm_phrase *name, const char *text)
{
    size_t length = strlen(text);
    return name->length >= length && memcmp(name->bytes, text, length) == 0
           && (name->length == length || name->bytes[length] == '.');
}

static bool
is_internal(const struct cm_phrase *name)
{
    static const char *const names[] = {
        "cumem",
        "sys",
        "builtins",
        "gc",
        "importlib",
        "_imp",
        "marshal",
        "_frozen_importlib",
        "_frozen_importlib_external",
        "zipimport",
        "linecache",
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++) {
        if (starts_with(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* The str __file__ of a module, or of the package that it is in (some put
 * objects without one in the place of a module); NULL: none. */
static PyObject *
file_of(const struct cm_objects *objects, PyObject *module,
        const struct cm_phrase *name)
{
    PyObject *file = cm_dict_find(PyModule_GetDict(module), "__file__");
    char package[CM_PHRASE_VALUE_CHARS + 1];
    const char *dot = memchr(name->bytes, '.', name->length);
    size_t length = dot == NULL ? 0 : (size_t)(dot - name->bytes);
    if (file == NULL && dot != NULL && length < sizeof(package)) {
        memcpy(package, name->bytes, length);
        package[length] = '\0';
        PyObject *outer = cm_dict_find(objects->modules, package);
        file = outer != NULL && PyModule_Check(outer)
                   ? cm_dict_find(PyModule_GetDict(outer), "__file__")
                   : NULL;
    }
    return file != NULL && PyUnicode_Check(file) ? file : NULL;
}

/* What has neither a file nor a loader was made by hand, or is a notebook. */
static enum cm_rank
rank_of_module(const struct cm_objects *objects, PyObject *module,
               const struct cm_phrase *name)
{
    PyObject *names = PyModule_GetDict(module);
    PyObject *file = file_of(objects, module, name);
    PyObject *loader = cm_dict_find(names, "__loader__");
    if (is_internal(name)) {
        return CM_RANK_INTERNAL;
    }
    if (starts_with(name, "__main__")) {
        return CM_RANK_USER;
    }
    if (file != NULL) {
        return cm_is_library(objects, file) ? CM_RANK_LIBRARY : CM_RANK_USER;
    }
    return loader == NULL || loader == Py_None ? CM_RANK_USER
                                               : CM_RANK_LIBRARY;
}

static enum cm_status
add_module(struct cm_roots *self, PyObject *key, PyObject *module)
{
    struct cm_root root = {.kind = CM_ROOT_MODULE, .object = module};
    struct cm_phrase name, label;
    name.length = label.length = 0;
    cm_phrase_add_str(&name, key, CM_PHRASE_BYTES / 8);
    name.bytes[name.length] = '\0';
    cm_phrase_add(&label, "module ");
    cm_phrase_add(&label, name.bytes);
    root.name = cm_phrase_intern(&label, self->objects->texts);
    if (!PyModule_Check(module)) {
        root.kind = CM_ROOT_VALUE;
        root.rank = CM_RANK_LIBRARY;
        root.edge = cm_texts_intern(self->objects->texts, "sys.modules");
    }
    else {
        root.rank = rank_of_module(self->objects, module, &name);
    }
    return add(self, &root);
}

/* sys.last_value and its like are what a person looks for by these names. */
static enum cm_status
add_last_exceptions(struct cm_roots *self, PyObject *module)
{
    static const char *const names[] = {"last_exc", "last_value",
                                        "last_traceback"};
    struct cm_text_id name =
        cm_texts_intern(self->objects->texts, "module sys");
    enum cm_status status = CM_OK;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names) && status == CM_OK; i++) {
        char edge[32] = ".";
        strcat(edge, names[i]);
        status =
            add_value(self, cm_dict_find(PyModule_GetDict(module), names[i]),
                      name, edge, CM_RANK_USER);
    }
    return status;
}

static enum cm_status
add_modules(struct cm_roots *self)
{
    PyObject *key, *module, *modules = self->objects->modules;
    Py_ssize_t position = 0;
    enum cm_status status = CM_OK;
    if (modules == NULL || !PyDict_Check(modules)) {
        return CM_OK;
    }
    while (status == CM_OK && PyDict_Next(modules, &position, &key, &module)) {
        if (module == Py_None) {
            continue;
        }
        status = add_module(self, key, module);
        if (status == CM_OK && PyModule_Check(module)
            && cm_str_is(key, "sys")) {
            status = add_last_exceptions(self, module);
        }
    }
    return status;
}

/* ---- threads */

/* threading._active[ident]._name, or the number. */
static void
add_thread_name(struct cm_phrase *name, const struct cm_objects *objects,
                const PyThreadState *thread)
{
    PyObject *key, *value, *found = NULL;
    PyObject *module = cm_dict_find(objects->modules, "threading");
    PyObject *active = module != NULL && PyModule_Check(module)
                           ? cm_dict_find(PyModule_GetDict(module), "_active")
                           : NULL;
    Py_ssize_t position = 0;
    while (active != NULL && PyDict_Check(active) && found == NULL
           && PyDict_Next(active, &position, &key, &value)) {
        if (PyLong_CheckExact(key)
            && PyLong_AsUnsignedLongMask(key) == thread->thread_id) {
            found = cm_attribute(objects, value, "_name");
        }
    }
    if (found != NULL && PyUnicode_Check(found)) {
        cm_phrase_add_str(name, found, CM_PHRASE_VALUE_CHARS);
    }
    else {
        cm_phrase_add_number(name, (long long)thread->thread_id);
    }
}

static void
add_file_name(struct cm_phrase *label, PyObject *filename)
{
    struct cm_phrase path;
    path.length = 0;
    cm_phrase_add_str(&path, filename, CM_PHRASE_BYTES / 8);
    path.bytes[path.length] = '\0';
    const char *slash = strrchr(path.bytes, '/');
    cm_phrase_add(label, slash == NULL ? path.bytes : slash + 1);
}

/* "train.py:80 main", and the thread where it is not the main one. */
static struct cm_text_id
frame_label(const struct cm_objects *objects, const struct cm_raw_frame *frame,
            PyCodeObject *code, const char *thread)
{
    struct cm_phrase label;
    label.length = 0;
    Py_ssize_t unit = cm_raw_frame_unit(frame, code);
    int line = PyCode_Addr2Line(code, unit < 0 ? -1 : (int)unit * 2);
    add_file_name(&label, code->co_filename);
    cm_phrase_add(&label, ":");
    cm_phrase_add_number(&label, line > 0 ? line : 0);
    cm_phrase_add(&label, " ");
    cm_phrase_add_str(&label, code->co_qualname, CM_PHRASE_BYTES / 16);
    if (strcmp(thread, "thread MainThread") != 0) {
        cm_phrase_add(&label, ", ");
        cm_phrase_add(&label, thread);
    }
    return cm_phrase_intern(&label, objects->texts);
}

static enum cm_status
add_frame(struct cm_roots *self, const struct cm_raw_frame *frame,
          const char *thread, bool here)
{
    PyCodeObject *code = cm_raw_frame_code(frame);
    struct cm_root root = {.kind = CM_ROOT_FRAME, .frame = frame};
    if (code == NULL || is_own_file(self->objects, code->co_filename)) {
        return CM_OK;
    }
    root.rank = cm_is_library(self->objects, code->co_filename)
                    ? CM_RANK_LIBRARY
                    : CM_RANK_USER;
    root.name = frame_label(self->objects, frame, code, thread);
    root.code = cm_objects_code(self->objects, code);
    enum cm_status status = add(self, &root);
    if (status == CM_OK && here && self->caller == 0) {
        self->caller = self->count;
        self->caller_names = frame->locals;
    }
    root.kind = CM_ROOT_TEMPORARY;
    root.rank = CM_RANK_INTERNAL;
    return status == CM_OK ? add(self, &root) : status;
}

static enum cm_status
add_frames(struct cm_roots *self, PyThreadState *thread, const char *name)
{
    enum cm_status status = CM_OK;
    if (!self->objects->proven.stack || !self->objects->proven.frames) {
        self->frames_unread++;
        return CM_OK;
    }
    const struct cm_raw_frame *frame = cm_raw_frame_first(thread);
    bool here = thread == PyThreadState_Get();
    for (int depth = 0;
         frame != NULL && depth < MOST_FRAMES && status == CM_OK; depth++) {
        status = add_frame(self, frame, name, here);
        frame = cm_raw_frame_next(frame->previous);
    }
    return status;
}

static enum cm_status
add_exceptions(struct cm_roots *self, const PyThreadState *thread,
               struct cm_text_id name)
{
    const _PyErr_StackItem *item = thread->exc_info;
    enum cm_status status = CM_OK;
    for (int depth = 0;
         item != NULL && depth < MOST_HANDLED && status == CM_OK; depth++) {
        status = add_value(self, item->exc_value, name,
                           "the exception being handled", CM_RANK_USER);
        item = item->previous_item;
    }
    return status;
}

static enum cm_status
add_thread(struct cm_roots *self, PyThreadState *thread)
{
    struct cm_phrase label;
    label.length = 0;
    cm_phrase_add(&label, "thread ");
    add_thread_name(&label, self->objects, thread);
    label.bytes[label.length] = '\0';
    struct cm_text_id name = cm_phrase_intern(&label, self->objects->texts);
    enum cm_status status = add_frames(self, thread, label.bytes);
    if (status == CM_OK) {
        status = add_exceptions(self, thread, name);
    }
    if (status == CM_OK) {
        status =
            add_value(self, thread->context, name, "context", CM_RANK_USER);
    }
    if (status == CM_OK) {
        status = add_value(self, thread->dict, name, "thread-local data",
                           CM_RANK_LIBRARY);
    }
    return status;
}

static enum cm_status
add_unmet(struct cm_roots *self, const char *name, enum cm_rank rank)
{
    struct cm_root root = {.kind = CM_ROOT_UNMET, .rank = rank};
    root.name = cm_texts_intern(self->objects->texts, name);
    return add(self, &root);
}

enum cm_status
cm_roots_find(struct cm_roots *self, struct cm_objects *objects)
{
    *self = (struct cm_roots){.objects = objects};
    enum cm_status status = add_modules(self);
    PyThreadState *thread =
        PyInterpreterState_ThreadHead(PyThreadState_Get()->interp);
    for (; thread != NULL && status == CM_OK;
         thread = PyThreadState_Next(thread)) {
        status = add_thread(self, thread);
    }
    if (status == CM_OK) {
        status =
            add_unmet(self,
                      self->frames_unread != 0 ? "C++, or a running function"
                                               : CM_HOLDING_CPP,
                      CM_RANK_C);
    }
    if (status == CM_OK) {
        status = add_unmet(self, CM_HOLDING_DEAD, CM_RANK_DEAD);
    }
    if (status != CM_OK) {
        cm_roots_release(self);
    }
    return status;
}

void
cm_roots_release(struct cm_roots *self)
{
    cm_free(self->items);
    *self = (struct cm_roots){0};
}

/* ---- what a root refers to */

static Py_ssize_t
variable_count(const struct cm_raw_frame *frame)
{
    const PyCodeObject *code = cm_raw_frame_code(frame);
    return code == NULL ? 0 : code->co_nlocalsplus;
}

/* References on the frame's own stack, above its variables; none while it is
 * the one that runs (its stack is not written down then). */
static void
visit_temporaries(const struct cm_raw_frame *frame, visitproc visit,
                  void *context)
{
    Py_ssize_t count = variable_count(frame);
#if PY_VERSION_HEX < 0x030E0000
    Py_ssize_t used = frame->stack_top;
#else
    Py_ssize_t used = frame->stack_pointer == NULL
                          ? -1
                          : frame->stack_pointer - frame->slots;
#endif
    const PyCodeObject *code = cm_raw_frame_code(frame);
    if (code == NULL || used > count + code->co_stacksize) {
        return;
    }
    for (Py_ssize_t i = count; i < used; i++) {
        PyObject *object = cm_stack_ref_object(frame->slots[i]);
        bool number =
            PY_VERSION_HEX >= 0x030E0000 && (frame->slots[i] & 3) == 3;
        if (object != NULL && !number) {
            (void)visit(object, context);
        }
    }
}

/* The function itself, but where the module has it by its name. */
static PyObject *
function_of(const struct cm_raw_frame *frame)
{
    PyObject *function = cm_stack_ref_object((cm_stack_ref)frame->function);
    struct cm_phrase name;
    if (function == NULL || !PyFunction_Check(function)
        || frame->globals == NULL || !PyDict_Check(frame->globals)) {
        return function;
    }
    name.length = 0;
    cm_phrase_add_str(&name, ((PyFunctionObject *)function)->func_qualname,
                      CM_PHRASE_BYTES / 8);
    name.bytes[name.length] = '\0';
    return cm_dict_find(frame->globals, name.bytes) == function ? NULL
                                                                : function;
}

static void
visit_variables(const struct cm_raw_frame *frame, visitproc visit,
                void *context)
{
    for (Py_ssize_t i = 0; i < variable_count(frame); i++) {
        PyObject *object = cm_stack_ref_object(frame->slots[i]);
        if (object != NULL) {
            (void)visit(object, context);
        }
    }
    PyObject *others[] = {frame->locals, frame->globals, function_of(frame)};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(others); i++) {
        if (others[i] != NULL) {
            (void)visit(others[i], context);
        }
    }
}

void
cm_root_visit(const struct cm_root *self, visitproc visit, void *context)
{
    switch (self->kind) {
    case CM_ROOT_FRAME: visit_variables(self->frame, visit, context); break;
    case CM_ROOT_TEMPORARY:
        visit_temporaries(self->frame, visit, context);
        break;
    case CM_ROOT_MODULE:
    case CM_ROOT_VALUE: (void)visit(self->object, context); break;
    case CM_ROOT_UNMET: break;
    }
}

PyObject *
cm_root_variable(const struct cm_root *self, PyObject *referent,
                 Py_ssize_t *at)
{
    const PyCodeObject *code = cm_raw_frame_code(self->frame);
    while (*at < variable_count(self->frame)) {
        Py_ssize_t i = (*at)++;
        if (cm_stack_ref_object(self->frame->slots[i]) == referent) {
            return PyTuple_GET_ITEM(code->co_localsplusnames, i);
        }
    }
    return NULL;
}

struct cm_text_id
cm_root_edge(const struct cm_roots *self, const struct cm_root *root,
             PyObject *referent, enum cm_role *role)
{
    struct cm_texts *texts = self->objects->texts;
    *role = CM_REFERENCE;
    if (root->kind != CM_ROOT_FRAME && root->kind != CM_ROOT_TEMPORARY) {
        return root->edge;
    }
    if (root->kind == CM_ROOT_TEMPORARY) {
        return cm_texts_intern(texts, "a value in use");
    }
    Py_ssize_t first = 0;
    PyObject *name = cm_root_variable(root, referent, &first);
    if (name != NULL) {
        struct cm_phrase label;
        label.length = 0;
        cm_phrase_add(&label, "local ");
        cm_phrase_add_str(&label, name, CM_PHRASE_BYTES / 8);
        *role = CM_LOCAL;
        return cm_phrase_intern(&label, texts);
    }
    return cm_texts_intern(texts, referent == root->frame->locals ? "f_locals"
                                  : referent == root->frame->globals
                                      ? "f_globals"
                                      : "f_func");
}

/* ---- whose a class is */

static PyObject *
module_of(PyTypeObject *type)
{
    PyObject *module = cm_dict_find(type->tp_dict, "__module__");
    return module != NULL && PyUnicode_CheckExact(module) ? module : NULL;
}

PyObject *
cm_roots_module(const struct cm_roots *self, const char *name)
{
    static const char kind[] = "module ";
    for (size_t i = 0; i < self->count; i++) {
        const struct cm_root *root = &self->items[i];
        const char *text = cm_texts_get(self->objects->texts, root->name);
        if (root->kind == CM_ROOT_MODULE
            && strncmp(text, kind, sizeof kind - 1) == 0
            && strcmp(text + sizeof kind - 1, name) == 0) {
            return root->object;
        }
    }
    return NULL;
}

bool
cm_roots_own_type(const struct cm_roots *self, PyTypeObject *type)
{
    struct cm_phrase name;
    PyObject *module = module_of(type);
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || module == NULL) {
        return false;
    }
    name.length = 0;
    cm_phrase_add(&name, "module ");
    cm_phrase_add_str(&name, module, CM_PHRASE_BYTES / 8);
    struct cm_text_id id = cm_phrase_intern(&name, self->objects->texts);
    for (size_t i = 0; i < self->count; i++) {
        if (self->items[i].rank == CM_RANK_USER
            && self->items[i].kind == CM_ROOT_MODULE
            && cm_text_same(self->items[i].name, id)) {
            return true;
        }
    }
    return false;
}
