#define _GNU_SOURCE
#include "syntax.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) void syntax_complain(struct translation *t, size_t i,
                                                           const char *format, ...)
{
    const struct token *token = &t->source.tokens[i < t->source.count ? i : t->source.count - 1];
    va_list args;

    va_start(args, format);
    fprintf(stderr, "%s:%d: error: ", t->source.files[token->file], token->line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    t->errors++;
}

const char *syntax_start_of(const struct translation *t, size_t i)
{
    return t->source.tokens[i].at;
}

const char *syntax_end_of(const struct translation *t, size_t i)
{
    return t->source.tokens[i].at + t->source.tokens[i].length;
}

bool syntax_is(const struct translation *t, size_t i, const char *text)
{
    return token_is(&t->source, i, text);
}

bool syntax_is_any(const struct translation *t, size_t i, const char *const *texts)
{
    for (; *texts; texts++) {
        if (syntax_is(t, i, *texts))
            return true;
    }
    return false;
}

/* The text of tokens [from, to) on one line, to be freed. */
char *syntax_text_of(struct translation *t, size_t from, size_t to)
{
    char *text =
        from < to ? edits_one_line(syntax_start_of(t, from), syntax_end_of(t, to - 1)) : strdup("");

    if (!text)
        t->edits.out_of_memory = true;
    return text;
}

/* The operator <<, which no template arguments begin with. */
bool syntax_shifts(const struct translation *t, size_t i)
{
    return syntax_is(t, i, "<") && syntax_is(t, i + 1, "<") &&
           syntax_start_of(t, i + 1) == syntax_end_of(t, i);
}

/* The < of the template arguments that end with the > at i, or count. */
size_t syntax_angle_opening(const struct translation *t, size_t i)
{
    int depth = 0;

    for (; i < t->source.count; i--) {
        if (syntax_is(t, i, ")") || syntax_is(t, i, "]") || syntax_is(t, i, "}")) {
            i = token_opening(&t->source, i);
            if (i >= t->source.count)
                break;
        } else if (syntax_is(t, i, ">")) {
            depth++;
        } else if (i && syntax_shifts(t, i - 1)) {
            i--;
        } else if (syntax_is(t, i, "<") && --depth == 0) {
            return i;
        } else if (syntax_is(t, i, ";") || syntax_is(t, i, "{") || syntax_is(t, i, "(")) {
            break;
        }
    }
    return t->source.count;
}

/* Three marks in a row, with nothing but blanks between them. */
bool syntax_triple(const struct translation *t, size_t i, const char *mark)
{
    return syntax_is(t, i, mark) && syntax_is(t, i + 1, mark) && syntax_is(t, i + 2, mark);
}

__attribute__((format(printf, 2, 3))) void syntax_append(struct text *text,
                                                                   const char *format, ...)
{
    char *piece = NULL;
    va_list args;

    va_start(args, format);
    int n = vasprintf(&piece, format, args);
    va_end(args);
    char *more = n >= 0 ? realloc(text->bytes, text->length + (size_t)n + 1) : NULL;
    if (more) {
        memcpy(more + text->length, piece, (size_t)n + 1);
        text->bytes = more;
        text->length += (size_t)n;
    }
    if (n >= 0)
        free(piece);
}

/* Where an item of a list that ends before `end` stops: at its comma, or at end. */
size_t syntax_item_end(const struct translation *t, size_t i, size_t end)
{
    int angles = 0;

    for (; i < end; i++) {
        if (syntax_is(t, i, "(") || syntax_is(t, i, "[") || syntax_is(t, i, "{"))
            i = token_closing(&t->source, i);
        else if (syntax_is(t, i, "<"))
            angles++;
        else if (syntax_is(t, i, ">"))
            angles -= angles > 0;
        else if (syntax_is(t, i, ",") && !angles)
            return i;
    }
    return end;
}

size_t syntax_angle_closing(const struct translation *t, size_t i)
{
    int depth = 0;

    for (; i < t->source.count; i++) {
        if (syntax_is(t, i, "(") || syntax_is(t, i, "[") || syntax_is(t, i, "{"))
            i = token_closing(&t->source, i);
        else if (syntax_shifts(t, i))
            i++;
        else if (syntax_is(t, i, "<"))
            depth++;
        else if (syntax_is(t, i, ">") && --depth == 0)
            return i;
    }
    return t->source.count;
}

/* The { of the block that token i is in, or count. */
size_t syntax_block_start(const struct translation *t, size_t i)
{
    const struct source *s = &t->source;

    while (i-- > 0) {
        if (syntax_is(t, i, "}") || syntax_is(t, i, ")") || syntax_is(t, i, "]"))
            i = token_opening(s, i);
        else if (syntax_is(t, i, "{"))
            return i;
        if (i >= s->count)
            break;
    }
    return s->count;
}

/* Is token i outside of every function? Then each { around it is a namespace's or extern "C"'s. */
bool syntax_outside_functions(const struct translation *t, size_t i)
{
    const struct source *s = &t->source;

    while (i-- > 0) {
        if (syntax_is(t, i, "}") || syntax_is(t, i, ")")) {
            i = token_opening(s, i);
            if (i >= s->count)
                return true;
        } else if (syntax_is(t, i, "{")) {
            size_t j = i;
            while (j && (token_is_word(s, j - 1) || syntax_is(t, j - 1, "::")) &&
                   !syntax_is(t, j - 1, "namespace"))
                j--;
            bool space = j && syntax_is(t, j - 1, "namespace");
            bool linkage = i && s->tokens[i - 1].kind == TOKEN_TEXT;
            if (!space && !linkage)
                return false;
        }
    }
    return true;
}
