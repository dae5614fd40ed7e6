#define _GNU_SOURCE
#include "runtime/network/answer.h"
#include "runtime/base/thread_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/base/system.h"
#include "runtime/job/job.h"
#include "runtime/job/thread.h"
#include "runtime/network/interrupt.h"
#include "runtime/network/left_alone.h"
#include "runtime/network/network.h"
#include "runtime/network/pages.h"
#include "runtime/network/parts.h"
#include "runtime/network/stacks.h"
#include "runtime/node/node.h"
#include "runtime/node/where_page.h"
#include "runtime/where/socket.h"

enum {
    BACKLOG = 16,
    DEADLINE_MS = 1000, /* for one who has connected to ask, and to take the answer */
    STRANGERS = 32,     /* after so many that were refused each costs this thread a pause */
    PAUSE_NS = 10 * CLOCK_MS,
    LOOK_NS = 600 * CLOCK_MS, /* whether the program's last thread has ended */
};

/* More than gshmemrun takes until it has ended a PE that leaves Ctrl-C to it. */
static const uint64_t INTERRUPTED_NS = 6000 * (uint64_t)CLOCK_MS;

struct answer {
    struct job *job;
    pthread_t thread;
    int fd, wake;
    ino_t socket; /* of fd: a program that closes what it does not know may reuse the number */
    uint64_t began;
    unsigned strangers;
    uint64_t interrupted_at; /* when this thread has noticed it; 0: it has not */
    struct left_alone left_alone; /* a job on one node has no proxy, which else looks */
    atomic_bool stopping;
};

/* ---- One asker ---- */

static bool answer_wait(int fd, short event, uint64_t until)
{
    struct pollfd ready = {.fd = fd, .events = event};
    const uint64_t now = clock_ns();

    return now < until && system_poll(&ready, 1, (int64_t)(until - now)) > 0;
}

static bool answer_send(int fd, const void *from, size_t bytes, uint64_t until)
{
    const char *at = from;

    while (bytes) {
        ssize_t n = system_send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        } else if ((errno != EAGAIN && errno != EINTR) || !answer_wait(fd, POLLOUT, until)) {
            return false;
        }
    }
    return true;
}

static bool answer_receive(int fd, void *to, size_t bytes, uint64_t until)
{
    char *at = to;

    while (bytes) {
        ssize_t n = system_recv(fd, at, bytes, MSG_DONTWAIT);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR) ||
                   !answer_wait(fd, POLLIN, until)) {
            return false;
        }
    }
    return true;
}

static void introduce(const struct answer *a, struct where_answer *out)
{
    const struct job *j = a->job;
    const struct bootstrap *b = j->bootstrap;

    *out = (struct where_answer){
        .magic = WHERE_MAGIC,
        .version = WHERE_VERSION,
        .pe = j->pe,
        .n_pes = j->n_pes,
        .node = b->host[j->pe],
        .nodes = b->n_hosts,
        .pid = getpid(),
        .parent = getppid(),
        .interrupted = interrupt_came(),
        .lasted = clock_ns() - a->began,
        .number = j->number,
    };
    memcpy(out->job, b->job, strnlen(b->job, sizeof out->job - 1));
    memcpy(out->program, j->node->page->program, sizeof out->program);
}

static enum where_life life_of(struct node *node, int index)
{
    switch (atomic_load_explicit(&node->control->member[index].state, memory_order_acquire)) {
    case NODE_ABSENT:
        return WHERE_ABSENT;
    case NODE_LEFT:
        return WHERE_HAS_LEFT;
    case NODE_FAILED:
        return WHERE_HAS_FAILED;
    default:
        return node_alive(node, index) ? WHERE_LIVES : WHERE_HAS_DIED;
    }
}

static bool send_node(const struct answer *a, int fd, uint64_t until)
{
    struct node *node = a->job->node;
    struct where_member *m = calloc(1, sizeof *m);
    bool sent = m != NULL;

    for (int i = 0; sent && i < node->n; i++) {
        const struct where_page *page = where_page_of(node, i);
        m->pe = node->pe[i];
        m->node = a->job->bootstrap->host[m->pe];
        m->life = life_of(node, i);
        m->has_page = page->magic == WHERE_MAGIC && page->version == WHERE_VERSION;
        if (m->has_page)
            pages_copy(page, &m->page);
        m->now = clock_ns();
        sent = answer_send(fd, m, sizeof *m, until);
    }
    free(m);
    return sent;
}

/* Once the job has begun. */
static bool reaches_others(const struct job *j)
{
    return j->team[GSHMEM_TEAM_WORLD] && network_is_needed(j->network);
}

static void answer_one(struct answer *a, int fd)
{
    const uint64_t until = clock_ns() + DEADLINE_MS * (uint64_t)CLOCK_MS;
    struct where_answer answer;
    struct where_ask ask;

    if (!answer_receive(fd, &ask, sizeof ask, until) || ask.magic != WHERE_MAGIC)
        return;
    introduce(a, &answer);
    if (ask.version == WHERE_VERSION && ask.question == WHERE_NODE)
        answer.members = (uint32_t)a->job->node->n;
    if (ask.version == WHERE_VERSION && ask.question == WHERE_OTHERS && reaches_others(a->job))
        answer.members = (uint32_t)(a->job->n_pes - a->job->node->n);
    if (!answer_send(fd, &answer, sizeof answer, until) || ask.version != WHERE_VERSION)
        return;
    where_page_refresh(a->job->node);
    if (ask.question == WHERE_NODE)
        send_node(a, fd, until);
    if (answer.members && ask.question == WHERE_OTHERS) {
        struct where_member *members = pages_fetch(a->job);
        if (members)
            answer_send(fd, members, answer.members * sizeof *members,
                        clock_ns() + DEADLINE_MS * (uint64_t)CLOCK_MS);
        free(members);
    }
    if (ask.question == WHERE_STACKS) {
        static struct where_stacks stacks; /* of this thread alone, and large */
        stacks_take(&stacks);
        answer_send(fd, &stacks, sizeof stacks, until);
    }
}

/* ---- The thread ---- */

static bool answer_is_ours(const struct answer *a)
{
    struct stat st;

    return fstat(a->fd, &st) == 0 && st.st_ino == a->socket;
}

/* gshmemrun ends this PE when it has said where the job stands. It may have been killed, or may not
 * find this PE. */
static void end_if_interrupted(struct answer *a, uint64_t now)
{
    if (!interrupt_came())
        return;
    a->interrupted_at = a->interrupted_at ? a->interrupted_at : now;
    if (now - a->interrupted_at > INTERRUPTED_NS)
        interrupt_end();
}

static void *answer_main(void *argument)
{
    struct answer *a = argument;

    where_page_hide();
    this_thread.unheeded = true; /* nobody waits for what it fetches */
    stacks_prepare();
    for (;;) {
        struct pollfd fds[2] = {{.fd = a->fd, .events = POLLIN}, {.fd = a->wake, .events = POLLIN}};
        where_page_tell_time(a->job->node, clock_ns());
        const int ready = system_poll(fds, 2, LOOK_NS);
        if (ready < 0 && errno != EINTR)
            break;
        end_if_interrupted(a, clock_ns());
        if (!a->job->network || !network_has_proxy(a->job->network))
            left_alone_look(&a->left_alone, clock_ns());
        if (atomic_load_explicit(&a->stopping, memory_order_relaxed) || !answer_is_ours(a))
            break;
        if (ready <= 0)
            continue;
        int fd = descriptor_keep(system_accept(a->fd, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd < 0) {
            clock_sleep(CLOCK_MS); /* no descriptor is free, or who asked has gone */
            continue;
        }
        if (descriptor_peer_is_ours(fd))
            answer_one(a, fd);
        else if (++a->strangers > STRANGERS)
            clock_sleep(PAUSE_NS);
        close(fd);
    }
    where_page_tell_time(a->job->node, 0);
    interrupt_end(); /* gshmemrun cannot learn any more that Ctrl-C has come */
    return NULL;
}

static bool answer_listen(struct answer *a)
{
    const struct node *node = a->job->node;
    struct stat st;

    a->fd = descriptor_keep(system_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK));
    a->wake = descriptor_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (a->fd < 0 || a->wake < 0 || fstat(a->fd, &st) != 0)
        return false;
    a->socket = st.st_ino;
    /* PEs of a node begin at different names, so that they do not all try the same ones. */
    for (int i = node->index % WHERE_SOCKETS, tries = 0; tries < WHERE_SOCKETS; tries++) {
        union {
            struct sockaddr_un unix_name;
            struct sockaddr_storage any;
        } name;
        socklen_t size = where_address(&name.unix_name, (uint32_t)geteuid(), i);
        if (system_bind(a->fd, &name.any, &size, BACKLOG) == 0)
            return true;
        if (errno != EADDRINUSE)
            return false;
        i = (i + node->n) % WHERE_SOCKETS;
        if (tries % 64 == 63)
            i = (i + 1) % WHERE_SOCKETS;
    }
    errno = EADDRINUSE;
    return false;
}

static void answer_free(struct answer *a)
{
    if (a->fd >= 0)
        close(a->fd);
    if (a->wake >= 0)
        close(a->wake);
    free(a);
}

void answer_start(struct job *j)
{
    struct answer *a = calloc(1, sizeof *a);
    sigset_t all, before;
    int error = 0;

    if (!a)
        return;
    *a = (struct answer){.job = j, .fd = -1, .wake = -1, .began = clock_ns()};
    if (!answer_listen(a)) {
        log_info("gshmem-where cannot ask this PE: a Unix socket: %s", strerror(errno));
        answer_free(a);
        return;
    }
    /* Signals are the program's, and are delivered to its threads. */
    thread_signals_blocked(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&a->thread, NULL, answer_main, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        log_info("gshmem-where cannot ask this PE: a thread: %s", strerror(error));
        answer_free(a);
        return;
    }
    pthread_setname_np(a->thread, "gshmem-where");
    if (strcmp(j->bootstrap->ops->name, "run") == 0)
        interrupt_begin();
    j->answer = a;
}

void answer_stop(struct job *j)
{
    struct answer *a = j->answer;
    const uint64_t one = 1;

    if (!a)
        return;
    j->answer = NULL;
    interrupt_end();
    atomic_store_explicit(&a->stopping, true, memory_order_relaxed);
    if (write(a->wake, &one, sizeof one) != sizeof one)
        pthread_cancel(a->thread);
    pthread_join(a->thread, NULL);
    answer_free(a);
}

void answer_leave_parent(struct job *j)
{
    if (j->answer && answer_is_ours(j->answer))
        close(j->answer->fd);
}
