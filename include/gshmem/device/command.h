/* What kernels write into a channel, and the proxy reads: one operation in one slot of 4 × 63 bits.
 *
 *     word 0   kind, PE, type, where the response goes (the fields of struct gshmem_command)
 *     word 1   the symmetric address, as on this PE
 *     word 2   the local address, or the value's low bits
 *     word 3   the size, or the comparison value, or the value's high bits
 *
 * Values are part of the command. Therefore a p, an atomic or a signal reads no memory of the
 * sender. A put with a signal is a put marked `more` and a signal in the next slot, which the proxy
 * hands to the transport as one request; one that is small enough is packed into one slot (see
 * gshmem_put_signal_fits). An atomic whose old value goes to memory has a second slot, which says
 * where. The proxy checks all addresses: no kernel may crash it. */
#ifndef GSHMEM_DEVICE_COMMAND_H
#define GSHMEM_DEVICE_COMMAND_H

#include "gshmem/device/state.h"

enum gshmem_command_kind {
    GSHMEM_COMMAND_PUT = 1, /* `size` bytes from local */
    GSHMEM_COMMAND_GET,     /* `size` bytes to local */
    GSHMEM_COMMAND_VALUE,   /* stores `type` bytes (1, 2, 4, 8 or 16) of value and high */
    GSHMEM_COMMAND_FETCH,   /* loads `type` bytes (1, 2, 4, 8 or 16) into the response */
    GSHMEM_COMMAND_ATOMIC,  /* amo on an enum gshmem_type; the old value to the response */
    GSHMEM_COMMAND_RESULT,  /* after an atomic marked `more`: the old value to *local */
    GSHMEM_COMMAND_SIGNAL,  /* amo is an enum gshmem_signal_op */
    GSHMEM_COMMAND_RAISE,   /* hands the gshmem_status_t in `type` to the error policy, and
                               responds */
    GSHMEM_COMMAND_REFUSE,  /* no operation: reports a mistake in a call, and responds with the
                               status. `type` is the kind of the refused command (0 for fence and
                               quiet), `amo` its amo; `local` is a gshmem_refusal */
    GSHMEM_COMMAND_REFUSE_COLLECTIVE, /* the same for a gshmem_collective in `type`; amo is the
                                         reason */
    GSHMEM_COMMAND_REFUSE_WAIT, /* the same for a wait: `amo` is a gshmem_wait_call, its variables
                                   of `type` bytes are at `address`, `local` is its cmp, `size` a
                                   gshmem_wait_lack */
    GSHMEM_COMMAND_FENCE, /* commands behind the fence may not overtake commands before it in this
                             channel, nor commands before three positions in the context's other
                             channels. `address`, `local` and `size` hold these positions in the
                             order of the channels. With fewer than four channels only the last of
                             these fields are used */
    GSHMEM_COMMAND_FLUSH, /* no operation: responds when kernels see what NICs have written to the
                             GPU's memory */
    GSHMEM_COMMAND_CHECK, /* no operation: responds whether the `size` bytes at `address` are in one
                             of the program's objects. `type` is a gshmem_collective, or 0 and `amo`
                             a gshmem_wait_call */
    GSHMEM_COMMAND_SOURCES, /* no operation: responds when the sources of all puts before it in this
                               channel may be reused */
    GSHMEM_COMMAND_SESSION, /* no operation: a region begins (`type` is 1) or ends (0), in which
                               many commands follow, and may be sent together */
    GSHMEM_COMMAND_PUT_SIGNAL, /* a put and its signal, packed into one slot; amo is the signal's */
};

/* In a context with more channels, a fence first waits until the proxy has taken the commands of
 * the other channels. */
#define GSHMEM_FENCE_CHANNELS 4u

enum gshmem_collective {
    GSHMEM_COLLECTIVE_SYNC = 1, /* or barrier */
    GSHMEM_COLLECTIVE_BROADCAST,
    GSHMEM_COLLECTIVE_FCOLLECT,
    GSHMEM_COLLECTIVE_ALLTOALL,
    GSHMEM_COLLECTIVE_REDUCE,
    GSHMEM_COLLECTIVE_REDUCESCATTER,
    GSHMEM_COLLECTIVE_COLLECT, /* from here on only for the library's own kernel */
    GSHMEM_COLLECTIVE_ALLTOALLS,
    GSHMEM_COLLECTIVE_INSCAN,
    GSHMEM_COLLECTIVE_EXSCAN,
};

/* Whether dest may be source. */
GSHMEM_DEVICE int gshmem_collective_in_place(uint32_t what)
{
    return what != GSHMEM_COLLECTIVE_FCOLLECT && what != GSHMEM_COLLECTIVE_ALLTOALL &&
           what != GSHMEM_COLLECTIVE_COLLECT && what != GSHMEM_COLLECTIVE_ALLTOALLS;
}

/* What is wrong with a collective; its team's handle is in `local`. */
enum gshmem_collective_fault {
    GSHMEM_FAULT_TEAM = 1,  /* there is no such team */
    GSHMEM_FAULT_ROOT,      /* no PE has the number in `size` */
    GSHMEM_FAULT_ADDRESS,   /* the `size` bytes at `address` are not symmetric */
    GSHMEM_FAULT_OVERLAP,   /* dest, which is at that address, and source overlap */
    GSHMEM_FAULT_OPERATION, /* the operation does not exist for the type, or the type or operation
                               does not exist */
    GSHMEM_FAULT_OTHERS,    /* another PE made another call, or could not make this one */
    GSHMEM_FAULT_STRIDES,   /* a stride is not positive: dst in `address`, sst in `size` */
    GSHMEM_FAULT_MEMBERS,   /* the team has more members than `size` */
    GSHMEM_FAULT_LEFT,      /* a PE has left the job: `size` is the team's failure, which says which
                               PE */
};

/* A team's failure: which PE of the job has left, and how; 0: none. */
GSHMEM_DEVICE uint64_t gshmem_failure_left(uint32_t status, uint32_t pe, uint32_t way)
{
    return status | way << 8 | (uint64_t)pe << 32;
}

GSHMEM_DEVICE uint32_t gshmem_failure_status(uint64_t failure)
{
    return failure & 255;
}

GSHMEM_DEVICE uint32_t gshmem_failure_way(uint64_t failure)
{
    return failure >> 8 & 255;
}

GSHMEM_DEVICE uint32_t gshmem_failure_pe(uint64_t failure)
{
    return (uint32_t)(failure >> 32);
}

enum gshmem_wait_call {
    GSHMEM_WAIT_UNTIL = 1,
    GSHMEM_WAIT_SIGNAL,
    GSHMEM_WAIT_ALL,
    GSHMEM_WAIT_ANY,
    GSHMEM_WAIT_SOME,
    GSHMEM_WAIT_TEST,
    GSHMEM_WAIT_TEST_ALL,
    GSHMEM_WAIT_TEST_ANY,
    GSHMEM_WAIT_TEST_SOME,
    GSHMEM_WAIT_FETCH, /* signal_fetch */
};

enum gshmem_refusal {
    GSHMEM_REFUSED_PE,   /* there is no PE with the number in `size` */
    GSHMEM_REFUSED_CTX,  /* the context is not valid */
    GSHMEM_REFUSED_NULL, /* the local object is NULL: `size` bytes, or PEs */
    GSHMEM_REFUSED_PAIRS /* an array of `size` queue pairs, which is NULL or has less than 0 */
};

enum gshmem_wait_lack { GSHMEM_LACKS_NOTHING, GSHMEM_LACKS_VALUES, GSHMEM_LACKS_INDICES };

struct gshmem_command {
    uint32_t kind;     /* 5 bits */
    uint32_t type;     /* 5 bits */
    uint32_t amo;      /* 4 bits */
    uint32_t pe;       /* 24 bits: the number in the job; a REFUSE has it in `size` */
    uint32_t responds; /* 1: a response goes to `response` with `tag` */
    uint32_t response; /* 10 bits */
    uint32_t tag;      /* 8 bits */
    uint32_t more;     /* 1: the next slot belongs to it */
    uint32_t raises;   /* 1: the caller gets no status: a failure goes to the error policy */
    uint64_t address;
    uint64_t local; /* or value */
    uint64_t size;  /* or compare, or high */
};

#define GSHMEM_COMMAND_PE_MAX ((1u << 24) - 1)

/* The values' top bits do not fit into their words; they go to word 0. */
GSHMEM_DEVICE struct gshmem_slot gshmem_command_encode(const struct gshmem_command *c)
{
    struct gshmem_slot slot;

    slot.word[0] = (uint64_t)c->kind | (uint64_t)c->type << 5 | (uint64_t)c->amo << 10 |
                   (uint64_t)c->pe << 14 | (uint64_t)c->responds << 38 |
                   (uint64_t)c->response << 39 | (uint64_t)c->tag << 49 | (uint64_t)c->more << 57 |
                   (uint64_t)c->raises << 58 | c->local >> 63 << 59 | c->size >> 63 << 60;
    slot.word[1] = c->address;
    slot.word[2] = c->local;
    slot.word[3] = c->size;
    return slot;
}

/* Takes a slot without its phase bits, as gshmem_channel_read returns it. */
static inline struct gshmem_command gshmem_command_decode(struct gshmem_slot slot)
{
    uint64_t w = slot.word[0];
    struct gshmem_command c;

    c.kind = w & 31;
    c.type = w >> 5 & 31;
    c.amo = w >> 10 & 15;
    c.pe = w >> 14 & GSHMEM_COMMAND_PE_MAX;
    c.responds = w >> 38 & 1;
    c.response = w >> 39 & (GSHMEM_RESPONSES - 1);
    c.tag = w >> 49 & 255;
    c.more = w >> 57 & 1;
    c.raises = w >> 58 & 1;
    c.address = slot.word[1];
    c.local = slot.word[2] | (w << 4 & GSHMEM_SLOT_PHASE);
    c.size = slot.word[3] | (w << 3 & GSHMEM_SLOT_PHASE);
    return c;
}

/* Whether the command or its second part points at local memory: then the proxy must see what was
 * written there before, and later accesses must not overtake what it stores there. */
GSHMEM_DEVICE int gshmem_command_publishes(struct gshmem_slot slot)
{
    uint64_t kind = slot.word[0] & 31, more = slot.word[0] >> 57 & 1;

    return kind == GSHMEM_COMMAND_PUT || kind == GSHMEM_COMMAND_GET ||
           kind == GSHMEM_COMMAND_PUT_SIGNAL || more;
}

/* Whether a failure goes to the error policy, since the caller gets no status. */
GSHMEM_DEVICE int gshmem_command_raises(struct gshmem_slot slot)
{
    return (slot.word[0] >> 58 & 1) || (slot.word[0] & 31) == GSHMEM_COMMAND_RAISE;
}

/* ---- A put and its signal in one slot --------------------------------------------------------
 *
 *     word 0   as in every command; amo is the signal's operation
 *     word 1   48 bits: the symmetric address of the data; 14 bits: the size
 *     word 2   48 bits: the local address; 15 bits: the signal value's low bits
 *     word 3   45 bits: the signal's address / 8; 17 bits: the signal value's high bits
 */
#define GSHMEM_PACKED_SIZE_BITS    14
#define GSHMEM_PACKED_ADDRESS_BITS 48
#define GSHMEM_PACKED_VALUE_BITS   32
#define GSHMEM_PACKED_LOW_BITS     15 /* of the value, in word 2 */

/* Whether a command and its second part are a put and its signal that fit into one slot. */
GSHMEM_DEVICE int gshmem_put_signal_fits(const struct gshmem_command *put,
                                         const struct gshmem_command *signal)
{
    return put->kind == GSHMEM_COMMAND_PUT && signal->kind == GSHMEM_COMMAND_SIGNAL &&
           !(put->size >> GSHMEM_PACKED_SIZE_BITS | signal->local >> GSHMEM_PACKED_VALUE_BITS |
             (put->address | put->local | signal->address) >> GSHMEM_PACKED_ADDRESS_BITS |
             (signal->address & 7));
}

/* The put says the PE, and whether and where a response goes. */
GSHMEM_DEVICE struct gshmem_slot gshmem_put_signal_encode(const struct gshmem_command *put,
                                                          const struct gshmem_command *signal)
{
    const uint64_t low = (UINT64_C(1) << GSHMEM_PACKED_LOW_BITS) - 1;
    struct gshmem_command c = *put;

    c.kind = GSHMEM_COMMAND_PUT_SIGNAL;
    c.amo = signal->amo;
    c.more = 0;
    c.address = put->address | put->size << GSHMEM_PACKED_ADDRESS_BITS;
    c.local = put->local | (signal->local & low) << GSHMEM_PACKED_ADDRESS_BITS;
    c.size = signal->address >> 3 | signal->local >> GSHMEM_PACKED_LOW_BITS
                                                         << (GSHMEM_PACKED_ADDRESS_BITS - 3);
    return gshmem_command_encode(&c);
}

/* The two parts of c, which is a GSHMEM_COMMAND_PUT_SIGNAL. */
static inline void gshmem_put_signal_decode(const struct gshmem_command *c,
                                            struct gshmem_command *put,
                                            struct gshmem_command *signal)
{
    const uint64_t address = (UINT64_C(1) << GSHMEM_PACKED_ADDRESS_BITS) - 1;
    const uint64_t low = (UINT64_C(1) << GSHMEM_PACKED_LOW_BITS) - 1;
    const uint64_t high = (UINT64_C(1) << (GSHMEM_PACKED_VALUE_BITS - GSHMEM_PACKED_LOW_BITS)) - 1;

    *put = *signal = *c;
    put->kind = GSHMEM_COMMAND_PUT;
    put->amo = 0;
    put->address = c->address & address;
    put->local = c->local & address;
    put->size =
        c->address >> GSHMEM_PACKED_ADDRESS_BITS & ((UINT64_C(1) << GSHMEM_PACKED_SIZE_BITS) - 1);
    signal->kind = GSHMEM_COMMAND_SIGNAL;
    signal->responds = 0;
    signal->address = c->size << 3 & address;
    signal->local = (c->local >> GSHMEM_PACKED_ADDRESS_BITS & low) |
                    (c->size >> (GSHMEM_PACKED_ADDRESS_BITS - 3) & high) << GSHMEM_PACKED_LOW_BITS;
    signal->size = 0;
}

/* The slots of a command and of its second part, if it has one. Returns how many they are. */
GSHMEM_DEVICE uint32_t gshmem_command_slots(const struct gshmem_command *first,
                                            const struct gshmem_command *second,
                                            struct gshmem_slot slot[2])
{
    if (second && gshmem_put_signal_fits(first, second)) {
        slot[0] = gshmem_put_signal_encode(first, second);
        return 1;
    }
    slot[0] = gshmem_command_encode(first);
    if (second)
        slot[1] = gshmem_command_encode(second);
    return second ? 2 : 1;
}

/* Enters in a command where its response goes. */
GSHMEM_DEVICE void gshmem_command_respond(struct gshmem_slot *slot, uint32_t response, uint32_t tag)
{
    slot->word[0] |= UINT64_C(1) << 38 | (uint64_t)response << 39 | (uint64_t)tag << 49;
}

#endif
