/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A code watcher (CPython 3.12, public API) hears each code object's end; on
 * 3.11 ours stands before the type's own tp_dealloc.  When one that was noted
 * ends, the turn is over: keys of this turn are never
 * made again.  Imports end many (the code of modules), so the next turn begins
 * only when it has been quiet for a second, and while the table of stacks has
 * room: each turn leaves its own there.
 *
 * Which were noted is a Bloom filter of two bits in 2^18 (Bloom, "Space/time
 * trade-offs in hash coding with allowable errors", 1970): with 10,000 codes
 * one in 180 that was not noted ends a turn too. */

#include "deaths.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "../../detector/clock.h"
#include "objects_private.h"

enum { WORDS = 1 << 12 };
#define QUIET_NS UINT64_C(1000000000)

static struct {
    struct cm_objects *objects; /* borrowed; NULL: not started */
    uint64_t turns;             /* begun so far, in the process */
    uint64_t ended_ns;
    const char *why_not; /* constant; NULL: heard, or never started */
    void (*on_module)(void);
    _Atomic uint64_t noted[WORDS];
} deaths;

/* Two places, in the halves of the result. */
static uint64_t
places_of(const void *code)
{
    uint64_t hash = (uint64_t)(uintptr_t)code * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 32;
    return hash * UINT64_C(0xD6E8FEB86659FD93);
}

static _Atomic uint64_t *
word_of(uint64_t place)
{
    return &deaths.noted[place / 64 % WORDS];
}

void
cm_deaths_note(const PyCodeObject *code)
{
    uint64_t places = places_of(code);
    for (int i = 0; i < 2; i++, places >>= 32) {
        atomic_fetch_or_explicit(word_of(places), UINT64_C(1) << places % 64,
                                 memory_order_relaxed);
    }
}

const char *
cm_deaths_status(void)
{
    if (deaths.objects == NULL) {
        return deaths.why_not != NULL ? deaths.why_not : "nobody observes";
    }
    if (atomic_load(&deaths.objects->turn) != 0) {
        return "by address, while none of them dies";
    }
    return cm_stack_has_room(deaths.objects)
               ? "compared: some died a moment ago"
               : "compared: some die again and again";
}

#ifndef Py_GIL_DISABLED

static bool
is_noted(const PyCodeObject *code)
{
    uint64_t places = places_of(code);
    bool noted = true;
    for (int i = 0; i < 2; i++, places >>= 32) {
        uint64_t word =
            atomic_load_explicit(word_of(places), memory_order_relaxed);
        noted = noted && (word >> places % 64 & 1) != 0;
    }
    return noted;
}

/* Of this interpreter: on 3.11 all of them come by. */
static bool
is_module(const PyCodeObject *code)
{
    return code->co_name != NULL && PyUnicode_CheckExact(code->co_name)
           && PyUnicode_CompareWithASCIIString(code->co_name, "<module>") == 0
           && PyInterpreterState_Get() == deaths.objects->interpreter;
}

static void
note_death(const PyCodeObject *code)
{
    if (deaths.objects == NULL) {
        return;
    }
    if (is_noted(code)) {
        atomic_store(&deaths.objects->turn, 0);
        deaths.ended_ns = cm_clock_ns(CLOCK_MONOTONIC_COARSE);
    }
    if (deaths.on_module != NULL && is_module(code)) {
        deaths.on_module();
    }
}

#if PY_VERSION_HEX >= 0x030C0000

static int watcher;

static int
on_code(PyCodeEvent event, PyCodeObject *code)
{
    if (event == PY_CODE_EVENT_DESTROY) {
        note_death(code);
    }
    return 0;
}

static bool
hear(void)
{
    watcher = PyCode_AddWatcher(on_code);
    PyErr_Clear();
    return watcher >= 0;
}

static void
hear_no_more(void)
{
    if (PyCode_ClearWatcher(watcher) < 0) {
        PyErr_Clear();
    }
}

#else

static destructor original;
static bool in_place; /* also behind who came after us: then we stay */

static void
on_dealloc(PyObject *code)
{
    note_death((PyCodeObject *)code);
    original(code);
}

static bool
hear(void)
{
    if (!in_place) {
        original = PyCode_Type.tp_dealloc;
        PyCode_Type.tp_dealloc = on_dealloc;
        in_place = true;
    }
    return true;
}

static void
hear_no_more(void)
{
    if (PyCode_Type.tp_dealloc == on_dealloc) {
        PyCode_Type.tp_dealloc = original;
        in_place = false;
    }
}

#endif

static void
begin_turn(void)
{
    if (!cm_stack_has_room(deaths.objects)) {
        return;
    }
    for (size_t i = 0; i < WORDS; i++) {
        atomic_store_explicit(&deaths.noted[i], 0, memory_order_relaxed);
    }
    atomic_store(&deaths.objects->turn, ++deaths.turns);
}

void
cm_deaths_start(struct cm_objects *objects)
{
    if (deaths.objects != NULL || !objects->proven.stack) {
        return;
    }
    if (!hear()) {
        deaths.why_not = "compared: others watch on all of Python's places";
        return;
    }
    deaths.why_not = NULL;
    deaths.objects = objects;
    objects->interpreter = PyInterpreterState_Get();
    begin_turn();
}

void
cm_deaths_stop(const struct cm_objects *objects)
{
    if (deaths.objects == NULL || deaths.objects != objects) {
        return;
    }
    atomic_store(&deaths.objects->turn, 0);
    deaths.objects = NULL;
    deaths.on_module = NULL;
    hear_no_more();
}

void
cm_deaths_on_module(void (*hook)(void))
{
    deaths.on_module = hook;
}

void
cm_deaths_rest(void)
{
    if (deaths.objects != NULL && atomic_load(&deaths.objects->turn) == 0
        && cm_clock_ns(CLOCK_MONOTONIC_COARSE) - deaths.ended_ns > QUIET_NS) {
        begin_turn();
    }
}

#else

void
cm_deaths_start(struct cm_objects *objects)
{
    (void)objects;
    deaths.why_not = "compared: a free-threaded Python";
}

void
cm_deaths_stop(const struct cm_objects *objects)
{
    (void)objects;
}

void
cm_deaths_on_module(void (*hook)(void))
{
    (void)hook;
}

void
cm_deaths_rest(void)
{
}

#endif
