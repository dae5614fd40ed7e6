/* gshmemrun: starts the PEs of a job on this machine. This file is the order of things. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bootstrap/run/guard.h"
#include "bootstrap/run/launch.h"
#include "bootstrap/run/options.h"
#include "bootstrap/run/output.h"
#include "bootstrap/run/say.h"
#include "bootstrap/run/spawn.h"
#include "runtime/base/descriptor.h"

/* Keeps nothing open whose end somebody may wait for. */
static void main_let_go(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return;
    dup2(null, fd);
    close(null);
}

static int run_output(struct output *output)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* a stuck reader must not keep it alive */
    output_close_writers(output);
    main_let_go(STDIN_FILENO);
    int status = output_run(output);
    output_free(output);
    return status;
}

static int run_job(const struct options *options, struct spawner *spawner)
{
    struct output output = {0};
    struct guard guard;

    if (!guard_prepare(&guard) || (options->tag_output && !output_open(&output, options->n_pes)))
        return 1;
    spawner->mask = guard.mask;
    if (options->tag_output) {
        pid_t pid = guard_fork(&guard, "gshmem-output");
        if (pid < 0 || !guard_spare(&guard, pid))
            return 1;
        if (pid == 0) {
            guard_free(&guard);
            return run_output(&output);
        }
        output_close_readers(&output);
    }
    guard.launcher = guard_fork(&guard, "gshmem-launcher");
    if (guard.launcher < 0)
        return 1;
    if (guard.launcher == 0) {
        int status = launch(options, spawner, &output, guard.orders[0]);
        output_free(&output);
        guard_free(&guard);
        return status;
    }
    close(guard.orders[0]);
    output_free(&output);
    main_let_go(STDIN_FILENO);
    main_let_go(STDOUT_FILENO);
    int status = guard_wait(&guard);
    guard_free(&guard);
    return status;
}

int main(int argc, char **argv)
{
    struct options options;
    struct spawner spawner = {.options = &options};
    int status;

    if (descriptor_fill_standard() !=
        0) { /* what is opened must not become one of them by chance */
        say("/dev/null: %s", strerror(errno));
        return 1;
    }
    if (options_parse(argc, argv, &options, &status) &&
        spawn_find(options.program[0], spawner.path, &status)) {
        if (spawn_raise_limit(&options, &spawner.nofile))
            status = run_job(&options, &spawner);
        else
            status = 2;
    }
    options_free(&options);
    return status;
}
