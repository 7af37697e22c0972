/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A capsule that owns the frozen heaps and their findings. */

#include "sighting.h"

#include "../../detector/alloc.h"

enum { MAX_HEAPS = 3 };

static const char capsule_name[] = "cumem._core.event";

struct cm_sighting {
    PyObject *module;         /* owned: keeps the digest alive */
    struct cm_digest *digest; /* borrowed */
    struct cm_heap heaps[MAX_HEAPS];
    struct cm_findings findings[MAX_HEAPS];
    size_t count;
    PyObject *whole; /* owned: the event that owns what these have, all but
                      * the arrays of findings; NULL: they own it */
};

static void
sighting_free(struct cm_sighting *self)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->whole != NULL) {
            cm_free(self->findings[i].items);
        }
        else {
            cm_findings_release(&self->findings[i]);
            cm_heap_release(&self->heaps[i]);
        }
    }
    Py_XDECREF(self->whole);
    Py_XDECREF(self->module);
    cm_free(self);
}

static void
capsule_free(PyObject *capsule)
{
    struct cm_sighting *self = PyCapsule_GetPointer(capsule, capsule_name);
    if (self != NULL) {
        sighting_free(self);
    }
}

static enum cm_status
find_all(struct cm_sighting *self, bool recorded)
{
    enum cm_status status = CM_OK;
    for (size_t i = 0; status == CM_OK && i < self->count; i++) {
        status = cm_digest_find(self->digest, &self->heaps[i], recorded,
                                &self->findings[i]);
    }
    return status;
}

PyObject *
cm_sighting_new(PyObject *module, struct cm_digest *digest,
                struct cm_heap *heaps, size_t count, bool recorded)
{
    struct cm_sighting *self = cm_calloc(1, sizeof(*self));
    if (self == NULL) {
        return PyErr_NoMemory();
    }
    self->module = Py_NewRef(module);
    self->digest = digest;
    self->count = count < MAX_HEAPS ? count : MAX_HEAPS;
    for (size_t i = 0; i < self->count; i++) {
        self->heaps[i] = heaps[i];
        heaps[i] = (struct cm_heap){0};
    }
    enum cm_status status;
    Py_BEGIN_ALLOW_THREADS
    status = find_all(self, recorded);
    Py_END_ALLOW_THREADS
    if (status != CM_OK) {
        sighting_free(self);
        PyErr_SetString(PyExc_MemoryError, cm_status_text(status));
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(self, capsule_name, capsule_free);
    if (capsule == NULL) {
        sighting_free(self);
    }
    return capsule;
}

/* [borrowed; raises] */
static struct cm_sighting *
sighting_of(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, capsule_name)) {
        PyErr_Format(PyExc_TypeError, "an event was expected, not %.100s",
                     Py_TYPE(capsule)->tp_name);
        return NULL;
    }
    return PyCapsule_GetPointer(capsule, capsule_name);
}

static size_t
count_findings(const struct cm_sighting *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++) {
        count += self->findings[i].count;
    }
    return count;
}

size_t
cm_sighting_count(PyObject *event)
{
    const struct cm_sighting *self = sighting_of(event);
    return self != NULL ? count_findings(self) : 0;
}

PyObject *
cm_sighting_document(PyObject *module, PyObject *event)
{
    struct cm_sighting *self = sighting_of(event);
    struct cm_buffer document = {0};
    PyObject *result = NULL;
    (void)module;
    if (self == NULL) {
        return NULL;
    }
    enum cm_status status = cm_digest_document(
        self->digest, self->heaps, self->findings, self->count, &document);
    if (status == CM_OK) {
        result = PyBytes_FromStringAndSize(document.bytes,
                                           (Py_ssize_t)document.length);
    }
    else {
        PyErr_SetString(PyExc_MemoryError, cm_status_text(status));
    }
    cm_buffer_release(&document);
    return result;
}

/* Sorted, so that the order of the findings does not tell. */
static void
insert_sorted(uint64_t *items, size_t count, uint64_t item)
{
    while (count > 0 && items[count - 1] > item) {
        items[count] = items[count - 1];
        count--;
    }
    items[count] = item;
}

PyObject *
cm_sighting_key(PyObject *module, PyObject *event)
{
    const struct cm_sighting *self = sighting_of(event);
    size_t total = self != NULL ? cm_sighting_count(event) : 0;
    size_t count = 0;
    (void)module;
    if (self == NULL) {
        return NULL;
    }
    uint64_t *sorted = cm_calloc(total + 1, sizeof(*sorted));
    if (sorted == NULL) {
        return PyErr_NoMemory();
    }
    for (size_t i = 0; i < self->count; i++) {
        for (size_t k = 0; k < self->findings[i].count; k++) {
            insert_sorted(sorted, count++,
                          self->findings[i].items[k].fingerprint);
        }
    }
    PyObject *result = PyBytes_FromStringAndSize(
        (const char *)sorted, (Py_ssize_t)(count * sizeof(*sorted)));
    cm_free(sorted);
    return result;
}

/* --- what one observer hears of ------------------------------------------- */

/* What holds no bytes of its own is where its largest object's memory is. */
static bool
is_wished(const struct cm_sighting_wish *wish, const struct cm_heap *heap,
          const struct cm_finding *finding)
{
    uint64_t bytes = 0;
    bool there = false;
    for (size_t i = 0; i < finding->device_count; i++) {
        const struct cm_bytes_on *on = &finding->bytes_on[i];
        if (cm_devices_count(wish->devices, wish->names,
                             cm_records_text(wish->records, on->device))) {
            bytes += on->bytes;
            there = true;
        }
    }
    if (finding->device_count == 0 && finding->payload_count != 0) {
        uint32_t storage = heap->nodes[finding->payload[0]].storage.index;
        there = cm_devices_count(
            wish->devices, wish->names,
            cm_records_text(wish->records, heap->storages[storage].device));
    }
    return there && bytes >= wish->min_bytes;
}

/* Those that are wished for, or only their number. */
static size_t
select_findings(const struct cm_sighting_wish *wish,
                const struct cm_heap *heap, const struct cm_findings *from,
                struct cm_finding *items)
{
    size_t count = 0;
    for (size_t i = 0; i < from->count; i++) {
        if (!is_wished(wish, heap, &from->items[i])) {
            continue;
        }
        if (items != NULL) {
            items[count] = from->items[i];
        }
        count++;
    }
    return count;
}

static size_t
count_wished(const struct cm_sighting *self,
             const struct cm_sighting_wish *wish)
{
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++) {
        count +=
            select_findings(wish, &self->heaps[i], &self->findings[i], NULL);
    }
    return count;
}

/* False: no memory. */
static bool
add_part(struct cm_sighting *self, const struct cm_sighting_wish *wish,
         const struct cm_heap *heap, const struct cm_findings *from)
{
    struct cm_findings *part = &self->findings[self->count];
    struct cm_finding *items = cm_calloc(from->count + 1, sizeof(*items));
    if (items == NULL) {
        return false;
    }
    *part = (struct cm_findings){.items = items, .left_out = from->left_out};
    part->count = select_findings(wish, heap, from, items);
    self->heaps[self->count++] = *heap;
    return true;
}

/* [new; raises] */
static PyObject *
make_part(PyObject *event, const struct cm_sighting *whole,
          const struct cm_sighting_wish *wish)
{
    struct cm_sighting *self = cm_calloc(1, sizeof(*self));
    if (self == NULL) {
        return PyErr_NoMemory();
    }
    self->module = Py_NewRef(whole->module);
    self->digest = whole->digest;
    self->whole = Py_NewRef(event);
    bool done = true;
    for (size_t i = 0; done && i < whole->count; i++) {
        done = add_part(self, wish, &whole->heaps[i], &whole->findings[i]);
    }
    PyObject *result = done ? PyCapsule_New(self, capsule_name, capsule_free)
                            : PyErr_NoMemory();
    if (result == NULL) {
        sighting_free(self);
    }
    return result;
}

PyObject *
cm_sighting_select(PyObject *event, const struct cm_sighting_wish *wish)
{
    const struct cm_sighting *whole = sighting_of(event);
    if (whole == NULL) {
        return NULL;
    }
    size_t wished = count_wished(whole, wish);
    if (wished == 0) {
        Py_RETURN_NONE;
    }
    return wished == count_findings(whole) ? Py_NewRef(event)
                                           : make_part(event, whole, wish);
}
