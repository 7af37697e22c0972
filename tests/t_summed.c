/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A mean is made of a sum, which has the graph and is to be mended. */

#include "way_builder.h"

static const char mean[] = "F||a.py:3 main;O|local losses|Meter;"
                           "T|.avg|Tensor [] float32;T|grad_fn|graph of 9";

/* An attribute of self, what an operation makes it of, and whether that is
 * multiplied. */
struct line {
    const char *name, *operand;
    bool scaled;
};

/* The line that is told; the second one is in line 3, and so on. */
static uint32_t
line_told(const struct line *lines, uint32_t count, uint64_t depth,
          const char *piece)
{
    struct way way;
    struct cm_store stores[4];
    struct cm_place places[CM_MAX_PLACES];
    way_init(&way, mean, 2);
    way.holding.autograd_depth = depth;
    for (uint32_t i = 0; i < count; i++) {
        stores[i] =
            store(&way, CM_STORE_ATTRIBUTE, lines[i].name, "self", i + 2);
        stores[i].key = text(&way, lines[i].operand);
        stores[i].scaled = lines[i].scaled;
    }
    struct cm_code_id code = add_code(&way, "update", stores, count, false);
    way.holding.codes = &code;
    way.holding.code_count = 1;
    uint32_t told = cm_holding_made(&way.holding, places);
    if (piece != NULL) {
        assert_advice(&way, "sum keeps its graph", piece);
    }
    cm_records_free(way.records);
    return told == 1 ? places[0].line : 0;
}

static void
the_sum_is_told_and_not_the_mean(void **state)
{
    const struct line meter[] = {{"val", "", false},
                                 {"sum", "sum", false},
                                 {"count", "count", false},
                                 {"avg", "sum", false}};
    (void)state;
    assert_int_equal(line_told(meter, 4, 9, "write `sum += x.item()`"), 3);
    assert_int_equal(line_told(meter, 4, 9, "and avg is made of it"), 3);
}

static void
a_sum_itself_is_told(void **state)
{
    const struct line moving[] = {{"sum", "sum", false},
                                  {"avg", "avg", false}};
    const struct line other[] = {{"last", "avg", false},
                                 {"avg", "last", false}};
    (void)state;
    assert_int_equal(line_told(moving, 2, 9, "write `avg += x.item()`"), 3);
    /* What it is made of is added to nowhere. */
    assert_int_equal(line_told(other, 2, 9, "write `avg += x.item()`"), 3);
}

/* `avg += x` would be another number. */
static void
a_moving_average_is_no_sum(void **state)
{
    static const char mix[] =
        "mix in numbers (`.item()`), or detach() what is "
        "mixed in: ";
    const struct line moving[] = {{"avg", "", false}, {"avg", "avg", true}};
    const struct line meter[] = {{"sum", "sum", true}, {"avg", "sum", false}};
    const struct line other[] = {{"sum", "sum", true}, {"avg", "avg", false}};
    (void)state;
    assert_int_equal(line_told(moving, 2, 9, mix), 3);
    assert_int_equal(line_told(moving, 2, 9, "avg keeps the graph"), 3);
    assert_int_equal(line_told(meter, 2, 9, "sum keeps the graph"), 2);
    assert_int_equal(line_told(other, 2, 9, "write `avg += x.item()`"), 3);
}

/* avg += x in one function and avg /= n in another; in one: avg *= 0.9. */
static void
a_sum_is_divided_elsewhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct way way;
        way_init(&way, mean, 2);
        way.holding.autograd_depth = 9;
        struct cm_store lines[] = {
            store(&way, CM_STORE_ATTRIBUTE, "avg", "self", 2),
            store(&way, CM_STORE_ATTRIBUTE, "avg", "self", 3)};
        lines[0].key = lines[1].key = text(&way, "avg");
        lines[1].scaled = true;
        struct cm_code_id codes[] = {
            add_code(&way, "update", lines, i == 0 ? 1 : 2, false),
            add_code(&way, "mean", lines + 1, i == 0 ? 1 : 0, false)};
        way.holding.codes = codes;
        way.holding.code_count = 2;
        assert_advice(&way, "sum keeps its graph",
                      i == 0 ? "write `avg += x.item()`" : "avg keeps the");
        cm_records_free(way.records);
    }
}

/* Not one that another function has by this name, nor behind the loop. */
static void
a_local_is_mixed_where_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct way way;
        way_init(&way,
                 "F||a.py:3 main;T|local mean|Tensor [] float32;"
                 "T|grad_fn|graph of 9",
                 1);
        way.holding.autograd_depth = 9;
        struct cm_store line = store(&way, CM_STORE_LOCAL, "mean", "", 2);
        line.scaled = true;
        line.repeated = i != 2;
        struct cm_code_id codes[] = {
            add_code(&way, "main", &line, i != 1, false),
            add_code(&way, "helper", &line, i == 1, false)};
        way.steps[0].code = codes[0];
        way.holding.codes = codes;
        way.holding.code_count = 2;
        assert_advice(&way, "sum keeps its graph",
                      i == 0 ? "mixed in: mean keeps" : "write `mean += ");
        cm_records_free(way.records);
    }
}

static void
without_a_graph_the_place_is_told(void **state)
{
    const struct line meter[] = {{"sum", "sum", false}, {"avg", "sum", false}};
    (void)state;
    assert_int_equal(line_told(meter, 2, 0, NULL), 3);
}

/* A buffer is set by a line that does not say so. */
static void
a_buffer_is_told_with_its_owner(void **state)
{
    struct way way;
    (void)state;
    way_init(&way,
             "F||a.py:3 main;O|local net|Norm;D|._buffers|dict of 2|2;"
             "T|['cov']|Tensor [16, 16] float32",
             3);
    set_type(&way, 1, "", "Norm");
    way.holding.autograd_depth = 9;
    struct cm_store line = store(&way, CM_STORE_ATTRIBUTE, "cov", "self", 2);
    struct cm_code_id code = add_code(&way, "Norm.forward", &line, 1, false);
    way.holding.codes = &code;
    way.holding.code_count = 1;
    assert_advice(&way, "state keeps its graph",
                  "write `self.cov = self.cov.detach()` between");
    cm_records_free(way.records);
}

/* What is told where `sums` is at this step, or one of them: the line that reads
 * and sets an item of it, in a function of these parameters. */
static void
check_by_key(size_t at, const char *read, const char *rule, const char *piece)
{
    struct way way;
    struct cm_place places[CM_MAX_PLACES];
    way_init(&way,
             "F||a.py:3 main;O|local run|Run;D|.sums|defaultdict of 3|3;"
             "T|['box']|Tensor [] float32",
             at);
    set_type(&way, 1, "", "Run");
    way.holding.autograd_depth = 9;
    struct cm_store lines[] = {
        store(&way, CM_STORE_READ, "", read, 7),
        store(&way, CM_STORE_ITEM, "", "sums", 7),
    };
    lines[0].key = lines[1].key = text(&way, "name");
    struct cm_code_id code = add_code(&way, "Run.add", lines, 2, false);
    way.holding.codes = &code;
    way.holding.code_count = 1;
    assert_advice(&way, rule, piece);
    if (strcmp(read, "sums") == 0) {
        assert_int_equal(cm_holding_made(&way.holding, places), 1);
        assert_int_equal(places[0].line, 7);
    }
    cm_records_free(way.records);
}

/* self.sums[name] += x, whichever of these gets the most. */
static void
sums_by_name_are_told_as_one(void **state)
{
    static const char add[] = "add numbers (`.item()`) to `self.sums[name]`";
    (void)state;
    check_by_key(2, "sums", "sum keeps its graph", add);
    check_by_key(3, "sums", "sum keeps its graph", add);
    /* It is made of something else, and no `loss` is there. */
    check_by_key(2, "others", "graph of a kept scalar", "keep `x.item()`");
    check_by_key(3, "others", "sum keeps its graph", "write `sums['box'] +=");
}

/* ---- until a backward() behind the loop: cm_bound_is_emptied() */

static const char variable[] =
    "F||a.py:3 main;T|local total|Tensor [];O|grad_fn|graph of 9 steps;"
    "T|saved|Tensor [4]";
static const char of_module[] =
    "M||module a;T|.total|Tensor [];O|grad_fn|graph of 9 steps;"
    "T|saved|Tensor [4]";

/* `total = 0` in a loop, and in one within that a line that sets it. */
static bool
is_emptied(const char *steps, struct cm_store sum, const char *set,
           uint64_t depth)
{
    struct way way;
    way_init(&way, steps, 1);
    struct cm_store stores[] = {store(&way, sum.kind, "total", "", 2),
                                store(&way, sum.kind, set, "", 4)};
    stores[0].constant = stores[0].repeated = stores[1].repeated = true;
    stores[1].settled = sum.settled;
    way.holding.autograd_depth = depth;
    if (sum.kind == CM_STORE_GLOBAL) {
        return is_emptied_in(&way, stores, 2);
    }
    struct cm_code_id code = add_code(&way, "main", stores, 2, false);
    way.steps[0].code = code;
    return is_emptied_by_all(&way, &code, 1);
}

static void
a_sum_that_is_taken_behind_its_loop_goes(void **state)
{
    struct cm_store local = {.kind = CM_STORE_LOCAL, .settled = true};
    struct cm_store cell = {.kind = CM_STORE_CELL, .settled = true};
    struct cm_store global = {.kind = CM_STORE_GLOBAL, .settled = true};
    (void)state;
    assert_true(is_emptied(variable, local, "total", 9));
    assert_true(is_emptied(variable, cell, "total", 9));
    assert_true(is_emptied(of_module, global, "total", 9));
    /* Of what has no graph, that is set to 0 is enough. */
    assert_true(is_emptied(variable, local, "total", 0));
}

static void
other_sums_keep_their_graph(void **state)
{
    struct cm_store local = {.kind = CM_STORE_LOCAL};
    struct cm_store global = {.kind = CM_STORE_GLOBAL};
    (void)state;
    assert_false(is_emptied(variable, local, "total", 9));
    assert_false(is_emptied(of_module, global, "total", 9));
    local.settled = global.settled = true;
    assert_false(is_emptied(variable, local, "other", 9));
    assert_false(is_emptied(of_module, local, "total", 9));
    assert_false(is_emptied(variable, global, "total", 9));
}

static void
the_sum_of_another_function(void **state)
{
    struct way way;
    (void)state;
    way_init(&way, variable, 1);
    struct cm_store sum = store(&way, CM_STORE_LOCAL, "total", "", 4);
    sum.settled = true;
    way.holding.autograd_depth = 9;
    way.steps[0].code = add_code(&way, "main", NULL, 0, false);
    struct cm_code_id codes[] = {way.steps[0].code,
                                 add_code(&way, "adapt", &sum, 1, false)};
    assert_false(is_emptied_by_all(&way, codes, 2));
}

/* Two functions make the sum of a module, and one of them to show it. */
static void
a_sum_of_two_functions(void **state)
{
    (void)state;
    for (int settled = 0; settled < 2; settled++) {
        struct way way;
        way_init(&way, of_module, 1);
        struct cm_store sum = store(&way, CM_STORE_GLOBAL, "total", "", 4);
        struct cm_store other = store(&way, CM_STORE_GLOBAL, "total", "", 9);
        sum.settled = true;
        other.settled = settled != 0;
        way.holding.autograd_depth = 9;
        struct cm_code_id codes[] = {
            add_code(&way, "adapt", &sum, 1, false),
            add_code(&way, "train", &other, 1, false)};
        assert_int_equal(is_emptied_by_all(&way, codes, 2), settled);
    }
}

/* `total = total + [loss]`, of which one has no end but its own. */
static void
a_list_beside_a_sum(void **state)
{
    struct way way;
    (void)state;
    way_init(&way, "F||a.py:3 main;L|local total|list of 9|9;T|[3]|Tensor []",
             1);
    struct cm_store sum = store(&way, CM_STORE_LOCAL, "total", "", 4);
    sum.settled = true;
    way.holding.autograd_depth = 9;
    assert_false(is_emptied_in(&way, &sum, 1));
}

/* By the line that adds it, in the function that has the sum. */
static void
what_is_added_is_told(void **state)
{
    static const struct {
        const char *first, *second, *advice;
    } rows[] = {
        {"kl", "", "write `total += kl.item()`"},
        {"kl", "kl", "write `total += kl.item()`"},
        {"kl", "recon", "write `total += (...).item()`"},
        {"(...)", "", "write `total += (...).item()`"},
        {"", "", "write `total += x.item()`"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct way way;
        way_init(&way,
                 "F||a.py:3 main;T|local total|Tensor [] float32;"
                 "T|grad_fn|graph of 9",
                 1);
        way.holding.autograd_depth = 9;
        struct cm_store stores[] = {
            store(&way, CM_STORE_LOCAL, "total", "", 4),
            store(&way, CM_STORE_LOCAL, "total", "", 5)};
        stores[0].added = text(&way, rows[i].first);
        stores[1].added = text(&way, rows[i].second);
        struct cm_code_id code = add_code(&way, "main", stores, 2, false);
        way.steps[0].code = code;
        way.holding.codes = &code;
        way.holding.code_count = 1;
        assert_advice(&way, "sum keeps its graph", rows[i].advice);
        cm_records_free(way.records);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_is_told_and_not_the_mean),
        cmocka_unit_test(a_sum_itself_is_told),
        cmocka_unit_test(what_is_added_is_told),
        cmocka_unit_test(without_a_graph_the_place_is_told),
        cmocka_unit_test(a_buffer_is_told_with_its_owner),
        cmocka_unit_test(a_moving_average_is_no_sum),
        cmocka_unit_test(a_sum_is_divided_elsewhere),
        cmocka_unit_test(a_local_is_mixed_where_it_is),
        cmocka_unit_test(sums_by_name_are_told_as_one),
        cmocka_unit_test(a_sum_that_is_taken_behind_its_loop_goes),
        cmocka_unit_test(other_sums_keep_their_graph),
        cmocka_unit_test(the_sum_of_another_function),
        cmocka_unit_test(a_sum_of_two_functions),
        cmocka_unit_test(a_list_beside_a_sum),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
