/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fail_each.h"
#include "fake_gpu.h"

#include "../allocator_hooks/process_use.h"

static struct fake_cuda *cuda;
static struct fake_nvml *nvml;

static const unsigned long long GIB = 1ull << 30;

static bool
numbers_are_the_hosts(void)
{
    char name[16] = "";
    FILE *file = fopen("/proc/2/comm", "re");
    bool read = file != NULL && fgets(name, sizeof(name), file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    return read && strcmp(name, "kthreadd\n") == 0;
}

static void
load_fakes(void)
{
    void *library = dlopen(FAKES "/libcuda.so.1", RTLD_NOW);
    cuda = dlsym(library, "fake_cuda");
    library = dlopen(FAKES "/libnvidia-ml.so.1", RTLD_NOW);
    nvml = dlsym(library, "fake_nvml");
    *cuda = (struct fake_cuda){
        .devices = 2,
        .first_uuid = 0x20,
        .primary_active = 1,
    };
    *nvml = (struct fake_nvml){
        .kind = "GPU",
        .first_uuid = 0x21, /* CUDA's device 1 */
        .total = 80 * GIB,
        .used = 12 * GIB,
        .free = 68 * GIB,
        .process_count = 1,
        .pids = {4711},
        .bytes = {10 * GIB},
    };
}

/* Answers why, having checked that false leaves the result alone. */
static const char *
ask(int device, bool expected, struct cm_process_use *use)
{
    const char *why = "untouched";
    *use = (struct cm_process_use){1, 2, 3, 4, 5};
    assert_int_equal(cm_process_use(device, use, &why), expected);
    if (!expected) {
        assert_non_null(why);
        assert_int_equal(use->total, 1);
        assert_int_equal(use->others, 5);
    }
    return why;
}

/* Each case in a process of its own: what is loaded stays loaded. */
static void
in_a_child(void (*test)(void))
{
    pid_t pid = fork();
    int status = -1;
    if (pid == 0) {
        test();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* In a child cmocka cannot report: the place dies. */
#define MUST(condition)                                                       \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "# line %d\n", __LINE__);                         \
            _exit(1);                                                         \
        }                                                                     \
    } while (0)

static void
without_cuda(void)
{
    struct cm_process_use use = {0};
    const char *why = NULL;
    MUST(!cm_process_use(0, &use, &why));
    MUST(strstr(why, "not in use") != NULL);
}

static void
without_nvml(void)
{
    struct cm_process_use use = {0};
    const char *why = NULL;
    if (dlopen("libnvidia-ml.so.1", RTLD_LAZY) != NULL) {
        return; /* there is a real one */
    }
    cuda = dlsym(dlopen(FAKES "/libcuda.so.1", RTLD_NOW), "fake_cuda");
    *cuda = (struct fake_cuda){.devices = 1};
    MUST(!cm_process_use(0, &use, &why));
    MUST(strstr(why, "NVML") != NULL);
    cuda->current = &use;
    cuda->current_device = 10;
    cuda->total = 100;
    cuda->free = 30;
    MUST(cm_process_use(0, &use, &why));
    MUST(use.total == 100 && use.used == 70 && use.free == 30);
    MUST(use.own == CM_USE_UNKNOWN && use.others == CM_USE_UNKNOWN);
    MUST(strstr(why, "NVML") != NULL);
    cuda->current_device = 11; /* another device's context */
    MUST(!cm_process_use(0, &use, &why));
    MUST(cuda->initialised == 0);
}

static void
when_nvml_cannot_begin(void)
{
    struct cm_process_use use = {0};
    const char *why = NULL;
    load_fakes();
    nvml->init_result = 9;
    MUST(!cm_process_use(1, &use, &why));
    MUST(strstr(why, "initialised") != NULL);
    MUST(!cm_process_use(1, &use, &why));
    MUST(nvml->inits == 1);
}

static void
says_what_is_missing(void **state)
{
    (void)state;
    in_a_child(without_cuda);
    in_a_child(without_nvml);
    in_a_child(when_nvml_cannot_begin);
}

static void
finds_the_device_by_what_cuda_calls_it(void **state)
{
    (void)state;
    struct cm_process_use use;
    load_fakes();
    (void)ask(1, true, &use);
    assert_true(use.total == 80 * GIB && use.used == 12 * GIB);
    assert_true(use.free == 68 * GIB);
    assert_non_null(strstr(ask(0, false, &use), "NVML does not know"));
    assert_non_null(strstr(ask(2, false, &use), "no such device"));
    assert_non_null(strstr(ask(-1, false, &use), "no such device"));
    nvml->kind = "MIG";
    (void)ask(1, true, &use);
    cuda->count_result = 3;
    assert_non_null(strstr(ask(1, false, &use), "not initialised"));
    cuda->count_result = 4;
    assert_non_null(strstr(ask(1, false, &use), "no such device"));
    assert_int_equal(cuda->initialised, 0);
    assert_int_equal(nvml->inits, 1);
}

static void
tells_own_from_others(void **state)
{
    (void)state;
    struct cm_process_use use;
    load_fakes();
    nvml->process_count = 3;
    nvml->pids[1] = (unsigned)getpid();
    nvml->bytes[1] = GIB;
    nvml->bytes[2] = GIB;
    nvml->pids[2] = 1;
    const char *why = ask(1, true, &use);
    if (numbers_are_the_hosts()) {
        assert_null(why);
        assert_true(use.own == GIB && use.others == 11 * GIB);
    }
    else {
        assert_non_null(strstr(why, "container"));
        assert_true(use.own == CM_USE_UNKNOWN && use.others == CM_USE_UNKNOWN);
        nvml->process_count = 1; /* with our context there: it is us */
        assert_null(ask(1, true, &use));
        assert_true(use.own == 10 * GIB && use.others == 0);
        cuda->primary_active = 0;
        assert_non_null(ask(1, true, &use));
        assert_true(use.own == CM_USE_UNKNOWN);
    }
}

static void
says_when_the_list_tells_nothing(void **state)
{
    (void)state;
    struct cm_process_use use;
    load_fakes();
    nvml->process_count = 0;
    assert_non_null(ask(1, true, &use));
    assert_true(use.own == CM_USE_UNKNOWN && use.free == 68 * GIB);
    nvml->process_count = 2;
    nvml->bytes[1] = UINT64_MAX;
    assert_non_null(strstr(ask(1, true, &use), "does not tell"));
    nvml->processes_result = 3;
    assert_non_null(strstr(ask(1, true, &use), "no list"));
    load_fakes();
    nvml->process_count = 60;
    nvml->grow_by = 10;
    (void)ask(1, true, &use);
    nvml->grow_by = 1000; /* never enough */
    assert_non_null(strstr(ask(1, true, &use), "no list"));
    nvml->memory_result = 9;
    assert_non_null(strstr(ask(1, false, &use), "does not know"));
    cuda->current = &use;
    cuda->current_device = 11;
    cuda->total = 5;
    assert_non_null(ask(1, true, &use));
    assert_int_equal(use.used, 5);
    cuda->free = 6;
    (void)ask(1, false, &use);
}

static void
in_a_forked_child(void)
{
    struct cm_process_use use = {0};
    const char *why = NULL;
    MUST(!cm_process_use(1, &use, &why));
    MUST(strstr(why, "forked") != NULL);
}

static void
leaves_a_forked_child_alone(void **state)
{
    (void)state;
    struct cm_process_use use;
    load_fakes();
    (void)ask(1, true, &use);
    in_a_child(in_a_forked_child);
}

static enum cm_status
attempt(void *context)
{
    (void)context;
    struct cm_process_use use;
    const char *why = ask(1, true, &use);
    return why != NULL && strstr(why, "no list") != NULL ? CM_NO_MEMORY
                                                         : CM_OK;
}

static void
each_allocation_fails(void **state)
{
    (void)state;
    load_fakes();
    cm_fail_each(attempt, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_is_missing),
        cmocka_unit_test(finds_the_device_by_what_cuda_calls_it),
        cmocka_unit_test(tells_own_from_others),
        cmocka_unit_test(says_when_the_list_tells_nothing),
        cmocka_unit_test(leaves_a_forked_child_alone),
        cmocka_unit_test(each_allocation_fails),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
