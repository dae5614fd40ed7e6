/* A program that uses MPI and finds its job by the launcher of MPI, not by a communicator. What MPI_Finalize does to
 * the connection with the launcher is no concern of what the program opens afterwards.
 *
 *     beside        gshmem_finalize, MPI_Finalize, exit
 *     beside again  a gshmem_init behind MPI_Finalize: works or is refused with a reason
 *     beside first  the only one: the same */
#include <mpi.h>

#include <errno.h>
#include <sys/socket.h>

#include "gshmem.h"

#include "check.h"

static int pair[64][2];

/* Sockets of the program's own, which take the numbers that have become free. */
static void open_sockets(void)
{
    for (int i = 0; i < 64; i++)
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), 0);
}

/* Runs after the library's own handler: nobody has written into them. */
static void check_sockets(void)
{
    char text[200];

    for (int i = 0; i < 128; i++) {
        ssize_t n = recv(pair[i / 2][i % 2], text, sizeof text - 1, MSG_DONTWAIT);
        if (n >= 0)
            CHECK_FAIL("descriptor %d was sent \"%.*s\"", pair[i / 2][!(i % 2)], (int)n, text);
        CHECK_EQ(errno, EAGAIN);
    }
}

static void use_job(void)
{
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_finalize());
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const char *line = "";

    atexit(check_sockets);
    MPI_Init(&argc, &argv);
    if (strcmp(what, "first") != 0) {
        CHECK_OK(gshmem_init());
        use_job();
    }
    MPI_Finalize();
    open_sockets();
    if (*what) {
        gshmem_status_t status = gshmem_init();
        if (!status) {
            use_job();
        } else {
            CHECK_EQ(status, GSHMEM_ERR_BOOTSTRAP);
            CHECK_EQ(gshmem_last_error(&line), status);
            CHECK_HAS(line, "MPI_Finalize");
        }
    }
    return 0;
}
