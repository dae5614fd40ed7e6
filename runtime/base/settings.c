#define _GNU_SOURCE
#include "runtime/base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"

enum setting_kind { STRING, CHOICE, SIZE, SECONDS, COUNT };

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
    char *owned;        /* a copy of the environment's text; NULL: the default holds */
    char source[40];    /* the variable it came from */
};

static struct setting_value values[SETTING_COUNT];

/* Variables of the launcher's wire and of the tests' tools; not settings, so not listed. */
static const char *const foreign[] = {"GSHMEM_RUN_", "GSHMEM_TEST_"};

bool settings_parse_size(const char *text, int64_t *bytes)
{
    static const char units[] = "KMGTP";
    char *end;

    while (isspace((unsigned char)*text))
        text++;
    if (!isdigit((unsigned char)*text) && *text != '.')
        return false; /* no sign, no inf, no nan */
    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text || strpbrk(text, "xXpP") == text + 1)
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
    if (row->kind == SIZE)
        return settings_parse_size(low, &least) && settings_parse_size(high, &most) &&
               number >= least && number <= most;
    return whole_number(low, &least) && whole_number(high, &most) && number >= least &&
           number <= most;
}

static bool parse(const struct setting_row *row, const char *text, int64_t *number)
{
    *number = 0;
    switch (row->kind) {
    case STRING:
        return true;
    case CHOICE:
        *number = choice_index(row->range, text);
        return *number >= 0;
    case SIZE:
        return settings_parse_size(text, number) && in_range(row, *number);
    case SECONDS:
    case COUNT:
        return whole_number(text, number) && in_range(row, *number);
    }
    return false;
}

static const char *find(const struct setting_row *row, char *source, size_t size)
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

static gshmem_status_t load_one(enum setting s)
{
    const struct setting_row *row = &rows[s];
    struct setting_value next = {.owned = NULL};
    const char *text = find(row, next.source, sizeof next.source);

    if (!text)
        next.source[0] = 0;
    else if (!(next.owned = strdup(text)))
        return fail(GSHMEM_ERR_MEMORY, "reading %s: out of memory", next.source);
    if (!parse(row, text ? text : row->initial, &next.number)) {
        gshmem_status_t status =
            fail(GSHMEM_ERR_ARGUMENT, "%s=%s: expected %s%s (%s)", next.source, text,
                 row->kind == SIZE ? "a size like 512M in " : "", row->range, row->text);
        free(next.owned);
        return status;
    }
    free(values[s].owned);
    values[s] = next;
    return GSHMEM_OK;
}

/* Edit distance, for "did you mean"; the names are short. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[48];
    size_t m = strlen(b);

    if (m + 1 > sizeof row / sizeof row[0])
        return 99;
    for (size_t j = 0; j <= m; j++)
        row[j] = (unsigned)j;
    for (unsigned i = 1; *a; a++, i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            unsigned swap = diagonal + (*a != b[j - 1]);
            diagonal = row[j];
            unsigned best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = swap < best ? swap : best;
        }
    }
    return row[m];
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
        unsigned d = distance(name, rows[s].variable);
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
    for (int s = 0; s < SETTING_COUNT; s++) {
        gshmem_status_t status = load_one((enum setting)s);
        if (status)
            return status;
    }
    log_set_level((enum log_level)values[SETTING_LOG].number);
    return GSHMEM_OK;
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

void settings_print(FILE *to)
{
    for (int s = 0; s < SETTING_COUNT; s++) {
        const struct setting_row *row = &rows[s];
        const char *source = settings_source((enum setting)s);

        fprintf(to, "%-22s %-10s %s%s%s%s", row->variable, settings_string((enum setting)s),
                row->text, row->range ? " [" : "", row->range ? row->range : "",
                row->range ? "]" : "");
        if (row->aliases)
            fprintf(to, " also: %s", row->aliases);
        if (source)
            fprintf(to, " (set by %s)", source);
        fputc('\n', to);
    }
}
