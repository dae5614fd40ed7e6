"""Halo exchange: heat spreads over a ring of PEs. Each step, a PE sends its outer cells to both
neighbours by put_signal, and waits for theirs alone. There is no barrier.

    python -m gshmem.run -n 4 halo.py"""

import gshmem
import numpy as np

CELLS, STEPS = 64, 200

with gshmem.init():
    me, n = gshmem.my_pe(), gshmem.n_pes()
    left, right = (me - 1) % n, (me + 1) % n

    # Two copies of the halo, used in turn: a neighbour may be one step ahead, and never two.
    halo = gshmem.zeros((2, 2))  # [step % 2][0: from the left, 1: from the right]
    arrived = gshmem.zeros(2, np.uint64)  # steps that have come from the left, from the right
    cells = np.zeros(CELLS)
    if me == 0:
        cells[:8] = 1.0

    for step in range(1, STEPS + 1):
        turn = step % 2
        gshmem.put_signal(halo[turn, 1:2], cells[:1], arrived[1:2], step, left)
        gshmem.put_signal(halo[turn, 0:1], cells[-1:], arrived[0:1], step, right)
        gshmem.wait_until_all(arrived, ">=", step)
        wide = np.concatenate((halo[turn, :1], cells, halo[turn, 1:]))
        cells = wide[1:-1] + 0.25 * (wide[2:] - 2 * wide[1:-1] + wide[:-2])

    everything = gshmem.zeros(n * CELLS)
    mine = gshmem.array(cells)
    gshmem.fcollect(everything, mine)

    # The same on one PE.
    whole = np.zeros(n * CELLS)
    whole[:8] = 1.0
    for _ in range(STEPS):
        whole += 0.25 * (np.roll(whole, 1) - 2 * whole + np.roll(whole, -1))
    assert np.allclose(everything, whole)
    if me == 0:
        print(f"{n} PEs: {STEPS} steps, heat {everything.sum():.6f}, as on one PE")
