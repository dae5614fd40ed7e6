/* A job whose PEs wait for signals that never come, and of which most have never talked to most
 * others: when a host is lost, all of the others learn of it all the same.
 *
 *     waits FILE          as for lost_host.c, whose numbers these are */
#include <fcntl.h>
#include <sys/mman.h>

#include "../pe/pe.h"

enum { READY, WHEN, SEEN, THROUGH, WORDS };

static uint64_t never;

int main(int argc, char **argv)
{
    int fd = open(argc == 2 ? argv[1] : "", O_RDWR);
    const char *line = "";

    CHECK(fd >= 0);
    volatile uint64_t *file =
        mmap(NULL, WORDS * sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(file != MAP_FAILED);
    begin();
    barrier();
    __atomic_fetch_add(&file[READY], 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(gshmem_uint64_wait_until(&never, GSHMEM_CMP_EQ, 1), GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(gshmem_last_error(&line), GSHMEM_ERR_PEER_DEAD);
    CHECK(file[WHEN]);
    printf("PE %d: %s\n", me, line);
    fflush(stdout);
    __atomic_fetch_add(&file[SEEN], 1, __ATOMIC_SEQ_CST);
    while (gshmem_finalize() != GSHMEM_OK && gshmem_initialized())
        ;
    __atomic_fetch_add(&file[THROUGH], 1, __ATOMIC_SEQ_CST);
    return 0;
}
