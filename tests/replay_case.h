/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TEST_REPLAY_CASE_H
#define CM_TEST_REPLAY_CASE_H

/* Events from text, told to a sink as a hook does. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../allocator_hooks/hook.h"
#include "../detector/blocks.h"

/* The refusal; NULL: replayed. */
static inline const char *
replay_into(const struct cm_sink *to, const char *bytes, size_t length)
{
    int file = memfd_create("events", 0);
    char path[64];
    const char *why = NULL;
    assert_int_equal(write(file, bytes, length), length);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    bool started = cm_replay.start(to, path, &why);
    close(file);
    assert_true(started == (why == NULL));
    return why;
}

/* As a hook that has its allocator's lock. */
static inline void
tell_in_order(void *blocks, const struct cm_event *event)
{
    struct cm_event_line *line = cm_blocks_line(blocks, event->device);
    struct cm_event copy = *event;
    copy.in_order = true;
    if (line != NULL && (event->allocated | event->reserved) != 0
        && atomic_load(&line->tells_totals)) {
        (void)cm_event_line_follows(line, &copy);
    }
    if (line == NULL || !cm_event_line_write(line, &copy)) {
        cm_blocks_sink(blocks, &copy);
    }
}

static const struct cm_sink ways[] = {{.event = cm_blocks_sink},
                                      {.event = tell_in_order}};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

#endif
