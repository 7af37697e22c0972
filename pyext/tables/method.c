/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Whether the page is writable is asked of the kernel, which answers instead
 * of faulting: the word is written over itself. */

#define _GNU_SOURCE // process_vm_writev()
#include "method.h"

#include <sys/uio.h>
#include <unistd.h>

static bool
is_writable(PyCFunction *place)
{
    PyCFunction same = *place;
    struct iovec from = {&same, sizeof(same)};
    struct iovec to = {(void *)place, sizeof(same)};
    return process_vm_writev(getpid(), &from, 1, &to, 1, 0) == sizeof(same);
}

bool
cm_method_replace(PyMethodDef *method, PyCFunction ours, PyCFunction *original)
{
    if (!is_writable(&method->ml_meth)) {
        return false;
    }
    *original = method->ml_meth;
    method->ml_meth = ours;
    return true;
}
