/* The symmetric heap grows while data goes through it: one thread passes a block round without a
 * pause, the other asks for more and more memory, and writes to the end of all of it as soon as it
 * is there. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "../pe/pe.h"

enum { STEPS = 12, FIRST = 1 << 20, TAIL = 5000 };

static unsigned char block[3000]; /* symmetric, as are these */
static uint64_t arrived, passes, ended;
static atomic_bool enough; /* what PE 0 has got */

/* To the right with a signal, and in the same step from the left; all agree on the last one. */
static void *pass_on(void *argument)
{
    static unsigned char mine[sizeof block];
    uint64_t round = 0;

    (void)argument;
    do {
        fill(mine, sizeof mine, me, (unsigned)++round);
        CHECK_OK(gshmem_putmem_signal(block, mine, sizeof mine, &arrived, round, GSHMEM_SIGNAL_SET,
                                      right()));
        CHECK_OK(gshmem_uint64_wait_until(&arrived, GSHMEM_CMP_GE, round));
        CHECK_FILLED(block, sizeof block, left(), (unsigned)round);
        CHECK_OK(gshmem_signal_add(&passes, 1, left()));
        CHECK_OK(
            gshmem_uint64_wait_until(&passes, GSHMEM_CMP_GE, round)); /* it may be overwritten */
        if (enough && me == 0) {
            for (int pe = 0; pe < n; pe++)
                CHECK_OK(gshmem_uint64_p(&ended, round + (uint64_t)n, pe));
            CHECK_OK(gshmem_quiet()); /* before PE 0 goes on: no other is ahead of it by n rounds */
            enough = false;
        }
    } while (gshmem_signal_fetch(&ended) == 0 || round < gshmem_signal_fetch(&ended));
    return NULL;
}

static void grow(int step, unsigned char *source)
{
    const size_t bytes = (size_t)FIRST << step / 2;
    unsigned char *more = take(bytes), *tail = more + bytes - TAIL, back[TAIL];

    fill(source, TAIL, me, (unsigned)step);
    CHECK_OK(gshmem_putmem(tail, source, TAIL, right()));
    barrier();
    CHECK_FILLED(tail, TAIL, left(), (unsigned)step);
    CHECK_OK(gshmem_getmem(back, tail, TAIL, right()));
    CHECK_FILLED(back, TAIL, me, (unsigned)step);
    CHECK_OK(gshmem_putmem(more, source, TAIL, right()));
    barrier();
    CHECK_FILLED(more, TAIL, left(), (unsigned)step);
    if (step % 3 == 2) /* its place is taken again, by more */
        CHECK_OK(gshmem_free(more));
}

int main(void)
{
    static unsigned char source[TAIL];
    pthread_t thread;
    int provided;

    CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided));
    begin();
    barrier();
    CHECK_EQ(pthread_create(&thread, NULL, pass_on, NULL), 0);
    for (int step = 0; step < STEPS; step++)
        grow(step, source);
    enough = true;
    CHECK_EQ(pthread_join(thread, NULL), 0);
    end();
    CHECK_OK(gshmem_finalize());
    return 0;
}
