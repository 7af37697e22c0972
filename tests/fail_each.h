/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TEST_FAIL_EACH_H
#define CM_TEST_FAIL_EACH_H

/* Runs an operation with its allocation 0, 1, 2, ... failing until it passes:
 * once where only that one fails, once where all from there on do.  Each time
 * it must answer CM_NO_MEMORY or succeed, and leave no block behind. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../detector/alloc.h"

/* Does everything from making to freeing; answers the first failure. */
typedef enum cm_status cm_attempt(void *context);

enum { CM_ATTEMPTS_MAX = 100000 };

static inline void
cm_fail_each(cm_attempt *attempt, void *context)
{
    for (int from_then_on = 0; from_then_on < 2; from_then_on++) {
        long failures = 0;
        for (long nth = 0;; nth++) {
            assert_true(nth < CM_ATTEMPTS_MAX);
            long live = cm_alloc_live();
            cm_alloc_fail_at(nth, from_then_on);
            enum cm_status status = attempt(context);
            cm_alloc_fail_at(-1, false);
            assert_int_equal(cm_alloc_live(), live);
            if (status == CM_OK) {
                break;
            }
            assert_int_equal(status, CM_NO_MEMORY);
            failures++;
        }
        assert_true(failures > 0);
    }
}

#endif
