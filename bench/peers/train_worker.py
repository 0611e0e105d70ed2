"""JAX as the peer of bench/train: the same two training programs, jitted; JSON lines as in train_worker.cpp.

usage: python train_worker.py THREADS DATA.npz
Requests: "mlp SECONDS", "encoder SECONDS", "results FILE".
"""
import json
import math
import os
import sys
import time

threads = int(sys.argv[1])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'} "
                           f"intra_op_parallelism_threads={threads}")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

data = np.load(sys.argv[2])
HEADS = 12


def series(stem):
    return [jnp.asarray(data[f"{stem}{i}"]) for i in range(100) if f"{stem}{i}" in data]


def loss_of_mlp(p, x, y):
    for i in range(0, len(p) - 2, 2):
        x = jax.nn.relu(x @ p[i] + p[i + 1])
    return -jnp.take_along_axis(jax.nn.log_softmax(x @ p[-2] + p[-1]), y[:, None], 1).mean()


def adam_step(p, m, v, t, x, y):
    loss, g = jax.value_and_grad(loss_of_mlp)(p, x, y)
    t = t + 1
    m = [0.9 * a + 0.1 * d for a, d in zip(m, g)]
    v = [0.999 * a + 0.001 * d * d for a, d in zip(v, g)]
    a, b = 1 - 0.9**t, 1 - 0.999**t
    p = [w - 1e-3 * (k / a) / (jnp.sqrt(s / b) + 1e-8) for w, k, s in zip(p, m, v)]
    return p, m, v, t, loss


class Mlp:
    def __init__(self):
        self.x, self.y = jnp.asarray(data["mlp_x"]), jnp.asarray(data["mlp_y"])
        p = series("mlp_p")
        self.state = [p, [jnp.zeros_like(w) for w in p], [jnp.zeros_like(w) for w in p], jnp.float32(0)]
        self.step = jax.jit(adam_step, donate_argnums=(0, 1, 2)).lower(*self.state, self.x, self.y).compile()

    def run(self):
        *self.state, loss = self.step(*self.state, self.x, self.y)
        return loss.block_until_ready()


def layer_norm(x, gamma, beta):
    d = x - x.mean(-1, keepdims=True)
    return d * jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-12) * gamma + beta


def loss_of_layer(p, x):
    batch, length, hidden = x.shape
    split = lambda t: t.reshape(batch, length, HEADS, hidden // HEADS).transpose(0, 2, 1, 3)  # noqa: E731
    q, k, v = (split(x @ p[2 * i] + p[2 * i + 1]) for i in range(3))
    a = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / math.sqrt(hidden // HEADS), -1) @ v
    h = layer_norm(x + a.transpose(0, 2, 1, 3).reshape(batch, length, hidden) @ p[6] + p[7], p[12], p[13])
    y = layer_norm(h + jax.nn.gelu(h @ p[8] + p[9], approximate=False) @ p[10] + p[11], p[14], p[15])
    return (y * y * y).mean()


class Encoder:
    def __init__(self):
        self.x, self.p = jnp.asarray(data["enc_x"]), series("enc_p")
        self.step = jax.jit(jax.value_and_grad(loss_of_layer)).lower(self.p, self.x).compile()

    def run(self):
        return jax.block_until_ready(self.step(self.p, self.x))


def measure(program, seconds):
    end = time.perf_counter() + 0.05
    for i in range(1000):
        program.run()
        if i > 2 and time.perf_counter() > end:
            break
    times, cpu, begin = [], time.process_time(), time.perf_counter()
    while time.perf_counter() - begin < seconds or len(times) < 5:
        t = time.perf_counter()
        program.run()
        times.append((time.perf_counter() - t) * 1e6)
    cpus = (time.process_time() - cpu) / (time.perf_counter() - begin)
    times.sort()
    return {"p50_us": times[len(times) // 2], "p10_us": times[len(times) // 10], "n": len(times), "cpus": cpus}


def results(path):
    out = {}
    out["enc_loss"], gradients = Encoder().run()
    out.update({f"enc_g{i}": g for i, g in enumerate(gradients)})
    mlp = Mlp()
    out["mlp_loss"] = [float(mlp.run()) for _ in range(3)]
    out.update({f"mlp_p{i}": p for i, p in enumerate(mlp.state[0])})
    np.savez(path, **{k: np.asarray(v, np.float32) for k, v in out.items()})
    return {"written": True}


programs = {"mlp": Mlp(), "encoder": Encoder()}
print(json.dumps({"version": "jax " + jax.__version__}), flush=True)
for line in sys.stdin:
    command, rest = line.split()
    print(json.dumps(results(rest) if command == "results" else measure(programs[command], float(rest))), flush=True)
