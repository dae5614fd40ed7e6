/* A thread of PE 0 waits for a line of input when the job ends: the process ends all the same, with what it has printed,
 * and what it has written to a stream of its own. Starts its own two PEs by fork and a unique id.
 *
 *     exit-reading own|other STATUS [opened]    which PE ends the job, and how; the input is a stream that the program has opened */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "pe.h"

#define TEXT "what PE 0 has printed\n"
static const char text[] = TEXT, twice[] = TEXT TEXT;
static uint64_t never;
static struct {
    gshmem_uniqueid_t uid;
    atomic_bool made;
} *shared; /* by both processes */
static bool own, opened;
static int exit_status;
static FILE *input;

static void *read_line(void *unused)
{
    char line[100];

    (void)unused;
    CHECK(!fgets(line, sizeof line, input)); /* nobody writes */
    return NULL;
}

static int be_pe(int pe)
{
    gshmem_init_attr_t attr = {.uid = &shared->uid, .pe = pe, .n_pes = 2, .thread_level = GSHMEM_THREAD_MULTIPLE};
    pthread_t thread;

    if (pe == 0) {
        CHECK_OK(gshmem_get_uniqueid(&shared->uid));
        atomic_store(&shared->made, true);
    }
    while (!atomic_load(&shared->made))
        usleep(1000);
    CHECK_OK(gshmem_init_attr(&attr));
    if (pe == 0) {
        FILE *output = fdopen(dup(STDOUT_FILENO), "w");
        input = opened ? fdopen(dup(STDIN_FILENO), "r") : stdin; /* the last one to be opened */
        CHECK(output && input);
        CHECK_EQ(pthread_create(&thread, NULL, read_line, NULL), 0);
        while (ftrylockfile(input) == 0) {
            funlockfile(input);
            usleep(1000);
        }
        fputs(text, stdout);
        fputs(text, output);
    }
    CHECK_OK(gshmem_barrier_all());
    if (pe == (own ? 0 : 1))
        gshmem_global_exit(exit_status);
    gshmem_uint64_wait_until(&never, GSHMEM_CMP_EQ, 1); /* fails, as does what follows */
    return 0;
}

int main(int argc, char **argv)
{
    int in[2], out[2], status;
    char printed[200];
    pid_t child[2];

    own = argc > 1 && strcmp(argv[1], "own") == 0;
    exit_status = argc > 2 ? atoi(argv[2]) : 0;
    opened = argc > 3;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    CHECK_EQ(pipe(in) + pipe(out), 0);
    for (int pe = 0; pe < 2; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0) {
            dup2(in[0], STDIN_FILENO);
            dup2(out[1], STDOUT_FILENO);
            close(in[0]);
            close(out[0]);
            close(out[1]);
            return be_pe(pe);
        }
    }
    close(out[1]);
    for (int pe = 0; pe < 2; pe++) {
        CHECK_EQ(waitpid(child[pe], &status, 0), child[pe]);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), exit_status);
    }
    ssize_t bytes = 0, more;
    while ((more = read(out[0], printed + bytes, sizeof printed - 1 - (size_t)bytes)) > 0)
        bytes += more;
    CHECK_EQ(more, 0);
    printed[bytes] = 0;
    CHECK_STR(printed, twice);
    return 0;
}
