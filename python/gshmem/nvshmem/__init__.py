"""NVSHMEM's Python names over GSHMEM: `import gshmem.nvshmem as nvshmem`, and all else as it was."""

from . import core

__all__ = ["core"]
