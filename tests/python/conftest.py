"""Settings of the Python tests: hypothesis in two sizes (HYPOTHESIS_PROFILE=full for the long one), JAX with 64 bits,
and the devices that the oracle suites run on.
"""

import collections
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"  # no test asks a real hub, whatever it names
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # it judges small arrays: compiling is what takes long

import pytest  # noqa: E402
from hypothesis import HealthCheck, Phase, settings  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

_quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
_phases = [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]  # explaining takes minutes for each failure
_common = dict(deadline=None, phases=_phases, suppress_health_check=_quiet)
settings.register_profile("ci", derandomize=True, max_examples=25, **_common)
settings.register_profile("full", max_examples=400, print_blob=True, **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser):
    parser.addoption("--device", action="append", default=[], help="a device to test, as rlx names it; may be repeated")
    parser.addoption("--plugin", action="append", default=[], help="a backend's plug-in to load first")
    parser.addoption(
        "--full",
        action="append",
        default=[],
        metavar="DEVICE",
        help="everything on this device: hypothesis's profile 'full', and many random programs",
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "rotates(n): of the cases one in n runs where RLX_TEST_ROUND chooses which")
    if config.getoption("--full"):
        settings.load_profile("full")
    if config.getoption("--plugin"):
        import rlx

        for path in config.getoption("--plugin"):
            rlx.load_plugin(path)


def pytest_collection_modifyitems(config, items):
    """Leaves of the cases with a mark `rotates` those of the round, so that n rounds run all of them."""
    round_number = os.environ.get("RLX_TEST_ROUND")
    if round_number is None or config.getoption("--full"):
        return
    counts, kept, left_out = collections.Counter(), [], []
    for item in items:
        mark = item.get_closest_marker("rotates")
        function = item.nodeid.partition("[")[0]
        here = mark is None or counts[function] % mark.args[0] == int(round_number) % mark.args[0]
        counts[function] += 1
        (kept if here else left_out).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        config = metafunc.config
        chosen = config.getoption("--device") + config.getoption("--full")
        metafunc.parametrize("device", list(dict.fromkeys(chosen)) or ["cpu"])


@pytest.fixture
def full(request):
    """Whether everything is to be run, not a sample."""
    return bool(request.config.getoption("--full"))


# -- the tiny language model --


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    import tiny_model

    path = tmp_path_factory.mktemp("tiny") / "model"
    tiny_model.write(path)
    return path


@pytest.fixture(scope="module")
def weights():
    import tiny_model

    return tiny_model.weights()


@pytest.fixture(scope="module")
def model(folder):
    import rlx.models

    return rlx.models.load(folder, sequences=3)


@pytest.fixture(scope="module")
def gguf(folder, tmp_path_factory):
    import rlx.models

    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    rlx.models.convert(folder, path, type="Q8_0")
    return path
