/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Reading argv with getopt_long(), whose own messages are switched off: ours
 * name the value.  Options may stand before or behind the file. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h> // strtoul()
#include <string.h>
#include <strings.h> // strcasecmp()

#include "../detector/size.h"
#include "summary.h"

const char cm_options_help[] =
    "usage: cyclereport FILE [options]\n"
    "\n"
    "Shows what a leak.json of cumem says: prints the summary and writes the\n"
    "page cycle.html beside FILE (leak-X.json -> cycle-X.html).  FILE or OUT\n"
    "\"-\" is standard input or output.\n"
    "\n"
    "  -o, --output OUT      where the page, or the format, goes; without\n"
    "                        --format the ending .svg, .dot, .json or .txt\n"
    "                        of OUT says it, and any other is the page\n"
    "      --format FORMAT   html, svg, dot, json or text, instead of both;\n"
    "                        svg draws the largest cycle, dot the --top\n"
    "                        largest (1), json has all findings\n"
    "      --top N           only the N largest findings (not in json, svg)\n"
    "      --min-bytes SIZE  hide findings under SIZE at once (1MiB; not in\n"
    "                        json)\n"
    "      --all             show library findings and small ones too, and\n"
    "                        growth that is settled or ok\n"
    "      --all-frames      show whole allocation stacks\n"
    "      --fail-on WHAT    exit with 1 when there are findings to show:\n"
    "                        cycle, growth, or both with a comma\n"
    "      --suppressions FILE  leave out what its rules name, one a line:\n"
    "                        fingerprint 3f9a2c  # why\n"
    "                        type Trainer, file x/train.py, function Net.*\n"
    "      --baseline FILE   leave out what this earlier leak.json has\n"
    "  -f, --force           overwrite any existing file; pages and drawings\n"
    "                        of cyclereport's own are without it\n"
    "      --version, --help\n"
    "\n"
    "Exit status: 0 done, 1 findings (--fail-on), 2 bad usage or input.\n";

enum {
    FORMAT = 256,
    TOP,
    MIN_BYTES,
    ALL,
    ALL_FRAMES,
    FAIL_ON,
    SUPPRESSIONS,
    BASELINE,
    VERSION,
};

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"format", required_argument, NULL, FORMAT},
    {"top", required_argument, NULL, TOP},
    {"min-bytes", required_argument, NULL, MIN_BYTES},
    {"all", no_argument, NULL, ALL},
    {"all-frames", no_argument, NULL, ALL_FRAMES},
    {"fail-on", required_argument, NULL, FAIL_ON},
    {"suppressions", required_argument, NULL, SUPPRESSIONS},
    {"baseline", required_argument, NULL, BASELINE},
    {"force", no_argument, NULL, 'f'},
    {"version", no_argument, NULL, VERSION},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool
parse_format(const char *text, enum cm_format *result)
{
    static const char *const names[] = {
        [CM_FORMAT_HTML] = "html", [CM_FORMAT_SVG] = "svg",
        [CM_FORMAT_DOT] = "dot",   [CM_FORMAT_JSON] = "json",
        [CM_FORMAT_TEXT] = "text",
    };

    for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *result = (enum cm_format)i;
            return true;
        }
    }
    return false;
}

/* A whole number from 1. */
static bool
parse_count(const char *text, size_t *result)
{
    char *end;
    unsigned long number;

    errno = 0;
    number = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0
        || number == 0) {
        return false;
    }
    *result = number;
    return true;
}

/* "cycle", "growth" or both. */
static bool
parse_fail_on(const char *text, struct cm_options *result)
{
    while (true) {
        size_t length = strcspn(text, ",");

        if (length == 5 && strncmp(text, "cycle", 5) == 0) {
            result->fail_on_cycle = true;
        }
        else if (length == 6 && strncmp(text, "growth", 6) == 0) {
            result->fail_on_growth = true;
        }
        else {
            return false;
        }
        if (text[length] == '\0') {
            return true;
        }
        text += length + 1;
    }
}

/* Takes one option with its value; false: the value is not what it may be. */
static bool
take_value(int option, const char *value, struct cm_options *result)
{
    switch (option) {
    case 'o': result->output = value; return value[0] != '\0';
    case FORMAT: return parse_format(value, &result->format);
    case TOP: return parse_count(value, &result->top);
    case MIN_BYTES: return cm_size_parse(value, &result->min_bytes) == CM_OK;
    case FAIL_ON: return parse_fail_on(value, result);
    case SUPPRESSIONS: result->suppressions = value; return true;
    case BASELINE: result->baseline = value; return true;
    default: return false;
    }
}

/* Of an option that may refuse its value. */
static const char *
expected(int option)
{
    switch (option) {
    case 'o': return "a file's name, or -";
    case FORMAT: return "html, svg, dot, json or text";
    case TOP: return "a whole number from 1";
    case MIN_BYTES: return "bytes, or a text such as 256MiB";
    case FAIL_ON: return "cycle, growth or cycle,growth";
    default: return "another value";
    }
}

static const char *
name_of(int option)
{
    const struct option *at = long_options;

    while (at->name != NULL && at->val != option) {
        at++;
    }
    return at->name != NULL ? at->name : "?";
}

static bool
take_flag(int option, struct cm_options *result)
{
    switch (option) {
    case ALL: result->all = true; return true;
    case ALL_FRAMES: result->all_frames = true; return true;
    case 'f': result->force = true; return true;
    case 'h': result->help = true; return true;
    case VERSION: result->version = true; return true;
    default: return false;
    }
}

static enum cm_status
take_input(int argc, char **argv, struct cm_options *result,
           char error[CM_OPTIONS_ERROR_BYTES])
{
    if (result->help || result->version) {
        return CM_OK;
    }
    if (optind == argc) {
        snprintf(error, CM_OPTIONS_ERROR_BYTES,
                 "expected the name of a leak.json (--help)");
        return CM_BAD_INPUT;
    }
    if (optind + 1 < argc) {
        snprintf(error, CM_OPTIONS_ERROR_BYTES,
                 "expected one file, also got \"%.80s\"", argv[optind + 1]);
        return CM_BAD_INPUT;
    }
    result->input = argv[optind];
    return CM_OK;
}

/* "-format": getopt reads -f and -o rmat, and what follows as the file. */
static bool
lacks_dash(const char *word)
{
    const struct option *option = long_options;

    if (word[0] != '-' || word[1] == '-') {
        return false;
    }
    while (option->name != NULL && strcmp(option->name, word + 1) != 0) {
        option++;
    }
    return option->name != NULL;
}

static enum cm_status
check_dashes(int argc, char **argv, char error[CM_OPTIONS_ERROR_BYTES])
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (lacks_dash(argv[i])) {
            snprintf(error, CM_OPTIONS_ERROR_BYTES,
                     "there is no option \"%.20s\", but there is \"-%.20s\"",
                     argv[i], argv[i]);
            return CM_BAD_INPUT;
        }
    }
    return CM_OK;
}

/* What -o's ending says; any other stands for the page. */
static enum cm_format
format_of_name(const char *output)
{
    static const struct {
        const char *ending;
        enum cm_format format;
    } known[] = {
        {".svg", CM_FORMAT_SVG},
        {".dot", CM_FORMAT_DOT},
        {".json", CM_FORMAT_JSON},
        {".txt", CM_FORMAT_TEXT},
    };
    const char *ending = strrchr(output, '.');

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (ending != NULL && strcasecmp(ending, known[i].ending) == 0) {
            return known[i].format;
        }
    }
    return CM_FORMAT_NONE;
}

enum cm_status
cm_options_parse(int argc, char **argv, struct cm_options *result,
                 char error[CM_OPTIONS_ERROR_BYTES])
{
    int option;

    *result = (struct cm_options){.min_bytes = CM_DEFAULT_MIN_BYTES};
    if (check_dashes(argc, argv, error) != CM_OK) {
        return CM_BAD_INPUT;
    }
    opterr = 0;
    optind = 0; /* glibc: from the start again */
    while ((option = getopt_long(argc, argv, ":o:fh", long_options, NULL))
           != -1) {
        if (option == '?') {
            snprintf(error, CM_OPTIONS_ERROR_BYTES,
                     "there is no option \"%.80s\" (--help)",
                     argv[optind - 1]);
            return CM_BAD_INPUT;
        }
        if (option == ':') {
            snprintf(error, CM_OPTIONS_ERROR_BYTES, "%.80s needs a value",
                     argv[optind - 1]);
            return CM_BAD_INPUT;
        }
        if (!take_flag(option, result)
            && !take_value(option, optarg, result)) {
            snprintf(error, CM_OPTIONS_ERROR_BYTES,
                     "--%s \"%.80s\": expected %s", name_of(option), optarg,
                     expected(option));
            return CM_BAD_INPUT;
        }
    }
    if (result->format == CM_FORMAT_NONE && result->output != NULL) {
        result->format = format_of_name(result->output);
    }
    return take_input(argc, argv, result, error);
}
