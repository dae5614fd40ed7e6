/* Admission: a stranger becomes a PE when it has proven the key of that PE and this one.
 *
 *     connected ──► valid hello: challenge sent ──► right proof: welcome sent, admitted
 *
 * A flood of strangers delays a PE no longer than it takes to accept them: of the connections
 * without a valid hello the oldest gives way to the next. */
#include <sys/epoll.h>

#include "transport/tcp/greeting.h"
#include "transport/tcp/target.h"

enum {
    SILENT_MOST = 128, /* streams at a time without a valid hello */
    SILENT_MS = 5000,  /* time that each has for it, while no other needs its place */
    CLAIMS_MOST = 4,   /* streams with a valid hello of the same PE, and no proof yet */
};

/* Somebody who has overheard the hello of a PE that is not admitted yet can repeat it any number of
 * times. The oldest of these streams gives way. If that was the PE itself, it connects again. */
static void admission_limit_claims(struct tcp *t, int pe)
{
    struct target *oldest = NULL;
    int claims = 0;

    for (struct target *from = t->targets.first; from; from = from->next) {
        if (from->pe < 0 && from->stranger.claimed == pe && !from->is_closing) {
            claims++;
            oldest = from;
        }
    }
    if (claims >= CLAIMS_MOST)
        target_close_later(t, oldest);
}

static bool take_hello(struct tcp *t, struct target *from, size_t have)
{
    const unsigned char *said = receive_buffer_next(&from->in);
    unsigned char challenge[CHALLENGE_BYTES], key[TRANSPORT_KEY_BYTES], proof[PROOF_BYTES];
    struct hello h;
    gshmem_status_t status;

    if (!hello_decode(said, &h))
        return target_refuse(t, from, "it does not speak this protocol");
    if (h.version != FRAME_VERSION)
        return target_refuse(t, from, "it is of another version of GSHMEM");
    if (h.to != (uint32_t)t->config.pe || h.n_pes != (uint32_t)t->config.n_pes ||
        h.from >= h.n_pes || h.from == h.to)
        return target_refuse(t, from, "it is meant for another PE");
    if (have < HELLO_BYTES + PROOF_BYTES)
        return true;
    status = t->config.key(t->config.context, (int)h.from, key);
    if ((from->stranger.awaits_key = status == TRANSPORT_FULL)) {
        t->targets.admission.await_key = true;
        return true;
    }
    if (status)
        return target_refuse(t, from, "there is no key for the PE that it names");
    greeting_prove_hello(key, said, proof);
    if (!hmac_same(said + HELLO_BYTES, proof))
        return target_refuse(t, from, "it is not of this job");
    admission_limit_claims(t, (int)h.from);
    if (t->peer[h.from].admitted)
        return target_refuse(t, from, "it names a PE that is connected already");
    if (!greeting_draw(challenge))
        return target_refuse(t, from, "the system has no random numbers");
    greeting_prove(key, GREETING_ACCEPTOR, said, challenge, challenge + NONCE_BYTES);
    greeting_prove(key, GREETING_OPENER, said, challenge, from->stranger.proof);
    queue_add_copy(&from->out, challenge, sizeof challenge);
    from->stranger.claimed = (int)h.from;
    from->stranger.age = 0;
    t->targets.admission.without_hello--;
    from->in.first += HELLO_BYTES + PROOF_BYTES;
    return true;
}

static bool take_proof(struct tcp *t, struct target *from)
{
    if (!hmac_same(receive_buffer_next(&from->in), from->stranger.proof))
        return target_refuse(t, from, "it is not of this job");
    if (t->peer[from->stranger.claimed].given_up) {
        target_respond(from, RESPONSE_REFUSED, 0, 0);
        queue_send(&from->out, from->stream.fd);
        return false; /* nothing was received from it since it was given up */
    }
    if (t->peer[from->stranger.claimed].admitted)
        return target_refuse(t, from, "it names a PE that is connected already");
    from->in.first += PROOF_BYTES;
    target_respond(from, RESPONSE_DONE, 0, 0); /* it may send requests */
    from->pe = from->stranger.claimed;
    t->peer[from->pe].admitted = true;
    t->from[from->pe] = from;
    t->targets.admission.strangers--;
    tcp_spare_probes(t, from->pe);
    return true;
}

bool admission_take_greeting(struct tcp *t, struct target *from, size_t have)
{
    if (from->stranger.claimed < 0)
        return have < HELLO_BYTES || take_hello(t, from, have);
    return have < PROOF_BYTES || take_proof(t, from);
}

/* ---- Strangers ---- */

static bool has_no_hello(const struct target *from)
{
    return from->stranger.claimed < 0 && !from->is_closing;
}

/* Serves the stream once more before: its hello may have arrived, and this PE have been slow. */
static void admission_drop_stranger(struct tcp *t, struct target *from, const char *why)
{
    if (from->stream.ready(t, &from->stream, EPOLLIN) && has_no_hello(from)) {
        target_refuse(t, from, why);
        target_drop(t, from);
    }
}

void admission_make_room(struct tcp *t)
{
    struct target *oldest = NULL;

    if (t->targets.admission.without_hello < SILENT_MOST)
        return;
    for (struct target *from = t->targets.first; from; from = from->next) {
        if (has_no_hello(from))
            oldest = from;
    }
    if (oldest)
        admission_drop_stranger(t, oldest, "it sent nothing, and others connected");
}

void admission_tick(struct tcp *t)
{
    const int ms = t->socket.peer_seconds * 1000;

    for (struct target *from = t->targets.first, *next; from; from = next) {
        struct stranger *s = &from->stranger;
        next = from->next;
        if (from->pe >= 0 ||
            ++s->age * t->tick_ms <= (s->claimed < 0 && !s->awaits_key ? SILENT_MS : ms))
            continue;
        if (s->claimed < 0)
            admission_drop_stranger(t, from,
                                    s->awaits_key
                                        ? "the starter has not told in time the key of the "
                                          "PE that it names"
                                        : "it sent nothing");
        else if (from->stream.ready(t, &from->stream, EPOLLIN) && from->pe < 0)
            target_drop(t, from); /* a PE connects again */
    }
}
