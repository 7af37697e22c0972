/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* One walk over the heap finds the holders of all sites; nothing is kept
 * alive, and no code of the program runs. */

#include "growth_private.h"

#include <math.h>
#include <string.h>

#include "../../detector/alloc.h"
#include "../../reports/growth_use.h"
#include "../allocations/allocations.h"
#include "copies.h"
#include "../holders/holders.h"
#include "linecache.h"
#include "../allocations/unhooked.h"
#include "../tables/phrase.h"
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

/* Where a short training interrupts a service, iterations say nothing: two
 * looks say it, half a minute apart. */
static bool
has_stood_still(const struct cm_session *session,
                struct cm_growth_state *state, uint64_t bytes)
{
    const double half_a_minute = 30;
    uint64_t before = state->still_bytes;
    uint64_t other = bytes > before ? bytes - before : before - bytes;
    if (other > before / 64) {
        state->still_bytes = bytes;
        state->still_since = session->seconds;
    }
    return session->seconds - state->still_since >= half_a_minute;
}

/* A leak that was told by other iterations, or slices of time, than these: it
 * has not stopped where there is more since the last of these. */
static void
doubt_the_end(struct cm_growth_look *self, struct cm_growing *finding)
{
    struct cm_growth_row *row = &finding->row;
    struct cm_site_id site = {row->site};
    struct cm_growth_state *state =
        cm_growth_known(&self->session->growth, row->device, site);
    if (row->result.verdict != CM_VERDICT_SETTLED || row->site == 0
        || state == NULL || !state->earlier) {
        return;
    }
    struct cm_site_use use =
        cm_blocks_site(cm_allocations_blocks(), row->device, site);
    bool more =
        use.bytes > row->bytes && use.bytes - row->bytes > row->bytes / 64;
    state->earlier =
        !has_stood_still(self->session, state, row->bytes) || more;
    finding->unsure = state->earlier;
    row->bytes = more ? use.bytes : row->bytes;
    row->count = more ? use.count : row->count;
    if (finding->unsure && !self->ending) {
        cm_growing_look_again(self->session);
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
    doubt_the_end(self, finding);
    add_series(finding, row->series);
    self->count++;
}

static enum cm_status
find_rows(struct cm_growth_look *self, bool aloud)
{
    struct cm_growth_row *rows;
    size_t count;
    enum cm_status status = cm_growth_rows(
        &self->session->growth, self->session->iteration, &rows, &count);
    if (status != CM_OK) {
        return status;
    }
    if (aloud) {
        cm_growth_heard(&self->session->growth);
    }
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

struct model_row {
    PyObject *tensor; /* borrowed */
    enum cm_category category;
    bool again; /* another optimizer's, for a parameter that has one */
    const char *name;
};

/* False: it is not (tensor, category, name); less than 0: again. */
static bool
read_row(PyObject *row, struct model_row *result)
{
    int number;
    PyObject *name;
    if (!PyArg_ParseTuple(row, "OiU", &result->tensor, &number, &name)) {
        return false;
    }
    result->name = cm_str_utf8(name);
    result->again = number < 0;
    number = number < 0 && number > -CM_CATEGORIES ? -number : number;
    result->category = number > 0 && number < CM_CATEGORIES
                           ? (enum cm_category)number
                           : CM_OTHER;
    return true;
}

/* How many bytes of gradients and optimizer state each line allocated. */
struct owned {
    struct cm_site_id sites[MOST_OWNED_SITES];
    int devices[MOST_OWNED_SITES];
    uint64_t bytes[MOST_OWNED_SITES];
    uint64_t last[MOST_OWNED_SITES]; /* address */
    size_t count;
};

/* The views of one buffer come in a row, and count once. */
static void
add_owned(struct owned *self, const struct model_row *row,
          const struct cm_block *block)
{
    size_t i = 0;
    if ((row->category != CM_GRADIENT && row->category != CM_OPTIMIZER)
        || row->again) {
        return;
    }
    while (i < self->count
           && (self->sites[i].index != block->site.index
               || self->devices[i] != block->device)) {
        i++;
    }
    if (i == MOST_OWNED_SITES) {
        return;
    }
    if (i == self->count) {
        self->sites[self->count] = block->site;
        self->devices[self->count] = block->device;
        self->last[self->count] = 0;
        self->bytes[self->count++] = 0;
    }
    self->bytes[i] += self->last[i] != block->address ? block->bytes : 0;
    self->last[i] = block->address;
}

static void
tell_owned(struct cm_session *session, const struct owned *self)
{
    for (size_t i = 0; i < self->count; i++) {
        struct cm_site_use live = cm_blocks_site(
            cm_allocations_blocks(), self->devices[i], self->sites[i]);
        cm_growth_own(&session->growth, self->devices[i], self->sites[i],
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
    struct owned owned;
    owned.count = 0;
    if (cm_session_is_main(self) && !self->silent) {
        cm_session_see_objects(self); /* a place may be another's by now */
    }
    for (Py_ssize_t i = 0;
         cm_session_is_main(self) && i < PyList_GET_SIZE(rows); i++) {
        struct model_row row;
        struct cm_block block;
        if (!read_row(PyList_GET_ITEM(rows, i), &row)) {
            return NULL;
        }
        if (cm_unhooked_block(self->devices, row.tensor, &block)) {
            cm_growth_categorize(&self->growth, block.site, row.category);
            add_owned(&owned, &row, &block);
        }
    }
    tell_owned(self, &owned);
    Py_RETURN_NONE;
}

/* Gradients that linger may be gone by now, and have come anew by another line;
 * those of a line that were gone at the last forward pass are none of them. */
static bool
lingers(const struct cm_growth_look *self, const struct cm_growing *finding,
        const struct cm_block *block)
{
    return cm_growing_gradients(finding)
           && cm_growth_may_keep(&self->session->growth, block->device,
                                 block->site);
}

static void
note_name(struct cm_growth_look *self, const struct cm_block *block,
          enum cm_category category, const char *name, PyObject *parameter)
{
    for (size_t k = 0; k < self->count; k++) {
        struct cm_growing *finding = &self->findings[k];
        bool gradient =
            category == CM_GRADIENT && lingers(self, finding, block);
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
        struct model_row row;
        struct cm_block block;
        if (!read_row(PyList_GET_ITEM(rows, i), &row)) {
            return -1;
        }
        if (row.category == CM_PARAMETER) {
            parameter = row.tensor;
        }
        if (cm_unhooked_block(self->session->devices, row.tensor, &block)) {
            note_name(self, &block, row.category, row.name, parameter);
        }
    }
    return 0;
}

/* ---- into the document */

bool
cm_growing_has_larger(const struct cm_growth_row *row)
{
    double bytes = row->result.bytes_per_iteration * (double)row->count;
    double more = row->result.count_per_iteration * (double)row->bytes;
    return bytes > 4 * fabs(more);
}

bool
cm_growing_larger(const struct cm_growth_row *row)
{
    return (row->category == CM_OTHER || row->category == CM_SAVED)
           && cm_growing_has_larger(row);
}

/* An embedding that is made anew with more rows; its gradient and its state in
 * the optimizer do as it does. */
static bool
is_of_larger_model(const struct cm_growth_row *row)
{
    return (row->category == CM_PARAMETER || row->category == CM_GRADIENT
            || row->category == CM_OPTIMIZER)
           && row->result.verdict != CM_VERDICT_LINGERING
           && cm_growing_has_larger(row);
}

/* Gradients that pile up somewhere are no longer the parameters' own. */
static const char *
category_for_advice(const struct cm_growing *finding)
{
    const struct cm_growth_row *row = &finding->row;
    if (finding->copy) {
        return CM_HOLDING_COPY;
    }
    if (cm_growing_larger(row)) {
        return CM_HOLDING_LARGER;
    }
    if (is_of_larger_model(row)) {
        return row->category == CM_PARAMETER ? CM_HOLDING_MODEL
                                             : CM_HOLDING_OF_MODEL;
    }
    if (row->category == CM_GRADIENT && row->owned_bytes > row->other_bytes
        && row->result.verdict != CM_VERDICT_LINGERING) {
        return CM_HOLDING_GRADIENTS;
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
    bool growing[MOST_FINDINGS], chained[MOST_FINDINGS], few[MOST_FINDINGS];
    for (size_t i = 0; i < self->count; i++) {
        sites[i].index = self->findings[i].row.site;
        categories[i] = category_for_advice(&self->findings[i]);
        depths[i] = self->findings[i].steps_behind;
        growing[i] = !self->findings[i].copy
                     && self->findings[i].row.result.bytes_per_iteration > 0;
        chained[i] = cm_growing_chained(&self->findings[i]);
        few[i] = cm_growing_behind_few(&self->findings[i]);
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
        .growing = growing,
        .chained = chained,
        .behind_few = few,
        .hidden = self->hidden,
        .hidden_count = self->hidden_count,
        .several_optimizers =
            cm_iterations_are_several(&self->session->iterations),
        .bounds = cm_holders_bounds,
    };
    query.bounds.max_edges = 0;
    return cm_holders_find(holders, &query);
}

/* What has one for each parameter comes to an end where those do. */
static void
bound_all(struct cm_growth_look *self, const struct cm_holders *holders)
{
    for (int others = 0; others < 2; others++) {
        for (size_t i = 0; i < self->count; i++) {
            bool parameter = self->findings[i].row.category == CM_PARAMETER;
            if (parameter != (others != 0)) {
                cm_growing_bound(self, &self->findings[i], &holders->items[i]);
            }
        }
    }
}

static enum cm_status
tell_all(struct cm_growth_look *self, PyObject *free_bytes, bool aloud)
{
    struct cm_holders holders = {0};
    struct cm_growing_told *told = cm_calloc(self->count + 1, sizeof(*told));
    struct cm_growth_use *uses = cm_calloc(self->count + 1, sizeof(*uses));
    enum cm_status status = told == NULL || uses == NULL
                                ? CM_NO_MEMORY
                                : find_holders(self, &holders);
    if (status == CM_OK) {
        bound_all(self, &holders);
    }
    for (size_t i = 0; status == CM_OK && i < self->count; i++) {
        cm_growing_tell(self, &self->findings[i], &holders.items[i],
                        free_bytes, &told[i]);
        uses[i] = told[i].use;
    }
    if (status == CM_OK) {
        cm_linecache_copy(self->session->records, &self->session->sourced);
        cm_steps_tell(self->session); /* a warning writes the document */
        Py_BEGIN_ALLOW_THREADS
        status =
            cm_digest_growth(self->session->digest, uses, self->count, aloud);
        Py_END_ALLOW_THREADS
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

/* At the end nobody would say what comes later. */
static void
write_report(struct cm_session *self, bool ending)
{
    if (self->warned && (ending || !cm_session_write_later(self))) {
        cm_session_write(self);
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
        struct cm_site_id site = {rows[i].site};
        const struct cm_growth_state *state =
            cm_growth_known(&self->growth, rows[i].device, site);
        bool open = state != NULL && state->earlier; /* has it stopped? */
        found += open || rank_of(&rows[i]) != 0;
    }
    cm_free(rows);
    return PyLong_FromLong(found);
}

PyObject *
cm_session_growth(struct cm_session *self, PyObject *args)
{
    PyObject *rows, *free_bytes, *copies;
    int aloud, ending;
    struct cm_growth_look look = {.session = self};
    if (!PyArg_ParseTuple(args, "O!O!O!pp:growth", &PyList_Type, &rows,
                          &PyDict_Type, &free_bytes, &PyList_Type, &copies,
                          &aloud, &ending)) {
        return NULL;
    }
    look.ending = ending != 0;
    self->look_at = self->check_at = 0;
    if (!cm_session_is_main(self) || self->silent
        || cm_allocations_blocks() == NULL) {
        return PyLong_FromLong(0);
    }
    look.status = find_rows(&look, aloud != 0);
    if (look.status == CM_OK) {
        look.status = hide(&look, rows);
    }
    if (look.status == CM_OK) {
        look.status = hide(&look, copies);
    }
    if (look.status == CM_OK && cm_growing_copies(&look, copies) == 0
        && note_names(&look, rows) == 0) {
        cm_growing_find(&look);
        look.status = look.status == CM_OK
                          ? tell_all(&look, free_bytes, aloud != 0)
                          : look.status;
    }
    long told = count_told(&look);
    cm_free(look.findings);
    cm_free(look.targets);
    cm_free(look.groups);
    cm_free(look.hidden);
    cm_growing_release_behind(&look);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (look.status != CM_OK) {
        self->no_memory++;
        return PyErr_NoMemory();
    }
    if (aloud) {
        write_report(self, look.ending);
    }
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
