/* The life of the job: from gshmem_init to gshmem_finalize, and its other ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "gshmem.h"
#include "runtime/base/alike.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/collectives/collectives.h"
#include "runtime/job/job.h"
#include "runtime/memory/data.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/heap.h"
#include "runtime/memory/map.h"
#include "runtime/memory/map_fill.h"
#include "runtime/memory/place.h"
#include "runtime/memory/registration.h"
#include "runtime/memory/symmetric.h"
#include "runtime/network/blobs.h"
#include "runtime/network/network.h"
#include "runtime/network/wait.h"
#include "runtime/node/affinity.h"
#include "runtime/node/choose_device.h"
#include "runtime/node/node.h"
#include "runtime/operations/lock.h"
#include "runtime/proxy/kernels.h"
#include "runtime/proxy/modules.h"
#include "runtime/streams/stream.h"
#include "runtime/teams/context.h"
#include "runtime/teams/departures.h"
#include "runtime/teams/group.h"
#include "runtime/teams/internode.h"
#include "runtime/teams/multicast.h"
#include "runtime/teams/slots.h"
#include "runtime/teams/team.h"

static struct bootstrap *starter;       /* kept for the next job of this process */
static _Atomic pid_t owner;             /* the process that initialised; its children are not */
static bool registered;                 /* at_exit is registered */
static atomic_bool starting_first;      /* at_exit will be registered when the job that begins now
                                           has begun */
static int ended_at_exit;               /* gshmem_init calls that at_exit has finalized */
static gshmem_status_t status_at_exit;  /* the status of that */
static int given_status = -1;           /* the status with which some PE has ended this process's
                                           last job; -1: none has */

/* ---- Start ---- */

static void free_job(struct job *j)
{
    network_stop(j);
    kernels_stop(j);
    symmetric_stop(j);
    registration_stop(j);
    domain_stop(j);
    heap_stop(j);
    team_stop(j);
    lock_stop(j);
    departures_stop(j);
    device_heap_stop(j);
    driver_modules_forget();
    device_stop(j);
    place_end(j);
    node_stop(j->node);
    map_close(j->map);
    blobs_close(j->blobs);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

/* No other process would end this one, whether it computes or waits. A start or an end that is in
 * progress is given a moment to complete. */
static void launcher_lost(const char *why)
{
    const struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};
    bool quiet = false;

    for (int i = 0; i < 100 && !(quiet = pthread_mutex_trylock(&job_life) == 0); i++)
        nanosleep(&moment, NULL);
    if (quiet && !job) {
        pthread_mutex_unlock(&job_life);
        return;
    }
    signal(SIGPIPE, SIG_IGN); /* the reader of this process's output has gone as well */
    log_error("%s: it has died, and this PE ends", why);
    if (quiet)
        node_abort(job->node, job->pe, 1, why);
    _exit(1);
}

/* A bootstrap that the program names serves one job; one found in the environment serves all jobs
 * of the process. */
static gshmem_status_t find_starter(const gshmem_init_attr_t *attr, struct bootstrap **out)
{
    struct bootstrap_request request = {
        .size = sizeof request,
        .fail = fail,
        .info = log_info_line,
        .timeout_seconds = (int)settings_number(SETTING_INIT_TIMEOUT),
        .mpi_comm = attr->mpi_comm,
        .uid = attr->uid,
        .pe = attr->pe,
        .n_pes = attr->n_pes,
        .lost = launcher_lost,
    };
    bool given = attr->mpi_comm || attr->uid;
    gshmem_status_t status;

    if (!given && starter) {
        *out = starter;
        return GSHMEM_OK;
    }
    if ((status = bootstrap_open(&request, out)))
        return status;
    if (!given)
        starter = *out;
    return GSHMEM_OK;
}

static void let_go_of_starter(struct bootstrap *b)
{
    if (b != starter)
        b->ops->close(b);
}

/* Whether all nodes are on one machine, and whether each has CPUs of its own there. The first and
 * the last PE stand for those between them, so that the cost is the same in any job, and all PEs
 * get the same result. It decides how PEs wait, and how those of a node synchronize. */
static gshmem_status_t compare_machines(struct job *j, uint64_t own, const struct pe_blob *first)
{
    bool one_machine = j->bootstrap->one_machine;
    struct pe_blob last;
    gshmem_status_t status;

    if (!one_machine && (!own || first->machine != own))
        return GSHMEM_OK;
    if ((status = blobs_fetch(j->blobs, j->n_pes - 1, &last)) || (!one_machine && last.machine != own))
        return status;
    j->node->apart = first->cpus != last.cpus;
    if (!one_machine)
        node_join_machine(j->node, j->bootstrap);
    return GSHMEM_OK;
}

/* This PE's start-up has failed while the others are on their way to the fence: it takes part with
 * an empty blob, so that they do not wait, and notifies the lowest PE of its node, which waits for
 * it next. */
static gshmem_status_t exchange_failure(struct job *j, gshmem_status_t status)
{
    struct bootstrap *b = j->bootstrap;
    struct pe_blob leader;
    char text[512];

    snprintf(text, sizeof text, "%s", last_error_text());
    if (!b->ops->publish(b, "", 0) && !b->ops->fence(b) && j->node->pe && j->node->index > 0 &&
        !blobs_fetch(j->blobs, j->node->pe[0], &leader))
        rendezvous_tell_failure(&leader.rendezvous, j->node->index);
    return fail_silently(status, "%s", text);
}

/* Publishes how to reach this PE, and learns what it needs to know of the others: one exchange of
 * the bootstrap. */
static gshmem_status_t init_exchange(struct job *j, const gshmem_uniqueid_t *uid,
                                     struct rendezvous_address *leader)
{
    struct bootstrap *b = j->bootstrap;
    struct pe_blob own = {.machine = node_machine(), .cpus = node_cpus_digest()};
    struct pe_blob theirs;
    bool alone = b->n_hosts == 1;
    gshmem_status_t status, found = data_find(j->data);
    const struct node_needs needs = {
        .system_bytes = j->departures->table + departures_system_bytes(j->n_pes),
        .data_bytes = j->data->bytes,
        .nic_heap = network_may_have_nics(b->n_hosts),
    };
    size_t bytes = 0;

    j->gpu_kernels = modules_any("cuda");
    if ((status = node_open(j->node, b, &needs, &own.rendezvous)) || (status = found) ||
        (status = network_open(j, uid, own.transport, sizeof own.transport, &bytes, own.public_key)))
        return exchange_failure(j, status);
    own.data_segments = (uint32_t)j->data->n;
    own.data_digest = j->data->digest;
    own.transport_bytes = (uint32_t)bytes;
    bytes += offsetof(struct pe_blob, transport);
    if (alone && j->node->index != 0)
        bytes = 0; /* no PE will read it */
    if ((status = b->ops->publish(b, &own, bytes)) || (status = b->ops->fence(b)))
        return status;
    theirs = own;
    if (j->node->index != 0 && (status = blobs_fetch(j->blobs, j->node->pe[0], &theirs)))
        return status;
    *leader = theirs.rendezvous;
    if (!alone && (status = blobs_fetch(j->blobs, 0, &theirs)))
        return status;
    return alone ? GSHMEM_OK : compare_machines(j, own.machine, &theirs);
}

/* Moves the program's variables into the memory that the node shares. */
static gshmem_status_t share_data(struct job *j)
{
    const struct node_layout *layout = &j->node->layout;
    gshmem_status_t status = GSHMEM_OK;

    if (j->data->bytes > layout->data_bytes) {
        log_warn("the variables of this program (%zu KiB) are not symmetric: the lowest PE of this "
                 "host runs another program and has room for %zu KiB",
                 j->data->bytes >> 10, (size_t)layout->data_bytes >> 10);
        *j->data = (struct data_segments){.n = 0};
    }
    for (int i = 0; i < j->data->n && !status; i++)
        status = data_share(&j->data->segment[i], j->node->fd,
                            node_data_offset(layout, j->node->index) + j->data->segment[i].offset);
    return status;
}

static void init_tell(const struct job *j)
{
    log_info("PE %d of %d, %d on this host (%d CPUs%s), started by %s; heap up to %zu MiB; %d "
             "segments of program data, %zu KiB",
             j->pe, j->n_pes, j->node->n, j->node->cpus,
             !j->node->oversubscribed    ? ""
             : j->node->contained ? ", which PEs of all hosts share"
                                 : ", so PEs share them",
             j->bootstrap->ops->name, (size_t)j->node->layout.heap_bytes >> 20, j->data->n,
             j->data->bytes >> 10);
}

/* All steps that can fail between knowing this PE's number and being part of the job. */
static gshmem_status_t init_join(struct job *j, const gshmem_uniqueid_t *uid)
{
    struct node_self self = {.pe = j->pe, .heap_base = place_wanted()};
    struct rendezvous_address leader;
    gshmem_status_t status;

    if ((status = init_exchange(j, uid, &leader)))
        return status;
    wait_calibrate(j->node->oversubscribed, network_is_needed(j->network), j->node->contained);
    if ((status = node_share(j->node, &leader)) || (status = share_data(j)))
        return status;
    j->gpu_kernels = modules_any("cuda"); /* what has been loaded since may have brought some */
    self.data_segments = (uint32_t)j->data->n;
    self.data_digest = j->data->digest;
    if ((status = device_start(j, modules_add, gshmem_device_unregister)) || (status = device_heap_prepare(j, kernels_system_bytes())) ||
        (status = node_join(j->node, &self, network_await)))
        return status;
    /* now agreed */
    wait_calibrate(j->node->oversubscribed, network_is_needed(j->network), j->node->contained);
    if ((status = map_fill(j)) || (status = place_heap(j)) || (status = device_heap_start(j, network_await)) ||
        (status = network_start(j)) || (status = team_start(j)))
        return status;
    if ((status = heap_start(j, network_pins)) || (status = registration_start(j)) ||
        (status = symmetric_start(j)))
        return status;
    /* The first team makes it for all. */
    multicast_begin(j, j->team[GSHMEM_TEAM_HOST]);
    multicast_begin(j, j->team[GSHMEM_TEAM_SHARED]);
    multicast_begin(j, j->team[GSHMEM_TEAM_WORLD]);
    return GSHMEM_OK;
}

/* What each job has one of, in one allocation: the job comes first, so that free_job frees all. */
struct job_parts {
    struct job job;
    struct node node;
    struct blobs blobs;
    struct memory_map map;
    struct data_segments data;
    struct active_sets active_sets;
    struct departures departures;
};

static void abort_job(struct job *j, int *exit_status, const char *why)
{
    node_abort(j->node, j->pe, *exit_status, why);
    node_exit_status(j->node, exit_status);
    j->bootstrap->ops->abort(j->bootstrap, *exit_status, why);
}

static struct job *new_job(struct bootstrap *b, int thread_level)
{
    struct job_parts *parts = calloc(1, sizeof *parts);

    if (!parts)
        return NULL;
    parts->job.pe = b->pe;
    parts->job.n_pes = b->n_pes;
    parts->job.thread_level = thread_level;
    parts->job.bootstrap = b;
    parts->job.node = &parts->node;
    parts->job.blobs = &parts->blobs;
    parts->job.map = &parts->map;
    parts->job.data = &parts->data;
    parts->job.active_sets = &parts->active_sets;
    parts->job.departures = &parts->departures;
    parts->job.observer = &kernels_observer;
    parts->job.waits = &team_wait_hooks;
    parts->job.abort = abort_job;
    parts->departures.table = team_system_bytes() + kernels_system_bytes();
    parts->node.fd = parts->node.rendezvous.fd = -1;
    blobs_open(&parts->blobs, b);
    pthread_mutex_init(&parts->job.lock, NULL);
    return &parts->job;
}

static gshmem_status_t start_job(const gshmem_init_attr_t *attr)
{
    gshmem_status_t status;
    struct bootstrap *b;

    if ((status = settings_load()) || (status = find_starter(attr, &b)))
        return status;
    log_identify(b->pe);
    if (b->pe == 0)
        settings_warn_unknown();

    struct job *j = new_job(b, attr->thread_level);
    if (!j) {
        let_go_of_starter(b);
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    }
    job = j; /* waits read it */
    if (!(status = init_join(j, attr->uid)) && !(status = context_start(j)))
        status = kernels_start(j);
    if (status) {
        /* The others may have completed their start-up, and would wait for this PE. */
        network_fail(j);
        node_fail(j->node, j->pe);
        context_stop(j);
        job = NULL;
        free_job(j);
        let_go_of_starter(b);
        return status;
    }
    affinity_begin(j->node, b);
    init_tell(j);
    given_status = -1;
    return GSHMEM_OK;
}

/* ---- End ---- */

/* A PE that waits for this one in another call reports that, and ends the job. A launcher that saw
 * this PE fail first would end the job without that line. */
static void let_others_say(const struct job *j)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    int status;

    for (int i = 0; i < 500 && !node_exit_status(j->node, &status); i++)
        nanosleep(&moment, NULL);
}

/* Makes sure that what this PE has sent in successful rounds arrives before the news that it has
 * failed, which goes another way. */
static void let_words_arrive(const struct job *j)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    bool arrived = false;

    for (int i = 0; i < 2000 && !arrived; i++) {
        arrived = true;
        for (int t = 0; t < TEAM_MAX; t++)
            arrived &= !j->team[t] || !j->team[t]->group->internode || internode_has_told(j->team[t]->group);
        if (!arrived)
            nanosleep(&moment, NULL);
    }
}

/* Ends this PE's part in the job: after this no other PE accesses its memory, nor does it access
 * theirs. */
static gshmem_status_t leave_job(struct job *j, enum departure_way way)
{
    gshmem_status_t status = streams_drain(), met = context_quiet_all(j, "gshmem_finalize");

    status = status ? status : met;
    network_expect_end(j->network);
    met = collective_finalize(j, "gshmem_finalize", way);
    if (met == GSHMEM_ERR_MISMATCH)
        let_others_say(j);
    if (met) { /* it has not synchronized with the others, and they must not wait for it */
        let_words_arrive(j);
        network_fail(j);
        node_fail(j->node, j->pe);
    }
    status = status ? status : met;
    kernels_retire(j);
    if (j->device_heap) {
        /* Memory that others still map must not be released, as CUDA IPC requires. */
        device_heap_leave(j);
        met = collective_finalize(j, "gshmem_finalize", way);
        status = status ? status : met;
    }
    return status;
}

/* Another thread is ending this process, with a status of its own, and uses the job until then. */
static void stay_where_it_ends_elsewhere(void)
{
    if (!job_ends_elsewhere())
        return;
    pthread_mutex_unlock(&job_life); /* handlers of the program, which run in that thread, may need
                                         it */
    for (;;)
        pause();
}

static void init_end_job(struct job *j)
{
    struct bootstrap *b = j->bootstrap;

    stay_where_it_ends_elsewhere();
    node_exit_status(j->node, &given_status);
    network_stop(j); /* before the contexts: operations that could not be completed end in them */
    context_stop(j);
    job = NULL;
    free_job(j);
    let_go_of_starter(b);
    log_identify(-1);
}

/* The same for a process that ends while threads may be in the library: what they use stays mapped,
 * until the process is gone. */
static void end_job_but_for_threads(struct job *j)
{
    network_rest(j);
    node_leave(j->node);
    pthread_mutex_lock(&j->blobs->fetching); /* no thread asks the bootstrap any more */
    job_end_with_process(j);
    let_go_of_starter(j->bootstrap);
}

static gshmem_status_t stop_job(enum departure_way way)
{
    struct job *j = job;
    gshmem_status_t status = leave_job(j, way);

    init_end_job(j);
    return status;
}

/* Ends the job, because this process ends without having left it. */
static void leave_badly(int status, const char *why)
{
    job_begin_to_end();
    log_error("%s", why);
    node_abort(job->node, job->pe, job_exit_code(status), why);
    job->bootstrap->ops->abort(job->bootstrap, job_exit_code(status), why);
}

static void exit_at_once(int status)
{
    fflush(NULL);
    _exit(status);
}

/* Whether main has returned or the program has called exit: found from the caller of the function
 * exit, which runs this. */
static enum departure_way init_find_way(void)
{
    void *frame[16];
    int n = backtrace(frame, 16);
    Dl_info libc, caller;

    if (!dladdr((void *)(uintptr_t)exit, &libc))
        return LEFT_BY_END;
    for (int i = n - 1; i > 0; i--) {
        /* -1: the call may be the last instruction of that function */
        if (dladdr((char *)frame[i] - 1, &caller) && caller.dli_saddr == libc.dli_saddr)
            return i + 1 < n && dladdr(frame[i + 1], &caller) && caller.dli_fbase != libc.dli_fbase
                       ? LEFT_BY_EXIT
                       : LEFT_BY_RETURN;
    }
    return LEFT_BY_END;
}

/* A process cannot leave the job in good order from within a call in which others wait: an exit
 * from a signal handler, or from another thread. The call that is in progress, as a sentence;
 * false: it can leave. */
static bool in_the_middle(struct job *j, char *why, size_t size)
{
    const char *call = job_depth == 0 ? "gshmem_init or gshmem_finalize" : NULL;

    for (int i = 0; i < TEAM_MAX && !call; i++) {
        const struct group *g = j->team[i] ? j->team[i]->group : NULL;
        call = g ? group_under_way(g) : NULL;
        if (g && !call && g->internode) /* the PEs of a node have rounds of their own, too */
            call = group_under_way(internode_neighbours(g));
    }
    if (!call && (!network_can_enter(j) || !blobs_can_fetch(j->blobs)))
        call = "a call that uses the network";
    if (call)
        snprintf(why, size, "PE %d exited in the middle of %s", j->pe, call);
    return call != NULL;
}

/* A program that returns from main has finished in good order. One that exits with a failure has
 * not: its peers must not wait for it, nor it for another thread that is in gshmem_init. */
static void at_exit(int status, void *unused)
{
    gshmem_status_t end = GSHMEM_OK;
    char why[120];

    (void)unused;
    if (getpid() != owner)
        return;
    if (status != 0 && job) {
        if (node_exit_status(job->node, &status))
            exit_at_once(status);
        snprintf(why, sizeof why, "PE %d exited with status %d before gshmem_finalize", job->pe,
                 status);
        leave_badly(status, why);
        if (!(status & 0xff)) /* the system would make 0 of it */
            exit_at_once(job_exit_code(status));
        return;
    }
    pthread_mutex_lock(&job_life); /* another thread may be in gshmem_init or gshmem_finalize */
    /* the job has been ended with a status, which does not change any more */
    if (job && node_exit_status(job->node, &status))
        exit_at_once(status);
    /* also where the job was finalized after that, and main ignores it */
    if (!job && status == 0 && given_status >= 0)
        exit_at_once(given_status);
    if (job && in_the_middle(job, why, sizeof why)) {
        leave_badly(1, why);
        exit_at_once(1);
    }
    if (job) {
        end = leave_job(job, init_find_way());
        if (job->thread_level == GSHMEM_THREAD_MULTIPLE)
            end_job_but_for_threads(job);
        else
            init_end_job(job);
    }
    if (starter)
        starter->ops->close(starter);
    starter = NULL;
    /* Handlers and destructors that were registered before gshmem_init run after this, and may
     * finalize. */
    ended_at_exit = job_depth;
    status_at_exit = end;
    job_depth = 0;
    registered = false;
    pthread_mutex_unlock(&job_life);
    /* This PE's messages to a failed one may not have arrived, or another PE waits for this one
     * elsewhere, and no caller gets the status. */
    if (end == GSHMEM_ERR_PEER_DEAD || end == GSHMEM_ERR_MISMATCH)
        exit_at_once(1);
}

/* at_exit itself is registered after all handlers that a start registers, a driver's among them,
 * and so runs before them. */
static void at_early_exit(int status, void *unused)
{
    if (starting_first)
        at_exit(status, unused);
}

/* A child's copy of its parent's job, kept where a leak checker finds it. */
static struct job *volatile parents_job;
static struct bootstrap *volatile parents_starter;

/* A child has its parent's memory, sockets and epoll sets, but not its threads, nor its part in the
 * job. From now on it has no job, so that every call is refused, and nothing of the parent's is
 * changed. */
static void init_leave_parent(void)
{
    /* a thread that does not exist in the child may hold it */
    job_life = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    if (!job && !starter)
        return;
    if (job) {
        context_leave_parent(job);
        network_leave_parent(job);
    }
    parents_job = job;
    parents_starter = starter;
    job = NULL;
    starter = NULL;
    job_depth = 0;
    job_forked = true;
    log_identify(-1);
}

static void init_watch_forks(void)
{
    pthread_atfork(NULL, NULL, init_leave_parent);
}

static gshmem_status_t check_attr(const gshmem_init_attr_t *attr)
{
    if (!attr)
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_init_attr: attr is NULL");
    if (attr->thread_level < GSHMEM_THREAD_SINGLE || attr->thread_level > GSHMEM_THREAD_MULTIPLE)
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_init: thread level %d is not one of %d..%d",
                    attr->thread_level, GSHMEM_THREAD_SINGLE, GSHMEM_THREAD_MULTIPLE);
    if (attr->mpi_comm && attr->uid)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "gshmem_init_attr: give mpi_comm or uid, not both: each names the job");
    if (attr->uid && (attr->n_pes < 1 || attr->pe < 0 || attr->pe >= attr->n_pes))
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_init_attr: pe %d of n_pes %d does not exist",
                    attr->pe, attr->n_pes);
    return GSHMEM_OK;
}

gshmem_status_t gshmem_init_attr(const gshmem_init_attr_t *attr)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    gshmem_status_t status = job_forked ? job_require("gshmem_init") : check_attr(attr);

    if (status)
        return status;
    pthread_once(&once, init_watch_forks);
    pthread_mutex_lock(&job_life);
    if (job && job_is_over(job)) {
        status = job_stay("gshmem_init");
    } else if (job_depth == 0) {
        owner = getpid();
        starting_first = !registered && on_exit(at_early_exit, NULL) == 0;
        log_starts(true);
        status = start_job(attr);
        log_starts(false);
        if (status)
            alike_linger();
        if (!registered)
            registered = on_exit(at_exit, NULL) == 0;
        starting_first = false;
    }
    if (!status)
        job_depth++;
    pthread_mutex_unlock(&job_life);
    return status;
}

gshmem_status_t gshmem_init_thread(int requested, int *provided)
{
    gshmem_init_attr_t attr = {.thread_level = requested};
    gshmem_status_t status = gshmem_init_attr(&attr);

    if (!status && provided)
        *provided = gshmem_query_thread();
    return status;
}

gshmem_status_t gshmem_init(void)
{
    return gshmem_init_thread(GSHMEM_THREAD_SINGLE, NULL);
}

gshmem_status_t gshmem_finalize(void)
{
    gshmem_status_t status = GSHMEM_OK;

    pthread_mutex_lock(&job_life);
    if (job_depth == 0 && ended_at_exit > 0) {
        ended_at_exit--;
        status = status_at_exit;
    } else if (job_depth == 0) {
        status = job_require("gshmem_finalize");
    } else if (--job_depth == 0) {
        status = stop_job(LEFT_BY_FINALIZE);
    }
    pthread_mutex_unlock(&job_life);
    return status;
}

int gshmem_initialized(void)
{
    return job && !job_is_over(job);
}

int gshmem_query_thread(void)
{
    return job ? job->thread_level : GSHMEM_THREAD_SINGLE;
}

void gshmem_global_exit(int status)
{
    char why[64];

    fflush(NULL);
    snprintf(why, sizeof why, "gshmem_global_exit(%d)", status);
    job_abort(status, why);
}
