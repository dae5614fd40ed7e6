#define _GNU_SOURCE
#include "plot.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int results_path(const char *folder, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/results.csv", folder);
}

bool plot_begin(const char *folder)
{
    char path[PATH_MAX];

    if (results_path(folder, path) < PATH_MAX && (mkdir(folder, 0777) == 0 || errno == EEXIST) &&
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
    results_path(folder, path);
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
