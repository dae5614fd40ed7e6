#!/usr/bin/env python3
"""Pictures of gshmem-plot: as many marks as results, axes with their units, no text over another or outside; and bad input.

    plot.py PLOT"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
HEAD = "library,benchmark,pes,cpus,size,unit,median,min,p99,samples,iterations,timed\n"
LETTER, LINE = 6.5, 11  # pixels that a letter takes at most, as browsers draw it


def plot(*arguments, text=None):
    return subprocess.run([sys.argv[1], *arguments], input=text, capture_output=True, text=True, timeout=60)


def box(t):
    """Of a text: left, top, right, bottom."""
    x, y, size = float(t.get("x")), float(t.get("y")), float(t.get("font-size", 12)) / 12
    width, height = LETTER * size * len(t.text), LINE * size
    left = x - {"start": 0, "middle": width / 2, "end": width}[t.get("text-anchor")]
    if t.get("transform"):
        return x - height, y - width / 2, x, y + width / 2
    return left, y - height, left + width, y


def check(path, marks, units):
    root = ElementTree.parse(path).getroot()
    name = os.path.basename(path)
    drawn = [e for e in root.iter() if e.get("class") == "mark"]
    assert len(drawn) == marks, f"{name}: {len(drawn)} marks for {marks} results"
    for e in drawn:
        assert e.find(f"{SVG}title").text, f"{name}: a mark says nothing"
    texts = [t for t in root.iter(f"{SVG}text")]
    for unit in units:
        assert any(t.text == unit for t in texts), f"{name}: no axis says {unit}"
    width, height = (float(v) for v in root.get("viewBox").split()[2:])
    boxes = [(t.text, box(t)) for t in texts]
    for text, (left, top, right, bottom) in boxes:
        assert left >= 0 and top >= 0 and right <= width and bottom <= height, f"{name}: {text!r} is cut off"
    for i, (a, (l1, t1, r1, b1)) in enumerate(boxes):
        for b, (l2, t2, r2, b2) in boxes[:i]:
            assert r1 <= l2 or r2 <= l1 or b1 <= t2 or b2 <= t1, f"{name}: {a!r} is over {b!r}"


def results(library, factor, sizes):
    rows = [f"{library},put,2,2,{size},ns,{factor * (size + 100)},{factor * size + 1},{factor * (size + 900)},20,9,block\n"
            for size in sizes]
    rows += [f"{library},put_bw,2,2,{size},GB/s,{factor * 0.3},{factor * 0.2},,20,9,block\n" for size in sizes[:3]]
    rows += [f"{library},barrier_all,2,2,,ns,{factor * 180},{factor * 170},{factor * 4000},20,9,block\n"]
    rows += [f"{library},a_benchmark_with_a_long_name,2,2,,ns,{factor * 20},{factor * 20},{factor * 20},20,9,block\n"]
    return HEAD + "".join(rows)


def counts(pes):
    """Each PE communicates with the next one, and waits for it; PE 0 also for several."""
    return {"gshmem_stats": 1, "n_pes": pes, "network": "tcp", "PEs": [
        {"pe": pe, "counts_all": True, "calls": [], "values": {"wait.network.ns": 1000000 * (pe + 1), "put.network.bytes": 8},
         "peers": [{"pe": (pe + 1) % pes, "operations": 10 ** (pe % 7), "bytes": 8 * 10 ** (pe % 7), "wait_ns": 1000 * pe}] +
                  [{"pe": -1, "operations": 0, "bytes": 0, "wait_ns": 5}] * (pe == 0)} for pe in range(pes)]}


def check_counts(folder):
    path, out = os.path.join(folder, "stats.json"), os.path.join(folder, "counts")
    for pes, squares, bars in ((1, 1, 1), (4, 4, 4), (40, 40, 40), (100, 100, 48)):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(counts(pes), file)
        done = plot(path, "-o", out)
        assert done.returncode == 0, done.stderr
        # of 100 PEs two share a row: one has to do with the other, which has to do with the next row
        check(os.path.join(out, "matrix-operations.svg"), squares, ["PE", "the other PE"])
        check(os.path.join(out, "matrix-wait_ns.svg"), squares - 1, ["PE"])
        check(os.path.join(out, "waits.svg"), bars, ["ms of waiting"])
        with open(os.path.join(out, "index.html"), encoding="utf-8") as file:
            page = file.read()
        assert page.count("<svg ") == 4 and page.count("<tr><td>") == 2, "the page of counts"
    whole = json.dumps(counts(3))
    for text in ("", "[]", "{}", whole[:200], whole.replace('"n_pes": 3', '"n_pes": 2'), whole.replace("[", "7", 1),
                 whole.replace('"operations": 1,', '"operations": -1,')):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = plot(path, "-o", out)
        assert done.returncode == 1 and "is not a file that GSHMEM_STATS has written" in done.stderr, f"{text}: {done.stderr}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(whole)
    done = plot(path, path, "-o", out)
    assert done.returncode == 1 and "one job is drawn at a time" in done.stderr, done.stderr


def times(pes):
    """Each PE computes longer than the one before it, up to 0.9 of its time, half of it in kernels."""
    return {"gshmem_trace": 1, "job": "1", "n_pes": pes, "PEs": [
        {"pe": pe, "total_ns": 10**9, "computes_ns": 10**7 * (pe % 90 + 1), "kernels_ns": 5 * 10**6 * (pe % 90 + 1), "calls_ns": 0,
         "exposed_ns": 10**9 - 10**7 * (pe % 90 + 1), "operations": 1, "bytes": 8} for pe in range(pes)]}


def check_times(folder):
    path, of_counts, out = (os.path.join(folder, name) for name in ("times.json", "stats.json", "times"))
    for pes, bars in ((1, 1), (4, 4), (100, 48)):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(times(pes), file)
        with open(of_counts, "w", encoding="utf-8") as file:
            json.dump(counts(pes), file)
        for inputs, pictures in (([path], 1), ([path, of_counts], 5)):
            done = plot(*inputs, "-o", out)
            assert done.returncode == 0, done.stderr
            with open(os.path.join(out, "index.html"), encoding="utf-8") as file:
                assert file.read().count("<svg ") == pictures, f"the page of {inputs}"
        check(os.path.join(out, "times.svg"), 3 * bars, ["ms"])
    with open(os.path.join(out, "times.svg"), encoding="utf-8") as file:
        drawn = file.read()
    assert "PE 0: exposed communication: 990 ms of 1" in drawn and "does 2.17 times" in drawn, "the numbers of times.svg"
    done = plot(path, path, "-o", out)
    assert done.returncode == 1 and "one job is drawn at a time" in done.stderr, done.stderr
    whole = json.dumps(times(3))
    for text in ('{"gshmem_trace": 1}', whole.replace('"kernels_ns": 5', '"kernels_ns": 95', 1), whole.replace("total_ns", "total", 1),
                 whole.replace('"total_ns": 1', '"total_ns": -1', 1), '{"gshmem_trace": 1, "PEs": []}', '{"gshmem_trace": 1, "PEs": 7}'):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = plot(path, "-o", out)
        assert done.returncode == 1 and "is not a file that gshmem-trace --numbers has written" in done.stderr, f"{text}: {done.stderr}"


def main():
    with tempfile.TemporaryDirectory(prefix="gshmem-test-plot-") as folder:
        files = []
        for name, factor in (("before", 1), ("now", 0.7)):
            files.append(os.path.join(folder, f"{name}.csv"))
            with open(files[-1], "w", encoding="utf-8") as file:
                file.write(results("GSHMEM <0.1.0> & more", factor, sorted(k << i for k in (4, 6) for i in range(24))))
        out = os.path.join(folder, "deep", "pictures")
        for inputs in (files[:1], files):
            done = plot(*inputs, "-o", out)
            assert done.returncode == 0, done.stderr
            check(os.path.join(out, "put.svg"), 48 * len(inputs), ["bytes", "µs"])
            check(os.path.join(out, "put_bw.svg"), 3 * len(inputs), ["bytes", "GB/s"])
            check(os.path.join(out, "operations-ns.svg"), 2 * len(inputs), ["ns"])
            with open(os.path.join(out, "index.html"), encoding="utf-8") as file:
                page = file.read()
            assert page.count("<svg ") == 3 and page.count("<tr><td>") == 53 * len(inputs), "the page"
            assert not re.search(r"(src|href)=", page), "the page needs more than itself"
        same = []  # as gshmem-perf --plot names them
        for file in files:
            same.append(os.path.join(file[:-len(".csv")], "results.csv"))
            os.mkdir(os.path.dirname(same[-1]))
            shutil.copy(file, same[-1])
        done = plot(*same, "-o", out)
        assert done.returncode == 0, done.stderr
        check(os.path.join(out, "put.svg"), 96, ["bytes", "µs"])
        done = plot(*same, "--compare")
        assert done.returncode == 0 and "before/results" in done.stdout, done.stdout + done.stderr
        done = plot(*files, "--compare")
        assert done.returncode == 0 and not done.stderr, done.stderr
        lines = [line.split() for line in done.stdout.splitlines()]
        assert len(lines) == 3 + 53 and lines[0][0] == "A:" and "before" in lines[0][1], done.stdout
        assert ["put", "16", "ns", "116", "81.2", "0.700"] in lines and ["barrier_all", "-", "ns", "180", "126", "0.700"] in lines, \
            done.stdout
        for inputs, said in ((files[:1] + ["--compare"], "give the results of two"), (files, "-o FOLDER says where")):
            done = plot(*inputs)
            assert done.returncode == 1 and said in done.stderr, done.stderr
        by_pipe = plot("-", "-o", out, "--only", "put", text=results("A", 1, [8]))
        assert by_pipe.returncode == 0, by_pipe.stderr
        close = HEAD + "A,put,2,2,8,ns,33.2,33.1,33.4,3,4,block\nA,put,2,2,64,ns,33.3,33.1,33.4,3,4,block\n"
        done = plot("-", "-o", out, text=close) # no power of ten lies between the values
        assert done.returncode == 0, done.stderr
        check(os.path.join(out, "put.svg"), 2, ["bytes", "ns"])
        for text, said in (("", "has no column library"), ("a,b\n1,2\n", "has no column"), (HEAD, "no results"),
                           (HEAD + "A,put,2\n", "line 2: has not as many fields"),
                           (HEAD + "A,put,2,2,8,ns,many,1,2,3,4,block\n", "'many' is no number"),
                           (HEAD + "A,put,2,2,8,ns,nan,1,2,3,4,block\n", "cannot be drawn")):
            done = plot("-", "-o", out, text=text)
            assert done.returncode == 1 and said in done.stderr and done.stderr.startswith("gshmem-plot: ") and \
                done.stderr.count("\n") == 1, f"{text!r}: {done.stderr}"
        done = plot(files[0], "-o", files[0])
        assert done.returncode == 1 and "gshmem-plot: " in done.stderr, done.stderr
        done = plot(files[0], "-o", out, "--only", "nothing")
        assert done.returncode == 1 and "barrier_all" in done.stderr, done.stderr
        done = plot(os.path.join(folder, "none.csv"), "-o", out)
        assert done.returncode == 1 and "No such file" in done.stderr, done.stderr
        check_counts(folder)
        check_times(folder)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as wrong:
        print(wrong)
        sys.exit(1)
