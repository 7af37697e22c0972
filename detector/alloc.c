/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* malloc with a fault that can be placed.  Switched off, the fault costs one
 * relaxed load; counting live blocks costs one relaxed addition.  A size of 0
 * is taken as 1, so that NULL always means failure. */

#define CM_ALLOC_IMPLEMENTATION
#include "alloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static atomic_long fail_at = -1; /* negative: never */
static atomic_long attempts;     /* counted only while fail_at is set */
static atomic_bool fail_from_then_on;
static atomic_long live;

static bool
may_allocate(void)
{
    long at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    if (at < 0) {
        return true;
    }
    long now = atomic_fetch_add(&attempts, 1);
    return atomic_load(&fail_from_then_on) ? now < at : now != at;
}

static void *
count_live(void *pointer)
{
    if (pointer != NULL) {
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    }
    return pointer;
}

void *
cm_alloc(size_t bytes)
{
    if (!may_allocate()) {
        return NULL;
    }
    return count_live(malloc(bytes > 0 ? bytes : 1));
}

void *
cm_calloc(size_t count, size_t item_bytes)
{
    if (count == 0 || item_bytes == 0) {
        count = item_bytes = 1;
    }
    if (count > SIZE_MAX / item_bytes || !may_allocate()) {
        return NULL;
    }
    return count_live(calloc(count, item_bytes));
}

void *
cm_realloc(void *old, size_t bytes)
{
    if (!may_allocate()) {
        return NULL;
    }
    void *moved = realloc(old, bytes > 0 ? bytes : 1);
    return old == NULL ? count_live(moved) : moved;
}

void
cm_free(void *pointer)
{
    if (pointer != NULL) {
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
        free(pointer);
    }
}

char *
cm_strdup(const char *text)
{
    if (text == NULL) {
        return NULL;
    }
    size_t bytes = strlen(text) + 1;
    char *copy = cm_alloc(bytes);
    if (copy != NULL) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

enum cm_status
cm_grow(void **items, size_t *capacity, size_t needed, size_t item_bytes)
{
    if (needed <= *capacity) {
        return CM_OK;
    }
    size_t larger = *capacity < 8 ? 8 : *capacity;
    while (larger < needed) {
        larger = larger > SIZE_MAX / 2 ? needed : larger * 2;
    }
    if (item_bytes != 0 && larger > SIZE_MAX / item_bytes) {
        return CM_NO_MEMORY;
    }
    void *moved = cm_realloc(*items, larger * item_bytes);
    if (moved == NULL) {
        return CM_NO_MEMORY;
    }
    *items = moved;
    *capacity = larger;
    return CM_OK;
}

enum cm_status
cm_grow_zeroed(void **items, size_t *capacity, size_t needed,
               size_t item_bytes)
{
    size_t before = *capacity;
    enum cm_status status = cm_grow(items, capacity, needed, item_bytes);
    if (*capacity != before) {
        memset((char *)*items + before * item_bytes, 0,
               (*capacity - before) * item_bytes);
    }
    return status;
}

void
cm_alloc_fail_at(long nth, bool from_then_on)
{
    atomic_store(&attempts, 0);
    atomic_store(&fail_from_then_on, from_then_on);
    atomic_store(&fail_at, nth);
}

long
cm_alloc_live(void)
{
    return atomic_load(&live);
}
