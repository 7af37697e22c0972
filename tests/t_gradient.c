/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Gradients that live through a forward pass: whose line is told, and what is
 * to be called instead. */

#include "way_builder.h"

#define NET                                                                   \
    "F||a.py:18 train;O|local model|Net;D|._modules|dict of 3|3;"             \
    "O|['b']|Linear;D|._parameters|dict of 1|1;"                              \
    "T|['weight']|Parameter [4];T|.grad|Tensor [4]"

static const struct row {
    const char *category;
    bool running; /* the function that calls backward() */
    uint32_t told, line;
} rows[] = {
    {"gradient", true, 1, 17},
    {"gradient", false, 0, 0},
    {"parameter", true, 0, 0},
};

/* torch's own line that fills the table of a module's layers. */
static void
test_no_line_of_torch_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cm_place places[CM_MAX_PLACES] = {{.line = 0}};
        struct way way;

        way_init(&way, NET, 2);
        struct cm_store fills[] = {
            store(&way, CM_STORE_ITEM, "", "_modules", 668)};
        struct cm_store calls[] = {
            store(&way, CM_STORE_CALL, "backward", "total", 17)};
        struct cm_code_id codes[] = {
            add_code(&way, "add_module", fills, 1, true),
            add_code(&way, "train", calls, 1, false)};
        way.holding.category = rows[i].category;
        way.holding.codes = codes;
        way.holding.code_count = 1;
        if (rows[i].running) {
            set_running(&way, codes[1], 17);
        }
        assert_int_equal(cm_holding_made(&way.holding, places), rows[i].told);
        assert_int_equal(places[0].line, rows[i].line);
        cm_records_free(way.records);
    }
}

static const struct call {
    const char *clears, *steps, *of;
    bool library, several;
    const char *advice;
} call_rows[] = {
    {"opt", "opt", "", false, false,
     "call opt.zero_grad(set_to_none=True) right after opt.step(), or before "
     "the forward pass"},
    {"opt", "opt", "self", false, false,
     "call self.opt.zero_grad(set_to_none=True) right after self.opt.step(),"},
    {"model", "opt", "", false, false, "call optimizer.zero_grad("},
    {"", "", "", false, false, "call optimizer.zero_grad("},
    {"opt", "opt", "", true, false, "call optimizer.zero_grad("},
    {"opt", "opt", "", false, true, "on the optimizer of model right after"},
};

/* By the function that clears them too late: as it calls the optimizer. */
static void
test_optimizer_that_is_cleared_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof call_rows / sizeof call_rows[0]; i++) {
        const struct call *row = &call_rows[i];
        struct way way;

        way_init(&way, NET, 2);
        struct cm_store calls[] = {
            store(&way, CM_STORE_CALL, "zero_grad", row->clears, 16),
            store(&way, CM_STORE_CALL, "backward", "total", 17),
            store(&way, CM_STORE_CALL, "step", row->steps, 18)};
        calls[0].key = text(&way, row->of);
        set_running(&way, add_code(&way, "train", calls, 3, row->library), 17);
        way.holding.category = "gradient";
        way.holding.of_several = row->several;
        assert_advice(&way, "gradient not cleared", row->advice);
        cm_records_free(way.records);
    }
}

/* So many of so many hang from what is named; or from what has all of it. */
static void
test_gradients_of_several_optimizers_are_told(void **state)
{
    static const char of_state[] =
        "F||a.py:3 main;O|local og|Adam;D|.state|dict of 3|3;"
        "T|key|Parameter [4];T|.grad|Tensor [4]";
    static const char trainer[] =
        "F||a.py:3 main;O|local gan|Gan;O|.og|Adam;D|.state|dict of 3|3;"
        "T|key|Parameter [4];T|.grad|Tensor [4]";
    static const struct {
        const char *way;
        size_t at;
        uint32_t through;
        bool several;
        const char *advice;
    } ways[] = {
        {of_state, 2, 3, true, "after og.step(), and likewise for the other"},
        {of_state, 2, 5, true, "after og.step(), or before"},
        {of_state, 2, 3, false, "after og.step(), or before"},
        {trainer, 1, 5, true, "og.step(), and likewise for the other"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct way way;
        way_init(&way, ways[i].way, ways[i].at);
        set_module(&way, i == 3 ? 2 : 1, "torch.optim.adam");
        way.holding.category = "gradient";
        way.holding.of_several = ways[i].several;
        way.holding.through = ways[i].through;
        way.holding.targets = 5;
        assert_advice(&way, "gradient not cleared", ways[i].advice);
        cm_records_free(way.records);
    }
}

/* Of two loops in one function, each with an optimizer of its own. */
static void
test_optimizer_of_the_loop_that_runs_is_named(void **state)
{
    (void)state;
    for (uint32_t first = 0; first < 2; first++) {
        struct way way;

        way_init(&way, NET, 2);
        struct cm_store calls[] = {
            store(&way, CM_STORE_CALL, "zero_grad", "meta", 15),
            store(&way, CM_STORE_CALL, "step", "meta", 17),
            store(&way, CM_STORE_CALL, "zero_grad", "inner", 21),
            store(&way, CM_STORE_CALL, "step", "inner", 23)};
        set_running(&way, add_code(&way, "train", calls, 4, false),
                    first != 0 ? 16 : 22);
        way.holding.category = "gradient";
        assert_advice(&way, "gradient not cleared",
                      first != 0 ? "call meta.zero_grad("
                                 : "call inner.zero_grad(");
        cm_records_free(way.records);
    }
}

/* Agent.policy.optimizer, below what the program calls. */
#define AGENT                                                                 \
    "F||a.py:18 train;O|local agent|PPO;O|.policy|Policy;"                    \
    "O|.optimizer|Adam;D|.state|dict of 1|1;T|key 0|Parameter [4];"           \
    "T|.grad|Tensor [4]"

static const struct package {
    const char *file; /* whose line calls backward() */
    const char *clears;
    bool library, path;
    const char *rule, *advice;
} package_rows[] = {
    {"/x/site-packages/baselines/ppo.py", "zero_grad", true, true,
     "gradient cleared late by a package",
     "baselines clears gradients after the next forward pass; sooner: "
     "`agent.policy.optimizer.register_step_post_hook(lambda optimizer, *_: "
     "optimizer.zero_grad())`"},
    {"/x/dist-packages/pyro/infer.py", "zero_grads", true, false,
     "gradient cleared late by a package",
     "pyro clears gradients after the next forward pass; sooner: "
     "`register_step_post_hook(lambda optimizer, *_: optimizer.zero_grad())` "
     "on its optimizer"},
    /* It calls backward() alone; torch; the program's own, with a path. */
    {"/x/site-packages/accelerate/accelerator.py", "print", true, true,
     "gradient not cleared", "call agent.policy.optimizer.zero_grad("},
    {"/x/site-packages/torch/optim/optimizer.py", "zero_grad", true, true,
     "gradient not cleared", "call agent.policy.optimizer.zero_grad("},
    {"/home/site-packages/mine.py", "zero_grad", false, false,
     "gradient not cleared", "call optimizer.zero_grad("},
};

static void
test_gradients_that_a_package_clears(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof package_rows / sizeof package_rows[0]; i++) {
        const struct package *row = &package_rows[i];
        struct way way;

        way_init(&way, row->path ? AGENT : NET, 2);
        if (row->path) {
            set_module(&way, 3, "torch.optim.adam");
        }
        struct cm_store calls[] = {
            store(&way, CM_STORE_CALL, row->clears, "optimizer", 16)};
        set_running(
            &way,
            add_code_at(&way, row->file, "train", calls, 1, row->library), 17);
        way.holding.category = "gradient";
        assert_advice(&way, row->rule, row->advice);
        cm_records_free(way.records);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_line_of_torch_is_told),
        cmocka_unit_test(test_optimizer_that_is_cleared_is_named),
        cmocka_unit_test(test_gradients_of_several_optimizers_are_told),
        cmocka_unit_test(test_optimizer_of_the_loop_that_runs_is_named),
        cmocka_unit_test(test_gradients_that_a_package_clears),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
