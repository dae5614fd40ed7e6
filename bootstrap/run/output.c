#define _GNU_SOURCE
#include "bootstrap/run/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bootstrap/run/say.h"

enum {
    LINE_BYTES = 64 * 1024, /* a longer line is passed on in pieces */
    TAG_BYTES = 16,
    BATCH_BYTES =
        PIPE_BUF, /* a pipe takes so much in one piece, so that lines do not mix */
};

/* ---- the pipes ---- */

static void close_all(int (*ends)[2], int n)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            if (ends[i][k] >= 0)
                close(ends[i][k]);
            ends[i][k] = -1;
        }
    }
}

void output_close_readers(struct output *o)
{
    close_all(o->reader, o->n);
}

void output_close_writers(struct output *o)
{
    close_all(o->writer, o->n);
}

void output_close_writer(struct output *o, int pe)
{
    if (pe < o->n)
        close_all(&o->writer[pe], 1);
}

void output_free(struct output *o)
{
    output_close_readers(o);
    output_close_writers(o);
    free(o->reader);
    free(o->writer);
    *o = (struct output){0};
}

bool output_open(struct output *o, int n_pes)
{
    *o = (struct output){.n = 0};
    o->reader = malloc((size_t)n_pes * sizeof *o->reader);
    o->writer = malloc((size_t)n_pes * sizeof *o->writer);
    if (!o->reader || !o->writer) {
        say("out of memory");
        output_free(o);
        return false;
    }
    memset(o->reader, -1, (size_t)n_pes * sizeof *o->reader);
    memset(o->writer, -1, (size_t)n_pes * sizeof *o->writer);
    o->n = n_pes;
    for (int i = 0; i < 2 * n_pes; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            say("--tag-output: a pipe for PE %d: %s", i / 2, strerror(errno));
            output_free(o);
            return false;
        }
        o->reader[i / 2][i % 2] = ends[0];
        o->writer[i / 2][i % 2] = ends[1];
    }
    return true;
}

/* ---- the lines ---- */

struct stream {
    char *text; /* the begin of a line whose end has not come */
    size_t used;
    size_t capacity;
};

struct relay {
    struct output *o;
    struct stream (*stream)[2];
    int epoll;
    int open;       /* streams */
    bool broken[2]; /* our standard output, or error, has no reader any more, */
    bool failed
        [2]; /* or it takes nothing more, as a disk that is full: what PEs write is read and lost */
    char batch[BATCH_BYTES];
    size_t batched;
};

static void end_stream(struct relay *r, int pe, int which)
{
    int *fd = &r->o->reader[pe][which];

    if (*fd < 0)
        return;
    epoll_ctl(r->epoll, EPOLL_CTL_DEL, *fd, NULL); /* others may have it open still */
    close(*fd);
    *fd = -1;
    free(r->stream[pe][which].text);
    r->stream[pe][which] = (struct stream){0};
    r->open--;
}

/* Writes to standard output or error. When it has no reader, PEs notice that as without tags. */
static void write_out(struct relay *r, int which, const char *text, size_t n)
{
    int fd = which ? STDERR_FILENO : STDOUT_FILENO;

    while (n > 0 && !r->broken[which] && !r->failed[which]) {
        ssize_t done = write(fd, text, n);
        if (done >= 0) {
            text += done;
            n -= (size_t)done;
        } else if (errno == EAGAIN) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            poll(&p, 1, -1);
        } else if (errno == EPIPE) {
            r->broken[which] = true;
        } else if (errno != EINTR) {
            r->failed[which] = true;
            say("--tag-output: writing standard %s: %s; what PEs write there from now on is lost",
                which ? "error" : "output", strerror(errno));
        }
    }
}

static void output_flush(struct relay *r, int which)
{
    write_out(r, which, r->batch, r->batched);
    r->batched = 0;
}

/* One line, with or without its newline. */
static void output_pass_on(struct relay *r, int pe, int which, const char *line, size_t n)
{
    bool whole = n > 0 && line[n - 1] == '\n';

    if (r->batched + TAG_BYTES + n + 1 > sizeof r->batch)
        output_flush(r, which);
    r->batched += (size_t)snprintf(r->batch + r->batched, TAG_BYTES, "[%d] ", pe);
    if (r->batched + n + 1 > sizeof r->batch) {
        output_flush(r, which); /* a long line, by itself */
        write_out(r, which, line, n);
    } else {
        memcpy(r->batch + r->batched, line, n);
        r->batched += n;
    }
    if (!whole)
        r->batch[r->batched++] = '\n';
}

static void pass_on_lines(struct relay *r, int pe, int which)
{
    struct stream *s = &r->stream[pe][which];
    size_t from = 0;
    char *end;

    while ((end = memchr(s->text + from, '\n', s->used - from))) {
        size_t n = (size_t)(end - (s->text + from)) + 1;
        output_pass_on(r, pe, which, s->text + from, n);
        from += n;
    }
    if (from == 0 && s->used == LINE_BYTES) {
        output_pass_on(r, pe, which, s->text, s->used);
        from = s->used;
    }
    memmove(s->text, s->text + from, s->used - from);
    s->used -= from;
    output_flush(r, which);
}

static bool output_make_room(struct stream *s)
{
    if (s->used < s->capacity)
        return true;
    size_t capacity = s->capacity ? 4 * s->capacity : 1024;
    char *grown = realloc(s->text, capacity);
    if (!grown)
        return false;
    s->text = grown;
    s->capacity = capacity;
    return true;
}

static void output_take(struct relay *r, int pe, int which)
{
    struct stream *s = &r->stream[pe][which];

    if (r->o->reader[pe][which] < 0)
        return;
    if (!output_make_room(s)) {
        say("--tag-output: out of memory, the rest of PE %d's output is lost", pe);
        end_stream(r, pe, which);
        return;
    }
    ssize_t n = read(r->o->reader[pe][which], s->text + s->used, s->capacity - s->used);
    if (n < 0 && errno == EINTR)
        return;
    if (n > 0) {
        s->used += (size_t)n;
        pass_on_lines(r, pe, which);
        return;
    }
    if (s->used > 0) {
        output_pass_on(r, pe, which, s->text, s->used);
        output_flush(r, which);
    }
    end_stream(r, pe, which);
}

static void end_broken(struct relay *r)
{
    for (int which = 0; which < 2; which++) {
        for (int pe = 0; r->broken[which] && pe < r->o->n; pe++)
            end_stream(r, pe, which);
    }
}

static bool output_watch(struct relay *r)
{
    r->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (r->epoll < 0)
        return false;
    for (int i = 0; i < 2 * r->o->n; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        if (epoll_ctl(r->epoll, EPOLL_CTL_ADD, r->o->reader[i / 2][i % 2], &e) != 0)
            return false;
        r->open++;
    }
    return true;
}

int output_run(struct output *o)
{
    struct epoll_event events[64];
    struct relay r = {.o = o, .stream = calloc((size_t)o->n, sizeof *r.stream), .epoll = -1};

    if (!r.stream || !output_watch(&r)) {
        say("--tag-output: %s", strerror(errno));
        free(r.stream);
        return 1;
    }
    while (r.open > 0) {
        int n = epoll_wait(r.epoll, events, 64, -1);
        for (int i = 0; i < n; i++)
            output_take(&r, (int)events[i].data.u32 / 2, (int)events[i].data.u32 % 2);
        if (n < 0 && errno != EINTR)
            break;
        end_broken(&r);
    }
    for (int i = 0; i < 2 * o->n; i++)
        end_stream(&r, i / 2, i % 2);
    close(r.epoll);
    free(r.stream);
    return r.failed[0] || r.failed[1] ? OUTPUT_LOST : 0;
}
