/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Sizes of what loops go over, and what a data set has under an index; beside
 * each what looks alike and grows. */

#include "way_builder.h"

#include "../graph/key.h"

static const char attribute[] =
    "F||a.py:3 main;O|local rows|Rows;D|.memo|dict of 9|9;"
    "T|[3]|Tensor [4]";

/* One line of a function. */
struct line {
    enum cm_store_kind kind;
    const char *name, *owner, *within, *key;
    uint32_t line, decides;
    bool turn, sized, constant, carried;
};

enum { MOST_LINES = 6 };

/* mask(self, n), and who calls it. */
struct program {
    const char *method;
    struct line lines[MOST_LINES], caller[MOST_LINES], third[MOST_LINES];
};

static struct cm_code_id
code_of(struct way *way, const char *name, const struct line *lines)
{
    struct cm_store stores[MOST_LINES];
    struct cm_code_id id = {0};
    char method[64];
    uint32_t count = 0;
    for (; count < MOST_LINES && lines[count].kind != 0; count++) {
        const struct line *line = &lines[count];
        struct cm_store *one = &stores[count];
        *one = store(way, line->kind, line->name ? line->name : "",
                     line->owner ? line->owner : "", line->line);
        one->within = text(way, line->within ? line->within : "");
        one->key = text(way, line->key ? line->key : "");
        one->decides = line->decides;
        one->turn = line->turn;
        one->sized = line->sized;
        one->constant = line->constant;
        one->carried = line->carried;
        one->made = line->kind == CM_STORE_HAND;
    }
    snprintf(method, sizeof method, "Rows.%s", name);
    struct cm_code code = {.filename = text(way, "a.py"),
                           .name = text(way, name),
                           .qualified_name = text(way, method),
                           .stores = stores,
                           .store_count = count};
    assert_int_equal(cm_records_add_code(way->records, &code, &id), CM_OK);
    return id;
}

typedef bool question(const struct cm_holding *self,
                      const struct cm_code *code, struct cm_text_id name);

/* Of variable `name` of the first function. */
static bool
is(question *asked, const struct program *program, const char *name)
{
    struct way way;
    way_init(&way, attribute, 2);
    struct cm_code_id codes[3] = {
        code_of(&way, program->method, program->lines),
        code_of(&way, "fit", program->caller),
        code_of(&way, "other", program->third)};
    way.holding.codes = codes;
    way.holding.code_count = 3;
    bool found = asked(&way.holding, cm_records_code(way.records, codes[0]),
                       text(&way, name));
    cm_records_free(way.records);
    return found;
}

/* ---- sizes */

/* for x in ...: n = len(x) */
static struct program
in_a_loop(void)
{
    return (struct program){
        .method = "fit",
        .lines = {
            {.kind = CM_STORE_LOCAL, .name = "x", .turn = true},
            {.kind = CM_STORE_LOCAL, .name = "n"},
            {.kind = CM_STORE_ALIAS, .name = "n", .key = "x", .sized = true}}};
}

static void
test_sizes_of_what_a_loop_goes_over(void **state)
{
    struct program one = in_a_loop();
    (void)state;
    assert_true(is(cm_key_is_size, &one, "n"));
    assert_true(is(cm_key_is_of_data, &one, "x"));
    assert_false(is(cm_key_is_size, &one, "x"));
    assert_false(is(cm_key_is_size, &one, "m"));
    assert_false(is(cm_key_is_size, &one, ""));
    one.lines[2].sized = false;
    assert_false(is(cm_key_is_size, &one, "n"));
    one = in_a_loop();
    one.lines[0].turn = false; /* x = cat(x, y) */
    assert_false(is(cm_key_is_size, &one, "n"));
    assert_false(is(cm_key_is_of_data, &one, "x"));
    one = in_a_loop();
    one.lines[3] = (struct line){.kind = CM_STORE_LOCAL, .name = "n"};
    assert_false(is(cm_key_is_size, &one, "n")); /* n += 1 */
    one.lines[3].constant = true;
    assert_true(is(cm_key_is_size, &one, "n"));
    one.lines[3].name = "x"; /* del x */
    assert_true(is(cm_key_is_size, &one, "n"));
    one.lines[0].turn = false;
    one.lines[0].constant = true; /* nothing but constants */
    assert_false(is(cm_key_is_size, &one, "n"));
}

/* x = x.to(device), x = torch.cat([self.rest, x]) */
static void
test_what_is_as_large(void **state)
{
    struct program one = in_a_loop();
    (void)state;
    one.lines[3] = (struct line){.kind = CM_STORE_LOCAL, .name = "x"};
    assert_false(is(cm_key_is_size, &one, "n"));
    one.lines[4] = (struct line){
        .kind = CM_STORE_ALIAS, .name = "x", .owner = "x", .constant = true};
    assert_true(is(cm_key_is_size, &one, "n"));
    one.lines[4].owner = "y";
    assert_false(is(cm_key_is_size, &one, "n"));
    one.lines[4].owner = "x";
    one.lines[4].within = "y"; /* x = y['x'] */
    assert_false(is(cm_key_is_size, &one, "n"));
}

/* ---- containers that grow */

static void
test_what_a_loop_goes_over_may_grow(void **state)
{
    struct program one = in_a_loop();
    struct line *last = &one.lines[3];
    (void)state;
    *last = (struct line){
        .kind = CM_STORE_CALL, .name = "append", .owner = "kept"};
    assert_true(is(cm_key_is_size, &one, "n"));
    last->owner = "x";
    assert_false(is(cm_key_is_size, &one, "n"));
    last->owner = ""; /* rows[k].append(...) */
    assert_false(is(cm_key_is_size, &one, "n"));
    last->name = "pop";
    assert_true(is(cm_key_is_size, &one, "n"));
    *last =
        (struct line){.kind = CM_STORE_ALIAS, .name = "row", .within = "rows"};
    one.lines[4] =
        (struct line){.kind = CM_STORE_CALL, .name = "append", .owner = "row"};
    assert_false(is(cm_key_is_size, &one, "n"));
    one = in_a_loop();
    one.caller[0] = (struct line){.kind = CM_STORE_PARAMETER, .name = "row"};
    one.caller[1] =
        (struct line){.kind = CM_STORE_CALL, .name = "append", .owner = "row"};
    assert_false(is(cm_key_is_size, &one, "n"));
}

/* for k, x in ...: n = len(x), rows[k] = cat(x, y) */
static void
test_what_a_loop_goes_over_is_set_anew(void **state)
{
    struct program one = in_a_loop();
    (void)state;
    one.lines[3] = (struct line){
        .kind = CM_STORE_LOCAL, .name = "k", .line = 9, .turn = true};
    one.lines[4] = (struct line){
        .kind = CM_STORE_ITEM, .owner = "rows", .key = "k", .line = 10};
    assert_true(is(cm_key_is_size, &one, "n"));
    one.lines[0].line = 9;
    assert_false(is(cm_key_is_size, &one, "n"));
    one.lines[4].key = "m";
    assert_true(is(cm_key_is_size, &one, "n"));
}

/* rows = [torch.cat([x, y]) for x in rows], while one goes over them. */
static void
test_what_a_loop_goes_over_gets_longer(void **state)
{
    struct program one = in_a_loop();
    (void)state;
    one.lines[0].within = "rows";
    one.lines[3] = (struct line){.kind = CM_STORE_LOCAL, .name = "rows"};
    assert_true(is(cm_key_is_size, &one, "n"));
    one.lines[3].carried = true;
    assert_false(is(cm_key_is_size, &one, "n"));
    one.lines[3].name = "others";
    assert_true(is(cm_key_is_size, &one, "n"));
    one.caller[0] = (struct line){.kind = CM_STORE_ATTRIBUTE, .name = "rows"};
    assert_false(is(cm_key_is_size, &one, "n"));
    one.caller[0].name = "others";
    assert_true(is(cm_key_is_size, &one, "n"));
}

/* x[k] = y, of a dict that a loop goes over. */
static void
test_what_a_loop_goes_over_is_filled(void **state)
{
    struct program one = in_a_loop();
    (void)state;
    one.lines[3] = (struct line){.kind = CM_STORE_ITEM, .owner = "kept"};
    assert_true(is(cm_key_is_size, &one, "n"));
    one.lines[3].owner = "x";
    assert_false(is(cm_key_is_size, &one, "n"));
    one.lines[3].name = "ids"; /* x['ids'] = y */
    assert_true(is(cm_key_is_size, &one, "n"));
    one.caller[0] = (struct line){.kind = CM_STORE_PARAMETER, .name = "memo"};
    one.caller[1] = (struct line){.kind = CM_STORE_ITEM, .owner = "memo"};
    assert_true(is(cm_key_is_size, &one, "n"));
    one.lines[3] = one.caller[1]; /* the memo itself: n = len(memo) */
    one.lines[0].name = one.lines[2].key = "memo";
    assert_false(is(cm_key_is_size, &one, "n"));
    one = in_a_loop();
    one.caller[0] = (struct line){.kind = CM_STORE_ITEM, .owner = "memo"};
    one.caller[0].key = "memo"; /* memo[len(memo)] = y */
    one.caller[0].sized = true;
    assert_false(is(cm_key_is_size, &one, "n"));
}

/* ---- handed on */

/* mask(self, n), which fit() calls: for x in ...: self.mask(len(x)) */
static struct program
handed_on(void)
{
    return (struct program){
        .method = "mask",
        .lines = {{.kind = CM_STORE_PARAMETER, .name = "self"},
                  {.kind = CM_STORE_PARAMETER, .name = "n", .decides = 1}},
        .caller = {{.kind = CM_STORE_LOCAL, .name = "x", .turn = true},
                   {.kind = CM_STORE_CALL,
                    .name = "mask",
                    .owner = "self",
                    .line = 9},
                   {.kind = CM_STORE_HAND,
                    .name = "mask",
                    .key = "x",
                    .line = 9,
                    .sized = true}}};
}

static void
test_sizes_that_callers_hand_on(void **state)
{
    struct program one = handed_on();
    (void)state;
    assert_true(is(cm_key_is_size, &one, "n"));
    one.caller[2].sized = false; /* self.mask(rows[x]) */
    assert_false(is(cm_key_is_size, &one, "n"));
    one.caller[2].sized = true;
    one.caller[2].decides = 1; /* another argument */
    assert_false(is(cm_key_is_size, &one, "n"));
    one.caller[2].decides = 0;
    one.caller[2].key = "history";
    assert_false(is(cm_key_is_size, &one, "n"));
    one = handed_on();
    one.caller[0].turn = false;
    assert_false(is(cm_key_is_size, &one, "n"));
    one.caller[1].name = one.caller[2].name = "other"; /* nobody calls it */
    assert_false(is(cm_key_is_size, &one, "n"));
}

/* `def mask(self, x): n = len(x)` */
static void
test_a_size_of_what_callers_hand_on(void **state)
{
    struct program one = handed_on();
    (void)state;
    one.lines[1].name = "x";
    one.caller[2].sized = false;
    one.caller[2].key = "";
    one.caller[2].owner = "x";
    assert_true(is(cm_key_is_of_data, &one, "x"));
    one.caller[2].owner = "history";
    assert_false(is(cm_key_is_of_data, &one, "x"));
}

/* self.mask(self.step + 1), of which no argument is known. */
static void
test_a_caller_that_is_not_known(void **state)
{
    struct program one = handed_on();
    struct line call = {
        .kind = CM_STORE_CALL, .name = "mask", .owner = "self", .line = 12};
    (void)state;
    one.third[0] = call;
    assert_false(is(cm_key_is_size, &one, "n"));
    one.third[0].name = "other";
    assert_true(is(cm_key_is_size, &one, "n"));
    one.third[0] = call;
    one.third[1] = (struct line){
        .kind = CM_STORE_HAND, .name = "mask", .owner = "step", .line = 12};
    assert_false(is(cm_key_is_size, &one, "n"));
    one.third[2] = (struct line){.kind = CM_STORE_LOCAL, .name = "step"};
    one.third[3] = (struct line){
        .kind = CM_STORE_ALIAS, .name = "step", .key = "y", .sized = true};
    assert_false(is(cm_key_is_size, &one, "n"));
    one.third[4] =
        (struct line){.kind = CM_STORE_LOCAL, .name = "y", .turn = true};
    assert_true(is(cm_key_is_size, &one, "n"));
}

/* ---- items of a data set */

/* __getitem__(self, k): path = self.paths[k] */
static struct program
of_a_data_set(void)
{
    return (struct program){
        .method = "__getitem__",
        .lines = {{.kind = CM_STORE_PARAMETER, .name = "self"},
                  {.kind = CM_STORE_PARAMETER, .name = "k", .decides = 1},
                  {.kind = CM_STORE_LOCAL, .name = "path"},
                  {.kind = CM_STORE_ALIAS,
                   .name = "path",
                   .within = "paths",
                   .key = "k"}}};
}

static void
test_items_of_a_data_set(void **state)
{
    struct program one = of_a_data_set();
    (void)state;
    assert_true(is(cm_key_is_item, &one, "path"));
    assert_true(is(cm_key_is_item, &one, "k"));
    assert_false(is(cm_key_is_item, &one, "self"));
    one.lines[3].key = "self";
    assert_false(is(cm_key_is_item, &one, "path"));
    one.lines[3].key = "";
    assert_false(is(cm_key_is_item, &one, "path"));
    one = of_a_data_set();
    one.lines[3].sized = true; /* len(k) */
    assert_false(is(cm_key_is_item, &one, "path"));
    one = of_a_data_set();
    one.lines[4] = (struct line){.kind = CM_STORE_LOCAL, .name = "k"};
    assert_false(is(cm_key_is_item, &one, "path")); /* k += self.offset */
    one = of_a_data_set();
    one.method = "get"; /* for k in ...: data.get(k) is not seen here */
    assert_false(is(cm_key_is_item, &one, "path"));
}

/* name = f"{self.paths[k]}.pt", whose text another function is handed. */
static void
test_what_is_made_of_items(void **state)
{
    struct program one = handed_on(), set = of_a_data_set();
    (void)state;
    memcpy(one.caller, set.lines, sizeof one.caller);
    one.caller[4] =
        (struct line){.kind = CM_STORE_HAND, .name = "mask", .owner = "path"};
    assert_false(is(cm_key_is_item, &one, "n")); /* fit() is no data set's */
    memcpy(set.third, one.lines, sizeof set.third);
    set.lines[4] = (struct line){.kind = CM_STORE_LOCAL, .name = "name"};
    set.lines[5] = (struct line){.kind = CM_STORE_ALIAS,
                                 .name = "name",
                                 .owner = "path",
                                 .constant = true};
    assert_true(is(cm_key_is_item, &set, "name"));
    set.lines[5].owner = "step";
    assert_false(is(cm_key_is_item, &set, "name"));
}

static void
test_a_data_set_that_grows(void **state)
{
    struct program one = of_a_data_set();
    (void)state;
    one.caller[0] = (struct line){
        .kind = CM_STORE_CALL, .name = "append", .owner = "paths"};
    assert_false(is(cm_key_is_item, &one, "path"));
    one.caller[0].owner = "others";
    assert_true(is(cm_key_is_item, &one, "path"));
    one.caller[0] = (struct line){.kind = CM_STORE_ITEM, .owner = "paths"};
    assert_false(is(cm_key_is_item, &one, "path"));
    one.caller[0] = (struct line){.kind = CM_STORE_ATTRIBUTE, .name = "paths"};
    assert_false(is(cm_key_is_item, &one, "path"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_of_what_a_loop_goes_over),
        cmocka_unit_test(test_what_is_as_large),
        cmocka_unit_test(test_what_a_loop_goes_over_may_grow),
        cmocka_unit_test(test_what_a_loop_goes_over_is_set_anew),
        cmocka_unit_test(test_what_a_loop_goes_over_gets_longer),
        cmocka_unit_test(test_what_a_loop_goes_over_is_filled),
        cmocka_unit_test(test_sizes_that_callers_hand_on),
        cmocka_unit_test(test_a_size_of_what_callers_hand_on),
        cmocka_unit_test(test_a_caller_that_is_not_known),
        cmocka_unit_test(test_items_of_a_data_set),
        cmocka_unit_test(test_what_is_made_of_items),
        cmocka_unit_test(test_a_data_set_that_grows),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
