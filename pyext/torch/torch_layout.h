/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TORCH_LAYOUT_H
#define CM_TORCH_LAYOUT_H

/* Where torch keeps what we need of a tensor: learnt from probe tensors, for
 * the reader (torch_reader.c).  All offsets are in bytes. */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CM_TORCH_PEEK_MAX 64u
enum { CM_TORCH_STORAGE_WORDS = 8, CM_TORCH_DTYPES = 64 };

struct cm_torch_dtype {
    uint16_t code;
    char text[16];
};

struct cm_torch_layout {
    PyTypeObject *tensor;  /* owned: torch._C.TensorBase */
    PyTypeObject *storage; /* owned: torch._C.StorageBase */
    size_t object_impl, impl_storage, impl_dims, impl_dtype;
    size_t storage_object, storage_data, storage_bytes, storage_device;
    size_t storage_uses, impl_uses;
    /* Up to torch 2.9: the byte of an object that says that only C++ holds it,
     * and that it is none of the uses itself; 0: not known. */
    size_t object_kept, storage_kept;
    struct cm_torch_dtype dtypes[CM_TORCH_DTYPES];
    size_t dtype_count;
    uint64_t storage_vtable; /* first word of every StorageImpl; 0: differs */
    bool has_uses, has_impl_uses, has_shape;
    bool counts_cpp; /* torch 2.10: what C++ uses of a tensor is one reference
                      * to its object */
};

/* [none; raises] Facts about probe tensors, from cumem._torch. */
PyObject *cm_torch_probe(PyObject *module, PyObject *facts);
/* The layout learnt from them, or NULL: *reason says why. */
const struct cm_torch_layout *cm_torch_learnt(const char **reason);
/* Gives the learnt layout up; its references are taken by who copied it. */
void cm_torch_unlearn(void);
/* Reads our own memory through the kernel: what is not there is an answer. */
bool cm_torch_peek(uint64_t address, uint64_t *words, size_t count);
/* As cm_torch_peek() for up to CM_TORCH_PEEK_MAX places of `each` words. */
void cm_torch_peek_many(const uint64_t *addresses, size_t count,
                        uint64_t *words, size_t each, bool *there);

struct cm_device_memory;
/* Of a StorageImpl met on the way, read through the kernel; false: it is none,
 * or holds nothing. */
bool cm_torch_read_storage(const struct cm_torch_layout *layout,
                           uint64_t storage, struct cm_device_memory *result);
/* "[64, 512] float32"; `impl` is a TensorImpl, or a copy of one that has at
 * most five dimensions.  At least 40 bytes of room. */
void cm_torch_shape(const struct cm_torch_layout *layout, uintptr_t impl,
                    char *text, size_t room);

/* The same of a TensorImpl that is read through the kernel; "": not known. */
void cm_torch_shape_at(uint64_t impl, char *text, size_t room);

static inline uint64_t
cm_word_at(uintptr_t address, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const void *)(address + offset), sizeof(value));
    return value;
}

static inline uint32_t
cm_half_at(uintptr_t address, size_t offset)
{
    uint32_t value;
    memcpy(&value, (const void *)(address + offset), sizeof(value));
    return value;
}

static inline uint16_t
cm_short_at(uintptr_t address, size_t offset)
{
    uint16_t value;
    memcpy(&value, (const void *)(address + offset), sizeof(value));
    return value;
}

#endif
