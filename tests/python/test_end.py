"""How a job ends for a process: finalize, forked children, Ctrl-C, PEs that have left."""

import os
import signal
import time

import pytest
from alone import is_inside, passes, python, wait_until


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


def test_what_arrives_last_is_kept():
    """A PE that finalizes first sees what another one puts before it finalizes."""
    for options in (("-n", "2"), ("-n", "2", "--hosts", "2")):
        passes(
            """
            gshmem.init()
            me, a = gshmem.my_pe(), gshmem.zeros(1000)
            gshmem.barrier()
            if me == 0:
                time.sleep(0.3)
                gshmem.put_nbi(a, np.full(1000, 7.0), 1)
            gshmem.finalize()
            assert (a == 7 * me).all(), a
        """,
            *options,
        )


def test_a_freed_array_whose_address_is_used_again():
    """Views of it do not fault after finalize, nor do views of a peer's."""
    passes("""
        gshmem.init()
        a = gshmem.full(100_000, 1.0)
        old, old_peer = a[5:], gshmem.peer(a, 0)
        gshmem.free(a)
        b = gshmem.full(3, 2.0)
        assert b.ctypes.data == a.ctypes.data, "another address: this test shows nothing"
        gshmem.finalize()
        old.sum(), old_peer.sum(), a.sum()
        assert (b == 2).all() and old[-1] == 1
    """)


def test_kept_memory_is_never_free():
    """One thread reads an array while finalize takes the job's memory from it, and another one
    takes all addresses that are free."""
    passes("""
        import mmap
        ends, ranges = False, []

        def read(a, view):
            while not ends:
                assert a[0] == a[-1] == view[-1] == 7

        def take(bytes):
            while not ends:
                ranges.append(mmap.mmap(-1, bytes))
                ranges[-1][:8] = b"\\xff" * 8
                if len(ranges) > 20:
                    del ranges[:10]

        for _ in range(5):
            ends = False
            gshmem.init()
            a = gshmem.full(100_000, 7, np.int64)
            threads = [threading.Thread(target=take, args=(a.nbytes,))]
            threads += [threading.Thread(target=read, args=(a, gshmem.peer(a, 0)))]
            for thread in threads:
                thread.start()
            gshmem.finalize()
            time.sleep(0.02)
            ends = True
            for thread in threads:
                thread.join()
            assert (a == 7).all()
    """)


# PE 0 says which call it is about to make; PE 1 waits there until the test lets it go on.
CALLS = """
        me, directory = int(os.environ["GSHMEM_RUN_PE"]), {directory!r}

        def about_to_call(name):
            if me == 0:
                files = len(os.listdir("/proc/self/fd"))
                print("calls", os.getpid(), files, name, flush=True)
            while me == 1 and not os.path.exists(f"{{directory}}/{{name}}"):
                time.sleep(0.01)
"""


def signals_in_calls(text, directory):
    """Runs two PEs. For each call that PE 0 is about to make, it waits until PE 0 is inside of it,
    sends SIGALRM, and only then lets PE 1 make the call for which PE 0 waits."""
    process = python(CALLS.format(directory=str(directory)) + text, "-n", "2", wait=False)
    rest = []
    for line in process.stdout:
        if not line.startswith("calls "):
            rest.append(line)
            continue
        pid, files, name = line.split()[1:]
        if name == "gshmem_init":  # it opens files, and gshmem-where knows of no job yet
            wait_until(lambda: len(os.listdir(f"/proc/{pid}/fd")) >= int(files), process)
        else:
            wait_until(lambda: is_inside(pid, name), process)
        os.kill(int(pid), signal.SIGALRM)
        (directory / name).touch()
    assert process.wait(60) == 0, "".join(rest)


def test_a_signal_handler_that_raises_while_finalize_waits(tmp_path):
    """Its exception is raised by finalize, and arrays keep their contents."""
    signals_in_calls(
        """
        gshmem.init()
        a = gshmem.full(1000, 7.0)
        gshmem.barrier()
        signal.signal(signal.SIGALRM, lambda *_: sys.exit("raised"))
        about_to_call("gshmem_finalize")
        try:
            gshmem.finalize()
            raised = None
        except SystemExit as error:
            raised = error.code
        assert a.sum() == 7000 and not gshmem.initialized()
        assert raised == (None if me else "raised"), raised
    """,
        tmp_path,
    )


def test_a_signal_handler_that_raises_after_a_call_has_succeeded(tmp_path):
    """PE 0 waits in each call for the other one, and there the signal arrives: what the call has
    ended is known to be gone."""
    signals_in_calls(
        """
        class Signal(Exception):
            pass

        def handle(*_):
            raise Signal

        signal.signal(signal.SIGALRM, handle)
        late = []

        def call(name, function):
            about_to_call(name)
            try:
                function()
            except Signal:
                late.append(name)

        def refused(function):
            try:
                function()
            except gshmem.StateError:
                return
            sys.exit("a call passes")

        call("gshmem_init", gshmem.init)
        assert gshmem.my_pe() == me and gshmem.initialized()
        a, team = gshmem.zeros(8), gshmem.WORLD.split(0, 1, 2)
        call("gshmem_free", lambda: gshmem.free(a))
        refused(lambda: gshmem.put(a, 1.0, 0))
        call("gshmem_team_destroy", team.destroy)
        refused(team.sync)
        assert len(late) == (0 if me else 3), late
        gshmem.barrier()
        gshmem.finalize()
    """,
        tmp_path,
    )


def test_a_lock_and_signals_at_any_point():
    """After an exception of a signal handler the lock is free, or its owner is known."""
    passes("""
        import random

        class Signal(Exception):
            pass

        armed = False

        def handle(*_):
            if armed:
                raise Signal

        signal.signal(signal.SIGALRM, handle)
        gshmem.init()
        lock = gshmem.Lock()
        signals = 0
        while signals < 1500:
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, random.randrange(1, 80) * 1e-6)
                lock.acquire()
                lock.release()
                while True:
                    pass
            except Signal:
                signals += 1
            armed = False
            if lock._owner:
                lock.release()
            assert lock.acquire(blocking=False), f"after {signals} signals nobody has the lock"
            lock.release()
        gshmem.finalize()
    """)


def test_a_team_of_an_earlier_job():
    passes("""
        gshmem.init()
        old = gshmem.WORLD.split(0, 1, 1)
        gshmem.finalize()
        gshmem.init()
        new = gshmem.WORLD.split(0, 1, 1)
        assert old._handle == new._handle, "another number: this test shows nothing"
        for call in (old.sync, old.destroy, lambda: old.n_pes):
            try:
                call()
                sys.exit("a call on the old team passes")
            except gshmem.StateError as error:
                assert "earlier job" in str(error)
        assert "gone" in repr(old) and "PE 0 of 1" in repr(new) and gshmem.WORLD.n_pes == 1
        new.destroy()
        gshmem.finalize()
    """)


def test_an_array_of_more_than_two_gib_is_kept():
    if "GSHMEM_TEST_LARGE" not in os.environ:
        pytest.skip("it takes 6 GiB and some seconds: tests/run --soak")
    passes(
        """
        gshmem.init()
        a = gshmem.empty(2**31 + 4096, np.uint8)
        a[0], a[-1] = 3, 5
        gshmem.finalize()
        assert a[0] == 3 and a[-1] == 5 and a[2**30] == 0
    """,
        env={"GSHMEM_HEAP_SIZE": "3G"},
    )


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
            thread = threading.Thread(target=lock.acquire)
            thread.start()
            thread.join()

        def is_helper(name):
            return name.startswith("gshmem-") and name != "gshmem-interrupts"

        def interrupt():
            while not any(is_helper(t.name) and t.is_alive() for t in threading.enumerate()):
                time.sleep(0.01)
            time.sleep(0.3)  # so that the call mostly waits; it passes either way
            os.kill(os.getpid(), signal.SIGINT)

        try:
            threading.Thread(target=interrupt).start()
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
        end = time.monotonic() + 50
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
    out, _ = process.communicate(timeout=100)
    lines = out.splitlines()
    assert process.returncode == 0 and lines[0] == "interrupted" and lines[-1] == "ends", out
    assert "which was interrupted, still waits" in lines[1], out


def test_a_lock_whose_acquire_was_interrupted():
    """This PE gives it on when it gets it: a later acquire does not wait for it, again and again,
    nor does one of a helper thread take itself for the holder."""
    passes(
        """
        gshmem.init()
        lock, flag = gshmem.Lock(), gshmem.zeros(1, np.uint64)
        for round in range(1, 6):
            gshmem.barrier()
            if gshmem.my_pe() == 1:
                with lock:
                    gshmem.signal_set(flag, 2 * round - 1, 0)
                    gshmem.signal_wait_until(flag, "==", 2 * round)
                gshmem.barrier()
                continue
            gshmem.signal_wait_until(flag, "==", 2 * round - 1)
            try:
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
                lock.acquire()
                sys.exit("acquire returns")
            except KeyboardInterrupt:
                pass
            gshmem.signal_set(flag, 2 * round, 1)
            for _ in range(3):
                with lock:
                    try:
                        lock.acquire()
                        sys.exit("it is acquired twice")
                    except gshmem.StateError:
                        assert not lock.acquire(blocking=False)
            gshmem.barrier()
        gshmem.finalize()
    """,
        "-n",
        "2",
    )


@pytest.mark.parametrize("who", ["a child", "a thread", "the program's handler"])
def test_interrupt_of_another_one(who):
    """A barrier for which another PE is late goes on, where Ctrl-C does not end it: a forked child
    has it; the main thread has it, which is not in the barrier; the program has a handler of its
    own, which runs when the barrier ends."""
    passes(
        f"""
        who = {who!r}
        gshmem.init()
        me = gshmem.my_pe()
        gshmem.barrier()
        if who == "the program's handler":
            handled = []
            signal.signal(signal.SIGINT, lambda *_: handled.append(True))
            if me == 0:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            else:
                time.sleep(2)
            gshmem.barrier()
            while me == 0 and not handled:
                time.sleep(0.01)
        elif me == 1:
            time.sleep(6 if who == "a child" else 2)
            gshmem.barrier()
        elif who == "a child":
            from gshmem import _job

            ended = []

            def fork():
                while not _job._inside.value:
                    time.sleep(0.01)
                if (child := os.fork()) == 0:
                    try:
                        os.kill(os.getpid(), signal.SIGINT)
                        time.sleep(60)
                        os._exit(1)
                    except KeyboardInterrupt:
                        os._exit(0)
                ended.append(os.waitpid(child, 0)[1])

            thread = threading.Thread(target=fork)
            thread.start()
            gshmem.barrier()
            thread.join()
            assert ended == [0]
        else:
            thread = threading.Thread(target=gshmem.barrier)
            thread.start()
            try:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                time.sleep(60)
            except KeyboardInterrupt:
                pass
            thread.join()
        gshmem.finalize()
    """,
        "-n",
        "2",
    )


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
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 130 and "KeyboardInterrupt" in out, out


def test_interrupt_in_a_collective_ends_the_job():
    process = python(
        """
        gshmem.init()
        if gshmem.my_pe() == 0:
            print("waits", os.getpid(), flush=True)
            gshmem.barrier()
        time.sleep(100)  # PE 1, and a signal for it does not let it go on
    """,
        "-n",
        "2",
        wait=False,
    )
    pid = process.stdout.readline().split()[1]
    wait_until(lambda: is_inside(pid, "gshmem_barrier"), process)
    os.kill(int(pid), signal.SIGINT)
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 130 and "PE 0: interrupted in barrier" in out, (
        process.returncode,
        out,
    )


@pytest.mark.parametrize(
    "who",
    [
        "an event loop",
        "an event loop that is closed",
        "a task",
        "a handler that was set meanwhile",
    ],
)
def test_interrupt_in_a_collective_where_others_watch(who):
    """The job ends all the same: signal.set_wakeup_fd is another's, the collective is called by a
    task of asyncio.run, or the program has had a handler for a while."""
    process = python(
        f"""
        import asyncio

        who = {who!r}
        gshmem.init()
        gshmem.barrier()
        if gshmem.my_pe() == 0:
            loop = asyncio.new_event_loop()
            if "loop" in who:
                loop.add_signal_handler(signal.SIGUSR1, lambda: None)
            if "closed" in who:
                loop.close()
            if "handler" in who:
                before = signal.signal(signal.SIGINT, lambda *_: None)
                gshmem.WORLD.n_pes
                signal.signal(signal.SIGINT, before)
                time.sleep(0.01)  # handlers are looked at once in a millisecond

            async def task():
                gshmem.barrier()

            print("waits", os.getpid(), flush=True)
            if who == "a task":
                asyncio.run(task())
            gshmem.barrier()
        time.sleep(100)  # PE 1, and a signal for it does not let it go on
    """,
        "-n",
        "2",
        wait=False,
    )
    pid = process.stdout.readline().split()[1]
    wait_until(lambda: is_inside(pid, "gshmem_barrier"), process)
    os.kill(int(pid), signal.SIGINT)
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 130 and "PE 0: interrupted in barrier" in out, (
        process.returncode,
        out,
    )


def test_interrupt_that_the_program_has_handled():
    """It is not charged to the collective that follows at once."""
    passes(
        """
        gshmem.init()
        for _ in range(3):
            gshmem.barrier()
            if gshmem.my_pe() == 0:
                try:
                    os.kill(os.getpid(), signal.SIGINT)
                    time.sleep(100)
                except KeyboardInterrupt:
                    pass
            else:
                time.sleep(1.5)
            gshmem.barrier()
        gshmem.finalize()
    """,
        "-n",
        "2",
    )


@pytest.mark.parametrize(
    "who", ["the same call", "a later call", "an earlier call", "the program's handler"]
)
def test_which_call_an_interrupt_ends(who):
    """The job ends if the main thread stays in the call in which Ctrl-C has found it. It does not
    end for a later call of the same name, nor where the program has its own handler for SIGINT."""
    passes(f"""
        from gshmem import _job

        who, ends = {who!r}, []
        gshmem.init()
        first, later = (1, "barrier"), (2, "barrier")

        class State(type(_job.state)):
            reads = 0

            @property
            def inside(self):
                self.reads += 1
                if who == "an earlier call":
                    return later
                return later if who == "a later call" and self.reads > 1 else first

        real, _job.state = _job.state, State()
        _job.state.pe, _job.state.depth = real.pe, real.depth
        real_exit, _job.lib.gshmem_global_exit = _job.lib.gshmem_global_exit, ends.append
        if who == "the program's handler":
            signal.signal(signal.SIGINT, lambda *_: None)
        reader, writer = os.pipe()
        os.write(writer, (1).to_bytes(8, sys.byteorder))
        os.close(writer)
        _job._watch(reader)
        _job.state, _job.lib.gshmem_global_exit = real, real_exit
        assert ends == ([130] if who == "the same call" else []), ends
        gshmem.finalize()
    """)


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
