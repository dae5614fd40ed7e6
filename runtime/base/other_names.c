#include "runtime/base/other_names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool other_names_next(const char **names, struct other_name *other)
{
    const size_t n = *names ? strcspn(*names, ",(") : 0;

    if (n == 0)
        return false;
    snprintf(other->name, sizeof other->name, "%.*s", (int)n, *names);
    *names += n;
    other->values = NULL;
    if (**names == '(') {
        other->values = *names + 1;
        other->bytes = (int)strcspn(other->values, ")");
        *names = other->values + other->bytes + 1;
    }
    *names += **names == ',';
    return true;
}

static bool is_one_of_words(const char *text, const char *const words[])
{
    while (*words && strcasecmp(text, *words) != 0)
        words++;
    return *words;
}

/* Whether a variable's text is one of their values; 1 and 0 stand for all words for on and off. */
static bool other_names_match(const char *text, const char *theirs, size_t n)
{
    static const char *const off[] = {"0", "off", "no", "n", "false", "f", NULL};
    static const char *const on[] = {"1", "on", "yes", "y", "true", "t", NULL};

    if (n == 1 && (*theirs == '0' || *theirs == '1'))
        return is_one_of_words(text, *theirs == '0' ? off : on);
    return strlen(text) == n && strncasecmp(text, theirs, n) == 0;
}

bool other_names_value(const struct other_name *other, int *at, struct other_value *v)
{
    if (!other->values || *at >= other->bytes)
        return false;
    v->theirs = other->values + *at;
    v->theirs_bytes = (int)strcspn(v->theirs, "=");
    v->ours = v->theirs + v->theirs_bytes + 1;
    v->ours_bytes = (int)strcspn(v->ours, " )");
    *at += v->theirs_bytes + 1 + v->ours_bytes + 1;
    return true;
}

bool other_names_translate(const struct other_name *other, const char *text, char *value,
                           size_t size)
{
    struct other_value v;
    size_t used = 0;

    for (int at = 0; other_names_value(other, &at, &v);) {
        if (!other_names_match(text, v.theirs, (size_t)v.theirs_bytes))
            continue;
        snprintf(value, size, "%.*s", v.ours_bytes, v.ours);
        return true;
    }
    for (int at = 0; used < size && other_names_value(other, &at, &v);)
        used += (size_t)snprintf(value + used, size - used, "%s%.*s", used ? ", " : "",
                                 v.theirs_bytes, v.theirs);
    return false;
}
