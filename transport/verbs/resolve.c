#define _GNU_SOURCE
#include "transport/verbs/resolve.h"
#include "runtime/base/thread_signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/settings.h"
#include "transport/verbs/control.h"
#include "transport/verbs/verbs.h"

enum {
    THREADS_MOST = 8, /* so many neighbours that do not respond delay no other path */
    STACK_BYTES = 256 << 10,
    ALIVE_NS = 1000 * 1000 * 1000,
};

/* One queue pair. Between `wanted` and `ended` only the thread that has it reads and writes this,
 * except for `path`, which the lock protects. */
struct resolving {
    struct resolving *next;
    struct path *path; /* NULL: abandoned */
    struct ibv_qp *qp;
    struct ibv_qp_attr receive, send;
    int error;
};

struct resolver {
    pthread_mutex_t lock; /* of all that follows, except alive_ns and threads */
    pthread_cond_t wants, idles;
    struct resolving *wanted, **last; /* in the order in which they came */
    struct resolving *ended;
    int under_way; /* queue pairs that are not among `ended` */
    bool closes;
    int fd; /* readable when something has ended */
    uint64_t alive_ns;
    int threads;
    pthread_t thread[THREADS_MOST];
};

static int resolve_connect(struct resolving *r)
{
    int error = ibv_modify_qp(r->qp, &r->receive,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);

    if (!error)
        error = ibv_modify_qp(r->qp, &r->send,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return error < 0 ? errno : error;
}

static struct resolving *resolve_take_wanted(struct resolver *r)
{
    struct resolving *first = r->wanted;

    if (!(r->wanted = first->next))
        r->last = &r->wanted;
    return first;
}

static void *resolve_main(void *arg)
{
    struct resolver *r = arg;
    const uint64_t one = 1;

    pthread_mutex_lock(&r->lock);
    for (;;) {
        while (!r->wanted && !r->closes)
            pthread_cond_wait(&r->wants, &r->lock);
        if (r->closes)
            break;
        struct resolving *q = resolve_take_wanted(r);
        if (q->path) {
            pthread_mutex_unlock(&r->lock);
            q->error = resolve_connect(q);
            pthread_mutex_lock(&r->lock);
        }
        q->next = r->ended;
        r->ended = q;
        if (--r->under_way == 0)
            pthread_cond_broadcast(&r->idles);
        if (write(r->fd, &one, sizeof one) != sizeof one)
            continue; /* the descriptor is readable already */
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- Threads ---- */

static struct resolver *resolve_open(struct verbs *v)
{
    struct epoll_event e = {.events = EPOLLIN};
    struct resolver *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->fd = descriptor_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (r->fd < 0 || epoll_ctl(v->wait_fd, EPOLL_CTL_ADD, r->fd, &e)) {
        if (r->fd >= 0)
            close(r->fd);
        free(r);
        return NULL;
    }
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->wants, NULL);
    pthread_cond_init(&r->idles, NULL);
    r->last = &r->wanted;
    return r;
}

/* Begins another thread if none is free; false: there is no thread at all. */
static bool resolve_have_thread(struct resolver *r, int free)
{
    sigset_t all, before;
    pthread_attr_t attr;

    if (free > 0 || r->threads == THREADS_MOST)
        return true;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    thread_signals_blocked(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&r->thread[r->threads], &attr, resolve_main, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (error) {
        errno = error;
        return r->threads > 0;
    }
    pthread_setname_np(r->thread[r->threads++], "gshmem-connect");
    return true;
}

bool resolve_begin(struct verbs *v, struct path *p, const struct ibv_qp_attr *receive,
                   const struct ibv_qp_attr *send)
{
    struct resolving *q = malloc(sizeof *q);

    if (!q || (!v->resolver && !(v->resolver = resolve_open(v)))) {
        free(q);
        return false;
    }
    struct resolver *r = v->resolver;
    *q = (struct resolving){.path = p, .qp = p->qp, .receive = *receive, .send = *send};
    pthread_mutex_lock(&r->lock);
    const int free_threads = r->threads - r->under_way;
    pthread_mutex_unlock(&r->lock);
    if (!resolve_have_thread(r, free_threads)) {
        free(q);
        return false;
    }
    p->setup.resolving = q;
    v->resolving++;
    pthread_mutex_lock(&r->lock);
    *r->last = q;
    r->last = &q->next;
    r->under_way++;
    pthread_cond_signal(&r->wants);
    pthread_mutex_unlock(&r->lock);
    return true;
}

/* ---- What comes of it ---- */

void resolve_abandon(struct path *p)
{
    struct resolver *r = p->link->verbs->resolver;

    if (!p->setup.resolving)
        return;
    pthread_mutex_lock(&r->lock);
    p->setup.resolving->path = NULL;
    pthread_mutex_unlock(&r->lock);
    p->setup.resolving = NULL;
    p->qp = NULL;
}

void resolve_send_alive(struct verbs *v)
{
    struct resolver *r = v->resolver;
    const struct control alive = {.kind = CONTROL_ALIVE};
    struct timespec t;

    if (!v->resolving)
        return;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    const uint64_t limit_ns = (uint64_t)v->config.number(SETTING_NAME(PEER_TIMEOUT)) * 1000000000u;
    if (now - r->alive_ns < ALIVE_NS && now - r->alive_ns < limit_ns / 8)
        return;
    r->alive_ns = now;
    for (struct link *l = v->links; l; l = l->next) {
        bool resolves = false;
        for (int i = 0; i < l->paths; i++)
            resolves |= l->path[i]->setup.resolving != NULL;
        if (resolves && l->state != LINK_FAILED)
            control_send(v, l, &alive);
    }
}

static struct resolving *resolve_take_ended(struct resolver *r)
{
    pthread_mutex_lock(&r->lock);
    struct resolving *q = r->ended;
    if (q)
        r->ended = q->next;
    pthread_mutex_unlock(&r->lock);
    return q;
}

struct path *resolve_next(struct verbs *v, int *error)
{
    struct resolver *r = v->resolver;
    struct resolving *q;
    uint64_t ends;

    while (v->resolving) {
        while (read(r->fd, &ends, sizeof ends) == sizeof ends) /* before the list is looked at */
            ;
        if (!(q = resolve_take_ended(r)))
            return NULL;
        struct path *p = q->path; /* no thread has it any more */
        *error = q->error;
        v->resolving--;
        if (!p)
            ibv_destroy_qp(q->qp);
        free(q);
        if (!p)
            continue;
        p->setup.resolving = NULL;
        v->events++;
        return p;
    }
    return NULL;
}

void resolve_wait(struct verbs *v)
{
    struct resolver *r = v->resolver;

    if (!v->resolving)
        return;
    pthread_mutex_lock(&r->lock);
    while (r->under_way)
        pthread_cond_wait(&r->idles, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

/* All links are closed: no outcome is needed any more. */
void resolve_close(struct verbs *v)
{
    struct resolver *r = v->resolver;

    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->closes = true;
    pthread_cond_broadcast(&r->wants);
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < r->threads; i++)
        pthread_join(r->thread[i], NULL);
    while (r->ended || r->wanted) {
        struct resolving *q = r->ended ? r->ended : resolve_take_wanted(r);
        if (q == r->ended)
            r->ended = q->next;
        ibv_destroy_qp(q->qp);
        free(q);
    }
    pthread_cond_destroy(&r->idles);
    pthread_cond_destroy(&r->wants);
    pthread_mutex_destroy(&r->lock);
    close(r->fd);
    free(r);
    v->resolver = NULL;
}
