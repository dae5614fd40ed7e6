/* Histogram: each PE adds to random places of a table that is spread over all PEs. */
#include "irregular.h"

enum { TABLE = 1000, UPDATES = 50000 };

static long table[TABLE]; /* this PE's part */

static uint64_t drawn(int pe, int i)
{
    return mixed((uint64_t)pe << 32 | (uint64_t)i) % (uint64_t)(TABLE * n);
}

int main(void)
{
    static long expected[TABLE];
    long wrong = 0;

    if (begin())
        return 1;
    barrier();
    for (int i = 0; i < UPDATES; i++) {
        const uint64_t at = drawn(me, i);
        gshmem_raise(gshmem_long_atomic_add(&table[place(at)], 1, home(at)));
    }
    barrier();

    for (int pe = 0; pe < n; pe++)
        for (int i = 0; i < UPDATES; i++)
            if (home(drawn(pe, i)) == me)
                expected[place(drawn(pe, i))]++;
    for (int i = 0; i < TABLE; i++)
        wrong += table[i] != expected[i];
    return end("histogram", UPDATES, "updates", wrong);
}
