/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Keys and values of JSON, as RFC 8259 has them, into a buffer.  Each call
 * puts the comma that parts it from what stands before. */
#include "json_write.h"

#include <inttypes.h>

/* 2^50: its thousandths are whole numbers of 64 bits. */
#define MAX_REAL 1125899906842624.0

void
cm_json_add_string(struct cm_json_writer *self, const char *text)
{
    struct cm_buffer *out = self->out;
    const char *plain = text;

    cm_buffer_add_char(out, '"');
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7F) {
            continue;
        }
        cm_buffer_add(out, plain, (size_t)(text - plain));
        plain = text + 1;
        if (c == '"' || c == '\\') {
            cm_buffer_addf(out, "\\%c", c);
        }
        else {
            cm_buffer_addf(out, "\\u%04x", c);
        }
    }
    cm_buffer_add(out, plain, (size_t)(text - plain));
    cm_buffer_add_char(out, '"');
}

/* In decimal.  printf, which formats twice here, took half of the writer's
 * time, and a page for an observer is made inside the collection. */
void
cm_json_add_whole(struct cm_json_writer *self, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    cm_buffer_add(self->out, digits + at, sizeof(digits) - at);
}

/* Separates it from what stands before, and opens the value of `key`. */
void
cm_json_add_key(struct cm_json_writer *self, const char *key)
{
    cm_buffer_add_text(self->out, self->comma ? ",\"" : "\"");
    cm_buffer_add_text(self->out, key);
    cm_buffer_add_text(self->out, "\":");
    self->comma = true;
}

void
cm_json_add_text(struct cm_json_writer *self, const char *key,
                 struct cm_text_id text)
{
    cm_json_add_key(self, key);
    cm_json_add_string(self, cm_leak_text(self->leak, text));
}

/* As add_text, nothing for an empty text. */
void
cm_json_add_some_text(struct cm_json_writer *self, const char *key,
                      struct cm_text_id text)
{
    if (cm_leak_text(self->leak, text)[0] != '\0') {
        cm_json_add_text(self, key, text);
    }
}

void
cm_json_add_number(struct cm_json_writer *self, const char *key,
                   uint64_t number)
{
    cm_json_add_key(self, key);
    cm_json_add_whole(self, number);
}

/* Nothing when it is not known. */
void
cm_json_add_some_number(struct cm_json_writer *self, const char *key,
                        uint64_t number)
{
    if (number != CM_LEAK_UNKNOWN) {
        cm_json_add_number(self, key, number);
    }
}

/* null when it is not known. */
void
cm_json_add_known(struct cm_json_writer *self, const char *key, int64_t number)
{
    cm_json_add_key(self, key);
    if (number < 0) {
        cm_buffer_add_text(self->out, "null");
    }
    else {
        cm_json_add_whole(self, (uint64_t)number);
    }
}

/* A JSON number is a double: addresses and fingerprints are texts. */
void
cm_json_add_hex(struct cm_json_writer *self, const char *key, uint64_t number)
{
    cm_json_add_key(self, key);
    cm_buffer_addf(self->out, "\"0x%" PRIx64 "\"", number);
}

void
cm_json_add_ids(struct cm_json_writer *self, const char *key,
                const uint32_t *ids, size_t count)
{
    cm_json_add_key(self, key);
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < count; i++) {
        cm_buffer_add_text(self->out, i > 0 ? "," : "");
        cm_json_add_whole(self, ids[i]);
    }
    cm_buffer_add_char(self->out, ']');
}

void
cm_json_open_array(struct cm_json_writer *self, const char *key)
{
    cm_buffer_add_text(self->out, ",\n");
    self->comma = false;
    cm_json_add_key(self, key);
    cm_buffer_add_char(self->out, '[');
    self->comma = false;
}

void
cm_json_close_array(struct cm_json_writer *self)
{
    cm_buffer_add_char(self->out, ']');
    self->comma = true;
}

/* Opens an item of one of the document's arrays, on a line of its own. */
void
cm_json_open_item(struct cm_json_writer *self, size_t position)
{
    cm_buffer_add_text(self->out, position > 0 ? ",\n{" : "\n{");
    self->comma = false;
}

void
cm_json_close_item(struct cm_json_writer *self)
{
    cm_buffer_add_char(self->out, '}');
    self->comma = true;
}

void
cm_json_add_frames(struct cm_json_writer *self, const char *key,
                   const struct cm_leak_frame *frames, size_t count,
                   bool places)
{
    cm_json_add_key(self, key);
    cm_buffer_add_char(self->out, '[');
    for (size_t i = 0; i < count; i++) {
        const struct cm_leak_frame *frame = &frames[i];

        cm_buffer_add_text(self->out, i > 0 ? ",{" : "{");
        self->comma = false;
        cm_json_add_text(self, "filename", frame->filename);
        cm_json_add_number(self, "line", frame->line);
        cm_json_add_text(self, "name", frame->name);
        cm_json_add_text(self, "source", frame->source);
        cm_json_add_some_text(self, "before", frame->before);
        cm_json_add_some_text(self, "after", frame->after);
        if (frame->library) {
            cm_json_add_key(self, "library");
            cm_buffer_add_text(self->out, "true");
        }
        if (places) {
            cm_json_add_key(self, "certain");
            cm_buffer_add_text(self->out, frame->certain ? "true" : "false");
        }
        cm_buffer_add_char(self->out, '}');
        self->comma = true;
    }
    cm_buffer_add_char(self->out, ']');
}

/* Opens an item of an array within an item. */
void
cm_json_open_part(struct cm_json_writer *self, size_t position)
{
    cm_buffer_add_text(self->out, position > 0 ? ",{" : "{");
    self->comma = false;
}

void
cm_json_add_fingerprint(struct cm_json_writer *self, uint64_t fingerprint)
{
    cm_buffer_addf(self->out, "\"%016" PRIx64 "\"", fingerprint);
}

void
cm_json_add_library(struct cm_json_writer *self, struct cm_text_id package,
                    struct cm_text_id link)
{
    cm_json_add_key(self, "library");
    if (package.index == 0) {
        cm_buffer_add_text(self->out, "null");
        return;
    }
    cm_buffer_add_char(self->out, '{');
    self->comma = false;
    cm_json_add_text(self, "package", package);
    cm_json_add_text(self, "link", link);
    cm_json_close_item(self);
}

void
cm_json_add_flag(struct cm_json_writer *self, const char *key, bool flag)
{
    if (flag) {
        cm_json_add_key(self, key);
        cm_buffer_add_text(self->out, "true");
    }
}

/* printf's comma depends on the user's locale. */
void
cm_json_add_real_value(struct cm_json_writer *self, double number)
{
    double size = number < 0 ? -number : number;
    bool finite = size <= MAX_REAL;
    uint64_t thousandths = finite ? (uint64_t)(size * 1000 + 0.5) : 0;

    if (number < 0 && thousandths > 0) {
        cm_buffer_add_char(self->out, '-');
    }
    cm_json_add_whole(self, thousandths / 1000);
    thousandths %= 1000;
    if (thousandths > 0) {
        cm_buffer_addf(self->out, ".%03" PRIu64, thousandths);
    }
}

void
cm_json_add_real(struct cm_json_writer *self, const char *key, double number)
{
    cm_json_add_key(self, key);
    cm_json_add_real_value(self, number);
}
