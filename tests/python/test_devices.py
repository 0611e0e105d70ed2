"""Arrays that lie on a device: programs run where their arguments are, and nothing moves that nobody asked to move.

Of every device by name (--device, --plugin): on cpu the same holds, with all arrays on the host.
"""

import gc

import numpy as np
import pytest

import rlx
import rlx.numpy as rnp

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def there(device):
    return rlx.array(X).to(device)


def elsewhere(device):
    if device == "cpu":
        pytest.skip("the host alone")


def test_to_and_back(device, there):
    assert there.device == device
    assert there.to(device) is there
    assert there.to_host().device == "cpu"
    for back in (there.to_host(), there.to("cpu"), np.asarray(there), there.tolist(), memoryview(there)):
        assert np.array_equal(np.asarray(back), X)


def test_functions_run_where_their_arguments_are(device, there):
    f = rlx.jit(lambda a, b: rnp.tanh(a) @ b.T)
    for a, b in ((there, there), (there, X), (X, there)):
        assert f(a, b).device == device
        assert np.allclose(f(a, b), np.tanh(X) @ X.T, atol=1e-6)
    assert f(X, X).device == "cpu"
    assert f.misses == (1 if device == "cpu" else 4)  # where each argument lies is part of the signature


def test_operators_indexing_and_functions_outside_of_traces(device, there):
    for y, want in (
        (there + 1, X + 1),
        (2 - there, 2 - X),
        (there[1], X[1]),
        (there[:, ::-2], X[:, ::-2]),
        (rnp.sum(there, axis=0), X.sum(axis=0)),
        (rnp.where(there > 0, there, X), X.clip(min=None) * (X > 0) + X * (X <= 0)),
        (there.at[0].set(5.0), np.concatenate([np.full((1, 4), 5, np.float32), X[1:]])),
    ):
        assert y.device == device
        assert np.allclose(y, want, atol=1e-6)


def test_derivatives_and_batches(device, there):
    value, slope = rlx.value_and_grad(lambda a: rnp.sum(a * a))(there)
    assert value.device == slope.device == device
    assert np.array_equal(slope, 2 * X)
    rows = rlx.vmap(lambda a: a / rnp.sum(a))(there + 2)
    assert rows.device == device
    assert np.allclose(np.asarray(rows).sum(axis=1), 1)


def test_a_donated_array_is_gone(device, there):
    step = rlx.jit(lambda a: a * 2, donate_argnums=0)
    y = step(there)
    assert np.array_equal(y, 2 * X)
    with pytest.raises(rlx.InvalidArgument, match="donated"):
        there.tolist()
    for _ in range(3):
        y = step(y)
    assert np.array_equal(y, 16 * X)


@pytest.mark.parametrize(
    "f",
    [lambda a, b: (a + b, a - b), lambda a, b: (b, a), lambda a, b: (a @ b.T, b * 2), lambda a, b: (b.sum(), a)],
    ids=["both read twice", "swap", "product", "no such shape"],
)
def test_donated_arrays_that_results_cannot_be_written_over(device, f):
    step = rlx.jit(f, donate_argnums=(0, 1))
    for _ in range(2):
        a, b = rlx.array(X).to(device), rlx.array(X + 1).to(device)
        for got, want in zip(step(a, b), f(X, X + 1)):
            assert np.allclose(got, want, atol=1e-5)
        for gone in (a, b):
            with pytest.raises(rlx.InvalidArgument, match="donated"):
                gone.tolist()


def test_states_and_programs(device, there):
    g = rlx.Graph("sums")
    x = g.input("x", (3, 4))
    total = g.state("total", np.zeros((3, 4), np.float32))
    g.set_state("total", total + x)
    g.set_outputs([total + x])
    program = rlx.Session(device).compile(g)
    for n in range(1, 4):
        out = program.run(there)[0]
        assert out.device == device and np.allclose(out, n * X, atol=1e-6)
    assert np.array_equal(program.read_state("total"), out)


def test_constants_of_a_device_in_a_trace(device, there):
    assert np.allclose(rlx.jit(lambda a: a * there, device=device)(X), X * X)


def test_another_device_is_refused(device, there):
    elsewhere(device)
    with pytest.raises(rlx.InvalidArgument, match=f"lies on {device}.*runs on cpu(.|\n)*array.to\\(device\\)"):
        rlx.jit(lambda a: a + 1, device="cpu")(there)


def test_dlpack(device, there):
    if device == "cpu":
        assert np.shares_memory(np.from_dlpack(there), np.from_dlpack(there))
        copied = there.__dlpack__(copy=True)
        assert "dltensor" in repr(copied)
        with pytest.raises(BufferError, match="host"):
            there.__dlpack__(dl_device=(2, 0))
        return
    assert np.array_equal(np.asarray(rlx.from_dlpack(there)), X)  # rlx reads rlx


def test_no_copy_means_none(device, there):
    if device == "cpu":
        assert np.shares_memory(there.__array__(copy=False), there.__array__())
    else:
        with pytest.raises(ValueError, match="copy=False"):
            there.__array__(copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        there.__array__(np.float64, copy=False)
    assert there.__array__(np.float64).dtype == np.float64


def test_memory_comes_back(device, there):
    (there + 1).to_host()
    gc.collect()
    before = len([o for o in gc.get_objects() if isinstance(o, rlx.Array)])
    for _ in range(200):
        (there + 1).to_host()
    gc.collect()
    assert len([o for o in gc.get_objects() if isinstance(o, rlx.Array)]) == before
