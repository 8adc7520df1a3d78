#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# peer_lab_torch.py - PyTorch: training steps of the lab's configuration A
#
# One process for each side, which take turns; PyTorch may have the OpenBLAS kernels that
# suit it best.  Times are of the wall, a thread each.  Prints goals: the median of the
# rounds' ratios.
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys
import time

import peer

LAYERS, WIDTH, HEADS, LENGTH, BATCH, VOCAB = 3, 96, 4, 64, 32, 256
HEAD_DIM = WIDTH // HEADS
CORES = ("HASWELL", "SKYLAKEX", "")  # OPENBLAS_CORETYPE; "": its own choice
METHODS = ("rope", "alibi", "none", "sin")


def ours(method, library, threads):
    """A function that takes steps and says the nanoseconds of one."""
    lib = ctypes.CDLL(library)
    lib.lab_bench_create.restype = ctypes.c_void_p
    lib.lab_bench_create.argtypes = [ctypes.c_char_p, ctypes.c_int32]
    lib.lab_bench_run.restype = ctypes.c_double
    lib.lab_bench_run.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    handle = lib.lab_bench_create(method.encode(), int(threads))
    if not handle:
        raise ValueError(f"the lab refused {method}")
    return lambda steps: lib.lab_bench_run(handle, steps)


def theirs(method):
    import torch
    import torch.nn.functional as functional

    torch.set_num_threads(1)
    torch.manual_seed(0)
    parameter = lambda *shape: torch.nn.Parameter(torch.randn(*shape) / shape[-1] ** 0.5)
    gain = lambda: torch.nn.Parameter(torch.ones(WIDTH))
    layers = [(gain(), parameter(3 * WIDTH, WIDTH), parameter(WIDTH, WIDTH), gain(),
               parameter(4 * WIDTH, WIDTH), parameter(WIDTH, 4 * WIDTH))
              for _ in range(LAYERS)]
    embedding, last, head = parameter(VOCAB, WIDTH), gain(), parameter(VOCAB, WIDTH)
    every = [embedding, last, head] + [p for layer in layers for p in layer]
    groups = [{"params": [p for p in every if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in every if p.dim() < 2], "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8,
                                  foreach=True)
    place = torch.arange(LENGTH, dtype=torch.float64)
    angle = place[:, None] * 1e4 ** (-torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    cosine, sine = angle.cos().float(), angle.sin().float()
    distance = place[:, None] - place[None]
    bias = torch.zeros(1, LENGTH, LENGTH).masked_fill(distance < 0, -math.inf)
    if method == "alibi":
        slopes = 2.0 ** (-8 * (torch.arange(HEADS) + 1) / HEADS)
        bias = bias - slopes[:, None, None] * distance.clamp(min=0).float()
        bias = bias.repeat(BATCH, 1, 1)
    wide = place[:, None] * 1e4 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    added = torch.stack((wide.sin(), wide.cos()), -1).reshape(LENGTH, WIDTH).float()

    def norm(x, g):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * g

    def turn(x):
        a, b = x[..., : HEAD_DIM // 2], x[..., HEAD_DIM // 2 :]
        return torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1)

    def attend(x):
        q, k, v = x.view(BATCH, LENGTH, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        if method == "rope":
            q, k = turn(q), turn(k)
        q, k, v = (a.reshape(BATCH * HEADS, LENGTH, HEAD_DIM) for a in (q, k, v))
        scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=HEAD_DIM ** -0.5)
        read = (scores.softmax(-1) @ v).view(BATCH, HEADS, LENGTH, HEAD_DIM)
        return read.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH)

    def step():
        ids = torch.randint(0, VOCAB, (BATCH, LENGTH + 1))
        x = functional.embedding(ids[:, :-1], embedding) * WIDTH ** 0.5
        if method == "sin":
            x = x + added
        for n1, qkv, o, n2, f1, f2 in layers:
            x = x + functional.linear(attend(functional.linear(norm(x, n1), qkv)), o)
            inner = functional.gelu(functional.linear(norm(x, n2), f1))
            x = x + functional.linear(inner, f2)
        logits = functional.linear(norm(x, last), head).reshape(-1, VOCAB)
        loss = functional.cross_entropy(logits, ids[:, 1:].reshape(-1))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(every, 1.0)
        optimiser.step()
        loss.item()

    def run(steps):
        begin = time.perf_counter_ns()
        for _ in range(steps):
            step()
        return (time.perf_counter_ns() - begin) / steps

    return run


def serve(kind, *rest):
    """Answers each line, a number of steps, with nanoseconds."""
    run = ours(*rest) if kind == "ours" else theirs(*rest)
    for line in sys.stdin:
        print(run(int(line)), flush=True)


class Side:
    def __init__(self, *arguments, core=None):
        env = dict(os.environ, OPENBLAS_NUM_THREADS="1")
        if core:
            env["OPENBLAS_CORETYPE"] = core
        self.process = subprocess.Popen([sys.executable, __file__, "serve", *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=env)
        self.ns(3)

    def ns(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        answer = float(self.process.stdout.readline())
        if answer < 0:
            raise ValueError("a step failed")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def goal(name, wanted, got):
    return {"id": name, "goal": wanted, "got": got, "met": got >= wanted}


def compare(method, library, rounds, steps):
    one, two = (Side("ours", method, library, str(n)) for n in (1, 2))
    sides = [Side("theirs", method, core=core) for core in CORES]
    fastest = min(sides, key=lambda side: min(side.ns(steps) for _ in range(3)))
    faster, spread, speeds = [], [], []
    for _ in range(rounds):
        times = [side.ns(steps) for side in (one, fastest, two)]
        faster.append(times[1] / times[0])
        spread.append(times[0] / times[2])
        speeds.append([BATCH * LENGTH * 1e9 / ns for ns in times])
    for side in [one, two, *sides]:
        side.close()
    mine, other, both = (statistics.median(column) for column in zip(*speeds))
    core = CORES[sides.index(fastest)] or "own choice"
    print(f"{method}: {mine:.0f} tokens/s, PyTorch ({core}) {other:.0f}, "
          f"two threads {both:.0f}", file=sys.stderr)
    goals = [goal(f"lab.train.A.{method} vs torch", 1.3, statistics.median(faster)),
             goal(f"lab.train.A.{method} 2 threads vs 1", 1.8,
                  statistics.median(spread))]
    print(json.dumps({"peer": "lab-torch", "goals": goals}), flush=True)


def main():
    args = peer.arguments()
    try:
        import torch
    except ImportError as problem:
        peer.missing("lab-torch", problem)
    library = os.path.join(os.path.dirname(args.lib), "libbench_lab.so")
    for method in METHODS[:2] if args.quick else METHODS:
        compare(method, library, 5 if args.quick else 9, 6 if args.quick else 10)


if sys.argv[1:2] == ["serve"]:
    serve(*sys.argv[2:])
else:
    main()
