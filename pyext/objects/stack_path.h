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

/* What torch allocates becomes a tensor's of Python at the same instruction of
 * the same frame: the site of such a stack is remembered for the thread's next
 * tensor, which need not walk again.
 *
 * A frame is left before its place is another's, and a frame that waits for
 * one it called stands still.  So the innermost frame and its instruction are
 * those of the same stack unless the frame was left and entered again between;
 * then its callers may be others.  That is seen by two of them.  Not seen is an
 * allocation that made no tensor, then a tensor for which nothing was
 * allocated and no other one between, where all three frames stand at the same
 * places and instructions below other callers: the one instruction would have
 * worked in place the first time and not the second. */
void cm_stack_path_note(const struct cm_raw_frame *frame, uint64_t turn,
                        uint32_t site);
/* The site that was noted last, if at this stack; 0: not, or it was asked for
 * since. */
uint32_t cm_stack_path_noted(const struct cm_raw_frame *frame, uint64_t turn);

#endif
