#define _GNU_SOURCE
#include "runtime/network.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/context.h"
#include "runtime/job.h"
#include "runtime/wait.h"

enum {
    ASIDE_NS = 100 * 1000, /* how long the proxy thread leaves driving to a thread that waits */
    FAREWELL_MS = 2000,    /* how long finalize lets the last answers take */
};

struct network {
    struct transport *transport;
    struct transport_config config;
    pthread_mutex_t lock; /* the transport, the flights, and the starter's fetch */
    struct flight *spare;
    struct job *job;
    uint8_t *program;     /* [PE]: an enum program, looked up when first asked for */
    _Atomic bool *lost;   /* [PE] */
    _Atomic bool ending;

    pthread_t proxy;
    bool started;
    int stop_fd;               /* written to once, to end the proxy thread */
    _Atomic bool stopping;
    _Atomic uint64_t driven;   /* ns, when a thread that waits last drove */
};

enum program { PROGRAM_UNKNOWN, PROGRAM_SAME, PROGRAM_OTHER };

static const struct transport_ops *const transports[] = {
    &transport_tcp,
};

/* ---- What the transport calls ---- */

static gshmem_status_t find(void *context, int pe, void *address, size_t capacity, size_t *bytes)
{
    struct network *n = context;
    struct job_blob blob;
    gshmem_status_t status = job_fetch(n->job, pe, &blob);

    if (status)
        return status;
    if (blob.transport_bytes > capacity)
        return fail(GSHMEM_ERR_BOOTSTRAP, "PE %d published an address of %u bytes", pe,
                    blob.transport_bytes);
    memcpy(address, blob.transport, blob.transport_bytes);
    *bytes = blob.transport_bytes;
    return GSHMEM_OK;
}

static uint64_t apply(void *context, enum gshmem_amo amo, int type, void *target, uint64_t operand,
                      uint64_t compare)
{
    (void)context;
    return atomic_apply(amo, type, target, operand, compare);
}

static void lost(void *context, int pe, gshmem_status_t status, const char *why)
{
    struct network *n = context;
    bool ending = atomic_load_explicit(&n->ending, memory_order_relaxed);

    (void)status;
    log_line(ending ? LOG_DEBUG : LOG_ERROR, "PE %d cannot be reached any more: %s", pe, why);
    atomic_store_explicit(&n->lost[pe], true, memory_order_relaxed);
}

/* ---- Driving ---- */

/* Whoever holds the lock drives already, for all. */
static bool drive(struct network *n)
{
    int events = 0;

    if (pthread_mutex_trylock(&n->lock) != 0)
        return false;
    n->transport->ops->progress(n->transport, &events); /* logs its own failures */
    pthread_mutex_unlock(&n->lock);
    return events > 0;
}

bool network_drive(struct network *n, uint64_t now)
{
    if (!n->started)
        return false;
    atomic_store_explicit(&n->driven, now, memory_order_relaxed);
    return drive(n);
}

void network_nap(struct network *n, uint64_t ns)
{
    struct pollfd arrival = {.fd = n->transport->ops->wait_fd(n->transport), .events = POLLIN};
    struct timespec most = {.tv_nsec = (long)ns};

    ppoll(&arrival, 1, &most, NULL);
}

/* A thread that waits takes its answer sooner than one that must be woken first, and each wake-up
 * costs whoever sends some microseconds: while another drives, this thread is nobody's to wake. */
static bool driven_lately(const struct network *n)
{
    return clock_ns() - atomic_load_explicit(&n->driven, memory_order_relaxed) < ASIDE_NS;
}

static void *proxy_main(void *argument)
{
    struct network *n = argument;
    struct pollfd wake[2] = {{.fd = n->transport->ops->wait_fd(n->transport), .events = POLLIN},
                             {.fd = n->stop_fd, .events = POLLIN}};
    const struct timespec aside = {.tv_nsec = ASIDE_NS};

    while (!atomic_load_explicit(&n->stopping, memory_order_relaxed)) {
        if (driven_lately(n)) {
            nanosleep(&aside, NULL);
        } else if (poll(wake, 2, -1) < 0 && errno != EINTR) {
            log_error("proxy: poll: %s", strerror(errno));
            nanosleep(&aside, NULL);
        } else if (!driven_lately(n)) {
            drive(n);
        }
    }
    return NULL;
}

/* Signals are the program's, and are delivered to its threads. */
static int start_proxy(struct network *n)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&n->proxy, NULL, proxy_main, n);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* ---- Life ---- */

static gshmem_status_t choose(struct network *n)
{
    char why[200] = "";

    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        if (!transports[i]->usable(why, sizeof why)) {
            log_info("transport %s cannot be used: %s", transports[i]->name, why);
            continue;
        }
        log_info("transport %s: %s", transports[i]->name, why);
        return transports[i]->open(&n->config, &n->transport);
    }
    return fail(GSHMEM_ERR_UNREACHABLE,
                "start-up: the job is on several hosts, and no transport can be used: %s", why);
}

gshmem_status_t network_open(struct job *j, void *address, size_t capacity, size_t *bytes)
{
    struct network *n = calloc(1, sizeof *n);
    gshmem_status_t status;

    if (!n)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    pthread_mutex_init(&n->lock, NULL);
    n->job = j;
    n->stop_fd = -1;
    n->config = (struct transport_config){
        .size = sizeof n->config,
        .fail = fail,
        .info = log_info_line,
        .pe = j->pe,
        .n_pes = j->n_pes,
        .one_machine = strcmp(j->bootstrap->ops->name, "run") == 0,
        .context = n,
        .find = find,
        .apply = apply,
        .lost = lost,
    };
    j->network = n;
    n->program = calloc((size_t)j->n_pes, sizeof *n->program);
    n->lost = calloc((size_t)j->n_pes, sizeof *n->lost);
    if (!n->program || !n->lost)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", j->n_pes);
    if ((status = choose(n)))
        return status;
    return n->transport->ops->address(n->transport, address, capacity, bytes);
}

static void name_segments(struct network *n)
{
    const struct job *j = n->job;
    struct transport_segment *s = n->config.segment;

    s[SEGMENT_SYSTEM] = (struct transport_segment){(char *)j->system_peer[j->pe],
                                                   j->host.layout.system_bytes};
    s[SEGMENT_HEAP] =
        (struct transport_segment){(char *)j->heap_peer[j->pe], j->host.layout.heap_bytes};
    for (int i = 0; i < j->data.n; i++)
        s[SEGMENT_DATA + i] = (struct transport_segment){(char *)j->data.segment[i].base,
                                                         j->data.segment[i].bytes};
    n->config.segments = SEGMENT_DATA + j->data.n;
}

gshmem_status_t network_start(struct job *j, const unsigned char secret[32])
{
    struct network *n = j->network;

    name_segments(n);
    memcpy(n->config.secret, secret, sizeof n->config.secret);
    n->transport->ops->begin(n->transport, &n->config);
    n->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (n->stop_fd < 0)
        return fail(GSHMEM_ERR_SYSTEM, "start-up: eventfd: %s", strerror(errno));
    int error = start_proxy(n);
    if (error)
        return fail(GSHMEM_ERR_SYSTEM, "start-up: the proxy thread: %s", strerror(error));
    n->started = true;
    return GSHMEM_OK;
}

static void stop_proxy(struct network *n)
{
    const uint64_t one = 1;

    atomic_store_explicit(&n->stopping, true, memory_order_relaxed);
    if (write(n->stop_fd, &one, sizeof one) != sizeof one)
        log_error("proxy: it cannot be told to stop: %s", strerror(errno));
    pthread_join(n->proxy, NULL);
}

/* The last answers of this PE are on their way to PEs that may still wait for them. */
static void send_last(struct network *n)
{
    uint64_t end = clock_ns() + FAREWELL_MS * 1000000ull;

    while (n->transport->ops->busy(n->transport) && clock_ns() < end) {
        int events;
        if (n->transport->ops->progress(n->transport, &events))
            break;
        if (!events)
            network_nap(n, 1000000);
    }
}

void network_stop(struct job *j)
{
    struct network *n = j->network;

    if (!n)
        return;
    if (n->started) {
        stop_proxy(n);
        send_last(n);
    }
    if (n->transport)
        n->transport->ops->close(n->transport);
    if (n->stop_fd >= 0)
        close(n->stop_fd);
    while (n->spare) {
        struct flight *f = n->spare;
        n->spare = f->next;
        free(f);
    }
    pthread_mutex_destroy(&n->lock);
    free(n->program);
    free(n->lost);
    free(n);
    j->network = NULL;
}

bool network_locate(const struct network *n, const void *mine, size_t bytes, int *segment,
                    uint64_t *offset)
{
    for (int i = SEGMENT_SYSTEM; i < n->config.segments; i++) {
        const struct transport_segment *s = &n->config.segment[i];
        size_t at = (uintptr_t)mine - (uintptr_t)s->base;
        if (at < s->bytes && bytes <= s->bytes - at) {
            *segment = i;
            *offset = at;
            return true;
        }
    }
    return false;
}

bool network_lost(const struct network *n, int pe)
{
    return atomic_load_explicit(&n->lost[pe], memory_order_relaxed);
}

void network_expect_end(struct network *n)
{
    atomic_store_explicit(&n->ending, true, memory_order_relaxed);
}

bool network_same_program(struct network *n, int pe)
{
    struct job_blob blob;

    pthread_mutex_lock(&n->lock);
    if (n->program[pe] == PROGRAM_UNKNOWN && !job_fetch(n->job, pe, &blob))
        n->program[pe] = blob.data_segments == (uint32_t)n->job->data.n &&
                                 blob.data_digest == n->job->data.digest
                             ? PROGRAM_SAME
                             : PROGRAM_OTHER;
    bool same = n->program[pe] == PROGRAM_SAME;
    pthread_mutex_unlock(&n->lock);
    return same;
}

/* ---- Requests ---- */

/* Called by the transport, with the lock held. */
static void land(void *tag, gshmem_status_t status)
{
    struct flight *f = tag;
    struct pending *p = f->pending;
    int none = GSHMEM_OK;
    uint64_t landed = 0;

    if (status)
        atomic_compare_exchange_strong_explicit(&p->failed, &none, (int)status,
                                                memory_order_relaxed, memory_order_relaxed);
    f->landed = true;
    while (p->first && p->first->landed) {
        struct flight *over = p->first;
        p->first = over->next;
        over->next = f->network->spare;
        f->network->spare = over;
        landed++;
    }
    /* release: pairs with the acquire in network_quiet: what a get brought is there */
    atomic_fetch_add_explicit(&p->done, landed, memory_order_release);
}

/* A flight at the end of the context's order, or NULL: out of memory. */
static struct flight *take_off(struct network *n, struct pending *p)
{
    struct flight *f = n->spare;

    if (f)
        n->spare = f->next;
    else if (!(f = malloc(sizeof *f)))
        return NULL;
    *f = (struct flight){.network = n, .pending = p};
    if (p->first)
        p->last->next = f;
    else
        p->first = f;
    p->last = f;
    atomic_fetch_add_explicit(&p->issued, 1, memory_order_relaxed);
    return f;
}

gshmem_status_t network_post(struct network *n, struct pending *pending,
                             struct transport_request *request, const char *call)
{
    struct wait w;

    wait_begin(&w, call, GSHMEM_TEAM_WORLD);
    pthread_mutex_lock(&n->lock);
    struct flight *flight = take_off(n, pending);
    if (!flight) {
        pthread_mutex_unlock(&n->lock);
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory for a request in flight", call);
    }
    request->done = land;
    request->tag = flight;
    gshmem_status_t status = n->transport->ops->post(n->transport, request);
    while (status == TRANSPORT_FULL) {
        int events = 0;
        if ((status = n->transport->ops->progress(n->transport, &events)))
            break;
        pthread_mutex_unlock(&n->lock);
        status = events ? GSHMEM_OK : wait_step(&w);
        pthread_mutex_lock(&n->lock);
        if (!status)
            status = n->transport->ops->post(n->transport, request);
    }
    if (status)
        land(flight, GSHMEM_OK); /* the caller is told here and now */
    pthread_mutex_unlock(&n->lock);
    return status;
}

gshmem_status_t network_quiet(struct pending *pending, const char *call)
{
    uint64_t target = atomic_load_explicit(&pending->issued, memory_order_relaxed);
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    wait_begin(&w, call, GSHMEM_TEAM_WORLD);
    /* acquire: pairs with the release in land */
    while (!status && atomic_load_explicit(&pending->done, memory_order_acquire) < target)
        status = wait_slowly(&w); /* nobody else's store can end this: drive from the start */
    if (!status && atomic_load_explicit(&pending->failed, memory_order_relaxed))
        status = (gshmem_status_t)atomic_exchange_explicit(&pending->failed, GSHMEM_OK,
                                                           memory_order_relaxed);
    return status;
}

/* A context of one request. It outlives the call if the wait for it is cut short, since its answer
 * may still come. */
struct errand {
    struct pending pending;
    uint64_t value;
};

gshmem_status_t network_errand(struct network *n, struct transport_request *request,
                               const char *call, uint64_t *value)
{
    struct errand *e = calloc(1, sizeof *e);
    gshmem_status_t status;

    if (!e)
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory for a request in flight", call);
    request->old = value ? &e->value : NULL;
    status = network_post(n, &e->pending, request, call);
    if (!status)
        status = network_quiet(&e->pending, call);
    if (!status && value)
        *value = e->value;
    if (!pending_any(&e->pending))
        free(e);
    return status;
}
