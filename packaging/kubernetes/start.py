"""A PE in a pod of an indexed Job: starts by a unique id, which pod 0 hands to the others.

GSHMEM_JOB_HOST is pod 0's name in the headless service, GSHMEM_JOB_KEY a secret of the job: who has
no key gets no id. Neither privileges nor an MPI are needed.

    python3 start.py program.py [argument…]    the program finds the job started
"""

import os
import runpy
import sys
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener

import gshmem

PORT = int(os.environ.get("GSHMEM_JOB_PORT", "7077"))
LIMIT = float(os.environ.get("GSHMEM_INIT_TIMEOUT", "120"))


def hand_out(uid: bytes, others: int, key: bytes) -> None:
    """To so many PEs that have the key; others are turned away."""
    with Listener(("", PORT), authkey=key, backlog=others + 8) as listener:
        while others:
            try:
                with listener.accept() as connection:
                    connection.send_bytes(uid)
                    others -= 1
            except (OSError, EOFError, AuthenticationError) as error:
                print(f"start: a connection was refused: {error}", file=sys.stderr)


def fetch(key: bytes) -> bytes:
    """From pod 0, which may not have started yet."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            with Client((os.environ["GSHMEM_JOB_HOST"], PORT), authkey=key) as connection:
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
            return fetch(key)
        hand_out(uid, n - 1, key)
        return uid

    gshmem.init(broadcast=broadcast, pe=pe, n_pes=n)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")  # its own gshmem.init nests in this one
    gshmem.finalize()


if __name__ == "__main__":
    main()
