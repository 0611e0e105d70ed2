"""onnxruntime-genai as a peer of bench/llm: llm_onnxruntime.py MODEL_DIR THREADS single|SEQUENCES; a line of JSON."""

import json
import statistics
import sys
import time

import numpy as np
import onnxruntime_genai as genai
from cpu_use import CpuUse

folder, threads, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
config = genai.Config(folder)
options = {"intra_op_num_threads": threads, "inter_op_num_threads": 1}
config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
start = time.perf_counter()
model = genai.Model(config)
load = time.perf_counter() - start
rng = np.random.default_rng(1)
use = CpuUse()


def begin(sequences, n, length=1024):
    """A generator after a prompt of n tokens, and the milliseconds of the prompt."""
    params = genai.GeneratorParams(model)
    params.set_search_options(max_length=length, min_length=length, do_sample=False, batch_size=sequences)
    generator = genai.Generator(model, params)
    x = rng.integers(3, 32000, (sequences, n)).astype(np.int32)
    return generator, use.timed(lambda: generator.append_tokens(x if sequences > 1 else x[0]))[1]


def steps(generator, count):
    return [use.timed(generator.generate_next_token)[1] for _ in range(count)]


if what == "single":
    steps(begin(1, 128)[0], 6)
    begin(1, 512)
    use.reset()
    decode, p128, p512 = [], [], []
    for _ in range(4):
        generator, ms = begin(1, 128, 256)
        p128.append(ms)
        decode += steps(generator, 34)[2:]
        p128 += [begin(1, 128, 256)[1] for _ in range(2)]
        p512.append(begin(1, 512)[1])
    reply = dict(
        decode_p50=statistics.median(decode),
        prefill128=statistics.median(p128),
        prefill512=statistics.median(p512),
        load_s=load,
    )
else:
    rates, late = [], []
    for repeat in range(4):
        generator, ms = begin(int(what), 64, 256)
        spent = steps(generator, 64)
        if repeat:
            rates.append(int(what) * 64 / ((ms + sum(spent)) / 1e3))
            late += spent[20:]
    reply = dict(tok_s=statistics.median(rates), step_p50=statistics.median(late))
print(json.dumps(reply | {"cpus": use.cpus()}))
