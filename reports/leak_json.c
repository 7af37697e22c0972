/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The only file that knows cJSON.  Before cJSON sees the bytes their nesting
 * is bounded (it recurses) and its memory comes from cm_alloc; after it every
 * value is asked for by its exact name (cJSON's plain lookup ignores case).
 * Ids of a file are any whole numbers: each array's ids are sorted once and
 * looked up by halves.  Cost: O(n log n), ten times the file in memory. */
#include "json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h> // qsort()
#include <string.h>

#include <cjson/cJSON.h>

#include "../detector/alloc.h"
#include "../detector/number.h"
#include "leak_json.h"
#include "utf8.h"

#define MAX_DEPTH 64

/* cJSON does not tell a syntax error from want of memory.  Written by this
 * thread's parse only: cJSON's hooks are one for the process anyway. */
static bool ran_out;

static void *
allocate(size_t bytes)
{
    void *result = cm_alloc(bytes);

    ran_out |= result == NULL;
    return result;
}

/* Notes the first failure: `place.key: message`. */
void
cm_json_fail(struct cm_json *self, const char *key, const char *format, ...)
{
    struct cm_buffer text = {.max_bytes = self->error_bytes - 1};
    char message[100];
    va_list arguments;

    if (self->status != CM_OK) {
        return;
    }
    self->status = CM_BAD_INPUT;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    cm_buffer_add_text(&text, self->object != NULL ? self->object : "");
    if (self->array != NULL) {
        cm_buffer_addf(&text, "%s%s[%zu]", text.length > 0 ? "." : "",
                       self->array, self->index);
    }
    if (self->list != NULL) {
        cm_buffer_addf(&text, "%s%s[%zu]", text.length > 0 ? "." : "",
                       self->list, self->item);
    }
    if (key != NULL) {
        cm_buffer_addf(&text, "%s%s", text.length > 0 ? "." : "", key);
    }
    cm_buffer_addf(&text, "%s%s", text.length > 0 ? ": " : "", message);
    snprintf(self->error, self->error_bytes, "%s", cm_buffer_text(&text));
    cm_buffer_release(&text);
}

static void
run_out(struct cm_json *self)
{
    if (self->status == CM_OK) {
        self->status = CM_NO_MEMORY;
    }
}

/* NULL when the key is missing or null. */
const cJSON *
cm_json_get(const cJSON *object, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsNull(value) ? NULL : value;
}

/* Whether it is a whole number from 0 to 2^53. */
static bool
is_whole(const cJSON *value)
{
    double number = cJSON_IsNumber(value) ? value->valuedouble : -1;

    return number >= 0 && number <= (double)CM_MOST_NUMBER
           && (double)(uint64_t)number == number;
}

uint64_t
cm_json_number(struct cm_json *self, const cJSON *object, const char *key,
               uint64_t missing)
{
    const cJSON *value = cm_json_get(object, key);

    if (value == NULL) {
        return missing;
    }
    if (!is_whole(value)) {
        cm_json_fail(self, key, "expected a whole number from 0 to 2^53");
        return missing;
    }
    return (uint64_t)value->valuedouble;
}

uint32_t
cm_json_small(struct cm_json *self, const cJSON *object, const char *key)
{
    uint64_t number = cm_json_number(self, object, key, 0);

    if (number > INT32_MAX) {
        cm_json_fail(self, key, "expected a number under 2^31");
    }
    return (uint32_t)number;
}

/* -1 when it is missing, null, or written so. */
int64_t
cm_json_known(struct cm_json *self, const cJSON *object, const char *key)
{
    const cJSON *value = cm_json_get(object, key);

    if (cJSON_IsNumber(value) && value->valuedouble == -1.0) {
        return -1;
    }
    return value == NULL ? -1 : (int64_t)cm_json_number(self, object, key, 0);
}

/* The same for a value that has no key; the place is the list's item. */
int64_t
cm_json_known_value(struct cm_json *self, const cJSON *value)
{
    if (cJSON_IsNull(value)) {
        return -1;
    }
    if (!is_whole(value)) {
        cm_json_fail(self, NULL,
                     "expected whole numbers from 0 to 2^53, or null");
        return -1;
    }
    return (int64_t)value->valuedouble;
}

bool
cm_json_flag(struct cm_json *self, const cJSON *object, const char *key)
{
    const cJSON *value = cm_json_get(object, key);

    if (value != NULL && !cJSON_IsBool(value)) {
        cm_json_fail(self, key, "expected true or false");
    }
    return cJSON_IsTrue(value);
}

/* Made valid UTF-8; id 0 for the empty one. */
static struct cm_text_id
intern(struct cm_json *self, const char *bytes)
{
    struct cm_text_id result = {0};
    enum cm_status status;

    if (bytes[0] == '\0') {
        return result;
    }
    cm_buffer_truncate(&self->text, 0);
    cm_utf8_add_valid(&self->text, bytes, strlen(bytes));
    status = cm_buffer_status(&self->text);
    if (status == CM_OK) {
        status = cm_texts_add(self->texts, self->text.bytes, self->text.length,
                              &result);
    }
    if (status != CM_OK) {
        run_out(self);
    }
    return result;
}

/* Id 0 also when it is missing. */
struct cm_text_id
cm_json_text(struct cm_json *self, const cJSON *object, const char *key)
{
    const cJSON *value = cm_json_get(object, key);

    if (value != NULL && !cJSON_IsString(value)) {
        cm_json_fail(self, key, "expected a text");
        value = NULL;
    }
    return intern(self, value != NULL ? value->valuestring : "");
}

struct cm_text_id
cm_json_text_value(struct cm_json *self, const cJSON *value)
{
    if (!cJSON_IsString(value)) {
        cm_json_fail(self, NULL, "expected a text");
        return (struct cm_text_id){0};
    }
    return intern(self, value->valuestring);
}

struct cm_text_id
cm_json_word(struct cm_json *self, const cJSON *object, const char *key,
             const char *const *words, const char *expected)
{
    struct cm_text_id result = cm_json_text(self, object, key);
    const char *text = cm_texts_get(self->texts, result);

    while (*words != NULL && strcmp(*words, text) != 0) {
        words++;
    }
    if (result.index != 0 && *words == NULL) {
        cm_json_fail(self, key, "expected %s", expected);
    }
    return result;
}

/* A number written as hexadecimal text, with or without 0x. */
uint64_t
cm_json_hex_value(struct cm_json *self, const cJSON *value, const char *key)
{
    const char *text = cJSON_IsString(value) ? value->valuestring : "";
    uint64_t result = 0;
    size_t digits;

    text += strncmp(text, "0x", 2) == 0 ? 2 : 0;
    digits = strspn(text, "0123456789abcdefABCDEF");
    if (digits == 0 || digits > 16 || text[digits] != '\0') {
        cm_json_fail(self, key,
                     "expected a hexadecimal text of 1 to 16 digits");
        return 0;
    }
    sscanf(text, "%" SCNx64, &result);
    return result;
}

uint64_t
cm_json_hex(struct cm_json *self, const cJSON *object, const char *key)
{
    const cJSON *value = cm_json_get(object, key);

    return value != NULL ? cm_json_hex_value(self, value, key) : 0;
}

/* The array under `key`, NULL when it is missing. */
const cJSON *
cm_json_array(struct cm_json *self, const cJSON *object, const char *key)
{
    const cJSON *value = cm_json_get(object, key);

    if (value != NULL && !cJSON_IsArray(value)) {
        cm_json_fail(self, key, "expected an array");
        return NULL;
    }
    return value;
}

void
cm_json_need_array(struct cm_json *self, const char *key)
{
    if (!cJSON_IsArray(cm_json_get(self->root, key))) {
        cm_json_fail(self, key, "expected an array");
    }
}

size_t
cm_json_count(const cJSON *array)
{
    size_t count = 0;
    const cJSON *item;

    cJSON_ArrayForEach(item, array)
    {
        count++;
    }
    return count;
}

/* Room for `count` zeroed items; NULL also for none. */
void *
cm_json_items(struct cm_json *self, size_t count, size_t item_bytes)
{
    void *items = count > 0 ? cm_calloc(count, item_bytes) : NULL;

    if (count > 0 && items == NULL) {
        run_out(self);
    }
    return items;
}

static int
by_id(const void *first, const void *second)
{
    const struct cm_json_id_entry *a = first, *b = second;

    if (a->id != b->id) {
        return a->id < b->id ? -1 : 1;
    }
    return a->position < b->position ? -1 : a->position > b->position;
}

/* Sorted already, as our own writer does it, is the common case. */
static void
sort_ids(struct cm_json *self, struct cm_json_ids *ids)
{
    for (size_t i = 1; i < ids->count; i++) {
        if (by_id(&ids->items[i - 1], &ids->items[i]) > 0) {
            qsort(ids->items, ids->count, sizeof(ids->items[0]), by_id);
            break;
        }
    }
    for (size_t i = 1; i < ids->count; i++) {
        if (ids->items[i - 1].id == ids->items[i].id) {
            self->index = ids->items[i].position - 1;
            cm_json_fail(self, "id", "%s %" PRIu64 " is there twice",
                         ids->noun, ids->items[i].id);
            return;
        }
    }
}

/* Learns the ids of one of the document's arrays and makes room for it. */
void *
cm_json_ids(struct cm_json *self, const char *key, struct cm_json_ids *ids,
            size_t item_bytes, size_t *count)
{
    const cJSON *array = cm_json_array(self, self->root, key), *item;
    size_t needed = cm_json_count(array), position = 0;
    void *items = cm_json_items(self, needed, item_bytes);

    ids->items = cm_json_items(self, needed, sizeof(ids->items[0]));
    if (ids->items == NULL || items == NULL) {
        *count = 0;
        return items;
    }
    self->array = key;
    cJSON_ArrayForEach(item, array)
    {
        self->index = position;
        if (!cJSON_IsObject(item)) {
            cm_json_fail(self, NULL, "expected an object");
        }
        ids->items[position] = (struct cm_json_id_entry){
            cm_json_number(self, item, "id", position + 1),
            (uint32_t)position + 1};
        position++;
    }
    ids->count = position;
    *count = needed;
    sort_ids(self, ids);
    self->array = NULL;
    return items;
}

/* The position of the item with this id; a failure when there is none. */
static uint32_t
find_id(struct cm_json *self, const struct cm_json_ids *ids,
        const cJSON *value, const char *key)
{
    struct cm_json_id_entry wanted = {0};
    size_t low = 0, high = ids->count;

    if (!is_whole(value)) {
        cm_json_fail(self, key, "expected the number of a %s", ids->noun);
        return 0;
    }
    wanted.id = (uint64_t)value->valuedouble;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ids->items[middle].id < wanted.id) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    if (low == ids->count || ids->items[low].id != wanted.id) {
        cm_json_fail(self, key, "%s %" PRIu64 " does not exist", ids->noun,
                     wanted.id);
        return 0;
    }
    return ids->items[low].position;
}

uint32_t
cm_json_id(struct cm_json *self, const cJSON *object, const char *key,
           const struct cm_json_ids *ids, bool needed)
{
    const cJSON *value = cm_json_get(object, key);

    if (value == NULL) {
        if (needed) {
            cm_json_fail(self, key, "expected the number of a %s", ids->noun);
        }
        return 0;
    }
    return find_id(self, ids, value, key);
}

uint32_t *
cm_json_id_list(struct cm_json *self, const cJSON *object, const char *key,
                const struct cm_json_ids *ids, size_t *count)
{
    const cJSON *array = cm_json_array(self, object, key), *item;
    size_t needed = cm_json_count(array), position = 0;
    uint32_t *result = cm_json_items(self, needed, sizeof(*result));

    if (result != NULL) {
        self->list = key;
        cJSON_ArrayForEach(item, array)
        {
            self->item = position;
            result[position++] = find_id(self, ids, item, NULL);
        }
        self->list = NULL;
    }
    *count = position;
    return result;
}

bool
cm_json_is_object(const cJSON *value)
{
    return cJSON_IsObject(value);
}

bool
cm_json_is_array(const cJSON *value)
{
    return cJSON_IsArray(value);
}

const char *
cm_json_string(const cJSON *value)
{
    return cJSON_IsString(value) ? value->valuestring : NULL;
}

const cJSON *
cm_json_first(const cJSON *array)
{
    return array != NULL ? array->child : NULL;
}

const cJSON *
cm_json_next(const cJSON *item)
{
    return item->next;
}

double
cm_json_seconds(struct cm_json *self, const cJSON *object, const char *key)
{
    const cJSON *value = cm_json_get(object, key);

    if (value == NULL) {
        return 0;
    }
    if (!cJSON_IsNumber(value) || !(value->valuedouble >= 0)
        || value->valuedouble > 1e11) {
        cm_json_fail(self, key, "expected seconds since 1970");
        return 0;
    }
    return value->valuedouble;
}

double
cm_json_real(struct cm_json *self, const cJSON *object, const char *key,
             double low, double high, double missing)
{
    const cJSON *value = cm_json_get(object, key);

    if (value == NULL) {
        return missing;
    }
    if (!cJSON_IsNumber(value)
        || !(value->valuedouble >= low && value->valuedouble <= high)) {
        cm_json_fail(self, key, "expected a number from %.16g to %.16g", low,
                     high);
        return missing;
    }
    return value->valuedouble;
}

double
cm_json_value_of(const cJSON *value)
{
    return cJSON_IsNumber(value) ? value->valuedouble : -1;
}

/* How deep brackets outside of texts nest, at most; answers whether one is
 * open at the end. */
static bool
check_depth(struct cm_json *self, const char *bytes, size_t length)
{
    bool in_text = false;
    int depth = 0;

    for (size_t i = 0; i < length; i++) {
        char c = bytes[i];

        if (c == '\\' && in_text) {
            i++;
        }
        else if (c == '"') {
            in_text = !in_text;
        }
        else if (in_text) {
            continue;
        }
        else if (c == '{' || c == '[') {
            depth++;
        }
        else if (c == '}' || c == ']') {
            depth--;
        }
        if (depth > MAX_DEPTH) {
            cm_json_fail(self, NULL, "byte %zu: nested deeper than %d", i,
                         MAX_DEPTH);
            return true;
        }
    }
    return depth > 0;
}

static bool
begins_as_ours(const char *bytes)
{
    static const char start[] = "{\"format\"";

    return strncmp(bytes, start, sizeof(start) - 1) == 0;
}

/* What stands on several lines is more than a value that was cut. */
static bool
is_one_token(const char *bytes, size_t at, size_t length)
{
    return at >= length || memchr(bytes + at, '\n', length - at) == NULL;
}

void
cm_json_parse(struct cm_json *self, const char *bytes, size_t length)
{
    cJSON_Hooks hooks = {allocate, cm_free};
    const char *end = NULL;
    bool is_open;

    if (length > CM_LEAK_JSON_MAX_BYTES) {
        cm_json_fail(self, NULL, "larger than %zu MiB",
                     CM_LEAK_JSON_MAX_BYTES >> 20);
        self->status = CM_LIMIT;
        return;
    }
    is_open = check_depth(self, bytes, length);
    if (self->status != CM_OK) {
        return;
    }
    cJSON_InitHooks(&hooks);
    ran_out = false;
    self->root = cJSON_ParseWithLengthOpts(bytes, length + 1, &end, 1);
    if (self->root == NULL && ran_out) {
        run_out(self);
    }
    else if (self->root == NULL) {
        size_t at = end != NULL ? (size_t)(end - bytes) : 0;
        bool is_cut = is_open && begins_as_ours(bytes)
                      && is_one_token(bytes, at, length);

        at = is_cut ? length : at; /* not where its last value began */
        cm_json_fail(self, NULL,
                     at >= length ? "byte %zu: the file ends too early"
                                  : "byte %zu: this is no JSON; expected a "
                                    "leak.json that cumem wrote",
                     at);
    }
}

void
cm_json_release(struct cm_json *self)
{
    cJSON_Delete(self->root);
    cJSON_InitHooks(NULL);
    self->root = NULL;
    cm_buffer_release(&self->text);
}

void
cm_json_ids_release(struct cm_json_ids *self)
{
    cm_free(self->items);
    *self = (struct cm_json_ids){.noun = self->noun};
}
