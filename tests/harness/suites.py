"""A build tree: configured, built, and its tests run one suite at a time."""

import json
import os
import subprocess

from . import interrupt
from .report import Case

# The order in which a person wants to hear of them; others follow by name.
FIRST = ["unit", "typed", "memory", "pe", "collectives"]
LAST = ["examples", "kill", "fuzz", "perf", "rdma", "nvcc", "soak"]

# What mostly waits, for other machines, for launchers and for the clock: it is run beside builds.
WAITING = ["bootstrap", "failure", "hosts", "rdma"]
COMPILING = ["nvcc"]

# How the regular build is configured. What nvcc makes machine code of is tried by the suites nvcc and sass.
REGULAR = ["--werror", "-Dgpu_code=ptx"]

AGAIN_MOST = 4  # failures of a suite that may be bad luck; more are something else

OUTCOMES = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


class Tree:
    def __init__(self, root, path, options=(), env=None):
        self.root = root
        self.path = path
        self.options = list(options)
        self.env = dict(env or {})  # over what the environment is when a command starts
        self.prefix = []  # of the command that runs tests

    def command(self, *arguments, timeout=None, cwd=None):
        """(exit status, output), in the root if not elsewhere; commands never read our stdin. None begins in a run that is being interrupted."""
        if interrupt.is_under_way():
            return 1, "interrupted"
        try:
            done = subprocess.run(arguments, cwd=cwd or self.root, env=dict(os.environ, **self.env),
                                  timeout=timeout, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace")
        except subprocess.TimeoutExpired as e:
            return 124, (e.output or b"").decode(errors="replace") + "\ntook too long"
        return done.returncode, done.stdout

    def build(self, only=(), pattern=None):
        """Configures it if it is new, and builds all of it, or what is installed and what the suites
        `only` need, or those of their tests that match. Gives "", or the output of the step that
        failed."""
        if not os.path.exists(os.path.join(self.path, "build.ninja")):
            status, output = self.command("meson", "setup", self.path, *self.options)
            if status:
                return output
        self.command("ninja", "-C", self.path, "build.ninja")  # targets() reads what it writes
        status, output = self.command("ninja", "-C", self.path, *self.targets(only, pattern))
        return output if status else ""

    def build_anyhow(self):
        """Builds all of it, with warnings as errors if it is new; but a warning ends no run of the tests:
        then it is built without, and the suite that builds it with them once more says which."""
        problem = self.build()
        if problem and self.is_strict():
            self.command("meson", "configure", self.path, "-Dwerror=false")
            problem = self.build()
        return problem

    def is_strict(self):
        return any(option["name"] == "werror" and option["value"]
                   for option in self.introspect("--buildoptions"))

    def compiler(self):
        """What compiles C here: gcc, clang, or ""."""
        for target in self.introspect("--targets"):
            for source in target["target_sources"]:
                if source.get("language") == "c":
                    _, says = self.command(*source["compiler"], "--version")
                    return "clang" if "clang" in says else "gcc" if "Free Software" in says else ""
        return ""

    def introspect(self, what):
        status, output = self.command("meson", "introspect", what, self.path)
        return json.loads(output) if status == 0 else []

    def targets(self, only, pattern):
        """File names for ninja; none at all means everything."""
        if not only:
            return []
        needed = {target for test in self.introspect("--tests") if self.suite_of(test) in only
                  and (not pattern or pattern.fullmatch(test["name"])) for target in test["depends"]}
        return [os.path.relpath(name, self.path) for target in self.introspect("--targets")
                if target["installed"] or target["id"] in needed for name in target["filename"]]

    @staticmethod
    def suite_of(test):
        return test["suite"][0].split(":")[-1] if test["suite"] else "other"

    def tests(self):
        """{suite: [test name]}"""
        found = {}
        for test in self.introspect("--tests"):
            found.setdefault(self.suite_of(test), []).append(test["name"])
        return found

    def test(self, suite, names=(), timeouts=4, jobs=None):
        """Runs a suite, or these tests of it; one Case for each. The few that fail are run once more,
        each alone: what passes then counts as passed, and is reported as unsteady with what it said
        when it failed. On a loaded machine launchers lose their own races, and not only ours. Limits of
        time are `timeouts` times what the tests say: they are there to end what hangs."""
        cases = self.run_tests(suite, names, timeouts, jobs)
        failed = [c for c in cases if c.outcome == "failed"]
        if not failed or len(failed) > AGAIN_MOST:
            return cases
        again = self.run_tests(suite, [c.name for c in failed], 2 * timeouts, 1, "-again")
        passed = {c.name for c in again if c.outcome == "passed"}
        return [c.made_unsteady() if c.outcome == "failed" and c.name in passed else c
                for c in cases]

    def run_tests(self, suite, names, timeouts, jobs, which=""):
        log = os.path.join(self.path, "meson-logs", f"run-{suite}{which}.json")
        if os.path.exists(log):
            os.unlink(log)
        command = self.prefix + ["meson", "test", "-C", self.path, "--no-rebuild", "--suite",
                                 suite, "--logbase", f"run-{suite}{which}", "--timeout-multiplier", str(timeouts)]
        if jobs:
            command += ["--num-processes", str(jobs)]
        status, output = self.command(*command, *names)
        try:
            with open(log, encoding="utf-8") as lines:
                return [self.case(json.loads(line)) for line in lines if line.strip()]
        except OSError:
            return [Case(suite, "failed", f"meson test: exit status {status}", output)]

    @staticmethod
    def case(entry):
        name = entry["name"].split(" / ")[-1]
        outcome = OUTCOMES.get(entry["result"], "failed")
        said = entry.get("stdout") or ""
        if outcome == "skipped":
            reasons = [line for line in said.splitlines() if line.startswith("SKIP: ")]
            return Case(name, outcome, reasons[-1][6:] if reasons else "")
        if outcome == "passed":
            return Case(name, outcome)
        how = "took too long" if entry["result"] == "TIMEOUT" else \
            f"exit status {entry.get('returncode')}"
        return Case(name, outcome, how, said + "\n" + (entry.get("stderr") or ""))


def names(tree):
    found = tree.tests()
    middle = sorted(set(found) - set(FIRST) - set(LAST))
    return [s for s in FIRST + middle + LAST if s in found]
