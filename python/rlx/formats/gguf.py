"""GGUF files: metadata as a dict, tensors as arrays, and writing them."""

from .. import _rlx
from .._rlx import GgufFile, GgufTensor

__all__ = ["GgufFile", "GgufTensor", "open", "save"]


def open(path):
    """The GGUF file at path, mapped; with any part of a split one all others."""
    return GgufFile(path)


def save(path, tensors, metadata=None):
    """Writes a GGUF file of version 3; path has what it had before until all is written.

    tensors: name -> array, or name -> (array, type) with a type such as "F16", "Q8_0" or "Q4_K"
    metadata: key -> bool, int (u32 where it can be), float (f32), text or a list of one of these; NumPy's numbers and
        arrays keep their own width
    """
    _rlx.gguf_save(path, tensors, {} if metadata is None else metadata)
