"""What helps to find a fault: short tracebacks, guesses for wrong names, printing, running without jit, pickling."""

import asyncio
import os
import pickle
import subprocess
import sys
import threading
import traceback

import numpy as np
import pytest

import rlx
import rlx.numpy as rnp

X = np.arange(3, dtype=np.float32)
PACKAGE = os.path.dirname(rlx.__file__) + os.sep

# -- tracebacks --


def _loss(w, x):
    return (w @ x).sum()


def _files(e):
    return [f.filename for f in traceback.extract_tb(e.__traceback__)]


@pytest.mark.parametrize(
    "call",
    [
        lambda: rlx.jit(_loss)(np.ones((3, 4)), np.ones(5)),
        lambda: rlx.grad(_loss)(np.ones((3, 4)), np.ones(5)),
        lambda: rlx.jit(rlx.vmap(lambda w, x: rlx.grad(_loss)(w, x), in_axes=(None, 0)))(
            np.ones((3, 4)), np.ones((5, 6))
        ),
        lambda: rlx.scan(lambda c, x: (_loss(c, x), None), np.ones((3, 4)), np.ones((2, 5))),
        lambda: rlx.jit(lambda: rlx.cond(True, lambda: _loss(np.ones((3, 4)), rlx.array(np.ones(5))), lambda: 1.0))(),
        lambda: rlx.checkpoint(_loss)(rlx.array(np.ones((3, 4))), np.ones(5)),
        lambda: rlx.jit(_loss).lower(np.ones((3, 4)), np.ones(5)),
    ],
)
def test_tracebacks_are_those_of_the_user(call):
    with pytest.raises(rlx.ShapeMismatch) as short:
        call()
    ours = [f for f in _files(short.value) if f.startswith(PACKAGE)]
    assert len(ours) <= 3, ours
    users = [f.name for f in traceback.extract_tb(short.value.__traceback__) if not f.filename.startswith(PACKAGE)]
    assert users[-1] in ("_loss", "call"), users
    with rlx.full_tracebacks(), pytest.raises(rlx.ShapeMismatch) as full:
        call()
    assert len(_files(full.value)) >= len(_files(short.value))


def test_errors_of_the_user_keep_their_frames():
    def bad(x):
        return {}["a"]

    with pytest.raises(KeyError) as e:
        rlx.jit(rlx.grad(bad))(1.0)
    assert [f.name for f in traceback.extract_tb(e.value.__traceback__)] == [
        "test_errors_of_the_user_keep_their_frames",
        "bad",
    ]


# -- wrong names --


@pytest.mark.parametrize(
    "get, wanted",
    [
        (lambda: rnp.zeros_lik, "did you mean zeros_like"),
        (lambda: rnp.linalg.invv, "did you mean inv"),
        (lambda: rnp.fft.ffft, "did you mean fft"),
        (lambda: rlx.gradd, "did you mean grad"),
        (lambda: rlx.lax.dynamic_slic, "did you mean dynamic_slice"),
        (lambda: rlx.nn.softmaxx, "did you mean softmax"),
        (lambda: rlx.random.normall, "did you mean normal"),
        (lambda: rlx.scipy.special.gamaln, "did you mean gammaln"),
        (lambda: rnp.random, "with a key"),
        (lambda: rnp.tensor, "rlx.numpy.array"),
        (lambda: rlx.random.randn, r"normal\(key, shape\)"),
        (lambda: rlx.nn.Linear, r"x @ weight.T \+ bias"),
        (lambda: rlx.array(X).unsqueeze(0), "expand_dims"),
        (lambda: rlx.array(X).numpy(), "numpy.asarray"),
        (lambda: rlx.array(X).cpu(), r'to\("cpu"\)'),
        (lambda: rlx.array(X).exp(), r"rlx.numpy.exp\(x"),
        (lambda: rlx.jit(lambda x: x.permute(0))(X), r"x.transpose\(axes\)"),
    ],
)
def test_wrong_names(get, wanted):
    with pytest.raises(AttributeError, match=wanted):
        get()


@pytest.mark.parametrize(
    "call, wanted",
    [
        (lambda: rnp.sum(X, axs=0), r"sum has no argument 'axs': did you mean axis\? It has x, axis"),
        (lambda: rnp.sum(X, dim=0), r"sum has no argument 'dim': did you mean axis\?"),
        (lambda: rlx.array(X).sum(keepdim=True), r"did you mean keepdims\?"),
        (lambda: rnp.zeros(2, dtyp="int32"), r"zeros has no argument 'dtyp': did you mean dtype\?"),
        (lambda: rnp.clip(X, mn=0), r"clip has no argument 'mn': did you mean min\?"),
        (lambda: rlx.random.uniform(rlx.random.key(0), minvall=0), r"did you mean minval\? It has key"),
        (lambda: rnp.sum(X, frobnicate=0), r"sum has no argument 'frobnicate'; it has x, axis"),
        (lambda: rlx.jit(lambda x: x, static_argnum=0), "no option 'static_argnum': did you mean static_argnums"),
        (lambda: rlx.jit(lambda x: x, devce="cpu"), r"jit has no option 'devce': did you mean device"),
        (lambda: rlx.jit(lambda x: x, nan_chek=True)(X), r"no compile option 'nan_chek'; did you mean 'nan_check'"),
    ],
)
def test_wrong_names_of_arguments(call, wanted):
    with pytest.raises(TypeError, match=wanted):
        call()


def test_compile_options_are_options_of_jit():
    flags = dict.fromkeys(("fuse", "constant_folding", "dce", "kernels"), True)
    flags |= dict.fromkeys(("keep_stages", "must_alias", "verbose", "nan_check"), False)
    others = {"symbol_modes": {}, "placement": {}, "keep_state_on_failure": []}
    assert np.array_equal(rlx.jit(lambda x: x + 1, **flags, **others)(X), X + 1)


def test_advice_is_no_attribute():
    x = rlx.array(X)
    for name in ("cpu", "numpy", "exp", "unsqueeze"):
        assert not hasattr(x, name) and name not in dir(x) and not hasattr(type(x), name)
    with pytest.raises(AttributeError, match="has no attribute 'qqqqq'$"):
        rnp.qqqqq


@pytest.mark.parametrize(
    "call, what",
    [
        (lambda: rlx.random.normal((3,)), r"normal: the first argument is a key, uint32 \[2\], not int32\[1\]"),
        (lambda: rlx.random.uniform(3), "rlx.random.key"),
        (lambda: rlx.random.split(5), "rlx.random.key"),
        (lambda: rlx.random.bernoulli(0.5), "rlx.random.key"),
        (lambda: rlx.jit(lambda x: rlx.random.gamma(x, (3,)))(X), "rlx.random.key"),
    ],
)
def test_missing_keys(call, what):
    with pytest.raises(TypeError, match=what):
        call()


# -- printing --


def test_prints(capsys):
    def f(x):
        rlx.debug.print("x={x} {}", 3, x=x)
        return x * x

    def printed():
        return capsys.readouterr().out.splitlines()

    f(rlx.array(2.0)), rlx.jit(f)(2.0)
    assert printed() == ["x=2.0 3"] * 2
    assert np.array_equal(rlx.vmap(f)(X), X * X)
    assert printed() == [f"x={float(v)} 3" for v in X]
    assert rlx.vmap(rlx.vmap(f))(X[None]).shape == (1, 3)
    assert printed() == [f"x={float(v)} 3" for v in X]
    assert rlx.grad(f)(2.0) == 4.0 and rlx.jit(rlx.grad(f))(2.0) == 4.0 and rlx.jvp(f, (2.0,), (1.0,))[1] == 4.0
    assert printed() == ["x=2.0 3"] * 3
    rlx.jit(lambda x: rlx.fori_loop(0, 3, lambda i, c: (rlx.debug.print("{i}", i=i), c)[1], x))(2.0)
    assert printed() == ["0", "1", "2"]
    seen = []
    rlx.jit(lambda x: (rlx.debug.callback(lambda a, k: seen.append((a.tolist(), k)), x, k="text"), x)[1])(X)
    assert seen == [(X.tolist(), "text")]


def test_make_jaxpr():
    graph = rlx.make_jaxpr(lambda x, y: x @ y)(np.ones((2, 3)), X)
    assert "matmul" in str(graph) and "[2, 3] f64" in str(graph)
    graph, shape = rlx.make_jaxpr(lambda x, n: x[:n], static_argnums=1, return_shape=True)(X, 2)
    assert shape == rlx.ShapeDtype((2,)) and "slice" in str(graph)


# -- running without jit, NaN --


def test_disable_jit():
    seen = []

    @rlx.jit
    def f(x):
        seen.append(type(x).__name__)
        return x + 1

    with rlx.disable_jit():
        assert np.array_equal(f(rlx.array(X)), X + 1) and np.array_equal(f(rlx.array(X)), X + 1)
        with rlx.disable_jit(False):
            f(rlx.array(X))
    assert seen == ["Array"] * 3
    f(X), f(X)
    assert seen == ["Array"] * 3 + ["Value"]
    assert type(f).__call__ is type(f).__dict__["__call__"] and "slot wrapper" in repr(type(f).__call__)


def not_finite(call):
    with pytest.raises(FloatingPointError) as found:
        call()
    assert isinstance(found.value, rlx.NotFinite) and isinstance(found.value, rlx.Error)
    return found.value


def line_here(offset=0):
    return (__file__, sys._getframe(1).f_lineno + offset)


MINUS = np.array([1, -2, 3], np.float32)


@rlx.jit
def root(x):
    y = x * 2
    return rnp.sqrt(y) + 1


def test_debug_nans_names_the_op_the_element_and_the_line():
    root(MINUS), rnp.log(MINUS)  # compiled before the check is on
    sqrt_line = (__file__, root.__wrapped__.__code__.co_firstlineno + 3)
    with rlx.debug_nans():
        assert np.array_equal(rnp.log(rlx.array(X) + 1), rnp.log(X + 1))
        for _ in range(2):
            e = not_finite(lambda: root(MINUS))
            assert (e.op, e.element, e.line) == ("sqrt", (1,), sqrt_line) and np.isnan(e.value)
            assert "sqrt(-4) gives nan in element [1] of [3] f32" in e.message and f":{sqrt_line[1]}" in e.where
        # Operations on arrays: the line is that of the call, not of the first one.
        e = not_finite(lambda: rnp.log(MINUS))
        assert (e.op, e.element, e.line) == ("log", (1,), line_here(-1)) and "log(-2)" in e.message
        e = not_finite(lambda: rlx.array(MINUS) ** 0.5)
        assert (e.op, e.line) == ("pow", line_here(-1))
        with rlx.debug_nans(False):
            assert np.isnan(root(MINUS)[1])
        with rlx.disable_jit():
            assert not_finite(lambda: root(MINUS)).line == sqrt_line
        e = not_finite(lambda: rlx.jit(lambda x: x + 1)(np.array([0, np.nan], np.float32)))
        assert (e.op, e.element) == ("input", (1,)) and "holds nan" in e.message
    assert np.isnan(rnp.log(np.float32(-1))) and np.isnan(root(MINUS)[1])


def test_debug_nans_in_loops_branches_and_derivatives():
    with rlx.debug_nans():
        rows = np.array([[1, 2], [3, 4], [5, -6]], np.float32)
        e = not_finite(lambda: rlx.scan(lambda c, x: (c + rnp.log(x), c), np.zeros(2, np.float32), rows))
        assert (e.op, e.element, e.iterations, e.line) == ("log", (1,), (2,), line_here(-1))
        assert "in iteration 2 of" in e.where
        e = not_finite(lambda: rlx.while_loop(lambda c: c > -9, lambda c: rnp.sqrt(c) - 1.5, np.float32(4)))
        assert (e.op, e.iterations) == ("sqrt", (2,))  # 4, 0.5, -0.79
        e = not_finite(lambda: rlx.cond(np.bool_(True), lambda x: rnp.arcsin(x), lambda x: x, np.float32(3)))
        assert (e.op, e.line) == ("asin", line_here(-1))
        # where hides the NaN of the value, not that of its derivative.
        safe = lambda x: rnp.where(x > 0, rnp.sqrt(x), 0.0).sum()  # noqa: E731
        zeros = np.zeros(2, np.float32)
        assert safe(zeros) == 0
        e = not_finite(lambda: rlx.grad(safe)(zeros))
        assert (e.op, e.line[0]) == ("div", __file__) and "(0, 0)" in e.message
        assert not_finite(lambda: rlx.vmap(lambda x: rnp.log(x - 1))(X)).op == "log"


def test_nan_check_of_infinities_of_threads_and_as_an_option():
    with rlx.debug_nans():
        assert np.isinf(rnp.exp(np.float32(1000)))
        others = []
        thread = threading.Thread(target=lambda: others.append(rnp.log(MINUS)))
        thread.start(), thread.join()
        assert np.isnan(np.asarray(others[0])[1])
        e = not_finite(lambda: asyncio.run(root.run_async(MINUS)))
        assert (e.op, e.element) == ("sqrt", (1,))
    assert np.isnan(asyncio.run(root.run_async(MINUS))[1])
    with rlx.debug_nans(infs=True):
        e = not_finite(lambda: rnp.exp(np.float32(1000)))
        assert (e.op, e.value) == ("exp", np.inf) and "exp(1000) gives inf" in e.message
    assert not_finite(lambda: rlx.jit(lambda x: rnp.log(x), nan_check=True)(MINUS)).op == "log"
    assert not_finite(lambda: rlx.jit(lambda x: 1 / x, nan_check="inf")(np.float32(0))).op == "div"
    program = rlx.Session().compile(rlx.trace(lambda x: rnp.log(x), MINUS), nan_check=True)
    assert not_finite(lambda: program.run(MINUS)).element == (1,)
    with pytest.raises(rlx.InvalidArgument, match="nan_check = 'maybe'"):
        rlx.jit(lambda x: x, nan_check="maybe")(MINUS)
    text = "import rlx.numpy as np\ntry: np.log(-1.0)\nexcept FloatingPointError as e: print(e.op, e.line[1])"
    env = dict(os.environ, RLX_NAN_CHECK="1")
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=env)
    assert out.stdout == "log 2\n", out.stderr


# -- pickling --


@rlx.jit
def doubled(x):
    return 2 * x


def test_jitted_functions_pickle(tmp_path):
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    again = pickle.loads(pickle.dumps(rlx.jit(_loss, donate_argnums=(1,), device="cpu", static_argnames=())))
    assert float(again(np.ones((2, 3)), np.ones(3))) == 6.0
    (tmp_path / "jitted.py").write_text("import rlx\n@rlx.jit\ndef f(x):\n    return x + 1\ng = rlx.jit(len)\n")
    program = (
        f"import sys, pickle; sys.path.insert(0, {str(tmp_path)!r}); import jitted; "
        "assert pickle.loads(pickle.dumps(jitted.f)) is jitted.f; print(pickle.loads(pickle.dumps(jitted.f))(1))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout == "2\n", out.stderr
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(rlx.jit(lambda x: x))


# -- arrays of other layouts, files --


@pytest.mark.parametrize("dtype", [">f4", ">i4", ">f8", ">u2", ">i8", ">f2", ">c8", ">c16"])
def test_arrays_in_the_other_byte_order(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    native = x.astype(x.dtype.newbyteorder("="))
    for got in (rlx.array(x), rnp.asarray(x), rlx.jit(lambda x: x)(x), rnp.stack([x, x])[0], rlx.array(x.T).T):
        assert got.dtype == native.dtype.name and np.array_equal(got, native)
    assert np.array_equal(rlx.array(native) + x, native + native)
    assert np.array_equal(rlx.vmap(lambda x: x.sum())(x), native.sum(1))


def test_arrays_stored_by_columns():
    x = np.asfortranarray(np.arange(24.0).reshape(2, 3, 4))
    for y in (x, x.T, x[::-1, :, ::2], np.broadcast_to(x[:1], (5, 3, 4))):
        assert np.array_equal(rlx.array(y), y) and np.array_equal(rlx.jit(lambda x: x + 1)(y), y + 1)
        assert rlx.array(y).tobytes() == y.tobytes()


def test_repr_of_empty_arrays():
    assert repr(rnp.zeros((0, 3))) == "Array([], shape=(0, 3), dtype=float32)"
    assert repr(rnp.zeros((2, 0), "int8")) == "Array([], shape=(2, 0), dtype=int8)"
    assert repr(rnp.zeros(0)) == "Array([], shape=(0,), dtype=float32)"


def test_trees_in_safetensors(tmp_path):
    layers = [{"w": X, "b": np.zeros(2, np.float32)}, {"w": 2 * X, "b": np.ones(1, np.float32)}]
    params = {"layers": layers, "pair": (X, X + 1), "scale": np.float32(3)}
    path = tmp_path / "x.safetensors"
    rlx.save_safetensors(path, params, metadata={"kind": "test"})
    names = {"layers.0.w", "layers.0.b", "layers.1.w", "layers.1.b", "pair.0", "pair.1", "scale"}
    assert set(rlx.load_safetensors(path)) == names
    back = rlx.load_safetensors(path, like=params)
    assert rlx.tree.structure(back) == rlx.tree.structure(params)
    assert all(np.array_equal(a, b) for a, b in zip(rlx.tree.leaves(back), rlx.tree.leaves(params)))
    with pytest.raises(rlx.NotFound, match="the file has no array 'other'"):
        rlx.load_safetensors(path, like={"other": X})
    with pytest.raises(ValueError, match="two arrays of the tree have the name 'a.b'"):
        rlx.save_safetensors(path, {"a": {"b": X}, "a.b": X})
    with pytest.raises(TypeError, match="a safetensors file has names"):
        rlx.save_safetensors(path, X)
    rlx.save_safetensors(path, [X, X + 1])
    assert np.array_equal(rlx.load_safetensors(path)["1"], X + 1)
