"""The rooms of the library and the includes between them, as docs/map.md draws them.

Usage: includes.py ROOT [ROOM]    all rooms, or the files of one and what they include of it"""
import collections
import os
import re
import sys

TOPS = ("bootstrap", "device", "include", "runtime", "transport")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)


def sources(root):
    for top in TOPS:
        for folder, _, files in os.walk(os.path.join(root, top)):
            for file in files:
                if file.endswith((".c", ".h", ".cu", ".cuh")):
                    yield os.path.relpath(os.path.join(folder, file), root)


def room(path):
    """A folder below the top, but for include/, which is one room, and runtime/tools."""
    parts = path.split("/")
    return parts[0] if parts[0] == "include" or len(parts) == 2 else "/".join(parts[:2])


def includes(root):
    """Pairs of files, the one that includes and the one that is included."""
    files = set(sources(root))
    for path in sorted(files):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        for name in INCLUDE.findall(text):
            beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
            for place in (name, "include/" + name, beside):
                if place in files:
                    yield path, place
                    break


def circles(edges):
    """The groups of nodes that reach each other, by Tarjan, without recursion."""
    after = collections.defaultdict(set)
    for a, b in edges:
        after[a].add(b)
        after[b]  # known, though it leads nowhere
    index, low, stack, on, found, count = {}, {}, [], set(), [], 0
    for start in sorted(after):
        if start in index:
            continue
        work = [(start, iter(sorted(after[start])))]
        index[start] = low[start] = count
        count += 1
        stack.append(start)
        on.add(start)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = count
                    count += 1
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(sorted(after[other]))))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        found.append(sorted(stack[at:]))
                    on.difference_update(stack[at:])
                    del stack[at:]
    return sorted(found, key=len, reverse=True)


def unit(path):
    """A source and its header are one."""
    return re.sub(r"\.(c|h|cu|cuh)$", "", path)


def main(root, only=None):
    pairs = list(includes(root))
    if only:
        for a, b in pairs:
            if room(a) == room(b) == only:
                print(a, "->", b)
        return
    lines = collections.Counter()
    count = collections.Counter()
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            lines[room(path)] += sum(1 for _ in file)
        count[room(path)] += 1
    print(f"{'room':24}{'files':>6}{'lines':>8}")
    for name in sorted(count):
        print(f"{name:24}{count[name]:6}{lines[name]:8}")
    arrows = collections.Counter((room(a), room(b)) for a, b in pairs if room(a) != room(b))
    print("\nincludes from one room in another")
    for (a, b), n in sorted(arrows.items()):
        print(f"{n:4}  {a} -> {b}{'   and back: ' + str(arrows[b, a]) if (b, a) in arrows else ''}")
    print("\ncircles of rooms:", *[" ".join(c) for c in circles(arrows)] or ["none"], sep="\n  ")
    units = {(unit(a), unit(b)) for a, b in pairs if unit(a) != unit(b)}
    print("\ncircles of units (a source and its header):")
    for c in circles(units):
        print(f"  {len(c)}: {' '.join(c)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
