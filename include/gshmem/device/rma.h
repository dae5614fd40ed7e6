/* Put, get, single elements, strided copies and signals in kernels; and the host's by the same
 * names.
 *
 * The names at the end of this file and in typed.h call gshmem_kernel_…: `scope` says which threads
 * perform the operation, `nbi` whether it may return before it is complete. */
#ifndef GSHMEM_DEVICE_RMA_H
#define GSHMEM_DEVICE_RMA_H

#include "gshmem/device/copy.h"
#include "gshmem/device/follow.h"
#include "gshmem/device/order.h"
#include "gshmem/device/strided.h"

/* ---- Through the proxy, by one thread ------------------------------------------------------- */

/* Posts a put and, if there is one, its signal. If it is blocking, it waits until the source may be
 * reused. */
template <bool nbi>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_post_put(const struct gshmem_device_ctx *c, void *dest,
                                                     const void *source, size_t bytes,
                                                     const struct gshmem_command *signal, int pe)
{
    struct gshmem_command command = {};
    uint64_t end = 0;

    command.kind = GSHMEM_COMMAND_PUT;
    command.more = signal != NULL;
    command.address = (uint64_t)(uintptr_t)dest;
    command.local = (uint64_t)(uintptr_t)source;
    command.size = bytes;
    if (!source && bytes && gshmem_kernel_has_pe(c, pe))
        return gshmem_kernel_refuse_null(c, command, bytes);
    /* A large blocking put waits for a response. So does a put whose signal the proxy will refuse,
     * because the call has to return that failure. */
    if (gshmem_kernel_has_pe(c, pe) &&
        ((!nbi && bytes > GSHMEM_COPIED) ||
         (signal &&
          !gshmem_kernel_symmetric(c, (const void *)signal->address, sizeof(uint64_t))))) {
        command.pe = (uint32_t)c->world[pe];
        return gshmem_kernel_ask(c, &command, signal, NULL);
    }
    gshmem_status_t status = gshmem_kernel_issue(c, &command, signal, bytes, pe, &end);
    if (!nbi && !status && end)
        status = gshmem_kernel_wait_taken(c, gshmem_kernel_channel(c), end);
    return status;
}

/* Posts a get. If it is nbi, *end becomes the position after the command; if the call is complete
 * at once, *end stays as it was. */
template <bool nbi>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_post_get(const struct gshmem_device_ctx *c, void *dest,
                                                     const void *source, size_t bytes, int pe,
                                                     uint64_t *end = NULL)
{
    struct gshmem_command command = {};

    command.kind = GSHMEM_COMMAND_GET;
    command.address = (uint64_t)(uintptr_t)source;
    command.local = (uint64_t)(uintptr_t)dest;
    command.size = bytes;
    if (!dest && bytes && gshmem_kernel_has_pe(c, pe))
        return gshmem_kernel_refuse_null(c, command, bytes);
    if (nbi || !gshmem_kernel_has_pe(c, pe))
        return gshmem_kernel_issue(c, &command, NULL, bytes, pe, end);
    if (bytes == 0)
        return GSHMEM_OK;
    command.pe = (uint32_t)c->world[pe];
    return gshmem_kernel_ask(c, &command, NULL, NULL);
}

/* ---- Put and get ---------------------------------------------------------------------------- */

template <int scope, bool nbi>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_put(gshmem_ctx_t ctx, void *dest, const void *source,
                                                size_t bytes, int pe)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);
    void *there = gshmem_kernel_reach(c, dest, bytes, pe);
    gshmem_status_t status = GSHMEM_OK;

    gshmem_kernel_sync<scope>();
    GSHMEM_FOLLOW_EITHER(scope, nbi, c, PUT, dest, source, bytes, pe);
    if (there && source) {
        gshmem_kernel_copy<scope>(there, source, bytes);
        if (!nbi)
            gshmem_kernel_sync<scope>();
        return GSHMEM_OK;
    }
    if (gshmem_kernel_rank<scope>() == 0)
        status = gshmem_kernel_post_put<nbi>(c, dest, source, bytes, NULL, pe);
    return gshmem_kernel_agree<scope>(status);
}

template <int scope, bool nbi>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_get(gshmem_ctx_t ctx, void *dest, const void *source,
                                                size_t bytes, int pe)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);
    const void *there = gshmem_kernel_reach(c, source, bytes, pe);
    gshmem_status_t status = GSHMEM_OK;

    gshmem_kernel_sync<scope>();
    GSHMEM_FOLLOW_EITHER(scope, nbi, c, GET, source, dest, bytes, pe);
    if (there && dest) {
        gshmem_kernel_copy<scope>(dest, there, bytes);
        if (!nbi)
            gshmem_kernel_sync<scope>();
        return GSHMEM_OK;
    }
    if (gshmem_kernel_rank<scope>() == 0)
        status = gshmem_kernel_post_get<nbi>(c, dest, source, bytes, pe);
    return gshmem_kernel_agree<scope>(status);
}

/* ---- Single elements ------------------------------------------------------------------------ */

/* The value is part of the command. */
template <class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_post_p(const struct gshmem_device_ctx *c, T *dest,
                                                   T value, int pe)
{
    struct gshmem_command command = {};
    uint64_t bits[2] = {0, 0};

    static_assert(sizeof value <= sizeof bits, "an element that fits a command");
    memcpy(bits, &value, sizeof value);
    command.kind = GSHMEM_COMMAND_VALUE;
    command.type = sizeof value;
    command.address = (uint64_t)(uintptr_t)dest;
    command.local = bits[0];
    command.size = bits[1];
    return gshmem_kernel_issue(c, &command, NULL, sizeof value, pe, NULL);
}

template <class T>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_p(gshmem_ctx_t ctx, T *dest, T value, int pe)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);
    void *there = gshmem_kernel_reach(c, dest, sizeof value, pe);

    GSHMEM_FOLLOW(GSHMEM_SCOPE_THREAD, c, GSHMEM_FOLLOWED_PUT, dest, NULL, sizeof value, pe);
    if (!there)
        return gshmem_kernel_post_p(c, dest, value, pe);
    gshmem_kernel_store((T *)there, value);
    return GSHMEM_OK;
}

template <class T>
GSHMEM_KERNEL_RARE T gshmem_kernel_ask_g(const struct gshmem_device_ctx *c, const T *source, int pe)
{
    struct gshmem_command command = {};
    uint64_t bits[2] = {0, 0};
    T value;

    command.kind = GSHMEM_COMMAND_FETCH;
    command.type = sizeof value;
    command.raises = 1;
    command.address = (uint64_t)(uintptr_t)source;
    if (!gshmem_kernel_has_pe(c, pe)) {
        gshmem_kernel_refuse(c, command, pe, true);
    } else {
        command.pe = (uint32_t)c->world[pe];
        if (gshmem_kernel_ask(c, &command, NULL, bits))
            bits[0] = bits[1] = 0;
    }
    memcpy(&value, bits, sizeof value);
    return value;
}

template <class T> GSHMEM_KERNEL T gshmem_kernel_g(gshmem_ctx_t ctx, const T *source, int pe)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);
    const void *there = gshmem_kernel_reach(c, source, sizeof *source, pe);

    GSHMEM_FOLLOW(GSHMEM_SCOPE_THREAD, c, GSHMEM_FOLLOWED_GET, source, NULL, sizeof *source, pe);
    gshmem_kernel_may_wait();
    return there ? gshmem_kernel_load((const T *)there) : gshmem_kernel_ask_g(c, source, pe);
}

/* ---- Strided -------------------------------------------------------------------------------- */

/* Puts n blocks of `run` bytes each; the threads take blocks in turn. */
template <int scope>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_put_blocks(gshmem_ctx_t ctx, char *dest,
                                                       const char *source, size_t to_step,
                                                       size_t from_step, size_t run, size_t n,
                                                       int pe)
{
    gshmem_status_t status = GSHMEM_OK;

    gshmem_kernel_sync<scope>();
    for (size_t i = gshmem_kernel_rank<scope>(); i < n && !status; i += gshmem_kernel_size<scope>())
        status = gshmem_kernel_put<GSHMEM_SCOPE_THREAD, false>(ctx, dest + i * to_step,
                                                               source + i * from_step, run, pe);
    return gshmem_kernel_agree<scope>(status);
}

template <int scope>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_get_blocks(gshmem_ctx_t ctx, char *dest,
                                                       const char *source, size_t to_step,
                                                       size_t from_step, size_t run, size_t n,
                                                       int pe)
{
    const size_t step = gshmem_kernel_size<scope>();
    gshmem_status_t status = GSHMEM_OK;

    gshmem_kernel_sync<scope>();
    for (size_t i = gshmem_kernel_rank<scope>(); i < n && !status; i += step) {
        /* The thread requests all its blocks at once. Then it waits for the last one, and so for
         * all before it. */
        if (i + step < n)
            status = gshmem_kernel_get<GSHMEM_SCOPE_THREAD, true>(ctx, dest + i * to_step,
                                                                  source + i * from_step, run, pe);
        else
            status = gshmem_kernel_get<GSHMEM_SCOPE_THREAD, false>(ctx, dest + i * to_step,
                                                                   source + i * from_step, run, pe);
    }
    if (!status && n > step && !gshmem_kernel_reach(gshmem_kernel_ctx(ctx), source, run, pe))
        status = gshmem_kernel_quiet(ctx);
    return gshmem_kernel_agree<scope>(status);
}

/* n blocks of `block` elements, dst and sst elements apart. */
template <int scope, bool put>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_strided(gshmem_ctx_t ctx, void *dest,
                                                    const void *source, ptrdiff_t dst,
                                                    ptrdiff_t sst, size_t block, size_t element,
                                                    size_t n, int pe)
{
    struct gshmem_strided s = {};

    if (n == 0 || block == 0)
        return GSHMEM_OK;
    if (gshmem_strided_check(dst, sst, block, element, n, &s) != GSHMEM_STRIDED_GOOD)
        return GSHMEM_ERR_ARGUMENT;
    if (put && !source)
        /* which logs the failure */
        return gshmem_kernel_put<scope, false>(ctx, dest, source, s.run, pe);
    if (!put && !dest)
        return gshmem_kernel_get<scope, false>(ctx, dest, source, s.run, pe);
    return put ? gshmem_kernel_put_blocks<scope>(ctx, (char *)dest, (const char *)source,
                                                 s.to_step, s.from_step, s.run, n, pe)
               : gshmem_kernel_get_blocks<scope>(ctx, (char *)dest, (const char *)source,
                                                 s.to_step, s.from_step, s.run, n, pe);
}

/* ---- Signals -------------------------------------------------------------------------------- */

GSHMEM_KERNEL struct gshmem_command gshmem_kernel_signal_command(uint64_t *sig_addr,
                                                                 uint64_t signal, int signal_op)
{
    struct gshmem_command command = {};

    command.kind = GSHMEM_COMMAND_SIGNAL;
    command.amo = (uint32_t)signal_op & 15;
    command.address = (uint64_t)(uintptr_t)sig_addr;
    command.local = signal;
    return command;
}

/* release: a thread that sees the signal sees everything that this thread, and those it has
 * synchronized with, wrote before */
GSHMEM_KERNEL void gshmem_kernel_signal_there(uint64_t *there, uint64_t signal, int signal_op)
{
    if (signal_op == GSHMEM_SIGNAL_SET)
        gshmem_store_release(there, signal);
    else
        gshmem_add_release(there, signal);
}

GSHMEM_KERNEL bool gshmem_kernel_signal_good(const uint64_t *sig_addr, int signal_op)
{
    return (signal_op == GSHMEM_SIGNAL_SET || signal_op == GSHMEM_SIGNAL_ADD) &&
           (uintptr_t)sig_addr % sizeof *sig_addr == 0;
}

/* A signal without data. If the arguments are wrong, the proxy logs it. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_signal(gshmem_ctx_t ctx, uint64_t *sig_addr,
                                                   uint64_t signal, int signal_op, int pe)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);
    uint64_t *there = (uint64_t *)gshmem_kernel_reach(c, sig_addr, sizeof *sig_addr, pe);
    bool good = gshmem_kernel_signal_good(sig_addr, signal_op);

    GSHMEM_FOLLOW(GSHMEM_SCOPE_THREAD, c, GSHMEM_FOLLOWED_SIGNAL, sig_addr, NULL, 8, pe);
    if (there && good) {
        gshmem_kernel_signal_there(there, signal, signal_op);
        return GSHMEM_OK;
    }
    struct gshmem_command command = gshmem_kernel_signal_command(sig_addr, signal, signal_op);
    if (good || !gshmem_kernel_has_pe(c, pe))
        return gshmem_kernel_issue(c, &command, NULL, sizeof *sig_addr, pe, NULL);
    command.pe = (uint32_t)c->world[pe];
    return gshmem_kernel_ask(c, &command, NULL, NULL);
}

template <int scope, bool nbi>
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_put_signal(gshmem_ctx_t ctx, void *dest,
                                                       const void *source, size_t bytes,
                                                       uint64_t *sig_addr, uint64_t signal,
                                                       int signal_op, int pe)
{
    const struct gshmem_device_ctx *c = gshmem_kernel_ctx(ctx);
    void *there = gshmem_kernel_reach(c, dest, bytes, pe);
    uint64_t *flag = (uint64_t *)gshmem_kernel_reach(c, sig_addr, sizeof *sig_addr, pe);
    bool good = gshmem_kernel_signal_good(sig_addr, signal_op);
    gshmem_status_t status = GSHMEM_OK;

    gshmem_kernel_sync<scope>();
    GSHMEM_FOLLOW_EITHER(scope, nbi, c, PUT_SIGNAL, dest, source, bytes, pe);
    if (bytes) /* else it is a signal, which tells of itself */
        GSHMEM_FOLLOW(scope, c, GSHMEM_FOLLOWED_SIGNAL, sig_addr, NULL, sizeof *sig_addr, pe);
    if (there && flag && good && source) {
        gshmem_kernel_copy<scope>(there, source, bytes);
        gshmem_kernel_sync<scope>();
        if (gshmem_kernel_rank<scope>() == 0)
            gshmem_kernel_signal_there(flag, signal, signal_op);
        return GSHMEM_OK;
    }
    if (gshmem_kernel_rank<scope>() == 0) {
        struct gshmem_command command = gshmem_kernel_signal_command(sig_addr, signal, signal_op);
        status = good && bytes ? gshmem_kernel_post_put<nbi>(c, dest, source, bytes, &command, pe)
                               : gshmem_kernel_signal(ctx, sig_addr, signal, signal_op, pe);
    }
    return gshmem_kernel_agree<scope>(status);
}

/* ---- The names of gshmem/rma.h, where they are documented ------------------------------------ */

GSHMEM_EITHER gshmem_status_t gshmem_ctx_putmem(gshmem_ctx_t ctx, void *dest, const void *source,
                                                size_t bytes, int pe)
{
    GSHMEM_RETURN((gshmem_kernel_put<GSHMEM_SCOPE_THREAD, false>(ctx, dest, source, bytes, pe)),
                  gshmem_on_host::gshmem_ctx_putmem(ctx, dest, source, bytes, pe));
}

GSHMEM_EITHER gshmem_status_t gshmem_putmem(void *dest, const void *source, size_t bytes, int pe)
{
    return gshmem_ctx_putmem(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_getmem(gshmem_ctx_t ctx, void *dest, const void *source,
                                                size_t bytes, int pe)
{
    GSHMEM_RETURN((gshmem_kernel_get<GSHMEM_SCOPE_THREAD, false>(ctx, dest, source, bytes, pe)),
                  gshmem_on_host::gshmem_ctx_getmem(ctx, dest, source, bytes, pe));
}

GSHMEM_EITHER gshmem_status_t gshmem_getmem(void *dest, const void *source, size_t bytes, int pe)
{
    return gshmem_ctx_getmem(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_putmem_nbi(gshmem_ctx_t ctx, void *dest,
                                                    const void *source, size_t bytes, int pe)
{
    GSHMEM_RETURN((gshmem_kernel_put<GSHMEM_SCOPE_THREAD, true>(ctx, dest, source, bytes, pe)),
                  gshmem_on_host::gshmem_ctx_putmem_nbi(ctx, dest, source, bytes, pe));
}

GSHMEM_EITHER gshmem_status_t gshmem_putmem_nbi(void *dest, const void *source, size_t bytes,
                                                int pe)
{
    return gshmem_ctx_putmem_nbi(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_getmem_nbi(gshmem_ctx_t ctx, void *dest,
                                                    const void *source, size_t bytes, int pe)
{
    GSHMEM_RETURN((gshmem_kernel_get<GSHMEM_SCOPE_THREAD, true>(ctx, dest, source, bytes, pe)),
                  gshmem_on_host::gshmem_ctx_getmem_nbi(ctx, dest, source, bytes, pe));
}

GSHMEM_EITHER gshmem_status_t gshmem_getmem_nbi(void *dest, const void *source, size_t bytes,
                                                int pe)
{
    return gshmem_ctx_getmem_nbi(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_putmem_signal(gshmem_ctx_t ctx, void *dest,
                                                       const void *source, size_t bytes,
                                                       uint64_t *sig_addr, uint64_t signal,
                                                       int signal_op, int pe)
{
    GSHMEM_RETURN((gshmem_kernel_put_signal<GSHMEM_SCOPE_THREAD, false>(
                      ctx, dest, source, bytes, sig_addr, signal, signal_op, pe)),
                  gshmem_on_host::gshmem_ctx_putmem_signal(ctx, dest, source, bytes, sig_addr,
                                                           signal, signal_op, pe));
}

GSHMEM_EITHER gshmem_status_t gshmem_putmem_signal(void *dest, const void *source, size_t bytes,
                                                   uint64_t *sig_addr, uint64_t signal,
                                                   int signal_op, int pe)
{
    return gshmem_ctx_putmem_signal(GSHMEM_CTX_DEFAULT, dest, source, bytes, sig_addr, signal,
                                    signal_op, pe);
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_putmem_signal_nbi(gshmem_ctx_t ctx, void *dest,
                                                           const void *source, size_t bytes,
                                                           uint64_t *sig_addr, uint64_t signal,
                                                           int signal_op, int pe)
{
    GSHMEM_RETURN((gshmem_kernel_put_signal<GSHMEM_SCOPE_THREAD, true>(
                      ctx, dest, source, bytes, sig_addr, signal, signal_op, pe)),
                  gshmem_on_host::gshmem_ctx_putmem_signal_nbi(ctx, dest, source, bytes, sig_addr,
                                                               signal, signal_op, pe));
}

GSHMEM_EITHER gshmem_status_t gshmem_putmem_signal_nbi(void *dest, const void *source, size_t bytes,
                                                       uint64_t *sig_addr, uint64_t signal,
                                                       int signal_op, int pe)
{
    return gshmem_ctx_putmem_signal_nbi(GSHMEM_CTX_DEFAULT, dest, source, bytes, sig_addr, signal,
                                        signal_op, pe);
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_iputmem(gshmem_ctx_t ctx, void *dest, const void *source,
                                                 ptrdiff_t dst, ptrdiff_t sst, size_t element,
                                                 size_t n, int pe)
{
    GSHMEM_RETURN((gshmem_kernel_strided<GSHMEM_SCOPE_THREAD, true>(ctx, dest, source, dst, sst, 1,
                                                                    element, n, pe)),
                  gshmem_on_host::gshmem_ctx_iputmem(ctx, dest, source, dst, sst, element, n, pe));
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_igetmem(gshmem_ctx_t ctx, void *dest, const void *source,
                                                 ptrdiff_t dst, ptrdiff_t sst, size_t element,
                                                 size_t n, int pe)
{
    GSHMEM_RETURN((gshmem_kernel_strided<GSHMEM_SCOPE_THREAD, false>(ctx, dest, source, dst, sst, 1,
                                                                     element, n, pe)),
                  gshmem_on_host::gshmem_ctx_igetmem(ctx, dest, source, dst, sst, element, n, pe));
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_ibputmem(gshmem_ctx_t ctx, void *dest, const void *source,
                                                  ptrdiff_t dst, ptrdiff_t sst, size_t block,
                                                  size_t element, size_t n, int pe)
{
    GSHMEM_RETURN(
        (gshmem_kernel_strided<GSHMEM_SCOPE_THREAD, true>(ctx, dest, source, dst, sst, block,
                                                          element, n, pe)),
        gshmem_on_host::gshmem_ctx_ibputmem(ctx, dest, source, dst, sst, block, element, n, pe));
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_ibgetmem(gshmem_ctx_t ctx, void *dest, const void *source,
                                                  ptrdiff_t dst, ptrdiff_t sst, size_t block,
                                                  size_t element, size_t n, int pe)
{
    GSHMEM_RETURN(
        (gshmem_kernel_strided<GSHMEM_SCOPE_THREAD, false>(ctx, dest, source, dst, sst, block,
                                                           element, n, pe)),
        gshmem_on_host::gshmem_ctx_ibgetmem(ctx, dest, source, dst, sst, block, element, n, pe));
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_signal_add(gshmem_ctx_t ctx, uint64_t *sig_addr,
                                                    uint64_t signal, int pe)
{
    GSHMEM_RETURN(gshmem_kernel_signal(ctx, sig_addr, signal, GSHMEM_SIGNAL_ADD, pe),
                  gshmem_on_host::gshmem_ctx_signal_add(ctx, sig_addr, signal, pe));
}

GSHMEM_EITHER gshmem_status_t gshmem_ctx_signal_set(gshmem_ctx_t ctx, uint64_t *sig_addr,
                                                    uint64_t signal, int pe)
{
    GSHMEM_RETURN(gshmem_kernel_signal(ctx, sig_addr, signal, GSHMEM_SIGNAL_SET, pe),
                  gshmem_on_host::gshmem_ctx_signal_set(ctx, sig_addr, signal, pe));
}

GSHMEM_EITHER gshmem_status_t gshmem_signal_add(uint64_t *sig_addr, uint64_t signal, int pe)
{
    return gshmem_ctx_signal_add(GSHMEM_CTX_DEFAULT, sig_addr, signal, pe);
}

GSHMEM_EITHER gshmem_status_t gshmem_signal_set(uint64_t *sig_addr, uint64_t signal, int pe)
{
    return gshmem_ctx_signal_set(GSHMEM_CTX_DEFAULT, sig_addr, signal, pe);
}

GSHMEM_EITHER gshmem_status_t gshmem_signal_op(uint64_t *sig_addr, uint64_t signal, int signal_op,
                                               int pe)
{
    GSHMEM_RETURN(gshmem_kernel_signal(GSHMEM_CTX_DEFAULT, sig_addr, signal, signal_op, pe),
                  gshmem_on_host::gshmem_signal_op(sig_addr, signal, signal_op, pe));
}

GSHMEM_KERNEL uint64_t gshmem_kernel_signal_fetch(const uint64_t *sig_addr)
{
    gshmem_kernel_may_test(GSHMEM_WAIT_FETCH, sig_addr, sizeof *sig_addr);
    const uint64_t seen = gshmem_load_acquire(sig_addr);
    return gshmem_kernel_has_settled() ? seen : 0;
}

GSHMEM_EITHER uint64_t gshmem_signal_fetch(const uint64_t *sig_addr)
{
    GSHMEM_RETURN(gshmem_kernel_signal_fetch(sig_addr),
                  gshmem_on_host::gshmem_signal_fetch(sig_addr));
}

#endif
