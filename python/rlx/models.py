"""Language models: loads a Hugging Face folder or a GGUF file; generates text, tokens or logits.

    model = rlx.models.load("model.gguf")
    for chunk in model.chat("Why is the sky blue?", temperature=0.7, seed=1):
        print(chunk, end="", flush=True)

docs/generation.md describes the samplers, docs/language_models.md the model families.
"""

import warnings

from . import _rlx, hub
from ._names import accept_names as _accept_names, renamed_arguments
from ._rlx import Answer, Flow, Grammar, LanguageModel, Reranker, Sampler, SentenceEncoder, TextIndex

__all__ = [
    "Answer",
    "Conversation",
    "Flow",
    "Grammar",
    "LanguageModel",
    "Reranker",
    "Sampler",
    "SentenceEncoder",
    "TextIndex",
    "convert",
    "load",
]


async def _chunks(self):
    """The chunks for `async for`. Each step runs on another thread. Leaving the loop early cancels the answer."""
    import asyncio

    end = object()
    try:
        while (chunk := await asyncio.to_thread(next, self, end)) is not end:
            yield chunk
    finally:
        self.close()


def _whole_text(self):
    """The text of the whole answer, which runs to its end: print(model.chat("..."))."""
    return self.finish().text


Answer.__aiter__ = _chunks
Answer.__str__ = _whole_text


def _found_adapters(given):
    """The adapters with the paths of those that a hub has; the extension checks the rest."""
    if isinstance(given, dict):
        return {name: _found_adapters(parts) for name, parts in given.items()}
    if isinstance(given, (list, tuple)):
        found = [_found_adapters(part) for part in given]
        return tuple(found) if isinstance(given, tuple) else found
    return hub.find(given)


@renamed_arguments(products="matmul_precision", forms="packed_weights", verify_forms="verify_packed_weights")
def load(
    path,
    *,
    context=0,
    cache="f32",
    matmul_precision="auto",
    device="cpu",
    threads=0,
    sequences=1,
    max_tokens=512,
    page=64,
    pages=0,
    prefix_cache=True,
    device_options=None,
    adapters=None,
    draft=None,
    draft_tokens=8,
    lookup=0,
    check_memory=True,
    memory_limit=None,
    whole_windows=False,
    packed_weights=None,
    verify_packed_weights=False,
):
    """Loads the language model of a Hugging Face folder (config.json, *.safetensors, tokenizer.json), a GGUF file, or a
    name on a hub, "org/name" or "org/name:FILE" (rlx.hub).

    context: the largest number of tokens of a sequence; 0: that of the model, at most 4096
    cache: the type of keys and values in the cache: "f32", "bf16", "f16", "q8_0" or "q4_0"
    matmul_precision: "exact", or "bf16" or "int8", which round the operands of matmuls; "auto": int8 for quantized GGUF
        files, bf16 for weights in bf16, else exact
    device: one of rlx.devices(); device_options: options of its backend
    threads: the number of threads; 0: all cores
    sequences: the number of answers that run at once; further answers wait
    max_tokens: the largest number of tokens of a run; longer prompts run in chunks
    page, pages: the tokens of a page of the KV cache, and the number of pages of all sequences; 0: enough for all
    prefix_cache: keys and values of equal beginnings of prompts are computed once
    adapters: LoRA adapters in the format of PEFT: {name: folder} for answers that select one with adapter=name; or one
        folder or a list of them, which are added up, for all answers except those with adapter=None. A folder may be
        (folder, scale)
    draft: a small model with the same vocabulary for speculative decoding; the answers stay the same
    draft_tokens: the largest number of drafted tokens
    lookup: drafts the tokens that followed an earlier occurrence of the last `lookup` or more tokens; 0: off
    check_memory: raises an error before the load if the model cannot fit into memory
    memory_limit: the limit of that check in bytes, for each model; None: the available memory of the device
    whole_windows: layers with sliding windows keep the keys of the whole context
    packed_weights: a folder for packed weights, which later loads map instead of packing again
    verify_packed_weights: reads all packed weights first and compares their checksums
    """
    model = _rlx.load_language_model(
        hub.find(path),
        dict(
            context=context,
            cache=cache,
            matmul_precision=matmul_precision,
            device=device,
            device_options=device_options,
            threads=threads,
            sequences=sequences,
            max_tokens=max_tokens,
            page=page,
            pages=pages,
            prefix_cache=prefix_cache,
            adapters=_found_adapters(adapters),
            draft=hub.find(draft),
            draft_tokens=draft_tokens,
            lookup=lookup,
            check_memory=check_memory,
            memory_limit=memory_limit,
            whole_windows=whole_windows,
            packed_weights=packed_weights,
            verify_packed_weights=verify_packed_weights,
        ),
    )
    for problem in model.problems + model.packed_weight_problems:
        warnings.warn(problem, RuntimeWarning, stacklevel=4)
    return model


def convert(source, target, *, type=None, head_type=None, importance="", threads=0, split_max_bytes=0, note=None):
    """Converts the model in `source`, a folder, a GGUF file or a name on a hub, and writes it to `target`: a GGUF
    file if the name ends with .gguf, else a folder.

    type: the type of the matrices, "Q8_0", "Q4_K", "BF16", ...; None: unchanged
    head_type: the type of the output matrix; None: at least Q6_K
    importance: a GGUF or safetensors file with a weight for each column of each matrix
    split_max_bytes: the largest number of tensor bytes in a file; 0: one file
    note: a function that is called with messages for the user, for example that a matrix got another type
    """
    _rlx.convert_model(
        hub.find(source),
        target,
        type=type,
        head_type=head_type,
        importance=str(importance),
        threads=threads,
        split_max_bytes=split_max_bytes,
        note=note,
    )


def _check_model(model, what):
    if not isinstance(model, LanguageModel):
        raise TypeError(f"{what}: model must be what rlx.models.load returns, got {model!r} ({type(model).__name__})")


class Conversation:
    """A conversation: say(text) returns the answer as an iterator and keeps both messages.

    system: the system message
    options: options of each answer, as of LanguageModel.generate
    """

    def __init__(self, model, system=None, **options):
        _check_model(model, "Conversation")
        self.model, self.options = model, options
        self.messages = [] if system is None else [{"role": "system", "content": system}]
        self._said = []  # the last answer, or the text of a file

    @classmethod
    def load(cls, model, path, **options):
        """Loads the conversation in a file of save(), of rlx chat or of rlx generate."""
        _check_model(model, "Conversation.load")
        said, messages = model._load_state(path)
        if not messages:
            raise ValueError(f"{path} has a text and not a conversation: model.load_state reads its tokens")
        talk = cls(model, **options)
        talk.messages, talk._said = messages, said
        return talk

    def save(self, path):
        """Writes the messages and their keys and values to a file. Returns the number of tokens whose keys and values
        were written.
        """
        return self.model.save_state(path, self._said, self.messages)

    def say(self, text, **options):
        """The answer to this text, an iterator over chunks of text. The messages are kept when it ends, is closed early
        or raises an exception. An iterator that never started changes nothing.
        """
        asked = [*self.messages, {"role": "user", "content": text}]
        return self._chunks(self.model.chat(asked, **{**self.options, **options}), asked)

    def _chunks(self, answer, asked):
        try:
            yield from answer
        finally:
            answer.close()
            self.messages = [*asked, {"role": "assistant", "content": answer.text}]
            self._said = answer


_accept_names(globals())
