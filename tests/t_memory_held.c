/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include "leak_case.h"

#include "../reports/memory_held.h"
#include "fail_each.h"

enum { MANY = 40000 };

static struct cm_text_id
text(struct cm_leak *leak, const char *kind, size_t number)
{
    char name[32];

    snprintf(name, sizeof(name), "%s%zu", kind, number);
    return cm_texts_intern(leak->texts, name);
}

/* Takes the place of what the document holds. */
static void
make_room(struct cm_leak *leak, size_t count)
{
    cm_free(leak->held);
    leak->held = cm_calloc(count, sizeof(*leak->held));
    assert_non_null(leak->held);
    leak->held_count = leak->held_capacity = count;
}

static void
set(struct cm_leak *leak, size_t at, size_t device, const char *framework,
    size_t library, uint64_t bytes)
{
    leak->held[at] = (struct cm_leak_held){
        .device = text(leak, "cuda:", device),
        .framework = cm_texts_intern(leak->texts, framework),
        .library = text(leak, "lib", library),
        .bytes = bytes,
        .count = 1,
    };
}

/* Two devices and two kinds, mixed: the first device is known. */
static void
mix(struct cm_leak *leak)
{
    make_room(leak, 7);
    set(leak, 0, 1, "driver", 2, UINT64_MAX - 1);
    set(leak, 1, 0, "torch", 0, 7);
    set(leak, 2, 1, "torch", 0, 6);
    set(leak, 3, 1, "driver", 1, 5);
    set(leak, 4, 0, "jax", 0, 4);
    set(leak, 5, 1, "driver", 2, 3);
    set(leak, 6, 0, "driver", 2, 2);
}

static void
expect_rows(const struct cm_memory_held *held, size_t device, bool driver,
            const size_t *places, size_t count, uint64_t bytes)
{
    struct cm_text_id name = held->leak->held[device == 0 ? 1 : 0].device;
    struct cm_memory_rows all = cm_memory_held_of(held, name, driver);

    assert_int_equal(all.count, count);
    assert_int_equal(all.bytes, bytes);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(all.rows[i], &held->leak->held[places[i]]);
    }
}

static void
test_rows_of_a_device_keep_their_order(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_memory_held held = {0};

    (void)state;
    mix(&leak);
    assert_int_equal(cm_memory_held_init(&held, &leak), CM_OK);
    expect_rows(&held, 0, false, (size_t[]){1, 4}, 2, 11);
    expect_rows(&held, 0, true, (size_t[]){6}, 1, 2);
    expect_rows(&held, 1, false, (size_t[]){2}, 1, 6);
    expect_rows(&held, 1, true, (size_t[]){0, 3, 5}, 3, UINT64_MAX - 1);
    assert_int_equal(
        cm_memory_held_of(&held, text(&leak, "cuda:", 9), true).count, 0);
    cm_memory_held_release(&held);
    cm_leak_release(&leak);
}

static void
test_libraries_come_as_in_the_document(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_memory_held held = {0};
    const struct cm_memory_library *found;
    size_t count;

    (void)state;
    mix(&leak);
    leak.held[0].bytes = 9;
    assert_int_equal(cm_memory_held_init(&held, &leak), CM_OK);
    found = cm_memory_held_libraries(&held, leak.held[0].device, &count);
    assert_int_equal(count, 2);
    assert_ptr_equal(found[0].most, &leak.held[0]);
    assert_int_equal(found[0].bytes, 12);
    assert_ptr_equal(found[1].most, &leak.held[3]);
    assert_int_equal(found[1].bytes, 5);
    found = cm_memory_held_libraries(&held, leak.held[1].device, &count);
    assert_int_equal(count, 1);
    assert_ptr_equal(found[0].most, &leak.held[6]);
    assert_null(
        cm_memory_held_libraries(&held, text(&leak, "cuda:", 9), &count));
    assert_int_equal(count, 0);
    cm_memory_held_release(&held);
    cm_leak_release(&leak);
}

static void
test_the_first_item_of_an_unknown_device_is_alone(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_memory_held held = {0};

    (void)state;
    mix(&leak);
    assert_int_equal(leak.device_count, 1);
    assert_true(cm_text_same(leak.devices[0].name, leak.held[1].device));
    assert_int_equal(cm_memory_held_init(&held, &leak), CM_OK);
    for (size_t i = 0; i < leak.held_count; i++) {
        assert_int_equal(cm_memory_held_is_alone(&held, i), i == 0);
    }
    cm_memory_held_release(&held);
    cm_leak_device_release(&leak.devices[0]);
    cm_leak_device_init(&leak.devices[0]);
    leak.devices[0].name = leak.held[1].device;
    assert_int_equal(cm_memory_held_init(&held, &leak), CM_OK);
    for (size_t i = 0; i < leak.held_count; i++) {
        assert_int_equal(cm_memory_held_is_alone(&held, i), i < 2);
    }
    cm_memory_held_release(&held);
    cm_leak_release(&leak);
}

static void
test_nothing_held(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_memory_held held = {0};
    size_t count = 1;

    (void)state;
    make_room(&leak, 1);
    leak.held_count = 0;
    assert_int_equal(cm_memory_held_init(&held, &leak), CM_OK);
    assert_int_equal(
        cm_memory_held_of(&held, leak.devices[0].name, false).count, 0);
    assert_null(cm_memory_held_libraries(&held, leak.devices[0].name, &count));
    assert_int_equal(count, 0);
    cm_memory_held_release(&held);
    cm_memory_held_release(&held);
    cm_leak_release(&leak);
}

/* Each asked of once: minutes where each is looked for among all. */
static void
test_as_many_devices_as_items(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);
    struct cm_memory_held held = {0};
    size_t count;

    (void)state;
    make_room(&leak, 2 * (size_t)MANY);
    for (size_t i = 0; i < MANY; i++) {
        set(&leak, i, i, "torch", 0, i);
        set(&leak, 2 * (size_t)MANY - 1 - i, i, "driver", i, i);
    }
    assert_int_equal(cm_memory_held_init(&held, &leak), CM_OK);
    for (size_t i = 0; i < MANY; i++) {
        struct cm_text_id device = leak.held[i].device;
        struct cm_memory_rows rows = cm_memory_held_of(&held, device, false);

        assert_ptr_equal(rows.rows[0], &leak.held[i]);
        assert_int_equal(cm_memory_held_of(&held, device, true).bytes, i);
        assert_non_null(cm_memory_held_libraries(&held, device, &count));
        assert_int_equal(count, 1);
        assert_int_equal(cm_memory_held_is_alone(&held, i), i != 0);
        assert_false(cm_memory_held_is_alone(&held, MANY + i));
    }
    cm_memory_held_release(&held);
    cm_leak_release(&leak);
}

static enum cm_status
make_once(void *context)
{
    struct cm_memory_held held = {0};
    enum cm_status status = cm_memory_held_init(&held, context);

    cm_memory_held_release(&held);
    return status;
}

static void
test_memory_may_run_out(void **state)
{
    struct cm_leak leak = leak_of(LEAK_MEMORY);

    (void)state;
    mix(&leak);
    cm_fail_each(make_once, &leak);
    cm_leak_release(&leak);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_a_device_keep_their_order),
        cmocka_unit_test(test_libraries_come_as_in_the_document),
        cmocka_unit_test(test_the_first_item_of_an_unknown_device_is_alone),
        cmocka_unit_test(test_nothing_held),
        cmocka_unit_test(test_as_many_devices_as_items),
        cmocka_unit_test(test_memory_may_run_out),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
