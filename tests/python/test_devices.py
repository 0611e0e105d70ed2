"""Arrays that lie on a device: programs run where their arguments are, and nothing moves that nobody asked to move.

Of every device by name (--device, --plugin): on cpu the same holds, with all arrays on the host.
"""

import gc
import os
import signal

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
    with pytest.raises(rlx.InvalidArgument, match=f"is on {device}.*runs on cpu(.|\n)*array.to\\(device\\)"):
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
    assert "dltensor" in repr(there.__dlpack__(dl_device=(1, 0)))  # a copy on the host
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert np.array_equal(np.from_dlpack(there, device="cpu"), X)
    if device == "tpu":  # DLPack has no type for it
        for refused in (there.__dlpack__, there.__dlpack_device__, lambda: np.from_dlpack(there)):
            with pytest.raises(rlx.Unsupported, match="without a DLPack type(.|\\n)*copy it to the host first"):
                refused()

    class OnHost:  # as NumPy asks when it is told device="cpu"
        def __dlpack__(self, **_):
            return there.__dlpack__(dl_device=(1, 0))

        def __dlpack_device__(self):
            return (1, 0)

    assert np.array_equal(np.from_dlpack(OnHost()), X)
    with pytest.raises(BufferError, match="copy=False"):
        there.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises((BufferError, rlx.Unsupported), match="host"):
        there.__dlpack__(dl_device=(77, 0))


def test_devices_are_listed_and_taken_by_name(device):
    assert device in rlx.devices()
    assert rlx.jit(lambda a: a * 2, device=device)(X).device == device


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


OPTION = {"cpu": ("threads", "1"), "tpu": ("cache", "off"), "vulkan": ("memory", "1000000")}


def test_device_options(device, there):
    if device not in OPTION:
        pytest.skip("the option of another backend")
    name, value = OPTION[device]
    f = rlx.jit(lambda a: a * 2, device=device, device_options={name: value})
    assert np.array_equal(f(X), X * 2)
    assert rlx.Session(device, device_options={name: value}).device == device
    if device == "vulkan":  # another opening of the device: it says how values get there
        with pytest.raises(rlx.InvalidArgument, match="other options") as e:
            f(there)
        assert "to_host()" in e.value.hint
        assert np.array_equal(f(there.to_host()), X * 2)
    with pytest.raises(rlx.NotFound, match="takes no option"):
        rlx.Session(device, device_options={"colour": "red"})
    with pytest.raises(TypeError, match="dict"):
        rlx.jit(lambda a: a, device_options="plugin=x")
    with pytest.raises(rlx.InvalidArgument, match="takes no device_options"):
        rlx.Session("reference", device_options={"x": "1"})


def test_names_of_devices(device):
    for text in (f"{device}:-1", f"{device}:x", f"{device}:", f"{device}: 0"):
        with pytest.raises(rlx.DeviceUnavailable, match="is not an ordinal"):
            rlx.Session(text)
    for text in ("", "vulcan"):
        with pytest.raises(rlx.DeviceUnavailable, match="there is no device"):
            rlx.jit(lambda a: a, device=text)(X)


def test_weights_and_states_take_arrays_of_the_device(device, there):
    g = rlx.Graph("kept")
    w, s = g.param("w", (3, 4)), g.state("s", np.zeros((3, 4), np.float32))
    g.set_outputs([g.add(w, s)])
    program = rlx.Session(device).compile(g)
    program.set_param("w", there)
    program.write_state("s", there)
    assert np.array_equal(np.asarray(program.run()[0]), 2 * X)


def run_in_child(f):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        try:
            os._exit(0 if f() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_process_is_told(device, there):
    elsewhere(device)

    def told(call):
        try:
            call()
        except rlx.Error as e:
            return "forked" in str(e) or "lost" in str(e)
        return False

    assert run_in_child(lambda: told(there.to_host)) == 0
    assert run_in_child(lambda: told(lambda: rlx.Session(device))) == 0
    assert run_in_child(lambda: device not in rlx.devices()) == 0
    assert run_in_child(lambda: float(rlx.jit(lambda a: a.sum())(np.ones(4, np.float32))) == 4) == 0
    assert np.array_equal(np.asarray(there + 1), X + 1)
