/* An Ethernet switch in user space, for emulated hosts: what crosses it comes late, at a rate, or not
 * at all.
 *
 *     slow-switch [delay=MS] [jitter=MS] [loss=PERCENT] [rate=MBIT] NETNS…
 *
 * Each network namespace gets an eth0, whose link to the switch has these properties in the direction
 * of the host. On stdin "cut N" and "heal N" take the N-th host (from 0) off the network and put it
 * back, in silence; at the end of stdin the switch ends. Frames of a link stay in order, jitter or
 * not; addresses tell where a frame goes, so that nothing has to be learnt. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <net/if_arp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    PORTS_MOST = 64,
    FRAME_MOST = 1600,
    WAITING_MOST = 2048, /* frames on a link; a power of two */
    BURST = 64,          /* frames from one port before the others have their turn */
};

#define BACKLOG_NS 50000000u /* that frames may wait for a link that is slow; later ones are lost */

struct frame {
    uint64_t due; /* ns */
    unsigned bytes;
    unsigned char data[FRAME_MOST];
};

struct port {
    int tap;
    bool cut;
    uint64_t busy;    /* until when the link is taken by earlier frames */
    uint64_t last;    /* when the last of them is due */
    unsigned first, end;
    struct frame *waiting;
};

static struct port port[PORTS_MOST];
static int ports;
static double delay, jitter, loss, rate; /* ms, ms, percent, Mbit/s; 0: none, and no limit */

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* 0 to 1; the same in every run. */
static double chance(void)
{
    static uint64_t x = 88172645463325252u;

    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return (double)(x >> 11) / (double)(1ull << 53);
}

/* ---- Frames ---- */

static void queue_frame(struct port *p, const unsigned char *data, unsigned bytes, uint64_t arrived)
{
    if (p->cut || p->end - p->first == WAITING_MOST || p->busy > arrived + BACKLOG_NS ||
        chance() * 100 < loss)
        return;
    struct frame *f = &p->waiting[p->end++ % WAITING_MOST];
    uint64_t start = p->busy > arrived ? p->busy : arrived;

    p->busy = start + (rate > 0 ? (uint64_t)(bytes * 8000 / rate) : 0);
    f->due = p->busy + (uint64_t)((delay + jitter * chance()) * 1e6);
    if (f->due < p->last)
        f->due = p->last;
    p->last = f->due;
    f->bytes = bytes;
    memcpy(f->data, data, bytes);
}

/* Port N's address ends with N; every other bit pattern is for all. */
static void forward(int from, const unsigned char *data, unsigned bytes, uint64_t arrived)
{
    static const unsigned char ours[5] = {2, 'h', 'o', 's', 't'};
    bool known = memcmp(data, ours, sizeof ours) == 0 && data[5] < ports;

    for (int to = 0; to < ports; to++) {
        if (to != from && (!known || data[5] == to))
            queue_frame(&port[to], data, bytes, arrived);
    }
}

static void take(int from)
{
    unsigned char data[FRAME_MOST];
    uint64_t arrived = now();

    for (int i = 0; i < BURST; i++) {
        ssize_t n = read(port[from].tap, data, sizeof data);
        if (n < 14)
            return;
        if (!port[from].cut)
            forward(from, data, (unsigned)n, arrived);
    }
}

/* Gives out what is due; returns when the next is, or UINT64_MAX. */
static uint64_t deliver(void)
{
    uint64_t next = UINT64_MAX, time = now();

    for (struct port *p = port; p < port + ports; p++) {
        while (p->first != p->end && p->waiting[p->first % WAITING_MOST].due <= time) {
            const struct frame *f = &p->waiting[p->first++ % WAITING_MOST];
            if (!p->cut && write(p->tap, f->data, f->bytes) < 0)
                continue; /* the host is full or gone: one that is lost */
        }
        if (p->first != p->end && p->waiting[p->first % WAITING_MOST].due < next)
            next = p->waiting[p->first % WAITING_MOST].due;
    }
    return next;
}

/* ---- Ports ---- */

/* Leaves this process in the namespace. */
static bool add_port(const char *netns)
{
    struct ifreq r = {.ifr_flags = IFF_TAP | IFF_NO_PI, .ifr_name = "eth0"};
    const unsigned char address[6] = {2, 'h', 'o', 's', 't', (unsigned char)ports};
    struct port *p = &port[ports];
    int ns = open(netns, O_RDONLY);

    if (ns < 0 || setns(ns, CLONE_NEWNET) != 0)
        return false;
    close(ns);
    p->waiting = malloc(WAITING_MOST * sizeof *p->waiting);
    p->tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (!p->waiting || p->tap < 0 || ioctl(p->tap, TUNSETIFF, &r) != 0)
        return false;
    r.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    memcpy(r.ifr_hwaddr.sa_data, address, sizeof address);
    ports++;
    return ioctl(p->tap, SIOCSIFHWADDR, &r) == 0;
}

/* False: nobody is there any more who could say something. */
static bool obey(void)
{
    char line[64];
    int n;

    if (!fgets(line, sizeof line, stdin))
        return false;
    if (sscanf(line, "cut %d", &n) == 1 && n >= 0 && n < ports)
        port[n].cut = true;
    else if (sscanf(line, "heal %d", &n) == 1 && n >= 0 && n < ports)
        port[n].cut = false;
    else
        fprintf(stderr, "slow-switch: not understood: %s", line);
    return true;
}

static void run(void)
{
    struct pollfd ready[PORTS_MOST + 1];

    for (int i = 0; i < ports; i++)
        ready[i] = (struct pollfd){.fd = port[i].tap, .events = POLLIN};
    ready[ports] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    for (;;) {
        uint64_t next = deliver(), time = now();
        uint64_t left = next > time ? next - time : 0;
        const struct timespec most = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
        if (ppoll(ready, (nfds_t)ports + 1, next == UINT64_MAX ? NULL : &most, NULL) < 0)
            return;
        for (int i = 0; i < ports; i++) {
            if (ready[i].revents)
                take(i);
        }
        if (ready[ports].revents && !obey())
            return;
    }
}

int main(int argc, char **argv)
{
    int own = open("/proc/self/ns/net", O_RDONLY);

    setvbuf(stdin, NULL, _IONBF, 0); /* poll knows nothing of what a buffer holds */
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "delay=%lf", &delay) == 1 || sscanf(argv[i], "jitter=%lf", &jitter) == 1 ||
            sscanf(argv[i], "loss=%lf", &loss) == 1 || sscanf(argv[i], "rate=%lf", &rate) == 1)
            continue;
        if (ports == PORTS_MOST || !add_port(argv[i])) {
            fprintf(stderr, "slow-switch: %s: ", argv[i]);
            perror("no port there");
            return 1;
        }
    }
    if (setns(own, CLONE_NEWNET) != 0 || puts("ready") < 0 || fflush(stdout) != 0)
        return 1;
    run();
    return 0;
}
