"""What came of the tests: one line a suite, what failed and why, what was skipped and why."""

import collections
import dataclasses
import threading

from . import budget


@dataclasses.dataclass
class Case:
    name: str
    outcome: str  # passed, failed, skipped
    reason: str = ""  # why it was skipped, or in a few words how it failed
    detail: str = ""  # the end of what a failed test printed
    unsteady: bool = False  # it failed before it passed

    def made_unsteady(self):
        return dataclasses.replace(self, outcome="passed", unsteady=True)


@dataclasses.dataclass
class Suite:
    name: str
    cases: list
    seconds: float
    cpu: float = 0.0  # seconds that its commands have computed

    def count(self, outcome):
        return sum(c.outcome == outcome for c in self.cases)


DETAIL_LINES = 40
HEAD = "suite            passed  failed  skipped   seconds       CPU"


class Report:
    """Prints each suite when it has ended, and all that needs attention at the end.

    Nothing is forgiven twice: a test that failed and passed when it was run again counts as failed where the record
    shows that of one of its last runs too, or where the run is strict. Then a skip fails as well, unless its reason
    is one of those that `listed` knows."""

    def __init__(self, to, record, strict=False, listed=lambda reason: True, budget=None):
        self.to = to
        self.record = record
        self.strict = strict
        self.listed = listed
        self.budget = budget or {}
        self.suites = []
        self.shown = False  # a line that is not to stay
        self.lock = threading.Lock()  # suites end side by side

    def say(self, text=""):
        if self.shown:
            print("\r\033[K", end="", file=self.to)
            self.shown = False
        print(text, file=self.to, flush=True)

    def begin(self, name, others):
        """For who watches a terminal: what is run now, and how long it and the others will take by the record."""
        if not self.to.isatty():
            return
        with self.lock:
            self.show(name, others)

    def show(self, name, others):
        times = [self.record.seconds(suite) for suite in [name] + others]
        left = f", {int(sum(t for t in times if t) // 60) + 1} min left" if all(times) else ""
        print(f"\r\033[K{name} … ({len(others)} more suites{left})", end="", file=self.to, flush=True)
        self.shown = True

    def judge(self, suite, case):
        if case.unsteady and (self.strict or self.record.was_unsteady(suite.name, case.name)):
            when = "" if self.strict else ", for the second time in ten runs"
            case.outcome, case.reason = "failed", f"it passed when run again{when}; first: {case.reason}"
        elif case.outcome == "skipped" and self.strict and not self.listed(case.reason):
            case.outcome, case.detail = "failed", "such a skip is not in tests/skips: SKIP: " + case.reason
            case.reason = "skipped"

    def add(self, suite):
        with self.lock:
            self.take(suite)

    def take(self, suite):
        for case in suite.cases:
            self.judge(suite, case)
        self.record.add(suite)
        if not self.suites:
            self.say()
            self.say(HEAD)
        self.suites.append(suite)
        mark = "   <-- failed" if suite.count("failed") else ""
        self.say(f"{suite.name:<16} {suite.count('passed'):6d}  {suite.count('failed'):6d}  "
                 f"{suite.count('skipped'):7d}  {suite.seconds:8.1f}  {suite.cpu:8.1f}{mark}")

    def say_skipped(self):
        """Grouped by reason: ten tests that miss the same program are one thing to know."""
        reasons = collections.defaultdict(list)
        for suite in self.suites:
            for case in suite.cases:
                if case.outcome == "skipped":
                    reasons[case.reason or "no reason given"].append(f"{suite.name}/{case.name}")
        for reason, names in reasons.items():
            self.say(f"skipped: {reason}: {', '.join(names)}")

    def say_failed(self):
        for suite in self.suites:
            for case in suite.cases:
                if case.outcome != "failed" and not case.unsteady:
                    continue
                kind = "failed" if case.outcome == "failed" else "unsteady: passed when run again alone"
                self.say(f"\n{kind}: {suite.name}/{case.name} ({case.reason or 'see below'})")
                for line in case.detail.strip().splitlines()[-DETAIL_LINES:]:
                    self.say("    " + line)

    def finish(self, seconds):
        """The closing line; 1 if anything failed, or nothing was tested at all."""
        total = {o: sum(s.count(o) for s in self.suites) for o in ("passed", "failed", "skipped")}
        self.say(f"{'all':<16} {total['passed']:6d}  {total['failed']:6d}  {total['skipped']:7d}  "
                 f"{seconds:8.1f}  {sum(s.cpu for s in self.suites):8.1f}")
        self.say()
        self.say_skipped()
        self.say_failed()
        unsteady = [f"{s.name}/{c.name}" for s in self.suites for c in s.cases if c.unsteady]
        self.say()
        if over := budget.exceeded(self.budget, self.suites):
            self.say(over)
        if unsteady:
            self.say(f"unsteady: {', '.join(unsteady)}")
        self.say(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
        return 1 if total["failed"] or not total["passed"] else 0
