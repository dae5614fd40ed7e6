"""Memory, peers, teams, collectives, waits, locks: what all PEs do together."""

import copy
import os
import pickle
import threading
import time

import gshmem
import numpy as np
import pytest

mapped = lambda: gshmem.SHARED.n_pes  # noqa: E731


def test_arrays_are_numpy_arrays(me):
    a = gshmem.full((2, 3), 1.5)
    assert isinstance(a, np.ndarray) and a.sum() == 9 and type(a[0]) is gshmem.SymmetricArray
    assert (
        type(a + a) is np.ndarray and isinstance(a.sum(), float) and type(np.sqrt(a)) is np.ndarray
    )
    before = a
    a += 1
    assert a is before and (a == 2.5).all()
    assert type(copy.deepcopy(a)) is np.ndarray and (pickle.loads(pickle.dumps(a)) == a).all()
    assert (np.from_dlpack(a) == a).all() and np.shares_memory(np.from_dlpack(a), a)
    assert a.ctypes.data % 16 == 0
    b = gshmem.array([[1, 2], [3, 4]], np.int16)
    assert b.dtype == np.int16 and b.tolist() == [[1, 2], [3, 4]]
    with gshmem.zeros(3) as c:
        gshmem.put(c, 1.0, me)
    with pytest.raises(gshmem.StateError):
        gshmem.put(c, 1.0, me)
    a.free(), b.free()


def test_peer_views_and_pointers(me, n):
    a = gshmem.full((3, 4), me)
    gshmem.barrier()
    bases = gshmem.heap_bases()
    for pe in range(n):
        pointer = gshmem.peer_pointer(a, pe)
        if not pointer:
            assert bases[pe] == gshmem.NOT_MAPPED
            with pytest.raises(gshmem.UnsupportedError):
                gshmem.peer(a, pe)
            continue
        assert (int(bases[pe]) + a.ctypes.data) % 2**64 == pointer
        view = gshmem.peer(a[1:, ::-2], pe)
        assert view.shape == (2, 2) and (view == pe).all()
    assert (gshmem.peer(a, me) == a).all() and np.shares_memory(gshmem.peer(a, me), a)
    gshmem.barrier()
    if gshmem.peer_pointer(a, (me + 1) % n):
        gshmem.peer(a[2:], (me + 1) % n)[...] = 77
    else:
        gshmem.put(a[2:], 77, (me + 1) % n)
    gshmem.barrier()
    assert (a[2] == 77).all()
    a.free()


def test_collectives_beside_numpy(me, n, same):
    everyone = same.integers(-1000, 1000, (n, 2 * n, 3))
    for dtype in (
        "int8",
        "uint16",
        "int32",
        "int64",
        "float32",
        "float64",
        "complex64",
        "float16",
        "longdouble",
    ):
        values = (everyone % 5).astype(dtype)
        a, b = gshmem.array(np.zeros((2 * n, 3), dtype)), gshmem.zeros((n, 2 * n, 3), dtype)
        a[...] = values[me]
        gshmem.fcollect(b, a)
        assert (b == values).all()
        gshmem.alltoall(b[0], a)
        assert (b[0] == np.concatenate([values[pe, 2 * me : 2 * me + 2] for pe in range(n)])).all()
        gshmem.broadcast(b[0], a, n - 1)
        assert (b[0] == values[n - 1]).all()
        gshmem.reduce(b[0], a)
        assert (b[0] == values.sum(0, dtype)).all(), dtype
        gshmem.reducescatter(b[0, :2], a)
        assert (b[0, :2] == values.sum(0, dtype)[2 * me : 2 * me + 2]).all()
        gshmem.inscan(b[0], a)
        assert (b[0] == values[: me + 1].sum(0, dtype)).all()
        gshmem.exscan(b[0], a)
        assert (b[0] == values[:me].sum(0, dtype)).all()
        if np.dtype(dtype).kind in "iu":
            for op, function in (
                ("xor", np.bitwise_xor),
                ("and", np.bitwise_and),
                ("or", np.bitwise_or),
            ):
                gshmem.reduce(b[0], a, op)
                assert (b[0] == function.reduce(values, 0)).all()
        if np.dtype(dtype).kind != "c":
            gshmem.reduce(b[0], a, "max")
            assert (b[0] == values.max(0)).all()
        gshmem.reduce(a[1:2], a[1:2], "prod")
        assert np.allclose(a[1:2].astype(complex), values[:, 1:2].prod(0, dtype).astype(complex))
        a.free(), b.free()


def test_collect_and_alltoalls(me, n):
    a, b = gshmem.zeros(n), gshmem.zeros(n * n)
    a[: me + 1] = me
    gshmem.collect(b, a[: me + 1])
    assert (b[: n * (n + 1) // 2] == np.repeat(np.arange(n), np.arange(1, n + 1))).all()
    c, d = gshmem.zeros(4 * n, np.int32), gshmem.zeros(6 * n, np.int32)
    c[::2] = 10 * me + np.arange(2 * n)
    gshmem.alltoalls(d, c, 3, 2, 2)
    assert (d[::3] == [10 * pe + 2 * me + i for pe in range(n) for i in (0, 1)]).all()
    for x in (a, b, c, d):
        x.free()


def test_collect_into_an_array_that_is_too_small(me, n):
    """On one PE alone; all refuse, and nothing beside it is overwritten."""
    a, b = gshmem.full(1000 * n + 100, -1.0), gshmem.full(1000, float(me))
    room = 1000 * n - (me == n - 1)
    with pytest.raises(gshmem.ArgumentError, match="too small"):
        gshmem.collect(a[:room], b)
    gshmem.barrier()
    assert (a == -1).all()
    gshmem.collect(a[: 1000 * n], b)
    assert (a[: 1000 * n] == np.repeat(np.arange(n), 1000)).all() and (a[1000 * n :] == -1).all()
    a.free(), b.free()


def test_streams_take_what_put_takes(me, n):
    """A list, a copy of a symmetric array, an array of another library: the memory stays."""
    a, b = gshmem.zeros(4), gshmem.full(4, me + 0.5)
    right = (me + 1) % n
    held = len(gshmem._stream._used)
    for source in ([1.0, 2.0, 3.0, 4.0], b.copy(), b):
        gshmem.put_on_stream(a, source, right, None)
        gshmem.barrier_on_stream(None)
        gshmem.quiet_on_stream(None)
        gshmem.get_on_stream(got := np.zeros(4), a, me, None)
        end = time.monotonic() + 100
        expected = source if isinstance(source, list) else (me - 1) % n + 0.5
        while not (got == expected).all():
            assert time.monotonic() < end, got
            time.sleep(0.001)
        gshmem.barrier()
    assert len(gshmem._stream._used) == held + 2 + 3, "a copy is not in symmetric memory"
    a.free(), b.free()


def test_teams(me, n):
    assert gshmem.WORLD.my_pe == me and len(gshmem.WORLD) == n
    even = gshmem.WORLD.split(0, 2, (n + 1) // 2)
    assert (even is None) == bool(me % 2)
    a = gshmem.full(2, float(me))
    if even:
        assert even.n_pes == (n + 1) // 2 and even.translate(even.my_pe) == me
        assert gshmem.WORLD.translate(me, even) == me // 2
        even.reduce(a, a)
        assert (a == sum(range(0, n, 2))).all()
        gshmem.sync(team=even)
        even.destroy()
        with pytest.raises(gshmem.StateError):
            even.sync()
    back = gshmem.WORLD.split_list(range(n - 1, -1, -1))
    assert back.my_pe == n - 1 - me
    back.destroy()
    row, column = gshmem.WORLD.split_2d(2)
    assert row.n_pes == min(2, n) and column.my_pe == me // 2
    with pytest.raises(gshmem.ArgumentError):
        gshmem.WORLD.destroy()
    row.destroy(), column.destroy(), a.free()


def test_a_team_by_an_id(me, n):
    """Of all PEs but the first, in reverse; the first makes the id, and is in no call meanwhile."""
    mail, a = gshmem.zeros(1, np.uint64), gshmem.full(2, float(me))
    if me == 0:
        uid = gshmem.team_unique_id()
        assert uid != gshmem.team_unique_id() and 0 < uid < 2**64
        for pe in range(1, n):
            gshmem.put(mail, np.array([uid], np.uint64), pe)
    gshmem.barrier()
    if me > 0:
        with gshmem.team_create(int(mail[0]), n - 1, n - 1 - me) as team:
            assert (team.my_pe, team.n_pes, team.translate(0)) == (n - 1 - me, n - 1, n - 1)
            team.reduce(a, a)
            assert (a == sum(range(1, n))).all()
    for uid, size, number in ((0, 1, 0), (2**64, 1, 0), (1, 2**31, 0), (1, 1, -(2**31) - 1)):
        with pytest.raises(gshmem.ArgumentError, match="team_create"):
            gshmem.team_create(uid, size, number)
    with pytest.raises(gshmem.ArgumentError, match="team_create"):
        gshmem.team_create(gshmem.team_unique_id(), 2, 2)
    gshmem.barrier()
    mail.free(), a.free()


def test_waits(me, n):
    right = (me + 1) % n
    for dtype in ("int16", "uint16", "int32", "uint32", "int64", "uint64"):
        flags = gshmem.zeros(6, dtype)
        assert gshmem.test(flags[:1], "==", 0) and not gshmem.test(flags[:1], "!=", 0)
        assert gshmem.test_any(flags, ">", 0) is None and len(gshmem.test_some(flags, ">", 0)) == 0
        gshmem.barrier()
        if me == 0:
            time.sleep(0.01)  # longer than a wait polls
        for i in (4, 1):
            gshmem.put(flags[i : i + 1], 5 + i, right)
        gshmem.fence()
        gshmem.wait_until(flags[4:5], ">=", 9)
        gshmem.wait_until(flags[1:2], "==", 6)
        assert gshmem.wait_until_any(flags, ">", 0) in (1, 4)
        assert gshmem.wait_until_any(flags, ">", 0, exclude=[0, 1, 0, 0, 0, 0]) == 4
        assert sorted(gshmem.wait_until_some(flags, "!=", 0)) == [1, 4]
        assert gshmem.wait_until_any(flags, ">", 0, exclude=np.ones(6)) is None
        gshmem.wait_until_all(flags[1:5:1], ">=", [6, 0, 0, 9])
        assert gshmem.test_all(flags, "<", 100) and not gshmem.test_all(flags, ">", 0)
        gshmem.wait_until_all(flags, ">", 0, exclude=[1, 0, 1, 1, 0, 1])
        gshmem.barrier()
        flags.free()


def test_locks(me, n):
    lock, count = gshmem.Lock(), gshmem.zeros(1, np.int64)
    mine = np.zeros(1, np.int64)
    for _ in range(20):
        with lock:
            gshmem.get(mine, count, 0)
            gshmem.put(count, mine + 1, 0)
            gshmem.quiet()
    gshmem.barrier()
    assert me or count[0] == 20 * n
    gshmem.barrier()
    if me == 0:
        assert lock.acquire(blocking=False) and not lock.acquire(blocking=False)
        lock.release()
    gshmem.barrier()
    lock.free(), count.free()


def test_threads_run_while_one_waits(me, n):
    """Waiting calls release the GIL: the thread that makes the condition true gets to run."""
    flag = gshmem.zeros(1, np.uint64)
    threading.Timer(0.05, lambda: gshmem.signal_set(flag, 3, me)).start()
    assert gshmem.signal_wait_until(flag, "==", 3) == 3
    results = []
    thread = threading.Thread(target=lambda: (gshmem.wait_until(flag, "==", 4), results.append(1)))
    thread.start()
    gshmem.signal_set(flag, 4, me)
    thread.join()
    assert results == [1]
    flag.free()


def test_failures_of_calls_that_return_a_value(me, n):
    """The thread that has called gets them, and quiet gets those of no call."""
    from gshmem._library import lib, value_of

    flag = gshmem.zeros(1, np.uint64)
    wrong = (flag.ctypes.data, 99, 1)  # no comparison has this number
    fails = lambda: value_of(lib.gshmem_signal_wait_until, *wrong)  # noqa: E731
    seen = []

    def other():
        for _ in range(200):
            with pytest.raises(gshmem.ArgumentError, match="signal_wait_until"):
                fails()
        seen.append(True)

    thread = threading.Thread(target=other)
    thread.start()
    for _ in range(200):
        with pytest.raises(gshmem.ArgumentError):
            fails()
        gshmem.fence()
    thread.join()
    assert seen == [True]
    gshmem.quiet()
    lib.gshmem_signal_wait_until(*wrong)  # what fails now is no call's
    assert value_of(lib.gshmem_my_pe) == me
    with pytest.raises(gshmem.ArgumentError):
        gshmem.quiet()
    gshmem.quiet()
    flag.free()


def test_disagreement_is_an_exception(me, n):
    if n == 1:
        pytest.skip("one PE agrees with itself")
    with pytest.raises(gshmem.MismatchError):
        gshmem.empty(100 + me, np.int8)


def test_allocations_that_fail(me):
    with pytest.raises(gshmem.OutOfMemoryError):
        gshmem.empty(2**50, np.int8)
    for call in ("empty", "zeros", "full"):
        more = (1,) if call == "full" else ()
        with pytest.raises(gshmem.ArgumentError, match=f"^{call}: shape .* negative"):
            getattr(gshmem, call)(-1, *more)
    with pytest.raises(gshmem.DtypeError, match="^zeros: Python objects"):
        gshmem.zeros(1, object)
    with pytest.raises(gshmem.ArgumentError, match="^full: "):
        gshmem.full(3, [1, 2])
    for dtype in ("S5", "M8[s]", [("a", "i4"), ("b", "f8")]):
        with gshmem.zeros(2, dtype) as a:
            assert (a == np.zeros(2, dtype)).all()


def test_init_nests(me):
    with gshmem.init() as job:
        assert job.my_pe == me
    assert gshmem.initialized()


def test_jax_shares_an_array(me, n):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    a = gshmem.zeros(64, np.float32)
    gshmem.put(a, np.full(64, me, np.float32), (me + 1) % n)
    gshmem.barrier()
    x = jax.dlpack.from_dlpack(a)
    assert x.unsafe_buffer_pointer() == a.ctypes.data, "a copy"
    with gshmem.zeros(64, np.float32) as b:
        gshmem.put(b, x * 2 + 1, (me + 1) % n)  # a jax array as the source
        gshmem.barrier()
        assert (b == 2 * ((me - 2) % n) + 1).all()
        with pytest.raises(gshmem.ArgumentError):
            gshmem.get(jax.numpy.zeros(64), a, me)  # which is read-only
    del x
    a.free()


def test_numba_kernels_of_the_simulator(me, n):
    """Kernels put by a peer's pointer where there is one, signal and wait through the library."""
    global cuda  # where the simulator looks for it
    cuda = pytest.importorskip("numba.cuda", reason="numba is not installed")
    if not os.environ.get("NUMBA_ENABLE_CUDASIM"):
        pytest.skip("numba runs without its simulator")
    a, s = gshmem.zeros(8), gshmem.zeros(1, np.uint64)
    right = (me + 1) % n
    there = gshmem.peer(a, right) if gshmem.peer_pointer(a, right) else None

    @cuda.jit
    def kernel(values):
        i = cuda.threadIdx.x
        if there is not None:
            there[i] = values[i]
        else:
            gshmem.put(a[i : i + 1], values[i], right)
        cuda.syncthreads()
        if i == 0:
            gshmem.quiet()
            gshmem.signal_set(s, 1, right)
            gshmem.signal_wait_until(s, "==", 1)

    kernel[1, 8](np.arange(8.0) + me)
    assert (a == np.arange(8.0) + (me - 1) % n).all()
    gshmem.barrier()
    a.free(), s.free()
