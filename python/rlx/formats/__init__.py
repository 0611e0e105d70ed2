"""Model file formats."""

from . import gguf

__all__ = ["gguf"]
