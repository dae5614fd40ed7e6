#include "runtime/proxy/command.h"

#include <assert.h>

#include "runtime/base/atomic_name.h"
#include "runtime/base/atomic_type.h"
#include "runtime/base/log.h"
#include "runtime/network/network.h"
#include "runtime/proxy/refuse.h"

static_assert(GSHMEM_COPIED == TRANSPORT_COPIED,
              "a put whose source a kernel takes back when it was taken has been copied by then");

/* ---- Names of the calls ---- */

static const char *const calls[] = {
    [0] = "a command",
    [GSHMEM_COMMAND_PUT] = "put",
    [GSHMEM_COMMAND_GET] = "get",
    [GSHMEM_COMMAND_VALUE] = "p",
    [GSHMEM_COMMAND_FETCH] = "g",
    [GSHMEM_COMMAND_ATOMIC] = "atomic",
    [GSHMEM_COMMAND_RESULT] = "atomic",
    [GSHMEM_COMMAND_SIGNAL] = "signal",
    [GSHMEM_COMMAND_RAISE] = "a call",
    [GSHMEM_COMMAND_REFUSE] = "a call",
    [GSHMEM_COMMAND_REFUSE_COLLECTIVE] = "a collective",
    [GSHMEM_COMMAND_REFUSE_WAIT] = "a wait",
    [GSHMEM_COMMAND_FENCE] = "fence",
    [GSHMEM_COMMAND_FLUSH] = "a wait",
    [GSHMEM_COMMAND_CHECK] = "a call",
    [GSHMEM_COMMAND_SOURCES] = "flush",
    [GSHMEM_COMMAND_SESSION] = "region",
    [GSHMEM_COMMAND_PUT_SIGNAL] = "put_signal",
};

enum { KINDS = sizeof calls / sizeof calls[0] };

static const char *command_name_of(uint32_t kind, uint32_t amo)
{
    if (kind == GSHMEM_COMMAND_ATOMIC && atomic_name((int)amo))
        return atomic_name((int)amo);
    return calls[kind < KINDS ? kind : 0];
}

static struct gshmem_command command_of(const struct passage *p)
{
    return gshmem_command_decode((struct gshmem_slot){.word = {p->word}});
}

const char *command_name(const struct passage *p)
{
    const struct gshmem_command c = command_of(p);

    if (c.kind == GSHMEM_COMMAND_REFUSE)
        return c.type ? command_name_of(c.type, c.amo) : "fence or quiet";
    return p->signals ? "put_signal" : command_name_of(c.kind, c.amo);
}

int command_pe(const struct passage *p)
{
    return (int)command_of(p).pe;
}

bool command_asks_for_sources(const struct passage *p)
{
    return command_of(p).kind == GSHMEM_COMMAND_SOURCES;
}

/* ---- Pairs ---- */

bool command_may_have_more(const struct gshmem_command *first)
{
    return first->more &&
           (first->kind == GSHMEM_COMMAND_PUT || first->kind == GSHMEM_COMMAND_VALUE ||
            first->kind == GSHMEM_COMMAND_ATOMIC);
}

bool command_continues(const struct gshmem_command *first, const struct gshmem_command *second)
{
    uint32_t due =
        first->kind == GSHMEM_COMMAND_ATOMIC ? GSHMEM_COMMAND_RESULT : GSHMEM_COMMAND_SIGNAL;

    return second->kind == due && !second->more && !(second->responds && first->responds);
}

/* ---- One kind at a time ---- */

struct translation {
    const struct gshmem_command *first, *second;
    const struct proxy_way *way;
    struct passage *passage;
    struct transport_request *request;
};

/* The first part names the PE, also for the second. */
static gshmem_status_t aim(const struct translation *t, const struct gshmem_command *c,
                           uint64_t bytes, uint8_t *segment, uint64_t *offset)
{
    int number = 0;
    gshmem_status_t status = t->way->aim(t->way->context, c->address, bytes, (int)t->first->pe,
                                         command_name(t->passage), &number, offset);

    *segment = (uint8_t)number;
    return status;
}

static gshmem_status_t command_check_local(const struct translation *t, uint64_t address,
                                           uint64_t bytes)
{
    const struct proxy_way *way = t->way;

    if (bytes == 0)
        return GSHMEM_OK;
    if (way->is_memory(way->context, address, bytes))
        return way->check_local
                   ? way->check_local(way->context, address, bytes, command_name(t->passage))
                   : GSHMEM_OK;
    return fail(GSHMEM_ERR_ARGUMENT,
                "%s in a kernel of %llu B with PE %u: this process has no memory at its local "
                "address %#llx",
                command_name(t->passage), (unsigned long long)bytes, t->first->pe,
                (unsigned long long)address);
}

static gshmem_status_t command_copy(const struct translation *t, enum transport_kind kind)
{
    const struct gshmem_command *c = t->first;
    struct transport_request *r = t->request;
    gshmem_status_t status = aim(t, c, c->size, &r->segment, &r->offset);

    if (!status)
        status = command_check_local(t, c->local, c->size);
    r->kind = kind;
    r->local = (void *)(uintptr_t)c->local;
    r->bytes = c->size;
    return status;
}

/* One element: its value is in the command, or in the response. */
static gshmem_status_t element(const struct translation *t, enum transport_kind kind)
{
    const struct gshmem_command *c = t->first;
    struct transport_request *r = t->request;

    if (!command_is_element(c->type))
        return fail(GSHMEM_ERR_ARGUMENT, "%s in a kernel: no element has %u B",
                    command_name(t->passage), c->type);
    t->passage->bytes = (uint8_t)c->type;
    t->passage->answer.value[0] = kind == TRANSPORT_PUT ? c->local : 0;
    t->passage->answer.value[1] = kind == TRANSPORT_PUT ? c->size : 0;
    r->kind = kind;
    r->local = t->passage->answer.value;
    r->flags |= TRANSPORT_KEPT;
    r->bytes = c->type;
    return aim(t, c, c->type, &r->segment, &r->offset);
}

static gshmem_status_t command_check_aligned(const struct translation *t,
                                             const struct gshmem_command *c, size_t bytes)
{
    if (c->address % bytes == 0)
        return GSHMEM_OK;
    return fail(GSHMEM_ERR_ARGUMENT, "%s in a kernel: %#llx is not aligned to its %zu bytes",
                command_name(t->passage), (unsigned long long)c->address, bytes);
}

/* A signal by itself is a put with signal without data. */
static gshmem_status_t add_signal(const struct translation *t, const struct gshmem_command *c)
{
    struct transport_request *r = t->request;
    gshmem_status_t status;

    if (c->amo != GSHMEM_SIGNAL_SET && c->amo != GSHMEM_SIGNAL_ADD)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s in a kernel: signal_op is %u; it is GSHMEM_SIGNAL_SET or GSHMEM_SIGNAL_ADD",
                    command_name(t->passage), c->amo);
    if ((status = command_check_aligned(t, c, sizeof(uint64_t))))
        return status;
    r->kind = TRANSPORT_PUT;
    r->signal_op = (uint8_t)c->amo;
    r->signal_value = c->local;
    status = aim(t, c, sizeof(uint64_t), &r->signal_segment, &r->signal_offset);
    if (c == t->first) {
        r->segment = r->signal_segment;
        r->offset = r->signal_offset;
    }
    return status;
}

static gshmem_status_t atomic(const struct translation *t)
{
    const struct gshmem_command *c = t->first;
    struct transport_request *r = t->request;
    size_t bytes = atomic_type_bytes((int)c->type);
    gshmem_status_t status;

    if (!atomic_name((int)c->amo) || bytes == 0)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "atomic in a kernel: operation %u on type %u does not exist", c->amo, c->type);
    if ((status = command_check_aligned(t, c, bytes)))
        return status;
    t->passage->answer.value[0] = t->passage->answer.value[1] = 0;
    t->passage->bytes = (uint8_t)bytes;
    r->kind = TRANSPORT_ATOMIC;
    r->amo = (uint8_t)c->amo;
    r->type = (uint8_t)c->type;
    r->operand = c->local;
    r->compare = c->size;
    r->old = t->passage->answer.wanted || t->second ? t->passage->answer.value : NULL;
    if ((status = aim(t, c, bytes, &r->segment, &r->offset)))
        return status;
    if (t->second) {
        t->passage->result = (void *)(uintptr_t)t->second->local;
        status = command_check_local(t, t->second->local, bytes);
    }
    return status;
}

static gshmem_status_t command_refuse(const struct translation *t)
{
    const struct gshmem_command *c = t->first;

    if (c->local == GSHMEM_REFUSED_PAIRS)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "qp_fence or qp_quiet in a kernel: there is no array of %lld queue pairs",
                    (long long)c->size);
    if (c->local == GSHMEM_REFUSED_NULL && c->type == 0)
        return fail(GSHMEM_ERR_ARGUMENT, "pe_quiet in a kernel: target_pes is NULL and n is %llu",
                    (unsigned long long)c->size);
    if (c->local == GSHMEM_REFUSED_NULL)
        return fail(GSHMEM_ERR_ARGUMENT, "%s in a kernel of %llu B at %#llx: %s is NULL",
                    command_name(t->passage), (unsigned long long)c->size,
                    (unsigned long long)c->address,
                    c->type == GSHMEM_COMMAND_PUT   ? "source"
                    : c->type == GSHMEM_COMMAND_GET ? "dest"
                                                    : "fetch");
    if (c->local && c->type == 0)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "fence or quiet in a kernel: the context is GSHMEM_CTX_INVALID, or the queue "
                    "pair is none");
    if (c->local)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s in a kernel at %#llx: the context is GSHMEM_CTX_INVALID, or the queue pair "
                    "is none",
                    command_name(t->passage), (unsigned long long)c->address);
    return fail(GSHMEM_ERR_ARGUMENT,
                "%s in a kernel with PE %lld at %#llx: its context has no such PE",
                command_name(t->passage), (long long)c->size, (unsigned long long)c->address);
}

gshmem_status_t command_check(const struct gshmem_command *c, const struct proxy_way *way)
{
    uint64_t offset;
    int segment;

    if (c->pe >= (uint32_t)way->n_pes)
        return fail(GSHMEM_ERR_ARGUMENT, "%s in a kernel with PE %u: the job has PEs 0..%d",
                    refuse_name(c), c->pe, way->n_pes - 1);
    return way->aim(way->context, c->address, c->size, (int)c->pe, refuse_name(c), &segment,
                    &offset);
}

gshmem_status_t command_translate(const struct gshmem_command *first,
                                  const struct gshmem_command *second, const struct proxy_way *way,
                                  struct passage *p, struct transport_request *r)
{
    const struct translation t = {first, second, way, p, r};
    gshmem_status_t status = GSHMEM_OK;

    *r =
        (struct transport_request){.flags = TRANSPORT_MORE | TRANSPORT_LOOSE, .pe = (int)first->pe};
    if (first->kind == GSHMEM_COMMAND_REFUSE_COLLECTIVE)
        return refuse_collective(first);
    if (first->kind == GSHMEM_COMMAND_REFUSE_WAIT)
        return refuse_wait(first);
    if (first->kind != GSHMEM_COMMAND_REFUSE && first->pe >= (uint32_t)way->n_pes)
        return fail(GSHMEM_ERR_ARGUMENT, "%s in a kernel with PE %u: the job has PEs 0..%d",
                    command_name(p), first->pe, way->n_pes - 1);
    switch (first->kind) {
    case GSHMEM_COMMAND_PUT:
        status = command_copy(&t, TRANSPORT_PUT);
        break;
    case GSHMEM_COMMAND_GET:
        return command_copy(&t, TRANSPORT_GET);
    case GSHMEM_COMMAND_VALUE:
        status = element(&t, TRANSPORT_PUT);
        break;
    case GSHMEM_COMMAND_FETCH:
        return element(&t, TRANSPORT_GET);
    case GSHMEM_COMMAND_SIGNAL:
        return add_signal(&t, first);
    case GSHMEM_COMMAND_ATOMIC:
        return atomic(&t);
    case GSHMEM_COMMAND_REFUSE:
        return command_refuse(&t);
    default:
        return fail(GSHMEM_ERR_ARGUMENT, "a kernel's command of kind %u is none of this version's",
                    first->kind);
    }
    return !status && second ? add_signal(&t, second) : status;
}
