/* The side of gshmemrun's wire that lives in a PE.
 *
 * gshmemrun leaves two descriptors and names them in the environment: the wire, and a lifeline, a
 * pipe on which nothing ever comes. Its other end is open in gshmemrun alone, so the kernel has
 * something to report when gshmemrun dies; this PE asks to be sent SIGKILL then, and needs no
 * thread to watch. Needs bootstrap.h, the wire and libc. */
#define _GNU_SOURCE
#include "bootstrap/builtin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/nearest.h"
#include "bootstrap/run/wire.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/system.h"

struct run {
    struct bootstrap base;
    gshmem_status_t (*fail)(gshmem_status_t status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    int timeout_seconds;
    int wire;
    int lifeline;         /* -1: none could be had */
    uint32_t round;       /* that this PE published last */
    pthread_mutex_t lock; /* one question and its answer at a time */
    int node[];
};

/* Responses that came too late for their requests, and may still arrive. The wire is the process's,
 * not the job's: what a gshmem_init that failed has asked for, the next one may be sent. */
static int late;

static bool client_environment_number(const char *name, int least, int *number)
{
    const char *text = getenv(name);
    char *end;

    if (!text || !*text)
        return false;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || value < least || value > INT_MAX)
        return false;
    *number = (int)value;
    return true;
}

/* A descriptor that the environment names as number:inode. Where a PE has started another program,
 * a descriptor of that program may have the same number, but not the inode. */
static bool environment_descriptor(const char *name, int *fd)
{
    const char *text = getenv(name);
    unsigned long long inode;
    struct stat st;
    char rest;

    if (!text || sscanf(text, "%d:%llu%c", fd, &inode, &rest) != 2)
        return false;
    return fstat(*fd, &st) == 0 && (unsigned long long)st.st_ino == inode;
}

static enum bootstrap_found run_detect(const struct bootstrap_request *request, char *why,
                                       size_t why_size)
{
    int pe, n_pes, fd;

    (void)request;
    if (!getenv("GSHMEM_RUN_WIRE") && !getenv("GSHMEM_RUN_PE") && !getenv("GSHMEM_RUN_NPES")) {
        snprintf(why, why_size, "GSHMEM_RUN_WIRE is not set");
        return BOOTSTRAP_ABSENT;
    }
    if (!nearest_is_gshmemrun(environ)) {
        snprintf(why, why_size,
                 "another launcher has started this process, from within gshmemrun's job");
        return BOOTSTRAP_ABSENT;
    }
    if (!client_environment_number("GSHMEM_RUN_PE", 0, &pe) ||
        !client_environment_number("GSHMEM_RUN_NPES", 1, &n_pes) || pe >= n_pes) {
        snprintf(why, why_size,
                 "gshmemrun started this process, but GSHMEM_RUN_PE and "
                 "GSHMEM_RUN_NPES have been changed since");
        return BOOTSTRAP_BROKEN;
    }
    if (!environment_descriptor("GSHMEM_RUN_WIRE", &fd)) {
        snprintf(why, why_size,
                 "gshmemrun started PE %d, but its descriptor GSHMEM_RUN_WIRE=%s is not open here: "
                 "closed by a wrapper, or used by the program that started this one "
                 "(GSHMEM_BOOTSTRAP=single: a job of one)",
                 pe, getenv("GSHMEM_RUN_WIRE") ? getenv("GSHMEM_RUN_WIRE") : "(unset)");
        return BOOTSTRAP_BROKEN;
    }
    snprintf(why, why_size, "GSHMEM_RUN_WIRE is set: gshmemrun started PE %d of %d", pe, n_pes);
    return BOOTSTRAP_PRESENT;
}

static gshmem_status_t client_send(struct run *r, const unsigned char *message, size_t bytes)
{
    ssize_t n;

    do
        n = system_send(r->wire, message, bytes, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)bytes)
        return GSHMEM_OK;
    return r->fail(GSHMEM_ERR_BOOTSTRAP, "PE %d: gshmemrun cannot be reached any more: %s",
                   r->base.pe, strerror(errno));
}

/* Receives the next message; *bytes is 0 when none has arrived after `seconds`. The response to a
 * request that has timed out arrives before those to later requests, and is dropped. */
static gshmem_status_t client_receive(struct run *r, int seconds, unsigned char *message,
                                   size_t *bytes)
{
    struct pollfd p = {.fd = r->wire, .events = POLLIN};
    const uint64_t end = clock_ns() + (uint64_t)seconds * 1000 * CLOCK_MS;
    ssize_t n;

    do {
        uint64_t now = clock_ns();
        int ready = system_poll(&p, 1, now < end ? (int64_t)(end - now) : 0);
        if (ready == 0) {
            *bytes = 0;
            return GSHMEM_OK;
        }
        n = ready < 0 ? -1 : system_recv(r->wire, message, WIRE_MAX, MSG_DONTWAIT | MSG_TRUNC);
    } while ((n < 0 && (errno == EINTR || errno == EAGAIN)) || (n > 0 && late && late--));
    if (n <= 0 || n > WIRE_MAX)
        return r->fail(GSHMEM_ERR_BOOTSTRAP, "PE %d: gshmemrun %s", r->base.pe,
                       n < 0    ? strerror(errno)
                       : n == 0 ? "is gone"
                                : "sent a message too long");
    *bytes = (size_t)n;
    return GSHMEM_OK;
}

/* Sends a request that the launcher answers at once, and waits for the response. */
static gshmem_status_t client_request(struct run *r, const unsigned char *question, size_t bytes,
                                  unsigned char *reply, size_t *reply_bytes)
{
    gshmem_status_t status = client_send(r, question, bytes);

    if (!status)
        status = client_receive(r, r->timeout_seconds, reply, reply_bytes);
    if (!status && *reply_bytes == 0) {
        late++;
        return r->fail(GSHMEM_ERR_TIMEOUT, "PE %d: gshmemrun has not answered for %d s", r->base.pe,
                       r->timeout_seconds);
    }
    return status;
}

static gshmem_status_t misunderstood(struct run *r, const unsigned char *reply, size_t bytes)
{
    return r->fail(GSHMEM_ERR_BOOTSTRAP,
                   "PE %d: gshmemrun's answer of type %u and %zu bytes is not what was asked for",
                   r->base.pe, wire_type_of(reply, bytes), bytes);
}

/* What is shared with gshmemrun alone. The lifeline is opened anew, for it is one pipe for all PEs,
 * and whom to signal is a property of what open(2) made. Without it, when /proc is not there,
 * gshmemrun's other means of leaving nothing behind remain. */
static int hold_lifeline(void)
{
    char path[40];
    int inherited;

    if (!environment_descriptor("GSHMEM_RUN_LIFELINE", &inherited))
        return -1;
    fcntl(inherited, F_SETFD, FD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", inherited);
    int fd = descriptor_keep(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (fd < 0)
        return -1;
    if (fcntl(fd, F_SETOWN, getpid()) == 0 && fcntl(fd, F_SETSIG, SIGKILL) == 0 &&
        fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) == 0)
        return fd;
    close(fd);
    return -1;
}

static gshmem_status_t welcome(struct run *r)
{
    unsigned char message[WIRE_MAX], reply[WIRE_MAX];
    struct wire_welcome m;
    size_t bytes;
    struct wire_hello h = {.version = WIRE_VERSION, .pe = (uint32_t)r->base.pe};
    gshmem_status_t status =
        client_request(r, message, wire_encode_hello(message, &h), reply, &bytes);

    if (status)
        return status;
    if (!wire_decode_welcome(reply, bytes, &m) || m.version != WIRE_VERSION ||
        m.n_pes != (uint32_t)r->base.n_pes || m.n_nodes < 1 || m.n_nodes > m.n_pes)
        return misunderstood(r, reply, bytes);
    r->round = m.round;
    r->base.n_hosts = (int)m.n_nodes;
    r->base.one_machine = 1;
    for (int i = 0; i < r->base.n_pes; i++)
        r->node[i] = wire_node_of(i, r->base.n_pes, r->base.n_hosts);
    snprintf(r->base.job, sizeof r->base.job, "gshmemrun-%u", m.job);
    return GSHMEM_OK;
}

static void client_release(struct run *r)
{
    if (r->lifeline >= 0)
        close(r->lifeline);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static void run_take_leave(struct run *r)
{
    unsigned char message[WIRE_MAX];

    (void)client_send(r, message, wire_encode_goodbye(message));
    client_release(r);
}

static gshmem_status_t run_open(const struct bootstrap_request *request, struct bootstrap **out)
{
    int pe, n_pes, wire;

    if (!client_environment_number("GSHMEM_RUN_PE", 0, &pe) ||
        !client_environment_number("GSHMEM_RUN_NPES", 1, &n_pes) || pe >= n_pes ||
        !environment_descriptor("GSHMEM_RUN_WIRE", &wire))
        return request->fail(GSHMEM_ERR_BOOTSTRAP, "gshmemrun's environment is not complete");

    struct run *r = calloc(1, sizeof *r + (size_t)n_pes * sizeof r->node[0]);
    if (!r)
        return request->fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %d PEs", n_pes);
    r->base = (struct bootstrap){.ops = &bootstrap_run, .pe = pe, .n_pes = n_pes, .host = r->node};
    r->fail = request->fail;
    r->timeout_seconds = request->timeout_seconds;
    r->wire = wire;
    pthread_mutex_init(&r->lock, NULL);
    fcntl(wire, F_SETFD, FD_CLOEXEC); /* it is this program's, not its children's */
    r->lifeline = hold_lifeline();
    gshmem_status_t status = welcome(r);
    if (status) {
        if (status == GSHMEM_ERR_TIMEOUT)
            run_take_leave(r); /* it will read this HELLO, and the next gshmem_init's */
        else
            client_release(r);
        return status;
    }
    if (r->lifeline < 0 && request->info)
        request->info("no lifeline to gshmemrun: PE %d would not notice its sudden death", pe);
    *out = &r->base;
    return GSHMEM_OK;
}

static gshmem_status_t run_publish(struct bootstrap *b, const void *blob, size_t bytes)
{
    struct run *r = (struct run *)b;
    unsigned char message[WIRE_MAX];

    if (bytes > BOOTSTRAP_BLOB_MAX)
        return r->fail(GSHMEM_ERR_ARGUMENT, "start-up: a blob of %zu B, at most %d are carried",
                       bytes, BOOTSTRAP_BLOB_MAX);
    pthread_mutex_lock(&r->lock);
    struct wire_publish m = {r->round + 1, (uint32_t)bytes, blob};
    gshmem_status_t status = client_send(r, message, wire_encode_publish(message, &m));
    if (!status)
        r->round++;
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* The time is over: asks which PEs are missing. They may all arrive at this moment. */
static gshmem_status_t client_give_up(struct run *r)
{
    unsigned char message[WIRE_MAX], reply[WIRE_MAX];
    struct wire_round round = {r->round};
    struct wire_absent m;
    size_t bytes;
    gshmem_status_t status =
        client_request(r, message, wire_encode_round(message, WIRE_WHO, &round), reply, &bytes);

    if (status)
        return status;
    if (wire_decode_round(reply, bytes, WIRE_RELEASED, &round) && round.round == r->round)
        return GSHMEM_OK;
    if (!wire_decode_absent(reply, bytes, &m))
        return misunderstood(r, reply, bytes);
    if (m.count == 1)
        return r->fail(GSHMEM_ERR_TIMEOUT,
                       "start-up: PE %d waited %d s for PE %u (GSHMEM_INIT_TIMEOUT)", r->base.pe,
                       r->timeout_seconds, m.first);
    return r->fail(GSHMEM_ERR_TIMEOUT,
                   "start-up: PE %d waited %d s for PE %u and %u others (GSHMEM_INIT_TIMEOUT)",
                   r->base.pe, r->timeout_seconds, m.first, m.count - 1);
}

static gshmem_status_t run_fence(struct bootstrap *b)
{
    struct run *r = (struct run *)b;
    unsigned char message[WIRE_MAX], reply[WIRE_MAX];
    struct wire_round m = {r->round};
    size_t bytes;

    pthread_mutex_lock(&r->lock);
    gshmem_status_t status = client_send(r, message, wire_encode_round(message, WIRE_FENCE, &m));
    if (!status)
        status = client_receive(r, r->timeout_seconds, reply, &bytes);
    if (!status && bytes == 0)
        status = client_give_up(r);
    else if (!status &&
             (!wire_decode_round(reply, bytes, WIRE_RELEASED, &m) || m.round != r->round))
        status = misunderstood(r, reply, bytes);
    pthread_mutex_unlock(&r->lock);
    return status;
}

static gshmem_status_t run_fetch(struct bootstrap *b, int pe, void *blob, size_t capacity,
                                 size_t *bytes)
{
    struct run *r = (struct run *)b;
    unsigned char message[WIRE_MAX], reply[WIRE_MAX];
    struct wire_fetch question = {r->round, (uint32_t)pe};
    struct wire_blob m;
    size_t n;

    if (pe < 0 || pe >= b->n_pes)
        return r->fail(GSHMEM_ERR_ARGUMENT, "start-up: the blob of PE %d, the job has PEs 0..%d",
                       pe, b->n_pes - 1);
    pthread_mutex_lock(&r->lock);
    gshmem_status_t status =
        client_request(r, message, wire_encode_fetch(message, &question), reply, &n);
    pthread_mutex_unlock(&r->lock);
    if (status)
        return status;
    if (!wire_decode_blob(reply, n, &m) || m.round != question.round || m.pe != question.pe)
        return misunderstood(r, reply, n);
    if (m.bytes > capacity)
        return r->fail(GSHMEM_ERR_ARGUMENT, "start-up: PE %d's blob is %u B, room is for %zu", pe,
                       m.bytes, capacity);
    memcpy(blob, m.blob, m.bytes);
    *bytes = m.bytes;
    return GSHMEM_OK;
}

/* Takes no lock: the thread that holds it may be the reason. A message is sent whole or not. */
static void run_abort(struct bootstrap *b, int status, const char *why)
{
    struct run *r = (struct run *)b;
    unsigned char message[WIRE_MAX];
    struct wire_abort m = {status, why ? (uint32_t)strnlen(why, WIRE_WHY_MAX) : 0, why};

    (void)client_send(r, message, wire_encode_abort(message, &m));
}

/* The wire stays open, for gshmem_init may be called again, and it is how gshmemrun knows us. */
static void run_close(struct bootstrap *b)
{
    run_take_leave((struct run *)b);
}

const struct bootstrap_ops bootstrap_run = {
    .size = sizeof(struct bootstrap_ops),
    .version = BOOTSTRAP_VERSION,
    .name = "run",
    .detect = run_detect,
    .open = run_open,
    .publish = run_publish,
    .fence = run_fence,
    .fetch = run_fetch,
    .abort = run_abort,
    .close = run_close,
};
