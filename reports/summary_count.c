/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Which findings a person hears of, and how many are folded away.  One walk
 * over the document. */
#include "summary.h"

#include <string.h>

#include "fault.h"
#include "growth.h"

static bool
has_class(const struct cm_leak *leak, const struct cm_leak_cycle *cycle,
          const char *name)
{
    return strcmp(cm_leak_text(leak, cycle->class), name) == 0;
}

/* Whether it is dead and holds something that would be freed: not all of it
 * lives on elsewhere. */
static bool
is_cycle_told(const struct cm_leak *leak, const struct cm_leak_cycle *cycle,
              const struct cm_summary_options *options)
{
    return !has_class(leak, cycle, "resurrected")
           && (cycle->peak_bytes > 0 || options->all)
           && (options->only == NULL
               || cm_fingerprint_is_among(cycle->fingerprint, options->only,
                                          options->only_count));
}

static bool
is_growth_told(const struct cm_leak *leak, const struct cm_leak_growth *growth,
               const struct cm_summary_options *options)
{
    return (options->all || cm_growth_is_told(cm_growth_verdict(leak, growth)))
           && (options->only == NULL
               || cm_fault_is_among(growth, options->only,
                                    options->only_count));
}

static void
note_package(struct cm_summary_counts *counts, struct cm_text_id package)
{
    size_t known = counts->package_count < CM_SUMMARY_PACKAGES
                       ? counts->package_count
                       : CM_SUMMARY_PACKAGES;

    for (size_t i = 0; i < known; i++) {
        if (cm_text_same(counts->packages[i], package)) {
            return;
        }
    }
    if (known < CM_SUMMARY_PACKAGES) {
        counts->packages[known] = package;
    }
    counts->package_count = known + 1;
}

/* The count that a finding belongs to. */
static size_t *
count_of(uint64_t bytes, struct cm_text_id package,
         const struct cm_summary_options *options,
         struct cm_summary_counts *counts)
{
    if (!options->all && package.index != 0) {
        note_package(counts, package);
        return &counts->library;
    }
    if (!options->all && bytes < options->min_bytes) {
        return &counts->small;
    }
    if (options->top != 0 && counts->shown >= options->top) {
        counts->more_bytes += bytes;
        return &counts->more;
    }
    return &counts->shown;
}

/* NULL: a person does not hear of it. */
static size_t *
count_cycle(const struct cm_leak *leak, const struct cm_leak_cycle *cycle,
            const struct cm_summary_options *options,
            struct cm_summary_counts *counts)
{
    size_t *count;

    if (!is_cycle_told(leak, cycle, options)) {
        return NULL;
    }
    count =
        count_of(cycle->peak_bytes, cycle->library_package, options, counts);
    counts->dead++;
    counts->heavy +=
        count == &counts->library && cycle->peak_bytes >= options->min_bytes;
    counts->cycles += count == &counts->shown || count == &counts->more;
    return count;
}

static size_t *
count_growth(const struct cm_leak *leak, const struct cm_leak_growth *growth,
             const struct cm_summary_options *options,
             struct cm_summary_counts *counts)
{
    size_t *count;

    if (!is_growth_told(leak, growth, options)) {
        return NULL;
    }
    count = count_of(cm_fault_peak(growth), growth->library_package, options,
                     counts);
    counts->faults += (count == &counts->shown || count == &counts->more)
                      && cm_growth_is_fault(cm_growth_verdict(leak, growth));
    return count;
}

void
cm_summary_count(const struct cm_leak *leak,
                 const struct cm_summary_options *options,
                 struct cm_summary_counts *result,
                 struct cm_leak_finding *shown)
{
    struct cm_leak_walk walk = {.leak = leak};
    struct cm_leak_finding finding;

    *result = (struct cm_summary_counts){0};
    while (cm_leak_walk_next(&walk, &finding)) {
        size_t *count = finding.growth
                            ? count_growth(leak, &leak->growth[finding.index],
                                           options, result)
                            : count_cycle(leak, &leak->cycles[finding.index],
                                          options, result);

        if (count == NULL) {
            continue;
        }
        if (count == &result->shown && shown != NULL) {
            shown[*count] = finding;
        }
        *count += 1;
    }
}
