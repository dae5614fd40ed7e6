/* A job that does nothing but barriers, so that most PEs have never talked to most others: when a
 * host is lost, all of the others learn of it all the same.
 *
 *     barriers FILE          as for lost_host.c, whose numbers these are
 *
 * One PE of each host comes late to a barrier, so that its neighbours have given up by then. */
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#include "../pe/pe.h"

enum { READY, WHEN, SEEN, THROUGH, WORDS, LATE_SECONDS = 6 };

int main(int argc, char **argv)
{
    int fd = open(argc == 2 ? argv[1] : "", O_RDWR);
    const char *line = "";
    gshmem_status_t status;

    CHECK(fd >= 0);
    volatile uint64_t *file =
        mmap(NULL, WORDS * sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(file != MAP_FAILED);
    begin();
    barrier();
    __atomic_fetch_add(&file[READY], 1, __ATOMIC_SEQ_CST);
    while (!(status = gshmem_barrier_all())) {
        if (file[WHEN] && me % 2)
            nanosleep(&(struct timespec){.tv_sec = LATE_SECONDS}, NULL);
    }
    CHECK_EQ(status, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(gshmem_last_error(&line), status);
    printf("PE %d: %s\n", me, line);
    fflush(stdout);
    __atomic_fetch_add(&file[SEEN], 1, __ATOMIC_SEQ_CST);
    while (gshmem_finalize() != GSHMEM_OK && gshmem_initialized())
        ;
    __atomic_fetch_add(&file[THROUGH], 1, __ATOMIC_SEQ_CST);
    return 0;
}
