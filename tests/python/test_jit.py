"""Compiled functions: signatures, trees, static arguments, symbolic extents, saved programs, and what they refuse."""

import collections
import concurrent.futures
import dataclasses
import gc
import weakref

import numpy as np
import pytest
import rlx
import rlx.numpy as rnp

x23 = np.arange(6, dtype=np.float32).reshape(2, 3)


@dataclasses.dataclass(frozen=True)
class Layer:
    w: object
    b: object
    name: str = dataclasses.field(default="layer", metadata={"static": True})


Point = collections.namedtuple("Point", "x y")


# -- signatures --


def test_one_compile_for_each_signature():
    f = rlx.jit(lambda x: x * 2)
    f(x23)
    f(x23 + 1)
    f(rlx.array(x23))
    assert f.misses == 1
    f(x23.T.copy())
    f(x23.astype(np.float64))
    assert f.misses == 3


def test_python_numbers_are_weak_arguments():
    f = rlx.jit(lambda x, s: x * s)
    assert f(x23.astype(np.float16), 2.5).dtype == "float16"
    assert f(x23.astype(np.float16), 3.5).dtype == "float16" and f.misses == 1
    assert rlx.jit(lambda i: i + 1)(2).dtype == rlx.int32


def test_the_cache_is_bounded():
    f = rlx.jit(lambda x: x + 1, cache_size=4)
    for n in range(1, 10):
        f(np.zeros(n, np.float32))
    assert f.cache_size() == 4
    f(np.zeros(9, np.float32))
    assert f.misses == 9  # the last ones are those that stay


def test_trees_in_and_out():
    f = rlx.jit(lambda t: {"sum": t["a"] + t["b"][0], "pair": (t["b"][1], None), "point": Point(t["a"], 1.0)})
    out = f({"a": np.float32(1), "b": [np.float32(2), x23]})
    assert float(out["sum"]) == 3 and out["pair"][1] is None and float(out["point"].y) == 1
    np.testing.assert_array_equal(out["pair"][0], x23)
    layer = Layer(x23, np.ones(3, np.float32), "first")
    seen = []

    @rlx.jit
    def step(layer):
        seen.append(layer.name)
        return dataclasses.replace(layer, w=layer.w * 2)

    out = step(layer)
    assert isinstance(out, Layer) and out.name == "first" and float(out.w[1, 2]) == 10
    step(dataclasses.replace(layer, name="second"))
    assert seen == ["first", "second"]


def test_registered_trees():
    class Box:
        def __init__(self, value):
            self.value = value

    rlx.tree.register(Box, lambda b: ((b.value,), None), lambda _, c: Box(*c))
    assert float(rlx.jit(lambda b: Box(b.value + 1))(Box(np.float32(2))).value) == 3


def test_static_arguments():
    traced = []

    @rlx.jit(static_argnames="mode")
    def f(x, mode="sum"):
        traced.append(mode)
        return rnp.sum(x) if mode == "sum" else rnp.max(x)

    assert float(f(x23)) == 15 and float(f(x23, mode="max")) == 5 and float(f(x23, "max")) == 5
    assert float(f(x23 + 1, mode="sum")) == 21
    assert set(traced) == {"sum", "max"}
    with pytest.raises(TypeError, match="not hashable"):
        f(x23, mode=["sum"])
    with pytest.raises(ValueError, match="no argument 'mood'"):
        rlx.jit(lambda x, mode: x, static_argnames="mood")


def test_methods_are_functions_too():
    class Model:
        @rlx.jit
        def twice(self, x):
            return x * 2

    class Tree:
        pass

    with pytest.raises(TypeError, match="static_argnames"):
        Model().twice(x23)  # `self` is no array: say so

    class Static:
        @rlx.jit(static_argnums=0)
        def twice(self, x):
            return x * 2

    assert float(Static().twice(x23)[0, 1]) == 2


def test_closures_are_captured():
    w = rlx.array(x23)
    f = rlx.jit(lambda x: x + w)
    np.testing.assert_array_equal(f(x23), x23 * 2)
    ref = weakref.ref(f)
    del f
    gc.collect()
    assert ref() is None


def test_eval_shape():
    s = rlx.eval_shape(lambda x: {"y": x @ x.T}, x23)
    assert s["y"].shape == (2, 2) and s["y"].dtype == "float32"
    assert rlx.eval_shape(lambda x: x + 1, rlx.ShapeDtype((3,), "int32")).shape == (3,)


# -- symbolic extents --


def test_symbolic_extents():
    f = rlx.jit(
        lambda x: rnp.sum(x * 2, axis=0), dims={"x": ("n", 3)}, symbol_modes={"n": "runtime"}, bounds={"n": (1, 64)}
    )
    for n in (1, 5, 64):
        x = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
        np.testing.assert_allclose(f(x), 2 * x.sum(0), rtol=1e-5, atol=1e-5)
    assert f.misses == 1
    with pytest.raises(ValueError, match="'n' = 65 is outside"):
        f(np.zeros((65, 3), np.float32))


def test_symbols_are_no_python_numbers():
    f = rlx.jit(lambda x: x * (2 if x.shape[0] > 3 else 1), dims={"x": ("n",)})
    with pytest.raises(ValueError, match="whether n > 3 is not known"):
        f(np.zeros(4, np.float32))
    g = rlx.jit(lambda x: x / rnp.astype(rnp.size_of(x, 0), "float32"), dims={"x": ("n",)})
    np.testing.assert_allclose(g(np.ones(4, np.float32)), np.full(4, 0.25))
    with pytest.raises(ValueError, match="no array argument 'y'"):
        rlx.jit(lambda x: x, dims={"y": ("n",)})(np.zeros(4, np.float32))


# Functions of x [n, 3] that give for a symbolic n what they give for the number.
OVER_SYMBOLS = {
    "std": lambda x: x.std(0),
    "var": lambda x: (rnp.var(x, 0, ddof=1), rnp.var(x), rnp.var(x * (1 + 2j), 0), rnp.std(rnp.bfloat16(x), 0)),
    "divided": lambda x: (x.sum(0) / x.shape[0], x.sum() / x.size, rnp.divide(x, x.shape[0])),
    "from the left": lambda x: (x.sum(0) * (1 / x.shape[0]), x.shape[0] * x, x.shape[0] - x, x / x.shape[0] ** 0.5),
    "compared": lambda x: (x < x.shape[0], x.shape[0] > x, rnp.arange(x.shape[0]) == x.shape[0] - 1),
    "arange": lambda x: (rnp.arange(x.shape[0]), rnp.arange(1, x.shape[0] + 1)),
    "arange of floats": lambda x: rnp.arange(x.shape[0], dtype="float32"),
    "arange with steps": lambda x: (rnp.arange(0, x.shape[0], 2), rnp.arange(x.shape[0] - 1, -1, -2)),
    "linspace": lambda x: (rnp.linspace(0, 1, x.shape[0]), rnp.linspace(x[0], 1, x.shape[0], retstep=True)),
    "linspace without its end": lambda x: rnp.linspace(0, 1, x.shape[0], endpoint=False, retstep=True),
    "roll": lambda x: (rnp.roll(x, 1, 0), rnp.roll(x, -1), rnp.roll(x, x.shape[0] - 1, 0)),
    "median": lambda x: (rnp.median(x, 0), rnp.median(x), rnp.nanmedian(x, 0), rnp.quantile(x, 0.3, 0)),
    "taken": lambda x: (rnp.take(x, rnp.array([0, -1]), 0), x[rnp.array([0, -1])], x[rnp.arange(x.shape[0]), 0]),
    "cov": lambda x: rnp.cov(x[:-1].T, bias=True),
    "fori_loop": lambda x: rlx.fori_loop(0, x.shape[0], lambda i, c: c + x[i], x[0] * 0),
    "grad": lambda x: rlx.grad(lambda x: (x.std(0) * x.sum(0) / x.shape[0]).sum())(x),
}


@pytest.mark.parametrize("mode", ["specialise", "runtime"])
@pytest.mark.parametrize("name", OVER_SYMBOLS)
def test_functions_of_symbolic_extents(name, mode):
    f = OVER_SYMBOLS[name]
    g = rlx.jit(f, dims={"x": ("n", 3)}, bounds={"n": (2, 64)}, symbol_modes={"n": mode})
    for n in (5, 2, 8):
        x = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
        got, want = rlx.tree.leaves(g(x)), rlx.tree.leaves(rlx.jit(f)(x))
        for a, b in zip(got, want):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(np.asarray(a, b.dtype), np.asarray(b), rtol=1e-5, atol=1e-6)
        assert len(got) == len(want)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: rnp.arange(0, x.shape[0], 0.5), r"arange\(0, n, 0.5\) over a symbolic extent"),
        (lambda x: x.at[0].set(1), "with the symbolic extent n"),
        (lambda x: x[::2], "step 2 is not supported over the symbolic extent n"),
        (lambda x: x.sum() / float(x.shape[0]), "rlx.numpy.size_of"),
        (lambda x: x.sum() / len(x), "len.. of an axis of symbolic extent n"),
    ],
)
def test_what_takes_no_symbolic_extent(f, words):
    with pytest.raises((TypeError, ValueError, IndexError), match=words):
        rlx.jit(f, dims={"x": ("n", 3)}, bounds={"n": (1, 64)})(np.ones((4, 3), np.float32))


# -- programs --


def test_lowered_programs_are_saved_and_loaded(tmp_path):
    f = rlx.jit(lambda p, x: {"y": rnp.tanh(x @ p["w"]), "n": (x.sum(), None)})
    p = {"w": np.ones((3, 4), np.float32)}
    program = f.lower(p, x23).compile()
    want = f(p, x23)
    np.testing.assert_array_equal(program(p, x23)["y"], want["y"])
    path = tmp_path / "f.rlx"
    program.save(path)
    again = rlx.load(path)
    out = again(p, x23)
    np.testing.assert_array_equal(out["y"], want["y"])
    assert float(out["n"][0]) == 15 and out["n"][1] is None
    assert "tanh" in f.lower(p, x23).as_text()
    for damaged in (b"", path.read_bytes()[:40], path.read_bytes()[:-5], b"RLXPROG1" + b"\xff" * 40):
        path.write_bytes(damaged)
        with pytest.raises(rlx.BadFile):
            rlx.load(path)


def test_graphs_text_and_bytes():
    g = rlx.jit(lambda x: rnp.sin(x)).lower(x23).graph
    again = rlx.parse(g.text())
    assert again.fingerprint() == g.fingerprint() == rlx.parse(g.to_bytes()).fingerprint()
    with pytest.raises(rlx.BadFile, match="g.txt:"):
        rlx.parse("graph @g { %0 = sine(%1) }", "g.txt")
    with pytest.raises(rlx.BadFile):
        rlx.parse(g.to_bytes()[:-3])


# -- graphs by hand --


def test_a_graph_with_weights_and_state():
    g = rlx.Graph("count")
    x = g.input("x", (2,))
    w = g.param("w", (2, 2))
    n = g.state("n", np.float32(0))
    g.set_state("n", n + 1)
    g.set_outputs(g.softmax(x @ w, axis=-1), n)
    c = rlx.Session("cpu").compile(g)
    assert c.unset_params() == ["w"]
    with pytest.raises(ValueError, match="w"):
        c.run([1, 2])
    c.set_param("w", np.eye(2, dtype=np.float32))
    for k in range(3):
        y, count = c.run(x=[0, 0])
        assert float(count) == k
    np.testing.assert_allclose(y, [0.5, 0.5])
    assert float(c.read_state("n")) == 3
    other = c.clone()
    other.run([1, 1])
    assert float(c.read_state("n")) == 3 and float(other.read_state("n")) == 4
    c.write_state("n", 7.0)
    assert float(c.run([0, 0])[1]) == 7
    c.reset()
    assert float(c.read_state("n")) == 0
    with pytest.raises(ValueError, match="consumed by compile"):
        g.text()
    with pytest.raises(TypeError, match="f64"):
        c.run(np.zeros(2))
    with pytest.raises(ValueError, match="did you mean 'w'"):
        c.set_param("ww", np.eye(2, dtype=np.float32))


def test_graph_transforms():
    g = rlx.Graph("g")
    x = g.input("x", (3,))
    g.set_outputs(g.reduce_sum(g.sin(x) * x, axes=[0]))
    d = rlx.grad(g, ["x"])
    assert "d_output" in d.inputs()
    v = rlx.value_and_grad(g, "x")
    out = rlx.Session().compile(v).run(x=np.ones(3, np.float32))
    np.testing.assert_allclose(out[1], np.sin(1) + np.cos(1) * np.ones(3), rtol=1e-6)
    b = g.vmap({"x": 0}, 4)
    assert rlx.Session().compile(b).run(np.ones((4, 3), np.float32))[0].shape == (4,)


def test_safetensors_both_ways(tmp_path):
    path = str(tmp_path / "w.safetensors")
    rlx.save_safetensors(path, {"w": np.eye(2, dtype=np.float32), "b": rlx.array([1, 2], "bfloat16")})
    loaded = rlx.load_safetensors(path)
    assert loaded["b"].dtype == "bfloat16" and loaded["w"].tolist() == [[1, 0], [0, 1]]
    g = rlx.Graph()
    x = g.input("x", (2,))
    g.set_outputs(x @ g.param("w", (2, 2)))
    c = rlx.Session().compile(g)
    with pytest.raises(ValueError, match="'b'"):
        c.load_params(path)
    assert c.load_params(path, strict=False) == 1
    assert c.run([3, 4])[0].tolist() == [3, 4]


# -- what is refused --


def test_errors_name_the_users_line():
    def f(x):
        return x @ x  # this line

    with pytest.raises(ValueError, match="test_jit.py") as e:
        rlx.jit(f)(x23)
    line = f.__code__.co_firstlineno + 1
    assert f"test_jit.py:{line}" in str(e.value)


def test_a_leaked_value_is_named_with_its_line():
    kept = []

    @rlx.jit
    def f(x):
        kept.append(x * 2)
        return x

    f(x23)
    line = f.__wrapped__.__code__.co_firstlineno + 2
    with pytest.raises(ValueError, match=f"traced value made at .*test_jit.py:{line}"):
        kept[0] + 1
    with pytest.raises(ValueError, match=f"test_jit.py:{line}"):
        rlx.jit(lambda y: y + kept[0])(x23)
    with pytest.raises(ValueError, match=f"test_jit.py:{line}"):
        f(kept[0])
    assert "has ended" in repr(kept[0])


@pytest.mark.parametrize(
    "f, message",
    [
        (lambda x: x if x[0, 0] > 0 else -x, "rlx.cond"),
        (lambda x: float(x[0, 0]), "float\\(\\)"),
        (lambda x: [1, 2, 3][x[0, 0].astype("int32")], "an index"),
        (lambda x: np.asarray(x), "numpy.asarray"),
        (lambda x: x.__setitem__(0, 1), "x.at\\[index\\]"),
        (lambda x: "text", "which is not an array"),
        (lambda x: rnp.zeros(3)[x > 0], "indexed by bools"),
        (lambda x: np.sort(x), "numpy"),
    ],
)
def test_what_cannot_be_traced_is_refused(f, message):
    with pytest.raises((TypeError, IndexError), match=message):
        rlx.jit(f)(x23)


def test_numpy_functions_of_values_are_ours():
    np.testing.assert_allclose(rlx.jit(lambda x: np.sin(x) + np.add(x, 1))(x23), np.sin(x23) + x23 + 1, rtol=1e-6)
    np.testing.assert_allclose(rlx.jit(lambda x: x23 * x)(x23), x23 * x23)


@pytest.mark.parametrize(
    "argument, message",
    [
        ("text", "static_argnames"),
        (object(), "static_argnames"),
        (np.array([object()]), "object arrays"),
        (np.array(["a"]), "format"),
        (10**30, "not fit in any integer dtype"),
    ],
)
def test_arguments_that_are_no_arrays(argument, message):
    with pytest.raises(TypeError, match=message):
        rlx.jit(lambda x: x)(argument)


def test_strided_and_unaligned_arrays_are_copied():
    f = rlx.jit(lambda x: x + 0)
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    for x in (base[:, ::2], base.T, base[::-1], base[1:3, 1:]):
        np.testing.assert_array_equal(f(x), x)
    raw = np.zeros(17, np.uint8)
    odd = raw[1:17].view(np.float32)
    np.testing.assert_array_equal(f(odd), odd)
    frozen = base.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(f(frozen), base)


def test_recursive_and_strange_trees():
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested more than 200"):
        rlx.jit(lambda x: x)(loop)
    with pytest.raises(TypeError, match="cannot be compared"):
        rlx.jit(lambda x: x)({1: x23, "a": x23})


def test_an_exception_while_tracing_leaves_nothing_behind():
    def f(x):
        x = x + 1
        raise KeyError("mine")

    for _ in range(3):
        with pytest.raises(KeyError, match="mine"):
            rlx.jit(f)(x23)
    with pytest.raises(KeyError):
        rlx.grad(lambda x: rlx.scan(lambda c, v: f(c), x, None, 3))(np.float32(1))
    assert float(rlx.jit(lambda x: x.sum())(x23)) == 15


# -- what loops and branches do with Python's numbers --


def test_weak_results_take_the_other_dtype_where_nothing_is_lost():
    half = rlx.array(1.5, "float16")
    assert rlx.cond(False, lambda: half, lambda: 1.25).dtype == "float16"
    assert rlx.cond(True, lambda: 1, lambda: half).dtype == "float16"
    assert float(rlx.cond(True, lambda: 1.5, lambda: 1)) == 1.5 and float(rlx.cond(True, lambda: 1, lambda: 1.5)) == 1
    with pytest.raises(TypeError, match="float32\\[\\] from the true branch .* int32\\[\\]"):
        rlx.cond(True, lambda: 1.5, lambda: rlx.array(1))
    rows = np.ones(3, np.float32)
    assert float(rlx.scan(lambda c, v: (c + 0.5, None), 0, rows)[0]) == 1.5
    assert float(rlx.scan(lambda c, v: (c + 1, None), rlx.array(0.5), rows)[0]) == 3.5
    with pytest.raises(TypeError, match="goes in as int32\\[\\] and comes out as float32"):
        rlx.scan(lambda c, v: (c + 0.5, None), rlx.array(0), rows)
    with pytest.raises(TypeError, match="goes in as int32"):
        rlx.while_loop(lambda c: c < 5, lambda c: c + 0.5, rlx.array(0))


# -- donation --


def test_a_donated_array_is_one_argument():
    a = rlx.array(x23)
    f = rlx.jit(lambda p, q: p + q, donate_argnums=0)
    with pytest.raises(ValueError, match="passed as 'p', which is donated, and as 'q'"):
        f(a, a)
    np.testing.assert_array_equal(a, x23)
    np.testing.assert_array_equal(f(a, x23), 2 * x23)
    assert "donated" in repr(a) and "donated" in str(a)
    for read in (np.asarray, float, lambda v: v.tolist(), lambda v: v + 1, np.from_dlpack, memoryview):
        with pytest.raises((ValueError, BufferError), match="donated to an earlier call"):
            read(a)
    with pytest.raises(ValueError, match="no argument 'y'"):
        rlx.jit(lambda x: x, donate_argnames="y")
    with pytest.raises(ValueError, match="no positional argument 3"):
        rlx.jit(lambda x: x, donate_argnums=3)
    with pytest.raises(TypeError, match="least, largest"):
        rlx.jit(lambda x: x, dims={"x": ("n", 3)}, bounds={"n": 5})


def test_a_value_of_another_graph_is_named():
    g = rlx.Graph("one")
    v = g.input("x", (2,))
    with pytest.raises(ValueError, match="test_jit.py:.* belongs to another graph"):
        rlx.jit(lambda: v + 1)()
    assert "compiled function" in repr(rlx.jit(lambda: 1))


# -- functions with rules of their own --


def test_rules_may_call_their_function():
    @rlx.custom_vjp
    def cube(x):
        return x * x * x

    def forward(x):
        return cube(x), x

    def backward(x, ct):
        return (ct * 3 * cube(x) / x,)

    cube.defvjp(forward, backward)
    assert float(cube(2.0)) == 8 and float(rlx.grad(cube)(2.0)) == 12
    assert float(rlx.grad(rlx.grad(cube))(2.0)) == 12 and float(rlx.grad(rlx.grad(rlx.grad(cube)))(2.0)) == 6

    @rlx.custom_jvp
    def power(x):
        return x * x

    @power.defjvp
    def rule(primals, tangents):
        return power(primals[0]), 2 * power(primals[0]) / primals[0] * tangents[0]

    assert float(rlx.jvp(power, (3.0,), (1.0,))[1]) == 6 and float(rlx.grad(power)(3.0)) == 6
    assert float(rlx.grad(rlx.grad(power))(3.0)) == 2


def test_program_calls():
    """A program runs what lies as it wants it, and says of all else what is wrong."""
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
    program = rlx.jit(lambda p, b: {"sum": p["x"] + b, "parts": (p["x"] * 2, b)}).lower({"x": x}, b=y).compile()
    for make in (np.asarray, rlx.array):
        got = program({"x": make(x)}, b=make(y))
        np.testing.assert_array_equal(got["sum"], x + y)
        np.testing.assert_array_equal(got["parts"][0], x * 2)
        np.testing.assert_array_equal(got["parts"][1], y)
    np.testing.assert_array_equal(program([np.asfortranarray(x)], (y,))["sum"], x + y)  # a copy, another tree
    with pytest.raises(TypeError, match="compiled for 2 arrays, got 1"):
        program({"x": x})
    with pytest.raises(TypeError, match="got 3"):
        program({"x": x}, y, y)
    with pytest.raises(rlx.Error, match="f64"):
        program({"x": x.astype(np.float64)}, b=y)
    with pytest.raises(rlx.Error, match="\\[2, 3\\]"):
        program({"x": x.T.copy()}, b=y)
    scale = rlx.jit(lambda v: v * 2).lower(rlx.array(1.5)).compile()
    assert float(scale(rlx.array(2.5))) == 5.0 and float(scale(2.5)) == 5.0
    given = rlx.array(x)
    rlx.jit(lambda v: v + 1, donate_argnums=0)(given)
    with pytest.raises(rlx.Error, match="donated"):
        program({"x": given}, b=y)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda k: np.asarray(program({"x": x + k}, b=y)["sum"]), range(64)))
    for k, got in enumerate(results):
        np.testing.assert_array_equal(got, x + k + y)


INSIDE = {
    "jit": lambda f, x: rlx.jit(f)(x),
    "grad": lambda f, x: rlx.value_and_grad(lambda v: f(v).sum())(x)[0],
    "vmap": lambda f, x: rlx.vmap(f)(x[None])[0],
    "scan": lambda f, x: rlx.scan(lambda c, _: (f(c), None), x, length=1)[0],
    "cond": lambda f, x: rlx.cond(x[0] > -9, f, lambda v: v, x),
    "checkpoint": lambda f, x: rlx.jit(rlx.checkpoint(f))(x),
}


@pytest.mark.parametrize("place", INSIDE)
@pytest.mark.parametrize("argument", [np.ones(3), np.float64(2), 2.0, 2, 2j], ids=repr)
def test_a_jitted_function_gets_arrays_inside_a_trace_too(place, argument):
    """Its arguments have the attributes of arrays wherever it is called: rows of NumPy, numbers, leaves of trees."""
    inner = rlx.jit(lambda v, tree, *, k: v * tree["a"].at[...].add(1).real + k[0].astype("float64").sum() + tree["b"])
    f = lambda v: inner(v, {"a": argument, "b": 0.5}, k=[argument.real, None])  # noqa: E731
    x = rlx.array(np.array([0.1, 0.2, 0.3]))
    want = np.asarray(x) * np.real(argument + 1) + np.sum(np.real(argument)) + 0.5
    np.testing.assert_allclose(f(x), want, rtol=1e-14)
    np.testing.assert_allclose(INSIDE[place](f, x), want.sum() if place == "grad" else want, rtol=1e-14)


def test_static_arguments_of_a_jitted_function_inside_a_trace():
    held = np.ones(3)
    inner = rlx.jit(lambda v, mode, n=2, *, name: (v * n, mode, name), static_argnums=1, static_argnames="name")
    seen = []

    def outer(v):
        out, mode, name = inner(v, "text", held, name=(1, 2))
        held[0] = 7.0  # what the trace has read does not change
        seen.append((type(mode), type(name)))
        return out

    np.testing.assert_array_equal(rlx.jit(outer)(np.ones(3)), np.ones(3))
    assert seen == [(str, tuple)]


def test_checkpoint_gets_arrays_outside_of_a_trace_too():
    f = rlx.checkpoint(lambda v, n, text: v.at[0].set(n.astype(v.dtype)) * len(text), static_argnums=2)
    np.testing.assert_array_equal(f(np.ones(2), 3, "ab"), [6.0, 2.0])
