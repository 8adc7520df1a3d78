#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# check_bands.py FILE - whether an experiment landed where it must
#
# FILE is what `posenc lab run --config A --seeds 3 --json` or `posenc lab report --json`
# printed, - for standard input.  Means over seeds are held against bands.json; a line
# for each band, exit code 1 if one is missed.
import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SETTINGS = {"layers": 3, "width": 96, "heads": 4, "length": 64, "batch": 32,
            "steps": 1200, "warmup": 100, "peak_rate": 0.002, "weight_decay": 0.1,
            "clip": 1, "eval_tokens": 32768, "slide_tokens": 4096, "slide_from": 16,
            "text_sha256":
                "82a24e4e23c644fe579ed387b20e54eb529cc0a87a25e0810064edb2216780c2"}


def read(path):
    with sys.stdin if path == "-" else open(path, encoding="utf-8") as file:
        run = json.load(file)
    if run["schema"] != "posenc.lab/1":
        sys.exit(f"{path}: schema is {run['schema']}, must be posenc.lab/1")
    return run


def means(run):
    """(method, mode, multiple, windows) to the mean over seeds, and how many there are."""
    values = {}
    for row in run["results"]:
        key = row["method"], row["mode"], row["multiple"], row["windows"]
        values.setdefault(key, {})[row["seed"]] = row["nll"]
    return {key: (statistics.fmean(by_seed.values()), len(by_seed))
            for key, by_seed in values.items()}


def value_of(band, found):
    """What a band is about, or None if a result is missing."""
    windows = band.get("windows", "nonoverlap")

    def mean(name):
        return found[(*name, windows)][0]

    if "spread" in band:
        values = [mean(name) for name in band["spread"]]
        return max(values) - min(values)
    return mean(band["of"]) - (mean(band["minus"]) if "minus" in band else 0)


def check(band, found):
    if "absent" in band:
        is_met = (*band["absent"], "nonoverlap") not in found
        return is_met, "refused" if is_met else "was read", "must be refused"
    low, high = band.get("min"), band.get("max")
    bounds = (f"at least {low}" if high is None else f"at most {high}" if low is None
              else f"{low} to {high}")
    try:
        value = value_of(band, found)
    except KeyError as missing:
        return False, f"no result {missing}", bounds
    is_met = (low is None or value >= low) and (high is None or value <= high)
    return is_met, f"{value:.4f}", bounds


def main():
    run = read(sys.argv[1] if len(sys.argv) == 2 else "-")
    missed = 0
    for name, wanted in SETTINGS.items():
        if run["settings"][name] != wanted:
            print(f"{name} is {run['settings'][name]}, must be {wanted}")
            missed += 1
    found = means(run)
    print("seeds:", sorted({row["seed"] for row in run["results"]}))
    with open(os.path.join(HERE, "bands.json"), encoding="utf-8") as file:
        bands = json.load(file)["bands"]
    for band in bands:
        is_met, value, bounds = check(band, found)
        missed += not is_met
        print(f"{'met   ' if is_met else 'MISSED'} {band['name']:48} {value:>9}  {bounds}")
    print(f"{len(bands) - missed} of {len(bands)} met" if missed else f"all {len(bands)} met")
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
