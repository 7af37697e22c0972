/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* backtrace() unwinds by the tables that every library carries, so frames
 * without frame pointers are seen; code made at run time belongs to no module
 * and is passed over.  The ranges of all modules are read again when the
 * loader's counts of loaded and unloaded modules have changed.  The new table
 * is filled beside the old one: while the loader's lock is held nothing is
 * allocated, and while ours is held nothing is called.  Cost: a backtrace of
 * at most 32 frames, one look at the loader, a binary search for each frame. */

#define _GNU_SOURCE // dl_iterate_phdr()
#include "caller.h"

#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h> // qsort()
#include <string.h>
#include <unistd.h>

#include "../detector/alloc.h"
#include "../detector/lock.h"
#include "../detector/text.h"

enum {
    MAX_FRAMES = 32,
    MAX_NAME = 64,
    MAX_RANGES = 65536,
    MAX_NAME_BYTES = 1 << 20
};

/* Executable memory of one module. */
struct range {
    uintptr_t start, end;
    bool ours, passed_over;
    char name[MAX_NAME]; /* its file's base name */
};

struct modules {
    unsigned long long loaded, unloaded; /* the loader's counts */
    size_t count, capacity;
    bool overflow;
    struct range ranges[];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool lock_works;         /* written once, by pthread_once */
static char program[MAX_NAME];  /* likewise */
static struct cm_lock lock;     /* never released */
static struct modules *modules; /* owned; guarded by lock; may be NULL */
static struct cm_texts *_Atomic names;
static _Atomic uint16_t first_number;        /* 0 or CM_CALLER_SECOND */
static cm_caller_names *_Atomic second_copy; /* may be NULL */

static void
copy_base_name(char *result, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t length = strnlen(name, MAX_NAME - 1);
    memcpy(result, name, length);
    result[length] = '\0';
}

static void
prepare(void)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    copy_base_name(program, path);
    lock_works = cm_lock_init(&lock) == CM_OK;
}

static bool
is_layer_of_cuda(const char *name)
{
    static const char *const prefixes[] = {"libcuda.so", "libcudart",
                                           "libcupti"};
    for (size_t at = 0; at < sizeof(prefixes) / sizeof(prefixes[0]); at++) {
        if (strncmp(name, prefixes[at], strlen(prefixes[at])) == 0) {
            return true;
        }
    }
    return false;
}

/* -- the loader's side: under its lock, so nothing is allocated -- */

static int
read_counts(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    struct modules *self = context;
    self->loaded = info->dlpi_adds;
    self->unloaded = info->dlpi_subs;
    return 1;
}

static int
count_ranges(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    size_t *count = context;
    for (int at = 0; at < info->dlpi_phnum; at++) {
        *count += info->dlpi_phdr[at].p_type == PT_LOAD
                  && (info->dlpi_phdr[at].p_flags & PF_X) != 0;
    }
    return 0;
}

static void
add_range(struct modules *self, const struct dl_phdr_info *info,
          const ElfW(Phdr) * segment)
{
    if (self->count == self->capacity) {
        self->overflow = true;
        return;
    }
    struct range *range = &self->ranges[self->count++];
    uintptr_t ours = (uintptr_t)&cm_caller_find;
    range->start = info->dlpi_addr + segment->p_vaddr;
    range->end = range->start + segment->p_memsz;
    copy_base_name(range->name, info->dlpi_name);
    if (range->name[0] == '\0') {
        memcpy(range->name, program, sizeof(program));
    }
    range->ours = ours >= range->start && ours < range->end;
    range->passed_over = range->ours || is_layer_of_cuda(range->name);
}

static int
add_module(struct dl_phdr_info *info, size_t bytes, void *context)
{
    struct modules *self = context;
    read_counts(info, bytes, self);
    for (int at = 0; at < info->dlpi_phnum; at++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[at];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0) {
            add_range(self, info, segment);
        }
    }
    return 0;
}

/* -- our side -- */

static int
compare_ranges(const void *a, const void *b)
{
    const struct range *one = a, *other = b;
    return (one->start > other->start) - (one->start < other->start);
}

/* Returns new; NULL when there is no memory or modules are just being loaded:
 * the next event tries again. */
static struct modules *
read_modules(void)
{
    size_t count = 0;
    dl_iterate_phdr(count_ranges, &count);
    count += 16; /* loaded between here and there */
    if (count > MAX_RANGES) {
        return NULL;
    }
    struct modules *self =
        cm_alloc(sizeof(*self) + count * sizeof(self->ranges[0]));
    if (self == NULL) {
        return NULL;
    }
    *self = (struct modules){.capacity = count};
    dl_iterate_phdr(add_module, self);
    if (self->overflow) {
        cm_free(self);
        return NULL;
    }
    qsort(self->ranges, self->count, sizeof(self->ranges[0]), compare_ranges);
    return self;
}

/* Before: the lock is held. */
static bool
is_current(const struct modules *now)
{
    return modules != NULL && modules->loaded == now->loaded
           && modules->unloaded == now->unloaded;
}

/* Another thread has read the loader later, and was faster; the counts only
 * go up.  Before: the lock is held. */
static bool
is_outdated(const struct modules *read)
{
    return modules != NULL
           && read->loaded + read->unloaded
                  < modules->loaded + modules->unloaded;
}

static enum cm_status
refresh(void)
{
    struct modules now = {0};
    dl_iterate_phdr(read_counts, &now);
    cm_lock_take(&lock);
    bool current = is_current(&now);
    cm_lock_give(&lock);
    if (current) {
        return CM_OK;
    }
    struct modules *read = read_modules();
    if (read == NULL) {
        return CM_NO_MEMORY;
    }
    cm_lock_take(&lock);
    struct modules *old = read;
    if (!is_outdated(read)) {
        old = modules;
        modules = read;
    }
    cm_lock_give(&lock);
    cm_free(old);
    return CM_OK;
}

/* Borrowed; NULL: in no module.  Before: the lock is held. */
static const struct range *
range_of(uintptr_t address)
{
    size_t low = 0, high = modules != NULL ? modules->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct range *range = &modules->ranges[middle];
        if (address < range->start) {
            high = middle;
        }
        else if (address >= range->end) {
            low = middle + 1;
        }
        else {
            return range;
        }
    }
    return NULL;
}

/* Copies the name out, "" when there is none. */
static void
first_foreign(void *const *frames, int count, char *name)
{
    bool seen_ours = false; /* what is before is a checker's backtrace() */
    name[0] = '\0';
    cm_lock_take(&lock);
    for (int at = 0; at < count; at++) {
        /* A frame is where the call returns to, perhaps the next function. */
        const struct range *range = range_of((uintptr_t)frames[at] - 1);
        seen_ours |= range != NULL && range->ours;
        if (range != NULL && seen_ours && !range->passed_over) {
            memcpy(name, range->name, MAX_NAME);
            break;
        }
    }
    cm_lock_give(&lock);
}

enum cm_status
cm_caller_start(void)
{
    pthread_once(&once, prepare);
    if (!lock_works) {
        return CM_NO_MEMORY;
    }
    if (atomic_load(&names) == NULL) {
        struct cm_texts *made = cm_texts_new(MAX_NAME_BYTES);
        struct cm_texts *none = NULL;
        if (made == NULL) {
            return CM_NO_MEMORY;
        }
        if (!atomic_compare_exchange_strong(&names, &none, made)) {
            cm_texts_free(made);
        }
    }
    void *frames[2];
    (void)backtrace(frames, 2);
    return refresh();
}

uint16_t
cm_caller_find(void)
{
    if (atomic_load(&names) == NULL) {
        return 0;
    }
    void *frames[MAX_FRAMES];
    char name[MAX_NAME];
    int count = backtrace(frames, MAX_FRAMES);
    /* Without memory the old ranges serve: a name may be missing. */
    enum cm_status refreshed = refresh();
    (void)refreshed;
    first_foreign(frames, count, name);
    return cm_caller_named(name, strlen(name));
}

uint16_t
cm_caller_named(const char *name, size_t length)
{
    struct cm_texts *texts = atomic_load(&names);
    struct cm_text_id id;
    if (texts == NULL || cm_texts_add(texts, name, length, &id) != CM_OK) {
        return 0;
    }
    if (id.index == 0 || id.index >= CM_CALLER_SECOND) {
        return 0;
    }
    return (uint16_t)(id.index | atomic_load(&first_number));
}

void
cm_caller_be_second(void)
{
    atomic_store(&first_number, CM_CALLER_SECOND);
}

void
cm_caller_ask(cm_caller_names *second)
{
    atomic_store(&second_copy, second);
}

const char *
cm_caller_name(uint16_t library)
{
    struct cm_texts *texts = atomic_load(&names);
    cm_caller_names *second = atomic_load(&second_copy);
    if ((library & CM_CALLER_SECOND) != atomic_load(&first_number)) {
        return second != NULL ? second(library) : "";
    }
    uint16_t number = library & (CM_CALLER_SECOND - 1);
    return texts != NULL ? cm_texts_get(texts, (struct cm_text_id){number})
                         : "";
}

void
cm_caller_release(void)
{
    cm_texts_free(atomic_exchange(&names, NULL));
    cm_free(modules);
    modules = NULL;
}
