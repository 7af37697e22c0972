/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "fail_each.h"

/* What a reader says of a document. */
static void
expect_refused(const char *text, const char *expected)
{
    char error[CM_LEAK_JSON_ERROR_BYTES];
    struct cm_leak leak = {0};

    assert_int_equal(leak_parse(text, &leak, error), CM_BAD_INPUT);
    assert_string_equal(error, expected);
    assert_null(leak.texts);
}

static void
test_memory_reads_back(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY), again = {0};
    struct cm_buffer once = {0}, twice = {0};
    char error[CM_LEAK_JSON_ERROR_BYTES];
    const struct cm_leak_device *device;

    (void)state;
    leak.devices[0].pools[0].expandable = true;
    leak.devices[0].unasked = true;
    assert_int_equal(cm_leak_json_write(&leak, &once), CM_OK);
    assert_int_equal(cm_leak_json_read(once.bytes, once.length, &again, error),
                     CM_OK);
    assert_int_equal(cm_leak_json_write(&again, &twice), CM_OK);
    assert_string_equal(once.bytes, twice.bytes);
    device = &again.devices[0];
    assert_int_equal(device->asked_bytes, UINT64_C(8) << 30);
    assert_int_equal(device->framework_count, 2);
    assert_int_equal(device->frameworks[1].allocated, 0);
    assert_true(device->frameworks[1].reserved == CM_LEAK_UNKNOWN);
    assert_int_equal(device->pools[0].segments, 214);
    assert_true(device->pools[0].expandable);
    assert_true(device->unasked);
    assert_int_equal(device->iteration_count, 2);
    assert_int_equal(device->iterations[4], 1);
    assert_int_equal(device->iterations[7], -1);
    assert_int_equal(again.storages[0].thread, 4711);
    assert_int_equal(again.storages[0].block_bytes, 512);
    assert_true(again.storages[0].awaited);
    assert_string_equal(cm_leak_text(&again, again.storages[0].pool),
                        "(0, 1)");
    assert_int_equal(again.held[0].site, 1);
    assert_true(again.held[0].awaited);
    assert_int_equal(again.held[1].site, 0);
    cm_leak_release(&leak);
    cm_leak_release(&again);
    cm_buffer_release(&once);
    cm_buffer_release(&twice);
}

/* A file of an earlier version says nothing of memory, nor do we. */
static void
test_what_is_not_known_is_left_out(void **state)
{
    struct cm_leak leak = leak_of(LEAK_LAMBDA);
    static const char *const keys[] = {
        "cached",     "pending_free", "private_pools", "outside_frameworks",
        "free",       "largest_free", "asked_bytes",   "other_processes",
        "frameworks", "pools",        "iterations",    "held",
        "thread",     "awaited",      "pool",          "timeline",
        "collector",  "looks"};
    struct cm_buffer out = {0};

    (void)state;
    assert_true(leak.devices[0].cached == CM_LEAK_UNKNOWN);
    assert_true(leak.devices[0].free == CM_LEAK_UNKNOWN);
    assert_int_equal(leak.devices[0].asked_bytes, 0);
    assert_int_equal(cm_leak_json_write(&leak, &out), CM_OK);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char key[40];

        snprintf(key, sizeof(key), "\"%s\":", keys[i]);
        assert_null(strstr(out.bytes, key));
    }
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_refuses_wrong_memory(void **state)
{
    (void)state;
    expect_refused(LEAK_HEAD "'devices':[{},{'pools':[{},{'segments':-1}]}]}",
                   "devices[1].pools[1].segments: expected a whole number "
                   "from 0 to 2^53");
    expect_refused(LEAK_HEAD "'devices':[{'frameworks':[7]}]}",
                   "devices[0].frameworks[0]: expected an object");
    expect_refused(LEAK_HEAD "'devices':[{'pools':{}}]}",
                   "devices[0].pools: expected an array");
    expect_refused(LEAK_HEAD "'devices':[{'iterations':[[0,1,2,3],[0,1,2]]}]}",
                   "devices[0].iterations[1]: expected [number, start, end, "
                   "peak]");
    expect_refused(LEAK_HEAD "'devices':[{'iterations':[{'a':1,'b':2,'c':3,"
                             "'d':4}]}]}",
                   "devices[0].iterations[0]: expected [number, start, end, "
                   "peak]");
    expect_refused(LEAK_HEAD "'devices':[{'iterations':[[0,1,2,-3]]}]}",
                   "devices[0].iterations[0]: expected whole numbers from 0 "
                   "to 2^53, or null");
    expect_refused(LEAK_HEAD "'devices':[{'cached':1e17}]}",
                   "devices[0].cached: expected a whole number from 0 to "
                   "2^53");
    expect_refused(LEAK_HEAD "'held':[{'site':3}]}",
                   "held[0].site: site 3 does not exist");
    expect_refused(LEAK_HEAD "'held':{}}", "held: expected an array");
}

static void
test_growth_reads_back(void **state)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH), again = {0};
    struct cm_buffer once = {0}, twice = {0};
    char error[CM_LEAK_JSON_ERROR_BYTES];
    const struct cm_leak_growth *growth;
    const struct cm_leak_timeline_device *device;

    (void)state;
    leak.growth[0].holder_iteration = 12;
    assert_int_equal(cm_leak_json_write(&leak, &once), CM_OK);
    assert_int_equal(cm_leak_json_read(once.bytes, once.length, &again, error),
                     CM_OK);
    assert_int_equal(cm_leak_json_write(&again, &twice), CM_OK);
    assert_string_equal(once.bytes, twice.bytes);
    assert_null(cm_leak_check(&again));
    growth = &again.growth[0];
    assert_int_equal(growth->holder_iteration, 12);
    assert_int_equal(again.growth[1].holder_iteration, -1);
    assert_int_equal(again.growth_count, 5);
    assert_int_equal(growth->site, 1);
    assert_int_equal(growth->holder_count, 4);
    assert_string_equal(cm_leak_text(&again, growth->holder[2].edge), "[0]");
    assert_int_equal(growth->holder_at, 1);
    assert_int_equal(growth->retained_bytes, 1715470336);
    assert_true(again.growth[1].retained_bytes == CM_LEAK_UNKNOWN);
    assert_true(growth->made_at[0].certain);
    assert_true(growth->bytes_per_iteration == 4194304);
    assert_true(growth->count_per_iteration == 1.5);
    assert_true(growth->confidence == 0.998);
    assert_true(growth->seconds_to_full == 3247.5);
    assert_int_equal(growth->series[2][2], 1715470336);
    assert_true(again.growth[1].awaited);
    assert_int_equal(again.growth[1].name_count, 2);
    assert_int_equal(again.growth[1].iterations_to_full, -1);
    assert_true(again.growth[1].seconds_to_full < 0);
    assert_int_equal(again.growth[3].peak_bytes, 203423744);
    assert_true(again.growth[3].fingerprint == leak.growth[3].fingerprint);
    device = &again.timeline.devices[0];
    assert_int_equal(device->point_count, 3);
    assert_true(device->seconds[2] == 31.125);
    assert_int_equal(device->bytes[5], 1715470336);
    assert_int_equal(again.collector.seen, 40);
    cm_leak_release(&leak);
    cm_leak_release(&again);
    cm_buffer_release(&once);
    cm_buffer_release(&twice);
}

static void
test_reals_are_whole_where_they_can_be(void **state)
{
    struct cm_leak leak =
        leak_of(LEAK_HEAD "'growth':[{'verdict':'ok','bytes_per_iteration':"
                          "-0.0004,'count_per_iteration':-2.5,"
                          "'seconds_to_full':1125899906842624}]}");
    struct cm_buffer out = {0};

    (void)state;
    assert_int_equal(cm_leak_json_write(&leak, &out), CM_OK);
    assert_non_null(strstr(out.bytes, "\"bytes_per_iteration\":0,"));
    assert_non_null(strstr(out.bytes, "\"count_per_iteration\":-2.500,"));
    assert_non_null(
        strstr(out.bytes, "\"seconds_to_full\":1125899906842624,"));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_refuses_wrong_growth(void **state)
{
    (void)state;
    expect_refused(LEAK_HEAD "'growth':[{'verdict':'ok'},{}]}",
                   "growth[1].verdict: expected growing, leak, lingering, "
                   "settled or ok");
    expect_refused(LEAK_HEAD "'growth':[{'verdict':'Leak'}]}",
                   "growth[0].verdict: expected growing, leak, lingering, "
                   "settled or ok");
    expect_refused(LEAK_HEAD "'growth':[{'verdict':'ok','site':4}]}",
                   "growth[0].site: site 4 does not exist");
    expect_refused(LEAK_HEAD "'growth':[{'verdict':'ok','confidence':1.01}]}",
                   "growth[0].confidence: expected a number from 0 to 1");
    expect_refused(LEAK_HEAD
                   "'growth':[{'verdict':'ok','bytes_per_iteration':1e999}]}",
                   "growth[0].bytes_per_iteration: expected a number from "
                   "-1125899906842624 to 1125899906842624");
    expect_refused(LEAK_HEAD
                   "'growth':[{'verdict':'ok','series':[[1,2,3],[0,2,3]]}]}",
                   "growth[0].series[1]: expected an iteration not before the "
                   "last");
    expect_refused(LEAK_HEAD "'growth':[{'verdict':'ok','series':[[1,2]]}]}",
                   "growth[0].series[0]: expected [iteration, count, bytes]");
    expect_refused(LEAK_HEAD
                   "'growth':[{'verdict':'ok','series':[[1,2,null]]}]}",
                   "growth[0].series[0]: expected [iteration, count, bytes]");
    expect_refused(LEAK_HEAD "'growth':[{'verdict':'ok','names':['a',7]}]}",
                   "growth[0].names[1]: expected a text");
    expect_refused(LEAK_HEAD "'growth':[{'verdict':'ok','holder':[{},7]}]}",
                   "growth[0].holder[1]: expected an object");
    expect_refused(LEAK_HEAD "'growth':[{'verdict':'ok','holder':[{}],"
                             "'holder_at':1}]}",
                   "growth[0].holder_at: holder 1 does not exist");
    expect_refused(LEAK_HEAD "'growth':{}}", "growth: expected an array");
}

static void
test_refuses_a_wrong_timeline(void **state)
{
#define DEVICE LEAK_HEAD "'timeline':{'by':'step','devices':["
    (void)state;
    expect_refused(LEAK_HEAD "'timeline':7}", "timeline: expected an object");
    expect_refused(LEAK_HEAD "'timeline':{'devices':7}}",
                   "timeline.devices: expected an array");
    expect_refused(LEAK_HEAD "'timeline':{'by':'night'}}",
                   "timeline.by: expected step, optimizer or time");
    expect_refused(DEVICE "7]}}", "timeline.devices[0]: expected an object");
    expect_refused(DEVICE "{'categories':['a'],'points':[[0,0,1],[1,0]]}]}}",
                   "timeline.devices[0].points[1]: expected [iteration, "
                   "seconds, bytes of each category]");
    expect_refused(DEVICE "{'categories':['a'],'points':[[0,0,-1]]}]}}",
                   "timeline.devices[0].points[0]: expected [iteration, "
                   "seconds, bytes of each category]");
    expect_refused(DEVICE "{'categories':['a'],'points':[[1,0,1],[0,0,1]]}]}}",
                   "timeline.devices[0].points[1]: expected a point not "
                   "before the last");
    expect_refused(DEVICE "{'categories':['a'],'points':[[1,2,1],[1,1,1]]}]}}",
                   "timeline.devices[0].points[1]: expected a point not "
                   "before the last");
    expect_refused(DEVICE "{},{'points':[[0,0]]}]}}",
                   "timeline.devices[1].points: expected none without "
                   "categories");
    expect_refused(DEVICE "{'categories':['','','','','','','','','','','',"
                          "'','','','','','']}]}}",
                   "timeline.devices[0].categories: expected at most 16");
    expect_refused(LEAK_HEAD "'collector':{'seen':-1}}",
                   "collector.seen: expected a whole number from 0 to 2^53");
    expect_refused(LEAK_HEAD "'looks':[3]}", "looks: expected an object");
    expect_refused(LEAK_HEAD "'looks':{'saved_bytes':0.5}}",
                   "looks.saved_bytes: expected a whole number from 0 to "
                   "2^53");
#undef DEVICE
}

static void
test_looks(void **state)
{
    static const char text[] =
        ",\n\"looks\":{\"count\":3,\"duration_us\":41000,"
        "\"longest_us\":20000,\"skipped\":4,\"collections\":1,"
        "\"saved_bytes\":2791728742,\"growth_count\":2,"
        "\"growth_duration_us\":500000,\"run_us\":130000000}}\n";
    struct cm_leak leak =
        leak_of(LEAK_HEAD "'looks':{'count':3,'duration_us':41000,"
                          "'longest_us':20000,'skipped':4,'collections':1,"
                          "'saved_bytes':2791728742,'growth_count':2,"
                          "'growth_duration_us':500000,'run_us':130000000}}");
    struct cm_buffer out = {0};

    (void)state;
    assert_int_equal(leak.looks.saved_bytes, 2791728742);
    assert_int_equal(cm_leak_json_write(&leak, &out), CM_OK);
    assert_non_null(strstr(cm_buffer_text(&out), text));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_reads_what_it_writes(void **state)
{
    struct cm_leak leak = leak_of(LEAK_LAMBDA), again = {0};
    struct cm_buffer once = {0}, twice = {0};
    char error[CM_LEAK_JSON_ERROR_BYTES];

    (void)state;
    assert_int_equal(cm_leak_json_write(&leak, &once), CM_OK);
    assert_int_equal(cm_leak_json_read(once.bytes, once.length, &again, error),
                     CM_OK);
    assert_int_equal(cm_leak_json_write(&again, &twice), CM_OK);
    assert_string_equal(once.bytes, twice.bytes);
    assert_null(cm_leak_check(&again));
    assert_int_equal(again.rank, 3);
    assert_int_equal(again.world_size, -1);
    assert_int_equal(again.cycles[0].fingerprint, 0x3f9a2c0000000001);
    assert_int_equal(again.storages[0].address, 0x7f00);
    assert_true(again.edges[3].made_at[0].certain);
    assert_true(again.sites[0].frames[0].library);
    cm_leak_release(&leak);
    cm_leak_release(&again);
    cm_buffer_release(&once);
    cm_buffer_release(&twice);
}

static void
test_first_key_names_the_format(void **state)
{
    struct cm_leak leak = leak_of(LEAK_HEAD "'pid':1}");
    struct cm_buffer out = {0};

    (void)state;
    assert_int_equal(cm_leak_json_write(&leak, &out), CM_OK);
    assert_int_equal(
        strncmp(out.bytes, "{\"format\":\"cumem-leak\",\"version\":1,", 35),
        0);
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_numbers_at_the_edge(void **state)
{
    struct cm_leak leak = leak_of(
        LEAK_HEAD
        "'cycles':[{'fingerprint':'ffffffffffffffff',"
        "'bytes_each':9007199254740992,'time':1700000000.123456}],"
        "'storages':[{'address':'0xffffffffffffffff','stream':'0x7f'}]}");
    struct cm_buffer out = {0};

    (void)state;
    assert_int_equal(cm_leak_json_write(&leak, &out), CM_OK);
    assert_non_null(strstr(out.bytes, "\"bytes_each\":9007199254740992,"));
    assert_non_null(strstr(out.bytes, "\"ffffffffffffffff\""));
    assert_non_null(strstr(out.bytes, "\"0xffffffffffffffff\""));
    assert_non_null(strstr(out.bytes, "\"stream\":\"0x7f\""));
    assert_non_null(strstr(out.bytes, "\"time\":1700000000.123456"));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_texts_survive(void **state)
{
    struct cm_leak leak =
        leak_of(LEAK_HEAD "'host':'a\\u0001\\\\ \\u00e9\\n\xff','python':''}");
    struct cm_buffer out = {0};

    (void)state;
    assert_string_equal(cm_leak_text(&leak, leak.host),
                        "a\x01\\ \xC3\xA9\n\xEF\xBF\xBD");
    assert_int_equal(leak.python.index, 0);
    assert_int_equal(cm_leak_json_write(&leak, &out), CM_OK);
    assert_non_null(strstr(out.bytes, "\"a\\u0001\\\\ \xC3\xA9\\u000a"));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_refuses_and_names_the_place(void **state)
{
    (void)state;
    expect_refused("", "byte 0: the file ends too early");
    expect_refused("{'a':1", "byte 6: the file ends too early");
    expect_refused("{'a':1}}", "byte 7: this is no JSON; expected a "
                               "leak.json that cumem wrote");
    expect_refused("{'a' 1}", "byte 5: this is no JSON; expected a "
                              "leak.json that cumem wrote");
    expect_refused("7", "expected a JSON object");
    expect_refused("{}", "format: expected \"cumem-leak\"");
    expect_refused("{'vertices':[],'edges':[],'cycles':[],'growth':[]}",
                   "format: expected \"cumem-leak\"");
    expect_refused("{'version':1,'format':'cumem-leak','growth':[]}",
                   "cycles: expected an array");
    expect_refused("{'version':1,'format':'cumem-leak','cycles':[]}",
                   "growth: expected an array");
    expect_refused(LEAK_HEAD "'cycles':[{},{'class':'dead'}]}",
                   "cycles[1].class: expected collectable, finalizer, "
                   "uncollectable, frozen or resurrected");
    expect_refused(LEAK_HEAD "'storages':[{'names':'x'}]}",
                   "storages[0].names: expected an array");
    expect_refused("{'format':'cumem-leak','version':99}",
                   "version: 99 is newer than 1, the newest that this "
                   "program reads");
    expect_refused(LEAK_HEAD "'cycles':[{},{},{},{'cut':[17]}]}",
                   "cycles[3].cut[0]: edge 17 does not exist");
    expect_refused(LEAK_HEAD "'vertices':[{'id':1},{'id':5},{'id':1}]}",
                   "vertices[2].id: vertex 1 is there twice");
    expect_refused(LEAK_HEAD "'vertices':[{}],'edges':[{'tail':1,"
                             "'head':2}]}",
                   "edges[0].head: vertex 2 does not exist");
    expect_refused(LEAK_HEAD "'vertices':[{'bytes':1e16}]}",
                   "vertices[0].bytes: expected a whole number from 0 to "
                   "2^53");
    expect_refused(LEAK_HEAD "'sites':[{'frames':[{'line':4294967296}]}]}",
                   "sites[0].frames[0].line: expected a number under 2^31");
}

static void
test_names_are_exact(void **state)
{
    struct cm_leak leak = leak_of(LEAK_HEAD "'PID':5,'Cycles':[{}],'pid':6}");

    (void)state;
    assert_int_equal(leak.pid, 6);
    assert_int_equal(leak.cycle_count, 0);
    cm_leak_release(&leak);
}

static void
test_depth_is_bounded_before_parsing(void **state)
{
    size_t depth = 2000000;
    char *text = cm_alloc(depth + 1), error[CM_LEAK_JSON_ERROR_BYTES];
    struct cm_leak leak = {0};

    (void)state;
    memset(text, '[', depth);
    text[depth] = '\0';
    assert_int_equal(cm_leak_json_read(text, depth, &leak, error),
                     CM_BAD_INPUT);
    assert_string_equal(error, "byte 64: nested deeper than 64");
    cm_free(text);
}

static void
test_storages_and_vertices_are_joined(void **state)
{
    struct cm_leak leak =
        leak_of(LEAK_HEAD "'vertices':[{'id':9},{'id':4}],"
                          "'storages':[{'id':70,'vertices':[4]}]}");

    (void)state;
    assert_int_equal(leak.vertices[0].storage, 0);
    assert_int_equal(leak.vertices[1].storage, 1);
    cm_leak_release(&leak);
}

static enum cm_status
attempt(void *context)
{
    char error[CM_LEAK_JSON_ERROR_BYTES];
    struct cm_leak leak = {0};
    struct cm_buffer out = {0};
    enum cm_status status;

    status = leak_parse(context, &leak, error);
    if (status == CM_OK) {
        status = cm_leak_json_write(&leak, &out);
    }
    cm_leak_release(&leak);
    cm_buffer_release(&out);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    (void)state;
    cm_fail_each(attempt, LEAK_LAMBDA);
    cm_fail_each(attempt, LEAK_MEMORY);
    cm_fail_each(attempt, LEAK_GROWTH);
}

/* Each byte of a document changed in turn: read or refused, never worse. */
static void
change_each_byte(const char *text)
{
    static const char changes[] = "\"0[{,:}]\\-9\xff";
    struct cm_buffer json = {0};
    char error[CM_LEAK_JSON_ERROR_BYTES];

    for (const char *c = text; *c != '\0'; c++) {
        cm_buffer_add_char(&json, *c == '\'' ? '"' : *c);
    }
    for (size_t i = 0; i < json.length; i++) {
        char kept = json.bytes[i];

        for (size_t j = 0; j < sizeof(changes); j++) {
            struct cm_leak leak = {0};
            enum cm_status status;

            json.bytes[i] = changes[j];
            status = cm_leak_json_read(json.bytes, json.length, &leak, error);
            assert_true(status == CM_OK || status == CM_BAD_INPUT);
            assert_true((status == CM_OK) == (error[0] == '\0'));
            assert_null(cm_leak_check(&leak));
            cm_leak_release(&leak);
        }
        json.bytes[i] = kept;
    }
    cm_buffer_release(&json);
}

static void
test_O12_any_byte_may_be_wrong(void **state)
{
    (void)state;
    change_each_byte(LEAK_LAMBDA);
    change_each_byte(LEAK_MEMORY);
    change_each_byte(LEAK_GROWTH);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_reads_what_it_writes),
        cmocka_unit_test(test_memory_reads_back),
        cmocka_unit_test(test_growth_reads_back),
        cmocka_unit_test(test_reals_are_whole_where_they_can_be),
        cmocka_unit_test(test_refuses_wrong_growth),
        cmocka_unit_test(test_refuses_a_wrong_timeline),
        cmocka_unit_test(test_what_is_not_known_is_left_out),
        cmocka_unit_test(test_refuses_wrong_memory),
        cmocka_unit_test(test_first_key_names_the_format),
        cmocka_unit_test(test_numbers_at_the_edge),
        cmocka_unit_test(test_texts_survive),
        cmocka_unit_test(test_refuses_and_names_the_place),
        cmocka_unit_test(test_names_are_exact),
        cmocka_unit_test(test_depth_is_bounded_before_parsing),
        cmocka_unit_test(test_storages_and_vertices_are_joined),
        cmocka_unit_test(test_each_allocation_fails),
        cmocka_unit_test(test_O12_any_byte_may_be_wrong),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
