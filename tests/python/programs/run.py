"""Programs on rlx, in every way of compiling, beside the oracle."""

import numpy as np

from oracles import dtypes

from . import libs, oracle, transforms

# Ways of compiling: everything on; no fusion; common parts instead of kernels; nothing folded and nothing fused.
WAYS = {
    "default": {},
    "unfused": {"fuse": False},
    "common": {"kernels": False},
    "plain": {"fuse": False, "constant_folding": False, "kernels": False},
}


class Mismatch(Exception):
    """rlx gives something else than the oracle; `way` says how it was compiled."""

    def __init__(self, way, text):
        super().__init__(f"{way}: {text}")
        self.way = way


class Refused(Exception):
    """rlx refuses the program."""


def arguments(program):
    """The values of the program's inputs and of those that its transforms add or batch."""
    args = [i.value for i in program.inputs]
    for t in program.transforms:
        if t["kind"] == "vmap":
            fixed = [i.fill == "given" for i in program.inputs] + [False] * len(args)
            args = [_batched(a, axis, t, f) for a, axis, f in zip(args, t["in_axes"], fixed)]
        else:
            args = args + [_further(d, tuple(s), t["salt"] + k) for k, (d, s) in enumerate(t["more"])]
    return args


def _further(dtype, shape, salt):
    """Cotangents, tangents, weights: between -1 and 1, multiples of 1/8, different in every place."""
    n = int(np.prod(shape, dtype=int))
    flat = ((np.arange(n) * 7 + salt * 5) % 17 - 8) / 8.0
    if dtypes.kind(dtype) == "c":
        flat = flat + 1j * np.roll(flat, 1)
    return flat.reshape(shape).astype(dtypes.of(dtype))


def _batched(x, axis, t, fixed):
    """x and variations of it along a new axis; the same again where other numbers would mean nothing."""
    if axis is None:
        return x
    rows = []
    kind = dtypes.kind(x.dtype.name)
    for k in range(t["batch"]):
        if k == 0 or fixed:
            rows.append(x)
        elif kind in "fc":
            w = np.complex128 if kind == "c" else np.float64
            rows.append((x.astype(w) * (1 + k / 32)).astype(x.dtype))
        else:
            rows.append(np.roll(x.reshape(-1), k).reshape(x.shape))
    return np.stack(rows, axis) if rows else np.zeros(x.shape[:axis] + (0,) + x.shape[axis:], x.dtype)


def rlx_function(program, lib=None):
    lib = lib or libs.RlxLib()
    specs = [(i.dtype, i.value.shape) for i in program.inputs]
    return transforms.apply(lib, libs.function_of(lib, program), specs, program.transforms)[0]


def results(program, args, device, options):
    """What rlx gives, as NumPy arrays."""
    import rlx

    compiled = rlx.jit(rlx_function(program), device=device, **options)
    return [np.asarray(o) for o in compiled(*args)]


def check(program, devices=("cpu",), ways=None, tamper=None, closer=48):
    """Runs it every way on every device. Mismatch where one is off; returns counts of elements and loose ones.

    tamper(results): changes what rlx gave, to see that a wrong result is seen. closer: so many runs with errors decide
    where the first ones call a result wrong.
    """
    args = arguments(program)
    want = oracle.expected(program, args)
    derived = bool(program.transforms) or program_derives(program.steps)
    elements = loose = 0
    for device in devices:
        for way, options in (ways or WAYS).items():
            try:
                got = results(program, args, device, options)
            except Exception as e:
                raise Mismatch(f"{device}/{way}", f"{type(e).__name__}: {e}") from e
            if tamper:
                got = tamper(got)
            if len(got) != len(want.values):
                raise Mismatch(f"{device}/{way}", f"{len(got)} results, wanted {len(want.values)}")
            for k, g in enumerate(got):
                text, some = want.check(k, g, derived)
                for runs in (6, closer):
                    if text and want.runs < runs:
                        want.refine(runs)
                        text, some = want.check(k, g, derived)
                if text:
                    raise Mismatch(f"{device}/{way}", text)
                elements += g.size
                loose += some
    return elements, loose


def program_derives(steps):
    return any(
        s.op
        in (
            "control.grad",
            "control.jvp",
            "control.custom_vjp",
            "layer_norm_backward",
            "rms_norm_backward",
            "attention_backward",
        )
        or any(program_derives(b.steps) for b in s.bodies.values())
        for s in steps
    )
