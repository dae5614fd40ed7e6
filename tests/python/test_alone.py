"""What a job of pytest's own cannot show: starts of every kind, spawn, programs, pip."""

import inspect
import os
import socket
import sys
import textwrap
import time

import gshmem
import pytest
from alone import HEAD, ROOT, begin, passes, python, run
from gshmem._library import program
from gshmem.run import command

UID = """
    pe, n = int(sys.argv[1]), 3
    job = gshmem.init({how}, pe=pe, n_pes=n)
    a = gshmem.full(1, pe + 1)
    gshmem.reduce(a, a)
    assert a[0] == 6
    gshmem.finalize()
"""


def start_by_id(text):
    lines = [[sys.executable, "-c", HEAD + textwrap.dedent(text), str(pe)] for pe in range(3)]
    jobs = [begin(line) for line in lines]
    assert [job.communicate(timeout=150)[0] for job in jobs] == [""] * 3 and not any(
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
    """What torch's stores have: set of text, get of bytes that waits. One serves for two jobs."""
    store = """
    class Store:
        path = %r
        def set(self, key, value):
            with open(self.path + key + "-", "w") as file:
                file.write(value)
            os.rename(self.path + key + "-", self.path + key)
        def get(self, key):
            while not os.path.exists(self.path + key):
                time.sleep(0.01)
            with open(self.path + key, "rb") as file:
                return file.read()
    store = Store()
    """ % str(tmp_path / "id")
    start_by_id(store + 2 * UID.format(how="store=store"))


def test_start_as_pods_do(tmp_path):
    """packaging/kubernetes/start.py: by index, host and key; a stranger without the key is turned
    away, and one that says nothing holds nobody up."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    script = tmp_path / "program.py"
    script.write_text(
        "import gshmem, sys\n"
        "with gshmem.init() as job:\n"
        "    a = gshmem.full(1, job.my_pe + 1)\n"
        "    gshmem.reduce(a, a)\n"
        "    print(int(a[0]), sys.argv[1:])\n"
    )
    start = f"{ROOT}/packaging/kubernetes/start.py"
    pods = [
        {"GSHMEM_JOB_KEY": "right", "JOB_COMPLETION_INDEX": str(i)} for i in (0, 1, 2, 3)
    ] + [{"GSHMEM_JOB_KEY": "wrong", "JOB_COMPLETION_INDEX": "1"}]
    everyone = {
        "GSHMEM_JOB_HOST": "127.0.0.1",
        "GSHMEM_JOB_PORT": str(port),
        "GSHMEM_JOB_PES": "4",
        "PYTHONUNBUFFERED": "",
    }
    line = [sys.executable, start, str(script), "x"]
    first = begin(line, env={**everyone, **pods[0]})
    end = time.monotonic() + 150
    while time.monotonic() < end:
        try:
            silent = socket.create_connection(("127.0.0.1", port))
            break
        except OSError:
            time.sleep(0.05)
    stranger = begin(line, env={**everyone, **pods[4]})
    assert stranger.wait(150) == 1 and "AuthenticationError" in stranger.stdout.read()
    others = [begin(line, env={**everyone, **pod}) for pod in pods[1:4]]
    for process in others:
        out, _ = process.communicate(timeout=150)
        assert process.returncode == 0 and out == "10 ['x']\n", out
    out, _ = first.communicate(timeout=150)
    assert first.returncode == 0 and out.endswith("10 ['x']\n") and "was refused" in out, out
    silent.close()


def test_pods_that_do_not_come(tmp_path):
    """Pod 0 names them when its time is over."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {
        "GSHMEM_JOB_KEY": "right",
        "JOB_COMPLETION_INDEX": "0",
        "GSHMEM_JOB_PORT": str(port),
        "GSHMEM_JOB_PES": "3",
        "GSHMEM_INIT_TIMEOUT": "1",
    }
    done = run([sys.executable, f"{ROOT}/packaging/kubernetes/start.py", "x.py"], env=env)
    assert done.returncode == 1 and "PEs [1, 2] have not come within 1 s" in done.stdout, done


@pytest.mark.parametrize("launcher", ["mpirun", "hydra", "srun"])
def test_other_launchers(launcher):
    text = """
import gshmem
with gshmem.init() as job:
    a = gshmem.full(1, 1)
    gshmem.reduce(a, a)
    assert a[0] == job.n_pes == 2
"""
    done = run([f"{ROOT}/tests/launch", launcher, "2", sys.executable, "-c", text])
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


def test_spawn_tells_functions_of_one_name_apart():
    out = passes("""
        add, times = lambda x: x + 1, lambda x: x * 10
        def both(x):
            return add(x), times(x)
        def closed():
            def count(k):
                return 0 if k == 0 else 1 + count(k - 1)
            add = lambda x: count(x)
            times = lambda x: add(x) * 100
            return lambda x: (add(x), times(x))
        def held():
            own = add
            return lambda x: (own(x), add(x))
        print(gshmem.spawn(both, 1, 2), gshmem.spawn(closed(), 1, 4), gshmem.spawn(held(), 1, 5))
    """)
    assert out == "[(3, 20)] [(4, 400)] [(6, 6)]\n", out


def test_run_puts_python_before_the_script_alone():
    python, run = [sys.executable], [program("gshmemrun")]
    for words, at in (
        ("-n 2 s.py -n x.py", 2),
        ("-n4 --hosts=2 s.py", 2),
        ("-n 2 --wdir x.py s.py", 4),
        ("-n 2 -x A=b.py ./prog s.py", None),
        ("-genv A b.py -n 1 s.py", 5),
        ("-n 1 --mca a b.py prog", None),
        ("-c 2 s.py", 2),
        ("-n 1 -c", 2),
        ("-n 1 -c print()", 2),
        ("-n 1 -m module -n 3", 2),
        ("-n 1 --host a.py -l -- s.py", 6),
        ("-n 1 --tag s.py", 3),
        ("-n 1 cat s.py", None),
    ):
        words = words.split()
        expected = words if at is None else words[:at] + python + words[at:]
        assert command(words) == run + expected


def test_a_library_that_was_named_is_not_replaced():
    done = python("", env={"LIBGSHMEM": "/nowhere/libgshmem.so.0"})
    assert done.returncode == 1 and "LIBGSHMEM=/nowhere/libgshmem.so.0 cannot be" in done.stdout


def test_programs_are_those_of_the_library(tmp_path):
    """Of the wheel's own only where LIBGSHMEM names no other library, and of the folder where the
    program runs never."""
    import shutil

    shutil.copytree(f"{ROOT}/python/gshmem", tmp_path / "gshmem")
    for place in ("gshmem/_install/bin", "bootstrap/run"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "gshmemrun").write_text("#!/bin/sh\n")
        (tmp_path / place / "gshmemrun").chmod(0o755)
    library = os.path.realpath(gshmem._library.path)
    own, folders = program("gshmemrun"), os.path.dirname(library)
    text = "from gshmem._library import program; print(program('gshmemrun'))"
    for named, path in ((library, "/usr/bin:/bin"), ("libgshmem.so.0", os.path.dirname(own))):
        env = {
            "PYTHONPATH": str(tmp_path),
            "LIBGSHMEM": named,
            "LD_LIBRARY_PATH": folders,
            "PATH": path,
        }
        done = run([sys.executable, "-c", text], env=env, cwd=tmp_path)
        assert done.stdout == own + "\n", done.stdout


def test_run_and_info(tmp_path):
    script = tmp_path / "s.py"
    script.write_text(
        "import gshmem, sys\nwith gshmem.init() as job: print(job.my_pe, job.n_pes, sys.argv[1:])\n"
    )
    line = [sys.executable, "-m", "gshmem.run", "-n", "2", "--hosts", "2", str(script), "-n", "x"]
    done = run(line)
    assert sorted(done.stdout.splitlines()) == ["0 2 ['-n', 'x']", "1 2 ['-n', 'x']"]
    done = run([sys.executable, "-m", "gshmem.info"])
    assert "GSHMEM 0.1.0" in done.stdout and "libgshmem.so" in done.stdout


def test_types_and_signatures(tmp_path):
    """What an editor shows, and mypy of a user's program where it is installed."""
    assert str(inspect.signature(gshmem.reduce)) == (
        "(dest: 'np.ndarray', source: 'np.ndarray', op: 'str' = 'sum', *, team: 'Team' = WORLD)"
        " -> 'None'"
    )
    pytest.importorskip("mypy", reason="mypy is not installed")
    program = tmp_path / "program.py"
    program.write_text(
        "import gshmem\n"
        "with gshmem.init() as job:\n"
        "    a = gshmem.zeros(3)\n"
        "    gshmem.put(a[1:], a[:2], job.my_pe)\n"
        "    gshmem.reduce(a, a, 'max', team=gshmem.NODE)\n"
        "    old: int | float = gshmem.atomic_fetch_add(a[:1], 1.0, 0)\n"
        "    gshmem.barrier(1)\n"
        "    gshmem.put(a, a)\n"
    )
    done = run(
        [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", program],
        timeout=300,
        env={"MYPYPATH": f"{ROOT}/python"},
    )
    wrong = [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line]
    assert sorted(set(wrong)) == ["7", "8"], done.stdout


@pytest.mark.parametrize("options", [("-n", "1"), ("-n", "2"), ("-n", "4", "--hosts", "2")])
def test_a_program_for_nvshmem4py(options):
    line = [
        program("gshmemrun"),
        *options,
        sys.executable,
        f"{ROOT}/tests/python/nvshmem_program.py",
    ]
    done = run(line)
    assert done.returncode == 0 and done.stdout.count("complete") == int(options[1]), done.stdout


@pytest.mark.parametrize("options", [("-n", "1"), ("-n", "4"), ("-n", "4", "--hosts", "2")])
@pytest.mark.parametrize(
    "name", sorted(f for f in os.listdir(f"{ROOT}/python/examples") if f.endswith(".py"))
)
def test_examples(name, options):
    line = [program("gshmemrun"), *options, sys.executable, f"{ROOT}/python/examples/{name}"]
    done = run(line)
    assert done.returncode == 0, done.stdout


def test_pip_installs_it(tmp_path):
    """By setuptools of this Python, without an index; the library is then named by LIBGSHMEM."""
    pytest.importorskip(
        "setuptools", minversion="62.3", reason="setuptools 62.3 or newer is not installed"
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
    done = run(line, timeout=300)
    assert done.returncode == 0, done.stdout
    env = {"PYTHONPATH": str(tmp_path / "to"), "LIBGSHMEM": gshmem._library.path}
    text = "import gshmem.nvshmem.core; print(gshmem.__file__); gshmem.init(); gshmem.zeros(3)"
    done = run([sys.executable, "-c", text], env=env, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith(str(tmp_path)), done.stdout


def test_a_wheel_built_in_a_folder_with_spaces(tmp_path):
    """From an install tree as Meson leaves it, with the library of this build. Wheels of other
    versions stay."""
    for module in ("setuptools", "wheel"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    import shutil
    import zipfile

    root, library = tmp_path / "a tree", os.path.realpath(gshmem._library.path)
    shutil.copytree(f"{ROOT}/python", root / "python")
    tools, out = tmp_path / "bin", root / "wheels"
    tools.mkdir(), out.mkdir()
    (out / "gshmem-0.0.9-py3-none-any.whl").touch()
    (tools / "ninja").write_text("#!/bin/sh\n")
    (tools / "meson").write_text(f"""#!/bin/bash -e
        [ "$1" = install ] || exec mkdir -p "$2"
        mkdir -p "$DESTDIR/lib/gshmem" "$DESTDIR/bin"
        cd "$DESTDIR/lib"
        cp "{library}" libgshmem.so.0.1.0
        ln -s libgshmem.so.0.1.0 libgshmem.so.0
        ln -s libgshmem.so.0 libgshmem.so
        cp "{program("gshmemrun")}" ../bin
        ln -s gshmemrun ../bin/oshrun
    """)
    (tools / "auditwheel.py").write_text("")  # its verdict does not matter here
    for tool in ("meson", "ninja"):
        (tools / tool).chmod(0o755)
    env = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(tools),
        "GSHMEM_WHEEL_PYTHON": sys.executable,
    }
    done = run([str(root / "python/build-wheel"), str(out)], env=env, timeout=300)
    assert done.returncode == 0, done.stdout
    old, new = sorted(os.listdir(out))
    assert old == "gshmem-0.0.9-py3-none-any.whl" and new.startswith("gshmem-0.1.0-"), done.stdout
    with zipfile.ZipFile(out / new) as wheel:
        sizes = {
            i.filename.removeprefix("gshmem/_install/"): i.file_size for i in wheel.infolist()
        }
        assert sizes["lib/libgshmem.so.0"] > 100_000, "the library is missing"
        assert wheel.read("gshmem/_install/lib/libgshmem.so") == b"INPUT(libgshmem.so.0)\n"
        assert sizes["bin/oshrun"] == sizes["bin/gshmemrun"] > 10_000
        assert "lib/libgshmem.so.0.1.0" not in sizes, "the library is there twice"
