"""rlx.models.TextIndex: what an update does, what a search finds, files of other kinds, misuse."""

import os
import pathlib

import numpy as np
import pytest
import rlx
import rlx.models
from test_encoders import Reference

TextIndex = rlx.models.TextIndex


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return rlx.SentenceEncoder(Reference("mean", tmp_path_factory.mktemp("mean")).folder)


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "one.txt").write_text("the weather is lovely\nhe drove to the stadium\n")
    (folder / "sub" / "two.md").write_text("the weather is lovely\nbread is baked\n")
    (folder / "skipped.log").write_text("nothing\n")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "binary").write_bytes(b"a\0b")
    return folder


def test_an_index_is_made_searched_and_updated(encoder, notes, tmp_path):
    path = tmp_path / "notes.rlxi"
    done = TextIndex.update(path, notes, encoder, passages="lines")
    assert (done["files"], done["added"], done["passages"], done["embedded"]) == (2, 2, 3, 3)
    assert done["written"] and done["rebuilt"] == "" and len(done["left_out"]) == 1
    index = TextIndex(path)
    assert (index.num_files, index.num_passages) == (2, 3) and os.path.isdir(index.model)
    texts = ["the weather is lovely", "he drove to the stadium", "bread is baked"]
    vectors = np.asarray(encoder.embed(texts, prompt=encoder.passage_prompt))
    query = np.asarray(encoder.embed("the weather", prompt=encoder.query_prompt))
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    found = index.search(encoder, "the weather")
    assert {m["text"] for m in found} == set(texts)
    assert [m["score"] for m in found] == sorted((m["score"] for m in found), reverse=True)
    for m in found:
        assert abs(m["score"] - cosines[texts.index(m["text"])]) < 2e-3
    twice = next(m for m in found if m["text"] == texts[0])
    assert twice["places"] == [(str(notes / "one.txt"), 1), (str(notes / "sub" / "two.md"), 1)]
    assert len(index.search(encoder, "bread", 1)) == 1 and index.search(encoder, "bread", count=0) == []
    assert not TextIndex.update(path, [notes], encoder, passages="lines")["written"]
    (notes / "sub" / "two.md").write_text("bread is baked\nnew words\n")
    done = TextIndex.update(path, [str(notes)], encoder, passages="lines")
    assert (done["changed"], done["embedded"], done["passages"]) == (1, 1, 4)
    done = TextIndex.update(path, notes, encoder, passages="lines", vectors="int8")
    assert done["rebuilt"] == "its vectors are of type f16" and done["embedded"] == 4
    done = TextIndex.update(path, notes, encoder, globs=["*.log"], ignore_files=False, vectors="int8")
    assert done["files"] == 1 and done["removed"] == 2


def test_misuse_of_indexes(encoder, notes, tmp_path):
    path, text = tmp_path / "i.rlxi", notes / "one.txt"
    TextIndex.update(path, notes, encoder)
    for call, kind, words in (
        (lambda: TextIndex(text), rlx.BadFile, "is not an index of texts"),
        (lambda: TextIndex(tmp_path / "none"), FileNotFoundError, "none"),
        (lambda: TextIndex.update(text, notes, encoder), rlx.BadFile, "is not replaced by one"),
        (lambda: TextIndex.update(path, tmp_path / "none", encoder), FileNotFoundError, "none"),
        (lambda: TextIndex.update(path, [], encoder), ValueError, "at least one file or folder"),
        (lambda: TextIndex.update(path, 3, encoder), TypeError, "paths must be paths, got 3"),
        (lambda: TextIndex.update(path, notes, encoder, vectors="f32"), ValueError, "not one of f16 and int8"),
        (lambda: TextIndex.update(path, notes, encoder, passages="words"), ValueError, "not one of lines, paragraphs"),
        (lambda: TextIndex.update(path, notes, encoder, overlap=200), ValueError, "cannot overlap by 200"),
        (lambda: TextIndex.update(path, notes, encoder, globs="*.md"), TypeError, "globs must be a list of texts"),
        (lambda: TextIndex.update(path, notes, encoder, globs=["[a"]), ValueError, "malformed"),
        (lambda: TextIndex(path).search(encoder, ""), ValueError, "the query is empty"),
        (lambda: TextIndex(path).search(encoder, 3), TypeError, "the query must be a text, got 3"),
        (lambda: TextIndex(path).search(encoder, "a", -1), ValueError, "count must be 0 or more"),
    ):
        with pytest.raises(kind, match=words):
            call()
    cut = pathlib.Path(tmp_path / "cut.rlxi")
    cut.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(rlx.BadFile, match="cut.rlxi"):
        TextIndex(cut)
