"""Cases of bench/ops: windows and convolutions, Fourier transforms, linear algebra, and other ops."""

import math

from op_case import BYTES, Arg, Case, label, loose

FOLLOWED = ("resnet 7x7/2", "resnet 3x3 64 of 56", "mobilenet depthwise 3x3 96 of 56", "resnet 3x3 512 of 7")


def pools():
    """Pools of networks with channels last and first: the image of a first layer, a later one, and planes of 8x8."""
    for fn, window, stride, pad, shape in (
        ("max", 3, 2, 1, (1, 112, 112, 64)),
        ("max", 2, 2, 0, (1, 112, 112, 64)),
        ("max", 3, 1, 1, (1, 112, 112, 64)),
        ("sum", 2, 2, 0, (1, 112, 112, 64)),
        ("sum", 3, 1, 1, (8, 28, 28, 128)),
        ("max", 2, 2, 0, (256, 8, 8, 16)),
        ("sum", 7, 7, 0, (8, 7, 7, 512)),
    ):
        n, h, w, c = shape
        out = (h + 2 * pad - window) // stride + 1
        start, op = ("-np.inf", "lax.max") if fn == "max" else ("0.0", "lax.add")
        torch = f"F.max_pool2d({{}}, {window}, {stride}, {pad})"
        if fn == "sum":
            torch = f"F.avg_pool2d({{}}, {window}, {stride}, {pad}, divisor_override=1)"
        for first in (False, True):

            def axes(outer, inner):
                return (outer, outer, inner, inner) if first else (outer, inner, inner, outer)

            name = f"{fn} {window}x{window}/{stride} of " + (f"{n}x" if n > 1 else "")
            yield Case(
                "reduce_window",
                name + (f"{c}x{h}x{w}" if first else f"{h}x{w}x{c}"),
                [Arg((n, c, h, w) if first else shape)],
                f"lax.reduce_window(a, {start}, {op}, {axes(1, window)}, {axes(1, stride)}, "
                f"{axes((0, 0), (pad, pad))})",
                torch.format("a") if first else torch.format("a.permute(0, 3, 1, 2)") + ".permute(0, 2, 3, 1)",
                n * out * out * c * 4,
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
            tolerance=1e-2,
        )
        if name in FOLLOWED:  # again with the bias and relu that follow it in networks
            yield Case(
                "fused_conv",
                f"{name}, bias, relu",
                [*args, Arg((w[3],))],
                f"np.maximum({expr} + c, 0)",
                f"F.relu(F.conv2d(a.permute(0, 3, 1, 2), w0(b), c, {options})).permute(0, 2, 3, 1)",
                out * out * w[3] * 4,
                flops=2 * out * out * math.prod(w),
                peak="f4",
                tolerance=1e-2,
            )
            yield Case(
                "fused_conv",
                f"{name}, batch norm of inference, relu",
                [*args, *(Arg((w[3],), fill=fill) for fill in ("normal", "positive", "normal", "normal"))],
                f"np.maximum(({expr} - c) * (lax.rsqrt(d + 1e-5) * e) + f, 0)",
                f"F.relu(F.batch_norm(F.conv2d(a.permute(0, 3, 1, 2), w0(b), {options}), "
                "c, d, e, f)).permute(0, 2, 3, 1)",
                out * out * w[3] * 4,
                flops=2 * out * out * math.prod(w),
                peak="f4",
                tolerance=1e-2,
                held="bcdef",
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
            tolerance=max(loose(dtype), 1e-2),
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
    yield from pools()
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
            f"{name} {label(shape, 'f8' if wide else 'f4')}",
            [x],
            f"fft.{name}(a{length})",
            f"torch.fft.{name}(a{length})",
            points * (4 if real or half else 8) * (2 if wide else 1),
            flops=(2.5 if real or half else 5) * points * of_all,
            peak="f8" if wide else "f4",
            tolerance=1e-1,
        )


# name, operands, expression, expression of PyTorch, multiply-adds / n^3, the largest n, whether results are unique
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
                " ".join(rest + [label(batch + (n, n), dtype)]),
                args,
                expr,
                torch,
                args[-1].bytes(),
                flops=count * (2 * work * n**3 if work else 16 * n * n) * (4 if dtype == "c16" else 1),
                peak="f4" if dtype == "f4" else "f8",
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
        "random.bits(random.wrap_key_data(a) if hasattr(random, 'wrap_key_data') else a, (1048576,), 'uint32')",
        None,
        4 << 20,
        distribution="bits",
    )
    yield Case(
        "rng_uniform",
        "1048576 f4",
        [key],
        "random.uniform(random.wrap_key_data(a) if hasattr(random, 'wrap_key_data') else a, (1048576,), 'float32')",
        "torch.rand(1048576)",
        4 << 20,
        distribution="uniform",
    )
    yield Case(
        "rng_normal",
        "1048576 f4",
        [key],
        "random.normal(random.wrap_key_data(a) if hasattr(random, 'wrap_key_data') else a, (1048576,), 'float32')",
        "torch.randn(1048576)",
        4 << 20,
        distribution="normal",
    )
    t, b, i, h = 64, 8, 128, 256
    yield Case(
        "lstm",
        f"{t}x{b}x{i} to {h}",
        [Arg((t, b, i)), Arg((4 * h, i)), Arg((4 * h, h)), Arg((4 * h,))],
        "nn.lstm(a, (b, c, d, d))[0]",
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
