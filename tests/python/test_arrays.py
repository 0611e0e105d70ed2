"""Arrays: every dtype in and out, without copies, by the buffer protocol and DLPack; as Python objects."""

import copy
import gc
import pickle
import weakref

import ml_dtypes
import numpy as np
import pytest
import rlx
import rlx.numpy as rnp

NUMPY_DTYPES = [d.name for d in rlx.dtypes if not d.name.startswith(("bfloat", "float8", "float4", "int4", "uint4"))]
ML_DTYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "float4_e2m1fn"]


def sample(name):
    dtype = np.dtype(getattr(ml_dtypes, name)) if name in ML_DTYPES else np.dtype(name)
    values = np.array([[0, 1, 1], [1, 0, 1]])
    return values.astype(dtype)


@pytest.mark.parametrize("name", NUMPY_DTYPES + ML_DTYPES)
def test_every_dtype_goes_in_and_out(name):
    x = sample(name)
    a = rlx.array(x)
    assert a.dtype == name and a.dtype == x.dtype and a.shape == (2, 3)
    back = np.asarray(a)
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(back.astype(np.complex128), x.astype(np.complex128))
    assert np.dtype(a.dtype) == x.dtype and rlx.dtype(x.dtype) == a.dtype and rlx.dtype(name).name == name
    again = pickle.loads(pickle.dumps(a))
    np.testing.assert_array_equal(np.asarray(again).astype(np.complex128), x.astype(np.complex128))
    assert pickle.loads(pickle.dumps(a.dtype)) == a.dtype


@pytest.mark.parametrize("name", NUMPY_DTYPES + ML_DTYPES[:3])
def test_every_dtype_through_a_compiled_function(name):
    x = sample(name)
    y = rlx.jit(lambda v: v[::-1])(x)
    assert y.dtype == name
    np.testing.assert_array_equal(np.asarray(y).astype(np.complex128), x[::-1].astype(np.complex128))


def address(x):
    return x.__array_interface__["data"][0]


def test_nothing_is_copied_on_the_way():
    x = np.arange(6, dtype=np.float32)
    a = rlx.asarray(x)
    assert a._address() == address(x)
    assert address(np.asarray(a)) == address(x)
    assert address(np.from_dlpack(a)) == address(x)
    assert rlx.from_dlpack(x)._address() == address(x)
    assert rlx.array(x)._address() != address(x)
    half = x.astype(ml_dtypes.bfloat16)
    assert rlx.asarray(half)._address() == half.view(np.uint16).__array_interface__["data"][0]
    y = rlx.jit(lambda v: v + 1)(x)
    assert address(np.asarray(y)) == y._address()


def test_jax_arrays():
    jnp = pytest.importorskip("jax.numpy")
    j = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    f = rlx.jit(lambda v: v * 2)
    np.testing.assert_array_equal(f(j), np.asarray(j) * 2)
    assert rlx.asarray(j)._address() == j.unsafe_buffer_pointer()
    back = jnp.from_dlpack(f(j))
    np.testing.assert_array_equal(back, np.asarray(j) * 2)
    np.testing.assert_array_equal(f(jnp.ones(3, jnp.bfloat16)), np.full(3, 2.0))


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    f = rlx.jit(lambda v: v * 2)
    np.testing.assert_array_equal(f(t), t.numpy() * 2)
    assert rlx.from_dlpack(t)._address() == t.data_ptr()
    assert torch.equal(torch.from_dlpack(f(t)), t * 2)


def test_a_dtype_of_what_speaks_dlpack_alone():
    class Theirs:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **keywords):
            return self.x.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    x = np.array([1.5, -2.0, 3.0], np.float32)
    for make in (rlx.array, rlx.asarray):
        a = make(Theirs(x), dtype="int32")
        assert a.dtype == np.dtype("int32")
        np.testing.assert_array_equal(a, [1, -2, 3])
        assert make(Theirs(x)).dtype == np.dtype("float32")


def test_bytes_live_as_long_as_somebody_sees_them():
    x = np.arange(1000, dtype=np.float32)
    ref = weakref.ref(x)
    a = rlx.asarray(x)
    view = np.asarray(a)
    del x
    gc.collect()
    assert ref() is not None and float(a[999]) == 999
    del a
    gc.collect()
    assert ref() is not None and view[999] == 999
    del view
    gc.collect()
    assert ref() is None


def test_arrays_are_read_only():
    a = rlx.array([1.0, 2.0])
    assert not np.asarray(a).flags.writeable
    with pytest.raises(TypeError, match="x.at"):
        a[0] = 3
    with pytest.raises(ValueError, match="WRITEABLE"):
        np.frombuffer(a, np.float32).setflags(write=True)
    with pytest.raises(TypeError, match="read-only"):
        memoryview(a)[0] = 1.0


def test_numbers_and_lists():
    assert rlx.array(3).dtype == "int32" and rlx.array(2.5).dtype == "float32" and rlx.array(True).dtype == "bool"
    assert rlx.array(2**40).dtype == "int64" and rlx.array([1, 2**40]).dtype == "int64"
    assert rlx.array([1, 2.5]).dtype == "float32" and rlx.array([[1j]]).dtype == "complex64"
    assert rlx.array(2**63).dtype == "uint64"
    assert rlx.array([1, 2], "bfloat16").tolist() == [1, 2]
    assert rlx.float16(1.5).dtype == "float16"
    assert rlx.array(np.float64(1)).dtype == "float64"
    with pytest.raises(TypeError, match="not fit in any integer"):
        rlx.array(2**70)
    with pytest.raises((TypeError, ValueError)):
        rlx.array([[1, 2], [3]])
    with pytest.raises(TypeError, match="not a dtype"):
        rlx.array(1, "float33")


def test_as_python_objects():
    a = rlx.array([[1, 2], [3, 4]])
    assert a.tolist() == [[1, 2], [3, 4]] and len(a) == 2 and [int(r[0]) for r in a] == [1, 3]
    assert int(a[1, 1]) == 4 and float(a[0, 0]) == 1.0 and bool(a[0, 0]) and [10, 20, 30][a[0, 0]] == 20
    assert complex(rlx.array(1 + 2j)) == 1 + 2j and rlx.array(1 + 2j).item() == 1 + 2j
    assert copy.copy(a) is a and copy.deepcopy(a) is a
    assert "int32" in repr(a) and "3" in str(a) and f"{rlx.array(1.5):.2f}" == "1.50"
    with pytest.raises(TypeError, match="not hashable"):
        hash(a)
    with pytest.raises(ValueError, match="4 elements"):
        bool(a)
    with pytest.raises(TypeError):
        len(a[0, 0])
    with pytest.raises(TypeError):
        a + "text"
    assert a.dtype != "float32" and a.dtype in (rlx.int32, rlx.int8)


def test_operators_beside_numpy():
    a, n = rlx.array([1.0, 2.0]), np.array([3.0, 4.0], np.float32)
    for value in (a + n, n + a, n * a, a - 1, 2 / a, a**2, -a, abs(-a), a % 2, a // 2, a @ n, n @ a):
        assert isinstance(value, rlx.Array)
    assert (n - a).tolist() == [2, 2] and (a == n).tolist() == [False, False]
    assert ((a > 1) & (a < 3)).tolist() == [False, True] and (~(a > 1)).tolist() == [True, False]
    assert divmod(rlx.array(7), 3)[1].item() == 1


def test_extents_of_zero():
    for shape in [(0,), (3, 0), (0, 2, 2)]:
        x = np.zeros(shape, np.float32)
        a = rlx.array(x)
        assert a.shape == shape and np.asarray(a).shape == shape
        assert rlx.jit(lambda v: v + 1)(x).shape == shape
        assert np.from_dlpack(a).shape == shape


def test_files_of_dtypes_that_numpy_lacks(tmp_path):
    """A bfloat16 is two bytes without a meaning in NumPy's files and comes back; others are refused when saved."""
    x = rlx.array([1.5, -2.0], "bfloat16")
    rnp.save(tmp_path / "x.npy", x)
    assert rnp.load(tmp_path / "x.npy").dtype == "bfloat16" and rnp.load(tmp_path / "x.npy").tolist() == [1.5, -2.0]
    rnp.savez(tmp_path / "x.npz", x, y=x[0], z=[1, 2])
    back = rnp.load(tmp_path / "x.npz")
    assert {k: (v.dtype.name, v.tolist()) for k, v in back.items()} == {
        "arr_0": ("bfloat16", [1.5, -2.0]),
        "y": ("bfloat16", 1.5),
        "z": ("int64", [1, 2]),
    }
    for name in ("float8_e4m3fn", "float8_e5m2"):
        with pytest.raises(TypeError, match=f"an array of {name} .* rlx.save_safetensors"):
            rnp.save(tmp_path / "y.npy", x.astype(name))
        with pytest.raises(TypeError, match="rlx.save_safetensors"):
            rnp.savez(tmp_path / "y.npz", y=x.astype(name))
    np.save(tmp_path / "v.npy", np.zeros(2, "V1"))
    with pytest.raises(TypeError, match="elements of 1 bytes without a dtype"):
        rnp.load(tmp_path / "v.npy")
