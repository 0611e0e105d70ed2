"""Tokenizers and chat templates of language models."""

from ._rlx import ChatTemplate, StreamDecoder, Tokenizer
from ._names import accept_names as _accept_names

__all__ = ["ChatTemplate", "StreamDecoder", "Tokenizer"]

_accept_names(globals())
