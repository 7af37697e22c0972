/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DEVICES_H
#define CM_DEVICES_H

/* Which objects stand for device memory, and how much: asks the readers
 * (reader.h) of the frameworks that the user has imported, remembers the
 * answer per type.  Guarded by the GIL of its interpreter. */

#include <Python.h>

#include <stdbool.h>

#include "../../detector/heap.h"
#include "reader.h"

struct cm_devices;
struct cm_objects;

/* `objects` is borrowed and must live longer. */
struct cm_devices *cm_devices_new(const struct cm_objects *objects);
void cm_devices_free(struct cm_devices *self);

/* At the start of a collection: notices frameworks that were imported since.
 * Costs one dictionary look-up per framework not yet learnt.  Nothing is learnt
 * while the interpreter finalizes: that makes tensors (tables/finalizing.h), nor
 * while another call, which runs Python, is at it. */
void cm_devices_notice(struct cm_devices *self);
/* In a forked child: a thread that was at it is not here. */
void cm_devices_forked(struct cm_devices *self);

/* Which devices count.  `names` is a comma-separated list of such as
 * "cuda:0", "cuda", and "auto": every accelerator, and host memory as long as
 * no accelerator was seen in this process and `host_allowed`. */
void cm_devices_watch(struct cm_devices *self, const char *names,
                      bool host_allowed);
/* Whether it would count if `names` were watched. */
bool cm_devices_count(const struct cm_devices *self, const char *names,
                      const char *device);

/* Cheap: may objects of this type hold device memory? */
bool cm_devices_claim(struct cm_devices *self, PyTypeObject *type);
/* True when some claimed type may be untracked by the collector. */
bool cm_devices_untracked(const struct cm_devices *self);
/* False: holds no memory on a watched device (or none that can be read). */
bool cm_devices_read(struct cm_devices *self, PyObject *object,
                     struct cm_device_memory *result);
/* An array over several devices has a memory on each: goes on to the next one
 * that is watched.  False: there is none, and *result is left as it was.
 * Before: cm_devices_read() said yes. */
bool cm_devices_next(struct cm_devices *self, PyObject *object,
                     struct cm_device_memory *result);
/* The same for a torch StorageImpl that was met on the way (autograd.h). */
bool cm_devices_read_storage(struct cm_devices *self, uint64_t storage,
                             struct cm_device_memory *result);
/* "[64, 512] float32", or "" when not known.  Before: cm_devices_read() said
 * yes. */
void cm_devices_shape(const struct cm_devices *self, PyObject *object,
                      const struct cm_device_memory *memory, char *text,
                      size_t room);
/* "Tensor [64, 512] float32 cuda:0 128 KiB"; before: as for the shape.  Returns
 * how many bytes the contents are; 0: not known. */
enum { CM_DEVICE_LABEL_BYTES = 320 };
uint64_t cm_devices_label(const struct cm_devices *self, PyObject *object,
                          const struct cm_device_memory *memory,
                          char text[CM_DEVICE_LABEL_BYTES]);
/* The same of what has no Python object. */
void cm_devices_label_of(const char *name, const char *shape,
                         const struct cm_device_memory *memory,
                         char text[CM_DEVICE_LABEL_BYTES]);
/* A C field that holds this reference, ".name", or NULL. */
const char *cm_devices_field(struct cm_devices *self, PyObject *object,
                             PyObject *referent);
/* Are the storages of objects read earlier still there?  At most CM_ALIVE_MAX. */
void cm_devices_alive(const struct cm_devices *self,
                      const struct cm_storage *storages, size_t count,
                      enum cm_alive *answers);
/* Is each use that was counted an object that can be read, or autograd's? */
bool cm_devices_count_all(const struct cm_devices *self,
                          const struct cm_storage *storage);
/* Whether memory of the host is looked for by now. */
bool cm_devices_host_counts(const struct cm_devices *self);
/* The framework whose reader that is: "numba"; a constant. */
enum { CM_MAX_READERS = 8 };
const char *cm_devices_framework(uint8_t reader);
/* An accelerator is in use in this process. */
bool cm_devices_accelerator(const struct cm_devices *self);
void cm_devices_saw_accelerator(struct cm_devices *self);
/* A framework was imported whose layout is not learnt yet. */
bool cm_devices_learning(const struct cm_devices *self);
/* One of them is in sys.modules and not learnt yet. */
bool cm_devices_wait(const struct cm_devices *self);
/* Everything learnt is given up; it is learnt again when it is needed. */
void cm_devices_forget(struct cm_devices *self);
/* [new; never]: {"torch": "struct layout", ...}; NULL without memory. */
PyObject *cm_devices_status(const struct cm_devices *self, bool observed);

#endif
