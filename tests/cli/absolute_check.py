# SPDX-License-Identifier: MIT
#
# absolute_check.py - apply --x and table of sinusoidal and learned models
#
# Expected sinusoids are computed in double from the formula, whose error at the
# positions used here (below 2^20) is under 1e-9; learned rows come from the file.
import json
import math
import random
import struct
import subprocess

import npy

ROUND = {"<f4": 2**-24, "<f2": 2**-11, "<u2": 2**-8}


class Sinusoid:
    """A model's encoding, written down independently of the command."""

    def __init__(self, model, dim, interleaved, shift, scale=1, padding=None, axes=1):
        self.model, self.dim, self.scale = model, dim, scale
        self.interleaved, self.padding, self.axes = interleaved, padding, axes
        self.width = dim // axes
        half = self.width // 2
        self.freq = [10000 ** (-i / (half - shift)) for i in range(half)]

    def group(self, position):
        if position == self.padding:
            return [0.0] * self.width
        waves = [(math.sin(position * f), math.cos(position * f)) for f in self.freq]
        if self.interleaved:
            return [v for pair in waves for v in pair]
        return [s for s, _ in waves] + [c for _, c in waves]

    def row(self, positions):
        return [v for p in positions for v in self.group(p)]


SINUSOIDS = [
    Sinusoid("opus-mt", 512, False, 0, scale=math.sqrt(512)),
    Sinusoid("m2m100-418m", 1024, False, 1, scale=32, padding=1),
    Sinusoid("whisper-base", 512, False, 1),
    Sinusoid("detr-resnet-50", 256, True, 0, axes=2),
]


class Checker:
    def __init__(self, posenc, folder):
        self.posenc, self.folder = posenc, folder
        self.rng = random.Random(21)
        self.count = self.failed = 0

    def run(self, *arguments):
        return subprocess.run([self.posenc, *map(str, arguments)], cwd=self.folder,
                              timeout=120, capture_output=True)

    def report(self, name, problem):
        self.count += 1
        if problem:
            self.failed += 1
            print(f"absolute: {name}: {problem}")

    def apply(self, name, model, descr, shape, encoding, scale, options=(), slack=1e-9):
        """encoding: (b, t) -> row, exact up to slack."""
        values = [4 * self.rng.random() - 2 for _ in range(npy.product(shape))]
        if descr == "<u2":
            values = [npy.bf16_bits(v) for v in values]
        npy.write(f"{self.folder}/in.npy", descr, shape, values)
        x = npy.read(f"{self.folder}/in.npy")[2]
        done = self.run("apply", model, "--x", "in.npy", "-o", "out", *options,
                        *(["--bf16"] if descr == "<u2" else []))
        if done.returncode:
            self.report(name, done.stderr.decode().strip())
            return
        got_descr, got_shape, got = npy.read(f"{self.folder}/out/x.npy")
        if (got_descr, got_shape) != (descr, shape):
            self.report(name, f"is {got_descr} {got_shape}")
            return
        if descr == "<u2":
            x, got = map(npy.from_bf16, x), list(map(npy.from_bf16, got))
        x, dim, seq_len = list(x), shape[-1], shape[-2]
        for n in range(len(x) // dim):
            row = encoding(*divmod(n, seq_len))
            for i, e in enumerate(row):
                want = scale * x[n * dim + i] + e
                bound = (2**-24 * abs(e) + 2**-24 * abs(want) + slack
                         + ROUND[descr] * abs(want)
                         + (2**-25 if descr == "<f2" else 0))
                if not abs(got[n * dim + i] - want) <= bound:
                    self.report(name, f"token {n}, channel {i}: got "
                                f"{got[n * dim + i]}, expected {want}")
                    return
        self.report(name, None)

    def table(self, name, s, begin, end, options=()):
        """As text, CSV, JSON and .npy: the same floats, the nearest to the truth."""
        rows = [s.row([p] * s.axes) for p in range(begin, end)]
        span = f"--positions={begin}:{end}"
        done = self.run("table", s.model, span, "-o", "t.npy", *options)
        if done.returncode:
            self.report(name, done.stderr.decode().strip())
            return
        descr, shape, got = npy.read(f"{self.folder}/t.npy")
        if (descr, shape) != ("<f4", (end - begin, s.dim)):
            self.report(name, f"is {descr} {shape}")
            return
        for i, value in enumerate(got):
            want = rows[i // s.dim][i % s.dim]
            if not abs(value - want) <= 2**-24 * abs(want) + 1e-9:
                self.report(name, f"{i}: got {value}, expected {want}")
                return
        csv = self.run("table", s.model, span, "--csv", *options).stdout.decode()
        text = self.run("table", s.model, span, *options).stdout.decode()
        lines = [line.split(",") for line in csv.splitlines()[1:]]
        if [line.split() for line in text.splitlines()[1:]] != lines:
            self.report(name, "text and CSV differ")
            return
        listed = json.loads(self.run("table", s.model, span, "--json", *options).stdout)
        for i, (position, channel, value) in enumerate(lines):
            places = (begin + i // s.dim, i % s.dim)
            single = struct.unpack("<f", struct.pack("<f", float(value)))[0]
            in_json = listed["encoding"][i // s.dim][i % s.dim]
            in_json = struct.unpack("<f", struct.pack("<f", in_json))[0]
            if (int(position), int(channel)) != places or not (
                    single == in_json == got[i]):
                self.report(name, f"CSV line {i + 2} is {position},{channel},{value}")
                return
        self.report(name, None)


def run(posenc, folder):
    check = Checker(posenc, folder)
    for s in SINUSOIDS:
        first = 0 if s.padding is None else s.padding + 1
        check.table(f"table {s.model}", s, -2, 300)
        check.apply(f"{s.model} from its start", s.model, "<f4", (2, 7, s.dim),
                    lambda b, t: s.row([first + t] * s.axes), s.scale)
        for descr in ("<f4", "<f2", "<u2"):
            check.apply(f"{s.model} {descr} from 9000", s.model, descr, (5, s.dim),
                        lambda b, t: s.row([9000 + t] * s.axes), s.scale,
                        ["--positions", 9000])
    m2m, detr = SINUSOIDS[1], SINUSOIDS[3]
    npy.write(f"{folder}/at.npy", "<i8", (2, 3), [1, 2, 3, 4, 1, 70000])
    check.apply("padding", m2m.model, "<f4", (2, 3, m2m.dim),
                lambda b, t: m2m.row([[[1], [2], [3]], [[4], [1], [70000]]][b][t]),
                m2m.scale, ["--positions", "at.npy"])
    npy.write(f"{folder}/at.npy", "<i4", (2, 6), [0, 0, 0, 1, 1, 1, 4, 5, 6, 4, 5, 6])
    check.apply("two axes", detr.model, "<f4", (1, 6, detr.dim),
                lambda b, t: detr.row([t // 3, 4 + t % 3]), detr.scale,
                ["--positions", "at.npy"])
    table = npy.read(f"{folder}/rows.npy")[2]
    for shape in ((2, 5, 48), (1024, 48)):
        check.apply(f"gpt2.json {shape}", "gpt2.json", "<f4", shape,
                    lambda b, t: table[t * 48 : t * 48 + 48], 1,
                    ["--table", "rows.npy"], slack=0)
    # Larger than the buffer, so in pieces, and in pieces the same.
    big = SINUSOIDS[0]
    npy.write(f"{folder}/big.npy", "<f2", (9000, big.dim), [0.0] * (9000 * big.dim))
    check.run("apply", big.model, "--x", "big.npy", "-o", "out")
    got = npy.read(f"{folder}/out/x.npy")[2]
    check.run("table", big.model, "--positions", "0:9000", "-o", "t.npy")
    want = npy.read(f"{folder}/t.npy")[2]
    halves = struct.unpack(f"<{len(want)}e", struct.pack(f"<{len(want)}e", *want))
    check.report("in pieces", None if got == halves else "differs from the table")
    return check.count, check.failed
