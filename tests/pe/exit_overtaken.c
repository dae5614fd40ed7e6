/* PE 0 ends the job with status 0, and is held up before the launcher hears of it. PE 1 sees the end in the memory of
 * the node and ends first: for the launcher that is no failure.
 *
 *     exit-overtaken exit|return|finalize|printed    how PE 1 ends; printed: by return, with text that it has printed
 *                                                    and not flushed. The launcher ends it as soon as it has been told */
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pe.h"

static uint64_t never;
static bool is_held_up, is_late;

/* In place of the C library's, which tells the launcher. */
__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    while (is_held_up)
        pause(); /* until the launcher ends this process */
    const ssize_t sent = syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
    while (is_late)
        pause();
    return sent;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";

    begin();
    CHECK_EQ(n, 2);
    barrier();
    if (me == 0) {
        is_held_up = true;
        gshmem_global_exit(0);
    }
    gshmem_uint64_wait_until(&never, GSHMEM_CMP_EQ, 1); /* fails, as does what follows */
    if (strcmp(how, "printed") == 0) {
        printf("what PE 1 has printed\n");
        is_late = true;
    }
    if (strcmp(how, "exit") == 0)
        exit(3);
    if (strcmp(how, "finalize") == 0)
        gshmem_finalize();
    return 0;
}
