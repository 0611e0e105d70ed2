"""Einstein sums. rlx/functions/einsum.h chooses the order of the products and builds them."""

from . import _rlx


def path(subscripts, shapes):
    """The pairs of operands in the order of multiplication. The result of each pair goes to the end of the operands."""
    return [(0,)] if len(shapes) == 1 else _rlx.einsum_path(subscripts, list(shapes))


def from_lists(arguments):
    """(subscripts, operands) of a list in which each operand is followed by the numbers of its axes (or ...)."""
    pairs, names = list(arguments), {}

    def spell(axes):
        out = ""
        for a in axes:
            if a is Ellipsis:
                out += "..."
                continue
            letter = names.setdefault(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[a.__index__()])
            out += letter
        return out

    operands = pairs[0 : len(pairs) - len(pairs) % 2 : 2]
    terms = ",".join(spell(axes) for axes in pairs[1::2])
    return terms + ("->" + spell(pairs[-1]) if len(pairs) % 2 else ""), tuple(operands)


def sums(subscripts, operands, optimize=True):
    if not operands:
        raise ValueError("einsum: no operands")
    dtype, weak = _rlx.result_type(*operands)
    values = [_rlx.value(o) for o in operands]
    if dtype.kind == "b":  # True where a product of elements is
        counts = sums(subscripts, [_rlx.add_node("cast", (v,), {"to": _rlx.dtype("int32")}) for v in values], optimize)
        return _rlx.add_node("ne", (counts, 0), {})
    values = [v if v.dtype == dtype else _rlx.add_node("cast", (v,), {"to": dtype}) for v in values]
    return _rlx.einsum(subscripts, values, bool(optimize))
