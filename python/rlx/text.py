"""Tokenisers and chat templates of language models: text in, token ids out, and back."""

from ._rlx import ChatTemplate, StreamDecoder, Tokenizer

__all__ = ["ChatTemplate", "StreamDecoder", "Tokenizer"]
