/* What the runtime asks of a network: how do bytes reach another node?
 *
 * A transport moves data between this PE's memory and the symmetric segments of PEs that are not
 * mapped. Nothing happens but inside post and progress, which one thread at a time calls (the
 * runtime holds a lock), and neither blocks. Requests to one PE are carried out there in the
 * order in which they were posted, but for those whose flags allow less; requests to different
 * PEs are not ordered.
 *
 * It knows PEs, segments and offsets; nothing of contexts, channels, teams or heaps. A transport
 * is one `const struct transport_ops`. Slots marked "optional" may be NULL: optional.h has the
 * default of each, and everybody calls them through it. README.md says how to write a transport,
 * and tests/transport/conform checks one. */
#ifndef GSHMEM_TRANSPORT_H
#define GSHMEM_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "gshmem/atomic.h"
#include "gshmem/status.h"

struct device; /* device/device.h */

#define TRANSPORT_VERSION     12
#define TRANSPORT_KEY_BYTES   32
#define TRANSPORT_ADDRESS_MAX 160 /* bytes that a PE publishes for its peers to find it */
#define TRANSPORT_SEGMENT_MAX 16
#define TRANSPORT_NOTE_MAX    1024 /* bytes of a control message of the transport above */

/* A piece of this PE's symmetric memory. The same number names the same segment on every PE; base
 * addresses differ, and so may the sizes of program data. */
struct transport_segment {
    char *base;
    size_t bytes;
    int of_device;         /* it is device memory, which the CPU cannot touch */
    const uint64_t *there; /* so many of the bytes exist now; NULL: all */
    /* Whether these bytes behind them exist, as memory that was imported. NULL: none does. */
    int (*imported)(void *context, uint64_t offset, uint64_t bytes);
    void *context;
    int by_nic; /* NIC atomics: the target's NIC makes all atomics and signals in it, for all PEs */
};

enum transport_kind {
    TRANSPORT_PUT,    /* local -> remote, then the signal if there is one */
    TRANSPORT_GET,    /* remote -> local */
    TRANSPORT_ATOMIC, /* made by the target; the old value goes to *old if that is not NULL */
    TRANSPORT_BATCH,  /* many elements of one object, each put, got or updated (batch.h); only for
                         transports whose ops have `batches`, and of those that they name */
};

enum transport_flags {
    /* More requests may follow at once: while responses are due, sending may wait for them. */
    TRANSPORT_MORE = 1,
    /* `local` is host memory that stays as it is until the request is done. */
    TRANSPORT_KEPT = 2,
    /* It needs no order with other requests of the same epoch that are loose, too. */
    TRANSPORT_LOOSE = 4,
    /* Nobody waits for its response, which may come with another one, or some time later. */
    TRANSPORT_UNASKED = 8,
    /* A put with a signal, from and to host memory, that needs no order with any other request to
     * that PE: it may overtake those before it, and be overtaken. */
    TRANSPORT_UNORDERED = 16,
    /* With TRANSPORT_MORE: many requests follow, and then a progress. Sending may wait for it. */
    TRANSPORT_HELD = 32,
};

/* Which batches post takes. */
enum transport_batches {
    TRANSPORT_NO_BATCHES,
    TRANSPORT_SMALL_BATCHES, /* of puts and updates, whose records take TRANSPORT_COPIED at most */
    TRANSPORT_ALL_BATCHES,
};

/* A put of at most this many bytes, or a batch whose records take no more, has been copied when
 * post returns, unless TRANSPORT_KEPT is set: its source may be reused. */
#define TRANSPORT_COPIED 4096

/* As small as it can be, since each is filled in, and copied, once. */
struct transport_request {
    uint8_t kind;     /* an enum transport_kind, */
    uint8_t flags;    /* and some of enum transport_flags */
    uint8_t segment;  /* the remote address: a segment and an offset into it, */
    int pe;           /* of that PE */
    uint64_t offset;
    void *local;      /* source of a put, destination of a get; any memory of this process */
    uint64_t bytes;

    /* A put's signal, an update of a 64-bit word that follows the data; signal_op 0: none. */
    uint8_t signal_op;
    union {
        uint8_t signal_segment;
        uint8_t each; /* what a batch does to each element: one of the other enum transport_kind */
    };
    /* An atomic, as in gshmem_path_atomic: an enum gshmem_amo and an enum gshmem_type. */
    uint8_t amo;
    uint8_t type;
    uint32_t epoch; /* of a loose request: how many fences its context has passed */
    union {
        uint64_t signal_offset;
        uint64_t operand;
        uint64_t elements; /* of a batch, */
    };
    union {
        uint64_t signal_value;
        uint64_t compare;
        uint64_t element_bytes; /* and of each of them */
    };
    uint64_t *old; /* of a batch of gets: where the elements go, one after the other */

    /* NULL, or called, from post or progress, when the source of a put has been read, if the
     * transport knows that before the put is done. */
    void (*sent)(void *tag);
    /* Called once, from post, progress, arm, lose or close: with GSHMEM_OK when the data is
     * visible at its target and to all PEs, or with the failure that ended the request. The
     * struct itself may be gone by then. */
    void (*done)(void *tag, gshmem_status_t status);
    void *tag;
};

/* How NICs reach device memory: those that can do neither of the others have it copied. */
enum transport_way { TRANSPORT_BY_STAGING, TRANSPORT_BY_DMA_BUF, TRANSPORT_BY_PEERMEM };

/* What the runtime counts of a transport, beside requests. */
enum transport_event {
    TRANSPORT_CONNECTED,   /* to a PE, for the first time; over several paths, once for each */
    TRANSPORT_RECONNECTED, /* a path that had failed is in use again */
    TRANSPORT_RETRIED,     /* an attempt to connect failed, and another one is made */
    TRANSPORT_PATH_FAILED,
};

/* What the runtime lends to a transport, for as long as it is open. */
struct transport_config {
    size_t size; /* of this struct */
    gshmem_status_t (*fail)(gshmem_status_t status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    /* The same for a failure after which the transport uses another way, so that no call fails. */
    gshmem_status_t (*fail_handled)(gshmem_status_t status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    void (*info)(const char *format, ...) __attribute__((format(printf, 1, 2)));

    int pe;
    int n_pes;
    int one_machine; /* all PEs are on this machine, on pretended nodes: the loopback reaches all */
    int segments;
    struct transport_segment segment[TRANSPORT_SEGMENT_MAX]; /* what peers may reach, and no more */

    const char *nearest; /* networks nearest to this PE's GPU, as in GSHMEM_TCP_IF; "": any */

    void *context; /* for the calls below */
    /* The address that a PE published. May be called from post and progress, and does not block:
     * TRANSPORT_FULL as below. Where `key` has returned a key for that PE, this returns the
     * address. */
    gshmem_status_t (*find)(void *context, int pe, void *address, size_t capacity, size_t *bytes);
    /* The key of this PE and that one, which nobody else has. The first call for a PE takes 0.1
     * ms. May be called from post and progress, and does not block: TRANSPORT_FULL says that the
     * bootstrap is being asked, and that the call is to be made again in a later round. */
    gshmem_status_t (*key)(void *context, int pe, unsigned char key[TRANSPORT_KEY_BYTES]);
    /* Carries out an atomic on this PE's memory, for a peer; returns the old value. The address has
     * been checked against the segments, and for alignment. */
    uint64_t (*apply)(void *context, enum gshmem_amo amo, int type, void *target, uint64_t operand,
                      uint64_t compare);
    /* A peer has failed. All requests to it have been ended, or will be before the next progress
     * returns; later ones end at once. GSHMEM_ERR_UNREACHABLE: there was never contact with it,
     * or it has announced that it leaves, and may have left in good order. May be called again
     * for a PE. */
    void (*lost)(void *context, int pe, gshmem_status_t status, const char *why);
    /* That PE has given this one up, and takes nothing from it any more: requests to it end with
     * GSHMEM_ERR_PEER_DEAD. It has not failed for other PEs. */
    void (*refused)(void *context, int pe);
    /* A failure notification: PE `from` has found that `pe` has failed, or has been notified of
     * it. If `pe` is this PE, `from` has given it up. */
    void (*notified)(void *context, int from, int pe);
    /* Where that segment of a PE of this node is mapped here; NULL: it is not. */
    char *(*mapped)(void *context, int pe, int segment);
    /* Whether the thread that makes progress waits until a peer changes this PE's memory. NULL: no
     * thread does. */
    int (*waits_for_update)(void *context);
    /* The device to which device memory belongs; NULL: all memory is host memory. */
    struct device *device;
    /* Whether these bytes of this process are device memory. */
    int (*on_device)(void *context, const void *at, uint64_t bytes);
    uint64_t staging; /* bytes of pinned memory, where a NIC cannot read device memory */

    /* Settings, by their names: number(SETTING_NAME(IB_SL)) of runtime/base/settings.h. */
    int64_t (*number)(const char *setting);
    const char *(*text)(const char *setting);
    /* The transport below, which reaches every PE: it carries this one's control messages, and the
     * requests that this one cannot. NULL: there is none. */
    struct transport *below;
    /* A control message for the transport above this one has arrived. */
    void (*received)(void *context, int from, const void *note, size_t bytes);
    enum transport_way way; /* the best one for device memory */
    /* How far an RDMA device is from this PE's GPU, or its CPUs, 0 the nearest; and that in
     * words, "" where it is not known. NULL: all are alike. */
    int (*distance)(void *context, const char *device, const char **text);
    /* RDMA devices that are equally near are shared out by this PE's local rank, from 0. `parts`
     * is 0 if the PEs of the node were placed on the parts of the machine one after the other,
     * else the number of parts on which they were placed in turn. */
    int turn, parts;
    int flushes; /* kernels see what NICs write to device memory only after the device's flush */
    /* An event has happened that is counted. NULL: nobody counts. */
    void (*count)(void *context, enum transport_event what);
};

/* What a request does: put, get or update. */
static inline int transport_effect(const struct transport_request *r)
{
    return r->kind == TRANSPORT_BATCH ? r->each : r->kind;
}

/* The bytes that it moves; 0: they are those of an update's objects. */
static inline uint64_t transport_moves(const struct transport_request *r)
{
    if (r->kind != TRANSPORT_BATCH)
        return r->bytes;
    return r->each == TRANSPORT_ATOMIC ? 0 : r->elements * r->element_bytes;
}

static inline void transport_count(const struct transport_config *config,
                                   enum transport_event what)
{
    if (config->count)
        config->count(config->context, what);
}

struct transport {
    const struct transport_ops *ops;
};

/* A line of a report, for people: a name, or "", and what holds of it. */
typedef void transport_line(void *to, const char *name, const char *text);

struct transport_ops {
    size_t size;      /* of this struct */
    uint32_t version; /* TRANSPORT_VERSION */
    const char *name;
    /* settings_layout, as it was compiled: its rows have to be among the library's. NULL: it
     * asks for none by config->number. */
    const char *settings;

    /* Optional. Whether it can be used on this machine, and a short reason for people either way.
     * Negative: a setting asks for something that does not exist. */
    int (*usable)(const struct transport_config *config, char *why, size_t why_size);
    /* Prepares to be reached; connects to nobody. *out is set on success only. */
    gshmem_status_t (*open)(const struct transport_config *config, struct transport **out);
    /* Optional. What this PE must publish, at most TRANSPORT_ADDRESS_MAX bytes. */
    gshmem_status_t (*address)(struct transport *t, void *address, size_t capacity, size_t *bytes);
    /* The config again, with what was not known at open: segments, and the keys of peers. Before
     * it, no peer is served; after it, any peer may be. */
    void (*begin)(struct transport *t, const struct transport_config *config);
    /* Begins a request. GSHMEM_OK: it was taken, and `done` will be called. Any other status: it
     * was not, and `done` will not be called; TRANSPORT_FULL: call progress and post it again. A
     * request whose data or signal leaves the target's segments is refused here, or ends with a
     * failure; it changes no memory, and the target may end its connection, which then has failed
     * for both PEs. Only if a signal lies in its segment, but in bytes that do not exist now, may
     * its data have been written. */
    gshmem_status_t (*post)(struct transport *t, const struct transport_request *request);
    /* Sends, receives, serves peers and completes requests, without waiting. *events is how much
     * happened, and more than 0 if progress is to be called again soon (0: when wait_fd is
     * readable). A failure is the transport's own; a peer's goes to `lost`. */
    gshmem_status_t (*progress)(struct transport *t, int *events);
    /* Optional. Sends a failure notification to all PEs that this one has contact with, now or
     * later: a PE, perhaps this one itself, has failed. Called once for each PE at most. It is no
     * request, and has no response. */
    void (*tell)(struct transport *t, int lost);
    /* Optional. A descriptor that becomes readable when progress has something to do; for a thread
     * that wants to sleep. Valid until close. -1: there is none, or progress never has. */
    int (*wait_fd)(struct transport *t);
    /* Optional. Called before a thread sleeps on wait_fd. Whether progress has something to do
     * now. */
    int (*arm)(struct transport *t);
    /* Optional. Sends a control message to the transport above this one at that PE. Messages
     * arrive in order, and are not lost while the PE lives. TRANSPORT_FULL: later. */
    gshmem_status_t (*say)(struct transport *t, int pe, const void *note, size_t bytes);
    /* Optional. A control message for this transport has arrived: see `received`. */
    void (*receive)(struct transport *t, int from, const void *note, size_t bytes);
    /* Optional. The runtime has learned that a PE has failed: requests to it end, with a failure,
     * before the next progress returns, and later ones at once, also if none was made before.
     * Nothing is taken from it any more, and it is told so if it lives (`refused`). May be called
     * from within config->lost, as `tell` may. */
    void (*lose)(struct transport *t, int pe, gshmem_status_t status);
    /* Optional. Whether some of these bytes of a segment are pinned for a NIC, so that their
     * pages must not be given back. */
    int (*pins)(struct transport *t, int segment, uint64_t offset, uint64_t bytes);
    /* Optional. Whether requests or responses of this PE are still in flight (for finalize). */
    int (*busy)(struct transport *t);
    /* Ends it; requests that are not done end with GSHMEM_ERR_ABORTED. */
    void (*close)(struct transport *t);
    /* Optional. Reports what of it this machine has, and of what cannot be used why not and what
     * to do. Of the config it is given settings alone, and nothing need be open. */
    void (*report)(const struct transport_config *config, transport_line *line, void *to);
    /* Optional. These bytes of a segment of device memory will be other memory, on all PEs:
     * registrations of them, and what is known of the peers', are dropped. No request touches
     * them meanwhile. */
    void (*forget)(struct transport *t, int segment, uint64_t offset, uint64_t bytes);
    /* Optional. Whether this PE's NICs make atomics, so that segments may have `by_nic`, and a
     * short reason for people either way. 0: no; PEs with the same number can make them for each
     * other. */
    int (*updates)(struct transport *t, char *why, size_t why_size);
    /* Optional. Called in a child of fork: closes the descriptors by which peers notice that the
     * parent ends, and touches nothing else, as a thread of the parent may have been anywhere. */
    void (*leave_parent)(struct transport *t);
    /* Optional. Which TRANSPORT_BATCH post takes, an enum transport_batches; of others each element
     * is a request. */
    int batches;
};

extern const struct transport_ops transport_local, transport_tcp;

/* What post returns when its queue to that PE is full; not a failure. */
#define TRANSPORT_FULL ((gshmem_status_t)-1)

#endif
