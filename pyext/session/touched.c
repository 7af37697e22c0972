/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Slots of frames are compared with the addresses sought, and never followed:
 * so what was left in one may be there too.  The functions that run when the
 * watch begins keep their variables, which have held these objects all along;
 * of them only the temporaries count, and of these only tensors, since a call
 * of a method leaves its object there.
 * Cost: some microseconds for a tensor made, while somebody asks. */

#include "touched.h"

#include "../../detector/alloc.h"
#include "../objects/objects_private.h"
#include "../tables/page_table.h"
#include "session_private.h"
#include "../frameworks/tags.h"

enum { MOST_OLD = 128, MOST_DEPTH = 256, MOST_GROUPS = 64 };

/* Guarded by the GIL, all of it. */
static struct {
    struct cm_page_table table; /* 2 * (group + 1), 1 more for no tensor */
    uint32_t group_count;       /* 0: nobody asks */
    bool groups[MOST_GROUPS];
    struct {
        const struct cm_raw_frame *frame; /* only compared, as the next */
        const PyCodeObject *code;
    } old[MOST_OLD];
    uint32_t old_count;
} touched;

void
cm_touched_off(void)
{
    cm_page_table_release(&touched.table);
    memset(&touched, 0, sizeof(touched));
}

static bool
is_old(const struct cm_raw_frame *frame, const PyCodeObject *code)
{
    for (uint32_t i = 0; i < touched.old_count; i++) {
        if (touched.old[i].frame == frame && touched.old[i].code == code) {
            return true;
        }
    }
    return false;
}

static void
note_slot(cm_stack_ref reference, bool tensors_only)
{
    uintptr_t address = (uintptr_t)cm_stack_ref_object(reference);
    const uint32_t *slot = cm_page_table_find(&touched.table, address);
    bool sought = slot != NULL && *slot != 0
                  && address % (1u << CM_PLACE_BITS) == 0
                  && !(tensors_only && (*slot & 1) != 0);
    if (sought) {
        touched.groups[*slot / 2 - 1] = true;
    }
}

static void
look_at_frame(const struct cm_raw_frame *frame, const PyCodeObject *code)
{
    bool old = is_old(frame, code);
    int variables = code->co_nlocalsplus;
    for (int i = old ? variables : 0; i < variables + code->co_stacksize;
         i++) {
        note_slot(frame->slots[i], i >= variables);
    }
}

bool
cm_touched_look(void)
{
    if (touched.group_count == 0) {
        return false;
    }
    const struct cm_raw_frame *frame = cm_raw_frame_first(PyThreadState_Get());
    for (int i = 0; frame != NULL && i < MOST_DEPTH; i++) {
        const PyCodeObject *code = cm_raw_frame_code(frame);
        if (code != NULL) {
            look_at_frame(frame, code);
        }
        frame = cm_raw_frame_next(frame->previous);
    }
    return true;
}

/* ---- what is sought */

static void
note_old(void)
{
    const struct cm_raw_frame *frame = cm_raw_frame_first(PyThreadState_Get());
    while (frame != NULL && touched.old_count < MOST_OLD) {
        touched.old[touched.old_count].frame = frame;
        touched.old[touched.old_count++].code = cm_raw_frame_code(frame);
        frame = cm_raw_frame_next(frame->previous);
    }
}

static enum cm_status
seek(PyObject *object, uint32_t group)
{
    uint32_t *slot;
    enum cm_status status =
        cm_page_table_make(&touched.table, (uintptr_t)object, &slot);
    if (status == CM_OK) {
        *slot = 2 * (group + 1) + !cm_tags_covers(Py_TYPE(object));
    }
    return status;
}

/* [0 or -1; raises] */
static int
seek_all(PyObject *groups)
{
    Py_ssize_t count = PyList_GET_SIZE(groups);
    for (Py_ssize_t i = 0; i < count && i < MOST_GROUPS; i++) {
        PyObject *group = PyList_GET_ITEM(groups, i);
        if (!PyList_CheckExact(group)) {
            PyErr_SetString(PyExc_TypeError, "a list was expected");
            return -1;
        }
        for (Py_ssize_t k = 0; k < PyList_GET_SIZE(group); k++) {
            if (seek(PyList_GET_ITEM(group, k), (uint32_t)i) != CM_OK) {
                PyErr_NoMemory();
                return -1;
            }
        }
    }
    touched.group_count =
        (uint32_t)(count < MOST_GROUPS ? count : MOST_GROUPS);
    return 0;
}

PyObject *
cm_session_touch(struct cm_session *self, PyObject *groups)
{
    const struct cm_proven *proven = &self->objects->proven;
    bool readable =
        proven->stack && proven->frames && cm_session_is_main(self);
    cm_touched_off();
    if (!PyList_CheckExact(groups)) {
        PyErr_SetString(PyExc_TypeError, "a list was expected");
        return NULL;
    }
    if (readable && seek_all(groups) < 0) {
        cm_touched_off();
        return NULL;
    }
    if (touched.group_count != 0) {
        cm_tags_wake();
        note_old();
    }
    return PyBool_FromLong(readable);
}

PyObject *
cm_session_touched(struct cm_session *self)
{
    (void)self;
    PyObject *result = PyList_New((Py_ssize_t)touched.group_count);
    for (uint32_t i = 0; result != NULL && i < touched.group_count; i++) {
        PyList_SET_ITEM(result, (Py_ssize_t)i,
                        PyBool_FromLong(touched.groups[i]));
    }
    return result;
}
