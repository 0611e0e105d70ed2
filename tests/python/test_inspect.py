"""Looking inside: pages, reports, profiles, timelines."""

import json

import numpy as np
import pytest
import rlx
import rlx.numpy as rnp

x = np.ones((4, 8), np.float32)


def model(w, v):
    return rlx.nn.softmax(rlx.nn.gelu(v @ w), axis=-1)


def test_a_page_of_a_function(tmp_path):
    page = rlx.jit(model).inspect(np.ones((8, 8), np.float32), x)
    path = page.save(tmp_path / "page.html")
    text = path.read_text()
    assert text.lstrip().lower().startswith("<!doctype html") and "softmax" in text and "fuse-dot-epilogue" in text
    assert "http://" not in text.replace("http://www.w3.org", "") and "https://" not in text
    assert page._repr_html_().startswith("<iframe srcdoc=") and str(len(text) // 1024) in repr(page)


def test_a_page_without_times():
    f = rlx.jit(model).lower(np.ones((8, 8), np.float32), x).compile(keep_stages=True)
    assert "softmax" in f.compiled.inspect(title="my model").html
    assert [name for name, _ in f.compiled.stages()][-1] == "lir"


def test_reports():
    f = rlx.jit(model)
    f(np.ones((8, 8), np.float32), x)
    (program,) = f.programs
    assert "fused" in program.fusion_report() and "cpu" in program.dispatch_report()
    assert "arena" in program.plan() and program.target and program.device == "cpu"
    times = program.profile(np.ones((8, 8), np.float32), x)
    assert times and all(t["ns"] >= 0 and t["kernel"] for t in times)
    with pytest.raises(ValueError, match="has no value"):
        program.profile(x)


def test_a_timeline(tmp_path):
    trace = rlx.Trace(str(tmp_path / "run.json"))
    f = rlx.jit(lambda v: rnp.tanh(v @ v.T), trace=trace)
    f(x)
    f(x)
    trace.flush()
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    spans = [e for e in events if e.get("ph") == "X"]
    assert {"compile", "run", "step"} <= {e["cat"] for e in spans}
    with pytest.raises(ValueError, match="nowhere"):
        rlx.Trace(str(tmp_path / "nowhere" / "run.json"))
