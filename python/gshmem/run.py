"""python -m gshmem.run -n 4 [options of gshmemrun] script.py [arguments]: starts the script on 4
PEs.

`-m module` and `-c command` in the place of the script are Python's; so is a program that is no .py
file.
"""

import os
import sys

from ._library import program

# How gshmemrun reads its options: those with so many arguments. All others have one.
_NONE = (
    "tag-output l prepend-rank genvnone envnone oversubscribe allow-run-as-root genvall envall "
    "report-bindings quiet q verbose v help h version V"
).split()
_TWO = ["genv", "env", "mca"]
_ONE = (
    "hosts H host f hostfile machinefile N ppn perhost npernode timeout bind bind-to np n c x wdir "
    "wd map-by rank-by genvlist envlist"
).split()


def _arguments_of(option: str) -> int:
    """Of a word that begins with a dash, as getopt_long_only takes it."""
    name, given, _ = option.lstrip("-").partition("=")
    names = [name] if name in _NONE + _ONE + _TWO else []
    names = names or [o for o in _NONE + _ONE + _TWO if o.startswith(name)]
    if not names:  # as -n4, or an option that gshmemrun refuses
        return 0
    n = 0 if names[0] in _NONE else 2 if names[0] in _TWO else 1
    return n - 1 if given and n else n


def _is_for_python(arguments: list[str], i: int) -> bool:
    """-m, and -c, which is also gshmemrun's, with a number."""
    if arguments[i] == "-m":
        return True
    return arguments[i] == "-c" and not "".join(arguments[i + 1 : i + 2]).isdigit()


def command(arguments: list[str]) -> list[str]:
    """gshmemrun's command line: Python is put before the script."""
    i = 0
    while i < len(arguments) and arguments[i].startswith("-") and arguments[i] != "-":
        if _is_for_python(arguments, i):
            break
        if arguments[i] == "--":
            i += 1
            break
        i += 1 + _arguments_of(arguments[i])
    python = []
    if i < len(arguments) and (arguments[i].endswith(".py") or arguments[i] in ("-m", "-c")):
        python = [sys.executable]
    return [program("gshmemrun"), *arguments[:i], *python, *arguments[i:]]


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__, flush=True)
    line = command(sys.argv[1:])
    os.execv(line[0], line)


if __name__ == "__main__":
    main()
