"""Files of models."""

from . import gguf

__all__ = ["gguf"]
