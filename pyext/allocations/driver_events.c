/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The sink of the driver's hook.  It comes from any thread, inside a call of
 * the driver, mostly without the GIL: a stack, a number for it and the library,
 * and one entry in the table of live blocks. */

#include "driver_events.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../../allocator_hooks/driver.h"
#include "../../detector/alloc.h"
#include "../../detector/clock.h"
#include "../torch/backward.h"

#define MAX_BLOCKS ((size_t)1 << 22)
#define MOST_ORIGINS ((uint32_t)1 << 20)
#define LOOK_INTERVAL_NS UINT64_C(500000000)

enum warning { REFUSED, LOST, PROFILED, WARNINGS };

static struct {
    struct cm_blocks *blocks;             /* owned; never freed */
    struct cm_origins *origins;           /* owned; never freed */
    _Atomic(struct cm_objects *) objects; /* borrowed; NULL: no stacks */
    /* Guarded by the GIL, all below. */
    const struct cm_objects *user;
    bool wanted, is_open, busy, hooked, hopeless;
    const char *why;
    char library[4096];   /* a path of libcupti, or "" */
    char injection[4096]; /* who has CUDA_INJECTION64_PATH */
    bool due[WARNINGS], said[WARNINGS];
    uint64_t looked_ns;
} driver = {.why = "CUMEM_DRIVER is not set"};

/* -- events */

static void
on_event(void *context, const struct cm_event *event)
{
    struct cm_event one = *event;
    struct cm_origin origin = {event->site, event->library};
    (void)context;
    if (event->kind == CM_EVENT_ALLOCATE) {
        one.site.index = cm_origins_number(driver.origins, origin);
    }
    cm_blocks_event(driver.blocks, &one);
}

static struct cm_site_id
on_site(void *context, bool *awaited)
{
    (void)context;
    struct cm_objects *objects =
        atomic_load_explicit(&driver.objects, memory_order_acquire);
    *awaited = false;
    return objects != NULL ? cm_backward_stack(objects, awaited)
                           : (struct cm_site_id){0};
}

/* -- starting */

static bool
copy_text(char *result, size_t room, const char *text)
{
    int length = snprintf(result, room, "%s", text);
    return length >= 0 && (size_t)length < room;
}

PyObject *
cm_driver_events_ask(PyObject *module, PyObject *args)
{
    int wanted;
    PyObject *library, *injection; /* owned: bytes */
    (void)module;
    if (!PyArg_ParseTuple(args, "pO&O&:driver", &wanted, PyUnicode_FSConverter,
                          &library, PyUnicode_FSConverter, &injection)) {
        return NULL;
    }
    driver.wanted = wanted != 0;
    if (!driver.hooked) {
        driver.why = wanted ? "CUDA is not initialised in this process yet"
                            : "CUMEM_DRIVER is not set";
    }
    if (!copy_text(driver.library, sizeof(driver.library),
                   PyBytes_AS_STRING(library))) {
        driver.library[0] = '\0'; /* cut, it would be another file */
    }
    (void)copy_text(driver.injection, sizeof(driver.injection),
                    PyBytes_AS_STRING(injection));
    Py_DECREF(library);
    Py_DECREF(injection);
    Py_RETURN_NONE;
}

/* cuDeviceGetCount() makes no context, and fails before cuInit(). */
static bool
is_initialised(void)
{
    int count;
    int (*get_count)(int *) = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = library != NULL ? dlsym(library, "cuDeviceGetCount") : NULL;
    bool answered = false;
    if (symbol != NULL) {
        memcpy(&get_count, &symbol, sizeof(symbol));
        answered = get_count(&count) == 0;
    }
    if (library != NULL) {
        dlclose(library);
    }
    return answered;
}

static bool
make_tables(void)
{
    if (driver.blocks == NULL) {
        driver.blocks = cm_blocks_new(MAX_BLOCKS);
    }
    if (driver.origins == NULL) {
        driver.origins = cm_origins_new(MOST_ORIGINS);
    }
    return driver.blocks != NULL && driver.origins != NULL;
}

/* Frees may have been missed since the hook was there last. */
static void
subscribe(void)
{
    struct cm_sink sink = {.event = on_event, .site = on_site};
    const char *library = driver.library[0] != '\0' ? driver.library : NULL;
    const char *why = NULL;
    bool hooked;
    cm_blocks_clear(driver.blocks);
    Py_BEGIN_ALLOW_THREADS
    hooked = cm_driver.start(&sink, library, &why);
    Py_END_ALLOW_THREADS
    driver.hooked = hooked;
    driver.hopeless = !hooked;
    driver.why = hooked ? "CUPTI tells the driver's memory calls" : why;
    driver.due[REFUSED] = !hooked;
    if (hooked && !driver.is_open) { /* stopped meanwhile */
        cm_driver_events_stop();
    }
}

static void
start_if_initialised(bool sure)
{
    bool ready = sure;
    if (!ready) {
        Py_BEGIN_ALLOW_THREADS
        ready = is_initialised();
        Py_END_ALLOW_THREADS
    }
    if (!ready || !driver.is_open) {
        return;
    }
    if (make_tables()) {
        subscribe();
    }
    else {
        driver.why = "no memory for the table of blocks";
    }
}

void
cm_driver_events_notice(struct cm_objects *objects, bool stacks, bool sure)
{
    if (!driver.wanted || driver.hopeless || driver.busy) {
        return;
    }
    if (!driver.hooked) {
        driver.user = objects;
        driver.is_open = driver.busy = true;
        atomic_store(&driver.objects, stacks ? objects : NULL);
        start_if_initialised(sure);
        driver.busy = false;
    }
    if (driver.hooked && stacks && !cm_backward_heard()) {
        cm_backward_start(objects);
    }
}

void
cm_driver_events_stop(void)
{
    driver.is_open = false;
    driver.hopeless = false;
    if (driver.hooked) {
        driver.hooked = false;
        driver.why = "nobody observes";
        cm_backward_stop();
        Py_BEGIN_ALLOW_THREADS
        cm_driver.stop();
        Py_END_ALLOW_THREADS
    }
}

bool
cm_driver_events_use(const struct cm_objects *objects)
{
    return driver.user == objects && objects != NULL;
}

bool
cm_driver_events_heard(void)
{
    return driver.hooked;
}

void
cm_driver_events_off(void)
{
    if (driver.wanted) {
        cm_driver_events_stop();
        driver.wanted = false;
        driver.why = "a forked child is silent";
    }
}

/* -- what is wrong */

static void
look(void)
{
    driver.looked_ns = cm_clock_ns(CLOCK_MONOTONIC_COARSE);
    Py_BEGIN_ALLOW_THREADS
    cm_driver.flush();
    Py_END_ALLOW_THREADS
    driver.due[LOST] = driver.hooked && cm_driver_trouble() != NULL;
}

/* torch.autograd.profiler sets it for every profiler of torch's. */
static bool
is_profiled(void)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module =
        modules != NULL && PyDict_CheckExact(modules)
            ? PyDict_GetItemString(modules, "torch.autograd.profiler")
            : NULL;
    return module != NULL && PyModule_Check(module)
           && PyDict_GetItemString(PyModule_GetDict(module),
                                   "_is_profiler_enabled")
                  == Py_True;
}

static const char *
text_of(enum warning warning)
{
    static char text[1024];
    const char *before = "what the driver allocates is not seen: ";
    const char *reason = driver.why;
    if (warning == LOST) {
        before = "";
        reason = cm_driver_trouble();
    }
    else if (warning == PROFILED) {
        before = "";
        reason = "torch.profiler is recording and gets no GPU events, since "
                 "CUPTI serves one tool at a time and cumem holds it: unset "
                 "CUMEM_DRIVER to have them";
    }
    (void)snprintf(text, sizeof(text), "cumem: CUMEM_DRIVER=1: %s%s", before,
                   reason != NULL ? reason : "CUPTI was shut down");
    return text;
}

const char *
cm_driver_events_warning(void)
{
    if (!driver.wanted) {
        return NULL;
    }
    if (driver.hooked) {
        if (cm_clock_ns(CLOCK_MONOTONIC_COARSE) - driver.looked_ns
            > LOOK_INTERVAL_NS) {
            look();
        }
        driver.due[PROFILED] = !driver.said[PROFILED] && is_profiled();
    }
    for (int at = 0; at < WARNINGS; at++) {
        if (driver.due[at] && !driver.said[at]) {
            driver.said[at] = true;
            return text_of((enum warning)at);
        }
    }
    return NULL;
}

/* -- reading */

enum cm_status
cm_driver_events_copy(struct cm_block **blocks, size_t *count)
{
    *blocks = NULL;
    *count = 0;
    return driver.hooked && cm_driver_trouble() == NULL
               ? cm_blocks_copy(driver.blocks, blocks, count)
               : CM_OK;
}

struct cm_origin
cm_driver_events_origin(struct cm_site_id site)
{
    return driver.origins != NULL ? cm_origins_get(driver.origins, site.index)
                                  : (struct cm_origin){0};
}

static struct cm_block_use
use_of_all(void)
{
    struct cm_block_use sum = {0};
    for (int at = 0; driver.blocks != NULL && at < CM_MAX_DEVICES; at++) {
        struct cm_block_use use;
        cm_blocks_use(driver.blocks, at, &use);
        sum.live_bytes += use.live_bytes;
        sum.live_count += use.live_count;
    }
    return sum;
}

PyObject *
cm_driver_events_status(void)
{
    struct cm_blocks_counts counts = {0};
    uint64_t lost = 0;
    if (driver.hooked) {
        look();
        lost = cm_driver.lost();
    }
    if (driver.blocks != NULL) {
        cm_blocks_counts(driver.blocks, &counts);
    }
    struct cm_block_use use = use_of_all();
    return Py_BuildValue(
        "{sssssNszsKsKsKsKsKsK}", "hook",
        driver.hooked ? cm_driver.name : "none", "why", driver.why,
        "injection", PyUnicode_DecodeFSDefault(driver.injection), "trouble",
        driver.hooked ? cm_driver_trouble() : NULL, "events", counts.events,
        "lost", counts.lost + lost, "unknown_frees", counts.unknown,
        "live_blocks", use.live_count, "live_bytes", use.live_bytes,
        "footprint", counts.footprint);
}
