/* A job that goes on until it is told to end, and checks all that it moves: what tests disturb.
 *
 *     steady FILE
 *
 * FILE is of 24 bytes, three numbers: the rounds done so far, written by PE 0; what PE 0 is asked to
 * do (1: begin, 2: end); and how many PEs have met all others. */
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#include "../pe/pe.h"

enum { BYTES = 20000, WAIT_MS = 5 };

static unsigned char block[BYTES]; /* symmetric: written by the left one */
static uint64_t arrived, counter;
static long told, most;

static volatile uint64_t *open_file(const char *path)
{
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    volatile uint64_t *words = mmap(NULL, 24, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(words != MAP_FAILED);
    close(fd);
    return words;
}

/* A round: data with a signal to the right, the same read back, and a count at PE 0. */
static void play(unsigned number)
{
    static unsigned char mine[BYTES], back[BYTES];
    size_t bytes = number % 3 == 0 ? 8 : number % 3 == 1 ? 3000 : BYTES;

    fill(mine, bytes, me, number);
    CHECK_OK(gshmem_putmem_signal(block, mine, bytes, &arrived, 1, GSHMEM_SIGNAL_ADD, right()));
    CHECK_OK(gshmem_uint64_wait_until(&arrived, GSHMEM_CMP_EQ, number));
    CHECK_FILLED(block, bytes, left(), number);
    CHECK_OK(gshmem_getmem(back, block, bytes, right()));
    CHECK_FILLED(back, bytes, me, number);
    CHECK_OK(gshmem_uint64_atomic_add(&counter, 1, 0));
    barrier(); /* before the block is written again */
}

/* Whether PE 0 has been asked to do this, as all PEs learn from it. */
static int is_asked(volatile uint64_t *file, long what)
{
    told = me == 0 ? (long)file[1] : 0;
    CHECK_OK(gshmem_long_max_reduce(GSHMEM_TEAM_WORLD, &most, &told, 1));
    return most >= what;
}

int main(int argc, char **argv)
{
    volatile uint64_t *file = open_file(argc == 2 ? argv[1] : "");
    const struct timespec pause = {.tv_nsec = WAIT_MS * 1000000};
    unsigned number = 0;

    begin();
    for (int pe = 0; pe < n; pe++) /* every stream that there can be is open from here on */
        CHECK_OK(gshmem_uint64_atomic_add(&counter, 1, pe));
    barrier();
    __atomic_fetch_add(&file[2], 1, __ATOMIC_SEQ_CST);
    while (!is_asked(file, 1))
        nanosleep(&pause, NULL);
    do {
        play(++number);
        if (me == 0)
            file[0] = number;
    } while (!is_asked(file, 2));
    CHECK_EQ(counter, me == 0 ? (uint64_t)n + (uint64_t)n * number : (uint64_t)n);
    if (me == 0)
        printf("steady: %u rounds\n", number);
    end();
    return 0;
}
