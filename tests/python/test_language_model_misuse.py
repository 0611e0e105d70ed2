"""Wrong tokens, options, files and orders of calls of language models; Flow over a checkpoint."""

import numpy as np
import pytest
import tiny_model
from language_model import closeness

import rlx
import rlx.formats
import rlx.models
import rlx.text

TOKENS = {
    "not tokens": (rlx.DTypeMismatch, "tokens must be a list or an array of integers", 5),
    "none": (rlx.DTypeMismatch, "got None", None),
    "floats": (rlx.DTypeMismatch, r"array \[T\] of integers", np.array([1.0, 2.0])),
    "bools": (rlx.DTypeMismatch, "of integers", np.array([True])),
    "two axes": (rlx.DTypeMismatch, "of integers", np.zeros((2, 2), np.int32)),
    "a float in a list": (rlx.DTypeMismatch, "a token must be an integer, got 1.5", [1, 1.5]),
    "a bool in a list": (rlx.DTypeMismatch, "a token must be an integer", [True]),
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


@pytest.mark.parametrize("messages", [["a"], [1, 2], [{"content": "hi"}], [{"role": "user", "content": "hi"}, None]])
def test_messages_that_are_none(model, messages):
    """A template ignores what it does not find, so the answer would be to nothing."""
    for call in (model.chat, rlx.text.ChatTemplate("{{ messages }}").render):
        with pytest.raises(rlx.DTypeMismatch, match=r"message \d must be a dict with a role, got"):
            call(messages)


@pytest.mark.parametrize("name", ["max_tokens", "max_length", "n_predict", "maxtokens"])
def test_other_names_of_the_length(model, name):
    with pytest.raises(TypeError, match=f"no option '{name}' of an answer; did you mean 'max_new_tokens'"):
        model.generate("hi", **{name: 3})


OPTIONS = {
    "an unknown option": (TypeError, "there is no option 'temprature'.*temperature", dict(temprature=1)),
    "a text for a number": (TypeError, "temperature takes a number, got 'hot'", dict(temperature="hot")),
    "a number in a text": (TypeError, "top_p takes a number", dict(top_p="0.5")),
    "a float for an integer": (TypeError, "top_k takes an integer of 32 bits, got 1.5", dict(top_k=1.5)),
    "a negative seed": (TypeError, "seed takes an integer from 0 to 2\\^64 - 1", dict(seed=-1)),
    "no temperature": (ValueError, "temperature is -1", dict(temperature=-1)),
    "NaN": (ValueError, "temperature is", dict(temperature=float("nan"))),
    "no step": (ValueError, "'topk' is not a sampling step", dict(order=["topk"])),
    "a stop of numbers": (TypeError, "stop must be a text, got 3", dict(stop=[3])),
    "an empty stop": (ValueError, "stop", dict(stop="")),
    "stops of nothing": (TypeError, "stop takes a text or a list of texts, got 3", dict(stop=3)),
    "a stop of bytes": (ValueError, "stop: invalid UTF-8 at byte 1", dict(stop=b"a\xff")),
    "a text for tokens": (TypeError, "max_new_tokens takes an integer of 64 bits, got '7'", dict(max_new_tokens="7")),
    "no such mirostat": (ValueError, "mirostat is 3", dict(mirostat=3)),
    "beyond 32 bits": (TypeError, "top_k takes an integer of 32 bits", dict(top_k=2**40)),
    "negative tokens": (ValueError, "max_new_tokens must be 0 or more, got -1", dict(max_new_tokens=-1)),
    "a bias of texts": (TypeError, "logit_bias takes", dict(logit_bias={1: "x"})),
    "a top_p above 1": (ValueError, "top_p is 2, but must be more than 0 and at most 1", dict(top_p=2)),
    "a negative top_k": (ValueError, "top_k is -5, but must be 0", dict(top_k=-5)),
    "a bias of no token": (ValueError, "logit_bias names token 99999", dict(logit_bias={99999: 1.0})),
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
    "no cache type": (rlx.InvalidArgument, "the KV cache cannot have the type 'f8'", dict(cache="f8")),
    "a cache of large blocks": (rlx.InvalidArgument, "cache cannot hold q4_k", dict(cache="q4_k")),
    "no precision": (rlx.InvalidArgument, "matmul_precision 'int4'", dict(matmul_precision="int4")),
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
        (5, TypeError, "messages must be a text or a list of dicts"),
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
        with pytest.raises(rlx.InvalidArgument, match="unfinished requests"):
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
        with pytest.raises(rlx.InvalidArgument, match="consumed by compile"):
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
    with pytest.raises(ValueError, match="not one of rms and layer"):
        flow.norm(x, "a", kind="batch")
    with pytest.raises(rlx.InvalidArgument, match="no expert names"):
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
