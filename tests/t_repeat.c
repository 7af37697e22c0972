/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A function that a loop calls runs again, by its name; what modules and
 * optimizers have too is no method of the program's. */

#include "way_builder.h"

#include "../graph/repeat.h"

struct call {
    enum cm_store_kind kind;
    const char *owner;
    bool of_object, repeated;
};

static const struct call in_loop = {CM_STORE_HAND, "", false, true};
static const struct call once = {CM_STORE_HAND, "", false, false};

static struct cm_store
line_of(struct way *way, const char *name, const struct call *call)
{
    struct cm_store line = store(way, call->kind, name, call->owner, 4);
    line.made = call->of_object;
    line.repeated = call->repeated;
    return line;
}

/* Whether "run_epoch" or "Trainer.end_epoch" runs again where main() calls it
 * so. */
static bool
is_called(const char *qualified, const struct call *call)
{
    struct way way;
    const char *dot = strrchr(qualified, '.');
    way_init(&way, "F||a.py:3 main;L|local outputs|list of 9|9", 1);
    struct cm_code called = {.name = text(&way, dot ? dot + 1 : qualified),
                             .qualified_name = text(&way, qualified)};
    struct cm_store line = line_of(&way, dot ? dot + 1 : qualified, call);
    struct cm_code_id codes[2] = {{0},
                                  add_code(&way, "main", &line, 1, false)};
    assert_int_equal(cm_records_add_code(way.records, &called, &codes[0]),
                     CM_OK);
    way.holding.codes = codes;
    way.holding.code_count = 2;
    bool again = cm_repeat_is_called(&way.holding,
                                     cm_records_code(way.records, codes[0]));
    cm_records_free(way.records);
    return again;
}

static void
a_function_that_a_loop_calls(void **state)
{
    (void)state;
    assert_true(is_called("run_epoch", &in_loop));
    assert_true(is_called("main.<locals>.run_epoch", &in_loop));
    assert_false(is_called("run_epoch", &once));
}

static void
a_method_is_called_on_an_object(void **state)
{
    static const struct call on = {CM_STORE_CALL, "trainer", false, true};

    (void)state;
    assert_true(is_called("Trainer.end_epoch", &on));
    assert_true(is_called("end_epoch", &on)); /* of a module */
}

/* trainer.end() where trainer is a variable is no call of the function. */
static void
what_a_variable_refers_to_is_no_module(void **state)
{
    static const struct call on = {CM_STORE_CALL, "trainer", false, true};
    struct way way;

    (void)state;
    way_init(&way, "F||a.py:3 main;L|local outputs|list of 9|9", 1);
    struct cm_store lines[2] = {store(&way, CM_STORE_LOCAL, "trainer", "", 3),
                                line_of(&way, "end", &on)};
    struct cm_code_id codes[2] = {add_code(&way, "end", NULL, 0, false),
                                  add_code(&way, "main", lines, 2, false)};
    way.holding.codes = codes;
    way.holding.code_count = 2;
    assert_false(cm_repeat_is_called(&way.holding,
                                     cm_records_code(way.records, codes[0])));
    cm_records_free(way.records);
}

static void
what_modules_have_too_is_not_the_programs(void **state)
{
    static const struct call on_model = {CM_STORE_CALL, "model", false, true};
    static const struct call on_self = {CM_STORE_CALL, "self", false, true};

    (void)state;
    assert_false(is_called("train", &on_model));
    assert_false(is_called("Trainer.train", &on_model));
    assert_true(is_called("Trainer.train", &on_self));
}

/* main() calls run(), in a loop, which calls it once. */
static void
by_one_that_runs_again(void **state)
{
    struct way way;

    (void)state;
    way_init(&way, "F||a.py:3 main;L|local outputs|list of 9|9", 1);
    struct cm_store outer = line_of(&way, "run", &in_loop);
    struct cm_store inner = line_of(&way, "epoch", &once);
    struct cm_code_id codes[3] = {add_code(&way, "epoch", NULL, 0, false),
                                  add_code(&way, "run", &inner, 1, false),
                                  add_code(&way, "main", &outer, 1, false)};
    way.holding.codes = codes;
    way.holding.code_count = 3;
    assert_true(cm_repeat_is_called(&way.holding,
                                    cm_records_code(way.records, codes[0])));
    way.holding.code_count = 2;
    assert_false(cm_repeat_is_called(&way.holding,
                                     cm_records_code(way.records, codes[0])));
    cm_records_free(way.records);
}

/* self.outputs = [] in a method that this one calls, of the owner. */
static bool
is_emptied_by_call(const char *caller, const char *owner, const char *method)
{
    struct way way;
    way_init(&way,
             "F||a.py:3 main;O|local model|Model;L|.outputs|list of 9|9;"
             "T|[3]|Tensor [4]",
             2);
    struct cm_store made =
        store(&way, CM_STORE_ATTRIBUTE, "outputs", "self", 2);
    struct cm_store call = store(&way, CM_STORE_CALL, "begin", owner, 9);
    made.empty = true;
    struct cm_code code = {.filename = text(&way, "a.py"),
                           .name = text(&way, caller),
                           .qualified_name = text(&way, method),
                           .stores = &call,
                           .store_count = 1};
    struct cm_code callee = code;
    callee.name = text(&way, "begin");
    callee.qualified_name = text(&way, "Model.begin");
    callee.stores = &made;
    struct cm_code_id ids[2];
    assert_int_equal(cm_records_add_code(way.records, &code, &ids[0]), CM_OK);
    assert_int_equal(cm_records_add_code(way.records, &callee, &ids[1]),
                     CM_OK);
    return is_emptied_by_all(&way, ids, 2);
}

static void
what_begins_an_epoch_calls_what_empties_it(void **state)
{
    (void)state;
    assert_true(is_emptied_by_call("on_epoch_begin", "self", "Model.on"));
    assert_true(is_emptied_by_call("reset", "self", "Model.reset"));
    assert_false(is_emptied_by_call("on_batch_end", "self", "Model.on"));
    assert_false(is_emptied_by_call("run_epochs", "self", "Model.run"));
    assert_false(is_emptied_by_call("on_epoch_begin", "other", "Model.on"));
    assert_false(is_emptied_by_call("on_epoch_begin", "self", "Log.on"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_that_a_loop_calls),
        cmocka_unit_test(a_method_is_called_on_an_object),
        cmocka_unit_test(what_a_variable_refers_to_is_no_module),
        cmocka_unit_test(what_modules_have_too_is_not_the_programs),
        cmocka_unit_test(by_one_that_runs_again),
        cmocka_unit_test(what_begins_an_epoch_calls_what_empties_it),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
