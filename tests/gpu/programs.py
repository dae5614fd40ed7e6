"""Which programs run on a GPU, and how; and which do not, and why not. All CUDA sources of the folders
below are named here: `unnamed` finds those that are not."""

import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["tests/device", "tests/kernel", "tests/litmus", "tests/nvshmem", "examples", "examples/irregular"]

MAPPED, LOCAL, HOSTS = "mapped", "local", "hosts2"  # paths, as in tests/kernel


@dataclasses.dataclass
class Program:
    source: str
    part: str
    pes: dict  # {path: numbers of PEs}
    arguments: list = dataclasses.field(default_factory=lambda: [[]])  # a run with each
    more: list = dataclasses.field(default_factory=list)  # sources
    flags: list = dataclasses.field(default_factory=list)
    libraries: list = dataclasses.field(default_factory=list)  # other programs, as arguments
    env: dict = dataclasses.field(default_factory=dict)
    alone: bool = False  # starts its own PEs, or needs none
    package: str = ""  # of NVIDIA's that it is compiled with
    own_gpu: bool = False  # each PE wants one to itself
    few: list = None  # arguments instead, where PEs take turns on a GPU

    @property
    def name(self):
        return self.source[:-3].replace("tests/", "").replace("/", "-")


ALL = {MAPPED: [1, 2, 4], LOCAL: [1, 2], HOSTS: [2]}
MEETING = {MAPPED: [1, 2, 4], LOCAL: [2], HOSTS: [2]}  # kernels that wait for each other, often
PAIRS = {MAPPED: [2, 4], LOCAL: [2], HOSTS: [2]}


def kernel(name, pes=ALL, **how):
    return Program(f"tests/kernel/{name}.cu", "tests", pes, **how)


def litmus(name):
    return Program(f"tests/litmus/{name}.cu", "litmus", PAIRS, arguments=[["10000"]], few=[["200"]])


def device(name):
    return Program(f"tests/device/{name}.cu", "device", {MAPPED: [1]}, alone=True)


def nvshmem(name, pes=MEETING, **how):
    return Program(f"tests/nvshmem/{name}.cu", "nvshmem", pes, **how)


def example(name, **how):
    return Program(f"examples/{name}.cu", "examples", MEETING, **how)


# What is said of these mistakes is checked on the host device; here, that they are noticed.
MISTAKES = ["put_pe", "get_own", "put_end", "flag_odd", "p_own", "atomic_own", "no_ctx", "block_own",
            "warp_pe", "quiet_pe", "wait_cmp", "wait_null", "values_null", "g_pe", "test_odd"]

PROGRAMS = [
    *[kernel(name) for name in ["again", "contexts", "copies", "many", "single", "teams"]],
    kernel("units_library", {}, flags=["-shared", "-fPIC"]),
    kernel("units", {MAPPED: [2], LOCAL: [2]}, more=["tests/kernel/units_second.cu"],
           libraries=["kernel-units_library"]),
    *[kernel(f"collective_{name}", MEETING) for name in ["data", "meet", "reduce", "wrong"]],
    kernel("errors", {MAPPED: [2], LOCAL: [2]}, arguments=[[name] for name in MISTAKES],
           env={"GSHMEM_ON_ERROR": "return"}),
    kernel("death", {MAPPED: [3], LOCAL: [3]}, alone=True,
           arguments=[[name, "3"] for name in ["wait", "meet", "gather", "exit"]]),
    kernel("flush", {MAPPED: [1, 2]}, arguments=[["on"]], env={"GSHMEM_CUDA_FLUSH": "on"}),
    kernel("finalize", {MAPPED: [3]}, alone=True, arguments=[["graph"], ["death"]]),
    *[litmus(name) for name in ["atomics", "both", "message", "quiet", "signals"]],
    *[nvshmem(name) for name in ["graph", "habits", "jacobi", "on_stream", "own", "pipeline", "ring", "rma", "teams", "tile"]],
    nvshmem("virtual", flags=["-lcuda"]),
    nvshmem("uniqueid", {MAPPED: [2]}, alone=True, arguments=[["1"], ["2"], ["4"]]),
    *[example(name) for name in ["alltoallv", "gups", "halo2d", "nvshmem-ring", "nvshmem-train",
                                 "pingpong", "ring"]],
    *[example(f"irregular/{name}") for name in ["bfs", "gather", "histogram", "kmers", "pagerank", "permutation",
                                                "sssp", "toposort", "transpose", "triangles"]],
    example("nccl", package="nccl", own_gpu=True),
    *[device(name) for name in ["arithmetic", "atomics", "block", "copies", "copy", "cub", "cuda_atomic", "curand", "graphs",
                                "groups", "launch", "odd", "runtime", "small", "spin", "streams", "together", "warp"]],
]

EXCLUDED = {
    "tests/kernel/forked.cu": "about threads of the host device; a GPU's driver refuses its parent's children",
    "tests/kernel/checked.cu": "mistakes, as GSHMEM_CHECK=memory reports them; what is said is the same on all devices",
    "tests/kernel/loaded.cu": "a program in C loads it, while another thread makes teams; the same on all devices",
    "tests/kernel/left_late.cu": "stops a process, as no program here may",
    "tests/kernel/left.cu": "ends the job by a failure, as no program here may",
    "tests/kernel/overlap.cu": "the host device stops threads at their fences, as no GPU can",
    "tests/kernel/busy.cu": "about when a worker of the host device sleeps",
    "tests/kernel/slow_launcher.cu": "about which thread of the host asks the launcher; takes six PEs",
    "tests/kernel/units_second.cu": "a part of units",
    "tests/nvshmem/symmetric.cu": "pages of the CPU's; virtual is the same with pieces of a GPU's memory",
    "tests/nvshmem/floats.cu": "the host reads symmetric memory itself",
    "tests/nvshmem/more.cu": "the host reads symmetric memory itself",
    "tests/nvshmem/regions.cu": "the host reads symmetric memory itself",
    "tests/nvshmem/flush.cu": "the host reads symmetric memory itself; a PE is stopped",
    "tests/nvshmem/performance.cu": "what it asks of the host device's own headers and modules, a GPU's toolkit has",
    "tests/nvshmem/queue_pairs.cu": "the host reads symmetric memory itself; a PE is stopped",
    "tests/nvshmem/errors.cu": "what is said of mistakes is the same on all devices",
    "tests/nvshmem/mpi.cu": "needs an MPI; examples of it are compiled elsewhere",
    "examples/mpi.cu": "needs an MPI that takes GPU memory",
    "tests/device/bounds.cu": "mistakes that the host device's sanitizers find",
    "tests/device/race.cu": "mistakes that the host device's sanitizers find",
    "tests/device/failures.cu": "what the host device says of kernels that cannot go on",
    "tests/device/flood.cu": "about a signal of the host device",
    "tests/device/release.cu": "about a signal of the host device",
    "tests/device/forked.cu": "about locks of the host device in children made by fork",
    "tests/device/turns.cu": "about the host device's own run queue",
    "tests/device/unmap.cu": "about the host device's own reservations of addresses",
    "tests/device/plugin.cu": "a library of a test of the host device's",
    "tests/device/once.cu": "not CUDA, but a header of the host device",
}


def unnamed():
    """Sources that nobody has decided about, and decisions about sources that are not there."""
    named = {source for p in PROGRAMS for source in [p.source, *p.more]} | set(EXCLUDED)
    there = {str(path.relative_to(ROOT)) for folder in FOLDERS
             for path in (ROOT / folder).glob("*.cu")}
    return sorted(named ^ there)
