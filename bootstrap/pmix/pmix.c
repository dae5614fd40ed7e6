/* Started by a launcher that speaks PMIx: Open MPI's mpirun, PRRTE's prterun, srun --mpi=pmix.
 *
 * A module, because it needs libpmix. PMIx's structs are filled by hand and its helpers for them
 * left alone: the structs have kept their layout for many releases of libpmix, the helpers have
 * not. */
#define _GNU_SOURCE
#include <pmix.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/nodes.h"
#include "gshmem/base.h"

enum { PES_LIMIT = 1 << 24 };

struct pmix {
    struct bootstrap base;
    struct bootstrap_request core; /* what the core lends: fail, info, the timeout */
    pmix_proc_t self;
    int *node;
};

/* The module. */
GSHMEM_API extern const struct bootstrap_ops gshmem_bootstrap;

/* Set by an event of libpmix, whose handlers get no pointer of ours. */
static atomic_bool launcher_lost;
static void (*_Atomic tell_lost)(const char *why); /* the core, or NULL */

/* Of the process, not of a connection: PMIx's caches outlive PMIx_Finalize. */
static unsigned last_round;

/* ---- Answers ---- */

/* What a request that PMIx answers from its own thread is answered. A request that is given up is
 * left for the answer to free, should it still come. */
struct answer {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    bool done, given_up;
    pmix_status_t status;
    bool usable; /* the value was of a type that we know, and is one of these: */
    uint64_t number;
    size_t bytes;
    unsigned char blob[1 + BOOTSTRAP_BLOB_MAX];
};

static struct answer *new_answer(void)
{
    struct answer *a = calloc(1, sizeof *a);
    pthread_condattr_t monotonic;

    if (!a)
        return NULL;
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&a->arrived, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return a;
}

static void free_answer(struct answer *a)
{
    pthread_cond_destroy(&a->arrived);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/* Called in PMIx's thread with what came. */
static void answered(pmix_status_t status, void *data)
{
    struct answer *a = data;

    pthread_mutex_lock(&a->lock);
    bool given_up = a->given_up;
    a->status = status;
    a->done = true;
    pthread_cond_signal(&a->arrived);
    pthread_mutex_unlock(&a->lock);
    if (given_up)
        free_answer(a);
}

/* Launchers do not agree on the types of numbers. */
static bool pmix_take_number(const pmix_value_t *v, uint64_t *number)
{
    switch (v->type) {
    case PMIX_UINT8:
        *number = v->data.uint8;
        return true;
    case PMIX_UINT16:
        *number = v->data.uint16;
        return true;
    case PMIX_UINT32:
        *number = v->data.uint32;
        return true;
    case PMIX_UINT64:
        *number = v->data.uint64;
        return true;
    case PMIX_UINT:
        *number = v->data.uint;
        return true;
    case PMIX_SIZE:
        *number = v->data.size;
        return true;
    case PMIX_PROC_RANK:
        *number = v->data.rank;
        return true;
    case PMIX_INT:
        *number = (uint64_t)v->data.integer;
        return v->data.integer >= 0;
    case PMIX_INT32:
        *number = (uint64_t)v->data.int32;
        return v->data.int32 >= 0;
    case PMIX_INT64:
        *number = (uint64_t)v->data.int64;
        return v->data.int64 >= 0;
    default:
        return false;
    }
}

static void got(pmix_status_t status, pmix_value_t *v, void *data)
{
    struct answer *a = data;

    if (status == PMIX_SUCCESS && v && v->type == PMIX_BYTE_OBJECT) {
        a->usable = v->data.bo.size >= 1 && v->data.bo.size <= sizeof a->blob;
        a->bytes = v->data.bo.size;
        if (a->usable)
            memcpy(a->blob, v->data.bo.bytes, a->bytes);
    } else if (status == PMIX_SUCCESS && v) {
        a->usable = pmix_take_number(v, &a->number);
    }
    answered(status, data);
}

/* Waits for the answer. On a timeout, a is no longer the caller's, and false is returned. */
static bool pmix_await(struct answer *a, int seconds)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&a->lock);
    while (!a->done && pthread_cond_timedwait(&a->arrived, &a->lock, &until) == 0)
        ;
    bool done = a->done;
    a->given_up = !done;
    pthread_mutex_unlock(&a->lock);
    return done;
}

/* The value of a key of pe (PMIX_RANK_WILDCARD: of the job), for the caller to free. */
static gshmem_status_t pmix_get(struct pmix *p, pmix_rank_t pe, const char *key,
                                struct answer **out)
{
    struct answer *a = new_answer();
    pmix_proc_t whom = p->self;

    if (!a)
        return p->core.fail(GSHMEM_ERR_MEMORY, "PMIx: out of memory");
    whom.rank = pe;
    pmix_status_t status = PMIx_Get_nb(&whom, key, NULL, 0, got, a);
    if (status == PMIX_SUCCESS && !pmix_await(a, p->core.timeout_seconds))
        return p->core.fail(GSHMEM_ERR_TIMEOUT,
                            "PMIx: the launcher did not answer for key %s within %d s "
                            "(GSHMEM_INIT_TIMEOUT)",
                            key, p->core.timeout_seconds);
    if (status == PMIX_SUCCESS)
        status = a->status;
    if (status == PMIX_SUCCESS && a->usable) {
        *out = a;
        return GSHMEM_OK;
    }
    free_answer(a);
    if (status == PMIX_SUCCESS)
        return p->core.fail(GSHMEM_ERR_BOOTSTRAP,
                            "PMIx: the launcher's value of key %s is not of the kind expected",
                            key);
    return p->core.fail(GSHMEM_ERR_BOOTSTRAP, "PMIx: no value of key %s from the launcher: %s", key,
                        PMIx_Error_string(status));
}

static gshmem_status_t get_number(struct pmix *p, const char *key, int most, int *number)
{
    struct answer *a;
    gshmem_status_t status = pmix_get(p, PMIX_RANK_WILDCARD, key, &a);

    if (status)
        return status;
    uint64_t value = a->number;
    free_answer(a);
    if (value < 1 || value > (uint64_t)most)
        return p->core.fail(GSHMEM_ERR_BOOTSTRAP,
                            "PMIx: the launcher says %s is %llu, expected 1..%d", key,
                            (unsigned long long)value, most);
    *number = (int)value;
    return GSHMEM_OK;
}

/* ---- Rounds ---- */

static gshmem_status_t check_launcher(struct pmix *p)
{
    if (!atomic_load_explicit(&launcher_lost, memory_order_relaxed))
        return GSHMEM_OK;
    return p->core.fail(GSHMEM_ERR_BOOTSTRAP, "PMIx: the connection to the launcher is lost");
}

/* A new key for each round: answers to an old one may come out of a cache. */
static void key_of_round(char key[32])
{
    snprintf(key, 32, "gshmem.%u", last_round);
}

static gshmem_status_t pmix_publish(struct bootstrap *b, const void *blob, size_t bytes)
{
    struct pmix *p = (struct pmix *)b;
    char key[32], data[1 + BOOTSTRAP_BLOB_MAX] = "+"; /* never empty: not all launchers take that */
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    gshmem_status_t status = check_launcher(p);

    if (status)
        return status;
    if (bytes > BOOTSTRAP_BLOB_MAX)
        return p->core.fail(GSHMEM_ERR_ARGUMENT, "PMIx: a blob of %zu bytes; at most %d", bytes,
                            BOOTSTRAP_BLOB_MAX);
    last_round++;
    key_of_round(key);
    memcpy(data + 1, blob, bytes);
    value.data.bo.bytes = data;
    value.data.bo.size = 1 + bytes;
    pmix_status_t put = PMIx_Put(PMIX_GLOBAL, key, &value);
    if (put == PMIX_SUCCESS)
        put = PMIx_Commit();
    if (put != PMIX_SUCCESS)
        return p->core.fail(GSHMEM_ERR_BOOTSTRAP, "PMIx: cannot publish key %s: %s", key,
                            PMIx_Error_string(put));
    return GSHMEM_OK;
}

static gshmem_status_t pmix_fence(struct bootstrap *b)
{
    struct pmix *p = (struct pmix *)b;
    struct answer *a = new_answer();
    pmix_info_t collect;

    if (!a)
        return p->core.fail(GSHMEM_ERR_MEMORY, "PMIx: out of memory");
    /* Without collection, some launchers make it a barrier of one node alone. */
    memset(&collect, 0, sizeof collect);
    strncpy(collect.key, PMIX_COLLECT_DATA, sizeof collect.key - 1);
    collect.value.type = PMIX_BOOL;
    collect.value.data.flag = true;

    pmix_status_t status = PMIx_Fence_nb(NULL, 0, &collect, 1, answered, a);
    if (status == PMIX_SUCCESS && !pmix_await(a, p->core.timeout_seconds))
        return p->core.fail(GSHMEM_ERR_TIMEOUT,
                            "PMIx: not all PEs came to round %u of the exchange within %d s "
                            "(GSHMEM_INIT_TIMEOUT)",
                            last_round, p->core.timeout_seconds);
    if (status == PMIX_SUCCESS)
        status = a->status;
    free_answer(a);
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
        return p->core.fail(GSHMEM_ERR_BOOTSTRAP, "PMIx: round %u of the exchange failed: %s",
                            last_round, PMIx_Error_string(status));
    return GSHMEM_OK;
}

static gshmem_status_t pmix_fetch(struct bootstrap *b, int pe, void *blob, size_t capacity,
                                  size_t *bytes)
{
    struct pmix *p = (struct pmix *)b;
    struct answer *a;
    char key[32];

    if (pe < 0 || pe >= b->n_pes)
        return p->core.fail(GSHMEM_ERR_ARGUMENT, "PMIx: the blob of PE %d; the job has PEs 0..%d",
                            pe, b->n_pes - 1);
    key_of_round(key);
    gshmem_status_t status = pmix_get(p, (pmix_rank_t)pe, key, &a);
    if (status)
        return status;
    size_t n = a->bytes ? a->bytes - 1 : 0;
    if (!a->bytes || n > capacity) {
        status =
            p->core.fail(a->bytes ? GSHMEM_ERR_ARGUMENT : GSHMEM_ERR_BOOTSTRAP,
                         "PMIx: the blob of PE %d has %zu bytes, room is for %zu", pe, n, capacity);
    } else {
        memcpy(blob, a->blob + 1, n);
        *bytes = n;
    }
    free_answer(a);
    return status;
}

/* ---- Hosts ---- */

/* Gives number to the PEs that run on the node; how many they are. */
static int number_node(struct pmix *p, const char *node, int number)
{
    pmix_proc_t *peers = NULL;
    size_t n = 0;
    int numbered = 0;

    if (PMIx_Resolve_peers(node, p->self.nspace, &peers, &n) != PMIX_SUCCESS)
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (peers[i].rank < (pmix_rank_t)p->base.n_pes) {
            p->node[peers[i].rank] = number;
            numbered++;
        }
    }
    free(peers);
    return numbered;
}

/* Asks which PEs run on each node of the job. False: the launcher does not tell of all of them. */
static bool hosts_by_launcher(struct pmix *p)
{
    char *nodes = NULL, *rest = NULL;
    int n_nodes = 0, numbered = 0;

    if (PMIx_Resolve_nodes(p->self.nspace, &nodes) != PMIX_SUCCESS || !nodes)
        return false;
    /* A node has at least one PE, so there are not more numbers than PEs. */
    for (char *node = strtok_r(nodes, ",", &rest); node && n_nodes < p->base.n_pes;
         node = strtok_r(NULL, ",", &rest))
        numbered += number_node(p, node, n_nodes++);
    free(nodes);
    return numbered == p->base.n_pes;
}

static gshmem_status_t pmix_find_nodes(struct pmix *p)
{
    int n = p->base.n_pes, local = 0;
    gshmem_status_t status = get_number(p, PMIX_LOCAL_SIZE, n, &local);

    if (status)
        return status;
    p->node = calloc((size_t)n, sizeof *p->node);
    p->base.host = p->node;
    if (!p->node)
        return p->core.fail(GSHMEM_ERR_MEMORY, "PMIx: out of memory for %d PEs", n);
    if (local == n)
        p->base.n_hosts = 1; /* by far the most frequent, and known without asking more */
    else if (hosts_by_launcher(p))
        p->base.n_hosts = nodes_by_number(p->node, n, n, p->node);
    else
        p->base.n_hosts = nodes_by_exchange(&p->base, p->node, &status);
    if (p->base.n_hosts == 0)
        return p->core.fail(GSHMEM_ERR_MEMORY, "PMIx: out of memory for %d PEs", n);
    return status;
}

/* ---- Opening and closing ---- */

static enum bootstrap_found pmix_detect(const struct bootstrap_request *request, char *why,
                                        size_t why_size)
{
    const char *nspace = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK");

    (void)request;
    if (nspace && rank) {
        snprintf(why, why_size, "PMIX_NAMESPACE and PMIX_RANK are set");
        return BOOTSTRAP_PRESENT;
    }
    if (!nspace && !rank) {
        snprintf(why, why_size, "PMIX_NAMESPACE and PMIX_RANK are not set");
        return BOOTSTRAP_ABSENT;
    }
    snprintf(why, why_size, "%s is set, but %s is not: the launcher's environment is incomplete",
             nspace ? "PMIX_NAMESPACE" : "PMIX_RANK", nspace ? "PMIX_RANK" : "PMIX_NAMESPACE");
    return BOOTSTRAP_BROKEN;
}

static void on_lost(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                    size_t ninfo, pmix_info_t results[], size_t nresults,
                    pmix_event_notification_cbfunc_fn_t done, void *data)
{
    (void)id, (void)status, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults;
    atomic_store_explicit(&launcher_lost, true, memory_order_relaxed);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
    void (*tell)(const char *why) = atomic_load(&tell_lost);
    if (tell)
        tell("PMIx has lost its connection to the launcher");
}

static void registered(pmix_status_t status, size_t id, void *data)
{
    (void)status, (void)id, (void)data;
}

/* The string "NAME=value" of the environment itself. */
static char *environment_entry(const char *name)
{
    extern char **environ;
    size_t n = strlen(name);

    for (char **e = environ; e && *e; e++) {
        if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
            return *e;
    }
    return NULL;
}

/* Launchers with a PMIx before 5 offer to keep the job's data in shared files (ds21, ds12) or at
 * the server (hash), which is faster to begin with (docs/decisions/0027). PMIx takes the choice
 * from the environment alone: putenv swaps a pointer there, and swaps it back. */
static pmix_status_t initialize(pmix_proc_t *self)
{
    static char hash[] = "PMIX_GDS_MODULE=hash";
    char *offered = environment_entry("PMIX_GDS_MODULE");
    bool swap = offered && strstr(offered, "=ds") && strstr(offered, ",hash");

    if (swap && putenv(hash) != 0)
        swap = false;
    /* The threads that it starts get the name of this one: runtime/node/threads.h takes them for
     * none of the program's. */
    char name[16];
    prctl(PR_GET_NAME, name, 0, 0, 0);
    prctl(PR_SET_NAME, "gshmem-pmix", 0, 0, 0);
    pmix_status_t status = PMIx_Init(self, NULL, 0);
    prctl(PR_SET_NAME, name, 0, 0, 0);
    if (swap)
        putenv(offered);
    return status;
}

/* The launcher ends what waits for a PE that finalizes, though it comes back: a fence of others
 * that have begun the next exchange already (seen of PMIx 4.2: "PARTIAL SUCCESS"). So a process
 * finalizes at its end alone. */
static void pmix_let_go(void)
{
    PMIx_Finalize(NULL, 0);
}

static void hold(void)
{
    static bool holds; /* of the process, as PMIx's count is */
    pmix_proc_t self;

    if (!holds && PMIx_Init(&self, NULL, 0) == PMIX_SUCCESS) /* once more: it counts */
        holds = atexit(pmix_let_go) == 0;
}

static gshmem_status_t pmix_join(struct pmix *p)
{
    pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
    pmix_status_t status = initialize(&p->self);

    if (status != PMIX_SUCCESS)
        return p->core.fail(
            GSHMEM_ERR_BOOTSTRAP,
            "PMIX_NAMESPACE=%s and PMIX_RANK=%s say that a PMIx launcher started this "
            "process, but it cannot be reached: PMIx_Init: %s",
            getenv("PMIX_NAMESPACE"), getenv("PMIX_RANK"), PMIx_Error_string(status));
    hold();
    atomic_store_explicit(&launcher_lost, false, memory_order_relaxed);
    atomic_store(&tell_lost,
                 p->core.size >= offsetof(struct bootstrap_request, lost) + sizeof p->core.lost
                     ? p->core.lost
                     : NULL);
    PMIx_Register_event_handler(&lost, 1, NULL, 0, on_lost, registered, NULL);
    gshmem_status_t answer = get_number(p, PMIX_JOB_SIZE, PES_LIMIT, &p->base.n_pes);
    if (!answer && p->self.rank >= (pmix_rank_t)p->base.n_pes)
        answer = p->core.fail(GSHMEM_ERR_BOOTSTRAP,
                              "PMIx: the launcher says this is PE %u of a job of %d", p->self.rank,
                              p->base.n_pes);
    if (!answer) {
        p->base.pe = (int)p->self.rank;
        answer = pmix_find_nodes(p);
    }
    if (answer)
        PMIx_Finalize(NULL, 0);
    return answer;
}

static gshmem_status_t pmix_open(const struct bootstrap_request *request, struct bootstrap **out)
{
    struct pmix *p = calloc(1, sizeof *p);

    if (!p)
        return request->fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    p->base.ops = &gshmem_bootstrap;
    p->core = *request;
    gshmem_status_t status = pmix_join(p);
    if (status) {
        free(p->node);
        free(p);
        return status;
    }
    snprintf(p->base.job, sizeof p->base.job, "%.*s", (int)sizeof p->base.job - 1, p->self.nspace);
    *out = &p->base;
    return GSHMEM_OK;
}

static void pmix_abort(struct bootstrap *b, int status, const char *why)
{
    (void)b;
    PMIx_Abort(status, why, NULL, 0);
}

static void pmix_close(struct bootstrap *b)
{
    struct pmix *p = (struct pmix *)b;

    PMIx_Finalize(NULL, 0);
    free(p->node);
    free(p);
}

const struct bootstrap_ops gshmem_bootstrap = {
    .size = sizeof(struct bootstrap_ops),
    .version = BOOTSTRAP_VERSION,
    .name = "pmix",
    .detect = pmix_detect,
    .open = pmix_open,
    .publish = pmix_publish,
    .fence = pmix_fence,
    .fetch = pmix_fetch,
    .abort = pmix_abort,
    .close = pmix_close,
};
