#define _GNU_SOURCE
#include "runtime/base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/log_file.h"
#include "runtime/base/other_names.h"
#include "runtime/base/spelling.h"

enum setting_kind { STRING, CHOICE, SIZE, SIZE_OR_AUTO, SECONDS, COUNT, COUNT_OR_AUTO };

/* What a row has as its range: that of numbers is a string, that of a choice a list of words. */
#define RANGE_STRING(range)        range
#define RANGE_CHOICE(words)        #words
#define RANGE_SIZE(range)          range
#define RANGE_SIZE_OR_AUTO(range)  range
#define RANGE_SECONDS(range)       range
#define RANGE_COUNT(range)         range
#define RANGE_COUNT_OR_AUTO(range) range

struct setting_row {
    const char *name;
    const char *variable; /* with its prefix */
    const char *aliases;
    enum setting_kind kind;
    const char *initial;
    const char *range; /* "1..31"; CHOICE: "(AUTO, DMA_BUF)" */
    const char *text;
};

enum { WORDS_BYTES = 100 }; /* room for the words of any choice */
#define X(id, aliases, kind, initial, range, text)                                                 \
    _Static_assert(sizeof #range <= WORDS_BYTES, "the words fit");
SETTINGS_TABLE(X)
#undef X

static const struct setting_row rows[SETTING_COUNT] = {
#define X(id, aliases, kind, initial, range, text)                                                 \
    [SETTING_##id] = {#id, "GSHMEM_" #id, aliases, kind, initial, RANGE_##kind(range), text},
    SETTINGS_TABLE(X)
#undef X
};

_Static_assert(LOG_NONE == (int)CHOICE_LOG_NONE && LOG_ERROR == (int)CHOICE_LOG_ERROR &&
                   LOG_WARN == (int)CHOICE_LOG_WARN && LOG_INFO == (int)CHOICE_LOG_INFO &&
                   LOG_DEBUG == (int)CHOICE_LOG_DEBUG,
               "the words of GSHMEM_LOG are the levels");

struct setting_value {
    int64_t number;
    char *owned;        /* a copy of the environment's text, CHOICE: the table's word; NULL: the
                           default */
    char source[40];    /* the variable that it came from */
};

static struct setting_value values[SETTING_COUNT];

/* Variables of the launcher's wire and of the tests' tools; not settings, so not listed. */
static const char *const foreign[] = {"GSHMEM_RUN_", "GSHMEM_TEST_"};

/* Digits with a decimal point, whatever the locale's point is; returns the rest of the text, or
 * NULL. */
static const char *parse_decimal(const char *text, double *value)
{
    double scale = 1;
    int digits = 0;
    bool point = false;

    for (*value = 0;; text++) {
        if (isdigit((unsigned char)*text)) {
            *value = *value * 10 + (*text - '0');
            scale *= point ? 10 : 1;
            digits++;
        } else if (*text == '.' && !point) {
            point = true;
        } else {
            break;
        }
    }
    *value /= scale;
    return digits ? text : NULL;
}

bool settings_parse_size(const char *text, int64_t *bytes)
{
    static const char units[] = "KMGTP";
    double value;

    while (isspace((unsigned char)*text))
        text++;
    const char *end = parse_decimal(text, &value);
    if (!end)
        return false;

    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        value = ldexp(value, 10 * (int)(unit - units + 1));
        end++;
        if (*end == 'i')
            end++;
    }
    if (toupper((unsigned char)*end) == 'B')
        end++;
    while (isspace((unsigned char)*end))
        end++;
    if (*end || !(value < 9.2e18))
        return false;
    *bytes = (int64_t)value;
    return true;
}

/* ---- Words: "(AUTO, DMA_BUF)" in the table, auto and dma-buf for people, "no|false" here ---- */

static const char between_words[] = "(, )|";

/* The next of the words, its length in *length; NULL: there is none. */
static const char *next_word(const char *words, size_t *length)
{
    words += strspn(words, between_words);
    *length = strcspn(words, between_words);
    return *length > 0 ? words : NULL;
}

static char shown(char c)
{
    return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

static bool same_word(const char *word, const char *text, size_t length)
{
    size_t i = 0;

    while (i < length && shown(word[i]) == tolower((unsigned char)text[i]))
        i++;
    return i == length;
}

/* Index of text in the words, or -1. */
static int choice_index(const char *words, const char *text)
{
    size_t n, length = strlen(text);

    for (int i = 0; (words = next_word(words, &n)); i++, words += n) {
        if (n == length && same_word(words, text, n))
            return i;
    }
    return -1;
}

static int choice_count(const char *words)
{
    size_t n;
    int count = 0;

    for (; (words = next_word(words, &n)); words += n)
        count++;
    return count;
}

/* The i-th word as people write it, or, with i < 0, all of them: auto|dma-buf. */
static void choice_text(const char *words, int i, char text[WORDS_BYTES])
{
    size_t n, used = 0;

    for (int at = 0; (words = next_word(words, &n)); at++, words += n) {
        if (i >= 0 && at != i)
            continue;
        if (used > 0)
            text[used++] = '|';
        for (size_t c = 0; c < n; c++)
            text[used++] = shown(words[c]);
    }
    text[used] = 0;
}

static const char *range_text(const struct setting_row *row, char text[WORDS_BYTES])
{
    if (row->kind != CHOICE)
        return row->range;
    choice_text(row->range, -1, text);
    return text;
}

static bool is_one_of(const char *text, const char *choices)
{
    return choice_index(choices, text) >= 0;
}

/* A choice by its own word; a switch also by other common words for on and off. */
static int settings_choose(const char *choices, const char *text)
{
    int off = choice_index(choices, "off"), i = choice_index(choices, text);

    if (i >= 0 || off < 0 || choice_count(choices) > 2)
        return i;
    return is_one_of(text, "0|no|false") ? off : is_one_of(text, "1|yes|true|on") ? !off : -1;
}

static bool whole_number(const char *text, int64_t *number)
{
    char *end;

    errno = 0;
    long long value = strtoll(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
    if (errno || end == text || *end)
        return false;
    *number = value;
    return true;
}

static bool in_range(const struct setting_row *row, int64_t number)
{
    char low[24], high[24];
    int64_t least, most;

    if (sscanf(row->range, "%23[^.]..%23s", low, high) != 2)
        return false;
    if (row->kind == SIZE || row->kind == SIZE_OR_AUTO)
        return settings_parse_size(low, &least) && settings_parse_size(high, &most) &&
               number >= least && number <= most;
    return whole_number(low, &least) && whole_number(high, &most) && number >= least &&
           number <= most;
}

static bool is_or_auto(const struct setting_row *row)
{
    return row->kind == SIZE_OR_AUTO || row->kind == COUNT_OR_AUTO;
}

static bool settings_parse(const struct setting_row *row, const char *text, int64_t *number)
{
    if (is_or_auto(row) && strcasecmp(text, "auto") == 0) {
        *number = atoll(row->range); /* the least: -1 or 0 */
        return true;
    }
    *number = 0;
    switch (row->kind) {
    case STRING:
        return true;
    case CHOICE:
        *number = settings_choose(row->range, text);
        return *number >= 0;
    case SIZE:
    case SIZE_OR_AUTO:
        return settings_parse_size(text, number) && in_range(row, *number);
    case SECONDS:
    case COUNT:
    case COUNT_OR_AUTO:
        return whole_number(text, number) && in_range(row, *number);
    }
    return false;
}

enum { VALUE_BYTES = 100 }; /* room for a value in the table, and for the list of all of a name */

/* What the environment has for a setting: its own variable goes first, then its other names in
 * their order. *text is NULL where there is nothing, and may be `value`. */
static gshmem_status_t settings_find(const struct setting_row *row, char *source, size_t size,
                                     char value[VALUE_BYTES], const char **text)
{
    const char *names = row->aliases;
    struct other_name other;

    snprintf(source, size, "%s", row->variable);
    *text = getenv(row->variable);
    while (!*text && other_names_next(&names, &other)) {
        snprintf(source, size, "%s", other.name);
        if (!(*text = getenv(other.name)) || !other.values)
            continue;
        if (!other_names_translate(&other, *text, value, VALUE_BYTES))
            return fail(GSHMEM_ERR_ARGUMENT,
                        "%s=%s: GSHMEM has nothing that means the same; it understands %s; unset "
                        "it, or set %s, which goes first (%s)",
                        other.name, *text, value, row->variable, row->text);
        *text = *value ? value : NULL;
    }
    return GSHMEM_OK;
}

bool settings_look(enum setting s, char *text, size_t size)
{
    const struct setting_row *row = &rows[s];
    char source[40], value[VALUE_BYTES];
    const char *found;

    if (settings_find(row, source, sizeof source, value, &found))
        return false;
    snprintf(text, size, "%s", found ? found : row->initial);
    return true;
}

static gshmem_status_t load_one(enum setting s)
{
    const struct setting_row *row = &rows[s];
    struct setting_value next = {.owned = NULL};
    char words[WORDS_BYTES], value[VALUE_BYTES];
    const char *text;
    gshmem_status_t status = settings_find(row, next.source, sizeof next.source, value, &text);

    if (status || !settings_parse(row, text ? text : row->initial, &next.number)) {
        if (!values[s].owned) /* as settings_string says */
            settings_parse(row, row->initial, &values[s].number);
        if (status)
            return status;
        return fail(GSHMEM_ERR_ARGUMENT, "%s=%s: expected %s%s%s (%s)", next.source, text,
                    is_or_auto(row) ? "auto, or " : "",
                    row->kind == SIZE || row->kind == SIZE_OR_AUTO ? "a size like 512M in " : "",
                    range_text(row, words), row->text);
    }
    if (row->kind == CHOICE)
        choice_text(row->range, (int)next.number, words);
    if (!text)
        next.source[0] = 0;
    else if (!(next.owned = strdup(row->kind == CHOICE ? words : text)))
        return fail(GSHMEM_ERR_MEMORY, "reading %s: out of memory", next.source);
    free(values[s].owned);
    values[s] = next;
    return GSHMEM_OK;
}

static void warn_unknown(const char *entry)
{
    char name[48];
    size_t n = strcspn(entry, "=");
    unsigned best = 99;
    const char *nearest = NULL;

    if (n >= sizeof name)
        return;
    snprintf(name, sizeof name, "%.*s", (int)n, entry);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        if (strncmp(name, foreign[i], strlen(foreign[i])) == 0)
            return;
    }
    for (int s = 0; s < SETTING_COUNT; s++) {
        unsigned d = spelling_distance(name, rows[s].variable);
        if (d == 0)
            return;
        if (d < best) {
            best = d;
            nearest = rows[s].variable;
        }
    }
    if (best <= 3)
        log_warn("%s is not a setting; did you mean %s? (gshmem-info --settings)", name, nearest);
    else
        log_warn("%s is not a setting (gshmem-info --settings lists them)", name);
}

gshmem_status_t settings_load(void)
{
    gshmem_status_t first = GSHMEM_OK;

    for (int s = 0; s < SETTING_COUNT; s++) {
        gshmem_status_t status = load_one((enum setting)s);
        first = first ? first : status;
    }
    log_set_level((enum log_level)values[SETTING_LOG].number);
    const char *file = settings_source(SETTING_LOG_FILE); /* which has set it, if one has */
    const char *subsystem = settings_source(SETTING_LOG_SUBSYSTEM);
    gshmem_status_t status = log_file_set(
        settings_string(SETTING_LOG_FILE), file ? file : settings_variable(SETTING_LOG_FILE),
        settings_string(SETTING_LOG_SUBSYSTEM),
        subsystem ? subsystem : settings_variable(SETTING_LOG_SUBSYSTEM));
    return first ? first : status;
}

void settings_warn_unknown(void)
{
    extern char **environ;

    for (char **e = environ; e && *e; e++) {
        if (strncmp(*e, "GSHMEM_", 7) == 0)
            warn_unknown(*e);
    }
}

int64_t settings_number(enum setting s)
{
    return values[s].number;
}

const char *settings_string(enum setting s)
{
    return values[s].owned ? values[s].owned : rows[s].initial;
}

const char *settings_source(enum setting s)
{
    return values[s].owned ? values[s].source : NULL;
}

const char *settings_other_names(enum setting s)
{
    return rows[s].aliases;
}

const char *settings_variable(enum setting s)
{
    return rows[s].variable;
}

/* ---- By name ---- */

static bool find_by_name(const char *name, enum setting *s)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *s = (enum setting)i;
            return true;
        }
    }
    log_error("a module asks for GSHMEM_%s, which is not a setting of this library", name);
    return false;
}

int64_t settings_number_of(const char *name)
{
    enum setting s;

    return find_by_name(name, &s) ? settings_number(s) : 0;
}

const char *settings_string_of(const char *name)
{
    enum setting s;

    return find_by_name(name, &s) ? settings_string(s) : "";
}

/* Whether the line, of n bytes, is one of this library's table. */
static bool has_line(const char *line, size_t n)
{
    for (const char *own = settings_layout; *own; own += strcspn(own, "\n") + 1) {
        if (strncmp(own, line, n) == 0 && own[n] == '\n')
            return true;
    }
    return false;
}

bool settings_find_other(const char *layout, char *name, size_t size)
{
    while (*layout) {
        size_t n = strcspn(layout, "\n");
        if (!has_line(layout, n)) {
            snprintf(name, size, "%.*s", (int)strcspn(layout, " \n"), layout);
            return true;
        }
        layout += n + (layout[n] == '\n');
    }
    return false;
}

static bool is_asked_for(const struct setting_row *row, const char *pattern)
{
    char wild[128];

    if (!pattern)
        return true;
    snprintf(wild, sizeof wild, "*%s*", pattern);
    return fnmatch(wild, row->variable, FNM_CASEFOLD) == 0 ||
           fnmatch(wild, row->text, FNM_CASEFOLD) == 0 ||
           (row->aliases && fnmatch(wild, row->aliases, FNM_CASEFOLD) == 0);
}

int settings_print(FILE *to, const char *pattern, settings_automatic *automatic)
{
    int n = 0;

    for (int s = 0; s < SETTING_COUNT; s++) {
        const struct setting_row *row = &rows[s];
        const char *source = settings_source((enum setting)s);
        bool is_auto = is_or_auto(row) && values[s].number == atoll(row->range);
        char here[80] = "", value[100], words[WORDS_BYTES];

        if (!is_asked_for(row, pattern))
            continue;
        n++;
        if (is_auto)
            automatic((enum setting)s, here, sizeof here);
        snprintf(value, sizeof value, "%s%s%s%s",
                 is_auto ? "auto" : settings_string((enum setting)s), here[0] ? " (" : "", here,
                 here[0] ? ")" : "");
        fprintf(to, "%-22s %-10s %s%s%s%s%s", row->variable, value, row->text,
                row->range ? " [" : "", is_or_auto(row) ? "auto, " : "",
                row->range ? range_text(row, words) : "", row->range ? "]" : "");
        if (row->aliases)
            fprintf(to, " also: %s", row->aliases);
        if (source)
            fprintf(to, " (set by %s)", source);
        fputc('\n', to);
    }
    return n;
}
