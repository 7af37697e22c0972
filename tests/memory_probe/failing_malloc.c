/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* For LD_PRELOAD: malloc, calloc and realloc that can be made to fail where
 * cumem's extension or cJSON calls them, and nowhere else.  So the package is
 * tested as it is installed; needs glibc. */

#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t item_bytes);
void *__libc_realloc(void *old, size_t bytes);

void *malloc(size_t bytes);
void *calloc(size_t count, size_t item_bytes);
void *realloc(void *old, size_t bytes);
long fail_malloc_at(long nth, int from_then_on);

enum { RANGES_MAX = 32 };

/* Written while nothing fails. */
static struct {
    uintptr_t start, end;
} ranges[RANGES_MAX];
static size_t range_count;

static atomic_long fail_at = -1; /* negative: never */
static atomic_long attempts;
static atomic_int all_from_there;

static int
note_ranges(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    if (strstr(info->dlpi_name, "/cumem/_core") == NULL
        && strstr(info->dlpi_name, "/libcjson") == NULL) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum && range_count < RANGES_MAX; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0) {
            ranges[range_count].start = info->dlpi_addr + part->p_vaddr;
            ranges[range_count].end =
                ranges[range_count].start + part->p_memsz;
            range_count++;
        }
    }
    return 0;
}

/* The attempt `nth` (from 0), and with `from_then_on` all after it; negative:
 * none.  Returns how many attempts there were since the last call. */
__attribute__((visibility("default"))) long
fail_malloc_at(long nth, int from_then_on)
{
    atomic_store(&fail_at, -1);
    if (range_count == 0) {
        dl_iterate_phdr(note_ranges, NULL);
    }
    long made = atomic_exchange(&attempts, 0);
    atomic_store(&all_from_there, from_then_on);
    atomic_store(&fail_at, nth);
    return made;
}

static bool
fails(const void *caller)
{
    long at = atomic_load(&fail_at);
    bool ours = false;
    for (size_t i = 0; at >= 0 && i < range_count; i++) {
        ours |= (uintptr_t)caller >= ranges[i].start
                && (uintptr_t)caller < ranges[i].end;
    }
    if (!ours) {
        return false;
    }
    long now = atomic_fetch_add(&attempts, 1);
    bool failing = atomic_load(&all_from_there) != 0 ? now >= at : now == at;
    if (failing) {
        errno = ENOMEM;
    }
    return failing;
}

void *
malloc(size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *
calloc(size_t count, size_t item_bytes)
{
    return fails(__builtin_return_address(0))
               ? NULL
               : __libc_calloc(count, item_bytes);
}

void *
realloc(void *old, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL
                                              : __libc_realloc(old, bytes);
}
