# SPDX-License-Identifier: MIT
#
# keys_check.py - shift and rebase against rotations of their own, and their estimates
#
# What the commands print of their error is taken at its word: no element may be off by
# more than "at most", and the root mean square has to be near "on average".
import math
import re

import npy
import numbers_check

STATEMENT = re.compile(r"by at most ([0-9.e+-]+) \(largest key ([0-9.e+-]+)\), about "
                       r"([0-9.e+-]+) of it on average")


class Checker(numbers_check.Checker):
    def read(self, path):
        descr, shape, values = npy.read(f"{self.folder}/{path}")
        if descr == "<u2":
            values = [npy.from_bf16(v) for v in values]
        return descr, shape, list(values)

    def move(self, verb, rope, descr, *options):
        """Runs the verb on keys.npy; (values, worst, average) or a problem."""
        done = self.run(verb, rope.model, "-k", "keys.npy", "-o", "moved.npy",
                        *rope.options, *options,
                        *(["--bf16"] if descr == "<u2" else []))
        said = STATEMENT.search(" ".join(done.stderr.decode().split()))
        if done.returncode or not said:
            return None, done.stderr.decode()
        values = self.read("moved.npy")[2]
        worst, largest, average = map(float, said.groups())
        held = max(map(abs, self.read("keys.npy")[2]))
        if abs(largest - held) > 1e-5 * held:
            return None, f"the largest key is {held}, not {largest}"
        # Printed to three digits.
        return (values, worst * 1.005, average), None

    def judge(self, name, want, moved, rotated):
        """rotated[i]: element i is turned, so that its error counts."""
        values, worst, average = moved
        errors = [abs(g - w) for g, w in zip(values, want)]
        if max(errors) > worst:
            self.report(name, f"an element is off by {max(errors)}, at most {worst} "
                              "was promised")
            return
        turned = [(e, w) for e, w, r in zip(errors, want, rotated) if r]
        rms = math.sqrt(sum(e * e for e, _ in turned) / sum(w * w for _, w in turned))
        self.report(name, None if 0.5 * average < rms < 1.3 * average else
                    f"the error is {rms} on average, {average} was said")

    def shift(self, name, rope, descr, layout, by):
        batch, seq_len, heads, dim = 2, 9, 3, rope.head_dim
        middle = (seq_len, heads) if layout == "bshd" else (heads, seq_len)
        x = self.store("keys.npy", descr, (batch, *middle, dim))
        moved, problem = self.move("shift", rope, descr, "--by", by, "--layout", layout)
        if problem:
            self.report(name, problem)
            return
        want, rotated = [], []
        for at in range(0, len(x), dim):
            y, size = rope.rotate(x[at : at + dim], [by] * 4)
            want += y
            rotated += [s != 0 for s in size]
        self.judge(name, want, moved, rotated)

    def rebase(self, name, rope, descr):
        """Another distance for every token."""
        batch, seq_len, heads, dim = 2, 7, 2, rope.head_dim
        x = self.store("keys.npy", descr, (batch, seq_len, heads, dim))
        start = [self.rng.randrange(1 << 17) for _ in range(batch * seq_len)]
        end = [self.rng.randrange(1 << 17) for _ in range(batch * seq_len)]
        npy.write(f"{self.folder}/start.npy", "<i8", (batch, seq_len), start)
        npy.write(f"{self.folder}/end.npy", "<i8", (batch, seq_len), end)
        moved, problem = self.move("rebase", rope, descr, "--from", "start.npy", "--to",
                                   "end.npy")
        if problem:
            self.report(name, problem)
            return
        want, rotated = [], []
        for at in range(0, len(x), dim):
            token = at // dim // heads
            y, size = rope.rotate(x[at : at + dim], [end[token] - start[token]] * 4)
            want += y
            rotated += [s != 0 for s in size]
        self.judge(name, want, moved, rotated)

    def recomputed(self, name, rope, descr, options_before, options_after, verb,
                   *options):
        """Rotated, stored and moved, against rotated anew: three roundings apart."""
        bf16 = ["--bf16"] if descr == "<u2" else []
        self.store("plain.npy", descr, (40, 2, rope.head_dim))
        for folder, say in (("old", options_before), ("new", options_after)):
            done = self.run("apply", rope.model, "--k", "plain.npy", "-o", folder,
                            *rope.options, *bf16, *say)
            if done.returncode:
                self.report(name, done.stderr.decode())
                return
        values = npy.read(f"{self.folder}/old/k.npy")
        npy.write(f"{self.folder}/keys.npy", *values)
        moved, problem = self.move(verb, rope, descr, *options)
        if problem:
            self.report(name, problem)
            return
        new = self.read("new/k.npy")[2]
        off = max(abs(a - b) for a, b in zip(moved[0], new))
        self.report(name, f"{off} apart, at most {3 * moved[1]}"
                    if off > 3 * moved[1] else None)

    def repeated(self, name, rope, descr, times):
        """n shifts stay within n times what one may err."""
        x = self.store("keys.npy", descr, (30, 1, rope.head_dim))
        bound, values = 0, x
        for _ in range(times):
            moved, problem = self.move("shift", rope, descr, "--by", 17)
            if problem:
                self.report(name, problem)
                return
            values = moved[0]
            bound += moved[1]
            npy.write(f"{self.folder}/keys.npy", *npy.read(f"{self.folder}/moved.npy"))
        want = []
        for at in range(0, len(x), rope.head_dim):
            want += rope.rotate(x[at : at + rope.head_dim], [17 * times] * 4)[0]
        # An error of both elements of a pair turns into one of sqrt(2) of an element.
        off = max(abs(a - b) for a, b in zip(values, want))
        self.report(name, f"off by {off} after {times}, at most {bound * math.sqrt(2)}"
                    if off > bound * math.sqrt(2) else None)


def run(posenc, folder):
    check = Checker(posenc, folder)
    llama = numbers_check.Rope("llama.json", 16, 16, 10000)
    neox = numbers_check.Rope("neox.json", 24, 6, 10000)
    gptj = numbers_check.Rope("gptj.json", 24, 14, 10000, interleaved=True)
    phi3 = numbers_check.Rope("phi-3-mini-128k", 96, 96, 10000)
    for name, rope in (("llama", llama), ("neox", neox), ("gptj", gptj)):
        for descr in ("<f4", "<f2", "<u2"):
            for layout, by in (("bshd", -3), ("bhsd", 70001)):
                check.shift(f"shift {name} {descr} {layout} by {by}", rope, descr,
                            layout, by)
            check.rebase(f"rebase {name} {descr}", rope, descr)
            check.recomputed(f"recompute {name} {descr}", rope, descr, ["-p", "500"],
                             ["-p", "180"], "shift", "--by", -320)
            check.repeated(f"eight shifts {name} {descr}", rope, descr, 8)
    for descr in ("<f4", "<f2", "<u2"):
        check.recomputed(f"longrope switch {descr}", phi3, descr,
                         ["-p", "4000", "--seq-len", "4096"],
                         ["-p", "3900", "--seq-len", "131072"], "rebase", "--from",
                         4000, "--to", 3900, "--seq-len", 4096, "--to-seq-len", 131072)
    return check.count, check.failed
