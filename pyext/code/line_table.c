/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include "line_table.h"

void
cm_line_table_init(struct cm_line_table *self, const PyCodeObject *code)
{
    const uint8_t *bytes =
        (const uint8_t *)PyBytes_AS_STRING(code->co_linetable);
    *self = (struct cm_line_table){
        .next = bytes,
        .end = bytes + PyBytes_GET_SIZE(code->co_linetable),
        .line = code->co_firstlineno};
}

static int
read_signed(const uint8_t **next, const uint8_t *end)
{
    unsigned value = 0;
    for (unsigned shift = 0; *next < end && shift < 30; shift += 6) {
        uint8_t byte = *(*next)++;
        value |= (unsigned)(byte & 63) << shift;
        if ((byte & 64) == 0) {
            break;
        }
    }
    int size = (int)(value >> 1);
    return value & 1 ? -size : size;
}

uint32_t
cm_line_table_at(struct cm_line_table *self, Py_ssize_t unit)
{
    while (self->until <= unit && self->next < self->end) {
        uint8_t first = *self->next++;
        int kind = first >> 3 & 15;
        self->until += (first & 7) + 1;
        self->known = kind != 15;
        if (kind == 13 || kind == 14) {
            self->line += read_signed(&self->next, self->end);
        }
        else if (kind >= 10 && kind <= 12) {
            self->line += kind - 10;
        }
        while (self->next < self->end && (*self->next & 128) == 0) {
            self->next++;
        }
    }
    return self->known && self->line > 0 ? (uint32_t)self->line : 0;
}
