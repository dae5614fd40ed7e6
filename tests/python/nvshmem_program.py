"""A program as users of nvshmem4py write it: the import alone is GSHMEM's."""

import sys

import numpy as np
import gshmem.nvshmem as nvshmem


class Stream:
    """The protocol of cuda.core's streams; 0 is the default stream."""

    def __cuda_stream__(self):
        return (0, 0)


nvshmem.core.init()
me, n = nvshmem.core.my_pe(), nvshmem.core.n_pes()
assert nvshmem.core.init_status() == nvshmem.core.InitStatus.STATUS_IS_INITIALIZED
node = nvshmem.core.team_my_pe(nvshmem.core.Teams.TEAM_NODE)
assert 0 <= node < nvshmem.core.team_n_pes(nvshmem.core.Teams.TEAM_NODE)
for stream in (Stream(), None):
    x = nvshmem.core.array((1024,), dtype="float32")
    y = nvshmem.core.array((1024,), dtype="float32")
    y[:] = me
    nvshmem.core.put(x, y, remote_pe=(me + 1) % n, stream=stream)
    nvshmem.core.barrier(nvshmem.core.Teams.TEAM_WORLD, stream=stream)
    assert (x == (me - 1) % n).all()
    nvshmem.core.sync(nvshmem.core.Teams.TEAM_WORLD, stream=stream)
    got = np.empty(1024, np.float32)
    nvshmem.core.get(got, y, (me + 1) % n, stream=stream)
    assert (got == (me + 1) % n).all()
    nvshmem.core.reduce(nvshmem.core.Teams.TEAM_WORLD, x, y, "sum", stream=stream)
    nvshmem.core.quiet(stream=stream)
    assert (x == n * (n - 1) // 2).all()
    signal = nvshmem.core.buffer(8)
    signal[:] = 0
    nvshmem.core.barrier(stream=stream)
    nvshmem.core.put_signal(
        x, y, signal, 1, nvshmem.core.SignalOp.SIGNAL_ADD, (me + 1) % n, stream=stream
    )
    nvshmem.core.signal_wait(signal, 1, nvshmem.core.ComparisonType.CMP_GE, stream=stream)
    assert (x == (me - 1) % n).all()
    z = nvshmem.core.array((n, 1024), dtype="float32")
    nvshmem.core.fcollect(nvshmem.core.Teams.TEAM_WORLD, z, y, stream=stream)
    assert (z == np.arange(n)[:, None]).all()
    nvshmem.core.broadcast(nvshmem.core.Teams.TEAM_WORLD, x, y, root=n - 1, stream=stream)
    assert (x == n - 1).all()
    try:
        nvshmem.core.get_multicast_array(nvshmem.core.Teams.TEAM_NODE, x)
        sys.exit("get_multicast_array: no exception")
    except NotImplementedError as error:
        assert "get_multicast_array" in str(error)
    nvshmem.core.barrier()
    for a in (x, y, z):
        nvshmem.core.free_array(a)
    nvshmem.core.free(signal)
nvshmem.core.finalize()
print(f"PE {me} of {n}: complete")
