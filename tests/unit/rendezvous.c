/* How a host's memory is handed over (runtime/node/rendezvous.c) while an interval timer interrupts every call, where
 * descriptors run out, and where the leader has not waited for one that stood still. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "../check.h"
#include "runtime/base/log.h"
#include "runtime/node/rendezvous.h"

enum { SECONDS = 20, PAUSE_US = 100 * 1000, LIMIT = 64 };

static struct rendezvous r;
static const char letter[8] = "letter";
static const int pes[2] = {0, 1};

static void *serve(void *status)
{
    usleep(PAUSE_US); /* who asks waits meanwhile, and is interrupted */
    *(gshmem_status_t *)status = rendezvous_serve(&r, pes, 2, SECONDS, letter, sizeof letter, STDERR_FILENO);
    return NULL;
}

static void *turn_away(void *status)
{
    int peer = accept(r.fd, NULL, NULL);

    CHECK(peer >= 0);
    close(peer);
    return serve(status);
}

/* Asks while the leader does that. */
static void ask(void *leader(void *))
{
    gshmem_status_t status;
    char got[sizeof letter];
    pthread_t thread;
    int fd = -1;

    CHECK_EQ(rendezvous_open(&r), GSHMEM_OK);
    CHECK_EQ(fcntl(r.fd, F_SETFL, 0), 0); /* turn_away waits in accept */
    CHECK_EQ(pthread_create(&thread, NULL, leader, &status), 0);
    CHECK_EQ(rendezvous_ask(&r.address, 1, SECONDS, got, sizeof got, &fd), GSHMEM_OK);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(status, GSHMEM_OK);
    CHECK_STR(got, letter);
    CHECK(fd > STDERR_FILENO);
    close(fd);
    rendezvous_close(&r);
}

static void tick(int signal)
{
    (void)signal;
}

static void interrupt(int us)
{
    struct sigaction action = {.sa_handler = tick};
    struct itimerval timer = {.it_interval.tv_usec = us, .it_value.tv_usec = us};

    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

static void allow_descriptors(int more)
{
    struct rlimit limit;
    int lowest = dup(STDERR_FILENO);

    CHECK(lowest >= 0);
    close(lowest);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t)(lowest + more);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* One process asks, one serves; it fails there where so many descriptors are left, and for that reason. */
static void without_descriptors(bool asker, int left)
{
    char got[sizeof letter];
    int fd = -1, end;

    CHECK_EQ(rendezvous_open(&r), GSHMEM_OK);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(r.fd); /* else who asks would wait for itself */
        if (asker)
            allow_descriptors(left);
        gshmem_status_t status = rendezvous_ask(&r.address, 1, SECONDS, got, sizeof got, &fd);
        CHECK_EQ(status, asker ? GSHMEM_ERR_SYSTEM : GSHMEM_ERR_BOOTSTRAP);
        if (asker)
            CHECK_HAS(last_error_text(), "(ulimit -n)");
        _exit(0);
    }
    if (asker) {
        CHECK_EQ(rendezvous_serve(&r, pes, 2, left ? SECONDS : 1, letter, sizeof letter, STDERR_FILENO),
                 left ? GSHMEM_OK : GSHMEM_ERR_TIMEOUT);
    } else {
        allow_descriptors(0);
        CHECK_EQ(rendezvous_serve(&r, pes, 2, SECONDS, letter, sizeof letter, STDERR_FILENO), GSHMEM_ERR_SYSTEM);
        CHECK_HAS(last_error_text(), "(ulimit -n)");
    }
    rendezvous_close(&r);
    CHECK_EQ(waitpid(child, &end, 0), child);
    CHECK(WIFEXITED(end) && WEXITSTATUS(end) == 0);
}

int main(void)
{
    interrupt(1000);
    ask(serve);
    interrupt(0);
    ask(turn_away);
    without_descriptors(true, 0);  /* no socket, */
    without_descriptors(true, 1);  /* or none for the memory; */
    without_descriptors(false, 0); /* none for who comes, last: the limit stays */
    return 0;
}
