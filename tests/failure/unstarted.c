/* The start-up of one PE fails, and its process lives on: all others learn of it, by their own start-up or by their
 * first barrier, and do not wait for it.
 *
 *     unstarted lock    before it has shown itself to its host's PEs
 *     unstarted wake    after that, when it has talked to other hosts, too
 *     unstarted network before it can publish where it is
 *     unstarted map     before it has its host's memory, which the lowest PE has handed to it
 *     unstarted hands   the lowest PE, which has handed that memory to all others, before it has it itself
 *     unstarted file    the lowest PE, before there is any; also under launchers, run by `expect`
 *
 * Two hosts of two PEs, pretended by host names, which takes root; map, hands and file: one host of four. The system's calls
 * that fail are played here. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"

#include "check.h"

enum { PES = 4, PER_HOST = 2 };

static int victim = 1;
static bool one_host;
static bool no_lock, no_wake, no_map, no_file, no_network; /* in the victim */

__attribute__((visibility("default"))) void *mmap(void *at, size_t bytes, int protection, int flags, int fd,
                                                     off_t offset)
{
    if (no_map && fd >= 0 && flags & MAP_SHARED && flags & MAP_FIXED) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

__attribute__((visibility("default"))) int memfd_create(const char *name, unsigned int flags)
{
    if (no_file) {
        errno = ENFILE;
        return -1;
    }
    return (int)syscall(SYS_memfd_create, name, flags);
}

__attribute__((visibility("default"))) int fcntl(int fd, int command, ...)
{
    va_list rest;

    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    if (no_lock && command == F_OFD_SETLK) {
        errno = ENOLCK;
        return -1;
    }
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

__attribute__((visibility("default"))) int eventfd(unsigned int value, int flags)
{
    if (no_wake) {
        errno = ENFILE;
        return -1;
    }
    return (int)syscall(SYS_eventfd2, value, flags);
}

static void be_on_host(int host)
{
    char name[32];

    snprintf(name, sizeof name, "pretended-%d", host);
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0)
        SKIP("host names take root");
}

static void be_pe(const gshmem_uniqueid_t *uid, int pe, const char *where, const int *others)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = PES};
    char byte;

    no_lock = pe == victim && strcmp(where, "lock") == 0;
    no_wake = pe == victim && strcmp(where, "wake") == 0;
    no_network = pe == victim && strcmp(where, "network") == 0;
    if (no_network)
        CHECK_EQ(setenv("GSHMEM_TCP_IF", "198.51.100.0/24", 1), 0); /* nobody's: for documentation */
    no_map = pe == victim && (strcmp(where, "map") == 0 || strcmp(where, "hands") == 0);
    no_file = pe == victim && strcmp(where, "file") == 0;
    gshmem_status_t status = gshmem_init_attr(&attr);
    if (pe == victim) {
        CHECK_EQ(status, no_map       ? GSHMEM_ERR_MEMORY
                         : no_network ? GSHMEM_ERR_UNREACHABLE
                                      : GSHMEM_ERR_SYSTEM);
        close(others[1]);
        CHECK_EQ(read(others[0], &byte, 1), 0); /* until all others are through */
        return;
    }
    if (!status)
        status = gshmem_barrier_all();
    CHECK_EQ(status, GSHMEM_ERR_PEER_DEAD);
}

/* Under a launcher. */
static int be_started(int pe)
{
    no_file = pe == 0;
    gshmem_status_t status = gshmem_init();
    CHECK_EQ(status, no_file ? GSHMEM_ERR_SYSTEM : GSHMEM_ERR_PEER_DEAD);
    while (no_file)
        pause(); /* until the others have ended the job */
    return 1;
}

int main(int argc, char **argv)
{
    const char *launched[] = {getenv("GSHMEM_RUN_PE"), getenv("PMIX_RANK"), getenv("PMI_RANK")};
    const char *where = argc == 2 ? argv[1] : "";
    gshmem_uniqueid_t uid;
    pid_t child[PES];
    int status, others[2]; /* a pipe that the others hold open */

    CHECK_EQ(setenv("GSHMEM_INIT_TIMEOUT", "1000", 1), 0); /* longer than this test may take */
    for (int i = 0; i < 3; i++) {
        if (launched[i])
            return be_started(atoi(launched[i]));
    }
    victim = strcmp(where, "file") == 0 || strcmp(where, "hands") == 0 ? 0 : 1;
    one_host = victim == 0 || strcmp(where, "map") == 0;
    if (!one_host)
        be_on_host(0);
    CHECK_EQ(pipe(others), 0);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    for (int pe = 1; pe < PES; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0) {
            if (!one_host)
                be_on_host(pe / PER_HOST);
            be_pe(&uid, pe, where, others);
            _exit(0);
        }
    }
    be_pe(&uid, 0, where, others);
    close(others[1]);
    for (int pe = 1; pe < PES; pe++) {
        CHECK_EQ(waitpid(child[pe], &status, 0), child[pe]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    _exit(0); /* the job is lost, and finalize would say so */
}
