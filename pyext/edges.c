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

#include "../detector/alloc.h"
#include "phrase.h"

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

static void
visit_phrase(struct cm_walk *walk, const void *referent,
             const struct cm_phrase *label, enum cm_role role)
{
    cm_walk_visit(walk, referent,
                  cm_phrase_intern(label, walk->objects->texts), role);
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
        visit_phrase(walk, referent, &label, role);
    }
}

void
cm_walk_name_str(struct cm_walk *walk, const void *referent,
                 const char *before, PyObject *name, const char *after,
                 enum cm_role role)
{
    if (cm_walk_take(walk, referent)) {
        struct cm_phrase label;
        label.length = 0;
        cm_phrase_add(&label, before);
        cm_phrase_add_str(&label, name, CM_PHRASE_BYTES / 8);
        cm_phrase_add(&label, after);
        visit_phrase(walk, referent, &label, role);
    }
}

/* Keys and indices may be new ones for ever (a cache by step number), and
 * texts are never given back: each kind has its share, and afterwards all
 * keys of that kind are "[*]".  A text that is new has the highest number. */
static void
visit_key(struct cm_walk *walk, const void *referent,
          const struct cm_phrase *label, enum cm_role role,
          struct cm_label_share *share)
{
    struct cm_texts *texts = walk->objects->texts;
    struct cm_text_id id;
    if (share->made < share->most) {
        id = cm_phrase_intern(label, texts);
        if (id.index > share->newest) {
            share->newest = id.index;
            share->made++;
        }
    }
    else {
        id = cm_texts_intern(texts, "[*]");
    }
    cm_walk_visit(walk, referent, id, role);
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
        visit_key(walk, referent, &label, CM_ITEM, &walk->objects->other_keys);
    }
}

void
cm_walk_name_key(struct cm_walk *walk, const void *referent, PyObject *key)
{
    if (cm_walk_take(walk, referent)) {
        struct cm_phrase label;
        label.length = 0;
        cm_phrase_add(&label, "[");
        if (!cm_phrase_add_value(&label, key)) {
            cm_phrase_add(&label, "<");
            cm_phrase_add_type(&label, Py_TYPE(key));
            cm_phrase_add(&label, ">");
        }
        cm_phrase_add(&label, "]");
        visit_key(walk, referent, &label, CM_VALUE,
                  PyUnicode_CheckExact(key) && cm_str_is_identifier(key)
                      ? &walk->objects->names
                      : &walk->objects->other_keys);
    }
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
    return type->tp_name != NULL
           && strcmp(type->tp_name, "collections.deque") == 0;
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
