"""What earlier runs in this build tree have seen: how long each suite took, and which tests were unsteady."""

import json
import os

RUNS = 10  # so far back the record goes


class Record:
    def __init__(self, path):
        self.path = path
        self.runs = self.read()
        self.now = {"seconds": {}, "cpu": {}, "unsteady": []}

    def read(self):
        """The runs of before, oldest first; none where there is no record, or one that cannot be read."""
        try:
            with open(self.path, encoding="utf-8") as file:
                runs = json.load(file)["runs"]
            return [{"seconds": dict(run["seconds"]), "cpu": dict(run.get("cpu", {})), "unsteady": list(run["unsteady"])}
                    for run in runs]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def seconds(self, suite, of="seconds"):
        """How long it took when it was run last, or what it computed (of="cpu"), or None."""
        for run in reversed(self.runs):
            if suite in run[of]:
                return run[of][suite]
        return None

    def was_unsteady(self, suite, test):
        """In one of the nine runs of that suite before this one."""
        of_suite = [run for run in self.runs if suite in run["seconds"]]
        return any(f"{suite}/{test}" in run["unsteady"] for run in of_suite[-(RUNS - 1):])

    def add(self, suite):
        self.now["seconds"][suite.name] = round(suite.seconds, 1)
        self.now["cpu"][suite.name] = round(suite.cpu, 1)
        self.now["unsteady"] += [f"{suite.name}/{case.name}" for case in suite.cases if case.unsteady]
        self.write()

    def write(self):
        """Whole or not at all, after each suite: a run may be interrupted."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump({"runs": (self.runs + [self.now])[-4 * RUNS:]}, file, indent=1)
        os.replace(self.path + ".new", self.path)
