#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# peer_attention_torch.py - PyTorch's scaled_dot_product_attention, ALiBi as its mask
#
# It knows no groups of heads in old releases: k and v are repeated beforehand.  Releases
# before 2 have the function under a leading underscore.
import peer

NAME = "torch"
args = peer.arguments()
try:
    import numpy
    import torch
    from torch.nn import functional
except ImportError as problem:
    peer.missing(NAME, problem)

torch.set_num_threads(1)
torch.set_grad_enabled(False)
attend = getattr(functional, "scaled_dot_product_attention", None)
if attend is None:
    old = getattr(functional, "_scaled_dot_product_attention", None)
    if old is None:
        peer.missing(NAME, f"{torch.__version__} has no scaled_dot_product_attention")

    def attend(*tensors, attn_mask):
        return old(*tensors, attn_mask=attn_mask)[0]

row = f"attention.alibi.{peer.ATTENTION_TOKENS}"
arrays = peer.attention_arrays(numpy, numpy.float32, 0)
ours = peer.OurAttention(args.lib, peer.F32, peer.ATTENTION_TOKENS, 0, 1, arrays)
q, k, v, out = (torch.from_numpy(x) for x in arrays)
k, v = (x.repeat_interleave(peer.Q_HEADS // peer.K_HEADS, 1) for x in (k, v))
mask = torch.from_numpy(peer.alibi(numpy, -numpy.inf))


def run():
    return attend(q, k, v, attn_mask=mask)


peer.check(NAME, row, [run()], [out], 1e-5)
peer.compare(NAME, row, ours, run, args)
ours.close()
