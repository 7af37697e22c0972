/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Items that get something to keep, one after the other, and containers that
 * grow. */

#include "way_builder.h"

#include "../graph/item.h"

static const char steps[] =
    "M||module a;L|.data|list of 90|90;O|[5]|Row;T|.pred|Tensor [4]";

/* The rule for a loop of these lines that allocates in line 8. */
static void
expect(const char *of_steps, const char *rule, const char *advice,
       uint64_t depth, enum cm_store_kind kind, const char *name,
       const char *owner)
{
    struct way way;
    struct cm_place places[CM_MAX_PLACES];

    way_init(&way, of_steps, 1);
    struct cm_store stores[] = {store(&way, CM_STORE_LOCAL, "row", "", 7),
                                store(&way, kind, name, owner, 9)};
    set_running(&way, add_code(&way, "main", stores, 2, false), 8);
    way.holding.autograd_depth = depth;
    assert_advice(&way, rule, advice);
    if (cm_item_is_given(&way.holding)) {
        assert_int_equal(cm_item_made(&way.holding, places), 1);
        assert_int_equal(places[0].line, 9);
        assert_true(places[0].certain);
        assert_int_equal(cm_holding_made(&way.holding, places), 1);
        assert_int_equal(places[0].line, 9);
    }
    cm_records_free(way.records);
}

static void
test_items_are_given_something(void **state)
{
    static const char mappings[] =
        "F||a.py:3 main;L|local data|list of 90|90;O|[5]|Data;"
        "O|._store|Store;D|._mapping|dict of 3|3;T|['pred']|Tensor [4]";
    static const char dicts[] =
        "M||module a;L|.data|list of 90|90;D|[5]|dict of 2|2;"
        "T|['pred']|Tensor [4]";

    (void)state;
    expect(steps, "kept by each item", "item of data keeps its pred: delete",
           0, CM_STORE_ATTRIBUTE, "pred", "row");
    expect(steps, "kept by each item", "keep `pred.detach()`", 3,
           CM_STORE_ATTRIBUTE, "pred", "row");
    expect(mappings, "kept by each item", "item of data keeps its pred", 0,
           CM_STORE_ATTRIBUTE, "pred", "row");
    expect(dicts, "kept by each item", "item of data keeps its pred", 0,
           CM_STORE_ITEM, "pred", "row");
}

static void
test_containers_that_grow(void **state)
{
    (void)state;
    expect(steps, "container grows", "clear data", 0, CM_STORE_CALL, "append",
           "data");
    /* The item's own method, another name, a constant. */
    expect(steps, "container grows", "clear data", 0, CM_STORE_ATTRIBUTE,
           "pred", "self");
    expect(steps, "container grows", "clear data", 0, CM_STORE_ATTRIBUTE,
           "other", "row");
    expect("M||module a;L|.data|list of 90|90;T|[5]|Tensor [4]",
           "container grows", "clear data", 0, CM_STORE_ATTRIBUTE, "pred",
           "row");
}

/* data.append(row) and row.pred = y: it is the container that grows. */
static void
test_both(void **state)
{
    struct way way;

    (void)state;
    way_init(&way, steps, 1);
    struct cm_store stores[] = {
        store(&way, CM_STORE_ATTRIBUTE, "pred", "row", 8),
        store(&way, CM_STORE_CALL, "append", "data", 9)};
    set_running(&way, add_code(&way, "main", stores, 2, false), 8);
    assert_false(cm_item_is_given(&way.holding));
    cm_records_free(way.records);
}

/* A method of the container's owner fills it, though it does not run. */
static void
test_filled_by_its_owner(void **state)
{
    struct way way;

    (void)state;
    way_init(&way,
             "F||a.py:3 main;O|local log|Log;L|.rows|list of 90|90;O|[5]|Row;"
             "T|.pred|Tensor [4]",
             2);
    struct cm_store gives = store(&way, CM_STORE_ATTRIBUTE, "pred", "row", 9);
    struct cm_store fills = store(&way, CM_STORE_CALL, "append", "rows", 20);
    set_running(&way, add_code(&way, "main", &gives, 1, false), 8);
    assert_true(cm_item_is_given(&way.holding));
    struct cm_code_id add = add_code(&way, "add", &fills, 1, false);
    struct cm_type type = {
        .name = text(&way, "Log"), .methods = &add, .method_count = 1};
    assert_int_equal(
        cm_records_add_type(way.records, &type, &way.steps[1].type), CM_OK);
    assert_false(cm_item_is_given(&way.holding));
    cm_records_free(way.records);
}

static bool
fills(const char *of_steps, uint32_t through, uint64_t depth)
{
    struct way way;

    way_init(&way, of_steps, 1);
    struct cm_store own = store(&way, CM_STORE_ATTRIBUTE, "pred", "self", 9);
    set_running(&way, add_code(&way, "ask", &own, 1, false), 9);
    way.holding.through = through;
    way.holding.targets = 12;
    way.holding.autograd_depth = depth;
    bool found = cm_item_fills(&way.holding);
    cm_records_free(way.records);
    return found;
}

/* What an item makes when it is first asked for it. */
static void
test_items_fill(void **state)
{
    struct way way;

    (void)state;
    assert_true(fills(steps, 12, 0));
    assert_true(fills(steps, 90, 0));
    /* More than there are items; with a graph; of a chain, of a list each. */
    assert_false(fills(steps, 91, 0));
    assert_false(fills(steps, 8, 0)); /* the others are elsewhere */
    assert_false(fills(steps, 12, 3));
    assert_false(fills("M||module a;L|.data|list of 90|90;O|[5]|Row;"
                       "O|.last|Node;T|.pred|Tensor [4]",
                       12, 0));
    assert_false(fills("M||module a;L|.data|list of 90|90;O|[5]|Row;"
                       "L|.all|list of 2|2;T|[1]|Tensor [4]",
                       12, 0));
    assert_false(
        fills("M||module a;L|.data|list of 90|90;T|[5]|Tensor [4]", 12, 0));
    /* From outside. */
    way_init(&way, steps, 1);
    struct cm_store gives = store(&way, CM_STORE_ATTRIBUTE, "pred", "row", 9);
    set_running(&way, add_code(&way, "main", &gives, 1, false), 8);
    way.holding.through = 12;
    assert_false(cm_item_fills(&way.holding));
    cm_records_free(way.records);
}

/* What bounds a list of hooks: snapshot() sets the dict of each anew. */
static bool
has_bound_alone(enum cm_holding_keys keys, enum cm_store_kind kind,
                const char *name, const char *owner, uint32_t through)
{
    struct way way;

    way_init(&way,
             "M||module a;L|.hooks|list of 90|90;O|[5]|Probe;"
             "D|.rows|dict of 2|2;T|['a']|Tensor [4]",
             1);
    struct cm_store stores[] = {
        store(&way, CM_STORE_ATTRIBUTE, "rows", "self", 9),
        store(&way, kind, name, owner, 20)};
    stores[0].empty = true;
    set_running(&way, add_code(&way, "__init__", &stores[0], 1, false), 9);
    way.steps[1].keys = (uint8_t)keys;
    way.holding.through = through;
    struct cm_code_id codes[] = {add_code(&way, "reset", stores, 2, false)};
    way.holding.codes = codes;
    way.holding.code_count = 1;
    bool found = cm_bound_is_emptied(&way.holding)
                 && cm_item_has_bound_alone(&way.holding);
    cm_records_free(way.records);
    return found;
}

static void
test_items_are_bounded_alone(void **state)
{
    (void)state;
    assert_true(has_bound_alone(CM_KEYS_UNKNOWN, CM_STORE_CALL, "append",
                                "hooks", 180));
    /* As many as there are in the set; one hangs from each. */
    assert_false(has_bound_alone(CM_KEYS_OF_A_SET, CM_STORE_CALL, "append",
                                 "hooks", 180));
    assert_false(has_bound_alone(CM_KEYS_UNKNOWN, CM_STORE_CALL, "append",
                                 "hooks", 90));
    /* All are emptied, too, or taken out one by one. */
    assert_false(has_bound_alone(CM_KEYS_UNKNOWN, CM_STORE_CALL, "clear",
                                 "hooks", 180));
    assert_false(
        has_bound_alone(CM_KEYS_UNKNOWN, CM_STORE_CALL, "pop", "hooks", 180));
}

/* A deque below an item, or above it. */
static void
test_deques_are_bounded_alone(void **state)
{
    struct way way;

    (void)state;
    way_init(&way,
             "M||module a;L|.tracks|list of 90|90;O|[5]|Track;"
             "L|.last|collections.deque of 3|3;T|[0]|Tensor [4]",
             1);
    way.holding.through = 270;
    way.steps[3].bounded = true;
    assert_true(cm_bound_is_known(&way.holding));
    assert_true(cm_item_has_bound_alone(&way.holding));
    way.steps[1].bounded = true;
    assert_false(cm_item_has_bound_alone(&way.holding));
    way.steps[1].bounded = way.steps[1].counted = false;
    assert_false(cm_item_has_bound_alone(&way.holding));
    cm_records_free(way.records);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_are_given_something),
        cmocka_unit_test(test_containers_that_grow),
        cmocka_unit_test(test_both),
        cmocka_unit_test(test_filled_by_its_owner),
        cmocka_unit_test(test_items_fill),
        cmocka_unit_test(test_items_are_bounded_alone),
        cmocka_unit_test(test_deques_are_bounded_alone),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
