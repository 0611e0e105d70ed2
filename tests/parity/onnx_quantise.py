#!/usr/bin/env python3
"""Runs ONNX's node tests of quantised values (PyPI onnx 1.22.0) through `rlx run`.

    onnx_quantise.py [--rlx build/dev/rlx] [--device NAME]...

QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, every case whose dtypes rlx has (there is no 2-bit integer).
Exit status 0 when codes are equal and numbers agree to 1e-6.
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

NAMES = {
    TensorProto.FLOAT: "f32",
    TensorProto.FLOAT16: "f16",
    TensorProto.UINT8: "u8",
    TensorProto.INT8: "i8",
    TensorProto.UINT16: "u16",
    TensorProto.INT16: "i16",
    TensorProto.UINT4: "u4",
    TensorProto.INT4: "i4",
    TensorProto.FLOAT8E4M3FN: "f8e4m3",
    TensorProto.FLOAT8E5M2: "f8e5m2",
    TensorProto.FLOAT4E2M1: "f4e2m1",
}


def tensor(path):
    proto = onnx.TensorProto()
    with open(path, "rb") as f:
        proto.ParseFromString(f.read())
    return proto


def constant(proto, dims):
    """The tensor as a constant of graph text: its numbers, so that packing is ours."""
    values = numpy_helper.to_array(proto).astype(np.float64).ravel()
    dtype = NAMES[proto.data_type]
    numbers = ", ".join(repr(float(v)) if dtype[0] in "fb" else str(int(v)) for v in values)
    return f"constant() {{value = {dims} {dtype} {{{numbers}}}}} : {dims} {dtype}"


def graph_of(node, inputs):
    """The graph's text; codes leave it as f32, which holds them all."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    x = list(inputs[0].dims)
    lines = [constant(inputs[0], x)]
    named = []
    per_tensor = len(inputs) < 2 or int(np.prod(inputs[1].dims)) == 1
    for name, proto in zip(("scale", "zero_point"), inputs[1:]):
        named.append(f"{name}=%{len(lines)}")
        lines.append(constant(proto, [] if per_tensor else list(proto.dims)))
    attrs = []
    if not per_tensor:
        axis = attributes.get("axis", 1)
        attrs.append(f"axis = {axis + len(x) if axis < 0 else axis}")
        if attributes.get("block_size", 0):
            attrs.append(f"block = {attributes['block_size']}")
    operands = ", ".join(["%0"] + named)
    if node.op_type == "DynamicQuantizeLinear":
        lines.append(f"dynamic_quantize(%0) {{symmetric = false}} : {x} u8, [] f32, [] u8")
        at = len(lines) - 1
        body = [f"  %{i} = {line}" for i, line in enumerate(lines[:-1])] + [f"  %{at}:3 = {lines[-1]}"]
        body += [f"  %c = cast(%{at}#0) : {x} f32", f"  %z = cast(%{at}#2) : [] f32", f"  return %c, %{at}#1, %z"]
    else:
        op = "quantize" if node.op_type == "QuantizeLinear" else "dequantize"
        if op == "quantize":
            code = NAMES[inputs[2].data_type if len(inputs) > 2 else attributes.get("output_dtype", TensorProto.UINT8)]
        else:
            code = NAMES[inputs[1].data_type]
        lines.append(f"{op}({operands}) {{{', '.join(attrs)}}} : {x} {code}".replace(" {}", ""))
        body = [f"  %{i} = {line}" for i, line in enumerate(lines)]
        body += [f"  %c = cast(%{len(lines) - 1}) : {x} f32", "  return %c"]
    return "graph @onnx {\n" + "\n".join(body) + "\n}\n"


def run(rlx, text, extra):
    with tempfile.TemporaryDirectory() as folder:
        graph, out = os.path.join(folder, "graph.rlx"), os.path.join(folder, "out.npz")
        with open(graph, "w") as f:
            f.write(text)
        done = subprocess.run([rlx, "run", graph, "--output", out] + extra, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() + "\n" + text)
        with np.load(out) as arrays:
            return [arrays[f"out{i}"] for i in range(len(arrays.files))]


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rlx", default=os.path.join(root, "build", "dev", "rlx"), help="the rlx command")
    parser.add_argument("--device", action="append", default=[], help="also run on this device")
    args = parser.parse_args()
    ways = [("oracle", ["--oracle"])] + [(device, ["--device", device]) for device in args.device]
    cases = failures = 0
    folder = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "node")
    for case in sorted(glob.glob(os.path.join(folder, "test_*quantizelinear*"))):
        model = onnx.load(os.path.join(case, "model.onnx"))
        data = os.path.join(case, "test_data_set_0")
        inputs = [tensor(p) for p in sorted(glob.glob(os.path.join(data, "input_*.pb")))]
        outputs = [tensor(p) for p in sorted(glob.glob(os.path.join(data, "output_*.pb")))]
        if len(model.graph.node) != 1 or any(p.data_type not in NAMES for p in inputs + outputs):
            continue
        cases += 1
        expected = [numpy_helper.to_array(p).astype(np.float64) for p in outputs]
        for way, extra in ways:
            try:
                actual = run(args.rlx, graph_of(model.graph.node[0], inputs), extra)
                good = all(np.allclose(a.reshape(e.shape), e, rtol=1e-6, atol=0) for a, e in zip(actual, expected))
                problem = None if good else f"gives {actual}, expected {expected}"
            except RuntimeError as e:
                problem = str(e)
            if problem:
                failures += 1
                print(f"FAIL {os.path.basename(case)}, {way}: {problem}")
    print(f"ONNX's quantised node tests: {cases} cases, {len(ways)} ways each, {failures} disagreements")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
