"""python -m gshmem.info: what the library finds here; options of gshmem-info."""

import os
import sys

from ._library import path, program


def main() -> None:
    name = program("gshmem-info")
    print(
        f"Python package    {os.path.dirname(os.path.abspath(__file__))}",
        f"library           {path}",
        sep="\n",
        flush=True,
    )
    os.execv(name, [name, *sys.argv[1:]])


if __name__ == "__main__":
    main()
