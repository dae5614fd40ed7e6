#!/usr/bin/env python3
"""gshmem-info --topology, of a machine whose /sys is made here: two NUMA nodes with a GPU and a NIC each.

    topology.py GSHMEM-INFO"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

INFO = sys.argv[1]
# The path of each device: its NUMA node, and its files.
GPU = {"vendor": "0x10de", "class": "0x030200"}
DEVICES = {"pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0": (0, GPU),
           "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:02.0/0000:04:00.0": (0, {"vendor": "0x15b3", "class": "0x020700"}),
           "pci0000:00/0000:00:02.0/0000:05:00.0": (0, {"vendor": "0x8086", "class": "0x020000"}),
           "pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:01.0/0000:83:00.0": (1, GPU),
           "pci0000:80/0000:80:02.0/0000:84:00.0": (1, {"vendor": "0x15b3", "class": "0x020700"}),
           "pci0000:80/0000:80:03.0/0000:85:00.0": (1, {"vendor": "0x1a03", "class": "0x030000"})}
CARDS = {"infiniband/mlx5_0": "0000:04:00.0", "infiniband/mlx5_1": "0000:84:00.0", "net/eth0": "0000:05:00.0"}


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def make_tree(root):
    places = {}
    for path, (node, files) in DEVICES.items():
        at = places[os.path.basename(path)] = os.path.join(root, "devices", path)
        for name, text in {**files, "numa_node": str(node)}.items():
            write(os.path.join(at, name), text)
        os.makedirs(os.path.join(root, "bus/pci/devices"), exist_ok=True)
        os.symlink(at, os.path.join(root, "bus/pci/devices", os.path.basename(path)))
    for name, address in CARDS.items():
        os.makedirs(os.path.join(root, "class", name))
        os.symlink(places[address], os.path.join(root, "class", name, "device"))
    for node in (0, 1):
        write(os.path.join(root, f"devices/system/node/node{node}/cpulist"), f"{4 * node}-{4 * node + 3}")


def run(*arguments, status=0):
    done = subprocess.run([INFO, "--topology", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, f"{arguments}: {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def expect(text, *patterns):
    for pattern in patterns:
        assert re.search(pattern, text, re.M), f"no {pattern!r} in:\n{text}"


def check_picture(path, boxes):
    root = ElementTree.parse(path).getroot()
    marks = [e for e in root.iter() if e.get("class") == "mark"]
    assert len(marks) == boxes, f"{len(marks)} boxes, and there are {boxes} nodes, GPUs and NICs"
    places = {(e.get("x"), e.get("y")) for e in marks}
    assert len(places) == boxes, "two boxes are in one place"
    texts = [e.text for e in root.iter() if e.tag.endswith("text")]
    expect("\n".join(texts), "^GPU 0000:83:00.0$", "^RDMA NIC mlx5_1$", "^TCP NIC eth0$", "^PE 1 on CPU 1$")
    lines = [e.get("d") for e in root.iter() if e.tag.endswith("path")]
    assert len(lines) == 2, f"{len(lines)} lines from GPUs to NICs"


def main():
    folder = tempfile.mkdtemp(prefix="gshmem-test-topology-")
    try:
        tree, picture = os.path.join(folder, "sys"), os.path.join(folder, "t.svg")
        make_tree(tree)
        text = run("--sys", tree, "--svg", picture)
        expect(text, r"^  NUMA node 0 +CPUs 0-3\n +GPU +0000:03:00.0\n", r"^  NUMA node 1 +CPUs 4-7\n +GPU +0000:83:00.0\n",
               r"^  mlx5_0 +switch +far *$", r"^  mlx5_1 +far +node *$", r"^  eth0 +node +far *$", r"^2 PEs of a node",
               r"^  PE 0 +CPU 0 +GPU 0000:03:00.0 NIC mlx5_0 behind the GPU's PCIe switch$",
               r"^  PE 1 +CPU 1 +GPU 0000:83:00.0 NIC mlx5_1 on the GPU's NUMA node$")
        assert "85:00" not in text, f"a display of another maker is no GPU:\n{text}"
        check_picture(picture, 7)
        expect(run("--sys", tree, "--pes", "9"), r"^9 PEs of a node", r"^  PE 8 +CPU 0 +GPU 0000:03:00.0 NIC mlx5_0 ")
        for node in range(64):  # as many as the table has; the devices are on others
            write(os.path.join(tree, f"devices/system/node/node{node}/cpulist"), str(node))
        for i, path in enumerate(DEVICES):
            write(os.path.join(tree, "devices", path, "numa_node"), str(70 + i))
        expect(run("--sys", tree), r"^  NUMA node 63 +CPUs 63\n  NUMA node not known\n    GPU +0000:03:00.0\n    GPU +0000:83:00.0\n"
                                   r"(    NIC .*\n){3}", "^2 PEs of a node")
        empty = os.path.join(folder, "empty")
        os.mkdir(empty)
        expect(run("--sys", empty), "no NUMA node", "^0 PEs")
        expect(run(), r"^  PE 0 +CPU \d+ ")
        for wrong in (["--pes", "0"], ["--pes", "x"], ["--pes"], ["--pes", "9999"], ["--what", "x"]):
            expect(run(*wrong, status=2), "--topology takes --pes")
        expect(run("--sys", tree, "--svg", os.path.join(folder, "none", "t.svg"), status=1), "^gshmem-info: writing .*: No such file")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as wrong:
        print(wrong)
        sys.exit(1)
