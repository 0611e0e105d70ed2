"""Dtypes and their kinds."""

from .. import _rlx

_GROUPS = {
    "floating": "f",
    "integer": "iu",
    "signedinteger": "i",
    "unsignedinteger": "u",
    "inexact": "fc",
    "complexfloating": "c",
    "number": "iufc",
    "generic": "biufc",
}


class _Kind(type):
    def __repr__(cls):
        return f"rlx.numpy.{cls.__name__}"


def _kind(name):
    return _Kind(name, (), {"__doc__": f"The kind {name!r} of dtypes, for issubdtype.", "__module__": "rlx.numpy"})


floating, integer, signedinteger, unsignedinteger, inexact, complexfloating, number, generic = map(_kind, _GROUPS)


def result_type(*arrays_and_dtypes):
    """The dtype that operands are promoted to."""
    return _rlx.result_type(*arrays_and_dtypes)[0]


def promote_types(a, b):
    """The dtype that both dtypes are promoted to."""
    return _rlx.result_type(_rlx.dtype(a), _rlx.dtype(b))[0]


def issubdtype(a, kind):
    """True if a dtype belongs to a kind, such as rlx.numpy.floating or "floating", or equals a dtype."""
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
    k = _rlx.dtype(a).kind
    return k in _GROUPS[name] if name in _GROUPS else _rlx.dtype(a) == _rlx.dtype(kind)


_ARRAY_API = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype, kind):
    """True if a dtype belongs to a kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating", "numeric", a dtype, or a tuple of them.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _ARRAY_API:
        return _rlx.dtype(dtype).kind in _ARRAY_API[kind]
    return _rlx.dtype(dtype) == _rlx.dtype(kind)


def _numpy_dtype(dtype):
    import numpy as np

    name = _rlx.dtype(dtype).name
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def can_cast(from_, to, casting="safe"):
    """True if the rule `casting` of NumPy allows this conversion."""
    import numpy as np

    source = from_.dtype if hasattr(from_, "shape") and hasattr(from_, "dtype") else from_
    return bool(np.can_cast(_numpy_dtype(source), _numpy_dtype(to), casting=casting))


def _dtype_in(x):
    """The dtype of an array; a dtype or a type unchanged."""
    return x if isinstance(x, type) else getattr(x, "dtype", x)


class finfo:
    """Limits of a floating dtype, or of the parts of a complex one, as Python numbers: bits, eps, max, min, tiny."""

    def __init__(self, dtype):
        import ml_dtypes

        self._limits = ml_dtypes.finfo(_numpy_dtype(_dtype_in(dtype)))
        self.dtype = _rlx.dtype(self._limits.dtype)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._limits, name)
        return found if isinstance(found, (int, str)) else float(found)

    def __repr__(self):
        return f"finfo(min={self.min}, max={self.max}, eps={self.eps}, dtype={self.dtype.name})"

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)


def iinfo(dtype):
    """Limits of an integer dtype: bits, max, min."""
    import ml_dtypes

    return ml_dtypes.iinfo(_numpy_dtype(_dtype_in(dtype)))


def isscalar(x):
    """True if x is a number or an array without axes."""
    if isinstance(x, (_rlx.Array, _rlx.Value)):
        return x.ndim == 0
    return isinstance(x, (bool, int, float, complex)) or (getattr(x, "shape", None) == ())


def iterable(x):
    """True if x can be iterated."""
    try:
        iter(x)
    except TypeError:
        return False
    return True


def get_printoptions():
    """The print options of NumPy, which rlx uses."""
    import numpy as np

    return np.get_printoptions()


def set_printoptions(**options):
    """Sets the print options of NumPy, which rlx uses."""
    import numpy as np

    np.set_printoptions(**options)


def printoptions(**options):
    """A context manager with other print options."""
    import numpy as np

    return np.printoptions(**options)


def array_repr(x, max_line_width=None, precision=None, suppress_small=None):
    """repr of an array."""
    return repr(x)


def array_str(x, max_line_width=None, precision=None, suppress_small=None):
    """The elements of an array as text."""
    import numpy as np

    return np.array_str(np.asarray(x), max_line_width, precision, suppress_small)
