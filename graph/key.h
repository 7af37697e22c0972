/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_KEY_H
#define CM_KEY_H

/* Where what a variable has comes from, when it is the key of a memo: from a
 * set that is there already, however far it is handed on.  By the names in the
 * code that a holding has.  Pure. */

#include "holding.h"

/* A loop that is run again and again sets it, or it is the index that a data
 * set is asked for: it has in this code what it has had before. */
bool cm_key_comes_again(const struct cm_holding *self,
                        const struct cm_code *code, struct cm_text_id name);
/* All that it is set to is such. */
bool cm_key_always_comes_again(const struct cm_holding *self,
                               const struct cm_code *code,
                               struct cm_text_id name);

/* All that it is set to are sizes of what a loop goes over: len(x), x.size(1).
 */
bool cm_key_is_size(const struct cm_holding *self, const struct cm_code *code,
                    struct cm_text_id name);
/* All that the variable is set to is what a loop goes over, or as large. */
bool cm_key_is_of_data(const struct cm_holding *self,
                       const struct cm_code *code, struct cm_text_id name);

/* All that it is set to a data set has under an index that it is asked for:
 * y[k] of __getitem__(self, k). */
bool cm_key_is_item(const struct cm_holding *self, const struct cm_code *code,
                    struct cm_text_id name);

#endif
