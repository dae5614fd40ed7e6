"""A histogram whose bins lie on all PEs: each PE counts its own samples, and adds the counts to the
bins of the others by atomics.

    python -m gshmem.run -n 4 histogram.py"""

import gshmem
import numpy as np

BINS, SAMPLES = 16, 100_000  # on each PE

with gshmem.init():
    me, n = gshmem.my_pe(), gshmem.n_pes()
    bins = gshmem.zeros(BINS, np.int64)  # PE p has bins p * BINS … of all

    samples = np.random.default_rng(me).normal(n * BINS / 2, n, SAMPLES).astype(int)
    samples = samples.clip(0, n * BINS - 1)
    counts = np.bincount(samples, minlength=n * BINS)
    for which in np.flatnonzero(counts):
        pe, at = divmod(int(which), BINS)
        gshmem.atomic_add(bins[at : at + 1], int(counts[which]), pe)
    gshmem.barrier()

    everything = gshmem.zeros(n * BINS, np.int64)
    gshmem.fcollect(everything, bins)
    sums = gshmem.array(counts)
    gshmem.reduce(sums, sums)  # the same by a collective
    assert (everything == sums).all() and everything.sum() == n * SAMPLES
    if me == 0:
        print(f"{n} PEs: {everything.sum()} samples, most in bin {everything.argmax()}")
