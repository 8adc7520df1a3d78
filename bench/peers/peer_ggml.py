#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# peer_ggml.py - ggml_rope_ext in place, from a shared library given by path (--ggml)
#
# A graph holds the rotation often, so that its dispatch is not what is measured.
import ctypes

import ggml_library
import peer

NAME = "ggml"
TYPES = {peer.F32: ggml_library.F32, peer.F16: ggml_library.F16}
MODES = {peer.HALF: 2, peer.INTER: 0}  # NEOX, NORMAL
args = peer.arguments("--ggml")
if not args.ggml:
    peer.missing(NAME, "no library; ./dev bench --ggml PATH")
try:
    import numpy

    ggml = ggml_library.Library(args.ggml)
    rope = ggml.function("ggml_rope_ext_inplace", *4 * [ctypes.c_void_p],
                         ctypes.c_void_p, *3 * [ctypes.c_int], *6 * [ctypes.c_float])
except (ImportError, OSError, AttributeError) as problem:
    peer.missing(NAME, problem)


def turned(context, x, positions, mode):
    return rope(context, x, positions, None, peer.HEAD_DIM, mode, 0, 10000.0, 1.0, 0.0,
                1.0, 32.0, 1.0)


for tokens in args.tokens:
    for kind, pairing in ((k, p) for k in TYPES for p in MODES):
        row = f"rope.{peer.DTYPES[kind]}.{peer.PAIRINGS[pairing]}.{tokens}"
        dtype = numpy.float32 if kind == peer.F32 else numpy.float16
        q, q_out, k, k_out = peer.q_and_k(numpy, dtype, tokens)
        context = ggml.context(q.nbytes + k.nbytes + tokens * 4 + (8 << 20))
        tensors = [ggml.tensor(context, TYPES[kind], x, peer.HEAD_DIM, x.shape[2],
                               tokens) for x in (q, k)]
        ids = peer.START + numpy.arange(tokens, dtype=numpy.int32)
        positions = ggml.tensor(context, ggml_library.I32, ids, tokens)

        def planned(times):
            last = list(tensors)
            for _ in range(times):
                last = [turned(context, t, positions, MODES[pairing]) for t in last]
            return ggml.planned(context, last)

        # Not in place, to be checked; then both in place over their own memory.
        ours = peer.Ours(args.lib, kind, pairing, tokens, 0, q.ctypes.data,
                         q_out.ctypes.data, k.ctypes.data, k_out.ctypes.data)
        ours.close()
        planned(1)()
        got = [ggml.values(numpy, t, x).astype(numpy.float32)
               for t, x in zip(tensors, (q, k))]
        want = [x.astype(numpy.float32) for x in (q_out, k_out)]
        # Its running product of floats is off by some 2e-4 radians at position 1000,
        # and grows with it.
        peer.check(NAME, row, got, want,
                   (1e-3 if kind == peer.F32 else 4e-3) * (1 + tokens / 1000))
        ours = peer.Ours(args.lib, kind, pairing, tokens, 0, q.ctypes.data,
                         q.ctypes.data, k.ctypes.data, k.ctypes.data)
        times = 16 if tokens < 512 else 1
        peer.compare(NAME, row, ours, planned(times), args, times)
        ours.close()
        ggml.free(context)
