/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <pthread.h>

#include "../allocator_hooks/origins.h"
#include "fail_each.h"

enum { SITES = 300, LIBRARIES = 10, THREADS = 4 };

static struct cm_origin
origin_of(uint32_t site, uint16_t library)
{
    return (struct cm_origin){.site = {site}, .library = library};
}

static void
gives_each_pair_one_number(void **state)
{
    (void)state;
    struct cm_origins *origins = cm_origins_new(1 << 20);
    uint32_t first = cm_origins_number(origins, origin_of(7, 3));
    assert_int_not_equal(first, 0);
    assert_int_equal(cm_origins_number(origins, origin_of(7, 3)), first);
    assert_int_not_equal(cm_origins_number(origins, origin_of(7, 4)), first);
    assert_int_not_equal(cm_origins_number(origins, origin_of(3, 7)), first);
    struct cm_origin found = cm_origins_get(origins, first);
    assert_int_equal(found.site.index, 7);
    assert_int_equal(found.library, 3);
    cm_origins_free(origins);
}

static void
has_number_0_for_what_is_not_known(void **state)
{
    (void)state;
    struct cm_origins *origins = cm_origins_new(1 << 20);
    assert_int_equal(cm_origins_number(origins, origin_of(0, 0)), 0);
    assert_int_not_equal(cm_origins_number(origins, origin_of(0, 1)), 0);
    assert_int_not_equal(cm_origins_number(origins, origin_of(1, 0)), 0);
    for (uint32_t number = 0; number < 10; number += 3) {
        assert_int_equal(cm_origins_get(origins, number).library, 0);
        assert_int_equal(cm_origins_get(origins, number).site.index, 0);
    }
    assert_int_equal(cm_origins_get(origins, UINT32_MAX).library, 0);
    cm_origins_free(origins);
}

static void
stops_at_its_bound(void **state)
{
    (void)state;
    struct cm_origins *origins = cm_origins_new(2);
    uint32_t first = cm_origins_number(origins, origin_of(1, 1));
    assert_int_not_equal(cm_origins_number(origins, origin_of(2, 1)), 0);
    assert_int_equal(cm_origins_number(origins, origin_of(3, 1)), 0);
    assert_int_equal(cm_origins_number(origins, origin_of(1, 1)), first);
    cm_origins_free(origins);
}

static void *
add_all(void *context)
{
    struct cm_origins *origins = context;
    for (uint32_t at = 0; at < SITES * LIBRARIES; at++) {
        struct cm_origin origin =
            origin_of(at % SITES + 1, (uint16_t)(at / SITES + 1));
        struct cm_origin found =
            cm_origins_get(origins, cm_origins_number(origins, origin));
        if (found.site.index != origin.site.index
            || found.library != origin.library) {
            return origins;
        }
    }
    return NULL;
}

static void
serves_threads_at_once(void **state)
{
    (void)state;
    struct cm_origins *origins = cm_origins_new(SITES * LIBRARIES);
    pthread_t threads[THREADS];
    for (size_t at = 0; at < THREADS; at++) {
        pthread_create(&threads[at], NULL, add_all, origins);
    }
    for (size_t at = 0; at < THREADS; at++) {
        void *failed;
        pthread_join(threads[at], &failed);
        assert_null(failed);
    }
    cm_origins_free(origins);
}

static enum cm_status
everything(void *context)
{
    (void)context;
    struct cm_origins *origins = cm_origins_new(SITES);
    enum cm_status status = origins != NULL ? CM_OK : CM_NO_MEMORY;
    for (uint32_t site = 1; origins != NULL && site <= SITES; site++) {
        if (cm_origins_number(origins, origin_of(site, 1)) == 0) {
            status = CM_NO_MEMORY;
        }
    }
    cm_origins_free(origins);
    return status;
}

static void
has_no_number_without_memory(void **state)
{
    (void)state;
    cm_fail_each(everything, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_each_pair_one_number),
        cmocka_unit_test(has_number_0_for_what_is_not_known),
        cmocka_unit_test(stops_at_its_bound),
        cmocka_unit_test(serves_threads_at_once),
        cmocka_unit_test(has_no_number_without_memory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
