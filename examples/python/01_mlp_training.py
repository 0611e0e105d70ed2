"""Trains a small network with Adam to classify two spirals, and draws the loss curve.

usage: 01_mlp_training.py [loss.svg]
"""

import sys
from typing import Any

import numpy as np
import rlx
import rlx.numpy as rnp

Params = list[dict[str, rlx.Array]]
State = dict[str, Any]
STEPS, RATE = 300, 0.01


def spirals(n: int) -> tuple[rlx.Array, rlx.Array]:
    """Points [2 * n, 2] on two spirals, and their labels, 0 or 1."""
    t = np.linspace(0.3, 3.0, n, dtype=np.float32) * np.pi
    arm = np.stack([t * np.cos(t), t * np.sin(t)], axis=1) / 10
    return rlx.array(np.concatenate([arm, -arm])), rlx.array(np.repeat(np.array([0, 1], np.int32), n))


def first_params(key: rlx.Array, widths: tuple[int, ...]) -> Params:
    """The initial weight and bias of each layer."""
    keys = rlx.random.split(key, len(widths) - 1)
    return [
        {"w": rlx.random.normal(k, (m, n)) * (2 / m) ** 0.5, "b": rnp.zeros(n)}
        for k, m, n in zip(keys, widths, widths[1:])
    ]


def logits_of(params: Params, x: rlx.Array) -> rlx.Array:
    for layer in params[:-1]:
        x = rlx.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_of(params: Params, x: rlx.Array, label: rlx.Array) -> rlx.Array:
    return -rnp.mean(rnp.sum(rlx.nn.log_softmax(logits_of(params, x)) * rlx.nn.one_hot(label, 2), axis=1))


@rlx.jit(donate_argnums=0)  # the new state is written over the old one
def step(state: State, x: rlx.Array, label: rlx.Array) -> tuple[State, rlx.Array]:
    """One step of Adam with its gradients, as one program."""
    loss, grads = rlx.value_and_grad(loss_of)(state["params"], x, label)
    t = state["t"] + 1
    m = rlx.tree.map(lambda old, g: 0.9 * old + 0.1 * g, state["m"], grads)
    v = rlx.tree.map(lambda old, g: 0.999 * old + 0.001 * g * g, state["v"], grads)
    rate = RATE * rnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    params = rlx.tree.map(lambda p, a, b: p - rate * a / (rnp.sqrt(b) + 1e-8), state["params"], m, v)
    return {"params": params, "m": m, "v": v, "t": t}, loss


def picture(losses: list[float]) -> str:
    """The loss curve as SVG: steps on the horizontal axis, loss on the vertical axis."""
    top, width, height = max(losses), 480, 240
    points = " ".join(f"{i * width / len(losses):.1f},{height * (1 - v / top):.1f}" for i, v in enumerate(losses))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-40 -20 {width + 60} {height + 50}" font-size="12">'
        f'<path d="M0 0V{height}H{width}" fill="none" stroke="gray"/><text x="-36" y="4">{top:.2f}</text>'
        f'<text x="-36" y="{height}">0</text><text x="{width - 60}" y="{height + 20}">{len(losses)} steps</text>'
        f'<polyline points="{points}" fill="none" stroke="#06c" stroke-width="2"/></svg>\n'
    )


x, label = spirals(100)
params = first_params(rlx.random.key(1), (2, 32, 32, 2))
m, v = rlx.tree.map(rnp.zeros_like, params), rlx.tree.map(rnp.zeros_like, params)
state: State = {"params": params, "m": m, "v": v, "t": rnp.float32(0)}
losses: list[float] = []
for i in range(STEPS):
    state, loss = step(state, x, label)
    losses.append(float(loss))
    if i % 100 == 0 or i == STEPS - 1:
        right = float(rnp.mean(rnp.argmax(logits_of(state["params"], x), axis=1) == label))
        print(f"step {i:3}  loss {losses[-1]:.2f}  correct {100 * right:.0f} %")
with open(sys.argv[1] if len(sys.argv) > 1 else "loss.svg", "w") as file:
    file.write(picture(losses))
