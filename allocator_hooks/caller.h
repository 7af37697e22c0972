/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_CALLER_H
#define CM_CALLER_H

/* Which native library asks the driver for memory: "libnccl.so.2".  Names are
 * told apart by numbers that hold until the process ends; 0 is "not known".
 *
 * Nothing is symbolised and no file is opened: the stack's addresses are
 * looked up among the ranges of the loaded modules. */

#include <stddef.h>
#include <stdint.h>

#include "../detector/status.h"

/* Does at once what must not happen inside an allocation: the C library loads
 * its unwinder at the first use.  Again it does nothing. */
enum cm_status cm_caller_start(void) CM_CHECKED;

/* The library of the first frame above that is not ours and not one of
 * CUDA's own layers.  0 before cm_caller_start().  Takes only leaf locks; a
 * few microseconds. */
uint16_t cm_caller_find(void);

/* The number of this name, also of one that is not loaded; 0 when there is no
 * room. */
uint16_t cm_caller_named(const char *name, size_t length);

/* Where a process has two copies of this code, the one that the driver loads
 * (inject.c) gives numbers from CM_CALLER_SECOND on, and the other copy asks
 * it for their names.  A name may then have a number of each. */
enum { CM_CALLER_SECOND = 0x8000 };
typedef const char *cm_caller_names(uint16_t library);
void cm_caller_be_second(void);
void cm_caller_ask(cm_caller_names *second);

/* Borrowed, never NULL, lives as long as the process; "" for what is not
 * known. */
const char *cm_caller_name(uint16_t library);

/* For tests.  Before: no thread is inside a call of the above. */
void cm_caller_release(void);

#endif
