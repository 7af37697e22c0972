/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "shape.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ELEMENTS (UINT64_C(1) << 48)
#define MOST_BITS 128u /* complex128 */

/* `*text` goes on to what follows "]"; 0: none, or no such text. */
static uint64_t
count_elements(const char **text)
{
    const char *at = *text;
    uint64_t elements = 1;
    if (*at != '[') {
        return 0;
    }
    while (*at != ']') {
        char *end;
        uint64_t size = strtoull(at + 1, &end, 10);
        if (end == at + 1 || size > MOST_ELEMENTS / elements) {
            return 0;
        }
        elements *= size;
        at = *end == ',' ? end + 1 : end;
        if (elements == 0 || (*at != ']' && *at != ' ')) {
            return 0;
        }
    }
    *text = at + 1;
    return elements;
}

/* "float32", "uint8", "float8_e4m3fn": the first number says it. */
static uint64_t
bits_of(const char *dtype)
{
    if (strncmp(dtype, "bool", 4) == 0) {
        return 8;
    }
    uint64_t bits = strtoull(dtype + strcspn(dtype, "0123456789"), NULL, 10);
    return bits <= MOST_BITS ? bits : 0;
}

uint64_t
cm_shape_bytes(const char *text)
{
    uint64_t elements = count_elements(&text);
    return *text == ' ' ? elements * bits_of(text + 1) / 8 : 0;
}
