/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Names are compared, not records: libraries may have copies of one.  Answers
 * are kept by virtual table, 1,024 of them; torch has some 900 classes of nodes,
 * a program uses a hundred.  torch's libraries are never unloaded. */

#include "cpp_class.h"

#include <string.h>

#include "torch_layout.h"

enum { KEPT = 1024, BASES = 8, NAME_WORDS = 16 };

#define SINGLE_BASE "N10__cxxabiv120__si_class_type_infoE"
#define GENERATED "N5torch8autograd9generated"

static struct {
    struct cm_cpp_class items[KEPT * 2]; /* vtable 0: free */
    size_t count;
    uint64_t single_base; /* first word of records with one base */
} classes;                /* Guarded by the GIL. */

static const struct {
    const char *name;
    uint8_t kind;
} bases[] = {
    {"N5torch8autograd14AccumulateGradE", CM_CPP_ACCUMULATE},
    {"N5torch8autograd6PyNodeE", CM_CPP_PYTHON_NODE},
    {"N5torch8autograd4NodeE", CM_CPP_NODE},
    {"N3c1019UndefinedTensorImplE", CM_CPP_UNDEFINED},
    {"N3c1010TensorImplE", CM_CPP_TENSOR},
    {"N5torch8autograd22DifferentiableViewMetaE", CM_CPP_VIEW_META},
    {"N5torch8autograd12AutogradMetaE", CM_CPP_META},
    {"N5torch8autograd23PyFunctionTensorPreHookE", CM_CPP_HOOK},
    {"N5torch8autograd17PyFunctionPreHookE", CM_CPP_HOOK},
    {"N5torch8autograd18PyFunctionPostHookE", CM_CPP_HOOK},
    {"N5torch8autograd32PyFunctionTensorPostAccGradHooksE", CM_CPP_HOOK},
    {"N5torch8autograd20PySavedVariableHooksE", CM_CPP_SAVED_HOOKS},
};

static enum cm_cpp_kind
kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        if (strcmp(bases[i].name, name) == 0) {
            return bases[i].kind;
        }
    }
    return CM_CPP_OTHER;
}

/* The end of what is mapped may come before the end of what is asked for. */
static bool
read_name(uint64_t address, char text[NAME_WORDS * 8])
{
    uint64_t words[NAME_WORDS];
    for (size_t count = NAME_WORDS; count >= 2; count /= 2) {
        if (cm_torch_peek(address, words, count)) {
            memcpy(text, words, count * 8);
            text[count * 8 - 1] = '\0';
            size_t star = text[0] == '*'; /* internal to one library */
            memmove(text, text + star, strlen(text + star) + 1);
            return true;
        }
    }
    return false;
}

static bool
has_single_base(uint64_t record_table)
{
    uint64_t type, words[2];
    char name[NAME_WORDS * 8];
    if (record_table == classes.single_base) {
        return true;
    }
    if (classes.single_base != 0 || !cm_cpp_may_point(record_table)
        || !cm_torch_peek(record_table - 8, &type, 1)
        || !cm_torch_peek(type, words, 2) || !read_name(words[1], name)
        || strcmp(name, SINGLE_BASE) != 0) {
        return false;
    }
    classes.single_base = record_table;
    return true;
}

/* "N5torch8autograd9generated12MulBackward0E" -> "MulBackward0" */
static void
last_part(const char *name, char result[48])
{
    const char *at = name[0] == 'N' ? name + 1 : name;
    result[0] = '\0';
    while (*at >= '1' && *at <= '9') {
        size_t length = 0;
        while (*at >= '0' && *at <= '9' && length < NAME_WORDS * 8) {
            length = length * 10 + (size_t)(*at++ - '0');
        }
        if (length > strlen(at)) {
            return;
        }
        size_t kept = length < 47 ? length : 47;
        memcpy(result, at, kept);
        result[kept] = '\0';
        at += length;
    }
}

static enum cm_cpp_kind
look_up(uint64_t vtable, struct cm_cpp_class *result)
{
    uint64_t record, words[3];
    char name[NAME_WORDS * 8];
    enum cm_cpp_kind kind = CM_CPP_OTHER;
    if (!cm_torch_peek(vtable - 8, &record, 1)) {
        return CM_CPP_OTHER;
    }
    for (int i = 0; i < BASES && kind == CM_CPP_OTHER; i++) {
        if (!cm_cpp_may_point(record) || !cm_torch_peek(record, words, 3)
            || !cm_cpp_may_point(words[0]) || words[1] < 65536
            || !read_name(words[1], name)) {
            return CM_CPP_OTHER;
        }
        kind = kind_of(name);
        if (i == 0) {
            last_part(name, result->name);
            result->known =
                kind != CM_CPP_OTHER
                || strncmp(name, GENERATED, strlen(GENERATED)) == 0;
        }
        if (kind == CM_CPP_OTHER && !has_single_base(words[0])) {
            return CM_CPP_OTHER;
        }
        record = words[2];
    }
    return kind;
}

static struct cm_cpp_class *
place_of(uint64_t vtable)
{
    size_t at = (size_t)((vtable >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> 40);
    at %= KEPT * 2;
    while (classes.items[at].vtable != 0
           && classes.items[at].vtable != vtable) {
        at = (at + 1) % (KEPT * 2);
    }
    return &classes.items[at];
}

const struct cm_cpp_class *
cm_cpp_class_of(uint64_t vtable)
{
    if (!cm_cpp_may_point(vtable)) {
        return NULL;
    }
    struct cm_cpp_class *place = place_of(vtable);
    if (place->vtable == vtable) {
        return place;
    }
    struct cm_cpp_class found = {.vtable = vtable};
    found.kind = (uint8_t)look_up(vtable, &found);
    if (found.kind == CM_CPP_OTHER || classes.count == KEPT) {
        return NULL; /* any word may be asked for: not kept */
    }
    classes.count++;
    *place = found;
    return place;
}

enum cm_cpp_kind
cm_cpp_kind_at(uint64_t address)
{
    uint64_t vtable;
    if (!cm_cpp_may_point(address) || !cm_torch_peek(address, &vtable, 1)) {
        return CM_CPP_OTHER;
    }
    const struct cm_cpp_class *class = cm_cpp_class_of(vtable);
    return class != NULL ? (enum cm_cpp_kind) class->kind : CM_CPP_OTHER;
}
