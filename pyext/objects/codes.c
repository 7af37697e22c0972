/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Code objects are copied at first sight, because they may be gone when the
 * report is made.  A cache by address finds the copy again; its check
 * notices when another code object has moved in.  Works without the GIL for
 * code of this thread's own frames.  Cost: 20 ns when known (on 3.11 more,
 * with each name in it), some microseconds when new. */

#include "objects_private.h"

#include <string.h>

#include "../../detector/alloc.h"
#include "../code/sieve.h"
#include "../tables/phrase.h"

static bool
contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* torch.compile() names what it writes after a hash: .../ab/cabz....py, in a
 * folder that the user may choose; what dynamo makes has no file. */
static bool
is_compiled(const char *path)
{
    enum { HASH = 52 };
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    return strncmp(path, "<eval_with_key>", 15) == 0
           || (slash != NULL && slash - path > 3 && slash[-3] == '/'
               && strncmp(slash - 2, name + 1, 2) == 0 && name[0] == 'c'
               && strspn(name, "abcdefghijklmnopqrstuvwxyz234567") == HASH
               && strcmp(name + HASH, ".py") == 0);
}

static bool
is_library_path(const struct cm_objects *self, const char *path)
{
    for (size_t i = 0; i < self->library_count; i++) {
        const char *folder = self->library_folders[i];
        if (folder != NULL && strncmp(path, folder, strlen(folder)) == 0) {
            return true;
        }
    }
    return contains(path, "/site-packages/")
           || contains(path, "/dist-packages/")
           || strncmp(path, "<frozen", 7) == 0 || is_compiled(path);
}

bool
cm_is_library(const struct cm_objects *self, PyObject *filename)
{
    struct cm_phrase path;
    path.length = 0;
    cm_phrase_add_str(&path, filename, CM_PHRASE_BYTES - 4);
    if (path.length == CM_PHRASE_BYTES) {
        return false;
    }
    path.bytes[path.length] = '\0';
    return is_library_path(self, path.bytes);
}

static struct cm_text_id
intern_str(const struct cm_objects *self, PyObject *string)
{
    struct cm_phrase phrase;
    phrase.length = 0;
    cm_phrase_add_str(&phrase, string, CM_PHRASE_BYTES - 4);
    return cm_phrase_intern(&phrase, self->texts);
}

/* A comprehension: code of its own (of lists up to 3.11), but written by who
 * makes it.  Its variables are no locals of who makes it. */
static uint32_t
add_comprehension(const struct cm_objects *self, const PyCodeObject *code,
                  struct cm_store *stores, uint32_t count)
{
    uint32_t end =
        count
        + cm_bytecode_stores(&self->bytecode, code, false, self->texts,
                             stores + count, CM_MAX_STORES - count);
    uint32_t kept = count;
    for (uint32_t i = count; i < end; i++) {
        if (stores[i].kind != CM_STORE_LOCAL) {
            stores[kept++] = stores[i];
        }
    }
    return kept;
}

/* Of the code and of the comprehensions in it. */
static uint32_t
list_stores(const struct cm_objects *self, const PyCodeObject *code, bool own,
            struct cm_store *stores)
{
    PyObject *constants = code->co_consts;
    uint32_t count = cm_bytecode_stores(&self->bytecode, code, own,
                                        self->texts, stores, CM_MAX_STORES);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        PyObject *constant = PyTuple_GET_ITEM(constants, i);
        if (cm_sieve_is_comprehension(constant)) {
            count = add_comprehension(self, (PyCodeObject *)constant, stores,
                                      count);
        }
    }
    return count;
}

static struct cm_code_id
make_code(struct cm_objects *self, PyCodeObject *code)
{
    struct cm_code_id id = {0};
    size_t bytes = CM_MAX_STORES * sizeof(struct cm_store);
    struct cm_store *stores = cm_alloc(bytes);
    struct cm_code record = {
        .filename = intern_str(self, code->co_filename),
        .name = intern_str(self, code->co_name),
        .qualified_name = intern_str(self, code->co_qualname),
        .first_line =
            code->co_firstlineno > 0 ? (uint32_t)code->co_firstlineno : 0,
        .library = cm_is_library(self, code->co_filename),
        .stores = stores,
    };
    if (stores != NULL) {
        record.store_count = list_stores(self, code, !record.library, stores);
    }
    if (cm_records_add_code(self->records, &record, &id) != CM_OK) {
        id = (struct cm_code_id){0};
    }
    cm_free(stores);
    return id;
}

#if PY_VERSION_HEX < 0x030C0000
static uint64_t
mix_texts(uint64_t check, const PyObject *tuple)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        const PyObject *text = PyTuple_GET_ITEM(tuple, i);
        if (PyUnicode_CheckExact(text)) {
            check = (check ^ check >> 32) * UINT64_C(0xBF58476D1CE4E5B9)
                    + cm_str_end(text);
        }
    }
    return check;
}
#endif

/* Differs also for code that is written at run time under one file name, whose
 * parts may all lie where those of the last one lay: by the texts it uses.
 * From 3.12 on cm_code_check() has a version. */
static uint64_t
full_check(const PyCodeObject *code)
{
    uint64_t check = cm_code_check(code);
#if PY_VERSION_HEX < 0x030C0000
    check = mix_texts(check + cm_str_end(code->co_qualname), code->co_names);
    check = mix_texts(check, code->co_localsplusnames);
    check = mix_texts(check, code->co_consts);
#endif
    return check;
}

struct cm_code_id
cm_objects_code(struct cm_objects *self, PyCodeObject *code)
{
    uint64_t check = full_check(code);
    struct cm_code_id id = {0};
    cm_lock_take(&self->lock);
    const struct cm_address *known = cm_addresses_find(&self->codes, code);
    bool found = known != NULL && known->check == check;
    if (found) {
        id.index = known->value;
    }
    cm_lock_give(&self->lock);
    if (!found) {
        id = make_code(self, code);
        if (id.index != 0) {
            cm_lock_take(&self->lock);
            cm_addresses_put(&self->codes, code, check, id.index);
            cm_lock_give(&self->lock);
        }
    }
    return id;
}

/* "Net" of "Net.scale", "outer" of "outer.<locals>.inner". */
static struct cm_text_id
name_of_maker(struct cm_objects *self, struct cm_text_id made)
{
    static const char locals[] = ".<locals>";
    const char *name = cm_texts_get(self->texts, made);
    const char *dot = strrchr(name, '.');
    size_t length = dot == NULL ? 0 : (size_t)(dot - name);
    size_t more = sizeof(locals) - 1;
    if (length > more && strncmp(dot - more, locals, more) == 0) {
        length -= more;
    }
    struct cm_text_id id = cm_texts_intern(self->texts, "<module>");
    if (length != 0 && cm_texts_add(self->texts, name, length, &id) != CM_OK) {
        id = (struct cm_text_id){0};
    }
    return id;
}

struct cm_code_id
cm_objects_maker(struct cm_objects *self, PyCodeObject *code)
{
    struct cm_code_id id = {0};
    struct cm_store store = {
        .kind = CM_STORE_FUNCTION,
        .name = intern_str(self, code->co_qualname),
        .line = code->co_firstlineno > 0 ? (uint32_t)code->co_firstlineno : 0};
    struct cm_text_id name = name_of_maker(self, store.name);
    struct cm_code record = {
        .filename = intern_str(self, code->co_filename),
        .name = name,
        .qualified_name = name,
        .library = cm_is_library(self, code->co_filename),
        .stores = &store,
        .store_count = 1,
    };
    return cm_records_add_code(self->records, &record, &id) == CM_OK
               ? id
               : (struct cm_code_id){0};
}

/* ---- stacks that somebody else took */

enum { MOST_TOLD = 256 };

/* (filename, line, name); false raises. */
static bool
read_frame(struct cm_objects *self, PyObject *told, struct cm_frame *frame)
{
    PyObject *filename, *name;
    long long line;
    if (!PyTuple_CheckExact(told)
        || !PyArg_ParseTuple(told, "ULU", &filename, &line, &name)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a frame is no tuple");
        }
        return false;
    }
    struct cm_code code = {
        .filename = intern_str(self, filename),
        .name = intern_str(self, name),
        .qualified_name = intern_str(self, name),
        .library = cm_is_library(self, filename),
    };
    frame->line = line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
    if (cm_records_add_code(self->records, &code, &frame->code) != CM_OK) {
        frame->code.index = 0;
    }
    return true;
}

PyObject *
cm_objects_told_stack(struct cm_objects *self, PyObject *told)
{
    struct cm_frame frames[MOST_TOLD];
    struct cm_site_id id = {0};
    if (!PyList_CheckExact(told)) {
        PyErr_SetString(PyExc_TypeError, "a list of frames was expected");
        return NULL;
    }
    struct cm_site site = {.frames = frames};
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(told); i++) {
        site.cut = site.frame_count == MOST_TOLD;
        if (site.cut) {
            break;
        }
        if (!read_frame(self, PyList_GET_ITEM(told, i),
                        &frames[site.frame_count++])) {
            return NULL;
        }
    }
    if (site.frame_count == 0
        || cm_records_add_site(self->records, &site, &id) != CM_OK) {
        id.index = 0;
    }
    return PyLong_FromUnsignedLong(id.index);
}
