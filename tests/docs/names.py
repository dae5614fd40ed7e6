"""The places that docs/reading.md names exist: `file` and `file:function`, from the root.

A function exists where the file defines it: its name stands outside of all braces, with parameters
and a body, or is the name of a struct with a body. Also: each relative link in docs/ and in a README
leads to a file, each path in backticks in a README exists, each docs/decisions/NNNN that a comment
or a page names is a record, and each function that a comment of the form "pairs with the release in
FUNCTION" names is defined somewhere.

Usage: names.py ROOT"""
import glob
import os
import re
import sys

PAGES = ("docs/reading.md",)  # whose places are checked
PLACE = re.compile(r"`([\w.+-]+(?:/[\w.+-]+)+)(?::(\w+))?`")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
COMMENT = r"//[^\n]*|/\*.*?\*/"
QUOTED = r'"(?:\\.|[^"\\\n])*"' + "|" + r"'(?:\\.|[^'\\\n])+'"
SKIPPED = ("build", ".git", "subprojects")
RECORD = re.compile(r"docs/decisions/(\d{4})\b")
BACKTICKED = re.compile(r"`([^`\s…]+)[^`]*`")
# Builds, installed trees and results, which are not in this tree; a record's number.
ELSEWHERE = ("/", "./", ".cache/", "bin/", "build", "docs/decisions/", "lib/", "results/", "subprojects/")
# Generated files whose names no meson.build spells out.
GENERATED = re.compile(r"openshmem_\w+\.c|gshmem_names_\w+\.h|typed-.*\.c")
SOURCE = re.compile(r"[\w.*{},-]+\.(?:\{\w+(?:,\w+)*\}|c|cc|cu|cuh|h|py|pml|sh)")
FOLDERS = re.compile(r"[\w.*{},/-]+/[\w.*{},/-]*")
CODE = (".c", ".h", ".cu", ".cuh", ".cc")
PAIRS = re.compile(r"(?:\bpairs? with|: with the (?:acquire|release)s?\b)([^.;:]*)", re.I)
NOT_FUNCTIONS = {"a", "the", "this", "its", "it", "which", "to", "seq_cst", "acq_rel", "put_signal"}
RECORDED = (".c", ".h", ".cu", ".cuh", ".md", ".build", ".py")  # the files that name records


def outside_braces(source):
    """The source without comments, strings and the preprocessor's lines; what is in braces is `{}`."""
    source = re.sub(COMMENT + "|" + QUOTED, " ", source, flags=re.S)
    source = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", source, flags=re.M)
    source = re.sub(r"\bextern\s+\{", "", source)  # extern "C" {, whose string is gone
    kept, depth = [], 0
    for c in source:
        if c == "{":
            if depth == 0:
                kept.append("{")
            depth += 1
        elif c == "}":
            if depth == 1:
                kept.append("}")
            depth = max(depth - 1, 0)
        elif depth == 0:
            kept.append(c)
    return "".join(kept)


def definitions(source):
    """The functions that a source defines: names with parameters and a body."""
    text = re.sub(r"\s+", " ", outside_braces(source))
    for found in re.finditer(r"\b(\w+) ?\(", text):
        at, depth = found.end(), 1
        while at < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        if text[at:].lstrip().startswith("{"):
            yield found.group(1)


def defines(source, name):
    if re.search(r"\b(?:struct|enum|union)\s+" + name + r"\s*\{", outside_braces(source)):
        return True
    return name in definitions(source)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def wrong_places(root, page):
    """A line for each place of the page that does not exist, and one if it names none."""
    places = PLACE.findall(read(os.path.join(root, page)))
    if not any(name for _, name in places):
        return [f"{page}: it names no place of the form `file:function`"]
    wrong = []
    for path, name in places:
        full = os.path.join(root, path)
        if not os.path.exists(full):
            wrong.append(f"{page}: there is no {path}")
        elif name and not defines(read(full), name):
            wrong.append(f"{page}: {path} does not define {name}")
    return wrong


def pages_with_links(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith(SKIPPED)]
        inside = os.path.relpath(folder, root).split(os.sep)[0] == "docs"
        for file in files:
            if file.endswith(".md") and (inside or file == "README.md"):
                yield os.path.relpath(os.path.join(folder, file), root)


def wrong_links(root, page):
    folder = os.path.dirname(os.path.join(root, page))
    return [
        f"{page}: the link {link} leads nowhere"
        for link in LINK.findall(read(os.path.join(root, page)))
        if "://" not in link and not os.path.exists(os.path.join(folder, link))
    ]


def wrong_records(root):
    folder = os.path.join(root, "docs", "decisions")
    there = {name[:4] for name in (os.listdir(folder) if os.path.isdir(folder) else [])}
    lines = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith(SKIPPED)]
        for path in sorted(os.path.join(folder, file) for file in files if file.endswith(RECORDED)):
            for number in RECORD.findall(read(path)):
                if number not in there:
                    lines.append(f"{os.path.relpath(path, root)}: there is no record {number}")
    return lines


def tree_files(root):
    """The tree's own files, by their paths from the root."""
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith(SKIPPED)]
        for file in files:
            yield os.path.relpath(os.path.join(folder, file), root)


def spelled_out(path):
    """`a.{h,c}` names a.h and a.c."""
    found = re.search(r"\{([^{}]*)\}", path)
    if not found:
        return [path]
    return [one for part in found.group(1).split(",")
            for one in spelled_out(path[:found.start()] + part + path[found.end():])]


def wrong_paths(root):
    """Paths in backticks, from the README's folder, a folder above it, include, runtime or tests. A
    generated file is named in a meson.build or by its generator."""
    files = list(tree_files(root))
    made = "".join(read(os.path.join(root, f)) for f in files
                   if f.endswith("meson.build") or "generate" in f and f.endswith(".py"))
    names = {os.path.basename(f) for f in files}
    lines = []
    for page in (f for f in files if os.path.basename(f) == "README.md"):
        at = os.path.dirname(page)
        folders = [at, "include", "tests", "runtime"]
        while at:
            at = os.path.dirname(at)
            folders.append(at)
        for path in BACKTICKED.findall(read(os.path.join(root, page))):
            if path.startswith(ELSEWHERE) or not (SOURCE.fullmatch(path) or FOLDERS.fullmatch(path)):
                continue
            for one in spelled_out(path):
                there = any(glob.glob(os.path.join(root, folder, one)) for folder in folders)
                name = os.path.basename(one)
                generated = name and (name in made or GENERATED.fullmatch(name))
                if not there and not generated and not ("/" not in one and name in names):
                    lines.append(f"{page}: there is no {one}")
    return lines


def paired(comment):
    """The functions that a comment names as the other side of its access."""
    comment = re.sub(r"\s*\n\s*(?:\*|//)?\s*", " ", comment)
    for text in PAIRS.findall(comment):
        words = re.findall(r"\b[a-z]\w*_\w+\b", text) + re.findall(r"\bin (\w+)", text)
        yield from (word for word in words if word not in NOT_FUNCTIONS)


def wrong_pairs(root):
    sources = {f: read(os.path.join(root, f)) for f in tree_files(root) if f.endswith(CODE)}
    defined = {name for path, source in sources.items() if not path.startswith("tests/") for name in definitions(source)}
    in_tests = {name for path, source in sources.items() if path.startswith("tests/") for name in definitions(source)}
    lines = []
    for path, source in sorted(sources.items()):
        for comment in re.findall(COMMENT, source, flags=re.S):
            for name in sorted(set(paired(comment))):
                if name not in defined and not (path.startswith("tests/") and name in in_tests):
                    lines.append(f"{path}: a comment pairs its access with {name}, which is no function")
    return lines


def wrong(root):
    return (
        [line for page in PAGES for line in wrong_places(root, page)]
        + [line for page in sorted(pages_with_links(root)) for line in wrong_links(root, page)]
        + wrong_paths(root)
        + wrong_records(root)
        + wrong_pairs(root)
    )


if __name__ == "__main__":
    lines = wrong(sys.argv[1])
    for line in lines:
        print(line)
    sys.exit(1 if lines else 0)
