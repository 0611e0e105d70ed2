"""Which public functions are elementwise, found by calling them; and those of them that the table of edge_functions.py
leaves out, each with the reason.
"""

import inspect
import itertools
import re

import numpy as np
from edge_functions import TABLE

import rlx

MODULES = {"np": rlx.numpy, "lax": rlx.lax, "nn": rlx.nn, "sp": rlx.scipy.special, "st": rlx.scipy.stats}
_X = [
    np.array(v) for v in ([0.3, 0.9, 0.6, 0.45], [0.7, 0.2, 0.55, 0.81], [0.25, 0.65, 0.15, 0.5], [0.1, 0.3, 0.4, 0.6])
]
_KINDS = (lambda x: x, lambda x: (x * 10).astype(np.int32), lambda x: x > 0.5, lambda x: x + 1j * x)

# reason: the names. An entry that is not public or not elementwise any more is an error.
LEFT_OUT = {
    "conversions, copies and selections of elements: no arithmetic": """
        np.array np.asarray np.ascontiguousarray np.atleast_1d np.block np.broadcast_arrays
        np.broadcast_shapes np.compress np.copy np.empty_like np.extract np.flip np.flipud np.from_dlpack np.frombuffer
        np.full_like np.hstack np.isin np.ix_ np.meshgrid np.ones_like np.permute_dims np.place np.ravel np.stack
        np.take np.transpose np.trim_zeros np.where np.zeros_like
        lax.broadcast_like lax.broadcast_shapes lax.full_like lax.optimization_barrier lax.select lax.select_n
        lax.shape_as_value lax.stack lax.stop_gradient""",
    "complex numbers and their parts: test_complex_functions.py and test_integrals.py": """
        np.angle np.conj np.conjugate np.imag np.iscomplex np.isreal np.real lax.complex lax.conj lax.imag lax.real
        sp.sph_harm_y""",
    "whole numbers and bits, exact: test_elementwise.py and test_exact_numbers.py": """
        np.bitwise_and np.bitwise_count np.bitwise_invert np.bitwise_left_shift np.bitwise_not np.bitwise_or
        np.bitwise_right_shift np.bitwise_xor np.gcd np.invert np.lcm np.left_shift np.right_shift np.unravel_index
        lax.bitwise_and lax.bitwise_not lax.bitwise_or lax.bitwise_xor lax.clz lax.mulhi lax.population_count
        lax.shift_left lax.shift_right_arithmetic lax.shift_right_logical""",
    "truth values, without derivatives: test_elementwise.py": """
        np.equal np.greater np.greater_equal np.isclose np.isfinite np.isinf np.isnan np.isneginf np.isposinf np.less
        np.less_equal np.logical_and np.logical_not np.logical_or np.logical_xor np.not_equal np.signbit
        lax.eq lax.ge lax.gt lax.is_finite lax.le lax.lt lax.ne""",
    "they depend on the bits of a dtype: test_special_functions.py and test_lax_functions.py": """
        np.frexp np.nextafter np.spacing lax.nextafter lax.reduce_precision""",
    "products with a number, of the ops in the table": """
        np.dot np.inner np.kron np.polyadd np.polydiv np.polymul np.polysub nn.standardize""",
    "functions of whole arrays, which agree with elementwise ones on the points that are tried": """
        np.ediff1d np.nanpercentile np.nanquantile np.percentile np.quantile np.unwrap""",
    "distributions of vectors, with one element each: test_stats.py": """
        st.multinomial.logpmf st.multinomial.pmf st.multivariate_normal.logpdf st.multivariate_normal.pdf""",
    "the derivative of a draw by its parameter, the quotient of igamma_grad_a and the density": "lax.random_gamma_grad",
    "of vectors, whose squared norms it compares: test_cosines_of_vectors_of_any_size": "nn.cosine_embedding_loss",
}


def _leaves(y):
    return [leaf for v in y for leaf in _leaves(v)] if isinstance(y, (tuple, list)) else [np.asarray(y)]


def _same(a, b):
    if a.shape != b.shape or a.dtype.kind not in "?biufcV":
        return False
    return np.allclose(a.astype(complex), b.astype(complex), rtol=1e-6, atol=1e-7, equal_nan=True)


def is_elementwise(f):
    """Whether there are operands (arrays, and Python numbers 2) for which element i of each result is the function of
    elements i of the arrays alone.
    """
    try:
        options = {"reduction": "none"} if "reduction" in inspect.signature(f).parameters else {}
    except (TypeError, ValueError):
        options = {}
    for kind in _KINDS:
        for n in (1, 2, 3, 4):
            for arrays in itertools.product((True, False), repeat=n):
                if not any(arrays) or n == 4 and not all(arrays):
                    continue

                def of(places):
                    given = (kind(x)[places] if a else 2 for x, a in zip(_X, arrays))
                    return _leaves(f(*given, **options))

                try:
                    whole = of([0, 1, 2, 3])
                    if not whole or any(y.shape != (4,) for y in whole):
                        continue
                    parts = [(p, of(p)) for p in ([2, 0, 3, 1], [1, 2], [3])]
                    if all(_same(y[p], z) for p, some in parts for y, z in zip(whole, some)):
                        return True
                except Exception:  # what it refuses decides nothing
                    continue
    return False


def functions():
    """{name: public function}, those of distributions as st.norm.cdf."""
    out = {}
    for short, module in MODULES.items():
        for name in dir(module):
            f = getattr(module, name)
            if name.startswith("_") or isinstance(f, (type, type(rlx.numpy.float32))):
                continue
            if not callable(f) and short != "st":
                continue
            if short == "st" and not callable(f):
                methods = {f"st.{name}.{m}": getattr(f, m) for m in dir(f) if not m.startswith("_")}
                out.update({n: m for n, m in methods.items() if callable(m)})
            else:
                out[f"{short}.{name}"] = f
    return out


def in_table():
    """The public functions that rows of the table are about: the beginnings of their names."""
    found = {m.group() for row in TABLE if (m := re.match(r"(np|lax|nn|sp|st)\.\w+(\.(?!real|imag)\w+)?", row.name))}
    return found
