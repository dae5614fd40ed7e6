/* Words: puts with a signal that go the other way, on a stream that the other PE has opened.
 *
 * Two PEs that tell each other something, round for round, would do so on two streams, each of them
 * with data one way only; the system then acknowledges what comes with segments of their own. On one
 * stream the acknowledgement rides on the other's word: a third of the time between two hosts.
 *
 * Words are numbered by their place, and carried out as puts are; that they have been heard is said
 * as it is of puts whose answers nobody waits for: now and then. What comes is trusted no more than
 * requests are. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "gshmem/rma.h"
#include "runtime/base/sanitizer.h"
#include "transport/segment.h"
#include "transport/tcp/inbound.h"
#include "transport/tcp/outbound.h"

enum { UNSAID_MOST = 64 }; /* words heard that the other PE has not been told of, while more come */

/* ---- Who says them ---- */

/* Both find the same stream: that of the smaller PE. Until that has come each has its own. */
struct inbound *words_way(const struct tcp *t, const struct transport_request *r)
{
    struct inbound *i =
        r->flags & TRANSPORT_UNORDERED && r->pe < t->config.pe ? t->from[r->pe] : NULL;

    return i && !i->goodbye ? i : NULL;
}

/* A stream that breaks here is told by its next event, or by the silence that follows. */
gshmem_status_t words_post(struct tcp *t, struct inbound *i, const struct transport_request *r)
{
    bool copied = r->bytes <= TRANSPORT_COPIED;
    struct request_frame f = request_of_put(r);
    unsigned char frame[REQUEST_BYTES];

    if (i->words - i->words_heard == WORDS_MOST ||
        !queue_has_room(&i->out, REQUEST_BYTES + (copied ? r->bytes : 0), 2))
        return TRANSPORT_FULL;
    i->word[i->words++ % WORDS_MOST] = (struct word){r->done, r->tag};
    request_encode(frame, &f);
    queue_add_copy(&i->out, frame, sizeof frame);
    if (copied)
        queue_add_copy(&i->out, r->local, r->bytes);
    else
        queue_add_reference(&i->out, r->local, r->bytes, r->sent, r->tag);
    tcp_start_ticking(t);
    /* Where there was no room for answers, the event that is wanted says that there is again. */
    if (!queue_send(&i->out, i->stream.fd) || !queue_empty(&i->out))
        tcp_want_out(t, &i->stream, true);
    return GSHMEM_OK;
}

void words_end(struct tcp *t, struct inbound *i, uint64_t number, gshmem_status_t status)
{
    while (i->words_heard < number) {
        struct word w = i->word[i->words_heard++ % WORDS_MOST];
        t->events++;
        w.done(w.tag, status);
    }
}

/* ---- Who hears them ---- */

bool words_begin(struct tcp *t, struct outbound *o, const struct request_frame *f)
{
    char *at = segment_at(&t->config, f->segment, f->offset, f->bytes);

    if (!at || !f->signal_op || f->signal_op > GSHMEM_SIGNAL_ADD ||
        !segment_at_aligned(&t->config, f->signal_segment, f->a, 8) ||
        t->config.segment[f->segment].of_device || t->config.segment[f->signal_segment].of_device)
        return false;
    o->word = *f;
    o->hears = true;
    o->data_at = at;
    o->data_left = f->bytes;
    o->data_of_device = false;
    tcp_start_ticking(t);
    if (!f->bytes)
        words_take(t, o);
    return true;
}

/* Its data is in its place: the signal may be seen. */
void words_take(struct tcp *t, struct outbound *o)
{
    const struct request_frame *f = &o->word;

    for_another_pe_begin();
    segment_signal((uint64_t *)(void *)segment_at(&t->config, f->signal_segment, f->a, 8), f->signal_op,
                   f->b);
    for_another_pe_end();
    o->hears = false;
    o->words++;
    t->events++;
    t->unasked_since = t->unasked || t->unsaid ? t->unasked_since : t->round;
    t->unsaid = true;
    tcp_note_visit(t, &o->stream);
    if (o->words - o->words_said >= UNSAID_MOST)
        words_say_heard(t, o);
}

/* Sent with the next that goes there, or with the next round. Also while one still comes, to show
 * that somebody takes it. */
void words_say_heard(struct tcp *t, struct outbound *o)
{
    unsigned char frame[REQUEST_BYTES];

    if (o->failed || (o->words == o->words_said && !o->hears) ||
        !queue_has_room(&o->out, sizeof frame, 1))
        return;
    request_encode(frame, &(struct request_frame){.kind = FRAME_HEARD, .offset = o->words});
    queue_add_copy(&o->out, frame, sizeof frame);
    o->words_said = o->words;
    t->held_back = true;
}
