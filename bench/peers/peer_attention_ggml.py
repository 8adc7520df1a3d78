#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# peer_attention_ggml.py - ggml_flash_attn_ext, from a shared library given by path (--ggml)
#
# k and v are float16, as its caches are, and ours of the same; its mask is float16, too,
# and with ALiBi holds distances, which it multiplies by the slopes.
import ctypes

import ggml_library
import peer

NAME = "ggml"
TOKENS = peer.ATTENTION_TOKENS
args = peer.arguments("--ggml")
if not args.ggml:
    peer.missing(NAME, "no library for attention; ./dev bench --ggml PATH")
try:
    import numpy

    ggml = ggml_library.Library(args.ggml)
    attend = ggml.function("ggml_flash_attn_ext", *6 * [ctypes.c_void_p],
                           *3 * [ctypes.c_float])
except (ImportError, OSError, AttributeError) as problem:
    peer.missing(NAME, problem)

at = numpy.arange(TOKENS)
away = (at[:, None] - at).astype(numpy.float32)
for has_alibi, row in ((0, f"attention.none.{TOKENS}"), (1, f"attention.alibi.{TOKENS}")):
    arrays = peer.attention_arrays(numpy, numpy.float16, 0)
    q, k, v, out = arrays
    seen = -away if has_alibi else numpy.zeros_like(away)
    mask = numpy.where(away < 0, -numpy.inf, seen).astype(numpy.float16)
    context = ggml.context(sum(x.nbytes for x in arrays) + mask.nbytes + (16 << 20))
    tensors = [ggml.tensor(context, ggml_library.F32 if x is q else ggml_library.F16, x,
                           peer.HEAD_DIM, TOKENS, x.shape[1]) for x in (q, k, v)]
    masked = ggml.tensor(context, ggml_library.F16, mask, TOKENS, TOKENS)
    result = attend(context, *tensors, masked, peer.HEAD_DIM ** -0.5,
                    8.0 if has_alibi else 0.0, 0.0)
    run = ggml.planned(context, [result])
    ours = peer.OurAttention(args.lib, peer.F16, TOKENS, 0, has_alibi, arrays)
    run()
    want = numpy.ascontiguousarray(out.transpose(0, 2, 1, 3))
    peer.check(NAME, row, [ggml.values(numpy, result, want)], [want], 2e-3)
    peer.compare(NAME, row, ours, run, args)
    ours.close()
    ggml.free(context)
