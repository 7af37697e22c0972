/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_JSON_H
#define CM_JSON_H

/* Reading JSON that is not to be trusted: values by exact name, each checked,
 * and the first failure noted with its place, `cycles[3].cut[0]: ...`.  After
 * a failure calls answer zero and the reader goes on or stops as it likes.
 *
 * Implemented in leak_json.c, the only file that knows cJSON. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../detector/status.h"
#include "../detector/text.h"
#include "buffer.h"

struct cJSON; /* opaque: one value */

/* The ids of one array of objects, any whole numbers. */
struct cm_json_id_entry {
    uint64_t id;
    uint32_t position; /* from 1 */
};
struct cm_json_ids {
    struct cm_json_id_entry *items; /* owned; sorted by id */
    size_t count;
    const char *noun; /* "vertex" */
};

struct cm_json {
    struct cm_texts *texts; /* borrowed: where texts are interned */
    char *error;            /* borrowed: where the failure is noted */
    size_t error_bytes;
    enum cm_status status; /* the first failure */
    struct cm_buffer text; /* owned: scratch */
    struct cJSON *root;    /* owned */
    /* Where the reader is, for the error: array[index].list[item]. */
    const char *object; /* NULL: not in one that stands alone */
    const char *array;
    size_t index;
    const char *list; /* NULL: not in one */
    size_t item;
};

/* Parses; bytes[length] is NUL.  `self` has texts and error set, the rest
 * zero.  On failure self->status says why, and there is no root. */
void cm_json_parse(struct cm_json *self, const char *bytes, size_t length);
void cm_json_release(struct cm_json *self);
void cm_json_ids_release(struct cm_json_ids *self);

/* Notes the first failure: `place.key: message`; NULL key: the place. */
void cm_json_fail(struct cm_json *self, const char *key, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));

/* NULL when the key is missing or null, or the object is NULL. */
const struct cJSON *cm_json_get(const struct cJSON *object, const char *key);
bool cm_json_is_object(const struct cJSON *value);
bool cm_json_is_array(const struct cJSON *value);
/* NULL for what is no text. */
const char *cm_json_string(const struct cJSON *value);
/* Seconds, a fraction too; 0 when it is missing. */
double cm_json_seconds(struct cm_json *self, const struct cJSON *object,
                       const char *key);
/* A number, a fraction too, from low to high. */
double cm_json_real(struct cm_json *self, const struct cJSON *object,
                    const char *key, double low, double high, double missing);
/* -1 for what is no number. */
double cm_json_value_of(const struct cJSON *value);
/* A whole number from 0 to 2^53. */
uint64_t cm_json_number(struct cm_json *self, const struct cJSON *object,
                        const char *key, uint64_t missing);
/* One under 2^31; 0 when it is missing. */
uint32_t cm_json_small(struct cm_json *self, const struct cJSON *object,
                       const char *key);
/* -1 when it is missing, null, or written so. */
int64_t cm_json_known(struct cm_json *self, const struct cJSON *object,
                      const char *key);
int64_t cm_json_known_value(struct cm_json *self, const struct cJSON *value);
bool cm_json_flag(struct cm_json *self, const struct cJSON *object,
                  const char *key);
/* Interned as valid UTF-8; id 0 when it is missing or empty. */
struct cm_text_id cm_json_text(struct cm_json *self,
                               const struct cJSON *object, const char *key);
/* The same, of these `words` alone (NULL ends them), else a failure. */
struct cm_text_id cm_json_word(struct cm_json *self,
                               const struct cJSON *object, const char *key,
                               const char *const *words, const char *expected);
/* The same for a value that has no key, which must be a text. */
struct cm_text_id cm_json_text_value(struct cm_json *self,
                                     const struct cJSON *value);
/* A number written as hexadecimal text, with or without 0x. */
uint64_t cm_json_hex(struct cm_json *self, const struct cJSON *object,
                     const char *key);
uint64_t cm_json_hex_value(struct cm_json *self, const struct cJSON *value,
                           const char *key);

/* The array under `key`, NULL when it is missing. */
const struct cJSON *cm_json_array(struct cm_json *self,
                                  const struct cJSON *object, const char *key);
/* A failure where the document has no such array. */
void cm_json_need_array(struct cm_json *self, const char *key);
size_t cm_json_count(const struct cJSON *array);
/* The items in order; NULL at the end. */
const struct cJSON *cm_json_first(const struct cJSON *array);
const struct cJSON *cm_json_next(const struct cJSON *item);
/* Room for `count` zeroed items; NULL also for none. */
void *cm_json_items(struct cm_json *self, size_t count, size_t item_bytes);

/* Learns the ids of the array `key` (its items' "id", else their position)
 * and makes room for its items, which is returned. */
void *cm_json_ids(struct cm_json *self, const char *key,
                  struct cm_json_ids *ids, size_t item_bytes, size_t *count);
/* The position of the item that is named; 0 when none is. */
uint32_t cm_json_id(struct cm_json *self, const struct cJSON *object,
                    const char *key, const struct cm_json_ids *ids,
                    bool needed);
/* [new] Positions of the items that an array names. */
uint32_t *cm_json_id_list(struct cm_json *self, const struct cJSON *object,
                          const char *key, const struct cm_json_ids *ids,
                          size_t *count);

#endif
