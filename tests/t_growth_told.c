/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "../reports/fault.h"
#include "../reports/growth.h"
#include "../reports/growth_told.h"
#include "fail_each.h"

/* Faults once, then when they have doubled; nothing of the others. */
static void
test_new_and_doubled_faults_are_told(void **state)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH);
    struct cm_growth_told told = {0};
    struct cm_ledger_news news = {0};

    (void)state;
    assert_true(cm_growth_has_fault(&leak));
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 2);
    assert_true(news.fingerprints[0] == leak.growth[0].fingerprint);
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 2);
    leak.growth[1].bytes *= 2;
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 3);
    assert_true(news.fingerprints[2] == leak.growth[1].fingerprint);
    leak.growth[0].verdict = leak.growth[1].verdict = leak.growth[4].verdict;
    assert_false(cm_growth_has_fault(&leak));
    cm_growth_told_release(&told);
    cm_ledger_news_release(&news);
    cm_leak_release(&leak);
}

/* A later phase steps the same parameters by a line of its own. */
static void
test_the_same_gradients_linger_once(void **state)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH);
    struct cm_growth_told told = {0};
    struct cm_ledger_news news = {0};
    struct cm_leak_growth *lingering = &leak.growth[1];

    (void)state;
    assert_int_equal(cm_growth_verdict(&leak, lingering), CM_GROWTH_LINGERING);
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 2);
    lingering->fingerprint++;
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 2);
    lingering->fingerprint++;
    lingering->names[0] = cm_texts_intern(leak.texts, "head.weight.grad");
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 3);
    lingering->fingerprint++;
    lingering->peak_bytes++;
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 4);
    lingering->fingerprint++;
    lingering->name_count = 0;
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 5);
    cm_growth_told_release(&told);
    cm_ledger_news_release(&news);
    cm_leak_release(&leak);
}

/* Once for all of its lines, whichever of them comes first or joins later. */
static void
test_a_fault_of_several_lines_is_told_once(void **state)
{
    struct cm_leak leak = leak_of(LEAK_FAULTS);
    struct cm_growth_told told = {0};
    struct cm_ledger_news news = {0};

    (void)state;
    cm_leak_sort(&leak);
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 5);
    assert_true(news.fingerprints[0] == leak.growth[0].fingerprint);
    leak.growth[2].peak_bytes *= 10; /* another line has most, */
    cm_leak_sort(&leak);
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    leak.growth[1].holder_at = 0; /* and one is alone */
    cm_leak_sort(&leak);
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 5);
    leak.growth[0].bytes += 10000000;
    assert_int_equal(cm_growth_announce(&told, &leak, &news), CM_OK);
    assert_int_equal(news.count, 6);
    cm_growth_told_release(&told);
    cm_ledger_news_release(&news);
    cm_leak_release(&leak);
}

static void
give_verdict(struct cm_leak *leak, size_t from, size_t to, const char *verdict)
{
    for (size_t i = from; i < to; i++) {
        leak->growth[i].verdict = cm_texts_intern(leak->texts, verdict);
    }
}

struct scene {
    struct cm_leak leak;
    struct cm_growth_told told;
    struct cm_ledger_news news;
    struct cm_buffer text; /* what stopped */
};

static void
scene_release(struct scene *self)
{
    cm_growth_told_release(&self->told);
    cm_ledger_news_release(&self->news);
    cm_buffer_release(&self->text);
    cm_leak_release(&self->leak);
}

/* What is announced is told at once; all that was is kept. */
static void
tell(struct scene *self, uint64_t least)
{
    struct cm_ledger_news news = {0};

    assert_int_equal(cm_growth_announce(&self->told, &self->leak, &news),
                     CM_OK);
    cm_growth_recall(&self->told, &self->leak, &news);
    cm_growth_note_told(&self->told, &self->leak, least, &news);
    assert_int_equal(cm_ledger_news_move(&self->news, &news), CM_OK);
    cm_ledger_news_release(&news);
}

/* What stopped, as text; how many. */
static size_t
stopped(struct scene *self)
{
    struct cm_growth_stopped found;
    size_t at = 0, count = 0;

    self->text.length = 0;
    while (cm_growth_next_stopped(&self->told, &self->leak, &at, &found)) {
        assert_int_equal(
            cm_growth_stopped_write(&found, &self->leak, &self->text), CM_OK);
        count++;
    }
    return count;
}

/* A leak, and no other; not while one of its lines grows; once. */
static void
test_what_stopped_is_told_once(void **state)
{
    struct scene scene = {.leak = leak_of(LEAK_FAULTS)};
    struct cm_leak *leak = &scene.leak;

    (void)state;
    give_verdict(leak, 0, 1, "lingering");
    cm_leak_sort(leak);
    size_t first = 0;
    while (cm_fault_lines(&leak->growth[first]) == 1) {
        first++;
    }
    tell(&scene, 0);
    assert_int_equal(stopped(&scene), 0);
    give_verdict(leak, first, first + 1, "settled");
    assert_int_equal(stopped(&scene), 0);
    give_verdict(leak, first + 1, first + 2, "growing");
    assert_int_equal(stopped(&scene), 0);
    give_verdict(leak, first + 1, first + 2, "ok");
    leak->growth[first].unsure = true;
    assert_int_equal(stopped(&scene), 0);
    leak->growth[first].unsure = false;
    assert_int_equal(stopped(&scene), 1);
    assert_string_equal(cm_buffer_text(&scene.text),
                        "cumem: stopped growing: net.py:3 forward and 1 more "
                        "line, at 5.2 MiB (told as a leak before)\n");
    give_verdict(leak, 0, leak->growth_count, "settled");
    assert_int_equal(stopped(&scene), scene.news.count - 2);
    assert_int_equal(stopped(&scene), 0);
    scene_release(&scene);
}

/* A line of the fault settles while another one goes on, at the next look. */
static void
test_a_fault_that_goes_on_has_not_stopped(void **state)
{
    struct scene scene = {.leak = leak_of(LEAK_FAULTS)};
    struct cm_leak *leak = &scene.leak;
    size_t first = 0;

    (void)state;
    cm_leak_sort(leak);
    while (cm_fault_lines(&leak->growth[first]) < 2) {
        first++;
    }
    tell(&scene, 0);
    give_verdict(leak, first, first + 1, "settled");
    cm_leak_sort(leak);
    tell(&scene, 0);
    assert_int_equal(stopped(&scene), 0);
    give_verdict(leak, 0, leak->growth_count, "settled");
    cm_leak_sort(leak);
    assert_true(stopped(&scene) > 0);
    scene_release(&scene);
}

/* Of what was too small to be shown nobody hears, however large it is now. */
static void
test_what_was_not_shown_has_not_stopped(void **state)
{
    struct scene scene = {.leak = leak_of(LEAK_GROWTH)};
    struct cm_leak *leak = &scene.leak;
    uint64_t peak;

    (void)state;
    give_verdict(leak, 1, leak->growth_count, "ok");
    cm_leak_sort(leak);
    peak = leak->growth[0].peak_bytes;
    tell(&scene, peak + 1);
    leak->growth[0].peak_bytes = peak * 3 / 2;
    give_verdict(leak, 0, 1, "settled");
    assert_int_equal(stopped(&scene), 0);
    scene_release(&scene);
}

/* It stopped before it was told: neither is, and the next time both are. */
static void
test_what_is_over_before_it_is_told_is_forgotten(void **state)
{
    struct scene scene = {.leak = leak_of(LEAK_FAULTS)};
    struct cm_leak *leak = &scene.leak;
    size_t all;

    (void)state;
    cm_leak_sort(leak);
    assert_int_equal(cm_growth_announce(&scene.told, leak, &scene.news),
                     CM_OK);
    all = scene.news.count;
    give_verdict(leak, 1, leak->growth_count, "settled");
    assert_int_equal(stopped(&scene), 0);
    cm_growth_recall(&scene.told, leak, &scene.news);
    assert_int_equal(scene.news.count, 1);
    assert_true(scene.news.fingerprints[0] == leak->growth[0].fingerprint);
    cm_growth_note_told(&scene.told, leak, 0, &scene.news);
    assert_int_equal(stopped(&scene), 0);
    give_verdict(leak, 1, leak->growth_count, "leak");
    tell(&scene, 0);
    assert_int_equal(scene.news.count, all);
    give_verdict(leak, 0, leak->growth_count, "settled");
    assert_int_equal(stopped(&scene), all);
    scene_release(&scene);
}

/* It was told, and has doubled unheard: that it stopped is told. */
static void
test_what_doubled_before_it_stopped_was_told(void **state)
{
    struct scene scene = {.leak = leak_of(LEAK_GROWTH)};
    struct cm_leak *leak = &scene.leak;

    (void)state;
    give_verdict(leak, 1, leak->growth_count, "ok");
    tell(&scene, 0);
    leak->growth[0].bytes *= 2;
    scene.news.count = 0;
    assert_int_equal(cm_growth_announce(&scene.told, leak, &scene.news),
                     CM_OK);
    assert_int_equal(scene.news.count, 1);
    give_verdict(leak, 0, 1, "growing");
    cm_growth_recall(&scene.told, leak, &scene.news);
    assert_int_equal(scene.news.count, 0);
    give_verdict(leak, 0, 1, "leak");
    tell(&scene, 0);
    assert_int_equal(scene.news.count, 1);
    give_verdict(leak, 0, 1, "settled");
    assert_int_equal(stopped(&scene), 1);
    scene_release(&scene);
}

/* At once, but not for ever: what fills and empties would be told each time. */
static void
test_what_grows_again_is_told_a_few_times(void **state)
{
    struct scene scene = {.leak = leak_of(LEAK_GROWTH)};
    struct cm_leak *leak = &scene.leak;
    const size_t times = 3;

    (void)state;
    give_verdict(leak, 1, 2, "ok");
    for (size_t i = 0; i < 2 * times; i++) {
        give_verdict(leak, 0, 1, "leak");
        tell(&scene, 0);
        give_verdict(leak, 0, 1, "settled");
        assert_int_equal(stopped(&scene), i < times);
    }
    assert_int_equal(scene.news.count, times);
    give_verdict(leak, 0, 1, "leak");
    leak->growth[0].bytes *= 2;
    tell(&scene, 0);
    assert_int_equal(scene.news.count, times + 1);
    leak->growth[0].bytes /= 100;
    give_verdict(leak, 0, 1, "ok");
    assert_int_equal(stopped(&scene), 1);
    assert_string_equal(cm_buffer_text(&scene.text),
                        "cumem: given back: train.py:41 step, 33 MiB of 1.6 "
                        "GiB are left (told as a leak before)\n");
    scene_release(&scene);
}

/* Before: the verdicts are those of the document. */
static enum cm_status
attempt(void *context)
{
    struct cm_leak *leak = context;
    struct cm_growth_told told = {0};
    struct cm_ledger_news news = {0};
    struct cm_buffer text = {0};
    struct cm_growth_stopped found = {.row = 0, .lines = 2, .peak = 5};
    enum cm_status status = cm_growth_announce(&told, leak, &news);

    if (status == CM_OK) {
        status = cm_growth_stopped_write(&found, leak, &text);
    }
    cm_growth_told_release(&told);
    cm_ledger_news_release(&news);
    cm_buffer_release(&text);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct cm_leak leak = leak_of(LEAK_GROWTH);

    (void)state;
    cm_fail_each(attempt, &leak);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_and_doubled_faults_are_told),
        cmocka_unit_test(test_the_same_gradients_linger_once),
        cmocka_unit_test(test_a_fault_of_several_lines_is_told_once),
        cmocka_unit_test(test_what_stopped_is_told_once),
        cmocka_unit_test(test_a_fault_that_goes_on_has_not_stopped),
        cmocka_unit_test(test_what_was_not_shown_has_not_stopped),
        cmocka_unit_test(test_what_is_over_before_it_is_told_is_forgotten),
        cmocka_unit_test(test_what_doubled_before_it_stopped_was_told),
        cmocka_unit_test(test_what_grows_again_is_told_a_few_times),
        cmocka_unit_test(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
