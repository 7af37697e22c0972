/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * What the sentences say that no rule does: which part can be weak, and what is
 * cleared.  The rules: t_cut.c and t_back_link.c. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cut_case.h"

static void
test_items(void **state)
{
    static const struct cut_case cases[] = {
        {"self.entries[key] = (self, value)",
         "code put s.py:3 Ring.put; store put item k entries 4;"
         "methods Ring put; o Ring; d dict; p tuple; t Tensor 4096;"
         "o .entries d; d ['k'] p; p [0] o; p [1] t",
         "self_reference", "p [0] o", "s.py:4",
         "put weakref.ref of Ring into the tuples in .entries, or clear "
         ".entries when done"},
        {"a namedtuple, which can have no weak reference",
         "unweakable Entry; code put s.py:3 Ring.put;"
         "store put call append entries 4; methods Ring put; o Ring; l list;"
         "e Entry; t Tensor 4096; o .entries l; l [0] e; e [0] o; e [1] t",
         "self_reference", "e [0] o", "s.py:4",
         "put weakref.ref of Ring into the Entry objects in .entries, or "
         "clear .entries when done"},
        {"in a frozen set, which no one clears",
         "o Ring; s frozenset; t Tensor 4096; o .nodes s; s element o; o .x t",
         "self_reference", "s element o", "",
         "keep weakref.ref objects in .nodes, or set it to None when done"},
        {"callbacks with their priorities",
         "code f w.py:7 Widget.draw; w Widget; s Signal; l list; p tuple;"
         "m method code=f; t Tensor 4096; w .changed s; s .slots l; l [0] p;"
         "p [1] m; m __self__ w; w .t t",
         "back_link", "p [1] m", "",
         "put weakref.WeakMethod of draw into the tuples in Signal.slots, or "
         "clear Signal.slots when done"},
        {"namedtuples on both ways",
         "unweakable Rec; a Parent; l list; r Rec; b Child; k Rec;"
         "t Tensor 4096; a .recs l; l [0] r; r [0] b; b .up k; k [0] a;"
         "a .t t",
         "back_link", "k [0] a", "",
         "put weakref.ref of Parent into Child.up, or set Child.up = None "
         "when done"},
        {"objects of a class with slots, in lists",
         "unweakable Slots; a Slots; l list; b Slots; k list; t Tensor 4096;"
         "a .nodes l; l [0] b; b .nodes k; k [0] a; a .t t",
         "back_link", "k [0] a", "", "clear Slots.nodes when done"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_items_of_libraries(void **state)
{
    static const struct cut_case cases[] = {
        {"in a queue of the standard library",
         "library queue.Queue queue; code push q.py:6 Sched.push;"
         "store push call put q 7; code init q.py:3 Sched.__init__;"
         "store init attr q self 4 made; methods Sched init push; o Sched;"
         "k queue.Queue; d collections.deque; p tuple; t Tensor 4096; o .q k;"
         "k .queue d; d [0] p; p [1] o; o .buf t",
         "back_link", "p [1] o", "q.py:7",
         "put weakref.ref of Sched into the tuples in Sched.q, or set "
         "Sched.q = None when done"},
        {"a method in a weak dictionary",
         "library weakref.WeakKeyDictionary weakref;"
         "code con s.py:4 Signal.connect; store con item k slots 5;"
         "methods Signal con; o View; s Signal; k weakref.WeakKeyDictionary; "
         "d dict;"
         "m method label=refresh; t Tensor 4096; o .sig s; s .slots k;"
         "k .data d; d [0] m; m __self__ o; o .buf t",
         "back_link", "d [0] m", "s.py:5",
         "put weakref.WeakMethod of refresh into Signal.slots, or set "
         "Signal.slots = None when done"},
        {"an attribute of the program's own on a library's module",
         "library torch.nn.Linear torch.nn; code add n.py:4 Net.add;"
         "store add attr users lin 5; methods Net add; o Net; k "
         "torch.nn.Linear;"
         "l list; t Tensor 4096; o .lin k; k .users l; l [0] o; o .w t",
         "back_link", "l [0] o", "n.py:5",
         "keep weakref.ref objects in Linear.users, or clear it when done"},
        {"a key names who asked",
         "code get c.py:4 Cache.get; store get item key d 5; methods Cache "
         "get;"
         "o Layer; c Cache; d dict; p tuple; t Tensor 4096; o .cache c; c .d "
         "d;"
         "d key p; p [0] o; o .w t",
         "back_link", "p [0] o", "c.py:5",
         "put weakref.ref of Layer into the tuples in Cache.d, or clear "
         "Cache.d when done"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_captured(void **state)
{
    static const struct cut_case cases[] = {
        {"among the handlers of an event",
         "code on k.py:6 Engine.__init__.<locals>.on; o Engine; e Event;"
         "l list; t Tensor 4096; f function code=on; c cell; o .done e;"
         "e .handlers l; l [0] f; f __closure__ c; c cell:self o; o .t t",
         "closure_cell", "c cell self o", "k.py:6",
         "capture weakref.ref(self) in on, or clear Event.handlers when done"},
        {"where what is captured is a list, the attribute keeps it no longer",
         "code cb k.py:6 run.<locals>.cb; l list; q Queue; t Tensor 4096;"
         "f function code=cb; c cell; l [0] q; q .cb f; f __closure__ c;"
         "c cell:jobs l; l [1] t",
         "closure_cell", "c cell jobs l", "k.py:6",
         "clear jobs when done: cb keeps it through its closure"},
        {"where it is an object of a class with slots",
         "unweakable Slots; code cb k.py:6 run.<locals>.cb; o Slots; q Queue;"
         "f function code=cb; c cell; t Tensor 4096; o .queue q; q .cb f;"
         "f __closure__ c; c cell:job o; o .t t",
         "closure_cell", "c cell job o", "k.py:6",
         "set Queue.cb = None when done"},
        {"where what is captured is a tuple",
         "code cb k.py:6 run.<locals>.cb; l tuple; q Queue; t Tensor 4096;"
         "f function code=cb; c cell; l [0] q; q .cb f; f __closure__ c;"
         "c cell:jobs l; l [1] t",
         "closure_cell", "c cell jobs l", "k.py:6",
         "set jobs = None when done: cb keeps it through its closure"},
        {"no attribute has the function",
         "code cb k.py:6 run.<locals>.cb; o Job; d dict; t Tensor 4096;"
         "f function code=cb; c cell; g function; e cell; d ['cb'] f;"
         "g __closure__ e; e cell:table d; f __closure__ c; c cell:job o;"
         "o .run g; o .t t",
         "lambda_on_self", "c cell job o", "k.py:6", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_callables(void **state)
{
    static const struct cut_case cases[] = {
        {"the default of a lambda that another object has",
         "code l o.py:9 Engine.__init__.<locals>.<lambda>; o Engine; p Opt;"
         "f function code=l; d tuple; t Tensor 4096; o .opt p; p .cb f;"
         "f __defaults__ d; d [0] o; o .t t",
         "back_link", "d [0] o", "o.py:9",
         "give the lambda weakref.ref of Engine as its default, or set "
         "Opt.cb = None when done"},
        {"a partial of a method that another object has",
         "code init o.py:3 Job.__init__; store init attr fn self 4;"
         "methods Job init; o Engine; l list; j Job; p partial;"
         "m method label=run; t Tensor 4096; o .jobs l; l [0] j; j .fn p;"
         "p func m; m __self__ o; o .t t",
         "back_link", "m __self__ o", "o.py:4",
         "give the partial a function that captures weakref.ref of Engine "
         "instead of run, or set Job.fn = None when done"},
        {"partials in a list, with an argument",
         "o Engine; q Queue; l list; p partial; a tuple; t Tensor 4096;"
         "o .queue q; q .todo l; l [0] p; p args a; a [0] o; o .t t",
         "back_link", "a [0] o", "",
         "give the partial weakref.ref of Engine, or clear Queue.todo when "
         "done"},
        {"wrapper.cache, which wrapper() uses",
         "code w r.py:9 memo.<locals>.wrapper; f function code=w "
         "label=table; c cell;"
         "d dict; e dict; t Tensor 4096; f __closure__ c; c cell:wrapper f;"
         "f __dict__ d; d ['cache'] e; e [0] t",
         "recursive_closure", "c cell wrapper f", "r.py:9",
         "keep cache in a variable beside wrapper, and not on it: through its "
         "closure wrapper refers to itself"},
        {"walk.seen, of a function that calls itself",
         "code w r.py:9 memo.<locals>.wrapper; f function code=w "
         "label=wrapper; c cell;"
         "d dict; e dict; t Tensor 4096; f __closure__ c; c cell:wrapper f;"
         "f __dict__ d; d ['cache'] e; e [0] t",
         "recursive_closure", "c cell wrapper f", "r.py:9",
         "move wrapper to module level or pass it as an argument: it refers "
         "to "
         "itself through its closure"},
        {"a function with an attribute: no one else has it",
         "o Engine; p Opt; f function; t Tensor 4096; o .opt p; p .cb f;"
         "f ref o; o .t t",
         "back_link", "p .cb f", "", "set Opt.cb = None when done"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_methods(void **state)
{
    static const struct cut_case cases[] = {
        {"a stack that is awaited",
         "library AsyncExitStack contextlib; o App; k AsyncExitStack; d list;"
         "m method label=close; t Tensor 4096; o .stack k;"
         "k ._exit_callbacks d; d [0] m; m __self__ o; o .kv t",
         "bound_method_on_self", "m __self__ o", "",
         "give .stack a function that captures weakref.ref(self) instead of "
         "self.close, or await .stack.aclose() when done"},
        {"a lambda that types.MethodType() bound",
         "o Net; m method label=<lambda>; t Tensor 4096; o .fast m;"
         "m __self__ o; o .t t",
         "bound_method_on_self", "m __self__ o", "",
         "give .fast a function that captures weakref.ref of the Net instead "
         "of the lambda bound to it, or set .fast = None when done"},
        {"a built-in method, which no one else has",
         "f Future; l list; b builtin; k list; t Tensor 4096; f .done l;"
         "l [0] b; b __self__ k; k [0] f; f .result t",
         "back_link", "l [0] b", "", "clear Future.done when done"},
        {"the type of a parser's argument",
         "library argparse.ArgumentParser argparse;"
         "library argparse._StoreAction argparse;"
         "code init c.py:3 Cli.__init__; store init attr parser self 4 made;"
         "store init call add_argument parser 5; methods Cli init; o Cli;"
         "p argparse.ArgumentParser; l list; a argparse._StoreAction;"
         "m method label=convert; t Tensor 4096; o .parser p; p ._actions l;"
         "l [0] a; a .type m; m __self__ o; o .t t",
         "bound_method_on_self", "m __self__ o", "c.py:5",
         "give .parser a function that captures weakref.ref(self) instead of "
         "self.convert, or set .parser = None when done"},
        {"a function has self and the method that it stands before",
         "code f w.py:4 wrap.<locals>.forward; o Net; t Tensor 4096; o .t t;"
         "f function code=f; c cell; d cell; m method; o .forward f;"
         "f __closure__ c; f __closure__ d; c cell:self o; d cell:inner m;"
         "m __self__ o",
         "lambda_on_self", "c cell self o", "w.py:4",
         "capture weakref.ref(self) and weakref.WeakMethod(inner) in forward, "
         "or set self.forward = None when done"},
        {"self.step = timed(self.step), with functools.wraps",
         "code f w.py:4 timed.<locals>.inner; o Net; t Tensor 4096; o .t t;"
         "f function code=f; fd dict; c cell; m method; o .step f;"
         "f __closure__ c; c cell:fn m; f __dict__ fd; fd ['__wrapped__'] m;"
         "m __self__ o",
         "bound_method_on_self", "m __self__ o", "",
         "let inner capture weakref.WeakMethod(fn) and del inner.__wrapped__, "
         "or set Net.step = None when done"},
        {"super() is no method",
         "o App; s super; t Tensor 4096; o .base s; s __self__ o; o .kv t",
         "bound_method_on_self", "s __self__ o", "",
         "set .base = None when done"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

/* What is set in the method's own place. */
static void
test_methods_that_are_replaced(void **state)
{
    static const struct cut_case cases[] = {
        {"the same where Net has a step(): not `del Net.step`",
         "code f w.py:4 timed.<locals>.inner; code step w.py:9 Net.step;"
         "methods Net step; o Net; t Tensor 4096; o .t t;"
         "f function code=f; fd dict; c cell; d cell; m method; o .step f;"
         "f __closure__ c; f __dict__ fd; c cell:fn m; fd ['__wrapped__'] m;"
         "m __self__ o",
         "bound_method_on_self", "m __self__ o", "",
         "let inner capture weakref.WeakMethod(fn) and del inner.__wrapped__, "
         "or del .step when done"},
        {"self.embed = lru_cache(self.embed) hides the method that it calls",
         "library _lru_cache_wrapper functools; code embed w.py:9 Net.embed;"
         "methods Net embed; o Net;"
         "k _lru_cache_wrapper; t Tensor 4096; o .t t;"
         "m method code=embed; o .embed k; k .func m; m __self__ o",
         "bound_method_on_self", "m __self__ o", "w.py:9 ?",
         "wrap a function that calls ref()(...), where ref is a "
         "weakref.WeakMethod of embed, made before this line, or del .embed "
         "when done"},
        {"self.cached = lru_cache(self.embed) does not",
         "library _lru_cache_wrapper functools; code embed w.py:9 Net.embed;"
         "methods Net embed; o Net;"
         "k _lru_cache_wrapper; t Tensor 4096; o .t t;"
         "m method code=embed; o .cached k; k .func m; m __self__ o",
         "bound_method_on_self", "m __self__ o", "w.py:9 ?",
         "give .cached a function that captures weakref.ref(self) instead of "
         "self.embed, or set .cached = None when done"},
        {"self.step = partial(self.step)",
         "code step w.py:9 Net.step; methods Net step; o Net; p partial;"
         "t Tensor 4096; o .t t; m method code=step; o .step p; p func m;"
         "m __self__ o",
         "partial_on_self", "m __self__ o", "",
         "wrap a function that calls ref()(...), where ref is a "
         "weakref.WeakMethod of step, made before this line, or del .step "
         "when done"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_items_of_libraries),
        cmocka_unit_test(test_captured),
        cmocka_unit_test(test_callables),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_methods_that_are_replaced),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
