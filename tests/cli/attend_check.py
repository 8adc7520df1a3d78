# SPDX-License-Identifier: MIT
#
# attend_check.py - attend against attention in double
import math
import subprocess

import npy
from numbers_check import Rope

HEADS, KV_HEADS, DIM = 6, 2, 16


def vectors(path):
    """x[batch][token][head] of a .npy file in bshd."""
    _, (batch, tokens, heads, dim), flat = npy.read(path)
    it = iter(flat)
    return [[[[next(it) for _ in range(dim)] for _ in range(heads)]
             for _ in range(tokens)] for _ in range(batch)]


def attend(q, k, v, rope, start, slopes):
    """Causal attention and its probabilities of one batch row."""
    out, probs = [], []
    for i, heads in enumerate(q):
        out.append([])
        for h, vector in enumerate(heads):
            kv = h // (HEADS // KV_HEADS) if slopes is None else h
            turned = rope.rotate(vector, [start + i])[0] if rope else vector
            scores = []
            for j in range(i + 1):
                key = k[j][kv]
                key = rope.rotate(key, [start + j])[0] if rope else key
                score = sum(a * b for a, b in zip(turned, key)) / math.sqrt(len(key))
                scores.append(score - (slopes[h] * (i - j) if slopes else 0))
            top = max(scores)
            weights = [math.exp(s - top) for s in scores]
            total = sum(weights)
            out[-1].append([sum(w * v[j][kv][d] for j, w in enumerate(weights)) / total
                            for d in range(len(v[0][kv]))])
            probs.append((h, i, [w / total for w in weights]))
    return out, probs


def compare(got, expected):
    worst = max(abs(a - b) for a, b in zip(got, expected))
    return None if len(got) == len(expected) and worst < 3e-6 else f"off by {worst}"


def run(posenc, folder):
    """Returns (checks, failed)."""
    count = failed = 0
    cases = [("llama.json", "q.npy", "k.npy", Rope("", DIM, DIM, 10000.0), 1000, None),
             ("alibi.json", "q.npy", "q.npy", None, 7,
              [2.0 ** -2, 2.0 ** -4, 2.0 ** -6, 2.0 ** -8, 2.0 ** -1, 2.0 ** -3])]
    for model, q, k, rope, start, slopes in cases:
        subprocess.run([posenc, "attend", model, q, k, k, "-o", "attended.npy",
                        "--scores", "scores.npy", "--positions", str(start)],
                       cwd=folder, check=True, capture_output=True)
        got = npy.read(f"{folder}/attended.npy")[2]
        shape, got_scores = npy.read(f"{folder}/scores.npy")[1:]
        tokens, expected = shape[2], []
        scores = [0.0] * len(got_scores)
        pairs = zip(vectors(f"{folder}/{q}"), vectors(f"{folder}/{k}"))
        for b, (rows, keys) in enumerate(pairs):
            out, probs = attend(rows, keys, keys, rope, start, slopes)
            expected += [x for row in out for vector in row for x in vector]
            for h, i, weights in probs:
                at = ((b * HEADS + h) * tokens + i) * tokens
                scores[at:at + len(weights)] = weights
        for what, a, b in (("out", got, expected), ("scores", got_scores, scores)):
            complaint = compare(a, b)
            count += 1
            if complaint:
                failed += 1
                print(f"attend {model}: {what} {complaint}")
    return count, failed
