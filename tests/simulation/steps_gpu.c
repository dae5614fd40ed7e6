/* Steps with objects in the memory of a simulated GPU. The library reaches it by the device's calls
 * alone: a load or store of its own there ends the run. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "gpu.h"
#include "program.h"
#include "record.h"

enum { PIECE = 96 * 1024, LETTER = 3000 };

/* For each PE that writes there. */
struct piece {
    unsigned char bytes[PIECE];
    uint64_t signal, number;
};

static bool check_piece(struct program *p, int target, const unsigned char *due, size_t at,
                        size_t bytes)
{
    const struct program *peer = model_peer(p, target);

    if (peer->pe->dead || peer->ended || !peer->on_gpu ||
        memcmp((unsigned char *)gpu_bytes(peer->on_gpu[p->me].bytes) + at, due, bytes) == 0)
        return true;
    world_fail("PE %d: %zu bytes on the GPU of PE %d are not what was put there", p->me, bytes,
               target);
    return false;
}

/* From this PE's memory, or its GPU's, to the GPU of a PE, and back to either. */
static bool there_and_back(struct program *p, struct piece *all)
{
    const int target = (int)chance_below(&p->chance, (uint64_t)p->n);
    const size_t most = chance_one_in(&p->chance, 2) ? 2000 : PIECE / 2;
    const size_t bytes = 1 + chance_below(&p->chance, most),
                 at = chance_below(&p->chance, PIECE - bytes);
    unsigned char *due = malloc(bytes), *got = calloc(1, bytes), *from = due, *to = got;
    const bool out_of_gpu = chance_one_in(&p->chance, 2), later = chance_one_in(&p->chance, 2);
    /* the half of an own piece that nobody else writes to */
    unsigned char *own = all[p->me].bytes;

    model_fill(due, bytes, chance_next(&p->chance));
    if (target != p->me && bytes <= PIECE / 2 && out_of_gpu) {
        memcpy(gpu_bytes(own), due, bytes);
        from = own;
    }
    unsigned char *there = all[p->me].bytes + at;
    if (target == p->me && from == own)
        return true;
    if (!(later ? TRY(p, gshmem_putmem_nbi(there, from, bytes, target))
                : TRY(p, gshmem_putmem(there, from, bytes, target))) ||
        !TRY(p, gshmem_quiet()) || !check_piece(p, target, due, at, bytes))
        return false;
    if (target != p->me && chance_one_in(&p->chance, 2))
        to = own;
    if (!TRY(p, gshmem_getmem(to, there, bytes, target)))
        return false;
    if (model_can_get(p, target) && memcmp(gpu_bytes(to), due, bytes) != 0) {
        world_fail("PE %d: a get of %zu bytes from the GPU of PE %d brought others", p->me, bytes,
                   target);
        return false;
    }
    free(due);
    free(got);
    return true;
}

/* Data and its signal, both on the GPU of the next PE; the PE before does the same. */
static bool signalled(struct program *p, struct piece *all, uint64_t round)
{
    const int next = (p->me + 1) % p->n, before = (p->me + p->n - 1) % p->n;
    unsigned char due[LETTER];
    uint64_t old;

    model_fill(due, sizeof due, round * 1000 + (uint64_t)p->me);
    if (!TRY(p, gshmem_putmem_signal_nbi(all[p->me].bytes, due, sizeof due, &all[p->me].signal,
                                         round, GSHMEM_SIGNAL_SET, next)) ||
        !TRY(p, gshmem_quiet()) ||
        !TRY(p, gshmem_uint64_wait_until(&all[before].signal, GSHMEM_CMP_EQ, round)))
        return false;
    model_fill(due, sizeof due, round * 1000 + (uint64_t)before);
    if (memcmp(gpu_bytes(all[before].bytes), due, sizeof due) != 0) {
        world_fail("PE %d: a letter on its GPU is not there with its signal", p->me);
        return false;
    }
    for (int i = 0; i < 4; i++) {
        if (!TRY_VALUE(p, &old, gshmem_uint64_atomic_fetch_add(&all[p->me].number, 3, next)))
            return false;
        if (old % 3 != 0 || old / 3 != (uint64_t)i + 4 * (round - 1)) {
            world_fail("PE %d: an update on the GPU of PE %d returned %llu", p->me, next,
                       (unsigned long long)old);
            return false;
        }
        if (!TRY(p, gshmem_uint64_atomic_add(&all[p->me].signal, 0, next)))
            return false;
    }
    return TRY(p, gshmem_quiet());
}

bool step_gpu(struct program *p)
{
    if (!plan.gpu)
        return true;
    program_enter(p, "gshmem_calloc", true);
    p->on_gpu = gshmem_calloc((size_t)p->n, sizeof *p->on_gpu);
    if (!program_leave(p, p->on_gpu ? GSHMEM_OK : gshmem_last_error(NULL)))
        return false;
    bool fine = TRY_ALL(p, gshmem_barrier_all());
    for (uint64_t n = 1 + chance_below(&p->chance, 6); n && fine; n--)
        fine = there_and_back(p, p->on_gpu);
    fine = fine && TRY_ALL(p, gshmem_barrier_all());
    for (uint64_t round = 1; round <= 2 && fine; round++)
        fine = signalled(p, p->on_gpu, round) && TRY_ALL(p, gshmem_barrier_all());
    struct piece *at = p->on_gpu;
    p->on_gpu = NULL;
    return fine && TRY_ALL(p, gshmem_free(at));
}
