# SPDX-License-Identifier: MIT
#
# peer.py - what the peers share: our side, rounds in turn, and the report
#
# A peer is a script peer_*.py.  It prints a line of JSON for each comparison, with the
# row of `posenc bench` that it belongs to, or one line that says why there are none.
import argparse
import ctypes
import json
import statistics
import sys
import time

F32, F16, BF16 = 1, 2, 3
HALF, INTER = 1, 2
Q_HEADS, K_HEADS, HEAD_DIM, START = 32, 8, 128, 1000
DTYPES = {F32: "f32", F16: "f16", BF16: "bf16"}
PAIRINGS = {HALF: "half", INTER: "inter"}


def arguments(*more):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True, help="libbench_peers.so")
    parser.add_argument("--quick", action="store_true")
    for name in more:
        parser.add_argument(name)
    args = parser.parse_args()
    args.tokens = [1, 32, 512, 4096] + ([] if args.quick else [32768])
    args.seconds = 0.2 if args.quick else 3.0
    return args


def missing(name, reason):
    print(json.dumps({"peer": name, "missing": str(reason)}))
    sys.exit(0)


class Rounds:
    """What compare() needs of our side: ns(times), close()."""

    def close(self):
        self.destroy(self.handle)

    def ns(self, times):
        return self.run(self.handle, times)


class Ours(Rounds):
    """posenc's rotation of q and k into q_out and k_out, all given by address."""

    def __init__(self, path, dtype, pairing, tokens, tabulated, q, q_out, k, k_out):
        lib = ctypes.CDLL(path)
        create, self.run, self.destroy = (lib.peer_rope_create, lib.peer_rope_run,
                                          lib.peer_rope_destroy)
        create.restype, self.run.restype = ctypes.c_void_p, ctypes.c_double
        create.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64,
                           ctypes.c_int64, ctypes.c_int32, ctypes.c_int,
                           ctypes.c_int64] + 4 * [ctypes.c_void_p]
        self.run.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        self.destroy.argtypes = [ctypes.c_void_p]
        self.handle = create(dtype, pairing, tokens, Q_HEADS, K_HEADS, HEAD_DIM,
                             tabulated, START, q, q_out, k, k_out)
        if not self.handle:
            raise ValueError("posenc refused the rotation")


class OurAttention(Rounds):
    """posenc's causal attention over arrays, which it keeps: q, k, v, out."""

    def __init__(self, path, dtype, tokens, by_token, has_alibi, arrays):
        lib = ctypes.CDLL(path)
        create, self.run, self.destroy = (
            lib.peer_attention_create, lib.peer_attention_run,
            lib.peer_attention_destroy)
        create.restype, self.run.restype = ctypes.c_void_p, ctypes.c_double
        create.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64,
                           ctypes.c_int32, ctypes.c_int32, ctypes.c_int32,
                           ctypes.c_int, ctypes.c_int] + 4 * [ctypes.c_void_p]
        self.run.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        self.destroy.argtypes = [ctypes.c_void_p]
        self.arrays = arrays
        self.handle = create(dtype, tokens, tokens, Q_HEADS, K_HEADS, HEAD_DIM,
                             by_token, has_alibi, *(x.ctypes.data for x in arrays))
        if not self.handle:
            raise ValueError("posenc refused the attention")
        if self.ns(1) < 0:
            raise ValueError("posenc failed")


def ns_of(run, times):
    """Of this thread's CPU, for one."""
    begin = time.thread_time_ns()
    for _ in range(times):
        run()
    return (time.thread_time_ns() - begin) / times


def repeats(ns, sample_ns=1e5):
    """So many that a sample is long against the clock's own cost."""
    return max(1, int(sample_ns / max(ns, 1.0)))


def compare(name, row, ours, run, args, per_run=1):
    """Both in turn; the ratio is the median of the rounds'.  run() does the work
    per_run times."""
    ours_times = repeats(ours.ns(max(1, repeats(ours.ns(1)) // 4)))
    run()
    theirs_times = repeats(ns_of(run, 1))
    ratios, theirs = [], []
    end = time.monotonic() + args.seconds
    least = 3 if args.quick else 5
    while len(ratios) < least or (time.monotonic() < end and len(ratios) < 2000):
        mine = ours.ns(ours_times)
        theirs.append(ns_of(run, theirs_times) / per_run)
        ratios.append(theirs[-1] / mine)
    print(json.dumps({"peer": name, "row": row, "ratio": statistics.median(ratios),
                      "ns": statistics.median(theirs)}), flush=True)


def check(name, row, got, want, bound):
    """Both must have made the same numbers, or there is nothing to compare."""
    worst = max(float(abs(g - w).max()) for g, w in zip(got, want))
    if not worst <= bound:
        print(json.dumps({"peer": name, "row": row, "wrong": worst, "bound": bound}))
        sys.exit(1)


def angles(numpy, tokens):
    """cos and sin in double, (tokens, HEAD_DIM / 2)."""
    inv_freq = 10000.0 ** (-numpy.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    angle = numpy.outer(START + numpy.arange(tokens), inv_freq)
    return numpy.cos(angle), numpy.sin(angle)


def aligned(numpy, like):
    """An array on a cache line, as every peer's own allocator gives them."""
    room = numpy.empty(like.nbytes + 64, numpy.uint8)
    begin = -room.ctypes.data % 64
    return room[begin : begin + like.nbytes].view(like.dtype).reshape(like.shape)


def q_and_k(numpy, dtype, tokens):
    """q and k of random numbers, and room for their results."""
    rng = numpy.random.default_rng(5)
    result = []
    for heads in (Q_HEADS, K_HEADS):
        values = rng.uniform(-1, 1, (1, tokens, heads, HEAD_DIM)).astype(dtype)
        x = aligned(numpy, values)
        x[:] = values
        result += [x, aligned(numpy, values)]
        result[-1][:] = 0  # its pages are there
    return result


ATTENTION_TOKENS = 2048


def attention_arrays(numpy, dtype, by_token):
    """q, k, v of random numbers and room for a result, one batch."""
    rng = numpy.random.default_rng(6)
    result = []
    for heads, of in ((Q_HEADS, numpy.float32), (K_HEADS, dtype), (K_HEADS, dtype),
                      (Q_HEADS, numpy.float32)):
        shape = ((1, ATTENTION_TOKENS, heads, HEAD_DIM) if by_token
                 else (1, heads, ATTENTION_TOKENS, HEAD_DIM))
        values = rng.uniform(-1, 1, shape).astype(of)
        result.append(aligned(numpy, values))
        result[-1][:] = values
    return result


def alibi(numpy, hidden):
    """The bias of every head as an array, (1, heads, tokens, tokens); keys that causal
    attention does not see get hidden."""
    slopes = 2.0 ** (-8 * (1 + numpy.arange(Q_HEADS)) / Q_HEADS)
    at = numpy.arange(ATTENTION_TOKENS)
    away = (at[:, None] - at).astype(numpy.float32)
    result = numpy.empty((1, Q_HEADS) + away.shape, numpy.float32)
    for head, slope in enumerate(slopes):
        result[0, head] = numpy.where(away < 0, hidden, -slope * away)
    return result
