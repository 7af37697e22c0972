/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The tensors are those with a tag; which of them belong to a site is asked
 * of the table of blocks.  One walk over the heap finds the holders of all
 * sites; nothing is kept alive, and no code of the program runs. */

#include "growth_look.h"

#include <inttypes.h>
#include <string.h>

#include "../detector/alloc.h"
#include "../reports/growth_use.h"
#include "allocations.h"
#include "autograd_behind.h"
#include "holders.h"
#include "session_private.h"
#include "steps.h"
#include "tags.h"

enum {
    MOST_FINDINGS = 64,
    MOST_TARGETS = 4096, /* of one finding */
    MOST_NAMES = 16,
    MOST_WALKS = 400,
    NO_GROUP = INT32_MAX,
    MOST_POINTS = CM_SERIES_POINTS,
    DEVICE_BYTES = 24,
};

/* One line of the table that a person reads. */
struct finding {
    struct cm_growth_row row;
    uint32_t group;
    uint32_t targets;
    uint32_t most_behind;          /* blocks behind one of them */
    uint64_t steps_behind;         /* of backward, behind one of the targets */
    const char *names[MOST_NAMES]; /* borrowed of the rows from Python */
    size_t name_count;
    char device[DEVICE_BYTES];
    int64_t series[MOST_POINTS][CM_LEAK_SERIES_NUMBERS];
    size_t point_count;
};

struct look {
    struct cm_session *session;
    struct finding *findings; /* owned */
    size_t count;
    PyObject **targets; /* owned, of borrowed objects */
    uint32_t *groups;   /* owned */
    size_t target_count, target_capacity, group_capacity;
    bool by_others[MOST_FINDINGS]; /* no tensor has this memory itself */
    size_t walks;
    enum cm_status status;
};

/* Of one tensor's graph; as many tensors as MOST_WALKS have one. */
static const struct cm_autograd_bounds behind_bounds = {
    .max_vertices = 20000, .max_time_ns = 2000000};

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
static struct finding *
same_finding(struct look *self, const struct cm_growth_row *row)
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
add_series(struct finding *finding, const struct cm_series *series)
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
add_finding(struct look *self, const struct cm_growth_row *row)
{
    struct finding *same = same_finding(self, row);
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
    struct finding *finding = &self->findings[self->count];
    *finding = (struct finding){.row = *row, .group = (uint32_t)self->count};
    if (row->device == CM_DEVICE_HOST) {
        strcpy(finding->device, "cpu");
    }
    else {
        snprintf(finding->device, DEVICE_BYTES, "cuda:%d", row->device);
    }
    add_series(finding, row->series);
    self->count++;
}

static enum cm_status
find_rows(struct look *self)
{
    struct cm_growth_row *rows;
    size_t count;
    enum cm_status status = cm_growth_rows(
        &self->session->growth, self->session->iteration, &rows, &count);
    if (status != CM_OK) {
        return status;
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

/* ---- which tensors are of them */

static struct finding *
finding_of(struct look *self, int device, uint32_t site)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->findings[i].row.site == site
            && self->findings[i].row.device == device) {
            return &self->findings[i];
        }
    }
    return NULL;
}

/* The block that an object's memory lies in; false: none, or nobody but C++
 * has the object. */
static bool
block_of(struct cm_session *session, PyObject *object, struct cm_block *block)
{
    struct cm_device_memory memory;
    return cm_devices_read(session->devices, object, &memory)
           && memory.device_address != 0 && !memory.forgotten
           && cm_blocks_at(cm_allocations_blocks(), memory.device_address,
                           block);
}

/* C++ holds these, behind their parameters. */
static bool
is_gradients(const struct finding *finding)
{
    return finding->row.category == CM_GRADIENT
           && finding->row.result.verdict == CM_VERDICT_LINGERING;
}

/* False: no memory. */
static bool
add_target(struct look *self, struct finding *finding, PyObject *object)
{
    if (finding->targets == MOST_TARGETS) {
        return true;
    }
    if (cm_grow((void **)&self->targets, &self->target_capacity,
                self->target_count + 1, sizeof(*self->targets))
            != CM_OK
        || cm_grow((void **)&self->groups, &self->group_capacity,
                   self->target_count + 1, sizeof(*self->groups))
               != CM_OK) {
        self->status = CM_NO_MEMORY;
        return false;
    }
    self->targets[self->target_count] = object;
    self->groups[self->target_count++] = finding->group;
    finding->targets++;
    return true;
}

static bool
note_target(void *context, PyObject *object)
{
    struct look *self = context;
    struct cm_block block;
    struct finding *finding =
        block_of(self->session, object, &block)
            ? finding_of(self, block.device, block.site.index)
            : NULL;
    return finding != NULL && !is_gradients(finding)
           && !add_target(self, finding, object);
}

/* ---- and which have it behind them, kept by C++ for a backward pass */

/* How many blocks of each finding stand behind one tensor. */
static void
count_storages(struct look *self, const struct cm_autograd_behind *behind,
               uint32_t counts[MOST_FINDINGS])
{
    for (size_t i = 0; i < behind->storage_count; i++) {
        struct cm_block block;
        uint64_t address = behind->storages[i].memory.device_address;
        struct finding *finding =
            address != 0
                    && cm_blocks_at(cm_allocations_blocks(), address, &block)
                ? finding_of(self, block.device, block.site.index)
                : NULL;
        if (finding != NULL && self->by_others[finding->group]) {
            counts[finding->group]++;
        }
    }
}

/* Who has far less behind it than another is not who makes it grow: the last
 * loss beside the sum of all. */
static bool
note_share(struct look *self, struct finding *finding, PyObject *object,
           uint32_t count, uint64_t length)
{
    if (count > 2 * finding->most_behind) {
        for (size_t i = 0; i < self->target_count; i++) {
            if (self->groups[i] == finding->group) {
                self->groups[i] = NO_GROUP;
            }
        }
        finding->targets = 0;
        finding->steps_behind = 0;
    }
    if (count > finding->most_behind) {
        finding->most_behind = count;
    }
    if (2 * count < finding->most_behind) {
        return true;
    }
    if (length > finding->steps_behind) {
        finding->steps_behind = length;
    }
    if (finding->row.category == CM_OTHER) {
        finding->row.category = CM_SAVED;
    }
    return add_target(self, finding, object);
}

static bool
note_behind(void *context, PyObject *object)
{
    struct look *self = context;
    struct cm_autograd_behind behind = {0};
    uint32_t counts[MOST_FINDINGS] = {0};
    bool whole = true;
    if (self->walks == MOST_WALKS
        || !cm_autograd_behind(object, &behind_bounds, &behind)) {
        return self->walks == MOST_WALKS;
    }
    self->walks += behind.nodes != 0;
    count_storages(self, &behind, counts);
    for (size_t i = 0; whole && i < self->count; i++) {
        whole = counts[i] == 0
                || note_share(self, &self->findings[i], object, counts[i],
                              behind.length);
    }
    cm_autograd_behind_release(&behind);
    return !whole;
}

static void
drop_targets_of_no_group(struct look *self)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->target_count; i++) {
        if (self->groups[i] != NO_GROUP) {
            self->targets[kept] = self->targets[i];
            self->groups[kept++] = self->groups[i];
        }
    }
    self->target_count = kept;
}

static void
find_targets(struct look *self)
{
    bool any = false;
    (void)cm_tags_any(note_target, self);
    for (size_t i = 0; i < self->count; i++) {
        const struct finding *finding = &self->findings[i];
        self->by_others[i] = finding->targets == 0 && finding->row.count != 0;
        any |= self->by_others[i];
    }
    if (any) {
        (void)cm_tags_any(note_behind, self);
        drop_targets_of_no_group(self);
    }
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

PyObject *
cm_session_categories(struct cm_session *self, PyObject *rows)
{
    if (!PyList_CheckExact(rows)) {
        PyErr_SetString(PyExc_TypeError, "a list was expected");
        return NULL;
    }
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
            && block_of(self, tensor, &block)) {
            cm_growth_categorize(&self->growth, block.site, category);
        }
    }
    Py_RETURN_NONE;
}

static void
note_name(struct look *self, const struct cm_block *block,
          enum cm_category category, const char *name, PyObject *parameter)
{
    for (size_t k = 0; k < self->count; k++) {
        struct finding *finding = &self->findings[k];
        bool gradient = is_gradients(finding) && category == CM_GRADIENT;
        if (finding->row.device != block->device
            || (finding->row.site != block->site.index && !gradient)) {
            continue;
        }
        if (name[0] != '\0' && finding->name_count < MOST_NAMES) {
            finding->names[finding->name_count++] = name;
        }
        if (gradient && parameter != NULL) {
            (void)add_target(self, finding, parameter);
        }
    }
}

/* A gradient comes after its parameter.  [0 or -1; raises] */
static int
note_names(struct look *self, PyObject *rows)
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
        if (block_of(self->session, tensor, &block)) {
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
        holder->retained_known ? holder->retained_bytes : 0;
    told->use.made_at = holder->places;
    told->use.made_at_count = holder->place_count;
    told->use.rule = holder->rule;
    told->use.advice = holder->advice;
}

static void
tell_full(const struct cm_session *session, const struct finding *finding,
          PyObject *free_bytes, struct cm_growth_use *use)
{
    double slope = finding->row.result.bytes_per_iteration;
    PyObject *index = PyLong_FromLong(finding->row.device);
    PyObject *found =
        index != NULL ? PyDict_GetItemWithError(free_bytes, index) : NULL;
    if (found != NULL && PyLong_Check(found) && slope > 0) {
        double left = PyLong_AsDouble(found) / slope;
        use->iterations_to_full = left < 1e15 ? (int64_t)left : -1;
        if (session->iteration > 1 && session->seconds > 0) {
            use->seconds_to_full =
                left * session->seconds / (double)session->iteration;
        }
    }
    PyErr_Clear();
    Py_XDECREF(index);
}

static void
tell_finding(const struct look *self, const struct finding *finding,
             const struct cm_holder *holder, PyObject *free_bytes,
             struct told *told)
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
                is_gradients(finding), told);
    tell_full(self->session, finding, free_bytes, &told->use);
}

/* Gradients that pile up somewhere are no longer the parameters' own. */
static const char *
category_for_advice(const struct cm_growth_row *row)
{
    enum cm_category category =
        row->category == CM_GRADIENT
                && row->result.verdict != CM_VERDICT_LINGERING
            ? CM_OTHER
            : row->category;
    return cm_category_names[category];
}

static enum cm_status
find_holders(struct look *self, struct cm_holders *holders)
{
    struct cm_site_id sites[MOST_FINDINGS];
    const char *categories[MOST_FINDINGS];
    uint64_t depths[MOST_FINDINGS];
    for (size_t i = 0; i < self->count; i++) {
        sites[i].index = self->findings[i].row.site;
        categories[i] = category_for_advice(&self->findings[i].row);
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
        .bounds = cm_holders_bounds,
    };
    query.bounds.max_edges = 0;
    return cm_holders_find(holders, &query);
}

static enum cm_status
tell_all(struct look *self, PyObject *free_bytes)
{
    struct cm_holders holders = {0};
    struct told *told = cm_calloc(self->count + 1, sizeof(*told));
    struct cm_growth_use *uses = cm_calloc(self->count + 1, sizeof(*uses));
    enum cm_status status = told == NULL || uses == NULL
                                ? CM_NO_MEMORY
                                : find_holders(self, &holders);
    for (size_t i = 0; status == CM_OK && i < self->count; i++) {
        tell_finding(self, &self->findings[i], &holders.items[i], free_bytes,
                     &told[i]);
        uses[i] = told[i].use;
    }
    if (status == CM_OK) {
        status = cm_digest_growth(self->session->digest, uses, self->count);
    }
    cm_holders_release(&holders);
    cm_free(uses);
    cm_free(told);
    return status;
}

static long
count_told(const struct look *self)
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
cm_session_growth(struct cm_session *self, PyObject *args)
{
    PyObject *rows, *free_bytes;
    struct look look = {.session = self};
    if (!PyArg_ParseTuple(args, "O!O!:growth", &PyList_Type, &rows,
                          &PyDict_Type, &free_bytes)) {
        return NULL;
    }
    if (!cm_session_is_main(self) || self->silent
        || cm_allocations_blocks() == NULL) {
        return PyLong_FromLong(0);
    }
    look.status = find_rows(&look);
    if (look.status == CM_OK && note_names(&look, rows) == 0) {
        find_targets(&look);
        look.status =
            look.status == CM_OK ? tell_all(&look, free_bytes) : look.status;
    }
    long told = count_told(&look);
    cm_free(look.findings);
    cm_free(look.targets);
    cm_free(look.groups);
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
