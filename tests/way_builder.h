/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef WAY_BUILDER_H
#define WAY_BUILDER_H

/* Ways to what grows (graph/holding.h) from a line of text, for tests. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heap_builder.h"
#include "../graph/bound.h"

enum { STEPS = 10 };

struct way {
    struct cm_records *records;
    struct cm_holding_step steps[STEPS];
    struct cm_holding holding;
};

/* A letter for the species, one for the role, the items or '-', the edge; the
 * rest is what it is.  "list: L, dict: D, tensor: T, object: O, ...". */
static inline uint8_t
species_of(char letter)
{
    static const char letters[] = "LDTOMFCXBftmS";
    static const uint8_t species[] = {
        CM_LIST,  CM_DICT,         CM_TENSOR,    CM_OBJECT,    CM_MODULE,
        CM_FRAME, CM_TYPE,         CM_EXCEPTION, CM_TRACEBACK, CM_FUNCTION,
        CM_TUPLE, CM_BOUND_METHOD, CM_SET};
    const char *at = strchr(letters, letter);

    assert_non_null(at);
    return species[at - letters];
}

static inline uint8_t
role_of(const char *edge)
{
    return edge[0] == '.'                       ? CM_ATTRIBUTE
           : strncmp(edge, "local ", 6) == 0    ? CM_LOCAL
           : strncmp(edge, "cell ", 5) == 0     ? CM_CLOSURE_CELL
           : strncmp(edge, "['", 2) == 0        ? CM_VALUE
           : edge[0] == '['                     ? CM_ITEM
           : strcmp(edge, "__traceback__") == 0 ? CM_EXCEPTION_LINK
           : strcmp(edge, "tb_frame") == 0      ? CM_TB_FRAME
           : strcmp(edge, "__self__") == 0      ? CM_BOUND_SELF
                                                : CM_REFERENCE;
}

static inline struct cm_text_id
text(struct way *self, const char *bytes)
{
    return cm_texts_intern(cm_records_texts(self->records), bytes);
}

/* Statements "species|edge|what|items", separated by ';'. */
static inline void
way_init(struct way *self, const char *text_of_steps, size_t at)
{
    char line[1024];
    char *step, *more = line;

    memset(self, 0, sizeof *self);
    self->records = cm_records_new(1 << 20);
    snprintf(line, sizeof line, "%s", text_of_steps);
    while ((step = strsep(&more, ";")) != NULL) {
        struct cm_holding_step *made = &self->steps[self->holding.count++];
        const char *species = strsep(&step, "|"), *edge = strsep(&step, "|");
        const char *what = strsep(&step, "|");

        made->species = species_of(species[0]);
        made->edge = text(self, edge);
        made->role = role_of(edge);
        made->annotation = text(self, what);
        made->counted = step != NULL;
        made->items = step != NULL ? strtoull(step, NULL, 10) : 0;
    }
    self->holding.records = self->records;
    self->holding.steps = self->steps;
    self->holding.at = at;
}

static inline void
set_type(struct way *self, size_t step, const char *module, const char *name)
{
    struct cm_type type = {.name = text(self, name),
                           .module = text(self, module)};

    assert_int_equal(
        cm_records_add_type(self->records, &type, &self->steps[step].type),
        CM_OK);
}

static inline void
set_module(struct way *self, size_t step, const char *module)
{
    set_type(self, step, module, "Adam");
}

static inline struct cm_code_id
add_code_at(struct way *way, const char *file, const char *name,
            const struct cm_store *stores, uint32_t count, bool library)
{
    struct cm_code code = {.filename = text(way, file),
                           .name = text(way, name),
                           .qualified_name = text(way, name),
                           .first_line = 1,
                           .library = library,
                           .stores = stores,
                           .store_count = count};
    struct cm_code_id id = {0};

    assert_int_equal(cm_records_add_code(way->records, &code, &id), CM_OK);
    return id;
}

static inline struct cm_code_id
add_code(struct way *way, const char *name, const struct cm_store *stores,
         uint32_t count, bool library)
{
    return add_code_at(way, "a.py", name, stores, count, library);
}

static inline struct cm_store
store(struct way *way, enum cm_store_kind kind, const char *name,
      const char *owner, uint32_t line)
{
    return (struct cm_store){.kind = kind,
                             .name = text(way, name),
                             .owner = text(way, owner),
                             .line = line};
}

static inline struct cm_site_id
add_site(struct way *way, const char *filename, bool library)
{
    struct cm_code code = {.filename = text(way, filename),
                           .name = text(way, "closure"),
                           .library = library};
    struct cm_frame frames[2] = {{.line = 1}, {.line = 2}};
    struct cm_site site = {.frames = frames, .frame_count = 2};
    struct cm_site_id id = {0};

    assert_int_equal(cm_records_add_code(way->records, &code, &frames[1].code),
                     CM_OK);
    assert_int_equal(cm_records_add_site(way->records, &site, &id), CM_OK);
    return id;
}

/* This code was running, at this line, when they were allocated. */
static inline void
set_running(struct way *way, struct cm_code_id code, uint32_t line)
{
    struct cm_frame frame = {.code = code, .line = line};
    struct cm_site site = {.frames = &frame, .frame_count = 1};

    assert_int_equal(
        cm_records_add_site(way->records, &site, &way->holding.site), CM_OK);
}

/* Whether it is emptied where these are all code; the way is freed. */
static inline bool
is_emptied_by_all(struct way *way, const struct cm_code_id *codes,
                  size_t count)
{
    way->holding.codes = codes;
    way->holding.code_count = count;
    bool result = cm_bound_is_emptied(&way->holding);
    way->holding.codes = NULL; /* the caller's */
    cm_records_free(way->records);
    return result;
}

/* And these all lines, of one function. */
static inline bool
is_emptied_in(struct way *way, const struct cm_store *stores, uint32_t count)
{
    struct cm_code_id code = add_code(way, "main", stores, count, false);
    return is_emptied_by_all(way, &code, 1);
}

static inline void
assert_advice(const struct way *way, const char *rule, const char *piece)
{
    struct cm_holding_advice advice;

    assert_int_equal(cm_holding_advise(&way->holding, &advice), CM_OK);
    assert_string_equal(advice.rule, rule);
    if (strstr(advice.text, piece) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", piece, advice.text);
    }
    cm_holding_advice_release(&advice);
}

#endif
