/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* One walk over the heap finds the holders of all sites; nothing is kept
 * alive, and no code of the program runs. */

#include "growth_private.h"

#include <inttypes.h>
#include <math.h> // fabs()
#include <string.h>

#include "../detector/alloc.h"
#include "../reports/growth_use.h"
#include "allocations.h"
#include "copies.h"
#include "holders.h"
#include "session_private.h"
#include "steps.h"

/* ---- what is worth telling */

static int
rank_of(const struct cm_growth_row *row)
{
    switch (row->result.verdict) {
    case CM_VERDICT_LEAK: return 3;
    case CM_VERDICT_LINGERING: return 2;
    case CM_VERDICT_GROWING: return 1;
    default: return 0;
    }
}

static int
by_rank(const void *left, const void *right)
{
    const struct cm_growth_row *a = left, *b = right;
    int difference = rank_of(b) - rank_of(a);
    return difference != 0 ? difference
                           : (a->peak_bytes < b->peak_bytes)
                                 - (a->peak_bytes > b->peak_bytes);
}

/* Gradients that linger are one finding of each device: who does not clear
 * one clears none. */
static struct cm_growing *
same_finding(struct cm_growth_look *self, const struct cm_growth_row *row)
{
    for (size_t i = 0; i < self->count; i++) {
        const struct cm_growth_row *known = &self->findings[i].row;
        if (row->category == CM_GRADIENT
            && row->result.verdict == CM_VERDICT_LINGERING
            && known->category == CM_GRADIENT && known->device == row->device
            && known->result.verdict == CM_VERDICT_LINGERING) {
            return &self->findings[i];
        }
    }
    return NULL;
}

static void
add_series(struct cm_growing *finding, const struct cm_series *series)
{
    struct cm_series_point point;
    for (size_t i = 0; i < MOST_POINTS && cm_series_get(series, i, &point);
         i++) {
        int64_t *to = finding->series[finding->point_count++];
        to[0] = point.iteration;
        to[1] = (int64_t)point.count;
        to[2] = (int64_t)point.bytes;
    }
}

static void
add_finding(struct cm_growth_look *self, const struct cm_growth_row *row)
{
    struct cm_growing *same = same_finding(self, row);
    if (same != NULL) {
        same->row.bytes += row->bytes;
        same->row.count += row->count;
        same->row.peak_bytes += row->peak_bytes;
        same->row.result.lingering_bytes += row->result.lingering_bytes;
        same->point_count = 0; /* of one line alone */
        return;
    }
    if (self->count == MOST_FINDINGS) {
        return;
    }
    struct cm_growing *finding = &self->findings[self->count];
    *finding =
        (struct cm_growing){.row = *row, .group = (uint32_t)self->count};
    cm_allocations_device(row->device, finding->device);
    add_series(finding, row->series);
    self->count++;
}

static enum cm_status
find_rows(struct cm_growth_look *self)
{
    struct cm_growth_row *rows;
    size_t count;
    enum cm_status status = cm_growth_rows(
        &self->session->growth, self->session->iteration, &rows, &count);
    if (status != CM_OK) {
        return status;
    }
    self->session->growth.due = false;
    self->findings = cm_calloc(MOST_FINDINGS, sizeof(*self->findings));
    if (self->findings != NULL) {
        qsort(rows, count, sizeof(*rows), by_rank);
        for (size_t i = 0; i < count; i++) {
            add_finding(self, &rows[i]);
        }
    }
    cm_free(rows);
    return self->findings != NULL ? CM_OK : CM_NO_MEMORY;
}

/* ---- what Python told of the model */

/* Borrowed; false: it is not (tensor, category, name). */
static bool
read_row(PyObject *row, PyObject **tensor, enum cm_category *category,
         const char **name)
{
    int number;
    if (!PyArg_ParseTuple(row, "Ois", tensor, &number, name)) {
        return false;
    }
    *category = number > 0 && number < CM_CATEGORIES ? (enum cm_category)number
                                                     : CM_OTHER;
    return true;
}

/* How many bytes of gradients each line allocated. */
struct gradients {
    struct cm_site_id sites[MOST_GRADIENT_SITES];
    int devices[MOST_GRADIENT_SITES];
    uint64_t bytes[MOST_GRADIENT_SITES];
    size_t count;
};

static void
add_gradient(struct gradients *self, enum cm_category category,
             const struct cm_block *block)
{
    size_t i = 0;
    if (category != CM_GRADIENT) {
        return;
    }
    while (i < self->count
           && (self->sites[i].index != block->site.index
               || self->devices[i] != block->device)) {
        i++;
    }
    if (i == MOST_GRADIENT_SITES) {
        return;
    }
    if (i == self->count) {
        self->sites[self->count] = block->site;
        self->devices[self->count] = block->device;
        self->bytes[self->count++] = 0;
    }
    self->bytes[i] += block->bytes;
}

static void
tell_gradients(struct cm_session *session, const struct gradients *self)
{
    for (size_t i = 0; i < self->count; i++) {
        struct cm_site_use live = cm_blocks_site(
            cm_allocations_blocks(), self->devices[i], self->sites[i]);
        cm_growth_gradients(&session->growth, self->devices[i], self->sites[i],
                            self->bytes[i], live.bytes);
    }
}

PyObject *
cm_session_categories(struct cm_session *self, PyObject *rows)
{
    if (!PyList_CheckExact(rows)) {
        PyErr_SetString(PyExc_TypeError, "a list was expected");
        return NULL;
    }
    struct gradients gradients = {.count = 0};
    for (Py_ssize_t i = 0;
         cm_session_is_main(self) && i < PyList_GET_SIZE(rows); i++) {
        PyObject *tensor;
        enum cm_category category;
        const char *name;
        struct cm_block block;
        if (!read_row(PyList_GET_ITEM(rows, i), &tensor, &category, &name)) {
            return NULL;
        }
        if (cm_allocations_blocks() != NULL
            && cm_growing_block(self, tensor, &block)) {
            cm_growth_categorize(&self->growth, block.site, category);
            add_gradient(&gradients, category, &block);
        }
    }
    tell_gradients(self, &gradients);
    Py_RETURN_NONE;
}

static void
note_name(struct cm_growth_look *self, const struct cm_block *block,
          enum cm_category category, const char *name, PyObject *parameter)
{
    for (size_t k = 0; k < self->count; k++) {
        struct cm_growing *finding = &self->findings[k];
        bool gradient =
            cm_growing_gradients(finding) && category == CM_GRADIENT;
        if (finding->copy || finding->row.site == 0
            || finding->row.device != block->device
            || (finding->row.site != block->site.index && !gradient)) {
            continue;
        }
        if (name[0] != '\0' && finding->name_count < MOST_NAMES) {
            finding->names[finding->name_count++] = name;
        }
        if (gradient && parameter != NULL) {
            (void)cm_growing_add(self, finding, parameter);
        }
    }
}

/* A gradient comes after its parameter.  [0 or -1; raises] */
static int
note_names(struct cm_growth_look *self, PyObject *rows)
{
    PyObject *parameter = NULL; /* borrowed */
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        PyObject *tensor;
        enum cm_category category;
        const char *name;
        struct cm_block block;
        if (!read_row(PyList_GET_ITEM(rows, i), &tensor, &category, &name)) {
            return -1;
        }
        if (category == CM_PARAMETER) {
            parameter = tensor;
        }
        if (cm_growing_block(self->session, tensor, &block)) {
            note_name(self, &block, category, name, parameter);
        }
    }
    return 0;
}

/* ---- into the document */

struct told {
    struct cm_growth_use use;
    struct cm_holder_use steps[CM_GROWTH_MAX_HOLDERS];
    char behind[48];
};

static void
tell_holder(const struct cm_records *records, const struct cm_holder *holder,
            uint64_t steps_behind, bool gradients, struct told *told)
{
    size_t count = holder->step_count < CM_GROWTH_MAX_HOLDERS
                       ? holder->step_count
                       : CM_GROWTH_MAX_HOLDERS;
    for (size_t i = 0; i < count; i++) {
        const struct cm_holding_step *step = &holder->steps[i];
        told->steps[i].annotation = cm_records_text(records, step->annotation);
        told->steps[i].edge = cm_records_text(records, step->edge);
    }
    if (steps_behind != 0 && count != 0 && count < CM_GROWTH_MAX_HOLDERS) {
        snprintf(told->behind, sizeof(told->behind),
                 "graph of %" PRIu64 " steps", steps_behind);
        told->steps[count++] = (struct cm_holder_use){told->behind, "grad_fn"};
    }
    else if (gradients && count != 0 && count < CM_GROWTH_MAX_HOLDERS) {
        told->steps[count++] = (struct cm_holder_use){"gradient", ".grad"};
    }
    told->use.holder = told->steps;
    told->use.holder_count = count;
    told->use.holder_at = holder->at;
    told->use.retained_bytes =
        holder->retained_known ? holder->retained_bytes : CM_LEAK_UNKNOWN;
    told->use.made_at = holder->places;
    told->use.made_at_count = holder->place_count;
    told->use.rule = holder->rule;
    told->use.advice = holder->advice;
}

/* A device is filled by all its leaks together. */
static double
slope_towards_full(const struct cm_growth_look *self,
                   const struct cm_growing *finding)
{
    double slope = 0;
    if (finding->row.result.verdict != CM_VERDICT_LEAK) {
        return finding->row.result.bytes_per_iteration;
    }
    for (size_t i = 0; i < self->count; i++) {
        const struct cm_growth_row *row = &self->findings[i].row;
        if (row->device == finding->row.device
            && row->result.verdict == CM_VERDICT_LEAK) {
            slope += row->result.bytes_per_iteration;
        }
    }
    return slope;
}

static double
seconds_of_one(const struct cm_session *session)
{
    if (session->iterations.by == CM_BY_TIME) {
        return (double)cm_iterations_slice_ns(&session->iterations) / 1e9;
    }
    return session->iteration > 1
               ? session->seconds / (double)session->iteration
               : 0;
}

static void
tell_full(const struct cm_growth_look *self, const struct cm_growing *finding,
          PyObject *free_bytes, struct cm_growth_use *use)
{
    double slope = slope_towards_full(self, finding);
    double seconds = seconds_of_one(self->session);
    PyObject *index = PyLong_FromLong(finding->row.device);
    PyObject *found =
        index != NULL ? PyDict_GetItemWithError(free_bytes, index) : NULL;
    if (found != NULL && PyLong_Check(found) && slope > 0) {
        double left = PyLong_AsDouble(found) / slope;
        use->iterations_to_full = left < 1e15 ? (int64_t)left : -1;
        if (seconds > 0) {
            use->seconds_to_full = left * seconds;
        }
    }
    PyErr_Clear();
    Py_XDECREF(index);
}

static void
tell_finding(const struct cm_growth_look *self,
             const struct cm_growing *finding, const struct cm_holder *holder,
             PyObject *free_bytes, struct told *told)
{
    const struct cm_growth_row *row = &finding->row;
    cm_growth_use_init(&told->use);
    told->use.site.index = row->site;
    told->use.category = cm_category_names[row->category];
    told->use.device = finding->device;
    told->use.verdict = cm_verdict_text(row->result.verdict);
    told->use.bytes_per_iteration = row->result.bytes_per_iteration;
    told->use.count_per_iteration = row->result.count_per_iteration;
    told->use.since_iteration = row->result.since_iteration;
    told->use.confidence = row->result.confidence;
    told->use.bytes = row->bytes;
    told->use.count = row->count;
    told->use.peak_bytes = row->peak_bytes;
    told->use.series = finding->series;
    told->use.series_count = finding->point_count;
    told->use.names = finding->names;
    told->use.name_count = finding->name_count;
    told->use.autograd_depth = finding->steps_behind;
    tell_holder(self->session->records, holder, finding->steps_behind,
                cm_growing_gradients(finding), told);
    tell_full(self, finding, free_bytes, &told->use);
}

/* Far more bytes than so many new ones of their size would have. */
static bool
gets_larger(const struct cm_growth_row *row)
{
    double bytes = row->result.bytes_per_iteration * (double)row->count;
    double more = row->result.count_per_iteration * (double)row->bytes;
    return (row->category == CM_OTHER || row->category == CM_SAVED)
           && bytes > 4 * fabs(more);
}

/* Gradients that pile up somewhere are no longer the parameters' own. */
static const char *
category_for_advice(const struct cm_growing *finding)
{
    const struct cm_growth_row *row = &finding->row;
    if (finding->copy) {
        return CM_HOLDING_COPY;
    }
    if (gets_larger(row)) {
        return CM_HOLDING_LARGER;
    }
    enum cm_category category =
        row->category == CM_GRADIENT
                && row->result.verdict != CM_VERDICT_LINGERING
            ? CM_OTHER
            : row->category;
    return cm_category_names[category];
}

/* The list that Python told us the model by, and its rows, hold nothing. */
static enum cm_status
hide(struct cm_growth_look *self, PyObject *rows)
{
    Py_ssize_t count = PyList_GET_SIZE(rows);
    enum cm_status status =
        cm_grow((void **)&self->hidden, &self->hidden_capacity,
                self->hidden_count + (size_t)count + 1, sizeof(*self->hidden));
    if (status != CM_OK) {
        return status;
    }
    self->hidden[self->hidden_count++] = rows;
    for (Py_ssize_t i = 0; i < count; i++) {
        self->hidden[self->hidden_count++] = PyList_GET_ITEM(rows, i);
    }
    return CM_OK;
}

static enum cm_status
find_holders(struct cm_growth_look *self, struct cm_holders *holders)
{
    struct cm_site_id sites[MOST_FINDINGS];
    const char *categories[MOST_FINDINGS];
    uint64_t depths[MOST_FINDINGS];
    for (size_t i = 0; i < self->count; i++) {
        sites[i].index = self->findings[i].row.site;
        categories[i] = category_for_advice(&self->findings[i]);
        depths[i] = self->findings[i].steps_behind;
    }
    struct cm_holders_query query = {
        .objects = self->session->objects,
        .devices = self->session->devices,
        .targets = self->targets,
        .groups = self->groups,
        .target_count = (uint32_t)self->target_count,
        .group_count = (uint32_t)self->count,
        .sites = sites,
        .categories = categories,
        .autograd_depths = depths,
        .hidden = self->hidden,
        .hidden_count = self->hidden_count,
        .bounds = cm_holders_bounds,
    };
    query.bounds.max_edges = 0;
    return cm_holders_find(holders, &query);
}

/* What the program has given a size is not full yet, and no leak. */
static void
judge_bounded(struct cm_growing *finding, const struct cm_holder *holder)
{
    for (size_t i = 0; i < holder->step_count; i++) {
        if (holder->steps[i].bounded
            && finding->row.result.verdict == CM_VERDICT_LEAK) {
            finding->row.result.verdict = CM_VERDICT_GROWING;
        }
    }
}

static enum cm_status
tell_all(struct cm_growth_look *self, PyObject *free_bytes)
{
    struct cm_holders holders = {0};
    struct told *told = cm_calloc(self->count + 1, sizeof(*told));
    struct cm_growth_use *uses = cm_calloc(self->count + 1, sizeof(*uses));
    enum cm_status status = told == NULL || uses == NULL
                                ? CM_NO_MEMORY
                                : find_holders(self, &holders);
    for (size_t i = 0; status == CM_OK && i < self->count; i++) {
        judge_bounded(&self->findings[i], &holders.items[i]);
    }
    for (size_t i = 0; status == CM_OK && i < self->count; i++) {
        tell_finding(self, &self->findings[i], &holders.items[i], free_bytes,
                     &told[i]);
        uses[i] = told[i].use;
    }
    if (status == CM_OK) {
        cm_steps_tell(self->session); /* a warning writes the document */
        status = cm_digest_growth(self->session->digest, uses, self->count);
    }
    cm_holders_release(&holders);
    cm_free(uses);
    cm_free(told);
    return status;
}

static long
count_told(const struct cm_growth_look *self)
{
    long count = 0;
    for (size_t i = 0; i < self->count; i++) {
        count += rank_of(&self->findings[i].row) >= 2;
    }
    return count;
}

static void
write_report(struct cm_session *self)
{
    if (self->warned) {
        enum cm_status status;
        Py_BEGIN_ALLOW_THREADS
        status = cm_digest_write(self->digest, false);
        Py_END_ALLOW_THREADS
        self->no_memory += status != CM_OK;
        cm_session_drain_warnings(self);
    }
}

PyObject *
cm_session_document(struct cm_session *self)
{
    struct cm_buffer document = {0};
    PyObject *result = NULL;
    cm_steps_tell(self);
    if (cm_digest_export(self->digest, &document) == CM_OK) {
        result = PyBytes_FromStringAndSize(document.bytes,
                                           (Py_ssize_t)document.length);
    }
    else {
        PyErr_NoMemory();
    }
    cm_buffer_release(&document);
    return result;
}

PyObject *
cm_session_growing(struct cm_session *self)
{
    struct cm_growth_row *rows = NULL;
    size_t count = 0;
    long found = 0;
    if (!cm_session_is_main(self)) {
        return PyLong_FromLong(0);
    }
    if (cm_growth_rows(&self->growth, self->iteration, &rows, &count)
        != CM_OK) {
        return PyErr_NoMemory();
    }
    for (size_t i = 0; i < count; i++) {
        found += rank_of(&rows[i]) != 0;
    }
    cm_free(rows);
    return PyLong_FromLong(found);
}

PyObject *
cm_session_growth(struct cm_session *self, PyObject *args)
{
    PyObject *rows, *free_bytes, *copies;
    struct cm_growth_look look = {.session = self};
    if (!PyArg_ParseTuple(args, "O!O!O!:growth", &PyList_Type, &rows,
                          &PyDict_Type, &free_bytes, &PyList_Type, &copies)) {
        return NULL;
    }
    if (!cm_session_is_main(self) || self->silent
        || cm_allocations_blocks() == NULL) {
        return PyLong_FromLong(0);
    }
    look.status = find_rows(&look);
    if (look.status == CM_OK) {
        look.status = hide(&look, rows);
    }
    if (look.status == CM_OK) {
        look.status = hide(&look, copies);
    }
    if (look.status == CM_OK && cm_growing_copies(&look, copies) == 0
        && note_names(&look, rows) == 0) {
        cm_growing_find(&look);
        look.status =
            look.status == CM_OK ? tell_all(&look, free_bytes) : look.status;
    }
    long told = count_told(&look);
    cm_free(look.findings);
    cm_free(look.targets);
    cm_free(look.groups);
    cm_free(look.hidden);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (look.status != CM_OK) {
        self->no_memory++;
        return PyErr_NoMemory();
    }
    write_report(self);
    return PyLong_FromLong(told);
}

void
cm_growth_on_backward(void)
{
    struct cm_session *self = cm_session_main();
    if (self != NULL && !self->silent && cm_allocations_blocks() != NULL) {
        cm_growth_forward(&self->growth, cm_allocations_blocks(),
                          self->iteration);
    }
}
