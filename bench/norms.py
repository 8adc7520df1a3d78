#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# norms.py MODEL.gguf TEXT [TOKENS] - how long a model's queries and keys are
#
# A llama's forward pass in NumPy, which prints scale * |q| |k| over pairs and heads: what
# decides how many blocks ALiBi can leave out.  Weights in f32, Q4_1 and Q8_0, and a
# byte-level BPE: the GGUF of SmolLM2 135M that tests/real/run.py fetches.
import re
import struct
import sys

import numpy as np

FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q",
           11: "q", 12: "d"}
TEXT, ARRAY = 8, 9
F32, Q4_1, Q8_0 = 0, 3, 8
POINTS = (0, 1, 10, 50, 90, 99, 100)


class Gguf:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 8
        num_tensors, num_values = self.read("Q"), self.read("Q")
        self.values = {}
        for _ in range(num_values):
            name = self.value(TEXT)
            self.values[name] = self.value(self.read("I"))
        self.tensors = {}
        for _ in range(num_tensors):
            name = self.value(TEXT)
            shape = [self.read("Q") for _ in range(self.read("I"))]
            self.tensors[name] = shape[::-1], self.read("I"), self.read("Q")
        align = self.values.get("general.alignment", 32)
        self.start = (self.at + align - 1) // align * align

    def read(self, what):
        value, = struct.unpack_from("<" + what, self.data, self.at)
        self.at += struct.calcsize("<" + what)
        return value

    def value(self, kind):
        if kind == TEXT:
            size = self.read("Q")
            self.at += size
            return self.data[self.at - size:self.at].decode()
        if kind == ARRAY:
            kind = self.read("I")
            return [self.value(kind) for _ in range(self.read("Q"))]
        return self.read(FORMATS[kind])

    def tensor(self, name):
        shape, kind, offset = self.tensors[name]
        count, offset = int(np.prod(shape)), self.start + offset
        if kind == F32:
            return np.frombuffer(self.data, np.float32, count, offset).reshape(shape)
        size = {Q4_1: 20, Q8_0: 34}[kind]
        blocks = np.frombuffer(self.data, np.uint8, count // 32 * size, offset)
        blocks = blocks.reshape(-1, size)
        head = size % 16
        scales = blocks[:, :head].copy().view(np.float16).astype(np.float32)
        codes = blocks[:, head:]
        if kind == Q8_0:
            return (codes.view(np.int8) * scales).reshape(shape)
        codes = np.concatenate([codes & 15, codes >> 4], 1)
        return (codes * scales[:, :1] + scales[:, 1:]).reshape(shape)


def tokens_of(gguf, text):
    """Byte-level BPE."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    letters = {b: chr(b) for b in shown}
    letters.update({b: chr(256 + i) for i, b in enumerate(hidden)})
    ids = {t: i for i, t in enumerate(gguf.values["tokenizer.ggml.tokens"])}
    ranks = {tuple(m.split(" ")): i
             for i, m in enumerate(gguf.values["tokenizer.ggml.merges"])}
    out = []
    for word in re.findall(r" ?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", text):
        parts = [letters[b] for b in word.encode()]
        while len(parts) > 1:
            rank, i = min((ranks.get(pair, len(ranks)), i)
                          for i, pair in enumerate(zip(parts, parts[1:])))
            if rank == len(ranks):
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        out += [ids[part] for part in parts]
    return out


def turn(x, theta):
    """Interleaved pairs of (tokens, heads, dim)."""
    dim = x.shape[2]
    angles = np.outer(np.arange(len(x)), theta ** (-np.arange(0, dim, 2) / dim))
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    y = np.empty_like(x)
    y[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    y[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return y


def layers(gguf, ids):
    """q and k of each layer, as they meet."""
    def setting(name):
        return gguf.values["llama." + name]

    def normed(x, name):
        size = (x * x).mean(-1, keepdims=True) + setting("attention.layer_norm_rms_epsilon")
        return x / np.sqrt(size) * gguf.tensor(name + ".weight")

    heads, kv_heads = setting("attention.head_count"), setting("attention.head_count_kv")
    dim = setting("embedding_length") // heads
    n = len(ids)
    hidden = np.triu(np.full((n, n), -np.inf, np.float32), 1)
    x = gguf.tensor("token_embd.weight")[ids]
    for layer in range(setting("block_count")):
        def times(y, name):
            return y @ gguf.tensor(f"blk.{layer}.{name}.weight").T

        y = normed(x, f"blk.{layer}.attn_norm")
        theta = setting("rope.freq_base")
        q = turn(times(y, "attn_q").reshape(n, heads, dim), theta)
        k = turn(times(y, "attn_k").reshape(n, kv_heads, dim), theta)
        v = times(y, "attn_v").reshape(n, kv_heads, dim)
        yield q, k
        out = np.empty_like(q)
        for h in range(heads):
            kv = h * kv_heads // heads
            scores = q[:, h] @ k[:, kv].T / np.sqrt(dim) + hidden
            weights = np.exp(scores - scores.max(1, keepdims=True))
            out[:, h] = weights / weights.sum(1, keepdims=True) @ v[:, kv]
        x = x + times(out.reshape(n, -1), "attn_output")
        y = normed(x, f"blk.{layer}.ffn_norm")
        gate = times(y, "ffn_gate")
        x = x + times(gate / (1 + np.exp(-gate)) * times(y, "ffn_up"), "ffn_down")
    scores = normed(x, "output_norm") @ gguf.tensor("token_embd.weight").T
    scores -= scores.max(1, keepdims=True)
    right = scores[np.arange(n - 1), ids[1:]] - np.log(np.exp(scores[:-1]).sum(1))
    print(f"{n} tokens, {-right.mean():.2f} nats each")


def show(name, values):
    points = zip(POINTS, np.percentile(values, POINTS))
    print(f"{name:34}", "  ".join(f"{p}%: {x:.3g}" for p, x in points))


def main():
    gguf = Gguf(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        ids = tokens_of(gguf, file.read())[:int(sys.argv[3]) if sys.argv[3:] else 2048]
    pairs, heads, spread, longest = [], [], [], []
    for q, k in layers(gguf, ids):
        group, scale = q.shape[1] // k.shape[1], q.shape[2] ** -0.5
        q, k = np.linalg.norm(q, axis=2), np.linalg.norm(k, axis=2)
        seen = np.tril_indices(len(q))
        for h in range(q.shape[1]):
            a, b = q[:, h], k[:, h // group]
            pairs.append(np.outer(a, b)[seen][::97] * scale)
            heads.append(np.median(a) * np.median(b) * scale)
            spread += [a.std() / a.mean(), b.std() / b.mean()]
            runs = [b[i:i + 64].max() for i in range(0, len(b), 64)]
            longest.append(np.mean(runs) / np.median(b))
    show("scale |q| |k|, pairs", np.concatenate(pairs))
    show("the same, medians of heads", heads)
    show("spread of a head's lengths", spread)
    show("longest of 64 keys over median", longest)


main()
