/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DIGEST_SCENE_H
#define CM_DIGEST_SCENE_H

#include "heap_builder.h"

#include <unistd.h>

#include "../reports/digest.h"

/* A digest, a heap with one dead cycle, and a folder for the report. */
static const char pair[] =
    "a Node; b Node; t Tensor 4194304; a .link b; b .link a; a .t t";

struct scene {
    struct built *built;
    struct cm_digest *digest;
    char folder[64];
    char path[128];
};

static inline int
set_up(void **state)
{
    static struct scene the_scene;
    struct scene *scene = &the_scene;
    *scene = (struct scene){0};
    scene->built = built_new(pair);
    scene->digest = cm_digest_new(scene->built->records);
    strcpy(scene->folder, "/tmp/t_digest.XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    snprintf(scene->path, sizeof(scene->path), "%s/leak.json", scene->folder);
    *state = scene;
    return scene->digest == NULL;
}

static inline int
tear_down(void **state)
{
    struct scene *scene = *state;
    char command[128];
    cm_digest_free(scene->digest);
    built_free(scene->built);
    snprintf(command, sizeof(command), "rm -r %s", scene->folder);
    return system(command);
}

#endif
