"""Missing, renamed and lazily imported names of modules and functions."""

import functools as _functools
import importlib as _importlib

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
        advice = instead.get(name, otherwise)
        raise AttributeError(f"module {module!r} has no attribute {name!r}" + (f": {advice}" if advice else ""))

    return __getattr__


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
