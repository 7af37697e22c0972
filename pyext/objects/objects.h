/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_OBJECTS_H
#define CM_OBJECTS_H

/* Reading Python objects without running any code of theirs: what an object
 * is (describe.c), what its references are called (edges.c, attributes.c,
 * frames.c), what its code and type remember (codes.c, types.c), and where
 * this thread is (stack.c).
 *
 * What holds for all: by exact types and C structures only; no attribute
 * getter, no repr, no hash or comparison of a user's object; no GC object is
 * allocated and no reference count changes where a collection can see it;
 * never raises and never leaves an exception set; NULL in a slot is legal
 * (half-built objects).  Struct layouts are read by version, proved when
 * cm_objects_new() runs, and given up for public API or "unnamed" otherwise;
 * cm_objects_status() says which way is in use and why.
 *
 * Guarded by the GIL of the interpreter it was made in, except for
 * cm_objects_stack and its like, which need none. */

#include <Python.h>

#include "../../detector/heap.h"
#include "../../detector/records.h"

struct cm_objects;

/* [borrowed] NULL: it is no function of Python's, or has none. */
static inline PyCodeObject *
cm_function_code(PyObject *object)
{
    PyObject *code = object != NULL && PyFunction_Check(object)
                         ? PyFunction_GET_CODE(object)
                         : NULL;
    return code != NULL && PyCode_Check(code) ? (PyCodeObject *)code : NULL;
}

/* [borrowed; never] What a class's or a module's attribute wraps: of static and
 * class methods, properties, functools.wraps() and functools.cached_property;
 * else NULL. */
PyObject *cm_wrapped_by(const struct cm_objects *self, PyObject *value);
/* So many decorators, one around the other, are looked through. */
enum { CM_MOST_WRAPPERS = 8 };

/* `records` is borrowed and outlives the result.  NULL: no memory.  Runs the
 * layout proofs (small functions and classes of our own; no collection). */
struct cm_objects *cm_objects_new(struct cm_records *records);
/* Whether labels have texts that are no names, too (CUMEM_VALUES); at first
 * not.  Labels that were made stay. */
void cm_objects_show_texts(struct cm_objects *self, bool shown);
void cm_objects_free(struct cm_objects *self);

struct cm_objects_status {
    const char *stack;      /* "struct layout", or "public API: <why>" */
    const char *attributes; /* "struct layout", or "dict only: <why>" */
    const char *frames;     /* "struct layout", or "unnamed: <why>" */
    uint64_t unnamed_edges; /* references found by traverse without a name */
    uint64_t known_stacks;  /* in the table of stacks */
    uint64_t lost_stacks;   /* calls of cm_objects_stack that a bound, memory
                             * or a missing GIL left without an answer */
};
void cm_objects_status(const struct cm_objects *self,
                       struct cm_objects_status *result);

/* Fills species, label, type, code, line, has_finalizer and, for what is not
 * device-backed, bytes (host).  Labels follow INTERFACES.md section 5.  The
 * caller fills the rest (address, storage, site). */
void cm_objects_describe(struct cm_objects *self, PyObject *object,
                         struct cm_node *node);

/* Before the edges of a set of objects are asked for: learns the names of
 * free variables from its functions, generators and frames, so that closure
 * tuples and cells have names.  Forgotten at the next call.  May be skipped. */
void cm_objects_begin(struct cm_objects *self, PyObject *const *objects,
                      size_t count);

typedef void cm_edge_visitor(void *context, PyObject *referent,
                             struct cm_text_id label, enum cm_role role);
/* Only references to which `wanted` answers true are named and visited: each
 * as often as tp_traverse shows it.  References that traverse does not show
 * (untracked referents of containers included by traverse anyway) are not
 * visited. */
void cm_objects_edges(struct cm_objects *self, PyObject *object,
                      int (*wanted)(void *context, PyObject *referent),
                      cm_edge_visitor *visit, void *context);

/* Records are made at first sight and found by address and a check afterwards
 * (addresses of dead code and types are reused).  Id 0 on failure. */
struct cm_code_id cm_objects_code(struct cm_objects *self, PyCodeObject *code);
/* The code that made a function of this code, as far as that tells: class
 * bodies and the code of imported modules are gone once they have run.  It has
 * one store: the function's, at the line of its first decorator. */
struct cm_code_id cm_objects_maker(struct cm_objects *self,
                                   PyCodeObject *code);
struct cm_type_id cm_objects_type(struct cm_objects *self, PyTypeObject *type);

/* As deep as those of a job are. */
enum { CM_STACK_FRAMES = 64 };

/* This thread's Python stack, at most CM_STACK_FRAMES deep, innermost first;
 * where none of these is the user's, the user's first one further out is last.
 * On any thread, with or without the GIL; without it the answer is id 0 where
 * the stack's layout is not proven.
 * Hot path: 1 or 2 ns a frame when the stack was seen before. */
struct cm_site_id cm_objects_stack(struct cm_objects *self);
/* The same where memory of a tensor's was allocated, and, with the GIL, where a
 * tensor was made: the first is remembered for the second (stack_path.h). */
struct cm_site_id cm_objects_memory_stack(struct cm_objects *self);
struct cm_site_id cm_objects_tensor_stack(struct cm_objects *self);
/* Whether somebody asks for the second; at first nobody does. */
void cm_objects_note_memory(struct cm_objects *self, bool noted);
/* This thread's innermost frame, which is not to be read: while it is that and
 * was not left, the stack is the same.  NULL: none, or not known. */
const void *cm_objects_innermost_frame(const struct cm_objects *self);

/* [new; raises] The number of a stack that somebody else took, 0 without
 * memory: a list of (filename, line, name), innermost first. */
PyObject *cm_objects_told_stack(struct cm_objects *self, PyObject *told);

#endif
