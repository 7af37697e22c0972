/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef HEAP_BUILDER_H
#define HEAP_BUILDER_H

/* A heap from a few lines of text, for tests.  Statements end with ';' or a
 * newline, words are separated by blanks:
 *
 *   a Node                    an object; the type's name gives the species
 *   t Tensor 1048576          a tensor with a storage of its own
 *   v Tensor of=t             a view: the same storage
 *   a .link b                 an edge: .x ['k'] [0] local:x cell:x __self__
 *                             __dict__ __closure__ __traceback__ tb_frame ...
 *   code run train.py:10 Trainer.run    code, with its first line
 *   store run attr link b 12  a store in it: kind, name, owner, line
 *   methods Node init run     methods of a type
 *   site s run:14 main:30     a stack, innermost first
 *
 * Options of an object: of= uses= on= site= code= line= label= survived del;
 * of a code: lib; of a store: const, made, within=; of a
 * type: `library Node pkg.module`, `unweakable Node`.
 * Species: heap_species(); any other type is an instance. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../detector/alloc.h"
#include "../detector/heap.h"
#include "../detector/records.h"

enum { BUILT_MAX = 512, BUILT_WORD = 64, BUILT_STORES = 16 };

struct built_code {
    char name[BUILT_WORD], file[BUILT_WORD], qualified[BUILT_WORD];
    uint32_t line, store_count;
    bool library;
    struct cm_store stores[BUILT_STORES];
    struct cm_code_id id;
};

struct built_type {
    char name[BUILT_WORD], module[BUILT_WORD];
    bool library, unweakable;
    struct cm_code_id methods[BUILT_STORES];
    uint32_t method_count;
};

struct built_site {
    char name[BUILT_WORD];
    struct cm_site_id id;
};

struct built_edge {
    uint32_t tail, head, order;
    uint8_t role;
    struct cm_text_id label;
};

struct built {
    struct cm_heap heap;
    struct cm_records *records;
    char names[BUILT_MAX][BUILT_WORD]; /* of nodes, by index */
    struct built_code codes[BUILT_MAX];
    struct built_type types[BUILT_MAX];
    struct built_site sites[BUILT_MAX];
    struct built_edge edges[BUILT_MAX * 2];
    uint32_t code_count, type_count, site_count, edge_count;
};

struct built_words {
    char *words[24];
    int count;
};

static inline struct cm_text_id
built_text(struct built *self, const char *text)
{
    return cm_texts_intern(cm_records_texts(self->records), text);
}

static inline uint32_t
built_find_node(const struct built *self, const char *name)
{
    for (uint32_t i = 1; i <= self->heap.node_count; i++) {
        if (strcmp(self->names[i], name) == 0) {
            return i;
        }
    }
    return 0;
}

static inline uint32_t
built_node(const struct built *self, const char *name)
{
    uint32_t node = built_find_node(self, name);

    if (node == 0) {
        fail_msg("no node is called %s", name);
    }
    return node;
}

/* An edge of the heap by its ends and its text as written; 0: none. */
static inline uint32_t
built_edge(const struct built *self, const char *tail, const char *label,
           const char *head)
{
    char spaced[BUILT_WORD];

    snprintf(spaced, sizeof spaced, "%s", label);
    if (strncmp(label, "local:", 6) == 0 || strncmp(label, "cell:", 5) == 0) {
        *strchr(spaced, ':') = ' ';
    }
    for (uint32_t i = 1; i <= self->heap.edge_count; i++) {
        const struct cm_edge *edge = &self->heap.edges[i];

        if (edge->tail == built_node(self, tail)
            && edge->head == built_node(self, head)
            && strcmp(cm_records_text(self->records, edge->label), spaced)
                   == 0) {
            return i;
        }
    }
    return 0;
}

static inline enum cm_species
heap_species(const char *type)
{
    static const struct {
        const char *type;
        enum cm_species species;
    } table[] = {
        {"dict", CM_DICT},           {"list", CM_LIST},
        {"tuple", CM_TUPLE},         {"set", CM_SET},
        {"frozenset", CM_SET},       {"function", CM_FUNCTION},
        {"method", CM_BOUND_METHOD}, {"builtin", CM_BUILTIN_METHOD},
        {"cell", CM_CELL},           {"frame", CM_FRAME},
        {"traceback", CM_TRACEBACK}, {"generator", CM_GENERATOR},
        {"coroutine", CM_COROUTINE}, {"async_generator", CM_ASYNC_GENERATOR},
        {"partial", CM_PARTIAL},     {"module", CM_MODULE},
        {"type", CM_TYPE},           {"Tensor", CM_TENSOR},
        {"Parameter", CM_TENSOR},    {"Storage", CM_STORAGE},
        {"GradFn", CM_GRAD_FN},      {"OrderedDict", CM_DICT},
        {"FrameInfo", CM_TUPLE},     {"ExceptionGroup", CM_EXCEPTION},
    };
    size_t length = strlen(type);

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(type, table[i].type) == 0) {
            return table[i].species;
        }
    }
    return length > 5 && strcmp(type + length - 5, "Error") == 0 ? CM_EXCEPTION
                                                                 : CM_OBJECT;
}

/* The role of an edge by its text and by what it leaves. */
static inline uint8_t
heap_role(const char *label, enum cm_species tail)
{
    static const struct {
        const char *label;
        uint8_t role;
    } table[] = {
        {"__dict__", CM_INSTANCE_DICT},
        {"__self__", CM_BOUND_SELF},
        {"__func__", CM_BOUND_FUNCTION},
        {"__closure__", CM_CLOSURE},
        {"__defaults__", CM_DEFAULT},
        {"__class__", CM_CLASS},
        {"__mro__", CM_CLASS},
        {"__traceback__", CM_EXCEPTION_LINK},
        {"__context__", CM_EXCEPTION_LINK},
        {"tb_frame", CM_TB_FRAME},
        {"tb_next", CM_TB_NEXT},
        {"f_back", CM_F_BACK},
        {"func", CM_PARTIAL_FUNC},
        {"args", CM_PARTIAL_ARG},
        {"element", CM_ELEMENT},
        {"key", CM_KEY},
        {"hook", CM_HOOK},
        {"grad_fn", CM_AUTOGRAD},
        {"saved", CM_AUTOGRAD},
        {"saved:packed", CM_AUTOGRAD},
        {"ref", CM_REFERENCE},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(label, table[i].label) == 0) {
            return table[i].role;
        }
    }
    if (strncmp(label, "local:", 6) == 0) {
        return CM_LOCAL;
    }
    if (strncmp(label, "cell:", 5) == 0) {
        return tail == CM_CELL ? CM_CELL_CONTENTS : CM_CLOSURE_CELL;
    }
    if (label[0] == '.') {
        return CM_ATTRIBUTE;
    }
    if (label[0] != '[') {
        fail_msg("%s is no edge", label);
    }
    return tail == CM_DICT ? CM_VALUE : CM_ITEM;
}

static inline struct built_code *
built_code(struct built *self, const char *name)
{
    for (uint32_t i = 0; i < self->code_count; i++) {
        if (strcmp(self->codes[i].name, name) == 0) {
            return &self->codes[i];
        }
    }
    fail_msg("no code is called %s", name);
    return NULL;
}

static inline struct built_type *
built_type(struct built *self, const char *name)
{
    for (uint32_t i = 0; i < self->type_count; i++) {
        if (strcmp(self->types[i].name, name) == 0) {
            return &self->types[i];
        }
    }
    snprintf(self->types[self->type_count].name, BUILT_WORD, "%s", name);
    return &self->types[self->type_count++];
}

static inline void
built_add_code(struct built *self, const struct built_words *line)
{
    struct built_code *code = &self->codes[self->code_count++];
    char *colon = strchr(line->words[2], ':');

    *colon = '\0';
    snprintf(code->name, BUILT_WORD, "%s", line->words[1]);
    snprintf(code->file, BUILT_WORD, "%s", line->words[2]);
    snprintf(code->qualified, BUILT_WORD, "%s", line->words[3]);
    code->line = (uint32_t)strtoul(colon + 1, NULL, 10);
    code->library = line->count > 4;
}

static inline void
built_add_store(struct built *self, const struct built_words *line)
{
    static const char *const kinds[] = {
        [CM_STORE_ATTRIBUTE] = "attr", [CM_STORE_LOCAL] = "local",
        [CM_STORE_CELL] = "cell",      [CM_STORE_GLOBAL] = "global",
        [CM_STORE_ITEM] = "item",      [CM_STORE_FUNCTION] = "function",
        [CM_STORE_CALL] = "call",      [CM_STORE_HAND] = "hand"};
    struct built_code *code = built_code(self, line->words[1]);
    struct cm_store *store = &code->stores[code->store_count++];

    for (size_t i = 1; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i] != NULL && strcmp(kinds[i], line->words[2]) == 0) {
            store->kind = (enum cm_store_kind)i;
        }
    }
    assert_int_not_equal(store->kind, 0);
    store->name = built_text(self, line->words[3]);
    if (strcmp(line->words[4], "-") != 0) {
        store->owner = built_text(self, line->words[4]);
    }
    store->line = (uint32_t)strtoul(line->words[5], NULL, 10);
    for (int i = 6; i < line->count; i++) {
        const char *word = line->words[i];

        store->constant |= strcmp(word, "const") == 0;
        store->made |= strcmp(word, "made") == 0;
        if (strncmp(word, "within=", 7) == 0) {
            store->within = built_text(self, word + 7);
        }
    }
}

/* Codes are added to the records when everything about them was read. */
static inline struct cm_code_id
built_code_id(struct built *self, const char *name)
{
    struct built_code *code = built_code(self, name);
    const char *dot = strrchr(code->qualified, '.');
    struct cm_code record = {
        .filename = built_text(self, code->file),
        .name = built_text(self, dot != NULL ? dot + 1 : code->qualified),
        .qualified_name = built_text(self, code->qualified),
        .first_line = code->line,
        .library = code->library,
        .stores = code->stores,
        .store_count = code->store_count,
    };

    if (code->id.index == 0) {
        assert_int_equal(
            cm_records_add_code(self->records, &record, &code->id), CM_OK);
    }
    return code->id;
}

static inline struct cm_type_id
built_type_id(struct built *self, const char *name)
{
    struct built_type *type = built_type(self, name);
    struct cm_type record = {
        .name = built_text(self, name),
        .module = built_text(self, type->module),
        .library = type->library,
        .unweakable = type->unweakable,
        .methods = type->methods,
        .method_count = type->method_count,
    };
    struct cm_type_id id = {0};

    assert_int_equal(cm_records_add_type(self->records, &record, &id), CM_OK);
    return id;
}

static inline void
built_add_site(struct built *self, const struct built_words *line)
{
    struct cm_frame frames[24];
    struct cm_site site = {.frames = frames};
    struct built_site *known = &self->sites[self->site_count++];

    for (int i = 2; i < line->count; i++) {
        char *colon = strchr(line->words[i], ':');

        *colon = '\0';
        frames[site.frame_count++] =
            (struct cm_frame){built_code_id(self, line->words[i]),
                              (uint32_t)strtoul(colon + 1, NULL, 10)};
    }
    snprintf(known->name, BUILT_WORD, "%s", line->words[1]);
    assert_int_equal(cm_records_add_site(self->records, &site, &known->id),
                     CM_OK);
}

static inline struct cm_site_id
built_site(const struct built *self, const char *name)
{
    for (uint32_t i = 0; i < self->site_count; i++) {
        if (strcmp(self->sites[i].name, name) == 0) {
            return self->sites[i].id;
        }
    }
    fail_msg("no site is called %s", name);
    return (struct cm_site_id){0};
}

struct built_object {
    struct cm_node node;
    struct cm_storage storage;
    uint32_t same_as; /* node with the same storage */
    bool has_storage;
};

static inline void
built_read_option(struct built *self, const char *word,
                  struct built_object *object)
{
    const char *value = strchr(word, '=');

    value = value != NULL ? value + 1 : word;
    if (word[0] >= '0' && word[0] <= '9') {
        object->storage.bytes = strtoull(word, NULL, 10);
        object->has_storage = true;
    }
    else if (strncmp(word, "of=", 3) == 0) {
        object->same_as = built_node(self, value);
    }
    else if (strncmp(word, "uses=", 5) == 0) {
        object->storage.use_count = (uint32_t)strtoul(value, NULL, 10);
    }
    else if (strncmp(word, "on=", 3) == 0) {
        object->storage.device = built_text(self, value);
    }
    else if (strncmp(word, "site=", 5) == 0) {
        object->node.site = built_site(self, value);
    }
    else if (strncmp(word, "code=", 5) == 0) {
        object->node.code = built_code_id(self, value);
    }
    else if (strncmp(word, "line=", 5) == 0) {
        object->node.line = (uint32_t)strtoul(value, NULL, 10);
    }
    else if (strncmp(word, "label=", 6) == 0) {
        object->node.label = built_text(self, value);
    }
    else if (strcmp(word, "survived") == 0) {
        object->node.survived = true;
    }
    else if (strcmp(word, "del") == 0) {
        object->node.has_finalizer = true;
    }
    else {
        fail_msg("%s is no option", word);
    }
}

static inline void
built_add_object(struct built *self, const struct built_words *line)
{
    struct built_object object = {0};
    struct cm_node_id id;

    object.node.species = (uint8_t)heap_species(line->words[1]);
    object.node.type = built_type_id(self, line->words[1]);
    object.node.address = 0x1000 + 64 * self->heap.node_count;
    for (int i = 2; i < line->count; i++) {
        built_read_option(self, line->words[i], &object);
    }
    object.storage.key = 0x9000 + self->heap.node_count;
    if (object.same_as != 0) {
        uint32_t storage = self->heap.nodes[object.same_as].storage.index;

        object.storage = self->heap.storages[storage];
        object.has_storage = true;
    }
    if (object.has_storage) {
        object.node.bytes = object.storage.bytes;
        assert_int_equal(cm_heap_add_storage(&self->heap, &object.storage,
                                             &object.node.storage),
                         CM_OK);
    }
    assert_int_equal(cm_heap_add_node(&self->heap, &object.node, &id), CM_OK);
    snprintf(self->names[id.index], BUILT_WORD, "%s", line->words[0]);
}

static inline void
built_add_edge(struct built *self, const struct built_words *line)
{
    struct built_edge *edge = &self->edges[self->edge_count];
    uint32_t tail = built_node(self, line->words[0]);
    char *text = line->words[1];

    edge->order = self->edge_count++;
    edge->tail = tail;
    edge->head = built_node(self, line->words[2]);
    edge->role =
        heap_role(text, (enum cm_species)self->heap.nodes[tail].species);
    if (strchr(text, ':') != NULL && text[0] != '[') {
        *strchr(text, ':') = ' ';
    }
    edge->label = built_text(self, text);
}

static inline void
built_read_line(struct built *self, const struct built_words *line)
{
    const char *word = line->words[0];

    if (strcmp(word, "code") == 0) {
        built_add_code(self, line);
    }
    else if (strcmp(word, "store") == 0) {
        built_add_store(self, line);
    }
    else if (strcmp(word, "site") == 0) {
        built_add_site(self, line);
    }
    else if (strcmp(word, "library") == 0) {
        struct built_type *type = built_type(self, line->words[1]);

        type->library = true;
        snprintf(type->module, BUILT_WORD, "%s", line->words[2]);
    }
    else if (strcmp(word, "unweakable") == 0) {
        built_type(self, line->words[1])->unweakable = true;
    }
    else if (strcmp(word, "methods") == 0) {
        struct built_type *type = built_type(self, line->words[1]);

        for (int i = 2; i < line->count; i++) {
            type->methods[type->method_count++] =
                built_code_id(self, line->words[i]);
        }
    }
    else if (line->count == 3 && built_find_node(self, word) != 0) {
        built_add_edge(self, line);
    }
    else {
        built_add_object(self, line);
    }
}

static inline int
built_compare_edges(const void *left, const void *right)
{
    const struct built_edge *a = left, *b = right;

    return a->tail != b->tail ? (a->tail > b->tail) - (a->tail < b->tail)
                              : (a->order > b->order) - (a->order < b->order);
}

static inline void
built_seal(struct built *self)
{
    qsort(self->edges, self->edge_count, sizeof *self->edges,
          built_compare_edges);
    for (uint32_t i = 0; i < self->edge_count; i++) {
        struct cm_edge edge = {.tail = self->edges[i].tail,
                               .head = self->edges[i].head,
                               .label = self->edges[i].label,
                               .role = self->edges[i].role};

        assert_int_equal(cm_heap_add_edge(&self->heap, &edge), CM_OK);
    }
    assert_int_equal(cm_heap_seal(&self->heap), CM_OK);
    assert_null(cm_heap_check(&self->heap));
}

/* Returns new; give it back with built_free(). */
static inline struct built *
built_new(const char *text)
{
    struct built *self = cm_calloc(1, sizeof *self);
    char *copy = cm_strdup(text), *rest = copy, *line;

    assert_non_null(self);
    assert_non_null(copy);
    self->heap.iteration = -1;
    self->records = cm_records_new(1 << 20);
    assert_non_null(self->records);
    while ((line = strtok_r(rest, ";\n", &rest)) != NULL) {
        struct built_words words = {.count = 0};
        char *word, *end = line;

        while ((word = strtok_r(end, " ", &end)) != NULL) {
            words.words[words.count++] = word;
        }
        if (words.count > 0) {
            built_read_line(self, &words);
        }
    }
    cm_free(copy);
    built_seal(self);
    return self;
}

static inline void
built_free(struct built *self)
{
    cm_heap_release(&self->heap);
    cm_records_free(self->records);
    cm_free(self);
}

#endif
