"""The places that docs/reading.md names exist: `file` and `file:function`, from the root.

A function exists where the file defines it: its name stands outside of all braces, with parameters
and a body, or is the name of a struct with a body. Also: each relative link in docs/ and in a README
leads to a file, and each docs/decisions/NNNN that a comment or a page names is a record.

Usage: names.py ROOT"""
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


def defines(source, name):
    text = outside_braces(source)
    if re.search(r"\b(?:struct|enum|union)\s+" + name + r"\s*\{", text):
        return True
    for found in re.finditer(r"\b" + name + r"\s*\(", text):
        at, depth = found.end(), 1
        while at < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        if text[at:].lstrip().startswith("{"):
            return True
    return False


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


def wrong(root):
    return (
        [line for page in PAGES for line in wrong_places(root, page)]
        + [line for page in sorted(pages_with_links(root)) for line in wrong_links(root, page)]
        + wrong_records(root)
    )


if __name__ == "__main__":
    lines = wrong(sys.argv[1])
    for line in lines:
        print(line)
    sys.exit(1 if lines else 0)
