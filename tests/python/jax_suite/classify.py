"""Sorts the failures of JAX's tests by kind."""

import collections
import re
import traceback
import unittest

# The kinds, and whether they say something about rlx: the others are bound to how JAX is built.
KINDS = {
    "internals": ("jaxprs, tracers' classes, primitives, sharding, lowered text, caches, flags", False),
    "dtype": ("dtypes that rlx does not have", False),
    "documented": ("a difference that the documentation names: see KNOWN", False),
    "text": ("an error of another type or text than JAX's", False),
    "numbers": ("other numbers, shapes or dtypes", True),
    "accepted": ("no error where JAX has one", True),
    "missing": ("functions that rlx does not have", True),
    "argument": ("arguments that rlx does not have", True),
    "refused": ("an error of rlx where JAX has none", True),
    "crash": ("internal errors, crashes, more time than the limit", True),
    "other": ("everything else", True),
}


# Failures known by their error or by their test: (kind, regular expression, reason). The first that fits counts.
KNOWN = (
    (
        "internals",
        r"cach(e|ing)|retrac|Recompile|_logging|with_logs|leak|no_tracing|no_execution|name_stack|user_context",
        "counts of traces, logs of caches, the checker of tracer leaks",
    ),
    (
        "internals",
        r"traceback|user_code|docstr|Docstring|SignaturesMatch|jit_repr|fun_name",
        "frames, names and texts of JAX",
    ),
    (
        "internals",
        r"pmap|token|donat|device_put|copy_to_host|platform\b|num_cpu_devices|compile_options|compiler_option|"
        r"effort_level|_lower_|lowering|compiler_ir|print_environment|internal_device|CpuDevice|[Ww]ith_?[Dd]evice",
        "devices, sharding, donation of buffers, options and stages of XLA",
    ),
    (
        "internals",
        r"vjp3|fsdp|opaque|saveable_args|args_res|new_ref|_refs\b|mutable|hijax|float0|cse_|forwarding|dce_sink",
        "references, residuals and rewrites of jaxprs",
    ),
    (
        "internals",
        r"lax_reference|top_k\(\) got an unexpected keyword argument 'is_stable'",
        "tools of another version",
    ),
    (
        "documented",
        r"Python asked whether a traced value|its numbers exist only when the compiled function runs|"
        r"must be known while the function is traced|object of type (function|method), which is not an array",
        "docs/python.md: traced values have no numbers, under grad, jvp and vmap outside of jit too",
    ),
    (
        "documented",
        r"keys are of the generator 'threefry2x32'|PRNGKeyArray|RandomKeys|test_key_|test_keyarray|"
        r"random_test\.(KeyArrayTest|JnpWithKeyArrayTest)|prng_key|test_legacy_prng|prngs_registered|seed_offset",
        "docs/python_for_jax_users.md: keys are uint32 arrays of threefry",
    ),
    (
        "documented",
        r"checkpoint: policy|checkpoint_policies|checkpoint_name|remat.*polic|checkpoint_dots",
        "docs/python_for_jax_users.md: rlx.checkpoint has three policies",
    ),
    (
        "documented",
        r"test_ops_(error_on_mismatched|do_not_accept)|RankPromotion|rank_promotion|(Slice|Update)\w*TypeErrors|"
        r"integer_overflow|ArrayFromInteger|DefaultDtypes|dtype_warning|Deprecat|IndexSequence|BooleanIndexingList",
        "rlx.lax and rlx.numpy promote and broadcast, as NumPy does, and keep 64-bit dtypes",
    ),
    (
        "documented",
        r"int4|uint4|\bi4\b|\bu4\b|f8e4m3|f8e5m2|float8|fp8|scaled_dot_general|ScaledMatmul",
        "docs/ops.md: storage dtypes are cast before arithmetic",
    ),
    ("documented", r"test_invariance", "custom_jvp: rules give the first and the second derivative"),
    (
        "documented",
        r"float64\[|float64 .* float32|uint64 != ",
        "docs/python.md: 64-bit arrays stay, without a mode x64",
    ),
    ("documented", r"TakeAlongAxisOutOfBounds|index \d+ is out of range", "rlx.numpy: indices out of range"),
    ("documented", r"device=.*inside a compiled function", "rlx.jit: device"),
    (
        "documented",
        r"OnComplexPlane_(exp|exp2|expm1|cos|cosh|sin|sinh|tan|sign)",
        "docs/numerics.md: infinities follow C99",
    ),
    ("documented", r"reverse mode of while needs a bound", "docs/control_flow.md: max_iterations"),
)


class OtherError(AssertionError):
    """rlx raised an error, but of another type or text than the test wants."""


def watch_raises():
    """From now on assertRaises and assertRaisesRegex tell an error of another kind from no error."""
    from shim.standins import NotInRlx, UsesInternals

    context = unittest.case._AssertRaisesContext
    plain = context.__exit__

    def exit(self, kind, error, trace):
        if error is not None and isinstance(error, (NotInRlx, UsesInternals)):
            return False
        if error is not None and not isinstance(error, Exception):
            return plain(self, kind, error, trace)
        try:
            swallowed = plain(self, kind, error, trace)
        except AssertionError as wrong:
            if error is None:
                raise
            raise OtherError(f"{wrong} (raised: {type(error).__name__}: {str(error)[:300]})") from None
        if error is not None and not swallowed:
            raise OtherError(f"wanted {self.expected}, raised {type(error).__name__}: {str(error)[:300]}") from error
        return swallowed

    context.__exit__ = exit


class Result(unittest.TestResult):
    """The outcome of one test."""

    def __init__(self):
        super().__init__()
        self.found = []
        self.why_skipped = None

    def addError(self, test, err):
        self.found.append(err[1])

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.found.append(err[1])

    def addSkip(self, test, reason):
        self.why_skipped = reason

    def record(self):
        self.found += [e for e in self.errors if isinstance(e, Exception)]
        if self.found:
            return {"result": "fail", **of(self.found[0])}
        if self.why_skipped is not None:
            return {"result": "skip", "what": str(self.why_skipped)[:200]}
        return {"result": "pass"}


_INTERNAL_ATTRIBUTES = set(
    "aval sharding devices addressable_shards addressable_data is_deleted delete unsafe_buffer_pointer jaxpr eqns "
    "on_device_size_in_bytes is_fully_replicated is_fully_addressable _value committed _committed trace as_text "
    "compiler_ir _cache_size cost_analysis in_avals out_avals out_info args_info in_tree global_shards layout format "
    "is_ready _npy_value key_impl in_shardings lower _fun vma memory_space consts literals fun_name".split()
)


def of(error):
    """kind, what and where of a failure."""
    chain, link = [], error
    while link is not None and len(chain) < 10:
        chain.append(link)
        link = link.__cause__ or link.__context__
    names = [type(e).__name__ for e in chain]
    text = str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = next(
        (f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno}" for f in reversed(frames) if "/tests/" in f.filename), ""
    )
    what = f"{names[0]}: {text[:400]}"
    return {"kind": _kind(error, chain, names, text), "what": what, "where": where}


def known(record):
    """The record, with the kind that KNOWN has for its error or its test."""
    if record["result"] == "fail" and KINDS[record["kind"]][1]:
        for kind, pattern, _ in KNOWN:
            if re.search(pattern, record["test"].partition(".")[2]) or re.search(pattern, record["what"]):
                return {**record, "kind": kind}
    return record


def _kind(error, chain, names, text):
    for name, kind in (("UsesInternals", "internals"), ("NotInRlx", "missing")):
        if name in names:
            return kind
    if names[0] == "OtherError":
        return "text"
    if names[0] in ("TookTooLong", "InternalError"):
        return "crash"
    if re.search(r"float8_(e3m4|e4m3\b|e4m3b11fnuz|e4m3fnuz|e5m2fnuz|e8m0fnu)|\bu?int2\b|float0", text):
        return "dtype"
    if isinstance(error, AttributeError):
        name = re.search(r"no attribute '(\w+)'", text)
        return "internals" if name and name[1] in _INTERNAL_ATTRIBUTES else "missing"
    if isinstance(error, AssertionError):
        if "not raised" in text:
            return "accepted"
        if re.search(
            r"Exception message does not match|Regex didn't match|Expected warning not found|not found in '", text
        ):
            return "text"
        if re.search(r"Not equal to tolerance|[Aa]rrays are not|Mismatched|dtype\(|!= \(|Items in the|not close", text):
            return "numbers"
        return "other"
    if isinstance(error, TypeError) and re.search(r"unexpected keyword|positional argument|has no argument", text):
        return "argument"
    return "refused"


def summary(records):
    """The counts as text, and how many tests fail for other reasons than JAX's internals."""
    records = [known(r) for r in records]
    results = collections.Counter(r["result"] for r in records)
    kinds = collections.Counter(r["kind"] for r in records if r["result"] == "fail")
    others = sum(n for kind, n in kinds.items() if KINDS[kind][1])
    lines = [f"{len(records)} tests: {results['pass']} pass, {results['skip']} skipped, {results['fail']} fail", ""]
    lines += ["| kind | count | |", "|---|---|---|"]
    lines += [f"| {kind} | {kinds[kind]} | {KINDS[kind][0]} |" for kind in KINDS if kinds[kind]]
    lines += ["", f"{others} tests fail for other reasons than JAX's internals."]
    return "\n".join(lines), others
