/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The groups are exact lists of lists, held by who calls; they are hidden from
 * the walk, so that they are no answer.  The dicts are made after it. */

#include "growers.h"

#include "../../detector/alloc.h"
#include "../holders/holders.h"
#include "../session/session_private.h"

struct question {
    PyObject *args;                         /* borrowed, as the next */
    PyObject *groups, *categories, *depths; /* exact lists */
    uint32_t group_count, target_count;
    PyObject **targets, **hidden; /* owned, of borrowed objects */
    uint32_t *numbers;            /* owned */
    const char **names;           /* owned, of borrowed texts */
    uint64_t *lengths;            /* owned */
};

static void
question_release(struct question *self)
{
    cm_free(self->targets);
    cm_free(self->hidden);
    cm_free(self->numbers);
    cm_free(self->names);
    cm_free(self->lengths);
}

/* [0 or -1; raises] */
static int
check(struct question *self)
{
    Py_ssize_t count = PyList_GET_SIZE(self->groups), total = 0;
    bool fine = PyList_GET_SIZE(self->categories) == count
                && PyList_GET_SIZE(self->depths) == count;
    for (Py_ssize_t i = 0; fine && i < count; i++) {
        PyObject *group = PyList_GET_ITEM(self->groups, i);
        fine = PyList_CheckExact(group);
        total += fine ? PyList_GET_SIZE(group) : 0;
    }
    if (!fine || total > INT32_MAX) {
        PyErr_SetString(PyExc_TypeError, "lists of one length were expected");
        return -1;
    }
    self->group_count = (uint32_t)count;
    self->target_count = (uint32_t)total;
    return 0;
}

static int
read_details(struct question *self)
{
    for (uint32_t i = 0; i < self->group_count; i++) {
        PyObject *name = PyList_GET_ITEM(self->categories, i);
        self->names[i] = name == Py_None ? NULL : PyUnicode_AsUTF8(name);
        self->lengths[i] =
            PyLong_AsUnsignedLongLong(PyList_GET_ITEM(self->depths, i));
        if (PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

static int
read_groups(struct question *self)
{
    size_t at = 0;
    self->targets =
        cm_calloc((size_t)self->target_count + 1, sizeof(*self->targets));
    self->numbers =
        cm_calloc((size_t)self->target_count + 1, sizeof(*self->numbers));
    self->hidden =
        cm_calloc((size_t)self->group_count + 2, sizeof(*self->hidden));
    self->names =
        cm_calloc((size_t)self->group_count + 1, sizeof(*self->names));
    self->lengths =
        cm_calloc((size_t)self->group_count + 1, sizeof(*self->lengths));
    if (self->targets == NULL || self->numbers == NULL || self->hidden == NULL
        || self->names == NULL || self->lengths == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->hidden[self->group_count] = self->groups;
    self->hidden[self->group_count + 1] = self->args;
    for (uint32_t i = 0; i < self->group_count; i++) {
        PyObject *group = PyList_GET_ITEM(self->groups, i);
        self->hidden[i] = group;
        for (Py_ssize_t j = 0; j < PyList_GET_SIZE(group); j++) {
            self->targets[at] = PyList_GET_ITEM(group, j);
            self->numbers[at++] = i;
        }
    }
    return read_details(self);
}

/* ---- the answer */

static PyObject *
text(const struct cm_records *records, struct cm_text_id id)
{
    const char *bytes = cm_records_text(records, id);
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)strlen(bytes),
                                "surrogateescape");
}

static int
append_new(PyObject *list, PyObject *item)
{
    int result = item == NULL ? -1 : PyList_Append(list, item);
    Py_XDECREF(item);
    return result;
}

static PyObject *
steps_of(const struct cm_records *records, const struct cm_holder *holder)
{
    PyObject *steps = PyList_New(0);
    for (size_t i = 0; steps != NULL && i < holder->step_count; i++) {
        if (append_new(steps,
                       Py_BuildValue(
                           "(NN)", text(records, holder->steps[i].annotation),
                           text(records, holder->steps[i].edge)))
            < 0) {
            Py_CLEAR(steps);
        }
    }
    return steps;
}

static PyObject *
places_of(const struct cm_records *records, const struct cm_holder *holder)
{
    PyObject *places = PyList_New(0);
    for (uint32_t i = 0; places != NULL && i < holder->place_count; i++) {
        const struct cm_place *place = &holder->places[i];
        const struct cm_code *code = cm_records_code(records, place->code);
        if (append_new(places,
                       Py_BuildValue("(NINO)", text(records, code->filename),
                                     (unsigned)place->line,
                                     text(records, code->qualified_name),
                                     place->certain ? Py_True : Py_False))
            < 0) {
            Py_CLEAR(places);
        }
    }
    return places;
}

static PyObject *
dict_of(const struct cm_records *records, const struct cm_holder *holder)
{
    return Py_BuildValue(
        "{s:N,s:n,s:I,s:I,s:I,s:I,s:O,s:N,s:N,s:N,s:s,s:s}", "holder",
        steps_of(records, holder), "at", (Py_ssize_t)holder->at, "through",
        (unsigned)holder->through, "targets", (unsigned)holder->targets,
        "unreached", (unsigned)holder->unreached, "chain",
        (unsigned)holder->chain, "renewed",
        holder->renewed ? Py_True : Py_False, "made_at",
        places_of(records, holder), "retained",
        holder->retained_known
            ? PyLong_FromUnsignedLongLong(holder->retained_bytes)
            : Py_NewRef(Py_None),
        "shared",
        holder->retained_known
            ? PyLong_FromUnsignedLongLong(holder->shared_bytes)
            : Py_NewRef(Py_None),
        "rule", holder->rule, "advice", holder->advice);
}

static PyObject *
answer_of(const struct cm_records *records, const struct cm_holders *holders)
{
    PyObject *items = PyList_New(0);
    for (uint32_t i = 0; items != NULL && i < holders->count; i++) {
        if (append_new(items, dict_of(records, &holders->items[i])) < 0) {
            Py_CLEAR(items);
        }
    }
    return items == NULL
               ? NULL
               : Py_BuildValue("{s:N,s:I,s:I,s:O}", "holders", items, "nodes",
                               (unsigned)holders->nodes, "nodes_left",
                               (unsigned)holders->nodes_left, "cut",
                               holders->cut ? Py_True : Py_False);
}

PyObject *
cm_growers_holders(struct cm_session *self, PyObject *args)
{
    struct question question = {.args = args};
    struct cm_holders holders = {0};
    PyObject *answer = NULL;
    int retained;
    unsigned long most;
    if (!PyArg_ParseTuple(args, "O!O!O!pk", &PyList_Type, &question.groups,
                          &PyList_Type, &question.categories, &PyList_Type,
                          &question.depths, &retained, &most)) {
        return NULL;
    }
    cm_devices_notice(self->devices);
    PyErr_Clear();
    if (check(&question) == 0 && read_groups(&question) == 0) {
        struct cm_holders_query query = {
            .objects = self->objects,
            .devices = self->devices,
            .targets = question.targets,
            .groups = question.numbers,
            .target_count = question.target_count,
            .group_count = question.group_count,
            .categories = question.names,
            .autograd_depths = question.lengths,
            .hidden = question.hidden,
            .hidden_count = (size_t)question.group_count + 2,
            .bounds = cm_holders_bounds,
        };
        query.bounds.max_edges = retained ? query.bounds.max_edges : 0;
        query.bounds.max_nodes = most;
        if (cm_holders_find(&holders, &query) == CM_OK) {
            answer = answer_of(self->records, &holders);
        }
        else {
            PyErr_NoMemory();
        }
    }
    cm_holders_release(&holders);
    question_release(&question);
    return answer;
}
