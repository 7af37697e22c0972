/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What the document says of one finding: its numbers, who holds it, and how
 * long until the device is full. */

#include "growth_private.h"

#include <inttypes.h>
#include <stdio.h>

#include "../holders/holders.h"
#include "session_private.h"

static void
tell_holder(const struct cm_records *records, const struct cm_holder *holder,
            uint64_t steps_behind, bool gradients,
            struct cm_growing_told *told)
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

/* Since the last boundary. */
static bool
is_given_back(const struct cm_growth_row *row)
{
    struct cm_site_id site = {row->site};
    return row->site != 0
           && 2
                      * cm_blocks_site(cm_allocations_blocks(), row->device,
                                       site)
                            .bytes
                  < row->bytes;
}

/* It is not C++ that has it. */
static void
tell_gone(struct cm_growth_use *use)
{
    use->rule = CM_GROWTH_GIVEN_BACK;
    use->advice = "it had been given back when it was asked who holds it: "
                  "call cumem.growth() while it grows, or set "
                  "CUMEM_SIGNAL and send the signal";
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

/* By now: they end when tensors come, and each has its part of the time. */
static double
seconds_of_slice(const struct cm_session *session, double seconds)
{
    int64_t before = session->iterations.sliced;
    double now = (double)(session->iteration - before);
    double clock = cm_iterations_clock(now);
    double units =
        clock
        - cm_iterations_clock((double)(session->unit_iteration - before));
    return units > 0 ? seconds / units * (cm_iterations_clock(now + 1) - clock)
                     : 0;
}

static double
seconds_of_one(const struct cm_session *session)
{
    double seconds = session->seconds - session->unit_seconds;
    int64_t iterations = session->iteration - session->unit_iteration;
    if (session->iterations.by == CM_BY_TIME) {
        return seconds_of_slice(session, seconds);
    }
    return iterations > 1 ? seconds / (double)iterations : 0;
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

void
cm_growing_tell(const struct cm_growth_look *self,
                const struct cm_growing *finding,
                const struct cm_holder *holder, PyObject *free_bytes,
                struct cm_growing_told *told)
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
    told->use.at_end = self->ending;
    told->use.bounded = finding->bounded;
    told->use.unsure = finding->unsure;
    bool gone = is_given_back(row);
    if (!(gone && self->ending)) { /* a variable has the last one yet */
        tell_holder(self->session->records, holder, finding->steps_behind,
                    cm_growing_gradients(finding), told);
    }
    if (gone && told->use.holder_count == 0) {
        tell_gone(&told->use);
    }
    tell_full(self, finding, free_bytes, &told->use);
}
