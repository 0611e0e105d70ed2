"""What a user may get wrong: the right exception, words that name the thing, and no crash, hang or leak."""

import asyncio
import collections
import copy
import gc
import importlib
import os
import re
import signal
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import rlx
import rlx.numpy as rnp

I3, F3, U1 = rlx.array([1, 2, 3]), rlx.array([1.0, 2.0, 3.0]), rlx.array([1], "uint8")
W4 = np.zeros((2, 3, 3, 3), np.float32)
ROW = np.ones((1, 1, 5), np.float32)
FAR = np.array([2**63, 2**64 - 1], np.uint64)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def graph():
    g = rlx.Graph()
    g.set_outputs(g.relu(g.input("x", [2])))
    return g


def program():
    return rlx.Session().compile(graph())


def endless(x):
    return rlx.while_loop(lambda c: c >= 0, lambda c: c * 0 + 1, x)


def nested(depth):
    x = [1]
    for _ in range(depth):
        x = [x]
    return x


def holding_itself():
    x = []
    x.append(x)
    return x


def callback(result, dtype="int32"):
    return rlx.pure_callback(lambda v: result, rlx.ShapeDtype((3,), dtype), F3)


def with_rule(cotangent):
    name = f"misuse.op{len(_rules)}"
    _rules.append(name)
    return rlx.custom_op(name, kernel=lambda a: a, vjp=lambda cts, operands, results: cotangent)


_rules = []


class Pair:
    def __init__(self, a):
        self.a = a


def registered(flat):
    class Mine(Pair):
        pass

    rlx.tree.register(Mine, flat, lambda static, children: Mine(children[0]))
    return rlx.jit(lambda m: m.a + 1)(Mine(F3))


class Changing:
    """A key that changes the dict which it is a key of while that is sorted."""

    def __init__(self, d, n):
        self.d, self.n = d, n

    def __hash__(self):
        return self.n

    def __lt__(self, other):
        self.d.clear()
        return True


def changing_dict():
    d = {}
    for n in range(3):
        d[Changing(d, n)] = 1.0
    return d


CASES = {
    # -- types --
    "no array": (TypeError, "None is not an array", lambda: rlx.nn.relu(None)),
    "no dtype": (TypeError, "None is not a dtype", lambda: rlx.dtype(None)),
    "a date": (TypeError, "datetime64", lambda: rlx.array(np.array(["2020-01-01"], "datetime64[D]"))),
    "a date alone": (TypeError, "datetime64", lambda: rlx.array(np.datetime64("2020"))),
    "a flag": (TypeError, "fuse takes True or False, got 'no'", lambda: rlx.Session().compile(graph(), fuse="no")),
    "extents": (TypeError, "dims takes {symbol: extent}", lambda: rlx.Session().compile(graph(), dims=3)),
    "a flag of jit": (TypeError, "fuse takes", lambda: rlx.jit(lambda x: x, fuse="yes")(F3)),
    "no graph": (TypeError, "graph must be an rlx.Graph, got None", lambda: rlx.Session().compile(None)),
    "threads": (TypeError, "threads must be an integer", lambda: rlx.Session(threads="a")),
    "no device": (TypeError, "device must be a string, got None", lambda: rlx.Session(device=None)),
    "no name": (TypeError, "Graph.input: name must be a string", lambda: rlx.Graph().input(None, [1])),
    "a zero byte": (ValueError, "zero byte", lambda: rlx.Graph().input("a\0b", [1])),
    "no param name": (TypeError, "set_param: name", lambda: program().set_param(None, 1)),
    "no dims": (TypeError, "prepare_shape", lambda: program().prepare_shape(None)),
    "no text": (TypeError, "parse: source", lambda: rlx.parse(object())),
    "a name to save": (TypeError, "name must be a string, got 1", lambda: rlx.save_safetensors("/tmp/no", {1: F3})),
    "an axis of no integer": (TypeError, "is not an integer", lambda: rnp.sum(I3, axis=np.longdouble(0))),
    "a picture without a batch": (ValueError, "conv2d: x", lambda: rlx.nn.conv2d(np.zeros((3, 4, 4), np.float32), W4)),
    "a picture for conv1d": (ValueError, "conv1d: x", lambda: rlx.nn.conv1d(W4, W4)),
    "one axis too many": (ValueError, "O / groups, K", lambda: rlx.nn.conv_transpose1d(W4, W4)),
    "a large axis": (ValueError, "64 bits", lambda: rlx.jit(lambda x: rlx.ops.softmax(x, axis=2**70))(F3)),
    "no cache": (ValueError, "cache_size", lambda: rlx.jit(lambda x: x, cache_size=0)),
    "dims of jit": (TypeError, "dims must be a dict", lambda: rlx.jit(lambda x: x, dims=["n"])),
    "an unknown bound": (
        ValueError,
        "'typo'",
        lambda: rlx.jit(lambda x: x, dims={"x": ("n",)}, bounds={"typo": (1, 2)})(F3),
    ),
    "no function": (TypeError, "grad takes a function", lambda: rlx.grad(None)),
    "max_iterations": (
        TypeError,
        "max_iterations",
        lambda: rlx.while_loop(lambda c: c < 1, lambda c: c, 0, max_iterations="a"),
    ),
    "an argument twice": (ValueError, "twice", lambda: rlx.grad(lambda x: x, argnums=(0, 0))(1.0)),
    "a large window": (ValueError, "points", lambda: rnp.bartlett(2**70)),
    # -- numbers --
    "an integer too large": (TypeError, "(not fit in|not a value of) int32", lambda: I3 + 2**40),
    "compared": (TypeError, "(not fit in|not a value of) int32", lambda: I3 < 2**40),
    "clipped": (TypeError, "(not fit in|not a value of) int32", lambda: rnp.clip(I3, 0, 2**40)),
    "of few bits": (TypeError, "(not fit in|not a value of) uint8", lambda: U1 + 300),
    "negative": (TypeError, "(not fit in|not a value of) uint8", lambda: U1 * -1),
    "set": (TypeError, "(not fit in|not a value of) int32", lambda: I3.at[0].set(2**40)),
    "an array of them": (ValueError, "(not fit in|not a value of) int32", lambda: rlx.array([1, 2**40], "int32")),
    "NaN": (ValueError, "nan is not a value of int32", lambda: rlx.array([1, float("nan")], "int32")),
    "a complex one": (TypeError, "cannot convert a complex number to float32", lambda: rlx.array(1j, "float32")),
    "deep lists": (ValueError, "nested too deep", lambda: rlx.array(nested(10_000))),
    "a list in itself": (ValueError, "nested too deep", lambda: rlx.array(holding_itself())),
    # -- what is traced --
    "hashed": (TypeError, "not hashable", lambda: rlx.jit(lambda x: 1.0 if x in {1.0} else 2.0)(1.0)),
    "written by out": (TypeError, "not written in place", lambda: np.sum(F3, out=F3)),
    "a traced extent": (TypeError, "static_argnames", lambda: rlx.jit(lambda n: rnp.zeros(n))(3)),
    "complex ones in reals": (TypeError, "use their .real", lambda: F3.at[0].set(1j)),
    "an unknown argument": (TypeError, "matmul has no argument 'fast'", lambda: rnp.matmul(F3, F3, fast=True)),
    "put": (TypeError, "as put would", lambda: np.put(F3, 0, 1)),
    "half a key": (TypeError, "split: num must be a Python integer", lambda: rlx.random.split(rlx.random.key(0), 2.5)),
    "no keys": (ValueError, "split: num must not be negative, got -1", lambda: rlx.random.split(rlx.random.key(0), -1)),
    "a list of large integers": (TypeError, "18446744073709551616 does not fit", lambda: rlx.array([1, 2**64])),
    "lists of large integers": (TypeError, "-9223372036854775809 does not fit", lambda: rnp.abs([[1], [-(2**63) - 1]])),
    "a pivoted qr": (
        NotImplementedError,
        "rlx.scipy.linalg.qr",
        lambda: importlib.import_module("rlx.lax.linalg").qr(np.eye(2, dtype=np.float32), pivoting=True),
    ),
    "half a place": (
        TypeError,
        "max_unpool: space must be a Python integer",
        lambda: rlx.nn.max_unpool(rnp.ones((1, 1, 2)), rnp.zeros((1, 1, 2), "int32"), 4.5),
    ),
    # -- control flow --
    "branches of a switch": (
        TypeError,
        "switch: branch 0",
        lambda: rlx.switch(0, [lambda: 1.0, lambda: (2.0,)]),
    ),
    "bounds of fori_loop": (TypeError, "fori_loop: a bound", lambda: rlx.fori_loop(0, F3, lambda k, c: c, 1.0)),
    "a negative batch": (ValueError, "axis_size", lambda: rlx.vmap(lambda x: x, None, axis_size=-4)(F3)),
    "half a trip": (TypeError, "fori_loop: a bound", lambda: rlx.fori_loop(0, 2.5, lambda k, c: c, 1.0)),
    # -- functions of the user's --
    "complex from a callback": (TypeError, "its result_shape is", lambda: callback(np.zeros(3) * 1j, "float32")),
    "large integers": (TypeError, "its result_shape is int32", lambda: callback(np.full(3, 2**40))),
    "NaN as an integer": (TypeError, "its result_shape is int32", lambda: callback(np.full(3, np.nan))),
    "None in an array": (TypeError, "its result_shape is", lambda: callback(np.array([1, 2, None]), "float32")),
    "a wrong cotangent": (ValueError, "returns a cotangent", lambda: rlx.grad(lambda v: with_rule(5)(v).sum())(F3)),
    "nondiff_argnums": (
        ValueError,
        "nondiff_argnums 5",
        lambda: _ruled(nondiff_argnums=(5,))(F3),
    ),
    "saved with a callback": (
        NotImplementedError,
        "a Python function",
        lambda: (
            rlx.jit(lambda x: rlx.pure_callback(abs, rlx.ShapeDtype((3,), "float32"), x))
            .lower(F3)
            .compile()
            .save("/tmp/no")
        ),
    ),
    # -- trees --
    "no treedef": (TypeError, "tree.structure", lambda: rlx.tree.unflatten(5, [])),
    "no children": (TypeError, "not \\(children, static part\\)", lambda: registered(lambda m: (5, None))),
    "three parts": (TypeError, "not \\(children, static part\\)", lambda: registered(lambda m: (1, 2, 3))),
    "a class of a tree": (TypeError, "takes a class", lambda: rlx.tree.register(np.ones(1), id, id)),
    "a dict that changes": (ValueError, "changed while", lambda: rlx.jit(lambda d: 1.0)(changing_dict())),
    # -- arguments out of what there is --
    "a bias of other features": (
        rlx.ShapeMismatch,
        r"conv1d: bias \(3,\) must be \[O\].*O = 2",
        lambda: rlx.nn.conv1d(ROW, np.ones((2, 1, 3), np.float32), bias=np.ones(3, np.float32)),
    ),
    "a bias for one filter": (
        rlx.ShapeMismatch,
        r"conv2d: bias \(1,\)",
        lambda: rlx.nn.conv2d(np.zeros((1, 3, 4, 4), np.float32), W4, bias=np.ones(1, np.float32)),
    ),
    "a bias of a transpose": (
        rlx.ShapeMismatch,
        r"conv_transpose2d: bias \(2,\).*O = 3",
        lambda: rlx.nn.conv_transpose2d(np.zeros((1, 2, 4, 4), np.float32), W4, bias=np.ones(2, np.float32)),
    ),
    "no padding": (ValueError, "conv1d: padding 'foo'.*a number", lambda: rlx.nn.conv1d(ROW, ROW, padding="foo")),
    "pairs as padding": (ValueError, "conv1d: padding", lambda: rlx.nn.conv1d(ROW, ROW, padding=((1, 1),))),
    "starts of no integers": (TypeError, "must be an integer", lambda: rlx.lax.dynamic_slice(F3, (1.5,), (2,))),
    "coordinates of no integers": (
        TypeError,
        "ravel_multi_index: indices",
        lambda: rnp.ravel_multi_index(([1.0], [1]), (2, 2), mode="wrap"),
    ),
    "half a decimal": (TypeError, "decimals", lambda: rnp.around(F3, 1.5)),
    "many parts": (ValueError, "array_split: 9223372036854775808 parts", lambda: rnp.array_split(I3, 2**63)),
    "many parts of nothing": (ValueError, "split: .* parts", lambda: rnp.split(I3[:0], 2**63)),
    "a large dimension": (ValueError, "multigammaln", lambda: rlx.scipy.special.multigammaln(F3, 2**63)),
    "a range that falls": (ValueError, r"range \(5, 1\)", lambda: rnp.histogram(F3, bins=3, range=(5, 1))),
    "a range of NaN": (ValueError, "finite", lambda: rnp.histogram(F3, bins=3, range=(np.nan, 1))),
    "no bins": (ValueError, "0 bins", lambda: rnp.histogram(F3, bins=0)),
    "fewer than no bins": (ValueError, "-1 bins", lambda: rnp.histogram2d(F3, F3, bins=-1)),
    "no edges": (ValueError, "at least two edges", lambda: rnp.histogram(F3, bins=[])),
    "edges that fall": (ValueError, "edge 1 is 3", lambda: rnp.histogram(F3, bins=[1, 3, 2])),
    "half a pixel": (TypeError, "resize: an extent", lambda: rlx.image.resize(np.ones((2, 2)), (2, 2.5), "linear")),
    "NaN as a chance": (
        ValueError,
        "none may be negative, infinite or NaN",
        lambda: rlx.random.multinomial(rlx.random.key(0), 10, [np.nan, 0.5, 0.5]),
    ),
    "half a point": (TypeError, "number of points", lambda: rnp.hanning(5.0)),
    "half a point of Kaiser's": (TypeError, "number of points", lambda: rnp.kaiser(5.0, 2.0)),
    "a size of no integer": (TypeError, "nonzero: size", lambda: rnp.flatnonzero(F3, size=2.0)),
    "a size of a set": (TypeError, "unique: size", lambda: rnp.unique(F3, size=2.0)),
    "a length of no integer": (TypeError, "bincount: length", lambda: rnp.bincount(I3, length=2.5)),
    "no heads": (
        ValueError,
        "K divides N and is not 0",
        lambda: rlx.nn.dot_product_attention(*[np.ones((1, 2, 0, 4), np.float32)] * 3),
    ),
    "fewer than no numbers": (ValueError, "num = -1", lambda: rnp.linspace(0, 1, -1)),
    "no blocks": (ValueError, "block: an empty list", lambda: rnp.block([])),
    "no nonlinearity": (
        TypeError,
        "rnn: nonlinearity None",
        lambda: rlx.nn.rnn(ROW, [(np.ones((2, 5)), np.ones((2, 2)))], nonlinearity=None),
    ),
    "half a power": (TypeError, "matrix_power: n", lambda: rnp.linalg.matrix_power(np.eye(2), 1.5)),
    "no end": (ValueError, "trim 'x'", lambda: rnp.trim_zeros(F3, "x")),
    "zeros in a trace": (TypeError, "trim_zeros: the number", lambda: rlx.jit(lambda x: rnp.trim_zeros(x))(F3)),
    # -- programs --
    "states of its own": (ValueError, "states with itself", lambda: (lambda p: p.share_state_from(p))(program())),
}


def _ruled(**options):
    g = rlx.custom_vjp(lambda x: x * 2, **options)
    g.defvjp(lambda *a: (a[-1], None), lambda *a: (a[-1],))
    return g


# What must be known while a function is traced, of a matrix m, a key k and the traced integer n.
STATIC = {
    "sum: axis": lambda m, k, n: m.sum(n),
    "argmax: axis": lambda m, k, n: m.argmax(axis=n),
    "reshape: shape": lambda m, k, n: m.reshape(n, -1),
    "top_k: k": lambda m, k, n: rlx.lax.top_k(m, n),
    "one_hot: num_classes": lambda m, k, n: rlx.nn.one_hot(I3, n),
    "normal: shape": lambda m, k, n: rlx.random.normal(k, (n, 2)),
    "split: num": lambda m, k, n: rlx.random.split(k, n),
    "choice: the integer": lambda m, k, n: rlx.random.choice(k, n),
    "tile: reps": lambda m, k, n: rnp.tile(m, (n, 1)),
    "pad: pad_width": lambda m, k, n: rnp.pad(m, ((0, n), (0, 0))),
    "linspace: num": lambda m, k, n: rnp.linspace(0, 1, n),
    "arange: start": lambda m, k, n: rnp.arange(n),
    "arange: stop": lambda m, k, n: rnp.arange(0, n, 2),
    "zeros: shape": lambda m, k, n: rnp.zeros((n, 2)),
    "eye: n": lambda m, k, n: rnp.eye(n),
    "bincount: length": lambda m, k, n: rnp.bincount(I3, length=n),
    "scan: length": lambda m, k, n: rlx.scan(lambda c, _: (c, c), 0, None, length=n),
    "softmax: axis": lambda m, k, n: rlx.ops.softmax(m, axis=n),
    "the bound of a slice .* rlx.lax.dynamic_slice": lambda m, k, n: m[n : n + 2],
    "the bound of a slice .* rlx.lax.dynamic_slice ": lambda m, k, n: m.at[:n].set(1),
    "an integer .* rlx.lax.fori_loop": lambda m, k, n: [i for i in range(n)],
    "an integer .*": lambda m, k, n: [1, 2, 3][n],
}


@pytest.mark.parametrize("words", STATIC)
def test_a_traced_value_where_a_static_one_belongs(words):
    what, _, ways = words.partition(" .*")
    with pytest.raises(TypeError, match=what) as caught:
        rlx.jit(STATIC[words])(rnp.ones((4, 6)), rlx.random.key(0), 2)
    text = str(caught.value)
    assert "is a traced value (int32[], made at " in text and ways.strip() in text
    assert "): it must be known while the function is traced: name the argument in static_argnames" in text


@pytest.mark.parametrize("name", CASES)
def test_is_refused(name):
    error, words, run = CASES[name]
    with pytest.raises(error, match=words) as caught:
        run()
    assert "incompatible function arguments" not in str(caught.value)
    assert "bad_cast" not in str(caught.value)


# Names of JAX and PyTorch that are not here, and what the error says of them.
ELSEWHERE = {
    "rlx": {
        "Device": "rlx.devices",
        "enable_x64": "dtype='float64'",
        "pmap": "rlx.vmap",
    },
    "rlx.numpy.linalg": {"lu": "it has .*slogdet"},
    "rlx.scipy": {"constants": "it has .*linalg.*special, stats"},
    "rlx.nn": {
        "linear": "weight.T",
        "dropout": "rlx.random.bernoulli",
        "embedding": "weight.ids.",
        "scaled_dot_product_attention": "rlx.nn.dot_product_attention",
        "interpolate": "rlx.image.resize",
        "hardtanh": "rlx.nn.hard_tanh",
        "logsigmoid": "rlx.nn.log_sigmoid",
    },
}


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, names in ELSEWHERE.items() for n in names])
def test_names_of_others_say_what_is_there_instead(module, name):
    module_, words = importlib.import_module(module), ELSEWHERE[module][name]
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute '{name}': .*{words}"):
        getattr(module_, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_that_name'"):
        module_.nothing_of_that_name


def test_what_is_named_instead_is_there():
    """Every name with dots in the advice."""
    for module in ELSEWHERE:
        for text in getattr(importlib.import_module(module), "_INSTEAD", {}).values():
            for path in re.findall(r"\brlx(?:\.\w+)+", text):
                found = rlx
                for part in path.split(".")[1:]:
                    found = getattr(found, part)


WORKS = {
    "one extent of space": lambda: rlx.nn.max_unpool(
        rnp.ones((1, 1, 1, 1)), rnp.full((1, 1, 1, 1), 3, "int32"), 2
    ).tolist()
    == [[[[0, 0], [0, 1]]]],
    "a list by x.at": lambda: I3.at[0:2].set([7, 8]).tolist() == [7, 8, 3],
    "np.sum": lambda: np.sum(F3) == 6 and rlx.jit(np.sum)(F3) == 6 and np.mean(F3, axis=0) == 2 and bool(np.any(F3)),
    "np.std": lambda: abs(float(rlx.jit(np.std)(F3)) - np.std([1, 2, 3])) < 1e-6,
    "round": lambda: float(round(rlx.array(2.567, "float64"), 1)) == 2.6,
    "a copy of a function": lambda: copy.deepcopy(rlx.jit(lambda x: x + 1))(1.0) == 2,
    "names of NumPy": lambda: rnp.zeros(2, "f4").dtype == "float32" and rnp.zeros(2, "<i8").dtype == "int64",
    "no dtype stated": lambda: rnp.eye(2, dtype=None).dtype == rnp.zeros(2, None).dtype == "float32",
    "an index past int64": lambda: I3[np.array([2**63], "uint64")].tolist() == [3],
    "taken past int64": lambda: rnp.take(F3, FAR, mode="clip").tolist() == [3, 3] and all(np.isnan(rnp.take(F3, FAR))),
    "taken round past int64": lambda: rnp.take(I3, FAR, mode="wrap").tolist() == [2**63 % 3 + 1, (2**64 - 1) % 3 + 1],
    "counted past int64": lambda: rnp.bincount(FAR, length=2).tolist() == [0, 0],
    "more classes than the indices count": lambda: rlx.nn.one_hot(U1, 300).sum() == 1,
    "outside of the classes": lambda: all(
        not np.any(rlx.nn.one_hot(np.array([-1, 3, 127]).astype(dtype), 3)) for dtype in INTEGERS
    )
    and not np.any(rlx.nn.one_hot(FAR, 3)),
    "places past few bits": lambda: all(
        rnp.ravel_multi_index((np.array([2], t), np.array([100], t)), (3, 200), mode=m).tolist() == [500]
        for t in INTEGERS
        for m in ("wrap", "clip")
    ),
    "places round past int64": lambda: rnp.ravel_multi_index((FAR[:1], U1), (5, 3), mode="wrap").tolist() == [10],
    "places of large shapes": lambda: rnp.ravel_multi_index((U1, U1), (2**40, 2**20), mode="clip") == 2**20 + 1,
    "coordinates of few bits": lambda: list(map(int, rnp.unravel_index(rlx.array(200, "uint8"), (99, 150)))) == [1, 50],
    "more segments than ids count": lambda: all(
        getattr(rlx.ops, "segment_" + how)(F3, np.array([0, 100, -1], "int8"), 300)[100] == 2
        for how in ("sum", "prod", "max", "min")
    ),
    "starts of any dtype": lambda: all(
        rlx.lax.dynamic_slice(F3, (t(1),), (2,)).tolist() == [2, 3]
        and rlx.lax.dynamic_slice(np.eye(3), (t(1), 0), (1, 3)).tolist() == [[0, 1, 0]]
        and rlx.lax.dynamic_update_slice(F3, U1, (t(1),)).tolist() == [1, 1, 3]
        for t in map(np.dtype, INTEGERS)
        for t in [t.type]
    ),
    "a start past int64": lambda: rlx.lax.dynamic_slice(F3, (FAR[0],), (2,)).tolist() == [2, 3],
    "diagonals far away": lambda: all(
        np.array_equal(rnp.eye(3, k=k), np.zeros((3, 3)))
        and np.array_equal(rnp.tri(3, k=k), np.full((3, 3), float(k > 0)))
        and np.array_equal(rnp.tril(np.ones((2, 3)), k), np.full((2, 3), float(k > 0)))
        and np.array_equal(rnp.triu(np.ones((2, 3)), k), np.full((2, 3), float(k < 0)))
        and rnp.diagonal(np.eye(3), k).shape == (0,)
        for k in (2**31 - 1, 2**40, 2**70, -(2**31), -(2**40), -(2**70))
    ),
    "many decimals": lambda: all(rnp.around(F3, d).tolist() == [1, 2, 3] for d in (40, 400, 2**63))
    and rnp.around(np.array([2.5, np.inf], np.float32), -400).tolist() == [0, np.inf]
    and rnp.around(I3, -(2**63)).tolist() == [0, 0, 0],
    "zeros at the ends": lambda: all(
        np.array_equal(rnp.trim_zeros(np.array(x), ends), np.trim_zeros(np.array(x), ends), equal_nan=True)
        for x in ([0, 1, 0, 2, 0], [0.0, 0.0], [3], [np.nan, 0])
        for ends in ("f", "b", "fb")
    ),
    "covariances of nothing": lambda: np.isnan(rnp.cov(np.zeros(0))) and np.all(np.isnan(rnp.cov(np.zeros((2, 0))))),
    "entropies of few bits": lambda: all(
        getattr(rlx.scipy.special, name)(np.ones(2, t), np.ones(2, t)).dtype == t
        for name in ("rel_entr", "kl_div")
        for t in ("float16", "float32", "float64")
    ),
    "times of odd segments": lambda: all(
        np.allclose(
            rlx.scipy.signal.stft(np.ones(40), nperseg=n, noverlap=3, boundary=b)[1][:2],
            [0 if b else n / 2, n - 3 + (0 if b else n / 2)],
        )
        for n in (7, 8)
        for b in ("zeros", None)
    ),
    "children of any kind": lambda: registered(lambda m: ((v for v in [m.a]), None)).tolist() == [2, 3, 4],
    "a list of children": lambda: registered(lambda m: ([m.a], None)).tolist() == [2, 3, 4],
    "arguments by name": lambda: float(_ruled()(x=1.0)) == 2,
    "few bits": lambda: float(rnp.std(rlx.array([-1.71875, -1.7265625], "bfloat16"))) == 0.00390625,
    "integers of a callback": lambda: callback(np.arange(1, 4), "float32").tolist() == [1, 2, 3],
    "function at an index": lambda: F3.at[0].apply(lambda v: v * 5).tolist() == [5, 2, 3],
    "hints of JAX": lambda: rlx.jit(lambda x: rnp.matmul(x, x, precision="highest"), inline=True)(F3) == 14,
    "a known bound": lambda: rlx.grad(lambda a: rlx.fori_loop(0, rnp.int32(3), lambda i, c: c * a, 1.0))(2.0) == 12,
    "lists among arrays": lambda: rnp.concatenate([F3, [4, 5]]).tolist() == [1, 2, 3, 4, 5],
    "branches of nothing": lambda: rlx.cond(True, lambda: None, lambda: None) is None,
    "lists as vectors": lambda: rnp.linalg.cross([1, 2, 3], [3, 2, 1]).tolist() == [-4, 8, -4],
    "static_argnums": lambda: rlx.jit(lambda x: x, static_argnums=None)(F3).tolist() == [1, 2, 3],
}


@pytest.mark.parametrize("name", WORKS)
def test_works(name):
    assert WORKS[name]()


def test_arguments_that_stay_python_values():
    """Of functions with rules and of checkpoints, at once and inside others."""
    f = rlx.custom_jvp(lambda n, x: x**n, nondiff_argnums=(0,))
    f.defjvp(lambda n, primals, tangents: (f(n, *primals), n * 7.0 * tangents[0]))
    g = rlx.custom_vjp(lambda n, x: x * n, nondiff_argnums=(0,))
    g.defvjp(lambda n, x: (x * n, None), lambda n, kept, ct: (n * 7.0 * ct,))
    for h in (f, g):
        assert float(h(2, 3.0)) in (9, 6)
        assert float(rlx.grad(lambda x, h=h: h(2, x))(3.0)) == 14
    h = rlx.checkpoint(lambda x, n: x**n, static_argnums=(1,))
    assert float(rlx.grad(lambda x: h(x, 3))(2.0)) == 12 and float(h(2.0, 3)) == 8


def test_a_rule_for_each_argument():
    f = rlx.custom_jvp(lambda x, y, z: rnp.sin(x) * y + z)
    f.defjvps(lambda t, out, x, y, z: rnp.cos(x) * y * t, lambda t, out, x, y, z: 5.0 * t, None)
    want = (np.cos(0.3) * 2, 5, 0)
    assert np.allclose(rlx.grad(f, (0, 1, 2))(0.3, 2.0, 1.0), want)
    assert np.isclose(rlx.jvp(f, (0.3, 2.0, 1.0), (1.0, 1.0, 1.0))[1], sum(want))


def test_an_ordered_dict_keeps_its_order():
    given = collections.OrderedDict(b=1.0, a=2.0)
    out = rlx.jit(lambda d: d)(given)
    assert type(out) is collections.OrderedDict and list(out) == ["b", "a"]
    assert rlx.tree.structure(given) != rlx.tree.structure(dict(given))


def test_callbacks_under_vmap():
    f = lambda x: rlx.pure_callback(lambda v: v.sum(keepdims=True), rlx.ShapeDtype((1,), "float32"), x)  # noqa: E731
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    assert np.array_equal(rlx.vmap(rlx.vmap(f))(x), x.sum(2, keepdims=True))
    assert rlx.vmap(f)(np.zeros((0, 3), np.float32)).shape == (0, 1)


def test_a_callback_without_results():
    seen = []
    f = rlx.jit(lambda x: (rlx.io_callback(seen.append, None, x), x + 1)[1])
    assert f(1.0) == 2 and f(2.0) == 3
    assert [float(s) for s in seen] == [1, 2]


@pytest.mark.parametrize("kind", ["cond", "scan", "while_loop", "vjp"])
def test_bodies_are_drawn_once(kind):
    """Twice for each level would be 2^depth for nested ones."""
    drawn = []

    def nest(depth):
        def f(x):
            drawn.append(depth)
            if depth == 0:
                return rnp.sin(x)
            g = nest(depth - 1)
            return {
                "cond": lambda: rlx.cond(x.sum() > 0, g, lambda y: y, x),
                "scan": lambda: rlx.scan(lambda c, _: (g(c), None), x, length=2)[0],
                "while_loop": lambda: rlx.while_loop(lambda c: c.sum() > 1, g, x),
                "vjp": lambda: rlx.vjp(g, x)[1](x)[0],
            }[kind]()

        return f

    rlx.trace(nest(6), F3)
    assert len(drawn) == 7


def test_a_weak_carry_takes_the_dtype_of_the_step():
    """Drawn again: the carry begins as a weak float32 and is float16 then, in the body too."""
    dtypes = []

    def step(c, x):
        dtypes.append(c.dtype.name)
        return c + x, None

    out = rlx.scan(step, 0.0, rnp.ones(3, "float16"))[0]
    assert out.dtype == "float16" and float(out) == 3 and dtypes == ["float32", "float16"]


def test_what_nobody_holds_is_let_go():
    """Functions in cycles with what they close over, rules, callbacks."""

    class Model:
        def __init__(self):
            self.w = np.ones(10, np.float32)
            self.step = rlx.jit(lambda x: x + self.w[0])

    def ruled():
        g = _ruled()
        rlx.grad(lambda v: g(v).sum())(F3)
        return g

    class Called:
        def __call__(self, v):
            return v

    def called():
        c = Called()
        rlx.jit(lambda x: rlx.pure_callback(c, rlx.ShapeDtype((3,), "float32"), x))(F3)
        return c

    def model():
        m = Model()
        m.step(F3)
        return m

    for make in (model, called):
        held = [weakref.ref(make()) for _ in range(3)]
        gc.collect()
        assert not any(r() for r in held), make
    gc.collect()
    count = len(gc.get_objects())
    for _ in range(600):  # more than compiled functions of no name are kept
        ruled()
    gc.collect()
    first = len(gc.get_objects())
    for _ in range(600):
        ruled()
    gc.collect()
    assert len(gc.get_objects()) < first + (first - count) // 2 + 500


def test_a_callback_that_runs_its_own_program():
    made = []
    g = rlx.trace(lambda x: rlx.pure_callback(lambda v: made[0].run(v)[0], rlx.ShapeDtype((3,), "float32"), x), F3)
    made.append(rlx.Session().compile(g))
    with pytest.raises(ValueError, match="64 of its runs are inside each other"):
        made[0].run(F3)


def test_a_cancelled_run_ends():
    f = rlx.jit(endless)

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(f.run_async(np.float32(1)), 0.3)

    before = threading.active_count()
    asyncio.run(main())  # waits for the threads of the loop
    assert threading.active_count() <= before


def test_a_handler_of_ctrl_c_that_goes_on():
    seen = []
    f = rlx.jit(lambda x: rlx.fori_loop(0, 20_000, lambda k, c: rnp.tanh(c @ c), x))
    x = np.eye(100, dtype=np.float32)
    f(x)
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        assert f(x).shape == (100, 100)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert seen == [1]


@pytest.mark.parametrize(
    "head",
    ['{"version": 1}', '{"version": 1, "name": 1, "inputs": [], "weak": null, "tree": {"dict": null}}', "[" * 5000],
)
def test_damaged_heads_of_programs(head, tmp_path):
    path = tmp_path / "p.rlx"
    rlx.jit(lambda x: x + 1).lower(F3).compile().save(path)
    graph_bytes = path.read_bytes()
    size = int.from_bytes(graph_bytes[24:32], "little")
    text = head.encode()
    path.write_bytes(b"RLXPROG1" + len(text).to_bytes(8, "little") + text + graph_bytes[32 + size :])
    with pytest.raises(rlx.BadFile):
        rlx.load(path)
    path.write_bytes(b"RLXPROG7" + graph_bytes[8:])
    with pytest.raises(rlx.BadFile, match="later"):
        rlx.load(path)


def test_leaving_while_a_run_goes_on():
    """The process ends although a daemon thread is in an endless run."""
    text = (
        "import rlx, threading, time\n"
        "f = rlx.jit(lambda x: rlx.while_loop(lambda c: c >= 0, lambda c: c * 0 + 1, x))\n"
        "threading.Thread(target=f, args=(1.0,), daemon=True).start()\n"
        "time.sleep(0.5)\n"
    )
    assert subprocess.run([sys.executable, "-c", text], timeout=60).returncode == 0


def test_a_file_whose_name_is_no_utf8_is_named_in_the_error(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9.safetensors")
    with open(path, "wb") as f:
        f.write(b"no weights")
    with pytest.raises(rlx.BadFile, match=r"caf\\xe9\.safetensors") as caught:
        rlx.load_safetensors(os.fsdecode(path))
    assert "caf\\xe9" in caught.value.message
