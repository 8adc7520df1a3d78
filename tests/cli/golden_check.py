# SPDX-License-Identifier: MIT
#
# golden_check.py - golden q and k through config.json files and the command
#
# The cases of rope_apply.json whose model a config.json can describe.  Expected values
# are exact; a float result may be off by four roundings of numbers that are at most 1.
import json
import os
import subprocess

import npy

BOUND = 4 * 2**-24


def generate(record):
    """The generator "golden_hash", described in tests/data/vectors/README.md."""
    values = []
    for i in range(npy.product(record["shape"])):
        h = (record["start"] + i) * 2654435761 % 2**32
        values.append(record["scale"] * ((h >> 8) / 2**24 - 0.5))
    return values


def config_of(spec):
    """A config.json, or None where the case is no whole model."""
    heads, dim = spec["q_heads"], spec["head_dim"]
    config = {"hidden_size": heads * dim, "num_hidden_layers": 1, "head_dim": dim,
              "num_attention_heads": heads, "num_key_value_heads": spec["kv_heads"],
              "max_position_embeddings": spec["max_position_embeddings"],
              "rope_theta": spec["theta"], "model_type": spec["reference"]}
    if spec["scaling"]["rope_type"] != "default":
        config["rope_scaling"] = spec["scaling"]
    part = spec["rotary_dim"] / dim
    match spec["reference"]:
        case "gptj":
            return {"model_type": "gptj", "n_embd": heads * dim, "n_layer": 1,
                    "n_head": heads, "n_positions": spec["max_position_embeddings"],
                    "rotary_dim": spec["rotary_dim"]}
        case "gpt_neox":
            return config | {"rotary_pct": part, "rotary_emb_base": spec["theta"]}
        case "glm" | "phi3":
            scaling = spec["scaling"]
            original = scaling.get("original_max_position_embeddings")
            return config | {"partial_rotary_factor": part} | (
                {"original_max_position_embeddings": original} if original else {})
        case "llama" | "olmo" | "cohere" | "ernie4_5" | "gpt_oss":
            return config
    return None


def run_case(posenc, folder, case, config):
    spec = case["spec"]
    layout = {"BHTD": "bhsd", "BTHD": "bshd"}[spec["axes"]]
    with open(f"{folder}/golden.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    rows = spec["positions"]
    npy.write(f"{folder}/golden_ids.npy", "<i8", (len(rows), len(rows[0])),
              [p for row in rows for p in row])
    for name in "qk":
        record = case["inputs"][name]
        npy.write(f"{folder}/golden_{name}.npy", "<f4", record["shape"],
                  generate(record))
    done = subprocess.run(
        [posenc, "apply", "golden.json", "--q", "golden_q.npy", "--k", "golden_k.npy",
         "--layout", layout, "--positions", "golden_ids.npy", "-o", "golden"],
        cwd=folder, capture_output=True, timeout=60)
    if done.returncode:
        return done.stderr.decode().strip()
    for name in "qk":
        got = npy.read(f"{folder}/golden/{name}.npy")[2]
        want = case["expect"][f"{name}_exact"]
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            if not abs(g - w) <= BOUND + case["tolerance"]["exact_abs"]:
                return f"{name}[{i}] is {g}, expected {w}"
    return None


def run(posenc, folder, root):
    path = os.path.join(root, "tests/data/vectors/rope_apply.json")
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    count = failed = 0
    for case in cases:
        config = config_of(case["spec"])
        if "backward" in case["kind"] or config is None:
            continue
        count += 1
        problem = run_case(posenc, folder, case, config)
        if problem:
            failed += 1
            print(f"golden {case['id']}: {problem}")
    return count, failed
