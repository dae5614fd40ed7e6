#define _GNU_SOURCE
#include "bootstrap/run/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/run/descendants.h"
#include "bootstrap/run/orders.h"
#include "bootstrap/run/output.h"
#include "bootstrap/run/say.h"

static const int handed_on[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

/* A blocked signal waits for us even if it was to be ignored (nohup): those are left alone. */
static bool ignored(int signal)
{
    struct sigaction action;

    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static bool prepare_signals(struct guard *g)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t blocked;

    sigemptyset(&g->waited);
    sigaddset(&g->waited, SIGCHLD);
    for (size_t i = 0; i < sizeof handed_on / sizeof handed_on[0]; i++) {
        if (!ignored(handed_on[i]))
            sigaddset(&g->waited, handed_on[i]);
    }
    blocked = g->waited;
    sigaddset(&blocked, SIGPIPE); /* what we cannot say must not end us, nor stop us */
    sigaddset(&blocked, SIGTTOU);
    /* If it were ignored, the kernel would keep the children's statuses from us. */
    return sigaction(SIGCHLD, &standard, NULL) == 0 &&
           sigprocmask(SIG_BLOCK, &blocked, &g->mask) == 0;
}

bool guard_prepare(struct guard *g)
{
    *g = (struct guard){.orders = {-1, -1}};
    g->n_spare = descendants_children(&g->spare);
    g->strangers = g->n_spare > 0;
    if (prepare_signals(g) && descendants_adopt() && pipe2(g->orders, O_CLOEXEC) == 0)
        return true;
    say("cannot prepare to watch over the job: %s", strerror(errno));
    return false;
}

pid_t guard_fork(struct guard *g, const char *name)
{
    pid_t pid = fork();

    if (pid < 0)
        say("a new process: %s", strerror(errno));
    if (pid != 0)
        return pid;
    /* So that `killall gshmemrun` leaves someone to clean up. */
    prctl(PR_SET_NAME, name, 0, 0, 0);
    close(g->orders[1]);
    return 0;
}

static bool spare(struct guard *g, pid_t pid)
{
    pid_t *grown = realloc(g->spare, (g->n_spare + 1) * sizeof *grown);

    if (!grown) {
        say("out of memory");
        return false;
    }
    g->spare = grown;
    g->spare[g->n_spare++] = pid;
    return true;
}

bool guard_spare(struct guard *g, pid_t output)
{
    if (output == 0)
        return true; /* we are the output process */
    g->output = output;
    return spare(g, output);
}

static bool guard_is_known(const struct guard *g, pid_t pid)
{
    bool known = pid == g->launcher || pid == g->output;

    for (size_t i = 0; i < g->n_spare && !known; i++)
        known = g->spare[i] == pid;
    return known;
}

/* While the launcher lives, all that the job leaves behind becomes its child. What becomes the
 * guard's was left by a process that was there before, and is none of the job's either. */
static void spare_orphans(struct guard *g)
{
    pid_t *child = NULL;
    size_t n = g->strangers ? descendants_children(&child) : 0;

    for (size_t i = 0; i < n; i++) {
        if (!guard_is_known(g, child[i]) && !spare(g, child[i]))
            break;
    }
    free(child);
}

static void guard_hand_on(struct guard *g, int signal, int to)
{
    unsigned char byte = (unsigned char)(signal | to);

    g->hurried |= signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
    if (write(g->orders[1], &byte, 1) != 1)
        return; /* the launcher is ending */
}

/* Stops as a process does that knows nothing of SIGTSTP, so that the shell sees it. */
static void stop(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* What the terminal's driver sends, it sends to all of our process group: to PEs in another, as
 * timeout and setsid make it, it comes from here. The hang-up alone is sent to who leads the
 * session, and to nobody else. */
static void take_signal(struct guard *g, const siginfo_t *info)
{
    const bool from_terminal = info->si_code == SI_KERNEL;
    const bool to_leader = info->si_signo == SIGHUP && getsid(0) == getpid();

    guard_hand_on(g, info->si_signo, from_terminal && !to_leader ? ORDER_OTHER_GROUPS : 0);
    if (info->si_signo == SIGTSTP)
        stop();
}

static bool guard_ended(pid_t *pid, int *status)
{
    if (*pid == 0 || waitpid(*pid, status, WNOHANG) != *pid)
        return false;
    *pid = 0;
    return true;
}

/* Whether the output process has ended. */
static bool output_ended(struct guard *g, int *status)
{
    if (!guard_ended(&g->output, status))
        return false;
    g->lost |= WIFEXITED(*status) && WEXITSTATUS(*status) == OUTPUT_LOST;
    return true;
}

/* Until the launcher has ended. Returns its status as wait gives it. */
static int guard_watch(struct guard *g)
{
    siginfo_t info;
    int status;

    for (;;) {
        if (sigwaitinfo(&g->waited, &info) < 0)
            continue; /* we were stopped, and go on */
        if (info.si_signo != SIGCHLD)
            take_signal(g, &info);
        if (g->output && output_ended(g, &status) && status != 0 && !g->lost) {
            say("the process that tags output has died; the job is ended");
            g->hurried = true;
            close(g->orders[1]); /* the launcher takes this for our end, and ends all */
            g->orders[1] = -1;
        }
        if (guard_ended(&g->launcher, &status))
            return status;
        if (info.si_signo == SIGCHLD)
            spare_orphans(g);
    }
}

/* What PEs have written is still to be passed on, and may have to wait for who reads it. After a
 * job that was not left to end by itself, for a second only. */
static void wait_for_output(struct guard *g)
{
    struct timespec left = {.tv_sec = 1};
    siginfo_t info;
    int status;

    while (g->output && !output_ended(g, &status)) {
        int signal = sigtimedwait(&g->waited, &info, g->hurried ? &left : NULL);
        if (signal < 0 && errno == EAGAIN) {
            kill(g->output, SIGKILL);
            waitpid(g->output, &status, 0);
            g->output = 0;
        } else if (signal > 0 && signal != SIGCHLD) {
            g->hurried |= signal != SIGTSTP && signal != SIGCONT;
            if (signal == SIGTSTP)
                stop();
        }
    }
}

int guard_wait(struct guard *g)
{
    int status = guard_watch(g);
    int result = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

    if (WIFSIGNALED(status)) {
        say("the launcher was killed by signal %d (%s); the job is ended", WTERMSIG(status),
            strsignal(WTERMSIG(status)));
        g->hurried = true;
    }
    g->hurried |= result == STATUS_TIMEOUT;
    descendants_end(g->spare, g->n_spare);
    wait_for_output(g);
    return result == 0 && g->lost ? 1 : result;
}

void guard_free(struct guard *g)
{
    free(g->spare);
}
