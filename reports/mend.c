/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * `x.a = y` becomes `x.a = weakref.ref(y)`, `x.a = self.m` a WeakMethod, and a
 * lambda gets its captured name through a weak reference; anything less plain,
 * and what the advice does not name, is left alone.  Linear in the line. */
#include "mend.h"

#include <ctype.h>
#include <string.h>

/* Part of a line; nothing is copied. */
struct part {
    const char *bytes;
    size_t length;
};

struct assignment {
    struct part indent, target, value;
};

static bool
in_name(char c)
{
    return c == '_' || isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static bool
is_name(struct part text, bool dots)
{
    for (size_t i = 0; i < text.length; i++) {
        bool dot = dots && text.bytes[i] == '.' && i > 0 && i + 1 < text.length
                   && text.bytes[i - 1] != '.';

        if (!dot && !in_name(text.bytes[i])) {
            return false;
        }
    }
    return text.length > 0 && !isdigit((unsigned char)text.bytes[0]);
}

static bool
has(struct part text, char c)
{
    return memchr(text.bytes, c, text.length) != NULL;
}

/* Whether the text is an expression by itself: brackets closed, no strings
 * (their insides are not looked at), no comment, no second statement. */
static bool
is_whole(struct part text)
{
    int depth = 0;

    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];

        if (strchr("\"'#;\\", c) != NULL) {
            return false;
        }
        depth += c == '(' || c == '[' || c == '{';
        depth -= c == ')' || c == ']' || c == '}';
        if (depth < 0) {
            return false;
        }
    }
    return depth == 0 && text.length > 0 && text.bytes[text.length - 1] != ',';
}

/* `TARGET = VALUE` with a plain name, dotted or not, as target. */
static bool
split(const char *line, struct assignment *result)
{
    size_t indent = strspn(line, " \t");
    const char *target = line + indent, *at = target, *value;
    size_t length;

    while (in_name(*at) || *at == '.') {
        at++;
    }
    result->indent = (struct part){line, indent};
    result->target = (struct part){target, (size_t)(at - target)};
    at += strspn(at, " ");
    if (at[0] != '=' || at[1] == '=') {
        return false;
    }
    value = at + 1 + strspn(at + 1, " ");
    length = strlen(value);
    while (length > 0 && isspace((unsigned char)value[length - 1])) {
        length--;
    }
    result->value = (struct part){value, length};
    return is_name(result->target, true) && is_whole(result->value);
}

static void
add(struct cm_buffer *out, struct part text)
{
    cm_buffer_add(out, text.bytes, text.length);
}

/* INDENT TARGET = CALL(VALUE)  # NOTE */
static void
add_wrapped(struct cm_buffer *out, const struct assignment *line,
            const char *call, const char *use)
{
    add(out, line->indent);
    add(out, line->target);
    cm_buffer_addf(out, " = %s(", call);
    add(out, line->value);
    cm_buffer_add_text(out, ")  # from now on ");
    add(out, line->target);
    cm_buffer_addf(out, "%s\n", use);
}

/* Whether the line sets the attribute that the edge names: ".x" or ['x']. */
static bool
sets(const struct assignment *line, const char *edge)
{
    const char *name = edge + strspn(edge, ".['\"");
    struct part attribute = {name, strcspn(name, "'\"]")};
    const char *end = line->target.bytes + line->target.length;

    return is_name(attribute, false) && attribute.length < line->target.length
           && end[-(long)attribute.length - 1] == '.'
           && memcmp(end - attribute.length, attribute.bytes, attribute.length)
                  == 0;
}

/* The next use of `name` as a variable at or behind `at`; NULL: none. */
static const char *
find_use(struct part text, const char *at, struct part name)
{
    const char *end = text.bytes + text.length;

    for (; at + name.length <= end; at++) {
        bool whole = (at == text.bytes || !in_name(at[-1]))
                     && (at + name.length == end || !in_name(at[name.length]));

        if (whole && (at == text.bytes || at[-1] != '.')
            && memcmp(at, name.bytes, name.length) == 0) {
            return at;
        }
    }
    return NULL;
}

/* `def __init__(self, parent=None):` above the line: NAME, an annotation, and
 * None as the default. */
static bool
may_be_none(const char *before, struct part name)
{
    const char *def = strstr(before, "def "), *at = def;
    struct part text = {def, def != NULL ? strlen(def) : 0};

    while (at != NULL && (at = find_use(text, at, name)) != NULL) {
        at += name.length;
        at += at[0] == ':' ? strcspn(at, "=,)") : strspn(at, " ");
        if (at[0] == '='
            && strncmp(at + 1 + strspn(at + 1, " "), "None", 4) == 0) {
            return true;
        }
    }
    return false;
}

/* x.a() is None, too, where no object was given. */
static void
add_guarded(struct cm_buffer *out, const struct assignment *line)
{
    add(out, line->indent);
    add(out, line->target);
    cm_buffer_add_text(out, " = weakref.ref(");
    add(out, line->value);
    cm_buffer_add_text(out, ") if ");
    add(out, line->value);
    cm_buffer_add_text(out, " is not None else lambda: None  # from now on ");
    add(out, line->target);
    cm_buffer_add_text(out, "()\n");
}

static enum cm_mend
mend_link(struct cm_buffer *out, const struct assignment *line,
          const struct cm_mend_case *fault)
{
    if (!sets(line, fault->edge) || !is_name(line->value, true)) {
        return CM_MEND_NONE;
    }
    if (may_be_none(fault->before, line->value)) {
        add_guarded(out, line);
    }
    else {
        add_wrapped(out, line, "weakref.ref", "()");
    }
    return CM_MEND_REPLACE;
}

static enum cm_mend
mend_method(struct cm_buffer *out, const struct assignment *line)
{
    if (!has(line->value, '.') || !is_name(line->value, true)) {
        return CM_MEND_NONE;
    }
    add_wrapped(out, line, "weakref.WeakMethod", "()(...)");
    return CM_MEND_REPLACE;
}

/* The body with every use of the name called through its weak reference. */
static void
add_body(struct cm_buffer *out, struct part body, struct part name)
{
    const char *at = body.bytes, *use;

    while ((use = find_use(body, at, name)) != NULL) {
        cm_buffer_add(out, at, (size_t)(use - at));
        add(out, name);
        cm_buffer_add_text(out, "_ref()");
        at = use + name.length;
    }
    cm_buffer_add(out, at, (size_t)(body.bytes + body.length - at));
}

static enum cm_mend
mend_lambda(struct cm_buffer *out, const struct assignment *line,
            const char *edge)
{
    struct part name = {edge + 5, strlen(edge) - 5}, head, body;
    const char *colon;

    if (strncmp(line->value.bytes, "lambda", 6) != 0
        || !is_name(name, false)) {
        return CM_MEND_NONE;
    }
    colon = memchr(line->value.bytes, ':', line->value.length);
    if (colon == NULL) {
        return CM_MEND_NONE;
    }
    head =
        (struct part){line->value.bytes, (size_t)(colon - line->value.bytes)};
    body = (struct part){colon, line->value.length - head.length};
    if (find_use(head, head.bytes, name) != NULL
        || find_use(body, body.bytes, name) == NULL || has(head, '=')) {
        return CM_MEND_NONE;
    }
    add(out, line->indent);
    cm_buffer_addf(out, "%.*s_ref = weakref.ref(%.*s)\n", (int)name.length,
                   name.bytes, (int)name.length, name.bytes);
    add(out, line->indent);
    add(out, line->target);
    cm_buffer_add_text(out, " = ");
    add(out, head);
    add_body(out, body, name);
    cm_buffer_add_char(out, '\n');
    return CM_MEND_REPLACE;
}

static enum cm_mend
mend_local(struct cm_buffer *out, const char *edge, const char *source)
{
    const char *name = edge + 6;

    if (!is_name((struct part){name, strlen(name)}, false)) {
        return CM_MEND_NONE;
    }
    cm_buffer_add(out, source, strspn(source, " \t"));
    cm_buffer_addf(
        out, "%s = None  # in a finally, at the end of the function\n", name);
    return CM_MEND_AFTER;
}

static bool
is_rule(const struct cm_mend_case *fault, const char *rule)
{
    return strcmp(fault->rule, rule) == 0;
}

static bool
advises(const struct cm_mend_case *fault, const char *what)
{
    return strstr(fault->advice, what) != NULL;
}

enum cm_mend
cm_mend_line(struct cm_buffer *out, const struct cm_mend_case *fault)
{
    struct assignment line;

    if (strncmp(fault->edge, "local ", 6) == 0
        && (is_rule(fault, "exception_in_frame")
            || is_rule(fault, "frame_in_local"))) {
        return mend_local(out, fault->edge, fault->source);
    }
    if (!split(fault->source, &line)) {
        return CM_MEND_NONE;
    }
    if ((is_rule(fault, "back_link") || is_rule(fault, "self_reference"))
        && advises(fault, "a weakref.ref")) {
        return mend_link(out, &line, fault);
    }
    if (is_rule(fault, "bound_method_on_self")
        && advises(fault, "weakref.WeakMethod(")) {
        return mend_method(out, &line);
    }
    if (is_rule(fault, "lambda_on_self") && advises(fault, "weakref.ref(")
        && strncmp(fault->edge, "cell ", 5) == 0) {
        return mend_lambda(out, &line, fault->edge);
    }
    return CM_MEND_NONE;
}
