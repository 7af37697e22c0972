/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Where tensors get longer on objects that stay, the attribute is what piles
 * up, not who has the objects; so are the hooks of modules that stay; and
 * containers of containers. */

#include "way_builder.h"

#include "../graph/container.h"

struct row {
    const char *way;
    size_t at;
    const char *category;
    size_t step; /* 0: as it is */
};

static const struct row rows[] = {
    {"F||a.py:3 main;O|local net|Net;D|._modules|dict of 4|4;O|['3']|Layer;"
     "T|.past|Tensor [9, 4]",
     2, CM_HOLDING_LARGER, 4},
    {"F||a.py:3 main;O|local net|Net;D|._modules|dict of 4|4;O|['3']|Layer;"
     "D|._buffers|dict of 1|1;T|['past']|Tensor [9, 4]",
     2, CM_HOLDING_LARGER, 5},
    {"F||a.py:3 main;O|local net|Net;O|.b|Layer;T|.past|Tensor [9, 4]", 1,
     CM_HOLDING_LARGER, 3},
    /* self.past = (k, v) */
    {"F||a.py:3 main;O|local net|Net;D|._modules|dict of 4|4;O|['3']|Layer;"
     "t|.past|tuple of 2|2;T|[0]|Tensor [9, 4]",
     2, CM_HOLDING_LARGER, 4},
    {"F||a.py:3 main;O|local net|Net;t|.past|tuple of 2|2;T|[0]|Tensor [9, 4]",
     2, CM_HOLDING_LARGER, 0},
    /* more of them than before */
    {"F||a.py:3 main;O|local net|Net;O|.b|Layer;T|.past|Tensor [9, 4]", 1,
     NULL, 0},
    /* it is there already; by a key; a tensor's own */
    {"F||a.py:3 main;O|local net|Net;O|.b|Layer;T|.past|Tensor [9, 4]", 3,
     CM_HOLDING_LARGER, 0},
    {"F||a.py:3 main;O|local net|Net;D|.sums|dict of 4|4;"
     "T|['a']|Tensor [9, 4]",
     2, CM_HOLDING_LARGER, 0},
    {"F||a.py:3 main;O|local net|Net;T|.weight|Tensor [4];T|.grad|Tensor [4]",
     1, CM_HOLDING_LARGER, 0},
};

static void
test_what_gets_longer_on_objects_that_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct way way;
        way_init(&way, rows[i].way, rows[i].at);
        way.holding.category = rows[i].category;
        assert_int_equal(cm_container_of_longer(&way.holding), rows[i].step);
        cm_records_free(way.records);
    }
}

/* `way.banks[k] = ...` in put(), or `way.banks.append(...)`. */
static void
test_items_that_a_line_makes_longer(void **state)
{
    static const char dict[] =
        "F||a.py:3 main;O|local net|Net;D|.banks|dict of 2|2;"
        "T|['a']|Tensor [9, 4]";
    static const struct {
        const char *way, *category, *rule, *piece;
        enum cm_store_kind kind;
        uint64_t depth;
    } cases[] = {
        {dict, CM_HOLDING_LARGER, "tensors get longer",
         "give the tensors in banks a bound (keep the last N rows of each: "
         "`banks[k][-N:]`, or `[:N]` where new ones come first), or clear "
         "banks where an epoch or a sequence ends",
         CM_STORE_ITEM, 0},
        {dict, CM_HOLDING_LARGER, "tensors get longer",
         "sequence ends, and detach() what is added", CM_STORE_ITEM, 9},
        {dict, CM_HOLDING_LARGER, "container grows", "clear banks",
         CM_STORE_CALL, 0},
        {dict, NULL, "container grows", "clear banks", CM_STORE_ITEM, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct way way;
        way_init(&way, cases[i].way, 2);
        struct cm_store line = store(&way, cases[i].kind, "", "banks", 5);
        struct cm_code_id code = add_code(&way, "put", &line, 1, false);
        way.holding.category = cases[i].category;
        way.holding.autograd_depth = cases[i].depth;
        way.holding.codes = &code;
        way.holding.code_count = 1;
        assert_advice(&way, cases[i].rule, cases[i].piece);
        cm_records_free(way.records);
    }
}

/* Three threads, each with a list. */
static void
test_attribute_of_a_threads_own(void **state)
{
    static const struct {
        const char *steps;
        size_t step;
    } ways[] = {
        {"M||module a;O|.local|_thread._local;L|.rows|list of 9|9;"
         "T|[3]|Tensor [4]",
         2},
        {"M||module a;O|.local|_thread._local;T|.last|Tensor [4]", 0},
        {"M||module a;O|.local|Local;L|.rows|list of 9|9;T|[3]|Tensor [4]", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct way way;
        way_init(&way, ways[i].steps, 1);
        assert_int_equal(cm_container_of_threads(&way.holding), ways[i].step);
        cm_records_free(way.records);
    }
}

static size_t
table_of_hooks(const char *way_to_it, size_t place)
{
    struct way way;
    way_init(&way, way_to_it, place);
    size_t found = cm_container_of_hooks(&way.holding);
    cm_records_free(way.records);
    return found;
}

static void
test_hooks_of_what_stays(void **state)
{
    static const char few[] =
        "F||a.py:3 main;D|local nets|dict of 9|9;T|['1']|Parameter;"
        "D|._backward_hooks|dict of 3|3;O|[1]|function;T|closure x|Tensor [4]";
    static const char many[] =
        "F||a.py:3 main;D|local nets|dict of 9|9;T|['1']|Parameter;"
        "D|._backward_hooks|dict of 9|9;O|[1]|function;T|closure x|Tensor [4]";
    static const char of_state[] =
        "F||a.py:3 main;O|local opt|SGD;D|.state|dict of 9|9;T|key|Parameter;"
        "D|._backward_hooks|dict of 3|3;O|[1]|function;T|closure x|Tensor [4]";
    static const char of_group[] =
        "F||a.py:3 main;O|local opt|SGD;D|.param_groups|list of 1|1;"
        "D|[0]|dict of 9|9;D|['params']|list of 9|9;T|[3]|Parameter;"
        "D|._backward_hooks|dict of 3|3;O|[1]|function;T|closure x|Tensor [4]";
    (void)state;
    assert_int_equal(table_of_hooks(of_group, 4), 6);
    assert_int_equal(table_of_hooks(few, 1), 0);
    assert_int_equal(table_of_hooks(many, 1), 3);
    assert_int_equal(table_of_hooks(many, 3), 0);
    assert_int_equal(table_of_hooks(of_state, 2), 4);
}

/* A dict or a list of so many lists, one of which has so many tensors. */
static void
assert_said(const char *place, uint64_t lists, uint64_t items,
            const char *piece)
{
    char steps[200];
    struct way way;
    snprintf(steps, sizeof steps,
             "M||module a;%s%u;L|[7]|list of 3|%u;T|[1]|Tensor [4]", place,
             (unsigned)lists, (unsigned)items);
    way_init(&way, steps, 1);
    way.holding.through = (uint32_t)(lists * items);
    assert_advice(&way, "containers grow", piece);
    cm_records_free(way.records);
}

static void
test_many_short_ones_are_removed(void **state)
{
    static const char dict[] = "D|.open|dict|", list[] = "L|.open|list|",
                      tuple[] = "t|.open|tuple|";
    (void)state;
    assert_said(dict, 10, 3, "remove each list from open when it");
    assert_said(list, 10, 9, "remove each list from open when it");
    /* Of 53 layers, each with an output of each iteration. */
    assert_said(dict, 53, 10, "clear each list in open when it");
    assert_said(dict, 3, 3, "clear each list in open when it");
    assert_said(tuple, 10, 3, "clear each list in open when it");
}

/* Of what each item has by a name. */
static void
test_each_item_has_a_container(void **state)
{
    static const struct {
        const char *steps, *piece;
    } ways[] = {
        {"M||module a;L|.trials|list of 9|9;O|[3]|Trial;"
         "D|.user_attrs|dict of 4|4;T|['w']|Tensor [4]",
         "clear user_attrs of each Trial in trials when"},
        {"M||module a;L|.runs|list of 9|9;D|[3]|dict of 2|2;"
         "L|['frames']|list of 4|4;T|[1]|Tensor [4]",
         "clear frames of each dict in runs when"},
        {"M||module a;L|.runs|list of 9|9;L|[3]|list of 2|2;"
         "L|[1]|list of 4|4;T|[1]|Tensor [4]",
         "clear each list in runs when"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct way way;
        way_init(&way, ways[i].steps, 1);
        way.holding.through = 36;
        set_type(&way, 2, "a", "Trial");
        assert_advice(&way, "containers grow", ways[i].piece);
        cm_records_free(way.records);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_gets_longer_on_objects_that_stay),
        cmocka_unit_test(test_items_that_a_line_makes_longer),
        cmocka_unit_test(test_attribute_of_a_threads_own),
        cmocka_unit_test(test_hooks_of_what_stays),
        cmocka_unit_test(test_many_short_ones_are_removed),
        cmocka_unit_test(test_each_item_has_a_container),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
