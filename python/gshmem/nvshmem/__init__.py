"""NVSHMEM's Python names over GSHMEM: `import gshmem.nvshmem.core as nvshmem` in the place of nvshmem.core."""

from . import core

__all__ = ["core"]
