#define _GNU_SOURCE
#include "edits.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static struct edit *edits_add(struct edits *e, const char *at)
{
    if (e->count == e->room) {
        size_t room = e->room ? 2 * e->room : 64;
        struct edit *more = realloc(e->list, room * sizeof *more);
        if (!more) {
            e->out_of_memory = true;
            return NULL;
        }
        e->list = more;
        e->room = room;
    }
    e->list[e->count] = (struct edit){.at = at, .number = e->count};
    return &e->list[e->count++];
}

void edits_insert(struct edits *e, const char *at, const char *format, ...)
{
    struct edit *edit = edits_add(e, at);
    va_list args;

    if (!edit)
        return;
    va_start(args, format);
    if (vasprintf(&edit->text, format, args) < 0) {
        edit->text = NULL;
        e->out_of_memory = true;
    }
    va_end(args);
}

void edits_remove(struct edits *e, const char *from, const char *to)
{
    struct edit *edit = edits_add(e, from);

    if (edit)
        edit->removed = (size_t)(to - from);
}

static int by_place(const void *a, const void *b)
{
    const struct edit *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

/* Does a line marker begin here, at the start of a line? */
static bool marker(const char *at, const char *start)
{
    return *at == '#' && at > start && at[-1] == '\n';
}

/* What is left of a piece taken out: its lines. */
static void write_lines(const char *at, size_t removed, const char *start, FILE *to)
{
    const char *end = at + removed;

    while (at < end) {
        size_t line = strcspn(at, "\n");

        if (marker(at, start))
            fwrite(at, 1, line, to);
        at += line;
        if (at < end)
            fputc('\n', to);
        at++;
    }
}

void edits_write(struct edits *e, const char *text, size_t length, FILE *to)
{
    const char *done = text;

    if (e->count)
        qsort(e->list, e->count, sizeof e->list[0], by_place);
    for (size_t i = 0; i < e->count; i++) {
        const struct edit *edit = &e->list[i];

        if (edit->at > done) {
            fwrite(done, 1, (size_t)(edit->at - done), to);
            done = edit->at;
        }
        if (edit->text)
            fputs(edit->text, to);
        if (edit->removed && edit->at + edit->removed > done) {
            write_lines(done, (size_t)(edit->at + edit->removed - done), text, to);
            done = edit->at + edit->removed;
        }
    }
    fwrite(done, 1, (size_t)(text + length - done), to);
}

void edits_free(struct edits *e)
{
    for (size_t i = 0; i < e->count; i++)
        free(e->list[i].text);
    free(e->list);
}

char *edits_one_line(const char *from, const char *to)
{
    char *line = malloc((size_t)(to - from) + 1), *end = line;

    if (!line)
        return NULL;
    for (const char *p = from; p < to; p++) {
        if (*p == '#' && p > from && p[-1] == '\n') {
            while (p < to && *p != '\n')
                p++;
        }
        if (p < to)
            *end++ = *p == '\n' ? ' ' : *p;
    }
    *end = 0;
    return line;
}
