/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Two rounds over the instructions: where it is set, and which loops do so;
 * then what is set at each instruction.  It is set where two branches meet if
 * both have set it.  A jump back needs no care: nothing unsets.  What an
 * exception leads to is read as if nothing were set, and the code after it as
 * if none had come. */

#include "touch.h"

#include "opcodes.h"
#include "../tables/phrase.h" // cm_str_is(), cm_str_equals()

enum {
    MOST_JUMPS = 32, /* forwards, over one instruction */
    MOST_LOOPS = 32,
    MOST_STORES = 32,
    ITEM = 26, /* argument of BINARY_OP: NB_SUBSCR */
};

/* ---- what is touched */

/* x, or y of y.x: what an attribute or an item is taken from. */
struct owner {
    enum { NO_ONE, LOCAL, NAME, LOCALS_OWN, NAMES_OWN } kind;
    unsigned index, attribute;
};

struct loop {
    Py_ssize_t head, end;
    bool sets, entered, left;
    bool before; /* it was set before the loop */
};

struct reading {
    const struct cm_bytecode *tables;
    const PyCodeObject *code;
    const struct cm_touch *what;
    struct owner last;  /* what was pushed last */
    bool key;           /* its name was, by the instruction before */
    bool text;          /* and went nowhere yet */
    struct owner owner; /* of the first store */
    bool set, handler;
    bool asks;           /* by texts that are names */
    struct owner called; /* of a method that sets, in this statement */
    bool calls;
    Py_ssize_t handlers; /* the first of them; 0: none */
    struct {
        Py_ssize_t target;
        bool set;
    } jumps[MOST_JUMPS];
    unsigned jump_count, loop_count;
    struct loop loops[MOST_LOOPS];
    struct cm_touched result;
};

enum touch { NOTHING, READS, SETS };

static bool
is_same(struct owner one, struct owner other)
{
    return one.kind != NO_ONE && one.kind == other.kind
           && one.index == other.index && one.attribute == other.attribute;
}

static bool
is_name(const struct reading *self, PyObject *name)
{
    return name != NULL && cm_str_is(name, self->what->name);
}

static bool
is_other_self(const struct reading *self)
{
    PyObject *name =
        cm_instruction_item(self->code->co_localsplusnames, self->last.index);
    return self->what->other_self && self->last.kind == LOCAL && name != NULL
           && cm_str_is(name, "self");
}

/* x.NAME; of a module's variable where x is one of these too. */
static enum touch
touch_attribute(const struct reading *self, PyObject *name, enum touch how)
{
    enum cm_touch_kind kind = self->what->kind;
    bool module = kind == CM_TOUCH_VARIABLE && self->last.kind == NAME;
    bool fits = (kind == CM_TOUCH_ATTRIBUTE && !is_other_self(self)) || module;
    return fits && is_name(self, name) ? how : NOTHING;
}

static enum touch
touch_variable(const struct reading *self, PyObject *name, enum touch how)
{
    bool fits = self->what->kind == CM_TOUCH_VARIABLE;
    return fits && is_name(self, name) ? how : NOTHING;
}

static bool
is_item(const struct cm_instruction *one)
{
    return one->action == ACT_LOAD_ITEM
           && (PY_VERSION_HEX < 0x030E0000 || one->argument == ITEM);
}

/* x['NAME']; getattr(x, 'NAME'), x.get('NAME'); not print('NAME'), {'NAME': y},
 * 'NAME' in x. */
static enum touch
touch_text(struct reading *self, const struct cm_instruction *one)
{
    bool item = self->key && self->what->kind == CM_TOUCH_ITEM;
    bool call =
        one->action == ACT_TAKE_CALL || one->action == ACT_TAKE_CALL_KEYS;
    if (self->key && (is_item(one) || one->action == ACT_STORE_ITEM)) {
        self->text = false;
        return !item ? NOTHING : is_item(one) ? READS : SETS;
    }
    bool read = self->text
                && ((call && self->asks) || (item && one->action == ACT_COPY));
    if (read || one->action == ACT_BUILD_MAP || one->action == ACT_CONTAINS) {
        self->text = false;
    }
    return read ? READS : NOTHING;
}

static enum touch
touch_of(struct reading *self, const struct cm_instruction *one)
{
    PyObject *name = cm_instruction_name(self->code, one);
    switch (one->action) {
    case ACT_LOAD_NAME:
    case ACT_LOAD_GLOBAL: return touch_variable(self, name, READS);
    case ACT_STORE_NAME:
    case ACT_STORE_GLOBAL:
    case ACT_DELETE_NAME: return touch_variable(self, name, SETS);
    case ACT_LOAD_ATTR:
    case ACT_LOAD_PLAIN_ATTR:
        return cm_instruction_is_method(one)
                   ? NOTHING
                   : touch_attribute(self, name, READS);
    case ACT_STORE_ATTR:
    case ACT_DELETE_ATTR: return touch_attribute(self, name, SETS);
    default: return touch_text(self, one);
    }
}

/* ---- who is called */

static bool
names_one(PyObject *name, const struct cm_touchers *of)
{
    bool found = false;
    for (size_t i = 0; name != NULL && i < of->count; i++) {
        found |= cm_str_equals(name, of->codes[i]->co_name);
    }
    return found;
}

/* A class's body and a module make functions that are called later. */
static bool
uses_what_it_makes(const PyCodeObject *code)
{
    return (code->co_flags & CO_OPTIMIZED) != 0;
}

static bool
makes_one(const struct reading *self, unsigned index,
          const struct cm_touchers *of)
{
    PyObject *made = cm_instruction_item(self->code->co_consts, index);
    bool found = false;
    for (size_t i = 0; uses_what_it_makes(self->code) && i < of->count; i++) {
        found |= made == (PyObject *)of->codes[i];
    }
    return found;
}

/* Of x.f, what x is; a function is not asked from anybody. */
static enum call {
    NO_CALL,
    OF_OWNER,
    OF_NO_ONE,
} call_of(const struct reading *self, const struct cm_instruction *one,
          const struct cm_touchers *of)
{
    PyObject *name = cm_instruction_name(self->code, one);
    switch (one->action) {
    case ACT_LOAD_ATTR:
    case ACT_LOAD_SUPER:
    case ACT_LOAD_METHOD:
    case ACT_LOAD_PLAIN_ATTR: return names_one(name, of) ? OF_OWNER : NO_CALL;
    case ACT_LOAD_NAME:
    case ACT_LOAD_GLOBAL: return names_one(name, of) ? OF_NO_ONE : NO_CALL;
    case ACT_LOAD_CONSTANT:
        return makes_one(self, one->argument, of) ? OF_NO_ONE : NO_CALL;
    default: return NO_CALL;
    }
}

bool
cm_touch_mentions(const PyCodeObject *code, PyCodeObject *function)
{
    bool found = false;
    for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(code->co_names);
         i++) {
        found = cm_str_equals(PyTuple_GET_ITEM(code->co_names, i),
                              function->co_name);
    }
    bool uses = uses_what_it_makes(code);
    for (Py_ssize_t i = 0;
         !found && uses && i < PyTuple_GET_SIZE(code->co_consts); i++) {
        found = PyTuple_GET_ITEM(code->co_consts, i) == (PyObject *)function;
    }
    return found;
}

bool
cm_touch_only_names(const struct cm_bytecode *tables, const PyCodeObject *code,
                    PyCodeObject *function)
{
    const struct cm_touchers it = {&function, 1};
    const struct reading reading = {.tables = tables, .code = code};
    struct cm_instruction one = {0};
    bool named = false, used = !tables->known || uses_what_it_makes(code);
    while (!used && cm_instruction_next(tables, code, &one)) {
        named |= one.action == ACT_STORE_NAME
                 && names_one(cm_instruction_name(code, &one), &it);
        used = one.action == ACT_UNKNOWN
               || call_of(&reading, &one, &it) != NO_CALL;
    }
    return named && !used;
}

static bool
mentions(const PyCodeObject *code, const struct cm_touchers *of)
{
    bool found = false;
    for (size_t i = 0; !found && i < of->count; i++) {
        found = cm_touch_mentions(code, of->codes[i]);
    }
    return found;
}

/* ---- what was pushed */

static struct owner
attribute_of(struct owner owner, unsigned index)
{
    return owner.kind == LOCAL ? (struct owner){LOCALS_OWN, owner.index, index}
           : owner.kind == NAME ? (struct owner){NAMES_OWN, owner.index, index}
                                : (struct owner){NO_ONE, 0, 0};
}

/* The text is pushed after what has the item of that name. */
static void
note_pushed(struct reading *self, const struct cm_instruction *one)
{
    unsigned argument = one->argument;
    self->key = false;
    switch (one->action) {
    case ACT_KEEP: break;
    case ACT_LOAD_LOCAL:
        self->last = (struct owner){LOCAL, argument, 0};
        break;
    case ACT_LOAD_TWO:
    case ACT_STORE_AND_LOAD:
        self->last = (struct owner){LOCAL, argument & 15, 0};
        break;
    case ACT_LOAD_NAME: self->last = (struct owner){NAME, argument, 0}; break;
    case ACT_LOAD_GLOBAL:
        self->last = (struct owner){NAME, argument >> 1, 0};
        break;
    case ACT_LOAD_ATTR:
        self->last = attribute_of(self->last, argument >> 1);
        break;
    case ACT_LOAD_PLAIN_ATTR:
        self->last = attribute_of(self->last, argument);
        break;
    case ACT_LOAD_CONSTANT:
        self->key = is_name(
            self, cm_instruction_item(self->code->co_consts, argument));
        self->text |= self->key;
        self->last = self->key ? self->last : (struct owner){NO_ONE, 0, 0};
        break;
    default:
        if (one->action != ACT_COPY || argument != 1) {
            self->last = (struct owner){NO_ONE, 0, 0};
        }
    }
}

static bool
is_owned(const struct reading *self, struct owner owner)
{
    return self->what->kind == CM_TOUCH_VARIABLE
           || is_same(self->owner, owner);
}

/* ---- who has set it when a statement is over */

/* What comes between is an argument, which is read before the call. */
static bool
is_statements_end(enum action action)
{
    return action == ACT_DROP
           || (action >= ACT_STORE_LOCAL && action <= ACT_STORE_ITEM);
}

/* A turn or a branch may be within the arguments. */
static bool
is_way(enum action action)
{
    return action == ACT_TURN || action == ACT_LOOP || action == ACT_BRANCH
           || action == ACT_JUMP;
}

static bool
is_set_by_call(struct reading *self, const struct cm_instruction *one)
{
    enum call call = call_of(self, one, &self->what->setters);
    bool variable = self->what->kind == CM_TOUCH_VARIABLE;
    bool ends = is_statements_end(one->action);
    bool set = self->calls && ends;
    self->calls = self->calls && !ends && !is_way(one->action);
    if (call == OF_OWNER || (call == OF_NO_ONE && variable)) {
        self->calls = true;
        self->called = self->last;
    }
    return set;
}

/* ---- where it is set, and in which loops */

/* Out of a handler is no loop: spans.c says where these stand. */
static void
note_loop(struct reading *self, const struct cm_instruction *one)
{
    Py_ssize_t head = one->next - (Py_ssize_t)one->argument;
    unsigned i = 0;
    if (PY_VERSION_HEX >= 0x030C0000 && self->handlers > head) {
        return;
    }
    while (i < self->loop_count && self->loops[i].head != head) {
        i++;
    }
    if (i == MOST_LOOPS) {
        self->result.reads = true;
        return;
    }
    self->loops[i].head = head;
    self->loops[i].end = one->next;
    self->loop_count += i == self->loop_count;
}

static void
note_set(struct reading *self, const Py_ssize_t *units, unsigned count)
{
    for (unsigned i = 0; i < self->loop_count; i++) {
        for (unsigned k = 0; k < count; k++) {
            self->loops[i].sets |= units[k] >= self->loops[i].head
                                   && units[k] < self->loops[i].end;
        }
        self->result.repeats |= self->loops[i].sets;
    }
}

/* What is called `step` may be an optimizer's: a store says more. */
static void
note_owner(struct reading *self, bool sets, bool first)
{
    if (sets && !self->result.sets) {
        self->owner = self->last;
    }
    else if (!sets && first) {
        self->owner = self->called;
    }
}

static void
survey(struct reading *self)
{
    struct cm_instruction one = {0};
    Py_ssize_t units[MOST_STORES];
    unsigned count = 0;
    while (cm_instruction_next(self->tables, self->code, &one)) {
        if (one.action == ACT_HANDLER && self->handlers == 0) {
            self->handlers = one.unit;
        }
        if (one.action == ACT_LOOP) {
            note_loop(self, &one);
        }
        bool sets = touch_of(self, &one) == SETS;
        if (is_set_by_call(self, &one) || sets) {
            note_owner(self, sets, count == 0);
            self->result.sets |= sets;
            self->result.reads |= count == MOST_STORES;
            units[count % MOST_STORES] = one.unit;
            count += count < MOST_STORES;
        }
        note_pushed(self, &one);
    }
    note_set(self, units, count);
}

/* ---- what is set where */

static void
note_jump(struct reading *self, Py_ssize_t target)
{
    if (self->handler) {
        return;
    }
    if (self->jump_count == MOST_JUMPS) {
        self->result.reads = true;
        return;
    }
    self->jumps[self->jump_count].target = target;
    self->jumps[self->jump_count++].set = self->set;
}

/* After a loop it is what the last turn has left. */
static void
pass_loops(struct reading *self, Py_ssize_t unit)
{
    for (unsigned i = 0; i < self->loop_count; i++) {
        struct loop *loop = &self->loops[i];
        if (loop->entered && !loop->left && loop->end <= unit) {
            loop->left = true;
            self->set |= loop->before;
        }
    }
}

static void
enter_loops(struct reading *self, Py_ssize_t unit)
{
    for (unsigned i = 0; i < self->loop_count; i++) {
        struct loop *loop = &self->loops[i];
        if (loop->sets && !loop->entered && loop->head <= unit) {
            loop->entered = true;
            loop->before = self->set;
            self->set = false;
        }
    }
}

static void
meet_jumps(struct reading *self, Py_ssize_t unit)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < self->jump_count; i++) {
        if (self->jumps[i].target > unit) {
            self->jumps[kept++] = self->jumps[i];
            continue;
        }
        self->set = self->jumps[i].set && (self->set || self->handler);
        self->handler = false;
    }
    self->jump_count = kept;
}

static void
touch_by(struct reading *self, const struct cm_instruction *one)
{
    enum touch touch = touch_of(self, one);
    bool owned = is_owned(self, self->last);
    enum call call =
        touch == NOTHING ? call_of(self, one, &self->what->readers) : NO_CALL;
    self->result.reads |= touch == READS && !(owned && self->set);
    self->result.reads |=
        call != NO_CALL && !(self->set && (owned || call == OF_NO_ONE));
    self->set |= touch == SETS && owned;
    self->set |= is_set_by_call(self, one) && is_owned(self, self->called);
}

/* The first argument is who a method is called of. */
static bool
is_set_for_caller(const struct reading *self)
{
    struct owner first = {LOCAL, 0, 0};
    return self->set
           && (self->what->kind == CM_TOUCH_VARIABLE
               || (self->code->co_argcount > 0
                   && is_same(self->owner, first)));
}

static bool
runs_when_called(const PyCodeObject *code)
{
    int later = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    return (code->co_flags & later) == 0;
}

static void
follow(struct reading *self)
{
    struct cm_instruction one = {0};
    self->result.always =
        self->what->kind != CM_TOUCH_ITEM && runs_when_called(self->code);
    while (!self->result.reads
           && cm_instruction_next(self->tables, self->code, &one)) {
        pass_loops(self, one.unit);
        meet_jumps(self, one.unit);
        enter_loops(self, one.unit);
        touch_by(self, &one);
        note_pushed(self, &one);
        if (one.action == ACT_RETURN || one.action == ACT_LEAVE) {
            self->result.always &= is_set_for_caller(self);
        }
        if (one.action == ACT_HANDLER) {
            self->handler = true;
            self->set = false;
        }
        else if (one.action == ACT_BRANCH || one.action == ACT_JUMP) {
            note_jump(self, one.next + (Py_ssize_t)one.argument);
        }
        else if (one.action == ACT_UNKNOWN) {
            self->result.reads = true;
        }
    }
}

static bool
has_name(PyObject *names, const char *name)
{
    const char *const one[] = {name, NULL};
    return cm_str_any_is_one_of(names, one);
}

/* Who asks for what has a name by its text. */
static const char *const asking[] = {"getattr",    "attrgetter", "get", "pop",
                                     "setdefault", "itemgetter", NULL};

struct cm_touched
cm_touch_find(const struct cm_bytecode *tables, const PyCodeObject *code,
              const struct cm_touch *what)
{
    struct reading reading = {.tables = tables, .code = code, .what = what};
    if (!tables->known) {
        reading.result.reads = true;
    }
    else if (has_name(code->co_names, what->name)
             || has_name(code->co_consts, what->name)
             || mentions(code, &what->readers)
             || mentions(code, &what->setters)) {
        reading.asks = cm_str_any_is_one_of(code->co_names, asking);
        survey(&reading);
        reading.last = (struct owner){NO_ONE, 0, 0};
        reading.key = reading.text = reading.calls = false;
        follow(&reading);
        reading.result.always &= !reading.result.reads;
    }
    return reading.result;
}
