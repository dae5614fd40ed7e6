#define _GNU_SOURCE
#include "runtime/node/threads.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum threads_found threads_read(int tid, struct threads_one *out)
{
    char path[64], line[128];

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    const bool gone = n < 0 && (errno == ENOENT || errno == ESRCH);
    if (fd >= 0)
        close(fd);
    line[n > 0 ? n : 0] = 0;
    char *name = strchr(line, '('), *end = strrchr(line, ')');
    if (!name || !end || end[1] != ' ')
        return gone ? THREADS_GONE : THREADS_UNKNOWN;
    *end = 0;
    snprintf(out->name, sizeof out->name, "%s", name + 1);
    out->state = end[2];
    return THREADS_FOUND;
}

bool threads_has_ended(const struct threads_one *t)
{
    return t->state == 'Z' || t->state == 'X';
}

bool threads_is_a_library(const struct threads_one *t, const struct threads_one *of_main)
{
    const char *name = t->name;

    if (strcmp(name, of_main->name) == 0)
        return false;
    return strncmp(name, "gshmem-", 7) == 0 || strncmp(name, "cuda-Evt", 8) == 0 ||
           (strncmp(name, "cuda", 4) == 0 && isdigit((unsigned char)name[4]));
}

bool threads_main_has_ended(void)
{
    struct threads_one of_main;

    return threads_read(getpid(), &of_main) == THREADS_FOUND && threads_has_ended(&of_main);
}

int threads_of_program(void)
{
    DIR *threads = opendir("/proc/self/task");
    const int own = gettid();
    struct threads_one one, of_main;
    int n = 0;

    if (!threads || threads_read(getpid(), &of_main) != THREADS_FOUND)
        n = -1;
    for (struct dirent *e; n >= 0 && (e = readdir(threads));) {
        const int tid = atoi(e->d_name);
        if (tid <= 0 || tid == own)
            continue;
        enum threads_found found = threads_read(tid, &one);
        if (found == THREADS_UNKNOWN)
            n = -1;
        else if (found == THREADS_FOUND && !threads_has_ended(&one) &&
                 !threads_is_a_library(&one, &of_main))
            n++;
    }
    if (threads)
        closedir(threads);
    return n;
}

bool threads_any_runs(void)
{
    DIR *threads = opendir("/proc/self/task");
    const int own = gettid();
    struct threads_one one;
    bool runs = !threads;

    for (struct dirent *e; !runs && (e = readdir(threads));) {
        const int tid = atoi(e->d_name);
        if (tid <= 0 || tid == own)
            continue;
        enum threads_found found = threads_read(tid, &one);
        runs = found == THREADS_UNKNOWN || (found == THREADS_FOUND && one.state == 'R');
    }
    if (threads)
        closedir(threads);
    return runs;
}
