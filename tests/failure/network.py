"""A network of this process's own, so that what is recorded there is said by its own job."""

import ctypes
import fcntl
import os
import socket
import struct

CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
IFF_UP = 1


def enter_own():
    """A new one, which has a loopback interface alone. Nothing happens on an emulated node, whose network is its own,
    nor where the system refuses it."""
    if os.environ.get("HOSTS_DIR") or ctypes.CDLL(None).unshare(CLONE_NEWNET):
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sH22x", b"lo", 0)
        flags = struct.unpack("16sH22x", fcntl.ioctl(s, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | IFF_UP))
