"""What rlx.models holds answers to and speeds them up with: grammars, adapters, drafts, saved states, memory checks."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import threading
import warnings

import numpy as np
import pytest
from language_model import CLI, TEXT

import rlx
import rlx.models
import tiny_model

LONG = "the other one " * 9  # more than a page of tokens


def said_by_the_program(*arguments):
    if not CLI.exists():
        pytest.skip(f"{CLI} is not built")
    done = subprocess.run([str(CLI), *map(str, arguments)], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def shown(text):
    return text if text.endswith("\n") else text + "\n"


# -- grammars --

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "kind": {"enum": ["cat", "dog"]},
        "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
    },
    "required": ["name", "age", "kind", "tags"],
    "additionalProperties": False,
}
NO_SPACE = {byte: -1e4 for byte in b" \t\r\n"}  # else a random model writes pages of them


def is_person(text):
    p = json.loads(text)
    return (
        list(p) == ["name", "age", "kind", "tags"]
        and isinstance(p["name"], str)
        and 1 <= len(p["name"]) <= 6
        and type(p["age"]) is int
        and 0 <= p["age"] <= 120
        and p["kind"] in ("cat", "dog")
        and len(p["tags"]) <= 2
        and all(type(t) is bool for t in p["tags"])
    )


def test_answers_of_a_schema(model):
    grammar = rlx.models.Grammar.json_schema(PERSON)
    for seed in range(6):
        options = dict(seed=seed, temperature=1.5, logit_bias=NO_SPACE)
        answer = model.generate("A person:", json_schema=PERSON, **options).finish()
        assert is_person(answer.text) and grammar.matches(answer.text)
        assert answer.finish_reason in ("grammar_end", "stop_token") and answer.error is None
        for same in (
            dict(json_schema=json.dumps(PERSON)),
            dict(grammar=grammar),
            dict(grammar=grammar, json_schema=None),
        ):
            again = model.generate("A person:", **same, **options).finish()
            assert again.tokens.tolist() == answer.tokens.tolist() and again.text == answer.text
    free = model.generate("A person:", seed=0, temperature=1.5, max_new_tokens=20, grammar=None).finish()
    with pytest.raises(ValueError):
        json.loads(free.text)


def test_a_batch_shares_its_grammar(model):
    options = dict(seed=3, logit_bias=NO_SPACE)
    many = model.generate_batch(["a", "b", "c", "d"], json_schema=PERSON, **options)
    assert all(is_person(a.text) for a in many)
    one = model.generate("c", json_schema=PERSON, **options).finish()
    assert many[2].tokens.tolist() == one.tokens.tolist()


def test_grammars_are_those_of_the_program(folder, tmp_path):
    (tmp_path / "g.gbnf").write_text('root ::= ("a" | "bc" | [0-9]+ ",")+ "."')
    gbnf = (tmp_path / "g.gbnf").read_text()
    for given, options in (
        (["--grammar", tmp_path / "g.gbnf"], dict(grammar=gbnf)),
        (["--json-schema", json.dumps(PERSON)], dict(json_schema=PERSON)),
    ):
        want = said_by_the_program("generate", folder, TEXT, "--raw", "-n", 60, "--seed", 7, *given)
        answer = rlx.models.load(folder).generate(TEXT, max_new_tokens=60, seed=7, **options).finish()
        assert shown(answer.text) == want
    assert re.fullmatch(r"(a|bc|\d+,)*\d*b?\.?", rlx.models.load(folder).generate(TEXT, grammar=gbnf).finish().text)


def test_compiled_grammars(model):
    g = rlx.models.Grammar('root ::= "yes" | "no"')
    assert g.matches("yes") and not g.matches("ye") and not g.matches("yesno") and "rules" in repr(g)
    answer = model.generate("Well?", grammar=g, seed=1).finish()
    assert answer.text in ("yes", "no") and answer.finish_reason == "grammar_end"
    other = rlx.models.Grammar('word ::= "a"+', root="word")
    assert other.matches("aaa") and not other.matches("b")
    spaced = rlx.models.Grammar.json_schema({"type": "array", "items": {"const": 1}}, whitespace="spaced")
    assert spaced.matches("[1, 1]") and not spaced.matches("[1,1]")
    tight = rlx.models.Grammar.json_schema('{"properties": {"a": true}}', whitespace="none", closed=True)
    assert tight.matches('{"a":3}') and not tight.matches('{"b":3}') and not tight.matches('{"a": 3}')
    few = rlx.models.Grammar.json_schema({}, max_whitespace=1)
    assert few.matches("[ 1]") and not few.matches("[  1]")


def test_an_answer_that_fails(model):
    forbidden = dict(grammar='root ::= "ab" [a-z]', logit_bias={ord("b"): -float("inf")}, temperature=0)
    answer = model.generate("x", **forbidden)
    assert next(answer) == "a"
    with pytest.raises(rlx.Error) as caught:
        next(answer)
    assert caught.value.message and answer.finish_reason == "failed" and answer.text == "a"
    assert isinstance(answer.error, rlx.Error) and answer.error.message == caught.value.message
    assert list(answer) == []  # it was said once
    with pytest.raises(type(answer.error)):
        answer.finish()
    pieces = []
    with pytest.raises(rlx.Error):
        for piece in model.generate("x", **forbidden):
            pieces.append(piece)
    assert pieces == ["a"]
    # Others go on, and a batch keeps what they said.
    beside = model.generate("x", seed=1, max_new_tokens=9, stop_tokens=[])
    alone = beside.finish().text
    beside = model.generate("x", seed=1, max_new_tokens=9, stop_tokens=[])
    with pytest.raises(rlx.Error):
        model.generate("x", **forbidden).finish()
    assert beside.finish().text == alone
    batch = model.generate_batch(["x", "y"], **forbidden)
    assert [a.finish_reason for a in batch] == ["failed"] * 2 and all(a.error is not None for a in batch)
    model.logits([1])  # nothing runs any more
    model.reset()


def test_failing_in_async_loops_and_conversations(model):
    forbidden = dict(grammar='root ::= "ab" [a-z]', logit_bias={ord("b"): -float("inf")})
    pieces = []

    async def loop():
        async for piece in model.generate("x", **forbidden):
            pieces.append(piece)

    with pytest.raises(rlx.Error, match="no token can be sampled"):
        asyncio.run(loop())
    assert pieces == ["a"]
    talk = rlx.models.Conversation(model, temperature=0)
    with pytest.raises(rlx.Error, match="no token can be sampled"):
        list(talk.say("Hello", **forbidden))
    assert talk.messages == [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "a"}]


def test_two_threads_of_which_one_is_told(model):
    """An answer's error comes once by iterating, whichever thread asks; finish() always has it."""
    answer = model.generate("x", grammar='root ::= "ab"', logit_bias={ord("b"): -float("inf")})
    told = []

    def work():
        try:
            list(answer)
        except rlx.Error as e:
            told.append(e.message)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert told == [answer.error.message]
    for _ in range(2):
        with pytest.raises(rlx.Error):
            answer.finish()


# -- adapters --


def adapter(folder, seed=1, rank=4, alpha=6.0, modules=("q_proj", "down_proj"), layers=range(tiny_model.LAYERS)):
    """Writes one as PEFT does; what it adds to the model's weights."""
    rng = np.random.default_rng(seed)
    shapes = {k: v.shape for k, v in tiny_model.weights().items()}
    halves, added = {}, {}
    for name, shape in shapes.items():
        part = name.removesuffix(".weight")
        if part.split(".")[-1] not in modules or int(part.split(".")[2]) not in layers:
            continue
        a = rng.standard_normal((rank, shape[1])).astype(np.float32) * 0.2
        b = rng.standard_normal((shape[0], rank)).astype(np.float32) * 0.2
        halves[f"base_model.model.{part}.lora_A.weight"] = a
        halves[f"base_model.model.{part}.lora_B.weight"] = b
        added[name] = (b.astype(np.float64) @ a) * alpha / rank
    folder.mkdir(exist_ok=True)
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "target_modules": list(modules)}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    tiny_model.write_safetensors(folder / "adapter_model.safetensors", halves)
    return added


def changed(*changes):
    w = {k: v.astype(np.float64) for k, v in tiny_model.weights().items()}
    for scale, added in changes:
        for name, change in added.items():
            w[name] = w[name] + scale * change
    return w


def closeness(ours, theirs):
    ours = np.asarray(ours, np.float64)
    assert ours.shape == theirs.shape and np.isfinite(ours).all()
    return np.abs(ours - theirs).max() / np.abs(theirs).max()


def test_adapters_by_name(folder, tmp_path):
    one, two = adapter(tmp_path / "one"), adapter(tmp_path / "two", seed=2, modules=("v_proj",), layers=[0, 1])
    m = rlx.models.load(
        folder,
        sequences=3,
        adapters={
            "one": tmp_path / "one",
            "both": [tmp_path / "one", (str(tmp_path / "two"), 0.5)],
            "less": (tmp_path / "one", 0.25),
        },
    )
    assert m.adapters == ["one", "both", "less"]
    prompt = m.tokenizer.encode(TEXT)
    models = {
        None: changed(),
        "one": changed((1, one)),
        "both": changed((1, one), (0.5, two)),
        "less": changed((0.25, one)),
    }
    said = {}
    for name, weights in models.items():
        m.reset()
        want = tiny_model.numpy_logits(weights, prompt)
        assert closeness(m.logits(prompt, adapter=name), want) < 2e-5
        assert (
            name is None
            or closeness(m.logits(prompt, adapter=name, sequence=1), tiny_model.numpy_logits(models[None], prompt))
            > 1e-3
        )
        m.reset()
        answer = m.generate(prompt, adapter=name, temperature=0, max_new_tokens=8, stop_tokens=[]).finish()
        assert answer.tokens.tolist() == tiny_model.greedy(weights, prompt, 8)
        said[name] = answer.tokens.tolist()
    assert m.generate(prompt, temperature=0, max_new_tokens=8, stop_tokens=[]).finish().tokens.tolist() == said[None]
    # Together, each with its own.
    answers = [m.generate(prompt, adapter=n, temperature=0, max_new_tokens=8, stop_tokens=[]) for n in models]
    assert [a.finish().tokens.tolist() for a in answers] == list(said.values())


def test_adapters_without_a_name_are_those_of_the_program(folder, tmp_path):
    adapter(tmp_path / "one"), adapter(tmp_path / "two", seed=2)
    given = ["--adapter", tmp_path / "one", "--adapter", f"{tmp_path / 'two'}=0.5"]
    want = said_by_the_program("generate", folder, TEXT, "--raw", "-n", 20, "--seed", 3, *given)
    options = dict(max_new_tokens=20, seed=3)
    m = rlx.models.load(folder, adapters=[tmp_path / "one", (tmp_path / "two", 0.5)])
    assert shown(m.generate(TEXT, **options).finish().text) == want
    bare = rlx.models.load(folder).generate(TEXT, **options).finish()
    assert shown(bare.text) != want
    assert m.generate(TEXT, adapter=None, **options).finish().tokens.tolist() == bare.tokens.tolist()
    alone = rlx.models.load(folder, adapters=tmp_path / "one").generate(TEXT, **options).finish()
    named = (
        rlx.models.load(folder, adapters={"x": str(tmp_path / "one")}).generate(TEXT, adapter="x", **options).finish()
    )
    assert alone.tokens.tolist() == named.tokens.tolist() != bare.tokens.tolist()
    pair = rlx.models.load(folder, adapters=(tmp_path / "one", 1)).generate(TEXT, **options).finish()
    assert pair.tokens.tolist() == alone.tokens.tolist()


# -- drafts --


def test_drafts_change_no_token(folder, tmp_path):
    tiny_model.write(tmp_path / "other", seed=5)
    settings = [dict(temperature=0), dict(seed=4, temperature=0.9, top_k=30, repetition_penalty=1.1)]
    plain = rlx.models.load(folder, sequences=2)
    want = [plain.generate(LONG, max_new_tokens=40, stop_tokens=[], **s).finish().tokens.tolist() for s in settings]
    assert plain.statistics["drafted_tokens"] == plain.statistics["accepted_tokens"] == 0
    for draft in (dict(draft=folder), dict(draft=str(tmp_path / "other"), draft_tokens=3), dict(lookup=2)):
        m = rlx.models.load(folder, sequences=2, **draft)
        answers = [m.generate(LONG, max_new_tokens=40, stop_tokens=[], **s) for s in settings]
        assert [a.finish().tokens.tolist() for a in answers] == want
        done = m.statistics
        assert done["drafted_tokens"] > 0 and 0 <= done["accepted_tokens"] <= done["drafted_tokens"]
        if draft.get("draft") == folder:  # of one mind: every draft is right
            assert done["accepted_tokens"] > 40 and done["runs"] < plain.statistics["runs"] / 2
    assert rlx.models.load(folder, draft=folder, draft_tokens=0).generate("a", max_new_tokens=3).finish()
    text = said_by_the_program(
        "generate", folder, LONG, "--raw", "-n", 20, "--draft", tmp_path / "other", "--draft-tokens", 4, "--seed", 2
    )
    m = rlx.models.load(folder, draft=tmp_path / "other", draft_tokens=4)
    assert shown(m.generate(LONG, max_new_tokens=20, seed=2).finish().text) == text


def test_drafts_keep_to_the_schema(folder):
    m = rlx.models.load(folder, draft=folder, lookup=2)
    answer = m.generate(LONG, json_schema=PERSON, seed=1, logit_bias=NO_SPACE).finish()
    plain = rlx.models.load(folder).generate(LONG, json_schema=PERSON, seed=1, logit_bias=NO_SPACE).finish()
    assert is_person(answer.text) and answer.tokens.tolist() == plain.tokens.tolist()


# -- states in files --


def test_a_saved_answer_goes_on(folder, tmp_path):
    first = rlx.models.load(folder)
    options = dict(seed=5, stop_tokens=[])
    whole = first.generate(LONG, max_new_tokens=60, **options).finish()
    answer = first.generate(LONG, max_new_tokens=40, **options).finish()
    prompt = first.tokenizer.encode(LONG).tolist()
    assert answer.sequence.tolist() == prompt + answer.tokens.tolist() and answer.prompt_tokens == len(prompt)
    cached = first.save_state(tmp_path / "a.rlxchat", answer)
    assert 64 <= cached <= len(answer.sequence) and cached % 64 == 0
    second = rlx.models.load(folder)
    tokens, messages = second.load_state(tmp_path / "a.rlxchat")
    assert tokens.tolist() == answer.sequence.tolist() and tokens.dtype == np.int32 and messages == []
    rest = second.generate(tokens, max_new_tokens=20, **options).finish()
    assert answer.tokens.tolist() + rest.tokens.tolist() == whole.tokens.tolist()
    assert second.statistics["reused_tokens"] == cached
    # Between Python and the program, both ways.
    state = tmp_path / "b.rlxchat"
    bare = first.generate(LONG, max_new_tokens=40, seed=6).finish()
    said = said_by_the_program("generate", folder, LONG, "--raw", "-n", 40, "--seed", 6, "--save-state", state)
    assert said == shown(bare.text)
    tokens, messages = second.load_state(state)
    assert tokens.tolist() == bare.sequence.tolist() and messages == []
    first.save_state(tmp_path / "c.rlxchat", bare.sequence.tolist())
    more = second.generate(tokens, max_new_tokens=9, seed=6).finish().text
    for file in (state, tmp_path / "c.rlxchat"):
        assert said_by_the_program("generate", folder, "-n", 9, "--seed", 6, "--load-state", file) == shown(more)


@pytest.mark.parametrize(
    "options",
    [
        dict(mirostat=2, mirostat_tau=3.0, mirostat_eta=0.5),
        dict(mirostat=1, mirostat_tau=2.0, temperature=1.4),
        dict(repetition_penalty=1.5, penalty_window=5, dry_multiplier=1.0),
        dict(json_schema={"type": "array", "items": {"enum": ["the", "then"]}, "minItems": 6, "maxItems": 6}),
    ],
)
def test_answers_go_on_where_they_were_cut(folder, tmp_path, options):
    first = rlx.models.load(folder)
    options = dict(seed=7, stop_tokens=[], **options)
    whole = first.generate("the", max_new_tokens=40, **options).finish()
    assert len(whole.tokens) > 20
    for cut in (1, 7, 18):
        begun = first.generate("the", max_new_tokens=cut, **options).finish()
        first.save_state(tmp_path / "a", begun)
        for said, m in ((begun, first), (tmp_path / "a", rlx.models.load(folder)), (str(tmp_path / "a"), first)):
            rest = m.resume(said, max_new_tokens=40 - cut, **options).finish()
            assert begun.tokens.tolist() + rest.tokens.tolist() == whole.tokens.tolist()
            assert rest.finish_reason == whole.finish_reason
    # One that was closed goes on behind what it has said.
    closed = first.generate("the", max_new_tokens=40, **options)
    while len(closed.tokens) < 9:
        next(closed)
    closed.close()
    rest = first.resume(closed, max_new_tokens=40 - len(closed.tokens), **options).finish()
    assert closed.tokens.tolist() + rest.tokens.tolist() == whole.tokens.tolist()
    more = first.resume(rest, max_new_tokens=3, seed=7, stop_tokens=[]).finish()  # and once more
    assert rest.sequence.tolist() == more.sequence.tolist()[: len(rest.sequence)]


def test_misuse_of_resume(model, folder, tmp_path):
    going_on = model.generate("ab", seed=1, max_new_tokens=3, stop_tokens=[])
    with pytest.raises(rlx.InvalidArgument, match="the answer is still running"):
        model.resume(going_on)
    going_on.finish()
    with pytest.raises(rlx.InvalidArgument, match="belongs to another model"):
        rlx.models.load(folder).resume(going_on)
    with pytest.raises(rlx.DTypeMismatch, match="an Answer or the path of a state, got"):
        model.resume([1, 2])
    with pytest.raises(FileNotFoundError):
        model.resume(tmp_path / "none")
    with pytest.raises(rlx.InvalidArgument, match="is not allowed by the grammar here"):
        model.resume(going_on, grammar='root ::= "zzzz"')
    with pytest.raises(TypeError, match="no option 'sed'"):
        model.resume(going_on, sed=1)


def test_logprobs(model):
    plain = model.generate("the", seed=1, max_new_tokens=6, stop_tokens=[]).finish()
    said = model.generate("the", seed=1, max_new_tokens=6, stop_tokens=[], logprobs=3).finish()
    assert said.tokens.tolist() == plain.tokens.tolist()
    assert plain.logprobs.shape == (0,) and plain.top_logprobs == [] and said.logprobs.dtype == np.float64
    prompt = model.tokenizer.encode("the").tolist()
    rows = np.asarray(model.logits([*prompt, *said.tokens]), np.float64)[len(prompt) - 1 : -1]
    model.reset()
    rows -= np.log(np.exp(rows).sum(-1, keepdims=True))
    assert np.abs(said.logprobs - rows[range(6), said.tokens]).max() < 1e-6
    for row, likeliest in zip(rows, said.top_logprobs, strict=True):
        best = np.argsort(-row, kind="stable")[:3]
        assert [t for t, _ in likeliest] == best.tolist()
        assert np.abs(np.array([p for _, p in likeliest]) - row[best]).max() < 1e-6
    none = model.generate("the", seed=1, max_new_tokens=2, logprobs=0).finish()
    assert len(none.logprobs) == len(none.tokens) and none.top_logprobs[0] == []
    with pytest.raises(rlx.InvalidArgument, match="logprobs must be 0 or more, got -2"):
        model.generate("the", logprobs=-2)
    with pytest.raises(TypeError, match="logprobs is an option of LanguageModel"):
        rlx.models.Sampler(logprobs=1)


def test_a_file_that_is_cut_under_a_model(folder, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    m = rlx.models.load(copy)
    os.truncate(copy / "model.safetensors", 100)
    with pytest.raises(rlx.BadFile, match="model.safetensors.* was made shorter"):
        m.generate("ab", max_new_tokens=4).finish()
        m.save_state(tmp_path / "a", m.generate("ab", max_new_tokens=4).finish())  # reads all weights
    with pytest.raises(rlx.BadFile):
        rlx.models.load(copy)


def test_states_beside_other_answers(folder, tmp_path):
    m = rlx.models.load(folder, sequences=2)
    other = m.generate(LONG, seed=2, max_new_tokens=60, stop_tokens=[])
    alone = rlx.models.load(folder).generate(LONG, seed=2, max_new_tokens=60, stop_tokens=[]).finish()
    said = m.generate("x" * 90, seed=1, max_new_tokens=5, stop_tokens=[]).finish()
    assert m.save_state(tmp_path / "s", said) == 64
    tokens, _ = m.load_state(tmp_path / "s")
    assert tokens.tolist() == said.sequence.tolist()
    assert other.finish().tokens.tolist() == alone.tokens.tolist()
    m.logits([1])
    m.load_state(tmp_path / "s")  # also where logits() has run tokens
    assert m.length() == 1


def test_the_token_that_ended_an_answer_is_not_kept(model):
    plain = model.generate("ab", seed=1, max_new_tokens=20, stop_tokens=[]).finish()
    end = int(plain.tokens[7])
    answer = model.generate("ab", seed=1, stop_tokens=[end]).finish()
    assert answer.finish_reason == "stop_token" and answer.tokens[-1] == end
    assert answer.sequence.tolist() == [*model.tokenizer.encode("ab"), *answer.tokens[:-1]]


def test_conversations_in_files(folder, tmp_path):
    m = rlx.models.load(folder)
    talk = rlx.models.Conversation(m, "Be brief. " * 8, temperature=0, max_new_tokens=12)
    "".join(talk.say("Hello"))
    assert talk.save(tmp_path / "talk.rlxchat") >= 64
    want = "".join(talk.say("And?"))
    fresh = rlx.models.load(folder)
    other = rlx.models.Conversation.load(fresh, tmp_path / "talk.rlxchat", temperature=0, max_new_tokens=12)
    assert other.messages == talk.messages[:3] and "".join(other.say("And?")) == want
    assert fresh.statistics["reused_tokens"] >= 64 and other.messages == talk.messages
    done = said_by_the_program(
        "generate", folder, "And?", "-n", 12, "--temperature", 0, "--load-state", tmp_path / "talk.rlxchat",
        "--save-state", tmp_path / "more.rlxchat",
    )  # fmt: skip
    assert done == shown(want)
    assert rlx.models.Conversation.load(m, tmp_path / "more.rlxchat").messages == talk.messages


def test_misuse_of_states(model, folder, tmp_path):
    new = rlx.models.Conversation(model)
    answer = model.generate("ab", seed=1, max_new_tokens=3, stop_tokens=[]).finish()
    model.save_state(tmp_path / "text", answer)
    tiny_model.write(tmp_path / "other", seed=9)
    other = rlx.models.load(tmp_path / "other")
    (tmp_path / "no").write_text("no state")
    uncached = rlx.models.load(folder, prefix_cache=False)
    path = tmp_path / "x"
    for call, kind, words in (
        (lambda: new.save(path), ValueError, "there is no text to save"),
        (lambda: model.save_state(path, []), ValueError, "there is no text to save"),
        (lambda: model.save_state(path, None), TypeError, "tokens must be a list"),
        (lambda: model.save_state(path, "text"), TypeError, "tokens must be a list"),
        (lambda: model.save_state(3, answer), TypeError, "PathLike"),
        (lambda: model.save_state(tmp_path / "no" / "x", answer), rlx.NotFound, "cannot write"),
        (lambda: model.save_state(path, answer, messages=3), TypeError, "messages must be a list of dicts, got 3"),
        (lambda: model.save_state(path, answer, messages=[3]), TypeError, "message 1 must be a dict"),
        (lambda: model.save_state(path, answer, [{"role": "user"}]), rlx.Unsupported, "only role and content"),
        (lambda: model.save_state(path, answer, [{"role": "user", "content": 3}]), TypeError, "content must be a text"),
        (lambda: model.load_state("nowhere"), FileNotFoundError, "nowhere"),
        (lambda: model.load_state(tmp_path / "no"), rlx.BadFile, "no"),
        (lambda: other.load_state(tmp_path / "text"), rlx.InvalidArgument, "weights"),
        (lambda: rlx.models.Conversation.load(model, tmp_path / "text"), ValueError, "and not a conversation"),
        (lambda: uncached.save_state(path, [1, 2]), ValueError, r"load\(prefix_cache=True\)"),
        (lambda: uncached.load_state(tmp_path / "text"), ValueError, r"load\(prefix_cache=True\)"),
    ):
        with pytest.raises(kind, match=words):
            call()
    assert not path.exists()


# -- misuse --

OPTIONS = {
    "no grammar": (TypeError, "grammar takes GBNF or an rlx.models.Grammar, got 3", dict(grammar=3)),
    "a grammar with a fault": (rlx.BadFile, "grammar:1", dict(grammar="root ::= (")),
    "a grammar without its root": (rlx.BadFile, "root", dict(grammar='a ::= "b"')),
    "a dict as a grammar": (TypeError, "grammar takes GBNF", dict(grammar={})),
    "no schema": (TypeError, "json_schema takes a dict or a JSON text, got 3", dict(json_schema=3)),
    "a schema that is no JSON": (rlx.BadFile, "json_schema", dict(json_schema="{")),
    "a schema that no value satisfies": (rlx.BadFile, "json_schema", dict(json_schema=False)),
    "a schema with a set": (TypeError, "json_schema cannot be written as JSON", dict(json_schema={"enum": {1}})),
    "a keyword that cannot": (rlx.Unsupported, "uniqueItems", dict(json_schema={"uniqueItems": True})),
    "both": (ValueError, "both grammar and json_schema", dict(grammar='root ::= "a"', json_schema={})),
    "only the empty text": (ValueError, "empty", dict(grammar='root ::= ""')),
    "no name of an adapter": (TypeError, "adapter takes the name of one, or None, got 3", dict(adapter=3)),
    "no such adapter": (ValueError, r"no adapter called 'x'(.|\n)*load\(adapters=\)", dict(adapter="x")),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_wrong_options(model, name):
    kind, words, options = OPTIONS[name]
    with pytest.raises(kind, match=words):
        model.generate("abc", **options)
    with pytest.raises(kind, match=words):
        model.generate_batch(["abc"], **options)
    model.logits([1])  # nothing was begun
    model.reset()


def test_wrong_grammars(model):
    for call, kind, words in (
        (lambda: rlx.models.Grammar(3), TypeError, "grammar must be a text, got 3"),
        (lambda: rlx.models.Grammar("root ::= ("), rlx.BadFile, "grammar:1"),
        (lambda: rlx.models.Grammar('root ::= "a"', root="b"), rlx.BadFile, "b"),
        (lambda: rlx.models.Grammar.json_schema(3), TypeError, "json_schema takes a dict or a JSON text, got 3"),
        (
            lambda: rlx.models.Grammar.json_schema({}, whitespace="much"),
            ValueError,
            "not one of none, spaced and flexible",
        ),
        (lambda: rlx.models.Grammar.json_schema({}, max_whitespace=-1), ValueError, "max_whitespace must be in"),
        (lambda: rlx.models.Grammar('root ::= "a"').matches(3), TypeError, "matches must be a text, got 3"),
        (lambda: rlx.models.Sampler(grammar='root ::= "a"'), TypeError, "grammar is an option of LanguageModel"),
        (lambda: rlx.models.Sampler(adapter="a"), TypeError, "adapter is an option of LanguageModel"),
        (lambda: model.logits([1], adapter="x"), ValueError, "no adapter called 'x'"),
        (lambda: model.logits([1], adapter=3), TypeError, "adapter must be a text, got 3"),
    ):
        with pytest.raises(kind, match=words):
            call()


LOADS = {
    "adapters of numbers": (rlx.DTypeMismatch, "an adapter must be a folder or .folder, scale.", dict(adapters=3)),
    "a number in a list": (rlx.DTypeMismatch, "an adapter must be a folder", dict(adapters=["adapter", 3])),
    "a name that is none": (rlx.DTypeMismatch, "the name of an adapter must be a text", dict(adapters={3: "adapter"})),
    "an empty name": (rlx.InvalidArgument, "has no name", dict(adapters={"": "adapter"})),
    "an adapter without parts": (rlx.InvalidArgument, "'a' has no folders", dict(adapters={"a": []})),
    "no adapter there": (FileNotFoundError, "nowhere", dict(adapters="nowhere")),
    "a folder that holds none": (rlx.NotFound, "adapter_config.json", dict(adapters={"a": "empty"})),
    "a scale that is no number": (
        rlx.InvalidArgument,
        "scale of the adapter .* is nan",
        dict(adapters=("adapter", float("nan"))),
    ),
    "an adapter of another model": (rlx.BadFile, "lora_A", dict(adapters="wide")),
    "no path of a draft": (rlx.DTypeMismatch, "draft must be a path, got 3", dict(draft=3)),
    "no draft there": (FileNotFoundError, "nowhere", dict(draft="nowhere")),
    "no model to draft": (rlx.NotFound, "config.json", dict(draft="empty")),
    "negative drafts": (rlx.InvalidArgument, "-1", dict(draft_tokens=-1)),
    "a negative lookup": (rlx.InvalidArgument, "-1", dict(lookup=-1)),
    "a lookup of text": (rlx.DTypeMismatch, "load: lookup must be an integer", dict(lookup="3")),
    "no memory": (rlx.OutOfMemory, "needs .* of memory", dict(memory_limit=1000)),
    "no limit": (rlx.InvalidArgument, "memory_limit must be at least 1 byte, got 0", dict(memory_limit=0)),
    "a limit of text": (rlx.DTypeMismatch, "load: memory_limit must be an integer", dict(memory_limit="1G")),
    "no flag": (rlx.DTypeMismatch, "load: check_memory must be True or False", dict(check_memory=1)),
    "no folder": (rlx.DTypeMismatch, "load: packed_weights must be a path, got 3", dict(packed_weights=3)),
    "an empty name of a folder": (rlx.InvalidArgument, "must not be an empty path", dict(packed_weights="")),
    "packed weights in a file": (
        rlx.NotFound,
        "the folder of packed weights",
        dict(packed_weights="adapter/adapter_config.json"),
    ),
    "no flag to verify": (
        rlx.DTypeMismatch,
        "load: verify_packed_weights must be True or False",
        dict(verify_packed_weights=1),
    ),
}


@pytest.mark.parametrize("name", LOADS)
def test_wrong_loads(folder, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    adapter(tmp_path / "adapter"), (tmp_path / "empty").mkdir()
    wide = adapter(tmp_path / "wide")
    halves = {
        f"base_model.model.{n.removesuffix('.weight')}.lora_{h}.weight": np.zeros((4, 7), np.float32)
        for n in wide
        for h in "AB"
    }
    tiny_model.write_safetensors(tmp_path / "wide" / "adapter_model.safetensors", halves)
    kind, words, options = LOADS[name]
    with pytest.raises(kind, match=words) as caught:
        rlx.models.load(folder, **options)
    assert kind is FileNotFoundError or caught.value.message


def test_memory_checks(folder):
    assert rlx.models.load(folder, memory_limit=1 << 40).generate("a", max_new_tokens=1).finish()
    assert rlx.models.load(folder, memory_limit=1000, check_memory=False).generate("a", max_new_tokens=1).finish()
    with pytest.raises(MemoryError, match="cache"):
        rlx.models.load(folder, memory_limit=1000)


def test_packed_weights(folder, tmp_path):
    tokens = list(range(20, 40))
    want = rlx.models.load(folder).logits(tokens)
    kept = tmp_path / "packed"
    times = []
    for options in [{}, {}, dict(verify_packed_weights=True)]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            m = rlx.models.load(folder, packed_weights=kept, **options)
        assert np.array_equal(m.logits(tokens), want) and m.packed_weight_problems == []
        files = sorted(p for p in kept.rglob("*.form"))
        times.append([p.stat().st_mtime_ns for p in files])
    assert files and times[0] == times[1] == times[2]
    # A damaged file gives a warning at the caller's line, and is written anew.
    os.truncate(files[0], 100)
    with pytest.warns(RuntimeWarning, match="has a damaged head") as told:
        m = rlx.models.load(folder, packed_weights=str(kept), draft=folder)
    assert len(told) == 1 and told[0].filename == __file__ and str(files[0]) in str(told[0].message)
    assert np.array_equal(m.logits(tokens), want) and m.packed_weight_problems == [str(told[0].message)]
    assert sorted(p for p in kept.rglob("*.form")) == files
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rlx.models.load(folder, packed_weights=kept)
