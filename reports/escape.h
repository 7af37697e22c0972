/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_ESCAPE_H
#define CM_ESCAPE_H

/* Text of a traced program made safe for a page and for a drawing.  Names in
 * a report are chosen by whoever wrote the program: nothing of them may become
 * markup, break the XML, or turn the direction of the text around it.
 *
 * What may not be shown (utf8.h) is written as \x1b or \u202e, so that the
 * page says the same as the text. */

#include <stddef.h>

#include "buffer.h"

/* Characters kept of a label; more end in an ellipsis. */
#define CM_LABEL_MAX 120

/* Appends `text` as the content of an element or of a quoted attribute, of
 * HTML or XML.  Line breaks and tabs are kept. */
void cm_escape_html(struct cm_buffer *out, const char *text);
void cm_escape_html_part(struct cm_buffer *out, const char *text,
                         size_t length);
/* One line of it, at most `most` characters. */
void cm_escape_html_label(struct cm_buffer *out, const char *text,
                          size_t most);

/* Appends a label as Graphviz takes it, at most CM_LABEL_MAX characters: it
 * reads `&#1;` in a label as a character and a backslash as a command, so both
 * are guarded. */
void cm_escape_graphviz(struct cm_buffer *out, const char *text);

/* Columns that cm_escape_html_label(text, most) takes in a monospace font. */
long cm_escape_columns(const char *text, size_t most);

#endif
