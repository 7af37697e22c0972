/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* By name, so that the numbers of a version never matter. */

#include "opcodes.h"

#include <string.h>

#include "bytecode.h"

static const struct {
    const char *name;
    enum action action;
} actions[] = {
    {"NOP", ACT_KEEP},
    {"CACHE", ACT_KEEP},
    {"RESUME", ACT_KEEP},
    {"PRECALL", ACT_KEEP},
    {"KW_NAMES", ACT_KEEP},
    {"GET_ITER", ACT_KEEP},
    {"PUSH_NULL", ACT_LOAD_NULL},
    {"POP_TOP", ACT_DROP},
    {"COPY", ACT_COPY},
    {"SWAP", ACT_SWAP},
    {"UNPACK_SEQUENCE", ACT_UNPACK},
    {"BEFORE_WITH", ACT_WITH},
    {"LOAD_SPECIAL", ACT_WITH_METHOD},
    {"BUILD_SLICE", ACT_SLICE},
    {"BINARY_SLICE", ACT_TAKE_SLICE},
    {"STORE_SLICE", ACT_STORE_SLICE},
    {"DELETE_SUBSCR", ACT_DELETE_ITEM},
    {"COMPARE_OP", ACT_COMPARE},
    {"CONTAINS_OP", ACT_CONTAINS},
    {"NOT_TAKEN", ACT_KEEP},
    {"EXTENDED_ARG", ACT_EXTEND},
    {"LOAD_FAST", ACT_LOAD_LOCAL},
    {"LOAD_FAST_CHECK", ACT_LOAD_LOCAL},
    {"LOAD_FAST_BORROW", ACT_LOAD_LOCAL},
    {"LOAD_DEREF", ACT_LOAD_LOCAL},
    {"LOAD_CLOSURE", ACT_LOAD_OTHER},
    {"LOAD_CLASSDEREF", ACT_LOAD_LOCAL},
    {"LOAD_FAST_AND_CLEAR", ACT_PUT_ASIDE},
    {"LOAD_FAST_LOAD_FAST", ACT_LOAD_TWO},
    {"LOAD_FAST_BORROW_LOAD_FAST_BORROW", ACT_LOAD_TWO},
    {"LOAD_NAME", ACT_LOAD_NAME},
    {"LOAD_GLOBAL", ACT_LOAD_GLOBAL},
    {"LOAD_CONST", ACT_LOAD_CONSTANT},
    {"LOAD_SMALL_INT", ACT_LOAD_NUMBER},
    {"LOAD_COMMON_CONSTANT", ACT_LOAD_COMMON},
#if PY_VERSION_HEX < 0x030E0000
    {"BINARY_SUBSCR", ACT_LOAD_ITEM},
    {"BINARY_OP", ACT_TAKE_TWO},
#else
    {"BINARY_OP", ACT_LOAD_ITEM},
#endif
#if PY_VERSION_HEX < 0x030C0000
    {"LOAD_METHOD", ACT_LOAD_METHOD},
    {"LOAD_ATTR", ACT_LOAD_PLAIN_ATTR},
#else
    {"LOAD_ATTR", ACT_LOAD_ATTR},
    {"LOAD_SUPER_ATTR", ACT_LOAD_SUPER},
#endif
    {"UNARY_NEGATIVE", ACT_TAKE_ONE},
    {"CONVERT_VALUE", ACT_TAKE_ONE},
    {"YIELD_VALUE", ACT_TAKE_ONE},
    {"FORMAT_SIMPLE", ACT_TAKE_ONE},
    {"FORMAT_WITH_SPEC", ACT_TAKE_SPEC},
    {"FORMAT_VALUE", ACT_TAKE_FORMAT},
    {"BUILD_STRING", ACT_TAKE_MANY},
    {"BUILD_TUPLE", ACT_TAKE_MANY},
    {"CALL", ACT_TAKE_CALL},
    {"CALL_KW", ACT_TAKE_CALL_KEYS},
    {"STORE_FAST", ACT_STORE_LOCAL},
    {"STORE_FAST_LOAD_FAST", ACT_STORE_AND_LOAD},
    {"STORE_FAST_STORE_FAST", ACT_STORE_TWO},
    {"STORE_DEREF", ACT_STORE_CELL},
    {"STORE_NAME", ACT_STORE_NAME},
    {"STORE_GLOBAL", ACT_STORE_GLOBAL},
    {"STORE_ATTR", ACT_STORE_ATTR},
    {"STORE_SUBSCR", ACT_STORE_ITEM},
    {"MAKE_FUNCTION", ACT_FUNCTION},
    {"SET_FUNCTION_ATTRIBUTE", ACT_SET_FUNCTION},
    {"DELETE_FAST", ACT_DELETE_LOCAL},
    {"DELETE_DEREF", ACT_DELETE_CELL},
    {"DELETE_ATTR", ACT_DELETE_ATTR},
    {"DELETE_NAME", ACT_DELETE_NAME},
    {"DELETE_GLOBAL", ACT_DELETE_NAME},
    {"BUILD_LIST", ACT_BUILD},
    {"BUILD_MAP", ACT_BUILD_MAP},
    {"BUILD_CONST_KEY_MAP", ACT_BUILD_KEYS},
    {"BUILD_SET", ACT_BUILD},
    {"FOR_ITER", ACT_TURN},
    {"JUMP_BACKWARD", ACT_LOOP},
    {"POP_JUMP_BACKWARD_IF_TRUE", ACT_LOOP},
    {"POP_JUMP_BACKWARD_IF_FALSE", ACT_LOOP},
    {"POP_JUMP_BACKWARD_IF_NONE", ACT_LOOP},
    {"POP_JUMP_BACKWARD_IF_NOT_NONE", ACT_LOOP},
    {"PUSH_EXC_INFO", ACT_HANDLER},
    {"POP_JUMP_IF_FALSE", ACT_BRANCH},
    {"POP_JUMP_IF_TRUE", ACT_BRANCH},
    {"POP_JUMP_FORWARD_IF_FALSE", ACT_BRANCH},
    {"POP_JUMP_FORWARD_IF_TRUE", ACT_BRANCH},
    {"POP_JUMP_IF_NONE", ACT_BRANCH},
    {"POP_JUMP_IF_NOT_NONE", ACT_BRANCH},
    {"POP_JUMP_FORWARD_IF_NONE", ACT_BRANCH},
    {"POP_JUMP_FORWARD_IF_NOT_NONE", ACT_BRANCH},
    {"JUMP_IF_FALSE_OR_POP", ACT_BRANCH},
    {"JUMP_IF_TRUE_OR_POP", ACT_BRANCH},
    {"JUMP_FORWARD", ACT_JUMP},
    {"RETURN_VALUE", ACT_RETURN},
    {"RETURN_CONST", ACT_LEAVE},
    {"RAISE_VARARGS", ACT_LEAVE},
};

void
cm_bytecode_init(struct cm_bytecode *self, PyObject *numbers, PyObject *base,
                 PyObject *caches)
{
    memcpy(self->base, PyBytes_AS_STRING(base), 256);
    memcpy(self->caches, PyBytes_AS_STRING(caches), 256);
    memset(self->action, ACT_OTHER, 256);
    self->action[255] = ACT_UNKNOWN;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(actions); i++) {
        PyObject *number = PyDict_GetItemString(numbers, actions[i].name);
        if (number != NULL) {
            self->action[PyLong_AsLong(number) & 255] =
                (uint8_t)actions[i].action;
        }
    }
}

bool
cm_bytecode_agrees(const struct cm_bytecode *self, const PyCodeObject *code,
                   PyObject *expected)
{
    const uint8_t *running = (const uint8_t *)code->co_code_adaptive;
    const uint8_t *plain = (const uint8_t *)PyBytes_AS_STRING(expected);
    Py_ssize_t units = Py_SIZE(code);
    if (PyBytes_GET_SIZE(expected) != units * 2) {
        return false;
    }
    for (Py_ssize_t i = 0; i < units; i += 1 + self->caches[plain[2 * i]]) {
        if (self->base[running[2 * i]] != plain[2 * i]
            || running[2 * i + 1] != plain[2 * i + 1]) {
            return false;
        }
    }
    return true;
}

bool
cm_instruction_next(const struct cm_bytecode *tables, const PyCodeObject *code,
                    struct cm_instruction *one)
{
    const uint8_t *bytes = (const uint8_t *)code->co_code_adaptive;
    unsigned argument = 0;
    for (Py_ssize_t unit = one->next; unit < Py_SIZE(code);) {
        uint8_t opcode = tables->base[bytes[2 * unit]];
        argument = argument << 8 | bytes[2 * unit + 1];
        *one = (struct cm_instruction){tables->action[opcode], argument, unit,
                                       unit + 1 + tables->caches[opcode]};
        if (one->action != ACT_EXTEND) {
            return true;
        }
        unit = one->next;
    }
    return false;
}

PyObject *
cm_instruction_item(PyObject *tuple, unsigned index)
{
    if (tuple == NULL || !PyTuple_Check(tuple)
        || (Py_ssize_t)index >= PyTuple_GET_SIZE(tuple)) {
        return NULL;
    }
    return PyTuple_GET_ITEM(tuple, index);
}

PyObject *
cm_instruction_name(const PyCodeObject *code, const struct cm_instruction *one)
{
    unsigned flags = 0; /* below the number of the name */
    switch (one->action) {
    case ACT_LOAD_NAME:
    case ACT_LOAD_PLAIN_ATTR:
    case ACT_LOAD_METHOD:
    case ACT_STORE_NAME:
    case ACT_STORE_GLOBAL:
    case ACT_STORE_ATTR:
    case ACT_DELETE_NAME:
    case ACT_DELETE_ATTR: break;
    case ACT_LOAD_GLOBAL:
    case ACT_LOAD_ATTR: flags = 1; break;
    case ACT_LOAD_SUPER: flags = 2; break;
    default: return NULL;
    }
    return cm_instruction_item(code->co_names, one->argument >> flags);
}

struct cm_variables
cm_instruction_variables(const PyCodeObject *code,
                         const struct cm_instruction *one)
{
    PyObject *locals = code->co_localsplusnames;
    PyObject *local = cm_instruction_item(locals, one->argument);
    PyObject *high = cm_instruction_item(locals, one->argument >> 4);
    PyObject *low = cm_instruction_item(locals, one->argument & 15);
    PyObject *name = cm_instruction_name(code, one);
    switch (one->action) {
    case ACT_LOAD_LOCAL: return (struct cm_variables){.read = {local}};
    case ACT_LOAD_TWO: return (struct cm_variables){.read = {high, low}};
    case ACT_LOAD_NAME:
    case ACT_LOAD_GLOBAL: return (struct cm_variables){.read = {name}};
    case ACT_STORE_AND_LOAD:
        return (struct cm_variables){.set = {high}, .read = {low}};
    case ACT_STORE_TWO: return (struct cm_variables){.set = {high, low}};
    case ACT_STORE_LOCAL:
    case ACT_STORE_CELL:
    case ACT_DELETE_LOCAL:
    case ACT_DELETE_CELL: return (struct cm_variables){.set = {local}};
    case ACT_STORE_NAME:
    case ACT_STORE_GLOBAL:
    case ACT_DELETE_NAME: return (struct cm_variables){.set = {name}};
    default: return (struct cm_variables){0};
    }
}
