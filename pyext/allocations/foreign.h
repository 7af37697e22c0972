/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FOREIGN_H
#define CM_FOREIGN_H

/* Tensors that torch makes over another framework's memory (DLPack, the CUDA
 * array interface): its allocator never hears of them, so they take the stack
 * of their making where others have that of their memory.  With the GIL. */

/* Wraps torch's functions for it, once torch is imported.  Again is fine. */
void cm_foreign_start(void);
void cm_foreign_stop(void);

#endif
