/* The life of the job: from gshmem_init to gshmem_finalize, and its other ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/base/settings.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/home.h"
#include "runtime/job.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/heap.h"
#include "runtime/memory/multicast.h"
#include "runtime/memory/registration.h"
#include "runtime/memory/symmetric.h"
#include "runtime/proxy/kernels.h"
#include "runtime/stream.h"
#include "runtime/team/team.h"
#include "runtime/wait.h"

/* Recursive: what is loaded while a job begins may bring kernels. */
static pthread_mutex_t init_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int depth;                       /* gshmem_init calls not yet finalized */
static struct bootstrap *starter;       /* kept for the next job of this process */
static pid_t owner;                     /* the process that initialised; not its children */

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
    device_heap_stop(j);
    device_stop(j);
    host_stop(&j->host);
    free(j->heap_peer);
    free(j->data_peer);
    free(j->system_peer);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

/* A starter named by the program serves one job; one found in the environment serves all jobs of the
 * process. */
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

/* Whether all hosts are on one machine: the first and the last speak for those between them, so
 * that this costs the same in any job. It decides how PEs wait, and nothing else. */
static gshmem_status_t compare_machines(struct job *j, uint64_t own, uint64_t first)
{
    struct job_blob last;
    gshmem_status_t status;

    if (j->bootstrap->one_machine || !own || first != own)
        return GSHMEM_OK;
    if (!(status = job_fetch(j, j->n_pes - 1, &last)) && last.machine == own)
        host_join_machine(&j->host, j->bootstrap);
    return status;
}

/* Tells the other PEs how to reach this one, and learns what it needs to know of them: one round of
 * the starter. */
static gshmem_status_t exchange(struct job *j, struct rendezvous_address *leader,
                                unsigned char secret[32])
{
    struct bootstrap *b = j->bootstrap;
    struct job_blob own = {.data_segments = (uint32_t)j->data.n,
                           .data_digest = j->data.digest,
                           .machine = host_machine()};
    struct job_blob theirs;
    bool alone = b->n_hosts == 1;
    gshmem_status_t status;
    size_t bytes = 0;

    if ((status = host_open(&j->host, b, &own.rendezvous)) ||
        (status = network_open(j, own.transport, sizeof own.transport, &bytes)))
        return status;
    if (!alone && j->pe == 0 && getrandom(own.secret, sizeof own.secret, 0) != sizeof own.secret)
        return fail(GSHMEM_ERR_SYSTEM, "start-up: getrandom: %s", strerror(errno));
    own.transport_bytes = (uint32_t)bytes;
    bytes += offsetof(struct job_blob, transport);
    if (alone && j->host.index != 0)
        bytes = 0; /* nobody will ask */
    if ((status = b->ops->publish(b, &own, bytes)) || (status = b->ops->fence(b)))
        return status;
    theirs = own;
    if (j->host.index != 0 && (status = job_fetch(j, j->host.pe[0], &theirs)))
        return status;
    *leader = theirs.rendezvous;
    if (!alone && (status = job_fetch(j, 0, &theirs)))
        return status;
    memcpy(secret, theirs.secret, 32);
    return alone ? GSHMEM_OK : compare_machines(j, own.machine, theirs.machine);
}

/* Moves the program's variables into the memory that the host shares. */
static gshmem_status_t share_data(struct job *j)
{
    const struct host_layout *layout = &j->host.layout;
    gshmem_status_t status = GSHMEM_OK;

    if (j->data.bytes > layout->data_bytes) {
        log_warn("the variables of this program (%zu KiB) are not symmetric: the lowest PE of this "
                 "host runs another program and has room for %zu KiB",
                 j->data.bytes >> 10, (size_t)layout->data_bytes >> 10);
        j->data = (struct data_segments){.n = 0};
    }
    for (int i = 0; i < j->data.n && !status; i++)
        status = data_share(&j->data.segment[i], j->host.fd,
                            host_data_offset(layout, j->host.index) + j->data.segment[i].offset);
    return status;
}

static void tell(const struct job *j)
{
    log_info("PE %d of %d, %d on this host (%d CPUs%s), started by %s; heap up to %zu MiB; %d "
             "segments of program data, %zu KiB",
             j->pe, j->n_pes, j->host.n, j->host.cpus,
             !j->host.crowded    ? ""
             : j->host.contained ? ", which PEs of all hosts share"
                                 : ", so PEs share them",
             j->bootstrap->ops->name, (size_t)j->host.layout.heap_bytes >> 20, j->data.n,
             j->data.bytes >> 10);
}

/* All that can fail between knowing who this PE is and being part of the job. */
static gshmem_status_t join(struct job *j)
{
    struct rendezvous_address leader;
    unsigned char secret[32];
    gshmem_status_t status;

    if ((status = data_find(&j->data)) || (status = exchange(j, &leader, secret)))
        return status;
    wait_calibrate(j->host.crowded, network_is_far(j->network), j->host.contained);
    if ((status = host_share(&j->host, &leader)) || (status = share_data(j)) ||
        (status = device_start(j)) || (status = device_heap_prepare(j)) ||
        (status = host_join(&j->host, j->pe, (uint32_t)j->data.n, j->data.digest)) ||
        (status = job_map_peers(j)) || (status = device_heap_start(j)) ||
        (status = network_start(j, secret)) || (status = team_start(j)))
        return status;
    if ((status = heap_start(j)) || (status = registration_start(j)) ||
        (status = symmetric_start(j)))
        return status;
    /* The first of them makes it for all. */
    multicast_begin(j, j->team[GSHMEM_TEAM_HOST]);
    multicast_begin(j, j->team[GSHMEM_TEAM_SHARED]);
    multicast_begin(j, j->team[GSHMEM_TEAM_WORLD]);
    return GSHMEM_OK;
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

    struct job *j = calloc(1, sizeof *j);
    if (!j) {
        let_go_of_starter(b);
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    }
    *j = (struct job){.pe = b->pe,
                      .n_pes = b->n_pes,
                      .thread_level = attr->thread_level,
                      .bootstrap = b,
                      .host = {.fd = -1, .rendezvous.fd = -1}};
    pthread_mutex_init(&j->lock, NULL);
    job = j; /* waits look at it */
    if (!(status = join(j))) {
        context_start(j);
        status = kernels_start(j);
    }
    if (status) {
        context_stop(j);
        job = NULL;
        free_job(j);
        let_go_of_starter(b);
        return status;
    }
    home_find(&j->host, b);
    tell(j);
    return GSHMEM_OK;
}

/* ---- End ---- */

static gshmem_status_t stop_job(void)
{
    struct bootstrap *b = job->bootstrap;
    struct job *j = job;
    gshmem_status_t status = streams_drain(), met = context_quiet_all(j, "gshmem_finalize");

    status = status ? status : met;
    network_expect_end(j->network);
    /* After this barrier nobody touches this PE's memory, so it can go. */
    met = gshmem_barrier_all();
    status = status ? status : met;
    kernels_retire(j);
    if (j->device_heap) {
        /* Memory that others still map must not go: CUDA IPC says so. */
        device_heap_leave(j);
        met = gshmem_barrier_all();
        status = status ? status : met;
    }
    network_stop(j); /* before the contexts: what could not be completed ends in them */
    context_stop(j);
    job = NULL;
    free_job(j);
    let_go_of_starter(b);
    log_identify(-1);
    return status;
}

/* A program that returns from main has finished in good order; one that exits with a failure has
 * not, and its peers must not wait for it. */
static void at_exit(int status, void *unused)
{
    (void)unused;
    if (getpid() != owner)
        return;
    if (job && host_exit_status(&job->host, &status)) {
        /* The job has been given a status; a PE that then fails for that reason does not change it. */
        fflush(NULL);
        _exit(status);
    }
    if (job && status != 0) {
        char why[64];
        snprintf(why, sizeof why, "PE %d exited with status %d before gshmem_finalize", job->pe,
                 status);
        log_error("%s", why);
        host_abort(&job->host, job->pe, status, why);
        job->bootstrap->ops->abort(job->bootstrap, status, why);
        return;
    }
    if (job)
        stop_job();
    if (starter)
        starter->ops->close(starter);
    starter = NULL;
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
    static bool registered;
    gshmem_status_t status = check_attr(attr);

    if (status)
        return status;
    pthread_mutex_lock(&init_lock);
    if (depth == 0) {
        status = start_job(attr);
        owner = getpid();
        if (!registered)
            registered = on_exit(at_exit, NULL) == 0;
    }
    if (!status)
        depth++;
    pthread_mutex_unlock(&init_lock);
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

    pthread_mutex_lock(&init_lock);
    if (depth == 0)
        status = job_require("gshmem_finalize");
    else if (--depth == 0)
        status = stop_job();
    pthread_mutex_unlock(&init_lock);
    return status;
}

struct job *job_hold(void)
{
    pthread_mutex_lock(&init_lock);
    return depth > 0 ? job : NULL;
}

void job_let_go(void)
{
    pthread_mutex_unlock(&init_lock);
}

int gshmem_initialized(void)
{
    return job != NULL;
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
