/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Sums that a function returns: which callers let them go, each beside one
 * that looks alike. */

#include "way_builder.h"

static const char sum[] = "F||a.py:3 inner;T|local total|Tensor []";

enum { MOST_CALLS = 3 };

/* inner() returns `total`, and who called it then has these calls of it. */
struct scene {
    struct cm_store calls[MOST_CALLS];
    bool kept, library, once, shown;
};

static void
set_site(struct way *way, const struct cm_code_id *codes, uint32_t count)
{
    struct cm_frame frames[4] = {{.line = 3}};
    for (uint32_t i = 0; i < count; i++) {
        frames[i].code = codes[i];
    }
    struct cm_site site = {.frames = frames, .frame_count = count};
    assert_int_equal(
        cm_records_add_site(way->records, &site, &way->holding.site), CM_OK);
}

static bool
is_emptied(const struct scene *scene)
{
    struct way way;
    struct cm_store calls[MOST_CALLS];
    way_init(&way, sum, 1);
    struct cm_store total = store(&way, CM_STORE_LOCAL, "total", "", 4);
    total.repeated = true;
    total.given = !scene->kept;
    for (uint32_t i = 0; i < MOST_CALLS; i++) {
        enum cm_store_kind kind = scene->calls[i].kind;
        calls[i] = store(&way, kind != 0 ? kind : CM_STORE_HAND,
                         kind != 0 ? "inner" : "print", "tasks", 9);
        calls[i].settled = scene->calls[i].settled;
        calls[i].repeated = !scene->once;
    }
    struct cm_code_id codes[4] = {
        add_code(&way, "inner", &total, 1, false),
        add_code(&way, "wrapper", NULL, 0, true),
        add_code(&way, "main", calls, MOST_CALLS, scene->library),
        add_code(&way, "<module>", NULL, 0, false)};
    way.steps[0].code = codes[0];
    way.holding.autograd_depth = 9;
    set_site(&way, codes, scene->shown ? 2 : 4);
    return is_emptied_by_all(&way, codes, 4);
}

static const struct cm_store none = {0};
static const struct cm_store taken = {.kind = CM_STORE_HAND, .settled = true};
static const struct cm_store shown = {.kind = CM_STORE_HAND};

static void
a_caller_takes_what_it_returns(void **state)
{
    const struct scene right = {.calls = {none, taken, taken}};
    struct scene scene = right;
    (void)state;
    assert_true(is_emptied(&scene));
    scene.once = true;
    assert_false(is_emptied(&scene));
    scene = right;
    scene.library = true;
    assert_false(is_emptied(&scene));
    scene = right;
    scene.kept = true;
    assert_false(is_emptied(&scene));
    scene = right;
    scene.shown = true; /* another function called it */
    assert_false(is_emptied(&scene));
}

static void
a_caller_shows_it(void **state)
{
    struct scene scene = {.calls = {none, shown, none}};
    (void)state;
    assert_false(is_emptied(&scene));
    scene.calls[2] = taken;
    assert_false(is_emptied(&scene));
    scene.calls[1] = none;
    assert_true(is_emptied(&scene));
    scene.calls[2].settled = false;
    assert_false(is_emptied(&scene));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_caller_takes_what_it_returns),
        cmocka_unit_test(a_caller_shows_it),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
