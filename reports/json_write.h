/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_JSON_WRITE_H
#define CM_JSON_WRITE_H

/* Writing JSON: what the writers of leak.json share.  Nothing here fails; the
 * buffer knows at the end whether all of it is there. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "leak.h"

struct cm_json_writer {
    const struct cm_leak *leak; /* borrowed, as the next */
    struct cm_buffer *out;
    bool comma; /* an item of this object or array stands before */
};

/* Parts from what stands before, and opens the value of `key`. */
void cm_json_add_key(struct cm_json_writer *self, const char *key);
void cm_json_add_text(struct cm_json_writer *self, const char *key,
                      struct cm_text_id text);
/* The same, nothing for an empty text. */
void cm_json_add_some_text(struct cm_json_writer *self, const char *key,
                           struct cm_text_id text);
void cm_json_add_number(struct cm_json_writer *self, const char *key,
                        uint64_t number);
/* Nothing for CM_LEAK_UNKNOWN. */
void cm_json_add_some_number(struct cm_json_writer *self, const char *key,
                             uint64_t number);
/* null for what is below 0: not known. */
void cm_json_add_known(struct cm_json_writer *self, const char *key,
                       int64_t number);
/* With three decimals at most. */
void cm_json_add_real(struct cm_json_writer *self, const char *key,
                      double number);
/* "0x7f"; a JSON number is a double. */
void cm_json_add_hex(struct cm_json_writer *self, const char *key,
                     uint64_t number);
/* Nothing for false. */
void cm_json_add_flag(struct cm_json_writer *self, const char *key, bool flag);
void cm_json_add_ids(struct cm_json_writer *self, const char *key,
                     const uint32_t *ids, size_t count);
/* With `places`, whether each is certain. */
void cm_json_add_frames(struct cm_json_writer *self, const char *key,
                        const struct cm_leak_frame *frames, size_t count,
                        bool places);
/* {"package","link"}, null without a package. */
void cm_json_add_library(struct cm_json_writer *self,
                         struct cm_text_id package, struct cm_text_id link);

/* Values without a key. */
void cm_json_add_string(struct cm_json_writer *self, const char *text);
void cm_json_add_whole(struct cm_json_writer *self, uint64_t number);
void cm_json_add_real_value(struct cm_json_writer *self, double number);
void cm_json_add_fingerprint(struct cm_json_writer *self,
                             uint64_t fingerprint);

/* One of the document's arrays, on a line of its own, and its items. */
void cm_json_open_array(struct cm_json_writer *self, const char *key);
void cm_json_close_array(struct cm_json_writer *self);
void cm_json_open_item(struct cm_json_writer *self, size_t position);
void cm_json_close_item(struct cm_json_writer *self);
/* An item of an array within an item. */
void cm_json_open_part(struct cm_json_writer *self, size_t position);

#endif
