"""What a module says of names that it has not."""

import importlib as _importlib


def getattr_of(module, instead, submodules=(), otherwise=""):
    """The __getattr__ of a module: imports its submodules when first asked for; of names that are elsewhere, the error
    says what `instead` has of them, of all others what `otherwise` says.
    """

    def __getattr__(name):
        if name in submodules:
            return _importlib.import_module(f"{module}.{name}")
        advice = instead.get(name, otherwise)
        raise AttributeError(f"module {module!r} has no attribute {name!r}" + (f": {advice}" if advice else ""))

    return __getattr__
