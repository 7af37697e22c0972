/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Frames and generators: their variables, code and line.  The variables of a
 * frame object whose function has returned lie in the object itself, those of
 * a generator in the generator; a frame that runs owns none of them and shows
 * none.  Names come from the code object.  Cost: O(variables). */

#include "objects_private.h"

#include <opcode.h> // RESUME

/* NULL: not such an object, or its layout is not proven. */
static const struct cm_raw_frame *
raw_of(const struct cm_objects *self, PyObject *object)
{
    if (Py_TYPE(object) == &PyFrame_Type && self->proven.frames) {
        return ((struct cm_frame_object *)object)->raw;
    }
    if (cm_is_generator(Py_TYPE(object)) && self->proven.generators) {
        return &((struct cm_generator *)object)->raw;
    }
    return NULL;
}

/* NULL too when the variables are not the object's own, or gone. */
static const struct cm_raw_frame *
own_frame(const struct cm_objects *self, PyObject *object)
{
    const struct cm_raw_frame *raw = raw_of(self, object);
    bool own = raw != NULL
               && (cm_is_generator(Py_TYPE(object))
                       ? ((struct cm_generator *)object)->frame_state
                             < CM_FRAME_CLEARED
                       : raw->owner == CM_OWNED_BY_FRAME_OBJECT);
    return own ? raw : NULL;
}

/* How many slots are in use, variables and temporaries; below 0 while the
 * frame runs. */
static Py_ssize_t
used_slots(const struct cm_raw_frame *frame)
{
#if PY_VERSION_HEX < 0x030E0000
    return frame->stack_top;
#else
    return frame->stack_pointer == NULL ? -1
                                        : frame->stack_pointer - frame->slots;
#endif
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
    Py_ssize_t used = used_slots(raw), count = code->co_nlocalsplus;
    *result = (struct cm_variables){
        code, raw->slots, used < 0 ? 0 : (used < count ? used : count)};
    return true;
}

/* Suspended in `yield from` or `await`. */
static bool
is_waiting(const struct cm_objects *self, const struct cm_generator *generator)
{
#if PY_VERSION_HEX < 0x030D0000
    PyCodeObject *code = cm_raw_frame_code(&generator->raw);
    Py_ssize_t next = cm_raw_frame_unit(&generator->raw, code) + 1;
    const uint8_t *unit = generator->raw.instruction + 2;
    return self->bytecode.known && next > 0 && next < Py_SIZE(code)
           && self->bytecode.base[unit[0]] == RESUME && unit[1] >= 2;
#elif PY_VERSION_HEX < 0x030F0000
    (void)self;
    return generator->frame_state == -1;
#else
    (void)self;
    return generator->frame_state == 2 || generator->frame_state == 3;
#endif
}

/* From the top of the stack of what waits, how deep what is waited for lies. */
enum { AWAITED_DEPTH = PY_VERSION_HEX < 0x030F0000 ? 1 : 2 };

/* "gi_", "cr_" or "ag_" and the name, as the attributes are called. */
static void
name_part(struct cm_walk *walk, const void *referent, const PyTypeObject *type,
          const char *name)
{
    const char *before = type == &PyGen_Type    ? "gi_"
                         : type == &PyCoro_Type ? "cr_"
                                                : "ag_";
    cm_walk_name_text(walk, referent, before, name, CM_REFERENCE);
}

static void
name_generator(struct cm_walk *walk, PyObject *object,
               const struct cm_raw_frame *raw)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_ssize_t used = used_slots(raw);
    /* What it waits for lies on top of its stack. */
    if (used > 0
        && is_waiting(walk->objects, (const struct cm_generator *)object)) {
        name_part(walk, cm_stack_ref_object(raw->slots[used - AWAITED_DEPTH]),
                  type, type == &PyGen_Type ? "yieldfrom" : "await");
    }
    name_part(walk, raw->frame_object, type, "frame");
}

static void
name_variables(struct cm_walk *walk, const struct cm_variables *variables)
{
    PyObject *names = variables->code->co_localsplusnames;
    for (Py_ssize_t i = 0; i < variables->count; i++) {
        cm_walk_name_str(walk, cm_stack_ref_object(variables->slots[i]),
                         "local ", PyTuple_GET_ITEM(names, i), CM_LOCAL);
    }
}

void
cm_read_frame(struct cm_walk *walk, PyObject *object)
{
    struct cm_variables variables;
    if (Py_TYPE(object) == &PyFrame_Type && walk->objects->proven.frames) {
        const struct cm_frame_object *self = (struct cm_frame_object *)object;
        cm_walk_name(walk, self->back, "f_back", CM_F_BACK);
        cm_walk_name(walk, self->trace, ".f_trace", CM_ATTRIBUTE);
    }
    if (!cm_variables_of(walk->objects, object, &variables)) {
        return;
    }
    const struct cm_raw_frame *raw = raw_of(walk->objects, object);
    name_variables(walk, &variables);
    if (cm_is_generator(Py_TYPE(object))) {
        name_generator(walk, object, raw);
    }
    cm_walk_name(walk, raw->locals, "f_locals", CM_INSTANCE_DICT);
    cm_walk_name(walk, cm_stack_ref_object((cm_stack_ref)raw->function),
                 "f_func", CM_REFERENCE);
    cm_walk_name(walk, variables.code, "f_code", CM_REFERENCE);
}

PyCodeObject *
cm_frame_code(const struct cm_objects *self, PyObject *object)
{
    const struct cm_raw_frame *raw = raw_of(self, object);
    if (raw != NULL || Py_TYPE(object) != &PyFrame_Type) {
        return raw == NULL ? NULL : cm_raw_frame_code(raw);
    }
    PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)object);
    Py_DECREF(code); /* the frame holds it */
    return code;
}

uint32_t
cm_frame_line(const struct cm_objects *self, PyObject *object)
{
    const struct cm_raw_frame *raw = raw_of(self, object);
    PyCodeObject *code = raw == NULL ? NULL : cm_raw_frame_code(raw);
    int line = 0;
    if (code != NULL) {
        Py_ssize_t unit = cm_raw_frame_unit(raw, code);
        if (unit < Py_SIZE(code)) {
            line = PyCode_Addr2Line(code, unit < 0 ? -1 : (int)unit * 2);
        }
    }
    else if (Py_TYPE(object) == &PyFrame_Type) {
        line = PyFrame_GetLineNumber((PyFrameObject *)object);
    }
    return line > 0 ? (uint32_t)line : 0;
}
