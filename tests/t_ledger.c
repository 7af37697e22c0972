/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fail_each.h"

#include "../reports/ledger.h"
#include "../reports/libraries.h"

/* One collection: a Ring that refers to itself and holds a tensor; its line
 * is in a file of the test's folder. */
struct scene {
    struct cm_records *records;
    struct cm_heap heap;
    struct cm_finding finding;
    struct cm_findings findings;
    uint32_t component[1], payload[1], freed[1];
    struct cm_bytes_on bytes_on[1];
    struct cm_code_id code, library;
};

static struct cm_text_id
text(struct scene *self, const char *bytes)
{
    return cm_texts_intern(cm_records_texts(self->records), bytes);
}

static void
fill_records(struct scene *self, struct cm_type_id *type,
             struct cm_site_id *site)
{
    const struct cm_code code = {.filename = text(self, "ring.py"),
                                 .name = text(self, "__init__"),
                                 .qualified_name =
                                     text(self, "Ring.__init__")};
    const struct cm_code library = {.filename = text(self, "zeros.py"),
                                    .qualified_name = text(self, "zeros"),
                                    .library = true};
    const struct cm_type ring = {.name = text(self, "Ring")};

    assert_int_equal(cm_records_add_code(self->records, &code, &self->code),
                     CM_OK);
    assert_int_equal(
        cm_records_add_code(self->records, &library, &self->library), CM_OK);
    assert_int_equal(cm_records_add_type(self->records, &ring, type), CM_OK);
    assert_int_equal(
        cm_records_add_site(
            self->records,
            &(struct cm_site){.frames = (struct cm_frame[]){{self->library, 1},
                                                            {self->code, 3}},
                              .frame_count = 2},
            site),
        CM_OK);
}

static void
fill_heap(struct scene *self, struct cm_type_id type, struct cm_site_id site)
{
    const struct cm_node ring = {.type = type,
                                 .label = text(self, "__main__.Ring")};
    struct cm_node tensor = {.species = CM_TENSOR,
                             .label = text(self, "Tensor \xff"),
                             .bytes = 4096,
                             .site = site};
    struct cm_node_id id;

    assert_int_equal(cm_heap_add_storage(
                         &self->heap,
                         &(struct cm_storage){.key = 1,
                                              .device_address = 0x7f00,
                                              .bytes = 4096,
                                              .device = text(self, "cuda:0"),
                                              .site = site},
                         &tensor.storage),
                     CM_OK);
    assert_int_equal(cm_heap_add_node(&self->heap, &ring, &id), CM_OK);
    assert_int_equal(cm_heap_add_node(&self->heap, &tensor, &id), CM_OK);
    assert_int_equal(
        cm_heap_add_edge(
            &self->heap,
            &(struct cm_edge){1, 1, text(self, ".next"), CM_ATTRIBUTE}),
        CM_OK);
    assert_int_equal(
        cm_heap_add_edge(&self->heap, &(struct cm_edge){1, 2, text(self, ".x"),
                                                        CM_ATTRIBUTE}),
        CM_OK);
    assert_int_equal(cm_heap_seal(&self->heap), CM_OK);
    self->heap.iteration = 5;
    self->heap.time_ns = UINT64_C(1700000000500000000);
}

static struct scene *
make_scene(void)
{
    static char advice[] = "make .next a weakref.ref";
    struct scene *self = cm_calloc(1, sizeof(*self));
    struct cm_type_id type;
    struct cm_site_id site;

    self->records = cm_records_new((size_t)1 << 20);
    fill_records(self, &type, &site);
    fill_heap(self, type, site);
    self->component[0] = 1;
    self->payload[0] = 2;
    self->freed[0] = 1;
    self->bytes_on[0] =
        (struct cm_bytes_on){.device = text(self, "cuda:0"), .bytes = 8192};
    self->finding = (struct cm_finding){
        .fingerprint = 0x3f9a2c0000000001,
        .component = self->component,
        .component_count = 1,
        .payload = self->payload,
        .payload_count = 1,
        .freed = self->freed,
        .freed_count = 1,
        .count = 2,
        .bytes_each = 4096,
        .bytes_total = 8192,
        .bytes_on = self->bytes_on,
        .device_count = 1,
        .cut_edge = 1,
        .rule = "self_reference",
        .advice = advice,
        .places = {{.code = self->code, .line = 3, .certain = true}},
        .place_count = 1,
    };
    self->findings = (struct cm_findings){
        .items = &self->finding, .count = 1, .dead_bytes = 8192};
    return self;
}

static void
free_scene(struct scene *self)
{
    cm_heap_release(&self->heap);
    cm_records_free(self->records);
    cm_free(self);
}

static enum cm_status
add(struct scene *self, struct cm_leak *leak, struct cm_ledger_news *news)
{
    return cm_ledger_add(leak, &self->heap, &self->findings, self->records,
                         news);
}

static char folder[64];

static int
enter_folder(void **state)
{
    FILE *file;

    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/cumem-t-ledger-XXXXXX");
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) {
        return -1;
    }
    file = fopen("ring.py", "w");
    if (file == NULL) {
        return -1;
    }
    fputs("class Ring:\n    def __init__(self):\n        self.next = self\n\n"
          "Ring()\n",
          file);
    return fclose(file);
}

static int
leave_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

/* What the allocator said of a storage's block, if it said anything. */
static void
test_block_is_copied(void **state)
{
    struct scene *scene = make_scene();
    struct cm_leak leak = {0}, other = {0};
    struct cm_storage *storage = &scene->heap.storages[1];

    (void)state;
    assert_int_equal(cm_leak_init(&leak), CM_OK);
    assert_int_equal(cm_leak_init(&other), CM_OK);
    assert_int_equal(add(scene, &other, NULL), CM_OK);
    assert_int_equal(other.storages[0].block_bytes, 0);
    assert_int_equal(other.storages[0].stream, -1);
    storage->block_bytes = 8192;
    storage->stream = 0x7f;
    storage->pool = text(scene, "(0, 1)");
    storage->thread = 4711;
    storage->awaited = true;
    assert_int_equal(add(scene, &leak, NULL), CM_OK);
    assert_int_equal(leak.storages[0].block_bytes, 8192);
    assert_int_equal(leak.storages[0].stream, 0x7f);
    assert_int_equal(leak.storages[0].thread, 4711);
    assert_true(leak.storages[0].awaited);
    assert_string_equal(cm_leak_text(&leak, leak.storages[0].pool), "(0, 1)");
    cm_leak_release(&leak);
    cm_leak_release(&other);
    free_scene(scene);
}

static void
test_new_finding_is_copied(void **state)
{
    struct scene *scene = make_scene();
    struct cm_leak leak = {0};
    const struct cm_leak_cycle *cycle;
    const struct cm_leak_frame *place;

    (void)state;
    assert_int_equal(cm_leak_init(&leak), CM_OK);
    assert_int_equal(add(scene, &leak, NULL), CM_OK);
    free_scene(scene); /* nothing refers to it */
    assert_null(cm_leak_check(&leak));
    assert_int_equal(leak.cycle_count, 1);
    cycle = &leak.cycles[0];
    assert_string_equal(cm_leak_text(&leak, cycle->class), "collectable");
    assert_string_equal(cm_leak_text(&leak, cycle->rule), "self_reference");
    assert_string_equal(cm_leak_text(&leak, cycle->advice),
                        "make .next a weakref.ref");
    assert_int_equal(cycle->first_iteration, 5);
    assert_true(cycle->time == 1700000000.5);
    assert_int_equal(cycle->payload_count, 1);
    assert_int_equal(cycle->cut_count, 1);
    place = &cm_leak_edge_at(&leak, cycle->cut[0])->made_at[0];
    assert_string_equal(cm_leak_text(&leak, place->source),
                        "        self.next = self");
    assert_string_equal(cm_leak_text(&leak, place->before),
                        "class Ring:\n    def __init__(self):");
    assert_string_equal(cm_leak_text(&leak, place->after), "\nRing()");
    assert_true(place->certain);
    assert_int_equal(leak.sites[0].user_frame, 1);
    assert_string_equal(cm_leak_text(&leak, leak.vertices[1].annotation),
                        "Tensor \xEF\xBF\xBD"); /* valid UTF-8 */
    assert_int_equal(leak.vertices[1].storage, 1);
    assert_int_equal(leak.storages[0].vertices[0], 2);
    cm_leak_release(&leak);
}

static void
test_equal_findings_are_folded_over_time(void **state)
{
    struct scene *scene = make_scene();
    struct cm_leak leak = {0};

    (void)state;
    assert_int_equal(cm_leak_init(&leak), CM_OK);
    for (int i = 0; i < 3; i++) {
        scene->heap.iteration = 5 + i;
        scene->finding.bytes_total = i == 1 ? 40960 : 8192;
        scene->bytes_on[0].bytes = scene->finding.bytes_total;
        assert_int_equal(add(scene, &leak, NULL), CM_OK);
    }
    assert_int_equal(leak.cycle_count, 1);
    assert_int_equal(leak.cycles[0].count, 6);
    assert_int_equal(leak.cycles[0].total_bytes, 8192 * 2 + 40960);
    assert_int_equal(leak.cycles[0].peak_bytes, 40960);
    assert_int_equal(leak.cycles[0].first_iteration, 5);
    assert_int_equal(leak.cycles[0].last_iteration, 7);
    assert_int_equal(leak.vertex_count, 2);
    assert_int_equal(leak.site_count, 1);
    assert_int_equal(leak.device_count, 1);
    assert_int_equal(leak.devices[0].dead_peak, 40960);
    assert_int_equal(leak.devices[0].dead_peak_iteration, 6);
    cm_leak_release(&leak);
    free_scene(scene);
}

static void
test_news_at_first_then_when_doubled(void **state)
{
    struct scene *scene = make_scene();
    struct cm_leak leak = {0};
    struct cm_ledger_news news = {0};
    /* Total 1, 2, 3, ... times: named at 1, 2, 4, 8. */
    static const size_t named[] = {1, 2, 2, 3, 3, 3, 3, 4};

    (void)state;
    assert_int_equal(cm_leak_init(&leak), CM_OK);
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        assert_int_equal(add(scene, &leak, &news), CM_OK);
        assert_int_equal(news.count, named[i]);
        assert_int_equal(news.fingerprints[news.count - 1],
                         0x3f9a2c0000000001);
    }
    cm_ledger_news_release(&news);
    cm_leak_release(&leak);
    free_scene(scene);
}

static void
test_resurrected_enters_no_total(void **state)
{
    struct scene *scene = make_scene();
    struct cm_leak leak = {0};
    struct cm_ledger_news news = {0};

    (void)state;
    assert_int_equal(cm_leak_init(&leak), CM_OK);
    scene->finding.class = CM_CLASS_RESURRECTED;
    assert_int_equal(add(scene, &leak, &news), CM_OK);
    assert_int_equal(news.count, 0);
    assert_int_equal(leak.cycle_count, 1);
    assert_int_equal(leak.device_count, 0);
    scene->finding.class = CM_CLASS_COLLECTABLE; /* dies later */
    assert_int_equal(add(scene, &leak, &news), CM_OK);
    assert_int_equal(news.count, 1);
    assert_int_equal(leak.cycle_count, 2);
    assert_int_equal(leak.cycles[1].count, 2);
    assert_int_equal(leak.devices[0].dead_peak, 8192);
    cm_ledger_news_release(&news);
    cm_leak_release(&leak);
    free_scene(scene);
}

static void
test_what_is_left_out_is_counted(void **state)
{
    struct scene *scene = make_scene();
    struct cm_leak leak = {0};

    (void)state;
    assert_int_equal(cm_leak_init(&leak), CM_OK);
    scene->heap.nodes_cut = 7;
    for (uint64_t i = 0; i < CM_LEDGER_MAX_CYCLES + 3; i++) {
        scene->finding.fingerprint = i + 1;
        assert_int_equal(add(scene, &leak, NULL), CM_OK);
    }
    assert_int_equal(leak.cycle_count, CM_LEDGER_MAX_CYCLES);
    assert_int_equal(leak.lost_events, 3);
    assert_int_equal(leak.lost_nodes, 7 * (CM_LEDGER_MAX_CYCLES + 3));
    assert_string_equal(
        cm_leak_text(&leak, leak.lost_reason),
        "of one collection a part: a bound on objects or on time was met");
    cm_leak_release(&leak);
    free_scene(scene);
}

static void
test_library_findings_carry_their_link(void **state)
{
    struct scene *scene = make_scene();
    static char tensordict[] = "tensordict", other[] = "other";
    struct cm_leak leak = {0};

    (void)state;
    assert_int_equal(cm_leak_init(&leak), CM_OK);
    scene->finding.library = other;
    assert_int_equal(add(scene, &leak, NULL), CM_OK);
    scene->finding.library = tensordict;
    scene->finding.fingerprint = 2;
    assert_int_equal(add(scene, &leak, NULL), CM_OK);
    assert_string_equal(cm_leak_text(&leak, leak.cycles[0].library_package),
                        "other");
    assert_int_equal(leak.cycles[0].library_link.index, 0);
    assert_string_equal(cm_leak_text(&leak, leak.cycles[1].library_link),
                        "https://github.com/pytorch/tensordict/issues/1187");
    cm_leak_release(&leak);
    free_scene(scene);
}

/* The rules are data: each must be whole. */
static void
test_library_rules(void **state)
{
    const struct cm_library_rule *rule;
    size_t count = 0;

    (void)state;
    for (; (rule = cm_library_rule(count)) != NULL; count++) {
        assert_true(rule->package[0] != '\0');
        assert_true(rule->type[0] != '\0' && rule->function[0] != '\0');
        assert_int_equal(strncmp(rule->link, "https://github.com/", 19), 0);
    }
    assert_true(count >= 3);
    assert_true(cm_glob_matches("FlatParamHandle", "torch.x.FlatParamHandle"));
    assert_false(cm_glob_matches("Flat", "torch.x.FlatParamHandle"));
}

/* A second, different finding: after a failure the document is as it was. */
static enum cm_status
attempt(void *context)
{
    struct scene *scene = context;
    struct cm_ledger_news news = {0};
    struct cm_leak leak = {0};
    enum cm_status status = cm_leak_init(&leak);

    scene->finding.fingerprint = 1;
    if (status == CM_OK) {
        status = add(scene, &leak, &news);
    }
    if (status == CM_OK) {
        scene->finding.fingerprint = 2;
        status = add(scene, &leak, &news);
    }
    if (leak.texts != NULL) {
        size_t cycles = leak.cycle_count;

        assert_null(cm_leak_check(&leak));
        assert_int_equal(leak.vertex_count, 2 * cycles);
        assert_int_equal(leak.edge_count, 2 * cycles);
        assert_int_equal(leak.storage_count, cycles);
    }
    cm_ledger_news_release(&news);
    cm_leak_release(&leak);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    struct scene *scene = make_scene();

    (void)state;
    cm_fail_each(attempt, scene);
    free_scene(scene);
}

#define IN_FOLDER(test)                                                       \
    cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_new_finding_is_copied),
        IN_FOLDER(test_block_is_copied),
        IN_FOLDER(test_equal_findings_are_folded_over_time),
        IN_FOLDER(test_news_at_first_then_when_doubled),
        IN_FOLDER(test_resurrected_enters_no_total),
        IN_FOLDER(test_what_is_left_out_is_counted),
        IN_FOLDER(test_library_findings_carry_their_link),
        cmocka_unit_test(test_library_rules),
        IN_FOLDER(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
