/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <string.h>

#include "fail_each.h"

#include "../reports/mend.h"

static void
expect_mended(const struct cm_mend_case *fault, enum cm_mend way,
              const char *expected)
{
    struct cm_buffer out = {0};

    assert_int_equal(cm_mend_line(&out, fault), way);
    assert_string_equal(cm_buffer_text(&out), expected);
    cm_buffer_release(&out);
}

/* `expected` NULL: the line is left alone. */
static void
expect(const char *rule, const char *edge, const char *source,
       enum cm_mend way, const char *expected)
{
    struct cm_mend_case fault = {
        rule, "make it a weakref.ref, a weakref.WeakMethod(), weakref.ref()",
        edge, "", source};

    expect_mended(&fault, way, expected != NULL ? expected : "");
}

static void
test_what_may_be_none(void **state)
{
    static const char *const above[] = {
        "def __init__(self, rows, parent=None):",
        "    def __init__(self, parent: \"Node | None\" = None, rows=3):\n"
        "        self.rows = rows",
        "def __init__(self,\n             parent: Node=None):",
    };
    static const char *const others[] = {
        "",
        "parent = None",
        "def __init__(self, parent, rows=None):",
        "def __init__(self, parent: Node, rows=None):",
        "def __init__(self, grandparent=None, parent=0):",
    };
    struct cm_mend_case fault = {"back_link", "make N.up a weakref.ref", ".up",
                                 "", "    self.up = parent"};

    (void)state;
    for (size_t i = 0; i < sizeof(above) / sizeof(above[0]); i++) {
        fault.before = above[i];
        expect_mended(
            &fault, CM_MEND_REPLACE,
            "    self.up = weakref.ref(parent) if parent is not None "
            "else lambda: None  # from now on self.up()\n");
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        fault.before = others[i];
        expect_mended(&fault, CM_MEND_REPLACE,
                      "    self.up = weakref.ref(parent)  # from now on "
                      "self.up()\n");
    }
}

/* No weak reference to an object with __slots__; a forward is called as it is. */
static void
test_other_advice(void **state)
{
    struct cm_mend_case link = {"back_link", "set Edge.up = None when done",
                                ".up", "", "self.up = parent"};
    struct cm_mend_case method = {
        "bound_method_on_self",
        "give .forward a function that captures weakref.ref(self)", "__self__",
        "", "self.forward = self.fast"};

    (void)state;
    expect_mended(&link, CM_MEND_NONE, "");
    expect_mended(&method, CM_MEND_NONE, "");
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
           "    err = None  # in a finally, at the end of the function\n");
    expect("frame_in_local", "local f", "f = sys._getframe()", CM_MEND_AFTER,
           "f = None  # in a finally, at the end of the function\n");
    expect("exception_in_frame", "local a b", "x", CM_MEND_NONE, NULL);
    expect("exception_in_frame", "local ", "x", CM_MEND_NONE, NULL);
}

static enum cm_status
mend(void *context)
{
    struct cm_buffer out = {0};
    enum cm_status status;

    (void)context;
    cm_mend_line(&out, &(struct cm_mend_case){
                           "lambda_on_self", "capture weakref.ref(self)",
                           "cell self", "",
                           "  self.cb = lambda o: self.store(o, x.self)"});
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
        cmocka_unit_test(test_what_may_be_none),
        cmocka_unit_test(test_other_advice),
        cmocka_unit_test(test_bound_method),
        cmocka_unit_test(test_lambda),
        cmocka_unit_test(test_local),
        cmocka_unit_test(test_out_of_memory),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
