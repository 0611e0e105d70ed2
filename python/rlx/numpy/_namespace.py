"""What the Python array API standard asks of a namespace besides its functions."""

from .. import _rlx
from ._dtypes import _ARRAY_API as _KINDS

API_VERSION = "2024.12"
# The dtypes that the standard knows: bfloat16, float16 and the storage dtypes are beyond it.
_STANDARD = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128""".split()


class _Info:
    """Devices, dtypes and capabilities, as the array API standard asks for them."""

    __module__ = "rlx.numpy"

    def capabilities(self):
        """What the library can do: outside of compiled functions shapes may depend on values."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self):
        """The device of new arrays."""
        return "cpu"

    def devices(self):
        """The devices that hold arrays."""
        return [d["name"] if isinstance(d, dict) else getattr(d, "name", d) for d in _rlx.devices()]

    def default_dtypes(self, *, device=None):
        """The dtypes of new arrays for which none is stated."""
        names = {
            "real floating": "float32",
            "complex floating": "complex64",
            "integral": "int32",
            "indexing": "int32",
        }
        return {kind: _rlx.dtype(name) for kind, name in names.items()}

    def dtypes(self, *, device=None, kind=None):
        """The dtypes of the standard by name: all, or those of a kind such as "real floating", or of several kinds."""
        kinds = _KINDS if kind is None else kind if isinstance(kind, tuple) else (kind,)
        for k in kinds:
            if k not in _KINDS:
                raise ValueError(f"dtypes: kind {k!r}; the kinds are {', '.join(_KINDS)}")
        wanted = "".join(_KINDS[k] for k in kinds)
        return {name: _rlx.dtype(name) for name in _STANDARD if _rlx.dtype(name).kind in wanted}


def __array_namespace_info__():
    """Devices, dtypes and capabilities of this namespace."""
    return _Info()
