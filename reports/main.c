/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * cyclereport: leak.json in, text, page, drawing or JSON out.  Results go to
 * standard output, chatter to standard error.  A result is made whole in
 * memory before a byte of it is written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h> // getenv()
#include <string.h>
#include <unistd.h>

#include "../detector/alloc.h"
#include "buffer.h"
#include "dot.h"
#include "file.h"
#include "growth.h"
#include "html.h"
#include "leak.h"
#include "leak_json.h"
#include "options.h"
#include "output.h"
#include "summary.h"
#include "suppress.h"
#include "utf8.h"

enum { EXIT_DONE = 0, EXIT_FINDINGS = 1, EXIT_TROUBLE = 2 };

/* Drawings of one page. */
#define MAX_DRAWINGS 24

struct program {
    struct cm_options options;
    struct cm_leak leak;
    size_t suppressed, known; /* findings left out; dead cycles among them */
    struct cm_leak_finding *shown; /* owned: the findings to show */
    struct cm_summary_counts counts;
};

/* One line on standard error, harmless whatever stands in the parts. */
static void
say(const char *first, const char *second, const char *third)
{
    struct cm_buffer line = {0};

    cm_buffer_add_text(&line, "cyclereport: ");
    cm_utf8_add_harmless(&line, first);
    cm_utf8_add_harmless(&line, second);
    cm_utf8_add_harmless(&line, third);
    fprintf(stderr, "%s\n", cm_buffer_text(&line));
    cm_buffer_release(&line);
}

/* Why a call failed, for a person. */
static const char *
reason(enum cm_status status)
{
    return status == CM_IO ? strerror(errno) : cm_status_text(status);
}

/* Reads a document; says what is wrong with it. */
static enum cm_status
read_leak(const char *path, struct cm_leak *leak)
{
    struct cm_buffer bytes = {.max_bytes = CM_LEAK_JSON_MAX_BYTES + 1};
    char error[CM_LEAK_JSON_ERROR_BYTES] = "";
    enum cm_status status = cm_file_read(path, &bytes);

    if (status == CM_OK) {
        status = cm_leak_json_read(cm_buffer_text(&bytes), bytes.length, leak,
                                   error);
    }
    if (status != CM_OK) {
        say(strcmp(path, "-") == 0 ? "standard input" : path, ": ",
            error[0] != '\0' ? error : reason(status));
    }
    else if (strcmp(path, "-") != 0) {
        leak->source_path = cm_strdup(path);
    }
    cm_buffer_release(&bytes);
    return status;
}

static void
leave_out(struct program *self, const struct cm_suppressions *rules)
{
    size_t cycles = self->leak.cycle_count;

    self->suppressed += cm_suppressions_apply_leak(rules, &self->leak);
    self->known += cycles - self->leak.cycle_count;
}

static enum cm_status
apply_suppressions(struct program *self)
{
    const char *path = self->options.suppressions;
    struct cm_suppressions rules = {0};
    struct cm_buffer problems = {0};
    enum cm_status status = CM_OK;

    if (path == NULL) {
        return CM_OK;
    }
    status = cm_suppressions_read(&rules, path, &problems);
    if (status != CM_OK) {
        say(path, ": ", reason(status));
    }
    else {
        if (problems.length > 0) {
            say(problems.bytes, "", "");
        }
        leave_out(self, &rules);
    }
    cm_buffer_release(&problems);
    cm_suppressions_release(&rules);
    return status;
}

static void
add_rule(struct cm_buffer *rules, uint64_t fingerprint)
{
    cm_buffer_addf(rules, "fingerprint %016llx\n",
                   (unsigned long long)fingerprint);
}

/* Leaves out what an earlier document has. */
static enum cm_status
apply_baseline(struct program *self)
{
    struct cm_suppressions rules = {0};
    struct cm_buffer text = {0}, problems = {0};
    struct cm_leak earlier = {0};
    enum cm_status status;

    if (self->options.baseline == NULL) {
        return CM_OK;
    }
    status = read_leak(self->options.baseline, &earlier);
    if (status != CM_OK) {
        return status;
    }
    for (size_t i = 0; i < earlier.cycle_count; i++) {
        add_rule(&text, earlier.cycles[i].fingerprint);
    }
    for (size_t i = 0; i < earlier.growth_count; i++) {
        if (cm_growth_is_told(
                cm_growth_verdict(&earlier, &earlier.growth[i]))) {
            add_rule(&text, earlier.growth[i].fingerprint);
        }
    }
    status = cm_buffer_status(&text);
    if (status == CM_OK) {
        status = cm_suppressions_add(&rules, cm_buffer_text(&text), &problems);
    }
    if (status == CM_OK) {
        leave_out(self, &rules);
    }
    cm_buffer_release(&text);
    cm_buffer_release(&problems);
    cm_suppressions_release(&rules);
    cm_leak_release(&earlier);
    return status;
}

static struct cm_summary_options
summary_options(const struct program *self, bool colour)
{
    return (struct cm_summary_options){
        .colour = colour,
        .all = self->options.all,
        .all_frames = self->options.all_frames,
        .min_bytes = self->options.min_bytes,
        .top = self->options.top,
        .suppressed = self->suppressed,
        .known = self->known,
    };
}

static bool
wants_colour(const char *output)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return strcmp(output, "-") == 0 && isatty(STDOUT_FILENO)
           && (no_color == NULL || no_color[0] == '\0') && term != NULL
           && strcmp(term, "dumb") != 0;
}

/* Says what went wrong with the result for `path`. */
static enum cm_status
tell(enum cm_status status, const char *path)
{
    if (status == CM_MISUSE) {
        say(path, " exists and is no page or drawing of cyclereport's",
            " (-f overwrites it)");
    }
    else if (status != CM_OK) {
        say(strcmp(path, "-") == 0 ? "standard output" : path, ": ",
            reason(status));
    }
    return status;
}

/* Writes a result that was made with `status`. */
static enum cm_status
deliver(const struct program *self, enum cm_status status, const char *path,
        const struct cm_buffer *content)
{
    if (status == CM_OK) {
        status = cm_output_write(path, content, self->options.force);
    }
    return tell(status, path);
}

static enum cm_status
write_text(const struct program *self, const char *path)
{
    struct cm_summary_options options =
        summary_options(self, wants_colour(path));
    struct cm_buffer content = {0};
    enum cm_status status =
        deliver(self, cm_summary_write(&self->leak, &options, &content), path,
                &content);

    cm_buffer_release(&content);
    return status;
}

static enum cm_status
write_json(const struct program *self, const char *path)
{
    struct cm_buffer content = {0};
    enum cm_status status = deliver(
        self, cm_leak_json_write(&self->leak, &content), path, &content);

    cm_buffer_release(&content);
    return status;
}

/* The drawings that the page shows, by index of the cycle. */
static enum cm_status
draw_page(const struct program *self, const struct cm_html_options *options,
          char **drawings)
{
    size_t cycles[MAX_DRAWINGS];
    char *svgs[MAX_DRAWINGS] = {NULL};
    size_t count = cm_html_pick(&self->leak, options, cycles, MAX_DRAWINGS);
    enum cm_status status = cm_dot_svgs(&self->leak, cycles, count, svgs);

    for (size_t i = 0; i < count; i++) {
        drawings[cycles[i]] = svgs[i];
    }
    return status;
}

static enum cm_status
write_page(const struct program *self, const char *path)
{
    size_t cycles = self->leak.cycle_count;
    char **drawings = cm_calloc(cycles + 1, sizeof(*drawings));
    struct cm_html_options options = {
        .all = self->options.all,
        .all_frames = self->options.all_frames,
        .min_bytes = self->options.min_bytes,
        .top = self->options.top,
        .suppressed = self->suppressed,
        .known = self->known,
    };
    struct cm_buffer content = {0};
    enum cm_status status = CM_NO_MEMORY;

    if (drawings != NULL) {
        status = draw_page(self, &options, drawings);
    }
    if (status == CM_OK) {
        options.drawings = (const char *const *)drawings;
        status = cm_html_write(&self->leak, &options, &content);
    }
    status = deliver(self, status, path, &content);
    for (size_t i = 0; drawings != NULL && i < cycles; i++) {
        cm_free(drawings[i]);
    }
    cm_free(drawings);
    cm_buffer_release(&content);
    return status;
}

static const char empty_svg[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\" "
    "width=\"16\" height=\"16\"><title>No finding to draw</title></svg>\n";
static const char empty_dot[] = "digraph cumem {\n}\n";

/* Growth is no graph: only cycles are drawn, the largest first. */
static enum cm_status
draw(const struct program *self, size_t most, struct cm_buffer *content)
{
    bool svg = self->options.format == CM_FORMAT_SVG;
    enum cm_status status = CM_OK;

    if (self->counts.cycles == 0) {
        cm_buffer_add_text(content, svg ? empty_svg : empty_dot);
    }
    for (size_t i = 0; status == CM_OK && most > 0 && i < self->counts.shown;
         i++) {
        size_t cycle = self->shown[i].index;

        if (self->shown[i].growth) {
            continue;
        }
        status = svg ? cm_dot_svg(&self->leak, cycle, content)
                     : cm_dot_write(&self->leak, cycle, content);
        most--;
    }
    return status;
}

/* What a drawing does not show. */
static void
say_undrawn(const struct program *self, size_t drawn)
{
    const struct cm_summary_counts *counts = &self->counts;
    char line[96];

    if (counts->cycles == 0) {
        say(self->options.input, ": no finding to draw",
            counts->library + counts->small > 0 ? " (--all shows hidden ones)"
                                                : "");
    }
    else if (drawn < counts->cycles) {
        snprintf(line, sizeof(line),
                 ": drew %zu of %zu dead cycles, the largest", drawn,
                 counts->cycles);
        say(self->options.input, line,
            self->options.format == CM_FORMAT_SVG
                ? " (the page shows the rest)"
                : " (--top N draws more)");
    }
}

/* The largest cycle as SVG; as DOT the --top largest, one graph each. */
static enum cm_status
write_drawing(const struct program *self, const char *path)
{
    bool svg = self->options.format == CM_FORMAT_SVG;
    size_t most = self->options.top != 0 && !svg ? self->options.top : 1;
    struct cm_buffer content = {0};
    enum cm_status status;

    /* A first line by which the file is known as ours. */
    cm_buffer_add_text(&content, svg ? "<!-- written by cyclereport -->\n"
                                     : "// written by cyclereport\n");
    status = deliver(self, draw(self, most, &content), path, &content);
    if (status == CM_OK) {
        say_undrawn(self, most);
    }
    cm_buffer_release(&content);
    return status;
}

/* The summary, and the page beside the input or where -o says: then it is
 * known before the summary whether it can be. */
static enum cm_status
write_both(const struct program *self)
{
    struct cm_buffer name = {0};
    const char *page = self->options.output;
    bool standard = page != NULL && strcmp(page, "-") == 0;
    enum cm_status status = CM_OK;

    if (page != NULL && !standard) {
        status = tell(cm_output_check(page, self->options.force), page);
    }
    if (status == CM_OK && !standard) {
        status = write_text(self, "-");
    }
    if (page == NULL && strcmp(self->options.input, "-") != 0) {
        cm_output_page_name(self->options.input, &name);
        page = cm_buffer_text(&name);
    }
    if (status == CM_OK && page != NULL) {
        status = cm_buffer_status(&name);
        status = status == CM_OK ? write_page(self, page) : status;
    }
    if (status == CM_OK && page != NULL && !standard) {
        say("wrote ", page, "");
    }
    cm_buffer_release(&name);
    return status;
}

static enum cm_status
write_result(const struct program *self)
{
    const char *path = self->options.output;

    path = path != NULL ? path : "-";
    switch (self->options.format) {
    case CM_FORMAT_NONE: return write_both(self);
    case CM_FORMAT_HTML: return write_page(self, path);
    case CM_FORMAT_SVG:
    case CM_FORMAT_DOT: return write_drawing(self, path);
    case CM_FORMAT_JSON: return write_json(self, path);
    case CM_FORMAT_TEXT: return write_text(self, path);
    }
    return CM_MISUSE;
}

/* What a job left behind is there once: -f does not reach it. */
static enum cm_status
spare_inputs(const struct cm_options *options)
{
    const char *const inputs[] = {options->input, options->baseline,
                                  options->suppressions};

    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        if (cm_output_is_input(options->output, inputs[i])) {
            say(options->output, " is read and would be overwritten",
                " (-o takes another name)");
            return CM_MISUSE;
        }
    }
    return CM_OK;
}

static bool
is_drawing(enum cm_format format)
{
    return format == CM_FORMAT_SVG || format == CM_FORMAT_DOT;
}

/* Everything but the result. */
static enum cm_status
prepare(struct program *self)
{
    struct cm_summary_options options;
    enum cm_status status = spare_inputs(&self->options);

    if (status == CM_OK) {
        status = read_leak(self->options.input, &self->leak);
    }
    if (status == CM_OK) {
        status = apply_suppressions(self);
    }
    if (status == CM_OK) {
        status = apply_baseline(self);
    }
    if (status != CM_OK) {
        return status;
    }
    cm_leak_sort(&self->leak);
    self->shown =
        cm_calloc(self->leak.cycle_count + self->leak.growth_count + 1,
                  sizeof(*self->shown));
    if (self->shown == NULL) {
        say(cm_status_text(CM_NO_MEMORY), "", "");
        return CM_NO_MEMORY;
    }
    options = summary_options(self, false);
    if (is_drawing(self->options.format)) {
        options.top = 0; /* it counts cycles there, not growth between them */
    }
    cm_summary_count(&self->leak, &options, &self->counts, self->shown);
    return CM_OK;
}

/* What was asked to fail on is there. */
static bool
has_failed(const struct program *self)
{
    return (self->options.fail_on_cycle && self->counts.cycles > 0)
           || (self->options.fail_on_growth && self->counts.faults > 0);
}

/* What is no result of an input; answers the exit status. */
static int
print(const char *text)
{
    if (fputs(text, stdout) == EOF || fflush(stdout) != 0) {
        say("standard output: ", strerror(errno), "");
        return EXIT_TROUBLE;
    }
    return EXIT_DONE;
}

int
main(int argc, char **argv)
{
    struct program self = {0};
    char error[CM_OPTIONS_ERROR_BYTES];
    enum cm_status status = cm_options_parse(argc, argv, &self.options, error);
    int result = EXIT_TROUBLE;

    if (status != CM_OK) {
        say(error, "", "");
        return EXIT_TROUBLE;
    }
    if (self.options.help || self.options.version) {
        return print(self.options.help ? cm_options_help
                                       : "cyclereport " CUMEM_VERSION "\n");
    }
    status = prepare(&self);
    if (status == CM_OK) {
        status = write_result(&self);
    }
    if (status == CM_OK) {
        result = has_failed(&self) ? EXIT_FINDINGS : EXIT_DONE;
    }
    cm_free(self.shown);
    cm_leak_release(&self.leak);
    return result;
}
