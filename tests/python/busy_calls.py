"""Calls of every object of rlx, made on several threads: at the end of the interpreter, around a fork. Each entry of
`calls(folder)` is a function without arguments that returns something to compare, or None.

    python busy_calls.py exit FOLDER CALL...    daemon threads are inside of these calls when the interpreter ends
    python busy_calls.py fork FOLDER COUNT      threads are inside of all calls while the process forks COUNT times
"""

import os
import pathlib
import random
import signal
import sys
import threading
import time

import numpy as np
import rlx
import rlx.formats
import rlx.models
import rlx.numpy as rnp

USED_AT_FORK = "was in use by another thread when this process was forked"


def numbers(x):
    return [np.asarray(leaf).tobytes() for leaf in rlx.tree.leaves(x)]


def calls(folder):
    folder = pathlib.Path(folder)
    x, w = np.linspace(-1, 1, 60 * 60, dtype=np.float32).reshape(60, 60), np.eye(60, dtype=np.float32)
    f = rlx.jit(lambda a: rnp.sin(a) @ a)
    loop = rlx.jit(lambda a: rlx.fori_loop(0, 50, lambda i, c: rnp.tanh(c @ a), a))
    donated = rlx.jit(lambda a: a + 1, donate_argnums=0)
    called_back = rlx.jit(lambda a: rlx.pure_callback(lambda v: np.tanh(v), rlx.ShapeDtype((60, 60), "float32"), a) + 1)

    g = rlx.Graph("net")
    g.set_outputs(rnp.tanh(g.input("x", (60, 60)) @ g.param("w", (60, 60))))
    program = rlx.Session().compile(g)
    program.set_param("w", w)
    g = rlx.Graph("count")
    n = g.state("n", np.float32(0))
    g.set_state("n", n + 1)
    g.set_outputs(g.input("x", (60, 60)) * 2)
    counting = rlx.Session().compile(g)
    saved = f.lower(x).compile()
    if not (folder / "one.safetensors").exists():  # a child must not write what its parent reads
        saved.save(folder / "saved.rlx")
        rlx.save_safetensors(folder / "one.safetensors", {"w": w})

    model, idle_model = rlx.models.load(folder / "model"), rlx.models.load(folder / "model")
    texts = ["one", "two three", "the other"]
    encoder = rlx.SentenceEncoder(folder / "encoder") if (folder / "encoder").exists() else None
    reranker = rlx.Reranker(folder / "reranker") if (folder / "reranker").exists() else None

    def set_param():
        program.set_param("w", w)

    def stateful():
        counting.run(x)
        counting.write_state("n", np.float32(1))
        counting.reset()
        return numbers(counting.run(x))

    def logits():
        idle_model.reset()
        return numbers(idle_model.logits(model.tokenizer.encode("the other")))

    out = {
        "jit": lambda: numbers(f(x)),
        "trace": lambda: numbers(rlx.jit(lambda a: rnp.cos(a) @ a)(x)),
        "grad": lambda: numbers(rlx.grad(lambda a: rnp.sum(rnp.sin(a @ a)))(x)),
        "vmap": lambda: numbers(rlx.vmap(lambda a: rnp.sum(a * a))(x)),
        "eager": lambda: numbers(rnp.exp(rnp.asarray(x)) + 1),
        "loop": lambda: numbers(loop(x)),
        "donated": lambda: numbers(donated(rlx.array(x))),
        "callback": lambda: numbers(called_back(x)),
        "run": lambda: numbers(program.run(x)),
        "set_param": set_param,
        "clone": lambda: numbers(program.clone().run(x)),
        "reports": lambda: len(program.plan() + program.fusion_report() + program.dispatch_report()),
        "states": stateful,
        "compile": lambda: numbers(rlx.Session().compile(rlx.trace(lambda a: a @ a + 1, x)).run(x)),
        "program": lambda: numbers(saved(x)),
        "load": lambda: numbers(rlx.load(folder / "saved.rlx")(x)),
        "safetensors": lambda: numbers(rlx.load_safetensors(folder / "one.safetensors")),
        "load_params": lambda: program.load_params(folder / "one.safetensors"),
        "random": lambda: numbers(rlx.random.normal(rlx.random.key(3), (100,))),
        "generate": lambda: str(model.generate("the one", max_new_tokens=3, temperature=0).text),
        "logits": logits,
        "tokenize": lambda: list(model.tokenizer.encode("the other one and the next " * 20)),
    }
    if encoder:
        out["embed"] = lambda: numbers(encoder.embed(texts))
    if reranker:
        out["score"] = lambda: numbers(reranker.score("one", texts))
    return out


def forever(call, failures):
    while True:
        try:
            call()
        except Exception as e:  # what a call says at the end of the process is nobody's business
            failures.append(e)


def at_exit(folder, names):
    """Ends while a daemon thread is inside of each of the calls; the process must end with status 0."""
    known = calls(folder)
    for name in names or known:
        known[name]()
    for name in names or known:
        threading.Thread(target=forever, args=(known[name], []), daemon=True).start()
    time.sleep(0.2 + random.random() * 0.05)


def around_forks(folder, count):
    """Forks while threads are inside of all calls. In the child each call gives its result or says what was in use."""
    known = calls(folder)
    want = {name: call() for name, call in known.items()}
    failures = []
    for call in known.values():
        threading.Thread(target=forever, args=(call, failures), daemon=True).start()
    bad = []
    for i in range(count):
        time.sleep(random.Random(i).random() * 0.02)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(120)
            says = ""
            for name, call in known.items():
                os.write(write, f"{name} ".encode())
                try:
                    if call() != want[name]:
                        says += f"{name}: another result. "
                except rlx.Error as e:
                    if USED_AT_FORK not in str(e):
                        says += f"{name}: {e}. "
            try:
                for name, call in calls(folder).items():  # what is made in the child works
                    os.write(write, f"new {name} ".encode())
                    if call() != want[name]:
                        says += f"new {name}: another result. "
            except Exception as e:
                says += f"new: {e!r}. "
            os.write(write, b"\n" + says.encode())
            os._exit(1 if says else 0)
        os.close(write)
        heard = b""
        while part := os.read(read, 65536):
            heard += part
        os.close(read)
        status = os.waitpid(child, 0)[1]
        if status != 0:
            bad.append((status, heard.decode()[-300:]))
    print(f"{count} forks, {len(bad)} bad", bad[:3], [repr(e) for e in failures[:3]], flush=True)
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "exit":
        at_exit(sys.argv[2], sys.argv[3:])
    else:
        around_forks(sys.argv[2], int(sys.argv[3]))
