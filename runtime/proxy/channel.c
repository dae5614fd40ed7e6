#include "runtime/proxy/channel.h"

#include <stdio.h>
#include <string.h>

#include "gshmem.h"
#include "runtime/base/atomic_type.h"
#include "runtime/base/log.h"
#include "runtime/network/network.h"
#include "runtime/proxy/command.h"
#include "runtime/proxy/traced.h"

enum {
    BATCH_SLOTS = 256, /* slots that are taken from one channel before the others have their turn */
    BATCH_BYTES = 256 * 1024, /* the same limit in bytes of data */
};

/* A mistake in a kernel is made by each of its threads. */
static struct log_sparse kernel_failures, kernel_raises;
static const char failed_calls[] = "failed calls of kernels";

void channel_failures_forget(void)
{
    kernel_failures = kernel_raises = (struct log_sparse){0};
}

static inline struct passage *passage_at(const struct proxy_channel *c, uint64_t position)
{
    return &c->passage[position & c->mask];
}

/* Reads the slot at a position, if all of it has been written. */
static inline bool read_slot(const struct proxy_channel *c, uint64_t position,
                             struct gshmem_slot *slot)
{
    return gshmem_slot_read(c->ring + (position & c->mask) * GSHMEM_SLOT_WORDS,
                            gshmem_slot_phase(position, c->slots_log2), slot);
}

/* A command's id is its last position in its channel. Between [finished, finished + slots) each
 * record stands for one position. */
static uint64_t trace_id_of(const struct passage *p)
{
    const struct proxy_channel *c = p->channel;
    const uint64_t ahead = ((uint64_t)(p - c->passage) - c->finished) & c->mask;

    return trace_own_id(c->stream, c->finished + ahead + p->slots - 1u);
}

/* ---- Completion ---- */

static gshmem_status_t give_result(const struct passage *p)
{
    const struct proxy_way *way = p->channel->way;
    uint32_t low = (uint32_t)p->answer.value[0];

    return way->store(way->context, p->result,
                      p->bytes == 4 ? (void *)&low : (void *)p->answer.value, p->bytes);
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

/* Advances over all completed commands, up to the first that is not complete. */
static void channel_settle(struct proxy_channel *c)
{
    const uint64_t taken = c->taken;
    uint64_t finished = c->finished;
    const struct passage *p;

    while (finished != taken && (p = passage_at(c, finished))->landed) {
        if (p->answer.status && !p->answer.wanted) {
            c->failures++;
            c->failure = (gshmem_status_t)p->answer.status;
        }
        finished += p->slots;
    }
    c->finished = finished;
}

static void channel_end(struct passage *p, gshmem_status_t status)
{
    const struct proxy_way *way = p->channel->way;

    if (!status && p->result)
        status = give_result(p);
    p->answer.status = (uint8_t)status;
    p->landed = true;
    if (GSHMEM_UNLIKELY(status && p->signals && !p->answer.wanted))
        way->unsent(way->context, p->signal, status);
    if (status && p->raises)
        way->raise(way->context, status, &p->answer);
    else
        channel_answer(way, &p->answer);
}

static __attribute__((noinline)) void land_and_tell(struct passage *p, gshmem_status_t status)
{
    if (status && p->raises) {
        log_sparse_begin(&kernel_failures);
        fail(status, "%s in a kernel with PE %d: %s", command_name(p), command_pe(p),
             gshmem_status_text(status));
        log_sparse_end(&kernel_failures, true, failed_calls);
    }
    channel_end(p, status);
}

static __attribute__((noinline)) void trace_done(const struct passage *p, gshmem_status_t status)
{
    if (p->channel->carries)
        p->channel->carries = false;
    else
        trace_write(TRACE_DONE, TRACE_NO_OP, command_pe(p), trace_id_of(p), (uint64_t)status, 0);
}

/* Called by transports. For most commands it only records the completion; the rest is done for many
 * at once (settle). */
static void channel_land(void *tag, gshmem_status_t status)
{
    struct passage *p = tag;

    if (trace_is_on())
        trace_done(p, status);
    if (status || !p->plain)
        land_and_tell(p, status);
    else
        p->landed = true;
}

/* The same for fetches that take the fast path: most bring a value and nothing else. */
static void channel_land_fetch(void *tag, gshmem_status_t status)
{
    struct passage *p = tag;

    if (GSHMEM_UNLIKELY(status || trace_is_on())) {
        channel_land(p, status);
        return;
    }
    p->landed = true;
    channel_answer(p->channel->way, &p->answer);
}

uint64_t channel_sent(struct proxy_channel *c)
{
    struct passage *p;

    if (c->sent < c->finished)
        c->sent = c->finished;
    for (; c->sent != c->taken; c->sent += p->slots) {
        p = passage_at(c, c->sent);
        if (command_asks_for_sources(p) && !p->landed) {
            c->asking--;
            channel_end(p, GSHMEM_OK);
        } else if (!p->sent && !p->landed) {
            break;
        }
    }
    return c->sent;
}

/* Called by transports when they have read the source of a put. */
static void channel_read_source(void *tag)
{
    struct passage *p = tag;

    p->sent = true;
    if (p->channel->asking)
        channel_sent(p->channel);
}

void channel_publish(struct proxy_channel *c)
{
    if (GSHMEM_UNLIKELY(c->asking))
        channel_sent(c);
    channel_settle(c);
    if (c->finished == c->published)
        return;
    c->published = c->finished;
    if (c->failures)
        gshmem_store_relaxed(c->failed, c->failures << 8 | (uint64_t)c->failure);
    /* pairs with the acquire of a quiet: data of gets, and the count of failures, are visible */
    gshmem_store_release(c->done, c->finished | (c->failures ? GSHMEM_DONE_FAILED : 0));
}

/* ---- Taking ---- */

enum step {
    STEP_TAKEN,
    STEP_FULL,      /* its transport has no room, or its PE's address is not known yet */
    STEP_UNWRITTEN, /* not all of it has been written */
    STEP_FENCED,    /* it waits for other channels */
    STEP_CROSSING,  /* it waits for other lanes, whose progress does not wake this one's proxy */
};

/* Relaxed: a thread that issues after a fence of the host has synchronized with its caller. */
static inline uint32_t epoch_of(const struct proxy_way *way)
{
    return atomic_load_explicit(way->fences, memory_order_relaxed);
}

/* ---- The fast path: an element, or bytes from memory, into the heap, without a response ---- */

/* Fills in the fields of this request that are not the same for all; false: it takes the general
 * path. */
static inline bool translate_plain(const struct proxy_channel *c, uint64_t kind,
                                   const struct gshmem_command *m, struct passage *p,
                                   struct transport_request *r)
{
    const struct proxy_way *way = c->way;
    const uint64_t offset = m->address - way->heap, heap_bytes = way->heap_bytes;
    const uint64_t bytes = kind == GSHMEM_COMMAND_VALUE ? m->type : m->size;

    if (m->pe >= (uint32_t)way->n_pes || offset >= heap_bytes || bytes > heap_bytes - offset)
        return false;
    r->tag = p;
    r->pe = (int)m->pe;
    r->offset = offset;
    r->bytes = bytes;
    r->epoch = epoch_of(way);
    if (kind == GSHMEM_COMMAND_VALUE) {
        p->answer.value[0] = m->local;
        p->answer.value[1] = m->size;
        r->flags = TRANSPORT_MORE | TRANSPORT_LOOSE | TRANSPORT_KEPT | c->held;
        r->local = p->answer.value;
        return command_is_element(m->type);
    }
    r->flags = TRANSPORT_MORE | TRANSPORT_LOOSE | c->held;
    r->local = (void *)(uintptr_t)m->local;
    return bytes && way->is_memory(way->context, m->local, bytes);
}

/* The same for a put and its signal in one slot. */
static inline bool translate_signalled(const struct proxy_channel *c,
                                       const struct gshmem_command *m, struct passage *p,
                                       struct transport_request *r)
{
    const uint64_t heap_bytes = c->way->heap_bytes;
    struct gshmem_command put, signal;

    gshmem_put_signal_decode(m, &put, &signal);
    const uint64_t offset = signal.address - c->way->heap;
    if (!translate_plain(c, GSHMEM_COMMAND_PUT, &put, p, r) || offset >= heap_bytes ||
        sizeof(uint64_t) > heap_bytes - offset ||
        (signal.amo != GSHMEM_SIGNAL_SET && signal.amo != GSHMEM_SIGNAL_ADD))
        return false;
    r->signal_op = (uint8_t)signal.amo;
    r->signal_offset = offset;
    r->signal_value = signal.local;
    p->signal = signal.address;
    return true;
}

/* Fills in what is needed at completion without a failure, or to report a failure. */
static inline void fill_plain(struct passage *p, uint64_t word, uint64_t bytes, bool signals)
{
    p->answer.status = 0;
    p->answer.wanted = false;
    p->slots = 1;
    p->plain = true;
    p->landed = p->raises = false;
    p->signals = signals;
    p->sent = bytes <= TRANSPORT_COPIED;
    p->word = word;
}

/* ---- The fast path of gets of an element and of updates, in the heap ---- */

/* Whether it is one of those: one slot, and what it brings goes to a response. */
static inline bool command_is_quick(const struct gshmem_command *m)
{
    return !m->more && (m->kind == GSHMEM_COMMAND_ATOMIC ||
                        (m->kind == GSHMEM_COMMAND_FETCH && m->responds));
}

static inline bool translate_quick(struct proxy_channel *c, const struct gshmem_command *m,
                                   struct passage *p, struct transport_request *r)
{
    const struct proxy_way *way = c->way;
    const bool gets = m->kind == GSHMEM_COMMAND_FETCH;
    const uint64_t offset = m->address - way->heap, heap_bytes = way->heap_bytes;
    const uint64_t bytes = gets ? m->type : atomic_type_bytes((int)m->type);

    if (m->pe >= (uint32_t)way->n_pes || offset >= heap_bytes || bytes > heap_bytes - offset)
        return false;
    if (gets ? !command_is_element(m->type)
             : !bytes || m->address % bytes || m->amo >= GSHMEM_AMO_COUNT)
        return false;
    *r = (struct transport_request){
        .kind = gets ? TRANSPORT_GET : TRANSPORT_ATOMIC,
        .flags = TRANSPORT_MORE | TRANSPORT_LOOSE | (gets ? TRANSPORT_KEPT : 0) | c->held,
        .segment = (uint8_t)way->heap_segment,
        .pe = (int)m->pe,
        .offset = offset,
        .local = gets ? p->answer.value : NULL,
        .bytes = gets ? bytes : 0,
        .amo = gets ? 0 : (uint8_t)m->amo,
        .type = gets ? 0 : (uint8_t)m->type,
        .epoch = epoch_of(way),
        .operand = gets ? 0 : m->local,
        .compare = gets ? 0 : m->size,
        .old = !gets && m->responds ? p->answer.value : NULL,
        .done = m->responds ? channel_land_fetch : channel_land,
        .tag = p,
    };
    *p = (struct passage){
        .answer = {.wanted = m->responds,
                   .tag = (uint8_t)m->tag,
                   .response = (uint16_t)m->response},
        .channel = c,
        .slots = 1,
        .plain = !m->responds,
        .sent = true,
        .raises = m->raises,
        .bytes = (uint8_t)bytes,
    };
    return true;
}

/* ---- The general path ---- */

static void channel_fill(struct passage *p, struct proxy_channel *c, uint64_t word, uint8_t slots,
                         const struct gshmem_command *first, const struct gshmem_command *second)
{
    const struct gshmem_command *whom = second && second->responds ? second : first;

    *p = (struct passage){
        .answer = {.wanted = whom->responds,
                   .tag = (uint8_t)whom->tag,
                   .response = (uint16_t)whom->response},
        .channel = c,
        .word = word,
        .slots = slots,
        .signals = second && second->kind == GSHMEM_COMMAND_SIGNAL,
        .signal = second ? second->address : 0,
        .raises = first->raises || (second && second->raises),
    };
}

/* The failure was returned to the caller, which handles it. It is not a failure of the channel. */
static void raise_given(struct passage *p, gshmem_status_t status)
{
    const struct proxy_way *way = p->channel->way;

    log_sparse_begin(&kernel_raises);
    fail(status, "a call in a kernel failed: %s", gshmem_status_text(status));
    log_sparse_end(&kernel_raises, true, NULL);
    way->raise(way->context, status, &p->answer);
    p->landed = true;
}

/* Reads the slot after the next one, if it continues `first`. If it does not, it stays in the
 * ring. */
static enum step look_on(const struct proxy_channel *c, const struct gshmem_command *first,
                         struct gshmem_command *second, bool *pair)
{
    struct gshmem_slot slot;

    *pair = false;
    if (!command_may_have_more(first))
        return STEP_TAKEN;
    if (!read_slot(c, c->taken + 1, &slot))
        return STEP_UNWRITTEN;
    *second = gshmem_command_decode(slot);
    *pair = command_continues(first, second);
    return STEP_TAKEN;
}

/* Whether the command is a fence and something before it is not posted yet. In this channel
 * everything before it is posted; in the other channels of its context, everything is when they
 * have reached its positions. */
static bool is_held_back(const struct proxy_channel *c, const struct gshmem_command *m)
{
    const uint64_t position[GSHMEM_FENCE_CHANNELS - 1] = {m->address, m->local, m->size};
    bool waits = false;

    for (uint32_t i = 0; i < GSHMEM_FENCE_CHANNELS - 1; i++)
        waits |= c->other[i] && c->other[i]->taken < position[i];
    return m->kind == GSHMEM_COMMAND_FENCE && waits;
}

/* Whether something that was issued before the fence, and posted on another lane, is not
 * complete. */
static bool is_crossing(struct proxy_channel *c, const struct gshmem_command *fence)
{
    const uint64_t position[GSHMEM_FENCE_CHANNELS - 1] = {fence->address, fence->local,
                                                          fence->size};
    bool waits = false;

    if (c->host && !c->crossing.waits)
        c->crossing.issued = gshmem_load_relaxed(&c->host->issued);
    /* acquire, both: pair with the releases in channel_publish and requests_land. What is posted
     * behind the fence comes after what was completed on the other lane */
    for (uint32_t i = 0; i < GSHMEM_FENCE_CHANNELS - 1; i++)
        waits |= c->far[i] &&
                 (gshmem_load_acquire(c->far[i]) & ~GSHMEM_DONE_FAILED) < position[i];
    waits |= c->host && gshmem_load_acquire(&c->host->done) < c->crossing.issued;
    c->crossing.waits = waits;
    return waits;
}

/* What is posted from now on belongs to the next epoch. */
static enum step pass_fence(struct proxy_channel *c, const struct gshmem_command *fence,
                            struct passage *p)
{
    if (is_held_back(c, fence))
        return STEP_FENCED;
    if (GSHMEM_UNLIKELY(c->crosses) && is_crossing(c, fence))
        return STEP_CROSSING;
    atomic_fetch_add_explicit(c->way->fences, 1, memory_order_relaxed);
    c->taken += p->slots;
    channel_end(p, GSHMEM_OK);
    return STEP_TAKEN;
}

static enum step take_check(struct proxy_channel *c, const struct gshmem_command *check,
                            struct passage *p)
{
    log_sparse_begin(&kernel_failures);
    const gshmem_status_t status = command_check(check, c->way);
    log_sparse_end(&kernel_failures, status && status != TRANSPORT_FULL, failed_calls);

    if (status == TRANSPORT_FULL)
        return STEP_FULL;
    c->taken += p->slots;
    channel_end(p, status);
    return STEP_TAKEN;
}

/* It is answered at once if nothing before it keeps its source, by the channel_publish that ends
 * channel_take. */
static enum step take_question(struct proxy_channel *c, const struct passage *p)
{
    c->asking++;
    c->taken += p->slots;
    return STEP_TAKEN;
}

/* A kernel that ends within a region leaves it begun, which costs its channel nothing but that. */
static enum step take_session(struct proxy_channel *c, const struct gshmem_command *session,
                              struct passage *p)
{
    if (session->type)
        c->sessions++;
    else if (c->sessions)
        c->sessions--;
    c->held = c->sessions ? TRANSPORT_HELD : 0;
    c->taken += p->slots;
    channel_end(p, GSHMEM_OK);
    return STEP_TAKEN;
}

static __attribute__((noinline)) enum step take_any(struct proxy_channel *c, uint64_t *bytes)
{
    struct passage *p = passage_at(c, c->taken);
    struct gshmem_command first, second;
    struct transport_request request;
    struct gshmem_slot slot;
    uint8_t slots;
    bool pair;

    if (!read_slot(c, c->taken, &slot))
        return STEP_UNWRITTEN;
    first = gshmem_command_decode(slot);
    if (look_on(c, &first, &second, &pair) == STEP_UNWRITTEN)
        return STEP_UNWRITTEN;
    slots = pair ? 2 : 1;
    if (first.kind == GSHMEM_COMMAND_PUT_SIGNAL && !first.more) {
        const struct gshmem_command packed = first;
        gshmem_put_signal_decode(&packed, &first, &second);
        pair = true;
    }
    channel_fill(p, c, slot.word[0], slots, &first, pair ? &second : NULL);
    if (first.kind == GSHMEM_COMMAND_RAISE && !first.more && first.type) {
        raise_given(p, (gshmem_status_t)first.type);
        c->taken += p->slots;
        return STEP_TAKEN;
    }
    if (first.kind == GSHMEM_COMMAND_FENCE && !first.more)
        return pass_fence(c, &first, p);
    if (first.kind == GSHMEM_COMMAND_FLUSH && !first.more) {
        c->taken += p->slots;
        channel_end(p, c->way->flush(c->way->context));
        return STEP_TAKEN;
    }
    if (first.kind == GSHMEM_COMMAND_CHECK && !first.more)
        return take_check(c, &first, p);
    if (first.kind == GSHMEM_COMMAND_SOURCES && !first.more)
        return take_question(c, p);
    if (first.kind == GSHMEM_COMMAND_SESSION && !first.more)
        return take_session(c, &first, p);
    log_sparse_begin(&kernel_failures);
    gshmem_status_t status =
        first.more && !pair
            ? fail(GSHMEM_ERR_ARGUMENT,
                   "%s in a kernel: its command has a second part that does not belong to it",
                   command_name(p))
            : command_translate(&first, pair ? &second : NULL, c->way, p, &request);
    log_sparse_end(&kernel_failures, status && status != TRANSPORT_FULL, failed_calls);
    if (status == TRANSPORT_FULL)
        return STEP_FULL;
    if (!status) {
        request.flags |= c->held;
        request.done = channel_land;
        request.tag = p;
        p->sent = request.kind != TRANSPORT_PUT || request.bytes <= TRANSPORT_COPIED;
        request.sent = p->sent ? NULL : channel_read_source;
        request.epoch = epoch_of(c->way);
        status = trace_is_on() ? traced_post(c->way, trace_id_of(p), &request)
                               : c->way->post(c->way->context, &request);
        if (status == TRANSPORT_FULL)
            return STEP_FULL;
        *bytes += request.bytes;
        if (status)
            channel_land(p, status);
    } else {
        channel_end(p, status);
    }
    c->taken += p->slots;
    return STEP_TAKEN;
}

/* Posts the request of a command of one slot. */
static inline enum step post_one(struct proxy_channel *c, struct passage *p,
                                 const struct transport_request *r, uint64_t *bytes)
{
    const gshmem_status_t status = trace_is_on() ? traced_post(c->way, trace_id_of(p), r)
                                                 : c->way->post(c->way->context, r);

    if (GSHMEM_UNLIKELY(status)) {
        if (status == TRANSPORT_FULL)
            return STEP_FULL;
        channel_land(p, status);
    }
    *bytes += r->bytes;
    c->taken++;
    return STEP_TAKEN;
}

static inline enum step take_quick(struct proxy_channel *c, uint64_t word,
                                   const struct gshmem_command *m, uint64_t *bytes)
{
    struct passage *p = passage_at(c, c->taken);
    struct transport_request r;

    if (!translate_quick(c, m, p, &r))
        return take_any(c, bytes);
    p->word = word;
    return post_one(c, p, &r, bytes);
}

static inline enum step take_one(struct proxy_channel *c, const struct gshmem_slot *slot,
                                 uint64_t *bytes)
{
    const uint64_t kind = command_plain_kind(slot->word[0]);
    const bool signals = kind == GSHMEM_COMMAND_PUT_SIGNAL;
    struct transport_request *r = signals ? &c->signalled : &c->plain;
    struct passage *p = passage_at(c, c->taken);

    const struct gshmem_command m = gshmem_command_decode(*slot);
    if (command_is_quick(&m))
        return take_quick(c, slot->word[0], &m, bytes);
    const bool plain =
        kind == GSHMEM_COMMAND_VALUE ? translate_plain(c, GSHMEM_COMMAND_VALUE, &m, p, r)
        : kind == GSHMEM_COMMAND_PUT ? translate_plain(c, GSHMEM_COMMAND_PUT, &m, p, r)
                                     : signals && translate_signalled(c, &m, p, r);
    if (!plain)
        return take_any(c, bytes);
    fill_plain(p, slot->word[0], r->bytes, signals);
    r->sent = p->sent ? NULL : channel_read_source;
    return post_one(c, p, r, bytes);
}

/* ---- All of them ---- */

/* Any command finds a record for each of its slots, at most two. Returns the first position that
 * may find none. */
static uint64_t records_end(const struct proxy_channel *c)
{
    return c->finished + c->mask;
}

void channel_begin(struct proxy_channel *c)
{
    c->mask = (UINT64_C(1) << c->slots_log2) - 1;
    c->plain = (struct transport_request){
        .kind = TRANSPORT_PUT,
        .segment = c->way->heap_segment,
        .done = channel_land};
    c->signalled = c->plain;
    c->signalled.signal_segment = (uint8_t)c->way->heap_segment;
    for (uint64_t i = 0; i <= c->mask; i++)
        c->passage[i].channel = c;
}

/* For the counts. A channel that is full has more commands than are taken at once: only then the
 * last slot is looked at. */
static inline void channel_note_limits(struct proxy_channel *c, uint64_t before, bool limited,
                                       enum step step)
{
    struct gshmem_slot slot;

    c->found.no_room += step == STEP_FULL;
    if (limited || step == STEP_FULL)
        c->found.full += read_slot(c, before + c->mask, &slot);
}

bool channel_take(struct proxy_channel *c)
{
    const uint64_t before = c->taken;
    uint64_t end = before + BATCH_SLOTS, bytes = 0;
    enum step step = STEP_TAKEN;
    struct gshmem_slot slot;

    if (end > records_end(c)) {
        channel_settle(c);
        end = end < records_end(c) ? end : records_end(c);
    }
    while (c->taken < end && bytes < BATCH_BYTES && read_slot(c, c->taken, &slot)) {
        step = take_one(c, &slot, &bytes);
        if (step != STEP_TAKEN)
            break;
    }
    channel_note_limits(c, before, c->taken >= end || bytes >= BATCH_BYTES, step);
    if (c->taken != before)
        gshmem_channel_give_back(c->tail, c->taken);
    channel_publish(c);
    c->stuck = step == STEP_FULL || (c->taken >= end && c->taken >= records_end(c));
    return c->taken != before;
}

/* Of a command of two slots, both must be there: the thread that writes it wakes the proxy after
 * that. */
bool channel_has_work(const struct proxy_channel *c)
{
    struct gshmem_command second;
    struct gshmem_slot slot;
    bool pair;

    if (c->stuck || !read_slot(c, c->taken, &slot))
        return false;
    const struct gshmem_command m = gshmem_command_decode(slot);
    return !is_held_back(c, &m) && look_on(c, &m, &second, &pair) == STEP_TAKEN;
}

bool channel_is_written(const struct proxy_channel *c, uint64_t position)
{
    struct gshmem_slot slot;

    if (!read_slot(c, position, &slot))
        return false;
    const struct gshmem_command first = gshmem_command_decode(slot);
    return !command_may_have_more(&first) || read_slot(c, position + 1, &slot);
}

uint64_t channel_stalled(struct proxy_channel *c, uint64_t now)
{
    channel_settle(c);
    const bool due = c->finished != c->taken || c->stuck || c->crossing.waits;
    if (!c->watched.since || c->finished != c->watched.finished || !due) {
        c->watched.finished = c->finished;
        c->watched.since = now;
        c->watched.reported = false;
    }
    return due ? now - c->watched.since : 0;
}

int channel_describe(const struct proxy_channel *c, char *text, size_t size)
{
    struct gshmem_slot slot;
    const bool more = read_slot(c, c->taken, &slot);
    struct passage first = {.word = more ? slot.word[0] : 0};

    if (c->finished != c->taken)
        first = *passage_at(c, c->finished);
    else if (c->crossing.waits) {
        snprintf(text, size,
                 "a fence in a kernel, at position %llu of its channel: what other proxies have "
                 "posted before it is not complete",
                 (unsigned long long)c->taken);
        return -1;
    }
    snprintf(text, size,
             "%s in a kernel, to PE %d, at position %llu of its channel: %llu positions are posted "
             "and not done%s",
             command_name(&first), command_pe(&first), (unsigned long long)c->finished,
             (unsigned long long)(c->taken - c->finished), more ? ", more wait behind them" : "");
    return command_pe(&first);
}

bool channel_overdue(struct proxy_channel *c, uint64_t now, uint64_t limit, char *text, size_t size)
{
    const uint64_t stalled = channel_stalled(c, now);
    char what[200];

    if (c->watched.reported || !stalled || stalled < limit)
        return false;
    c->watched.reported = true;
    channel_describe(c, what, sizeof what);
    snprintf(text, size, "%s; nothing has been completed for %llu s", what,
             (unsigned long long)(stalled / 1000000000u));
    return true;
}
