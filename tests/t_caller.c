/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fail_each.h"

#include "../allocator_hooks/caller.h"

typedef int call(void (*callback)(void *), void *context);

static char folder[] = "/tmp/cumem-caller-XXXXXX";

/* The framework's library under another name. */
static void *
load_as(const char *name, char *path, size_t room)
{
    char bytes[4096];
    ssize_t got;
    int from = open(FAKES "/libframework.so", O_RDONLY);
    (void)snprintf(path, room, "%s/%s", folder, name);
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    while ((got = read(from, bytes, sizeof(bytes))) > 0) {
        assert_int_equal(write(to, bytes, (size_t)got), got);
    }
    close(from);
    close(to);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static call *
call_of(void *library)
{
    void *symbol = dlsym(library, "fake_framework_call");
    call *result;
    memcpy(&result, &symbol, sizeof(symbol));
    assert_non_null(symbol);
    return result;
}

static void
find(void *context)
{
    *(uint16_t *)context = cm_caller_find();
}

static const char *
name_through(call *through)
{
    uint16_t library = 0;
    (void)through(find, &library);
    return cm_caller_name(library);
}

static void
names_the_library_that_calls(void **state)
{
    (void)state;
    char path[128];
    uint16_t library = 7;
    find(&library);
    assert_int_equal(library, 0); /* not started */
    assert_int_equal(cm_caller_start(), CM_OK);
    assert_int_equal(cm_caller_start(), CM_OK);
    void *one = load_as("libone.so.12", path, sizeof(path));
    assert_string_equal(name_through(call_of(one)), "libone.so.12");
    void *other = load_as("libother-1f2e.so", path, sizeof(path));
    assert_string_equal(name_through(call_of(other)), "libother-1f2e.so");
    assert_string_equal(name_through(call_of(one)), "libone.so.12");
    assert_int_equal(dlclose(one), 0);
    assert_string_equal(name_through(call_of(other)), "libother-1f2e.so");
    assert_int_equal(dlclose(other), 0);
}

/* A frame of the framework, then one of CUDA's runtime. */
struct nested {
    call *inner;
    uint16_t library;
};

static void
call_inner(void *context)
{
    struct nested *nested = context;
    (void)nested->inner(find, &nested->library);
}

static void
passes_over_the_layers_of_cuda(void **state)
{
    (void)state;
    static const char *const layers[] = {"libcudart.so.13",
                                         "libcudart-9335f6a2.so.12",
                                         "libcuda.so.1", "libcupti.so.13"};
    char path[128];
    void *outer = load_as("libouter.so", path, sizeof(path));
    for (size_t at = 0; at < sizeof(layers) / sizeof(layers[0]); at++) {
        void *inner = load_as(layers[at], path, sizeof(path));
        struct nested nested = {.inner = call_of(inner)};
        (void)call_of(outer)(call_inner, &nested);
        assert_string_equal(cm_caller_name(nested.library), "libouter.so");
        assert_int_equal(dlclose(inner), 0);
    }
    assert_int_equal(dlclose(outer), 0);
}

/* Frames of ours between the framework's and the call. */
struct depth {
    int frames;
    uint16_t library;
    int64_t ns; /* of this thread, for all turns */
};

static int64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static __attribute__((noinline)) int
find_below(struct depth *depth, int frames)
{
    volatile int left = frames; /* used after the call: each has its frame */
    if (frames > 0) {
        return find_below(depth, frames - 1) + left;
    }
    int64_t start = now_ns();
    for (int turn = 0; turn < 200; turn++) {
        find(&depth->library);
    }
    depth->ns = now_ns() - start;
    return 0;
}

static void
find_deep(void *context)
{
    struct depth *depth = context;
    assert_true(find_below(depth, depth->frames) >= 0);
}

static void
r21_a_deep_stack_is_cut(void **state)
{
    (void)state;
    char path[128];
    struct depth few = {.frames = 10}, many = {.frames = 10000};
    void *library = load_as("libdeep.so", path, sizeof(path));
    (void)call_of(library)(find_deep, &few);
    (void)call_of(library)(find_deep, &many);
    assert_string_equal(cm_caller_name(few.library), "libdeep.so");
    assert_int_equal(many.library, 0);
    assert_true(many.ns < 10 * few.ns);
    assert_int_equal(dlclose(library), 0);
}

static void
a_name_has_one_number(void **state)
{
    (void)state;
    uint16_t one = cm_caller_named("libnccl.so.2", 12);
    assert_int_not_equal(one, 0);
    assert_int_equal(cm_caller_named("libnccl.so.2", 12), one);
    assert_int_equal(cm_caller_named("", 0), 0);
    assert_string_equal(cm_caller_name(one), "libnccl.so.2");
    assert_string_equal(cm_caller_name(0), "");
    assert_string_equal(cm_caller_name(0x7fff), "");
    assert_string_equal(cm_caller_name(0xffff), "");
}

static const char *
name_of_second(uint16_t library)
{
    return library == CM_CALLER_SECOND + 3 ? "libsecond.so" : "";
}

static void
asks_the_second_copy(void **state)
{
    (void)state;
    cm_caller_ask(name_of_second);
    assert_string_equal(cm_caller_name(CM_CALLER_SECOND + 3), "libsecond.so");
    cm_caller_ask(NULL);
    assert_string_equal(cm_caller_name(CM_CALLER_SECOND + 3), "");
}

static void
is_bounded(void **state)
{
    (void)state;
    char name[32];
    int none = 0;
    for (int at = 0; at < 40000; at++) {
        int length = snprintf(name, sizeof(name), "lib%d.so", at);
        none += cm_caller_named(name, (size_t)length) == 0;
    }
    assert_true(none > 0);
    assert_int_not_equal(cm_caller_named("lib3.so", 7), 0);
    cm_caller_release();
    assert_int_equal(cm_caller_start(), CM_OK);
}

static atomic_bool over;

static void *
find_all_the_time(void *context)
{
    while (!atomic_load(&over)) {
        assert_string_equal(name_through(context), "libstays.so");
    }
    return NULL;
}

static void
r22_threads_find_while_libraries_come_and_go(void **state)
{
    (void)state;
    char path[128];
    pthread_t threads[3];
    void *stays = load_as("libstays.so", path, sizeof(path));
    for (int at = 0; at < 3; at++) {
        pthread_create(&threads[at], NULL, find_all_the_time,
                       (void *)call_of(stays));
    }
    for (int at = 0; at < 100; at++) {
        void *other = load_as("libgoes.so", path, sizeof(path));
        assert_string_equal(name_through(call_of(other)), "libgoes.so");
        assert_int_equal(dlclose(other), 0);
    }
    atomic_store(&over, true);
    for (int at = 0; at < 3; at++) {
        pthread_join(threads[at], NULL);
    }
    assert_int_equal(dlclose(stays), 0);
}

static enum cm_status
attempt(void *context)
{
    enum cm_status status = cm_caller_start();
    if (status == CM_OK && name_through(context)[0] == '\0') {
        status = CM_NO_MEMORY;
    }
    cm_caller_release();
    return status;
}

static void
each_allocation_fails(void **state)
{
    (void)state;
    char path[128];
    void *library = load_as("libfails.so", path, sizeof(path));
    cm_caller_release();
    cm_fail_each(attempt, (void *)call_of(library));
    assert_int_equal(dlclose(library), 0);
}

static int
remove_folder(void **state)
{
    (void)state;
    char command[64];
    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_library_that_calls),
        cmocka_unit_test(passes_over_the_layers_of_cuda),
        cmocka_unit_test(r21_a_deep_stack_is_cut),
        cmocka_unit_test(a_name_has_one_number),
        cmocka_unit_test(asks_the_second_copy),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(r22_threads_find_while_libraries_come_and_go),
        cmocka_unit_test(each_allocation_fails),
    };
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, remove_folder);
}
