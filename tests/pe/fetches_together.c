/* Fetches that threads of a PE wait for at the same time are posted together, and one that is alone is not held back.
 *
 * The transport's post is replaced by one that counts. While this thread has the network's lock, others fetch: none of
 * them can post. Once it has released the lock, all fetches are posted before the lock is released again, and held for
 * one send. Then the transport has no room for some; it refuses one; threads sleep until their fetches are complete;
 * and a wait is cut short before its fetch is posted, which then never is. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/fetches.h"
#include "runtime/network/network.h"
#include "runtime/network/parts.h"
#include "runtime/node/node.h"

#include "pe.h"

enum { THREADS = 6, ALL = THREADS + 1, HELD = TRANSPORT_MORE | TRANSPORT_HELD };

static long number[ALL]; /* symmetric */
static uint64_t other;    /* symmetric: the process of PE 1 */
static struct location numbers;
static int lone_held; /* of all fetches that were alone, those that waited for another thread */
static _Atomic pid_t cut_short_thread;
static const struct transport_ops *ops;
/* Written with the network's lock held. */
static struct {
    int posts, held, full, to_refuse;
    uint64_t offset[64];
} seen;

static gshmem_status_t post(struct transport *t, const struct transport_request *r)
{
    if (r->kind == TRANSPORT_GET && r->segment == numbers.segment &&
        r->offset - numbers.offset < sizeof number) {
        if (seen.full && seen.full--)
            return TRANSPORT_FULL;
        if (seen.to_refuse && seen.to_refuse--)
            return GSHMEM_ERR_TRANSPORT;
        seen.offset[seen.posts++ % 64] = r->offset;
        seen.held += (r->flags & HELD) == HELD;
    }
    return ops->post(t, r);
}

static void *fetch(void *which)
{
    const long i = (long)which;
    long value = -1;

    CHECK_OK(gshmem_getmem(&value, &number[i], sizeof value, 1));
    CHECK_EQ(value, i * 3 + 1);
    return NULL;
}

/* How many wait to be posted. */
static int listed(struct network *net)
{
    int count = 0;

    for (struct fetch *f = atomic_load(&net->fetches); f; f = f->next)
        count++;
    for (struct fetch *f = net->fetches_full; f; f = f->next)
        count++;
    return count;
}

/* So many threads fetch, which find the lock taken. */
static void fetch_behind_lock(struct network *net, int threads, pthread_t *thread)
{
    memset(&seen, 0, sizeof seen);
    mutex_take(&net->lock);
    for (long i = 0; i < threads; i++) {
        CHECK_EQ(pthread_create(&thread[i], NULL, fetch, (void *)i), 0);
        while (listed(net) <= i)
            sched_yield();
    }
    CHECK_EQ(seen.posts, 0);
}

static void join_all(struct network *net, int threads, const pthread_t *thread)
{
    for (int i = 0; i < threads; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    CHECK_EQ(listed(net), 0);
    CHECK_EQ(atomic_load(&net->returning), 0);
    CHECK(!fetches_return(net));
}

static void posted_together(struct network *net)
{
    pthread_t thread[THREADS];

    fetch_behind_lock(net, THREADS, thread);
    fetches_post(net);
    CHECK_EQ(seen.posts, THREADS);
    CHECK_EQ(seen.held, THREADS);
    for (int i = 1; i < THREADS; i++) /* in their order */
        CHECK_EQ(seen.offset[i], seen.offset[i - 1] + sizeof(long));
    mutex_give(&net->lock);
    join_all(net, THREADS, thread);
}

/* Nobody but the threads themselves posts them. */
static void posted_by_waiters(struct network *net)
{
    pthread_t thread[THREADS];

    fetch_behind_lock(net, THREADS, thread);
    mutex_give(&net->lock);
    join_all(net, THREADS, thread);
    CHECK_EQ(seen.posts, THREADS);
    CHECK_EQ(seen.held, THREADS);
}

/* Now and then the proxy has the lock. */
static void alone_at_once(struct network *net)
{
    memset(&seen, 0, sizeof seen);
    for (long i = 0; i < ALL; i++)
        fetch((void *)i);
    CHECK_EQ(seen.posts, ALL);
    lone_held += seen.held;
    join_all(net, 0, NULL);
}

/* What found no room stays in its order, and is posted later. */
static void no_room_for_some(struct network *net)
{
    pthread_t thread[THREADS];

    fetch_behind_lock(net, THREADS, thread);
    seen.full = 2;
    fetches_post(net);
    CHECK_EQ(seen.posts, THREADS - 2);
    CHECK_EQ(listed(net), 2);
    fetches_post(net);
    CHECK_EQ(seen.posts, THREADS);
    CHECK_EQ(listed(net), 0);
    CHECK_EQ(seen.offset[THREADS - 1], seen.offset[THREADS - 2] + sizeof(long));
    mutex_give(&net->lock);
    join_all(net, THREADS, thread);
}

/* PE 1 is stopped until all threads wait for it, and they sleep, but for one that awaits the response. When it comes,
 * the thread that takes it wakes those that sleep. At that moment they may be awake by chance, to look at the time: it
 * is tried until some are not. */
static void sleepers_are_woken(struct network *net)
{
    pthread_t thread[THREADS];

    for (int tries = 0; !atomic_load(&net->landings); tries++) {
        CHECK(tries < 500);
        CHECK_EQ(kill((pid_t)other, SIGSTOP), 0);
        memset(&seen, 0, sizeof seen);
        for (long i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_create(&thread[i], NULL, fetch, (void *)i), 0);
        usleep(15000);
        CHECK_EQ(kill((pid_t)other, SIGCONT), 0);
        join_all(net, THREADS, thread);
        CHECK_EQ(seen.posts, THREADS);
    }
    CHECK(!atomic_load(&net->attended));
}

static void *be_refused(void *unused)
{
    const char *line;
    long value;

    CHECK_EQ(gshmem_getmem(&value, &number[0], sizeof value, 1), GSHMEM_ERR_TRANSPORT);
    CHECK_EQ(gshmem_last_error(&line), GSHMEM_ERR_TRANSPORT);
    CHECK_HAS(line, "get: PE 1 cannot be reached");
    return unused;
}

/* The thread whose fetch it is learns it, and not the one that posts. */
static void one_refused(struct network *net)
{
    pthread_t refused;

    memset(&seen, 0, sizeof seen);
    mutex_take(&net->lock);
    CHECK_EQ(pthread_create(&refused, NULL, be_refused, NULL), 0);
    while (!listed(net))
        sched_yield();
    seen.to_refuse = 1;
    fetches_post(net);
    CHECK_EQ(seen.posts, 0);
    mutex_give(&net->lock);
    join_all(net, 1, &refused);
}

static void *be_cut_short(void *unused)
{
    long value;

    atomic_store(&cut_short_thread, (pid_t)syscall(SYS_gettid));
    CHECK_EQ(gshmem_getmem(&value, &number[0], sizeof value, 1), GSHMEM_ERR_ABORTED);
    return unused;
}

static char state_of_thread(pid_t thread)
{
    char path[60], state = 0;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *f = fopen(path, "r");
    CHECK(f);
    CHECK_EQ(fscanf(f, "%*d %*s %c", &state), 1);
    fclose(f);
    return state;
}

/* The job has ended. So the thread leaves the list after its first look, and sleeps only until it has the lock for
 * that. */
static void cut_short(struct network *net)
{
    pthread_t waits;

    memset(&seen, 0, sizeof seen);
    node_abort(job->node, 0, 0, "of a test");
    mutex_take(&net->lock);
    CHECK_EQ(pthread_create(&waits, NULL, be_cut_short, NULL), 0);
    while (!listed(net))
        sched_yield();
    seen.full = 1 << 30; /* for the proxy, too */
    fetches_post(net);
    CHECK_EQ(listed(net), 1);
    while (state_of_thread(atomic_load(&cut_short_thread)) != 'S')
        usleep(1000);
    mutex_give(&net->lock);
    join_all(net, 1, &waits);
    mutex_take(&net->lock);
    seen.full = 0;
    fetches_post(net);
    CHECK_EQ(seen.posts, 0);
    mutex_give(&net->lock);
}

int main(void)
{
    int provided;

    setenv("GSHMEM_LOG", "none", 0);
    CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided));
    begin();
    CHECK_EQ(n, 2);
    for (long i = 0; i < ALL; i++)
        number[i] = i * 3 + 1;
    if (me == 1)
        gshmem_uint64_p(&other, (uint64_t)getpid(), 0);
    barrier();
    if (me == 0) {
        struct network *net = job->network;
        struct transport_ops counting;

        map_find(job->map, number, sizeof number, &numbers);
        fetch((void *)0); /* connects */
        ops = net->remote->ops;
        counting = *ops;
        counting.post = post;
        mutex_take(&net->lock);
        net->remote->ops = &counting;
        mutex_give(&net->lock);
        for (int i = 0; i < 20; i++) {
            posted_together(net);
            posted_by_waiters(net);
            alone_at_once(net);
            no_room_for_some(net);
            one_refused(net);
        }
        CHECK(lone_held < 20 * ALL);
        sleepers_are_woken(net);
        cut_short(net);
        mutex_take(&net->lock);
        net->remote->ops = ops;
        mutex_give(&net->lock);
        gshmem_global_exit(0);
    }
    for (;;)
        pause();
}
