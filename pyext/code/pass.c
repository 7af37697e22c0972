/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "pass.h"

#include "../tables/phrase.h"
#include "opcodes.h"

struct cm_text_id
cm_pass_text(const struct cm_pass *pass, PyObject *string)
{
    struct cm_phrase phrase;
    phrase.length = 0;
    if (string == NULL || !PyUnicode_CheckExact(string)) {
        return (struct cm_text_id){0};
    }
    cm_phrase_add_str(&phrase, string, CM_PHRASE_BYTES);
    return cm_phrase_intern(&phrase, pass->texts);
}

void
cm_pass_add(struct cm_pass *pass, enum cm_store_kind kind, PyObject *name,
            PyObject *owner, PyObject *within)
{
    if (pass->count < pass->capacity) {
        pass->stores[pass->count++] = (struct cm_store){
            .kind = kind,
            .name = cm_pass_text(pass, name),
            .owner = cm_pass_text(pass, owner),
            .within = cm_pass_text(pass, within),
            .line = cm_line_table_at(&pass->lines, pass->unit),
            .unit = (uint32_t)pass->unit & CM_PASS_UNITS};
    }
}

void
cm_pass_add_call(struct cm_pass *pass, PyObject *name,
                 const struct pushed *bound)
{
    uint32_t before = pass->count;
    cm_pass_add(pass, CM_STORE_CALL, name, bound->name, bound->within);
    if (pass->count > before && bound->fresh) {
        pass->stores[before].key = cm_pass_text(pass, bound->by);
    }
    if (pass->count > before && bound->attribute && bound->name != NULL) {
        pass->stores[before].key = cm_pass_text(pass, bound->plain);
    }
}

/* By which key it was taken, or of what it is a size. */
static void
add_taken(const struct cm_pass *pass, const struct pushed *value,
          struct cm_store *store)
{
    store->sized = value->size != NULL;
    store->key =
        cm_pass_text(pass, value->size != NULL ? value->size : value->key);
}

void
cm_pass_add_key(struct cm_pass *pass, enum cm_store_kind kind, PyObject *name,
                const struct pushed *of, const struct pushed *key)
{
    uint32_t before = pass->count;
    cm_pass_add(pass, kind, name, of->name, of->within);
    if (pass->count > before && key->name == NULL && key->size != NULL) {
        add_taken(pass, key, &pass->stores[before]);
    }
    else if (pass->count > before && !key->attribute) {
        pass->stores[before].trimmed = key->modulo;
        pass->stores[before].key =
            cm_pass_text(pass, key->name != NULL ? key->name : key->from);
    }
}

/* df.loc[k] = y is done to the frame. */
static struct pushed
frame_of(const struct pushed *of)
{
    struct pushed frame = *of;
    bool view = cm_str_is(of->name, "loc") || cm_str_is(of->name, "at");
    if (of->attribute && of->object != NULL && view) {
        frame.name = of->object;
    }
    return frame;
}

static struct cm_text_id
added_to(const struct cm_pass *pass, PyObject *name,
         const struct pushed *value)
{
    const struct summand *added = cm_pushed_added(value, name);
    struct cm_text_id id = {0};
    if (added != NULL) {
        id = added->plain ? cm_pass_text(pass, added->name)
                          : cm_texts_intern(pass->texts, "(...)");
    }
    return id;
}

void
cm_pass_add_removal(struct cm_pass *pass, const struct pushed *from, bool part)
{
    uint32_t before = pass->count;
    cm_pass_add(pass, CM_STORE_REMOVE, NULL, cm_pushed_whole(from),
                from->within);
    if (pass->count > before) {
        pass->stores[before].trimmed = part;
    }
}

/* The last one that sets this variable. */
static const struct cm_store *
last_of(const struct cm_pass *pass, struct cm_text_id name)
{
    const struct cm_store *found = NULL;
    for (uint32_t i = pass->count; found == NULL && i > 0; i--) {
        const struct cm_store *store = &pass->stores[i - 1];
        bool sets =
            store->kind == CM_STORE_LOCAL && cm_text_same(store->name, name);
        found = sets ? store : NULL;
    }
    return found;
}

/* Nothing but a part of a variable that was last set to what is made there, or
 * one that was last set to a part of itself. */
static bool
is_passing(const struct cm_pass *pass, const struct pushed *value)
{
    const struct cm_store *last = last_of(pass, cm_pass_text(pass, value->of));
    bool itself = value->name == value->of;
    return last != NULL && value->whole == NULL
           && (itself || value->name == NULL)
           && (last->made || (itself && last->trimmed));
}

/* A variable of which a part was left last. */
static bool
is_left(const struct cm_pass *pass, const struct pushed *value)
{
    const struct cm_store *last =
        value->attribute || value->name == NULL
            ? NULL
            : last_of(pass, cm_pass_text(pass, value->name));
    return last != NULL && last->trimmed;
}

/* x = x[a:b], x = f(y)[a:b]; z = f(y) and then x = z[a:b]; z = z[a:b] and then
 * x = z. */
static bool
is_trimmed(const struct cm_pass *pass, PyObject *name,
           const struct pushed *value)
{
    return (value->part
            && (value->of == NULL || value->of == name
                || is_passing(pass, value)))
           || (value->chosen && value->within == name) || is_left(pass, value);
}

/* Not of a method of what a call has made, that is stored and not called. */
static void
note_maker(const struct cm_pass *pass, const struct pushed *value,
           struct cm_store *store)
{
    /* what is stored at a key, in any case */
    bool always = value->fresh || store->kind != CM_STORE_ITEM;
    if (pass->own && value->made && always) {
        store->by = cm_pass_text(pass, value->by);
        store->nested = value->by_other;
    }
}

void
cm_pass_add_item(struct cm_pass *pass, const struct pushed *of,
                 const struct pushed *key, const struct pushed *value)
{
    uint32_t before = pass->count;
    struct pushed frame = frame_of(of);
    bool trimmed = value->part ? is_trimmed(pass, of->name, value)
                                     || (key->constant != NULL
                                         && value->of == key->constant)
                               : is_left(pass, value);
    cm_pass_add_key(pass, CM_STORE_ITEM, key->constant, &frame, key);
    if (pass->count > before) {
        pass->stores[before].empty = value->empty && value->fresh;
        pass->stores[before].added = added_to(pass, key->constant, value);
        note_maker(pass, value, &pass->stores[before]);
        pass->stores[before].given = trimmed;
    }
}

void
cm_pass_add_value(struct cm_pass *pass, enum cm_store_kind kind,
                  PyObject *name, PyObject *owner, struct pushed value)
{
    uint32_t before = pass->count;
    bool trimmed = is_trimmed(pass, name, &value);
    cm_pass_add(pass, kind, name, owner, NULL);
    if (pass->count > before) {
        pass->stores[before].constant = value.constant != NULL && value.fresh;
        pass->stores[before].empty = value.empty && value.fresh;
        pass->stores[before].made = value.made;
        note_maker(pass, &value, &pass->stores[before]);
        pass->stores[before].turn = value.turn;
        pass->stores[before].within = cm_pass_text(pass, value.over);
        pass->stores[before].trimmed = trimmed;
        pass->stores[before].added = added_to(pass, name, &value);
        bool scaled =
            cm_pushed_scales(&value, name, kind == CM_STORE_ATTRIBUTE);
        pass->stores[before].scaled = scaled;
        if (kind == CM_STORE_ATTRIBUTE) {
            pass->stores[before].key =
                cm_pass_text(pass, scaled ? name : value.operand);
        }
        if (kind == CM_STORE_LOCAL) {
            cm_spans_set(&pass->spans, &pass->stores[before], name);
        }
    }
}

/* ---- second names */

static bool
is_number(const struct pushed *value)
{
    return value->length || value->before || value->modulo;
}

/* By its address: names are interned.  Where there is no room, in place of what
 * is no number; CM_PASS_NUMBERS: nowhere. */
static uint32_t
room_for(struct cm_pass *pass, const PyObject *name, bool told)
{
    uint32_t room = CM_PASS_NUMBERS;
    for (uint32_t i = 0; i < pass->number_count; i++) {
        if (pass->numbers[i].name == name) {
            return i;
        }
        room = is_number(&pass->numbers[i].value) ? room : i;
    }
    if (!told) {
        return CM_PASS_NUMBERS;
    }
    return pass->number_count < CM_PASS_NUMBERS ? pass->number_count++ : room;
}

/* A number, or a part that is cut off there: what a call makes of one is its
 * own. */
static void
remember(struct cm_pass *pass, PyObject *name, const struct pushed *value)
{
    bool part = value->part && !value->made;
    uint32_t i = room_for(pass, name, is_number(value) || part);
    if (i < CM_PASS_NUMBERS) {
        pass->numbers[i].name = name;
        pass->numbers[i].value = *value;
        pass->numbers[i].value.part = part;
    }
}

void
cm_pass_recall(struct cm_pass *pass)
{
    struct pushed *last = &pass->stack[0];
    for (uint32_t i = 0; i < pass->number_count; i++) {
        const struct pushed *value = &pass->numbers[i].value;
        if (last->name != NULL && pass->numbers[i].name == last->name) {
            last->length = value->length;
            last->excess = value->excess;
            last->before = value->before;
            last->modulo = value->modulo;
            last->part = value->part;
            last->of = value->length || value->part ? value->of : NULL;
        }
    }
}

void
cm_pass_note_built(struct cm_pass *pass, unsigned count)
{
    pass->built_count = count <= CM_PUSHED_DEPTH ? count : 0;
    memcpy(pass->built, pass->stack, pass->built_count * sizeof *pass->built);
}

void
cm_pass_unpack(struct cm_pass *pass, unsigned count)
{
    if (count == 0 || count != pass->built_count) {
        cm_pushed_unpack(pass->stack, count);
        return;
    }
    cm_pushed_pop(pass->stack, 1);
    for (unsigned i = 0; i < count; i++) {
        cm_pushed_push(pass->stack, pass->built[i]);
    }
}

void
cm_pass_jump(struct cm_pass *pass, Py_ssize_t to)
{
    pass->other = pass->stack[0];
    pass->joins = to;
}

void
cm_pass_join(struct cm_pass *pass)
{
    if (pass->unit == pass->joins && pass->other.part) {
        pass->stack[0].part = true;
        pass->stack[0].of = pass->other.of;
    }
}

static bool
has_name(const struct pushed *value)
{
    return value->name != NULL || value->within != NULL || value->from != NULL
           || value->size != NULL;
}

static PyObject *
name_in(const struct pushed *value)
{
    return value->name != NULL ? value->name : value->from;
}

void
cm_pass_add_variable(struct cm_pass *pass, enum cm_store_kind kind,
                     PyObject *name, struct pushed value)
{
    uint32_t before;
    cm_pass_add_value(pass, kind, name, NULL, value);
    remember(pass, name, &value);
    before = pass->count;
    if (pass->own && has_name(&value)) {
        cm_pass_add(pass, CM_STORE_ALIAS, name, name_in(&value), value.within);
    }
    if (pass->count > before) {
        pass->stores[before].constant = value.from != NULL;
        add_taken(pass, &value, &pass->stores[before]);
    }
}

/* `self.x = y`, `self.x = self.y`: that goes by x too. */
void
cm_pass_add_attribute(struct cm_pass *pass, PyObject *name, PyObject *owner,
                      struct pushed value)
{
    cm_pass_add_value(pass, CM_STORE_ATTRIBUTE, name, owner, value);
    bool plain = !value.attribute || value.object != NULL;
    if (pass->own && value.name != NULL && plain) {
        cm_pass_add(pass, CM_STORE_ALIAS, name, value.name, NULL);
    }
}

/* ---- what is handed on */

static void
add_numbered(struct cm_pass *pass, struct cm_store store)
{
    uint32_t before = pass->count;
    cm_pass_add(pass, store.kind, NULL, NULL, NULL);
    if (pass->count > before) {
        store.line = pass->stores[before].line;
        store.unit = pass->stores[before].unit;
        pass->stores[before] = store;
    }
}

static void
hand(struct cm_pass *pass, PyObject *function, unsigned which,
     const struct pushed *argument, bool method)
{
    struct cm_store store = {.kind = CM_STORE_HAND,
                             .name = cm_pass_text(pass, function),
                             .owner = cm_pass_text(pass, name_in(argument)),
                             .within = cm_pass_text(pass, argument->within),
                             .decides = which,
                             .constant = argument->from != NULL,
                             .made = method};
    add_taken(pass, argument, &store);
    add_numbered(pass, store);
}

void
cm_pass_add_arguments(struct cm_pass *pass, unsigned arguments)
{
    unsigned named = 0;
    PyObject *function = arguments + 1 < CM_PUSHED_DEPTH
                             ? cm_pushed_function(pass->stack, arguments)
                             : NULL;
    if (!pass->own || function == NULL) {
        return;
    }
    bool method = pass->stack[arguments].called != NULL;
    for (unsigned i = 0; i < arguments; i++) {
        const struct pushed *argument = &pass->stack[arguments - 1 - i];
        if (has_name(argument)) {
            named++;
            hand(pass, function, i, argument, method);
        }
    }
    if (named == 0 && !method) {
        hand(pass, function, 0, &(struct pushed){0}, method);
    }
}

void
cm_pass_add_parameters(struct cm_pass *pass)
{
    PyObject *names = pass->code->co_localsplusnames;
    int count = pass->code->co_argcount;
    for (int i = 0; pass->own && i < count && i < PyTuple_GET_SIZE(names);
         i++) {
        add_numbered(
            pass, (struct cm_store){
                      .kind = CM_STORE_PARAMETER,
                      .name = cm_pass_text(pass, PyTuple_GET_ITEM(names, i)),
                      .decides = (uint32_t)i});
    }
}

/* ---- what is returned */

/* So many instructions read it, at most 2, between this one and that of the
 * pass. */
static unsigned
reads_since(const struct cm_pass *pass, Py_ssize_t unit, const PyObject *name)
{
    struct cm_instruction one = {.next = unit};
    unsigned reads = 0;
    while (reads < 2 && cm_instruction_next(pass->tables, pass->code, &one)
           && one.unit < pass->unit) {
        struct cm_variables variables =
            cm_instruction_variables(pass->code, &one);
        reads += variables.read[0] == name;
        reads += variables.read[1] == name;
    }
    return reads;
}

/* Another branch may have come by. */
static bool
is_always_empty(const struct cm_pass *pass, struct cm_text_id name)
{
    bool empty = true;
    for (uint32_t i = 0; empty && i < pass->count; i++) {
        const struct cm_store *store = &pass->stores[i];
        empty = store->kind != CM_STORE_LOCAL || store->empty
                || !cm_text_same(store->name, name);
    }
    return empty;
}

/* `x = []`, some statements that read no x, `return x`. */
static bool
is_left_empty(const struct cm_pass *pass, const struct pushed *value)
{
    bool variable = value->name != NULL && !value->attribute;
    struct cm_text_id name = cm_pass_text(pass, variable ? value->name : NULL);
    const struct cm_store *store = variable ? last_of(pass, name) : NULL;
    return store != NULL && is_always_empty(pass, name)
           && reads_since(pass, (Py_ssize_t)store->unit, value->name) == 1;
}

/* `if ...: x = x[a:b]`, and `return x` or `return x.clone()`: x. */
static PyObject *
part_left(const struct cm_pass *pass, const struct pushed *value)
{
    bool moved = value->made && value->by != NULL && cm_pushed_moves(value->by)
                 && value->whole != NULL;
    const struct pushed variable = {.name = moved ? value->whole : value->name,
                                    .attribute = value->attribute};
    return is_left(pass, &variable) ? variable.name : NULL;
}

static bool
was_made(const struct cm_pass *pass, PyObject *name)
{
    struct cm_text_id id = cm_pass_text(pass, name);
    bool made = false;
    for (uint32_t i = 0; !made && i < pass->count; i++) {
        made = pass->stores[i].kind == CM_STORE_LOCAL && pass->stores[i].made
               && cm_text_same(pass->stores[i].name, id);
    }
    return made;
}

void
cm_pass_add_return(struct cm_pass *pass, bool returns)
{
    const struct pushed value = pass->stack[0];
    uint32_t before = pass->count;
    bool empty =
        pass->own && returns && !value.part
        && ((value.empty && value.fresh) || is_left_empty(pass, &value));
    PyObject *left = empty || !returns ? NULL : part_left(pass, &value);
    bool part = value.part || left != NULL;
    /* z of `z = f(x)`, `return z[a:b]` is f's, and no one's name */
    bool named = value.part
                     ? !is_passing(pass, &value) || !was_made(pass, value.of)
                     : left != NULL && !was_made(pass, left);
    if (pass->own && (part || empty)) {
        cm_pass_add(pass, CM_STORE_RETURN, NULL,
                    !named       ? NULL
                    : value.part ? value.of
                                 : left,
                    NULL);
    }
    if (pass->count > before) {
        pass->stores[before].empty = empty;
        pass->stores[before].trimmed = part;
    }
}

void
cm_pass_end_returns(struct cm_pass *pass, bool complete)
{
    uint32_t count = 0, all = pass->spans.return_count;
    for (uint32_t i = 0; i < pass->count; i++) {
        count +=
            pass->stores[i].kind == CM_STORE_RETURN && pass->stores[i].empty;
    }
    bool known = complete && count == all && all < CM_SPANS_RETURNS;
    for (uint32_t i = 0; !known && i < pass->count; i++) {
        pass->stores[i].empty &= pass->stores[i].kind != CM_STORE_RETURN;
    }
}
