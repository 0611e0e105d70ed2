"""Cases of bench/ops: elementwise ops, data movement, sorts and indexing."""

from op_case import BYTES, Arg, Case, label, loose


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
                yield Case(op, label(a.shape, dtype), [a], expr, torch, a.bytes(), tolerance=loose(dtype))
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
                yield Case(op, label((n,), dtype), args, expr, torch, out, tolerance=loose(dtype))
    for dtype in ("bf16", "f2", "f4"):
        x = [Arg((1 << 20,), dtype) for _ in range(3)]
        for name, expr, torch in (
            ("a * b + c", "a * b + c", "a * b + c"),
            ("silu(a + b) * c", "nn.silu(a + b) * c", "F.silu(a + b) * c"),
            ("gelu(a * b + c) + a", "nn.gelu(a * b + c) + a", "F.gelu(a * b + c, approximate='tanh') + a"),
        ):
            yield Case(
                "chain", f"{name}, {label(x[0].shape, dtype)}", x, expr, torch, x[0].bytes(), tolerance=loose(dtype)
            )
    for dtype in ("f4", "f8"):
        x = [Arg((1 << 20,), dtype)] * 2
        yield Case(
            "nextafter",
            label(x[0].shape, dtype),
            x,
            "np.nextafter(a, b)",
            "torch.nextafter(a, b)",
            x[0].bytes(),
        )
        x = [Arg((1 << 16,), dtype, "positive") for _ in range(3)]
        yield Case("betainc", label(x[0].shape, dtype), x, "lax.betainc(a, b, c * 0.5)", None, x[0].bytes())
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
            tolerance=loose("bf16"),
        )
    x = Arg((1 << 20,), "c8")
    yield Case("mul", "1048576 c8", [x, x], "a * b", "a * b", x.bytes())
    yield Case("exp", "262144 c8", [Arg((1 << 18,), "c8")], "np.exp(a)", "torch.exp(a)", 8 << 18)


def moves():
    for dtype in ("f4", "bf16", "f8", "u1"):
        x = Arg((1024, 1024), dtype, "small" if dtype == "u1" else "normal")
        yield Case("transpose", label(x.shape, dtype), [x], "np.transpose(a)", "a.t().contiguous()", x.bytes())
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
                "sort", label((n,), dtype), [x], "np.sort(a)", "torch.sort(a)[0]", x.bytes(), tolerance=loose(dtype)
            )
            if n > 1000 or dtype in ("f4", "f8"):
                yield Case(
                    "sort",
                    f"argsort {label((n,), dtype)}",
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
                f"{k} of {label((n,), dtype)}",
                [x],
                f"lax.top_k(a, {k})[0]",
                f"torch.topk(a, {k})[0]",
                0,
                tolerance=loose(dtype),
            )
    yield Case("top_k", "40 of 32x32000 f4", [Arg((32, 32000))], "lax.top_k(a, 40)[0]", "torch.topk(a, 40)[0]", 0)
    yield Case(
        "searchsorted",
        "65536 in 65536",
        [Arg((1 << 16,), fill="ascending"), Arg((1 << 16,))],
        "np.searchsorted(a, b)",
        "torch.searchsorted(a, b)",
        4 << 16,
        tolerance=0,
    )
