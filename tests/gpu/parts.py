"""The parts of a run: what is built, and what is then run of it."""

import concurrent.futures
import fnmatch
import os
import time

import machine
from compare import compare
from programs import EXCLUDED, HOSTS, LOCAL, PROGRAMS, unnamed

OUTPUTS = ["libgshmem.so", "bootstrap/run/gshmemrun", "runtime/tools/gshmemcc",
           "runtime/tools/gshmem-info"]


def chosen(session, part=None):
    return [p for p in PROGRAMS if part in (None, p.part)
            and any(fnmatch.fnmatch(p.name, one) for one in session.options.only)]


def executable(session, name):
    return os.path.join(session.folder, name)


# ---- Building ----


def build_library(session):
    """With what is there: no launcher's libraries, no NIC's. What is not needed here may fail."""
    if session.options.library:
        return True
    if not os.path.exists(session.path("build.ninja")):
        command = ["meson", "setup", session.build, session.root, "-Dpmix=disabled",
                   "-Dmpi=disabled", "-Dverbs=disabled", "-Dtests=false"]
        if not session.check("the library, set up", command, 120):
            return False
    status, output = session.run(["ninja", "-k", "0", "-C", session.build], session.left(300))
    missing = [o for o in OUTPUTS + ["device/cuda/gshmem-cuda.so"]
               if not os.path.exists(session.path(o))]
    if missing:
        return session.outcome("FAILED", "the library", "not built: " + ", ".join(missing), output)
    if status:
        session.outcome("FAILED", "all of the library's build", f"exit status {status}", output)
    return session.outcome("ok", "the library")


def architecture(session):
    if session.device == "ptx":
        return ["-arch=sm_90"]
    if session.device == "host":
        return []
    return ["-arch=" + machine.architecture(machine.gpus())]


def compiler(session, program):
    command = [session.path("runtime/tools/gshmemcc"), f"--device={session.device}", "-O2",
               "-I" + os.path.join(session.root, "tests"), *program.flags]
    return command + architecture(session)


def compile_one(session, program):
    target = executable(session, program.name)
    sources = [os.path.join(session.root, s) for s in [program.source, *program.more]]
    command = compiler(session, program) + sources + ["-o", target]
    if program.package:
        folder = machine.package(program.package)
        if not folder:
            return session.outcome("skipped", f"compile {program.name}",
                                   f"there is no {program.package}")
        library = machine.library(folder, program.package)
        command += [f"-I{folder}/include", "-Xlinker", library, "-Xlinker", "-rpath", "-Xlinker",
                    os.path.dirname(library)]
    if os.path.exists(target):
        os.unlink(target)
    return session.check(f"compile {program.name}", command, 400)


def build(session):
    undecided = unnamed()
    if undecided:
        session.outcome("FAILED", "programs.py", "does not name " + ", ".join(undecided))
    if not build_library(session):
        return
    begun = time.monotonic()
    slow_first = sorted(chosen(session), key=lambda p: "reduce" not in p.name)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda p: compile_one(session, p), slow_first))
    session.say(f"compiled in {time.monotonic() - begun:.0f} s on {os.cpu_count()} CPUs")
    for source, reason in EXCLUDED.items():
        session.say(f"left out {source}: {reason}", loud=False)


# ---- Running ----


def launcher(session, pes, path=None):
    command = [session.path("bootstrap/run/gshmemrun"), "-n", str(pes)]
    return command + (["--hosts", "2"] if path == HOSTS else [])


def environment(session, path):
    env = {"GSHMEM_DEVICE": "cuda" if session.device == "cuda" else "host", "GSHMEM_WATCHDOG": "20", "GSHMEM_INIT_TIMEOUT": "60"}
    if path == LOCAL:
        env["GSHMEM_MAPPED"] = "0"
    return env


def take_turns(session, pes):
    """Whether kernels of different PEs run one after another, in slices of time."""
    return session.device == "cuda" and pes > len(machine.gpus()) and not session.options.mps


def run_one(session, program, pes, path):
    target = executable(session, program.name)
    if program.own_gpu and pes > len(machine.gpus()):
        session.outcome("skipped", f"{program.name} {path} {pes} PEs", "each PE wants a GPU of its own")
        return
    if program.package and not machine.package(program.package):
        session.outcome("skipped", f"{program.name} {path} {pes} PEs", f"there is no {program.package}")
        return
    arguments = program.few if program.few and take_turns(session, pes) else program.arguments
    env = dict(environment(session, path), **program.env)
    for words in arguments:
        name = " ".join([program.name, *words, path] + ([] if program.alone else [f"{pes} PEs"]))
        if not os.path.exists(target):
            session.outcome("not run", name, "it is not there: is the part build run, and passed?")
            continue
        own = [executable(session, library) for library in program.libraries]
        start = [] if program.alone else launcher(session, pes, path)
        session.check(name, [*start, target, *own, *words], 120, env)


def run_part(part):
    def run(session):
        for program in chosen(session, part):
            for path, numbers in program.pes.items():
                for pes in numbers if program.alone else sorted(set(numbers) & session.options.pes):
                    run_one(session, program, pes, path)
    return run


def perf(session):
    """Figures, not judged here."""
    target = executable(session, "perf")
    source = os.path.join(session.root, "runtime/tools/perf/device.cu")
    command = [session.path("runtime/tools/gshmemcc"), f"--device={session.device}", "-O3",
               *architecture(session)]
    if not session.check("compile gshmem-perf-device", [*command, source, "-o", target], 400):
        return
    rounds = ["--rounds", "3"] if session.options.rehearse else []
    for path in "mapped", LOCAL:
        if session.left(60) < 10:
            session.outcome("not run", f"gshmem-perf-device {path}", "the time was up")
            continue
        status, output = session.run([*launcher(session, 2), target, *rounds], session.left(240),
                                     environment(session, path))
        session.say(output)
        session.outcome("FAILED" if status != 0 else "ok", f"gshmem-perf-device {path}",
                        "" if status == 0 else f"exit status {status}")


# ---- compute-sanitizer ----

CHECKED = [ # tool, program, arguments, PEs
    ("memcheck", "kernel-single", [], 1), ("memcheck", "kernel-single", [], 2),
    ("memcheck", "kernel-again", [], 1), ("memcheck", "kernel-contexts", [], 1),
    ("memcheck", "litmus-message", ["20"], 2), ("memcheck", "litmus-atomics", ["50"], 1),
    ("memcheck", "examples-halo2d", [], 1), ("memcheck", "examples-alltoallv", [], 2),
    ("racecheck", "examples-alltoallv", [], 1), ("racecheck", "examples-halo2d", [], 1),
    ("racecheck", "device-copy", [], 1), ("synccheck", "kernel-single", [], 1),
    ("synccheck", "examples-halo2d", [], 1), ("initcheck", "examples-ring", [], 1),
]


def sanitizer(session):
    if session.device != "cuda":
        session.outcome("skipped", "compute-sanitizer", "this is a rehearsal, without a GPU")
        return
    tool = machine.output("compute-sanitizer", "--version")
    if not tool:
        session.outcome("skipped", "compute-sanitizer", "it is not installed")
        return
    wanted = {p.name for p in chosen(session)}
    for which, name, words, pes in CHECKED:
        if name not in wanted:
            continue
        target = executable(session, name)
        if not os.path.exists(target):
            session.outcome("not run", f"{which} {name}", "it is not there")
            continue
        # A PE alone needs no launcher, and so no descriptors that would have to be passed on.
        start = launcher(session, pes) if pes > 1 else []
        for path in "mapped", LOCAL:
            session.check(f"{which} {name} {path} {pes} PEs",
                          [*start, "compute-sanitizer", "--tool", which, "--error-exitcode", "9",
                           target, *words], 150, environment(session, path))


PARTS = {
    "build": build,
    **{part: run_part(part) for part in ["device", "tests", "litmus", "nvshmem", "examples"]},
    "perf": perf,
    "compare": compare,
    "sanitizer": sanitizer,
}
