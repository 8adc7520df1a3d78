#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# peer_numpy.py - the Hugging Face formula in NumPy, cos and sin given
import peer

NAME = "numpy"
args = peer.arguments()
try:
    import numpy
except ImportError as problem:
    peer.missing(NAME, problem)


def rotate_half(x):
    half = peer.HEAD_DIM // 2
    return numpy.concatenate((-x[..., half:], x[..., :half]), axis=-1)


for tokens in args.tokens:
    row = f"rope-row.f32.half.{tokens}"
    q, q_out, k, k_out = peer.q_and_k(numpy, numpy.float32, tokens)
    cos, sin = (numpy.concatenate((a, a), -1).astype(numpy.float32)[:, None]
                for a in peer.angles(numpy, tokens))
    ours = peer.Ours(args.lib, peer.F32, peer.HALF, tokens, 1, q.ctypes.data,
                     q_out.ctypes.data, k.ctypes.data, k_out.ctypes.data)

    def run():
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin

    peer.check(NAME, row, run(), (q_out, k_out), 1e-6)
    peer.compare(NAME, row, ours, run, args)
    ours.close()
