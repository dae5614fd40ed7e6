/* CUDA source in, C++ for the host device out; both preprocessed.
 *
 * The preprocessor has gone before, so launches and __shared__ in macros and in headers of the
 * user's look like any others. Four things are not C++, and only those change:
 *
 *     k<T><<<g, b>>>(a);           (gshmem_host::configure(g, b), k<T>(a));
 *     __global__ void k(int a)     void k(int a)
 *     { body }                     { auto b = [=]() mutable { body };
 *                                    gshmem_host::kernel<void(int a), k>::launch("k", b); }
 *     __shared__ T a[3], b;        struct s { T a[3], b; }; auto &a = shared<s>().a; auto &b = …
 *     extern __shared__ T a[];     T *a = dynamic shared memory
 *     [=](int i) { return a[i]; }  [=](int i) { auto &a = shared<s>().a; { return a[i]; } }
 *
 * So a __global__ function becomes the call that launches it, with C++'s own rules for overloads,
 * template arguments and conversions; its parameters are captured by the lambda. Lines stay where
 * they are: what the compiler says is about the user's own.
 *
 * What is __shared__ has static storage for CUDA: lambdas do not copy it, and a case of a switch may stand behind
 * it. Here it is a reference, so lambdas that would copy it name it again, and of a switch it stands in front. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "edits.h"
#include "tokens.h"
#include "translate.h"

struct translation {
    struct source source;
    struct edits edits;
    int shared_line; /* of the last __shared__, and how many there were in that line before */
    unsigned shared_count;
    int errors;
};

__attribute__((format(printf, 3, 4))) static void
translate_complain(struct translation *t, size_t i, const char *format, ...)
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

static const char *start_of(const struct translation *t, size_t i)
{
    return t->source.tokens[i].at;
}

static const char *translate_end_of(const struct translation *t, size_t i)
{
    return t->source.tokens[i].at + t->source.tokens[i].length;
}

static bool is(const struct translation *t, size_t i, const char *text)
{
    return token_is(&t->source, i, text);
}

static bool is_any(const struct translation *t, size_t i, const char *const *texts)
{
    for (; *texts; texts++) {
        if (is(t, i, *texts))
            return true;
    }
    return false;
}

/* The text of tokens [from, to) on one line, to be freed. */
static char *text_of(struct translation *t, size_t from, size_t to)
{
    char *text =
        from < to ? edits_one_line(start_of(t, from), translate_end_of(t, to - 1)) : strdup("");

    if (!text)
        t->edits.out_of_memory = true;
    return text;
}

/* The operator <<, which no template arguments begin with. */
static bool shifts(const struct translation *t, size_t i)
{
    return is(t, i, "<") && is(t, i + 1, "<") && start_of(t, i + 1) == translate_end_of(t, i);
}

/* The < of the template arguments that end with the > at i, or count. */
static size_t angle_opening(const struct translation *t, size_t i)
{
    int depth = 0;

    for (; i < t->source.count; i--) {
        if (is(t, i, ")") || is(t, i, "]") || is(t, i, "}")) {
            i = token_opening(&t->source, i);
            if (i >= t->source.count)
                break;
        } else if (is(t, i, ">")) {
            depth++;
        } else if (i && shifts(t, i - 1)) {
            i--;
        } else if (is(t, i, "<") && --depth == 0) {
            return i;
        } else if (is(t, i, ";") || is(t, i, "{") || is(t, i, "(")) {
            break;
        }
    }
    return t->source.count;
}

/* --- Launches --- */

/* Three marks in a row, with nothing but blanks between them. */
static bool triple(const struct translation *t, size_t i, const char *mark)
{
    return is(t, i, mark) && is(t, i + 1, mark) && is(t, i + 2, mark);
}

/* The >>> that closes the <<< at i, or count. */
static size_t configuration_end(const struct translation *t, size_t i)
{
    for (i += 3; i < t->source.count; i++) {
        if (is(t, i, "(") || is(t, i, "[") || is(t, i, "{"))
            i = token_closing(&t->source, i);
        else if (triple(t, i, ">") && is(t, i + 3, "("))
            return i;
        else if (is(t, i, ";") || is(t, i, "}"))
            break;
    }
    return t->source.count;
}

/* The first token of the name or expression that ends before i: a::b<c>::d, (*p), f().g, x->y[2]. */
static size_t callee_start(const struct translation *t, size_t i)
{
    const struct source *s = &t->source;

    for (;;) {
        size_t last = i - 1;

        if (is(t, last, ">")) {
            size_t open = angle_opening(t, last);
            last = open < s->count ? open - 1 : open;
        }
        while (is(t, last, ")") || is(t, last, "]")) {
            size_t open = token_opening(s, last);
            if (open >= s->count || !open)
                return s->count;
            bool more = token_is_word(s, open - 1) || is(t, open - 1, "]") || is(t, open - 1, ")");
            if (!more)
                return open;
            last = open - 1;
        }
        if (!token_is_word(s, last))
            return s->count;
        i = last;
        if (i && is(t, i - 1, "template"))
            i--;
        if (i && (is(t, i - 1, "::") || is(t, i - 1, ".") || is(t, i - 1, "->"))) {
            if (is(t, i - 1, "::") && !(i > 1 && (token_is_word(s, i - 2) || is(t, i - 2, ">"))))
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
    const char *at = start_of(t, i), *start = at;

    while (start > t->source.text && start[-1] != '\n')
        start--;
    return (int)(at - start);
}

/* Puts the configuration [from, to) before its callee. Line markers say where it was, and then where
 * the callee is; blanks keep the columns. */
static void move_configuration(struct translation *t, size_t callee, size_t from, size_t to)
{
    static const char open[] = "(::gshmem_host::configure(", close[] = "), ";
    const struct token *first = &t->source.tokens[from], *back = &t->source.tokens[callee];
    int pad = column(t, callee) - (int)strlen(close);

    edits_insert(&t->edits, start_of(t, callee), "%s\n# %d \"%s\"\n%*s%.*s\n# %d \"%s\"\n%*s%s",
                 open, first->line, t->source.files[first->file], column(t, from), "",
                 (int)(translate_end_of(t, to - 1) - first->at), first->at, back->line,
                 t->source.files[back->file], pad > 0 ? pad : 0, "", close);
}

static size_t translate_launch(struct translation *t, size_t i)
{
    const struct source *s = &t->source;
    size_t callee = i ? callee_start(t, i) : s->count;
    size_t end = configuration_end(t, i);

    if (callee >= s->count) {
        translate_complain(t, i, "<<< without the kernel that it launches before it");
        return i + 3;
    }
    if (end >= s->count) {
        translate_complain(t, i, "<<< without >>>(arguments) that belong to it");
        return i + 3;
    }
    size_t close = token_closing(s, end + 3);
    if (close >= s->count) {
        translate_complain(t, end, "the arguments of this launch have no end");
        return i + 3;
    }
    if (end == i + 3) {
        translate_complain(t, i, "<<<>>> needs the number of blocks and of threads");
        return i + 3;
    }
    move_configuration(t, callee, i + 3, end);
    edits_remove(&t->edits, start_of(t, i), translate_end_of(t, end + 2));
    edits_insert(&t->edits, translate_end_of(t, close), ")");
    return end + 3; /* arguments may launch too */
}

/* --- Kernels --- */

static const char *const not_names[] = {"__attribute__", "alignas",  "decltype", "noexcept",
                                        "__declspec",    "requires", NULL};

/* The ( of the parameters of the function declared from i on, or count. */
static size_t parameters_start(const struct translation *t, size_t i)
{
    const struct source *s = &t->source;

    for (; i < s->count && !is(t, i, ";") && !is(t, i, "{"); i++) {
        if (!is(t, i, "("))
            continue;
        if (!is_any(t, i - 1, not_names) && (token_is_word(s, i - 1) || is(t, i - 1, ">")))
            return i;
        i = token_closing(s, i);
    }
    return s->count;
}

/* Appends to a growing text. */
struct text {
    char *bytes;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void translate_append(struct text *text,
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
static size_t item_end(const struct translation *t, size_t i, size_t end)
{
    int angles = 0;

    for (; i < end; i++) {
        if (is(t, i, "(") || is(t, i, "[") || is(t, i, "{"))
            i = token_closing(&t->source, i);
        else if (is(t, i, "<"))
            angles++;
        else if (is(t, i, ">"))
            angles -= angles > 0;
        else if (is(t, i, ",") && !angles)
            return i;
    }
    return end;
}

/* Where the default value of the item [i, end) begins, or end. */
static size_t default_start(const struct translation *t, size_t i, size_t end)
{
    int angles = 0;

    for (; i < end; i++) {
        if (is(t, i, "(") || is(t, i, "[") || is(t, i, "{"))
            i = token_closing(&t->source, i);
        else if (is(t, i, "<"))
            angles++;
        else if (is(t, i, ">"))
            angles -= angles > 0;
        else if (is(t, i, "=") && !angles)
            return i;
    }
    return end;
}

/* The parameters between ( and ) without their default values. */
static struct text signature(struct translation *t, size_t open, size_t close)
{
    struct text text = {NULL, 0};

    translate_append(&text, "void(");
    for (size_t i = open + 1; i < close;) {
        size_t end = item_end(t, i, close);
        char *item = text_of(t, i, default_start(t, i, end));

        translate_append(&text, "%s%s", i == open + 1 ? "" : ", ", item ? item : "");
        free(item);
        i = end + 1;
    }
    translate_append(&text, ")");
    return text;
}

/* Template parameters <class T, int N = 3, class... R> as arguments <T, N, R...>. One without a name
 * has a default, which will do, and so have those after it. */
static void append_arguments(struct translation *t, struct text *text, size_t open, size_t close)
{
    translate_append(text, "<");
    for (size_t i = open + 1; i < close;) {
        size_t end = item_end(t, i, close), last = default_start(t, i, end) - 1;
        bool pack = false;

        if (last == i || !token_is_word(&t->source, last) || is(t, last - 1, "::"))
            break;
        for (size_t j = i; j < last; j++)
            pack = pack || triple(t, j, ".");
        char *name = text_of(t, last, last + 1);
        translate_append(text, "%s%s%s", i == open + 1 ? "" : ", ", name ? name : "",
                         pack ? "..." : "");
        free(name);
        i = end + 1;
    }
    translate_append(text, ">");
}

static size_t angle_closing(const struct translation *t, size_t i)
{
    int depth = 0;

    for (; i < t->source.count; i++) {
        if (is(t, i, "(") || is(t, i, "[") || is(t, i, "{"))
            i = token_closing(&t->source, i);
        else if (shifts(t, i))
            i++;
        else if (is(t, i, "<"))
            depth++;
        else if (is(t, i, ">") && --depth == 0)
            return i;
    }
    return t->source.count;
}

/* The < of the template<…> before the declaration that token i is a part of, or count. */
static size_t template_before(const struct translation *t, size_t i)
{
    const struct source *s = &t->source;

    while (i-- > 0) {
        if (is(t, i, ";") || is(t, i, "{") || is(t, i, "}") || is(t, i, ":"))
            break;
        if (is(t, i, ")")) {
            i = token_opening(s, i);
        } else if (is(t, i, ">")) {
            i = angle_opening(t, i);
            if (i < s->count && i && is(t, i - 1, "template"))
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

    if (is(t, first, ">")) {
        size_t angle = angle_opening(t, first);
        first = angle < none && angle ? angle - 1 : first;
    }
    char *name = text_of(t, first, open);
    translate_append(&text, "%s", name ? name : "");
    free(name);
    size_t angle = is(t, open - 1, ">") ? none : template_before(t, global);
    if (angle < none && !is(t, angle + 1, ">"))
        append_arguments(t, &text, angle, angle_closing(t, angle));
    return text;
}

/* Past what may stand between a parameter list and a body. */
static size_t body_start(const struct translation *t, size_t close)
{
    size_t i = close + 1;

    while (i < t->source.count && !is(t, i, "{") && !is(t, i, ";") && !is(t, i, "="))
        i = is(t, i, "(") ? token_closing(&t->source, i) + 1 : i + 1;
    return i;
}

static void translate_kernel(struct translation *t, size_t i)
{
    const struct source *s = &t->source;
    size_t open = parameters_start(t, i + 1);
    size_t close = open < s->count ? token_closing(s, open) : s->count;

    edits_remove(&t->edits, start_of(t, i), translate_end_of(t, i));
    if (close >= s->count) {
        translate_complain(t, i, "__global__ without a function that it belongs to");
        return;
    }
    size_t body = body_start(t, close);
    if (!is(t, body, "{"))
        return; /* a declaration */
    size_t end = token_closing(s, body);
    if (end >= s->count) {
        translate_complain(t, body, "this kernel's body has no end");
        return;
    }
    struct text type = signature(t, open, close), name = translate_name_of(t, i, open);
    char *plain = text_of(t, open - 1, open);
    size_t word = is(t, open - 1, ">") ? angle_opening(t, open - 1) - 1 : open - 1;
    free(plain);
    plain = text_of(t, word, word + 1);
    if (type.bytes && name.bytes && plain) {
        edits_insert(&t->edits, translate_end_of(t, body),
                     " auto gshmem_host_body = [=]() mutable {");
        edits_insert(&t->edits, start_of(t, end),
                     "}; ::gshmem_host::kernel<%s, %s>::launch(\"%s\", gshmem_host_body); ",
                     type.bytes, name.bytes, plain);
    } else {
        t->edits.out_of_memory = true;
    }
    free(type.bytes);
    free(name.bytes);
    free(plain);
}

/* --- Shared memory --- */

static const char *const storage[] = {"static", "extern", "__shared__", NULL};
static const char *const specifiers[] = {"static", "extern",   "volatile", "const",
                                         "inline", "unsigned", NULL};
static const char *const attributes[] = {"__attribute__", "alignas", NULL};

/* The first token of the declaration around the __shared__ at i. */
static size_t declaration_start(const struct translation *t, size_t i)
{
    while (i) {
        if (is_any(t, i - 1, specifiers)) {
            i--;
        } else if (is(t, i - 1, ")")) {
            size_t open = token_opening(&t->source, i - 1);
            if (open >= t->source.count || !open || !is_any(t, open - 1, attributes))
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
    while (i < t->source.count && !is(t, i, ";"))
        i = is(t, i, "(") || is(t, i, "[") || is(t, i, "{") ? token_closing(&t->source, i) + 1
                                                            : i + 1;
    return i;
}

/* The tokens [from, to) without the words of storage, and without attributes if wanted so. */
static struct text type_text(struct translation *t, size_t from, size_t to, bool bare)
{
    struct text text = {NULL, 0};

    for (size_t i = from; i < to; i++) {
        if (is_any(t, i, storage))
            continue;
        if (bare && is_any(t, i, attributes)) {
            i = token_closing(&t->source, i + 1);
            continue;
        }
        char *word = text_of(t, i, i + 1);
        translate_append(&text, "%s%s", text.length ? " " : "", word ? word : "");
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
        if (is_any(t, i, attributes)) {
            i = token_closing(s, i + 1);
        } else if (is(t, i, "(")) {
            for (size_t j = i; j < end; j++) {
                if (token_is_word(s, j))
                    return j;
            }
        } else if (is(t, i, "[")) {
            break;
        } else if (is(t, i, "{")) {
            i = token_closing(s, i);
        } else if (is(t, i, "<")) {
            i = angle_closing(t, i);
        } else if (token_is_word(s, i)) {
            name = i;
        }
    }
    return name;
}

/* Is token i outside of every function? Then each { around it is a namespace's or extern "C"'s. */
static bool outside_functions(const struct translation *t, size_t i)
{
    const struct source *s = &t->source;

    while (i-- > 0) {
        if (is(t, i, "}") || is(t, i, ")")) {
            i = token_opening(s, i);
            if (i >= s->count)
                return true;
        } else if (is(t, i, "{")) {
            size_t j = i;
            while (j && (token_is_word(s, j - 1) || is(t, j - 1, "::")) &&
                   !is(t, j - 1, "namespace"))
                j--;
            bool space = j && is(t, j - 1, "namespace");
            bool linkage = i && s->tokens[i - 1].kind == TOKEN_TEXT;
            if (!space && !linkage)
                return false;
        }
    }
    return true;
}

/* The { of the block that token i is in, or count. */
static size_t block_start(const struct translation *t, size_t i)
{
    const struct source *s = &t->source;

    while (i-- > 0) {
        if (is(t, i, "}") || is(t, i, ")") || is(t, i, "]"))
            i = token_opening(s, i);
        else if (is(t, i, "{"))
            return i;
        if (i >= s->count)
            break;
    }
    return s->count;
}

/* The word switch whose block begins at token open, or count. */
static size_t switch_of(const struct translation *t, size_t open)
{
    size_t condition = open && open < t->source.count && is(t, open - 1, ")") ? token_opening(&t->source, open - 1)
                                                                             : t->source.count;

    return condition && condition < t->source.count && is(t, condition - 1, "switch") ? condition - 1
                                                                                     : t->source.count;
}

/* Puts what declares shared memory where the declaration from `start` on stands; or, of a block that is a
 * switch's, before that, in a block of their own. */
static void declare(struct translation *t, size_t start, const char *text)
{
    size_t open = block_start(t, start), word = switch_of(t, open), none = t->source.count;
    size_t close = word < none ? token_closing(&t->source, open) : none;

    if (close >= none) {
        edits_insert(&t->edits, start_of(t, start), "%s", text);
        return;
    }
    edits_insert(&t->edits, start_of(t, word), "{ %s; ", text);
    edits_insert(&t->edits, translate_end_of(t, close), " }");
}

/* extern __shared__ T name[], outside of functions: a name of the library's own variable for it. */
static const char everywhere[] =
    "extern __thread %s *%s __asm__(\"gshmem_host_dynamic_here\") __attribute__((tls_model(\"initial-exec\")))";

static void translate_dynamic(struct translation *t, size_t start, size_t end)
{
    const struct source *s = &t->source;
    size_t name_at = declared_name(t, start, end);

    if (name_at >= s->count || !is(t, name_at + 1, "[")) {
        translate_complain(t, start,
                           "extern __shared__ declares one array without a size: T name[]");
        return;
    }
    struct text type = type_text(t, start, name_at, true), text = {NULL, 0};
    char *name = text_of(t, name_at, name_at + 1);
    if (type.bytes && name && outside_functions(t, start))
        translate_append(&text, everywhere, type.bytes, name);
    else if (type.bytes && name)
        translate_append(&text, "%s *%s = (%s *)gshmem_host_shared_dynamic()", type.bytes, name,
                         type.bytes);
    if (text.bytes)
        declare(t, start, text.bytes);
    else
        t->edits.out_of_memory = true;
    edits_remove(&t->edits, start_of(t, start), start_of(t, end));
    free(text.bytes);
    free(type.bytes);
    free(name);
}

/* ---- Lambdas ---- */

/* The { of the lambda that begins with the [ at i and copies what it names ([=…]), or count. */
static size_t copying_lambda(const struct translation *t, size_t i)
{
    const struct source *s = &t->source;

    if (!is(t, i + 1, "=") || !(is(t, i + 2, "]") || is(t, i + 2, ",")))
        return s->count;
    for (i = token_closing(s, i) + 1; i < s->count && !is(t, i, "{"); i++) {
        if (is(t, i, ";") || is(t, i, ")") || is(t, i, "}"))
            return s->count;
        if (is(t, i, "("))
            i = token_closing(s, i);
        if (i >= s->count)
            break;
    }
    return i;
}

static bool is_named(const struct translation *t, size_t from, size_t to, const char *name)
{
    for (size_t i = from; i < to; i++) {
        if (is(t, i, name))
            return true;
    }
    return false;
}

/* Whether the lambda from the [ at i to its body captures it expressly, or has a parameter of that name. What else
 * names it there, a decltype, takes no copy. */
static bool declares(const struct translation *t, size_t i, size_t body, const char *name)
{
    const struct source *s = &t->source;
    static const char *const behind[] = {",", ")", "=", "[", NULL};
    size_t captures = token_closing(s, i), open = captures + 1;

    if (is_named(t, i, captures, name))
        return true;
    while (open < body && !is(t, open, "("))
        open++;
    for (size_t j = open + 1, end = open < body ? token_closing(s, open) : 0; j < end; j++) {
        if (is(t, j, "(") || is(t, j, "[") || is(t, j, "{"))
            j = token_closing(s, j);
        else if (is(t, j, name) && is_any(t, j + 1, behind))
            return true;
    }
    return false;
}

/* Lambdas in the block of the declaration that ends at `end` name what it declares by themselves, unless a
 * parameter has that name. The body keeps a block of its own, in which it may declare another of it. */
static void name_in_lambdas(struct translation *t, size_t end, const char *name, const char *number)
{
    const struct source *s = &t->source;
    size_t open = block_start(t, end), stop = open < s->count ? token_closing(s, open) : s->count;

    for (size_t i = end; i < stop; i++) {
        size_t body = is(t, i, "[") ? copying_lambda(t, i) : s->count;
        size_t close = body < s->count ? token_closing(s, body) : s->count;

        if (close >= s->count || declares(t, i, body, name) || !is_named(t, body, close, name))
            continue;
        edits_insert(&t->edits, translate_end_of(t, body),
                     " auto &%s __attribute__((unused)) = "
                     "::gshmem_host::shared<gshmem_host_shared_%s>().%s; {",
                     name, number, name);
        edits_insert(&t->edits, start_of(t, close), "}");
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
    if (outside_functions(t, start)) {
        translate_complain(t, start,
                           "__shared__ outside of functions needs extern on the host device; "
                           "declare it in the kernel");
        free(type.bytes);
        return;
    }
    struct text text = {NULL, 0};
    translate_append(
        &text,
        "struct gshmem_host_shared_%s { %s; }; gshmem_host_shared_%s &gshmem_host_here_%s "
        "= ::gshmem_host::shared<gshmem_host_shared_%s>()",
        number, type.bytes ? type.bytes : "", number, number, number);
    for (size_t i = start; i < end;) {
        size_t stop = item_end(t, i, end), name_at = declared_name(t, i, stop);
        char *name = name_at < stop ? text_of(t, name_at, name_at + 1) : NULL;

        if (name) {
            translate_append(&text, "; auto &%s = gshmem_host_here_%s.%s", name, number, name);
            name_in_lambdas(t, end, name, number);
        } else {
            translate_complain(t, start, "cannot find the name that this __shared__ declares");
        }
        free(name);
        i = stop + 1;
    }
    if (text.bytes)
        declare(t, start, text.bytes);
    else
        t->edits.out_of_memory = true;
    free(text.bytes);
    edits_remove(&t->edits, start_of(t, start), start_of(t, end));
    free(type.bytes);
}

static size_t translate_shared(struct translation *t, size_t i)
{
    size_t start = declaration_start(t, i), end = declaration_end(t, i);
    bool dynamic = false;

    if (end >= t->source.count) {
        translate_complain(t, i, "this __shared__ declaration has no end");
        return i + 1;
    }
    for (size_t j = start; j < end; j++)
        dynamic = dynamic || is(t, j, "extern");
    (dynamic ? translate_dynamic : translate_static)(t, start, end);
    return end;
}

/* --- All of it --- */

static void translate(struct translation *t)
{
    const struct source *s = &t->source;

    for (size_t i = 0; i < s->count;) {
        if (triple(t, i, "<") && !(i && is(t, i - 1, "operator"))) {
            i = translate_launch(t, i);
            continue;
        }
        if (is(t, i, "__global__")) {
            translate_kernel(t, i);
        } else if (is(t, i, "__shared__")) {
            i = translate_shared(t, i);
            continue;
        } else if (is(t, i, "__noinline__") && !is(t, i - 1, "(") && !is(t, i - 1, ",") &&
                   !is(t, i - 1, "::")) {
            /* No macro: C++ libraries use the word in attributes. */
            edits_remove(&t->edits, start_of(t, i), translate_end_of(t, i));
            edits_insert(&t->edits, start_of(t, i), "__attribute__((noinline))");
        }
        i++;
    }
}

bool translate_source(int from, FILE *to)
{
    struct translation t = {.errors = 0};

    if (!source_read(&t.source, from))
        return false;
    translate(&t);
    if (t.edits.out_of_memory)
        fprintf(stderr, "gshmem-hostcc: translating: out of memory\n");
    bool ok = !t.errors && !t.edits.out_of_memory;
    if (ok)
        edits_write(&t.edits, t.source.text, t.source.length, to);
    edits_free(&t.edits);
    source_free(&t.source);
    return ok;
}
