"""The pages of docs/ about Python: blocks run and print what stands below; what is said of JAX and NumPy is so.

The tutorial's cells run too, and give what the notebook shows.
"""

import contextlib
import importlib.util
import io
import json
import pathlib
import re

import numpy as np
import pytest
import rlx
import rlx.numpy as rnp

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
README = DOCS.parent / "README.md"
PAGES = [*sorted(DOCS.glob("python*.md")), README]
f32 = np.float32
x3 = np.array([1, 2, 3], f32)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_block_runs_and_prints_what_stands_below_it(page):
    namespace, printed = {"__name__": page.stem}, None
    blocks = list(re.finditer(r"^```(python|text)\n(.*?)^```$", page.read_text(), re.S | re.M))
    for block in blocks:
        kind, body = block.groups()
        if kind == "python":
            lines = page.read_text()[: block.start(2)].count("\n")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile("\n" * lines + body, str(page), "exec"), namespace)  # noqa: S102
            printed = out.getvalue()
        else:
            assert printed is not None, f"{page.name}: a ```text block that follows no ```python block"
            assert printed == body
            printed = None
    if page.name in ("python.md", "python_for_jax_users.md", "README.md"):
        assert blocks


def test_the_tutorial_runs_and_gives_what_it_shows(tmp_path, monkeypatch):
    notebook = json.loads((DOCS / "tutorial.ipynb").read_text())
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert len(cells) > 10 and all(c["outputs"] or "import" in "".join(c["source"]) for c in cells)
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "tutorial"}
    for number, cell in enumerate(cells, 1):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile("".join(cell["source"]), f"tutorial.ipynb, cell {number}", "exec"), namespace)  # noqa: S102
        shown = "".join("".join(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream")
        assert without_times(out.getvalue()) == without_times(shown), f"cell {number}"


def without_times(text):
    """Times, places of memory and names of instruction sets are those of a machine."""
    text = re.sub(r"\d+(\.\d+)? (ns|us|ms)\b", "TIME", text)
    text = re.sub(r"\d+ kinds", "KINDS", text)
    return re.sub(r"\((avx512|avx2|sse4|neon|baseline)[^)]*\)", "(ISA)", text)


@pytest.mark.skipif(
    importlib.util.find_spec("nbclient") is None or importlib.util.find_spec("ipykernel") is None,
    reason="nbclient and ipykernel are not installed",
)
def test_the_tutorial_runs_in_a_notebook(tmp_path, monkeypatch):
    import nbclient
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(rlx.__file__).parent.parent))
    notebook = nbformat.read(DOCS / "tutorial.ipynb", as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()


# -- what python_for_jax_users.md says --


def same(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


@pytest.fixture(autouse=True)
def jax_as_it_comes():
    """The other suites turn 64-bit types on; the pages speak of JAX as it comes."""
    if importlib.util.find_spec("jax") is None:
        yield
        return
    import jax

    with jax.enable_x64(False):
        yield


def both():
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    return [(rlx, rnp, rlx.nn, rlx.random), (jax, jnp, jax.nn, jax.random)]


SAME = {
    "list": lambda m, np_, nn, r: np_.array([1, 2]),
    "floats": lambda m, np_, nn, r: np_.array([1.5, 2]),
    "weak": lambda m, np_, nn, r: np_.array([1.5], "float16") * 2.0,
    "join": lambda m, np_, nn, r: np_.array([1]) + np_.array([1.5], "float16"),
    "read": lambda m, np_, nn, r: np_.array(x3)[np_.array([0, 10, -10, -1])],
    "write": lambda m, np_, nn, r: np_.array(x3).at[np_.array([0, 10, -1])].set(9.0),
    "tree": lambda m, np_, nn, r: np_.array(m.tree.leaves({"b": 1, "a": (2, None)})),
    "relu at 0": lambda m, np_, nn, r: np_.array(m.grad(nn.relu)(0.0)),
    "round": lambda m, np_, nn, r: np_.array(m.grad(np_.round)(1.3)),
    "max shares": lambda m, np_, nn, r: m.grad(np_.max)(np.ones(4, f32)),
    "maximum shares": lambda m, np_, nn, r: np_.array(m.grad(lambda v: np_.maximum(v, 1.0))(1.0)),
    "where keeps NaN": lambda m, np_, nn, r: np_.array(m.grad(lambda v: np_.where(v > 0, np_.log(v), 0.0))(0.0)),
    "bits": lambda m, np_, nn, r: r.bits(r.PRNGKey(7), (5,)),
    "uniform": lambda m, np_, nn, r: r.uniform(r.PRNGKey(7), (1000,)),
    "split": lambda m, np_, nn, r: r.split(r.PRNGKey(7), 3),
    "fold_in": lambda m, np_, nn, r: r.fold_in(r.PRNGKey(7), 3),
    "bernoulli": lambda m, np_, nn, r: r.bernoulli(r.PRNGKey(7), 0.3, (100,)),
    "randint": lambda m, np_, nn, r: r.randint(r.PRNGKey(7), (100,), -5, 12),
    "permutation": lambda m, np_, nn, r: r.permutation(r.PRNGKey(7), 50),
    "choice": lambda m, np_, nn, r: r.choice(r.PRNGKey(7), 50, (9,), replace=False),
    "categorical": lambda m, np_, nn, r: r.categorical(r.PRNGKey(7), np.ones((4, 3), f32), shape=(5, 4)),
    "lax": lambda m, np_, nn, r: m.lax.dynamic_slice_in_dim(np_.array(x3), 1, 2),
    "saturates": lambda m, np_, nn, r: np_.array([np.nan, 1e20, -1e20, -1.7]).astype("int32"),
    "gelu": lambda m, np_, nn, r: nn.gelu(np_.array([-1.5, 1.0])),
    "floor division": lambda m, np_, nn, r: np_.array([7, -7]) // 2,
}


@pytest.mark.parametrize("case", SAME)
def test_what_is_the_same(case):
    ours, theirs = (np.asarray(SAME[case](*m)) for m in both())
    if case in ("bits", "uniform", "split", "fold_in", "bernoulli", "randint", "permutation", "choice", "categorical"):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    else:
        same(ours, theirs)


def test_normal_numbers_differ_by_rounding():
    ours, theirs = (np.asarray(m[3].normal(m[3].PRNGKey(7), (1000,))) for m in both())
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_complex_gradients():
    ours, theirs = (m[0].grad(lambda z: m[1].real(z * z))(np.complex64(1 + 2j)) for m in both())
    same(ours, theirs)


def test_dtypes_of_64_bits():
    (_, _, _, _), (_, jnp, _, _) = both()
    assert rlx.array(np.ones(2)).dtype == "float64" and jnp.array(np.ones(2)).dtype == "float32"
    assert rnp.zeros(2, "float64").dtype == "float64"
    assert rlx.array([1, 2]).dtype == "int32" and np.array([1, 2]).dtype == "int64"
    assert rlx.array([2**40]).dtype == "int64"
    with pytest.raises(OverflowError):
        jnp.array([2**40])
    assert rlx.array([1]).astype(float).dtype == "float32" and jnp.array([1]).astype(float).dtype == "float32"
    assert np.array([1]).astype(float).dtype == "float64" and rnp.zeros(2, int).dtype == "int32"
    assert (rlx.array([1.0]) + np.float64(1)).dtype == "float64"
    assert (jnp.array([1.0]) + np.float64(1)).dtype == "float32"


def test_integers_out_of_range():
    (_, _, _, _), (_, jnp, _, _) = both()
    small = rlx.array([1], "int8")
    for refuses in (lambda: small + 300, lambda: small.at[0].set(300), lambda: rnp.full(2, 2**40, "int32")):
        with pytest.raises(TypeError, match="is not a value of|does not fit in"):
            refuses()
    assert (jnp.array([1], "int8") + 300).tolist() == [45]
    with pytest.raises(OverflowError):
        np.array([1], "int8") + 300


def test_indices_out_of_range():
    (_, _, _, _), (_, jnp, _, _) = both()
    for refuses in (lambda: rlx.array(x3)[10], lambda: rlx.array(x3).at[10].set(1.0), lambda: x3[10]):
        with pytest.raises(IndexError):
            refuses()
    assert float(jnp.array(x3)[10]) == 3 and jnp.array(x3).at[10].set(1.0).tolist() == [1, 2, 3]
    for take, array in ((rnp.take, rlx.array), (jnp.take, jnp.array)):
        assert np.isnan(take(array(x3), array([10]))[0])


def test_python_control_flow_and_effects():
    (_, _, _, _), (jax, _, _, _) = both()
    branch = lambda v: v * 2 if v > 0 else v  # noqa: E731
    assert float(jax.grad(branch)(1.0)) == 2
    for transformed in (rlx.grad(branch), rlx.jit(branch)):
        with pytest.raises(TypeError, match="rlx.cond"):
            transformed(1.0)
    with pytest.raises(TypeError, match="rlx.cond"):
        rlx.vmap(branch)(x3)
    for module in (rlx, jax):
        calls = []
        g = module.grad(lambda v: (calls.append(v), v * 2)[1])
        for _ in range(3):
            g(1.0)
        assert len(calls) == 3
    np.testing.assert_allclose(rlx.jit(lambda v: np.sin(v))(x3), np.sin(x3), rtol=1e-6)
    with pytest.raises(Exception, match="array"):
        jax.jit(lambda v: np.sin(v))(x3)


def test_masked_rows():
    (_, _, _, _), (jax, _, _, _) = both()
    row = np.full(3, -np.inf, f32)
    assert rlx.nn.softmax(row).tolist() == [0, 0, 0] and np.isnan(jax.nn.softmax(row)).all()
    assert rlx.grad(lambda v: rlx.nn.softmax(v)[0])(row).tolist() == [0, 0, 0]
    one, unseen = np.ones((1, 2, 1, 3), f32), np.zeros((1, 1, 2, 2), bool)
    ours, theirs = (m.dot_product_attention(one, one, one, mask=unseen) for m in (rlx.nn, jax.nn))
    assert np.all(np.asarray(ours) == 0) and np.all(np.asarray(theirs) == 1)
    assert rlx.nn.log_softmax(row).tolist() == [-np.inf] * 3 and np.isnan(jax.nn.log_softmax(row)).all()


def test_other_differences():
    (_, _, _, _), (jax, jnp, _, _) = both()
    for m, is_array in ((rlx, False), (jax, True)):
        seen = []
        m.jit(lambda v, m=m, seen=seen: (seen.append(isinstance(v, m.Array)), v)[1])(1.0)
        assert seen == [is_array]
    a = rlx.array(np.full((1, 1), 1.0078125, f32), "bfloat16")
    assert float((a @ a).astype("float32")[0, 0]) == 1.015625
    assert float(rnp.matmul(a, a, preferred_element_type="float32")[0, 0]) == 1.0078125**2
    assert float(rlx.grad(rnp.abs)(0.0)) == 0 and float(jax.grad(jnp.abs)(0.0)) == 1
    assert rlx.random.key(7).tolist() == jax.random.PRNGKey(7).tolist() and jax.random.key(7).dtype != "uint32"
    ids = np.array([0, 1, 1])
    assert jax.ops.segment_sum(jnp.asarray(x3), ids).tolist() == rlx.ops.segment_sum(x3, ids, 2).tolist() == [1, 5]
    assert rlx.ops.segment_sum(x3, ids).tolist() == [1, 5]
    with pytest.raises(TypeError, match="num_segments"):
        rlx.jit(rlx.ops.segment_sum)(x3, ids)
    grow = lambda m, **k: m.while_loop(lambda c: c < 10, lambda c: c * 2, 1.0, **k)  # noqa: E731
    assert float(grow(rlx)) == float(grow(jax.lax)) == 16
    with pytest.raises(ValueError):
        jax.grad(lambda v: jax.lax.while_loop(lambda c: c < 10, lambda c: c * 2, v))(1.0)
    with pytest.raises(NotImplementedError):
        rlx.grad(lambda v: rlx.while_loop(lambda c: c < 10, lambda c: c * 2, v))(1.0)
    assert float(rlx.grad(lambda v: rlx.while_loop(lambda c: c < 10, lambda c: c * 2, v, max_iterations=9))(1.0)) == 16
    a = rlx.array(x3)
    assert jnp.from_dlpack(a).tolist() == [1, 2, 3] and rlx.jit(lambda v: v + 1)(jnp.ones(2)).tolist() == [2, 2]


def test_what_is_not_there_yet():
    """When one of these works, its line in the page goes."""
    with pytest.raises(IndexError, match="rlx.numpy.where"):
        rlx.jit(lambda x: x[x > 1])(x3)
    assert rnp.nonzero(rlx.array([0.0, 2.0]))[0].tolist() == [1]
    missing = {
        rlx: ("pmap", "shard_map"),
        rlx.scipy: ("constants",),
    }
    for module, names in missing.items():
        assert not any(hasattr(module, name) for name in names)


def test_exceptions_are_those_of_the_page():
    page = (DOCS / "python.md").read_text()
    for row in re.findall(r"^\| (`rlx\.\w+`(?:, `rlx\.\w+`)*) \| `(\w+)` \|", page, re.M):
        for name in re.findall(r"rlx\.(\w+)", row[0]):
            assert issubclass(getattr(rlx, name), getattr(__builtins__, row[1], None) or __builtins__[row[1]]), name
    named = set(re.findall(r"`rlx\.(\w+)`", page))
    assert {n for n, v in vars(rlx).items() if isinstance(v, type) and issubclass(v, rlx.Error)} <= named
