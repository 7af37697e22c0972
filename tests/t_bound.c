/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * What piles up to an end that is written down, and looks alike and has none. */

#include "way_builder.h"

static const char attribute[] =
    "F||a.py:3 main;O|local model|Model;L|.outputs|list of 9|9;"
    "T|[3]|Tensor [4]";
static const char variable[] =
    "F||a.py:3 main;L|local outputs|list of 9|9;T|[3]|Tensor [4]";

/* Whether it is emptied where these are all lines of all code. */
static bool
is_emptied(const char *steps, size_t at, const char *method,
           enum cm_store_kind kind, const char *name, const char *owner)
{
    struct way way;
    way_init(&way, steps, at);
    struct cm_store made =
        store(&way, CM_STORE_ATTRIBUTE, "outputs", "self", 2);
    struct cm_store other = store(&way, kind, name, owner, 9);
    made.empty = other.empty = true;
    struct cm_code_id codes[3] = {add_code(&way, "__init__", &made, 1, false),
                                  add_code(&way, method, &other, 1, false)};
    codes[2] = codes[1]; /* by its owner and by the stack */
    return is_emptied_by_all(&way, codes, 3);
}

static void
test_a_line_empties_it(void **state)
{
    (void)state;
    assert_true(is_emptied(attribute, 2, "on_epoch_end", CM_STORE_CALL,
                           "clear", "outputs"));
    assert_true(is_emptied(attribute, 2, "on_epoch_end", CM_STORE_ATTRIBUTE,
                           "outputs", "self"));
    assert_true(
        is_emptied(variable, 1, "main", CM_STORE_CALL, "clear", "outputs"));
}

static void
test_no_line_empties_it(void **state)
{
    (void)state;
    /* Another one's, what fills it, and the line that makes it. */
    assert_false(is_emptied(attribute, 2, "on_epoch_end", CM_STORE_CALL,
                            "clear", "others"));
    assert_false(
        is_emptied(attribute, 2, "step", CM_STORE_CALL, "append", "outputs"));
    assert_false(is_emptied(attribute, 2, "__init__", CM_STORE_ATTRIBUTE,
                            "outputs", "self"));
    assert_false(
        is_emptied(variable, 1, "other", CM_STORE_CALL, "append", "outputs"));
    /* A tensor that is held by name is no container. */
    assert_false(is_emptied("F||a.py:3 main;T|local outputs|Tensor [4]", 1,
                            "main", CM_STORE_CALL, "clear", "outputs"));
}

static bool
is_bounded_by(enum cm_store_kind first, const char *call,
              enum cm_store_kind second, const char *other, uint32_t line)
{
    struct way way;
    way_init(&way, variable, 1);
    struct cm_store stores[] = {store(&way, first, call, "outputs", 4),
                                store(&way, second, other, "outputs", line)};
    return is_emptied_in(&way, stores, 2);
}

static void
test_its_length_is_compared(void **state)
{
    (void)state;
    assert_true(
        is_bounded_by(CM_STORE_MEASURE, "", CM_STORE_CALL, "append", 5));
    assert_true(is_bounded_by(CM_STORE_MEASURE, "", CM_STORE_CALL, "pop", 5));
    assert_true(is_bounded_by(CM_STORE_MEASURE, "", CM_STORE_REMOVE, "", 5));
    /* Far below, before it, or not at all. */
    assert_false(
        is_bounded_by(CM_STORE_MEASURE, "", CM_STORE_CALL, "append", 40));
    assert_false(
        is_bounded_by(CM_STORE_CALL, "append", CM_STORE_MEASURE, "", 5));
    assert_false(
        is_bounded_by(CM_STORE_CALL, "append", CM_STORE_CALL, "pop", 5));
}

static bool
is_decided(uint32_t decides, uint32_t at)
{
    struct way way;
    way_init(&way, variable, 1);
    struct cm_store stores[] = {
        store(&way, CM_STORE_MEASURE, "", "outputs", 4),
        store(&way, CM_STORE_LOCAL, "x", "", 5),
        store(&way, CM_STORE_CALL, "append", "outputs", 40),
        store(&way, CM_STORE_CALL, "append", "outputs", 41)};
    stores[0].decides = decides;
    stores[2].kind = at == 2 ? CM_STORE_CALL : CM_STORE_LOCAL;
    return is_emptied_in(&way, stores, 4);
}

static void
test_its_length_decides_far_below(void **state)
{
    (void)state;
    assert_true(is_decided(2, 2));
    assert_true(is_decided(UINT32_MAX, 3));
    assert_false(is_decided(1, 2));
    assert_false(is_decided(2, 3));
}

/* A list of nine, whose places are set, and another line. */
static bool
has_places(uint32_t through, enum cm_store_kind kind, const char *name,
           const char *owner)
{
    struct way way;
    way_init(&way, attribute, 2);
    way.holding.through = through;
    struct cm_store stores[] = {store(&way, CM_STORE_ITEM, "", "outputs", 4),
                                store(&way, kind, name, owner, 5)};
    return is_emptied_in(&way, stores, 2);
}

static void
test_a_list_of_places(void **state)
{
    (void)state;
    assert_true(has_places(5, CM_STORE_ATTRIBUTE, "outputs", "self"));
    assert_true(has_places(9, CM_STORE_CALL, "append", "others"));
    assert_false(has_places(10, CM_STORE_CALL, "append", "others"));
    assert_false(has_places(5, CM_STORE_CALL, "append", "outputs"));
}

/* self.outputs['loss'], which reset() makes anew with all others. */
static void
test_an_item_goes_with_its_container(void **state)
{
    struct way way;
    (void)state;
    way_init(&way,
             "F||a.py:3 main;O|local model|Model;D|.outputs|dict of 2|2;"
             "L|['loss']|list of 9|9;T|[3]|Tensor [4]",
             3);
    struct cm_store stores[] = {
        store(&way, CM_STORE_ATTRIBUTE, "outputs", "self", 4),
        store(&way, CM_STORE_ATTRIBUTE, "outputs", "self", 9)};
    stores[1].empty = true;
    struct cm_code_id codes[2] = {
        add_code(&way, "__init__", &stores[0], 1, false),
        add_code(&way, "reset", &stores[1], 1, false)};
    way.holding.codes = codes;
    way.holding.code_count = 2;
    assert_true(cm_bound_is_emptied(&way.holding));
    way.holding.code_count = 1;
    assert_false(cm_bound_is_emptied(&way.holding));
    cm_records_free(way.records);
}

/* is_full() compares the length of `measured`, and is asked before a pop. */
static bool
is_asked(const char *measured, const char *asked)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store stores[] = {
        store(&way, CM_STORE_CALL, "append", "outputs", 4),
        store(&way, CM_STORE_CALL, asked, "self", 5),
        store(&way, CM_STORE_CALL, "pop", "outputs", 6),
        store(&way, CM_STORE_MEASURE, "", measured, 9)};
    struct cm_code_id codes[2] = {
        add_code(&way, "add", stores, 3, false),
        add_code(&way, "is_full", &stores[3], 1, false)};
    return is_emptied_by_all(&way, codes, 2);
}

static void
test_a_method_compares_its_length(void **state)
{
    (void)state;
    assert_true(is_asked("outputs", "is_full"));
    assert_false(is_asked("others", "is_full"));
    assert_false(is_asked("outputs", "is_ready"));
}

/* `tail = queue[-n:]` is another's. */
static bool
is_trimmed_in(const char *steps, const char *name, bool trimmed, bool repeated)
{
    struct way way;
    way_init(&way, steps, 1);
    struct cm_store line = store(&way, CM_STORE_LOCAL, name, "", 5);
    line.trimmed = trimmed;
    line.repeated = repeated;
    return is_emptied_in(&way, &line, 1);
}

static bool
is_trimmed(const char *steps, const char *name, bool trimmed)
{
    return is_trimmed_in(steps, name, trimmed, true);
}

static void
test_a_part_of_it_is_left(void **state)
{
    (void)state;
    /* `kept = batch[:1]` before the loop that fills it. */
    assert_false(is_trimmed_in(variable, "outputs", true, false));
    assert_true(is_trimmed(variable, "outputs", true));
    assert_true(is_trimmed("F||a.py:3 main;T|local outputs|Tensor [4]",
                           "outputs", true));
    assert_false(is_trimmed(variable, "outputs", false));
    assert_false(is_trimmed(variable, "tail", true));
}

static void
test_a_part_is_left_but_the_graph_too(void **state)
{
    struct way way;

    (void)state;
    way_init(&way, "F||a.py:3 main;T|local outputs|Tensor [4]", 1);
    struct cm_store line = store(&way, CM_STORE_LOCAL, "outputs", "", 5);
    line.trimmed = line.repeated = true;
    way.holding.autograd_depth = 40;
    assert_false(is_emptied_in(&way, &line, 1));
    way_init(&way, variable, 1); /* what goes out of a list takes its own */
    line = store(&way, CM_STORE_LOCAL, "outputs", "", 5);
    line.trimmed = line.repeated = true;
    way.holding.autograd_depth = 40;
    assert_true(is_emptied_in(&way, &line, 1));
}

/* model.queue = torch.cat([model.queue, x])[-n:], a buffer of model's. */
static void
test_a_part_of_a_buffer_is_left(void **state)
{
    (void)state;
    for (unsigned buffer = 0; buffer < 2; buffer++) {
        struct way way;
        way_init(&way,
                 "F||a.py:3 main;O|local model|Model;"
                 "D|._buffers|dict of 2|2;T|['queue']|Tensor [4]",
                 3);
        way.steps[2].edge = text(&way, buffer ? "._buffers" : ".rows");
        struct cm_store line =
            store(&way, CM_STORE_ATTRIBUTE, "queue", "self", 5);
        line.trimmed = true;
        assert_int_equal(is_emptied_in(&way, &line, 1), buffer);
    }
}

/* `rows = None` in the loop over epochs, and rows = torch.cat([rows, x]). */
static bool
is_longer_from_nothing(bool repeated, uint64_t depth)
{
    struct way way;
    way_init(&way, "F||a.py:3 main;T|local outputs|Tensor [4]", 1);
    struct cm_store lines[2] = {store(&way, CM_STORE_LOCAL, "outputs", "", 3),
                                store(&way, CM_STORE_LOCAL, "outputs", "", 6)};
    lines[0].constant = true;
    lines[0].repeated = repeated;
    lines[1].made = lines[1].repeated = true;
    way.holding.autograd_depth = depth;
    return is_emptied_in(&way, lines, 2);
}

static void
test_a_tensor_that_begins_with_nothing(void **state)
{
    (void)state;
    assert_true(is_longer_from_nothing(true, 0));
    assert_false(is_longer_from_nothing(false, 0));
    assert_false(is_longer_from_nothing(true, 40)); /* each has a graph */
}

/* `made = []`, some lines, `self.outputs = taken`. */
static bool
is_taken_from(const char *made, bool empty, const char *taken)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store stores[3] = {
        store(&way, CM_STORE_LOCAL, made, "", 4),
        store(&way, CM_STORE_ATTRIBUTE, "outputs", "self", 8),
        store(&way, CM_STORE_ALIAS, "outputs", taken, 8)};
    struct cm_store first =
        store(&way, CM_STORE_ATTRIBUTE, "outputs", "self", 2);
    stores[0].empty = empty;
    first.empty = true;
    struct cm_code_id codes[2] = {add_code(&way, "__init__", &first, 1, false),
                                  add_code(&way, "keep", stores, 3, false)};
    return is_emptied_by_all(&way, codes, 2);
}

/* `outputs = []` in a function that main() calls. */
static bool
is_of_one_epoch(bool repeated)
{
    struct way way;
    way_init(&way, variable, 1);
    struct cm_store made = store(&way, CM_STORE_LOCAL, "outputs", "", 2);
    struct cm_store call = store(&way, CM_STORE_HAND, "epoch", "", 9);
    made.empty = true;
    call.repeated = repeated;
    struct cm_code_id codes[2] = {add_code(&way, "epoch", &made, 1, false),
                                  add_code(&way, "main", &call, 1, false)};
    way.steps[0].code = codes[0];
    return is_emptied_by_all(&way, codes, 2);
}

static void
test_a_variable_of_one_epoch(void **state)
{
    (void)state;
    assert_true(is_of_one_epoch(true));
    assert_false(is_of_one_epoch(false));
}

static void
test_a_new_one_is_taken(void **state)
{
    (void)state;
    assert_true(is_taken_from("recent", true, "recent"));
    assert_false(is_taken_from("recent", false, "recent"));
    assert_false(is_taken_from("recent", true, "others"));
}

static void
test_a_variable_that_is_made_twice(void **state)
{
    struct way way;

    (void)state;
    way_init(&way, variable, 1);
    struct cm_store stores[] = {store(&way, CM_STORE_LOCAL, "outputs", "", 2),
                                store(&way, CM_STORE_LOCAL, "outputs", "", 9)};
    stores[0].empty = true;
    stores[1].constant = true;
    struct cm_code_id code = add_code(&way, "main", stores, 2, false);
    struct cm_code_id once = add_code(&way, "main", stores, 1, false);
    way.holding.code_count = 1;
    way.holding.codes = &once;
    assert_false(cm_bound_is_emptied(&way.holding));
    way.holding.codes = &code; /* behind the loop */
    assert_false(cm_bound_is_emptied(&way.holding));
    stores[1].repeated = true;
    code = add_code(&way, "main", stores, 2, false);
    assert_true(cm_bound_is_emptied(&way.holding));
    stores[1].repeated = false;
    stores[1].constant = false; /* outputs += [x] */
    code = add_code(&way, "main", stores, 2, false);
    assert_false(cm_bound_is_emptied(&way.holding));
    stores[0].repeated = true; /* in the loop over epochs */
    code = add_code(&way, "main", stores, 1, false);
    assert_true(cm_bound_is_emptied(&way.holding));
    code = add_code(&way, "main", stores, 1, true); /* a library's */
    assert_false(cm_bound_is_emptied(&way.holding));
    cm_records_free(way.records);
}

/* One of the three cases that are alike but for whose name it is. */
static bool
is_emptied_by(const char *steps, size_t at, const struct cm_store *made,
              const struct cm_store *other, bool of_root)
{
    struct way way;
    way_init(&way, steps, at);
    struct cm_store stores[2] = {*made, *other};
    for (size_t i = 0; i < 2; i++) {
        stores[i].name = text(&way, "outputs");
        stores[i].owner =
            text(&way, stores[i].kind == CM_STORE_ATTRIBUTE ? "self" : "");
    }
    struct cm_code_id codes[2] = {
        add_code(&way, made->kind == CM_STORE_LOCAL ? "main" : "__init__",
                 &stores[0], 1, false),
        add_code(&way, "forward", &stores[1], 1, false)};
    way.steps[at - 1].code = of_root ? codes[0] : (struct cm_code_id){0};
    return is_emptied_by_all(&way, codes, 2);
}

static void
test_the_same_name_of_another(void **state)
{
    struct cm_store local = {.kind = CM_STORE_LOCAL, .line = 2, .empty = 1};
    struct cm_store own = {.kind = CM_STORE_ATTRIBUTE, .line = 3, .empty = 1};
    struct cm_store none = {
        .kind = CM_STORE_ATTRIBUTE, .line = 3, .constant = 1};

    (void)state;
    /* Another function's variable, a method's own beside the attribute. */
    assert_false(is_emptied_by(variable, 1, &local, &local, true));
    assert_false(is_emptied_by(attribute, 2, &own, &local, false));
    /* self.outputs = None, and made when it is first needed. */
    assert_false(is_emptied_by(attribute, 2, &none, &own, false));
    assert_true(is_emptied_by(attribute, 2, &own, &own, false));
}

/* self.outputs = None in __init__, and a new list in that method. */
static bool
is_begun_in(const char *method, bool empty)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_store none =
        store(&way, CM_STORE_ATTRIBUTE, "outputs", "self", 2);
    struct cm_store made =
        store(&way, CM_STORE_ATTRIBUTE, "outputs", "self", 5);
    none.constant = true;
    made.empty = empty;
    struct cm_code_id codes[] = {add_code(&way, "__init__", &none, 1, false),
                                 add_code(&way, method, &made, 1, false)};
    return is_emptied_by_all(&way, codes, 2);
}

static void
test_a_method_of_that_purpose(void **state)
{
    (void)state;
    assert_true(is_begun_in("reset", true));
    assert_true(is_begun_in("on_train_epoch_start", true));
    assert_false(is_begun_in("setup", true));
    assert_false(is_begun_in("reset", false));
}

/* A line of main, and outputs.clear() in another function, which has a variable
 * of that name itself or not. */
static bool
is_emptied_within(const char *function, bool own)
{
    struct way way;
    way_init(&way, variable, 1);
    struct cm_store made = store(&way, CM_STORE_LOCAL, "outputs", "", 2);
    struct cm_store lines[] = {
        store(&way, CM_STORE_CALL, "clear", "outputs", 5),
        store(&way, CM_STORE_LOCAL, "outputs", "", 4)};
    struct cm_code_id codes[] = {
        add_code(&way, "main", &made, 1, false),
        add_code(&way, function, lines, 1 + own, false)};
    way.steps[0].code = codes[0];
    return is_emptied_by_all(&way, codes, 2);
}

static void
test_a_function_within_shares_it(void **state)
{
    (void)state;
    assert_true(is_emptied_within("main.<locals>.log", false));
    assert_true(is_emptied_within("main.<locals>.wrap.<locals>.log", false));
    assert_false(is_emptied_within("main.<locals>.log", true));
    assert_false(is_emptied_within("domain.<locals>.log", false));
    assert_false(is_emptied_within("log", false));
}

static bool
is_known(const char *steps, const char *module)
{
    struct way way;
    way_init(&way, steps, 1);
    set_module(&way, 1, module);
    way.steps[1].bounded = true;
    bool result = cm_bound_is_known(&way.holding);
    cm_records_free(way.records);
    return result;
}

static void
test_an_array_has_so_many_places(void **state)
{
    static const char tuples[] =
        "F||a.py:3 main;O|local rows|ndarray of 9|9;t|[3]|tuple of 2|2;"
        "T|[0]|Tensor [4]";
    static const char lists[] =
        "F||a.py:3 main;O|local rows|ndarray of 9|9;L|[3]|list of 2|2;"
        "T|[0]|Tensor [4]";
    (void)state;
    assert_true(is_known(tuples, "numpy"));
    assert_false(is_known(lists, "numpy"));
    assert_true(is_known(lists, "collections")); /* a deque's last ones */
}

static void
test_sizes_that_bound_nothing(void **state)
{
    struct way way;
    (void)state;
    way_init(&way, variable, 1);
    set_module(&way, 1, "numpy");
    way.steps[1].bounded = true;
    struct cm_store append =
        store(&way, CM_STORE_CALL, "append", "outputs", 9);
    struct cm_code_id code = add_code(&way, "main", &append, 1, false);
    way.holding.codes = &code;
    assert_true(cm_bound_is_known(&way.holding));
    way.holding.code_count = 1;
    assert_false(cm_bound_is_known(&way.holding));
    cm_records_free(way.records);
    /* Each frame of a list has an array of one object. */
    way_init(&way,
             "M||module a;L|.frames|list of 9|9;O|[3]|ndarray of 1|1;"
             "T|[0]|Tensor [4]",
             1);
    set_module(&way, 2, "numpy");
    way.steps[2].bounded = true;
    way.holding.through = 9;
    assert_false(cm_bound_is_known(&way.holding));
    way.holding.through = 10; /* they pile up in these */
    assert_true(cm_bound_is_known(&way.holding));
    set_module(&way, 1, "pandas.core.internals.blocks");
    assert_false(cm_bound_is_known(&way.holding));
    cm_records_free(way.records);
}

static void
test_what_a_loop_leaves(void **state)
{
    struct way way;
    (void)state;
    way_init(&way, variable, 1);
    struct cm_store stores[] = {store(&way, CM_STORE_LOCAL, "x", "", 2),
                                store(&way, CM_STORE_LOCAL, "past", "", 9),
                                store(&way, CM_STORE_LOCAL, "past", "", 10)};
    stores[1].carried = true;
    struct cm_code_id code = add_code(&way, "main", stores, 3, false);
    struct cm_text_id x = text(&way, "x"), none = {0};
    assert_false(cm_bound_is_carried(way.records, code, x));
    assert_true(cm_bound_is_carried(way.records, code, text(&way, "past")));
    /* What is not known may be. */
    assert_true(cm_bound_is_carried(way.records, code, none));
    assert_true(cm_bound_is_carried(way.records, (struct cm_code_id){0}, x));
    cm_records_free(way.records);
}

static void
test_history_of_an_optimizer(void **state)
{
    struct way way;
    (void)state;
    way_init(&way,
             "F||a.py:3 main;O|local opt|LBFGS;D|.state|defaultdict of 1|1;"
             "D|[<P>]|dict of 9|9;L|['old_dirs']|list of 9|9;T|[3]|Tensor [4]",
             4);
    set_module(&way, 1, "torch.optim.lbfgs");
    assert_true(cm_bound_is_known(&way.holding));
    way.steps[4].edge = text(&way, "['mine']");
    assert_false(cm_bound_is_known(&way.holding));
    way.steps[4].edge = text(&way, "['old_stps']");
    way.holding.at = 2; /* the state itself grows */
    assert_false(cm_bound_is_known(&way.holding));
    way.holding.at = 4;
    set_module(&way, 1, "torch.optim.adam");
    assert_false(cm_bound_is_known(&way.holding));
    way.steps[4].bounded = true;
    assert_true(cm_bound_is_known(&way.holding));
    cm_records_free(way.records);
    /* Optimizers that pile up themselves. */
    way_init(&way,
             "F||a.py:3 main;L|local old|list of 9|9;O|[1]|Adam;"
             "D|.state|defaultdict of 1|1;D|[<P>]|dict of 3|3;"
             "T|['m']|Tensor [4]",
             1);
    set_module(&way, 2, "torch.optim.adam");
    assert_false(cm_bound_is_known(&way.holding));
    cm_records_free(way.records);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_empties_it),
        cmocka_unit_test(test_no_line_empties_it),
        cmocka_unit_test(test_its_length_is_compared),
        cmocka_unit_test(test_its_length_decides_far_below),
        cmocka_unit_test(test_a_list_of_places),
        cmocka_unit_test(test_an_item_goes_with_its_container),
        cmocka_unit_test(test_a_method_compares_its_length),
        cmocka_unit_test(test_a_part_of_it_is_left),
        cmocka_unit_test(test_a_part_of_a_buffer_is_left),
        cmocka_unit_test(test_a_part_is_left_but_the_graph_too),
        cmocka_unit_test(test_a_variable_of_one_epoch),
        cmocka_unit_test(test_a_tensor_that_begins_with_nothing),
        cmocka_unit_test(test_a_new_one_is_taken),
        cmocka_unit_test(test_a_variable_that_is_made_twice),
        cmocka_unit_test(test_the_same_name_of_another),
        cmocka_unit_test(test_a_method_of_that_purpose),
        cmocka_unit_test(test_a_function_within_shares_it),
        cmocka_unit_test(test_an_array_has_so_many_places),
        cmocka_unit_test(test_sizes_that_bound_nothing),
        cmocka_unit_test(test_what_a_loop_leaves),
        cmocka_unit_test(test_history_of_an_optimizer),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
