"""Put, get, signals and atomics, on arrays and on any slices of them."""

from __future__ import annotations

import ctypes
import struct
from enum import IntEnum
from typing import Any, Callable, Union

import numpy as np

from . import _job
from ._job import collective, require, state
from ._library import ArgumentError, DtypeError, check, check_elsewhere, failure, lib, value_of
from ._memory import data_of, local, pe_of, symmetric

# fmt: off
__all__ = [
    "SignalOp", "atomic_add", "atomic_and", "atomic_compare_swap", "atomic_fetch",
    "atomic_fetch_add", "atomic_fetch_and", "atomic_fetch_inc", "atomic_fetch_or",
    "atomic_fetch_xor", "atomic_inc", "atomic_or", "atomic_set", "atomic_swap", "atomic_xor",
    "fence", "get", "get_nbi", "put", "put_nbi", "put_signal", "put_signal_nbi", "quiet",
    "signal_add", "signal_fetch", "signal_op", "signal_set",
]
# fmt: on
_put, _get = lib.gshmem_path_put, lib.gshmem_path_get
DEFAULT = 1  # GSHMEM_CTX_DEFAULT
_pending: list[np.ndarray] = []  # local arrays of operations without waiting, until `complete`
_PENDING_MOST = 4096


class SignalOp(IntEnum):
    SET = 1
    ADD = 2


# ---- Put and get ----


def put(dest: np.ndarray, source: Any, pe: int) -> None:
    """Copies source to dest on pe. dest: a symmetric array or any slice of one, as this PE names
    it; source: an array of the same shape and dtype, or what NumPy broadcasts to it. On return
    source may be reused; the data is complete on pe after quiet or a barrier."""
    try:  # the common case: a view of a symmetric array whose address is known, and a plain array
        if (
            dest._memory.live
            and source.dtype is dest.dtype
            and source.shape == dest.shape
            and type(pe) is int
            and 0 <= pe < state.n_pes
            and dest.flags.c_contiguous
            and source.flags.c_contiguous
            and (type(source) is np.ndarray or source._memory.live)
        ):
            if status := _put(DEFAULT, dest._address, data_of(source), dest.nbytes, pe, 0):
                raise failure(status)
            return
    except AttributeError:
        pass
    _put_any(dest, source, pe, 0, "put")


def get(dest: np.ndarray, source: np.ndarray, pe: int) -> None:
    """Copies source on pe to dest. source: a symmetric array or any slice of one; dest: a writable
    array of the same shape and dtype. The data is there on return."""
    try:
        if (
            source._memory.live
            and source.dtype is dest.dtype
            and source.shape == dest.shape
            and type(pe) is int
            and 0 <= pe < state.n_pes
            and dest.flags.carray
            and source.flags.c_contiguous
            and (type(dest) is np.ndarray or dest._memory.live)
        ):
            if status := _get(DEFAULT, data_of(dest), source._address, source.nbytes, pe, 0):
                raise failure(status)
            return
    except AttributeError:
        pass
    _get_any(dest, source, pe, 0, "get")


def put_nbi(dest: np.ndarray, source: Any, pe: int) -> None:
    """Like put, but source may be reused only after quiet; a reference to it is kept until then."""
    _put_any(dest, source, pe, 1, "put_nbi")


def get_nbi(dest: np.ndarray, source: np.ndarray, pe: int) -> None:
    """Like get, but the data is in dest only after quiet."""
    _get_any(dest, source, pe, 1, "get_nbi")


def _put_any(dest: Any, source: Any, pe: Any, nbi: int, call: str) -> None:
    symmetric(dest, call)
    pe = pe_of(pe, call)
    source = _shaped(local(source, dest.dtype, call), dest.shape, call)
    if dest.size == 0:
        return
    if dest.flags.c_contiguous:
        source = np.ascontiguousarray(source)
        if nbi:
            _keep_until_quiet(source)
        check(_put(DEFAULT, data_of(dest), data_of(source), dest.nbytes, pe, nbi))
        return
    _strided(dest, source, True, pe)


def _get_any(dest: Any, source: Any, pe: Any, nbi: int, call: str) -> None:
    symmetric(source, call)
    pe = pe_of(pe, call)
    dest = local(dest, source.dtype, call, writable=True)
    if dest.shape != source.shape:
        raise ArgumentError(f"{call}: shapes differ: {dest.shape} and {source.shape}")
    if source.size == 0:
        return
    if source.flags.c_contiguous and dest.flags.c_contiguous:
        if nbi:
            _keep_until_quiet(dest)
        check(_get(DEFAULT, data_of(dest), data_of(source), source.nbytes, pe, nbi))
        return
    _strided(source, dest, False, pe)


def _shaped(source: np.ndarray, shape: tuple[int, ...], call: str) -> np.ndarray:
    if source.shape == shape:
        return source
    try:
        return np.broadcast_to(source, shape)
    except ValueError:
        raise ArgumentError(f"{call}: shapes differ: {source.shape} does not fit {shape}") from None


def _keep_until_quiet(array: np.ndarray) -> None:
    """Before the operation, after which a signal handler may raise."""
    if len(_pending) >= _PENDING_MOST:
        quiet()
    _pending.append(array)


def _sorted(far: np.ndarray, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Views of both arrays in which the strides of the symmetric one are positive and fall from
    axis to axis."""
    ways = tuple(slice(None, None, -1 if stride < 0 else 1) for stride in far.strides)
    far, near = far[ways], near[ways]
    order = sorted(range(far.ndim), key=lambda axis: -far.strides[axis])
    return far.transpose(order), near.transpose(order)


def _strided(far: np.ndarray, near: np.ndarray, puts: bool, pe: int) -> None:
    """Copies near to the symmetric array far on pe, or from it, where far is no single block of
    memory: by calls that move a number of equal blocks each. They count in bytes, as the strides of
    a field of records are no multiple of its size."""
    far, near = _sorted(far, near)
    packed = np.ascontiguousarray(near) if puts else np.empty(near.shape, near.dtype)
    shape, steps, block = list(far.shape), list(far.strides), far.itemsize
    while shape and (shape[-1] == 1 or steps[-1] == block):  # what lies together is one block
        block *= shape.pop()
        steps.pop()
    n, step = (shape.pop(), steps.pop()) if shape else (1, block)
    here, there = data_of(packed), data_of(far)
    for index in np.ndindex(*shape):
        at = there + sum(i * s for i, s in zip(index, steps))
        if puts:
            check(lib.gshmem_ctx_ibputmem(DEFAULT, at, here, step, block, block, 1, n, pe))
        else:
            check(lib.gshmem_ctx_ibgetmem(DEFAULT, here, at, block, step, block, 1, n, pe))
        here += n * block
    if not puts:
        near[...] = packed


# ---- Signals ----


def signal_of(signal: Any, call: str) -> int:
    """The address of a signal: one uint64 of a symmetric array."""
    symmetric(signal, call)
    if signal.size != 1 or signal.dtype != np.uint64:
        raise DtypeError(
            f"{call}: a signal is one uint64, as in signals[2:3], "
            f"not {signal.shape} of {signal.dtype}"
        )
    return data_of(signal)


def unsigned(value: Any, call: str) -> int:
    if not 0 <= (value := value.__index__()) < 2**64:
        raise ArgumentError(f"{call}: {value} does not fit in 64 bits without sign")
    return value


def _put_signal(
    function: Any, call: str, dest, source, signal, value, pe, op, nbi: bool = False
) -> None:
    symmetric(dest, call)
    pe, at = pe_of(pe, call), signal_of(signal, call)
    source = np.ascontiguousarray(_shaped(local(source, dest.dtype, call), dest.shape, call))
    if not dest.flags.c_contiguous:  # the data first, and then the signal
        _put_any(dest, source, pe, 0, call)
        check(lib.gshmem_fence())
        check(lib.gshmem_signal_op(at, unsigned(value, call), SignalOp(op), pe))
        return
    value, op = unsigned(value, call), SignalOp(op)
    if nbi:
        _keep_until_quiet(source)
    check(function(DEFAULT, data_of(dest), data_of(source), dest.nbytes, at, value, op, pe))


def put_signal(
    dest: np.ndarray,
    source: Any,
    signal: np.ndarray,
    value: int,
    pe: int,
    op: SignalOp = SignalOp.SET,
) -> None:
    """put, and then an update of the signal on pe (SignalOp.SET or ADD). Who sees the signal sees
    the data."""
    _put_signal(lib.gshmem_ctx_putmem_signal, "put_signal", dest, source, signal, value, pe, op)


def put_signal_nbi(
    dest: np.ndarray,
    source: Any,
    signal: np.ndarray,
    value: int,
    pe: int,
    op: SignalOp = SignalOp.SET,
) -> None:
    """put_signal that may return before source can be reused; a reference is kept until quiet."""
    function = lib.gshmem_ctx_putmem_signal_nbi
    _put_signal(function, "put_signal_nbi", dest, source, signal, value, pe, op, nbi=True)


def signal_op(signal: np.ndarray, value: int, pe: int, op: SignalOp = SignalOp.SET) -> None:
    """Updates a signal on pe, without data."""
    pe, at = pe_of(pe, "signal_op"), signal_of(signal, "signal_op")
    check(lib.gshmem_signal_op(at, unsigned(value, "signal_op"), SignalOp(op), pe))


def signal_set(signal: np.ndarray, value: int, pe: int) -> None:
    signal_op(signal, value, pe, SignalOp.SET)


def signal_add(signal: np.ndarray, value: int, pe: int) -> None:
    signal_op(signal, value, pe, SignalOp.ADD)


def signal_fetch(signal: np.ndarray) -> int:
    """The value of a signal of this PE; what came before it is visible."""
    return value_of(lib.gshmem_path_signal_fetch, signal_of(signal, "signal_fetch"))


# ---- Order ----


def fence() -> None:
    """Operations to a PE before it arrive there before those after it."""
    require("fence")
    check(lib.gshmem_fence())


def complete(call: str, function: Callable[..., int], *arguments: Any) -> None:
    """Calls a function that completes this PE's operations, and lets their local arrays go."""
    global _pending
    held, _pending = _pending, []  # what other threads begin from here on may not be complete
    try:
        collective(call, function, *arguments)
    except BaseException:
        _pending[:0] = held
        raise
    check_elsewhere()


def quiet() -> None:
    """All operations of this PE before it are complete and visible to all PEs on return."""
    require("quiet")
    complete("quiet", lib.gshmem_quiet)


# ---- Atomics ----

# dtype: number of gshmem/type.h, code of struct, whether it is an integer.
_ATOMIC = {
    np.dtype(name): (number, struct.Struct("=" + code), integer)
    for name, number, code, integer in (
        ("int32", 2, "i", True),
        ("int64", 3, "q", True),
        ("uint32", 6, "I", True),
        ("uint64", 7, "Q", True),
        ("float32", 8, "f", False),
        ("float64", 9, "d", False),
    )
}
_FETCH, _SET, _SWAP, _COMPARE_SWAP, _ADD, _AND, _OR, _XOR = range(8)
_FOR_REALS = (_FETCH, _SET, _SWAP, _ADD)


def _atomic(
    call: str, op: int, target, pe, value: Any = 0, compare: Any = 0, fetch: bool = True
) -> Any:
    symmetric(target, call)
    pe = pe_of(pe, call)
    if target.size != 1:
        raise ArgumentError(
            f"{call}: the target is one element, as in a[3:4], not an array of {target.shape}"
        )
    known = _ATOMIC.get(target.dtype)
    if known is None or not (known[2] or op in _FOR_REALS):
        raise DtypeError(f"{call}: there is none for {target.dtype}")
    number, code, _ = known
    try:
        bits = int.from_bytes(code.pack(value), "little")
        expected = int.from_bytes(code.pack(compare), "little")
    except (struct.error, OverflowError, TypeError) as error:
        raise DtypeError(f"{call}: {value!r} is no {target.dtype}: {error}") from None
    old = ctypes.c_uint64()
    to = ctypes.byref(old) if fetch else None
    check(lib.gshmem_path_atomic(DEFAULT, op, number, data_of(target), bits, expected, to, pe))
    return code.unpack(old.value.to_bytes(8, "little")[: code.size])[0] if fetch else None


Number = Union[int, float]
_READ = Callable[[np.ndarray, int], Number]  # (target, pe): the old value
_READ_WITH = Callable[[np.ndarray, Number, int], Number]  # (target, value, pe): the old value
_WRITE = Callable[[np.ndarray, int], None]
_WRITE_WITH = Callable[[np.ndarray, Number, int], None]


def _named(name: str, op: int, fetch: bool, value: Number | None = None) -> Any:
    call = "atomic_" + name
    if value is None:

        def function(target: np.ndarray, value: Number, pe: int) -> Any:
            return _atomic(call, op, target, pe, value, fetch=fetch)

    else:

        def function(target: np.ndarray, pe: int) -> Any:
            return _atomic(call, op, target, pe, value, fetch=fetch)

    function.__name__ = function.__qualname__ = call
    function.__doc__ = (
        f"{name.replace('_', ', then ')} of one element of a symmetric array, as in a[3:4], on pe"
        + ("; returns the old value." if fetch else ".")
    )
    return function


atomic_fetch: _READ = _named("fetch", _FETCH, True, 0)
atomic_set: _WRITE_WITH = _named("set", _SET, False)
atomic_swap: _READ_WITH = _named("swap", _SWAP, True)
atomic_add: _WRITE_WITH = _named("add", _ADD, False)
atomic_fetch_add: _READ_WITH = _named("fetch_add", _ADD, True)
atomic_inc: _WRITE = _named("inc", _ADD, False, 1)
atomic_fetch_inc: _READ = _named("fetch_inc", _ADD, True, 1)
atomic_and: _WRITE_WITH = _named("and", _AND, False)
atomic_fetch_and: _READ_WITH = _named("fetch_and", _AND, True)
atomic_or: _WRITE_WITH = _named("or", _OR, False)
atomic_fetch_or: _READ_WITH = _named("fetch_or", _OR, True)
atomic_xor: _WRITE_WITH = _named("xor", _XOR, False)
atomic_fetch_xor: _READ_WITH = _named("fetch_xor", _XOR, True)


def atomic_compare_swap(target: np.ndarray, compare: int, value: int, pe: int) -> int:
    """Stores the value if the element equals `compare`; returns the old one. Integers only."""
    return _atomic("atomic_compare_swap", _COMPARE_SWAP, target, pe, value, compare)


def _end() -> Callable[[], None]:
    lib.gshmem_quiet()  # where it fails, finalize fails, too, and says so
    return _pending.clear


_job.at_end.append(_end)
