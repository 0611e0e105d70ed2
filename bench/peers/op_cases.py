"""The cases of bench/ops: operands, an expression for rlx and JAX, one for PyTorch, the work that nobody can avoid.

An expression sees its operands as a, b, c, d and the modules of its engine: np (jax.numpy, rlx.numpy), lax, nn,
random, linalg, fft, image, sp (scipy); torch and F for PyTorch. What an engine lacks it answers with "not built", so
cases stand here before the ops do.
"""

import dataclasses
import math

BYTES = {
    "f8": 8,
    "f4": 4,
    "f2": 2,
    "bf16": 2,
    "i1": 1,
    "u1": 1,
    "i2": 2,
    "i4": 4,
    "i8": 8,
    "u4": 4,
    "bool": 1,
    "c8": 8,
    "c16": 16,
}
GOAL = 1.5


@dataclasses.dataclass
class Arg:
    """An operand. fill: normal, positive, unit, one, ascending, spd (a positive definite matrix); of integers small,
    count (1 to 7), wide (all there are), or indices below a number."""

    shape: tuple
    dtype: str = "f4"
    fill: object = "normal"

    def bytes(self):
        return math.prod(self.shape) * BYTES[self.dtype]


@dataclasses.dataclass
class Case:
    op: str
    name: str
    args: list
    expr: str
    torch: str = None  # None: PyTorch has none
    out_bytes: int = 0
    flops: float = 0
    peak: str = None  # whose arithmetic the floor is counted in: "f4", "f8"
    goal: float = GOAL  # times the better of the peers
    tolerance: float = 1e-3  # of values of the results; None: they are not compared
    jax: str = None  # where JAX writes it in another way than rlx

    @property
    def id(self):
        return f"{self.op} {self.name}"

    def floor_bytes(self):
        return sum(a.bytes() for a in self.args) + self.out_bytes


def _label(shape, dtype):
    return f"{'x'.join(map(str, shape))} {dtype}"


def _loose(dtype):
    return {"f2": 2e-2, "bf16": 1e-1}.get(dtype, 1e-3)


def elementwise():
    unary = [
        ("exp", "np.exp(a)", "torch.exp(a)", "normal"),
        ("log", "np.log(a)", "torch.log(a)", "positive"),
        ("tanh", "np.tanh(a)", "torch.tanh(a)", "normal"),
        ("sigmoid", "nn.sigmoid(a)", "torch.sigmoid(a)", "normal"),
        ("gelu", "nn.gelu(a, approximate=False)", "F.gelu(a)", "normal"),
        ("gelu_approx", "nn.gelu(a)", "F.gelu(a, approximate='tanh')", "normal"),
        ("silu", "nn.silu(a)", "F.silu(a)", "normal"),
        ("erf", "lax.erf(a)", "torch.erf(a)", "normal"),
        ("sqrt", "np.sqrt(a)", "torch.sqrt(a)", "positive"),
        ("sin", "np.sin(a)", "torch.sin(a)", "normal"),
        ("neg", "np.negative(a)", "torch.neg(a)", "normal"),
        ("expm1", "np.expm1(a)", "torch.expm1(a)", "normal"),
        ("log1p", "np.log1p(a)", "torch.log1p(a)", "positive"),
        ("softplus", "nn.softplus(a)", "F.softplus(a)", "normal"),
        ("mish", "nn.mish(a)", "F.mish(a)", "normal"),
        ("hard_swish", "nn.hard_swish(a)", "F.hardswish(a)", "normal"),
        ("leaky_relu", "nn.leaky_relu(a, 0.1)", "F.leaky_relu(a, 0.1)", "normal"),
        ("atan", "np.arctan(a)", "torch.atan(a)", "normal"),
        ("acos", "np.arccos(a)", "torch.acos(a)", "unit"),
        ("cbrt", "np.cbrt(a)", None, "normal"),
        ("exp2", "np.exp2(a)", "torch.exp2(a)", "normal"),
        ("log2", "np.log2(a)", "torch.log2(a)", "positive"),
        ("erfinv", "lax.erf_inv(a)", "torch.erfinv(a)", "unit"),
        ("lgamma", "lax.lgamma(a)", "torch.lgamma(a)", "positive"),
        ("digamma", "lax.digamma(a)", "torch.digamma(a)", "positive"),
        ("erfc", "lax.erfc(a)", "torch.erfc(a)", "normal"),
    ]
    unary += [
        (op, f"{jax}(a)", torch and f"{torch}(a)", fill)
        for op, jax, torch, fill in (
            ("relu", "nn.relu", "torch.relu", "normal"),
            ("rsqrt", "lax.rsqrt", "torch.rsqrt", "positive"),
            ("abs", "np.abs", "torch.abs", "normal"),
            ("cos", "np.cos", "torch.cos", "normal"),
            ("tan", "np.tan", "torch.tan", "normal"),
            ("round", "np.round", "torch.round", "normal"),
            ("recip", "np.reciprocal", "torch.reciprocal", "positive"),
            ("floor", "np.floor", "torch.floor", "normal"),
            ("ceil", "np.ceil", "torch.ceil", "normal"),
            ("trunc", "np.trunc", "torch.trunc", "normal"),
            ("sign", "np.sign", "torch.sign", "normal"),
            ("elu", "nn.elu", "F.elu", "normal"),
            ("hard_sigmoid", "nn.hard_sigmoid", "F.hardsigmoid", "normal"),
            ("softsign", "nn.soft_sign", "F.softsign", "normal"),
            ("log_sigmoid", "nn.log_sigmoid", "F.logsigmoid", "normal"),
            ("square", "np.square", "torch.square", "normal"),
            ("asin", "np.arcsin", "torch.asin", "unit"),
            ("sinh", "np.sinh", "torch.sinh", "normal"),
            ("cosh", "np.cosh", "torch.cosh", "normal"),
            ("asinh", "np.arcsinh", "torch.asinh", "normal"),
            ("acosh", "np.arccosh", "torch.acosh", "above_one"),
            ("atanh", "np.arctanh", "torch.atanh", "unit"),
            ("log10", "np.log10", "torch.log10", "positive"),
            ("is_nan", "np.isnan", "torch.isnan", "normal"),
            ("is_finite", "np.isfinite", "torch.isfinite", "normal"),
            ("sinc", "np.sinc", "torch.sinc", "normal"),
        )
    ]
    for op, expr, torch, fill in unary:
        dtypes = ["f4", "f8", "f2", "bf16"] if op in ("exp", "tanh", "gelu", "neg", "sqrt") else ["f4", "f8"]
        for dtype in dtypes:
            for n in (1000, 1 << 20):
                a = Arg((n,), dtype, fill)
                yield Case(op, _label(a.shape, dtype), [a], expr, torch, a.bytes(), tolerance=_loose(dtype))
    binary = [
        ("add", "a + b", "a + b", "f4 f8 f2 bf16 i4 i8 i1"),
        ("mul", "a * b", "a * b", "f4 f8 f2 bf16 i4 i8"),
        ("div", "a / b", "a / b", "f4 f8"),
        ("max", "np.maximum(a, b)", "torch.maximum(a, b)", "f4 f8 bf16 i4"),
        ("pow", "np.power(a, b)", "torch.pow(a, b)", "f4 f8"),
        ("atan2", "np.arctan2(a, b)", "torch.atan2(a, b)", "f4 f8"),
        ("sub", "a - b", "a - b", "f4"),
        ("min", "np.minimum(a, b)", "torch.minimum(a, b)", "f4"),
        ("hypot", "np.hypot(a, b)", "torch.hypot(a, b)", "f4"),
        ("logaddexp", "np.logaddexp(a, b)", "torch.logaddexp(a, b)", "f4"),
        ("bit_or", "a | b", "a | b", "i4"),
        ("bit_xor", "a ^ b", "a ^ b", "i4"),
        ("shl", "a << b", "a << b", "i4"),
        ("shr", "a >> b", "a >> b", "i4"),
        ("eq", "a == b", "a == b", "f4"),
        ("ne", "a != b", "a != b", "f4"),
        ("le", "a <= b", "a <= b", "f4"),
        ("gt", "a > b", "a > b", "f4"),
        ("ge", "a >= b", "a >= b", "f4"),
        ("mod", "np.mod(a, b)", "torch.remainder(a, b)", "f4 i4"),
        ("bit_and", "a & b", "a & b", "i4 u1 bool"),
        ("lt", "a < b", "a < b", "f4 f8 i4 bf16"),
    ]
    for op, expr, torch, dtypes in binary:
        for dtype in dtypes.split():
            for n in (1000, 1 << 20):
                fill = "positive" if dtype[0] in "fb" and dtype != "bool" else "small"
                args = [Arg((n,), dtype, fill), Arg((n,), dtype, "positive" if fill == "positive" else "count")]
                out = n if op in ("lt", "le", "gt", "ge", "eq", "ne") else args[0].bytes()
                yield Case(op, _label((n,), dtype), args, expr, torch, out, tolerance=_loose(dtype))
    big = (1024, 1024)
    row, col = Arg((1, 1024)), Arg((1024, 1))
    yield Case("add", "1024x1024 + 1x1024 f4", [Arg(big), row], "a + b", "a + b", 4 << 20)
    yield Case("add", "1024x1024 + 1024x1 f4", [Arg(big), col], "a + b", "a + b", 4 << 20)
    yield Case(
        "where",
        "1048576 f4",
        [Arg((1 << 20,), "bool"), Arg((1 << 20,)), Arg((1 << 20,))],
        "np.where(a, b, c)",
        "torch.where(a, b, c)",
        4 << 20,
    )
    yield Case("clamp", "1048576 f4", [Arg((1 << 20,))], "np.clip(a, -1.0, 1.0)", "torch.clamp(a, -1.0, 1.0)", 4 << 20)
    casts = [
        ("f4", "f8"),
        ("f8", "f4"),
        ("f4", "i4"),
        ("i4", "f4"),
        ("f4", "bf16"),
        ("bf16", "f4"),
        ("f4", "f2"),
        ("f2", "f4"),
        ("i8", "i4"),
    ]
    jax_name = {"f4": "float32", "f8": "float64", "i4": "int32", "i8": "int64", "bf16": "bfloat16", "f2": "float16"}
    for a, b in casts:
        x = Arg((1 << 20,), a, "small" if a[0] == "i" else "normal")
        yield Case(
            "cast",
            f"{a} to {b}",
            [x],
            f"a.astype('{jax_name[b]}')",
            f"a.to(torch.{jax_name[b]})",
            BYTES[b] << 20,
            tolerance=_loose("bf16"),
        )
    x = Arg((1 << 20,), "c8")
    yield Case("mul", "1048576 c8", [x, x], "a * b", "a * b", x.bytes())
    yield Case("exp", "262144 c8", [Arg((1 << 18,), "c8")], "np.exp(a)", "torch.exp(a)", 8 << 18)


def moves():
    for dtype in ("f4", "bf16", "f8", "u1"):
        x = Arg((1024, 1024), dtype, "small" if dtype == "u1" else "normal")
        yield Case("transpose", _label(x.shape, dtype), [x], "np.transpose(a)", "a.t().contiguous()", x.bytes())
    x = Arg((8, 12, 128, 64))
    yield Case(
        "transpose",
        "8x12x128x64 (0,2,1,3)",
        [x],
        "np.transpose(a, (0, 2, 1, 3))",
        "a.permute(0, 2, 1, 3).contiguous()",
        x.bytes(),
    )
    x = Arg((64, 56, 56, 32))
    yield Case(
        "transpose",
        "64x56x56x32 to channels first",
        [x],
        "np.transpose(a, (0, 3, 1, 2))",
        "a.permute(0, 3, 1, 2).contiguous()",
        x.bytes(),
    )
    x = Arg((1024, 1024))
    yield Case("concat", "2 x 1024x1024 axis 1", [x, x], "np.concatenate([a, b], 1)", "torch.cat([a, b], 1)", 8 << 20)
    yield Case("slice", "1024x1024 [::2, ::2]", [x], "a[::2, ::2]", "a[::2, ::2].contiguous()", 1 << 20)
    yield Case("pad", "1024x1024 by 3", [x], "np.pad(a, 3)", "F.pad(a, (3, 3, 3, 3))", 1030 * 1030 * 4)
    yield Case("reverse", "1024x1024 axis 1", [x], "np.flip(a, 1)", "torch.flip(a, (1,))", 4 << 20)
    yield Case(
        "iota",
        "1048576 i4",
        [],
        "np.arange(1048576, dtype='int32')",
        "torch.arange(1048576, dtype=torch.int32)",
        4 << 20,
    )
    yield Case(
        "expand",
        "1024 to 1024x1024",
        [Arg((1024,))],
        "np.broadcast_to(a, (1024, 1024))",
        "a.expand(1024, 1024).contiguous()",
        4 << 20,
    )
    for rows, width, count in ((30000, 384, 128), (30000, 384, 4096), (1 << 20, 1, 1 << 18)):
        table, ids = Arg((rows, width) if width > 1 else (rows,)), Arg((count,), "i4", rows)
        yield Case(
            "gather",
            f"{count} rows of {rows}x{width}",
            [table, ids],
            "np.take(a, b, axis=0, mode='clip')",
            "torch.index_select(a, 0, b)",
            0,
            goal=GOAL,
            tolerance=1e-3,
        )
    x, ids = Arg((1024, 1024)), Arg((1024, 64), "i4", 1024)
    yield Case(
        "gather",
        "take_along_axis 1024x64 of 1024x1024",
        [x, ids],
        "np.take_along_axis(a, b, 1)",
        "torch.gather(a, 1, b.long())",
        1024 * 64 * 4,
    )
    for width in (1, 64):
        shape = (1 << 16,) if width == 1 else (1 << 14, width)
        x, ids = Arg((4096,) if width == 1 else (4096, width)), Arg((shape[0],), "i4", 4096)
        yield Case(
            "scatter_add",
            f"{shape[0]} updates of {width}",
            [x, ids, Arg(shape)],
            "a.at[b].add(c)",
            "a.index_add(0, b, c)",
            x.bytes(),
        )
    x, ids = Arg((4096, 64)), Arg((1024,), "i4", 4096)
    yield Case(
        "scatter_set",
        "1024 rows of 64",
        [x, ids, Arg((1024, 64))],
        "a.at[b].set(c)",
        "a.index_copy(0, b, c)",
        x.bytes(),
        tolerance=None,
    )
    yield Case(
        "dynamic_slice",
        "512x512 of 1024x1024",
        [Arg((1024, 1024))],
        "lax.dynamic_slice(a, (3, 5), (512, 512))",
        "a[3:515, 5:517].contiguous()",
        1 << 20,
    )


def orders():
    for dtype in ("f4", "f8", "i4", "i8", "bf16", "u1"):
        for n in (1000, 100000, 1 << 20):
            x = Arg((n,), dtype, "normal" if dtype[0] in "fb" else "wide")
            yield Case(
                "sort", _label((n,), dtype), [x], "np.sort(a)", "torch.sort(a)[0]", x.bytes(), tolerance=_loose(dtype)
            )
            if n > 1000 or dtype in ("f4", "f8"):
                yield Case(
                    "sort",
                    f"argsort {_label((n,), dtype)}",
                    [x],
                    "np.argsort(a)",
                    "torch.argsort(a, stable=True)",
                    4 * n,
                    tolerance=0 if dtype != "bf16" else None,
                )
    x = Arg((1024, 1024))
    yield Case("sort", "1024x1024 axis 1", [x], "np.sort(a, axis=1)", "torch.sort(a, 1)[0]", x.bytes())
    yield Case("sort", "1024x1024 axis 0", [x], "np.sort(a, axis=0)", "torch.sort(a, 0)[0]", x.bytes())
    for dtype in ("f4", "f8", "bf16", "i4"):
        for n, k in ((1000, 10), (1 << 20, 10), (1 << 20, 1000)):
            x = Arg((n,), dtype, "normal" if dtype[0] in "fb" else "wide")
            yield Case(
                "top_k",
                f"{k} of {_label((n,), dtype)}",
                [x],
                f"lax.top_k(a, {k})[0]",
                f"torch.topk(a, {k})[0]",
                0,
                goal=1.0,
                tolerance=_loose(dtype),
            )
    yield Case(
        "top_k", "40 of 32x32000 f4", [Arg((32, 32000))], "lax.top_k(a, 40)[0]", "torch.topk(a, 40)[0]", 0, goal=1.0
    )
    yield Case(
        "searchsorted",
        "65536 in 65536",
        [Arg((1 << 16,), fill="ascending"), Arg((1 << 16,))],
        "np.searchsorted(a, b)",
        "torch.searchsorted(a, b)",
        4 << 16,
        tolerance=0,
    )


def reductions():
    for op, expr, torch in (
        ("reduce_sum", "np.sum(a, axis={0})", "torch.sum(a, {0})"),
        ("reduce_max", "np.max(a, axis={0})", "torch.amax(a, {0})"),
        ("reduce_mean", "np.mean(a, axis={0})", "torch.mean(a, {0})"),
        ("reduce_prod", "np.prod(a, axis={0})", "torch.prod(a, {0})"),
    ):
        for dtype in ("f4", "f8", "bf16", "f2", "i4") if op in ("reduce_sum", "reduce_max") else ("f4",):
            for shape, axis in (((1024, 1024), 1), ((1024, 1024), 0), ((64, 256, 64), 1), ((32, 32), 1)):
                x = Arg(shape, dtype, "normal" if dtype[0] in "fb" else "small")
                if op == "reduce_prod":
                    x.fill = "one"
                size = math.prod(shape) // shape[axis] * BYTES[dtype]
                yield Case(
                    op,
                    f"{_label(shape, dtype)} axis {axis}",
                    [x],
                    expr.format(axis),
                    torch.format(axis),
                    size,
                    flops=math.prod(shape),
                    goal=1.0 if op == "reduce_sum" and dtype == "f4" else GOAL,
                    tolerance=max(_loose(dtype), 1e-2),
                )
    yield Case(
        "reduce_sum",
        "1048576 f4 all",
        [Arg((1 << 20,))],
        "np.sum(a)",
        "torch.sum(a)",
        0,
        flops=1 << 20,
        goal=1.0,
        tolerance=None,
    )
    for dtype in ("f4", "f8", "bf16", "i4"):
        for axis in (1, 0):
            x = Arg((1024, 1024), dtype, "normal" if dtype[0] in "fb" else "wide")
            yield Case(
                "arg_reduce",
                f"argmax 1024x1024 {dtype} axis {axis}",
                [x],
                f"np.argmax(a, axis={axis})",
                f"torch.argmax(a, {axis})",
                4096,
                tolerance=0 if dtype != "bf16" else None,
            )
            x = Arg((1024, 1024), dtype, "normal" if dtype[0] in "fb" else "small")
            yield Case(
                "cumulative_sum",
                f"1024x1024 {dtype} axis {axis}",
                [x],
                f"np.cumsum(a, axis={axis})",
                f"torch.cumsum(a, {axis})",
                x.bytes(),
                tolerance=None if dtype == "bf16" else 1e-2,
            )
    yield Case(
        "cumulative_max",
        "1024x1024 f4 axis 1",
        [Arg((1024, 1024))],
        "lax.cummax(a, axis=1)",
        "torch.cummax(a, 1)[0]",
        4 << 20,
    )
    for dtype in ("f4", "bf16", "f8"):
        for shape in ((1024, 1024), (32, 32), (16, 32000)):
            x = Arg(shape, dtype)
            yield Case(
                "softmax",
                _label(shape, dtype),
                [x],
                "nn.softmax(a, axis=-1)",
                "torch.softmax(a, -1)",
                x.bytes(),
                goal=1.0,
                tolerance=_loose(dtype),
            )
    x = Arg((1024, 1024))
    yield Case(
        "softmax", "1024x1024 f4 axis 0", [x], "nn.softmax(a, axis=0)", "torch.softmax(a, 0)", x.bytes(), goal=1.0
    )
    for op, expr, torch in (
        ("var", "np.var(a, axis={0})", "torch.var(a, {0}, correction=0)"),
        ("std", "np.std(a, axis={0})", "torch.std(a, {0}, correction=0)"),
        ("logsumexp", "nn.logsumexp(a, axis={0})", "torch.logsumexp(a, {0})"),
    ):
        for dtype in ("f4", "f8"):
            for axis in (1, 0):
                yield Case(
                    op,
                    f"1024x1024 {dtype} axis {axis}",
                    [Arg((1024, 1024), dtype)],
                    expr.format(axis),
                    torch.format(axis),
                    1024 * BYTES[dtype],
                )
    yield Case("log_softmax", "1024x1024 f4", [x], "nn.log_softmax(a, axis=-1)", "torch.log_softmax(a, -1)", x.bytes())
    spelled = "(a - np.mean(a, -1, keepdims=True)) * lax.rsqrt(np.var(a, -1, keepdims=True) + 1e-5) * b + c"
    for dtype, expr in (("f4", spelled), *((t, "nn.layer_norm(a, b, c)") for t in ("f4", "bf16", "f8"))):
        x, g = Arg((1024, 768), dtype), Arg((768,), dtype)
        yield Case(
            "layer_norm",
            _label(x.shape, dtype) + (" spelled out" if expr is spelled else ""),
            [x, g, g],
            expr,
            "F.layer_norm(a, (768,), b, c, 1e-5)",
            x.bytes(),
            goal=1.0,
            tolerance=_loose(dtype),
            jax=spelled,
        )
    for dtype in ("f4", "bf16", "f8"):
        x, g = Arg((1024, 768), dtype), Arg((768,), dtype)
        yield Case(
            "rms_norm",
            _label(x.shape, dtype),
            [x, g],
            "a * lax.rsqrt(np.mean(a * a, -1, keepdims=True) + 1e-6) * b",
            "F.rms_norm(a, (768,), b, 1e-6)",
            x.bytes(),
            goal=1.0,
            tolerance=_loose(dtype),
        )


def contractions():
    layouts = {"nn": ("a @ b", 0, 0), "nt": ("a @ b.T", 0, 1), "tn": ("a.T @ b", 1, 0), "tt": ("a.T @ b.T", 1, 1)}
    for dtype in ("f4", "f8", "f2", "bf16"):
        for m, n, k in ((1024, 1024, 1024), (128, 384, 384), (1, 1024, 1024), (7, 33, 65)):
            for layout, (expr, ta, tb) in layouts.items():
                if layout == "tt" and m == 1 or (layout in ("tn", "tt") and m not in (1024, 128)):
                    continue
                a = Arg((k, m) if ta else (m, k), dtype)
                b = Arg((n, k) if tb else (k, n), dtype)
                yield Case(
                    "dot_general",
                    f"{m}x{n}x{k} {dtype} {layout}",
                    [a, b],
                    expr,
                    expr,
                    m * n * BYTES[dtype],
                    flops=2 * m * n * k,
                    peak="f8" if dtype == "f8" else "f4",
                    tolerance=max(_loose(dtype), 1e-2),
                )
    for m, n, k in ((1024, 1024, 1024), (128, 384, 384)):
        for layout, rhs, dims in (("nn", (k, n), "((1,), (0,))"), ("nt", (n, k), "((1,), (1,))")):
            args = [Arg((m, k), "i1", "small"), Arg(rhs, "i1", "small")]
            torch = "torch._int_mm(a, b)" if layout == "nn" else "torch._int_mm(a, b.t())"
            yield Case(
                "dot_general",
                f"{m}x{n}x{k} i1 to i4 {layout}",
                args,
                f"lax.dot_general(a, b, ({dims}, ((), ())), preferred_element_type='int32')",
                torch,
                m * n * 4,
                flops=2 * m * n * k,
                peak="f4",
                tolerance=0,
            )
    x = Arg((512, 512), "i4", "small")
    yield Case("dot_general", "512x512x512 i4 nn", [x, x], "a @ b", "a @ b", 1 << 20, tolerance=0)
    x = Arg((512, 512), "c8")
    yield Case("dot_general", "512x512x512 c8 nn", [x, x], "a @ b", "a @ b", 2 << 20, flops=8 * 512**3, peak="f4")
    x = Arg((96, 128, 64))
    yield Case(
        "matmul",
        "96 of 128x128x64 f4",
        [x, Arg((96, 64, 128))],
        "a @ b",
        "a @ b",
        96 * 128 * 128 * 4,
        flops=96 * 2 * 128 * 128 * 64,
        peak="f4",
    )
    yield Case(
        "dot_general",
        "einsum bhqd,bhkd 8x12x128x64",
        [Arg((8, 12, 128, 64)), Arg((8, 12, 128, 64))],
        "np.einsum('bhqd,bhkd->bhqk', a, b)",
        "torch.einsum('bhqd,bhkd->bhqk', a, b)",
        96 * 128 * 128 * 4,
        flops=96 * 2 * 128 * 128 * 64,
        peak="f4",
    )


def windows():
    for name, x, w, stride, pad, groups in (
        ("resnet 7x7/2", (1, 224, 224, 3), (7, 7, 3, 64), 2, 3, 1),
        ("resnet 1x1 64-256 of 56", (1, 56, 56, 64), (1, 1, 64, 256), 1, 0, 1),
        ("resnet 3x3 64 of 56", (1, 56, 56, 64), (3, 3, 64, 64), 1, 1, 1),
        ("resnet 3x3 128/2 of 56", (1, 56, 56, 128), (3, 3, 128, 128), 2, 1, 1),
        ("resnet 3x3 256 of 14", (1, 14, 14, 256), (3, 3, 256, 256), 1, 1, 1),
        ("resnet 3x3 512 of 7", (1, 7, 7, 512), (3, 3, 512, 512), 1, 1, 1),
        ("mobilenet depthwise 3x3 96 of 56", (1, 56, 56, 96), (3, 3, 1, 96), 1, 1, 96),
        ("mobilenet depthwise 3x3/2 144 of 56", (1, 56, 56, 144), (3, 3, 1, 144), 2, 1, 144),
        ("mobilenet 1x1 24-144 of 56", (1, 56, 56, 24), (1, 1, 24, 144), 1, 0, 1),
        ("mobilenet depthwise 5x5 240 of 14", (1, 14, 14, 240), (5, 5, 1, 240), 1, 2, 240),
        ("mobilenet depthwise 3x3 960 of 7", (1, 7, 7, 960), (3, 3, 1, 960), 1, 1, 960),
        ("resnext 3x3 128 in 32 groups of 56", (1, 56, 56, 128), (3, 3, 4, 128), 1, 1, 32),
    ):
        out = (x[1] + 2 * pad - w[0]) // stride + 1
        args = [Arg(x), Arg(w)]
        expr = (
            f"lax.conv_general_dilated(a, b, ({stride}, {stride}), (({pad}, {pad}), ({pad}, {pad})), "
            f"dimension_numbers=('NHWC', 'HWIO', 'NHWC'), feature_group_count={groups})"
        )
        options = f"stride={stride}, padding={pad}, groups={groups}"
        torch = f"F.conv2d(a.permute(0, 3, 1, 2), w0(b), {options}).permute(0, 2, 3, 1)"
        yield Case(
            "conv",
            name,
            args,
            expr,
            torch,
            out * out * w[3] * 4,
            flops=2 * out * out * math.prod(w),
            peak="f4",
            goal=1.0,
            tolerance=1e-2,
        )
    for dtype in ("f8", "bf16", "f2"):
        args = [Arg((1, 28, 28, 128), dtype), Arg((3, 3, 128, 128), dtype)]
        yield Case(
            "conv",
            f"resnet 3x3 128 of 28 {dtype}",
            args,
            "lax.conv_general_dilated(a, b, (1, 1), ((1, 1), (1, 1)), dimension_numbers=('NHWC', 'HWIO', 'NHWC'))",
            "F.conv2d(a.permute(0, 3, 1, 2), w0(b), padding=1).permute(0, 2, 3, 1)",
            28 * 28 * 128 * BYTES[dtype],
            flops=2 * 28 * 28 * 9 * 128 * 128,
            peak="f8" if dtype == "f8" else "f4",
            tolerance=max(_loose(dtype), 1e-2),
        )
    yield Case(
        "conv",
        "of the operand, 3x3 128/2 of 56",
        [Arg((1, 28, 28, 128)), Arg((3, 3, 128, 128))],
        "lax.conv_general_dilated(a, b, (1, 1), ((1, 2), (1, 2)), lhs_dilation=(2, 2), "
        "dimension_numbers=('NHWC', 'HWIO', 'NHWC'))",
        "F.conv_transpose2d(a.permute(0, 3, 1, 2), w0(b, True), stride=2, padding=1, output_padding=1)"
        ".permute(0, 2, 3, 1)",
        56 * 56 * 128 * 4,
        flops=2 * 28 * 28 * 9 * 128 * 128,
        peak="f4",
        tolerance=1e-2,
    )
    for size, depth in ((56, 64), (14, 256)):
        yield Case(
            "conv",
            f"of the filters, 8 of 3x3 {depth} of {size}",
            [Arg((8, size, size, depth)), Arg((8, size, size, depth))],
            "lax.conv_general_dilated(a, b, (1, 1), ((1, 1), (1, 1)), dimension_numbers=('CHWN', 'IHWO', 'HWNC'))",
            f"torch.nn.grad.conv2d_weight(a.permute(0, 3, 1, 2), ({depth}, {depth}, 3, 3), b.permute(0, 3, 1, 2), "
            "padding=1).permute(2, 3, 1, 0)",
            9 * depth * depth * 4,
            flops=2 * 8 * size * size * 9 * depth * depth,
            peak="f4",
            tolerance=1e-2,
        )
    x = Arg((1, 112, 112, 64))
    yield Case(
        "reduce_window",
        "max 3x3/2 of 112x112x64",
        [x],
        "lax.reduce_window(a, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))",
        "F.max_pool2d(a.permute(0, 3, 1, 2), 3, 2, 1).permute(0, 2, 3, 1)",
        56 * 56 * 64 * 4,
    )
    yield Case(
        "reduce_window",
        "sum 2x2/2 of 112x112x64",
        [x],
        "lax.reduce_window(a, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID')",
        "F.avg_pool2d(a.permute(0, 3, 1, 2), 2, divisor_override=1).permute(0, 2, 3, 1)",
        56 * 56 * 64 * 4,
    )
    yield Case(
        "interpolate",
        "bilinear 2x of 1x64x56x56",
        [Arg((1, 64, 56, 56))],
        "image.resize(a, (1, 64, 112, 112), 'linear')",
        "F.interpolate(a, scale_factor=2, mode='bilinear')",
        64 * 112 * 112 * 4,
    )
    x = Arg((8, 128, 32, 32))
    yield Case(
        "batch_norm",
        "8x128x32x32",
        [x, Arg((128,)), Arg((128,))],
        "(a - np.mean(a, (0, 2, 3), keepdims=True)) * lax.rsqrt(np.var(a, (0, 2, 3), keepdims=True) + 1e-5)"
        " * b[:, None, None] + c[:, None, None]",
        "F.batch_norm(a, None, None, b, c, True)",
        x.bytes(),
        tolerance=1e-2,
    )
    yield Case(
        "group_norm",
        "8x128x32x32 in 32",
        [x],
        "nn.standardize(a.reshape(8, 32, -1)).reshape(a.shape)",
        "F.group_norm(a, 32)",
        x.bytes(),
        tolerance=1e-2,
    )


def transforms():
    shapes = ((1024, 1024), (64, 1000), (16, 4093), (1, 1 << 18), (4096, 16), (1, 256))
    lines = [(name, shape, wide) for name in ("rfft", "fft", "irfft") for wide in (False, True) for shape in shapes]
    planes = [(name, shape, False) for name in ("fft2", "rfft2") for shape in ((512, 512), (8, 60, 90))]
    for name, shape, wide in lines + planes:
        real, half = name.startswith("r"), name == "irfft"
        dtype = ("f8" if wide else "f4") if real else ("c16" if wide else "c8")
        x = Arg(shape[:-1] + (shape[-1] // 2 + 1,) if half else shape, dtype)
        points = math.prod(shape)
        of_all = math.log2(shape[-1] * (shape[-2] if name.endswith("2") else 1))
        length = f", n={shape[-1]}" if half else ""
        yield Case(
            "fft",
            f"{name} {_label(shape, 'f8' if wide else 'f4')}",
            [x],
            f"fft.{name}(a{length})",
            f"torch.fft.{name}(a{length})",
            points * (4 if real or half else 8) * (2 if wide else 1),
            flops=(2.5 if real or half else 5) * points * of_all,
            peak="f8" if wide else "f4",
            goal=1.0 if name == "rfft" and not wide else GOAL,
            tolerance=1e-1,
        )


# name, operands, expression, PyTorch's, multiply-adds over n^3, the largest n of the bench, whether results are unique
LINALG = (
    ("cholesky", "s", "linalg.cholesky(a)", "torch.linalg.cholesky(a)", 1 / 6, 1024, True),
    ("lu solve", "sb", "linalg.solve(a, b)", "torch.linalg.solve(a, b)", 1 / 3, 1024, True),
    ("lu inv", "s", "linalg.inv(a)", "torch.linalg.inv(a)", 1, 1024, True),
    ("lu det", "a", "linalg.slogdet(a)[1]", "torch.linalg.slogdet(a)[1]", 1 / 3, 1024, True),
    ("qr", "a", "linalg.qr(a)[1]", "torch.linalg.qr(a)[1]", 4 / 3, 1024, False),
    (
        "triangular_solve",
        "sb",
        "sp.linalg.solve_triangular(np.tril(a), b, lower=True)",
        "torch.linalg.solve_triangular(torch.tril(a), b, upper=False)",
        0,
        1024,
        True,
    ),
    ("eigh", "s", "linalg.eigh(a)[1]", "torch.linalg.eigh(a)[1]", 4.5, 512, False),
    ("eigh values", "s", "linalg.eigvalsh(a)", "torch.linalg.eigvalsh(a)", 2 / 3, 512, True),
    ("svd", "a", "linalg.svd(a)[0]", "torch.linalg.svd(a)[0]", 10, 512, False),
    ("svd values", "a", "linalg.svdvals(a)", "torch.linalg.svdvals(a)", 4 / 3, 512, True),
)


def linear_algebra():
    for name, operands, expr, torch, work, largest, unique in LINALG:
        op, *rest = name.split()
        for batch, n, dtype in (
            ((), 32, "f8"),
            ((), 256, "f8"),
            ((), 256, "f4"),
            ((), 512, "f8"),
            ((), 1024, "f8"),
            ((1000,), 8, "f4"),
            ((64,), 64, "f8"),
            ((), 128, "c16"),
        ):
            if n > largest or (dtype == "c16" and operands[0] == "s" and op != "lu"):
                continue
            args = [Arg(batch + (n, n), dtype, "spd" if operands[0] == "s" else "normal")]
            if operands[-1] == "b":
                args.append(Arg(batch + (n, 16), dtype))
            count = math.prod(batch)
            yield Case(
                op,
                " ".join(rest + [_label(batch + (n, n), dtype)]),
                args,
                expr,
                torch,
                args[-1].bytes(),
                flops=count * (2 * work * n**3 if work else 16 * n * n) * (4 if dtype == "c16" else 1),
                peak="f4" if dtype == "f4" else "f8",
                goal=GOAL if n <= 256 else 3.0,
                tolerance=1e-2 if unique else None,
            )


def others():
    for shape in ((1, 12, 128, 64), (1, 12, 1024, 64)):
        b, h, s, d = shape
        x = Arg((b, s, h, d))
        yield Case(
            "attention",
            f"{b}x{s}x{h}x{d} f4",
            [x, x, x],
            "nn.dot_product_attention(a, b, c)",
            "F.scaled_dot_product_attention(a.transpose(1, 2), b.transpose(1, 2), c.transpose(1, 2)).transpose(1, 2)",
            x.bytes(),
            flops=4 * b * h * s * s * d,
            peak="f4",
            tolerance=1e-2,
        )
    x = Arg((1 << 20,))
    yield Case(
        "bitcast",
        "1048576 f4 to i4",
        [x],
        "lax.bitcast_convert_type(a, 'int32')",
        "a.view(torch.int32).clone()",
        4 << 20,
    )
    yield Case("complex", "1048576 f4", [x, x], "lax.complex(a, b)", "torch.complex(a, b)", 8 << 20)
    yield Case("complex_part", "1048576 c8", [Arg((1 << 20,), "c8")], "np.imag(a)", "a.imag.clone()", 4 << 20)
    x, y = Arg((1024, 1024)), Arg((512, 512))
    yield Case(
        "dynamic_update_slice",
        "512x512 in 1024x1024",
        [x, y],
        "lax.dynamic_update_slice(a, b, (3, 5))",
        None,
        x.bytes(),
    )
    key = Arg((2,), "u4", "small")
    yield Case(
        "rng_bits",
        "1048576 u32",
        [key],
        "random.bits(random.wrap_key_data(a) if hasattr(random, 'wrap_key_data') else a, (1048576,))",
        None,
        4 << 20,
    )
    yield Case(
        "rng_uniform",
        "1048576 f4",
        [key],
        "random.uniform(random.wrap_key_data(a) if hasattr(random, 'wrap_key_data') else a, (1048576,))",
        "torch.rand(1048576)",
        4 << 20,
        tolerance=None,
    )
    yield Case(
        "rng_normal",
        "1048576 f4",
        [key],
        "random.normal(random.wrap_key_data(a) if hasattr(random, 'wrap_key_data') else a, (1048576,))",
        "torch.randn(1048576)",
        4 << 20,
        tolerance=None,
    )
    t, b, i, h = 64, 8, 128, 256
    yield Case(
        "lstm",
        f"{t}x{b}x{i} to {h}",
        [Arg((t, b, i)), Arg((4 * h, i)), Arg((4 * h, h)), Arg((4 * h,))],
        "nn.lstm(a, b, c, d)",
        "lstm(a, b, c, d)",
        t * b * h * 4,
        flops=2 * t * b * 4 * h * (i + h),
        peak="f4",
        tolerance=None,
        jax="lstm_by_scan(a, b, c, d)",
    )
    x, labels = Arg((512, 32000)), Arg((512,), "i4", 32000)
    yield Case(
        "softmax_cross_entropy",
        "512x32000",
        [x, labels],
        "-np.take_along_axis(nn.log_softmax(a, -1), b[:, None], 1).mean()",
        "F.cross_entropy(a, b.long())",
        0,
    )
    yield Case(
        "quantize",
        "1048576 f4 to i1",
        [Arg((1 << 20,))],
        "np.clip(np.round(a / 0.05), -128, 127).astype('int8')",
        "torch.clamp(torch.round(a / 0.05), -128, 127).to(torch.int8)",
        1 << 20,
        tolerance=0,
    )


FAMILIES = {
    "elementwise": elementwise,
    "moves": moves,
    "orders": orders,
    "reductions": reductions,
    "contractions": contractions,
    "windows": windows,
    "transforms": transforms,
    "linalg": linear_algebra,
    "others": others,
}


def cases(families=None):
    """All cases, or those of some families; two of one name are an error."""
    out = {}
    for name, make in FAMILIES.items():
        for case in make() if not families or name in families else ():
            if case.id in out:
                raise ValueError(f"two cases are called {case.id}")
            out[case.id] = case
    return out
