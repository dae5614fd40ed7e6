"""tests/gpu/run.sh: see there."""

import argparse
import datetime
import os
import sys

import machine
import parts
from session import Session

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def parse():
    p = argparse.ArgumentParser(prog="tests/gpu/run.sh", description=f"""Parts, in this order:
        {", ".join(parts.PARTS)}. Without one, all of them. Those after build run what it compiled.""")
    p.add_argument("part", nargs="*", help="only these")
    p.add_argument("--minutes", type=float, help="what has not ended then is stopped; that is no success")
    p.add_argument("--report", help="is appended to (tests/gpu/results/DATE-COMMIT.txt)")
    p.add_argument("--pes", default="1,2,4", help="numbers of PEs (1,2,4)")
    p.add_argument("--only", default="*", help="programs, as kernel-single,examples-*")
    p.add_argument("--build", default=os.path.join(ROOT, "build-gpu"), help="build tree (build-gpu)")
    p.add_argument("--library", help="another build tree, whose library is used as it is")
    p.add_argument("--mps", action="store_true", help="start NVIDIA's multi-process service meanwhile")
    p.add_argument("--rehearse", action="store_true", help="the same without a GPU, on the host device")
    p.add_argument("--device", choices=["host", "ptx"],
                   help="for that: what compiles kernels, the CPU's compiler, or nvcc (ptx, where it is)")
    options = p.parse_args()
    if options.device and not options.rehearse:
        p.error("--device is for --rehearse")
    if not options.device:
        options.device = "cuda" if not options.rehearse else machine.device_of_rehearsal()
    unknown = [name for name in options.part if name not in parts.PARTS]
    if unknown:
        p.error(f"no part {', '.join(unknown)}; there are {', '.join(parts.PARTS)}")
    try:
        options.pes = {int(n) for n in options.pes.split(",")}
    except ValueError:
        p.error(f"--pes {options.pes}: expected numbers, as 1,2,4")
    options.only = options.only.split(",")
    options.build = os.path.abspath(options.build)
    options.library = options.library and os.path.abspath(options.library)
    return options


def commit():
    return machine.output("git", "-C", ROOT, "describe", "--always", "--dirty") or "unknown"


def preamble(session, now):
    say = session.say
    say(f"GSHMEM {commit()} on {os.uname().nodename}, {now:%Y-%m-%d %H:%M} UTC")
    if session.options.rehearse:
        say("A REHEARSAL on the host device: nothing here has run on a GPU")
        if session.device == "ptx":
            say("kernels are nvcc's PTX: " + (machine.output("nvcc", "--version") or "").splitlines()[-1])
        return
    for name, driver, memory, capability in machine.gpus():
        say(f"GPU {name}, {memory}, compute capability {capability}, driver {driver}")
    say((machine.output("nvcc", "--version") or "no nvcc").splitlines()[-1])
    info = session.path("runtime/tools/gshmem-info")
    if os.path.exists(info):
        say(session.run([info], 60, {"GSHMEM_DEVICE": "cuda"})[1], loud=False)
    pes = max(session.options.pes)
    if parts.take_turns(session, pes):
        say(f"{pes} PEs are more than GPUs: those that share one take turns, a slice of time each")
    if session.options.mps:
        say("under NVIDIA's multi-process service")


def main():
    options = parse()
    why_not = machine.missing(options.rehearse)
    if why_not:
        print(f"SKIP: {why_not}")
        return 77
    now = datetime.datetime.now(datetime.timezone.utc)
    if not options.report:
        options.report = os.path.join(HERE, "results", f"{now:%Y-%m-%d-%H%M}-{commit()}.txt")
    os.makedirs(os.path.dirname(os.path.abspath(options.report)), exist_ok=True)
    session = Session(options, ROOT, options.device)
    service = None
    try:
        if options.mps:
            service = machine.Mps(session.folder)
        preamble(session, now)
        for part in options.part or parts.PARTS:
            session.say(f"\n---- {part} ----")
            parts.PARTS[part](session)
    except RuntimeError as error:
        session.outcome("FAILED", "this run", str(error))
    finally:
        if service:
            service.end()
    return session.finish()


if __name__ == "__main__":
    sys.exit(main())
