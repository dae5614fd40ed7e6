#define _GNU_SOURCE
#include "runtime/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "runtime/base/file_limit.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/departures.h"
#include "runtime/memory/data.h"
#include "runtime/memory/place.h"
#include "runtime/network.h"
#include "runtime/proxy/kernels.h"
#include "runtime/team/team.h"
#include "runtime/wait.h"

enum { HUGE_PAGE = 2 << 20 };

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

/* ---- Who is here ---- */

static struct host_cpus own_cpus(void)
{
    struct host_cpus own = {{0}};
    cpu_set_t mask;

    _Static_assert(CPU_SETSIZE <= 64 * sizeof own.word / sizeof own.word[0], "a mask fits");
    if (sched_getaffinity(0, sizeof mask, &mask) != 0)
        return own;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        own.word[cpu / 64] |= (uint64_t)(CPU_ISSET(cpu, &mask) != 0) << cpu % 64;
    return own;
}

uint64_t host_cpus_digest(void)
{
    struct host_cpus own = own_cpus();
    uint64_t digest = 0xcbf29ce484222325; /* FNV-1a, by words */

    for (size_t w = 0; w < sizeof own.word / sizeof own.word[0]; w++)
        digest = (digest ^ own.word[w]) * 0x100000001b3;
    return digest;
}

/* These are the CPUs of this host's PEs. Other hosts of the machine use the same ones, or as many for each
 * PE of their own. */
static void count_cpus(struct host *host, const struct host_cpus *cpus)
{
    int online = (int)sysconf(_SC_NPROCESSORS_ONLN), n = 0;

    for (size_t w = 0; w < sizeof cpus->word / sizeof cpus->word[0]; w++)
        n += __builtin_popcountll(cpus->word[w]);
    if (n == 0)
        n = online;
    else if (host->apart && (n = (int)((int64_t)n * host->sharers / host->n)) > online)
        n = online;
    host->cpus = n;
    host->crowded = host->sharers > host->cpus;
}

/* A launcher that binds gives every PE CPUs of its own, and masks can differ in size: only all of them
 * together say how many there are, and only then do all PEs say the same. */
static void agree_on_cpus(struct host *host)
{
    struct host_cpus all = {{0}};
    bool known = true;

    for (int i = 0; i < host->n; i++) {
        const struct host_cpus *theirs = &host->control->member[i].cpus;
        uint64_t any = 0;
        for (size_t w = 0; w < sizeof all.word / sizeof all.word[0]; w++) {
            all.word[w] |= theirs->word[w];
            any |= theirs->word[w];
        }
        known &= any != 0;
    }
    if (!known)
        all = (struct host_cpus){{0}};
    count_cpus(host, &all);
}

static gshmem_status_t find_neighbours(struct host *host, const struct bootstrap *b)
{
    host->index_of = malloc((size_t)b->n_pes * sizeof *host->index_of);
    if (!host->index_of)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", b->n_pes);
    host->n = host->index = 0;
    for (int pe = 0; pe < b->n_pes; pe++) {
        if (pe == b->pe)
            host->index = host->n;
        host->index_of[pe] = b->host[pe] == b->host[b->pe] ? host->n++ : -1;
    }

    host->pe = malloc((size_t)host->n * sizeof *host->pe);
    if (!host->pe)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", b->n_pes);
    for (int pe = 0; pe < b->n_pes; pe++) {
        if (host->index_of[pe] >= 0)
            host->pe[host->index_of[pe]] = pe;
    }
    host->sharers = b->one_machine ? b->n_pes : host->n;
    struct host_cpus own = own_cpus();
    count_cpus(host, &own);
    return GSHMEM_OK;
}

uint64_t host_machine(void)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    uint64_t machine = 0xcbf29ce484222325; /* FNV-1a */
    int c, n = 0;

    while (f && (c = fgetc(f)) != EOF && ++n)
        machine = (machine ^ (uint64_t)c) * 0x100000001b3;
    if (f)
        fclose(f);
    return n ? machine : 0;
}

void host_join_machine(struct host *host, const struct bootstrap *b)
{
    host->contained = true;
    for (int pe = 0; pe < b->n_pes; pe++)
        host->before += b->host[pe] < b->host[b->pe];
    host->sharers = b->n_pes;
    struct host_cpus own = own_cpus();
    count_cpus(host, &own);
}

int host_turn(const struct host *host, const struct bootstrap *b, int cpus)
{
    if (host->contained)
        return (int)((int64_t)(host->before + host->index) * cpus / b->n_pes);
    return (b->one_machine ? b->pe : host->index) % cpus;
}

/* ---- How large ---- */

/* One number from a file that holds one, or 0. */
static uint64_t number_in(const char *path)
{
    unsigned long long value = 0;
    FILE *f = fopen(path, "re");

    if (f) {
        if (fscanf(f, "%llu", &value) != 1)
            value = 0;
        fclose(f);
    }
    return value;
}

uint64_t host_memory_bytes(void)
{
    static const char *const limits[] = {"/sys/fs/cgroup/memory.max",
                                         "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint64_t limit = number_in(limits[i]);
        if (limit && limit < bytes)
            bytes = limit;
    }
    return bytes;
}

static uint64_t heap_limit(int n)
{
    uint64_t most = (uint64_t)settings_number(SETTING_HEAP_MAX);
    uint64_t least = (uint64_t)settings_number(SETTING_HEAP_SIZE);

    if (most == 0) {
        most = host_memory_bytes() / (uint64_t)n / HUGE_PAGE * HUGE_PAGE;
        if (most < 64u << 20)
            most = 64u << 20;
    } else if (least > most) {
        log_warn("%s is larger than GSHMEM_HEAP_MAX; the heap may grow to %s",
                 settings_source(SETTING_HEAP_SIZE), settings_string(SETTING_HEAP_SIZE));
    }
    return whole_pages(least > most ? least : most);
}

static gshmem_status_t plan(struct host *host, int n_pes, int n_hosts)
{
    struct data_segments data;
    gshmem_status_t status = data_find(&data);

    if (status)
        return status;
    host->layout = (struct host_layout){
        .control_bytes =
            whole_pages(sizeof(struct host_control) + (size_t)host->n * sizeof(struct host_member) +
                        (size_t)n_pes * sizeof *host->lost),
        .system_bytes = whole_pages(team_system_bytes() + kernels_system_bytes() +
                                    departures_system_bytes(n_pes)),
        .data_bytes = whole_pages(data.bytes),
        .heap_bytes = heap_limit(host->n),
    };
    if (network_may_have_nics(n_hosts))
        host->layout.nic_bytes = host->layout.heap_bytes;
    return GSHMEM_OK;
}

/* ---- One file for all ---- */

static size_t arena_bytes(const struct host *host)
{
    return host_system_offset(&host->layout, host->n);
}

gshmem_status_t host_open(struct host *host, const struct bootstrap *b,
                          struct rendezvous_address *address)
{
    gshmem_status_t status;

    host->fd = -1;
    host->rendezvous.fd = -1;
    memset(address, 0, sizeof *address);
    if ((status = find_neighbours(host, b)) || host->index != 0)
        return status;
    if ((status = plan(host, b->n_pes, b->n_hosts)) ||
        (status = device_arena_create(arena_bytes(host), &host->fd)))
        return status;
    if (host->n > 1 && !(status = rendezvous_open(&host->rendezvous)))
        *address = host->rendezvous.address;
    return status;
}

gshmem_status_t host_share(struct host *host, const struct rendezvous_address *leader)
{
    int seconds = (int)settings_number(SETTING_INIT_TIMEOUT);
    gshmem_status_t status = GSHMEM_OK;
    void *at;

    if (host->index != 0)
        status = rendezvous_ask(leader, host->index, seconds, &host->layout, sizeof host->layout,
                                &host->fd);
    else if (host->n > 1)
        status = rendezvous_serve(&host->rendezvous, host->pe, host->n, seconds, &host->layout,
                                  sizeof host->layout, host->fd);
    if (host->rendezvous.fd >= 0)
        rendezvous_close(&host->rendezvous);
    host->rendezvous.fd = -1;
    if (status)
        return status;
    host->arena_bytes = arena_bytes(host);
    size_t heap = host_heap_offset(&host->layout, host->index);
    if ((status = device_arena_map(host->fd, host->arena_bytes, heap, &at)))
        return status;
    host->arena = at;
    host->control = at;
    host->lost = (_Atomic bool *)(host->control->member + host->n);
    return GSHMEM_OK;
}

/* ---- Who is alive ---- */

bool host_alive(struct host *host, int index)
{
    struct host_member *m = &host->control->member[index];

    /* acquire: pairs with the release in host_join, host_fail and host_leave */
    uint32_t state = atomic_load_explicit(&m->state, memory_order_acquire);

    if (index == host->index || state == HOST_ABSENT || state == HOST_LEFT)
        return true;
    if (state == HOST_FAILED)
        return false;
    if (liveness_of(&host->liveness, host->fd, index))
        return true;
    /* it may have left just now, which is no death */
    return atomic_load_explicit(&m->state, memory_order_acquire) == HOST_LEFT;
}

const char *host_fate(const struct host *host, int index)
{
    return atomic_load_explicit(&host->control->member[index].state, memory_order_acquire) == HOST_FAILED
               ? "has failed in gshmem_init or gshmem_finalize"
               : "has died";
}

/* Waits until the PE with this index has shown itself. */
static gshmem_status_t await_member(struct host *host, int index, struct wait *w)
{
    gshmem_status_t status = GSHMEM_OK;
    uint32_t state;

    /* acquire: pairs with the release in host_join and host_fail */
    while (!(state = atomic_load_explicit(&host->control->member[index].state, memory_order_acquire)) && !status)
        status = wait_step(w);
    if (!status && state == HOST_FAILED)
        status = fail(GSHMEM_ERR_PEER_DEAD, "gshmem_init: PE %d (process %d) %s", host->pe[index],
                      (int)host->control->member[index].pid, host_fate(host, index));
    return status;
}

gshmem_status_t host_join(struct host *host, int pe, uint32_t data_segments, uint64_t data_digest)
{
    struct host_member *me = &host->control->member[host->index];
    gshmem_status_t status = liveness_begin(&host->liveness, host->fd, host->index);
    struct wait w;

    if (status)
        return status;
    me->pe = pe;
    me->pid = getpid();
    me->data_segments = data_segments;
    me->data_digest = data_digest;
    me->cpus = own_cpus();
    me->heap_base = place_wanted();
    /* release: whoever sees this sees the fields and the lock */
    atomic_store_explicit(&me->state, HOST_HERE, memory_order_release);

    wait_begin(&w, "gshmem_init", GSHMEM_TEAM_INVALID);
    w.limit = (uint64_t)settings_number(SETTING_INIT_TIMEOUT) * 1000000000u;
    for (int i = 0; i < host->n && !status; i++)
        status = await_member(host, i, &w);
    if (!status)
        agree_on_cpus(host);
    return status;
}

bool host_lose(struct host *host, int pe)
{
    if (atomic_exchange_explicit(&host->lost[pe], true, memory_order_relaxed))
        return false;
    /* release: who counts it sees it */
    atomic_fetch_add_explicit(&host->control->losses, 1, memory_order_release);
    return true;
}

void host_abort(struct host *host, int pe, int exit_status, const char *why)
{
    uint32_t nobody = 0;

    if (!host->control)
        return;
    /* The text is for people; a wait that reads it half-written only prints it so. */
    if (atomic_load_explicit(&host->control->aborted, memory_order_relaxed) == 0) {
        host->control->aborted_by = pe;
        snprintf(host->control->why, sizeof host->control->why, "%s", why);
    }
    /* release: pairs with the acquire in wait_slowly */
    atomic_compare_exchange_strong_explicit(&host->control->aborted, &nobody,
                                            1u + (uint32_t)(exit_status & 0xff),
                                            memory_order_release, memory_order_relaxed);
}

bool host_exit_status(const struct host *host, int *exit_status)
{
    /* acquire: pairs with the release in host_abort */
    uint32_t aborted =
        host->control ? atomic_load_explicit(&host->control->aborted, memory_order_acquire) : 0;

    if (aborted)
        *exit_status = (int)aborted - 1;
    return aborted != 0;
}

/* The same of a PE that has the file, but could not map it: who has sees it there. */
static void fail_in_file(const struct host *host)
{
    const size_t at = offsetof(struct host_control, member) + (size_t)host->index * sizeof(struct host_member);
    const int32_t pid = getpid();
    const uint32_t failed = HOST_FAILED;

    if (!file_limit_allows(at + sizeof(struct host_member)) ||
        pwrite(host->fd, &pid, sizeof pid, (off_t)(at + offsetof(struct host_member, pid))) != sizeof pid ||
        pwrite(host->fd, &failed, sizeof failed, (off_t)(at + offsetof(struct host_member, state))) != sizeof failed)
        log_warn("start-up: the other PEs of this host cannot be told of the failure: %s", strerror(errno));
}

void host_fail(struct host *host, int pe)
{
    if (!host->control && host->fd >= 0) {
        fail_in_file(host);
        return;
    }
    if (!host->control)
        return;
    host->control->member[host->index].pid = getpid();
    /* release: pairs with the acquire in host_alive and await_member */
    atomic_store_explicit(&host->control->member[host->index].state, HOST_FAILED, memory_order_release);
    host_lose(host, pe);
}

void host_leave(struct host *host)
{
    uint32_t here = HOST_HERE;

    /* release: pairs with the acquire in host_alive */
    atomic_compare_exchange_strong_explicit(&host->control->member[host->index].state, &here, HOST_LEFT,
                                            memory_order_release, memory_order_relaxed);
}

void host_stop(struct host *host)
{
    if (host->arena) {
        host_leave(host);
        device_arena_unmap(host->arena, host->arena_bytes);
    }
    liveness_end(&host->liveness);
    if (host->rendezvous.fd >= 0)
        rendezvous_close(&host->rendezvous);
    if (host->fd >= 0)
        close(host->fd);
    free(host->pe);
    free(host->index_of);
    *host = (struct host){.fd = -1, .rendezvous.fd = -1};
}
