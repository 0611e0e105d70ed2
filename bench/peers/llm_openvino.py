"""OpenVINO GenAI as a peer of bench/llm: llm_openvino.py MODEL_DIR THREADS single|SEQUENCES; one line of JSON."""

import json
import random
import statistics
import sys
import time

import numpy as np
import openvino as ov
import openvino_genai as genai
from cpu_use import CpuUse

folder, threads, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
# An 8-bit cache and the larger groups for quantized activations are its faster settings.
properties = {"INFERENCE_NUM_THREADS": threads, "KV_CACHE_PRECISION": "u8"}
if folder.endswith("128"):
    properties["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 128
random.seed(1)
use = CpuUse()


def ids(n):
    return np.array([[random.randrange(3, 32000) for _ in range(n)]], np.int64)


def tokens(n):
    config = genai.GenerationConfig()
    config.max_new_tokens = config.min_new_tokens = n
    config.ignore_eos, config.do_sample = True, False
    return config


def single():
    start = time.perf_counter()
    pipe = genai.LLMPipeline(folder, "CPU", ATTENTION_BACKEND="SDPA", **properties)
    load = time.perf_counter() - start

    def generate(n, new):
        x = ids(n)
        inputs = genai.TokenizedInputs(ov.Tensor(x), ov.Tensor(np.ones_like(x)))
        result, ms = use.timed(lambda: pipe.generate(inputs, tokens(new)))
        return ms, result.perf_metrics.raw_metrics.token_infer_durations

    generate(128, 8)
    generate(512, 2)
    use.reset()
    decode, p128, p512 = [], [], []
    for _ in range(4):
        decode += [us / 1e3 for us in generate(128, 33)[1][1:]]
        p128 += [generate(128, 1)[0] for _ in range(3)]
        p512.append(generate(512, 1)[0])
    return dict(
        decode_p50=statistics.median(decode),
        prefill128=statistics.median(p128),
        prefill512=statistics.median(p512),
        load_s=load,
    )


def batch(sequences):
    scheduler = genai.SchedulerConfig()
    scheduler.max_num_seqs, scheduler.cache_size, scheduler.max_num_batched_tokens = sequences, 2, 512
    scheduler.enable_prefix_caching, scheduler.dynamic_split_fuse = False, True
    pipe = genai.ContinuousBatchingPipeline(folder, scheduler, "CPU", properties)
    rates, steps = [], []
    for new in (8, 64, 64, 64):
        handles = [pipe.add_request(i, ov.Tensor(ids(64)), tokens(new)) for i in range(sequences)]
        start, now = time.perf_counter(), []
        while pipe.has_non_finished_requests():
            now.append(use.timed(pipe.step)[1])
        spent = time.perf_counter() - start
        made = sum(len(o.generated_ids) for h in handles for o in h.read_all())
        if new == 64:
            rates.append(made / spent)
            steps += now[-40:]
    return dict(tok_s=statistics.median(rates), step_p50=statistics.median(steps))


reply = single() if what == "single" else batch(int(what))
print(json.dumps(reply | {"cpus": use.cpus()}))
