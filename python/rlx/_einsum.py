"""Einstein sums as dot_general, the cheapest pair of operands first."""

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
        right = "".join(letters) + "".join(
            sorted(c for c in set(everything) if everything.count(c) == 1 and c not in letters)
        )
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
    out = _rlx.add_node(
        "dot_general",
        (x, y),
        {
            "lhs_contract": [a.index(c) for c in contract],
            "rhs_contract": [b.index(c) for c in contract],
            "lhs_batch": [a.index(c) for c in batch],
            "rhs_batch": [b.index(c) for c in batch],
        },
    )
    used = set(batch) | set(contract)
    return out, "".join(batch) + "".join(c for c in a if c not in used) + "".join(c for c in b if c not in used)


def _cost(terms, extents, keep_of):
    """(multiplications, size of the result, first, second) of the best pair to multiply next."""
    best = None
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            both = set(terms[i]) | set(terms[j])
            keep = keep_of(i, j)
            work = size = 1
            for c in both:
                work *= extents[c]
                size *= extents[c] if c in keep else 1
            if best is None or (work, size) < best[:2]:
                best = (work, size, i, j)
    return best


def _keep(terms, right, i, j):
    return set(right) | set("".join(t for k, t in enumerate(terms) if k not in (i, j)))


def _extents(shapes, terms):
    """The extent of each axis; unknown ones of symbolic shapes count as large."""
    out = {}
    for shape, term in zip(shapes, terms):
        for c, d in zip(term, shape):
            d = d if isinstance(d, int) else 1 << 20
            if d != 1 and out.get(c, 1) not in (1, d):
                raise ValueError(f"einsum: axis {c!r} has {out[c]} entries and {d}")
            out[c] = max(out.get(c, 1), d)
    return out


def path(subscripts, shapes):
    """The pairs in the order of multiplication; a result goes to the end of the operands."""
    terms, right = _parse(subscripts, [len(s) for s in shapes])
    extents = _extents(shapes, terms)
    out = []
    if len(terms) == 1:
        return [(0,)]
    while len(terms) > 1:
        _, _, i, j = _cost(terms, extents, lambda i, j: _keep(terms, right, i, j))
        keep = _keep(terms, right, i, j)
        joined = "".join(c for c in dict.fromkeys(terms[i] + terms[j]) if c in keep)
        out.append((i, j))
        terms = [t for k, t in enumerate(terms) if k not in (i, j)] + [joined]
    return out


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
    dtype, _ = _rlx.result_type(*operands)
    inner = "int32" if dtype.kind == "b" else dtype
    values = []
    for o in operands:
        v = _rlx.value(o)
        values.append(v if v.dtype == inner else _rlx.add_node("cast", (v,), {"to": inner}))
    terms, right = _parse(subscripts, [v.ndim for v in values])
    extents = _extents([v.shape for v in values], terms)
    pairs = [_diagonals(v, t) for v, t in zip(values, terms)]
    while len(pairs) > 1:
        names = [t for _, t in pairs]
        i, j = (
            _cost(names, extents, lambda i, j: _keep(names, right, i, j))[2:] if optimize and len(pairs) > 2 else (0, 1)
        )
        product = _product(*pairs[i], *pairs[j], _keep(names, right, i, j))
        rest = [p for k, p in enumerate(pairs) if k not in (i, j)]
        pairs = [*rest, product] if optimize else [product, *rest]
    x, a = _sum_out(*pairs[0], set(right))
    perm = [a.index(c) for c in right]
    x = x if perm == list(range(len(perm))) else _rlx.add_node("transpose", (x,), {"perm": perm})
    if dtype.kind == "b":
        x = _rlx.add_node("ne", (x, 0), {})
    return x
