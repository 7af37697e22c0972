/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A memo whose keys come from a set fills; one whose keys are all new, or that
 * nobody asks, does not. */

#include "way_builder.h"

#include "../graph/bound.h"
#include "../graph/memo.h"

static const char attribute[] =
    "F||a.py:3 main;O|local rows|Rows;D|.memo|dict of 9|9;"
    "T|[3]|Tensor [4]";

/* One line of the method that fills it, and a second one. */
struct line {
    enum cm_store_kind kind;
    const char *name, *owner, *key;
};

static bool
fills(enum cm_holding_keys keys, const struct line *lines, uint32_t count,
      bool *is_memo)
{
    struct way way;
    struct cm_store stores[4];
    way_init(&way, attribute, 2);
    way.steps[2].keys = (uint8_t)keys;
    for (uint32_t i = 0; i < count; i++) {
        const struct line *line = &lines[i];
        stores[i] = store(&way, line->kind, line->name, line->owner, i + 2);
        stores[i].key = text(&way, line->key);
    }
    struct cm_code_id code = add_code(&way, "features", stores, count, false);
    way.holding.codes = &code;
    way.holding.code_count = 1;
    bool result = cm_memo_fills(&way.holding);
    *is_memo = cm_memo_is(&way.holding);
    assert_int_equal(cm_bound_is_emptied(&way.holding), result);
    if (*is_memo) {
        assert_advice(&way, "memo without a bound", "give memo a bound");
    }
    cm_records_free(way.records);
    return result;
}

static const struct line asked[] = {{CM_STORE_ASK, "", "memo", "key"},
                                    {CM_STORE_ITEM, "", "memo", "key"}};

static void
test_keys_of_a_set(void **state)
{
    bool memo;
    const struct line got[] = {{CM_STORE_CALL, "get", "memo", ""},
                               {CM_STORE_ITEM, "", "memo", "key"}};
    const struct line tried[] = {{CM_STORE_READ, "", "memo", "key"},
                                 {CM_STORE_ITEM, "", "memo", "key"}};

    (void)state;
    assert_true(fills(CM_KEYS_OF_A_SET, asked, 2, &memo));
    assert_true(memo);
    assert_true(fills(CM_KEYS_OF_A_SET, got, 2, &memo));
    assert_true(fills(CM_KEYS_OF_A_SET, tried, 2, &memo));
    assert_true(fills(CM_KEYS_DRAWN, asked, 2, &memo));
    /* of a bank of a shuffled data set nobody asks whether it has the key */
    assert_true(fills(CM_KEYS_DRAWN, asked + 1, 1, &memo));
    assert_false(memo);
}

static void
test_keys_that_are_new(void **state)
{
    bool memo;

    (void)state;
    assert_false(fills(CM_KEYS_UNKNOWN, asked, 2, &memo));
    assert_true(memo);
    assert_false(fills(CM_KEYS_COUNTED, asked, 2, &memo));
    assert_true(memo);
}

static void
test_keys_that_index_something_else(void **state)
{
    bool memo;
    struct line lines[] = {{CM_STORE_ASK, "", "memo", "key"},
                           {CM_STORE_READ, "", "rows", "key"},
                           {CM_STORE_ITEM, "", "memo", "key"},
                           {CM_STORE_ITEM, "", "rows", "key"}};

    (void)state;
    assert_true(fills(CM_KEYS_COUNTED, lines, 3, &memo));
    assert_false(fills(CM_KEYS_COUNTED, lines, 4, &memo)); /* another memo */
    lines[1].key = "other";
    assert_false(fills(CM_KEYS_COUNTED, lines, 3, &memo));
    lines[1].key = "key";
    lines[1].owner = "memo";
    assert_false(fills(CM_KEYS_COUNTED, lines, 3, &memo));
}

static void
test_what_is_no_memo(void **state)
{
    bool memo;
    const struct line others[] = {{CM_STORE_ASK, "", "other", "key"},
                                  {CM_STORE_ITEM, "", "memo", "key"}};
    const struct line late[] = {{CM_STORE_ITEM, "", "memo", "key"},
                                {CM_STORE_READ, "", "memo", "key"}};

    (void)state;
    assert_false(fills(CM_KEYS_OF_A_SET, asked + 1, 1, &memo));
    assert_false(memo);
    assert_false(fills(CM_KEYS_OF_A_SET, asked, 1, &memo));
    assert_false(fills(CM_KEYS_OF_A_SET, others, 2, &memo));
    assert_false(fills(CM_KEYS_OF_A_SET, late, 2, &memo));
}

/* The same keys for ever, and what they lead to grows. */
static void
test_no_keys_are_new(void **state)
{
    struct way way;

    (void)state;
    way_init(&way, attribute, 2);
    struct cm_store stores[] = {store(&way, CM_STORE_ASK, "", "memo", 2),
                                store(&way, CM_STORE_ITEM, "", "memo", 3)};
    struct cm_code_id code = add_code(&way, "features", stores, 2, false);
    way.holding.codes = &code;
    way.holding.code_count = 1;
    way.steps[2].keys = CM_KEYS_OF_A_SET;
    way.holding.through = 9;
    assert_true(cm_memo_fills(&way.holding));
    way.holding.through = 10;
    assert_false(cm_memo_fills(&way.holding));
    way.holding.through = 9;
    way.holding.autograd_depth = 40;
    assert_false(cm_memo_fills(&way.holding));
    way.holding.autograd_depth = 0;
    way.holding.category = CM_HOLDING_LARGER;
    assert_false(cm_memo_fills(&way.holding));
    cm_records_free(way.records);
}

/* run() hands the variable of a loop to features(), which stores under it. */
struct loops {
    bool turn, nested, called; /* called: main() runs run() in a loop */
    const char *handed, *method;
    uint32_t which;
    const char *object; /* that run() calls, in place of features() */
};

static bool
comes_again(const struct loops *loops)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store lines[] = {store(&way, CM_STORE_PARAMETER, "self", "", 1),
                               store(&way, CM_STORE_PARAMETER, "key", "", 1),
                               store(&way, CM_STORE_ALIAS, "name", "key", 2),
                               store(&way, CM_STORE_ASK, "", "memo", 2),
                               store(&way, CM_STORE_ITEM, "", "memo", 3)};
    struct cm_store loop[] = {store(&way, CM_STORE_LOCAL, "i", "", 5),
                              store(&way, CM_STORE_HAND,
                                    loops->object ? loops->object : "features",
                                    loops->handed, 6)};
    struct cm_store call = store(&way, CM_STORE_HAND, "run", "", 9);
    lines[1].decides = 1;
    lines[4].key = text(&way, "name");
    loop[0].turn = loops->turn;
    loop[0].nested = loops->nested;
    loop[0].repeated = true;
    loop[1].made = loops->object == NULL;
    loop[1].decides = loops->which;
    call.repeated = loops->called;
    struct cm_code_id codes[3] = {
        add_code(&way, loops->method, lines, 5, false),
        add_code(&way, "run", loop, 2, false),
        add_code(&way, "main", &call, 1, false)};
    way.steps[2].keys = CM_KEYS_COUNTED;
    way.holding.codes = codes;
    way.holding.code_count = 3;
    bool result = cm_memo_fills(&way.holding);
    cm_records_free(way.records);
    return result;
}

static void
test_keys_of_a_loop_that_runs_again(void **state)
{
    const struct loops right = {
        .turn = true, .nested = true, .handed = "i", .method = "features"};
    struct loops one = right;
    (void)state;
    assert_true(comes_again(&one));
    one.nested = false;
    assert_false(comes_again(&one));
    one.called = true;
    assert_true(comes_again(&one));
    one.turn = false; /* i += 1 */
    assert_false(comes_again(&one));
    one = right;
    one.handed = "step";
    assert_false(comes_again(&one));
    one = right;
    one.which = 1; /* another argument */
    assert_false(comes_again(&one));
    one = right;
    one.method = "other"; /* nobody calls it */
    assert_false(comes_again(&one));
    one.method = "__getitem__";
    assert_true(comes_again(&one));
}

/* rows(key) runs __call__() or forward() of who has the memo. */
static void
test_keys_that_an_object_is_called_with(void **state)
{
    struct loops one = {.turn = true,
                        .nested = true,
                        .handed = "i",
                        .method = "__call__",
                        .object = "rows"};
    (void)state;
    assert_true(comes_again(&one));
    one.method = "forward";
    assert_true(comes_again(&one));
    one.method = "call";
    assert_false(comes_again(&one));
    one.method = "__call__";
    one.object = "model"; /* another object is called */
    assert_false(comes_again(&one));
    one.object = "rows";
    one.handed = "step";
    assert_false(comes_again(&one));
}

/* for x in ...: memo[len(x)] = y, and a second line that stores. */
static bool
fills_by_sizes(bool turn, const char *key, bool sized, enum cm_store_kind kind)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store lines[] = {store(&way, CM_STORE_LOCAL, "x", "", 2),
                               store(&way, CM_STORE_ASK, "", "memo", 3),
                               store(&way, CM_STORE_ITEM, "", "memo", 4),
                               store(&way, kind, "setdefault", "memo", 5)};
    lines[0].turn = turn;
    lines[2].key = text(&way, "x");
    lines[2].sized = true;
    lines[3].key = text(&way, key);
    lines[3].sized = sized;
    struct cm_code_id code = add_code(&way, "fit", lines, 4, false);
    way.steps[2].keys = CM_KEYS_COUNTED;
    way.holding.codes = &code;
    way.holding.code_count = 1;
    bool result = cm_memo_fills(&way.holding);
    cm_records_free(way.records);
    return result;
}

static void
test_keys_that_are_sizes(void **state)
{
    (void)state;
    assert_true(fills_by_sizes(true, "x", true, CM_STORE_ITEM));
    assert_true(fills_by_sizes(true, "", false, CM_STORE_REMOVE));
    assert_false(fills_by_sizes(false, "x", true, CM_STORE_ITEM));
    assert_false(fills_by_sizes(true, "n", true, CM_STORE_ITEM));
    assert_false(fills_by_sizes(true, "n", false, CM_STORE_ITEM));
    assert_false(fills_by_sizes(true, "", false, CM_STORE_ITEM));
    assert_false(fills_by_sizes(true, "", false, CM_STORE_CALL));
}

/* {k: None for k in names}, whose values are set; what also adds keys is none. */
static void
test_keys_without_a_value_yet(void **state)
{
    static const struct {
        uint8_t keys;
        const char *call;
        uint32_t through;
        bool emptied;
        const char *by;
    } rows[] = {{CM_KEYS_WITH_GAPS, "items", 9, true, "clone"},
                {CM_KEYS_WITH_GAPS, "items", 9, false, NULL},
                {CM_KEYS_COUNTED, "items", 9, false, "clone"},
                {CM_KEYS_RESERVED, "get", 9, true, NULL},
                {CM_KEYS_RESERVED, "get", 10, false, NULL},
                {CM_KEYS_RESERVED, "setdefault", 9, false, NULL},
                {CM_KEYS_COUNTED, "items", 9, false, NULL},
                {CM_KEYS_UNKNOWN, "items", 9, false, NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct way way;
        way_init(&way, attribute, 2);
        struct cm_store lines[] = {
            store(&way, CM_STORE_ITEM, "", "memo", 4),
            store(&way, CM_STORE_CALL, rows[i].call, "memo", 5)};
        if (rows[i].by != NULL) {
            lines[0].by = text(&way, rows[i].by);
            lines[0].nested = true; /* of x.clone() */
        }
        struct cm_code_id code = add_code(&way, "put", lines, 2, false);
        way.steps[2].keys = rows[i].keys;
        way.holding.through = rows[i].through;
        assert_int_equal(is_emptied_by_all(&way, &code, 1), rows[i].emptied);
    }
}

static bool
fills_cache(const char *of_steps, enum cm_holding_keys keys, uint64_t depth)
{
    struct way way;
    way_init(&way, of_steps, 2);
    way.steps[2].keys = (uint8_t)keys;
    way.holding.autograd_depth = depth;
    bool found = cm_memo_fills_cache(&way.holding);
    assert_int_equal(cm_bound_is_emptied(&way.holding), found);
    cm_records_free(way.records);
    return found;
}

/* What lru_cache() has computed for each word of a list. */
static void
test_caches(void **state)
{
    static const char cache[] = "M||module a;O|.embed|lru_cache of embed;"
                                "D|cache|dict of 9|9;T|['la']|Tensor [4]";

    (void)state;
    assert_true(fills_cache(cache, CM_KEYS_OF_A_SET, 0));
    assert_false(fills_cache(cache, CM_KEYS_OF_A_SET, 2));
    assert_false(fills_cache(cache, CM_KEYS_COUNTED, 0));
    assert_false(fills_cache(cache, CM_KEYS_UNKNOWN, 0));
    assert_false(fills_cache("M||module a;O|.embed|Embedding;"
                             "D|cache|dict of 9|9;T|['la']|Tensor [4]",
                             CM_KEYS_OF_A_SET, 0));
}

/* embed(word, other), which a loop within a loop calls; `again`: what another
 * line hands it. */
static bool
fills_cache_of(const char *function, const char *handed, const char *other,
               bool nested, const char *again)
{
    struct way way;
    way_init(&way,
             "M||module a;O|.embed|lru_cache of embed;D|cache|dict of 9|9;"
             "T|['la']|Tensor [4]",
             2);
    struct cm_store own[] = {store(&way, CM_STORE_PARAMETER, "word", "", 1),
                             store(&way, CM_STORE_PARAMETER, "other", "", 1)};
    struct cm_store loop[] = {
        store(&way, CM_STORE_LOCAL, "w", "", 5),
        store(&way, CM_STORE_HAND, "embed", handed, 6),
        store(&way, CM_STORE_HAND, "embed", other ? other : "", 6)};
    own[1].decides = loop[2].decides = 1;
    loop[0].turn = true;
    loop[0].nested = nested;
    struct cm_store line = store(&way, CM_STORE_HAND, "embed", again, 9);
    struct cm_code_id codes[3] = {
        add_code(&way, function, own, other != NULL ? 2 : 1, false),
        add_code(&way, "main", loop, other != NULL ? 3 : 2, false),
        add_code(&way, "serve", &line, 1, false)};
    way.steps[2].keys = CM_KEYS_COUNTED;
    way.holding.codes = codes;
    way.holding.code_count = again[0] != '\0' ? 3 : 2;
    bool found = cm_memo_fills_cache(&way.holding);
    way.steps[2].keys = CM_KEYS_UNKNOWN;
    assert_false(cm_memo_fills_cache(&way.holding));
    cm_records_free(way.records);
    return found;
}

static void
test_caches_of_what_comes_again(void **state)
{
    (void)state;
    assert_true(fills_cache_of("embed", "w", NULL, true, ""));
    assert_true(fills_cache_of("embed", "w", "w", true, ""));
    assert_false(fills_cache_of("embed", "w", NULL, false, ""));
    assert_false(fills_cache_of("embed", "step", NULL, true, ""));
    assert_false(fills_cache_of("embed", "w", "step", true, ""));
    assert_false(fills_cache_of("other", "w", NULL, true, ""));
    assert_false(fills_cache_of("embed", "w", NULL, true, "step"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_of_a_set),
        cmocka_unit_test(test_keys_that_are_new),
        cmocka_unit_test(test_keys_that_index_something_else),
        cmocka_unit_test(test_what_is_no_memo),
        cmocka_unit_test(test_no_keys_are_new),
        cmocka_unit_test(test_keys_of_a_loop_that_runs_again),
        cmocka_unit_test(test_keys_without_a_value_yet),
        cmocka_unit_test(test_keys_that_an_object_is_called_with),
        cmocka_unit_test(test_keys_that_are_sizes),
        cmocka_unit_test(test_caches),
        cmocka_unit_test(test_caches_of_what_comes_again),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
