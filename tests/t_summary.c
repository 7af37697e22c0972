/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "fail_each.h"

#include "../reports/summary.h"

static void
expect_summary(const char *json, const struct cm_summary_options *options,
               const char *expected)
{
    struct cm_leak leak = leak_of(json);
    struct cm_buffer out = {0};

    cm_leak_sort(&leak);
    assert_int_equal(cm_summary_write(&leak, options, &out), CM_OK);
    assert_string_equal(cm_buffer_text(&out), expected);
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

#define LAMBDA_TEXT                                                           \
    "cumem [rank 3]: up to 32.0 of 64.0 MiB at cuda:0's peak (iteration 4) "  \
    "was dead\n"                                                              \
    "#1 DEAD CYCLE x2, 16 MiB each, at most 32 MiB at once                "   \
    "   [3f9a2c]\n"                                                           \
    "   cut   train.py:57  self.cb = lambda o: self.store(o)\n"               \
    "   fix   capture weakref.ref(self) in the lambda\n"                      \
    "   path  Trainer .cb > <lambda> > cell self ~~> Trainer .acts[0] > "     \
    "Tensor [4, 5] float32\n"                                                 \
    "   alloc model.py:12 Enc.forward: h = self.proj(x)\n"

static void
test_finding(void **state)
{
    const struct cm_summary_options options = {.report_name = "r.json"};

    (void)state;
    expect_summary(LEAK_LAMBDA, &options, LAMBDA_TEXT "cyclereport r.json\n");
}

static void
test_nothing_found(void **state)
{
    const struct cm_summary_options none = {0}, some = {.suppressed = 3},
                                    known = {.suppressed = 3, .known = 1},
                                    cycles = {.suppressed = 3, .known = 3};

    (void)state;
    expect_summary(LEAK_HEAD "'pid':1}", &none,
                   "cumem: no dead cycle holds device memory\n");
    expect_summary(LEAK_HEAD "'pid':1}", &some,
                   "cumem: no dead cycle holds device memory, and nothing "
                   "told grows (3 suppressed)\n");
    expect_summary(LEAK_HEAD "'pid':1}", &known,
                   "cumem: only known dead cycles hold device memory, and "
                   "nothing told grows (3 suppressed)\n");
    expect_summary(LEAK_HEAD "'pid':1}", &cycles,
                   "cumem: only known dead cycles hold device memory (3 "
                   "suppressed)\n");
    expect_summary(LEAK_HEAD "'cycles':[{'class':'resurrected',"
                             "'peak_bytes':5}]}",
                   &none, "cumem: no dead cycle holds device memory\n");
}

static void
test_only_what_is_new(void **state)
{
    const uint64_t other = 1, this = 0x3f9a2c0000000001;
    const struct cm_summary_options shown = {.only = &this, .only_count = 1};
    const struct cm_summary_options not = {.only = &other, .only_count = 1};

    (void)state;
    expect_summary(LEAK_LAMBDA, &shown, LAMBDA_TEXT);
    expect_summary(LEAK_LAMBDA, &not,
                   "cumem [rank 3]: no dead cycle holds device memory\n");
}

static void
test_what_is_hidden_is_counted(void **state)
{
    const struct cm_summary_options options = {
        .min_bytes = CM_DEFAULT_MIN_BYTES, .top = 1, .suppressed = 4};
    struct cm_summary_counts counts;
    struct cm_leak leak =
        leak_of(LEAK_HEAD "'lost':{'events':1,'nodes':20,'reason':'too many'},"
                          "'cycles':[{'fingerprint':'1','peak_bytes':2000000},"
                          "{'fingerprint':'2','peak_bytes':3000000},"
                          "{'fingerprint':'3','peak_bytes':3},"
                          "{'fingerprint':'4','peak_bytes':4000000,"
                          "'library':{'package':'torch'}}]}");
    struct cm_buffer out = {0};
    struct cm_leak_finding shown[4];

    (void)state;
    cm_leak_sort(&leak);
    cm_summary_count(&leak, &options, &counts, shown);
    assert_int_equal(counts.shown, 1);
    assert_int_equal(leak.cycles[shown[0].index].fingerprint, 2);
    assert_int_equal(counts.more, 1);
    assert_int_equal(counts.library, 1);
    assert_int_equal(counts.small, 1);
    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    assert_non_null(strstr(out.bytes,
                           "lost: 1 event, 20 objects: too many\n"
                           "hidden: 1 more (at most 1.9 MiB), "
                           "1 in libraries (torch), 1 under 1 MiB (--all), "
                           "4 suppressed\n"));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_what_was_saved_stands_before_what_was_lost(void **state)
{
    const struct cm_summary_options options = {0};
    const char *head = "cumem: no dead cycle holds device memory\n";
    char expected[200];

    (void)state;
    snprintf(expected, sizeof(expected),
             "%ssaved: 2.6 GiB by 1 collection of CUMEM_AUTO_COLLECT\n"
             "lost: 1 event, 0 objects\n",
             head);
    expect_summary(LEAK_HEAD "'lost':{'events':1},'looks':{'count':9,"
                             "'collections':1,'saved_bytes':2791728742}}",
                   &options, expected);
    snprintf(expected, sizeof(expected),
             "%ssaved: 2.0 KiB by 3 collections of CUMEM_AUTO_COLLECT\n",
             head);
    expect_summary(LEAK_HEAD "'looks':{'collections':3,'saved_bytes':2048}}",
                   &options, expected);
    expect_summary(LEAK_HEAD "'looks':{'count':9,'collections':1}}", &options,
                   head);
}

static void
test_colour_adds_sequences_only(void **state)
{
    const struct cm_summary_options options = {.colour = true};
    struct cm_leak leak = leak_of(LEAK_LAMBDA);
    struct cm_buffer out = {0}, plain = {0};

    (void)state;
    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    for (const char *c = out.bytes; *c != '\0'; c++) {
        if (*c == '\x1b') {
            c += strcspn(c, "m");
            continue;
        }
        cm_buffer_add_char(&plain, *c);
    }
    assert_string_equal(cm_buffer_text(&plain), LAMBDA_TEXT);
    assert_true(out.length > plain.length);
    cm_leak_release(&leak);
    cm_buffer_release(&out);
    cm_buffer_release(&plain);
}

/* REPORT.md's own lines, byte for byte, both kinds by what they cost. */
static void
test_growth_stands_among_the_cycles(void **state)
{
    const struct cm_summary_options options = {
        .min_bytes = CM_DEFAULT_MIN_BYTES, .report_name = "r.json"};

    (void)state;
    expect_summary(
        LEAK_GROWTH, &options,
        "cumem: cuda:0 grows by 4.0 MiB per iteration; full in about 54 "
        "min\n"
        "#1 LEAK +4.0 MiB per iteration since iteration 3; full in about 1950 "
        "iterations (54 min)\n"
        "   held  train.py:80 main: local `losses` (list, 409 items) > loss > "
        "grad_fn\n"
        "   fix   losses.append(loss.item())\n"
        "   alloc train.py:41 step: loss = model(batch)\n"
        "#2 LINGERING 97 MiB of gradients kept through every forward since "
        "iteration 1\n"
        "   held  not known: no path from a name was found\n"
        "   fix   optimizer.zero_grad(set_to_none=True) before the forward "
        "pass\n"
        "   alloc (in backward, waiting thread) train.py:42 step: "
        "loss.backward()\n"
        "#3 GROWING +1.0 MiB per iteration since iteration 8 (61 % sure)"
        "         [55b1e0]\n"
        "   held  not known: no path from a name was found\n"
        "   alloc not known: no stack was recorded\n"
        "cyclereport r.json\n");
}

/* Those that are well are shown to whoever asks. */
static void
test_all_growth(void **state)
{
    const struct cm_summary_options options = {.all = true, .report_name = ""};
    struct cm_leak leak = leak_of(LEAK_GROWTH);
    struct cm_buffer out = {0};

    (void)state;
    cm_leak_sort(&leak);
    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    assert_non_null(strstr(
        out.bytes, "#2 SETTLED 194 MiB of optimizer state since iteration 1"));
    assert_non_null(strstr(out.bytes, "#5 OK 512 KiB of parameters"));
    assert_null(strstr(out.bytes, "hidden"));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

static void
test_faults_are_counted(void **state)
{
    const struct cm_summary_options options = {.top = 1};
    struct cm_leak_finding shown[5];
    struct cm_summary_counts counts;
    struct cm_leak leak = leak_of(LEAK_GROWTH);

    (void)state;
    cm_leak_sort(&leak);
    cm_summary_count(&leak, &options, &counts, shown);
    assert_int_equal(counts.faults, 2);
    assert_int_equal(counts.cycles, 0);
    assert_int_equal(counts.shown, 1);
    assert_int_equal(counts.more, 2);
    assert_true(shown[0].growth);
    cm_leak_release(&leak);
}

static void
test_growth_in_a_library(void **state)
{
    const struct cm_summary_options plain = {.report_name = "r"},
                                    all = {.all = true, .report_name = "r"};
    const char *json =
        LEAK_HEAD "'growth':[{'verdict':'leak','bytes':9,'library':{"
                  "'package':'pkg','link':'x/y#1'},"
                  "'fingerprint':'0123450000000000'}]}";

    (void)state;
    expect_summary(json, &plain,
                   "cumem: no dead cycle holds device memory, and nothing "
                   "told grows\n"
                   "hidden: 1 in libraries (pkg) | cyclereport --all r\n");
    expect_summary(json, &all,
                   "cumem: 1 line of code keeps more and more memory\n"
                   "#1 LEAK in pkg +0 B per iteration"
                   "                                       [012345]\n"
                   "   held  not known: no path from a name was found\n"
                   "   known x/y#1\n"
                   "   alloc not known: no stack was recorded\n"
                   "cyclereport r\n");
}

/* One block for what one container holds, with all of its lines; asked for by
 * any of them. */
static void
test_a_fault_of_several_lines(void **state)
{
    const struct cm_summary_options first = {.top = 1, .report_name = "r"};
    const char *block =
        "#1 LEAK +635 KiB per iteration since iteration 1"
        "                        [473daf]\n"
        "   held  probably train.py:80 main:\n"
        "         local `kept` (list, 10 items) > dict, 3 items\n"
        "   fix   clear kept\n"
        "   alloc net.py:3 forward: h3 = f(x)\n"
        "   also  net.py:5 forward: h5 = f(x)\n"
        "   also  net.py:1 forward: h1 = f(x)\n";
    struct cm_leak leak = leak_of(LEAK_FAULTS);
    struct cm_summary_options one = {.only_count = 1, .report_name = "r"};
    char expected[700];
    uint64_t last;

    (void)state;
    cm_leak_sort(&leak);
    last = leak.growth[2].fingerprint;
    one.only = &last;
    snprintf(expected, sizeof(expected),
             "cumem: cuda:0 grows by 1.5 MiB per iteration\n"
             "%shidden: 4 more (at most 14 MiB) | cyclereport r\n",
             block);
    expect_summary(LEAK_FAULTS, &first, expected);
    snprintf(expected, sizeof(expected),
             "cumem: cuda:0 grows by 1.5 MiB per iteration\n"
             "%scyclereport r\n",
             block);
    expect_summary(LEAK_FAULTS, &one, expected);
    cm_leak_release(&leak);
}

/* What a library allocates in several places for one line of the program. */
static void
test_a_line_of_a_fault_is_told_once(void **state)
{
    struct cm_summary_options options = {.top = 1, .report_name = "r"};
    struct cm_leak leak = leak_of(LEAK_FAULTS);
    struct cm_buffer out = {0};

    (void)state;
    leak.sites[5 - 1].frames[0].line = 3;
    cm_leak_sort(&leak);
    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    assert_non_null(strstr(cm_buffer_text(&out),
                           "   alloc net.py:3 forward: h3 = f(x)\n"
                           "   also  net.py:1 forward: h1 = f(x)\n"));
    cm_buffer_clear(&out);
    options.all_frames = true;
    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    assert_non_null(strstr(cm_buffer_text(&out), "   also  net.py:3 forward"));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

/* Beyond four the last line counts them; on request they are listed. */
static void
test_a_fault_of_many_lines(void **state)
{
    struct cm_summary_options options = {.report_name = "r"};
    struct cm_leak leak = leak_of(LEAK_FAULTS);
    struct cm_buffer out = {0};

    (void)state;
    for (size_t i = 0; i < leak.growth_count; i++) {
        leak.growth[i].device = leak.growth[0].device;
        leak.growth[i].advice = leak.growth[0].advice;
        leak.growth[i].rule = leak.growth[0].rule;
        leak.growth[i].holder[1].edge = leak.growth[0].holder[1].edge;
    }
    cm_leak_sort(&leak);
    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    assert_non_null(strstr(cm_buffer_text(&out),
                           "   also  net.py:3 forward: h3 = f(x)\n"
                           "   also  4 more lines (--all)\n"));
    cm_buffer_clear(&out);
    options.all = true;
    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    assert_null(strstr(cm_buffer_text(&out), " more line"));
    assert_non_null(strstr(cm_buffer_text(&out),
                           "   also  net.py:1 forward: h1 = f(x)\n"));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

/* Only what the same line allocates, and only where it is said of a cycle. */
static void
test_growth_of_a_dead_cycle_names_it(void **state)
{
    const struct cm_summary_options options = {.all = true, .report_name = ""};
    struct cm_buffer out = {0};
    struct cm_leak leak =
        leak_of(LEAK_HEAD
                "'sites':[{'id':1,'frames':[]},{'id':2,'frames':[]}],"
                "'storages':[{'id':1,'bytes':80,'site':1}],"
                "'cycles':[{'fingerprint':'3f9a2c0000000001','payload':[1],"
                "'bytes_each':80,'count':1,'peak_bytes':80,'total_bytes':80}],"
                "'growth':["
                "{'verdict':'leak','site':1,'bytes':9,'rule':'dead cycle',"
                "'advice':'cut it'},"
                "{'verdict':'leak','site':2,'bytes':8,'rule':'dead cycle',"
                "'advice':'cut another'},"
                "{'verdict':'leak','site':1,'bytes':7,'rule':'chain',"
                "'advice':'give it an end'}]}");

    (void)state;
    cm_leak_sort(&leak);
    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    assert_non_null(strstr(cm_buffer_text(&out),
                           "   fix   cut the cycle [3f9a2c] of this report: "
                           "nothing else holds it\n"));
    assert_null(strstr(cm_buffer_text(&out), "cut it"));
    assert_non_null(strstr(cm_buffer_text(&out), "   fix   cut another\n"));
    assert_non_null(strstr(cm_buffer_text(&out), "   fix   give it an end\n"));
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

/* The steps behind a frame, those that pile up at `at`. */
static void
expect_held(size_t at, const char *more, const char *steps,
            const char *expected)
{
    const struct cm_summary_options options = {.report_name = ""};
    char json[1500], line[200];
    struct cm_buffer out = {0};
    struct cm_leak leak;

    snprintf(json, sizeof(json),
             LEAK_HEAD "'growth':[{'bytes':9,'holder_at':%zu,"
                       "%s'holder':[{'annotation':'a.py:15 main'},%s]}]}",
             at, more, steps);
    snprintf(line, sizeof(line), "   held  %s\n", expected);
    leak = leak_of(json);
    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    if (strstr(out.bytes, line) == NULL) {
        assert_string_equal(out.bytes, line);
    }
    cm_leak_release(&leak);
    cm_buffer_release(&out);
}

#define LEAKS "'verdict':'leak',"

/* The root, which has the name to look for, and the end stay. */
static void
test_a_long_path_loses_its_middle(void **state)
{
    (void)state;
    expect_held(1, LEAKS,
                "{'annotation':'dict of 1','edge':'local cache'},"
                "{'annotation':'m.AVeryLongName','edge':'.attribute'},"
                "{'annotation':'m.AnotherLongName','edge':'.attribute'},"
                "{'annotation':'m.Third','edge':'[7]'},"
                "{'annotation':'Tensor','edge':''}",
                "a.py:15 main: local `cache` (dict, 1 item) > ... > m.Third > "
                "Tensor");
}

#define LONG "Tensor [512, 512, 512, 512] float32 cpu 1.0 MiB"

/* What is to be cut stays before all but the root. */
static void
test_a_long_path_keeps_where_they_pile_up(void **state)
{
    (void)state;
    expect_held(2, LEAKS,
                "{'annotation':'Server','edge':'local s'},"
                "{'annotation':'dict of 151','edge':'.audit'},"
                "{'annotation':'" LONG "','edge':''},"
                "{'annotation':'graph of 5 steps','edge':'grad_fn'}",
                "a.py:15 main: local `s` (Server) > .audit (dict, 151 items) "
                "> ...");
    expect_held(4, LEAKS,
                "{'annotation':'Log','edge':'local s'},"
                "{'annotation':'list of 1','edge':'.handlers'},"
                "{'annotation':'Handler','edge':'[0]'},"
                "{'annotation':'list of 40','edge':'.buffer'},"
                "{'annotation':'" LONG "','edge':''},"
                "{'annotation':'T','edge':''}",
                "a.py:15 main: local `s` (Log) > ... > .buffer (list, "
                "40 items) > ...");
    expect_held(2, LEAKS,
                "{'annotation':'Server','edge':'local s'},"
                "{'annotation':'" LONG "','edge':'.bank'}",
                "a.py:15 main: local `s` (Server) > .bank (Tensor [512, 512, "
                "512, 512...");
    expect_held(2, LEAKS,
                "{'annotation':'package.module.of.a.ServerWithAName',"
                "'edge':'local server'},"
                "{'annotation':'dict of 151','edge':'.audit'},"
                "{'annotation':'T','edge':''}",
                "a.py:15 main: local `server` (package.module.... > .audit "
                "(dict, 151...");
}

/* A gradient hangs from a table of its model, which nobody cuts. */
static void
test_a_long_path_keeps_a_lingering_gradient(void **state)
{
    (void)state;
    expect_held(2, "'category':'gradient','verdict':'lingering',",
                "{'annotation':'Net','edge':'local net'},"
                "{'annotation':'dict of 2','edge':'._parameters'},"
                "{'annotation':'" LONG "','edge':'[weight]'},"
                "{'annotation':'gradient','edge':'.grad'}",
                "a.py:15 main: local `net` (Net) > ... > .grad (gradient)");
}

static enum cm_status
attempt(void *context)
{
    const struct cm_summary_options options = {.all_frames = true};
    struct cm_buffer out = {0};
    enum cm_status status = cm_summary_write(context, &options, &out);

    cm_buffer_release(&out);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct cm_leak leak = leak_of(LEAK_LAMBDA);
    struct cm_leak growth = leak_of(LEAK_GROWTH);

    (void)state;
    cm_fail_each(attempt, &leak);
    cm_fail_each(attempt, &growth);
    cm_leak_release(&leak);
    cm_leak_release(&growth);
}

#define SHARED(id, cut, others)                                               \
    "{'fingerprint':'" id "0000000001','class':'collectable','vertices':[1]," \
    "'shared_with':[" others "],'bytes_each':9,'peak_bytes':9,'count':1,"     \
    "'cut':[" cut "],'no_cut_reason':'no store'}"

/* Cut in the same line, in another one, nowhere, and not in this report. */
static void
test_memory_of_several_cycles(void **state)
{
    struct cm_leak leak = leak_of(
        LEAK_HEAD
        "'vertices':[{'id':1,'annotation':'A','type':'A'}],'edges':["
        "{'id':1,'annotation':'.a','tail':1,'head':1,'made_at':["
        "{'filename':'a.py','line':1,'source':'x.a = x','certain':true}]},"
        "{'id':2,'annotation':'.b','tail':1,'head':1,'made_at':["
        "{'filename':'a.py','line':2,'source':'x.b = x','certain':true}]}],"
        "'cycles':[" SHARED("aaaaaa", "1",
                            "'bbbbbb0000000001','cccccc0000000001',"
                            "'dddddd0000000001'") "," //
        SHARED("bbbbbb", "1", "") "," SHARED("cccccc", "2", "") "]}");
    const uint64_t first = 0xaaaaaa0000000001;
    const struct cm_summary_options options = {.only = &first,
                                               .only_count = 1};
    struct cm_buffer out = {0};

    (void)state;
    assert_int_equal(cm_summary_write(&leak, &options, &out), CM_OK);
    assert_non_null(strstr(cm_buffer_text(&out),
                           "   also  held by a cycle [cccccc], cut a.py:2  "
                           "x.b = x\n"));
    assert_null(strstr(cm_buffer_text(&out), "[bbbbbb]"));
    assert_null(strstr(cm_buffer_text(&out), "[dddddd]"));
    cm_buffer_release(&out);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_of_several_cycles),
        cmocka_unit_test(test_finding),
        cmocka_unit_test(test_nothing_found),
        cmocka_unit_test(test_only_what_is_new),
        cmocka_unit_test(test_what_is_hidden_is_counted),
        cmocka_unit_test(test_growth_stands_among_the_cycles),
        cmocka_unit_test(test_all_growth),
        cmocka_unit_test(test_faults_are_counted),
        cmocka_unit_test(test_growth_in_a_library),
        cmocka_unit_test(test_growth_of_a_dead_cycle_names_it),
        cmocka_unit_test(test_a_fault_of_several_lines),
        cmocka_unit_test(test_a_line_of_a_fault_is_told_once),
        cmocka_unit_test(test_a_fault_of_many_lines),
        cmocka_unit_test(test_a_long_path_loses_its_middle),
        cmocka_unit_test(test_what_was_saved_stands_before_what_was_lost),
        cmocka_unit_test(test_a_long_path_keeps_where_they_pile_up),
        cmocka_unit_test(test_a_long_path_keeps_a_lingering_gradient),
        cmocka_unit_test(test_colour_adds_sequences_only),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
