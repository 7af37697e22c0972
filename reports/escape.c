/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Cleaning by decoding: each text is read as UTF-8, character by character,
 * and written again, so that nothing passes that was not looked at.  Linear
 * time, memory only in the buffer.  What XML admits as a character:
 * https://www.w3.org/TR/xml/#charsets (a subset of utf8.h's harmless). */
#include "escape.h"

#include <stdbool.h>
#include <string.h>

#include "utf8.h"

enum form {
    FORM_MARKUP,
    FORM_GRAPHVIZ,
};

/* What stands for a markup character; NULL: itself. */
static const char *
entity(uint32_t character, enum form form)
{
    if (form == FORM_GRAPHVIZ) {
        return character == '&' ? "&amp;" : character == '\\' ? "\\\\" : NULL;
    }
    switch (character) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

static void
add_visible(struct cm_buffer *out, uint32_t character, enum form form)
{
    const char *backslash = form == FORM_GRAPHVIZ ? "\\\\" : "\\";
    const char *substitute = entity(character, form);

    if (substitute != NULL) {
        cm_buffer_add_text(out, substitute);
    }
    else if (cm_utf8_harmless(character)) {
        cm_utf8_add(out, character);
    }
    else {
        cm_buffer_addf(out, character < 0x100 ? "%sx%02x" : "%su%04x",
                       backslash, character);
    }
}

void
cm_escape_html_part(struct cm_buffer *out, const char *text, size_t length)
{
    const char *end = text + length;

    while (text < end) {
        uint32_t character = cm_utf8_next(&text, end);

        if (character == '\n' || character == '\t') {
            cm_buffer_add_char(out, (char)character);
        }
        else {
            add_visible(out, character, FORM_MARKUP);
        }
    }
}

void
cm_escape_html(struct cm_buffer *out, const char *text)
{
    cm_escape_html_part(out, text, strlen(text));
}

/* The next character of a label of at most `most`: breaks are spaces, and the
 * last one is an ellipsis where more would follow. */
static uint32_t
label_next(const char **text, const char *end, size_t *most)
{
    uint32_t character = cm_utf8_next(text, end);

    *most -= 1;
    if (*most == 0 && *text < end) {
        *text = end;
        return 0x2026;
    }
    return character == '\n' || character == '\t' ? ' ' : character;
}

static void
add_label(struct cm_buffer *out, const char *text, size_t most, enum form form)
{
    const char *end = text + strlen(text);

    while (text < end && most > 0) {
        add_visible(out, label_next(&text, end, &most), form);
    }
}

void
cm_escape_html_label(struct cm_buffer *out, const char *text, size_t most)
{
    add_label(out, text, most, FORM_MARKUP);
}

void
cm_escape_graphviz(struct cm_buffer *out, const char *text)
{
    add_label(out, text, CM_LABEL_MAX, FORM_GRAPHVIZ);
}

long
cm_escape_columns(const char *text, size_t most)
{
    const char *end = text + strlen(text);
    long columns = 0;

    while (text < end && most > 0) {
        uint32_t character = label_next(&text, end, &most);

        columns += cm_utf8_harmless(character) ? cm_utf8_width(character)
                   : character < 0x100         ? 4
                                               : 6;
    }
    return columns;
}
