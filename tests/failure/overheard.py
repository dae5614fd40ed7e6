#!/usr/bin/env python3
"""Whether who has recorded the wire from the first byte can join a job: nothing that passed may be a key.

    overheard.py [-v] COMMAND [ARGUMENT...]

COMMAND starts a job over a network that this process sees. All that is said is recorded, that of the launcher,
too. The proofs of the greetings among it show which bytes are the key of a stream: every 32 bytes in a row are tried, as
they came and where they were sent as hexadecimal digits."""

import hashlib
import hmac
import re
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
from network import enter_own  # noqa: E402

MAGIC = b"GSHMEMtc"
HELLO = 64
NONCE = 32
PROOF = 32
KEY = 32
ACCEPTOR = b"\x02"  # enum greeting_role
GREETINGS_TRIED = 2


class Recorder:
    """All that passes over IPv4 and TCP."""

    def __init__(self):
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        except PermissionError:
            print("SKIP: recording the network needs root")
            sys.exit(77)
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)  # SO_RCVBUFFORCE
        self.socket.setblocking(False)
        self.pieces = {}  # flow: {sequence number: bytes}

    def take(self):
        while True:
            try:
                packet = self.socket.recv(1 << 17)
            except BlockingIOError:
                return
            if packet[12:14] != b"\x08\x00" or packet[23:24] != b"\x06":
                continue
            tcp = 14 + (packet[14] & 15) * 4
            start = tcp + (packet[tcp + 12] >> 4) * 4
            end = 14 + int.from_bytes(packet[16:18], "big")
            flow = packet[26:30] + packet[tcp:tcp + 2], packet[30:34] + packet[tcp + 2:tcp + 4]
            if packet[start:end]:
                sequence = int.from_bytes(packet[tcp + 4:tcp + 8], "big")
                self.pieces.setdefault(flow, {})[sequence] = packet[start:end]

    def streams(self):
        """{(from, to): all that was said}; what passed twice counts once."""
        return {flow: b"".join(said.values()) for flow, said in self.pieces.items()}


def as_digits(stream):
    """What hexadecimal digits in it stand for."""
    for run in re.findall(rb"[0-9a-fA-F]{64,}", stream):
        for start in (0, 1):
            digits = run[start:]
            yield bytes.fromhex(digits[:len(digits) & ~1].decode())


def greetings(streams):
    """(hello, nonce, proof) of each stream between PEs."""
    found = []
    for (sender, receiver), said in streams.items():
        answer = streams.get((receiver, sender), b"")
        if said.startswith(MAGIC) and len(answer) >= NONCE + PROOF:
            found.append((said[:HELLO], answer[:NONCE], answer[NONCE:NONCE + PROOF]))
    return found


def is_key(key, greeting):
    hello, nonce, proof = greeting
    return hmac.digest(key, ACCEPTOR + hello + nonce, hashlib.sha256) == proof


def main():
    verbose = sys.argv[1] == "-v"
    enter_own()
    recorder = Recorder()
    job = subprocess.Popen(sys.argv[1 + verbose:], stdin=subprocess.DEVNULL)
    while job.poll() is None:
        recorder.take()
        try:
            job.wait(0.01)
        except subprocess.TimeoutExpired:
            pass
    recorder.take()
    if job.returncode:
        sys.exit(job.returncode)
    streams = recorder.streams()
    proven = greetings(streams)
    if not proven:
        sys.exit("no greeting of two PEs was recorded: nothing has been tried")
    texts = list(streams.values())
    texts += [text for stream in streams.values() for text in as_digits(stream)]
    tried = {text[i:i + KEY] for text in texts for i in range(len(text) - KEY + 1)}
    for greeting in proven[:GREETINGS_TRIED] + proven[-1:]:
        for key in tried:
            if is_key(key, greeting):
                sys.exit(f"the wire has the key of a stream: {key.hex()}")
    if verbose:
        print(f"{len(streams)} streams, {len(proven)} greetings, {len(tried)} keys tried")


main()
