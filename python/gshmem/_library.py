"""Finds libgshmem.so, declares the functions that the package calls, and turns statuses into
exceptions.

ctypes in ABI mode, because it is in every Python: the package needs no compiler and one wheel
serves all versions of Python. A CDLL releases the GIL during each call, which calls that wait need.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import types
from ctypes import (
    c_char_p,
    c_int,
    c_int32,
    c_long,
    c_size_t,
    c_ssize_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent


# fmt: off
__all__ = [
    "AbortedError", "ArgumentError", "BootstrapError", "DeviceError", "DtypeError",
    "GshmemError", "MismatchError", "NotSymmetricError", "OutOfMemoryError", "PeerDeadError",
    "StateError", "SystemCallError", "TimedOutError", "TransportError", "UnreachableError",
    "UnsupportedError",
]
# fmt: on


class GshmemError(Exception):
    """A call failed. The text is the library's line; `status` is the number of gshmem/status.h."""

    status = 0


# fmt: off
class ArgumentError(GshmemError, ValueError): status = 1
class NotSymmetricError(GshmemError, ValueError): status = 2
class OutOfMemoryError(GshmemError, MemoryError): status = 3
class UnsupportedError(GshmemError): status = 4
class UnreachableError(GshmemError): status = 5
class PeerDeadError(GshmemError): status = 6
class TimedOutError(GshmemError): status = 7
class AbortedError(GshmemError): status = 8
class TransportError(GshmemError): status = 9
class DeviceError(GshmemError): status = 10
class BootstrapError(GshmemError): status = 11
class StateError(GshmemError, RuntimeError): status = 12
class MismatchError(GshmemError): status = 13
class SystemCallError(GshmemError): status = 14
class DtypeError(ArgumentError, TypeError): """An array's dtype is not the one that is needed."""
# fmt: on

BY_STATUS = {c.status: c for c in GshmemError.__subclasses__()}


# ---- Finding ----


def root() -> Path | None:
    """The install tree inside of the package, which a wheel has; None in a source tree."""
    tree = HERE / "_install"
    return tree if tree.is_dir() else None


def _named() -> str | None:
    """LIBGSHMEM: a path, or a name that the loader looks for."""
    return os.environ.get("LIBGSHMEM") or None


def program(name: str) -> str:
    """The path of gshmemrun or gshmem-info: that of the library that is loaded, else on PATH."""
    import shutil

    named, build = _named(), HERE.parents[1] / "build"
    if named is None:
        places = [HERE / "_install/bin", build / "bootstrap/run", build / "runtime/tools"]
    elif "/" in named:  # in a build tree, or an installed prefix
        library = Path(named).resolve().parent
        places = [library / "bootstrap/run", library / "runtime/tools"]
        places += [library / "../bin", library / "../../bin"]
    else:
        places = []
    for place in places:
        if os.access(place / name, os.X_OK):
            return str((place / name).resolve())
    found = shutil.which(name)
    if not found:
        tried = "".join(f"{place}, " for place in places)
        raise FileNotFoundError(f"{name} is not in {tried}nor on PATH")
    return found


def _open() -> ctypes.CDLL:
    named = _named()
    if named:  # no other one in its place, which might have another version
        try:
            return ctypes.CDLL(named)
        except OSError as error:
            raise ImportError(f"gshmem: LIBGSHMEM={named} cannot be opened: {error}") from None
    tried = []
    for path in (
        HERE / "_install/lib/libgshmem.so.0",
        HERE.parents[1] / "build/libgshmem.so",
        "libgshmem.so.0",
    ):
        if isinstance(path, Path) and not path.exists():
            continue
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            tried.append(str(error))
    raise ImportError(
        "gshmem: libgshmem.so.0 cannot be opened; LIBGSHMEM can name it"
        + "".join(f"\n  {line}" for line in tried)
    )


_opened = _open()
path = _opened._name
lib = types.SimpleNamespace()  # only what is declared below: ctypes would cut addresses to ints

# ---- Functions ----

_TYPES = {
    "p": c_void_p,
    "i": c_int,
    "t": c_int32,
    "z": c_size_t,
    "d": c_ssize_t,
    "u": c_uint64,
    "l": c_long,
    "s": c_char_p,
    "v": None,
}

# Result and arguments of each function, as letters of _TYPES.
_FUNCTIONS = """
init_attr ip, get_uniqueid ip, finalize i, initialized i, global_exit vi, my_pe i, n_pes i,
last_error ip, status_name si, ptr ppi, info_get_name vp, device_help v,
malloc_with_hints pzl, free ip, buffer_register ipz, buffer_unregister ip, path_put ipppzii,
path_get ipppzii, path_atomic ipiipuupi, ctx_iputmem ipppddzzi, ctx_igetmem ipppddzzi,
ctx_ibputmem ipppddzzzi, ctx_ibgetmem ipppddzzzi, ctx_putmem_signal ipppzpuii,
ctx_putmem_signal_nbi ipppzpuii, signal_op ipuii, path_signal_fetch up, fence i, quiet i,
path_wait_one iipiu, path_test_one iipiu, path_wait_all iipzpipi, path_test_all iipzpipi,
path_wait_any zipzpipi, path_test_any zipzpipi, path_wait_some zipzppipi,
path_test_some zipzppipi, signal_wait_until upiu, set_lock ip, clear_lock ip, test_lock ip,
team_my_pe it, team_n_pes it, team_translate_pe itit, team_split_strided itiiiplp,
team_split_list itpiplp, team_split_2d itiplpplp, team_get_uniqueid ip, team_create iuiiplp,
team_destroy it, team_sync it, barrier it,
broadcastmem itppzi, fcollectmem itppz, path_collect itpzpz,
path_keep ppzi, path_let_go vp, path_watch_interrupts pi, path_note_failures pi, path_take_failure ippz, alltoallmem itppz,
alltoallsmem itppddzz, reduce itiippz, reducescatter itiippz, inscan itippz, exscan itippz,
putmem_on_stream ippzip, getmem_on_stream ippzip, putmem_nbi_on_stream ippzip,
getmem_nbi_on_stream ippzip, putmem_signal_on_stream ippzpuiip, signal_op_on_stream ipuiip,
signal_wait_until_on_stream ipiup, quiet_on_stream ip, barrier_on_stream itp,
team_sync_on_stream itp, broadcastmem_on_stream itppzip, fcollectmem_on_stream itppzp,
collectmem_on_stream itppzp, alltoallmem_on_stream itppzp, reduce_on_stream itiippzp,
reducescatter_on_stream itiippzp, inscan_on_stream itippzp, exscan_on_stream itippzp,
"""


def _declare() -> None:
    for entry in _FUNCTIONS.split(","):
        if entry.strip():
            name, letters = entry.split(maxsplit=1)
            function = getattr(_opened, "gshmem_" + name)
            kinds = [_TYPES[letter] for letter in letters.replace(" ", "")]
            function.restype, function.argtypes = kinds[0], kinds[1:]
            setattr(lib, "gshmem_" + name, function)


_declare()

# ---- Failures ----
#
# The library notes those of calls that return a value, and of its own threads. It calls nothing of
# Python: an exception in a callback, of a signal handler for one, would be lost.

_noted = c_uint32.from_address(lib.gshmem_path_note_failures(-1))  # how many nobody has taken
_failures: list[tuple[int, GshmemError]] = []  # those taken, with their threads
_failures_lock = threading.RLock()  # a signal handler may fail, too


def handle_failures(on: bool) -> None:
    """From now on failures become exceptions, instead of ending the job (GSHMEM_ON_ERROR)."""
    lib.gshmem_path_note_failures(on)


def _take(mine: Callable[[int], bool]) -> list[GshmemError]:
    """The failures of such threads, the oldest first."""
    line, thread = ctypes.create_string_buffer(400), ctypes.c_ulong()
    with _failures_lock:
        _failures.insert(0, (0, GshmemError()))  # a thread that looks for its own waits for this
        while status := lib.gshmem_path_take_failure(ctypes.byref(thread), line, len(line)):
            text = line.value.decode(errors="replace")
            _failures.append((thread.value, BY_STATUS.get(status, GshmemError)(text)))
        _failures.pop(0)
        taken = [error for number, error in _failures if mine(number)]
        _failures[:] = [f for f in _failures if not mine(f[0])]
    return taken


def failure(status: int) -> GshmemError:
    """The exception for a status that a call of this thread has just returned."""
    text = c_char_p()
    lib.gshmem_last_error(ctypes.byref(text))
    line = (text.value or b"").decode(errors="replace")
    return BY_STATUS.get(status, GshmemError)(line or lib.gshmem_status_name(status).decode())


def last_failure() -> GshmemError:
    """The exception for what the last call of this thread that failed has logged."""
    return failure(lib.gshmem_last_error(None))


def check(status: int) -> None:
    if status:
        raise failure(status)


def check_elsewhere() -> None:
    """Raises what has failed since the last time in the library's own threads, and in no call of
    this one."""
    if _noted.value or _failures:
        others = sys._current_frames().keys() - {threading.get_ident()}
        if failed := _take(lambda thread: thread not in others):
            _put_back(failed[1:])
            raise failed[0]


def _put_back(failed: list[GshmemError]) -> None:
    with _failures_lock:
        _failures.extend((0, error) for error in failed)


def value_of(function, *arguments):
    """Calls a function that returns a value. Raises where it has failed."""
    if _noted.value or _failures:
        _put_back(_own_failures())  # of no such call: for check_elsewhere
    value = function(*arguments)
    if (_noted.value or _failures) and (failed := _own_failures()):
        raise failed[-1]
    return value


def _own_failures() -> list[GshmemError]:
    me = threading.get_ident()
    return _take(lambda thread: thread == me)


def call_into(got: list, function, *arguments) -> None:
    """Appends the value of a library's function to the list. Call and append are one step: who
    catches the exception of a signal handler sees there whether the call was made."""
    got.extend(map(function, *((a,) for a in arguments)))
