"""The job: how it starts, who is in it, how it ends, and what Ctrl-C does to calls that wait."""

from __future__ import annotations

import _signal  # signal.getsignal looks each number up in an enum, which takes a microsecond
import atexit
import ctypes
import itertools
import os
import signal
import sys
import threading
import time
from typing import Any, Callable

from . import _library
from ._library import ArgumentError, StateError, call_into, check, lib

UID_BYTES = 128
WATCH_NS = 1_000_000
THREAD_MULTIPLE = 3


class _Uid(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * UID_BYTES)]


class _Attr(ctypes.Structure):
    _fields_ = [
        ("thread_level", ctypes.c_int),
        ("mpi_comm", ctypes.c_void_p),
        ("uid", ctypes.c_void_p),
        ("pe", ctypes.c_int),
        ("n_pes", ctypes.c_int),
    ]


class _State:
    """What fast paths read. n_pes is 0 when there is no job, so that every PE number is refused."""

    pe = -1
    n_pes = 0
    depth = 0
    job = 0  # how many jobs this process has had
    # the collective call that the main thread is in: its number, and its name
    inside: tuple[int, str] | None = None
    pid = 0


state = _State()
at_start: list[Callable[[], None]] = []  # called after the first init
at_end: list[Callable[[], Callable[[], None] | None]] = (
    []
)  # before the last finalize; what they return, after


def my_pe() -> int:
    """This PE's number, 0 … n_pes - 1; -1 when there is no job."""
    return state.pe


def n_pes() -> int:
    """The number of PEs; -1 when there is no job, as in C."""
    return state.n_pes or -1


def initialized() -> bool:
    return state.depth > 0 and bool(lib.gshmem_initialized())


def require(call: str) -> None:
    if state.depth == 0:
        raise StateError(
            f"{call}: gshmem.init() has not been called, or finalize() has ended the job"
        )
    if state.pid != os.getpid():
        raise StateError(f"{call}: this process was forked by PE {state.pe} and is not a PE itself")


def refuse_pe(call: str, pe: Any, n: int | None = None) -> ArgumentError | StateError:
    if n is None and state.n_pes == 0:
        return StateError(
            f"{call}: gshmem.init() has not been called, or finalize() has ended the job"
        )
    return ArgumentError(f"{call}: PE {pe!r} is not one of 0 … {(n or state.n_pes) - 1}")


# ---- Start and end ----


def unique_id() -> bytes:
    """An id for a job that starts without a launcher: one PE makes it, all pass it to
    init(uid=…)."""
    uid = _Uid()
    check(lib.gshmem_get_uniqueid(ctypes.byref(uid)))
    return bytes(uid)


def _through(broadcast: Callable[[bytes | None], bytes], pe: int) -> bytes:
    return bytes(broadcast(unique_id() if pe == 0 else None))


def _by_file(path: str | os.PathLike, limit: float) -> Callable[[bytes | None], bytes]:
    def broadcast(uid: bytes | None) -> bytes:
        if uid is not None:
            temporary = f"{path}.{os.getpid()}"
            with open(temporary, "xb", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
                file.write(uid)
            os.rename(temporary, path)  # readers see all of it or nothing
            return uid
        end = time.monotonic() + limit
        while not os.path.exists(path):
            if time.monotonic() > end:
                raise _library.TimedOutError(
                    f"init: PE 0 has not written {path} within {limit:g} s"
                )
            time.sleep(0.01)
        with open(path, "rb") as file:
            return file.read()

    return broadcast


_stored = 0  # jobs that this process has started over a store


def _by_store(store: Any) -> Callable[[bytes | None], bytes]:
    """All PEs start as many jobs over a store: each has a key of its own there."""
    global _stored
    key = f"gshmem-unique-id-{_stored}"
    _stored += 1

    def broadcast(uid: bytes | None) -> bytes:
        if uid is not None:
            store.set(key, uid.hex())  # as text: some stores take only that
            return uid
        return bytes.fromhex(bytes(store.get(key)).decode())

    return broadcast


def init(
    *,
    uid: bytes | None = None,
    broadcast: Callable[[bytes | None], bytes] | None = None,
    comm: Any = None,
    store: Any = None,
    file: str | os.PathLike | None = None,
    pe: int | None = None,
    n_pes: int | None = None,
    timeout: float = 60,
) -> _Job:
    """Joins the job, and returns a context manager that finalizes.

    Without arguments the launcher is found (gshmemrun, mpirun, srun …); a process that nothing
    started is a job of one. Otherwise an id (unique_id) is distributed, by one of:
      uid        the program has distributed it
      broadcast  called with the id on PE 0 and None elsewhere; returns the id on all PEs
      comm       a communicator of mpi4py, or whatever has bcast, Get_rank and Get_size
      store      torch's TCPStore or FileStore, or whatever has set and get
      file       a path that does not exist yet, and that all PEs see
    All but comm need pe and n_pes. Calls nest: only the first init and the last finalize act.
    """
    given = [x is not None for x in (uid, broadcast, comm, store, file)]
    if sum(given) > 1:
        raise ArgumentError("init: give one of uid, broadcast, comm, store and file")
    attr = _Attr(thread_level=THREAD_MULTIPLE)
    if any(given):
        if comm is not None:
            pe = comm.Get_rank() if pe is None else pe
            n_pes = comm.Get_size() if n_pes is None else n_pes
            broadcast = lambda own: comm.bcast(own, root=0)  # noqa: E731
        if pe is None or n_pes is None or not 0 <= pe < n_pes < 2**31:
            raise ArgumentError(f"init: pe {pe} and n_pes {n_pes}: expected 0 <= pe < n_pes")
        if uid is None:
            if state.depth:
                raise StateError("init: the job has begun already; call init() without arguments")
            broadcast = broadcast or (
                _by_store(store) if store is not None else _by_file(file, timeout)
            )
            uid = _through(broadcast, pe)
        if len(uid) != UID_BYTES:
            raise ArgumentError(f"init: a unique id has {UID_BYTES} bytes, this one {len(uid)}")
        record = _Uid.from_buffer_copy(uid)
        attr.uid, attr.pe, attr.n_pes = ctypes.addressof(record), pe, n_pes
    _library.handle_failures(True)
    status: list[int] = []
    try:
        call_into(status, lib.gshmem_init_attr, ctypes.byref(attr))
    finally:
        if status == [0]:  # also where a signal handler raises
            _begin()
    check(status[0])
    if file is not None and pe == 0:  # every PE has read it: init is collective
        os.unlink(file)
    return _Job()


def _begin() -> None:
    state.depth += 1
    if state.depth == 1:
        state.job += 1
        state.pe, state.n_pes, state.pid = lib.gshmem_my_pe(), lib.gshmem_n_pes(), os.getpid()
        _watch_interrupts()
        for begin in at_start:
            begin()


def finalize() -> None:
    """Completes this PE's operations, waits for the others and leaves the job. Collective.

    Arrays that are still referenced keep their last contents as private memory; calls on them
    raise.
    """
    require("finalize")
    after = []
    if state.depth == 1:
        _refuse_waits()
        after = [then for end in at_end if (then := end()) is not None]
    try:
        collective("finalize", lib.gshmem_finalize)
    finally:
        state.depth -= 1
        if state.depth == 0:
            state.pe, state.n_pes = -1, 0
            for then in after:
                then()
    if state.depth == 0:
        _library.check_elsewhere()


class _Job:
    """What init returns: `with gshmem.init(): …` finalizes at the end, unless it ends by an
    exception."""

    my_pe = property(lambda self: my_pe())
    n_pes = property(lambda self: n_pes())

    def __enter__(self) -> _Job:
        return self

    def __exit__(self, kind, *_rest) -> None:
        if kind is None:
            finalize()  # after an exception the exit ends the job: the others would wait in vain


def global_exit(status: int) -> None:
    """Ends the whole job with this exit status. Any PE may call it."""
    sys.stdout.flush()
    sys.stderr.flush()
    lib.gshmem_global_exit(status)


# ---- Ctrl-C ----
#
# Python runs signal handlers between bytecodes of the main thread, so a handler does not run while
# that thread is in a C call. Waits for one's own memory and for locks are made by a helper thread,
# while the main thread waits for it where signals are seen (`interruptible`). A collective cannot
# be left by one PE alone: if one does not end within a second after Ctrl-C, the job ends with a
# line (`_watch`). A handler in C, in front of Python's, notes which call Ctrl-C has found
# (runtime/interrupts.c); signal.set_wakeup_fd stays the program's. A program that has a handler of
# its own for SIGINT decides itself what Ctrl-C means: its handler runs when the collective ends.

_abandoned: list[tuple[str, Any]] = []  # calls, and locks that are released when they end


def interruptible(
    call: str, function: Callable[[], Any], undo: Callable[[], None] = lambda: None
) -> Any:
    """Calls a function that may wait for long, so that Ctrl-C ends the wait with
    KeyboardInterrupt. undo: takes back what the function did, where its caller has not waited for
    it."""
    if threading.current_thread() is not threading.main_thread():
        return function()
    result: list[Any] = [None, None]
    done, decided = threading.Lock(), threading.Lock()
    done.acquire()
    ended = left = False  # the function; its caller. decided: one of them sees the other

    def work() -> None:
        nonlocal ended
        try:
            result[0] = function()
        except BaseException as error:  # handed to the caller
            result[1] = error
        with decided:
            ended = True
        try:
            if left and result[1] is None:
                undo()
        finally:
            done.release()

    helper = threading.Thread(target=work, name=f"gshmem-{call}", daemon=True)
    began = True
    try:
        try:
            helper.start()  # which waits, too, for the thread to begin
        except RuntimeError:
            began = False  # there can be no more threads
            raise
        done.acquire()
    except BaseException:
        with decided:
            left = not ended
        if left and began:
            _abandoned.append((call, done))
        elif began and result[1] is None:
            undo()
        raise
    if result[1] is not None:
        raise result[1]
    return result[0]


def _refuse_waits() -> None:
    _abandoned[:] = [(call, done) for call, done in _abandoned if done.locked()]
    if _abandoned:
        raise StateError(
            f"finalize: {_abandoned[0][0]}, which was interrupted, still waits in the library; "
            "make its condition true, or end the process"
        )


_main = threading.main_thread().ident  # the only thread in which Python runs signal handlers
_numbers = itertools.count(1)  # of collective calls of the main thread


def collectively(call: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function that ends only when other PEs call it, too. Returns its value."""
    if threading.get_ident() != _main:
        return function(*arguments)
    number = next(_numbers)
    try:
        state.inside = (number, call)
        _watch_again()
        _inside.value = number
        return function(*arguments)
    finally:
        _inside.value = 0
        state.inside = None


def collective(call: str, function: Callable[..., int], *arguments: Any) -> None:
    """The same for a function that returns a status."""
    if status := collectively(call, function, *arguments):
        raise _library.failure(status)


def _watch_again() -> None:
    """The program may have had a handler of its own meanwhile. The system is asked where Python
    knows of another one, and once in a millisecond at most otherwise: where collectives follow each
    other, it is 2 of their 15 us."""
    global _handler, _watched
    now, handler = time.monotonic_ns(), _signal.getsignal(signal.SIGINT)
    if _pipe is not None and (handler is not _handler or now - _watched >= WATCH_NS):
        lib.gshmem_path_watch_interrupts(_pipe)
        _handler, _watched = handler, now


def _ends_collectives(handler: Any) -> bool:
    """Whether Ctrl-C has its usual effect: Python's own handler has it, and that of asyncio.run,
    which cancels the task in the next await."""
    if handler is signal.default_int_handler:
        return True
    function = getattr(handler, "func", None)  # a functools.partial
    return (
        getattr(function, "__name__", "") == "_on_sigint"
        and getattr(function, "__module__", "") == "asyncio.runners"
    )


def _watch(pipe: int) -> None:
    """Each Ctrl-C comes as the number of the call that it has found."""
    while data := os.read(pipe, 8):
        number, inside = int.from_bytes(data, sys.byteorder), state.inside
        if inside is None or inside[0] != number:
            continue  # that call has ended
        if not _ends_collectives(signal.getsignal(signal.SIGINT)):
            continue
        end = time.monotonic() + 1
        while state.inside is inside and time.monotonic() < end:
            time.sleep(0.02)
        if state.inside is inside and initialized():
            try:
                print(
                    f"PE {state.pe}: interrupted in {inside[1]}, for which the other PEs wait: "
                    "the job ends",
                    file=sys.stderr,
                    flush=True,
                )
            finally:  # also where nobody reads that
                lib.gshmem_global_exit(128 + signal.SIGINT)


_pipe: int | None = None  # its end to write to
_watched = 0  # when the handler was last looked at
_handler: Any = None  # what Python knew of it then
_inside = ctypes.c_uint64()  # the number of the call that the main thread is in; the library's


def _watch_interrupts() -> None:
    global _pipe, _inside
    if _pipe is not None:
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    _inside = ctypes.c_uint64.from_address(lib.gshmem_path_watch_interrupts(writer))
    _pipe = writer
    threading.Thread(target=_watch, args=(reader,), name="gshmem-interrupts", daemon=True).start()
    os.register_at_fork(after_in_child=_leave_parents_interrupts)


def _leave_parents_interrupts() -> None:
    """A forked child has no thread that reads."""
    global _inside, _pipe
    _inside, _pipe = ctypes.c_uint64(), None


@atexit.register
def _leave_to_the_library() -> None:
    """Python ends: failures from now on are the library's to report, which finalizes in exit."""
    _library.handle_failures(False)
