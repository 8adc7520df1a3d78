# SPDX-License-Identifier: MIT
#
# writers_check.py - output that cannot be written, for every verb that writes
#
# Full disks, readers that go away, closed descriptors and signals: the right exit code,
# one line on stderr or none, and under the final name what was there before.
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

import npy

OLD = b"what was there before"

# Arguments before -o FILE.
FILES = {"freqs": ["freqs", "llama.json"],
         "table": ["table", "llama.json", "-p", "0:100"],
         "table absolute": ["table", "gpt2.json", "--table", "rows.npy", "-p", "0:100"],
         "slopes": ["slopes", "64"],
         "bias": ["bias", "8", "--q", "0:20", "--k", "0:20"],
         "positions": ["positions", "packed", "--lengths", "100,30"],
         "shift": ["shift", "llama.json", "-k", "k.npy", "--by", "3"],
         "rebase": ["rebase", "llama.json", "-k", "k.npy", "--to", "3"],
         "attend": ["attend", "llama.json", "q.npy", "k.npy", "k.npy"],
         "extend": ["extend", "llama.json", "--length", "8192"],
         "plot svg": ["plot", "slopes", "--format", "svg"],
         "plot csv": ["plot", "waves", "--format", "csv"],
         "plot text": ["plot", "mrope", "--format", "text"]}

# Output that is more than one file, or a file that must not be a device: arguments, and
# what appears.
APPLY = ["apply", "llama.json", "--q", "q.npy", "--k", "k.npy", "-o", "made"]
CONVERT = ["--config", "llama.json", "--to", "interleaved", "-o"]
PARTS = {"apply": (APPLY, ["made/q.npy", "made/k.npy"]),
         "apply x": (["apply", "gpt2.json", "--x", "x.npy", "--table", "rows.npy", "-o",
                      "made"], ["made/x.npy"]),
         "attend scores": (["attend", "llama.json", "q.npy", "k.npy", "k.npy", "-o",
                            "/dev/null", "--scores", "p.npy"], ["p.npy"]),
         "convert": (["convert", "w.safetensors", *CONVERT, "made.safetensors"],
                     ["made.safetensors"]),
         "convert shards": (["convert", "shards", *CONVERT, "made"],
                            ["made/a.safetensors", "made/b.safetensors",
                             "made/config.json"])}

# These report on standard output, too.
TALKERS = {"compare": ["compare"],
           "bench": ["bench", "--quick", "--rows", "rope-row.f32.half.1"]}

# More than a pipe holds; verbs that print less cannot be cut off by a reader.
LONG = {"table": ["table", "llama.json", "-p", "0:100000"],
        "table json": ["table", "llama.json", "-p", "0:9000", "--json"],
        "table npy": ["table", "llama.json", "-p", "0:100000", "-o", "-"],
        "plot": ["plot", "decay", "-p", "0:100000", "--format", "csv"]}

PRINTED = [["--help"], ["--version"], ["help", "plot"], ["presets"],
           ["presets", "--json"], ["inspect", "llama.json"],
           ["inspect", "llama.json", "--json"], ["freqs", "llama.json"],
           ["slopes", "8"], ["slopes", "8", "--json"], ["plot", "slopes"],
           ["positions", "grid", "--grid", "4x6"], ["lesson"], ["cpu"],
           ["table", "llama.json", "-p", "0:3"], ["lab", "--help"],
           ["lab", "train", "--help"], ["lab", "inspect", "lab/rope-seed0"],
           ["lab", "inspect", "lab/rope-seed0", "--json"]]


class Checker:
    def __init__(self, posenc, folder):
        self.posenc, self.folder = posenc, folder
        self.count = self.failed = 0

    def report(self, name, problem):
        self.count += 1
        if problem:
            self.failed += 1
            print(f"{name}: {problem}")

    def run(self, arguments, **keywords):
        keywords.setdefault("stdout", subprocess.DEVNULL)
        return subprocess.run([self.posenc, *arguments], cwd=self.folder, timeout=120,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              **keywords)

    def names(self):
        return sorted(os.listdir(self.folder))

    def full_disk(self, name, arguments):
        """A file size limit: the old file stays, and no other appears."""
        path = f"{self.folder}/out.bin"
        with open(path, "wb") as file:
            file.write(OLD)
        before = self.names()
        done = self.run([*arguments, "-o", "out.bin"], preexec_fn=lambda:
                        resource.setrlimit(resource.RLIMIT_FSIZE,
                                           (100, resource.RLIM_INFINITY)))
        with open(path, "rb") as file:
            kept = file.read() == OLD
        problem = None
        if done.returncode != 1 or not re.fullmatch(
                rb"posenc: [a-z]+: out\.bin could not be written: File too large\n",
                done.stderr):
            problem = f"exit code {done.returncode}, {done.stderr}"
        if not kept or self.names() != before:
            problem = f"out.bin was {'kept' if kept else 'lost'}, left {self.names()}"
        self.report(f"full disk: {name}", problem)

    def full_parts(self, name, arguments, outputs):
        """All of the outputs, or none and no folder for them either."""
        before = self.names()
        done = self.run(arguments, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY)))
        problem = None
        if done.returncode != 1 or not re.fullmatch(
                rb"posenc: [a-z]+: [a-z/.]+ could not be written: File too large\n",
                done.stderr):
            problem = f"exit code {done.returncode}, {done.stderr}"
        if self.names() != before:
            problem = f"left {self.names()}"
        self.report(f"full disk: {name}", problem)
        done = self.run(arguments)
        new = [path for path in outputs if os.path.getsize(f"{self.folder}/{path}")]
        problem = done.returncode or new != outputs
        for path in set(self.names()) - set(before):
            shutil.rmtree(f"{self.folder}/{path}", ignore_errors=True)
            if os.path.isfile(f"{self.folder}/{path}"):
                os.remove(f"{self.folder}/{path}")
        self.report(f"written: {name}", problem and f"{new}, {done.stderr}")

    def refused_device(self, arguments):
        done = self.run([*arguments, "/dev/full"])
        self.report("device: convert", None if done.returncode == 1 and done.stderr ==
                    b"posenc: convert: --output is /dev/full, must be a file\n"
                    else f"exit code {done.returncode}, {done.stderr}")

    def written(self, name, arguments):
        """The same command as a file and through standard output."""
        done = self.run([*arguments, "-o", "out.bin"])
        piped = self.run([*arguments, "-o", "-"], stdout=subprocess.PIPE)
        with open(f"{self.folder}/out.bin", "rb") as file:
            same = file.read() == piped.stdout
        self.report(f"written: {name}", None if done.returncode == piped.returncode == 0
                    and same and piped.stdout else f"{done.stderr}, {piped.stderr}")

    def device(self, name, arguments):
        """A device stays one."""
        done = self.run([*arguments, "-o", "/dev/full"])
        is_device = os.path.exists("/dev/full") and not os.path.isfile("/dev/full")
        self.report(f"device: {name}", None if done.returncode == 1 and is_device
                    and b"No space left" in done.stderr
                    else f"exit code {done.returncode}, {done.stderr}")

    def reader_gone(self, name, arguments):
        """A reader that leaves after a few bytes: exit code 1, nothing said."""
        child = subprocess.Popen([self.posenc, *arguments], cwd=self.folder,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdout.read(10)
        child.stdout.close()
        said = child.stderr.read()
        child.stderr.close()
        code = child.wait()
        self.report(f"reader gone: {name}", None if code == 1 and not said
                    else f"exit code {code}, {said}")

    def no_space(self, arguments):
        name = " ".join(arguments)
        with open("/dev/full", "wb") as full:
            done = self.run(arguments, stdout=full)
        self.report(f"no space: {name}", None if done.returncode == 1 and re.fullmatch(
            rb"posenc: ([a-z ]+: )?standard output could not be written: No space left "
            rb"on device\n", done.stderr) else f"{done.returncode}, {done.stderr}")
        done = self.run(arguments, preexec_fn=lambda: os.close(1))
        self.report(f"closed: {name}", None if done.returncode == 1 and re.fullmatch(
            rb"posenc: ([a-z ]+: )?standard output could not be written: Bad file "
            rb"descriptor\n", done.stderr) else f"{done.returncode}, {done.stderr}")

    def stop(self, arguments, number, when):
        """Sends the signal when(names) says so.  The exit code and what was said."""
        child = subprocess.Popen([self.posenc, *arguments], cwd=self.folder,
                                 stderr=subprocess.PIPE)
        for _ in range(20000):
            if when(self.names()) or child.poll() is not None:
                break
            time.sleep(0.001)
        child.send_signal(number)
        said = child.stderr.read()
        child.stderr.close()
        return child.wait(), said

    def signals(self, name, arguments, number, tries=1):
        """Stopped while writing: dies by the signal, and only the old file is left.  What
        is written quickly is tried until the signal comes in time."""
        path = f"{self.folder}/out.bin"
        for _ in range(tries):
            with open(path, "wb") as file:
                file.write(OLD)
            before = self.names()
            code, said = self.stop([*arguments, "-o", "out.bin"], number,
                                   lambda names: len(names) > len(before))
            if code != 0:
                break
        with open(path, "rb") as file:
            kept = file.read() == OLD
        problem = None
        if code != -number or said or not kept or self.names() != before:
            problem = f"exit code {code}, {said}, left {self.names()}"
        self.report(f"{signal.Signals(number).name}: {name}", problem)

    def signals_parts(self, name, arguments, number):
        """Stopped while writing into a folder of its own: that goes, too."""
        before = self.names()
        made = f"{self.folder}/made"
        code, said = self.stop(arguments, number, lambda names: "made" in names and
                               bool(os.listdir(made)))
        left = self.names()
        problem = None
        if code != -number or said or left != before:
            problem = f"exit code {code}, {said}, left {left}"
        self.report(f"{signal.Signals(number).name}: {name}", problem)


def sparse(path, seq_len, num_heads):
    """Zeros, in a file without blocks."""
    with open(path, "wb") as file:
        file.write(npy.header("<f4", (1, seq_len, num_heads, 16)))
        file.truncate(file.tell() + seq_len * num_heads * 16 * 4)


def sparse_weights(path, columns):
    """The q of a layer of llama.json, of so many columns, in a file without blocks."""
    size = 96 * columns * 4
    text = json.dumps({"model.layers.0.self_attn.q_proj.weight": {
        "dtype": "F32", "shape": [96, columns], "data_offsets": [0, size]}}).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(file.tell() + size)


def make_shards(folder):
    os.mkdir(f"{folder}/shards")
    for name in ("a", "b"):
        shutil.copy(f"{folder}/w.safetensors", f"{folder}/shards/{name}.safetensors")
    shutil.copy(f"{folder}/llama.json", f"{folder}/shards/config.json")


def run(posenc, folder):
    check = Checker(posenc, folder)
    for name, arguments in FILES.items():
        check.written(name, arguments)
        check.full_disk(name, arguments)
        check.device(name, arguments)
    for name, arguments in TALKERS.items():
        check.full_disk(name, arguments)
        check.device(name, arguments)
    for name, arguments in LONG.items():
        check.reader_gone(name, arguments)
    for arguments in PRINTED:
        check.no_space(arguments)
    make_shards(folder)
    for name, (arguments, outputs) in PARTS.items():
        check.full_parts(name, arguments, outputs)
    check.refused_device(["convert", "w.safetensors", *CONVERT])
    sparse(f"{folder}/large.npy", 1 << 26, 2)
    sparse(f"{folder}/queries.npy", 1 << 17, 6)
    sparse(f"{folder}/cache.npy", 1 << 17, 2)
    os.mkdir(f"{folder}/heap")
    sparse_weights(f"{folder}/heap/large.safetensors", 1 << 25)
    endless = {"table": ["table", "llama.json", "-p", "0:100000000"],
               "shift": ["shift", "llama.json", "-k", "large.npy", "--by", "3"],
               "rebase": ["rebase", "llama.json", "-k", "large.npy", "--to", "3"],
               "convert": ["convert", "heap/large.safetensors", *CONVERT[:-1]]}
    attend = ["attend", "llama.json", "queries.npy", "cache.npy", "cache.npy",
              "--window", "1"]
    apply = ["apply", "llama.json", "--k", "large.npy", "-o", "made"]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for name, arguments in endless.items():
            check.signals(name, arguments, number)
        check.signals("attend", attend, number, tries=50)
        check.signals_parts("apply", apply, number)
        check.signals_parts("convert folder", ["convert", "heap", *CONVERT, "made"],
                            number)
    return check.count, check.failed
