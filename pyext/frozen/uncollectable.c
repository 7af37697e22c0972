/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A tensor or a backward step and the Python object that stands for it hold
 * each other: they are one place here, under the object's address, with the
 * uses of both.  What has no object stands under its own address, behind the
 * Python objects in the array that is walked.
 *
 * tp_traverse of those pairs shows some of C++'s references in some states
 * (when they are not shared): what autograd.h knows is taken out of what it
 * shows, so that no reference is counted twice. */

#include "uncollectable.h"

#ifndef Py_GIL_DISABLED

#include "../../detector/alloc.h"
#include "autograd.h"

enum { MOST_VERTICES = 4000000 };

struct both {
    struct cm_grad_graph graph;
    struct cm_trial trial;
    struct cm_objects_array items; /* objects, then vertices without one */
    /* Of the traversal under way. */
    const struct cm_grad_vertex *vertex;
    visitproc visit;
    void *argument;
};

static uint64_t
key_of(const struct both *self, uint32_t number)
{
    const struct cm_grad_vertex *vertex = &self->graph.vertices[number];
    return vertex->object != 0 ? vertex->object : vertex->address;
}

static uint64_t
target_of(const struct both *self, const struct cm_grad_edge *edge)
{
    return edge->object != 0 ? edge->object : key_of(self, edge->head);
}

/* visitproc: what tp_traverse shows and no edge of the vertex is. */
static int
visit_other(PyObject *referent, void *context)
{
    struct both *self = context;
    uint64_t address = (uint64_t)(uintptr_t)referent;
    uint32_t number = cm_grad_of(&self->graph, address);
    if (number != 0
        && self->graph.vertices[number].class->kind != CM_CPP_TENSOR) {
        return 0;
    }
    for (uint32_t i = 0; i < self->vertex->edge_count; i++) {
        const struct cm_grad_edge *edge =
            &self->graph.edges[self->vertex->first_edge + i];
        if (edge->object == address) {
            return 0;
        }
    }
    return self->visit(referent, self->argument);
}

static bool
traverse_both(void *context, PyObject *object, visitproc visit, void *argument)
{
    struct both *self = context;
    uint64_t address = (uint64_t)(uintptr_t)object;
    uint32_t number = cm_grad_of(&self->graph, address);
    bool paired = number != 0;
    number = paired ? number : cm_grad_at(&self->graph, address);
    if (number == 0) {
        return false;
    }
    self->vertex = &self->graph.vertices[number];
    self->visit = visit;
    self->argument = argument;
    if (paired && Py_TYPE(object)->tp_traverse != NULL) {
        (void)Py_TYPE(object)->tp_traverse(object, visit_other, self);
    }
    for (uint32_t i = 0; i < self->vertex->edge_count; i++) {
        const struct cm_grad_edge *edge =
            &self->graph.edges[self->vertex->first_edge + i];
        (void)visit((PyObject *)(uintptr_t)target_of(self, edge), argument);
    }
    return true;
}

/* ---- the set */

static enum cm_status
add_roots(struct both *self, PyObject *const *objects, size_t count)
{
    enum cm_status status = CM_OK;
    const PyTypeObject *last = NULL;
    bool concerns = false;
    for (size_t i = 0; status == CM_OK && i < count; i++) {
        uint32_t number;
        if (Py_TYPE(objects[i]) != last) {
            last = Py_TYPE(objects[i]);
            concerns = cm_grad_concerns(Py_TYPE(objects[i]));
        }
        if (concerns && cm_grad_leads(objects[i])) {
            status = cm_grad_add(&self->graph, objects[i], &number);
        }
    }
    return status;
}

/* Does anything in C++ refer to Python in a way that the collector is not
 * shown? */
static bool
is_needed(const struct both *self)
{
    for (size_t i = 0; i < self->graph.edge_count; i++) {
        if (self->graph.edges[i].object != 0
            && self->graph.edges[i].link != CM_GRAD_TABLE) {
            return true;
        }
    }
    for (size_t i = 1; i <= self->graph.read; i++) {
        const struct cm_grad_vertex *vertex = &self->graph.vertices[i];
        if (vertex->object != 0 && vertex->class != NULL
            && vertex->class->kind == CM_CPP_PYTHON_NODE) {
            return true;
        }
    }
    return false;
}

/* A pair stands in the set once, whichever side of it was met. */
static enum cm_status
enter_object(struct both *self, PyObject *object)
{
    uint32_t number = cm_grad_of(&self->graph, (uint64_t)(uintptr_t)object);
    enum cm_status status = cm_objects_array_add(&self->items, object);
    if (status != CM_OK) {
        return status;
    }
    if (number == 0) {
        return cm_trial_add(&self->trial, object, 0);
    }
    return cm_trial_add_counted(
        &self->trial, object,
        cm_grad_uses(&self->graph.vertices[number], true));
}

static enum cm_status
enter_vertices(struct both *self)
{
    enum cm_status status = CM_OK;
    for (size_t i = 1; status == CM_OK && i <= self->graph.vertex_count; i++) {
        const struct cm_grad_vertex *vertex = &self->graph.vertices[i];
        PyObject *place = (PyObject *)(uintptr_t)vertex->address;
        if (vertex->object != 0) {
            continue;
        }
        status = cm_objects_array_add(&self->items, place);
        if (status == CM_OK) {
            status = cm_trial_add_counted(
                &self->trial, place,
                i <= self->graph.read ? cm_grad_uses(vertex, true) : -1);
        }
    }
    return status;
}

static enum cm_status
try_all(struct both *self, PyObject *const *objects, size_t count)
{
    struct cm_trial_more more = {traverse_both, self};
    enum cm_status status = CM_OK;
    self->trial.more = &more;
    for (size_t i = 0; status == CM_OK && i < count; i++) {
        status = enter_object(self, objects[i]);
    }
    if (status == CM_OK) {
        status = enter_vertices(self);
    }
    if (status == CM_OK) {
        cm_trial_take_off(&self->trial, self->items.items, self->items.count);
        status = cm_trial_mark_held(&self->trial, self->items.items,
                                    self->items.count);
    }
    self->trial.more = NULL;
    return status;
}

enum cm_status
cm_uncollectable_find(const struct cm_trial *collector,
                      PyObject *const *objects, size_t count,
                      struct cm_objects_array *result)
{
    struct both self = {.graph.max_vertices = MOST_VERTICES};
    if (!cm_grad_ready()) {
        return CM_OK;
    }
    enum cm_status status = add_roots(&self, objects, count);
    if (status == CM_OK) {
        status = cm_grad_walk(&self.graph);
    }
    if (status == CM_OK && is_needed(&self)) {
        status = try_all(&self, objects, count);
        for (size_t i = 0; status == CM_OK && i < count; i++) {
            if (!cm_trial_marked(&self.trial, objects[i])
                && cm_trial_marked(collector, objects[i])) {
                status = cm_objects_array_add(result, objects[i]);
            }
        }
    }
    cm_trial_release(&self.trial);
    cm_grad_release(&self.graph);
    cm_objects_array_release(&self.items);
    return status;
}

#endif
