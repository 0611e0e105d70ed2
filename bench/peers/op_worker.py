"""One side of bench/ops: runs the cases of op_cases.py in one engine; JSON lines.

usage: python op_worker.py rlx|jax|torch THREADS
Requests: {"case": ID} compiles and checks a case, {"case": ID, "seconds": S} times it, {"copy": BYTES, "seconds": S}
times a copy of that many bytes.
"""

import json
import os
import sys
import time

ENGINE, THREADS = sys.argv[1], int(sys.argv[2])
os.environ["RLX_THREADS"] = str(THREADS)
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["XLA_FLAGS"] = (
    f"--xla_cpu_multi_thread_eigen={'true' if THREADS > 1 else 'false'} intra_op_parallelism_threads={THREADS}"
)
import numpy  # noqa: E402

import distribution  # noqa: E402
import op_cases  # noqa: E402

CASES = op_cases.cases()
LETTERS = "abcdefgh"  # the names of operands in expressions
NAMES = {
    "f8": "float64",
    "f4": "float32",
    "f2": "float16",
    "bf16": "bfloat16",
    "i1": "int8",
    "u1": "uint8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "u4": "uint32",
    "bool": "bool",
    "c8": "complex64",
    "c16": "complex128",
}


def drawn(arg, seed):
    """An operand as a NumPy array; bf16 as float32."""
    r = numpy.random.default_rng(seed)
    dtype = numpy.dtype("f4" if arg.dtype == "bf16" else arg.dtype)
    shape, fill = arg.shape, arg.fill
    if isinstance(fill, int):
        return r.integers(0, fill, shape).astype(dtype)
    if arg.dtype == "bool":
        return r.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        low, high = {"small": (0 if dtype.kind == "u" else -8, 8), "count": (1, 8)}.get(fill, (0, 0))
        if fill == "wide":
            info = numpy.iinfo(dtype)
            low, high = info.min, info.max
        return r.integers(low, high, shape, dtype=dtype)
    x = r.standard_normal(shape)
    if dtype.kind == "c":
        return (x + 1j * r.standard_normal(shape)).astype(dtype)
    if fill == "positive":
        x = r.uniform(0.5, 2, shape)
    elif fill == "unit":
        x = r.uniform(-0.9, 0.9, shape)
    elif fill == "one":
        x = r.uniform(0.99, 1.01, shape)
    elif fill == "above_one":
        x = r.uniform(1.25, 3, shape)
    elif fill == "ascending":
        x = numpy.sort(x)
    elif fill == "spd":
        x = x @ numpy.swapaxes(x, -1, -2) / shape[-1] + numpy.eye(shape[-1])
    return x.astype(dtype)


def divided(case, args):
    """The operands that each call is given, and those that the function holds, by letter."""
    named = dict(zip(LETTERS, args))
    held = {letter: x for letter, x in named.items() if letter in case.held}
    return {letter: x for letter, x in named.items() if letter not in held}, held


class Rlx:
    def __init__(self):
        import rlx

        self.rlx, self.version = rlx, f"rlx {getattr(rlx, '__version__', '')}"
        self.space = {"rlx": rlx, "np": rlx.numpy}
        for name in ("lax", "nn", "random", "scipy", "image"):
            try:
                module = __import__(f"rlx.{name}", fromlist=["x"])
            except ImportError:
                continue
            self.space["sp" if name == "scipy" else name] = module
        for name in ("linalg", "fft"):
            if hasattr(rlx.numpy, name):
                self.space[name] = getattr(rlx.numpy, name)

    def array(self, x, dtype):
        return self.rlx.numpy.asarray(x, dtype=NAMES[dtype])

    def function(self, case, args):
        code = compile(case.expr, case.id, "eval")
        given, held = divided(case, args)
        space = dict(self.space, **held)
        f = self.rlx.jit(lambda *v: eval(code, dict(space, **dict(zip(given, v)))))
        args = list(given.values())
        program = f.lower(*args).compile()
        return lambda: program(*args)

    def numbers(self, y):
        return numpy.asarray(self.rlx.numpy.astype(y, "float32") if str(y.dtype) == "bfloat16" else y)


class Jax:
    def __init__(self):
        import jax
        import jax.numpy as jnp

        self.jax, self.version = jax, f"JAX {jax.__version__}"
        self.space = {
            "np": jnp,
            "lax": jax.lax,
            "nn": jax.nn,
            "random": jax.random,
            "linalg": jnp.linalg,
            "fft": jnp.fft,
            "image": jax.image,
            "sp": __import__("jax.scipy", fromlist=["linalg"]),
            "lstm_by_scan": self.lstm,
        }

    def lstm(self, x, wi, wh, bias):
        jnp, nn = self.space["np"], self.jax.nn

        def step(state, row):
            h, c = state
            i, f, g, o = jnp.split(row @ wi.T + h @ wh.T + (bias + bias), 4, axis=-1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
            h = nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((x.shape[1], wh.shape[1]), x.dtype)
        return self.jax.lax.scan(step, (zero, zero), x)[1]

    def array(self, x, dtype):
        return self.space["np"].asarray(x, dtype=NAMES[dtype])

    def function(self, case, args):
        code = compile(case.jax or case.expr, case.id, "eval")
        given, held = divided(case, args)
        space = dict(self.space, **held)
        f = self.jax.jit(lambda *v: eval(code, dict(space, **dict(zip(given, v)))))
        args = list(given.values())
        program = f.lower(*args).compile()
        return lambda: program(*args).block_until_ready()

    def numbers(self, y):
        return numpy.asarray(y.astype("float32") if str(y.dtype) == "bfloat16" else y)


class Torch:
    def __init__(self):
        import torch
        import torch.nn.functional as functional

        torch.set_num_threads(THREADS)
        torch.set_grad_enabled(False)
        self.torch, self.version = torch, f"PyTorch {torch.__version__}"
        self.space = {"torch": torch, "F": functional, "w0": self.filters, "lstm": self.lstm}
        self.kept = {}

    def filters(self, w, transposed=False):
        """Filters HWIO as OIHW in channels-last memory, made once; for a transposed convolution IOHW, flipped."""
        key = (w.data_ptr(), transposed)
        if key not in self.kept:
            w = w.flip(0, 1).permute(2, 3, 0, 1) if transposed else w.permute(3, 2, 0, 1)
            self.kept[key] = w.contiguous(memory_format=self.torch.channels_last)
        return self.kept[key]

    def lstm(self, x, wi, wh, bias):
        module = self.kept.get("lstm")
        if module is None:
            module = self.kept["lstm"] = self.torch.nn.LSTM(x.shape[2], wh.shape[1])
        return module(x)[0]

    def array(self, x, dtype):
        return self.torch.from_numpy(numpy.ascontiguousarray(x)).to(getattr(self.torch, NAMES[dtype]))

    def function(self, case, args):
        if case.torch is None:
            raise NotImplementedError("PyTorch has no such function")
        code = compile(case.torch, case.id, "eval")
        space = dict(self.space, **dict(zip(LETTERS, args)))
        return lambda: eval(code, space)

    def numbers(self, y):
        return (y.float() if y.dtype == self.torch.bfloat16 else y).contiguous().numpy()


class Runner:
    def __init__(self):
        self.engine = {"rlx": Rlx, "jax": Jax, "torch": Torch}[ENGINE]()
        self.made = {}

    def make(self, id):
        """Compiles a case. Returns some elements of its results, for comparison."""
        case = CASES[id]
        args = [self.engine.array(drawn(arg, 100 + i), arg.dtype) for i, arg in enumerate(case.args)]
        self.made.clear()  # one case at a time: operands may be large
        try:
            call = self.engine.function(case, args)
            y = self.engine.numbers(call()).reshape(-1)
        except MemoryError:
            raise
        except Exception as e:  # any error of an engine that lacks the op
            return {"missing": f"{type(e).__name__}: {e}".splitlines()[0][:160]}
        self.made[id] = call
        if case.distribution:
            return {"faults": distribution.faults(y, case.distribution), "size": int(y.size)}
        places = numpy.linspace(0, max(0, y.size - 1), 24).astype(int) if y.size else []
        values = y[places] if y.size else numpy.zeros(0)
        both = [v for z in values for v in ((float(z.real), float(z.imag)) if y.dtype.kind == "c" else (float(z),))]
        return {"check": both, "size": int(y.size)}

    def time(self, id, seconds):
        if id not in self.made:
            self.make(id)
        return timed(self.made[id], seconds)


def timed(call, seconds):
    """The median wall time of a call (short calls are timed in groups), and the CPU time of all calls."""
    begin = time.perf_counter()
    call()
    once = max(1e-7, time.perf_counter() - begin)
    group = max(1, int(2e-4 / once))
    times, cpu, calls, end = [], time.process_time(), 0, time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        for _ in range(group):
            call()
        times.append((time.perf_counter() - begin) / group)
        calls += group
    times.sort()
    cpu = time.process_time() - cpu
    wall = time.perf_counter() - end + seconds
    return {"ns": times[len(times) // 2] * 1e9, "cpu_ns": cpu / calls * 1e9, "cpus": cpu / wall}


def main():
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    runner = Runner()
    print(json.dumps({"version": runner.engine.version}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "copy" in request:
            n = max(64, request["copy"] // 2)
            source, target = numpy.ones(n, "u1"), numpy.ones(n, "u1")
            reply = timed(lambda: numpy.copyto(target, source), request["seconds"])
        elif "seconds" in request:
            reply = runner.time(request["case"], request["seconds"])
        else:
            reply = runner.make(request["case"])
        print(json.dumps(reply), flush=True)


main()
