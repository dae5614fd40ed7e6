/* Index gather: each PE reads random places of a table that is spread over all PEs, by one call
 * for all of them. Element by element, with gshmem_long_g, each read would take a round trip. */
#include "irregular.h"

enum { TABLE = 1000, READS = 50000 };

static long table[TABLE]; /* this PE's part */
static long got[READS];
static size_t index_of[READS];
static int pe_of[READS];

static long value_of(uint64_t i)
{
    return (long)(mixed(i) >> 1);
}

int main(void)
{
    long wrong = 0;

    if (begin())
        return 1;
    for (int i = 0; i < TABLE; i++)
        table[i] = value_of((uint64_t)(i * n + me));
    for (int i = 0; i < READS; i++) {
        const uint64_t at = mixed((uint64_t)me << 32 | (uint64_t)i) % (uint64_t)(TABLE * n);
        index_of[i] = place(at);
        pe_of[i] = home(at);
    }
    barrier();
    gshmem_raise(gshmem_long_ixget_pes(got, table, index_of, pe_of, READS));
    barrier();

    for (int i = 0; i < READS; i++)
        wrong += got[i] != value_of(index_of[i] * (uint64_t)n + (uint64_t)pe_of[i]);
    return end("gather", READS, "reads", wrong);
}
