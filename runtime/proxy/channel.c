#include "runtime/proxy/channel.h"

#include <stdio.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/proxy/command.h"

enum {
    BATCH_COMMANDS = 64, /* taken from one channel before the others have their turn, */
    BATCH_BYTES = 256 * 1024, /* or as many as copy this much */
};

static struct passage *passage_at(const struct proxy_channel *c, uint64_t position)
{
    return &c->passage[position & ((UINT64_C(1) << c->slots_log2) - 1)];
}

/* ---- Ending ---- */

static gshmem_status_t give_result(const struct passage *p)
{
    const struct proxy_way *way = p->channel->way;
    uint32_t low = (uint32_t)p->answer.value[0];

    return way->store(way->context, p->result, p->bytes == 4 ? (void *)&low : (void *)p->answer.value,
                      p->bytes);
}

void channel_answer(const struct proxy_way *way, const struct proxy_answer *a)
{
    struct gshmem_response *r = &way->response[a->response];

    if (!a->wanted)
        return;
    gshmem_store_relaxed(&r->value[0], a->value[0]);
    gshmem_store_relaxed(&r->value[1], a->value[1]);
    /* pairs with the acquire of the thread that waits for its tag */
    gshmem_store_release(&r->answer, (uint64_t)a->tag << 8 | a->status);
}

/* Passes over all that has landed, up to the first that has not. */
static void settle(struct proxy_channel *c)
{
    const struct passage *p;

    while (c->finished != c->taken && (p = passage_at(c, c->finished))->landed) {
        if (p->answer.status && !p->answer.wanted) {
            c->failures++;
            c->failure = (gshmem_status_t)p->answer.status;
        }
        c->finished += p->slots;
    }
}

static void end(struct passage *p, gshmem_status_t status)
{
    const struct proxy_way *way = p->channel->way;

    if (!status && p->result)
        status = give_result(p);
    p->answer.status = (uint8_t)status;
    if (status && p->raises)
        way->raise(way->context, status, &p->answer);
    else
        channel_answer(way, &p->answer);
    p->landed = true;
    settle(p->channel);
}

/* Called by transports. */
static void land(void *tag, gshmem_status_t status)
{
    struct passage *p = tag;

    if (status && p->raises)
        fail_silently(status, "%s in a kernel with PE %d: %s", p->call, p->pe,
                      gshmem_status_text(status));
    end(p, status);
}

void channel_publish(struct proxy_channel *c)
{
    if (c->finished == c->published)
        return;
    c->published = c->finished;
    if (c->failures)
        gshmem_store_relaxed(c->failed, c->failures << 8 | (uint64_t)c->failure);
    /* pairs with the acquire of a quiet: what gets brought is there, and the count of failures */
    gshmem_store_release(c->done, c->finished | (c->failures ? GSHMEM_DONE_FAILED : 0));
}

/* ---- Taking ---- */

struct taken {
    struct gshmem_command first, second;
    bool pair;
    bool bad; /* marked `more`, but what follows does not continue it: the next slot is left alone */
};

static bool read_command(const struct proxy_channel *c, uint64_t position,
                         struct gshmem_command *command)
{
    struct gshmem_slot slot;

    if (!gshmem_channel_read(c->ring, position, c->slots_log2, &slot))
        return false;
    *command = gshmem_command_decode(slot);
    return true;
}

/* The next command, if all of it is there. */
static bool look(const struct proxy_channel *c, struct taken *t)
{
    if (!read_command(c, c->taken, &t->first))
        return false;
    t->pair = false;
    t->bad = t->first.more;
    if (!command_may_have_more(&t->first))
        return true;
    if (!read_command(c, c->taken + 1, &t->second))
        return false;
    t->pair = command_continues(&t->first, &t->second);
    t->bad = !t->pair;
    return true;
}

static void fill(struct passage *p, struct proxy_channel *c, const struct taken *t)
{
    const struct gshmem_command *whom = t->pair && t->second.responds ? &t->second : &t->first;

    *p = (struct passage){
        .channel = c,
        .call = command_call(&t->first, t->pair ? &t->second : NULL),
        .pe = (int32_t)t->first.pe,
        .answer = {.wanted = whom->responds,
                   .tag = (uint8_t)whom->tag,
                   .response = (uint16_t)whom->response},
        .slots = t->pair ? 2 : 1,
        .raises = t->first.raises || (t->pair && t->second.raises),
    };
}

/* The caller was told of a failure, and hands it on. That is no failure of the channel. */
static void raise_given(struct passage *p, gshmem_status_t status)
{
    const struct proxy_way *way = p->channel->way;

    fail(status, "a call in a kernel failed: %s", gshmem_status_text(status));
    way->raise(way->context, status, &p->answer);
    p->landed = true;
    settle(p->channel);
}

/* Begins the command. False: the transport has no room, and nothing has happened. */
static bool begin(struct proxy_channel *c, const struct taken *t, uint64_t *bytes)
{
    struct passage *p = passage_at(c, c->taken);
    struct transport_request request = {.bytes = 0};
    gshmem_status_t status = GSHMEM_OK;

    fill(p, c, t);
    c->taken += p->slots; /* before the post, in which it may land */
    if (t->first.kind == GSHMEM_COMMAND_RAISE && !t->bad && t->first.type) {
        raise_given(p, (gshmem_status_t)t->first.type);
        return true;
    }
    if (t->bad)
        status = fail(GSHMEM_ERR_ARGUMENT,
                      "%s in a kernel: its command has a second part that does not belong to it",
                      p->call);
    else
        status = command_translate(&t->first, t->pair ? &t->second : NULL, c->way, p, &request);
    if (status) {
        end(p, status);
        return true;
    }
    request.done = land;
    request.tag = p;
    status = c->way->post(c->way->context, &request);
    if (status == TRANSPORT_FULL) {
        c->taken -= p->slots;
        return false;
    }
    if (status)
        land(p, status);
    *bytes += request.bytes;
    return true;
}

bool channel_take(struct proxy_channel *c)
{
    const uint64_t slots = UINT64_C(1) << c->slots_log2;
    uint64_t before = c->taken, bytes = 0;
    struct taken t;

    c->stuck = false;
    for (int i = 0; i < BATCH_COMMANDS && bytes < BATCH_BYTES && look(c, &t); i++) {
        /* Any command finds a record for each of its slots, at most two. */
        c->stuck = c->taken + 2 - c->finished > slots || !begin(c, &t, &bytes);
        if (c->stuck)
            break;
    }
    if (c->taken != before)
        gshmem_channel_give_back(c->tail, c->taken);
    channel_publish(c);
    return c->taken != before;
}

bool channel_has_work(const struct proxy_channel *c)
{
    struct gshmem_slot slot;

    return !c->stuck && gshmem_channel_read(c->ring, c->taken, c->slots_log2, &slot);
}

bool channel_overdue(struct proxy_channel *c, uint64_t now, uint64_t limit, char *text, size_t size)
{
    struct gshmem_slot slot;

    if (c->finished != c->watched.finished || c->finished == c->taken) {
        c->watched.finished = c->finished;
        c->watched.since = now;
        c->watched.reported = false;
        return false;
    }
    if (c->watched.reported || now - c->watched.since < limit)
        return false;
    c->watched.reported = true;
    const struct passage *first = passage_at(c, c->finished);
    bool more = gshmem_channel_read(c->ring, c->taken, c->slots_log2, &slot);
    snprintf(text, size,
             "%s in a kernel, to PE %d, at position %llu of its channel: nothing has been completed for "
             "%llu s; %llu positions are posted and not done%s",
             first->call, first->pe, (unsigned long long)c->finished,
             (unsigned long long)((now - c->watched.since) / 1000000000u),
             (unsigned long long)(c->taken - c->finished), more ? ", more wait behind them" : "");
    return true;
}
