/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Whose cycle it is.  A library's own is one that lives wholly inside it: the
 * place of the cut is the library's and nothing of the user's is in the ring
 * that it cuts, or the place is not known, all allocation frames are a
 * library's, and nothing of the user's is a member: no instance of a class of
 * the user's, no function, frame or generator.  What the user stores through a
 * library (queue.put(self), future.set_exception(error)) stays the user's;
 * what merely hangs on a library's ring (a trainer's model) does not make that
 * ring the user's.  The package is read off the path of its file.  Cost: one
 * walk over the members, one search. */

#include "made.h"

#include <string.h>

#include "name.h"

static char *
package_of_file(const char *filename)
{
    const char *found = cm_name_in_packages(filename);

    return found != NULL
               ? cm_sentence("%.*s", (int)strcspn(found, "/."), found)
               : cm_sentence("python");
}

static char *
package_of_code(const struct cm_cycle *cycle, struct cm_code_id id)
{
    const struct cm_code *code = cm_records_code(cycle->records, id);

    return package_of_file(cm_records_text(cycle->records, code->filename));
}

static bool
is_library_site(const struct cm_cycle *cycle, struct cm_site_id id)
{
    const struct cm_site *site = cm_records_site(cycle->records, id);

    for (uint32_t i = 0; i < site->frame_count; i++) {
        if (!cm_records_code(cycle->records, site->frames[i].code)->library) {
            return false;
        }
    }
    return !site->cut;
}

/* Every stack that is known, and one is. */
static bool
is_allocated_in_libraries(const struct cm_cycle *cycle)
{
    const struct cm_heap *heap = cycle->heap;

    for (uint32_t i = 0; i < cycle->payload_count; i++) {
        const struct cm_node *node = &heap->nodes[cycle->payload[i]];
        struct cm_site_id of_storage = {0};

        if (node->storage.index != 0) {
            of_storage = heap->storages[node->storage.index].site;
        }
        if ((node->site.index == 0 && of_storage.index == 0)
            || !is_library_site(cycle, node->site)
            || !is_library_site(cycle, of_storage)) {
            return false;
        }
    }
    return true;
}

/* What a cycle is made of, as far as it says whose it is. */
struct members {
    const struct cm_type *first; /* of a library's objects; NULL: none */
    bool users;                  /* something of the user's is there */
    bool has_code;               /* functions and frames of libraries */
    bool has_collection;
    bool has_class;
};

/* Types whose objects belong to whoever fills them. */
static bool
is_collection(const struct cm_cycle *cycle, const struct cm_type *type)
{
    static const char *const modules[] = {
        "builtins", "collections",
        "queue",    "_queue",
        "types",    "asyncio.queues",
        "_asyncio", "asyncio.futures",
        "weakref",  "concurrent.futures._base",
    };
    const char *module = cm_records_text(cycle->records, type->module);
    bool found = false;

    for (size_t i = 0; i < sizeof modules / sizeof *modules && !found; i++) {
        found = strcmp(module, modules[i]) == 0;
    }
    return found;
}

/* Of these the class says whose they are. */
static bool
is_instance(const struct cm_node *node)
{
    return node->species == CM_OBJECT || node->species == CM_EXCEPTION
           || node->species == CM_PARTIAL || node->species == CM_TENSOR
           || node->species == CM_STORAGE;
}

static void
look_at_member(const struct cm_cycle *cycle, const struct cm_node *node,
               struct members *result)
{
    const struct cm_type *type = cm_records_type(cycle->records, node->type);

    if (node->code.index != 0) {
        bool library = cm_records_code(cycle->records, node->code)->library;

        result->users |= !library;
        result->has_code |= library;
    }
    result->has_class |= node->species == CM_TYPE;
    if (!is_instance(node)) {
        return;
    }
    result->users |= !type->library;
    if (is_collection(cycle, type)) {
        result->has_collection = true;
    }
    else if (result->first == NULL && node->species == CM_OBJECT) {
        result->first = type;
    }
}

static struct members
look_at_members(const struct cm_cycle *cycle)
{
    struct members result = {0};

    for (uint32_t i = 0; i < cycle->size && !result.users; i++) {
        look_at_member(cycle, cm_cycle_node(cycle, cycle->nodes[i]), &result);
    }
    return result;
}

/* Of the shortest ring through the edge; of all members where none is found. */
static struct members
look_at_ring(struct cm_cycle *cycle, uint32_t edge)
{
    struct members result = {0};
    const struct cm_edge *cut = cm_cycle_edge(cycle, edge);
    uint32_t node = cut->tail;

    if (edge == 0
        || (node != cut->head
            && cm_cycle_reach(cycle, cut->head, node, CM_ROLES_ALL) == 0)) {
        return look_at_members(cycle);
    }
    look_at_member(cycle, cm_cycle_node(cycle, node), &result);
    while (node != cut->head) {
        uint32_t came_by = cycle->came_by[cm_cycle_place(cycle, node)];

        node = cm_cycle_edge(cycle, came_by)->tail;
        look_at_member(cycle, cm_cycle_node(cycle, node), &result);
    }
    return result;
}

/* A class made by a library brings its cycle along, whoever allocates. */
static bool
is_born_in_library(const struct cm_cycle *cycle, const struct members *members)
{
    return members->first != NULL
           && (members->has_class || is_allocated_in_libraries(cycle));
}

/* By the file of a method, which tells the standard library from a package;
 * a type of C only has its module. */
static char *
package_of_type(const struct cm_cycle *cycle, const struct cm_type *type)
{
    const char *module = cm_records_text(cycle->records, type->module);

    if (type->method_count > 0
        && cm_records_code(cycle->records, type->methods[0])->library) {
        return package_of_code(cycle, type->methods[0]);
    }
    return cm_sentence("%.*s", (int)strcspn(module, "."), module);
}

/* What a library keeps on the program's object under a name of its own, in a
 * function that no stack remembers: accelerate's prepare(). */
static bool
is_kept_by_accelerate(const struct cm_cycle *cycle,
                      const struct cm_suspect *suspect)
{
    struct cm_link link;

    return suspect->held != 0
           && strcmp(cm_cycle_edge_name(cycle, suspect->held).text,
                     "_original_forward")
                  == 0
           && cm_cycle_link(cycle, suspect->held, &link)
           && !cm_suspect_is_set_by_program(cycle, link);
}

/* A library hands on a method of its own that the program's class inherits:
 * gpytorch's modules register one as a hook.  0: it is none. */
static struct cm_code_id
inherited_method(const struct cm_cycle *cycle,
                 const struct cm_suspect *suspect)
{
    const struct cm_edge *edge = cm_cycle_edge(cycle, suspect->edge);
    struct cm_code_id code = cm_cycle_node(cycle, edge->tail)->code;
    bool method = suspect->edge != 0 && edge->role == CM_BOUND_SELF
                  && cm_records_code(cycle->records, code)->library;

    return method ? code : (struct cm_code_id){0};
}

enum cm_status
cm_made_library(struct cm_cycle *cycle, const struct cm_suspect *suspect,
                const struct cm_made *made, char **package)
{
    struct cm_code_id code = made->places[0].code;
    bool placed = made->place_count > 0;
    struct members members;

    *package = NULL;
    if (is_kept_by_accelerate(cycle, suspect)) {
        *package = cm_sentence("accelerate");
        return *package != NULL ? CM_OK : CM_NO_MEMORY;
    }
    if (placed && !cm_records_code(cycle->records, code)->library) {
        return CM_OK;
    }
    if (placed && inherited_method(cycle, suspect).index != 0) {
        *package = package_of_code(cycle, inherited_method(cycle, suspect));
        return *package != NULL ? CM_OK : CM_NO_MEMORY;
    }
    members =
        placed ? look_at_ring(cycle, suspect->edge) : look_at_members(cycle);
    if (members.users) {
        return CM_OK;
    }
    if (!placed && is_born_in_library(cycle, &members)) {
        *package = package_of_type(cycle, members.first);
    }
    else if (placed
             && (members.first != NULL || members.has_code
                 || !members.has_collection)) {
        *package = package_of_code(cycle, code);
    }
    else {
        return CM_OK;
    }
    return *package != NULL ? CM_OK : CM_NO_MEMORY;
}
