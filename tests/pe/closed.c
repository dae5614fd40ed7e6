/* A program that runs with standard input, output and error closed: what it prints, and what the library says of
 * its mistakes, goes into none of the library's files and sockets.
 *
 *     closed [N]    N: without a launcher, by a unique id */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "pe.h"

static int standard_error; /* a copy, for what goes wrong */
static long cell;

/* Whether the descriptor stays open. For a moment it may be: a thread of the library reads a file of /proc, loads a library, or
 * has just made a socket, which descriptor_keep moves to another number. */
static bool is_open(int fd, char name[100])
{
    char path[40];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (int tries = 0; tries < 1000; tries++) {
        if (fcntl(fd, F_GETFD) < 0)
            return false;
        ssize_t got = readlink(path, name, 99);
        name[got > 0 ? got : 0] = 0;
        usleep(1000);
    }
    return true;
}

static void still_closed(const char *when)
{
    for (int fd = 0; fd < 3; fd++) {
        char name[100];

        if (!is_open(fd, name))
            continue;
        dup2(standard_error, STDERR_FILENO);
        CHECK_FAIL("%s: descriptor %d is %s", when, fd, name);
    }
}

static void be_pe(const gshmem_init_attr_t *attr)
{
    gshmem_status_t status = attr ? gshmem_init_attr(attr) : gshmem_init();

    still_closed("gshmem_init");
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    for (int i = 0; i < 20000; i++)
        printf("a line that nobody will read, %d\n", i);
    fflush(stdout);
    for (int pe = 0; !status && pe < n; pe++) /* to PEs of other hosts a stream is opened */
        status = gshmem_long_atomic_inc(&cell, pe);
    if (!status)
        gshmem_putmem(&(char){0}, &(char){0}, 1, n); /* no such PE: a line is written */
    if (!status)
        status = gshmem_barrier_all();
    still_closed("gshmem_barrier_all");
    const long seen = cell;
    void *memory = gshmem_malloc(1 << 20);
    if (!status)
        status = gshmem_finalize();
    still_closed("gshmem_finalize");
    dup2(standard_error, STDERR_FILENO);
    CHECK_EQ(status, GSHMEM_OK);
    CHECK(memory);
    CHECK_EQ(seen, n);
}

static void be_pe_of_id(const gshmem_uniqueid_t *uid, int pe, int n_pes)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = n_pes};

    be_pe(&attr);
}

int main(int argc, char **argv)
{
    const int n_pes = argc > 1 ? atoi(argv[1]) : 0;
    gshmem_uniqueid_t uid;

    standard_error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
    CHECK(standard_error >= 0);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    if (!n_pes) {
        be_pe(NULL);
        return 0;
    }
    if (gshmem_get_uniqueid(&uid))
        return 1;
    still_closed("gshmem_get_uniqueid");
    for (int pe = 1; pe < n_pes; pe++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            be_pe_of_id(&uid, pe, n_pes);
            return 0;
        }
    }
    be_pe_of_id(&uid, 0, n_pes);
    for (int pe = 1; pe < n_pes; pe++) {
        int status;
        CHECK(wait(&status) > 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return 0;
}
