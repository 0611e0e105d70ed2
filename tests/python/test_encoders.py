"""rlx.SentenceEncoder and rlx.Reranker: vectors and scores of sentence-transformers, those of the commands, misuse."""

import json
import math
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
import rlx
import tiny_model

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLI = pathlib.Path(os.environ.get("RLX_CLI", ROOT / "build" / "dev" / "rlx"))
sys.path.insert(0, str(ROOT / "scripts"))

from drawn_weights import drawn  # noqa: E402


def metadata(path):
    data = path.read_bytes()
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]


def weights_of(drawings):
    return {
        w["name"]: (np.float32(w["mean"]) + np.float32(w["spread"]) * drawn(w["name"], math.prod(w["shape"]))).reshape(
            w["shape"]
        )
        for w in drawings
    }


class Reference:
    """A model folder, the texts or pairs of its reference, and what sentence-transformers makes of them."""

    def __init__(self, name, folder):
        path = ROOT / "tests" / "unit" / "models" / "encoder_references" / f"folder_{name}.safetensors"
        text = metadata(path)
        self.folder = folder
        self.said = {k: np.asarray(v) for k, v in rlx.load_safetensors(path).items()}
        for file, content in json.loads(text["files"]).items():
            if file == "given":
                self.given = json.loads(content)
                continue
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(content)
        tiny_model.write_safetensors(folder / "model.safetensors", weights_of(json.loads(text["weights"])))
        for part, drawings in json.loads(text["dense"]).items():
            tiny_model.write_safetensors(folder / part / "model.safetensors", weights_of(drawings))


@pytest.fixture(scope="module")
def mean(tmp_path_factory):
    return Reference("mean", tmp_path_factory.mktemp("mean"))


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return Reference("rerank_bert", tmp_path_factory.mktemp("rerank"))


def near(ours, theirs):
    ours = np.asarray(ours)
    assert ours.shape == theirs.shape and np.isfinite(ours).all()
    return np.abs(ours - theirs).max() <= 2e-5 * np.abs(theirs).max()


def of_the_program(*arguments):
    if not CLI.exists():
        pytest.skip(f"{CLI} is not built")
    done = subprocess.run([str(CLI), *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_vectors_are_those_of_sentence_transformers(mean):
    encoder = rlx.SentenceEncoder(mean.folder)
    assert encoder.hidden_size == mean.said["vectors:"].shape[1] and set(encoder.prompts) == {"query", "passage"}
    assert encoder.query_prompt == encoder.prompts["query"] and encoder.passage_prompt == encoder.prompts["passage"]
    assert near(encoder.embed(mean.given), mean.said["vectors:"])
    for name in encoder.prompts:
        by_name = encoder.embed(mean.given, prompt_name=name)
        assert near(by_name, mean.said["vectors:" + name])
        assert np.array_equal(encoder.embed(mean.given, prompt=encoder.prompts[name]), by_name)
        assert near(encoder.embed(mean.given[0], prompt_name=name), mean.said["vectors:" + name][0])
    assert not near(encoder.embed(mean.given, prompt_name="query"), mean.said["vectors:passage"])
    assert not near(encoder.embed(mean.given, prompt=""), mean.said["vectors:"])  # the model has a default one
    assert np.array_equal(encoder.embed(mean.given), encoder.embed(tuple(mean.given)))


def test_vectors_are_those_of_the_program(mean):
    text = mean.given[0]
    for options, given in (
        (["--dimensions", 8], dict(dimensions=8)),
        (["--prompt-name", "query"], dict(prompt_name="query")),
        (["--prompt", "of: "], dict(prompt="of: ")),
    ):
        want = of_the_program("embed", "--model", mean.folder, "--text", text, *options)
        encoder = rlx.SentenceEncoder(mean.folder, dimensions=given.pop("dimensions", 0))
        assert np.array_equal(encoder.embed([text], **given), np.array(want, np.float32))


def test_fewer_dimensions(mean):
    whole = np.asarray(rlx.SentenceEncoder(mean.folder).embed(mean.given))
    short = rlx.SentenceEncoder(mean.folder, dimensions=8)
    assert short.hidden_size == 8
    cut = whole[:, :8]
    if np.allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-5):
        cut = cut / np.linalg.norm(cut, axis=1, keepdims=True)
    assert near(short.embed(mean.given), cut)


@pytest.mark.parametrize("name", ["rerank_bert", "rerank_roberta"])
def test_scores_are_those_of_sentence_transformers(name, tmp_path):
    r = Reference(name, tmp_path)
    reranker = rlx.Reranker(r.folder)
    assert reranker.labels == 1 and reranker.max_sequence == {"rerank_bert": 32, "rerank_roberta": 100}[name]
    queries = list(dict.fromkeys(q for q, _ in r.given))
    scores = {}
    for query in queries:
        passages = [p for q, p in r.given if q == query]
        found = reranker.score(query, passages)
        assert found.shape == (len(passages), 1) and found.dtype == "float32"
        scores |= {(query, p): s for p, s in zip(passages, np.asarray(found)[:, 0])}
        order = sorted(range(len(passages)), key=lambda i: -scores[query, passages[i]])
        ranked = reranker.rank(query, passages)
        assert [i for i, _ in ranked] == order
        assert [s for _, s in ranked] == [float(scores[query, passages[i]]) for i in order]
        assert reranker.rank(query, passages, 2) == ranked[:2] and reranker.rank(query, passages, count=0) == []
    assert near([scores[q, p] for q, p in r.given], r.said["scores"])


def test_a_model_that_answers_yes_or_no(tmp_path):
    r = Reference("asked", tmp_path)

    def scores(**options):
        reranker = rlx.Reranker(r.folder, **options)
        return [float(np.asarray(reranker.score(q, [p]))[0, 0]) for q, p in r.given]

    assert near(scores(), r.said["scores"])
    assert near(scores(activation="identity"), r.said["vectors:raw"])
    assert near(scores(instruction="find the weather"), r.said["vectors:instruction"])
    assert not near(scores(), r.said["vectors:instruction"])


def test_scores_are_those_of_the_program(bert, tmp_path):
    query = bert.given[0][0]
    passages = [p for _, p in bert.given[:6]]
    (tmp_path / "a.txt").write_text("\n".join(passages) + "\n")
    for options, activation in (([], None), (["--raw"], "identity")):
        rows = of_the_program(
            "rerank", "--model", bert.folder, "--query", query, "--format", "json", *options, tmp_path / "a.txt"
        )
        ranked = rlx.Reranker(bert.folder, activation=activation).rank(query, passages)
        assert [(r["line"] - 1, r["text"]) for r in rows] == [(i, passages[i]) for i, _ in ranked]
        assert np.allclose([r["score"] for r in rows], [s for _, s in ranked], rtol=1e-6)


def test_activations(bert):
    query, passages = bert.given[0][0], [p for _, p in bert.given]
    raw = np.asarray(rlx.Reranker(bert.folder, activation="identity").score(query, passages), np.float64)
    assert near(rlx.Reranker(bert.folder, activation="sigmoid").score(query, passages), 1 / (1 + np.exp(-raw)))


def test_threads_share_a_reranker(bert):
    reranker = rlx.Reranker(bert.folder)
    query, passages = bert.given[0][0], [p for _, p in bert.given]
    want = np.asarray(reranker.score(query, passages))
    found = []
    threads = [threading.Thread(target=lambda: found.append(reranker.score(query, passages))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert len(found) == 4 and all(np.array_equal(f, want) for f in found)


def test_misuse_of_encoders(mean, bert, tmp_path):
    encoder, reranker = rlx.SentenceEncoder(mean.folder), rlx.Reranker(bert.folder)
    for call, kind, words in (
        (lambda: encoder.embed("a", prompt_name="colour"), ValueError, r'no prompt called "colour"(.|\n)*query'),
        (lambda: encoder.embed("a", prompt_name="query", prompt="x"), ValueError, "both prompt and prompt_name"),
        (lambda: encoder.embed("a", prompt=3), TypeError, "prompt must be a text, got 3"),
        (lambda: encoder.embed("a", prompt_name=3), TypeError, "prompt_name must be a text, got 3"),
        (lambda: encoder.embed(3), TypeError, "texts must be a list of texts, got 3"),
        (lambda: encoder.embed(["a", 3]), TypeError, "text 2 must be a text, got 3"),
        (lambda: encoder.embed(["a", ""]), ValueError, "text 2 is empty"),
        (lambda: rlx.SentenceEncoder(mean.folder, dimensions=10**6), ValueError, "dimensions must be in"),
        (lambda: rlx.SentenceEncoder(mean.folder, dimensions=-1), ValueError, "dimensions must be in"),
        (lambda: reranker.score("", ["a"]), ValueError, "the query is empty"),
        (lambda: reranker.score(None, ["a"]), TypeError, "the query must be a text, got None"),
        (lambda: reranker.score("a", "b"), TypeError, "passages must be a list of texts, got 'b'"),
        (lambda: reranker.score("a", [None]), TypeError, "text 1 must be a text, got None"),
        (lambda: reranker.rank("a", ["b"], -1), ValueError, "count must be 0 or more, got -1"),
        (lambda: reranker.rank("a", ["b"], "x"), TypeError, "count must be an integer"),
        (lambda: rlx.Reranker(bert.folder, activation="tanh"), ValueError, "not one of identity and sigmoid"),
        (lambda: rlx.Reranker(bert.folder, activation=3), TypeError, "activation must be a text"),
        (lambda: rlx.Reranker(bert.folder, instruction="find"), ValueError, "a bert takes no instruction"),
        (lambda: rlx.Reranker(bert.folder, instruction=3), TypeError, "instruction must be a text"),
        (lambda: rlx.Reranker(bert.folder, max_batch=0), ValueError, "max_batch must be at least 1"),
        (lambda: rlx.Reranker(mean.folder), rlx.Unsupported, "has no classifier"),
        (lambda: rlx.Reranker(tmp_path), rlx.NotFound, "config.json"),
        (lambda: rlx.Reranker("nowhere"), FileNotFoundError, "nowhere"),
    ):
        with pytest.raises(kind, match=words):
            call()
    assert reranker.score("a", []).shape == (0, 1)
