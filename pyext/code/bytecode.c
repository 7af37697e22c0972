/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* One pass over the instructions.  Which opcode does what: opcodes.c; one that
 * is not known (a line event of sys.monitoring) ends the pass.  The last things pushed are
 * remembered, with what calls, sums and f-strings leave of them: they are the
 * owner of an attribute, the key of an item and its container.
 * Cost: O(instructions), one text interned per store. */

#include "bytecode.h"

#include "opcodes.h"
#include "pass.h"
#include "results.h"
#include "settle.h"

enum {
    ITEM = 26, /* argument of BINARY_OP: NB_SUBSCR */
    /* Argument of LOAD_COMMON_CONSTANT: None, '', True, ... from here on
     * (3.15); before it, types and functions.  Which one does not matter. */
    FIRST_COMMON_VALUE = 7,
};

static PyObject *
local_of(const struct cm_pass *pass, unsigned index)
{
    return cm_instruction_item(pass->code->co_localsplusnames, index);
}

static PyObject *
name_of(const struct cm_pass *pass, unsigned index)
{
    return cm_instruction_item(pass->code->co_names, index);
}

static void
push(struct cm_pass *pass, PyObject *name, PyObject *constant)
{
    cm_pass_push(pass, (struct pushed){.name = name, .constant = constant});
}

static void
pop(struct cm_pass *pass, unsigned count)
{
    cm_pushed_pop(pass->stack, count);
}

static void
forget(struct cm_pass *pass)
{
    pop(pass, CM_PUSHED_DEPTH);
}

/* y.x is remembered as x: what a call or an item is done to. */
static void
push_attribute(struct cm_pass *pass, PyObject *name)
{
    struct pushed of = pass->stack[0];
    pop(pass, 1);
    push(pass, name, NULL);
    pass->stack[0].attribute = true;
    pass->stack[0].object = of.name;
    pass->stack[0].plain = of.attribute ? NULL : of.name;
    pass->stack[0].sizes = cm_pushed_sizes(&of, name, "shape");
}

static void
push_part(struct cm_pass *pass, PyObject *of)
{
    push(pass, NULL, NULL);
    pass->stack[0].part = true;
    pass->stack[0].of = of;
}

/* x = y = value */
static void
run_copy(struct cm_pass *pass, unsigned argument)
{
    struct pushed copied = {0};
    if (argument != 0 && argument <= CM_PUSHED_DEPTH) {
        copied = pass->stack[argument - 1];
    }
    push(pass, NULL, NULL);
    pass->stack[0] = copied;
}

static void
push_item(struct cm_pass *pass)
{
    struct pushed key = pass->stack[0], container = pass->stack[1];
    if (key.name != NULL && !key.attribute) {
        cm_pass_add_key(pass, CM_STORE_READ, NULL, &container, &key);
    }
    pop(pass, 2);
    if (cm_is_part(&key)) {
        push_part(pass, container.name);
        return;
    }
    struct pushed item = cm_pushed_item(container.name, &key);
    item.size = container.sizes;
    cm_pass_push(pass, item);
}

/* `except E as NAME` ends with NAME = None and del NAME: no store. */
static bool
drop_store(struct cm_pass *pass, PyObject *name)
{
    struct cm_text_id text = cm_pass_text(pass, name);
    uint32_t kept = pass->count;
    while (pass->just_stored && kept != 0
           && cm_text_same(pass->stores[kept - 1].name, text)) {
        bool alias = pass->stores[--kept].kind == CM_STORE_ALIAS;
        if (!alias) {
            break;
        }
    }
    bool dropped = kept != pass->count;
    pass->count = kept;
    return dropped;
}

/* `del x` leaves as little in it as x = None. */
static void
add_deletion(struct cm_pass *pass, enum cm_store_kind kind, PyObject *name,
             PyObject *owner)
{
    struct pushed none = {.constant = Py_None, .fresh = true};
    if (!drop_store(pass, name) && pass->own) {
        cm_pass_add_value(pass, kind, name, owner, none);
    }
}

static void
run_delete(struct cm_pass *pass, enum action action, unsigned argument)
{
    const struct pushed *of = &pass->stack[0];
    switch (action) {
    case ACT_DELETE_LOCAL:
        add_deletion(pass, CM_STORE_LOCAL, local_of(pass, argument), NULL);
        break;
    case ACT_DELETE_CELL:
        add_deletion(pass, CM_STORE_CELL, local_of(pass, argument), NULL);
        break;
    case ACT_DELETE_NAME:
        add_deletion(pass, CM_STORE_GLOBAL, name_of(pass, argument), NULL);
        break;
    default:
        add_deletion(pass, CM_STORE_ATTRIBUTE, name_of(pass, argument),
                     of->attribute ? NULL : of->name);
        pop(pass, 1);
    }
}

/* `parts`: a bit for each of its four that lie below the code (until 3.12). */
static void
make_function(struct cm_pass *pass, unsigned parts)
{
    PyObject *code = pass->stack[0].constant;
    PyObject *name = NULL;
    if (code != NULL && PyCode_Check(code)) {
        name = ((PyCodeObject *)code)->co_qualname;
    }
    cm_pass_add(pass, CM_STORE_FUNCTION, name, NULL, NULL);
    pop(pass, 1 + (unsigned)__builtin_popcount(parts & 15));
    push(pass, NULL, NULL);
    if (pass->own && cm_sieve_is_comprehension(code)) {
        pass->stack[0].listed = true;
        pass->stack[0].sieved = cm_sieve_leaves_out(pass->tables, code);
    }
}

/* Before a comprehension; after it the result is below what is taken back. */
static void
put_aside(struct cm_pass *pass)
{
    if (pass->own) {
        cm_sieve_begin(&pass->sieve, cm_pushed_whole(&pass->stack[0]),
                       pass->unit);
    }
    forget(pass);
}

/* By a swap, or at once where the compiler has stored it before the rest. */
static void
end_comprehension(struct cm_pass *pass)
{
    PyObject *of = cm_sieve_end(&pass->sieve, pass->unit);
    if (of != NULL) {
        push_part(pass, of);
    }
}

static void
load_local(struct cm_pass *pass, unsigned index)
{
    PyObject *name = local_of(pass, index);
    cm_spans_read(&pass->spans, name, pass->unit);
    push(pass, name, NULL);
    cm_pass_recall(pass);
}

static void
load_name(struct cm_pass *pass, unsigned index)
{
    push(pass, name_of(pass, index), NULL);
    cm_pass_recall(pass);
}

static void
run_load(struct cm_pass *pass, enum action action, unsigned argument)
{
    switch (action) {
    case ACT_LOAD_LOCAL: load_local(pass, argument); break;
    case ACT_LOAD_TWO:
        load_local(pass, argument >> 4);
        load_local(pass, argument & 15);
        break;
    case ACT_LOAD_NAME: load_name(pass, argument); break;
    case ACT_LOAD_GLOBAL:
        if ((argument & 1) != 0) {
            push(pass, NULL, NULL);
        }
        load_name(pass, argument >> 1);
        break;
    case ACT_LOAD_CONSTANT:
        push(pass, NULL, cm_instruction_item(pass->code->co_consts, argument));
        pass->stack[0].few = cm_is_few(pass->stack[0].constant);
        break;
    case ACT_LOAD_NUMBER:
        push(pass, NULL, Py_None);
        pass->stack[0].few = argument < 2;
        break;
    case ACT_LOAD_COMMON:
        push(pass, NULL, argument >= FIRST_COMMON_VALUE ? Py_None : NULL);
        break;
    default: push(pass, NULL, NULL);
    }
}

/* Of x.NAME(...): the function, and x, which it is bound to. */
static void
run_method(struct cm_pass *pass, PyObject *name)
{
    struct pushed bound = pass->stack[0];
    cm_pass_add_call(pass, name, &bound);
    pop(pass, 1);
    push(pass, NULL, NULL);
    cm_pass_push(
        pass, (struct pushed){.called = name,
                              .object = bound.name,
                              .from = cm_pushed_moved(&bound, name),
                              .sizes = cm_pushed_sizes(&bound, name, "size"),
                              .within = bound.within,
                              .part = bound.part,
                              .of = bound.of,
                              .by = bound.by,
                              .by_other = bound.by_other,
                              .whole = cm_pushed_whole(&bound)});
}

static void
run_call(struct cm_pass *pass, enum action action, unsigned argument)
{
    if (action == ACT_LOAD_METHOD) {
        run_method(pass, name_of(pass, argument));
        return;
    }
    if ((argument & 1) != 0 && action == ACT_LOAD_ATTR) {
        run_method(pass, name_of(pass, argument >> 1));
        return;
    }
    if (action == ACT_LOAD_ATTR) {
        push_attribute(pass, name_of(pass, argument >> 1));
        return;
    }
    if (action == ACT_LOAD_PLAIN_ATTR) {
        push_attribute(pass, name_of(pass, argument));
        return;
    }
    PyObject *name = (argument & 1) != 0 ? name_of(pass, argument >> 2) : NULL;
    if (name != NULL) {
        cm_pass_add(pass, CM_STORE_CALL, name, NULL, NULL);
    }
    forget(pass);
    pass->stack[0].called = name;
}

/* `with Meter() as x`: that is made there, as in x = Meter(). */
static void
enter_with(struct cm_pass *pass)
{
    bool made = pass->stack[0].made;
    pop(pass, 1);
    push(pass, NULL, NULL);
    cm_pass_push(pass, (struct pushed){.made = made});
}

/* The method, and what it is bound to. */
static void
load_with_method(struct cm_pass *pass, unsigned method)
{
    bool made = pass->stack[0].made;
    pop(pass, 1);
    cm_pass_push(pass, (struct pushed){.enters = method == 0});
    cm_pass_push(pass, (struct pushed){.made = made});
}

static void
rearrange(struct cm_pass *pass, enum action action, unsigned argument)
{
    switch (action) {
    case ACT_COPY: run_copy(pass, argument); break;
    case ACT_SWAP:
        end_comprehension(pass);
        cm_pushed_swap(pass->stack, argument);
        break;
    case ACT_UNPACK: cm_pass_unpack(pass, argument); break;
    case ACT_WITH: enter_with(pass); break;
    case ACT_WITH_METHOD: load_with_method(pass, argument); break;
    case ACT_PUT_ASIDE: put_aside(pass); break;
    default: cm_pushed_swap(pass->stack, 2); pop(pass, 1);
    }
}

/* How many things a store takes; what was copied for another one stays. */
static unsigned
stored_count(enum action action)
{
    switch (action) {
    case ACT_STORE_ITEM: return 3;
    case ACT_STORE_ATTR:
    case ACT_STORE_TWO: return 2;
    default: return 1;
    }
}

static void
run_store(struct cm_pass *pass, enum action action, unsigned argument)
{
    end_comprehension(pass);
    struct pushed last = pass->stack[0], before = pass->stack[1],
                  third = pass->stack[2];
    pop(pass, stored_count(action));
    switch (action) {
    case ACT_STORE_LOCAL:
        cm_pass_add_variable(pass, CM_STORE_LOCAL, local_of(pass, argument),
                             last);
        break;
    case ACT_STORE_AND_LOAD:
        cm_pass_add_variable(pass, CM_STORE_LOCAL,
                             local_of(pass, argument >> 4), last);
        load_local(pass, argument & 15);
        break;
    case ACT_STORE_TWO:
        cm_pass_add_variable(pass, CM_STORE_LOCAL,
                             local_of(pass, argument >> 4), last);
        cm_pass_add_variable(pass, CM_STORE_LOCAL,
                             local_of(pass, argument & 15), before);
        break;
    case ACT_STORE_CELL:
        cm_pass_add_variable(pass, CM_STORE_CELL, local_of(pass, argument),
                             last);
        break;
    case ACT_STORE_NAME:
    case ACT_STORE_GLOBAL:
        cm_pass_add_variable(pass, CM_STORE_GLOBAL, name_of(pass, argument),
                             last);
        break;
    case ACT_STORE_ATTR:
        cm_pass_add_attribute(pass, name_of(pass, argument),
                              last.attribute ? NULL : last.name, before);
        break;
    default:
        if (cm_is_slice(&last)) {
            cm_pass_add_removal(pass, &before, true);
            break;
        }
        cm_pass_add_item(pass, &before, &last, &third);
    }
}

/* `x[a:b]` and what is done to it, del x[k], len(x) < n. */
static void
run_part(struct cm_pass *pass, enum action action, unsigned argument)
{
    struct pushed last = pass->stack[0], before = pass->stack[1],
                  third = pass->stack[2];
    switch (action) {
    case ACT_SLICE:
        pop(pass, argument);
        push(pass, NULL, NULL);
        pass->stack[0].slice = true;
        return;
    case ACT_TAKE_SLICE:
        pop(pass, 3);
        push_part(pass, third.name);
        return;
    case ACT_STORE_SLICE:
    case ACT_DELETE_ITEM:
        cm_pass_add_removal(pass, action == ACT_STORE_SLICE ? &third : &before,
                            action == ACT_STORE_SLICE || cm_is_slice(&last)
                                || last.before);
        pop(pass, action == ACT_STORE_SLICE ? 4 : 2);
        return;
    case ACT_CONTAINS:
        cm_pass_add_key(pass, CM_STORE_ASK, NULL, &last, &before);
        forget(pass);
        return;
    default: cm_results_compare(pass, argument);
    }
}

static void
run_build(struct cm_pass *pass, enum action action, unsigned argument)
{
    struct pushed made = {.empty = argument == 0, .made = true};
    unsigned taken = action == ACT_BUILD_MAP    ? 2 * argument
                     : action == ACT_BUILD_KEYS ? argument + 1
                                                : argument;
    made.empty |=
        action != ACT_BUILD && cm_pushed_are_empty(pass->stack, taken);
    cm_pushed_mix(pass->stack, taken, &made);
    pop(pass, taken);
    cm_pass_push(pass, made);
}

static void
leave(struct cm_pass *pass, enum action action)
{
    cm_pass_add_return(pass, action == ACT_RETURN);
    if (action == ACT_RETURN && pass->stack[0].constant == NULL) {
        cm_spans_return(&pass->spans, pass->unit);
    }
    forget(pass);
}

/* What a jump spans; `measured`: a length, just before it. */
static void
span(struct cm_pass *pass, enum action action, unsigned argument,
     Py_ssize_t next, bool measured)
{
    if (action == ACT_HANDLER && pass->spans.handlers == 0) {
        pass->spans.handlers = pass->unit;
    }
    if (action == ACT_BRANCH && measured) {
        cm_spans_branch(&pass->spans, pass->count, next + argument);
    }
    if (action == ACT_BRANCH || action == ACT_TURN) {
        cm_spans_exit(&pass->spans, pass->unit, next + (Py_ssize_t)argument);
    }
    if (action == ACT_TURN) {
        cm_sieve_turn(&pass->sieve, pass->unit, next + (Py_ssize_t)argument);
    }
    if (action == ACT_LOOP) {
        cm_sieve_jump(&pass->sieve, next - (Py_ssize_t)argument);
        cm_spans_loop(&pass->spans, pass->stores, pass->count, next, argument);
    }
    if (action >= ACT_TURN && action <= ACT_RETURN) {
        pass->spans.straight = next;
    }
}

/* What is pushed, taken and stored. */
static void
act(struct cm_pass *pass, enum action action, unsigned argument)
{
    if (action >= ACT_LOAD_LOCAL && action <= ACT_LOAD_OTHER) {
        run_load(pass, action, argument);
    }
    else if (action >= ACT_LOAD_ATTR && action <= ACT_LOAD_SUPER) {
        run_call(pass, action, argument);
    }
    else if (action == ACT_LOAD_ITEM
             && (PY_VERSION_HEX < 0x030E0000 || argument == ITEM)) {
        push_item(pass);
    }
    else if (action == ACT_LOAD_NULL) {
        push(pass, NULL, NULL);
    }
    else if (action == ACT_DROP) {
        pop(pass, 1);
    }
    else if (action >= ACT_COPY && action <= ACT_SET_FUNCTION) {
        rearrange(pass, action, argument);
    }
    else if (action == ACT_TURN) {
        PyObject *over = cm_pushed_whole(&pass->stack[0]);
        forget(pass);
        pass->stack[0].turn = true;
        pass->stack[0].over = over;
    }
    else if (action >= ACT_SLICE && action <= ACT_CONTAINS) {
        run_part(pass, action, argument);
    }
    else if (action >= ACT_LOAD_ITEM && action <= ACT_TAKE_CALL_KEYS) {
        cm_results_take(pass, action, argument);
    }
    else if (action >= ACT_STORE_LOCAL && action <= ACT_STORE_ITEM) {
        run_store(pass, action, argument);
    }
    else if (action == ACT_FUNCTION) {
        make_function(pass, argument);
    }
    else if (action >= ACT_DELETE_LOCAL && action <= ACT_DELETE_ATTR) {
        run_delete(pass, action, argument);
    }
    else if (action >= ACT_BUILD && action <= ACT_BUILD_KEYS) {
        run_build(pass, action, argument);
    }
    else if (action == ACT_LEAVE || action == ACT_RETURN) {
        leave(pass, action);
    }
    else if (action == ACT_OTHER || action >= ACT_LOOP) {
        forget(pass);
    }
}

/* False: an opcode that is not known. */
static bool
run(struct cm_pass *pass, enum action action, unsigned argument,
    Py_ssize_t next)
{
    uint32_t line = cm_line_table_at(&pass->lines, pass->unit);
    bool measured = pass->measured;
    cm_spans_reach(&pass->spans, pass->stores, pass->count, pass->unit,
                   pass->left);
    pass->measured = false;
    pass->left =
        action == ACT_LEAVE || action == ACT_RETURN || action == ACT_LOOP;
    pass->fresh = pass->fresh || line != pass->line;
    pass->line = line;
    cm_pass_join(pass);
    if (action == ACT_JUMP) {
        cm_pass_jump(pass, next + (Py_ssize_t)argument);
    }
    act(pass, action, argument);
    if (action != ACT_TAKE_MANY) {
        pass->built_count = 0;
    }
    span(pass, action, argument, next, measured);
    pass->just_stored =
        action >= ACT_STORE_LOCAL && action <= ACT_STORE_GLOBAL;
    bool ends = action == ACT_DROP && pass->called;
    if (action != ACT_KEEP) {
        pass->called = action == ACT_TAKE_ONE || action == ACT_TAKE_CALL
                       || action == ACT_TAKE_CALL_KEYS;
    }
    if (ends || (action >= ACT_STORE_LOCAL && action <= ACT_STORE_ITEM)) {
        pass->fresh = true;
    }
    else if (action == ACT_OTHER || action == ACT_COMPARE
             || action == ACT_CONTAINS || action >= ACT_TURN) {
        pass->fresh = false;
    }
    return action != ACT_UNKNOWN;
}

/* Equal code has equal records. */
static void
forget_units(struct cm_pass *pass, bool complete)
{
    cm_spans_close(&pass->spans);
    cm_pass_end_returns(pass, complete);
    if (complete) {
        cm_settle_mark(pass);
    }
    for (uint32_t i = 0; i < pass->count; i++) {
        cm_spans_find(&pass->spans, &pass->stores[i]);
        pass->stores[i].unit = 0;
        cm_spans_forget(&pass->stores[i]);
    }
}

uint32_t
cm_bytecode_stores(const struct cm_bytecode *self, const PyCodeObject *code,
                   bool own, struct cm_texts *texts, struct cm_store *result,
                   uint32_t capacity)
{
    PyObject *table = code->co_linetable;
    struct cm_instruction one = {0};
    struct cm_pass pass = {.tables = self,
                           .code = code,
                           .texts = texts,
                           .stores = result,
                           .capacity = capacity,
                           .own = own};
    if (!self->known || table == NULL || !PyBytes_Check(table)) {
        return 0;
    }
    cm_line_table_init(&pass.lines, code);
    cm_pass_add_parameters(&pass);
    bool known = true;
    while (known && pass.count < capacity
           && cm_instruction_next(self, code, &one)) {
        pass.unit = one.unit;
        known = run(&pass, one.action, one.argument, one.next);
    }
    forget_units(&pass, known && pass.count < capacity);
    return pass.count;
}
