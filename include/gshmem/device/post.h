/* Operations that a kernel cannot carry out by loads and stores: it writes a command for the proxy,
 * and waits for its completion or response. */
#ifndef GSHMEM_DEVICE_POST_H
#define GSHMEM_DEVICE_POST_H

#include "gshmem/device/command.h"
#include "gshmem/device/reach.h"
#include "gshmem/device/wait.h"

/* ---- Commands ------------------------------------------------------------------------------- */

/* On a CPU a release costs nothing, and orders the program's earlier accesses to the same memory
 * before the proxy's. */
GSHMEM_KERNEL bool gshmem_post_publishes(struct gshmem_slot first)
{
#ifdef GSHMEM_HOST_DEVICE
    (void)first;
    return true;
#else
    return gshmem_command_publishes(first);
#endif
}

/* All commands of a block go to one channel, and so stay in order. */
GSHMEM_KERNEL const struct gshmem_device_channel *
gshmem_kernel_channel(const struct gshmem_device_ctx *c)
{
    return &c->channel[gshmem_kernel_block() & (c->channels - 1)];
}

GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_wait_room(const struct gshmem_device_ctx *c,
                                                           const struct gshmem_channel *ring,
                                                           uint64_t end)
{
    struct gshmem_kernel_wait w = {};
    gshmem_status_t status = GSHMEM_OK;

    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_PROXY, ring->tail);
#ifdef GSHMEM_HOST_DEVICE
    if (gshmem_device_traced()) {
        gshmem_host_unseen_begin(); /* fibers take turns on what the system's thread has */
        gshmem_device_trace_post(ring->tail, end, gshmem_kernel_block(), gshmem_kernel_thread());
        gshmem_host_unseen_end();
        /* The copy of the tail stays 0, so that the next post comes here, too. What has been read
         * of the tail is kept in the word behind it: the line of the tail is the proxy's. */
        uint64_t *const known = ring->tail_copy + 1;
        uint64_t tail = gshmem_device_load(known);
        while (!status && end - tail > ring->slots) {
            tail = gshmem_load_acquire(ring->tail); /* acquire: as in gshmem_channel_has_room */
            gshmem_raise_to(known, tail);
            if (end - tail > ring->slots)
                status = gshmem_kernel_wait_proxy(&w, c->job->failure);
        }
        if (w.turns)
            gshmem_kernel_waited();
        return status;
    }
#endif
    while (!status && !gshmem_channel_has_room(ring, end))
        status = gshmem_kernel_wait_proxy(&w, c->job->failure);
    gshmem_kernel_waited();
    return status;
}

/* Posts a command of n slots, 1 or 2; `publishes` as in gshmem_channel_write. *end is the position
 * after it. On failure the command is not written. The proxy reads nothing more from this channel,
 * because the job has ended. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_post_slots(const struct gshmem_device_ctx *c,
                                                       const struct gshmem_device_channel *channel,
                                                       uint32_t n, struct gshmem_slot first,
                                                       struct gshmem_slot second, bool publishes,
                                                       uint64_t *end)
{
    /* a copy: otherwise the compiler would load it again after each store */
    const struct gshmem_channel ring = channel->ring;
    uint64_t position = gshmem_channel_take(&ring, n);

    *end = position + n;
    if (*end - gshmem_device_load(ring.tail_copy) > ring.slots) {
        gshmem_status_t status = gshmem_kernel_wait_room(c, &channel->ring, *end);
        if (status)
            return status;
    }
    gshmem_channel_write(&ring, position, first, publishes);
    if (n == 2)
        gshmem_channel_write(&ring, position + 1, second, 0);
#ifdef GSHMEM_HOST_DEVICE
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* before the proxy sleeps, it makes a memory fence in
                                                all threads */
    if (gshmem_load_relaxed_32(channel->asleep))
        gshmem_device_wake(channel->asleep);
#endif
    return GSHMEM_OK;
}

GSHMEM_KERNEL gshmem_status_t gshmem_kernel_post(const struct gshmem_device_ctx *c,
                                                 const struct gshmem_device_channel *channel,
                                                 uint32_t n, struct gshmem_slot first,
                                                 struct gshmem_slot second, uint64_t *end)
{
    return gshmem_kernel_post_slots(c, channel, n, first, second, gshmem_post_publishes(first),
                                    end);
}

/* ---- Completion ----------------------------------------------------------------------------- */

/* Waits until the proxy has taken all commands before `end`. Small sources may then be reused. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_wait_taken(
    const struct gshmem_device_ctx *c, const struct gshmem_device_channel *channel, uint64_t end)
{
    struct gshmem_kernel_wait w = {};
    gshmem_status_t status = GSHMEM_OK;
    uint64_t tail;

    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_PROXY, channel->ring.tail);
    /* acquire: pairs with the release in gshmem_channel_give_back */
    while ((tail = gshmem_load_acquire(channel->ring.tail)) < end && !status)
        status = gshmem_kernel_wait_word(&w, c->job->failure, channel->ring.tail, tail);
#ifdef GSHMEM_HOST_DEVICE
    if (!gshmem_device_traced())
#endif
        gshmem_raise_to(channel->ring.tail_copy, tail);
    gshmem_kernel_waited();
    return status;
}

/* Waits until all commands before `end` are complete, and data of gets is visible. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_wait_done(
    const struct gshmem_device_ctx *c, const struct gshmem_device_channel *channel, uint64_t end)
{
    struct gshmem_kernel_wait w = {};
    gshmem_status_t status = GSHMEM_OK;
    uint64_t done;

    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_PROXY, channel->done);
    /* acquire: pairs with the release of the proxy when it moves `done` */
    while (((done = gshmem_load_acquire(channel->done)) & ~GSHMEM_DONE_FAILED) < end && !status)
        status = gshmem_kernel_wait_word(&w, c->job->failure, channel->done, done);
    gshmem_raise_to(channel->done_copy, done);
    gshmem_kernel_waited();
    return status;
}

/* The status of a quiet after a command of the channel has failed. A failure is returned once. */
GSHMEM_KERNEL_RARE gshmem_status_t
gshmem_kernel_take_failure(const struct gshmem_device_channel *channel)
{
    /* acquire: the proxy has written it before `done` */
    uint64_t failed = gshmem_load_acquire(channel->failed);
    uint64_t seen = gshmem_raise_to(channel->failed_seen, failed);

    return seen < failed ? (gshmem_status_t)(failed & 255) : GSHMEM_OK;
}

/* ---- Responses ------------------------------------------------------------------------------- */

/* Polls all response slots once and takes a free one, if there is one: its number, and in *tag the
 * tag of its response. */
GSHMEM_KERNEL bool gshmem_kernel_claim(const struct gshmem_device_job *job, uint32_t *slot,
                                       uint32_t *tag)
{
    /* a slot of its own for each thread of a grid that has no more threads than there are slots */
    uint32_t begin = gshmem_kernel_block() * gshmem_kernel_size<GSHMEM_SCOPE_BLOCK>() +
                     gshmem_kernel_thread();

#pragma unroll 1
    for (uint32_t i = begin; i != begin + GSHMEM_RESPONSES; i++) {
        uint32_t *owner = &job->response_owner[i % GSHMEM_RESPONSES];
        uint32_t was = gshmem_device_load_32(owner);
        if (!(was & 1) && gshmem_claim(owner, was, was | 1)) {
            *slot = i % GSHMEM_RESPONSES;
            *tag = ((was >> 1) + 1) & 255;
            return true;
        }
    }
    return false;
}

/* Logs which thread called. The proxy has logged what was wrong with the call, but does not know
 * the thread. */
GSHMEM_KERNEL_RARE void gshmem_kernel_say_where(gshmem_status_t status)
{
#ifdef GSHMEM_HOST_DEVICE
    char where[200];

    if (status != GSHMEM_ERR_ARGUMENT && status != GSHMEM_ERR_NOT_SYMMETRIC)
        return;
    gshmem_host_name_thread(where, sizeof where);
    gshmem_device_say_where(where);
#else
    (void)status;
#endif
}

/* Posts a command with a response slot that the caller has taken, waits for the response, and frees
 * the slot. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_ask_by(const struct gshmem_device_ctx *c,
                                                   const struct gshmem_device_channel *channel,
                                                   uint32_t slot, uint32_t tag, uint32_t n,
                                                   struct gshmem_slot first,
                                                   struct gshmem_slot second, uint64_t value[2])
{
    const struct gshmem_response *r = &c->job->response[slot];
    struct gshmem_kernel_wait w = {};
    gshmem_status_t status;
    uint64_t end, answer;

    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_PROXY, &r->answer);
    gshmem_command_respond(&first, slot, tag);
    if ((status = gshmem_kernel_post(c, channel, n, first, second, &end)))
        return status;
    /* acquire: pairs with the release of the proxy's response */
    while ((answer = gshmem_load_acquire(&r->answer)) >> 8 != tag) {
        if ((status = gshmem_kernel_wait_word(&w, c->job->failure, &r->answer, answer)))
            return status; /* the slot stays taken: no response will come */
    }
    gshmem_kernel_waited();
    if (value) {
        value[0] = gshmem_load_relaxed(&r->value[0]);
        value[1] = gshmem_load_relaxed(&r->value[1]);
    }
    gshmem_let_go(&c->job->response_owner[slot], tag << 1);
    if (answer & 255)
        gshmem_kernel_say_where((gshmem_status_t)(answer & 255));
    return (gshmem_status_t)(answer & 255);
}

/* Before gshmem_init, or after gshmem_finalize. The host device logs it, once; a GPU cannot.
 * raises: the caller returns no status. The failure then goes to the error policy; on a GPU it ends
 * the kernel. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_without_job(bool raises)
{
#ifdef GSHMEM_HOST_DEVICE
    char where[200];

    gshmem_host_name_thread(where, sizeof where);
    gshmem_device_without_job(where, raises);
#else
    if (raises)
        __trap();
#endif
    return GSHMEM_ERR_STATE;
}

/* Slots of commands are passed by value, and so stay in registers: as words, because the LLVM of
 * Triton 3.9 would load a struct that it has in memory by an address of 32 bits, which ptxas
 * refuses. A lane that has taken a response slot posts in the same iteration of the loop, and frees
 * the slot. After the loop, a GPU's lane waits for the other lanes of its warp. If it still had its
 * slot there, lanes that wait could have all slots, and the others would find none. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_ask_words(
    const struct gshmem_device_ctx *c, const struct gshmem_device_channel *on, uint32_t n,
    uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t b0, uint64_t b1, uint64_t b2,
    uint64_t b3, uint64_t value[2])
{
    const struct gshmem_slot first = {{a0, a1, a2, a3}}, second = {{b0, b1, b2, b3}};
    struct gshmem_kernel_wait w = {};
    gshmem_status_t status = GSHMEM_OK;
    bool answered = false;
    uint32_t slot, tag;

    if (!c->job)
        return gshmem_kernel_without_job(gshmem_command_raises(first));
    if (!on)
        on = gshmem_kernel_channel(c);
    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_PROXY, &c->job->response[0].answer);
    while (!answered && !status) {
        answered = gshmem_kernel_claim(c->job, &slot, &tag);
        status = answered ? gshmem_kernel_ask_by(c, on, slot, tag, n, first, second, value)
                          : gshmem_kernel_wait_proxy(&w, c->job->failure);
    }
    return status;
}

GSHMEM_KERNEL gshmem_status_t gshmem_kernel_ask_slots(const struct gshmem_device_ctx *c,
                                                      const struct gshmem_device_channel *on,
                                                      uint32_t n, struct gshmem_slot first,
                                                      struct gshmem_slot second, uint64_t value[2])
{
    return gshmem_kernel_ask_words(c, on, n, first.word[0], first.word[1], first.word[2],
                                   first.word[3], second.word[0], second.word[1], second.word[2],
                                   second.word[3], value);
}

/* In place of the second slot of a command that has one. */
GSHMEM_KERNEL struct gshmem_slot gshmem_kernel_no_slot(void)
{
    struct gshmem_slot none = {};

    return none;
}

/* Posts a command and waits for its response; value may be NULL. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_ask(const struct gshmem_device_ctx *c,
                                                const struct gshmem_command *command,
                                                const struct gshmem_command *second,
                                                uint64_t value[2])
{
    struct gshmem_slot slot[2] = {};
    const uint32_t n = gshmem_command_slots(command, second, slot);

    return gshmem_kernel_ask_slots(c, NULL, n, slot[0], slot[1], value);
}

/* ---- Data written by NICs -------------------------------------------------------------------- */

GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_flush(void)
{
    struct gshmem_command command = {};

    command.kind = GSHMEM_COMMAND_FLUSH;
    return gshmem_kernel_ask(&gshmem_device_here.ctx, &command, NULL, NULL);
}

/* Called when a thread has seen a word that arrives after data, which a NIC may have written to
 * this GPU's memory. When this returns, the thread also sees the data, even on GPUs that do not
 * ensure it themselves. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_settle(void)
{
    return GSHMEM_LIKELY(!gshmem_device_here.flushes) ? GSHMEM_OK : gshmem_kernel_flush();
}

/* ---- Failures ------------------------------------------------------------------------------- */

/* Has the proxy log, as it does for the host's calls, that there is no such PE, or no such context.
 * `about` is the command that the call would have posted; for pe_quiet it is zero. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_refuse(const struct gshmem_device_ctx *c,
                                                        struct gshmem_command about, int pe,
                                                        bool raises)
{
    struct gshmem_command command = {};

    command.kind = GSHMEM_COMMAND_REFUSE;
    command.type = about.kind;
    command.amo = about.amo;
    command.raises = raises;
    command.address = about.address;
    command.local = c ? GSHMEM_REFUSED_PE : GSHMEM_REFUSED_CTX;
    command.size = (uint64_t)(int64_t)pe;
    return gshmem_kernel_ask(c ? c : &gshmem_device_here.ctx, &command, NULL, NULL);
}

/* The same for a call whose local object is NULL: the source of a put, dest of a get, the result of
 * an atomic, the PEs of pe_quiet. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_refuse_null(const struct gshmem_device_ctx *c,
                                                             struct gshmem_command about,
                                                             size_t size)
{
    struct gshmem_command command = {};

    command.kind = GSHMEM_COMMAND_REFUSE;
    command.type = about.kind;
    command.amo = about.amo;
    command.address = about.address;
    command.local = GSHMEM_REFUSED_NULL;
    command.size = size;
    return gshmem_kernel_ask(c, &command, NULL, NULL);
}

/* GSHMEM_CHECK=memory: has the proxy compare bytes of this PE with the program's objects; on
 * failure it logs a line. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_check(uint32_t collective, uint32_t wait,
                                                       const void *object, size_t bytes,
                                                       bool raises)
{
    const struct gshmem_device_ctx *c = &gshmem_device_here.ctx;
    struct gshmem_command command = {};

    if (bytes == 0)
        return GSHMEM_OK;
    command.kind = GSHMEM_COMMAND_CHECK;
    command.type = collective;
    command.amo = wait;
    command.pe = (uint32_t)c->my_pe;
    command.raises = raises;
    command.address = (uint64_t)(uintptr_t)object;
    command.size = bytes;
    return gshmem_kernel_ask(c, &command, NULL, NULL);
}

#ifdef GSHMEM_HOST_DEVICE
GSHMEM_KERNEL_RARE void gshmem_kernel_rest(uint32_t wait, const void *ivars, size_t bytes)
{
    gshmem_host_yield();
    if (!gshmem_device_here.direct && gshmem_device_here.ctx.n_pes)
        gshmem_kernel_check(0, wait, ivars, bytes, true);
}
#endif

/* gshmem_kernel_may_wait for tests: when the thread lets others run, the proxy checks the object,
 * too. */
GSHMEM_KERNEL void gshmem_kernel_may_test(uint32_t wait, const void *ivars, size_t bytes)
{
#ifdef GSHMEM_HOST_DEVICE
    if (GSHMEM_UNLIKELY(gshmem_host_may_rest()))
        gshmem_kernel_rest(wait, ivars, bytes);
#else
    (void)wait;
    (void)ivars;
    (void)bytes;
#endif
}

/* Hands a failure to the error policy, from functions that return no status. */
GSHMEM_KERNEL_RARE void gshmem_kernel_raise(const struct gshmem_device_ctx *c,
                                            gshmem_status_t status)
{
    struct gshmem_command command = {};

    command.kind = GSHMEM_COMMAND_RAISE;
    command.type = (uint32_t)status;
    gshmem_kernel_ask(c, &command, NULL, NULL);
}

/* gshmem_kernel_settle, for calls that return no status: false where that has failed. */
GSHMEM_KERNEL bool gshmem_kernel_has_settled(void)
{
    gshmem_status_t status = gshmem_kernel_settle();

    if (status)
        gshmem_kernel_raise(&gshmem_device_here.ctx, status);
    return !status;
}

/* A command whose completion a quiet reports; fails at once if the command is known to be wrong. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_issue(const struct gshmem_device_ctx *c,
                                                  struct gshmem_command *command,
                                                  const struct gshmem_command *second, size_t bytes,
                                                  int pe, uint64_t *end)
{
    struct gshmem_slot slot[2] = {};
    uint64_t ignored;

    if (!gshmem_kernel_has_pe(c, pe))
        return gshmem_kernel_refuse(c, *command, pe, false);
    command->pe = (uint32_t)c->world[pe];
    /* an object of 0 bytes may have any address, NULL included */
    if (!gshmem_kernel_symmetric(c, (const void *)command->address, bytes))
        return bytes || second ? gshmem_kernel_ask(c, command, second, NULL) : GSHMEM_OK;
    /* decided before a put_signal is packed, so that the compiler knows it */
    const bool publishes = gshmem_post_publishes(gshmem_command_encode(command));
    const uint32_t n = gshmem_command_slots(command, second, slot);
    return gshmem_kernel_post_slots(c, gshmem_kernel_channel(c), n, slot[0], slot[1], publishes,
                                    end ? end : &ignored);
}

#endif
