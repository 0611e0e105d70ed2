"""Trains a small recurrent network to compute the parity of a row of bits: scan and its gradient."""

from typing import Any

import numpy as np
import rlx
import rlx.numpy as rnp

Params = dict[str, rlx.Array]
HIDDEN, LENGTH, STEPS, RATE = 16, 6, 200, 0.02


def first_params(key: rlx.Array) -> Params:
    a, b, c = rlx.random.split(key, 3)
    return {
        "w": rlx.random.normal(a, (HIDDEN, HIDDEN)) / HIDDEN**0.5,
        "u": rlx.random.normal(b, (2, HIDDEN)),
        "bias": rnp.zeros(HIDDEN),
        "v": rlx.random.normal(c, (HIDDEN,)) / HIDDEN**0.5,
    }


def score(params: Params, bits: rlx.Array) -> rlx.Array:
    """The logit of odd parity of bits [length]."""

    def cell(h: rlx.Array, bit: rlx.Array) -> tuple[rlx.Array, None]:
        return rnp.tanh(h @ params["w"] + params["u"][bit] + params["bias"]), None

    last, _ = rlx.scan(cell, rnp.zeros(HIDDEN), bits)
    return last @ params["v"]


def loss(params: Params, bits: rlx.Array, odd: rlx.Array) -> rlx.Array:
    """The mean of -log(probability of the right answer) over a batch of bits [n, length]."""
    scores = rlx.vmap(score, in_axes=(None, 0))(params, bits)
    return rnp.mean(rlx.nn.softplus(rnp.where(odd, -scores, scores)))


@rlx.jit(donate_argnums=0)
def step(state: tuple[Params, Params, Params], bits: rlx.Array, odd: rlx.Array, t: float) -> tuple[Any, rlx.Array]:
    params, m, v = state
    value, grads = rlx.value_and_grad(loss)(params, bits, odd)
    m = rlx.tree.map(lambda a, g: 0.9 * a + 0.1 * g, m, grads)
    v = rlx.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, v, grads)
    rate = RATE * rnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    params = rlx.tree.map(lambda p, a, b: p - rate * a / (rnp.sqrt(b) + 1e-8), params, m, v)
    return (params, m, v), value


@rlx.jit
def accuracy(params: Params, bits: rlx.Array, odd: rlx.Array) -> rlx.Array:
    return rnp.mean((rlx.vmap(score, in_axes=(None, 0))(params, bits) > 0) == odd)


everything = (np.arange(2**LENGTH)[:, None] >> np.arange(LENGTH)) & 1
bits, odd = everything.astype(np.int32), everything.sum(1) % 2 == 1
params = first_params(rlx.random.key(0))
state = (params, rlx.tree.map(rnp.zeros_like, params), rlx.tree.map(rnp.zeros_like, params))
for i in range(STEPS):
    state, value = step(state, bits, odd, float(i + 1))
    if i % 50 == 0 or i == STEPS - 1:
        print(f"step {i:3}  loss {float(value):.2f}")
print(f"{100 * float(accuracy(state[0], bits, odd)):.0f} % of the {len(bits)} rows are told right")
