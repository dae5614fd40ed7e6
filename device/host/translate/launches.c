/* k<<<g, b>>>(a) becomes a call that is configured: translate.c says how. */
#define _GNU_SOURCE
#include "syntax.h"

#include <string.h>

/* The >>> that closes the <<< at i, or count. */
static size_t configuration_end(const struct translation *t, size_t i)
{
    for (i += 3; i < t->source.count; i++) {
        if (syntax_is(t, i, "(") || syntax_is(t, i, "[") || syntax_is(t, i, "{"))
            i = token_closing(&t->source, i);
        else if (syntax_triple(t, i, ">") && syntax_is(t, i + 3, "("))
            return i;
        else if (syntax_is(t, i, ";") || syntax_is(t, i, "}"))
            break;
    }
    return t->source.count;
}

/* The first token of the name or expression that ends before i: a::b<c>::d, (*p), f().g, x->y[2].
 */
static size_t callee_start(const struct translation *t, size_t i)
{
    const struct source *s = &t->source;

    for (;;) {
        size_t last = i - 1;

        if (syntax_is(t, last, ">")) {
            size_t open = syntax_angle_opening(t, last);
            last = open < s->count ? open - 1 : open;
        }
        while (syntax_is(t, last, ")") || syntax_is(t, last, "]")) {
            size_t open = token_opening(s, last);
            if (open >= s->count || !open)
                return s->count;
            bool more = token_is_word(s, open - 1) || syntax_is(t, open - 1, "]") ||
                        syntax_is(t, open - 1, ")");
            if (!more)
                return open;
            last = open - 1;
        }
        if (!token_is_word(s, last))
            return s->count;
        i = last;
        if (i && syntax_is(t, i - 1, "template"))
            i--;
        if (i &&
            (syntax_is(t, i - 1, "::") || syntax_is(t, i - 1, ".") || syntax_is(t, i - 1, "->"))) {
            if (syntax_is(t, i - 1, "::") &&
                !(i > 1 && (token_is_word(s, i - 2) || syntax_is(t, i - 2, ">"))))
                return i - 1; /* ::k */
            i--;
            continue;
        }
        return i;
    }
}

/* How far into its line a token stands. */
static int column(const struct translation *t, size_t i)
{
    const char *at = syntax_start_of(t, i), *start = at;

    while (start > t->source.text && start[-1] != '\n')
        start--;
    return (int)(at - start);
}

/* Puts the configuration [from, to) before its callee. Line markers say where it was, and then
 * where the callee is; blanks keep the columns. */
static void move_configuration(struct translation *t, size_t callee, size_t from, size_t to)
{
    static const char open[] = "(::gshmem_host::configure(", close[] = "), ";
    const struct token *first = &t->source.tokens[from], *back = &t->source.tokens[callee];
    int pad = column(t, callee) - (int)strlen(close);

    edits_insert(&t->edits, syntax_start_of(t, callee),
                 "%s\n# %d \"%s\"\n%*s%.*s\n# %d \"%s\"\n%*s%s", open, first->line,
                 t->source.files[first->file], column(t, from), "",
                 (int)(syntax_end_of(t, to - 1) - first->at), first->at, back->line,
                 t->source.files[back->file], pad > 0 ? pad : 0, "", close);
}

size_t translate_launch(struct translation *t, size_t i)
{
    const struct source *s = &t->source;
    size_t callee = i ? callee_start(t, i) : s->count;
    size_t end = configuration_end(t, i);

    if (callee >= s->count) {
        syntax_complain(t, i, "<<< without the kernel that it launches before it");
        return i + 3;
    }
    if (end >= s->count) {
        syntax_complain(t, i, "<<< without >>>(arguments) that belong to it");
        return i + 3;
    }
    size_t close = token_closing(s, end + 3);
    if (close >= s->count) {
        syntax_complain(t, end, "the arguments of this launch have no end");
        return i + 3;
    }
    if (end == i + 3) {
        syntax_complain(t, i, "<<<>>> needs the number of blocks and of threads");
        return i + 3;
    }
    move_configuration(t, callee, i + 3, end);
    edits_remove(&t->edits, syntax_start_of(t, i), syntax_end_of(t, end + 2));
    edits_insert(&t->edits, syntax_end_of(t, close), ")");
    return end + 3; /* arguments may launch too */
}
