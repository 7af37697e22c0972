/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * What a custom autograd Function keeps on its ctx, and C++ alone holds. */

#include "way_builder.h"

#include "../detector/alloc.h"
#include "../graph/saved.h"

#define FUNCTION "torch.autograd.function.SwishBackward"

static const struct row {
    const char *way, *type;
    bool saved;
} rows[] = {
    {"O||C++ only;O||ctx;T|.out|Tensor [4]", FUNCTION, true},
    {"O||C++ only;O||ctx;T|.out|Tensor [4]", "a.Backwards", false},
    {"O||" CM_HOLDING_DEAD ";O||ctx;T|.out|Tensor [4]", FUNCTION, true},
    {"O||`m.net`;O||ctx;T|.out|Tensor [4]", FUNCTION, false},
    {"O||C++ only;O||ctx;L|.kept|list of 9|9;T|[0]|Tensor [4]", FUNCTION,
     false},
    {"O||C++ only;O||ctx;T||Tensor [4]", FUNCTION, false},
    {"O||C++ only;O||ctx", FUNCTION, false},
};

static void
test_what_a_ctx_keeps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct way way;
        way_init(&way, rows[i].way, 0);
        set_type(&way, 1, "torch.autograd.function", rows[i].type);
        assert_int_equal(cm_saved_on_context(&way.holding), rows[i].saved);
        cm_records_free(way.records);
    }
}

/* The line on the stack that allocated it, as where `ctx.out = out` stands. */
static void
test_what_is_said_and_where(void **state)
{
    struct way way;
    struct cm_place places[CM_MAX_PLACES];
    struct cm_store stores[2];
    struct cm_holding_advice advice;

    (void)state;
    way_init(&way, rows[0].way, 0);
    set_type(&way, 1, "torch.autograd.function", FUNCTION);
    way.holding.grows = true;
    stores[0] = store(&way, CM_STORE_ATTRIBUTE, "sig", "ctx", 7);
    stores[1] = store(&way, CM_STORE_ATTRIBUTE, "out", "ctx", 8);
    set_running(&way, add_code(&way, "forward", stores, 2, false), 6);
    assert_int_equal(cm_holding_advise(&way.holding, &advice), CM_OK);
    assert_string_equal(advice.rule, "saved on ctx");
    assert_string_equal(advice.text, "keep what Swish.backward() needs by "
                                     "ctx.save_for_backward(), not as "
                                     "attributes of ctx");
    assert_int_equal(cm_holding_made(&way.holding, places), 1);
    assert_int_equal(places[0].line, 8);
    cm_holding_advice_release(&advice);
    cm_records_free(way.records);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_ctx_keeps),
        cmocka_unit_test(test_what_is_said_and_where),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
