/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Depth first from the object's vertex, not beyond vertices that are Python's:
 * those have their own turn in the walk.  What lies between two objects is
 * found again, breadth first, for the few that a person is told of. */

#include "grad_ways.h"

#include <string.h>

#include "../../detector/alloc.h"
#include "../torch/autograd_layout.h"
#include "../torch/torch_layout.h"

enum { MOST_TOLD = 8, MOST_VERTICES = 4000000 };

void
cm_grad_ways_release(struct cm_grad_ways *self)
{
    cm_grad_release(&self->graph);
    cm_free(self->shown);
    cm_free(self->waiting);
    *self = (struct cm_grad_ways){0};
}

static bool
leads(struct cm_grad_ways *self, PyObject *object)
{
    if (Py_TYPE(object) != self->last_type) {
        self->last_type = Py_TYPE(object);
        self->concerns = cm_grad_concerns(Py_TYPE(object));
    }
    return self->concerns && cm_grad_leads(object);
}

/* The object's vertex, all behind it read; 0: none, or no memory. */
static uint32_t
vertex_of(struct cm_grad_ways *self, PyObject *object)
{
    uint32_t number = 0;
    self->status = cm_grad_add(&self->graph, object, &number);
    if (self->status == CM_OK && number != 0) {
        self->status = cm_grad_walk(&self->graph);
    }
    size_t count = self->graph.vertex_count + 1;
    if (self->status == CM_OK) {
        self->status =
            cm_grow_zeroed((void **)&self->shown, &self->shown_capacity, count,
                           sizeof(*self->shown));
    }
    if (self->status == CM_OK) {
        self->status =
            cm_grow((void **)&self->waiting, &self->waiting_capacity, count,
                    sizeof(*self->waiting));
    }
    return self->status == CM_OK ? number : 0;
}

/* The Python object at the other end; NULL: there is none. */
static PyObject *
object_of(const struct cm_grad_ways *self, const struct cm_grad_edge *edge)
{
    uint64_t object = edge->head != 0 ? self->graph.vertices[edge->head].object
                      : edge->link != CM_GRAD_TABLE ? edge->object
                                                    : 0;
    return (PyObject *)(uintptr_t)object;
}

static const struct cm_grad_edge *
edge_at(const struct cm_grad_ways *self, uint32_t vertex, uint32_t i)
{
    return &self->graph.edges[self->graph.vertices[vertex].first_edge + i];
}

static void
show(void *context, PyObject *object, visitproc visit, void *argument)
{
    struct cm_grad_ways *self = context;
    size_t count = 0;
    if (self->status != CM_OK || !leads(self, object)) {
        return;
    }
    uint32_t first = vertex_of(self, object);
    if (first != 0) {
        self->waiting[count++] = first;
    }
    while (count != 0) {
        uint32_t vertex = self->waiting[--count];
        for (uint32_t i = 0; i < self->graph.vertices[vertex].edge_count;
             i++) {
            const struct cm_grad_edge *edge = edge_at(self, vertex, i);
            PyObject *found = object_of(self, edge);
            if (found != NULL && found != object) {
                (void)visit(found, argument);
            }
            else if (found == NULL && edge->head != 0
                     && !self->shown[edge->head]) {
                self->shown[edge->head] = 1;
                self->waiting[count++] = edge->head;
            }
        }
    }
}

/* ---- what lies between */

struct search {
    uint32_t *before; /* owned; by vertex: the edge to it, and one more */
    uint32_t *queue;  /* owned */
};

/* The edge to `referent`, and one more; 0: none. */
static uint32_t
find(const struct cm_grad_ways *self, struct search *search, uint32_t first,
     PyObject *referent)
{
    size_t count = 0;
    search->queue[count++] = first;
    for (size_t next = 0; next < count; next++) {
        const struct cm_grad_vertex *vertex =
            &self->graph.vertices[search->queue[next]];
        for (uint32_t i = 0; i < vertex->edge_count; i++) {
            uint32_t number = vertex->first_edge + i;
            const struct cm_grad_edge *edge = &self->graph.edges[number];
            PyObject *found = object_of(self, edge);
            if (found == referent) {
                return number + 1;
            }
            if (found == NULL && edge->head != 0 && edge->head != first
                && search->before[edge->head] == 0) {
                search->before[edge->head] = number + 1;
                search->queue[count++] = edge->head;
            }
        }
    }
    return 0;
}

static void
tell_vertex(const struct cm_grad_ways *self, const struct cm_grad_edge *edge,
            cm_between *tell, void *argument)
{
    const struct cm_grad_vertex *vertex = &self->graph.vertices[edge->head];
    const char *name = vertex->class == NULL ? "autograd"
                       : vertex->class->kind == CM_CPP_TENSOR
                           ? "Tensor"
                           : vertex->class->name;
    tell(argument, cm_texts_intern(self->texts, name),
         cm_grad_label(edge, self->texts));
}

/* From the first on; of many those at both ends. */
static void
tell_way(const struct cm_grad_ways *self, struct search *search, uint32_t last,
         cm_between *tell, void *argument)
{
    size_t count = 0;
    uint32_t number = last;
    while ((number = search->before[self->graph.edges[number - 1].tail])
           != 0) {
        search->queue[count++] = number - 1; /* it has its use behind it */
    }
    for (size_t i = count; i-- > 0;) {
        if (count - i <= MOST_TOLD / 2 || i < MOST_TOLD / 2) {
            tell_vertex(self, &self->graph.edges[search->queue[i]], tell,
                        argument);
        }
        else if (i == MOST_TOLD / 2) {
            char text[40];
            snprintf(text, sizeof(text), "... %zu more ...",
                     count - MOST_TOLD);
            tell(argument, cm_texts_intern(self->texts, text),
                 (struct cm_text_id){0});
        }
    }
}

static bool
between(void *context, PyObject *object, PyObject *referent, cm_between *tell,
        void *argument, struct cm_text_id *label)
{
    struct cm_grad_ways *self = context;
    uint32_t first = self->status == CM_OK && leads(self, object)
                         ? vertex_of(self, object)
                         : 0;
    size_t room = self->graph.vertex_count + 1;
    struct search search = {cm_calloc(room, sizeof(uint32_t)),
                            cm_calloc(room, sizeof(uint32_t))};
    bool whole = first != 0 && search.before != NULL && search.queue != NULL;
    uint32_t last = whole ? find(self, &search, first, referent) : 0;
    if (last != 0) {
        tell_way(self, &search, last, tell, argument);
        *label = cm_grad_label(&self->graph.edges[last - 1], self->texts);
    }
    cm_free(search.before);
    cm_free(search.queue);
    return last != 0;
}

struct cm_more
cm_grad_ways_more(struct cm_grad_ways *self)
{
    self->graph.max_vertices = MOST_VERTICES;
    return (struct cm_more){self, show, between};
}
