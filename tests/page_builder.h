/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef PAGE_BUILDER_H
#define PAGE_BUILDER_H

/* Documents for tests of drawings and pages, made by calls instead of JSON. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../detector/alloc.h"
#include "../reports/leak.h"

#define MIB ((uint64_t)1 << 20)

/* Text that must never become markup, a command or another line. */
static const char *const hostile_texts[] = {
    "</script><script>alert(1)</script>",
    "<!-- x --> <![CDATA[ ]]>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</style><b>",
    "</pre></code></article>",
    "&#1; &amp;lt; &lt; &",
    "back\\slash \\N \\G \\n ends\\",
    "`tick` $LISTENERS %s %n %",
    "\xe2\x80\xa8line\xe2\x80\xa9separators\xe2\x80\xae"
    "turned",
    "\x1b]0;title\x07 \x01\x02",
    "\xff\xfe broken \xc3( \xed\xa0\x80 \xef\xbf\xbf",
    "\n#9 FORGED CYCLE\n   cut   forged.py:1\n",
    "<html>",
    "",
};
#define HOSTILE_COUNT (sizeof(hostile_texts) / sizeof(hostile_texts[0]))

static inline struct cm_text_id
text_id(struct cm_leak *leak, const char *text)
{
    return cm_texts_intern(leak->texts, text);
}

static inline uint32_t
add_vertex(struct cm_leak *leak, const char *kind, const char *name)
{
    assert_int_equal(cm_grow((void **)&leak->vertices, &leak->vertex_capacity,
                             leak->vertex_count + 1, sizeof(*leak->vertices)),
                     CM_OK);
    leak->vertices[leak->vertex_count++] =
        (struct cm_leak_vertex){.annotation = text_id(leak, name),
                                .type = text_id(leak, name),
                                .kind = text_id(leak, kind)};
    return (uint32_t)leak->vertex_count;
}

static inline uint32_t
add_edge(struct cm_leak *leak, uint32_t tail, uint32_t head, const char *name)
{
    assert_int_equal(cm_grow((void **)&leak->edges, &leak->edge_capacity,
                             leak->edge_count + 1, sizeof(*leak->edges)),
                     CM_OK);
    leak->edges[leak->edge_count++] =
        (struct cm_leak_edge){.annotation = text_id(leak, name),
                              .kind = text_id(leak, "python"),
                              .tail = tail,
                              .head = head};
    return (uint32_t)leak->edge_count;
}

/* The line that made an edge. */
static inline void
set_place(struct cm_leak *leak, uint32_t edge, const char *filename,
          uint32_t line, const char *source)
{
    struct cm_leak_edge *self = &leak->edges[edge - 1];

    self->made_at = cm_calloc(1, sizeof(*self->made_at));
    assert_non_null(self->made_at);
    self->made_at_count = 1;
    self->made_at[0] =
        (struct cm_leak_frame){.filename = text_id(leak, filename),
                               .name = text_id(leak, "f"),
                               .source = text_id(leak, source),
                               .line = line,
                               .certain = true};
}

static inline uint32_t
add_tensor(struct cm_leak *leak, uint64_t bytes, const char *name)
{
    uint32_t vertex = add_vertex(leak, "tensor", name);
    struct cm_leak_storage *storage;

    assert_int_equal(cm_grow((void **)&leak->storages, &leak->storage_capacity,
                             leak->storage_count + 1, sizeof(*leak->storages)),
                     CM_OK);
    storage = &leak->storages[leak->storage_count++];
    *storage = (struct cm_leak_storage){.device = text_id(leak, "cuda:0"),
                                        .bytes = bytes,
                                        .stream = -1,
                                        .vertex_count = 1};
    storage->vertices = cm_alloc(sizeof(uint32_t));
    assert_non_null(storage->vertices);
    storage->vertices[0] = vertex;
    leak->vertices[vertex - 1].storage = (uint32_t)leak->storage_count;
    return vertex;
}

static inline uint32_t *
copy_ids(const uint32_t *ids, size_t count)
{
    uint32_t *copy = cm_alloc((count + 1) * sizeof(*copy));

    assert_non_null(copy);
    if (count > 0) {
        memcpy(copy, ids, count * sizeof(*copy));
    }
    return copy;
}

/* A cycle of `members` that holds `payload` (tensors); cut 0: not known. */
static inline struct cm_leak_cycle *
add_cycle(struct cm_leak *leak, const uint32_t *members, size_t member_count,
          const uint32_t *payload, size_t payload_count, uint32_t cut)
{
    struct cm_leak_cycle *cycle;

    assert_int_equal(cm_grow((void **)&leak->cycles, &leak->cycle_capacity,
                             leak->cycle_count + 1, sizeof(*leak->cycles)),
                     CM_OK);
    cycle = &leak->cycles[leak->cycle_count++];
    *cycle =
        (struct cm_leak_cycle){.fingerprint = leak->cycle_count << 40,
                               .class = text_id(leak, "collectable"),
                               .vertices = copy_ids(members, member_count),
                               .vertex_count = member_count,
                               .payload = copy_ids(payload, payload_count),
                               .payload_count = payload_count,
                               .count = 1,
                               .first_iteration = -1,
                               .last_iteration = -1,
                               .cut = copy_ids(&cut, 1),
                               .cut_count = cut != 0,
                               .rule = text_id(leak, "back_link"),
                               .advice = text_id(leak, "break it")};
    for (size_t i = 0; i < payload_count; i++) {
        cycle->payload[i] = leak->vertices[payload[i] - 1].storage;
        cycle->bytes_each += leak->storages[cycle->payload[i] - 1].bytes;
    }
    cycle->peak_bytes = cycle->total_bytes = cycle->bytes_each;
    return cycle;
}

static inline void
start_leak(struct cm_leak *leak)
{
    *leak = (struct cm_leak){0};
    assert_int_equal(cm_leak_init(leak), CM_OK);
}

/* Objects 1..count in a ring, the first holding one tensor; the last
 * reference is to be cut. */
static inline void
add_ring(struct cm_leak *leak, uint32_t count, const char *name)
{
    uint32_t *members = cm_alloc((count + 1) * sizeof(*members));
    uint32_t tensor, edge = 0;

    assert_non_null(members);
    for (uint32_t i = 0; i < count; i++) {
        members[i] = add_vertex(leak, "object", name);
    }
    for (uint32_t i = 0; i < count; i++) {
        edge = add_edge(leak, members[i], members[(i + 1) % count], name);
    }
    set_place(leak, edge, name, 7, name);
    tensor = add_tensor(leak, 4 * MIB, "Tensor [4] float32 cuda:0 4.0 MiB");
    add_edge(leak, members[0], tensor, ".value");
    add_cycle(leak, members, count, &tensor, 1, edge);
    cm_free(members);
}

#endif
