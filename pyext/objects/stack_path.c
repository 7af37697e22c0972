/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A polynomial of the frames' instructions, two to a term, modulo 2^64,
 * innermost first.  The outer one of a pair is turned by half a word: code lies
 * within 2^32 bytes of other code or far from it, so that pairs of equal sum
 * are rare.
 * Cost, hot: about 0.7 ns a frame along the thread's last stack, else 2. */

#include "stack_path.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "../../detector/hot.h"
#include "../../detector/relaxed.h"
#include "layout.h"
#include "objects.h"
#include "../tables/this_thread.h"

#define KEY_STEP UINT64_C(0x9E3779B97F4A7C15)

/* The frames of a walk, innermost first, then `past`, also where there are
 * more.  Whoever walks again runs ahead along them: each load only confirms the
 * next frame, and none waits for the one before.  What is not confirmed is not
 * read; so threads may share a path, and write it at once.  No frame's caller
 * is `past`: the last one is found without looking for it at each. */
enum {
    PATHS_LOG2 = 4,
    PATHS = 1 << PATHS_LOG2,
    MOST_SKIPPED = 4,
    SITE_BITS = 24,
    MOMENT_FRAMES = 3
};
struct path {
    /* Of the stack that was noted: its moment and, in the lower 24 bits, its
     * site, in one word, so that threads which share a path see both or none. */
    _Alignas(64) _Atomic uint64_t noted;
    _Atomic(const struct cm_raw_frame *) frames[CM_STACK_FRAMES + 1];
};
static const struct cm_raw_frame past;
static CM_EVENT_DATA struct path paths[PATHS] = {
    [0 ... PATHS - 1] = {.frames = {[0 ... CM_STACK_FRAMES] = &past}}};

static CM_HOT_PART struct path *
path_of_thread(void)
{
    return &paths[cm_this_thread() * KEY_STEP >> (64 - PATHS_LOG2)];
}

/* Whether it has another caller.  The compiler must not learn that they are
 * equal: it would go on by the one that is loaded here, for which the processor
 * has to wait. */
static CM_HOT_PART bool
leaves(const struct cm_raw_frame *frame, const struct cm_raw_frame *caller)
{
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__)
    bool other;
    __asm__("cmp %2, %1"
            : "=@ccne"(other)
            : "m"(frame->previous), "r"(caller));
    return other;
#else
    __asm__("" : "+r"(caller));
    return frame->previous != caller;
#endif
}

static inline uint64_t
instruction_of(const struct cm_raw_frame *frame)
{
    return (uint64_t)(uintptr_t)frame->instruction;
}

/* `outer`: 0 where there is none. */
static inline uint64_t
hash_pair(uint64_t hash, uint64_t inner, uint64_t outer)
{
    return (hash + inner + (outer << 32 | outer >> 32)) * KEY_STEP;
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

/* `frame` and what is below it, of which `left` count. */
CM_EVENT_PATH static __attribute__((noinline)) uint64_t
hash_beyond(uint64_t hash, const struct cm_raw_frame *frame, uint32_t left)
{
    while (frame != NULL && left != 0) {
        const struct cm_raw_frame *second = left > 1 ? frame->previous : NULL;
        hash = hash_pair(hash, instruction_of(frame),
                         second != NULL ? instruction_of(second) : 0);
        frame = second != NULL ? second->previous : NULL;
        left -= left > 1 ? 2 : 1;
    }
    return finish_addresses(hash);
}

/* `frame`, from which on nothing is hashed yet and `left` count, is not on the
 * path, or not its caller: the stack has ended (NULL), or goes on where the path
 * is as long as any, or is another one (0). */
static CM_HOT_PART uint64_t
hash_end(uint64_t hash, const struct cm_raw_frame *frame, uint32_t left,
         bool is_longest)
{
    if (CM_SELDOM(frame != NULL)) {
        return is_longest ? hash_beyond(hash, frame, left) : 0;
    }
    return finish_addresses(hash);
}

/* What hash_anew() is where the stack goes on as on the path; else 0. */
static CM_HOT_PART uint64_t
hash_along(struct path *path, const struct cm_raw_frame *frame, uint64_t turn)
{
    _Atomic(const struct cm_raw_frame *) *at = place_on(path, frame);
    uint64_t hash = turn;
    if (CM_SELDOM(at == NULL)) {
        return 0;
    }
    /* Where it began after the first ones, as many more count. */
    _Atomic(const struct cm_raw_frame *) *end = at + CM_STACK_FRAMES;
    for (;;) {
        const struct cm_raw_frame *second = CM_GET(at + 1);
        uint64_t inner = instruction_of(frame);
        if (leaves(frame, second)) {
            bool ends = frame->previous == NULL;
            hash = ends ? hash_pair(hash, inner, 0) : hash;
            return hash_end(hash, ends ? NULL : frame, (uint32_t)(end - at),
                            at + 1 == &path->frames[CM_STACK_FRAMES]);
        }
        hash = hash_pair(hash, inner, instruction_of(second));
        frame = CM_GET(at += 2);
        if (leaves(second, frame)) {
            return hash_end(hash, second->previous, (uint32_t)(end - at),
                            at == &path->frames[CM_STACK_FRAMES]);
        }
    }
}

/* The path is this stack's then. */
CM_EVENT_PATH static __attribute__((noinline)) uint64_t
hash_anew(struct path *path, const struct cm_raw_frame *frame, uint64_t turn)
{
    uint64_t hash = turn;
    uint32_t depth = 0;
    while (frame != NULL && depth < CM_STACK_FRAMES) {
        uint64_t inner = instruction_of(frame), outer = 0;
        CM_SET(&path->frames[depth++], frame);
        frame = frame->previous;
        if (frame != NULL) {
            outer = instruction_of(frame);
            CM_SET(&path->frames[depth++], frame);
            frame = frame->previous;
        }
        hash = hash_pair(hash, inner, outer);
    }
    CM_SET(&path->frames[depth], &past);
    return finish_addresses(hash);
}
_Static_assert(CM_STACK_FRAMES % 2 == 0, "two at a time");

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
