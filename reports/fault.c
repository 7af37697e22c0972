/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Growth is of one fault when verdict, device, advice, the line that fills the
 * container and the way to the container are equal; how many items that has
 * may have changed from one look to the next, and where the line is known it
 * may be one of several like containers.  Where there is no container it is
 * the fingerprint that has to be equal: a person would read the same twice.
 * What a dead cycle of the document holds is of one fault.
 * O(n log n). */
#include "fault.h"

#include <stdlib.h> // qsort()
#include <string.h>

#include "../detector/alloc.h"
#include "../detector/index.h" // cm_hash()
#include "../detector/number.h"
#include "growth.h"
#include "walk.h"

/* Of two seeds: 64 bits. */
struct key {
    uint32_t high, low;
};

static void
mix(struct key *self, const void *bytes, size_t length)
{
    self->high = cm_hash(self->high, bytes, length);
    self->low = cm_hash(self->low, bytes, length);
}

static void
mix_id(struct key *self, struct cm_text_id id)
{
    mix(self, &id.index, sizeof(id.index));
}

/* The line keeps the exception, whichever of its frames has them. */
static bool
is_exceptions(const struct cm_leak *leak, const struct cm_leak_growth *growth)
{
    return growth->made_at_count > 0
           && cm_growth_has_rule(leak, growth, "kept exception");
}

/* Whose advice names the class that keeps them, by whatever attributes. */
static bool
is_on_context(const struct cm_leak *leak, const struct cm_leak_growth *growth)
{
    return cm_growth_has_rule(leak, growth, "saved on ctx");
}

static bool
is_item(const struct cm_leak *leak, const struct cm_leak_holder *step)
{
    return cm_leak_text(leak, step->edge)[0] == '[';
}

/* A line that fills `self.rows` of each layer fills all of these, and one that
 * sets `sums[name]` all items of it. */
static void
mix_way(struct key *self, const struct cm_leak *leak,
        const struct cm_leak_growth *growth)
{
    bool known = growth->made_at_count > 0;
    bool item = known && is_item(leak, &growth->holder[growth->holder_at]);
    size_t count = growth->holder_at + (item ? 0 : 1);

    for (size_t i = 0; i < count; i++) {
        const char *object = cm_leak_text(leak, growth->holder[i].annotation);

        if (!known || !is_item(leak, &growth->holder[i])) {
            mix_id(self, growth->holder[i].edge);
        }
        mix(self, object, cm_growth_uncounted(object));
    }
}

/* In no order: first is that which was running when the line allocated. */
static void
mix_places(struct key *self, const struct cm_leak_growth *growth)
{
    struct key sum = {0};

    for (size_t i = 0; i < growth->made_at_count; i++) {
        struct key place = {.high = 1, .low = 2};

        mix_id(&place, growth->made_at[i].filename);
        mix(&place, &growth->made_at[i].line, sizeof(growth->made_at[i].line));
        sum.high += place.high;
        sum.low += place.low;
    }
    mix(self, &sum, sizeof(sum));
}

/* What a cycle will free once it is cut is told there. */
static bool
has_place(const struct cm_leak *leak, const struct cm_leak_growth *growth)
{
    return growth->holder_at > 0 && growth->holder_at < growth->holder_count
           && !cm_growth_is_dead(leak, growth);
}

/* Of a dead one the cycle's, which its sentence names: one cut frees what all
 * of its lines have allocated. */
static void
mix_fingerprint(struct key *self, const struct cm_leak *leak,
                const struct cm_leak_growth *growth)
{
    const struct cm_leak_cycle *cycle = cm_growth_cycle(leak, growth);

    mix(self, cycle != NULL ? &cycle->fingerprint : &growth->fingerprint,
        sizeof(growth->fingerprint));
}

/* 0: a fault of its own, as is what nobody is told of without asking. */
static uint64_t
fault_of(const struct cm_leak *leak, const struct cm_leak_growth *growth)
{
    struct key key = {.high = 1, .low = 2};

    if (!cm_growth_is_told(cm_growth_verdict(leak, growth))) {
        return 0;
    }
    mix_id(&key, growth->verdict);
    mix_id(&key, growth->device);
    mix_id(&key, growth->advice);
    if (has_place(leak, growth)) {
        mix_places(&key, growth);
        if (!is_exceptions(leak, growth)) {
            mix_way(&key, leak, growth);
        }
    }
    else if (!is_on_context(leak, growth)) {
        mix_fingerprint(&key, leak, growth);
    }
    return (uint64_t)key.high << 32 | key.low;
}

/* ===== order ============================================================ */

/* Of numbers that are not negative. */
static int64_t
add_below(int64_t a, int64_t b)
{
    return a <= INT64_MAX - b ? a + b : INT64_MAX;
}

static int
compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int
by_own_bytes(const struct cm_leak_growth *a, const struct cm_leak_growth *b)
{
    int order = compare(b->peak_bytes, a->peak_bytes);

    order = order != 0 ? order : compare(a->fingerprint, b->fingerprint);
    order = order != 0 ? order : compare(a->site, b->site);
    return order != 0 ? order : compare(a->verdict.index, b->verdict.index);
}

static int
by_fault(const void *first, const void *second)
{
    const struct cm_leak_growth *a = first, *b = second;

    return compare(a->fault, b->fault);
}

/* What is alone has its own order. */
static uint64_t
shared_fault(const struct cm_leak_growth *growth)
{
    return growth->fault_lines > 1 ? growth->fault : 0;
}

static int
by_fault_bytes(const void *first, const void *second)
{
    const struct cm_leak_growth *a = first, *b = second;
    int order = compare(b->fault_peak, a->fault_peak);

    order = order != 0 ? order : compare(shared_fault(a), shared_fault(b));
    return order != 0 ? order : by_own_bytes(a, b);
}

/* How many from `at` on are of the same fault. */
static size_t
run_length(const struct cm_leak *leak, size_t at)
{
    size_t end = at + 1;

    while (leak->growth[at].fault != 0 && end < leak->growth_count
           && leak->growth[end].fault == leak->growth[at].fault) {
        end++;
    }
    return end - at;
}

static void
add_up_peaks(struct cm_leak *leak)
{
    for (size_t i = 0, length; i < leak->growth_count; i += length) {
        uint64_t sum = 0;

        length = run_length(leak, i);
        for (size_t k = i; k < i + length; k++) {
            sum = cm_number_sum(sum, leak->growth[k].peak_bytes);
        }
        for (size_t k = i; k < i + length; k++) {
            leak->growth[k].fault_peak = sum;
            leak->growth[k].fault_lines = (uint32_t)length;
        }
    }
}

static void
count_lines(struct cm_leak *leak)
{
    for (size_t i = 0, length; i < leak->growth_count; i += length) {
        length = run_length(leak, i);
        for (size_t k = i; k < i + length; k++) {
            leak->growth[k].fault_lines = 0;
        }
        leak->growth[i].fault_lines = (uint32_t)length;
    }
}

void
cm_faults_sort(struct cm_leak *leak)
{
    size_t size = sizeof(leak->growth[0]);

    if (leak->growth_count == 0) {
        return;
    }
    for (size_t i = 0; i < leak->growth_count; i++) {
        leak->growth[i].fault = fault_of(leak, &leak->growth[i]);
    }
    qsort(leak->growth, leak->growth_count, size, by_fault);
    add_up_peaks(leak);
    qsort(leak->growth, leak->growth_count, size, by_fault_bytes);
    count_lines(leak);
}

/* ===== one of them ====================================================== */

struct cm_leak_growth
cm_fault_sum(const struct cm_leak_growth *first)
{
    struct cm_leak_growth sum = *first;

    for (uint32_t i = 1; i < first->fault_lines; i++) {
        const struct cm_leak_growth *line = &first[i];

        sum.bytes_per_iteration += line->bytes_per_iteration;
        sum.count_per_iteration += line->count_per_iteration;
        sum.bytes = cm_number_sum(sum.bytes, line->bytes);
        sum.count = cm_number_sum(sum.count, line->count);
        if (line->since_iteration >= 0
            && line->since_iteration < sum.since_iteration) {
            sum.since_iteration = line->since_iteration;
        }
        if (line->confidence > sum.confidence) {
            sum.confidence = line->confidence;
        }
    }
    sum.peak_bytes = cm_fault_peak(first);
    return sum;
}

/* Adds what a line held at these iterations, which do not fall. */
static void
add_line(const struct cm_leak_growth *line, size_t points,
         int64_t (*series)[CM_LEAK_SERIES_NUMBERS])
{
    size_t next = 0;

    for (size_t i = 0; i < points; i++) {
        while (next < line->series_count
               && line->series[next][0] <= series[i][0]) {
            next++;
        }
        for (int number = 1; next > 0 && number < CM_LEAK_SERIES_NUMBERS;
             number++) {
            series[i][number] =
                add_below(series[i][number], line->series[next - 1][number]);
        }
    }
}

enum cm_status
cm_fault_series(const struct cm_leak_growth *first,
                int64_t (**result)[CM_LEAK_SERIES_NUMBERS])
{
    int64_t(*series)[CM_LEAK_SERIES_NUMBERS] =
        cm_calloc(first->series_count + 1, sizeof(*series));

    if (series == NULL) {
        return CM_NO_MEMORY;
    }
    for (size_t i = 0; i < first->series_count; i++) {
        series[i][0] = first->series[i][0];
    }
    for (uint32_t i = 0; i < cm_fault_lines(first); i++) {
        add_line(&first[i], first->series_count, series);
    }
    *result = series;
    return CM_OK;
}

bool
cm_fault_is_among(const struct cm_leak_growth *first,
                  const uint64_t *fingerprints, size_t count)
{
    for (uint32_t i = 0; i < cm_fault_lines(first); i++) {
        if (cm_fingerprint_is_among(first[i].fingerprint, fingerprints,
                                    count)) {
            return true;
        }
    }
    return false;
}
