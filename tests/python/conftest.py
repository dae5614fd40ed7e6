"""One session of pytest on each PE of a job: all make the same calls in the same order."""

import os
import sys

import numpy as np
import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../python"))
os.environ.setdefault("NUMBA_ENABLE_CUDASIM", "1")  # read when numba is imported
import gshmem  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def job():
    if "GSHMEM_TEST_ALONE" in os.environ:  # tests that start jobs themselves
        yield None
        return
    gshmem.init()
    yield gshmem
    gshmem.finalize()


@pytest.fixture(autouse=True)
def together(request, job):
    """A test begins when all PEs have ended the one before, and leaves no process."""
    if job:
        gshmem.barrier()
    yield
    if "alone" in sys.modules:
        sys.modules["alone"].end_all()


def pytest_runtest_logreport(report):
    """A PE that fails ends the job at once, so that nobody waits for it."""
    if report.failed and "GSHMEM_TEST_ALONE" not in os.environ:
        print(
            f"PE {gshmem.my_pe()}: {report.nodeid}\n{report.longreprtext}",
            file=sys.stderr,
            flush=True,
        )
        os._exit(1)


@pytest.fixture
def me():
    return gshmem.my_pe()


@pytest.fixture
def n():
    return gshmem.n_pes()


@pytest.fixture
def random(me):
    return np.random.default_rng(7 + me)


@pytest.fixture
def same():
    """The same numbers on all PEs."""
    return np.random.default_rng(7)
