#define _GNU_SOURCE
#include "runtime/base/alike.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/nearest.h"
#include "runtime/base/system.h"

enum {
    KEPT_MOST = 8, /* lines of this process that the others of its node can find */
    LINGER_NS = 200 * CLOCK_MS,
};

static _Atomic int kept;
static _Atomic uint64_t kept_key[KEPT_MOST]; /* the keys of those lines */

/* ---- gshmemrun writes the line ---- */

/* GSHMEM_RUN_LOG=socket:its inode:inode of the standard error that gshmemrun gave. If the program
 * writes its messages elsewhere (2>file), the library's go there, too. */
static int gshmemrun_socket(void)
{
    const char *text = getenv("GSHMEM_RUN_LOG");
    unsigned long long inode, error_inode;
    struct stat st;
    char rest;
    int fd;

    if (!text || sscanf(text, "%d:%llu:%llu%c", &fd, &inode, &error_inode, &rest) != 3)
        return -1;
    if (fstat(fd, &st) != 0 || (unsigned long long)st.st_ino != inode ||
        fstat(STDERR_FILENO, &st) != 0 || (unsigned long long)st.st_ino != error_inode)
        return -1;
    return fd;
}

void alike_start(void)
{
    int fd = gshmemrun_socket();

    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC); /* it is this program's, not its children's */
}

static bool give_to_gshmemrun(int fd, const char *line, size_t prefix, size_t length)
{
    struct alike_message m = {.prefix = (unsigned int)prefix};

    if (length > sizeof m.line)
        return false;
    memcpy(m.line, line, length);
    return system_send(fd, &m, offsetof(struct alike_message, line) + length,
                       MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

/* ---- The first PE of this node writes the line ---- */

/* A name of the job that its PEs on this node share, and no other job has. */
static bool job_name(char *name, size_t size)
{
    const char *pmix = getenv("PMIX_NAMESPACE"), *slurm = getenv("SLURM_JOB_ID"),
               *step = getenv("SLURM_STEP_ID");

    if (nearest_is_pmi()) /* also within a job of PMIx or Slurm */
        snprintf(name, size, "%d", (int)getppid()); /* hydra's proxy of this node */
    else if (pmix)
        snprintf(name, size, "%s", pmix);
    else if (slurm && step)
        snprintf(name, size, "%s.%s", slurm, step);
    else
        return false;
    return true;
}

static uint64_t hash(const char *text, size_t length, uint64_t h)
{
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * 1099511628211u;
    return h;
}

/* Whether this process has written the line itself; then it does not count as written by
 * another. */
static bool is_own(uint64_t key)
{
    int n = kept < KEPT_MOST ? kept : KEPT_MOST;
    bool own = false;

    for (int i = 0; i < n && !own; i++)
        own = kept_key[i] == key;
    return own;
}

/* A socket with an abstract name made from the line: the process that gets the name is the first.
 * The name is free again when the process ends. */
static bool is_said_already(const char *line, size_t length)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct sockaddr_storage name = {.ss_family = AF_UNIX};
    char job[256];

    if (!job_name(job, sizeof job) || kept >= KEPT_MOST)
        return false;
    uint64_t key = hash(line, length, hash(job, strlen(job), 14695981039346656037u));
    int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "gshmem-said-%u-%016llx",
                     (unsigned)geteuid(), (unsigned long long)key);
    if (is_own(key))
        return false;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    int fd = descriptor_keep(system_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd < 0)
        return false;
    memcpy(&name, &address, size);
    if (system_bind(fd, &name, &size, 64) == 0) {
        int i = kept++;
        if (i < KEPT_MOST)
            kept_key[i] = key;
        return false; /* the descriptor stays open */
    }
    /* the name must be taken by a PE of this job, not by a foreign process that wants to suppress
     * the line */
    bool said = errno == EADDRINUSE && system_connect(fd, (struct sockaddr *)&name, size) == 0 &&
                descriptor_peer_is_ours(fd);
    close(fd);
    return said;
}

void alike_linger(void)
{
    if (kept)
        clock_sleep(LINGER_NS);
}

bool alike_take(const char *line, size_t prefix, size_t length)
{
    int fd = gshmemrun_socket();

    if (fd >= 0)
        return give_to_gshmemrun(fd, line, prefix, length);
    return is_said_already(line + prefix, length - prefix);
}
