/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Suppression rules.  A finding is shown to the rules as a row of names, one
 * call each, from a heap in the traced process or from a document elsewhere;
 * so both sides silence the same.  Cost: rules times names. */
#include "suppress.h"

#include <fnmatch.h>
#include <string.h>

#include "../detector/alloc.h"
#include "file.h"
#include "growth.h"
#include "libraries.h"

#define MAX_NAMED_LINES 10
#define BLANK " \t\r"

void
cm_suppressions_release(struct cm_suppressions *self)
{
    for (size_t i = 0; i < self->count; i++) {
        cm_free(self->items[i].glob);
    }
    cm_free(self->items);
    *self = (struct cm_suppressions){0};
}

/* The digits as the top of a fingerprint; false when they are none. */
static bool
parse_fingerprint(const char *digits, struct cm_suppression *rule)
{
    size_t count = strspn(digits, "0123456789abcdefABCDEF");

    if (count == 0 || count > 16 || digits[count] != '\0') {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned value = (unsigned char)digits[i];

        value = value <= '9' ? value - '0' : (value | 0x20) - 'a' + 10;
        rule->prefix |= (uint64_t)value << (60 - 4 * i);
        rule->mask |= (uint64_t)0xF << (60 - 4 * i);
    }
    return true;
}

static enum cm_suppression_kind
kind_of(const char *word)
{
    static const char *const words[] = {"fingerprint", "type", "file",
                                        "function"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(word, words[i]) == 0) {
            return (enum cm_suppression_kind)(i + 1);
        }
    }
    return 0;
}

/* Cuts white space off both ends, in place. */
static char *
trim(char *text)
{
    size_t length;

    text += strspn(text, BLANK);
    length = strlen(text);
    while (length > 0 && strchr(BLANK, text[length - 1]) != NULL) {
        text[--length] = '\0';
    }
    return text;
}

/* A comment begins a line or stands behind a blank. */
static void
cut_comment(char *line)
{
    for (char *at = strchr(line, '#'); at != NULL; at = strchr(at + 1, '#')) {
        if (at == line || strchr(BLANK, at[-1]) != NULL) {
            *at = '\0';
            return;
        }
    }
}

/* CM_BAD_INPUT for what is no rule; nothing for blank lines and comments. */
static enum cm_status
add_line(struct cm_suppressions *self, char *line)
{
    struct cm_suppression rule = {0};
    char *glob;
    enum cm_status status;

    cut_comment(line);
    line = trim(line);
    if (line[0] == '\0') {
        return CM_OK;
    }
    glob = line + strcspn(line, BLANK);
    if (*glob != '\0') {
        *glob++ = '\0';
        glob = trim(glob);
    }
    rule.kind = kind_of(line);
    if (rule.kind == 0 || glob[0] == '\0'
        || (rule.kind == CM_SUPPRESS_FINGERPRINT
            && !parse_fingerprint(glob, &rule))) {
        return CM_BAD_INPUT;
    }
    if (self->count == CM_SUPPRESSIONS_MAX) {
        return CM_BAD_INPUT;
    }
    status = cm_grow((void **)&self->items, &self->capacity, self->count + 1,
                     sizeof(rule));
    if (status == CM_OK && rule.kind != CM_SUPPRESS_FINGERPRINT) {
        rule.glob = cm_strdup(glob);
        status = rule.glob != NULL ? CM_OK : CM_NO_MEMORY;
    }
    if (status == CM_OK) {
        self->items[self->count++] = rule;
    }
    return status;
}

static void
name_line(struct cm_buffer *problems, size_t *bad, size_t line)
{
    *bad += 1;
    if (*bad <= MAX_NAMED_LINES) {
        cm_buffer_addf(problems, "%s%zu", *bad == 1 ? "line " : ", ", line);
    }
}

static void
end_problems(struct cm_buffer *problems, size_t bad)
{
    if (bad > MAX_NAMED_LINES) {
        cm_buffer_addf(problems, " and %zu more", bad - MAX_NAMED_LINES);
    }
    if (bad > 0) {
        cm_buffer_addf(problems,
                       ": expected fingerprint, type, file or function and "
                       "what it is");
    }
}

enum cm_status
cm_suppressions_add(struct cm_suppressions *self, const char *text,
                    struct cm_buffer *problems)
{
    char *copy = cm_strdup(text), *line = copy;
    enum cm_status status = copy != NULL ? CM_OK : CM_NO_MEMORY;
    size_t number = 0, bad = 0;

    while (status == CM_OK && line != NULL) {
        char *end = strchr(line, '\n');

        if (end != NULL) {
            *end++ = '\0';
        }
        number++;
        status = add_line(self, line);
        if (status == CM_BAD_INPUT) {
            name_line(problems, &bad, number);
            status = CM_OK;
        }
        line = end;
    }
    end_problems(problems, bad);
    cm_free(copy);
    return status == CM_OK ? cm_buffer_status(problems) : status;
}

enum cm_status
cm_suppressions_read(struct cm_suppressions *self, const char *path,
                     struct cm_buffer *problems)
{
    struct cm_buffer text = {.max_bytes = (size_t)16 << 20}, lines = {0};
    enum cm_status status = cm_file_read(path, &text);

    if (status == CM_OK) {
        status = cm_suppressions_add(self, cm_buffer_text(&text), &lines);
    }
    if (status == CM_OK && lines.length > 0) {
        cm_buffer_addf(problems, "%s: %s", path, lines.bytes);
        status = cm_buffer_status(problems);
    }
    cm_buffer_release(&lines);
    cm_buffer_release(&text);
    return status;
}

/* Whole, or from a component on: "vendor/a.py" of "/x/vendor/a.py". */
static bool
file_matches(const char *glob, const char *name)
{
    while (fnmatch(glob, name, 0) != 0) {
        name = strchr(name, '/');
        if (name == NULL) {
            return false;
        }
        name++;
    }
    return true;
}

/* Classes of the program itself are told without their module. */
static bool
type_matches(const char *glob, const char *name)
{
    static const char program[] = "__main__.";
    size_t length = sizeof(program) - 1;

    return cm_glob_matches(glob, name)
           || (strncmp(glob, program, length) == 0
               && fnmatch(glob + length, name, 0) == 0);
}

static bool
matches(const struct cm_suppression *rule, const char *name)
{
    switch (rule->kind) {
    case CM_SUPPRESS_FILE: return file_matches(rule->glob, name);
    case CM_SUPPRESS_TYPE: return type_matches(rule->glob, name);
    case CM_SUPPRESS_FUNCTION: return cm_glob_matches(rule->glob, name);
    case CM_SUPPRESS_FINGERPRINT: break;
    }
    return false;
}

/* Whether a rule of this kind matches the name. */
static bool
names(const struct cm_suppressions *self, enum cm_suppression_kind kind,
      const char *name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->items[i].kind == kind && matches(&self->items[i], name)) {
            return true;
        }
    }
    return false;
}

static bool
names_fingerprint(const struct cm_suppressions *self, uint64_t fingerprint)
{
    for (size_t i = 0; i < self->count; i++) {
        const struct cm_suppression *rule = &self->items[i];

        if (rule->kind == CM_SUPPRESS_FINGERPRINT
            && (fingerprint & rule->mask) == rule->prefix) {
            return true;
        }
    }
    return false;
}

static bool
names_frame(const struct cm_suppressions *self, const char *filename,
            const char *function)
{
    return names(self, CM_SUPPRESS_FILE, filename)
           || names(self, CM_SUPPRESS_FUNCTION, function);
}

static bool
names_code(const struct cm_suppressions *self,
           const struct cm_records *records, struct cm_code_id id)
{
    const struct cm_code *code = cm_records_code(records, id);

    return names_frame(self, cm_records_text(records, code->filename),
                       cm_records_text(records, code->qualified_name));
}

/* The first frame of the user's on the stack that made a storage. */
static bool
names_site(const struct cm_suppressions *self,
           const struct cm_records *records, struct cm_site_id id)
{
    const struct cm_site *site = cm_records_site(records, id);

    for (uint32_t i = 0; i < site->frame_count; i++) {
        if (!cm_records_code(records, site->frames[i].code)->library) {
            return names_code(self, records, site->frames[i].code);
        }
    }
    return false;
}

static bool
names_finding(const struct cm_suppressions *self, const struct cm_heap *heap,
              const struct cm_records *records,
              const struct cm_finding *finding)
{
    bool named = names_fingerprint(self, finding->fingerprint);

    for (size_t i = 0; !named && i < finding->component_count; i++) {
        const struct cm_type *type =
            cm_records_type(records, heap->nodes[finding->component[i]].type);

        named = names(self, CM_SUPPRESS_TYPE,
                      cm_records_text(records, type->name));
    }
    for (uint32_t i = 0; !named && i < finding->place_count; i++) {
        named = names_code(self, records, finding->places[i].code);
    }
    for (size_t i = 0; !named && i < finding->payload_count; i++) {
        named =
            names_site(self, records, heap->nodes[finding->payload[i]].site);
    }
    for (size_t i = 0; !named && i < finding->freed_count; i++) {
        named =
            names_site(self, records, heap->storages[finding->freed[i]].site);
    }
    return named;
}

size_t
cm_suppressions_apply(const struct cm_suppressions *self,
                      const struct cm_heap *heap,
                      const struct cm_records *records,
                      struct cm_findings *findings)
{
    size_t kept = 0, count = findings->count;

    if (self->count == 0) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        struct cm_finding finding = findings->items[i];

        if (!names_finding(self, heap, records, &finding)) {
            findings->items[kept++] = finding;
            continue;
        }
        findings->dead_bytes -= finding.bytes_total < findings->dead_bytes
                                    ? finding.bytes_total
                                    : findings->dead_bytes;
        cm_finding_release(&finding);
    }
    findings->count = kept;
    return count - kept;
}

static bool
names_leak_frame(const struct cm_suppressions *self,
                 const struct cm_leak *leak, const struct cm_leak_frame *frame)
{
    return names_frame(self, cm_leak_text(leak, frame->filename),
                       cm_leak_text(leak, frame->name));
}

static bool
names_leak_site(const struct cm_suppressions *self, const struct cm_leak *leak,
                uint32_t id)
{
    const struct cm_leak_site *site =
        id != 0 ? cm_leak_site_at(leak, id) : NULL;

    return site != NULL && site->user_frame >= 0
           && names_leak_frame(self, leak, &site->frames[site->user_frame]);
}

static bool
names_storage(const struct cm_suppressions *self, const struct cm_leak *leak,
              const struct cm_leak_storage *storage)
{
    bool named = names_leak_site(self, leak, storage->site);

    for (size_t i = 0; !named && i < storage->vertex_count; i++) {
        named = names_leak_site(
            self, leak, cm_leak_vertex_at(leak, storage->vertices[i])->site);
    }
    return named;
}

static bool
names_cycle(const struct cm_suppressions *self, const struct cm_leak *leak,
            const struct cm_leak_cycle *cycle)
{
    const struct cm_leak_edge *cut = cm_leak_known_cut(leak, cycle);
    bool named = names_fingerprint(self, cycle->fingerprint);

    for (size_t i = 0; !named && i < cycle->vertex_count; i++) {
        named = names(
            self, CM_SUPPRESS_TYPE,
            cm_leak_text(leak,
                         cm_leak_vertex_at(leak, cycle->vertices[i])->type));
    }
    for (size_t i = 0; !named && cut != NULL && i < cut->made_at_count; i++) {
        named = names_leak_frame(self, leak, &cut->made_at[i]);
    }
    for (size_t i = 0; !named && i < cycle->payload_count; i++) {
        named = names_storage(self, leak,
                              cm_leak_storage_at(leak, cycle->payload[i]));
    }
    return named;
}

/* Types are those of cycles; a growth is named by its lines, and with the dead
 * cycle that alone holds it. */
static bool
names_growth(const struct cm_suppressions *self, const struct cm_leak *leak,
             const struct cm_leak_growth *growth)
{
    const struct cm_leak_cycle *cycle = cm_growth_cycle(leak, growth);
    bool named = names_fingerprint(self, growth->fingerprint)
                 || names_leak_site(self, leak, growth->site)
                 || (cycle != NULL && names_cycle(self, leak, cycle));

    for (size_t i = 0; !named && i < growth->made_at_count; i++) {
        named = names_leak_frame(self, leak, &growth->made_at[i]);
    }
    return named;
}

size_t
cm_suppressions_apply_growth(const struct cm_suppressions *self,
                             struct cm_leak *leak)
{
    size_t kept = 0, told = 0;

    for (size_t i = 0; i < leak->growth_count; i++) {
        struct cm_leak_growth growth = leak->growth[i];

        if (names_growth(self, leak, &growth)) {
            told += cm_growth_is_told(cm_growth_verdict(leak, &growth));
            cm_leak_growth_release(&growth);
        }
        else {
            leak->growth[kept++] = growth;
        }
    }
    leak->growth_count = kept;
    return told;
}

static size_t
apply_to_cycles(const struct cm_suppressions *self, struct cm_leak *leak)
{
    size_t kept = 0, count = leak->cycle_count;

    for (size_t i = 0; i < count; i++) {
        struct cm_leak_cycle cycle = leak->cycles[i];

        if (names_cycle(self, leak, &cycle)) {
            cm_leak_cycle_release(&cycle);
        }
        else {
            leak->cycles[kept++] = cycle;
        }
    }
    leak->cycle_count = kept;
    return count - kept;
}

size_t
cm_suppressions_apply_leak(const struct cm_suppressions *self,
                           struct cm_leak *leak)
{
    size_t told = cm_suppressions_apply_growth(self, leak);

    return told + apply_to_cycles(self, leak);
}
