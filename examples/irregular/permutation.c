/* A random permutation by throwing darts: each item is thrown at random places of a board with
 * twice as many places until one is free. The items in the order of their places are the result. */
#include <string.h>

#include "irregular.h"

enum { ITEMS = 500, PLACES = 2 * ITEMS }; /* of each PE */

static long board[PLACES];     /* this PE's part: 1 + the item that is there, or 0 */
static long permutation[ITEMS * 2]; /* this PE's part */
static long mine, before;

int main(void)
{
    static long everything[ITEMS * 64];
    static char seen[ITEMS * 64];
    long wrong = 0;

    if (begin())
        return 1;
    barrier();
    for (long k = 0; k < ITEMS; k++) {
        const long item = k * n + me;
        for (uint64_t dart = 0, at; ; dart++) {
            at = mixed((uint64_t)item << 20 | dart) % (uint64_t)(PLACES * n);
            if (!gshmem_long_atomic_compare_swap(&board[place(at)], 0, item + 1, home(at)))
                break;
        }
    }
    barrier();

    /* The places of PE 0 come first, then those of PE 1 … */
    for (int i = 0; i < PLACES; i++)
        mine += board[i] != 0;
    gshmem_raise(gshmem_long_sum_exscan(GSHMEM_TEAM_WORLD, &before, &mine, 1));
    for (int i = 0, k = 0; i < PLACES; i++)
        if (board[i]) {
            const uint64_t at = (uint64_t)(before + k++);
            gshmem_raise(gshmem_long_p(&permutation[place(at)], board[i] - 1, home(at)));
        }
    barrier();

    /* Each item is there once; PE 0 counts those of up to 64 PEs. */
    for (int pe = 0; me == 0 && n <= 64 && pe < n; pe++)
        gshmem_raise(gshmem_long_get(&everything[pe * ITEMS], permutation, ITEMS, pe));
    for (long i = 0; me == 0 && n <= 64 && i < (long)ITEMS * n; i++) {
        const long item = everything[i];
        if (item < 0 || item >= (long)ITEMS * n || seen[item])
            wrong++;
        else
            seen[item] = 1;
    }
    return end("permutation", ITEMS, "items", wrong);
}
