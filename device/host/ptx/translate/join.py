"""Joins PTX that calls functions of a library with the PTX of that library: one module, which has what
the kernels call and nothing else. Text goes in and comes out; what an instruction means is not
looked at."""

import re

from reader import PtxError

DIRECTIVES = (".version", ".target", ".address_size", ".file", ".section", ".loc")
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
NAME = re.compile(r"[A-Za-z_$][\w$]*")


class Item:
    """A declaration or definition at the top of a module."""

    def __init__(self, text, name):
        self.text, self.name = text, name
        self.external = ".extern" in text.split(name)[0].split()
        self.uses = set(NAME.findall(text)) - {name}


def name_of(text):
    """Of a function: what stands before its parameters; of a variable: before [, = or the end."""
    head = re.sub(r"^[^{]*?\.(func|entry)\s*(\(.*?\))?", "", text, count=1, flags=re.S)
    if head != text:
        return NAME.search(head)[0]
    head = re.split(r"[\[=;]", text)[0]
    return NAME.findall(re.sub(r"\.[\w:]+", " ", head))[-1]


def items_of(text):
    """The directives at the head, and the items."""
    text = COMMENTS.sub("", text)
    if not re.search(r"^\s*\.version\s", text, re.M):
        raise PtxError(1, "this is not PTX: it has no .version")
    head, items, at = [], [], 0
    while True:
        at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n;"))
        if at >= len(text):
            return head, items
        start = at
        line_end = text.find("\n", at) if "\n" in text[at:] else len(text)
        if text.startswith(DIRECTIVES, at) and not text.startswith(".section", at):
            head.append(text[at:line_end])
            at = line_end
            continue
        depth, function = 0, re.match(r"[^{;=]*\.(func|entry)\b", text[at:])
        while True:
            if at >= len(text):
                raise PtxError(text.count("\n") + 1, "the text ends in the middle of a declaration")
            mark = text[at]
            depth += (mark == "{") - (mark == "}")
            at += 1
            if depth == 0 and (mark == ";" or (mark == "}" and (function or text.startswith(".section", start)))):
                break
        if not text.startswith(".section", start):
            items.append(Item(text[start:at], name_of(text[start:at])))


def join(kernels, library):
    """One text. Raises PtxError where a function that the kernels call is in neither."""
    head, own = items_of(kernels)
    _, others = items_of(library)
    offered = {}
    for item in others:
        offered.setdefault(item.name, []).append(item)
    wanted, left = set(), [item.name for item in own if item.external]
    for name in left:
        if name not in offered:
            raise PtxError(1, f"{name}: the library has no function of this name")
    while left:
        name = left.pop()
        if name in wanted or name not in offered:
            continue
        wanted.add(name)
        for item in offered[name]:
            left += item.uses & offered.keys()
    clash = wanted & {item.name for item in own if not item.external}
    if clash:
        raise PtxError(1, f"{min(clash)}: the kernels and the library both define it")
    parts = [item.text for item in others if item.name in wanted]
    parts += [item.text for item in own if not item.external]
    return "\n".join(head + parts) + "\n"
