"""jax._src.config: every flag exists; those that mean something for rlx act on it."""

import contextlib
import enum

import rlx

_VALUES = {
    "jax_enable_x64": False,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_disable_jit": False,
    "jax_debug_nans": False,
    "jax_threefry_partitionable": True,
    "jax_default_prng_impl": "threefry2x32",
    "jax_legacy_prng_key": "allow",
    "jax_enable_custom_prng": False,
    "jax_default_matmul_precision": None,
    "jax_num_cpu_devices": 1,
    "jax_custom_vjp3": False,
    "jax_remat3": False,
    "jax_custom_jvp3": False,
}


class _State:
    """A flag: .value, and a context that sets it."""

    def __init__(self, name):
        self._name = name

    @property
    def value(self):
        return _VALUES.get(self._name)

    @contextlib.contextmanager
    def __call__(self, value=True):
        old = _VALUES.get(self._name)
        _VALUES[self._name] = value
        try:
            with _effect(self._name, value):
                yield
        finally:
            _VALUES[self._name] = old

    def _set(self, value):
        _VALUES[self._name] = value

    set_global = set_local = _set

    def get_global(self):
        return self.value

    get_local = get_global


def _effect(name, value):
    if name == "jax_disable_jit" and value:
        return rlx.disable_jit()
    if name == "jax_debug_nans" and value:
        return rlx.debug_nans()
    return contextlib.nullcontext()


class _States(dict):
    def __missing__(self, name):
        self[name] = _State(name)
        return self[name]


config_states = _States()


class _Flag:
    def __init__(self, value):
        self.value = value


def string_flag(name, default, *args, **kwargs):
    return _Flag(default)


int_flag = float_flag = bool_flag = enum_flag = string_flag


def bool_env(name, default):
    import os

    return os.environ.get(name, str(default)).lower() in ("1", "true", "yes")


def int_env(name, default):
    import os

    return int(os.environ.get(name, default))


def bool_state(name, default=False, **kwargs):
    _VALUES.setdefault(name, default)
    return config_states[name]


int_state = enum_state = string_state = bool_state


class _Config:
    values = {}  # the flags that a test may not change for others: none is shared here
    _contextmanager_flags = set()

    def update(self, name, value):
        _VALUES[name] = value

    def parse_flags_with_absl(self):
        pass

    config_with_absl = parse_flags_with_absl

    def read(self, name):
        return _VALUES.get(name)

    _read = read

    def __getattr__(self, name):
        if name.startswith("jax_"):
            return _VALUES.get(name)
        if name == "x64_enabled":
            return bool(_VALUES.get("jax_enable_x64"))
        raise AttributeError(name)


config = _Config()
update = config.update
parse_flags_with_absl = config.parse_flags_with_absl
_read = config.read


def __getattr__(name):  # enable_x64, debug_nans, ... are the states jax_enable_x64, jax_debug_nans, ...
    return config_states[f"jax_{name}"]


class ExplicitX64Mode(enum.Enum):
    ALLOW = "allow"
    WARN = "warn"
    ERROR = "error"
