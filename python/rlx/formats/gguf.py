"""GGUF files: reads metadata as a dict and tensors as arrays, and writes files."""

import warnings

from .. import _rlx
from .._rlx import GgufFile, GgufTensor
from .._names import accept_names as _accept_names

__all__ = ["GgufFile", "GgufTensor", "open", "save"]


def open(path):
    """Maps the GGUF file at path. Any shard of a split file opens all of them."""
    return GgufFile(path)


def save(path, tensors, metadata=None):
    """Writes a GGUF file of version 3. The old file at path is replaced when all is written.

    tensors: name -> array, or name -> (array, type) with a type such as "F16", "Q8_0" or "Q4_K"
    metadata: key -> bool, int (u32 if it fits), float (f32), str, or a list of one of these; NumPy numbers and arrays
        keep their width

    A tensor whose relative error, ||written - given|| / ||given||, is larger than its type has for usual weights is
    warned of: more than 4 / 2^b for b bits a weight (18 % in Q4_0, 1.1 % in Q8_0), 0.1 % in F16, 0.8 % in BF16. It is
    an error if weights would become infinite, if all of them would be lost, or if an integer type cannot hold a value.
    """
    for problem in _rlx.gguf_save(path, tensors, {} if metadata is None else metadata):
        warnings.warn(problem, RuntimeWarning, stacklevel=3)


_accept_names(globals())
