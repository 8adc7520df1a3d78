# SPDX-License-Identifier: MIT
#
# convert_check.py - what convert writes, against rows moved here
#
# The rule is written down once more: half-split row i pairs with row i + d/2 of the
# part that turns; interleaved they are rows 2i and 2i + 1.
import json
import math
import operator
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import time

import safetensors


def head_rows(head_dim, start, rotary_dim, to_interleaved):
    rows = list(range(head_dim))
    for i in range(rotary_dim // 2):
        half = (start + i, start + i + rotary_dim // 2)
        pair = (start + 2 * i, start + 2 * i + 1)
        for h, p in zip(half, pair):
            if to_interleaved:
                rows[p] = h
            else:
                rows[h] = p
    return rows


class Layout:
    def __init__(self, head_dim, heads, kv_heads, start=0, rotary_dim=None,
                 to_interleaved=True):
        self.head_dim, self.heads, self.kv_heads = head_dim, heads, kv_heads
        self.start, self.rotary_dim = start, rotary_dim or head_dim
        self.to_interleaved = to_interleaved

    def rows(self, kind, count):
        one = head_rows(self.head_dim, self.start, self.rotary_dim,
                        self.to_interleaved)
        still = list(range(self.head_dim))
        if kind == "tail":
            turned = head_rows(self.rotary_dim, 0, self.rotary_dim,
                               self.to_interleaved)
            base = count - self.rotary_dim
            return list(range(base)) + [base + r for r in turned]
        group = self.heads // self.kv_heads
        heads = {"q": [one] * self.heads, "k": [one] * self.kv_heads,
                 "norm": [one] * (count // self.head_dim),
                 "concat": [one] * (self.heads + self.kv_heads)
                 + [still] * self.kv_heads,
                 "grouped": ([one] * (group + 1) + [still]) * self.kv_heads}[kind]
        return [h * self.head_dim + r for h, rows in enumerate(heads) for r in rows]

    def move(self, kind, count, data):
        size = len(data) // count
        return b"".join(data[r * size:(r + 1) * size] for r in self.rows(kind, count))


class Checker:
    def __init__(self, posenc, folder):
        self.posenc, self.folder = posenc, folder
        self.rng = random.Random(77)
        self.count = self.failed = 0

    def run(self, *arguments, **keywords):
        return subprocess.run([self.posenc, "convert", *map(str, arguments)],
                              cwd=self.folder, timeout=120, capture_output=True,
                              **keywords)

    def report(self, name, problem):
        self.count += 1
        if problem:
            self.failed += 1
            print(f"convert: {name}: {problem}")

    def config(self, **settings):
        with open(f"{self.folder}/c.json", "w", encoding="utf-8") as file:
            json.dump(settings, file)

    def expect(self, name, layout, tensors, options=("--config", "c.json")):
        """tensors: (name, dtype, shape, kind, rows), kind None: untouched."""
        path, out = f"{self.folder}/in.safetensors", f"{self.folder}/out.safetensors"
        data = safetensors.write(path, [t[:3] for t in tensors],
                                 {"format": "pt", "note": "\u00e9"}, self.rng)
        to = "interleaved" if layout.to_interleaved else "half-split"
        back = "half-split" if layout.to_interleaved else "interleaved"
        done = self.run("in.safetensors", "--to", to, "-o", "out.safetensors",
                        "--check", *options)
        if done.returncode:
            return self.report(name, done.stderr.decode())
        before, after = safetensors.read(path), safetensors.read(out)
        problem = None if before[0] == after[0] else "the header changed"
        for tensor, _, shape, kind, *count in tensors:
            rows = count[0] if count else (shape[0] if shape else 1)
            want = data[tensor] if kind is None else layout.move(kind, rows, data[tensor])
            if kind and want == data[tensor]:
                problem = f"{tensor}: the test moves nothing"
            if after[1][tensor] != want:
                problem = f"{tensor} is wrong"
        rest = options[2:] if options[:1] == ("--from",) else options
        done = self.run("out.safetensors", "--to", back, "--from", to, "-o",
                        "back.safetensors", *rest)
        with open(path, "rb") as a, open(f"{self.folder}/back.safetensors", "rb") as b:
            if done.returncode or a.read() != b.read():
                problem = f"does not come back: {done.stderr.decode()}"
        return self.report(name, problem)

    def scores(self):
        """What a model computes stays: q . k with the rows moved and the pairing of
        the rotation changed, for grouped queries and a part that turns."""
        dim, rotary, heads, kv_heads, width = 12, 8, 4, 2, 5
        half = rotary // 2
        names = [f"layers.0.self_attn.{m}_proj.weight" for m in "qk"]
        shapes = [(heads * dim, width), (kv_heads * dim, width)]
        safetensors.write(f"{self.folder}/in.safetensors",
                          [(n, "F32", s) for n, s in zip(names, shapes)], None, self.rng)
        header, data = safetensors.read(f"{self.folder}/in.safetensors")
        for name, (rows, columns) in zip(names, shapes):
            data[name] = struct.pack(f"<{rows * columns}f", *(
                self.rng.uniform(-1, 1) for _ in range(rows * columns)))
        with open(f"{self.folder}/in.safetensors", "wb") as file:
            file.write(header + data[names[0]] + data[names[1]])
        tokens = [[self.rng.uniform(-1, 1) for _ in range(width)] for _ in range(3)]

        def vectors(path, which, pair):
            """Rotated heads of each token at position 70 times its place."""
            flat = safetensors.read(f"{self.folder}/{path}")[1][names[which]]
            flat = struct.unpack(f"<{len(flat) // 4}f", flat)
            for t, x in enumerate(tokens):
                y = [sum(flat[r * width + c] * x[c] for c in range(width))
                     for r in range(shapes[which][0])]
                for h in range(0, len(y), dim):
                    for i in range(half):
                        a, b = (h + j for j in pair(i))
                        angle = 70 * t * 1e4 ** (-i / half)
                        c, s = math.cos(angle), math.sin(angle)
                        y[a], y[b] = y[a] * c - y[b] * s, y[a] * s + y[b] * c
                yield [y[h:h + dim] for h in range(0, len(y), dim)]

        def table(path, pair):
            q, k = (list(vectors(path, which, pair)) for which in (0, 1))
            return [sum(map(operator.mul, a, b)) for x in q for y in k
                    for h, a in enumerate(x) for b in [y[h // (heads // kv_heads)]]]
        done = self.run("in.safetensors", "--from", "half-split", "--to", "interleaved",
                        "--head-dim", dim, "--rotary-dim", rotary, "-o",
                        "out.safetensors")
        before = table("in.safetensors", lambda i: (i, i + half))
        after = table("out.safetensors", lambda i: (2 * i, 2 * i + 1))
        wrong = table("out.safetensors", lambda i: (i, i + half))
        off = max(map(abs, map(operator.sub, before, after)))
        told = max(map(abs, map(operator.sub, before, wrong)))
        self.report("scores", None if done.returncode == 0 and off < 1e-12 < 0.1 < told
                    else f"off by {off}, the wrong pairing by {told}")

    def shards(self):
        os.mkdir(f"{self.folder}/shards")
        base = f"{self.folder}/shards"
        with open(f"{base}/config.json", "w", encoding="utf-8") as file:
            json.dump({"model_type": "llama", "hidden_size": 64, "head_dim": 16,
                       "num_attention_heads": 4, "num_key_value_heads": 2,
                       "num_hidden_layers": 2, "max_position_embeddings": 64,
                       "rope_theta": 1e4}, file)
        names = {}
        data = {}
        for s in range(2):
            tensors = [(f"model.layers.{s}.self_attn.{m}_proj.weight", "BF16",
                        (64 if m == "q" else 32, 64)) for m in "qkv"]
            shard = f"model-{s + 1:05}-of-00002.safetensors"
            data[shard] = safetensors.write(f"{base}/{shard}", tensors, None, self.rng)
            names.update({t[0]: shard for t in tensors})
        with open(f"{base}/model.safetensors.index.json", "w", encoding="utf-8") as file:
            json.dump({"metadata": {}, "weight_map": names}, file)
        done = self.run("shards", "--to", "interleaved", "-o", "moved", "--check")
        problem = done.stderr.decode() if done.returncode else None
        layout = Layout(16, 4, 2)
        for shard, tensors in data.items():
            got = safetensors.read(f"{self.folder}/moved/{shard}")[1]
            for name, before in tensors.items():
                kind = "q" if "q_proj" in name else "k" if "k_proj" in name else None
                want = layout.move(kind, 64 if kind == "q" else 32, before) \
                    if kind else before
                if got[name] != want:
                    problem = f"{name} is wrong"
        if sorted(os.listdir(f"{self.folder}/moved")) != sorted(os.listdir(base)):
            problem = f"wrote {os.listdir(self.folder + '/moved')}"
        loaded = subprocess.run([self.posenc, "inspect", "moved"], cwd=self.folder,
                                capture_output=True, check=False)
        if loaded.returncode:
            problem = f"does not load: {loaded.stderr}"
        self.report("shards", problem)

    def large(self, size):
        """An eighth q, an eighth k; zeroes, so that it costs no blocks."""
        rows = 4096
        columns = size // 8 // rows
        tensors = [("layers.0.q_proj.weight", "U8", (rows, columns)),
                   ("layers.0.k_proj.weight", "U8", (rows, columns)),
                   ("embed", "U8", (rows, 6 * columns))]
        header, offset = {}, 0
        for name, dtype, shape in tensors:
            end = offset + safetensors.size_of(dtype, shape)
            header[name] = {"dtype": dtype, "shape": shape,
                            "data_offsets": [offset, end]}
            offset = end
        text = json.dumps(header).encode()
        path = f"{self.folder}/large.safetensors"
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + offset)
        return path

    def peak_of(self, *arguments):
        """Peak memory in MiB and what went wrong, if something did."""
        child = subprocess.Popen([self.posenc, *arguments], cwd=self.folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = child.stderr.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_maxrss >> 10, said if child.returncode else None

    def memory(self):
        """60 MiB beyond what any run takes, which sanitizers make large; 64 in all."""
        self.config(model_type="llama", head_dim=128, num_attention_heads=32,
                    num_key_value_heads=32, hidden_size=4096, num_hidden_layers=1,
                    rope_theta=1e4)
        path = self.large(512 << 20)
        idle, _ = self.peak_of("--version")
        peak, problem = self.peak_of("convert", path, "--config", "c.json", "--to",
                                     "interleaved", "-o", "large.out")
        if os.path.getsize(path) != os.path.getsize(f"{self.folder}/large.out"):
            problem = "sizes differ"
        if peak - idle > 60:
            problem = f"peak memory {peak} MiB, at most 60 more than {idle}"
        os.remove(f"{self.folder}/large.out")
        os.remove(path)
        self.report("memory", problem)

    def interrupt(self, number):
        """Cut in the middle: the source is whole, nothing has the final name."""
        path = self.large(2 << 30)
        child = subprocess.Popen([self.posenc, "convert", path, "--config", "c.json",
                                  "--to", "interleaved", "-o", "stopped.safetensors"],
                                 cwd=self.folder, stderr=subprocess.DEVNULL)
        def parts():
            return [n for n in os.listdir(self.folder) if n.startswith("stopped.")]
        while not parts() and child.poll() is None:
            time.sleep(0.001)
        child.send_signal(number)
        code = child.wait()
        left = parts()
        allowed = not left or number == signal.SIGKILL
        problem = None
        if code != -number or "stopped.safetensors" in left or not allowed:
            problem = f"exit code {code}, left {left}"
        for name in left:
            os.remove(f"{self.folder}/{name}")
        os.remove(path)
        self.report(f"signal {number}", problem)

    def full_disk(self):
        safetensors.write(f"{self.folder}/in.safetensors",
                          [("layers.0.q_proj.weight", "F32", (4096, 8))], None, self.rng)
        done = self.run("in.safetensors", "--config", "c.json", "--to", "interleaved",
                        "-o", "full.safetensors",
                        preexec_fn=lambda: resource.setrlimit(
                            resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY)))
        left = [n for n in os.listdir(self.folder) if n.startswith("full.")]
        self.report("full disk", None if done.returncode == 1 and not left
                    else f"exit code {done.returncode}, left {left}: {done.stderr}")


def run(posenc, folder):
    check = Checker(posenc, folder)
    check.memory()
    check.full_disk()
    check.interrupt(signal.SIGTERM)
    check.interrupt(signal.SIGKILL)
    check.scores()
    check.shards()

    def names(layer, *modules):
        return [f"model.layers.{layer}.self_attn.{m}" for m in modules]

    check.config(model_type="qwen3", head_dim=16, hidden_size=64, num_attention_heads=6,
                 num_key_value_heads=2, num_hidden_layers=2, rope_theta=1e6)
    grouped = Layout(16, 6, 2)
    q, k, v, qn, kn = names(1, "q_proj.weight", "k_proj.weight", "v_proj.weight",
                            "q_norm.weight", "k_norm.weight")
    for dtype in ("F32", "F16", "BF16", "F8_E4M3", "I64"):
        check.expect(f"grouped queries {dtype}", grouped,
                     [(v, dtype, (32, 5), None), (k, dtype, (32, 5), "k"),
                      ("model.embed_tokens.weight", dtype, (7, 5), None),
                      (q, dtype, (96, 5), "q"), (qn, dtype, (16,), "norm"),
                      (kn, dtype, (16,), "norm"), ("scale", dtype, (), None)])
    qb, kb = names(0, "q_proj.bias", "k_proj.bias")
    la, lb, ld = names(0, "q_proj.lora_A.weight", "q_proj.lora_B.weight",
                       "k_proj.lora_B.default.weight")
    check.expect("biases and LoRA", grouped,
                 [(qb, "F32", (96,), "q"), (kb, "BF16", (32,), "k"),
                  (la, "F32", (96, 96), None), (lb, "F32", (96, 3), "q"),
                  (ld, "F16", (32, 3), "k"),
                  ("model.layers.0.self_attn.q_proj.lora_magnitude_vector", "F32",
                   (96,), "q")])
    check.expect("heads larger than the buffer", grouped,
                 [(q, "U8", (96, 1000), "q"), (k, "U8", (32, 700001), "k")])
    check.expect("rows larger than the buffer", Layout(4, 1, 1),
                 [("0.wq.weight", "U8", (4, 9 << 20), "q")],
                 options=("--from", "half-split", "--head-dim", "4"))
    check.expect("vision is left alone", grouped,
                 [("vision_tower.layers.0.q_proj.weight", "F32", (8, 3), None),
                  (q, "F32", (96, 2), "q")])

    check.config(model_type="gpt_neox", hidden_size=96, num_attention_heads=4,
                 num_hidden_layers=1, rotary_pct=0.25, max_position_embeddings=64)
    neox = "gpt_neox.layers.0.attention.query_key_value"
    check.expect("fused, grouped, partial", Layout(24, 4, 4, rotary_dim=6),
                 [(f"{neox}.weight", "F16", (288, 7), "grouped"),
                  (f"{neox}.bias", "F16", (288,), "grouped")])
    check.config(model_type="phi3", hidden_size=96, num_attention_heads=6,
                 num_key_value_heads=2, num_hidden_layers=1, rope_theta=1e4,
                 max_position_embeddings=64)
    check.expect("fused, concat", Layout(16, 6, 2),
                 [("model.layers.0.self_attn.qkv_proj.weight", "BF16", (160, 9),
                   "concat")])
    check.config(model_type="falcon", hidden_size=64, num_attention_heads=4,
                 num_hidden_layers=1, multi_query=True, rope_theta=1e4)
    check.expect("fused, one key head", Layout(16, 4, 1),
                 [("transformer.h.0.self_attention.query_key_value.weight", "F32",
                   (96, 3), "grouped")])
    check.config(model_type="gptj", n_embd=64, n_head=4, n_layer=1, rotary_dim=8)
    check.expect("to half-split", Layout(16, 4, 4, rotary_dim=8, to_interleaved=False),
                 [("transformer.h.0.attn.q_proj.weight", "F32", (64, 3), "q"),
                  ("transformer.h.0.attn.k_proj.weight", "F32", (64, 3), "k")])
    check.config(model_type="deepseek_v2", hidden_size=64, num_attention_heads=4,
                 num_hidden_layers=1, qk_nope_head_dim=16, qk_rope_head_dim=8,
                 v_head_dim=16, kv_lora_rank=20, rope_theta=1e4)
    check.expect("latent attention",
                 Layout(24, 4, 4, start=16, rotary_dim=8, to_interleaved=False),
                 [("model.layers.0.self_attn.q_proj.weight", "F32", (96, 5), "q"),
                  ("model.layers.0.self_attn.kv_a_proj_with_mqa.weight", "F32",
                   (28, 5), "tail"),
                  ("model.layers.0.self_attn.kv_b_proj.weight", "F32", (128, 20), None)])
    check.config(model_type="smollm3", hidden_size=64, num_attention_heads=4,
                 num_key_value_heads=2, num_hidden_layers=4, rope_theta=5e6,
                 no_rope_layers=[1, 1, 1, 0])
    check.expect("layers without rotation", Layout(16, 4, 2),
                 [(names(2, "q_proj.weight")[0], "F32", (64, 3), "q"),
                  (names(3, "q_proj.weight")[0], "F32", (64, 3), None)])
    check.expect("without a model", Layout(32, 5, 5, rotary_dim=12),
                 [("layers.0.attention.wq.weight", "F32", (160, 3), "q"),
                  ("layers.0.attention.wk.weight", "F32", (160, 3), "k")],
                 options=("--from", "half-split", "--head-dim", "32", "--rotary-dim",
                          "12"))
    return check.count, check.failed


if __name__ == "__main__":
    print(*run(*sys.argv[1:]))
