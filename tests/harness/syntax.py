"""The regular build's sources for another compiler, each once, without making anything of them."""

import json
import os
import shlex

# What names outputs, with the word that follows each.
OUTPUTS = {"-MQ", "-MF", "-o"}


def commands(path, compilers, optimise):
    """A command for each source of the build tree, and for each set of macros that it is compiled with."""
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
    return list(found.values())


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
