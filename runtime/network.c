#define _GNU_SOURCE
#include "runtime/network.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/context.h"
#include "runtime/job.h"
#include "runtime/base/settings.h"
#include "runtime/proxy/channel.h"
#include "runtime/proxy/kernels.h"
#include "runtime/proxy/pages.h"
#include "runtime/proxy/proxy.h"
#include "runtime/team/team.h"
#include "runtime/wait.h"

enum {
    FAREWELL_MS = 2000, /* how long finalize lets the last answers take */
    RAISED_MOST = 8,
};

/* A failure of a kernel's operation on its way to the error policy. */
struct raised {
    gshmem_status_t status;
    struct proxy_answer then;
    char text[200];
};

struct network {
    struct transport *far;   /* to other hosts; NULL if there are none */
    struct transport *local; /* to this host, for kernels; NULL if there are none */
    struct transport_config config;
    pthread_mutex_t lock; /* transports, channels, flights, and the starter's fetch */
    struct flight *spare;
    struct job *job;
    uint8_t *program;     /* [PE]: an enum program, looked up when first asked for */
    _Atomic bool *lost;   /* [PE] */
    _Atomic bool any_lost;
    _Atomic bool ending;
    struct proxy proxy;

    struct proxy_way way; /* how commands of kernels get on */
    struct proxy_channel **channel;
    int channels;
    int channels_room;
    uint32_t *asleep; /* shared with kernels; NULL while there are none */
    struct pages pages;
    struct raised raise[RAISED_MOST]; /* for the proxy thread, which holds no lock then */
    _Atomic int raised;
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
    atomic_store_explicit(&n->any_lost, true, memory_order_relaxed);
}

static char *mapped(void *context, int pe, int segment)
{
    const struct job *j = ((struct network *)context)->job;

    if (segment == SEGMENT_SYSTEM)
        return (char *)j->system_peer[pe];
    if (segment == SEGMENT_HEAP)
        return (char *)j->heap_peer[pe];
    const struct data_segment *s = &j->data.segment[segment - SEGMENT_DATA];
    if (pe == j->pe)
        return (char *)s->base;
    return j->data_peer[pe] ? (char *)j->data_peer[pe] - j->data.segment[0].offset + s->offset : NULL;
}

/* ---- What channels call, with the lock held ---- */

static bool same_program(struct network *n, int pe);

static gshmem_status_t aim_command(void *context, uint64_t mine, uint64_t bytes, int pe,
                                   const char *call, int *segment, uint64_t *offset)
{
    struct network *n = context;
    const void *at = (const void *)(uintptr_t)mine;
    char what[64];

    if (network_locate(n, at, bytes, segment, offset) &&
        (*segment < SEGMENT_DATA || same_program(n, pe)))
        return GSHMEM_OK;
    snprintf(what, sizeof what, "%s in a kernel", call);
    return context_refuse(&n->job->team[GSHMEM_TEAM_WORLD]->view, at, bytes, pe, what);
}

static bool is_memory(void *context, uint64_t address, uint64_t bytes)
{
    struct network *n = context;
    const struct transport_segment *heap = &n->config.segment[SEGMENT_HEAP];
    uint64_t at = address - (uintptr_t)heap->base;

    return (at < heap->bytes && bytes <= heap->bytes - at) ||
           pages_exist(&n->pages, address, bytes);
}

static gshmem_status_t post_command(void *context, const struct transport_request *request)
{
    struct network *n = context;
    struct transport *t = n->job->host.index_of[request->pe] >= 0 ? n->local : n->far;

    return t->ops->post(t, request);
}

/* What does not fit is not raised: of many failures at once the first few tell the story. */
static void raise_command(void *context, gshmem_status_t status, const struct proxy_answer *then)
{
    struct network *n = context;

    int raised = atomic_load_explicit(&n->raised, memory_order_relaxed);

    if (raised == RAISED_MOST) {
        channel_answer(&n->way, then);
        return;
    }
    struct raised *r = &n->raise[raised];
    r->status = status;
    r->then = *then;
    snprintf(r->text, sizeof r->text, "%s", last_error_text());
    atomic_store_explicit(&n->raised, raised + 1, memory_order_relaxed);
    proxy_wake(&n->proxy);
}

void network_raise(struct network *n)
{
    struct raised raise[RAISED_MOST];

    if (!atomic_load_explicit(&n->raised, memory_order_relaxed))
        return; /* a glance without the lock; who adds one wakes the proxy */
    pthread_mutex_lock(&n->lock);
    int count = atomic_load_explicit(&n->raised, memory_order_relaxed);
    memcpy(raise, n->raise, (size_t)count * sizeof raise[0]);
    atomic_store_explicit(&n->raised, 0, memory_order_relaxed);
    pthread_mutex_unlock(&n->lock);
    for (int i = 0; i < count; i++) {
        fail_silently(raise[i].status, "%s", raise[i].text);
        gshmem_raise(raise[i].status);
        channel_answer(&n->way, &raise[i].then);
    }
}

/* ---- Driving ---- */

static bool drive(struct network *n)
{
    int events = 0;
    bool took = false;

    for (int i = 0; i < n->channels; i++)
        took |= channel_take(n->channel[i]);
    if (n->far)
        n->far->ops->progress(n->far, &events); /* logs its own failures */
    for (int i = 0; events && i < n->channels; i++)
        channel_publish(n->channel[i]);
    return took || events > 0;
}

bool network_round(struct network *n)
{
    pthread_mutex_lock(&n->lock);
    bool some = drive(n);
    pthread_mutex_unlock(&n->lock);
    return some;
}

/* acquire: pairs with the release in proxy_start */
static bool has_proxy(const struct network *n)
{
    return atomic_load_explicit(&n->proxy.runs, memory_order_acquire);
}

/* Whoever holds the lock drives already, for all. */
static bool try_round(struct network *n)
{
    if (pthread_mutex_trylock(&n->lock) != 0)
        return false;
    bool some = drive(n);
    pthread_mutex_unlock(&n->lock);
    return some;
}

bool network_drive(struct network *n, uint64_t now)
{
    if (!has_proxy(n))
        return false;
    proxy_stand_aside(&n->proxy, now);
    return try_round(n);
}

void network_nap(struct network *n, uint64_t ns)
{
    struct pollfd arrival = {.fd = network_wait_fd(n), .events = POLLIN};
    struct timespec most = {.tv_nsec = (long)ns};

    ppoll(&arrival, 1, &most, NULL);
}

int network_wait_fd(const struct network *n)
{
    return n->far ? n->far->ops->wait_fd(n->far) : -1;
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
        return transports[i]->open(&n->config, &n->far);
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
    n->config = (struct transport_config){
        .size = sizeof n->config,
        .fail = fail,
        .info = log_info_line,
        .pe = j->pe,
        .n_pes = j->n_pes,
        .one_machine = j->bootstrap->one_machine,
        .context = n,
        .find = find,
        .apply = apply,
        .lost = lost,
        .mapped = mapped,
    };
    j->network = n;
    *bytes = 0;
    n->program = calloc((size_t)j->n_pes, sizeof *n->program);
    n->lost = calloc((size_t)j->n_pes, sizeof *n->lost);
    if (!n->program || !n->lost)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", j->n_pes);
    if (j->bootstrap->n_hosts == 1)
        return GSHMEM_OK;
    if ((status = choose(n)))
        return status;
    return n->far->ops->address(n->far, address, capacity, bytes);
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
    if (!n->far)
        return GSHMEM_OK;
    n->far->ops->begin(n->far, &n->config);
    return proxy_start(&n->proxy, n);
}

bool network_is_far(const struct network *n)
{
    return n->far != NULL;
}

/* The last answers of this PE are on their way to PEs that may still wait for them. */
static void send_last(struct network *n)
{
    uint64_t end = clock_ns() + FAREWELL_MS * 1000000ull;

    while (n->far->ops->busy(n->far) && clock_ns() < end) {
        int events;
        if (n->far->ops->progress(n->far, &events))
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
    if (has_proxy(n)) {
        proxy_stop(&n->proxy);
        network_raise(n);
        if (n->far)
            send_last(n);
    }
    if (n->far)
        n->far->ops->close(n->far);
    if (n->local)
        n->local->ops->close(n->local);
    free(n->channel);
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

bool network_any_lost(const struct network *n)
{
    return atomic_load_explicit(&n->any_lost, memory_order_relaxed);
}

void network_expect_end(struct network *n)
{
    atomic_store_explicit(&n->ending, true, memory_order_relaxed);
}

static bool same_program(struct network *n, int pe)
{
    struct job_blob blob;

    if (n->job->host.index_of[pe] >= 0)
        return n->job->data_peer[pe] != 0;
    if (n->program[pe] == PROGRAM_UNKNOWN && !job_fetch(n->job, pe, &blob))
        n->program[pe] = blob.data_segments == (uint32_t)n->job->data.n &&
                                 blob.data_digest == n->job->data.digest
                             ? PROGRAM_SAME
                             : PROGRAM_OTHER;
    return n->program[pe] == PROGRAM_SAME;
}

bool network_same_program(struct network *n, int pe)
{
    pthread_mutex_lock(&n->lock);
    bool same = same_program(n, pe);
    pthread_mutex_unlock(&n->lock);
    return same;
}

/* ---- Kernels ---- */

gshmem_status_t network_serve_kernels(struct network *n, struct gshmem_response *response,
                                      uint32_t *asleep)
{
    gshmem_status_t status = GSHMEM_OK;

    pthread_mutex_lock(&n->lock);
    if (!n->local && !(status = transport_local.open(&n->config, &n->local)))
        n->local->ops->begin(n->local, &n->config);
    n->asleep = asleep;
    n->way = (struct proxy_way){
        .n_pes = n->job->n_pes,
        .response = response,
        .aim = aim_command,
        .is_memory = is_memory,
        .post = post_command,
        .raise = raise_command,
        .context = n,
    };
    pthread_mutex_unlock(&n->lock);
    if (status || (status = proxy_start(&n->proxy, n)))
        return status;
    proxy_serve_kernels(&n->proxy);
    return GSHMEM_OK;
}

gshmem_status_t network_add_channel(struct network *n, struct proxy_channel *c)
{
    gshmem_status_t status = GSHMEM_OK;

    c->way = &n->way;
    pthread_mutex_lock(&n->lock);
    if (n->channels == n->channels_room) {
        int room = n->channels_room ? 2 * n->channels_room : 8;
        struct proxy_channel **more = realloc(n->channel, (size_t)room * sizeof *more);
        if (more) {
            n->channel = more;
            n->channels_room = room;
        } else {
            status = fail(GSHMEM_ERR_MEMORY, "out of memory for %d channels", room);
        }
    }
    if (!status)
        n->channel[n->channels++] = c;
    pthread_mutex_unlock(&n->lock);
    return status;
}

void network_remove_channel(struct network *n, struct proxy_channel *c)
{
    pthread_mutex_lock(&n->lock);
    for (int i = 0; i < n->channels; i++) {
        if (n->channel[i] == c)
            n->channel[i--] = n->channel[--n->channels];
    }
    pthread_mutex_unlock(&n->lock);
}

bool network_shares_cpu(const struct network *n)
{
    return n->job->host.cpus < 2 * n->job->host.sharers;
}

void network_help(struct network *n)
{
    uint64_t now = clock_ns();

    if (__atomic_exchange_n(n->asleep, 0, __ATOMIC_RELAXED))
        proxy_wake(&n->proxy); /* which takes a while; so this round is ours */
    if (proxy_is_at_it(&n->proxy, now))
        return;
    if (network_shares_cpu(n))
        proxy_stand_aside(&n->proxy, now);
    try_round(n);
}

bool network_fall_asleep(struct network *n)
{
    bool work = false;

    pthread_mutex_lock(&n->lock);
    if (n->asleep)
        __atomic_store_n(n->asleep, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < n->channels && !work; i++)
        work = channel_has_work(n->channel[i]);
    pthread_mutex_unlock(&n->lock);
    return !work;
}

void network_wake_up(struct network *n)
{
    pthread_mutex_lock(&n->lock);
    if (n->asleep)
        __atomic_store_n(n->asleep, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&n->lock);
}

static void watch_channels(struct network *n)
{
    uint64_t limit = (uint64_t)settings_number(SETTING_WATCHDOG) * 1000000000u;
    char text[240];

    if (!limit)
        return;
    pthread_mutex_lock(&n->lock);
    for (int i = 0; i < n->channels; i++) {
        if (channel_overdue(n->channel[i], clock_ns(), limit, text, sizeof text))
            log_line(LOG_ERROR, "watchdog: %s", text);
    }
    pthread_mutex_unlock(&n->lock);
}

void network_look_after(struct network *n)
{
    kernels_look_after(n->job);
    watch_channels(n);
}

/* ---- Requests ---- */

/* Called by the transport, with the lock held. */
static void land(void *tag, gshmem_status_t status)
{
    struct flight *f = tag;
    struct pending *p = f->pending;
    uint64_t none = 0, failure = (uint64_t)f->pe << 32 | (uint64_t)status;
    uint64_t landed = 0;

    if (status)
        atomic_compare_exchange_strong_explicit(&p->failed, &none, failure, memory_order_relaxed,
                                                memory_order_relaxed);
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
static struct flight *take_off(struct network *n, struct pending *p, int pe)
{
    struct flight *f = n->spare;

    if (f)
        n->spare = f->next;
    else if (!(f = malloc(sizeof *f)))
        return NULL;
    *f = (struct flight){.network = n, .pending = p, .pe = pe};
    if (p->first)
        p->last->next = f;
    else
        p->first = f;
    p->last = f;
    atomic_fetch_add_explicit(&p->issued, 1, memory_order_relaxed);
    return f;
}

static gshmem_status_t fail_lost(gshmem_status_t status, int pe, const char *call)
{
    return fail(status, "%s: PE %d, on another host, has died or cannot be reached", call, pe);
}

gshmem_status_t network_post(struct network *n, struct pending *pending,
                             struct transport_request *request, const char *call)
{
    struct wait w;

    wait_begin(&w, call, WAIT_FOR_NETWORK);
    pthread_mutex_lock(&n->lock);
    struct flight *flight = take_off(n, pending, request->pe);
    if (!flight) {
        pthread_mutex_unlock(&n->lock);
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory for a request in flight", call);
    }
    request->done = land;
    request->tag = flight;
    gshmem_status_t status = n->far->ops->post(n->far, request);
    while (status == TRANSPORT_FULL) {
        int events = 0;
        if ((status = n->far->ops->progress(n->far, &events)))
            break;
        pthread_mutex_unlock(&n->lock);
        status = events ? GSHMEM_OK : wait_step(&w);
        pthread_mutex_lock(&n->lock);
        if (!status)
            status = n->far->ops->post(n->far, request);
    }
    if (status)
        land(flight, GSHMEM_OK); /* the caller is told here and now */
    pthread_mutex_unlock(&n->lock);
    return status && network_lost(n, request->pe) ? fail_lost(status, request->pe, call) : status;
}

gshmem_status_t network_quiet(struct pending *pending, const char *call)
{
    uint64_t target = atomic_load_explicit(&pending->issued, memory_order_relaxed);
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    wait_begin(&w, call, WAIT_FOR_NETWORK);
    /* acquire: pairs with the release in land */
    while (!status && atomic_load_explicit(&pending->done, memory_order_acquire) < target)
        status = wait_slowly(&w); /* nobody else's store can end this: drive from the start */
    if (status || !atomic_load_explicit(&pending->failed, memory_order_relaxed))
        return status;
    uint64_t failure = atomic_exchange_explicit(&pending->failed, 0, memory_order_relaxed);
    return fail_lost((gshmem_status_t)(uint32_t)failure, (int)(failure >> 32), call);
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
