/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * fork, setrlimit, pipe, poll.  The bound on memory is on address space
 * (RLIMIT_AS), so what the parent has mapped is added to it; sanitizers map
 * terabytes, and then there is none.  The wall clock is the parent's: a child
 * that still runs at the deadline is killed. */
#define _GNU_SOURCE // pipe2()
#include "child.h"

#include <errno.h>
#include <fcntl.h> // open()
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BOUND_MEMORY false
#else
#define BOUND_MEMORY true
#endif

/* Bytes of address space that this process has; 0: not known. */
static size_t
mapped_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;

    if (file != NULL) {
        if (fscanf(file, "%lu", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void
set_limit(int resource, size_t most)
{
    struct rlimit limit = {.rlim_cur = most, .rlim_max = most};

    setrlimit((__rlimit_resource_t)resource, &limit);
}

/* In the child: its bounds, and no chatter on the terminal. */
static void
settle_child(struct cm_child_limits limits)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (nowhere >= 0) {
        dup2(nowhere, STDIN_FILENO);
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
    }
    if (BOUND_MEMORY) {
        set_limit(RLIMIT_AS, mapped_bytes() + limits.bytes);
    }
    set_limit(RLIMIT_CPU, limits.cpu_seconds);
    set_limit(RLIMIT_CORE, 0);
}

bool
cm_child_write(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;

    while (length > 0) {
        ssize_t written = write(fd, at, length);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        at += written;
        length -= (size_t)written;
    }
    return true;
}

static int64_t
now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until the child closes its end; CM_LIMIT at the deadline. */
static enum cm_status
collect(int fd, unsigned wall_ms, struct cm_buffer *out)
{
    int64_t deadline = now_ms() + wall_ms;

    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int64_t left = deadline - now_ms();
        char bytes[65536];
        ssize_t count;

        if (left <= 0) {
            return CM_LIMIT;
        }
        if (poll(&wait, 1, (int)left) <= 0) {
            continue; /* the deadline, or a signal: look again */
        }
        count = read(fd, bytes, sizeof(bytes));
        if (count < 0 && errno != EINTR) {
            return CM_IO;
        }
        if (count == 0) {
            return cm_buffer_status(out);
        }
        if (count > 0) {
            cm_buffer_add(out, bytes, (size_t)count);
        }
    }
}

/* After: the child is no more. */
static enum cm_status
reap(pid_t child, enum cm_status status)
{
    int how = 0;

    if (status != CM_OK) {
        kill(child, SIGKILL);
    }
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    if (status == CM_OK && !(WIFEXITED(how) && WEXITSTATUS(how) == 0)) {
        return CM_LIMIT;
    }
    return status;
}

enum cm_status
cm_child_run(cm_child_work *work, void *context, struct cm_child_limits limits,
             struct cm_buffer *out)
{
    int ends[2];
    pid_t child;
    enum cm_status status;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return CM_IO;
    }
    child = fork();
    if (child == 0) {
        close(ends[0]);
        settle_child(limits);
        _exit(work(ends[1], context) ? 0 : 1);
    }
    close(ends[1]);
    status = CM_IO;
    if (child > 0) {
        status = reap(child, collect(ends[0], limits.wall_ms, out));
    }
    close(ends[0]);
    return status;
}
