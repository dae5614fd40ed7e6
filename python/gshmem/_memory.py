"""Symmetric arrays: NumPy arrays over the symmetric heap, and views of the copies of mapped peers.

A `_Memory` is one object of the heap, or a peer's copy of it. Arrays refer to it as their base, so
that it is known whether somebody still has a view when the job ends: then the bytes are kept at the
same addresses.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import Any

import numpy as np

from . import _job, _kept, _library
from ._job import collective, collectively, refuse_pe, require, state
from ._library import (
    ArgumentError,
    DtypeError,
    GshmemError,
    NotSymmetricError,
    OutOfMemoryError,
    StateError,
    UnsupportedError,
    lib,
)

# fmt: off
__all__ = [
    "MALLOC_ATOMICS_REMOTE", "NOT_MAPPED", "SymmetricArray", "array", "empty", "free", "full",
    "heap_bases", "peer", "peer_pointer", "zeros",
]
# fmt: on
MALLOC_ATOMICS_REMOTE, MALLOC_HOST = 0x1, 0x4


class _Memory:
    """A range of memory that NumPy arrays view. live: until it is freed, or the job ends. kept: what
    holds its pages after that."""

    __slots__ = ("address", "bytes", "live", "peer", "why", "kept", "__weakref__")

    def __init__(self, address: int, bytes: int, peer: int | None = None):
        self.address, self.bytes, self.peer = address, bytes, peer
        self.live, self.why, self.kept = True, "", None
        _all.add(self)

    @property
    def __array_interface__(self) -> dict:
        return {
            "version": 3,
            "shape": (self.bytes,),
            "typestr": "|u1",
            "data": (self.address, False),
        }

    def end(self, why: str) -> None:
        self.live, self.why = False, why


_all: weakref.WeakSet[_Memory] = weakref.WeakSet()  # of this job, also freed ones
_known: weakref.WeakValueDictionary[int, _Memory] = (
    weakref.WeakValueDictionary()
)  # by address, on this PE
_peers: weakref.WeakValueDictionary[tuple[int, int], _Memory] = (
    weakref.WeakValueDictionary()
)  # address, PE


class SymmetricArray(np.ndarray):
    """A NumPy array in symmetric memory: every PE has one of the same shape and dtype at the same
    place.

    Slices and views are symmetric, too. Results of arithmetic are plain arrays of this PE.
    """

    _memory: _Memory | None = None

    def __array_finalize__(self, source: Any) -> None:
        self._memory = getattr(source, "_memory", None)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        if array is self:  # a += b
            return self
        return array[()] if return_scalar else np.asarray(array).view(np.ndarray)

    def __reduce__(self):
        return np.array(self).__reduce__()  # a copy, which is not symmetric

    def __deepcopy__(self, memo):
        return np.array(self)

    def free(self) -> None:
        """gshmem.free(self)."""
        free(self)

    def peer(self, pe: int) -> np.ndarray:
        """gshmem.peer(self, pe)."""
        return peer(self, pe)

    def __enter__(self) -> SymmetricArray:
        return self

    def __exit__(self, kind, *_rest) -> None:
        if kind is None:
            free(self)


# ---- Addresses ----

_DATA = object.__basicsize__  # where an ndarray has its data pointer, by NumPy's binary interface
_pointer = ctypes.c_void_p.from_address


def _by_layout(array: np.ndarray) -> int:
    return _pointer(id(array) + _DATA).value or 0


def _by_attribute(array: np.ndarray) -> int:
    return array.ctypes.data


_probe = np.arange(4)[1:]
# 0.2 us for 1 us; taken only where it gives the same.
data_of = _by_layout if _by_layout(_probe) == _probe.ctypes.data else _by_attribute


def _bounds(array: np.ndarray) -> tuple[int, int]:
    low = high = data_of(array)
    for n, stride in zip(array.shape, array.strides):
        if n == 0:
            return low, low
        low, high = low + min(0, (n - 1) * stride), high + max(0, (n - 1) * stride)
    return low, high + array.itemsize


def symmetric(array: Any, call: str) -> np.ndarray:
    """The array, if it is in live symmetric memory of this PE; `array._memory.live` says so for the
    next time."""
    try:
        if array._memory.live and array._address:  # it has been found to be
            return array
    except AttributeError:
        pass
    if not isinstance(array, np.ndarray):
        require(call)
        raise NotSymmetricError(f"{call}: {type(array).__name__} is no array in symmetric memory")
    low, high = _bounds(array)
    memory = getattr(array, "_memory", None)
    if memory is None or not memory.address <= low <= high <= memory.address + memory.bytes:
        memory = _find(low, high)
    if memory is None or memory.peer is not None:
        require(call)
        raise NotSymmetricError(
            f"{call}: the array of {array.nbytes} bytes at {low:#x} is not in symmetric memory "
            "of this PE: gshmem.zeros, empty and full make such arrays"
        )
    if not memory.live:
        raise StateError(f"{call}: {memory.why}")
    if isinstance(array, SymmetricArray):
        array._memory, array._address = memory, data_of(array)
    return array


def _find(low: int, high: int) -> _Memory | None:
    for memory in list(_known.values()):
        if memory.live and memory.address <= low <= high <= memory.address + memory.bytes:
            return memory
    return None


def local(array: Any, dtype: np.dtype | None, call: str, writable: bool = False) -> np.ndarray:
    """An array that NumPy can read, or write, of exactly that dtype. Numbers and lists are
    converted to it."""
    if not isinstance(array, np.ndarray):
        if writable:
            array = _memory_of(array, call)
        elif hasattr(array, "__dlpack__"):
            array = np.from_dlpack(array)
        elif hasattr(array, "__array_interface__") or hasattr(array, "__array__"):
            array = np.asarray(array)
        else:
            try:
                array = np.asarray(array)
                exact = array.astype(dtype) if dtype is not None else array
            except (TypeError, ValueError, OverflowError) as error:
                raise DtypeError(f"{call}: {error}") from None
            with np.errstate(all="ignore"):
                if (
                    array.dtype.kind in "iufb"
                    and exact.dtype.kind in "iub"
                    and np.any(exact != array)
                ):
                    raise DtypeError(f"{call}: {array.dtype} values do not fit in {dtype}")
            array = exact
    if dtype is not None and array.dtype != dtype:
        raise DtypeError(f"{call}: dtypes differ: {array.dtype} and {dtype}")
    if array.dtype.hasobject:
        raise DtypeError(f"{call}: Python objects have no meaning on another PE")
    if writable and not array.flags.writeable:
        raise ArgumentError(f"{call}: the array is read-only")
    memory = getattr(array, "_memory", None)
    if memory is not None and not memory.live and _inside(array, memory):
        raise StateError(f"{call}: {memory.why}")
    return array


def _memory_of(array: Any, call: str) -> np.ndarray:
    """The memory of an array of another library. Some give NumPy a new copy each time."""
    kinds = ("__array_interface__", "__array_struct__", "__array__")
    if any(hasattr(array, kind) for kind in kinds):
        view = np.asarray(array)
        if view.size == 0 or data_of(view) == data_of(np.asarray(array)):
            return view
        raise ArgumentError(f"{call}: NumPy gets only copies of {type(array).__name__}")
    try:
        return np.asarray(memoryview(array))
    except TypeError:
        raise ArgumentError(f"{call}: {type(array).__name__} is no array") from None


def _inside(array: np.ndarray, memory: _Memory) -> bool:
    return memory.address <= data_of(array) <= memory.address + memory.bytes


def in_symmetric_memory(array: np.ndarray) -> bool:
    """Whether the array lies in live symmetric memory; a copy of a SymmetricArray does not."""
    memory = getattr(array, "_memory", None)
    return memory is not None and memory.live and _inside(array, memory)


# ---- Allocation ----


def _describe(shape: Any, dtype: Any, call: str) -> tuple[tuple[int, ...], np.dtype, int]:
    try:
        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{call}: {error}") from None
    if any(n < 0 for n in shape):
        raise ArgumentError(f"{call}: shape {shape} has a negative length")
    if dtype.hasobject:
        raise DtypeError(f"{call}: Python objects cannot be in symmetric memory")
    count = math.prod(shape) * dtype.itemsize
    if count >= 2**63:
        raise OutOfMemoryError(f"{call}: {count} bytes are more than any heap has")
    return shape, dtype, count


def empty(shape: Any, dtype: Any = np.float64, *, hints: int = 0) -> SymmetricArray:
    """A symmetric array whose contents are not set. Collective over the job, with the same
    arguments.

    It is in host memory, also where the heap is in GPU memory. hints: MALLOC_ATOMICS_REMOTE or 0.
    """
    return _allocate(shape, dtype, hints, "empty")


def _allocate(shape: Any, dtype: Any, hints: int, call: str) -> SymmetricArray:
    shape, dtype, bytes = _describe(shape, dtype, call)
    require(call)
    address = collectively(
        call, lib.gshmem_malloc_with_hints, max(bytes, 16), hints | MALLOC_HOST
    )
    if not address:
        raise _library.last_failure()
    memory = _known[address] = _Memory(address, max(bytes, 16))
    array = np.asarray(memory)[:bytes].view(dtype).reshape(shape).view(SymmetricArray)
    array._memory = memory
    return array


def full(shape: Any, value: Any, dtype: Any = None, *, hints: int = 0) -> SymmetricArray:
    """A symmetric array with this value everywhere, on all PEs. Collective over the job."""
    return _filled(shape, value, dtype, hints, "full")


def _filled(shape: Any, value: Any, dtype: Any, hints: int, call: str) -> SymmetricArray:
    try:
        value = np.asarray(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise DtypeError(f"{call}: {error}") from None
    shape, dtype, _bytes = _describe(shape, value.dtype, call)
    try:
        np.broadcast_to(value, shape)
    except ValueError as error:
        raise ArgumentError(f"{call}: {error}") from None
    array = _allocate(shape, dtype, hints, call)
    array[...] = value
    collective(call, lib.gshmem_barrier, 0)  # nobody writes to it before it is filled
    return array


def zeros(shape: Any, dtype: Any = np.float64, *, hints: int = 0) -> SymmetricArray:
    """A symmetric array of zeros. Collective over the job."""
    try:
        zero = np.zeros((), dtype)
    except TypeError as error:
        raise ArgumentError(f"zeros: {error}") from None
    return _filled(shape, zero, None, hints, "zeros")


def array(source: Any, dtype: Any = None, *, hints: int = 0) -> SymmetricArray:
    """A symmetric copy of an array that has the same shape and dtype on all PEs. Collective over
    the job."""
    try:
        source = np.asarray(source, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise DtypeError(f"array: {error}") from None
    return _filled(source.shape, source, None, hints, "array")


def free(array: np.ndarray) -> None:
    """Frees a symmetric array, and all views of it. Collective over the job.

    After this, calls on the array and its views raise StateError. NumPy itself can still read and
    write them, without a fault, and finds there whatever the heap holds: do not.
    """
    whole = symmetric(array, "free")
    memory = whole._memory if isinstance(whole, SymmetricArray) else _find(*_bounds(whole))
    if data_of(array) != memory.address:
        raise ArgumentError("free: this is a part of an array; the whole of it is freed")
    freed = [memory] + [m for (at, _pe), m in list(_peers.items()) if at == memory.address]
    for one in freed:  # before the call, after which a signal handler may raise
        one.end("the array has been freed")
    try:
        collective("free", lib.gshmem_free, memory.address)
    except GshmemError:
        for one in freed:
            one.live, one.why = True, ""
        raise


# ---- Peers ----


def peer_pointer(array: np.ndarray, pe: int) -> int:
    """The address at which pe's copy of the array is mapped here, for kernels; 0 where it is
    not."""
    symmetric(array, "peer_pointer")
    pe = pe_of(pe, "peer_pointer")
    return lib.gshmem_ptr(data_of(array), pe) or 0


NOT_MAPPED = 2**64 - 1  # no difference of the addresses of two aligned objects


def heap_bases() -> np.ndarray:
    """For kernels of other compilers: bases[pe] + address is where pe's copy of what is at address
    on this PE is mapped here, modulo 2**64 (dtype uint64), for all arrays of gshmem.empty, zeros
    and full. The entry of a PE that is not mapped is NOT_MAPPED. Good until the end of the job."""
    require("heap_bases")
    memory = next((m for m in list(_known.values()) if m.live), None)
    if memory is None:
        raise StateError("heap_bases: there is no symmetric array yet")
    there = (lib.gshmem_ptr(memory.address, pe) for pe in range(state.n_pes))
    return np.array(
        [(at - memory.address) % 2**64 if at else NOT_MAPPED for at in there], np.uint64
    )


def peer(array: np.ndarray, pe: int) -> np.ndarray:
    """pe's copy of the array, as a NumPy view of the memory itself, for loads and stores.

    Raises UnsupportedError where this PE has not mapped it, as on another node. Stores are seen by
    other PEs after fence, quiet or a barrier.
    """
    whole = symmetric(array, "peer")
    pe = pe_of(pe, "peer")
    memory = whole._memory if isinstance(whole, SymmetricArray) else _find(*_bounds(whole))
    view = _peers.get((memory.address, pe))
    if view is None or not view.live:
        address = lib.gshmem_ptr(memory.address, pe)
        if not address:
            raise UnsupportedError(f"peer: memory of PE {pe} is not mapped here: use get and put")
        view = _peers[memory.address, pe] = _Memory(address, memory.bytes, pe)
    offset = data_of(array) - memory.address
    return np.ndarray(array.shape, array.dtype, np.asarray(view), offset, array.strides)


def pe_of(pe: Any, call: str, n: int | None = None) -> int:
    """The PE as an int in range."""
    if type(pe) is not int:
        try:
            pe = pe.__index__()
        except AttributeError:
            raise ArgumentError(f"{call}: PE {pe!r} is no number") from None
    if not 0 <= pe < (state.n_pes if n is None else n):
        raise refuse_pe(call, pe, n)
    return pe


# ---- The end of the job, with arrays that are still referenced ----


def _keep():
    """Before finalize: keeps what arrays may still view, also of arrays that have been freed.
    Returns what is to be done after finalize."""
    memories = [m for m in _all if m.kept is None]
    mine = [m for m in memories if m.peer in (None, state.pe)]
    theirs = [m for m in memories if m.peer not in (None, state.pe)]
    pieces = _kept.keep(((m.address, m.bytes) for m in mine), now=False)
    pieces += _kept.keep(((m.address, m.bytes) for m in theirs), now=True)

    def ended() -> None:
        for memory in memories:
            if memory.live:
                memory.end("finalize has ended the job that the array belongs to")
            end = memory.address + memory.bytes
            memory.kept = [p for p in pieces if p.first < end and memory.address < p.end]
        _known.clear()
        _peers.clear()
        _all.clear()

    return ended


_job.at_end.append(_keep)
