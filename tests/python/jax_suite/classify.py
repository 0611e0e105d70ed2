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


# Failures that are known: (kind, pattern of the test, pattern of the error, reason). A test is file.Class.method. A
# pattern that is None fits all; both have to fit, and the first entry that fits counts. A pattern of the test alone
# stands only where every failure of such a test says nothing about rlx: wrong numbers in it would not be seen.
KNOWN = (
    (
        "internals",
        r"cach(e|ing)|retrac|[Rr]ecompile|_logging|test_piecewise",
        r"no logs of level|AssertionError: \d+ != \d+|AssertionError: $|live_executables",
        "counts of traces and compilations, logs of caches",
    ),
    ("internals", r"leak_checker", None, "the checker of tracer leaks"),
    (
        "internals",
        None,
        r"NotInRlx: jax\.(pmap|live_arrays|check_tracer_leaks|no_execution|no_tracing|make_user_context|ref\.|new_ref|"
        r"copy_to_host_async|print_environment_info|lax\.(create_token|after_all|dce_sink|rng_bit_generator)|"
        r"export\.export|allow_f16_reductions)",
        "docs/names_of_jax.md: what rlx will not have: several devices, global settings, references, effects by tokens",
    ),
    (
        "internals",
        None,
        r"with_logs'|'(live_executables|runtime_executable|memory_analysis|donate_argnums|_executable|with_refs|"
        r"args_res|opaque_residuals|get_internal_device_put_info|_impl|_base_array|defvjp_with_logs)'|"
        r"unexpected keyword argument 'saveable_args'|Lowered\.as_text\(\)|compile option 'compiler_options'",
        "attributes and options of JAX's stages, residuals and arrays",
    ),
    (
        "internals",
        r"TracebackTest|user_code|docstr|Docstring|SignaturesMatch|jit_repr|test_fun_name",
        None,
        "frames, names and texts of JAX",
    ),
    (
        "internals",
        r"num_cpu_devices|test_jit_default_platform|test_device_put_(aliasing|on_single_device_donated|"
        r"mismatched_tree)",
        None,
        "devices and buffers of JAX",
    ),
    (
        "internals",
        r"lax_test\.LaxTest\.testTopK\d",
        r"top_k\(\) got an unexpected keyword argument 'is_stable'",
        "the reference of another version",
    ),
    ("internals", None, r"_(Python|Numpy)Scalar object", "a shape that only JAX's tests have"),
    (
        "documented",
        r"custom_api_test\..*symbolic_zero",
        r"is not an instance of <jax|is not <jax\.custom_derivatives\.SymbolicZero>|True is not false|"
        r"^AssertionError: $",
        "docs/python_for_jax_users.md: symbolic_zeros",
    ),
    (
        "documented",
        None,
        r"Python asked whether a traced value|item\(\) of a traced value|object of type (function|method), which "
        r"is not",
        "docs/python.md: traced values have no numbers, under grad, jvp and vmap outside of jit too",
    ),
    (
        "documented",
        None,
        r"(full: shape|unravel_index: shape|ball: p|an integer or an index in Python) is a traced value|"
        r"an array of truth values beside other indices must be known",
        "docs/python.md: shapes and masks are known while a function is traced",
    ),
    (
        "documented",
        None,
        r"keys are of the generator 'threefry2x32'|PRNGKeyArray|threefry_prng_impl|threefry4x32",
        "docs/python_for_jax_users.md: keys are uint32 arrays of threefry",
    ),
    (
        "documented",
        r"random_test\.(KeyArrayTest|JnpWithKeyArrayTest)\.|test_key_|testIsClose|test_random_seed_offset",
        r"u32 has \d+ elements, the target|dtype'|key_dtype|True is not (true|false)|False is not true|not raised|"
        r"\[2\] bool has 2 elements|^AssertionError: $|^AttributeError",
        "the same: an array of keys has an axis more",
    ),
    (
        "documented",
        None,
        r"checkpoint: policy|checkpoint_policies|checkpoint_name|'function' object has no attribute 'func'",
        "docs/python_for_jax_users.md: rlx.checkpoint has three policies",
    ),
    (
        "documented",
        r"test_ops_(error_on_mismatched|do_not_accept)|[Rr]ank_?[Pp]romotion|(Slice|Update)\w*TypeErrors|"
        r"integer_overflow|ArrayFromInteger|dtype_warning|Deprecat|BooleanIndexingList",
        r"not raised|^AssertionError: False is not true",
        "rlx.lax and rlx.numpy promote and broadcast, as NumPy does, and keep 64-bit dtypes",
    ),
    ("documented", r"DefaultDtypes", r"rlx\.int32 != ", "docs/python.md: 64-bit arrays stay, without a mode x64"),
    (
        "documented",
        None,
        r"\b(int4|uint4|[iu]4|f8e4m3|f8e5m2|float8_e4m3fn|float8_e5m2)\b|scaled_dot_general",
        "docs/ops.md: storage dtypes are cast before arithmetic",
    ),
    (
        "documented",
        r"custom_api_test\.CustomJVP\w*\.test_invariance|custom_api_test\.CustomVJP\w*\.test_invariance",
        None,
        "docs/python_for_jax_users.md: rules that contradict their function",
    ),
    (
        "documented",
        r"random_test\.PrngTest\.testRngRandomBitsShapeDtype|test_prng_seeds_and_keys|test_prng_errors|testScanRnn",
        r"rlx\.uint64 != |OverflowError not raised|ValueError not raised|4294967295 \(ACTUAL\)|float64\[2\]",
        "docs/python.md: 64-bit arrays stay, without a mode x64",
    ),
    (
        "documented",
        r"TakeAlongAxisOutOfBounds|StaticIndexingGrads|DotProductAttentionMask",
        r"nan location mismatch|IndexError: index \d+ is out of range",
        "docs/python_for_jax_users.md: indices out of range that are known are errors",
    ),
    (
        "documented",
        r"lax_numpy_test\..*testConvolutions",
        r"dtype\('u?int\d+'\) != dtype\('float32'\)",
        "docs/python_for_jax_users.md: convolve of integers",
    ),
    (
        "documented",
        r"custom_api_test\..*test_optimize_remat_gh21303",
        None,
        "docs/python_for_jax_users.md: rules that contradict their function",
    ),
    ("documented", None, r"device=.*inside a compiled function", "rlx.jit: device"),
    (
        "documented",
        r"OnComplexPlane_(exp|exp2|expm1|cos|cosh|sin|sinh|tan|sign)_",
        r"in n?(p?inf)j?\.",
        "docs/numerics.md: infinities follow C99",
    ),
    ("documented", None, r"reverse mode of while needs a bound", "docs/control_flow.md: max_iterations"),
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
        for kind, test, error, _ in KNOWN:
            if (test is None or re.search(test, record["test"])) and (
                error is None or re.search(error, record["what"])
            ):
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
