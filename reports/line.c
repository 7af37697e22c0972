/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A line of text with its columns.  Every text goes through
 * cm_utf8_add_harmless() first, so that what is counted is what is shown;
 * escape sequences for colour come from here only and are not counted. */
#include "line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../detector/alloc.h"
#include "utf8.h"

void
cm_line_release(struct cm_line *self)
{
    cm_buffer_release(&self->text);
}

void
cm_line_end(struct cm_line *self)
{
    cm_buffer_add_char(self->out, '\n');
    self->columns = 0;
    if (self->out->status == CM_OK) {
        self->out->status = self->text.status;
    }
}

/* Adds harmless text. */
static void
add_painted(struct cm_line *self, enum cm_paint paint, const char *text)
{
    static const char *const codes[] = {[CM_PAINT_TITLE] = "\x1b[1;31m",
                                        [CM_PAINT_LABEL] = "\x1b[1m",
                                        [CM_PAINT_SUSPECT] = "\x1b[1;31m",
                                        [CM_PAINT_PLACE] = "\x1b[36m",
                                        [CM_PAINT_QUIET] = "\x1b[2m"};
    bool painted = self->colour && paint != CM_PAINT_NONE;

    self->columns += cm_utf8_columns(text);
    if (painted) {
        cm_buffer_add_text(self->out, codes[paint]);
    }
    cm_buffer_add_text(self->out, text);
    if (painted) {
        cm_buffer_add_text(self->out, "\x1b[0m");
    }
}

/* The text, harmless, in self->text. */
static const char *
make_harmless(struct cm_line *self, const char *text)
{
    if (self->text.status == CM_OK) {
        cm_buffer_clear(&self->text);
    }
    cm_utf8_add_harmless(&self->text, text);
    return cm_buffer_text(&self->text);
}

void
cm_line_add(struct cm_line *self, enum cm_paint paint, const char *text)
{
    add_painted(self, paint, make_harmless(self, text));
}

void
cm_line_addf(struct cm_line *self, enum cm_paint paint, const char *format,
             ...)
{
    char text[160];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    cm_line_add(self, paint, text);
}

/* Runs of white space to one space, none at the start or the end. */
static void
squeeze(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        bool space = strchr(" \t\r\n\f\v", *from) != NULL;

        if (!space) {
            *to++ = *from;
        }
        else if (to > text && to[-1] != ' ') {
            *to++ = ' ';
        }
    }
    if (to > text && to[-1] == ' ') {
        to--;
    }
    *to = '\0';
}

/* The longest start of `text` that has at most `columns`. */
static size_t
fitting(const char *text, long columns)
{
    const size_t longest = 4; /* bytes of one character */
    const char *at = text;

    while (*at != '\0') { /* the text may go on far beyond */
        const char *next = at, *end = at + strnlen(at, longest);

        columns -= cm_utf8_width(cm_utf8_next(&next, end));
        if (columns < 0) {
            break;
        }
        at = next;
    }
    return (size_t)(at - text);
}

void
cm_line_add_cut(struct cm_line *self, const char *text, long reserve)
{
    long room = CM_LINE_WIDTH - self->columns - reserve;
    char *squeezed = cm_strdup(text);
    const char *shown;

    if (squeezed == NULL) {
        self->out->status =
            self->out->status == CM_OK ? CM_NO_MEMORY : self->out->status;
        return;
    }
    squeeze(squeezed);
    shown = make_harmless(self, squeezed);
    room = room < 10 ? 10 : room;
    if (cm_utf8_columns(shown) > room) {
        cm_buffer_truncate(&self->text, fitting(shown, room - 3));
        cm_buffer_add_text(&self->text, "...");
        shown = cm_buffer_text(&self->text);
    }
    add_painted(self, CM_PAINT_NONE, shown);
    cm_free(squeezed);
}

/* Where to break `text` so that its start has at most `columns`: behind the
 * last word that fits, or behind the first word when none does. */
static size_t
break_at(const char *text, long columns)
{
    size_t fits = fitting(text, columns), at;

    if (text[fits] == '\0') {
        return fits;
    }
    for (at = fits; at > 0 && text[at] != ' '; at--) {
    }
    return at > 0 ? at : fits + strcspn(text + fits, " ");
}

void
cm_line_add_wrapped(struct cm_line *self, const char *text, long indent)
{
    char *rest;

    make_harmless(self, text);
    rest = self->text.bytes;
    while (rest != NULL && *rest != '\0') {
        size_t length = break_at(rest, CM_LINE_WIDTH - self->columns);
        char *next = rest + length;
        bool more = *next == ' ';

        *next = '\0';
        add_painted(self, CM_PAINT_NONE, rest);
        rest = next;
        if (more) {
            rest++;
            cm_line_end(self);
            cm_line_fill(self, indent);
        }
    }
}

void
cm_line_fill(struct cm_line *self, long column)
{
    long spaces = column - self->columns;

    spaces = spaces > 0 ? spaces : 1;
    cm_buffer_add_fill(self->out, ' ', spaces);
    self->columns += spaces;
}
