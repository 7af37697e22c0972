/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "../reports/collector.h"

static void
expect_advice(const char *json, enum cm_collector_advice expected,
              const char *text)
{
    struct cm_leak leak = leak_of(json);
    struct cm_buffer out = {0};

    assert_int_equal(cm_collector_judge(&leak), expected);
    cm_collector_add_advice(&leak, &out);
    assert_string_equal(cm_buffer_text(&out), text);
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_may_go_when_it_never_freed_device_memory(void **state)
{
    (void)state;
    expect_advice(LEAK_GROWTH, CM_COLLECTOR_MAY_GO,
                  "For device memory automatic collection may be switched "
                  "off: no collection freed any, and 36.0 ms went into 40 of "
                  "them. They freed 680 other objects: call gc.collect() at "
                  "a quiet moment instead, as between epochs.");
    expect_advice(LEAK_HEAD "'collector':{'seen':9,'duration_us':5}}",
                  CM_COLLECTOR_UNKNOWN, "");
    expect_advice(
        LEAK_HEAD "'collector':{'seen':10,'duration_us':5}}",
        CM_COLLECTOR_MAY_GO,
        "For device memory automatic collection may be switched "
        "off: no collection freed any, and 5 \u00b5s went into 10 of "
        "them.");
}

static void
test_stays_while_cycles_hold_device_memory(void **state)
{
    (void)state;
    expect_advice(LEAK_LAMBDA, CM_COLLECTOR_KEEP,
                  "Leave automatic collection on until the cycles are cut: "
                  "32 MiB of device memory waited for it.");
    expect_advice(LEAK_HEAD "'collector':{'seen':90,'device_bytes_freed':"
                            "5368709120}}",
                  CM_COLLECTOR_KEEP,
                  "Leave automatic collection on until the cycles are cut: "
                  "5.0 GiB of device memory came back only by it.");
}

static void
test_is_off_and_dead_memory_waits(void **state)
{
    (void)state;
    expect_advice(LEAK_HEAD "'collector':{'off':true},"
                            "'devices':[{'name':'cuda:0',"
                            "'dead_peak':2147483648}]}",
                  CM_COLLECTOR_IS_OFF,
                  "Automatic collection is off, and 2.0 GiB of device memory "
                  "was dead at one moment: call gc.collect() between "
                  "iterations, or cut the cycles.");
    expect_advice(LEAK_HEAD "'collector':{'off':true,'seen':50}}",
                  CM_COLLECTOR_UNKNOWN, "");
}

/* What CUMEM_AUTO_COLLECT gave back is no doing of automatic collection. */
static void
test_is_left_to_cumem(void **state)
{
    (void)state;
    expect_advice(LEAK_HEAD "'collector':{'off':true,'seen':2,"
                            "'device_bytes_freed':5368709120},"
                            "'looks':{'collections':1,"
                            "'saved_bytes':2791728742}}",
                  CM_COLLECTOR_SAVES,
                  "Automatic collection is off. Leave CUMEM_AUTO_COLLECT set "
                  "until the cycles are cut: 2.6 GiB of device memory came "
                  "back only by it.");
    expect_advice(LEAK_HEAD "'collector':{'seen':1,"
                            "'device_bytes_freed':1048576},"
                            "'looks':{'saved_bytes':1048576}}",
                  CM_COLLECTOR_SAVES,
                  "Leave CUMEM_AUTO_COLLECT set until the cycles are cut: "
                  "1.0 MiB of device memory came back only by it.");
    expect_advice(LEAK_HEAD "'collector':{'seen':2,"
                            "'device_bytes_freed':3145728},"
                            "'looks':{'saved_bytes':1048576}}",
                  CM_COLLECTOR_KEEP,
                  "Leave automatic collection on until the cycles are cut: "
                  "2.0 MiB of device memory came back only by it.");
}

/* A file of an earlier version has the list alone. */
static void
test_sum_of_the_list(void **state)
{
    struct cm_leak leak =
        leak_of(LEAK_HEAD "'collections':[{'duration_us':7,'collected':1},"
                          "{'duration_us':9,'device_bytes_freed':3}]}");

    (void)state;
    assert_true(leak.collector.known);
    assert_int_equal(leak.collector.seen, 2);
    assert_int_equal(leak.collector.duration_us, 16);
    assert_int_equal(leak.collector.longest_us, 9);
    assert_int_equal(leak.collector.collected, 1);
    assert_int_equal(leak.collector.device_bytes_freed, 3);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_may_go_when_it_never_freed_device_memory),
        cmocka_unit_test(test_stays_while_cycles_hold_device_memory),
        cmocka_unit_test(test_is_off_and_dead_memory_waits),
        cmocka_unit_test(test_is_left_to_cumem),
        cmocka_unit_test(test_sum_of_the_list),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
