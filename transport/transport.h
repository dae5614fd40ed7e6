/* How do bytes reach another host? What the runtime asks of a network.
 *
 * A transport moves data between this PE's memory and the symmetric segments of PEs that are not
 * mapped. It is driven: nothing happens but inside post and progress, which one thread at a time
 * calls (the runtime holds a lock), and it never blocks. Requests to one PE are carried out there in
 * the order in which they were posted, but for those that say they need none (TRANSPORT_LOOSE), and
 * which a transport may order all the same; requests to different PEs are not ordered.
 *
 * It knows PEs, segments and offsets; nothing of contexts, channels, teams or heaps. A transport is
 * one `const struct transport_ops`. Slots marked "optional" may be NULL: transport/optional.h says what
 * that means, and is how everybody calls them. README.md says how to write a transport, and
 * tests/transport/conform tries one. */
#ifndef GSHMEM_TRANSPORT_H
#define GSHMEM_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "gshmem/atomic.h"
#include "gshmem/status.h"

struct device; /* device/device.h */

#define TRANSPORT_VERSION     7
#define TRANSPORT_KEY_BYTES   32
#define TRANSPORT_ADDRESS_MAX 160 /* bytes that a PE publishes for its peers to find it */
#define TRANSPORT_SEGMENT_MAX 16
#define TRANSPORT_NOTE_MAX    1024 /* bytes of a note, by which one transport uses another */

/* A piece of this PE's symmetric memory. The same number names the same segment on every PE; base
 * addresses differ, and so may the sizes of program data. */
struct transport_segment {
    char *base;
    size_t bytes;
    int of_device;         /* memory of the device's own, which the CPU cannot touch */
    const uint64_t *there; /* so many of the bytes are there now; NULL: all */
    int (*lent)(void *context, uint64_t offset, uint64_t bytes); /* and these, behind them; NULL: none */
    void *context;
    int by_nic; /* atomics and signals in it are made by its owner's NIC, for all PEs, and never
                   otherwise */
};

enum transport_kind {
    TRANSPORT_PUT,    /* local -> remote, then the signal if there is one */
    TRANSPORT_GET,    /* remote -> local */
    TRANSPORT_ATOMIC, /* applied by the owner; the old value to *old if that is not NULL */
};

enum transport_flags {
    /* More requests may follow at once: while answers are due, sending may wait for them. */
    TRANSPORT_MORE = 1,
    /* `local` is memory of the CPU's that stays as it is until the request is done. */
    TRANSPORT_KEPT = 2,
    /* It needs no order with those before it, or behind it, that are loose too and of the same epoch. */
    TRANSPORT_LOOSE = 4,
    /* Nobody waits for it to be done: its answer may come with another's, or some time later. */
    TRANSPORT_UNASKED = 8,
    /* A put with a signal, from and to memory of the CPU's, that needs no order with any other request
     * to that PE: it may overtake those before it, and be overtaken. */
    TRANSPORT_UNORDERED = 16,
};

/* A put of at most this many bytes has been copied when post returns: its source may be reused; unless
 * the request says that it is kept. */
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

    /* A put's signal, an update of a 64-bit word that is seen only after the data; signal_op 0: none. */
    uint8_t signal_op;
    uint8_t signal_segment;
    /* An atomic, as in gshmem_path_atomic: an enum gshmem_amo and an enum gshmem_type. */
    uint8_t amo;
    uint8_t type;
    uint32_t epoch; /* of a loose one: how many fences its issuer has passed */
    union {
        uint64_t signal_offset;
        uint64_t operand;
    };
    union {
        uint64_t signal_value;
        uint64_t compare;
    };
    uint64_t *old;

    /* For who needs the source of a put again before the put is done, else NULL: called, from post or
     * progress, when it has been read. Not called where that is not known before done. */
    void (*sent)(void *tag);
    /* Called once, from post, progress, arm, lose or close: with GSHMEM_OK when the data is visible
     * at its target and to all PEs, or with the failure that ended it. The request itself need not
     * live until then. */
    void (*done)(void *tag, gshmem_status_t status);
    void *tag;
};

/* How NICs get at memory of a device's own: those that know neither of the others have it copied. */
enum transport_way { TRANSPORT_BY_STAGING, TRANSPORT_BY_DMA_BUF, TRANSPORT_BY_PEERMEM };

/* What the runtime lends to a transport, for as long as it is open. */
struct transport_config {
    size_t size; /* of this struct */
    gshmem_status_t (*fail)(gshmem_status_t status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    void (*info)(const char *format, ...) __attribute__((format(printf, 1, 2)));

    int pe;
    int n_pes;
    int one_machine; /* all PEs are on this machine, though on pretended hosts: loopback will do */
    int segments;
    struct transport_segment segment[TRANSPORT_SEGMENT_MAX]; /* what peers may reach, and no more */

    const char *nearest; /* networks that are nearest to this PE's GPU, as in GSHMEM_TCP_IF; "": any */

    void *context; /* for the calls below */
    /* The address that pe published. May be called from post and progress, and does not block:
     * TRANSPORT_FULL says that the starter is being asked, as below. Once `key` has answered for
     * that PE, this does, too. */
    gshmem_status_t (*find)(void *context, int pe, void *address, size_t capacity, size_t *bytes);
    /* The key that this PE and that one have, and nobody else. The first call for a PE takes 0.1 ms. May be
     * called from post and progress, and does not block: TRANSPORT_FULL says that the starter is being asked, and
     * that the call is to be made again in a later round. */
    gshmem_status_t (*key)(void *context, int pe, unsigned char key[TRANSPORT_KEY_BYTES]);
    /* Carries out an atomic on this PE's memory, for a peer; returns the old value. The address has
     * been checked against the segments, and for alignment. */
    uint64_t (*apply)(void *context, enum gshmem_amo amo, int type, void *target, uint64_t operand,
                      uint64_t compare);
    /* A peer cannot be reached any more. All requests to it have been ended, or will be before the
     * next progress returns; later ones end at once. GSHMEM_ERR_UNREACHABLE: it has never been spoken to, or has
     * said that it leaves, and may have left in good order. May be called again for the same PE. */
    void (*lost)(void *context, int pe, gshmem_status_t status, const char *why);
    /* That PE has given this one up, and takes nothing from it any more: requests to it end with
     * GSHMEM_ERR_PEER_DEAD. It is not lost to others. */
    void (*refused)(void *context, int pe);
    /* `from`, another PE, says that it has lost that PE, or has been told so. That PE may be this
     * one: then `from` has given this one up. */
    void (*told)(void *context, int from, int pe);
    /* Where that segment of a PE of this host begins, mapped here; NULL: it is not. */
    char *(*mapped)(void *context, int pe, int segment);
    /* Whose own memory, which the CPU cannot touch, some of it is; NULL: all is the CPU's. */
    struct device *device;
    /* Whether these bytes of this process are such. */
    int (*on_device)(void *context, const void *at, uint64_t bytes);
    uint64_t staging; /* bytes of pinned memory to copy them through, where a NIC cannot read them */

    /* Settings (runtime/base/settings.h), for transports that are modules. */
    int64_t (*number)(int setting);
    const char *(*text)(int setting);
    /* One that reaches everybody: carries this one's notes, and the requests to PEs that this one cannot
     * reach. NULL: there is none below. */
    struct transport *below;
    /* A PE has sent a note to the transport above this one. */
    void (*heard)(void *context, int from, const void *note, size_t bytes);
    enum transport_way way; /* the best there is for the device's memory */
    /* How far an RDMA device is from where this PE is, its GPU or its CPUs, 0 the nearest; and that
     * in words,
     * "" where it cannot be told. NULL: all are alike. */
    int (*distance)(void *context, const char *device, const char **text);
    /* What is equally near is shared out by a PE's number on its host, from 0; it may have been
     * dealt with the others to that many parts of the machine in turn (0: to one), or they to one
     * after the other. */
    int turn, parts;
    int flushes; /* what NICs write to the device's memory its kernels see after the device's flush only */
};

struct transport {
    const struct transport_ops *ops;
};

/* Of a report, for people: a name, or "", and what there is to say of it. */
typedef void transport_line(void *to, const char *name, const char *text);

struct transport_ops {
    size_t size;      /* of this struct */
    uint32_t version; /* TRANSPORT_VERSION */
    const char *name;
    const char *settings; /* settings_layout, as it was compiled; NULL: it asks for none by config->number */

    /* Optional. Whether it can be used on this machine, and a short reason for people either way.
     * Negative: a setting asks for what is not there. */
    int (*usable)(const struct transport_config *config, char *why, size_t why_size);
    /* Prepares to be reached; connects to nobody. *out is set on success only. */
    gshmem_status_t (*open)(const struct transport_config *config, struct transport **out);
    /* Optional. What this PE must publish, at most TRANSPORT_ADDRESS_MAX bytes. */
    gshmem_status_t (*address)(struct transport *t, void *address, size_t capacity, size_t *bytes);
    /* The config again, with what was not known at open: segments, and the keys of peers. Before it, nobody is
     * served; after it, anybody may be. */
    void (*begin)(struct transport *t, const struct transport_config *config);
    /* Begins a request. GSHMEM_OK: it was taken, and done will be called. Any other status: it was
     * not, done will not be called; TRANSPORT_FULL asks to progress and post it again. A request that
     * leaves the peer's segments, with its data or its signal, is refused here, or ends with a
     * failure; it changes no memory, and the peer may end its connection for it, which makes it
     * `lost` to the two of them. Only where a signal lies within its segment, but in bytes that are
     * not there now, may its data have been written. */
    gshmem_status_t (*post)(struct transport *t, const struct transport_request *request);
    /* Sends, receives, serves peers and completes, as far as that goes without waiting; *events is
     * how much happened, and whether it is to be called again soon (0: only when wait_fd says so). A
     * failure is the transport's own; a peer's goes to `lost`. */
    gshmem_status_t (*progress)(struct transport *t, int *events);
    /* Optional. Tells all PEs that this one has talked to, and those it is yet to talk to, that a PE
     * is lost, perhaps this one itself; no more than once for each. Nothing is posted for it, and
     * nothing answered. */
    void (*tell)(struct transport *t, int lost);
    /* Optional. A descriptor that becomes readable when progress has something to do; for a thread
     * that wants to sleep. Valid until close. -1: there is none, or progress never has. */
    int (*wait_fd)(struct transport *t);
    /* Optional. Called before a thread sleeps on wait_fd: whether progress has something to do already. */
    int (*arm)(struct transport *t);
    /* Optional. A note to the transport above this one at that PE: notes come in order, and are not
     * lost while the PE lives. TRANSPORT_FULL: later. */
    gshmem_status_t (*say)(struct transport *t, int pe, const void *note, size_t bytes);
    /* Optional. A note to this transport has come: see `heard`. */
    void (*hear)(struct transport *t, int from, const void *note, size_t bytes);
    /* Optional. That PE is lost to the job, as the runtime has learned: requests to it end, with a
     * failure, before the next progress returns, and later ones at once, also if none was made
     * before. Nothing is taken from it any more, and it is told so where it can be (`refused`). May
     * be called from within config->lost, as `tell` may. */
    void (*lose)(struct transport *t, int pe, gshmem_status_t status);
    /* Optional. Whether some of these bytes of a segment are held in memory for a NIC, so that their
     * pages must not be given back. */
    int (*pins)(struct transport *t, int segment, uint64_t offset, uint64_t bytes);
    /* Optional. Whether requests or replies of this PE are still on their way (for finalize). */
    int (*busy)(struct transport *t);
    /* Ends it; requests that are not done end with GSHMEM_ERR_ABORTED. */
    void (*close)(struct transport *t);
    /* Optional. What there is of it on this machine, and of what cannot be used why not, and what to
     * do. Of the config it is given settings alone, and by now nothing need be open. */
    void (*report)(const struct transport_config *config, transport_line *line, void *to);
    /* Optional. These bytes of a segment of a device's are to be other memory from here on, here and
     * on all PEs: what is held of them, or known of theirs, is forgotten. Nobody's requests touch
     * them. */
    void (*forget)(struct transport *t, int segment, uint64_t offset, uint64_t bytes);
    /* Optional. Whether this PE's NICs make atomics, so that there may be segments with `by_nic`, and
     * a short reason for people either way. 0: no; PEs with the same number can make them for each
     * other. */
    int (*updates)(struct transport *t, char *why, size_t why_size);
    /* Optional. Called in a child of fork: closes what peers take for the life of the parent, and
     * touches nothing else, as another thread of the parent's may have been in the middle of
     * anything. */
    void (*leave_parent)(struct transport *t);
};

extern const struct transport_ops transport_local, transport_tcp;

/* The answer of post when its queue to that PE is full; not a failure. */
#define TRANSPORT_FULL ((gshmem_status_t)-1)

#endif
