/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* sys.modules["linecache"].cache[filename] is (size, mtime, lines, fullname),
 * or a tuple of one that would have to be called; every object is looked at by
 * its exact type. */

#include <Python.h>

#include "linecache.h"

#include <unistd.h>

#include "../../reports/buffer.h"
#include "../tables/phrase.h"

/* [borrowed; never] */
static PyObject *
item_of(PyObject *dict, const char *name)
{
    PyObject *key = dict != NULL && PyDict_CheckExact(dict)
                        ? PyUnicode_DecodeFSDefault(name)
                        : NULL;
    PyObject *found = key != NULL ? PyDict_GetItemWithError(dict, key) : NULL;
    Py_XDECREF(key);
    PyErr_Clear();
    return found;
}

/* [borrowed; never] NULL: linecache was never imported. */
static PyObject *
find_cache(void)
{
    PyObject *module = item_of(PySys_GetObject("modules"), "linecache");
    return module != NULL && PyModule_Check(module)
               ? item_of(PyModule_GetDict(module), "cache")
               : NULL;
}

static void
copy_lines(struct cm_records *records, struct cm_text_id filename,
           PyObject *lines)
{
    struct cm_buffer text = {.max_bytes = CM_RECORDS_MAX_SOURCE};
    struct cm_phrase line;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lines); i++) {
        line.length = 0;
        cm_phrase_add_str(&line, PyList_GET_ITEM(lines, i),
                          CM_PHRASE_BYTES / 4 - 4);
        cm_buffer_add(&text, line.bytes, line.length);
        if (line.length == 0 || line.bytes[line.length - 1] != '\n') {
            cm_buffer_add_char(&text, '\n');
        }
    }
    if (cm_buffer_status(&text) == CM_OK) {
        const struct cm_source source = {.filename = filename,
                                         .length = (uint32_t)text.length,
                                         .bytes = text.bytes};
        (void)(cm_records_add_source(records, &source) == CM_OK);
    }
    cm_buffer_release(&text);
}

static void
copy_one(struct cm_records *records, const struct cm_code *code,
         PyObject *cache)
{
    enum { LINES = 2 };
    const char *name = cm_records_text(records, code->filename);
    PyObject *entry = code->library ? NULL : item_of(cache, name);
    if (entry != NULL && PyTuple_CheckExact(entry)
        && PyTuple_GET_SIZE(entry) > LINES
        && PyList_CheckExact(PyTuple_GET_ITEM(entry, LINES))
        && access(name, F_OK) != 0) {
        copy_lines(records, code->filename, PyTuple_GET_ITEM(entry, LINES));
    }
}

void
cm_linecache_copy(struct cm_records *records, uint32_t *seen)
{
    uint32_t count = cm_records_code_count(records);
    PyObject *type, *value, *traceback, *cache;
    if (*seen == count) {
        return;
    }
    PyErr_Fetch(&type, &value, &traceback);
    cache = find_cache();
    while (*seen < count) {
        struct cm_code_id id = {++*seen};
        if (cache != NULL) {
            copy_one(records, cm_records_code(records, id), cache);
        }
    }
    PyErr_Restore(type, value, traceback);
}
