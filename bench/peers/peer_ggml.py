#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# peer_ggml.py - ggml_rope_ext in place, from a shared library given by path
#
# --ggml is libggml-cpu.so (or one of its variants for a CPU) or a libggml.so that holds
# all; libraries that it needs are looked for beside it.  A graph holds the rotation
# often, so that its dispatch is not what is measured.
import ctypes
import glob
import os

import peer

NAME = "ggml"
TYPES = {peer.F32: 0, peer.F16: 1}
MODES = {peer.HALF: 2, peer.INTER: 0}  # NEOX, NORMAL
args = peer.arguments("--ggml")
if not args.ggml:
    peer.missing(NAME, "no library; ./dev bench --ggml PATH")
try:
    import numpy

    folder = os.path.dirname(os.path.abspath(args.ggml))
    for needed in sorted(glob.glob(f"{folder}/libggml-base*.so*")):
        ctypes.CDLL(needed, ctypes.RTLD_GLOBAL)
    lib = ctypes.CDLL(args.ggml, ctypes.RTLD_GLOBAL)
    base = ctypes.CDLL(None)
    lib.ggml_graph_compute
except (ImportError, OSError, AttributeError) as problem:
    peer.missing(NAME, problem)

pointer, int32, int64, f32 = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64,
                              ctypes.c_float)


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", pointer),
                ("no_alloc", ctypes.c_bool)]


class Plan(ctypes.Structure):  # newer versions append to it
    _fields_ = [("work_size", ctypes.c_size_t), ("work_data", pointer),
                ("n_threads", ctypes.c_int), ("threadpool", pointer),
                ("abort_callback", pointer), ("abort_data", pointer),
                ("room", ctypes.c_char * 64)]


def function(name, result, *types):
    f = getattr(lib, name, None) or getattr(base, name)
    f.restype, f.argtypes = result, list(types)
    return f


init = function("ggml_init", pointer, InitParams)
free = function("ggml_free", None, pointer)
new_tensor_1d = function("ggml_new_tensor_1d", pointer, pointer, ctypes.c_int, int64)
new_tensor_3d = function("ggml_new_tensor_3d", pointer, pointer, ctypes.c_int, int64,
                         int64, int64)
get_data = function("ggml_get_data", pointer, pointer)
rope = function("ggml_rope_ext_inplace", pointer, pointer, pointer, pointer, pointer,
                ctypes.c_int, ctypes.c_int, ctypes.c_int, f32, f32, f32, f32, f32, f32)
new_graph = function("ggml_new_graph", pointer, pointer)
expand = function("ggml_build_forward_expand", None, pointer, pointer)
plan_of = function("ggml_graph_plan", Plan, pointer, ctypes.c_int, pointer)
compute = function("ggml_graph_compute", ctypes.c_int, pointer, ctypes.POINTER(Plan))
function("ggml_cpu_init", None)()


def turned(context, x, positions, mode):
    return rope(context, x, positions, None, peer.HEAD_DIM, mode, 0, 10000.0, 1.0, 0.0,
                1.0, 32.0, 1.0)


for tokens in args.tokens:
    for kind, pairing in ((k, p) for k in TYPES for p in MODES):
        row = f"rope.{peer.DTYPES[kind]}.{peer.PAIRINGS[pairing]}.{tokens}"
        dtype = numpy.float32 if kind == peer.F32 else numpy.float16
        q, q_out, k, k_out = peer.q_and_k(numpy, dtype, tokens)
        context = init(InitParams(q.nbytes + k.nbytes + tokens * 4 + (8 << 20), None,
                                  False))
        tensors = []
        for x in (q, k):
            t = new_tensor_3d(context, TYPES[kind], peer.HEAD_DIM, x.shape[2], tokens)
            ctypes.memmove(get_data(t), x.ctypes.data, x.nbytes)
            tensors.append(t)
        positions = new_tensor_1d(context, 26, tokens)  # I32
        ids = peer.START + numpy.arange(tokens, dtype=numpy.int32)
        ctypes.memmove(get_data(positions), ids.ctypes.data, ids.nbytes)

        def planned(times):
            graph = new_graph(context)
            last = list(tensors)
            for _ in range(times):
                last = [turned(context, t, positions, MODES[pairing]) for t in last]
            for t in last:
                expand(graph, t)
            plan = plan_of(graph, 1, None)
            work = ctypes.create_string_buffer(plan.work_size + 64)
            plan.work_data = ctypes.addressof(work)
            return lambda: (compute(graph, ctypes.byref(plan)), work)

        # Not in place, to be checked; then both in place over their own memory.
        ours = peer.Ours(args.lib, kind, pairing, tokens, 0, q.ctypes.data,
                         q_out.ctypes.data, k.ctypes.data, k_out.ctypes.data)
        ours.close()
        planned(1)()
        got = [numpy.ctypeslib.as_array(
            ctypes.cast(get_data(t), ctypes.POINTER(
                ctypes.c_float if kind == peer.F32 else ctypes.c_uint16)),
            x.shape).view(dtype).astype(numpy.float32)
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
        free(context)
