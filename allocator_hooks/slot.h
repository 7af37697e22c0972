/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_SLOT_H
#define CM_SLOT_H

/* The places through which one loaded library calls a function of another
 * (its global offset table), found in the library's own relocations and
 * changed there: nobody else's calls are touched.
 *
 * Linux with ELF on 64-bit machines; elsewhere nothing is ever found. */

#include <stdbool.h>
#include <stddef.h>

enum { CM_SLOT_MOST = 4, CM_SLOT_PATH = 4096 };

struct cm_slot_place {
    void **slot;
    bool read_only; /* the loader protected its page */
};

struct cm_slots {
    struct cm_slot_place places[CM_SLOT_MOST];
    size_t count;
};

/* How many libraries were loaded so far, never 0: where it is as before, no
 * other can be found. */
unsigned long long cm_slot_loads(void);
/* The path of the library that is loaded under this file name ("libc10.so");
 * false when none is. */
bool cm_slot_library(const char *file_name, char path[CM_SLOT_PATH]);
/* The slots of library `file_name` for `symbol`; how many are in the result. */
void cm_slot_find(const char *file_name, const char *symbol,
                  struct cm_slots *result);
/* Where `symbol` is in the loaded library at `path`, as the loader says, which
 * loads nothing; NULL when it is not there. */
void *cm_slot_original(const char *path, const char *symbol);
/* Whether each slot calls `original`, or will once the loader has looked it up:
 * until then it leads into code of its own library, `file_name`.  Or `ours`,
 * which could not be put back.  Else another tool has put a function of its own
 * there. */
bool cm_slot_is_free(const struct cm_slots *self, const char *file_name,
                     const void *original, const void *ours);
/* Makes every slot call `function`; all of them, or false and none. */
bool cm_slot_set(const struct cm_slots *self, void *function);
/* Makes those slots that still call `from` call `to`. */
void cm_slot_put_back(const struct cm_slots *self, void *from, void *to);

#endif
