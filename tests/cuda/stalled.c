/* An update for which a GPU has no room: PE 0 is told of it, once, and goes on when there is some. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "gshmem.h"
#include "gpu.h"

static void (*occupy)(cuda_gpu gpu, bool occupied);
static int told, was; /* where stderr is read, and what it was */
static int lines;

/* Passes on what the library says, and makes room when it has spoken of the update. */
static void *listen_to(void *of_gpu)
{
    FILE *from = fdopen(told, "r");
    char *text = NULL;
    size_t room = 0;
    ssize_t bytes;

    CHECK(from);
    while ((bytes = getline(&text, &room, from)) > 0) {
        CHECK_EQ(write(was, text, (size_t)bytes), bytes);
        if (!strstr(text, "an update at"))
            continue;
        lines++;
        occupy(*(cuda_gpu *)of_gpu, false);
    }
    free(text);
    CHECK_EQ(fclose(from), 0);
    return NULL;
}

static void wait_for_room(long *words, int pe, cuda_gpu full)
{
    pthread_t listener;
    int pipes[2];

    CHECK_EQ(pipe(pipes), 0);
    told = pipes[0];
    was = dup(STDERR_FILENO);
    CHECK_EQ(dup2(pipes[1], STDERR_FILENO), STDERR_FILENO);
    CHECK_EQ(close(pipes[1]), 0);
    CHECK_EQ(pthread_create(&listener, NULL, listen_to, &full), 0);
    occupy(full, true);
    CHECK_EQ(gshmem_long_atomic_fetch_add(words, 3, pe), 4);
    CHECK_EQ(gshmem_long_atomic_fetch_add(words, 1, pe), 7);
    CHECK_EQ(dup2(was, STDERR_FILENO), STDERR_FILENO);
    CHECK_EQ(pthread_join(listener, NULL), 0);
    CHECK_EQ(lines, 1);
}

int main(int argc, char **argv)
{
    CHECK_OK(gshmem_init());
    int me = gshmem_my_pe();
    int pe = argc > 1 && strcmp(argv[1], "there") == 0; /* which lies on GPU 1 then */
    long *words = gshmem_calloc(1, sizeof *words);

    CHECK(words);
    open_gpu();
    void *found = dlsym(driver.library, "sim_occupy");
    CHECK(found);
    memcpy(&occupy, &found, sizeof found);
    if (me == 0) {
        CHECK_OK(gshmem_long_p(words, 4, pe)); /* no update, which may take its time, and be told of */
        wait_for_room(words, pe, pe);
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_finalize());
    CHECK_EQ(driver.context_set(context), CUDA_OK); /* which finalize has let go of */
    close_gpu();
    return 0;
}
