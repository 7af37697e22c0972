/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FINALIZING_H
#define CM_FINALIZING_H

/* From the end of atexit's functions on.  sys.modules may be gone then, and to
 * ask for it is a fatal error; torch ends the process where a tensor that C++
 * holds too is let go of. */

#include <Python.h>

#include <stdbool.h>

static inline bool
cm_is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() != 0;
#else
    return _Py_IsFinalizing() != 0;
#endif
}

#endif
