# SPDX-License-Identifier: MIT
#
# extend_check.py - extend and diff against a computation of their own
#
# Frequencies from the published formulas, in double; where two models part, and which
# angles are new, by walking there.
import json
import math
import subprocess

TAU = 2 * math.pi


def base_freqs(theta, dim):
    return [theta ** (-2 * i / dim) for i in range(dim // 2)]


def yarn(theta, dim, factor, trained):
    def place(turns):
        return dim * math.log(trained / (turns * TAU)) / (2 * math.log(theta))

    low, high = max(math.floor(place(32)), 0), min(math.ceil(place(1)), dim - 1)
    freqs = []
    for i, f in enumerate(base_freqs(theta, dim)):
        ramp = min(max((i - low) / (high - low), 0), 1)
        freqs.append(f / factor * ramp + f * (1 - ramp))
    return freqs


def llama3(theta, dim, factor, trained):
    freqs = []
    for f in base_freqs(theta, dim):
        smooth = min(max((trained * f / TAU - 1) / 3, 0), 1)
        freqs.append((1 - smooth) * f / factor + smooth * f)
    return freqs


def expected(method, theta, dim, trained, length):
    s = length / trained
    if method == "linear":
        return [f / s for f in base_freqs(theta, dim)], 1
    if method == "yarn":
        return yarn(theta, dim, s, trained), 0.1 * math.log(s) + 1
    if method == "llama3":
        return llama3(theta, dim, s, trained), 1
    if method == "longrope":
        last = dim // 2 - 1
        return ([f / round(s ** (i / last), 6)
                 for i, f in enumerate(base_freqs(theta, dim))],
                math.sqrt(1 + math.log(s) / math.log(trained)))
    alpha = s if method == "ntk" else s * length / trained - (s - 1)
    return base_freqs(theta * alpha ** (dim / (dim - 2)), dim), 1


def near(what, got, want, margin=1e-9):
    if abs(got - want) > margin * max(abs(want), 1e-30):
        raise ValueError(f"{what} is {got}, want {want}")


def check_extend(report, theta, dim, trained, length):
    base = base_freqs(theta, dim)
    for way in report["methods"]:
        freqs, attention = expected(way["method"], theta, dim, trained, length)
        near(way["method"] + " attention_factor", way["attention_factor"], attention)
        new = 0
        for i, (got, want, old) in enumerate(zip(way["inv_freq"], freqs, base)):
            near(f"{way['method']} inv_freq[{i}]", got, want)
            beyond = max(min(length * want, TAU) - trained * old, 0)
            new += beyond > 1e-9 * trained * old
            if abs(way["beyond"][i] - beyond) > 1e-8:
                raise ValueError(f"{way['method']} beyond[{i}]: {way['beyond'][i]}")
        if way["num_beyond"] != new:
            raise ValueError(f"{way['method']}: {way['num_beyond']} pairs, want {new}")
        for change in way["changes"]:
            near("change", change["radians"],
                 change["distance"] * max(abs(a - b) for a, b in zip(base, freqs)))


def check_diff(report, a, b, tolerance):
    steps = [abs(x - y) for x, y in zip(a, b)]
    position = 1
    while max(position * step for step in steps) <= tolerance:
        position += 1
    site = report["sites"][0]
    if site["first_position"] != position:
        raise ValueError(f"part at {site['first_position']}, want {position}")
    for gap in site["gaps"]:
        near("gap", gap["radians"], gap["position"] * max(steps))
        near("gap's pair", gap["position"] * steps[gap["pair"]], gap["radians"])


def run(posenc, folder):
    def report(code, *arguments):
        done = subprocess.run([posenc, *arguments, "--json"], cwd=folder,
                              capture_output=True, text=True)
        if done.returncode != code:
            raise ValueError(f"{arguments}: exit code {done.returncode}, {done.stderr}")
        return json.loads(done.stdout)

    count = failed = 0
    for model, theta, dim, trained, length in (
            ("llama-3-8b", 500000, 128, 8192, 32768), ("llama-3-8b", 500000, 128, 8192, 8193),
            ("llama.json", 10000, 16, 2048, 131072), ("gptj.json", 10000, 14, 2048, 5000),
            ("llama31.json", 500000, 128, 8192, 1048576)):
        count += 1
        try:
            check_extend(report(0, "extend", model, "--length", str(length)),
                         theta, dim, trained, length)
        except (ValueError, KeyError) as problem:
            failed += 1
            print(f"extend {model} {length}: {problem}")
    for tolerance in (0.01, 0.5, 3):
        count += 1
        try:
            check_diff(report(1, "diff", "llama-3.1-8b", "llama-3-8b", "--tolerance",
                              str(tolerance)),
                       llama3(500000, 128, 8, 8192), base_freqs(500000, 128), tolerance)
        except (ValueError, KeyError) as problem:
            failed += 1
            print(f"diff, tolerance {tolerance}: {problem}")
    return count, failed
