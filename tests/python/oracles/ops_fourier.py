"""Complex numbers, their parts, and Fourier transforms."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from . import dtypes
from .catalogue import add

REALS = ("float32", "float64")


def _make_complex(b):
    x = b.pick(REALS, 0, 3)
    return [x, b.partner(x)], {}, {}


add("complex", "complex", _make_complex, lambda a, n, t: lax.complex(*jnp.broadcast_arrays(*a)), places=0)
add(
    "complex_part",
    "complex_part",
    lambda b: ([b.pick(dtypes.COMPLEX, 0, 3)], {}, {"imag": b.dice.chance(50)}),
    lambda a, n, t: jnp.imag(a[0]) if t["imag"] else jnp.real(a[0]),
    places=0,
)

NORMS = ("backward", "ortho", "forward", "none")


def _make_fft(b):
    d = b.dice
    kind = d.pick(("c2c", "r2c", "c2r"))
    x = b.pick(REALS if kind == "r2c" else dtypes.COMPLEX, 1, 3, least=1)
    axes = d.shuffled(list(range(b.rank(x))))[: d.between(1, b.rank(x))]
    inverse = kind == "c2r" or kind == "c2c" and d.chance(50)
    attrs = {"kind": kind, "axes": axes, "norm": d.pick(NORMS), "inverse": inverse}
    if kind == "c2r":
        half = b.shape(x)[axes[-1]]
        attrs["length"] = [max(1, 2 * half - 2 + d.below(2))]
    return [x], {}, attrs


def _fft(a, n, t):
    x, axes, inverse = a[0], tuple(t["axes"]), t["inverse"]
    norm = t["norm"] if t["norm"] != "none" else "forward" if inverse else "backward"
    if t["kind"] == "r2c":
        return jnp.fft.rfftn(x, axes=axes, norm=norm)
    if t["kind"] == "c2c":
        return (jnp.fft.ifftn if inverse else jnp.fft.fftn)(x, axes=axes, norm=norm)
    lengths = [x.shape[k] for k in axes[:-1]] + [int(np.ravel(t["length"])[0])]
    return jnp.fft.irfftn(x, lengths, axes, norm)


add("fft", "fft", _make_fft, _fft, places=4)
