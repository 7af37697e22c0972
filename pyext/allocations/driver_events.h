/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DRIVER_EVENTS_H
#define CM_DRIVER_EVENTS_H

/* What CUDA's driver has given out in this process, to any library, for who
 * asks for it with CUMEM_DRIVER=1.  Nothing at all happens before.  One table
 * per process, beside that of torch's allocator (allocations.h): the frameworks
 * stand on the driver, and what both tables have is one memory.
 *
 * With the GIL, all of them; those that say so give it back meanwhile, since
 * CUPTI may wait for another thread. */

#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../allocator_hooks/origins.h"
#include "../../detector/blocks.h"
#include "../objects/objects.h"

/* [none; raises] (wanted, a path of libcupti or "", who has
 * CUDA_INJECTION64_PATH: a text); as the file system's names are encoded. */
PyObject *cm_driver_events_ask(PyObject *module, PyObject *args);

/* Subscribes once CUDA is initialised, which is never done here; `sure`: it
 * is.  As cm_allocations_notice() else.  Gives the GIL back. */
void cm_driver_events_notice(struct cm_objects *objects, bool stacks,
                             bool sure);
/* Ends the subscription; what was seen is kept.  Gives the GIL back. */
void cm_driver_events_stop(void);
/* True once `objects` has been handed to the hook. */
bool cm_driver_events_use(const struct cm_objects *objects);
/* Events come. */
bool cm_driver_events_heard(void);
/* In a forked child: nothing is heard any more. */
void cm_driver_events_off(void);

/* What is to be said to the user, each once, and no longer than until the next
 * call; NULL: nothing more.  Looks at times whether events still come, and then
 * gives the GIL back. */
const char *cm_driver_events_warning(void);

/* What is allocated now, none where that is not known; *blocks may be NULL and
 * is to be freed with cm_free().  Their sites are numbers for
 * cm_driver_events_origin(). */
enum cm_status cm_driver_events_copy(struct cm_block **blocks, size_t *count)
    CM_CHECKED;
struct cm_origin cm_driver_events_origin(struct cm_site_id site);

/* [new; never]: {"hook", "why", "injection", ...}; NULL without memory.  Gives
 * the GIL back. */
PyObject *cm_driver_events_status(void);

#endif
