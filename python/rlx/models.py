"""Language models: a Hugging Face folder or a GGUF file in, text, tokens or logits out.

    model = rlx.models.load("model.gguf")
    for piece in model.chat("Why is the sky blue?", temperature=0.7, seed=1):
        print(piece, end="", flush=True)

docs/generation.md has the samplers, docs/language_models.md the families that are read.
"""

import warnings

from . import _rlx
from ._rlx import Answer, Flow, Grammar, LanguageModel, Reranker, Sampler, SentenceEncoder

__all__ = [
    "Answer",
    "Conversation",
    "Flow",
    "Grammar",
    "LanguageModel",
    "Reranker",
    "Sampler",
    "SentenceEncoder",
    "convert",
    "load",
]


async def _pieces(self):
    """The pieces for `async for`; each step is on another thread, and what ends the loop early ends the answer."""
    import asyncio

    end = object()
    try:
        while (piece := await asyncio.to_thread(next, self, end)) is not end:
            yield piece
    finally:
        self.close()


Answer.__aiter__ = _pieces


def load(
    path,
    *,
    context=0,
    cache="f32",
    products="auto",
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
    forms=None,
    verify_forms=False,
):
    """The language model in a Hugging Face folder (config.json, *.safetensors, tokenizer.json) or a GGUF file.

    context: tokens that a sequence may have; 0: as many as the model is good for, at most 4096
    cache: what keys and values are kept as: "f32", "bf16", "f16", "q8_0" or "q4_0"
    products: "exact", or "bf16" and "int8", which round what they read; "auto": int8 for GGUF in blocks,
        bf16 for weights in bf16, else exact
    device: one of rlx.devices(); device_options: of its backend
    threads: 0 for all cores
    sequences: how many answers run at once; others wait
    max_tokens: of one run; longer prompts are run in chunks
    page, pages: tokens of a page of the cache, and pages of all sequences together, 0 for enough
    prefix_cache: prompts that begin alike are computed once
    adapters: LoRA adapters in PEFT's layout: {name: folder}, for answers that ask for one with adapter=name; or one
        folder or a list of them, added up, for all answers that do not say adapter=None. One may be (folder, scale)
    draft: a small model of the same vocabulary that drafts tokens; answers are the same and may come sooner
    draft_tokens: of a draft at most
    lookup: draft what followed where the text ended the same way before, in this many tokens or more; 0: off
    check_memory: an error, before anything is loaded, where a model cannot fit into memory
    memory_limit: bytes that each model may need then; None: as many as the device has available
    whole_windows: layers with a window keep the keys of the whole context
    forms: a folder that keeps the weights as products read them, from where later starts map them
    verify_forms: read all of them first, and compare their checksums
    """
    model = _rlx.load_language_model(
        path,
        dict(
            context=context,
            cache=cache,
            products=products,
            device=device,
            device_options=device_options,
            threads=threads,
            sequences=sequences,
            max_tokens=max_tokens,
            page=page,
            pages=pages,
            prefix_cache=prefix_cache,
            adapters=adapters,
            draft=draft,
            draft_tokens=draft_tokens,
            lookup=lookup,
            check_memory=check_memory,
            memory_limit=memory_limit,
            whole_windows=whole_windows,
            forms=forms,
            verify_forms=verify_forms,
        ),
    )
    for problem in model.form_problems:
        warnings.warn(problem, RuntimeWarning, stacklevel=2)
    return model


def convert(source, target, *, type=None, head_type=None, importance="", threads=0, split_max_bytes=0, note=None):
    """Writes the model in source, a folder or a GGUF file, as target: a GGUF file if it ends in .gguf, else a folder.

    type: of the matrices, "Q8_0", "Q4_K", "BF16", ...; None: they stay what they are
    head_type: of the output matrix; None: at least Q6_K
    importance: a GGUF or safetensors file with a weight for each column of each matrix
    split_max_bytes: of tensors in one file; 0: all go into one
    note: called with texts that the user should know, such as a matrix that got another type
    """
    _rlx.convert_model(
        source,
        target,
        type=type,
        head_type=head_type,
        importance=str(importance),
        threads=threads,
        split_max_bytes=split_max_bytes,
        note=note,
    )


class Conversation:
    """Messages that grow: say(text) gives the answer as it comes, and keeps both.

    system: what the model is told first
    options: of each answer, as of LanguageModel.generate
    """

    def __init__(self, model, system=None, **options):
        self.model, self.options = model, options
        self.messages = [] if system is None else [{"role": "system", "content": system}]
        self._said = []  # the answer that came last, or the text of a file

    @classmethod
    def load(cls, model, path, **options):
        """The conversation in a file of save(), of rlx chat or of rlx generate."""
        said, messages = model._load_state(path)
        if not messages:
            raise ValueError(f"{path} holds a text, no conversation of turns: model.load_state reads its tokens")
        talk = cls(model, **options)
        talk.messages, talk._said = messages, said
        return talk

    def save(self, path):
        """Writes the messages with the model's keys and values of them; how many tokens these are of."""
        return self.model.save_state(path, self._said, self.messages)

    def say(self, text, **options):
        """The answer to this text, an iterator of pieces. It is kept when it ends, also where it is closed early or an
        exception ends it; one that never began leaves the messages as they were.
        """
        asked = [*self.messages, {"role": "user", "content": text}]
        return self._pieces(self.model.chat(asked, **{**self.options, **options}), asked)

    def _pieces(self, answer, asked):
        try:
            yield from answer
        finally:
            answer.close()
            self.messages = [*asked, {"role": "assistant", "content": answer.text}]
            self._said = answer
