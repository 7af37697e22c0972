/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_NAME_H
#define CM_NAME_H

/* The names that a sentence of advice uses, cut out of labels and of
 * qualified names.  Values: they own nothing and cannot fail; a name that is
 * too long is cut between two characters. */

#include <stdbool.h>
#include <stdint.h>

#include "../detector/heap.h"
#include "../detector/records.h"

struct cm_name {
    char text[96];
};

/* "cb" for ".cb" and "['cb']", "x" for "local x", "cell x", "global x",
 * "default x" and "contextvar x"; other labels as they are. */
struct cm_name cm_name_of_label(const struct cm_records *records,
                                struct cm_text_id label);
/* "Node" for "package.module.outer.<locals>.Node". */
struct cm_name cm_name_of_type(const struct cm_records *records,
                               struct cm_type_id type);
/* "forward", "<lambda>". */
struct cm_name cm_name_of_code(const struct cm_records *records,
                               struct cm_code_id code);
/* The same in a sentence: "the lambda", "the function" where it has none. */
struct cm_name cm_name_of_callable(const struct cm_records *records,
                                   struct cm_code_id code);
/* The last name of an object's label: "Node" for "class outer.Node". */
struct cm_name cm_name_of_object(const struct cm_records *records,
                                 const struct cm_node *node);

/* "Net.clear" of "main.<locals>.Net.clear", as a line could call it: a part of
 * the text. */
const char *cm_name_callable(const char *qualified_name);
/* Whether the text is a name that Python source could use. */
bool cm_name_is_identifier(const char *text, size_t length);
bool cm_name_ends_with(const char *text, const char *end);
/* What stands behind site-packages/ or dist-packages/ in a path; NULL: it is no
 * package's. */
const char *cm_name_in_packages(const char *path);
/* The last component of a path. */
const char *cm_name_basename(const char *path);
/* A new text, or NULL when memory ran out. */
char *cm_sentence(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
