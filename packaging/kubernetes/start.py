"""A PE in a pod of an indexed Job: starts by a unique id, which pod 0 hands to the others.

GSHMEM_JOB_HOST is pod 0's name in the headless service, GSHMEM_JOB_KEY a secret of the job: who has
no key gets no id, and holds nobody up. All wait GSHMEM_INIT_TIMEOUT seconds for the others. Neither
privileges nor an MPI are needed.

    python3 start.py program.py [argument…]    the program finds the job started
"""

import os
import runpy
import socket
import struct
import sys
import threading
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge

import gshmem

PORT = int(os.environ.get("GSHMEM_JOB_PORT", "7077"))
LIMIT = float(os.environ.get("GSHMEM_INIT_TIMEOUT", "120"))


def serve(stream: socket.socket, uid: bytes, key: bytes, waiting: set[int]) -> None:
    """One connection, by a thread of its own: it may be silent."""
    for direction in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        stream.setsockopt(socket.SOL_SOCKET, direction, struct.pack("ll", 10, 0))
    try:
        with Connection(stream.detach()) as connection:
            deliver_challenge(connection, key)
            answer_challenge(connection, key)
            pe = int(connection.recv_bytes(16))
            connection.send_bytes(uid)
        waiting.discard(pe)
    except (OSError, EOFError, ValueError, AuthenticationError) as error:
        print(f"start: a connection was refused: {error}", file=sys.stderr)


def hand_out(uid: bytes, n: int, key: bytes) -> None:
    """To PEs 1 to n - 1, which have the key; others are turned away."""
    waiting, end = set(range(1, n)), time.monotonic() + LIMIT
    with socket.create_server(("", PORT), backlog=n + 8) as server:
        server.settimeout(0.1)
        while waiting:
            if time.monotonic() > end:
                raise TimeoutError(f"start: PEs {sorted(waiting)} have not come within {LIMIT:g} s")
            try:
                stream, _ = server.accept()
            except socket.timeout:
                continue
            stream.settimeout(None)
            work = threading.Thread(target=serve, args=(stream, uid, key, waiting), daemon=True)
            work.start()


def fetch(pe: int, key: bytes) -> bytes:
    """From pod 0, which may not have started yet."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            with Client((os.environ["GSHMEM_JOB_HOST"], PORT), authkey=key) as connection:
                connection.send_bytes(str(pe).encode())
                return connection.recv_bytes(1024)
        except (OSError, EOFError):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def main() -> None:
    pe, n = int(os.environ["JOB_COMPLETION_INDEX"]), int(os.environ["GSHMEM_JOB_PES"])
    key = os.environ.pop("GSHMEM_JOB_KEY").encode()

    def broadcast(uid):
        if uid is None:
            return fetch(pe, key)
        hand_out(uid, n, key)
        return uid

    gshmem.init(broadcast=broadcast, pe=pe, n_pes=n)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")  # its own gshmem.init nests in this one
    gshmem.finalize()


if __name__ == "__main__":
    main()
