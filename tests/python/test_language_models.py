"""Language models beside NumPy and the command: logits, answers, samplers."""

import subprocess

import numpy as np
import pytest
import tiny_model
from language_model import CLI, SETTINGS, TEXT, closeness

import rlx
import rlx.models
import rlx.numpy as rnp

# -- logits --


def test_logits_are_those_of_numpy(model, weights):
    tokens = np.random.default_rng(1).integers(0, tiny_model.VOCAB, 50)
    want = tiny_model.numpy_logits(weights, tokens)
    model.reset()
    whole = model.logits(tokens)
    assert isinstance(whole, rlx.Array) and whole.dtype == "float32"
    assert closeness(whole, want) < 2e-5
    assert model.length() == 50
    model.truncate(20)
    assert model.length() == 20 and model.length(1) == 0
    # From there on, in another split and another integer type: the same bits.
    parts = [model.logits(tokens[20:23].astype(np.uint8)), model.logits(tokens[23:50].tolist())]
    assert np.array_equal(np.concatenate([np.asarray(p) for p in parts]), np.asarray(whole)[20:])
    assert np.array_equal(model.logits(rnp.asarray(tokens.astype(np.int32)), sequence=2), whole)
    model.reset()
    assert [model.length(s) for s in range(3)] == [0, 0, 0]
    assert np.array_equal(model.logits(tokens, rows="last"), np.asarray(whole)[-1:])
    model.reset()


@pytest.mark.parametrize("cache, limit", [("f32", 2e-5), ("bf16", 3e-2), ("f16", 3e-3), ("q8_0", 3e-2), ("q4_0", 0.5)])
def test_caches(folder, weights, cache, limit):
    m = rlx.models.load(folder, cache=cache, context=64, threads=1)
    tokens = list(range(40, 80))
    assert closeness(m.logits(tokens), tiny_model.numpy_logits(weights, tokens)) < limit
    f32 = tiny_model.LAYERS * 2 * 64 * tiny_model.KV * tiny_model.DIM * 4
    assert m.cache_bytes == f32 * {"f32": 1, "bf16": 1 / 2, "f16": 1 / 2, "q8_0": 34 / 128, "q4_0": 18 / 128}[cache]


@pytest.mark.parametrize("products, limit", [("auto", 0.03), ("exact", 2e-5), ("bf16", 0.03), ("int8", 0.03)])
def test_gguf_files(gguf, tmp_path, products, limit):
    rlx.models.convert(gguf, tmp_path / "numbers", type="F32")
    numbers = rlx.load_safetensors(tmp_path / "numbers" / "model.safetensors")
    decoded = {name: np.asarray(a) for name, a in numbers.items()}
    m = rlx.models.load(gguf, matmul_precision=products)
    tokens = list(range(40, 80))
    assert closeness(m.logits(tokens), tiny_model.numpy_logits(decoded, tokens)) < limit
    assert m.config["family"] == "llama" and m.chat_template is not None
    assert m.tokenizer.encode(TEXT).tolist() == rlx.models.load(gguf).tokenizer.encode(TEXT).tolist()


# -- answers --


def test_the_likeliest_tokens_are_those_of_numpy(model, weights):
    prompt = model.tokenizer.encode("Once upon a time")
    want = tiny_model.greedy(weights, prompt, 24)
    answer = model.generate(prompt, temperature=0, max_new_tokens=24, stop_tokens=[])
    pieces = list(answer)
    assert answer.tokens.tolist() == want and answer.tokens.dtype == np.int32
    assert answer.text == "".join(pieces) == model.tokenizer.decode(want) and all(pieces)
    assert answer.finish_reason == "max_tokens" and answer.prompt_tokens == len(prompt)
    by_text = model.generate("Once upon a time", temperature=0.0, max_new_tokens=24, stop_tokens=[]).finish()
    assert by_text.tokens.tolist() == want


@pytest.mark.parametrize("options", SETTINGS)
def test_answers_are_those_of_the_program(folder, gguf, options):
    if not CLI.exists():
        pytest.skip(f"{CLI} is not built")
    for path in (folder, gguf):
        given = [f"--{k.replace('_', '-')}={v}" for k, v in options.items()]
        command = [CLI, "generate", path, TEXT, "--raw", "-n", "30", *given]
        done = subprocess.run([str(c) for c in command], capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
        answer = rlx.models.load(path).generate(TEXT, max_new_tokens=30, **options).finish()
        shown = answer.text if answer.text.endswith("\n") else answer.text + "\n"
        assert done.stdout.decode() == shown
        chat = subprocess.run(
            [str(c) for c in [CLI, "generate", path, TEXT, "-n", "9", *given]], capture_output=True, timeout=120
        )
        said = rlx.models.load(path).chat(TEXT, max_new_tokens=9, **options).finish().text
        assert chat.stdout.decode() == (said if said.endswith("\n") else said + "\n")


def test_the_text_of_an_answer(model):
    """print(model.chat(...)) runs the answer to its end; what was read before is not lost."""
    options = dict(max_new_tokens=6, temperature=0)
    whole = "".join(model.chat("hi", **options))
    started = model.chat("hi", **options)
    next(started)
    assert str(model.chat("hi", **options)) == f"{started}" == started.text == whole
    assert repr(started).startswith("<rlx answer of 6 tokens")


def test_messages_go_through_the_template(model):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    text = "<system>Be brief.<user>Hello<assistant>"
    assert model.chat_template.render(messages) == text
    wanted = model.generate(model.tokenizer.encode(text), temperature=0, max_new_tokens=5).finish()
    for answer in (model.generate(messages, temperature=0, max_new_tokens=5), model.chat(messages, temperature=0)):
        answer = answer.finish()
        assert answer.tokens[:5].tolist() == wanted.tokens.tolist()
        assert answer.prompt_tokens == len(model.tokenizer.encode(text))
    one = model.chat("Hello", temperature=0, max_new_tokens=5, add_generation_prompt=False).finish()
    assert one.prompt_tokens == len(model.tokenizer.encode("<user>Hello"))


def test_a_batch_is_what_each_would_be_alone(model):
    prompts = ["a", "Once upon", [5, 6, 7], np.array([9, 9], np.int64), [{"role": "user", "content": "x"}], "b" * 90]
    many = model.generate_batch(prompts, seed=11, temperature=1.2, max_new_tokens=17)
    assert [a.finish_reason is not None for a in many] == [True] * 6
    for prompt, answer in zip(prompts, many):
        alone = model.generate(prompt, seed=11, temperature=1.2, max_new_tokens=17).finish()
        assert answer.tokens.tolist() == alone.tokens.tolist() and answer.text == alone.text


def test_answers_run_together_whichever_is_asked(model):
    before = model.statistics["runs"]
    first, second = (model.generate(p, temperature=0, max_new_tokens=40, stop_tokens=[]) for p in ("abc", "xyz"))
    first.finish()
    runs = model.statistics["runs"] - before
    assert runs <= 42 and second.tokens.tolist() == []
    second.finish()
    assert len(second.tokens) == 40 and model.statistics["runs"] - before == runs


def test_stop_strings_and_tokens(model):
    plain = model.generate("ab", seed=1, max_new_tokens=40, stop_tokens=[]).finish()
    stop = plain.text[7:10]
    answer = model.generate("ab", seed=1, max_new_tokens=40, stop_tokens=[], stop=stop).finish()
    assert answer.text == plain.text[: plain.text.index(stop)] and answer.finish_reason == "stop_string"
    token = int(plain.tokens[5])
    answer = model.generate("ab", seed=1, max_new_tokens=40, stop_tokens=np.array([token], np.int16)).finish()
    assert answer.finish_reason == "stop_token"
    assert answer.tokens.tolist() == plain.tokens.tolist()[: plain.tokens.tolist().index(token) + 1]
    same = model.generate(
        "ab", seed=np.uint64(1), max_new_tokens=np.int16(5), temperature=np.float32(1), stop_tokens=[]
    )
    assert same.finish().tokens.tolist() == plain.tokens.tolist()[:5]
    biased = model.generate("ab", temperature=0, max_new_tokens=4, logit_bias={np.int32(65): 1e4}).finish()
    assert biased.text == "AAAA"


def test_the_context_ends_an_answer(folder):
    m = rlx.models.load(folder, context=32)
    answer = m.generate("abcd", seed=3, stop_tokens=[]).finish()
    assert answer.finish_reason == "context_full" and len(answer.tokens) == 32 - 4


def test_pieces_are_whole_characters(model):
    # Bytes of two-byte characters alone, the first half of which is no text.
    bias = {b: (1e3 if b in (0xC3, 0xA9) else 0.0) for b in range(256)}
    answer = model.generate("é", seed=5, max_new_tokens=31, logit_bias=bias, stop_tokens=[])
    pieces = list(answer)
    assert "".join(pieces) == answer.text == model.tokenizer.decode(answer.tokens)
    for piece in pieces:
        piece.encode()


# -- samplers --


@pytest.mark.parametrize("options", SETTINGS)
def test_a_loop_of_ones_own_draws_the_same(model, options):
    prompt = model.tokenizer.encode("Once upon a time")
    answer = model.generate(prompt, max_new_tokens=20, stop_tokens=[], **options).finish()
    sampler = rlx.models.Sampler(**options)
    sampler.accept(prompt)
    model.reset()
    logits = model.logits(prompt)[-1]
    for token in answer.tokens:
        ids, chances = sampler.probabilities(logits)
        assert abs(chances.sum() - 1) < 1e-5 and (np.diff(chances) <= 0).all() and token in ids
        assert sampler.draw(logits) == token
        sampler.accept(token)
        logits = model.logits([token], rows="last")
    assert sampler.sequence.tolist() == [*prompt, *answer.tokens]
    model.reset()


def test_samplers_go_back_and_refuse():
    s = rlx.models.Sampler(top_k=2, repetition_penalty=2.0, seed=np.int64(1))
    logits = np.array([1.0, 3.0, 2.0, 0.5], np.float64)
    first = s.probabilities(logits)[0].tolist()
    s.accept(1)
    assert first == [1, 2] and s.probabilities(logits)[0].tolist() == [2, 1]
    s.rewind(1)
    assert s.probabilities(logits)[0].tolist() == first and s.sequence.tolist() == []
    for call, kind, words in (
        (lambda: s.draw(np.zeros((2, 3), np.float32)), ValueError, r"\[V\] or \[1, V\]"),
        (lambda: s.draw([1, 2]), ValueError, "must be floats"),
        (lambda: s.draw(None), TypeError, "None"),
        (lambda: s.draw([float("nan"), 1.0]), ValueError, "NaN"),
        (lambda: s.accept("a"), TypeError, "tokens must be a list"),
        (lambda: s.accept(1.5), TypeError, "tokens must be a list"),
        (lambda: s.rewind(1), ValueError, "1"),
        (lambda: s.rewind(-1), ValueError, "count must be 0 or more, got -1"),
        (lambda: rlx.models.Sampler(stop="x"), TypeError, "stop is an option of LanguageModel.generate"),
        (lambda: rlx.models.Sampler(colour=1), TypeError, "there is no option 'colour'"),
        (lambda: rlx.models.Sampler(top_p=-1), ValueError, "top_p is -1"),
    ):
        with pytest.raises(kind, match=words):
            call()
