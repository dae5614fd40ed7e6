/* Threads that wait in plain loops while the signal that interrupts them comes faster than it can be
 * handled, as where the machine is slow: their stacks hold, and all of them go on. */
#include "flood.h"

enum { BLOCKS = 4, THREADS = 8, ROUNDS = 10 };

__global__ void in_turn(volatile int *turn)
{
    const int all = BLOCKS * THREADS, mine = (int)(blockIdx.x * THREADS + threadIdx.x);

    for (int round = 0; round < ROUNDS; round++) {
        while (*turn != round * all + mine)
            ;
        __threadfence();
        *turn = *turn + 1;
    }
}

int main()
{
    int *turn = shared_array<int>(1);

    flood_begin();
    in_turn<<<BLOCKS, THREADS>>>(turn);
    CHECK_LAUNCH();
    CHECK_EQ(*turn, BLOCKS * THREADS * ROUNDS);
    flood_end();
    CHECK_CUDA(cudaFree(turn));
    return 0;
}
