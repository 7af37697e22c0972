/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "pass.h"

#include "phrase.h"

enum { UNIT_MASK = (1 << 26) - 1 };

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
            .unit = (uint32_t)pass->unit & UNIT_MASK};
    }
}

void
cm_pass_add_key(struct cm_pass *pass, enum cm_store_kind kind, PyObject *name,
                const struct pushed *of, const struct pushed *key)
{
    uint32_t before = pass->count;
    cm_pass_add(pass, kind, name, of->name, of->within);
    if (pass->count > before && !key->attribute) {
        pass->stores[before].key = cm_pass_text(pass, key->name);
    }
}

void
cm_pass_add_value(struct cm_pass *pass, enum cm_store_kind kind,
                  PyObject *name, PyObject *owner, struct pushed value)
{
    uint32_t before = pass->count;
    cm_pass_add(pass, kind, name, owner, NULL);
    if (pass->count > before) {
        pass->stores[before].constant = value.constant != NULL && value.fresh;
        pass->stores[before].empty = value.empty && value.fresh;
        pass->stores[before].made = value.made;
        pass->stores[before].trimmed =
            value.part && (value.of == NULL || value.of == name);
        if (kind == CM_STORE_LOCAL) {
            cm_spans_set(&pass->spans, &pass->stores[before], name);
        }
    }
}
