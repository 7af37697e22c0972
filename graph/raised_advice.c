/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The sentences about exceptions and frames.  All references that keep the
 * same exception stand in one: who clears the first alone runs again for
 * nothing.  O(1), and one look for the line of each of a few locals. */

#include "advice.h"

#include <stdio.h>
#include <string.h>

#include "advice_private.h"
#include "name.h"

struct text {
    char bytes[512];
};

static void
add(struct text *text, const char *before, const char *word, const char *after)
{
    size_t length = strlen(text->bytes);

    snprintf(text->bytes + length, sizeof text->bytes - length, "%s%s%s",
             before, word, after);
}

static struct cm_code_id
code_of(const struct cm_cycle *cycle, uint32_t edge)
{
    return cm_cycle_node(cycle, cm_cycle_edge(cycle, edge)->tail)->code;
}

static bool
is_local(const struct cm_cycle *cycle, uint32_t edge)
{
    return cm_cycle_edge(cycle, edge)->role == CM_LOCAL;
}

/* Whether a local of the same function stands before `at`, or one of that
 * name too. */
static bool
stands_before(const struct cm_cycle *cycle, const uint32_t *edges, uint32_t at,
              bool named)
{
    struct cm_text_id label = cm_cycle_edge(cycle, edges[at])->label;

    for (uint32_t i = 0; i < at; i++) {
        if (is_local(cycle, edges[i])
            && code_of(cycle, edges[i]).index
                   == code_of(cycle, edges[at]).index
            && (!named
                || cm_text_same(cm_cycle_edge(cycle, edges[i])->label,
                                label))) {
            return true;
        }
    }
    return false;
}

/* "`finally: a = b = None` in f", of the locals of one function, which may return
 * or raise before its end, and before one of them is set. */
static void
add_deletion(const struct cm_cycle *cycle, const uint32_t *edges,
             uint32_t count, uint32_t first, struct text *text)
{
    struct cm_code_id code = code_of(cycle, edges[first]);
    const char *before = "`finally: ";

    for (uint32_t i = first; i < count; i++) {
        if (is_local(cycle, edges[i])
            && code_of(cycle, edges[i]).index == code.index
            && !stands_before(cycle, edges, i, true)) {
            add(text, before, cm_cycle_edge_name(cycle, edges[i]).text, "");
            before = " = ";
        }
    }
    add(text, " = None` in ", cm_name_of_callable(cycle->records, code).text,
        "");
}

static struct text
deletions(const struct cm_cycle *cycle, const struct cm_suspect *suspect)
{
    uint32_t edges[1 + CM_MAX_ALSO] = {suspect->held};
    uint32_t count = 1 + suspect->also_count;
    struct text text = {""};

    memcpy(edges + 1, suspect->also, sizeof suspect->also);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_local(cycle, edges[i])) {
            add(&text, " and set .", cm_cycle_edge_name(cycle, edges[i]).text,
                " = None when done");
        }
        else if (!stands_before(cycle, edges, i, false)) {
            add(&text, i > 0 ? " and " : "", "", "");
            add_deletion(cycle, edges, count, i, &text);
        }
    }
    return text;
}

/* " (kept: file.py:12)" of a local that is told beside the first. */
static void
add_line(const struct cm_cycle *cycle, uint32_t edge, struct text *text)
{
    struct cm_suspect other =
        cm_suspect_of(edge, 0, edge, cm_cycle_edge(cycle, edge)->tail);
    struct cm_made_line line =
        cm_made_line_of(cycle, cm_made_by_local, &other);

    if (line.text[0] != '\0') {
        add(text, text->bytes[0] == '\0' ? " (" : ", ",
            cm_cycle_edge_name(cycle, edge).text, ": ");
        add(text, line.text, "", "");
    }
}

static struct text
lines(const struct cm_cycle *cycle, const struct cm_suspect *suspect)
{
    struct text text = {""};

    for (uint32_t i = 0; i < suspect->also_count; i++) {
        if (is_local(cycle, suspect->also[i])) {
            add_line(cycle, suspect->also[i], &text);
        }
    }
    if (text.bytes[0] != '\0') {
        add(&text, ")", "", "");
    }
    return text;
}

char *
cm_advise_exception(const struct cm_cycle *cycle,
                    const struct cm_suspect *suspect,
                    const struct cm_made *made)
{
    uint32_t value = cm_cycle_edge(cycle, suspect->held)->head;

    (void)made;
    return cm_sentence("%s: %s keeps the frame, and the frame keeps it%s",
                       deletions(cycle, suspect).bytes,
                       cm_cycle_is_library_object(cycle, value)
                           ? "its exception"
                           : "the exception",
                       lines(cycle, suspect).bytes);
}

char *
cm_advise_frame(const struct cm_cycle *cycle, const struct cm_suspect *suspect,
                const struct cm_made *made)
{
    (void)made;
    return cm_sentence("%s: a frame in its own local keeps every local "
                       "alive%s",
                       deletions(cycle, suspect).bytes,
                       lines(cycle, suspect).bytes);
}

/* The line that keeps it has taken its traceback off already. */
static bool
is_without_traceback(const struct cm_cycle *cycle, const struct cm_made *made)
{
    bool found = false;

    for (uint32_t i = 0; i < made->place_count; i++) {
        const struct cm_code *code =
            cm_records_code(cycle->records, made->places[i].code);

        for (uint32_t k = 0; k < code->store_count; k++) {
            const struct cm_store *store = &code->stores[k];

            found |= store->kind == CM_STORE_CALL
                     && store->line == made->places[i].line
                     && strcmp(cm_records_text(cycle->records, store->name),
                               "with_traceback")
                            == 0;
        }
    }
    return found;
}

static char *
advise_exception_on_object(const struct cm_cycle *cycle, uint32_t value,
                           const struct cm_made *made, const char *attribute,
                           const char *type)
{
    if (cm_name_ends_with(cm_advice_type_name(cycle, value).text,
                          "ExceptionGroup")) {
        return cm_sentence("keep `str(e)` in .%s, or set .%s = None when "
                           "done: the exceptions in the group have tracebacks "
                           "of their own, which keep a frame that keeps the "
                           "%s",
                           attribute, attribute, type);
    }
    if (is_without_traceback(cycle, made)) {
        return cm_sentence("set .%s = None where it is raised again "
                           "(`finally:`): that gives it a traceback, which "
                           "keeps a frame that keeps the %s",
                           attribute, type);
    }
    return cm_sentence("store the exception's with_traceback(None) in "
                       ".%s, or set .%s = None when done: its traceback "
                       "keeps a frame that keeps the %s",
                       attribute, attribute, type);
}

char *
cm_advise_kept_exception(const struct cm_cycle *cycle,
                         const struct cm_suspect *suspect,
                         const struct cm_made *made)
{
    struct cm_name attribute = cm_cycle_edge_name(cycle, suspect->held);
    uint32_t value = cm_cycle_edge(cycle, suspect->held)->head;
    struct cm_name type = cm_name_of_type(
        cycle->records, cm_cycle_node(cycle, suspect->owner)->type);

    if (cm_cycle_node(cycle, value)->species == CM_EXCEPTION) {
        return advise_exception_on_object(cycle, value, made, attribute.text,
                                          type.text);
    }
    bool clears = cm_advice_can_be_cleared(cycle, suspect->held);
    return cm_sentence(
        "%s .%s%s when done: the traceback of an exception in it keeps a "
        "frame that keeps the %s",
        clears ? "clear" : "set", attribute.text, clears ? "" : " = None",
        type.text);
}
