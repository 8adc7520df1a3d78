#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# model_files.py POSENC FOLDER MIB PAIRS - inspect of 40 GB, convert against cp, as JSON
#
# The 40 GB are holes: only headers are there, and only they may be touched.  convert
# and cp run in turns on MIB MiB, both from the page cache.
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys


# In a small process of its own: a child's peak counts that of its parent.
MEASURE = """
import os, subprocess, sys, time
begin = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print((time.perf_counter() - begin) * 1e3, usage.ru_maxrss / 1024, status)
"""


def run(command):
    """Milliseconds and peak MiB."""
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, *command],
                          stdout=subprocess.PIPE, check=True, text=True)
    took, peak, status = map(float, done.stdout.split())
    if status != 0:
        sys.exit(f"{command} failed")
    return took, peak


def text(value):
    return struct.pack("<Q", len(value)) + value


def sparse_gguf(path):
    """80 layers of 8192 in Q4_K and a vocabulary of 128,256 with its merges."""
    key = b"llama."
    settings = [(b"general.architecture", 8, text(b"llama"))]
    for name, value in ((b"block_count", 80), (b"context_length", 131072),
                        (b"embedding_length", 8192), (b"attention.head_count", 64),
                        (b"attention.head_count_kv", 8)):
        settings.append((key + name, 4, struct.pack("<I", value)))
    settings.append((key + b"rope.freq_base", 6, struct.pack("<f", 5e5)))
    for name, count in ((b"tokens", 128256), (b"merges", 280147)):
        words = b"".join(text(b"word%06d" % i) for i in range(count))
        settings.append((b"tokenizer.ggml." + name, 9,
                         struct.pack("<IQ", 8, count) + words))
    settings.append((b"tokenizer.ggml.token_type", 9,
                     struct.pack("<IQ", 5, 128256) + struct.pack("<i", 1) * 128256))
    directory, offset, count = b"", 0, 0
    for layer in range(80):
        for name, rows, columns in (("attn_q", 8192, 8192), ("attn_k", 1024, 8192),
                                    ("attn_v", 1024, 8192), ("attn_output", 8192, 8192),
                                    ("ffn_gate", 28672, 8192), ("ffn_up", 28672, 8192),
                                    ("ffn_down", 8192, 28672)):
            directory += text(b"blk.%d.%s.weight" % (layer, name.encode()))
            directory += struct.pack("<IQQIQ", 2, columns, rows, 12, offset)
            offset += rows * columns // 256 * 144
            count += 1
    header = b"GGUF" + struct.pack("<IQQ", 3, count, len(settings))
    for name, kind, value in settings:
        header += text(name) + struct.pack("<I", kind) + value
    header += directory
    header += bytes(-len(header) % 32)
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(len(header) + offset)


def safetensors(path, tensors, is_sparse):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors:
        size = 2 * shape[0] * shape[1]
        header[name] = {"dtype": "BF16", "shape": shape,
                        "data_offsets": [offset, offset + size]}
        offset += size
    body = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(body)) + body)
        if is_sparse:
            file.truncate(8 + len(body) + offset)
            return
        piece = os.urandom(1 << 20)
        for at in range(0, offset, len(piece)):
            file.write(piece[:min(len(piece), offset - at)])


def config(path, **more):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"model_type": "llama", "hidden_size": 2048, "num_attention_heads": 16,
                   "num_key_value_heads": 4, "num_hidden_layers": 80, "rope_theta": 5e5,
                   "max_position_embeddings": 131072, **more}, file)


def sparse_shards(folder):
    """30 shards of 1,000 experts' matrices each."""
    os.mkdir(folder)
    config(f"{folder}/config.json")
    names = {}
    for shard in range(30):
        tensors = [(f"model.layers.{shard}.mlp.experts.{i}.up_proj.weight", [680, 1024])
                   for i in range(1000)]
        file = f"model-{shard + 1:05}-of-00030.safetensors"
        safetensors(f"{folder}/{file}", tensors, True)
        names.update({name: file for name, _ in tensors})
    with open(f"{folder}/model.safetensors.index.json", "w", encoding="utf-8") as file:
        json.dump({"metadata": {}, "weight_map": names}, file)


def layers(mib):
    """Llama matrices, 82 MiB a layer."""
    for layer in range(max(1, mib // 82)):
        base = f"model.layers.{layer}"
        for name, rows, columns in (
                ("self_attn.q_proj", 2048, 2048), ("self_attn.k_proj", 512, 2048),
                ("self_attn.v_proj", 512, 2048), ("self_attn.o_proj", 2048, 2048),
                ("mlp.gate_proj", 5632, 2048), ("mlp.up_proj", 5632, 2048),
                ("mlp.down_proj", 2048, 5632)):
            yield f"{base}.{name}.weight", [rows, columns]


def main():
    posenc, folder, mib, pairs = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
    folder = f"{folder}/model-files-{os.getpid()}"
    os.makedirs(folder)
    goals = []

    def goal(name, wanted, got):
        goals.append({"id": name, "goal": wanted, "got": got, "met": got >= wanted})

    try:
        sparse_gguf(f"{folder}/sparse.gguf")
        sparse_shards(f"{folder}/shards")
        for name, model in (("GGUF", "sparse.gguf"), ("30 shards", "shards")):
            runs = [run([posenc, "inspect", f"{folder}/{model}"]) for _ in range(9)]
            goal(f"inspect 40 GB {name}, 50 ms over it", 1.0,
                 50 / statistics.median(r[0] for r in runs))
            goal(f"inspect 40 GB {name} memory, 32 MiB over it", 1.0,
                 32 / max(r[1] for r in runs))
        config(f"{folder}/c.json")
        source, target = f"{folder}/in.safetensors", f"{folder}/out.safetensors"
        safetensors(source, list(layers(mib)), False)
        copy = ["cp", "--reflink=never", source, target]
        convert = [posenc, "convert", source, "--config", f"{folder}/c.json", "--to",
                   "interleaved", "-o", target]
        ratios, peaks = [], []
        for _ in range(pairs + 1):
            times = []
            for command in (copy, convert):
                if os.path.exists(target):
                    os.remove(target)
                took, peak = run(command)
                times.append(took)
            ratios.append(times[0] / times[1])
            peaks.append(peak)
        # The first pair warms the cache.
        goal(f"convert {mib} MiB vs cp", 0.8, statistics.median(ratios[1:]))
        goal(f"convert {mib} MiB memory, 64 MiB over it", 1.0, 64 / max(peaks))
    finally:
        shutil.rmtree(folder)
    print(json.dumps(goals))


main()
