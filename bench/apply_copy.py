#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# apply_copy.py POSENC FOLDER MIB PAIRS - posenc apply on a large file, against cp of it
#
# Both read what is cached and write a new file, in turn; prints a line of JSON with the
# median of the pairs' ratios and the most memory that posenc had.
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

posenc, folder, mib, pairs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
HEADS, DIM = 32, 128  # llama-3.1-8b


def write_npy(path, tokens):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({tokens}, {HEADS}, {DIM}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    token = bytes(range(16, 48)) * (HEADS * DIM * 4 // 32)  # small floats
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little"))
        file.write(header.encode())
        for _ in range(tokens):
            file.write(token)


def seconds(command):
    begin = time.monotonic()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin


work = tempfile.mkdtemp(prefix="bench-apply-", dir=folder)
try:
    q = f"{work}/q.npy"
    write_npy(q, (mib << 20) // (HEADS * DIM * 4))
    size = os.path.getsize(q)
    subprocess.run(["cat", q], check=True, stdout=subprocess.DEVNULL)
    ratios, times = [], []
    for _ in range(pairs):
        out = f"{work}/out"
        os.makedirs(out)
        copy = seconds(["cp", "--reflink=never", q, f"{out}/copy.npy"])
        os.remove(f"{out}/copy.npy")
        times.append(seconds([posenc, "apply", "llama-3.1-8b", "--q", q, "-o", out]))
        shutil.rmtree(out)
        ratios.append(copy / times[-1])
    # cp holds less than posenc, so the most of the children is posenc's.
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"size": size, "ns": statistics.median(times) * 1e9,
                      "ratio": statistics.median(ratios), "memory_mib": memory / 1024}))
finally:
    shutil.rmtree(work)
