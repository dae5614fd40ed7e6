"""The host part of nvshmem.core (nvshmem4py) by its names and arguments, over the package gshmem.

Arrays are NumPy arrays in host memory, and tensors are torch's on the CPU over the same memory.
Without a stream a call is made at once, where nvshmem4py raises; with one it is put on the stream.
A name that is missing here is a function that raises NotImplementedError with that name.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any

import numpy as np

import gshmem
from gshmem import Cmp as ComparisonType
from gshmem import SignalOp
from gshmem._memory import peer as _peer
from gshmem._team import Team as _Team

SignalOp.SIGNAL_SET, SignalOp.SIGNAL_ADD = SignalOp.SET, SignalOp.ADD
for _name in ComparisonType.__members__:
    setattr(ComparisonType, "CMP_" + _name, ComparisonType[_name])

NvshmemError = gshmem.GshmemError
NvshmemInvalid = gshmem.ArgumentError


class InitStatus(IntEnum):
    STATUS_NOT_INITIALIZED = 0
    STATUS_IS_INITIALIZED = 2


class Teams(IntEnum):
    TEAM_INVALID = -1
    TEAM_WORLD = 0
    TEAM_SHARED = 1
    TEAM_NODE = 2
    TEAM_SAME_MYPE_NODE = 3


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)

    def missing(*_arguments: Any, **_named: Any) -> None:
        raise NotImplementedError(f"nvshmem.core.{name} is not in gshmem.nvshmem.core")

    missing.__name__ = name
    return missing


# ---- Start and end ----


class UniqueID:
    """_data: its bytes, for whatever broadcasts NumPy arrays."""

    def __init__(self, data: bytes):
        self._data = np.frombuffer(data, np.int8).copy()

    def __bytes__(self) -> bytes:
        return np.asarray(self._data).tobytes()


def get_unique_id(empty: bool = False) -> UniqueID:
    return UniqueID(bytes(128) if empty else gshmem.unique_id())


def init(
    device: Any = None,
    uid: UniqueID | None = None,
    rank: int | None = None,
    nranks: int | None = None,
    mpi_comm: Any = None,
    initializer_method: str = "",
) -> None:
    if initializer_method in ("mpi", "emulated_mpi"):
        gshmem.init(comm=mpi_comm)
    elif initializer_method == "uid":
        gshmem.init(uid=bytes(uid), pe=rank, n_pes=nranks)
    elif initializer_method:
        raise NotImplementedError(f"nvshmem.core.init: initializer_method {initializer_method!r}")
    else:
        gshmem.init()


def finalize() -> None:
    gshmem.finalize()


def init_status() -> InitStatus:
    return InitStatus(2 * gshmem.initialized())


my_pe, n_pes = gshmem.my_pe, gshmem.n_pes


def get_version() -> str:
    return f"libnvshmem_version=GSHMEM {gshmem.__version__}"


# ---- Memory ----


class Buffer(gshmem.SymmetricArray):
    """Bytes, in the place of cuda.core's Buffer."""

    @property
    def handle(self) -> int:
        return self.ctypes.data


def buffer(size: int, *_ignored: Any, **_named: Any) -> Buffer:
    return gshmem.empty(size, np.uint8).view(Buffer)


def array(
    shape: Any, dtype: Any = "float32", *_ignored: Any, **_named: Any
) -> gshmem.SymmetricArray:
    return gshmem.empty(shape, dtype)


def tensor(shape: Any, dtype: Any = None, *_ignored: Any, **_named: Any) -> Any:
    torch = _torch("tensor")
    dtype = torch.float32 if dtype is None else dtype
    if dtype is torch.bfloat16:
        raise NotImplementedError("nvshmem.core.tensor: bfloat16, which NumPy does not have")
    return torch.from_numpy(gshmem.empty(shape, str(dtype).rpartition(".")[2]))


def bytetensor(shape: Any, dtype: Any = None, *_ignored: Any, **_named: Any) -> Any:
    torch = _torch("bytetensor")
    item = torch.empty((), dtype=dtype or torch.uint8).element_size()
    return torch.from_numpy(gshmem.empty(math.prod(np.atleast_1d(shape)) * item, np.uint8))


def _torch(call: str) -> Any:
    try:
        import torch
    except ImportError:
        raise NotImplementedError(f"nvshmem.core.{call}: torch is not installed") from None
    return torch


def _array(value: Any) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else np.asarray(value)


def free(buffer: Any) -> None:
    gshmem.free(_array(buffer))


free_array = free_tensor = free


def get_peer_array(array: np.ndarray, peer_pe: int) -> np.ndarray:
    return _peer(_array(array), peer_pe)


get_peer_buffer = get_peer_array


def get_peer_tensor(tensor: Any, peer_pe: int) -> Any:
    return _torch("get_peer_tensor").from_numpy(_peer(_array(tensor), peer_pe))


# ---- Put, get, signals ----


def _bytes_of(dst: Any, src: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both as bytes, as many as the smaller one has."""
    flat = []
    for value in map(_array, (dst, src)):
        if not value.flags.c_contiguous:
            raise NvshmemInvalid("nvshmem.core: an array with gaps")
        flat.append(value.reshape(-1).view(np.uint8))
    count = min(flat[0].size, flat[1].size)
    return flat[0][:count], flat[1][:count]


def _signal(value: Any) -> np.ndarray:
    value = _array(value).reshape(-1)
    if value.nbytes < 8:
        raise NvshmemInvalid("nvshmem.core: a signal has 8 bytes")
    return value.view(np.uint8)[:8].view(np.uint64)


def put(dst: Any, src: Any, remote_pe: int = -1, stream: Any = None) -> None:
    dst, src = _bytes_of(dst, src)
    if stream is None:
        gshmem.put(dst, src, remote_pe)
    else:
        gshmem.put_on_stream(dst, src, remote_pe, stream)


def get(dst: Any, src: Any, remote_pe: int = -1, stream: Any = None) -> None:
    dst, src = _bytes_of(dst, src)
    if stream is None:
        gshmem.get(dst, src, remote_pe)
    else:
        gshmem.get_on_stream(dst, src, remote_pe, stream)


def put_signal(
    dst: Any,
    src: Any,
    signal_var: Any,
    signal_val: int,
    signal_op: SignalOp,
    remote_pe: int = -1,
    stream: Any = None,
) -> None:
    dst, src = _bytes_of(dst, src)
    signal = _signal(signal_var)
    if stream is None:
        gshmem.put_signal(dst, src, signal, signal_val, remote_pe, signal_op)
    else:
        gshmem.put_signal_on_stream(dst, src, signal, signal_val, remote_pe, signal_op, stream)


def signal_op(
    signal_var: Any, signal_val: int, signal_op: SignalOp, remote_pe: int = -1, stream: Any = None
) -> None:
    if stream is None:
        gshmem.signal_op(_signal(signal_var), signal_val, remote_pe, signal_op)
    else:
        gshmem.signal_op_on_stream(_signal(signal_var), signal_val, remote_pe, signal_op, stream)


def signal_wait(
    signal_var: Any, signal_val: int, signal_op: ComparisonType, stream: Any = None
) -> None:
    if stream is None:
        gshmem.signal_wait_until(_signal(signal_var), signal_op, signal_val)
    else:
        gshmem.signal_wait_until_on_stream(_signal(signal_var), signal_op, signal_val, stream)


def quiet(stream: Any = None) -> None:
    if stream is None:
        gshmem.quiet()
    else:
        gshmem.quiet_on_stream(stream)


def fence(stream: Any = None) -> None:
    if stream is None:
        gshmem.fence()
    else:
        gshmem.quiet_on_stream(stream)  # which orders as much, and more


# ---- Teams and collectives ----


def _team(team: Any) -> _Team:
    return team if isinstance(team, _Team) else _Team(int(team))


def team_my_pe(team: Any) -> int:
    return _team(team).my_pe


def team_n_pes(team: Any) -> int:
    return _team(team).n_pes


def team_translate_pe(src_team: Any, src_pe: int, dest_team: Any) -> int:
    found = _team(src_team).translate(src_pe, _team(dest_team))
    return -1 if found is None else found


def team_split_strided(
    parent_team: Any,
    start: int,
    stride: int,
    size: int,
    config: Any = None,
    config_mask: int = 0,
    new_team_name: str | None = None,
) -> _Team | None:
    return _team(parent_team).split(start, stride, size)


def team_split_2d(
    parent_team: Any, xrange: int, *_configs: Any, **_named: Any
) -> tuple[_Team | None, _Team | None]:
    return _team(parent_team).split_2d(xrange)


def team_destroy(team: Any) -> None:
    _team(team).destroy()


def _collective(name: str, team: Any, arguments: tuple, stream: Any) -> None:
    if stream is None:
        getattr(_team(team), name)(*arguments)
    else:
        getattr(gshmem, name + "_on_stream")(*arguments, stream, team=_team(team))


def barrier(team: Any = Teams.TEAM_WORLD, stream: Any = None) -> None:
    _collective("barrier", team, (), stream)


def sync(team: Any = Teams.TEAM_WORLD, stream: Any = None) -> None:
    _collective("sync", team, (), stream)


def barrier_all(stream: Any = None) -> None:
    barrier(Teams.TEAM_WORLD, stream)


def sync_all(stream: Any = None) -> None:
    sync(Teams.TEAM_WORLD, stream)


def broadcast(team: Any, dst: Any, src: Any, root: int = 0, stream: Any = None) -> None:
    _collective("broadcast", team, (_array(dst), _array(src), root), stream)


def fcollect(team: Any, dst: Any, src: Any, stream: Any = None) -> None:
    _collective("fcollect", team, (_array(dst), _array(src)), stream)


def alltoall(team: Any, dst: Any, src: Any, stream: Any = None) -> None:
    _collective("alltoall", team, (_array(dst), _array(src)), stream)


def reduce(team: Any, dst: Any, src: Any, op: str, stream: Any = None) -> None:
    _collective("reduce", team, (_array(dst), _array(src), op), stream)


def reducescatter(team: Any, dst: Any, src: Any, op: str, stream: Any = None) -> None:
    _collective("reducescatter", team, (_array(dst), _array(src), op), stream)
