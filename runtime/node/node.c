#define _GNU_SOURCE
#include "runtime/node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/file_limit.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/node/kept.h"
#include "runtime/where/record.h"

enum { HUGE_PAGE = 2 << 20 };

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

/* ---- The PEs of this node ---- */

static struct node_cpus own_cpus(void)
{
    struct node_cpus own = {{0}};
    cpu_set_t mask;

    _Static_assert(CPU_SETSIZE <= 64 * sizeof own.word / sizeof own.word[0], "a mask fits");
    if (sched_getaffinity(0, sizeof mask, &mask) != 0)
        return own;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        own.word[cpu / 64] |= (uint64_t)(CPU_ISSET(cpu, &mask) != 0) << cpu % 64;
    return own;
}

uint64_t node_cpus_digest(void)
{
    struct node_cpus own = own_cpus();
    uint64_t digest = 0xcbf29ce484222325; /* FNV-1a, by words */

    for (size_t w = 0; w < sizeof own.word / sizeof own.word[0]; w++)
        digest = (digest ^ own.word[w]) * 0x100000001b3;
    return digest;
}

/* The CPUs of this node's PEs. Other nodes of the machine use the same ones, or as many for each PE
 * of their own. */
static void count_cpus(struct node *node, const struct node_cpus *cpus)
{
    int online = (int)sysconf(_SC_NPROCESSORS_ONLN), n = 0;

    for (size_t w = 0; w < sizeof cpus->word / sizeof cpus->word[0]; w++)
        n += __builtin_popcountll(cpus->word[w]);
    if (n == 0)
        n = online;
    else if (node->apart && (n = (int)((int64_t)n * node->sharers / node->n)) > online)
        n = online;
    node->cpus = n;
    node->oversubscribed = node->sharers > node->cpus;
}

/* A launcher that binds gives every PE CPUs of its own, and the masks can differ in size. Their
 * union says how many CPUs there are, and is the same on all PEs. */
static void agree_on_cpus(struct node *node)
{
    struct node_cpus all = {{0}};
    bool known = true;

    for (int i = 0; i < node->n; i++) {
        const struct node_cpus *theirs = &node->control->member[i].cpus;
        uint64_t any = 0;
        for (size_t w = 0; w < sizeof all.word / sizeof all.word[0]; w++) {
            all.word[w] |= theirs->word[w];
            any |= theirs->word[w];
        }
        known &= any != 0;
    }
    if (!known)
        all = (struct node_cpus){{0}};
    count_cpus(node, &all);
}

static gshmem_status_t find_neighbours(struct node *node, const struct bootstrap *b)
{
    node->index_of = malloc((size_t)b->n_pes * sizeof *node->index_of);
    if (!node->index_of)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", b->n_pes);
    node->n = node->index = 0;
    for (int pe = 0; pe < b->n_pes; pe++) {
        if (pe == b->pe)
            node->index = node->n;
        node->index_of[pe] = b->host[pe] == b->host[b->pe] ? node->n++ : -1;
    }

    node->pe = malloc((size_t)node->n * sizeof *node->pe);
    if (!node->pe)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", b->n_pes);
    for (int pe = 0; pe < b->n_pes; pe++) {
        if (node->index_of[pe] >= 0)
            node->pe[node->index_of[pe]] = pe;
    }
    node->sharers = b->one_machine ? b->n_pes : node->n;
    struct node_cpus own = own_cpus();
    count_cpus(node, &own);
    return GSHMEM_OK;
}

uint64_t node_machine(void)
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

void node_join_machine(struct node *node, const struct bootstrap *b)
{
    node->contained = true;
    for (int pe = 0; pe < b->n_pes; pe++)
        node->before += b->host[pe] < b->host[b->pe];
    node->sharers = b->n_pes;
    struct node_cpus own = own_cpus();
    count_cpus(node, &own);
}

int node_turn(const struct node *node, const struct bootstrap *b, int cpus)
{
    if (node->contained && node->apart)
        return (int)((int64_t)node->index * cpus / node->n);
    if (node->contained)
        return (int)((int64_t)(node->before + node->index) * cpus / b->n_pes);
    return (b->one_machine ? b->pe : node->index) % cpus;
}

/* ---- Sizes ---- */

/* The number that a file contains, or 0. */
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

uint64_t node_memory_bytes(void)
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

/* The heap's limit was asked for, and this machine has less. Addresses alone cost nothing, so that
 * a program whose objects are fewer runs all the same. */
static void warn_of_limit(uint64_t limit, int n)
{
    const enum setting s = settings_number(SETTING_HEAP_SIZE) < (int64_t)limit
                               ? SETTING_HEAP_MAX
                               : SETTING_HEAP_SIZE;
    const uint64_t bytes = node_memory_bytes();

    if (limit > bytes / (uint64_t)n)
        log_warn("%s=%s lets the symmetric heaps of the %d PEs of this node grow to %llu MiB in "
                 "all, and this machine has %llu MiB of memory: objects beyond that end the job",
                 settings_source(s), settings_string(s), n,
                 (unsigned long long)(limit >> 20) * (unsigned)n, (unsigned long long)bytes >> 20);
}

static uint64_t heap_limit(int n)
{
    uint64_t most = (uint64_t)settings_number(SETTING_HEAP_MAX);
    uint64_t least = (uint64_t)settings_number(SETTING_HEAP_SIZE);

    if (most == 0) {
        most = node_memory_bytes() / (uint64_t)n / HUGE_PAGE * HUGE_PAGE;
        if (most < 64u << 20)
            most = 64u << 20;
    } else if (least > most) {
        log_warn("%s is larger than GSHMEM_HEAP_MAX; the heap may grow to %s",
                 settings_source(SETTING_HEAP_SIZE), settings_string(SETTING_HEAP_SIZE));
    }
    most = whole_pages(least > most ? least : most);
    if (settings_number(SETTING_HEAP_MAX) || least)
        warn_of_limit(most, n);
    return most;
}

static void node_plan(struct node *node, int n_pes, const struct node_needs *needs)
{
    node->layout = (struct node_layout){
        .control_bytes =
            whole_pages(sizeof(struct node_control) + (size_t)node->n * sizeof(struct node_member) +
                        (size_t)n_pes * sizeof *node->lost),
        .system_bytes = whole_pages(needs->system_bytes),
        .data_bytes = whole_pages(needs->data_bytes),
        .heap_bytes = heap_limit(node->n),
    };
    if (needs->nic_heap)
        node->layout.nic_bytes = node->layout.heap_bytes;
}

/* ---- One file for all ---- */

static size_t arena_bytes(const struct node *node)
{
    return node_system_offset(&node->layout, node->n);
}

gshmem_status_t node_open(struct node *node, const struct bootstrap *b,
                          const struct node_needs *needs, struct rendezvous_address *address)
{
    gshmem_status_t status;

    node->fd = -1;
    node->rendezvous.fd = -1;
    memset(address, 0, sizeof *address);
    if ((status = find_neighbours(node, b)) || node->index != 0)
        return status;
    node_plan(node, b->n_pes, needs);
    if ((status = device_arena_create(arena_bytes(node), &node->fd)))
        return status;
    if (node->n > 1 && !(status = rendezvous_open(&node->rendezvous)))
        *address = node->rendezvous.address;
    return status;
}

gshmem_status_t node_share(struct node *node, const struct rendezvous_address *leader)
{
    int seconds = (int)settings_number(SETTING_INIT_TIMEOUT);
    gshmem_status_t status = GSHMEM_OK;
    void *at;

    if (node->index != 0)
        status = rendezvous_ask(leader, node->index, seconds, &node->layout, sizeof node->layout,
                                &node->fd);
    else if (node->n > 1)
        status = rendezvous_serve(&node->rendezvous, node->pe, node->n, seconds, &node->layout,
                                  sizeof node->layout, node->fd);
    if (node->rendezvous.fd >= 0)
        rendezvous_close(&node->rendezvous);
    node->rendezvous.fd = -1;
    if (status)
        return status;
    node->arena_bytes = arena_bytes(node);
    size_t heap = node_heap_offset(&node->layout, node->index);
    if ((status = device_arena_map(node->fd, node->arena_bytes, heap, &at)))
        return status;
    node->arena = at;
    node->control = at;
    node->lost = (_Atomic bool *)(node->control->member + node->n);
    return GSHMEM_OK;
}

/* ---- Liveness ---- */

bool node_alive(struct node *node, int index)
{
    struct node_member *m = &node->control->member[index];

    /* acquire: pairs with the release in node_join, node_fail and node_leave */
    uint32_t state = atomic_load_explicit(&m->state, memory_order_acquire);

    if (index == node->index || state == NODE_ABSENT || state == NODE_LEFT)
        return true;
    if (state == NODE_FAILED)
        return false;
    if (liveness_of(&node->liveness, node->fd, index))
        return true;
    /* it may have left just now, which is not a death */
    return atomic_load_explicit(&m->state, memory_order_acquire) == NODE_LEFT;
}

bool node_has_failed(const struct node *node)
{
    return node->control && atomic_load_explicit(&node->control->member[node->index].state,
                                                 memory_order_relaxed) == NODE_FAILED;
}

const char *node_fate(const struct node *node, int index)
{
    return atomic_load_explicit(&node->control->member[index].state, memory_order_acquire) ==
                   NODE_FAILED
               ? "has failed in gshmem_init or gshmem_finalize"
               : "has died";
}

/* Whether all PEs up to the first that has failed have joined. */
struct joining {
    const struct node *node;
    int joined;
    uint32_t state; /* of the one that joined last, or failed */
};

static bool node_have_joined(void *context)
{
    struct joining *j = context;

    while (j->joined < j->node->n) {
        /* acquire: pairs with the release in node_join and node_fail */
        j->state =
            atomic_load_explicit(&j->node->control->member[j->joined].state, memory_order_acquire);
        if (j->state == NODE_ABSENT || j->state == NODE_FAILED)
            return j->state == NODE_FAILED;
        j->joined++;
    }
    return true;
}

gshmem_status_t node_join(struct node *node, const struct node_self *self, await_fn *await)
{
    const uint64_t limit = (uint64_t)settings_number(SETTING_INIT_TIMEOUT) * 1000000000u;
    struct node_member *me = &node->control->member[node->index];
    gshmem_status_t status = liveness_begin(&node->liveness, node->fd, node->index);
    struct joining others = {.node = node};

    if (status)
        return status;
    me->pe = self->pe;
    me->pid = getpid();
    me->data_segments = self->data_segments;
    me->data_digest = self->data_digest;
    me->cpus = own_cpus();
    me->heap_base = self->heap_base;
    /* release: a PE that sees the state sees the fields and the lock */
    atomic_store_explicit(&me->state, NODE_HERE, memory_order_release);

    status = await("gshmem_init", GSHMEM_TEAM_INVALID, limit, node_have_joined, &others);
    if (!status && others.state == NODE_FAILED)
        status = fail(GSHMEM_ERR_PEER_DEAD, "gshmem_init: PE %d (process %d) %s",
                      node->pe[others.joined], (int)node->control->member[others.joined].pid,
                      node_fate(node, others.joined));
    if (!status)
        agree_on_cpus(node);
    return status;
}

bool node_lose(struct node *node, int pe)
{
    if (atomic_exchange_explicit(&node->lost[pe], true, memory_order_relaxed))
        return false;
    /* release: a PE that sees the count sees the flag */
    atomic_fetch_add_explicit(&node->control->losses, 1, memory_order_release);
    return true;
}

void node_abort(struct node *node, int pe, int exit_status, const char *why)
{
    uint32_t nobody = 0;

    if (!node->control)
        return;
    /* The text is for people; a wait that reads it half-written only prints it so. */
    if (atomic_load_explicit(&node->control->aborted, memory_order_relaxed) == 0) {
        node->control->aborted_by = pe;
        snprintf(node->control->why, sizeof node->control->why, "%s", why);
    }
    /* release: pairs with the acquire in check_aborted (wait.c) */
    atomic_compare_exchange_strong_explicit(&node->control->aborted, &nobody,
                                            1u + (uint32_t)(exit_status & 0xff),
                                            memory_order_release, memory_order_relaxed);
}

bool node_exit_status(const struct node *node, int *exit_status)
{
    /* acquire: pairs with the release in node_abort */
    uint32_t aborted =
        node->control ? atomic_load_explicit(&node->control->aborted, memory_order_acquire) : 0;

    if (aborted)
        *exit_status = (int)aborted - 1;
    return aborted != 0;
}

/* The same for a PE that has the file, but could not map it: the others see the state in the
 * file. */
static void fail_in_file(const struct node *node)
{
    const size_t at =
        offsetof(struct node_control, member) + (size_t)node->index * sizeof(struct node_member);
    const int32_t pid = getpid();
    const uint32_t failed = NODE_FAILED;

    if (!file_limit_allows(at + sizeof(struct node_member)) ||
        pwrite(node->fd, &pid, sizeof pid, (off_t)(at + offsetof(struct node_member, pid))) !=
            sizeof pid ||
        pwrite(node->fd, &failed, sizeof failed,
               (off_t)(at + offsetof(struct node_member, state))) != sizeof failed)
        log_warn("start-up: the other PEs of this node cannot be told of the failure: %s",
                 strerror(errno));
}

void node_fail(struct node *node, int pe)
{
    if (!node->control && node->fd >= 0) {
        fail_in_file(node);
        return;
    }
    if (!node->control)
        return;
    node->control->member[node->index].pid = getpid();
    /* release: pairs with the acquire in node_alive and node_have_joined */
    atomic_store_explicit(&node->control->member[node->index].state, NODE_FAILED,
                          memory_order_release);
    node_lose(node, pe);
}

void node_leave(struct node *node)
{
    uint32_t here = NODE_HERE;

    /* release: pairs with the acquire in node_alive */
    if (node->page)
        node->page->leaving = WHERE_LEFT;
    atomic_compare_exchange_strong_explicit(&node->control->member[node->index].state, &here,
                                            NODE_LEFT, memory_order_release, memory_order_relaxed);
}

void node_stop(struct node *node)
{
    if (node->arena) {
        node_leave(node);
        kept_unmap(node->arena, node->arena_bytes);
    }
    liveness_end(&node->liveness);
    if (node->rendezvous.fd >= 0)
        rendezvous_close(&node->rendezvous);
    if (node->fd >= 0)
        close(node->fd);
    free(node->pe);
    free(node->index_of);
    *node = (struct node){.fd = -1, .rendezvous.fd = -1};
}
