# SPDX-License-Identifier: MIT
#
# safetensors.py - safetensors files, written and taken apart
import json
import struct

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "U8": 1, "F8_E4M3": 1, "I64": 8}


def product(shape):
    count = 1
    for n in shape:
        count *= n
    return count


def size_of(dtype, shape):
    return SIZES[dtype] * product(shape)


def write(path, tensors, metadata, rng):
    """tensors: (name, dtype, shape), data random.  Returns data by name."""
    header, offset, data = {}, 0, {}
    if metadata:
        header["__metadata__"] = metadata
    for name, dtype, shape in tensors:
        size = size_of(dtype, shape)
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [offset, offset + size]}
        offset += size
        data[name] = b"".join(rng.randbytes(min(1 << 20, size - at))
                              for at in range(0, size, 1 << 20))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, _, _ in tensors:
            file.write(data[name])
    return data


def read(path):
    """The bytes of the header, and data by name."""
    with open(path, "rb") as file:
        whole = file.read()
    (length,) = struct.unpack("<Q", whole[:8])
    header, base = json.loads(whole[8:8 + length]), 8 + length
    return whole[:base], {name: whole[base + t["data_offsets"][0]:
                                      base + t["data_offsets"][1]]
                          for name, t in header.items() if name != "__metadata__"}
