"""Random programs: those that once failed, a sample of fixed seeds, and proof that a wrong result is seen."""

import collections
import glob
import os

import jax.extend  # noqa: F401
import numpy as np
import pytest
from oracles import catalogue, dtypes
from oracles.evaluator import Evaluator, wide
from programs import generate, libs, model, oracle, run, shrink, transforms
from run_programs import FOLDER, mode_of, program_of

catalogue.load()
REGRESSIONS = sorted(glob.glob(os.path.join(FOLDER, "*.txt")))
SAMPLE, BLOCK = 160, 20


@pytest.mark.parametrize("path", REGRESSIONS, ids=[os.path.basename(p)[:-4] for p in REGRESSIONS])
def test_regression(path, device):
    with open(path) as f:
        run.check(model.Program.parse(f.read()), (device,))


def _programs(seeds, device, ways=None):
    for seed in seeds:
        program = program_of(seed)
        if program is None:
            continue
        try:
            run.check(program, (device,), ways)
        except run.Mismatch as e:
            pytest.fail(f"python tests/python/run_programs.py --seed {seed} --count 1 --device {device}: {e}")


@pytest.mark.parametrize("start", range(900_000, 900_000 + SAMPLE, BLOCK))
def test_sample(start, device):
    _programs(range(start, start + BLOCK), device)


EVERYTHING = {"cpu": 20_000, "tpu": 2_000}  # programs; of other devices 1,000


@pytest.mark.parametrize("start", range(0, 20_000, 100))
def test_everything(start, device, full):
    """--full DEVICE: thousands of programs."""
    if not full or start >= EVERYTHING.get(device, 1_000):
        pytest.skip("with --full, as many as the device has time for")
    ways = None if device == "cpu" else {"default": run.WAYS["default"]}  # elsewhere compiles take most of the time
    _programs(range(start, start + 100), device, ways)


def test_every_op_is_drawn():
    """Each op of the catalogue fits into programs: none is left out because its draws never do."""
    seen, seed = collections.Counter(), 0
    wanted = set(catalogue.OPS)
    for name in sorted(wanted):
        op = catalogue.OPS[name]
        for seed in range(20):
            g = generate.Generator(generate.Dice(seed), [op], False)
            if any(s.op == name for s in g.steps(2, False)):
                seen[name] += 1
                break
    assert not wanted - set(seen), sorted(wanted - set(seen))


def test_a_seed_is_a_program():
    a, b = program_of(77), program_of(77)
    assert a.text() == b.text()
    again = model.Program.parse(a.text("note"))
    assert again.text("note") == a.text("note")
    for x, y in zip(run.arguments(a), run.arguments(again)):
        assert x.dtype == y.dtype and x.tobytes() == y.tobytes()


# -- what would have to be seen --


FLOATS = dtypes.FLOATS + dtypes.COMPLEX


def _off(results, change, types):
    """The first result of these dtypes that has elements has one of them changed."""
    out = list(results)
    for k, r in enumerate(out):
        if r.dtype.name in types and r.size:
            r = np.array(r)
            r.reshape(-1)[r.size // 2] = change(r.reshape(-1)[r.size // 2])
            out[k] = r
            return out
    return None


def _caught(change, seeds, mode, types=FLOATS):
    """How many of the programs with a floating result fail when that is changed."""
    caught = tried = 0
    for seed in seeds:
        program = generate.program_of(seed, mode)
        if program is None:
            continue
        touched = []

        def tamper(results, touched=touched):
            new = _off(results, change, types)
            touched.append(new is not None)
            return new or results

        try:
            run.check(program, ways={"default": {}}, tamper=tamper, closer=6)
        except run.Mismatch:
            caught += 1
        tried += any(touched)
    return caught, tried


@pytest.mark.rotates(2)
@pytest.mark.parametrize("mode", ["forward", "vjp"])
def test_wrong_results_are_seen(mode):
    dtype_of = lambda x: np.asarray(x).dtype  # noqa: E731
    seeds = range(50, 64)
    for change, share in (
        # Of derivatives a NaN may stand where a value inside is undefined.
        (lambda v: dtype_of(v).type(np.nan), 0.99 if mode == "forward" else 0.85),
        (lambda v: -v if abs(complex(v)) > 0.01 else v + dtype_of(v).type(1), 0.75),
        (lambda v: v * dtype_of(v).type(1.25) + dtype_of(v).type(0.25), 0.7),
    ):
        caught, tried = _caught(change, seeds, mode)
        assert tried >= 10
        assert caught >= share * tried, f"{caught} of {tried} wrong results were seen"


def test_small_errors_are_seen():
    """1 % of a result in f32 or f64: seen in programs that are well conditioned, as most are."""
    caught, tried = _caught(
        lambda v: v * (1 + np.asarray(v).dtype.type(2.0**-7)) + np.asarray(v).dtype.type(2.0**-7),
        range(100, 140),
        "forward",
        ("float32", "float64"),
    )
    assert (
        caught >= 0.55 * tried
    ), f"{caught} of {tried} errors of 1 % were seen"  # elements of an fft are as good as its line


def test_wrong_integers_are_seen():
    program = model.Program(
        0, [model.Input("x0", "int32", np.arange(4, dtype=np.int32))], [model.Step(["v0"], "square", ["x0"])], ["v0"]
    )
    run.check(program)
    with pytest.raises(run.Mismatch):
        run.check(program, tamper=lambda r: [r[0] + np.array([0, 0, 1, 0], np.int32)])
    with pytest.raises(run.Mismatch):
        run.check(program, tamper=lambda r: [r[0].astype(np.int64)])
    with pytest.raises(run.Mismatch):
        run.check(program, tamper=lambda r: [r[0].reshape(2, 2)])


def test_a_failing_program_is_shrunk(monkeypatch):
    """A wrong `tanh` of rlx: what is left is that op alone."""
    import rlx

    real = catalogue.OPS["tanh"].run_rlx
    monkeypatch.setattr(catalogue.OPS["tanh"], "run_rlx", lambda a, n, t: real([rlx.ops.mul(a[0], 1.5)], n, t))
    for seed in range(300, 700):
        program = generate.program_of(seed, "forward")
        ops = [s.op for s in program.steps]
        if "tanh" not in ops or len(ops) < 6 or any(op.startswith("control.") for op in ops):
            continue  # a loop may hold another tanh, and is one step
        try:
            run.check(program)
        except run.Mismatch:
            small, error = shrink.shrink(program)
            assert [s.op for s in small.steps] == ["tanh"], small.text()
            with pytest.raises(run.Mismatch):
                run.check(model.Program.parse(small.text(str(error))))
            return
    pytest.fail("no program with a wrong tanh failed")


# -- the oracle itself --


@pytest.mark.parametrize("mode", ["forward", "vjp", "nested"])
def test_the_evaluator_is_jax(mode):
    """NumPy's run of a jaxpr against XLA's, in float64."""
    import jax

    for seed in range(500, 504):
        program = generate.program_of(seed, mode)
        if program is None:
            continue
        for i in program.inputs:  # all floats as f64: XLA then computes what the evaluator does
            if dtypes.kind(i.dtype) == "f":
                i.value, i.dtype = i.value.astype(np.float64), "float64"
        lib = libs.JaxLib()
        specs = [(i.dtype, i.value.shape) for i in program.inputs]
        for t in program.transforms:
            if "more" in t:
                t["more"] = [["float64" if dtypes.kind(d) == "f" else d, s] for d, s in t["more"]]
        try:
            f, _ = transforms.apply(lib, libs.function_of(lib, program), specs, program.transforms)
            args = run.arguments(program)
            closed = jax.make_jaxpr(f)(*args)
        except (TypeError, ValueError):
            continue  # an op that names a dtype beside the one that was made wide
        if any(a.dtype.name in ("float32", "bfloat16", "float16", "complex64") for a in closed.out_avals):
            continue
        ours = Evaluator().run(closed, *[wide(a) for a in args])
        theirs = jax.jit(f)(*args)
        for a, b in zip(ours, theirs):
            b = wide(np.asarray(b))
            assert np.shape(a) == b.shape
            assert np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True), (seed, mode)


def test_bounds_are_of_rounding():
    """Ten additions in f32: the bound is more than what rounding does, and not a thousand times more."""
    import jax.numpy as jnp

    def f(x):
        for k in range(10):
            x = x + jnp.float32(0.1) * x
        return (x,)

    closed, types = oracle.traced(f, [("float32", (64,))])
    x = np.random.default_rng(1).uniform(1, 2, 64).astype(np.float32)
    want = oracle.Expected(lambda: (closed, types), [x])
    want.refine(4)
    y = x
    for k in range(10):
        y = y + np.float32(0.1) * y
    assert want.check(0, y, False)[0] is None
    assert want.check(0, y * np.float32(1 + 3e-5), False)[0] is not None
