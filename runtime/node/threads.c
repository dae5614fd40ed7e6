#define _GNU_SOURCE
#include "runtime/node/threads.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 64, LINE_BYTES = 128 };

enum found { FOUND, GONE, UNKNOWN };

/* A thread's name, in parentheses, and its state after it. */
static enum found read_thread(const char *tid, char line[LINE_BYTES])
{
    char path[PATH_BYTES];

    if (snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid) >= (int)sizeof path)
        return UNKNOWN;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, LINE_BYTES - 1);
    const bool gone = n < 0 && (errno == ENOENT || errno == ESRCH);
    if (fd >= 0)
        close(fd);
    line[n > 0 ? n : 0] = 0;
    return gone ? GONE : n > 0 && strchr(line, '(') && strrchr(line, ')') ? FOUND : UNKNOWN;
}

static bool has_ended(const char *line)
{
    const char *state = strrchr(line, ')');

    return strncmp(state, ") Z", 3) == 0 || strncmp(state, ") X", 3) == 0;
}

/* A thread's initial name is that of the thread that starts it: the main thread's name says
 * nothing. */
static bool is_a_library(const char *line, const char *main_line)
{
    const char *name = strchr(line, '(') + 1, *of_main = strchr(main_line, '(') + 1;
    const ptrdiff_t length = strrchr(line, ')') - name;

    if (length == strrchr(main_line, ')') - of_main && strncmp(name, of_main, (size_t)length) == 0)
        return false;
    return strncmp(name, "gshmem-", 7) == 0 || strncmp(name, "cuda-Evt", 8) == 0 ||
           (strncmp(name, "cuda", 4) == 0 && isdigit((unsigned char)name[4]));
}

bool threads_main_has_ended(void)
{
    char tid[16], line[LINE_BYTES];

    snprintf(tid, sizeof tid, "%d", (int)getpid());
    return read_thread(tid, line) == FOUND && has_ended(line);
}

int threads_of_program(void)
{
    char line[LINE_BYTES], main_line[LINE_BYTES], of_main[16], own[16];
    DIR *threads = opendir("/proc/self/task");
    int n = 0;

    snprintf(of_main, sizeof of_main, "%d", (int)getpid());
    snprintf(own, sizeof own, "%d", (int)gettid());
    if (!threads || read_thread(of_main, main_line) != FOUND)
        n = -1;
    for (struct dirent *e; n >= 0 && (e = readdir(threads));) {
        if (e->d_name[0] == '.' || strcmp(e->d_name, own) == 0)
            continue;
        enum found found = read_thread(e->d_name, line);
        if (found == UNKNOWN)
            n = -1;
        else if (found == FOUND && !has_ended(line) && !is_a_library(line, main_line))
            n++;
    }
    if (threads)
        closedir(threads);
    return n;
}

bool threads_any_runs(void)
{
    DIR *threads = opendir("/proc/self/task");
    char line[LINE_BYTES], own[16];
    bool runs = !threads;

    snprintf(own, sizeof own, "%d", (int)gettid());
    for (struct dirent *e; !runs && (e = readdir(threads));) {
        if (e->d_name[0] == '.' || strcmp(e->d_name, own) == 0)
            continue;
        enum found found = read_thread(e->d_name, line);
        runs = found == UNKNOWN || (found == FOUND && strncmp(strrchr(line, ')'), ") R", 3) == 0);
    }
    if (threads)
        closedir(threads);
    return runs;
}
