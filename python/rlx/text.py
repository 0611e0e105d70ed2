"""Tokenizers and chat templates of language models."""

from ._rlx import ChatTemplate, StreamDecoder, Tokenizer

__all__ = ["ChatTemplate", "StreamDecoder", "Tokenizer"]
