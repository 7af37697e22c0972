/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "fail_each.h"

#include "../detector/shape.h"

static const struct row {
    const char *text;
    uint64_t bytes;
} rows[] = {
    {"[256] float32", 1024},
    {"[2, 128] bfloat16", 512},
    {"[64] bool", 64},
    {"[8] float8_e4m3fn", 8},
    {"[3] complex128", 48},
    {"[400, 256] int64", 819200},
    {"[] float32", 0}, /* scalars have no "[" of sizes to go by */
    {"[0] float32", 0},
    {"[4, 0] float32", 0},
    {"[256]", 0},
    {"[256] ", 0},
    {"[256] odd", 0},
    {"[256] float256", 0},
    {"[256, float32", 0},
    {"[256 float32", 0},
    {"[256", 0},
    {"[,] float32", 0},
    {"[281474976710656, 281474976710656] float32", 0},
    {"float32", 0},
    {"[", 0},
    {"", 0},
};

static void
tells_the_bytes_of_what_is_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(cm_shape_bytes(rows[i].text), rows[i].bytes);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_the_bytes_of_what_is_shown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
