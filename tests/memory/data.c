/* Moving this program's own variables into a file, as PIE, at a fixed address, static, …
 *
 * Everything a variable can be is here: set, zero, large and mostly untouched, libc's, a lock with
 * a thread asleep on it; and after each step all of them must be what they were. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"
#include "runtime/base/log.h"
#include "gshmem.h"
#include "runtime/job/job.h"
#include "runtime/memory/data.h"
#ifdef WITH_LIBRARY
#include "data_library.h"
#endif

struct job *job; /* none: this test is beneath it */

enum { PAGE = 4096, SPARSE = 64 << 20 };

static int set_before = 17;
static long zero_before;
static char text[] = "initialised data that is longer than a word";
static char sparse[SPARSE];
static const char *const readonly_after_relocation[] = {text, sparse};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static int may_go;

static struct data_segments found;

/* The segment of the program that a variable is in, or NULL. */
static const struct data_segment *segment_of(const void *variable)
{
    for (int i = 0; i < found.n; i++) {
        const struct data_segment *s = &found.segment[i];
        if ((uintptr_t)variable - s->base < s->bytes)
            return s;
    }
    return NULL;
}

static off_t in_file(const void *variable)
{
    const struct data_segment *s = segment_of(variable);

    return (off_t)(s->offset + ((uintptr_t)variable - s->base));
}

static int read_int(int fd, const int *variable)
{
    int value;

    CHECK_EQ(pread(fd, &value, sizeof value, in_file(variable)), sizeof value);
    return value;
}

static void write_int(int fd, const int *variable, int value)
{
    CHECK_EQ(pwrite(fd, &value, sizeof value, in_file(variable)), sizeof value);
}

static int new_file(void)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, (off_t)found.bytes), 0);
    return fd;
}

static size_t file_bytes_in_use(int fd)
{
    struct stat st;

    CHECK_EQ(fstat(fd, &st), 0);
    return (size_t)st.st_blocks * 512;
}

static void share(int fd)
{
    for (int i = 0; i < found.n; i++)
        CHECK_EQ(data_share(&found.segment[i], fd, found.segment[i].offset), GSHMEM_OK);
}

static void find(void)
{
    struct data_segments again;
    size_t bytes = 0;

    CHECK_EQ(data_find(&found), GSHMEM_OK);
    CHECK_EQ(data_find(&again), GSHMEM_OK);
    CHECK(memcmp(&found, &again, sizeof found) == 0);
    CHECK(found.n >= 1);
    for (int i = 0; i < found.n; i++) {
        CHECK_EQ(found.segment[i].base % PAGE, 0);
        CHECK_EQ(found.segment[i].bytes % PAGE, 0);
        CHECK_EQ(found.segment[i].offset, bytes);
        bytes += found.segment[i].bytes;
    }
    CHECK_EQ(found.bytes, bytes);
    CHECK(segment_of(&set_before) && segment_of(&zero_before) && segment_of(text));
    CHECK(segment_of(sparse) && segment_of(sparse + SPARSE - 1));
    CHECK(!segment_of("a literal") && !segment_of(&bytes) && !segment_of((void *)find));
#ifndef NO_RELRO
    CHECK(!segment_of(readonly_after_relocation));
#endif
}

static void check_all(long zero, int sparse_marks)
{
    CHECK_EQ(set_before, 18);
    CHECK_EQ(zero_before, zero);
    CHECK_STR(text, "initialised data that is longer than a word");
    CHECK(readonly_after_relocation[0] == text && readonly_after_relocation[1] == sparse);
    for (int i = 0; i < sparse_marks; i++)
        CHECK_EQ(sparse[(size_t)i * SPARSE / 8 + 5], i + 1);
    /* libc goes on: its buffers, its heap, its copies of variables. */
    char *block = malloc(300000);
    CHECK(block && getenv("PATH"));
    free(block);
    CHECK(fprintf(stdout, "%s", "") >= 0 && fflush(stdout) == 0);
}

/* ---- Steps ---- */

static void first_share(int fd)
{
    int before = read_int(fd, &set_before);
    volatile const char *look = sparse;

    for (int i = SPARSE / 2; i < SPARSE; i += PAGE) /* to look is not to touch */
        CHECK_EQ(look[i], 0);

    set_before = 18;
    zero_before = 99;
    for (int i = 0; i < 4; i++)
        sparse[(size_t)i * SPARSE / 8 + 5] = (char)(i + 1);
    share(fd);
    CHECK_EQ(before, 0);
    check_all(99, 4);
    /* Nothing but what was touched is in memory now. */
    CHECK(file_bytes_in_use(fd) < SPARSE / 4);

    set_before = 20;
    CHECK_EQ(read_int(fd, &set_before), 20);
    write_int(fd, &set_before, 18); /* as a peer's put */
    check_all(99, 4);
}

static void refused(int fd)
{
    int readonly = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    CHECK(readonly >= 0);
    log_set_level(LOG_NONE);
    CHECK_EQ(data_share(&found.segment[0], readonly, 0), GSHMEM_ERR_SYSTEM);
    CHECK_EQ(data_share(&found.segment[0], -1, 0), GSHMEM_ERR_SYSTEM);
    CHECK_EQ(data_share(&found.segment[0], readonly, 77), GSHMEM_ERR_SYSTEM);
    log_set_level(LOG_WARN);
    close(readonly);
    zero_before = 99;
    check_all(99, 4);
    CHECK_EQ(read_int(fd, &set_before), 18); /* still there */
}

static int child_of_fork(int go, int set, long zero)
{
    char byte;

    if (read(go, &byte, 1) != 1 || set_before != set || zero_before != zero)
        return 2;
    set_before = 1000;
    memset(sparse, 'x', PAGE);
    pid_t grandchild = fork(); /* one whose parent shares nothing */
    if (grandchild == 0)
        _exit(set_before == 1000 && sparse[1] == 'x' ? 0 : 3);
    int status = -1;
    return waitpid(grandchild, &status, 0) == grandchild && status == 0 ? 0 : 4;
}

static void forks(int fd)
{
    int go[2], status = -1, set = set_before;
    long zero = zero_before;

    CHECK_EQ(pipe(go), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(child_of_fork(go[0], set, zero));
    set_before = 77; /* after the fork: not the child's affair */
    CHECK_EQ(write(go[1], "g", 1), 1);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(set_before, 77);
    CHECK_EQ(read_int(fd, &set_before), 77);
    CHECK_EQ(sparse[1], 0);
    set_before = set;
    close(go[0]);
    close(go[1]);
}

/* The next job of the process: another file, the same contents, what peers wrote included. */
static void second_share(int old)
{
    int fd = new_file();

    CHECK_EQ(pwrite(old, "\5", 1, in_file(&sparse[4 * (size_t)SPARSE / 8 + 5])), 1);
    share(fd);
    check_all(99, 5);
    CHECK(file_bytes_in_use(fd) < SPARSE / 4);
    write_int(old, &set_before, 5);
    check_all(99, 5);
    zero_before = 100;
    forks(fd);
    close(fd);
    check_all(100, 5); /* the mapping keeps it */
}

static void *sleeper(void *unused)
{
    pthread_mutex_lock(&mutex);
    may_go = 1;
    pthread_cond_broadcast(&woken);
    while (may_go != 2)
        pthread_cond_wait(&woken, &mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* A thread asleep on a lock among the variables is found there after the move. */
static pthread_t put_to_sleep(void)
{
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, sleeper, NULL), 0);
    pthread_mutex_lock(&mutex);
    while (may_go != 1)
        pthread_cond_wait(&woken, &mutex);
    pthread_mutex_unlock(&mutex);
    usleep(20000); /* it holds nothing, and is asleep or about to be */
    return thread;
}

static void wake_up(pthread_t thread)
{
    pthread_mutex_lock(&mutex);
    may_go = 2;
    pthread_cond_broadcast(&woken);
    pthread_mutex_unlock(&mutex);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void asked_for(void)
{
    bool of_library;

    log_set_level(LOG_NONE);
    CHECK_EQ(data_ask(&set_before, &of_library), GSHMEM_OK); /* and nothing changes */
    CHECK(!of_library);
    find();
#ifdef WITH_LIBRARY /* a static program has none, and whatever loads libraries does not link into it in silence */
    int local = 0;

    CHECK_EQ(gshmem_symmetric_data(NULL), GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(gshmem_symmetric_data(&local), GSHMEM_ERR_ARGUMENT);
    CHECK_HAS(last_error_text(), "not a variable of the program");
    CHECK_EQ(gshmem_symmetric_data("constant"), GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(gshmem_symmetric_data(&set_before), GSHMEM_OK);
    find();
    struct data_segments before = found;
    CHECK(!segment_of(library_hidden()));
    CHECK_EQ(gshmem_symmetric_data(library_hidden()), GSHMEM_OK);
    CHECK_EQ(gshmem_symmetric_data(library_hidden()), GSHMEM_OK);
    find();
    CHECK_EQ(found.n, before.n + 1);
    CHECK(found.digest != before.digest);
    CHECK(segment_of(library_hidden()) == &found.segment[before.n]);
    library_zero[2999] = 3;
    job = (struct job *)&local;
    CHECK_EQ(gshmem_symmetric_data(&set_before), GSHMEM_ERR_STATE);
    job = NULL;
#endif
    log_set_level(LOG_WARN);
}

static void check_library(int fd)
{
#ifdef WITH_LIBRARY
    CHECK_EQ(library_set, 4711);
    CHECK_EQ(library_zero[2999], 3);
    CHECK_EQ(*library_hidden(), 12);
    *library_hidden() = 13;
    CHECK_EQ(read_int(fd, library_hidden()), 13);
    *library_hidden() = 12;
#else
    (void)fd;
#endif
}

int main(int argc, char **argv)
{
    /* Once as it comes, once without address randomisation, where brk follows .bss closely. */
    if (argc > 1 && strcmp(argv[1], "fixed") == 0 &&
        !(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
        if (personality(ADDR_NO_RANDOMIZE) == -1)
            SKIP("address randomisation cannot be turned off here");
        execv("/proc/self/exe", argv);
        CHECK_FAIL("execv: %s", strerror(errno));
    }
    char *on_break = sbrk(100); /* so that brk's heap exists and has something in it */
    CHECK(on_break != (char *)-1);
    memset(on_break, 'b', 100);

    asked_for();
    int fd = new_file();
    pthread_t thread = put_to_sleep();
    first_share(fd);
    wake_up(thread);
    check_library(fd);
    refused(fd);
    forks(fd);
    check_all(99, 4);
    second_share(fd);
    close(fd);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(on_break[i], 'b');
    CHECK(sbrk(100000) != (void *)-1);
    return 0;
}
