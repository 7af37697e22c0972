/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* What appears while the program runs: frameworks that are imported, devices
 * that are initialised.  They are looked for at each collection, when the code
 * of a module has run (where the program has switched collection off, none may
 * come), and once more when a tensor is made and something still waits. */

#include "session_private.h"
#include "../../detector/hot.h"

#include "../allocations/allocations.h"
#include "../torch/backward.h"
#include "../objects/deaths.h"
#include "../allocations/driver_events.h"
#include "growth_look.h"
#include "steps.h"
#include "../frameworks/tags.h"
#include "../tables/finalizing.h"
#include "touched.h"

static void
find_cuda_dict(struct cm_session *self)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *cuda = modules != NULL && PyDict_CheckExact(modules)
                         ? PyDict_GetItemWithError(modules, self->cuda_key)
                         : NULL;
    if (cuda != NULL && PyModule_Check(cuda)) {
        self->cuda_dict = Py_XNewRef(PyModule_GetDict(cuda));
    }
}

/* torch.cuda._initialized, read from the module's dictionary: two look-ups,
 * since it is asked for each tensor until the answer is yes. */
CM_HOT static bool
accelerator_initialized(struct cm_session *self)
{
    if (self->cuda_dict == NULL) {
        find_cuda_dict(self);
    }
    return self->cuda_dict != NULL
           && PyDict_GetItemWithError(self->cuda_dict, self->initialized_key)
                  == Py_True;
}

/* An accelerator was seen, torch's or another framework's: then the host's
 * memory no longer counts. */
CM_HOT static bool
host_is_heard_in_vain(const struct cm_session *self)
{
    return cm_session_is_main(self) && cm_allocations_host_heard()
           && !cm_devices_host_counts(self->devices);
}

/* Torch's accelerator, or one that another framework's object was seen on. */
CM_HOT static bool
is_used_by_now(const struct cm_session *self)
{
    return !self->used && cm_devices_accelerator(self->devices);
}

CM_HOT bool
cm_session_has_news(struct cm_session *self)
{
    return host_is_heard_in_vain(self) || is_used_by_now(self)
           || (!self->noticed
               && (cm_devices_learning(self->devices)
                   || accelerator_initialized(self)));
}

void
cm_session_know_blocks(struct cm_session *self)
{
    if (cm_session_is_main(self)) {
        cm_tags_blocks_known(cm_allocations_told()
                             && !cm_devices_host_counts(self->devices));
    }
}

static void
describe_hook(struct cm_session *self)
{
    const char *hook = cm_allocations_heard_by();
    if (hook != self->described_hook) {
        self->described_hook = hook;
        cm_digest_describe(self->digest, "allocator_hook", hook);
    }
}

/* A question while nobody observes leaves it to be noticed. */
static void
notice_devices(struct cm_session *self)
{
    if (!self->noticed && accelerator_initialized(self)) {
        self->noticed = self->deliver != NULL;
        cm_devices_saw_accelerator(self->devices);
        cm_session_deliver(self, "notice", Py_NewRef(Py_None));
    }
    if (is_used_by_now(self)) {
        self->used = self->deliver != NULL;
        cm_session_deliver(self, "device", Py_NewRef(Py_None));
    }
}

void
cm_session_notice(struct cm_session *self)
{
    PyObject *type, *value, *traceback;
    if (cm_is_finalizing()) {
        return;
    }
    PyErr_Fetch(&type, &value, &traceback);
    cm_devices_notice(self->devices);
    if (cm_session_is_main(self)) {
        cm_allocations_notice(self->objects, self->stacks);
        cm_backward_on_enter(cm_growth_on_backward);
    }
    notice_devices(self);
    if (cm_session_is_main(self)) {
        cm_session_know_blocks(self);
        if (!self->brief) {
            cm_allocations_notice_host(self->objects, self->stacks,
                                       cm_devices_host_counts(self->devices));
        }
        describe_hook(self);
        cm_driver_events_notice(self->objects, self->stacks, self->noticed);
    }
    if (!self->stepping && cm_allocations_host_heard()) {
        cm_session_deliver(self, "torch", Py_NewRef(Py_None));
    }
    PyErr_Restore(type, value, traceback);
}

static int
notice_pending(void *context)
{
    struct cm_session *self = context; /* perhaps gone by now */
    if (self == cm_session_main() && !self->silent) {
        self->notice_pending = false;
        if (cm_session_is_here(self)) {
            cm_session_notice(self);
        }
    }
    return 0;
}

static void
post_notice(struct cm_session *self)
{
    self->notice_pending = Py_AddPendingCall(notice_pending, self) == 0;
}

/* Within an import, whose modules' code ends one by one: the last one is the
 * framework's own.  Its import is not quite over then, but its tensors tell us
 * to look again. */
static void
on_module(void)
{
    struct cm_session *self = cm_session_main();
    if (self != NULL && !self->silent && !self->notice_pending
        && !cm_is_finalizing() && cm_devices_wait(self->devices)) {
        post_notice(self);
    }
}

void
cm_session_hear_imports(void)
{
    cm_deaths_on_module(on_module);
}

/* A device that will be initialised is of a torch with its allocator. */
static bool
waits(const struct cm_session *self)
{
    return !self->noticed
           && (cm_devices_learning(self->devices) || cm_allocations_heard());
}

/* A tensor was made and something still waits to be attached: do it at the
 * next safe point, since memory may run out before any collection. */
uint32_t
cm_session_on_tensor(void)
{
    struct cm_session *self = cm_session_main();
    if (self == NULL) {
        return CM_TENSORS_UNAWAITED;
    }
    cm_looks_consider(self);
    uint32_t until = cm_steps_consider(self);
    bool each = cm_touched_look();
    if (!self->notice_pending && cm_session_has_news(self)) {
        post_notice(self);
        each = true;
    }
    return each || waits(self) ? 0 : until;
}
