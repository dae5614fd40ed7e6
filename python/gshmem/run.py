"""python -m gshmem.run -n 4 [options of gshmemrun] script.py [arguments]: starts the script on 4
PEs.

`-m module` and `-c command` in the place of the script are Python's; so is a program that is no .py
file.
"""

import os
import sys

from ._library import program


def command(arguments: list[str]) -> list[str]:
    """gshmemrun's command line: Python is put before the script."""
    for i, word in enumerate(arguments):
        if (
            word.endswith(".py")
            or word == "-m"
            or (word == "-c" and not arguments[i + 1 : i + 2][0:1][0].isdigit())
        ):
            return [program("gshmemrun"), *arguments[:i], sys.executable, *arguments[i:]]
    return [program("gshmemrun"), *arguments]


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
    line = command(sys.argv[1:])
    os.execv(line[0], line)


if __name__ == "__main__":
    main()
