#define _GNU_SOURCE
#include "plot.h"

#include "commit.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int plot_path(const char *folder, const char *name, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

/* ---- What the page says of the run ---- */

static void write_machine(FILE *to)
{
    FILE *from = fopen("/proc/cpuinfo", "re");
    char line[200], model[200] = "unknown processor";
    struct utsname system;

    while (from && fgets(line, sizeof line, from)) {
        if (sscanf(line, "model name : %199[^\n]", model) == 1)
            break;
    }
    if (from)
        fclose(from);
    uname(&system);
    fprintf(to, "machine  %s, %ld CPUs, %s %s\n", model, sysconf(_SC_NPROCESSORS_ONLN),
            system.sysname, system.release);
}

static void write_load(FILE *to)
{
    double load[3];

    if (getloadavg(load, 3) == 3)
        fprintf(to, "load     %.2f %.2f %.2f before (1, 5, 15 minutes)\n", load[0], load[1],
                load[2]);
}

/* As those of tests/perf/results. */
static bool write_run(const char *folder, const char *library)
{
    const time_t now = time(NULL);
    char path[PATH_MAX], date[40];
    struct tm utc;
    FILE *to;

    if (plot_path(folder, "results.txt", path) >= PATH_MAX || !(to = fopen(path, "we")))
        return false;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
    fprintf(to, "date     %s\ncommit   %s\nlibrary  %s\n", date, PERF_COMMIT, library);
    write_machine(to);
    write_load(to);
    const bool good = !ferror(to);
    return fclose(to) == 0 && good;
}

/* ---- Beginning and end ---- */

bool plot_begin(const char *folder, const char *library)
{
    char path[PATH_MAX];

    errno = ENAMETOOLONG; /* unless a call fails */
    if (plot_path(folder, "results.csv", path) < PATH_MAX &&
        (mkdir(folder, 0777) == 0 || errno == EEXIST) && write_run(folder, library) &&
        freopen(path, "we", stdout))
        return true;
    fprintf(stderr, "gshmem-perf: --plot %s: cannot make results.csv there: %s\n", folder,
            strerror(errno));
    return false;
}

/* Beside this program, or wherever the shell would find it. */
static void find_program(char path[PATH_MAX])
{
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    self[n > 0 ? n : 0] = 0;
    if (n <= 0 || snprintf(path, PATH_MAX, "%s/gshmem-plot", dirname(self)) >= PATH_MAX ||
        access(path, X_OK))
        strcpy(path, "gshmem-plot");
}

bool plot_end(const char *folder)
{
    char program[PATH_MAX], path[PATH_MAX];
    char *arguments[] = {program, path, "-o", (char *)folder, NULL};
    posix_spawn_file_actions_t actions;
    int status = 1, problem;
    pid_t child;

    find_program(program);
    plot_path(folder, "results.csv", path);
    fflush(stdout);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    problem = posix_spawnp(&child, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (problem)
        fprintf(stderr, "gshmem-perf: cannot start %s, which draws %s: %s\n", program, path,
                strerror(problem));
    while (!problem && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return !problem && status == 0;
}
