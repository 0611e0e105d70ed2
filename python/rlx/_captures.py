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
# Modules of NumPy whose functions only read their arguments, but for those that use files or options.
_NUMPY_MODULES = ("numpy", "numpy.linalg", "numpy.fft")
_NUMPY_READERS = frozenset(
    "array2string array_repr array_str errstate format_float_positional format_float_scientific fromfile fromregex "
    "genfromtxt geterr geterrcall get_printoptions getbufsize load loadtxt memmap printoptions save savetxt savez "
    "savez_compressed set_printoptions setbufsize seterr seterrcall".split()
)
_PLAIN = (int, float, complex, bool, str, bytes, range, type(None), type(Ellipsis), type(NotImplemented))
# A function with one of these instructions may change its surroundings, read names that are not known before, or catch
# the error of a name that is not there yet.
_OPEN_CODE = frozenset(
    "STORE_GLOBAL DELETE_GLOBAL IMPORT_NAME LOAD_BUILD_CLASS LOAD_NAME STORE_NAME DELETE_DEREF STORE_ATTR DELETE_ATTR "
    "PUSH_EXC_INFO SETUP_FINALLY SETUP_WITH SETUP_ASYNC_WITH".split()
)
_LOAD_VARIABLE, _LOAD_ATTRIBUTE = ("LOAD_GLOBAL", "LOAD_DEREF"), ("LOAD_ATTR", "LOAD_METHOD")
_OF_COMPILED = frozenset(
    "_wrapped __wrapped__ __name__ __qualname__ __doc__ __module__ of_user settings made_by".split()
)
_MOST = 256  # guards of one function: to compare more of them costs as much as a trace
_PACKAGE = __name__.partition(".")[0]
_OF_FILES = frozenset(f"{_PACKAGE}.{name}" for name in "_files _program_file formats.gguf hub models text".split())
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
        self.given = []  # modules that are handed on, so that a function may read any of its names of them
        self.names = set()  # all names that the functions read

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
            self.given.append(x)
        elif isinstance(x, _rlx.JitFunction):
            if vars(x).keys() - _OF_COMPILED:
                raise _Open
            self.value(x.__wrapped__)
        elif hasattr(type(x), "_captured"):
            for name in x._captured:
                self.watch("entry", vars(x), name, vars(x)[name])
                self.value(vars(x)[name])
        elif type(x) is functools.partial and not x.keywords and not vars(x):
            for name in ("func", "args"):  # __setstate__ writes them
                self.watch("attribute", x, name, getattr(x, name))
                self.value(getattr(x, name))
        elif isinstance(x, types.BuiltinFunctionType):
            if x not in _PURE_BUILTINS and not any(x.__self__ is m for m in _PURE_MODULES):
                raise _Open
        elif not (x in _PURE_BUILTINS or x in _EXCEPTIONS if isinstance(x, type) else False) and not _of_numpy(x):
            raise _Open

    def function(self, fun):
        cells = [_contents(cell) for cell in fun.__closure__ or ()]
        home = sys.modules.get(fun.__globals__.get("__name__"))  # __module__ is that of the function it wraps
        if home is not None and _of_package(home.__name__) and vars(home) is fun.__globals__:
            if _uses_files(fun):
                raise _Open
            for inside in cells:
                self.own(inside)
            return
        if vars(fun).keys() - {"__wrapped__"}:
            raise _Open  # attributes, which it or others may read and write
        code = fun.__code__
        for cell, inside in zip(fun.__closure__ or (), cells):
            self.watch("attribute", cell, "cell_contents", inside)
        if code.co_kwonlyargcount and fun.__kwdefaults__:
            raise _Open  # a dictionary, which can be written in place
        self.watch("attribute", fun, "__code__", code)
        if fun.__defaults__:
            self.watch("attribute", fun, "__defaults__", fun.__defaults__)
            self.value(fun.__defaults__)
        self.code(code, fun.__globals__, dict(zip(code.co_freevars, cells)))

    def own(self, x):
        """Looks at what a function of this package captured: it writes neither its cells nor its containers again."""
        if type(x) in (tuple, list, set, frozenset, dict):
            for part in x.values() if type(x) is dict else x:
                self.own(part)
        else:
            self.value(x)

    def code(self, code, scope, cells):
        """Looks at what the code reads of the globals `scope` and of the variables `cells` of other functions."""
        loads, is_open = _read(code)
        if is_open:
            raise _Open
        self.names.update(code.co_names)
        builtin = scope.get("__builtins__", builtins)
        builtin = builtin if isinstance(builtin, dict) else vars(builtin)
        for opcode, name, attributes in loads:
            if opcode == "LOAD_DEREF":
                if name in cells:
                    self.variable(cells[name], attributes)
            elif name in scope:
                self.watch("entry", scope, name, scope[name])
                self.variable(scope[name], attributes)
            elif name in builtin:
                self.watch("absent", scope, name, None)
                self.watch("entry", builtin, name, builtin[name])
                self.value(builtin[name])
        for part in code.co_consts:
            if isinstance(part, types.CodeType):
                self.code(part, scope, {k: x for k, x in cells.items() if k not in code.co_cellvars})

    def variable(self, x, attributes):
        """Looks at a variable of which the code reads `attributes`, one of the other."""
        for name in attributes:
            if not isinstance(x, types.ModuleType):
                break
            x = self.entry(x, name)
        self.value(x)

    def modules(self):
        """Looks at all attributes by which a module that was handed on may be read."""
        done = set()
        while unread := [(m, name) for m in self.given for name in self.names if (id(m), name) not in done]:
            for m, name in unread:
                done.add((id(m), name))
                self.value(self.entry(m, name))

    def entry(self, module, name):
        """An attribute of a module. None if it needs no further look."""
        if type(module) is not types.ModuleType:
            raise _Open
        self.watch("attribute", module, "__class__", types.ModuleType)
        entries = vars(module)
        if name not in entries:
            if "__getattr__" in entries and module.__name__ != "numpy" and not _of_package(module.__name__):
                raise _Open
            return None
        x = entries[name]
        self.watch("entry", entries, name, x)
        if isinstance(x, types.ModuleType):
            return x
        if _of_package(module.__name__):
            own = isinstance(x, (types.FunctionType, type)) and _of_package(x.__module__)
            return None if own and not _uses_files(x) else x
        own = module.__name__ in _NUMPY_MODULES and callable(x) and name not in _NUMPY_READERS
        return None if own and getattr(x, "__module__", "").partition(".")[0] == "numpy" else x


@functools.lru_cache(maxsize=1024)
def _read(code):
    """(the variables of other scopes that a function loads, each with the attributes that follow: [(opcode, name,
    attributes)], whether it may change its surroundings).
    """
    import dis

    loads, chain, is_open = [], None, False
    for i in dis.get_instructions(code):
        if i.opname == "EXTENDED_ARG":
            continue
        if chain is not None and i.opname in _LOAD_ATTRIBUTE:
            chain.append(i.argval)
        else:
            chain = [] if i.opname in _LOAD_VARIABLE else None
            if chain is not None:
                loads.append((i.opname, i.argval, chain))
        # Attributes such as __dict__ and __globals__ lead to anything.
        is_open = is_open or i.opname in _LOAD_ATTRIBUTE and i.argval.startswith("__")
        is_open = is_open or i.opname in _OPEN_CODE or i.opname == "STORE_DEREF" and i.argval in code.co_freevars
    return loads, is_open


def _of_package(name):
    return name is not None and (name == _PACKAGE or name.startswith(_PACKAGE + "."))


def _uses_files(x):
    """True for functions and types of this package that read or write files."""
    while isinstance(x, types.FunctionType) and hasattr(x, "__wrapped__"):
        x = x.__wrapped__
    if isinstance(x, types.FunctionType):
        return x.__globals__.get("__name__") in _OF_FILES or "_program_file" in x.__code__.co_names
    return isinstance(x, type) and hasattr(x, "load")


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
    if isinstance(x, numpy.ufunc):  # those of numpy.frompyfunc call a function of Python
        return any("O" not in types_ for types_ in x.types)
    kind = x if isinstance(x, type) else type(x)
    if issubclass(kind, numpy.generic):  # a void is a view of a record
        return kind.__module__ == "numpy" and not issubclass(kind, numpy.void)
    return issubclass(kind, numpy.dtype)
