#define _GNU_SOURCE
#include "bootstrap/run/chorus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/run/say.h"
#include "runtime/base/alike.h"

enum {
    LINES_MOST = 256,
    QUOTED = 60, /* bytes of a line that are enough to know it by */
    TURN = 32,   /* lines at a time: PEs may send without end, and the launcher has more to do */
};

struct chorus_line {
    int more; /* how often it arrived after the first, and since the count was last written */
    size_t length;
    char *text;
};

bool chorus_open(struct chorus *c)
{
    int ends[2];

    *c = (struct chorus){.in = -1, .out = -1};
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    c->in = ends[0];
    c->out = ends[1];
    return true;
}

static void chorus_write_line(const char *line, size_t length)
{
    /* A line that stderr refuses has nowhere else to go. */
    if (write(STDERR_FILENO, line, length) < 0)
        return;
}

static struct chorus_line *chorus_find(struct chorus *c, const char *text, size_t length)
{
    for (int i = 0; i < c->n_lines; i++) {
        if (c->line[i].length == length && memcmp(c->line[i].text, text, length) == 0)
            return &c->line[i];
    }
    return NULL;
}

/* Without memory for it the next that is equal is written, too. */
static void chorus_keep(struct chorus *c, const char *text, size_t length)
{
    size_t bytes = ((size_t)c->n_lines + 1) * sizeof *c->line;
    struct chorus_line *grown = c->n_lines < LINES_MOST ? realloc(c->line, bytes) : NULL;
    char *copy = grown ? malloc(length) : NULL;

    if (grown)
        c->line = grown;
    if (!copy)
        return;
    memcpy(copy, text, length);
    c->line[c->n_lines++] = (struct chorus_line){.length = length, .text = copy};
}

static void chorus_receive(struct chorus *c, const struct alike_message *m, size_t length)
{
    if (m->prefix > length || length == 0)
        return; /* no line of the library's */
    const char *text = m->line + m->prefix;
    struct chorus_line *known = chorus_find(c, text, length - m->prefix);
    if (known) {
        known->more++;
        return;
    }
    chorus_write_line(m->line, length);
    chorus_keep(c, text, length - m->prefix);
}

bool chorus_take(struct chorus *c)
{
    struct alike_message m;
    const size_t head = offsetof(struct alike_message, line);
    ssize_t n;

    int taken = 0;

    do {
        n = recv(c->in, &m, sizeof m, MSG_DONTWAIT);
        if (n > (ssize_t)head)
            chorus_receive(c, &m, (size_t)n - head);
    } while (++taken < TURN && (n >= 0 || errno == EINTR));
    return taken == TURN;
}

bool chorus_is_counting(const struct chorus *c)
{
    for (int i = 0; i < c->n_lines; i++) {
        if (c->line[i].more)
            return true;
    }
    return false;
}

void chorus_count(struct chorus *c)
{
    for (int i = 0; i < c->n_lines; i++) {
        struct chorus_line *line = &c->line[i];
        size_t length =
            line->length && line->text[line->length - 1] == '\n' ? line->length - 1 : line->length;

        if (line->more)
            say("heard %d more time%s: %.*s%s", line->more, line->more == 1 ? "" : "s",
                (int)(length < QUOTED ? length : QUOTED), line->text, length > QUOTED ? "..." : "");
        line->more = 0;
    }
}

void chorus_close(struct chorus *c)
{
    for (int i = 0; i < c->n_lines; i++)
        free(c->line[i].text);
    free(c->line);
    if (c->in >= 0)
        close(c->in);
    if (c->out >= 0)
        close(c->out);
    *c = (struct chorus){.in = -1, .out = -1};
}
