/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* torch::autograd::get_current_node() answers with a reference of its own,
 * which has to be given back: an intrusive pointer (one word, count in the
 * node) or a shared one (two words, count in the second's block) by version.
 * Which one is seen by asking twice: the count must have gone up by one.
 *
 * What it answers stands in a thread-local variable of its library.  That is
 * sought among all such memory of the library: the only place with the node's
 * words, for several nodes in turn.  Then the node is read there, and its
 * count left alone.  Cost: 5 ns, and 20 to 30 where torch is asked. */

#define _GNU_SOURCE
#include "current_node.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "../../allocator_hooks/slot.h"
#include "../../detector/hot.h"

enum { TRIES = 16, PROOFS = 4, MOST_BYTES = 1 << 16 };

/* C++ returns what is no plain value through a hidden first argument. */
typedef void *node_function(uint64_t result[4]);

enum counted { NOT_SEEN = 0, IN_NODE, IN_BLOCK, NOWHERE };

/* As the ABI of thread-local variables has it. */
struct place {
    unsigned long module, offset;
};

static struct {
    _Atomic(node_function *) ask;
    struct place place; /* its offset is written before `learnt` */
    atomic_bool learnt;
    _Atomic int counted; /* enum counted */
    _Atomic int tries, misses;
    size_t bytes; /* of the library's thread-local memory */
    /* Where the words of the last node were, in words from 1; 0: nowhere. */
    _Atomic size_t seen_at;
    _Atomic uint32_t proofs;
    _Atomic uint64_t last; /* node that was sought */
} node CM_EVENT_DATA;

/* ---- the function */

struct sought {
    const char *path;
    struct place place;
    size_t bytes;
};

static int
note_library(struct dl_phdr_info *info, size_t size, void *context)
{
    struct sought *sought = context;
    bool whole = size >= offsetof(struct dl_phdr_info, dlpi_tls_data);
    if (!whole || info->dlpi_name == NULL
        || strcmp(info->dlpi_name, sought->path) != 0) {
        return 0;
    }
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_TLS) {
            sought->place.module = info->dlpi_tls_modid;
            sought->bytes = info->dlpi_phdr[i].p_memsz;
        }
    }
    return 1;
}

void
cm_current_node_start(const char *path)
{
    struct sought sought = {.path = path};
    if (atomic_load(&node.learnt)) {
        return;
    }
    dl_iterate_phdr(note_library, &sought);
    node.place = sought.place;
    node.bytes = sought.bytes < MOST_BYTES ? sought.bytes : 0;
    atomic_store(&node.ask,
                 (node_function *)cm_slot_original(
                     path, "_ZN5torch8autograd16get_current_nodeEv"));
}

/* ---- where it stands */

#if defined(__x86_64__)
extern void *__tls_get_addr(struct place *place);

/* This thread's, of the library; it is there, since torch has written to it. */
static inline const uint64_t *
words_at(unsigned long offset)
{
    struct place place = {node.place.module, offset};
    return __tls_get_addr(&place);
}
#else
static inline const uint64_t *
words_at(unsigned long offset)
{
    (void)offset;
    return NULL;
}
#define CM_NOT_SOUGHT
#endif

/* The only place of these words, from 1; 0: none or several. */
static size_t
find_words(const uint64_t wanted[4])
{
    const uint64_t *words = words_at(0);
    size_t count = node.bytes / sizeof(uint64_t), found = 0, times = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        if (words[i] == wanted[0]
            && (wanted[1] == 0 || words[i + 1] == wanted[1])) {
            found = i + 1;
            times++;
        }
    }
    return times == 1 ? found : 0;
}

/* Another node than before, at the same place. */
static void
learn_place(const uint64_t wanted[4])
{
#ifdef CM_NOT_SOUGHT
    return;
#endif
    if (node.bytes == 0 || atomic_load(&node.misses) == TRIES
        || atomic_exchange(&node.last, wanted[0]) == wanted[0]) {
        return;
    }
    size_t found = find_words(wanted);
    if (found == 0 || atomic_exchange(&node.seen_at, found) != found) {
        atomic_store(&node.proofs, 0);
        atomic_fetch_add(&node.misses, 1);
    }
    else if (atomic_fetch_add(&node.proofs, 1) + 1 == PROOFS) {
        node.place.offset = (found - 1) * sizeof(uint64_t);
        atomic_store(&node.learnt, true);
    }
}

/* ---- asking */

static _Atomic uint32_t *
count_of(const uint64_t words[4], enum counted counted)
{
    uintptr_t at =
        counted == IN_NODE ? (uintptr_t)words[0] + 8 : (uintptr_t)words[1] + 8;
    return (_Atomic uint32_t *)at;
}

/* Asks twice; the second time one more reference must be counted. */
static void
learn_count(node_function *ask)
{
    uint64_t first[4] = {0}, second[4] = {0};
    ask(first);
    enum counted where = first[1] == 0 ? IN_NODE : IN_BLOCK;
    if (first[0] == 0) {
        return;
    }
    uint32_t before = atomic_load(count_of(first, where));
    ask(second);
    uint32_t after = atomic_load(count_of(first, where));
    bool right = memcmp(first, second, sizeof(first)) == 0
                 && after == before + 1 && before > 1;
    if (right) {
        atomic_fetch_sub(count_of(first, where), 2);
        atomic_store(&node.counted, where);
    }
    else if (atomic_fetch_add(&node.tries, 1) == TRIES) {
        atomic_store(&node.counted, NOWHERE);
    }
}

static __attribute__((noinline)) uint64_t
ask_torch(void)
{
    node_function *ask = atomic_load(&node.ask);
    uint64_t words[4] = {0};
    if (ask != NULL && atomic_load(&node.counted) == NOT_SEEN) {
        learn_count(ask);
    }
    int counted = atomic_load(&node.counted);
    if (ask == NULL || (counted != IN_NODE && counted != IN_BLOCK)) {
        return 0;
    }
    ask(words);
    if (words[0] != 0) {
        learn_place(words);
        atomic_fetch_sub(count_of(words, (enum counted)counted), 1);
    }
    return words[0];
}

CM_EVENT_PATH uint64_t
cm_current_node(void)
{
    return atomic_load_explicit(&node.learnt, memory_order_acquire)
               ? *words_at(node.place.offset)
               : ask_torch();
}

bool
cm_current_node_read(void)
{
    return atomic_load(&node.learnt);
}

const char *
cm_current_node_missing(void)
{
    return atomic_load(&node.ask) == NULL
               ? "torch does not say which node runs"
           : atomic_load(&node.counted) == NOWHERE
               ? "this torch counts references another way"
               : NULL;
}
