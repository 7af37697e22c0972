/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A stand-in for libc10_cuda: an allocator that only counts, and reports as
 * the real one does, under a lock of its device. */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_c10.h"

void fake_report(int device_type, int device, uint64_t address, int64_t bytes);
void fake_pairs(int device, uint64_t first, uint64_t live, uint64_t count);
void fake_miss(int device, int64_t bytes);
uint64_t fake_allocated(int device);
struct fake_stream _ZN3c104cuda20getCurrentCUDAStreamEa(int8_t device);
extern int64_t fake_stream_id;

struct fake_stream {
    struct fake_device device;
    int64_t id;
};

int64_t fake_stream_id;

struct fake_stream
_ZN3c104cuda20getCurrentCUDAStreamEa(int8_t device)
{
    return (struct fake_stream){{1, device}, fake_stream_id};
}

void *fake_from_thread(void *address);

static struct {
    pthread_mutex_t lock;
    uint64_t allocated;
} devices[128];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
make_locks(void)
{
    for (int i = 0; i < 128; i++) {
        pthread_mutex_init(&devices[i].lock, NULL);
    }
}

void
fake_report(int device_type, int device, uint64_t address, int64_t bytes)
{
    struct fake_device where = {(int8_t)device_type, (int8_t)device};
    pthread_once(&once, make_locks);
    pthread_mutex_lock(&devices[device].lock);
    devices[device].allocated += (uint64_t)bytes;
    FAKE_REPORT((void *)(uintptr_t)address, bytes, devices[device].allocated,
                devices[device].allocated + 4096, where);
    pthread_mutex_unlock(&devices[device].lock);
}

/* Of these bytes nobody is told. */
void
fake_miss(int device, int64_t bytes)
{
    devices[device].allocated += (uint64_t)bytes;
}

uint64_t
fake_allocated(int device)
{
    return devices[device].allocated;
}

/* `count` times: the oldest of `live` blocks is freed, a new one allocated. */
void
fake_pairs(int device, uint64_t first, uint64_t live, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t address = first + i % live * 512;
        fake_report(1, device, address, -512);
        fake_report(1, device, address, 512);
    }
}

/* A thread's function: it allocates where its argument points. */
void *
fake_from_thread(void *address)
{
    fake_report(1, 0, (uint64_t)(uintptr_t)address, 4 << 20);
    return NULL;
}
