/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CUT_CASE_H
#define CUT_CASE_H

/* One program as a heap, and what the rules must say of it. */

#include "heap_builder.h"
#include "../graph/finding.h"

struct cut_case {
    const char *name;
    const char *heap;
    const char *rule;
    const char *cut;    /* "tail label head", "" for none */
    const char *place;  /* "file:line", with " ?" when it is not certain, and
                         * further candidates behind it; "" for none */
    const char *advice; /* NULL: any */
};

static inline void
check_cut_edge(struct built *built, const struct cm_finding *finding,
               const char *expected)
{
    char text[256] = "";

    if (finding->cut_edge != 0) {
        const struct cm_edge *edge = &built->heap.edges[finding->cut_edge];

        snprintf(text, sizeof text, "%s %s %s", built->names[edge->tail],
                 cm_records_text(built->records, edge->label),
                 built->names[edge->head]);
    }
    assert_string_equal(text, expected);
}

static inline void
check_places(struct built *built, const struct cm_finding *finding,
             const char *expected)
{
    char text[256] = "";

    for (uint32_t i = 0; i < finding->place_count; i++) {
        const struct cm_place *place = &finding->places[i];
        const struct cm_code *code =
            cm_records_code(built->records, place->code);
        size_t length = strlen(text);

        snprintf(text + length, sizeof text - length, "%s%s:%u%s",
                 i > 0 ? " " : "",
                 cm_records_text(built->records, code->filename), place->line,
                 place->certain ? "" : " ?");
    }
    assert_string_equal(text, expected);
    assert_int_equal(finding->place_count == 0,
                     finding->no_cut_reason != NULL);
}

/* Looks at the finding with the most bytes. */
static inline void
check_cut(const struct cut_case *cut)
{
    struct built *built = built_new(cut->heap);
    struct cm_findings findings;

    print_message("# %s\n", cut->name);
    assert_int_equal(cm_findings_find(&built->heap, built->records, &findings),
                     CM_OK);
    assert_true(findings.count >= 1);
    assert_string_equal(findings.items[0].rule, cut->rule);
    check_cut_edge(built, &findings.items[0], cut->cut);
    check_places(built, &findings.items[0], cut->place);
    if (cut->advice != NULL) {
        assert_string_equal(findings.items[0].advice, cut->advice);
    }
    cm_findings_release(&findings);
    built_free(built);
}

static inline void
check_cuts(const struct cut_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_cut(&cases[i]);
    }
}

#define CHECK_CUTS(cases) check_cuts(cases, sizeof(cases) / sizeof *(cases))

#endif
