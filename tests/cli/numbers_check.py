# SPDX-License-Identifier: MIT
#
# numbers_check.py - apply, freqs and table against a computation of their own
#
# Expected values are in double: angle = position * theta^(-2i/d), whose error at the
# positions used here (below 2^20) is under 1e-9.  A float result may be off by the
# rounding of cos, sin, two products and their sum, 4 half ulps of the pair's size, and
# by that of the store.
import json
import math
import os
import pty
import random
import re
import resource
import signal
import struct
import subprocess
import time

import npy

STORE = {"<f4": 2**-24, "<f2": 2**-11, "<u2": 2**-8}
TINY = {"<f4": 0, "<f2": 2**-25, "<u2": 0}


class Rope:
    """A model's rotation, written down independently of the command."""

    def __init__(self, model, head_dim, rotary_dim, theta, interleaved=False,
                 scale=lambda inv_freq: inv_freq, pair_axis=None, options=()):
        self.model, self.head_dim, self.rotary_dim = model, head_dim, rotary_dim
        self.interleaved, self.options = interleaved, list(options)
        self.inv_freq = [scale(theta ** (-2 * i / rotary_dim))
                         for i in range(rotary_dim // 2)]
        self.pair_axis = pair_axis or [0] * (rotary_dim // 2)

    def rotate(self, x, positions):
        """One head vector; also the size of each element's pair."""
        y, size = list(x), [0.0] * len(x)
        half = self.rotary_dim // 2
        for i, inv_freq in enumerate(self.inv_freq):
            a, b = (2 * i, 2 * i + 1) if self.interleaved else (i, i + half)
            angle = positions[self.pair_axis[i]] * inv_freq
            c, s = math.cos(angle), math.sin(angle)
            y[a], y[b] = x[a] * c - x[b] * s, x[a] * s + x[b] * c
            size[a] = size[b] = abs(x[a]) + abs(x[b])
        return y, size


def llama3(factor, low, high, original):
    def scale(inv_freq):
        wavelength = 2 * math.pi / inv_freq
        if wavelength < original / high:
            return inv_freq
        if wavelength > original / low:
            return inv_freq / factor
        smooth = (original / wavelength - low) / (high - low)
        return (1 - smooth) * inv_freq / factor + smooth * inv_freq
    return scale


def as_float(text):
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]


class Checker:
    def __init__(self, posenc, folder):
        self.posenc, self.folder = posenc, folder
        self.rng = random.Random(20)
        self.count = self.failed = 0

    def run(self, *arguments, **keywords):
        return subprocess.run([self.posenc, *map(str, arguments)], cwd=self.folder,
                              timeout=120, capture_output=True, **keywords)

    def report(self, name, problem):
        self.count += 1
        if problem:
            self.failed += 1
            print(f"numbers: {name}: {problem}")

    def store(self, path, descr, shape):
        """Random values as descr holds them, written to path."""
        values = [4 * self.rng.random() - 2 for _ in range(npy.product(shape))]
        if descr == "<u2":
            bits = [npy.bf16_bits(v) for v in values]
            npy.write(f"{self.folder}/{path}", descr, shape, bits)
            return [npy.from_bf16(b) for b in bits]
        npy.write(f"{self.folder}/{path}", descr, shape, values)
        return list(npy.read(f"{self.folder}/{path}")[2])

    def compare(self, rope, descr, x, got, vectors):
        """vectors: (index of the head vector, its positions)."""
        dim = rope.head_dim
        for vector, positions in vectors:
            begin = vector * dim
            want, size = rope.rotate(x[begin : begin + dim], positions)
            for i, (w, s, g) in enumerate(zip(want, size, got[begin : begin + dim])):
                if s == 0 and g != x[begin + i]:
                    return f"vector {vector}, element {i} is {g}, not copied"
                bound = 4 * 2**-24 * s + STORE[descr] * abs(w) + TINY[descr]
                if s != 0 and not abs(g - w) <= bound:
                    return (f"vector {vector}, element {i}: got {g}, expected {w}, "
                            f"off by {abs(g - w):.3g}, at most {bound:.3g}")
        return None

    def apply(self, name, rope, shape, rank=4, layout="bshd", descr="<f4",
              positions=None, which="q", sample=None):
        """shape: (batch, seq_len, heads).  positions: (argument, f(b, t) -> axes)."""
        batch, seq_len, heads = shape
        order = (seq_len, heads) if layout == "bshd" else (heads, seq_len)
        on_disk = {4: (batch, *order), 3: order, 2: (seq_len,)}[rank]
        on_disk = (*on_disk, rope.head_dim)
        x = self.store("in.npy", descr, on_disk)
        argument, position = positions or (None, lambda b, t: [t] * 4)
        done = self.run("apply", rope.model, f"--{which}", "in.npy", "-o", "out",
                        "--layout", layout, *rope.options,
                        *(["--positions", argument] if argument else []),
                        *(["--bf16"] if descr == "<u2" else []))
        if done.returncode:
            self.report(name, done.stderr.decode().strip())
            return
        got_descr, got_shape, got = npy.read(f"{self.folder}/out/{which}.npy")
        if (got_descr, got_shape) != (descr, on_disk):
            self.report(name, f"is {got_descr} {got_shape}")
            return
        if descr == "<u2":
            got = [npy.from_bf16(b) for b in got]
        vectors = range(batch * seq_len * heads)
        if sample:
            vectors = self.rng.sample(vectors, sample) + [0, len(vectors) - 1]

        def where(v):
            b, rest = divmod(v, seq_len * heads)
            return b, rest // heads if layout == "bshd" else rest % seq_len

        self.report(name, self.compare(rope, descr, x, got,
                                       [(v, position(*where(v))) for v in vectors]))

    def frequencies(self, name, rope):
        done = self.run("freqs", rope.model, "-o", "freqs.npy", *rope.options)
        problem = done.stderr.decode().strip()
        if not problem:
            descr, shape, got = npy.read(f"{self.folder}/freqs.npy")
            want = rope.inv_freq
            if descr != "<f8" or shape != (len(want),):
                problem = f"is {descr} {shape}"
            worst = max(abs(g / w - 1) if w else abs(g) for g, w in zip(got, want))
            if not worst < 2e-14:
                problem = f"relative error {worst}"
            text = json.loads(self.run("freqs", rope.model, "--json",
                                       *rope.options).stdout)
            if tuple(text["inv_freq"]) != got:
                problem = "JSON and .npy differ"
        self.report(name, problem)

    def table(self, name, rope, begin, end):
        span = f"{begin}:{end}"
        self.run("table", rope.model, "--positions", span, "-o", "t.npy", *rope.options)
        descr, shape, got = npy.read(f"{self.folder}/t.npy")
        pairs, rows = len(rope.inv_freq), end - begin
        problem = None
        if descr != "<f4" or shape != (2, rows, pairs):
            self.report(name, f"is {descr} {shape}")
            return
        for t in range(rows):
            for i, inv_freq in enumerate(rope.inv_freq):
                angle = (begin + t) * inv_freq
                for half, want in enumerate((math.cos(angle), math.sin(angle))):
                    g = got[(half * rows + t) * pairs + i]
                    if not abs(g - want) <= 2**-25 + 2e-9:
                        problem = f"row {begin + t}, pair {i}: {g}, expected {want}"
        lines = self.run("table", rope.model, "-p", span, "--csv", *rope.options).stdout
        csv = [line.split(",") for line in lines.decode().splitlines()[1:]]
        text = json.loads(self.run("table", rope.model, "-p", span, "--json",
                                   *rope.options).stdout)
        flat = [v for half in ("cos", "sin") for row in text[half] for v in row]
        if tuple(flat) != got:
            problem = "JSON and .npy differ"
        read = [as_float(row[2 + half]) for half in (0, 1) for row in csv]
        if tuple(read) != got:
            problem = "CSV and .npy differ"
        self.report(name, problem)

    def imitation(self, name, rope, angles, start, seq_len):
        """apply turns by the table of the same --angles, which is not the exact one."""
        dim, half = rope.head_dim, rope.head_dim // 2
        tables = []
        for kind in ("exact", angles):
            self.run("table", rope.model, "-p", f"{start}:{start + seq_len}", "-o",
                     "t.npy", "--angles", kind)
            tables.append(npy.read(f"{self.folder}/t.npy")[2])
        x = self.store("in.npy", "<f4", (seq_len, dim))
        self.run("apply", rope.model, "--q", "in.npy", "-p", start, "-o", "out",
                 "--angles", angles)
        got = npy.read(f"{self.folder}/out/q.npy")[2]
        problem = "is the exact table" if tables[0] == tables[1] else None
        for t in range(seq_len):
            for i in range(half):
                c, s = (tables[1][(h * seq_len + t) * half + i] for h in (0, 1))
                a, b = x[t * dim + i], x[t * dim + i + half]
                for place, want in ((i, a * c - b * s), (i + half, a * s + b * c)):
                    if not abs(got[t * dim + place] - want) <= 3 * 2**-24 * (
                            abs(a) + abs(b)):
                        problem = f"token {t}, element {place}: expected {want}"
        self.report(name, problem)

    def large(self, rope, size):
        """A tensor of zeros, in a file without blocks."""
        heads = 8
        seq_len = size // (heads * rope.head_dim * 4)
        path = f"{self.folder}/large.npy"
        with open(path, "wb") as file:
            file.write(npy.header("<f4", (1, seq_len, heads, rope.head_dim)))
            file.truncate(file.tell() + seq_len * heads * rope.head_dim * 4)
        return path

    def memory(self, name, rope, size):
        """Far larger than what may be held."""
        limit = 128 << 20
        path = self.large(rope, size)
        child = subprocess.Popen([self.posenc, "apply", rope.model, "--q", path, "-o",
                                  "out"], cwd=self.folder, stderr=subprocess.PIPE)
        problem = child.stderr.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        peak = usage.ru_maxrss * 1024
        written = os.path.getsize(f"{self.folder}/out/q.npy")
        if child.returncode == 0:
            problem = None
        if written != os.path.getsize(path):
            problem = f"wrote {written} bytes"
        if peak > limit:
            problem = f"peak memory {peak >> 20} MiB, at most {limit >> 20} MiB"
        self.report(name, problem)
        os.remove(path)

    def full_disk(self, name, rope):
        """Past the file size limit: exit 1, and not even the folder is left behind."""
        self.store("in.npy", "<f4", (64, 8, rope.head_dim))
        done = self.run("apply", rope.model, "--q", "in.npy", "-o", "full",
                        preexec_fn=lambda: resource.setrlimit(
                            resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY)))
        left = os.path.exists(f"{self.folder}/full")
        self.report(name, None if done.returncode == 1 and not left
                    else f"exit code {done.returncode}, left {left}: {done.stderr}")

    def interrupt(self, name, rope):
        """On a terminal a bar appears after a second; a signal leaves nothing."""
        path = self.large(rope, 16 << 30)
        terminal, child_end = pty.openpty()
        begin = time.monotonic()
        child = subprocess.Popen([self.posenc, "apply", rope.model, "--q", path, "-o",
                                  "cut"], cwd=self.folder, stderr=child_end)
        os.close(child_end)
        seen = os.read(terminal, 1000).decode()
        waited = time.monotonic() - begin
        left_before = os.listdir(f"{self.folder}/cut")
        child.terminate()
        code = child.wait()
        os.close(terminal)
        left = os.path.exists(f"{self.folder}/cut")
        problem = None
        if not re.match(r"\rq\.npy \[#* +\] +\d+%", seen) or waited < 0.95:
            problem = f"after {waited:.2f} s the terminal shows {seen!r}"
        if code != -signal.SIGTERM or len(left_before) != 1 or left:
            problem = f"exit code {code}, had {left_before}, left {left}"
        self.report(name, problem)
        os.remove(path)

    def ids(self, name, descr, shape):
        """A file of ids below 2^17, and a function of their index."""
        values = [self.rng.randrange(2**17) for _ in range(npy.product(shape))]
        npy.write(f"{self.folder}/{name}", descr, shape, values)
        return values


def run(posenc, folder):
    check = Checker(posenc, folder)
    llama = Rope("llama.json", 16, 16, 10000)
    llama31 = Rope("llama31.json", 128, 128, 500000, scale=llama3(8, 1, 4, 8192))
    neox = Rope("neox.json", 24, 6, 10000)
    gptj = Rope("gptj.json", 24, 14, 10000, interleaved=True)
    local = Rope("gemma3.json", 32, 32, 10000, options=["--layer", 0])
    wide = Rope("gemma3.json", 32, 32, 1e6, scale=lambda f: f / 8,
                options=["--layer", 5])
    section = [2, 3, 3]
    qwen_vl = Rope("qwen2_vl.json", 16, 16, 1e6,
                   pair_axis=[axis for axis in range(3) for _ in range(section[axis])])

    # First: a child's peak counts that of the process it was forked from.
    check.memory("memory", llama31, 192 << 20)
    ropes = {"llama": llama, "llama31": llama31, "neox": neox, "gptj": gptj,
             "gemma3 local": local, "gemma3 global": wide, "qwen2-vl": qwen_vl}
    for name, rope in ropes.items():
        check.frequencies(f"freqs {name}", rope)
        check.table(f"table {name}", rope, -3, 8)
        check.table(f"table {name} far", rope, 99991, 99993)
        for layout in ("bshd", "bhsd"):
            for descr in ("<f4", "<f2", "<u2"):
                check.apply(f"apply {name} {layout} {descr}", rope, (2, 7, 3),
                            layout=layout, descr=descr)
    for layout in ("bshd", "bhsd"):
        check.apply(f"no batch {layout}", llama, (1, 9, 5), rank=3, layout=layout)
        check.apply(f"one token {layout}", llama, (3, 1, 5), layout=layout)
        check.apply(f"no token {layout}", llama, (3, 0, 5), layout=layout)
        check.apply(f"keys {layout}", llama, (2, 5, 2), layout=layout, which="k")
        # Several pieces, with the last one shorter, of many and of parts of lines.
        check.apply(f"pieces {layout}", llama31, (2, 5003, 5), layout=layout,
                    sample=500)
        check.apply(f"long lines {layout}", llama31, (1, 20011, 1), layout=layout,
                    sample=500)
        check.apply(f"wide lines {layout}", llama, (1, 1, 140001), layout=layout,
                    sample=500)
    check.apply("one head", llama, (1, 11, 1), rank=2)
    check.apply("start", llama31, (2, 9, 3),
                positions=("-4", lambda b, t: [t - 4] * 4))
    check.apply("far start", llama31, (2, 9, 3),
                positions=("131000", lambda b, t: [t + 131000] * 4))
    for layout in ("bshd", "bhsd"):
        line = check.ids("line.npy", "<i8", (7,))
        check.apply(f"ids (seq_len) {layout}", llama, (2, 7, 3), layout=layout,
                    positions=("line.npy", lambda b, t: [line[t]] * 4))
        rows = check.ids("rows.npy", "<i4", (2, 7))
        check.apply(f"ids (batch, seq_len) {layout}", llama, (2, 7, 3), layout=layout,
                    positions=("rows.npy", lambda b, t: [rows[b * 7 + t]] * 4))
        check.apply(f"ids (batch, seq_len) of text {layout}", qwen_vl, (2, 7, 3),
                    positions=("rows.npy", lambda b, t: [rows[b * 7 + t]] * 4))
        axes = check.ids("axes.npy", "<i8", (3, 7))
        check.apply(f"ids (axes, seq_len) {layout}", qwen_vl, (2, 7, 3), layout=layout,
                    positions=("axes.npy",
                               lambda b, t: [axes[a * 7 + t] for a in range(3)]))
        full = check.ids("full.npy", "<i4", (3, 2, 7))
        check.apply(f"ids (axes, batch, seq_len) {layout}", qwen_vl, (2, 7, 3),
                    layout=layout,
                    positions=("full.npy", lambda b, t: [full[(a * 2 + b) * 7 + t]
                                                         for a in range(3)]))
    for angles in ("hf_f32", "ggml_f32"):
        check.imitation(f"angles {angles}", llama31, angles, 9000, 11)
    check.interrupt("interrupt", llama31)
    check.full_disk("full disk", llama)
    return check.count, check.failed
