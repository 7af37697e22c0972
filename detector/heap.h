/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_HEAP_H
#define CM_HEAP_H

/* The frozen object graph of one moment: what was garbage in one collection
 * (or what a scan found dead), as ids, numbers and interned text.  It keeps no
 * Python object alive and is read on any thread.
 *
 * Filled in one pass: cm_heap_add_node for every object, then, node by node
 * in order of ids, cm_heap_add_edge for its references, then cm_heap_seal.
 *
 * Invariants after seal (cm_heap_check holds them): node ids are 1..count,
 * edges of a node are contiguous and ordered by tail, every head exists,
 * storage ids exist.  Id 0 is none. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index.h"
#include "records.h"

struct cm_node_id {
    uint32_t index;
};
struct cm_storage_id {
    uint32_t index;
};

/* What an object is, as far as the rules need to know. */
enum cm_species {
    CM_OBJECT = 0, /* an instance of a class */
    CM_DICT,
    CM_LIST,
    CM_TUPLE,
    CM_SET, /* frozenset too */
    CM_FUNCTION,
    CM_BOUND_METHOD,
    CM_BUILTIN_METHOD,
    CM_CELL,
    CM_FRAME,
    CM_TRACEBACK,
    CM_EXCEPTION,
    CM_GENERATOR,
    CM_COROUTINE,
    CM_ASYNC_GENERATOR,
    CM_PARTIAL,
    CM_MODULE,
    CM_TYPE,
    CM_TENSOR,  /* device-backed array of any framework */
    CM_STORAGE, /* device-backed memory object: torch storage, CuPy memory */
    CM_GRAD_FN,
    CM_WEAKREF,
    CM_SPECIES_COUNT
};

/* How a reference is held; the label beside it is what a person reads. */
enum cm_role {
    CM_REFERENCE = 0,  /* a C field that has no name of its own */
    CM_ATTRIBUTE,      /* ".attr": instance dict, inline values, slot */
    CM_INSTANCE_DICT,  /* "__dict__" */
    CM_KEY,            /* "key": an object used as key of a dict */
    CM_VALUE,          /* "['key']" or "[*]" */
    CM_ITEM,           /* "[i]" */
    CM_ELEMENT,        /* "element" of a set */
    CM_CLOSURE,        /* "__closure__" function -> tuple of cells */
    CM_CLOSURE_CELL,   /* "cell x": tuple of cells -> cell */
    CM_CELL_CONTENTS,  /* "cell x": cell -> object */
    CM_LOCAL,          /* "local x": frame, generator, coroutine -> object */
    CM_BOUND_SELF,     /* "__self__" */
    CM_BOUND_FUNCTION, /* "__func__" */
    CM_DEFAULT,        /* "__defaults__", "__kwdefaults__" */
    CM_CLASS,          /* "__class__", bases, mro, subclass tables */
    CM_EXCEPTION_LINK, /* "__traceback__", "__context__", "__cause__" */
    CM_TB_FRAME,       /* "tb_frame" */
    CM_TB_NEXT,        /* "tb_next" */
    CM_F_BACK,         /* "f_back" */
    CM_PARTIAL_FUNC,   /* "func" */
    CM_PARTIAL_ARG,    /* "args", "keywords" */
    CM_GLOBALS,        /* "__globals__" */
    CM_AUTOGRAD,       /* "grad_fn", "next_functions[i]", "saved x" */
    CM_HOOK,           /* a framework's hook table */
    CM_WEAKREF_CALLBACK,
    CM_ROLE_COUNT
};

struct cm_node {
    uint64_t address; /* identity only: nothing lives there any more */
    uint64_t bytes;   /* device bytes of a tensor or storage, else host size */
    struct cm_type_id type;
    struct cm_text_id label;      /* what a person reads for this object */
    struct cm_storage_id storage; /* of a tensor or storage object */
    struct cm_site_id site;       /* stack that made the object, if known */
    struct cm_code_id code;       /* of a function, frame, generator */
    uint32_t line;                /* of a frame, generator, traceback */
    uint8_t species;              /* enum cm_species */
    bool has_finalizer;           /* __del__ in its type */
    bool survived;                /* resurrected: not freed after all */
    bool cut;                     /* not all of its references are here */
    uint32_t first_edge;          /* set by cm_heap_seal */
    uint32_t edge_count;
};

struct cm_edge {
    uint32_t tail; /* node indices, 1-based */
    uint32_t head;
    struct cm_text_id label;
    uint8_t role; /* enum cm_role */
};

struct cm_storage {
    uint64_t key; /* identity of the framework's storage object */
    uint64_t device_address;
    uint64_t bytes;
    struct cm_text_id device; /* "cuda:0", "cpu" */
    struct cm_site_id site;   /* stack that allocated it, if known */
    /* The allocator's block that it lies in; all of these say nothing while
     * block_bytes is 0. */
    uint64_t block_bytes;   /* as the allocator rounds them */
    uint64_t stream;        /* its handle; UINT64_MAX: not known */
    struct cm_text_id pool; /* of the records; id 0: the common one */
    uint32_t thread;        /* the kernel's id; 0: not known */
    bool awaited;           /* site is of the thread that waited for it */
    bool starts_block;      /* and its end will be told by the same hook */
    uint32_t use_count;     /* how many uses the framework counts; 0: not
                             * known, then every use is taken to be here */
    uint32_t uses_here;     /* uses by objects of this heap */
    uint8_t reader;         /* who knows it: for pyext/ alone */
};

enum cm_trigger {
    CM_TRIGGER_GC = 0,
    CM_TRIGGER_SCAN,
    CM_TRIGGER_OOM,
    CM_TRIGGER_EXIT,
    CM_TRIGGER_MANUAL,
};

struct cm_heap {
    struct cm_node *nodes; /* owned; nodes[0] is unused */
    size_t node_count, node_capacity;
    struct cm_edge *edges; /* owned; edges[0] is unused */
    size_t edge_count, edge_capacity;
    struct cm_storage *storages; /* owned; storages[0] is unused */
    size_t storage_count, storage_capacity;
    struct cm_index storage_index; /* by key; private to heap.c */
    enum cm_trigger trigger;
    uint64_t time_ns;       /* wall clock */
    int64_t iteration;      /* -1: not known */
    int generation;         /* of the collection, -1: a scan */
    uint64_t objects_seen;  /* garbage objects, frozen or not */
    uint64_t nodes_cut;     /* garbage objects that a bound left out */
    uint64_t bytes_cut;     /* device bytes of those, views counted too */
    bool frozen_generation; /* found behind gc.freeze() */
    bool uncollectable;     /* dead, and no collection will free it */
};

/* A zeroed heap is a valid empty one. */
void cm_heap_release(struct cm_heap *self);
/* Empty again, but its room stays. */
void cm_heap_clear(struct cm_heap *self);

enum cm_status cm_heap_add_node(struct cm_heap *self,
                                const struct cm_node *node,
                                struct cm_node_id *result) CM_CHECKED;
/* Finds the storage with this key or adds it; a use is counted each time. */
enum cm_status cm_heap_add_storage(struct cm_heap *self,
                                   const struct cm_storage *storage,
                                   struct cm_storage_id *result) CM_CHECKED;
/* Before: tail is not smaller than the tail of the edge added last. */
enum cm_status cm_heap_add_edge(struct cm_heap *self,
                                const struct cm_edge *edge) CM_CHECKED;
enum cm_status cm_heap_seal(struct cm_heap *self) CM_CHECKED;
/* NULL when every invariant holds, else a constant text that names the one
 * that does not. */
const char *cm_heap_check(const struct cm_heap *self);
/* Bytes of native memory this heap holds. */
size_t cm_heap_footprint(const struct cm_heap *self);

#endif
