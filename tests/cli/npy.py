# SPDX-License-Identifier: MIT
#
# npy.py - .npy files and half floats with the standard library alone
import struct

CODES = {"<f4": "f", "<f2": "e", "<u2": "H", "<f8": "d", "<i8": "q", "<i4": "i"}


def product(shape):
    count = 1
    for n in shape:
        count *= n
    return count


def header(descr, shape):
    inner = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({inner}), }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def write(path, descr, shape, values):
    assert len(values) == product(shape)
    with open(path, "wb") as file:
        file.write(header(descr, shape))
        file.write(struct.pack(f"<{len(values)}{CODES[descr]}", *values))


def read(path):
    """(descr, shape, values) of a version 1 file."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    length = struct.unpack("<H", data[8:10])[0]
    assert (10 + length) % 64 == 0 and data[9 + length : 10 + length] == b"\n"
    meta = eval(data[10 : 10 + length].decode(), {"__builtins__": {}})
    assert meta["fortran_order"] is False
    descr, shape = meta["descr"], meta["shape"]
    count = product(shape)
    values = struct.unpack(f"<{count}{CODES[descr]}", data[10 + length :])
    return descr, shape, values


def bf16_bits(value):
    """Round to nearest even, as a uint16."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def from_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
