/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The rules about functions, frames and classes, row by row: the obvious
 * program, two that differ from it, and at least one that looks alike and must
 * be told apart.  The rows about objects and containers: t_back_link.c. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cut_case.h"

/* self.acts holds the tensor; __init__ is where things are stored. */
#define TRAINER                                                               \
    "code init train.py:10 Trainer.__init__;"                                 \
    "code lam train.py:13 Trainer.__init__.<locals>.<lambda>;"                \
    "code step train.py:30 Trainer.step; code main train.py:50 main;"         \
    "store init attr acts self 11;"                                           \
    "store init function Trainer.__init__.<locals>.<lambda> - 13;"            \
    "store init attr cb self 13;"                                             \
    "methods Trainer init step; site s step:31 main:52;"                      \
    "o Trainer; acts list; t Tensor 1048576 site=s; o .acts acts;"            \
    "acts [0] t;"

/* A closure `f` over `self`, whose code is called lam. */
#define CLOSURE                                                               \
    "f function code=lam; cl tuple; c cell;"                                  \
    "f __closure__ cl; cl cell:self c;"

static void
test_hook_captures_owner(void **state)
{
    static const struct cut_case cases[] = {
        {"lambda registered on self",
         "code init m.py:8 Net.__init__; code lam m.py:9 "
         "Net.__init__.<lambda>;"
         "store init call register_forward_hook self 9; methods Net init;"
         "o Net; h OrderedDict; t Tensor 4096; f function code=lam; cl tuple;"
         "c cell; o ._forward_hooks h; h [0] f; f __closure__ cl;"
         "cl cell:self c; c cell:self o; o .acts t",
         "hook_captures_owner", "c cell self o", "m.py:9",
         "keep the handle and call handle.remove(), or capture "
         "weakref.ref(self) in the hook"},
        {"the hook sits on a child module, in instance dicts",
         "code init m.py:8 Net.__init__;"
         "code hook m.py:12 Net.__init__.<locals>.hook;"
         "store init function Net.__init__.<locals>.hook - 12;"
         "store init call register_forward_pre_hook layer 14;"
         "methods Net init;"
         "o Net; od dict; ms dict; child Linear; cd dict; h OrderedDict;"
         "f function code=hook; c cell; t Tensor 4096;"
         "o __dict__ od; od ['_modules'] ms; ms ['layer'] child;"
         "child __dict__ cd; cd ['_forward_pre_hooks'] h; h [0] f;"
         "f __closure__ c; c cell:net o; od ['seen'] t",
         "hook_captures_owner", "c cell net o", "m.py:14",
         "keep the handle and call handle.remove(), or capture "
         "weakref.ref(net) in the hook"},
        {"a bound method as hook of a tensor, with a framework's own edge",
         "code run m.py:5 Net.run; store run call register_hook y 7;"
         "methods Net run; o Net; t Tensor 4096; m method label=method_log;"
         "o .y t; t hook m; m __self__ o",
         "hook_captures_owner", "m __self__ o", "m.py:7",
         "keep the handle and call handle.remove(), or register a function "
         "that captures weakref.ref(self)"},
        {"the table that a tensor keeps in C",
         "code make h.py:5 make; code lam h.py:7 make.<locals>.<lambda>;"
         "store make call register_hook w 7; site s make:6;"
         "w Tensor 4096 site=s; h OrderedDict; f function code=lam; c cell;"
         "w ref h; h [0] f; f __closure__ c; c cell:w w",
         "hook_captures_owner", "c cell w w", "h.py:7",
         "keep the handle and call handle.remove(), or capture "
         "weakref.ref(w) in the hook"},
        {"no call is known: where the function is made",
         "code lam m.py:9 <lambda>; o Net; h dict; t Tensor 4096;"
         "f function code=lam; c cell; o ._backward_hooks h; h [0] f;"
         "f __closure__ c; c cell:self o; o .t t",
         "hook_captures_owner", "c cell self o", "m.py:9", NULL},
        {"look-alike: a list of one's own that is called hooks",
         TRAINER CLOSURE "hs list; o .hooks hs; hs [0] f; c cell:self o",
         "lambda_on_self", "c cell self o", "train.py:13",
         "capture weakref.ref(self) in the lambda, or clear self.hooks when "
         "done"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_hook_tables(void **state)
{
    static const struct cut_case cases[] = {
        {"a partial of a method, and a call that fills another table",
         "code init m.py:3 Rec.__init__;"
         "store init call register_forward_pre_hook net 5;"
         "store init call register_forward_hook net 6;"
         "methods Rec init; r Rec; l Linear; h OrderedDict; p partial; m "
         "method; t Tensor 4096;"
         "r .net l; l ._forward_hooks h; h [0] p; p func m; m __self__ r;"
         "l .weight t",
         "hook_captures_owner", "m __self__ r", "m.py:6",
         "keep the handle and call handle.remove(), or register a function "
         "that captures weakref.ref(self)"},
        {"an argument of a partial",
         "code init m.py:3 Rec.__init__;"
         "store init call register_full_backward_hook net 6;"
         "methods Rec init; r Rec; l Linear; h OrderedDict; p partial; a "
         "tuple; t Tensor 4096;"
         "r .net l; l ._backward_hooks h; h [0] p; p args a; a [0] r;"
         "l .weight t",
         "hook_captures_owner", "a [0] r", "m.py:6",
         "keep the handle and call handle.remove(), or give the partial "
         "weakref.ref of Rec"},
        {"a table of torch's with a name that no call has",
         "code init m.py:3 Rec.__init__;"
         "store init call register_load_state_dict_post_hook self 5;"
         "store init call _register_state_dict_hook self 6;"
         "methods Rec init; r Rec; h OrderedDict; m method; t Tensor 4096;"
         "r ._state_dict_hooks h; h [0] m; m __self__ r; r .weight t",
         "hook_captures_owner", "m __self__ r", "m.py:6", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_packed_output(void **state)
{
    static const struct cut_case cases[] = {
        {"a step that saves its own output, packed as it is",
         "t Tensor 4096; g GradFn; t grad_fn g; g saved:packed t",
         "packed_output", "g saved packed t", "",
         "let the pack hook return tensor.detach() instead of the tensor: an "
         "operation that saves its own output holds itself through it"},
        {"a later result, over two steps",
         "t Tensor 4096; g GradFn; e GradFn; t grad_fn e; e grad_fn g;"
         "g saved:packed t",
         "packed_output", "g saved packed t", "", NULL},
        {"look-alike: saved as it is, without hooks",
         "t Tensor 4096; g GradFn; t grad_fn g; g saved t", "unknown", "", "",
         NULL},
        {"look-alike: the hook packed something that leads back",
         "t Tensor 4096; g GradFn; o Pack; t grad_fn g; g saved:packed o;"
         "o .t t",
         "back_link", "o .t t", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_lambda_on_self(void **state)
{
    static const struct cut_case cases[] = {
        {"self.cb = lambda o: self.store(o)",
         TRAINER CLOSURE "o .cb f; c cell:self o", "lambda_on_self",
         "c cell self o", "train.py:13",
         "capture weakref.ref(self) in the lambda, or set self.cb = None when "
         "done"},
        {"a def, stored by another method, wrapped by a decorator",
         "code w util.py:3 wraps.<locals>.inner;"
         "code f train.py:20 Trainer.run.<locals>.on_done;"
         "o Trainer; t Tensor 4096; o .t t; wr function code=w; wc cell;"
         "in function code=f; ic cell; o .done wr; wr __closure__ wc;"
         "wc cell:fn in; in __closure__ ic; ic cell:me o",
         "lambda_on_self", "ic cell me o", "train.py:20",
         "capture weakref.ref(me) in on_done, or set me.done = None when "
         "done"},
        {"no closure: the object is a default",
         "code f train.py:20 Trainer.run.<locals>.<lambda>;"
         "o Trainer; od dict; t Tensor 4096; f function code=f; d tuple;"
         "o __dict__ od; od ['t'] t; od ['cb'] f; f __defaults__ d; d [0] o",
         "lambda_on_self", "d [0] o", "train.py:20",
         "give the lambda weakref.ref of Trainer as its default, or set .cb = "
         "None when done"},
        {"two lambdas of one function on two lines",
         "code init train.py:10 Trainer.__init__;"
         "code a train.py:12 Trainer.__init__.<locals>.<lambda>;"
         "code b train.py:15 Trainer.__init__.<locals>.<lambda>;"
         "store init function Trainer.__init__.<locals>.<lambda> - 12;"
         "store init function Trainer.__init__.<locals>.<lambda> - 15;"
         "methods Trainer init; o Trainer; t Tensor 4096; o .t t;"
         "f function code=b; c cell; o .cb f; f __closure__ c; c cell:self o",
         "lambda_on_self", "c cell self o", "train.py:15", NULL},
        {"given to a timer, which is a library's",
         "library Timer threading;" TRAINER CLOSURE
         "i Timer; o .cb i; i .function f; c cell:self o",
         "lambda_on_self", "c cell self o", "train.py:13",
         "capture weakref.ref(self) in the lambda, or set self.cb = None when "
         "done"},
        {"an attribute of a function: wrapper.info = lambda: wrapper",
         "code l w.py:9 memo.<locals>.<lambda>; w function; f function code=l;"
         "c cell; t Tensor 4096; w .info f; f __closure__ c;"
         "c cell:wrapper w; w .saved t",
         "lambda_on_self", "c cell wrapper w", "w.py:9",
         "capture weakref.ref(wrapper) in the lambda, or set wrapper.info = "
         "None when done"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_other_captures(void **state)
{
    static const struct cut_case cases[] = {
        {"look-alike: functools.wraps on a function that calls itself",
         "code f w.py:9 run.<locals>.fib; w function; f function code=f;"
         "c cell; c2 cell; t Tensor 4096; w .__wrapped__ f;"
         "w __closure__ c2; c2 cell:fn f; f __closure__ c; c cell:fib w;"
         "w .saved t",
         "recursive_closure", "c cell fib w", "", NULL},
        {"look-alike: the function captures another object of the cycle",
         TRAINER CLOSURE "p Pool; o .cb f; o .pool p; c cell:pool p;"
                         "p .trainer o",
         "closure_cell", "c cell pool p", "train.py:13",
         "capture weakref.ref(pool) in the lambda, or set Trainer.cb = None "
         "when done; Trainer.pool leads back too"},
        {"look-alike: the lambda only hangs off another cycle",
         TRAINER CLOSURE "n Node; o .cb f; c cell:n n; o .node n; n .up o;"
                         "x Node; c2 cell",
         "closure_cell", "c cell n n", "train.py:13", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_bound_method_on_self(void **state)
{
    static const struct cut_case cases[] = {
        {"self.cb = self.f",
         TRAINER "m method code=step; o .cb m; m __self__ o",
         "bound_method_on_self", "m __self__ o", "train.py:13",
         "store weakref.WeakMethod(self.step) in .cb, or set .cb = None when "
         "done"},
        {"self.handlers['step'] = self.f, from an instance dict",
         "code init a.py:3 App.__init__; store init attr handlers self 4;"
         "store init item step handlers 5; methods App init;"
         "o App; od dict; h dict; m method label=method_on_step;"
         "t Tensor 4096; o __dict__ od; od ['handlers'] h; h ['step'] m;"
         "m __self__ o; od ['t'] t",
         "bound_method_on_self", "m __self__ o", "a.py:5", NULL},
        {"stored from outside, by the function that allocated",
         "code main a.py:30 main; store main attr cb app 34;"
         "site s main:32; o App; m method; t Tensor 4096 site=s;"
         "o .cb m; o .t t; m __self__ o",
         "bound_method_on_self", "m __self__ o", "a.py:34", NULL},
        {"registered with an exit stack, which wraps it",
         "library ExitStack contextlib; code init a.py:3 App.__init__;"
         "store init attr stack self 4; store init call callback stack 5;"
         "methods App init; o App; k ExitStack; d list; p tuple; w function; "
         "c cell;"
         "m method label=close; t Tensor 4096; o .stack k;"
         "k ._exit_callbacks d; d [0] p; p [1] w; w __closure__ c;"
         "c cell:callback m; m __self__ o; o .kv t",
         "bound_method_on_self", "m __self__ o", "a.py:5",
         "give .stack a function that captures weakref.ref(self) instead of "
         "self.close, or call .stack.close() when done"},
        {"look-alike: the method of another object",
         TRAINER "p Pool; m method; o .cb m; m __self__ p; p .owner o",
         "back_link", "p .owner o", "",
         "make Pool.owner a weakref.ref, or set it to None when done"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_partial_on_self(void **state)
{
    static const struct cut_case cases[] = {
        {"self.cb = partial(f, self)",
         TRAINER "p partial; a tuple; o .cb p; p args a; a [0] o",
         "partial_on_self", "a [0] o", "train.py:13",
         "give the partial weakref.ref of Trainer, or set .cb = None when "
         "done"},
        {"partial(self.f) in a list, keyword arguments beside",
         TRAINER "p partial; m method label=step; l list; k dict; o .jobs l;"
                 "l [0] p; p func m; p args k; m __self__ o",
         "partial_on_self", "m __self__ o", "",
         "give the partial a function that captures weakref.ref of Trainer "
         "instead of step, or clear .jobs when done"},
        {"a keyword argument",
         TRAINER "p partial; k dict; o .cb p; p args k; k ['trainer'] o",
         "partial_on_self", "k ['trainer'] o", "train.py:13", NULL},
        {"look-alike: the partial binds a child that refers back",
         TRAINER "p partial; a tuple; n Node; o .cb p; p args a; a [0] n;"
                 "n .parent o",
         "back_link", "n .parent o", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

#define RAISES                                                                \
    "code run e.py:10 run; store run local x - 11;"                           \
    "store run local err - 15; fr frame code=run line=16; t Tensor 4096;"     \
    "fr local:x t; e ValueError; tb traceback; e __traceback__ tb;"

static void
test_exception_in_frame(void **state)
{
    static const struct cut_case cases[] = {
        {"err = e", RAISES "tb tb_frame fr; fr local:err e",
         "exception_in_frame", "fr local err e", "e.py:15",
         "`finally: err = None` in run: the exception keeps the frame, and "
         "the "
         "frame keeps it"},
        {"errors.append(e) in a list, raised two calls below",
         RAISES "code deep e.py:40 deep; in frame code=deep; tb2 traceback;"
                "l list; tb tb_next tb2; tb2 tb_frame in; in f_back fr;"
                "fr local:err l; l [0] e",
         "exception_in_frame", "fr local err l", "e.py:15", NULL},
        {"the list is filled by a call, which closes the cycle",
         "code run e.py:10 run; store run local errors - 12;"
         "store run call append errors 15; fr frame code=run;"
         "t Tensor 4096; fr local:x t; e ValueError; tb traceback; l list;"
         "e __traceback__ tb; tb tb_frame fr; fr local:errors l; l [0] e",
         "exception_in_frame", "fr local errors l", "e.py:15", NULL},
        {"the context of another exception, in a cell",
         RAISES "k KeyError; c cell; tb tb_frame fr; fr local:err c;"
                "c cell:err k; k __context__ e",
         "exception_in_frame", "fr local err c", "e.py:15", NULL},
        {"a parameter: no store, the function itself",
         "code run e.py:10 run; fr frame code=run line=16; t Tensor 4096;"
         "fr local:x t; e ValueError; tb traceback; e __traceback__ tb;"
         "tb tb_frame fr; fr local:err e",
         "exception_in_frame", "fr local err e", "e.py:10 ?", NULL},
        {"stored twice: both are shown",
         "code run e.py:10 run; store run local err - 15;"
         "store run local err - 18; fr frame code=run; t Tensor 4096;"
         "fr local:x t; e ValueError; tb traceback; e __traceback__ tb;"
         "tb tb_frame fr; fr local:err e",
         "exception_in_frame", "fr local err e", "e.py:15 ? e.py:18 ?", NULL},
        {"look-alike: the exception refers to itself",
         "fr frame; t Tensor 4096; e ValueError; e .again e; e .t t;"
         "fr local:err e",
         "self_reference", "e .again e", "", "set .again = None when done"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

/* A method of Job that fails; its frame has self. */
#define FAILS                                                                 \
    "code run e.py:10 Job.run; store run attr err self 14;"                   \
    "store run attr errors self 11; store run call append errors 15;"         \
    "methods Job run; o Job; fr frame code=run line=13; t Tensor 4096;"       \
    "fr local:x t; e ValueError; tb traceback; e __traceback__ tb;"

static void
test_exception_on_self(void **state)
{
    static const struct cut_case cases[] = {
        {"self.err = e", FAILS "tb tb_frame fr; fr local:self o; o .err e",
         "exception_on_self", "o .err e", "e.py:14",
         "store the exception's with_traceback(None) in .err, or set .err = "
         "None when done: its traceback keeps a frame that keeps the Job"},
        {"self.errors.append(e), raised two calls below, from another one",
         FAILS "code deep e.py:40 deep; in frame code=deep; tb2 traceback;"
               "od dict; l list; k KeyError; tb tb_next tb2; tb2 tb_frame in;"
               "in f_back fr; fr local:self o; o __dict__ od;"
               "od ['errors'] l; l [0] k; k __context__ e",
         "exception_on_self", "od ['errors'] l", "e.py:15", NULL},
        {"the frame has self in a cell, which a closure shares",
         FAILS "c cell; tb tb_frame fr; fr local:self c; c cell:self o;"
               "o .err e",
         "exception_on_self", "o .err e", "e.py:14", NULL},
        {"look-alike: the frame has a child, which refers back",
         FAILS "n Node; tb tb_frame fr; fr local:n n; n .parent o; o .err e",
         "back_link", "n .parent o", "", NULL},
        {"look-alike: never raised, it refers to the Job by an attribute",
         "o Job; e ValueError; t Tensor 4096; o .t t; o .err e; e .job o",
         "back_link", "e .job o", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_frame_in_local(void **state)
{
    static const struct cut_case cases[] = {
        {"fr = currentframe()",
         "code run e.py:10 run; store run local here - 12;"
         "fr frame code=run; t Tensor 4096; fr local:x t; fr local:here fr",
         "frame_in_local", "fr local here fr", "e.py:12",
         "`finally: here = None` in run: a frame in its own local keeps every "
         "local alive"},
        {"the stack of inspect.stack()",
         "code run e.py:10 run; store run local stack - 12;"
         "fr frame code=run; t Tensor 4096; l list; i FrameInfo;"
         "fr local:x t; fr local:stack l; l [0] i; i [0] fr",
         "frame_in_local", "fr local stack l", "e.py:12", NULL},
        {"a traceback without its exception; the frame of a callee",
         "code run e.py:10 run; store run local tb - 12;"
         "fr frame code=run; t Tensor 4096; tb traceback; in frame;"
         "fr local:x t; fr local:tb tb; tb tb_frame in; in f_back fr",
         "frame_in_local", "fr local tb tb", "e.py:12", NULL},
        {"look-alike: an object that keeps the frame",
         "code run e.py:10 Job.run; store run attr frame self 14;"
         "methods Job run; o Job; fr frame code=run; t Tensor 4096;"
         "fr local:self o; fr local:x t; o .frame fr",
         "back_link", "o .frame fr", "e.py:14",
         "set Job.frame = None when done"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_generator_holds_itself(void **state)
{
    static const struct cut_case cases[] = {
        {"pool.append(loader)",
         "code gen g.py:9 batches; code main g.py:15 main;"
         "store main local pool - 16; store main call append pool 18;"
         "site s gen:10 main:19; g generator code=gen; l list;"
         "t Tensor 4096 site=s; g local:pool l; g local:x t; l [0] g",
         "generator_holds_itself", "l [0] g", "g.py:18",
         "call close() on each generator in pool when done, or do not store "
         "them in what they refer to"},
        {"self.runner = self.run(), a coroutine behind a task",
         "code run g.py:9 Job.run; code start g.py:4 Job.start;"
         "store start attr task self 5; methods Job start run;"
         "g coroutine code=run; o Job; k Task; t Tensor 4096;"
         "g local:self o; g local:x t; o .task k; k ref g",
         "generator_holds_itself", "o .task k", "g.py:5",
         "call run.close() when done, or do not store the coroutine in what "
         "it refers to"},
        {"a library's context manager has it, by a name of its own",
         "library Manager contextlib; code run g.py:8 Job.run;"
         "code start g.py:3 Job.start; store start attr cm self 5;"
         "methods Job start run; g generator code=run; o Job; k Manager;"
         "t Tensor 4096; g local:self o; g local:x t; o .cm k; k .gen g",
         "generator_holds_itself", "o .cm k", "g.py:5",
         "set .cm = None when done, or do not store it in what its generator "
         "refers to"},
        {"an async generator in a dict of its own, found under another name",
         "code gen g.py:9 stream; code main g.py:15 main;"
         "store main item - registry 18; site s gen:10 main:19;"
         "g async_generator code=gen; d dict; t Tensor 4096 site=s;"
         "g local:table d; g local:x t; d ['me'] g",
         "generator_holds_itself", "d ['me'] g", "g.py:18",
         "await aclose() of each async generator in table when done, or do "
         "not "
         "store them in what they refer to"},
        {"look-alike: the generator only hangs off a cycle",
         "g generator; o Node; p Node; t Tensor 4096; o .parent p; p .kid o;"
         "o .gen g; g local:x t",
         "back_link", "o .parent p", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_class_in_function(void **state)
{
    static const struct cut_case cases[] = {
        {"class Net: table = tensor, in build()",
         "code build c.py:4 build; store build function build.<locals>.Net - "
         "5;"
         "code fwd c.py:7 build.<locals>.Net.forward; site s build:6;"
         "k type label=build.<locals>.Net; m tuple; d dict; f function "
         "code=fwd; t Tensor 4096 site=s; k __mro__ m; m [0] k; k __class__ d;"
         "d ['forward'] f; d ['table'] t",
         "class_in_function", "m [0] k", "c.py:5",
         "define class Net at module level: each call of build makes a class "
         "that refers to itself"},
        {"through a getset descriptor; the class statement is not known",
         "code fwd c.py:7 make.<locals>.Net.forward;"
         "k type label=Net; d dict; g getset_descriptor; f function code=fwd;"
         "t Tensor 4096; c cell; k __class__ d; d ['__dict__'] g; g ref k;"
         "d ['forward'] f; f __closure__ c; c cell:__class__ k; d ['t'] t",
         "class_in_function", "g ref k", "c.py:7 ?", NULL},
        {"a class that keeps its instances, seen by its repr",
         "code build c.py:4 build; store build function build.<locals>.Node - "
         "5; site s build:6; k type label='build.<locals>.Node'>; d dict;"
         "l list; o Node; t Tensor 4096 site=s; k __class__ d; d ['all'] l;"
         "l [0] o; o __class__ k; o .t t",
         "class_in_function", "o __class__ k", "c.py:5",
         "define class Node at module level: each call of build makes a class "
         "that refers to itself"},
        {"look-alike: an instance of such a class, in a cycle of its own",
         "k type label=Net; m tuple; k __mro__ m; m [0] k;"
         "o Net; t Tensor 4096; o __class__ k; o .me o; o .t t",
         "self_reference", "o .me o", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_recursive_closure(void **state)
{
    static const struct cut_case cases[] = {
        {"def walk(n): walk(n.left)",
         "code walk r.py:6 run.<locals>.walk; f function code=walk; cl tuple;"
         "c cell; c2 cell; t Tensor 4096; f __closure__ cl; cl cell:walk c;"
         "cl cell:x c2; c cell:walk f; c2 cell:x t",
         "recursive_closure", "c cell walk f", "r.py:6",
         "move walk to module level or pass it as an argument: it refers to "
         "itself through its closure"},
        {"two functions that call each other",
         "code even r.py:6 run.<locals>.even; code odd r.py:9 "
         "run.<locals>.odd;"
         "f function code=even; g function code=odd; cf cell; cg cell;"
         "t Tensor 4096; f __closure__ cg; cg cell:odd g; g __closure__ cf;"
         "cf cell:even f; f .cache t",
         "recursive_closure", "cf cell even f", "r.py:6", NULL},
        {"a recursive lambda whose enclosing code is known",
         "code run r.py:5 run; store run function run.<locals>.<lambda> - 6;"
         "code l r.py:6 run.<locals>.<lambda>; site s run:7;"
         "f function code=l; c cell; t Tensor 4096 site=s; f __closure__ c;"
         "c cell:fact f; f __defaults__ t",
         "recursive_closure", "c cell fact f", "r.py:6",
         "move fact to module level or pass it as an argument: it refers to "
         "itself through its closure"},
        {"look-alike: the cell holds a list that holds the function",
         "code l r.py:6 run.<locals>.<lambda>; f function code=l; c cell;"
         "l list; t Tensor 4096; f __closure__ c; c cell:fs l; l [0] f;"
         "l [1] t",
         "closure_cell", "c cell fs l", "r.py:6",
         "clear fs when done: the lambda keeps it through its closure"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_closure_cell(void **state)
{
    static const struct cut_case cases[] = {
        {"a closure stored in what it captures, two objects on",
         "code cb k.py:6 run.<locals>.cb; o Job; q Queue; t Tensor 4096;"
         "f function code=cb; cl tuple; c cell; o .queue q; q .cb f;"
         "f __closure__ cl; cl cell:job c; c cell:job o; o .t t",
         "closure_cell", "c cell job o", "k.py:6",
         "capture weakref.ref(job) in cb, or set Queue.cb = None when done"},
        {"a frame's own cell, without a function",
         "code run k.py:6 run; store run cell job - 8; fr frame code=run;"
         "c cell; o Job; t Tensor 4096; fr local:job c; c cell:job o;"
         "o .frame fr; fr local:x t",
         "closure_cell", "c cell job o", "k.py:8",
         "set job = None when done: the cell that closures share keeps it"},
        {"look-alike: the cell hangs off the cycle",
         "code cb k.py:6 run.<locals>.cb; o Job; p Job; t Tensor 4096;"
         "f function code=cb; c cell; o .cb f; f __closure__ c; c cell:t t;"
         "o .owner p; p .job o",
         "back_link", "o .owner p", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hook_captures_owner),
        cmocka_unit_test(test_hook_tables),
        cmocka_unit_test(test_packed_output),
        cmocka_unit_test(test_lambda_on_self),
        cmocka_unit_test(test_other_captures),
        cmocka_unit_test(test_bound_method_on_self),
        cmocka_unit_test(test_partial_on_self),
        cmocka_unit_test(test_exception_in_frame),
        cmocka_unit_test(test_exception_on_self),
        cmocka_unit_test(test_frame_in_local),
        cmocka_unit_test(test_generator_holds_itself),
        cmocka_unit_test(test_class_in_function),
        cmocka_unit_test(test_recursive_closure),
        cmocka_unit_test(test_closure_cell),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
