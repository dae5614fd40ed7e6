"""How runs are judged: what is unsteady, what is skipped, and what the closing line says of it."""

import io
import json
import os
import shutil
import sys
import tempfile
import unittest
from concurrent import futures

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True

from harness import budget, builds, cpu, skips, suites, syntax  # noqa: E402
from harness.record import Record  # noqa: E402
from harness.report import Case, Report, Suite  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Judgement(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "build", "record.json")
        self.addCleanup(self.folder.cleanup)

    def run_with(self, *cases, suite="pe", **how):
        """Exit status and output of a run of that suite."""
        to = io.StringIO()
        report = Report(to, Record(self.path), **how)
        report.add(Suite(suite, list(cases), 1.0, cpu=1.0))
        return report.finish(1.0), to.getvalue()

    @staticmethod
    def unsteady():
        return Case("ring", "failed", "exit status 1", "a race").made_unsteady()

    def test_unsteady_once_is_said(self):
        status, said = self.run_with(self.unsteady())
        self.assertEqual(status, 0)
        self.assertIn("unsteady: pe/ring\n1 passed, 0 failed, 0 skipped", said)
        self.assertIn("a race", said)

    def test_unsteady_twice_in_ten_runs_fails(self):
        self.run_with(self.unsteady())
        for _ in range(8):
            self.assertEqual(self.run_with(Case("ring", "passed"))[0], 0)
        status, said = self.run_with(self.unsteady())
        self.assertEqual(status, 1)
        self.assertIn("for the second time in ten runs; first: exit status 1", said)

    def test_unsteady_again_after_ten_runs_is_said(self):
        self.run_with(self.unsteady())
        for _ in range(9):
            self.run_with(Case("ring", "passed"))
        self.assertEqual(self.run_with(self.unsteady())[0], 0)

    def test_runs_of_other_suites_do_not_count(self):
        self.run_with(self.unsteady())
        for _ in range(12):
            self.run_with(Case("ring", "passed"), suite="unit")
        self.assertEqual(self.run_with(self.unsteady(), suite="unit")[0], 0)
        self.assertEqual(self.run_with(self.unsteady())[0], 1)

    def test_unsteady_fails_where_it_is_strict(self):
        status, said = self.run_with(self.unsteady(), strict=True)
        self.assertEqual(status, 1)
        self.assertIn("0 passed, 1 failed, 0 skipped", said)

    def test_skips(self):
        cases = [Case("gpu", "skipped", "no GPU here"), Case("ring", "passed")]
        listed = [line for line in skips.read(ROOT) if line.search("no GPU here")]
        self.assertTrue(listed)
        known = {"listed": lambda reason: skips.is_listed(listed, reason)}
        self.assertEqual(self.run_with(*cases, strict=True, **known)[0], 0)
        self.assertEqual(self.run_with(Case("a", "skipped", "gcc is not installed"), cases[1], **known)[0], 0)
        status, said = self.run_with(Case("a", "skipped", "gcc is not installed"), cases[1], strict=True, **known)
        self.assertEqual(status, 1)
        self.assertIn("not in tests/skips: SKIP: gcc is not installed", said)

    def test_list_knows_no_missing_packages(self):
        for reason in ("gcc is not installed", "spin is not installed", "", "mpirun is not installed"):
            self.assertFalse(skips.is_listed(skips.read(ROOT), reason), reason)

    def test_budget(self):
        most = budget.read(ROOT)
        self.assertGreater(most["rdma"], most["unit"])
        self.assertIn("kill", most)  # one of two in a row
        self.assertNotIn("over their budget", self.run_with(Case("ring", "passed"), budget={"pe": 2})[1])
        self.assertIn("pe 1 s of 0.5", self.run_with(Case("ring", "passed"), budget={"pe": 0.5})[1])

    def test_nothing_tested_fails(self):
        self.assertEqual(self.run_with(Case("gpu", "skipped", "no GPU here"))[0], 1)

    def test_record_that_cannot_be_read(self):
        os.makedirs(os.path.dirname(self.path))
        with open(self.path, "w", encoding="utf-8") as file:
            file.write('{"runs": [3]}')
        self.assertEqual(self.run_with(Case("ring", "passed"))[0], 0)
        self.assertEqual(Record(self.path).seconds("pe"), 1.0)


class Commands(unittest.TestCase):
    def test_what_children_compute_is_counted(self):
        """Of a grandchild too, in a thread of another account than ours."""
        before = cpu.current().seconds
        burn = "import time\nwhile time.process_time() < 0.3: pass"
        with tempfile.TemporaryDirectory() as folder, futures.ThreadPoolExecutor(1) as other:
            def run():
                account = cpu.use(cpu.Account())
                return suites.Tree(folder, folder).command("sh", "-c", f"{sys.executable} -c '{burn}'; exit 3"), account
            (status, _), account = other.submit(run).result()
        self.assertEqual(status, 3)
        self.assertGreaterEqual(account.seconds, 0.3)
        self.assertEqual(cpu.current().seconds, before)

    def test_one_that_takes_too_long_is_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            status, output = suites.Tree(folder, folder).command("sh", "-c", "echo begun; exec sleep 1000", timeout=0.5)
        self.assertEqual((status, output), (124, "begun\n\ntook too long"))


class SanitizersTests(unittest.TestCase):
    def test_selected(self):
        tests = ["wait-run-1", "wait-run-2", "wait-run-8", "wait-mpirun-2", "wait-hosts2-4", "wait-hosts2-3", "one", "long-late",
                 "large-run-512", "wait-proxies-2-hosts2-4"]
        self.assertEqual(sorted(builds.selected(tests, 3, "long-.*")),
                         ["one", "wait-hosts2-3", "wait-proxies-2-hosts2-4", "wait-run-2"])

    def test_a_test_that_meson_says_nothing_of_has_failed(self):
        class Silent(suites.Tree):
            def run_tests(self, *_):
                return [suites.Case("pe/ring", "passed"), suites.Case("pe/other", "passed")]
        cases = Silent("/", "/").test_some({"pe": ["ring", "lost"], "unit": []})
        self.assertEqual([(c.name, c.outcome) for c in cases], [("pe/ring", "passed"), ("pe/lost", "failed")])


class OtherCompilersWarnings(unittest.TestCase):
    """Of a regular build that names no compiler of its own, with one source, which is compiled twice."""

    def judge(self, source):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "a.c"), "w", encoding="utf-8") as f:
                f.write(source)
            command = "ccache cc -Wall -Wextra -MD -MQ a.o -MF a.d -o a.o -c a.c"
            with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as f:
                json.dump([{"file": "a.c", "command": command}] * 2, f)
            cases = builds.warnings("gcc-werror", folder, suites.Tree(folder, folder), "gcc")
            self.assertEqual(sorted(os.listdir(folder)), ["a.c", "compile_commands.json"])
            return cases[0]

    def test_the_library_is_read_once(self):
        """Not again as the simulation compiles it; but what the simulation alone has is read."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as f:
                json.dump([{"file": file, "command": f"cc {macro} -o x.o -c {file}"} for file, macro in (
                    ("lib.c", "-DONE"), ("lib.c", syntax.SIMULATED), ("lib.c", "-DTWO"), ("model.c", syntax.SIMULATED))], f)
            commands = syntax.commands(folder, builds.COMPILERS["clang"], optimise=False)
        self.assertEqual(sorted((c[1], c[-1]) for c in commands),
                         [(syntax.SIMULATED, "model.c"), ("-DONE", "lib.c"), ("-DTWO", "lib.c")])

    @unittest.skipUnless(shutil.which("gcc"), "gcc is not installed")
    def test_a_warning_fails(self):
        self.assertEqual(self.judge("int f(void);\nint f(void) { return 0; }\n").outcome, "passed")
        unused = self.judge("int f(int unused);\nint f(int unused) { return 0; }\n")
        self.assertEqual((unused.outcome, unused.reason), ("failed", "1 of 1 sources"))
        self.assertIn("unused", unused.detail)


if __name__ == "__main__":
    unittest.main()
