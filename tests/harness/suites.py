"""A build tree: configured, built, and its tests run one suite at a time."""

import contextlib
import json
import os
import signal
import subprocess
import threading

from . import cpu, interrupt
from .report import Case

# The order in which a person wants to hear of them; others follow by name.
FIRST = ["unit", "typed", "memory", "pe", "collectives"]
LAST = ["examples", "kill", "fuzz", "perf", "rdma", "nvcc", "soak"]

# What is run side by side, a suite after the other in each row: what mostly waits, for other machines, for launchers
# and for the clock; what mostly compiles, with all builds of other kinds; and the others.
WAITING = ["bootstrap", "failure", "hosts", "where", "rdma"]
COMPILING = ["nvcc", "sass"]
ALONE = ["kill"]  # before them: it looks for what jobs leave in /tmp and /dev/shm, where others have files for a while

# What is installed and no test opens without saying so, and takes long to make.
NOT_FOR_TESTS = ["gshmem-perf", "nvshmem-bitcode", "nvshmem-ptx"]

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
        process = subprocess.Popen(arguments, cwd=cwd or self.root, env=dict(os.environ, **self.env), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   start_new_session=bool(timeout))
        late = threading.Event()

        def end():
            """All of its group, which may hold the pipe. Not process.kill(), which waits for what wait4 waits for."""
            late.set()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(timeout or 0, end)
        if timeout:
            timer.start()
        with process.stdout:
            output = process.stdout.read()
        # wait4 says, unlike wait, what the command and all that it has waited for have computed.
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu.current().add(usage.ru_utime + usage.ru_stime)
        return (124, output + "\ntook too long") if late.is_set() else (process.returncode, output)

    def configure(self):
        """"", or why it cannot be. What targets() and tests() read is then as meson.build says now."""
        if not os.path.exists(os.path.join(self.path, "build.ninja")):
            command = ["meson", "setup", self.path, *self.options]
        else:
            command = ["ninja", "-C", self.path, "build.ninja"]
        status, output = self.command(*command)
        return output if status else ""

    def build(self, chosen=None):
        """Builds all of it, or what is installed and what the tests `chosen` ({suite: names}) need. Gives "", or the
        output of the step that failed."""
        problem = self.configure()
        if problem:
            return problem
        status, output = self.command("ninja", "-C", self.path, *self.targets(chosen))
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
                   for option in self.introspect("buildoptions"))

    def compiler(self):
        """What compiles C here: gcc, clang, or ""."""
        for target in self.introspect("targets"):
            for source in target["target_sources"]:
                if source.get("language") == "c":
                    _, says = self.command(*source["compiler"], "--version")
                    return "clang" if "clang" in says else "gcc" if "Free Software" in says else ""
        return ""

    def introspect(self, what):
        """What Meson has written of the build tree when it was configured last."""
        try:
            with open(os.path.join(self.path, "meson-info", f"intro-{what}.json"), encoding="utf-8") as file:
                return json.load(file)
        except OSError:
            return []

    def targets(self, chosen):
        """File names for ninja; none at all means everything."""
        if chosen is None:
            return []
        needed = {target for test in self.introspect("tests")
                  if test["name"] in chosen.get(self.suite_of(test), ()) for target in test["depends"]}
        wanted = [target for target in self.introspect("targets") if target["id"] in needed or
                  target["installed"] and not (chosen and target["name"] in NOT_FOR_TESTS)]
        return [os.path.relpath(name, self.path) for target in wanted for name in target["filename"]]

    @staticmethod
    def suite_of(test):
        return test["suite"][0].split(":")[-1] if test["suite"] else "other"

    def tests(self, built=False):
        """{suite: [test name]}; `built`: of those that run something that this tree has built."""
        found = {}
        for test in self.introspect("tests"):
            if built and not test["depends"]:
                continue
            found.setdefault(self.suite_of(test), []).append(test["name"])
        return found

    def test(self, suite):
        """All of a suite; one Case for each."""
        return self.with_lost(self.judged([suite], (), 4, self.case), set(self.tests().get(suite, [])))

    @staticmethod
    def with_lost(cases, wanted):
        """`meson test` may have ended before all of them, as when it was killed for memory."""
        lost = wanted - {c.name for c in cases}
        return cases + [Case(name, "failed", "meson test says nothing of it") for name in sorted(lost)]

    def test_some(self, chosen):
        """These tests ({suite: names}), all at once, so that none waits for the last of a suite. They have longer: they are
        of builds in which programs are slower."""
        chosen = {suite: names for suite, names in chosen.items() if names}
        if not chosen:
            return []
        wanted = {f"{suite}/{name}" for suite, names in chosen.items() for name in names}
        names = sorted({name for names in chosen.values() for name in names})
        cases = [c for c in self.judged(list(chosen), names, 6, self.case_of_suite) if c.name in wanted]
        return self.with_lost(cases, wanted)

    def judged(self, suites, names, timeouts, read):
        """The few that fail are run once more, each alone: what passes then counts as passed, and is reported as unsteady
        with what it said when it failed. On a loaded machine launchers lose their own races, and not only ours. Limits of
        time are `timeouts` times what the tests say: they are there to end what hangs."""
        cases = self.run_tests(suites, names, timeouts, read)
        failed = [c for c in cases if c.outcome == "failed"]
        if not failed or len(failed) > AGAIN_MOST:
            return cases
        again = self.run_tests(suites, [c.name.rpartition("/")[2] for c in failed], 2 * timeouts, read, 1, "-again")
        passed = {c.name for c in again if c.outcome == "passed"} - {c.name for c in again if c.outcome == "failed"}
        return [c.made_unsteady() if c.outcome == "failed" and c.name in passed else c
                for c in cases]

    def run_tests(self, suites, names, timeouts, read, jobs=None, which=""):
        base = f"run-{suites[0] if len(suites) == 1 else 'some'}{which}"
        log = os.path.join(self.path, "meson-logs", base + ".json")
        if os.path.exists(log):
            os.unlink(log)
        command = self.prefix + ["meson", "test", "-C", self.path, "--no-rebuild", "--logbase", base,
                                 "--timeout-multiplier", str(timeouts)]
        for suite in suites:
            command += ["--suite", suite]
        if jobs:
            command += ["--num-processes", str(jobs)]
        status, output = self.command(*command, *names)
        try:
            with open(log, encoding="utf-8") as lines:
                return [read(json.loads(line)) for line in lines if line.strip()]
        except (OSError, ValueError):  # there is no log, or it breaks off
            return [Case(suites[0], "failed", f"meson test: exit status {status}", output)]

    @classmethod
    def case_of_suite(cls, entry):
        """Its name says of which suite it is; of several, the first."""
        suites = entry["name"].rpartition(" / ")[0].rpartition(":")[2]
        case = cls.case(entry)
        case.name = f"{suites.split('+')[0]}/{case.name}"
        return case

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
