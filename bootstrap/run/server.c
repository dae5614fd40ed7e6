#include "bootstrap/run/server.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const type_names[] = {
#define X(name, value) [value] = #name,
    WIRE_TABLE(X)
#undef X
};

bool server_start(struct server *s, int n_pes, int n_nodes, uint32_t job, server_send *send,
                  void *context)
{
    *s = (struct server){
        .n_pes = n_pes, .n_nodes = n_nodes, .job = job, .send = send, .context = context};
    s->pe = calloc((size_t)n_pes, sizeof *s->pe);
    return s->pe != NULL;
}

void server_stop(struct server *s)
{
    free(s->pe);
    s->pe = NULL;
}

/* Ends the job; the first reason is the one that counts. */
static bool __attribute__((format(printf, 3, 4)))
server_end_job(struct server *s, int status, const char *format, ...)
{
    va_list args;

    if (s->ended)
        return false;
    s->ended = true;
    s->status = status;
    va_start(args, format);
    vsnprintf(s->text, sizeof s->text, format, args);
    va_end(args);
    for (char *c = s->text; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?'; /* what a PE says must not steer a terminal */
    }
    return false;
}

static bool server_answer(struct server *s, int pe, const unsigned char *message, size_t bytes)
{
    if (s->send(s->context, pe, message, bytes))
        return true;
    return server_end_job(s, 1, "PE %d does not take the launcher's answer", pe);
}

static bool hello(struct server *s, int pe, const unsigned char *message, size_t bytes)
{
    unsigned char reply[WIRE_MAX];
    struct wire_hello m;

    if (!wire_decode_hello(message, bytes, &m))
        return server_end_job(s, 1, "PE %d: a damaged HELLO of %zu bytes", pe, bytes);
    if (m.version != WIRE_VERSION)
        return server_end_job(
            s, 1,
            "PE %d speaks version %u of the launcher's wire, gshmemrun speaks %d: its "
            "libgshmem and this gshmemrun are not of the same installation",
            pe, m.version, WIRE_VERSION);
    if (m.pe != (uint32_t)pe)
        return server_end_job(s, 1, "PE %d says that it is PE %u", pe, m.pe);
    if (s->pe[pe].open)
        return server_end_job(
            s, 1,
            "PE %d says HELLO twice: two of its processes use GSHMEM at once, but a PE "
            "is one process",
            pe);
    s->pe[pe].open = true;
    s->pe[pe].hellos++;
    size_t n = wire_encode_welcome(reply, &(struct wire_welcome){.version = WIRE_VERSION,
                                                                 .n_pes = (uint32_t)s->n_pes,
                                                                 .n_nodes = (uint32_t)s->n_nodes,
                                                                 .round = s->pe[pe].round,
                                                                 .job = s->job});
    return server_answer(s, pe, reply, n);
}

static bool publish(struct server *s, int pe, const unsigned char *message, size_t bytes)
{
    struct server_pe *p = &s->pe[pe];
    struct wire_publish m;

    if (!wire_decode_publish(message, bytes, &m))
        return server_end_job(s, 1, "PE %d: a damaged PUBLISH of %zu bytes", pe, bytes);
    if (p->round != s->released || m.round != s->released + 1)
        return server_end_job(s, 1, "PE %d: PUBLISH of round %u after %u, while round %u is open",
                              pe, m.round, p->round, s->released + 1);
    p->round = m.round;
    p->bytes[m.round & 1] = (uint16_t)m.bytes;
    memcpy(p->blob[m.round & 1], m.blob, m.bytes);
    return true;
}

/* The lowest PE that a fence waits for, and how many there are. */
static int absent_of(const struct server *s, int *count)
{
    int first = -1;

    *count = 0;
    for (int i = 0; i < s->n_pes; i++) {
        if (s->pe[i].fenced)
            continue;
        if ((*count)++ == 0)
            first = i;
    }
    return first;
}

/* A fence that a PE will never enter fails at once, and not after the timeout. */
static bool fence_can_end(struct server *s)
{
    if (s->fenced == 0 || s->gone == 0)
        return true;
    for (int i = 0; i < s->n_pes; i++) {
        if (s->pe[i].gone && !s->pe[i].fenced)
            return server_end_job(
                s, 1,
                "PE %d has ended without taking part in the start-up that %d other PE%s "
                "in",
                i, s->fenced, s->fenced == 1 ? " waits" : "s wait");
    }
    return true;
}

static bool server_release(struct server *s)
{
    unsigned char reply[WIRE_MAX];
    size_t n;

    s->released++;
    s->fenced = 0;
    n = wire_encode_round(reply, WIRE_RELEASED, &(struct wire_round){s->released});
    for (int i = 0; i < s->n_pes; i++)
        s->pe[i].fenced = false;
    for (int i = 0; i < s->n_pes; i++) {
        if (!server_answer(s, i, reply, n))
            return false;
    }
    return true;
}

static bool server_fence(struct server *s, int pe, const unsigned char *message, size_t bytes)
{
    struct server_pe *p = &s->pe[pe];
    struct wire_round m;

    if (!wire_decode_round(message, bytes, WIRE_FENCE, &m))
        return server_end_job(s, 1, "PE %d: a damaged FENCE of %zu bytes", pe, bytes);
    if (m.round != p->round || p->round != s->released + 1 || p->fenced)
        return server_end_job(s, 1, "PE %d: FENCE of round %u, but it has published %u%s", pe,
                              m.round, p->round, p->fenced ? " and waits in its fence" : "");
    p->fenced = true;
    s->fenced++;
    return s->fenced == s->n_pes ? server_release(s) : fence_can_end(s);
}

static bool who(struct server *s, int pe, const unsigned char *message, size_t bytes)
{
    unsigned char reply[WIRE_MAX];
    struct wire_round m;
    int count;

    if (!wire_decode_round(message, bytes, WIRE_WHO, &m))
        return server_end_job(s, 1, "PE %d: a damaged WHO of %zu bytes", pe, bytes);
    if (m.round == 0 || m.round != s->pe[pe].round)
        return server_end_job(s, 1, "PE %d: WHO of round %u, but it has published %u", pe, m.round,
                              s->pe[pe].round);
    if (m.round == s->released)
        return true; /* all have arrived in the meantime: the response is the RELEASED */
    if (!s->pe[pe].fenced)
        return server_end_job(s, 1, "PE %d: WHO of round %u outside of its fence", pe, m.round);
    int first = absent_of(s, &count);
    size_t n = wire_encode_absent(reply, &(struct wire_absent){.round = m.round,
                                                               .count = (uint32_t)count,
                                                               .first = (uint32_t)first});
    return server_answer(s, pe, reply, n);
}

static bool server_fetch(struct server *s, int pe, const unsigned char *message, size_t bytes)
{
    unsigned char reply[WIRE_MAX];
    struct wire_fetch m;

    if (!wire_decode_fetch(message, bytes, &m))
        return server_end_job(s, 1, "PE %d: a damaged FETCH of %zu bytes", pe, bytes);
    if (m.pe >= (uint32_t)s->n_pes)
        return server_end_job(s, 1, "PE %d: FETCH of PE %u, the job has PEs 0..%d", pe, m.pe,
                              s->n_pes - 1);
    if (m.round == 0 || m.round != s->released || m.round != s->pe[pe].round)
        return server_end_job(
            s, 1, "PE %d: FETCH of round %u, but it has published %u and %u is complete", pe,
            m.round, s->pe[pe].round, s->released);
    const struct server_pe *target = &s->pe[m.pe];
    size_t n = wire_encode_blob(reply, &(struct wire_blob){.round = m.round,
                                                           .pe = m.pe,
                                                           .bytes = target->bytes[m.round & 1],
                                                           .blob = target->blob[m.round & 1]});
    return server_answer(s, pe, reply, n);
}

static bool abort_job(struct server *s, int pe, const unsigned char *message, size_t bytes)
{
    struct wire_abort m;

    if (!wire_decode_abort(message, bytes, &m))
        return server_end_job(s, 1, "PE %d: a damaged ABORT of %zu bytes", pe, bytes);
    /* As a process's exit would cut it, but what is not 0 stays so. */
    int status = m.status && !(m.status & 0xff) ? 1 : m.status & 0xff;
    if (status == 0) /* as the program wants it: nothing to tell */
        return server_end_job(s, 0, "%s", "");
    return server_end_job(s, status, "PE %d ended the job with status %d%s%.*s", pe, status,
                          m.bytes ? ": " : "", (int)m.bytes, m.bytes ? m.why : "");
}

static bool goodbye(struct server *s, int pe, const unsigned char *message, size_t bytes)
{
    if (!wire_decode_goodbye(message, bytes))
        return server_end_job(s, 1, "PE %d: a damaged GOODBYE of %zu bytes", pe, bytes);
    if (s->pe[pe].round != s->released || s->pe[pe].fenced)
        return server_end_job(s, 1, "PE %d left in the middle of start-up, round %u", pe,
                              s->pe[pe].round);
    s->pe[pe].open = false;
    return true;
}

bool server_receive(struct server *s, int pe, const unsigned char *message, size_t bytes)
{
    typedef bool handler(struct server *, int, const unsigned char *, size_t);
    static handler *const handlers[] = {
        [WIRE_HELLO] = hello,     [WIRE_PUBLISH] = publish,    [WIRE_FENCE] = server_fence,
        [WIRE_WHO] = who,         [WIRE_FETCH] = server_fetch, [WIRE_ABORT] = abort_job,
        [WIRE_GOODBYE] = goodbye,
    };
    uint32_t type = wire_type_of(message, bytes);

    if (s->ended)
        return false;
    if (type >= sizeof handlers / sizeof handlers[0] || !handlers[type])
        return server_end_job(s, 1, "PE %d: a message of %zu bytes of unknown type %u", pe, bytes,
                              type);
    if (type != WIRE_HELLO && !s->pe[pe].open)
        return server_end_job(s, 1, "PE %d: %s before HELLO", pe, type_names[type]);
    return handlers[type](s, pe, message, bytes);
}

bool server_left(struct server *s, int pe)
{
    if (s->ended)
        return false;
    if (s->pe[pe].open)
        return server_end_job(
            s, 1,
            "PE %d exited with status 0 but without gshmem_finalize, in the middle of "
            "the job",
            pe);
    if (!s->pe[pe].gone) {
        s->pe[pe].gone = true;
        s->gone++;
    }
    return fence_can_end(s);
}
