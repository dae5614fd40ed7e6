"""Operations in the order of a CUDA stream: each puts one on the stream and returns.

A stream is a number, or an object that has __cuda_stream__ (cuda.core), .cuda_stream (torch), .ptr (cupy) or
.handle (numba); None is the default stream. Local arrays are referenced until the job ends, because nothing says
when a stream has used them; symmetric arrays exist until free, before which the program synchronizes the stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _job
from ._library import ArgumentError, check, lib
from ._memory import SymmetricArray, data_of, local, pe_of, symmetric
from ._team import WORLD, Team, block_of, pair_of, type_and_op
from ._transfer import SignalOp, signal_of, unsigned
from ._wait import _cmp

_used: list[np.ndarray] = []


def stream_pointer(stream: Any) -> int:
    """The cudaStream_t of anybody's stream object."""
    if stream is None:
        return 0
    if hasattr(stream, "__cuda_stream__"):
        pair = stream.__cuda_stream__
        stream = (pair() if callable(pair) else pair)[1]
    for name in ("cuda_stream", "ptr", "handle"):
        stream = getattr(stream, name, stream)
    stream = getattr(stream, "value", stream)  # numba's handle is a ctypes pointer
    try:
        return int(stream or 0)
    except (TypeError, ValueError):
        raise ArgumentError(f"on_stream: {type(stream).__name__} is no CUDA stream") from None


def _moved(
    dest: np.ndarray, source: Any, far: np.ndarray, near: Any, call: str, writes: bool
) -> None:
    block_of(far, call)
    near = local(near, far.dtype, call, writable=writes)
    if near.shape != far.shape or not near.flags.c_contiguous:
        raise ArgumentError(f"{call}: dest and source have one shape and no gaps")
    if not isinstance(near, SymmetricArray):
        _used.append(near)


def put_on_stream(
    dest: np.ndarray, source: np.ndarray, pe: int, stream: Any, *, nbi: bool = False
) -> None:
    """put in the order of the stream; nbi: complete after quiet_on_stream."""
    pe = pe_of(pe, "put_on_stream")
    _moved(dest, source, dest, source, "put_on_stream", False)
    function = lib.gshmem_putmem_nbi_on_stream if nbi else lib.gshmem_putmem_on_stream
    check(function(data_of(dest), data_of(source), dest.nbytes, pe, stream_pointer(stream)))


def get_on_stream(
    dest: np.ndarray, source: np.ndarray, pe: int, stream: Any, *, nbi: bool = False
) -> None:
    pe = pe_of(pe, "get_on_stream")
    _moved(dest, source, source, dest, "get_on_stream", True)
    function = lib.gshmem_getmem_nbi_on_stream if nbi else lib.gshmem_getmem_on_stream
    check(function(data_of(dest), data_of(source), dest.nbytes, pe, stream_pointer(stream)))


def put_signal_on_stream(
    dest, source, signal, value: int, pe: int, op: SignalOp, stream: Any
) -> None:
    call = "put_signal_on_stream"
    pe, at = pe_of(pe, call), signal_of(signal, call)
    _moved(dest, source, dest, source, call, False)
    check(lib.gshmem_putmem_signal_on_stream(data_of(dest), data_of(source), dest.nbytes, at, unsigned(value, call),
                                             SignalOp(op), pe, stream_pointer(stream)))  # fmt: skip


def signal_op_on_stream(signal: np.ndarray, value: int, pe: int, op: SignalOp, stream: Any) -> None:
    call = "signal_op_on_stream"
    at, pe = signal_of(signal, call), pe_of(pe, call)
    check(
        lib.gshmem_signal_op_on_stream(
            at, unsigned(value, call), SignalOp(op), pe, stream_pointer(stream)
        )
    )


def signal_wait_until_on_stream(signal: np.ndarray, cmp: Any, value: int, stream: Any) -> None:
    call = "signal_wait_until_on_stream"
    at, cmp = signal_of(signal, call), _cmp(cmp, call)
    check(
        lib.gshmem_signal_wait_until_on_stream(
            at, cmp, unsigned(value, call), stream_pointer(stream)
        )
    )


def quiet_on_stream(stream: Any) -> None:
    _job.require("quiet_on_stream")
    check(lib.gshmem_quiet_on_stream(stream_pointer(stream)))


def barrier_on_stream(stream: Any, team: Team = WORLD) -> None:
    check(lib.gshmem_barrier_on_stream(team.handle, stream_pointer(stream)))


def sync_on_stream(stream: Any, team: Team = WORLD) -> None:
    check(lib.gshmem_team_sync_on_stream(team.handle, stream_pointer(stream)))


def broadcast_on_stream(dest, source, root: int, stream: Any, team: Team = WORLD) -> None:
    pair_of(dest, source, "broadcast_on_stream")
    root = pe_of(root, "broadcast_on_stream", team.n_pes)
    check(lib.gshmem_broadcastmem_on_stream(team.handle, data_of(dest), data_of(source), source.nbytes, root,
                                            stream_pointer(stream)))  # fmt: skip


def fcollect_on_stream(dest, source, stream: Any, team: Team = WORLD) -> None:
    pair_of(dest, source, "fcollect_on_stream", team.n_pes)
    check(lib.gshmem_fcollectmem_on_stream(team.handle, data_of(dest), data_of(source), source.nbytes,
                                           stream_pointer(stream)))  # fmt: skip


def alltoall_on_stream(dest, source, stream: Any, team: Team = WORLD) -> None:
    n = team.n_pes
    bytes = pair_of(dest, source, "alltoall_on_stream", n, n) * source.itemsize
    check(lib.gshmem_alltoallmem_on_stream(team.handle, data_of(dest), data_of(source), bytes,
                                           stream_pointer(stream)))  # fmt: skip


def reduce_on_stream(dest, source, op: str, stream: Any, team: Team = WORLD) -> None:
    number, op_number = type_and_op(source, op, "reduce_on_stream")
    count = pair_of(dest, source, "reduce_on_stream")
    check(lib.gshmem_reduce_on_stream(team.handle, number, op_number, data_of(dest), data_of(source), count,
                                      stream_pointer(stream)))  # fmt: skip


def reducescatter_on_stream(dest, source, op: str, stream: Any, team: Team = WORLD) -> None:
    number, op_number = type_and_op(source, op, "reducescatter_on_stream")
    count = pair_of(dest, source, "reducescatter_on_stream", 1, team.n_pes)
    check(lib.gshmem_reducescatter_on_stream(team.handle, number, op_number, data_of(dest), data_of(source), count,
                                             stream_pointer(stream)))  # fmt: skip


def _release():
    return _used.clear


_job.at_end.append(_release)
