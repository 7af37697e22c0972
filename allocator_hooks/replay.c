/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Events from a text file, so that all that follows is tested and shown
 * without a GPU.  The file is read whole and checked whole before the first
 * event is told: a file with a bad line changes nothing.  Cost: two passes
 * over at most 64 MiB.  The format is in README.md of this folder. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../detector/alloc.h"
#include "caller.h"
#include "hook.h"

enum { MAX_BYTES = 64 << 20, MAX_LINE = 1024, MAX_WHY = 192 };

#define BLANK " \t\r"
#define VERBS "allocate, free, segment, segment_free or out_of_memory"

static char refusal[MAX_WHY]; /* of the last start() */

/* A line that is being read; it is not changed. */
struct cursor {
    const char *at, *end;
};

static const char *
refuse(size_t line, const char *expected)
{
    (void)snprintf(refusal, sizeof(refusal), "line %zu: expected %s", line,
                   expected);
    return refusal;
}

/* The next word; of length 0 at the end of the line. */
static struct cursor
next_word(struct cursor *line)
{
    while (line->at < line->end && strchr(BLANK, *line->at) != NULL) {
        line->at++;
    }
    struct cursor word = {line->at, line->at};
    while (word.end < line->end && strchr(BLANK, *word.end) == NULL) {
        word.end++;
    }
    line->at = word.end;
    return word;
}

static bool
is_word(struct cursor word, const char *text)
{
    size_t length = (size_t)(word.end - word.at);
    return length == strlen(text) && memcmp(word.at, text, length) == 0;
}

/* Digits alone, of this base. */
static bool
read_digits(struct cursor word, unsigned base, uint64_t *result)
{
    uint64_t value = 0;
    if (word.at == word.end) {
        return false;
    }
    for (const char *at = word.at; at < word.end; at++) {
        const char *digits = "0123456789abcdefABCDEF";
        const char *digit = *at != '\0' ? strchr(digits, *at) : NULL;
        if (digit == NULL) {
            return false;
        }
        uint64_t worth = (uint64_t)(digit - digits);
        worth = worth > 15 ? worth - 6 : worth;
        if (worth >= base || __builtin_mul_overflow(value, base, &value)
            || __builtin_add_overflow(value, worth, &value)) {
            return false;
        }
    }
    *result = value;
    return true;
}

/* 0x... or decimal. */
static bool
read_number(struct cursor word, uint64_t *result)
{
    if (word.end - word.at > 2 && word.at[0] == '0' && word.at[1] == 'x') {
        word.at += 2;
        return read_digits(word, 16, result);
    }
    return read_digits(word, 10, result);
}

static uint8_t
kind_of(struct cursor word)
{
    static const struct {
        const char *verb;
        enum cm_event_kind kind;
    } verbs[] = {
        {"allocate", CM_EVENT_ALLOCATE},
        {"free", CM_EVENT_FREE},
        {"segment", CM_EVENT_SEGMENT},
        {"segment_free", CM_EVENT_SEGMENT_FREE},
        {"out_of_memory", CM_EVENT_OUT_OF_MEMORY},
    };
    for (size_t at = 0; at < sizeof(verbs) / sizeof(verbs[0]); at++) {
        if (is_word(word, verbs[at].verb)) {
            return (uint8_t)verbs[at].kind;
        }
    }
    return 0;
}

/* -- key=value -- */

enum key { DEVICE, STREAM, THREAD, TIME, ALLOCATED, RESERVED, SITE, AWAITED };

static const struct {
    const char *key;
    uint64_t most;
} keys[] = {
    [DEVICE] = {"device", CM_MAX_DEVICES - 1},
    [STREAM] = {"stream", UINT64_MAX - 1},
    [THREAD] = {"thread", UINT32_MAX},
    [TIME] = {"time", UINT64_MAX},
    [ALLOCATED] = {"allocated", UINT64_MAX},
    [RESERVED] = {"reserved", UINT64_MAX},
    [SITE] = {"site", UINT32_MAX},
    [AWAITED] = {"awaited", 1},
};

enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

static void
set_value(struct cm_event *event, enum key key, uint64_t value)
{
    switch (key) {
    case DEVICE: event->device = (int16_t)value; break;
    case STREAM: event->stream = value; break;
    case THREAD: event->thread = (uint32_t)value; break;
    case TIME: event->time_ns = value; break;
    case ALLOCATED: event->allocated = value; break;
    case RESERVED: event->reserved = value; break;
    case SITE: event->site.index = (uint32_t)value; break;
    case AWAITED: event->awaited = value != 0; break;
    }
}

/* False: no such key, its value is none, or it was there before. */
static bool
read_pair(struct cursor word, struct cm_event *event, unsigned *seen)
{
    const char *equals = memchr(word.at, '=', (size_t)(word.end - word.at));
    if (equals == NULL) {
        return false;
    }
    struct cursor name = {word.at, equals}, value = {equals + 1, word.end};
    unsigned bit = 1u << KEYS;
    if (is_word(name, "library")) {
        event->library =
            cm_caller_named(value.at, (size_t)(value.end - value.at));
    }
    for (int key = 0; key < KEYS; key++) {
        uint64_t number;
        if (!is_word(name, keys[key].key)) {
            continue;
        }
        if (!read_number(value, &number) || number > keys[key].most) {
            return false;
        }
        set_value(event, (enum key)key, number);
        bit = 1u << key;
    }
    bool known = bit != 1u << KEYS || is_word(name, "library");
    bool again = (*seen & bit) != 0;
    *seen |= bit;
    return known && !again && value.at < value.end;
}

/* -- lines -- */

/* What was expected; NULL: *event is what the line says. */
static const char *
read_event(struct cursor line, struct cm_event *event)
{
    *event = (struct cm_event){.stream = CM_STREAM_UNKNOWN};
    event->kind = kind_of(next_word(&line));
    if (event->kind == 0) {
        return VERBS;
    }
    struct cursor word = next_word(&line);
    if (!(word.end - word.at > 2 && word.at[0] == '0' && word.at[1] == 'x')
        || !read_number(word, &event->address)) {
        return "an address such as 0x7f00";
    }
    if ((event->address == 0) != (event->kind == CM_EVENT_OUT_OF_MEMORY)) {
        return "0x0 for out_of_memory and only there";
    }
    if (!read_digits(next_word(&line), 10, &event->bytes)) {
        return "a number of bytes";
    }
    unsigned seen = 0;
    for (word = next_word(&line); word.at < word.end;
         word = next_word(&line)) {
        if (!read_pair(word, event, &seen)) {
            return "each once at most: device=0..63, stream=, thread=, time=, "
                   "allocated=, reserved=, site=, awaited=0..1, library=";
        }
    }
    return NULL;
}

static bool
says_nothing(struct cursor line)
{
    struct cursor word = next_word(&line);
    return word.at == word.end || *word.at == '#';
}

/* Reads every line, and tells each to the sink unless that is NULL.  The
 * refusal; NULL: all lines are good. */
static const char *
walk(const char *bytes, size_t length, const struct cm_sink *sink)
{
    const char *end = bytes + length;
    size_t number = 0;
    for (const char *at = bytes; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        struct cursor line = {at, stop != NULL ? stop : end};
        at = stop != NULL ? stop + 1 : end;
        number++;
        if (line.end - line.at > MAX_LINE
            || memchr(line.at, '\0', (size_t)(line.end - line.at)) != NULL) {
            return refuse(number, "text of at most 1024 bytes");
        }
        if (stop == NULL) { /* half a number is a number as well */
            return refuse(number, "the end of the line: the file ends within "
                                  "this line");
        }
        if (says_nothing(line)) {
            continue;
        }
        struct cm_event event;
        const char *expected = read_event(line, &event);
        if (expected != NULL) {
            return refuse(number, expected);
        }
        if (sink != NULL) {
            sink->event(sink->context, &event);
        }
    }
    return NULL;
}

/* -- the file -- */

/* Whether `room` bytes were there and no more. */
static bool
read_all(int file, char *bytes, size_t room)
{
    size_t have = 0;
    while (have < room) {
        ssize_t got = read(file, bytes + have, room - have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        have += (size_t)got;
    }
    return true;
}

static const char *
replay(int file, const struct cm_sink *sink)
{
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        return "replay: this is no file of events";
    }
    if (status.st_size > MAX_BYTES) {
        return "replay: the file of events has more than 64 MiB";
    }
    size_t length = (size_t)status.st_size;
    char *bytes = cm_alloc(length);
    const char *why = "replay: no memory for the file of events";
    if (bytes != NULL) {
        why = read_all(file, bytes, length)
                  ? walk(bytes, length, NULL)
                  : "replay: the file of events could not be read";
    }
    if (why == NULL) {
        why = walk(bytes, length, sink);
    }
    cm_free(bytes);
    return why;
}

static bool
start(const struct cm_sink *sink, const char *where, const char **why)
{
    /* Not waiting for a writer, should it be a pipe. */
    int file =
        where != NULL ? open(where, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    const char *refused = "replay: the file of events could not be opened";
    if (file >= 0) {
        refused = cm_caller_start() == CM_OK
                      ? replay(file, sink)
                      : "replay: no memory for the names of libraries";
        close(file);
    }
    if (refused != NULL) {
        *why = refused;
    }
    return refused == NULL;
}

static void
nothing(void)
{
}

static uint64_t
lost(void)
{
    return 0;
}

const struct cm_hook_kind cm_replay = {
    .name = "replay",
    .start = start,
    .stop = nothing,
    .flush = nothing,
    .lost = lost,
};
