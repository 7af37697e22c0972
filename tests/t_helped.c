/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * What a helper gives back of what it is handed, beside what looks alike. */

#include "way_builder.h"

#include "../graph/helped.h"

static const char attribute[] =
    "F||a.py:3 main;O|local model|Model;L|.outputs|list of 9|9;"
    "T|[3]|Tensor [4]";
static const char longer[] =
    "F||a.py:3 main;O|local model|Model;T|.bank|Tensor [4, 2]";
static const char longer_items[] =
    "F||a.py:3 main;O|local model|Model;D|.bank|dict of 2|2;"
    "T|['a']|Tensor [4, 2]";

/* add() has `outputs = last(handed)`; last() returns a part of `returned`. */
static bool
is_left_in_part(const char *handed, enum cm_store_kind kind,
                const char *returned, uint32_t line)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store lines[] = {
        store(&way, CM_STORE_HAND, "last", handed, 5),
        store(&way, CM_STORE_ATTRIBUTE, "outputs", "self", line)};
    struct cm_store stores[] = {
        store(&way, CM_STORE_PARAMETER, "items", "", 8),
        store(&way, kind, kind == CM_STORE_LOCAL ? returned : "",
              kind == CM_STORE_LOCAL ? "" : returned, 9)};
    lines[1].by = text(&way, line == 5 ? "last" : "head");
    stores[1].trimmed = kind == CM_STORE_LOCAL;
    struct cm_code_id codes[2] = {add_code(&way, "add", lines, 2, false),
                                  add_code(&way, "last", stores, 2, false)};
    return is_emptied_by_all(&way, codes, 2);
}

static void
test_a_function_gives_back_a_part(void **state)
{
    (void)state;
    assert_true(is_left_in_part("outputs", CM_STORE_RETURN, "items", 5));
    assert_true(is_left_in_part("outputs", CM_STORE_LOCAL, "items", 5));
    assert_false(is_left_in_part("outputs", CM_STORE_RETURN, "other", 5));
    assert_false(is_left_in_part("others", CM_STORE_RETURN, "items", 5));
    assert_false(is_left_in_part("outputs", CM_STORE_RETURN, "items", 6));
}

/* `outputs = flush(outputs)`; or `outputs = merge(outputs, flush(outputs))`. */
static bool
is_set_to_a_new_one(bool merged, bool empty)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store lines[] = {
        store(&way, CM_STORE_HAND, "flush", "outputs", 5),
        store(&way, CM_STORE_HAND, merged ? "merge" : "flush", "outputs", 5),
        store(&way, CM_STORE_ATTRIBUTE, "outputs", "self", 5)};
    struct cm_store stores[] = {
        store(&way, CM_STORE_PARAMETER, "items", "", 8),
        store(&way, CM_STORE_RETURN, "", "", 9)};
    lines[2].by = text(&way, merged ? "merge" : "flush");
    stores[1].empty = empty;
    struct cm_code_id codes[3] = {add_code(&way, "add", lines, 3, false),
                                  add_code(&way, "flush", stores, 2, false),
                                  add_code(&way, "merge", stores, 1, false)};
    return is_emptied_by_all(&way, codes, 3);
}

static void
test_a_function_gives_back_a_new_one(void **state)
{
    (void)state;
    assert_true(is_set_to_a_new_one(false, true));
    assert_false(is_set_to_a_new_one(false, false));
    assert_false(is_set_to_a_new_one(true, true));
}

/* put() has `bank = last(torch.cat([bank, x]))`, or `z` in place of that, which
 * it has set above or not; last() returns a part of what it is handed. */
struct helping {
    const char *steps;
    enum cm_store_kind kind;
    const char *handed, *by, *returned;
    bool made, graph, others;
};

static bool
is_kept_short(const struct helping *one)
{
    struct way way;
    way_init(&way, one->steps, 2);
    struct cm_store set = one->kind == CM_STORE_ITEM
                              ? store(&way, CM_STORE_ITEM, "", "bank", 5)
                              : store(&way, one->kind, "bank", "self", 5);
    struct cm_store lines[] = {
        store(&way, CM_STORE_LOCAL, "z", "", 4),
        store(&way, CM_STORE_HAND, "last", one->handed, 5), set};
    struct cm_store stores[] = {
        store(&way, CM_STORE_PARAMETER, "rows", "", 8),
        {.kind = CM_STORE_RETURN, .line = 9, .trimmed = true}};
    if (one->returned[0] != '\0') {
        stores[1].owner = text(&way, one->returned);
    }
    lines[0].made = one->made;
    lines[2].by = text(&way, one->by);
    lines[2].nested = one->others;
    way.holding.category = CM_HOLDING_LARGER;
    way.holding.autograd_depth = one->graph ? 9 : 0;
    struct cm_code_id codes[2] = {add_code(&way, "put", lines, 3, false),
                                  add_code(&way, "last", stores, 2, false)};
    return is_emptied_by_all(&way, codes, 2);
}

static void
test_what_is_made_of_it_is_handed(void **state)
{
    const struct helping right = {.steps = longer,
                                  .kind = CM_STORE_ATTRIBUTE,
                                  .handed = "",
                                  .by = "last",
                                  .returned = "rows"};
    struct helping one = right;
    (void)state;
    assert_true(is_kept_short(&one));
    one.graph = true; /* where what is cut off stays */
    assert_false(is_kept_short(&one));
    one = right;
    one.by = "head";
    assert_false(is_kept_short(&one));
    one = right;
    one.others = true; /* F.last(torch.cat([bank, x])) */
    assert_false(is_kept_short(&one));
    one = right;
    one.returned = "others";
    assert_false(is_kept_short(&one));
    one.returned = ""; /* return torch.cat([rows, x])[-n:] */
    assert_true(is_kept_short(&one));
    one = right;
    one.handed = "z"; /* which is something of another's */
    assert_false(is_kept_short(&one));
    one.made = true;
    assert_true(is_kept_short(&one));
}

static void
test_an_item_is_kept_short(void **state)
{
    struct helping one = {.steps = longer_items,
                          .kind = CM_STORE_ITEM,
                          .handed = "",
                          .by = "last",
                          .returned = "rows"};
    (void)state;
    assert_true(is_kept_short(&one));
    one.graph = true;
    assert_false(is_kept_short(&one));
    one.graph = false;
    one.by = "head";
    assert_false(is_kept_short(&one));
}

/* bank[k] = torch.cat([bank[k], x])[-n:]; more of them than before; a list at
 * the place. */
static void
test_a_part_is_left_of_an_item(void **state)
{
    static const char of_lists[] =
        "F||a.py:3 main;O|local model|Model;D|.bank|dict of 2|2;"
        "L|['a']|list of 9|9;T|[3]|Tensor [4, 2]";
    static const struct {
        const char *steps, *category;
        bool part, emptied;
    } rows[] = {
        {longer_items, CM_HOLDING_LARGER, true, true},
        {longer_items, CM_HOLDING_LARGER, false, false},
        {longer_items, NULL, true, false},
        {of_lists, CM_HOLDING_LARGER, true, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct way way;
        way_init(&way, rows[i].steps, 2);
        struct cm_store item = store(&way, CM_STORE_ITEM, "", "bank", 5);
        item.given = rows[i].part;
        way.holding.category = rows[i].category;
        assert_int_equal(is_emptied_in(&way, &item, 1), rows[i].emptied);
    }
}

/* bank['last'] = z[-1:], where bank['all'] gets longer; or is cut as well. */
static void
test_another_item_is_cut(void **state)
{
    static const char *const keys[] = {"all", "last"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct way way;
        way_init(&way, longer_items, 2);
        struct cm_store items[] = {
            store(&way, CM_STORE_ITEM, "last", "bank", 5),
            store(&way, CM_STORE_ITEM, keys[i], "bank", 6)};
        items[0].given = true;
        way.holding.category = CM_HOLDING_LARGER;
        assert_int_equal(is_emptied_in(&way, items, 2), i);
    }
}

/* collect(x) has `x = x[:, 0]`, and returns something else. */
static void
test_a_part_of_what_is_handed_is_not_returned(void **state)
{
    struct way way;
    (void)state;
    way_init(&way, longer, 2);
    struct cm_store set = store(&way, CM_STORE_ATTRIBUTE, "bank", "self", 5);
    struct cm_store stores[] = {store(&way, CM_STORE_PARAMETER, "x", "", 8),
                                store(&way, CM_STORE_LOCAL, "x", "", 9)};
    set.by = text(&way, "collect");
    stores[1].trimmed = true;
    struct cm_code_id codes[2] = {add_code(&way, "put", &set, 1, false),
                                  add_code(&way, "collect", stores, 2, false)};
    way.holding.category = CM_HOLDING_LARGER;
    assert_false(is_emptied_by_all(&way, codes, 2));
}

static void
test_names_of_helpers(void **state)
{
    struct way way;
    (void)state;
    way_init(&way, attribute, 2);
    struct cm_store stores[] = {
        store(&way, CM_STORE_PARAMETER, "outputs", "", 4),
        store(&way, CM_STORE_HAND, "trim", "outputs", 5),
        store(&way, CM_STORE_ATTRIBUTE, "outputs", "self", 6),
        store(&way, CM_STORE_HAND, "trim", "outputs", 7)};
    stores[2].by = text(&way, "newest");
    struct cm_code_id code = add_code(&way, "put", stores, 4, false);
    struct cm_text_id names[3];
    way.holding.codes = &code;
    way.holding.code_count = 1;
    assert_int_equal(cm_helped_names(&way.holding, names, 3), 2);
    assert_string_equal(cm_records_text(way.records, names[0]), "trim");
    assert_string_equal(cm_records_text(way.records, names[1]), "newest");
    assert_int_equal(cm_helped_names(&way.holding, names, 1), 1);
    way.steps[2].counted = false;
    assert_int_equal(cm_helped_names(&way.holding, names, 3), 0);
    way.holding.category = CM_HOLDING_LARGER;
    assert_int_equal(cm_helped_names(&way.holding, names, 3), 2);
    cm_records_free(way.records);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_function_gives_back_a_part),
        cmocka_unit_test(test_a_function_gives_back_a_new_one),
        cmocka_unit_test(test_what_is_made_of_it_is_handed),
        cmocka_unit_test(test_an_item_is_kept_short),
        cmocka_unit_test(test_a_part_is_left_of_an_item),
        cmocka_unit_test(test_another_item_is_cut),
        cmocka_unit_test(test_a_part_of_what_is_handed_is_not_returned),
        cmocka_unit_test(test_names_of_helpers),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
