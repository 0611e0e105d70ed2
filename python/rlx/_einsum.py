"""Einstein sums as dot_general, from left to right."""
from . import _rlx


def _parse(subscripts, ranks):
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum: {subscripts!r} names {len(terms)} operands, got {len(ranks)}")
    dots = max((r - len(t.replace("...", "")) for t, r in zip(terms, ranks) if "..." in t), default=0)
    letters = [chr(0x3B1 + i) for i in range(dots)]  # names of the axes behind an ellipsis

    def spell(term, rank):
        if "..." in term:
            n = rank - len(term.replace("...", ""))
            if n < 0:
                raise ValueError(f"einsum: {term!r} for an operand with {rank} axes")
            term = term.replace("...", "".join(letters[dots - n :]))
        if len(term) != rank:
            raise ValueError(f"einsum: {term!r} for an operand with {rank} axes")
        if not all(c.isalpha() for c in term):
            raise ValueError(f"einsum: {subscripts!r} holds a character that names no axis")
        return term

    terms = [spell(t, r) for t, r in zip(terms, ranks)]
    if arrow:
        right = right.replace("...", "".join(letters))
        for c in right:
            if right.count(c) > 1 or not any(c in t for t in terms):
                raise ValueError(f"einsum: axis {c!r} of the result of {subscripts!r}")
    else:
        everything = "".join(terms)
        right = "".join(letters) + "".join(sorted(c for c in set(everything) if everything.count(c) == 1 and c not in letters))
    return terms, right


def _diagonals(x, term):
    """Axes that are named twice become one."""
    for c in dict.fromkeys(term):
        while term.count(c) > 1:
            from . import numpy as rnp

            a = term.index(c)
            b = term.index(c, a + 1)
            x = rnp.diagonal(x, 0, a, b)
            term = "".join(ch for k, ch in enumerate(term) if k not in (a, b)) + c
    return x, term


def _sum_out(x, term, keep):
    axes = [k for k, c in enumerate(term) if c not in keep]
    if axes:
        x = _rlx.add_node("reduce_sum", (x,), {"axes": axes, "keep_dims": False})
    return x, "".join(c for c in term if c in keep)


def _product(x, a, y, b, keep):
    """x with axes a times y with axes b, over those that nobody needs any more."""
    for c in set(a) & set(b):  # a stretched axis takes the other's extent
        da, db = x.shape[a.index(c)], y.shape[b.index(c)]
        if da != db and da == 1:
            x, a = _rlx.reshape([x], tuple(d for k, d in enumerate(x.shape) if a[k] != c)), a.replace(c, "")
        elif da != db and db == 1:
            y, b = _rlx.reshape([y], tuple(d for k, d in enumerate(y.shape) if b[k] != c)), b.replace(c, "")
    x, a = _sum_out(x, a, set(b) | keep)
    y, b = _sum_out(y, b, set(a) | keep)
    batch = [c for c in a if c in b and c in keep]
    contract = [c for c in a if c in b and c not in keep]
    out = _rlx.add_node("dot_general", (x, y), {
        "lhs_contract": [a.index(c) for c in contract], "rhs_contract": [b.index(c) for c in contract],
        "lhs_batch": [a.index(c) for c in batch], "rhs_batch": [b.index(c) for c in batch]})
    used = set(batch) | set(contract)
    return out, "".join(batch) + "".join(c for c in a if c not in used) + "".join(c for c in b if c not in used)


def einsum(subscripts, operands):
    if not operands:
        raise ValueError("einsum: no operands")
    dtype, _ = _rlx.result_type(*operands)
    values = []
    for o in operands:
        v = _rlx.value(o)
        values.append(v if v.dtype == dtype else _rlx.add_node("cast", (v,), {"to": dtype}))
    terms, right = _parse(subscripts, [v.ndim for v in values])
    pairs = [_diagonals(v, t) for v, t in zip(values, terms)]
    x, a = pairs[0]
    for k, (y, b) in enumerate(pairs[1:], 1):
        keep = set(right) | set("".join(t for _, t in pairs[k + 1 :]))
        x, a = _product(x, a, y, b, keep)
    x, a = _sum_out(x, a, set(right))
    perm = [a.index(c) for c in right]
    return x if perm == list(range(len(perm))) else _rlx.add_node("transpose", (x,), {"perm": perm})
