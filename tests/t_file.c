/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * The system calls below stand before those of the C library, so that they can
 * be short, interrupted, or fail. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "fail_each.h"

#include "../reports/file.h"

static struct {
    int write_error, fsync_error, link_error, rename_error;
    int interruptions; /* of write */
    size_t most;       /* bytes that one write takes; 0: all */
    size_t room;       /* bytes until ENOSPC, when `limited` */
    bool limited;
} fault;

ssize_t
write(int descriptor, const void *bytes, size_t count)
{
    if (descriptor > 2) {
        if (fault.interruptions > 0) {
            fault.interruptions--;
            errno = EINTR;
            return -1;
        }
        if (fault.write_error != 0 || (fault.limited && fault.room == 0)) {
            errno = fault.write_error != 0 ? fault.write_error : ENOSPC;
            return -1;
        }
        if (fault.most != 0 && count > fault.most) {
            count = fault.most;
        }
        if (fault.limited) {
            count = count < fault.room ? count : fault.room;
            fault.room -= count;
        }
    }
    return syscall(SYS_write, descriptor, bytes, count);
}

int
fsync(int descriptor)
{
    if (fault.fsync_error != 0) {
        errno = fault.fsync_error;
        return -1;
    }
    return (int)syscall(SYS_fsync, descriptor);
}

int
link(const char *from, const char *to)
{
    if (fault.link_error != 0) {
        errno = fault.link_error;
        return -1;
    }
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int
rename(const char *from, const char *to)
{
    if (fault.rename_error != 0) {
        errno = fault.rename_error;
        return -1;
    }
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static char folder[64];

static int
enter_folder(void **state)
{
    (void)state;
    memset(&fault, 0, sizeof(fault));
    snprintf(folder, sizeof(folder), "/tmp/cumem-t-file-XXXXXX");
    return mkdtemp(folder) != NULL && chdir(folder) == 0 ? 0 : -1;
}

static int
leave_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

/* Files in the folder, temporary ones too. */
static int
count_files(void)
{
    DIR *directory = opendir(folder);
    int count = -2; /* . and .. */

    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static void
expect_content(const char *path, const char *expected)
{
    struct cm_buffer content = {0};

    assert_int_equal(cm_file_read(path, &content), CM_OK);
    assert_string_equal(cm_buffer_text(&content), expected);
    cm_buffer_release(&content);
}

static void
test_O14_writes_for_the_owner_alone(void **state)
{
    mode_t before = umask(0);
    struct stat about;

    (void)state;
    assert_int_equal(cm_file_write("a", "hello", 5, false), CM_OK);
    umask(before);
    expect_content("a", "hello");
    assert_int_equal(stat("a", &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_int_equal(count_files(), 1);
}

static void
test_replaces_only_when_asked(void **state)
{
    (void)state;
    assert_int_equal(cm_file_write("a", "1", 1, false), CM_OK);
    assert_int_equal(cm_file_write("a", "2", 1, false), CM_IO);
    assert_int_equal(errno, EEXIST);
    expect_content("a", "1");
    assert_int_equal(cm_file_write("a", "2", 1, true), CM_OK);
    expect_content("a", "2");
    assert_int_equal(count_files(), 1);
}

static void
test_O13_follows_no_link(void **state)
{
    struct stat about;

    (void)state;
    assert_int_equal(cm_file_write("target", "t", 1, false), CM_OK);
    assert_int_equal(symlink("target", "a"), 0);
    assert_int_equal(symlink("nowhere", "b"), 0);
    assert_int_equal(cm_file_write("a", "1", 1, false), CM_IO);
    assert_int_equal(cm_file_write("b", "1", 1, false), CM_IO);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(cm_file_write("a", "1", 1, true), CM_OK);
    assert_int_equal(lstat("a", &about), 0);
    assert_true(S_ISREG(about.st_mode));
    expect_content("target", "t");
    assert_int_equal(lstat("nowhere", &about), -1);
}

static void
test_O13_a_link_at_the_temporary_name_is_not_used(void **state)
{
    char name[64];

    (void)state;
    snprintf(name, sizeof(name), ".cumem-%ld-0.tmp", (long)getpid());
    assert_int_equal(cm_file_write("victim", "v", 1, false), CM_OK);
    assert_int_equal(symlink("victim", name), 0);
    assert_int_equal(cm_file_write("a", "1", 1, false), CM_OK);
    expect_content("a", "1");
    expect_content("victim", "v");
}

static void
test_O2_short_and_interrupted_writes(void **state)
{
    (void)state;
    fault.most = 1;
    fault.interruptions = 3;
    assert_int_equal(cm_file_write("a", "hello", 5, false), CM_OK);
    expect_content("a", "hello");
}

/* A disk that is full after n bytes leaves the old file and nothing else. */
static void
test_O2_disk_full_at_each_byte(void **state)
{
    (void)state;
    assert_int_equal(cm_file_write("a", "old", 3, false), CM_OK);
    for (size_t room = 0; room < 5; room++) {
        fault.limited = true;
        fault.room = room;
        assert_int_equal(cm_file_write("a", "hello", 5, true), CM_IO);
        assert_int_equal(errno, ENOSPC);
        fault.limited = false;
        expect_content("a", "old");
        assert_int_equal(count_files(), 1);
    }
}

static void
test_O2_every_call_may_fail(void **state)
{
    int *const faults[] = {&fault.write_error, &fault.fsync_error,
                           &fault.rename_error};

    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        *faults[i] = EIO;
        assert_int_equal(cm_file_write("a", "1", 1, true), CM_IO);
        assert_int_equal(errno, EIO);
        *faults[i] = 0;
        assert_int_equal(count_files(), 0);
    }
}

static void
test_file_systems_without_some_calls(void **state)
{
    (void)state;
    fault.fsync_error = EINVAL;
    fault.link_error = EPERM;
    assert_int_equal(cm_file_write("a", "1", 1, false), CM_OK);
    expect_content("a", "1");
    assert_int_equal(cm_file_write("a", "2", 1, false), CM_IO);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(count_files(), 1);
}

static void
test_bad_places(void **state)
{
    char longer[300];

    (void)state;
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(cm_file_write("no/a", "1", 1, true), CM_IO);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(cm_file_write(longer, "1", 1, true), CM_IO);
    assert_int_equal(errno, ENAMETOOLONG);
    assert_int_equal(count_files(), 0);
}

static void
test_reading_is_bounded(void **state)
{
    struct cm_buffer content = {.max_bytes = 3};

    (void)state;
    assert_int_equal(cm_file_read("/dev/zero", &content), CM_LIMIT);
    cm_buffer_release(&content);
    assert_int_equal(cm_file_read("missing", &content), CM_IO);
    assert_int_equal(errno, ENOENT);
    cm_buffer_release(&content);
}

static enum cm_status
attempt(void *context)
{
    struct cm_buffer content = {0};
    enum cm_status status = cm_file_write("a", "hello", 5, true);

    (void)context;
    if (status == CM_OK) {
        status = cm_file_read("a", &content);
    }
    cm_buffer_release(&content);
    return status;
}

static void
test_each_allocation_fails(void **state)
{
    (void)state;
    cm_fail_each(attempt, NULL);
}

#define IN_FOLDER(test)                                                       \
    cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_O14_writes_for_the_owner_alone),
        IN_FOLDER(test_replaces_only_when_asked),
        IN_FOLDER(test_O13_follows_no_link),
        IN_FOLDER(test_O13_a_link_at_the_temporary_name_is_not_used),
        IN_FOLDER(test_O2_short_and_interrupted_writes),
        IN_FOLDER(test_O2_disk_full_at_each_byte),
        IN_FOLDER(test_O2_every_call_may_fail),
        IN_FOLDER(test_file_systems_without_some_calls),
        IN_FOLDER(test_bad_places),
        IN_FOLDER(test_reading_is_bounded),
        IN_FOLDER(test_each_allocation_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
