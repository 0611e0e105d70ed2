"""Stand-ins for what a test may name and rlx does not have."""

import importlib
import types


running = False  # while tests run; before that, when test files load, stand-ins may be called and iterated


class UsesInternals(Exception):
    """A test reached for internals of JAX."""


class NotInRlx(Exception):
    """A test called a public function of JAX that rlx does not have."""


class _Name:
    """A name without a value: it can be passed around and inherited from, and raises when it is used."""

    _error = UsesInternals

    def __init__(self, name):
        self.__dict__["_name"] = name
        self.__dict__["__name__"] = name.rsplit(".", 1)[-1]

    def _use(self):
        if running:
            raise self._error(self._name)

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name == "cache_clear":  # of functions that set-ups of tests clear
            return lambda: None
        return type(self)(f"{self._name}.{name}")

    def __setattr__(self, name, value):
        self._use()

    def __setitem__(self, key, value):
        self._use()

    def __call__(self, *args, **kwargs):
        self._use()
        decorates = len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type))
        return args[0] if decorates else type(self)(f"{self._name}()")

    def __mro_entries__(self, bases):
        return (type(self._name.rsplit(".", 1)[-1], (), {}),)

    def __repr__(self):
        return f"<{self._name}>"

    def __bool__(self):
        self._use()
        return False

    def __iter__(self):
        self._use()
        return iter(())

    def __len__(self):
        self._use()
        return 0

    def __getitem__(self, key):
        return type(self)(f"{self._name}[...]")

    def __enter__(self):
        self._use()

    def __exit__(self, *error):
        return False

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return hash(self._name)

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __instancecheck__(self, value):
        return False

    def __lt__(self, other):
        self._use()

    __le__ = __gt__ = __ge__ = __lt__


class Internal(_Name):
    """A name of JAX's internals."""


class Missing(_Name):
    """A public name of JAX that rlx does not have."""

    _error = NotInRlx


class Standin(types.ModuleType):
    """A module under `jax`. Names that it does not define are those of the namespace `same` of rlx, or stand-ins."""

    def __init__(self, name, ours, same):
        super().__init__(name)
        self.__dict__["_ours"] = ours
        self.__dict__["_same"] = same
        self.__dict__["__path__"] = []

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        from . import OURS, SAME, TOOLS

        full = f"{self.__name__}.{name}"
        if full in OURS or full in TOOLS or full in SAME:
            return importlib.import_module(full)
        if self._same is not None:
            try:
                found = getattr(importlib.import_module(self._same), name)
                self.__dict__[name] = found
                return found
            except (ImportError, AttributeError):
                pass
        if (
            "_src" in self.__name__
            or name.startswith("_")
            or name.endswith("_p")
            or self.__name__.startswith(
                ("jax.interpreters", "jax.extend", "jax.sharding", "jax.experimental", "jax.export")
            )
        ):
            return Internal(full)
        if self._same is None and not self._ours:
            return Internal(full)
        return Missing(full)
