/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "results.h"

/* Of x.__setattr__(...): it was told when the method was loaded. */
static void
drop_call(struct cm_pass *pass, PyObject *method)
{
    if (pass->count != 0 && pass->stores[pass->count - 1].kind == CM_STORE_CALL
        && cm_text_same(pass->stores[pass->count - 1].name,
                        cm_pass_text(pass, method))) {
        pass->count--;
    }
}

/* setattr(x, 'NAME', y), object.__setattr__(x, 'NAME', y) and
 * super().__setattr__('NAME', y) are x.NAME = y. */
static void
add_attribute_call(struct cm_pass *pass, PyObject *function,
                   unsigned arguments)
{
    const struct pushed *first = &pass->stack[arguments - 1];
    PyObject *owner = arguments == 3 && !first->attribute ? first->name : NULL;
    PyObject *name = pass->stack[1].constant;
    struct pushed value = pass->stack[0];
    bool method = !cm_str_is(function, "setattr");
    value.fresh = true; /* no branch: it would have been forgotten */
    if (name != NULL && PyUnicode_CheckExact(name)) {
        if (method) {
            drop_call(pass, function);
        }
        cm_pass_add_value(pass, CM_STORE_ATTRIBUTE, name, owner, value);
    }
    else if (!method) {
        cm_pass_add(pass, CM_STORE_CALL, function, owner, NULL);
    }
}

/* list(), defaultdict(list) */
static bool
makes_empty(PyObject *function, unsigned arguments)
{
    static const char *const names[] = {
        "list", "dict", "set", "OrderedDict", "deque", "Counter", NULL};
    return (arguments <= 1 && cm_str_is(function, "defaultdict"))
           || (arguments == 0 && cm_str_is_one_of(function, names));
}

/* x[a:b, c] */
static bool
has_slice(const struct cm_pass *pass, unsigned count)
{
    bool found = false;
    for (unsigned i = 0; i < count && i < CM_PUSHED_DEPTH; i++) {
        found |= cm_is_slice(&pass->stack[i]);
    }
    return found;
}

/* f"epoch {step - n}", ("x", step - n) */
static bool
has_before(const struct cm_pass *pass, unsigned count)
{
    bool found = false;
    for (unsigned i = 0; i < count && i < CM_PUSHED_DEPTH; i++) {
        found |= pass->stack[i].before;
    }
    return found;
}

/* What leaves a part of an argument, and of which one. */
static PyObject *
part_by(PyObject *function, const struct pushed *stack, unsigned arguments)
{
    static const char *const of_bound[] = {"narrow", "index_select",
                                           "masked_select", NULL};
    static const char *const of_first[] = {"islice", "sample", "compress",
                                           NULL};
    static const char *const of_second[] = {
        "filter",   "filterfalse", "takewhile", "dropwhile",
        "nlargest", "nsmallest",   NULL};
    if (arguments == 0 || arguments >= CM_PUSHED_DEPTH) {
        return NULL;
    }
    if (cm_str_is_one_of(function, of_bound)) {
        PyObject *bound = stack[arguments].whole;
        bool torchs = bound != NULL && cm_str_is(bound, "torch");
        return torchs ? cm_pushed_whole(&stack[arguments - 1]) : bound;
    }
    return arguments < 2 ? NULL
           : cm_str_is_one_of(function, of_first)
               ? cm_pushed_whole(&stack[arguments - 1])
           : cm_str_is_one_of(function, of_second)
               ? cm_pushed_whole(&stack[arguments - 2])
               : NULL;
}

/* [y for y in x if ...] where that is a function. */
static struct pushed
result_of_comprehension(const struct cm_pass *pass)
{
    PyObject *of =
        pass->stack[1].sieved ? cm_pushed_whole(&pass->stack[0]) : NULL;
    return (struct pushed){.made = true, .part = of != NULL, .of = of};
}

/* np.append(x, y), not x.append(y).  A name that a module imports is loaded
 * as an attribute, before the arguments or one place further. */
static bool
is_append_of_numpy(PyObject *function, const struct pushed *stack,
                   unsigned arguments)
{
    PyObject *near = stack[arguments].object;
    PyObject *object = near != NULL ? near : stack[arguments + 1].object;
    return cm_str_is(function, "append") && object != NULL
           && (cm_str_is(object, "np") || cm_str_is(object, "numpy"));
}

/* NAME(x, ...), where these take from x or put into it. */
static const char *const told[] = {"heappush",    "heappop",  "heapreplace",
                                   "heappushpop", "finalize", "cycle",
                                   NULL};

static void
add_call(struct cm_pass *pass, PyObject *function, const struct pushed *first,
         unsigned arguments)
{
    uint32_t before = pass->count;
    cm_pass_add(pass, CM_STORE_CALL, function, first->name, first->within);
    if (pass->count > before) {
        pass->stores[before].decides = arguments;
    }
}

/* x.size(), x.size(1); x.to(device) is as large as x. */
static void
add_sizes(const struct cm_pass *pass, unsigned arguments,
          struct pushed *result)
{
    struct pushed method = {0};
    if (arguments < CM_PUSHED_DEPTH) {
        method = pass->stack[arguments];
    }
    if (method.called != NULL) {
        result->from = method.from;
        result->sizes = arguments == 0 ? method.sizes : NULL;
        result->size = arguments != 0 ? method.sizes : NULL;
    }
}

/* torch.cat(...), not self.newest(...) */
static bool
is_of_other(const struct cm_pass *pass, unsigned arguments)
{
    const struct pushed *method =
        &pass->stack[arguments < CM_PUSHED_DEPTH ? arguments : 0];
    return method->called != NULL
           && (method->object == NULL
               || !(cm_str_is(method->object, "self")
                    || cm_str_is(method->object, "cls")));
}

/* len(x), vars(x), heappop(x), finalize(x, f): what is done to the first
 * argument. */
static struct pushed
result_of_call(struct cm_pass *pass, unsigned arguments)
{
    struct pushed result = {.made = true};
    PyObject *function = cm_pushed_function(pass->stack, arguments);
    if (arguments == 0 && pass->stack[1].listed) {
        return result_of_comprehension(pass);
    }
    if (arguments == 0 && pass->stack[1].enters) {
        return (struct pushed){.made = pass->stack[0].made};
    }
    if (function != NULL && PyUnicode_Check(function)) {
        result.empty = makes_empty(function, arguments);
        result.by = function;
        result.by_other = is_of_other(pass, arguments);
    }
    add_sizes(pass, arguments, &result);
    if (function == NULL || arguments == 0 || !PyUnicode_Check(function)) {
        cm_pass_add_arguments(pass, arguments);
        return result;
    }
    const struct pushed *first = &pass->stack[arguments - 1];
    if (cm_str_is(function, "len")) {
        result.length = true;
        result.of = first->name;
        result.size = first->attribute ? NULL : first->name;
    }
    else if (cm_str_is(function, "vars")) {
        result.name = function;
        result.attribute = true;
    }
    else if (cm_sets_attribute(function, arguments)) {
        add_attribute_call(pass, function, arguments);
    }
    else if (cm_str_is_one_of(function, told)
             || is_append_of_numpy(function, pass->stack, arguments)) {
        add_call(pass, function, first, arguments);
    }
    /* an item of x, as x[k] is */
    else if (arguments == 2 && pass->stack[2].called != NULL
             && cm_str_is(function, "setdefault")) {
        cm_pass_add_arguments(pass, arguments);
        result = cm_pushed_item(pass->stack[2].object, first);
    }
    else if (cm_str_is(function, "pop") && first->before) {
        cm_pass_add_removal(pass, &pass->stack[arguments], true);
    }
    else {
        bool text = cm_str_is(function, "str") || cm_str_is(function, "int");
        result.from =
            text ? cm_pushed_source(pass->stack, arguments) : result.from;
        text |= cm_str_is(function, "format");
        result.before = text && has_before(pass, arguments);
        result.of = part_by(function, pass->stack, arguments);
        result.part = result.of != NULL;
        cm_pass_add_arguments(pass, arguments);
    }
    return result;
}

/* f(x)[a:b].clone(): a part, as before, and made by f. */
static void
keep_part(const struct cm_pass *pass, unsigned arguments,
          struct pushed *result)
{
    const struct pushed *method =
        &pass->stack[arguments < CM_PUSHED_DEPTH ? arguments : 0];
    result->part |= method->part && method->of == NULL
                    && method->called != NULL
                    && cm_pushed_moves(method->called);
    if (method->by != NULL && cm_pushed_moves(method->called)) {
        result->by = method->by;
        result->by_other = method->by_other;
    }
}

/* Arguments of BINARY_OP. */
enum {
    PLUS = 0,
    TIMES = 5,
    MODULO = 6,
    MINUS = 10,
    DIVIDED = 11,
    INPLACE = 13
};

static PyObject *
operand_of(const struct pushed *side)
{
    return side->operand != NULL ? side->operand
           : side->attribute     ? side->name
                                 : NULL;
}

/* x * y scales both, x / y the first; what is scaled stays so. */
static void
add_scaled(struct pushed *result, const struct pushed *side, bool scales)
{
    if (scales) {
        cm_pushed_add_scaled(result,
                             (struct scaled){side->name, side->attribute});
    }
    for (unsigned i = 0; i < CM_PUSHED_SCALED; i++) {
        cm_pushed_add_scaled(result, side->scaled[i]);
    }
}

static void
scale(struct pushed *result, const struct pushed *left,
      const struct pushed *right, unsigned operation)
{
    bool product = operation == TIMES;
    if (product || operation == PLUS || operation == MINUS
        || operation == DIVIDED) {
        add_scaled(result, left, product || operation == DIVIDED);
        add_scaled(result, right, product);
    }
}

static struct pushed
result_of_binary(const struct cm_pass *pass, unsigned argument)
{
    const struct pushed *left = &pass->stack[1], *right = &pass->stack[0];
    struct pushed result = {0};
    unsigned operation = argument >= INPLACE ? argument - INPLACE : argument;
    if (operation == MODULO && left->constant != NULL
        && PyUnicode_Check(left->constant)) { /* "step %d" % step */
        result.from = cm_pushed_source(pass->stack, 2);
        result.before = right->before;
        return result;
    }
    result.modulo = operation == MODULO;
    if (operation == MINUS && left->length) {
        result.length = result.excess = true;
        result.of = left->of;
    }
    if ((operation == MINUS || operation == PLUS) && right->constant != NULL) {
        result.size = left->size;
    }
    result.before = operation == MINUS && !left->length && !right->few;
    scale(&result, left, right, operation);
    result.sum = operation == PLUS;
    if (result.sum) {
        result.left = cm_pushed_summand(left);
        result.right = cm_pushed_summand(right);
        result.right.plain = result.right.plain && !left->sum;
    }
    result.operand = operand_of(left);
    if (result.operand == NULL) {
        result.operand = operand_of(right);
    }
    return result;
}

/* A call takes its function as well, and what that is bound to, or NULL; with
 * keywords (3.13 on) their names first, which nobody asks for. */
void
cm_results_take(struct cm_pass *pass, enum action action, unsigned argument)
{
    struct pushed result = {.made = action == ACT_TAKE_MANY};
    if (action == ACT_TAKE_CALL_KEYS) {
        cm_pushed_pop(pass->stack, 1);
        action = ACT_TAKE_CALL;
    }
    switch (action) {
    case ACT_TAKE_ONE: argument = 1; break;
    case ACT_TAKE_MANY:
        result.slice = has_slice(pass, argument);
        cm_pass_note_built(pass, argument);
        break;
    case ACT_TAKE_FORMAT: argument = (argument & 4) != 0 ? 2 : 1; break;
    case ACT_TAKE_CALL:
        result = result_of_call(pass, argument);
        keep_part(pass, argument, &result);
        argument += 2;
        break;
    case ACT_TAKE_SPEC: argument = 2; break;
    default: result = result_of_binary(pass, argument); argument = 2;
    }
    if (action == ACT_TAKE_ONE
        || (action >= ACT_TAKE_MANY && action <= ACT_TAKE_SPEC)) {
        result.from = cm_pushed_source(pass->stack, argument);
        result.before = has_before(pass, argument);
    }
    if (!result.part) {
        cm_pushed_mix(pass->stack, argument, &result);
    }
    cm_pushed_pop(pass->stack, argument);
    cm_pass_push(pass, result);
}

/* ---- comparisons */

enum {
    LESS_OR_EQUAL = 1, /* Py_LE, as COMPARE_OP's argument has it above flags */
    COMPARED = PY_VERSION_HEX >= 0x030D0000   ? 5
               : PY_VERSION_HEX >= 0x030C0000 ? 4
                                              : 0,
};

/* Not whether there are any. */
static bool
is_compared(const struct pushed *length, const struct pushed *with)
{
    return length->length && (length->excess || !with->few);
}

static void
add_attributes_compared(struct cm_pass *pass, const struct pushed *left,
                        const struct pushed *right, unsigned argument)
{
    uint32_t before = pass->count;
    cm_pass_add(pass, CM_STORE_COMPARE, left->name, right->name, NULL);
    if (pass->count > before) {
        pass->stores[before].trimmed = argument >> COMPARED <= LESS_OR_EQUAL;
    }
}

/* len(x) < n, self.count < self.size */
void
cm_results_compare(struct cm_pass *pass, unsigned argument)
{
    struct pushed right = pass->stack[0], left = pass->stack[1];
    bool of_length = is_compared(&right, &left) || is_compared(&left, &right);
    bool of_attribute = pass->own && (right.attribute || left.attribute);
    if (of_length) {
        cm_pass_add(pass, CM_STORE_MEASURE, NULL,
                    right.length ? right.of : left.of, NULL);
    }
    else if (of_attribute) {
        add_attributes_compared(pass, &left, &right, argument);
    }
    if (of_length || of_attribute) {
        pass->measured = true;
    }
    cm_pushed_pop(pass->stack, 2);
    cm_pass_push(pass, (struct pushed){.made = true});
}
