"""rlx.models: logits beside NumPy, answers beside a plain loop and `rlx generate`, what iterators promise, misuse."""

import ast
import asyncio
import gc
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import tiny_model

import rlx
import rlx.formats
import rlx.models
import rlx.numpy as rnp

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLI = pathlib.Path(os.environ.get("RLX_CLI", ROOT / "build" / "dev" / "rlx"))
TEXT = "Then the other one said: thé end — 中文."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny") / "model"
    tiny_model.write(path)
    return path


@pytest.fixture(scope="module")
def weights():
    return tiny_model.weights()


@pytest.fixture(scope="module")
def model(folder):
    return rlx.models.load(folder, sequences=3)


@pytest.fixture(scope="module")
def gguf(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    rlx.models.convert(folder, path, type="Q8_0")
    return path


def closeness(ours, theirs):
    """The largest distance as a part of the largest logit; NaN is no closeness."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs)
    assert ours.shape == theirs.shape and np.isfinite(ours).all()
    return np.abs(ours - theirs).max() / np.abs(theirs).max()


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
    m = rlx.models.load(gguf, products=products)
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


SETTINGS = [
    dict(seed=7, temperature=0.8, top_k=40, top_p=0.9),
    dict(seed=2**64 - 1, min_p=0.05, repetition_penalty=1.2, penalty_window=-1, dynamic_range=0.3),
    dict(seed=3, mirostat=2, mirostat_tau=4.0),
    dict(seed=4, typical_p=0.9, xtc_probability=0.5, xtc_threshold=0.05, dry_multiplier=0.8, top_n_sigma=2.5),
    dict(seed=5, order="top_k;temperature", top_k=5, frequency_penalty=1.0),
]


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
        ids, chances = sampler.chances(logits)
        assert abs(chances.sum() - 1) < 1e-5 and (np.diff(chances) <= 0).all() and token in ids
        assert sampler.draw(logits) == token
        sampler.accept(token)
        logits = model.logits([token], rows="last")
    assert sampler.sequence.tolist() == [*prompt, *answer.tokens]
    model.reset()


def test_samplers_go_back_and_refuse():
    s = rlx.models.Sampler(top_k=2, repetition_penalty=2.0, seed=np.int64(1))
    logits = np.array([1.0, 3.0, 2.0, 0.5], np.float64)
    first = s.chances(logits)[0].tolist()
    s.accept(1)
    assert first == [1, 2] and s.chances(logits)[0].tolist() == [2, 1]
    s.rewind(1)
    assert s.chances(logits)[0].tolist() == first and s.sequence.tolist() == []
    for call, kind, words in (
        (lambda: s.draw(np.zeros((2, 3), np.float32)), ValueError, r"\[V\] or \[1, V\]"),
        (lambda: s.draw([1, 2]), ValueError, "are floats"),
        (lambda: s.draw(None), TypeError, "None"),
        (lambda: s.draw([float("nan"), 1.0]), ValueError, "NaN"),
        (lambda: s.accept("a"), TypeError, "tokens are a list"),
        (lambda: s.accept(1.5), TypeError, "tokens are a list"),
        (lambda: s.rewind(1), ValueError, "1"),
        (lambda: s.rewind(-1), ValueError, "count is -1"),
        (lambda: rlx.models.Sampler(stop="x"), TypeError, "stop is an option of answers"),
        (lambda: rlx.models.Sampler(colour=1), TypeError, "there is no option 'colour'"),
        (lambda: rlx.models.Sampler(top_p=-1), ValueError, "top_p is -1"),
    ):
        with pytest.raises(kind, match=words):
            call()


# -- iterators --


def test_closing_and_dropping(model):
    for end in (lambda a: a.close(), lambda a: a.__exit__(None, None, None)):
        answer = model.generate("abc", seed=1, stop_tokens=[])
        piece = next(answer)
        end(answer)
        assert answer.finish_reason == "cancelled" and answer.text == piece and list(answer) == []
        end(answer)
    with model.generate("abc", seed=1, stop_tokens=[]) as answer:
        assert next(answer) and iter(answer) is answer
    assert answer.finish_reason == "cancelled"
    dropped = model.generate("abc", seed=1, stop_tokens=[])
    next(dropped)
    del dropped
    gc.collect()
    model.logits([1, 2])  # nothing runs any more
    model.reset()
    done = model.generate("abc", seed=1, max_new_tokens=3).finish()
    done.close()
    assert done.finish_reason == "max_tokens"
    with pytest.raises(StopIteration):
        next(done)


def test_an_answer_keeps_its_model(folder):
    answer = rlx.models.load(folder).generate("abc", temperature=0, max_new_tokens=9, stop_tokens=[])
    gc.collect()
    assert len(answer.finish().tokens) == 9


def test_threads_share_a_model(model):
    prompts = [f"number {i}" for i in range(8)]
    alone = [model.generate(p, seed=i, max_new_tokens=25).finish().tokens.tolist() for i, p in enumerate(prompts)]
    found = [None] * len(prompts)

    def work(i):
        for _ in range(2):
            answer = model.generate(prompts[i], seed=i, max_new_tokens=25)
            text = "".join(answer)
            found[i] = answer.tokens.tolist() if text == answer.text else None

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(prompts))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert found == alone


def test_one_iterator_in_two_threads(model):
    whole = model.generate("abc", seed=2, max_new_tokens=60, stop_tokens=[]).finish()
    answer = model.generate("abc", seed=2, max_new_tokens=60, stop_tokens=[])
    seen = [[], []]
    threads = [threading.Thread(target=lambda s=s: s.extend(answer)) for s in seen]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert answer.text == whole.text and answer.tokens.tolist() == whole.tokens.tolist()
    assert sorted("".join(seen[0] + seen[1])) == sorted(whole.text)


def test_the_gil_is_free_during_a_step(folder):
    m = rlx.models.load(folder, threads=1)
    going, counted = threading.Event(), []

    def count():
        n = 0
        going.wait(30)
        while going.is_set():
            n += 1
        counted.append(n)

    thread = threading.Thread(target=count)
    thread.start()
    going.set()
    for _ in range(20):
        m.reset()
        m.logits(list(range(200)))
    going.clear()
    thread.join(30)
    assert counted[0] > 0


def test_async_for(model):
    async def said(answer):
        return [piece async for piece in answer]

    async def several():
        answers = [model.generate(p, seed=1, max_new_tokens=20, stop_tokens=[]) for p in ("ab", "cd")]
        return await asyncio.gather(*map(said, answers))

    wanted = [model.generate(p, seed=1, max_new_tokens=20, stop_tokens=[]).finish().text for p in ("ab", "cd")]
    assert ["".join(pieces) for pieces in asyncio.run(several())] == wanted

    async def stopped(answer):
        began = asyncio.Event()

        async def first_alone():
            async for _ in answer:
                began.set()
                await asyncio.sleep(3600)

        task = asyncio.create_task(first_alone())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    answer = model.generate("ab", seed=1, stop_tokens=[])
    asyncio.run(stopped(answer))
    assert answer.finish_reason == "cancelled" and answer.text
    model.logits([1])  # nothing runs any more
    model.reset()


def test_ctrl_c_ends_an_answer(folder, tmp_path):
    program = tmp_path / "endless.py"
    program.write_text(
        "import sys, rlx.models\n"
        "m = rlx.models.load(sys.argv[1])\n"
        "ask = lambda: m.generate('abc', temperature=0, stop_tokens=[], logit_bias={0xC3: 1e4})\n"
        "a = ask()\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    while True:\n"
        "        a.finish()\n"
        "        a = ask()\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', a.finish_reason, flush=True)\n"
        "a.close()\n"
        "print(len(m.generate('abc', temperature=0, max_new_tokens=4, stop_tokens=[]).finish().tokens))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(rlx.__file__).parent.parent)}
    run = subprocess.Popen(
        [sys.executable, program, folder],
        stdout=subprocess.PIPE,
        text=True,
        env=env,
        # A job in the background has it ignored, and Python then leaves it so.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert run.stdout.readline() == "ready\n"
        threading.Event().wait(0.3)
        run.send_signal(signal.SIGINT)
        rest, _ = run.communicate(timeout=60)
    finally:
        run.kill()
    assert rest.startswith("interrupted ") and rest.endswith("\n4\n")
    assert rest.split()[1] in ("cancelled", "context_full", "None")


def test_ctrl_c_ends_a_load(tmp_path, monkeypatch):
    monkeypatch.setattr(tiny_model, "LAYERS", 24)
    folder = tmp_path / "m"
    tiny_model.write(folder)
    # Python runs its handlers between calls. That it runs this one many times while one call lasts says that the call
    # asks for them, between parts of its work.
    seen, most = [], 0
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    over = threading.Event()

    def press():
        while not over.wait(0.0005):
            os.kill(os.getpid(), signal.SIGINT)

    presses = threading.Thread(target=press)
    presses.start()
    try:
        for _ in range(30):
            seen.clear()
            rlx.models.load(folder)
            most = max(most, len(seen))
            if most > 4:
                break
    finally:
        over.set()
        presses.join()
        signal.signal(signal.SIGINT, before)
    assert most > 4

    def press_once():
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, press_once)
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while True:
                rlx.models.load(folder)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert rlx.models.load(folder).generate("a", max_new_tokens=1, stop_tokens=[]).finish().tokens.size == 1


def test_a_conversation_that_was_loaded_is_saved_as_it_was(model, tmp_path):
    options = dict(mirostat=2, seed=5, stop_tokens=[])
    whole = model.chat([{"role": "user", "content": "Hello"}], max_new_tokens=24, **options).finish()
    talk = rlx.models.Conversation(model, **options)
    assert "".join(talk.say("Hello", max_new_tokens=6))
    talk.save(tmp_path / "first")
    again = rlx.models.Conversation.load(model, tmp_path / "first", **options)
    assert again.messages == talk.messages
    again.save(tmp_path / "second")
    rest = model.resume(tmp_path / "second", max_new_tokens=18, **options).finish()
    assert [*whole.tokens[:6], *rest.tokens] == [*whole.tokens]
    assert (tmp_path / "second").read_bytes() == (tmp_path / "first").read_bytes()


def test_conversations(model):
    talk = rlx.models.Conversation(model, system="Be brief.", temperature=0, max_new_tokens=6)
    first = "".join(talk.say("Hello"))
    assert [m["role"] for m in talk.messages] == ["system", "user", "assistant"]
    assert talk.messages[-1]["content"] == first
    text = model.chat_template.render([*talk.messages, {"role": "user", "content": "And?"}])
    reused = model.statistics["reused_tokens"]
    assert "".join(talk.say("And?", max_new_tokens=3)) == (
        model.generate(model.tokenizer.encode(text), temperature=0, max_new_tokens=3).finish().text
    )
    assert len(talk.messages) == 5 and model.statistics["reused_tokens"] >= reused
    with pytest.raises(TypeError):
        talk.say("x", colour=1)
    pieces = talk.say("once more")
    next(pieces)
    pieces.close()
    assert len(talk.messages) == 7


def test_what_is_said_of_a_model(model, folder):
    c = model.config
    assert c["family"] == "llama" and c["vocab_size"] == tiny_model.VOCAB and c["head_dim"] == tiny_model.DIM
    assert c["num_layers"] == len(c["layers"]) == tiny_model.LAYERS and c["ropes"][0]["theta"] == tiny_model.THETA
    assert model.context == tiny_model.CONTEXT and model.sequences == 3
    assert model.end_tokens.tolist() == [tiny_model.EOS]
    counted = "runs prompt_tokens reused_tokens generated_tokens preemptions drafted_tokens accepted_tokens"
    assert set(model.statistics) == set(counted.split())
    assert "llama" in repr(model) and "tokens" in repr(model.generate("a", max_new_tokens=1).finish())


def test_a_model_whose_files_hold_no_template(tmp_path):
    tiny_model.write(tmp_path / "m", template=False)
    m = rlx.models.load(tmp_path / "m")
    assert m.chat_template is None
    with pytest.raises(rlx.Unsupported, match="has no chat template"):
        m.chat("Hello")
    assert m.generate("Hello", max_new_tokens=2, stop_tokens=[]).finish().tokens.size == 2


# -- misuse --

TOKENS = {
    "not tokens": (rlx.DTypeMismatch, "tokens are a list of integers", 5),
    "none": (rlx.DTypeMismatch, "got None", None),
    "floats": (rlx.DTypeMismatch, r"array \[T\] of integers", np.array([1.0, 2.0])),
    "bools": (rlx.DTypeMismatch, "of integers", np.array([True])),
    "two axes": (rlx.DTypeMismatch, "of integers", np.zeros((2, 2), np.int32)),
    "a float in a list": (rlx.DTypeMismatch, "a token is an integer, got 1.5", [1, 1.5]),
    "a bool in a list": (rlx.DTypeMismatch, "a token is an integer", [True]),
    "too large": (rlx.InvalidArgument, "32 bits", [2**40]),
    "far too large": (rlx.InvalidArgument, "32 bits", [2**80]),
    "too large in an array": (rlx.InvalidArgument, "32 bits", np.array([2**40])),
    "no token of the model": (rlx.InvalidArgument, "ids 0 to 261", [262]),
    "negative": (rlx.InvalidArgument, "ids 0 to 261", np.array([-1])),
    "empty": (rlx.InvalidArgument, "no tokens", []),
    "an empty array": (rlx.InvalidArgument, "no tokens", np.array([])),
    "beyond the context": (rlx.InvalidArgument, "256", [1] * 257),
}


@pytest.mark.parametrize("name", TOKENS)
def test_wrong_tokens(model, name):
    kind, words, tokens = TOKENS[name]
    with pytest.raises(kind, match=words):
        model.generate(tokens)
    with pytest.raises(kind, match=words):
        model.logits(tokens)
    assert model.length() == 0


OPTIONS = {
    "an unknown option": (TypeError, "there is no option 'temprature'.*temperature", dict(temprature=1)),
    "a text for a number": (TypeError, "temperature takes a number, got 'hot'", dict(temperature="hot")),
    "a number in a text": (TypeError, "top_p takes a number", dict(top_p="0.5")),
    "a float for an integer": (TypeError, "top_k takes an integer of 32 bits, got 1.5", dict(top_k=1.5)),
    "a negative seed": (TypeError, "seed takes an integer from 0 to 2\\^64 - 1", dict(seed=-1)),
    "no temperature": (ValueError, "temperature is -1", dict(temperature=-1)),
    "NaN": (ValueError, "temperature is", dict(temperature=float("nan"))),
    "no step": (ValueError, "'topk' is no step", dict(order=["topk"])),
    "a stop of numbers": (TypeError, "stop must be a text, got 3", dict(stop=[3])),
    "an empty stop": (ValueError, "stop", dict(stop="")),
    "stops of nothing": (TypeError, "stop takes a text or a list of texts, got 3", dict(stop=3)),
    "a stop of bytes": (ValueError, "stop: invalid UTF-8 at byte 1", dict(stop=b"a\xff")),
    "a text for tokens": (TypeError, "max_new_tokens takes an integer of 64 bits, got '7'", dict(max_new_tokens="7")),
    "no such mirostat": (ValueError, "mirostat is 3", dict(mirostat=3)),
    "beyond 32 bits": (TypeError, "top_k takes an integer of 32 bits", dict(top_k=2**40)),
    "negative tokens": (ValueError, "max_new_tokens is -1", dict(max_new_tokens=-1)),
    "a bias of texts": (TypeError, "logit_bias takes", dict(logit_bias={1: "x"})),
    "tools for a text": (TypeError, "there is no option 'tools'", dict(tools=[])),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_wrong_options(model, name):
    kind, words, options = OPTIONS[name]
    with pytest.raises(kind, match=words):
        model.generate("abc", **options)
    model.logits([1])  # nothing was begun
    model.reset()


LOADS = {
    "no path": (FileNotFoundError, "nowhere", dict(path="nowhere")),
    "an empty folder": (rlx.NotFound, "config.json", dict(path=".")),
    "no cache type": (rlx.InvalidArgument, "cannot be kept as 'f8'", dict(cache="f8")),
    "a cache of large blocks": (rlx.InvalidArgument, "cache cannot hold q4_k", dict(cache="q4_k")),
    "no products": (rlx.InvalidArgument, "products 'int4'", dict(products="int4")),
    "no device": (rlx.DeviceUnavailable, "abacus", dict(device="abacus")),
    "no sequences": (rlx.InvalidArgument, "sequences must be in", dict(sequences=0)),
    "too few pages": (rlx.InvalidArgument, "page", dict(pages=1, page=64)),
    "an unknown keyword": (TypeError, "colour", dict(colour=1)),
    "a text for a number": (
        rlx.DTypeMismatch,
        "load: context must be an integer of 64 bits, got '5'",
        dict(context="5"),
    ),
    "a float for an integer": (rlx.DTypeMismatch, "load: threads must be an integer", dict(threads=1.5)),
    "no text": (rlx.DTypeMismatch, "load: cache must be a text, got None", dict(cache=None)),
    "no flag": (rlx.DTypeMismatch, "load: prefix_cache must be True or False", dict(prefix_cache=3)),
    "no path at all": (TypeError, "path", dict(path=5)),
    "wrong device options": (rlx.DTypeMismatch, "device_options", dict(device_options=3)),
}


@pytest.mark.parametrize("name", LOADS)
def test_wrong_loads(folder, tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kind, words, options = LOADS[name]
    with pytest.raises(kind, match=words):
        rlx.models.load(**{"path": folder, **options})


def test_wrong_conversations(model):
    for messages, kind, words in (
        (5, TypeError, "messages are a text or a list of dicts"),
        ([{"role": "user", "content": {1, 2}}], TypeError, "messages cannot be written as JSON"),
        ([{"role": "user", "content": float("nan")}], TypeError, "messages cannot be written as JSON"),
        ("a\ud800b", ValueError, "lone surrogate at character 1"),
        (b"a\xffb", ValueError, "UTF-8"),
    ):
        with pytest.raises(kind, match=words) as caught:
            model.chat(messages)
        assert isinstance(caught.value, rlx.Error)
    with pytest.raises(ValueError, match="lone surrogate at character 2"):
        model.generate("ab\udfff")
    with pytest.raises(ValueError, match="UTF-8"):
        model.generate(b"a\xff")
    for prompts in ("abc", 3, None):
        with pytest.raises(TypeError, match="must be a list of prompts"):
            model.generate_batch(prompts)


def test_logits_and_answers_do_not_mix(model):
    answer = model.generate("abc", seed=1, stop_tokens=[])
    next(answer)
    for call in (lambda: model.logits([1]), lambda: model.truncate(0), model.reset):
        with pytest.raises(rlx.InvalidArgument, match="requests to answer"):
            call()
    answer.close()
    model.logits([1, 2, 3])
    with pytest.raises(rlx.InvalidArgument, match="sequence 0 of the model has 3 tokens"):
        model.generate("abc")
    with pytest.raises(rlx.InvalidArgument):
        model.truncate(4)
    with pytest.raises(rlx.InvalidArgument):
        model.length(3)
    with pytest.raises(rlx.InvalidArgument, match="rows 'some'"):
        model.logits([1], rows="some")
    model.reset()
    assert model.generate("abc", max_new_tokens=1).finish().finish_reason in ("max_tokens", "stop_token")


def test_objects_cannot_be_made_by_hand():
    for kind in (rlx.models.LanguageModel, rlx.models.Answer):
        with pytest.raises(TypeError):
            kind()


# -- Flow --


def test_flow_builds_over_a_checkpoint(folder, gguf, weights):
    ids = np.array([3, 1, 4], np.int32)
    for source in (folder, folder / "model.safetensors", weights, gguf):
        g = rlx.Graph("head")
        flow = rlx.models.Flow(g, source)
        blocks = source is gguf
        table, head, norm = (
            ("token_embd.weight", "output", "output_norm")
            if blocks
            else ("model.embed_tokens.weight", "lm_head", "model.norm")
        )
        assert flow.has(head + ".weight") and not flow.has("nothing")
        x = flow.embed(table, g.input("ids", (3,), "int32"), tiny_model.VOCAB, tiny_model.HIDDEN)
        x = flow.norm(x, norm, eps=tiny_model.EPS)
        g.set_outputs(flow.linear(x, head, tiny_model.VOCAB))
        with pytest.raises(rlx.BadFile, match="belong to no part of a head"):
            flow.finish("a head")
        left = rlx.formats.gguf.open(gguf) if blocks else weights
        flow.finish("a head", ignored=[name for name in left if name.startswith(("blk.", "model.layers."))])
        program = rlx.Session().compile(g)
        assert flow.load(program) == 3 and program.unset_params() == []
        rows = weights["model.embed_tokens.weight"][ids].astype(np.float64)
        rows /= np.sqrt((rows**2).mean(-1, keepdims=True) + tiny_model.EPS)
        want = (rows * weights["model.norm.weight"]) @ weights["lm_head.weight"].T
        assert closeness(program.run(ids)[0], want) < (0.02 if blocks else 2e-5)
        with pytest.raises(rlx.InvalidArgument, match="was compiled"):
            flow.weight(table, (tiny_model.VOCAB, tiny_model.HIDDEN))


def test_flow_names_what_is_wrong():
    g = rlx.Graph()
    flow = rlx.models.Flow(g, {"a.weight": np.zeros((3, 2), np.float16), "b": np.zeros(3, np.int32)})
    x = g.input("x", (4, 2))
    y = flow.linear(x, "a", 5)
    assert y.shape == (4, 5)
    flow.weight("b", (3,)), flow.weight("c", (2, 2))
    with pytest.raises(rlx.BadFile, match=r"'c'.*'a.weight' is \[3, 2\], expected \[5, 2\].*'b' holds i32"):
        flow.finish()
    with pytest.raises(ValueError, match="none of rms and layer"):
        flow.norm(x, "a", kind="batch")
    with pytest.raises(rlx.InvalidArgument, match="no experts"):
        flow.experts([], 2, 3)
    for bad in (None, 3):
        with pytest.raises(TypeError):
            rlx.models.Flow(g, bad)
    with pytest.raises(TypeError, match="an rlx.Graph"):
        rlx.models.Flow(None, {})
    with pytest.raises(FileNotFoundError):
        rlx.models.Flow(g, "nowhere")


def test_flow_keeps_narrow_weights(tmp_path):
    w = {"w.weight": rlx.array(np.arange(6).reshape(3, 2), "bfloat16"), "w.bias": np.ones(3, np.float32)}
    g = rlx.Graph()
    flow = rlx.models.Flow(g, w)
    g.set_outputs(flow.linear(g.input("x", (1, 2)), "w", 3, bias=True))
    flow.finish()
    program = rlx.Session().compile(g)
    assert {name: str(dtype) for name, _, dtype in program.params} == {"w.weight": "bfloat16", "w.bias": "float32"}
    assert flow.load(program) == 2
    assert program.run([[1, 2]])[0].tolist() == [[3, 9, 15]]


# -- the page beside transformers and llama.cpp --

PAGE = ROOT / "docs" / "transformers_and_llama_cpp.md"


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.S | re.M)


@pytest.fixture
def beside_the_page(folder, gguf, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder, "model")
    shutil.copy(gguf, "model.gguf")
    pathlib.Path("text.txt").write_text(TEXT)


def test_the_python_of_the_page_runs(beside_the_page, capsys):
    ours, theirs = [], 0
    for block in blocks("python"):
        code = compile(block, str(PAGE), "exec")
        if "from transformers" in block or "from llama_cpp" in block:
            theirs += 1
        else:
            ours.append(code)
    assert len(ours) >= 5 and theirs == 2
    namespace = {}
    for code in ours:
        exec(code, namespace)  # noqa: S102
    assert "llama" in capsys.readouterr().out


def test_the_commands_of_the_page_run(beside_the_page):
    if not CLI.exists():
        pytest.skip(f"{CLI} is not built")
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("rlx ")]
    assert len(commands) >= 7
    for command in commands:
        words = shlex.split(command)
        limit = ["-n", "12"] if words[1] == "chat" else []
        done = subprocess.run(
            [str(CLI), *words[1:], *limit], input="Hello\nAnd?\n", capture_output=True, timeout=120, text=True
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout.strip() or words[1] == "convert", command


TYPED = """
import pathlib

import numpy as np
import rlx.formats
import rlx.models
import rlx.text

model = rlx.models.load("model", context=64, cache="q8_0", sequences=2)
answer = model.generate("abc", temperature=0.5, top_k=3, stop=["x"], logit_bias={1: 2.0}, seed=1)
pieces: list[str] = list(answer)
reason: str | None = answer.finish_reason
prompts: list[rlx.models.Prompt] = ["a", [1, 2], np.array([1], np.int64), [{"role": "user", "content": "x"}]]
more = model.generate_batch(prompts, max_new_tokens=3)
texts: list[str] = [a.text for a in more]
rows: rlx.Array = model.logits(model.tokenizer.encode("abc"), rows="last")
with model.chat([{"role": "user", "content": "x"}], tools=[]) as said:
    text: str = next(said)
file = rlx.formats.gguf.open("a.gguf")
shape: tuple[int, ...] = file.tensors[0].shape
rlx.formats.gguf.save("b.gguf", {"x": np.ones(3), "y": (file["x"], "Q8_0")}, {"n": 1})
flow = rlx.models.Flow(rlx.Graph("g"), {"w": np.ones(3)})
value: rlx.Value = flow.weight("w", (3,))
talk = rlx.models.Conversation(model, "Be brief.", temperature=0)
said_too: str = "".join(talk.say("x", seed=3))
token: int = rlx.models.Sampler(top_k=3, seed=1).draw(rows)
small = rlx.models.load("model", adapters={"a": "x", "b": [("y", 0.5), "z"]}, draft="d", lookup=3, memory_limit=1 << 30)
told: list[str] = rlx.models.load("model", forms=pathlib.Path("f"), verify_forms=True).form_problems
held = small.generate("abc", json_schema={"type": "object"}, adapter="a").finish()
wrong: rlx.Error | None = held.error
same = small.chat("x", grammar=rlx.models.Grammar('root ::= "a"'), adapter=None)
kept: int = small.save_state("s", held, [{"role": "user", "content": "x"}])
ids, said_before = small.load_state("s")
continued = small.generate(ids, grammar='root ::= "b"')
best: list[tuple[int, float]] = rlx.Reranker("r", activation="identity").rank("q", ["a", "b"], 1)
vectors: rlx.Array = rlx.SentenceEncoder("e", dimensions=8).embed(["a"], prompt_name="query")
template = model.chat_template
if template is not None:
    print(template.render("x", variables={"a": 1}), rlx.text.StreamDecoder(model.tokenizer).push(3))
"""
WRONGLY_TYPED = [
    'model.generate("abc", temperature="hot")',
    "model.generate(3)",
    'model.chat("x", colour=1)',
    "rlx.text.Tokenizer(3)",
    'rlx.models.Sampler(stop="x")',
    'model.generate("abc", json_schema=3)',
    'rlx.models.load("model", adapters=3)',
    'rlx.Reranker("r").rank("q", "a", "b")',
]


def test_the_stubs_name_every_option():
    stub = ast.parse((ROOT / "python" / "rlx" / "models.pyi").read_text())
    named = [n for n in stub.body if isinstance(n, ast.ClassDef) and n.name in ("_SamplingOptions", "_AnswerOptions")]
    names = {n.target.id for part in named for n in part.body if isinstance(n, ast.AnnAssign)}
    of_messages = {"tools", "documents", "variables", "template", "add_generation_prompt", "special_tokens", "now"}
    assert names == {*rlx._rlx.answer_options()} | of_messages


def test_the_stubs_say_what_is_taken(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    (tmp_path / "right.py").write_text(TYPED)
    (tmp_path / "wrong.py").write_text(TYPED + "\n".join(WRONGLY_TYPED) + "\n")
    env = {**os.environ, "MYPYPATH": str(ROOT / "python"), "MYPY_CACHE_DIR": os.devnull}
    command = [sys.executable, "-m", "mypy", "--strict", "right.py", "wrong.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    first = len(TYPED.splitlines()) + 1
    faults = {tuple(line.split(":")[:2]) for line in done.stdout.splitlines() if ": error:" in line}
    assert faults == {("wrong.py", str(first + i)) for i in range(len(WRONGLY_TYPED))}, done.stdout
