from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from . import ArrayLike, CompiledGraph, Graph, Value
from . import Array as Array
from . import Error
from . import Reranker as Reranker
from . import SentenceEncoder as SentenceEncoder
from .text import ChatTemplate, Message, Tokenizer, Tokens

_Path = str | PathLike[str]
# A text or tokens, which are continued, or messages, which go through the chat template.
Prompt = str | bytes | Tokens | Sequence[Message]

class _IndexUpdate(TypedDict):
    files: int
    added: int
    changed: int
    removed: int
    passages: int
    embedded: int
    written: bool
    left_out: list[str]
    rebuilt: str

class _IndexMatch(TypedDict):
    score: float
    text: str
    places: list[tuple[str, int]]

class TextIndex:
    def __init__(self, path: _Path) -> None: ...
    @staticmethod
    def update(
        path: _Path,
        paths: _Path | Sequence[_Path],
        encoder: SentenceEncoder,
        *,
        globs: Sequence[str] = (),
        hidden: bool = False,
        ignore_files: bool = True,
        passages: str = "chunks",
        max_tokens: int = 256,
        overlap: int = 32,
        vectors: str = "f16",
        check_content: bool = False,
    ) -> _IndexUpdate: ...
    def search(self, encoder: SentenceEncoder, query: str, count: int = 5) -> list[_IndexMatch]: ...
    @property
    def num_files(self) -> int: ...
    @property
    def num_passages(self) -> int: ...
    @property
    def model(self) -> str: ...

class _SamplingOptions(TypedDict, total=False):
    seed: int
    temperature: float
    dynamic_range: float
    dynamic_exponent: float
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    top_n_sigma: float
    xtc_probability: float
    xtc_threshold: float
    penalty_window: int
    repetition_penalty: float
    frequency_penalty: float
    presence_penalty: float
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_window: int
    dry_breakers: Tokens
    mirostat: int
    mirostat_tau: float
    mirostat_eta: float
    logit_bias: Mapping[int, float]
    order: str | Sequence[str]

class _AnswerOptions(_SamplingOptions, total=False):
    max_new_tokens: int
    stop: str | Sequence[str]
    stop_tokens: Tokens
    grammar: str | bytes | Grammar | None
    json_schema: Mapping[str, Any] | bool | str | bytes | None
    adapter: str | None
    logprobs: int | None
    # Of messages alone.
    tools: Sequence[Any] | None
    documents: Sequence[Any] | None
    variables: Mapping[str, Any] | None
    template: str | None
    add_generation_prompt: bool
    special_tokens: Mapping[str, str] | None
    now: int | None

class Grammar:
    def __init__(self, text: str | bytes, root: str = "root") -> None: ...
    @staticmethod
    def json_schema(
        schema: Mapping[str, Any] | bool | str | bytes,
        *,
        whitespace: str = "flexible",
        max_whitespace: int = 64,
        closed: bool = False,
    ) -> Grammar: ...
    def matches(self, text: str | bytes) -> bool: ...

class Answer:
    def __iter__(self) -> Iterator[str]: ...
    def __next__(self) -> str: ...
    def __aiter__(self) -> AsyncIterator[str]: ...
    def __str__(self) -> str: ...
    def finish(self) -> Answer: ...
    def close(self) -> None: ...
    def __enter__(self) -> Answer: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> NDArray[np.int32]: ...
    @property
    def logprobs(self) -> NDArray[np.float64]: ...
    @property
    def top_logprobs(self) -> list[list[tuple[int, float]]]: ...
    @property
    def finish_reason(self) -> str | None: ...
    @property
    def error(self) -> Error | None: ...
    @property
    def prompt_tokens(self) -> int: ...
    @property
    def sequence(self) -> NDArray[np.int32]: ...

class LanguageModel:
    def generate(self, prompt: Prompt, **options: Unpack[_AnswerOptions]) -> Answer: ...
    def chat(self, messages: str | bytes | Sequence[Message], **options: Unpack[_AnswerOptions]) -> Answer: ...
    def generate_batch(self, prompts: Sequence[Prompt], **options: Unpack[_AnswerOptions]) -> list[Answer]: ...
    def logits(self, tokens: Tokens, *, rows: str = "all", sequence: int = 0, adapter: str | None = None) -> Array: ...
    def length(self, sequence: int = 0) -> int: ...
    def truncate(self, length: int, *, sequence: int = 0) -> None: ...
    def reset(self) -> None: ...
    def save_state(
        self, path: _Path, said: Answer | Tokens, messages: Sequence[Mapping[str, str]] | None = None
    ) -> int: ...
    def load_state(self, path: _Path) -> tuple[NDArray[np.int32], list[dict[str, str]]]: ...
    def resume(self, said: Answer | _Path, **options: Unpack[_AnswerOptions]) -> Answer: ...
    @property
    def adapters(self) -> list[str]: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def chat_template(self) -> ChatTemplate | None: ...
    @property
    def end_tokens(self) -> NDArray[np.int32]: ...
    @property
    def config(self) -> dict[str, Any]: ...
    @property
    def context(self) -> int: ...
    @property
    def sequences(self) -> int: ...
    @property
    def cache_bytes(self) -> int: ...
    @property
    def problems(self) -> list[str]: ...
    @property
    def packed_weight_problems(self) -> list[str]: ...
    @property
    def form_problems(self) -> list[str]: ...  # deprecated: packed_weight_problems
    @property
    def statistics(self) -> dict[str, int]: ...

class Sampler:
    def __init__(self, **options: Unpack[_SamplingOptions]) -> None: ...
    def draw(self, logits: ArrayLike) -> int: ...
    def probabilities(self, logits: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
    def chances(self, logits: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...  # deprecated: probabilities
    def accept(self, tokens: int | Tokens) -> None: ...
    def rewind(self, count: int) -> None: ...
    @property
    def sequence(self) -> NDArray[np.int32]: ...

class Conversation:
    model: LanguageModel
    options: dict[str, Any]
    messages: list[dict[str, str]]
    def __init__(self, model: LanguageModel, system: str | None = None, **options: Unpack[_AnswerOptions]) -> None: ...
    @classmethod
    def load(cls, model: LanguageModel, path: _Path, **options: Unpack[_AnswerOptions]) -> Conversation: ...
    def save(self, path: _Path) -> int: ...
    def say(self, text: str, **options: Unpack[_AnswerOptions]) -> Iterator[str]: ...

class Flow:
    def __init__(self, graph: Graph, weights: _Path | Mapping[str, ArrayLike]) -> None: ...
    def has(self, name: str) -> bool: ...
    def weight(self, name: str, shape: Sequence[int]) -> Value: ...
    def embed(self, name: str, ids: ArrayLike, rows: int, width: int) -> Value: ...
    def linear(self, x: ArrayLike, name: str, out: int, *, bias: bool = False, in_out: bool = False) -> Value: ...
    def norm(
        self, x: ArrayLike, name: str, *, kind: str = "rms", eps: float = 1e-6, bias: bool = False, offset: float = 0.0
    ) -> Value: ...
    def experts(self, names: Sequence[str], k: int, n: int) -> Value: ...
    def finish(self, model: str = "the model", *, ignored: Sequence[str] = ...) -> None: ...
    def load(self, program: CompiledGraph) -> int: ...

# A folder, or one and the factor of its change.
_Adapter = _Path | tuple[_Path, float]

def load(
    path: _Path,
    *,
    context: int = 0,
    cache: str = "f32",
    matmul_precision: str = "auto",
    device: str = "cpu",
    threads: int = 0,
    sequences: int = 1,
    max_tokens: int = 512,
    page: int = 64,
    pages: int = 0,
    prefix_cache: bool = True,
    device_options: dict[str, str] | None = None,
    adapters: Mapping[str, _Adapter | Sequence[_Adapter]] | _Adapter | Sequence[_Adapter] | None = None,
    draft: _Path | None = None,
    draft_tokens: int = 8,
    lookup: int = 0,
    check_memory: bool = True,
    memory_limit: int | None = None,
    whole_windows: bool = False,
    packed_weights: _Path | None = None,
    verify_packed_weights: bool = False,
    products: str = ...,  # deprecated: matmul_precision
    forms: _Path | None = ...,  # deprecated: packed_weights
    verify_forms: bool = ...,  # deprecated: verify_packed_weights
) -> LanguageModel: ...
def convert(
    source: _Path,
    target: _Path,
    *,
    type: str | None = None,
    head_type: str | None = None,
    importance: _Path = "",
    threads: int = 0,
    split_max_bytes: int = 0,
    note: Callable[[str], object] | None = None,
) -> None: ...
