/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The rules about objects and containers, as t_cut.c for the others. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cut_case.h"

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
        {"setattr(self, name, self), of which the name is not read",
         "code init s.py:3 Ring.__init__; store init call setattr self 5;"
         "store init attr other self 4; methods Ring init; o Ring;"
         "t Tensor 4096; o .next o; o .slot t",
         "self_reference", "o .next o", "s.py:5",
         "make .next a weakref.ref, or set it to None when done"},
        {"vars(self).update(next=self)",
         "code init s.py:3 Ring.__init__; store init call update other 4;"
         "store init call update vars 5; methods Ring init; o Ring;"
         "t Tensor 4096; o .next o; o .slot t",
         "self_reference", "o .next o", "s.py:5", NULL},
        {"vars(self)['next'] = self",
         "code init s.py:3 Ring.__init__; store init item other vars 4;"
         "store init item next vars 5; methods Ring init; o Ring;"
         "t Tensor 4096; o .next o; o .slot t",
         "self_reference", "o .next o", "s.py:5", NULL},
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
test_own_dict(void **state)
{
    static const struct cut_case cases[] = {
        {"self.__dict__ = self",
         "code init c.py:5 Config.__init__;"
         "store init attr __dict__ self 7; methods Config init;"
         "o Config; t Tensor 4096; o ['w'] t; o __dict__ o",
         "own_dict", "o __dict__ o", "c.py:7",
         "give Config a __getattr__ that looks in its items, or keep the "
         "values in a types.SimpleNamespace: a dict that is its own __dict__ "
         "refers to itself"},
        {"done from outside, to one that stands in another's cycle",
         "code make c.py:9 make; store make attr __dict__ box 11;"
         "site s make:12; o Box; p Job; t Tensor 4096 site=s; o ['job'] p;"
         "p .box o; o ['w'] t; o __dict__ o",
         "own_dict", "o __dict__ o", "c.py:11", NULL},
        {"look-alike: the __dict__ is another dict that refers back",
         "code init c.py:5 Config.__init__;"
         "store init attr __dict__ self 7; store init item me names 6;"
         "store init attr me self 8; methods Config init;"
         "o Config; d dict; t Tensor 4096; o __dict__ d; d ['me'] o;"
         "d ['w'] t",
         "self_reference", "d ['me'] o", "c.py:8",
         "make .me a weakref.ref, or set it to None when done"},
        {"look-alike: an item of that name",
         "o Config; t Tensor 4096; o ['w'] t; o ['__dict__'] o", "unknown", "",
         "", NULL},
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
         "keep weakref.ref objects in Parameter._modules, or clear it when "
         "done"},
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
test_ownership(void **state)
{
    static const struct cut_case cases[] = {
        {"a deque of what knows its queue: the queue owns it",
         "code qinit q.py:3 Queue.__init__; code init q.py:6 Job.__init__;"
         "store qinit attr q self 4 made; store init attr queue self 7;"
         "store init call append q 9; methods Queue qinit; methods Job init;"
         "q Queue; d collections.deque; j Job; t Tensor 4096; q .q d; d [0] j;"
         "j .queue q; j .t t",
         "back_link", "j .queue q", "q.py:7",
         "make Job.queue a weakref.ref, or set it to None when done"},
        {"a submodule is its owner's, whatever the way back is called",
         "code init m.py:3 Head.__init__; code minit m.py:8 Model.__init__;"
         "store init item model __dict__ 5; store minit attr head self 10 "
         "made;"
         "methods Head init; methods Model minit; m Model; md dict; ms dict;"
         "h Head; hd dict; t Tensor 4096; m __dict__ md; md ['_modules'] ms;"
         "ms ['head'] h; h __dict__ hd; hd ['model'] m; hd ['w'] t",
         "back_link", "hd ['model'] m", "m.py:5",
         "make Head.model a weakref.ref, or set it to None when done"},
        {"made where it is stored: nobody else has it",
         "code init c.py:3 Req.__init__; store init attr ctx self 6 made;"
         "methods Req init; r Req; c Context; t Tensor 4096; r .ctx c;"
         "c ref r; r .t t",
         "back_link", "r .ctx c", "c.py:6", "set Req.ctx = None when done"},
        {"a registry of the program's own class, known by its items",
         "code init r.py:7 Item.__init__; store init attr registry self 8;"
         "methods Item init; r Registry; a Item; b Item; t Tensor 4096;"
         "r ['a'] a; r ['b'] b; a .registry r; b .registry r; a .t t",
         "back_link", "a .registry r", "r.py:8",
         "make Item.registry a weakref.ref, or set it to None when done"},
        {"look-alike: the item has a table of its own, and is in it",
         "code init r.py:7 Item.__init__; store init attr table self 8;"
         "methods Item init; r Table; a Item; b Item; t Tensor 4096;"
         "r ['a'] a; r ['b'] b; a .table r; b .other r; a .t t",
         "back_link", "r ['a'] a", "r.py:8",
         "put weakref.ref of Item into Item.table, or set Item.table = None "
         "when done"},
        {"what can have no weak reference",
         "unweakable Slots; code init c.py:3 Item.__init__;"
         "store init attr owner self 6; methods Item init; i Item; s Slots;"
         "t Tensor 4096; i .owner s; s .item i; i .t t",
         "back_link", "i .owner s", "c.py:6",
         "set Item.owner = None when done"},
        {"a Function's output on its context",
         "code f c.py:5 F.forward; store f attr y ctx 6; site s f:6;"
         "x FBackward; y Tensor 4096 site=s; x .y y; y ref x",
         "back_link", "x .y y", "c.py:6",
         "keep it by ctx.save_for_backward() instead of in FBackward.y"},
        {"the same in a list, ctx.kept = [x, y]",
         "code f c.py:5 F.forward; store f attr kept ctx 6; site s f:6;"
         "x FBackward; y Tensor 4096 site=s; k list; x .kept k; k [0] y;"
         "y ref x",
         "back_link", "k [0] y", "c.py:6",
         "keep it by ctx.save_for_backward() instead of in FBackward.kept"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_library_object_between(void **state)
{
    static const struct cut_case cases[] = {
        {"callbacks in a deque: theirs is the way back",
         "code con s.py:4 Signal.connect; store con call append slots 4;"
         "methods Signal con; w Widget; s Signal; d collections.deque;"
         "m method; t Tensor 4096; w .changed s; s .slots d; d [0] m;"
         "m __self__ w; w .t t",
         "back_link", "d [0] m", "s.py:4",
         "keep weakref.WeakMethod objects in Signal.slots, or clear it when "
         "done"},
        {"a mock that knows its parent, and what it was called with",
         "code init e.py:3 Engine.__init__; store init attr log self 5 made;"
         "methods Engine init; library Mock unittest.mock; e Engine; a Mock;"
         "b Mock; l list; t Tensor 4096; e .log a; a .note b; b .parent a;"
         "a .calls l; l [0] e; e .t t",
         "back_link", "l [0] e", "e.py:5",
         "put weakref.ref of Engine into Engine.log, or set Engine.log = None "
         "when done"},
        {"look-alike: nothing but the library's own",
         "library Tag bs4; a Tag; b Tag; t Tensor 4096; a .kid b; b .parent a;"
         "b .t t",
         "back_link", "b .parent a", "", NULL},
        {"a loader that was given its data, in a sampler of its own",
         "code init d.py:3 Data.__init__; store init attr loader self 5 made;"
         "methods Data init; library Loader torch.utils;"
         "library Sampler torch.utils; d Data; l Loader; s Sampler;"
         "t Tensor 4096; d .loader l; l .dataset d; l .sampler s; s .source d;"
         "d .t t",
         "back_link", "s .source d", "d.py:5",
         "set Data.loader = None when done"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

#define BLOCKS                                                                \
    "code init n.py:3 Block.__init__; store init attr net self 5;"            \
    "methods Block init; n Net; nd dict; nm dict; l ModuleList; ld dict;"     \
    "lm dict; b Block; bd dict; t Tensor 4096; n __dict__ nd;"                \
    "nd ['_modules'] nm; nm ['blocks'] l; l __dict__ ld;"                     \
    "ld ['_modules'] lm; lm ['0'] b; b __dict__ bd; bd ['w'] t;"

static void
test_nested_modules(void **state)
{
    static const struct cut_case cases[] = {
        {"a block in a ModuleList has the model in a list",
         BLOCKS "k list; bd ['net'] k; k [0] n", "back_link", "k [0] n",
         "n.py:5",
         "keep weakref.ref objects in Block.net, or clear it when done"},
        {"the same, and the list is a library's own",
         "library ModuleList torch.nn; library dict builtins;" BLOCKS
         "k list; bd ['net'] k; k [0] n",
         "back_link", "k [0] n", "n.py:5", NULL},
        {"it has the model by a call around the module's own",
         BLOCKS "bd ['net'] n", "back_link", "bd ['net'] n", "n.py:5",
         "make Block.net a weakref.ref, or set it to None when done"},
        {"a head has the model in a list, the model's table has the weights",
         "library dict builtins; code init n.py:3 Head.__init__;"
         "store init attr net self 5; methods Head init; n Net; nd dict; nm "
         "dict; h Head; hd dict; k list;"
         "t Tensor 4096; n __dict__ nd; nd ['_modules'] nm; nm ['w'] t;"
         "nm ['head'] h; h __dict__ hd; hd ['net'] k; k [0] n",
         "back_link", "k [0] n", "n.py:5",
         "keep weakref.ref objects in Head.net, or clear it when done"},
        {"the same without the list",
         "library dict builtins; code init n.py:3 Head.__init__;"
         "store init attr net self 5; methods Head init; n Net; nd dict;"
         "nm dict; h Head; hd dict; t Tensor 4096; n __dict__ nd;"
         "nd ['_modules'] nm; nm ['w'] t; nm ['head'] h; h __dict__ hd;"
         "hd ['net'] n",
         "back_link", "hd ['net'] n", "n.py:5",
         "make Head.net a weakref.ref, or set it to None when done"},
        {"look-alike: it has the list that it stands in",
         BLOCKS "bd ['net'] l; l .of n", "back_link", "bd ['net'] l", "n.py:5",
         NULL},
        {"a wrapper, by its name",
         "w Wrapped; m Linear; t Tensor 4096; w ._module m; m ._wrapper w;"
         "m .w t",
         "back_link", "m ._wrapper w", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_what_else_leads_back(void **state)
{
    static const struct cut_case cases[] = {
        {"two types know the trainer",
         "code a a.py:3 Conn.__init__; store a attr owner self 4;"
         "code b b.py:7 Callback.setup; store b attr trainer self 8;"
         "methods Conn a; methods Callback b; r Trainer; c Conn; l list;"
         "k Callback; t Tensor 4096; r .conn c; r .callbacks l; l [0] k;"
         "c .owner r; k .trainer r; r .x t",
         "back_link", "c .owner r", "a.py:4",
         "make Conn.owner a weakref.ref, or set it to None when done; "
         "Callback.trainer leads back too (b.py:8)"},
        {"another class sets its own of that name",
         "code a a.py:3 Callback.setup; store a attr trainer self 4;"
         "code b b.py:7 Trainer.setup; store b attr trainer card 8;"
         "methods Callback a; methods Trainer b; r Trainer; c Card; l list;"
         "k Callback; t Tensor 4096; r .card c; r .callbacks l; l [0] k;"
         "k .trainer r; c .trainer r; r .x t",
         "back_link", "k .trainer r", "a.py:4 ? b.py:8 ?",
         "make Callback.trainer a weakref.ref, or set it to None when done; "
         "Card.trainer leads back too (b.py:8)"},
        {"two lambdas of one object; of the other no line is known",
         "code f a.py:5 A.__init__.<locals>.<lambda>; o A; t Tensor 4096;"
         "o .x t; f function code=f; g function code=f; p cell; o .one f;"
         "o .two g; f __closure__ p; g __closure__ p; p cell:self o",
         "lambda_on_self", "p cell self o", "a.py:5",
         "capture weakref.ref(self) in the lambda, or set self.one = None "
         "when done; A.two leads back too"},
        {"look-alike: a doubly linked list has one name back",
         "a Node; b Node; c Node; t Tensor 4096; a .next b; b .next c;"
         "b .prev a; c .prev b; a .x t",
         "back_link", "b .prev a", "",
         "make Node.prev a weakref.ref, or set it to None when done"},
        {"look-alike: the other reference leads away",
         "r Trainer; c Conn; k Log; t Tensor 4096; r .conn c; c .owner r;"
         "c .log k; r .log k; k .x t",
         "back_link", "c .owner r", "",
         "make Conn.owner a weakref.ref, or set it to None when done"},
        {"look-alike: a library's object has the other, out of sight",
         "library Timer threading; r Trainer; c Conn; k Timer; t Tensor 4096;"
         "r .conn c; c .owner r; r ref k; k .job r; r .x t",
         "back_link", "c .owner r", "",
         "make Conn.owner a weakref.ref, or set it to None when done"},
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
        {"a tree of dicts, of which each knows the one above",
         "code run l.py:3 run; store run item up d 5; site s run:4;"
         "a dict; l list; b dict; t Tensor 4096 site=s; a ['kids'] l;"
         "l [0] b; b ['up'] a; a ['t'] t",
         "container_cycle", "b ['up'] a", "l.py:5",
         "set ['up'] = None in each dict when done"},
        {"a dict of dicts; two calls may have done it",
         "code run l.py:3 run; store run item up d 5; store run item k e 7;"
         "site s run:4; a dict; b dict; c tuple; t Tensor 4096 site=s;"
         "a ['k'] b; b ['up'] c; c [0] a; a ['t'] t",
         "container_cycle", "c [0] a", "l.py:5 ? l.py:7 ?", NULL},
        {"of several fillings the one with the key",
         "code run l.py:3 run; store run item up kid 5;"
         "store run call append kids 6; site s run:4; a dict; k list; b dict;"
         "t Tensor 4096 site=s; a ['kids'] k; k [0] b; b ['up'] a; a ['t'] t",
         "container_cycle", "b ['up'] a", "l.py:5", NULL},
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
        cmocka_unit_test(test_self_reference),
        cmocka_unit_test(test_own_dict),
        cmocka_unit_test(test_back_link),
        cmocka_unit_test(test_ownership),
        cmocka_unit_test(test_library_object_between),
        cmocka_unit_test(test_nested_modules),
        cmocka_unit_test(test_what_else_leads_back),
        cmocka_unit_test(test_container_cycle),
        cmocka_unit_test(test_unknown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
