"""The PTX in what nvcc makes: objects and fat binaries. The same as ptx_in_fat_binary() in
modules.c."""

import struct

MAGIC = bytes.fromhex("50ed55ba")  # and of older ones
HEADER = struct.Struct("<IHHQ")
ENTRY = struct.Struct("<HHIQ")
KIND_PTX = 1


def texts_in(data, at):
    """The texts of one fat binary, which begins at `at`."""
    _, _, header_bytes, size = HEADER.unpack_from(data, at)
    at += header_bytes
    end = min(at + size, len(data))
    while at + ENTRY.size <= end:
        kind, _, entry_bytes, payload_bytes = ENTRY.unpack_from(data, at)
        if entry_bytes < ENTRY.size or payload_bytes > end - at:
            return
        payload = data[at + entry_bytes : at + entry_bytes + payload_bytes]
        if kind == KIND_PTX and b".version" in payload:
            yield payload.rstrip(b"\0")
        at += entry_bytes + payload_bytes


def ptx_of(name):
    """The first text of each fat binary in a file."""
    with open(name, "rb") as file:
        data = file.read()
    found, at = [], data.find(MAGIC)
    while at >= 0:
        if at + HEADER.size <= len(data) and HEADER.unpack_from(data, at)[2] == HEADER.size:
            found += list(texts_in(data, at))[:1]
        at = data.find(MAGIC, at + 1)
    return found
