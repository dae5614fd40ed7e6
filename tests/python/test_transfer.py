"""Put, get, signals and atomics beside NumPy, on random slices; and every wrong argument."""

import gshmem
import numpy as np
import pytest

DTYPES = [
    "int8",
    "uint16",
    "int32",
    "float32",
    "int64",
    "float64",
    "complex128",
    "float16",
    "bool",
    "S3",
    [("a", "i1"), ("b", "f8")],
]
SLICES = 200


def random_slice(rng, shape):
    """A slice of each axis, with steps of both signs and sometimes of no length."""
    ways = []
    for length in shape:
        start, stop = sorted(rng.integers(0, length + 1, 2))
        step = int(rng.integers(1, 4))
        ways.append(
            slice(start, stop, step)
            if rng.integers(2)
            else slice(stop - 1 if stop else 0, start - 1 if start else None, -step)
        )
    return tuple(ways)


def random_values(rng, shape, dtype):
    bytes = rng.integers(0, 100, (*shape, np.dtype(dtype).itemsize), dtype=np.uint8)
    if np.dtype(dtype) == bool:
        bytes %= 2
    return np.ascontiguousarray(bytes).view(dtype).reshape(shape)


def random_local(rng, values):
    """The same values in an array with other strides."""
    way = rng.integers(4)
    if way == 0:
        return values
    if way == 1:
        return np.asfortranarray(values)
    if way == 2:
        wide = np.empty((*values.shape, 2), values.dtype)
        wide[..., 1] = values
        return wide[..., 1]
    return values[::-1].copy()[::-1] if values.ndim else values


@pytest.mark.parametrize("call", ["put", "put_nbi", "get", "get_nbi"])
def test_slices_beside_numpy(call, me, n, random, same):
    right, left = (me + 1) % n, (me - 1) % n
    pool = gshmem.zeros(8**3 * 16, np.uint8)
    for case in range(SLICES):
        dtype = np.dtype(DTYPES[same.integers(len(DTYPES))])
        shape = tuple(same.integers(1, 9, same.integers(1, 4)))
        way = random_slice(same, shape)
        a = pool[: int(np.prod(shape)) * dtype.itemsize].view(dtype).reshape(shape)
        a[...] = random_values(same, shape, dtype)
        values = random_values(np.random.default_rng([case, me]), a[way].shape, dtype)
        from_left = random_values(np.random.default_rng([case, left]), a[way].shape, dtype)
        expected = np.array(a)
        gshmem.barrier()
        if call.startswith("put"):
            expected[way] = from_left
            getattr(gshmem, call)(a[way], random_local(random, values), right)
            gshmem.barrier()
            assert np.asarray(a).tobytes() == expected.tobytes(), (case, dtype, shape, way)
        else:
            a[way] = values
            gshmem.barrier()
            got = random_local(random, np.zeros(a[way].shape, dtype))
            getattr(gshmem, call)(got, a[way], left)
            gshmem.quiet()
            assert np.ascontiguousarray(got).tobytes() == from_left.tobytes(), (
                case,
                dtype,
                shape,
                way,
            )
        gshmem.barrier()
    pool.free()


def test_a_field_of_records(me, n):
    a = gshmem.zeros(9, [("key", "i1"), ("value", "f8")])
    gshmem.put(a["value"][::2], np.arange(5.0) + me, (me + 1) % n)
    gshmem.barrier()
    assert (
        (a["value"][::2] == np.arange(5.0) + (me - 1) % n).all()
        and not a["key"].any()
        and not a["value"][1::2].any()
    )
    a.free()


def test_what_numpy_broadcasts(me, n):
    a = gshmem.zeros((3, 4), np.int32)
    gshmem.put(a, 7, (me + 1) % n)
    gshmem.barrier()
    assert (a == 7).all()
    gshmem.barrier()
    gshmem.put(a, [1, 2, 3, 4], (me + 1) % n)
    gshmem.barrier()
    assert (a == [1, 2, 3, 4]).all()
    a.free()


def test_zero_lengths(me, n):
    a, none = gshmem.zeros(4), gshmem.zeros((0, 3))
    gshmem.put(a[2:2], [], (me + 1) % n)
    gshmem.get(np.empty((0, 3)), none, (me + 1) % n)
    gshmem.put(none[:, ::2], np.empty((0, 2)), 0)
    gshmem.reduce(none, none)
    gshmem.broadcast(a[4:], a[4:])
    assert gshmem.wait_until_any(flags := gshmem.zeros(0, np.int32), "==", 1) is None
    flags.free(), a.free(), none.free()


def test_sources_live_until_quiet(me, n):
    """The program drops its references, and NumPy would give the same memory to the next array."""
    a = gshmem.zeros((4, 1 << 20))
    for i in range(4):
        gshmem.put_nbi(a[i], np.full(1 << 20, 100.0 * me + i), (me + 1) % n)
        np.full(1 << 20, -1.0)
    gshmem.barrier()
    assert (a == 100.0 * ((me - 1) % n) + np.arange(4)[:, None]).all()
    a.free()


@pytest.mark.parametrize("nbi", [False, True])
def test_put_signal(nbi, me, n):
    put_signal = gshmem.put_signal_nbi if nbi else gshmem.put_signal
    a, signals = gshmem.zeros(100, np.int64), gshmem.zeros(3, np.uint64)
    right = (me + 1) % n
    for i in range(1, 50):
        put_signal(a[: 2 * i], np.arange(2 * i) + i, signals[1:2], i, right)
        assert gshmem.signal_wait_until(signals[1:2], ">=", i) >= i
        gshmem.sync()
        assert (a[: 2 * i] == np.arange(2 * i) + i).all()
        gshmem.barrier()
    gshmem.put_signal(a[::7], np.full(15, 5), signals[2:3], 2, right, gshmem.SignalOp.ADD)
    gshmem.signal_wait_until(signals[2:3], "==", 2)
    assert (a[::7] == 5).all()
    gshmem.barrier()
    gshmem.signal_add(signals[:1], me + 1, 0)
    gshmem.barrier()
    assert me or gshmem.signal_fetch(signals[:1]) == n * (n + 1) // 2
    a.free(), signals.free()


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", "float32", "float64"])
def test_atomics_beside_numpy(dtype, me, n, random):
    """Each PE updates its own element of its right neighbour, so that NumPy can say what comes of
    it."""
    a = gshmem.zeros(n * 3, dtype)
    model, at, right = np.zeros((), dtype), 3 * me, (me + 1) % n
    target, whole = a[at : at + 1], np.dtype(dtype).kind in "iu"
    names = ["fetch", "set", "swap", "add", "fetch_add", "inc", "fetch_inc"]
    if whole:
        names += ["compare_swap", "and", "fetch_and", "or", "fetch_or", "xor", "fetch_xor"]
    limit = np.iinfo(dtype) if whole else None
    for _ in range(200):
        name = names[random.integers(len(names))]
        value = (
            random.integers(limit.min, limit.max, dtype=dtype, endpoint=True)
            if whole
            else random.normal()
        )
        value = np.dtype(dtype).type(value)
        old = model.copy()
        with np.errstate(over="ignore"):
            new = {
                "set": value,
                "swap": value,
                "fetch": old,
                "add": old + value,
                "inc": old + old.dtype.type(1),
            }
            if whole:
                new |= {"and": old & value, "or": old | value, "xor": old ^ value}
        arguments = () if name in ("fetch", "inc", "fetch_inc") else (value,)
        if name == "compare_swap":
            compare = old[()] if random.integers(2) else value
            result = gshmem.atomic_compare_swap(target, compare, value, right)
            model[...] = value if old == compare else old
        else:
            result = getattr(gshmem, "atomic_" + name)(target, *arguments, right)
            model[...] = new[name.removeprefix("fetch_")]
        fetches = name.startswith("fetch") or name in ("swap", "compare_swap")
        assert result == old if fetches else result is None, name
        assert gshmem.atomic_fetch(target, right) == model, name
    gshmem.barrier()
    a.free()


def test_atomics_of_all_on_one(me, n):
    a = gshmem.zeros(2, np.int64)
    got = sorted(gshmem.atomic_fetch_add(a[1:], 1, 0) for _ in range(100))
    assert len(set(got)) == 100
    gshmem.barrier()
    assert me or a[1] == 100 * n
    a.free()


WRONG_PE = [-1, 10**6, 2**32, 2**63, 2**64 + 1, None, 1.5, "0"]


def test_wrong_pe():
    a, s, local = gshmem.zeros(4), gshmem.zeros(1, np.uint64), np.zeros(4)
    for pe in WRONG_PE:
        for call in (
            lambda: gshmem.put(a, local, pe),
            lambda: gshmem.get(local, a, pe),
            lambda: gshmem.put_nbi(a, local, pe),
            lambda: gshmem.put(a[::2], local[::2], pe),
            lambda: gshmem.put_signal(a, local, s, 1, pe),
            lambda: gshmem.signal_set(s, 1, pe),
            lambda: gshmem.atomic_add(s, 1, pe),
            lambda: gshmem.peer(a, pe),
            lambda: gshmem.broadcast(a, a, pe),
            lambda: gshmem.WORLD.translate(pe),
            lambda: gshmem.peer_pointer(a, pe),
        ):
            with pytest.raises(gshmem.ArgumentError):
                call()
    a.free(), s.free()


def test_wrong_arrays(me):
    a, s = gshmem.zeros(4), gshmem.zeros(4, np.uint64)
    local = np.zeros(4)
    wrong = [
        (gshmem.DtypeError, lambda: gshmem.put(a, np.zeros(4, np.float32), me)),
        (gshmem.DtypeError, lambda: gshmem.get(np.zeros(4, np.int64), a, me)),
        (gshmem.DtypeError, lambda: gshmem.put(s, [1.5, 2], me)),
        (gshmem.DtypeError, lambda: gshmem.put(s, [-1, 2], me)),
        (gshmem.DtypeError, lambda: gshmem.put(a, ["x"] * 4, me)),
        (gshmem.ArgumentError, lambda: gshmem.put(a, np.zeros(3), me)),
        (gshmem.ArgumentError, lambda: gshmem.get(np.zeros(3), a, me)),
        (gshmem.ArgumentError, lambda: gshmem.get(np.broadcast_to(0.0, 4), a, me)),
        (gshmem.ArgumentError, lambda: gshmem.get([1, 2, 3, 4], a, me)),
        (gshmem.NotSymmetricError, lambda: gshmem.put(local, local, me)),
        (gshmem.NotSymmetricError, lambda: gshmem.put(a + 1, local, me)),
        (gshmem.NotSymmetricError, lambda: gshmem.get(local, [1, 2], me)),
        (
            gshmem.NotSymmetricError,
            lambda: gshmem.put(np.lib.stride_tricks.as_strided(a, (9,), (8,)), np.zeros(9), me),
        ),
        (
            gshmem.ArgumentError,
            lambda: gshmem.put(np.broadcast_to(a[:1], 4, subok=True), local, me),
        ),
        (gshmem.DtypeError, lambda: gshmem.signal_set(a[:1], 1, me)),
        (gshmem.DtypeError, lambda: gshmem.signal_set(s, 1, me)),
        (gshmem.ArgumentError, lambda: gshmem.signal_set(s[:1], 2**64, me)),
        (gshmem.ArgumentError, lambda: gshmem.atomic_add(s, 1, me)),
        (gshmem.DtypeError, lambda: gshmem.atomic_add(s[:1], -1, me)),
        (gshmem.DtypeError, lambda: gshmem.atomic_add(s[:1], 2**64, me)),
        (gshmem.DtypeError, lambda: gshmem.atomic_xor(a[:1], 1, me)),
        (
            gshmem.NotSymmetricError,
            lambda: gshmem.atomic_add(gshmem.SymmetricArray(1, np.int8), 1, me),
        ),
        (gshmem.DtypeError, lambda: gshmem.wait_until(a[:1], "==", 0)),
        (gshmem.ArgumentError, lambda: gshmem.wait_until(s, "==", 0)),
        (gshmem.ArgumentError, lambda: gshmem.wait_until(s[:1], "=", 0)),
        (gshmem.DtypeError, lambda: gshmem.wait_until(s[:1], "==", -1)),
        (gshmem.ArgumentError, lambda: gshmem.wait_until_all(s, "==", [1, 2, 3])),
        (gshmem.ArgumentError, lambda: gshmem.wait_until_all(s[::2], "==", 0)),
        (gshmem.ArgumentError, lambda: gshmem.reduce(a, a, "mean")),
        (gshmem.DtypeError, lambda: gshmem.reduce(a, a, "xor")),
        (gshmem.DtypeError, lambda: gshmem.reduce(s, a)),
        (gshmem.ArgumentError, lambda: gshmem.reduce(a[::2], a[::2])),
        (gshmem.ArgumentError, lambda: gshmem.fcollect(a[:3], a)),
        (gshmem.ArgumentError, lambda: gshmem.free(a[1:])),
        (gshmem.NotSymmetricError, lambda: gshmem.free(local)),
        (gshmem.ArgumentError, lambda: gshmem.zeros(-1)),
        (gshmem.DtypeError, lambda: gshmem.zeros(3, object)),
        (gshmem.OutOfMemoryError, lambda: gshmem.zeros(2**62, np.float64)),
        (gshmem.OutOfMemoryError, lambda: gshmem.empty(2**50, np.int8)),
    ]
    for i, (error, call) in enumerate(wrong):
        try:
            call()
        except error:
            pass
        else:
            pytest.fail(f"number {i} raises nothing")
        gshmem.sync()
    assert issubclass(gshmem.OutOfMemoryError, MemoryError) and issubclass(
        gshmem.ArgumentError, ValueError
    )
    a.free(), s.free()


class Copies:
    """As datasets of h5py: NumPy gets a copy each time."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


class Shares(Copies):
    """As tensors: NumPy gets the memory itself."""

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_what_get_writes_to(me):
    """The object's own memory, or nothing."""
    a = gshmem.full(4, 3, np.uint8)
    zeros = [0] * 4
    copies, shares = Copies(np.zeros(4, np.uint8)), Shares(np.zeros(4, np.uint8))
    buffer = bytearray(4)
    for call in (
        lambda: gshmem.get(copies, a, me),
        lambda: gshmem.get_nbi(copies, a, me),
        lambda: gshmem.get_on_stream(copies, a, me, None),
        lambda: gshmem.get(zeros, a, me),
        lambda: gshmem.get(bytes(4), a, me),
    ):
        with pytest.raises(gshmem.ArgumentError):
            call()
    gshmem.get(shares, a, me)
    gshmem.get(buffer, a, me)
    assert (shares.values == 3).all() and buffer == b"\x03" * 4
    gshmem.put(a, Copies(np.full(4, 5, np.uint8)), me)
    assert (a == 5).all()
    a.free()


def test_what_begins_during_quiet_is_not_let_go(me):
    """As by another thread: quiet does not complete it, so its local array stays."""
    from gshmem import _transfer

    a, before, during = gshmem.zeros(4), np.ones(4), np.ones(4)
    gshmem.put_nbi(a, before, me)
    is_held = lambda array: any(held is array for held in _transfer._pending)  # noqa: E731
    _transfer.complete("test", lambda: (gshmem.put_nbi(a, during, me), 0)[1])
    assert is_held(during) and not is_held(before)
    with pytest.raises(gshmem.GshmemError):
        _transfer.complete("test", lambda: 1)
    assert is_held(during)
    gshmem.quiet()
    assert not is_held(during)
    a.free()


def test_a_freed_array(me):
    a, s = gshmem.zeros(4), gshmem.zeros(1, np.uint64)
    part, plain = a[1:3], np.asarray(a)
    gshmem.put(part, [1.0, 2.0], me)
    gshmem.free(a)
    s.free()
    gshmem.barrier()
    for call in (
        lambda: gshmem.put(a, np.zeros(4), me),
        lambda: gshmem.put(part, np.zeros(2), me),
        lambda: gshmem.get(np.zeros(2), part, me),
        lambda: gshmem.put(plain, np.zeros(4), me),
        lambda: gshmem.put_nbi(part, 1.0, me),
        lambda: gshmem.atomic_add(s, 1, me),
        lambda: gshmem.signal_set(s, 1, me),
        lambda: gshmem.wait_until(s, "==", 0),
        lambda: gshmem.reduce(a, a),
        lambda: gshmem.free(a),
        lambda: gshmem.peer(a, me),
    ):
        with pytest.raises((gshmem.StateError, gshmem.NotSymmetricError)):
            call()
    assert len(np.array(a)) == len(plain) == 4  # no fault
    b = gshmem.zeros(4)
    with pytest.raises((gshmem.StateError, gshmem.NotSymmetricError)):
        gshmem.put(b, a, me)
    b.free()
