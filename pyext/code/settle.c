/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A loop carries a variable where the first instruction in it that touches the
 * variable reads it.  Behind the outermost loop that does, up to the end of the
 * one around it, statements are read in their order: what is set by one that
 * reads the sum is made of it, and what is set by another one is not any more.
 * Where the sum is taken in the loop too, or what is added to it is, or any graph
 * is retained, it may never end. */

#include "settle.h"

#include "opcodes.h"

enum {
    MOST_MADE = 4,        /* variables that are made of the sum */
    MOST_READ = 32,       /* in a statement, or of one kind */
    MOST_SUMS = 32,       /* of one code; a counter is one too */
    MOST_LOOKS = 1 << 20, /* at instructions */
    MOST_LOOKS_AT_CALLS = 1 << 16,
};

/* Of a sum. */
enum fate { KEPT, GIVEN, TAKEN };

struct search {
    const struct cm_pass *pass;
    uint32_t looks, most_looks;
    struct cm_text_id names[MOST_SUMS];
    Py_ssize_t units[MOST_SUMS]; /* where they are set */
    enum fate fates[MOST_SUMS];
    unsigned count;
};

struct reading {
    const PyCodeObject *code;
    PyObject *made[MOST_MADE]; /* of the sum, which is one of them */
    unsigned made_count;
    bool reads, calls, ends; /* the statement: one of these, backward() */
    bool inside;             /* the loop: what is cut off there may not be */
    bool cuts;               /* it leaves the graph behind */
    bool autograd;           /* its name was the last one to be loaded */
    enum fate fate;
};

static bool
next(struct search *self, struct cm_instruction *one)
{
    return self->looks++ < self->most_looks
           && cm_instruction_next(self->pass->tables, self->pass->code, one);
}

/* ---- what takes the sum */

static const char *const takers[] = {"backward", "manual_backward", "grad",
                                     NULL};

/* x.NAME, as it is called or not; a variable of the module. */
static PyObject *
loaded_by(const PyCodeObject *code, const struct cm_instruction *one)
{
    bool loads =
        one->action >= ACT_LOAD_NAME && one->action <= ACT_LOAD_METHOD;
    return loads ? cm_instruction_name(code, one) : NULL;
}

/* x.backward(), grad(x), autograd.grad(x), which a module that has imported it
 * loads as no method; not p.grad. */
static bool
calls_taker(const struct reading *self, const struct cm_instruction *one)
{
    PyObject *name = loaded_by(self->code, one);
    bool called =
        cm_instruction_is_method(one)
        || (one->action == ACT_LOAD_GLOBAL && (one->argument & 1) != 0);
    return name != NULL && (called || self->autograd)
           && cm_str_is_one_of(name, takers);
}

/* x.item(), float(x); not a variable that is called `data`. */
static bool
cuts_off(enum action action, PyObject *name)
{
    static const char *const attributes[] = {"item",   "detach", "data",
                                             "tolist", "numpy",  NULL};
    static const char *const functions[] = {"float", "int", "bool", "round",
                                            NULL};
    bool function = action == ACT_LOAD_NAME || action == ACT_LOAD_GLOBAL;
    return name != NULL
           && cm_str_is_one_of(name, function ? functions : attributes);
}

static unsigned
index_of(const struct reading *self, const PyObject *name)
{
    unsigned i = 0;
    while (i < self->made_count && self->made[i] != name) {
        i++;
    }
    return i;
}

static void
set(struct reading *self, PyObject *name)
{
    unsigned i = name != NULL ? index_of(self, name) : MOST_MADE;
    bool makes = self->reads && !self->cuts;
    if (makes && i == self->made_count && i < MOST_MADE) {
        self->made[self->made_count++] = name;
    }
    else if (!makes && i < self->made_count) {
        self->made[i] = self->made[--self->made_count];
    }
}

/* One statement may set several variables, and then deletes none. */
static void
begin(struct reading *self, bool goes_on)
{
    if (self->ends && !goes_on) {
        self->reads = self->calls = self->cuts = self->ends = false;
    }
}

static bool
is_store(enum action action)
{
    return action >= ACT_STORE_LOCAL && action <= ACT_STORE_ITEM;
}

static bool
ends_statement(enum action action)
{
    return action == ACT_DROP || is_store(action) || action == ACT_STORE_SLICE
           || action == ACT_DELETE_ITEM
           || (action >= ACT_DELETE_LOCAL && action <= ACT_DELETE_ATTR)
           || action >= ACT_TURN;
}

static void
note_fate(struct reading *self, enum action action)
{
    if (self->reads && !self->cuts) {
        self->fate = self->calls            ? TAKEN
                     : action == ACT_RETURN ? GIVEN
                                            : self->fate;
    }
}

static void
read_one(struct reading *self, const struct cm_instruction *one)
{
    struct cm_variables variables = cm_instruction_variables(self->code, one);
    PyObject *name = loaded_by(self->code, one);
    begin(self, is_store(one->action));
    set(self, variables.set[0]);
    set(self, variables.set[1]);
    self->ends |= ends_statement(one->action);
    begin(self, one->action != ACT_STORE_AND_LOAD);
    for (unsigned i = 0; i < 2; i++) {
        PyObject *read = variables.read[i];
        self->reads |= read != NULL && index_of(self, read) < self->made_count;
    }
    self->calls |= calls_taker(self, one);
    self->cuts |= !self->inside && cuts_off(one->action, name);
    note_fate(self, one->action);
    self->autograd = name != NULL && cm_str_is(name, "autograd");
}

/* Whether between these a backward() is called of the sum, or of what is made of
 * it. */
static enum fate
fate_between(struct search *search, PyObject *sum, Py_ssize_t from,
             Py_ssize_t to, bool inside)
{
    struct reading self = {.code = search->pass->code,
                           .made = {sum},
                           .made_count = 1,
                           .inside = inside};
    struct cm_instruction one = {.next = from};
    while (self.fate != TAKEN && self.made_count > 0 && next(search, &one)
           && one.unit < to) {
        read_one(&self, &one);
    }
    return self.fate;
}

/* ---- what is summed up to be shown */

struct names {
    PyObject *items[MOST_READ];
    unsigned count;
};

static bool
has(const struct names *self, const PyObject *name)
{
    unsigned i = 0;
    while (i < self->count && self->items[i] != name) {
        i++;
    }
    return i < self->count;
}

static void
add(struct names *self, PyObject *name)
{
    if (name != NULL && self->count < MOST_READ && !has(self, name)) {
        self->items[self->count++] = name;
    }
}

static void
add_all(struct names *self, const struct names *from)
{
    for (unsigned i = 0; i < from->count; i++) {
        add(self, from->items[i]);
    }
}

static bool
meet(const struct names *self, const struct names *other, const PyObject *but)
{
    bool found = false;
    for (unsigned i = 0; i < self->count; i++) {
        found |= self->items[i] != but && has(other, self->items[i]);
    }
    return found;
}

static bool
is_backward(const PyCodeObject *code, const struct cm_instruction *one)
{
    PyObject *name = loaded_by(code, one);
    return name != NULL && cm_instruction_is_method(one)
           && cm_str_is(name, "backward");
}

/* loss.backward() and total += loss: a second backward() of the same would be
 * refused, so this sum is not meant to have one. */
static bool
is_shown(struct search *search, PyObject *sum, Py_ssize_t from, Py_ssize_t to)
{
    const PyCodeObject *code = search->pass->code;
    struct names read = {.count = 0}, taken = {.count = 0},
                 added = {.count = 0};
    struct cm_instruction one = {.next = from};
    while (next(search, &one) && one.unit < to) {
        struct cm_variables variables = cm_instruction_variables(code, &one);
        if (variables.set[0] == sum || variables.set[1] == sum) {
            add_all(&added, &read);
        }
        if (ends_statement(one.action)) {
            read.count = 0;
        }
        add(&read, variables.read[0]);
        add(&read, variables.read[1]);
        if (is_backward(code, &one)) {
            add_all(&taken, &read);
        }
    }
    return meet(&added, &taken, sum);
}

/* ---- loops */

static bool
is_carried(struct search *self, PyObject *name, uint32_t loop)
{
    const struct cm_spans *spans = &self->pass->spans;
    struct cm_instruction one = {.next = spans->loops[loop].first};
    while (next(self, &one) && one.unit < spans->loops[loop].end) {
        struct cm_variables variables =
            cm_instruction_variables(self->pass->code, &one);
        if (variables.set[0] == name || variables.set[1] == name) {
            return false;
        }
        if (variables.read[0] == name || variables.read[1] == name) {
            return true;
        }
    }
    return false;
}

static bool
is_within(const struct cm_spans *spans, uint32_t loop, Py_ssize_t unit)
{
    return unit >= spans->loops[loop].first && unit < spans->loops[loop].end;
}

/* The outermost one that carries what is set here; the number of loops: none
 * does. */
static uint32_t
loop_of(struct search *self, PyObject *name, Py_ssize_t unit)
{
    const struct cm_spans *spans = &self->pass->spans;
    uint32_t found = spans->loop_count;
    for (uint32_t i = 0; i < spans->loop_count; i++) {
        bool outer = found == spans->loop_count
                     || spans->loops[i].first < spans->loops[found].first;
        if (is_within(spans, i, unit) && outer && is_carried(self, name, i)) {
            found = i;
        }
    }
    return found;
}

/* Where the loop around this one ends, or the code. */
static Py_ssize_t
end_around(const struct cm_pass *pass, uint32_t loop)
{
    const struct cm_spans *spans = &pass->spans;
    Py_ssize_t end = Py_SIZE(pass->code);
    for (uint32_t i = 0; i < spans->loop_count; i++) {
        if (i != loop && is_within(spans, i, spans->loops[loop].first)
            && spans->loops[i].end >= spans->loops[loop].end
            && spans->loops[i].end < end) {
            end = spans->loops[i].end;
        }
    }
    return end;
}

static enum fate
fate_behind(struct search *self, PyObject *name, uint32_t loop)
{
    const struct cm_spans *spans = &self->pass->spans;
    Py_ssize_t end = spans->loops[loop].end;
    Py_ssize_t first = spans->loops[loop].first;
    enum fate fate =
        fate_between(self, name, end, end_around(self->pass, loop), false);
    bool ends = fate != KEPT
                && fate_between(self, name, first, end, true) != TAKEN
                && !is_shown(self, name, first, end);
    return ends ? fate : KEPT;
}

/* ---- what a call returns */

/* Where the turn ends that this stands in, or the code. */
static Py_ssize_t
end_of_turn(const struct cm_pass *pass, Py_ssize_t unit)
{
    const struct cm_spans *spans = &pass->spans;
    Py_ssize_t end = Py_SIZE(pass->code);
    for (uint32_t i = 0; i < spans->loop_count; i++) {
        if (is_within(spans, i, unit) && spans->loops[i].end < end) {
            end = spans->loops[i].end;
        }
    }
    return end;
}

/* Of f in x.f(...), the first call behind that, which may be an argument's;
 * else the instruction is the call.  False: another statement begins. */
static bool
find_call(struct search *self, const struct cm_store *store,
          struct cm_instruction *one)
{
    bool method = store->kind == CM_STORE_CALL, found = true;
    while (found && method) {
        found = next(self, one) && !ends_statement(one->action);
        method =
            one->action != ACT_TAKE_CALL && one->action != ACT_TAKE_CALL_KEYS;
    }
    return found;
}

/* `self`: what is known of its statement so far. */
static bool
is_taken(struct search *search, const struct cm_store *store,
         struct reading self, struct cm_instruction one)
{
    Py_ssize_t end = end_of_turn(search->pass, one.unit);
    bool found = find_call(search, store, &one);
    self.reads = true;
    while (found && self.fate != TAKEN && (self.reads || self.made_count > 0)
           && next(search, &one) && one.unit < end) {
        read_one(&self, &one);
    }
    return self.fate == TAKEN;
}

/* Stores are in the order of the instructions. */
static void
mark_calls(struct cm_pass *pass)
{
    struct search search = {.pass = pass, .most_looks = MOST_LOOKS_AT_CALLS};
    struct reading reading = {.code = pass->code};
    struct cm_instruction one = {0};
    bool more = next(&search, &one);
    for (uint32_t i = 0; more && i < pass->count; i++) {
        struct cm_store *store = &pass->stores[i];
        bool call =
            store->kind == CM_STORE_CALL || store->kind == CM_STORE_HAND;
        for (; call && more && one.unit < (Py_ssize_t)store->unit;
             more = next(&search, &one)) {
            read_one(&reading, &one);
        }
        if (call && more) {
            store->settled = is_taken(&search, store, reading, one);
        }
    }
}

/* ---- sums */

static void
add_sum(struct search *self, PyObject *name, Py_ssize_t unit)
{
    uint32_t none = self->pass->spans.loop_count;
    uint32_t loop = self->count < MOST_SUMS && name != NULL
                        ? loop_of(self, name, unit)
                        : none;
    if (loop < none) {
        self->names[self->count] = cm_pass_text(self->pass, name);
        self->units[self->count] = unit;
        self->fates[self->count++] = fate_behind(self, name, loop);
    }
}

/* Where the store is one of the sums: of all that go by its name. */
static enum fate
fate_of(const struct search *self, const struct cm_store *store)
{
    bool any = false;
    enum fate least = TAKEN;
    for (unsigned i = 0; i < self->count; i++) {
        bool same = cm_text_same(self->names[i], store->name);
        any |= same && self->units[i] == (Py_ssize_t)store->unit;
        least = same && self->fates[i] < least ? self->fates[i] : least;
    }
    return any ? least : KEPT;
}

/* False: not all of them, as far as is known. */
static bool
find_sums(struct search *self)
{
    struct cm_instruction one = {0};
    while (self->count < MOST_SUMS && next(self, &one)) {
        struct cm_variables variables =
            cm_instruction_variables(self->pass->code, &one);
        add_sum(self, variables.set[0], one.unit);
        add_sum(self, variables.set[1], one.unit);
    }
    return self->count < MOST_SUMS && self->looks < MOST_LOOKS;
}

static void
mark_sums(struct cm_pass *pass)
{
    struct search search = {.pass = pass, .most_looks = MOST_LOOKS};
    if (!find_sums(&search)) {
        return;
    }
    for (uint32_t i = 0; search.count != 0 && i < pass->count; i++) {
        struct cm_store *store = &pass->stores[i];
        bool local = store->kind == CM_STORE_LOCAL;
        bool variable = local || store->kind == CM_STORE_CELL
                        || store->kind == CM_STORE_GLOBAL;
        enum fate fate = variable ? fate_of(&search, store) : KEPT;
        store->settled |= fate == TAKEN;
        store->given |= fate == GIVEN && local;
    }
}

/* ---- all of it */

/* Then a graph that has been taken may be kept all the same. */
static bool
retains_graphs(const PyCodeObject *code)
{
    static const char *const keeps[] = {"retain_graph", NULL};
    PyObject *constants = code->co_consts;
    bool found = false;
    for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(constants); i++) {
        PyObject *names = PyTuple_GET_ITEM(constants, i);
        found =
            PyTuple_CheckExact(names) && cm_str_any_is_one_of(names, keeps);
    }
    return found;
}

void
cm_settle_mark(struct cm_pass *pass)
{
    uint32_t loops = pass->spans.loop_count;
    bool takes = cm_str_any_is_one_of(pass->code->co_names, takers);
    bool returns = loops != 0 && pass->spans.return_count != 0;
    if (!pass->own || !(takes || returns) || loops == CM_SPANS_LOOPS
        || Py_SIZE(pass->code) > CM_PASS_UNITS || retains_graphs(pass->code)) {
        return;
    }
    if (takes) {
        mark_calls(pass);
    }
    if (loops != 0) {
        mark_sums(pass);
    }
}
