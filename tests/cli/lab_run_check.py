# SPDX-License-Identifier: MIT
#
# lab_run_check.py - lab run, eval and report agree with each other, whatever the threads
#
# Runs of a few steps on the copy language.  Losses are compared with each other only,
# since their last digits are the processor's.
import copy
import csv
import json
import os
import subprocess
import xml.dom.minidom

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

    def refused(self, what, code, words, *arguments):
        """One line on stderr with all the words, nothing on stdout, and the code."""
        done = subprocess.run([self.posenc, "lab", *arguments], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        said = done.stderr.decode()
        self.check(f"{what}: rc {done.returncode}, {said!r}",
                   done.returncode == code and not done.stdout and
                   said.count("\n") == 1 and all(word in said for word in words))

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, value):
        """name/results.json, the value as JSON."""
        os.makedirs(self.path(name), exist_ok=True)
        with open(self.path(name, "results.json"), "w", encoding="utf-8") as file:
            json.dump(value, file)

    def read(self, *names):
        with open(self.path(*names), "rb") as file:
            return file.read()


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


def check_inputs_stay(c):
    """What is read is not written over, under any name."""
    with open(c.path("text"), "wb") as file:
        file.write(bytes(97 + i * i % 23 for i in range(20000)))
    small = "--steps 2 --width 16 --heads 2 --layers 1 --batch 2 --length 8".split()
    c.run("train", *small, "--text", "text", "--method", "rope", "-o", "kept", "--json")
    model = "kept/rope-seed0/checkpoint.safetensors"
    os.link(c.path(model), c.path("linked"))
    os.mkdir(c.path("merged"))
    whole = json.loads(c.read("a", "rope-seed0", "results.json"))
    for name in ("merged/report.json", "picture.svg"):
        with open(c.path(name), "w", encoding="utf-8") as file:
            json.dump(whole, file)
    eval_text = ["eval", "kept/rope-seed0", "--text", "text", "--multiple", "1", "-o"]
    for name, arguments in (
            (model, [*eval_text, model]), ("linked", [*eval_text, "linked"]),
            ("text", [*eval_text, "text"]),
            ("merged/report.json", ["report", "merged/report.json", "-o", "merged"]),
            ("picture.svg", ["report", "picture.svg", "-o", "picture.svg"])):
        before = c.read(name)
        c.refused(f"{name} as output", 2,
                  (f"{name} is an input; choose another output",), *arguments)
        c.check(f"{name} was written over", c.read(name) == before)
    c.run(*eval_text, "kept/rope-seed0/results.json", "--json")


def check_modes_that_apply(c):
    c.run("train", "--from", "a/rope-seed0", "--length", "128", "--extend", "pi",
          "--steps", "2", "--copy", "8", "-o", "longer", "--json")
    model = ["eval", "longer/rope-pi-seed0", "--copy", "8", "--multiple", "1,2",
             "--eval-tokens", "2048"]
    rows = c.run(*model, "--mode", "all", "--json")["results"]
    c.check("all of an extended model", [(row["mode"], row["multiple"]) for row in rows]
            == [("base", 1), ("base", 2), ("window", 2)])
    c.refused("pi, named", 2, ("mode pi scales again",), *model, "--mode", "base,pi")
    narrow = [word if word != "16" else "4" for word in SMALL]
    rows = c.run("run", *narrow, "--methods", "rope", "--no-slide", "-o", "narrow",
                 "--json")["results"]
    c.check("modes of head_dim 2", {row["mode"] for row in rows} == {
        "base", "pi", "yarn", "yarn-b8", "yarn-b4", "yarn-b2", "parts-b8", "parts-b2",
        "window"})


def check_plans(c):
    """What cannot be read is known before anything is trained."""
    small = SMALL[:SMALL.index("--multiple")]
    for what, words, arguments in (
            ("sliding", ("--eval-tokens is 32768, must be at least 40000", "--no-slide"),
             ["--length", "5000", "--multiple", "1,2"]),
            ("windows", ("--eval-tokens is 99, must be at least 100",),
             ["--length", "100", "--eval-tokens", "99"]),
            ("multiple", ("--multiple 4000 of length 64", "have 200000"),
             ["--multiple", "1,4000"]),
            ("slides", ("--multiple up to 3124 of length 64", "--no-slide"),
             ["--multiple", "1,3124"]),
            ("claim", ("--eval-tokens is 32768, must be at least 48000", "--no-slide"),
             ["--length", "3000", "--multiple", "1,2", "--claim"])):
        c.refused(f"plan: {what}", 2, words, "run", *small, *arguments, "-o", "never")
        c.check(f"plan: {what}: something was trained",
                not os.path.exists(c.path("never")))


def check_other_runs(c):
    """A folder whose run is another one: what lab run advises are options it has."""
    sizes = "--width 16 --heads 2 --layers 1 --batch 4".split()
    c.run("train", *sizes, "--steps", "6", "--copy", "8", "--method", "alibi", "-o",
          "other", "--json")
    c.run("train", "--from", "a/alibi-slopes-seed0", "--length", "128", "--steps", "6",
          "--copy", "8", "-o", "began", "--json")
    plan = "--multiple 1,2 --no-slide --methods".split()
    for what, words, arguments in (
            ("settings", ("other/alibi-seed0 has steps 6, not 7; give the same settings, "
                          "or another -o\n",),
             ["alibi", "--steps", "7", "--copy", "8", "-o", "other"]),
            ("text", ("other/alibi-seed0 has learned from another text than copy16; give "
                      "the same, or another -o\n",),
             ["alibi", "--steps", "6", "--copy", "16", "-o", "other"]),
            ("weights", ("began/alibi-slopes-seed0 began with weights of SHA-256",
                         ", not random weights; give another -o\n"),
             ["alibi-slopes", "--steps", "6", "--copy", "8", "--length", "128", "-o",
              "began"])):
        c.refused(f"another run: {what}", 1, words, "run", *sizes, *plan, *arguments)
    c.refused("another run, of lab train", 1, ("or --force to begin again\n",), "train",
              *sizes, "--steps", "7", "--copy", "8", "--method", "alibi", "-o", "other",
              "--resume")


def check_bad_results(c):
    good = json.loads(c.read("a", "rope-seed0", "results.json"))
    for field, value, words in (
            ("multiple", 1e12, ("multiple is 1000000000000.0", "from 1 to 1048576")),
            ("multiple", 1.5, ("multiple is 1.5", "from 1 to 1048576")),
            ("seed", -1, ("seed is -1", "from 0 to 18446744073709551615")),
            ("mode", "base\n", ("mode is \"base\\n\"", "control")),
            ("mode", "nosuch", ("mode is \"nosuch\"",)),
            ("method", "ro\"pe", ("method is \"ro\\\"pe\"",)),
            ("method", "a\u0001", ("method is \"a\\u0001\"", "control")),
            ("method", "", ("method is \"\"",))):
        bad = copy.deepcopy(good)
        bad["results"][0][field] = value
        c.write("bad", bad)
        c.refused(f"{field} {value!r}", 1, ("bad/results.json: ", *words), "report",
                  "bad", "-o", "bad-report")
    large = copy.deepcopy(good)
    for row in large["results"] + large["timing"]:
        row["seed"] = 2**64 - 1
    c.write("large", large)
    c.check("a seed of 64 bits", c.run("report", "large", "--json") == large)
    large["results"] = []
    c.write("empty", large)
    for sides in (("empty", "a"), ("a", "empty")):
        c.refused("no results to compare", 1, ("empty/results.json has no results",),
                  "report", sides[0] + "/rope-seed0" * (sides[0] == "a"), "--claim",
                  sides[1] + "/rope-seed0" * (sides[1] == "a"))


def check_names(c):
    report = ["report", "a"]
    c.refused("a method that is not there", 2,
              ("--method is 'nosuch'", "learned, rope, alibi-slopes"), *report,
              "--method", "nosuch")
    c.refused("a mode that is not there", 2, ("--mode has 'nosuch'", "rope: base, pi, ntk"),
              *report, "--method", "rope", "--mode", "base,nosuch")
    c.refused("an empty mode", 2, ("--mode has ''",), *report, "--method", "rope",
              "--mode", "base,")
    c.refused("nine modes", 2, ("--mode lists 9, must be at most 8",), *report,
              "--method", "rope", "--mode",
              "base,pi,ntk,dyn,yarn,yarn-b8,yarn-b4,yarn-b2,window")


def check_written_names(c):
    """A text and methods with characters that CSV and XML must treat with care."""
    odd = json.loads(c.read("a", "rope-seed0", "results.json"))
    odd["settings"]["text"] = "<a>&\"b\"\u200b\ufffe\u00e9, c"
    for row in odd["results"] + odd["timing"]:
        row["method"] = "learned+rope,alibi"
    c.write("odd", odd)
    c.run("report", "odd", "-o", "odd-report", "--json")
    c.run("report", "odd", "-o", "./" * 600 + "odd-far", "--json")
    c.check("a report by a long path is another", all(
        c.read("odd-far", name) == c.read("odd-report", name)
        for name in ("report.json", "report.csv", "report.svg")))
    svg = xml.dom.minidom.parseString(c.read("odd-report", "report.svg"))
    words = " ".join(node.firstChild.data for node in svg.getElementsByTagName("text"))
    c.check(f"text of the picture: {words!r}", "<a>&\"b\"" in words and "\u00e9, c" in words
            and "\ufffe" not in words and "learned+rope,alibi" in words)
    lines = list(csv.reader(c.read("odd-report", "report.csv").decode().splitlines()))
    c.check("CSV has lines of another width", {len(line) for line in lines} == {10})
    c.check("CSV has other methods",
            {line[0] for line in lines[1:]} == {"learned+rope,alibi"})


def run(posenc, folder):
    """How many statements were checked, and how many do not hold."""
    c = Checker(posenc, folder)
    first = check_rows(c)
    check_positions(c, first)
    check_threads(c, first)
    check_train(c, first)
    check_inputs_stay(c)
    check_modes_that_apply(c)
    check_plans(c)
    check_other_runs(c)
    check_bad_results(c)
    check_names(c)
    check_written_names(c)
    return c.count, c.failed
