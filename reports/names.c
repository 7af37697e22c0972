/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Names of a path.  All is read from text and so works for documents of other
 * programs too; what is not recognised is shown as it stands. */
#include "names.h"

#include <ctype.h>
#include <string.h>

/* The part of a qualified name behind its last dot; "<lambda>" of
 * "f.<locals>.<lambda>". */
static const char *
last_part(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL && dot[1] != '\0' ? dot + 1 : name;
}

/* The text behind `prefix`, NULL when it does not start with it. */
static const char *
after(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);

    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* Kinds of objects that the annotation's first word tells. */
static bool
add_by_first_word(struct cm_buffer *out, const char *annotation)
{
    static const struct {
        const char *prefix, *shown;
    } words[] = {
        {"function ", ""},
        {"builtin method ", "method "},
        {"bound method ", "method "},
        {"method ", "method "},
        {"generator ", "generator "},
        {"coroutine ", "coroutine "},
        {"async_generator ", "async generator "},
        {"async generator ", "async generator "},
        {"class ", "class "},
        {"type ", "class "},
        {"cell ", "cell "},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const char *rest = after(annotation, words[i].prefix);

        if (rest != NULL) {
            cm_buffer_add_text(out, words[i].shown);
            cm_buffer_add_text(out, last_part(rest));
            return true;
        }
    }
    return false;
}

/* "Tensor [64, 512] float32 cuda:0 128 KiB" without device and size. */
static void
add_tensor(struct cm_buffer *out, const char *annotation)
{
    const char *shape = strstr(annotation, " [");
    const char *end = shape != NULL ? strchr(shape, ']') : NULL;

    if (end == NULL) {
        cm_buffer_add_text(out, annotation);
        return;
    }
    end += 1;
    if (*end == ' ') {
        end += 1 + strcspn(end + 1, " ");
    }
    cm_buffer_add(out, annotation, (size_t)(end - annotation));
}

static void
add_frame(struct cm_buffer *out, const char *annotation)
{
    const char *name = NULL;

    for (const char *at = annotation; (at = strstr(at, " in ")) != NULL;
         at++) {
        name = at + 4;
    }
    if (name == NULL || after(annotation, "frame ") == NULL) {
        cm_buffer_add_text(out, annotation);
        return;
    }
    cm_buffer_addf(out, "frame %s", last_part(name));
}

void
cm_name_add_vertex(struct cm_buffer *out, const struct cm_leak *leak,
                   uint32_t vertex)
{
    const struct cm_leak_vertex *self = cm_leak_vertex_at(leak, vertex);
    const char *annotation = cm_leak_text(leak, self->annotation);
    const char *type = cm_leak_text(leak, self->type);
    const char *kind = cm_leak_text(leak, self->kind);

    if (strcmp(kind, "tensor") == 0) {
        add_tensor(out, annotation);
    }
    else if (strcmp(kind, "frame") == 0) {
        add_frame(out, annotation);
    }
    else if (!add_by_first_word(out, annotation)) {
        cm_buffer_add_text(out,
                           type[0] != '\0' ? last_part(type) : annotation);
    }
}

static bool
is_identifier(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c != '_' && c < 0x80 && !(i > 0 ? isalnum(c) : isalpha(c))) {
            return false;
        }
    }
    return length > 0;
}

/* ['x'] of an instance's dict is the attribute x. */
static bool
add_attribute(struct cm_buffer *out, const char *label)
{
    size_t length = strlen(label);

    if (length < 5 || strncmp(label, "['", 2) != 0
        || strcmp(label + length - 2, "']") != 0
        || !is_identifier(label + 2, length - 4)) {
        return false;
    }
    cm_buffer_add_char(out, '.');
    cm_buffer_add(out, label + 2, length - 4);
    return true;
}

/* References whose name adds nothing to what stands beside them. */
static bool
is_silent(const char *label)
{
    static const char *const silent[] = {"__dict__", "__closure__",
                                         "__self__", "tb_frame",
                                         "tb_next",  "cell_contents"};

    for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
        if (strcmp(label, silent[i]) == 0) {
            return true;
        }
    }
    return label[0] == '\0' || after(label, "cell ") != NULL;
}

void
cm_name_add_edge(struct cm_buffer *out, const struct cm_leak *leak,
                 uint32_t edge, bool in_instance_dict)
{
    const struct cm_leak_edge *record = cm_leak_edge_at(leak, edge);
    const char *label = cm_leak_text(leak, record->annotation);
    const char *local = after(label, "local ");
    /* Of one that leads nowhere else the name is all there is to say. */
    bool loop = record->tail == record->head && label[0] != '\0';

    if ((is_silent(label) && !loop)
        || (in_instance_dict && add_attribute(out, label))) {
        return;
    }
    if (local != NULL) {
        label = local;
    }
    if (label[0] != '.' && label[0] != '[') {
        cm_buffer_add_char(out, '.');
    }
    cm_buffer_add_text(out, label);
}

bool
cm_name_folded(const struct cm_leak *leak, uint32_t vertex)
{
    const char *kind =
        cm_leak_text(leak, cm_leak_vertex_at(leak, vertex)->kind);

    return strcmp(kind, "container") == 0 || strcmp(kind, "traceback") == 0;
}

bool
cm_name_is_running(const struct cm_leak *leak, uint32_t vertex)
{
    static const char *const words[] = {
        "generator ", "coroutine ", "async_generator ", "async generator "};
    const char *annotation =
        cm_leak_text(leak, cm_leak_vertex_at(leak, vertex)->annotation);

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (after(annotation, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

bool
cm_name_is_between(const struct cm_leak *leak, uint32_t vertex)
{
    const struct cm_leak_vertex *self = cm_leak_vertex_at(leak, vertex);
    const char *annotation = cm_leak_text(leak, self->annotation);

    return cm_name_folded(leak, vertex)
           || strcmp(cm_leak_text(leak, self->kind), "cell") == 0
           || strcmp(last_part(cm_leak_text(leak, self->type)), "partial") == 0
           || after(annotation, "method ") != NULL
           || after(annotation, "bound method ") != NULL;
}
