/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LAYOUT_H
#define CM_LAYOUT_H

/* CPython's private structures, as far as we read them, by version: 3.11 to
 * 3.15 with the GIL.  They were the same in every patch release of a minor
 * version when this was written; nothing here is used before proofs.c has
 * seen it give the right answers in this process.
 *
 * From CPython's Include/internal: pycore_frame.h, pycore_interpframe_structs.h,
 * pycore_dict.h, pycore_object.h, and Objects/genobject.c. */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

/* A test builds with 0, to see the public calls serve. */
#ifndef CM_LAYOUT_KNOWN
#if defined(Py_GIL_DISABLED) || PY_VERSION_HEX >= 0x03100000
#define CM_LAYOUT_KNOWN 0
#else
#define CM_LAYOUT_KNOWN 1
#endif
#endif

enum {
    CM_OWNED_BY_GENERATOR = 1,
    CM_OWNED_BY_FRAME_OBJECT = 2,
    CM_OWNED_BY_NO_CODE = 3, /* and above: entries from C */
};

/* A reference in a frame; since 3.14 its low bits are flags. */
typedef uintptr_t cm_stack_ref;

static inline PyObject *
cm_stack_ref_object(cm_stack_ref reference)
{
#if PY_VERSION_HEX < 0x030E0000
    return (PyObject *)reference;
#else
    return (PyObject *)(reference & ~(uintptr_t)3);
#endif
}

/* _PyInterpreterFrame */
struct cm_raw_frame {
#if PY_VERSION_HEX < 0x030C0000
    PyObject *function;
    PyObject *globals, *builtins, *locals;
    cm_stack_ref code;
    PyObject *frame_object;
    struct cm_raw_frame *previous;
    const uint8_t *instruction;
    int stack_top;
    bool is_entry;
    char owner;
#elif PY_VERSION_HEX < 0x030E0000
    cm_stack_ref code;
    struct cm_raw_frame *previous;
    PyObject *function;
    PyObject *globals, *builtins, *locals;
    PyObject *frame_object;
    const uint8_t *instruction;
    int stack_top;
    uint16_t return_offset;
    char owner;
#else
    cm_stack_ref code;
    struct cm_raw_frame *previous;
    cm_stack_ref function;
    PyObject *globals, *builtins, *locals;
    PyObject *frame_object;
    const uint8_t *instruction;
    cm_stack_ref *stack_pointer;
    uint16_t return_offset;
    char owner;
    uint8_t visited;
#endif
    cm_stack_ref
        slots[1]; /* locals, cells, free variables; then temporaries */
};

/* PyFrameObject */
struct cm_frame_object {
    PyObject_HEAD
    PyObject *back;
    struct cm_raw_frame *raw;
    PyObject *trace;
};

/* PyGenObject, PyCoroObject, PyAsyncGenObject */
struct cm_generator {
    PyObject_HEAD
#if PY_VERSION_HEX < 0x030C0000
    PyObject *code;
#endif
    PyObject *weak_references;
    PyObject *name;
    PyObject *qualified_name;
    PyObject *exception;
    void *previous_exception;
    PyObject *origin_or_finalizer;
    char hooks_inited, closed, running_async;
    int8_t frame_state;
    struct cm_raw_frame raw;
};

#if PY_VERSION_HEX < 0x030F0000
enum { CM_FRAME_CLEARED = 4 };
#else
enum { CM_FRAME_CLEARED = 5 };
#endif

/* PyDictKeysObject of a class: keys only, the values are with the instances. */
struct cm_shared_keys {
    Py_ssize_t references;
    uint8_t log2_size, log2_index_bytes, kind;
    uint32_t version;
    Py_ssize_t usable, count;
    char indices[]; /* then the entries */
};

enum { CM_KEYS_GENERAL = 0, CM_KEYS_UNICODE = 1, CM_KEYS_SPLIT = 2 };

struct cm_shared_key {
    PyObject *key;
    PyObject *unused;
};

static inline const struct cm_shared_key *
cm_shared_keys_entries(const struct cm_shared_keys *keys)
{
    size_t indices = (size_t)1 << keys->log2_index_bytes;
    return (const struct cm_shared_key *)(const void *)(keys->indices
                                                        + indices);
}

/* PyDictValues since 3.13; before, only the array. */
struct cm_inline_values {
    uint8_t capacity, size, embedded, valid;
    PyObject *values[1];
};

/* NULL for a frame that runs no Python code. */
static inline PyCodeObject *
cm_raw_frame_code(const struct cm_raw_frame *frame)
{
    PyObject *code = cm_stack_ref_object(frame->code);
    return code != NULL && PyCode_Check(code) ? (PyCodeObject *)code : NULL;
}

/* Index of the instruction, in code units; below 0 before the first. */
static inline Py_ssize_t
cm_raw_frame_unit(const struct cm_raw_frame *frame, const PyCodeObject *code)
{
    return (frame->instruction - (const uint8_t *)code->co_code_adaptive) / 2;
}

#endif
