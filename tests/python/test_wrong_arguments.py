"""Calls of every public function with arguments that cannot be meant: the error names the function and the argument.

A function that works on some arguments is called with one of them replaced by something hostile: objects of other
libraries, numbers out of range, NaN where counts are wanted, shapes, dtypes and texts that do not fit. What Python or
NumPy raise deep inside of the package must not arrive as it is, nor an internal error, nor a call that does not end.
"""

import importlib
import inspect
import itertools
import os
import pickle
import pkgutil
import random
import re
import signal
import traceback
import types

import numpy as np
import pytest
import wrong_calls

import rlx
import rlx.numpy as rnp

F = np.linspace(0.1, 0.9, 12, dtype=np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3) + 0.5
KEY = rlx.random.key(0)


def _modules():
    yield rlx
    for m in pkgutil.walk_packages(rlx.__path__, "rlx."):
        if not any(part.startswith("_") for part in m.name.split(".")[1:]):
            yield importlib.import_module(m.name)


# They change the process, read files or ask a hub.
SKIPPED = set(
    "breakpoint cached clear_caches custom_op debug_nans disable_jit find frombuffer fromfile fromiter fromstring "
    "full_tracebacks genfromtxt io_callback load load_plugin load_safetensors loadtxt open printoptions pull register "
    "register_dataclass register_pytree_node register_pytree_node_class register_pytree_with_keys "
    "register_pytree_with_keys_class register_static save save_safetensors savez set_printoptions".split()
)


def _functions():
    seen, out = set(), []
    for module in _modules():
        for name in sorted(getattr(module, "__all__", None) or dir(module)):
            f = getattr(module, name)
            if name.startswith("_") or isinstance(f, (type, types.ModuleType)) or not callable(f) or id(f) in seen:
                continue
            seen.add(id(f))
            if type(f).__name__ != "dtype" and "rlx" in getattr(f, "__module__", "") and name not in SKIPPED:
                out.append((f"{module.__name__}.{name}", f))
    return out


FUNCTIONS = _functions()


# -- names --


def test_every_misspelt_argument_gets_a_guess():
    count, wrong = 0, []
    for name, f in FUNCTIONS:
        try:
            parameters = list(inspect.signature(f).parameters.values())
        except (TypeError, ValueError):
            continue
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            continue
        for p in parameters:
            misspelt = p.name[:-2] + p.name[-1]
            if (
                len(p.name) < 5
                or p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)
                or misspelt in [q.name for q in parameters]
            ):
                continue
            count += 1
            with pytest.raises(TypeError) as e:
                f(**{misspelt: 1})
            if not re.search(rf"has no argument '{misspelt}': did you mean .*\b{p.name}\b", str(e.value)):
                wrong.append((name, misspelt, str(e.value)))
    assert count > 1200 and not wrong, wrong


# -- values --


class Foreign:
    pass


class Lying:
    """An object that says that it is an array, and has no data."""

    shape, dtype, ndim = (3,), np.dtype("float32"), 1

    def __array__(self, *args, **kwargs):
        raise TypeError("there is no data")


class Capsule:
    def __dlpack__(self, *args, **kwargs):
        return 3

    def __dlpack_device__(self):
        return (1, 0)


def _one():
    yield 1


def _usual():
    """Arguments of which most functions take some."""
    add = lambda *a: a[0]  # noqa: E731
    return [
        *(
            F.reshape(3, 4),
            np.eye(3, dtype=np.float32) + 0.1,
            F[:4],
            np.float32(0.5),
            np.arange(4, dtype=np.int32),
            KEY,
        ),
        *(F.reshape(1, 3, 4), F.reshape(1, 1, 3, 4), 1, 2, 0, 3, (3, 4), 0.5, [F[:4], F[:4]], "float32", add),
        *((0, 1), ((0, 1), (0, 1)), np.array([True, False, True, True]), (F[:4] + 0j).astype(np.complex64)),
        *({"a": F[:4]}, "linear", "ij,jk->ik", (lambda x: x.sum()), rlx.ShapeDtype((4,)), None, [1, 2], [add, add]),
    ]


def _hostile():
    return [
        *(None, "text", "", "\x00\n\u202e", "ünï", b"bytes", 1.5, -1, -7, 2**40, 2**63, 2**70, -(2**70), 10**400),
        *(float("nan"), float("inf"), -float("inf"), 1j, True, [], (), {}, set(), {1, 2}, object(), Foreign(), Foreign),
        *(Lying(), Capsule(), len, _one(), _one, np.array(["a", "b"]), np.array([None, 1]), np.array([])),
        *(np.zeros((0, 3), np.float32), np.ones((2, 3, 4, 5), np.float32), np.array(["2020"], "datetime64[D]")),
        *(np.ones(7, np.float32), np.array([1 + 1j]), np.array([True]), np.int8(5), np.array(3.0), np.longdouble(1)),
        *(np.array([2**63], np.uint64), np.array([-5, 100, 2**40]), np.array([np.nan, np.inf]), [1, [2, 3]], ["a"]),
        *([None], (1,), tuple(range(1, 10)), (-1,), (0, 0), (5, 5), (2**40, 2**40), (2**62,), range(3), rlx.float32),
        *("float8", "int32", "complex64", rlx.ShapeDtype((2,)), Ellipsis, NotImplemented, slice(None), type, int),
        *({"a": 1}, [(), ()], (lambda: 0), (lambda x: None), np.ma.masked_array([1, 2], [0, 1]), memoryview(b"abc")),
        "x" * 5000,
    ]


# What Python and NumPy say of operands that they cannot use.
BARE = re.compile(
    r"object has no attribute|is not iterable|unsupported operand|not subscriptable|index out of range|has no len\(\)|"
    r"to unpack|cannot unpack|incompatible function arguments|object is not callable|"
    r"cannot be interpreted as an integer|"
    r"not supported between|bad operand type|^\d+$|^'\w+'$|unhashable|can't multiply|only integer scalar|"
    r"truth value of|isinstance\(\)|does not support|expected at (least|most)|argument of type '\w+'|internal"
)


class TooLong(Exception):
    pass


def _called(f, args, kwargs):
    """The error of a call, or None."""

    def stop(*_):
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 20)
    try:
        f(*args, **kwargs)
        return None
    except Exception as e:
        return e
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_ours(frame):
    """Whether it is a frame of a function that _usual or _hostile gives."""
    lines = (inspect.getsourcelines(f) for f in (_usual, _hostile))
    return frame.filename == __file__ and any(at <= frame.lineno < at + len(text) for text, at in lines)


def _fault(e, name):
    """What is wrong with an error; None if it may arrive."""
    text, kind = str(e), type(e)
    if isinstance(e, TooLong):
        return "does not end"
    if isinstance(e, rlx.Error) and not isinstance(e, rlx.InternalError):
        return None
    if isinstance(e, (rlx.InternalError, SystemError, AssertionError, RecursionError, UnboundLocalError, MemoryError)):
        return kind.__name__
    if _is_ours(traceback.extract_tb(e.__traceback__)[-1]):
        return None
    if kind in (KeyError, AttributeError, RuntimeError, ZeroDivisionError):
        return kind.__name__
    if text.startswith(f"{name}(") or re.match(r"[\w.]+: [\w.]+ must be ", text):
        return None
    return "bare" if not text.strip() or BARE.search(text) else None


def _base(f, required, rng):
    """Arguments that the function takes, or some that it may not."""
    choices = [
        [KEY]
        if n == "key"
        else [(3, 4), 3]
        if n == "shape"
        else _usual()[16:17]
        if n in ("fun", "f", "fn")
        else _usual()
        for n in required
    ]
    if len(choices) < 2:
        tried = itertools.product(*choices)
    else:
        tried = ([rng.choice(c) for c in choices] for _ in range(60))
    first = None
    for args in tried:
        first = first or list(args)
        if _called(f, args, {}) is None:
            return list(args)
    return first or []


def _sweep(functions, count, seed):
    rng, faults, calls = random.Random(seed), [], 0
    for name, f in functions:
        try:
            parameters = list(inspect.signature(f).parameters.values())
        except (TypeError, ValueError):
            continue
        placed = [
            p.name
            for p in parameters
            if p.kind is p.VAR_POSITIONAL
            or p.default is p.empty
            and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.default is not p.empty]
        base = _base(f, placed, rng)
        for place in [*range(len(base)), *named]:
            for value in rng.sample(_hostile(), count):
                args, kwargs = list(base), {}
                if isinstance(place, int):
                    args[place] = value
                else:
                    kwargs[place] = value
                calls += 1
                e = _called(f, args, kwargs)
                fault = None if e is None else _fault(e, f.__name__)
                if fault:
                    faults.append(
                        (name, placed[place] if isinstance(place, int) else place, repr(value)[:40], fault, e)
                    )
    return calls, faults


@pytest.mark.parametrize("part", range(8))
def test_hostile_arguments(part, full):
    """A sample of functions, and in the full run all of them with many values."""
    mine = FUNCTIONS[part::8] if full else FUNCTIONS[part :: 8 * 6]
    calls, faults = _sweep(mine, 8 if full else 3, part)
    assert calls > 50 and not faults, faults


def _methods(x, x_at):
    for name in dir(x):
        if not name.startswith("_") and name not in ("to", "block_until_ready", "tolist", "to_host"):  # not of Python
            method = getattr(x, name)
            if callable(method):
                yield name, method
    for name in dir(x_at):
        if not name.startswith("_") and callable(getattr(x_at, name)):
            yield name, getattr(x_at, name)
    yield "at", lambda index, *_: x.at[index]
    yield "[]", lambda index, *_: x[index]


def test_hostile_arguments_of_methods(full):
    rng, faults, calls = random.Random(0), [], 0

    def look(x):
        nonlocal calls
        for name, method in _methods(x, x.at[0]):
            for value in rng.sample(_hostile(), 12 if full else 3):
                for args in ((value,), (0, value)):
                    calls += 1
                    e = _called(method, args, {})
                    # What Python says of operators is what NumPy says.
                    fault = None if e is None or str(e).startswith("unsupported operand") else _fault(e, name)
                    if fault:
                        faults.append((type(x).__name__, name, repr(value)[:40], fault, e))
        return x

    look(rlx.array(X))
    rlx.jit(look)(X)
    assert calls > 500 and not faults, faults


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: rlx.nn.one_hot(rnp.arange(3), ()), r"one_hot: num_classes must be an integer, got \(\)"),
        (lambda: rlx.lax.approx_min_k(F, "a"), r"approx_min_k: k must be an integer, got 'a' \(str\)"),
        (lambda: rnp.concatenate(5), r"concatenate: arrays must be a list or tuple of arrays, got 5 \(int\)"),
        (lambda: rlx.nn.smooth_l1_loss(F, F, beta=1j), r"smooth_l1_loss: beta must be a number, got 1j"),
        (lambda: rnp.array([1], device=3), r"array: device must be a text, got 3 \(int\)"),
        (lambda: rnp.var(F, dtype="int32"), "var: dtype must be floating or complex, got int32"),
        (lambda: rlx.grad(lambda x: x, argnums=1.5), r"grad: argnums must be .* tuple of integers, got 1.5"),
        (lambda: rlx.eval_shape(5), "eval_shape: fun must be a function, got 5"),
        (lambda: rlx.debug.print(5), "debug.print: fmt must be a text"),
        (lambda: rlx.debug.callback(5), "debug.callback: fun must be a function"),
        (lambda: rlx.array(X).view(3, 2), r"x.reshape\(shape\)"),
        (lambda: rlx.array(X).at(0), r"x.at\[index\].set\(values\)"),
        (lambda: rlx.random.key("a"), "the seed must be an integer, got 'a'"),
        (lambda: rlx.random.uniform(KEY, (2,), minval=1j), "uniform: minval must be real"),
        (lambda: rlx.random.truncated_normal(KEY, np.ones(2) * 1j, 2.0), "lower must be real"),
        (lambda: rlx.random.gamma(KEY, a=1j), "gamma: a must be real"),
        (lambda: rnp.packbits(X), "packbits of float32"),
        (lambda: rlx.ShapeDtype("a"), "an extent must be an integer, got 'a'"),
        (lambda: rlx.jvp(lambda x: x * x, (3,), (1,)), "a primal has dtype int32"),
        (lambda: rlx.linear_transpose(rnp.sin, X)(X), "is not linear"),
        (lambda: rlx.checkpoint(5), "checkpoint: fun must be a function, got 5"),
        (lambda: rlx.custom_vjp(5), "custom_vjp: fun must be a function"),
        (lambda: rlx.custom_jvp(abs).defjvp(5), "defjvp: the rule must be a function"),
        (lambda: rlx.custom_vjp(abs).defvjp(abs, 5), "defvjp: backward must be a function"),
        (lambda: rlx.custom_gradient(5), "custom_gradient: fun must be a function"),
        (lambda: rlx.closure_convert(5), "closure_convert: fun must be a function"),
        (lambda: rnp.vectorize(5), "vectorize: pyfunc must be a function"),
        (lambda: rlx.models.Conversation(5), "model must be what rlx.models.load returns"),
    ],
)
def test_the_argument_is_named(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: rnp.vander(F, 10**39), "vander: N = 10"),
        (lambda: rnp.triu_indices(10**39), "triu_indices: an array"),
        (lambda: rnp.diag_indices(3, 10**9), "diag_indices: ndim"),
        (lambda: rlx.scipy.linalg.hadamard(2**70), "hadamard: n = "),
        (lambda: rnp.array(X, order="Q"), "order 'Q'"),
        (lambda: rnp.fft.ifftn(X, norm=""), "norm ''"),
        (lambda: rnp.sort(X, kind="nope"), "sort: kind 'nope'"),
        (lambda: rlx.nn.one_hot(rnp.arange(3), -1), "num_classes must not be negative"),
        (lambda: rlx.nn.initializers.variance_scaling(-1, "fan_in", "normal"), "scale must not be negative"),
        (lambda: rlx.lax.broadcast_to_rank(X, 2**40), "broadcast_to_rank: rank"),
        (lambda: rlx.lax.broadcast_to_rank(X, 1), "broadcast_to_rank: rank 1 for an array with 2 axes"),
        (lambda: rlx.ShapeDtype((-1,)), "an extent must not be negative, got -1"),
        (lambda: rlx.checkpoint(lambda x: x, static_argnums=7)(X), "static_argnums 7 for a call with 1"),
    ],
)
def test_values_that_were_taken(call, words):
    """They ran for ever, had no effect, or gave something else."""
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(
    "get, words",
    [
        (lambda x: x.at.set(1), r"x.at\[index\].set\(values\)"),
        (lambda x: x.at[0].sett(1), "did you mean set"),
        (lambda x: x.masked_fill, "rlx.numpy.where"),
        (lambda x: x.mul(2), r"x \* y"),
        (lambda x: x.add_(2), "arrays do not change"),
        (lambda x: rlx.no_grad, "rlx.stop_gradient"),
        (lambda x: rlx.optim, "rlx.tree.map"),
        (lambda x: rnp.cat, "rlx.numpy.concatenate"),
    ],
)
def test_names_of_other_libraries(get, words):
    with pytest.raises(AttributeError, match=words):
        get(rlx.array(X))


def test_a_number_is_no_path(tmp_path):
    """Python's open takes the number of an open file, and closes it in the end."""
    with open(tmp_path / "f", "w") as file:
        for call in (rlx.load, rlx.load_safetensors, rlx.text.Tokenizer, rlx.models.load):
            with pytest.raises(TypeError):
                call(file.fileno())
        file.write("still open")


def test_calls_that_cannot_be_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, wrong = wrong_calls.names(tmp_path), []
    for call in wrong_calls.CALLS:
        e = _called(lambda: eval(call, names), (), {})  # noqa: B023, S307
        if e is None:
            wrong.append((call, "is taken"))
        elif not str(e) or isinstance(e, (rlx.InternalError, TooLong)) or BARE.search(str(e)) and "(" not in str(e):
            wrong.append((call, repr(e)))
    assert len(wrong_calls.CALLS) > 450 and not wrong, wrong


def test_a_graph_that_was_compiled_says_so_wherever_it_is_asked():
    g = rlx.Graph()
    x = g.input("x", [2])
    g.set_outputs(g.relu(x))
    rlx.Session().compile(g)
    calls = [
        *(g.text, g.copy, g.inputs, g.params, g.states, g.fingerprint, g.to_bytes, g.verify, g.inspect, g.ops),
        *(g.evaluate, lambda: g.set_outputs(x), lambda: g.relu(x), lambda: g.param("w", [2]), lambda: g.symbol("n")),
        *(lambda: g.grad("x"), lambda: g.hessian("x"), lambda: g.name, lambda: g.outputs, lambda: g.constant(1.0)),
    ]
    for call in calls:
        with pytest.raises(rlx.InvalidArgument, match="was consumed by compile"):
            call()


def test_an_array_that_was_donated_has_no_shape():
    x = rlx.array(np.ones((3, 2), np.float32))
    rlx.jit(lambda v: v + 1, donate_argnums=0)(x)
    for name in ("shape", "dtype", "T"):
        with pytest.raises(rlx.InvalidArgument, match="donated"):
            getattr(x, name)


# -- whose error it is --


def _frames(e):
    package = os.path.dirname(rlx.__file__)
    return ["rlx" if f.filename.startswith(package) else f.name for f in traceback.extract_tb(e.__traceback__)][1:]


def _loss(x):
    return rnp.dot(x, rnp.ones(7)).sum()


@pytest.mark.parametrize(
    "call",
    [
        lambda: rlx.scan(lambda c, v: (_loss(c), None), F, None, length=2),
        lambda: rlx.while_loop(lambda c: True, _loss, F),
        lambda: rlx.fori_loop(0, 2, lambda i, c: _loss(c), F),
        lambda: rlx.jvp(_loss, (F,), (F,)),
        lambda: rlx.vjp(_loss, F),
        lambda: rlx.hvp(_loss, (F,), (F,)),
        lambda: rlx.scipy.optimize.minimize(_loss, F, method="BFGS"),
        lambda: rnp.dot(F, rnp.ones(7)),
        lambda: rlx.nn.softmax(F, axis=4),
    ],
)
def test_tracebacks_have_one_frame_of_rlx_at_most(call):
    with pytest.raises(ValueError) as e:
        call()
    assert _frames(e.value).count("rlx") <= 1, _frames(e.value)
    with rlx.full_tracebacks(), pytest.raises(ValueError) as full:
        call()
    assert len(_frames(full.value)) > len(_frames(e.value))


def test_errors_of_functions_of_the_user_stay():
    def bad(x):
        return {}["a"]

    for run in (
        lambda: rlx.scan(lambda c, v: (bad(c), None), F, None, length=2),
        lambda: rlx.tree.map(bad, [1]),
        lambda: rnp.apply_along_axis(bad, 0, X),
        lambda: rlx.pure_callback(bad, rlx.ShapeDtype((3,)), F[:3]),
    ):
        with pytest.raises(KeyError) as e:
            run()
        assert e.value.args == ("a",) and _frames(e.value)[-1] == "bad"


def test_an_error_that_says_what_is_wrong_stays():
    with pytest.raises(ValueError, match="^tensordot: axis 0 of the first array has 12 entries"):
        rlx.jit(rlx.grad(_loss))(F)


# -- what was silently wrong --


def test_a_tree_of_other_shapes(tmp_path):
    rlx.save_safetensors(tmp_path / "w", {"a": {"b": X}})
    assert rlx.load_safetensors(tmp_path / "w", like={"a": {"b": rlx.ShapeDtype((2, 3))}})["a"]["b"].shape == (2, 3)
    with pytest.raises(rlx.ShapeMismatch, match=r"'a.b' has the shape \(2, 3\) in the file and \(3, 2\) in"):
        rlx.load_safetensors(tmp_path / "w", like={"a": {"b": X.T}})


def test_dtypes_of_means():
    for axis in (None, 0):
        got, want = rnp.mean(X, axis, dtype="int32"), np.mean(X, axis, dtype="int32")
        assert got.dtype == "int32" and np.array_equal(got, want)
    assert rnp.cummin(X, dtype="int32").dtype == "int32" and rnp.cummax(X, 0, "float64").dtype == "float64"


def _square(x):
    return (x * x).sum()


@pytest.mark.parametrize(
    "f",
    [
        rlx.grad(_square),
        rlx.value_and_grad(_square),
        rlx.jacfwd(_square),
        rlx.jacrev(_square),
        rlx.hessian(_square),
        rlx.vmap(_square, axis_size=2),
        rlx.vmap(rlx.grad(_square)),
    ],
)
def test_transformed_functions_are_pickled(f):
    for a, b in zip(rlx.tree.leaves(pickle.loads(pickle.dumps(f))(X)), rlx.tree.leaves(f(X))):
        assert np.array_equal(a, b)


def test_public_functions_are_pickled_by_name():
    for name, f in FUNCTIONS:
        if inspect.isfunction(f):
            assert pickle.loads(pickle.dumps(f)) is f, name
