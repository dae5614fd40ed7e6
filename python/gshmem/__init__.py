"""GSHMEM for Python: symmetric NumPy arrays, and one-sided communication between the PEs of a job.

import gshmem
with gshmem.init():
    a = gshmem.zeros(8)
    gshmem.put(a, a + gshmem.my_pe(), (gshmem.my_pe() + 1) % gshmem.n_pes())
    gshmem.barrier()

python -m gshmem.run -n 4 script.py
"""

from ._job import finalize, global_exit, init, initialized, my_pe, n_pes, unique_id
from ._library import (
    AbortedError,
    ArgumentError,
    BootstrapError,
    DeviceError,
    DtypeError,
    GshmemError,
    MismatchError,
    NotSymmetricError,
    OutOfMemoryError,
    PeerDeadError,
    StateError,
    SystemCallError,
    TimedOutError,
    TransportError,
    UnreachableError,
    UnsupportedError,
)
from ._memory import (
    MALLOC_ATOMICS_REMOTE,
    NOT_MAPPED,
    SymmetricArray,
    array,
    empty,
    free,
    full,
    heap_bases,
    peer,
    peer_pointer,
    zeros,
)
from ._spawn import spawn
from ._stream import (
    alltoall_on_stream,
    barrier_on_stream,
    broadcast_on_stream,
    fcollect_on_stream,
    get_on_stream,
    put_on_stream,
    put_signal_on_stream,
    quiet_on_stream,
    reduce_on_stream,
    reducescatter_on_stream,
    signal_op_on_stream,
    signal_wait_until_on_stream,
    sync_on_stream,
)
from ._team import (
    NODE,
    SHARED,
    WORLD,
    Team,
    alltoall,
    alltoalls,
    barrier,
    broadcast,
    collect,
    exscan,
    fcollect,
    inscan,
    reduce,
    reducescatter,
    sync,
)
from ._transfer import (
    SignalOp,
    atomic_add,
    atomic_and,
    atomic_compare_swap,
    atomic_fetch,
    atomic_fetch_add,
    atomic_fetch_and,
    atomic_fetch_inc,
    atomic_fetch_or,
    atomic_fetch_xor,
    atomic_inc,
    atomic_or,
    atomic_set,
    atomic_swap,
    atomic_xor,
    fence,
    get,
    get_nbi,
    put,
    put_nbi,
    put_signal,
    put_signal_nbi,
    quiet,
    signal_add,
    signal_fetch,
    signal_op,
    signal_set,
)
from ._wait import (
    Cmp,
    Lock,
    signal_wait_until,
    test,
    test_all,
    test_any,
    test_some,
    wait_until,
    wait_until_all,
    wait_until_any,
    wait_until_some,
)

__version__ = "0.1.0"
__all__ = [name for name in dir() if not name.startswith("_")]
