/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Whose cycle it is.  The place of the cut decides; without one, a cycle all
 * of whose types and allocation frames are a library's is the library's.
 * The package is read off the path of its file. */

#include "made.h"

#include <string.h>

#include "name.h"

#define MAX_MEMBERS 256

/* What stands behind site-packages/ or dist-packages/, without its ".py". */
static char *
package_of_file(const char *filename)
{
    static const char *const folders[] = {"/site-packages/",
                                          "/dist-packages/"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *found = strstr(filename, folders[i]);

        if (found != NULL) {
            found += strlen(folders[i]);
            return cm_sentence("%.*s", (int)strcspn(found, "/."), found);
        }
    }
    return cm_sentence("python");
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

static bool
is_allocated_in_libraries(const struct cm_cycle *cycle)
{
    const struct cm_heap *heap = cycle->heap;

    for (uint32_t i = 0; i < cycle->payload_count; i++) {
        const struct cm_node *node = &heap->nodes[cycle->payload[i]];

        if (!is_library_site(cycle, node->site)
            || (node->storage.index != 0
                && !is_library_site(
                    cycle, heap->storages[node->storage.index].site))) {
            return false;
        }
    }
    return true;
}

/* The first instance's type, if all instances are of library types. */
static const struct cm_type *
library_type(const struct cm_cycle *cycle)
{
    const struct cm_type *first = NULL;

    for (uint32_t i = 0; i < cycle->size && i < MAX_MEMBERS; i++) {
        const struct cm_node *node = cm_cycle_node(cycle, cycle->nodes[i]);
        const struct cm_type *type =
            cm_records_type(cycle->records, node->type);
        const struct cm_code *code =
            cm_records_code(cycle->records, node->code);

        if (node->code.index != 0 && !code->library) {
            return NULL;
        }
        if (node->species != CM_OBJECT) {
            continue;
        }
        if (!type->library) {
            return NULL;
        }
        first = first != NULL ? first : type;
    }
    return first;
}

/* A class made by a library brings its cycle along, whoever allocates. */
static bool
has_class(const struct cm_cycle *cycle)
{
    for (uint32_t i = 0; i < cycle->size && i < MAX_MEMBERS; i++) {
        if (cm_cycle_node(cycle, cycle->nodes[i])->species == CM_TYPE) {
            return true;
        }
    }
    return false;
}

/* NULL: it is the user's own. */
static const struct cm_type *
type_of_library_cycle(const struct cm_cycle *cycle)
{
    return has_class(cycle) || is_allocated_in_libraries(cycle)
               ? library_type(cycle)
               : NULL;
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

enum cm_status
cm_made_library(const struct cm_cycle *cycle, const struct cm_made *made,
                char **package)
{
    struct cm_code_id code = made->places[0].code;

    *package = NULL;
    if (made->place_count > 0) {
        if (!cm_records_code(cycle->records, code)->library) {
            return CM_OK;
        }
        *package = package_of_code(cycle, code);
    }
    else {
        const struct cm_type *type = type_of_library_cycle(cycle);

        if (type == NULL) {
            return CM_OK;
        }
        *package = package_of_type(cycle, type);
    }
    return *package != NULL ? CM_OK : CM_NO_MEMORY;
}
