"""Random programs of common idioms beside JAX: trees, classes with state, auxiliary results and nested transforms of
functions whose captures (attributes of an object or of a module, or globals) change between the calls.
"""

import dataclasses
import random
import re
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlx
import rlx.numpy as rnp

PROGRAMS, BLOCK, SAMPLE = 1000, 6, 18


class Source:
    """The text of a program of `m` (jax or rlx) and `np_` (its numpy)."""

    NUMBERS = ["c.rate", "c.table['a']", "c.items[0]", "c.host[0]", "len(c.items)", "0.7", "-1.2", "0.1"]
    VECTORS = ["c.w", "c.table['w']", "c.host", "c.items[-1]", "c.matrix[0]", "c.matrix.sum(0)"]
    UNARY = ["np_.sin({})", "np_.tanh({})", "m.nn.softplus({})", "np_.cumsum({})", "np_.sort({})", "m.nn.softmax({})"]
    UNARY += ["np_.asarray({})[::-1]", "np_.asarray({}).at[1].set(0.3)", "np_.asarray({}).at[c.index].add(0.5)"]
    BINARY = ["({} + {})", "({} * {})", "({} - {})", "np_.maximum({}, {})", "({} / (1.5 + np_.square({})))"]
    BINARY += ["np_.where(c.mask, {}, {})", "np_.einsum('i,ij->j', {}, np_.outer({}, c.w))"]

    def __init__(self, seed):
        self.r, self.names = random.Random(seed), 0
        self.place = ("object", "module", "globals")[seed % 3]  # where the captures are

    def value(self, known, depth=0):
        r, pick = self.r, self.r.random()
        if depth > 2 or pick < 0.25:
            return r.choice(known) if r.random() < 0.6 else r.choice(self.VECTORS)
        if pick < 0.4:
            return r.choice(self.UNARY).format(self.value(known, depth + 1))
        if pick < 0.6:
            return r.choice(self.BINARY).format(self.value(known, depth + 1), self.value(known, depth + 1))
        if pick < 0.7:
            return f"({self.value(known, depth + 1)} * {r.choice(self.NUMBERS)})"
        self.names += 1
        z = f"z{self.names}"
        a, body = self.value(known, depth + 1), self.value([*known, z], depth + 1)
        small, other, number = f"np_.tanh({body})", self.value([z], depth + 2), r.choice(self.NUMBERS)
        flow = r.choice(
            [
                "m.lax.cond({a}[0] > 0.2, lambda {z}: {small}, lambda {z}: np_.tanh({other}), {a})",
                "m.lax.scan(lambda {z}, row: ({small} + row, row * {number}), np_.asarray({a}), {other0})[0]",
                "m.lax.scan(m.checkpoint(lambda {z}, row: ({small}, None)), np_.asarray({a}), c.host)[0]",
                "m.lax.scan(lambda pair, row: (dict(p=(lambda {z}: {small})(pair['p']), "
                "q=(pair['q'][0] * 0.5, None)), row), "
                "dict(p=np_.asarray({a}), q=({number} * np_.asarray(c.w)[0], None)), c.matrix)[0]['p']",
                "m.lax.fori_loop(0, 3, lambda step, {z}: "
                "{small} + 0.1 * np_.asarray(step, 'float64'), np_.asarray({a}))",
                "m.checkpoint(lambda {z}, by: {small} * by)({a}, {number})",
                "m.jit(lambda {z}, by: {small} * by)({a}, {number})",
                "m.jit(lambda {z}, *, mode: {small} if mode == 'a' else {z}, static_argnames='mode')({a}, mode='a')",
                "m.grad(lambda {z}: np_.sum(np_.sin({small} + {z})))(np_.asarray({a}))",
                "m.grad(lambda part: np_.sum((lambda {z}: {small})(part['z'])) + np_.sum(part['o'][0] ** 2))"
                "(dict(z=np_.asarray({a}), o=[np_.asarray(c.w)], e=None))['z']",
                "m.jvp(lambda {z}: {small} + {z}, (np_.asarray({a}),), (np_.ones(4),))[1]",
                "m.vjp(lambda {z}: {small} + {z}, np_.asarray({a}))[1](np_.asarray(c.w))[0]",
                "m.vmap(lambda one, part: one * part['a'] + part['b'][0], in_axes=(0, dict(a=None, b=[0])))"
                "({a}, dict(a={number}, b=[np_.asarray(c.w)]))",
                "m.lax.map(lambda one: np_.sin(one) * {number}, np_.asarray({a}))",
                "c.ruled({a})",
                "(m.lax.fori_loop(0, 2, lambda step, k: k * 0.5 + np_.sum({smalla}), {number}) * {a})",
                "(m.lax.scan(lambda k, row: (k * row[0], row + k), {number}, c.matrix)[1][-1] * {a})",
                "m.lax.while_loop(lambda k: k[1] < 2, "
                "lambda k: ((lambda {z}: np_.tanh({other}))(k[0]) * k[2], k[1] + 1, k[2] * 0.9), "
                "(m.lax.stop_gradient({a}), 0, {number} * 1.0))[0]",
                "(lambda y, push: push(y))(*m.linearize(lambda {z}: {small} + {z}, np_.asarray({a})))",
                "(lambda y, push, aux: push(aux['k']) * y)"
                "(*m.linearize(lambda {z}: ({small} + {z}, dict(k={z}, n=None)), np_.asarray({a}), has_aux=True))",
                "(lambda y, pull, aux: pull(aux)[0] + y)"
                "(*m.vjp(lambda {z}: ({small}, {other}), np_.asarray({a}), has_aux=True))",
                "(lambda jac, aux: jac.sum(0) + aux)(*m.jacrev(lambda {z}: ({small} + {z}, {other}), has_aux=True)"
                "(np_.asarray({a})))",
            ]
        )
        names = dict(z=z, a=f"np_.asarray({a})", small=small, other=other, number=number)
        names |= dict(other0=other.replace(z, "c.w"), smalla=f"(lambda {z}: {small})(np_.asarray({a}))")
        return flow.format(**names)

    CHANGES = ["c.rate *= -0.5", "c.table['a'] += 0.7", "c.table['w'] = c.table['w'] * 1.1", "c.items.insert(0, 0.4)"]
    CHANGES += ["c.host[1] += 0.5", "c.w = c.w[::-1]", "c.matrix[0] *= -1.0", "c.mask[0] = not c.mask[0]", "pass"]
    USES = ["f(x)", "m.jit(lambda x: f(x))(x)", "slope(x)", "m.vmap(f)(np_.stack([x, y]))", "m.jacfwd(f)(x)"]
    USES += ["m.jacrev(lambda x: dict(o=f(x), p=(x.sum(), None)))(x)", "m.jvp(slope, (x,), (y,))", "both(tree, x)"]
    USES += ["m.hessian(lambda x: np_.sum(f(x)))(x)", "m.vmap(loss, in_axes=(None, 0))(tree, np_.stack([x, y]))"]
    USES += ["m.linearize(f, x)[1](y)", "m.vjp(loss, tree, x)[1](loss(tree, x))"]
    USES += ["m.grad(m.checkpoint(lambda t, x: loss(t, x)))(tree, x)"]
    USES += ["m.value_and_grad(lambda t, x: (loss(t, x), dict(a=x, b=None)), argnums=(0, 1), has_aux=True)(tree, x)"]

    def program(self):
        r = self.r
        lines = [f"def f(x): return {self.value(['x'])} + 0 * x"]
        lines += [f"def loss(t, x): return np_.mean(({self.value(['x', 't[chr(97)]', 't[chr(98)][0]'])} - x) ** 2)"]
        lines += ["slope = m.grad(lambda x: np_.sum(f(x)))", "both = m.value_and_grad(loss)"]
        uses = r.sample(self.USES, 2)
        for _ in range(3):
            lines += [f"outs.append({use})" for use in uses] + [r.choice(self.CHANGES), r.choice(self.CHANGES)]
        text = "\n".join(lines)
        return text if self.place != "globals" else re.sub(r"\bc\.", "", text)


@dataclasses.dataclass
class Captured:
    rate: float
    table: dict
    items: list
    host: np.ndarray
    matrix: np.ndarray
    mask: np.ndarray
    index: object
    w: object
    ruled: object = None


def run(text, place, m, np_):
    rng = np.random.default_rng(len(text))
    draw = lambda *shape: np_.array(rng.standard_normal(shape) * 0.7)  # noqa: E731
    host, matrix = rng.standard_normal(4), rng.standard_normal((3, 4))
    items, mask = [0.7, draw(4)], rng.random(4) > 0.5
    c = Captured(0.6, {"a": 0.4, "w": draw(4)}, items, host, matrix, mask, np_.array([3, 0, 3]), draw(4))
    tree = {"a": draw(4), "b": (draw(4), None)}
    outs = []
    scope = {"m": m, "np_": np_, "tree": tree, "x": draw(4), "y": draw(4), "outs": outs}
    if place == "module":
        c, fields = types.ModuleType("c"), vars(c)
        vars(c).update(fields)
    scope.update(vars(c) if place == "globals" else {"c": c})
    rate = (lambda: scope["rate"]) if place == "globals" else lambda: c.rate
    ruled = m.custom_jvp(lambda v: np_.sin(v) * rate())
    ruled.defjvp(lambda p, t: (ruled(p[0]), np_.cos(p[0]) * rate() * t[0]))
    if place == "globals":
        scope["ruled"] = ruled
    else:
        c.ruled = ruled
    exec(text, scope)
    return jax.tree_util.tree_map(np.asarray, rlx.tree.map(np.asarray, outs) if m is rlx else outs)


@pytest.mark.parametrize("start", range(0, PROGRAMS, BLOCK))
def test_random_uses(start, full):
    """A sample; --full: all."""
    if start >= SAMPLE and not full:
        pytest.skip("with --full")
    for seed in range(start, start + BLOCK):
        source = Source(seed)
        text, place = source.program(), source.place
        with jax.disable_jit():  # it compiles each operation once, not each program
            want = run(text, place, jax, jnp)
        got = run(text, place, rlx, rnp)
        assert jax.tree_util.tree_structure(got) == jax.tree_util.tree_structure(want), (seed, text)
        for w, g in zip(jax.tree_util.tree_leaves(want), jax.tree_util.tree_leaves(got)):
            assert g.dtype == w.dtype and g.shape == w.shape, (seed, text)
            np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-9, err_msg=f"program {seed}, {place}\n{text}")
