/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* cumem.status(): which way is in use and why, what was seen, what was lost. */

#include "session_private.h"

#include <string.h>

#include "../../detector/alloc.h"
#include "../allocations/allocations.h"
#include "../torch/autograd_layout.h"
#include "../objects/deaths.h"
#include "demand.h"
#include "../allocations/driver_events.h"
#include "../frameworks/tags.h"

static void
add_counts(struct cm_interceptor_counts *sum,
           const struct cm_interceptor_counts *more)
{
    sum->collections += more->collections;
    sum->unheard += more->unheard;
    sum->walks += more->walks;
    sum->bad_walks += more->bad_walks;
    sum->unfired += more->unfired;
    sum->nested += more->nested;
    sum->too_deep += more->too_deep;
    sum->objects += more->objects;
    sum->no_memory += more->no_memory;
}

void
cm_session_counts(const struct cm_session *self,
                  struct cm_interceptor_counts *result)
{
    memset(result, 0, sizeof(*result));
    if (self->interceptor != NULL && !self->silent) {
        self->kind->counts(self->interceptor, result);
    }
    add_counts(result, &self->past);
}

static PyObject *
seen_counts(struct cm_session *self, struct cm_interceptor_counts *counts)
{
    struct cm_tags_counts tagged = {0};
    struct cm_digest_counts digested = {0};
    cm_tags_counts(&tagged);
    if (!self->silent) {
        cm_digest_counts(self->digest, &digested);
    }
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsKsKsKsd}", "collections", counts->collections,
        "unheard", counts->unheard, "walks", counts->walks, "nested",
        counts->nested, "objects", counts->objects, "heaps",
        self->frozen_heaps, "findings", digested.findings, "reports_written",
        digested.reports_written, "tensors_made", tagged.made, "tensors_live",
        tagged.live, "longest_pause_ms",
        (double)self->longest_freeze_ns / 1e6);
}

static PyObject *
lost_counts(struct cm_session *self, struct cm_interceptor_counts *counts)
{
    struct cm_tags_counts tagged = {0};
    struct cm_digest_counts digested = {0};
    struct cm_objects_status objects = {0};
    uint64_t dropped = self->dropped_heaps;
    cm_tags_counts(&tagged);
    cm_objects_status(self->objects, &objects);
    if (!self->silent) {
        cm_digest_counts(self->digest, &digested);
    }
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsK}", "bad_walks", counts->bad_walks, "unfired",
        counts->unfired, "too_deep", counts->too_deep, "heaps", dropped,
        "tags", tagged.lost, "write_errors", digested.write_errors,
        "no_memory", self->no_memory + counts->no_memory + digested.no_memory,
        "unnamed_edges", objects.unnamed_edges);
}

/* NULL: there are, or nobody observes. */
static const char *
no_stacks(const struct cm_session *self)
{
    return self->deliver != NULL && !self->silent && !self->stacks
               ? "stacks are off (CUMEM_STACKS=0, or watch(stacks=False))"
               : NULL;
}

/* What is read of the collector. */
static const char *
collector(const struct cm_session *self,
          const struct cm_interceptor_counts *counts)
{
    bool on = self->interceptor != NULL && !self->silent;
    return !on || self->kind != &cm_sentinel ? "not read"
           : counts->first && counts->flags  ? "struct layout"
           : counts->first                   ? "lists; flags are asked for"
                                             : "none: asked for";
}

static PyObject *
layouts(struct cm_session *self, const struct cm_interceptor_counts *counts)
{
    struct cm_objects_status status = {0};
    cm_objects_status(self->objects, &status);
    return Py_BuildValue(
        "{ssssssssss}", "stack",
        no_stacks(self) != NULL ? no_stacks(self) : status.stack, "code",
        cm_deaths_status(), "attributes", status.attributes, "frames",
        status.frames, "collector", collector(self, counts));
}

PyObject *
cm_session_report_path(struct cm_session *self)
{
    char *path = self->silent ? NULL : cm_digest_report_path(self->digest);
    PyObject *result =
        path != NULL ? PyUnicode_DecodeFSDefault(path) : Py_NewRef(Py_None);
    cm_free(path);
    return result;
}

PyObject *
cm_session_status(struct cm_session *self)
{
    struct cm_interceptor_counts counts;
    cm_session_counts(self, &counts);
    size_t frozen = 0;
    const char *frozen_seen =
        cm_scan_unsupported() == NULL ? cm_scan_frozen(&frozen) : "unknown";
    bool on = self->interceptor != NULL && !self->silent;
    const char *autograd;
    (void)cm_autograd_learnt(&autograd);
    return Py_BuildValue(
        "{sssssNsNsssOsNsNsNs{sssn}sNsNsNsNss}", "interceptor",
        on ? self->kind->name : "none", "why",
        self->silent ? "a forked child is silent" : self->why, "layouts",
        layouts(self, &counts), "frameworks",
        cm_devices_status(self->devices, self->deliver != NULL), "autograd",
        autograd, "accelerator",
        cm_devices_accelerator(self->devices) ? Py_True : Py_False, "seen",
        seen_counts(self, &counts), "lost", lost_counts(self, &counts),
        "report", cm_session_report_path(self), "frozen_objects", "how",
        frozen_seen, "count", (Py_ssize_t)frozen, "allocator_hook",
        cm_allocations_status(no_stacks(self)), "driver",
        cm_driver_events_status(), "looks", cm_looks_status(self), "signal",
        cm_demand_status(), "scan",
        cm_scan_unsupported() == NULL ? "read-only scan"
                                      : cm_scan_unsupported());
}
