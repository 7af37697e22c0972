/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Where tensors get longer on objects that stay, the attribute is what piles
 * up, not who has the objects. */

#include "way_builder.h"

#include "../graph/container.h"

struct row {
    const char *way;
    size_t at;
    const char *category;
    size_t step; /* 0: as it is */
};

static const struct row rows[] = {
    {"F||a.py:3 main;O|local net|Net;D|._modules|dict of 4|4;O|['3']|Layer;"
     "T|.past|Tensor [9, 4]",
     2, CM_HOLDING_LARGER, 4},
    {"F||a.py:3 main;O|local net|Net;D|._modules|dict of 4|4;O|['3']|Layer;"
     "D|._buffers|dict of 1|1;T|['past']|Tensor [9, 4]",
     2, CM_HOLDING_LARGER, 5},
    {"F||a.py:3 main;O|local net|Net;O|.b|Layer;T|.past|Tensor [9, 4]", 1,
     CM_HOLDING_LARGER, 3},
    /* more of them than before */
    {"F||a.py:3 main;O|local net|Net;O|.b|Layer;T|.past|Tensor [9, 4]", 1,
     NULL, 0},
    /* it is there already; by a key; a tensor's own */
    {"F||a.py:3 main;O|local net|Net;O|.b|Layer;T|.past|Tensor [9, 4]", 3,
     CM_HOLDING_LARGER, 0},
    {"F||a.py:3 main;O|local net|Net;D|.sums|dict of 4|4;"
     "T|['a']|Tensor [9, 4]",
     2, CM_HOLDING_LARGER, 0},
    {"F||a.py:3 main;O|local net|Net;T|.weight|Tensor [4];T|.grad|Tensor [4]",
     1, CM_HOLDING_LARGER, 0},
};

static void
test_what_gets_longer_on_objects_that_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct way way;
        way_init(&way, rows[i].way, rows[i].at);
        way.holding.category = rows[i].category;
        assert_int_equal(cm_container_of_longer(&way.holding), rows[i].step);
        cm_records_free(way.records);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_gets_longer_on_objects_that_stay),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
