/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_STATUS_H
#define CM_STATUS_H

/* What a call of ours answers.  Zero is success; nothing here is a number
 * that a user sees: programs print cm_status_text(). */

#define CM_CHECKED __attribute__((warn_unused_result))

enum cm_status {
    CM_OK = 0,
    CM_NO_MEMORY = -1,   /* an allocation failed; outputs are unchanged */
    CM_LIMIT = -2,       /* a bound of ours was met; what is there is whole */
    CM_BAD_INPUT = -3,   /* a file or an argument is not what it should be */
    CM_IO = -4,          /* the operating system refused; errno says why */
    CM_UNSUPPORTED = -5, /* this platform, version or build cannot do it */
    CM_MISUSE = -6,      /* a caller broke a contract; nothing was changed */
};

/* A constant text, never NULL. */
const char *cm_status_text(enum cm_status status);

#endif
