"""Which skips are fine where every test is expected to run: those for a reason in tests/skips."""

import os
import re


def read(root):
    """The patterns of that file: a line each, behind a comment that says what the machine lacks."""
    with open(os.path.join(root, "tests", "skips"), encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return [re.compile(line) for line in lines if line and not line.startswith("#")]


def is_listed(patterns, reason):
    return any(pattern.search(reason) for pattern in patterns)
