"""Missing, renamed and lazily imported names of modules and functions."""

import functools as _functools
import importlib as _importlib
import sys as _sys

from . import _rlx


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
                _rlx.warn_renamed(f"{public}({old}=)", f"{new}=", 2)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

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
            raise TypeError(f"{function.__name__} has no argument {k!r}{has} {', '.join(names)}")
        if name in out or name != k and name in kwargs:
            raise TypeError(f"{function.__name__}: the argument {name} is given twice, once as {k}")
        out[name] = v
    return out


def accept_names(functions):
    """Makes the plain Python functions among those of a module take the names of NumPy and JAX for their arguments."""
    from ._argument_names import ALIASES
    from ._hints import HINTS

    for name, function in list(functions.items()):
        if hasattr(function, "__code__") and not hasattr(function, "argument_names"):
            if _key(function) in ALIASES or _key(function) in HINTS:
                functions[name] = _accepting(function)


def _accepting(function):
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = frozenset(names)

    @_functools.wraps(function)
    def call(*args, **kwargs):
        if kwargs and not kwargs.keys() <= known:
            kwargs = own_names(call, kwargs, names)
        return function(*args, **kwargs)

    call.argument_names = names
    return call
