/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* An array by address, looked up by halves.  A graph's pool may have hundreds
 * of segments, and each storage of a heap asks. */

#include "private_pools.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../detector/alloc.h"

struct stretch {
    uint64_t address, bytes;
    char pool[24];
};

struct stretches {
    struct stretch *items; /* owned */
    size_t count, capacity;
};

static struct stretches known; /* by address */
static uint64_t lost;

const char *
cm_private_pools_at(uint64_t address)
{
    size_t low = 0, high = known.count; /* the first beyond it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool beyond = known.items[middle].address > address;
        low = beyond ? low : middle + 1;
        high = beyond ? middle : high;
    }
    const struct stretch *last = low > 0 ? &known.items[low - 1] : NULL;
    return last != NULL && address - last->address < last->bytes ? last->pool
                                                                 : NULL;
}

uint64_t
cm_private_pools_lost(void)
{
    return lost;
}

/* False with an error set. */
static bool
add(struct stretches *self, PyObject *row)
{
    unsigned long long address, bytes;
    const char *pool;
    if (!PyTuple_CheckExact(row)) {
        PyErr_SetString(PyExc_TypeError, "a pool is no tuple");
        return false;
    }
    if (!PyArg_ParseTuple(row, "KKs", &address, &bytes, &pool)) {
        return false;
    }
    if (cm_grow((void **)&self->items, &self->capacity, self->count + 1,
                sizeof(*self->items))
        != CM_OK) {
        lost++;
        return true;
    }
    struct stretch *stretch = &self->items[self->count++];
    stretch->address = address;
    stretch->bytes = bytes;
    (void)snprintf(stretch->pool, sizeof(stretch->pool), "%s", pool);
    return true;
}

static int
by_address(const void *one, const void *other)
{
    const struct stretch *a = one, *b = other;
    return (a->address > b->address) - (a->address < b->address);
}

PyObject *
cm_private_pools_set(PyObject *module, PyObject *pools)
{
    struct stretches now = {0};
    (void)module;
    if (!PyList_CheckExact(pools)) {
        PyErr_SetString(PyExc_TypeError, "a list of pools was expected");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pools); i++) {
        if (!add(&now, PyList_GET_ITEM(pools, i))) {
            cm_free(now.items);
            return NULL;
        }
    }
    if (now.count > 1) {
        qsort(now.items, now.count, sizeof(now.items[0]), by_address);
    }
    cm_free(known.items);
    known = now;
    Py_RETURN_NONE;
}
