"""Custom ops: Python kernels and rules, C kernels, callbacks, and what they raise."""

import ctypes
import itertools

import numpy as np
import pytest
import rlx
import rlx.numpy as rnp

_number = itertools.count()


def name(stem):
    return f"test.{stem}_{next(_number)}"


def soft_clip(**rules):
    return rlx.custom_op(
        name("soft_clip"),
        kernel=lambda x, limit=2.0: (limit * np.tanh(x / limit)).astype(x.dtype),
        vjp=lambda cts, xs, ys, limit=2.0: cts[0] * (1.0 - rnp.square(ys[0] / limit)),
        jvp=lambda xs, ts, ys, limit=2.0: ts[0] * (1.0 - rnp.square(ys[0] / limit)),
        batch="broadcast",
        **rules,
    )


def test_kernel_and_derivatives():
    op = soft_clip()
    x = np.array([-8, -1, 0.5, 3], np.float32)
    want = 2 * np.tanh(x / 2)
    np.testing.assert_allclose(op(x), want, rtol=1e-6)
    np.testing.assert_allclose(rlx.jit(lambda v: op(v) + 1)(x), want + 1, rtol=1e-6)
    gradient = rlx.grad(lambda v: rnp.sum(op(v) * 3))(x)
    np.testing.assert_allclose(gradient, 3 * (1 - np.tanh(x / 2) ** 2), rtol=1e-5)
    y, t = rlx.jvp(lambda v: op(v), (x,), (np.ones_like(x),))
    np.testing.assert_allclose(t, 1 - np.tanh(x / 2) ** 2, rtol=1e-5)
    second = rlx.grad(lambda v: rnp.sum(rlx.grad(lambda u: rnp.sum(op(u)))(v)))(x)
    inner = np.tanh(x / 2)
    np.testing.assert_allclose(second, -inner * (1 - inner**2), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(rlx.vmap(op)(np.stack([x, 2 * x])), 2 * np.tanh(np.stack([x, 2 * x]) / 2), rtol=1e-6)


def test_attributes_are_part_of_the_program():
    op = soft_clip()
    x = np.array([4.0], np.float32)
    assert float(op(x, limit=1.0)[0]) == pytest.approx(np.tanh(4.0))
    assert float(op(x, limit=3.0)[0]) == pytest.approx(3 * np.tanh(4 / 3))
    with pytest.raises(TypeError, match="attributes must be numbers"):
        op(x, limit=np.ones(3))


def test_decomposition_gives_everything_else():
    op = rlx.custom_op(name("cube"), decompose=lambda x: x * x * x)
    x = np.array([1.0, 2.0], np.float32)
    np.testing.assert_allclose(op(x), x**3)
    np.testing.assert_allclose(rlx.grad(lambda v: rnp.sum(op(v)))(x), 3 * x**2)
    np.testing.assert_allclose(rlx.vmap(op)(np.ones((3, 2), np.float32)), np.ones((3, 2)))


def test_c_kernel():
    signature = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)), ctypes.c_char_p
    )

    def double(buffers, dims, attrs):
        n = dims[0][0]
        source = (ctypes.c_float * n).from_address(buffers[0])
        target = (ctypes.c_float * n).from_address(buffers[1])
        for i in range(n):
            target[i] = 2 * source[i]
        return 0 if n < 5 else 7

    c_function = signature(double)
    op = rlx.custom_op(name("double"), kernel=c_function)
    np.testing.assert_array_equal(op(np.arange(3, dtype=np.float32)), [0, 2, 4])
    with pytest.raises(ValueError, match="returned 7"):
        op(np.arange(6, dtype=np.float32))


def test_several_results_and_shapes():
    op = rlx.custom_op(
        name("minmax"),
        kernel=lambda x: (np.asarray(x.min(), x.dtype), np.asarray(x.argmax(), np.int32)),
        shape=lambda s: (rlx.ShapeDtype((), s.dtype), rlx.ShapeDtype((), "int32")),
    )
    low, place = op(np.array([3.0, 1.0, 7.0], np.float32))
    assert float(low) == 1 and int(place) == 2


def test_the_kernels_own_exception_arrives():
    def kernel(x):
        raise ZeroDivisionError("nothing to divide")

    op = rlx.custom_op(name("fails"), kernel=kernel)
    with pytest.raises(ZeroDivisionError, match="nothing to divide") as caught:
        rlx.jit(lambda v: op(v) + 1)(np.ones(2, np.float32))
    assert any("kernel of test.fails" in note for note in caught.value.__notes__)
    assert caught.traceback[-1].name == "kernel"


@pytest.mark.parametrize(
    "kernel, message",
    [
        (lambda x: np.ones(5, np.float32), "expected \\[2\\] f32"),
        (lambda x: np.ones(2), "expected \\[2\\] f32"),
        (lambda x: (x, x), "it returned 2"),
        (lambda x: "text", "is not an array"),
    ],
)
def test_wrong_results_are_named(kernel, message):
    op = rlx.custom_op(name("wrong"), kernel=kernel)
    with pytest.raises((ValueError, TypeError), match=message):
        op(np.ones(2, np.float32))


def test_rules_that_are_not_there_say_so():
    op = rlx.custom_op(name("bare"), kernel=lambda x: x)
    x = np.ones(2, np.float32)
    with pytest.raises(NotImplementedError, match="without a vjp rule"):
        rlx.grad(lambda v: rnp.sum(op(v)))(x)
    with pytest.raises(NotImplementedError, match="without a batch rule"):
        rlx.vmap(op)(np.ones((2, 2), np.float32))


def test_registration_is_checked():
    with pytest.raises(ValueError, match="registered already"):
        taken = name("twice")
        rlx.custom_op(taken, kernel=lambda x: x)
        rlx.custom_op(taken, kernel=lambda x: x)
    with pytest.raises(ValueError, match="lower-case words"):
        rlx.custom_op("NoDots", kernel=lambda x: x)
    with pytest.raises(TypeError, match="kernel or a decomposition"):
        rlx.custom_op(name("none"))


def test_operands_are_copies_that_may_be_kept():
    kept = []
    op = rlx.custom_op(name("keeps"), kernel=lambda x: (kept.append(x), x)[1])
    f = rlx.jit(lambda v: op(v * 2))
    for i in range(4):
        f(np.full(3, i, np.float32))
    assert [float(k[0]) for k in kept] == [0, 2, 4, 6]


def test_io_callback_runs_once_in_order():
    seen = []

    def note(x):
        seen.append(float(x))
        return np.float32(0)

    @rlx.jit
    def f(x):
        for i in range(3):
            rlx.io_callback(note, rlx.ShapeDtype((), "float32"), x + i)
        return x

    f(np.float32(10))
    assert seen == [10, 11, 12]

    def body(i, c):
        rlx.io_callback(note, rlx.ShapeDtype((), "float32"), rnp.astype(i, "float32"))
        return c

    seen.clear()
    rlx.fori_loop(0, 4, body, np.float32(0))
    assert seen == [0, 1, 2, 3]


def test_pure_callback_in_a_tree():
    def split(x):
        return {"half": x / 2, "sign": np.sign(x)}

    shapes = {"half": rlx.ShapeDtype((2,)), "sign": rlx.ShapeDtype((2,))}
    out = rlx.jit(lambda x: rlx.pure_callback(split, shapes, x))(np.array([-4, 6], np.float32))
    np.testing.assert_array_equal(out["half"], [-2, 3])
    np.testing.assert_array_equal(out["sign"], [-1, 1])
