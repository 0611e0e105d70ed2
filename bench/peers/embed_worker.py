"""The peer of `rlx embed` as its own process: lines of text in, an npy file of their vectors out.

usage: python embed_worker.py THREADS MODEL_DIR ONNX TEXTS OUT.npy

OpenVINO with dynamic shapes on batches of 32 texts sorted by length, each padded to its longest text. The ids come from
the package `tokenizers`. Prints one JSON line with the tokens, the seconds of each part, and the CPU utilization of the
runs.
"""

import json
import pathlib
import sys
import time

BEGIN = time.perf_counter()

import numpy as np  # noqa: E402  (its import is part of the start)
import openvino as ov  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

BATCH = 32


def main():
    threads, model, onnx, texts, out = sys.argv[1:6]
    model = pathlib.Path(model)
    seconds = {"start": time.perf_counter() - BEGIN}
    begin = time.perf_counter()
    options = {
        "INFERENCE_NUM_THREADS": int(threads),
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "ENABLE_CPU_PINNING": False,
    }
    request = ov.Core().compile_model(onnx, "CPU", options).create_infer_request()
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    limit = json.loads((model / "sentence_bert_config.json").read_text()).get("max_seq_length", 512)
    tokenizer.enable_truncation(limit)
    tokenizer.no_padding()
    seconds["load"] = time.perf_counter() - begin
    begin = time.perf_counter()
    lines = pathlib.Path(texts).read_text(encoding="utf-8").split("\n")[:-1]
    rows = [e.ids for e in tokenizer.encode_batch(lines)]
    seconds["tokenise"] = time.perf_counter() - begin
    begin, cpu = time.perf_counter(), time.process_time()
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    vectors = None
    for first in range(0, len(order), BATCH):
        batch = order[first : first + BATCH]
        width = len(rows[batch[0]])
        ids = np.zeros((len(batch), width), np.int64)
        mask = np.zeros((len(batch), width), np.int64)
        for r, i in enumerate(batch):
            ids[r, : len(rows[i])] = rows[i]
            mask[r, : len(rows[i])] = 1
        result = request.infer({"ids": ids, "mask": mask})[0]
        if vectors is None:
            vectors = np.empty((len(rows), result.shape[1]), np.float32)
        vectors[batch] = result
    seconds["run"] = time.perf_counter() - begin
    cpus = (time.process_time() - cpu) / seconds["run"]
    begin = time.perf_counter()
    np.save(out, vectors)
    seconds["write"] = time.perf_counter() - begin
    tokens = sum(map(len, rows))
    version = "openvino " + ov.__version__.split("-")[0]
    print(json.dumps({"version": version, "tokens": tokens, "seconds": seconds, "cpus": cpus}))


if __name__ == "__main__":
    main()
