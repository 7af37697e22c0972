/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "fail_each.h"

#include "../reports/path.h"

#define OBJECT(id, type)                                                      \
    "{'id':" #id ",'annotation':'m." type "','type':'m." type                 \
    "','kind':'object'}"
#define KIND(id, annotation, kind)                                            \
    "{'id':" #id ",'annotation':'" annotation "','type':'" annotation         \
    "','kind':'" kind "'}"
#define TENSOR(id, storage)                                                   \
    "{'id':" #id ",'annotation':'Tensor [2] float32 cuda:0 8 B',"             \
    "'type':'torch.Tensor','kind':'tensor','storage':" #storage "}"
#define EDGE(id, label, tail, head)                                           \
    "{'id':" #id ",'annotation':'" label "','tail':" #tail ",'head':" #head "}"

/* The path of the first cycle, as `name edge > name edge ~~> ...`. */
static void
expect_path(const char *vertices, const char *edges, const char *cycle,
            const char *expected)
{
    char text[4096], shown[1024] = "";
    struct cm_paths paths = {0};
    struct cm_path path = {0};
    struct cm_leak leak;

    snprintf(text, sizeof(text),
             LEAK_HEAD "'vertices':[%s],'edges':[%s],"
                       "'storages':[{'id':1,'bytes':8},{'id':2,'bytes':8},"
                       "{'id':3,'bytes':4}],'cycles':[{%s}]}",
             vertices, edges, cycle);
    leak = leak_of(text);
    assert_int_equal(cm_paths_init(&paths, &leak), CM_OK);
    assert_int_equal(cm_paths_find(&paths, 0, &path), CM_OK);
    for (size_t i = 0; i < path.count; i++) {
        const struct cm_path_step *step = &path.steps[i];
        size_t at = strlen(shown);

        snprintf(shown + at, sizeof(shown) - at, "%s%s%s%s", step->name,
                 step->edge[0] != '\0' ? " " : "", step->edge,
                 i + 1 == path.count ? ""
                 : step->suspect     ? " ~~> "
                                     : " > ");
    }
    assert_string_equal(shown, expected);
    cm_path_release(&path);
    cm_paths_release(&paths);
    cm_leak_release(&leak);
}

static void
test_lambda_on_self(void **state)
{
    struct cm_leak leak = leak_of(LEAK_LAMBDA);
    struct cm_paths paths = {0};
    struct cm_path path = {0};

    (void)state;
    assert_int_equal(cm_paths_init(&paths, &leak), CM_OK);
    assert_int_equal(cm_paths_find(&paths, 0, &path), CM_OK);
    assert_int_equal(path.count, 5);
    assert_string_equal(path.steps[0].name, "Trainer");
    assert_string_equal(path.steps[0].edge, ".cb");
    assert_true(path.steps[0].owner);
    assert_string_equal(path.steps[1].name, "<lambda>");
    assert_int_equal(path.steps[1].folded, 1); /* the tuple of cells */
    assert_string_equal(path.steps[2].name, "cell self");
    assert_true(path.steps[2].suspect);
    assert_string_equal(path.steps[3].edge, ".acts[0]");
    assert_true(path.steps[3].owner);
    assert_string_equal(path.steps[4].name, "Tensor [4, 5] float32");
    assert_int_equal(path.steps[4].out, 0);
    cm_path_release(&path);
    cm_paths_release(&paths);
    cm_leak_release(&leak);
}

static void
test_pair_of_likes_starts_at_the_suspect(void **state)
{
    (void)state;
    expect_path(OBJECT(1, "Node") "," OBJECT(2, "Node") "," TENSOR(3, 1) //
                "," TENSOR(4, 2),
                EDGE(1, ".link", 1, 2) "," EDGE(2, ".link", 2, 1) //
                "," EDGE(3, ".t", 1, 3) "," EDGE(4, ".t", 2, 4),
                "'vertices':[1,2],'payload':[1,2],'cut':[2],"
                "'rule':'back_link'",
                "Node .link ~~> Node .link > Node .t > Tensor [2] float32");
}

static void
test_back_link_starts_at_the_owner(void **state)
{
    (void)state;
    expect_path(OBJECT(1, "Net") "," OBJECT(2, "Block") "," TENSOR(3, 1),
                EDGE(1, ".block", 1, 2) "," EDGE(2, ".parent", 2, 1) //
                "," EDGE(3, ".w", 2, 3),
                "'vertices':[1,2],'payload':[1],'cut':[2],"
                "'rule':'back_link'",
                "Net .block > Block .parent ~~> Net .block > Block .w > "
                "Tensor [2] float32");
}

static void
test_exception_starts_at_the_frame(void **state)
{
    (void)state;
    expect_path(KIND(1, "frame a.py:3 in m.f", "frame")                     //
                "," OBJECT(2, "Oops") "," KIND(3, "traceback", "traceback") //
                "," TENSOR(4, 1) "," KIND(5, "list", "container"),
                EDGE(1, "local errors", 1, 5) "," EDGE(2, "[0]", 5, 2) //
                "," EDGE(3, "__traceback__", 2, 3)                     //
                "," EDGE(4, "tb_frame", 3, 1) "," EDGE(5, "local x", 1, 4),
                "'vertices':[1,2,3,5],'payload':[1],'cut':[2],"
                "'rule':'exception_in_frame'",
                "frame f .errors[0] ~~> Oops .__traceback__ > frame f .x > "
                "Tensor [2] float32");
}

static void
test_exception_kept_by_the_owner_of_its_frame(void **state)
{
    (void)state;
    expect_path(
        OBJECT(1, "Worker") "," OBJECT(2, "Oops") //
        "," KIND(3, "traceback", "traceback")     //
        "," KIND(4, "frame a.py:3 in m.run", "frame") "," TENSOR(5, 1),
        EDGE(1, ".error", 1, 2) "," EDGE(2, "__traceback__", 2, 3)    //
        "," EDGE(3, "tb_frame", 3, 4) "," EDGE(4, "local self", 4, 1) //
        "," EDGE(5, "local x", 4, 5),
        "'vertices':[1,2,3,4],'payload':[1],'cut':[1],"
        "'rule':'exception_on_self'",
        /* The suspect is marked once, though the way to the tensor
                 * goes over it again. */
        "Worker .error ~~> Oops .__traceback__ > frame run .self > "
        "Worker .error > Oops .__traceback__ > frame run .x > "
        "Tensor [2] float32");
}

static void
test_partial_of_method_starts_at_the_instance(void **state)
{
    (void)state;
    expect_path(
        OBJECT(1, "Sched") "," KIND(2, "functools.partial", "object") //
        "," KIND(3, "method Sched.run", "function") "," TENSOR(4, 1),
        EDGE(1, ".warm", 1, 2) "," EDGE(2, "func", 2, 3) //
        "," EDGE(3, "__self__", 3, 1) "," EDGE(4, ".m", 1, 4),
        "'vertices':[1,2,3],'payload':[1],'cut':[2],"
        "'rule':'partial_on_self'",
        "Sched .warm > partial .func ~~> method run > Sched .m > "
        "Tensor [2] float32");
}

static void
test_generator_starts_at_itself(void **state)
{
    (void)state;
    expect_path(OBJECT(1, "Loader") //
                "," KIND(2, "generator m.batches", "object") "," TENSOR(3, 1),
                EDGE(1, ".it", 1, 2) "," EDGE(2, "local self", 2, 1) //
                "," EDGE(3, "local x", 2, 3),
                "'vertices':[1,2],'payload':[1],'cut':[1],"
                "'rule':'generator_holds_itself'",
                "generator batches .self > Loader .it ~~> generator batches "
                ".x > Tensor [2] float32");
}

static void
test_container_that_owns_is_shown(void **state)
{
    (void)state;
    expect_path(KIND(1, "list", "container") "," TENSOR(2, 1),
                EDGE(1, "[0]", 1, 2) "," EDGE(2, "[1]", 1, 1),
                "'vertices':[1],'payload':[1],'cut':[2],"
                "'rule':'container_cycle'",
                "list [1] ~~> list [0] > Tensor [2] float32");
}

static void
test_tensor_that_owns_ends_the_path(void **state)
{
    (void)state;
    expect_path(TENSOR(1, 1) "," KIND(2, "function f", "function") //
                "," KIND(3, "cell", "cell"),
                EDGE(1, "._backward_hooks", 1, 2) //
                "," EDGE(2, "cell w", 2, 3) "," EDGE(3, "cell w", 3, 1),
                "'vertices':[1,2,3],'payload':[1],'cut':[3],"
                "'rule':'hook_captures_owner'",
                "Tensor [2] float32 ._backward_hooks > f > cell w ~~> "
                "Tensor [2] float32");
}

static void
test_without_a_cut_it_starts_at_the_holder(void **state)
{
    (void)state;
    expect_path(OBJECT(1, "A") "," OBJECT(2, "B") "," TENSOR(3, 1),
                EDGE(1, ".b", 1, 2) "," EDGE(2, ".a", 2, 1) //
                "," EDGE(3, ".t", 2, 3),
                "'vertices':[1,2],'payload':[1],'rule':'unknown'",
                "B .a > A .b > B .t > Tensor [2] float32");
}

static void
test_documents_of_others(void **state)
{
    (void)state;
    /* A component that is none, a payload that nothing leads to. */
    expect_path(OBJECT(1, "A") "," OBJECT(2, "B") "," TENSOR(3, 1),
                EDGE(1, ".b", 1, 2),
                "'vertices':[1,2],'payload':[1],'cut':[1],"
                "'rule':'back_link'",
                "");
    /* The cut lies outside the component. */
    expect_path(OBJECT(1, "A") "," TENSOR(2, 1),
                EDGE(1, ".t", 1, 2) "," EDGE(2, ".a", 1, 1),
                "'vertices':[1],'payload':[1],'cut':[1]",
                "A .a > A .t > Tensor [2] float32");
    expect_path("", "", "'vertices':[],'payload':[3]", "");
}

static enum cm_status
attempt(void *context)
{
    struct cm_paths paths = {0};
    struct cm_path path = {0};
    enum cm_status status = cm_paths_init(&paths, context);

    if (status == CM_OK) {
        status = cm_paths_find(&paths, 0, &path);
    }
    cm_path_release(&path);
    cm_paths_release(&paths);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct cm_leak leak = leak_of(LEAK_LAMBDA);

    (void)state;
    cm_fail_each(attempt, &leak);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lambda_on_self),
        cmocka_unit_test(test_pair_of_likes_starts_at_the_suspect),
        cmocka_unit_test(test_back_link_starts_at_the_owner),
        cmocka_unit_test(test_exception_starts_at_the_frame),
        cmocka_unit_test(test_exception_kept_by_the_owner_of_its_frame),
        cmocka_unit_test(test_partial_of_method_starts_at_the_instance),
        cmocka_unit_test(test_generator_starts_at_itself),
        cmocka_unit_test(test_container_that_owns_is_shown),
        cmocka_unit_test(test_tensor_that_owns_ends_the_path),
        cmocka_unit_test(test_without_a_cut_it_starts_at_the_holder),
        cmocka_unit_test(test_documents_of_others),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
