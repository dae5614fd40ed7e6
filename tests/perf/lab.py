"""What the comparisons of this folder share: how each library's program is started, the values that
were measured, tables of them, and the files they go to."""
import csv
import datetime
import io
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20


def in_turn(names, round_):
    """The names, another one first in each round: a machine that slows down in waves else finds the same
    library at the same place of each."""
    names = list(names)
    first = round_ % len(names)
    return names[first:] + names[:first]


class Lab:
    """Where things are, and how each library's program is started."""

    def __init__(self, options):
        build = pathlib.Path(options.build).resolve()
        self.build = build
        self.perf = build / "runtime/tools/perf/gshmem-perf"
        self.run = build / "bootstrap/run/gshmemrun"
        self.twin = build / "tests/perf"
        self.mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
        self.skipped = []
        self.env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                        SHMEM_SYMMETRIC_SIZE="256M")

    def launcher(self, how, n):
        """The command that starts n PEs the way `how`, or None with a line in skipped."""
        cores = os.cpu_count() or 1
        mpirun = [self.mpirun, "-n", str(n)]
        mpirun += ["--bind-to", "core"] if n <= cores else ["--oversubscribe", "--bind-to", "none"]
        if how in ("gshmem", "shmem"):
            need, command = self.run, [self.run, "-n", str(n)]
            command += ["--bind", "core"] if n <= cores else []
        else:
            need, command = self.mpirun, mpirun
        if how == "oshmem":  # without it, it crashes at the end
            command += ["--mca", "opal_common_ucx_opal_mem_hooks", "0"]
        elif how == "mpi":   # its fastest component within a host
            command += ["--mca", "osc", "sm"]
        if not need or not os.path.exists(need):
            self.skip(f"{how}: {need or 'mpirun'} is not there")
            return None
        return [str(c) for c in command]

    def program(self, how, kind):
        library = {"gshmem-mpirun": "gshmem"}.get(how, how)
        path = self.perf if (library, kind) == ("gshmem", "perf") else self.twin / f"{library}-{kind}"
        if not path.exists():
            self.skip(f"{how}: {path} is not built")
            return None
        return str(path)

    def command(self, how, n, kind, *arguments):
        launcher, program = self.launcher(how, n), self.program(how, kind)
        return launcher + [program, *arguments] if launcher and program else None

    def skip(self, why):
        if why not in self.skipped:
            self.skipped.append(why)
            print(f"# skipped: {why}", file=sys.stderr)

    def output(self, command, limit=120):
        """What it printed, or None with a line in skipped."""
        if not command:
            return None
        try:
            done = subprocess.run(["timeout", "-k", "5", str(limit), *command], env=self.env,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
        except OSError as error:
            self.skip(f"{command[0]}: {error}")
            return None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["said nothing"])[-1]
            self.skip(f"{' '.join(command)}: exit status {done.returncode}: {last}")
            return None
        return done.stdout


class Values:
    """Every value measured: by (how, pes, benchmark, size, statistic), a list over the rounds."""

    def __init__(self):
        self.of = {}
        self.raw = []

    STATISTICS = ("median", "min", "p99", "mean")  # the last not everywhere

    def add(self, round_, how, pes, benchmark, size, unit, **found):
        self.raw.append([round_, how, pes, benchmark, size or "", unit,
                         *(found.get(s, "") for s in self.STATISTICS)])
        for statistic, value in found.items():
            self.of.setdefault((how, pes, benchmark, size, statistic), []).append(float(value))

    def add_csv(self, round_, how, text):
        for row in csv.DictReader(io.StringIO(text)):
            self.add(round_, how, int(row["pes"]), row["benchmark"],
                     int(row["size"]) if row.get("size") else None, row["unit"],
                     **{s: row[s] for s in self.STATISTICS if s in row})

    def write(self, file):
        writer = csv.writer(file)
        writer.writerow(["round", "library", "pes", "benchmark", "size", "unit", *self.STATISTICS])
        writer.writerows(self.raw)

    def read(self, lines):
        """What `write` has written."""
        for row in csv.DictReader(lines):
            found = {s: row[s] for s in self.STATISTICS if row.get(s)}
            self.add(row["round"], row["library"], int(row["pes"]), row["benchmark"],
                     int(row["size"]) if row["size"] else None, row["unit"], **found)

    def median(self, how, pes, benchmark, size=None, statistic="median"):
        values = self.of.get((how, pes, benchmark, size, statistic))
        return statistics.median(values) if values else None


def control_of_ours():
    """What GSHMEM takes in place of the system's (congestion.c there); None: the system's."""
    with open("/proc/sys/net/ipv4/tcp_congestion_control") as system:
        if not system.read().startswith("bbr"):
            return None
    return "cubic" if os.geteuid() == 0 else "reno"


def with_our_control(build):
    """In front of a peer's command."""
    control = control_of_ours()
    return ["env", f"LD_PRELOAD={build}/tests/perf/libcontrol.so", f"TCP_CONTROL={control}"] if control else []


def first_line(command):
    try:
        text = subprocess.run(command, capture_output=True, text=True).stdout
    except OSError:
        return "not there"
    return text.splitlines()[0] if text else "not there"


def preamble(lab, options):
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo")
                if line.startswith("model name")), platform.processor())
    commit = first_line(["git", "-C", str(HERE), "describe", "--always", "--dirty", "--abbrev=10"])
    return commit, "\n".join([
        f"date     {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        f"commit   {commit}",
        f"machine  {cpu}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}",
        f"peers    {first_line([lab.mpirun or 'mpirun', '--version'])}; OSHMEM over UCX "
        f"{first_line(['pkg-config', '--modversion', 'ucx'])}, MPI RMA with --mca osc sm",
        f"rounds   {options.rounds}, interleaved; values are medians over the rounds",
    ])


def load():
    return " ".join(f"{l:.2f}" for l in os.getloadavg())


def number(value, unit):
    if value is None:
        return "-"
    if unit == "ns" and abs(value) >= 1e6:
        return f"{value / 1e6:.2f} ms"
    if unit == "ns" and abs(value) >= 1e4:
        return f"{value / 1e3:.1f} us"
    return f"{value:.2f} {unit}" if value < 1000 else f"{value:.0f} {unit}"


def verdict(met):
    return "-" if met is None else "met" if met else "MISSED"


def layout(head, rows):
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    return "\n".join("  ".join(f"{c:{'<' if i < 2 or i == 3 else '>'}{w}}"
                               for i, (c, w) in enumerate(zip(r, widths))).rstrip()
                     for r in [head, *rows])


def keep(folder, name, text, values):
    """The table and every value, in files named by date and `name`; '' for no folder."""
    if not folder:
        return
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    stem = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d-%H%M}-{name}"
    (out / f"{stem}.txt").write_text(text)
    with open(out / f"{stem}.csv", "w", newline="") as file:
        values.write(file)
