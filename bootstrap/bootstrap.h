/* Who are we? The interface between the core and whoever started the job.
 *
 * A bootstrap tells a process its PE and the job's size, says which PEs share a node, and carries
 * one small blob per PE to all others. Everything after that goes over the library's own means.
 * Each bootstrap is one `const struct bootstrap_ops`: built in (see choose.c's table), or
 * exported as `gshmem_bootstrap` by a shared object that GSHMEM_BOOTSTRAP names or that is built as
 * a module. A module needs this header and nothing else of GSHMEM. */
#ifndef GSHMEM_BOOTSTRAP_H
#define GSHMEM_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"

#define BOOTSTRAP_VERSION  1
#define BOOTSTRAP_BLOB_MAX 256 /* bytes of one PE's blob */

struct gshmem_uniqueid;

/* What the core lends to a bootstrap, and what the program gave to init. */
struct bootstrap_request {
    size_t size; /* of this struct */
    /* Logs a failure once and returns the status: `return request->fail(GSHMEM_ERR_…, "…");` */
    gshmem_status_t (*fail)(gshmem_status_t status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    void (*info)(const char *format, ...) __attribute__((format(printf, 1, 2)));
    int timeout_seconds; /* how long to wait for other PEs before giving up with a clear error */
    /* Set by gshmem_init_attr, else NULL and 0. */
    const void *mpi_comm;
    const struct gshmem_uniqueid *uid;
    int pe;
    int n_pes;
    /* The launcher has gone, and with it whoever would end this process: ends it, if it takes
     * part in a job. For any thread of the starter's own that notices; NULL: nobody wants to
     * know. */
    void (*lost)(const char *why);
};

/* One open connection to the starter. Filled in by open; the bootstrap's own state follows it. It
 * lives until the process ends or close is called, through any number of init/finalize rounds. */
struct bootstrap {
    const struct bootstrap_ops *ops;
    int pe;
    int n_pes;
    int n_hosts; /* nodes: modules know them by these two names */
    const int *host; /* [pe]: number of the node it runs on, 0 … n_hosts-1, by lowest PE */
    char job[64];    /* a name of the job for messages and logs */
    int one_machine; /* the nodes are pretended: all PEs share this machine */
};

enum bootstrap_found {
    BOOTSTRAP_ABSENT,  /* no trace of this starter */
    BOOTSTRAP_PRESENT, /* its environment is complete: open should work, and failing is an error */
    BOOTSTRAP_BROKEN,  /* traces are there, but it cannot be used: an error that `why` explains */
};

struct bootstrap_ops {
    size_t size;      /* of this struct */
    uint32_t version; /* BOOTSTRAP_VERSION */
    const char *name; /* as in GSHMEM_BOOTSTRAP */

    /* Looks at the environment and the request, cheaply, without contacting anyone. why: a short
     * reason for people ("PMIX_NAMESPACE and PMIX_RANK are set"), also when it is absent. */
    enum bootstrap_found (*detect)(const struct bootstrap_request *request, char *why,
                                   size_t why_size);
    /* Connects. May block until all PEs have called it, at most timeout_seconds. */
    gshmem_status_t (*open)(const struct bootstrap_request *request, struct bootstrap **out);
    /* Starts a new round and gives this PE's blob for it (at most BOOTSTRAP_BLOB_MAX bytes, else
     * GSHMEM_ERR_ARGUMENT, and no round is started). The blob has been copied when it returns. */
    gshmem_status_t (*publish)(struct bootstrap *b, const void *blob, size_t bytes);
    /* Returns when all PEs have published for this round and any blob of it can be fetched; with a
     * failure if one has not within timeout_seconds, or cannot any more, or the job is ended. */
    gshmem_status_t (*fence)(struct bootstrap *b);
    /* pe's blob of this round into blob (capacity bytes); *bytes is its length. May be called at
     * any time until the next publish, any number of times, while other PEs are in the next round
     * or have left. A PE that is not there, or too little room, is GSHMEM_ERR_ARGUMENT, and nothing
     * is changed. */
    gshmem_status_t (*fetch)(struct bootstrap *b, int pe, void *blob, size_t capacity,
                             size_t *bytes);
    /* Asks the starter to end the whole job with this exit status; the caller then exits. */
    void (*abort)(struct bootstrap *b, int status, const char *why);
    /* Says an orderly goodbye where the starter wants one, and frees b. Not collective. */
    void (*close)(struct bootstrap *b);
};

#endif
