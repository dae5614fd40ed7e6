"""GSHMEM beside NVSHMEM: one source (beside/), compiled with each; both run in turn, so that what
disturbs one meets the other too. What is compared are medians over the rounds. Targets are reported and
not enforced."""

import csv
import io
import os
import statistics

import machine

ROUNDS = 3
PROXY_ROWS = ["p", "g", "put", "fetch_add", "put_signal", "rate"]  # also through the proxy
ROUND_TRIP_NS, COMMANDS_M, OF_A_COPY = 2500, 8, 0.9
BIG = "268435456"


def more_is_better(unit):
    return unit != "ns"


def build(session, name, command):
    target = os.path.join(session.folder, "beside-" + name)
    source = os.path.join(session.root, "tests/gpu/beside/beside.cu")
    if os.path.exists(target):
        os.unlink(target)
    made = session.check(f"compile beside {name}", [*command, "-O3", source, "-o", target], 500)
    return target if made else None


def build_gshmem(session, architecture):
    return build(session, "gshmem", [session.path("runtime/tools/gshmemcc"),
                                     f"--device={session.device}", *architecture])


def build_nvshmem(session, architecture):
    folder = machine.package("nvshmem") if session.device == "cuda" else None
    if not folder:
        session.outcome("skipped", "NVSHMEM", "it is not installed" if session.device == "cuda"
                        else "this is a rehearsal, without a GPU")
        return None
    lib = os.path.join(folder, "lib")
    os.environ["LD_LIBRARY_PATH"] = lib + ":" + os.environ.get("LD_LIBRARY_PATH", "") # its modules
    return build(session, "nvshmem", [
        "nvcc", "-rdc=true", *architecture, f"-I{folder}/include", "-Xlinker",
        os.path.join(lib, "libnvshmem_device.a"), "-Xlinker", machine.library(folder, "nvshmem_host")])


def figures(session, name, target, arguments, env):
    """{(row, scope, bytes, unit): median} of one run; what it could not measure is said once."""
    seconds = session.left(300)
    if seconds < 10:
        session.outcome("not run", f"beside {name}", "the time was up")
        return {}
    status, output = session.run([target, *arguments], seconds, dict(env, GSHMEM_DEVICE=session.device))
    lines = [line for line in output.splitlines() if line.count(",") == 5]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    if status or not rows:
        session.outcome("FAILED", f"beside {name}", f"exit status {status}, {len(rows)} figures", output)
    for line in output.splitlines():
        if line not in lines:
            session.say("        | " + line, loud=False)
    return {(r["row"], r["scope"], r["bytes"], r["unit"]): float(r["median"]) for r in rows}


def medians(runs):
    keys = dict.fromkeys(key for run in runs for key in run)
    return {key: statistics.median(run[key] for run in runs if key in run) for key in keys}


def number(value):
    return "-" if value is None else f"{value:.4g}"


def verdict(good):
    return "met" if good else "MISSED"


def table(ours, theirs):
    """Lines: each figure beside the other, and whether ours is as good."""
    lines = [f"{'row':<14}{'scope':<8}{'bytes':>10}  {'unit':<5}{'GSHMEM':>11}{'NVSHMEM':>11}{'ratio':>8}"]
    for key in dict.fromkeys([*ours, *theirs]):
        row, scope, size, unit = key
        a, b = ours.get(key), theirs.get(key)
        line = f"{row:<14}{scope:<8}{size:>10}  {unit:<5}{number(a):>11}{number(b):>11}"
        if a and b and row != "copy_bw": # which is neither's
            line += f"{a / b:>8.2f}  {verdict(a >= b if more_is_better(unit) else a <= b)}"
        lines.append(line)
    return lines


def targets(mapped, proxied):
    lines = []
    copy = mapped.get(("copy_bw", "stream", BIG, "GB/s"))
    put = mapped.get(("put_bw", "blocks", BIG, "GB/s"))
    trip = proxied.get(("put", "thread", "8", "ns"))
    rate = max((v for k, v in proxied.items() if k[0] == "rate"), default=None)
    if copy and put:
        lines.append(f"put of 256 MiB by blocks: {put / copy:.2f} of a copy from device to device "
                     f"(target {OF_A_COPY}): {verdict(put >= OF_A_COPY * copy)}")
    if trip:
        lines.append(f"round trip over the proxy: {trip:.0f} ns (target {ROUND_TRIP_NS}): "
                     f"{verdict(trip <= ROUND_TRIP_NS)}")
    if rate:
        lines.append(f"commands through the proxy: {rate:.2f} M/s (target {COMMANDS_M}): "
                     f"{verdict(rate >= COMMANDS_M)}")
    return lines


def compare(session):
    architecture = ["-arch=" + machine.architecture(machine.gpus())] if session.device == "cuda" else []
    gshmem = build_gshmem(session, architecture)
    if not gshmem:
        return
    nvshmem = build_nvshmem(session, architecture)
    few = ["--samples", "1", "--most", "1024"] if session.options.rehearse else []
    rows = PROXY_ROWS[:2] if session.options.rehearse else []
    ours, theirs, proxied = [], [], []
    for _ in range(1 if session.options.rehearse else ROUNDS):
        ours.append(figures(session, "GSHMEM", gshmem, few + rows, {}))
        if nvshmem:
            theirs.append(figures(session, "NVSHMEM", nvshmem, few + rows, {"NVSHMEM_SYMMETRIC_SIZE": "2G"}))
        proxied.append(figures(session, "GSHMEM through the proxy", gshmem, few + (rows or PROXY_ROWS),
                               {"GSHMEM_MAPPED": "0"}))
    ours, theirs, proxied = medians(ours), medians(theirs), medians(proxied)
    for line in ["", "mapped", *table(ours, theirs), "", "through the proxy", *table(proxied, {}), "",
                 *targets(ours, proxied)]:
        session.say(line)
    if ours and proxied and (theirs or not nvshmem):
        session.outcome("ok", "figures of " + ("both" if nvshmem else "GSHMEM"))
