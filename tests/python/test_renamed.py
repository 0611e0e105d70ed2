"""Names that changed: the old ones work through one release, and warn once in a process."""

import subprocess
import sys
import warnings

import pytest
import rlx
import rlx.models
import tiny_model

# In a process of its own: a warning is given once.
SCRIPT = """
import sys
import warnings

import rlx
import rlx.lax
import rlx.models

path = sys.argv[1]
below_ten, double = lambda c: c < 10, lambda c: c * 2
leaves, treedef = rlx.tree.flatten([1.0, {"a": 2.0}])
load = lambda **options: rlx.models.load(path, **options)
OLD = {
    "rlx.Page": lambda: rlx.Page is rlx.Report,
    "rlx.while_loop(max_trips=)": lambda: rlx.while_loop(below_ten, double, 1, max_trips=2) == 4,
    "rlx.lax.while_loop(max_trips=)": lambda: rlx.lax.while_loop(below_ten, double, 1, max_trips=2) == 4,
    "rlx.tree.unflatten(form=)": lambda: rlx.tree.unflatten(form=treedef, leaves=leaves) == [1.0, {"a": 2.0}],
    "rlx.jit(products=)": lambda: rlx.jit(lambda x: x @ x, products="int8")(rlx.array([[2.0]])) == 4,
    "Session(products=)": lambda: rlx.Session(products="bfloat16").device == "cpu",
    "rlx.models.load(products=)": lambda: load(products="exact").context > 0,
    "rlx.models.load(forms=)": lambda: load(forms=path + "-packed").context > 0,
    "rlx.models.load(verify_forms=)": lambda: load(packed_weights=path + "-packed", verify_forms=True).context > 0,
    "LanguageModel.form_problems": lambda: load().form_problems == [],
    "Sampler.chances()": lambda: rlx.models.Sampler(temperature=1.0).chances([0.0, 1.0])[0].tolist() == [1, 0],
}
for name, use in OLD.items():
    for times in (1, 0):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert use(), name
        texts = [str(w.message) for w in told]
        assert len(told) == times, (name, texts)
        for w in told:
            assert w.category is DeprecationWarning and w.filename == "<string>", (name, w.filename)
            assert str(w.message).startswith(name + " is deprecated and goes in the next release: use "), texts
print(len(OLD), "names")
"""


def test_old_names_work_and_warn_once(tmp_path):
    folder = tmp_path / "model"
    tiny_model.write(folder)
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(folder)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "11 names\n"


def test_an_old_name_beside_its_new_one():
    with pytest.raises(TypeError, match="rlx.while_loop: both max_trips and max_iterations are given"):
        rlx.while_loop(lambda c: c < 2, lambda c: c, 1, max_iterations=1, max_trips=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(rlx.InvalidArgument, match="both products and matmul_precision"):
            rlx.Session(matmul_precision="int8", products="int8")


def test_a_warning_may_be_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeprecationWarning, match="use rlx.Report instead"):
            rlx.Page  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'Pages'"):
        rlx.Pages  # noqa: B018
