"""The regular build's sources for another compiler, each once, without making anything of them."""

import json
import os
import shlex

# What names outputs, with the word that follows each.
OUTPUTS = {"-MQ", "-MF", "-o"}
# The library once more, with other calls of the system: the compiler of the regular build reads it so, and both read the
# headers so in tests/simulation.
SIMULATED = "-DGSHMEM_SIMULATED"


def commands(path, compilers, optimise):
    """A command for each source of the build tree, and for each set of macros that it is compiled with; of the library as
    the simulation has it none, where it is there as it is."""
    try:
        with open(os.path.join(path, "compile_commands.json"), encoding="utf-8") as f:
            entries = json.load(f)
    except OSError:
        return []
    found = {}
    for entry in entries:
        words = shlex.split(entry["command"])
        options = options_of(words)
        macros = tuple(sorted(w for w in options if w.startswith(("-D", "-U"))))
        compiler = compilers["CC" if entry["file"].endswith(".c") else "CXX"]
        how = ["-S", "-o", "/dev/null"] if optimise else ["-fsyntax-only", "-Wno-unknown-warning-option"]
        found.setdefault((entry["file"], macros), [compiler, *options, "-Werror", *how, entry["file"]])
    plain = {file for file, macros in found if SIMULATED not in macros}
    return [command for (file, macros), command in found.items() if SIMULATED not in macros or file not in plain]


def options_of(words):
    """Without the compiler, which another program may go before, what names outputs, and the source."""
    first = next(i for i, word in enumerate(words) if word.startswith("-"))
    kept, skip = [], False
    for word in words[first:-1]:
        if skip:
            skip = False
        elif word in OUTPUTS:
            skip = True
        elif word not in ("-MD", "-c"):
            kept.append(word)
    return kept
