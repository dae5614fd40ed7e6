"""Teams, and the collectives of a team on arrays and on slices that are one block of memory."""

from __future__ import annotations

import ctypes
import inspect
from typing import TYPE_CHECKING, Any, Iterable

import numpy as np

from ._job import collective, require, state
from ._library import ArgumentError, DtypeError, GshmemError, StateError, check, lib
from ._memory import data_of, pe_of, symmetric
from ._transfer import complete

# fmt: off
__all__ = [
    "NODE", "SHARED", "WORLD", "Team", "alltoall", "alltoalls", "barrier", "broadcast",
    "collect", "exscan", "fcollect", "inscan", "reduce", "reducescatter", "sync", "team_create",
    "team_unique_id",
]
# fmt: on
INVALID = -1
OPS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "and": 4, "or": 5, "xor": 6}
# Numbers of gshmem/type.h, and the operations that the dtypes have.
_TYPES = {
    np.dtype(name): (number, last)
    for name, number, last in (
        ("int8", 0, 6),
        ("int16", 1, 6),
        ("int32", 2, 6),
        ("int64", 3, 6),
        ("uint8", 4, 6),
        ("uint16", 5, 6),
        ("uint32", 6, 6),
        ("uint64", 7, 6),
        ("float32", 8, 3),
        ("float64", 9, 3),
        ("longdouble", 10, 3),
        ("complex64", 11, 1),
        ("complex128", 12, 1),
        ("float16", 13, 3),
    )
}


def type_and_op(array: np.ndarray, op: str, call: str) -> tuple[int, int]:
    if op not in OPS:
        raise ArgumentError(f"{call}: op {op!r} is none of {', '.join(OPS)}")
    number, last = (14, 3) if array.dtype.name == "bfloat16" else _TYPES.get(array.dtype, (-1, -1))
    if OPS[op] > last:
        raise DtypeError(f"{call}: there is no {op} of {array.dtype}")
    return number, OPS[op]


def block_of(array: Any, call: str) -> np.ndarray:
    symmetric(array, call)
    if not array.flags.c_contiguous:
        raise ArgumentError(f"{call}: the slice has gaps; copy it to a symmetric array without")
    return array


def pair_of(dest: Any, source: Any, call: str, dest_n: int = 1, source_n: int = 1) -> int:
    """Checks dest and source, whose sizes are as dest_n to source_n. Returns the elements of one
    block."""
    block_of(dest, call), block_of(source, call)
    if dest.dtype != source.dtype:
        raise DtypeError(f"{call}: dtypes differ: {dest.dtype} and {source.dtype}")
    if source.size % source_n or dest.size != source.size // source_n * dest_n:
        raise ArgumentError(
            f"{call}: source has {source.size} elements, so that dest needs "
            f"{source.size / source_n * dest_n:g}, and it has {dest.size}"
        )
    return source.size // source_n


class Team:
    """An ordered set of PEs. gshmem.WORLD has all, SHARED those whose memory is mapped, NODE those
    of this node."""

    def __init__(self, handle: int, job: int | None = None):
        self._handle, self._job = handle, job  # None: each job has it

    @property
    def handle(self) -> int:
        require("team")
        if self._handle == INVALID:
            raise StateError("team: it has been destroyed")
        if self._job not in (None, state.job):
            raise StateError("team: it belongs to an earlier job, which finalize has ended")
        return self._handle

    @property
    def my_pe(self) -> int:
        return lib.gshmem_team_my_pe(self.handle)

    @property
    def n_pes(self) -> int:
        return lib.gshmem_team_n_pes(self.handle)

    def __len__(self) -> int:
        return self.n_pes

    def __repr__(self) -> str:
        gone = self._handle == INVALID or self._job not in (None, state.job)
        if gone or state.depth == 0:
            return "<gshmem.Team, gone>"
        return f"<gshmem.Team {self._handle}: PE {self.my_pe} of {self.n_pes}>"

    def translate(self, pe: int, to: Team | None = None) -> int | None:
        """The number in team `to` (WORLD) of this team's PE; None if it is no member."""
        pe = pe_of(pe, "translate", self.n_pes)
        found = lib.gshmem_team_translate_pe(self.handle, pe, (to or WORLD).handle)
        return None if found < 0 else found

    def _made(self, handles: Iterable[ctypes.c_int32]) -> list[Team | None]:
        return [None if h.value == INVALID else Team(h.value, state.job) for h in handles]

    def split(self, start: int, stride: int, size: int) -> Team | None:
        """A team of PEs start, start + stride, …; None on PEs that are no members. Collective over
        this team."""
        new = ctypes.c_int32(INVALID)
        for number in (start, stride, size):
            if not -(2**31) <= number < 2**31:
                raise ArgumentError(f"split: {number} is out of range")
        function = lib.gshmem_team_split_strided
        collective(
            "split", function, self.handle, start, stride, size, None, 0, ctypes.addressof(new)
        )
        return self._made([new])[0]

    def split_list(self, members: Iterable[int]) -> Team | None:
        """A team of these PEs, in that order."""
        members = [pe_of(pe, "split_list", self.n_pes) for pe in members]
        numbers, new = (ctypes.c_int * len(members))(*members), ctypes.c_int32(INVALID)
        function = lib.gshmem_team_split_list
        collective(
            "split_list",
            function,
            self.handle,
            ctypes.addressof(numbers),
            len(members),
            None,
            0,
            ctypes.addressof(new),
        )
        return self._made([new])[0]

    def split_2d(self, columns: int) -> tuple[Team | None, Team | None]:
        """This PE's row and column in a grid with so many columns."""
        if not 0 < columns < 2**31:
            raise ArgumentError(f"split_2d: {columns} columns")
        row, column = ctypes.c_int32(INVALID), ctypes.c_int32(INVALID)
        function = lib.gshmem_team_split_2d
        collective(
            "split_2d",
            function,
            self.handle,
            columns,
            None,
            0,
            ctypes.addressof(row),
            None,
            0,
            ctypes.addressof(column),
        )
        return tuple(self._made([row, column]))

    def destroy(self) -> None:
        """Collective over the team."""
        handle = self.handle
        if handle <= 2:
            raise ArgumentError("destroy: this team lives as long as the job")
        self._handle = INVALID  # before the call, after which a signal handler may raise
        try:
            collective("destroy", lib.gshmem_team_destroy, handle)
        except GshmemError:
            self._handle = handle
            raise

    def __enter__(self) -> Team:
        return self

    def __exit__(self, kind, *_rest) -> None:
        if kind is None:
            self.destroy()

    # ---- Collectives. The functions of the module do the same for WORLD, or for team=… ----

    def sync(self) -> None:
        """Returns when all PEs have arrived."""
        collective("sync", lib.gshmem_team_sync, self.handle)

    def barrier(self) -> None:
        """Completes this PE's operations, and returns when all PEs have arrived."""
        complete("barrier", lib.gshmem_barrier, self.handle)

    def broadcast(self, dest: np.ndarray, source: np.ndarray, root: int = 0) -> None:
        """dest on all PEs becomes root's source."""
        pair_of(dest, source, "broadcast")
        root = pe_of(root, "broadcast", self.n_pes)
        collective(
            "broadcast",
            lib.gshmem_broadcastmem,
            self.handle,
            data_of(dest),
            data_of(source),
            source.nbytes,
            root,
        )

    def fcollect(self, dest: np.ndarray, source: np.ndarray) -> None:
        """dest becomes the sources of all PEs, one after the other."""
        pair_of(dest, source, "fcollect", self.n_pes)
        collective(
            "fcollect",
            lib.gshmem_fcollectmem,
            self.handle,
            data_of(dest),
            data_of(source),
            source.nbytes,
        )

    def collect(self, dest: np.ndarray, source: np.ndarray) -> None:
        """fcollect of sources that differ in size. dest has room for all of them: where it does
        not on any PE, all raise ArgumentError, and dest keeps its contents."""
        block_of(dest, "collect"), block_of(source, "collect")
        if dest.dtype != source.dtype:
            raise DtypeError(f"collect: dtypes differ: {dest.dtype} and {source.dtype}")
        collective(
            "collect",
            lib.gshmem_path_collect,
            self.handle,
            data_of(dest),
            dest.nbytes,
            data_of(source),
            source.nbytes,
        )

    def alltoall(self, dest: np.ndarray, source: np.ndarray) -> None:
        """Block i of source goes to PE i, which has it as block my_pe of dest."""
        n = self.n_pes
        count = pair_of(dest, source, "alltoall", n, n)
        collective(
            "alltoall",
            lib.gshmem_alltoallmem,
            self.handle,
            data_of(dest),
            data_of(source),
            count * source.itemsize,
        )

    def alltoalls(
        self, dest: np.ndarray, source: np.ndarray, dest_step: int, source_step: int, n: int
    ) -> None:
        """alltoall of blocks of n elements, which are dest_step and source_step elements apart."""
        block_of(dest, "alltoalls"), block_of(source, "alltoalls")
        if dest.dtype != source.dtype:
            raise DtypeError(f"alltoalls: dtypes differ: {dest.dtype} and {source.dtype}")
        for array, step in ((dest, dest_step), (source, source_step)):
            if step < 1 or n < 0 or (n and (self.n_pes * n - 1) * step + 1 > array.size):
                raise ArgumentError(
                    f"alltoalls: {array.size} elements are too few for {n} of each PE, {step} apart"
                )
        collective(
            "alltoalls",
            lib.gshmem_alltoallsmem,
            self.handle,
            data_of(dest),
            data_of(source),
            dest_step,
            source_step,
            source.itemsize,
            n,
        )

    def reduce(self, dest: np.ndarray, source: np.ndarray, op: str = "sum") -> None:
        """dest on all PEs becomes the sum (prod, min, max, and, or, xor) of the sources. dest may
        be source."""
        number, op_number = type_and_op(source, op, "reduce")
        count = pair_of(dest, source, "reduce")
        collective(
            "reduce",
            lib.gshmem_reduce,
            self.handle,
            number,
            op_number,
            data_of(dest),
            data_of(source),
            count,
        )

    def reducescatter(self, dest: np.ndarray, source: np.ndarray, op: str = "sum") -> None:
        """dest becomes block my_pe of the reduction of the sources."""
        number, op_number = type_and_op(source, op, "reducescatter")
        count = pair_of(dest, source, "reducescatter", 1, self.n_pes)
        collective(
            "reducescatter",
            lib.gshmem_reducescatter,
            self.handle,
            number,
            op_number,
            data_of(dest),
            data_of(source),
            count,
        )

    def inscan(self, dest: np.ndarray, source: np.ndarray) -> None:
        """dest becomes the sum of the sources of PEs 0 … my_pe."""
        self._scan("inscan", lib.gshmem_inscan, dest, source)

    def exscan(self, dest: np.ndarray, source: np.ndarray) -> None:
        """dest becomes the sum of the sources of PEs 0 … my_pe - 1; 0 on PE 0."""
        self._scan("exscan", lib.gshmem_exscan, dest, source)

    def _scan(self, call: str, function: Any, dest: np.ndarray, source: np.ndarray) -> None:
        number, _ = type_and_op(source, "sum", call)
        count = pair_of(dest, source, call)
        collective(call, function, self.handle, number, data_of(dest), data_of(source), count)


WORLD, SHARED, NODE = Team(0), Team(1), Team(2)


def team_unique_id() -> int:
    """An id for team_create, good for one team: one PE makes it, and the program carries it to the
    members."""
    require("team_unique_id")
    uid = ctypes.c_uint64()
    check(lib.gshmem_team_get_uniqueid(ctypes.addressof(uid)))
    return uid.value


def team_create(uid: int, n_pes: int, my_pe: int) -> Team:
    """The team of the n_pes PEs that pass this id, each with another number my_pe in the team.
    Waits for these PEs and no others."""
    require("team_create")
    if not 0 <= uid < 2**64:
        raise ArgumentError(f"team_create: {uid} is no id, which has 64 bits")
    for number in (n_pes, my_pe):
        if not -(2**31) <= number < 2**31:
            raise ArgumentError(f"team_create: {number} is out of range")
    new = ctypes.c_int32(INVALID)
    collective(
        "team_create",
        lib.gshmem_team_create,
        uid,
        n_pes,
        my_pe,
        None,
        0,
        ctypes.addressof(new),
    )
    return Team(new.value, state.job)


class _World:
    """How the signature of a function of the module shows its team."""

    def __repr__(self) -> str:
        return "WORLD"


def _of_world(name: str) -> Any:
    method = getattr(Team, name)

    def function(*arguments: Any, team: Team = WORLD, **named: Any) -> None:
        method(team, *arguments, **named)

    signature, team = inspect.signature(method), inspect.Parameter.KEYWORD_ONLY
    parameters = list(signature.parameters.values())[1:]
    parameters.append(inspect.Parameter("team", team, default=_World(), annotation="Team"))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{method.__doc__} Collective over the team."
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function


if TYPE_CHECKING:
    _A = np.ndarray

    def sync(*, team: Team = WORLD) -> None: ...
    def barrier(*, team: Team = WORLD) -> None: ...
    def broadcast(dest: _A, source: _A, root: int = 0, *, team: Team = WORLD) -> None: ...
    def collect(dest: _A, source: _A, *, team: Team = WORLD) -> None: ...
    def fcollect(dest: _A, source: _A, *, team: Team = WORLD) -> None: ...
    def alltoall(dest: _A, source: _A, *, team: Team = WORLD) -> None: ...
    def alltoalls(
        dest: _A, source: _A, dest_step: int, source_step: int, n: int, *, team: Team = WORLD
    ) -> None: ...
    def reduce(dest: _A, source: _A, op: str = "sum", *, team: Team = WORLD) -> None: ...
    def reducescatter(dest: _A, source: _A, op: str = "sum", *, team: Team = WORLD) -> None: ...
    def inscan(dest: _A, source: _A, *, team: Team = WORLD) -> None: ...
    def exscan(dest: _A, source: _A, *, team: Team = WORLD) -> None: ...

else:
    for _name in (
        "sync barrier broadcast collect fcollect alltoall alltoalls reduce reducescatter inscan exscan"
    ).split():
        globals()[_name] = _of_world(_name)
