/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_READER_H
#define CM_READER_H

/* One contract for every framework whose objects stand for device memory; a
 * new framework is one new file and one line in devices.c.
 *
 * What holds for all: called with the GIL; read() may run inside a collection,
 * on garbage: it reads C structures or calls C getters that only copy a field,
 * never Python code, allocates no GC object, raises nothing, and answers false
 * for whatever it is not sure of (odd subclasses, half-built objects, FakeTensor,
 * meta, sparse).  learn() runs outside the unreachable phase and may run the
 * framework's own code on the CPU; it never imports and never touches a
 * device. */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "../../detector/heap.h"

/* The device memory behind one object. */
struct cm_device_memory {
    uint64_t storage_key; /* identity of the memory object */
    uint64_t device_address;
    uint64_t bytes;
    uint32_t use_count; /* uses the framework counts; 0: not known */
    bool preserved;     /* C++ holds one reference to the object too */
    bool lent;          /* what it stands for counts no use for it */
    bool forgotten;     /* and nobody else does */
    bool accelerator;   /* false: host memory (a CPU tensor) */
    uint8_t reader;     /* filled by cm_devices_read() */
    uint16_t part;      /* of an array over several devices: which, ... */
    uint16_t parts;     /* ... of how many; 0: it lies on one */
    bool is_storage;    /* the memory object itself, not an array */
    char device[24];    /* "cuda:0", at most "privateuseone:127" */
};

/* Nobody but C++ has the object: who uses what it stands for is elsewhere. */
static inline bool
cm_device_memory_unheld(const struct cm_device_memory *self,
                        const PyObject *object)
{
    return self->preserved && Py_REFCNT(object) <= 1;
}

#define CM_ALIVE_MAX 64u

enum cm_alive {
    CM_ALIVE_UNKNOWN = 0,
    CM_ALIVE_NO,
    CM_ALIVE_YES,
};

enum cm_learnt {
    CM_LEARNT_READY = 0,
    CM_LEARNT_LATER,       /* not fully imported, or a mode is active: retry */
    CM_LEARNT_UNSUPPORTED, /* for good: why is in `reason` */
};

struct cm_objects;

struct cm_reader {
    const char
        *module; /* sys.modules name that shows the framework is there */
    /* Zeroed state of this many bytes is kept per interpreter. */
    size_t state_bytes;
    enum cm_learnt (*learn)(void *state, PyObject *module,
                            const char **reason);
    /* Lends what reads attributes as they lie there (cm_attribute()); comes
     * first, lives longer than the state.  May be NULL. */
    void (*begin)(void *state, const struct cm_objects *objects);
    /* At the start of a collection, from when it is learnt on: a look at what
     * may have changed.  As learn(), and cheap.  May be NULL. */
    void (*notice)(void *state);
    /* Does an exact type hold device memory?  Answers are cached. */
    bool (*claims)(const void *state, PyTypeObject *type);
    bool (*read)(const void *state, PyObject *object,
                 struct cm_device_memory *result);
    /* The same for another part, of which read() told how many.  NULL: there is
     * never one. */
    bool (*part)(const void *state, PyObject *object, uint16_t part,
                 struct cm_device_memory *result);
    /* Writes what a person calls the contents, "[64, 512] float32"; at most
     * `room` bytes with the NUL.  Before: read() said yes.  NULL: unknown. */
    void (*shape)(const void *state, PyObject *object, char *text,
                  size_t room);
    /* The name of a field of `object` that refers to `referent` and is not
     * known to Python: ".hooks", a constant; NULL: none.  May be NULL. */
    const char *(*field)(const void *state, PyObject *object,
                         PyObject *referent);
    /* Do these memory objects, read a moment ago, still hold their memory?
     * They may be gone: nothing may be read directly.  At most CM_ALIVE_MAX at
     * once, since asking is a system call.  NULL: nobody can tell. */
    void (*alive)(const void *state, const struct cm_storage *storages,
                  size_t count, enum cm_alive *answers);
    /* Drops the references that `state` holds; what begin() lent stays, and
     * learn() may come again. */
    void (*forget)(void *state);
    bool counts_all; /* use_count counts objects that read() knows, and what
                      * autograd.h sees: others are held by somebody else */
    bool untracked;  /* some of its types are not tracked by the collector */
};

extern const struct cm_reader cm_torch_reader;
extern const struct cm_reader cm_cupy_reader;
extern const struct cm_reader cm_numba_reader;
extern const struct cm_reader cm_jax_reader;
extern const struct cm_reader cm_rmm_reader;
extern const struct cm_reader cm_cuda_core_reader;
extern const struct cm_reader cm_interface_reader;

#endif
