"""What scripts/wheel.sh tries in an environment that holds the wheel and what it depends on, and no compiler."""

import shutil
import sys
import time

begin = time.perf_counter()
import rlx  # noqa: E402

took = time.perf_counter() - begin
assert "numpy" not in sys.modules and "ml_dtypes" not in sys.modules, "import rlx loads NumPy"
for tool in ("g++", "cc", "cmake", "ninja"):
    assert shutil.which(tool) is None, f"{tool} is on the path: this is no environment without a compiler"

import numpy as np  # noqa: E402
import rlx.numpy as rnp  # noqa: E402

f = rlx.jit(lambda x, w: rnp.tanh(x @ w))
x, w = np.ones((2, 3), np.float32), np.full((3, 4), 0.1, np.float32)
np.testing.assert_allclose(f(x, w), np.tanh(x @ w), rtol=1e-6)
gradient = rlx.grad(lambda w: rnp.sum(f(x, w)))(w)
np.testing.assert_allclose(gradient, x.T @ (1 - np.tanh(x @ w) ** 2), rtol=1e-5)
assert str(rlx.array([1, 2], "bfloat16").dtype) == "bfloat16"
g = rlx.Graph("hello")
g.set_outputs(g.input("x", (1, 4)) @ g.param("w", (4, 2)))
c = rlx.Session("cpu").compile(g)
c.set_param("w", [[1, 0], [0, 1], [1, 0], [0, 1]])
assert c.run([[1, 2, 3, 4]])[0].tolist() == [[4, 6]]
import rlx.formats  # noqa: E402
import rlx.models  # noqa: E402
import rlx.text  # noqa: E402

level = '{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}'
words = '{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}'
tokenizer = rlx.text.Tokenizer.from_json(f'{{"pre_tokenizer": {level}, "decoder": {level}, "model": {words}}}')
assert tokenizer.encode("abba").tolist() == [2, 1, 0] and tokenizer.decode([2, 0]) == "aba"
assert rlx.models.Grammar.json_schema({"enum": ["a"]}).matches('"a"')
print(f"rlx {rlx.__version__} works, imported in {took * 1e3:.0f} ms")
