"""One run: where things are, how long it may take, what came of each check, and the report of it."""

import os
import re
import signal
import subprocess
import time

TAIL = 25  # lines of a failed program that the report shows


class Session:
    def __init__(self, options, root, device):
        self.options = options
        self.root = root
        self.device = device  # cuda; host in a rehearsal
        self.build = options.library or options.build
        self.folder = os.path.join(options.build, "gpu-host" if options.rehearse else "gpu")
        self.report = open(options.report, "a", encoding="utf-8")
        self.ends = time.monotonic() + options.minutes * 60 if options.minutes else None
        self.count = {"ok": 0, "FAILED": 0, "skipped": 0, "not run": 0}
        os.makedirs(os.path.join(self.folder, "logs"), exist_ok=True)

    def path(self, *parts):
        return os.path.join(self.build, *parts)

    def left(self, most):
        """Seconds for one more thing; 0 if the time is up."""
        return most if self.ends is None else max(0, min(most, self.ends - time.monotonic()))

    def say(self, text="", loud=True):
        self.report.write(text + "\n")
        self.report.flush()
        if loud:
            print(text, flush=True)

    def outcome(self, what, name, reason="", output=""):
        self.count[what] += 1
        self.say(f"{what:<8} {name}{': ' + reason if reason else ''}")
        if what == "FAILED":
            for line in output.strip().splitlines()[-TAIL:]:
                self.say("        | " + line, loud=False)
        return what == "ok"

    def run(self, command, seconds, env=None):
        """(exit status or None if it took too long, output). All of it has ended afterwards."""
        try:
            process = subprocess.Popen(command, env=dict(os.environ, **(env or {})), text=True,
                                       errors="replace", stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       start_new_session=True)
        except OSError as error:
            return 127, str(error)
        try:
            output, _ = process.communicate(timeout=seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            for sign in signal.SIGTERM, signal.SIGKILL:  # gshmemrun takes its PEs along
                try:
                    os.killpg(process.pid, sign)
                    output, _ = process.communicate(timeout=5)
                    break
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    output = ""
            return None, output

    def check(self, name, command, most=120, env=None):
        """Runs it, and says what came of it; True if it ended well."""
        seconds = self.left(most)
        if seconds < 1:
            return self.outcome("not run", name, "the time was up")
        begun = time.monotonic()
        status, output = self.run(command, seconds, env)
        with open(os.path.join(self.folder, "logs", name.replace("/", "-").replace(" ", "_")), "w",
                  encoding="utf-8") as log:
            log.write(" ".join(command) + "\n" + output)
        skipped = re.findall(r"^SKIP: (.*)", output, re.M)
        if status == 77 and skipped:
            return self.outcome("skipped", name, skipped[-1])
        if status is None and seconds < most:
            return self.outcome("not run", name, f"stopped after {seconds:.0f} s: the time was up")
        if status is None:
            return self.outcome("FAILED", name, f"took longer than {seconds:.0f} s", output)
        if status:
            return self.outcome("FAILED", name, f"exit status {status}", output)
        return self.outcome("ok", f"{name}  {time.monotonic() - begun:.1f} s")

    def finish(self):
        """The closing line, and the exit status: only what has run, all of it, has passed."""
        self.say(", ".join(f"{n} {what}" for what, n in self.count.items()))
        self.report.close()
        good = self.count["ok"] and not self.count["FAILED"] and not self.count["not run"]
        return 0 if good else 1
