"""Functions of rlx.numpy that are more than one op: promotion, indexing, einsum, updates."""

import jax
import jax.numpy as jnp
import numpy as np

from . import dtypes
from .catalogue import add

F = dtypes.FLOATS
_MIXED = ("bool", "int8", "int32", "int64", "uint8", "uint32", "bfloat16", "float16", "float32", "float64")


def _rnp():
    import rlx.numpy as rnp

    return rnp


def _both(name, path, make, more_rlx=None, places=4, weight=4, smooth=True):
    """The function `path` of both libraries on the same arguments."""

    def of(root):
        f = root
        for part in path.split("."):
            f = getattr(f, part)
        return f

    add(
        "numpy." + name,
        "",
        make,
        lambda a, n, t: of(jnp)(*a, **t),
        rlx=lambda a, n, t: of(_rnp())(*a, **t),
        places=places,
        weight=weight,
        smooth=smooth,
    )


def _make_mixed(b):
    x = b.pick(_MIXED, 0, 3)
    d = b.dice
    shape = b.shape(x) if d.chance(60) else b.shape(x)[1:]
    return [x, b.pick(_MIXED, 0, 9, shape=shape)], {}, {}


for _name in ("add", "multiply", "maximum"):
    _both(_name, _name, _make_mixed)


def _make_weak(b):
    """An array and a number of Python's."""
    x = b.pick(("bfloat16", "float16", "float32", "float64", "int32", "uint8", "int64"), 0, 3)
    return [x], {}, {"number": b.dice.pick((2, 3, 0.5, 1.25)), "left": b.dice.chance(40)}


def _weak(a, n, t):
    return t["number"] * a[0] if t["left"] else a[0] + t["number"]


def _weak_jax(a, n, t):
    """A float beside integers makes float32, as in JAX without 64 bits."""
    x = a[0]
    if x.dtype.kind in "iu" and isinstance(t["number"], float):
        x = x.astype(jnp.float32)
    return _weak([x], n, t)


add("numpy.weak", "", _make_weak, _weak_jax, rlx=_weak, weight=6)


def _make_einsum(b):
    d = b.dice
    x = b.pick(F, 1, 3)
    letters = "abcd"[: b.rank(x)]
    sizes = dict(zip(letters, b.shape(x)))
    sizes["e"] = b.extent()
    other = d.sample([*letters, "e"], d.between(1, min(3, len(letters) + 1)))
    y = b.like(x, "unit", [sizes[c] for c in other])
    every = [*letters, *(["e"] if "e" in other else [])]
    out = d.shuffled(d.sample(every, d.between(0, min(3, len(every)))))
    return [x, y], {}, {"text": f"{letters},{''.join(other)}->{''.join(out)}"}


add(
    "numpy.einsum",
    "",
    _make_einsum,
    lambda a, n, t: jnp.einsum(t["text"], *a),
    rlx=lambda a, n, t: _rnp().einsum(t["text"], *a),
    weight=8,
    places=8,
)


def _draw_index(b, x):
    """What stands in the brackets, as data: ints, ["slice", a, b, s], None, "..."."""
    d, out = b.dice, []
    for e in b.shape(x):
        what = d.below(5)
        if what == 0 and e:
            out.append(d.between(-e, e - 1))
        elif what == 1:
            out.append(["slice", d.between(-e - 1, e + 1), None, d.pick((1, 2, -1, -2))])
        elif what == 2:
            out.append(["slice", None, d.between(-e, e + 1), 1])
        else:
            out.append(["slice", None, None, d.pick((1, 1, -1))])
        if d.chance(12):
            out.append(None)
    if d.chance(30):
        del out[-1]
        out.append("...")
    return out


def index_of(data):
    return tuple(slice(*i[1:]) if isinstance(i, (list, tuple)) else (Ellipsis if i == "..." else i) for i in data)


def _make_getitem(b):
    x = b.pick(dtypes.ALL, 1, 3)
    return [x], {}, {"index": _draw_index(b, x)}


def _getitem(a, n, t):
    return a[0][index_of(t["index"])]


add("numpy.getitem", "", _make_getitem, _getitem, rlx=_getitem, weight=8, places=0)


def _make_fancy(b):
    x = b.pick(dtypes.NUMBERS, 1, 3, least=1)
    e = b.shape(x)[0]
    return [x, b.new(b.dice.pick(("int32", "int64")), b.shape_of(1, 2), "whole", -e, e - 1)], {}, {}


add("numpy.rows", "", _make_fancy, lambda a, n, t: a[0][a[1]], rlx=lambda a, n, t: a[0][a[1]], weight=5, places=0)


def _make_at(b):
    x = b.pick(dtypes.NUMBERS, 1, 3)
    t = {"index": _draw_index(b, x), "how": b.dice.pick(("set", "add", "multiply", "max"))}
    shape = np.zeros(b.shape(x))[index_of(t["index"])].shape
    y = b.like(x, "above_one", shape if b.dice.chance(60) else (), 1, 3)
    return [x, y], {}, t


def _at(a, n, t):
    return getattr(a[0].at[index_of(t["index"])], t["how"])(a[1])


def _at_jax(a, n, t):
    """JAX differentiates a product alone where it knows that no element is named twice."""
    return getattr(a[0].at[index_of(t["index"])], t["how"])(a[1], unique_indices=True)


add("numpy.at", "", _make_at, _at_jax, rlx=_at, weight=6, places=2)


def _make_at_rows(b):
    args, _, _ = _make_fancy(b)
    x, i = args
    y = b.like(x, "above_one", (*b.shape(i), *b.shape(x)[1:]), 1, 3)
    return [x, i, y], {}, {}


add(
    "numpy.add_rows",
    "",
    _make_at_rows,
    lambda a, n, t: a[0].at[a[1]].add(a[2]),
    rlx=lambda a, n, t: a[0].at[a[1]].add(a[2]),
    weight=4,
    places=8,
)


def _make_axis(types=F, least=0, **more):
    def make(b):
        x = b.pick(types, 1, 3, least=least)
        return [x], {}, dict(more, axis=b.axis(x) - (b.rank(x) if b.dice.chance(40) else 0))

    return make


_both("var", "var", _make_axis(least=1), places=16)
_both("std", "std", _make_axis(least=2), places=16, weight=2)
_both("flip", "flip", _make_axis(dtypes.ALL), places=0, weight=3)
_both("roll", "roll", _make_axis(dtypes.ALL, shift=2), places=0)
add(
    "numpy.argsort",
    "",
    _make_axis(dtypes.NUMBERS),
    lambda a, n, t: jnp.argsort(a[0], t["axis"]).astype(jnp.int32),
    rlx=lambda a, n, t: _rnp().argsort(a[0], t["axis"]),
    smooth=False,
    weight=3,
)
_both("expand_dims", "expand_dims", _make_axis(dtypes.ALL), places=0, weight=3)


def _make_pair(b):
    x = b.pick(F, 0, 3)
    return [x, b.partner(x, "positive")], {}, {}


for _name in ("logaddexp", "hypot", "floor_divide", "remainder"):
    _both(_name, _name, _make_pair, weight=2, places=16)


def _make_tril(b):
    return [b.pick(dtypes.NUMBERS, 2, 3)], {}, {"k": b.dice.between(-2, 2)}


_both("tril", "tril", _make_tril, places=0, weight=3)
_both("triu", "triu", _make_tril, places=0, weight=3)


def _make_tensordot(b):
    x = b.pick(F, 2, 3)
    y = b.like(x, "unit", (*b.shape(x)[-2:], b.extent()))
    return [x, y], {}, {}


_both("tensordot", "tensordot", _make_tensordot, weight=3, places=8)


def _make_along(b):
    x = b.pick(dtypes.NUMBERS, 1, 3, least=1)
    axis = b.axis(x)
    shape = [b.extent() if k == axis else e for k, e in enumerate(b.shape(x))]
    i = b.new("int32", shape, "whole", 0, b.shape(x)[axis] - 1)
    return [x, i], {}, {"axis": axis}


_both("take_along_axis", "take_along_axis", _make_along, places=0)


def _make_logsumexp(b):
    x = b.pick(F, 1, 3, least=1)
    return [x], {}, {"axis": b.axis(x)}


def _nn():
    import rlx.nn

    return rlx.nn


add(
    "nn.logsumexp",
    "",
    _make_logsumexp,
    lambda a, n, t: jax.nn.logsumexp(a[0], t["axis"]),
    rlx=lambda a, n, t: _nn().logsumexp(a[0], t["axis"]),
    places=8,
    weight=4,
)


def _make_one_hot(b):
    x = b.new("int32", b.shape_of(0, 2), "whole", 0, 3)
    return [x], {}, {}


add(
    "nn.one_hot",
    "",
    _make_one_hot,
    lambda a, n, t: jax.nn.one_hot(a[0], 4, dtype=jnp.float32),
    rlx=lambda a, n, t: _nn().one_hot(a[0], 4),
    places=0,
    weight=3,
    smooth=False,
)
