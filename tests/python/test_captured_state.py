"""Outside of jit a transformed function sees every change of what it reaches, by whatever way it reaches it."""

import array
import builtins
import collections
import contextvars
import ctypes
import dataclasses
import enum
import functools
import math
import operator
import os
import threading
import types
import weakref

import numpy as np
import pytest

import rlx
import rlx.numpy as rnp
from rlx import _jit

VALUES = [2.0, 2.0, 2.0, 3.0, 3.0, 3.0, -1.5, 2.0, 2.0]  # long enough for a program to be kept
two, one = np.float32(2), np.float32(1)


class Box:
    def __init__(self, s=1.0):
        self.s = s

    @property
    def half(self):
        return self.s * 0.5

    def get(self):
        return self.s


class Doubled(Box):
    def get(self):
        return super().get() * 2


class Descriptor:
    s = 1.0

    def __get__(self, obj, cls=None):
        return self.s


class Meta(type):
    @property
    def of_meta(cls):
        return cls.s


class Holder(metaclass=Meta):
    s, described = 1.0, Descriptor()


class Answers:
    def __init__(self, box):
        self.__dict__["box"] = box

    def __getattr__(self, name):
        return self.box.s

    def __getitem__(self, i):
        return self.box.s

    def __float__(self):
        return self.box.s

    def __missing__(self, key):
        return self.box.s


class Missing(dict):
    box = Box()

    def __missing__(self, key):
        return self.box.s


class Way(enum.Enum):
    A = [1.0]


class Scalar(np.float64):
    s = 1.0


class OfModule(types.ModuleType):
    box = Box()

    @property
    def s(self):
        return self.box.s


@dataclasses.dataclass(frozen=True)
class Frozen:
    s: list


Pair = collections.namedtuple("Pair", "a b")


def scoped(text, **scope):
    """(f, a function of the text, with its own globals; these)."""
    exec(text, scope)
    return scope["f"], scope


def module(**entries):
    made = types.ModuleType("made")
    vars(made).update(entries)
    return made


def of_box(read):
    """A way that reads a Box."""

    def make():
        box = Box()
        value = read(box)
        return lambda x: x * x * value(), lambda v: setattr(box, "s", v)

    return make


def of_list(read):
    """A way that reads a list of one number."""

    def make():
        held = [1.0]
        value = read(held)
        return lambda x: x * x * value(), lambda v: held.__setitem__(0, v)

    return make


def of_array(read):
    """A way that reads an array of NumPy, written in place."""

    def make():
        held = np.ones(3)
        value = read(held)
        return lambda x: (x * x * value()).astype("float32"), held.fill

    return make


def of_module(read, **entries):
    """A way that reads a module."""

    def make():
        m = module(s=1.0, **entries)
        value = read(m)
        return lambda x: x * x * value(), lambda v: setattr(m, "s", v)

    return make


def of_global(text, name="s", value=lambda v: v, **scope):
    """A way that reads a global."""

    def make():
        f, entries = scoped(text, **{name: value(1.0)}, **scope)
        return f, lambda v: entries.__setitem__(name, value(v))

    return make


WAYS = {}
for _name, _read in {
    "property": lambda b: lambda: b.half * 2,
    "weak reference": lambda b: (lambda r: lambda: r().s)(weakref.ref(b)),
    "weak proxy": lambda b: (lambda r: lambda: r.s)(weakref.proxy(b)),
    "__getattr__": lambda b: (lambda a: lambda: a.anything)(Answers(b)),
    "__getitem__": lambda b: (lambda a: lambda: a[0])(Answers(b)),
    "__float__": lambda b: (lambda a: lambda: float(a))(Answers(b)),
    "bound method": lambda b: b.get,
    "super": lambda b: (lambda d: lambda: (setattr(d, "s", b.s * 0.5), d.get())[1])(Doubled()),
    "attrgetter": lambda b: (lambda g: lambda: g(b))(operator.attrgetter("s")),
    "methodcaller": lambda b: (lambda g: lambda: g(b))(operator.methodcaller("get")),
    "vars": lambda b: lambda: vars(b)["s"],
    "getattr": lambda b: lambda: getattr(b, "s"),
    "cached helper": lambda b: (lambda g: lambda: (g.cache_clear(), g())[1])(functools.cache(lambda: b.s)),
    "frompyfunc": lambda b: (lambda u: lambda: float(u(1.0)))(np.frompyfunc(lambda t: t * b.s, 1, 1)),
    "vectorize": lambda b: (lambda u: lambda: float(u(1.0)))(np.vectorize(lambda t: t * b.s)),
    "frozenset": lambda b: (lambda held: lambda: next(iter(held)).s)(frozenset([b])),
    "object in a tuple": lambda b: (lambda held: lambda: held[0].s)((b,)),
}.items():
    WAYS[_name] = of_box(_read)
for _name, _read in {
    "frozen dataclass": lambda h: (lambda d: lambda: d.s[0])(Frozen(h)),
    "namedtuple": lambda h: (lambda p: lambda: p.a[0])(Pair(h, 1)),
    "method of a list": lambda h: (lambda g: lambda: g(0))(h.__getitem__),
    "itemgetter": lambda h: (lambda g: lambda: g(h))(operator.itemgetter(0)),
    "function in a tuple": lambda h: (lambda t: lambda: t[0]())((lambda: h[0],)),
    "default of a nested function": lambda h: lambda: (lambda s=h[0]: s)(),
    "decorator": lambda h: functools.wraps(lambda: None)(lambda: h[0]),
    "generator": lambda h: (lambda g: lambda: next(g))(h[0] for _ in iter(int, 1)),
    "sum": lambda h: lambda: sum(h),
    "NumPy of a list": lambda h: lambda: np.mean(h),
    "defaults that are read": lambda h: (lambda g: lambda: g.__defaults__[0][0])(eval("lambda a: (lambda b=a: b)")(h)),
    "closure that is read": lambda h: (lambda g: lambda: g.__closure__[0].cell_contents[0])(lambda: h),
}.items():
    WAYS[_name] = of_list(_read)
for _name, _read in {
    "view": lambda a: (lambda b: lambda: b[0])(a[::2]),
    "view of one": lambda a: (lambda b: lambda: b)(a[1:2].reshape(())),
    "read-only view": lambda a: (lambda b: lambda: (b.setflags(write=False), b.mean())[1])(a.view()),
    "broadcast": lambda a: (lambda b: lambda: b.max())(np.broadcast_to(a, (2, 3))),
    "memoryview": lambda a: (lambda m: lambda: m[0])(memoryview(a)),
    "frombuffer": lambda a: (lambda b: lambda: b[2])(np.frombuffer(a)),
    "record": lambda a: (lambda r: lambda: r["s"])(a.view([("s", "f8")])[0]),
    "subclass": lambda a: (lambda m: lambda: np.asarray(m).mean())(a.view(np.recarray)),
    "masked": lambda a: (lambda m: lambda: m.sum() / 3)(np.ma.masked_array(a)),
    "method of an array": lambda a: a.mean,
    "method of a ufunc": lambda a: lambda: np.maximum.reduce(a),
    "array of objects": lambda a: (lambda o: lambda: o[0].mean())(np.array([a, None], dtype=object)),
}.items():
    WAYS[_name] = of_array(_read)
for _name, _read in {
    "module's dictionary": lambda m: lambda: m.__dict__["s"],
    "module in a tuple": lambda m: (lambda t: lambda: t[0].s)((m,)),
    "module as default": lambda m: lambda module=m: module.s,
    "module of a helper": lambda m: (lambda g: lambda: g().s)(lambda: m),
    "module in a local variable": lambda m: lambda: [n := m, n.s][1],
    "module in a module": lambda m: (lambda outer: lambda: outer.inner.s)(module(inner=m)),
    "module in a module that is handed on": lambda m: (lambda outer: lambda: (lambda o: o.inner.s)(outer))(
        module(inner=m)
    ),
    "one of two modules": lambda m: (lambda other: lambda: (m if other.s == 5.0 else other).s)(module(s=5.0)),
    "a name that another module has": lambda m: (
        lambda other: (lambda read: lambda: read(m))(lambda g: g.s + 0 * other.s)
    )(module(s=5.0)),
    "function of a module": lambda m: (exec("def g(): return s", vars(m)), lambda: m.g())[1],
    "globals of a function": lambda m: (
        exec("def g(): return 0", vars(m)),
        (lambda g: lambda: g.__globals__["s"])(m.g),
    )[1],
}.items():
    WAYS[_name] = of_module(_read)


def way(make):
    WAYS[make.__name__] = make


@way
def attribute_of_a_class():
    return lambda x: x * x * Holder.s, lambda v: setattr(Holder, "s", v)


@way
def property_of_a_metaclass():
    return lambda x: x * x * Holder.of_meta, lambda v: setattr(Holder, "s", v)


@way
def descriptor():
    return lambda x: x * x * Holder.described, lambda v: setattr(Descriptor, "s", v)


@way
def key_that_is_missing():
    held = Missing()
    return lambda x: x * x * held["s"], lambda v: setattr(Missing.box, "s", v)


@way
def value_of_an_enum():
    return lambda x: x * x * Way.A.value[0], lambda v: Way.A.value.__setitem__(0, v)


@way
def subclass_of_a_scalar():
    held = Scalar(1)
    return lambda x: x * x * held.s, lambda v: setattr(Scalar, "s", v)


@way
def type_of_a_scalar():
    return lambda x: x * x * Scalar.s, lambda v: setattr(Scalar, "s", v)


@way
def class_of_an_object():
    held = Box()
    return lambda x: x * x * held.s_of_class(), lambda v: setattr(
        held, "__class__", type("Other", (Box,), {"s_of_class": lambda self: v})
    )


@way
def class_of_a_module():
    held = module(s=2.0)  # the first value

    def change(v):
        OfModule.box.s = v
        if v != VALUES[0]:
            held.__class__ = OfModule

    return lambda x: x * x * held.s, change


@way
def thread_local():
    held = threading.local()
    return lambda x: x * x * held.s, lambda v: setattr(held, "s", v)


@way
def context_variable():
    held = contextvars.ContextVar("held", default=1.0)
    return lambda x: x * x * held.get(), held.set


@way
def environment():
    return lambda x: x * x * float(os.environ["RLX_TEST_CAPTURED"]), lambda v: os.environ.update(
        RLX_TEST_CAPTURED=str(v)
    )


@way
def array_of_the_standard_library():
    held = array.array("d", [1.0])
    return lambda x: x * x * held[0], lambda v: held.__setitem__(0, v)


@way
def number_of_c():
    held = ctypes.c_double(1.0)
    return lambda x: x * x * held.value, lambda v: setattr(held, "value", v)


@way
def state_of_a_partial():
    f = functools.partial(lambda s, x: x * x * s, 1.0)
    inner = f.func
    return f, lambda v: f.__setstate__((inner, (v,), {}, {}))


@way
def cell():
    s = 1.0
    f = lambda x: x * x * s  # noqa: E731
    return f, lambda v: setattr(f.__closure__[0], "cell_contents", v)


@way
def defaults():
    def f(x, s=1.0):
        return x * x * s

    return f, lambda v: setattr(f, "__defaults__", (v,))


@way
def attribute_of_a_helper_that_appears():
    def helper():
        pass

    def f(x):
        try:
            return x * x * helper.s
        except AttributeError:
            return x * x * 2.0

    return f, lambda v: setattr(helper, "s", v) if v != VALUES[0] else vars(helper).clear()


@way
def attribute_of_a_module_that_appears():
    held = module()

    def f(x):
        try:
            return x * x * held.s
        except AttributeError:
            return x * x * 2.0

    return f, lambda v: setattr(held, "s", v) if v != VALUES[0] else vars(held).pop("s", None)


@way
def global_that_appears():
    f, scope = scoped("def f(x):\n  try: return x * x * s\n  except NameError: return x * x * 2.0")
    return f, lambda v: scope.update(s=v) if v != VALUES[0] else scope.pop("s", None)


@way
def builtin_that_is_shadowed():
    f, scope = scoped("def f(x): return x * x * len((1, 2))")
    return f, lambda v: scope.update(len=lambda t: v) if v != VALUES[0] else scope.pop("len", None)


@way
def name_of_builtins():
    f, _ = scoped("def f(x): return x * x * captured_state_of_builtins")
    return f, lambda v: setattr(builtins, "captured_state_of_builtins", v)


@way
def name_in_numpy():
    return lambda x: x * x * np.captured_state(), lambda v: setattr(np, "captured_state", lambda: v)


@way
def function_in_numpy_with_state():
    held = Box()
    np.captured_state = lambda: held.s
    return lambda x: x * x * np.captured_state(), lambda v: setattr(held, "s", v)


@way
def function_in_the_library_with_state():
    held = Box()
    rnp.captured_state = lambda x: x * held.s
    return lambda x: rnp.captured_state(x) * x, lambda v: setattr(held, "s", v)


@way
def options_of_numpy():
    f = lambda x: x * x * (float(np.array2string(np.array(2.25))) - 0.25)  # noqa: E731
    return f, lambda v: np.set_printoptions(formatter={"float": lambda _: str(v + 0.25)})


@way
def function_of_math():
    return lambda x: x * x * math.tau, lambda v: setattr(math, "tau", v)


WAYS["global in a comprehension"] = of_global("def f(x): return x * x * sum([s for _ in 'ab']) * 0.5")
WAYS["global in a nested lambda"] = of_global("f = lambda x: (lambda: (lambda: x * x * s)())()")
WAYS["global number of NumPy"] = of_global("def f(x): return x * x * float(s)", value=np.float64)
WAYS["global tuple"] = of_global("def f(x): return x * x * s[1][0]", value=lambda v: (None, (v,)))
WAYS["global slice"] = of_global("def f(x): return x * x * s.stop", value=lambda v: slice(0, v))
WAYS["global module"] = of_global("def f(x): return x * x * s.s", value=lambda v: module(s=v))
WAYS["global class"] = of_global("def f(x): return x * x * s.s", value=lambda v: type("Made", (), {"s": v}))
WAYS["global function"] = of_global("def f(x): return s(x)", value=lambda v: lambda x: x * x * v)
WAYS["global array"] = of_global("def f(x): return x * x * s", value=lambda v: rlx.array(v, "float32"))
WAYS["text"] = of_global("def f(x): return x * x * float(s)", value=str)
WAYS["match"] = of_global(
    "def f(x):\n  match s:\n    case {'k': k}: return x * x * k\n    case k: return x * x * k",
    value=lambda v: {"k": v} if v > 2 else v,
)

TRANSFORMS = {
    "grad": lambda f: lambda g=rlx.grad(f): g(two),
    "vmap": lambda f: lambda g=rlx.vmap(f): g(np.ones(3, np.float32) * 2)[1],
    "jvp": lambda f: lambda: rlx.jvp(f, (two,), (one,))[1],
    "vjp": lambda f: lambda: rlx.vjp(f, two)[1](one)[0],
    "scan": lambda f: lambda: rlx.scan(lambda c, x: (f(c).astype(c.dtype), x), two, length=1)[0],
    "custom_vjp": lambda f: lambda g=ruled(f): rlx.grad(g)(two),
}


def ruled(f):
    g = rlx.custom_vjp(lambda x: f(x))
    g.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 2 * f(x) / x,))
    return g


@pytest.fixture(autouse=True)
def restored():
    tau, options = math.tau, np.get_printoptions()
    yield
    math.tau = tau
    np.set_printoptions(**options)
    for of in (np, rnp, builtins):
        for name in [n for n in vars(of) if n.startswith("captured_state")]:
            delattr(of, name)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", WAYS)
def test_a_change_is_seen(name, transform):
    f, change = WAYS[name]()
    change(VALUES[0])
    run = TRANSFORMS[transform](f)
    for v in VALUES:
        change(v)
        assert float(run()) == pytest.approx(4 * v, rel=1e-5)


def test_a_file_of_arrays_is_read_again(tmp_path):
    path = tmp_path / "w.safetensors"
    slope = rlx.grad(lambda x: rnp.sum(x * x * rlx.load_safetensors(path)["w"]))
    for v in VALUES:
        rlx.save_safetensors(path, {"w": np.full(3, v, np.float32)})
        np.testing.assert_allclose(slope(np.ones(3, np.float32)), np.full(3, 2 * v))


def test_programs_are_kept_of_functions_of_modules(monkeypatch):
    """Names of modules are compared, not traced again; those that the function does not read do not count."""
    held = module(s=2.0, inner=module(s=3.0), other=[1.0], **{f"n{i}": i for i in range(400)})
    traced = []
    trace = _jit.trace_leaves
    monkeypatch.setattr(_jit, "trace_leaves", lambda *args, **kwargs: (traced.append(0), trace(*args, **kwargs))[1])
    for f in (
        lambda x: x * held.s * held.inner.s,
        lambda x: x * held.s + sum(i for i in range(2)) * math.pi + rnp.sin(x) + rlx.nn.relu(x),
        lambda x: x * (lambda m: m.s)(held),
    ):
        slope = rlx.grad(f)
        traced.clear()
        for i in range(8):
            slope(two)
            held.other, held.n7 = [i], i
        assert len(traced) == 2


def test_a_function_that_writes_a_module_is_called_each_time():
    held = module(calls=0)

    def f(x):
        held.calls += 1
        return x * x * held.calls

    slope = rlx.grad(f)
    assert [float(slope(two)) for _ in range(6)] == [4.0 * n for n in range(1, 7)]


def test_instructions_that_open_a_function():
    """Their names are those of this version of Python."""

    def caught(x):
        try:
            return x.s
        except AttributeError:
            return x

    def entered(x):
        with x:
            return x

    def written(x):
        x.s = 1

    def plain(x):
        return [i for i in x] + list(k for k in x)

    from rlx import _captures

    opened = {f.__name__: _captures._read(f.__code__)[1] for f in (caught, entered, written, plain)}
    assert opened == {"caught": True, "entered": True, "written": True, "plain": False}
