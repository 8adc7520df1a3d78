# SPDX-License-Identifier: MIT
#
# identify_check.py - rotations of known origin, and what identify says of them
#
# Every rule of every preset in both pairings: 8 tokens, 3 heads, from a start that
# identify is not told, rounded to bfloat16.  The true rule has to be among the answers,
# and every other answer has to be one that the rounding hides.
import json
import math
import random
import subprocess
import sys

import npy

TOKENS, HEADS = 8, 3


class Rule:
    """A rotation as inspect prints it, turned here in double."""

    def __init__(self, preset, rope):
        self.preset, self.head_dim = preset, rope["head_dim"]
        self.rotary_dim = rope.get("rotary_dim", self.head_dim)
        self.start = rope.get("rotary_start", 0)
        self.inv_freq = rope["inv_freq"]
        self.factor = rope.get("attention_factor", 1)

    def place(self, i, interleaved):
        if interleaved:
            return self.start + 2 * i, self.start + 2 * i + 1
        return self.start + i, self.start + i + self.rotary_dim // 2

    def turn(self, x, position, pairing, out=None, sign=1, factor=None, freqs=None):
        y = list(x)
        factor = self.factor if factor is None else factor
        for i, f in enumerate(freqs or self.inv_freq):
            a, b = self.place(i, pairing)
            p, q = self.place(i, pairing if out is None else out)
            c = factor * math.cos(sign * f * position)
            s = factor * math.sin(sign * f * position)
            y[p], y[q] = x[a] * c - x[b] * s, x[a] * s + x[b] * c
        return y


def bf16(value):
    return npy.from_bf16(npy.bf16_bits(value))


class Checker:
    def __init__(self, posenc, folder):
        self.posenc, self.folder = posenc, folder
        self.rng = random.Random(31)
        self.count = self.failed = 0

    def report(self, name, problem):
        self.count += 1
        if problem:
            self.failed += 1
            print(f"identify: {name}: {problem}")

    def run(self, *arguments):
        done = subprocess.run([self.posenc, *map(str, arguments)], cwd=self.folder,
                              capture_output=True, timeout=120, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def rules(self):
        names = json.loads(self.run("presets", "--json")[1])["presets"]
        for entry in names:
            code, text, _ = self.run("inspect", entry["name"], "--json")
            if code:
                continue
            seen = []
            for site in json.loads(text)["sites"]:
                rope = site.get("rope")
                if rope and rope not in seen and rope.get("inv_freq"):
                    seen.append(rope)
                    yield Rule(entry["name"], rope)

    def ask(self, dim, turn, *options, tokens=TOKENS, heads=HEADS, rounding=bf16):
        """turn(x, t) of random x; the answer, as JSON."""
        x = [[self.rng.gauss(0, 1) for _ in range(dim)] for _ in range(tokens * heads)]
        x = [[npy.from_bf16(npy.bf16_bits(v)) for v in row] for row in x]
        y = [[rounding(v) for v in turn(row, n // heads)] for n, row in enumerate(x)]
        for name, rows in (("before", x), ("after", y)):
            npy.write(f"{self.folder}/{name}.npy", "<f4", (1, tokens, heads, dim),
                      [v for row in rows for v in row])
        code, text, error = self.run("identify", "before.npy", "after.npy", "--json",
                                     *options)
        if not text:
            return code, {"candidates": [], "error": error}
        return code, json.loads(text)

    def hidden(self, rule, start, other, interleaved):
        """Whether bfloat16's rounding can hide what tells another answer apart."""
        match = [r for r in self.all_rules if r.preset in other.get("presets", "") and
                 r.rotary_dim == other["rotary_dim"] and
                 r.head_dim == other["head_dim"] and r.start == other["rotary_start"]]
        sets = [r.inv_freq for r in match]
        if not match:
            theta = other["rope_theta"]
            d = other["rotary_dim"]
            sets = [[theta ** (-2 * i / d) for i in range(d // 2)]]
        best = math.inf
        for freqs in sets:
            sums = [abs(complex(math.cos(f * (start + t)), math.sin(f * (start + t)))
                        - complex(math.cos(g * (other["start"] + t)),
                                  math.sin(g * (other["start"] + t)))) ** 2
                    for f, g in zip(rule.inv_freq, freqs) for t in range(TOKENS)]
            # Elements have variance 1, the rounding of one 2^-9 / sqrt(3) or less; an
            # angle of half a unit, 2^-9, may round back.
            sums = [d for d in sums if d > (3 * 2**-9)**2]
            best = min(best, math.sqrt(sum(sums) * 2 * HEADS) / (2**-9 / 3**0.5))
        return best < 10

    def round_trip(self, rule, interleaved):
        start = self.rng.choice([0, 1, self.rng.randrange(4000),
                                 self.rng.randrange(130000)])
        name = f"{rule.preset} {'interleaved' if interleaved else 'half-split'} {start}"
        _, said = self.ask(rule.head_dim,
                           lambda x, t: rule.turn(x, start + t, interleaved))
        wanted = "interleaved" if interleaved else "half-split"
        found = [c for c in said["candidates"]
                 if rule.preset in c.get("presets", "").split(", ")
                 and c["pairing"] == wanted and c["out_pairing"] == wanted
                 and c["times"] == 1 and c["start"] == start]
        if not found:
            return self.report(name, f"not among {[c['name'] for c in said['candidates']]}")
        for other in said["candidates"]:
            if other in found:
                continue
            if other["pairing"] != wanted or not self.hidden(rule, start, other,
                                                             interleaved):
                return self.report(name, f"{other['name']} is no such rule")
        return self.report(name, None)

    def expect(self, name, said, **wanted):
        code, answer = said
        first = answer["candidates"][0] if answer["candidates"] else {}
        wrong = {k: first.get(k) for k, v in wanted.items() if first.get(k) != v}
        self.report(name, None if code == 0 and not wrong
                    else f"exit code {code}, {wrong}, {first.get('name')}")

    def expect_unknown(self, name, said):
        code, answer = said
        self.report(name, None if code == 1 and answer["answer"] == "unknown"
                    else f"exit code {code}, {answer}")

    def quirks(self, rule, yarn, tail):
        d = rule.head_dim
        self.expect("backwards", self.ask(d, lambda x, t: rule.turn(x, 900 + t, 0,
                                                                     sign=-1)),
                    times=-1, start=900)
        self.expect("twice", self.ask(d, lambda x, t: rule.turn(
            rule.turn(x, 77 + t, 1), 77 + t, 1)), times=2, start=77,
            pairing="interleaved")
        self.expect("written half-split", self.ask(d, lambda x, t: rule.turn(
            x, 5 + t, 1, out=0)), pairing="interleaved", out_pairing="half-split",
            start=5)
        self.expect("positions given", self.ask(
            d, lambda x, t: rule.turn(x, 12 + t, 0), "--positions", "12"),
            start_given=True, times=1)
        code, said = self.ask(d, lambda x, t: rule.turn(x, 13 + t, 0), "--positions",
                              "12")
        self.expect("off by one", (code, said), start=1, times=1)
        self.expect("positions rounded to bfloat16", self.ask(
            d, lambda x, t: rule.turn(x, bf16(5000 + t), 0), tokens=12), times=1)
        said = self.ask(d, lambda x, t: rule.turn(
            x, 3000 + t, 0, freqs=[bf16(f) for f in rule.inv_freq]))
        self.expect("frequencies rounded to bfloat16", said, times=1, start=3000)
        said = self.ask(yarn.head_dim,
                        lambda x, t: yarn.turn(x, 2000 + t, 0, factor=1))
        factors = [c["factor"] for c in said[1]["candidates"]]
        self.report("a missing factor", None if factors and abs(factors[0] - 1) < 0.003
                    else said[1])
        self.expect("the end of the head turns", self.ask(
            tail.head_dim, lambda x, t: tail.turn(x, 40 + t, 1)),
            rotary_start=tail.start, start=40)
        code, said = self.ask(d, lambda x, t: x)
        self.report("not rotated", None if code == 0 and
                    said["candidates"][0]["name"] == "not rotated" else said)
        self.expect("float16 storage", self.ask(
            d, lambda x, t: rule.turn(x, 31 + t, 0), rounding=lambda v: v), start=31)
        self.expect_unknown("noise", self.ask(
            d, lambda x, t: [self.rng.gauss(0, 1) for _ in x]))
        self.expect_unknown("too noisy", self.ask(
            d, lambda x, t: rule.turn(x, t, 0),
            rounding=lambda v: v * (1 + self.rng.gauss(0, 0.03))))
        self.expect_unknown("a theta of nobody", self.ask(
            d, lambda x, t: rule.turn(x, 1500 + t, 0, freqs=[
                123456 ** (-2 * i / d) for i in range(d // 2)])))
        self.expect_unknown("tiled cos with neighbours", self.ask(
            d, lambda x, t: [x[j] * math.cos(rule.inv_freq[j % (d // 2)] * t)
                             + (-x[j + 1] if j % 2 == 0 else x[j - 1])
                             * math.sin(rule.inv_freq[j % (d // 2)] * t)
                             for j in range(d)]))


    def list_of(self, name, values, shape, option, wanted, **more):
        """Numbers made here, and the first answer's fields."""
        npy.write(f"{self.folder}/list.npy", "<f8", shape, values)
        code, text, error = self.run("identify", option, "list.npy", "--json")
        said = json.loads(text) if text else {"candidates": [], "error": error}
        if wanted is None:
            return self.expect_unknown(name, (code, said))
        return self.expect(name, (code, said), **wanted, **more)

    def frequencies(self, rule):
        """Of a preset: exact, as floats of PyTorch would be, and as periods."""
        def answer(values):
            npy.write(f"{self.folder}/list.npy", "<f8", (len(values),), values)
            code, text, _ = self.run("identify", "--freqs", "list.npy", "--json")
            names = ", ".join(c.get("presets", "") for c in json.loads(text)["candidates"])
            return code == 0 and rule.preset in names.split(", ")
        ways = {"exact": rule.inv_freq,
                "float": [f * (1 + self.rng.uniform(-2e-7, 2e-7))
                          for f in rule.inv_freq],
                "periods": [1 / f if f else 1e30 for f in rule.inv_freq]}
        for way, values in ways.items():
            if way != "periods" or all(rule.inv_freq):
                self.report(f"frequencies {rule.preset} {way}",
                            None if answer(values) else "not named")

    def lists(self):
        d, rows = 12, 9
        half = d // 2

        def sinusoid(exponent, start, place):
            table = [[0.0] * d for _ in range(rows)]
            for t in range(rows):
                for i in range(half):
                    angle = (t + start) * 10000 ** -exponent(i)
                    a, b = place(i)
                    table[t][a], table[t][b] = math.sin(angle), math.cos(angle)
            return [v for row in table for v in row]

        plain, shifted = (lambda i: i / half), (lambda i: i / (half - 1))
        halves, mixed = (lambda i: (i, i + half)), (lambda i: (2 * i, 2 * i + 1))
        for name, exponent, place, order, shift in (
                ("Vaswani", plain, mixed, "sin-cos-interleaved", 0),
                ("Marian", plain, halves, "sin-cos-halves", 0),
                ("fairseq", shifted, halves, "sin-cos-halves", 1),
                ("diffusers", plain, lambda i: (i + half, i), "cos-sin-halves", 0)):
            for start in (0, 2):
                self.list_of(f"sinusoid {name} {start}", sinusoid(exponent, start, place),
                             (rows, d), "--sinusoidal",
                             {"order": order, "downscale_freq_shift": shift,
                              "start": start})
        self.list_of("no sinusoid", [self.rng.gauss(0, 1) for _ in range(rows * d)],
                     (rows, d), "--sinusoidal", None)

        def slopes(n, most):
            power = 2 ** int(math.log2(n))
            first = [2 ** (-most * (h + 1) / power) for h in range(power)]
            rest = [2 ** (-most * (2 * h + 1) / (2 * power)) for h in range(n - power)]
            return first + rest

        for n in (1, 8, 12, 71):
            for most in (8, 16):
                self.list_of(f"slopes {n} {most}", slopes(n, most), (n,), "--slopes",
                             {"recipe": "published", "max_bias": most})
        self.list_of("slopes in bfloat16", [bf16(s) for s in slopes(12, 8)], (12,),
                     "--slopes", {"recipe": "published", "max_bias": 8})
        self.list_of("no slopes", [0.3, 0.2, 0.1], (3,), "--slopes", None)
        self.list_of("no frequencies", [1, 0.5, 0.4, 0.1], (4,), "--freqs", None)

    def tables(self, rule):
        """cos and sin, once and doubled either way, from a start."""
        pairs, start = len(rule.inv_freq), 37
        angles = [[f * (start + t) for f in rule.inv_freq] for t in range(12)]

        def wide(row, way):
            return row if way == 0 else row + row if way == 1 else \
                [v for v in row for _ in range(2)]
        for way in range(3):
            width = pairs * (1 if way == 0 else 2)
            for name, of in (("cos", math.cos), ("sin", math.sin)):
                values = [rule.factor * of(a) for row in angles for a in wide(row, way)]
                npy.write(f"{self.folder}/{name}.npy", "<f4", (12, width), values)
            code, text, _ = self.run("identify", "--table", "cos.npy", "sin.npy",
                                     "--json")
            said = json.loads(text)
            good = [c for c in said["candidates"] if c["start"] == start and
                    rule.preset in c.get("presets", "").split(", ")]
            self.report(f"table {rule.preset} {way}",
                        None if code == 0 and good else said)


def run(posenc, folder):
    check = Checker(posenc, folder)
    check.all_rules = list(check.rules())
    by_name = {r.preset: r for r in reversed(check.all_rules)}
    check.quirks(by_name["llama-3.1-8b"], by_name["gpt-oss-20b"],
                 by_name["deepseek-v3"])
    check.lists()
    for name in ("llama-3.2-1b", "gpt-oss-20b", "gpt-j-6b", "phi-2"):
        if name in by_name:
            check.tables(by_name[name])
    for rule in check.all_rules:
        check.frequencies(rule)
        for interleaved in (False, True):
            check.round_trip(rule, interleaved)
    return check.count, check.failed


if __name__ == "__main__":
    print(*run(*sys.argv[1:]))
