"""How many CPU seconds each suite may take: the last column of the table in tests/README.md."""

import os
import re

WHOLE = 1800  # that all of it is to take: a quarter of an hour of two CPUs


def read(root):
    """{suite: seconds}, in the order of the table; 0 of what only a soak runs."""
    budget = {}
    with open(os.path.join(root, "tests", "README.md"), encoding="utf-8") as file:
        for line in file:
            row = re.match(r"\| ([\w, -]+?) \|.*\| ([\d, ]+) \|$", line)
            if row:
                budget.update(zip(row[1].split(", "), map(int, row[2].split(", "))))
    return budget


def compare(budget, record):
    """Lines that say what the last run in this build tree took of CPUs, and what each suite may."""
    lines = [f"{'suite':<16} {'budget':>7} {'took':>7}"]
    took = {suite: record.seconds(suite, "cpu") for suite in budget}
    for suite, most in budget.items():
        seconds = took[suite]
        over = "   <-- over" if seconds is not None and seconds > most else ""
        lines.append(f"{suite:<16} {most:7d} {'-' if seconds is None else format(seconds, '.0f'):>7}{over}")
    whole = sum(seconds or 0 for seconds in took.values())
    lines.append(f"{'all':<16} {sum(budget.values()):7d} {whole:7.0f}   {WHOLE} are wanted")
    return lines


def exceeded(budget, suites):
    """What to say of those that computed for longer than they may."""
    over = [f"{s.name} {s.cpu:.0f} s of {budget[s.name]}" for s in suites
            if budget.get(s.name) and s.cpu > budget[s.name]]
    return f"over their budget of CPU seconds in tests/README.md: {', '.join(over)}" if over else ""
