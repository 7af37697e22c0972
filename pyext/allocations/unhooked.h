/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_UNHOOKED_H
#define CM_UNHOOKED_H

/* Memory of the frameworks whose allocators tell nobody: CuPy, Numba, JAX,
 * RMM, cuda.core, and torch where its allocator is not heard.  At the end of
 * each iteration their live objects are asked where their memory is, and the
 * table of blocks is told what has come and gone since; so their growth is
 * seen as torch's is.  What lived for less than an iteration is not seen.
 * Guarded by the GIL.
 *
 * Why not by hooks, where there are any: CuPy's are Python calls, two for each
 * allocation, in those threads alone that asked for them; RMM's is a resource
 * in place of the program's own, which then has another type.  Both cost more
 * than an iteration's look, and change what the program sees; the stacks they
 * would give are those of the objects, which are known. */

#include "../../detector/blocks.h"
#include "../frameworks/devices.h"

/* `torch`: its tensors too.  Cost: nothing while no such object was ever made,
 * else a look at each tagged object. */
void cm_unhooked_update(struct cm_devices *devices, bool torch);
/* Where the memory stands in the table of blocks: its address, or, where the
 * framework does not show it, a number that no address is. */
uint64_t cm_unhooked_place(const struct cm_device_memory *memory);
/* The block that an object's memory lies in, hooked or not; false: none is
 * known, or nobody but C++ has the object. */
bool cm_unhooked_block(struct cm_devices *devices, PyObject *object,
                       struct cm_block *block);
/* [new; raises] What each framework's objects hold on a device, as that was
 * seen last, and how much the driver has given for it if each was asked of it
 * alone: {"numba": (bytes, bytes)}. */
PyObject *cm_unhooked_use(long device);
/* Memory that is counted there begins in this block. */
bool cm_unhooked_in(const struct cm_block *block);
/* Nothing is known any more. */
void cm_unhooked_forget(void);

#endif
