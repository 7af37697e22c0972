/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_LINKS_H
#define CM_LINKS_H

/* The references of a walk in the order of their tails' turn: each tail once,
 * then its heads, 4 bytes for each of them.  An object that refers to none
 * costs nothing. */

#include <stdbool.h>
#include <stdint.h>

#include "../tables/huge_pages.h"

/* A parent that is no node but a root, by its number. */
#define CM_FROM_ROOT UINT32_C(0x80000000)
/* With this or CM_FROM_ROOT a word is a tail; nodes are below both. */
#define CM_LINK_TAIL UINT32_C(0x40000000)

/* A zeroed value is valid and empty. */
struct cm_links {
    uint32_t *words; /* owned */
    size_t word_count, capacity;
    size_t count;  /* references */
    uint32_t tail; /* the last one */
};

static inline void
cm_links_release(struct cm_links *self)
{
    cm_huge_free(self->words, self->capacity, sizeof(*self->words));
    *self = (struct cm_links){0};
}

static inline enum cm_status CM_CHECKED
cm_links_add(struct cm_links *self, uint32_t tail, uint32_t head)
{
    if (self->word_count + 2 > self->capacity) {
        enum cm_status status =
            cm_huge_grow((void **)&self->words, &self->capacity,
                         self->word_count + 2, sizeof(*self->words));
        if (status != CM_OK) {
            return status;
        }
    }
    if (tail != self->tail) {
        self->tail = tail;
        self->words[self->word_count++] =
            tail < CM_FROM_ROOT ? tail | CM_LINK_TAIL : tail;
    }
    self->words[self->word_count++] = head;
    self->count++;
    return CM_OK;
}

static inline bool
cm_link_is_tail(uint32_t word)
{
    return word >= CM_LINK_TAIL;
}

/* A node, or CM_FROM_ROOT and a root. */
static inline uint32_t
cm_link_tail(uint32_t word)
{
    return word < CM_FROM_ROOT ? word & ~CM_LINK_TAIL : word;
}

/* One after the other.  Zeroed but for `links` it is before the first. */
struct cm_link {
    const struct cm_links *links;
    size_t next;
    uint32_t tail, head;
};

/* False: that was the last one. */
static inline bool
cm_link_next(struct cm_link *self)
{
    while (self->next < self->links->word_count) {
        uint32_t word = self->links->words[self->next++];
        if (!cm_link_is_tail(word)) {
            self->head = word;
            return true;
        }
        self->tail = cm_link_tail(word);
    }
    return false;
}

#endif
