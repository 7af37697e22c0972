/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LINE_H
#define CM_LINE_H

/* One line of text for a terminal, with its columns counted: made harmless,
 * cut or wrapped at a width, in colour or not. */

#include <stdbool.h>

#include "buffer.h"

#define CM_LINE_WIDTH 80

enum cm_paint {
    CM_PAINT_NONE = 0,
    CM_PAINT_TITLE,   /* of a finding */
    CM_PAINT_LABEL,   /* cut, fix, path, alloc */
    CM_PAINT_SUSPECT, /* the edge to cut */
    CM_PAINT_PLACE,   /* FILE:LINE */
    CM_PAINT_QUIET,
};

struct cm_line {
    struct cm_buffer *out; /* borrowed */
    struct cm_buffer text; /* owned: what is being measured */
    long columns;          /* of this line so far */
    bool colour;
};

void cm_line_release(struct cm_line *self);
/* Ends the line. */
void cm_line_end(struct cm_line *self);

void cm_line_add(struct cm_line *self, enum cm_paint paint, const char *text);
void cm_line_addf(struct cm_line *self, enum cm_paint paint,
                  const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* As much of the text as leaves `reserve` columns free, "..." where some was
 * left out; white space runs become one space. */
void cm_line_add_cut(struct cm_line *self, const char *text, long reserve);
/* The whole text, wrapped between words to lines with `indent` spaces. */
void cm_line_add_wrapped(struct cm_line *self, const char *text, long indent);
/* Spaces up to a column; at least one. */
void cm_line_fill(struct cm_line *self, long column);

#endif
