/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The words for each status.  Constants only: any thread may ask, and an
 * answer never grows old. */

#include "status.h"

const char *
cm_status_text(enum cm_status status)
{
    switch (status) {
    case CM_OK: return "done";
    case CM_NO_MEMORY: return "out of memory";
    case CM_LIMIT: return "a limit was reached";
    case CM_BAD_INPUT: return "bad input";
    case CM_IO: return "input or output failed";
    case CM_UNSUPPORTED: return "not supported here";
    case CM_MISUSE: return "called in a way that its contract forbids";
    }
    return "unknown status";
}
