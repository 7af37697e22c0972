/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The rules, row by row: the obvious program, two that differ from it, and at
 * least one that looks alike and must be told apart. */

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
        {"look-alike: the function captures another object of the cycle",
         TRAINER CLOSURE "p Pool; o .cb f; o .pool p; c cell:pool p;"
                         "p .trainer o",
         "closure_cell", "c cell pool p", "train.py:13",
         "capture weakref.ref(pool) in the lambda, or set pool = None when "
         "done"},
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
         TRAINER "p partial; m method; l list; k dict; o .jobs l; l [0] p;"
                 "p func m; p args k; m __self__ o",
         "partial_on_self", "m __self__ o", "",
         "give the partial weakref.ref of Trainer, or clear .jobs when done"},
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
         "`del err` at the end of run: the exception keeps the frame, and the "
         "frame keeps it"},
        {"errors.append(e) in a list, raised two calls below",
         RAISES "code deep e.py:40 deep; in frame code=deep; tb2 traceback;"
                "l list; tb tb_next tb2; tb2 tb_frame in; in f_back fr;"
                "fr local:err l; l [0] e",
         "exception_in_frame", "fr local err l", "e.py:15", NULL},
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
        {"look-alike: self.err = e, the frame only has self",
         "code run e.py:10 Job.run; store run attr err self 14;"
         "methods Job run; o Job; fr frame code=run; t Tensor 4096;"
         "fr local:self o; fr local:x t; e ValueError; tb traceback;"
         "o .err e; e __traceback__ tb; tb tb_frame fr",
         "exception_on_self", "o .err e", "e.py:14",
         "store the exception's with_traceback(None) in .err, or set .err = "
         "None when done: its traceback keeps a frame that keeps the Job"},
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
         "`del here` at the end of run: a frame in its own local keeps every "
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
         "call batches.close() when done, or do not store the generator in "
         "what it refers to"},
        {"self.runner = self.run(), a coroutine behind a task",
         "code run g.py:9 Job.run; code start g.py:4 Job.start;"
         "store start attr task self 5; methods Job start run;"
         "g coroutine code=run; o Job; k Task; t Tensor 4096;"
         "g local:self o; g local:x t; o .task k; k ref g",
         "generator_holds_itself", "o .task k", "g.py:5",
         "call run.close() when done, or do not store the coroutine in what "
         "it refers to"},
        {"an async generator in a dict of its own, found under another name",
         "code gen g.py:9 stream; code main g.py:15 main;"
         "store main item - registry 18; site s gen:10 main:19;"
         "g async_generator code=gen; d dict; t Tensor 4096 site=s;"
         "g local:table d; g local:x t; d ['me'] g",
         "generator_holds_itself", "d ['me'] g", "g.py:18",
         "call stream.aclose() when done, or do not store the async generator "
         "in what it refers to"},
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
         "move the lambda to module level or pass it as an argument: it "
         "refers to itself through its closure"},
        {"look-alike: the cell holds a list that holds the function",
         "code l r.py:6 run.<locals>.<lambda>; f function code=l; c cell;"
         "l list; t Tensor 4096; f __closure__ c; c cell:fs l; l [0] f;"
         "l [1] t",
         "closure_cell", "c cell fs l", "r.py:6",
         "set fs = None when done: the lambda keeps it through its closure"},
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
         "capture weakref.ref(job) in cb, or set job = None when done"},
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

static void
test_self_reference(void **state)
{
    static const struct cut_case cases[] = {
        {"self.next = self",
         "code init s.py:3 Ring.__init__; store init attr next self 5;"
         "methods Ring init; o Ring; t Tensor 4096; o .next o; o .slot t",
         "self_reference", "o .next o", "s.py:5",
         "make .next a weakref.ref, or set it to None when done"},
        {"self.nodes.append(self), the list made elsewhere",
         "code init s.py:3 Ring.__init__; store init attr nodes self 4;"
         "code link s.py:8 Ring.link; store link call append nodes 9;"
         "methods Ring init link; o Ring; l list; t Tensor 4096; o .nodes l;"
         "l [0] o; o .slot t",
         "self_reference", "l [0] o", "s.py:9",
         "keep weakref.ref objects in .nodes, or clear it when done"},
        {"a module that is its own child",
         "code init s.py:3 Net.__init__; store init attr me self 4;"
         "methods Net init; o Net; d dict; ms dict; t Tensor 4096;"
         "o __dict__ d; d ['_modules'] ms; ms ['me'] o; d ['t'] t",
         "self_reference", "ms ['me'] o", "s.py:4",
         "make .me a weakref.ref, or set it to None when done"},
        {"look-alike: an equal object of the same class",
         "o Ring; p Ring; t Tensor 4096; o .next p; p .next o; o .slot t",
         "back_link", "p .next o", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_back_link(void **state)
{
    static const struct cut_case cases[] = {
        {"child.parent, among a list of children",
         "code init b.py:3 Child.__init__; store init attr parent self 4;"
         "methods Child init; p Parent; l list; c Child; d Child;"
         "t Tensor 4096; p .children l; l [0] c; l [1] d; c .parent p;"
         "d .parent p; d .t t",
         "back_link", "c .parent p", "b.py:4",
         "make Child.parent a weakref.ref, or set it to None when done"},
        {"a.link, b.link = b, a: one line makes both",
         "code init n.py:3 Node.__init__; store init attr tensor self 4;"
         "store init attr link self 5 const; methods Node init;"
         "code pair n.py:9 pair; store pair attr link a 11;"
         "store pair attr link b 11; site s pair:10;"
         "a Node; b Node; t Tensor 4096 site=s; a .link b; b .link a;"
         "a .tensor t",
         "back_link", "b .link a", "n.py:11",
         "make Node.link a weakref.ref, or set it to None when done"},
        {"one function makes both, on two lines: the last closes it",
         "code step n.py:9 step; store step attr peer first 11;"
         "store step attr peer second 12; site s step:10;"
         "a Node; b Node; t Tensor 4096 site=s; a .peer b; b .peer a;"
         "a .tensor t",
         "back_link", "b .peer a", "n.py:12", NULL},
        {"a tensor that refers to its user",
         "code init f.py:9 Handle.__init__; store init attr _modules "
         "flat_param 12; methods Handle init; u Unit; h Handle; l list;"
         "p Parameter 4096; u ._handle h; h .flat_param p; p ._modules l;"
         "l [0] u",
         "back_link", "l [0] u", "f.py:12",
         "make Parameter._modules a weakref.ref, or set it to None when done"},
        {"graph nodes that append each other to lists",
         "code add g.py:3 Graph.add; store add call append edges 5;"
         "store add call append edges 6; methods Graph add;"
         "a Graph; b Graph; la list; lb list; t Tensor 4096; a .edges la;"
         "la [0] b; b .edges lb; lb [0] a; a .t t",
         "back_link", "lb [0] a", "g.py:6",
         "keep weakref.ref objects in Graph.edges, or clear it when done"},
        {"look-alike: nothing but containers",
         "a list; b dict; t Tensor 4096; a [0] b; b ['up'] a; a [1] t",
         "container_cycle", "b ['up'] a", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_container_cycle(void **state)
{
    static const struct cut_case cases[] = {
        {"l.append(l)",
         "code run l.py:3 run; store run call append l 5; site s run:4;"
         "a list; t Tensor 4096 site=s; a [0] t; a [1] a",
         "container_cycle", "a [1] a", "l.py:5",
         "remove the container from itself when done (e.g. clear() it)"},
        {"a dict of dicts; two calls may have done it",
         "code run l.py:3 run; store run item up d 5; store run item k e 7;"
         "site s run:4; a dict; b dict; c tuple; t Tensor 4096 site=s;"
         "a ['k'] b; b ['up'] c; c [0] a; a ['t'] t",
         "container_cycle", "c [0] a", "l.py:5 ? l.py:7 ?", NULL},
        {"a set in a tuple, nothing known of what made it",
         "a set; b tuple; t Tensor 4096; a element b; b [0] a; b [1] t",
         "container_cycle", "a element b", "", NULL},
        {"look-alike: an object among the containers",
         "a set; o Key; t Tensor 4096; a element o; o .all a; o .t t",
         "self_reference", "a element o", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_unknown(void **state)
{
    static const struct cut_case cases[] = {
        {"C objects that refer to each other",
         "a Engine; b Stream; t Tensor 4096; a ref b; b ref a; a ref t",
         "unknown", "", "",
         "the cycle runs through: Engine, Stream; break one of these "
         "references"},
        {"look-alike: one of the references has a name",
         "a Engine; b Stream; t Tensor 4096; a .stream b; b ref a; a ref t",
         "back_link", "a .stream b", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hook_captures_owner),
        cmocka_unit_test(test_lambda_on_self),
        cmocka_unit_test(test_bound_method_on_self),
        cmocka_unit_test(test_partial_on_self),
        cmocka_unit_test(test_exception_in_frame),
        cmocka_unit_test(test_frame_in_local),
        cmocka_unit_test(test_generator_holds_itself),
        cmocka_unit_test(test_class_in_function),
        cmocka_unit_test(test_recursive_closure),
        cmocka_unit_test(test_closure_cell),
        cmocka_unit_test(test_self_reference),
        cmocka_unit_test(test_back_link),
        cmocka_unit_test(test_container_cycle),
        cmocka_unit_test(test_unknown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
