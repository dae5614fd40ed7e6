/* All PEs but one leave in good order, and the one waits for an update: run by `expect`.
 *
 *     left-alone WHO HOW      WHO waits: first or last
 *
 * HOW: one     for a variable: fails, with a line that says which and for what
 *      any     for one of several
 *      thread  for one that another thread of its own changes once the library has said that nobody else could: ends
 *              well
 *      late    for one that the last to leave has changed before: never fails */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "../pe/pe.h"

static int words[4]; /* symmetric */

static int messages[2]; /* a pipe in place of the standard error */

static void *change(void *word)
{
    char text[1000];
    size_t used = 0;
    ssize_t got = 1;

    for (text[0] = 0; got > 0 && !strstr(text, "only another thread"); text[used] = 0) {
        got = read(messages[0], text + used, sizeof text - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    fputs(text, stdout);
    __atomic_store_n((int *)word, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void leave(int waits, const char *how)
{
    if (strcmp(how, "late") == 0) {
        usleep(700 * 1000);
        gshmem_int_p(&words[0], 1, waits);
    }
    exit(0);
}

int main(int argc, char **argv)
{
    pthread_t thread;

    CHECK(argc == 3);
    begin();
    const int waits = strcmp(argv[1], "first") == 0 ? 0 : n - 1;
    barrier();
    if (me != waits)
        leave(waits, argv[2]);
    if (strcmp(argv[2], "any") == 0) {
        gshmem_int_wait_until_any(words, 4, NULL, GSHMEM_CMP_GT, 6);
        CHECK_FAIL("still here");
    }
    if (strcmp(argv[2], "one") == 0) {
        CHECK_OK(gshmem_int_wait_until(&words[1], GSHMEM_CMP_LT, -6));
        CHECK_FAIL("still here");
    }
    if (strcmp(argv[2], "thread") == 0) {
        CHECK(pipe(messages) == 0 && dup2(messages[1], STDERR_FILENO) == STDERR_FILENO);
        CHECK_EQ(pthread_create(&thread, NULL, change, words), 0);
    }
    CHECK_OK(gshmem_int_wait_until(words, GSHMEM_CMP_EQ, 1));
    puts("it has come");
    return 0;
}
