/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LIBRARIES_H
#define CM_LIBRARIES_H

/* Cycles of installed packages that are known, with where they are talked
 * about (libraries.rules). */

#include <stdbool.h>
#include <stddef.h>

struct cm_library_rule {
    const char *package;  /* "tensordict" */
    const char *type;     /* glob: an object of the cycle, "*": any */
    const char *function; /* glob: where the cut is made, "*": any */
    const char *link;
};

/* The rule with this number, NULL behind the last. */
const struct cm_library_rule *cm_library_rule(size_t number);
/* Whether the name, or its last part, is what the glob says. */
bool cm_glob_matches(const char *glob, const char *name);

#endif
