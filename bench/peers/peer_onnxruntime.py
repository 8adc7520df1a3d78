#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# peer_onnxruntime.py - ONNX Runtime's RotaryEmbedding, its cache given
#
# Inputs and outputs are bound beforehand, so a run is its dispatch and its kernels.
# It writes to other memory than it reads.  "onnxruntime" is against us in place, as an
# engine would call either; "onnxruntime-apart" against us writing to other memory, too.
import peer

NAME = "onnxruntime"
args = peer.arguments()
try:
    import numpy
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError as problem:
    peer.missing(NAME, problem)


def model(element, tokens):
    value = helper.make_tensor_value_info
    table = [peer.START + tokens, peer.HEAD_DIM // 2]
    inputs = [value("position_ids", TensorProto.INT64, [1, tokens]),
              value("cos", element, table), value("sin", element, table)]
    outputs, nodes = [], []
    for name, heads in (("q", peer.Q_HEADS), ("k", peer.K_HEADS)):
        shape = [1, tokens, heads * peer.HEAD_DIM]
        inputs.append(value(name, element, shape))
        outputs.append(value(name + "_out", element, shape))
        nodes.append(helper.make_node(
            "RotaryEmbedding", [name, "position_ids", "cos", "sin"], [name + "_out"],
            domain="com.microsoft", interleaved=0, num_heads=heads,
            rotary_embedding_dim=peer.HEAD_DIM))
    graph = helper.make_graph(nodes, "rotate", inputs, outputs)
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])


def session(element, tokens):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model(element, tokens).SerializeToString(), options,
        providers=["CPUExecutionProvider"])


for tokens in args.tokens:
    for kind, dtype, element, bound in (
            (peer.F32, numpy.float32, TensorProto.FLOAT, 1e-6),
            (peer.F16, numpy.float16, TensorProto.FLOAT16, 3e-3)):
        row = f"rope-row.{peer.DTYPES[kind]}.half.{tokens}"
        q, q_out, k, k_out = peer.q_and_k(numpy, dtype, tokens)
        try:
            runner = session(element, tokens)
        except Exception as problem:  # a build without this type's kernel
            peer.missing(NAME, f"{row}: {problem}")
        cos, sin = (numpy.concatenate((numpy.zeros((peer.START, a.shape[1])), a))
                    .astype(dtype) for a in peer.angles(numpy, tokens))
        ids = peer.START + numpy.arange(tokens, dtype=numpy.int64)[None]
        given = {"q": q.reshape(1, tokens, -1), "k": k.reshape(1, tokens, -1),
                 "position_ids": ids, "cos": cos, "sin": sin}
        binding = runner.io_binding()
        for name, value in given.items():
            binding.bind_ortvalue_input(
                name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
        results = {n: onnxruntime.OrtValue.ortvalue_from_numpy(numpy.empty_like(given[n]))
                   for n in ("q", "k")}
        for name, value in results.items():
            binding.bind_ortvalue_output(name + "_out", value)
        ours = peer.Ours(args.lib, kind, peer.HALF, tokens, 1, q.ctypes.data,
                         q_out.ctypes.data, k.ctypes.data, k_out.ctypes.data)

        def run():
            runner.run_with_iobinding(binding)

        run()
        got = [results[n].numpy().astype(numpy.float32) for n in ("q", "k")]
        want = [x.reshape(1, tokens, -1).astype(numpy.float32) for x in (q_out, k_out)]
        peer.check(NAME, row, got, want, bound)
        peer.compare(NAME + "-apart", row, ours, run, args)
        ours.close()
        ours = peer.Ours(args.lib, kind, peer.HALF, tokens, 1, q.ctypes.data,
                         q.ctypes.data, k.ctypes.data, k.ctypes.data)
        peer.compare(NAME, row, ours, run, args)
        ours.close()
