#include "bootstrap/run/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void say(const char *format, ...)
{
    char line[1024];
    int used = snprintf(line, sizeof line, "gshmemrun: ");
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    if (n > 0)
        used += n < (int)sizeof line - used - 1 ? n : (int)sizeof line - used - 2;
    line[used++] = '\n';
    /* A line that stderr refuses has nowhere else to go. */
    if (write(STDERR_FILENO, line, (size_t)used) < 0)
        return;
}

void say_death(int pe, pid_t pid, int status)
{
    if (WIFSIGNALED(status))
        say("PE %d (pid %d) was killed by signal %d (%s)%s; the job is ended", pe, (int)pid,
            WTERMSIG(status), strsignal(WTERMSIG(status)),
            WCOREDUMP(status) ? ", core dumped" : "");
    else
        say("PE %d (pid %d) exited with status %d; the job is ended", pe, (int)pid,
            WEXITSTATUS(status));
}

void say_suspect(int pe, pid_t wrapper)
{
    say("PE %d: its program has died without gshmem_finalize, while its wrapper (pid %d) lives on; "
        "the job is ended",
        pe, (int)wrapper);
}

void say_timeout(int64_t ms)
{
    say("the job has run for %g s, its --timeout, and is ended", (double)ms / 1000);
}
