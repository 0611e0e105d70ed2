#!/usr/bin/env python3
"""Stands in for `rlx` and the programs of bench/ in tests of the scripts around them. It takes the arguments and prints
the output of the program whose name it has. The figures are made up: the file FAKE_US of the build says the time.
"""

import json
import pathlib
import sys

name, arguments = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
file = next((f for f in (pathlib.Path(p) / "FAKE_US" for p in pathlib.Path(sys.argv[0]).parents) if f.exists()), None)
US = float(file.read_text()) if file else 1000.0


def say(**fields):
    print(json.dumps(fields), flush=True)


if name == "rlx" and arguments[:1] == ["bench"]:
    for shape in arguments[arguments.index("--shapes") + 1].split(","):
        say(shape=shape, p50_us=US, check="0.1 0.2 0.3")
elif name in ("gemm_worker", "train_worker"):
    say(version="fake")
    for line in sys.stdin:
        say(p50_us=US, error=0, cpus=1.0)
elif name == "tpu_worker":
    say(open_ms=1, compile_ms=10, weights_ms=1, first_ms=1, check=0.5, target="fake")
    for line in sys.stdin:
        say(us=[US] * int(line))
elif name == "compile_worker" and not arguments:
    print("chain\ntransforms")
elif name == "compile_worker" and arguments[0] == "transforms":
    say(build=0.1, print=US / 1e6, peak_mb=3)
elif name == "compile_worker":
    say(build=0.1, nodes=10, compile=US / 1e6, set_param=0.1, make_inputs=0.1, run=0.1, run_again=0.1, peak_mb=5)
elif name == "tokenizer":
    print(f"load {US / 1e3:.1f} ms, whole 20.5 MB/s, lines 19.2 MB/s, decode 100.3 MB/s, 500 tokens, 510 by lines")
elif name == "language_model":
    say(decode_p50=US, prefill128=US, prefill512=US, load_s=1, cpus=1.9, tok_s=1e6 / US, step_p50=US)
