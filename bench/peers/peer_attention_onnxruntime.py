#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# peer_attention_onnxruntime.py - ONNX Runtime's GroupQueryAttention, causal, float32
#
# Without bias, and with ALiBi as an array, (heads, tokens, tokens), which is how the
# operator takes it; the array is made beforehand.  Inputs and outputs are bound.
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

TOKENS = peer.ATTENTION_TOKENS


def model(has_bias):
    value, f32 = helper.make_tensor_value_info, TensorProto.FLOAT
    widths = {"q": peer.Q_HEADS, "k": peer.K_HEADS, "v": peer.K_HEADS}
    past = [1, peer.K_HEADS, 0, peer.HEAD_DIM]
    present = [1, peer.K_HEADS, TOKENS, peer.HEAD_DIM]
    inputs = [value(name, f32, [1, TOKENS, heads * peer.HEAD_DIM])
              for name, heads in widths.items()]
    inputs += [value("past_k", f32, past), value("past_v", f32, past),
               value("lens", TensorProto.INT32, [1]),
               value("total", TensorProto.INT32, [])]
    names = ["q", "k", "v", "past_k", "past_v", "lens", "total"]
    if has_bias:
        inputs.append(value("bias", f32, [1, peer.Q_HEADS, TOKENS, TOKENS]))
        names += ["", "", "", "bias"]  # no cos, sin and position_ids
    outputs = [value("out", f32, [1, TOKENS, peer.Q_HEADS * peer.HEAD_DIM]),
               value("k_out", f32, present), value("v_out", f32, present)]
    node = helper.make_node(
        "GroupQueryAttention", names, ["out", "k_out", "v_out"],
        domain="com.microsoft", num_heads=peer.Q_HEADS, kv_num_heads=peer.K_HEADS)
    graph = helper.make_graph([node], "attend", inputs, outputs)
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])


def session(has_bias):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        model(has_bias).SerializeToString(), options,
        providers=["CPUExecutionProvider"])


for has_bias, row in ((0, f"attention.none.{TOKENS}"),
                      (1, f"attention.alibi.{TOKENS}")):
    q, k, v, out = peer.attention_arrays(numpy, numpy.float32, 1)
    try:
        runner = session(has_bias)
    except Exception as problem:  # a build whose operator has no such input
        peer.missing(NAME, f"{row}: {problem}")
    empty = numpy.empty((1, peer.K_HEADS, 0, peer.HEAD_DIM), numpy.float32)
    given = {"q": q.reshape(1, TOKENS, -1), "k": k.reshape(1, TOKENS, -1),
             "v": v.reshape(1, TOKENS, -1), "past_k": empty, "past_v": empty,
             "lens": numpy.array([TOKENS - 1], numpy.int32),
             "total": numpy.array(TOKENS, numpy.int32)}
    if has_bias:
        given["bias"] = peer.alibi(numpy, 0)  # what is hidden, the operator knows
    binding = runner.io_binding()
    for name, value in given.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
    for name in ("out", "k_out", "v_out"):
        binding.bind_output(name)
    ours = peer.OurAttention(args.lib, peer.F32, TOKENS, 1, has_bias, [q, k, v, out])

    def run():
        runner.run_with_iobinding(binding)

    run()
    got = binding.get_outputs()[0].numpy().reshape(out.shape)
    peer.check(NAME, row, [got], [out], 1e-5)
    peer.compare(NAME, row, ours, run, args)
    ours.close()
