/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * What the sentences say that no rule does: which part can be weak, and what is
 * cleared.  The rules: t_cut.c and t_back_link.c. */

#include <setjmp.h>
#include <stdarg.h>
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
