/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The rules for what holds memory that grows: each on ways that fit it and on
 * one that looks alike; and where the place is filled.  Programs that make
 * such ways are in test_holder_advice.py. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fail_each.h"
#include "holding_cases.h"
#include "way_builder.h"

static uint32_t
made(struct way *way, const struct cm_code_id *codes, size_t count,
     struct cm_place places[CM_MAX_PLACES])
{
    way->holding.codes = codes;
    way->holding.code_count = count;
    return cm_holding_made(&way->holding, places);
}

static void
test_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct way way;

        way_init(&way, cases[i].steps, cases[i].at);
        way.holding.category = cases[i].category;
        way.holding.kept = cases[i].kept;
        way.holding.autograd_depth = cases[i].depth;
        assert_advice(&way, cases[i].rule, cases[i].advice);
        cm_records_free(way.records);
    }
}

/* Who keeps tensors of the CPU is not told to keep tensors of the CPU. */
static void
test_less_of_what_is_on_the_cpu(void **state)
{
    static const struct {
        const char *steps;
        size_t at;
        const char *rule, *of_device, *of_host;
    } ways[] = {
        {"F||a.py:3 main;L|local seen|list of 9|9;T|[3]|Tensor [4]", 1,
         "container grows", "less in it (numbers, or tensors on the CPU)",
         "less in it (numbers, or a summary of each)"},
        {"M||module a;D|.rows|dict of 2|2;L|['x']|list of 9|9;"
         "T|[3]|Tensor [4]",
         1, "containers grow", "less in it (numbers, or tensors on the CPU)",
         "less in it (numbers, or a summary of each)"},
        {"M||module weakref;C|.finalize|class finalize;"
         "D|._registry|dict of 9|9;"
         "O|[<weakref.finalize>]|weakref.finalize._Info;"
         "t|.args|tuple of 1|1;T|[0]|Tensor [4]",
         2, "weakref.finalize", "(a key, a copy on the CPU)",
         "(a key, a number)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct way way;

        way_init(&way, ways[i].steps, ways[i].at);
        way.holding.through = 9;
        assert_advice(&way, ways[i].rule, ways[i].of_device);
        way.holding.on_host = true;
        assert_advice(&way, ways[i].rule, ways[i].of_host);
        cm_records_free(way.records);
    }
}

/* Its tables are told by the line that gives it more; one that fills them
 * itself has no such line. */
static void
test_optimizer_is_given_more(void **state)
{
    static const char steps[] =
        "F||a.py:3 main;O|local opt|Adam;"
        "L|.param_groups|list of 9|9;D|[2]|dict of 3|3;"
        "L|['params']|list of 2|2;T|[0]|Parameter [4]";
    struct cm_place places[CM_MAX_PLACES];
    struct way way;

    (void)state;
    way_init(&way, steps, 2);
    struct cm_store stores[] = {
        store(&way, CM_STORE_CALL, "add_param_group", "opt", 7)};
    struct cm_code_id code = add_code(&way, "main", stores, 1, false);
    assert_advice(&way, "container grows", "clear param_groups");
    assert_int_equal(made(&way, &code, 1, places), 1);
    assert_int_equal(places[0].line, 7);
    assert_advice(&way, "optimizer is given more", "make opt anew");
    cm_records_free(way.records);
}

static void
test_attributes_pile_up(void **state)
{
    static const char single[] =
        "F||a.py:3 main;O|local log|Log;T|.x9|Tensor [4]";
    static const char buffers[] =
        "F||a.py:3 main;O|local net|Net;"
        "D|._buffers|dict of 9|9;T|['x9']|Tensor [4]";
    struct cm_place places[CM_MAX_PLACES];
    struct way way;

    (void)state;
    way_init(&way, single, 2);
    struct cm_store stores[] = {
        store(&way, CM_STORE_CALL, "setattr", "log", 7)};
    struct cm_code_id code = add_code(&way, "main", stores, 1, false);
    way.holding.grows = true;
    way.holding.through = 1;
    assert_advice(&way, "kept", "set x9 = None");
    way.holding.through = 9; /* or others of it lead to more */
    assert_advice(&way, "kept", "set x9 = None");
    assert_int_equal(made(&way, &code, 1, places), 1);
    assert_advice(&way, "attributes pile up", "log gets one more attribute");
    assert_int_equal(places[0].line, 7);
    cm_records_free(way.records);
    way_init(&way, buffers, 2);
    assert_advice(&way, "container grows", "clear _buffers");
    way.holding.grows = true;
    assert_advice(&way, "attributes pile up", "net gets one more buffer");
    cm_records_free(way.records);
}

static void
test_optimizers(void **state)
{
    static const char steps[] =
        "F||a.py:3 main;L|local old|list of 4|4;O|[1]|Adam;"
        "D|.state|dict of 2|2;D|[<P>]|dict of 3|3;T|['m']|Tensor [4]";
    static const char single[] = "F||a.py:3 main;O|local opt|Adam;"
                                 "D|.state|dict of 2|2;T|['m']|Tensor [4]";
    struct way way;

    (void)state;
    way_init(&way, steps, 1);
    set_module(&way, 2, "torch.optim.adam");
    assert_advice(&way, "optimizer kept", "old optimizers in old");
    way.steps[2].type = (struct cm_type_id){0};
    assert_advice(&way, "container grows", "clear old");
    way.holding.category = "optimizer state";
    assert_advice(&way, "optimizer kept", "old optimizers in old");
    cm_records_free(way.records);
    /* The only one, and its own state grows. */
    way_init(&way, single, 2);
    set_module(&way, 1, "torch.optim.adam");
    assert_advice(&way, "container grows", "clear state");
    cm_records_free(way.records);
}

/* Which of its arguments a method's cache has many of. */
static void
test_caches(void **state)
{
    static const char steps[] =
        "M||module a;C|.Net|class Net;O|.embed|lru_cache of Net.embed;"
        "T|cached result|Tensor [4]";
    struct way way;

    (void)state;
    way_init(&way, steps, 2);
    way.steps[2].cache = CM_CACHE_UNSIZED;
    assert_advice(&way, "lru_cache on a method", "every self");
    way.steps[2].cache = CM_CACHE_UNSIZED | CM_CACHE_FEW_OWNERS;
    assert_advice(&way, "lru_cache",
                  "cache of Net.embed a maxsize: `functool");
    way.steps[2].cache = CM_CACHE_FEW_OWNERS;
    assert_advice(&way, "lru_cache", "give Net.embed's lru_cache a smaller");
    cm_records_free(way.records);
}

static void
test_chains(void **state)
{
    struct way way;

    (void)state;
    way_init(&way, "F||a.py:3 main;O|local head|Node;O|.next|Node;T|.v|Tensor",
             1);
    way.holding.chain = 70;
    assert_advice(&way, "chain", "behind head: each of its 70 links");
    way.holding.chain = 0;
    assert_advice(&way, "kept", "set head = None");
    cm_records_free(way.records);
}

/* peft's adapters: no line of the program fills the table. */
static void
test_modules_that_a_library_adds(void **state)
{
    struct way way;

    (void)state;
    way_init(&way,
             "F||a.py:3 main;O|local base|GPT2;D|._modules|dict of 2|2;"
             "O|['fc']|Linear;D|._modules|dict of 7|7;O|['lora_B']|ModuleDict;"
             "D|._modules|dict of 11|11;O|['task2']|Linear;"
             "D|._parameters|dict of 1|1;T|['weight']|Parameter [4]",
             2);
    assert_advice(&way, "modules pile up", "make the modules of lora_B once");
    cm_records_free(way.records);
}

static void
test_containers_of_containers(void **state)
{
    static const char lists[] = "M||module a;D|.acts|defaultdict of 3|3;"
                                "L|['fc']|list of 10|10;T|[3]|Tensor [4]";
    static const char pairs[] = "M||module a;D|.kv|dict of 10|10;"
                                "t|[3]|tuple of 2|2;T|[1]|Tensor [4]";
    static const char states[] =
        "F||a.py:3 main;O|local opt|Hist;D|.state|defaultdict of 4|4;"
        "D|[<P>]|dict of 1|1;L|['past']|list of 20|20;T|[3]|Tensor [4]";
    struct way way, state_of;

    (void)state;
    way_init(&way, lists, 1);
    way.holding.through = 20;
    assert_advice(&way, "containers grow", "clear each list in acts when");
    way_init(&state_of, states, 2);
    state_of.holding.through = 80;
    assert_advice(&state_of, "containers grow",
                  "clear past of each dict in state");
    cm_records_free(state_of.records);
    /* One tensor behind each key: the keys become more. */
    way.holding.through = 3;
    assert_advice(&way, "global cache", "give acts a bound");
    cm_records_free(way.records);
    way_init(&way, pairs, 1);
    way.holding.through = 20;
    assert_advice(&way, "global cache", "give kv a bound");
    cm_records_free(way.records);
}

static void
test_no_name_and_no_way(void **state)
{
    struct way way;
    struct cm_place places[CM_MAX_PLACES];

    (void)state;
    way_init(&way, "O||thread 7;T|context|Tensor []", 1);
    assert_advice(&way, "kept", "drop this reference");
    assert_int_equal(made(&way, NULL, 0, places), 0);
    way.holding.count = way.holding.at = 0;
    assert_advice(&way, "C++ only", "a C extension");
    assert_int_equal(made(&way, NULL, 0, places), 0);
    cm_records_free(way.records);
}

/* Of two optimizers one may be cleared in time. */
static void
test_gradients_of_an_optimizer_with_a_name(void **state)
{
    struct way way;

    (void)state;
    way_init(&way,
             "M||module a;O|.od|Adam;D|.state|dict of 6|6;T|key|Tensor [4];"
             "T|.grad|Tensor [4]",
             2);
    way.holding.category = "gradient";
    set_module(&way, 1, "torch.optim.adam");
    assert_advice(&way, "gradient not cleared", "call od.zero_grad(");
    assert_advice(&way, "gradient not cleared", "right after od.step()");
    set_module(&way, 1, "net");
    assert_advice(&way, "gradient not cleared", "call optimizer.zero_grad(");
    cm_records_free(way.records);
}

static void
test_gradients_of_one_of_several_optimizers(void **state)
{
    static const char way_text[] =
        "M||module a;O|.gan|Gan;O|.critic|Net;D|._modules|dict of 1|1;"
        "O|['0']|Linear;D|._parameters|dict of 1|1;T|['weight']|Parameter [4];"
        "T|.grad|Tensor [4]";
    struct way way;

    (void)state;
    way_init(&way, way_text, 2);
    way.holding.category = "gradient";
    assert_advice(&way, "gradient not cleared", "call optimizer.zero_grad(");
    way.holding.of_several = true;
    assert_advice(&way, "gradient not cleared",
                  "call zero_grad(set_to_none=True) on the optimizer of "
                  "critic right");
    way.holding.count = 3; /* no module is known by its tables */
    assert_advice(&way, "gradient not cleared", "call optimizer.zero_grad(");
    cm_records_free(way.records);
}

/* ---- where it is filled */

/* By the stack that allocated them; not by a program's own file so named. */
static void
test_gradients_that_lightning_clears(void **state)
{
    static const char loop[] =
        "/usr/lib/pytorch_lightning/loops/optimization/automatic.py";
    struct way way;

    (void)state;
    way_init(&way, "M||module a;O|.net|Net;T|.grad|Tensor [4]", 2);
    way.holding.category = "gradient";
    way.holding.site = add_site(&way, loop, true);
    assert_advice(&way, "gradient cleared late by Lightning",
                  "def optimizer_step(self");
    way.holding.count = 0; /* held by C++ alone; in pip's --target */
    way.holding.site = add_site(&way, loop, false);
    assert_advice(&way, "gradient cleared late by Lightning", "zero_grad()");
    way.holding.site = add_site(&way, strstr(loop, "/loops"), false);
    assert_advice(&way, "gradient not cleared", "optimizer.zero_grad(");
    way.holding.site = add_site(&way, "/usr/lib/lightning/manual.py", true);
    assert_advice(&way, "gradient not cleared", "optimizer.zero_grad(");
    way.holding.site = add_site(&way, loop, true);
    way.holding.count = 3;
    way.holding.category = "other";
    assert_advice(&way, "kept", "set");
    cm_records_free(way.records);
}

static void
test_first_code_that_fills_it(void **state)
{
    struct way way;
    struct cm_place places[CM_MAX_PLACES];

    (void)state;
    way_init(&way, "F||a.py:3 main;L|local kept|list of 9|9;T|[3]|Tensor []",
             1);
    struct cm_store makes[] = {store(&way, CM_STORE_LOCAL, "kept", "", 5)};
    struct cm_store fills[] = {
        store(&way, CM_STORE_CALL, "append", "other", 6),
        store(&way, CM_STORE_CALL, "append", "kept", 7),
        store(&way, CM_STORE_CALL, "pop", "kept", 8)};
    struct cm_store elsewhere[] = {
        store(&way, CM_STORE_CALL, "append", "kept", 70)};
    struct cm_code_id codes[] = {
        add_code(&way, "main", makes, 1, false),
        add_code(&way, "step", fills, 3, false),
        add_code(&way, "other", elsewhere, 1, false),
    };

    assert_int_equal(made(&way, codes, 3, places), 1);
    assert_int_equal(places[0].line, 7);
    assert_true(places[0].certain);
    /* Nobody fills it: then who makes it. */
    assert_int_equal(made(&way, codes, 1, places), 1);
    assert_int_equal(places[0].line, 5);
    assert_int_equal(made(&way, codes, 0, places), 0);
    cm_records_free(way.records);
}

static void
assert_made(struct way *way, const struct cm_code_id *codes, size_t count,
            uint32_t first, uint32_t line)
{
    struct cm_place places[CM_MAX_PLACES] = {{.line = 0}};

    assert_int_equal(made(way, codes, count, places), first);
    assert_int_equal(places[0].line, line);
}

/* history['loss'].append(x), not what else is called loss. */
static void
test_item_is_filled(void **state)
{
    struct way way;

    (void)state;
    way_init(&way,
             "F||a.py:3 main;O|local t|Trainer;D|.history|dict of 1|1;"
             "L|['loss']|list of 9|9;T|[3]|Tensor []",
             3);
    struct cm_store named[] = {
        store(&way, CM_STORE_CALL, "append", "loss", 3),
        store(&way, CM_STORE_CALL, "append", "loss", 4)};
    struct cm_store any[] = {store(&way, CM_STORE_CALL, "append", "", 6),
                             store(&way, CM_STORE_CALL, "append", "", 7)};
    struct cm_store sets[] = {
        store(&way, CM_STORE_ITEM, "loss", "other", 8),
        store(&way, CM_STORE_ITEM, "loss", "history", 9)};
    named[1].within = text(&way, "history");
    any[0].within = text(&way, "other");
    any[1].within = text(&way, "history");
    struct cm_code_id codes[] = {add_code(&way, "set", sets, 2, false),
                                 add_code(&way, "any", any, 2, false),
                                 add_code(&way, "name", named, 2, false)};

    assert_made(&way, codes, 3, 1, 4);
    assert_made(&way, codes, 2, 1, 7);
    assert_made(&way, codes, 1, 1, 9);
    cm_records_free(way.records);
}

/* What only a library's code fills is told by who has it. */
static void
test_owner_of_a_librarys_container(void **state)
{
    static const char steps[] =
        "F||a.py:3 main;O|local todo|queue.Queue;O|.queue|collections.deque "
        "of "
        "9|9;T|[*]|Tensor [4]";
    struct way way;

    (void)state;
    way_init(&way, steps, 2);
    set_module(&way, 1, "queue");
    struct cm_store own[] = {
        store(&way, CM_STORE_CALL, "append", "queue", 200)};
    struct cm_store puts[] = {store(&way, CM_STORE_CALL, "put", "todo", 5)};
    struct cm_code_id codes[] = {add_code(&way, "_put", own, 1, true),
                                 add_code(&way, "main", puts, 1, false)};

    assert_made(&way, codes, 2, 1, 5);
    assert_advice(&way, "queue not drained", "out of todo as is put in");
    /* Nobody is seen to put: then the library's line. */
    assert_made(&way, codes, 1, 1, 200);
    assert_advice(&way, "queue not drained", "out of the queue as is put in");
    /* A person's own container of that name. */
    codes[0] = add_code(&way, "push", own, 1, false);
    assert_made(&way, codes, 2, 1, 200);
    way.steps[1].type = (struct cm_type_id){0};
    assert_advice(&way, "deque without a bound", "give queue a bound");
    way.steps[2].bounded = true;
    assert_advice(&way, "container grows", "clear queue ");
    cm_records_free(way.records);
}

static void
test_hooks_and_caches(void **state)
{
    struct way way;

    (void)state;
    way_init(&way,
             "F||a.py:3 main;T|local w|Tensor [4];D|._backward_hooks|dict of "
             "3|3;f|[0]|function <lambda>;T|cell g|Tensor [4]",
             2);
    struct cm_store calls[] = {
        store(&way, CM_STORE_CALL, "register_hook", "w", 5),
        store(&way, CM_STORE_CALL, "register_forward_hook", "net", 7),
        store(&way, CM_STORE_CALL, "register", "net", 1)};
    struct cm_code_id code = add_code(&way, "main", calls, 3, false);

    assert_made(&way, &code, 1, 2, 5); /* the function is not known */
    struct cm_code lambda = {.filename = text(&way, "a.py"), .first_line = 7};
    assert_int_equal(
        cm_records_add_code(way.records, &lambda, &way.steps[3].code), CM_OK);
    assert_made(&way, &code, 1, 1, 7);
    code = add_code(&way, "register_all", calls, 3, true);
    assert_made(&way, &code, 1, 0, 0);
    cm_records_free(way.records);
    way_init(&way,
             "M||module a;O|.table|lru_cache of table;T|cached result|Tensor",
             1);
    struct cm_store made_at[] = {
        store(&way, CM_STORE_FUNCTION, "table", "", 11)};
    struct cm_store stored[] = {store(&way, CM_STORE_GLOBAL, "table", "", 12)};
    code = add_code(&way, "<module>", stored, 1, false);
    assert_made(&way, &code, 1, 0, 0);
    way.steps[1].code = add_code(&way, "<module>", made_at, 1, false);
    assert_made(&way, &code, 1, 1, 11);
    cm_records_free(way.records);
}

static void
test_variable_is_not_attribute(void **state)
{
    struct way way;
    struct cm_place places[CM_MAX_PLACES];

    (void)state;
    way_init(&way, "F||a.py:3 main;O|local m|Meter;T|.total|Tensor []", 2);
    struct cm_store both[] = {
        store(&way, CM_STORE_LOCAL, "total", "", 5),
        store(&way, CM_STORE_ATTRIBUTE, "total", "self", 6)};
    struct cm_code_id code = add_code(&way, "main", both, 2, false);

    assert_int_equal(made(&way, &code, 1, places), 1);
    assert_int_equal(places[0].line, 6);
    cm_records_free(way.records);
    /* What is a module's attribute is a function's global variable. */
    way_init(&way, "M||module a;T|.total|Tensor []", 1);
    struct cm_store set[] = {
        store(&way, CM_STORE_ATTRIBUTE, "total", "self", 6),
        store(&way, CM_STORE_GLOBAL, "total", "", 9)};
    code = add_code(&way, "main", set, 2, false);
    assert_int_equal(made(&way, &code, 1, places), 1);
    assert_int_equal(places[0].line, 9);
    cm_records_free(way.records);
}

static enum cm_status
attempt(void *context)
{
    struct cm_holding_advice advice;
    enum cm_status status = cm_holding_advise(context, &advice);
    cm_holding_advice_release(&advice);
    return status;
}

static void
test_no_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct way way;
        way_init(&way, cases[i].steps, cases[i].at);
        cm_fail_each(attempt, &way.holding);
        cm_records_free(way.records);
    }
}

/* Of several lines that fill it, that which was running, or comes next. */
static void
test_line_that_was_running(void **state)
{
    struct way way;
    struct cm_place places[CM_MAX_PLACES];

    (void)state;
    way_init(&way, "F||a.py:3 main;L|local kept|list of 9|9;T|[3]|Tensor []",
             1);
    struct cm_store one[] = {store(&way, CM_STORE_CALL, "append", "kept", 5)};
    struct cm_store many[] = {
        store(&way, CM_STORE_CALL, "append", "kept", 15),
        store(&way, CM_STORE_CALL, "append", "kept", 17),
        store(&way, CM_STORE_CALL, "append", "kept", 19)};
    struct cm_code_id codes[] = {add_code(&way, "one", one, 1, false),
                                 add_code(&way, "many", many, 3, false)};

    assert_int_equal(made(&way, codes, 2, places), 1);
    assert_int_equal(places[0].line, 5);
    set_running(&way, codes[1], 17);
    assert_int_equal(made(&way, codes, 2, places), 3);
    assert_int_equal(places[0].line, 17);
    assert_true(places[0].certain);
    assert_false(places[1].certain);
    set_running(&way, codes[1], 18);
    assert_int_equal(made(&way, codes, 2, places), 3);
    assert_int_equal(places[0].line, 19);
    assert_false(places[0].certain);
    set_running(&way, codes[1], 99);
    assert_int_equal(made(&way, codes, 2, places), 3);
    assert_int_equal(places[0].line, 15);
    /* A variable of another function than that which was running. */
    way.steps[0].code = codes[0];
    assert_int_equal(made(&way, codes, 2, places), 1);
    assert_int_equal(places[0].line, 5);
    cm_records_free(way.records);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_less_of_what_is_on_the_cpu),
        cmocka_unit_test(test_optimizer_is_given_more),
        cmocka_unit_test(test_attributes_pile_up),
        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_caches),
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_modules_that_a_library_adds),
        cmocka_unit_test(test_containers_of_containers),
        cmocka_unit_test(test_no_name_and_no_way),
        cmocka_unit_test(test_gradients_of_an_optimizer_with_a_name),
        cmocka_unit_test(test_gradients_of_one_of_several_optimizers),
        cmocka_unit_test(test_gradients_that_lightning_clears),
        cmocka_unit_test(test_line_that_was_running),
        cmocka_unit_test(test_first_code_that_fills_it),
        cmocka_unit_test(test_item_is_filled),
        cmocka_unit_test(test_owner_of_a_librarys_container),
        cmocka_unit_test(test_hooks_and_caches),
        cmocka_unit_test(test_variable_is_not_attribute),
        cmocka_unit_test(test_no_memory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
