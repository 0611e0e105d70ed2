"""rlx.text and rlx.formats.gguf: ids, texts, templates, files; where others are installed, beside them."""

import json
import warnings

import numpy as np
import pytest
import tiny_model

import rlx
import rlx.formats
import rlx.models
import rlx.text

TEXT = "Then the other one said: thé end — 中文, the\n\nend 🙂"


@pytest.fixture(scope="module")
def tokenizer(folder):
    return rlx.text.Tokenizer(folder)


def test_ids_and_texts(tokenizer, folder):
    ids = tokenizer.encode(TEXT)
    assert isinstance(ids, np.ndarray) and ids.dtype == np.int32 and ids.ndim == 1
    ids[0] = ids[0]  # one's own
    assert tokenizer.decode(ids) == TEXT
    # By hand: bytes are their own ids, "the" is merged.
    assert tokenizer.encode("a b").tolist() == [97, 32, 98]
    assert tokenizer.encode("the the").tolist() == [260, 261]
    assert tokenizer.encode("<user>hi<eos>").tolist() == [tiny_model.USER, 104, 105, tiny_model.EOS]
    assert tokenizer.decode([tiny_model.USER, 104]) == "h"
    assert tokenizer.decode([tiny_model.USER, 104], skip_special_tokens=False) == "<user>h"
    assert tokenizer.decode(np.array([104], np.uint8)) == tokenizer.decode(rlx.array([104])) == "h"
    assert tokenizer.encode("").tolist() == [] and tokenizer.decode([]) == ""
    same = rlx.text.Tokenizer.from_json((folder / "tokenizer.json").read_text())
    assert same.encode(TEXT).tolist() == tokenizer.encode(TEXT).tolist()
    assert rlx.text.Tokenizer(folder / "tokenizer.json").encode(TEXT.encode()).tolist() == ids.tolist()


def test_the_package_tokenizers_agrees(tokenizer, folder):
    peer = pytest.importorskip("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in (TEXT, "  the  the\t", "\u0301", "a\r\nb<user> the"):
        assert tokenizer.encode(text).tolist() == peer.encode(text).ids


def test_vocabulary(tokenizer):
    assert tokenizer.vocab_size == len(tokenizer) == tiny_model.VOCAB
    assert tokenizer.token_to_id("<eos>") == tiny_model.EOS and tokenizer.id_to_token(tiny_model.EOS) == "<eos>"
    assert tokenizer.token_to_id("nothing") is None and tokenizer.id_to_token(10**6) is None
    assert tokenizer.id_to_token(np.int64(97)) == "a"
    assert tokenizer.special_tokens == {"<eos>": 256, "<user>": 257, "<assistant>": 258}
    assert tokenizer.prefix.tolist() == tokenizer.suffix.tolist() == []
    assert all(tokenizer.token_to_id(tokenizer.id_to_token(i)) == i for i in range(tiny_model.VOCAB))


def test_batches(tokenizer):
    ids, mask = tokenizer.encode_batch(["a", "the the end", ""], pad_to_multiple=4)
    assert ids.shape == mask.shape and ids.dtype == mask.dtype == np.int32 and ids.shape[1] % 4 == 0
    for row, keep, text in zip(ids, mask, ["a", "the the end", ""]):
        assert row[keep == 1].tolist() == tokenizer.encode(text).tolist()
    ids, _ = tokenizer.encode_batch(["abcdef"], max_length=3)
    assert ids.tolist() == [[97, 98, 99]]
    for bad in ("abc", 3):
        with pytest.raises(TypeError, match="must be a list of texts"):
            tokenizer.encode_batch(bad)
    with pytest.raises(TypeError, match="text 2 must be a text, got 3"):
        tokenizer.encode_batch(["a", 3])


def test_streams_of_ids(tokenizer):
    decoder = rlx.text.StreamDecoder(tokenizer)
    pieces = [decoder.push(i) for i in tokenizer.encode(TEXT)] + [decoder.flush()]
    assert "".join(pieces) == TEXT and "" in pieces
    assert decoder.push(0xC3) == "" and decoder.push(np.int16(0xA9)) == "é" and decoder.flush() == ""
    assert decoder.push(0xC3) == "" and decoder.flush() == "\ufffd"
    with pytest.raises(ValueError):
        decoder.push(10**6)
    with pytest.raises(TypeError, match="a token must be an integer"):
        decoder.push("a")
    with pytest.raises(TypeError):
        rlx.text.StreamDecoder(None)


def test_texts_that_are_none(tokenizer):
    with pytest.raises(rlx.InvalidArgument, match="lone surrogate at character 1"):
        tokenizer.encode("a\udc80")
    with pytest.raises(rlx.InvalidArgument, match="byte"):
        tokenizer.encode(b"a\xff")
    for bad in (3, None, ["a"]):
        with pytest.raises(rlx.DTypeMismatch, match="must be a text, got"):
            tokenizer.encode(bad)
    with pytest.raises(rlx.InvalidArgument, match="262"):
        tokenizer.decode([262])


def test_files_that_are_no_tokenizers(tmp_path):
    with pytest.raises(FileNotFoundError):
        rlx.text.Tokenizer(tmp_path / "nowhere")
    with pytest.raises(rlx.NotFound):
        rlx.text.Tokenizer(tmp_path)
    for text in ("", "{", "[]", '{"model": {"type": "Magic"}}'):
        (tmp_path / "tokenizer.json").write_text(text)
        with pytest.raises(rlx.Error):
            rlx.text.Tokenizer(tmp_path)
        with pytest.raises(rlx.Error):
            rlx.text.Tokenizer.from_json(text)
    (tmp_path / "bad.gguf").write_bytes(b"GGUF\x03\0\0\0")
    with pytest.raises(rlx.BadFile, match="bad.gguf"):
        rlx.text.Tokenizer(tmp_path / "bad.gguf")


# -- chat templates --


def test_templates(folder):
    t = rlx.text.ChatTemplate(
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
        "{% if tools %}{{ tools[0].name }}{% endif %}{% if deep %}deep{% endif %}"
        "{% if add_generation_prompt %}[assistant]{% endif %}"
    )
    messages = [{"role": "user", "content": "né"}]
    assert t.render(messages) == "[user] né\n[assistant]"
    assert t.render("né", add_generation_prompt=False, special_tokens={"bos_token": "<s>"}) == "<s>[user] né\n"
    assert t.render(messages, tools=[{"name": "f"}], variables={"deep": True}) == "[user] né\nfdeep[assistant]"
    loaded = rlx.text.ChatTemplate.load(folder)
    assert loaded.source() == tiny_model.TEMPLATE and loaded.special_tokens == {"eos_token": "<eos>"}
    assert loaded.names and rlx.text.ChatTemplate(tiny_model.TEMPLATE).render("x") == loaded.render("x")


def test_wrong_templates(tmp_path):
    with pytest.raises(rlx.BadFile, match="line 1"):
        rlx.text.ChatTemplate("{% if %}")
    t = rlx.text.ChatTemplate("{{ raise_exception('no system') }}")
    with pytest.raises(rlx.InvalidArgument, match="no system"):
        t.render("x")
    with pytest.raises(TypeError, match="render has no option 'colour'"):
        rlx.text.ChatTemplate("x").render("x", colour=1)
    with pytest.raises(TypeError, match="tools cannot be written as JSON"):
        t.render("x", tools=[object()])
    with pytest.raises(TypeError, match="add_generation_prompt must be True or False"):
        t.render("x", add_generation_prompt=3.5)
    with pytest.raises(rlx.NotFound):
        rlx.text.ChatTemplate.load(tmp_path)


# -- GGUF --


def test_gguf_round_trip(tmp_path):
    path = tmp_path / "a.gguf"
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 64)).astype(np.float32)
    tensors = {
        "x": x,
        "half": (x, "F16"),
        "blocks": (x, "Q8_0"),
        "k": (rng.standard_normal((2, 256)), "Q4_K"),
        "n": [1, 2],
    }
    metadata = {
        "general.architecture": "none",
        "flag": True,
        "small": 7,
        "negative": -7,
        "large": 2**40,
        "ratio": 0.5,
        "words": ["a", "né", ""],
        "numbers": [1, 2, 3],
        "floats": [0.5, 1.0],
        "wide": np.float64(0.1),
        "byte": np.uint8(3),
        "bytes": np.array([1, 2], np.int16),
    }
    rlx.formats.gguf.save(path, tensors, metadata)
    f = rlx.formats.gguf.open(path)
    assert f.version == 3 and f.parts == 1 and f.architecture == "none" and len(f) == 5
    assert list(f) == list(tensors) and "x" in f and "y" not in f and 3 not in f
    assert {k: v if isinstance(v, (list, str)) else v for k, v in f.metadata.items()} == {
        **metadata,
        "wide": 0.1,
        "byte": 3,
        "bytes": [1, 2],
    }
    assert [t.type for t in f.tensors] == ["F32", "F16", "Q8_0", "Q4_K", "I32"]
    assert f.tensor("blocks").scheme == "q8_0" and f.tensor("x").scheme is None and f.tensor("x").shape == (4, 64)
    assert f.tensor("blocks").nbytes == 4 * 2 * 34 and f.tensor("blocks").stored().shape == (4, 68)
    assert np.array_equal(f["x"], x) and np.array_equal(f["half"], x.astype(np.float16)) and f["n"].tolist() == [1, 2]
    blocks = np.asarray(f["blocks"])
    assert blocks.dtype == np.float32 and np.abs(blocks - x).max() < np.abs(x).max() / 127
    assert np.asarray(f["k"]).shape == (2, 256)
    # What the op makes of the codes is what the file says.
    g = rlx.Graph()
    g.set_outputs(g.dequantize(g.input("c", (4, 68), "uint8"), scheme="q8_0", dims=(4, 64)))
    assert np.array_equal(rlx.Session().compile(g).run(f.tensor("blocks").stored())[0], blocks)


def test_the_package_gguf_agrees(tmp_path):
    peer = pytest.importorskip("gguf")
    path = tmp_path / "a.gguf"
    x = np.random.default_rng(0).standard_normal((4, 256)).astype(np.float32)
    rlx.formats.gguf.save(path, {"x": x, "q": (x, "Q4_0"), "k": (x, "Q6_K")}, {"general.architecture": "none", "n": 7})
    reader = peer.GGUFReader(path)
    ours = rlx.formats.gguf.open(path)
    for t in reader.tensors:
        assert np.array_equal(peer.quants.dequantize(t.data, t.tensor_type).reshape(4, 256), ours[t.name])
    assert reader.get_field("n").contents() == 7


def test_wrong_gguf(tmp_path):
    path = tmp_path / "a.gguf"
    save = rlx.formats.gguf.save
    x = np.zeros((2, 32), np.float32)
    for tensors, metadata, kind, words in (
        ({"x": (x, "Q9")}, {}, ValueError, "'x': there is no type 'Q9'"),
        ({"x": (x, "Q4_0", 1)}, {}, ValueError, "'x' must be an array or a pair .*, got a tuple of 3"),
        ({"x": (x, 3)}, {}, TypeError, "the type of 'x' must be a text"),
        ({"x": (x, "IQ1_S")}, {}, NotImplementedError, "can be read but not written"),
        ({"x": (x[:, :5], "Q4_0")}, {}, ValueError, "5"),
        ({"x": x.astype(np.complex64)}, {}, NotImplementedError, "'x': GGUF files have no tensors of"),
        ({3: x}, {}, TypeError, "a tensor's name must be a text"),
        ([], {}, TypeError, "tensors must be a dict"),
        ({}, {"k": None}, TypeError, "metadata 'k' cannot be None"),
        ({}, {"k": [1, "a"]}, TypeError, "metadata 'k' cannot be"),
        ({}, {"k": []}, TypeError, "metadata 'k' cannot be"),
        ({}, {"k": 2**80}, TypeError, "metadata 'k' cannot be"),
        ({}, {"": 1}, ValueError, "key"),
    ):
        with pytest.raises(kind, match=words):
            save(path, tensors, metadata)
        assert not path.exists()
    save(path, {"alpha": x})
    f = rlx.formats.gguf.open(path)
    with pytest.raises(rlx.NotFound, match="alpha"):
        f["alpah"]
    with pytest.raises(rlx.BadFile, match="general.architecture"):
        f.architecture
    with pytest.raises(FileNotFoundError):
        rlx.formats.gguf.open(tmp_path / "nowhere")
    whole = path.read_bytes()
    for cut in (0, 3, 10, 30, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(rlx.Error, match="a.gguf"):
            rlx.formats.gguf.open(path)


def test_gguf_says_what_a_type_cannot_hold(tmp_path):
    save, path = rlx.formats.gguf.save, tmp_path / "a.gguf"
    x = np.random.default_rng(0).standard_normal((2, 256)).astype(np.float32)
    for type, amplitude, words in (
        ("Q4_0", 1e6, "'w': the relative error of Q4_0 is"),
        ("Q4_1", 1e6, "'w': the relative error of Q4_1"),
        ("F16", 1e-6, "'w': the relative error of F16"),
        ("Q8_0", 1e7, "'w': the relative error of Q8_0"),
    ):
        with pytest.warns(RuntimeWarning, match=words):
            save(path, {"w": (x * np.float32(amplitude), type), "fine": (x, type)})
        assert path.exists()
    path.unlink()
    for array, type, words in (
        (x * np.float32(1e6), "F16", "'w': .* beyond the range of F16"),
        (x.astype(np.float64) * 1e300, "F32", "beyond the range of F32"),
        (x * np.float32(1e-12), "Q4_0", "is 100 %"),
        (x * np.float32(1e-8), "Q4_1", "the relative error of Q4_1"),
        (np.array([1, 300]), "I8", "I8 cannot hold the value 300"),
        (np.array([1.5]), "I32", "I32 cannot hold the value 1.5"),
    ):
        with pytest.raises(rlx.InvalidArgument, match=words):
            save(path, {"w": (array, type)})
        assert not path.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for type in (
            "F32",
            "F16",
            "BF16",
            "Q8_0",
            "Q4_0",
            "Q4_1",
            "Q5_0",
            "Q5_1",
            "Q2_K",
            "Q3_K",
            "Q4_K",
            "Q5_K",
            "Q6_K",
        ):
            for amplitude in (1e-3, 0.02, 1, 100):
                save(path, {"w": (x * np.float32(amplitude), type)})
        save(path, {"zeros": (np.zeros((1, 256)), "Q4_0"), "n": (np.arange(5.0), "I32")})


def test_tensors_outlive_their_file(tmp_path):
    path = tmp_path / "a.gguf"
    rlx.formats.gguf.save(path, {"x": np.arange(64, dtype=np.float32)})
    t = rlx.formats.gguf.open(path).tensors[0]
    a = t.array()
    del t
    assert a.tolist() == list(range(64))


def test_conversions(folder, tmp_path):
    target, notes = tmp_path / "t.gguf", []
    rlx.models.convert(folder, target, type="Q4_K", note=notes.append)
    assert notes and all(isinstance(n, str) for n in notes)
    f = rlx.formats.gguf.open(target)
    assert f.architecture == "llama" and f.metadata["llama.block_count"] == tiny_model.LAYERS
    assert len(f.metadata["tokenizer.ggml.tokens"]) == tiny_model.VOCAB
    assert rlx.text.Tokenizer(target).encode(TEXT).tolist() == rlx.text.Tokenizer(folder).encode(TEXT).tolist()
    assert rlx.text.ChatTemplate.load(target).render("x") == rlx.text.ChatTemplate.load(folder).render("x")
    rlx.models.convert(target, tmp_path / "back")
    assert json.loads((tmp_path / "back" / "config.json").read_text())["model_type"] == "llama"
    notes.clear()
    rlx.models.convert(folder, tmp_path / "s.gguf", split_max_bytes=4096, note=notes.append)
    parts = sorted(tmp_path.glob("s-00001-of-*.gguf"))
    assert len(parts) == 1 and "files" in notes[-1]
    assert rlx.formats.gguf.open(parts[0]).parts == len(list(tmp_path.glob("s-*.gguf"))) > 2
    with pytest.raises(ValueError, match="there is no type 'Q9'"):
        rlx.models.convert(folder, target, type="Q9")
    with pytest.raises(FileNotFoundError):
        rlx.models.convert(tmp_path / "nowhere", target)

    def fails(text):
        raise LookupError(text)

    with pytest.raises(LookupError):
        rlx.models.convert(folder, tmp_path / "u.gguf", type="Q4_K", note=fails)
