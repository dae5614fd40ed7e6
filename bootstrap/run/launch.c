#define _GNU_SOURCE
#include "bootstrap/run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bootstrap/run/chorus.h"
#include "bootstrap/run/descendants.h"
#include "bootstrap/run/links.h"
#include "bootstrap/run/orders.h"
#include "bootstrap/run/say.h"
#include "bootstrap/run/server.h"
#include "bootstrap/run/standstill.h"
#include "runtime/base/clock.h"

enum {
    GRACE_MS = 500,   /* from SIGTERM to SIGKILL */
    CHORUS_MS = 200,  /* that equal lines of other PEs are waited for, before they are counted */
    WRAPPER_MS = 200, /* that a wrapper has to end after the program it ran has died, */
    ENDING_MS = 60000, /* and longer while one is seen to end: it may have much to free */
    EVENTS = 256,
    LAST_TURNS = 100, /* of lines that are taken when all PEs have ended */
};

/* How a PE's process has ended, until that has been looked into. */
struct fate {
    bool ended;
    int status;
};

struct launch {
    const struct options *options;
    struct spawner *spawner;
    struct output *output;
    struct server server;
    struct links links;
    struct chorus chorus;
    pid_t *pid; /* [pe]; 0: has ended, or was never started */
    struct fate *fate;
    int running;  /* PEs whose process lives */
    int orders;   /* from the guard */
    int children; /* readable when a child has changed its state */
    int epoll;

    bool ending; /* the job is over; living processes have been asked to end */
    bool ended;  /* all has been killed that can be */
    int status;
    int64_t timeout_at; /* when the job has run too long; -1: never */
    int64_t kill_at;    /* when those that were asked to end are killed */
    int64_t count_at;   /* when equal lines are counted; -1: there are none */
    int64_t suspect_at; /* when a PE that lives under a wrapper, but not inside, counts as dead */
    int64_t suspect_until; /* however it looks */
    int suspect;

    /* Where the job stands is being put together, and what comes after it. */
    pid_t reporter; /* 0: it is not */
    int64_t report_until;
    bool interrupted; /* Ctrl-C has come */
    int order_after;  /* to be handed on then; 0: none */
    bool timeout_after;
};

static int64_t now_ms(void)
{
    return (int64_t)(clock_ns() / 1000000);
}

/* To every living process of the job; where /proc does not show them, to the PEs at least. */
static void signal_all(struct launch *l, int signal)
{
    if (descendants_signal(signal, NULL, 0, 0) > 0)
        return;
    for (int pe = 0; pe < l->options->n_pes; pe++) {
        if (l->pid[pe])
            kill(l->pid[pe], signal);
    }
}

static void ask_to_end(struct launch *l)
{
    l->kill_at = now_ms() + GRACE_MS;
    signal_all(l, SIGTERM);
    signal_all(l, SIGCONT); /* who is stopped cannot end */
}

static bool start_report(struct launch *l, enum standstill what, int64_t ms)
{
    if (l->reporter)
        kill(l->reporter, SIGKILL);
    l->reporter = standstill_start((uint32_t)getppid(), l->pid, &l->server, what);
    l->report_until = now_ms() + ms;
    return l->reporter != 0;
}

/* failed: says first what the other PEs are at. */
static void launch_end_job(struct launch *l, int status, bool failed)
{
    if (l->ending)
        return;
    l->ending = true;
    l->status = status;
    l->timeout_at = l->suspect_at = -1;
    if (failed && status && l->running &&
        start_report(l, STANDSTILL_BRIEF, STANDSTILL_BRIEF_MS))
        l->kill_at = l->report_until + GRACE_MS;
    else
        ask_to_end(l);
}

/* ---- reports of where the job stands ---- */

static void launch_hand_on(struct launch *l, int order);

static void after_report(struct launch *l)
{
    const int order = l->order_after;

    l->reporter = 0;
    l->report_until = -1;
    l->order_after = 0;
    if (l->ending) {
        ask_to_end(l);
        return;
    }
    if (order)
        launch_hand_on(l, order);
    if (l->timeout_after)
        launch_end_job(l, STATUS_TIMEOUT, false);
}

static void begin_report(struct launch *l)
{
    if (!l->reporter && !l->ending && !start_report(l, STANDSTILL_WHOLE, STANDSTILL_MS))
        after_report(l);
}

static void cut_report(struct launch *l, bool late)
{
    if (!l->reporter)
        return;
    standstill_say_cut((uint32_t)getppid(), late);
    kill(l->reporter, SIGKILL);
    after_report(l);
}

/* ---- lines that PEs have alike ---- */

static void launch_take_lines(struct launch *l)
{
    chorus_take(&l->chorus);
    if (l->count_at < 0 && chorus_is_counting(&l->chorus))
        l->count_at = now_ms() + CHORUS_MS;
}

static void end_as_server_says(struct launch *l)
{
    if (l->ending)
        return;
    launch_take_lines(l);
    if (l->server.text[0])
        say("%s", l->server.text);
    launch_end_job(l, l->server.status, true);
}

/* ---- the PEs' wires ---- */

static void program_ended(struct launch *l, int pe);

/* Receives messages of a PE, a bounded number, so that those of others are received, too. */
static void launch_serve(struct launch *l, int pe)
{
    unsigned char message[WIRE_MAX + 1]; /* a byte more, so that what is too long is seen */
    enum { TURN = 16 };

    for (int i = 0; i < TURN && l->links.link[pe].wire >= 0; i++) {
        bool was_open = l->server.pe[pe].open;
        pid_t sender = 0;
        ssize_t n = links_receive(&l->links, pe, message, sizeof message, &sender);

        if (n < 0)
            return;
        if (n == 0 && links_hung_up(&l->links, pe)) {
            links_close(&l->links, pe);
            return;
        }
        if (!server_receive(&l->server, pe, message, (size_t)n)) {
            end_as_server_says(l);
            return;
        }
        bool is_open = l->server.pe[pe].open;
        if (is_open && !was_open && sender > 0 && sender != l->pid[pe] &&
            !links_watch(&l->links, pe, sender))
            program_ended(l, pe); /* its wrapper has waited for it already */
        if (was_open && !is_open)
            links_unwatch(&l->links, pe);
    }
}

static void serve_to_the_end(struct launch *l, int pe)
{
    for (int i = 0; i < 64 && l->links.link[pe].wire >= 0; i++)
        launch_serve(l, pe);
}

/* A program that a wrapper ran has ended. The wrapper knows how, and may end with its status. What
 * it has said to the end comes first; then the next program of the wrapper may have begun. */
static void program_ended(struct launch *l, int pe)
{
    const unsigned hellos = l->server.pe[pe].hellos;

    links_unwatch(&l->links, pe);
    serve_to_the_end(l, pe);
    if (!l->server.pe[pe].open || l->server.pe[pe].hellos != hellos || l->suspect_at >= 0 ||
        l->ending)
        return;
    l->suspect = pe;
    l->suspect_at = now_ms() + WRAPPER_MS;
    l->suspect_until = now_ms() + ENDING_MS;
}

/* ---- the processes ---- */

static bool start_pe(struct launch *l, int pe, int null)
{
    int stdio[3] = {pe == 0 ? STDIN_FILENO : null, STDOUT_FILENO, STDERR_FILENO};
    int wire = links_open(&l->links, pe);

    if (wire < 0) {
        say("starting PE %d: its wire: %s", pe, strerror(errno));
        l->status = 1;
        return false;
    }
    if (l->output->n) {
        stdio[1] = l->output->writer[pe][0];
        stdio[2] = l->output->writer[pe][1];
    }
    l->pid[pe] = spawner_start(l->spawner, pe, wire, stdio, &l->status);
    close(wire);
    output_close_writer(l->output, pe);
    if (l->pid[pe] == 0)
        return false;
    l->running++;
    return true;
}

static bool launch_start_all(struct launch *l)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool started = true;

    for (int pe = 0; started && pe < l->options->n_pes; pe++)
        started = start_pe(l, pe, null);
    /* The PEs alone decide when our input and output have no more readers and writers. */
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    close(null);
    if (!started)
        launch_end_job(l, l->status, false);
    return started;
}

static void pe_ended(struct launch *l, int pe, int status)
{
    pid_t pid = l->pid[pe];

    launch_take_lines(l); /* before what is said of its end */
    l->pid[pe] = 0;
    l->running--;
    serve_to_the_end(l, pe); /* its last words may say more than its status */
    if (status != 0 || l->server.pe[pe].open) {
        for (int other = 0; other < l->options->n_pes && !l->ending; other++)
            launch_serve(l, other); /* and those of another may be why it ended */
    }
    links_unwatch(&l->links, pe);
    links_close(&l->links, pe);
    if (l->ending)
        return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        if (!server_left(&l->server, pe))
            end_as_server_says(l);
        return;
    }
    say_death(pe, pid, status);
    launch_end_job(l, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), true);
}

/* False: no child is left, nor any descendant of one. Of PEs that have ended since the last call,
 * those that were killed come first, then those that left with 0: they may be why others failed. */
static bool launch_reap(struct launch *l)
{
    const int n = l->options->n_pes;
    bool children_left, any = false;
    pid_t pid;
    int status;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == l->reporter)
            after_report(l);
        for (int pe = 0; pe < n; pe++) {
            if (l->pid[pe] == pid) {
                l->fate[pe] = (struct fate){true, status};
                any = true;
            }
        }
    }
    children_left = pid == 0 || errno != ECHILD;
    for (int i = 0; any && i < 3 * n; i++) {
        struct fate *f = &l->fate[i % n];
        if (f->ended && (WIFSIGNALED(f->status) ? 0 : WEXITSTATUS(f->status) ? 2 : 1) == i / n) {
            f->ended = false;
            pe_ended(l, i % n, f->status);
        }
    }
    return children_left;
}

/* ---- the guard's orders ---- */

static void launch_hand_on(struct launch *l, int order)
{
    const int signal = order & ~ORDER_OTHER_GROUPS;

    if (signal == SIGQUIT) {
        begin_report(l);
        return;
    }
    if (signal == SIGINT && !l->interrupted) {
        l->interrupted = true;
        l->order_after = order;
        begin_report(l);
        return;
    }
    if (signal == SIGINT) {
        cut_report(l, false);
        standstill_start((uint32_t)getppid(), l->pid, &l->server, STANDSTILL_END_INTERRUPTED);
    }
    if (order & ORDER_OTHER_GROUPS) {
        descendants_signal(signal, NULL, 0, getpgrp());
        return;
    }
    /* What a terminal would send to all, all get; the rest is between the user and the PEs. */
    if (signal != SIGUSR1 && signal != SIGUSR2) {
        signal_all(l, signal);
        return;
    }
    for (int pe = 0; pe < l->options->n_pes; pe++) {
        if (l->pid[pe])
            kill(l->pid[pe], signal);
    }
}

static void take_orders(struct launch *l)
{
    unsigned char signals[16];
    ssize_t n = read(l->orders, signals, sizeof signals);

    for (ssize_t i = 0; i < n; i++)
        launch_hand_on(l, signals[i]);
    if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
        return;
    epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->orders, NULL);
    if (!l->ending)
        say("gshmemrun itself was killed; the job is ended");
    launch_end_job(l, 128 + SIGKILL, false);
    l->kill_at = now_ms();
}

/* ---- the loop ---- */

static int64_t nearest(const struct launch *l)
{
    const int64_t all[] = {l->timeout_at, l->ending ? l->kill_at : -1, l->suspect_at, l->count_at,
                           l->reporter ? l->report_until : -1};
    int64_t first = -1;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i] >= 0 && (first < 0 || all[i] < first))
            first = all[i];
    }
    return first;
}

static int launch_wait_ms(const struct launch *l)
{
    int64_t left = nearest(l) - now_ms();

    if (nearest(l) < 0)
        return -1;
    return left < 0 ? 0 : left > 1000000 ? 1000000 : (int)left;
}

static void look_at_clock(struct launch *l)
{
    int64_t now = now_ms();

    if (l->timeout_at >= 0 && now >= l->timeout_at) {
        say_timeout(l->options->timeout_ms);
        l->timeout_at = -1;
        l->timeout_after = true;
        begin_report(l);
    }
    if (l->reporter && now >= l->report_until)
        cut_report(l, !l->ending);
    if (l->count_at >= 0 && now >= l->count_at) {
        chorus_count(&l->chorus);
        l->count_at = -1;
    }
    if (l->suspect_at >= 0 && now >= l->suspect_at && now < l->suspect_until &&
        descendants_any_ends(l->pid[l->suspect])) {
        l->suspect_at = now + WRAPPER_MS;
    } else if (l->suspect_at >= 0 && now >= l->suspect_at) {
        say_suspect(l->suspect, l->pid[l->suspect]);
        launch_end_job(l, 1, false);
    }
    if (l->ending && now >= l->kill_at) {
        signal_all(l, SIGKILL);
        descendants_end(NULL, 0);
        l->ended = true;
    }
}

/* Wires come before deaths: a PE's last words explain the deaths that follow them. */
static void handle(struct launch *l, const struct epoll_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        if (links_kind(events[i].data.u64) == LINKS_WIRE)
            launch_serve(l, links_pe(events[i].data.u64));
    }
    for (int i = 0; i < n; i++) {
        if (links_kind(events[i].data.u64) == LINKS_WATCH &&
            links_watched_has_ended(&l->links, links_pe(events[i].data.u64)))
            program_ended(l, links_pe(events[i].data.u64));
    }
    for (int i = 0; i < n; i++) {
        struct signalfd_siginfo ignored[8];
        if (links_kind(events[i].data.u64) != LINKS_OTHER)
            continue;
        if (links_pe(events[i].data.u64) == l->orders)
            take_orders(l);
        else if (links_pe(events[i].data.u64) == l->chorus.in)
            launch_take_lines(l);
        else
            while (read(l->children, ignored, sizeof ignored) > 0)
                ;
    }
}

static void attend(struct launch *l)
{
    struct epoll_event events[EVENTS];

    while (launch_reap(l) && !l->ended) {
        if (l->running == 0)
            launch_end_job(l, 0, false); /* the PEs are done, but something they started is not */
        int n = epoll_wait(l->epoll, events, EVENTS, launch_wait_ms(l));
        handle(l, events, n);
        look_at_clock(l);
    }
}

static bool launch_prepare(struct launch *l)
{
    sigset_t child;
    int n = l->options->n_pes;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    l->pid = calloc((size_t)n, sizeof *l->pid);
    l->fate = calloc((size_t)n, sizeof *l->fate);
    if (l->epoll < 0 || l->children < 0 || !l->pid || !l->fate || !descendants_adopt() ||
        !links_start(&l->links, n, l->epoll) || !links_add_other(&l->links, l->orders) ||
        !links_add_other(&l->links, l->children) || !chorus_open(&l->chorus) ||
        !links_add_other(&l->links, l->chorus.in) ||
        !server_start(&l->server, n, l->options->n_nodes, (uint32_t)getppid(), links_send,
                      &l->links)) {
        say("cannot prepare the job: %s", strerror(errno));
        return false;
    }
    l->spawner->log = l->chorus.out;
    return spawner_prepare(l->spawner);
}

int launch(const struct options *options, struct spawner *spawner, struct output *output,
           int orders)
{
    struct launch l = {options, spawner, output, .orders = orders};

    if (!launch_prepare(&l))
        return 1;
    l.timeout_at = options->timeout_ms < 0 ? -1 : now_ms() + options->timeout_ms;
    l.suspect_at = l.count_at = -1;
    launch_start_all(&l);
    attend(&l);
    /* The last lines of PEs that have died. Processes of theirs may send more, without end. */
    for (int turns = 0; turns < LAST_TURNS && chorus_take(&l.chorus); turns++)
        ;
    chorus_count(&l.chorus);
    chorus_close(&l.chorus);
    links_stop(&l.links);
    server_stop(&l.server);
    spawner_free(spawner);
    free(l.pid);
    free(l.fate);
    return l.status;
}
