/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_STACK_PATH_H
#define CM_STACK_PATH_H

#include <stdint.h>

struct cm_raw_frame;

/* A stack by addresses alone, of all its frames down to CM_STACK_FRAMES: to
 * know which are shown their code would have to be read.  An entry from C
 * stands at an instruction of the interpreter's own.  Equal for equal
 * instructions of equal depth within one `turn`; never 0, and the high bits
 * reach the low ones.
 * Before: the frames are those of this thread. */
uint64_t cm_stack_path_hash(const struct cm_raw_frame *frame, uint64_t turn);

#endif
