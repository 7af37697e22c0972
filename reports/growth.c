/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Sentences about growth.  Numbers are rounded to what a person needs: an
 * estimate has three digits at most.  Linear in what is said. */
#include "growth.h"

#include <inttypes.h>
#include <math.h> // fabs()
#include <string.h>

#include "../detector/size.h"

static const char *const verdicts[] = {
    [CM_GROWTH_NO_VERDICT] = "",         [CM_GROWTH_OK] = "ok",
    [CM_GROWTH_SETTLED] = "settled",     [CM_GROWTH_GROWING] = "growing",
    [CM_GROWTH_LINGERING] = "lingering", [CM_GROWTH_LEAK] = "leak",
};

enum cm_growth_verdict
cm_growth_verdict(const struct cm_leak *leak,
                  const struct cm_leak_growth *growth)
{
    const char *name = cm_leak_text(leak, growth->verdict);
    int verdict = CM_GROWTH_LEAK;

    while (verdict > 0 && strcmp(verdicts[verdict], name) != 0) {
        verdict--;
    }
    return (enum cm_growth_verdict)verdict;
}

const char *
cm_growth_verdict_name(enum cm_growth_verdict verdict)
{
    return verdicts[verdict];
}

bool
cm_growth_is_fault(enum cm_growth_verdict verdict)
{
    return verdict == CM_GROWTH_LEAK || verdict == CM_GROWTH_LINGERING;
}

bool
cm_growth_is_told(enum cm_growth_verdict verdict)
{
    return cm_growth_is_fault(verdict) || verdict == CM_GROWTH_GROWING;
}

/* ===== fingerprint ====================================================== */

/* FNV-1a; white space counts as nothing, so that moved lines stay equal. */
static uint64_t
hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr(" \t\r\n", *text) == NULL) {
            hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
        }
    }
    return (hash ^ 0xFF) * UINT64_C(0x100000001b3); /* ends the text */
}

static uint64_t
hash_site(const struct cm_leak *leak, const struct cm_leak_site *site,
          uint64_t hash)
{
    bool users = site->user_frame >= 0;

    for (size_t i = 0; i < site->frame_count; i++) {
        if (!users || !site->frames[i].library) {
            hash = hash_text(hash, cm_leak_text(leak, site->frames[i].name));
        }
    }
    return users ? hash_text(
               hash, cm_leak_text(leak, site->frames[site->user_frame].source))
                 : hash;
}

/* The last steps of MurmurHash3: findings are named by the first digits. */
static uint64_t
spread(uint64_t hash)
{
    hash ^= hash >> 33;
    hash *= UINT64_C(0xff51afd7ed558ccd);
    hash ^= hash >> 33;
    hash *= UINT64_C(0xc4ceb9fe1a85ec53);
    hash ^= hash >> 33;
    return hash != 0 ? hash : 1;
}

uint64_t
cm_growth_fingerprint(const struct cm_leak *leak,
                      const struct cm_leak_growth *growth)
{
    uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325),
                              cm_leak_text(leak, growth->category));

    if (growth->site != 0) {
        hash = hash_site(leak, cm_leak_site_at(leak, growth->site), hash);
    }
    return spread(hash);
}

/* ===== sentences ======================================================== */

const char *
cm_growth_plural(const char *category)
{
    static const char *const words[][2] = {
        {"parameter", "parameters"},
        {"gradient", "gradients"},
        {"optimizer state", "optimizer state"},
        {"saved for backward", "activations"},
        {"input", "inputs"},
        {"other", "other tensors"},
        {"outside the frameworks", "memory outside the frameworks"},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(category, words[i][0]) == 0) {
            return words[i][1];
        }
    }
    return category;
}

bool
cm_growth_has_rule(const struct cm_leak *leak,
                   const struct cm_leak_growth *growth, const char *rule)
{
    return strcmp(cm_leak_text(leak, growth->rule), rule) == 0;
}

const char *
cm_growth_what(const struct cm_leak *leak, const struct cm_leak_growth *growth)
{
    return cm_growth_has_rule(leak, growth, "second copy of the weights")
               ? "a second copy of the weights"
               : cm_growth_plural(cm_leak_text(leak, growth->category));
}

/* Of the largest cycles, whose payload may be long in a hostile file. */
enum { MOST_CYCLES = 64, MOST_PAYLOAD = 64 };

static bool
is_of_cycle(const struct cm_leak *leak, const struct cm_leak_growth *growth,
            const struct cm_leak_cycle *cycle)
{
    for (size_t i = 0; i < cycle->payload_count && i < MOST_PAYLOAD; i++) {
        if (cm_leak_storage_at(leak, cycle->payload[i])->site
            == growth->site) {
            return true;
        }
    }
    return false;
}

bool
cm_growth_is_dead(const struct cm_leak *leak,
                  const struct cm_leak_growth *growth)
{
    return cm_growth_has_rule(leak, growth, "dead cycle");
}

const struct cm_leak_cycle *
cm_growth_cycle(const struct cm_leak *leak,
                const struct cm_leak_growth *growth)
{
    if (growth->site == 0 || !cm_growth_is_dead(leak, growth)) {
        return NULL;
    }
    for (size_t i = 0; i < leak->cycle_count && i < MOST_CYCLES; i++) {
        if (is_of_cycle(leak, growth, &leak->cycles[i])) {
            return &leak->cycles[i];
        }
    }
    return NULL;
}

void
cm_growth_add_advice(const struct cm_leak *leak,
                     const struct cm_leak_growth *growth,
                     struct cm_buffer *out)
{
    const struct cm_leak_cycle *cycle = cm_growth_cycle(leak, growth);

    if (cycle == NULL) {
        cm_buffer_add_text(out, cm_leak_text(leak, growth->advice));
        return;
    }
    cm_buffer_addf(out,
                   "cut the cycle [%06" PRIx64
                   "] of this report: nothing else holds it",
                   cycle->fingerprint >> 40);
}

static void
add_size(struct cm_buffer *out, uint64_t bytes)
{
    char text[CM_SIZE_TEXT_BYTES];

    cm_size_format(bytes, text);
    cm_buffer_add_text(out, text);
}

void
cm_growth_add_slope(const struct cm_leak *leak, double bytes, int64_t since,
                    struct cm_buffer *out)
{
    struct cm_growth_pace pace = cm_growth_pace_of(leak, since);

    cm_buffer_add_char(out, bytes < 0 ? '-' : '+');
    add_size(out, (uint64_t)(fabs(bytes) / pace.each + 0.5));
    cm_buffer_addf(out, " per %s", pace.unit);
}

/* Three digits, the rest zeros. */
static uint64_t
rounded(uint64_t number)
{
    uint64_t unit = 1;

    while (number / unit >= 1000) {
        unit *= 10;
    }
    return number / unit * unit
           + (number % unit >= unit / 2 + unit % 2) * unit;
}

/* "40 s", "54 min", "5 h", "3 days". */
static void
add_duration(struct cm_buffer *out, double seconds)
{
    if (seconds < 90) {
        cm_buffer_addf(out, "%.0f s", seconds < 1 ? 1 : seconds);
    }
    else if (seconds < 90 * 60.0) {
        cm_buffer_addf(out, "%.0f min", seconds / 60);
    }
    else if (seconds < 48 * 3600.0) {
        cm_buffer_addf(out, "%.0f h", seconds / 3600);
    }
    else {
        cm_buffer_addf(out, "%" PRIu64 " days",
                       rounded((uint64_t)(seconds / 86400)));
    }
}

bool
cm_growth_add_full(const struct cm_leak *leak, int64_t iterations,
                   double seconds, struct cm_buffer *out)
{
    bool in_iterations = iterations >= 0 && cm_growth_has_iterations(leak);

    if ((iterations < 0 && seconds < 0) || leak->exhausted.known) {
        return false;
    }
    cm_buffer_add_text(out, "full in about ");
    if (in_iterations) {
        cm_buffer_addf(out, "%" PRIu64 " iteration%s",
                       rounded((uint64_t)iterations),
                       iterations == 1 ? "" : "s");
    }
    else if (seconds < 0) {
        cm_buffer_addf(out, "%" PRIu64 " time slices",
                       rounded((uint64_t)iterations));
    }
    if (seconds >= 0) {
        cm_buffer_add_text(out, in_iterations ? " (" : "");
        add_duration(out, seconds);
        cm_buffer_add_text(out, in_iterations ? ")" : "");
    }
    return true;
}

int
cm_growth_percent(double confidence)
{
    int percent = (int)(100 * confidence + 0.5);

    return percent < 99 ? percent : 99;
}

static void
add_since(const struct cm_leak *leak, const struct cm_leak_growth *growth,
          struct cm_buffer *out)
{
    if (growth->since_iteration >= 0) {
        cm_buffer_add_char(out, ' ');
        cm_growth_add_since(leak, growth->since_iteration, out);
    }
}

bool
cm_growth_is_outside(const struct cm_leak *leak,
                     const struct cm_leak_growth *growth)
{
    return strcmp(cm_leak_text(leak, growth->category),
                  "outside the frameworks")
           == 0;
}

/* "97 MiB of gradients" */
static void
add_amount(const struct cm_leak *leak, const struct cm_leak_growth *growth,
           struct cm_buffer *out)
{
    const char *what = cm_growth_what(leak, growth);

    add_size(out, growth->bytes);
    if (what[0] != '\0') {
        cm_buffer_addf(out, " of %.40s", what);
    }
}

void
cm_growth_add_sentence(const struct cm_leak *leak,
                       const struct cm_leak_growth *growth,
                       struct cm_buffer *out)
{
    enum cm_growth_verdict verdict = cm_growth_verdict(leak, growth);
    size_t before;

    if (verdict == CM_GROWTH_LEAK || verdict == CM_GROWTH_GROWING) {
        cm_growth_add_slope(leak, growth->bytes_per_iteration,
                            growth->since_iteration, out);
        cm_buffer_add_text(out, cm_growth_is_outside(leak, growth)
                                    ? " outside the frameworks"
                                    : "");
    }
    else {
        add_amount(leak, growth, out);
    }
    if (verdict == CM_GROWTH_LINGERING) {
        cm_buffer_add_text(out, " kept through every forward");
    }
    add_since(leak, growth, out);
    if (verdict == CM_GROWTH_GROWING) {
        cm_buffer_addf(out, " (%d %% sure)",
                       cm_growth_percent(growth->confidence));
    }
    before = out->length;
    cm_buffer_add_text(out, "; ");
    if (verdict != CM_GROWTH_LEAK
        || !cm_growth_add_full(leak, growth->iterations_to_full,
                               growth->seconds_to_full, out)) {
        cm_buffer_truncate(out, before);
    }
}

/* ===== a device ========================================================= */

struct faults {
    double slope, seconds; /* the soonest; -1: not known */
    int64_t iterations;
    int64_t since; /* the youngest of the leaks */
    uint64_t lingering;
    size_t leaks;
};

/* Of what grows by one unit, that of the youngest. */
static void
add_slope(const struct cm_leak *leak, const struct cm_leak_growth *growth,
          struct faults *faults)
{
    int64_t since = growth->since_iteration;
    bool same = cm_growth_same_unit(leak, since, faults->since);

    if (same || since > faults->since) {
        faults->slope =
            growth->bytes_per_iteration + (same ? faults->slope : 0);
    }
    faults->since = since > faults->since ? since : faults->since;
}

static struct faults
add_up(const struct cm_leak *leak, struct cm_text_id device)
{
    struct faults faults = {.seconds = -1, .iterations = -1};

    for (size_t i = 0; i < leak->growth_count; i++) {
        const struct cm_leak_growth *growth = &leak->growth[i];
        int64_t left = growth->iterations_to_full;
        enum cm_growth_verdict verdict;

        if (!cm_text_same(growth->device, device)) {
            continue;
        }
        verdict = cm_growth_verdict(leak, growth);
        if (verdict == CM_GROWTH_LINGERING) {
            faults.lingering += growth->bytes;
        }
        if (verdict != CM_GROWTH_LEAK) {
            continue;
        }
        faults.leaks++;
        add_slope(leak, growth, &faults);
        if (left >= 0 && (faults.iterations < 0 || left < faults.iterations)) {
            faults.iterations = left;
            faults.seconds = growth->seconds_to_full;
        }
    }
    return faults;
}

bool
cm_growth_add_device(const struct cm_leak *leak, struct cm_text_id device,
                     struct cm_buffer *out)
{
    struct faults faults = add_up(leak, device);
    const char *name = cm_leak_text(leak, device);
    struct cm_growth_pace pace = cm_growth_pace_of(leak, faults.since);
    size_t before;

    if (faults.leaks == 0 && faults.lingering == 0) {
        return false;
    }
    cm_buffer_addf(out, "%.40s", name[0] != '\0' ? name : "memory");
    if (faults.leaks == 0) {
        cm_buffer_add_text(out, " keeps ");
        add_size(out, faults.lingering);
        cm_buffer_add_text(out, " through every forward pass");
        return true;
    }
    cm_buffer_add_text(out, " grows by ");
    add_size(out, (uint64_t)(fmax(faults.slope, 0) / pace.each + 0.5));
    cm_buffer_addf(out, " per %s", pace.unit);
    before = out->length;
    cm_buffer_add_text(out, "; ");
    if (!cm_growth_add_full(leak, faults.seconds >= 0 ? -1 : faults.iterations,
                            faults.seconds, out)) {
        cm_buffer_truncate(out, before);
    }
    return true;
}

/* ===== holders ========================================================== */

bool
cm_growth_edge_speaks(const char *edge)
{
    static const char *const silent[] = {"", "element", "__dict__",
                                         "__closure__", "key"};

    for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
        if (strcmp(edge, silent[i]) == 0) {
            return false;
        }
    }
    return edge[0] != '[' || edge[1 + strspn(edge + 1, "0123456789")] != ']';
}

/* The digits at the end of "list of 409"; NULL: it has none. */
static const char *
number_in(const char *annotation)
{
    const char *end = annotation + strlen(annotation), *digits = end;

    while (digits > annotation && digits[-1] >= '0' && digits[-1] <= '9') {
        digits--;
    }
    return digits < end && digits - annotation > 4
                   && strncmp(digits - 4, " of ", 4) == 0
               ? digits
               : NULL;
}

size_t
cm_growth_uncounted(const char *annotation)
{
    const char *number = number_in(annotation);

    return number != NULL ? (size_t)(number - annotation) - 4
                          : strlen(annotation);
}

void
cm_growth_add_object(const char *annotation, struct cm_buffer *out)
{
    const char *number = number_in(annotation);

    if (number == NULL) {
        cm_buffer_add_text(out, annotation[0] != '\0' ? annotation : "object");
        return;
    }
    cm_buffer_add(out, annotation, cm_growth_uncounted(annotation));
    cm_buffer_add_text(out, ", ");
    cm_buffer_add_text(out, number);
    cm_buffer_add_text(out, strcmp(number, "1") == 0 ? " item" : " items");
}

void
cm_growth_add_step(const struct cm_leak *leak,
                   const struct cm_leak_growth *growth, size_t step,
                   struct cm_buffer *out)
{
    const char *text = cm_leak_text(leak, growth->holder[step].annotation);

    cm_growth_add_object(text, out);
    if (growth->holder_iteration >= 0 && number_in(text) != NULL) {
        cm_growth_add_at(leak, growth->holder_iteration, out);
    }
}

/* "local losses" as "local `losses`". */
static void
add_edge(const char *edge, struct cm_buffer *out)
{
    size_t word = strncmp(edge, "local ", 6) == 0    ? 6
                  : strncmp(edge, "global ", 7) == 0 ? 7
                                                     : 0;

    if (word == 0) {
        cm_buffer_add_text(out, edge);
        return;
    }
    cm_buffer_add(out, edge, word);
    cm_buffer_add_char(out, '`');
    cm_buffer_add_text(out, edge + word);
    cm_buffer_add_char(out, '`');
}

/* "EDGE (OBJECT)", the object alone where the reference says nothing. */
static void
add_held(const struct cm_leak *leak, const struct cm_leak_growth *growth,
         size_t step, struct cm_buffer *out)
{
    const char *edge = cm_leak_text(leak, growth->holder[step].edge);
    bool speaks = cm_growth_edge_speaks(edge);

    if (speaks) {
        add_edge(edge, out);
        cm_buffer_add_text(out, " (");
    }
    cm_growth_add_step(leak, growth, step, out);
    cm_buffer_add_text(out, speaks ? ")" : "");
}

/* "`train.losses` (list, 409 items)" for a module. */
static bool
add_of_module(const struct cm_leak *leak, const struct cm_leak_growth *growth,
              struct cm_buffer *out)
{
    const char *root = cm_leak_text(leak, growth->holder[0].annotation);
    const char *edge = cm_leak_text(leak, growth->holder[1].edge);

    if (strncmp(root, "module ", 7) != 0
        || (edge[0] != '.' && edge[0] != '[')) {
        return false;
    }
    cm_buffer_addf(out, "`%s%s` (", root + 7, edge);
    cm_growth_add_step(leak, growth, 1, out);
    cm_buffer_add_char(out, ')');
    return true;
}

size_t
cm_growth_part_count(const struct cm_leak_growth *growth)
{
    return growth->holder_count > 1 ? growth->holder_count - 1
                                    : growth->holder_count;
}

/* A gradient that lingers piles up in its model, whose own tables hold it. */
size_t
cm_growth_place_part(const struct cm_leak *leak,
                     const struct cm_leak_growth *growth)
{
    size_t parts = cm_growth_part_count(growth);
    bool gradient =
        strcmp(cm_leak_text(leak, growth->category), "gradient") == 0
        && cm_growth_verdict(leak, growth) == CM_GROWTH_LINGERING;

    if (gradient && parts > 0) {
        return parts - 1;
    }
    return growth->holder_at > 0 ? growth->holder_at - 1 : 0;
}

void
cm_growth_add_part(const struct cm_leak *leak,
                   const struct cm_leak_growth *growth, size_t part,
                   bool rootless, struct cm_buffer *out)
{
    if (part > 0) {
        add_held(leak, growth, part + 1, out);
    }
    else if (growth->holder_count == 1) {
        cm_growth_add_step(leak, growth, 0, out);
    }
    else if (!add_of_module(leak, growth, out)) {
        if (!rootless) {
            cm_buffer_addf(
                out, "%s: ", cm_leak_text(leak, growth->holder[0].annotation));
        }
        add_held(leak, growth, 1, out);
    }
}
