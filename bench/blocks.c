/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The table of live blocks alone, without a hook and without stacks: for
 * bench/allocations.py, which builds it.
 *
 *     blocks rate THREADS LIVE EVENTS      events a second, all threads
 *     blocks bytes LIVE...                 native bytes for a live block
 *
 * Each prints one JSON object. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../detector/blocks.h"

#define BASE UINT64_C(0x7f0000000000)
#define MOST_THREADS 64

static struct cm_blocks *blocks;
static uint64_t live, events;
static pthread_barrier_t begin;

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void
tell(enum cm_event_kind kind, uint64_t address, uint32_t thread)
{
    cm_blocks_event(blocks, &(struct cm_event){.kind = (uint8_t)kind,
                                               .address = address,
                                               .bytes = 512,
                                               .stream = 0,
                                               .allocated = 512,
                                               .reserved = 512,
                                               .thread = thread,
                                               .site = {thread}});
}

/* The oldest of `live` blocks is freed, a new one allocated. */
static void *
churn(void *number)
{
    uint32_t thread = (uint32_t)(uintptr_t)number + 1;
    uint64_t first = BASE + ((uint64_t)thread << 36);
    for (uint64_t i = 0; i < live; i++) {
        tell(CM_EVENT_ALLOCATE, first + i * 512, thread);
    }
    pthread_barrier_wait(&begin);
    for (uint64_t i = 0; i < events / 2; i++) {
        uint64_t address = first + i % live * 512;
        tell(CM_EVENT_FREE, address, thread);
        tell(CM_EVENT_ALLOCATE, address, thread);
    }
    return NULL;
}

static int
rate(unsigned count)
{
    pthread_t threads[MOST_THREADS];
    struct cm_blocks_counts counts;
    pthread_barrier_init(&begin, NULL, count + 1);
    for (uintptr_t i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, churn, (void *)i) != 0) {
            return 1;
        }
    }
    pthread_barrier_wait(&begin);
    double start = now();
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    double seconds = now() - start;
    cm_blocks_counts(blocks, &counts);
    printf("{\"events\": %llu, \"seconds\": %.6f, \"lost\": %llu, "
           "\"unknown\": %llu}\n",
           (unsigned long long)(events / 2 * 2 * count), seconds,
           (unsigned long long)counts.lost,
           (unsigned long long)counts.unknown);
    return 0;
}

static int
bytes(int count, char **sizes)
{
    struct cm_blocks_counts counts;
    uint64_t there = 0;
    printf("{");
    for (int i = 0; i < count; i++) {
        uint64_t wanted = strtoull(sizes[i], NULL, 10);
        for (; there < wanted; there++) {
            tell(CM_EVENT_ALLOCATE, BASE + there * 512, 1);
        }
        cm_blocks_counts(blocks, &counts);
        printf("%s\"%llu\": %llu", i == 0 ? "" : ", ",
               (unsigned long long)there,
               (unsigned long long)counts.footprint);
    }
    printf("}\n");
    return counts.lost != 0;
}

int
main(int argc, char **argv)
{
    blocks = cm_blocks_new((size_t)1 << 24);
    if (blocks == NULL) {
        return 1;
    }
    if (argc == 5 && strcmp(argv[1], "rate") == 0) {
        unsigned threads = (unsigned)strtoul(argv[2], NULL, 10);
        live = strtoull(argv[3], NULL, 10);
        events = strtoull(argv[4], NULL, 10);
        return threads == 0 || threads > MOST_THREADS || live == 0
                   ? 2
                   : rate(threads);
    }
    if (argc > 2 && strcmp(argv[1], "bytes") == 0) {
        return bytes(argc - 2, argv + 2);
    }
    fprintf(stderr, "blocks rate THREADS LIVE EVENTS | bytes LIVE...\n");
    return 2;
}
