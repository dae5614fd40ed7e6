#include "runtime/where/function_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct shortened {
    char *text;
    size_t used, size;
};

static void name_put(struct shortened *s, const char *from, size_t n)
{
    for (; n && s->used + 1 < s->size; n--)
        s->text[s->used++] = *from++;
    s->text[s->used] = 0;
}

/* Behind the bracket that closes the one at `at`, or at the end. */
static const char *skip_brackets(const char *at, char open, char close)
{
    int depth = 0;

    for (; *at; at++) {
        depth += *at == open;
        depth -= *at == close && !(close == '>' && at[-1] == '-');
        if (depth == 0)
            return at + 1;
    }
    return at;
}

static bool name_begins(const char *at, const char *text)
{
    return strncmp(at, text, strlen(text)) == 0;
}

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* "operator<<", "operator()", "operator bool": behind it. */
static const char *put_operator(struct shortened *s, const char *at)
{
    const char *const from = at;

    at += strlen("operator");
    if (name_begins(at, "()"))
        at += 2;
    else if (*at == ' ')
        at += strcspn(at, "(");
    else
        at += strspn(at, "<>=!+-*/%^&|~,[]");
    name_put(s, from, (size_t)(at - from));
    return at + name_begins(at, " <"); /* "operator< <int>" */
}

/* "{lambda(int)#1}": behind it. */
static const char *put_braces(struct shortened *s, const char *at)
{
    for (; *at && *at != '}'; at++) {
        name_put(s, at, 1);
        if (*at == '(') {
            at = skip_brackets(at, '(', ')') - 1;
            name_put(s, ")", 1);
        }
    }
    name_put(s, at, *at == '}');
    return at + (*at == '}');
}

void function_name_shorten(const char *function, char *text, size_t size)
{
    struct shortened s = {text, 0, size};

    for (const char *at = function; *at;) {
        if (name_begins(at, "operator") && !is_of_name(at[8]) &&
            (at == function || !is_of_name(at[-1]))) {
            at = put_operator(&s, at);
        } else if (name_begins(at, "(anonymous namespace)")) {
            name_put(&s, at, strlen("(anonymous namespace)"));
            at += strlen("(anonymous namespace)");
        } else if (*at == '{') {
            at = put_braces(&s, at);
        } else if (*at == '<') {
            at = skip_brackets(at, '<', '>');
            name_put(&s, "<>", 2);
        } else if (*at == '(') { /* parameters: a function in that function may follow */
            at = skip_brackets(at, '(', ')');
            at += name_begins(at, " const::") ? strlen(" const") : 0;
            if (!name_begins(at, "::"))
                break;
        } else if (*at == ' ') { /* what it returns comes before */
            s.used = 0;
            at++;
        } else {
            name_put(&s, at++, 1);
        }
    }
    if (!s.used)
        snprintf(text, size, "%s", function);
}
