"""All-to-all of a mixture of experts: each PE has one expert; tokens go to the PE of theirs, are
computed there, and come back. A PE first asks for room by a fetch-add, and then puts its tokens, so
that any number may go to any expert.

    python -m gshmem.run -n 4 experts.py"""

import gshmem
import numpy as np

TOKENS, WIDTH = 100, 16  # of each PE

with gshmem.init():
    me, n = gshmem.my_pe(), gshmem.n_pes()
    inbox = gshmem.zeros((n * TOKENS, WIDTH))  # enough if all tokens go to one expert
    came_from = gshmem.zeros((n * TOKENS, 2), np.int64)  # PE, number of the token there
    used = gshmem.zeros(1, np.int64)
    outbox = gshmem.zeros((TOKENS, WIDTH))  # where results come back to

    random = np.random.default_rng(me)
    tokens = random.normal(size=(TOKENS, WIDTH))
    expert = random.integers(0, n, TOKENS)

    for pe in range(n):  # dispatch
        which = np.flatnonzero(expert == pe)
        at = gshmem.atomic_fetch_add(used, len(which), pe)
        there = slice(at, at + len(which))
        gshmem.put_nbi(inbox[there], tokens[which], pe)
        source = np.stack((np.full(len(which), me), which), axis=1)
        gshmem.put_nbi(came_from[there], source, pe)
    gshmem.barrier()

    def compute(number: int, rows: np.ndarray) -> np.ndarray:
        return np.tanh(rows * (number + 1))

    results = compute(me, inbox[: used[0]])
    for row, (pe, number) in zip(results, came_from[: used[0]]):  # combine
        gshmem.put_nbi(outbox[number], row, int(pe))
    gshmem.barrier()

    for number in range(TOKENS):
        assert np.array_equal(outbox[number], compute(expert[number], tokens[number]))
    if me == 0:
        print(
            f"{n} PEs: {n * TOKENS} tokens computed by their experts, {used[0]} of them by PE 0's"
        )
