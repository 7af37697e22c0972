/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Labels follow one grammar (detector/heap.h lists it beside the roles), so a
 * prefix says what is name and what is decoration.  O(length). */

#include "name.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../detector/alloc.h"

static struct cm_name
make_name(const char *text, size_t length)
{
    struct cm_name name = {""};

    if (length >= sizeof name.text) {
        length = sizeof name.text - 1;
        /* Not inside a character of several bytes. */
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    memcpy(name.text, text, length);
    return name;
}

static bool
starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

struct cm_name
cm_name_of_label(const struct cm_records *records, struct cm_text_id label)
{
    static const char *const prefixes[] = {
        ".", "local ", "cell ", "global ", "default ", "contextvar "};
    const char *text = cm_records_text(records, label);
    size_t length = strlen(text);

    if (length > 4 && starts_with(text, "['")) {
        return make_name(text + 2, length - 4);
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (starts_with(text, prefixes[i])) {
            size_t skipped = strlen(prefixes[i]);

            return make_name(text + skipped, length - skipped);
        }
    }
    return make_name(text, length);
}

/* The part behind the last dot that stands outside of "<locals>". */
static struct cm_name
last_part(const char *text)
{
    const char *dot = strrchr(text, '.');

    text = dot != NULL ? dot + 1 : text;
    return make_name(text, strlen(text));
}

struct cm_name
cm_name_of_type(const struct cm_records *records, struct cm_type_id type)
{
    const struct cm_type *record = cm_records_type(records, type);
    struct cm_name name = last_part(cm_records_text(records, record->name));

    return name.text[0] != '\0' ? name : make_name("object", 6);
}

struct cm_name
cm_name_of_code(const struct cm_records *records, struct cm_code_id code)
{
    const struct cm_code *record = cm_records_code(records, code);

    return last_part(cm_records_text(records, record->name));
}

struct cm_name
cm_name_of_callable(const struct cm_records *records, struct cm_code_id code)
{
    struct cm_name name = cm_name_of_code(records, code);

    if (strcmp(name.text, "<lambda>") == 0) {
        return (struct cm_name){"the lambda"};
    }
    return name.text[0] != '\0' ? name : (struct cm_name){"the function"};
}

struct cm_name
cm_name_of_object(const struct cm_records *records, const struct cm_node *node)
{
    const char *text = cm_records_text(records, node->label);
    size_t end = strlen(text);
    size_t start;

    /* "<class 'a.B'>" and "class a.B" both name B. */
    end -= end > 2 && strcmp(text + end - 2, "'>") == 0 ? 2 : 0;
    start = end;
    while (start > 0 && strchr(". '", text[start - 1]) == NULL) {
        start--;
    }
    return make_name(text + start, end - start);
}

const char *
cm_name_callable(const char *qualified_name)
{
    static const char within[] = ".<locals>.";
    const char *name = qualified_name, *found;
    while ((found = strstr(name, within)) != NULL) {
        name = found + sizeof(within) - 1;
    }
    return name;
}

bool
cm_name_is_identifier(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        bool letter = c == '_' || isalpha(c) || c >= 0x80;

        if (!letter && (i == 0 || !isdigit(c))) {
            return false;
        }
    }
    return length > 0;
}

bool
cm_name_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);

    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

const char *
cm_name_in_packages(const char *path)
{
    static const char *const folders[] = {"/site-packages/",
                                          "/dist-packages/"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *found = strstr(path, folders[i]);

        if (found != NULL) {
            return found + strlen(folders[i]);
        }
    }
    return NULL;
}

const char *
cm_name_basename(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

char *
cm_sentence(const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    int length;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        return NULL;
    }
    text = cm_alloc((size_t)length + 1);
    if (text != NULL) {
        va_start(arguments, format);
        vsnprintf(text, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    return text;
}
