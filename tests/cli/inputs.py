# SPDX-License-Identifier: MIT
#
# inputs.py - the files that the transcripts' commands read
#
# q.npy and k.npy fit llama.json (head_dim 16, 6 heads, 2 for keys): batch 2, 5 tokens.
import json
import os
import random
import shutil
import struct

import npy
import safetensors


def make(folder, data):
    shutil.copytree(data, folder, dirs_exist_ok=True)
    rng = random.Random(5)

    def values(shape):
        return [rng.uniform(-2, 2) for _ in range(npy.product(shape))]

    def write(name, descr, shape):
        npy.write(f"{folder}/{name}", descr, shape, values(shape))

    write("q.npy", "<f4", (2, 5, 6, 16))
    write("k.npy", "<f4", (2, 5, 2, 16))
    write("q_bhsd.npy", "<f4", (2, 6, 5, 16))
    write("q_half.npy", "<f2", (5, 6, 16))
    write("q_narrow.npy", "<f4", (2, 5, 6, 8))
    write("q_five.npy", "<f4", (1, 1, 5, 6, 16))
    write("q_double.npy", "<f8", (5, 16))
    write("k_short.npy", "<f4", (2, 4, 2, 16))
    bits = [npy.bf16_bits(v) for v in values((5, 16))]
    npy.write(f"{folder}/q_bf16.npy", "<u2", (5, 16), bits)
    npy.write(f"{folder}/ids.npy", "<i8", (5,), [7, 8, 9, 0, 1])
    npy.write(f"{folder}/ids_rows.npy", "<i4", (2, 5), [0, 1, 2, 3, 4, 9, 8, 7, 6, 5])
    npy.write(f"{folder}/ids_long.npy", "<i8", (6,), range(6))
    npy.write(f"{folder}/ids_float.npy", "<f4", (5,), range(5))
    npy.write(f"{folder}/q_none.npy", "<f4", (2**40, 0, 6, 16), [])
    npy.write(f"{folder}/q_no_batch.npy", "<f4", (0, 5, 6, 16), [])
    npy.write(f"{folder}/ids_none.npy", "<i8", (2**20, 2**20, 0), [])
    # x.npy and rows.npy fit gpt2.json (model_dim 48, 1024 rows).
    write("x.npy", "<f4", (2, 5, 48))
    write("x_half.npy", "<f2", (5, 48))
    write("x_narrow.npy", "<f4", (2, 5, 47))
    write("rows.npy", "<f4", (1024, 48))
    write("rows_few.npy", "<f4", (7, 48))
    write("rows_narrow.npy", "<f4", (1024, 47))
    write("rows_cube.npy", "<f4", (2, 4, 48))
    with open(f"{folder}/q.npy", "rb") as file:
        whole = file.read()
    with open(f"{folder}/q_cut.npy", "wb") as file:
        file.write(whole[:-7])
    with open(f"{folder}/broken.json", "w", encoding="utf-8") as file:
        file.write('{"model_type": "llama", "head_dim": 16,')
    make_weights(folder, rng)
    make_gpt2(folder, rng)
    make_gguf(folder)
    make_lab(folder)
    make_results(folder)


def make_gguf(folder):
    """llama.json once more, as GGUF: interleaved; llama.gguf with rope_freqs."""
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    settings = [("general.architecture", 8, text("llama")),
                ("llama.block_count", 4, struct.pack("<I", 4)),
                ("llama.context_length", 4, struct.pack("<I", 2048)),
                ("llama.embedding_length", 4, struct.pack("<I", 96)),
                ("llama.attention.head_count", 4, struct.pack("<I", 6)),
                ("llama.attention.head_count_kv", 4, struct.pack("<I", 2)),
                ("llama.rope.freq_base", 6, struct.pack("<f", 10000))]
    pairs = b"".join(text(key) + struct.pack("<I", kind) + value
                     for key, kind, value in settings)
    with open(f"{folder}/plain.gguf", "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(settings)) + pairs)
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, len(settings)) + pairs
    header += text("rope_freqs.weight") + struct.pack("<IQIQ", 1, 8, 0, 0)
    whole = header + bytes(-len(header) % 32) + struct.pack("<8f", *[1] * 4 + [8] * 4)
    with open(f"{folder}/llama.gguf", "wb") as file:
        file.write(whole)
    with open(f"{folder}/cut.gguf", "wb") as file:
        file.write(whole[:100])


def make_gpt2(folder, rng):
    """gpt2.json with its weights, whose table is rows.npy, and a tensor named other."""
    os.mkdir(f"{folder}/gpt2")
    shutil.copy(f"{folder}/gpt2.json", f"{folder}/gpt2/config.json")
    path = f"{folder}/gpt2/model.safetensors"
    safetensors.write(path, [("wpe.weight", "F32", (1024, 48)), ("h.0", "F32", (48,)),
                             ("other", "BF16", (9, 48))], None, rng)
    header, data = safetensors.read(path)
    rows = npy.read(f"{folder}/rows.npy")[2]
    data["wpe.weight"] = struct.pack(f"<{len(rows)}f", *rows)
    data["other"] = bytes(9 * 48 * 2)
    with open(path, "wb") as file:
        file.write(header + b"".join(data.values()))


def make_weights(folder, rng):
    """Weights of llama.json's shape (6 heads of 16, 2 for keys), right and wrong."""
    layer = "model.layers.0.self_attn."
    good = [(layer + "q_proj.weight", "F32", (96, 3)),
            (layer + "k_proj.weight", "F32", (32, 3)),
            (layer + "v_proj.weight", "F32", (32, 3))]

    def write(name, tensors):
        safetensors.write(f"{folder}/{name}.safetensors", tensors, {"format": "pt"}, rng)

    write("w", good)
    write("lora", [(layer + "q_proj.lora_A.weight", "F32", (4, 96)),
                   (layer + "q_proj.lora_B.weight", "F32", (96, 4))])
    write("w_other", [("embed", "F32", (7, 3))])
    write("w_narrow", [(layer + "q_proj.weight", "F32", (90, 3))])
    write("w_kv", [(layer + "k_proj.weight", "F32", (96, 3))])
    write("w_kv_noise", [(layer + "k_proj.weight", "F32", (96, 3))])
    write("w_packed", [(layer + "q_proj.qweight", "I64", (12, 96))])
    write("w_fused", [("h.0.attn.c_attn.weight", "F32", (160, 3))])
    with open(f"{folder}/w.safetensors", "rb") as file:
        whole = file.read()
    with open(f"{folder}/w_cut.safetensors", "wb") as file:
        file.write(whole[:-5])


def make_lab(folder):
    """lab/rope-seed0, a run of one layer that was stopped: the values of each tensor are
    a ramp from -1 to 1, of second moments from 0 to 2."""
    names = {"e": (256, 4), "b.0.n1.g": (4,), "b.0.qkv": (12, 4), "b.0.o": (4, 4),
             "b.0.n2.g": (4,), "b.0.f1": (16, 4), "b.0.f2": (4, 16), "n.g": (4,),
             "u": (256, 4)}
    metadata = {"format": "posenc.lab/1", "input": "none", "layers": "rope",
                "width": "4", "heads": "1", "length": "8", "batch": "2", "steps": "100",
                "warmup": "10", "learn_slopes": "0", "peak_rate": "0.002",
                "weight_decay": "0.1", "clip": "1", "seed": "0", "extension": "base",
                "first_length": "0", "step": "40", "loss_average": "3.25",
                "corpus_sha256": "0123456789abcdef" * 4}
    header, data = {"__metadata__": metadata}, b""
    for name, shape in names.items():
        count = npy.product(shape)
        for kind in "wmv":
            low = 0 if kind == "v" else -1
            values = struct.pack(f"<{count}f", *(low + 2 * i / (count - 1)
                                                 for i in range(count)))
            header[f"{kind}.{name}"] = {"dtype": "F32", "shape": list(shape),
                                        "data_offsets": [len(data), len(data) + len(values)]}
            data += values
    text = json.dumps(header).encode()
    os.makedirs(f"{folder}/lab/rope-seed0")
    with open(f"{folder}/lab/rope-seed0/checkpoint.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def make_results(folder):
    """results/METHOD-seedN, results of runs that never were: the loss of rope grows by half
    for each doubling, that of alibi falls by a hundredth; seeds lie 0.1 apart.
    other/rope-seed0 was trained with another width, twice/sin-seed0 on 128 tokens."""
    settings = {"layers": 2, "width": 64, "heads": 4, "length": 64, "first_length": 0,
                "batch": 32, "steps": 600, "warmup": 100, "peak_rate": 0.003,
                "weight_decay": 0.1, "clip": 1, "text": "kjv",
                "text_sha256": "0123456789abcdef" * 4, "eval_tokens": 32768,
                "slide_tokens": 4096, "slide_from": 4, "version": "0.1.0"}
    modes = {"rope": {"base": 0.5, "ntk": 0.25, "window": -0.03125},
             "alibi": {"base": -0.015625}}
    for method, seed in (("rope", 0), ("rope", 1), ("alibi", 0), ("alibi", 1)):
        results, run = [], {"method": method, "seed": seed}
        for mode, slope in modes[method].items():
            for doublings in range(0 if mode == "base" else 1, 3):
                multiple, nll = 2**doublings, 1.25 + slope * doublings + 0.125 * seed
                results.append({**run, "mode": mode, "multiple": multiple,
                                "windows": "nonoverlap", "nll": nll,
                                "by_position": [1.25 + slope * (block > 0)
                                                for block in range(multiple)]})
                if mode == "base":
                    results.append({**run, "mode": mode, "multiple": multiple,
                                    "windows": "slide", "nll": nll - 0.0625})
        timing = [{**run, "what": what, "multiple": multiple, "tokens": 1000000,
                   "seconds": 12.5 * multiple, "memory": multiple << 24, "threads": 2,
                   "isa": "avx2", "blas": "OpenBLAS"}
                  for what in ("step", "eval") for multiple in (1, 2)]
        whole = {"schema": "posenc.lab/1", "settings": settings, "results": results,
                 "timing": timing}
        write_json(f"{folder}/results/{method}-seed{seed}", whole)
        if (method, seed) == ("rope", 0):
            wider = {**whole, "settings": {**settings, "width": 96}}
            write_json(f"{folder}/other/rope-seed0", wider)
            longer = {**settings, "length": 128, "batch": 16}
            text = json.dumps({**whole, "settings": longer}).replace("rope", "sin")
            write_json(f"{folder}/twice/sin-seed0", json.loads(text))


def write_json(folder, value):
    os.makedirs(folder)
    with open(f"{folder}/results.json", "w", encoding="utf-8") as file:
        json.dump(value, file)
