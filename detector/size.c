/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Sizes in text, in whole numbers only: rounding is half up in tenths, so
 * that the same bytes give the same text everywhere. */
#include "size.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "number.h"

static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))

/* Tenths of the unit, rounded half up; never overflows. */
static uint64_t
tenths_of(uint64_t bytes, size_t unit)
{
    uint64_t size = (uint64_t)1 << 10 * unit;
    uint64_t rest = bytes % size;

    return bytes / size * 10
           + (unit == 0 ? 0 : (rest / 2 * 10 + size / 4) / (size / 2));
}

/* The largest unit in which the size reads as 1 or more. */
static size_t
unit_of(uint64_t bytes)
{
    size_t unit = 0;

    while (unit + 1 < UNIT_COUNT
           && (unit == 0 ? bytes >= 1024 : tenths_of(bytes, unit) >= 10235)) {
        unit++;
    }
    return unit;
}

/* Returns the end, where a NUL stands. */
static char *
put_number(char *to, uint64_t number)
{
    char digits[24], *first = digits + sizeof(digits);

    *--first = '\0';
    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return stpcpy(to, first);
}

/* Without printf: each tensor of a frozen heap has its size in its label, and
 * that took two thousand instructions. */
void
cm_size_format(uint64_t bytes, char result[CM_SIZE_TEXT_BYTES])
{
    size_t unit = unit_of(bytes);
    uint64_t tenths = tenths_of(bytes, unit);
    bool is_small = unit != 0 && tenths < 100;
    char *end = put_number(result, unit == 0  ? bytes
                                   : is_small ? tenths / 10
                                              : (tenths + 5) / 10);

    if (is_small) {
        *end = '.';
        end = put_number(end + 1, tenths % 10);
    }
    *end = ' ';
    strcpy(end + 1, units[unit]);
}

void
cm_size_format_short(uint64_t bytes, char result[CM_SIZE_TEXT_BYTES])
{
    char *zero;

    cm_size_format(bytes, result);
    zero = strstr(result, ".0 ");
    if (zero != NULL) {
        memmove(zero, zero + 2, strlen(zero + 2) + 1);
    }
}

void
cm_size_format_of(uint64_t bytes, uint64_t total,
                  char result[CM_SIZE_TEXT_BYTES])
{
    size_t unit = unit_of(bytes > total ? bytes : total);
    uint64_t part = tenths_of(bytes, unit), whole = tenths_of(total, unit);
    char small[CM_SIZE_TEXT_BYTES];

    if (unit == 0) {
        snprintf(result, CM_SIZE_TEXT_BYTES, "%" PRIu64 " of %" PRIu64 " B",
                 bytes, total);
    }
    else if (part == 0 && bytes > 0) {
        cm_size_format(bytes, small);
        snprintf(result, CM_SIZE_TEXT_BYTES,
                 "%.15s of %" PRIu64 ".%" PRIu64 " %s", small, whole / 10,
                 whole % 10, units[unit]);
    }
    else {
        snprintf(result, CM_SIZE_TEXT_BYTES,
                 "%" PRIu64 ".%" PRIu64 " of %" PRIu64 ".%" PRIu64 " %s",
                 part / 10, part % 10, whole / 10, whole % 10, units[unit]);
    }
}

/* Bytes of one unit, 0 when the text names none. */
static uint64_t
unit_bytes(const char *text)
{
    static const char letters[] = "KMGT";
    const char *letter;
    uint64_t decimal = 1000, binary = 1024;

    if (text[0] == '\0' || strcasecmp(text, "B") == 0) {
        return 1;
    }
    letter = strchr(letters, text[0] & ~0x20);
    if (letter == NULL) {
        return 0;
    }
    for (long i = letter - letters; i > 0; i--) {
        decimal *= 1000;
        binary *= 1024;
    }
    if (text[1] == '\0' || strcasecmp(text + 1, "iB") == 0) {
        return binary;
    }
    return strcasecmp(text + 1, "B") == 0 ? decimal : 0;
}

enum cm_status
cm_size_parse(const char *text, uint64_t *result)
{
    uint64_t whole = 0, part = 0, scale = 1, unit;
    const char *digits = text;

    for (; *text >= '0' && *text <= '9'; text++) {
        whole = whole * 10 + (uint64_t)(*text - '0');
        if (whole > CM_MOST_NUMBER) {
            return CM_BAD_INPUT;
        }
    }
    if (text == digits) {
        return CM_BAD_INPUT;
    }
    if (text[0] == '.' && text[1] >= '0' && text[1] <= '9') {
        for (text++; *text >= '0' && *text <= '9'; text++) {
            if (scale < 1000) {
                part = part * 10 + (uint64_t)(*text - '0');
                scale *= 10;
            }
        }
    }
    text += strspn(text, " ");
    unit = unit_bytes(text);
    if (unit == 0 || whole > CM_MOST_NUMBER / unit
        || (scale > 1 && unit == 1)) {
        return CM_BAD_INPUT;
    }
    whole = whole * unit + part * unit / scale;
    if (whole > CM_MOST_NUMBER) {
        return CM_BAD_INPUT;
    }
    *result = whole;
    return CM_OK;
}
