"""Derivatives and batching of a whole program, nested: each makes a function of arrays of one."""

from oracles import dtypes


def apply(lib, f, specs, transforms):
    """(function, its inputs): f with the transforms applied, the innermost first.

    specs: the inputs of f, dtype names and shapes. Each transform holds the further inputs that it takes.
    """
    for t in transforms:
        f, specs = _MAKE[t["kind"]](lib, f, specs, t)
    return f, specs


def _float_places(specs):
    return [i for i, (d, s) in enumerate(specs) if dtypes.is_inexact(d)]


def _closed(f, xs, places):
    """f of the inputs at `places`, the others fixed."""

    def g(*some):
        full = list(xs)
        for p, x in zip(places, some):
            full[p] = x
        return f(*full)

    return g


def _floats(outs):
    return tuple(o for o in outs if _inexact(o))


def _inexact(x):
    name = getattr(x.dtype, "name", str(x.dtype))
    return dtypes.is_inexact(name)


def _vjp(lib, f, specs, t):
    """inputs, cotangents of the floating results -> cotangents of the floating inputs."""
    n, places = len(specs), _float_places(specs)

    def g(*args):
        xs, cts = args[:n], args[n:]
        only = lambda *some: _floats(_closed(f, xs, places)(*some))  # noqa: E731
        return tuple(lib.root.vjp(only, *[xs[p] for p in places])[1](tuple(cts)))

    return g, specs + [(d, tuple(s)) for d, s in t["more"]]


def _jvp(lib, f, specs, t):
    """inputs, tangents of the floating inputs -> results and their tangents."""
    n, places = len(specs), _float_places(specs)

    def g(*args):
        xs, ts = args[:n], args[n:]
        only = lambda *some: _floats(_closed(f, xs, places)(*some))  # noqa: E731
        outs, moved = lib.root.jvp(only, tuple(xs[p] for p in places), tuple(ts))
        return (*outs, *moved)

    return g, specs + [(d, tuple(s)) for d, s in t["more"]]


def _grad(lib, f, specs, t):
    """inputs, weights of the floating results -> gradients of the weighted sum of their real parts' squares."""
    n, places = len(specs), _float_places(specs)

    def g(*args):
        xs, ws = args[:n], args[n:]

        def loss(*some):
            total = None
            for o, w in zip(_floats(_closed(f, xs, places)(*some)), ws):
                part = (o * w).sum()
                part = part.real if _complex(part) else part
                part = part.astype("float32")
                total = part if total is None else total + part
            return total

        return tuple(lib.root.grad(loss, tuple(range(len(places))))(*[xs[p] for p in places]))

    return g, specs + [(d, tuple(s)) for d, s in t["more"]]


def _complex(x):
    return getattr(x.dtype, "name", str(x.dtype)).startswith("complex")


def _vmap(lib, f, specs, t):
    """f over a batch; in_axes of each input, one axis for all results."""
    axes, batch = t["in_axes"], t["batch"]
    out = []
    for (d, s), a in zip(specs, axes):
        s = list(s)
        if a is not None:
            s.insert(a, batch)
        out.append((d, tuple(s)))
    return lib.root.vmap(f, tuple(axes), t.get("out_axes", 0)), out


_MAKE = {"vjp": _vjp, "jvp": _jvp, "grad": _grad, "vmap": _vmap}
