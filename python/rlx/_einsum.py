"""Einstein sums: the order and the products are those of rlx/functions/einsum.h."""

from . import _rlx


def path(subscripts, shapes):
    """The pairs in the order of multiplication; a result goes to the end of the operands."""
    return [(0,)] if len(shapes) == 1 else _rlx.einsum_path(subscripts, list(shapes))


def from_lists(arguments):
    """(subscripts, operands) of operands that are each followed by their axes' numbers (or ...)."""
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


def einsum(subscripts, operands, optimize=True):
    if not operands:
        raise ValueError("einsum: no operands")
    dtype, weak = _rlx.result_type(*operands)
    values = [_rlx.value(o) for o in operands]
    values = [v if v.dtype == dtype else _rlx.add_node("cast", (v,), {"to": dtype}) for v in values]
    return _rlx.einsum(subscripts, values, bool(optimize))
