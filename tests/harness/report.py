"""What came of the tests: one line a suite, what failed and why, what was skipped and why."""

import collections
import dataclasses


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

    def count(self, outcome):
        return sum(c.outcome == outcome for c in self.cases)


DETAIL_LINES = 40
HEAD = "suite            passed  failed  skipped   seconds"


class Report:
    """Prints each suite when it has ended, and all that needs attention at the end."""

    def __init__(self, to):
        self.to = to
        self.suites = []

    def say(self, text=""):
        print(text, file=self.to, flush=True)

    def add(self, suite):
        if not self.suites:
            self.say()
            self.say(HEAD)
        self.suites.append(suite)
        mark = "   <-- failed" if suite.count("failed") else ""
        self.say(f"{suite.name:<16} {suite.count('passed'):6d}  {suite.count('failed'):6d}  "
                 f"{suite.count('skipped'):7d}  {suite.seconds:8.1f}{mark}")

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
                kind = "unsteady: passed when run again alone" if case.unsteady else "failed"
                self.say(f"\n{kind}: {suite.name}/{case.name} ({case.reason or 'see below'})")
                for line in case.detail.strip().splitlines()[-DETAIL_LINES:]:
                    self.say("    " + line)

    def finish(self, seconds):
        """The closing line; 1 if anything failed, or nothing was tested at all."""
        total = {o: sum(s.count(o) for s in self.suites) for o in ("passed", "failed", "skipped")}
        self.say(f"{'all':<16} {total['passed']:6d}  {total['failed']:6d}  {total['skipped']:7d}  "
                 f"{seconds:8.1f}")
        self.say()
        self.say_skipped()
        self.say_failed()
        self.say()
        self.say(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
        return 1 if total["failed"] or not total["passed"] else 0
