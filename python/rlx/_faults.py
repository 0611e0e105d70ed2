"""Errors that Python itself raises inside this package, told as errors of the call: which function, which argument."""

import operator
import os
import sys

from . import _rlx

# What Python raises for operands that it cannot use. Errors of rlx are other classes, or are raised by a statement.
OF_PYTHON = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, NameError, AssertionError)
_FOLDER = os.path.dirname(__file__) + os.sep
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_LONGEST = 60  # characters of a value in a text


def shown(x):
    """A value in the text of an error: arrays by dtype and shape, others as Python writes them, cut where long."""
    try:
        if not isinstance(x, type) and hasattr(x, "dtype") and hasattr(x, "shape"):
            return f"{getattr(x.dtype, 'name', x.dtype)}{list(x.shape)}"
        text = f"rlx.{x.name}" if isinstance(x, _rlx.dtype) else repr(x)
    except Exception:  # an integer of very many digits, a donated array, or an object whose __repr__ fails
        text = f"<{type(x).__name__}>"
    text = text.encode("ascii", "backslashreplace").decode() if not text.isprintable() else text
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


class _Tracebacks:
    """Tracebacks without the frames of this package, unless `full`."""

    full = False

    def of_users(self, trace):
        """The entries of a traceback that are frames of other code."""
        if self.full:
            return trace
        entries = []
        while trace is not None:
            if not trace.tb_frame.f_code.co_filename.startswith(_FOLDER):
                entries.append(trace)
            trace = trace.tb_next
        out = None
        for t in reversed(entries):
            out = type(t)(out, t.tb_frame, t.tb_lasti, t.tb_lineno)
        return out


tracebacks = _Tracebacks()


# -- what an argument takes --


def _is_index(x):
    if isinstance(x, _rlx.Dim):
        return True
    try:
        operator.index(x)
    except TypeError:
        return False
    return True


def _is_integers(x):
    return all(map(_is_integers, x)) if isinstance(x, (list, tuple)) else _is_index(x)


def _is_number(x):
    if isinstance(x, (str, bytes, bytearray)):
        return False
    if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, type):
        return True
    try:
        complex(x)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_real(x):
    return _is_number(x) and not isinstance(x, complex)


def _is_dtype(x):
    try:
        _rlx.dtype(x)
    except Exception:
        return False
    return True


def _is_text(x):
    return isinstance(x, str) or hasattr(type(x), "__members__")  # or an enumerator


def _is_array(x):
    return isinstance(x, (list, tuple)) or hasattr(x, "__array__") or hasattr(x, "__dlpack__") or _is_number(x)


def _is_list(x):
    return not isinstance(x, (str, bytes)) and (
        getattr(x, "ndim", 0) > 0 or hasattr(type(x), "__len__") and _is_sized(x)
    )


def _is_sized(x):
    try:
        len(x)
    except TypeError:  # a scalar array
        return False
    return True


_KINDS = {
    "an integer": (
        _is_index,
        "axis1 axis2 axis_size axisa axisb axisc batch_group_count chunk concat_axis count deg dimension "
        "feature_group_count groups hop_length length limit_index max_iterations maxiter minlength n_fft n_iter n_max "
        "n_mels ndim ndmin nfft nin noverlap nout nperseg num num_classes num_groups num_segments rank restart size "
        "slice_size split_axis start_dimension stop_dimension total_repeat_length win_length",
    ),
    "an integer or a tuple of integers": (
        _is_integers,
        "argnums axes axis batch_axis broadcast_dimensions dilation dimensions fft_lengths filter_shape limit_indices "
        "new_shape new_sizes nondiff_argnums perm permutation reps s shape sizes slice_sizes static_argnums strides "
        "window_dimensions window_shape window_strides",
    ),
    "a text": (
        _is_text,
        "bitorder boundary casting device distribution indexing isa method mode name nonlinearity reduction side "
        "subscripts",
    ),
    "a function": (
        callable,
        "body_fun cond_fun computation f false_fun fn fun func func1d function is_leaf mask_func matvec pyfunc "
        "solve tangent_solve true_fun",
    ),
    "a dtype": (_is_dtype, "dtype index_dtype new_dtype preferred_element_type"),
    "a list or tuple of arrays": (_is_list, "arrays"),
    "a number": (_is_number, "atol ddof fmax fmin ord rcond tol top_db"),
    "an array or a number": (_is_array, "in1 in2 lhs operand rhs x"),
}
_OF_NAMES = {name: kind for kind, (_, names) in _KINDS.items() for name in names.split()}


def _is_flag(x):
    try:
        bool(x)
    except Exception:
        return False
    return True


_OF_DEFAULTS = {
    bool: ("True or False", _is_flag),
    int: ("an integer", _is_index),
    float: ("a number", _is_real),
    str: ("a text", _is_text),
}


def _wrong(name, value, default):
    """What the argument takes, if the value is not that."""
    if value is default or value is None and default is None:
        return None
    kind = _OF_NAMES.get(name)
    if kind is not None:
        fits = _KINDS[kind][0]
    elif type(default) is tuple and _is_integers(default):
        kind, fits = "an integer or a tuple of integers", _is_integers
    elif type(default) in _OF_DEFAULTS:
        kind, fits = _OF_DEFAULTS[type(default)]
    elif name in ("k", "n", "m") and default is _NONE:
        kind, fits = "an integer", lambda x: _is_index(x) or _is_array(x)
    else:
        return None
    return None if fits(value) else kind


_NONE = object()  # no default


def _defaults(function):
    import inspect

    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}, None
    out = {p.name: _NONE if p.default is p.empty else p.default for p in found}
    return out, next((p.name for p in found if p.kind is p.VAR_POSITIONAL), None)


def _given(names, star, args, kwargs):
    """(name, value) of each argument of a call, as far as there are names for them."""
    placed = [n for n in names if n != star]
    out = list(zip(placed, args))
    out += ((star, a) for a in args[len(placed) :] if star)
    return [(n, v) for n, v in (*out, *kwargs.items()) if n != "self"]


# -- whose error it is --


def _of_library(file):
    """Whether the package calls this file: a module of Python, or NumPy."""
    numpy = sys.modules.get("numpy")
    return (
        file.startswith(_LIBRARY)
        and "site-packages" not in file
        or numpy is not None
        and file.startswith(os.path.dirname(numpy.__file__) + os.sep)
    )


def _by_python(error):
    """Whether Python raised the error inside this package, and no `raise` of the package nor code of the user."""
    trace = error.__traceback__
    while True:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_FOLDER) and not _of_library(file):
            return False
        if trace.tb_next is None:
            break
        trace = trace.tb_next
    if not trace.tb_frame.f_code.co_filename.startswith(_FOLDER):
        return True  # a module of Python that this package called
    from opcode import opname

    return opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] not in ("RAISE_VARARGS", "RERAISE")


def looked_at(error):
    """The error, with a mark that says whether Python raised it, and a traceback of the frames of other code."""
    if not hasattr(error, "_rlx_of_python"):
        error._rlx_of_python = _by_python(error)  # the frames that tell this go with the traceback
    error.__traceback__ = tracebacks.of_users(error.__traceback__)
    return error


def told(error, function, args, kwargs):
    """The error of a call of a public function as the caller shall see it: `error` itself if it says what is wrong."""
    if isinstance(error, _rlx.InternalError):
        return error
    if isinstance(error, _rlx.Error):
        return looked_at(error)
    text, name = getattr(error, "_rlx_text", None) or str(error), function.__name__
    native = "incompatible function arguments" in text
    marked = hasattr(error, "_rlx_of_python")
    inside = marked or error.__traceback__.tb_next is not None
    looked_at(error)
    if not error._rlx_of_python or name.startswith("_"):
        return error
    if not inside and not native:
        return _public(error, text, function)
    defaults, star = _defaults(function)
    given = _given(defaults, star, args, kwargs)
    for argument, value in given:
        kind = _wrong(argument, value, defaults.get(argument, _NONE))
        if kind is not None:
            of = f" ({type(value).__name__})" if type(value).__name__ not in shown(value) else ""
            return _retold(TypeError, f"{name}: {argument} must be {kind}, got {shown(value)}{of}", text)
    call = f"{name}({', '.join(f'{n}={shown(v)}' for n, v in given[:8])}{', ...' if len(given) > 8 else ''})"
    kept = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError)
    why = "an argument has a type that is not taken" if native else text
    return _retold(type(error) if type(error) in kept else TypeError, f"{call}: {why}", text)


def _retold(of, message, text):
    """A new error; an outer function of the package tells the first text once more, with its own arguments."""
    new = of(message)
    new._rlx_of_python, new._rlx_text = True, text
    return new


def _public(error, text, function):
    """An error about the number of arguments, under the public name of the function."""
    private = getattr(function, "__wrapped__", function)
    while hasattr(private, "__wrapped__"):
        private = private.__wrapped__
    found = getattr(private, "__qualname__", "")
    if type(error) is TypeError and found and text.startswith(found + "() ") and found != function.__name__:
        return TypeError(function.__name__ + text[len(found) :])
    return error
