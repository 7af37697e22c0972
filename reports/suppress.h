/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SUPPRESS_H
#define CM_SUPPRESS_H

/* Findings that a user does not want to hear of.  One rule a line:
 *
 *     fingerprint 3f9a2c        the first digits are enough
 *     type *.TensorDict         an object of the cycle
 *     file vendor/<glob>        where the cut is made or memory is allocated
 *     function Encoder.*        the same
 *     # comment              also behind a rule, after a blank
 *
 * Globs are the shell's; of a type or function the last part, and of a file
 * the last components, are enough.  A class of the program itself is "Trainer"
 * or "__main__.Trainer". */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/heap.h"
#include "../graph/finding.h"
#include "buffer.h"
#include "leak.h"

enum cm_suppression_kind {
    CM_SUPPRESS_FINGERPRINT = 1,
    CM_SUPPRESS_TYPE,
    CM_SUPPRESS_FILE,
    CM_SUPPRESS_FUNCTION,
};

struct cm_suppression {
    enum cm_suppression_kind kind;
    char *glob;      /* owned; NULL for a fingerprint */
    uint64_t prefix; /* of a fingerprint: its first digits, in place */
    uint64_t mask;
};

#define CM_SUPPRESSIONS_MAX 10000

/* A zeroed value is valid and empty. */
struct cm_suppressions {
    struct cm_suppression *items; /* owned */
    size_t count, capacity;
};
void cm_suppressions_release(struct cm_suppressions *self);

/* Adds the rules of a text.  Lines that are no rule are left out; `problems`
 * then gets one line that names them, like "lines 3, 9 are no rules". */
enum cm_status cm_suppressions_add(struct cm_suppressions *self,
                                   const char *text,
                                   struct cm_buffer *problems) CM_CHECKED;
/* Adds the rules of a file.  A file that cannot be read is CM_IO with errno;
 * `problems` starts with its name. */
enum cm_status cm_suppressions_read(struct cm_suppressions *self,
                                    const char *path,
                                    struct cm_buffer *problems) CM_CHECKED;

/* Takes the findings that a rule names out; returns how many. */
size_t cm_suppressions_apply(const struct cm_suppressions *self,
                             const struct cm_heap *heap,
                             const struct cm_records *records,
                             struct cm_findings *findings);
/* Of growth alone; returns how many of them a person would have heard of. */
size_t cm_suppressions_apply_growth(const struct cm_suppressions *self,
                                    struct cm_leak *leak);
/* Of both kinds. */
size_t cm_suppressions_apply_leak(const struct cm_suppressions *self,
                                  struct cm_leak *leak);

#endif
