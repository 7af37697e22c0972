/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Who has the container is another one each epoch: each case beside one that
 * looks alike and stays. */

#include "way_builder.h"

static const char local[] = "F||a.py:3 main;O|local meter|Meter;"
                            "L|.outputs|list of 9|9;T|[3]|Tensor [4]";
static const char attribute[] =
    "F||a.py:3 main;O|local trainer|Trainer;O|.meter|Meter;"
    "L|.outputs|list of 9|9;T|[3]|Tensor [4]";

/* `meter = Meter()` in main(), whose variable it is. */
static bool
is_another(bool made, bool repeated)
{
    struct way way;
    way_init(&way, local, 2);
    struct cm_store line = store(&way, CM_STORE_LOCAL, "meter", "", 5);
    line.made = made;
    line.repeated = repeated;
    struct cm_code_id code = add_code(&way, "main", &line, 1, false);
    way.steps[0].code = code;
    return is_emptied_by_all(&way, &code, 1);
}

static void
a_variable_that_a_loop_makes(void **state)
{
    (void)state;
    assert_true(is_another(true, true));
    assert_false(is_another(true, false));
    assert_false(is_another(false, true)); /* meter = other */
}

/* def epoch(meter), which main() hands what it makes in its loop. */
static bool
is_another_by_caller(const char *made)
{
    struct way way;
    way_init(&way, local, 2);
    struct cm_store parameter =
        store(&way, CM_STORE_PARAMETER, "meter", "", 1);
    struct cm_store lines[2] = {store(&way, CM_STORE_LOCAL, made, "", 5),
                                store(&way, CM_STORE_HAND, "epoch", "m", 6)};
    lines[0].made = lines[0].repeated = true;
    struct cm_code_id codes[2] = {
        add_code(&way, "epoch", &parameter, 1, false),
        add_code(&way, "main", lines, 2, false)};
    way.steps[0].code = codes[0];
    return is_emptied_by_all(&way, codes, 2);
}

static void
a_parameter_that_the_caller_makes(void **state)
{
    (void)state;
    assert_true(is_another_by_caller("m"));
    assert_false(is_another_by_caller("other"));
}

/* In Epoch.run() its name is self: what main() calls run() on. */
static bool
is_another_that_is_called(const char *receiver)
{
    static const char way_of_self[] =
        "F||a.py:3 run;O|local self|Epoch;"
        "L|.outputs|list of 9|9;T|[3]|Tensor [4]";
    struct way way;
    way_init(&way, way_of_self, 2);
    struct cm_store parameter = store(&way, CM_STORE_PARAMETER, "self", "", 1);
    struct cm_store lines[2] = {
        store(&way, CM_STORE_GLOBAL, "epoch", "", 5),
        store(&way, CM_STORE_CALL, "run", receiver, 6)};
    struct cm_code run = {.name = text(&way, "run"),
                          .qualified_name = text(&way, "Epoch.run"),
                          .stores = &parameter,
                          .store_count = 1};
    lines[0].made = lines[0].repeated = true;
    struct cm_code_id codes[2] = {{0},
                                  add_code(&way, "main", lines, 2, false)};
    assert_int_equal(cm_records_add_code(way.records, &run, &codes[0]), CM_OK);
    way.steps[0].code = codes[0];
    return is_emptied_by_all(&way, codes, 2);
}

static void
an_object_that_the_caller_makes(void **state)
{
    (void)state;
    assert_true(is_another_that_is_called("epoch"));
    assert_false(is_another_that_is_called("other"));
}

/* `[Epoch(n).run() for _ in range(4)]`: of self in run(), or in what that calls
 * on self. */
static bool
is_another_without_a_name(const char *made_by, bool repeated, bool step)
{
    static const char ways[][80] = {
        "F||a.py:3 run;O|local self|Epoch;L|.outputs|list of 9|9;"
        "T|[3]|Tensor [4]",
        "F||a.py:3 add;O|local self|Epoch;L|.outputs|list of 9|9;"
        "T|[3]|Tensor [4]"};
    struct way way;
    way_init(&way, ways[step], 2);
    set_type(&way, 1, "__main__", "Epoch");
    struct cm_store lines[2] = {store(&way, CM_STORE_PARAMETER, "self", "", 1),
                                store(&way, CM_STORE_CALL, "add", "self", 2)};
    struct cm_store call = store(&way, CM_STORE_CALL, "run", "", 6);
    call.key = text(&way, made_by);
    call.repeated = repeated;
    struct cm_code run = {.name = text(&way, "run"),
                          .qualified_name = text(&way, "Epoch.run"),
                          .stores = lines,
                          .store_count = 2};
    struct cm_code add = {.name = text(&way, "add"),
                          .qualified_name = text(&way, "Epoch.add"),
                          .stores = lines,
                          .store_count = 1};
    struct cm_code_id codes[3] = {
        {0}, {0}, add_code(&way, "<listcomp>", &call, 1, false)};
    assert_int_equal(cm_records_add_code(way.records, &run, &codes[0]), CM_OK);
    assert_int_equal(cm_records_add_code(way.records, &add, &codes[1]), CM_OK);
    way.steps[0].code = codes[step];
    return is_emptied_by_all(&way, codes, 3);
}

static void
an_object_without_a_name(void **state)
{
    (void)state;
    assert_true(is_another_without_a_name("Epoch", true, false));
    assert_true(is_another_without_a_name("Epoch", true, true));
    assert_false(is_another_without_a_name("Epoch", false, false));
    assert_false(is_another_without_a_name("current", true, false));
    assert_false(is_another_without_a_name("", true, false));
}

/* `self.meter = Meter()` in a method that main() calls in its loop, or
 * `self.meter = wrap(self.meter)`. */
static bool
is_another_of_object(const char *handed, bool repeated)
{
    struct way way;
    way_init(&way, attribute, 3);
    struct cm_store lines[2] = {
        store(&way, CM_STORE_HAND, "Meter", handed, 9),
        store(&way, CM_STORE_ATTRIBUTE, "meter", "self", 9)};
    lines[1].made = true;
    struct cm_store call = store(&way, CM_STORE_CALL, "end", "trainer", 5);
    call.repeated = repeated;
    struct cm_code method = {.name = text(&way, "end"),
                             .qualified_name = text(&way, "Trainer.end"),
                             .stores = lines,
                             .store_count = 2};
    struct cm_code_id codes[2] = {{0},
                                  add_code(&way, "main", &call, 1, false)};
    assert_int_equal(cm_records_add_code(way.records, &method, &codes[0]),
                     CM_OK);
    return is_emptied_by_all(&way, codes, 2);
}

static void
an_attribute_that_is_made_anew(void **state)
{
    (void)state;
    assert_true(is_another_of_object("", true));
    assert_false(is_another_of_object("", false));
    assert_false(is_another_of_object("meter", true));
}

/* The loop's object leads to its class, which has one list for all. */
static void
a_container_of_the_class(void **state)
{
    static const char of_class[] =
        "F||a.py:3 main;O|local meter|Meter;C|type|class Meter;"
        "L|.outputs|list of 9|9;T|[3]|Tensor [4]";
    struct way way;

    (void)state;
    way_init(&way, of_class, 3);
    struct cm_store line = store(&way, CM_STORE_LOCAL, "meter", "", 5);
    line.made = line.repeated = true;
    struct cm_code_id code = add_code(&way, "main", &line, 1, false);
    way.steps[0].code = code;
    assert_false(is_emptied_by_all(&way, &code, 1));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_variable_that_a_loop_makes),
        cmocka_unit_test(a_parameter_that_the_caller_makes),
        cmocka_unit_test(an_object_that_the_caller_makes),
        cmocka_unit_test(an_object_without_a_name),
        cmocka_unit_test(an_attribute_that_is_made_anew),
        cmocka_unit_test(a_container_of_the_class),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
