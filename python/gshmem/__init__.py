"""GSHMEM for Python: symmetric NumPy arrays, and one-sided communication between the PEs of a job.

import gshmem
with gshmem.init():
    a = gshmem.zeros(8)
    gshmem.put(a, a + gshmem.my_pe(), (gshmem.my_pe() + 1) % gshmem.n_pes())
    gshmem.barrier()

python -m gshmem.run -n 4 script.py
"""

from ._job import finalize as finalize, global_exit as global_exit, init as init
from ._job import initialized as initialized, my_pe as my_pe, n_pes as n_pes
from ._job import unique_id as unique_id
from ._library import *
from ._memory import *
from ._spawn import spawn as spawn
from ._stream import *
from ._team import *
from ._transfer import *
from ._wait import *

__version__ = "0.1.0"
