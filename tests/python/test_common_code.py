"""Code that NumPy and JAX users write and that must not be refused: static integers of every kind, masks beside other
indices, loops with unsigned bounds.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlx
import rlx.numpy as rnp

X = np.arange(24, dtype=np.float32).reshape(4, 6)
KINDS = [np.int64, np.uint8, lambda n: np.array(n, np.int32), rlx.array]

# Every place where a Python integer says something about shapes: the call of an integer.
PLACES = {
    "slice_stop": lambda n: rlx.array(X)[:n],
    "slice_start": lambda n: rlx.array(X)[n:],
    "slice_step": lambda n: rlx.array(X)[::n],
    "slice_of_tuple": lambda n: rlx.array(X)[:n, n:],
    "slice_beside_array": lambda n: rlx.array(X)[:n, np.array([0, 1])],
    "at_slice": lambda n: rlx.array(X).at[:n].set(0.0),
    "at_slice_get": lambda n: rlx.array(X).at[n:].get(),
    "integer": lambda n: rlx.array(X)[n],
    "axis": lambda n: rnp.sum(X, axis=n),
    "axis_of_tuple": lambda n: rnp.sum(X, axis=(n,)),
    "reshape": lambda n: rnp.reshape(X, (n, -1)),
    "reshape_method": lambda n: rlx.array(X).reshape(n, -1),
    "zeros": lambda n: rnp.zeros((n, n)),
    "zeros_of_one": lambda n: rnp.zeros(n),
    "ones": lambda n: rnp.ones([n, 3]),
    "full": lambda n: rnp.full((n,), 1.5),
    "eye": lambda n: rnp.eye(n),
    "arange": lambda n: rnp.arange(n),
    "linspace": lambda n: rnp.linspace(0, 1, n),
    "broadcast_to": lambda n: rnp.broadcast_to(X[0], (n, 6)),
    "tile": lambda n: rnp.tile(X, n),
    "repeat": lambda n: rnp.repeat(X, n, axis=0),
    "roll": lambda n: rnp.roll(X, n, axis=1),
    "split": lambda n: rnp.split(X, n)[0],
    "pad": lambda n: rnp.pad(X, n),
    "pad_pairs": lambda n: rnp.pad(X, ((n, 0), (0, n))),
    "diff": lambda n: rnp.diff(X, n),
    "moveaxis": lambda n: rnp.moveaxis(X, n, 0),
    "expand_dims": lambda n: rnp.expand_dims(X, n),
    "tril": lambda n: rnp.tril(X, n),
    "trace": lambda n: rnp.trace(X, n),
    "rot90": lambda n: rnp.rot90(X, n),
    "nonzero_size": lambda n: rnp.nonzero(X, size=n)[0],
    "unique_size": lambda n: rnp.unique(X, size=n),
    "fft": lambda n: rnp.fft.fft(X, n),
    "matrix_power": lambda n: rnp.linalg.matrix_power(X[:2, :2], n),
    "one_hot": lambda n: rlx.nn.one_hot(np.array([0, 1]), n),
    "softmax_axis": lambda n: rlx.nn.softmax(X, axis=n),
    "split_key": lambda n: rlx.random.split(rlx.random.key(0), n),
    "normal": lambda n: rlx.random.normal(rlx.random.key(0), (n, 3)),
    "scan_length": lambda n: rlx.scan(lambda c, _: (c + 1.0, None), 0.0, None, length=n)[0],
    "fori": lambda n: rlx.fori_loop(0, n, lambda i, c: c + 1.0, 0.0),
    "dynamic_slice": lambda n: rlx.lax.dynamic_slice(X, (0, 0), (n, n)),
    "dynamic_slice_in_dim": lambda n: rlx.lax.dynamic_slice_in_dim(X, 1, n, 1),
    "slice_in_dim": lambda n: rlx.lax.slice_in_dim(X, n, 4, axis=1),
    "iota": lambda n: rlx.lax.iota("int32", n),
    "top_k": lambda n: rlx.lax.top_k(X, n)[0],
    "vmap_size": lambda n: rlx.vmap(lambda: rnp.ones(3), axis_size=n)(),
    "vmap_in_axis": lambda n: rlx.vmap(lambda x: x.sum(), in_axes=n)(X),
    "shape_dtype": lambda n: rnp.zeros(rlx.ShapeDtype((n, 3)).shape),
}


@pytest.mark.parametrize("place", PLACES)
def test_static_integers_of_every_kind(place):
    call = PLACES[place]
    want = np.asarray(call(1 if "axis" in place else 2))
    for kind in KINDS:
        given = kind(1 if "axis" in place else 2)  # made before the trace: in it, arithmetic gives traced values
        np.testing.assert_allclose(call(given), want, rtol=1e-6)
        np.testing.assert_allclose(rlx.jit(lambda: call(given))(), want, rtol=1e-6)


def test_bounds_that_are_no_integers():
    for bound in (1.0, "a", np.float32(1), np.array([1, 2])):
        with pytest.raises(TypeError, match="the bound of a slice must be an integer or None, got"):
            rlx.array(X)[:bound]
    with pytest.raises(TypeError, match="dynamic_slice takes a traced start"):
        rlx.jit(lambda x, n: x[:n])(X, 2)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint8, np.int64, np.int16])
def test_loops_count_in_the_dtype_of_their_bounds(dtype):
    body = lambda i, c: c + i  # noqa: E731
    want = jax.lax.fori_loop(dtype(1), dtype(5), body, dtype(0))
    for f in (lambda a, b: rlx.fori_loop(a, b, body, dtype(0)),):
        for got in (f(dtype(1), dtype(5)), rlx.jit(f)(dtype(1), dtype(5)), rlx.jit(lambda: f(dtype(1), dtype(5)))()):
            assert int(got) == int(want) and got.dtype == want.dtype
    one = rlx.fori_loop(0, dtype(5), lambda i, c: c + i, dtype(0))
    assert int(one) == 10


# Indices with a mask beside other entries; NumPy's assignment says what each update gives.
MASK2, MASK3, MASK23 = np.array([True, False]), np.array([True, False, True]), np.arange(6).reshape(2, 3) % 2 == 0
INDICES = [
    (slice(None), MASK3),
    (MASK2, slice(None)),
    (0, MASK3),
    (MASK2, 1),
    (slice(None), slice(None), np.array([True, False, False, True])),
    (Ellipsis, np.array([True, False, False, True])),
    (MASK23, slice(1, 3)),
    (slice(None), MASK3, None),
    (np.array([0, 1]), MASK3),
    (slice(None), [True, False, True]),
    (slice(0, 1), MASK3, 2),
]


@pytest.mark.parametrize("index", INDICES, ids=range(len(INDICES)))
def test_masks_beside_other_indices(index):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    numpy_index = tuple(np.array(i) if isinstance(i, list) else i for i in index)
    assert np.array_equal(rlx.array(x)[index], x[numpy_index])
    for values in (5.0, np.float32(7) + np.zeros(x[numpy_index].shape, np.float32)):
        for how in ("set", "add", "max", "multiply"):
            want = x.copy()
            if how == "set":
                want[numpy_index] = values
            else:
                np_how = {"add": np.add, "max": np.maximum, "multiply": np.multiply}[how]
                want[numpy_index] = np_how(want[numpy_index], values)
            update = lambda x: getattr(x.at[index], how)(values)  # noqa: B023, E731
            assert np.array_equal(update(rlx.array(x)), want), how
            assert np.array_equal(rlx.jit(update)(x), want), how
    assert np.array_equal(rlx.array(x).at[index].get(), x[numpy_index])


def test_a_traced_mask_beside_other_indices():
    with pytest.raises(IndexError, match="must be known while the function is traced"):
        rlx.jit(lambda x, m: x.at[:, m].set(1.0))(X, X[0] > 2)


def test_polyval_of_arrays_of_coefficients():
    rng = np.random.default_rng(0)
    for p_shape, x_shape in (((3,), (2,)), ((3, 2), (2,)), ((3, 2), (4, 2)), ((4, 1, 3), (5, 1)), ((3, 2), ())):
        p, x = rng.standard_normal(p_shape), rng.standard_normal(x_shape)
        np.testing.assert_allclose(rnp.polyval(p, x), np.polyval(p, x), rtol=1e-12)
        np.testing.assert_allclose(jnp.polyval(p, x), np.polyval(p, x), rtol=1e-12)
