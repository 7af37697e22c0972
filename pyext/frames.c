/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Frames and generators: their variables, code and line.  The variables of a
 * frame object whose function has returned lie in the object itself, those of
 * a generator in the generator; a frame that runs owns none of them and shows
 * none.  Names come from the code object.  Cost: O(variables). */

#include "objects_private.h"

#include <frameobject.h> // PyFrame_GetBack()

#if CM_LAYOUT_KNOWN

/* How many of the code's variables the frame has at this moment. */
static Py_ssize_t
readable_slots(const struct cm_raw_frame *frame, const PyCodeObject *code)
{
    Py_ssize_t count = code->co_nlocalsplus;
#if PY_VERSION_HEX < 0x030E0000
    Py_ssize_t top = frame->stack_top;
#else
    Py_ssize_t top = frame->stack_pointer == NULL
                         ? count
                         : frame->stack_pointer - frame->slots;
#endif
    return top < 0 ? 0 : top < count ? top : count;
}

/* NULL: none of its own, or running, or finished. */
static const struct cm_raw_frame *
own_frame(const struct cm_objects *self, PyObject *object)
{
    if (Py_TYPE(object) == &PyFrame_Type && self->proven.frames) {
        struct cm_raw_frame *raw = ((struct cm_frame_object *)object)->raw;
        return raw != NULL && raw->owner == CM_OWNED_BY_FRAME_OBJECT ? raw
                                                                     : NULL;
    }
    if (cm_is_generator(Py_TYPE(object)) && self->proven.generators) {
        struct cm_generator *generator = (struct cm_generator *)object;
        return generator->frame_state < CM_FRAME_CLEARED ? &generator->raw
                                                         : NULL;
    }
    return NULL;
}

bool
cm_variables_of(const struct cm_objects *self, PyObject *object,
                struct cm_variables *result)
{
    const struct cm_raw_frame *raw = own_frame(self, object);
    PyCodeObject *code = raw == NULL ? NULL : cm_raw_frame_code(raw);
    if (code == NULL) {
        return false;
    }
    *result =
        (struct cm_variables){code, raw->slots, readable_slots(raw, code)};
    return true;
}

/* What a suspended generator or coroutine waits for lies on top of its
 * stack; a name for it only where the version tells that it does. */
static void
name_awaited(struct cm_walk *walk, PyObject *object)
{
#if PY_VERSION_HEX >= 0x030D0000
    const struct cm_generator *self = (const struct cm_generator *)object;
#if PY_VERSION_HEX < 0x030F0000
    bool waits = self->frame_state == -1;
#else
    bool waits = self->frame_state == 2 || self->frame_state == 3;
#endif
#if PY_VERSION_HEX < 0x030E0000
    const cm_stack_ref *top = self->raw.slots + self->raw.stack_top;
#else
    const cm_stack_ref *top = self->raw.stack_pointer;
#endif
    if (waits && top > self->raw.slots) {
        PyTypeObject *type = Py_TYPE(object);
        cm_walk_name(walk, cm_stack_ref_object(top[-1]),
                     type == &PyGen_Type    ? "gi_yieldfrom"
                     : type == &PyCoro_Type ? "cr_await"
                                            : "ag_await",
                     CM_REFERENCE);
    }
#else
    (void)walk;
    (void)object;
#endif
}

static void
read_raw(struct cm_walk *walk, PyObject *object)
{
    const struct cm_raw_frame *raw = own_frame(walk->objects, object);
    if (raw == NULL) {
        return;
    }
    if (cm_is_generator(Py_TYPE(object))) {
        name_awaited(walk, object);
    }
    cm_walk_name(walk, raw->frame_object, "gi_frame", CM_REFERENCE);
    cm_walk_name(walk, raw->locals, "f_locals", CM_INSTANCE_DICT);
    cm_walk_name(walk, cm_stack_ref_object((cm_stack_ref)raw->function),
                 "f_func", CM_REFERENCE);
    cm_walk_name(walk, cm_stack_ref_object(raw->code), "f_code", CM_REFERENCE);
}

static PyCodeObject *
raw_code(const struct cm_objects *self, PyObject *object)
{
    if (cm_is_generator(Py_TYPE(object))) {
        return self->proven.generators
                   ? cm_raw_frame_code(&((struct cm_generator *)object)->raw)
                   : NULL;
    }
    struct cm_raw_frame *raw = ((struct cm_frame_object *)object)->raw;
    return self->proven.frames && raw != NULL ? cm_raw_frame_code(raw) : NULL;
}

static const struct cm_raw_frame *
raw_of(PyObject *object)
{
    return cm_is_generator(Py_TYPE(object))
               ? &((struct cm_generator *)object)->raw
               : ((struct cm_frame_object *)object)->raw;
}

PyCodeObject *
cm_frame_code(const struct cm_objects *self, PyObject *object)
{
    return raw_code(self, object);
}

uint32_t
cm_frame_line(const struct cm_objects *self, PyObject *object)
{
    PyCodeObject *code = raw_code(self, object);
    if (code == NULL) {
        return 0;
    }
    Py_ssize_t unit = cm_raw_frame_unit(raw_of(object), code);
    if (unit >= Py_SIZE(code)) {
        return 0;
    }
    int line = PyCode_Addr2Line(code, unit < 0 ? -1 : (int)unit * 2);
    return line > 0 ? (uint32_t)line : 0;
}

#else

bool
cm_variables_of(const struct cm_objects *self, PyObject *object,
                struct cm_variables *result)
{
    (void)self;
    (void)object;
    (void)result;
    return false;
}

static void
read_raw(struct cm_walk *walk, PyObject *object)
{
    (void)walk;
    (void)object;
}

PyCodeObject *
cm_frame_code(const struct cm_objects *self, PyObject *object)
{
    (void)self;
    if (Py_TYPE(object) != &PyFrame_Type) {
        return NULL;
    }
    PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)object);
    Py_DECREF(code); /* the frame holds it */
    return code;
}

uint32_t
cm_frame_line(const struct cm_objects *self, PyObject *object)
{
    (void)self;
    if (Py_TYPE(object) != &PyFrame_Type) {
        return 0;
    }
    int line = PyFrame_GetLineNumber((PyFrameObject *)object);
    return line > 0 ? (uint32_t)line : 0;
}

#endif

void
cm_read_frame(struct cm_walk *walk, PyObject *object)
{
    struct cm_variables variables;
    if (Py_TYPE(object) == &PyFrame_Type && CM_LAYOUT_KNOWN
        && walk->objects->proven.frames) {
        const struct cm_frame_object *self = (struct cm_frame_object *)object;
        cm_walk_name(walk, self->back, "f_back", CM_F_BACK);
    }
    if (cm_variables_of(walk->objects, object, &variables)) {
        PyObject *names = variables.code->co_localsplusnames;
        for (Py_ssize_t i = 0; i < variables.count; i++) {
            cm_walk_name_str(walk, cm_stack_ref_object(variables.slots[i]),
                             "local ", PyTuple_GET_ITEM(names, i), "",
                             CM_LOCAL);
        }
    }
    read_raw(walk, object);
    if (Py_TYPE(object) == &PyFrame_Type && CM_LAYOUT_KNOWN
        && walk->objects->proven.frames) {
        const struct cm_frame_object *self = (struct cm_frame_object *)object;
        cm_walk_name(walk, self->trace, ".f_trace", CM_ATTRIBUTE);
    }
}
