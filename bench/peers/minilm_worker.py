"""One peer engine in its own process: a JSON request per line in, median latency out.

usage: python minilm_worker.py ENGINE THREADS MODEL_DIR ONNX      ENGINE: openvino, onnxruntime, torch
Request: {"batch", "seq", "seconds", "runs"}; answer: {"p50_us", "p10_us", "n", "cpus", "compile_ms",
"check"}. cpus is CPU time over wall time.
"""

import json
import pathlib
import sys
import time

import numpy as np


def inputs(batch, seq):
    ids = 1000 + (np.arange(batch)[:, None] * 131 + np.arange(seq)[None, :] * 17) % 20000
    return ids.astype(np.int64), np.ones((batch, seq), np.int64)


def openvino(threads, model, onnx):
    import openvino as ov

    core = ov.Core()
    options = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "ENABLE_CPU_PINNING": False,
    }
    graph = core.read_model(onnx)

    def make(batch, seq):
        static = graph.clone()
        static.reshape({"ids": [batch, seq], "mask": [batch, seq]})
        request = core.compile_model(static, "CPU", options).create_infer_request()
        tensors = [ov.Tensor(a) for a in inputs(batch, seq)]
        for name, tensor in zip(("ids", "mask"), tensors):
            request.set_tensor(name, tensor)

        def run():
            request.infer()
            return request.get_output_tensor(0).data

        run.keep = tensors
        return run

    return make, "openvino " + ov.__version__.split("-")[0]


def onnxruntime(threads, model, onnx):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = ort.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])

    def make(batch, seq):
        ids, mask = inputs(batch, seq)
        return lambda: session.run(None, {"ids": ids, "mask": mask})[0]

    return make, "onnxruntime " + ort.__version__


def torch(threads, model, onnx):
    import math

    import torch as t
    import torch.nn.functional as f
    from weights_file import read_safetensors

    t.set_num_threads(threads)
    config = json.loads((pathlib.Path(model) / "config.json").read_text())
    heads, eps = config["num_attention_heads"], config["layer_norm_eps"]
    w = {
        name: t.from_numpy(v.copy()) for name, v in read_safetensors(pathlib.Path(model) / "model.safetensors").items()
    }
    linear = lambda x, n: f.linear(x, w[n + ".weight"], w[n + ".bias"])
    norm = lambda x, n: f.layer_norm(x, x.shape[-1:], w[n + ".weight"], w[n + ".bias"], eps)

    def encode(ids, mask):
        batch, seq = ids.shape
        split = lambda x: x.view(batch, seq, heads, -1).transpose(1, 2)
        x = f.embedding(ids, w["embeddings.word_embeddings.weight"]) + w["embeddings.position_embeddings.weight"][:seq]
        x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        bias = (1.0 - mask[:, None, None, :]) * -10000.0
        for i in range(config["num_hidden_layers"]):
            p = f"encoder.layer.{i}."
            q, k, v = (split(linear(x, p + "attention.self." + n)) for n in ("query", "key", "value"))
            a = f.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).reshape(batch, seq, -1)
            x = norm(x + linear(a, p + "attention.output.dense"), p + "attention.output.LayerNorm")
            x = norm(
                x + linear(f.gelu(linear(x, p + "intermediate.dense")), p + "output.dense"), p + "output.LayerNorm"
            )
        x = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        return x / x.norm(dim=-1, keepdim=True)

    def make(batch, seq):
        ids, mask = map(t.from_numpy, inputs(batch, seq))
        mask = mask.float()

        def run():
            with t.inference_mode():
                return encode(ids, mask).numpy()

        return run

    return make, "torch " + t.__version__.split("+")[0]


def measure(run, seconds, runs):
    start = time.perf_counter()
    for i in range(50):
        out = run()
        if i >= 2 and time.perf_counter() - start > 0.1:
            break
    times, cpu, begin = [], time.process_time(), time.perf_counter()
    while True:
        a = time.perf_counter()
        out = run()
        b = time.perf_counter()
        times.append((b - a) * 1e6)
        spent = b - begin
        if (spent > seconds and len(times) >= 3) or (len(times) >= runs and spent > 0.1 * seconds):
            break
    cpus = (time.process_time() - cpu) / (time.perf_counter() - begin)
    times.sort()
    n = len(times)
    return {
        "cpus": cpus,
        "p50_us": times[(n - 1) // 2],
        "p10_us": times[(n - 1) // 10],
        "n": n,
        "check": f"{out[0, 0]:.5f} {out[0, 1]:.5f} {out[-1, -1]:.5f}",
    }


def serve(make, version):
    """Answers requests on standard input, one per line, with the runs of `make(batch, seq)`."""
    print(json.dumps({"version": version}), flush=True)
    compiled, compile_ms = {}, {}
    for line in sys.stdin:
        r = json.loads(line)
        shape = r["batch"], r["seq"]
        if shape not in compiled:
            start = time.perf_counter()
            compiled[shape] = make(*shape)
            out = compiled[shape]()
            compile_ms[shape] = (time.perf_counter() - start) * 1e3
            assert np.isfinite(out).all()
        print(
            json.dumps(measure(compiled[shape], r["seconds"], r["runs"]) | {"compile_ms": compile_ms[shape]}),
            flush=True,
        )


def main():
    engine, threads, model, onnx = sys.argv[1:5]
    serve(*{"openvino": openvino, "onnxruntime": onnxruntime, "torch": torch}[engine](int(threads), model, onnx))


if __name__ == "__main__":
    main()
