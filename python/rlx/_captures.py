"""What a function captures: whether all of it is known not to change, and where to look to see that it has not.

Outside of jit a transformed function gives what the Python function would give now. Its program is kept from call to
call only if all that the function reaches besides its arguments is immutable, and if the names by which it is reached
can be compared at each call: entries of module dictionaries, closure cells, the code of functions. Anything else may
change without a trace (attributes of objects, lists, NumPy arrays, generators, random state), and the function is
traced at each call.
"""

import builtins
import functools
import math
import operator
import sys
import types

from . import _rlx

_PURE_BUILTINS = frozenset(
    getattr(builtins, name)
    for name in "abs all any bin bool bytes callable chr complex dict divmod enumerate filter float format frozenset "
    "hash int isinstance issubclass len list map max min object ord pow range repr reversed round set slice sorted str "
    "sum tuple type zip".split()
)
_EXCEPTIONS = frozenset(x for x in vars(builtins).values() if isinstance(x, type) and issubclass(x, BaseException))
_PURE_MODULES = (math, operator)
# Modules of NumPy whose functions only read their arguments, but for those that read files or options.
_NUMPY_MODULES = ("numpy", "numpy.linalg", "numpy.fft")
_NUMPY_READERS = frozenset(
    "fromfile fromregex genfromtxt geterr geterrcall get_printoptions getbufsize load loadtxt memmap".split()
)
_PLAIN = (int, float, complex, bool, str, bytes, range, type(None), type(Ellipsis), type(NotImplemented))
# A function with one of these instructions may change its surroundings, or read names that are not known before.
_OPEN_CODE = frozenset(
    "STORE_GLOBAL DELETE_GLOBAL IMPORT_NAME LOAD_BUILD_CLASS LOAD_NAME STORE_NAME DELETE_DEREF".split()
)
_OF_COMPILED = frozenset(
    "_wrapped __wrapped__ __name__ __qualname__ __doc__ __module__ of_user settings made_by".split()
)
_MOST = 256  # guards of one function: to compare more of them costs as much as a trace
_PACKAGE = __name__.partition(".")[0]
_ABSENT = object()


class _Open(Exception):
    """Something that the function reaches may change."""


def guards(fun, static=()):
    """Where to look before a kept program of `fun` runs: [(kind, container, name, object that must be there)]. None if
    something that `fun` reaches may change unseen. `static` are Python values among the arguments.
    """
    found = _Captures()
    try:
        found.value(fun)
        for x in static:
            found.value(x)
        found.modules()
    except (_Open, RecursionError):
        return None
    return found.guards


class _Captures:
    def __init__(self):
        self.guards, self.watched = [], set()
        self.seen, self.kept = set(), []
        self.modules_seen = []  # those of others than this package, which are read by attribute
        self.codes = []  # (names of globals and attributes, modules among its globals and captures) of each function

    def watch(self, kind, container, name, expected):
        key = (id(container), name)
        if key in self.watched:
            return
        self.watched.add(key)
        self.guards.append((kind, container, name, expected))
        if len(self.guards) > _MOST:
            raise _Open

    def value(self, x):
        """Looks at an object that the function can reach."""
        if type(x) in _PLAIN or isinstance(x, (_rlx.Array, _rlx.dtype)) or id(x) in self.seen:
            return
        self.seen.add(id(x))
        self.kept.append(x)  # so that no other object gets its id
        if type(x) in (tuple, frozenset):
            for part in x:
                self.value(part)
        elif type(x) is slice:
            for part in (x.start, x.stop, x.step):
                self.value(part)
        elif isinstance(x, types.FunctionType):
            self.function(x)
        elif isinstance(x, types.ModuleType):
            if type(x) is not types.ModuleType:
                raise _Open
            self.modules_seen.append(x)
        elif isinstance(x, _rlx.JitFunction):
            if vars(x).keys() - _OF_COMPILED:
                raise _Open
            self.value(x.__wrapped__)
        elif hasattr(type(x), "_captured"):
            for name in x._captured:
                self.watch("entry", vars(x), name, vars(x)[name])
                self.value(vars(x)[name])
        elif type(x) is functools.partial and not x.keywords and not vars(x):
            self.value(x.func)
            self.value(x.args)
        elif isinstance(x, types.BuiltinFunctionType):
            if x not in _PURE_BUILTINS and x.__self__ not in _PURE_MODULES:
                raise _Open
        elif not (x in _PURE_BUILTINS or x in _EXCEPTIONS if isinstance(x, type) else False) and not _of_numpy(x):
            raise _Open

    def function(self, fun):
        code = fun.__code__
        cells = [_contents(cell) for cell in fun.__closure__ or ()]
        home = sys.modules.get(fun.__globals__.get("__name__"))  # __module__ is that of the function it wraps
        if home is not None and _of_package(home.__name__) and vars(home) is fun.__globals__:
            for inside in cells:
                self.own(inside)
            return
        if vars(fun).keys() - {"__wrapped__"}:
            raise _Open  # attributes, which it or others may read and write
        for cell, inside in zip(fun.__closure__ or (), cells):
            self.watch("attribute", cell, "cell_contents", inside)
            self.value(inside)
        if code.co_kwonlyargcount and fun.__kwdefaults__:
            raise _Open  # a dictionary, which can be written in place
        self.watch("attribute", fun, "__code__", code)
        if fun.__defaults__:
            self.watch("attribute", fun, "__defaults__", fun.__defaults__)
            self.value(fun.__defaults__)
        names, known = set(), [x for x in cells if isinstance(x, types.ModuleType)]
        self.code(code, fun.__globals__, names, known)
        self.codes.append((names, known))

    def own(self, x):
        """Looks at what a function of this package captured: it writes neither its cells nor its containers again."""
        if type(x) in (tuple, list, set, frozenset, dict):
            for part in x.values() if type(x) is dict else x:
                self.own(part)
        else:
            self.value(x)

    def code(self, code, scope, names, known):
        global_names, is_open = _read(code)
        if is_open:
            raise _Open
        names.update(code.co_names)
        builtin = scope.get("__builtins__", builtins)
        builtin = builtin if isinstance(builtin, dict) else vars(builtin)
        for name in global_names:
            x = scope.get(name, _ABSENT)
            if x is not _ABSENT:
                self.watch("entry", scope, name, x)
                self.value(x)
                if isinstance(x, types.ModuleType):
                    known.append(x)
            elif name in builtin:
                self.watch("absent", scope, name, None)
                self.value(builtin[name])
        for part in code.co_consts:
            if isinstance(part, types.CodeType):
                self.code(part, scope, names, known)

    def modules(self):
        """Looks at the attributes of modules. A function reads those of its own modules; a name that none of these has
        may be read of a module that it was given.
        """
        done = set()
        while True:
            unread = [
                (m, name)
                for m in self.modules_seen
                for names, known in self.codes
                for name in names
                if (id(m), name) not in done and (m in known or not any(name in vars(k) for k in known))
            ]
            if not unread:
                return
            for m, name in unread:
                done.add((id(m), name))
                self.entry(m, name)

    def entry(self, module, name):
        entries = vars(module)
        if name not in entries:
            if "__getattr__" in entries and module.__name__ != "numpy" and not _of_package(module.__name__):
                raise _Open
            return
        x = entries[name]
        self.watch("entry", entries, name, x)
        if isinstance(x, types.ModuleType):
            self.value(x)
            for _, known in self.codes:
                if module in known and x not in known:
                    known.append(x)
        elif _of_package(module.__name__):
            if not isinstance(x, (types.FunctionType, types.BuiltinFunctionType, type, _rlx.dtype, *_PLAIN)):
                self.value(x)
        elif not (module.__name__ in _NUMPY_MODULES and callable(x) and name not in _NUMPY_READERS):
            self.value(x)


@functools.lru_cache(maxsize=1024)
def _read(code):
    """(names of the globals that a function reads, whether it may change its surroundings)."""
    import dis

    names, is_open = set(), False
    for i in dis.get_instructions(code):
        if i.opname == "LOAD_GLOBAL":
            names.add(i.argval)
        is_open = is_open or i.opname in _OPEN_CODE or i.opname == "STORE_DEREF" and i.argval in code.co_freevars
    return names, is_open


def _of_package(name):
    return name is not None and (name == _PACKAGE or name.startswith(_PACKAGE + "."))


def _contents(cell):
    try:
        return cell.cell_contents
    except ValueError:
        raise _Open from None


def _of_numpy(x):
    """True for NumPy's immutable objects: scalars and their types, dtypes, elementwise functions."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return False
    if isinstance(x, type):
        return issubclass(x, (numpy.generic, numpy.dtype))
    return isinstance(x, (numpy.generic, numpy.dtype, numpy.ufunc))
