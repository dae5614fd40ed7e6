#!/usr/bin/env python3
"""Traces, and what gshmem-trace makes of them.

    check.py PROGRAM WAY"""

import collections
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("GSHMEM_TEST_BUILD", os.path.join(HERE, "../../build"))
TRACE = os.path.join(BUILD, "runtime/trace/gshmem-trace")
RUN = os.path.join(BUILD, "bootstrap/run/gshmemrun")
HEAD = 64 * 1024  # of a file, before its chunks
CHUNK = 8192
HEAP = 1  # the number of that segment
LARGE = 20000  # bytes of a put of work.c


class Wrong(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Wrong(what)


def run(program, way, pes, folder, *options, status=0, n=1, **env):
    done = subprocess.run([RUN, "-n", str(pes), *options, program, way, str(n)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=100,
                          env=dict(os.environ, GSHMEM_TRACE=folder, **env))
    expect(status is None or done.returncode == status,
           f"{way} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stderr


def trace(*arguments, status=0, remarks=False):
    """What it prints; what it remarks if it fails, or if that is asked for."""
    done = subprocess.run([TRACE, *arguments], capture_output=True, text=True, timeout=100)
    expect(done.returncode == status, f"gshmem-trace {' '.join(arguments)}: {done.returncode}: {done.stderr}")
    return done.stdout if status == 0 and not remarks else done.stderr


def picture(folder):
    """The events, as they would be drawn; checked for what any of them has to have."""
    path = os.path.join(folder, "job.json")
    trace(folder, "-o", path)
    with open(path, encoding="utf-8") as file:
        drawn = json.load(file)
    for e in drawn["traceEvents"]:
        expect(e["ph"] in "XMstf" and isinstance(e["pid"], int) and isinstance(e["tid"], int), f"an event {e}")
        if e["ph"] == "X":
            expect(e["ts"] >= 0 and e["dur"] >= 0 and e["name"], f"a slice {e}")
    return drawn


def slices(drawn, category):
    return [e for e in drawn["traceEvents"] if e["ph"] == "X" and e["cat"] == category]


def attempts(folder, once):
    """On a busy machine a PE may be late that is not meant to be, and then the trace says so, which is right:
    some attempts are made."""
    for _ in range(4):
        try:
            return once()
        except Wrong:
            shutil.rmtree(folder)
    return once()


def operations(drawn):
    """{id: its steps, by time}"""
    found = collections.defaultdict(list)
    for e in slices(drawn, "operation"):
        found[e["args"]["id"]].append(e)
    return {i: sorted(steps, key=lambda e: e["ts"]) for i, steps in found.items()}


def check_arrows(drawn, flows):
    """An arrow begins, and ends, for each operation of several steps, at steps that are there."""
    places = {(e["pid"], e["tid"], e["ts"]) for e in slices(drawn, "operation")}
    arrows = collections.defaultdict(str)
    for e in drawn["traceEvents"]:
        if e["ph"] in "stf":
            arrows[e["id"]] += e["ph"]
            if (e["pid"], e["tid"], e["ts"]) not in places:
                raise Wrong(f"an arrow from nowhere: {e}")
    for i, steps in flows.items():
        if len(arrows[i]) != (len(steps) if len(steps) > 1 else 0) or not re.fullmatch("(st*f)?", arrows[i]):
            raise Wrong(f"operation {i}: {steps}, arrows {arrows[i]}")


def check_operation(steps, remote, pes):
    """One that PE p made: it was carried out once, in the memory of the PE on its right, and in order."""
    names = [e["name"].split(": ")[1] for e in steps]
    first = steps[0]
    target = (first["pid"] + 1) % pes
    if not remote:
        expect(names == ["copied"] and first["args"]["peer"] == target, f"mapped: {steps}")
        return
    expect(names[0] == "posted" and names[-1] == "done" and names.count("carried out") == 1 and
           names.count("queued for the network") == 1, f"over the network: {steps}")
    effect = steps[names.index("carried out")]
    expect(effect["pid"] == target and effect["args"]["peer"] == first["pid"], f"carried out elsewhere: {steps}")
    expect(effect["args"]["offset"] == first["args"]["offset"] and effect["args"]["bytes"] == first["args"]["bytes"],
           f"another object: {steps}")
    if "signal updated" in names:
        expect(names.index("signal updated") > names.index("carried out"), f"the signal is first: {steps}")


def way_operations(program, folder):
    """Each operation is there once, with all of its steps."""
    n, pes = 20, 4
    for options, crosses in (([], False), (["--hosts", "2"], True)):
        run(program, "operations", pes, folder, *options, n=n)
        drawn = picture(folder)
        flows = operations(drawn)
        check_arrows(drawn, flows)
        made = collections.Counter()
        for steps in flows.values():
            pe = steps[0]["pid"]
            remote = crosses and pe % 2 == 1
            if steps[0]["args"].get("segment") == HEAP:  # others are the library's own
                check_operation(steps, remote, pes)
                made[pe, steps[0]["name"].split(":")[0]] += 1
        for pe in range(pes):
            remote = crosses and pe % 2 == 1
            counts = {op: made[pe, op] for op in ("put", "get", "atomic", "signal")}
            # over the network a put and its signal are one operation
            expect(counts["put"] == 3 * n and counts["get"] == n and counts["atomic"] == 2 * n and
                   counts["signal"] == (0 if remote else n), f"PE {pe}, {options}: {counts}")
        calls = collections.Counter(e["name"] for e in slices(drawn, "call"))
        expect(calls["a step"] == pes * n, f"ranges of the program: {calls}")
        expect(calls["gshmem_barrier_all"] == pes, f"calls: {calls}")
        shutil.rmtree(folder)


def path_of(folder, least):
    """The PEs of the critical path in which something was computed for so many ms, in order."""
    said = trace(folder, "--critical-path")
    return [int(pe) for ms, pe in re.findall(r"^ *[\d.]+ +([\d.]+) ms  PE (\d+) computes$", said, re.M)
            if float(ms) >= least], said


def is_part(part, whole):
    """Whether all of it comes in the whole, in its order: on a busy machine other things take long, too."""
    rest = iter(whole)
    return all(any(x == y for y in rest) for x in part)


def way_kernels(program, folder):
    """An operation of a kernel begins on the track of its block, and goes through the proxy to its target. There are
    more of them than a channel has slots."""
    n, pes, blocks = 280, 2, 3
    for options, crosses in (([], False), (["--hosts", "2"], True)):
        run(program, "operations", pes, folder, *options, n=n, GSHMEM_TRACE_SIZE="32M")
        drawn = picture(folder)
        flows = operations(drawn)
        check_arrows(drawn, flows)
        tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in drawn["traceEvents"] if e["name"] == "thread_name"}
        made = collections.Counter()
        for steps in flows.values():
            names = [e["name"].split(": ")[1] for e in steps]
            if "posted by a kernel" not in names or names == ["posted by a kernel"]:
                continue  # of the host, or a command that is no operation
            first, target = steps[0], (steps[0]["pid"] + 1) % pes
            block = first["args"]["block"]
            effect = steps[names.index("carried out" if crosses else "copied")]
            if names[:2] != ["posted by a kernel", "taken by the proxy"] or names.count("done") != 1 or \
                    (effect["pid"] if crosses else effect["args"]["peer"]) != target or \
                    tracks[first["pid"], first["tid"]] != f"block {block} of kernels":
                raise Wrong(f"an operation of block {block}: {steps}")
            made[first["pid"], block, "signal updated" in names] += 1
        for pe in range(pes):
            for block in range(blocks):
                expect(made[pe, block, False] == 2 * n + 1 and made[pe, block, True] == n, f"PE {pe}, block {block}: {made}")
        said = trace(folder, "--summary")
        expect("not carried out" not in said, said)
        shutil.rmtree(folder)


def way_large(program, folder):
    """A command that finds no room is taken once, whenever that is."""
    n, pes = 2, 2
    run(program, "large", pes, folder, n=n, GSHMEM_MAPPED="0")
    taken = collections.Counter()
    for steps in operations(picture(folder)).values():
        names = [e["name"].split(": ")[1] for e in steps]
        if names[0] == "posted by a kernel" and any(e["args"].get("bytes", 0) >= 1 << 20 for e in steps):
            taken[steps[0]["pid"]] += names.count("taken by the proxy")
    expect(taken == {pe: n for pe in range(pes)}, f"taken by the proxies: {taken}")


def named(drawn):
    """{a track: its name}"""
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in drawn["traceEvents"] if e["name"] == "thread_name"}


def on_track(drawn, pe, track, category):
    names = named(drawn)
    return [e for e in slices(drawn, category) if e["pid"] == pe and names[e["pid"], e["tid"]] == track]


def one(found, what):
    expect(len(found) == 1, f"{what}: {found}")
    return found[0]


def waits_of(drawn, pe, block):
    """Of all threads of a block: a barrier of the block is one wait, of the thread that has come last."""
    names = named(drawn)
    return [e for e in slices(drawn, "wait") if e["pid"] == pe and names[pe, e["tid"]].startswith(block)]


def exposed_of(drawn, pe):
    """How long, in us, the main thread was in calls and no block of a kernel did anything but wait for PEs, where
    it was not only a kernel that began or ended that the call was for."""
    edges, names = [], named(drawn)  # (time, +1 or -1, in what)
    for e in on_track(drawn, pe, "main thread", "call") + on_track(drawn, pe, "main thread", "round"):
        for what in ("call",) if e["name"] == "waits for kernels" else ("call", "own"):
            edges += [(e["ts"], 1, what), (e["ts"] + e["dur"], -1, what)]
    for block in slices(drawn, "block"):
        if block["pid"] == pe:
            for what in ("block", "own"):
                edges += [(block["ts"], 1, what), (block["ts"] + block["dur"], -1, what)]
            for e in waits_of(drawn, pe, names[pe, block["tid"]]):
                edges += [(e["ts"], -1, "block"), (e["ts"] + e["dur"], 1, "block")]
    total, since, now = 0.0, 0.0, {"call": 0, "block": 0, "own": 0}
    for time, by, of in sorted(edges):
        if now["call"] and now["own"] and not now["block"]:
            total += time - since
        now[of] += by
        since = time
    return total


def shares(said):
    """{a PE: its total in us, and the exposed part of it}"""
    rows = re.findall(r"^ *(\d+) +([\d.]+) +[\d.]+% +[\d.]+% +[\d.]+% +([\d.]+)%", said, re.M)
    return {int(pe): (float(ms) * 1e3, float(ms) * float(percent) * 10) for pe, ms, percent in rows}


def check_blocks(drawn, kernel, blocks):
    """Each PE has run the kernel once, with that many blocks, all of them within it."""
    for pe in (0, 1):
        whole = one(on_track(drawn, pe, "kernels", "kernel"), "launches")
        expect(whole["name"] == kernel and whole["args"]["blocks"] == blocks, f"the launch: {whole}")
        for block in range(blocks):
            part = one(on_track(drawn, pe, f"block {block} of kernels", "block"), f"block {block}")
            expect(part["name"] == kernel and whole["ts"] <= part["ts"] and
                   part["ts"] + part["dur"] <= whole["ts"] + whole["dur"], f"{part} is not in {whole}")


def check_waits(folder, way, kernel, blocks):
    drawn = picture(folder)
    check_blocks(drawn, kernel, blocks)
    said = trace(folder, "--summary")
    late = 1 if way == "meet" else 0  # the PE that the other one waits for
    waits = waits_of(drawn, 1 - late, "block 0 of kernels")
    wait = one([e for e in waits if e["args"]["ended by"] == late], f"waits in {waits}, {way}")
    expect(wait["dur"] > 10000 and wait["name"] == ("a collective" if way == "meet" else "wait_until"), f"{wait}")
    expect(re.search(rf"PE {1 - late} in {wait['name']} \(kernel {kernel}, block 0, thread \d\).*: "
                     rf"ended by a \w+ of PE {late}$", said, re.M), said)
    flow = operations(drawn)[wait["args"]["id"]]
    expect(flow[0]["pid"] == late and flow[0]["ts"] <= wait["ts"] + wait["dur"], f"{flow} has not ended {wait}")
    if way != "meet":
        for pe in (0, 1):
            inside = one(on_track(drawn, pe, "block 0 of kernels", "call"), "ranges of the kernel")
            expect(inside["name"] == "in block 0", f"a range: {inside}")
    if way == "signal":
        expect(shares(said)[1][1] > 0.9 * wait["dur"], f"{wait} is exposed:\n{said}")
    for pe, (total, found) in shares(said).items():
        right = exposed_of(drawn, pe)
        expect(abs(found - right) <= 0.004 * total + 100, f"PE {pe}: exposed {right} us, not {found}:\n{said}")


def way_waits(program, folder):
    """Waits of kernels: which PE has ended them, and how much of them nothing overlaps."""
    for way, kernel, blocks in (("signal", "wait_for_signal", 1), ("beside", "wait_for_signal", 2),
                                ("host", "wait_for_signal", 1), ("meet", "meet", 1)):
        def once():
            run(program, way, 2, folder)
            check_waits(folder, way, kernel, blocks)

        attempts(folder, once)
        shutil.rmtree(folder)


def way_short(program, folder):
    """Waits of a few polls: each is there, within its block, and one after the other."""
    n = 200
    run(program, "short", 1, folder, n=n)
    drawn = picture(folder)
    block = one(on_track(drawn, 0, "block 0 of kernels", "block"), "blocks")
    waits = sorted((e["ts"], e["ts"] + e["dur"]) for e in on_track(drawn, 0, "block 0 of kernels", "wait")
                   if e["name"] == "wait_until")
    expect(len(waits) == n, f"{len(waits)} waits, and {n} were made")
    # json has whole ns
    expect(all(end <= after + 0.002 for (_, end), (after, _) in zip(waits, waits[1:])), f"waits in waits: {waits}")
    expect(block["ts"] <= waits[0][0] and waits[-1][1] <= block["ts"] + block["dur"], f"waits outside of {block}: {waits}")


def way_outlive(program, folder):
    """A short wait in a collective of a team that the program has freed when the wait is told."""
    run(program, "outlive", 1, folder)
    waits = [e for e in on_track(picture(folder), 0, "block 0 of kernels", "wait")
             if e["name"] in ("a collective", "wait_until")]
    expect(one(waits, "waits")["name"] == "a collective", f"{waits}")


def check_named(folder, name, least):
    """So many threads of a block have waited for that, and no wait is taken for another."""
    drawn = picture(folder)
    for pe in (0, 1):
        waits = waits_of(drawn, pe, "block 0 of kernels")
        long = [e for e in waits if e["name"] == name and e["dur"] > 10000]
        expect(len(long) >= least and not [e for e in waits if "grid" in e["name"]], f"PE {pe}: {waits}")
    return drawn


def way_named(program, folder):
    """A wait for a response slot; those of warps for the others of their warpgroup; and of a thread that has no turn
    while its word stays."""
    for way, name, least in (("ask", "an answer", 1), ("warpgroup", "warps of a warpgroup", 3), ("look", "wait_until", 2)):
        run(program, way, 2, folder)
        drawn = check_named(folder, name, least)
        ended = {e["args"]["ended by"] for e in slices(drawn, "wait") if e["name"] == "warps of a warpgroup"}
        expect(ended <= {-1}, f"PEs {ended} have ended waits of a PE for its own warps")
        shutil.rmtree(folder)


def check_deep(drawn, track):
    """60 ranges that are kept take 5 ms, whatever number was in them; what follows is in none of them."""
    for pe in (0, 1):
        calls = on_track(drawn, pe, track, "call")
        deep = [e for e in calls if e["name"] == "deep"]
        after = one([e for e in calls if e["name"] == "after"], "ranges after the others")
        expect(len(deep) == 60, f"PE {pe}: {len(deep)} ranges")
        for e in deep:
            expect(e["dur"] >= 5000 and e["ts"] + e["dur"] <= after["ts"], f"PE {pe}: {e}, {after}")


def way_deep(program, folder):
    for depth in (64, 300):
        run(program, "deep", 2, folder, n=depth)
        check_deep(picture(folder), "block 0 of kernels" if program.endswith("kernels") else "main thread")
        shutil.rmtree(folder)


def way_ending(program, folder):
    """A thread that runs kernels does so while the job ends, and is held up as it writes into the trace."""
    run(program, "", 1, folder)
    picture(folder)


def way_ptx(source, folder):
    """The same kernels, compiled by nvcc."""
    if not shutil.which("nvcc") and not os.path.exists(os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin/nvcc"):
        print("SKIP: nvcc is not installed")
        return 77
    program = os.path.join(os.path.dirname(folder), "kernels")
    done = subprocess.run([os.path.join(BUILD, "runtime/tools/gshmemcc"), "--device=ptx", "-O1",
                           "-I" + os.path.join(HERE, ".."), source, "-o", program], capture_output=True, text=True, timeout=250)
    expect(done.returncode == 0, done.stderr)
    way_waits(program, folder)
    return 0


def way_nvtx(program, folder):
    """Ranges that the program has for NVIDIA's profilers, nested as they are, by the module that takes them."""
    run(program, "", 2, folder, NVTX_INJECTION64_PATH=os.path.join(BUILD, "runtime/trace/gshmem-nvtx.so"))
    check_ranges(picture(folder), ["plain", "wide", "by attributes", "by attributes", "registered"])


def way_nvtx_host(program, folder):
    """The same of a program for the host device, by our own header."""
    run(program, "", 2, folder)
    check_ranges(picture(folder), ["plain", "by attributes", "by attributes", "(a range of NVTX)"])


def check_ranges(drawn, wanted):
    for pe in (0, 1):
        found = sorted(on_track(drawn, pe, "main thread", "call"), key=lambda e: e["ts"])
        found = [e for e in found if not e["name"].startswith("gshmem_")]
        expect([e["name"] for e in found] == wanted, f"ranges of PE {pe}: {found}")
        barrier = one([e for e in on_track(drawn, pe, "main thread", "call") if e["name"] == "gshmem_barrier_all"], "barriers")
        inner = found[-1]
        expect(all(outer["ts"] <= inner["ts"] <= barrier["ts"] and
                   barrier["ts"] + barrier["dur"] <= inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
                   for outer in found), f"they do not nest: {found}, {barrier}")


def way_simulated(program, folder):
    """Kernels that a simulated driver launches, in the jobs that the program has one after the other."""
    env = dict(os.environ, GSHMEM_TRACE=folder, GSHMEM_DEVICE="cuda", GSHMEM_LOG="none",
               LD_LIBRARY_PATH=os.path.join(BUILD, "tests/cuda"))
    done = subprocess.run([RUN, "-n", "2", program], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, env=env)
    expect(done.returncode == 0, done.stderr)
    out, waits = os.path.join(folder, "job.json"), []
    for job in {name.split("-")[1] for name in os.listdir(folder)}:
        trace(folder, "--job", job, "-o", out)
        with open(out, encoding="utf-8") as file:
            drawn = json.load(file)
        for pe in (0, 1):
            launches = on_track(drawn, pe, "kernels", "kernel")
            blocks = on_track(drawn, pe, "block 0 of kernels", "block")
            expect(len(launches) > 10 and {e["name"] for e in launches + blocks} == {"gshmem_perform"} and
                   len(blocks) == len(launches), f"PE {pe}: {len(launches)} launches, {len(blocks)} blocks")
            waits += [e for e in waits_of(drawn, pe, "block 0 of kernels")
                      if e["name"] == "a collective" and e["args"]["ended by"] == 1 - pe]
    expect(waits, "no kernel has waited in a collective")


def check_length(folder, said):
    """The path is as long as the job, by the times in the files, and has no gap."""
    heads = [open(path, "rb").read(HEAD) for path in files(folder).values()]
    begun, ended = ([struct.unpack_from("<Q", head, at)[0] for head in heads] for at in (32, 56))
    right = (max(ended) - min(begun)) / 1e6
    total = float(re.search(r"^Critical path: ([\d.]+) ms", said, re.M)[1])
    rows = [(float(at), float(ms)) for at, ms in re.findall(r"^ *([\d.]+) +([\d.]+) ms  PE", said, re.M)]
    expect(abs(sum(ms for _, ms in rows) - total) < 0.01 * total, f"its parts are not the path:\n{said}")
    for (at, ms), (after, _) in zip(rows, rows[1:]):
        expect(abs(at + ms - after) < 0.01, f"a gap at {after} ms:\n{said}")
    expect(total <= 1.001 * right and total >= 0.99 * right - begun_apart(begun), f"{total} ms of a job of {right} ms:\n{said}")


def begun_apart(begun):
    """PEs begin at different times, in ms, of which the path has one."""
    return (max(begun) - min(begun)) / 1e6


def way_path(program, folder):
    """Made jobs, whose critical path is known."""
    for way, ms, pes, options, expected in (
            ("chain", 20, 4, [], [0, 1, 2, 3]), ("chain", 20, 4, ["--hosts", "2"], [0, 1, 2, 3]),
            ("rounds", 30, 3, [], [0, 1, 2]), ("rounds", 30, 3, ["--hosts", "3"], [0, 1, 2]),
            ("teams", 30, 3, [], [1, 2]),
            ("reduce", 30, 3, [], [2, 0]), ("back", 15, 2, ["--hosts", "2"], [0, 1, 0, 1]),
            ("alone", 60, 3, [], [0])):
        def once():
            run(program, way, pes, folder, *options)
            found, said = path_of(folder, ms)
            expect(is_part(expected, found), f"{way} {options}: over PEs {found}, not {expected}:\n{said}")
            check_length(folder, said)

        attempts(folder, once)
        shutil.rmtree(folder)


def way_summary(program, folder):
    """The longest wait, and who ended it."""
    def alone():
        run(program, "alone", 3, folder)
        said = trace(folder, "--summary")
        longest = said.partition("The longest waits\n")[2].splitlines()[0]
        expect(re.search(r"PE [12] in gshmem_barrier_all.*: PE 0 arrived last", longest), said)

    def chain():
        run(program, "chain", 3, folder, "--hosts", "3")
        said = trace(folder, "--summary")
        expect(re.search(r"PE 2 in signal_wait_until.*: ended by a signal of PE 1", said), said)
        expect("not carried out" not in said, said)

    def within():
        """What a PE computes in a range of its own is no communication."""
        run(program, "within", 2, folder, n=300)
        computes = numbers(folder)["PEs"][0]["computes_ns"] / 1e6
        expect(computes >= 300, f"PE 0 computes for 300 ms, and not for {computes} ms")

    for once in (alone, chain, within):
        attempts(folder, once)
        shutil.rmtree(folder)


def numbers(folder):
    """Of the summary, as JSON."""
    path = os.path.join(folder, "numbers.json")
    trace(folder, "--numbers", path)
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    said = shares(trace(folder, "--summary"))
    expect(found["gshmem_trace"] == 1 and [pe["pe"] for pe in found["PEs"]] == sorted(said), f"{found}, {said}")
    for pe in found["PEs"]:
        total, exposed = said[pe["pe"]]
        expect(abs(pe["total_ns"] / 1e3 - total) <= 1 and abs(pe["exposed_ns"] / 1e3 - exposed) <= 0.001 * total + 1 and
               pe["computes_ns"] == pe["total_ns"] - pe["exposed_ns"], f"not what the summary says: {pe}, {said}")
    return found


def files(folder):
    return {int(name.rpartition("-")[2][:-6]): os.path.join(folder, name)
            for name in os.listdir(folder) if name.endswith(".trace")}


def way_lost(program, folder):
    """The target of one operation does not carry it out: this one is named."""
    run(program, "operations", 2, folder, "--hosts", "2", n=20)
    with open(files(folder)[1], "r+b") as file:
        data = bytearray(file.read())
        effects = []
        for at in range(HEAD, len(data), CHUNK):
            for e in range(254):
                place = at + 64 + 32 * e
                time, event, _, _, kind = struct.unpack_from("<QQQII", data, place)
                if time and kind >> 27 == EFFECT:
                    effects.append((place, event))
        place, event = effects[7]
        struct.pack_into("<QI", data, place + 8, 0, 0)
        struct.pack_into("<I", data, place + 28, 0)
        file.seek(0)
        file.write(data)
    said = trace(folder, "--summary")
    expect(f"1 operations were sent and not carried out" in said and f"(id {event:x})" in said,
           f"id {event:x}:\n{said}")


def number_of(what):
    with open(os.path.join(HERE, "../../runtime/trace/format.h"), encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    names = re.search(r"enum trace_what \{(.*?)\}", text, re.S)[1]
    return [name.strip() for name in names.split(",")].index(what)


EFFECT = number_of("TRACE_EFFECT")


def set_clock(path, boot, ahead, drift):
    """The PE is on another machine, whose clock is ahead, and runs faster by a share."""
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        begun = struct.unpack_from("<Q", data, 32)[0]
        for at in [32, 56] + list(range(HEAD + 16, len(data), CHUNK)):  # begun_ns, ended_ns, and each chunk's
            ns = struct.unpack_from("<Q", data, at)[0]
            struct.pack_into("<Q", data, at, int(ns + ahead + (ns - begun) * drift) if ns else 0)
        data[80:88] = boot  # of the text that names the machine's start
        file.seek(0)
        file.write(data)


def way_clocks(program, folder):
    """PE 1 has a clock of its own: the steps of operations are in order all the same."""
    for way, n, ahead, drift in (("operations", 20, 3 * 10**9, 0), ("long", 250, -3 * 10**9, 2e-3)):
        def once():
            run(program, way, 2, folder, "--hosts", "2", n=n)
            set_clock(files(folder)[1], b"01234567", ahead, drift)
            drawn = picture(folder)
            expect(drawn["otherData"]["clocks"] == 2, f"{drawn['otherData']}")
            error = drawn["otherData"]["clock error in ns"]
            expect(0 <= error < 5 * 10**5, f"the clocks are compared to within {error} ns")
            return drawn, error

        drawn, error = attempts(folder, once)
        for steps in operations(drawn).values():
            at = {e["name"].split(": ")[1]: e["ts"] * 1e3 for e in steps}
            if "carried out" in at and "posted" in at and "done" in at:
                expect(at["posted"] - error <= at["carried out"] <= at["done"] + error, f"out of order: {steps}")
        shutil.rmtree(folder)


def way_killed(program, folder):
    run(program, "killed", 3, folder, status=None, n=300)
    drawn = picture(folder)
    made = sum(e["pid"] == 1 and e["name"] == "put: copied" for e in slices(drawn, "operation"))
    expect(made == 300, f"{made} of 300 puts of the PE that was killed")
    said = trace(folder, "--summary")
    expect(re.search(r"^ +1 .*ended without gshmem_finalize", said, re.M), said)


def way_running(program, folder):
    """A trace is read while its PE goes on to write it, and ends."""
    job = subprocess.Popen([RUN, "-n", "1", program, "operations", "60000"], stdin=subprocess.DEVNULL,
                           env=dict(os.environ, GSHMEM_TRACE=folder, GSHMEM_TRACE_SIZE="64M"))
    readings = 0
    while job.poll() is None:
        done = subprocess.run([TRACE, folder, "--summary"], capture_output=True, text=True, timeout=100)
        # before the file has its head there is nothing to read
        expect(done.returncode == 0 or (done.returncode == 1 and readings == 0), f"{done.returncode}: {done.stderr}")
        readings += done.returncode == 0
    expect(job.returncode == 0, f"the job ended with {job.returncode}")
    trace(folder, "--summary")


def way_full(program, folder):
    """A ring that is smaller than what there is to write: the newest events stay."""
    run(program, "many", 2, folder, n=100000, GSHMEM_TRACE_SIZE="1M")
    path = os.path.join(folder, "job.json")
    done = subprocess.run([TRACE, folder, "-o", path], capture_output=True, text=True, timeout=100)
    expect(done.returncode == 0 and "oldest" in done.stderr and "GSHMEM_TRACE_SIZE" in done.stderr, done.stderr)
    with open(path, encoding="utf-8") as file:
        drawn = json.load(file)
    last = {e["pid"] for e in slices(drawn, "call") if e["name"] == "gshmem_barrier_all"}
    expect(last == {0, 1}, f"the end is there of PEs {last}")
    expect(os.path.getsize(files(folder)[0]) <= 1 << 20, "the file is larger than was asked for")
    shutil.rmtree(folder)
    n = 100000
    run(program, "laps", 1, folder, n=n, GSHMEM_TRACE_SIZE="1M")
    said = trace(folder, "--summary", remarks=True)
    gone = int(re.search(r"the oldest (\d+) events were overwritten", said)[1])
    there = events_in(files(folder)[0])
    expect(abs(gone + there - 2 * (n + 3)) < 200, f"{gone} events are gone and {there} are there, of {n + 3} ranges")


def events_in(path):
    with open(path, "rb") as file:
        data = file.read()
    return sum(struct.unpack_from("<I", data, at + 32)[0] for at in range(HEAD, len(data) - CHUNK + 1, CHUNK)
               if struct.unpack_from("<Q", data, at)[0])


def way_forked(program, folder):
    run(program, "forked", 2, folder)
    names = {e["name"] for e in slices(picture(folder), "call")}
    expect("the parent" in names and "the child" not in names, f"{names}")


def way_input(program, folder):
    """What is no trace, or not all of one, gets one line."""
    def refused(what, *arguments, status=1):
        said = trace(*arguments, status=status)
        expect(what in said and said.startswith("gshmem-trace: "), f"{arguments}: {said}")

    out = os.path.join(os.path.dirname(folder), "out.json")
    refused("No such file", os.path.join(folder, "none"), "--summary")
    os.mkdir(folder)
    refused("GSHMEM_TRACE names the folder", folder, "--summary")
    refused("say what to make", folder, status=2)
    refused("name the folder", "--summary", status=2)
    refused("--job takes", folder, "--summary", "--job", "xyz", status=2)
    alien = os.path.join(folder, "gshmem-1-0.trace")
    for text, what in ((b"", "is empty"), (b"hello" * 40000, "is not a trace"), (b"GSHMEMtr", "is not a trace")):
        with open(alien, "wb") as file:
            file.write(text)
        refused(what, folder, "--summary")
    os.unlink(alien)
    run(program, "operations", 2, folder, n=20)
    refused("cannot write /", folder, "-o", "/proc/nothing/job.json")
    whole = {pe: open(path, "rb").read() for pe, path in files(folder).items()}
    path = files(folder)[1]
    for size in (HEAD + CHUNK + 100, HEAD, HEAD + 70):  # cut off: what is there is read
        with open(path, "wb") as file:
            file.write(whole[1][:size])
        trace(folder, "-o", out)
    for at, value, what in ((8, 99, "another version"), (12, 7, "makes no sense"), (16, 0, "makes no sense"),
                            (76, 0, "makes no sense")):
        data = bytearray(whole[1])
        struct.pack_into("<I", data, at, value)
        with open(path, "wb") as file:
            file.write(data)
        done = subprocess.run([TRACE, folder, "-o", out], capture_output=True, text=True, timeout=100)
        expect(what in done.stderr, f"{at}: {done.stderr}")
    seed = 12345  # each byte of the chunks may be anything
    for _ in range(20):
        data = bytearray(whole[1])
        for _ in range(400):
            seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
            data[HEAD + (seed >> 33) % (len(data) - HEAD)] = seed >> 20 & 255
        with open(path, "wb") as file:
            file.write(data)
        done = subprocess.run([TRACE, folder, "--summary", "--critical-path", "-o", out], capture_output=True, timeout=100)
        expect(done.returncode in (0, 1), f"it crashed: {done.returncode}: {done.stderr}")
    with open(path, "wb") as file:
        file.write(whole[1])
    run(program, "operations", 2, folder)
    refused("several jobs", folder, "--summary")


def way_folder(program, folder):
    """A folder that cannot be made, or is full, harms no job: one line says so."""
    inside = os.path.join(folder, "deep", "deeper")
    run(program, "alone", 2, inside)
    expect(len(files(inside)) == 2, "the folder was not made")
    away = os.path.join(folder, "away")
    said = run(program, "away", 2, os.path.relpath(away))
    sizes = [os.path.getsize(path) for path in files(away).values()]
    expect(len(sizes) == 2 and max(sizes) < 4 << 20 and "larger" not in said, f"not cut to what is used: {sizes}: {said}")
    with open(os.path.join(folder, "file"), "w", encoding="utf-8"):
        pass
    said = run(program, "alone", 2, os.path.join(folder, "file", "folder"))
    untraced(said, "Not a directory")
    long = os.path.join(folder, "long" * 200)
    untraced(run(program, "alone", 2, long), "File name too long")
    limited = subprocess.run(["sh", "-c", f"ulimit -f {31 << 21}; GSHMEM_TRACE='{folder}/limited' exec '{RUN}' -n 2 '{program}' alone"],
                             env=dict(os.environ, GSHMEM_TRACE_SIZE="64G"),
                             capture_output=True, text=True, timeout=100)
    expect(limited.returncode == 0, f"the limit of a file's size: {limited.returncode}: {limited.stderr}")
    untraced(limited.stderr, "File too large")
    expect(not files(os.path.join(folder, "limited")), "a file is left")


def untraced(said, why):
    """One line, and another that it was heard once more, or from the other PE."""
    lines = said.split("\n\n")[0].splitlines()
    warns = ["warning: GSHMEM_TRACE: nothing is traced" in line and why in line for line in lines]
    expect(0 < len(lines) <= 2 and warns[0] and (warns[-1] or "heard 1 more time: GSHMEM_TRACE" in lines[-1]),
           f"not {why!r} of both PEs: {said}")


def way_mounts(program, folder):
    """A folder that is full, that cannot be written, or that the user may not write, harms no job."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("setpriv"):
        print("SKIP: mounts need root, unshare and setpriv")
        return 77
    os.makedirs(folder)
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", folder], capture_output=True, check=False).returncode:
        print("SKIP: no namespaces for a mount here")
        return 77

    def job(before, path, after=""):
        command = f"{before} && GSHMEM_TRACE='{path}' {after} '{RUN}' -n 2 '{program}' alone && ls '{folder}'"
        done = subprocess.run(["unshare", "-m", "sh", "-c", command], capture_output=True, text=True, timeout=100)
        expect(done.returncode == 0, f"{command}: {done.returncode}: {done.stderr}")
        return done

    done = job(f"mount -t tmpfs -o size=1m none '{folder}'", folder)
    untraced(done.stderr, "No space")
    expect(not done.stdout, f"left on a full disk: {done.stdout}")
    for path in (folder, os.path.join(folder, "deeper")):
        untraced(job(f"mount -t tmpfs -o ro none '{folder}'", path).stderr, "Read-only file system")
    # without its capabilities root is a user like any other, to whom this folder is closed
    closed = f"mount -t tmpfs -o mode=755,uid=12345 none '{folder}'"
    for path in (folder, os.path.join(folder, "deeper")):
        untraced(job(closed, path, "setpriv --inh-caps=-all --bounding-set=-all").stderr, "Permission denied")
    return 0


def main():
    program, way = sys.argv[1:]
    above = tempfile.mkdtemp(prefix="gshmem-test-trace-")
    try:
        return globals()[f"way_{way}"](program, os.path.join(above, "traces")) or 0
    except Wrong as wrong:
        print(wrong)
        return 1
    finally:
        shutil.rmtree(above, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
