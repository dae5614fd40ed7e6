"""A hash table over all PEs: each key has a place on one PE, which whoever inserts first takes by a
compare-and-swap. Places that are taken lead on to the next.

    python -m gshmem.run -n 4 hash_table.py"""

import gshmem
import numpy as np

PLACES, KEYS = 512, 150  # on each PE

with gshmem.init():
    me, n = gshmem.my_pe(), gshmem.n_pes()
    keys = gshmem.zeros(PLACES, np.int64)  # 0: free
    counts = gshmem.zeros(PLACES, np.int64)

    def find(key: int) -> tuple[int, int] | None:
        """The PE and place of the key, taken if it was in none; None: the table is full."""
        start = key * 0x9E3779B97F4A7C15 % 2**64 % (PLACES * n)
        for step in range(PLACES * n):
            pe, place = divmod((start + step) % (PLACES * n), PLACES)
            found = gshmem.atomic_compare_swap(keys[place : place + 1], 0, key, pe)
            if found in (0, key):
                return pe, place
        return None

    # All PEs insert from the same keys, so that most are inserted by several of them.
    inserted = np.random.default_rng(me).integers(1, KEYS, KEYS)
    for key in inserted:
        pe, place = find(int(key))
        gshmem.atomic_add(counts[place : place + 1], 1, pe)
    gshmem.barrier()

    expected = np.zeros(KEYS, np.int64)
    for other in range(n):
        np.add.at(expected, np.random.default_rng(other).integers(1, KEYS, KEYS), 1)
    for key in range(1 + me, KEYS, n):
        if expected[key]:
            pe, place = find(key)
            assert gshmem.atomic_fetch(counts[place : place + 1], pe) == expected[key], key
    total = gshmem.array([np.count_nonzero(keys)])
    gshmem.reduce(total, total)
    assert total[0] == np.count_nonzero(expected)
    if me == 0:
        print(f"{n} PEs: {n * KEYS} insertions, {total[0]} different keys, all counts right")
