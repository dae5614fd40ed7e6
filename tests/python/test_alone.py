"""What a job of pytest's own cannot show: starts, ends, interruptions, forked children, spawn."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import gshmem
import numpy as np
import pytest
from gshmem._library import program

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}/python", "PYTHONFAULTHANDLER": "1"}
ENVIRONMENT.pop(
    "PYTHONUNBUFFERED", None
)  # it would write a line in two parts, between which others write


def python(text, *options, wait=True, env=None, **more):
    """Runs a program, under gshmemrun if there are options for it. Returns what subprocess does."""
    line = [
        sys.executable,
        "-c",
        "import gshmem, numpy as np, os, signal, sys, time\n" + textwrap.dedent(text),
    ]
    if options:
        line = [program("gshmemrun"), *options, *line]
    kind = subprocess.run if wait else subprocess.Popen
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **more}
    if wait:
        more = {"timeout": 60, **more}
    return kind(line, env={**ENVIRONMENT, **(env or {})}, **more)


def passes(text, *options, **more):
    done = python(text, *options, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_after_finalize():
    passes("""
        for round in range(3):
            gshmem.init()
            a, s = gshmem.full(1000, 1.5 + round), gshmem.zeros(1, np.uint64)
            part, view = a[10:20], gshmem.peer(a, 0)
            gshmem.finalize()
            assert part.sum() == 15 + 10 * round and view.sum() == a.sum() == 1500 + 1000 * round
            a += 1
            calls = [
                lambda: gshmem.put(a, 1.0, 0), lambda: gshmem.get(np.zeros(10), part, 0),
                lambda: gshmem.barrier(), lambda: gshmem.put_nbi(part, np.zeros(10), 0),
                lambda: gshmem.atomic_add(s, 1, 0), lambda: gshmem.signal_wait_until(s, "==", 1),
                lambda: gshmem.reduce(a, a), lambda: gshmem.quiet(),
                lambda: gshmem.wait_until(s, "==", 1), lambda: gshmem.free(a),
                lambda: gshmem.zeros(1), lambda: gshmem.peer(a, 0), lambda: gshmem.Lock(),
                lambda: gshmem.WORLD.n_pes, gshmem.finalize, lambda: gshmem.heap_bases(),
                lambda: gshmem.fence(), lambda: gshmem.put_on_stream(a, a, 0, 0),
            ]
            for i, call in enumerate(calls):
                try:
                    call()
                except (gshmem.StateError, gshmem.NotSymmetricError):
                    continue
                sys.exit(f"call {i} passes after finalize")
            old = a
        assert old[0] == 4.5 and gshmem.my_pe() == gshmem.n_pes() == -1
    """)


def test_a_forked_child():
    passes(
        """
        gshmem.init()
        me, n = gshmem.my_pe(), gshmem.n_pes()
        a, s = gshmem.zeros(8), gshmem.zeros(1, np.uint64)
        gshmem.barrier()
        child = os.fork()
        if child == 0:
            calls = [
                lambda: gshmem.put(a, np.zeros(8), (me + 1) % n),
                lambda: gshmem.get(np.zeros(8), a, me), lambda: gshmem.put_nbi(a[::2], 1.0, me),
                lambda: gshmem.atomic_add(s, 1, me), gshmem.barrier,
                lambda: gshmem.wait_until(s, "==", 1), lambda: gshmem.zeros(1),
                lambda: gshmem.free(a), lambda: gshmem.quiet(),
                lambda: gshmem.signal_set(s, 1, me), gshmem.finalize, lambda: gshmem.reduce(a, a),
                lambda: gshmem.put_signal(a, a, s, 1, me),
            ]
            for i, call in enumerate(calls):
                try:
                    call()
                except gshmem.GshmemError:
                    continue
                print(f"call {i} passes in a child", flush=True)
                os._exit(1)
            a.sum()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        gshmem.barrier()
        gshmem.put(a, 3.0, (me + 1) % n)
        gshmem.barrier()
        assert (a == 3).all()
        gshmem.finalize()
    """,
        "-n",
        "2",
    )


@pytest.mark.parametrize(
    "call",
    [
        "gshmem.wait_until(s[:1], '==', 1)",
        "gshmem.signal_wait_until(s[:1], '>', 5)",
        "gshmem.wait_until_all(s, '==', 1)",
        "gshmem.wait_until_any(s, '==', 1)",
        "gshmem.wait_until_some(s, '==', 1)",
        "lock.acquire()",
    ],
)
def test_interrupt_ends_a_wait(call):
    """KeyboardInterrupt, in time; then the program goes on and ends in good order."""
    process = python(
        f"""
        gshmem.init()
        s, lock = gshmem.zeros(2, np.uint64), gshmem.Lock()
        if "lock" in {call!r}:
            lock.acquire()
        print("waits", flush=True)
        try:
            {call}
            print("returned", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        try:
            gshmem.finalize()
            print("finalize passes", flush=True)
        except gshmem.StateError as error:
            print(error, flush=True)
        gshmem.signal_set(s[:1], 9, 0)
        assert s[0] == 9
        s[:] = [1, 1]
        if "'>'" in {call!r}:
            s[0] = 6
        if "lock" in {call!r}:
            lock.release()
        end = time.monotonic() + 5
        while time.monotonic() < end:
            try:
                gshmem.finalize()
                break
            except gshmem.StateError:
                time.sleep(0.01)
        print("ends" if not gshmem.initialized() else "does not end")
    """,
        wait=False,
    )
    assert process.stdout.readline() == "waits\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    lines = out.splitlines()
    assert process.returncode == 0 and lines[0] == "interrupted" and lines[-1] == "ends", out
    assert "which was interrupted, still waits" in lines[1], out


def test_interrupt_that_is_not_caught_ends_the_job():
    process = python(
        """
        gshmem.init()
        s = gshmem.zeros(1, np.uint64)
        print("waits", flush=True)
        gshmem.wait_until(s, "==", 1)
    """,
        "-n",
        "2",
        wait=False,
    )
    assert [process.stdout.readline() for _ in range(2)] == ["waits\n"] * 2
    time.sleep(0.3)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert (
        process.returncode == 130 and "KeyboardInterrupt" in out and time.monotonic() - begin < 5
    ), out


def test_interrupt_in_a_collective_ends_the_job():
    process = python(
        """
        gshmem.init()
        print("waits", os.getpid(), flush=True)
        if gshmem.my_pe() == 0:
            gshmem.barrier()
        time.sleep(100)
    """,
        "-n",
        "2",
        wait=False,
    )
    pids = [int(process.stdout.readline().split()[1]) for _ in range(2)]
    time.sleep(0.3)
    for (
        pid
    ) in pids:  # of which one waits and the other, whose sleep ends by the signal, does not go on
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if b"GSHMEM_RUN_PE=0" in file.read().split(b"\0"):
                    os.kill(pid, signal.SIGINT)
        except OSError:
            pass
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 130 and "PE 0: interrupted in barrier" in out, (
        process.returncode,
        out,
    )


def test_a_call_for_a_pe_that_has_left_is_an_exception():
    out = python(
        """
        gshmem.init()
        if gshmem.my_pe() == 1:
            gshmem.finalize()  # leaves, and takes part in nothing more
            sys.exit()
        try:
            gshmem.barrier()
        except gshmem.PeerDeadError as error:
            print("says:", error, flush=True)
            os._exit(3)
    """,
        "-n",
        "2",
    )
    assert (
        out.returncode == 3 and "says: " in out.stdout and "PE 1 has left the job" in out.stdout
    ), out.stdout


UID = """
    pe, n = int(sys.argv[1]), 3
    job = gshmem.init({how}, pe=pe, n_pes=n)
    a = gshmem.full(1, pe + 1)
    gshmem.reduce(a, a)
    assert a[0] == 6
    gshmem.finalize()
"""


def start_by_id(text):
    head = "import gshmem, numpy as np, os, signal, sys, time\n"
    lines = [[sys.executable, "-c", head + textwrap.dedent(text), str(pe)] for pe in range(3)]
    jobs = [
        subprocess.Popen(line, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) for line in lines
    ]
    assert [job.communicate(timeout=60)[1] for job in jobs] == [""] * 3 and not any(
        job.returncode for job in jobs
    )


def test_start_by_a_file(tmp_path):
    start_by_id(UID.format(how=f"file={str(tmp_path / 'id')!r}"))
    assert os.listdir(tmp_path) == []


def test_start_by_a_callback(tmp_path):
    start_by_id("""
    def broadcast(uid):
        path = %r
        if uid is not None:
            with open(path + "-", "wb") as file:
                file.write(uid)
            os.rename(path + "-", path)
        while not os.path.exists(path):
            time.sleep(0.01)
        with open(path, "rb") as file:
            return file.read()
    """ % str(tmp_path / "id") + UID.format(how="broadcast=broadcast"))


def test_start_by_a_communicator(tmp_path):
    """What mpi4py's have: bcast of Python objects, rank and size."""
    start_by_id("""
    class Comm:
        path = %r
        def Get_rank(self):
            return int(sys.argv[1])
        def Get_size(self):
            return 3
        def bcast(self, value, root):
            if self.Get_rank() == root:
                with open(self.path + "-", "wb") as file:
                    file.write(value)
                os.rename(self.path + "-", self.path)
            while not os.path.exists(self.path):
                time.sleep(0.01)
            with open(self.path, "rb") as file:
                return file.read()
    """ % str(tmp_path / "id") + UID.format(how="comm=Comm()").replace(", pe=pe, n_pes=n", ""))


def test_start_by_a_store(tmp_path):
    """What torch's stores have: set of text, get of bytes that waits."""
    start_by_id("""
    class Store:
        path = %r
        def set(self, key, value):
            with open(self.path + "-", "w") as file:
                file.write(value)
            os.rename(self.path + "-", self.path)
        def get(self, key):
            while not os.path.exists(self.path):
                time.sleep(0.01)
            with open(self.path, "rb") as file:
                return file.read()
    """ % str(tmp_path / "id") + UID.format(how="store=Store()"))


@pytest.mark.parametrize("launcher", ["mpirun", "hydra", "srun"])
def test_other_launchers(launcher):
    text = """
import gshmem
with gshmem.init() as job:
    a = gshmem.full(1, 1)
    gshmem.reduce(a, a)
    assert a[0] == job.n_pes == 2
"""
    done = subprocess.run(
        [f"{ROOT}/tests/launch", launcher, "2", sys.executable, "-c", text],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode == 77:
        pytest.skip(done.stdout.strip().splitlines()[-1].removeprefix("SKIP: "))
    assert done.returncode == 0, done.stdout


def test_bad_starts():
    passes("""
        zeros = bytes(128)
        for named in (
            {"uid": bytes(3), "pe": 0, "n_pes": 1}, {"uid": zeros},
            {"uid": zeros, "pe": 2, "n_pes": 2},
            {"uid": zeros, "file": "x", "pe": 0, "n_pes": 1}, {"uid": zeros, "pe": 0, "n_pes": 1},
        ):
            try:
                gshmem.init(**named)
                sys.exit(f"{named} passes")
            except gshmem.GshmemError:
                pass
        gshmem.init()  # it still works
        gshmem.finalize()
    """)


def scaled(factor, offset=1):
    a = gshmem.full(2, gshmem.my_pe() * factor + offset)
    gshmem.reduce(a, a)
    return gshmem.my_pe(), int(a[0])


def test_spawn():
    assert gshmem.spawn(scaled, 2, 10) == [(0, 12), (1, 12)]
    assert gshmem.spawn(scaled, 4, 1, offset=0, options=("--hosts", "2")) == [
        (pe, 6) for pe in range(4)
    ]


def test_spawn_in_a_session_where_functions_are_typed_in():
    out = passes("""
        gshmem.init()  # a job of one works at once
        a = gshmem.full(3, 2.0)
        gshmem.reduce(a, a)
        k = 5
        def inner(x):
            return x if x == 0 else inner(x - 1)
        def outer(x):
            def nested():
                return gshmem.my_pe() + x + k + inner(3) + np.int64(0)
            return nested()
        print([int(x) for x in gshmem.spawn(outer, 3, 100)], a)
        try:
            gshmem.spawn(lambda: gshmem.my_pe() // (gshmem.my_pe() - 1), 2)
        except gshmem.GshmemError as error:
            print("raises", "PE 1 failed" in str(error), "ZeroDivisionError" in str(error))
    """)
    assert "[105, 106, 107] [2. 2. 2.]\n" in out and "raises True True" in out, out


def test_run_and_info(tmp_path):
    script = tmp_path / "s.py"
    script.write_text(
        "import gshmem, sys\nwith gshmem.init() as job: print(job.my_pe, job.n_pes, sys.argv[1:])\n"
    )
    line = [sys.executable, "-m", "gshmem.run", "-n", "2", "--hosts", "2", str(script), "-n", "x"]
    done = subprocess.run(line, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True)
    assert sorted(done.stdout.splitlines()) == ["0 2 ['-n', 'x']", "1 2 ['-n', 'x']"]
    done = subprocess.run(
        [sys.executable, "-m", "gshmem.info"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert "GSHMEM 0.1.0" in done.stdout and "libgshmem.so" in done.stdout


@pytest.mark.parametrize("options", [("-n", "1"), ("-n", "2"), ("-n", "4", "--hosts", "2")])
def test_a_program_for_nvshmem4py(options):
    line = [
        program("gshmemrun"),
        *options,
        sys.executable,
        f"{ROOT}/tests/python/nvshmem_program.py",
    ]
    done = subprocess.run(
        line, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0 and done.stdout.count("complete") == int(options[1]), done.stdout


@pytest.mark.parametrize("options", [("-n", "1"), ("-n", "4"), ("-n", "4", "--hosts", "2")])
@pytest.mark.parametrize(
    "name", sorted(f for f in os.listdir(f"{ROOT}/python/examples") if f.endswith(".py"))
)
def test_examples(name, options):
    line = [program("gshmemrun"), *options, sys.executable, f"{ROOT}/python/examples/{name}"]
    done = subprocess.run(
        line, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout


def test_pip_installs_it(tmp_path):
    """By setuptools of this Python, without an index; the library is then named by LIBGSHMEM."""
    pytest.importorskip(
        "setuptools", minversion="61", reason="setuptools 61 or newer is not installed"
    )
    import shutil

    shutil.copytree(f"{ROOT}/python", tmp_path / "python")
    line = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(tmp_path / "to"),
        str(tmp_path / "python"),
    ]
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    env = {**ENVIRONMENT, "PYTHONPATH": str(tmp_path / "to"), "LIBGSHMEM": gshmem._library.path}
    text = "import gshmem.nvshmem.core; print(gshmem.__file__); gshmem.init(); gshmem.zeros(3)"
    done = subprocess.run(
        [sys.executable, "-c", text], env=env, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert done.returncode == 0 and done.stdout.startswith(str(tmp_path)), done.stdout
