/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "sieve.h"

#include "opcodes.h"
#include "../tables/phrase.h" // cm_str_is()

enum { LONGEST_HEAD = 4 }; /* units: the instruction and its prefixes */

static bool
is_open(const struct cm_sieve *self, Py_ssize_t unit)
{
    return self->end != 0 && unit < self->end;
}

void
cm_sieve_begin(struct cm_sieve *self, PyObject *of, Py_ssize_t unit)
{
    if (!is_open(self, unit) && of != NULL) {
        *self = (struct cm_sieve){.of = of};
    }
}

void
cm_sieve_turn(struct cm_sieve *self, Py_ssize_t unit, Py_ssize_t end)
{
    if (self->of != NULL && self->end == 0) {
        self->head = unit;
        self->end = end;
    }
}

void
cm_sieve_jump(struct cm_sieve *self, Py_ssize_t target)
{
    bool back = self->end != 0 && target <= self->head
                && target > self->head - LONGEST_HEAD;
    self->jumps += back;
}

PyObject *
cm_sieve_end(struct cm_sieve *self, Py_ssize_t unit)
{
    PyObject *of = NULL;
    if (self->end != 0 && unit >= self->end) {
        of = self->jumps > 1 ? self->of : NULL;
        *self = (struct cm_sieve){0};
    }
    return of;
}

bool
cm_sieve_is_comprehension(PyObject *code)
{
    static const char *const names[] = {"<listcomp>", "<setcomp>",
                                        "<dictcomp>", "<genexpr>", NULL};
    return code != NULL && PyCode_Check(code)
           && cm_str_is_one_of(((PyCodeObject *)code)->co_name, names);
}

bool
cm_sieve_leaves_out(const struct cm_bytecode *tables, PyObject *code)
{
    const PyCodeObject *own = (const PyCodeObject *)code;
    struct cm_instruction one = {0};
    struct cm_sieve sieve = {.of = code};
    while (cm_instruction_next(tables, own, &one)) {
        Py_ssize_t argument = (Py_ssize_t)one.argument;
        if (one.action == ACT_TURN) {
            cm_sieve_turn(&sieve, one.unit, one.next + argument);
        }
        else if (one.action == ACT_LOOP) {
            cm_sieve_jump(&sieve, one.next - argument);
        }
    }
    return sieve.jumps > 1;
}
