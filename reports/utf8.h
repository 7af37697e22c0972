/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_UTF8_H
#define CM_UTF8_H

/* Text from a traced process is not to be trusted: it may be no UTF-8, and it
 * may hold what a terminal obeys or what turns a line around.  This is the
 * place where such text becomes harmless. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

#define CM_UTF8_REPLACEMENT 0xFFFDu

/* Decodes one character and moves *cursor behind it.  Ill-formed bytes
 * (surrogates and overlong forms too) give CM_UTF8_REPLACEMENT, one byte at a
 * time.  Before: *cursor < end. */
uint32_t cm_utf8_next(const char **cursor, const char *end);
void cm_utf8_add(struct cm_buffer *out, uint32_t character);

bool cm_utf8_valid(const char *bytes, size_t length);
/* False for what must not reach a terminal or an XML text: control
 * characters, bidirectional marks and overrides, line separators, invisible
 * format characters, non-characters. */
bool cm_utf8_harmless(uint32_t character);
/* Columns on a terminal: 0 for combining marks, 2 for wide East Asian. */
int cm_utf8_width(uint32_t character);

/* Adds valid UTF-8: each ill-formed byte becomes U+FFFD. */
void cm_utf8_add_valid(struct cm_buffer *out, const char *bytes,
                       size_t length);
/* Adds `text` with every harmful character shown as \x1b or \u202e. */
void cm_utf8_add_harmless(struct cm_buffer *out, const char *text);
/* Columns of a harmless text. */
long cm_utf8_columns(const char *text);

#endif
