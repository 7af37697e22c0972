/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A polynomial of the frames' instructions, modulo 2^64, innermost first.
 * Cost, hot: about 1 ns a frame along the thread's last stack, else 2. */

#include "stack_path.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "../detector/hot.h"
#include "../detector/relaxed.h"
#include "layout.h"
#include "objects.h"
#include "this_thread.h"

#define KEY_STEP UINT64_C(0x9E3779B97F4A7C15)

/* The frames of a walk, innermost first, then NULL, also where there are more.
 * Whoever walks again runs ahead along them: each load only confirms the next
 * frame, and none waits for the one before.  What is not confirmed is not
 * read; so threads may share a path, and write it at once. */
enum { PATHS_LOG2 = 4, MOST_SKIPPED = 4, SITE_BITS = 24, MOMENT_FRAMES = 3 };
struct path {
    /* Of the stack that was noted: its moment and, in the lower 24 bits, its
     * site, in one word, so that threads which share a path see both or none. */
    _Alignas(64) _Atomic uint64_t noted;
    _Atomic(const struct cm_raw_frame *) frames[CM_STACK_FRAMES + 1];
};
static CM_EVENT_DATA struct path paths[1 << PATHS_LOG2];

static CM_HOT_PART struct path *
path_of_thread(void)
{
    return &paths[cm_this_thread() * KEY_STEP >> (64 - PATHS_LOG2)];
}

/* The compiler must not know that they are equal: it would go on by `there`,
 * for which the processor has to wait. */
static CM_HOT_PART bool
is_confirmed(const struct cm_raw_frame *there,
             const struct cm_raw_frame *expected)
{
    __asm__("" : "+r"(expected));
    return there == expected;
}

static inline uint64_t
instruction_of(const struct cm_raw_frame *frame)
{
    return (uint64_t)(uintptr_t)frame->instruction;
}

/* Never 0, and the high bits reach the low ones. */
static inline uint64_t
finish_addresses(uint64_t hash)
{
    return (hash ^ hash >> 32) | UINT64_C(1) << 63;
}

/* Where `frame` stands on the path, if there and few are above; else NULL. */
static CM_HOT_PART _Atomic(const struct cm_raw_frame *) *
place_on(struct path *path, const struct cm_raw_frame *frame)
{
    for (uint32_t i = 0; i < MOST_SKIPPED; i++) {
        if (CM_GET(&path->frames[i]) == frame) {
            return &path->frames[i];
        }
    }
    return NULL;
}

/* The path was as long as any: `left` frames more count where a walk began
 * after its first ones. */
CM_EVENT_PATH static __attribute__((noinline)) uint64_t
hash_beyond(uint64_t hash, const struct cm_raw_frame *frame, uint32_t left)
{
    for (; frame != NULL && left != 0; left--) {
        hash = (hash + instruction_of(frame)) * KEY_STEP;
        frame = frame->previous;
    }
    return finish_addresses(hash);
}

/* What hash_anew() is where the stack goes on as on the path; else 0.
 * Two frames at a time, so that half as many products wait for one another. */
static CM_HOT_PART uint64_t
hash_along(struct path *path, const struct cm_raw_frame *frame, uint64_t turn)
{
    _Atomic(const struct cm_raw_frame *) *at = place_on(path, frame);
    _Atomic(const struct cm_raw_frame *) *end = &path->frames[CM_STACK_FRAMES];
    uint64_t hash = turn;
    if (CM_SELDOM(at == NULL)) {
        return 0;
    }
    uint32_t skipped = (uint32_t)(at - path->frames);
    while (frame != NULL) {
        const struct cm_raw_frame *second = CM_GET(++at);
        uint64_t more = instruction_of(frame);
        if (CM_SELDOM(!is_confirmed(frame->previous, second))) {
            hash = (hash + more) * KEY_STEP;
            return at == end ? hash_beyond(hash, frame->previous, skipped) : 0;
        }
        if (second == NULL) {
            hash = (hash + more) * KEY_STEP;
            break;
        }
        frame = CM_GET(++at);
        more = (more * KEY_STEP + instruction_of(second)) * KEY_STEP;
        hash = hash * (KEY_STEP * KEY_STEP) + more;
        if (CM_SELDOM(!is_confirmed(second->previous, frame))) {
            return at == end ? hash_beyond(hash, second->previous, skipped)
                             : 0;
        }
    }
    return finish_addresses(hash);
}

/* The path is this stack's then. */
CM_EVENT_PATH static __attribute__((noinline)) uint64_t
hash_anew(struct path *path, const struct cm_raw_frame *frame, uint64_t turn)
{
    uint64_t hash = turn;
    uint32_t depth = 0;
    do {
        hash = (hash + instruction_of(frame)) * KEY_STEP;
        CM_SET(&path->frames[depth++], frame);
        frame = frame->previous;
    } while (depth < CM_STACK_FRAMES && frame != NULL);
    CM_SET(&path->frames[depth], NULL);
    return finish_addresses(hash);
}

CM_EVENT_PATH uint64_t
cm_stack_path_hash(const struct cm_raw_frame *frame, uint64_t turn)
{
    struct path *path = path_of_thread();
    uint64_t hash = hash_along(path, frame, turn);
    return CM_SELDOM(hash == 0) ? hash_anew(path, frame, turn) : hash;
}

/* ---- the stack of the last allocation */

/* In the upper 40 bits; a frame's place is one of its thread's. */
static CM_HOT_PART uint64_t
moment_of(const struct cm_raw_frame *frame, uint64_t turn)
{
    uint64_t hash = turn;
#pragma GCC unroll 3
    for (int i = 0; i < MOMENT_FRAMES && frame != NULL; i++) {
        hash = (hash ^ (uint64_t)(uintptr_t)frame) * KEY_STEP;
        hash += instruction_of(frame);
        frame = frame->previous;
    }
    return hash * KEY_STEP >> SITE_BITS << SITE_BITS;
}

CM_EVENT_PATH void
cm_stack_path_note(const struct cm_raw_frame *frame, uint64_t turn,
                   uint32_t site)
{
    bool fits = site >> SITE_BITS == 0;
    CM_SET(&path_of_thread()->noted, fits ? moment_of(frame, turn) | site : 0);
}

CM_EVENT_PATH uint32_t
cm_stack_path_noted(const struct cm_raw_frame *frame, uint64_t turn)
{
    struct path *path = path_of_thread();
    uint64_t noted = CM_GET(&path->noted);
    if (noted == 0) {
        return 0;
    }
    CM_SET(&path->noted, 0);
    uint64_t moment = moment_of(frame, turn);
    return (noted ^ moment) >> SITE_BITS == 0 ? (uint32_t)(noted ^ moment) : 0;
}
