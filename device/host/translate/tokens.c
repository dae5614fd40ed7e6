#define _GNU_SOURCE
#include "tokens.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 20 };

static bool tokens_complain(const char *what)
{
    fprintf(stderr, "gshmem-hostcc: %s: %s\n", what, strerror(errno));
    return false;
}

static bool read_all(struct source *s, int descriptor)
{
    size_t room = 0;

    for (;;) {
        if (room - s->length < READ_BYTES) {
            room += READ_BYTES + room / 2;
            char *more = realloc(s->text, room);
            if (!more)
                return tokens_complain("reading the source");
            s->text = more;
        }
        ssize_t n = read(descriptor, s->text + s->length, room - s->length - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tokens_complain("reading the source");
        if (n == 0)
            break;
        s->length += (size_t)n;
    }
    s->text[s->length] = 0;
    return true;
}

struct cutter {
    struct source *source;
    const char *at, *end;
    size_t file, room;
    int line;
    bool fresh; /* nothing but white space since the line began */
};

static bool add_file(struct cutter *c, const char *name, size_t length)
{
    struct source *s = c->source;

    for (size_t i = 0; i < s->files_count; i++) {
        if (strlen(s->files[i]) == length && memcmp(s->files[i], name, length) == 0) {
            c->file = i;
            return true;
        }
    }
    char **more = realloc(s->files, (s->files_count + 1) * sizeof *more);
    if (!more)
        return false;
    s->files = more;
    if (!(more[s->files_count] = strndup(name, length)))
        return false;
    c->file = s->files_count++;
    return true;
}

static bool add_token(struct cutter *c, enum token_kind kind, const char *end)
{
    struct source *s = c->source;

    if (s->count == c->room) {
        c->room = c->room ? 2 * c->room : 4096;
        struct token *more = realloc(s->tokens, c->room * sizeof *more);
        if (!more)
            return false;
        s->tokens = more;
    }
    s->tokens[s->count++] = (struct token){kind, c->at, (size_t)(end - c->at), c->file, c->line};
    for (const char *p = c->at; p < end; p++)
        c->line += *p == '\n';
    c->at = end;
    return true;
}

/* # 12 "file" 1 3, and other lines that begin with #, which pass unseen. */
static bool directive(struct cutter *c)
{
    const char *end = memchr(c->at, '\n', (size_t)(c->end - c->at));
    const char *p = c->at + 1;

    if (!end)
        end = c->end;
    while (*p == ' ')
        p++;
    if (strncmp(p, "line ", 5) == 0)
        p += 5;
    c->at = end;
    if (!isdigit((unsigned char)*p))
        return true;
    c->line = atoi(p) - 1; /* its own end of line follows */
    const char *name = memchr(p, '"', (size_t)(end - p));
    const char *close = name ? memchr(name + 1, '"', (size_t)(end - name - 1)) : NULL;
    return !close || add_file(c, name + 1, (size_t)(close - name - 1));
}

static const char *quoted_end(const struct cutter *c, const char *p)
{
    char quote = *p++;

    while (p < c->end && *p != quote && *p != '\n')
        p += *p == '\\' && p + 1 < c->end ? 2 : 1;
    return p < c->end ? p + 1 : p;
}

/* R"mark(…)mark", at its first quote. */
static const char *raw_end(const struct cutter *c, const char *p)
{
    char close[32];
    size_t n = strcspn(p + 1, "(");

    if (n > 16)
        return quoted_end(c, p);
    snprintf(close, sizeof close, ")%.*s\"", (int)n, p + 1);
    const char *end = strstr(p, close);
    return end ? end + strlen(close) : c->end;
}

static bool word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 128;
}

/* Where the token at c->at ends, and what it is. */
static const char *token_end(const struct cutter *c, enum token_kind *kind)
{
    const char *p = c->at;

    if (isdigit((unsigned char)*p) || (*p == '.' && isdigit((unsigned char)p[1]))) {
        *kind = TOKEN_NUMBER;
        while (word_char(*p) || *p == '.' || (*p == '\'' && word_char(p[1])) ||
               ((*p == '+' || *p == '-') && strchr("eEpP", p[-1]) &&
                !(c->at[0] == '0' && strchr("xX", c->at[1]) && strchr("eE", p[-1]))))
            p++;
        return p;
    }
    if (word_char(*p)) {
        while (word_char(*p))
            p++;
        *kind = TOKEN_WORD;
        if (*p != '"' && *p != '\'')
            return p;
        *kind = TOKEN_TEXT; /* a prefix: L"…", u8R"(…)" */
        return *p == '"' && p[-1] == 'R' ? raw_end(c, p) : quoted_end(c, p);
    }
    if (*p == '"' || *p == '\'') {
        *kind = TOKEN_TEXT;
        return quoted_end(c, p);
    }
    *kind = TOKEN_MARK;
    if ((p[0] == ':' && p[1] == ':') || (p[0] == '-' && p[1] == '>'))
        return p + 2;
    return p + 1;
}

static const char *comment_end(const struct cutter *c)
{
    const char *p = c->at;
    const char *end = p[1] == '/' ? strchr(p, '\n') : strstr(p + 2, "*/");

    if (!end)
        return c->end;
    return p[1] == '/' ? end : end + 2;
}

static bool tokens_cut(struct cutter *c)
{
    enum token_kind kind;

    while (c->at < c->end) {
        const char *p = c->at;

        if (*p == '\n') {
            c->line++;
            c->fresh = true;
            c->at++;
        } else if (isspace((unsigned char)*p) || *p == '\\' || !*p) {
            c->at++;
        } else if (*p == '#' && c->fresh) {
            if (!directive(c))
                return false;
        } else if (*p == '/' && (p[1] == '/' || p[1] == '*')) {
            const char *end = comment_end(c);
            for (; c->at < end; c->at++)
                c->line += *c->at == '\n';
        } else {
            c->fresh = false;
            const char *end = token_end(c, &kind);
            if (!add_token(c, kind, end))
                return false;
        }
    }
    return true;
}

bool source_read(struct source *s, int descriptor)
{
    *s = (struct source){.text = NULL};
    if (!read_all(s, descriptor))
        return false;
    struct cutter c = {
        .source = s, .at = s->text, .end = s->text + s->length, .line = 1, .fresh = true};
    if (add_file(&c, "stdin", strlen("stdin")) && tokens_cut(&c))
        return true;
    return tokens_complain("cutting up the source");
}

void source_free(struct source *s)
{
    for (size_t i = 0; i < s->files_count; i++)
        free(s->files[i]);
    free(s->files);
    free(s->tokens);
    free(s->text);
}

bool token_is(const struct source *s, size_t i, const char *text)
{
    return i < s->count && s->tokens[i].length == strlen(text) &&
           memcmp(s->tokens[i].at, text, s->tokens[i].length) == 0;
}

bool token_is_word(const struct source *s, size_t i)
{
    return i < s->count && s->tokens[i].kind == TOKEN_WORD;
}

static int bracket(const struct source *s, size_t i)
{
    if (s->tokens[i].kind != TOKEN_MARK)
        return 0;
    char c = *s->tokens[i].at;
    return strchr("([{", c) && c ? 1 : strchr(")]}", c) && c ? -1 : 0;
}

size_t token_closing(const struct source *s, size_t i)
{
    int depth = 0;

    for (; i < s->count; i++) {
        depth += bracket(s, i);
        if (depth == 0)
            return i;
    }
    return s->count;
}

size_t token_opening(const struct source *s, size_t i)
{
    int depth = 0;

    for (; i < s->count; i--) { /* below 0 it wraps, and ends */
        depth += bracket(s, i);
        if (depth == 0)
            return i;
    }
    return s->count;
}
