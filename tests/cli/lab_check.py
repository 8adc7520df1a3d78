# SPDX-License-Identifier: MIT
#
# lab_check.py - posenc lab: runs that are stopped, killed, refused and gone on with
#
# A checkpoint does not say how long its run took, so that two runs which are to be the
# same leave the same bytes.
import json
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

import safetensors

SMALL = ["--layers", "1", "--width", "16", "--heads", "2", "--length", "16", "--batch",
         "9", "--text", "genesis.txt"]
RUN = ["lab", "train", "--method", "rope", *SMALL, "--steps", "250", "--save-every", "10"]


class Lab:
    def __init__(self, posenc, folder):
        self.posenc, self.folder = posenc, folder
        self.count = self.failed = 0

    def run(self, *args, limit=None, path=None):
        env = dict(os.environ, LC_ALL="C")
        if path is not None:
            env["PATH"] = path
        def less():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return subprocess.run([self.posenc, *args], cwd=self.folder, env=env, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              preexec_fn=less if limit is not None else None)

    def check(self, what, is_good, detail=""):
        self.count += 1
        if not is_good:
            self.failed += 1
            print(f"lab: {what} {detail}")

    def refuses(self, code, words, *args, **how):
        """One line on stderr that says these words, and nothing on stdout."""
        done = self.run(*args, **how)
        lines = done.stderr.splitlines()
        self.check(" ".join(args), done.returncode == code and len(lines) == 1
                   and words in lines[0] and not done.stdout,
                   f"gives {done.returncode}, {lines}, expected {code}, {words!r}")

    def bytes_of(self, name):
        with open(f"{self.folder}/{name}", "rb") as file:
            return file.read()

    def json_of(self, name):
        return json.loads(self.bytes_of(name))

    def checkpoint(self, output, name="rope-seed0"):
        return self.bytes_of(f"{output}/{name}/checkpoint.safetensors")

    def start(self, *args):
        return subprocess.Popen([self.posenc, *args], cwd=self.folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def wait_for_step(self, output, step, process):
        """Until its train.json has come that far."""
        path = f"{self.folder}/{output}/rope-seed0/train.json"
        while process.poll() is None:
            try:
                with open(path, encoding="utf-8") as file:
                    if json.load(file)["step"] >= step:
                        return
            except FileNotFoundError:
                pass
            time.sleep(0.005)


def replaced(args, old, new):
    args = list(args)
    args[args.index(old)] = new
    return args


def check_whole(lab):
    """A run, its record, and the same on more threads than there are chunks."""
    done = lab.run(*RUN, "-o", "whole", "--threads", "1", "--json")
    lab.check("train", done.returncode == 0 and not done.stderr, done.stderr)
    record = lab.json_of("whole/rope-seed0/train.json")
    lab.check("--json is train.json", json.loads(done.stdout) == record)
    lab.check("schema", record["schema"] == "posenc.lab.train/1")
    lab.check("log", [entry["step"] for entry in record["log"]] == [100, 200, 250],
              record["log"])
    losses = [entry["loss"] for entry in record["log"]]
    lab.check("losses fall", losses[0] > losses[1] > losses[2] > 0, losses)
    lab.check("finished", record["finished"] and record["step"] == 250)
    lab.check("text", record["text"]["name"] == "genesis.txt"
              and record["text"]["validation_bytes"] == 4096
              and record["text"]["train_bytes"] == 8 * 4096, record["text"])
    lab.check("speed", abs(record["tokens_per_second"] * record["seconds"]
                           - 250 * 9 * 16) < 1e-6 * 250 * 9 * 16)
    lab.check("memory", 0 < record["memory"] < record["peak_memory"], record)
    inspected = json.loads(lab.run("lab", "inspect", "whole/rope-seed0", "--json").stdout)
    lab.check("inspect agrees", inspected["loss_average"] == record["loss"] == losses[-1]
              and inspected["settings"] == record["settings"]
              and inspected["corpus_sha256"] == record["text"]["sha256"])
    for threads in "2", "3":
        lab.run(*RUN, "-o", "threads", "--threads", threads, "--force")
        lab.check(f"{threads} threads", lab.checkpoint("threads") == lab.checkpoint("whole"))


def check_interrupted(lab, threads, number):
    output = f"cut{threads}{number}"
    run = [*RUN, "-o", output, "--threads", str(threads)]
    stops, step = 0, 20
    while True:
        process = lab.start(*run, *(["--resume"] if stops else []))
        if step < 250:
            lab.wait_for_step(output, step, process)
            process.send_signal(number)
        _, err = process.communicate()
        if process.returncode != -number:
            break
        notes = err.splitlines()
        if notes == ["posenc: lab train: note: all 250 steps are done"]:
            process.returncode = 0  # it came too late
            break
        stops += 1
        at = re.fullmatch(r"posenc: lab train: note: stopped at step (\d+) of 250; to go "
                          r"on: (posenc lab train .* --resume)", notes[-1])
        lab.check("the note", at is not None and len(notes) == 1, notes)
        if at is None:
            return
        step = min(int(at[1]) + 70, 250)
        inspected = json.loads(lab.run("lab", "inspect", f"{output}/rope-seed0",
                                       "--json").stdout)
        lab.check("the step of the note", inspected["step"] == int(at[1]))
    lab.check("stopped and gone on with", stops >= 1 and process.returncode == 0,
              (stops, process.returncode, err))
    lab.check(f"stopped {stops} times, {threads} threads: the same bits",
              lab.checkpoint(output) == lab.checkpoint("whole"))
    record = lab.json_of(f"{output}/rope-seed0/train.json")
    whole = lab.json_of("whole/rope-seed0/train.json")
    lab.check("the same log", record["log"] == whole["log"], record["log"])


def check_killed(lab):
    process = lab.start(*RUN, "-o", "killed")
    lab.wait_for_step("killed", 30, process)
    process.kill()
    process.communicate()
    lab.check("killed", process.returncode == -signal.SIGKILL)
    lab.refuses(1, "of 250; --resume goes on with it, --force begins it again", *RUN, "-o",
                "killed")
    lab.check("resumed", lab.run(*RUN, "-o", "killed", "--resume").returncode == 0)
    lab.check("killed: the same bits", lab.checkpoint("killed") == lab.checkpoint("whole"))


def check_held(lab):
    """A folder takes one command at a time."""
    run = [*replaced(RUN, "250", "1000000"), "-o", "held"]
    process = lab.start(*run)
    lab.wait_for_step("held", 10, process)
    lab.refuses(1, "held/rope-seed0 is being trained by another command", *run, "--resume")
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
        peak = int(re.search(r"VmPeak:\s*(\d+) kB", file.read())[1]) << 10
    process.kill()
    process.communicate()
    check_memory(lab, peak + (4 << 30))


def check_memory(lab, most):
    """More than there is: what was asked for is said, and no folder stays."""
    rows, length = 65536, 999999
    def less():
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    options = {name: os.environ.get(name, "") + ":allocator_may_return_null=1"
               for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")}
    done = subprocess.run([lab.posenc, "lab", "train", "--method", "none", "--copy", "3",
                           "--length", str(length), "--batch", str(rows), "-o", "vast"],
                          cwd=lab.folder, env=dict(os.environ, **options), timeout=120,
                          capture_output=True, text=True, check=False, preexec_fn=less)
    lab.check("more memory than there is", done.returncode == 1 and
              f"no memory for steps of {rows} rows of {length} tokens: "
              f"{4 * rows * length} bytes for the losses, " in done.stderr
              and " for 8192 gradients of " in done.stderr, done)
    lab.check("leaves no folder", os.listdir(f"{lab.folder}/vast") == [])


def check_ignored(lab):
    """As under nohup: a signal that was ignored at the start does not stop it."""
    process = subprocess.Popen(["bash", "-c", 'trap "" INT; exec "$0" "$@"', lab.posenc,
                                *RUN, "-o", "ignored"], cwd=lab.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lab.wait_for_step("ignored", 20, process)
    process.send_signal(signal.SIGINT)
    process.communicate()
    lab.check("an ignored signal", process.returncode == 0
              and lab.checkpoint("ignored") == lab.checkpoint("whole"))


def check_finished(lab):
    lab.refuses(1, "whole/rope-seed0 holds a finished run; --force begins it again",
                *RUN, "-o", "whole")
    before = lab.checkpoint("whole")
    done = lab.run(*RUN, "-o", "whole", "--resume")
    lab.check("a finished run is left alone", done.returncode == 0 and not done.stderr
              and "250 steps of 9 rows of 16 tokens" in done.stdout, done)
    with open(f"{lab.folder}/whole/rope-seed0/results.json", "w", encoding="utf-8"):
        pass
    lab.check("forced", lab.run(*RUN, "-o", "whole", "--force").returncode == 0)
    lab.check("forced: the same bits", lab.checkpoint("whole") == before)
    lab.check("forced: old results go",
              not os.path.exists(f"{lab.folder}/whole/rope-seed0/results.json"))
    lab.refuses(2, "--resume goes on and --force begins again", *RUN, "--resume", "--force")


def check_standard_output(lab):
    """It is full: said, after the run is where it belongs."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([lab.posenc, *RUN, "-o", "deaf"], cwd=lab.folder, stdout=full,
                              stderr=subprocess.PIPE, text=True)
    lab.check("a full standard output", done.returncode == 1
              and "standard output could not be written" in done.stderr, done)
    lab.check("costs no run", lab.checkpoint("deaf") == lab.checkpoint("whole"))


def check_progress(lab):
    """On a terminal, from the second second on: a bar, the time left, the loss."""
    parent, child = pty.openpty()
    process = subprocess.Popen([lab.posenc, *replaced(RUN, "250", "1000000"), "-o",
                                "shown"], cwd=lab.folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=child)
    os.close(child)
    shown, end = b"", time.monotonic() + 30
    bar = rb"\rrope \[#* *\] +\d+%  (\d+ h )?(\d+ min )?\d+ (s|min) left  loss \d\.\d{4} "
    while not re.search(bar, shown) and time.monotonic() < end:
        shown += os.read(parent, 4096)
    process.send_signal(signal.SIGINT)
    lab.check("the bar", re.search(bar, shown), shown[-200:])
    while True:
        try:
            more = os.read(parent, 4096)
        except OSError:
            break
        shown += more
        if not more:
            break
    os.close(parent)
    process.wait()
    widths = [len(line) for line in re.split(rb"[\r\n]+", shown)
              if line.startswith(b"rope [")]
    lab.check("the bar fits 80 columns", widths and max(widths) <= 80, widths)
    lab.check("the note begins a line of its own", re.search(
        rb"\r {80}\rposenc: lab train: note: stopped at step \d+ of 1000000; to go on: ",
        shown), shown[-300:])


def check_other_settings(lab):
    lab.refuses(1, "has steps 250, not 300", *replaced(RUN, "250", "300"), "-o", "whole",
                "--resume")
    lab.refuses(1, "has batch 9, not 8", *replaced(RUN, "9", "8"), "-o", "whole",
                "--resume")
    text = lab.bytes_of("genesis.txt")
    with open(f"{lab.folder}/other.txt", "wb") as file:
        file.write(text[:-1] + b"!")
    lab.refuses(1, "has learned from another text than other.txt",
                *replaced(RUN, "genesis.txt", "other.txt"), "-o", "whole", "--resume")


def check_full_disk(lab):
    """At the start there is nothing; later the last good checkpoint stays."""
    lab.refuses(1, "full/rope-seed0/checkpoint.safetensors: File too large", *RUN, "-o",
                "full", limit=1000)
    lab.check("nothing half-written", os.listdir(f"{lab.folder}/full") == [])
    os.mkdir(f"{lab.folder}/full/rope-seed0")
    lab.refuses(1, "File too large", *RUN, "-o", "full", limit=1000)
    lab.check("a folder that was there stays",
              os.listdir(f"{lab.folder}/full/rope-seed0") == [])
    process = lab.start(*RUN, "-o", "full")
    lab.wait_for_step("full", 30, process)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    before = lab.checkpoint("full")
    lab.refuses(1, "File too large", *RUN, "-o", "full", "--resume", limit=5000)
    lab.check("the last good checkpoint stays", lab.checkpoint("full") == before)
    lab.check("and nothing else", sorted(os.listdir(f"{lab.folder}/full/rope-seed0"))
              == ["checkpoint.safetensors", "train.json"])
    lab.run(*RUN, "-o", "full", "--resume")
    lab.check("after a full disk: the same bits",
              lab.checkpoint("full") == lab.checkpoint("whole"))


def check_not_finite(lab):
    """Weights near the end of float32: the loss is not finite, which is said."""
    process = lab.start(*RUN, "-o", "nan")
    lab.wait_for_step("nan", 10, process)
    process.send_signal(signal.SIGINT)
    process.communicate()
    path = f"{lab.folder}/nan/rope-seed0/checkpoint.safetensors"
    header, tensors = safetensors.read(path)
    tensors["w.u"] = struct.pack("<f", 3e38) * (len(tensors["w.u"]) // 4)
    before = header + b"".join(tensors.values())
    with open(path, "wb") as file:
        file.write(before)
    done = lab.run(*RUN, "-o", "nan", "--resume")
    lab.check("a loss that is not finite", done.returncode == 1
              and re.search(r"the loss of step \d+ is .*nan.*element \d+ of ", done.stderr)
              and len(done.stderr.splitlines()) == 1, done)
    lab.check("leaves the checkpoint", lab.checkpoint("nan") == before)


def check_texts(lab):
    run = ["lab", "train", "--method", "none", "-o", "texts", "--steps", "1"]
    lab.refuses(1, "nowhere.txt: No such file", *run, "--text", "nowhere.txt")
    with open(f"{lab.folder}/short.txt", "wb") as file:
        file.write(bytes(9215))
    lab.refuses(1, "short.txt has 9215 bytes, must have at least 9216", *run, "--text",
                "short.txt")
    lab.refuses(2, "--text and --copy are two texts", *run, "--text", "x", "--copy", "3")
    lab.refuses(1, "bible-kjv and bible-kjv-text, or name a text by --text FILE", *run,
                path="/nonexistent")
    lab.refuses(1, "length is 40000, must be below the 32768 bytes", *run, "--text",
                "genesis.txt", "--length", "40000")
    lab.refuses(1, "could not be made", "lab", "train", "--method", "none", "--text",
                "genesis.txt", "-o", "genesis.txt")


def train(lab, method, *args):
    return lab.run("lab", "train", "--method", method, *SMALL, "--steps", "3", "-o",
                   "short", *args)


def check_from(lab):
    """Training that goes on at a greater length, by every mode that there is for it."""
    go_on = ["lab", "train", "--text", "genesis.txt", "--steps", "2", "-o", "long"]
    cases = [("rope", "pi", "rope-pi"), ("rope", "ntkx2", "rope-ntkx2"),
             ("rope", "yarn-b8", "rope-yarn-b8"), ("rope", "parts-b4", "rope-parts-b4"),
             ("rope", "base", "rope"), ("sin", "pi", "sin-pi"), ("sin", "base", "sin"),
             ("learned", "interp", "learned-interp"), ("alibi", None, "alibi"),
             ("none", None, "none"), ("t5", None, "t5"), ("kerple", None, "kerple")]
    for method in {case[0] for case in cases}:
        lab.check(f"train {method}", train(lab, method).returncode == 0)
    for method, mode, name in cases:
        done = lab.run(*go_on, "--from", f"short/{method}-seed0", "--length", "40",
                       *(["--extend", mode] if mode else []))
        lab.check(f"{method} by {mode}", done.returncode == 0, done.stderr)
        settings = lab.json_of(f"long/{name}-seed0/train.json")["settings"]
        is_extended = mode not in (None, "base")
        lab.check(f"settings of {name}", settings["length"] == 40
                  and settings["first_length"] == (16 if is_extended else 0)
                  and settings.get("extension") == (mode if is_extended else None),
                  settings)
    further = [*replaced(go_on, "long", "longer"), "--from", "long/rope-pi-seed0",
               "--length", "64"]
    lab.refuses(2, "extension is yarn, must be pi, which the model was extended by",
                *further, "--extend", "yarn")
    lab.check("extended twice", lab.run(*further, "--extend", "pi").returncode == 0)
    train(lab, "none", "--seed", "7")
    lab.run(*go_on, "--from", "short/none-seed7", "--length", "40")
    lab.check("the seed stays", os.path.exists(f"{lab.folder}/long/none-seed7/train.json"))
    settings = lab.json_of("longer/rope-pi-seed0/train.json")["settings"]
    lab.check("from the first length", settings["first_length"] == 16)
    rope = [*go_on, "--from", "short/rope-seed0"]
    lab.refuses(2, "--length is missing", *rope, "--extend", "pi")
    lab.refuses(2, "length is 16, must be above the 16", *rope, "--length", "16",
                "--extend", "pi")
    lab.refuses(2, "the extension is missing: base, pi, ntk, yarn", *rope, "--length", "32")
    lab.refuses(2, "extension is dyn, must be one of", *rope, "--length", "32", "--extend",
                "dyn")
    lab.refuses(2, "--method is what the model of --from has", *rope, "--length", "32",
                "--method", "rope")
    lab.refuses(2, "mode pi is for rope layers", *go_on, "--from", "short/alibi-seed0",
                "--length", "32", "--extend", "pi")
    lab.refuses(2, "extension is base, must be interp", *go_on, "--from",
                "short/learned-seed0", "--length", "32", "--extend", "base")
    lab.refuses(2, "--extend is for a model that --from names", *RUN, "--extend", "pi")
    lab.refuses(1, "no checkpoint of the lab", *go_on, "--from", "q.npy", "--length", "32")
    check_other_from(lab, [*go_on, "--length", "40"])
    check_itself(lab)


def check_other_from(lab, run):
    """What began with some weights goes on with no others."""
    before = lab.checkpoint("long", "none-seed0")
    resumed = [*run, "--seed", "0", "--resume"]
    began = lab.json_of("long/none-seed0/train.json")["from_sha256"]
    other = lab.json_of("long/none-seed7/train.json")["from_sha256"]
    lab.check("from_sha256", re.fullmatch("[0-9a-f]{64}", began) and began != other,
              (began, other))
    lab.check("the same --from", lab.run(*resumed, "--from",
                                         "short/none-seed0").returncode == 0)
    lab.refuses(1, f"long/none-seed0 began with weights of SHA-256 {began[:12]}, not "
                f"weights of SHA-256 {other[:12]}; give the same --from", *resumed,
                "--from", "short/none-seed7")
    random = ["lab", "train", "--method", "none", *SMALL, "--steps", "2", "--resume", "-o"]
    random[random.index("--length") + 1] = "40"
    lab.refuses(1, f"began with weights of SHA-256 {began[:12]}, not random weights",
                *random, "long")
    lab.check("random weights", lab.run(*random, "random").returncode == 0
              and lab.json_of("random/none-seed0/train.json")["from_sha256"] is None)
    lab.refuses(1, "random/none-seed0 began with random weights, not weights of SHA-256 "
                f"{began[:12]}", *replaced(resumed, "long", "random"), "--from",
                "short/none-seed0")
    lab.check("and nothing is written", lab.checkpoint("long", "none-seed0") == before)


def check_itself(lab):
    """--force must not remove what --from names, however it is named."""
    before = lab.checkpoint("short", "none-seed0")
    os.symlink("short/none-seed0", f"{lab.folder}/link")
    for name in ("short/none-seed0", "link", "short/../link/checkpoint.safetensors"):
        for how in [], ["--force"], ["--resume"]:
            lab.refuses(2, "--from is the run in short/none-seed0 itself, whose place this "
                        "one would take; choose another -o", "lab", "train", "--text",
                        "genesis.txt", "--from", name, "--length", "40", "-o", "short",
                        *how)
    lab.check("the source stays", lab.checkpoint("short", "none-seed0") == before)


def check_strangers(lab):
    """A checkpoint in the folder of another run is not taken for that run's."""
    train(lab, "alibi", "--learn-slopes")
    def put(source, name):
        os.makedirs(f"{lab.folder}/strange/{name}", exist_ok=True)
        shutil.copy(f"{lab.folder}/{source}/checkpoint.safetensors",
                    f"{lab.folder}/strange/{name}/checkpoint.safetensors")
    cases = [("rope-seed0", "alibi-seed0", "method rope, not alibi", "alibi", []),
             ("rope-seed0", "rope-seed1", "seed 0, not 1", "rope", ["--seed", "1"]),
             ("none-seed7", "none-seed0", "seed 7, not 0", "none", []),
             ("alibi-slopes-seed0", "alibi-seed0", "learn_slopes 1, not 0", "alibi", []),
             ("alibi-seed0", "alibi-slopes-seed0", "learn_slopes 0, not 1", "alibi",
              ["--learn-slopes"])]
    for source, name, words, method, more in cases:
        put(f"short/{source}", name)
        lab.refuses(1, f"strange/{name} has {words}; give the same", "lab", "train",
                    "--method", method, *SMALL, "--steps", "3", "-o", "strange",
                    "--resume", *more)
        if not more:
            lab.refuses(1, f"strange/{name} has {words}; give the same", "lab", "run",
                        "--methods", method, *SMALL, "--steps", "3", "-o", "strange")
    put("long/rope-pi-seed0", "rope-ntk-seed0")
    lab.refuses(1, "strange/rope-ntk-seed0 has extension pi, not ntk", "lab", "train",
                "--text", "genesis.txt", "--steps", "2", "--length", "40", "--from",
                "short/rope-seed0", "--extend", "ntk", "-o", "strange", "--resume")


def check_records(lab):
    """A train.json that is not ours counts for nothing."""
    path = f"{lab.folder}/whole/rope-seed0/train.json"
    with open(path, encoding="utf-8") as file:
        good = file.read()
    ours = '{"schema":"posenc.lab.train/1",'
    for text in ('{"schema":null}', '{"schema":{}}', '{"schema":[1]}', '{"schema":7}', "null",
                 "[]", '"x"', "7", "{", "", ours + '"log":null}', ours + '"log":[null,7,{}]}',
                 ours + '"log":[{"step":null,"loss":"x"}],"seconds":null,"threads":{}}',
                 ours + '"log":[],"from_sha256":null}', ours + '"log":[],"from_sha256":7}'):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = lab.run(*RUN, "-o", "whole", "--resume")
        lab.check(f"train.json {text!r}", done.returncode == 0 and not done.stderr
                  and "250 steps of 9 rows" in done.stdout and "time" not in done.stdout,
                  done)
    with open(path, "w", encoding="utf-8") as file:
        file.write(good)


def check_named(lab):
    """What is wrong with a checkpoint is said with its path."""
    path = "bad/none-seed0/checkpoint.safetensors"
    os.makedirs(f"{lab.folder}/bad/none-seed0")
    whole = lab.checkpoint("short", "none-seed0")
    commands = [["lab", "inspect", "bad/none-seed0"], ["lab", "inspect", path],
                ["lab", "eval", path, "--text", "genesis.txt"],
                ["lab", "train", "--from", path, "--length", "40"],
                ["lab", "train", "--method", "none", *SMALL, "-o", "bad", "--resume"],
                ["lab", "run", "--methods", "none", *SMALL, "-o", "bad"]]
    for content in whole[:-1], whole[:100], b"{", bytes(3), b"":
        with open(f"{lab.folder}/{path}", "wb") as file:
            file.write(content)
        for command in commands:
            lab.refuses(1, f": {path}: ", *command)
    os.remove(f"{lab.folder}/{path}")
    os.mkdir(f"{lab.folder}/{path}")
    for command in commands:
        lab.refuses(1, f": {path} is a folder, must be a file", *command)


def run(posenc, folder):
    lab = Lab(posenc, folder)
    check_whole(lab)
    for threads in 1, 2:
        for number in signal.SIGINT, signal.SIGTERM:
            check_interrupted(lab, threads, number)
    check_killed(lab)
    check_held(lab)
    check_ignored(lab)
    check_finished(lab)
    check_other_settings(lab)
    check_standard_output(lab)
    check_progress(lab)
    check_full_disk(lab)
    check_not_finite(lab)
    check_texts(lab)
    check_from(lab)
    check_strangers(lab)
    check_records(lab)
    check_named(lab)
    return lab.count, lab.failed
