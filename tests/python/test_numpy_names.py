"""Names that NumPy, JAX and the array API standard give to arguments, attributes and methods."""

import importlib
import inspect
import os
import sys

import numpy as np
import pytest
from oracle import normal

import rlx
import rlx.numpy as rnp

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "scripts"))
import argument_names  # noqa: E402

X = normal(3, 4)

# -- arguments --


def test_table_of_names_is_current():
    path = os.path.join(os.path.dirname(rlx.__file__), "_argument_names.py")
    with open(path) as file:
        assert file.read() == argument_names.text(), "run scripts/argument_names.py"


def _renamed():
    """Every (module, function, their name, our name) of the table that is reachable by a public name."""
    from rlx._argument_names import ALIASES

    for module in argument_names.PEERS:
        found = importlib.import_module(f"rlx.{module}")
        public = set(getattr(found, "__all__", vars(found))) - {"asarray", "ascontiguousarray"}
        for name, f in sorted(vars(found).items()):
            if inspect.isfunction(f) and not name.startswith("_") and (name in public or module == "numpy"):
                for theirs, mine in ALIASES.get(rlx._names._key(f), {}).items():
                    yield module, name, theirs, mine


def test_every_name_of_the_table_is_taken():
    count = 0
    for module, name, theirs, mine in _renamed():
        f = getattr(importlib.import_module(f"rlx.{module}"), name)
        given = inspect.signature(f).parameters
        assert mine in given, (module, name)
        # Given twice, the error names both: the function knew what `theirs` means.
        with pytest.raises(TypeError, match=f"argument {mine} is given twice, once as {theirs}"):
            f(**{theirs: 1, mine: 1})
        count += 1
    assert count > 200


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.sum(a=X, axis=0),
        lambda m: m.mean(a=X, axis=1, keepdims=True),
        lambda m: m.argmax(a=X, axis=1),
        lambda m: m.clip(a=X, a_min=-0.5, a_max=0.5),
        lambda m: m.resize(a=X, new_shape=(4, 3)),
        lambda m: m.transpose(a=X),
        lambda m: m.concatenate([X, X], axis=1),
        lambda m: m.delete(arr=X, obj=1, axis=0),
        lambda m: m.append(arr=X, values=X, axis=0),
        lambda m: m.take_along_axis(arr=X, indices=np.argsort(X, 1), axis=1),
        lambda m: m.hstack(tup=[X, X]),
        lambda m: m.tril(m=X),
        lambda m: m.diag(v=X),
        lambda m: m.split(ary=X, indices_or_sections=3)[1],
        lambda m: m.eye(N=2, M=3),
        lambda m: m.isclose(a=X, b=X),
        lambda m: m.pad(array=X, pad_width=1),
        lambda m: m.real(val=X),
        lambda m: m.linalg.matrix_power(a=X[:3, :3], n=2),
        lambda m: m.tile(A=X, reps=2),
        lambda m: m.sort(X, axis=0, kind="stable"),
        lambda m: m.searchsorted(a=np.arange(3.0), v=X, side="left"),
        lambda m: m.isin(np.arange(4), [1, 2], assume_unique=True),
        lambda m: m.nan_to_num(X, copy=False, nan=3.0),
        lambda m: m.sum(X, axis=0, out=None),
    ],
)
def test_names_of_numpy(call):
    np.testing.assert_allclose(call(rnp), call(np), rtol=1e-5)
    np.testing.assert_allclose(rlx.jit(lambda: call(rnp))(), call(np), rtol=1e-5)


def test_unknown_names():
    with pytest.raises(TypeError, match="sum has no argument 'b'; it has x, axis"):
        rnp.sum(b=X)
    with pytest.raises(TypeError, match="add has no argument 'z'"):
        rnp.add(X, z=X)
    with pytest.raises(TypeError, match="zeros has no argument 'size'"):
        rnp.zeros(size=3)
    with pytest.raises(TypeError, match=r"sum\(out=...\): rlx arrays are not written in place"):
        rnp.sum(X, out=X)
    with pytest.raises(TypeError, match="second argument is copy: write nan=0.5"):
        rnp.nan_to_num(X, 0.5)


def test_creation():
    assert rnp.array(3.0, ndmin=2).shape == (1, 1) and rnp.array(X, ndmin=3).shape == (1, 3, 4)
    assert rlx.jit(lambda x: rnp.array(x, ndmin=3))(X).shape == (1, 3, 4)
    x = rlx.array(X)
    assert rnp.asarray(x, copy=False)._address() == x._address()
    assert rnp.asarray(X, copy=False)._address() == X.__array_interface__["data"][0]
    assert rnp.asarray(X, copy=True)._address() != X.__array_interface__["data"][0]
    for given, dtype in ((X, "float64"), (X.T, None), ([1, 2], None), (1.0, None), (x, "int32")):
        with pytest.raises(ValueError, match="copy=False, but a copy"):
            rnp.asarray(given, dtype, copy=False)
    assert np.array_equal(rnp.unique(ar=np.array([2, 1, 2])), [1, 2])
    makers = "zeros ones full eye tri arange linspace zeros_like ones_like full_like empty empty_like".split()
    arguments = dict(full=(3, 1.0), linspace=(0, 1, 3), full_like=(X, 2.0), zeros_like=(X,), ones_like=(X,))
    for name in makers:
        given = arguments.get(name, (X,) if name == "empty_like" else (3,))
        made = getattr(rnp, name)(*given, device="cpu")
        assert made.device == "cpu" and np.array_equal(made, getattr(rnp, name)(*given)), name
        with pytest.raises(TypeError, match="device='cpu' inside a compiled function"):
            rlx.jit(lambda name=name, given=given: getattr(rnp, name)(*given, device="cpu"))()


# -- attributes and methods --


def test_array_methods():
    x = rlx.array(X)
    assert x.itemsize == 4 and x.nbytes == 48 and X[1, 2] in x and 7.0 not in x
    assert x.item(5) == X.item(5) and x.item(1, 2) == X.item(1, 2) and x.item((2, -1)) == X.item((2, -1))
    with pytest.raises(ValueError, match="3 indices for an array with 2 axes"):
        x.item(0, 0, 0)
    assert x.tobytes() == X.tobytes() and x.tobytes("F") == X.tobytes("F")
    assert np.array_equal(x.flat, X.flat) and x.flat[5] == X.flat[5] and list(x.flat) == list(X.flat)
    assert x.to_device("cpu") is x or np.array_equal(x.to_device("cpu"), X)
    assert x.__array_namespace__() is rnp and x.__array_namespace__(api_version="2024.12") is rnp
    with pytest.raises(ValueError, match="the versions are 2021.12"):
        x.__array_namespace__(api_version="1999.01")
    with pytest.raises(ValueError, match="no streams"):
        x.to_device("cpu", stream=1)
    with pytest.raises(TypeError, match="traced value"):
        rlx.jit(lambda x: x.tobytes())(x)
    with pytest.raises(TypeError, match="traced value"):
        rlx.jit(lambda x: 1.0 in x)(x)


@pytest.mark.parametrize("dtype", "float32 int32 uint8 int16 float64 uint64".split())
def test_view(dtype):
    for source in (X, (X * 9).astype(np.int8).repeat(2, 1), X.astype(np.float64)):
        want = source.view(dtype)
        assert np.array_equal(np.asarray(rlx.array(source).view(dtype)).view(np.uint8), want.view(np.uint8))
        assert rlx.jit(lambda x: x.view(dtype))(source).shape == want.shape
    with pytest.raises(ValueError, match="the last axis does not hold whole elements"):
        rlx.array(np.zeros((2, 3), np.int8)).view("int16")


def test_dtype_attributes():
    for d in (rlx.float32, rlx.int64, rlx.bool_, rlx.complex64):
        n = np.dtype(d.name)
        assert (d.type, d.str, d.char, d.num, d.alignment) == (n.type, n.str, n.char, n.num, n.alignment)
    with pytest.raises(AttributeError, match="rlx.dtype has no attribute 'foo'"):
        rlx.float32.foo
    for d in ("float16", "float32", "float64", np.float32, np.complex64, rnp.float16):
        n, r = np.finfo(d if isinstance(d, (str, type)) else d.name), rnp.finfo(d)
        for name in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "precision"):
            assert getattr(r, name) == getattr(n, name), (d, name)
            assert type(getattr(r, name)) in (int, float)
    assert rnp.finfo("bfloat16").bits == 16 and rnp.iinfo(np.int8).max == 127


# -- what the array API standard asks of the namespace --


def test_namespace_info():
    info = rnp.__array_namespace_info__()
    assert rnp.__array_api_version__ == "2024.12"
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == rnp.zeros(()).dtype
    assert info.default_dtypes()["integral"] == rnp.arange(3).dtype
    assert info.default_dtypes()["indexing"] == rnp.argsort(X).dtype
    assert set(info.dtypes(kind="integral")) == {f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)}
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {"bool", "complex64", "complex128"}
    assert all(getattr(rnp, "bool_" if n == "bool" else n) == d for n, d in info.dtypes().items())
    assert info.capabilities()["boolean indexing"]
    with pytest.raises(ValueError, match="the kinds are bool"):
        info.dtypes(kind="text")


# -- sets --


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.complex64])
def test_unique_along_axes(dtype):
    rng = np.random.default_rng(0)
    for shape in ((6,), (5, 3), (0, 3), (4, 2, 3), (1, 1)):
        x = rng.integers(0, 3, shape).astype(dtype)
        x = x + dtype(1j) * rng.integers(0, 2, shape).astype(np.float32) if dtype is np.complex64 else x
        for axis in (None, *range(-len(shape), len(shape))):
            want = np.unique(x, True, True, True, axis=axis)
            for a, b in zip(rnp.unique(x, True, True, True, axis=axis), want):
                assert a.shape == b.shape and np.array_equal(a, b), (shape, axis)
            if x.size:
                n = want[1].size
                inside = rlx.jit(lambda x: rnp.unique(x, True, True, True, axis=axis, size=n))(x)
                assert all(np.array_equal(a, b) for a, b in zip(inside, want)), (shape, axis)


def test_unique_of_nan_and_named_results():
    x = np.array([np.nan, 1, np.nan, 1], np.float32)
    for equal_nan in (True, False):
        for a, b in zip(rnp.unique(x, True, True, True, equal_nan=equal_nan), np.unique(x, True, True, True, None)):
            assert a.size == b.size or not equal_nan
        assert rnp.unique(x, equal_nan=equal_nan).size == np.unique(x, equal_nan=equal_nan).size
    got, want = rnp.unique_all(x), np.unique_all(x)
    for name in ("values", "indices", "inverse_indices", "counts"):
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name))
    assert rnp.unique_counts(x)._fields == ("values", "counts")
    assert rnp.unique_inverse(x)._fields == ("values", "inverse_indices")
    assert rnp.unique_values(x).size == 3


def test_intersection_with_indices():
    a, b = np.array([3, 1, 1, 5, 2]), np.array([[7, 5], [1, 3]])
    for got, want in zip(rnp.intersect1d(a, b, return_indices=True), np.intersect1d(a, b, return_indices=True)):
        assert np.array_equal(got, want)
    inside = rlx.jit(lambda a, b: rnp.intersect1d(a, b, return_indices=True, size=3))(a, b)
    assert all(np.array_equal(x, y) for x, y in zip(inside, np.intersect1d(a, b, return_indices=True)))
    empty = rnp.intersect1d(a, np.array([9]), return_indices=True)
    assert [e.size for e in empty] == [0, 0, 0]
