/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TAGS_H
#define CM_TAGS_H

/* Where each live tensor object was made, unless its memory's allocation is
 * heard, and whether it still lives: the tensor types' tp_alloc and tp_free
 * are wrapped, so a tag is there exactly as long as its object.  Guarded by the
 * GIL; one table per process, since torch lives in one interpreter. */

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "../../detector/tag_table.h"
#include "../objects/objects.h"

/* Starts tagging objects of types given to cm_tags_type(); `objects` captures
 * the stacks and is borrowed until cm_tags_stop(). */
int cm_tags_start(struct cm_objects *objects, bool stacks);
/* Nobody waits for a tensor. */
#define CM_TENSORS_UNAWAITED UINT32_MAX
/* Called for a tensor made, with the GIL, from the tensor's constructor, or for
 * one that ends: must not run Python.  Its answer: how many may be made before
 * the next call; where nobody waits it is called for each sixteenth, or, where
 * the blocks are known, for none before cm_tags_wake(), and in between for one
 * of 256 that end.  NULL: nothing is called. */
void cm_tags_on_tensor(uint32_t (*hook)(void));
/* The same, once: for the first tensor after autograd's numbers of its thread
 * have come to `number`; 0: never. */
void cm_tags_on_forward(uint64_t number, void (*hook)(void));
/* Somebody awaits the next tensor made; so does cm_tags_on_forward(). */
void cm_tags_wake(void);
/* Takes every wrapper back from `types` (a list) and drops the table. */
void cm_tags_stop(PyObject *types);
/* Wraps one type, which may be static; types with an allocator of their own are
 * left alone. */
void cm_tags_type(PyTypeObject *type);
/* The same for torch's, torch.Tensor first, whose stacks the allocator's hook
 * may have; and for their metaclasses, so that what they make is wrapped. */
void cm_tags_torch_type(PyTypeObject *type);
/* Whether it has those of all tensors that count.  Where it no longer has
 * them, types have to be given anew. */
void cm_tags_blocks_known(bool known);
/* Until it ends, tensors made may be of memory that it does not hear of: they
 * take stacks all the same.  Calls nest, also of several threads. */
void cm_tags_foreign(bool begins);
/* NULL: the object is not tagged (made before tagging, or an own allocator).
 * Good until the next tensor is made. */
const struct cm_tag *cm_tags_find(PyObject *object);
/* Objects of this type die without a word: tp_free is not ours. */
bool cm_tags_covers(PyTypeObject *type);

/* Objects of this type are of a framework whose allocator is not heard, and
 * whether there ever was one. */
bool cm_tags_unhooked(PyTypeObject *type);
bool cm_tags_have_unhooked(void);

/* The objects handed to cm_tags_watch() that died since are counted out:
 * cm_tags_survived() asks about one of them. */
void cm_tags_watch_begin(void);
void cm_tags_watch(PyObject *object);
bool cm_tags_survived(uint64_t address);

struct cm_tags_counts {
    uint64_t live, made, lost;
};
void cm_tags_counts(struct cm_tags_counts *result);
/* Borrowed; a live tagged object that is whole, or NULL. */
PyObject *cm_tags_any(bool (*fits)(void *context, PyObject *object),
                      void *context);
/* In a forked child: nothing is tagged any more. */
void cm_tags_off(void);

#endif
