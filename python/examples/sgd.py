"""Data-parallel training on NumPy: each PE has its own samples, and the gradients are added up over
all PEs in each step, in place.

    python -m gshmem.run -n 4 sgd.py"""

import gshmem
import numpy as np

SAMPLES, FEATURES, STEPS, RATE = 256, 8, 300, 0.1

with gshmem.init():
    me, n = gshmem.my_pe(), gshmem.n_pes()
    truth = np.linspace(-1, 1, FEATURES)
    random = np.random.default_rng(me)
    x = random.normal(size=(SAMPLES, FEATURES))
    y = x @ truth + 0.01 * random.normal(size=SAMPLES)

    weights = gshmem.zeros(FEATURES)
    gradient = gshmem.zeros(FEATURES)
    if me == 0:
        weights[:] = random.normal(size=FEATURES)
    gshmem.broadcast(weights, weights)  # all begin with PE 0's

    for _ in range(STEPS):
        gradient[:] = 2 / SAMPLES * x.T @ (x @ weights - y)
        gshmem.reduce(gradient, gradient)
        weights -= RATE / n * gradient

    # All PEs have the same bits, as all add up in the same order.
    everybody = gshmem.zeros((n, FEATURES))
    gshmem.fcollect(everybody, weights)
    assert (everybody == weights).all()
    error = np.abs(weights - truth).max()
    assert error < 0.01, error
    if me == 0:
        print(f"{n} PEs: {n * SAMPLES} samples, largest error of a weight {error:.4f}")
