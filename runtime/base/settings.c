#define _GNU_SOURCE
#include "runtime/base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/spelling.h"

enum setting_kind { STRING, CHOICE, SIZE, SIZE_OR_AUTO, SECONDS, COUNT, COUNT_OR_AUTO };

struct setting_row {
    const char *variable; /* with its prefix */
    const char *aliases;
    enum setting_kind kind;
    const char *initial;
    const char *range;
    const char *text;
};

static const struct setting_row rows[SETTING_COUNT] = {
#define X(id, name, aliases, kind, initial, range, text)                                           \
    [SETTING_##id] = {"GSHMEM_" name, aliases, kind, initial, range, text},
    SETTINGS_TABLE(X)
#undef X
};

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

/* Index of text in "a|b|c", or -1. */
static int choice_index(const char *choices, const char *text)
{
    size_t length = strlen(text);

    for (int i = 0;; i++) {
        size_t n = strcspn(choices, "|");
        if (n == length && strncasecmp(choices, text, n) == 0)
            return i;
        if (!choices[n])
            return -1;
        choices += n + 1;
    }
}

static bool is_one_of(const char *text, const char *choices)
{
    return choice_index(choices, text) >= 0;
}

/* A choice by its own word; a switch also by other common words for on and off. */
static int settings_choose(const char *choices, const char *text)
{
    int off = choice_index(choices, "off"), i = choice_index(choices, text);

    if (i >= 0 || off < 0 || strchr(strchr(choices, '|') + 1, '|'))
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

static const char *settings_find(const struct setting_row *row, char *source, size_t size)
{
    const char *names = row->aliases ? row->aliases : "";
    const char *text = getenv(row->variable);

    snprintf(source, size, "%s", row->variable);
    while (!text && *names) {
        size_t n = strcspn(names, ",");
        snprintf(source, size, "%.*s", (int)n, names);
        text = getenv(source);
        names += names[n] ? n + 1 : n;
    }
    return text;
}

static char *choice_word(const char *choices, int i)
{
    while (i-- > 0)
        choices += strcspn(choices, "|") + 1;
    return strndup(choices, strcspn(choices, "|"));
}

static gshmem_status_t load_one(enum setting s)
{
    const struct setting_row *row = &rows[s];
    struct setting_value next = {.owned = NULL};
    const char *text = settings_find(row, next.source, sizeof next.source);

    if (!settings_parse(row, text ? text : row->initial, &next.number))
        return fail(GSHMEM_ERR_ARGUMENT, "%s=%s: expected %s%s%s (%s)", next.source, text,
                    is_or_auto(row) ? "auto, or " : "",
                    row->kind == SIZE || row->kind == SIZE_OR_AUTO ? "a size like 512M in " : "", row->range,
                    row->text);
    if (!text)
        next.source[0] = 0;
    else if (!(next.owned = row->kind == CHOICE ? choice_word(row->range, (int)next.number) : strdup(text)))
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
    return first;
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

const char *settings_variable(enum setting s)
{
    return rows[s].variable;
}

static bool is_asked_for(const struct setting_row *row, const char *pattern)
{
    char wild[128];

    if (!pattern)
        return true;
    snprintf(wild, sizeof wild, "*%s*", pattern);
    return fnmatch(wild, row->variable, FNM_CASEFOLD) == 0 || fnmatch(wild, row->text, FNM_CASEFOLD) == 0 ||
           (row->aliases && fnmatch(wild, row->aliases, FNM_CASEFOLD) == 0);
}

int settings_print(FILE *to, const char *pattern, settings_automatic *automatic)
{
    int n = 0;

    for (int s = 0; s < SETTING_COUNT; s++) {
        const struct setting_row *row = &rows[s];
        const char *source = settings_source((enum setting)s);
        bool is_auto = is_or_auto(row) && values[s].number == atoll(row->range);
        char here[80] = "", value[100];

        if (!is_asked_for(row, pattern))
            continue;
        n++;
        if (is_auto)
            automatic((enum setting)s, here, sizeof here);
        snprintf(value, sizeof value, "%s%s%s%s", is_auto ? "auto" : settings_string((enum setting)s),
                 here[0] ? " (" : "", here, here[0] ? ")" : "");
        fprintf(to, "%-22s %-10s %s%s%s%s%s", row->variable, value, row->text, row->range ? " [" : "",
                is_or_auto(row) ? "auto, " : "", row->range ? row->range : "", row->range ? "]" : "");
        if (row->aliases)
            fprintf(to, " also: %s", row->aliases);
        if (source)
            fprintf(to, " (set by %s)", source);
        fputc('\n', to);
    }
    return n;
}
