"""Operations in the order of a CUDA stream: each puts one on the stream and returns.

A stream is a number, or an object that has __cuda_stream__ (cuda.core), .cuda_stream (torch), .ptr
(cupy) or .handle (numba); None is the default stream. Local arrays are referenced until the job
ends, because nothing says when a stream has used them. Symmetric arrays exist until free, before
which the program synchronizes the stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _job
from ._library import ArgumentError, check, lib
from ._memory import data_of, in_symmetric_memory, local, pe_of
from ._team import WORLD, Team, block_of, pair_of, type_and_op
from ._transfer import SignalOp, signal_of, unsigned
from ._wait import cmp_of

# fmt: off
__all__ = [
    "alltoall_on_stream", "barrier_on_stream", "broadcast_on_stream", "fcollect_on_stream",
    "get_on_stream", "put_on_stream", "put_signal_on_stream", "quiet_on_stream",
    "reduce_on_stream", "reducescatter_on_stream", "signal_op_on_stream",
    "signal_wait_until_on_stream", "sync_on_stream",
]
# fmt: on
_used: list[np.ndarray] = []
_job.at_end.append(lambda: _used.clear)


def stream_pointer(stream: Any) -> int:
    """The cudaStream_t of anybody's stream object."""
    if hasattr(stream, "__cuda_stream__"):
        pair = stream.__cuda_stream__
        stream = (pair() if callable(pair) else pair)[1]
    for name in ("cuda_stream", "ptr", "handle", "value"):  # numba's handle has a value
        stream = getattr(stream, name, stream)
    try:
        return int(stream or 0)
    except (TypeError, ValueError):
        raise ArgumentError(f"on_stream: {type(stream).__name__} is no CUDA stream") from None


def _call(name: str, *arguments: Any) -> None:
    """Calls the library's function; the last argument is the stream."""
    *others, stream = arguments
    others = [data_of(x) if isinstance(x, np.ndarray) else x for x in others]
    check(getattr(lib, f"gshmem_{name}_on_stream")(*others, stream_pointer(stream)))


def _moved(
    call: str, far: np.ndarray, near: Any, pe: Any, writes: bool = False
) -> tuple[np.ndarray, int]:
    """Checks a symmetric array and a local one of the same shape, and the PE. Returns the local
    one, whose memory stays until the job ends, and the PE."""
    block_of(far, call)
    near = local(near, far.dtype, call, writable=writes)
    if near.shape != far.shape or not near.flags.c_contiguous:
        raise ArgumentError(f"{call}: dest and source have one shape and no gaps")
    pe = pe_of(pe, call)
    if not in_symmetric_memory(near):
        _used.append(near)
    return near, pe


def put_on_stream(dest: np.ndarray, source: Any, pe: int, stream: Any, *, nbi=False) -> None:
    """put in the order of the stream; nbi: complete after quiet_on_stream."""
    source, pe = _moved("put_on_stream", dest, source, pe)
    _call("putmem_nbi" if nbi else "putmem", dest, source, dest.nbytes, pe, stream)


def get_on_stream(dest: np.ndarray, source: np.ndarray, pe: int, stream: Any, *, nbi=False) -> None:
    """get in the order of the stream; nbi: complete after quiet_on_stream."""
    dest, pe = _moved("get_on_stream", source, dest, pe, writes=True)
    _call("getmem_nbi" if nbi else "getmem", dest, source, dest.nbytes, pe, stream)


def put_signal_on_stream(
    dest: np.ndarray, source: Any, signal: Any, value: int, pe: int, op: SignalOp, stream: Any
) -> None:
    """put_signal in the order of the stream."""
    call = "put_signal_on_stream"
    at, value = signal_of(signal, call), unsigned(value, call)
    source, pe = _moved(call, dest, source, pe)
    _call("putmem_signal", dest, source, dest.nbytes, at, value, SignalOp(op), pe, stream)


def signal_op_on_stream(signal: Any, value: int, pe: int, op: SignalOp, stream: Any) -> None:
    call = "signal_op_on_stream"
    at, pe = signal_of(signal, call), pe_of(pe, call)
    _call("signal_op", at, unsigned(value, call), SignalOp(op), pe, stream)


def signal_wait_until_on_stream(signal: np.ndarray, cmp: Any, value: int, stream: Any) -> None:
    call = "signal_wait_until_on_stream"
    _call(
        "signal_wait_until",
        signal_of(signal, call),
        cmp_of(cmp, call),
        unsigned(value, call),
        stream,
    )


def quiet_on_stream(stream: Any) -> None:
    _job.require("quiet_on_stream")
    _call("quiet", stream)


def barrier_on_stream(stream: Any, team: Team = WORLD) -> None:
    _call("barrier", team.handle, stream)


def sync_on_stream(stream: Any, team: Team = WORLD) -> None:
    _call("team_sync", team.handle, stream)


def broadcast_on_stream(
    dest: np.ndarray, source: np.ndarray, root: int, stream: Any, team: Team = WORLD
) -> None:
    pair_of(dest, source, "broadcast_on_stream")
    root = pe_of(root, "broadcast_on_stream", team.n_pes)
    _call("broadcastmem", team.handle, dest, source, source.nbytes, root, stream)


def fcollect_on_stream(
    dest: np.ndarray, source: np.ndarray, stream: Any, team: Team = WORLD
) -> None:
    pair_of(dest, source, "fcollect_on_stream", team.n_pes)
    _call("fcollectmem", team.handle, dest, source, source.nbytes, stream)


def alltoall_on_stream(
    dest: np.ndarray, source: np.ndarray, stream: Any, team: Team = WORLD
) -> None:
    n = team.n_pes
    count = pair_of(dest, source, "alltoall_on_stream", n, n)
    _call("alltoallmem", team.handle, dest, source, count * source.itemsize, stream)


def reduce_on_stream(
    dest: np.ndarray, source: np.ndarray, op: str, stream: Any, team: Team = WORLD
) -> None:
    kind = type_and_op(source, op, "reduce_on_stream")
    count = pair_of(dest, source, "reduce_on_stream")
    _call("reduce", team.handle, *kind, dest, source, count, stream)


def reducescatter_on_stream(
    dest: np.ndarray, source: np.ndarray, op: str, stream: Any, team: Team = WORLD
) -> None:
    kind = type_and_op(source, op, "reducescatter_on_stream")
    count = pair_of(dest, source, "reducescatter_on_stream", 1, team.n_pes)
    _call("reducescatter", team.handle, *kind, dest, source, count, stream)
