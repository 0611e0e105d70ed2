"""Profiles of hypothesis, and the devices that the suites run on."""
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

_QUIET = dict(deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("ci", derandomize=True, max_examples=6, database=None, **_QUIET)
settings.register_profile("full", max_examples=200, print_blob=True, **_QUIET)
settings.load_profile(os.environ.get("RLX_HYPOTHESIS", "ci"))


def pytest_addoption(parser):
    parser.addoption("--device", action="append", default=[], help="a device to test, as rlx names it; may be repeated")
    parser.addoption("--plugin", action="append", default=[], help="a backend's plug-in to load first")
    parser.addoption("--full", action="append", default=[], metavar="DEVICE",
                     help="everything on this device: hypothesis's profile 'full', and many random programs")


def pytest_configure(config):
    if config.getoption("--full"):
        settings.load_profile("full")
    if config.getoption("--plugin"):
        import rlx

        for path in config.getoption("--plugin"):
            rlx.load_plugin(path)


def devices_of(config):
    chosen = config.getoption("--device") + config.getoption("--full")
    return list(dict.fromkeys(chosen)) or ["cpu"]


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", devices_of(metafunc.config))


@pytest.fixture
def full(request):
    """Whether everything is to be run, not a sample."""
    return bool(request.config.getoption("--full"))
