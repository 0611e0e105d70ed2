"""Models by name from a hub on the loopback: what is pulled, what is refused, and that no token leaves."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import rlx
import rlx.hub
import rlx.models
import stand_in_hub
from stand_in_hub import COMMIT, REPO


@pytest.fixture(scope="module")
def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def hub(files, tmp_path, monkeypatch):
    with stand_in_hub.serving(files, ["model.safetensors"], tmp_path / "home", monkeypatch) as hub:
        yield hub


def snapshot(tmp_path):
    return tmp_path / "home/hub/models--org--name/snapshots" / COMMIT


def test_a_model_by_name_is_pulled_once(hub, folder, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.chdir(tmp_path)
    assert rlx.hub.cached(REPO) is None
    model = rlx.models.load(REPO)
    assert "downloading org/name: 4 files" in capfd.readouterr().err
    tokens = [1, 2, 3]
    np.testing.assert_array_equal(model.logits(tokens), rlx.models.load(folder).logits(tokens))
    assert rlx.hub.cached(REPO) == str(snapshot(tmp_path))
    assert {host for host, _, _ in hub.requests} == {"127.0.0.1", "127.0.0.2"}
    for host, _, headers in hub.requests:
        assert headers.get("authorization") == ("Bearer hf_secret" if host == "127.0.0.1" else None)
    asked = len(hub.requests)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    rlx.models.load(f"{REPO}@{COMMIT}", draft=REPO)
    assert rlx.hub.pull(REPO) == rlx.hub.find(REPO) == str(snapshot(tmp_path))
    assert len(hub.requests) == asked
    assert capfd.readouterr().err == ""


def test_what_is_a_path_is_no_name(hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org").mkdir()
    for path in (REPO, "./a/b", "/a/b", "a/b/c", "~/a", "a", pathlib.Path("a/b"), b"a/b", "a/\udcff", "a/b\0", 3, None):
        assert rlx.hub.find(path) is path or rlx.hub.find(path) == path
    for load in (rlx.models.load, rlx.SentenceEncoder, rlx.Reranker):
        with pytest.raises(FileNotFoundError, match="org/name"):
            load(REPO)
    assert not hub.requests
    with pytest.raises(rlx.InvalidArgument, match="'a/../b' is not the name of a model"):
        rlx.hub.pull("a/../b")
    with pytest.raises(TypeError, match="pull"):
        rlx.hub.pull(3)
    with pytest.raises(rlx.InvalidArgument, match="retries must not be negative"):
        rlx.hub.pull(REPO, retries=-1)


def test_encoders_and_convert_take_names(hub, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vectors = rlx.SentenceEncoder(REPO).embed(["the text", "another"])
    np.testing.assert_array_equal(vectors, rlx.SentenceEncoder(folder).embed(["the text", "another"]))

    def outcome(name):
        try:
            return rlx.Reranker(name).labels
        except rlx.Error as e:
            return type(e)

    assert outcome(REPO) == outcome(folder)
    assert rlx.hub.cached(REPO) == str(snapshot(tmp_path))
    rlx.models.convert(REPO, tmp_path / "m.gguf", type="Q8_0")
    assert (tmp_path / "m.gguf").exists()


def test_a_cut_download_continues(hub, files, tmp_path):
    weights = files["model.safetensors"]
    part = len(weights) // 3 + 1
    hub.fault = lambda path, _: {"cut": part} if path.startswith("/large/") else None
    said, seen = [], []
    path = rlx.hub.pull(REPO, note=said.append, progress=lambda done, total: seen.append((done, total)))
    assert pathlib.Path(path, "model.safetensors").read_bytes() == weights
    ranges = [headers.get("range") for _, path, headers in hub.requests if path.startswith("/large/")]
    assert ranges == [None, f"bytes={part}-", f"bytes={2 * part}-"]
    assert len(said) == 1 and seen == sorted(seen) and seen[-1][0] == seen[-1][1]


@pytest.mark.parametrize("fault", ["wrong byte", "too long", "too short", "page", "redirect", "silent", "503", "cut"])
def test_no_wrong_file_is_kept(hub, files, tmp_path, fault, monkeypatch):
    def change(path, _):
        if not path.startswith("/large/"):
            return None
        body = files["model.safetensors"]
        return {
            "wrong byte": {"status": 200, "headers": {}, "body": b"x" + body[1:]},
            "too long": {"status": 200, "headers": {}, "body": body + b"x"},
            "too short": {"status": 200, "headers": {}, "body": body[:-1]},
            "page": {"status": 200, "headers": {}, "body": b"<html>"},
            "redirect": {"status": 302, "headers": {"Location": "file:///etc/passwd"}, "body": b""},
            "silent": {"silent": True},
            "503": {"status": 503, "headers": {"Retry-After": "0"}, "body": b""},
            "cut": {"cut": 0},
        }[fault]

    hub.fault = change
    monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", "1")
    with pytest.raises(rlx.Error) as caught:
        rlx.hub.pull(REPO, retries=1, note=None)
    if fault == "redirect":
        assert "redirects to file:///etc/passwd, which is not https" in str(caught.value)
    assert not (snapshot(tmp_path) / "model.safetensors").exists()
    assert rlx.hub.cached(REPO) is None
    hub.fault = None
    path = rlx.hub.pull(REPO, note=None)
    assert pathlib.Path(path, "model.safetensors").read_bytes() == files["model.safetensors"]


def test_errors_say_what_to_do(hub, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rlx.NotFound, match='there is no model "org/other" at http://127.0.0.1'):
        rlx.hub.pull("org/other")
    with pytest.raises(rlx.NotFound, match='there is no file or folder "org/other" here, and as the name of a model'):
        rlx.models.load("org/other")
    hub.fault = lambda *_: {"status": 401, "headers": {"X-Error-Code": "GatedRepo"}, "body": b""}
    with pytest.raises(rlx.NotFound, match="(?s)is gated.*accept its terms, and set HF_TOKEN"):
        rlx.hub.pull(REPO)
    hub.fault = lambda *_: {"status": 429, "headers": {"Retry-After": "100"}, "body": b""}
    with pytest.raises(rlx.NotFound, match="try again in 100 seconds"):
        rlx.hub.pull(REPO)
    hub.fault = lambda *_: {"body": b'{"sha": "../../x", "siblings": []}'}
    with pytest.raises(rlx.BadFile, match="is not a commit"):
        rlx.hub.pull(REPO)
    bad = b'{"sha": "%s", "siblings": [{"rfilename": "../../x.json", "size": 1, "blobId": "%s"}]}'
    hub.fault = lambda *_: {"body": bad % (COMMIT.encode(), b"a" * 40)}
    with pytest.raises(rlx.BadFile, match="could lead out of the model's folder"):
        rlx.hub.pull(REPO)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(rlx.NotFound, match="(?s)cannot reach http://127.0.0.1:9.*without a network, give the path"):
        rlx.hub.pull(REPO)
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.example")
    with pytest.raises(rlx.InvalidArgument, match="is not the address of a hub"):
        rlx.hub.pull(REPO)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(rlx.NotFound, match="HF_HUB_OFFLINE forbids to download it"):
        rlx.hub.pull(REPO)


def test_exceptions_of_the_user_end_a_pull(hub, files):
    def stop(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rlx.hub.pull(REPO, note=None, progress=stop)
    with pytest.raises(ZeroDivisionError):
        rlx.hub.pull(REPO, note=stop)
    assert rlx.hub.pull(REPO, note=None)


def test_importing_rlx_imports_no_client_of_http():
    code = "import rlx, sys; print('urllib.request' in sys.modules, 'http.client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\n"
