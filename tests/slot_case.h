/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SLOT_CASE_H
#define CM_SLOT_CASE_H

/* Each way in which torch may be linked is tried in a process of its own, on
 * stand-ins for its libraries (fake_c10*.c).  Included by the two tests of
 * slots after cmocka.h, with three functions and the kind of their own. */

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../allocator_hooks/hook.h"
#include "../detector/blocks.h"

static const struct cm_hook_kind *const kind;
static bool find_fakes(void *library);
static void allocate_again(void);
static int try_events(void); /* 0, or the number of the check that failed */

static struct cm_blocks *blocks;
static _Atomic bool come_back; /* the sink allocates, as it never should */

static void
on_event(void *context, const struct cm_event *event)
{
    cm_blocks_event(context, event);
    if (come_back) {
        allocate_again();
    }
}

static struct cm_site_id
on_site(void *context, bool *awaited)
{
    (void)context;
    *awaited = true;
    return (struct cm_site_id){7};
}

static struct cm_sink
sink(void)
{
    return (struct cm_sink){.event = on_event,
                            .site = on_site,
                            .context = blocks,
                            .line = cm_blocks_line};
}

static bool
load(const char *variant, const char *name)
{
    char path[4096];
    strcpy(path, STAND_INS "/");
    strcat(path, variant);
    strcat(path, name);
    void *library = dlopen(path, RTLD_LAZY);
    return library != NULL && find_fakes(library);
}

/* In a child: the number of the check that failed, 0 when none did. */
#define CHECK(number, condition)                                              \
    if (!(condition))                                                         \
    return number

static int
try_variant(const char *variant, const char *name)
{
    struct cm_sink to = sink();
    const char *why = NULL;
    CHECK(90, !kind->start(&to, NULL, &why) && why != NULL);
    CHECK(91, load(variant, name));
    return try_events();
}

static void
serve(const char *variant, const char *name)
{
    pid_t child = fork();
    if (child == 0) {
        blocks = cm_blocks_new(100000);
        _exit(blocks == NULL ? 99 : try_variant(variant, name));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void
says_what_is_missing(void **state)
{
    (void)state;
    struct cm_sink to = {0};
    const char *why = NULL;
    assert_false(kind->start(&to, NULL, &why));
    assert_non_null(strstr(why, "no libc10.so is loaded: a static build"));
    kind->stop();
    assert_int_equal(kind->lost(), 0);
}

#endif
