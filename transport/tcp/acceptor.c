#define _GNU_SOURCE
#include "transport/tcp/acceptor.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/listen.h"
#include "transport/tcp/target.h"

enum { ACCEPTS_MOST = 64 }; /* connections accepted in a round */

void acceptor_pause(struct tcp *t, bool paused)
{
    struct admission *a = &t->targets.admission;

    if (a->paused == paused)
        return;
    for (int i = 0; i < a->listeners; i++)
        poller_change(&t->poller, &a->listener[i], paused ? 0 : EPOLLIN);
    a->paused = paused;
}

/* Accepting is put off to the end of the round: a stranger that gives way to the next may have an
 * event in the same batch. */
static bool listener_ready(struct tcp *t, struct stream *s, uint32_t events)
{
    (void)s, (void)events;
    t->targets.admission.connection_waits = true;
    return true;
}

/* While descriptors are short, connections wait in the system until the next tick. */
static void accept_some(struct tcp *t, struct stream *listener)
{
    for (int i = 0; i < ACCEPTS_MOST; i++) {
        int fd = descriptor_keep(accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                acceptor_pause(t, true);
            break;
        }
        admission_make_room(t);
        target_accept(t, fd);
    }
}

void acceptor_accept(struct tcp *t)
{
    struct admission *a = &t->targets.admission;

    a->connection_waits = false;
    for (int i = 0; i < a->listeners; i++)
        accept_some(t, &a->listener[i]);
    if (a->paused || a->strangers)
        tcp_start_ticking(t);
}

bool acceptor_listen(struct tcp *t, struct address *own)
{
    struct admission *a = &t->targets.admission;
    struct sockaddr_storage where[ADDRESS_MOST] = {{.ss_family = 0}};
    int fd[ADDRESS_MOST], n = own->n;
    bool watched = true;

    for (int i = 0; i < n; i++)
        address_socket(own, i, &where[i]);
    own->port = listen_on_all(where, n, fd);
    own->n = 0;
    for (int i = 0; own->port && i < n; i++) {
        if (fd[i] < 0)
            continue;
        own->ip[own->n++] = own->ip[i];
        struct stream *s = &a->listener[a->listeners++];
        *s = (struct stream){.ready = listener_ready, .fd = fd[i]};
        watched &= poller_watch(&t->poller, s, EPOLLIN);
    }
    return own->n && watched;
}
