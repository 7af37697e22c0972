/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_OBJECTS_PRIVATE_H
#define CM_OBJECTS_PRIVATE_H

/* What the files behind objects.h share.  Not for anyone else. */

#include "objects.h"

#include <stdatomic.h>
#include <string.h>

#include "../../detector/lock.h"
#include "../tables/addresses.h"
#include "../code/bytecode.h"
#include "../collector/gc_list.h"
#include "layout.h"

struct cm_site_table; /* stack.c */
struct cm_place;      /* edges.c */

/* Which private structures have been seen to read right. */
struct cm_proven {
    bool attributes, frames, generators, stack;
};

/* Labels of keys that may be made, see edges.c. */
struct cm_label_share {
    uint32_t newest, made, most;
};

enum { CM_MOST_NAMES = 300000, CM_MOST_OTHER_KEYS = 50000 };

/* Whether what a site allocates was set anew by a name, when that was asked last
 * while the code of modules on its stack ran (holders/renewed.c). */
struct cm_renewed_answer {
    uint32_t site, label; /* 0: none */
    bool renewed;
};

enum { CM_LIBRARY_FOLDERS = 256 };

enum { CM_RENEWED_ANSWERS = 64, CM_UNCALLED_KNOWN = 64 };

enum { CM_KINDS = 16 };

struct cm_objects {
    /* What each stack reads, beside each other. */
    struct cm_proven proven; /* written by cm_objects_new, then read only */
    _Atomic bool sites_full; /* no larger table is allowed */
    _Atomic bool notes;      /* stacks of memory, for its tensors */
    _Atomic(struct cm_site_table *) sites; /* read without the lock */
    /* deaths.h: not 0 while stacks are keyed by addresses alone, with it; for
     * threads of this interpreter. */
    _Atomic uint64_t turn;
    PyInterpreterState *interpreter; /* borrowed; written before turn */
    _Atomic uint64_t lost_stacks;

    struct cm_records *records; /* borrowed */
    struct cm_texts *texts;     /* borrowed: those of the records */

    /* Written by cm_objects_new, then read only. */
    const char *no_attributes; /* why not proven; constant text */
    const char *no_frames;
    const char *no_stack;
    struct cm_bytecode bytecode;
    PyObject *modules;     /* owned: sys.modules */
    PyTypeObject *partial; /* owned: functools.partial; may be NULL */
    /* Owned, end in '/'; NULL: not known.  The first is Python's own, the
     * second cumem's; the others are packages in a folder of sys.path which is
     * no site-packages, beside a .dist-info of the same name. */
    char *library_folders[CM_LIBRARY_FOLDERS];
    size_t library_count;

    struct cm_lock lock; /* leaf; guards the two below */
    struct cm_addresses codes;
    struct cm_site_table *newest_sites; /* owned, with those before it */

    /* Guarded by the GIL, as all below. */
    struct cm_addresses types;
    struct cm_addresses cells; /* cell -> its variable's name (text id) */
    /* A name -> ".name", and -> "['name']" (text ids). */
    struct cm_addresses attributes, keys;
    uint64_t unnamed_edges;
    bool texts_shown;
    struct cm_label_share names, other_keys;
    struct cm_renewed_answer answers[CM_RENEWED_ANSWERS]; /* a ring */
    size_t answers_at;
    /* Code that nobody called when it was last asked for; a ring, as above. */
    struct cm_code_id uncalled[CM_UNCALLED_KNOWN];
    size_t uncalled_at;
    struct cm_kind {
        const PyTypeObject *type;
        unsigned tag; /* its version: another type may have its address */
        enum cm_species species;
    } kinds[CM_KINDS]; /* of types lately seen, by their addresses */
    PyObject **found;  /* owned; the referents that traverse showed */
    size_t found_capacity;
    struct cm_place *places; /* owned; the same as a hash table */
    size_t places_capacity;
};

/* ---- the references of one object while they are being named (edges.c) */

struct cm_walk {
    struct cm_objects *objects;
    int (*wanted)(void *context, PyObject *referent);
    cm_edge_visitor *visit;
    void *context;
    size_t count;  /* wanted referents that traverse showed */
    size_t left;   /* of these, not visited yet */
    size_t places; /* size of the hash table; 0: search the array */
};

/* Takes one showing of `referent` out; false when there is none left.  The
 * pointer is compared only, so any bits will do. */
bool cm_walk_take(struct cm_walk *walk, const void *referent);
void cm_walk_visit(struct cm_walk *walk, const void *referent,
                   struct cm_text_id label, enum cm_role role);
/* Take and visit. */
void cm_walk_name(struct cm_walk *walk, const void *referent,
                  const char *label, enum cm_role role);
void cm_walk_name_text(struct cm_walk *walk, const void *referent,
                       const char *before, const char *name,
                       enum cm_role role);
/* The label is `before` and the characters of the str `name`. */
void cm_walk_name_str(struct cm_walk *walk, const void *referent,
                      const char *before, PyObject *name, enum cm_role role);
void cm_walk_name_attribute(struct cm_walk *walk, const void *referent,
                            PyObject *name);
/* The label is the key by value, or "[<its type>]". */
void cm_walk_name_key(struct cm_walk *walk, const void *referent,
                      PyObject *key);
void cm_walk_name_index(struct cm_walk *walk, const void *referent,
                        Py_ssize_t index);

/* As PyObject_IS_GC() and PyObject_GC_IsTracked(), which are two calls for each
 * reference of a walk. */
static inline bool
cm_is_tracked(PyObject *object)
{
#if defined(Py_GIL_DISABLED) || PY_VERSION_HEX >= 0x03100000
    return PyObject_GC_IsTracked(object) != 0;
#else
    return cm_gc_of(object)->next != 0;
#endif
}

static inline bool
cm_is_gc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    return PyType_IS_GC(type)
           && (type->tp_is_gc == NULL || type->tp_is_gc(object));
}

/* Whether tp_traverse may be called, and can show anything.  What is not
 * tracked may be half built; tuples and dicts never are, and are untracked
 * where all that they hold is. */
static inline bool
cm_can_traverse(PyObject *object)
{
    return Py_TYPE(object)->tp_traverse != NULL && cm_is_gc(object)
           && (cm_is_tracked(object) || PyTuple_CheckExact(object)
               || PyDict_CheckExact(object));
}

/* ---- readers: each names what it knows of the object's references */

void cm_read_builtin(struct cm_walk *walk, PyObject *object);
void cm_read_attributes(struct cm_walk *walk, PyObject *object);
void cm_read_frame(struct cm_walk *walk, PyObject *object);

/* The object member `name` of a C type, or one of __slots__; borrowed, may be
 * NULL. */
PyObject *cm_member(PyObject *object, const char *name);
/* The instance's own attribute `name`, as it lies there: no getter runs.
 * Borrowed; NULL when it is not there or cannot be told. */
PyObject *cm_attribute(const struct cm_objects *self, PyObject *object,
                       const char *name);

/* The dict of an instance where it has been made; borrowed, else NULL. */
PyObject *cm_instance_dict(const struct cm_objects *self, PyObject *object);

/* ---- frames.c */

/* The variables of a frame object or generator. */
struct cm_variables {
    PyCodeObject *code;
    const cm_stack_ref *slots; /* borrowed; count of them can be read */
    Py_ssize_t count;
};

/* False: not such an object, running, finished, or layouts not proven. */
bool cm_variables_of(const struct cm_objects *self, PyObject *object,
                     struct cm_variables *result);
/* Borrowed; NULL when it cannot be told. */
PyCodeObject *cm_frame_code(const struct cm_objects *self, PyObject *object);
/* 0 when it cannot be told. */
uint32_t cm_frame_line(const struct cm_objects *self, PyObject *object);

static inline bool
cm_is_generator(const PyTypeObject *type)
{
    return type == &PyGen_Type || type == &PyCoro_Type
           || type == &PyAsyncGen_Type;
}

/* ---- types.c */

struct cm_phrase;
void cm_phrase_add_type(struct cm_phrase *phrase, PyTypeObject *type);
/* The value of an ASCII key of an exact dict, by comparison of exact strs
 * only (no hash, no user's __eq__).  Borrowed; NULL when it is not there. */
PyObject *cm_dict_find(PyObject *dict, const char *key);
/* __del__ written in Python, in the type or one of its bases. */
bool cm_type_has_finalizer(PyTypeObject *type);

/* ---- codes.c */

#if PY_VERSION_HEX < 0x030C0000
/* The last 8 characters of a text, or all of it. */
static inline uint64_t
cm_text_end(const char *bytes, Py_ssize_t length)
{
    uint64_t end = 0;
    uint32_t first = 0, last = 0;
    if (length >= 8) {
        memcpy(&end, bytes + length - 8, 8);
        return end;
    }
    if (length >= 4) {
        memcpy(&first, bytes, 4);
        memcpy(&last, bytes + length - 4, 4);
    }
    else if (length > 0) {
        first = (unsigned char)bytes[0];
        last = (unsigned char)bytes[length - 1];
    }
    return (uint64_t)first << 32 | last;
}

/* 0 of one that is not ASCII. */
static inline uint64_t
cm_str_end(const PyObject *string)
{
    if (!PyUnicode_IS_COMPACT_ASCII(string)) {
        return 0;
    }
    /* PyUnicode_DATA() of such a string, without its questions. */
    const char *bytes = (const char *)((const PyASCIIObject *)string + 1);
    return cm_text_end(bytes, ((const PyASCIIObject *)string)->length);
}

/* Differs, as good as always, for code objects that lie at one address one
 * after the other, as the cells of a notebook do: by the end of the file's
 * name.  Of the code object it reads one cache line, which every call of the
 * function reads too. */
static inline uint64_t
cm_code_check(const PyCodeObject *code)
{
    PyObject *name = code->co_filename;
    uint64_t check = (uint64_t)(uintptr_t)name
                     ^ (uint64_t)(uintptr_t)code->co_localsplusnames << 20
                     ^ (uint64_t)(unsigned)code->co_firstlineno << 44;
    return check + cm_str_end(name) * UINT64_C(0x9E3779B97F4A7C15);
}
#else
/* Differs (before mixing), as good as always, for code objects that lie at one
 * address one after the other: each has a version of its own until those run out (0).  It
 * reads one cache line, which every call of the function reads too. */
static inline uint64_t
cm_code_check(const PyCodeObject *code)
{
    uint64_t check =
        code->co_version ^ (uint64_t)(unsigned)code->co_firstlineno << 32;
    if (code->co_version == 0) {
        check += (uint64_t)(uintptr_t)code->co_qualname
                     * UINT64_C(0xBF58476D1CE4E5B9)
                 + (uint64_t)(uintptr_t)code->co_linetable
                       * UINT64_C(0x94D049BB133111EB)
                 + (uint64_t)(uintptr_t)code->co_filename
                       * UINT64_C(0xD6E8FEB86659FD93);
    }
    return check;
}
#endif

bool cm_is_library(const struct cm_objects *self, PyObject *filename);

/* ---- stack.c */

void cm_stack_release(struct cm_objects *self);
/* False: so many stacks are known that none should be known twice. */
bool cm_stack_has_room(struct cm_objects *self);
/* By how many hashes stacks are found; one that was seen in two turns counts
 * twice. */
size_t cm_stack_known(const struct cm_objects *self);
/* The innermost frame of a thread that runs Python code; NULL: none. */
const struct cm_raw_frame *cm_raw_frame_first(PyThreadState *thread);
/* The next one, from `frame` (included) outwards; NULL at the end. */
const struct cm_raw_frame *cm_raw_frame_next(const struct cm_raw_frame *frame);

/* ---- proofs.c */

/* Fills proven, no_..., bytecode, partial, library_folders.  Never fails:
 * what cannot be proved is not used.  Leaves no exception. */
void cm_objects_prove(struct cm_objects *self);

#endif
