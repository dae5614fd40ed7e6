/* The beginning of a job: life_start is the list of what happens. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/choose.h"
#include "gshmem.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/nvshmem_settings.h"
#include "runtime/base/settings.h"
#include "runtime/base/system.h"
#include "runtime/greet.h"
#include "runtime/job/job.h"
#include "runtime/job/ranges.h"
#include "runtime/life.h"
#include "runtime/memory/checked.h"
#include "runtime/memory/data.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/heap.h"
#include "runtime/memory/map.h"
#include "runtime/memory/map_fill.h"
#include "runtime/memory/place.h"
#include "runtime/memory/registration.h"
#include "runtime/memory/symmetric.h"
#include "runtime/network/answer.h"
#include "runtime/network/blobs.h"
#include "runtime/network/crash.h"
#include "runtime/network/network.h"
#include "runtime/network/wait.h"
#include "runtime/node/affinity.h"
#include "runtime/node/choose_device.h"
#include "runtime/node/node.h"
#include "runtime/node/pretend.h"
#include "runtime/node/rendezvous.h"
#include "runtime/node/where_page.h"
#include "runtime/operations/indexed.h"
#include "runtime/operations/lock_turns.h"
#include "runtime/operations/malloc.h"
#include "runtime/proxy/kernels.h"
#include "runtime/proxy/modules.h"
#include "runtime/proxy/kernel_trace.h"
#include "runtime/races/races.h"
#include "runtime/stats/stats.h"
#include "runtime/teams/context.h"
#include "runtime/teams/departures.h"
#include "runtime/teams/multicast.h"
#include "runtime/teams/slots.h"
#include "runtime/teams/team.h"
#include "runtime/teams/unique_id.h"
#include "runtime/trace/trace.h"

struct life life = {.given_status = -1};

/* The lowest PE of a node decides how much room each of its PEs has for the program's variables: as
 * much as it needs itself, and this for PEs that run another program. Room costs addresses only. */
enum { DATA_SPARE = 64 << 20 };

void life_free_job(struct job *j)
{
    ranges_stop();
    kernel_trace_end();
    trace_stop();
    answer_stop(j);
    crash_end();
    network_stop(j);
    kernels_stop(j);
    indexed_stop(j); /* behind the network, in which batches may have been */
    symmetric_stop(j);
    registration_stop(j);
    malloc_stop(j);
    heap_stop(j);
    multicast_stop(j);
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
    races_stop(j);
    pretend_no_more(j->pretended);
    stats_free(j->stats);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

/* No other process would end this one, whether it computes or waits. A start or an end that is in
 * progress is given a moment to complete. */
static void launcher_lost(const char *why)
{
    bool quiet = false;

    for (int i = 0; i < 100 && !(quiet = pthread_mutex_trylock(&job_life) == 0); i++)
        clock_sleep(10 * CLOCK_MS);
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
        .info = log_info_bootstrap,
        .timeout_seconds = (int)settings_number(SETTING_INIT_TIMEOUT),
        .mpi_comm = attr->mpi_comm,
        .uid = attr->uid,
        .pe = attr->pe,
        .n_pes = attr->n_pes,
        .lost = launcher_lost,
    };
    bool given = attr->mpi_comm || attr->uid;
    gshmem_status_t status;

    if (!given && life.starter) {
        *out = life.starter;
        return GSHMEM_OK;
    }
    if ((status = bootstrap_open(&request, out)))
        return status;
    if (!given)
        life.starter = *out;
    return GSHMEM_OK;
}

void life_let_go_of_starter(struct bootstrap *b)
{
    if (b != life.starter)
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
    if ((status = blobs_fetch(j->blobs, j->n_pes - 1, &last)) ||
        (!one_machine && last.machine != own))
        return status;
    j->node->apart = first->cpus != last.cpus;
    if (!one_machine)
        node_join_machine(j->node, j->bootstrap);
    return GSHMEM_OK;
}

static uint64_t init_digest(uint64_t digest, const unsigned char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        digest = (digest ^ from[i]) * 0x100000001b3u;
    return digest;
}

/* From what PE 0 has chosen at random: a token where its node has other PEs, a key where the job
 * has other nodes. */
static uint64_t init_token(const struct pe_blob *first)
{
    uint64_t number = 0xcbf29ce484222325u;

    number = init_digest(number, first->rendezvous.token, sizeof first->rendezvous.token);
    return init_digest(number, first->public_key, sizeof first->public_key);
}

static uint64_t number_of_job(const struct pe_blob *first, bool single)
{
    uint64_t number;

    return single && system_random(&number, sizeof number) ? number : init_token(first);
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

/* The last parts of a PE's system memory: the page of what its threads wait for, what it shows of
 * its counts, the records of its ids of teams, and what exists once it is touched: kernels' blocks
 * and those of later teams. */
static size_t where_offset(const struct job *j)
{
    return (j->departures->table + departures_system_bytes(j->n_pes) + 63) / 64 * 64;
}

static size_t counts_offset(const struct job *j)
{
    return (where_offset(j) + sizeof(struct where_page) + 63) / 64 * 64;
}

static size_t team_ids_offset(const struct job *j)
{
    return (counts_offset(j) + counts_shown_bytes(j->n_pes) + 63) / 64 * 64;
}

static size_t kernels_offset(const struct job *j)
{
    const size_t page = 4096;

    return (team_ids_offset(j) + unique_id_system_bytes(j->n_pes) + page - 1) / page * page;
}

static size_t later_teams_offset(const struct job *j)
{
    return kernels_offset(j) + kernels_system_bytes();
}

/* Publishes how to reach this PE, and learns what it needs to know of the others: one exchange of
 * the bootstrap. */
static gshmem_status_t init_exchange(struct job *j, const gshmem_uniqueid_t *uid,
                                     struct rendezvous_address *leader)
{
    struct bootstrap *b = j->bootstrap;
    struct pe_blob own = {.machine = node_machine(),
                          .cpus = node_cpus_digest(),
                          .gathers_counts = j->stats->wanted};
    struct pe_blob theirs;
    gshmem_status_t status, found = data_find(j->data);
    gshmem_status_t split =
        pretend_nodes(j->pretended, b, (int)settings_number(SETTING_PRETENDED_NODES));
    bool alone = b->n_hosts == 1;
    const struct node_needs needs = {
        .system_bytes = later_teams_offset(j) + team_later_bytes(),
        .data_bytes = j->data->bytes + DATA_SPARE,
        .nic_heap = network_may_have_nics(b->n_hosts),
    };
    size_t bytes = 0, lane_bytes = 0;

    j->gpu_kernels = modules_any("cuda");
    if ((status = split) || (status = node_open(j->node, b, &needs, &own.rendezvous)) ||
        (status = found) ||
        (status =
             network_open(j, uid, own.transport, sizeof own.transport, &bytes, &lane_bytes,
                          own.public_key)))
        return exchange_failure(j, status);
    if ((status = races_open(j, init_token(&own), &own.races_pid)))
        return exchange_failure(j, status);
    own.data_segments = (uint8_t)j->data->n;
    own.data_digest = j->data->digest;
    own.transport_bytes = (uint8_t)bytes;
    own.lane_bytes = (uint8_t)lane_bytes;
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
    j->number = number_of_job(&theirs, j->n_pes == 1); /* theirs: of PE 0 */
    j->stats->gathers = theirs.gathers_counts;
    if ((status = races_join(j, init_token(&theirs), theirs.races_pid)))
        return status;
    return alone ? GSHMEM_OK : compare_machines(j, own.machine, &theirs);
}

/* Moves the program's variables into the memory that the node shares. Other PEs have been told of
 * them already, so that a PE cannot go on without. */
static gshmem_status_t share_data(struct job *j)
{
    const struct node_layout *layout = &j->node->layout;
    gshmem_status_t status = GSHMEM_OK;

    if (j->data->bytes > layout->data_bytes)
        return fail(GSHMEM_ERR_MEMORY,
                    "start-up: the variables of this program (%zu KiB) are larger than those of "
                    "the lowest PE of this node, which runs another program, by more than %d KiB: "
                    "start the program with the most variables as the lowest PE of each node",
                    j->data->bytes >> 10, DATA_SPARE >> 10);
    for (int i = 0; i < j->data->n && !status; i++)
        status = data_share(&j->data->segment[i], j->node->fd,
                            node_data_offset(layout, j->node->index) + j->data->segment[i].offset);
    return status;
}

static void init_tell(const struct job *j)
{
    log_info("PE %d of %d, %d on this node (%d CPUs%s), started by %s; heap up to %zu MiB; %d "
             "segments of program data, %zu KiB",
             j->pe, j->n_pes, j->node->n, j->node->cpus,
             !j->node->oversubscribed    ? ""
             : j->node->contained ? ", which PEs of all nodes share"
                                 : ", so PEs share them",
             j->bootstrap->ops->name, (size_t)j->node->layout.heap_bytes >> 20, j->data->n,
             j->data->bytes >> 10);
}

static gshmem_status_t start_checks(struct job *j)
{
    if (settings_number(SETTING_CHECK) != CHOICE_CHECK_MEMORY)
        return races_start(j);
    if (!(j->checked = checked_start()))
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for GSHMEM_CHECK=memory");
    for (int i = 0; i < j->data->n; i++)
        checked_enter_variables(j->checked, j->data->segment[i].base, j->data->segment[i].bytes);
    return GSHMEM_OK;
}

static void start_trace(const struct job *j)
{
    const struct memory_map *map = j->map;
    struct trace_owner owner = {
        .pe = j->pe, .n_pes = j->n_pes, .node = j->node->pe[0], .job = j->number};

    for (int i = 0; i < map->segments && i < TRACE_SEGMENTS; i++)
        owner.segment[i] = (struct trace_segment){map->segment[i].base, map->segment[i].bytes};
    trace_start(&owner);
    ranges_start();
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
    where_page_begin(j->node, where_offset(j), j->pe);
    j->stats->shown_at = counts_offset(j);
    j->team_ids->at = team_ids_offset(j);
    j->kernels_at = kernels_offset(j);
    j->later_at = later_teams_offset(j);
    answer_start(j);
    crash_begin(j->pe);
    j->gpu_kernels = modules_any("cuda"); /* what has been loaded since may have brought some */
    self.data_segments = (uint32_t)j->data->n;
    self.data_digest = j->data->digest;
    if ((status = device_start(j, kernels_add_module, gshmem_device_unregister)) ||
        (status = device_heap_prepare(j, kernels_system_bytes())) ||
        (status = node_join(j->node, &self, network_await)))
        return status;
    /* now agreed */
    wait_calibrate(j->node->oversubscribed, network_is_needed(j->network), j->node->contained);
    if ((status = map_fill(j)) || (status = place_heap(j)))
        return status;
    start_trace(j);
    j->observed = trace_is_on() || j->stats->wanted || j->races ||
                  settings_number(SETTING_CHECK) == CHOICE_CHECK_MEMORY;
    if ((status = device_heap_start(j, network_await, symmetric_imported)) ||
        (status = network_start(j)) || (status = start_checks(j)) || (status = team_start(j)) ||
        (status = departures_start(j)))
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
    struct team_ids team_ids;
    struct departures departures;
    struct pretended pretended;
};

static void life_abort_job(struct job *j, int *exit_status, const char *why)
{
    node_abort(j->node, j->pe, *exit_status, why);
    node_exit_status(j->node, exit_status);
    j->bootstrap->ops->abort(j->bootstrap, *exit_status, why);
}

static void life_end_node(struct job *j, int exit_status, const char *why)
{
    node_abort(j->node, j->pe, exit_status, why);
}

static bool life_has_ended(const struct job *j, int *exit_status)
{
    return node_exit_status(j->node, exit_status);
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
    parts->job.team_ids = &parts->team_ids;
    parts->job.departures = &parts->departures;
    parts->job.pretended = &parts->pretended;
    parts->job.observer = &kernels_observer;
    parts->job.waits = &teams_wait_hooks;
    parts->job.abort = life_abort_job;
    parts->job.end_node = life_end_node;
    parts->job.has_ended = life_has_ended;
    parts->departures.table = team_system_bytes();
    parts->node.fd = parts->node.rendezvous.fd = -1;
    blobs_open(&parts->blobs, b);
    pthread_mutex_init(&parts->job.lock, NULL);
    return &parts->job;
}

gshmem_status_t life_start(const gshmem_init_attr_t *attr)
{
    gshmem_status_t status;
    struct bootstrap *b;

    if ((status = settings_load()) || (status = find_starter(attr, &b)))
        return status;
    log_identify(b->pe);
    error_be_strict(settings_number(SETTING_CHECK) == CHOICE_CHECK_STRICT);
    if (b->pe == 0) {
        settings_warn_unknown();
        nvshmem_settings_warn();
        greet(stdout);
    }

    struct job *j = new_job(b, attr->thread_level);
    if (!j || !(j->stats = stats_new(b->n_pes, counts_wanted())) || !counts_begin(j)) {
        if (j)
            stats_free(j->stats);
        free(j);
        life_let_go_of_starter(b);
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    }
    job = j; /* waits read it */
    if (!(status = indexed_start(j)) && !(status = init_join(j, attr->uid)) &&
        !(status = context_start(j)))
        status = kernels_start(j);
    if (status) {
        answer_stop(j); /* it reads what ends here */
        /* The others may have completed their start-up, and would wait for this PE. */
        network_fail(j);
        node_fail(j->node, j->pe);
        network_stop(j); /* before the contexts, as at the end of a job */
        context_stop(j);
        races_close(j);
        job = NULL;
        life_free_job(j);
        life_let_go_of_starter(b);
        return status;
    }
    affinity_begin(j->node, b);
    if ((status = stats_reset(j->stats))) /* what the start has done is not counted */
        log_warn("the counts of this PE include its start");
    init_tell(j);
    life.given_status = -1;
    return GSHMEM_OK;
}
