/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <string.h>

#include "fail_each.h"

#include "../reports/mend.h"

/* `expected` NULL: the line is left alone. */
static void
expect(const char *rule, const char *edge, const char *source,
       enum cm_mend way, const char *expected)
{
    struct cm_buffer out = {0};

    assert_int_equal(cm_mend_line(&out, rule, edge, source), way);
    assert_string_equal(cm_buffer_text(&out),
                        expected != NULL ? expected : "");
    cm_buffer_release(&out);
}

static void
test_back_link(void **state)
{
    (void)state;
    expect("back_link", ".parent", "    child.parent = self", CM_MEND_REPLACE,
           "    child.parent = weakref.ref(self)  # from now on "
           "child.parent()\n");
    expect("back_link", "['parent']", "child.parent = root.top",
           CM_MEND_REPLACE,
           "child.parent = weakref.ref(root.top)  # from now on "
           "child.parent()\n");
    expect("self_reference", ".me", "\tself.me = self", CM_MEND_REPLACE,
           "\tself.me = weakref.ref(self)  # from now on self.me()\n");
}

static void
test_left_alone(void **state)
{
    static const char *const sources[] = {
        "",
        "child.parent",
        "child.parent = make(self)",
        "child.other = self",
        "parent = self",
        "xparent = self",
        "child.parent == self",
        "child.parent = self  # back",
        "child.parent = self; x = 1",
        "a, child.parent = self",
        "child.parent = (",
        "child.parent =",
        "child.parent = 'x'",
        "child..parent = self",
        "1child.parent = self",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        expect("back_link", ".parent", sources[i], CM_MEND_NONE, NULL);
    }
    expect("closure_cell", ".parent", "child.parent = self", CM_MEND_NONE,
           NULL);
    expect("back_link", "", "child.parent = self", CM_MEND_NONE, NULL);
}

static void
test_bound_method(void **state)
{
    (void)state;
    expect("bound_method_on_self", "__self__", "self.cb = self.run",
           CM_MEND_REPLACE,
           "self.cb = weakref.WeakMethod(self.run)  # from now on "
           "self.cb()(...)\n");
    expect("bound_method_on_self", "__self__", "self.cb = run", CM_MEND_NONE,
           NULL);
}

static void
test_lambda(void **state)
{
    (void)state;
    expect("lambda_on_self", "cell self",
           "  self.cb = lambda o: self.store(o, x.self, myself)",
           CM_MEND_REPLACE,
           "  self_ref = weakref.ref(self)\n"
           "  self.cb = lambda o: self_ref().store(o, x.self, myself)\n");
    expect("lambda_on_self", "cell self", "self.cb = lambda self: self.x()",
           CM_MEND_NONE, NULL);
    expect("lambda_on_self", "cell self", "self.cb = lambda o, x=self: x",
           CM_MEND_NONE, NULL);
    expect("lambda_on_self", "cell self", "self.cb = lambda o: o",
           CM_MEND_NONE, NULL);
    expect("lambda_on_self", "cell self", "self.cb = lambda o", CM_MEND_NONE,
           NULL);
    expect("lambda_on_self", "cell self", "self.cb = f", CM_MEND_NONE, NULL);
    expect("lambda_on_self", "cell ", "self.cb = lambda: self", CM_MEND_NONE,
           NULL);
    expect("lambda_on_self", ".x", "self.cb = lambda: self", CM_MEND_NONE,
           NULL);
}

static void
test_local(void **state)
{
    (void)state;
    expect("exception_in_frame", "local err", "    err = e", CM_MEND_AFTER,
           "    del err  # at the end of the function\n");
    expect("frame_in_local", "local f", "f = sys._getframe()", CM_MEND_AFTER,
           "del f  # at the end of the function\n");
    expect("exception_in_frame", "local a b", "x", CM_MEND_NONE, NULL);
    expect("exception_in_frame", "local ", "x", CM_MEND_NONE, NULL);
}

static enum cm_status
mend(void *context)
{
    struct cm_buffer out = {0};
    enum cm_status status;

    (void)context;
    cm_mend_line(&out, "lambda_on_self", "cell self",
                 "  self.cb = lambda o: self.store(o, x.self, myself)");
    status = cm_buffer_status(&out);
    cm_buffer_release(&out);
    return status;
}

static void
test_out_of_memory(void **state)
{
    (void)state;
    cm_fail_each(mend, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_back_link),
        cmocka_unit_test(test_left_alone),
        cmocka_unit_test(test_bound_method),
        cmocka_unit_test(test_lambda),
        cmocka_unit_test(test_local),
        cmocka_unit_test(test_out_of_memory),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
