/* A PE that breaks the launcher's wire in the way it is told to.
 *
 *     hostile WAY      on PE 1; the others wait for ever
 *
 * What gshmemrun should say to each is in meson.build. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>

#include "bootstrap/run/wire.h"
#include "check.h"

static int wire;
static unsigned char m[64 * 1024];

static void put(size_t bytes)
{
    CHECK_EQ(send(wire, m, bytes, 0), (ssize_t)bytes);
}

static void hello(uint32_t version, uint32_t pe)
{
    put(wire_encode_hello(m, &(struct wire_hello){version, pe}));
}

static void stranger(void)
{
    memset(m, 0xa5, sizeof m);
    put(100);
}

static void empty(void)
{
    put(0);
}

static void truncated(void)
{
    put(wire_encode_hello(m, &(struct wire_hello){WIRE_VERSION, 1}) - 3);
}

static void oversized(void)
{
    hello(WIRE_VERSION, 1);
    wire_put(m, 0, WIRE_PUBLISH);
    wire_put(m, 1, 1);
    put(sizeof m);
}

static void version(void)
{
    hello(WIRE_VERSION + 41, 1);
}

static void other_pe(void)
{
    hello(WIRE_VERSION, 0);
}

static void early(void)
{
    put(wire_encode_goodbye(m));
}

static void bogus_pe(void)
{
    hello(WIRE_VERSION, 1);
    put(wire_encode_fetch(m, &(struct wire_fetch){1, 0x80000000}));
}

static void disorder(void)
{
    hello(WIRE_VERSION, 1);
    put(wire_encode_round(m, WIRE_FENCE, &(struct wire_round){1}));
}

/* Asks and never listens. Ends when the launcher has lost its patience, or its room. */
static void deaf(void)
{
    hello(WIRE_VERSION, 1);
    put(wire_encode_publish(m, &(struct wire_publish){1, 0, NULL}));
    put(wire_encode_round(m, WIRE_FENCE, &(struct wire_round){1}));
    for (;;)
        put(wire_encode_round(m, WIRE_WHO, &(struct wire_round){1}));
}

static int launcher_descriptors(void)
{
    char path[40];
    int n = 0;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)getppid());
    DIR *directory = opendir(path);
    CHECK(directory);
    while (readdir(directory))
        n++;
    closedir(directory);
    return n;
}

/* Sends descriptors along, which nobody asked for; they must not pile up in the launcher. */
static void descriptors(void)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int[8]))];
    } control = {.header = {.cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS,
                            .cmsg_len = CMSG_LEN(sizeof(int[8]))}};
    int fds[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    int before = launcher_descriptors();

    memcpy(CMSG_DATA(&control.header), fds, sizeof fds);
    for (int i = 0; i < 10; i++) {
        struct iovec part = {m, wire_encode_hello(m, &(struct wire_hello){WIRE_VERSION, 1})};
        struct msghdr h = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
        CHECK_EQ(sendmsg(wire, &h, 0), (ssize_t)part.iov_len);
        CHECK_EQ(recv(wire, m, sizeof m, 0), WIRE_WELCOME_BYTES);
        put(wire_encode_goodbye(m));
    }
    CHECK(launcher_descriptors() < before + 10); /* it may still be starting PEs */
    early();
}

/* Not hostile, but rude: ends while it should take part. */
static void quit(void)
{
    hello(WIRE_VERSION, 1);
    _exit(0);
}

static char state_of(pid_t pid)
{
    char path[40], state = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%*d %*s %c", &state) != 1)
        state = 0;
    if (f)
        fclose(f);
    return state;
}

/* As `quit`, while the launcher stands still, */
static void quit_unseen(void)
{
    hello(WIRE_VERSION, 1);
    CHECK_EQ(kill(getppid(), SIGSTOP), 0);
    _exit(0);
}

/* until PE 0 has failed, too: it sees both ends at once. */
static void fail_after_quit(void)
{
    const pid_t self = getpid(), launcher = getppid();
    char path[64];
    int child = 0, ended = 0;

    while (state_of(launcher) != 'T')
        usleep(1000);
    if (fork() != 0)
        _exit(1);
    while (getppid() == self)
        usleep(1000);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)launcher, (int)launcher);
    while (ended < 2) {
        FILE *f = fopen(path, "r");
        CHECK(f);
        for (ended = 0; fscanf(f, "%d", &child) == 1;)
            ended += state_of(child) == 'Z';
        fclose(f);
        usleep(1000);
    }
    CHECK_EQ(kill(launcher, SIGCONT), 0);
    _exit(0);
}

static void hang_up(void)
{
    hello(WIRE_VERSION, 1);
    close(wire);
    usleep(10000); /* a wrapper whose program has died would be given 200 ms to end; mostly it ends sooner */
    _exit(0);
}

static const struct {
    const char *name;
    void (*act)(void);
} ways[] = {
    {"stranger", stranger},
    {"empty", empty},
    {"truncated", truncated},
    {"oversized", oversized},
    {"version", version},
    {"other-pe", other_pe},
    {"early", early},
    {"bogus-pe", bogus_pe},
    {"disorder", disorder},
    {"deaf", deaf},
    {"descriptors", descriptors},
    {"quit", quit},
    {"quit-unseen", quit_unseen},
    {"hang-up", hang_up},
};

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 2);
    wire = atoi(getenv("GSHMEM_RUN_WIRE"));
    if (atoi(getenv("GSHMEM_RUN_PE")) == 0 && strcmp(argv[1], "quit-unseen") == 0)
        fail_after_quit();
    if (atoi(getenv("GSHMEM_RUN_PE")) != 1)
        sleep(60);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (strcmp(ways[i].name, argv[1]) == 0) {
            ways[i].act();
            sleep(60);
        }
    }
    CHECK_FAIL("no way %s", argv[1]);
}
