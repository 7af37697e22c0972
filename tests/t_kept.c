/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * What is kept in a container says what is to be done: each way beside one
 * that looks alike. */

#include "way_builder.h"

/* Of `items` in the list of handlers, and of rows in what each has. */
static void
assert_methods(const char *steps, const char *rule, const char *piece)
{
    struct way way;
    way_init(&way, steps, 3);
    set_type(&way, 5, "app", "app.Session");
    assert_advice(&way, rule, piece);
    cm_records_free(way.records);
}

static void
methods_of_objects_that_are_done(void **state)
{
    (void)state;
    assert_methods(
        "F||a.py:3 main;O|local bus|Bus;D|.on|dict of 1|1;"
        "L|['done']|list of 9|9;m|[3]|method forget;O|__self__|Session;"
        "L|.kv|list of 2|2;T|[0]|Tensor [4]",
        "methods kept",
        "take forget of each Session out of on['done'] when that is done, or "
        "put weakref.WeakMethod(self.forget) there");
    /* The one listener has a list that grows. */
    assert_methods(
        "F||a.py:3 main;O|local bus|Bus;D|.on|dict of 1|1;"
        "L|['done']|list of 1|1;m|[0]|method forget;O|__self__|Session;"
        "L|.kv|list of 20|20;T|[0]|Tensor [4]",
        "container grows", "clear on['done']");
    /* A function that keeps something is no method. */
    assert_methods(
        "F||a.py:3 main;O|local bus|Bus;D|.on|dict of 1|1;"
        "L|['done']|list of 9|9;f|[3]|function forget;O|cell session|Session;"
        "T|.kv|Tensor [4]",
        "container grows", "clear on['done']");
}

static void
assert_tasks(const char *steps, const char *module, const char *type,
             const char *rule, const char *piece)
{
    struct way way;
    way_init(&way, steps, 1);
    set_type(&way, 2, module, type);
    assert_advice(&way, rule, piece);
    cm_records_free(way.records);
}

static void
tasks_that_are_done(void **state)
{
    static const char set[] = "F||a.py:3 main;S|local tasks|set of 9|9;"
                              "O|element|_asyncio.Task;T|a C field|Tensor [4]";
    static const char list[] = "F||a.py:3 main;L|local tasks|list of 9|9;"
                               "O|[3]|asyncio.Task;T|._result|Tensor [4]";
    static const char dict[] = "F||a.py:3 main;D|local tasks|dict of 9|9;"
                               "O|[3]|_asyncio.Task;T|a C field|Tensor [4]";

    (void)state;
    assert_tasks(set, "_asyncio", "_asyncio.Task", "tasks kept",
                 "`task.add_done_callback(tasks.discard)`");
    assert_tasks(list, "asyncio.tasks", "asyncio.tasks.Task", "tasks kept",
                 "`task.add_done_callback(tasks.remove)`");
    assert_tasks(dict, "_asyncio", "_asyncio.Task", "container grows",
                 "clear tasks");
    assert_tasks(set, "app", "app.Task", "container grows", "clear tasks");
    assert_tasks(set, "_asyncio", "_asyncio.Future", "container grows",
                 "clear tasks");
}

static void
values_that_know_their_weak_key(void **state)
{
    static const char weak[] =
        "F||a.py:3 main;O|local masks|Masks;O|.table|"
        "weakref.WeakKeyDictionary;D|.data|dict of 9|9;T|[3]|Tensor [4]";
    static const char other[] =
        "F||a.py:3 main;O|local masks|Masks;O|.table|"
        "weakref.WeakValueDictionary;D|.data|dict of 9|9;T|[3]|Tensor [4]";
    struct way way;

    (void)state;
    way_init(&way, weak, 3);
    assert_advice(&way, "weak keys", "let no value in table refer to its key");
    cm_records_free(way.records);
    way_init(&way, other, 3);
    assert_advice(&way, "container grows", "clear data");
    cm_records_free(way.records);
}

/* Requests, each with a list, that a method puts into a dict; a loop calls it,
 * or does so no more than once. */
static void
assert_objects(uint64_t inside, bool repeated, const char *method,
               const char *rule, const char *piece)
{
    char steps[256];
    struct way way;
    snprintf(steps, sizeof steps,
             "F||a.py:3 main;O|local engine|Engine;D|.requests|dict of 9|9;"
             "O|['a']|Request;L|.kv|list of 2|%u;T|[0]|Tensor [4]",
             (unsigned)inside);
    way_init(&way, steps, 2);
    way.holding.through = 30;
    set_type(&way, 3, "app", "app.Request");
    struct cm_store fills = store(&way, CM_STORE_ITEM, "", "requests", 7);
    struct cm_store calls = store(&way, CM_STORE_CALL, method, "engine", 20);
    calls.repeated = repeated;
    struct cm_code_id codes[2] = {add_code(&way, method, &fills, 1, false),
                                  add_code(&way, "main", &calls, 1, false)};
    way.holding.codes = codes;
    way.holding.code_count = 2;
    assert_advice(&way, rule, piece);
    cm_records_free(way.records);
}

static void
objects_with_a_container_each(void **state)
{
    (void)state;
    assert_objects(4, true, "add", "objects pile up",
                   "take each Request out of requests when it is done with: "
                   "it keeps its kv");
    /* A few, and their lists grow. */
    assert_objects(20, true, "add", "containers grow",
                   "clear kv of each Request");
    assert_objects(4, false, "add", "containers grow",
                   "clear kv of each Request");
    assert_objects(4, true, "__init__", "containers grow",
                   "clear kv of each Request");
}

/* A module is not emptied of its layers: each model has some of the tensors. */
static void
models_of_several_layers(void **state)
{
    struct way way;
    (void)state;
    way_init(&way,
             "F||a.py:3 main;L|local kept|list of 7|7;t|[3]|tuple of 2|2;"
             "O|[1]|Net;D|._modules|dict of 3|3;O|['0']|Linear;"
             "D|._parameters|dict of 2|2;T|['weight']|Parameter [4]",
             1);
    way.holding.through = 28;
    assert_advice(&way, "container grows", "clear kept when it");
    cm_records_free(way.records);
}

/* What a library's object gave itself has no line: who has the object. */
static void
attribute_of_a_librarys_object(void **state)
{
    struct way way;

    (void)state;
    way_init(&way,
             "F||a.py:3 main;O|local log|Logger;O|.handler|Memory;"
             "L|.buffer|list of 9|9;t|[3]|tuple of 1|1;T|[0]|Tensor []",
             3);
    way.holding.kept = "loss";
    way.holding.autograd_depth = 5;
    struct cm_type type = {.name = text(&way, "Memory"), .library = true};
    assert_int_equal(
        cm_records_add_type(way.records, &type, &way.steps[1].type), CM_OK);
    way.steps[2].type = way.steps[1].type;
    struct cm_store made = store(&way, CM_STORE_LOCAL, "log", "", 5);
    struct cm_code_id code = add_code(&way, "main", &made, 1, false);
    way.holding.codes = &code;
    way.holding.code_count = 1;
    assert_advice(&way, "graph of a kept scalar",
                  "give `loss.item()` to log instead");
    way.steps[1].type = way.steps[2].type = (struct cm_type_id){0};
    assert_advice(&way, "graph of a kept scalar",
                  "keep `loss.item()` in what is appended to buffer");
    cm_records_free(way.records);
}

/* { "loss": loss } by one function, whose caller has it as l. */
static void
assert_kept_by(enum cm_store_kind kind, const char *kept, const char *variable,
               const char *piece)
{
    struct way way;
    way_init(&way,
             "F||a.py:3 main;L|local rows|list of 9|9;D|[3]|dict of 1|1;"
             "T|['loss']|Tensor []",
             1);
    struct cm_store stores[] = {
        store(&way, CM_STORE_PARAMETER, "self", "", 1),
        store(&way, kind, variable, "", 2),
        store(&way, CM_STORE_CALL, "append", "rows", 3)};
    struct cm_code_id code = add_code(&way, "step", stores, 3, false);
    way.holding.codes = &code;
    way.holding.code_count = 1;
    way.holding.kept = kept;
    assert_advice(&way, "kept scalars", piece);
    cm_records_free(way.records);
}

static void
assert_kept(const char *kept, const char *variable, const char *piece)
{
    assert_kept_by(CM_STORE_LOCAL, kept, variable, piece);
}

static void
what_is_kept_goes_by_the_name_that_it_has_there(void **state)
{
    (void)state;
    assert_kept("l", "loss", "keep `loss.item()`");
    assert_kept("l", "l", "keep `l.item()`");
    assert_kept("l", "other", "keep `l.item()`");
    assert_kept(NULL, "loss", "keep `loss.item()`");
    assert_kept_by(CM_STORE_PARAMETER, "l", "v", "keep `v.item()`");
    assert_kept_by(CM_STORE_PARAMETER, "l", "l", "keep `l.item()`");
    assert_kept_by(CM_STORE_PARAMETER, "l", "self", "keep `l.item()`");
}

/* norms.append(n.norm()), and losses.append(n), where the code has a loss. */
static void
what_is_appended_has_no_name(void **state)
{
    (void)state;
    for (unsigned named = 0; named < 2; named++) {
        struct way way;
        way_init(&way,
                 "F||a.py:3 main;L|local norms|list of 9|9;T|[3]|Tensor []",
                 1);
        struct cm_store stores[] = {
            store(&way, CM_STORE_LOCAL, "loss", "", 2),
            store(&way, CM_STORE_HAND, "append", named ? "n" : "", 3),
            store(&way, CM_STORE_CALL, "append", "norms", 3)};
        stores[1].line -= named == 0; /* another line's */
        struct cm_code_id code = add_code(&way, "main", stores, 3, false);
        way.holding.codes = &code;
        way.holding.code_count = 1;
        way.holding.autograd_depth = 5;
        assert_advice(&way, "graph of a kept scalar",
                      named ? "append `n.item()` instead"
                            : "append a number instead: "
                              "`norms.append((...).item())`");
        cm_records_free(way.records);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_of_objects_that_are_done),
        cmocka_unit_test(tasks_that_are_done),
        cmocka_unit_test(values_that_know_their_weak_key),
        cmocka_unit_test(objects_with_a_container_each),
        cmocka_unit_test(models_of_several_layers),
        cmocka_unit_test(attribute_of_a_librarys_object),
        cmocka_unit_test(what_is_kept_goes_by_the_name_that_it_has_there),
        cmocka_unit_test(what_is_appended_has_no_name),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
