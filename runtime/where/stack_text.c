#define _GNU_SOURCE
#include "runtime/where/stack_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/where/lines.h"
#include "runtime/where/where.h"

enum { FRAMES_SHOWN = 4 }; /* of a stack */

void text_add(struct text *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(t->at + t->used, sizeof t->at - t->used, format, args);
    va_end(args);
    size_t at = t->used;
    t->used += n < 0 ? 0 : (size_t)n;
    if (t->used >= sizeof t->at)
        t->used = sizeof t->at - 1;
    for (; at < t->used; at++)
        t->at[at] = (unsigned char)t->at[at] < ' ' || t->at[at] == 0x7f ? '?' : t->at[at];
}

static bool is_library(const char *path)
{
    const char *name = strrchr(path, '/');

    name = name ? name + 1 : path;
    return strncmp(name, "libgshmem", 9) == 0 || strncmp(name, "libc.", 5) == 0 ||
           strncmp(name, "libc-", 5) == 0 || strncmp(name, "libpthread", 10) == 0 ||
           strncmp(name, "ld-", 3) == 0 || strncmp(name, "linux-vdso", 10) == 0;
}

static bool is_start_of_process(const struct line *line)
{
    return strcmp(line->function, "_start") == 0 ||
           strncmp(line->function, "__libc_start", 12) == 0;
}

static void add_line(struct text *t, const struct line *line)
{
    const char *name = line->path ? strrchr(line->path, '/') : NULL;

    if (line->function[0] && line->source[0])
        text_add(t, "%s (%s)", line->function, line->source);
    else if (line->function[0])
        text_add(t, "%s", line->function);
    else
        text_add(t, "%s+0x%llx", name ? name + 1 : line->path, (unsigned long long)line->at);
}

/* The frames of the program, the innermost first. A call of the C library that it is in comes
 * before them; false: there is nothing to say. */
bool text_add_stack(struct text *t, const struct lines *lines, const struct where_page *page,
                    const uint64_t *frame, uint32_t n)
{
    int shown = 0;

    for (uint32_t i = 0; i < n && shown < FRAMES_SHOWN; i++) {
        const struct line *line = lines_find(lines, page, frame[i]);
        if (!line || line->of_gshmem || is_library(line->path) || is_start_of_process(line))
            continue;
        text_add(t, shown++ ? " < " : "");
        add_line(t, line);
        if (strcmp(line->function, "main") == 0)
            break;
    }
    return shown > 0;
}

const struct where_thread *stack_of_main(const struct where_pe *p)
{
    for (uint32_t i = 0; p->stacks && i < p->stacks->threads; i++) {
        if (p->page && p->stacks->thread[i].tid == p->page->pid)
            return &p->stacks->thread[i];
    }
    return p->stacks && p->stacks->threads ? &p->stacks->thread[0] : NULL;
}

static bool has_wait_of(const struct where_pe *p, int32_t tid)
{
    int i = 0;

    while (i < p->n_waits && where_thread_of(&p->waits[i]) != tid)
        i++;
    return i < p->n_waits;
}

/* Whether its innermost function that is in no library is the program's, and not one of our headers
 * that the compiler has put into it. */
static bool runs_in_program(const struct where_pe *p, const struct where_thread *t,
                            const struct lines *lines)
{
    const struct line *line = NULL;

    for (uint32_t i = 0; i < t->frames && i < WHERE_FRAMES; i++) {
        line = lines_find(lines, p->page, t->frame[i]);
        if (line && !is_library(line->path))
            break;
    }
    return line && !is_library(line->path) && !line->in_gshmem;
}

/* Of a PE whose main thread waits, or sleeps, a thread that runs in the program: of its own, or of
 * a kernel. */
static const struct where_thread *running_thread(const struct where_pe *p,
                                                 const struct lines *lines)
{
    const struct where_thread *main = stack_of_main(p);

    for (uint32_t i = 0; p->stacks && i < p->stacks->threads; i++) {
        const struct where_thread *t = &p->stacks->thread[i];
        if (t->state == 'R' && !t->guessed && t != main && !has_wait_of(p, t->tid) &&
            runs_in_program(p, t, lines))
            return t;
    }
    return NULL;
}

/* "beside it, a thread runs in compute (a.c:7)". */
bool text_add_running(struct text *t, const struct where_pe *p, bool name_pe,
                      const struct lines *lines)
{
    const struct where_thread *thread = running_thread(p, lines);
    struct text stack = {.used = 0};

    if (!thread || !text_add_stack(&stack, lines, p->page, thread->frame, thread->frames))
        return false;
    text_add(t, "beside it, a thread");
    if (name_pe)
        text_add(t, " of PE %d", p->pe);
    text_add(t, " runs in %s", stack.at);
    return true;
}
