/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * UTF-8 after RFC 3629 (table 3-7 of the Unicode standard for well-formed
 * bytes).  Harmless means: no C0 or C1 control, no bidirectional control
 * (Unicode TR 9, "Trojan Source"), nothing invisible.  Cost: linear. */
#include "utf8.h"

#include <string.h>

struct range {
    uint32_t first, last;
};

static bool
within(const struct range *ranges, size_t count, uint32_t character)
{
    for (size_t i = 0; i < count && character >= ranges[i].first; i++) {
        if (character <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

/* Bytes of the sequence that a first byte opens; 0 for none. */
static int
sequence_length(unsigned char first)
{
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xC2 || first > 0xF4) {
        return 0;
    }
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

uint32_t
cm_utf8_next(const char **cursor, const char *end)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)*cursor;
    int length = sequence_length(bytes[0]);
    uint32_t character;

    *cursor += 1;
    if (length == 0 || length > end - (const char *)bytes) {
        return CM_UTF8_REPLACEMENT;
    }
    character = length == 1 ? bytes[0] : bytes[0] & (0xFFu >> (length + 1));
    for (int i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80) {
            return CM_UTF8_REPLACEMENT;
        }
        character = character << 6 | (bytes[i] & 0x3Fu);
    }
    if (character < smallest[length] || character > 0x10FFFF
        || (character >= 0xD800 && character <= 0xDFFF)) {
        return CM_UTF8_REPLACEMENT;
    }
    *cursor += length - 1;
    return character;
}

void
cm_utf8_add(struct cm_buffer *out, uint32_t character)
{
    char bytes[4];
    size_t length = 1;

    if (character < 0x80) {
        bytes[0] = (char)character;
    }
    else if (character < 0x800) {
        bytes[0] = (char)(0xC0 | character >> 6);
        length = 2;
    }
    else if (character < 0x10000) {
        bytes[0] = (char)(0xE0 | character >> 12);
        length = 3;
    }
    else {
        bytes[0] = (char)(0xF0 | character >> 18);
        length = 4;
    }
    for (size_t i = 1; i < length; i++) {
        bytes[i] = (char)(0x80 | (character >> 6 * (length - 1 - i) & 0x3F));
    }
    cm_buffer_add(out, bytes, length);
}

bool
cm_utf8_valid(const char *bytes, size_t length)
{
    const char *end = bytes + length;

    while (bytes < end) {
        const char *start = bytes;

        if (cm_utf8_next(&bytes, end) == CM_UTF8_REPLACEMENT
            && bytes - start != 3) {
            return false;
        }
    }
    return true;
}

bool
cm_utf8_harmless(uint32_t character)
{
    static const struct range harmful[] = {
        {0x00, 0x1F},       {0x7F, 0x9F},     {0xAD, 0xAD},
        {0x61C, 0x61C},     {0x180E, 0x180E}, {0x200B, 0x200F},
        {0x2028, 0x202E},   {0x2060, 0x206F}, {0xD800, 0xDFFF},
        {0xFDD0, 0xFDEF},   {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB},
        {0xE0000, 0xE0FFF},
    };

    return character <= 0x10FFFF && (character & 0xFFFE) != 0xFFFE
           && !within(harmful, sizeof(harmful) / sizeof(harmful[0]),
                      character);
}

int
cm_utf8_width(uint32_t character)
{
    static const struct range combining[] = {
        {0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},
        {0x64B, 0x65F},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF},
        {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
    };
    static const struct range wide[] = {
        {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},
        {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
        {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
        {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
    };

    if (within(combining, sizeof(combining) / sizeof(combining[0]),
               character)) {
        return 0;
    }
    return within(wide, sizeof(wide) / sizeof(wide[0]), character) ? 2 : 1;
}

void
cm_utf8_add_valid(struct cm_buffer *out, const char *bytes, size_t length)
{
    const char *end = bytes + length;

    if (cm_utf8_valid(bytes, length)) {
        cm_buffer_add(out, bytes, length);
        return;
    }
    while (bytes < end) {
        cm_utf8_add(out, cm_utf8_next(&bytes, end));
    }
}

void
cm_utf8_add_harmless(struct cm_buffer *out, const char *text)
{
    const char *end = text + strlen(text);

    while (text < end) {
        uint32_t character = cm_utf8_next(&text, end);

        if (cm_utf8_harmless(character)) {
            cm_utf8_add(out, character);
        }
        else if (character < 0x100) {
            cm_buffer_addf(out, "\\x%02x", character);
        }
        else {
            cm_buffer_addf(out, "\\u%04x", character);
        }
    }
}

long
cm_utf8_columns(const char *text)
{
    const char *end = text + strlen(text);
    long columns = 0;

    while (text < end) {
        columns += cm_utf8_width(cm_utf8_next(&text, end));
    }
    return columns;
}
