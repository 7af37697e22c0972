/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The table of libraries.rules, which is data: one CM_RULE() a line.  Globs
 * are those of the shell (POSIX fnmatch). */
#include "libraries.h"

#include <fnmatch.h>
#include <string.h>

static const struct cm_library_rule rules[] = {
#define CM_RULE(package, type, function, link) {package, type, function, link},
#include "libraries.rules"
#undef CM_RULE
};

const struct cm_library_rule *
cm_library_rule(size_t number)
{
    return number < sizeof(rules) / sizeof(rules[0]) ? &rules[number] : NULL;
}

bool
cm_glob_matches(const char *glob, const char *name)
{
    const char *dot = strrchr(name, '.');

    return fnmatch(glob, name, 0) == 0
           || (dot != NULL && fnmatch(glob, dot + 1, 0) == 0);
}
