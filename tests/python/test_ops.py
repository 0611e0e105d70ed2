"""Every op forward against JAX, over dtypes, shapes, attributes and ways of compiling."""

import zlib

import jax.extend  # noqa: F401
import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from oracles import catalogue, dtypes, single
from programs import run

import rlx

OPS = catalogue.load()

# Ops of the table that have no oracle here, and where they are tested.
WITHOUT = {
    "input": "a leaf: every program has some",
    "param": "a leaf of compiled programs, test_custom.py and C++",
    "constant": "a leaf: programs have some",
    "state": "a leaf that keeps its value: C++ tests of states",
    "if": "control.cond and control.switch of random programs",
    "while": "control.while_ of random programs",
    "scan": "control.scan, control.map and control.fori of random programs",
    "call": "control.call, checkpoint, custom_vjp and custom_jvp of random programs",
    **{
        name: "a factor of matrices: test_linalg.py, which draws matrices that have one"
        for name in ("cholesky", "triangular_solve", "lu", "qr", "eigh", "svd")
    },
    **{
        name: "windows, filters and norms of images: test_images.py" for name in ("reduce_window", "select_and_scatter")
    },
    **{name: "drawn geometries in test_images.py" for name in ("interpolate", "group_norm", "batch_norm")},
    "conv": "geometries, derivatives and batches in test_lax_functions.py",
    "relayout": "made by passes alone; common and default ways of compiling are compared",
    "transfer": "made by passes alone, between devices",
    "custom": "the op of another project: C++ tests",
}
# Ops with dtypes in rlx's list that mean nothing: their sample has no f32 operand whose dtype could be another, or
# one that does not decide. Every dtype they do take is drawn.
NOT_DRAWN = {
    "axis_index": "no operands",
    "iota": "no operands",
    "complex_part": "complex numbers",
    "fft": "complex numbers, and f32 and f64 of which it is r2c",
    "rng_bits": "a key of uint32",
    "bit_and": "integers",
    "bit_or": "integers",
    "bit_xor": "integers",
    "shl": "integers",
    "shr": "integers",
    "not_": "integers and bool",
    "popcount": "integers",
    "clz": "integers",
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a"), "float64 in test_special_functions.py"),
    "bitcast": "all widths in test_special_functions.py and C++",
    "encoder_block": "floats",
    "llama_decoder_block": "floats",
    "dequantize": "codes of integers; f8 ones in C++",
    "q_conv": "codes of int8 and uint8",
    "q_matmul": "codes of int8 and uint8",
    **dict.fromkeys(("fused_dot", "fused_conv"), "of f32 or f64, as its epilogue"),
}


def test_every_op_has_an_oracle():
    known = {op.table for op in OPS.values()}
    missing = [r["name"] for r in rlx._rlx.op_table() if r["name"] not in known and r["name"] not in WITHOUT]
    assert not missing, f"ops without an oracle: {missing}"
    named = catalogue.table_names()
    missing = [n for n, table in named.items() if n not in OPS and table not in WITHOUT]
    assert not missing, f"functions without an oracle: {missing}"
    stale = [n for n in WITHOUT if n not in set(named.values())]
    assert not stale, f"exceptions for ops that do not exist: {stale}"


def _cases():
    for name, op in sorted(OPS.items()):
        for dtype in single.dtypes_of(op) or [None]:
            yield pytest.param(name, dtype, id=f"{name}-{dtype}" if dtype else name)


def _sampled(name, dtype, full):
    """In a sample: f32 and another float dtype of each op, and one other dtype, by the op's name."""
    if full or dtype in (None, "float32"):
        return True
    taken = [t for t in single.dtypes_of(OPS[name]) if t != "float32"]
    at = zlib.crc32(name.encode())
    floats = [t for t in taken if dtypes.is_inexact(t)]
    others = [t for t in taken if not dtypes.is_inexact(t)]
    return dtype in ([floats[at % len(floats)]] if floats else []) + ([others[at % len(others)]] if others else [])


@pytest.mark.parametrize("name,dtype", list(_cases()))
def test_forward(name, dtype, device, full):
    if not _sampled(name, dtype, full):
        pytest.skip("in the full run")
    op = OPS[name]
    many = full and device == "cpu"  # elsewhere a call takes a tenth of a second to compile
    ways = run.WAYS if many else {k: run.WAYS[k] for k in ("default", "plain")}
    drawn = []

    @settings(max_examples=max(2, settings.default.max_examples // 20) if many else 2)
    @given(st.data(), st.integers(0, 1 << 30))
    def check(data, number):
        program = single.call_of(op, data, number + zlib.crc32(f"{name} {dtype}".encode()), dtype)
        if program is None:
            return
        drawn.append(1)
        try:
            run.check(program, (device,), ways)
        except run.Mismatch as e:
            raise AssertionError(f"{e}\n{program.text()}") from None

    seed(zlib.crc32(f"{name} {dtype}".encode()))(check)()
    if not drawn:
        assert name in NOT_DRAWN, f"no call of {name} with {dtype} was drawn"


STORAGE = sorted(dtypes.STORAGE)


@pytest.mark.parametrize("storage", STORAGE)
def test_storage_dtypes_through_casts(storage, device):
    """f8, f4, i4, u4: to and from, by the rules of docs/numerics.md."""
    import ml_dtypes

    x = np.array([0, 0.4, 0.5, 1, 1.5, 2.5, 3, -1, -2.5, 7, -8, 20, 1000, -1e6], np.float32)
    if storage == "uint4":
        want = np.clip(np.trunc(x), 0, 15)
    elif storage == "int4":
        want = np.clip(np.trunc(x), -8, 7)
    else:
        most = float(ml_dtypes.finfo(dtypes.of(storage)).max)
        want = np.clip(x, -most, most).astype(dtypes.of(storage)).astype(np.float32)
    f = rlx.jit(lambda v: rlx.ops.cast(rlx.ops.cast(v, to=storage), to="float32"), device=device)
    assert np.array_equal(np.asarray(f(x)), want), (storage, np.asarray(f(x)), want)
    moved = rlx.jit(
        lambda v: rlx.ops.cast(rlx.ops.reverse(rlx.ops.cast(v, to=storage), axes=[0]), to="float32"), device=device
    )
    assert np.array_equal(np.asarray(moved(x)), want[::-1])


def test_attention_has_a_kv_head_for_each_head_unless_told():
    x = np.random.default_rng(1).normal(size=(1, 3, 8)).astype(np.float32)
    stated = rlx.ops.attention(x, x, x, num_heads=2, kv_heads=2, head_dim=4)
    left_out = rlx.ops.attention(x, x, x, num_heads=2, head_dim=4)
    np.testing.assert_array_equal(np.asarray(stated[0]), np.asarray(left_out[0]))
