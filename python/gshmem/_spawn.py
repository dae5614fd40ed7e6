"""gshmem.spawn: a function on n PEs, from a program or a notebook.

The PEs are new processes under gshmemrun. A function of a module is sent by name; one that was
typed in (a notebook, python -c, a script's main part) is sent by value: its code, and what it uses
of its module.
"""

from __future__ import annotations

import marshal
import os
import pickle
import subprocess
import sys
import tempfile
import types
from typing import Any, Callable

from ._library import GshmemError, program

_CHILD = "import sys; from gshmem._spawn import _main; _main(sys.argv[1])"


def _names(code: types.CodeType) -> set[str]:
    """The global names that the code uses, nested functions included."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def pack(value: Any, seen: dict[int, int]) -> tuple:
    """A value as what pickle takes: ("function", …), ("again", which function of these), ("module",
    name), or ("value", pickled). seen: functions by identity; several may have one name."""
    if isinstance(value, types.ModuleType):
        return ("module", value.__name__)
    if not isinstance(value, types.FunctionType) or value.__module__ != "__main__":
        return ("value", pickle.dumps(value))
    if id(value) in seen:
        return ("again", seen[id(value)])
    number = seen[id(value)] = len(seen)
    used = {}
    for name in sorted(_names(value.__code__) & value.__globals__.keys()):
        try:
            used[name] = pack(value.__globals__[name], seen)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise TypeError(
                f"spawn: {value.__name__} uses {name}, which cannot be sent: {error}"
            ) from None
    cells = [_pack_cell(cell, seen) for cell in value.__closure__ or ()]
    defaults = pickle.dumps((value.__defaults__, value.__kwdefaults__))
    code = marshal.dumps(value.__code__)
    return ("function", number, value.__name__, code, used, cells, defaults)


def _pack_cell(cell: types.CellType, seen: dict[int, int]) -> tuple | None:
    try:
        return pack(cell.cell_contents, seen)
    except ValueError:  # it has no contents yet
        return None


def unpack(packed: tuple, module: dict, made: dict[int, Callable]) -> Any:
    """made: functions by the numbers that pack has given them."""
    kind, first = packed[0], packed[1]
    if kind == "module":
        __import__(first)
        return sys.modules[first]
    if kind == "value":
        return pickle.loads(first)
    if kind == "again":
        return made[first]
    _, number, name, code, used, contents, defaults = packed
    cells = tuple(types.CellType() for _ in contents)
    function = made[number] = types.FunctionType(marshal.loads(code), module, name, None, cells)
    function.__defaults__, function.__kwdefaults__ = pickle.loads(defaults)
    for key, value in used.items():  # in the order of pack, whose "again" means an earlier one
        module[key] = unpack(value, module, made)
    for cell, value in zip(cells, contents):  # which may be the function itself
        if value is not None:
            cell.cell_contents = unpack(value, module, made)
    return function


def spawn(
    function: Callable[..., Any], n: int, *args: Any, options: tuple[str, ...] = (), **named: Any
) -> list:
    """Calls function(*args, **named) on n PEs, which have called gshmem.init, and returns their
    results in the order of the PEs. options: of gshmemrun, as ("--hosts", "2")."""
    with tempfile.TemporaryDirectory(prefix="gshmem-spawn-") as folder:
        with open(f"{folder}/call", "wb") as file:
            pickle.dump((sys.path, pack(function, {})), file)
            pickle.dump((args, named), file)
        line = [program("gshmemrun"), "-n", str(n), *options, sys.executable, "-c", _CHILD, folder]
        done = subprocess.run(line, stdin=subprocess.DEVNULL)
        results = []
        for pe in range(n):
            if os.path.exists(f"{folder}/{pe}.failed"):
                with open(f"{folder}/{pe}.failed", encoding="utf-8") as file:
                    raise GshmemError(f"spawn: PE {pe} failed:\n{file.read()}")
        if done.returncode:
            raise GshmemError(f"spawn: the job ended with status {done.returncode}")
        for pe in range(n):
            with open(f"{folder}/{pe}", "rb") as file:
                results.append(pickle.load(file))
        return results


def _main(folder: str) -> None:
    import traceback

    import gshmem

    with open(f"{folder}/call", "rb") as file:
        path, packed = pickle.load(file)
        sys.path[:] = path
        function = unpack(packed, sys.modules["__main__"].__dict__, {})
        args, named = pickle.load(file)
    gshmem.init()
    pe = gshmem.my_pe()
    try:
        result = pickle.dumps(function(*args, **named))
    except BaseException:
        with open(f"{folder}/{pe}.failed", "w", encoding="utf-8") as file:
            file.write(traceback.format_exc())
        sys.exit(1)  # which ends the job
    with open(f"{folder}/{pe}", "wb") as file:
        file.write(result)
    gshmem.finalize()
