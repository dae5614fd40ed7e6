"""What remains of arrays when the job ends: their last contents, as private memory at the same
addresses.

Other PEs may write until finalize has synchronized with them: then the library copies this PE's
memory, and puts the copy in the place of the job's. Peers end when they like: what is viewed of
theirs is copied before finalize.
"""

from __future__ import annotations

import mmap
from typing import Iterable

from ._library import OutOfMemoryError, lib


class Piece:
    """A range of pages. Its private ones exist as long as somebody refers to this."""

    def __init__(self, first: int, end: int, now: bool):
        self.first, self.end = first, end
        self._kept = lib.gshmem_path_keep(first, end - first, now)
        if not self._kept:
            raise OutOfMemoryError(
                f"finalize: no memory to keep {end - first} bytes of arrays that are still "
                "referenced: free them first"
            )

    def __del__(self, let_go=lib.gshmem_path_let_go):
        if self._kept:
            let_go(self._kept)


def keep(ranges: Iterable[tuple[int, int]], now: bool) -> list[Piece]:
    """The pages of these ranges (address, bytes), of which several may share one. now: they keep
    what is in them before finalize."""
    page, pages = mmap.PAGESIZE, []
    for address, bytes in sorted(ranges):
        first, end = address // page * page, -(-(address + bytes) // page) * page
        if pages and first <= pages[-1][1]:
            pages[-1] = (pages[-1][0], max(end, pages[-1][1]))
        else:
            pages.append((first, end))
    return [Piece(first, end, now) for first, end in pages]
