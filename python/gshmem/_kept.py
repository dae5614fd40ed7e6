"""What remains of arrays when the job ends: their last contents, as private memory at the same
addresses.

Other PEs may write until finalize has synchronized with them, and then finalize unmaps. In between
the library calls `_save`, which copies this PE's memory. Peers end when they like: what is viewed
of theirs is copied before finalize.
"""

from __future__ import annotations

import ctypes
from typing import Iterable

from ._library import OutOfMemoryError, lib

PAGE = 4096

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_READ_WRITE, _PRIVATE_ANONYMOUS, _NOREPLACE = 0x3, 0x22, 0x100000
_FAILED = 2**64 - 1


class Piece:
    """A range of pages. Its private ones exist as long as somebody refers to this."""

    def __init__(self, first: int, end: int):
        self.first, self.end, self._there = first, end, False
        self._copy = _libc.mmap(None, end - first, _READ_WRITE, _PRIVATE_ANONYMOUS, -1, 0)
        if self._copy == _FAILED:
            raise OutOfMemoryError(
                f"finalize: no memory to keep {end - first} bytes of arrays that are still "
                "referenced: free them first"
            )

    def save(self) -> None:
        ctypes.memmove(self._copy, self.first, self.end - self.first)

    def put_back(self) -> None:
        """After finalize, which has unmapped the memory; where it has not, it stays as it is."""
        bytes = self.end - self.first
        flags = _PRIVATE_ANONYMOUS | _NOREPLACE
        got = _libc.mmap(self.first, bytes, _READ_WRITE, flags, -1, 0)
        self._there = got == self.first
        if self._there:
            ctypes.memmove(self.first, self._copy, bytes)
        elif got != _FAILED:  # Linux before 4.17 does not know NOREPLACE
            _libc.munmap(got, bytes)
        _libc.munmap(self._copy, bytes)
        self._copy = _FAILED

    def __del__(self, munmap=_libc.munmap):
        if self._copy != _FAILED:
            munmap(self._copy, self.end - self.first)
        if self._there:
            munmap(self.first, self.end - self.first)


def pieces_of(ranges: Iterable[tuple[int, int]]) -> list[Piece]:
    """The pages of these ranges (address, bytes), of which several may share one."""
    pages: list[tuple[int, int]] = []
    for address, bytes in sorted(ranges):
        first, end = address // PAGE * PAGE, -(-(address + bytes) // PAGE) * PAGE
        if pages and first <= pages[-1][1]:
            pages[-1] = (pages[-1][0], max(end, pages[-1][1]))
        else:
            pages.append((first, end))
    return [Piece(first, end) for first, end in pages]


_mine: list[Piece] = []


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _save(_context):
    for piece in _mine:
        piece.save()


def save(mine: list[Piece], of_peers: list[Piece]) -> None:
    """Before finalize: saves these pieces, this PE's in finalize."""
    _mine[:] = mine
    for piece in of_peers:
        piece.save()
    lib.gshmem_path_at_last_write(ctypes.cast(_save, ctypes.c_void_p), None)
