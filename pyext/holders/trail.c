/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* The objects of the way are taken from the walk's parents, each reference is
 * named by the readers of edges.c, and then steps are folded together from the
 * root on.  O(references of the objects on the way). */

#include "trail.h"

#include <stdio.h>

#include "../../detector/alloc.h"
#include "../objects/objects_private.h"
#include "../objects/numpy_array.h"
#include "../tables/fields.h"
#include "../tables/phrase.h"
#include "../objects/unnamed.h"

enum { MOST_OBJECTS = 2 * CM_TRAIL_END + 1 };

void
cm_trail_release(struct cm_trail *self)
{
    cm_free(self->steps);
    *self = (struct cm_trail){0};
}

bool
cm_item_count(PyObject *object, uint64_t *items)
{
    Py_ssize_t count = -1;
    if (PyDict_Check(object)) {
        count = PyDict_GET_SIZE(object);
    }
    else if (PyAnySet_Check(object)) {
        count = PySet_GET_SIZE(object);
    }
    else if (PyList_Check(object) || PyTuple_Check(object)
             || cm_type_is(Py_TYPE(object), "collections.deque")) {
        count = Py_SIZE(object);
    }
    else if (cm_numpy_is(object) && cm_numpy_has_places(object)) {
        count = (Py_ssize_t)cm_numpy_places(object);
    }
    *items = count < 0 ? 0 : (uint64_t)count;
    return count >= 0;
}

/* Of a deque; 0: as many as come. */
static uint64_t
room_of(PyObject *object)
{
    int overflow = 0;
    PyObject *most = cm_type_is(Py_TYPE(object), "collections.deque")
                         ? cm_field_named(object, "maxlen")
                         : NULL;
    long room = most != NULL && PyLong_CheckExact(most)
                    ? PyLong_AsLongAndOverflow(most, &overflow)
                    : 0;
    Py_XDECREF(most);
    return room > 0 ? (uint64_t)room : 0;
}

bool
cm_trail_is_full(PyObject *object)
{
    uint64_t room = room_of(object);
    return room != 0 && (uint64_t)Py_SIZE(object) == room;
}

/* A deque with a maxlen, an array of objects. */
static void
find_bound(struct cm_step *step)
{
    step->bounded = cm_numpy_is(step->object)
                        ? cm_numpy_has_places(step->object)
                        : room_of(step->object) != 0;
    step->full = step->bounded && cm_trail_is_full(step->object);
}

static bool
is_finite(PyObject *most)
{
    int overflow = 0;
    return most != NULL
           && (PyLong_CheckExact(most)
                   ? PyLong_AsLongAndOverflow(most, &overflow) > 0
                   : PyFloat_CheckExact(most)
                         && PyFloat_AS_DOUBLE(most) < (double)PY_SSIZE_T_MAX);
}

/* queue.Queue(maxsize=n), and asyncio's; a cache of cachetools, which a
 * person's class may inherit from. */
static bool
is_sized(const struct cm_objects *objects, const struct cm_step *step)
{
    const struct cm_type *type = cm_records_type(objects->records, step->type);
    const char *module = cm_texts_get(objects->texts, type->module);
    const char *name = strcmp(module, "queue") == 0 ? "maxsize"
                       : strcmp(module, "asyncio.queues") == 0
                           ? "_maxsize"
                           : "_Cache__maxsize";
    return is_finite(cm_attribute(objects, step->object, name));
}

/* ---- the objects of the way */

/* Nodes from the target's side; the last one is held by the root. */
struct way {
    uint32_t nodes[MOST_OBJECTS]; /* 0: some were left out here */
    size_t count;
    size_t left_out;
    uint32_t root;
};

static void
climb(const struct cm_reach *reach, uint32_t parent, struct way *way)
{
    size_t length = 0, at = 0;
    uint32_t node = parent;
    for (; node < CM_FROM_ROOT; node = reach->parents[node]) {
        length++;
    }
    way->root = node & ~CM_FROM_ROOT;
    way->left_out =
        length > MOST_OBJECTS - 1 ? length - (MOST_OBJECTS - 1) : 0;
    for (node = parent; node < CM_FROM_ROOT; node = reach->parents[node]) {
        bool kept = at < CM_TRAIL_END || at >= CM_TRAIL_END + way->left_out;
        if (kept) {
            way->nodes[way->count++] = node;
        }
        else if (at == CM_TRAIL_END) {
            way->nodes[way->count++] = 0;
        }
        at++;
    }
}

/* ---- the name of one reference */

struct naming {
    PyObject *head;
    struct cm_text_id label;
    enum cm_role role;
    bool found;
};

static int
is_head(void *context, PyObject *referent)
{
    return ((struct naming *)context)->head == referent;
}

static void
see_name(void *context, PyObject *referent, struct cm_text_id label,
         enum cm_role role)
{
    struct naming *naming = context;
    (void)referent;
    if (!naming->found || naming->label.index == 0) {
        naming->label = label;
        naming->role = role;
        naming->found = true;
    }
}

static const char *
name_of_field(const struct cm_reach *reach, PyObject *tail, PyObject *head)
{
    const char *name = cm_unnamed_field(tail, head);
    if (name == NULL && reach->devices != NULL) {
        name = cm_devices_field(reach->devices, tail, head);
    }
    return name;
}

/* False: it is called "a C field" for want of a name. */
static bool
name_edge(const struct cm_reach *reach, PyObject *tail, struct cm_step *step)
{
    struct cm_objects *objects = reach->roots->objects;
    struct naming naming = {.head = step->object};
    if (cm_numpy_is(tail)) {
        enum cm_role role;
        step->edge = cm_numpy_edge(objects->texts, tail, step->object, &role);
        step->role = (uint8_t)role;
        return true;
    }
    cm_objects_edges(objects, tail, is_head, see_name, &naming);
    if (cm_instance_dict(objects, tail) == step->object && !naming.found) {
        naming.label = cm_texts_intern(objects->texts, "__dict__");
        naming.role = CM_INSTANCE_DICT;
    }
    if (naming.label.index == 0) {
        naming.label = cm_unnamed_variable(objects->texts, tail, step->object);
    }
    const char *name = "";
    if (naming.label.index == 0) {
        name = name_of_field(reach, tail, step->object);
        naming.label =
            cm_texts_intern(objects->texts, name != NULL ? name : "a C field");
        naming.role = name != NULL && name[0] == '.' ? CM_HOOK : CM_REFERENCE;
    }
    step->edge = naming.label;
    step->role = (uint8_t)naming.role;
    return name != NULL;
}

/* ---- what an object is */

static struct cm_text_id
label_of_lru_cache(struct cm_objects *objects, PyObject *function)
{
    struct cm_phrase label;
    label.length = 0;
    cm_phrase_add(&label, "lru_cache of ");
    cm_phrase_add_str(&label, ((PyFunctionObject *)function)->func_qualname,
                      CM_PHRASE_BYTES / 16);
    return cm_phrase_intern(&label, objects->texts);
}

static struct cm_code_id
maker_of(struct cm_objects *objects, PyObject *function)
{
    PyCodeObject *code = cm_function_code(function);
    return code != NULL ? cm_objects_maker(objects, code)
                        : (struct cm_code_id){0};
}

/* "OrderedDict of 17": subclasses too say how many. */
static struct cm_text_id
label_with_count(struct cm_objects *objects, const struct cm_step *step)
{
    struct cm_phrase label;
    label.length = 0;
    cm_phrase_add_type(&label, Py_TYPE(step->object));
    cm_phrase_add(&label, " of ");
    cm_phrase_add_number(&label, (long long)step->items);
    return cm_phrase_intern(&label, objects->texts);
}

/* One line has no room for each: "4 devices", and the bytes on all of them. */
static void
add_parts(struct cm_devices *devices, PyObject *object,
          struct cm_device_memory *memory)
{
    struct cm_device_memory part = *memory;
    unsigned count = 1;
    while (cm_devices_next(devices, object, &part)) {
        memory->bytes += part.bytes;
        count++;
    }
    if (count > 1) {
        snprintf(memory->device, sizeof(memory->device), "%u devices", count);
    }
}

bool
cm_device_step(struct cm_devices *devices, struct cm_texts *texts,
               struct cm_step *step)
{
    PyObject *object = step->object;
    struct cm_device_memory memory = {0};
    char text[CM_DEVICE_LABEL_BYTES];
    if (devices == NULL || !cm_devices_claim(devices, Py_TYPE(object))
        || (!cm_devices_read(devices, object, &memory)
            && memory.reader == 0)) {
        return false;
    }
    add_parts(devices, object, &memory);
    uint64_t shown = cm_devices_label(devices, object, &memory, text);
    struct cm_text_id label = cm_texts_intern(texts, text);
    if (label.index == 0) {
        return false;
    }
    step->annotation = label;
    step->shown_bytes = shown;
    step->memory_bytes = memory.bytes;
    step->species = memory.is_storage ? CM_STORAGE : CM_TENSOR;
    return true;
}

static void
describe(const struct cm_reach *reach, struct cm_step *step)
{
    struct cm_objects *objects = reach->roots->objects;
    struct cm_node node = {0};
    cm_objects_describe(objects, step->object, &node);
    step->annotation = node.label;
    step->species = node.species;
    step->type = node.type;
    step->code = node.code;
    step->counted = cm_item_count(step->object, &step->items);
    find_bound(step);
    step->bounded = step->bounded || is_sized(objects, step)
                    || cm_unnamed_is_bounded(objects, step->object);
    if (cm_device_step(reach->devices, objects->texts, step)) {
        return;
    }
    PyObject *cached = cm_unnamed_cached(objects, step->object);
    if (cached != NULL) {
        step->annotation = label_of_lru_cache(objects, cached);
        step->code = maker_of(objects, cached);
        step->cache = cm_unnamed_cache(objects, step->object);
    }
    else if (step->counted && !PyModule_Check(step->object)) {
        step->annotation = label_with_count(objects, step);
    }
}

/* ---- folding */

static const char *
text_of(const struct cm_reach *reach, struct cm_text_id id)
{
    return cm_texts_get(reach->roots->objects->texts, id);
}

/* "['name']" becomes ".name", or "local name" of f_locals. */
static struct cm_text_id
attribute_of_key(const struct cm_reach *reach, const char *key,
                 const char *before)
{
    struct cm_phrase label;
    size_t length = strlen(key);
    label.length = 0;
    cm_phrase_add(&label, before);
    for (size_t i = 2; i + 2 < length; i++) {
        char one[2] = {key[i], '\0'};
        cm_phrase_add(&label, one);
    }
    return cm_phrase_intern(&label, reach->roots->objects->texts);
}

static bool
is_name_key(const char *key)
{
    size_t length = strlen(key);
    if (length < 5 || strncmp(key, "['", 2) != 0
        || strcmp(key + length - 2, "']") != 0) {
        return false;
    }
    for (size_t i = 2; i + 2 < length; i++) {
        bool letter = (key[i] >= 'a' && key[i] <= 'z')
                      || (key[i] >= 'A' && key[i] <= 'Z') || key[i] == '_';
        if (!letter && (i == 2 || key[i] < '0' || key[i] > '9')) {
            return false;
        }
    }
    return true;
}

/* A dict of names: the instance's, the class's, the module's, the frame's. */
static const char *
before_names(const struct cm_reach *reach, const struct cm_step *dict)
{
    const char *edge = text_of(reach, dict->edge);
    bool named =
        dict->role == CM_INSTANCE_DICT || strcmp(edge, "__dict__") == 0;
    return strcmp(edge, "f_locals") == 0    ? "local "
           : strcmp(edge, "f_globals") == 0 ? "global "
           : named                          ? "."
                                            : NULL;
}

/* Whether `last` only stands between the step before it and `next`; then the
 * edge of `next` is written anew. */
static bool
folds(const struct cm_reach *reach, const struct cm_step *last,
      struct cm_step *next)
{
    const char *key = text_of(reach, next->edge);
    const char *before = before_names(reach, last);
    if (before != NULL && PyDict_CheckExact(last->object)
        && next->role == CM_VALUE && is_name_key(key)) {
        next->edge = attribute_of_key(reach, key, before);
        next->role = before[0] == '.' ? CM_ATTRIBUTE : CM_LOCAL;
        return true;
    }
    if (next->role == CM_VALUE
        && strcmp(text_of(reach, last->edge), cm_unnamed_threads) == 0) {
        next->edge = cm_texts_intern(reach->roots->objects->texts, "__dict__");
        next->role = CM_INSTANCE_DICT;
        return true;
    }
    if (last->role == CM_CLOSURE) {
        return next->role == CM_CLOSURE_CELL;
    }
    if (next->role == CM_CELL_CONTENTS && last->role == CM_LOCAL) {
        next->edge = last->edge;
        next->role = CM_LOCAL;
        return true;
    }
    if (next->role == CM_CELL_CONTENTS && last->role == CM_CLOSURE_CELL) {
        next->edge = last->edge;
        return true;
    }
    return cm_unnamed_is_hamt(last->object);
}

static enum cm_status
add_step(struct cm_trail *self, const struct cm_step *step)
{
    enum cm_status status = cm_grow((void **)&self->steps, &self->capacity,
                                    self->count + 1, sizeof(*self->steps));
    if (status == CM_OK) {
        self->steps[self->count++] = *step;
    }
    return status;
}

/* What a function's __defaults__ or __kwdefaults__ holds goes by the name of
 * the parameter. */
static void
name_default(const struct cm_trail *self, const struct cm_reach *reach,
             struct cm_step *step)
{
    const struct cm_step *last = &self->steps[self->count - 1];
    PyObject *function = self->count > 1 ? last[-1].object : NULL;
    const char *edge = text_of(reach, last->edge);
    if (function == NULL || last->object == NULL
        || !PyFunction_Check(function)) {
        return;
    }
    if (strcmp(edge, "__kwdefaults__") == 0
        && is_name_key(text_of(reach, step->edge))) {
        step->edge =
            attribute_of_key(reach, text_of(reach, step->edge), "default ");
        step->role = CM_LOCAL;
    }
    if (strcmp(edge, "__defaults__") == 0 && PyTuple_Check(last->object)) {
        PyObject *name =
            cm_unnamed_parameter(function, last->object, step->object);
        struct cm_phrase label;
        label.length = 0;
        cm_phrase_add(&label, "default ");
        cm_phrase_add_str(&label, name, CM_PHRASE_BYTES / 8);
        step->edge =
            name == NULL
                ? step->edge
                : cm_phrase_intern(&label, reach->roots->objects->texts);
        step->role = name == NULL ? step->role : CM_LOCAL;
    }
}

static enum cm_status
add_folded(struct cm_trail *self, const struct cm_reach *reach,
           struct cm_step *step)
{
    struct cm_step *last = &self->steps[self->count - 1];
    name_default(self, reach, step);
    if (last->object != NULL && folds(reach, last, step)) {
        self->count--;
    }
    return add_step(self, step);
}

static enum cm_status
add_gap(struct cm_trail *self, const struct cm_reach *reach, size_t left_out)
{
    struct cm_phrase label;
    label.length = 0;
    cm_phrase_add(&label, "... ");
    cm_phrase_add_number(&label, (long long)left_out);
    cm_phrase_add(&label, " more ...");
    struct cm_step step = {
        .annotation = cm_phrase_intern(&label, reach->roots->objects->texts)};
    return add_step(self, &step);
}

/* A cm_between. */
struct between {
    struct cm_trail *trail;
    enum cm_status status;
};

static void
add_between(void *argument, struct cm_text_id what, struct cm_text_id edge)
{
    struct between *self = argument;
    struct cm_step step = {.annotation = what, .edge = edge};
    if (self->status == CM_OK) {
        self->status = add_step(self->trail, &step);
    }
}

/* What C++ has between the two, where traverse shows no such reference. */
static enum cm_status
add_way(struct cm_trail *self, const struct cm_reach *reach, PyObject *before,
        struct cm_step *step)
{
    struct between between = {self, CM_OK};
    struct cm_text_id label;
    if (reach->more != NULL
        && reach->more->between(reach->more->context, before, step->object,
                                add_between, &between, &label)) {
        step->edge = label;
        step->role = CM_AUTOGRAD;
    }
    return between.status;
}

/* The module itself is its root. */
static bool
is_root_itself(const struct cm_trail *self, PyObject *object)
{
    return self->root->kind == CM_ROOT_MODULE && self->root->object == object;
}

static enum cm_status
add_object(struct cm_trail *self, const struct cm_reach *reach,
           PyObject *before, PyObject *object, uint32_t node)
{
    struct cm_step step = {.object = object, .node = node};
    enum cm_role role;
    enum cm_status status = CM_OK;
    if (before == NULL && is_root_itself(self, object)) {
        return CM_OK;
    }
    if (before == NULL) {
        step.edge = cm_root_edge(reach->roots, self->root, object, &role);
        step.role = (uint8_t)role;
    }
    else if (!name_edge(reach, before, &step)) {
        status = add_way(self, reach, before, &step);
    }
    describe(reach, &step);
    return status == CM_OK ? add_folded(self, reach, &step) : status;
}

static void
learn_names(const struct cm_reach *reach, const struct way *way)
{
    PyObject *objects[MOST_OBJECTS];
    size_t count = 0;
    for (size_t i = 0; i < way->count; i++) {
        if (way->nodes[i] != 0) {
            objects[count++] = reach->objects[way->nodes[i]];
        }
    }
    cm_objects_begin(reach->roots->objects, objects, count);
}

enum cm_status
cm_trail_find(struct cm_trail *self, const struct cm_reach *reach,
              uint32_t parent, PyObject *target)
{
    struct way way = {.count = 0};
    climb(reach, parent, &way);
    learn_names(reach, &way);
    *self = (struct cm_trail){.root = &reach->roots->items[way.root]};
    struct cm_step root = {
        .annotation = self->root->name,
        .code = self->root->code,
        .species = self->root->kind == CM_ROOT_FRAME    ? CM_FRAME
                   : self->root->kind == CM_ROOT_MODULE ? CM_MODULE
                                                        : CM_OBJECT};
    enum cm_status status = add_step(self, &root);
    PyObject *before = NULL;
    for (size_t i = way.count; i-- > 0 && status == CM_OK;) {
        uint32_t node = way.nodes[i];
        if (node == 0) {
            status = add_gap(self, reach, way.left_out);
            continue; /* the next one's edge leads from what was left out */
        }
        uint32_t from = reach->parents[node];
        before = from < CM_FROM_ROOT ? reach->objects[from] : NULL;
        status = add_object(self, reach, before, reach->objects[node], node);
    }
    if (status == CM_OK) {
        before = parent < CM_FROM_ROOT ? reach->objects[parent] : NULL;
        status = add_object(self, reach, before, target, 0);
    }
    if (status != CM_OK) {
        cm_trail_release(self);
    }
    return status;
}
