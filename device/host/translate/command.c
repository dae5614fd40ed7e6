#define _GNU_SOURCE
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void hostcc_add(struct command *c, const char *word)
{
    char **more = realloc(c->words, (c->count + 2) * sizeof *more);
    char *copy = strdup(word);

    if (!more || !copy) {
        fprintf(stderr, "gshmem-hostcc: out of memory\n");
        exit(1);
    }
    c->words = more;
    c->words[c->count++] = copy;
    c->words[c->count] = NULL;
}

void hostcc_add_all(struct command *c, const struct command *more)
{
    for (size_t i = 0; i < more->count; i++)
        hostcc_add(c, more->words[i]);
}

void hostcc_clear(struct command *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->words[i]);
    free(c->words);
    *c = (struct command){NULL, 0};
}

static const int ends[] = {SIGHUP, SIGINT, SIGTERM};
volatile sig_atomic_t hostcc_interrupted; /* by which signal; 0 where by none */
static volatile sig_atomic_t running;     /* the compiler's process; 0 where none runs */

/* The compiler ends of it, and then we do, cleaning up. */
void hostcc_interrupt(int signal_number)
{
    hostcc_interrupted = signal_number;
    if (running > 0)
        kill(running, signal_number);
}

/* What is done of the signals that end us. Those that are ignored, as below nohup, stay so, here
 * and in the compiler. */
void hostcc_on_signals(void (*handler)(int))
{
    struct sigaction now, then = {.sa_handler = handler, .sa_flags = SA_RESTART};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(ends[i], &then, NULL);
    }
}

/* Starts a command; what it writes goes to *from where that is wanted. */
pid_t hostcc_start(const struct command *c, int *from)
{
    int way[2] = {-1, -1};
    sigset_t held, before;

    fflush(NULL);
    if (from && pipe(way) != 0)
        return -1;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        sigaddset(&held, ends[i]);
    sigprocmask(SIG_BLOCK, &held, &before); /* until both know what to do of them */
    pid_t pid = fork();
    if (pid == 0) {
        hostcc_on_signals(SIG_DFL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (from) {
            dup2(way[1], STDOUT_FILENO);
            close(way[0]);
            close(way[1]);
        }
        execvp(c->words[0], c->words);
        fprintf(stderr, "gshmem-hostcc: %s: %s\n", c->words[0], strerror(errno));
        _exit(127);
    }
    running = pid > 0 ? pid : 0;
    if (running && hostcc_interrupted)
        kill(pid, hostcc_interrupted);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (from) {
        close(way[1]);
        *from = way[0];
    }
    return pid;
}

int hostcc_finish(pid_t pid)
{
    int status;

    if (pid < 0) {
        fprintf(stderr, "gshmem-hostcc: starting the compiler: %s\n", strerror(errno));
        return 1;
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return 1;
    }
    running = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int hostcc_run(struct command *c)
{
    int status = hostcc_finish(hostcc_start(c, NULL));

    hostcc_clear(c);
    return status;
}
