"""What people agree on about the library's code, for a test to keep (docs/map.md, docs/glossary.md).

 lengths   a line has 100 columns at most; a file 500 lines, unless the README of its folder says why
 rooms     a folder with sources has a README, which names each of its sources
 arrows    a room includes only what docs/map.md lets it; no circle of rooms, or of units of one room
 names     a function has one definition in the tree, so that a search by name finds one thing
 words     identifiers do not use the words that the glossary has replaced
 public    a function of a public header has a comment above it, or above the group that it stands in
 leftovers nothing that patch or a merge leaves behind (*.orig, *.rej) is in the tree

Usage: tidy.py ROOT    a line for each thing that is wrong, with what to do; then status 1"""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from includes import circles, includes, room, sources, unit
from names import definitions

COLUMNS, LINES = 100, 500

# Room: the rooms that it may include; those that it may include stand for all that they contain.
BELOW = {
    "include": [],
    "runtime/base": ["include"],
    "runtime/where": ["runtime/base", "include"],
    "runtime/trace": ["runtime/base", "include"],
    "runtime/stats": ["runtime/base", "include"],
    "bootstrap": ["runtime/base", "include", "runtime/where"],
    "device": ["runtime/base", "include"],
    "transport": ["runtime/base", "include", "device", "runtime/trace"],
    "runtime/job": ["bootstrap", "device", "transport", "runtime/where", "runtime/trace", "runtime/stats", "runtime/base",
                    "include"],
}
LAYERS = [
    "runtime/job",
    "runtime/node",
    "runtime/memory",
    "runtime/races",
    "runtime/network",
    "runtime/teams",
    "runtime/collectives",
    "runtime/proxy",
    "runtime/operations",
    "runtime/streams",
    "runtime",
    "runtime/facades",
    "runtime/tools",
]
for below, above in zip(LAYERS, LAYERS[1:]):
    BELOW[above] = [below] + BELOW[below]

# Units that include each other on purpose.
FACES = [
    {"include/gshmem", "include/gshmem_device"},
    {"include/nvshmem", "include/nvshmemx"},
    # A header that is a source's part, included once for each set of instructions, or by both compilers.
    {"runtime/collectives/combine", "runtime/collectives/combine_kernels"},
    {"runtime/tools/perf/device", "runtime/tools/perf/device_collectives", "runtime/tools/perf/device_signals",
     "runtime/tools/perf/device_rates"},
]

# Words that were ours; docs/glossary.md says which words of the field replace them.
WORDS = re.compile(
    "afar|cargo|hub|patience|patient|naps?|mend|mends|mended|hear|heard|told|lent|rails_of|crowded"
)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def readme_of(root, path):
    """The README of the nearest folder that has one: a part of a room may have its page there."""
    folder = os.path.dirname(path)
    while folder and not os.path.exists(os.path.join(root, folder, "README.md")):
        folder = os.path.dirname(folder)
    return os.path.join(folder, "README.md")


def lengths(root):
    for path in sources(root):
        lines = read(root, path).splitlines()
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS:
                yield f"{path}:{number}: {len(line)} columns: break the line (clang-format --lines={number}:{number})"
        page = readme_of(root, path)
        excused = os.path.exists(os.path.join(root, page)) and any(
            os.path.basename(path) in line and f"over {LINES} lines" in line for line in read(root, page).splitlines()
        )
        if len(lines) > LINES and not excused:
            yield (f"{path}: {len(lines)} lines: split it by what its parts are for, or give the reason in {page} "
                   f"in a line with its name and 'over {LINES} lines'")


def named(page, path):
    """By its name, by its stem as in `name.{h,c}`, or by a pattern as in `name_*.c`."""
    stem = re.sub(r"\.\w+$", "", os.path.basename(path))
    if re.search(r"\b" + re.escape(stem) + r"\b", page):
        return True
    return any(stem.startswith(part) for part in re.findall(r"`(?:[\w/]*/)?(\w+_?)\*", page))


def rooms(root):
    folders = collections.defaultdict(list)
    for path in sources(root):
        folders[os.path.dirname(path)].append(path)
    for folder, files in sorted(folders.items()):
        page = readme_of(root, files[0])
        if not os.path.exists(os.path.join(root, page)):
            yield f"{folder}: no README.md: write what it is for, its files, its invariants, how to test it"
            continue
        text = read(root, page)
        for path in files:
            if not path.endswith(".h") and not named(text, path):
                yield f"{page}: does not name {os.path.basename(path)}: say what it is for"


def may_include(a, b):
    allowed = BELOW.get(a) or BELOW.get(a.split("/")[0], [])
    return a == b or b.split("/")[0] == a.split("/")[0] != "runtime" or any(
        b == name or b.startswith(name + "/") for name in allowed if name != "runtime") or (
        b == "runtime" and "runtime" in allowed)


def arrows(root):
    pairs = [(a, b) for a, b in includes(root)]
    for a, b in pairs:
        if not may_include(room(a), room(b)):
            yield (f"{a}: includes {b}: {room(a)} is below {room(b)} in docs/map.md: take what is needed as an "
                   f"argument, or call a function that was given")
    units = {(unit(a), unit(b)) for a, b in pairs if unit(a) != unit(b)}
    for circle in circles(units):
        if set(circle) not in FACES:
            yield f"circle of includes: {' '.join(circle)}: move what both need below them"


def names(root):
    where = collections.defaultdict(set)
    for path in sources(root):
        if path.endswith(".c"):
            for name in definitions(read(root, path)):
                where[name].add(path)
    for name, paths in sorted(where.items()):
        if len(paths) > 1 and name != "main":
            yield f"{name}: defined in {', '.join(sorted(paths))}: prefix it by its file or room"


def words(root):
    for path in sources(root):
        text = re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", " ", read(root, path), flags=re.S)
        found = {name for name in set(re.findall(r"[A-Za-z_]\w*", text))
                 if any(WORDS.fullmatch(part) for part in name.lower().split("_"))}
        for name in sorted(found):
            yield f"{path}: {name}: docs/glossary.md has the field's word for it"


PROTOTYPE = re.compile(r"^(?!typedef|#|(?:GSHMEM_NODISCARD )?static|/)[\w][\w \*]*?\b((?:gshmem|nvshmemx?|shmemx?)_\w+)\(")


def public(root):
    for path in sources(root):
        if not re.fullmatch(r"include/(gshmem|gshmem_device)\.h|include/gshmem/\w+\.h", path):
            continue
        lines = read(root, path).splitlines()
        documented = False
        for number, line in enumerate(lines, 1):
            if not line.strip():
                documented = False
            elif "/*" in line or "*/" in line:
                documented = True
            found = PROTOTYPE.match(line)
            if found and not documented and line.rstrip().endswith((";", ",")):
                yield f"{path}:{number}: {found.group(1)} has no comment: say what holds when it returns"


def leftovers(root):
    for folder, below, files in os.walk(root):
        below[:] = [name for name in below if name not in (".git", ".cache") and not name.startswith("build")]
        for name in files:
            if name.endswith((".orig", ".rej")):
                yield f"{os.path.relpath(os.path.join(folder, name), root)}: a leftover of patch or a merge: remove it"


def wrong(root):
    return [line for part in (lengths, rooms, arrows, names, words, public, leftovers) for line in part(root)]


def main(root):
    found = wrong(root)
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
