"""Waits and tests of this PE's own memory, which other PEs update.

A wait polls for a short time. After that a helper thread makes the library's own wait, which
sleeps, makes progress and notices failures, and the main thread waits where Ctrl-C is seen
(_job.interruptible).
"""

from __future__ import annotations

import ctypes
import threading
import time
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np

from ._job import interruptible, require
from ._library import (
    ArgumentError,
    DtypeError,
    GshmemError,
    StateError,
    call_into,
    check,
    last_failure,
    lib,
    value_of,
)
from ._memory import data_of, symmetric
from ._transfer import signal_of, unsigned

# fmt: off
__all__ = [
    "Cmp", "Lock", "signal_wait_until", "test", "test_all", "test_any", "test_some",
    "wait_until", "wait_until_all", "wait_until_any", "wait_until_some",
]
# fmt: on
POLL_NS = 200_000  # a few times what it costs to start a helper thread


class Cmp(IntEnum):
    EQ = 0
    NE = 1
    GT = 2
    LE = 3
    LT = 4
    GE = 5


_CMP = {"==": Cmp.EQ, "!=": Cmp.NE, ">": Cmp.GT, "<=": Cmp.LE, "<": Cmp.LT, ">=": Cmp.GE}
_TYPES = {
    np.dtype(name): number
    for name, number in (
        ("int16", 1),
        ("int32", 2),
        ("int64", 3),
        ("uint16", 5),
        ("uint32", 6),
        ("uint64", 7),
    )
}
_NONE = 2**64 - 1  # what any and its like return where no element is looked at


def cmp_of(cmp: Any, call: str) -> int:
    try:
        return _CMP[cmp] if isinstance(cmp, str) else Cmp(cmp)
    except (KeyError, ValueError):
        raise ArgumentError(f"{call}: {cmp!r} is none of {' '.join(_CMP)}") from None


def _type(array: Any, call: str) -> int:
    symmetric(array, call)
    if array.dtype not in _TYPES:
        raise DtypeError(
            f"{call}: variables of {array.dtype} cannot be waited for; "
            "integers of 16 to 64 bits can"
        )
    return _TYPES[array.dtype]


def _poll(call: str, test: Any, wait: Any) -> Any:
    """The result of the test as soon as it holds, or else that of the wait."""
    end = time.perf_counter_ns() + POLL_NS
    while not (found := test()):
        lib.gshmem_device_help()  # progress on the network
        if time.perf_counter_ns() > end:
            return interruptible(call, wait)
    return found


# ---- One variable ----


def _one(call: str, variable: np.ndarray, cmp: Any, value: Any) -> tuple[int, int, int, int]:
    kind = _type(variable, call)
    if variable.size != 1:
        raise ArgumentError(
            f"{call}: the variable is one element, as in a[3:4]; "
            f"{call}_all, _any and _some take more"
        )
    return (
        kind,
        data_of(variable),
        cmp_of(cmp, call),
        _values(call, variable, value)[0].item() % 2**64,
    )


def _values(call: str, variables: np.ndarray, value: Any) -> np.ndarray:
    """One value of the variables' dtype, or one for each of them."""
    values = np.asarray(value)
    exact = values.astype(variables.dtype)
    if values.dtype.kind not in "iub" or np.any(exact != values):
        raise DtypeError(f"{call}: {value!r} does not fit in {variables.dtype}")
    if values.ndim and values.shape != variables.shape:
        raise ArgumentError(f"{call}: {values.size} values for {variables.size} variables")
    return np.ascontiguousarray(exact).reshape(-1)


def wait_until(variable: np.ndarray, cmp: str | Cmp, value: int) -> None:
    """Waits until one element of a symmetric array compares: wait_until(flag[2:3], ">=", 1)."""
    one = _one("wait_until", variable, cmp, value)
    _poll(
        "wait_until",
        lambda: value_of(lib.gshmem_path_test_one, *one),
        lambda: check(lib.gshmem_path_wait_one(*one)),
    )


def test(variable: np.ndarray, cmp: str | Cmp, value: int) -> bool:
    """Whether wait_until would return at once."""
    one = _one("test", variable, cmp, value)
    lib.gshmem_device_help()
    return bool(value_of(lib.gshmem_path_test_one, *one))


def signal_wait_until(signal: np.ndarray, cmp: str | Cmp, value: int) -> int:
    """Waits for a signal, and returns the value for which it compared."""
    at, cmp = signal_of(signal, "signal_wait_until"), cmp_of(cmp, "signal_wait_until")
    value = unsigned(value, "signal_wait_until")
    compare = _PYTHON[cmp]
    last = [0]

    def holds() -> bool:
        last[0] = value_of(lib.gshmem_path_signal_fetch, at)
        return compare(last[0], value)

    def wait() -> None:
        last[0] = value_of(lib.gshmem_signal_wait_until, at, cmp, value)

    _poll("signal_wait_until", holds, wait)
    return last[0]


_PYTHON = [
    int.__eq__,
    int.__ne__,
    int.__gt__,
    int.__le__,
    int.__lt__,
    int.__ge__,
]  # as Cmp numbers them


# ---- Several ----


def _set(call: str, variables: np.ndarray, cmp: Any, value: Any, exclude: Any):
    """The arguments of the library's functions, after type and address; and what has to exist until
    they end."""
    kind = _type(variables, call)
    if variables.ndim != 1 or not variables.flags.c_contiguous:
        raise ArgumentError(
            f"{call}: the variables are a part of a symmetric array with one dimension and no gaps"
        )
    cmp, values = cmp_of(cmp, call), _values(call, variables, value)
    status = None
    if exclude is not None:
        status = np.ascontiguousarray(exclude, np.int32)
        if status.shape != variables.shape:
            raise ArgumentError(
                f"{call}: exclude has shape {status.shape}, the variables {variables.shape}"
            )
    tail = (
        None if status is None else data_of(status),
        cmp,
        data_of(values),
        int(np.ndim(value) > 0),
    )
    return (kind, data_of(variables), variables.size), tail, (status, values)


def wait_until_all(variables: np.ndarray, cmp: str | Cmp, value: Any, exclude: Any = None) -> None:
    """Waits until all elements compare to the value, or each to its own. exclude: elements to leave
    out, those where it is true."""
    head, tail, _alive = _set("wait_until_all", variables, cmp, value, exclude)
    _poll(
        "wait_until_all",
        lambda: value_of(lib.gshmem_path_test_all, *head, *tail),
        lambda: (check(lib.gshmem_path_wait_all(*head, *tail)), _alive),
    )


def test_all(variables: np.ndarray, cmp: str | Cmp, value: Any, exclude: Any = None) -> bool:
    head, tail, _alive = _set("test_all", variables, cmp, value, exclude)
    lib.gshmem_device_help()
    return bool(value_of(lib.gshmem_path_test_all, *head, *tail))


def _nothing(variables: np.ndarray, exclude: Any) -> bool:
    return variables.size == 0 or (exclude is not None and bool(np.all(exclude)))


def wait_until_any(
    variables: np.ndarray, cmp: str | Cmp, value: Any, exclude: Any = None
) -> int | None:
    """Waits until one element compares, and returns its index; None where all are left out."""
    head, tail, alive = _set("wait_until_any", variables, cmp, value, exclude)
    if _nothing(variables, alive[0]):
        return None
    found = _poll(
        "wait_until_any",
        lambda: _any_of(head, tail),
        lambda: (value_of(lib.gshmem_path_wait_any, *head, *tail), alive),
    )
    return found[0]


def _any_of(head: tuple, tail: tuple) -> tuple[int] | None:
    index = value_of(lib.gshmem_path_test_any, *head, *tail)
    return None if index == _NONE else (index,)


def test_any(variables: np.ndarray, cmp: str | Cmp, value: Any, exclude: Any = None) -> int | None:
    """The index of an element that compares, or None."""
    head, tail, _alive = _set("test_any", variables, cmp, value, exclude)
    lib.gshmem_device_help()
    found = _any_of(head, tail)
    return found[0] if found else None


def _some(function: Any, head: tuple, tail: tuple) -> np.ndarray:
    indices = (ctypes.c_size_t * max(head[2], 1))()
    n = value_of(function, *head, ctypes.addressof(indices), *tail)
    return np.array(indices[:n], np.intp)


def wait_until_some(
    variables: np.ndarray, cmp: str | Cmp, value: Any, exclude: Any = None
) -> np.ndarray:
    """Waits until at least one element compares, and returns the indices of all that do."""
    head, tail, alive = _set("wait_until_some", variables, cmp, value, exclude)
    if _nothing(variables, alive[0]):
        return np.array([], np.intp)

    def now() -> tuple[np.ndarray] | None:
        found = _some(lib.gshmem_path_test_some, head, tail)
        return (found,) if len(found) else None

    return _poll(
        "wait_until_some", now, lambda: (_some(lib.gshmem_path_wait_some, head, tail), alive)
    )[0]


def test_some(variables: np.ndarray, cmp: str | Cmp, value: Any, exclude: Any = None) -> np.ndarray:
    """The indices of the elements that compare."""
    head, tail, _alive = _set("test_some", variables, cmp, value, exclude)
    lib.gshmem_device_help()
    return _some(lib.gshmem_path_test_some, head, tail)


# ---- Locks ----


class Lock:
    """A lock of the job, fair between PEs. Made by all PEs together; `with lock:` holds it."""

    def __init__(self) -> None:
        from ._memory import zeros

        self._word = zeros(1, np.int64)
        self._owner: threading.Thread | None = None  # the thread of this PE that has it

    def _at(self, call: str) -> int:
        symmetric(self._word, call)
        return data_of(self._word)

    def acquire(self, blocking: bool = True) -> bool:
        """Waits for the lock; with blocking=False, says whether it was free. Where Ctrl-C ends the
        wait, this PE gives the lock on as soon as it gets it."""
        at, me = self._at("acquire"), threading.current_thread()
        if self._owner is me:
            if blocking:
                raise StateError("acquire: this thread has the lock, and would wait for itself")
            return False
        tested: list[int] = []  # [0]: by the test this PE has the lock
        waited: list[int] = []  # [0]: by a wait, until it is given on

        def give_on() -> None:
            if waited == [0] and waited.pop() == 0:
                check(lib.gshmem_clear_lock(at))

        try:
            call_into(tested, lib.gshmem_test_lock, at)
            if tested[0] < 0:
                raise last_failure()
            if tested != [0]:
                if not blocking:
                    return False
                wait = partial(call_into, waited, lib.gshmem_set_lock, at)
                interruptible("acquire", lambda: (wait(), check(waited[0])), give_on)
            self._owner = me
            return True
        except BaseException:  # of a signal handler, too, which may raise at any point
            if self._owner is me:
                self._owner = None
            if tested == [0]:
                check(lib.gshmem_clear_lock(at))
            give_on()
            raise

    def release(self) -> None:
        """Any thread of the PE that has the lock may release it."""
        at, owner = self._at("release"), self._owner
        status: list[int] = []
        try:
            self._owner = None  # before the call, after which another thread may have it
            call_into(status, lib.gshmem_clear_lock, at)
            check(status[0])
        except GshmemError:
            self._owner = owner
            raise
        except BaseException:  # of a signal handler: then, too, the lock is released
            if not status:
                check(lib.gshmem_clear_lock(at))
            raise

    def free(self) -> None:
        """Collective over the job."""
        self._word.free()

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, *_rest) -> None:
        self.release()
