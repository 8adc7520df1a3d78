# SPDX-License-Identifier: MIT
#
# hostile_check.py - names that would act on a terminal come out escaped
#
# Strings of configurations, GGUF, safetensors and npy headers, names of files and words
# of the command line, through every verb that may repeat them: no control character, no
# character that turns the direction of writing, and nothing that is not UTF-8.
import json
import os
import shutil
import struct
import subprocess
import unicodedata

import npy

# Overrides and isolates, marks, C0 with a newline, DEL, C1; not UTF-8 in the last.
EVIL = "e\u202e\u2066x\u200e\u200f\x1b[31m\x07\r\n\x7f\x9b\u2028\ufeffz"
STRAY = EVIL.encode() + b"\xff\xc3("
UNSAFE = {"Cc", "Cf", "Zl", "Zp", "Cs"}


def unsafe_in(data):
    try:
        text = data.decode()
    except UnicodeDecodeError as problem:
        return str(problem)
    found = {c for c in text if c != "\n" and unicodedata.category(c) in UNSAFE}
    return f"has {sorted(map(ascii, found))}" if found else None


class Checker:
    def __init__(self, posenc, folder):
        self.posenc, self.folder = posenc, folder
        self.count = self.failed = 0
        self.seen = b""

    def run(self, *arguments, wanted=None):
        """wanted: what has to be there, to be sure that the name was repeated."""
        done = subprocess.run([self.posenc, *arguments], cwd=self.folder, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True)
        out = done.stdout + done.stderr
        problem = unsafe_in(out)
        if done.returncode < 0 or done.returncode > 2:
            problem = f"exit code {done.returncode}"
        if wanted is not None and wanted not in out:
            problem = f"{wanted} is not in {out[:500]}"
        if done.stderr.count(b"\n") > 1 and b"posenc: " in done.stderr.split(b"\n")[0] \
                and done.returncode:
            problem = f"more than one line: {done.stderr}"
        self.count += 1
        if problem:
            self.failed += 1
            print(f"hostile: {arguments!r}: {problem}")


def models(check, model):
    """Every verb that reads a model."""
    check.run("inspect", model)
    check.run("inspect", model, "--json")
    check.run("inspect", model, "--layers")
    check.run("freqs", model)
    check.run("freqs", model, "--json")
    check.run("diff", model, "llama.json")
    check.run("diff", "llama.json", model, "--json")
    check.run("extend", model, "--length", "8192")
    check.run("extend", model, "--length", "8192", "--json")
    check.run("table", model, "-p", "0:2")
    check.run("slopes", model)
    check.run("bias", model)
    check.run("plot", "decay", "--model", model, "--format", "text")
    check.run("plot", "decay", "--model", model, "--format", "svg")
    check.run("apply", model, "--q", "q.npy", "-o", "out")
    check.run("attend", model, "q.npy", "k.npy", "k.npy", "-o", "o.npy")
    check.run("shift", model, "-k", "k.npy", "--by", "1", "-o", "o.npy")
    check.run("convert", "w.safetensors", "--config", model, "--to", "interleaved", "-n")


def configs(check):
    base = {"model_type": "llama", "head_dim": 16, "num_attention_heads": 6,
            "num_key_value_heads": 2, "num_hidden_layers": 2, "rope_theta": 10000.0,
            "max_position_embeddings": 2048}
    changes = [{"model_type": EVIL}, {"rope_theta": EVIL}, {EVIL: 1},
               {"rope_scaling": {"rope_type": EVIL, "factor": 2.0}},
               {"rope_scaling": {"rope_type": "yarn", "factor": 2.0, EVIL: EVIL}},
               {"rope_scaling": EVIL}, {"layer_types": [EVIL, "full_attention"]},
               {"architectures": [EVIL], "_name_or_path": EVIL},
               {"head_dim": EVIL}, {"position_embedding_type": EVIL},
               {"text_config": {"model_type": EVIL}}, {"rope_parameters": {EVIL: EVIL}}]
    for i, change in enumerate(changes):
        with open(f"{check.folder}/evil{i}.json", "w", encoding="utf-8") as file:
            json.dump({**base, **change}, file, ensure_ascii=False)
        models(check, f"evil{i}.json")
    with open(f"{check.folder}/stray.json", "wb") as file:
        file.write(json.dumps({**base, "model_type": "?"}).encode().replace(b"?", STRAY))
    models(check, "stray.json")
    with open(f"{check.folder}/syntax.json", "wb") as file:
        file.write(b'{"model_type": ' + STRAY)
    models(check, "syntax.json")
    # The name is repeated, so that all of this is a test.
    check.run("inspect", "evil0.json", wanted=rb"e\u202e\u2066x\u200e\u200f\x1b[31m")
    check.run("inspect", "evil1.json", wanted=rb"\u202e")


def gguf(check):
    def text(value):
        return struct.pack("<Q", len(value)) + value

    def number(value):
        return 4, struct.pack("<I", value)

    for i, (arch, key, tensor) in enumerate(((STRAY, b"x", b"t"), (b"llama", STRAY, b"t"),
                                             (b"llama", b"x", STRAY))):
        settings = [(b"general.architecture", (8, text(arch))), (key, (8, text(STRAY))),
                    (b"general.name", (8, text(STRAY))),
                    (arch + b".block_count", number(4)),
                    (arch + b".embedding_length", number(96)),
                    (arch + b".attention.head_count", number(6)),
                    (arch + b".rope.scaling.type", (8, text(STRAY)))]
        whole = b"GGUF" + struct.pack("<IQQ", 3, 1, len(settings))
        for name, (kind, value) in settings:
            whole += text(name) + struct.pack("<I", kind) + value
        whole += text(tensor) + struct.pack("<IQIQ", 1, 8, 0, 0)
        for name, data in ((f"evil{i}.gguf", whole), (f"cut{i}.gguf", whole[:-3])):
            with open(f"{check.folder}/{name}", "wb") as file:
                file.write(data + bytes(-len(data) % 32) + bytes(32))
            models(check, name)


def weights(check):
    """The names and types of tensors."""
    good = {"dtype": "F32", "shape": [96, 3], "data_offsets": [0, 1152]}
    headers = [{f"layers.0.{EVIL}.self_attn.q_proj.weight": good, "__metadata__":
                {EVIL: EVIL}}, {"q_proj.weight": {**good, "dtype": EVIL}},
               {f"{EVIL}.q_proj.weight": {**good, "shape": [90, 3]}},
               {f"{EVIL}.q_proj.qweight": good}, {f"{EVIL}.q_proj.lora_A.weight": good},
               {f"{EVIL}.q_proj.weight": {**good, EVIL: EVIL}}]
    for i, header in enumerate(headers):
        data = json.dumps(header, ensure_ascii=False).encode()
        with open(f"{check.folder}/evil{i}.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(data)) + data + bytes(1152))
        name = f"evil{i}.safetensors"
        for options in (["-n"], ["-n", "--list"], ["-n", "--json"], ["-o", "out.st"]):
            check.run("convert", name, "--config", "llama.json", "--to", "interleaved",
                      *options)
        check.run("identify", "--weights", name, "w.safetensors")
        check.run("identify", "--weights", "w.safetensors", name, "--json")
    check.run("convert", "evil0.safetensors", "--config", "llama.json", "--to",
              "interleaved", "-n", wanted=rb"layers.0.e\u202e")


def arrays(check):
    text = f"{{'descr': '<f4{EVIL}', 'fortran_order': False, 'shape': (5, 16), }}"
    data = text.encode() + b" " * 200 + b"\n"
    with open(f"{check.folder}/evil.npy", "wb") as file:
        file.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", len(data)) + data + bytes(320))
    check.run("apply", "llama.json", "--q", "evil.npy", "-o", "out")
    check.run("table", "gpt2.json", "--table", "evil.npy", "-p", "0:2")
    check.run("attend", "llama.json", "evil.npy", "k.npy", "k.npy", "-o", "o.npy")
    check.run("shift", "llama.json", "-k", "evil.npy", "--by", "1", "-o", "o.npy")
    check.run("compare", "--q", "evil.npy")
    check.run("identify", "evil.npy", "q.npy")


def names(check):
    """Files by such a name, and words of the command line."""
    evil = EVIL.replace("/", "")
    shutil.copy(f"{check.folder}/llama.json", f"{check.folder}/{evil}")
    models(check, evil)
    models(check, f"missing{evil}.json")
    check.run("inspect", evil, wanted=rb"e\u202e\u2066x")
    shutil.copy(f"{check.folder}/q.npy", f"{check.folder}/{evil}.npy")
    check.run("apply", "llama.json", "--q", f"{evil}.npy", "-o", evil + "d")
    check.run("apply", "llama.json", "--q", "q.npy", "-o", f"no/{evil}")
    check.run("attend", "llama.json", f"{evil}.npy", "k.npy", "k.npy", "-o", evil + "o")
    check.run("attend", "llama.json", f"{evil}.npy", "k_short.npy", "k.npy", "-o", "o")
    check.run("shift", "llama.json", "-k", "k.npy", "--by", "1", "-o", evil + "s")
    check.run("plot", "slopes", "-o", evil)
    check.run("plot", evil)
    check.run("convert", "w.safetensors", "--config", "llama.json", "--to",
              "interleaved", "-o", evil + "w")
    check.run(evil)
    check.run("help", evil)
    check.run("inspect", f"--{evil}")
    check.run("inspect", "llama.json", f"--seq-len={evil}")
    check.run("lesson", evil)
    check.run("lesson", "--lang", evil)
    check.run("positions", evil)
    check.run("positions", "mask", "--mask", evil)
    check.run("slopes", evil)
    check.run("extend", "llama.json", "--length", "8192", "--method", evil)


def run(posenc, folder):
    check = Checker(posenc, folder)
    for part in (configs, gguf, weights, arrays, names):
        part(check)
    assert os.path.exists(f"{folder}/llama.json")
    return check.count, check.failed
