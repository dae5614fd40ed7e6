/* A __global__ function becomes the function that launches it: translate.c says how. */
#define _GNU_SOURCE
#include "syntax.h"

#include <stdlib.h>

static const char *const not_names[] = {"__attribute__", "alignas",  "decltype", "noexcept",
                                        "__declspec",    "requires", NULL};

/* The ( of the parameters of the function declared from i on, or count. */
static size_t parameters_start(const struct translation *t, size_t i)
{
    const struct source *s = &t->source;

    for (; i < s->count && !syntax_is(t, i, ";") && !syntax_is(t, i, "{"); i++) {
        if (!syntax_is(t, i, "("))
            continue;
        if (!syntax_is_any(t, i - 1, not_names) &&
            (token_is_word(s, i - 1) || syntax_is(t, i - 1, ">")))
            return i;
        i = token_closing(s, i);
    }
    return s->count;
}

/* Where the default value of the item [i, end) begins, or end. */
static size_t default_start(const struct translation *t, size_t i, size_t end)
{
    int angles = 0;

    for (; i < end; i++) {
        if (syntax_is(t, i, "(") || syntax_is(t, i, "[") || syntax_is(t, i, "{"))
            i = token_closing(&t->source, i);
        else if (syntax_is(t, i, "<"))
            angles++;
        else if (syntax_is(t, i, ">"))
            angles -= angles > 0;
        else if (syntax_is(t, i, "=") && !angles)
            return i;
    }
    return end;
}

/* The parameters between ( and ) without their default values. */
static struct text signature(struct translation *t, size_t open, size_t close)
{
    struct text text = {NULL, 0};

    syntax_append(&text, "void(");
    for (size_t i = open + 1; i < close;) {
        size_t end = syntax_item_end(t, i, close);
        char *item = syntax_text_of(t, i, default_start(t, i, end));

        syntax_append(&text, "%s%s", i == open + 1 ? "" : ", ", item ? item : "");
        free(item);
        i = end + 1;
    }
    syntax_append(&text, ")");
    return text;
}

/* Template parameters <class T, int N = 3, class... R> as arguments <T, N, R...>. One without a
 * name has a default, which will do, and so have those after it. */
static void append_arguments(struct translation *t, struct text *text, size_t open, size_t close)
{
    syntax_append(text, "<");
    for (size_t i = open + 1; i < close;) {
        size_t end = syntax_item_end(t, i, close), last = default_start(t, i, end) - 1;
        bool pack = false;

        if (last == i || !token_is_word(&t->source, last) || syntax_is(t, last - 1, "::"))
            break;
        for (size_t j = i; j < last; j++)
            pack = pack || syntax_triple(t, j, ".");
        char *name = syntax_text_of(t, last, last + 1);
        syntax_append(text, "%s%s%s", i == open + 1 ? "" : ", ", name ? name : "",
                         pack ? "..." : "");
        free(name);
        i = end + 1;
    }
    syntax_append(text, ">");
}

/* The < of the template<…> before the declaration that token i is a part of, or count. */
static size_t template_before(const struct translation *t, size_t i)
{
    const struct source *s = &t->source;

    while (i-- > 0) {
        if (syntax_is(t, i, ";") || syntax_is(t, i, "{") || syntax_is(t, i, "}") ||
            syntax_is(t, i, ":"))
            break;
        if (syntax_is(t, i, ")")) {
            i = token_opening(s, i);
        } else if (syntax_is(t, i, ">")) {
            i = syntax_angle_opening(t, i);
            if (i < s->count && i && syntax_is(t, i - 1, "template"))
                return i;
        }
        if (i >= s->count)
            break;
    }
    return s->count;
}

/* The kernel's name as its body can write it: k, k<T, N>, or k<int> for a specialisation. */
static struct text translate_name_of(struct translation *t, size_t global, size_t open)
{
    struct text text = {NULL, 0};
    size_t first = open - 1, none = t->source.count;

    if (syntax_is(t, first, ">")) {
        size_t angle = syntax_angle_opening(t, first);
        first = angle < none && angle ? angle - 1 : first;
    }
    char *name = syntax_text_of(t, first, open);
    syntax_append(&text, "%s", name ? name : "");
    free(name);
    size_t angle = syntax_is(t, open - 1, ">") ? none : template_before(t, global);
    if (angle < none && !syntax_is(t, angle + 1, ">"))
        append_arguments(t, &text, angle, syntax_angle_closing(t, angle));
    return text;
}

/* Past what may stand between a parameter list and a body. */
static size_t body_start(const struct translation *t, size_t close)
{
    size_t i = close + 1;

    while (i < t->source.count && !syntax_is(t, i, "{") && !syntax_is(t, i, ";") &&
           !syntax_is(t, i, "="))
        i = syntax_is(t, i, "(") ? token_closing(&t->source, i) + 1 : i + 1;
    return i;
}

void translate_kernel(struct translation *t, size_t i)
{
    const struct source *s = &t->source;
    size_t open = parameters_start(t, i + 1);
    size_t close = open < s->count ? token_closing(s, open) : s->count;

    edits_remove(&t->edits, syntax_start_of(t, i), syntax_end_of(t, i));
    if (close >= s->count) {
        syntax_complain(t, i, "__global__ without a function that it belongs to");
        return;
    }
    size_t body = body_start(t, close);
    if (!syntax_is(t, body, "{"))
        return; /* a declaration */
    size_t end = token_closing(s, body);
    if (end >= s->count) {
        syntax_complain(t, body, "this kernel's body has no end");
        return;
    }
    struct text type = signature(t, open, close), name = translate_name_of(t, i, open);
    char *plain = syntax_text_of(t, open - 1, open);
    size_t word = syntax_is(t, open - 1, ">") ? syntax_angle_opening(t, open - 1) - 1 : open - 1;
    free(plain);
    plain = syntax_text_of(t, word, word + 1);
    if (type.bytes && name.bytes && plain) {
        edits_insert(&t->edits, syntax_end_of(t, body),
                     " auto gshmem_host_body = [=]() mutable {");
        edits_insert(&t->edits, syntax_start_of(t, end),
                     "}; ::gshmem_host::kernel<%s, %s>::launch(\"%s\", gshmem_host_body); ",
                     type.bytes, name.bytes, plain);
    } else {
        t->edits.out_of_memory = true;
    }
    free(type.bytes);
    free(name.bytes);
    free(plain);
}
