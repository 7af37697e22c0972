/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * What goes by another name is emptied there; each way beside one that looks
 * alike and empties something else. */

#include "way_builder.h"

#include "../graph/emptying.h"

static const char attribute[] =
    "F||a.py:3 main;O|local model|Model;L|.outputs|list of 9|9;"
    "T|[3]|Tensor [4]";

/* add() hands `handed` to trim(), as its argument `which`; that has two
 * parameters, and clears `cleared`. */
struct handing {
    const char *handed, *first, *second, *cleared;
    uint32_t which;
    bool method, library;
};

static bool
is_emptied_there(const struct handing *handing, bool helper)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store hand =
        store(&way, CM_STORE_HAND, "trim", handing->handed, 5);
    struct cm_store stores[] = {
        store(&way, CM_STORE_PARAMETER, handing->first, "", 8),
        store(&way, CM_STORE_PARAMETER, handing->second, "", 8),
        store(&way, CM_STORE_CALL, "clear", handing->cleared, 9)};
    hand.decides = handing->which;
    hand.made = handing->method;
    stores[1].decides = 1;
    struct cm_code_id codes[2] = {
        add_code(&way, "add", &hand, 1, false),
        add_code(&way, "trim", stores, 3, handing->library)};
    way.holding.helper_count = helper ? 1 : 0;
    return is_emptied_by_all(&way, codes, helper ? 1 : 2);
}

static void
test_a_function_empties_its_parameter(void **state)
{
    const struct handing right = {.handed = "outputs",
                                  .first = "items",
                                  .second = "most",
                                  .cleared = "items"};
    struct handing one = right;
    (void)state;
    assert_true(is_emptied_there(&one, false));
    assert_true(is_emptied_there(&one, true));
    one.which = 1;
    assert_false(is_emptied_there(&one, true));
    one.cleared = "most";
    assert_true(is_emptied_there(&one, true));
    one = right;
    one.handed = "others";
    assert_false(is_emptied_there(&one, true));
    one = right;
    one.cleared = "seen";
    assert_false(is_emptied_there(&one, true));
    one = right;
    one.library = true;
    assert_false(is_emptied_there(&one, true));
}

/* self.trim(outputs), and tools.trim(outputs) of a module. */
static void
test_what_a_method_is_bound_to_counts(void **state)
{
    struct handing one = {.handed = "outputs",
                          .first = "self",
                          .second = "items",
                          .cleared = "items",
                          .method = true};
    (void)state;
    assert_true(is_emptied_there(&one, false));
    one.first = "rows";
    assert_false(is_emptied_there(&one, false));
    one.cleared = "rows";
    assert_true(is_emptied_there(&one, false));
}

static bool
is_emptied_as(const char *second, const char *of, const char *cleared)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store stores[] = {
        store(&way, CM_STORE_ALIAS, second, of, 4),
        store(&way, CM_STORE_CALL, "clear", cleared, 5)};
    return is_emptied_in(&way, stores, 2);
}

static void
test_a_second_name(void **state)
{
    (void)state;
    assert_true(is_emptied_as("kept", "outputs", "kept"));
    assert_false(is_emptied_as("kept", "outputs", "other"));
    assert_false(is_emptied_as("kept", "other", "kept"));
}

/* put() has a line of `fill`, and one that takes an item out in a loop. */
struct draining {
    enum cm_store_kind fill;
    bool fill_repeated, repeated, running, found;
};

static bool
is_drained(const struct draining *draining)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store stores[] = {
        store(&way, draining->fill, "append", "outputs", 5),
        store(&way, CM_STORE_CALL, "popitem", "outputs", 6)};
    stores[0].repeated = draining->fill_repeated;
    stores[1].repeated = draining->repeated;
    stores[1].found = draining->found;
    struct cm_code_id code = add_code(&way, "put", stores, 2, false);
    if (draining->running) {
        set_running(&way, code, 5);
    }
    return is_emptied_by_all(&way, &code, 1);
}

static void
test_a_loop_takes_out(void **state)
{
    struct draining one = {CM_STORE_CALL, false, true, true, false};
    (void)state;
    assert_true(is_drained(&one));
    one.fill_repeated = true;
    assert_false(is_drained(&one));
    one.fill_repeated = one.repeated = false;
    assert_false(is_drained(&one));
    /* The training loop, which fills it by a method. */
    one = (struct draining){CM_STORE_LOCAL, false, true, true, false};
    assert_false(is_drained(&one));
    one.running = false;
    assert_true(is_drained(&one));
    one.found = true; /* the next task that was not cancelled */
    assert_false(is_drained(&one));
}

/* for ...: outputs.append(x); and in it, or behind it, another loop that takes
 * out; `other`: that one begins, in the same loop as the first. */
static bool
is_drained_within(uint32_t fill_depth, uint32_t depth, bool other, bool asked)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store stores[] = {
        store(&way, CM_STORE_CALL, "append", "outputs", 5),
        store(&way, CM_STORE_LOCAL, "old", "", 6),
        store(&way, CM_STORE_CALL, "pop", "outputs", 7)};
    for (size_t i = 0; i < 3; i++) {
        stores[i].repeated = true;
        stores[i].depth = (i == 0 ? fill_depth : depth) & 3;
    }
    stores[1].turn = true;
    stores[1].depth = (other ? fill_depth : depth) & 3;
    struct cm_code_id code = add_code(&way, "main", stores, 3, false);
    set_running(&way, code, 5);
    way.holding.without_inner = !asked;
    return is_emptied_by_all(&way, &code, 1);
}

static void
test_a_loop_within_the_one_that_fills(void **state)
{
    (void)state;
    assert_true(is_drained_within(1, 2, false, true));
    assert_true(is_drained_within(2, 3, false, true));
    assert_false(is_drained_within(1, 2, false, false));
    assert_false(is_drained_within(1, 2, true, true));
    assert_false(is_drained_within(1, 1, false, true));
    assert_false(is_drained_within(2, 1, false, true));
    assert_false(is_drained_within(3, 3, false, true));
    assert_false(is_drained_within(0, 1, false, true));
}

/* Its length is compared, and one goes; or it is set to its last ones. */
static bool
lets_go(bool chained, bool trims)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store stores[] = {
        store(&way, CM_STORE_MEASURE, "", "outputs", 4),
        store(&way, CM_STORE_CALL, "pop", "outputs", 5)};
    if (trims) {
        stores[1] = store(&way, CM_STORE_ATTRIBUTE, "outputs", "self", 5);
        stores[1].trimmed = true;
    }
    way.holding.chained = chained;
    return is_emptied_in(&way, stores, 2);
}

static void
test_what_goes_stays_behind_the_rest(void **state)
{
    struct way way;
    (void)state;
    assert_true(lets_go(false, false));
    assert_true(lets_go(false, true));
    assert_false(lets_go(true, false));
    assert_false(lets_go(true, true));
    way_init(&way, attribute, 2);
    way.steps[2].bounded = way.holding.chained = true;
    assert_true(cm_bound_is_known(&way.holding)); /* it may end when full */
    way.steps[2].full = true;
    assert_false(cm_bound_is_known(&way.holding));
    way.holding.chained = false;
    assert_true(cm_bound_is_known(&way.holding));
    cm_records_free(way.records);
}

/* `outputs = [x.detach() for x in outputs]`, outputs[-1] = x */
static void
test_a_chain_is_made_anew(void **state)
{
    struct way way;
    (void)state;
    way_init(&way, "F||a.py:3 main;L|local outputs|list of 9|9;T|[3]|Tensor",
             1);
    struct cm_store stores[] = {
        store(&way, CM_STORE_LOCAL, "outputs", "", 2),
        store(&way, CM_STORE_CALL, "append", "outputs", 4),
        store(&way, CM_STORE_LOCAL, "outputs", "", 6),
        store(&way, CM_STORE_ITEM, "", "outputs", 7)};
    struct cm_code_id codes[] = {add_code(&way, "main", stores, 2, false),
                                 add_code(&way, "main", stores, 3, false),
                                 add_code(&way, "main", stores + 3, 1, false)};
    way.holding.code_count = 1;
    for (size_t i = 0; i < 3; i++) {
        way.holding.codes = &codes[i];
        way.steps[0].code = codes[i];
        assert_int_equal(cm_bound_is_made_anew(&way.holding), i != 0);
    }
    way.holding.at = 0;
    assert_false(cm_bound_is_made_anew(&way.holding));
    cm_records_free(way.records);
}

/* h = cell(x, h) and h = `other` in a loop; `to`.`call`(h) */
static bool
is_added_anew(bool other, const char *call, const char *to)
{
    struct way way;
    way_init(&way, "F||a.py:3 main;L|local outputs|list of 9|9;T|[3]|Tensor",
             1);
    struct cm_store stores[] = {store(&way, CM_STORE_LOCAL, "h", "", 2),
                                store(&way, CM_STORE_LOCAL, "h", "", 4),
                                store(&way, CM_STORE_HAND, call, "h", 5),
                                store(&way, CM_STORE_CALL, call, to, 5),
                                store(&way, CM_STORE_LOCAL, "h", "", 7)};
    stores[1].repeated = true;
    stores[4].repeated = other;
    struct cm_code_id code = add_code(&way, "main", stores, 5, false);
    way.steps[0].code = code;
    way.holding.codes = &code;
    way.holding.code_count = 1;
    bool result = cm_bound_is_made_anew(&way.holding);
    cm_records_free(way.records);
    return result;
}

static void
test_what_is_added_begins_anew(void **state)
{
    (void)state;
    assert_true(is_added_anew(true, "append", "outputs"));
    assert_true(is_added_anew(true, "appendleft", "outputs"));
    assert_false(is_added_anew(false, "append", "outputs"));
    assert_false(is_added_anew(true, "log", "outputs"));
    assert_false(is_added_anew(true, "append", "others"));
}

/* while len(outputs) > 8: outputs.pop(0), in a function of its own. */
static bool
is_drained_to(bool measured, bool chained, uint32_t line)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store stores[] = {
        store(&way, CM_STORE_CALL, "append", "outputs", 3),
        store(&way, measured ? CM_STORE_MEASURE : CM_STORE_ASK, "", "outputs",
              line),
        store(&way, CM_STORE_CALL, "pop", "outputs", 25)};
    stores[2].repeated = true;
    way.holding.chained = chained;
    return is_emptied_in(&way, stores, 3);
}

static void
test_a_loop_lets_some_go(void **state)
{
    (void)state;
    assert_true(is_drained_to(true, false, 24));
    assert_true(is_drained_to(false, true, 24)); /* until nothing is left */
    assert_true(is_drained_to(true, true, 14));  /* if len(outputs) > 8: */
    assert_false(is_drained_to(true, true, 24));
}

/* `count` is compared, `counted` is set behind that, and then it is filled. */
static bool
is_counted(const char *counted, const char *from, uint32_t decides,
           const char *filled)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store stores[] = {
        store(&way, CM_STORE_COMPARE, "count", "size", 4),
        store(&way, CM_STORE_ATTRIBUTE, counted, "self", 5),
        store(&way, CM_STORE_CALL, "append", filled, 6)};
    stores[0].decides = decides;
    stores[1].key = text(&way, from);
    return is_emptied_in(&way, stores, 3);
}

static void
test_a_number_is_compared(void **state)
{
    (void)state;
    assert_true(is_counted("count", "count", 2, "outputs"));
    assert_true(is_counted("size", "size", 2, "outputs"));
    assert_false(is_counted("other", "other", 2, "outputs"));
    assert_false(is_counted("count", "count", 1, "outputs"));
    assert_false(is_counted("count", "count", 2, "others"));
    /* `if loss < self.best: self.best = loss`, and an append */
    assert_false(is_counted("count", "", 2, "outputs"));
}

/* `self.count += 1`, and then `if self.count <= self.size:` and an append. */
static bool
is_counted_before(const char *counted, const char *by, bool less)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store stores[] = {
        store(&way, CM_STORE_ATTRIBUTE, counted, "self", 3),
        store(&way, CM_STORE_COMPARE, "count", "size", 4),
        store(&way, CM_STORE_CALL, "append", "outputs", 5)};
    stores[0].key = text(&way, by);
    stores[1].decides = 1;
    stores[1].trimmed = less;
    return is_emptied_in(&way, stores, 3);
}

static void
test_a_number_is_counted_before(void **state)
{
    (void)state;
    assert_true(is_counted_before("count", "count", true));
    assert_false(is_counted_before("count", "count", false)); /* warm-up */
    assert_false(is_counted_before("count", "other", true));
    assert_false(is_counted_before("size", "size", true));
}

/* main() has `trainer.run(rows)`; what run() has as `parameter` goes by that
 * name there, and by none where it is "". */
static void
assert_given(const char *first, const char *parameter, bool library,
             const char *given)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store lines[] = {store(&way, CM_STORE_CALL, "run", "trainer", 5),
                               store(&way, CM_STORE_HAND, "run", "rows", 5)};
    struct cm_store parameters[] = {
        store(&way, CM_STORE_PARAMETER, first, "", 8),
        store(&way, CM_STORE_PARAMETER, "items", "", 8)};
    lines[1].made = true;
    parameters[1].decides = 1;
    struct cm_code_id codes[] = {add_code(&way, "main", lines, 2, library),
                                 add_code(&way, "run", parameters, 2, false)};
    struct cm_alias to = {cm_records_code(way.records, codes[1]),
                          text(&way, parameter)};
    struct cm_aliases all = {.count = 0};
    way.holding.codes = codes;
    way.holding.code_count = 2;
    cm_emptying_add_callers(&way.holding, &to, &all);
    assert_int_equal(all.count, given[0] != '\0');
    if (all.count != 0) {
        assert_string_equal(cm_records_text(way.records, all.items[0].name),
                            given);
        assert_ptr_equal(all.items[0].code,
                         cm_records_code(way.records, codes[0]));
    }
    cm_records_free(way.records);
}

static void
test_what_callers_give(void **state)
{
    (void)state;
    assert_given("self", "self", false, "trainer");
    assert_given("self", "items", false, "rows");
    assert_given("self", "items", true, "");
    assert_given("self", "others", false, "");
    assert_given("path", "path", false, "rows"); /* trainer is a module */
}

/* Functions that hand it to each other come to an end. */
static void
test_functions_that_call_each_other(void **state)
{
    struct way way;
    (void)state;
    way_init(&way, attribute, 2);
    struct cm_store stores[] = {
        store(&way, CM_STORE_PARAMETER, "outputs", "", 4),
        store(&way, CM_STORE_HAND, "trim", "outputs", 5),
        store(&way, CM_STORE_ALIAS, "kept", "outputs", 6),
        store(&way, CM_STORE_ALIAS, "outputs", "kept", 7)};
    struct cm_code_id code = add_code(&way, "trim", stores, 4, false);
    way.holding.codes = &code;
    way.holding.code_count = 1;
    assert_false(cm_bound_is_emptied(&way.holding));
    cm_records_free(way.records);
}

/* `[todo.get() for _ in range(todo.qsize())]` in drain(). */
struct queue_drain {
    const char *asked, *taken;
    bool once, limited, running;
};

static bool
is_queue_drained(const struct queue_drain *how)
{
    struct way way;
    way_init(&way,
             "M||module a;O|.todo|queue.Queue;L|.queue|deque of 9|9;"
             "T|[3]|Tensor [4]",
             2);
    set_type(&way, 1, "queue", "Queue");
    struct cm_store ask[] = {store(&way, CM_STORE_CALL, how->asked, "todo", 5),
                             store(&way, CM_STORE_CALL, how->taken, "todo", 5),
                             store(&way, CM_STORE_MEASURE, "", "batch", 5)};
    ask[1].repeated = !how->once;
    struct cm_code_id code =
        add_code(&way, "drain", ask, how->limited ? 3 : 2, false);
    way.steps[0].code = how->running ? code : (struct cm_code_id){0};
    return is_emptied_by_all(&way, &code, 1);
}

static void
test_a_queue_is_drained(void **state)
{
    const struct queue_drain right = {"qsize", "get", false, false, false};
    struct queue_drain one = right;
    (void)state;
    assert_true(is_queue_drained(&one));
    one.once = true;
    assert_false(is_queue_drained(&one));
    one = right;
    one.asked = "put";
    assert_false(is_queue_drained(&one));
    one = right;
    one.limited = true; /* `while len(batch) < 8 and not todo.empty()` */
    assert_false(is_queue_drained(&one));
    one = right;
    one.running = true;
    assert_false(is_queue_drained(&one));
}

/* x[k] = torch.cat([x[k], y]); each as it is not. */
static bool
extends(const char *read_key, const char *of, uint32_t line,
        enum cm_store_kind kind)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store stores[] = {store(&way, CM_STORE_READ, "", of, line),
                                store(&way, kind, "", "outputs", 5)};
    stores[0].key = text(&way, read_key);
    stores[1].key = text(&way, "k");
    struct cm_code_id id = add_code(&way, "add", stores, 2, false);
    bool found = cm_emptying_extends(
        &way.holding, cm_records_code(way.records, id), 1, "outputs");
    cm_records_free(way.records);
    return found;
}

static void
test_an_item_is_made_longer_from_itself(void **state)
{
    (void)state;
    assert_true(extends("k", "outputs", 5, CM_STORE_ITEM));
    assert_true(extends("k", "outputs", 8, CM_STORE_ITEM));
    assert_false(extends("j", "outputs", 5, CM_STORE_ITEM));
    assert_false(extends("k", "others", 5, CM_STORE_ITEM));
    assert_false(extends("k", "outputs", 4, CM_STORE_ITEM));
    assert_false(extends("k", "outputs", 20, CM_STORE_ITEM));
    assert_false(extends("k", "outputs", 5, CM_STORE_ATTRIBUTE));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_function_empties_its_parameter),
        cmocka_unit_test(test_what_a_method_is_bound_to_counts),
        cmocka_unit_test(test_a_second_name),
        cmocka_unit_test(test_a_loop_takes_out),
        cmocka_unit_test(test_a_loop_within_the_one_that_fills),
        cmocka_unit_test(test_what_goes_stays_behind_the_rest),
        cmocka_unit_test(test_a_chain_is_made_anew),
        cmocka_unit_test(test_what_is_added_begins_anew),
        cmocka_unit_test(test_a_loop_lets_some_go),
        cmocka_unit_test(test_a_number_is_compared),
        cmocka_unit_test(test_a_number_is_counted_before),
        cmocka_unit_test(test_a_queue_is_drained),
        cmocka_unit_test(test_what_callers_give),
        cmocka_unit_test(test_functions_that_call_each_other),
        cmocka_unit_test(test_an_item_is_made_longer_from_itself),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
