/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_THIS_THREAD_H
#define CM_THIS_THREAD_H

#include <stdint.h>
#include <threads.h>

/* Another one for each thread that lives; on x86-64 the ABI has it in a
 * register. */
static inline uint64_t
cm_this_thread(void)
{
#if defined(__x86_64__)
    uint64_t self;
    __asm__("mov %%fs:0, %0" : "=r"(self));
    return self;
#else
    return (uint64_t)thrd_current();
#endif
}

#endif
