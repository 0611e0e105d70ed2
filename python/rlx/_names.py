"""Missing, renamed and lazily imported names of modules and functions."""

import functools as _functools
import importlib as _importlib
import sys as _sys
from types import FunctionType as _FunctionType

from . import _rlx
from ._faults import OF_PYTHON, told


def getattr_of(module, instead, submodules=(), otherwise="", renamed=()):
    """The `__getattr__` of a module.

    submodules: imported when first asked for
    renamed: {old name: (new name, object)}; the old name gives the object and warns once
    instead: {name: what to use}, for the text of the error; `otherwise` is the text for all other names
    """
    renamed = dict(renamed)

    def __getattr__(name):
        if name in submodules:
            return _importlib.import_module(f"{module}.{name}")
        if name in renamed:
            new, found = renamed[name]
            _rlx.warn_renamed(f"{module}.{name}", f"{module}.{new}", 2)
            return found
        advice = instead.get(name) or guess(name, [*dir(_sys.modules[module]), *submodules]) or otherwise
        raise AttributeError(f"module {module!r} has no attribute {name!r}" + (f": {advice}" if advice else ""))

    return __getattr__


def guess(name, known):
    """A question whether one of the known names is meant; empty if none is close, or for protocols of Python."""
    if name.startswith("_"):
        return ""
    import difflib

    near = difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], 3, 0.75)
    return f"did you mean {' or '.join(near)}?" if near else ""


def a_function(f, what):
    """f, if it can be called."""
    if not callable(f):
        raise TypeError(f"{what} must be a function, got {f!r} ({type(f).__name__})")
    return f


def renamed_arguments(**names):
    """Decorates a function whose keyword `old` is now `names[old]`: the old keyword works and warns once."""

    def decorate(function):
        parts = [p for p in function.__module__.split(".") if not p.startswith("_")]
        public = ".".join([*parts, function.__name__])

        @_functools.wraps(function)
        def call(*args, **kwargs):
            for old in names.keys() & kwargs.keys():
                new = names[old]
                if new in kwargs:
                    raise TypeError(f"{public}: both {old} and {new} are given; {new} is the new name of {old}")
                _rlx.warn_renamed(f"{public}({old}=)", f"{new}=", 3)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        call.old_names = frozenset(names)
        return call

    return decorate


def _key(function):
    """The name of a function in the table of argument names."""
    return f"{function.__module__.removeprefix('rlx.').partition('._')[0]}.{function.__name__}"


def own_names(function, kwargs, names):
    """kwargs with the names that NumPy and JAX give to arguments replaced by those of the function."""
    from ._argument_names import ALIASES
    from ._hints import HINTS

    known, hints = ALIASES.get(_key(function), {}), HINTS.get(_key(function), ())
    out = {}
    for k, v in kwargs.items():
        if k in hints and k not in names:
            continue
        name = k if k in names else known.get(k)
        if name is None and k == "out":
            if v is None:
                continue
            raise TypeError(f"{function.__name__}(out=...): rlx arrays are not written in place; use the result")
        if name is None:
            advice = "did you mean axis?" if k == "dim" and "axis" in names else guess(k, names)
            has = f": {advice} It has" if advice else "; it has"
            mine = ", ".join(n for n in names if n != "self") or "none"
            raise TypeError(f"{function.__name__} has no argument {k!r}{has} {mine}")
        if name in out or name != k and name in kwargs:
            raise TypeError(f"{function.__name__}: the argument {name} is given twice, once as {k}")
        out[name] = v
    return out


# Modules of this package whose functions are no part of the public interface.
_INNER = frozenset("rlx._nodes rlx._op rlx._names rlx._gradients rlx._closed_over rlx._faults".split())
_accepted = {}


def accept_names(functions):
    """Makes the plain Python functions among those of a module take the names that NumPy and JAX give to arguments,
    guess wrong names, and raise errors that name the argument.
    """
    home, public = functions["__name__"], functions.get("__all__")
    for name, function in list(functions.items()):
        if name.startswith("_") or public is not None and name not in public:
            continue
        if not f"{getattr(function, '__module__', '')}.".startswith("rlx."):
            continue
        made = vars(function).get("__init__") if type(function) is type else None
        if type(made) is _FunctionType and not hasattr(made, "argument_names"):
            function.__init__ = _accepting(made, name)
        if type(function) is not _FunctionType or function.__module__ in _INNER:
            continue
        if not hasattr(function, "argument_names"):
            if function not in _accepted:
                _accepted[function] = _accepting(function, function.__name__)
            functions[name] = function = _accepted[function]
        found = vars(_sys.modules[function.__module__]).get(function.__qualname__)
        if found is not function and function.__module__ != home:
            function.__module__, function.__qualname__ = home, name  # pickles find it there


def _accepting(function, name):
    inner, old = function, frozenset()
    while hasattr(inner, "__wrapped__"):
        old |= getattr(inner, "old_names", old)
        inner = inner.__wrapped__
    code = inner.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known, takes_any = frozenset(names) | old, bool(code.co_flags & 8)

    @_functools.wraps(function)
    def call(*args, **kwargs):
        for k in kwargs:
            if k not in known and not takes_any:
                kwargs = own_names(call, kwargs, names)
                break
        try:
            return function(*args, **kwargs)
        except OF_PYTHON as e:
            new = told(e, call, args, kwargs)
            if new is e:
                raise
            raise new from None

    call.argument_names, call.__name__ = names, name
    return call
