"""Deliberate defects as patches, and a copy of the tree to put them into."""

import dataclasses
import os
import re
import shutil
import subprocess
import time

from . import interrupt
from .suites import Tree

FOUND = "found"
MISSED = "MISSED"
NOT_APPLIED = "does not apply"
NOT_BUILT = "does not build"
NOT_JUDGED = "not judged"  # its test fails without it too, or there is no such test
NOT_HERE = "not tried"  # its test is skipped on this machine
WORDS = [FOUND, MISSED, NOT_APPLIED, NOT_BUILT, NOT_JUDGED, NOT_HERE]

FIELDS = ["Fails", "Build", "Needs"]
PARTS = ["verbs", "cuda", "pmix", "cpp"]  # of the build, which not every machine has
LAUNCHERS = ["gshmemrun"]  # what tests/launch starts, which no test names as what it depends on
LEAST_LIMIT = 30  # seconds that a test may take with a mutant, however short it is without


@dataclasses.dataclass
class Mutant:
    name: str  # area/name
    path: str
    what: str  # what is wrong, in one line
    test: str  # the one that must fail
    build: list  # targets to build beside what the test depends on
    needs: list  # of PARTS
    files: list  # that the patch changes
    unknown: list  # lines of the header that nobody reads

    @property
    def area(self):
        return self.name.split("/")[0]

    def problem(self):
        """What is wrong with its header, or ""."""
        if not self.what or self.unknown:
            return "its header is one line that says what the defect is, then Fails:, Build: and Needs: lines" \
                + (f", not: {self.unknown[0]}" if self.unknown else "")
        if not self.test:
            return "no line `Fails: TEST` names the test"
        if not set(self.needs) <= set(PARTS):
            return f"Needs: names something else than {', '.join(PARTS)}"
        return "" if self.files else "it has no patch"


@dataclasses.dataclass
class Outcome:
    word: str
    why: str = ""
    detail: str = ""

    def is_failure(self):
        return self.word not in (FOUND, NOT_HERE)


def read(folder):
    """All mutants below the folder, one subfolder for each area."""
    found = []
    for at, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".patch"):
                found.append(read_one(folder, os.path.join(at, name)))
    return found


def read_one(folder, path):
    with open(path, encoding="utf-8") as file:
        head, _, patch = file.read().partition("\n--- ")
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith("diff --git")]
    fields = {name: "" for name in FIELDS}
    unknown = []
    for line in lines[1:]:
        name, colon, value = line.partition(": ")
        if colon and name in fields and not fields[name]:
            fields[name] = value.strip()
        else:
            unknown.append(line)
    name = os.path.relpath(path, folder).removesuffix(".patch")
    return Mutant(name=name, path=path, what=lines[0] if lines else "", test=fields["Fails"],
                  build=fields["Build"].split(), needs=fields["Needs"].split(),
                  files=re.findall(r"^\+\+\+ b/(.*?)\s*$", patch, re.M), unknown=unknown)


def patch_command(check_only):
    """git's does without a repository; neither may take the repository around the tree for the tree."""
    if shutil.which("git"):
        return ["git", "apply", "-C1"] + (["--check"] if check_only else [])
    return ["patch", "-p1", "--batch", "--forward", "--fuzz=1", "--no-backup-if-mismatch"] \
        + (["--dry-run"] if check_only else [])


def apply(root, mutant, check_only=False):
    """"", or why the patch does not apply."""
    environment = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(root))
    with open(mutant.path, "rb") as patch:
        done = subprocess.run(patch_command(check_only), cwd=root, env=environment, stdin=patch,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return "" if done.returncode == 0 else (done.stdout.strip().splitlines() or ["it does not apply"])[0]


def does_not_apply(root, mutant):
    return apply(root, mutant, check_only=True)


def tests_of(tree):
    """{name: what meson knows of the test}; also by "suite:name", and by that alone where several suites have one of
    that name."""
    found, several = {}, set()
    for test in tree.introspect("tests"):
        if test["name"] in found:
            several.add(test["name"])
        found[test["name"]] = found[f"{tree.suite_of(test)}:{test['name']}"] = test
    return {name: test for name, test in found.items() if name not in several}


def known_tests(build):
    return tests_of(Tree(os.path.dirname(build), build))


def copy_tree(root, to):
    """What git knows or does not ignore; without git all but builds. Files that are as they were keep their times."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) if shutil.which("git") else None
    if listed and listed.returncode == 0:
        names = [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    else:
        names = [os.path.relpath(os.path.join(at, name), root) for at, name in walk_sources(root)]
    for name in names:
        source, target = os.path.join(root, name), os.path.join(to, name)
        if not os.path.isfile(source) or is_same(source, target):
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(source, target)
    for at, name in list(walk_sources(to)):  # what an earlier copy had, and the tree has no more
        path = os.path.join(at, name)
        if os.path.relpath(path, to) not in names:
            os.unlink(path)


def walk_sources(root):
    for at, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f != ".git" and not os.path.exists(os.path.join(at, f, "build.ninja"))]
        for name in files:
            yield at, name


def is_same(one, other):
    try:
        with open(one, "rb") as a, open(other, "rb") as b:
            return a.read() == b.read()
    except OSError:
        return False


class Bench:
    """A copy of the tree with a build of its own, which is without a mutant before and after each judgement."""

    def __init__(self, root, folder):
        self.source = os.path.join(folder, "source")
        # ccache, where it is, knows the files of other trees when it does not look where they are
        self.tree = Tree(self.source, os.path.join(folder, "build"), ["-Dgpu_code=none"],
                         {"CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "time_macros"})
        self.root = root
        self.tests, self.targets = {}, []  # what meson knows of them
        self.without = {}  # test: (Case, seconds) without any mutant

    def prepare(self, chosen):
        """Builds what all of them need. "", or what the compiler said."""
        copy_tree(self.root, self.source)
        problem = self.configure()
        if problem:
            return problem
        self.tests, self.targets = tests_of(self.tree), self.tree.introspect("targets")
        there = [m for m in chosen if m.test in self.tests]
        return self.build([m.test for m in there], [name for m in there for name in m.build])

    def run_without(self, chosen):
        """Runs each test once."""
        for name in dict.fromkeys(m.test for m in chosen if m.test in self.tests):
            self.without[name] = self.run_test(name, 4 * self.tests[name]["timeout"])

    def configure(self):
        if os.path.exists(os.path.join(self.tree.path, "build.ninja")):
            status, output = self.tree.command("ninja", "-C", self.tree.path, "build.ninja")
        else:
            status, output = self.tree.command("meson", "setup", self.tree.path, *self.tree.options)
        return output if status else ""

    def build(self, tests, also):
        needed = {target for name in tests for target in self.tests[name]["depends"]}
        files = [os.path.relpath(file, self.tree.path) for target in self.targets
                 if target["id"] in needed or target["name"] in LAUNCHERS + also for file in target["filename"]]
        if not files:
            return ""
        status, output = self.tree.command("ninja", "-C", self.tree.path, *files)
        return output if status else ""

    def run_test(self, name, limit):
        """(Case, seconds), with `limit` seconds for it."""
        test = self.tests[name]
        multiplier = limit / test["timeout"] if test["timeout"] else 1
        suite = self.tree.suite_of(test)
        begun = time.monotonic()
        case = self.tree.run_tests([suite], [test["name"]], multiplier, self.tree.case, 1)[0]
        if case.reason == "took too long":
            interrupt.end_all()  # of which something may have survived its test
        return case, time.monotonic() - begun

    def judge(self, mutant):
        if mutant.test not in self.tests:
            return Outcome(NOT_HERE if mutant.needs else NOT_JUDGED, f"there is no test {mutant.test} here")
        case, seconds = self.without[mutant.test]
        if case.outcome == "skipped":
            return Outcome(NOT_HERE, case.reason)
        if case.outcome == "failed":
            return Outcome(NOT_JUDGED, f"its test fails without it too, {case.reason}", case.detail)
        why = does_not_apply(self.source, mutant)
        if why:
            return Outcome(NOT_APPLIED, why)
        kept = {name: self.read(name) for name in mutant.files}
        try:
            apply(self.source, mutant)
            problem = self.build([mutant.test], mutant.build)
            if problem:
                return Outcome(NOT_BUILT, detail=problem)
            limit = min(4 * self.tests[mutant.test]["timeout"], max(LEAST_LIMIT, 5 * seconds))
            case, _ = self.run_test(mutant.test, limit)
            return Outcome(FOUND if case.outcome == "failed" else MISSED,
                           "it took too long" if case.reason == "took too long" else "", case.detail)
        finally:
            for name, text in kept.items():
                self.write(name, text)

    def read(self, name):
        with open(os.path.join(self.source, name), "rb") as file:
            return file.read()

    def write(self, name, text):
        with open(os.path.join(self.source, name), "wb") as file:
            file.write(text)
