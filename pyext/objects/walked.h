/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_WALKED_H
#define CM_WALKED_H

/* A stack that is not in the table, written down.  Where all its frames are a
 * library's, the first of the user's further out goes with them. */

#include "objects.h"

struct cm_raw_frame;

/* Frames beyond the stack's that are asked whether they are the user's. */
enum { CM_STACK_BEYOND = 4096 };

/* A stack that was walked; frames innermost first. */
struct cm_walked {
    struct {
        PyCodeObject *code;
        int offset; /* of the instruction, in bytes */
    } frames[CM_STACK_FRAMES];
    uint32_t count;
    bool cut;
    const struct cm_raw_frame *beyond; /* the first that was left out */
};

bool cm_walked_has_users(struct cm_objects *self,
                         const struct cm_walked *walked);
/* Remembers its id under the hash.  Two threads may do this for one stack: the
 * records hold it once.  That the records are full is remembered as id 0; that
 * memory ran out is not. */
struct cm_site_id cm_walked_add(struct cm_objects *self,
                                const struct cm_walked *walked, uint64_t hash);

/* Of the table (stack.c): from now on the hash stands for the site. */
void cm_stack_remember(struct cm_objects *self, uint64_t hash,
                       struct cm_site_id site);

#endif
