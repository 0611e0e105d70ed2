"""x[index] and x.at[index]: NumPy's indexing as slices, gathers and scatters."""

from . import _rlx
from ._jit import cached_jit
from ._nodes import as_index, index_round, node
from ._op import _as_array, _check_numbers, refuse_traced


def _is_array(i):
    return isinstance(i, (_rlx.Value, _rlx.Array)) or (hasattr(i, "dtype") and hasattr(i, "shape"))


def _is_mask(i):
    if isinstance(i, bool):
        return True
    return _is_array(i) and _rlx.dtype(i.dtype).name == "bool"


def _normal(x, index):
    """The index as a tuple: one entry for each axis of x, and None for each new axis."""
    index = index if isinstance(index, tuple) else (index,)
    out = []
    for i in index:
        if isinstance(i, list):
            i = _rlx.array_from(i)
        if _is_mask(i):
            raise IndexError(
                "the shape of an array indexed by bools depends on their values, which a compiled function does not "
                "know: use rlx.numpy.where(mask, x, 0) or x.at[mask].set(number), which keep the shape"
            )
        if i is not None and i is not Ellipsis and not isinstance(i, slice) and not _is_array(i):
            if isinstance(i, _rlx.Dim):
                raise IndexError(f"the symbolic extent {i} cannot be an index: rlx.numpy.size_of(x, axis) is its value")
            try:
                i = i.__index__()
            except AttributeError:
                raise TypeError(
                    f"an index must be an integer, a slice, ..., None or integers, got {type(i).__name__} {i!r}"
                ) from None
        elif isinstance(i, slice):
            i = slice(_bound(i.start), _bound(i.stop), _bound(i.step))
        elif _is_array(i) and _rlx.dtype(i.dtype).kind not in "iu":
            raise TypeError(f"an index array has dtype {_rlx.dtype(i.dtype).name}; indices are integers: cast it")
        out.append(i)
    used = sum(1 for i in out if i is not None and i is not Ellipsis)
    if used > x.ndim:
        raise IndexError(f"{used} indices for an array with {x.ndim} axes")
    if sum(1 for i in out if i is Ellipsis) > 1:
        raise IndexError("an index may have only one ...")
    if Ellipsis not in [i for i in out if not _is_array(i)]:
        out.append(Ellipsis)
    at = next(k for k, i in enumerate(out) if i is Ellipsis)
    return out[:at] + [slice(None)] * (x.ndim - used) + out[at + 1 :]


def _apart(x, index):
    """(index, first, rank, axes of the result) for index arrays that only a ... without axes separates, else None:
    NumPy puts their axes first then, and the index without it leaves the `rank` axes at `first`.
    """
    if not isinstance(index, tuple) or not any(i is Ellipsis for i in index):
        return None
    at = next(k for k, i in enumerate(index) if i is Ellipsis)
    before, after = index[:at], index[at + 1 :]

    def indexed(i):
        return i is not None and i is not Ellipsis and not isinstance(i, slice)

    if not before or not after or not indexed(before[-1]) or not indexed(after[0]):
        return None
    arrays = [_rlx.array_from(i) if isinstance(i, list) else i for i in index if isinstance(i, list) or _is_array(i)]
    if not arrays or sum(i is not None for i in before + after) != x.ndim:
        return None
    plain = before + after
    places = [k for k, i in enumerate(plain) if indexed(i)]
    first = sum(not indexed(i) for i in plain[: places[0]])
    if places != list(range(places[0], places[-1] + 1)) or first == 0:
        return None  # first anyway
    rank = max(len(a.shape) for a in arrays)
    return plain, first, rank, rank + sum(not indexed(i) for i in plain)


def _moved(x, source, target):
    """x with its axes `source` at `target`."""
    order = [a for a in range(len(x.shape)) if a not in source]
    for t, s in sorted(zip(target, source)):
        order.insert(t, s)
    return x.transpose(order)


def _bound(b):
    """The bound of a slice as None, a Python integer or an extent."""
    if b is None or type(b) is int or isinstance(b, _rlx.Dim):
        return b
    if isinstance(b, _rlx.Value):
        refuse_traced(
            b, "the bound of a slice", "; of a slice whose length is known, rlx.lax.dynamic_slice takes a traced start"
        )
    try:
        return b.__index__()
    except (AttributeError, TypeError, ValueError):
        raise TypeError(f"the bound of a slice must be an integer or None, got {type(b).__name__} {b!r}") from None


def _key(i):
    """A hashable key of one entry, without the elements of arrays."""
    if isinstance(i, slice):
        return ("slice", i.start, i.stop, i.step)
    return ("array",) if _is_array(i) else ("other", i)


def _entry(key, arrays):
    if key[0] == "slice":
        return slice(*key[1:])
    return next(arrays) if key[0] == "array" else key[1]


def _eager(function, x, entries, extra=(), static=()):
    """Runs the function compiled. Integers and the starts of slices of step 1 are an input of the compiled function, so
    that x[0], x[1], .. are one program. Other entries that are not arrays are static.
    """
    entries, starts = _without_positions(x, entries, function is _put)
    keys = tuple(_key(i) for i in entries)
    arrays = [i for i in entries if _is_array(i)]
    if starts is not None:
        extra = (starts, *extra)

    def make():
        def run(x, arrays, *extra):
            it = iter(arrays)
            entries = [_entry(k, it) for k in keys]
            if starts is None:
                return function(x, entries, *extra, *static)
            if function is _put:
                return _put(x, entries, *extra[1:], *static, starts=extra[0])
            return function(*_windowed(x, entries, extra[0]), *extra[1:], *static)

        run.__name__ = "index"
        return run

    return cached_jit((function, keys, static, starts is None), make)(x, arrays, *extra)


def _without_positions(x, entries, whole):
    """The entries with their positions taken out, and these positions: an array with one start for each axis, or None
    when there are none. An integer becomes 0 and a slice of step 1 begins at 0. Beside index arrays an integer becomes
    an array. With `whole`, entries stay as they are when one of them is a slice of another step.
    """
    if not all(isinstance(d, int) for d in x.shape):
        return entries, None
    beside = any(_is_array(i) for i in entries)
    out, starts, moves, axis = [], [], False, 0
    for i in entries:
        if i is None:
            out.append(i)
            continue
        extent, start = x.shape[axis], 0
        if isinstance(i, int):
            _in_range(i, extent, axis)
            start = i % extent
            i, moves = (_rlx.array_from(start, "int64"), moves) if beside else (0, True)
        elif isinstance(i, slice) and not beside:
            first, count, step = _range(i, extent)
            if step == 1 and count:
                start, i = first, slice(0, count, 1) if count != extent else slice(None)
                moves = moves or count != extent
            elif whole and step != 1:
                return entries, None
        out.append(i)
        starts.append(start)
        axis += 1
    return out, _rlx.array_from(starts, "int64") if moves else None


def _windowed(x, entries, starts):
    """The part of x that begins at `starts`, and the entries within it."""
    sizes, inside, axis = [], [], 0
    for i in entries:
        if i is None:
            inside.append(i)
            continue
        count, moving = x.shape[axis], False
        if isinstance(i, int):
            count = 1
        else:
            start, some, step = _range(i, count)
            moving = start == 0 and step == 1 and some > 0
            count = some if moving else count
        sizes.append(count)
        inside.append(slice(None) if moving else i)
        axis += 1
    return _rlx.add_node("dynamic_slice", (x, starts), {"sizes": sizes}), inside


def getitem(x, index):
    """x[index] for integers, slices, ..., None and arrays of integers. The result is a copy and never a view.

    Index arrays are clamped out of range, as in XLA. A Python integer out of range is an error.
    """
    return get(x, index)


# Modes of index arrays out of range, by their names in JAX.
_MODES = {None: "clamp", "clip": "clamp", "promise_in_bounds": "clamp", "wrap": "wrap", "fill": "fill", "drop": "fill"}


def _mode(mode):
    mode = getattr(mode, "name", mode)  # an enumerator of JAX
    try:
        return _MODES[mode.lower() if isinstance(mode, str) else mode]
    except (KeyError, TypeError):
        raise ValueError(
            f"mode {mode!r} of an index; the modes are clip, drop, fill, promise_in_bounds and wrap"
        ) from None


def filler(dtype):
    """The default fill value: NaN, the least signed integer, the largest unsigned integer, or True."""
    if dtype.kind in "fc":
        return float("nan")
    if dtype.kind == "b":
        return 1
    bits = 8 * dtype.itemsize
    return -(1 << (bits - 1)) if dtype.kind == "i" else (1 << bits) - 1


def get(x, index, mode=None, fill_value=None):
    """x[index], with index arrays out of range clamped, wrapped, or filled with fill_value."""
    if fill_value is not None and mode is None:
        mode = "fill"
    outside = not _rlx.tracing()
    if outside and isinstance(x, _rlx.Array) and not _has_values(index) and _masks(index):
        import numpy

        entries = index if isinstance(index, tuple) else (index,)
        picked = numpy.asarray(x)[tuple(numpy.asarray(i) if _is_array(i) else i for i in entries)]
        return _rlx.array_from(picked).to(x.device)
    index = _known_masks(index)
    apart = _apart(x, index)
    if apart is not None:
        plain, first, rank, _ = apart
        return _moved(get(x, plain, mode, fill_value), range(first, first + rank), range(rank))
    entries = _static(x, _normal(x, index), mode)
    mode = _mode(mode)
    fill = filler(x.dtype) if mode == "fill" and fill_value is None else fill_value
    if mode == "fill" and float(fill) != fill and fill == fill:
        raise ValueError(f"fill_value {fill} has more digits than a float64 holds: use rlx.numpy.take")
    fill = 0.0 if mode != "fill" else float(fill)
    if outside:
        return _eager(_get, x, entries, static=(mode, fill))
    return _get(_rlx.value(x), entries, mode, fill)


def _known_masks(index):
    """The index with bool arrays that are known replaced by the integers of their True elements."""
    if not _masks(index):
        return index
    import numpy

    out = []
    for i in index if isinstance(index, tuple) else (index,):
        if not isinstance(i, (_rlx.Value, bool)) and _masks(i):
            out.extend(numpy.nonzero(numpy.asarray(i)))
        else:
            out.append(i)
    return tuple(out)


def _masks(index):
    entries = index if isinstance(index, tuple) else (index,)
    return any(_is_mask(_rlx.array_from(i) if isinstance(i, list) else i) for i in entries)


def _static(x, entries, mode):
    """Handles Python integers out of range as the mode says. Without a mode they are an error later."""
    if mode is None:
        return entries
    out, axis = [], 0
    for i in entries:
        if isinstance(i, int) and isinstance(x.shape[axis], int) and not -x.shape[axis] <= i < x.shape[axis]:
            if _mode(mode) == "clamp":
                i = 0 if i < 0 else x.shape[axis] - 1
            elif _mode(mode) == "wrap":
                i = i % max(x.shape[axis], 1)
            else:
                i = _rlx.array_from(x.shape[axis], "int32")  # out of range
        axis += i is not None
        out.append(i)
    return out


def _has_values(index):
    entries = index if isinstance(index, tuple) else (index,)
    return any(isinstance(i, _rlx.Value) for i in entries)


def update(x, index, values, how, mode=None):
    """x.at[index].set(values) and the other updates. Index arrays out of range are dropped, clamped or wrapped, as the
    mode says.
    """
    outside = not _rlx.tracing()
    values = _as_array(values)
    if type(values) is int and not 0 <= values < 128:
        _check_numbers((values,), (x,))
    if getattr(values, "ndim", 0) or isinstance(index, tuple) and len(index) != 1:
        index = _known_masks(index)  # one number needs no positions
    if _masks(index):
        if isinstance(index, tuple) and len(index) != 1:
            raise IndexError(
                "x.at[..., mask, ...]: an array of truth values beside other indices must be known while the function "
                "is traced; x.at[mask] takes a traced one alone, of the shape of x or of its first axes"
            )
        mask = index[0] if isinstance(index, tuple) else index
        if outside:
            return cached_jit(("mask", how), lambda: lambda x, mask, values: _put_masked(x, mask, values, how))(
                x, mask if _is_array(mask) else _rlx.array_from(mask), values
            )
        return _put_masked(_rlx.value(x), _rlx.value(mask), values, how)
    apart = _apart(x, index)
    if apart is not None:
        plain, first, rank, axes = apart
        if getattr(values, "ndim", 0):
            values = values.reshape((1,) * (axes - values.ndim) + tuple(values.shape))
            values = _moved(values, range(rank), range(first, first + rank))
        return update(x, plain, values, how, mode)
    entries = _static(x, _normal(x, index), mode)
    mode = _mode(mode or "drop")
    if outside:
        return _eager(_put, x, entries, (values,), (how, mode))
    return _put(_rlx.value(x), entries, values, how, mode)


def _put_masked(x, mask, values, how):
    """Updates the elements where the mask is True with one number."""
    values = _of_dtype(x, _rlx.value(values))
    if values.ndim:
        raise IndexError(
            f"x.at[mask].{how}(values) with values of shape {values.shape}: the number of selected elements is not "
            "known, so only a single number is possible; rlx.numpy.where(mask, values, x) takes one for each element"
        )
    if mask.shape != x.shape[: mask.ndim]:
        raise IndexError(f"a mask of shape {mask.shape} does not match an array of shape {x.shape}")
    if mask.shape != x.shape:
        mask = _rlx.reshape([mask], tuple(mask.shape) + (1,) * (x.ndim - mask.ndim))
    new = values if how == "set" else _rlx.add_node(how, (x, values), {})
    return _rlx.add_node("where", (mask, new, x), {})


def _range(s, extent):
    """(start, count, step) of a slice over an axis."""
    if isinstance(extent, int) and not any(isinstance(b, _rlx.Dim) for b in (s.start, s.stop, s.step)):
        start, stop, step = s.indices(extent)
        count = max(0, -(-(stop - start) // step))
        return start, count, step
    if s.step not in (None, 1):
        if s.step == -1 and s.start is None and s.stop is None:
            return None, extent, -1
        raise IndexError(f"a slice with step {s.step} is not supported over the symbolic extent {extent}")

    def bound(b, default):
        if b is None:
            return default
        if isinstance(b, int) and b < 0:
            return extent + b
        return b

    start, stop = bound(s.start, 0), bound(s.stop, extent)
    return start, stop - start, 1


def _basic(x, entries):
    """Applies the slices and integers of an index; axes of index arrays stay whole. Returns (values, the remaining
    entries).
    """
    starts, limits, steps, flips, left = [], [], [], [], []
    axis = 0
    for i in entries:
        if i is None:
            left.append(None)
            continue
        extent = x.shape[axis]
        if isinstance(i, int):
            if isinstance(extent, int):
                if not -extent <= i < extent:
                    raise IndexError(f"index {i} is out of range for axis {axis} of extent {extent}")
                i = i % extent
            elif i < 0:
                i = extent + i
            starts.append(i)
            limits.append(i + 1)
            steps.append(1)
            left.append("drop")
        elif isinstance(i, slice):
            start, count, step = _range(i, extent)
            if step > 0:
                starts.append(start)
                limits.append(
                    start + count if step == 1 else min(start + (count - 1) * step + 1, extent) if count else start
                )
                steps.append(step)
            elif start is None:
                starts.append(0)
                limits.append(extent)
                steps.append(1)
                flips.append(axis)
            else:
                last = start + (count - 1) * step if count else start
                starts.append(last if count else 0)
                limits.append(start + 1 if count else 0)
                steps.append(-step)
                flips.append(axis)
            left.append("keep")
        else:
            starts.append(0)
            limits.append(extent)
            steps.append(1)
            left.append(i)
        axis += 1
    whole = all(
        isinstance(s, int) and s == 0 and l == e and t == 1 for s, l, e, t in zip(starts, limits, x.shape, steps)
    )
    if not whole:
        x = _rlx.add_node("slice", (x,), {"starts": starts, "limits": limits, "strides": steps})
    if flips:
        x = _rlx.add_node("reverse", (x,), {"axes": flips})
    return x, left


def _counted_from_end(i, extent, mode):
    """The index array with negative entries counted from the end; with mode "wrap" all entries wrap around."""
    if not isinstance(i, _rlx.Value) and not _rlx.tracing():
        i = _rlx.value(i)
    i = _rlx.value(i)
    if mode == "wrap":
        return index_round(i, extent)
    i = as_index(i)
    below = _rlx.add_node("lt", (i, 0), {})
    return _rlx.add_node("where", (below, node("add", i, extent), i), {})


def _broadcast(arrays):
    shape = _broadcast_shape([a.shape for a in arrays])
    return [a if a.shape == shape else _rlx.expand([a], shape) for a in arrays], shape


def _broadcast_shape(shapes):
    rank = max(len(s) for s in shapes)
    out = [1] * rank
    for s in shapes:
        for k, d in enumerate(reversed(s)):
            at = rank - 1 - k
            if out[at] == 1:
                out[at] = d
            elif d != 1 and d != out[at]:
                raise IndexError(f"index arrays of shapes {' and '.join(map(str, shapes))} do not broadcast")
    return tuple(out)


def _arrays_together(left):
    """True if the index arrays and integers are adjacent. Then NumPy puts their axes in the same place, otherwise
    first.
    """
    places = [k for k, i in enumerate(left) if i is not None and not isinstance(i, str) or i == "drop"]
    return all(b - a == 1 for a, b in zip(places, places[1:]))


def _get(x, entries, mode="clamp", fill=0.0):
    if any(_is_array(i) for i in entries):
        entries = _integers_as_arrays(x, entries)
    x, left = _basic(x, entries)
    axis, axes, indices = 0, [], []
    for i in left:
        if i is None:
            continue
        if _is_array(i):
            axes.append(axis)
            indices.append(_counted_from_end(i, x.shape[axis], mode))
        axis += 1
    if indices:
        indices, broadcast = _broadcast(indices)
        how = {"mode": "fill", "fill": fill} if mode == "fill" else {"mode": "clamp"}
        x = _rlx.add_node("gather", (x, *indices), {"axes": axes, **how})
        # The axes of the index arrays are where the first indexed axis was. NumPy keeps them there if the arrays are
        # adjacent, and puts them first otherwise.
        first, rank = axes[0], len(broadcast)
        if not _arrays_together(left) and first > 0:
            perm = list(range(first, first + rank)) + list(range(first)) + list(range(first + rank, x.ndim))
            x = _rlx.add_node("transpose", (x,), {"perm": perm})
            first = 0
        return _reinsert(x, left, first, rank)
    shape, axis = [], 0
    for i in left:
        if i is None:
            shape.append(1)
            continue
        if i == "keep":
            shape.append(x.shape[axis])
        axis += 1
    return x if tuple(shape) == tuple(x.shape) else _rlx.reshape([x], tuple(shape))


def _integers_as_arrays(x, entries):
    """The entries with integers as index arrays with one element."""
    out, axis = [], 0
    for i in entries:
        if isinstance(i, int) and isinstance(x.shape[axis], int):
            _in_range(i, x.shape[axis], axis)
            i = _rlx.value(i % x.shape[axis])._with_weak(False)
        axis += i is not None
        out.append(i)
    return out


def _in_range(i, extent, axis):
    if not -extent <= i < extent:
        raise IndexError(f"index {i} is out of range for axis {axis} of extent {extent}")
    return True


def _reinsert(x, left, first, rank):
    """Removes the axes of integers and adds those of None, in an array whose index axes begin at `first`."""
    shape, axis, placed = [], 0, False
    in_front = first == 0 and not _arrays_together(left)
    if in_front:
        shape += list(x.shape[:rank])
        axis, placed = rank, True
    for i in left:
        if i is None:
            shape.append(1)
        elif _is_array(i):
            if not placed:
                shape += list(x.shape[axis : axis + rank])
                axis += rank
                placed = True
        else:
            if i == "keep":
                shape.append(x.shape[axis])
            axis += 1
    return x if tuple(shape) == tuple(x.shape) else _rlx.reshape([x], tuple(shape))


def _of_dtype(x, values):
    """values cast to the dtype of x."""
    if values.dtype == x.dtype:
        return values
    if values.dtype.kind == "c" and x.dtype.kind != "c":
        raise TypeError(f"complex values do not fit in an array of dtype {x.dtype.name}: use their .real")
    if not values.weak_type and _rlx.result_type(x, values)[0] != x.dtype and not _narrows_quietly(x, values):
        raise TypeError(
            f"values of dtype {values.dtype.name} do not fit in an array of dtype {x.dtype.name}: cast them first"
        )
    return _rlx.add_node("cast", (values,), {"to": x.dtype})


def _put(x, entries, values, how, mode="fill", starts=None):
    """Updates the elements that the entries select: a window of slices as one update, other elements by one scatter.
    With `starts` the window begins there.
    """
    values = _of_dtype(x, _rlx.value(values))
    target = _get_shape(x, entries)
    if tuple(values.shape) != tuple(target):
        values = _rlx.expand([values], target)
    if not any(_is_array(i) for i in entries) and all(isinstance(d, int) for d in x.shape):
        window = _window(x, entries)
        if window is not None:
            return _put_window(x, window[0] if starts is None else starts, window[1], values, how)
    named = _named_axes(x, entries, mode)
    if named is not None:
        axes, indices = named
        how_far = {"axes": axes, "mode": "clamp" if mode == "clamp" else "drop"}
        return _rlx.add_node("scatter_" + how, (x, *indices, values), how_far)
    # The flat index of each element. Entries out of range have the index after the last element.
    places = _get(_places(x), entries, mode, float(_size(x)))
    flat = _rlx.reshape([x], (-1,)) if x.ndim != 1 else x
    n = values.ndim
    places_1d = _rlx.reshape([places], (-1,)) if n != 1 else places
    values_1d = _rlx.reshape([values], (-1,)) if n != 1 else values
    out = _rlx.add_node("scatter_" + how, (flat, places_1d, values_1d), {"axes": [0], "mode": "drop"})
    return out if x.ndim == 1 else _rlx.reshape([out], x.shape)


def _named_axes(x, entries, mode):
    """(axes, index arrays) if adjacent index arrays select whole blocks of x, which one scatter can update; else
    None.
    """
    if not all(isinstance(d, int) for d in x.shape) or not any(_is_array(i) for i in entries):
        return None
    if any(i is None for i in entries):
        return None
    entries = _integers_as_arrays(x, entries)
    axes = [axis for axis, i in enumerate(entries) if _is_array(i)]
    if axes != list(range(axes[0], axes[-1] + 1)):
        return None
    for axis, i in enumerate(entries):
        if not _is_array(i) and _range(i, x.shape[axis]) != (0, x.shape[axis], 1):
            return None
    return axes, _broadcast([_counted_from_end(entries[axis], x.shape[axis], mode) for axis in axes])[0]


def _window(x, entries):
    """(starts, extents) if all entries are integers and slices of step 1, else None."""
    starts, extents, axis = [], [], 0
    for i in entries:
        if i is None:
            continue
        if isinstance(i, int):
            _in_range(i, x.shape[axis], axis)
            start, count = i % x.shape[axis], 1
        else:
            start, count, step = _range(i, x.shape[axis])
            if step != 1 and count > 1:
                return None
        starts.append(start if count else 0)
        extents.append(count)
        axis += 1
    return starts, tuple(extents)


_WINDOW_OPS = {"add": "add", "mul": "mul", "min": "min", "max": "max"}


def _put_window(x, starts, extents, values, how):
    values = values if tuple(values.shape) == extents else _rlx.reshape([values], extents)
    known = isinstance(starts, list)
    if how != "set":
        if known:
            limits = [s + e for s, e in zip(starts, extents)]
            old = _rlx.add_node("slice", (x,), {"starts": starts, "limits": limits, "strides": [1] * x.ndim})
        else:
            old = _rlx.add_node("dynamic_slice", (x, starts), {"sizes": extents})
        values = _rlx.add_node(_WINDOW_OPS[how], (old, values), {})
    if not x.ndim:
        return values
    return _rlx.add_node("dynamic_update_slice", (x, values, _rlx.array_from(starts, "int64") if known else starts), {})


def _narrows_quietly(x, values):
    """True for casts that NumPy allows in an assignment: to narrower floats and to narrower integers."""
    order = "biufc"
    return order.index(values.dtype.kind) <= order.index(x.dtype.kind) or {values.dtype.kind, x.dtype.kind} <= {
        "i",
        "u",
    }


def _size(x):
    size = 1
    for d in x.shape:
        size *= d
    return size


def _places(x):
    size = 1
    for d in x.shape:
        if not isinstance(d, int):
            raise IndexError(f"x.at[...] does not support an array with the symbolic extent {d}")
        size *= d
    dtype = "int32" if size < 2**31 else "int64"
    flat = _rlx.add_node("iota", (), {"dims": (size,), "dtype": dtype, "axis": 0})
    return _rlx.reshape([flat], x.shape) if x.ndim != 1 else flat


def _get_shape(x, entries):
    """The shape of x[entries], inferred on a scratch graph."""
    scratch = _rlx.Graph("shapes")
    return _rlx.trace_inside(scratch, lambda: _get(scratch.input("x", x.shape, x.dtype), entries).shape)
