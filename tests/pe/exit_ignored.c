/* One thread of PE 0 ends the job, while all PEs wait in other threads, which take no notice: their calls come back, they
 * finalize and return 0 from main. Every PE of the host ends with the status that the job was given all the same.
 *
 *     exit-ignored global|exit [N]    by gshmem_global_exit or exit; N: starts N PEs itself, and looks at each */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "pe.h"

enum { STATUS = 9, PAUSE_US = 200 * 1000 };

static uint64_t never;
static const char *how;

static void *end_the_job(void *nothing)
{
    (void)nothing;
    usleep(PAUSE_US);
    if (strcmp(how, "global") == 0)
        gshmem_global_exit(STATUS);
    exit(STATUS);
}

static int be_pe(gshmem_init_attr_t *attr)
{
    pthread_t thread;

    attr->thread_level = GSHMEM_THREAD_MULTIPLE;
    CHECK_OK(gshmem_init_attr(attr));
    CHECK_OK(gshmem_barrier_all());
    if (gshmem_my_pe() == 0)
        CHECK_EQ(pthread_create(&thread, NULL, end_the_job, NULL), 0);
    gshmem_uint64_wait_until(&never, GSHMEM_CMP_EQ, 1); /* fails, as does what follows */
    gshmem_finalize();
    return 0;
}

/* PE 0, which makes the id and the others. */
static int be_first(int count)
{
    gshmem_init_attr_t attr = {.n_pes = count};
    gshmem_uniqueid_t uid;

    CHECK_OK(gshmem_get_uniqueid(&uid));
    attr.uid = &uid;
    for (attr.pe = count - 1; attr.pe > 0; attr.pe--) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            break;
    }
    return be_pe(&attr);
}

int main(int argc, char **argv)
{
    const int count = argc > 2 ? atoi(argv[2]) : 0;
    gshmem_init_attr_t attr = {.uid = NULL};
    int status;

    how = argc > 1 ? argv[1] : "";
    if (count == 0)
        return be_pe(&attr);
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0); /* the others' parent is PE 0, and may end first */
    pid_t first = fork();
    CHECK(first >= 0);
    if (first == 0)
        return be_first(count);
    for (int i = 0; i < count; i++) {
        pid_t pid = wait(&status);
        CHECK(pid > 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != STATUS)
            CHECK_FAIL("%s PE ended with %#x, expected status %d", pid == first ? "the first" : "another", status, STATUS);
    }
    return 0;
}
