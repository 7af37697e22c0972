/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The truth about an object's references is what its tp_traverse shows; names
 * come from readers that know where a type keeps them.  Each showing is taken
 * out by the first name that fits it, and what is left goes out unnamed: so
 * no reference is invented, and none lost.  A reader may look at a slot that
 * holds no reference any more, for it compares pointers and follows none.
 * Cost: O(references), a hash table from 8 wanted ones on. */

#include "objects_private.h"

#include <string.h>

#include "../../detector/alloc.h"
#include "../tables/fields.h"
#include "../tables/phrase.h"

enum { SEARCHED_WANTED = 8 };

struct cm_place {
    const void *object; /* NULL: free */
    size_t left;
};

static struct cm_place *
place_of(const struct cm_walk *walk, const void *referent)
{
    struct cm_place *places = walk->objects->places;
    uint64_t bits = (uint64_t)(uintptr_t)referent >> 4;
    size_t at = (size_t)((bits * UINT64_C(0x9E3779B97F4A7C15)) >> 32)
                & (walk->places - 1);
    while (places[at].object != NULL && places[at].object != referent) {
        at = (at + 1) & (walk->places - 1);
    }
    return &places[at];
}

bool
cm_walk_take(struct cm_walk *walk, const void *referent)
{
    bool taken = false;
    if (walk->left == 0 || referent == NULL) {
        return false;
    }
    if (walk->places != 0) {
        struct cm_place *place = place_of(walk, referent);
        taken = place->object != NULL && place->left != 0;
        place->left -= taken;
    }
    else {
        PyObject **found = walk->objects->found;
        for (size_t i = 0; i < walk->count && !taken; i++) {
            if (found[i] == referent) {
                found[i] = NULL;
                taken = true;
            }
        }
    }
    walk->left -= taken;
    return taken;
}

void
cm_walk_visit(struct cm_walk *walk, const void *referent,
              struct cm_text_id label, enum cm_role role)
{
    walk->visit(walk->context, (PyObject *)referent, label, role);
}

void
cm_walk_name(struct cm_walk *walk, const void *referent, const char *label,
             enum cm_role role)
{
    if (cm_walk_take(walk, referent)) {
        cm_walk_visit(walk, referent,
                      cm_texts_intern(walk->objects->texts, label), role);
    }
}

void
cm_walk_name_text(struct cm_walk *walk, const void *referent,
                  const char *before, const char *name, enum cm_role role)
{
    if (cm_walk_take(walk, referent)) {
        struct cm_phrase label;
        label.length = 0;
        cm_phrase_add(&label, before);
        cm_phrase_add(&label, name);
        cm_walk_visit(walk, referent,
                      cm_phrase_intern(&label, walk->objects->texts), role);
    }
}

static struct cm_text_id
label_of_str(const struct cm_objects *self, const char *before, PyObject *name)
{
    struct cm_phrase label;
    label.length = 0;
    cm_phrase_add(&label, before);
    cm_phrase_add_str(&label, name, CM_PHRASE_BYTES / 8);
    return cm_phrase_intern(&label, self->texts);
}

void
cm_walk_name_str(struct cm_walk *walk, const void *referent,
                 const char *before, PyObject *name, enum cm_role role)
{
    if (cm_walk_take(walk, referent)) {
        cm_walk_visit(walk, referent,
                      label_of_str(walk->objects, before, name), role);
    }
}

/* Names come again and again.  The label of one is kept by its address, with
 * the hash that Python has of it as the check; 0: it has none. */
static uint64_t
check_of(PyObject *name)
{
    Py_hash_t hash = name != NULL && PyUnicode_CheckExact(name)
                         ? ((PyASCIIObject *)name)->hash
                         : -1;
    return hash == -1 ? 0
                      : (uint64_t)hash
                            + (uint64_t)((PyASCIIObject *)name)->length
                                  * UINT64_C(0x9E3779B97F4A7C15);
}

/* Id 0: not kept. */
static struct cm_text_id
kept_label(const struct cm_addresses *labels, PyObject *name, uint64_t check)
{
    const struct cm_address *known =
        check != 0 ? cm_addresses_find(labels, name) : NULL;
    bool same = known != NULL && known->check == check;
    return (struct cm_text_id){same ? known->value : 0};
}

static void
keep_label(struct cm_addresses *labels, PyObject *name, uint64_t check,
           struct cm_text_id label)
{
    if (check != 0 && label.index != 0) {
        cm_addresses_put(labels, name, check, label.index);
    }
}

void
cm_walk_name_attribute(struct cm_walk *walk, const void *referent,
                       PyObject *name)
{
    struct cm_addresses *labels = &walk->objects->attributes;
    if (!cm_walk_take(walk, referent)) {
        return;
    }
    uint64_t check = check_of(name);
    struct cm_text_id id = kept_label(labels, name, check);
    if (id.index == 0) {
        id = label_of_str(walk->objects, ".", name);
        keep_label(labels, name, check, id);
    }
    cm_walk_visit(walk, referent, id, CM_ATTRIBUTE);
}

/* Keys and indices may be new ones for ever (a cache by step number), and
 * texts are never given back: each kind has its share, and afterwards all
 * keys of that kind are "[*]".  A text that is new has the highest number. */
static struct cm_text_id
intern_key(struct cm_texts *texts, const struct cm_phrase *label,
           struct cm_label_share *share)
{
    if (share->made >= share->most) {
        return cm_texts_intern(texts, "[*]");
    }
    struct cm_text_id id = cm_phrase_intern(label, texts);
    if (id.index > share->newest) {
        share->newest = id.index;
        share->made++;
    }
    return id;
}

void
cm_walk_name_index(struct cm_walk *walk, const void *referent,
                   Py_ssize_t index)
{
    if (cm_walk_take(walk, referent)) {
        struct cm_phrase label;
        label.length = 0;
        cm_phrase_add(&label, "[");
        cm_phrase_add_number(&label, index);
        cm_phrase_add(&label, "]");
        cm_walk_visit(walk, referent,
                      intern_key(walk->objects->texts, &label,
                                 &walk->objects->other_keys),
                      CM_ITEM);
    }
}

/* Once a share is used up, the labels that are kept go: equal keys have equal
 * labels. */
static struct cm_text_id
label_of_key(struct cm_objects *self, PyObject *key, uint64_t check)
{
    struct cm_phrase label;
    label.length = 0;
    cm_phrase_add(&label, "[");
    if (!cm_phrase_add_value(&label, key, self->texts_shown)) {
        cm_phrase_add(&label, "<");
        cm_phrase_add_type(&label, Py_TYPE(key));
        cm_phrase_add(&label, ">");
    }
    cm_phrase_add(&label, "]");
    struct cm_label_share *share =
        PyUnicode_CheckExact(key) && cm_str_is_identifier(key)
            ? &self->names
            : &self->other_keys;
    bool had_room = share->made < share->most;
    struct cm_text_id id = intern_key(self->texts, &label, share);
    if (share->made < share->most) {
        keep_label(&self->keys, key, check, id);
    }
    else if (had_room) {
        cm_addresses_clear(&self->keys);
    }
    return id;
}

void
cm_walk_name_key(struct cm_walk *walk, const void *referent, PyObject *key)
{
    if (!cm_walk_take(walk, referent)) {
        return;
    }
    uint64_t check = check_of(key);
    struct cm_text_id id = kept_label(&walk->objects->keys, key, check);
    if (id.index == 0) {
        id = label_of_key(walk->objects, key, check);
    }
    cm_walk_visit(walk, referent, id, CM_VALUE);
}

static void
visit_unnamed(struct cm_walk *walk, const void *referent)
{
    walk->objects->unnamed_edges++;
    cm_walk_visit(walk, referent, (struct cm_text_id){0}, CM_REFERENCE);
}

/* visitproc; what there is no memory for goes out unnamed at once. */
static int
collect(PyObject *referent, void *context)
{
    struct cm_walk *walk = context;
    struct cm_objects *objects = walk->objects;
    if (!walk->wanted(walk->context, referent)) {
        return 0;
    }
    if (cm_grow((void **)&objects->found, &objects->found_capacity,
                walk->count + 1, sizeof(*objects->found))
        != CM_OK) {
        visit_unnamed(walk, referent);
        return 0;
    }
    objects->found[walk->count++] = referent;
    return 0;
}

/* Without memory for it the array is searched, as for a few. */
static void
hash_found(struct cm_walk *walk)
{
    struct cm_objects *objects = walk->objects;
    size_t size = 2 * SEARCHED_WANTED;
    while (size < 2 * walk->count) {
        size *= 2;
    }
    if (cm_grow((void **)&objects->places, &objects->places_capacity, size,
                sizeof(*objects->places))
        != CM_OK) {
        return;
    }
    memset(objects->places, 0, size * sizeof(*objects->places));
    walk->places = size;
    for (size_t i = 0; i < walk->count; i++) {
        struct cm_place *place = place_of(walk, objects->found[i]);
        place->object = objects->found[i];
        place->left++;
    }
}

/* deque's blocks are not read: its items at least are told to be items. */
static bool
holds_items_only(const PyTypeObject *type)
{
    return cm_type_is(type, "collections.deque");
}

static void
visit_rest(struct cm_walk *walk, PyObject *object)
{
    bool items = holds_items_only(Py_TYPE(object));
    for (size_t i = 0; i < walk->count && walk->left != 0; i++) {
        PyObject *referent = walk->objects->found[i];
        if (!cm_walk_take(walk, referent)) {
            continue;
        }
        if (items) {
            cm_walk_visit(walk, referent,
                          cm_texts_intern(walk->objects->texts, "[*]"),
                          CM_ITEM);
        }
        else {
            visit_unnamed(walk, referent);
        }
    }
}

void
cm_objects_edges(struct cm_objects *self, PyObject *object,
                 int (*wanted)(void *context, PyObject *referent),
                 cm_edge_visitor *visit, void *context)
{
    struct cm_walk walk = {
        .objects = self, .wanted = wanted, .visit = visit, .context = context};
    traverseproc traverse = Py_TYPE(object)->tp_traverse;
    if (traverse == NULL || !PyObject_IS_GC(object)) {
        return;
    }
    traverse(object, collect, &walk);
    if (walk.count == 0) {
        return;
    }
    walk.left = walk.count;
    if (walk.count > SEARCHED_WANTED) {
        hash_found(&walk);
    }
    cm_read_builtin(&walk, object);
    cm_read_attributes(&walk, object);
    cm_walk_name(&walk, Py_TYPE(object), "__class__", CM_CLASS);
    visit_rest(&walk, object);
}
