#!/usr/bin/env python3
"""tests/mutants/run on a small tree: what it says of mutants that are found, missed, stale, broken and misnamed, and
what it leaves when it is interrupted."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "run")

TREE = {  # without a compiler, which takes longer than all else: a number becomes a script that judges it
    "meson.build": """project('toy')
answer = custom_target('answer', input: 'answer.txt', output: 'answer', command: [find_program('make.sh'), '@INPUT@', '@OUTPUT@'])
shell = find_program('sh')
test('answer', shell, args: answer, suite: 'one')
test('twice', shell, args: answer, suite: 'one')
test('twice', shell, args: answer, suite: 'two')
test('sick', find_program('false'), suite: 'one')
test('skipped', find_program('skip.sh'), suite: 'one')
test('patient', find_program('patient.sh'), suite: 'one', timeout: 600)
""",
    "meson_options.txt": "option('gpu_code', type: 'combo', choices: ['none'])\n",
    "answer.txt": "What was asked is not known.\n\nThe answer is\n42\n",
    "make.sh": """#!/bin/sh
number=$(tail -n 1 "$1")
[ "$number" -gt 0 ] && echo "[ $number = 42 ]" >"$2"
""",
    "skip.sh": "#!/bin/sh\necho 'SKIP: no telescope'\nexit 77\n",
    # With the mutant it waits for ever, and so does what it has started in a session of its own.
    "patient.sh": """#!/bin/sh
wait=no
[ $wait = no ] && exit 0
setsid sleep 1000 &
echo $$ $! >"$PIDS.new"
mv "$PIDS.new" "$PIDS"
wait
""",
}

ANSWER = """--- a/answer.txt
+++ b/answer.txt
@@ -3,2 +3,2 @@
 The answer is
-{old}
+{new}
"""
MUTANTS = {
    "maths/wrong": "The answer is wrong.\nFails: answer\n\n" + ANSWER.format(old=42, new=43),
    "maths/broken": "The answer is no number.\nFails: answer\n\n" + ANSWER.format(old=42, new="?"),
    "maths/stale": "The old answer is wrong.\nFails: answer\n\n" + ANSWER.format(old=41, new=43),
    "maths/one-of-two": "The answer is wrong.\nFails: two:twice\n\n" + ANSWER.format(old=42, new=43),
    "words/harmless": "What was asked is 6 times 9.\nFails: answer\n\n--- a/answer.txt\n+++ b/answer.txt\n@@ -1,3 +1,3 @@\n"
                      "-What was asked is not known.\n+6 times 9?\n \n The answer is\n",
    "words/sick": "The answer is wrong.\nFails: sick\n\n" + ANSWER.format(old=42, new=43),
    "words/skipped": "The answer is wrong.\nFails: skipped\n\n" + ANSWER.format(old=42, new=43),
    "words/unknown": "The answer is wrong.\nFails: no-such-test\n\n" + ANSWER.format(old=42, new=43),
    "words/ambiguous": "The answer is wrong.\nFails: twice\n\n" + ANSWER.format(old=42, new=43),
    "time/waits": "The test waits for ever.\nFails: patient\n\n--- a/patient.sh\n+++ b/patient.sh\n@@ -1,3 +1,3 @@\n"
                  " #!/bin/sh\n-wait=no\n+wait=yes\n [ $wait = no ] && exit 0\n",
}


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Mutants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="gshmem-test-mutants-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.root = os.path.join(cls.folder, "root")
        cls.temporary = os.path.join(cls.folder, "temporary")
        os.mkdir(cls.temporary)
        for name, text in TREE.items():
            cls.write(name, text)
        for name, text in MUTANTS.items():
            cls.write(f"tests/mutants/{name}.patch", text)

    @classmethod
    def write(cls, name, text):
        path = os.path.join(cls.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def environment(self):
        return dict(os.environ, TMPDIR=self.temporary, PIDS=os.path.join(self.folder, "pids"))

    def run_with(self, *arguments):
        done = subprocess.run([sys.executable, RUN, "--root", self.root, *arguments], env=self.environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(os.listdir(self.temporary), [], "it leaves files")
        return done.returncode, done.stdout

    def test_each_is_called_what_it_is(self):
        status, said = self.run_with("maths", "words")
        for name, word in {"maths/wrong": "found in ", "maths/one-of-two": "found in ", "maths/broken": "does not build",
                           "maths/stale": "does not apply", "words/harmless": "MISSED",
                           "words/sick": "not judged: its test fails without it too",
                           "words/skipped": "not tried: no telescope",
                           "words/unknown": "not judged: there is no test no-such-test",
                           "words/ambiguous": "not judged: there is no test twice"}.items():
            self.assertRegex(said, rf"(?m)^{name} +\S+ +{word}")
        self.assertEqual(said.splitlines()[-1], "2 found, 1 missed, 1 do not apply, 1 do not build, 4 not judged")
        self.assertEqual(status, 1)

    def test_found_is_success(self):
        status, said = self.run_with("wrong", "skipped")
        self.assertEqual(said.splitlines()[-1], "1 found, 0 missed, 0 do not apply, 0 do not build, 1 not judged")
        self.assertEqual(status, 0)

    def test_unknown_name_is_refused(self):
        status, said = self.run_with("wrong", "nonsense")
        self.assertEqual((status, said), (1, "tests/mutants/run: no mutant nonsense; --list names them\n"))

    def test_header_that_nobody_reads_is_refused(self):
        path = os.path.join(self.root, "tests/mutants/maths/typing.patch")
        self.write(path, "A slip.\nFails: answer\nFials: twice\n\n" + ANSWER.format(old=42, new=43))
        self.addCleanup(os.unlink, path)
        status, said = self.run_with("typing")
        self.assertEqual(status, 1)
        self.assertIn("not: Fials: twice", said)

    def test_check_builds_nothing(self):
        build = os.path.join(self.folder, "build")
        subprocess.run(["meson", "setup", build, self.root], check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL)
        status, said = self.run_with("--check", "--build", build)
        self.assertEqual(status, 1)
        self.assertRegex(said, "(?m)^maths/stale: ")
        self.assertRegex(said, "(?m)^words/unknown: .* has no test no-such-test$")
        self.assertEqual(said.splitlines()[-1], "7 of 10 mutants apply and name a test")
        self.assertFalse(os.path.exists(os.path.join(build, "answer")))
        self.assertEqual(self.run_with("--check", "--build", build, "wrong", "waits")[0], 0)

    def test_interruption_leaves_nothing(self):
        environment = self.environment()
        with subprocess.Popen([sys.executable, RUN, "--root", self.root, "waits"], env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True) as runner:
            pids = []
            try:
                end = time.monotonic() + 60
                while not os.path.exists(environment["PIDS"]):
                    self.assertLess(time.monotonic(), end, "the test did not start")
                    time.sleep(0.05)
                with open(environment["PIDS"], encoding="utf-8") as file:
                    pids = [int(word) for word in file.read().split()]
                runner.send_signal(signal.SIGTERM)
                said, _ = runner.communicate(timeout=60)
            finally:
                left = [pid for pid in pids if lives(pid)]
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                if runner.poll() is None:
                    runner.kill()
        self.assertEqual((len(pids), left), (2, []))
        self.assertEqual(runner.returncode, 128 + signal.SIGTERM)
        self.assertIn("interrupted by SIGTERM\n0 found", said)
        self.assertEqual(os.listdir(self.temporary), [])


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # below nohup it is ignored
    unittest.main()
