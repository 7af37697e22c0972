/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A call changes our table under a leaf lock, notes what is to be told, lets
 * the lock go and tells it, on the thread that made the call.  Two threads
 * cannot mix up the events of one address: the driver gives an address out
 * again only after the call that frees it has begun, which is when the free
 * is told.
 *
 * A listener that comes late is told a copy of the table.  What happens
 * meanwhile waits in a queue, so that no free overtakes its allocation. */

#define _GNU_SOURCE // syscall()
#include "tally.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../detector/alloc.h"
#include "../detector/clock.h"
#include "../detector/lock.h"
#include "caller.h"
#include "holdings.h"

enum { BATCH = 16, MAX_QUEUE = 65536, MAX_MAPPINGS_OF_A_CALL = 65536 };

enum phase {
    CLOSED,
    EARLY,   /* nobody listens */
    TELLING, /* a listener is told what it missed; events wait in the queue */
    DIRECT
};

/* What one step of a call gives to tell. */
struct batch {
    struct cm_event events[BATCH];
    int count;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool lock_works;     /* written once, by pthread_once */
static struct cm_lock lock; /* never released; guards `state` */
static struct {
    enum phase phase;
    struct cm_sink sink;
    struct cm_holdings holdings;
    struct cm_event *queue; /* owned */
    size_t queue_count, queue_capacity;
} state;
static _Atomic uint64_t lost_events;

static void
lose_one(void)
{
    atomic_fetch_add_explicit(&lost_events, 1, memory_order_relaxed);
}

/* -- telling -- */

static struct cm_event
event_of(enum cm_event_kind kind, const struct cm_holding *holding)
{
    return (struct cm_event){
        .address = holding->key,
        .bytes = holding->bytes,
        .stream = holding->stream,
        .time_ns = holding->time_ns,
        .thread = holding->thread,
        .device = holding->device,
        .kind = (uint8_t)kind,
        .library = holding->library,
    };
}

/* Before: the batch has room. */
static void
add_free(struct batch *batch, const struct cm_holding *holding)
{
    struct cm_event event = event_of(CM_EVENT_FREE, holding);
    event.time_ns = cm_clock_ns(CLOCK_MONOTONIC_COARSE);
    event.thread = (uint32_t)syscall(SYS_gettid);
    batch->events[batch->count++] = event;
}

/* Before: the lock is held. */
static void
wait_in_queue(const struct cm_event *event)
{
    if (state.queue_count >= MAX_QUEUE
        || cm_grow((void **)&state.queue, &state.queue_capacity,
                   state.queue_count + 1, sizeof(*event))
               != CM_OK) {
        lose_one();
        return;
    }
    state.queue[state.queue_count++] = *event;
}

/* Before: the lock is held.  After: it is not, and the batch is told. */
static void
give_lock_and_tell(struct batch *batch)
{
    struct cm_sink sink = state.sink;
    if (state.phase == TELLING) {
        for (int at = 0; at < batch->count; at++) {
            wait_in_queue(&batch->events[at]);
        }
    }
    if (state.phase != DIRECT) {
        batch->count = 0;
    }
    cm_lock_give(&lock);
    for (int at = 0; at < batch->count; at++) {
        sink.event(sink.context, &batch->events[at]);
    }
    batch->count = 0;
}

/* -- what a call does to the table -- */

/* The sink that wants stacks now, if any. */
static struct cm_sink
sink_now(void)
{
    struct cm_sink none = {0};
    cm_lock_take(&lock);
    struct cm_sink sink = state.phase >= TELLING ? state.sink : none;
    cm_lock_give(&lock);
    return sink;
}

static bool
is_mapping(const struct cm_holding *holding)
{
    return (holding->key & (CM_KEY_HANDLE | CM_KEY_MAPPING)) == CM_KEY_MAPPING;
}

static bool
goes_with_a_context(const struct cm_holding *holding)
{
    return (holding->key & (CM_KEY_HANDLE | CM_KEY_MAPPING)) == 0;
}

static void
allocate(const struct cm_driver_call *call, uint64_t context)
{
    if (call->device < 0 || call->device >= CM_MAX_DEVICES) {
        lose_one();
        return;
    }
    struct cm_holding holding = {
        .key = call->key,
        .bytes = call->bytes,
        .stream = call->stream,
        .time_ns = cm_clock_ns(CLOCK_MONOTONIC_COARSE),
        .context = context,
        .thread = (uint32_t)syscall(SYS_gettid),
        .references = 1,
        .library = cm_caller_find(),
        .device = (int16_t)call->device,
    };
    struct batch batch = {.count = 1};
    batch.events[0] = event_of(CM_EVENT_ALLOCATE, &holding);
    struct cm_sink sink = sink_now();
    if (sink.site != NULL) {
        batch.events[0].site =
            sink.site(sink.context, &batch.events[0].awaited);
    }
    cm_lock_take(&lock);
    if (state.phase == CLOSED) {
        batch.count = 0;
    }
    else if (cm_holdings_put(&state.holdings, &holding) != CM_OK) {
        batch.count = 0;
        lose_one();
    }
    give_lock_and_tell(&batch);
}

/* Also what was allocated before we looked: the listener counts those. */
static void
free_key(const struct cm_driver_call *call)
{
    struct cm_holding holding = {
        .key = call->key,
        .stream = CM_STREAM_UNKNOWN,
        .device = (int16_t)(call->device >= 0 ? call->device : 0),
    };
    struct batch batch = {0};
    cm_lock_take(&lock);
    (void)cm_holdings_remove(&state.holdings, call->key, &holding);
    add_free(&batch, &holding);
    give_lock_and_tell(&batch);
}

/* Before: the lock is held. */
static void
free_if_unused(struct cm_holding *memory, struct batch *batch)
{
    struct cm_holding gone;
    if (memory->references == 0 && memory->mappings == 0
        && cm_holdings_remove(&state.holdings, memory->key, &gone)) {
        add_free(batch, &gone);
    }
}

/* A handle that is not in the table came from another process. */
static void
count_references(uint64_t key, bool one_more)
{
    struct batch batch = {0};
    cm_lock_take(&lock);
    struct cm_holding *memory = cm_holdings_find(&state.holdings, key);
    if (memory != NULL && one_more) {
        memory->references++;
    }
    else if (memory != NULL && memory->references > 0) {
        memory->references--;
        free_if_unused(memory, &batch);
    }
    give_lock_and_tell(&batch);
}

/* Before: the lock is held. */
static void
count_mapping(uint64_t key)
{
    struct cm_holding *memory = cm_holdings_find(&state.holdings, key);
    if (memory != NULL) {
        memory->mappings++;
    }
}

static void
map(const struct cm_driver_call *call)
{
    struct batch batch = {0};
    struct cm_holding mapping = {
        .key = call->address | CM_KEY_MAPPING,
        .bytes = call->bytes,
        .memory = call->key,
    };
    cm_lock_take(&lock);
    /* Kept for memory of another process too, so that unmap() finds its way
     * through a row of mappings. */
    if (state.phase != CLOSED
        && cm_holdings_put(&state.holdings, &mapping) != CM_OK) {
        lose_one();
    }
    else {
        count_mapping(call->key);
    }
    give_lock_and_tell(&batch);
}

/* One call takes away all mappings that stand in a row. */
static void
unmap(const struct cm_driver_call *call)
{
    uint64_t address = call->address, left = call->bytes;
    for (int at = 0; at < MAX_MAPPINGS_OF_A_CALL && left > 0; at++) {
        struct batch batch = {0};
        struct cm_holding mapping = {.bytes = left};
        cm_lock_take(&lock);
        if (cm_holdings_remove(&state.holdings, address | CM_KEY_MAPPING,
                               &mapping)) {
            struct cm_holding *memory =
                cm_holdings_find(&state.holdings, mapping.memory);
            if (memory != NULL && memory->mappings > 0) {
                memory->mappings--;
                free_if_unused(memory, &batch);
            }
        }
        give_lock_and_tell(&batch);
        address += mapping.bytes;
        left -= mapping.bytes < left ? mapping.bytes : left;
    }
}

/* Takes out what goes with the context, or with all of the device when that
 * is 0, as far as the batch has room.  Before: the lock is held. */
static void
take_out(uint64_t context, int device, struct batch *batch)
{
    struct cm_holding *at, gone;
    size_t place = 0;
    while (batch->count < BATCH
           && (at = cm_holdings_next(&state.holdings, &place)) != NULL) {
        if (!goes_with_a_context(at)
            || (context != 0 ? at->context != context
                             : at->device != device)) {
            continue;
        }
        (void)cm_holdings_remove(&state.holdings, at->key, &gone);
        add_free(batch, &gone);
        place--;
    }
}

static void
leave(uint64_t context, int device)
{
    bool more;
    do {
        struct batch batch = {0};
        cm_lock_take(&lock);
        take_out(context, device, &batch);
        more = batch.count == BATCH;
        give_lock_and_tell(&batch);
    } while (more);
}

void
cm_tally_call(enum cm_driver_action action, const struct cm_driver_call *call,
              uint64_t context)
{
    switch (action) {
    case CM_DRIVER_ALLOCATE: allocate(call, context); break;
    case CM_DRIVER_FREE: free_key(call); break;
    case CM_DRIVER_RETAIN: count_references(call->key, true); break;
    case CM_DRIVER_RELEASE: count_references(call->key, false); break;
    case CM_DRIVER_MAP: map(call); break;
    case CM_DRIVER_UNMAP: unmap(call); break;
    case CM_DRIVER_CONTEXT_GONE: leave(call->context, -1); break;
    case CM_DRIVER_DEVICE_GONE: leave(0, call->device); break;
    }
}

/* -- life -- */

static void
make_lock(void)
{
    lock_works = cm_lock_init(&lock) == CM_OK;
}

enum cm_status
cm_tally_open(void)
{
    pthread_once(&once, make_lock);
    if (!lock_works) {
        return CM_NO_MEMORY;
    }
    cm_lock_take(&lock);
    state.phase = state.phase == CLOSED ? EARLY : state.phase;
    cm_lock_give(&lock);
    return CM_OK;
}

void
cm_tally_close(void)
{
    cm_lock_take(&lock);
    cm_holdings_release(&state.holdings);
    cm_free(state.queue);
    state.queue = NULL;
    state.queue_count = state.queue_capacity = 0;
    state.sink = (struct cm_sink){0};
    state.phase = CLOSED;
    cm_lock_give(&lock);
}

/* Returns new: what is allocated now, and from now on events wait in the
 * queue.  NULL: no memory, nothing was changed. */
static struct cm_event *
begin_telling(const struct cm_sink *sink, size_t *count)
{
    size_t room = 0;
    struct cm_event *events = NULL;
    cm_lock_take(&lock);
    while (events == NULL || room < state.holdings.count) {
        room = state.holdings.count + BATCH;
        cm_lock_give(&lock);
        cm_free(events);
        events = cm_alloc(room * sizeof(events[0]));
        if (events == NULL) {
            return NULL;
        }
        cm_lock_take(&lock);
    }
    struct cm_holding *at;
    size_t place = 0;
    *count = 0;
    while ((at = cm_holdings_next(&state.holdings, &place)) != NULL) {
        if (!is_mapping(at)) {
            events[(*count)++] = event_of(CM_EVENT_ALLOCATE, at);
        }
    }
    state.sink = *sink;
    state.phase = TELLING;
    cm_lock_give(&lock);
    return events;
}

enum cm_status
cm_tally_listen(const struct cm_sink *sink)
{
    size_t count;
    struct cm_event *events = begin_telling(sink, &count);
    if (events == NULL) {
        return CM_NO_MEMORY;
    }
    while (events != NULL) {
        for (size_t at = 0; at < count; at++) {
            sink->event(sink->context, &events[at]);
        }
        cm_free(events);
        cm_lock_take(&lock);
        events = state.queue;
        count = state.queue_count;
        state.queue = NULL;
        state.queue_count = state.queue_capacity = 0;
        if (events == NULL) {
            state.phase = DIRECT;
        }
        cm_lock_give(&lock);
    }
    return CM_OK;
}

uint64_t
cm_tally_lost(void)
{
    return atomic_load_explicit(&lost_events, memory_order_relaxed);
}
