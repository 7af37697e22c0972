/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Characters are encoded as UTF-8 one by one from the string's own array
 * (PEP 393), so that no cache is filled in the user's objects.  Cost: a few
 * nanoseconds a character. */

#include "phrase.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
add_bytes(struct cm_phrase *self, const char *bytes, size_t length)
{
    if (length <= CM_PHRASE_BYTES - self->length) {
        memcpy(self->bytes + self->length, bytes, length);
        self->length += length;
    }
}

void
cm_phrase_add(struct cm_phrase *self, const char *text)
{
    add_bytes(self, text, strlen(text));
}

void
cm_phrase_add_number(struct cm_phrase *self, long long number)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%lld", number);
    cm_phrase_add(self, digits);
}

static void
add_character(struct cm_phrase *self, Py_UCS4 c)
{
    unsigned char out[4];
    size_t length;
    if (c >= 0xDC80 && c <= 0xDCFF) {
        out[0] = (unsigned char)(c - 0xDC00);
        length = 1;
    }
    else if (c < 0x80) {
        out[0] = (unsigned char)c;
        length = 1;
    }
    else if (c < 0x800) {
        out[0] = (unsigned char)(0xC0 | c >> 6);
        out[1] = (unsigned char)(0x80 | (c & 0x3F));
        length = 2;
    }
    else if (c < 0x10000) {
        Py_UCS4 valid = c >= 0xD800 && c <= 0xDFFF ? 0xFFFD : c;
        out[0] = (unsigned char)(0xE0 | valid >> 12);
        out[1] = (unsigned char)(0x80 | (valid >> 6 & 0x3F));
        out[2] = (unsigned char)(0x80 | (valid & 0x3F));
        length = 3;
    }
    else {
        out[0] = (unsigned char)(0xF0 | c >> 18);
        out[1] = (unsigned char)(0x80 | (c >> 12 & 0x3F));
        out[2] = (unsigned char)(0x80 | (c >> 6 & 0x3F));
        out[3] = (unsigned char)(0x80 | (c & 0x3F));
        length = 4;
    }
    add_bytes(self, (const char *)out, length);
}

static bool
is_readable(PyObject *string)
{
    if (string == NULL || !PyUnicode_Check(string)) {
        return false;
    }
#if PY_VERSION_HEX < 0x030C0000
    return PyUnicode_IS_READY(string);
#else
    return true;
#endif
}

void
cm_phrase_add_str(struct cm_phrase *self, PyObject *string, size_t max_chars)
{
    if (!is_readable(string)) {
        cm_phrase_add(self, "?");
        return;
    }
    size_t length = (size_t)PyUnicode_GET_LENGTH(string);
    size_t shown = length < max_chars ? length : max_chars;
    for (size_t i = 0; i < shown; i++) {
        add_character(self, PyUnicode_READ_CHAR(string, (Py_ssize_t)i));
    }
    if (shown < length) {
        cm_phrase_add(self, "...");
    }
}

static void
add_escaped(struct cm_phrase *self, Py_UCS4 c, bool is_text)
{
    char code[8];
    if (c == '\\' || c == '\'') {
        char escaped[2] = {'\\', (char)c};
        add_bytes(self, escaped, 2);
    }
    else if (c == '\n') {
        cm_phrase_add(self, "\\n");
    }
    else if (c < 0x20 || c == 0x7F || (!is_text && c > 0x7F)) {
        snprintf(code, sizeof(code), "\\x%02x", (unsigned)c & 0xFF);
        cm_phrase_add(self, code);
    }
    else {
        add_character(self, c);
    }
}

/* Of a long one the end says more: a parameter's name has the module's path
 * before it. */
static void
add_quoted_str(struct cm_phrase *self, PyObject *string)
{
    enum { FIRST = 12 };
    Py_ssize_t length = is_readable(string) ? PyUnicode_GET_LENGTH(string) : 0;
    Py_ssize_t left_out = length - CM_PHRASE_VALUE_CHARS;
    cm_phrase_add(self, "'");
    for (Py_ssize_t i = 0; i < length; i++) {
        if (left_out > 0 && i == FIRST) {
            cm_phrase_add(self, "...");
            i += left_out;
        }
        add_escaped(self, PyUnicode_READ_CHAR(string, i), true);
    }
    cm_phrase_add(self, "'");
}

static void
add_quoted_bytes(struct cm_phrase *self, PyObject *object)
{
    Py_ssize_t length = PyBytes_GET_SIZE(object);
    cm_phrase_add(self, "b'");
    for (Py_ssize_t i = 0; i < length && i < CM_PHRASE_VALUE_CHARS; i++) {
        unsigned char c = (unsigned char)PyBytes_AS_STRING(object)[i];
        add_escaped(self, c, false);
    }
    cm_phrase_add(self, length > CM_PHRASE_VALUE_CHARS ? "...'" : "'");
}

static void
add_int(struct cm_phrase *self, PyObject *object)
{
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) {
        cm_phrase_add(self, overflow < 0 ? "-..." : "...");
    }
    else {
        cm_phrase_add_number(self, value);
    }
}

/* The shortest digits that read back as the same number, as repr() does. */
static void
add_float(struct cm_phrase *self, double value)
{
    char digits[40] = "";
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof(digits) - 2, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) {
            break;
        }
    }
    for (char *c = digits; *c != '\0'; c++) {
        if (*c == ',') {
            *c = '.'; /* the locale's */
        }
    }
    if (strpbrk(digits, ".en") == NULL) {
        strcat(digits, ".0");
    }
    cm_phrase_add(self, digits);
}

static bool
is_name(PyObject *string)
{
    Py_ssize_t length = is_readable(string) ? PyUnicode_GET_LENGTH(string) : 0;
    bool is = length > 0;
    for (Py_ssize_t i = 0; i < length && is; i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(string, i);
        is = Py_UNICODE_ISALNUM(c) || c == '_' || (c >= '-' && c <= ':');
    }
    return is;
}

bool
cm_phrase_add_value(struct cm_phrase *self, PyObject *object, bool texts)
{
    if (object == Py_None) {
        cm_phrase_add(self, "None");
    }
    else if (object == Py_True || object == Py_False) {
        cm_phrase_add(self, object == Py_True ? "True" : "False");
    }
    else if (PyLong_CheckExact(object)) {
        add_int(self, object);
    }
    else if (PyFloat_CheckExact(object)) {
        add_float(self, PyFloat_AS_DOUBLE(object));
    }
    else if (PyUnicode_CheckExact(object) && (texts || is_name(object))) {
        add_quoted_str(self, object);
    }
    else if (PyBytes_CheckExact(object) && texts) {
        add_quoted_bytes(self, object);
    }
    else {
        return false;
    }
    return true;
}

struct cm_text_id
cm_phrase_intern(const struct cm_phrase *self, struct cm_texts *texts)
{
    struct cm_text_id id = {0};
    if (cm_texts_add(texts, self->bytes, self->length, &id) != CM_OK) {
        id = (struct cm_text_id){0};
    }
    return id;
}

const char *
cm_str_utf8(PyObject *string)
{
    const char *text =
        PyUnicode_Check(string) ? PyUnicode_AsUTF8(string) : NULL;
    if (text == NULL) {
        PyErr_Clear();
    }
    return text != NULL ? text : "";
}

bool
cm_str_is(PyObject *object, const char *text)
{
    if (object == NULL || !PyUnicode_CheckExact(object) || !is_readable(object)
        || !PyUnicode_IS_ASCII(object)) {
        return false;
    }
    size_t length = strlen(text);
    return (size_t)PyUnicode_GET_LENGTH(object) == length
           && memcmp(PyUnicode_DATA(object), text, length) == 0;
}

bool
cm_str_equals(PyObject *one, PyObject *other)
{
    return one == other
           || (one != NULL && other != NULL && PyUnicode_CheckExact(one)
               && PyUnicode_CheckExact(other)
               && PyUnicode_Compare(one, other) == 0);
}

bool
cm_str_is_one_of(PyObject *object, const char *const *texts)
{
    while (*texts != NULL && !cm_str_is(object, *texts)) {
        texts++;
    }
    return *texts != NULL;
}

bool
cm_str_any_is_one_of(PyObject *tuple, const char *const *texts)
{
    bool found = false;
    for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(tuple); i++) {
        found = cm_str_is_one_of(PyTuple_GET_ITEM(tuple, i), texts);
    }
    return found;
}

bool
cm_str_is_identifier(PyObject *string)
{
    if (!is_readable(string) || !PyUnicode_IS_ASCII(string)) {
        return false;
    }
    Py_ssize_t length = PyUnicode_GET_LENGTH(string);
    const unsigned char *bytes = PyUnicode_DATA(string);
    bool is = length > 0 && length <= CM_PHRASE_VALUE_CHARS
              && !(bytes[0] >= '0' && bytes[0] <= '9');
    for (Py_ssize_t i = 0; i < length && is; i++) {
        unsigned char c = bytes[i] | 0x20; /* letters become small */
        is = (c >= 'a' && c <= 'z') || bytes[i] == '_'
             || (bytes[i] >= '0' && bytes[i] <= '9');
    }
    return is;
}
