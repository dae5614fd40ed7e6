/* __shared__ variables become references, also in lambdas: translate.c says how. */
#define _GNU_SOURCE
#include "syntax.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const storage[] = {"static", "extern", "__shared__", NULL};
static const char *const specifiers[] = {"static", "extern",   "volatile", "const",
                                         "inline", "unsigned", NULL};
static const char *const attributes[] = {"__attribute__", "alignas", NULL};

/* The first token of the declaration around the __shared__ at i. */
static size_t declaration_start(const struct translation *t, size_t i)
{
    while (i) {
        if (syntax_is_any(t, i - 1, specifiers)) {
            i--;
        } else if (syntax_is(t, i - 1, ")")) {
            size_t open = token_opening(&t->source, i - 1);
            if (open >= t->source.count || !open || !syntax_is_any(t, open - 1, attributes))
                break;
            i = open - 1;
        } else {
            break;
        }
    }
    return i;
}

static size_t declaration_end(const struct translation *t, size_t i)
{
    while (i < t->source.count && !syntax_is(t, i, ";"))
        i = syntax_is(t, i, "(") || syntax_is(t, i, "[") || syntax_is(t, i, "{")
                ? token_closing(&t->source, i) + 1
                : i + 1;
    return i;
}

/* The tokens [from, to) without the words of storage, and without attributes if wanted so. */
static struct text type_text(struct translation *t, size_t from, size_t to, bool bare)
{
    struct text text = {NULL, 0};

    for (size_t i = from; i < to; i++) {
        if (syntax_is_any(t, i, storage))
            continue;
        if (bare && syntax_is_any(t, i, attributes)) {
            i = token_closing(&t->source, i + 1);
            continue;
        }
        char *word = syntax_text_of(t, i, i + 1);
        syntax_append(&text, "%s%s", text.length ? " " : "", word ? word : "");
        free(word);
    }
    return text;
}

/* The name that the declarator [i, end) declares, or count: the last word outside of brackets, or
 * the first in parentheses, as in (*p)[3]. */
static size_t declared_name(const struct translation *t, size_t i, size_t end)
{
    const struct source *s = &t->source;
    size_t name = s->count;

    for (; i < end; i++) {
        if (syntax_is_any(t, i, attributes)) {
            i = token_closing(s, i + 1);
        } else if (syntax_is(t, i, "(")) {
            for (size_t j = i; j < end; j++) {
                if (token_is_word(s, j))
                    return j;
            }
        } else if (syntax_is(t, i, "[")) {
            break;
        } else if (syntax_is(t, i, "{")) {
            i = token_closing(s, i);
        } else if (syntax_is(t, i, "<")) {
            i = syntax_angle_closing(t, i);
        } else if (token_is_word(s, i)) {
            name = i;
        }
    }
    return name;
}

/* The word switch whose block begins at token open, or count. */
static size_t switch_of(const struct translation *t, size_t open)
{
    size_t condition = open && open < t->source.count && syntax_is(t, open - 1, ")")
                           ? token_opening(&t->source, open - 1)
                           : t->source.count;

    return condition && condition < t->source.count && syntax_is(t, condition - 1, "switch")
               ? condition - 1
               : t->source.count;
}

/* Puts what declares shared memory where the declaration from `start` on stands; or, of a block
 * that is a switch's, before that, in a block of their own. */
static void declare(struct translation *t, size_t start, const char *text)
{
    size_t open = syntax_block_start(t, start), word = switch_of(t, open), none = t->source.count;
    size_t close = word < none ? token_closing(&t->source, open) : none;

    if (close >= none) {
        edits_insert(&t->edits, syntax_start_of(t, start), "%s", text);
        return;
    }
    edits_insert(&t->edits, syntax_start_of(t, word), "{ %s; ", text);
    edits_insert(&t->edits, syntax_end_of(t, close), " }");
}

/* extern __shared__ T name[], outside of functions: a name of the library's own variable for it. */
static const char everywhere[] = "extern __thread %s *%s __asm__(\"gshmem_host_dynamic_here\") "
                                 "__attribute__((tls_model(\"initial-exec\")))";

static void translate_dynamic(struct translation *t, size_t start, size_t end)
{
    const struct source *s = &t->source;
    size_t name_at = declared_name(t, start, end);

    if (name_at >= s->count || !syntax_is(t, name_at + 1, "[")) {
        syntax_complain(t, start,
                           "extern __shared__ declares one array without a size: T name[]");
        return;
    }
    struct text type = type_text(t, start, name_at, true), text = {NULL, 0};
    char *name = syntax_text_of(t, name_at, name_at + 1);
    if (type.bytes && name && syntax_outside_functions(t, start))
        syntax_append(&text, everywhere, type.bytes, name);
    else if (type.bytes && name)
        syntax_append(&text, "%s *%s = (%s *)gshmem_host_shared_dynamic()", type.bytes, name,
                         type.bytes);
    if (text.bytes)
        declare(t, start, text.bytes);
    else
        t->edits.out_of_memory = true;
    edits_remove(&t->edits, syntax_start_of(t, start), syntax_start_of(t, end));
    free(text.bytes);
    free(type.bytes);
    free(name);
}

/* ---- Lambdas ---- */

/* The { of the lambda that begins with the [ at i and copies what it names ([=…]), or count. */
static size_t copying_lambda(const struct translation *t, size_t i)
{
    const struct source *s = &t->source;

    if (!syntax_is(t, i + 1, "=") || !(syntax_is(t, i + 2, "]") || syntax_is(t, i + 2, ",")))
        return s->count;
    for (i = token_closing(s, i) + 1; i < s->count && !syntax_is(t, i, "{"); i++) {
        if (syntax_is(t, i, ";") || syntax_is(t, i, ")") || syntax_is(t, i, "}"))
            return s->count;
        if (syntax_is(t, i, "("))
            i = token_closing(s, i);
        if (i >= s->count)
            break;
    }
    return i;
}

static bool is_named(const struct translation *t, size_t from, size_t to, const char *name)
{
    for (size_t i = from; i < to; i++) {
        if (syntax_is(t, i, name))
            return true;
    }
    return false;
}

/* Whether the lambda from the [ at i to its body captures it expressly, or has a parameter of that
 * name. What else names it there, a decltype, takes no copy. */
static bool declares(const struct translation *t, size_t i, size_t body, const char *name)
{
    const struct source *s = &t->source;
    static const char *const behind[] = {",", ")", "=", "[", NULL};
    size_t captures = token_closing(s, i), open = captures + 1;

    if (is_named(t, i, captures, name))
        return true;
    while (open < body && !syntax_is(t, open, "("))
        open++;
    for (size_t j = open + 1, end = open < body ? token_closing(s, open) : 0; j < end; j++) {
        if (syntax_is(t, j, "(") || syntax_is(t, j, "[") || syntax_is(t, j, "{"))
            j = token_closing(s, j);
        else if (syntax_is(t, j, name) && syntax_is_any(t, j + 1, behind))
            return true;
    }
    return false;
}

/* Lambdas in the block of the declaration that ends at `end` name what it declares by themselves,
 * unless a parameter has that name. The body keeps a block of its own, in which it may declare
 * another of it. */
static void name_in_lambdas(struct translation *t, size_t end, const char *name, const char *number)
{
    const struct source *s = &t->source;
    size_t open = syntax_block_start(t, end),
           stop = open < s->count ? token_closing(s, open) : s->count;

    for (size_t i = end; i < stop; i++) {
        size_t body = syntax_is(t, i, "[") ? copying_lambda(t, i) : s->count;
        size_t close = body < s->count ? token_closing(s, body) : s->count;

        if (close >= s->count || declares(t, i, body, name) || !is_named(t, body, close, name))
            continue;
        edits_insert(&t->edits, syntax_end_of(t, body),
                     " auto &%s __attribute__((unused)) = "
                     "::gshmem_host::shared<gshmem_host_shared_%s>().%s; {",
                     name, number, name);
        edits_insert(&t->edits, syntax_start_of(t, close), "}");
    }
}

static void translate_static(struct translation *t, size_t start, size_t end)
{
    struct text type = type_text(t, start, end, false);
    /* Named by its place: a header's functions are the same in all sources that include it. */
    int line = t->source.tokens[start].line;
    char number[32];

    t->shared_count = line == t->shared_line ? t->shared_count + 1 : 0;
    t->shared_line = line;
    snprintf(number, sizeof number, "%d_%u", line, t->shared_count);
    if (syntax_outside_functions(t, start)) {
        syntax_complain(t, start,
                           "__shared__ outside of functions needs extern on the host device; "
                           "declare it in the kernel");
        free(type.bytes);
        return;
    }
    struct text text = {NULL, 0};
    syntax_append(
        &text,
        "struct gshmem_host_shared_%s { %s; }; gshmem_host_shared_%s &gshmem_host_here_%s "
        "= ::gshmem_host::shared<gshmem_host_shared_%s>()",
        number, type.bytes ? type.bytes : "", number, number, number);
    for (size_t i = start; i < end;) {
        size_t stop = syntax_item_end(t, i, end), name_at = declared_name(t, i, stop);
        char *name = name_at < stop ? syntax_text_of(t, name_at, name_at + 1) : NULL;

        if (name) {
            syntax_append(&text, "; auto &%s = gshmem_host_here_%s.%s", name, number, name);
            name_in_lambdas(t, end, name, number);
        } else {
            syntax_complain(t, start, "cannot find the name that this __shared__ declares");
        }
        free(name);
        i = stop + 1;
    }
    if (text.bytes)
        declare(t, start, text.bytes);
    else
        t->edits.out_of_memory = true;
    free(text.bytes);
    edits_remove(&t->edits, syntax_start_of(t, start), syntax_start_of(t, end));
    free(type.bytes);
}

size_t translate_shared(struct translation *t, size_t i)
{
    size_t start = declaration_start(t, i), end = declaration_end(t, i);
    bool dynamic = false;

    if (end >= t->source.count) {
        syntax_complain(t, i, "this __shared__ declaration has no end");
        return i + 1;
    }
    for (size_t j = start; j < end; j++)
        dynamic = dynamic || syntax_is(t, j, "extern");
    (dynamic ? translate_dynamic : translate_static)(t, start, end);
    return end;
}
