#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# peer_torch.py - PyTorch: the Hugging Face formula, and view_as_complex
#
# cos and sin are given.  What an old release cannot do in f16 on a CPU is left out.
import peer

args = peer.arguments()
try:
    import numpy
    import torch
except ImportError as problem:
    peer.missing("torch", problem)

torch.set_num_threads(1)
torch.set_grad_enabled(False)


def rotate_half(x):
    half = peer.HEAD_DIM // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def compare(name, kind, dtype, pairing, tokens, bound, make):
    row = f"rope-row.{peer.DTYPES[kind]}.{peer.PAIRINGS[pairing]}.{tokens}"
    arrays = peer.q_and_k(numpy, numpy.float32, tokens)
    q, q_out, k, k_out = (torch.from_numpy(x).to(dtype) for x in arrays)
    ours = peer.Ours(args.lib, kind, pairing, tokens, 1, q.data_ptr(),
                     q_out.data_ptr(), k.data_ptr(), k_out.data_ptr())
    run = make(q, k, *(torch.from_numpy(a) for a in peer.angles(numpy, tokens)))
    got = run()
    peer.check(name, row, [x.float().reshape(-1) for x in got],
               [x.float().reshape(-1) for x in (q_out, k_out)], bound)
    peer.compare(name, row, ours, run, args)
    ours.close()


def hugging_face(q, k, cos, sin):
    cos, sin = (torch.cat((a, a), -1).to(q.dtype)[None, :, None] for a in (cos, sin))

    def run():
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin

    return run


def complex_product(q, k, cos, sin):
    turn = torch.complex(cos.float(), sin.float())[None, :, None]

    def rotate(x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turn).flatten(3).type_as(x)

    return lambda: (rotate(q), rotate(k))


for tokens in args.tokens:
    compare("torch", peer.F32, torch.float32, peer.HALF, tokens, 1e-6, hugging_face)
    # Three roundings to 8 bits each, of values up to 2.
    compare("torch", peer.BF16, torch.bfloat16, peer.HALF, tokens, 4e-2, hugging_face)
    try:
        compare("torch", peer.F16, torch.float16, peer.HALF, tokens, 5e-3, hugging_face)
    except RuntimeError:
        pass
    compare("torch-complex", peer.F32, torch.float32, peer.INTER, tokens, 1e-6,
            complex_product)
