/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Places of references: which lines win over which, what is said when there
 * is none, and whose library it is. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cut_case.h"

static void
check_library(const char *heap, const char *expected)
{
    struct built *built = built_new(heap);
    struct cm_findings findings;

    assert_int_equal(cm_findings_find(&built->heap, built->records, &findings),
                     CM_OK);
    assert_int_equal(findings.count, 1);
    if (expected == NULL) {
        assert_null(findings.items[0].library);
    }
    else {
        assert_non_null(findings.items[0].library);
        assert_string_equal(findings.items[0].library, expected);
    }
    cm_findings_release(&findings);
    built_free(built);
}

static void
test_library(void **state)
{
    (void)state;
    /* The place decides. */
    check_library("code i /v/site-packages/torch/fsdp/h.py:3 H.__init__ lib;"
                  "store i attr me self 4; methods H i; library H torch.fsdp;"
                  "o H; t Tensor 8; o .me o; o .t t",
                  "torch");
    check_library("code i /v/dist-packages/six.py:3 H.__init__ lib;"
                  "store i attr me self 4; methods H i; library H six; o H;"
                  "t Tensor 8; o .me o; o .t t",
                  "six");
    check_library("code i /usr/lib/python3.11/queue.py:3 Q.__init__ lib;"
                  "store i attr me self 4; methods Q i; library Q sched; o Q;"
                  "t Tensor 8; o .me o; o .t t",
                  "python");
    /* The user's own store wins over the library's. */
    check_library("code i /v/site-packages/torch/h.py:3 H.__init__ lib;"
                  "store i attr me self 4; methods H i; library H torch;"
                  "code main a.py:1 main; store main attr me h 2;"
                  "site s main:2; o H; t Tensor 8 site=s; o .me o; o .t t",
                  NULL);
    /* No place: all types and frames must be a library's. */
    check_library("code i /v/site-packages/lit/h.py:3 H.f lib; site s i:4;"
                  "library H lit.core; o H; t Tensor 8 site=s; o .me o;"
                  "o .t t",
                  "lit");
    check_library("code i /v/site-packages/lit/h.py:3 H.f lib;"
                  "code main a.py:1 main; site s i:4 main:2;"
                  "library H lit.core; o H; t Tensor 8 site=s; o .me o;"
                  "o .t t",
                  NULL);
    /* A class that a library makes for each object, as mocks do. */
    check_library(
        "code main a.py:1 main; site s main:2; library Mock unittest"
        ".mock; code c /usr/lib/python3.11/unittest/mock.py:3 f lib;"
        "methods Mock c; k type label=Mock; m tuple; o Mock; t Tensor 8 "
        "site=s; k __mro__ m; m [0] k; k __class__ o; o __class__ k;"
        "o .value t",
        "python");
    check_library("library H lit.core; o H; p Mine; t Tensor 8; o .mine p;"
                  "p .h o; o .t t",
                  NULL);
}

/* A library's class registers a method of its own, which the user's class has
 * by inheritance; or the user's registers one of the user's. */
static void
test_what_a_library_registers_of_itself(void **state)
{
    static const char model[] =
        "code r /v/site-packages/torch/module.py:3 Module.register lib;"
        "store r item - _hooks 4; methods GP r m; o GP; d dict;"
        "library Wrapper torch.nn; w Wrapper; t Tensor 8; o ._hooks d;"
        "d [2] w; o .t t;";
    char heap[1024];

    (void)state;
    snprintf(heap, sizeof heap,
             "code m /v/site-packages/gpt/m.py:3 M.ignore lib; %s"
             "b method code=m; w .hook b; b __self__ o",
             model);
    check_library(heap, "gpt");
    snprintf(heap, sizeof heap,
             "code m a.py:3 GP.ignore; %s b method code=m; w .hook b;"
             "b __self__ o",
             model);
    check_library(heap, NULL);
}

/* A library's line stored it, for the user. */
static void
test_what_the_user_stores_through_a_library(void **state)
{
    static const char queue[] =
        "code i /usr/lib/python3.11/queue.py:3 Queue._init lib;"
        "store i attr queue self 4; methods Queue i; library Queue queue;"
        "library deque collections; t Tensor 8;";
    static const char future[] =
        "code s /usr/lib/python3.11/concurrent/futures/_base.py:3 "
        "Future.set_exception lib; store s attr _exception self 4;"
        "methods Future s; library Future concurrent.futures._base;"
        "library exception builtins; t Tensor 8;";
    char heap[1024];

    (void)state;
    /* An instance of the user's class is a member. */
    snprintf(heap, sizeof heap,
             "%s w Worker; q Queue; d deque; p tuple; w .q q; q .queue d;"
             "d [0] p; p [0] w; w .t t",
             queue);
    check_library(heap, NULL);
    /* A collection is whose who fills it. */
    snprintf(heap, sizeof heap,
             "%s q Queue; d deque; q .queue d; d [0] q;"
             "d [1] t",
             queue);
    check_library(heap, NULL);
    /* A frame of the user's; one of the library's. */
    snprintf(heap, sizeof heap,
             "code main a.py:1 main; %s o Future; e exception; b traceback;"
             "f frame code=main line=3; o ._exception e; e __traceback__ b;"
             "b tb_frame f; f local:f o; f local:t t",
             future);
    check_library(heap, NULL);
    snprintf(heap, sizeof heap,
             "code main /v/site-packages/lit/h.py:1 main lib;"
             "%s o Future;"
             "e exception; b traceback; f frame code=main line=3;"
             "o ._exception e; e __traceback__ b; b tb_frame f; f local:f o;"
             "f local:t t",
             future);
    check_library(heap, "lit");
    /* A stack that nobody recorded is no library's. */
    check_library("library H lit.core; o H; t Tensor 8; o .me o; o .t t",
                  NULL);
}

/* A trainer and its loop know each other; the user's model hangs on them. */
static void
test_what_hangs_on_a_librarys_ring(void **state)
{
    static const char trainer[] =
        "code i /v/site-packages/lit/t.py:3 Trainer.__init__ lib;"
        "store i attr loop self 4; methods Trainer i; library Trainer lit;"
        "library Loop lit; o Trainer; l Loop; m Model; t Tensor 8;"
        "o .loop l; l .trainer o; l .data t;";
    char heap[1024];

    (void)state;
    snprintf(heap, sizeof heap, "%s o .model m; m .trainer o", trainer);
    check_library(heap, "lit");
    /* The user's callback is what leads back. */
    check_library("code i /v/site-packages/lit/c.py:3 Base.__init__ lib;"
                  "store i attr locals self 4; methods Base i;"
                  "library Base lit; c Mine; o Base; t Tensor 8;"
                  "o .locals c; c .base o; o .t t",
                  NULL);
}

/* accelerate's prepare() wraps a forward; a program may use its name. */
static void
test_what_accelerate_keeps(void **state)
{
    static const char init[] = "code init m.py:1 Net.__init__;";
    static const char net[] =
        "code f m.py:3 Net.forward; methods Net init f; o Net;"
        "m method code=f label=method_forward; t Tensor 8;"
        "o ._original_forward m; m __self__ o; o .t t";
    char heap[1024];

    (void)state;
    snprintf(heap, sizeof heap, "%s %s", init, net);
    check_library(heap, "accelerate");
    snprintf(heap, sizeof heap,
             "%s store init attr _original_forward self 2; %s", init, net);
    check_library(heap, NULL);
}

/* The user's object is the last of many members. */
static void
test_one_of_the_users_among_many(void **state)
{
    char heap[16384];
    int used, count = 300;

    (void)state;
    used = snprintf(heap, sizeof heap,
                    "code i /v/site-packages/lit/h.py:3 H.__init__ lib;"
                    "store i attr me self 4; methods H i; library H lit;"
                    "m Mine; t Tensor 8;");
    for (int i = 0; i < count; i++) {
        used += snprintf(heap + used, sizeof heap - (size_t)used, "o%d H;", i);
    }
    for (int i = 0; i + 1 < count; i++) {
        used += snprintf(heap + used, sizeof heap - (size_t)used,
                         "o%d .me o%d;", i, i + 1);
    }
    snprintf(heap + used, sizeof heap - (size_t)used,
             "o%d .me m; m .me o0; o0 .t t", count - 1);
    check_library(heap, NULL);
}

static void
check_reason(const char *heap, bool named, const char *expected)
{
    struct built *built = built_new(heap);
    struct cm_findings findings;

    for (size_t i = 1; i <= built->heap.edge_count && !named; i++) {
        built->heap.edges[i].label = (struct cm_text_id){0};
    }
    assert_int_equal(cm_findings_find(&built->heap, built->records, &findings),
                     CM_OK);
    assert_string_equal(findings.items[0].no_cut_reason, expected);
    cm_findings_release(&findings);
    built_free(built);
}

static void
test_reason_when_there_is_no_place(void **state)
{
    static const char engine[] = "a Engine; t Tensor 8; a ref a; a ref t";

    (void)state;
    check_reason("o Ring; t Tensor 4096; o .next o; o .slot t", true,
                 "no store of .next in Ring's methods or in the functions "
                 "that allocated the tensor");
    check_reason("f function; c cell; t Tensor 8; f __closure__ c;"
                 "c cell:f f; c cell:t t",
                 true, "the code of the function is not known");
    check_reason("l list; t Tensor 8; l [0] l; l [1] t", true,
                 "no call that fills a container in the functions that "
                 "allocated the tensor");
    check_reason(engine, true, "no rule knows this kind of cycle");
    check_reason(engine, false, "the references of this cycle have no names");
}

#define MADE_INIT                                                             \
    "code init <string>:2 Node.__init__; store init attr parent self 4;"      \
    "methods Node init; o Node; t Tensor 8 site=s; o .parent o; o .t t"

static void
test_line_in_no_file(void **state)
{
    static const struct cut_case command[] = {
        {"look-alike: a program of python -c",
         "code main <string>:8 main; site s main:9;" MADE_INIT,
         "self_reference", "o .parent o", "<string>:4", NULL},
    };
    static const struct cut_case calls[] = {
        {"the call that gives it to an __init__ that a library made",
         "code main a.py:8 main; store main hand Node - 9;"
         "code add a.py:20 Node.add; store add hand Node self 21;"
         "store add hand Other self 22; site s main:9;"
         "code init <string>:2 Node.__init__; store init attr parent self 4;"
         "methods Node init add; o Node; t Tensor 8 site=s; o .parent o;"
         "o .t t",
         "self_reference", "o .parent o", "a.py:21", NULL},
    };

    (void)state;
    check_reason("code main a.py:8 main; site s main:9;" MADE_INIT, true,
                 "an __init__ that a library made for Node stores .parent");
    check_reason("code main a.py:8 main; site s main:9;"
                 "code init <attrs_generated_init>:2 Node.__init__;"
                 "store init attr parent self 4;"
                 "methods Node init; o Node; t Tensor 8 site=s; o .parent o;"
                 "o .t t",
                 true,
                 "an __init__ that a library made for Node stores .parent");
    CHECK_CUTS(command);
    CHECK_CUTS(calls);
}

#define BASE_INIT                                                             \
    "code base /lib/b.py:2 Base.__init__ library;"                            \
    "store base attr hook self 4; code init a.py:7 Own.__init__;"             \
    "store init call other self 8; store init call __init__ - 9;"             \
    "code main a.py:20 main; site s main:21; t Tensor 8 site=s;"

static void
test_callers_of_a_library(void **state)
{
    static const struct cut_case cases[] = {
        {"super().__init__(self)",
         BASE_INIT "methods Own init base; o Own; o .hook o; o .t t",
         "self_reference", "o .hook o", "a.py:9", NULL},
        {"look-alike: an object of the library's own class",
         BASE_INIT "library Base b; methods Base base; methods Own init;"
                   "b Base; o Own; b .hook b; b .own o; o .b b; o .t t",
         "self_reference", "b .hook b", "/lib/b.py:4", NULL},
        {"look-alike: nobody calls a function of that name",
         "code base /lib/b.py:2 Base.attach library;"
         "store base attr hook self 4; code init a.py:7 Own.__init__;"
         "store init call __init__ - 9; methods Own init base; o Own;"
         "t Tensor 8; o .hook o; o .t t",
         "self_reference", "o .hook o", "/lib/b.py:4", NULL},
        {"defaultdict(self.make): a dict with an attribute",
         "library OrderedDict collections; code init a.py:7 Own.__init__;"
         "store init attr values self 8; methods Own init; o Own; d "
         "OrderedDict;"
         "m method label=make; t Tensor 8; o .values d; d .default_factory m;"
         "m __self__ o; o .t t",
         "bound_method_on_self", "m __self__ o", "a.py:8", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_order_of_places(void **state)
{
    static const struct cut_case cases[] = {
        {"own method first, then the stack from the inside out",
         "code init a.py:3 Node.__init__; store init attr next self 4;"
         "code in a.py:20 inner; store in attr next n 21;"
         "code out a.py:30 outer; store out attr next n 31;"
         "code far a.py:40 main; store far attr next n 41;"
         "methods Node init; site s in:22 out:32 far:42;"
         "o Node; t Tensor 8 site=s; o .next o; o .t t",
         "self_reference", "o .next o", "a.py:4 ? a.py:21 ? a.py:31 ?", NULL},
        {"the stack of the storage, when the tensor's own is not known",
         "code in a.py:20 inner; store in attr next n 21; site s in:22;"
         "o Node; t Tensor 8; u Tensor of=t site=s; o .next o; o .t t;"
         "o .u u",
         "self_reference", "o .next o", "a.py:21", NULL},
        {"constants and other names do not count",
         "code init a.py:3 Node.__init__; store init attr next self 4 const;"
         "store init attr prev self 5; store init local next - 6;"
         "store init attr next self 7; methods Node init;"
         "o Node; t Tensor 8; o .next o; o .t t",
         "self_reference", "o .next o", "a.py:7", NULL},
        {"a store whose line is not known is none",
         "code init a.py:3 Node.__init__; store init attr next self 0;"
         "methods Node init; o Node; t Tensor 8; o .next o; o .t t",
         "self_reference", "o .next o", "", NULL},
        {"a method of the other type: parent.add(child)",
         "code add a.py:9 Parent.add; store add attr parent child 10;"
         "methods Parent add; p Parent; c Child; t Tensor 8; p .kid c;"
         "c .parent p; p .t t",
         "back_link", "c .parent p", "a.py:10", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

#define TORCH "/v/site-packages/torch/nn/m.py"

static void
test_a_librarys_lines_say_nothing(void **state)
{
    static const struct cut_case cases[] = {
        {"a hook that nobody saw registered",
         "code lib " TORCH ":1 Module.register lib; library Linear torch.nn;"
         "store lib call register_forward_hook self 2; methods Linear lib;"
         "code hook a.py:9 probe; o Linear; h dict; t Tensor 8;"
         "f function code=hook; c cell; o ._forward_hooks h; h [0] f;"
         "f __closure__ c; c cell:model o; o .t t",
         "hook_captures_owner", "c cell model o", "a.py:9", NULL},
        {"setattr(self, name, value) in a base class",
         "code lib " TORCH ":1 Module.load lib; store lib call setattr self 2;"
         "methods Net lib; o Net; c Ctx; t Tensor 8; o .ctx c; c .net o;"
         "o .t t",
         "back_link", "o .ctx c", "", NULL},
        {"the __init__ that dataclass() makes stores the default",
         "code gen <string>:2 Layer.__init__; store gen attr net self 4;"
         "code add a.py:9 Net.add; store add attr net layer 10;"
         "methods Layer gen; methods Net add; n Net; y Layer; t Tensor 8;"
         "n .layer y; y .net n; n .t t",
         "back_link", "y .net n", "a.py:10", NULL},
        {"a call of what was given the method is no giving",
         "code init a.py:3 App.__init__; library Fn ctypes;"
         "store init attr callback self 4; code main a.py:8 main;"
         "store main call callback app 9; site s main:9; methods App init;"
         "o App; k Fn; m method label=method_done; t Tensor 8 site=s;"
         "o .callback k; k .target m; m __self__ o; o .t t",
         "bound_method_on_self", "m __self__ o", "a.py:4", NULL},
        {"types.MethodType(scaled, layer) as its forward",
         "code lib " TORCH ":1 Linear.forward lib; library Linear torch.nn;"
         "methods Linear lib; code own a.py:5 scaled; o Linear;"
         "n method code=lib label=method_forward; t Tensor 8;"
         "m method code=own label=method_scaled; o .old n; n __self__ o;"
         "o .forward m; m __self__ o; o .t t",
         "bound_method_on_self", "m __self__ o", "a.py:5 ?",
         "give .forward a function that captures weakref.ref of the Linear "
         "instead of scaled bound to it, or del .forward when done; "
         "Linear.old leads back too"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library),
        cmocka_unit_test(test_what_a_library_registers_of_itself),
        cmocka_unit_test(test_what_the_user_stores_through_a_library),
        cmocka_unit_test(test_what_hangs_on_a_librarys_ring),
        cmocka_unit_test(test_what_accelerate_keeps),
        cmocka_unit_test(test_one_of_the_users_among_many),
        cmocka_unit_test(test_reason_when_there_is_no_place),
        cmocka_unit_test(test_line_in_no_file),
        cmocka_unit_test(test_callers_of_a_library),
        cmocka_unit_test(test_order_of_places),
        cmocka_unit_test(test_a_librarys_lines_say_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
