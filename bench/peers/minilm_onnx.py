"""The sentence encoder as an ONNX file, from model.safetensors, in the graph patterns that ONNX engines fuse.

usage: python minilm_onnx.py MODEL_DIR OUT.onnx [--fused OUT2.onnx]
The operations are those of an export of the usual BERT code: separate query, key and value matmuls with transposed
weights, the mask added before the softmax, gelu by erf, LayerNormalization. `--fused` also writes the graph after ONNX
Runtime's offline optimizer for transformers (fused attention, bias + gelu, skip + norm).
"""

import argparse
import json
import math
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from weights_file import read_safetensors


class Builder:
    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], 0

    def constant(self, value, name=None):
        if name is None:
            self.count += 1
            name = f"c{self.count}"
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def __getattr__(self, op):
        def emit(*inputs, **attributes):
            self.count += 1
            out = f"{op}_{self.count}"
            self.nodes.append(helper.make_node(op, list(inputs), [out], name=out, **attributes))
            return out

        return emit


def build(folder):
    config = json.loads((folder / "config.json").read_text())
    weights = read_safetensors(folder / "model.safetensors")
    hidden, heads, eps = config["hidden_size"], config["num_attention_heads"], config["layer_norm_eps"]
    b = Builder()
    integers = lambda *v: b.constant(np.array(v, np.int64))
    scalar = lambda v: b.constant(np.array(v, np.float32))

    def linear(x, name):
        y = b.MatMul(x, b.constant(weights[name + ".weight"].T, name + ".weight_t"))
        return b.Add(b.constant(weights[name + ".bias"], name + ".bias"), y)

    def norm(x, name):
        return b.LayerNormalization(
            x,
            b.constant(weights[name + ".weight"], name + ".weight"),
            b.constant(weights[name + ".bias"], name + ".bias"),
            axis=-1,
            epsilon=eps,
        )

    def split(x):
        return b.Reshape(x, integers(0, 0, heads, hidden // heads))

    sequence = b.Slice(b.Shape("ids"), integers(1), integers(2))
    positions = b.Slice(
        b.constant(weights["embeddings.position_embeddings.weight"]), integers(0), sequence, integers(0)
    )
    x = b.Add(b.Gather(b.constant(weights["embeddings.word_embeddings.weight"]), "ids"), positions)
    x = norm(b.Add(x, b.constant(weights["embeddings.token_type_embeddings.weight"][0])), "embeddings.LayerNorm")
    mask = b.Cast("mask", to=TensorProto.FLOAT)
    visible = b.Cast(b.Unsqueeze(b.Unsqueeze("mask", integers(1)), integers(2)), to=TensorProto.FLOAT)
    bias = b.Mul(b.Sub(scalar(1), visible), scalar(-10000))
    for i in range(config["num_hidden_layers"]):
        p = f"encoder.layer.{i}."
        q = b.Transpose(split(linear(x, p + "attention.self.query")), perm=[0, 2, 1, 3])
        k = b.Transpose(split(linear(x, p + "attention.self.key")), perm=[0, 2, 3, 1])
        v = b.Transpose(split(linear(x, p + "attention.self.value")), perm=[0, 2, 1, 3])
        scores = b.Softmax(b.Add(b.Div(b.MatMul(q, k), scalar(math.sqrt(hidden // heads))), bias), axis=-1)
        context = b.Reshape(b.Transpose(b.MatMul(scores, v), perm=[0, 2, 1, 3]), integers(0, 0, hidden))
        x = norm(b.Add(linear(context, p + "attention.output.dense"), x), p + "attention.output.LayerNorm")
        h = linear(x, p + "intermediate.dense")
        h = b.Mul(b.Mul(h, b.Add(b.Erf(b.Div(h, scalar(math.sqrt(2)))), scalar(1))), scalar(0.5))
        x = norm(b.Add(linear(h, p + "output.dense"), x), p + "output.LayerNorm")
    tokens = b.Mul(x, b.Unsqueeze(mask, integers(2)))
    pooled = b.Div(b.ReduceSum(tokens, integers(1), keepdims=0), b.ReduceSum(mask, integers(1), keepdims=1))
    out = b.Div(pooled, b.ReduceL2(pooled, axes=[1], keepdims=1))
    b.nodes.append(helper.make_node("Identity", [out], ["emb"]))
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        b.nodes,
        "minilm",
        [info("ids", TensorProto.INT64, ["b", "s"]), info("mask", TensorProto.INT64, ["b", "s"])],
        [info("emb", TensorProto.FLOAT, ["b", hidden])],
        b.initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model, heads, hidden


def fuse(path, out, heads, hidden):
    """ONNX Runtime's basic optimizations, then its fusions for BERT: its optimize_model() without PyTorch."""
    import onnxruntime as ort
    from onnxruntime.transformers import optimizer

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(out)
    ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return optimizer.optimize_by_fusion(onnx.load(out), model_type="bert", num_heads=heads, hidden_size=hidden)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--fused", type=pathlib.Path)
    args = parser.parse_args()
    model, heads, hidden = build(args.model)
    onnx.save(model, args.out)
    if args.fused:
        fused = fuse(args.out, args.fused, heads, hidden)
        print("ONNX Runtime fused:", {k: v for k, v in fused.get_fused_operator_statistics().items() if v})
        fused.save_model_to_file(str(args.fused))


if __name__ == "__main__":
    main()
