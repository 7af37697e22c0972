/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "thread.h"

#include <string.h>

#include "way.h"

static const char *
root_of(const struct cm_holding *self)
{
    return cm_way_text(self, cm_way_step(self, 0)->annotation);
}

bool
cm_thread_keeps_arguments(const struct cm_holding *self)
{
    return self->count > 2 && cm_way_begins(root_of(self), "threading.py:")
           && strstr(root_of(self), " Thread.run, thread ") != NULL
           && cm_way_is(self, cm_way_step(self, 1)->edge, "local self")
           && (self->at == 1
               || cm_way_step(self, self->at)->species == CM_TUPLE);
}

/* The function that threading.Thread puts in a name of its own making:
 * "Thread-1 (upload)". */
char *
cm_thread_say(const struct cm_holding *self)
{
    const char *function = strrchr(root_of(self), '(');
    size_t length = function != NULL ? strcspn(++function, ")") : 0;
    return cm_sentence("let the threads%s%.*s%s end when their work is done, "
                       "or give it to one that reads a queue: each keeps "
                       "its arguments until it ends",
                       length != 0 ? " that run " : "", (int)length,
                       length != 0 ? function : "", length != 0 ? "()" : "");
}
