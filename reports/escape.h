/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ESCAPE_H
#define CM_ESCAPE_H

/* Text of a traced program made safe for a page and for a drawing.  Names in
 * a report are chosen by whoever wrote the program: nothing of them may become
 * markup, break the XML, or turn the direction of the text around it. */

#include <stddef.h>

#include "../detector/status.h"

struct cm_buffer;

/* Characters kept of a label; more end in an ellipsis. */
#define CM_LABEL_MAX 120
/* Bytes that a cleaned label needs at most, its NUL included. */
#define CM_LABEL_BYTES (4 * CM_LABEL_MAX + 4)

/* Appends `text` as the content of an element or of a quoted attribute. Bytes
 * that are no UTF-8, and characters that XML or HTML does not allow, become
 * U+FFFD; invisible direction marks become U+FFFD too.  A line break is kept. */
enum cm_status cm_escape_html(struct cm_buffer *out,
                              const char *text) CM_CHECKED;

/* The label as valid XML text: UTF-8 without control characters, surrogates
 * and noncharacters, at most CM_LABEL_MAX characters.  Nothing is escaped. */
void cm_label_clean(const char *text, char result[CM_LABEL_BYTES]);

/* As cm_label_clean, with `&` and a backslash guarded: Graphviz reads `&#1;`
 * in a label as a character and `\n`, `\N`, `\G` as commands.  `size` bytes of
 * room suffice when size >= CM_LABEL_GUARDED_BYTES. */
#define CM_LABEL_GUARDED_BYTES (5 * CM_LABEL_MAX + 4)
void cm_label_guard(const char *text, char result[CM_LABEL_GUARDED_BYTES]);

#endif
