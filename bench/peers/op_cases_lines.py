"""Cases of bench/ops: reductions, norms, matmuls."""

import math

from op_case import BYTES, Arg, Case, label, loose


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
                    f"{label(shape, dtype)} axis {axis}",
                    [x],
                    expr.format(axis),
                    torch.format(axis),
                    size,
                    flops=math.prod(shape),
                    tolerance=max(loose(dtype), 1e-2),
                )
    yield Case(
        "reduce_sum",
        "1048576 f4 all",
        [Arg((1 << 20,))],
        "np.sum(a)",
        "torch.sum(a)",
        0,
        flops=1 << 20,
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
                label(shape, dtype),
                [x],
                "nn.softmax(a, axis=-1)",
                "torch.softmax(a, -1)",
                x.bytes(),
                tolerance=loose(dtype),
            )
    x = Arg((1024, 1024))
    yield Case("softmax", "1024x1024 f4 axis 0", [x], "nn.softmax(a, axis=0)", "torch.softmax(a, 0)", x.bytes())
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
            label(x.shape, dtype) + (" spelled out" if expr is spelled else ""),
            [x, g, g],
            expr,
            "F.layer_norm(a, (768,), b, c, 1e-5)",
            x.bytes(),
            tolerance=loose(dtype),
            jax=spelled,
        )
    for dtype in ("f4", "bf16", "f8"):
        x, g = Arg((1024, 768), dtype), Arg((768,), dtype)
        yield Case(
            "rms_norm",
            label(x.shape, dtype),
            [x, g],
            "a * lax.rsqrt(np.mean(a * a, -1, keepdims=True) + 1e-6) * b",
            "F.rms_norm(a, (768,), b, 1e-6)",
            x.bytes(),
            tolerance=loose(dtype),
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
                    tolerance=max(loose(dtype), 1e-2),
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
