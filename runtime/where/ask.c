#define _GNU_SOURCE
#include "runtime/where/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/clock.h"

enum {
    AT_ONCE = 128,     /* connections, since a process may have few descriptors */
    LONGEST = 1 << 28, /* bytes of one answer */
};

/* ---- One question ---- */

static size_t where_rest_bytes(const struct asking *a)
{
    switch (a->question) {
    case WHERE_NODE:
    case WHERE_OTHERS:
        return (size_t)a->answer.members * sizeof(struct where_member);
    case WHERE_STACKS:
        return sizeof(struct where_stacks);
    default:
        return 0;
    }
}

static void ask_close(struct asking *a)
{
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
}

/* Who listens must be of the same user, or of root: others could take the name. */
static int is_trusted(int fd, uint32_t user)
{
    struct ucred who;
    socklen_t size = sizeof who;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
           (who.uid == user || who.uid == 0);
}

/* What a PE says is printed on a terminal, which obeys control characters. */
static void ask_clean(char *text, size_t size)
{
    text[size - 1] = 0;
    for (char *at = text; *at; at++)
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
}

/* Whether it has begun; a PE that is stopped has a queue, which takes connections until it is
 * full. */
static int ask_begin(struct asking *a)
{
    const struct where_ask ask = {WHERE_MAGIC, WHERE_VERSION, (uint32_t)a->question, 0};

    a->got = 0;
    a->complete = 0;
    a->rest = NULL;
    a->bytes = 0;
    a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd >= 0 &&
        connect(a->fd, (const struct sockaddr *)&a->to->name, a->to->name_bytes) == 0 &&
        is_trusted(a->fd, a->to->user) && /* another process may have the name by now */
        send(a->fd, &ask, sizeof ask, MSG_NOSIGNAL) == (ssize_t)sizeof ask)
        return 1;
    ask_close(a);
    return 0;
}

/* Whether what has been received of the answer itself can be right; makes room for the rest. */
static int ask_prepare_rest(struct asking *a)
{
    if (a->answer.magic != WHERE_MAGIC || a->answer.version != WHERE_VERSION)
        return 0;
    ask_clean(a->answer.job, sizeof a->answer.job);
    ask_clean(a->answer.program, sizeof a->answer.program);
    a->bytes = where_rest_bytes(a);
    if (a->bytes > LONGEST)
        return 0;
    return !a->bytes || (a->rest = malloc(a->bytes));
}

static void ask_receive(struct asking *a)
{
    for (;;) {
        const size_t first = sizeof a->answer;
        char *to =
            a->got < first ? (char *)&a->answer + a->got : (char *)a->rest + (a->got - first);
        size_t most = a->got < first ? first - a->got : a->bytes - (a->got - first);
        ssize_t n = recv(a->fd, to, most, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0)
            break;
        a->got += (size_t)n;
        if (a->got == first && !ask_prepare_rest(a))
            break;
        if (a->got >= first && a->got == first + a->bytes) {
            a->complete = 1;
            break;
        }
    }
    ask_close(a);
}

static void ask_some(struct asking *all, size_t n, uint64_t until)
{
    struct pollfd fds[AT_ONCE];
    size_t open = 0;

    for (size_t i = 0; i < n; i++)
        open += (size_t)ask_begin(&all[i]);
    while (open) {
        const uint64_t now = clock_ns();
        if (now >= until)
            break;
        for (size_t i = 0; i < n; i++)
            fds[i] = (struct pollfd){.fd = all[i].fd, .events = POLLIN};
        if (poll(fds, (nfds_t)n, (int)((until - now) / CLOCK_MS) + 1) <= 0)
            continue;
        open = 0;
        for (size_t i = 0; i < n; i++) {
            if (all[i].fd >= 0 && fds[i].revents)
                ask_receive(&all[i]);
            open += all[i].fd >= 0;
        }
    }
    for (size_t i = 0; i < n; i++)
        ask_close(&all[i]);
}

void ask_all(struct asking *all, size_t n, int ms)
{
    const uint64_t until = clock_ns() + (uint64_t)ms * CLOCK_MS;

    for (size_t at = 0; at < n; at += AT_ONCE)
        ask_some(all + at, n - at < AT_ONCE ? n - at : AT_ONCE, until);
}

/* ---- Who listens ---- */

/* A name nobody has is refused at once, so that all can be tried; *pid: who listens. */
static int listens(const struct asked *to, pid_t *pid)
{
    struct ucred who;
    socklen_t size = sizeof who;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), found = 0;

    if (fd < 0)
        return 0;
    int connected = connect(fd, (const struct sockaddr *)&to->name, to->name_bytes);
    if (connected == 0 && is_trusted(fd, to->user) &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
        *pid = who.pid;
        found = 1;
    } else if (connected != 0 && errno == EAGAIN) {
        *pid = 0; /* its queue is full: it is stopped, or many ask it */
        found = 1;
    }
    close(fd);
    return found;
}

size_t ask_find(uint32_t user, int ms, struct asked **out)
{
    struct asked *all = NULL, *grown;
    size_t n = 0, room = 0;

    for (int i = 0; i < WHERE_SOCKETS; i++) {
        struct asked a = {.user = user};
        a.name_bytes = where_address(&a.name, user, i);
        if (!listens(&a, &a.pid))
            continue;
        if (n == room) {
            room = room ? 2 * room : 16;
            if (!(grown = realloc(all, room * sizeof *all)))
                break;
            all = grown;
        }
        all[n++] = a;
    }
    struct asking *questions = calloc(n + 1, sizeof *questions);
    for (size_t i = 0; questions && i < n; i++)
        questions[i] = (struct asking){.to = &all[i], .question = WHERE_WHO, .fd = -1};
    if (questions)
        ask_all(questions, n, ms);
    for (size_t i = 0; questions && i < n; i++) {
        all[i].has_answered = questions[i].complete;
        all[i].answer = questions[i].answer;
        free(questions[i].rest);
    }
    free(questions);
    *out = all;
    return n;
}
