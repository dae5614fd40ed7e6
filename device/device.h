/* Where is memory, where do kernels run? What the runtime asks of a device.
 *
 * A device is one `const struct device_ops`, every slot filled. The host device is built in; that
 * of GPUs is a module. A device whose `own_heap` is set has the symmetric heap in memory of its
 * own, which grows in pieces that other processes of the node can map; without it the heap lies in
 * the memory that the PEs of a node share anyway (at the end of this file). */
#ifndef GSHMEM_DEVICE_H
#define GSHMEM_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/card.h"
#include "device/request.h"
#include "gshmem/status.h"

#define DEVICE_VERSION 8

struct gshmem_device_module;

/* What the runtime lends to a device, and asks it for. */
struct device_config {
    size_t size; /* of this struct */
    gshmem_status_t (*fail)(gshmem_status_t status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    void (*info)(const char *format, ...) __attribute__((format(printf, 1, 2)));
    int index;          /* this PE's place among those of its node */
    const char *wanted; /* GSHMEM_CUDA_DEVICE: which one of them; "": the device chooses */
    int share;          /* GSHMEM_CUDA_SHARE: how pieces of the heap get to other processes; 0: the
                           device chooses */
    /* For kernels of the device's own: gives them the state of the job, as those of programs have
     * it, from now on and until they are removed. */
    gshmem_status_t (*add_module)(struct gshmem_device_module *module);
    void (*remove_module)(struct gshmem_device_module *module);
    bool multicast;     /* GSHMEM_CUDA_MULTICAST: it may be used */
    /* A line for people about what goes on, and takes long; and after how many seconds it does. */
    void (*warn)(const char *format, ...) __attribute__((format(printf, 1, 2)));
    unsigned stall_seconds;
    bool
        /* there are PEs on other nodes, and those in the same NVLink domain may be mapped */
        domain;
};

/* Memory for the library and kernels, beside the heap. */
enum device_memory {
    DEVICE_MEMORY_SHARED, /* loads and stores of kernels and of the CPU */
    DEVICE_MEMORY_OWN,    /* of kernels alone; the CPU copies to and from it */
};

/* A piece by which a heap has grown, for those who are to map it: bytes, and a descriptor with them
 * where fd is not -1. */
struct device_piece {
    uint64_t offset;
    uint64_t bytes;
    unsigned char handle[64];
    int fd;
};

/* Where a heap is in this process: the device's own record, and addresses for others. */
struct device_heap_map {
    void *own;      /* the device's */
    uintptr_t base; /* for copies of the device's; final once it has grown for the first time */
    bool loads;     /* and for kernels of this process */
};

/* An update of one object in memory of the device's, which is aligned to its size. */
struct device_update {
    int op;   /* enum gshmem_amo */
    int type; /* enum gshmem_type, of 4 or 8 bytes: atomic_type_bytes */
    void *at; /* as copies find it */
    uint64_t operand, compare; /* bits, in the low bytes */
};

/* Copies that may be under way at one time; one more waits for the oldest. */
enum { DEVICE_COPIES_MOST = 64 };

/* Addresses that stand for the heaps of several PEs at once, each on a unit of its own: what is
 * stored there is stored in all of them, by a switch between the units. */
struct device_multicast {
    void *own;      /* the device's */
    uintptr_t base; /* stands for where heaps begin */
};

/* What a device offers on this machine, for people: each with what to do where it is missing. */
struct device_finding {
    const char *name;
    bool has;
    char text[240];
};

enum { DEVICE_FINDINGS_MOST = 9 };

/* Whether kernels that have seen what came behind some data that NICs have written to memory of the
 * device's see that data. */
enum device_nic_order {
    DEVICE_NIC_ORDERED, /* all kernels of the machine do */
    DEVICE_NIC_FLUSHED, /* when `flush` has been called in between */
    DEVICE_NIC_UNORDERED, /* it cannot be called: NICs are to write nothing there */
};

struct device_report {
    char pci[16]; /* where the unit is: 0000:65:00.0; "" */
    bool dma_buf; /* export_range works */
    enum device_nic_order nic_order;
    int n;
    struct device_finding finding[DEVICE_FINDINGS_MOST];
};

struct device {
    const struct device_ops *ops;
};

struct device_ops {
    size_t size;      /* of this struct */
    uint32_t version; /* DEVICE_VERSION */
    const char *name; /* as in GSHMEM_DEVICE */
    bool own_heap;

    /* Whether it can be used in this process, and why, for people. */
    bool (*usable)(const struct device_config *config, char *why, size_t why_size);
    gshmem_status_t (*open)(const struct device_config *config, struct device **out);
    void (*close)(struct device *d);
    /* In a word or two, for people: which one it is. */
    const char *(*text)(const struct device *d);
    /* Makes this thread's calls of the device's own API, such as a module's, go to this device. */
    gshmem_status_t (*bind)(struct device *d);
    /* The same until leave, whatever the thread had chosen, which it has again then. */
    gshmem_status_t (*enter)(struct device *d);
    void (*leave)(struct device *d);

    /* All zero; NULL: there is none left. */
    void *(*allocate)(struct device *d, enum device_memory kind, size_t bytes);
    void (*release)(struct device *d, enum device_memory kind, void *at);
    /* Between any of: this process's memory, the device's, and heaps that are mapped. Done on
     * return, in the order of the calls. */
    gshmem_status_t (*copy)(struct device *d, void *to, const void *from, size_t bytes);
    /* Whether these bytes are memory of the device's, mapped heaps included, which the CPU cannot
     * touch. */
    bool (*owns)(struct device *d, const void *at, size_t bytes);
    gshmem_status_t (*fill)(struct device *d, void *at, int byte, size_t bytes);

    /* Calls function(argument) when all work before it on the stream is done; what is put on the
     * stream later waits until it returns. It may block, as long as it likes, without holding up
     * other streams. On a stream that is being captured in a graph it is called each time that the
     * graph is launched, and not before. over(argument) comes when it is called no more.
     * stream: what the program's runtime calls a cudaStream_t. */
    gshmem_status_t (*stream_call)(struct device *d, void *stream, void (*function)(void *),
                                   void *argument, void (*over)(void *));
    bool (*stream_is_captured)(struct device *d, void *stream);

    /* What this PE's heap could be: sets heap_most (at most `most`, where that is not 0) and all
     * else. */
    gshmem_status_t (*describe)(struct device *d, uint64_t most, struct device_card *card);
    /* Room for a heap of up to `limit` bytes, and for memory of the program's in `window` bytes
     * behind them: this PE's (card NULL), or that of a PE of this node. An `own` of NULL says that
     * this one cannot be reached from here; the reason is logged. */
    gshmem_status_t (*heap_open)(struct device *d, const struct device_card *card, uint64_t limit,
                                 uint64_t window, struct device_heap_map *map);
    /* This PE's heap grows to at least `bytes`, up to the limit; *piece is for the others, who own
     * its descriptor from then on. */
    gshmem_status_t (*heap_grow)(struct device *d, struct device_heap_map *map, uint64_t bytes,
                                 struct device_piece *piece);
    /* Another PE's has grown by that piece. Its descriptor is used up, also on failure. */
    gshmem_status_t (*heap_follow)(struct device *d, struct device_heap_map *map,
                                   const struct device_piece *piece);
    /* Gives back all pieces that begin at `bytes` or beyond; how much is left. Any heap. */
    uint64_t (*heap_shrink)(struct device *d, struct device_heap_map *map, uint64_t bytes);
    void (*heap_close)(struct device *d, struct device_heap_map *map);

    /* Makes host memory of the program's such that copies and kernels reach it where it is.
     * *pinned: it was not so before, and unpin undoes it. */
    gshmem_status_t (*pin)(struct device *d, void *at, size_t bytes, bool *pinned);
    void (*unpin)(struct device *d, void *at);
    /* A descriptor (a dma-buf) by which a NIC's driver reaches this memory of the device's, and
     * where in it the memory begins. The caller closes it. */
    gshmem_status_t (*export_range)(struct device *d, const void *at, size_t bytes, int *fd,
                                    uint64_t *offset);
    /* An atomic with regard to those of kernels, also of other PEs' devices, done on return and
     * after all copies that have been started before. old: the bits the object had; NULL: not
     * wanted. */
    gshmem_status_t (*update)(struct device *d, const struct device_update *u, uint64_t *old);
    /* The same, begun: a kernel of the program's that fills a GPU holds it up for as long as it
     * likes, and who makes progress on the network must not wait for that. Copies that are
     * started later do not wait for it. *ticket 0: too many are under way, try again. */
    gshmem_status_t (*update_start)(struct device *d, const struct device_update *u,
                                    uint64_t *ticket);
    /* Whether that is over, without waiting for it; then *old and *status say how it went, and the
     * ticket is no more. */
    bool (*update_done)(struct device *d, uint64_t ticket, uint64_t *old, gshmem_status_t *status);
    /* Nobody will ask for it any more. */
    void (*update_forget)(struct device *d, uint64_t ticket);
    /* Copies as `copy` does, and returns at once. They are made in the order in which they are
     * started; *ticket is of use until as many as DEVICE_COPIES_MOST have been started after it. */
    gshmem_status_t (*copy_start)(struct device *d, void *to, const void *from, size_t bytes,
                                  uint64_t *ticket);
    /* Whether that copy is over, without waiting for it; then *status says how it went. */
    bool (*copy_done)(struct device *d, uint64_t ticket, gshmem_status_t *status);

    /* Of a device with its own heap, in place of stream_call. A copy, with addresses as `copy`
     * takes them, and a request, in the order of a stream of the program's; a failure later goes to
     * the error policy. A stream that is being captured in a graph takes them into it. */
    gshmem_status_t (*stream_copy)(struct device *d, void *stream, void *to, const void *from,
                                   size_t bytes);
    gshmem_status_t (*stream_request)(struct device *d, void *stream,
                                      const struct device_request *r);
    /* Whether kernels can use these bytes where they are. */
    bool (*kernels_see)(struct device *d, const void *at, size_t bytes);
    /* Where the kernels of a module, or library, that the program has the driver load find the
     * state of the job, of that many bytes. */
    gshmem_status_t (*find_state)(struct device *d, void *module, bool library, size_t bytes,
                                  void **state);
    /* Until all is done that is on streams. */
    gshmem_status_t (*streams_wait)(struct device *d);
    /* A request of the CPU's, which asks with *request whether it is done, until it is; then
     * *status says how it went. */
    gshmem_status_t (*request_start)(struct device *d, const struct device_request *r,
                                     void **request);
    bool (*request_done)(struct device *d, void *request, gshmem_status_t *status);

    /* The bytes of the piece that begins at this offset of a heap; 0: none does. */
    uint64_t (*heap_piece)(struct device *d, const struct device_heap_map *map, uint64_t offset);

    /* Where card.multicast is set: room for addresses of heaps of up to `limit` bytes. They come to
     * be piece by piece, each in three steps that all PEs take, each step when all have taken the
     * one before. One makes what the n PEs share of the next piece; *piece is for the others, who
     * own its descriptor from then on. */
    gshmem_status_t (*multicast_open)(struct device *d, uint64_t limit, struct device_multicast *m);
    gshmem_status_t (*multicast_offer)(struct device *d, struct device_multicast *m, int n,
                                       struct device_piece *piece);
    /* All put their unit into it: the others with what they were given (its descriptor is used up,
     * also on failure), the one with NULL. */
    gshmem_status_t (*multicast_join)(struct device *d, struct device_multicast *m,
                                      const struct device_piece *piece);
    /* And their memory; when all have, the addresses can be used. */
    gshmem_status_t (*multicast_bind)(struct device *d, struct device_multicast *m,
                                      const struct device_heap_map *mine);
    /* Takes back what begins at `bytes` or beyond, also what is not bound. */
    void (*multicast_shrink)(struct device *d, struct device_multicast *m, uint64_t bytes);
    void (*multicast_close)(struct device *d, struct device_multicast *m);

    /* Of the unit that open would take. Nothing, where usable says no. */
    void (*report)(const struct device_config *config, struct device_report *r);

    /* Memory of the program's, which it has made with the device's own API, as part of this PE's
     * heap: the piece that begins at `at`, of at most `bytes` bytes, comes to be at this offset in
     * the window too. *piece is for the others, as those that a heap grows by; it says how large it
     * was. */
    gshmem_status_t (*window_take)(struct device *d, struct device_heap_map *map, const void *at,
                                   uint64_t bytes, uint64_t offset, struct device_piece *piece);
    /* Another PE's. Its descriptor is used up, also on failure. */
    gshmem_status_t (*window_follow)(struct device *d, struct device_heap_map *map,
                                     const struct device_piece *piece);
    /* Takes out all pieces that are in there. Any heap; what the program has of it stays. */
    void (*window_drop)(struct device *d, struct device_heap_map *map, uint64_t offset,
                        uint64_t bytes);
    /* As heap_open, of a PE of another node: an `own` of NULL, and nothing logged, where it is not
     * in the domain that this one is in. Pieces follow by their handles, without descriptors. */
    gshmem_status_t (*heap_open_remote)(struct device *d, const struct device_card *card,
                                        uint64_t limit, uint64_t window,
                                        struct device_heap_map *map);

    /* Whether calls that stream_call was given are still to be made: on streams, or in graphs that
     * were launched. With `kernels` also whether kernels of this process are to end, where their
     * memory is released without waiting for them. */
    bool (*streams_busy)(struct device *d, bool kernels);

    /* What NICs have written to memory of the device's is seen by all kernels from here on, also by
     * those that run. May be called by any thread, and does not wait for kernels. */
    gshmem_status_t (*flush)(struct device *d);
};

extern const struct device_ops device_host;

/* ---- The memory that the PEs of a node share, whatever the device ---------------------------- */

/* Memory of `bytes` bytes that other processes can map through *fd; pages are taken as they are
 * first touched, and its size is fixed. It is gone when nobody holds or maps it any more. */
gshmem_status_t device_arena_create(size_t bytes, int *fd);
/* Maps all of it for loads and stores; *at is where, and *at + aligned a multiple of the alignment.
 */
#define DEVICE_ARENA_ALIGNMENT ((size_t)1 << 30)
gshmem_status_t device_arena_map(int fd, size_t bytes, size_t aligned, void **at);
/* Maps a part of it at that address, and nowhere else: 0, or an errno. */
int device_arena_map_at(int fd, size_t offset, size_t bytes, void *at);
void device_arena_unmap(void *at, size_t bytes);
/* Gives pages back that were touched; they read as zero afterwards. */
gshmem_status_t device_arena_discard(int fd, size_t offset, size_t bytes);

#endif
