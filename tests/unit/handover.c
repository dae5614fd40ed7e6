/* Letters with descriptors between PEs of a host: what strangers send along does not stay open here, and a process
 * of another user is not listened to, whatever it knows. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>

#include "../check.h"
#include "runtime/node/handover.c"
#include "runtime/node/node.h"
#include "runtime/job/job.h"
#include "runtime/network/wait.h"
#include "runtime/teams/departures.h"
#include "runtime/node/rendezvous.h"

enum { FDS_MOST = 4, STRANGER = 12345 };

static int open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int n = 0;

    CHECK(directory);
    while (readdir(directory))
        n++;
    closedir(directory);
    return n;
}

static struct sockaddr_un name_of(const struct handover_address *a, int which, socklen_t *bytes)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    memcpy(name.sun_path + 1, a->name[which], a->name_bytes[which]);
    *bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + a->name_bytes[which]);
    return name;
}

static void send_to(const struct handover *h, int which, const void *text, size_t bytes, int fds)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int[FDS_MOST]))];
    } control = {.space = {0}};
    const int fd[FDS_MOST] = {1, 1, 1, 1};
    struct iovec data = {(void *)text, bytes};
    struct sockaddr_un name;
    struct msghdr message = {.msg_name = &name, .msg_iov = &data, .msg_iovlen = 1};
    int stranger = socket(AF_UNIX, SOCK_DGRAM, 0);

    name = name_of(&h->address, which, &message.msg_namelen);
    if (fds) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE((size_t)fds * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN((size_t)fds * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fd, (size_t)fds * sizeof(int));
    }
    CHECK(stranger >= 0 && sendmsg(stranger, &message, 0) == (ssize_t)bytes);
    close(stranger);
}

/* ---- Two PEs, as threads ---- */

static struct handover pe[2];
static struct handover_address address[2];

static void *exchange(void *arg)
{
    const int i = (int)(intptr_t)arg;
    const struct handover_circle circle = {2, i, address, sizeof address[0], WAIT_FOR_NETWORK,
                                           network_await};
    char mine[8] = {(char)('a' + i)}, letters[2][8];
    int fds[2];

    CHECK_EQ(handover_exchange(&pe[i], &circle, "test", mine, sizeof mine, i ? 1 : -1, letters, fds), GSHMEM_OK);
    CHECK_EQ(letters[!i][0], 'a' + !i);
    CHECK((fds[!i] >= 0) == (i == 0));
    if (fds[!i] >= 0)
        close(fds[!i]);
    return NULL;
}

static void exchange_both(void)
{
    pthread_t other;

    CHECK(pthread_create(&other, NULL, exchange, (void *)(intptr_t)1) == 0);
    exchange(NULL);
    pthread_join(other, NULL);
}

static void strangers_descriptors_are_closed(void)
{
    exchange_both(); /* whatever is opened once is open now */
    const int before = open_descriptors();
    for (int fds = 0; fds <= FDS_MOST; fds++) {
        send_to(&pe[0], (int)(pe[0].round + 1) % 2, "who", 3, fds);
        send_to(&pe[1], (int)(pe[1].round + 1) % 2, "who", 3, fds);
        exchange_both();
        CHECK_EQ(open_descriptors(), before);
    }
    CHECK_EQ(pe[0].refused, FDS_MOST + 1);
}

/* One of the job's by all it says, sent by another user. */
static void another_user_is_refused(void)
{
    const uint32_t before = pe[0].refused;
    struct letter l = {.index = 1, .round = pe[0].round + 1, .text = "forged"};
    pid_t child;
    int status;

    memcpy(l.token, pe[0].address.token, sizeof l.token);
    if ((child = fork()) == 0) {
        if (setgid(STRANGER) != 0 || setuid(STRANGER) != 0)
            _exit(77);
        send_to(&pe[0], (int)l.round % 2, &l, offsetof(struct letter, text) + 8, 0);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        return; /* only root can be somebody else */
    exchange_both();
    CHECK_EQ(pe[0].refused, before + 1);
}

/* Whoever has the leader's name when the leader is gone is not believed. */
static void another_users_memory_is_refused(void)
{
    struct rendezvous leader;
    char letter[8];
    int to_child[2], got = -1, status;
    pid_t child;

    CHECK(pipe(to_child) == 0);
    if ((child = fork()) == 0) {
        static const int nobody[2];
        if (setgid(STRANGER) != 0 || setuid(STRANGER) != 0)
            _exit(77);
        CHECK_EQ(rendezvous_open(&leader), GSHMEM_OK);
        CHECK(write(to_child[1], &leader.address, sizeof leader.address) == sizeof leader.address);
        rendezvous_serve(&leader, nobody, 2, 10, "forged!", 8, 1);
        _exit(0);
    }
    close(to_child[1]);
    if (read(to_child[0], &leader.address, sizeof leader.address) == sizeof leader.address) {
        CHECK_EQ(rendezvous_ask(&leader.address, 1, 10, letter, sizeof letter, &got), GSHMEM_ERR_BOOTSTRAP);
        CHECK_EQ(got, -1);
        kill(child, SIGKILL);
    }
    close(to_child[0]);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
}

int main(void)
{
    static struct node node;
    static struct job alone = {.node = &node, .waits = &teams_wait_hooks};

    node.control = calloc(1, sizeof *node.control);
    job = &alone;
    CHECK(node.control);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(handover_open(&pe[i], 2), GSHMEM_OK);
        address[i] = pe[i].address;
    }
    strangers_descriptors_are_closed();
    another_user_is_refused();
    another_users_memory_is_refused();
    for (int i = 0; i < 2; i++)
        handover_close(&pe[i]);
    free(node.control);
    return 0;
}
