# SPDX-License-Identifier: MIT
#
# lab_run_check.py - lab run, eval and report agree with each other, whatever the threads
#
# Runs of a few steps on the copy language.  Losses are compared with each other only,
# since their last digits are the processor's.
import json
import subprocess

SMALL = ("--steps 6 --width 16 --heads 2 --layers 1 --batch 4 --copy 8 "
         "--multiple 1,2 --eval-tokens 2048").split()
ROWS = {
    "learned": [("base", 1), ("clamp", 1), ("clamp", 2), ("wrap", 2), ("interp", 2)],
    "alibi-slopes": [("base", 1), ("base", 2), ("window", 2)],
    "rope": [("base", 1), ("base", 2), ("ntk@16", 1)] + [
        (mode, 2) for mode in ("pi", "ntk", "dyn", "yarn", "yarn-b8", "yarn-b4",
                               "yarn-b2", "parts-b8", "parts-b2", "ntkx2", "ntkx4",
                               "ntk@16", "window")],
}
SLIDES = ("base", "clamp", "ntk")


class Checker:
    def __init__(self, posenc, folder):
        self.posenc, self.folder = posenc, folder
        self.count = self.failed = 0

    def check(self, what, is_met):
        self.count += 1
        self.failed += not is_met
        if not is_met:
            print(f"lab: {what}")

    def run(self, *arguments):
        done = subprocess.run([self.posenc, "lab", *arguments], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        if done.returncode or done.stderr:
            raise ValueError(f"lab {' '.join(arguments)}: {done.stderr.decode()}")
        return json.loads(done.stdout)


def key_of(row):
    return row["method"], row["seed"], row["mode"], row["multiple"], row["windows"]


def losses(report):
    """What each result is about to its loss, which must be there once."""
    found = {key_of(row): row["nll"] for row in report["results"]}
    if len(found) != len(report["results"]):
        raise ValueError("a result is there twice")
    return found


def expected_keys(method, seed):
    for mode, multiple in ROWS[method]:
        yield method, seed, mode, multiple, "nonoverlap"
        if mode in SLIDES:
            yield method, seed, mode, multiple, "slide"


def check_rows(c):
    """Which results there are, and that a second run does nothing but read them."""
    first = c.run("run", *SMALL, "--methods", ",".join(ROWS), "--seeds", "2", "-o", "a",
                  "--json")
    c.check("run --json has other members",
            list(first) == ["schema", "settings", "results", "timing"])
    c.check("a result has other members", all(
        list(row) == ["method", "seed", "mode", "multiple", "windows", "nll"]
        for row in first["results"]))
    got = losses(first)
    wanted = {key for method in ROWS for seed in (0, 1)
              for key in expected_keys(method, seed)}
    c.check(f"results missing or surplus: {wanted ^ set(got)}", set(got) == wanted)
    c.check("losses are off", all(2.5 < nll < 6.5 for nll in got.values()))
    c.check("seeds do not differ", all(
        got[key] != got[(key[0], 1, *key[2:])] for key in got if key[1] == 0))
    c.check("base and clamp of a learned table differ within it", all(
        got[("learned", seed, "base", 1, windows)] ==
        got[("learned", seed, "clamp", 1, windows)]
        for seed in (0, 1) for windows in ("nonoverlap", "slide")))
    again = c.run("run", *SMALL, "--methods", ",".join(ROWS), "--seeds", "2", "-o", "a",
                  "--json")
    c.check("the same command again has other results or times", again == first)
    return first


def check_positions(c, first):
    report = c.run("report", "a", "--json")
    c.check("report and run disagree", losses(report) == losses(first))
    c.check("settings differ", report["settings"] == first["settings"])
    for row in report["results"]:
        blocks = row.get("by_position")
        c.check(f"by_position of {key_of(row)}", (row["windows"] == "slide") == (
            blocks is None))
        if blocks:
            mean = sum(blocks) / len(blocks)
            c.check(f"{key_of(row)}: {mean} by position", len(blocks) == row["multiple"]
                    and abs(mean - row["nll"]) < 1e-9)


def check_threads(c, first):
    """The same bits on one thread, three, and by lab eval of the checkpoint."""
    got = losses(first)
    for threads in ("1", "3"):
        run = c.run("run", *SMALL, "--methods", "rope", "--threads", threads, "-o",
                    f"threads{threads}", "--json")
        c.check(f"{threads} threads change a loss", all(
            got[key] == nll for key, nll in losses(run).items()))
    run = c.run("eval", "a/rope-seed1", "--copy", "8", "--multiple", "1,2", "--mode",
                "all", "--slide", "--eval-tokens", "2048", "--json", "-o", "e.json")
    alone = losses(run)
    c.check("lab eval has other results", alone == {
        key: nll for key, nll in got.items() if key[:2] == ("rope", 1)})
    c.check("lab eval -o has other results",
            losses(c.run("report", "e.json", "--json")) == alone)


def check_train(c, first):
    """lab train and lab eval, as a scheduler would call them."""
    small = SMALL[:SMALL.index("--multiple")]
    c.run("train", *small, "--method", "alibi", "--learn-slopes", "--seed", "1", "-o",
          "b", "--json")
    c.run("eval", "b/alibi-slopes-seed1", "--copy", "8", "--multiple", "1,2", "--mode",
          "all", "--slide", "--eval-tokens", "2048", "-o",
          "b/alibi-slopes-seed1/results.json", "--json")
    report = losses(c.run("report", "b", "a", "--json"))
    c.check("train and eval differ from run", report == losses(first))


def run(posenc, folder):
    """How many statements were checked, and how many do not hold."""
    c = Checker(posenc, folder)
    first = check_rows(c)
    check_positions(c, first)
    check_threads(c, first)
    check_train(c, first)
    return c.count, c.failed
